/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_contrib.c - com.microsoft's small operators: biases that come with an activation, norms of diffusion models,
 * complex products, windows, distances; and the experimental ones that the default domain once had. */
#include "onnx/quirks.h"
#include "ops/infer_check.h"
#include <math.h>
#include <string.h>

/* ---- a bias and something behind it ---- */
/* Softmax of x + bias over all axes from `axis` on. Which way is_inner_broadcast says, the bias is one that the
 * operands' shapes tell. */
void convert_bias_softmax(onnx_call *c)
{
    dim d[SINTER_RANK_MAX];
    const ir_value_id x = build_add(&c->b, call_in(c, 0), call_in(c, 1));
    const uint32_t rank = call_shape(c, x, d);
    const int64_t axis = call_axis(c, call_int(c, "axis", 1), rank);
    if (rank != call_rank(c, call_in(c, 0))) REJECT(c, INVALID_MODEL, "a bias of more axes than the data");
    if (c->b.status) return;
    dim_table *t = c->b.g->dims;
    const dim rows[2] = { dim_product(t, d, (uint32_t)axis), dim_product(t, d + axis, rank - (uint32_t)axis) };
    const ir_value_id flat = build_shaped(&c->b, x, rows, 2),
                      y = build_softmax(&c->b, flat, &(attrs_softmax){ .axis = 1 });
    c->out[0] = build_shaped(&c->b, y, d, rank);
}

void convert_bias_add(onnx_call *c)
{
    c->out[0] = build_add(&c->b, build_add(&c->b, call_in(c, 0), call_in(c, 1)), call_in(c, 2));
}

/* The left half times Gelu of the right half. */
void convert_bias_split_gelu(onnx_call *c)
{
    const ir_value_id x = build_add(&c->b, call_in(c, 0), call_in(c, 1));
    const uint32_t rank = call_rank(c, x);
    if (rank < 1) REJECT(c, INVALID_MODEL, "an input of rank 0");
    if (c->b.status) return;
    const dim half = call_quotient(c, call_dim(c, x, rank - 1), call_k(c, 2));
    const ir_value_id left = build_part(&c->b, x, rank - 1, call_k(c, 0), 1, half),
                      right = build_part(&c->b, x, rank - 1, half, 1, half);
    c->out[0] = build_mul(&c->b, left, build_gelu(&c->b, right));
}

void convert_gemm_fast_gelu(onnx_call *c)
{
    ir_value_id y = build_matmul(&c->b, call_in(c, 0), call_in(c, 1), NULL);
    if (call_in(c, 2)) y = build_add(&c->b, y, call_in(c, 2));
    c->out[0] = build_gelu_tanh(&c->b, y);
}

/* ---- norms of diffusion models ---- */
void convert_group_norm_silu(onnx_call *c) /* arg 1: SkipGroupNorm, of x + skip + bias; the sum is the second output */
{
    static const int64_t to_first[4] = { 0, 3, 1, 2 }, to_last[4] = { 0, 2, 3, 1 };
    const bool is_last = call_int(c, "channels_last", 1) != 0;
    const int64_t activation = call_int(c, "activation", 0);
    ir_value_id x = call_in(c, 0), skip = c->arg ? call_in(c, 3) : 0;
    attrs_group_norm *a = DEFAULTS(group_norm);
    a->groups = call_int(c, "groups", 0);
    a->epsilon = call_real(c, "epsilon", (double)1e-5f);
    if (!x || !call_in(c, 1) || !call_in(c, 2) || (c->arg && !skip)) REJECT(c, INVALID_MODEL, "an input is missing");
    if (a->groups < 1) REJECT(c, INVALID_MODEL, "attribute groups is %lld", (long long)a->groups);
    if (activation != 0 && activation != 1)
        REJECT(c, INVALID_MODEL, "attribute activation is %lld; 0 or 1 is wanted", (long long)activation);
    if (!c->b.status && call_rank(c, x) != 4)
        REJECT(c, INVALID_MODEL, "an input of rank %u, 4 is wanted", call_rank(c, x));
    if (c->b.status) return;
    const uint32_t channel = is_last ? 3 : 1;
    if (skip && call_rank(c, skip) == 2) { /* one for each image and channel */
        const dim one = call_k(c, 1), d[2] = { call_dim(c, skip, 0), call_dim(c, skip, 1) },
                  wide[4] = { d[0], is_last ? one : d[1], one, is_last ? d[1] : one };
        skip = build_shaped(&c->b, skip, wide, 4);
    }
    if (skip) x = build_add(&c->b, x, skip);
    if (c->arg && call_in(c, 4)) x = build_add(&c->b, x, build_along(&c->b, call_in(c, 4), channel, 4));
    if (c->arg && c->count_out > 1) c->out[1] = x;
    /* The parameters are f32 where the data are halves. */
    const sinter_dtype type = call_type(c, x);
    const ir_value_id scale = build_typed(&c->b, call_in(c, 1), type), bias = build_typed(&c->b, call_in(c, 2), type);
    ir_value_id y = build_group_norm(&c->b, is_last ? build_permuted(&c->b, x, to_first, 4) : x, scale, bias, a);
    if (activation) y = build_silu(&c->b, y);
    c->out[0] = is_last ? build_permuted(&c->b, y, to_last, 4) : y;
}

