/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_move.c - the three ways of copying: memcpy of runs, blocks of 16 x 16 transposed in registers, single elements.
 */
#include "cpu/cpu_move.h"

#include "cpu/isa.h"
#include "cpu/unroll.h"
#include <string.h>
#if CPU_HAS_X86
#include <emmintrin.h>
#endif

typedef uint8_t bytes __attribute__((vector_size(16)));
typedef uint16_t shorts __attribute__((vector_size(16)));
typedef float floats __attribute__((vector_size(16)));

/* FILLED: bytes from which on a repeated element is written as vectors. */
enum { BLOCK = 16, TILE_BYTES = 65536, FILLED = 64 };

static int64_t magnitude(int64_t v)
{
    return v < 0 ? -v : v;
}

void move_plan_init(move_plan *p, const view *dst, const view *src)
{
    memset(p, 0, sizeof *p);
    p->size = sinter_dtype_bits(dst->dtype) / 8;
    int64_t size = p->size;
    uint8_t order[SINTER_RANK_MAX];
    uint32_t n = 0;
    for (uint32_t a = 0; a < dst->rank; a++) {
        if (dst->dim[a] == 1) continue;
        uint32_t at = n++;
        for (; at > 0; at--) {
            const uint32_t o = order[at - 1];
            const int64_t mine = magnitude(dst->stride[a]), its = magnitude(dst->stride[o]);
            if (its > mine || (its == mine && magnitude(src->stride[o]) >= magnitude(src->stride[a]))) break;
            order[at] = order[at - 1];
        }
        order[at] = (uint8_t)a;
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t a = order[i];
        const int64_t to = dst->stride[a] * size, from = src->stride[a] * size, count = dst->dim[a];
        uint32_t k = p->axes;
        if (k && p->to[k - 1] == to * count && p->from[k - 1] == from * count) {
            k--;
            p->dim[k] *= count;
        } else {
            p->dim[k] = count;
            p->axes++;
        }
        p->to[k] = to;
        p->from[k] = from;
    }
    if (!p->axes) {
        p->axes = 1;
        p->dim[0] = 1;
        p->to[0] = p->from[0] = size;
        for (uint32_t a = 0; a < dst->rank; a++) p->dim[0] *= dst->dim[a];
    }
    /* A short run moves as one element. */
    uint32_t last = p->axes - 1;
    const int64_t short_run = p->dim[last] * size;
    if (last && p->to[last] == size && p->from[last] == size && (short_run == 2 || short_run == 4 || short_run == 8)) {
        p->size = (uint32_t)short_run;
        size = short_run;
        last = --p->axes - 1;
    }
    p->across = last;
    p->way = p->to[last] == size && p->from[last] == size ? MOVE_RUNS : MOVE_SINGLE;
    const bool is_filled = !p->from[last] && p->dim[last] * size >= FILLED;
    if (p->way == MOVE_SINGLE && p->to[last] == size && !is_filled)
        for (uint32_t a = 0; a < last; a++)
            if (p->from[a] == size) {
                p->way = MOVE_BLOCKS;
                p->across = a;
            }
    p->outer = 1;
    int64_t inner = p->dim[last] * size;
    for (uint32_t a = 0; a < last; a++) {
        if (a == p->across) inner *= p->dim[a];
        else p->outer *= p->dim[a];
    }
    for (uint32_t a = 0; a < p->axes; a++)
        if (!p->dim[a]) p->outer = 0;
    /* Large inner parts are cut; small ones are grouped. */
    if (inner > 2 * TILE_BYTES) {
        const int64_t row = inner / (p->dim[last] ? p->dim[last] : 1);
        p->piece = TILE_BYTES / (row ? row : 1) / BLOCK * BLOCK;
        if (p->piece < BLOCK) p->piece = BLOCK;
    } else {
        p->unit = inner > 0 ? TILE_BYTES / inner : 1;
        if (p->unit < 1) p->unit = 1;
    }
}

