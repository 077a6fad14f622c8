/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_move.c - the three ways of copying: memcpy of runs, blocks of 16 x 16 transposed in registers, single elements.
 */
#include "cpu/cpu_move.h"

#include "cpu/unroll.h"
#include <string.h>

typedef uint8_t bytes __attribute__((vector_size(16)));
typedef uint16_t shorts __attribute__((vector_size(16)));
typedef float floats __attribute__((vector_size(16)));
typedef double doubles __attribute__((vector_size(16)));

/* FILLED: bytes from which on a repeated element is written as vectors. COLUMNS: of transposed blocks so many elements
 * of each row are written before the next rows: fewer leave memory's pages half written, and many more would read
 * from too many places in turns. */
enum { BLOCK = 16, TILE_BYTES = 65536, FILLED = 64, COLUMNS = 64 };

static int64_t magnitude(int64_t v)
{
    return v < 0 ? -v : v;
}

/* Of rows of n elements. */
static int64_t columns_of(int64_t n)
{
    return n < 2 * COLUMNS ? n : COLUMNS;
}

static int64_t parts_of(int64_t n, int64_t part)
{
    return (n + part - 1) / part;
}

void move_plan_init(move_plan *p, const view *dst, const view *src, move_squares_fn *squares)
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
    if (size == 4 && p->way == MOVE_BLOCKS) p->squares = squares;
    p->outer = 1;
    int64_t inner = p->dim[last] * size;
    for (uint32_t a = 0; a < last; a++) {
        if (a == p->across) inner *= p->dim[a];
        else p->outer *= p->dim[a];
    }
    for (uint32_t a = 0; a < p->axes; a++)
        if (!p->dim[a]) p->outer = 0;
    /* Large inner parts are cut; small ones are grouped. */
    p->piece = p->dim[last];
    p->rows = p->way == MOVE_BLOCKS ? p->dim[p->across] : 1;
    if (inner > 2 * TILE_BYTES) {
        if (p->way == MOVE_BLOCKS) {
            const int64_t wide = TILE_BYTES / size / p->dim[p->across] / COLUMNS * COLUMNS;
            p->piece = columns_of(p->dim[last]);
            if (p->piece < wide) p->piece = wide < p->dim[last] ? wide : p->dim[last];
            p->rows = TILE_BYTES / (p->piece * size) / BLOCK * BLOCK;
            if (p->rows < BLOCK) p->rows = BLOCK;
        } else {
            p->piece = TILE_BYTES / size;
        }
    } else {
        p->unit = inner > 0 ? TILE_BYTES / inner : 1;
        if (p->unit < 1) p->unit = 1;
    }
}