/* ---- complex numbers as pairs in the last axis ---- */
void convert_complex_mul(onnx_call *c) /* arg 1: with the conjugate of the second */
{
    ir_value_id part[2][2], y[2];
    for (uint32_t i = 0; i < 2; i++) {
        const ir_value_id v = call_pairs(c, i);
        const uint32_t rank = call_rank(c, v);
        if (c->b.status) return;
        for (uint32_t k = 0; k < 2; k++) part[i][k] = build_part(&c->b, v, rank - 1, call_k(c, k), 1, call_k(c, 1));
    }
    for (uint32_t i = 0; i < 2; i++) {
        const ir_value_id one = build_mul(&c->b, part[0][i], part[1][0]),
                          other = build_mul(&c->b, part[0][1 - i], part[1][1]);
        const bool adds = c->arg ? i == 0 : i == 1;
        y[i] = adds ? build_add(&c->b, one, other) : build_sub(&c->b, one, other);
    }
    if (c->b.status) return;
    c->out[0] = build_concat(&c->b, y, 2, &(attrs_concat){ .axis = call_rank(c, y[0]) - 1 });
}

/* ---- shapes and windows ---- */
void convert_expand_dims(onnx_call *c)
{
    int64_t axis = 0;
    uint32_t count = 0;
    if (!call_in(c, 0) || !call_in(c, 1)) REJECT(c, INVALID_MODEL, "an input is missing");
    if (c->b.status) return;
    if (quirk_axes_late(c, call_in(c, 1))) {
        c->out[0] = quirk_unsqueeze_late(c, call_in(c, 0), build_shaped(&c->b, call_in(c, 1), NULL, 0));
        return;
    }
    if (!call_const_ints(c, call_in(c, 1), "the axis", &axis, 1, &count)) return;
    if (count != 1) REJECT(c, INVALID_MODEL, "the axis is not one number");
    axis = call_axis(c, axis, call_rank(c, call_in(c, 0)) + 1);
    if (!c->b.status) c->out[0] = build_unsqueezed(&c->b, call_in(c, 0), (uint32_t)axis);
}

