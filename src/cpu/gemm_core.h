/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_core.h - what matrix products and convolutions share: cutting M and N, and running one work tile.
 *
 * The owner supplies where the rows of A lie (a function that fills pointers for a few rows and all taps); the core
 * walks register tiles and panels, and reports finished blocks. */
#ifndef CPU_GEMM_CORE_H
#define CPU_GEMM_CORE_H

#include "cpu/gemm.h"

#include <string.h>

/* Fills out[tap * rows + i] for rows [row, row + rows) of A. */
typedef void gemm_rows_fn(const void *source, int64_t row, int32_t rows, const void **out);
/* From a type in memory to that of a unit's terms; NULL where they are one, or where there is no way (false). */
bool gemm_load_of(isa_level isa, gemm_unit unit, sinter_dtype from, gemm_load_fn **out);

typedef struct gemm_core {
    const gemm_tile_set *set;
    gemm_tactic tactic;
    gemm_rows_fn *rows;
    const void *source;
    /* Instead of them, for a set's `lines`: row r begins at line + r * step terms, and its terms lie at[] bytes on. */
    const char *line;
    const int64_t *at;
    int32_t step; /* 0: rows */
    int64_t m, n, k, taps;
    int64_t a_row, a_col; /* a_row: usual distance of rows, for prefetching only */
    gemm_load_fn *load;   /* NULL, or what converts rows as they are copied */
    int64_t a_size;       /* bytes of an element where rows lie; 0: those of a term */
    int64_t plane;        /* of sets with parts: bytes from part to part; 0: rows are f32, and copied */
    const void *b;        /* packed, panel 0                          */
    int64_t b_depth;      /* 0, or terms of the packed matrix, of which [b_begin, b_begin + k) are multiplied */
    int64_t b_begin;
    int64_t b_words;      /* words from `b` on that may be prefetched: this matrix's, and those of matrices that are
                           * read after it; 0: none behind the block */
    void *c;
    int64_t ldc;
    bool narrow_c;
    const void *bias, *residual; /* of the first column, of the type that the epilogue has them in */
    const gemm_epilogue *epilogue; /* bias and residual of it are not read     */
    int64_t batch, row, col;       /* of the first row and column: what the hook is told */
    int32_t *state;                /* of the set's registers; NULL where it has none of its own */
    const void *zeros;             /* NULL, or a row of A that adds nothing: first and last taps of that alone are left
                                    * out */
} gemm_core;

/* The cut of [m, n]: register tiles of nearly equal height, panels, and the blocks of both that are work tiles. */
typedef struct gemm_grid {
    int64_t rows_small, rows_extra; /* the first `rows_extra` register tiles are one row higher */
    int64_t m_tiles, panels, m_blocks, n_blocks;
    int64_t lanes, width; /* words of a vector and of a full panel */
    int64_t terms, step;  /* in a word; gemm_tile_set.step         */
    int64_t parts;        /* gemm_tile_set.parts; 1 at least       */
} gemm_grid;

gemm_grid gemm_grid_of(const gemm_tile_set *set, gemm_tactic t, int64_t m, int64_t n);
/* Words of a packed matrix before panel `panel` (panel == panels: all of it). Exact only below INT64_MAX. */
int64_t gemm_panel_at(const gemm_grid *g, int64_t taps, int64_t k, int64_t n, int64_t panel);
/* Bytes of scratch for one work tile without a raw B. drain: its sums stay there, too. */
size_t gemm_core_scratch_size(const gemm_tile_set *set, gemm_tactic t, int64_t taps, int64_t k, bool drain);
/* Runs block (m_block, n_block); `b_first` is the panel that core->b points at (0 unless B was packed for this block).
 */
void gemm_core_block(const gemm_core *core, const gemm_grid *g, int64_t m_block, int64_t n_block, int64_t b_first,
                     void *scratch, void *post_user);

/* Copies rows [row, row + rows) of an A with one tap to `to`, gemm_copied_stride bytes apart, in the type of the terms.
 * Parts of a split row begin gemm_copied_plane bytes apart. at: room for `rows` pointers. */
void gemm_core_copy(const gemm_core *core, int64_t row, int32_t rows, const void **at, char *to);
int64_t gemm_copied_stride(const gemm_tile_set *set, int64_t k);
int64_t gemm_copied_plane(const gemm_tile_set *set, int64_t k);

/* The set of a tactic that was checked. */
static inline const gemm_tile_set *gemm_set_of(isa_level isa, gemm_tactic t)
{
    return gemm_unit_set(isa, (gemm_unit)t.unit);
}
static inline int64_t gemm_parts_of(const gemm_tile_set *set)
{
    return set->parts ? set->parts : 1;
}
/* Words of K. */
static inline int64_t gemm_words(const gemm_tile_set *set, int64_t k)
{
    return gemm_parts_of(set) * gemm_words_of(set->terms, set->step, k);
}

/* How many parts K is cut into, GEMM_CUT terms each at most; 0: this unit cannot cut it. Steps are whole. */
int64_t gemm_cuts(gemm_unit unit, int64_t k);

/* Copies n adjacent elements of A as terms: split, converted by `load`, or as they are, of `size` bytes. */
static inline void gemm_terms_copy(const gemm_tile_set *set, gemm_load_fn *load, char *to, int64_t plane,
                                   const void *from, int64_t n, int64_t size)
{
    if (set->split) set->split(to, plane, from, n);
    else if (load) load(to, from, n);
    else memcpy(to, from, (size_t)(n * size));
}

/* Where word `word` of column `col` lies in a packed panel so many words wide, in words (gemm_tile.b). Of
 * sets without parts. */
static inline int64_t gemm_word_at(const gemm_tile_set *set, int64_t k, int64_t width, int64_t word, int64_t col)
{
    if (set->step <= 1) return word * width + col;
    const int64_t words = (k + set->terms - 1) / set->terms, steps = (words + set->step - 1) / set->step;
    const int64_t each = gemm_words(set, k) / steps;
    return (word / each * width + col / set->lanes * set->lanes) * each + word % each * set->lanes + col % set->lanes;
}

/* Whether every count is 1 or more (0 too where `empty`) and their product is a number of floats that memory could
 * hold, so that no arithmetic on sizes here can overflow. */
bool gemm_counts_fit(const int64_t *counts, int count, bool empty);

#endif
