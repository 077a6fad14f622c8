/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_tree.c - decision trees: TreeEnsemble of ai.onnx.ml.
 *
 * All trees are tables of nodes. Every row of the input stands at one node of each tree, [B, T]; one level after the
 * other, all of them go on at once. A leaf goes on to itself. */
#include "onnx/quirks_tree.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEVELS_MAX = 512, NODES_MAX = 1 << 24, TABLE_MAX = 1 << 26 };
static void *table(onnx_call *c, size_t count, size_t size)
{
    const size_t bytes = size_mul(count, size);
    void *at = bytes <= (size_t)8 * TABLE_MAX ? arena_alloc(&c->b.g->a, bytes ? bytes : 1, 16) : NULL;
    if (!at) REJECT(c, NO_MEMORY, "out of memory for the trees");
    else memset(at, 0, bytes);
    return at;
}

void tree_forest_new(onnx_call *c, forest *f)
{
    if (f->nodes > NODES_MAX || f->width > NODES_MAX) REJECT(c, UNSUPPORTED, "more than %d nodes", (int)NODES_MAX);
    if (!f->width || !f->trees || !f->leaves) REJECT(c, INVALID_MODEL, "no trees, no leaves or no targets");
    if (c->b.status) return;
    f->feature = table(c, f->nodes, sizeof *f->feature);
    f->next = table(c, 2 * (size_t)f->nodes, sizeof *f->next);
    f->mode = table(c, f->nodes, 1);
    f->missing = table(c, f->nodes, 1);
    f->split = table(c, f->nodes, sizeof *f->split);
    f->weight = table(c, size_mul(f->leaves, f->width), sizeof *f->weight);
    f->root = table(c, f->trees, sizeof *f->root);
}

/* How many levels the deepest tree has. A node that is met twice on the way down from a root makes a circle. */
static uint32_t depth_of(onnx_call *c, const forest *f)
{
    uint32_t depth = 0, count = 0;
    const uint32_t inner = f->nodes - f->leaves;
    int64_t *level = table(c, (size_t)f->nodes + f->trees, sizeof *level), *below = level;
    uint8_t *is_met = table(c, f->nodes, 1);
    if (c->b.status) return 0;
    int64_t *other = table(c, (size_t)f->nodes + f->trees, sizeof *other);
    if (c->b.status) return 0;
    for (uint32_t i = 0; i < f->trees; i++)
        if (f->root[i] < inner) level[count++] = f->root[i];
    for (; count && !c->b.status; depth++) {
        uint32_t more = 0;
        below = depth % 2 ? level : other;
        const int64_t *at = depth % 2 ? other : level;
        for (uint32_t i = 0; i < count && !c->b.status; i++) {
            if (is_met[at[i]]++) REJECT(c, INVALID_MODEL, "node %lld has two parents", (long long)at[i]);
            for (uint32_t k = 0; k < 2 && !c->b.status; k++)
                if (f->next[2 * at[i] + k] < inner) below[more++] = f->next[2 * at[i] + k];
        }
        count = more;
    }
    if (depth > LEVELS_MAX)
        REJECT(c, UNSUPPORTED, "trees of %u levels; up to %d are supported", depth, (int)LEVELS_MAX);
    return depth;
}

static ir_value_id ints(onnx_call *c, const int64_t *at, uint32_t count)
{
    return c->b.status ? 0 : ir_const_i64s(c->b.g, at, count);
}

static ir_value_id reals(onnx_call *c, sinter_dtype type, const double *at, uint32_t rows, uint32_t columns)
{
    const int64_t d[2] = { rows, columns };
    void *data = table(c, size_mul(rows, columns ? columns : 1), 8);
    for (size_t i = 0; data && i < (size_t)rows * (columns ? columns : 1); i++)
        dtype_store_f64(type, data, (int64_t)i, at[i]);
    return c->b.status ? 0 : ir_const(c->b.g, NULL, type, columns ? 2 : 1, d, data);
}