/* Windows of an axis, each of which is a row behind the other axes. */
void convert_unfold_tensor(onnx_call *c)
{
    dim_table *t = c->b.g->dims;
    const ir_value_id x = call_in(c, 0);
    const uint32_t rank = call_rank(c, x);
    const int64_t size = call_int(c, "size", 0), step = call_int(c, "step", 1),
                  axis = call_axis(c, call_int(c, "dim", -1), rank);
    if (size < 1 || step < 1 || size > INT32_MAX || step > INT32_MAX)
        REJECT(c, INVALID_MODEL, "windows of %lld, one each %lld", (long long)size, (long long)step);
    if (rank >= SINTER_RANK_MAX) REJECT(c, UNSUPPORTED, "windows of a tensor of rank %u", rank);
    if (c->b.status) return;
    const dim rest = dim_sub(t, call_dim(c, x, (uint32_t)axis), call_k(c, size));
    if (dim_range_of(t, rest).max < 0)
        REJECT(c, INVALID_MODEL, "windows of %lld are longer than the axis", (long long)size);
    const dim windows = dim_add(t, dim_floordiv(t, rest, call_k(c, step)), call_k(c, 1));
    const ir_value_id pace = build_scalar_i64(&c->b, SINTER_DTYPE_I64, step);
    const ir_value_id first = build_mul(&c->b, build_unsqueezed(&c->b, build_iota(&c->b, windows), 1), pace);
    const ir_value_id at = build_add(&c->b, first, build_unsqueezed(&c->b, build_iota(&c->b, call_k(c, size)), 0));
    const ir_value_id y = build_gather(&c->b, x, at, &(attrs_gather){ .axis = axis });
    int64_t perm[SINTER_RANK_MAX + 1];
    uint32_t n = 0;
    for (int64_t i = 0; i <= (int64_t)rank; i++)
        if (i != axis + 1) perm[n++] = i;
    perm[n] = axis + 1;
    c->out[0] = build_permuted(&c->b, y, perm, rank + 1);
}

void convert_crop(onnx_call *c)
{
    dim_table *t = c->b.g->dims;
    attr_ints border, scale;
    ir_value_id x = call_in(c, 0);
    const bool is_sized = call_ints(c, "scale", &scale) && scale.count;
    if (!call_ints(c, "border", &border)) border = (attr_ints){ .count = 4 };
    if (border.count != 4 || (is_sized && scale.count != 2) || call_rank(c, x) != 4)
        REJECT(c, INVALID_MODEL, "%u borders for an input of rank %u; 4 and 4 are wanted", border.count,
               call_rank(c, x));
    for (uint32_t i = 0; i < 2 && !c->b.status; i++) { /* height, width; borders are left, top, right, bottom */
        const int64_t begin = border.at[1 - i], end = border.at[3 - i], size = is_sized ? scale.at[i] : 0;
        if (begin < 0 || end < 0 || size < 0 || begin > INT32_MAX || end > INT32_MAX || size > INT32_MAX)
            REJECT(c, INVALID_MODEL, "borders of %lld and %lld around %lld", (long long)begin, (long long)end,
                   (long long)size);
        if (c->b.status) return;
        const dim left = is_sized ? call_k(c, size) : dim_sub(t, call_dim(c, x, 2 + i), call_k(c, begin + end));
        x = build_part(&c->b, x, 2 + i, call_k(c, begin), 1, left);
    }
    c->out[0] = x;
}

/* ---- sums, distances, matrices ---- */
/* alpha * f(beta * x) + gamma for a function f; factors of 1 and sums of 0 are left out. */
static ir_value_id scaled(onnx_call *c, op_id f, ir_value_id x, double alpha, double beta, double gamma)
{
    ir_value_id y = beta == 1 ? x : build_mul(&c->b, x, build_scalar_like(&c->b, x, beta));
    if (f != OP_identity) y = build_unary(&c->b, f, y);
    if (alpha != 1) y = build_mul(&c->b, y, build_scalar_like(&c->b, y, alpha));
    return gamma == 0 ? y : build_add(&c->b, y, build_scalar_like(&c->b, y, gamma));
}

void convert_scaled(onnx_call *c) /* arg: tanh or softplus; identity: Affine */
{
    const double alpha = call_real(c, "alpha", 1), beta = call_real(c, "beta", c->arg == OP_identity ? 0 : 1);
    const bool is_sum = c->arg == OP_identity;
    const ir_value_id x = call_in(c, 0), y = scaled(c, (op_id)c->arg, x, alpha, is_sum ? 1 : beta, is_sum ? beta : 0);
    c->out[0] = y == x ? build_identity(&c->b, x) : y;
}

