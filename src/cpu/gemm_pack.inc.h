/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_pack.inc.h - what all units of a level share: packing B into panels of words, and the lists of register tiles.
 *
 * Included once by each file that includes gemm_unit.inc.h, after simd_math.inc.h. */
/* How far ahead of use B is asked for, in words. */
enum { PREFETCH_AHEAD = 1024, WORDS_PER_LINE = 16 };
/* A small page, and how many of its first lines are prefetched. */
enum { PAGE_BYTES = 4096, PAGE_LINES = 4, LINE_BYTES = 64 };

/* The prefetchers of a CPU stop at the end of a page. This prefetches the first lines of the page behind that of `b`,
 * from which on they continue. Called for each `size` bytes in turn, it does so once a page. */
static inline void page_prefetch(const void *b, uintptr_t size)
{
    const uintptr_t at = (uintptr_t)b % PAGE_BYTES;
    if (at >= size) return;
    const char *next = (const char *)b + (PAGE_BYTES - at);
    UNROLL for (int i = 0; i < PAGE_LINES; i++) __builtin_prefetch(next + i * LINE_BYTES, 0, 2);
}

#define TILES_TO_0(T, v)
#define TILES_TO_1(T, v) T(1, v)
#define TILES_TO_2(T, v) TILES_TO_1(T, v) T(2, v)
#define TILES_TO_3(T, v) TILES_TO_2(T, v) T(3, v)
#define TILES_TO_4(T, v) TILES_TO_3(T, v) T(4, v)
#define TILES_TO_5(T, v) TILES_TO_4(T, v) T(5, v)
#define TILES_TO_6(T, v) TILES_TO_5(T, v) T(6, v)
#define TILES_TO_7(T, v) TILES_TO_6(T, v) T(7, v)
#define TILES_TO_9(T, v) TILES_TO_7(T, v) T(8, v) T(9, v)
#define TILES_TO_10(T, v) TILES_TO_9(T, v) T(10, v)
#define TILES_TO_12(T, v) TILES_TO_10(T, v) T(11, v) T(12, v)
#define TILES_TO_14(T, v) TILES_TO_12(T, v) T(13, v) T(14, v)