static ir_value_id bytes(onnx_call *c, const uint8_t *at, uint32_t count)
{
    return c->b.status ? 0 : ir_const(c->b.g, NULL, SINTER_DTYPE_U8, 1, (int64_t[]){ count }, at);
}

static ir_value_id picked(onnx_call *c, ir_value_id from, ir_value_id at)
{
    return build_gather(&c->b, from, at, NULL);
}

/* What a level compares: constants of the graph. */
typedef struct tables {
    ir_value_id feature, next, split, mode, missing, set;
} tables;

static ir_value_id compared(onnx_call *c, const forest *f, const tables *t, ir_value_id x, ir_value_id at,
                            uint32_t mode)
{
    static const op_id ops[] = { [TREE_LEQ] = OP_le, [TREE_LT] = OP_lt, [TREE_GTE] = OP_ge,
                                 [TREE_GT] = OP_gt,  [TREE_EQ] = OP_eq, [TREE_NEQ] = OP_eq };
    static const int64_t last = 2;
    if (mode != TREE_MEMBER) {
        const ir_value_id y = build_binary(&c->b, ops[mode], x, picked(c, t->split, at));
        return mode == TREE_NEQ ? build_not(&c->b, y) : y;
    }
    if (!f->sets) return build_eq(&c->b, x, picked(c, t->split, at));
    const ir_value_id set = picked(c, t->set, at), same = build_eq(&c->b, build_unsqueezed(&c->b, x, 2), set),
                      any = build_reduced(&c->b, reduce_kind_max, build_typed(&c->b, same, SINTER_DTYPE_F32), &last, 1,
                                          false);
    return build_gt(&c->b, any, build_scalar_like(&c->b, any, 0));
}

static ir_value_id level(onnx_call *c, const forest *f, const tables *t, ir_value_id x, ir_value_id at)
{
    attrs_gather_elements *a = DEFAULTS(gather_elements);
    a->axis = 1;
    const ir_value_id seen =
        build_emit(&c->b, OP_gather_elements, a, (ir_value_id[]){ x, picked(c, t->feature, at) }, 2);
    ir_value_id holds = 0;
    for (uint32_t mode = TREE_LEQ; mode <= TREE_MEMBER && !c->b.status; mode++) {
        if (!f->has_mode[mode]) continue;
        const ir_value_id y = compared(c, f, t, seen, at, mode);
        if (holds) {
            const ir_value_id number = build_scalar_i64(&c->b, SINTER_DTYPE_U8, mode);
            holds = build_where(&c->b, build_eq(&c->b, picked(c, t->mode, at), number), y, holds);
        } else {
            holds = y;
        }
    }
    if (f->has_missing) {
        const ir_value_id goes = build_typed(&c->b, picked(c, t->missing, at), SINTER_DTYPE_BOOL);
        holds = build_or(&c->b, holds, build_and(&c->b, build_is_nan(&c->b, seen), goes));
    }
    const ir_value_id two = build_scalar_i64(&c->b, SINTER_DTYPE_I64, 2),
                      side = build_typed(&c->b, holds, SINTER_DTYPE_I64),
                      step = build_add(&c->b, build_mul(&c->b, at, two), side);
    return picked(c, t->next, step);
}

/* The leaf of each tree that each row of x comes to, [B, T], counted from the first leaf. */
static ir_value_id leaves_of(onnx_call *c, const forest *f, ir_value_id x)
{
    const uint32_t inner = f->nodes - f->leaves, depth = depth_of(c, f);
    if (c->b.status) return 0;
    x = build_typed(&c->b, x, f->type);
    tables t = { .feature = ints(c, f->feature, f->nodes) };
    t.next = ints(c, f->next, 2 * f->nodes);
    t.split = reals(c, f->type, f->split, f->nodes, 0);
    t.mode = bytes(c, f->mode, f->nodes);
    t.missing = bytes(c, f->missing, f->nodes);
    if (f->sets) t.set = reals(c, f->type, f->set, f->nodes, f->sets);
    const dim d[2] = { call_dim(c, x, 0), call_k(c, f->trees) };
    ir_value_id at = build_expanded(&c->b, ints(c, f->root, f->trees), d, 2);
    for (uint32_t i = 0; i < depth && !c->b.status; i++) at = level(c, f, &t, x, at);
    return build_sub(&c->b, at, build_scalar_i64(&c->b, SINTER_DTYPE_I64, inner));
}

