/* SPDX-License-Identifier: Apache-2.0 */
/* test_cpu_depthwise.c - depthwise convolutions of every level against sums in double. */
#include "../cpu_numeric.h"
#include "cpu/depthwise.h"
#include "cpu/level.h"
#include "cpu/rows.h"

static void depthwise_check(const depthwise_shape *s, bool bias_used, bool residual_used, bool clip, bool post,
                            int64_t gap, numbers *r)
{
    CHECK(depthwise_shape_check(s) == NULL);
    const int64_t cols = s->channels * s->multiplier, pixels = s->images * s->out[0] * s->out[1], ldy = cols + gap;
    guarded x = guarded_create((size_t)(s->images * s->x_image), 0);
    for (int64_t i = 0; i < s->images * s->in[0] * s->in[1]; i++) {
        for (int64_t c = 0; c < s->channels; c++) x.data[i * s->x_dim[1] + c] = numbers_float(r);
    }
    const int64_t taps = s->kernel[0] * s->kernel[1], w_stride[3] = { taps, s->kernel[1], 1 };
    guarded w = guarded_random(r, (size_t)(cols * taps), 0), bias = guarded_random(r, (size_t)cols, 0);
    guarded residual = guarded_random(r, (size_t)(pixels * ldy), 0);
    depthwise_tactic list[DEPTHWISE_TACTICS_MAX];
    const int tactics = depthwise_tactics(s, numbers_in(r, 0, 1) ? 0 : 1 << 20, list);
    isa_level isa = ISA_PLAIN;
    for (int each = 0; isa < ISA_LEVEL_COUNT; isa = ++each % tactics ? isa : isa_level_next(isa)) {
        CHECK(depthwise_tactic_check(s, list[each % tactics]) == NULL);
        guarded packed = guarded_create(depthwise_pack_size(isa, s) / sizeof(float), 0);
        depthwise_pack(isa, s, w.data, false, w_stride, packed.data);
        guarded y = guarded_create((size_t)(pixels * ldy), 2);
        depthwise_params p = { .isa = isa,
                               .tactic = list[each % tactics],
                               .shape = *s,
                               .x = x.data,
                               .w = packed.data,
                               .y = y.data,
                               .ldy = ldy,
                               .epilogue = { .clip = clip, .lo = -0.5f, .hi = 0.75f, .ldr = ldy } };
        if (bias_used) p.epilogue.bias = bias.data;
        if (residual_used) p.epilogue.residual = residual.data;
        if (post) p.epilogue.post = post_negate;
        post_seen seen = { .y = y.data };
        const int64_t tiles = depthwise_tile_count(&p), cut = numbers_in(r, 0, tiles);
        depthwise_run(&p, cut, tiles, NULL, &seen);
        depthwise_run(&p, 0, cut, NULL, &seen);
        CHECK(guarded_intact(&y) && guarded_intact(&packed));
        if (post) CHECK(!seen.wrong && seen.elements == pixels * cols);
        int bad = 0;
        for (int64_t i = 0; i < pixels; i++) {
            const int64_t image = i / (s->out[0] * s->out[1]), oy = i / s->out[1] % s->out[0], ox = i % s->out[1];
            for (int64_t c = 0; c < ldy; c++) {
                const float got = y.data[i * ldy + c];
                if (c >= cols) {
                    bad += !isnan(got);
                    continue;
                }
                exact e = { 0 };
                for (int64_t tap = 0; tap < taps; tap++) {
                    const int64_t iy = oy * s->stride[0] - s->pad[0] + tap / s->kernel[1] * s->dilation[0];
                    const int64_t ix = ox * s->stride[1] - s->pad[1] + tap % s->kernel[1] * s->dilation[1];
                    if (iy < 0 || iy >= s->in[0] || ix < 0 || ix >= s->in[1]) continue;
                    const float *at = x.data + image * s->x_image + iy * s->x_dim[0] + ix * s->x_dim[1];
                    exact_add(&e, (double)at[c / s->multiplier], (double)w.data[c * taps + tap]);
                }
                e = exact_finish(e, &p.epilogue, c, residual_used ? (double)residual.data[i * ldy + c] : 0.0);
                if (!exact_near(e, post ? -got : got) && bad++ == 0) {
                    printf("%s %ux%u pixel %d channel %d: %g, not %g\n", isa_level_name(p.isa), p.tactic.rows,
                           p.tactic.cols, (int)i, (int)c, (double)got, e.sum);
                }
            }
        }
        CHECK_EQ(bad, 0);
        guarded_destroy(&y);
        guarded_destroy(&packed);
    }
    guarded_destroy(&x);
    guarded_destroy(&w);
    guarded_destroy(&bias);
    guarded_destroy(&residual);
}

