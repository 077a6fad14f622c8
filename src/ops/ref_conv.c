/* SPDX-License-Identifier: Apache-2.0 */
/* ref_conv.c - conv, conv_integer and conv_transpose over any number of spatial axes.
 *
 *   conv            y[n, m, o] = sum over c, k of x[n, c, o * stride - pad + k * dilation] * w[m, c, k]
 *   conv_transpose  y[n, m, i * stride - pad + k * dilation] += x[n, c, i] * w[c, m, k]
 *
 * One row of the result (its last axis) is summed at a time in double. What its sum walks over depends on neither image
 * nor channel: a list of taps over the outer spatial axes, and a span of the row for each position of the kernel's last
 * axis. */
#include "ops/ref_loops.h"

enum { SPATIAL_MAX = SINTER_RANK_MAX - 2 };

typedef struct geometry {
    bool is_transposed;
    uint32_t spatial;
    int64_t groups;
    int64_t in[SPATIAL_MAX], out[SPATIAL_MAX], kernel[SPATIAL_MAX], stride[SPATIAL_MAX], dilation[SPATIAL_MAX],
        begin[SPATIAL_MAX];
    int64_t x_step[SPATIAL_MAX], w_step[SPATIAL_MAX], y_step[SPATIAL_MAX]; /* strides of the views */
} geometry;
typedef struct tap {
    int64_t x, w;
} tap;
typedef struct span {
    int64_t acc_at, acc_step, x_at, x_step, count;
} span;

static geometry geometry_of(const view *x, const view *w, const view *y, const attr_ints *stride,
                            const attr_ints *dilation, const attr_ints *pad, int64_t groups)
{
    geometry g = { .spatial = x->rank - 2, .groups = groups };
    for (uint32_t i = 0; i < g.spatial; i++) {
        g.in[i] = x->dim[2 + i];
        g.out[i] = y->dim[2 + i];
        g.kernel[i] = w->dim[2 + i];
        g.stride[i] = stride->at[i];
        g.dilation[i] = dilation->at[i];
        g.begin[i] = pad->at[i];
        g.x_step[i] = x->stride[2 + i];
        g.w_step[i] = w->stride[2 + i];
        g.y_step[i] = y->stride[2 + i];
    }
    return g;
}

/* An axis along which nothing slides. */
static bool is_pointwise(const geometry *g, uint32_t i)
{
    return g->kernel[i] == 1 && g->stride[i] == 1 && !g->begin[i] && g->in[i] == g->out[i];
}

/* Merges trailing axes of 1x1 convolutions that lie one after another in memory: rows get long. */
static void geometry_merge(geometry *g)
{
    while (g->spatial > 1) {
        const uint32_t last = g->spatial - 1;
        if (!is_pointwise(g, last) || !is_pointwise(g, last - 1)) return;
        if (g->x_step[last - 1] != g->x_step[last] * g->in[last] ||
            g->y_step[last - 1] != g->y_step[last] * g->out[last])
            return;
        g->in[last - 1] *= g->in[last];
        g->out[last - 1] *= g->out[last];
        g->x_step[last - 1] = g->x_step[last];
        g->y_step[last - 1] = g->y_step[last];
        g->spatial--;
    }
}

/* The input position that position k of the kernel reads for output o along axis i; -1: none. */
static int64_t input_of(const geometry *g, uint32_t i, int64_t o, int64_t k)
{
    int64_t at;
    if (g->is_transposed) {
        const int64_t moved = o + g->begin[i] - k * g->dilation[i];
        if (moved < 0 || moved % g->stride[i]) return -1;
        at = moved / g->stride[i];
    } else {
        at = o * g->stride[i] - g->begin[i] + k * g->dilation[i];
    }
    return at >= 0 && at < g->in[i] ? at : -1;
}

/* The taps of the outer axes for the row at `o`; `taps` has room for all. */
static size_t taps_of(const geometry *g, const int64_t *o, tap *taps)
{
    const uint32_t outer = g->spatial - 1;
    size_t count = 0;
    int64_t k[SPATIAL_MAX];
    for (bool more = view_first(g->kernel, outer, k); more; more = view_next(g->kernel, outer, k)) {
        tap t = { 0 };
        bool is_inside = true;
        for (uint32_t i = 0; is_inside && i < outer; i++) {
            const int64_t at = input_of(g, i, o[i], k[i]);
            is_inside = at >= 0;
            t.x += at * g->x_step[i];
            t.w += k[i] * g->w_step[i];
        }
        if (is_inside) taps[count++] = t;
    }
    return count;
}

/* Where position k of the kernel's last axis falls in a row. */
static span span_of(const geometry *g, int64_t k)
{
    const uint32_t i = g->spatial - 1;
    const int64_t shift =
        k * g->dilation[i] - g->begin[i]; /* conv: in = out * stride + shift; transposed: the reverse */
    const int64_t steps = g->is_transposed ? g->in[i] : g->out[i];
    const int64_t limit = g->is_transposed ? g->out[i] : g->in[i];
    const int64_t first = ref_clamp(ref_ceildiv(-shift, g->stride[i]), 0, steps);
    const int64_t end = ref_clamp(ref_ceildiv(limit - shift, g->stride[i]), first, steps);
    const int64_t moved = first * g->stride[i] + shift;
    if (g->is_transposed) {
        return (span){ .acc_at = moved,
                       .acc_step = g->stride[i],
                       .x_at = first * g->x_step[i],
                       .x_step = g->x_step[i],
                       .count = end - first };
    }
    return (span){ .acc_at = first,
                   .acc_step = 1,
                   .x_at = moved * g->x_step[i],
                   .x_step = g->stride[i] * g->x_step[i],
                   .count = end - first };
}

