/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_experts.c - com.microsoft's mixtures of experts, MoE and QMoE.
 *
 * All experts see all tokens, in products with one batch for each expert. What the router did not choose has the weight
 * 0 in the sum. */
#include "onnx/quirks.h"
#include <math.h>
#include <string.h>

typedef struct experts {
    int64_t count, hidden, inner; /* experts; the width of tokens; the width between the products */
    ir_value_id x, share;         /* tokens [T, hidden]; what each expert counts for them, [T, count] */
} experts;

/* The inputs of a product: weights [E, rows, columns], bias [E, rows]; in QMoE scales and zero points, too. */
typedef struct product {
    uint32_t weight, bias, scale, zero;
    const char *bits; /* the attribute with the bits of this product */
} product;

static const product plain[3] = { { 2, 3, 0, 0, NULL }, { 4, 5, 0, 0, NULL }, { 6, 7, 0, 0, NULL } };
static const product packed[3] = { { 2, 4, 3, 11, "fc1_expert_weight_bits" },
                                   { 5, 7, 6, 12, "fc2_expert_weight_bits" },
                                   { 8, 10, 9, 13, "fc3_expert_weight_bits" } };

/* The k largest of an axis: out[0] the values, out[1] where they are. */
static void largest(onnx_call *c, ir_value_id x, int64_t axis, int64_t k, ir_value_id *out)
{
    attrs_top_k *a = DEFAULTS(top_k);
    const dim count = call_k(c, k);
    a->axis = axis;
    a->k = build_dims(&c->b, &count, 1);
    const ir_node_id n = build_top_k(&c->b, x, a, 2);
    for (uint32_t i = 0; i < 2; i++) out[i] = build_result(&c->b, n, i);
}

/* The probabilities of all experts, and of these the k largest, with zeros for the others. */
static ir_value_id shares(onnx_call *c, ir_value_id router, ir_value_id given, int64_t count)
{
    const int64_t k = call_int(c, "k", 1), last = 1;
    dim d[SINTER_RANK_MAX];
    if (k < 1 || k > count)
        REJECT(c, INVALID_MODEL, "attribute k is %lld of %lld experts", (long long)k, (long long)count);
    if (call_int(c, "use_sparse_mixer", 0)) REJECT(c, UNSUPPORTED, "attribute use_sparse_mixer is 1");
    if (c->b.status) return 0;
    const ir_value_id wide = build_typed(&c->b, router, SINTER_DTYPE_F32);
    ir_value_id all = build_softmax(&c->b, wide, &(attrs_softmax){ .axis = 1 });
    ir_value_id top[2];
    largest(c, all, 1, k, top);
    const ir_value_id at = top[1];
    ir_value_id value = top[0];
    if (given) {
        all = build_typed(&c->b, given, SINTER_DTYPE_F32);
        value = build_gather_elements(&c->b, all, at, &(attrs_gather_elements){ .axis = 1 });
    }
    if (call_int(c, "normalize_routing_weights", 0))
        value = build_div(&c->b, value, build_reduced(&c->b, reduce_kind_sum, value, &last, 1, true));
    (void)call_shape(c, all, d);
    const ir_value_id none = build_expanded(&c->b, build_scalar(&c->b, SINTER_DTYPE_F32, 0), d, 2);
    return build_scatter_elements(&c->b, none, at, value, &(attrs_scatter_elements){ .axis = 1 });
}

/* Weights of 2, 4 or 8 bits [E, rows, columns * bits / 8] as numbers [E, rows, columns]: with a scale for each row, or
 * for each block of a row. */
