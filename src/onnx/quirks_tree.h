/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_tree.h - trees of decisions, whatever the operator they come from. */
#ifndef ONNX_QUIRKS_TREE_H
#define ONNX_QUIRKS_TREE_H

#include "onnx/quirks.h"

enum { FOREST_LEQ, FOREST_LT, FOREST_GTE, FOREST_GT, FOREST_EQ, FOREST_NEQ, FOREST_MEMBER, FOREST_LEAF };

/* Trees as a model has them. A place from `nodes` on is a leaf. */
typedef struct forest {
    uint32_t  nodes, leaves, trees, targets;
    sinter_dtype type;                  /* of features, splits and weights: f32 or f64 */
    int64_t  *feature, *next;           /* next[2 i]: where the comparison fails, next[2 i + 1]: where it holds */
    uint8_t  *mode, *missing;           /* missing: what is no number goes where the comparison holds */
    double   *split;
    uint32_t *set;                      /* [nodes + 1]: where the set of a node begins in `member`; NULL: no sets */
    double   *member;
    uint32_t *pair;                     /* [leaves + 1]: where the targets and weights of a leaf begin */
    uint32_t *target;
    double   *weight;
    int64_t  *root;
} forest;

/* Memory that dies with the import, zeroed; NULL after a failure. */
void       *forest_table(onnx_call *c, size_t count, size_t size);
/* Tables for the counts that are set, and for so many weights. */
void        forest_new(onnx_call *c, forest *f, uint32_t weights);
/* What the trees say of each row of x, [B, targets], in f->type. x may be one row without a batch. */
ir_value_id forest_build(onnx_call *c, const forest *f, ir_value_id x, reduce_kind kind);

#endif