/* Sum, mean, least or largest over the trees. Of the last two, a target that no tree speaks of is 0. */
static ir_value_id together(onnx_call *c, const forest *f, ir_value_id leaf, reduce_kind kind)
{
    static const int64_t trees = 1;
    const double none = kind == reduce_kind_min ? (double)INFINITY : kind == reduce_kind_max ? -(double)INFINITY : 0;
    for (size_t i = 0; i < (size_t)f->leaves * f->width; i++)
        if (isnan(f->weight[i])) f->weight[i] = none;
    const ir_value_id weight = reals(c, f->type, f->weight, f->leaves, f->width),
                      y = build_reduced(&c->b, kind, picked(c, weight, leaf), &trees, 1, false);
    if (none == 0) return y;
    const ir_value_id zero = build_scalar_like(&c->b, y, 0);
    return build_where(&c->b, build_is_inf(&c->b, y), zero, y);
}

/* Every feature that a node looks at is one of the input's. */
static void features_check(onnx_call *c, const forest *f, ir_value_id x)
{
    int64_t wide = 0, most = 0;
    if (call_rank(c, x) != 2) REJECT(c, UNSUPPORTED, "an input of rank %u", call_rank(c, x));
    for (uint32_t i = 0; i < f->nodes && !c->b.status; i++) {
        if (f->feature[i] < 0) REJECT(c, INVALID_MODEL, "node %u looks at feature %lld", i, (long long)f->feature[i]);
        if (f->feature[i] > most) most = f->feature[i];
    }
    if (!c->b.status && call_size(c, x, 1, &wide) && most >= wide)
        REJECT(c, INVALID_MODEL, "a node looks at feature %lld of %lld", (long long)most, (long long)wide);
}

ir_value_id tree_answer(onnx_call *c, forest *f, ir_value_id x, reduce_kind kind)
{
    features_check(c, f, x);
    return c->b.status ? 0 : together(c, f, leaves_of(c, f, x), kind);
}

/* ---- what all of ai.onnx.ml's models do with their scores, [B, C] ---- */
ir_value_id quirk_post_transform(onnx_call *c, const char *how, ir_value_id y)
{
    static const int64_t last = 1;
    if (strcmp(how, "NONE") == 0 || c->b.status) return y;
    if (strcmp(how, "LOGISTIC") == 0) return build_sigmoid(&c->b, y);
    if (strcmp(how, "SOFTMAX") == 0) return build_softmax(&c->b, y, &(attrs_softmax){ .axis = 1 });
    if (strcmp(how, "SOFTMAX_ZERO") == 0) { /* a softmax of what is not 0; what is 0 stays */
        const ir_value_id zero = build_eq(&c->b, y, build_scalar_like(&c->b, y, 0)),
                          nothing = build_scalar_like(&c->b, y, 0),
                          top = build_reduced(&c->b, reduce_kind_max, y, &last, 1, true),
                          e = build_where(&c->b, zero, nothing, build_exp(&c->b, build_sub(&c->b, y, top))),
                          sum = build_reduced(&c->b, reduce_kind_sum, e, &last, 1, true),
                          one = build_scalar_like(&c->b, y, 1),
                          safe = build_where(&c->b, build_eq(&c->b, sum, nothing), one, sum);
        return build_div(&c->b, e, safe);
    }
    REJECT(c, UNSUPPORTED, "attribute post_transform is '%s'", how);
    return 0;
}