/* Drained sums, which the hook has to write. */
static void post_copy(void *user, int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols, void *at,
                      int64_t ldc)
{
    post_seen *s = user;
    s->wrong = s->wrong || batch || col;
    s->elements += rows * cols;
    for (int64_t i = 0; i < rows; i++)
        memcpy(s->y + (row + i) * cols, (const float *)at + i * ldc, (size_t)cols * sizeof(float));
}

/* Numbers of bf16, and the same in f32. */
static guarded narrow_numbers(numbers *r, guarded *wide, size_t count)
{
    guarded own = guarded_create((count + 1) / 2, 0);
    *wide = guarded_random(r, count, 0);
    level_of(ISA_PLAIN)->rows->narrow_bf16((uint16_t *)(void *)own.data, wide->data, (int64_t)count);
    level_of(ISA_PLAIN)->rows->widen_bf16(wide->data, (const uint16_t *)(const void *)own.data, (int64_t)count);
    return own;
}

/* In bf16: as in f32, and then rounded, bit by bit. */
static void narrow_check(const depthwise_shape *s, bool bias_used, bool clip, bool drain, int64_t gap, numbers *r)
{
    const int64_t pixels = s->images * s->out[0] * s->out[1], channels = s->channels, ldy = channels + gap;
    const int64_t taps = s->kernel[0] * s->kernel[1], w_stride[3] = { taps, s->kernel[1], 1 };
    guarded x, w, bias;
    guarded narrow_x = narrow_numbers(r, &x, (size_t)(s->images * s->x_image));
    guarded narrow_w = narrow_numbers(r, &w, (size_t)(channels * taps));
    guarded narrow_bias = narrow_numbers(r, &bias, (size_t)channels);
    depthwise_tactic list[DEPTHWISE_TACTICS_MAX];
    const int tactics = depthwise_tactics(s, numbers_in(r, 0, 1) ? 0 : 1 << 20, list);
    isa_level isa = ISA_PLAIN;
    for (int each = 0; isa < ISA_LEVEL_COUNT; isa = ++each % tactics ? isa : isa_level_next(isa)) {
        const size_t packed_count = depthwise_pack_size(isa, s) / sizeof(float);
        guarded packed = guarded_create(packed_count, 0), narrow_packed = guarded_create(packed_count, 0);
        depthwise_pack(isa, s, w.data, false, w_stride, packed.data);
        depthwise_pack(isa, s, narrow_w.data, true, w_stride, narrow_packed.data);
        CHECK(!memcmp(packed.data, narrow_packed.data, packed_count * sizeof(float)));
        guarded y = guarded_create((size_t)(pixels * channels), 2);
        guarded drained = guarded_create((size_t)(pixels * channels), 0);
        guarded narrow_y = guarded_create((size_t)(pixels * ldy + 1) / 2, 0);
        depthwise_params p = { .isa = isa,
                               .tactic = list[each % tactics],
                               .shape = *s,
                               .x = x.data,
                               .w = packed.data,
                               .y = y.data,
                               .ldy = channels,
                               .epilogue = { .clip = clip, .lo = -0.5f, .hi = 0.75f } };
        if (bias_used) p.epilogue.bias = bias.data;
        CHECK_EQ(depthwise_scratch_size(&p), 0);
        depthwise_run(&p, 0, depthwise_tile_count(&p), NULL, NULL);
        p.is_narrow = true;
        p.x = narrow_x.data;
        p.y = narrow_y.data;
        p.ldy = ldy;
        p.epilogue.bias = NULL;
        if (bias_used) p.epilogue.narrow_bias = (const uint16_t *)(const void *)narrow_bias.data;
        p.epilogue.drain = drain;
        p.epilogue.post = drain ? post_copy : NULL;
        post_seen seen = { .y = drained.data };
        guarded scratch = guarded_create(depthwise_scratch_size(&p) / sizeof(float), 0);
        const int64_t tiles = depthwise_tile_count(&p), cut = numbers_in(r, 0, tiles);
        depthwise_run(&p, cut, tiles, scratch.data, &seen);
        depthwise_run(&p, 0, cut, scratch.data, &seen);
        CHECK(guarded_intact(&narrow_y) && guarded_intact(&scratch) && guarded_intact(&narrow_packed));
        if (drain) {
            CHECK(!seen.wrong && seen.elements == pixels * channels && guarded_intact(&drained));
            CHECK(!memcmp(drained.data, y.data, (size_t)(pixels * channels) * sizeof(float)));
        } else {
            int bad = 0;
            for (int64_t i = 0; i < pixels; i++) {
                uint16_t want[128];
                level_of(ISA_PLAIN)->rows->narrow_bf16(want, y.data + i * channels, channels);
                bad += memcmp(want, (uint16_t *)(void *)narrow_y.data + i * ldy, (size_t)channels * sizeof *want) != 0;
            }
            CHECK_EQ(bad, 0);
        }
        guarded *const own[] = { &packed, &narrow_packed, &y, &drained, &narrow_y, &scratch };
        for (size_t i = 0; i < sizeof own / sizeof *own; i++) guarded_destroy(own[i]);
    }
    guarded *const all[] = { &x, &w, &bias, &narrow_x, &narrow_w, &narrow_bias };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) guarded_destroy(all[i]);
}

