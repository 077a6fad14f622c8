/* SPDX-License-Identifier: Apache-2.0 */
/* test_cpu_units.c - products and convolutions of every unit (f32, bf16, 8-bit integers) at every level, against sums
 * in double or exact integers. Operands end where a page ends that nobody may touch. */
#include "../cpu_numeric.h"
#include "core/dtype.h"
#include "cpu/conv.h"
#include "cpu/gemm_core.h"
#include "cpu/integer.h"

#include <sys/mman.h>
#include <unistd.h>

/* `size` bytes whose end is the end of a page. What lies before them is 0xff. */
typedef struct ending {
    char *whole, *at;
    size_t pages, size;
} ending;

static ending ending_create(size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (size + 64 + page - 1) / page * page;
    ending e = { .pages = pages + page, .size = size };
    e.whole = mmap(NULL, e.pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (e.whole == MAP_FAILED || mprotect(e.whole + pages, page, PROT_NONE)) abort();
    memset(e.whole, 0xff, pages);
    e.at = e.whole + pages - size;
    return e;
}
static bool ending_intact(const ending *e)
{
    for (const char *p = e->at - 64; p < e->at; p++)
        if (*p != (char)0xff) return false;
    return true;
}
static void ending_destroy(ending *e)
{
    (void)munmap(e->whole, e->pages);
}

static int64_t size_of(sinter_dtype t)
{
    return sinter_dtype_bits(t) / 8;
}
static double get(sinter_dtype t, const void *p, int64_t i)
{
    return dtype_is_int(t) ? (double)dtype_load_i64(t, p, i) : dtype_load_f64(t, p, i);
}
static void put_random(numbers *r, sinter_dtype t, void *p, int64_t i)
{
    if (dtype_is_int(t))
        dtype_store_i64(t, p, i, t == SINTER_DTYPE_U8 ? numbers_in(r, 0, 255) : numbers_in(r, -128, 127));
    else dtype_store_f64(t, p, i, (double)numbers_float(r));
}

/* A weight for a unit: neighbours of a narrow one fit in 16 bits together. */
static void put_weight(numbers *r, gemm_unit unit, sinter_dtype t, void *p, int64_t i)
{
    if (unit == GEMM_U8_NARROW) dtype_store_i64(t, p, i, numbers_in(r, -64, 64));
    else put_random(r, t, p, i);
}

/* What the drain gave: each element once. */
typedef struct drained {
    double *c;
    int64_t m, n;
    long elements;
    bool is_integer, wrong;
} drained;

static void take(void *user, int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols, void *c, int64_t ldc)
{
    drained *d = user;
    if (row + rows > d->m || col + cols > d->n || ldc < cols) d->wrong = true;
    for (int64_t i = 0; i < rows && !d->wrong; i++) {
        for (int64_t j = 0; j < cols; j++) {
            double *to = &d->c[(batch * d->m + row + i) * d->n + col + j];
            d->wrong = d->wrong || !isnan(*to);
            *to = d->is_integer ? (double)((const int32_t *)c)[i * ldc + j] : (double)((const float *)c)[i * ldc + j];
            d->elements++;
        }
    }
}

typedef struct product {
    int64_t m, n, k, batch;
    sinter_dtype a;
    bool raw, a_turned, b_turned, drain, narrow_c, narrow_bias, narrow_residual, bias, residual, clip, scale;
} product;

/* A unit that splits numbers in two errs by 2^-15 of each product at most. */
static bool is_near(exact x, double got, gemm_unit unit, bool is_narrow)
{
    if (gemm_unit_is_integer(unit)) return got == (double)(int32_t)(uint32_t)(int64_t)x.sum;
    const double factor = 4.0 + sqrt((double)x.count) + (unit == GEMM_F32_AMX_SHORT ? 256.0 : 0.0);
    return fabs(got - x.sum) <= x.size * factor * 1.2e-7 + (is_narrow ? fabs(x.sum) / 256 : 0) + 1e-30;
}

static void product_check(isa_level isa, const product *s, gemm_tactic t, numbers *r)
{
    const gemm_unit unit = (gemm_unit)t.unit;
    const bool is_integer = gemm_unit_is_integer(unit);
    const sinter_dtype b_type = is_integer ? SINTER_DTYPE_I8 : gemm_unit_type(unit);
    const int64_t pad = numbers_in(r, 0, 3), b_pad = numbers_in(r, 0, 2), c_pad = numbers_in(r, 0, 3);
    const int64_t a_inner = (s->a_turned ? s->m : s->k) + pad, b_inner = (s->b_turned ? s->k : s->n) + b_pad;
    gemm_params p = { .isa = isa, .tactic = t, .m = s->m, .n = s->n, .k = s->k, .b_raw = s->raw, .a_type = s->a };
    p.a_row = s->a_turned ? 1 : a_inner;
    p.a_col = s->a_turned ? a_inner : 1;
    p.b_row = s->b_turned ? 1 : b_inner;
    p.b_col = s->b_turned ? b_inner : 1;
    p.ldc = s->n + c_pad;
    /* The last row ends with its last element. */
    const int64_t a_lines = s->a_turned ? s->k : s->m, b_lines = s->b_turned ? s->n : s->k;
    const int64_t a_count = s->batch * a_lines * a_inner, b_count = s->batch * b_lines * b_inner;
    const int64_t c_count = s->batch * s->m * p.ldc;
    p.batch[2] = s->batch;
    p.a_batch[2] = a_lines * a_inner;
    p.b_batch[2] = s->raw ? b_lines * b_inner : 0;
    p.c_batch[2] = p.residual_batch[2] = s->m * p.ldc;
    const int64_t c_size = s->narrow_c ? 2 : 4;
    const sinter_dtype c_type = is_integer ? SINTER_DTYPE_I32 : s->narrow_c ? SINTER_DTYPE_BF16 : SINTER_DTYPE_F32;
    const sinter_dtype bias_type = s->narrow_bias ? SINTER_DTYPE_BF16 : SINTER_DTYPE_F32,
                       residual_type = s->narrow_residual ? SINTER_DTYPE_BF16 : SINTER_DTYPE_F32;
    ending a = ending_create((size_t)((a_count - pad) * size_of(s->a)));
    ending b = ending_create((size_t)((b_count - b_pad) * size_of(b_type)));
    ending c = ending_create((size_t)((c_count - c_pad) * c_size));
    ending bias = ending_create((size_t)(s->n * size_of(bias_type)));
    ending residual = ending_create((size_t)((c_count - c_pad) * size_of(residual_type)));
    for (int64_t i = 0; i < a_count - pad; i++)
        if (i % a_inner < a_inner - pad) put_random(r, s->a, a.at, i);
    for (int64_t i = 0; i < b_count - b_pad; i++)
        if (i % b_inner < b_inner - b_pad) put_weight(r, unit, b_type, b.at, i);
    for (int64_t i = 0; i < s->n; i++) put_random(r, bias_type, bias.at, i);
    for (int64_t i = 0; i < c_count - c_pad; i++) put_random(r, residual_type, residual.at, i);
    p.a = a.at;
    p.c = c.at;
    p.narrow_c = s->narrow_c;
    p.epilogue = (gemm_epilogue){ .scale = s->scale, .alpha = 0.37f, .clip = s->clip, .lo = -0.5f, .hi = 1.5f };
    p.epilogue.ldr = p.ldc;
    if (s->bias && s->narrow_bias) p.epilogue.narrow_bias = (const uint16_t *)(const void *)bias.at;
    else if (s->bias) p.epilogue.bias = (const float *)(const void *)bias.at;
    if (s->residual && s->narrow_residual) p.epilogue.narrow_residual = (const uint16_t *)(const void *)residual.at;
    else if (s->residual) p.epilogue.residual = (const float *)(const void *)residual.at;
    drained d = { .m = s->m, .n = s->n, .is_integer = is_integer };
    d.c = malloc((size_t)(s->batch * s->m * s->n) * sizeof *d.c + 8);
    for (int64_t i = 0; i < s->batch * s->m * s->n; i++) d.c[i] = NAN;
    p.epilogue.drain = s->drain;
    if (s->drain) p.epilogue.post = take;
    ending packed = ending_create(gemm_pack_size(isa, t, 1, s->k, s->n));
    p.b = b.at;
    if (!s->raw) {
        gemm_pack(isa, t, 1, s->k, s->n, b.at, 0, p.b_row, p.b_col, packed.at);
        CHECK(ending_intact(&packed));
        p.b = packed.at;
    }
    ending scratch = ending_create((gemm_scratch_size(&p) + 63) / 64 * 64);
    ending copied = ending_create(gemm_copied_size(&p));
    if (t.copy_a == GEMM_COPY_FIRST) {
        const int64_t pieces = gemm_copy_count(&p), some = numbers_in(r, 0, pieces);
        gemm_copy(&p, some, pieces, copied.at, scratch.at);
        gemm_copy(&p, 0, some, copied.at, scratch.at);
        CHECK(ending_intact(&copied) && ending_intact(&scratch));
        p.copied = copied.at;
    }
    const int64_t tiles = gemm_tile_count(&p), cut = tiles ? numbers_in(r, 0, tiles) : 0;
    gemm_run(&p, cut, tiles, scratch.at, &d);
    gemm_run(&p, 0, cut, scratch.at, &d);
    CHECK(ending_intact(&c) && ending_intact(&scratch) && !d.wrong);
    if (s->drain) CHECK_EQ(d.elements, s->batch * s->m * s->n);

    int bad = 0;
    for (int64_t at = 0; at < s->batch * s->m; at++) {
        const int64_t i = at % s->m, batch = at / s->m;
        for (int64_t j = 0; j < p.ldc && at * p.ldc + j < c_count - c_pad; j++) {
            if (j >= s->n || s->drain) { /* not written */
                bad += memcmp(c.at + (at * p.ldc + j) * c_size, "\xff\xff\xff\xff", (size_t)c_size) != 0;
                if (j >= s->n) continue;
            }
            exact x = { 0 };
            for (int64_t k = 0; k < s->k; k++) {
                double left = get(s->a, a.at, batch * p.a_batch[2] + i * p.a_row + k * p.a_col);
                if (is_integer && s->a == SINTER_DTYPE_I8) left += 128;
                if (gemm_unit_type(unit) == SINTER_DTYPE_BF16 && s->a == SINTER_DTYPE_F32) {
                    uint16_t rounded;
                    dtype_store_f64(SINTER_DTYPE_BF16, &rounded, 0, left);
                    left = dtype_load_f64(SINTER_DTYPE_BF16, &rounded, 0);
                }
                exact_add(&x, left, get(b_type, b.at, batch * p.b_batch[2] + k * p.b_row + j * p.b_col));
            }
            if (!is_integer) {
                if (s->scale) x.sum *= 0.37;
                if (s->bias) x.sum += get(bias_type, bias.at, j), x.size += 1;
                if (s->residual) x.sum += get(residual_type, residual.at, at * p.ldc + j), x.size += 1;
                if (s->clip) x.sum = fmin(1.5, fmax(-0.5, x.sum));
            }
            const double got = s->drain ? d.c[at * s->n + j] : get(c_type, c.at, at * p.ldc + j);
            if (is_near(x, got, unit, s->narrow_c && !s->drain) || bad++) continue;
            char printed[64];
            (void)gemm_tactic_print(printed, sizeof printed, isa, t);
            printf("%s %s m%d n%d k%d at %d,%d: %g, not %g\n", isa_level_name(isa), printed, (int)s->m, (int)s->n,
                   (int)s->k, (int)at, (int)j, got, x.sum);
        }
    }
    CHECK_EQ(bad, 0);
    free(d.c);
    ending_destroy(&a), ending_destroy(&b), ending_destroy(&c), ending_destroy(&bias), ending_destroy(&residual);
    ending_destroy(&packed), ending_destroy(&scratch), ending_destroy(&copied);
}

/* Units that this machine can run at a level. It is asked once: in a virtual machine that takes long. */
static bool has_unit(isa_level isa, gemm_unit unit)
{
    static isa_choice machine;
    static bool is_known;
    if (!is_known) machine = isa_detect();
    is_known = true;
    return gemm_unit_set(isa, unit) && !(gemm_unit_needs(isa, unit) & ~machine.features);
}

/* Whether rows of A in this type become others where they are copied. */
static bool is_converted(gemm_unit unit, sinter_dtype a)
{
    return a != gemm_unit_type(unit) || gemm_unit_splits(unit);
}

/* A product that the unit takes, whatever the bits. */
static product product_of(gemm_unit unit, uint32_t bits, numbers *r)
{
    const bool is_integer = gemm_unit_is_integer(unit), is_narrow = gemm_unit_type(unit) == SINTER_DTYPE_BF16;
    product s = { .m = numbers_in(r, 1, bits >> 12 & 1 ? 80 : 9),
                  .n = numbers_in(r, 1, bits >> 13 & 1 ? 200 : 40),
                  .k = numbers_in(r, 1, bits >> 14 & 1 ? 150 : 20),
                  .batch = numbers_in(r, 1, 2),
                  .a = gemm_unit_type(unit),
                  .raw = bits & 1,
                  .a_turned = bits >> 1 & 1,
                  .b_turned = bits >> 2 & 1,
                  .drain = bits >> 3 & 1 };
    if (bits >> 4 & 1 && !gemm_unit_splits(unit))
        s.a = is_integer ? SINTER_DTYPE_I8 : is_narrow ? SINTER_DTYPE_F32 : SINTER_DTYPE_F16;
    if (is_integer) return s;
    s.bias = bits >> 5 & 1, s.residual = bits >> 6 & 1, s.clip = bits >> 7 & 1, s.scale = bits >> 8 & 1;
    if (is_narrow) s.narrow_c = bits >> 9 & 1, s.narrow_bias = bits >> 10 & 1, s.narrow_residual = bits >> 11 & 1;
    return s;
}

static void random_products(void)
{
    numbers r = { .state = 11 };
    for (int i = 0; i < (test_is_full() ? 2000 : 150); i++) {
        for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
            for (int u = 0; u < GEMM_UNITS; u++) {
                if (!has_unit(isa, (gemm_unit)u)) continue;
                const product s = product_of((gemm_unit)u, numbers_next(&r), &r);
                const gemm_shape shape = { .m = s.m,
                                           .n = s.n,
                                           .k = s.k,
                                           .taps = 1,
                                           .a_row = s.a_turned ? 1 : s.k,
                                           .a_col = s.a_turned ? s.m + 1 : 1,
                                           .b_raw = s.raw,
                                           .is_whole = true,
                                           .unit = (gemm_unit)u,
                                           .is_converted = is_converted((gemm_unit)u, s.a) };
                gemm_tactic list[GEMM_TACTICS_MAX];
                const int count = gemm_tactics(isa, &shape, list);
                CHECK(count >= 1);
                for (int t = 0; t < count; t++) {
                    CHECK(gemm_tactic_check(isa, &shape, list[t]) == NULL);
                    product_check(isa, &s, list[t], &r);
                    if (!list[t].copy_a || s.raw) continue;
                    list[t].copy_a = GEMM_COPY_FIRST; /* listed where there are several blocks of columns */
                    CHECK(gemm_tactic_check(isa, &shape, list[t]) == NULL);
                    product_check(isa, &s, list[t], &r);
                }
            }
        }
    }
}

