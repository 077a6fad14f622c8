/* SPDX-License-Identifier: Apache-2.0 */
/* product.c - see product.h. */
#include "cuda/product.h"
#include "backend/kernel.h"
#include "core/dim_range.h"
#include "cuda/cuda_emit.h"

#include <string.h>

product_slide product_slide_of(op_id op, const void *attrs)
{
    if (op == OP_conv_transpose) {
        const attrs_conv_transpose *a = attrs;
        return (product_slide){ &a->stride, &a->dilation, &a->pad, a->groups };
    }
    if (op == OP_conv_integer) {
        const attrs_conv_integer *a = attrs;
        return (product_slide){ &a->stride, &a->dilation, &a->pad, a->groups };
    }
    const attrs_conv *a = attrs;
    return (product_slide){ &a->stride, &a->dilation, &a->pad, a->groups };
}

product_zero product_zero_of(const problem *p, uint32_t input)
{
    const problem_operand *o = &p->in[input];
    if (input >= p->count_anchor || o->dtype == SINTER_DTYPE_NONE) return ZERO_NONE;
    for (uint32_t i = 0; i < o->rank; i++)
        if (o->dim[i].min != 1 || o->dim[i].max != 1) return o->rank == 1 && !o->is_strided ? ZERO_ROW : ZERO_MANY;
    return ZERO_ONE;
}

static const char *matrices_of(const problem *p, product *d)
{
    const attrs_matmul *a = p->op == OP_matmul ? p->attrs : NULL;
    const uint32_t x = p->in[0].rank, w = p->in[1].rank;
    REJECT_UNLESS(x >= 2 && w >= 2, "an operand is a vector");
    const uint32_t trans_a = a && a->trans_a, trans_b = a && a->trans_b;
    d->x_m = (uint8_t)(x - 2 + trans_a);
    d->x_k = (uint8_t)(x - 1 - trans_a);
    d->w_k = (uint8_t)(w - 2 + trans_b);
    d->w_n = (uint8_t)(w - 1 - trans_b);
    return NULL;
}

static bool is_divided(dim_range d, int64_t by)
{
    return !problem_dim_is_static(d) || d.max % by == 0;
}

static const char *slide_of(const problem *p, product *d)
{
    const uint32_t rank = p->in[0].rank, spatial = rank - 2;
    const product_slide s = d->slide = product_slide_of(p->op, p->attrs);
    const bool is_transposed = d->kind == PRODUCT_TRANSPOSED;
    REJECT_UNLESS(rank >= 3 && rank <= 5, "has no or more than three spatial axes");
    REJECT_UNLESS(p->in[1].rank == rank, "the filter has another rank");
    const char *window = problem_window_reject(s.stride, s.dilation, s.pad, spatial);
    if (window) return window;
    REJECT_UNLESS(s.groups >= 1 && is_divided(p->in[0].dim[1], s.groups) && is_divided(p->in[1].dim[0], s.groups),
                  "the groups do not divide the channels");
    d->spatial = (uint8_t)spatial;
    d->x_k = 1;
    d->w_k = !is_transposed;
    d->w_n = is_transposed;
    return NULL;
}

const char *product_of(const problem *p, product *d)
{
    *d = (product){ .kind = PRODUCT_MATRICES };
    switch (p->op) {
    case OP_matmul: break;
    case OP_matmul_integer: d->is_integer = true; break;
    case OP_conv: d->kind = PRODUCT_CONV; break;
    case OP_conv_integer:
        d->kind = PRODUCT_CONV;
        d->is_integer = true;
        break;
    case OP_conv_transpose: d->kind = PRODUCT_TRANSPOSED; break;
    default: return "no product of matrices, nor a convolution";
    }
    const problem_operand *w = &p->in[1];
    d->type_x = emit_input_type(p);
    d->type_w = w->dtype;
    d->is_w_fixed = w->is_const;
    for (uint32_t i = 0; i < w->rank; i++) {
        d->is_w_fixed = d->is_w_fixed && problem_dim_is_static(w->dim[i]);
        d->is_w_empty = d->is_w_empty || w->dim[i].max <= 0;
    }
    if (d->is_integer) {
        d->zero_x = product_zero_of(p, 2);
        d->zero_w = product_zero_of(p, 3);
        REJECT_UNLESS((!d->zero_x || p->in[2].dtype == d->type_x) && (!d->zero_w || p->in[3].dtype == d->type_w),
                      "a zero point of another type");
    }
    return d->kind == PRODUCT_MATRICES ? matrices_of(p, d) : slide_of(p, d);
}

product_phase product_phase_at(const product_slide *s, uint32_t axis, int64_t taps, int64_t q)
{
    const int64_t stride = s->stride->at[axis], dilation = s->dilation->at[axis], common = i64_gcd(stride, dilation);
    product_phase f = { .by = stride / common, .back = dilation / common };
    for (int64_t k = 0; k < taps && k < f.by; k++) {
        const int64_t moved = q + s->pad->at[axis] - k * dilation;
        if (moved % stride) continue;
        f.first = k;
        f.count = (taps - k + f.by - 1) / f.by;
        f.start = moved / stride;
        break;
    }
    return f;
}

void product_round_tf32(uint8_t *at)
{
    uint32_t bits;
    memcpy(&bits, at, sizeof bits);
    if ((bits & 0x7f800000) != 0x7f800000) bits = (bits + 0x1000) & ~0x1fffu;
    memcpy(at, &bits, sizeof bits);
}

/* The row of a tile's column. */
static int64_t row_of(const product_columns *x, int64_t n)
{
    const int64_t at = n % x->bn;
    return x->is_dealt ? (at & ~31) | (at >> 1 & 3) << 3 | (at >> 3 & 3) << 1 | (at & 1) : at;
}

void product_pack(const product_columns *x, const uint8_t *src, uint8_t *dst, int32_t *sums)
{
    enum { STEP = 128 };
    const int64_t step = STEP / x->element, chunk = 16 / x->element,
                  runs = x->taps[0] * x->taps[1] * x->taps[2] / x->inner, steps = (runs * x->run + step - 1) / step;
    for (int64_t n = 0; n < x->cols; n++) {
        const int64_t at = row_of(x, n);
        uint8_t *row = dst + (n / x->bn * steps * x->bn + at) * STEP;
        for (int64_t o = 0; o < runs; o++) {
            const int64_t tap = o * x->inner, line = tap / x->taps[2];
            const int64_t first = n * x->stride_n + line / x->taps[1] * x->stride_tap[0] +
                                  line % x->taps[1] * x->stride_tap[1] + tap % x->taps[2] * x->stride_tap[2];
            int64_t k = o * x->run;
            for (int64_t i = 0; i < x->inner; i++)
                for (int64_t c = 0; c < x->channels; c++, k++) {
                    const uint8_t *from = src + (first + i * x->stride_tap[2] + c * x->stride_c) * x->element;
                    uint8_t *to =
                        row + k / step * x->bn * STEP + ((k % step / chunk) ^ (at & 7)) * 16 + k % chunk * x->element;
                    memcpy(to, from, x->element);
                    if (sums) sums[n] += x->is_unsigned ? *to : (int8_t)*to;
                    if (x->is_tf32) product_round_tf32(to);
                }
        }
    }
}
