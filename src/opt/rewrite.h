/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite.h - rules and what they may do.
 *
 * A rule returns the value that stands for its root's first output from now on, or 0 to decline. It only adds nodes;
 * the driver replaces, re-queues readers, removes the dead, unites the origins, and refuses what would change a type
 * or a size. */
#ifndef OPT_REWRITE_H
#define OPT_REWRITE_H

#include "ir/build.h"
#include "opt/match.h"
#include "opt/pipeline.h"

typedef enum rule_numerics {
    /* the same bits for all inputs (NaN is NaN; min, max and clip may choose either of two zeros, and a product is
     * summed in its kernel's order) */
    EXACT,
    REASSOC,        /* the same up to the order and rounding of intermediate results, and the signs of zeros */
    ROUNDS          /* drops or adds a rounding that the model asked for */
} rule_numerics;

typedef struct rewriter {
    opt_state    *s;
    ir_graph     *g;
    ir_builder   *b;             /* adds to the root's region */
} rewriter;

typedef struct rule {
    const char     *name;
    const pattern  *root;
    ir_value_id   (*apply)(rewriter *r, const match *m);
    rule_numerics   numerics;
} rule;
extern const rule rules_shape[], rules_sink[], rules_arith[], rules_strength[], rules_linear[], rules_activation[];
extern const rule rules_norm[], rules_attention[], rules_integer[], rules_unsigned[], rules_requantize[], rules_move[];
extern const rule rules_turn[], rules_sink_turned[];

/* ---- looking ---- */
static inline const ir_value *rw_value(const rewriter *r, ir_value_id v) { return ir_value_at(r->g, v); }
static inline const ir_node *rw_node(const rewriter *r, ir_node_id n) { return ir_node_at(r->g, n); }
/* The node that makes v, where it is a live `op` and v its first output; NULL else. */
const ir_node *rw_def(const rewriter *r, ir_value_id v, op_id op);
bool rw_only(const rewriter *r, ir_value_id v);                                  /* one reader, no output */
bool rw_same_shape(const rewriter *r, ir_value_id a, ir_value_id b);
/* A constant whose elements are all the same. */
bool rw_scalar(const rewriter *r, ir_value_id v, double *out);
/* …and close to `want`: 1e-3 relative for f16, else 1e-5. */
bool rw_is_scalar(const rewriter *r, ir_value_id v, double want);
bool rw_is_float(const rewriter *r, ir_value_id v);
/* Which operand of a commuting binary node is a uniform constant: value in *out and the other operand; 0: neither. */
ir_value_id rw_other_scalar(const rewriter *r, const ir_node *n, double *out);

/* Does a transposition swap the last two axes and keep the others? */
bool rw_swaps_last(const ir_node *transpose);
/* v with its last two axes swapped. */
ir_value_id rw_swap_last(rewriter *r, ir_value_id v);

/* A product flattened: scale * factor[0] * … ; inner products with other readers are taken only if `shared`. */
typedef struct rw_product { double scale; uint32_t count; ir_value_id factor[8]; } rw_product;
bool rw_product_of(const rewriter *r, ir_value_id v, bool shared, rw_product *out);

#endif
