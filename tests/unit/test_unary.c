/* SPDX-License-Identifier: Apache-2.0 */
/* test_unary.c - functions of one f32 against doubles: each vector loop at each instruction set stays within what
 * scalar_error.c promises.
 *
 *     unit_test_unary [--part I/N] [FUNCTION...]
 *
 * Some 2.5 million values that lie evenly among all 2^32 (fewer without optimisation), and those around each power of
 * two. SINTER_TEST_SCALE=full takes every value and prints the largest errors that it found: some 50 core minutes for
 * all functions. --part takes the I-th of N equal ranges of them, from 1 on. */
#include "cpu/vm.h"
#include "cpu/level.h"
#include "test.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

enum { BLOCK = 2048, LEVELS = ISA_LEVEL_COUNT, WORKERS = 256, AROUND = 512 * 128 };

typedef struct finding {
    double ulps; /* beyond what is permitted whatever the size */
    uint32_t at;
    bool is_wrong; /* another kind of number than is wanted, `wrong` for one */
    uint32_t wrong;
} finding;

/* Which values: those numbered begin to end, of which each stands for `stride` floats. */
typedef struct range {
    uint64_t begin, end, stride;
} range;

/* The values of one thread: blocks of the range, `step` values apart. */
typedef struct share {
    op_id op;
    range values;
    uint64_t step;
    finding found[LEVELS];
} share;

static float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* The first AROUND values are 64 before and after each power of two of either sign, zeros and infinities. */
static uint32_t value_at(uint64_t i, uint64_t stride)
{
    if (i < AROUND) return (uint32_t)(i >> 7 << 23) + (uint32_t)(i & 127) - 64;
    return (uint32_t)((i - AROUND) * stride);
}

static double ulp_of(double v)
{
    int exponent;
    (void)frexp(v, &exponent);
    return ldexp(1, exponent < -125 ? -149 : exponent - 24);
}

static double exact(op_id op, uint32_t bits)
{
    return scalar_eval(op, SINTER_DTYPE_F32, SINTER_DTYPE_F32, &(scalar){ .f = (double)float_of(bits) }).f;
}

/* The error in units of the last place of `want`, beyond `least`; negative: another kind of number. An infinity
 * counts as 2^128. */
static double error_of(double got, double want, double least)
{
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got) ? 0 : -1;
    if (got == want) return signbit(got) == signbit(want) ? 0 : -1;
    const double w = fabs(want) > 0x1p128 ? copysign(0x1p128, want) : want;
    const double g = isinf(got) ? copysign(0x1p128, got) : got;
    if (signbit(g) != signbit(w) && g == 0) return -1;
    const double gap = fabs(g - w) - least;
    return gap > 0 ? gap / ulp_of(w == 0x1p128 || w == -0x1p128 ? 0x1p127 : w) : 0;
}

static void note(finding *f, uint32_t bits, double error)
{
    if (error > f->ulps) {
        f->ulps = error;
        f->at = bits;
    }
    if (error >= 0 || f->is_wrong) return;
    f->is_wrong = true;
    f->wrong = bits;
}

/* Most results are the exact value rounded: their error is at most a half. */
static void compare(finding *f, const share *s, uint64_t start, const float *got, const double *want, uint32_t n)
{
    const double least = scalar_error_of(s->op).least;
    for (uint32_t i = 0; i < n; i++) {
        const float rounded = (float)want[i];
        if (memcmp(&got[i], &rounded, sizeof rounded) != 0)
            note(f, value_at(start + i, s->values.stride), error_of((double)got[i], want[i], least));
    }
}

