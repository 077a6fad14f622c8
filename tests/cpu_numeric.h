/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_numeric.h - what the tests of CPU kernels share: seeded numbers, guarded buffers, comparison with a bound.
 *
 * Buffers are filled with NaN first, so that reading or leaving what should not be read or left shows; a band on either
 * side must keep its pattern. A result may be off by a small multiple of eps times the sum of absolute products. */
#ifndef CPU_NUMERIC_H
#define CPU_NUMERIC_H

#include "test.h"
#include "cpu/gemm.h"
#include "base/env.h"
#include <math.h>

enum { BAND = 64 };

typedef struct numbers {
    uint64_t state;
} numbers;

static inline uint32_t numbers_next(numbers *r)
{
    r->state = r->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(r->state >> 33);
}
/* In [low, high]. */
static inline int64_t numbers_in(numbers *r, int64_t low, int64_t high)
{
    return low + (int64_t)(numbers_next(r) % (uint64_t)(high - low + 1));
}
static inline float numbers_float(numbers *r)
{
    return (float)((double)numbers_next(r) / 1073741824.0 - 1.0);
}

/* `count` floats between two bands, all NaN; 64-byte aligned when `skew` is 0. */
typedef struct guarded {
    char *whole;
    float *data;
    size_t count;
} guarded;

static inline guarded guarded_create(size_t count, size_t skew)
{
    guarded g = { .count = count };
    const size_t size = (count + skew + 2 * BAND) * sizeof(float);
    g.whole = aligned_alloc(64, (size + 63) / 64 * 64);
    if (!g.whole) abort();
    memset(g.whole, 0xff, (size + 63) / 64 * 64);
    g.data = (float *)(void *)g.whole + BAND + skew;
    return g;
}
static inline guarded guarded_random(numbers *r, size_t count, size_t skew)
{
    guarded g = guarded_create(count, skew);
    for (size_t i = 0; i < count; i++) g.data[i] = numbers_float(r);
    return g;
}
static inline bool guarded_intact(const guarded *g)
{
    for (size_t i = 0; i < BAND * sizeof(float); i++) {
        const char *before = (const char *)g->data - BAND * sizeof(float), *after = (const char *)(g->data + g->count);
        if (before[i] != (char)0xff || after[i] != (char)0xff) return false;
    }
    return true;
}
static inline void guarded_destroy(guarded *g)
{
    free(g->whole);
    *g = (guarded){ 0 };
}

/* One result of a sum of products: what it should be and how large its parts were. */
typedef struct exact {
    double sum, size;
    int64_t count;
} exact;

static inline void exact_add(exact *x, double a, double b)
{
    x->sum += a * b;
    x->size += fabs(a * b);
    x->count++;
}
static inline exact exact_finish(exact x, const gemm_epilogue *e, int64_t col, double residual)
{
    if (e->scale) {
        x.sum *= (double)e->alpha;
        x.size *= fabs((double)e->alpha);
    }
    if (e->bias) {
        x.sum += (double)e->bias[col];
        x.size += fabs((double)e->bias[col]);
    }
    x.sum += residual;
    x.size += fabs(residual);
    if (e->clip) x.sum = fmin((double)e->hi, fmax((double)e->lo, x.sum));
    return x;
}
static inline bool exact_near(exact x, float got)
{
    const double factor = 4.0 + sqrt((double)x.count);
    return fabs((double)got - x.sum) <= x.size * factor * 1.2e-7 + 1e-30;
}

/* The hook of the tests: counts each element once and writes what it was told into it. */
typedef struct post_seen {
    float *y;
    int64_t elements, largest;
    bool wrong;
} post_seen;

static inline void post_negate(void *user, int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols,
                               void *at, int64_t ldc)
{
    post_seen *s = user;
    float *c = at;
    if (batch == 0 && c != s->y + row * ldc + col) s->wrong = true;
    s->elements += rows * cols;
    if (rows * cols > s->largest) s->largest = rows * cols;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) c[i * ldc + j] = -c[i * ldc + j];
    }
}

#endif
