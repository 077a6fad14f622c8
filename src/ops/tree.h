/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h - the table of nodes of tree_ensemble: u32[rows, 4], 16 bytes a row, whatever type the features have.
 *
 *   value[2]   f32 in value[0], or f64 in both: the split of a node, the weight of a leaf
 *   how        four times the feature that a node compares, and TREE_* flags from bit 24 on
 *   next       of a node: where its first child lies, behind which is the second; of a leaf: where it lies itself. In
 *              units of 8 bytes, so twice the row. Of a TREE_ENTRY: a target
 *
 * So a kernel finds feature, flags and the next row without shifting. Rows [0, trees) are the roots. A walk goes on to
 * the first child where the comparison holds, else to the second. Children lie behind their node, so every walk ends. A
 * leaf adds its weight to target 0, or it names a list: value[0] is the first of value[1] TREE_ENTRY rows, each with a
 * weight and a target. The set of a TREE_MEMBER node is such a list of values. */
#ifndef OPS_TREE_H
#define OPS_TREE_H

#include "core/dtype.h"

#include <string.h>

enum {
    TREE_NODE = 1 << 24,                /* no leaf */
    TREE_EQ = 2 << 24,                  /* a node asks x <= split; TREE_EQ: x == split; TREE_MEMBER: x is in a set */
    TREE_MEMBER = 4 << 24,
    TREE_NAN = 8 << 24,                 /* what is no number goes on to the first child */
    TREE_LIST = 2 << 24,                /* of rows that are no nodes */
    TREE_ENTRY = 4 << 24,
    TREE_FEATURES_MAX = 1 << 22,
    TREE_ROWS_MAX = 1 << 28
};

typedef struct tree_row { uint32_t value[2], how, next; } tree_row;
_Static_assert(sizeof(tree_row) == 16, "rows of u32[rows, 4]");

static inline uint32_t tree_feature(const tree_row *r) { return (r->how & 0xFFFFFF) / 4; }
static inline uint32_t tree_how(uint32_t feature, uint32_t flags) { return 4 * feature | flags; }
static inline uint32_t tree_next(const tree_row *r) { return r->next / 2; }
static inline double tree_value(const tree_row *r, sinter_dtype type)
{
    return dtype_load_f64(type, r->value, 0);
}
static inline void tree_value_set(tree_row *r, sinter_dtype type, double x)
{
    r->value[0] = r->value[1] = 0;
    dtype_store_f64(type, r->value, 0, x);
}

/* What a kernel may leave out. */
typedef struct tree_facts {
    bool has_equal;                     /* a node is TREE_EQ or TREE_MEMBER */
    bool has_lists;                     /* a leaf names a list */
} tree_facts;
/* NULL, or why rows are no table for so many trees, targets and features. O(count). After it, every walk from a root
 * ends, and every row, feature and target that is met on it is there. */
const char *tree_check(const tree_row *row, int64_t count, int64_t trees, int64_t targets, int64_t features,
                       tree_facts *facts);
/* Makes up trees of equal size for measuring: a valid table of `count` rows, of balanced trees. varied: with all that
 * rows may have, for tests; some seeds make tables that compare x <= split alone. */
void tree_make(tree_row *row, int64_t count, int64_t trees, int64_t targets, int64_t features, sinter_dtype type,
               uint32_t seed, bool varied);

#endif
