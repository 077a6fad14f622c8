/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_move.h - copies between any strides: runs, transposed blocks, or single elements, whichever the strides allow.
 *
 * A plan is made when shapes are known; its tiles are independent. Elements are bits: types do not matter, sizes do. */
#ifndef CPU_MOVE_H
#define CPU_MOVE_H

#include "core/view.h"

typedef enum move_way { MOVE_RUNS, MOVE_BLOCKS, MOVE_SINGLE } move_way;

/* As move_transpose, of elements of 4 bytes; both counts are multiples of 8. */
typedef void move_squares_fn(char *dst, int64_t to, const char *src, int64_t from, int64_t rows, int64_t cols);

typedef struct move_plan {
    uint32_t way;                       /* move_way */
    uint32_t size;                      /* bytes of an element */
    uint32_t axes;                      /* merged; the last is the innermost of the destination */
    uint32_t across;                    /* blocks: the axis along which the source is contiguous */
    int64_t  dim[SINTER_RANK_MAX], to[SINTER_RANK_MAX], from[SINTER_RANK_MAX];      /* strides in bytes */
    int64_t  outer;                     /* positions of all axes but the last (and `across`) */
    /* of these, those of one tile; where 0, the last axis is cut into pieces of `piece`, and `across` into `rows` */
    int64_t  unit;
    int64_t  piece, rows;
    move_squares_fn *squares;           /* NULL, or what is faster than move_transpose */
} move_plan;

/* Both views have one shape and element size (8 bits or more). Their data is not read. */
void    move_plan_init(move_plan *p, const view *dst, const view *src, move_squares_fn *squares);
int64_t move_tile_count(const move_plan *p);
void    move_run(const move_plan *p, void *dst, const void *src, int64_t begin, int64_t end);

/* dst[r][c] = src[c][r], elements of 1, 2, 4 or 8 bytes: rows of dst are `to` bytes apart, columns of src `from`. */
void    move_transpose(uint32_t size, char *dst, int64_t to, const char *src, int64_t from, int64_t rows, int64_t cols);

#endif
