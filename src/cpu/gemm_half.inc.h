/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_half.inc.h - micro-kernels of f32 that compute half of a panel's last vector, where that is all of its columns:
 * 24 columns take the multiplications of 24, not of 32. Only levels whose vectors have halves (VEC_HALF) have them. */
#ifdef VEC_HALF
static inline __attribute__((always_inline)) void half_run(const gemm_tile *t, const int rows, const int vectors)
{
    const int width = vectors * VEC_LANES, last = vectors - 1;
    vec acc[GEMM_UNIT_ROWS][GEMM_VECTORS_MAX];
    hvec end[GEMM_UNIT_ROWS];
    UNROLL for (int i = 0; i < rows; i++)
    {
        UNROLL for (int j = 0; j < last; j++) acc[i][j] = v_zero();
        end[i] = h_zero();
    }
    UNROLL for (int i = 0; i < rows; i++)
    {
        const float *line = (const float *)t->c + i * t->ldc;
        UNROLL for (int j = 0; j < width; j += WORDS_PER_LINE) __builtin_prefetch(line + j, 1);
    }
    if (t->residual) {
        UNROLL for (int i = 0; i < rows; i++)
        {
            const float *line = (const float *)t->residual + i * t->ldr;
            UNROLL for (int j = 0; j < width; j += WORDS_PER_LINE) __builtin_prefetch(line + j);
        }
    }
    const float *b = t->b;
    const void *const *from = t->a;
    const int64_t ahead = t->ahead;
    for (int64_t tap = t->taps; tap > 0; tap--, from += rows) {
        const char *a[GEMM_UNIT_ROWS];
        UNROLL for (int i = 0; i < rows; i++) a[i] = from[i];
        for (int64_t k = 0; k < t->k; k++, b += width) {
            if (ahead && k % WORDS_PER_LINE == 0) {
                UNROLL for (int i = 0; i < rows; i++) __builtin_prefetch(a[i] + 4 * k + ahead);
            }
            vec bv[GEMM_VECTORS_MAX];
            UNROLL for (int j = 0; j < last; j++) bv[j] = v_load(b + j * VEC_LANES);
            const hvec b_end = h_load(b + last * VEC_LANES);
            /* Two rows at a time: where a vector takes two turns of a unit and a half one, two of each fill two. */
            UNROLL for (int i = 0; i < rows; i += 2)
            {
                const int other = i + 1 < rows ? i + 1 : i;
                const vec av = v_set(word_f32(a[i] + 4 * k)), next = v_set(word_f32(a[other] + 4 * k));
                UNROLL for (int j = 0; j < last; j++)
                {
                    acc[i][j] = v_fma(av, bv[j], acc[i][j]);
                    if (other != i) acc[other][j] = v_fma(next, bv[j], acc[other][j]);
                }
                end[i] = h_fma(h_of(av), b_end, end[i]);
                if (other != i) end[other] = h_fma(h_of(next), b_end, end[other]);
            }
        }
    }
    gemm_tile part = *t;
    if (last) {
        part.cols = last * VEC_LANES;
        tile_end_f32(&part, acc, rows, rows, last);
        part.cols = t->cols - last * VEC_LANES;
        part.c = (float *)t->c + last * VEC_LANES;
        if (t->bias) part.bias = (const float *)t->bias + last * VEC_LANES;
        if (t->residual) part.residual = (const float *)t->residual + last * VEC_LANES;
    }
    vec wide[GEMM_UNIT_ROWS][GEMM_VECTORS_MAX];
    UNROLL for (int i = 0; i < rows; i++) wide[i][0] = v_of_half(end[i]);
    tile_end_f32(&part, wide, rows, rows, 1);
}

#define HALF(r, v)                                                                                                     \
    static void half_##r##x##v(const gemm_tile *t)                                                                     \
    {                                                                                                                  \
        half_run(t, r, v);                                                                                             \
    }
#define HALF_NAME(r, v) half_##r##x##v,
UNIT_PASTE(TILES_TO, UNIT_ROWS_1)(HALF, 1)
UNIT_PASTE(TILES_TO, UNIT_ROWS_2)(HALF, 2)
UNIT_PASTE(TILES_TO, UNIT_ROWS_3)(HALF, 3)
#define GEMM_HALVES                                                                                                    \
    .half = { { UNIT_PASTE(TILES_TO, UNIT_ROWS_1)(HALF_NAME, 1) NULL },                                                \
              { UNIT_PASTE(TILES_TO, UNIT_ROWS_2)(HALF_NAME, 2) NULL },                                                \
              { UNIT_PASTE(TILES_TO, UNIT_ROWS_3)(HALF_NAME, 3) NULL } },
#else
#define GEMM_HALVES
#endif