static void *run_share(void *arg)
{
    share *s = arg;
    float x[BLOCK], got[BLOCK];
    double want[BLOCK];
    const vm_op op = { .op = (uint16_t)s->op, .from = SINTER_DTYPE_F32, .to = SINTER_DTYPE_F32, .arity = 1 };
    for (uint64_t start = s->values.begin; start < s->values.end; start += s->step) {
        const uint64_t left = s->values.end - start;
        const uint32_t n = left < BLOCK ? (uint32_t)left : BLOCK;
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t bits = value_at(start + i, s->values.stride);
            x[i] = float_of(bits);
            want[i] = exact(s->op, bits);
        }
        for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
            level_of(isa)->vm->unary[s->op](&op, got, x, x, x, (int64_t)n);
            compare(&s->found[isa], s, start, got, want, n);
        }
    }
    return NULL;
}

static void judge(op_id op, isa_level isa, const finding *f, bool is_full)
{
    const char *name = scalar_at(op)->name, *level = isa_level_name(isa);
    const double ulps = scalar_error_of(op).ulps;
    if (is_full)
        (void)printf("%-10s %-6s %6.3f ulps at %.9g, %g promised\n", name, level, f->ulps > 0.5 ? f->ulps : 0.5,
                     (double)float_of(f->at), ulps);
    if (f->is_wrong) {
        test_failures++;
        (void)printf("%s at %s: of %.9g (0x%08x) another kind of number than %.9g\n", name, level,
                     (double)float_of(f->wrong), f->wrong, exact(op, f->wrong));
    }
    if (f->ulps <= ulps + 1e-6) return;
    test_failures++;
    (void)printf("%s at %s: %.3f ulps at %.9g (0x%08x), %g are promised\n", name, level, f->ulps,
                 (double)float_of(f->at), f->at, ulps);
}

/* By as many threads as there are processors. */
static void run_function(op_id op, range values, bool is_full)
{
    static share shares[WORKERS];
    pthread_t thread[WORKERS];
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const uint32_t workers = online < 1 ? 1 : online > WORKERS ? WORKERS : (uint32_t)online;
    for (uint32_t i = 0; i < workers; i++) {
        shares[i] = (share){ .op = op, .values = values, .step = (uint64_t)workers * BLOCK };
        shares[i].values.begin += (uint64_t)i * BLOCK;
        if (pthread_create(&thread[i], NULL, run_share, &shares[i])) exit(2);
    }
    for (uint32_t i = 0; i < workers; i++) (void)pthread_join(thread[i], NULL);
    for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
        finding all = shares[0].found[isa];
        for (uint32_t i = 1; i < workers; i++) {
            const finding *f = &shares[i].found[isa];
            note(&all, f->at, f->ulps);
            if (f->is_wrong) note(&all, f->wrong, -1);
        }
        judge(op, isa, &all, is_full);
    }
}

/* The part-th of `parts` ranges, from 1 on. */
static range range_of(uint64_t part, uint64_t parts)
{
#ifdef __OPTIMIZE__
    const long quick = 1709;
#else
    const long quick = 42901;
#endif
    const uint64_t stride = test_is_full() ? 1 : (uint64_t)quick;
    const uint64_t all = AROUND + ((UINT64_C(1) << 32) + stride - 1) / stride;
    return (range){ all / parts * (part - 1), part == parts ? all : all / parts * part, stride };
}

int main(int argc, char **argv)
{
    unsigned part = 1, parts = 1;
    int first = 1, ran = 0;
    if (argc > 2 && !strcmp(argv[1], "--part")) {
        if (sscanf(argv[2], "%u/%u", &part, &parts) != 2 || !part || part > parts) {
            (void)fprintf(stderr, "--part: '%s' is not I/N with I from 1 to N\n", argv[2]);
            return 2;
        }
        first = 3;
    }
    const range values = range_of(part, parts);
    for (uint32_t op = 0; op < OP_SCALAR_COUNT; op++) {
        if (!level_of(ISA_PLAIN)->vm->unary[op]) continue;
        if (!test_is_wanted(scalar_at((op_id)op)->name, argc - first + 1, argv + first - 1)) continue;
        run_function((op_id)op, values, test_is_full());
        ran++;
    }
    (void)printf("%d functions of %" PRIu64 " values, %d failures\n", ran, values.end - values.begin, test_failures);
    return test_failures || !ran;
}
