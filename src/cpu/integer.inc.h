/* SPDX-License-Identifier: Apache-2.0 */
/* integer.inc.h - the text of the loops of integer products, included once by each instruction set's file. */

enum { WIDTH = 2 * L, TILE_ROWS = VEC_REGISTERS / 4 };

static inline veci pair_at(const int16_t *p)
{
    int32_t both;
    memcpy(&both, p, sizeof both);
    return vi_set(both);
}

static inline veci pairs_load(const int16_t *p)
{
    veci v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline __attribute__((always_inline)) void tile_rows(int32_t *c, const int16_t *a, int64_t lda, const int16_t *b,
                                                            int64_t pairs, const int rows)
{
    veci s[TILE_ROWS][2];
    UNROLL for (int i = 0; i < rows; i++) s[i][0] = s[i][1] = vi_set(0);
    for (int64_t k = 0; k < pairs; k++, b += 2 * WIDTH, a += 2) {
        const veci b0 = pairs_load(b), b1 = pairs_load(b + WIDTH);
        UNROLL for (int i = 0; i < rows; i++)
        {
            const veci x = pair_at(a + i * lda);
            s[i][0] = vi_add(s[i][0], vi_madd_16(x, b0));
            s[i][1] = vi_add(s[i][1], vi_madd_16(x, b1));
        }
    }
    UNROLL for (int i = 0; i < rows; i++)
    {
        vi_store(c + i * WIDTH, s[i][0]);
        vi_store(c + i * WIDTH + L, s[i][1]);
    }
}

static void tile(int32_t *c, const int16_t *a, int64_t lda, const int16_t *b, int64_t pairs, int64_t rows)
{
    for (; rows >= TILE_ROWS; rows -= TILE_ROWS, a += TILE_ROWS * lda, c += TILE_ROWS * WIDTH)
        tile_rows(c, a, lda, b, pairs, TILE_ROWS);
    for (; rows >= 2; rows -= 2, a += 2 * lda, c += 2 * WIDTH) tile_rows(c, a, lda, b, pairs, 2);
    if (rows) tile_rows(c, a, lda, b, pairs, 1);
}

static int32_t widen_u8(int16_t *restrict dst, const uint8_t *restrict src, int64_t n, int32_t zero)
{
    int32_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const int32_t x = src[i] - zero;
        dst[i] = (int16_t)x;
        sum += x;
    }
    return sum;
}

static int32_t widen_i8(int16_t *restrict dst, const int8_t *restrict src, int64_t n, int32_t zero)
{
    int32_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const int32_t x = src[i] - zero;
        dst[i] = (int16_t)x;
        sum += x;
    }
    return sum;
}

static void integer_finish(int32_t *restrict c, const int32_t *restrict zero, uint32_t sum, int64_t n)
{
    for (int64_t j = 0; j < n; j++) c[j] = (int32_t)((uint32_t)c[j] - (uint32_t)zero[j] * sum);
}

static const integer_set integer_loops = {
    .width = WIDTH, .tile = tile, .widen_u8 = widen_u8, .widen_i8 = widen_i8, .finish = integer_finish
};