static void random_depthwise(void)
{
    numbers r = { .state = 21 };
    static const int64_t kernels[] = { 3, 3, 3, 5, 5, 7, 1, 2, 4, 9, 11 };
    for (int i = 0; i < (test_is_full() ? 1000 : 200); i++) {
        const uint32_t bits = numbers_next(&r);
        depthwise_shape s = { .images = numbers_in(&r, 1, 2),
                              .channels = numbers_in(&r, 1, i % 3 ? 20 : 70),
                              .multiplier = i % 4 == 3 ? numbers_in(&r, 2, i % 8 == 7 ? 3 : 20) : 1 };
        const int64_t kernel = kernels[numbers_in(&r, 0, 10)], gap = bits & 1 ? 3 : 0;
        bool fits = true;
        for (int d = 0; d < 2; d++) {
            const bool flat = d == 0 && i % 6 == 5; /* one dimension: rows of several tiles */
            s.in[d] = flat ? 1 : numbers_in(&r, 1, d && i % 6 == 5 ? 600 : 24);
            s.kernel[d] = flat ? 1 : kernel;
            s.stride[d] = flat ? 1 : numbers_in(&r, 1, 3);
            s.dilation[d] = flat || bits & 6 ? 1 : numbers_in(&r, 1, 3);
            s.pad[d] = flat ? 0 : numbers_in(&r, 0, 4);
            const int64_t after = flat ? 0 : numbers_in(&r, 0, 4);
            const int64_t room = s.in[d] + s.pad[d] + after - (s.kernel[d] - 1) * s.dilation[d] - 1;
            fits = fits && room >= 0;
            s.out[d] = room / s.stride[d] + 1;
        }
        s.x_dim[1] = s.channels + gap;
        s.x_dim[0] = s.in[1] * s.x_dim[1];
        s.x_image = s.in[0] * s.x_dim[0];
        if (fits && depthwise_has_blocks(&s) && s.multiplier == 1)
            narrow_check(&s, bits >> 3 & 1, bits >> 5 & 1, bits >> 7 & 1, bits >> 8 & 1 ? 5 : 0, &r);
        if (fits) depthwise_check(&s, bits >> 3 & 1, bits >> 4 & 1, bits >> 5 & 1, bits >> 6 & 1, gap, &r);
    }
}

static const test tests[] = { T(random_depthwise), { 0 } };
TEST_MAIN(tests)
