/* SPDX-License-Identifier: Apache-2.0 */
/* test_cpu_conv.c - convolutions of every level and tactic against sums in double. */
#include "../cpu_numeric.h"
#include "cpu/conv.h"

typedef struct options {
    bool planar, bias, residual, clip, post;
    int64_t gap; /* channels between pixels of input and output that are not ours */
} options;

static int64_t volume(const int64_t d[3])
{
    return d[0] * d[1] * d[2];
}

static exact pixel_reference(const conv_params *p, const float *w, int64_t image, const int64_t at[3], int64_t c)
{
    const conv_shape *s = &p->shape;
    const int64_t k = s->c_in / s->groups, group = c / (s->c_out / s->groups);
    exact x = { 0 };
    for (int64_t tap = 0; tap < volume(s->kernel); tap++) {
        const int64_t kernel[3] = { tap / (s->kernel[1] * s->kernel[2]), tap / s->kernel[2] % s->kernel[1],
                                    tap % s->kernel[2] };
        const float *from = (const float *)p->x + image * s->x_image;
        bool inside = true;
        for (int i = 0; i < 3; i++) {
            const int64_t in = at[i] * s->stride[i] - s->pad[i] + kernel[i] * s->dilation[i];
            inside = inside && in >= 0 && in < s->in[i];
            from += in * s->x_dim[i];
        }
        if (!inside) continue;
        for (int64_t i = 0; i < k; i++) {
            exact_add(&x, (double)from[(group * k + i) * s->x_c], (double)w[(c * k + i) * volume(s->kernel) + tap]);
        }
    }
    return x;
}

static void conv_check(isa_level isa, const conv_shape *shape, conv_tactic tactic, const options *o, numbers *r)
{
    conv_params p = { .isa = isa, .tactic = tactic, .shape = *shape };
    conv_shape *s = &p.shape;
    CHECK(conv_shape_check(s) == NULL);
    CHECK(conv_tactic_check(isa, s, tactic) == NULL);
    const int64_t pixels = s->images * volume(s->out), ldy = s->c_out + o->gap;
    guarded x = guarded_create((size_t)(s->images * s->x_image), 0);
    for (int64_t i = 0; i < s->images * volume(s->in); i++) {
        const int64_t in = i % volume(s->in);
        for (int64_t c = 0; c < s->c_in; c++) {
            x.data[i / volume(s->in) * s->x_image + in / (s->in[1] * s->in[2]) * s->x_dim[0] +
                   in / s->in[2] % s->in[1] * s->x_dim[1] + in % s->in[2] * s->x_dim[2] + c * s->x_c] =
                numbers_float(r);
        }
    }
    const int64_t k = s->c_in / s->groups, taps = volume(s->kernel);
    guarded w = guarded_random(r, (size_t)(s->c_out * k * taps), 0), bias = guarded_random(r, (size_t)s->c_out, 3);
    guarded y = guarded_create((size_t)(pixels * ldy), 1), residual = guarded_random(r, (size_t)(pixels * ldy), 1);
    guarded packed = guarded_create(conv_pack_size(isa, s, tactic) / sizeof(float), 0);
    const int64_t w_stride[5] = { k * taps, taps, s->kernel[1] * s->kernel[2], s->kernel[2], 1 };
    conv_pack(isa, s, tactic, w.data, w_stride, packed.data);
    p.x = x.data;
    p.w = packed.data;
    p.y = y.data;
    p.ldy = ldy;
    p.epilogue = (gemm_epilogue){ .clip = o->clip, .lo = -0.25f, .hi = 2.0f, .ldr = ldy };
    if (o->bias) p.epilogue.bias = bias.data;
    if (o->residual) p.epilogue.residual = residual.data;
    if (o->post) p.epilogue.post = post_negate;
    guarded workspace = guarded_create(conv_workspace_size(&p) / sizeof(float), 0);
    guarded scratch = guarded_create(conv_scratch_size(&p) / sizeof(float), 0);
    post_seen seen = { .y = y.data };
    for (int phase = 0; phase < conv_phase_count(&p); phase++) {
        const int64_t tiles = conv_tile_count(&p, phase), cut = numbers_in(r, 0, tiles);
        conv_run(&p, phase, cut, tiles, workspace.data, scratch.data, &seen);
        conv_run(&p, phase, 0, cut, workspace.data, scratch.data, &seen);
    }
    CHECK(guarded_intact(&packed) && guarded_intact(&y) && guarded_intact(&workspace) && guarded_intact(&scratch));
    if (o->post) CHECK(!seen.wrong && seen.elements == pixels * s->c_out);
    int bad = 0;
    for (int64_t i = 0; i < pixels; i++) {
        const int64_t image = i / volume(s->out);
        const int64_t at[3] = { i / (s->out[1] * s->out[2]) % s->out[0], i / s->out[2] % s->out[1], i % s->out[2] };
        for (int64_t c = 0; c < ldy; c++) {
            const float got = y.data[i * ldy + c];
            if (c >= s->c_out) {
                bad += !isnan(got);
                continue;
            }
            const exact want = exact_finish(pixel_reference(&p, w.data, image, at, c), &p.epilogue, c,
                                            o->residual ? (double)residual.data[i * ldy + c] : 0.0);
            if (!exact_near(want, o->post ? -got : got) && bad++ == 0) {
                char text[80];
                (void)conv_tactic_print(text, sizeof text, isa, tactic);
                printf("%s %s pixel %d channel %d: %g, not %g\n", isa_level_name(isa), text, (int)i, (int)c,
                       (double)got, want.sum);
            }
        }
    }
    CHECK_EQ(bad, 0);
    guarded_destroy(&x);
    guarded_destroy(&w);
    guarded_destroy(&bias);
    guarded_destroy(&y);
    guarded_destroy(&residual);
    guarded_destroy(&packed);
    guarded_destroy(&workspace);
    guarded_destroy(&scratch);
}