/* Every register tile of every unit, and rows of every number of terms in the last word. */
static void every_tile(void)
{
    numbers r = { .state = 12 };
    for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
        for (int u = 0; u < GEMM_UNITS; u++) {
            if (!has_unit(isa, (gemm_unit)u)) continue;
            const gemm_tile_set *set = gemm_unit_set(isa, (gemm_unit)u);
            for (int v = 1; v <= GEMM_VECTORS_MAX; v++) {
                for (int rows = 1; rows <= set->rows_max[v - 1]; rows++) {
                    product s = product_of((gemm_unit)u, numbers_next(&r), &r);
                    const bool is_copied = s.a_turned || is_converted((gemm_unit)u, s.a);
                    const gemm_tactic t = { .vectors = (uint8_t)v & 15u,
                                            .unit = (uint8_t)u & 15u,
                                            .rows = (uint8_t)rows,
                                            .copy_a = is_copied && !s.raw ? GEMM_COPY_FIRST : is_copied,
                                            .ahead = (uint8_t)(rows / 2 % 3) & 3u,
                                            .block_m = 1,
                                            .block_n = 1 };
                    for (int64_t tail = 1; tail <= set->lanes; tail += 3) {
                        s.m = rows;
                        s.n = (v - 1) * set->lanes + tail;
                        s.k = numbers_in(&r, 1, 37);
                        product_check(isa, &s, t, &r);
                    }
                }
            }
        }
    }
}

