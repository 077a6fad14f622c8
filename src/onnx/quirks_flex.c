/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_flex.c - FlexAttention: attention whose scores and probabilities go through subgraphs of the model. Without
 * subgraphs it is the canonical op; with them it is two products and a softmax, with the subgraphs in between. */
#include "onnx/quirks.h"
#include <math.h>

/* Products of 16-bit numbers may be summed and kept in f32. */
static ir_value_id product(onnx_call *c, ir_value_id a, ir_value_id b, bool trans_b, sinter_dtype type)
{
    const sinter_dtype own = call_type(c, a);
    attrs_matmul *at = DEFAULTS(matmul);
    at->trans_b = trans_b;
    if ((own == SINTER_DTYPE_F16 || own == SINTER_DTYPE_BF16) && type == SINTER_DTYPE_F32) at->type = type;
    return build_typed(&c->b, build_emit(&c->b, OP_matmul, at, (ir_value_id[]){ a, b }, 2), type);
}

static ir_value_id modified(onnx_call *c, const char *name, ir_value_id x)
{
    const onnx_attr *a = call_attr(c, name);
    dim d[SINTER_RANK_MAX], made[SINTER_RANK_MAX];
    ir_value_id y = x;
    if (!a || c->b.status) return x;
    if (!a->g) REJECT(c, INVALID_MODEL, "attribute %s is no subgraph", name);
    else call_inline(c, a->g, &x, 1, &y, 1);
    if (c->b.status) return 0;
    if (call_list_at(c, y) || call_type(c, y) != call_type(c, x)) {
        REJECT(c, INVALID_MODEL, "the result of %s has another type than its input", name);
        return 0;
    }
    const uint32_t rank = call_shape(c, x, d);
    bool is_same = call_shape(c, y, made) == rank;
    for (uint32_t i = 0; i < rank && is_same; i++) is_same = d[i] == made[i];
    if (!is_same) REJECT(c, UNSUPPORTED, "the result of %s has another shape than its input", name);
    return y;
}

void convert_flex_attention(onnx_call *c)
{
    ir_value_id q = call_in(c, 0);
    ir_value_id k = call_in(c, 1), v = call_in(c, 2);
    double scale = 1;
    int64_t size = 0;
    if (!q || !k || !v || call_rank(c, q) != 4 || call_rank(c, k) != 4 || call_rank(c, v) != 4)
        REJECT(c, INVALID_MODEL, "query, key and value are not all of rank 4");
    if (c->b.status) return;
    const bool is_late = !call_attr(c, "scale") && !call_size(c, q, 3, &size); /* a run knows the size of a head */
    if (call_attr(c, "scale")) scale = call_real(c, "scale", 1);
    else if (size > 0) scale = 1 / sqrt((double)size);
    const sinter_dtype own = call_type(c, q), narrow = own == SINTER_DTYPE_F64 ? own : SINTER_DTYPE_F32,
                       type = call_attr(c, "softmax_precision") ? call_dtype(c, call_int(c, "softmax_precision", 1))
                                                                : narrow;
    if (c->b.status) return;
    if (!call_attr(c, "score_mod") && !call_attr(c, "prob_mod") && type == narrow) {
        attrs_attention *a = DEFAULTS(attention);
        a->scale = scale;
        if (is_late) q = build_mul(&c->b, q, build_typed(&c->b, quirk_head_scale(c, call_dim(c, q, 3)), own));
        c->out[0] = build_emit(&c->b, OP_attention, a, (ir_value_id[]){ q, k, v }, 3);
        return;
    }
    k = quirk_repeat_heads(c, k, q);
    v = quirk_repeat_heads(c, v, q);
    const ir_value_id scores = product(c, q, k, true, type),
                      factor = is_late ? build_typed(&c->b, quirk_head_scale(c, call_dim(c, q, 3)), type)
                                       : build_scalar_like(&c->b, scores, scale),
                      wide = build_mul(&c->b, scores, factor),
                      p = build_softmax(&c->b, modified(c, "score_mod", wide), &(attrs_softmax){ .axis = 3 }),
                      values = build_typed(&c->b, v, type),
                      y = product(c, modified(c, "prob_mod", p), values, false, type);
    c->out[0] = build_typed(&c->b, y, call_type(c, v));
}
