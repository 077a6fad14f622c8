/* SPDX-License-Identifier: Apache-2.0 */
/* depthwise.c - depthwise convolution around the row kernels: packing, tiles, the hook.
 *
 * A row is done in runs of pixels of all channels: memory is read in order, and a run is still in L1 when the hook sees
 * it. */
#include "cpu/depthwise.h"
#include "cpu/level.h"
#include "base/env.h"
#include "cpu/gemm_core.h"

enum { RUN_FLOATS = 4096, RUN_PIXELS = 8 };

const char *depthwise_shape_check(const depthwise_shape *s)
{
    const int64_t in[] = { s->images, s->in[0], s->in[1], s->channels };
    const int64_t out[] = { s->images, s->out[0], s->out[1], s->channels, s->multiplier };
    const int64_t weights[] = { s->kernel[0], s->kernel[1], s->channels, s->multiplier };
    if (!gemm_counts_fit(in, 4, true) || !gemm_counts_fit(out, 5, true) || !gemm_counts_fit(weights, 4, false)) {
        return "sizes of the convolution are negative or too large";
    }
    for (int i = 0; i < 2; i++) {
        const int64_t most = (int64_t)1 << 31;
        if (s->stride[i] < 1 || s->dilation[i] < 1 || s->stride[i] > most || s->dilation[i] > most ||
            s->out[i] > most || s->kernel[i] > most || s->pad[i] < -most || s->pad[i] > most) {
            return "strides, dilations or pads are out of range";
        }
    }
    return NULL;
}

size_t depthwise_pack_size(const depthwise_shape *s)
{
    const size_t taps = size_mul((size_t)s->kernel[0], (size_t)s->kernel[1]);
    const size_t cols = size_mul((size_t)s->channels, (size_t)s->multiplier);
    return size_align(size_mul(size_mul(taps, cols), sizeof(float)), 64);
}

void depthwise_pack(const depthwise_shape *s, const float *w, const int64_t w_stride[3], float *dst)
{
    const int64_t cols = s->channels * s->multiplier;
    for (int64_t h = 0; h < s->kernel[0]; h++) {
        for (int64_t x = 0; x < s->kernel[1]; x++, dst += cols) {
            const float *from = w + h * w_stride[1] + x * w_stride[2];
            for (int64_t c = 0; c < cols; c++) dst[c] = from[c * w_stride[0]];
        }
    }
}

int64_t depthwise_tile_count(const depthwise_params *p)
{
    return p->shape.images * p->shape.out[0];
}

void depthwise_run(const depthwise_params *p, int64_t begin, int64_t end, void *post_user)
{
    const depthwise_shape *s = &p->shape;
    const gemm_epilogue *e = &p->epilogue;
    const int64_t cols = s->channels * s->multiplier;
    if (cols == 0) return;
    int64_t run = RUN_FLOATS / cols / RUN_PIXELS * RUN_PIXELS;
    if (run < RUN_PIXELS) run = RUN_PIXELS;
    void (*const kernel)(const depthwise_row *) = level_of(p->isa)->depthwise;
    for (int64_t tile = begin; tile < end; tile++) {
        for (int64_t x = 0; x < s->out[1]; x += run) {
            const int64_t pixel = tile * s->out[1] + x, pixels = s->out[1] - x < run ? s->out[1] - x : run;
            const depthwise_row r = {
                .p = p,
                .x = p->x + tile / s->out[0] * s->x_image,
                .y = p->y + pixel * p->ldy,
                .residual = e->residual ? e->residual + pixel * e->ldr : NULL,
                .out_y = tile % s->out[0],
                .out_x = x,
                .pixels = pixels,
            };
            kernel(&r);
            if (e->post) e->post(post_user, 0, pixel, pixels, 0, cols, p->y + pixel * p->ldy, p->ldy);
        }
    }
}