/* ---- convolutions ---- */

typedef struct conv_case {
    conv_shape s;
    sinter_dtype x;
    uint8_t pad_byte;
    bool drain;
} conv_case;

static double conv_reference(const conv_case *k, const conv_params *p, sinter_dtype w_type, const void *w,
                             int64_t pixel, int64_t channel, exact *out)
{
    const conv_shape *s = &k->s;
    const int64_t c_in = s->c_in / s->groups, group = channel / (s->c_out / s->groups);
    const int64_t ox = pixel % s->out[2], oy = pixel / s->out[2] % s->out[1], image = pixel / s->out[2] / s->out[1];
    exact e = { 0 };
    for (int64_t h = 0; h < s->kernel[1]; h++) {
        for (int64_t x = 0; x < s->kernel[2]; x++) {
            const int64_t iy = oy * s->stride[1] - s->pad[1] + h * s->dilation[1],
                          ix = ox * s->stride[2] - s->pad[2] + x * s->dilation[2];
            const bool inside = iy >= 0 && iy < s->in[1] && ix >= 0 && ix < s->in[2];
            for (int64_t c = 0; c < c_in; c++) {
                const int64_t from = image * s->x_image + iy * s->x_dim[1] + ix * s->x_dim[2];
                double v = k->x == SINTER_DTYPE_I8 ? (double)(int8_t)k->pad_byte : (double)k->pad_byte;
                if (inside) v = get(k->x, p->x, from + (group * c_in + c) * s->x_c);
                if (k->x == SINTER_DTYPE_I8) v += 128;
                const int64_t at = ((channel * c_in + c) * s->kernel[1] + h) * s->kernel[2] + x;
                exact_add(&e, v, get(w_type, w, at));
            }
        }
    }
    *out = e;
    return e.sum;
}

