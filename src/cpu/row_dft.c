/* SPDX-License-Identifier: Apache-2.0 */
/* row_dft.c - Fourier transforms of f32 of any length, along any axis, real and complex, and back (dft.h).
 *
 * Some lines are copied into buffers, element by element beside each other, transformed there and copied out. Real
 * lines of an even length are transforms of half as many complex numbers. A length with a large prime factor takes as
 * many steps for each element as that factor has units. */
#include "cpu/cpu_kernels.h"
#include "cpu/dft.h"
#include "cpu/level.h"
#include "cpu/cpu_lines.h"
#include "cpu/row.h"

#include <math.h>

/* BUFFER: bytes of the two buffers of a thread, where one line does not need more. FACTORS: of a number below ROOTS. */
enum { LANES = 16, BUFFER = 1 << 18, FACTORS = 24, ROOTS = 1 << 22 };

typedef struct record {
    const dft_set *set;
    float *root;
    int64_t n;    /* elements of a line */
    int64_t half; /* n / 2 where the line is real, or will be: complex numbers that are transformed; else 0 */
    int64_t factor[FACTORS];
    uint32_t count; /* of factors */
    bool is_inverse, is_mirrored, is_complex_in, is_complex_out;
    int64_t x_size, x_step, x_part, bins, y_step, y_part;
    lines at;      /* of y, and of x */
    int64_t lanes; /* lines at once */
    size_t buffer; /* bytes of a thread's buffers */
} record;

/* Elements of the longest line. */
static int64_t longest(const problem *p)
{
    const attrs_dft *a = p->attrs;
    const int64_t bins = p->out[0].dim[a->axis].max;
    if (bins < 1) return 1;
    return a->onesided && !a->inverse && bins < ROOTS ? 2 * bins - 1 : bins;
}

static const char *reject(const problem *p, const kernel_target *t)
{
    REJECT_UNLESS(p->op == OP_dft, "no Fourier transform");
    REJECT_UNLESS(!t->is_exact, "adds up other products: not with math=exact");
    REJECT_UNLESS(row_is_f32(p, 1), "not in f32");
    REJECT_UNLESS(!p->prologue && !p->epilogue, "takes no programs");
    const attrs_dft *a = p->attrs;
    const uint32_t rank = p->in[0].rank;
    REJECT_UNLESS(p->out[0].rank == rank && a->axis >= 0 && a->axis + 1 < (int64_t)rank,
                  "no axis beside that of the parts");
    REJECT_UNLESS(longest(p) <= ROOTS, "lines of more than 4 million elements");
    return NULL;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    const double steps = log2((double)longest(p) + 1);
    return row_memory_ns(p, target, 4) + row_bytes(p) / sizeof(float) * steps * 5 / target->flops * 1e9;
}

/* Lines at once, whose two buffers are not larger than BUFFER; at least one. */
static int64_t lanes_of(int64_t n)
{
    int64_t lanes = LANES;
    while (lanes > 1 && 16 * (n + 2) * lanes > BUFFER) lanes /= 2;
    return lanes;
}

static size_t buffer_bytes(int64_t n)
{
    const size_t bytes = 16 * (size_t)(n + 2);
    return ((bytes > BUFFER ? bytes : BUFFER) + 63) & ~(size_t)63;
}

static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    (void)t;
    return buffer_bytes(longest(p)) * threads;
}

static size_t record_size(const problem *p, const tactic *t)
{
    (void)t;
    return sizeof(record) + 2 * sizeof(float) * (size_t)longest(p);
}