/* Fills in output sizes and strides. False where the kernel does not fit the image. */
static bool shape_finish(conv_shape *s, const int64_t pad_after[3], const options *o)
{
    for (int i = 0; i < 3; i++) {
        const int64_t room = s->in[i] + s->pad[i] + pad_after[i] - (s->kernel[i] - 1) * s->dilation[i] - 1;
        if (room < 0) return false;
        s->out[i] = room / s->stride[i] + 1;
    }
    const int64_t pixel = o->planar ? 1 : s->c_in + o->gap;
    s->x_c = o->planar ? volume(s->in) : 1;
    s->x_dim[2] = pixel;
    s->x_dim[1] = s->in[2] * pixel;
    s->x_dim[0] = s->in[1] * s->x_dim[1];
    s->x_image = o->planar ? volume(s->in) * s->c_in : s->in[0] * s->x_dim[0];
    return true;
}

static void conv_check_all(conv_shape s, const int64_t pad_after[3], const options *o, numbers *r)
{
    if (!shape_finish(&s, pad_after, o)) return;
    for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
        conv_tactic list[CONV_TACTICS_MAX];
        const int count = conv_tactics(isa, &s, list);
        CHECK(count >= 1);
        bool rows = false, lines = false;
        for (int i = 0; i < count; i++) {
            conv_check(isa, &s, list[i], o, r);
            rows = rows || list[i].path == CONV_ROWS;
            lines = lines || list[i].path == CONV_LINES;
        }
        const bool is_flat = s.kernel[0] == 1 && (s.kernel[1] - 1) * s.dilation[1] < 16 && s.dilation[2] <= 16;
        CHECK_EQ(lines, s.x_dim[2] == 1 && s.groups == 1 && s.c_in <= 8 && is_flat && s.stride[2] <= 16);
        conv_tactic narrow = list[0]; /* many work tiles */
        if (narrow.path == CONV_LINES) narrow.path = CONV_ROWS;
        narrow.gemm.vectors = 1;
        narrow.gemm.rows = 3;
        narrow.gemm.block_n = 1;
        narrow.gemm.block_m = 2;
        conv_check(isa, &s, narrow, o, r);
        if (lines) { /* what is no tactic of lines */
            conv_tactic t = { .path = CONV_LINES, .gemm = list[0].gemm };
            t.gemm.rows = 1;
            CHECK(conv_tactic_check(isa, &s, t));
            t.gemm = (gemm_tactic){ .vectors = 15, .rows = 6 };
            CHECK(conv_tactic_check(isa, &s, t));
        }
        if (!rows) { /* the copying path is right for every problem, listed or not */
            conv_tactic t = list[0];
            t.path = CONV_ROWS;
            conv_check(isa, &s, t, o, r);
        }
    }
}

static void random_convolutions(void)
{
    numbers r = { .state = 11 };
    for (int i = 0; i < (test_is_full() ? 400 : 80); i++) {
        const uint32_t bits = numbers_next(&r);
        const int rank = (int)numbers_in(&r, 1, 3);
        conv_shape s = { .images = numbers_in(&r, 1, 2), .groups = i % 4 == 3 ? numbers_in(&r, 2, 3) : 1 };
        s.c_in = s.groups * numbers_in(&r, 1, i % 3 ? 6 : 40);
        s.c_out = s.groups * numbers_in(&r, 1, i % 5 ? 20 : 70);
        int64_t pad_after[3];
        for (int d = 0; d < 3; d++) {
            const bool used = d >= 3 - rank;
            s.in[d] = used ? numbers_in(&r, 1, rank == 1 ? 40 : rank == 2 ? 12 : 6) : 1;
            s.kernel[d] = used ? numbers_in(&r, 1, 4) : 1;
            s.stride[d] = used ? numbers_in(&r, 1, 3) : 1;
            s.dilation[d] = used && bits & 1 ? numbers_in(&r, 1, 3) : 1;
            s.pad[d] = used ? numbers_in(&r, 0, 3) : 0;
            pad_after[d] = used ? numbers_in(&r, 0, 3) : 0;
        }
        const options o = { .planar = bits >> 1 & 1,
                            .bias = bits >> 2 & 1,
                            .residual = bits >> 3 & 1,
                            .clip = bits >> 4 & 1,
                            .post = bits >> 5 & 1,
                            .gap = bits >> 6 & 1 ? 5 : 0 };
        conv_check_all(s, pad_after, &o, &r);
    }
}

