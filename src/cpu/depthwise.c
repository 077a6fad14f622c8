/* SPDX-License-Identifier: Apache-2.0 */
/* depthwise.c - depthwise convolution around the row kernels: packing, tiles, the hook.
 *
 * A row is done in runs of pixels of all channels: memory is read in order, and a run is still in L1 when the hook sees
 * it. */
#include "cpu/depthwise.h"
#include "cpu/level.h"
#include "base/env.h"
#include "cpu/gemm_core.h"
#include "cpu/rows.h"
#include <stdio.h>
#include <string.h>

enum { RUN_FLOATS = 4096 };

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

int depthwise_tactics(const depthwise_shape *s, uint64_t cache, depthwise_tactic out[DEPTHWISE_TACTICS_MAX])
{
    static const depthwise_tactic blocks[] = { { .rows = 2, .cols = 7 },
                                               { .rows = 2, .cols = 4 },
                                               { .rows = 1, .cols = 7 } };
    int count = 0;
    const bool is_low = s->out[0] <= depthwise_step(s, 0), has_blocks = depthwise_has_blocks(s);
    const double pixels = (double)s->in[0] * (double)s->in[1] + (double)s->out[0] * (double)s->out[1];
    const bool is_far = pixels * (double)s->channels * (double)sizeof(float) > 2 * (double)cache;
    for (int i = has_blocks && !is_low ? 0 : 2; i < DEPTHWISE_TACTICS_MAX; i++) {
        if (s->multiplier != 1 && blocks[i].cols != 7) continue;
        out[count] = blocks[i];
        out[count++].ahead = has_blocks && is_far;
    }
    return count;
}

const char *depthwise_tactic_check(const depthwise_shape *s, depthwise_tactic t)
{
    static const uint8_t zero[sizeof t.zero];
    if (t.rows < 1 || t.rows > 2 || (t.cols != 4 && t.cols != 7)) return "no such block of outputs";
    if ((t.rows > 1 || t.ahead) && !depthwise_has_blocks(s)) return "outputs are computed one by one";
    if (s->multiplier != 1 && t.cols != 7) return "several results a channel are computed in blocks of seven";
    return t.ahead > 1 || memcmp(t.zero, zero, sizeof zero) != 0 ? "reserved bits are set" : NULL;
}

int depthwise_tactic_print(char *text, size_t size, depthwise_tactic t)
{
    return snprintf(text, size, "%ux%u%s", t.rows, t.cols, t.ahead ? " ahead" : "");
}

size_t depthwise_pack_size(isa_level isa, const depthwise_shape *s)
{
    const size_t taps = size_mul((size_t)s->kernel[0], (size_t)s->kernel[1]);
    const size_t cols =
        size_align(size_mul((size_t)s->channels, (size_t)s->multiplier), (size_t)level_of(isa)->gemm->lanes);
    return size_align(size_mul(size_mul(taps, cols), sizeof(float)), 64);
}

