/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_lines.inc.h - micro-kernels of f32 whose rows of A overlap: neighbouring pixels of lines of an image.
 *
 * One list says where every term lies, from a moving start; the next row is a constant step further. So nothing but
 * one address is read for a term, and no row of A has to be put together. All rows that the registers hold are
 * computed; as many as there are, are written. */
static inline __attribute__((always_inline)) void lines_run(const gemm_tile *t, const int rows, const int vectors,
                                                            const int step)
{
    const int width = vectors * VEC_LANES, live = t->rows;
    vec acc[GEMM_UNIT_ROWS][GEMM_VECTORS_MAX];
    UNROLL for (int i = 0; i < rows; i++)
    {
        UNROLL for (int j = 0; j < vectors; j++) acc[i][j] = v_zero();
    }
    UNROLL for (int i = 0; i < rows; i++)
    {
        if (i >= live) break;
        const float *line = (const float *)t->c + i * t->ldc;
        UNROLL for (int j = 0; j < width; j += WORDS_PER_LINE) __builtin_prefetch(line + j, 1);
    }
    const float *b = t->b;
    for (int64_t k = 0; k < t->k; k++, b += width) {
        const char *a = t->line + t->at[k];
        vec bv[GEMM_VECTORS_MAX];
        UNROLL for (int j = 0; j < vectors; j++) bv[j] = v_load(b + j * VEC_LANES);
        UNROLL for (int i = 0; i < rows; i++)
        {
            const vec av = v_set(word_f32(a + i * step * 4));
            UNROLL for (int j = 0; j < vectors; j++) acc[i][j] = v_fma_into(av, bv[j], acc[i][j]);
        }
    }
    tile_end_f32(t, acc, rows, live, vectors);
}

#define LINES(v, s)                                                                                                    \
    static void lines_##v##_##s(const gemm_tile *t)                                                                    \
    {                                                                                                                  \
        lines_run(t, UNIT_ROWS_##v, v, s);                                                                             \
    }
LINES(1, 1)
LINES(2, 1)
LINES(3, 1)
LINES(4, 1)
LINES(1, 2)
LINES(2, 2)
LINES(3, 2)
LINES(4, 2)
#undef LINES

#define GEMM_LINES                                                                                                     \
    .lines = { { lines_1_1, lines_2_1, lines_3_1, lines_4_1 }, { lines_1_2, lines_2_2, lines_3_2, lines_4_2 } },