static void network_layers(void)
{
    numbers r = { .state = 12 };
    const struct {
        conv_shape s;
        options o;
    } list[] = {
        { { .images = 1,
            .groups = 1,
            .c_in = 3,
            .c_out = 16,
            .in = { 1, 33, 33 },
            .kernel = { 1, 7, 7 },
            .stride = { 1, 2, 2 },
            .dilation = { 1, 1, 1 },
            .pad = { 0, 3, 3 } },
          { .planar = true, .bias = true, .clip = true } },
        { { .images = 2,
            .groups = 1,
            .c_in = 3,
            .c_out = 24,
            .in = { 3, 20, 61 },
            .kernel = { 1, 6, 6 },
            .stride = { 2, 2, 2 },
            .dilation = { 1, 1, 1 },
            .pad = { 1, 2, 2 } },
          { .planar = true, .bias = true, .residual = true, .post = true, .gap = 1 } },
        { { .images = 1,
            .groups = 1,
            .c_in = 1,
            .c_out = 9,
            .in = { 1, 5, 40 },
            .kernel = { 1, 3, 3 },
            .stride = { 1, 3, 1 },
            .dilation = { 1, 1, 1 },
            .pad = { 0, 4, -2 } },
          { .planar = true, .clip = true } },
        { { .images = 1,
            .groups = 1,
            .c_in = 32,
            .c_out = 40,
            .in = { 1, 7, 7 },
            .kernel = { 1, 3, 3 },
            .stride = { 1, 1, 1 },
            .dilation = { 1, 1, 1 },
            .pad = { 0, 1, 1 } },
          { .bias = true, .residual = true, .clip = true } },
        { { .images = 2,
            .groups = 1,
            .c_in = 64,
            .c_out = 24,
            .in = { 1, 8, 8 },
            .kernel = { 1, 1, 1 },
            .stride = { 1, 2, 2 },
            .dilation = { 1, 1, 1 } },
          { .bias = true, .post = true } },
        { { .images = 1,
            .groups = 4,
            .c_in = 32,
            .c_out = 64,
            .in = { 1, 9, 9 },
            .kernel = { 1, 3, 3 },
            .stride = { 1, 1, 1 },
            .dilation = { 1, 1, 1 },
            .pad = { 0, 1, 1 } },
          { .bias = true, .gap = 3 } },
        { { .images = 1,
            .groups = 1,
            .c_in = 1024,
            .c_out = 33,
            .in = { 1, 4, 4 },
            .kernel = { 1, 1, 1 },
            .stride = { 1, 1, 1 },
            .dilation = { 1, 1, 1 } },
          { .bias = true } },
    };
    for (size_t i = 0; i < COUNT_OF(list); i++) {
        conv_check_all(list[i].s, list[i].s.pad, &list[i].o, &r);
    }
}

static void unsound_shapes(void)
{
    const conv_shape good = { .images = 1,
                              .groups = 1,
                              .c_in = 4,
                              .c_out = 4,
                              .in = { 1, 8, 8 },
                              .out = { 1, 8, 8 },
                              .kernel = { 1, 1, 1 },
                              .stride = { 1, 1, 1 },
                              .dilation = { 1, 1, 1 } };
    CHECK(conv_shape_check(&good) == NULL);
    conv_shape bad = good;
    bad.groups = 0;
    CHECK(conv_shape_check(&bad) != NULL);
    bad = good;
    bad.groups = 3;
    CHECK(conv_shape_check(&bad) != NULL);
    bad = good;
    bad.c_in = INT64_MAX;
    CHECK(conv_shape_check(&bad) != NULL);
    bad = good;
    bad.stride[1] = 0;
    CHECK(conv_shape_check(&bad) != NULL);
    bad = good;
    bad.out[1] = bad.out[2] = (int64_t)1 << 30;
    CHECK(conv_shape_check(&bad) != NULL);
    bad = good;
    bad.dilation[2] = (int64_t)1 << 31;
    bad.kernel[2] = 3;
    CHECK(conv_shape_check(&bad) != NULL);
    const gemm_shape product = { .m = -1, .n = 1, .k = 1, .taps = 1 };
    CHECK(gemm_shape_check(&product) != NULL);
}

static const test tests[] = { T(unsound_shapes), T(random_convolutions), T(network_layers), { 0 } };
TEST_MAIN(tests)