/* ---- TreeEnsemble, of version 5: nodes and leaves have tables of their own ---- */
static const onnx_attr *int_list(onnx_call *c, const char *name, bool is_wanted)
{
    const onnx_attr *a = call_attr(c, name);
    if (!a && is_wanted) REJECT(c, INVALID_MODEL, "attribute %s is missing", name);
    if (a && a->type != ONNX_INTS) REJECT(c, INVALID_MODEL, "attribute %s is no list of integers", name);
    return c->b.status ? NULL : a;
}

static bool tensor_list(onnx_call *c, const char *name, bool is_wanted, view *out)
{
    const onnx_attr *a = call_attr(c, name);
    *out = (view){ 0 };
    if (!a && is_wanted) REJECT(c, INVALID_MODEL, "attribute %s is missing", name);
    if (a && (a->type != ONNX_TENSOR || !a->t)) REJECT(c, INVALID_MODEL, "attribute %s is no tensor", name);
    if (!a || c->b.status || !call_tensor(c, a->t, out)) return false;
    if (out->rank != 1) REJECT(c, INVALID_MODEL, "attribute %s has rank %u", name, out->rank);
    return !c->b.status;
}

/* Sets of members, one behind the other, each of them ended by what is no number. */
static void sets_read(onnx_call *c, forest *f, uint32_t inner)
{
    view v;
    if (!f->has_mode[TREE_MEMBER] || !tensor_list(c, "membership_values", true, &v)) return;
    const int64_t count = v.dim[0];
    int64_t at = 0, most = 0;
    for (int64_t i = 0, length = 0; i < count; i++) {
        length = isnan(dtype_load_f64(v.dtype, v.data, i)) ? 0 : length + 1;
        if (length > most) most = length;
    }
    f->sets = (uint32_t)(most ? most : 1);
    f->set = table(c, size_mul(f->nodes, f->sets), sizeof *f->set);
    for (uint32_t i = 0; i < f->nodes && !c->b.status; i++) {
        double *set = f->set + (size_t)i * f->sets;
        for (uint32_t k = 0; k < f->sets; k++) set[k] = (double)NAN;
        if (i >= inner || f->mode[i] != TREE_MEMBER) continue;
        if (at >= count) REJECT(c, INVALID_MODEL, "membership_values has too few sets");
        for (uint32_t k = 0; at < count; k++) {
            const double x = dtype_load_f64(v.dtype, v.data, at++);
            if (isnan(x)) break;
            set[k] = x;
        }
    }
}

typedef struct node_lists {
    const onnx_attr *feature, *hold[2], *is_leaf[2], *missing, *target, *root;
    view split, mode, weight;
} node_lists;

static node_lists lists_read(onnx_call *c)
{
    node_lists l = { .feature = int_list(c, "nodes_featureids", true),
                     .hold = { int_list(c, "nodes_falsenodeids", true), int_list(c, "nodes_truenodeids", true) },
                     .is_leaf = { int_list(c, "nodes_falseleafs", true), int_list(c, "nodes_trueleafs", true) },
                     .missing = int_list(c, "nodes_missing_value_tracks_true", false),
                     .target = int_list(c, "leaf_targetids", true),
                     .root = int_list(c, "tree_roots", true) };
    tensor_list(c, "nodes_splits", true, &l.split);
    tensor_list(c, "nodes_modes", true, &l.mode);
    tensor_list(c, "leaf_weights", true, &l.weight);
    if (c->b.status) return l;
    const uint32_t n = l.feature->ints.count;
    if (l.hold[0]->ints.count != n || l.hold[1]->ints.count != n || l.is_leaf[0]->ints.count != n ||
        l.is_leaf[1]->ints.count != n || (l.missing && l.missing->ints.count != n) || l.split.dim[0] != n ||
        l.mode.dim[0] != n || l.mode.dtype != SINTER_DTYPE_U8)
        REJECT(c, INVALID_MODEL, "the lists of nodes are not all of length %u", n);
    if (l.weight.dim[0] != l.target->ints.count)
        REJECT(c, INVALID_MODEL, "leaf_targetids is not as long as leaf_weights");
    if (!n) REJECT(c, INVALID_MODEL, "the trees have no nodes");
    return l;
}