static ir_value_id unpacked_weight(onnx_call *c, const product *p, int64_t count, int64_t rows, int64_t columns)
{
    const int64_t bits = call_int(c, p->bits, call_int(c, "expert_weight_bits", 4)),
                  block = call_int(c, "block_size", 0);
    const ir_value_id scale_in = call_in(c, p->scale), zero_in = call_in(c, p->zero);
    const int64_t blocks = block > 0 ? columns / block : 1, each = block > 0 ? block : columns;
    if (bits != 2 && bits != 4 && bits != 8)
        REJECT(c, UNSUPPORTED, "%s: weights of %lld bits", p->bits, (long long)bits);
    if (block < 0 || block > 1 << 20 || (block && (block < 16 || columns % block)))
        REJECT(c, INVALID_MODEL, "rows of %lld weights in blocks of %lld", (long long)columns, (long long)block);
    if (!scale_in) REJECT(c, INVALID_MODEL, "input %u, scales, is missing", p->scale);
    if (c->b.status) return 0;
    const sinter_dtype type = bits == 2 ? SINTER_DTYPE_U2 : bits == 4 ? SINTER_DTYPE_U4 : SINTER_DTYPE_U8;
    const int64_t pack = 8 / bits, lines = block > 0 ? count * rows : count, width = block > 0 ? blocks : rows,
                  padded = (width + pack - 1) / pack * pack;
    const dim wide[4] = { call_k(c, count), call_k(c, rows), call_k(c, blocks), call_k(c, each) },
              one[4] = { wide[0], wide[1], wide[2], call_k(c, 1) }, flat[3] = { wide[0], wide[1], call_k(c, columns) };
    const ir_value_id q = quirk_bits_seen(c, call_in(c, p->weight), "a weight", type, count * rows, columns);
    ir_value_id zero = build_scalar(&c->b, type, (double)(1 << (bits - 1)));
    if (zero_in) {
        zero = quirk_bits_seen(c, zero_in, "a zero point", type, lines, padded);
        if (padded != width) zero = build_part(&c->b, zero, 1, call_k(c, 0), 1, call_k(c, width));
        zero = build_shaped(&c->b, zero, one, 4);
    }
    const ir_value_id scale = build_shaped(&c->b, scale_in, one, 4);
    const ir_value_id w = quirk_dequantize(c, build_shaped(&c->b, q, wide, 4), scale, zero);
    return build_shaped(&c->b, w, flat, 3);
}

/* x [1 or E, T, columns] times the weights of all experts: [E, T, rows]. */
static ir_value_id product_of(onnx_call *c, const experts *e, uint32_t which, ir_value_id x, int64_t rows,
                              int64_t columns)
{
    const product *p = c->arg ? &packed[which] : &plain[which];
    ir_value_id w = call_in(c, p->weight);
    if (c->b.status) return 0;
    if (c->arg) w = unpacked_weight(c, p, e->count, rows, columns);
    if (c->b.status) return 0;
    if (call_rank(c, w) != 3 || !dim_is(c->b.g->dims, call_dim(c, w, 0), e->count) ||
        !dim_is(c->b.g->dims, call_dim(c, w, 1), rows) || !dim_is(c->b.g->dims, call_dim(c, w, 2), columns)) {
        REJECT(c, INVALID_MODEL, "input %u is not of shape [%lld, %lld, %lld]", p->weight, (long long)e->count,
               (long long)rows, (long long)columns);
        return 0;
    }
    const ir_value_id y =
        build_matmul(&c->b, x, build_typed(&c->b, w, call_type(c, x)), &(attrs_matmul){ .trans_b = true });
    return call_in(c, p->bias) ? build_add(&c->b, y, build_unsqueezed(&c->b, call_in(c, p->bias), 1)) : y;
}

/* SwiGLU of a gate and what it lets through, both limited; GEGLU is without limits. */
static ir_value_id gated(onnx_call *c, ir_value_id gate, ir_value_id through, bool is_gelu)
{
    if (is_gelu) return build_mul(&c->b, build_gelu_tanh(&c->b, gate), through);
    const double alpha = call_real(c, "activation_alpha", 1), beta = call_real(c, "activation_beta", 0);
    const bool is_limited = call_attr(c, "swiglu_limit") != NULL,
               is_late = call_int(c, "swiglu_limit_after_activation", 0);
    const double limit = call_real(c, "swiglu_limit", 0);
    if (is_late && !is_limited) REJECT(c, INVALID_MODEL, "swiglu_limit_after_activation without swiglu_limit");
    const ir_value_id most = build_scalar_like(&c->b, gate, limit);
    if (is_limited) through = build_clip(&c->b, through, build_scalar_like(&c->b, gate, -limit), most);
    if (is_limited && !is_late) gate = build_min(&c->b, gate, most);
    const ir_value_id turned = alpha == 1 ? gate : build_mul(&c->b, gate, build_scalar_like(&c->b, gate, alpha));
    ir_value_id y = alpha == 1 ? build_silu(&c->b, gate) : build_mul(&c->b, gate, build_sigmoid(&c->b, turned));
    if (is_late) y = build_min(&c->b, y, most);
    if (beta != 0) through = build_add(&c->b, through, build_scalar_like(&c->b, through, beta));
    return build_mul(&c->b, y, through);
}

/* Gate and what it lets through from one product: columns by turns, or one half behind the other. */
static ir_value_id gated_halves(onnx_call *c, ir_value_id y, int64_t inner, int64_t fusion, bool is_gelu)
{
    const int64_t step = fusion == 1 ? 2 : 1;
    const ir_value_id gate = build_part(&c->b, y, 2, call_k(c, 0), step, call_k(c, inner)),
                      through = build_part(&c->b, y, 2, call_k(c, fusion == 1 ? 1 : inner), step, call_k(c, inner));
    return gated(c, gate, through, is_gelu);
}

