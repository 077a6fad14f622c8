/* SPDX-License-Identifier: Apache-2.0 */
/* level_avx512_amx.c - the micro-kernels by matrix registers. CMake compiles this file for CPUs that have them; tests
 * compile it a second time with the instructions written out in C (tests/emulated_amx). */
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cpu/simd_avx512.h"

#include "cpu/gemm_tile.h"
#include "cpu/unroll.h"

#include "cpu/simd_math.inc.h"
#include "cpu/gemm_pack.inc.h"

/* WORDS: of a row of a register. SUMS: rows of 16 sums in all registers. ROWS: finished at once. */
enum { AMX_WORDS = 16, AMX_SUMS = 64, AMX_ROWS = 4 };

/* Steps over K, and the words of each. */
static inline int64_t amx_steps(int64_t k, int64_t terms)
{
    const int64_t words = (k + terms - 1) / terms;
    return (words + AMX_WORDS - 1) / AMX_WORDS;
}
static inline int64_t amx_each(int64_t k, int64_t terms)
{
    const int64_t steps = amx_steps(k, terms);
    return steps ? gemm_words_of(terms, AMX_WORDS, k) / steps : 0;
}

/* Rows in the upper of two registers. */
static inline int32_t amx_first(int32_t rows)
{
    return (rows + 1) / 2;
}

/* What a thread tells its CPU of the registers, as the CPU reads it. */
typedef struct amx_shape {
    uint8_t palette, start, zero[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} amx_shape;
_Static_assert(sizeof(amx_shape) == 64, "read by the CPU");

static void amx_set_up(int32_t rows, int64_t each, int32_t *state)
{
    if (!each) each = 1; /* no step: the sums are 0 */
    const int32_t wanted = rows | (int32_t)each << 8;
    if (*state == wanted) return;
    *state = wanted;
    const int32_t high = rows > 16 ? amx_first(rows) : rows;
    const uint8_t first = (uint8_t)high, second = (uint8_t)(rows - high), words = (uint8_t)each;
    amx_shape s = { .palette = 1 };
    for (int i = 0; i < 8; i++) s.bytes[i] = 64;
    for (int i = 0; i < 4; i++) s.rows[i] = first;
    if (second) s.rows[2] = s.rows[3] = second;
    s.bytes[4] = (uint16_t)(4 * each);
    s.rows[4] = first;
    s.rows[5] = s.rows[6] = s.rows[7] = words;
    if (second) {
        s.bytes[5] = (uint16_t)(4 * each);
        s.rows[5] = second;
    }
    __asm__ volatile("" ::"m"(s)); /* GCC 12 believes that the next one reads 8 bytes, and stores no others */
    _tile_loadconfig(&s);
}

static void amx_give_back(void)
{
    _tile_release();
}

/* The rows of A of one register in one tap. */
typedef struct amx_rows {
    const void *const *from;
    int32_t count;
    bool is_even;             /* they lie at one distance  */
    int64_t distance;         /* bytes                     */
    int64_t done, size, each; /* bytes of a row: loaded so far; all; of a step */
    const char *at;           /* what to load, and the distance of its rows */
    int64_t stride;
    int64_t plane;    /* bytes to the part that is loaded         */
    char (*copy)[64]; /* room for 16 rows, aligned */
} amx_rows;

static inline void amx_rows_begin(amx_rows *r, const void *const *from, int32_t count)
{
    r->from = from;
    r->count = count;
    r->done = 0;
    r->distance = count > 1 ? (const char *)from[1] - (const char *)from[0] : 0;
    r->is_even = true;
    const __m512i lane = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), distance = _mm512_set1_epi64(r->distance);
    __m512i wanted =
        _mm512_add_epi64(_mm512_set1_epi64((int64_t)(intptr_t)from[0]), _mm512_mullo_epi64(lane, distance));
    for (int32_t i = 0; i < count; i += 8, wanted = _mm512_add_epi64(wanted, _mm512_slli_epi64(distance, 3))) {
        const __mmask8 there = (__mmask8)(count - i < 8 ? (1 << (count - i)) - 1 : 0xff);
        const __m512i at = _mm512_maskz_loadu_epi64(there, from + i);
        if (_mm512_mask_cmpneq_epi64_mask(there, at, wanted)) r->is_even = false;
    }
}

/* Compilers are not told what the instructions read. */
#define AMX_FENCE() __asm__ volatile("" ::: "memory")

