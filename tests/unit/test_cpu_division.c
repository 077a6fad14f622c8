/* SPDX-License-Identifier: Apache-2.0 */
/* test_cpu_division.c - division of int64 by the loops of each level: numbers of every length, above all those beside
 * the limits of f64, by one divisor and by many. */
#include "cpu/isa.h"
#include "cpu/level.h"
#include "cpu/vm.h"
#include "test.h"

enum { MOST = 300 };

/* A number of up to 63 bits of either sign, often beside a power of two. */
static int64_t number(uint64_t *seed)
{
    const uint64_t bits = test_random(seed) % 64, all = test_random(seed), near = all % 5;
    const uint64_t size = all % 2 ? ((uint64_t)1 << bits) - 2 + near : bits ? all >> (64 - bits) : 0;
    return (int64_t)(test_random(seed) % 2 ? size : 0 - size);
}

static int64_t wanted(op_id op, int64_t x, int64_t y)
{
    if (op == OP_div) return y == 0 ? 0 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
    const int64_t rest = y == 0 || y == -1 ? 0 : x % y;
    return op == OP_mod && rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

static void divides(void)
{
    static const op_id ops[] = { OP_div, OP_mod, OP_fmod };
    static int64_t x[MOST], y[MOST], z[MOST];
    const isa_level have = isa_detect().level;
    uint64_t seed = 5;
    for (int round = 0; round < 3000; round++) {
        const int64_t n = (int64_t)(test_random(&seed) % MOST), one = number(&seed);
        const uint64_t divisors = test_random(&seed) % 3; /* one, many, runs of equal ones */
        for (int64_t i = 0; i < n; i++) {
            x[i] = number(&seed);
            y[i] = divisors == 0 ? one : divisors == 2 && i % 16 ? y[i - 1] : number(&seed);
            if (test_random(&seed) % 4 == 0) x[i] = (int64_t)((uint64_t)(x[i] % 1000) * (uint64_t)y[i]); /* no rest */
        }
        const op_id op = ops[round % 3];
        for (int level = ISA_PLAIN; level < ISA_LEVEL_COUNT; level++) {
            vm_fn *loop = level_of((isa_level)level)->vm->i64[op][0];
            if (!isa_level_runs(have, (isa_level)level) || !loop) continue;
            loop(NULL, z, x, y, NULL, n);
            for (int64_t i = 0; i < n; i++) CHECK_EQ(z[i], wanted(op, x[i], y[i]));
        }
    }
}

static const test tests[] = { T(divides), { 0 } };
TEST_MAIN(tests)