static ir_value_id one_activated(onnx_call *c, const char *what, ir_value_id y)
{
    static const struct {
        const char *name;
        op_id op;
    } table[] = { { "relu", OP_relu }, { "gelu", OP_gelu_tanh }, { "silu", OP_silu }, { "identity", OP_identity } };
    for (uint32_t i = 0; i < COUNT_OF(table); i++)
        if (strcmp(table[i].name, what) == 0) return build_unary(&c->b, table[i].op, y);
    if (strcmp(what, "relu2") == 0) {
        const ir_value_id r = build_relu(&c->b, y);
        return build_mul(&c->b, r, r);
    }
    REJECT(c, UNSUPPORTED, "attribute activation_type is '%s'", what);
    return 0;
}

/* The sizes, from the shapes of input, router and the second product's bias or weight. */
static void sizes_of(onnx_call *c, experts *e)
{
    const ir_value_id x = call_in(c, 0), router = call_in(c, 1), first = call_in(c, 2),
                      second = call_in(c, c->arg ? 5 : 4);
    const uint32_t rank = call_rank(c, x);
    if (!x || !router || !first || !second) REJECT(c, INVALID_MODEL, "an input is missing");
    if (c->b.status) return;
    if ((rank != 2 && rank != 3) || call_rank(c, router) != 2 || call_rank(c, second) != 3)
        REJECT(c, INVALID_MODEL, "an input of rank %u, a router's of %u and weights of %u; 2 or 3, 2 and 3 are wanted",
               rank, call_rank(c, router), call_rank(c, second));
    if (c->b.status) return;
    if (!call_size(c, x, rank - 1, &e->hidden) || !call_size(c, router, 1, &e->count) ||
        !call_size(c, second, 2, &e->inner))
        REJECT(c, UNSUPPORTED, "sizes of experts that are not known");
    if (c->arg) {
        const int64_t bits = call_int(c, packed[1].bits, call_int(c, "expert_weight_bits", 4));
        if (bits == 2 || bits == 4 || bits == 8) e->inner *= 8 / bits;
    }
    if (e->hidden < 1 || e->count < 1 || e->inner < 1 || e->hidden > INT32_MAX || e->count > INT32_MAX ||
        e->inner > INT32_MAX)
        REJECT(c, INVALID_MODEL, "%lld experts of %lld to %lld", (long long)e->count, (long long)e->hidden,
               (long long)e->inner);
}

void convert_moe(onnx_call *c) /* arg 1: QMoE, whose weights are packed */
{
    static const int64_t turn[3] = { 1, 0, 2 };
    const char *what = call_text(c, "activation_type", "relu"), *quantized = call_text(c, "quant_type", "int");
    const bool is_gelu = strcmp(what, "geglu") == 0, is_gated = is_gelu || strcmp(what, "swiglu") == 0;
    const bool has_third = call_in(c, c->arg ? 8 : 6) != 0;
    const int64_t fusion = call_int(c, "swiglu_fusion", 0), expert = 0;
    dim d[SINTER_RANK_MAX];
    experts e = { 0 };
    if (c->arg && strcmp(quantized, "int") != 0) REJECT(c, UNSUPPORTED, "attribute quant_type is '%s'", quantized);
    if (c->arg && call_int(c, "weights_prepacked", -1) == 1)
        REJECT(c, UNSUPPORTED, "weights_prepacked is 1: weights in the order of one kind of GPU");
    for (uint32_t i = 15; i < c->count_in; i++)
        if (call_in(c, i)) REJECT(c, UNSUPPORTED, "input %u is not supported", i);
    if (fusion < 0 || fusion > 2) REJECT(c, INVALID_MODEL, "attribute swiglu_fusion is %lld", (long long)fusion);
    if (is_gated && !fusion != has_third)
        REJECT(c, INVALID_MODEL, "activation_type '%s' with swiglu_fusion %lld and %s third weights", what,
               (long long)fusion, has_third ? "with" : "without");
    if (is_gelu && !fusion) REJECT(c, INVALID_MODEL, "activation_type 'geglu' with swiglu_fusion 0");
    sizes_of(c, &e);
    if (c->b.status) return;
    const uint32_t rank = call_shape(c, call_in(c, 0), d);
    const dim flat[2] = { dim_product(c->b.g->dims, d, rank - 1), d[rank - 1] };
    e.x = build_unsqueezed(&c->b, build_shaped(&c->b, call_in(c, 0), flat, 2), 0);
    e.share = shares(c, call_in(c, 1), c->arg ? call_in(c, 14) : 0, e.count);
    ir_value_id y = product_of(c, &e, 0, e.x, is_gated && fusion ? 2 * e.inner : e.inner, e.hidden);
    if (c->b.status) return;
    const ir_value_id third = has_third ? product_of(c, &e, 2, e.x, e.inner, e.hidden) : 0;
    if (is_gated) y = fusion ? gated_halves(c, y, e.inner, fusion, is_gelu) : gated(c, y, third, false);
    else {
        y = one_activated(c, what, y);
        if (third) y = build_mul(&c->b, y, third);
    }
    y = product_of(c, &e, 1, y, e.hidden, e.inner);
    const ir_value_id column = build_unsqueezed(&c->b, build_typed(&c->b, e.share, call_type(c, e.x)), 2);
    y = build_mul(&c->b, y, build_permuted(&c->b, column, turn, 3));
    c->out[0] = build_shaped(&c->b, build_reduced(&c->b, reduce_kind_sum, y, &expert, 1, false), d, rank);
}

