/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_tree.c - trees of decisions: the table of nodes of tree_ensemble (ops/tree.h), and TreeEnsemble of ai.onnx.ml.
 *
 * All comparisons become x <= split or x == split: x < s is x <= the number before s, and x > s is the opposite of
 * x <= s, with the children swapped. */
#include "onnx/quirks_tree.h"
#include "onnx/importer.h"
#include "ops/tree.h"

#include <math.h>
#include <string.h>

enum { NODES_MAX = 1 << 25 };

void *forest_table(onnx_call *c, size_t count, size_t size)
{
    const size_t bytes = size_mul(count, size);
    void *at = c->b.status || bytes == SIZE_MAX ? NULL : arena_alloc(&c->im->a, bytes ? bytes : 1, 16);
    if (at) return memset(at, 0, bytes ? bytes : 1);
    REJECT(c, NO_MEMORY, "out of memory for the trees");
    return NULL;
}

void forest_new(onnx_call *c, forest *f, uint32_t weights)
{
    if (f->nodes > NODES_MAX || f->leaves > NODES_MAX || f->trees > NODES_MAX || weights > NODES_MAX)
        REJECT(c, UNSUPPORTED, "more than %d nodes, leaves or weights", (int)NODES_MAX);
    if (!f->targets || !f->trees || !f->leaves) REJECT(c, INVALID_MODEL, "no trees, no leaves or no targets");
    f->feature = forest_table(c, f->nodes, sizeof *f->feature);
    f->next = forest_table(c, 2 * (size_t)f->nodes, sizeof *f->next);
    f->mode = forest_table(c, f->nodes, 1);
    f->missing = forest_table(c, f->nodes, 1);
    f->split = forest_table(c, f->nodes, sizeof *f->split);
    f->pair = forest_table(c, (size_t)f->leaves + 1, sizeof *f->pair);
    f->target = forest_table(c, weights, sizeof *f->target);
    f->weight = forest_table(c, weights, sizeof *f->weight);
    f->root = forest_table(c, f->trees, sizeof *f->root);
}

/* ---- the table ---- */

/* Where a node or a leaf of the model goes in the table. */
typedef struct place {
    int64_t from;
    uint32_t to;
} place;

/* A node with several parents has a row for each of them; these rows share the children's. */
typedef struct spot {
    uint32_t row, next; /* next: 0, or 1 more than another spot of the node */
} spot;

typedef struct layout {
    const forest *f;
    tree_row *row; /* NULL: rows are only counted */
    uint32_t count;
    uint32_t *parents, *met,
        *first; /* by node: roots are parents, too; those that were laid out; the first spot or 0 */
    spot *spot;
    uint32_t spots;
    place *open, *leaf; /* of one tree: what is to be done, of nodes `from` alone; leaves with lists */
    uint32_t opens, leaves;
} layout;

/* Counts the parents of all nodes that walks come to. */
static void parents_count(layout *l)
{
    const forest *f = l->f;
    for (uint32_t t = 0; t < f->trees; t++) {
        l->open[l->opens++] = (place){ .from = f->root[t] };
        while (l->opens) {
            const int64_t i = l->open[--l->opens].from;
            if (i >= f->nodes || l->parents[i]++) continue;
            l->open[l->opens++] = (place){ .from = f->next[2 * i] };
            l->open[l->opens++] = (place){ .from = f->next[2 * i + 1] };
        }
    }
}

/* What goes on at row `to`. A node is opened when all its parents are laid out, so that its children lie behind them.
 */
static void place_take(layout *l, int64_t from, uint32_t to)
{
    if (from < l->f->nodes) {
        l->spot[l->spots++] = (spot){ to, l->first[from] };
        l->first[from] = l->spots;
        if (++l->met[from] < l->parents[from]) return;
    }
    l->open[l->opens++] = (place){ from, to };
}

/* The number before x, of the type: y < x is y <= that. Nothing is below the least one. */
static double before(sinter_dtype type, double x)
{
    if (x == -(double)INFINITY) return (double)NAN;
    return type == SINTER_DTYPE_F32 ? (double)nextafterf((float)x, -INFINITY) : nextafter(x, -(double)INFINITY);
}