void convert_image_scaler(onnx_call *c)
{
    attr_reals bias;
    const ir_value_id x = call_in(c, 0);
    float each[ATTR_REALS_MAX];
    if (call_rank(c, x) != 4) REJECT(c, INVALID_MODEL, "an image of rank %u", call_rank(c, x));
    if (c->b.status) return;
    ir_value_id y = build_mul(&c->b, x, build_scalar_like(&c->b, x, call_real(c, "scale", 1)));
    if (call_reals(c, "bias", &bias) && bias.count) {
        for (uint32_t i = 0; i < bias.count; i++) each[i] = (float)bias.at[i];
        const ir_value_id b = build_typed(&c->b, quirk_reals(c, each, bias.count, 1), call_type(c, x));
        y = build_add(&c->b, y, build_along(&c->b, b, 1, 4));
    }
    c->out[0] = y;
}

void convert_mul_integer(onnx_call *c)
{
    ir_value_id v[2];
    for (uint32_t i = 0; i < 2; i++) {
        const ir_value_id x = call_in(c, 2 * i), zero = quirk_scalar_in(c, call_in(c, 2 * i + 1));
        if (!x) REJECT(c, INVALID_MODEL, "input %u is missing", 2 * i);
        if (c->b.status) return;
        v[i] = build_typed(&c->b, x, SINTER_DTYPE_I32);
        if (zero) v[i] = build_sub(&c->b, v[i], build_typed(&c->b, zero, SINTER_DTYPE_I32));
    }
    c->out[0] = build_mul(&c->b, v[0], v[1]);
}

void convert_reduce_sum_integer(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    const uint32_t rank = call_rank(c, x);
    attr_ints axes;
    if (!x) REJECT(c, INVALID_MODEL, "input 0 is missing");
    if (c->b.status) return;
    if (!call_ints(c, "axes", &axes)) axes.count = 0;
    for (uint32_t i = 0; i < axes.count; i++) axes.at[i] = call_axis(c, axes.at[i], rank);
    const bool is_all = !axes.count;
    for (uint32_t i = 0; i < rank && is_all; i++) axes.at[axes.count++] = i;
    const ir_value_id wide =
        build_typed(&c->b, x, dtype_is_signed(call_type(c, x)) ? SINTER_DTYPE_I32 : SINTER_DTYPE_U32);
    if (!c->b.status)
        c->out[0] = build_reduced(&c->b, reduce_kind_sum, wide, axes.at, axes.count, call_int(c, "keepdims", 1) != 0);
}

/* Distances between the rows of two matrices. The differences are taken first: sums of squares would cancel. */
void convert_cdist(onnx_call *c)
{
    static const struct {
        const char *name;
        reduce_kind kind;
    } table[] = { { "sqeuclidean", reduce_kind_sum_square },
                  { "euclidean", reduce_kind_l2 },
                  { "cityblock", reduce_kind_l1 },
                  { "chebyshev", reduce_kind_max } };
    const int64_t last = 2;
    const char *metric = call_text(c, "metric", "sqeuclidean");
    uint32_t which = 0;
    while (which < COUNT_OF(table) && strcmp(table[which].name, metric) != 0) which++;
    if (which == COUNT_OF(table)) {
        REJECT(c, UNSUPPORTED, "attribute metric is '%s'", metric);
        return;
    }
    if (call_rank(c, call_in(c, 0)) != 2 || call_rank(c, call_in(c, 1)) != 2)
        REJECT(c, INVALID_MODEL, "an operand is no matrix");
    if (c->b.status) return;
    const ir_value_id a = build_unsqueezed(&c->b, call_in(c, 0), 1), b = build_unsqueezed(&c->b, call_in(c, 1), 0);
    ir_value_id off = build_sub(&c->b, a, b);
    if (table[which].kind == reduce_kind_max) off = build_abs(&c->b, off);
    c->out[0] = build_reduced(&c->b, table[which].kind, off, &last, 1, false);
}