int64_t move_tile_count(const move_plan *p)
{
    if (!p->outer) return 0;
    if (p->unit) return (p->outer + p->unit - 1) / p->unit;
    return p->outer * ((p->dim[p->axes - 1] + p->piece - 1) / p->piece);
}

/* Elements may be runs, so they are aligned to less than their size. */
#define TRANSPOSE(name, type)                                                                                          \
    static void name(char *dst, int64_t to, const char *src, int64_t from, int64_t rows, int64_t cols)                 \
    {                                                                                                                  \
        for (int64_t r = 0; r < rows; r++, dst += to)                                                                  \
            for (int64_t c = 0; c < cols; c++)                                                                         \
                memcpy(dst + c * (int64_t)sizeof(type), src + c * from + r * (int64_t)sizeof(type), sizeof(type));     \
    }
TRANSPOSE(transpose_1, uint8_t)
TRANSPOSE(transpose_2, uint16_t)
TRANSPOSE(transpose_4, uint32_t)
TRANSPOSE(transpose_8, uint64_t)

/* Squares of 8 x 8 in three rounds: each brings rows i and i + 4 together, element by element. */
static void square_2(char *dst, int64_t to, const char *src, int64_t from)
{
    shorts x[8], y[8];
    UNROLL for (int i = 0; i < 8; i++) memcpy(&x[i], src + i * from, sizeof x[i]);
    UNROLL for (int round = 0; round < 3; round++)
    {
        UNROLL for (int i = 0; i < 4; i++)
        {
            y[2 * i] = __builtin_shufflevector(x[i], x[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
            y[2 * i + 1] = __builtin_shufflevector(x[i], x[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
        }
        memcpy(x, y, sizeof x);
    }
    UNROLL for (int i = 0; i < 8; i++) memcpy(dst + i * to, &x[i], sizeof x[i]);
}

/* Squares of 16 x 16 in four rounds. */
static void square_1(char *dst, int64_t to, const char *src, int64_t from)
{
    bytes x[16], y[16];
    UNROLL for (int i = 0; i < 16; i++) memcpy(&x[i], src + i * from, sizeof x[i]);
    UNROLL for (int round = 0; round < 4; round++)
    {
        UNROLL for (int i = 0; i < 8; i++)
        {
            y[2 * i] = __builtin_shufflevector(x[i], x[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            y[2 * i + 1] =
                __builtin_shufflevector(x[i], x[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        }
        memcpy(x, y, sizeof x);
    }
    UNROLL for (int i = 0; i < 16; i++) memcpy(dst + i * to, &x[i], sizeof x[i]);
}

/* Whole squares, then what is left at the right and below. */
#define SQUARES(size, side)                                                                                            \
    static void squares_##size(char *dst, int64_t to, const char *src, int64_t from, int64_t rows, int64_t cols)       \
    {                                                                                                                  \
        int64_t r = 0;                                                                                                 \
        for (; r + (side) <= rows; r += (side)) {                                                                      \
            int64_t c = 0;                                                                                             \
            for (; c + (side) <= cols; c += (side))                                                                    \
                square_##size(dst + r * to + c * (size), to, src + c * from + r * (size), from);                       \
            if (c < cols)                                                                                              \
                transpose_##size(dst + r * to + c * (size), to, src + c * from + r * (size), from, side, cols - c);    \
        }                                                                                                              \
        if (r < rows) transpose_##size(dst + r * to, to, src + r * (size), from, rows - r, cols);                      \
    }
SQUARES(1, 16)
SQUARES(2, 8)

/* Three rows of f32 whose elements lie side by side: images of three channels. */
static void three_4(char *dst, int64_t to, const char *src, int64_t cols)
{
    int64_t c = 0;
    for (; c + 4 <= cols; c += 4, src += 48, dst += 16) {
        floats a, b, e;
        memcpy(&a, src, 16);
        memcpy(&b, src + 16, 16);
        memcpy(&e, src + 32, 16);
        const floats x = __builtin_shufflevector(b, e, 2, 5, 0, 3), y = __builtin_shufflevector(a, b, 1, 4, 2, 5);
        const floats r0 = __builtin_shufflevector(a, x, 0, 3, 4, 5), r1 = __builtin_shufflevector(y, x, 0, 1, 7, 7);
        const floats r2 = __builtin_shufflevector(y, e, 2, 3, 4, 7);
        const floats r1_last = __builtin_shufflevector(r1, e, 0, 1, 2, 6);
        memcpy(dst, &r0, 16);
        memcpy(dst + to, &r1_last, 16);
        memcpy(dst + 2 * to, &r2, 16);
    }
    transpose_4(dst, to, src, 12, 3, cols - c);
}

/* Two such rows. */
static void two_4(char *dst, int64_t to, const char *src, int64_t cols)
{
    int64_t c = 0;
    for (; c + 4 <= cols; c += 4, src += 32, dst += 16) {
        floats a, b;
        memcpy(&a, src, 16);
        memcpy(&b, src + 16, 16);
        const floats r0 = __builtin_shufflevector(a, b, 0, 2, 4, 6), r1 = __builtin_shufflevector(a, b, 1, 3, 5, 7);
        memcpy(dst, &r0, 16);
        memcpy(dst + to, &r1, 16);
    }
    transpose_4(dst, to, src, 8, 2, cols - c);
}

/* The three rows of bytes. A round joins the halves of 48 bytes byte by byte, which brings byte i to 2i modulo 47;
 * after four of them byte 3p + c is at p + 16c. */
static inline bytes high(bytes a)
{
    return __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15);
}
static inline bytes join(bytes a, bytes b)
{
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

static void three_1(char *dst, int64_t to, const char *src, int64_t cols)
{
    int64_t c = 0;
    for (; c + 16 <= cols; c += 16, src += 48, dst += 16) {
        bytes x[3];
        UNROLL for (int i = 0; i < 3; i++) memcpy(&x[i], src + 16 * i, 16);
        UNROLL for (int round = 0; round < 4; round++)
        {
            const bytes a = join(x[0], high(x[1])), b = join(high(x[0]), x[2]);
            x[2] = join(x[1], high(x[2]));
            x[0] = a;
            x[1] = b;
        }
        UNROLL for (int i = 0; i < 3; i++) memcpy(dst + i * to, &x[i], 16);
    }
    transpose_1(dst, to, src, 3, 3, cols - c);
}

void move_transpose(uint32_t size, char *dst, int64_t to, const char *src, int64_t from, int64_t rows, int64_t cols)
{
    if (rows == 3 && from == 3 && size == 1) {
        three_1(dst, to, src, cols);
        return;
    }
    switch (size) {
    case 1: squares_1(dst, to, src, from, rows, cols); return;
    case 2: squares_2(dst, to, src, from, rows, cols); return;
    case 8: transpose_8(dst, to, src, from, rows, cols); return;
    default: break;
    }
    if (rows == 3 && from == 12) {
        three_4(dst, to, src, cols);
        return;
    }
    if (rows == 2 && from == 8) {
        two_4(dst, to, src, cols);
        return;
    }
#if CPU_HAS_X86
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
        char *d = dst + r * to;
        const char *s = src + r * 4;
        int64_t c = 0;
        for (; c + 4 <= cols; c += 4, s += 4 * from, d += 16) {
            __m128 x0 = _mm_loadu_ps((const float *)(const void *)s),
                   x1 = _mm_loadu_ps((const float *)(const void *)(s + from));
            __m128 x2 = _mm_loadu_ps((const float *)(const void *)(s + 2 * from)),
                   x3 = _mm_loadu_ps((const float *)(const void *)(s + 3 * from));
            _MM_TRANSPOSE4_PS(x0, x1, x2, x3);
            _mm_storeu_ps((float *)(void *)d, x0);
            _mm_storeu_ps((float *)(void *)(d + to), x1);
            _mm_storeu_ps((float *)(void *)(d + 2 * to), x2);
            _mm_storeu_ps((float *)(void *)(d + 3 * to), x3);
        }
        if (c < cols) transpose_4(d, to, s, from, 4, cols - c);
    }
    if (r < rows) transpose_4(dst + r * to, to, src + r * 4, from, rows - r, cols);
#else
    transpose_4(dst, to, src, from, rows, cols);
#endif
}

/* `count` runs of `size` bytes. Short ones are copied without a call, each part as long as its type; the last part
 * overlaps the one before. REPEATED: bytes of a repeated run that are written before they are copied as a whole. */
enum { SHORT_RUN = 512, REPEATED = 4096 };
#define SHORT_RUNS(type)                                                                                               \
    for (; count > 0; count--, dst += to, src += from) {                                                               \
        for (int64_t i = 0; i + (int64_t)sizeof(type) <= size; i += (int64_t)sizeof(type))                             \
            memcpy(dst + i, src + i, sizeof(type));                                                                    \
        memcpy(dst + size - sizeof(type), src + size - sizeof(type), sizeof(type));                                    \
    }
/* One run `count` times, end to end: what is written is read again, twice as much each time. */
static void repeat(char *dst, const char *src, int64_t size, int64_t count)
{
    int64_t done = size, part = size;
    memcpy(dst, src, (size_t)size);
    for (; done < size * count; done += part) {
        if (done <= REPEATED) part = done;
        if (part > size * count - done) part = size * count - done;
        memcpy(dst + done, dst, (size_t)part);
    }
}

static void runs(char *dst, int64_t to, const char *src, int64_t from, int64_t size, int64_t count)
{
    if (!from && to == size && size < SHORT_RUN && count > 1) {
        repeat(dst, src, size, count);
    } else if (size >= SHORT_RUN || size < 4) {
        for (; count > 0; count--, dst += to, src += from) memcpy(dst, src, (size_t)size);
    } else if (size >= 16) {
        SHORT_RUNS(floats)
    } else if (size >= 8) {
        SHORT_RUNS(uint64_t)
    } else {
        SHORT_RUNS(uint32_t)
    }
}

/* One element n times, `all` bytes, 16 or more. */
static void fill(char *dst, const char *src, uint32_t size, int64_t all)
{
    char part[16];
    for (uint32_t i = 0; i < sizeof part; i++) part[i] = src[i % size];
    floats v;
    memcpy(&v, part, sizeof v);
    const int64_t first = all < REPEATED ? all : REPEATED;
    for (int64_t at = 0; at + 16 <= first; at += 16) memcpy(dst + at, &v, sizeof v);
    int64_t done = first / 16 * 16;
    for (; all - done >= REPEATED; done += REPEATED) memcpy(dst + done, dst, REPEATED);
    if (done < all) memcpy(dst + done, dst, (size_t)(all - done)); /* behind the first part, or its last bytes */
}

static void single(const move_plan *p, char *dst, const char *src, int64_t n)
{
    const int64_t to = p->to[p->axes - 1], from = p->from[p->axes - 1];
    if (!from && to == p->size && n * to >= FILLED) {
        fill(dst, src, p->size, n * to);
        return;
    }
    switch (p->size) {
    case 1:
        for (int64_t i = 0; i < n; i++, dst += to, src += from) *dst = *src;
        break;
    case 2:
        for (int64_t i = 0; i < n; i++, dst += to, src += from) memcpy(dst, src, 2);
        break;
    case 4:
        for (int64_t i = 0; i < n; i++, dst += to, src += from) memcpy(dst, src, 4);
        break;
    default:
        for (int64_t i = 0; i < n; i++, dst += to, src += from) memcpy(dst, src, 8);
        break;
    }
}

/* Where a block from `at` on begins: the last one overlaps the one before, so that all are whole. */
static int64_t block_begin(int64_t at, int64_t step, int64_t n)
{
    return n - at < step && n > step ? n - step : at;
}

/* Elements [begin, end) of the last axis at one outer position. */
static void inner(const move_plan *p, char *dst, const char *src, int64_t begin, int64_t end)
{
    const uint32_t last = p->axes - 1;
    dst += begin * p->to[last];
    src += begin * p->from[last];
    if (p->way == MOVE_RUNS) {
        memcpy(dst, src, (size_t)(end - begin) * p->size);
    } else if (p->way == MOVE_SINGLE) {
        single(p, dst, src, end - begin);
    } else {
        const uint32_t a = p->across;
        const int64_t size = p->size, step = p->dim[a] < 4 ? end - begin : BLOCK; /* few rows: as they are */
        for (int64_t at = 0; at < end - begin; at += step) {
            const int64_t c = block_begin(at, step, end - begin);
            const int64_t cols = end - begin - c < step ? end - begin - c : step;
            for (int64_t i = 0; i < p->dim[a]; i += BLOCK) {
                const int64_t r = block_begin(i, BLOCK, p->dim[a]), rows = p->dim[a] < BLOCK ? p->dim[a] : BLOCK;
                move_transpose(p->size, dst + c * size + r * p->to[a], p->to[a], src + c * p->from[last] + r * size,
                               p->from[last], rows, cols);
            }
        }
    }
}

static void position(const move_plan *p, void *dst, const void *src, int64_t at, int64_t begin, int64_t end)
{
    char *d = dst;
    const char *s = src;
    for (uint32_t a = p->axes - 1; a-- > 0;) {
        if (a == p->across) continue;
        const int64_t i = at % p->dim[a];
        at /= p->dim[a];
        d += i * p->to[a];
        s += i * p->from[a];
    }
    inner(p, d, s, begin, end);
}

/* Outer positions [at, stop), one after the other: the place in each axis is counted up, not divided out again. Runs
 * along the last outer axis are copied together. */
static void positions(const move_plan *p, char *dst, const char *src, int64_t at, int64_t stop)
{
    const int64_t n = p->dim[p->axes - 1];
    const uint32_t near = p->axes > 1 ? p->axes - 2 : 0;
    const bool has_runs = p->way == MOVE_RUNS && p->axes > 1;
    int64_t index[SINTER_RANK_MAX] = { 0 }, rest = at;
    for (uint32_t a = p->axes - 1; a-- > 0;) {
        if (a == p->across) continue;
        index[a] = rest % p->dim[a];
        rest /= p->dim[a];
        dst += index[a] * p->to[a];
        src += index[a] * p->from[a];
    }
    for (int64_t count = 1; at < stop; at += count) {
        if (has_runs) {
            count = p->dim[near] - index[near] < stop - at ? p->dim[near] - index[near] : stop - at;
            runs(dst, p->to[near], src, p->from[near], n * p->size, count);
        } else {
            inner(p, dst, src, 0, n);
        }
        for (uint32_t a = p->axes - 1; a-- > 0;) {
            if (a == p->across) continue;
            const int64_t by = has_runs && a == near ? count : 1;
            dst += by * p->to[a];
            src += by * p->from[a];
            index[a] += by;
            if (index[a] < p->dim[a]) break;
            dst -= p->to[a] * p->dim[a];
            src -= p->from[a] * p->dim[a];
            index[a] = 0;
        }
    }
}

void move_run(const move_plan *p, void *dst, const void *src, int64_t begin, int64_t end)
{
    const int64_t n = p->dim[p->axes - 1];
    if (!p->unit) {
        const int64_t pieces = (n + p->piece - 1) / p->piece;
        for (int64_t i = begin; i < end; i++) {
            const int64_t from = i % pieces * p->piece, to = from + p->piece < n ? from + p->piece : n;
            position(p, dst, src, i / pieces, from, to);
        }
        return;
    }
    const int64_t stop = end * p->unit < p->outer ? end * p->unit : p->outer;
    if (begin * p->unit < stop) positions(p, dst, src, begin * p->unit, stop);
}