static uint32_t rows_take(layout *l, uint32_t count, uint32_t align)
{
    while (l->count % align) {
        if (l->row) l->row[l->count] = (tree_row){ .how = TREE_ENTRY };
        l->count++;
    }
    l->count += count;
    return l->count - count;
}

/* Values or weights in rows of their own. targets: NULL: of no target. */
static void list_put(layout *l, uint32_t to, const double *at, const uint32_t *target, uint32_t count)
{
    const uint32_t first = rows_take(l, count, 1);
    if (!l->row) return;
    l->row[to].value[0] = first;
    l->row[to].value[1] = count;
    for (uint32_t i = 0; i < count; i++) {
        l->row[first + i] = (tree_row){ .how = TREE_ENTRY, .next = target ? target[i] : 0 };
        tree_value_set(&l->row[first + i], l->f->type, at[i]);
    }
}

static void node_put(layout *l, int64_t i)
{
    const forest *f = l->f;
    const uint32_t mode = f->mode[i], child = rows_take(l, 2, 2);
    double split = f->split[i];
    const bool is_never = isnan(split) && mode != FOREST_NEQ && mode != FOREST_MEMBER;
    const bool is_over = !is_never && (mode == FOREST_GT || mode == FOREST_GTE), swaps = is_over || mode == FOREST_NEQ;
    if (mode == FOREST_LT || mode == FOREST_GTE) split = before(f->type, split);
    const bool nan_first = is_over ? !f->missing[i] : mode != FOREST_NEQ && f->missing[i];
    for (uint32_t k = l->first[i]; k; k = l->spot[k - 1].next) {
        const uint32_t to = l->spot[k - 1].row;
        if (l->row) {
            tree_row *r = &l->row[to];
            *r = (tree_row){ .how = tree_how((uint32_t)f->feature[i], TREE_NODE | (nan_first ? TREE_NAN : 0)),
                             .next = 2 * child };
            if (mode == FOREST_EQ || mode == FOREST_NEQ) r->how |= TREE_EQ;
            if (mode == FOREST_MEMBER) r->how |= TREE_MEMBER;
            else tree_value_set(r, f->type, split);
        }
        if (mode == FOREST_MEMBER) list_put(l, to, f->member + f->set[i], NULL, f->set[i + 1] - f->set[i]);
    }
    place_take(l, f->next[2 * i + swaps], child + 1);
    place_take(l, f->next[2 * i + !swaps], child);
}

static void leaf_put(layout *l, place p)
{
    const forest *f = l->f;
    const uint32_t first = f->pair[p.from - f->nodes], count = f->pair[p.from - f->nodes + 1] - first;
    const bool is_short = count == 1 && f->target[first] == 0;
    if (!is_short) l->leaf[l->leaves++] = p;
    if (!l->row) return;
    l->row[p.to] = (tree_row){ .how = is_short ? 0 : TREE_LIST, .next = 2 * p.to };
    if (is_short) tree_value_set(&l->row[p.to], f->type, f->weight[first]);
}

/* Roots, then tree by tree: pairs of children, each pair before those of its first child; then the leaves' lists. */
static void rows_put(onnx_call *c, layout *l)
{
    const forest *f = l->f;
    l->count = 0;
    (void)rows_take(l, f->trees, 1);
    memset(l->met, 0, f->nodes * sizeof *l->met);
    memset(l->first, 0, f->nodes * sizeof *l->first);
    l->spots = 0;
    for (uint32_t t = 0; t < f->trees && !c->b.status; t++) {
        l->leaves = 0;
        place_take(l, f->root[t], t);
        while (l->opens && !c->b.status) {
            const place p = l->open[--l->opens];
            if (p.from < f->nodes) node_put(l, p.from);
            else leaf_put(l, p);
        }
        for (uint32_t i = 0; i < l->leaves && !c->b.status; i++) {
            const uint32_t leaf = (uint32_t)(l->leaf[i].from - f->nodes), first = f->pair[leaf];
            list_put(l, l->leaf[i].to, f->weight + first, f->target + first, f->pair[leaf + 1] - first);
            if (l->count > TREE_ROWS_MAX) REJECT(c, UNSUPPORTED, "trees of more than %d rows", (int)TREE_ROWS_MAX);
        }
    }
    for (uint32_t i = 0; i < f->nodes && !c->b.status; i++)
        if (l->met[i] < l->parents[i]) REJECT(c, INVALID_MODEL, "node %u leads back to itself", i);
}

