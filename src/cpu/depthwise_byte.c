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

/* Are groups of four taps columns of the filter? */
static bool is_columns(depthwise_form form, const conv_shape *s)
{
    return form == DEPTHWISE_QUADS && s->kernel[1] == 3 && s->kernel[2] == 3 && s->dilation[2] == 1;
}

/* Where a tap lies in the groups. */
static int64_t tap_at(depthwise_form form, const conv_shape *s, int64_t h, int64_t w)
{
    return is_columns(form, s) ? w * 4 + h : h * s->kernel[2] + w;
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
            const int64_t h = t / s->kernel[2], x = t % s->kernel[2], at = tap_at(form, s, h, x);
            const int8_t code = (int8_t)(w[c * stride[0] + h * stride[1] + x * stride[2]] ^ flip);
            sum[c] += code;
            if (form == DEPTHWISE_PAIRS) ((int16_t *)dst)[(at / each * channels + c) * 2 + at % each] = code;
            for (int64_t i = 0; form == DEPTHWISE_QUADS && i < copies_of(form, s); i++)
                ((int8_t *)dst)[(at / each * channels + quad_at(c + i * s->c_in)) * 4 + at % each] = code;
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
    return size_add(size_mul(sums_size(s), 2),
                    size_align(size_mul((size_t)taps_of(s) + TAP_GROUP, sizeof(const uint8_t *)), 64));
}

int64_t depthwise_byte_tile_count(const depthwise_byte_params *p)
{
    return p->shape.images * p->shape.out[1];
}

/* A row of results: where the rows of its windows lie, and the pixels that are done at once. */
typedef struct row_job {
    const depthwise_byte_params *p;
    const void *w;
    int64_t at_y, copies;
    const uint8_t *image;
    const uint8_t **tap;
} row_job;

static const uint8_t *line_of(const row_job *j, int64_t h)
{
    const conv_shape *s = &j->p->shape;
    const int64_t y = j->at_y + h * s->dilation[1];
    return y >= 0 && y < s->in[1] ? j->image + y * s->x_dim[1] : NULL;
}

/* Sums of `count` results, `copies` pixels each, whose taps are found one by one. */
static void pixels_run(const row_job *j, int64_t first, int64_t count, int64_t copies, int32_t *sum)
{
    const depthwise_byte_params *p = j->p;
    const conv_shape *s = &p->shape;
    for (int64_t i = 0; i < count; i++, first += copies, sum += copies * s->c_in) {
        const int64_t at_x = first * s->stride[2] - s->pad[2];
        for (int64_t h = 0; h < s->kernel[1]; h++) {
            const uint8_t *line = line_of(j, h);
            for (int64_t w = 0; w < s->kernel[2]; w++) {
                const int64_t x = at_x + w * s->dilation[2];
                j->tap[tap_at(p->form, s, h, w)] = line && x >= 0 && x < s->in[2] ? line + x * s->x_dim[2] : p->pad;
            }
        }
        p->fn(sum, j->tap, groups_of(p->form, s), j->w, copies * s->c_in, p->flip);
    }
}

static void results_run(const row_job *j, int64_t first, int64_t count, int64_t copies, int32_t *sum)
{
    const depthwise_byte_params *p = j->p;
    const conv_shape *s = &p->shape;
    if (!p->columns || !is_columns(p->form, s)) {
        pixels_run(j, first, count, copies, sum);
        return;
    }
    p->columns(&(depthwise_columns){ .sum = sum,
                                     .row = { line_of(j, 0), line_of(j, 1), line_of(j, 2) },
                                     .pad = p->pad,
                                     .step = s->x_dim[2],
                                     .in = s->in[2],
                                     .x = first * s->stride[2] - s->pad[2],
                                     .ahead = s->stride[2] * copies,
                                     .count = count,
                                     .channels = copies * s->c_in,
                                     .w = j->w,
                                     .flip = p->flip });
}

/* Results [first, first + count) of a row. Those whose windows lie inside are done several at a time. */
static void run_sums(const row_job *j, int64_t first, int64_t count, int32_t *sum)
{
    const conv_shape *s = &j->p->shape;
    if (j->copies == 1) {
        results_run(j, first, count, 1, sum);
        return;
    }
    const int64_t last =
        s->in[2] - (s->kernel[2] - 1) * s->dilation[2] + s->pad[2]; /* windows that begin here lie outside */
    int64_t begin = first > s->pad[2] ? first : s->pad[2], end = first + count < last ? first + count : last;
    if (begin > first + count) begin = first + count;
    const int64_t some = end > begin ? (end - begin) / j->copies : 0;
    end = begin + some * j->copies;
    pixels_run(j, first, begin - first, 1, sum);
    results_run(j, begin, some, j->copies, sum + (begin - first) * s->c_in);
    pixels_run(j, end, first + count - end, 1, sum + (end - first) * s->c_in);
}

void depthwise_byte_run(const depthwise_byte_params *p, int64_t begin, int64_t end, void *scratch, void *user)
{
    const conv_shape *s = &p->shape;
    const int64_t run = run_of(s), channels = s->c_in;
    int32_t *sum = scratch, *seen = p->ones ? (int32_t *)(void *)((char *)scratch + sums_size(s)) : NULL;
    row_job j = { .p = p, .tap = (const uint8_t **)(void *)((char *)scratch + 2 * sums_size(s)) };
    j.copies = s->stride[2] == 1 && s->x_dim[2] == channels ? copies_of(p->form, s) : 1;
    for (int64_t i = 0; i < taps_of(s) + TAP_GROUP; i++) j.tap[i] = p->pad;
    for (int64_t tile = begin; tile < end; tile++) {
        j.at_y = tile % s->out[1] * s->stride[1] - s->pad[1];
        j.image = p->x + tile / s->out[1] * s->x_image;
        for (int64_t first = 0; first < s->out[2]; first += run) {
            const int64_t pixels = s->out[2] - first < run ? s->out[2] - first : run;
            j.w = p->w;
            run_sums(&j, first, pixels, sum);
            j.w = p->ones;
            if (seen) run_sums(&j, first, pixels, seen);
            p->post(user, tile * s->out[2] + first, pixels, sum, seen, channels);
        }
    }
}