/* The matrix without one row or one column. */
static ir_value_id without(onnx_call *c, ir_value_id x, uint32_t axis, int64_t size, int64_t left_out)
{
    ir_value_id part[2];
    uint32_t n = 0;
    if (left_out) part[n++] = build_part(&c->b, x, axis, call_k(c, 0), 1, call_k(c, left_out));
    if (left_out + 1 < size)
        part[n++] = build_part(&c->b, x, axis, call_k(c, left_out + 1), 1, call_k(c, size - 1 - left_out));
    return n == 1 ? part[0] : build_concat(&c->b, part, 2, &(attrs_concat){ .axis = axis });
}

/* By the minors, for the small matrices of geometry: [j, i] is the determinant without row i and column j, with its
 * sign, over that of the matrix. In doubles, whose rounding does not show behind that. */
void convert_inverse(onnx_call *c)
{
    enum { SIZE_MAX_HERE = 6 };
    dim d[SINTER_RANK_MAX];
    const ir_value_id x = call_in(c, 0);
    const uint32_t rank = call_shape(c, x, d);
    int64_t n = 0;
    ir_value_id minor[SIZE_MAX_HERE * SIZE_MAX_HERE];
    if (!x || rank < 2 || !infer_agree(c->b.g->dims, d[rank - 1], d[rank - 2]))
        REJECT(c, INVALID_MODEL, "an input that is no square matrix");
    if (!c->b.status && (!call_size(c, x, rank - 1, &n) || n < 1 || n > SIZE_MAX_HERE))
        REJECT(c, UNSUPPORTED, "inverses of matrices of a size that is not known, or beyond %d", SIZE_MAX_HERE);
    if (c->b.status) return;
    const ir_value_id wide = build_typed(&c->b, x, SINTER_DTYPE_F64), one = build_scalar(&c->b, SINTER_DTYPE_F64, 1);
    if (n == 1) {
        c->out[0] = build_typed(&c->b, build_div(&c->b, one, wide), call_type(c, x));
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const ir_value_id rows = without(c, wide, rank - 2, n, i);
        for (int64_t j = 0; j < n; j++) {
            ir_value_id v = build_det(&c->b, without(c, rows, rank - 1, n, j), NULL);
            if ((i + j) % 2) v = build_neg(&c->b, v);
            minor[j * n + i] = build_unsqueezed(&c->b, v, rank - 2);
        }
    }
    const ir_value_id all = build_concat(&c->b, minor, (uint32_t)(n * n), &(attrs_concat){ .axis = rank - 2 }),
                      adjugate = build_shaped(&c->b, all, d, rank), det = build_det(&c->b, wide, NULL);
    const ir_value_id each = build_unsqueezed(&c->b, build_unsqueezed(&c->b, det, rank - 2), rank - 1);
    c->out[0] = build_typed(&c->b, build_div(&c->b, adjugate, each), call_type(c, x));
}

/* ---- text generation and training ---- */
/* Tokens that would make a block of ngram_size tokens that the text has already get the score -inf. */
void convert_ngram_repeat_block(onnx_call *c)
{
    dim_table *t = c->b.g->dims;
    const ir_value_id ids = call_in(c, 0), scores = call_in(c, 1);
    const int64_t n = call_int(c, "ngram_size", 0);
    if (n < 1 || n > 64) REJECT(c, UNSUPPORTED, "attribute ngram_size is %lld; 1 to 64 are wanted", (long long)n);
    if (call_rank(c, ids) != 2 || call_rank(c, scores) != 2)
        REJECT(c, INVALID_MODEL, "tokens or scores that are no matrix");
    if (c->b.status) return;
    const dim length = call_dim(c, ids, 1), one = call_k(c, 1),
              blocks = call_clamp_max(c, dim_sub(t, length, call_k(c, n - 1)), call_k(c, 0)),
              tail = call_clamp_max(c, dim_sub(t, length, call_k(c, n - 1)), call_k(c, 0));
    if (dim_range_of(t, length).max < n) { /* too few tokens to repeat any */
        c->out[0] = build_identity(&c->b, scores);
        return;
    }
    if (dim_range_of(t, length).min < n) REJECT(c, UNSUPPORTED, "perhaps fewer than %lld tokens", (long long)n);
    const ir_value_id token = build_part(&c->b, ids, 1, call_k(c, n - 1), 1, blocks),
                      inf = build_scalar_like(&c->b, scores, (double)INFINITY),
                      none = build_scalar_like(&c->b, scores, -(double)INFINITY);
    ir_value_id same = 0;
    for (int64_t i = 0; i + 1 < n; i++) {
        const ir_value_id last = build_part(&c->b, ids, 1, dim_add(t, tail, call_k(c, i)), 1, one),
                          each = build_part(&c->b, ids, 1, call_k(c, i), 1, blocks),
                          equal = build_eq(&c->b, each, last);
        same = same ? build_and(&c->b, same, equal) : equal;
    }
    if (c->b.status) return;
    const dim shape[2] = { call_dim(c, ids, 0), blocks };
    const ir_value_id update = same ? build_where(&c->b, same, none, inf) : build_expanded(&c->b, none, shape, 2);
    c->out[0] = build_scatter_elements(&c->b, scores, token, update,
                                       &(attrs_scatter_elements){ .axis = 1, .kind = scatter_kind_min });
}

