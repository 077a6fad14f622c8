/* SPDX-License-Identifier: Apache-2.0 */
/* test_cpu_conv_transpose.c - transposed convolutions of every level and tactic against scattered sums in double. */
#include "../cpu_numeric.h"
#include "cpu/conv_transpose.h"

static int64_t volume(const int64_t d[3])
{
    return d[0] * d[1] * d[2];
}

static void scatter(const conv_shape *s, const float *x, const float *w, exact *sums)
{
    const int64_t k = s->c_in / s->groups, n = s->c_out / s->groups;
    for (int64_t i = 0; i < s->images * volume(s->in); i++) {
        const int64_t in[3] = { i / (s->in[1] * s->in[2]) % s->in[0], i / s->in[2] % s->in[1], i % s->in[2] };
        for (int64_t tap = 0; tap < volume(s->kernel); tap++) {
            const int64_t kernel[3] = { tap / (s->kernel[1] * s->kernel[2]), tap / s->kernel[2] % s->kernel[1],
                                        tap % s->kernel[2] };
            int64_t at = i / volume(s->in);
            bool inside = true;
            for (int a = 0; a < 3; a++) {
                const int64_t out = in[a] * s->stride[a] + kernel[a] * s->dilation[a] - s->pad[a];
                inside = inside && out >= 0 && out < s->out[a];
                at = at * s->out[a] + out;
            }
            if (!inside) continue;
            for (int64_t c = 0; c < s->c_in; c++) {
                const double value = (double)x[i * s->x_dim[2] + c];
                for (int64_t o = 0; o < n; o++) {
                    exact_add(&sums[at * s->c_out + c / k * n + o], value,
                              (double)w[(c * n + o) * volume(s->kernel) + tap]);
                }
            }
        }
    }
}

static void transpose_check(isa_level isa, const conv_shape *s, gemm_tactic tactic, uint32_t bits, numbers *r)
{
    CHECK(conv_transpose_tactic_check(isa, s, tactic) == NULL);
    const int64_t pixels = s->images * volume(s->out), ldy = s->c_out + (bits & 1 ? 3 : 0);
    const int64_t n = s->c_out / s->groups, taps = volume(s->kernel);
    guarded x = guarded_create((size_t)(s->images * s->x_image), 0);
    for (int64_t i = 0; i < s->images * volume(s->in); i++) {
        for (int64_t c = 0; c < s->c_in; c++) x.data[i * s->x_dim[2] + c] = numbers_float(r);
    }
    guarded w = guarded_random(r, (size_t)(s->c_in * n * taps), 0), bias = guarded_random(r, (size_t)s->c_out, 0);
    guarded residual = guarded_random(r, (size_t)(pixels * ldy), 0), y = guarded_create((size_t)(pixels * ldy), 1);
    guarded packed = guarded_create(conv_transpose_pack_size(isa, s, tactic) / sizeof(float), 0);
    const int64_t w_stride[5] = { n * taps, taps, s->kernel[1] * s->kernel[2], s->kernel[2], 1 };
    conv_transpose_pack(isa, s, tactic, w.data, w_stride, packed.data);
    conv_transpose_params p = { .isa = isa,
                                .tactic = tactic,
                                .shape = *s,
                                .x = x.data,
                                .w = packed.data,
                                .y = y.data,
                                .ldy = ldy,
                                .epilogue = { .clip = bits >> 1 & 1, .lo = -0.3f, .hi = 1.0f, .ldr = ldy } };
    if (bits >> 2 & 1) p.epilogue.bias = bias.data;
    if (bits >> 3 & 1) p.epilogue.residual = residual.data;
    if (bits >> 4 & 1) p.epilogue.post = post_negate;
    guarded scratch = guarded_create(conv_transpose_scratch_size(&p) / sizeof(float), 0);
    post_seen seen = { .y = y.data };
    const int64_t tiles = conv_transpose_tile_count(&p), cut = numbers_in(r, 0, tiles);
    conv_transpose_run(&p, cut, tiles, scratch.data, &seen);
    conv_transpose_run(&p, 0, cut, scratch.data, &seen);
    CHECK(guarded_intact(&packed) && guarded_intact(&y) && guarded_intact(&scratch));
    if (p.epilogue.post) CHECK(!seen.wrong && seen.elements == pixels * s->c_out);
    exact *sums = calloc((size_t)(pixels * s->c_out), sizeof *sums);
    if (!sums) abort();
    scatter(s, x.data, w.data, sums);
    int bad = 0;
    for (int64_t i = 0; i < pixels; i++) {
        for (int64_t c = 0; c < ldy; c++) {
            const float got = y.data[i * ldy + c];
            if (c >= s->c_out) {
                bad += !isnan(got);
                continue;
            }
            const exact want = exact_finish(sums[i * s->c_out + c], &p.epilogue, c,
                                            p.epilogue.residual ? (double)residual.data[i * ldy + c] : 0.0);
            if (!exact_near(want, p.epilogue.post ? -got : got) && bad++ == 0) {
                printf("%s pixel %d channel %d: %g, not %g\n", isa_level_name(isa), (int)i, (int)c, (double)got,
                       want.sum);
            }
        }
    }
    CHECK_EQ(bad, 0);
    free(sums);
    guarded_destroy(&x);
    guarded_destroy(&w);
    guarded_destroy(&bias);
    guarded_destroy(&residual);
    guarded_destroy(&y);
    guarded_destroy(&packed);
    guarded_destroy(&scratch);
}

