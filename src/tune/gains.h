/* SPDX-License-Identifier: Apache-2.0 */
/* gains.h - what the files that ask whether a narrower type pays share (price.c, gains.c, precision.c, integers.c). */
#ifndef TUNE_GAINS_H
#define TUNE_GAINS_H

#include "tune/tune.h"

/* The f32 ops that tune_narrow lowers, in order; allocated in `a`. */
sinter_status narrow_candidates(env *e, arena *a, ir_graph *g, sinter_dtype type, ir_node_id **list, uint32_t *count);
/* Does this input of an op keep its type? */
bool          narrow_stays(const ir_node *n, uint32_t input);

/* The products that tune_quantize takes, in order; behind them, from `own` on, those that are of dequantised numbers
 * already. */
sinter_status quantize_candidates(env *e, arena *a, ir_graph *g, ir_node_id **list, uint32_t *own, uint32_t *count);
/* The dequantize that makes the value, or what a constant was folded from; views are looked through. NULL: none. */
const ir_node *quantize_source(const ir_graph *g, ir_value_id v);
/* The type of the data of a product in 8 bits. */
sinter_dtype  quantize_data_type(const ir_graph *g, const ir_node *n);

/* What one op takes on the device by itself. */
typedef struct op_price {
    double ns;
    bool   is_measured;                 /* else by the cost model */
    bool   is_converted;                /* no fast kernel takes the type: done in f32 between conversions, or worse */
} op_price;
typedef struct pricing {
    env                *e;
    ir_graph           *g;
    const tune_options *o;
    arena              *scratch;
} pricing;
/* `type`: F32, F16 or BF16 as tune_narrow lowers to it; I8: the product in 8 bits, from 8 bits to 8 bits. */
sinter_status price_op(const pricing *p, ir_node_id id, sinter_dtype type, bool is_timed, op_price *out);
/* Rounding a value in f32 to the type by itself, by the cost model. I8: quantising. */
sinter_status price_cast(const pricing *p, ir_value_id v, sinter_dtype type, double *ns);
/* Does a kernel of the device take the op as it is? */
sinter_status price_is_on_device(const pricing *p, ir_node_id id, bool *out);
/* What decides the price of an op in f32: equal text, equal price. */
sinter_status price_key(const pricing *p, ir_node_id id, text *key);

#endif
