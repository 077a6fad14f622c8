/* SPDX-License-Identifier: Apache-2.0 */
/* row_direct.c - contractions that no product of tiles says: einsum of one operand or of more than two
 * (device/einsum.cu), and transposed convolutions whose filter is no constant or whose stride is wide
 * (device/conv_transpose.cu). One thread or warp an element: right before fast. */
#include "cuda/cuda_emit.h"
#include "cuda/cuda_kernels.h"
#include "cuda/device/direct_args.h"
#include "cuda/product.h"
#include "ops/einsum.h"

#include <stddef.h>

enum { THREADS = 128 };

static bool is_served(sinter_dtype t)
{
    return t == SINTER_DTYPE_F64 || t == SINTER_DTYPE_F32 || t == SINTER_DTYPE_F16 || t == SINTER_DTYPE_BF16 ||
           (dtype_is_int(t) && sinter_dtype_bits(t) >= 8);
}

static void text_types(sinter_dtype t, text *to)
{
    const char *sum = t == SINTER_DTYPE_F64 ? "double" : dtype_is_float(t) ? "float" : "i64";
    text_printf(to, "typedef %s type_x;\ntypedef %s sum;\n", emit_stored(t), sum);
}

static void space_of(const problem *p, emit_space *s)
{
    emit_space_of(p, s);
    s->width = 1;
}

static sinter_status record_begin(env *e, cuda_record *r, int64_t threads, uint32_t shared, size_t size, void *at)
{
    if (threads > (int64_t)INT32_MAX)
        return FAIL(e, UNSUPPORTED, "a contraction of %lld threads; the most is 2147483647", (long long)threads);
    return cuda_launch_begin(e, r, 0, (uint64_t)(threads + THREADS - 1) / THREADS, 1, 1, THREADS, shared, size, at);
}

/* ---- einsum ---- */

/* The labels that are summed, and what each axis is in steps of the operands. */
typedef struct equation {
    einsum x;
    uint32_t sum_count;
    uint8_t sum[DIRECT_AXES];
} equation;

static const char *equation_of(const problem *p, const void *attrs, equation *q)
{
    env e;
    env_init(&e, NULL, NULL);
    uint32_t rank[DIRECT_OPERANDS] = { 0 };
    for (uint32_t i = 0; i < p->count_in; i++) rank[i] = p->in[i].rank;
    if (einsum_parse(&e, ((const attrs_einsum *)attrs)->equation, p->count_in, rank, &q->x) != SINTER_OK)
        return "the equation cannot be read";
    bool is_out[EINSUM_LABELS] = { false }, is_sum[EINSUM_LABELS] = { false };
    for (uint32_t k = 0; k < q->x.out.count; k++) is_out[q->x.out.label[k]] = true;
    for (uint32_t i = 0; i < p->count_in; i++)
        for (uint32_t k = 0; k < q->x.in[i].count; k++)
            if (!is_out[q->x.in[i].label[k]]) is_sum[q->x.in[i].label[k]] = true;
    q->sum_count = 0;
    for (uint32_t label = 0; label < EINSUM_LABELS; label++) {
        if (!is_sum[label]) continue;
        if (q->sum_count == DIRECT_AXES) return "sums over more than 16 labels";
        q->sum[q->sum_count++] = (uint8_t)label;
    }
    return NULL;
}

/* The size of a label, and by how much each operand steps along it. */
static int64_t label_of(const problem *p, const equation *q, const view *in, uint8_t label, wide *stride, size_t pitch)
{
    int64_t size = 1;
    for (uint32_t i = 0; i < p->count_in; i++) {
        stride[i * pitch] = 0;
        for (uint32_t k = 0; k < q->x.in[i].count; k++) {
            if (q->x.in[i].label[k] != label || in[i].dim[k] == 1) continue;
            size = in[i].dim[k];
            stride[i * pitch] += in[i].stride[k];
        }
    }
    return size;
}

static const char *einsum_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_einsum, "no einsum");
    REJECT_UNLESS(!p->prologue, "has a prologue");
    REJECT_UNLESS(p->count_in == p->count_anchor && p->count_in >= 1 && p->count_in <= DIRECT_OPERANDS,
                  "has more than four operands");
    for (uint32_t i = 0; i < p->count_in; i++)
        REJECT_UNLESS(p->in[i].dtype == p->in[0].dtype && is_served(p->in[i].dtype),
                      "a type that the kernel has no word for");
    equation q;
    const char *why = equation_of(p, p->attrs, &q);
    if (why) return why;
    emit_space s;
    space_of(p, &s);
    return emit_reject(&s);
}

/* Products of one sum, at opt. */
static double terms_of(const problem *p, const equation *q)
{
    double terms = 1;
    for (uint32_t l = 0; l < q->sum_count; l++)
        for (uint32_t i = 0, found = 0; i < p->count_in && !found; i++)
            for (uint32_t k = 0; k < q->x.in[i].count && !found; k++)
                if (q->x.in[i].label[k] == q->sum[l] && p->in[i].dim[k].opt != 1) {
                    terms *= (double)p->in[i].dim[k].opt;
                    found = 1;
                }
    return terms;
}

static uint32_t lanes_of(const problem *p, const equation *q)
{
    return terms_of(p, q) >= 64 ? 32 : 1;
}

static double direct_cost(const problem *p, const kernel_target *t, double terms)
{
    const double bytes = cuda_problem_bytes(p);
    return 200 + cuda_cost_ns(t, bytes, (double)cuda_operand_count(&p->out[0]) * terms * 30);
}

static double einsum_cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    equation q;
    return equation_of(p, p->attrs, &q) ? 1e15 : direct_cost(p, target, p->count_in * terms_of(p, &q));
}

