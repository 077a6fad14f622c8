/* SPDX-License-Identifier: Apache-2.0 */
/* trees.h - walks of rows of features through trees (ops/tree.h): eight at once, so that the CPU has other work while
 * one waits for its next node.
 *
 * A step is two dependent loads, a comparison and an addition, without a branch: about ten instructions. The eight are
 * rows in one tree, or trees for one row where fewer rows are left. Either way a row's weights are added in the order
 * of the trees, in double: a result does not depend on the rows beside it. Vectors were not tried: a step would take
 * four gathers, each of which reads its lanes one by one. */
#ifndef CPU_TREES_H
#define CPU_TREES_H

#include "ops/tree.h"

/* LANES: walks at once. FAST_MAX: the most features of rows that are spread: offsets of 16 bits. */
enum { TREES_LANES = 8, TREES_FAST_MAX = 1 << 14 };
/* What a step has to look at. TREES_PLAIN: no feature is a NaN, and all nodes compare x <= split. TREES_NAN: the latter
 * alone. TREES_ANY: any node, and rows of features as they are. */
typedef enum trees_way { TREES_PLAIN, TREES_NAN, TREES_ANY } trees_way;
typedef enum trees_fold { TREES_SUM, TREES_MIN, TREES_MAX } trees_fold;

typedef struct trees_walk {
    const tree_row *row;        /* checked: tree_check */
    const void     *x;          /* TREES_ANY: rows of features; else as spread by `spread` */
    int64_t         features;
    int64_t         first, stop;    /* trees */
    double         *sum;        /* [rows, targets]; NaN: none yet, of TREES_MIN and TREES_MAX */
    int64_t         targets;
    trees_fold      fold;
    bool            has_lists;
} trees_walk;

/* Of one type of features. */
typedef struct trees_set {
    /* By trees_way: takes the weights of trees [first, stop) for `rows` rows. */
    void (*walk[TREES_ANY + 1])(const trees_walk *w, int64_t rows);
    /* Lays rows out for walks: [features, lanes] for each eight rows, and the same, of one row in all lanes, for each
     * row that is left. True: there is a NaN among them. */
    bool (*spread)(const void *x, int64_t features, int64_t rows, void *to);
} trees_set;
/* The most groups that `spread` makes of so many rows, or of fewer. */
static inline int64_t trees_groups(int64_t rows)
{
    return rows < TREES_LANES ? rows : rows / TREES_LANES + TREES_LANES - 1;
}

#endif