static void random_transposed(void)
{
    numbers r = { .state = 31 };
    for (int i = 0; i < (test_is_full() ? 400 : 80); i++) {
        const uint32_t bits = numbers_next(&r);
        const int rank = (int)numbers_in(&r, 1, 3);
        conv_shape s = { .images = numbers_in(&r, 1, 2), .groups = i % 4 == 3 ? 2 : 1, .x_c = 1 };
        s.c_in = s.groups * numbers_in(&r, 1, 12);
        s.c_out = s.groups * numbers_in(&r, 1, i % 5 ? 12 : 70);
        bool fits = true;
        for (int d = 0; d < 3; d++) {
            const bool used = d >= 3 - rank;
            s.in[d] = used ? numbers_in(&r, 1, rank == 3 ? 4 : 9) : 1;
            s.kernel[d] = used ? numbers_in(&r, 1, 4) : 1;
            s.stride[d] = used ? numbers_in(&r, 1, 4) : 1;
            s.dilation[d] = used && bits & 256 ? numbers_in(&r, 1, 3) : 1;
            s.pad[d] = used ? numbers_in(&r, 0, 2) : 0;
            s.out[d] = (s.in[d] - 1) * s.stride[d] + (s.kernel[d] - 1) * s.dilation[d] + 1 - s.pad[d] -
                       (used ? numbers_in(&r, -1, 2) : 0);
            fits = fits && s.out[d] > 0;
        }
        s.x_dim[2] = s.c_in + (bits >> 5 & 1 ? 4 : 0);
        s.x_dim[1] = s.in[2] * s.x_dim[2];
        s.x_dim[0] = s.in[1] * s.x_dim[1];
        s.x_image = s.in[0] * s.x_dim[0];
        if (!fits) continue;
        for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
            gemm_tactic list[GEMM_TACTICS_MAX];
            const int count = conv_transpose_tactics(isa, &s, list);
            CHECK(count >= 1);
            for (int t = 0; t < count; t++) transpose_check(isa, &s, list[t], bits, &r);
            const gemm_tactic narrow = { .vectors = 1, .rows = 2, .block_m = 1, .block_n = 1 }; /* many work tiles */
            transpose_check(isa, &s, narrow, bits, &r);
        }
    }
}

static const test tests[] = { T(random_transposed), { 0 } };
TEST_MAIN(tests)