int64_t move_tile_count(const move_plan *p)
{
    if (!p->outer) return 0;
    if (p->unit) return (p->outer + p->unit - 1) / p->unit;
    const int64_t high = p->way == MOVE_BLOCKS ? parts_of(p->dim[p->across], p->rows) : 1;
    return p->outer * parts_of(p->dim[p->axes - 1], p->piece) * high;
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

/* Squares of 4 x 4 in two rounds. */
static inline void square_4(char *dst, int64_t to, const char *src, int64_t from)
{
    floats x[4], y[4];
    UNROLL for (int i = 0; i < 4; i++) memcpy(&x[i], src + i * from, sizeof x[i]);
    UNROLL for (int i = 0; i < 2; i++)
    {
        y[2 * i] = __builtin_shufflevector(x[2 * i], x[2 * i + 1], 0, 4, 1, 5);
        y[2 * i + 1] = __builtin_shufflevector(x[2 * i], x[2 * i + 1], 2, 6, 3, 7);
    }
    UNROLL for (int i = 0; i < 2; i++)
    {
        x[2 * i] = __builtin_shufflevector(y[i], y[i + 2], 0, 1, 4, 5);
        x[2 * i + 1] = __builtin_shufflevector(y[i], y[i + 2], 2, 3, 6, 7);
    }
    UNROLL for (int i = 0; i < 4; i++) memcpy(dst + i * to, &x[i], sizeof x[i]);
}

static inline void square_8(char *dst, int64_t to, const char *src, int64_t from)
{
    doubles a, b;
    memcpy(&a, src, sizeof a);
    memcpy(&b, src + from, sizeof b);
    const doubles low = __builtin_shufflevector(a, b, 0, 2), high = __builtin_shufflevector(a, b, 1, 3);
    memcpy(dst, &low, sizeof low);
    memcpy(dst + to, &high, sizeof high);
}

/* Whole squares, then what is left at the right and below: the last square overlaps the one before, or, of a quarter
 * of a square or less, single elements. */
#define SQUARES(size, side)                                                                                            \
    static void squares_##size(char *dst, int64_t to, const char *src, int64_t from, int64_t rows, int64_t cols)       \
    {                                                                                                                  \
        int64_t r = 0;                                                                                                 \
        if (rows > (side) && rows % (side) > (side) / 4) {                                                             \
            const int64_t last = rows - (side);                                                                        \
            squares_##size(dst + last * to, to, src + last * (size), from, side, cols);                                \
            rows -= rows % (side);                                                                                     \
        }                                                                                                              \
        for (; r + (side) <= rows; r += (side)) {                                                                      \
            int64_t c = 0;                                                                                             \
            for (; c + (side) <= cols; c += (side))                                                                    \
                square_##size(dst + r * to + c * (size), to, src + c * from + r * (size), from);                       \
            if (c < cols && c && cols - c > (side) / 4) {                                                              \
                c = cols - (side);                                                                                     \
                square_##size(dst + r * to + c * (size), to, src + c * from + r * (size), from);                       \
                c = cols;                                                                                              \
            }                                                                                                          \
            if (c < cols)                                                                                              \
                transpose_##size(dst + r * to + c * (size), to, src + c * from + r * (size), from, side, cols - c);    \
        }                                                                                                              \
        if (r < rows) transpose_##size(dst + r * to, to, src + r * (size), from, rows - r, cols);                      \
    }
SQUARES(1, 16)
SQUARES(2, 8)
SQUARES(4, 4)
SQUARES(8, 2)

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

/* The way back: three columns, written side by side. */
static void three_columns_4(char *dst, const char *src, int64_t from, int64_t rows)
{
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4, src += 16, dst += 48) {
        floats a, b, e;
        memcpy(&a, src, 16);
        memcpy(&b, src + from, 16);
        memcpy(&e, src + 2 * from, 16);
        const floats ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), ea = __builtin_shufflevector(e, a, 0, 0, 5, 5);
        const floats be = __builtin_shufflevector(b, e, 1, 1, 5, 5), ba = __builtin_shufflevector(a, b, 2, 2, 6, 6);
        const floats ea_last = __builtin_shufflevector(e, a, 2, 2, 7, 7);
        const floats be_last = __builtin_shufflevector(b, e, 3, 3, 7, 7);
        const floats y[3] = { __builtin_shufflevector(ab, ea, 0, 1, 4, 6), __builtin_shufflevector(be, ba, 0, 2, 4, 6),
                              __builtin_shufflevector(ea_last, be_last, 0, 2, 4, 6) };
        memcpy(dst, y, sizeof y);
    }
    transpose_4(dst, 12, src, from, rows - r, 3);
}

/* Two such columns. */
static void two_columns_4(char *dst, const char *src, int64_t from, int64_t rows)
{
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4, src += 16, dst += 32) {
        floats a, b;
        memcpy(&a, src, 16);
        memcpy(&b, src + from, 16);
        const floats y[2] = { __builtin_shufflevector(a, b, 0, 4, 1, 5), __builtin_shufflevector(a, b, 2, 6, 3, 7) };
        memcpy(dst, y, sizeof y);
    }
    transpose_4(dst, 8, src, from, rows - r, 2);
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
    case 8: squares_8(dst, to, src, from, rows, cols); return;
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
    if (cols == 3 && to == 12) {
        three_columns_4(dst, src, from, rows);
        return;
    }
    if (cols == 2 && to == 8) {
        two_columns_4(dst, src, from, rows);
        return;
    }
    squares_4(dst, to, src, from, rows, cols);
}