/* MoEGroupRouter: first it chooses the groups whose best experts have the largest sums, then the best experts of these
 * groups. Experts are compared by their probability plus a bias; the result has the probability alone. */
void convert_moe_group_router(onnx_call *c)
{
    const ir_value_id logits = call_in(c, 0), bias = call_in(c, 1), weight = call_in(c, 2);
    const int64_t groups = call_int(c, "n_group", 1), kept = call_int(c, "topk_group", 1), k = call_int(c, "top_k", 0),
                  last = 2;
    int64_t count = 0, best = call_int(c, "group_topk", 2);
    dim d[SINTER_RANK_MAX];
    const uint32_t rank = logits ? call_shape(c, logits, d) : 0;
    if (!bias || rank < 2 || (weight && (rank != 2 || call_rank(c, weight) != 2)))
        REJECT(c, INVALID_MODEL, "logits of rank %u, or no bias of experts", rank);
    if (!c->b.status && !call_size(c, bias, 0, &count)) REJECT(c, UNSUPPORTED, "a number of experts that is not known");
    if (!c->b.status && (groups < 1 || count < 1 || count % groups || kept < 1 || kept > groups || best < 1 || k < 1 ||
                         k > count / groups * kept))
        REJECT(c, INVALID_MODEL, "%lld of %lld experts, of %lld of %lld groups", (long long)k, (long long)count,
               (long long)kept, (long long)groups);
    if (c->b.status) return;
    ir_builder *b = &c->b;
    const dim flat[2] = { dim_product(b->g->dims, d, rank - 1), call_k(c, count) },
              apart[3] = { flat[0], call_k(c, groups), call_k(c, count / groups) };
    ir_value_id x = build_typed(b, logits, SINTER_DTYPE_F32);
    if (weight) x = build_matmul(b, x, build_typed(b, weight, SINTER_DTYPE_F32), &(attrs_matmul){ .trans_b = true });
    const ir_value_id share = build_sigmoid(b, build_shaped(b, x, flat, 2)), choice = build_add(b, share, bias);
    if (call_wants(c, 1)) c->out[1] = choice;
    if (call_wants(c, 2)) c->out[2] = share;
    if (!call_wants(c, 0)) return;
    ir_value_id top[2], chosen[2];
    if (best > count / groups) best = count / groups;
    const ir_value_id each = build_shaped(b, choice, apart, 3);
    largest(c, each, 2, best, top);
    largest(c, build_reduced(b, reduce_kind_sum, top[0], &last, 1, false), 1, kept, chosen);
    const ir_value_id none = build_expanded(b, build_scalar(b, SINTER_DTYPE_F32, 0), apart, 2),
                      ones = build_expanded(b, build_scalar(b, SINTER_DTYPE_F32, 1),
                                            (dim[]){ flat[0], call_k(c, kept) }, 2),
                      is_kept =
                          build_scatter_elements(b, none, chosen[1], ones, &(attrs_scatter_elements){ .axis = 1 }),
                      zero = build_scalar(b, SINTER_DTYPE_F32, 0),
                      flags = build_gt(b, build_unsqueezed(b, is_kept, 2), zero),
                      least = build_scalar(b, SINTER_DTYPE_F32, -(double)INFINITY);
    largest(c, build_shaped(b, build_where(b, flags, each, least), flat, 2), 1, k, top);
    const ir_value_id at = top[1], value = build_gather_elements(b, share, at, &(attrs_gather_elements){ .axis = 1 }),
                      logs = build_log(b, build_max(b, value, build_scalar(b, SINTER_DTYPE_F32, 1e-20))),
                      others = build_scalar(b, SINTER_DTYPE_F32, call_real(c, "router_sentinel", -10000)),
                      y = build_scatter_elements(b, build_expanded(b, others, flat, 2), at, logs,
                                                 &(attrs_scatter_elements){ .axis = 1 });
    c->out[0] = build_typed(b, y, call_type(c, logits));
}