typedef struct rows {
    const geometry *g;
    const view *x, *w, *y;
    const tap *tap;
    size_t tap_count;
    const span *span;
    scalar *acc;
} rows;

/* Sums and stores one row: image n, output channel m, at y_at. */
static void row_run(const rows *r, int64_t n, int64_t m, int64_t y_at)
{
    const geometry *g = r->g;
    const uint32_t last = g->spatial - 1;
    const int64_t channels = r->x->dim[1] / g->groups; /* of one group */
    const int64_t group = m / (r->y->dim[1] / g->groups);
    const int64_t m_in_group = m % (r->y->dim[1] / g->groups);
    memset(r->acc, 0, (size_t)g->out[last] * sizeof(*r->acc));
    for (int64_t ch = 0; ch < channels; ch++) {
        const int64_t channel = group * channels + ch;
        const int64_t x_at = n * r->x->stride[0] + channel * r->x->stride[1];
        const int64_t w_at = g->is_transposed ? channel * r->w->stride[0] + m_in_group * r->w->stride[1]
                                              : m * r->w->stride[0] + ch * r->w->stride[1];
        for (size_t t = 0; t < r->tap_count; t++) {
            for (int64_t k = 0; k < g->kernel[last]; k++) {
                const span *s = &r->span[k];
                if (!s->count) continue;
                const scalar weight = ref_wide_load(r->w, w_at + r->tap[t].w + k * g->w_step[last]);
                ref_axpy(r->acc + s->acc_at, s->acc_step, weight, r->x, x_at + r->tap[t].x + s->x_at, s->x_step,
                         s->count);
            }
        }
    }
    for (int64_t o = 0; o < g->out[last]; o++) ref_store(r->y, y_at + o * g->y_step[last], r->x->dtype, r->acc[o]);
}

static sinter_status conv_run(ref_call *c, geometry *g, const view *x, const view *w)
{
    const view *y = &c->out[0];
    geometry_merge(g);
    const uint32_t last = g->spatial - 1;
    size_t tap_max = 1;
    for (uint32_t i = 0; i < last; i++) tap_max = size_mul(tap_max, (size_t)g->kernel[i]);
    tap *taps = ARENA_NEW(c->scratch, tap, tap_max);
    span *spans = ARENA_NEW(c->scratch, span, (size_t)g->kernel[last]);
    scalar *acc = ARENA_NEW(c->scratch, scalar, (size_t)g->out[last]);
    if (!taps || !spans || !acc) return FAIL_MEMORY(c->e, "a row of a convolution");
    for (int64_t k = 0; k < g->kernel[last]; k++) spans[k] = span_of(g, k);
    rows r = { .g = g, .x = x, .w = w, .y = y, .tap = taps, .span = spans, .acc = acc };
    int64_t o[SPATIAL_MAX];
    for (bool more = view_first(g->out, last, o); more; more = view_next(g->out, last, o)) {
        int64_t y_at = 0;
        for (uint32_t i = 0; i < last; i++) y_at += o[i] * g->y_step[i];
        r.tap_count = taps_of(g, o, taps);
        for (int64_t n = 0; n < y->dim[0]; n++) {
            for (int64_t m = 0; m < y->dim[1]; m++) row_run(&r, n, m, y_at + n * y->stride[0] + m * y->stride[1]);
        }
    }
    return SINTER_OK;
}

static sinter_status widen_pair(ref_call *c, view *x, view *w)
{
    const bool is_f64 = c->in[0].dtype == SINTER_DTYPE_F64 || c->in[1].dtype == SINTER_DTYPE_F64;
    const sinter_dtype wide = is_f64 ? SINTER_DTYPE_F64 : SINTER_DTYPE_F32;
    TRY(ref_widen(c, &c->in[0], wide, NULL, x));
    return ref_widen(c, &c->in[1], wide, NULL, w);
}

sinter_status reference_conv(ref_call *c)
{
    const attrs_conv *a = c->attrs;
    view x;
    view w;
    TRY(ref_check(c));
    TRY(widen_pair(c, &x, &w));
    geometry g = geometry_of(&x, &w, &c->out[0], &a->stride, &a->dilation, &a->pad, a->groups);
    return conv_run(c, &g, &x, &w);
}

sinter_status reference_conv_transpose(ref_call *c)
{
    const attrs_conv_transpose *a = c->attrs;
    view x;
    view w;
    TRY(ref_check(c));
    TRY(widen_pair(c, &x, &w));
    geometry g = geometry_of(&x, &w, &c->out[0], &a->stride, &a->dilation, &a->pad, a->groups);
    g.is_transposed = true;
    return conv_run(c, &g, &x, &w);
}

/* Zero points are subtracted first, so that padding with the zero point is padding with 0. Differences of 8-bit values
 * are exact in f32, and their products' sums are exact in double. */
sinter_status reference_conv_integer(ref_call *c)
{
    const attrs_conv_integer *a = c->attrs;
    view operand[2];
    TRY(ref_check(c));
    for (uint32_t i = 0; i < 2; i++) {
        view zero = c->in[i];
        const bool has_zero = ref_has_in(c, 2 + i);
        if (has_zero) {
            const view *z = &c->in[2 + i];
            zero.dtype = z->dtype;
            zero.data = z->data;
            for (uint32_t k = 0; k < zero.rank; k++) zero.stride[k] = !k && z->rank && z->dim[0] > 1 ? z->stride[0] : 0;
        }
        TRY(ref_widen(c, &c->in[i], SINTER_DTYPE_F32, has_zero ? &zero : NULL, &operand[i]));
    }
    geometry g = geometry_of(&operand[0], &operand[1], &c->out[0], &a->stride, &a->dilation, &a->pad, a->groups);
    return conv_run(c, &g, &operand[0], &operand[1]);
}