void convert_is_all_finite(onnx_call *c)
{
    const bool nan = call_int(c, "isnan_only", 0) != 0, inf = call_int(c, "isinf_only", 0) != 0;
    int64_t axes[SINTER_RANK_MAX];
    ir_value_id all = 0;
    if (!c->count_in) REJECT(c, INVALID_MODEL, "no inputs");
    if (nan && inf) REJECT(c, INVALID_MODEL, "isnan_only and isinf_only are both 1");
    for (uint32_t i = 0; i < SINTER_RANK_MAX; i++) axes[i] = i;
    for (uint32_t i = 0; i < c->count_in && !c->b.status; i++) {
        const ir_value_id x = call_in(c, i);
        ir_value_id bad = inf ? build_is_inf(&c->b, x) : build_is_nan(&c->b, x);
        if (!nan && !inf) bad = build_or(&c->b, bad, build_is_inf(&c->b, x));
        bad = build_typed(&c->b, bad, SINTER_DTYPE_I32);
        if (call_rank(c, x)) bad = build_reduced(&c->b, reduce_kind_sum, bad, axes, call_rank(c, x), false);
        const ir_value_id fine = build_eq(&c->b, bad, build_scalar_like(&c->b, bad, 0));
        all = all ? build_and(&c->b, all, fine) : fine;
    }
    c->out[0] = all;
}

/* ---- biases of attention by relative position ---- */
/* The bucket of each distance up to max_distance, behind which all have the last one. */
static ir_value_id bucket_table(onnx_call *c, int64_t buckets, int64_t most)
{
    const int64_t d[1] = { most + 1 };
    view v;
    int64_t *at = ARENA_NEW(&c->b.g->a, int64_t, (size_t)most + 1);
    if (!at || !view_init(&v, SINTER_DTYPE_I64, 1, d, at)) {
        c->b.status = FAIL_MEMORY(c->e, "the graph");
        return 0;
    }
    const int64_t exact = buckets / 2;
    for (int64_t n = 0; n <= most; n++) {
        const float part = logf((float)n / (float)exact) / logf((float)most / (float)exact) * (float)(buckets - exact);
        at[n] = n < exact ? n : exact + (int64_t)part;
        if (at[n] > buckets - 1) at[n] = buckets - 1;
    }
    return build_const(&c->b, "buckets", &v);
}

