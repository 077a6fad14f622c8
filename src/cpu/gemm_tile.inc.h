/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_tile.inc.h - the text of the micro-kernels, included once by each instruction set's file after its vec_*.h.
 *
 * One always-inlined body with constant `rows` and `vectors`, instantiated for every pair whose accumulators fit the
 * registers beside one broadcast of A and a row of B. The accumulators never leave the registers before the epilogue.
 */

/* How far ahead of use B is asked for: a stream from far memory gains, one from the caches does not lose. */
enum { PREFETCH_AHEAD = 512, FLOATS_PER_LINE = 16 };

#define TILE_STEP(kk)                                                                                                  \
    do {                                                                                                               \
        vec bv[GEMM_VECTORS_MAX];                                                                                      \
        UNROLL for (int j = 0; j < vectors; j++) bv[j] = v_load(b + (kk)*width + j * VEC_LANES);                       \
        if (rows <= 4) {                                                                                               \
            UNROLL for (int j = 0; j < width; j += FLOATS_PER_LINE)                                                    \
                __builtin_prefetch(b + (kk)*width + j + PREFETCH_AHEAD);                                               \
        }                                                                                                              \
        UNROLL for (int i = 0; i < rows; i++)                                                                          \
        {                                                                                                              \
            const vec av = v_set(a[i][k + (kk)]);                                                                      \
            UNROLL for (int j = 0; j < vectors; j++) acc[i][j] = v_fma(av, bv[j], acc[i][j]);                          \
        }                                                                                                              \
    } while (0)

static inline __attribute__((always_inline)) void tile_run(const gemm_tile *t, const int rows, const int vectors)
{
    const int width = vectors * VEC_LANES;
    vec acc[GEMM_ROWS_MAX][GEMM_VECTORS_MAX];
    UNROLL for (int i = 0; i < rows; i++)
    {
        UNROLL for (int j = 0; j < vectors; j++) acc[i][j] = v_zero();
    }
    const float *b = t->b;
    const float *const *from = t->a;
    const int64_t k_count = t->k, ahead = t->ahead;
    /* The sums take long enough for C and the residual to arrive from far memory meanwhile. */
    UNROLL for (int i = 0; i < rows; i++)
    {
        const float *line = t->c + i * t->ldc;
        UNROLL for (int j = 0; j < width; j += FLOATS_PER_LINE) __builtin_prefetch(line + j, 1);
    }
    if (t->residual) {
        UNROLL for (int i = 0; i < rows; i++)
        {
            const float *line = t->residual + i * t->ldr;
            UNROLL for (int j = 0; j < width; j += FLOATS_PER_LINE) __builtin_prefetch(line + j);
        }
    }
    for (int64_t tap = t->taps; tap > 0; tap--, from += rows) {
        const float *a[GEMM_ROWS_MAX];
        UNROLL for (int i = 0; i < rows; i++) a[i] = from[i];
        int64_t k = 0;
        for (; k + 4 <= k_count; k += 4, b += 4 * width) {
            if (ahead && k % FLOATS_PER_LINE == 0) {
                UNROLL for (int i = 0; i < rows; i++) __builtin_prefetch(a[i] + k + ahead);
            }
            TILE_STEP(0);
            TILE_STEP(1);
            TILE_STEP(2);
            TILE_STEP(3);
        }
        for (; k < k_count; k++, b += width) TILE_STEP(0);
    }

    const int last = vectors - 1, tail = t->cols - last * VEC_LANES;
    float *c = t->c;
    const float *residual = t->residual;
    vec bias[GEMM_VECTORS_MAX];
    UNROLL for (int j = 0; j < vectors; j++) bias[j] = v_zero();
    if (t->bias) {
        UNROLL for (int j = 0; j < last; j++) bias[j] = v_load(t->bias + j * VEC_LANES);
        bias[last] = v_load_n(t->bias + last * VEC_LANES, tail);
    }
    if (t->flags & GEMM_TILE_ALPHA) {
        const vec alpha = v_set(t->alpha);
        UNROLL for (int i = 0; i < rows; i++)
        {
            UNROLL for (int j = 0; j < vectors; j++) acc[i][j] = v_mul(alpha, acc[i][j]);
        }
    }
    UNROLL for (int i = 0; i < rows; i++)
    {
        UNROLL for (int j = 0; j < vectors; j++) acc[i][j] = v_add(acc[i][j], bias[j]);
    }
    if (residual) {
        UNROLL for (int i = 0; i < rows; i++, residual += t->ldr)
        {
            UNROLL for (int j = 0; j < last; j++) acc[i][j] = v_add(acc[i][j], v_load(residual + j * VEC_LANES));
            acc[i][last] = v_add(acc[i][last], v_load_n(residual + last * VEC_LANES, tail));
        }
    }
    if (t->flags & GEMM_TILE_CLIP) {
        const vec lo = v_set(t->lo), hi = v_set(t->hi);
        UNROLL for (int i = 0; i < rows; i++)
        {
            UNROLL for (int j = 0; j < vectors; j++) acc[i][j] = v_min(hi, v_max(lo, acc[i][j]));
        }
    }
    if (tail == VEC_LANES) {
        UNROLL for (int i = 0; i < rows; i++, c += t->ldc)
        {
            UNROLL for (int j = 0; j < vectors; j++) v_store(c + j * VEC_LANES, acc[i][j]);
        }
    } else {
        UNROLL for (int i = 0; i < rows; i++, c += t->ldc)
        {
            UNROLL for (int j = 0; j < last; j++) v_store(c + j * VEC_LANES, acc[i][j]);
            v_store_n(c + last * VEC_LANES, acc[i][last], tail);
        }
    }
}