static void conv_check(isa_level isa, const conv_case *k, conv_tactic t, numbers *r)
{
    const conv_shape *s = &k->s;
    const gemm_unit unit = (gemm_unit)t.gemm.unit;
    const bool is_integer = gemm_unit_is_integer(unit);
    const sinter_dtype w_type = is_integer ? SINTER_DTYPE_I8 : gemm_unit_type(unit);
    const int64_t x_count = s->images * s->in[1] * s->in[2] * s->c_in, pixels = s->images * s->out[1] * s->out[2];
    const int64_t w_count = s->c_out * (s->c_in / s->groups) * s->kernel[1] * s->kernel[2];
    ending x = ending_create((size_t)(x_count * size_of(k->x))), w = ending_create((size_t)(w_count * size_of(w_type)));
    for (int64_t i = 0; i < x_count; i++) put_random(r, k->x, x.at, i);
    for (int64_t i = 0; i < w_count; i++) put_weight(r, unit, w_type, w.at, i);
    ending packed = ending_create(conv_pack_size(isa, s, t)), y = ending_create((size_t)(pixels * s->c_out) * 4);
    const int64_t area = s->kernel[1] * s->kernel[2];
    const int64_t strides[5] = { s->c_in / s->groups * area, area, 0, s->kernel[2], 1 };
    conv_pack(isa, s, t, w.at, strides, packed.at);
    CHECK(ending_intact(&packed));
    drained d = { .m = pixels, .n = s->c_out, .is_integer = is_integer };
    d.c = malloc((size_t)(pixels * s->c_out) * sizeof *d.c + 8);
    for (int64_t i = 0; i < pixels * s->c_out; i++) d.c[i] = NAN;
    conv_params p = { .isa = isa,
                      .tactic = t,
                      .shape = *s,
                      .x_type = k->x,
                      .pad_byte = k->pad_byte,
                      .x = x.at,
                      .w = packed.at,
                      .y = y.at,
                      .ldy = s->c_out,
                      .epilogue = { .drain = k->drain, .post = k->drain ? take : NULL } };
    ending workspace = ending_create((conv_workspace_size(&p) + 63) / 64 * 64),
           scratch = ending_create((conv_scratch_size(&p) + 63) / 64 * 64);
    for (int phase = 0; phase < conv_phase_count(&p); phase++)
        conv_run(&p, phase, 0, conv_tile_count(&p, phase), workspace.at, scratch.at, &d);
    CHECK(ending_intact(&y) && ending_intact(&scratch) && ending_intact(&workspace) && !d.wrong);
    int bad = 0;
    for (int64_t i = 0; i < pixels; i++) {
        for (int64_t c = 0; c < s->c_out; c++) {
            exact e;
            const double want = conv_reference(k, &p, w_type, w.at, i, c, &e);
            const double got = k->drain ? d.c[i * s->c_out + c]
                                        : get(is_integer ? SINTER_DTYPE_I32 : SINTER_DTYPE_F32, y.at, i * s->c_out + c);
            if (is_near(e, got, unit, false) || bad++) continue;
            char printed[64];
            (void)conv_tactic_print(printed, sizeof printed, isa, t);
            printf("%s %s pixel %d channel %d: %g, not %g\n", isa_level_name(isa), printed, (int)i, (int)c, got, want);
        }
    }
    CHECK_EQ(bad, 0);
    free(d.c);
    ending_destroy(&x), ending_destroy(&w), ending_destroy(&packed), ending_destroy(&y), ending_destroy(&workspace);
    ending_destroy(&scratch);
}

