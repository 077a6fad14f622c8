/* SPDX-License-Identifier: Apache-2.0 */
/* ref_deform_conv.c - deformable convolution in two dimensions: each tap of the kernel reads the image at a position
 * moved by an offset, bilinearly, with zeros outside, scaled by a mask.
 *
 * x [N,C,H,W], w [M,C/g,kh,kw], offset [N,og*kh*kw*2,oh,ow] (y before x), bias [M], mask [N,og*kh*kw,oh,ow]. */
#include "ops/ref_loops.h"
#include <math.h>

/* A pixel with its weight. One of weight 0 is left out, whatever it is. */
static double pixel(const view *x, int64_t at, int64_t row, int64_t col, double weight)
{
    if (weight == 0 || row < 0 || row >= x->dim[2] || col < 0 || col >= x->dim[3]) return 0;
    return weight * ref_wide_load(x, at + row * x->stride[2] + col * x->stride[3]).f;
}

static double sample(const view *x, int64_t at, double row, double col)
{
    if (!(row > -1 && row < (double)x->dim[2] && col > -1 && col < (double)x->dim[3])) return 0; /* NaN too */
    const int64_t r = (int64_t)floor(row);
    const int64_t s = (int64_t)floor(col);
    const double fr = row - (double)r;
    const double fs = col - (double)s;
    return pixel(x, at, r, s, (1 - fr) * (1 - fs)) + pixel(x, at, r, s + 1, (1 - fr) * fs) +
           pixel(x, at, r + 1, s, fr * (1 - fs)) + pixel(x, at, r + 1, s + 1, fr * fs);
}

/* Reads all taps of all channels for one position of the result: column[channel * taps + tap]. */
static void column_fill(const ref_call *c, const view *x, const int64_t kernel[2], const int64_t index[3],
                        double *column)
{
    const attrs_deform_conv *a = c->attrs;
    const view *offset = &c->in[2];
    const view *mask = ref_has_in(c, 4) ? &c->in[4] : NULL;
    const int64_t taps = kernel[0] * kernel[1];
    const int64_t each = x->dim[1] / a->offset_groups;
    for (int64_t ch = 0; ch < x->dim[1]; ch++) {
        for (int64_t t = 0; t < taps; t++) {
            const int64_t plane = ch / each * taps + t;
            int64_t at[4] = { index[0], 2 * plane, index[1], index[2] };
            const double dy = view_load_f64(offset, view_offset(offset, at));
            at[1]++;
            const double dx = view_load_f64(offset, view_offset(offset, at));
            at[1] = plane;
            const double scale = mask ? view_load_f64(mask, view_offset(mask, at)) : 1;
            const double row =
                (double)(index[1] * a->stride.at[0] - a->pad.at[0] + t / kernel[1] * a->dilation.at[0]) + dy;
            const double col =
                (double)(index[2] * a->stride.at[1] - a->pad.at[1] + t % kernel[1] * a->dilation.at[1]) + dx;
            column[ch * taps + t] = scale * sample(x, index[0] * x->stride[0] + ch * x->stride[1], row, col);
        }
    }
}

sinter_status reference_deform_conv(ref_call *c)
{
    const attrs_deform_conv *a = c->attrs;
    TRY(ref_check(c));
    const bool is_f64 = c->in[0].dtype == SINTER_DTYPE_F64 || c->in[1].dtype == SINTER_DTYPE_F64;
    const sinter_dtype wide = is_f64 ? SINTER_DTYPE_F64 : SINTER_DTYPE_F32;
    view x;
    view w;
    TRY(ref_widen(c, &c->in[0], wide, NULL, &x));
    TRY(ref_widen(c, &c->in[1], wide, NULL, &w));
    const view *bias = ref_has_in(c, 3) ? &c->in[3] : NULL;
    const view *y = &c->out[0];
    const int64_t kernel[2] = { w.dim[2], w.dim[3] };
    const int64_t taps = kernel[0] * kernel[1];
    const int64_t channels = w.dim[1];
    double *column = ARENA_NEW(c->scratch, double, size_mul((size_t)x.dim[1], (size_t)taps));
    if (!column) return FAIL_MEMORY(c->e, "a column of deform_conv");
    const int64_t positions[3] = { y->dim[0], y->dim[2], y->dim[3] };
    int64_t index[3];
    for (bool more = view_first(positions, 3, index); more; more = view_next(positions, 3, index)) {
        column_fill(c, &x, kernel, index, column);
        for (int64_t m = 0; m < y->dim[1]; m++) {
            const int64_t group = m / (y->dim[1] / a->groups);
            double sum = bias ? view_load_f64(bias, m * bias->stride[0]) : 0;
            for (int64_t i = 0; i < channels * taps; i++) {
                const int64_t t = i % taps;
                const int64_t at = m * w.stride[0] + i / taps * w.stride[1] + t / kernel[1] * w.stride[2] +
                                   t % kernel[1] * w.stride[3];
                sum += ref_wide_load(&w, at).f * column[group * channels * taps + i];
            }
            const int64_t at[4] = { index[0], m, index[1], index[2] };
            view_store_f64(y, view_offset(y, at), sum);
        }
    }
    return SINTER_OK;
}