static bool einsum_code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    (void)t, (void)target;
    equation q;
    if (index || equation_of(p, p->attrs, &q)) return false;
    c->source = "einsum.cu";
    c->entry = "einsum";
    cuda_code_define(c, "OPERANDS", p->count_in);
    cuda_code_define(c, "OUT_AXES", q.x.out.count);
    cuda_code_define(c, "SUM_AXES", q.sum_count);
    cuda_code_define(c, "WIDTH", lanes_of(p, &q));
    emit_space s;
    space_of(p, &s);
    emit_text(&s, c->generated);
    text_types(p->in[0].dtype, c->generated);
    return true;
}

static sinter_status einsum_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                                 const view *out, void *record)
{
    (void)t;
    cuda_record *r = record;
    equation q;
    struct einsum_args a = { .terms = 1 };
    const char *why = equation_of(p, attrs, &q);
    if (why) return FAIL(e, UNSUPPORTED, "an einsum cannot be launched: %s", why);
    int64_t terms = 1;
    for (uint32_t k = 0; k < q.x.out.count; k++)
        a.out_div[k] = cuda_fast_div(label_of(p, &q, in, q.x.out.label[k], &a.out_stride[0][k], DIRECT_AXES));
    for (uint32_t k = 0; k < q.sum_count; k++) {
        const int64_t size = label_of(p, &q, in, q.sum[k], &a.sum_stride[0][k], DIRECT_AXES);
        a.sum_div[k] = cuda_fast_div(size);
        if (!i64_mul(terms, size, &terms)) terms = INT64_MAX;
    }
    if (terms > INT32_MAX - THREADS)
        return FAIL(e, UNSUPPORTED, "sums of %lld products; the most is 2147483519", (long long)terms);
    a.terms = (small)terms;
    a.count = view_count(&out[0]);
    const uint32_t lanes = lanes_of(p, &q);
    int64_t threads;
    if (!i64_mul(a.count, lanes, &threads)) threads = INT64_MAX;
    struct einsum_args *to;
    TRY(record_begin(e, r, threads, lanes > 1 ? THREADS * 8 : 0, sizeof *to, &to));
    *to = a;
    for (uint32_t i = 0; i < p->count_in; i++)
        cuda_patch_add(r, to, offsetof(struct einsum_args, in) + i * sizeof(address), PATCH_IN, i, 0);
    emit_space s;
    space_of(p, &s);
    return emit_bind(e, &s, in, out, r);
}

CUDA_ROW_ONE(cuda_einsum, 1, cuda_check_one, einsum_, .out_strides = STRIDES_ROWS);

/* ---- transposed convolution ---- */

static const char *transpose_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_conv_transpose, "no transposed convolution");
    REJECT_UNLESS(!p->prologue, "has a prologue");
    product d;
    const char *why = product_of(p, &d);
    if (why) return why;
    REJECT_UNLESS(d.type_x == d.type_w && is_served(d.type_x), "a type that the kernel has no word for");
    emit_space s;
    space_of(p, &s);
    return emit_reject(&s);
}

static double transpose_cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    const attrs_conv_transpose *a = p->attrs;
    double terms = 2.0 * (double)p->in[1].dim[0].opt / (double)a->groups;
    for (uint32_t i = 2; i < p->in[1].rank; i++) {
        const double taps = (double)p->in[1].dim[i].opt / (double)a->stride.at[i - 2];
        terms *= taps > 1 ? taps : 1;
    }
    return direct_cost(p, target, terms);
}

static bool transpose_code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    (void)t, (void)target;
    if (index) return false;
    c->source = "conv_transpose.cu";
    c->entry = "conv_transpose";
    c->may_spill = p->in[0].rank > 4; /* coordinates of three axes, twice */
    cuda_code_define(c, "SPATIAL", p->in[0].rank - 2);
    emit_space s;
    space_of(p, &s);
    emit_text(&s, c->generated);
    text_types(p->in[0].dtype, c->generated);
    return true;
}

static sinter_status transpose_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                                    const view *out, void *record)
{
    (void)t;
    cuda_record *r = record;
    const attrs_conv_transpose *o = attrs;
    const view *x = &in[0], *w = &in[1], *y = &out[0];
    const int64_t filters = w->dim[1], channels = x->dim[1] / o->groups;
    struct transpose_args *a;
    TRY(record_begin(e, r, view_count(y), 0, sizeof *a, &a));
    a->x_image = x->stride[0];
    a->x_channel = x->stride[1];
    a->w_channel = w->stride[0];
    a->w_filter = w->stride[1];
    a->channels_out = cuda_fast_div(y->dim[1]);
    a->group = cuda_fast_div(filters);
    a->channels = (small)channels;
    a->count = view_count(y);
    for (uint32_t i = 0; i + 2 < x->rank; i++) {
        a->x_step[i] = x->stride[2 + i];
        a->w_step[i] = w->stride[2 + i];
        a->out[i] = cuda_fast_div(y->dim[2 + i]);
        a->stride[i] = cuda_fast_div(o->stride.at[i]);
        a->in[i] = (small)x->dim[2 + i];
        a->kernel[i] = (small)w->dim[2 + i];
        a->dilation[i] = (small)o->dilation.at[i];
        a->pad[i] = (small)o->pad.at[i];
    }
    CUDA_PATCH(r, a, x, PATCH_IN, 0);
    CUDA_PATCH(r, a, w, PATCH_IN, 1);
    emit_space s;
    space_of(p, &s);
    return emit_bind(e, &s, in, out, r);
}

CUDA_ROW_ONE(cuda_conv_transpose, 1, cuda_check_one, transpose_, .out_strides = STRIDES_ROWS);