static conv_case conv_of(gemm_unit unit, numbers *r)
{
    const uint32_t bits = numbers_next(r);
    const bool is_integer = gemm_unit_is_integer(unit), is_narrow = gemm_unit_type(unit) == SINTER_DTYPE_BF16;
    conv_case k = { .x = gemm_unit_type(unit), .drain = bits & 1 };
    if (bits >> 1 & 1 && !gemm_unit_splits(unit))
        k.x = is_integer ? SINTER_DTYPE_I8 : is_narrow ? SINTER_DTYPE_BF16 : SINTER_DTYPE_F16;
    if (is_integer && bits >> 2 & 1) k.pad_byte = (uint8_t)numbers_in(r, 0, 255);
    conv_shape *s = &k.s;
    s->groups = bits >> 3 & 1 ? 2 : 1;
    s->images = numbers_in(r, 1, 2);
    s->c_in = s->groups * (bits >> 4 & 1 ? numbers_in(r, 1, 5) : numbers_in(r, 1, 70));
    s->c_out = s->groups * numbers_in(r, 1, 40);
    for (int i = 0; i < 3; i++) {
        s->kernel[i] = i ? numbers_in(r, 1, 3) : 1;
        s->stride[i] = i ? numbers_in(r, 1, 2) : 1;
        s->dilation[i] = i ? numbers_in(r, 1, 2) : 1;
        s->pad[i] = i ? numbers_in(r, 0, 2) : 0;
        s->in[i] = i ? numbers_in(r, 5, 9) : 1;
        s->out[i] = (s->in[i] + 2 * s->pad[i] - (s->kernel[i] - 1) * s->dilation[i] - 1) / s->stride[i] + 1;
    }
    const bool is_last = bits >> 5 & 1;
    s->x_c = is_last ? 1 : s->in[1] * s->in[2];
    s->x_dim[2] = is_last ? s->c_in : 1;
    s->x_dim[1] = s->x_dim[2] * s->in[2];
    s->x_dim[0] = s->x_image = s->in[1] * s->in[2] * s->c_in;
    s->unit = unit;
    s->has_zeros = is_integer && bits >> 6 & 1;
    s->is_converted = is_converted(unit, k.x);
    return k;
}