/* Fours first: they do the most for what they read. */
static void factors_of(record *r, int64_t n)
{
    static const int64_t small[] = { 4, 2, 3, 5 };
    for (uint32_t i = 0; i < sizeof small / sizeof *small; i++)
        for (; n % small[i] == 0; n /= small[i]) r->factor[r->count++] = small[i];
    for (int64_t f = 7; n > 1; f += 2) {
        if (f * f > n) f = n;
        for (; n % f == 0; n /= f) r->factor[r->count++] = f;
    }
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const attrs_dft *a = attrs;
    const view *x = &in[0], *y = &out[0];
    const uint32_t last = x->rank - 1;
    bool fits = y->rank == x->rank && x->rank >= 2 && a->axis >= 0 && a->axis < last && x->dim[last] >= 1 &&
                x->dim[last] <= 2 && y->dim[last] >= 1 && y->dim[last] <= 2;
    for (uint32_t i = 0; fits && i < last; i++) fits = i == a->axis || x->dim[i] == y->dim[i];
    if (!fits) return FAIL(e, INVALID_ARG, "dft: the shapes of input and output do not go together");
    const int64_t bins = y->dim[a->axis], size = x->dim[a->axis];
    const bool is_onesided = a->onesided, is_inverse = a->inverse;
    const int64_t n = a->length.count ? a->length.at[0] : is_onesided && !is_inverse ? size : bins;
    if (n < 1 || n > longest(p) || bins > n)
        return FAIL(e, INVALID_ARG, "dft: %lld results of a line of %lld", (long long)bins, (long long)n);
    *r = (record){ .set = level_of(isa)->dft,
                   .root = (float *)(r + 1),
                   .n = n,
                   .is_inverse = is_inverse,
                   .is_mirrored = is_inverse && is_onesided,
                   .is_complex_in = x->dim[last] == 2,
                   .is_complex_out = y->dim[last] == 2,
                   .x_size = size,
                   .x_step = x->stride[a->axis],
                   .x_part = x->stride[last],
                   .bins = bins,
                   .y_step = y->stride[a->axis],
                   .y_part = y->stride[last],
                   .lanes = lanes_of(n),
                   .buffer = buffer_bytes(longest(p)) };
    const bool is_real = r->is_mirrored ? !r->is_complex_out : !is_inverse && !r->is_complex_in;
    if (is_real && n % 2 == 0) r->half = n / 2;
    lines_init(&r->at, (const view *[]){ y, x }, 2, 1u << a->axis | 1u << last);
    factors_of(r, r->half ? r->half : n);
    for (int64_t k = 0; k < n; k++) {
        const double angle = 2 * 3.14159265358979323846 * (double)k / (double)n;
        r->root[2 * k] = (float)cos(angle);
        r->root[2 * k + 1] = (float)-sin(angle);
    }
    return SINTER_OK;
}

static void load_complex(const record *r, const float *x, float *re, float *im, int64_t lanes)
{
    for (int64_t k = 0; k < r->n; k++) {
        const bool is_mirror = r->is_mirrored && k > r->n / 2;
        const int64_t from = is_mirror ? r->n - k : k;
        const bool is_there = from < r->x_size;
        re[k * lanes] = is_there ? x[from * r->x_step] : 0;
        const float part = is_there && r->is_complex_in ? x[from * r->x_step + r->x_part] : 0;
        im[k * lanes] = is_mirror ? -part : part;
    }
}

/* Two real elements become one complex number. */
static void load_real(const record *r, const float *x, float *re, float *im, int64_t lanes)
{
    const int64_t have = r->x_size < r->n ? r->x_size : r->n;
    int64_t k = 0;
    for (; 2 * k + 1 < have; k++) {
        re[k * lanes] = x[2 * k * r->x_step];
        im[k * lanes] = x[(2 * k + 1) * r->x_step];
    }
    for (; k < r->half; k++) {
        re[k * lanes] = 2 * k < have ? x[2 * k * r->x_step] : 0;
        im[k * lanes] = 0;
    }
}

static void load_spectrum(const record *r, const float *x, float *re, float *im, int64_t lanes)
{
    for (int64_t k = 0; k <= r->half; k++) {
        re[k * lanes] = k < r->x_size ? x[k * r->x_step] : 0;
        im[k * lanes] = k < r->x_size ? x[k * r->x_step + r->x_part] : 0;
    }
}

