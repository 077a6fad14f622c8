/* SPDX-License-Identifier: Apache-2.0 */
/* strassen_tactic.c - which tactics are worth measuring for Strassen's products, and a rough order among them. */
#include "cpu/gemm_core.h"
#include "cpu/level.h"
#include "cpu/strassen.h"

#include <string.h>

enum { CACHE_USUAL = 1 << 20, CACHE_MOST = 8 << 20 };

/* The product of two quarters. */
static gemm_shape quarter_of(int64_t m, int64_t n, int64_t k)
{
    return (gemm_shape){ .m = m - m / 2, .n = n / 2, .k = k / 2, .taps = 1, .a_row = k / 2, .a_col = 1 };
}

const char *strassen_tactic_check(isa_level isa, int64_t m, int64_t n, int64_t k, gemm_tactic t)
{
    if (t.copy_a || t.ahead || t.unit != GEMM_F32) return "reserved bits are set";
    const gemm_shape s = quarter_of(m, n, k);
    return gemm_tactic_check(isa, &s, t);
}

double strassen_cost(isa_level isa, int64_t m, int64_t n, int64_t k, gemm_tactic t)
{
    static const double ns_per_vector = 0.15, ns_per_byte = 0.02;
    const double lanes = (double)level_of(isa)->gemm->lanes;
    gemm_tactic own = t;
    own.block_m = 0;
    const gemm_shape s = quarter_of(m, n, k);
    /* 4 loads and 4 stores for an element of a quarter of A. For one of C: 5 partial sums are stored, 7 loaded. */
    const double sums = (double)s.m * (double)s.k / lanes * 8, partial = (double)s.m * (double)s.n / lanes * 12;
    const double bytes = (double)s.k * (double)s.n * (double)sizeof(float) * (STRASSEN_FACTORS - 4);
    return STRASSEN_FACTORS * gemm_cost(isa, &s, own) + (sums + partial) * ns_per_vector + bytes * ns_per_byte + 1000;
}

int strassen_tactics(isa_level isa, int64_t m, int64_t n, int64_t k, uint64_t cache, uint32_t threads,
                     gemm_tactic out[STRASSEN_TACTICS_MAX])
{
    enum { ROWS = 140 }; /* of a work tile */
    const gemm_tile_set *set = level_of(isa)->gemm;
    const gemm_shape s = quarter_of(m, n, k);
    const int64_t near = !cache ? CACHE_USUAL : cache > CACHE_MOST ? CACHE_MOST : (int64_t)cache;
    int count = 0;
    for (int v = 2; v <= GEMM_VECTORS_MAX && set->rows_max[v - 1]; v++) {
        const int64_t width = (int64_t)v * set->lanes, panels = (s.n + width - 1) / width;
        const double bytes = (double)width * (double)s.k * (double)sizeof(float);
        const int rows = set->rows_max[v - 1];
        const int64_t tiles = (s.m + rows - 1) / rows, high = ROWS / rows;
        /* A right factor of a block takes such a part of L2: it shares it with the next factor, with sums of rows of A
         * and with three partial sums. */
        for (int64_t share = 8; share >= 4; share /= 2) {
            int64_t each = (int64_t)((double)near / (double)share / bytes);
            if (each < 1) each = 1;
            if (each > panels) each = panels;
            /* All threads have something to do, and about as much. */
            const int64_t blocks = (tiles + high - 1) / high;
            while (each > 1 && threads > 1 && blocks * ((panels + each - 1) / each) < 4 * (int64_t)threads) each--;
            const gemm_tactic t = { .vectors = (uint8_t)v & 15u,
                                    .rows = (uint8_t)rows,
                                    .block_m = (uint16_t)high,
                                    .block_n = (uint16_t)(each > UINT16_MAX ? UINT16_MAX : each) };
            bool is_new = true;
            for (int i = 0; i < count; i++) is_new = is_new && memcmp(&out[i], &t, sizeof t) != 0;
            if (is_new) out[count++] = t;
        }
    }
    for (int i = 1; i < count; i++) {
        const gemm_tactic t = out[i];
        const double cost = strassen_cost(isa, m, n, k, t);
        int at = i;
        for (; at > 0 && strassen_cost(isa, m, n, k, out[at - 1]) > cost; at--) out[at] = out[at - 1];
        out[at] = t;
    }
    return count;
}