static void random_convolutions(void)
{
    numbers r = { .state = 13 };
    for (int i = 0; i < (test_is_full() ? 1000 : 60); i++) {
        for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
            for (int u = 0; u < GEMM_UNITS; u++) {
                if (!has_unit(isa, (gemm_unit)u)) continue;
                const conv_case k = conv_of((gemm_unit)u, &r);
                if (conv_shape_check(&k.s)) continue;
                conv_tactic list[CONV_TACTICS_MAX];
                const int count = conv_tactics(isa, &k.s, list);
                for (int t = 0; t < count; t += 2) {
                    CHECK(conv_tactic_check(isa, &k.s, list[t]) == NULL);
                    conv_check(isa, &k, list[t], &r);
                }
            }
        }
    }
}

/* ---- numbers in parts ---- */

/* Infinities, NaN and the largest numbers in rows of A and columns of B: they are where a plain sum has them, and the
 * other rows and columns are as exact as ever. */
static void special_numbers_in_parts(void)
{
    enum { M = 40, N = 37, K = 45 };
    static const float special[] = { INFINITY, -INFINITY, NAN, 3.4e38f, -3.3999e38f, 0.0f, -0.0f, 1e-42f };
    numbers r = { .state = 14 };
    for (int i = 0; i < 60; i++) {
        const gemm_unit unit = i % 2 ? GEMM_F32_AMX : GEMM_F32_AMX_SHORT;
        if (!has_unit(ISA_AVX512, unit)) return;
        float a[M][K], b[K][N], c[M][N];
        for (int64_t at = 0; at < (int64_t)M * K; at++) a[at / K][at % K] = numbers_float(&r);
        for (int64_t at = 0; at < (int64_t)K * N; at++) b[at / N][at % N] = numbers_float(&r);
        for (int64_t count = numbers_in(&r, 1, 4); count > 0; count--) {
            const float x = special[numbers_in(&r, 0, COUNT_OF(special) - 1)];
            if (numbers_in(&r, 0, 1)) a[numbers_in(&r, 0, M - 1)][numbers_in(&r, 0, K - 1)] = x;
            else b[numbers_in(&r, 0, K - 1)][numbers_in(&r, 0, N - 1)] = x;
        }
        const gemm_tactic t = { .vectors = 2, .unit = (uint8_t)unit & 15u, .rows = 32, .copy_a = 1, .block_m = 1 };
        _Alignas(64) static char packed[1 << 16];
        gemm_params p = { .isa = ISA_AVX512,
                          .tactic = t,
                          .m = M,
                          .n = N,
                          .k = K,
                          .a = a,
                          .a_row = K,
                          .a_col = 1,
                          .b = packed,
                          .c = c,
                          .ldc = N };
        CHECK(gemm_pack_size(ISA_AVX512, t, 1, K, N) <= sizeof packed);
        gemm_pack(ISA_AVX512, t, 1, K, N, b, 0, N, 1, packed);
        ending scratch = ending_create((gemm_scratch_size(&p) + 63) / 64 * 64);
        gemm_run(&p, 0, gemm_tile_count(&p), scratch.at, NULL);
        int bad = 0;
        for (int64_t at = 0; at < (int64_t)M * N; at++) {
            exact x = { 0 };
            for (int64_t k = 0; k < K; k++) exact_add(&x, (double)a[at / N][k], (double)b[k][at % N]);
            const double got = (double)c[at / N][at % N];
            if (isfinite(x.size) && x.size > 3e38) continue; /* one order of sums may overflow where another does not */
            const bool is_same = isfinite(x.sum) ? is_near(x, got, unit, false)
                                 : isnan(x.sum)  ? isnan(got)
                                                 : got == x.sum;
            if (is_same || bad++) continue;
            printf("%s at %d,%d: %g, not %g\n", gemm_unit_name(unit), (int)(at / N), (int)(at % N), got, x.sum);
        }
        CHECK_EQ(bad, 0);
        ending_destroy(&scratch);
    }
}