static void store_complex(const record *r, float *y, const float *re, const float *im, int64_t lanes)
{
    const int64_t there = r->half && !r->is_mirrored ? r->half : r->n - 1; /* the last element that was computed */
    const float scale = r->is_inverse ? 1 / (float)r->n : 1;
    for (int64_t k = 0; k < r->bins; k++) {
        const int64_t from = k <= there ? k : r->n - k;
        y[k * r->y_step] = re[from * lanes] * scale;
        if (r->is_complex_out) y[k * r->y_step + r->y_part] = (k <= there ? scale : -scale) * im[from * lanes];
    }
}

static void store_real(const record *r, float *y, const float *re, const float *im, int64_t lanes)
{
    const float scale = 1 / (float)r->half;
    for (int64_t k = 0; k < r->bins; k++) y[k * r->y_step] = (k % 2 ? im : re)[k / 2 * lanes] * scale;
}

/* Transforms n complex numbers in `x`; the result is there or in `y`, and is returned. */
static dft_lines transform(const record *r, dft_lines x, dft_lines y, int64_t lanes)
{
    const int64_t n = r->half ? r->half : r->n;
    dft_step s = { .groups = n, .run = lanes, .turn = r->n / n, .roots = r->n, .root = r->root };
    for (uint32_t i = 0; i < r->count; i++) {
        s.radix = r->factor[i];
        s.groups /= s.radix;
        s.x = x;
        s.y = y;
        r->set->step(&s);
        s.run *= s.radix;
        s.turn *= s.radix;
        y = x;
        x = s.y;
    }
    return x;
}

static dft_lines swapped(dft_lines x)
{
    return (dft_lines){ x.im, x.re };
}

typedef struct job {
    const record *r;
    const kernel_run *k;
} job;

static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    const job *j = arg;
    const record *r = j->r;
    float *room = (float *)((char *)j->k->workspace + worker * r->buffer);
    for (int64_t g = begin; g < end; g++) {
        const int64_t first = g * r->lanes, left = r->at.count - first, lanes = left < r->lanes ? left : r->lanes;
        const int64_t part = (r->n + 2) * lanes;
        dft_lines x = { room, room + part }, y = { room + 2 * part, room + 3 * part };
        int64_t y_at[LANES];
        for (int64_t i = 0; i < lanes; i++) {
            int64_t offset[LINES_VIEWS];
            lines_at(&r->at, first + i, offset);
            const float *line = (const float *)j->k->in[0] + offset[1];
            y_at[i] = offset[0];
            if (!r->half) load_complex(r, line, x.re + i, x.im + i, lanes);
            else if (r->is_mirrored) load_spectrum(r, line, y.re + i, y.im + i, lanes);
            else load_real(r, line, x.re + i, x.im + i, lanes);
        }
        if (r->half && r->is_mirrored) r->set->from_real(x, y, r->half, lanes, r->root);
        dft_lines z = r->is_inverse ? swapped(transform(r, swapped(x), swapped(y), lanes)) : transform(r, x, y, lanes);
        if (r->half && !r->is_mirrored) {
            const dft_lines spare = z.re == x.re ? y : x;
            r->set->to_real(spare, z, r->half, lanes, r->root);
            z = spare;
        }
        for (int64_t i = 0; i < lanes; i++) {
            float *line = (float *)j->k->out[0] + y_at[i];
            if (r->half && r->is_mirrored) store_real(r, line, z.re + i, z.im + i, lanes);
            else store_complex(r, line, z.re + i, z.im + i, lanes);
        }
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { r, k };
    if (r->at.count) row_parallel(k, (r->at.count + r->lanes - 1) / r->lanes, body, &j);
    return SINTER_OK;
}

const kernel cpu_dft = {
    .name = "cpu_dft",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .numerics = KERNEL_TRANSFORMED,
    .reject = reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .workspace = workspace,
    .record_size = record_size,
    .bind = bind,
    .run = run,
};