/* `count` runs of `size` bytes. Short ones are copied without a call, each part as long as its type; the last part
 * overlaps the one before. REPEATED: bytes of a repeated run that are written before they are copied as a whole;
 * REPEATED_SHORT: of a run, from which on it is copied. */
enum { SHORT_RUN = 512, REPEATED_SHORT = 64, REPEATED = 4096 };
#define SHORT_RUNS(type)                                                                                               \
    for (; count > 0; count--, dst += to, src += from) {                                                               \
        for (int64_t i = 0; i + (int64_t)sizeof(type) <= size; i += (int64_t)sizeof(type))                             \
            memcpy(dst + i, src + i, sizeof(type));                                                                    \
        memcpy(dst + size - sizeof(type), src + size - sizeof(type), sizeof(type));                                    \
    }
/* One run over and over, `all` bytes, a vector or more: vectors from all its places. */
static void repeat_short(char *dst, const char *src, int64_t size, int64_t all)
{
    enum { VECTOR = sizeof(floats) };
    char part[REPEATED_SHORT + VECTOR];
    memcpy(part, src, (size_t)size);
    for (int64_t i = size; i < size + VECTOR; i++) part[i] = part[i - size];
    const int64_t first = all < REPEATED ? all : REPEATED;
    int64_t done = 0, from = 0;
    for (; done + VECTOR <= first; done += VECTOR) {
        memcpy(dst + done, part + from, VECTOR);
        for (from += VECTOR; from >= size;) from -= size;
    }
    if (all <= REPEATED) {
        if (done < all) memcpy(dst + all - VECTOR, part + (all - VECTOR) % size, VECTOR);
        return;
    }
    const int64_t step = done / size * size; /* whole runs */
    for (int64_t some; done < all; done += some) {
        some = step < all - done ? step : all - done;
        memcpy(dst + done, dst + done - step, (size_t)some);
    }
}