/* ---- names of machines ---- */

static void choices_have_names(void)
{
    isa_choice c, all = isa_detect();
    const char *name;
    for (uint32_t i = 0; (name = isa_choice_at(i, &c)) != NULL; i++) {
        isa_choice same;
        CHECK(isa_choice_parse(name, &same) && same.level == c.level && same.features == c.features);
        CHECK_STR(isa_choice_name(c), name);
        const isa_choice cut = isa_choice_cap(all, c);
        CHECK(isa_choice_runs(all, cut) && isa_choice_runs(c, cut));
    }
    CHECK(!isa_choice_parse("avx512_", &c));
    CHECK(!isa_choice_runs((isa_choice){ ISA_AVX512, ISA_VNNI }, (isa_choice){ ISA_AVX512, ISA_BF16 }));
    CHECK(isa_level_runs(ISA_AVX512, ISA_AVX2) && isa_level_runs(ISA_NEON, ISA_PLAIN));
    CHECK(!isa_level_runs(ISA_NEON, ISA_AVX2) && !isa_level_runs(ISA_AVX512, ISA_NEON));
    CHECK(!isa_level_runs(ISA_AVX2, ISA_AVX512) && !isa_level_runs(ISA_AVX512, ISA_LEVEL_COUNT));
    CHECK_EQ(isa_choice_cap((isa_choice){ ISA_NEON, ISA_DOT }, (isa_choice){ ISA_AVX512, ISA_VNNI }).level, ISA_PLAIN);
}

