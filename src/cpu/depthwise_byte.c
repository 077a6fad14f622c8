/* SPDX-License-Identifier: Apache-2.0 */
/* depthwise_byte.c - depthwise convolution of codes around the loop over channels: packing, taps, rows. */
#include "cpu/depthwise_byte.h"

#include "base/env.h"
#include <string.h>

enum { CHANNELS = 64, SUMS = 4096, TAP_GROUP = 4 };

static int64_t taps_of(const conv_shape *s)
{
    return s->kernel[1] * s->kernel[2];
}

static int64_t each_of(depthwise_form form)
{
    return form == DEPTHWISE_QUADS ? 4 : 2;
}

static int64_t groups_of(depthwise_form form, const conv_shape *s)
{
    return (taps_of(s) + each_of(form) - 1) / each_of(form);
}

/* Adjacent pixels of few channels that are done as one of more: each has its own copy of the weights. */
static int64_t copies_of(depthwise_form form, const conv_shape *s)
{
    return form == DEPTHWISE_QUADS && s->c_in >= 16 && CHANNELS % s->c_in == 0 ? CHANNELS / s->c_in : 1;
}

size_t depthwise_byte_pack_size(depthwise_form form, const conv_shape *s)
{
    const size_t channels = size_align((size_t)s->c_in, CHANNELS);
    return size_align(size_mul(size_mul((size_t)groups_of(form, s), channels), 4), 64);
}

/* Where a channel's word lies in a group of quads: as unpacking bytes and then words of 64 channels leaves them. */
static int64_t quad_at(int64_t channel)
{
    const int64_t block = channel / CHANNELS * CHANNELS, lane = channel % CHANNELS / 16, i = channel % 16 / 4;
    return block + i * 16 + lane * 4 + channel % 4;
}

void depthwise_byte_pack(depthwise_form form, const conv_shape *s, const uint8_t *w, const int64_t stride[3],
                         uint8_t flip, void *dst, int32_t *sum)
{
    const int64_t each = each_of(form), channels = (s->c_in + CHANNELS - 1) / CHANNELS * CHANNELS;
    memset(dst, 0, depthwise_byte_pack_size(form, s));
    for (int64_t c = 0; c < s->c_in; c++) {
        sum[c] = 0;
        for (int64_t t = 0; t < taps_of(s); t++) {
            const int64_t h = t / s->kernel[2], x = t % s->kernel[2];
            const int8_t code = (int8_t)(w[c * stride[0] + h * stride[1] + x * stride[2]] ^ flip);
            sum[c] += code;
            if (form == DEPTHWISE_PAIRS) ((int16_t *)dst)[(t / each * channels + c) * 2 + t % each] = code;
            for (int64_t i = 0; form == DEPTHWISE_QUADS && i < copies_of(form, s); i++)
                ((int8_t *)dst)[(t / each * channels + quad_at(c + i * s->c_in)) * 4 + t % each] = code;
        }
    }
}

/* Pixels of a row whose sums stay in the L1 cache. */
static int64_t run_of(const conv_shape *s)
{
    const int64_t most = SUMS / (s->c_in > 0 ? s->c_in : 1);
    return most < 1 ? 1 : most < s->out[2] ? most : s->out[2];
}

static size_t sums_size(const conv_shape *s)
{
    return size_align(size_mul(size_mul((size_t)run_of(s), (size_t)s->c_in), sizeof(int32_t)), 64);
}

size_t depthwise_byte_scratch_size(const conv_shape *s)
{
    return size_add(sums_size(s), size_align(size_mul((size_t)taps_of(s) + TAP_GROUP, sizeof(const uint8_t *)), 64));
}

int64_t depthwise_byte_tile_count(const depthwise_byte_params *p)
{
    return p->shape.images * p->shape.out[1];
}

void depthwise_byte_run(const depthwise_byte_params *p, int64_t begin, int64_t end, void *scratch, void *user)
{
    const conv_shape *s = &p->shape;
    const int64_t run = run_of(s), groups = groups_of(p->form, s), channels = s->c_in;
    const bool is_dense = s->stride[2] == 1 && s->x_dim[2] == channels;
    const int64_t copies = is_dense ? copies_of(p->form, s) : 1;
    int32_t *sum = scratch;
    const uint8_t **tap = (const uint8_t **)(void *)((char *)scratch + sums_size(s));
    for (int64_t i = 0; i < taps_of(s) + TAP_GROUP; i++) tap[i] = p->pad;
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t at_y = tile % s->out[1] * s->stride[1] - s->pad[1];
        const uint8_t *image = p->x + tile / s->out[1] * s->x_image;
        for (int64_t first = 0; first < s->out[2]; first += run) {
            const int64_t pixels = s->out[2] - first < run ? s->out[2] - first : run;
            for (int64_t i = 0, some; i < pixels; i += some) {
                const int64_t at_x = (first + i) * s->stride[2] - s->pad[2];
                const int64_t last_x = at_x + (s->kernel[2] - 1) * s->dilation[2] + copies - 1;
                some = i + copies <= pixels && at_x >= 0 && last_x < s->in[2] ? copies : 1;
                const uint8_t **to = tap;
                for (int64_t h = 0; h < s->kernel[1]; h++) {
                    const int64_t y = at_y + h * s->dilation[1];
                    const bool is_in = y >= 0 && y < s->in[1];
                    const uint8_t *line = is_in ? image + y * s->x_dim[1] : NULL;
                    for (int64_t w = 0; w < s->kernel[2]; w++) {
                        const int64_t x = at_x + w * s->dilation[2];
                        *to++ = is_in && x >= 0 && x < s->in[2] ? line + x * s->x_dim[2] : p->pad;
                    }
                }
                p->fn(sum + i * channels, tap, groups, p->w, some * channels, p->flip);
            }
            p->post(user, tile * s->out[2] + first, pixels, sum, channels);
        }
    }
}