static ir_value_id rows_of(onnx_call *c, const forest *f)
{
    layout l = { .f = f,
                 .parents = forest_table(c, f->nodes, sizeof *l.parents),
                 .met = forest_table(c, f->nodes, sizeof *l.met),
                 .first = forest_table(c, f->nodes, sizeof *l.first),
                 .spot = forest_table(c, 2 * (size_t)f->nodes + f->trees, sizeof *l.spot) };
    l.open = forest_table(c, 2 * (size_t)f->nodes + 2, sizeof *l.open);
    l.leaf = forest_table(c, 2 * (size_t)f->nodes + 2, sizeof *l.leaf);
    if (c->b.status) return 0;
    parents_count(&l);
    rows_put(c, &l);
    if (c->b.status) return 0;
    const int64_t d[2] = { l.count, 4 };
    l.row = arena_alloc(&c->b.g->a, size_mul(l.count, sizeof *l.row), 64);
    if (!l.row) REJECT(c, NO_MEMORY, "out of memory for the trees");
    else rows_put(c, &l);
    return c->b.status ? 0 : ir_const(c->b.g, NULL, SINTER_DTYPE_U32, 2, d, l.row);
}

/* Every feature that a node looks at is one of the input's. */
static void features_check(onnx_call *c, const forest *f, ir_value_id x)
{
    int64_t wide = TREE_FEATURES_MAX, most = 0;
    for (uint32_t i = 0; i < f->nodes && !c->b.status; i++) {
        if (f->feature[i] < 0) REJECT(c, INVALID_MODEL, "node %u looks at feature %lld", i, (long long)f->feature[i]);
        if (f->feature[i] > most) most = f->feature[i];
    }
    if (c->b.status) return;
    (void)call_size(c, x, call_rank(c, x) - 1, &wide);
    if (f->nodes && most >= wide)
        REJECT(c, INVALID_MODEL, "a node looks at feature %lld of %lld", (long long)most, (long long)wide);
}

ir_value_id forest_build(onnx_call *c, const forest *f, ir_value_id x, reduce_kind kind)
{
    attrs_tree_ensemble *a = DEFAULTS(tree_ensemble);
    if (c->b.status) return 0;
    const uint32_t rank = call_rank(c, x);
    if (rank != 1 && rank != 2) REJECT(c, UNSUPPORTED, "an input of rank %u", rank);
    features_check(c, f, x);
    x = build_typed(&c->b, x, f->type);
    if (rank == 1) x = build_unsqueezed(&c->b, x, 0);
    const ir_value_id rows = c->b.status ? 0 : rows_of(c, f);
    a->kind = kind;
    a->trees = f->trees;
    a->targets = f->targets;
    return c->b.status ? 0 : build_tree_ensemble(&c->b, x, rows, a);
}

/* ---- what all of ai.onnx.ml's models do with their scores, [B, C] ---- */

/* The inverse of the normal distribution: sqrt(2) erf^-1(2 y - 1), by Winitzki's formula as ONNX Runtime has it. With
 * l = log(1 - x^2) and v = 2 / (3.14159 a) + l / 2: erf^-1(x) = sign(x) sqrt(sqrt(v^2 - l / a) - v), a = 0.147. */
static ir_value_id probit(onnx_call *c, ir_value_id y)
{
    static const double a = 0.147;
    ir_builder *b = &c->b;
    const ir_value_id zero = build_scalar_like(b, y, 0), one = build_scalar_like(b, y, 1),
                      two = build_scalar_like(b, y, 2), half = build_scalar_like(b, y, 0.5),
                      first = build_scalar_like(b, y, 2 / (3.14159 * a)), second = build_scalar_like(b, y, 1 / a),
                      twice = build_mul(b, y, two), x = build_sub(b, twice, one), more = build_add(b, one, x),
                      less = build_sub(b, one, x), product = build_mul(b, less, more), l = build_log(b, product),
                      near = build_mul(b, l, half), v = build_add(b, near, first), w = build_mul(b, l, second),
                      square = build_mul(b, v, v), root = build_sqrt(b, build_sub(b, square, w)),
                      size = build_sqrt(b, build_sub(b, root, v)), negative = build_neg(b, size),
                      is_low = build_lt(b, x, zero), y_of = build_where(b, is_low, negative, size);
    return build_mul(b, y_of, build_scalar_like(b, y, 1.41421356));
}

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
    if (strcmp(how, "PROBIT") == 0) return probit(c, y);
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