static void the_best_units(void)
{
    gemm_unit u[2];
    CHECK(gemm_units_best((isa_choice){ ISA_AVX512, 0 }, GEMM_BF16, false, u) == 1 && u[0] == GEMM_BF16);
    CHECK(gemm_units_best((isa_choice){ ISA_PLAIN, ISA_FEATURES_ALL }, GEMM_U8, false, u) == 1 && u[0] == GEMM_U8);
    CHECK(gemm_units_best((isa_choice){ ISA_AVX512, ISA_FEATURES_ALL }, GEMM_F32, false, u) == 1 && u[0] == GEMM_F32);
    if (!gemm_unit_set(ISA_AVX512, GEMM_U8_AMX)) return;
    CHECK(gemm_units_best((isa_choice){ ISA_AVX2, 0 }, GEMM_U8, true, u) == 2 && u[0] == GEMM_U8_PAIRS &&
          u[1] == GEMM_U8);
    const isa_choice all = { ISA_AVX512, ISA_FEATURES_ALL };
    CHECK(gemm_units_best(all, GEMM_BF16, false, u) == 2 && u[0] == GEMM_BF16_AMX && u[1] == GEMM_BF16_DOT);
    CHECK(gemm_units_best(all, GEMM_U8, true, u) == 2 && u[0] == GEMM_U8_AMX && u[1] == GEMM_U8_DOT);
    CHECK(gemm_units_best(all, GEMM_BF16, true, u) == 1 && u[0] == GEMM_BF16);
}

/* Weights that are narrow, and those one more; the sums of the most extreme products are exact. */
static void narrow_weights(void)
{
    static const struct {
        int8_t a, b;
        bool is_narrow;
    } cases[] = { { 64, 64, true },  { 65, 64, false },   { 127, 1, true },   { 127, 2, false },   { 127, -128, true },
                  { -128, 0, true }, { -128, -1, false }, { -64, -64, true }, { -64, -65, false }, { 0, 0, true } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum { K = 22, N = 9 };
        uint8_t a[K];
        int8_t b[K][N] = { { 0 } };
        memset(a, 255, sizeof a);
        for (int k = 0; k < K; k++)
            for (int n = 0; n < N; n++) b[k][n] = k % 2 ? cases[i].b : cases[i].a;
        CHECK_EQ(integer_is_narrow((const int8_t[]){ 0, 0, cases[i].a, cases[i].b }, 4), cases[i].is_narrow);
        for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT && cases[i].is_narrow; isa = isa_level_next(isa)) {
            if (!has_unit(isa, GEMM_U8_NARROW)) continue;
            const gemm_tactic t = { .vectors = 2, .rows = 1, .unit = GEMM_U8_NARROW };
            int32_t c[N];
            gemm_params p = { .isa = isa, .tactic = t, .m = 1, .n = N, .k = K, .a = a, .a_col = 1, .c = c, .ldc = N };
            void *packed = aligned_alloc(64, gemm_pack_size(isa, t, 1, K, N)),
                 *scratch = aligned_alloc(64, (gemm_scratch_size(&p) + 63) / 64 * 64);
            gemm_pack(isa, t, 1, K, N, b, 0, N, 1, packed);
            p.b = packed;
            gemm_run(&p, 0, gemm_tile_count(&p), scratch, NULL);
            for (int n = 0; n < N; n++) CHECK_EQ(c[n], 255 * K / 2 * (cases[i].a + cases[i].b));
            free(packed);
            free(scratch);
        }
    }
}

static const test tests[] = { T(every_tile),          T(random_products),
                              T(random_convolutions), T(special_numbers_in_parts),
                              T(choices_have_names),  T(the_best_units),
                              T(narrow_weights),      { 0 } };
TEST_MAIN(tests)