/* The table's memory has the buckets of one head behind each other, whatever its shape says. */
void convert_relative_position_bias(onnx_call *c)
{
    const bool both = call_int(c, "is_bidirectional", 0) != 0;
    const int64_t most = call_int(c, "max_distance", 0);
    int64_t all = 0;
    dim length[2] = { DIM_NONE, DIM_NONE };
    uint32_t count = 0;
    const ir_value_id table = call_in(c, 0);
    if (!table || !call_in(c, 1) || !call_in(c, 2)) REJECT(c, INVALID_MODEL, "an input is missing");
    if (!c->b.status && call_rank(c, table) != 2) REJECT(c, INVALID_MODEL, "a table of rank %u", call_rank(c, table));
    if (!c->b.status && !call_size(c, table, 0, &all)) REJECT(c, UNSUPPORTED, "a number of buckets that is not known");
    const int64_t buckets = both ? all / 2 : all;
    if (!c->b.status && (buckets < 2 || most <= buckets / 2 || most > 1 << 24))
        REJECT(c, INVALID_MODEL, "%lld buckets for distances up to %lld", (long long)all, (long long)most);
    for (uint32_t i = 0; i < 2 && !c->b.status; i++)
        if (!call_sizes(c, call_in(c, 1 + i), i ? "key_length" : "query_length", DIM_NONE, &length[i], 1, &count) ||
            count != 1)
            REJECT(c, INVALID_MODEL, "a length is not one number");
    if (c->b.status) return;
    const dim heads = call_dim(c, table, 1), turned[2] = { heads, call_dim(c, table, 0) };
    const ir_value_id rows = build_unsqueezed(&c->b, build_iota(&c->b, length[0]), 1),
                      columns = build_unsqueezed(&c->b, build_iota(&c->b, length[1]), 0),
                      off = build_sub(&c->b, columns, rows), zero = build_scalar_like(&c->b, off, 0),
                      last = build_scalar_like(&c->b, off, (double)most),
                      near = build_min(&c->b, build_abs(&c->b, off), last);
    ir_value_id bucket = build_gather(&c->b, bucket_table(c, buckets, most), near, NULL);
    if (both) {
        const ir_value_id is_later = build_gt(&c->b, off, zero), later = build_scalar_like(&c->b, off, (double)buckets);
        bucket = build_add(&c->b, bucket, build_where(&c->b, is_later, later, zero));
    }
    const ir_value_id y =
        build_gather(&c->b, build_shaped(&c->b, table, turned, 2), bucket, &(attrs_gather){ .axis = 1 });
    c->out[0] = build_unsqueezed(&c->b, y, 0);
}

/* rel_pos, times what two gates say that a layer makes of each query. */
void convert_gated_relative_position_bias(onnx_call *c)
{
    static const int64_t perm[4] = { 0, 2, 1, 3 };
    const int64_t heads = call_int(c, "num_heads", 0), last = 4;
    dim d[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < 6; i++)
        if (!call_in(c, i)) REJECT(c, INVALID_MODEL, "input %u is missing", i);
    if (call_in(c, 6)) REJECT(c, UNSUPPORTED, "token_offset, queries that are packed");
    if (!c->b.status && (heads < 1 || call_shape(c, call_in(c, 0), d) != 3 || call_rank(c, call_in(c, 3)) != 2))
        REJECT(c, INVALID_MODEL, "%lld heads, or queries or weights of another rank", (long long)heads);
    if (c->b.status) return;
    const dim n = call_k(c, heads), split[4] = { d[0], d[1], n, call_quotient(c, d[2], n) }, two = call_k(c, 2),
              halves[5] = { d[0], n, d[1], two, call_quotient(c, call_dim(c, call_in(c, 3), 1), two) };
    ir_value_id x = build_add(&c->b, call_in(c, 0), call_in(c, 1));
    x = build_permuted(&c->b, build_shaped(&c->b, x, split, 4), perm, 4);
    x = build_add(&c->b, build_matmul(&c->b, x, call_in(c, 3), NULL), call_in(c, 4));
    x = build_sigmoid(&c->b, build_reduced(&c->b, reduce_kind_sum, build_shaped(&c->b, x, halves, 5), &last, 1, false));
    const ir_value_id u = build_part(&c->b, x, 3, call_k(c, 0), 1, call_k(c, 1)),
                      r = build_part(&c->b, x, 3, call_k(c, 1), 1, call_k(c, 1)),
                      turned = build_mul(&c->b, r, call_in(c, 5));
    const ir_value_id less = build_sub(&c->b, turned, build_scalar_like(&c->b, x, 1)), gate = build_mul(&c->b, u, less);
    c->out[0] = build_mul(&c->b, build_add(&c->b, gate, build_scalar_like(&c->b, x, 2)), call_in(c, 2));
}