/* A word at any address. */
static inline int32_t word_of(const char *p)
{
    int32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* Copies of a size that is known late would be calls, for which all vectors in registers are saved. These are none. */
#ifdef VEC_HAS_SHORTS_N
/* The first n bf16 numbers; the others are 0. */
static inline vec narrow_load_n(const uint16_t *p, int n) { return v_of_bits(vi_sll(vi_load_u16_n(p, n), 16)); }
#else
/* Copies n numbers, at most as many as a vector has. */
static inline void shorts_store_n(uint16_t *to, const uint16_t *from, int n)
{
    int at = 0;
    UNROLL for (int size = VEC_LANES; size > 0; size /= 2)
    {
        if (!(n & size)) continue;
        memcpy(to + at, from + at, (size_t)size * sizeof *to);
        at += size;
    }
}

static inline vec narrow_load_n(const uint16_t *p, int n)
{
    uint16_t part[VEC_LANES] = { 0 };
    shorts_store_n(part, p, n);
    return v_load_bf16(part);
}
#endif

typedef float quad __attribute__((vector_size(16)));

static inline quad quad_load(const char *p)
{
    quad q;
    memcpy(&q, p, sizeof q);
    return q;
}

#if VEC_LANES == 16
typedef float octet __attribute__((vector_size(32)));
typedef float quads __attribute__((vector_size(64)));
#define QUADS_EACH(a, b, c, d)                                                                                        \
    a, b, c, d, a + 4, b + 4, c + 4, d + 4, a + 8, b + 8, c + 8, d + 8, a + 12, b + 12, c + 12, d + 12

/* Quads of every fourth column: of columns 0, 4, 8 and 12 from `p` on. */
static inline quads quads_load(const char *p, int64_t col_size)
{
    const octet low = __builtin_shufflevector(quad_load(p), quad_load(p + 4 * col_size), 0, 1, 2, 3, 4, 5, 6, 7);
    const octet high = __builtin_shufflevector(quad_load(p + 8 * col_size), quad_load(p + 12 * col_size), 0, 1, 2,
                                                   3, 4, 5, 6, 7);
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
#elif VEC_LANES == 8
typedef float quads __attribute__((vector_size(32)));
#define QUADS_EACH(a, b, c, d) a, b, c, d, a + 4, b + 4, c + 4, d + 4

static inline quads quads_load(const char *p, int64_t col_size)
{
    return __builtin_shufflevector(quad_load(p), quad_load(p + 4 * col_size), 0, 1, 2, 3, 4, 5, 6, 7);
}
#else
typedef quad quads;
#define QUADS_EACH(a, b, c, d) a, b, c, d

static inline quads quads_load(const char *p, int64_t col_size)
{
    (void)col_size;
    return quad_load(p);
}
#endif

/* The same for as many columns as a vector has lanes: four quads of each square are turned in place, and rows of whole
 * vectors are stored. Returns the number of words that were packed. */
static inline int64_t pack_across_lanes(float *d, const char *s, int64_t words, int32_t width, int64_t col_size)
{
    enum { W = VEC_LANES };
    int64_t i = 0;
    for (; i + 4 <= words; i += 4, d += 4 * width, s += 16) {
        const quads a = quads_load(s, col_size), b = quads_load(s + col_size, col_size);
        const quads c = quads_load(s + 2 * col_size, col_size), e = quads_load(s + 3 * col_size, col_size);
        const quads ab0 = __builtin_shufflevector(a, b, QUADS_EACH(0, W, 1, W + 1));
        const quads ab1 = __builtin_shufflevector(a, b, QUADS_EACH(2, W + 2, 3, W + 3));
        const quads ce0 = __builtin_shufflevector(c, e, QUADS_EACH(0, W, 1, W + 1));
        const quads ce1 = __builtin_shufflevector(c, e, QUADS_EACH(2, W + 2, 3, W + 3));
        const quads r[4] = {
            __builtin_shufflevector(ab0, ce0, QUADS_EACH(0, 1, W, W + 1)),
            __builtin_shufflevector(ab0, ce0, QUADS_EACH(2, 3, W + 2, W + 3)),
            __builtin_shufflevector(ab1, ce1, QUADS_EACH(0, 1, W, W + 1)),
            __builtin_shufflevector(ab1, ce1, QUADS_EACH(2, 3, W + 2, W + 3)),
        };
        UNROLL for (int row = 0; row < 4; row++) memcpy(d + row * width, &r[row], sizeof r[row]);
    }
    return i;
}

/* Columns of B whose terms are adjacent, as the rows of a transposed operand: squares of 4 x 4 words are turned in
 * registers. size: bytes of a term. */
static inline void pack_across(float *dst, const char *src, int64_t k, int32_t cols, int32_t width, int64_t col_size,
                        int64_t size)
{
    const int64_t bytes = k * size, words = bytes / 4, rest = bytes % 4;
    int64_t packed = 0;
    for (int32_t j = 0; j < width; j += 4) {
        const char *s = src + j * col_size;
        const int32_t left = cols - j;
        if (j % VEC_LANES == 0) packed = left < VEC_LANES ? 0 : pack_across_lanes(dst + j, s, words, width, col_size);
        float *d = dst + j + packed * width;
        int64_t i = packed;
        for (; i + 4 <= words; i += 4, d += 4 * width) {
            const quad zero = { 0, 0, 0, 0 };
            const quad a = left > 0 ? quad_load(s + 4 * i) : zero;
            const quad b = left > 1 ? quad_load(s + col_size + 4 * i) : zero;
            const quad c = left > 2 ? quad_load(s + 2 * col_size + 4 * i) : zero;
            const quad e = left > 3 ? quad_load(s + 3 * col_size + 4 * i) : zero;
            const quad ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
            const quad ce0 = __builtin_shufflevector(c, e, 0, 4, 1, 5), ce1 = __builtin_shufflevector(c, e, 2, 6, 3, 7);
            const quad r[4] = {
                __builtin_shufflevector(ab0, ce0, 0, 1, 4, 5),
                __builtin_shufflevector(ab0, ce0, 2, 3, 6, 7),
                __builtin_shufflevector(ab1, ce1, 0, 1, 4, 5),
                __builtin_shufflevector(ab1, ce1, 2, 3, 6, 7),
            };
            UNROLL for (int row = 0; row < 4; row++) memcpy(d + row * width, &r[row], sizeof r[row]);
        }
        for (; i < words + (rest != 0); i++, d += width) {
            for (int32_t c = 0; c < 4; c++) {
                uint32_t w = 0;
                if (c < left) memcpy(&w, s + c * col_size + 4 * i, i < words ? 4 : (size_t)rest);
                memcpy(d + c, &w, sizeof w);
            }
        }
    }
}

/* Words of one term. */
static inline void pack_words(float *dst, const float *src, int64_t k, int32_t cols, int32_t width, int64_t row_stride,
                       int64_t col_stride)
{
    if (col_stride == 1) {
        for (int64_t i = 0; i < k; i++, dst += width, src += row_stride) {
            int32_t j = 0;
            for (; j + VEC_LANES <= cols; j += VEC_LANES) v_store(dst + j, v_load(src + j));
            if (j < cols) {
                v_store(dst + j, v_load_n(src + j, cols - j));
                j += VEC_LANES;
            }
            for (; j < width; j += VEC_LANES) v_store(dst + j, v_zero());
        }
        return;
    }
    if (row_stride == 1) {
        pack_across(dst, (const char *)src, k, cols, width, col_stride * (int64_t)sizeof *src, sizeof *src);
        return;
    }
    /* Columns in fours, so that four streams are read and a quarter of a line is written at a time. */
    int32_t j = 0;
    for (; j + 4 <= cols; j += 4) {
        const float *s0 = src + j * col_stride, *s1 = s0 + col_stride, *s2 = s1 + col_stride, *s3 = s2 + col_stride;
        float *d = dst + j;
        for (int64_t i = 0; i < k; i++, d += width) {
            const int64_t at = i * row_stride;
            d[0] = s0[at];
            d[1] = s1[at];
            d[2] = s2[at];
            d[3] = s3[at];
        }
    }
    for (; j < width; j++) {
        const float *s = src + j * col_stride;
        for (int64_t i = 0; i < k; i++) dst[i * width + j] = j < cols ? s[i * row_stride] : 0.0f;
    }
}

/* One row of words of two or four terms: column j of each of the `count` rows, the missing ones are 0. */
static inline void pack_pairs(uint32_t *d, const uint16_t *s, int64_t count, int32_t cols, int64_t row_stride)
{
    const uint16_t *second = s + row_stride;
    if (count == 2)
        for (int32_t j = 0; j < cols; j++) d[j] = s[j] | (uint32_t)second[j] << 16;
    else
        for (int32_t j = 0; j < cols; j++) d[j] = s[j];
}
static inline void pack_fours(uint32_t *d, const uint8_t *s, int64_t count, int32_t cols, int64_t row_stride)
{
    for (int32_t j = 0; j < cols; j++) d[j] = s[j];
    for (int64_t i = 1; i < count; i++)
        for (int32_t j = 0; j < cols; j++) d[j] |= (uint32_t)s[i * row_stride + j] << 8 * i;
}

/* Words of several terms of `size` bytes, with any strides. */
static inline void pack_terms(void *dst, const void *src, int64_t k, int32_t cols, int32_t width, int64_t row_stride,
                       int64_t col_stride, int64_t size)
{
    const int64_t terms = 4 / size;
    if (row_stride == 1) {
        pack_across(dst, src, k, cols, width, col_stride * size, size);
        return;
    }
    uint32_t *d = dst;
    const char *s = src;
    for (int64_t i = 0; i < k; i += terms, d += width, s += terms * row_stride * size) {
        const int64_t count = k - i < terms ? k - i : terms;
        if (col_stride == 1 && size == 2) {
            pack_pairs(d, (const uint16_t *)(const void *)s, count, cols, row_stride);
        } else if (col_stride == 1) {
            pack_fours(d, (const uint8_t *)s, count, cols, row_stride);
        } else {
            for (int32_t j = 0; j < cols; j++) {
                char word[4] = { 0 };
                for (int64_t t = 0; t < count; t++)
                    memcpy(word + t * size, s + (t * row_stride + j * col_stride) * size, (size_t)size);
                memcpy(d + j, word, sizeof word);
            }
        }
        for (int32_t j = cols; j < width; j++) d[j] = 0;
    }
}

#ifdef VEC_HAS_PAIRS
/* Words of two terms of 16 bits, made of 8-bit integers with any strides. */
static inline void pack_wide(void *dst, const void *src, int64_t k, int32_t cols, int32_t width, int64_t row_stride,
                             int64_t col_stride)
{
    uint32_t *d = dst;
    const int8_t *s = src;
    for (int64_t i = 0; i < k; i += 2, d += width, s += 2 * row_stride) {
        if (i + 1 == k)
            for (int32_t j = 0; j < cols; j++) d[j] = (uint32_t)(uint16_t)s[j * col_stride];
        else if (col_stride == 1)
            for (int32_t j = 0; j < cols; j++) d[j] = (uint16_t)s[j] | (uint32_t)(int32_t)s[j + row_stride] << 16;
        else
            for (int32_t j = 0; j < cols; j++)
                d[j] = (uint16_t)s[j * col_stride] | (uint32_t)(int32_t)s[j * col_stride + row_stride] << 16;
        for (int32_t j = cols; j < width; j++) d[j] = 0;
    }
}
#endif