static inline void amx_rows_next(amx_rows *r)
{
    const int64_t at = r->done, left = r->size - at;
    r->done = at + r->each;
    if (r->is_even && left >= r->each) {
        r->at = (const char *)r->from[0] + at + r->plane;
        r->stride = r->distance;
        return;
    }
    const __mmask64 there = UINT64_MAX >> (64 - (left < r->each ? left : r->each));
    AMX_FENCE();
    for (int32_t i = 0; i < r->count; i++)
        _mm512_store_si512(r->copy[i], _mm512_maskz_loadu_epi8(there, (const char *)r->from[i] + at + r->plane));
    AMX_FENCE();
    r->at = r->copy[0];
    r->stride = 64;
}

/* What a tile prefetches while it multiplies, some of it at each step: what is read of B after it (gemm_tile.next), and
 * where its results are stored, which may be in no cache. */
typedef struct amx_ahead {
    const char *next, *c;
    int64_t lines;      /* of `next`, a step */
    int64_t row, pitch; /* of C, in bytes    */
    int32_t rows, each; /* of C: still to come, and a step */
} amx_ahead;

static inline amx_ahead amx_ahead_of(const gemm_tile *t, int64_t steps, int64_t words, int wide)
{
    const int64_t size = t->flags & GEMM_TILE_NARROW_C ? 2 : 4, all = steps * t->taps;
    return (amx_ahead){ .next = t->next,
                        .c = t->c,
                        .lines = t->next ? words / 4 * t->next_lines : 0,
                        .row = 16 * wide * size,
                        .pitch = t->ldc * size,
                        .rows = t->rows,
                        .each = all ? (int32_t)((t->rows + all - 1) / all) : 0 };
}

static inline void amx_ahead_next(amx_ahead *a)
{
    for (int32_t i = 0; i < a->each && a->rows; i++, a->rows--, a->c += a->pitch)
        for (int64_t at = 0; at < a->row; at += 64) __builtin_prefetch(a->c + at);
    for (int64_t i = 0; i < a->lines; i++, a->next += 64) __builtin_prefetch(a->next, 0, 2);
}

static inline void bf16_store(uint16_t *p, vec v)
{
    _mm256_storeu_si256((__m256i *)(void *)p, (__m256i)_mm512_cvtneps_pbh(v));
}

#define UNIT bf16_amx
#define UNIT_TERMS 2
#define UNIT_PARTS 1
#define UNIT_MUL(s, a, b) _tile_dpbf16ps(s, a, b)
#define UNIT_SUMS(p) v_load(p)
#define UNIT_IS_INTEGER 0
#define UNIT_IS_NARROW 1
#define UNIT_STORE_NARROW(p, v) bf16_store(p, v)
#include "cpu/gemm_amx.inc.h"

#define UNIT u8_amx
#define UNIT_TERMS 4
#define UNIT_PARTS 1
#define UNIT_MUL(s, a, b) _tile_dpbusd(s, a, b)
#define UNIT_SUMS(p) v_bits(v_load(p))
#define UNIT_IS_INTEGER 1
#define UNIT_IS_NARROW 0
#include "cpu/gemm_amx.inc.h"

#include "cpu/gemm_split.inc.h"

#define UNIT f32_amx
#define UNIT_TERMS 2
#define UNIT_PARTS 3
#define UNIT_SUMS(p) v_load(p)
#define UNIT_IS_INTEGER 0
#define UNIT_IS_NARROW 0
#include "cpu/gemm_amx.inc.h"

#define UNIT f32_amx_short
#define UNIT_TERMS 2
#define UNIT_PARTS 2
#define UNIT_SUMS(p) v_load(p)
#define UNIT_IS_INTEGER 0
#define UNIT_IS_NARROW 0
#include "cpu/gemm_amx.inc.h"

const gemm_tile_set *const level_avx512_amx_bf16 = &unit_set_bf16_amx;
const gemm_tile_set *const level_avx512_amx_u8 = &unit_set_u8_amx;
const gemm_tile_set *const level_avx512_amx_f32 = &unit_set_f32_amx;
const gemm_tile_set *const level_avx512_amx_f32_short = &unit_set_f32_amx_short;

/* Linux gives the registers to a process that asks; threads that it has and will have may then use them. */
isa_features level_avx512_amx_permitted(isa_features has)
{
#if defined(EMULATED_AMX)
    return has | ISA_FP16 | ISA_AMX_TILE | ISA_AMX_BF16 |
           ISA_AMX_INT8; /* no CPU with them lacks FP16; nothing uses it */
#elif defined(SYS_arch_prctl)
    enum { REQUEST = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
    if (has & ISA_AMX_TILE && !syscall(SYS_arch_prctl, REQUEST, TILE_DATA)) return has;
#endif
    return has & ~(isa_features)(ISA_AMX_TILE | ISA_AMX_BF16 | ISA_AMX_INT8);
}