static void forest_read(onnx_call *c, forest *f)
{
    const node_lists l = lists_read(c);
    const int64_t width = call_int(c, "n_targets", 0);
    if (width < 1 || width > NODES_MAX) REJECT(c, INVALID_MODEL, "attribute n_targets is %lld", (long long)width);
    if (c->b.status) return;
    const uint32_t inner = l.feature->ints.count;
    f->leaves = l.target->ints.count;
    f->nodes = inner + f->leaves;
    f->trees = l.root->ints.count;
    f->width = (uint32_t)width;
    f->type = l.split.dtype;
    if (!dtype_is_float(f->type)) REJECT(c, INVALID_MODEL, "nodes_splits are of type %s", sinter_dtype_name(f->type));
    tree_forest_new(c, f);
    for (uint32_t i = 0; i < inner && !c->b.status; i++) {
        f->feature[i] = l.feature->ints.at[i];
        f->split[i] = dtype_load_f64(l.split.dtype, l.split.data, i);
        f->mode[i] = (uint8_t)dtype_load_i64(l.mode.dtype, l.mode.data, i);
        f->missing[i] = l.missing && l.missing->ints.at[i] != 0;
        f->has_missing |= f->missing[i];
        if (f->mode[i] > TREE_MEMBER) REJECT(c, INVALID_MODEL, "nodes_modes[%u] is %u", i, f->mode[i]);
        else f->has_mode[f->mode[i]] = true;
        for (uint32_t k = 0; k < 2; k++) {
            const int64_t to = l.hold[k]->ints.at[i], is_leaf = l.is_leaf[k]->ints.at[i] != 0;
            if (to < 0 || to >= (is_leaf ? f->leaves : inner))
                REJECT(c, INVALID_MODEL, "node %u goes on to %lld", i, (long long)to);
            f->next[2 * i + k] = is_leaf ? inner + to : to;
        }
    }
    for (uint32_t i = 0; i < f->trees && !c->b.status; i++) {
        f->root[i] = l.root->ints.at[i];
        if (f->root[i] < 0 || f->root[i] >= inner)
            REJECT(c, INVALID_MODEL, "tree_roots[%u] is %lld", i, (long long)f->root[i]);
    }
    for (uint32_t i = 0; i < f->leaves && !c->b.status; i++) {
        const int64_t target = l.target->ints.at[i];
        f->next[2 * (inner + i)] = f->next[2 * (inner + i) + 1] = inner + i;
        if (target < 0 || target >= width) REJECT(c, INVALID_MODEL, "leaf_targetids[%u] is %lld", i, (long long)target);
        for (uint32_t k = 0; k < f->width && !c->b.status; k++)
            f->weight[(size_t)i * f->width + k] =
                k == target ? dtype_load_f64(l.weight.dtype, l.weight.data, i) : (double)NAN;
    }
    if (!c->b.status) sets_read(c, f, inner);
}

void convert_tree_ensemble(onnx_call *c)
{
    static const reduce_kind kinds[] = { reduce_kind_mean, reduce_kind_sum, reduce_kind_min, reduce_kind_max };
    static const char *const transforms[] = { "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT" };
    const int64_t kind = call_int(c, "aggregate_function", 1), after = call_int(c, "post_transform", 0);
    const ir_value_id x = call_in(c, 0);
    forest f = { 0 };
    if ((uint64_t)kind >= COUNT_OF(kinds)) REJECT(c, INVALID_MODEL, "aggregate_function is %lld", (long long)kind);
    if ((uint64_t)after >= COUNT_OF(transforms)) REJECT(c, INVALID_MODEL, "post_transform is %lld", (long long)after);
    if (!x) REJECT(c, INVALID_MODEL, "input 0 is missing");
    if (!c->b.status) forest_read(c, &f);
    if (c->b.status) return;
    const ir_value_id y = tree_answer(c, &f, x, kinds[kind]);
    if (c->b.status) return;
    c->out[0] = quirk_post_transform(c, transforms[after], build_typed(&c->b, y, call_type(c, x)));
}