typedef float quad __attribute__((vector_size(16)));

static inline quad quad_load(const float *p)
{
    quad q;
    memcpy(&q, p, sizeof q);
    return q;
}

/* Columns of B whose elements are adjacent, as the rows of a transposed operand: squares of 4 x 4 are turned in
 * registers. */
static void pack_across(float *dst, const float *src, int64_t k, int32_t cols, int32_t width, int64_t col_stride)
{
    for (int32_t j = 0; j < width; j += 4) {
        const float *s = src + j * col_stride;
        const int32_t left = cols - j;
        float *d = dst + j;
        int64_t i = 0;
        for (; i + 4 <= k; i += 4, d += 4 * width) {
            const quad zero = { 0, 0, 0, 0 };
            const quad a = left > 0 ? quad_load(s + i) : zero, b = left > 1 ? quad_load(s + col_stride + i) : zero;
            const quad c = left > 2 ? quad_load(s + 2 * col_stride + i) : zero;
            const quad e = left > 3 ? quad_load(s + 3 * col_stride + i) : zero;
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
        for (; i < k; i++, d += width) {
            for (int32_t c = 0; c < 4; c++) d[c] = c < left ? s[c * col_stride + i] : 0.0f;
        }
    }
}

static void pack_panel(float *dst, const float *src, int64_t k, int32_t cols, int32_t width, int64_t row_stride,
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
        pack_across(dst, src, k, cols, width, col_stride);
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

#define TILE(r, v)                                                                                                     \
    static void tile_##r##x##v(const gemm_tile *t)                                                                     \
    {                                                                                                                  \
        tile_run(t, r, v);                                                                                             \
    }

#if VEC_REGISTERS == 32
#define TILES_1(T)                                                                                                     \
    T(1, 1) T(2, 1) T(3, 1) T(4, 1) T(5, 1) T(6, 1) T(7, 1) T(8, 1) T(9, 1) T(10, 1) T(11, 1) T(12, 1) T(13, 1) T(14, 1)
#define TILES_2(T)                                                                                                     \
    T(1, 2) T(2, 2) T(3, 2) T(4, 2) T(5, 2) T(6, 2) T(7, 2) T(8, 2) T(9, 2) T(10, 2) T(11, 2) T(12, 2) T(13, 2) T(14, 2)
#define TILES_3(T) T(1, 3) T(2, 3) T(3, 3) T(4, 3) T(5, 3) T(6, 3) T(7, 3) T(8, 3) T(9, 3)
#define TILES_4(T) T(1, 4) T(2, 4) T(3, 4) T(4, 4) T(5, 4) T(6, 4)
#define TILE_ROWS_MAX                                                                                                  \
    {                                                                                                                  \
        14, 14, 9, 6                                                                                                   \
    }
#else
#define TILES_1(T) T(1, 1) T(2, 1) T(3, 1) T(4, 1) T(5, 1) T(6, 1) T(7, 1) T(8, 1) T(9, 1) T(10, 1) T(11, 1) T(12, 1)
#define TILES_2(T) T(1, 2) T(2, 2) T(3, 2) T(4, 2) T(5, 2) T(6, 2)
#define TILES_3(T) T(1, 3) T(2, 3) T(3, 3) T(4, 3)
#define TILES_4(T) T(1, 4) T(2, 4)
#define TILE_ROWS_MAX                                                                                                  \
    {                                                                                                                  \
        12, 6, 4, 2                                                                                                    \
    }
#endif

TILES_1(TILE)
TILES_2(TILE)
TILES_3(TILE)
TILES_4(TILE)

#define TILE_NAME(r, v) tile_##r##x##v,
static const gemm_tile_set gemm_tiles = {
    .lanes = VEC_LANES,
    .rows_max = TILE_ROWS_MAX,
    .run = { { TILES_1(TILE_NAME) }, { TILES_2(TILE_NAME) }, { TILES_3(TILE_NAME) }, { TILES_4(TILE_NAME) } },
    .pack = pack_panel,
};
