/* SPDX-License-Identifier: Apache-2.0 */
/* weights4.c - weights4.h has the contract.
 *
 * Errors are those of results, not of weights: the difference between a block and its rounded form is multiplied by the
 * data. A term whose data is large so counts more than one whose data is near 0. */
#include "tune/weights4.h"

#include <math.h>
#include <string.h>

enum { CODE_LEAST = -8, CODE_MOST = 7, CLIPS = 11 };
static const float clip_step = 0.05f, scale_least = 1e-30f;

int64_t weight4_blocks(const weight4 *w)
{
    return (w->terms + w->block - 1) / w->block;
}

static float weight_at(const weight4 *w, const float *by, int64_t term, int64_t column)
{
    const float x = w->is_turned ? w->w[column * w->terms + term] : w->w[term * w->columns + column];
    return by ? x * by[term] : x;
}

static int64_t block_end(const weight4 *w, int64_t first)
{
    return first + w->block < w->terms ? first + w->block : w->terms;
}

static int8_t code_of(float x, float scale)
{
    const float c = nearbyintf(x / scale);
    return (int8_t)(c < (float)CODE_LEAST ? (float)CODE_LEAST : c > (float)CODE_MOST ? (float)CODE_MOST : c);
}

/* The scales of one block, by column, with the largest magnitude times `clip`. */
static void scales_of(const weight4 *w, const float *by, int64_t first, float clip, float *scale)
{
    const int64_t end = block_end(w, first);
    for (int64_t c = 0; c < w->columns; c++) scale[c] = 0;
    for (int64_t t = first; t < end; t++)
        for (int64_t c = 0; c < w->columns; c++) {
            const float size = fabsf(weight_at(w, by, t, c));
            if (size > scale[c]) scale[c] = size;
        }
    for (int64_t c = 0; c < w->columns; c++) scale[c] = scale[c] > scale_least ? scale[c] * clip / (float)CODE_MOST : 1;
}

enum { TERMS_AT_ONCE = 4 };

/* to += x[0] * d[0] + … + x[3] * d[3], where d is [4, count]. */
static void add_terms(float *restrict to, const float *restrict d, const float *x, int64_t count)
{
    const float *const d1 = d + count, *const d2 = d1 + count, *const d3 = d2 + count;
    for (int64_t c = 0; c < count; c++) to[c] += (x[0] * d[c] + x[1] * d1[c]) + (x[2] * d2[c] + x[3] * d3[c]);
}

/* result [rows, columns] += data of one block times the error of its weights. moved: [TERMS_AT_ONCE, columns]. */
static void error_add(const weight4 *w, const float *by, int64_t first, const float *scale, float *moved, float *result)
{
    const int64_t end = block_end(w, first);
    for (int64_t t = first; t < end; t += TERMS_AT_ONCE) {
        const int64_t some = end - t < TERMS_AT_ONCE ? end - t : TERMS_AT_ONCE;
        if (some < TERMS_AT_ONCE) memset(moved, 0, TERMS_AT_ONCE * (size_t)w->columns * sizeof *moved);
        for (int64_t i = 0; i < some; i++)
            for (int64_t c = 0; c < w->columns; c++) {
                const float x = weight_at(w, by, t + i, c), error = x - (float)code_of(x, scale[c]) * scale[c];
                moved[i * w->columns + c] = by ? error / by[t + i] : error;
            }
        for (int64_t r = 0; r < w->rows; r++) {
            float x[TERMS_AT_ONCE] = { 0 };
            for (int64_t i = 0; i < some; i++) x[i] = w->data[r * w->terms + t + i];
            add_terms(result + r * w->columns, moved, x, w->columns);
        }
    }
}

/* scale: at first that of rounding; afterwards that of the least error, by column. */
static bool clip_block(const weight4 *w, const float *by, int64_t first, arena *scratch, float *scale)
{
    const arena_mark mark = arena_save(scratch);
    const size_t columns = (size_t)w->columns, size = columns * (size_t)w->rows;
    float *tried = ARENA_NEW(scratch, float, columns), *moved = ARENA_NEW(scratch, float, columns *TERMS_AT_ONCE),
          *result = ARENA_NEW(scratch, float, size);
    double *least = ARENA_NEW(scratch, double, columns);
    if (!tried || !moved || !result || !least) return false;
    for (int k = 0; k < CLIPS; k++) {
        scales_of(w, by, first, 1 - (float)k * clip_step, tried);
        memset(result, 0, size * sizeof *result);
        error_add(w, by, first, tried, moved, result);
        for (int64_t c = 0; c < w->columns; c++) {
            double sum = 0;
            for (int64_t r = 0; r < w->rows; r++) {
                const double x = (double)result[r * w->columns + c];
                sum += x * x;
            }
            if (k && sum >= least[c]) continue;
            least[c] = sum;
            scale[c] = tried[c];
        }
    }
    arena_rewind(scratch, mark);
    return true;
}

static void codes_put(const weight4 *w, const float *by, int64_t first, const float *scale, int8_t *code)
{
    const int64_t padded = weight4_blocks(w) * w->block;
    for (int64_t t = first; t < first + w->block; t++)
        for (int64_t c = 0; c < w->columns; c++)
            code[w->is_turned ? c * padded + t : t * w->columns + c] =
                t < w->terms ? code_of(weight_at(w, by, t, c), scale[c]) : 0;
}

bool weight4_make(const weight4 *w, const float *by, bool clip, arena *scratch, int8_t *code, float *scale)
{
    const arena_mark mark = arena_save(scratch);
    const int64_t blocks = weight4_blocks(w);
    float *own = ARENA_NEW(scratch, float, (size_t)w->columns);
    if (!own) return false;
    for (int64_t b = 0; b < blocks; b++) {
        scales_of(w, by, b * w->block, 1, own);
        if (clip && w->rows && !clip_block(w, by, b * w->block, scratch, own)) return false;
        codes_put(w, by, b * w->block, own, code);
        for (int64_t c = 0; c < w->columns; c++) scale[w->is_turned ? c * blocks + b : b * w->columns + c] = own[c];
    }
    arena_rewind(scratch, mark);
    return true;
}

double weight4_error(const weight4 *w, const float *by, arena *scratch)
{
    const arena_mark mark = arena_save(scratch);
    const size_t columns = (size_t)w->columns, size = columns * (size_t)w->rows;
    float *scale = ARENA_NEW(scratch, float, columns), *moved = ARENA_NEW(scratch, float, columns *TERMS_AT_ONCE),
          *result = ARENA_NEW(scratch, float, size);
    double sum = 0;
    if (!scale || !moved || !result) return -1;
    for (int64_t b = 0; b < weight4_blocks(w); b++) {
        scales_of(w, by, b * w->block, 1, scale);
        error_add(w, by, b * w->block, scale, moved, result);
    }
    for (size_t i = 0; i < size; i++) sum += (double)result[i] * (double)result[i];
    arena_rewind(scratch, mark);
    return sum;
}
