/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_tree.h - trees as tables, whatever the operator they come from. */
#ifndef ONNX_QUIRKS_TREE_H
#define ONNX_QUIRKS_TREE_H

#include "onnx/quirks.h"

enum { TREE_LEQ, TREE_LT, TREE_GTE, TREE_GT, TREE_EQ, TREE_NEQ, TREE_MEMBER, TREE_LEAF };

typedef struct forest {
    uint32_t  nodes, leaves, trees, width; /* nodes: leaves too, behind the others; width: of the result */
    uint32_t  sets;                     /* members of the largest set */
    sinter_dtype type;                  /* of splits and weights */
    int64_t  *feature, *next;           /* next[2 i]: where the comparison fails, next[2 i + 1]: where it holds */
    uint8_t  *mode, *missing;           /* missing: what is no number goes where the comparison holds */
    double   *split, *set, *weight;     /* set: [nodes, sets]; weight: [leaves, width], NaN: none */
    int64_t  *root;
    bool      has_mode[TREE_LEAF], has_missing;
} forest;

/* Zeroed tables for the counts that are set. */
void        tree_forest_new(onnx_call *c, forest *f);
/* What the trees say of each row of x, [B, width]. */
ir_value_id tree_answer(onnx_call *c, forest *f, ir_value_id x, reduce_kind kind);

#endif
