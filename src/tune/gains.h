/* SPDX-License-Identifier: Apache-2.0 */
/* gains.h - shared by the files that decide whether a narrower type is faster: price.c, gains.c, precision.c,
 * integers.c. */
#ifndef TUNE_GAINS_H
#define TUNE_GAINS_H

#include "tune/tune.h"

/* The f32 ops that tune_narrow lowers, in order; allocated in `a`. */
sinter_status narrow_candidates(env *e, arena *a, ir_graph *g, sinter_dtype type, ir_node_id **list, uint32_t *count);
/* Does this input of an op keep its type? */
bool          narrow_stays(const ir_node *n, uint32_t input);

/* The products that tune_quantize can quantise, in order. From index `own` on: the products whose numbers the model
 * quantised itself. */
sinter_status quantize_candidates(env *e, arena *a, ir_graph *g, ir_node_id **list, uint32_t *own, uint32_t *count);
/* The dequantize node that computes the value, or from which a constant was folded. Looks through views. NULL: there is
 * none. */
const ir_node *quantize_source(const ir_graph *g, ir_value_id v);
/* The type of the data of a product in 8 bits. */
sinter_dtype  quantize_data_type(const ir_graph *g, const ir_node *n);

/* The time of one op alone on the device. */
typedef struct op_price {
    double ns;
    bool   is_measured;                 /* else by the cost model */
    bool   is_converted;                /* no fast kernel for the type: computed in f32 between casts, or slower */
} op_price;
typedef struct pricing {
    env                *e;
    ir_graph           *g;
    const tune_options *o;
    arena              *scratch;
} pricing;
/* The price of one op. `type`: F32, F16 or BF16 as tune_narrow lowers to it; I8: the product of 8-bit numbers with an
 * 8-bit result. */
sinter_status price_op(const pricing *p, ir_node_id id, sinter_dtype type, bool is_timed, op_price *out);
/* The price of a separate step that rounds an f32 value to the type, by the cost model. I8: a quantize step. */
sinter_status price_cast(const pricing *p, ir_value_id v, sinter_dtype type, double *ns);
/* Does a kernel of the device take the op as it is? */
sinter_status price_is_on_device(const pricing *p, ir_node_id id, bool *out);
/* Text of everything that the price of an f32 op depends on. Ops with equal texts have equal prices. */
sinter_status price_key(const pricing *p, ir_node_id id, text *key);

#endif