/* Sets of members, one behind the other in the order of the nodes, each of them ended by what is no number. */
static void sets_read(onnx_call *c, forest *f)
{
    view v = { 0 };
    bool has_sets = false;
    for (uint32_t i = 0; i < f->nodes; i++) has_sets |= f->mode[i] == FOREST_MEMBER;
    if (!has_sets || !tensor_list(c, "membership_values", true, &v)) return;
    const int64_t count = v.dim[0];
    if (count > NODES_MAX) REJECT(c, UNSUPPORTED, "membership_values has %lld values", (long long)count);
    f->set = forest_table(c, (size_t)f->nodes + 1, sizeof *f->set);
    f->member = forest_table(c, (size_t)count, sizeof *f->member);
    int64_t at = 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < f->nodes && !c->b.status; i++) {
        f->set[i] = kept;
        if (f->mode[i] != FOREST_MEMBER) continue;
        if (at >= count) REJECT(c, INVALID_MODEL, "membership_values has too few sets");
        for (; at < count; at++) {
            f->member[kept] = dtype_load_f64(v.dtype, v.data, at);
            if (isnan(f->member[kept])) break;
            kept++;
        }
        at++;
    }
    if (!c->b.status) f->set[f->nodes] = kept;
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
    if (width < 1 || width > INT32_MAX) REJECT(c, INVALID_MODEL, "attribute n_targets is %lld", (long long)width);
    if (c->b.status) return;
    if (!dtype_is_float(l.split.dtype))
        REJECT(c, INVALID_MODEL, "nodes_splits are of type %s", sinter_dtype_name(l.split.dtype));
    *f = (forest){ .nodes = l.feature->ints.count,
                   .leaves = l.target->ints.count,
                   .trees = l.root->ints.count,
                   .targets = (uint32_t)width,
                   .type = l.split.dtype == SINTER_DTYPE_F64 ? SINTER_DTYPE_F64 : SINTER_DTYPE_F32 };
    forest_new(c, f, f->leaves);
    for (uint32_t i = 0; i < f->nodes && !c->b.status; i++) {
        f->feature[i] = l.feature->ints.at[i];
        f->split[i] = dtype_load_f64(l.split.dtype, l.split.data, i);
        f->mode[i] = (uint8_t)dtype_load_i64(l.mode.dtype, l.mode.data, i);
        f->missing[i] = l.missing && l.missing->ints.at[i] != 0;
        if (f->mode[i] > FOREST_MEMBER) REJECT(c, INVALID_MODEL, "nodes_modes[%u] is %u", i, f->mode[i]);
        for (uint32_t k = 0; k < 2 && !c->b.status; k++) {
            const int64_t to = l.hold[k]->ints.at[i], is_leaf = l.is_leaf[k]->ints.at[i] != 0;
            if (to < 0 || to >= (is_leaf ? f->leaves : f->nodes))
                REJECT(c, INVALID_MODEL, "node %u goes on to %lld", i, (long long)to);
            f->next[2 * i + k] = is_leaf ? f->nodes + to : to;
        }
    }
    for (uint32_t i = 0; i < f->trees && !c->b.status; i++) {
        f->root[i] = l.root->ints.at[i];
        if (f->root[i] < 0 || f->root[i] >= f->nodes)
            REJECT(c, INVALID_MODEL, "tree_roots[%u] is %lld", i, (long long)f->root[i]);
    }
    for (uint32_t i = 0; i < f->leaves && !c->b.status; i++) {
        const int64_t target = l.target->ints.at[i];
        if (target < 0 || target >= width) REJECT(c, INVALID_MODEL, "leaf_targetids[%u] is %lld", i, (long long)target);
        f->pair[i + 1] = i + 1;
        f->target[i] = (uint32_t)target;
        f->weight[i] = dtype_load_f64(l.weight.dtype, l.weight.data, i);
    }
    if (!c->b.status) sets_read(c, f);
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
    const ir_value_id y = forest_build(c, &f, x, kinds[kind]);
    if (c->b.status) return;
    c->out[0] = quirk_post_transform(c, transforms[after], build_typed(&c->b, y, call_type(c, x)));
}