/* One run `count` times, end to end. Of a longer one what is written is read again, twice as much each time. */
static void repeat(char *dst, const char *src, int64_t size, int64_t count)
{
    const int64_t all = size * count;
    if (size < REPEATED_SHORT && all >= (int64_t)sizeof(floats)) {
        repeat_short(dst, src, size, all);
        return;
    }
    memcpy(dst, src, (size_t)size);
    for (int64_t done = size, step = size; done < all; done += step) {
        if (done <= REPEATED) step = done;
        if (step > all - done) step = all - done;
        memcpy(dst + done, dst, (size_t)step);
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
    int64_t done = 0;
    for (; done + 64 <= first; done += 64) UNROLL for (int i = 0; i < 4; i++) memcpy(dst + done + 16 * i, &v, sizeof v);
    for (; done + 16 <= first; done += 16) memcpy(dst + done, &v, sizeof v);
    for (; all - done >= REPEATED; done += REPEATED) memcpy(dst + done, dst, REPEATED);
    if (all - done >= 16) memcpy(dst + done, dst, (size_t)(all - done));
    else memcpy(dst + all - 16, &v, sizeof v); /* over what is there */
}

/* `count` elements, `from` apart, each `all` bytes over and over, 16 to REPEATED of them. */
static void fills(char *dst, int64_t to, const char *src, int64_t from, uint32_t size, int64_t all, int64_t count)
{
    const uint64_t times = size == 1   ? UINT64_MAX / UINT8_MAX
                           : size == 2 ? UINT64_MAX / UINT16_MAX
                           : size == 4 ? UINT64_MAX / UINT32_MAX
                                       : 1;
    for (; count > 0; count--, dst += to, src += from) {
        uint8_t x1;
        uint16_t x2;
        uint32_t x4;
        uint64_t x = 0;
        switch (size) {
        case 1: memcpy(&x1, src, 1), x = x1; break;
        case 2: memcpy(&x2, src, 2), x = x2; break;
        case 4: memcpy(&x4, src, 4), x = x4; break;
        default: memcpy(&x, src, 8); break;
        }
        const uint64_t v[2] = { x * times, x * times };
        for (int64_t i = 0; i + 16 <= all; i += 16) memcpy(dst + i, v, 16);
        memcpy(dst + all - 16, v, 16); /* over what is there: `all` is a number of elements */
    }
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

/* `rows` rows of n elements, a strip of some columns after the other. */
static void blocks(const move_plan *p, char *dst, const char *src, int64_t rows, int64_t n)
{
    const int64_t size = p->size, to = p->to[p->across], from = p->from[p->axes - 1];
    if (n < BLOCK / 4) { /* few columns: as they are, as are few rows */
        move_transpose(p->size, dst, to, src, from, rows, n);
        return;
    }
    const int64_t step = rows < BLOCK / 4 ? n : BLOCK;
    for (int64_t col = 0, some; col < n; col += some) {
        some = rows < BLOCK / 4 || n - col < 2 * COLUMNS ? n - col : COLUMNS;
        for (int64_t i = 0; i < rows; i += BLOCK) {
            const int64_t r = block_begin(i, BLOCK, rows), high = rows < BLOCK ? rows : BLOCK;
            for (int64_t at = 0; at < some; at += step) {
                const int64_t c = col + block_begin(at, step, some), wide = some < step ? some : step;
                char *d = dst + c * size + r * to;
                const char *s = src + c * from + r * size;
                if (p->squares && high == BLOCK && wide == BLOCK) p->squares(d, to, s, from, high, wide);
                else move_transpose(p->size, d, to, s, from, high, wide);
            }
        }
    }
}

/* Elements [begin, end) of the last axis at one outer position, of blocks those of rows [first, last). */
static void inner(const move_plan *p, char *dst, const char *src, int64_t begin, int64_t end, int64_t first,
                  int64_t last)
{
    const uint32_t in = p->axes - 1;
    dst += begin * p->to[in];
    src += begin * p->from[in];
    if (p->way == MOVE_RUNS) memcpy(dst, src, (size_t)(end - begin) * p->size);
    else if (p->way == MOVE_SINGLE) single(p, dst, src, end - begin);
    else blocks(p, dst + first * p->to[p->across], src + first * p->size, last - first, end - begin);
}

/* A tile of a cut plan. */
static void piece(const move_plan *p, void *dst, const void *src, int64_t tile)
{
    const int64_t n = p->dim[p->axes - 1], m = p->way == MOVE_BLOCKS ? p->dim[p->across] : 1;
    const int64_t high = parts_of(m, p->rows), wide = parts_of(n, p->piece);
    const int64_t row = tile % high * p->rows, col = tile / high % wide * p->piece;
    int64_t at = tile / high / wide;
    char *d = dst;
    const char *s = src;
    for (uint32_t a = p->axes - 1; a-- > 0;) {
        if (a == p->across) continue;
        const int64_t i = at % p->dim[a];
        at /= p->dim[a];
        d += i * p->to[a];
        s += i * p->from[a];
    }
    inner(p, d, s, col, n - col < p->piece ? n : col + p->piece, row, m - row < p->rows ? m : row + p->rows);
}

/* Outer positions [at, stop), one after the other: the place in each axis is counted up, not divided out again. Runs
 * along the last outer axis are copied together, as are elements that are repeated. */
static void positions(const move_plan *p, char *dst, const char *src, int64_t at, int64_t stop)
{
    const int64_t n = p->dim[p->axes - 1];
    const uint32_t near = p->axes > 1 ? p->axes - 2 : 0;
    const bool is_fill = p->way == MOVE_SINGLE && p->to[p->axes - 1] == p->size && !p->from[p->axes - 1] &&
                         n * p->size >= 16 && n * p->size <= REPEATED;
    const bool has_runs = p->axes > 1 && (p->way == MOVE_RUNS || is_fill);
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
            if (is_fill) fills(dst, p->to[near], src, p->from[near], p->size, n * p->size, count);
            else runs(dst, p->to[near], src, p->from[near], n * p->size, count);
        } else {
            inner(p, dst, src, 0, n, 0, p->rows);
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
    if (!p->unit) {
        for (int64_t i = begin; i < end; i++) piece(p, dst, src, i);
        return;
    }
    const int64_t stop = end * p->unit < p->outer ? end * p->unit : p->outer;
    if (begin * p->unit < stop) positions(p, dst, src, begin * p->unit, stop);
}