static float weight_at(const void *w, bool is_narrow, int64_t at)
{
    if (!is_narrow) return ((const float *)w)[at];
    const uint32_t bits = (uint32_t)((const uint16_t *)w)[at] << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

void depthwise_pack(isa_level isa, const depthwise_shape *s, const void *w, bool is_narrow, const int64_t w_stride[3],
                    float *dst)
{
    const int64_t cols = s->channels * s->multiplier, lanes = level_of(isa)->gemm->lanes;
    memset(dst, 0, depthwise_pack_size(isa, s));
    for (int64_t c = 0; c < cols; c += lanes) {
        const int64_t count = cols - c < lanes ? cols - c : lanes;
        for (int64_t h = 0; h < s->kernel[0]; h++) {
            for (int64_t x = 0; x < s->kernel[1]; x++, dst += lanes) {
                const int64_t from = c * w_stride[0] + h * w_stride[1] + x * w_stride[2];
                for (int64_t i = 0; i < count; i++) dst[i] = weight_at(w, is_narrow, from + i * w_stride[0]);
            }
        }
    }
}

/* Rows that are `step` apart share inputs, so each remainder has tiles of its own. */
static int64_t remainders_of(const depthwise_shape *s)
{
    const int64_t step = depthwise_step(s, 0);
    return step < s->out[0] ? step : s->out[0];
}

/* Pixels of a run. */
static int64_t run_of(const depthwise_params *p)
{
    const depthwise_shape *s = &p->shape;
    const int64_t width = p->tactic.cols;
    const int64_t run = RUN_FLOATS / p->tactic.rows / (s->channels * s->multiplier) / width * width;
    return run < width ? width : run;
}

/* A row is cut into tiles of whole blocks, so that an image of one row is work for several threads. A block's outputs
 * are depthwise_step pixels apart. */
static int64_t tile_pixels(const depthwise_params *p)
{
    const int64_t run = run_of(p);
    const int64_t block = depthwise_has_blocks(&p->shape) ? depthwise_step(&p->shape, 1) * p->tactic.cols : run;
    return run < block ? block : run / block * block;
}

static int64_t tiles_of_row(const depthwise_params *p)
{
    const int64_t pixels = tile_pixels(p);
    return p->shape.out[1] == 0 ? 0 : (p->shape.out[1] - 1) / pixels + 1;
}

static int64_t tiles_of_image(const depthwise_params *p)
{
    const int64_t step = remainders_of(&p->shape);
    if (step == 0) return 0;
    const int64_t rows = p->shape.out[0] / step + (p->shape.out[0] % step != 0);
    return step * (rows / p->tactic.rows + (rows % p->tactic.rows != 0)) * tiles_of_row(p);
}

int64_t depthwise_tile_count(const depthwise_params *p)
{
    if (p->shape.channels == 0 || p->shape.multiplier == 0) return 0;
    return p->shape.images * tiles_of_image(p);
}

/* Some outputs of one or two rows. */
typedef struct run_at {
    int64_t image, out_y, out_x, rows, pixels;
    int64_t first; /* of the upper row, among the pixels of the result */
} run_at;

/* Scratch: results that the hook narrows, and the bias, both in f32. */
static size_t result_floats(const depthwise_params *p)
{
    return size_align((size_t)(p->tactic.rows * tile_pixels(p) * p->shape.channels), 16);
}

size_t depthwise_scratch_size(const depthwise_params *p)
{
    if (!p->is_narrow || p->shape.channels == 0) return 0;
    return size_mul(size_add(result_floats(p), size_align((size_t)p->shape.channels, 16)), sizeof(float));
}

/* x in bf16. Results are bf16, too, or the hook reads them in scratch. */
static void run_narrow(const depthwise_params *p, const run_at *r, const float *bias, float *scratch, void *post_user)
{
    const depthwise_shape *s = &p->shape;
    const bool drain = p->epilogue.drain;
    depthwise_params own = *p;
    own.epilogue.bias = bias;
    if (drain) own.ldy = s->channels;
    if (drain) own.tactic.ahead = 0;
    const depthwise_rows rows = { .p = &own,
                                  .x = (const uint16_t *)p->x + r->image * s->x_image,
                                  .y = drain ? (void *)scratch : (uint16_t *)p->y + r->first * p->ldy,
                                  .narrow_y = !drain,
                                  .y_row = drain ? r->pixels : remainders_of(s) * s->out[1],
                                  .out_y = r->out_y,
                                  .out_x = r->out_x,
                                  .rows = r->rows,
                                  .pixels = r->pixels };
    level_of(p->isa)->depthwise(&rows);
    for (int64_t i = 0; drain && i < r->rows; i++)
        p->epilogue.post(post_user, 0, r->first + i * remainders_of(s) * s->out[1], r->pixels, 0, s->channels,
                         scratch + i * r->pixels * s->channels, s->channels);
}

static void run_wide(const depthwise_params *p, const run_at *r, void *post_user)
{
    const depthwise_shape *s = &p->shape;
    const gemm_epilogue *e = &p->epilogue;
    const int64_t step = remainders_of(s);
    const depthwise_rows rows = {
        .p = p,
        .x = (const float *)p->x + r->image * s->x_image,
        .y = (float *)p->y + r->first * p->ldy,
        .y_row = depthwise_step(s, 0) * s->out[1],
        .residual = e->residual ? e->residual + r->first * e->ldr : NULL,
        .out_y = r->out_y,
        .out_x = r->out_x,
        .rows = r->rows,
        .pixels = r->pixels,
    };
    level_of(p->isa)->depthwise(&rows);
    for (int64_t i = 0; e->post && i < r->rows; i++) {
        const int64_t first = r->first + i * step * s->out[1];
        e->post(post_user, 0, first, r->pixels, 0, s->channels * s->multiplier, (float *)p->y + first * p->ldy, p->ldy);
    }
}

void depthwise_run(const depthwise_params *p, int64_t begin, int64_t end, void *scratch, void *post_user)
{
    const depthwise_shape *s = &p->shape;
    const gemm_epilogue *e = &p->epilogue;
    if (s->channels * s->multiplier == 0 || begin >= end) return;
    const int64_t step = remainders_of(s), each = p->tactic.rows, tiles = tiles_of_image(p);
    const int64_t run = tile_pixels(p), runs = tiles_of_row(p);
    const float *bias = e->bias;
    if (e->narrow_bias) {
        float *wide = (float *)scratch + result_floats(p);
        level_of(p->isa)->rows->widen_bf16(wide, e->narrow_bias, s->channels);
        bias = wide;
    }
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t image = tile / tiles, at = tile % tiles / runs, x = tile % runs * run;
        const int64_t row = at % step + at / step * step * each;
        const int64_t left = s->out[0] > row ? (s->out[0] - row + step - 1) / step : 0,
                      rows = left < each ? left : each;
        if (rows == 0) continue;
        const run_at r = {
            .image = image,
            .out_y = row,
            .out_x = x,
            .rows = rows,
            .pixels = s->out[1] - x < run ? s->out[1] - x : run,
            .first = (image * s->out[0] + row) * s->out[1] + x,
        };
        if (p->is_narrow) run_narrow(p, &r, bias, scratch, post_user);
        else run_wide(p, &r, post_user);
    }
}
