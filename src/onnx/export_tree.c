/* SPDX-License-Identifier: Apache-2.0 */
/* export_tree.c - trees of decisions as nodes of ai.onnx.ml.
 *
 * TreeEnsembleRegressor has f32 and any number of weights a leaf. TreeEnsemble of version 5, which deprecates it, has
 * f64 and sets too, and one weight a leaf: a tree whose leaves have several is written once for each of them. A model
 * has one version of ai.onnx.ml, so all of its trees are written in one form. */
#include "onnx/exporter.h"
#include "ops/tree.h"

#include <math.h>
#include <string.h>

enum { ML_REGRESSOR = 3, ML_ENSEMBLE = 5 };
static const char domain[] = "ai.onnx.ml";

typedef VEC(int64_t) ints;
typedef struct lists {
    exporter *x;
    const attrs_tree_ensemble *a;
    const tree_row *row;
    sinter_dtype type;
    int64_t count;
    uint32_t *open; /* rows that are to be visited, and where the list has their parent: 2 each */
    int64_t visited;
    ints tree, id, feature, yes, no, missing, mode, is_yes_leaf, is_no_leaf, root; /* of nodes */
    ints target_tree, target_id, target;                                           /* of weights */
    VEC(double) split, weight, member;
} lists;

static void put_int(lists *l, ints *to, int64_t value)
{
    int64_t *at = VEC_PUSH(&l->x->a, to);
    if (at) *at = value;
    else EXPORT_FAIL(l->x, NO_MEMORY, "out of memory for trees");
}

#define PUT_REAL(l, to, value)                                                                                         \
    do {                                                                                                               \
        double *at_ = VEC_PUSH(&(l)->x->a, (to));                                                                      \
        if (at_) *at_ = (value);                                                                                       \
        else EXPORT_FAIL((l)->x, NO_MEMORY, "out of memory for trees");                                                \
    } while (0)

static bool is_sum(const lists *l)
{
    return l->a->kind == reduce_kind_sum || l->a->kind == reduce_kind_mean;
}

static uint32_t weights_of(const tree_row *r)
{
    return r->how & TREE_LIST ? r->value[1] : 1;
}

/* A table with a node of two parents would be visited again and again. */
static bool is_visit(lists *l)
{
    if (l->visited++ < l->count) return true;
    EXPORT_FAIL(l->x, UNSUPPORTED, "trees whose nodes have several parents");
    return false;
}

static void entry_put(lists *l, int64_t tree, int64_t id, uint32_t target, double weight)
{
    put_int(l, &l->target_tree, tree);
    put_int(l, &l->target_id, id);
    put_int(l, &l->target, target);
    PUT_REAL(l, &l->weight, weight);
}

/* ---- TreeEnsembleRegressor ---- */

/* Of one target, ONNX Runtime reads one weight a leaf. */
static void leaf_put(lists *l, int64_t tree, int64_t id, const tree_row *r)
{
    const uint32_t count = weights_of(r);
    if (!(r->how & TREE_LIST)) {
        entry_put(l, tree, id, 0, tree_value(r, l->type));
    } else if (l->a->targets > 1 || (!count && !is_sum(l))) {
        for (uint32_t i = 0; i < count; i++) {
            const tree_row *entry = &l->row[r->value[0] + i];
            entry_put(l, tree, id, entry->next, tree_value(entry, l->type));
        }
    } else {
        double one = count ? tree_value(&l->row[r->value[0]], l->type) : 0;
        for (uint32_t i = 1; i < count; i++) {
            const double more = tree_value(&l->row[r->value[0] + i], l->type);
            one = is_sum(l) ? one + more : l->a->kind == reduce_kind_min ? fmin(one, more) : fmax(one, more);
        }
        entry_put(l, tree, id, 0, one);
    }
}

/* Nodes are numbered in the order in which they are visited: a node, its first child's tree, its second child's. */
static void old_tree(lists *l, int64_t tree)
{
    const uint32_t first = l->id.count;
    uint32_t opens = 0;
    l->open[opens++] = (uint32_t)tree;
    l->open[opens++] = UINT32_MAX;
    while (opens && !l->x->status && is_visit(l)) {
        const uint32_t parent = l->open[--opens], at = l->open[--opens], here = l->id.count;
        const tree_row *r = &l->row[at];
        const bool is_node = r->how & TREE_NODE;
        /* The child that follows its parent is the first one. */
        if (parent != UINT32_MAX) (parent + 1 == here ? &l->yes : &l->no)->at[parent] = here - first;
        put_int(l, &l->tree, tree);
        put_int(l, &l->id, here - first);
        put_int(l, &l->feature, is_node ? tree_feature(r) : 0);
        put_int(l, &l->yes, 0);
        put_int(l, &l->no, 0);
        put_int(l, &l->missing, is_node && r->how & TREE_NAN);
        put_int(l, &l->mode, !is_node ? 0 : r->how & TREE_EQ ? 2 : 1);
        PUT_REAL(l, &l->split, is_node ? tree_value(r, l->type) : 0);
        if (!is_node) {
            leaf_put(l, tree, here - first, r);
            continue;
        }
        for (uint32_t k = 2; k-- > 0;) {
            l->open[opens++] = tree_next(r) + k;
            l->open[opens++] = here;
        }
    }
}

static void put_ints(exporter *x, export_node *to, const char *name, const ints *list)
{
    node_ints(x, to, name, list->at, list->count);
}

static void old_write(lists *l, const ir_node *n)
{
    static const char *const modes[] = { "LEAF", "BRANCH_LEQ", "BRANCH_EQ" };
    static const char *const kinds[reduce_kind_count] = {
        [reduce_kind_sum] = "SUM", [reduce_kind_mean] = "AVERAGE", [reduce_kind_min] = "MIN", [reduce_kind_max] = "MAX"
    };
    exporter *x = l->x;
    for (int64_t t = 0; t < l->a->trees && !x->status; t++) old_tree(l, t);
    const char **mode = ARENA_NEW(&x->a, const char *, (size_t)l->mode.count + 1);
    if (!mode) EXPORT_FAIL(x, NO_MEMORY, "out of memory for trees");
    if (x->status) return;
    for (uint32_t i = 0; i < l->mode.count; i++) mode[i] = modes[l->mode.at[i]];
    export_node to = node_begin(x, "TreeEnsembleRegressor");
    node_domain(x, &to, domain, ML_REGRESSOR);
    node_in(x, &to, export_name(x, n->in[0]));
    node_outs(x, &to, n);
    put_ints(x, &to, "nodes_treeids", &l->tree);
    put_ints(x, &to, "nodes_nodeids", &l->id);
    put_ints(x, &to, "nodes_featureids", &l->feature);
    put_ints(x, &to, "nodes_truenodeids", &l->yes);
    put_ints(x, &to, "nodes_falsenodeids", &l->no);
    put_ints(x, &to, "nodes_missing_value_tracks_true", &l->missing);
    node_words(x, &to, "nodes_modes", mode, l->mode.count);
    node_reals(x, &to, "nodes_values", l->split.at, l->split.count);
    put_ints(x, &to, "target_treeids", &l->target_tree);
    put_ints(x, &to, "target_nodeids", &l->target_id);
    put_ints(x, &to, "target_ids", &l->target);
    node_reals(x, &to, "target_weights", l->weight.at, l->weight.count);
    node_int(x, &to, "n_targets", l->a->targets);
    node_text(x, &to, "aggregate_function", kinds[l->a->kind]);
    node_end(x, &to, x->scope);
}

/* ---- TreeEnsemble ---- */

/* The leaf that has weight number k of the row, where leaves with fewer have what changes nothing. */
static int64_t new_leaf(lists *l, const tree_row *r, uint32_t k)
{
    const uint32_t count = weights_of(r);
    const tree_row *entry = !(r->how & TREE_LIST) ? r
                            : count               ? &l->row[r->value[0] + (k < count ? k : count - 1)]
                                                  : NULL;
    const bool is_there = entry && (k < count || !is_sum(l));
    if (!entry && !is_sum(l)) EXPORT_FAIL(l->x, UNSUPPORTED, "a leaf without a weight");
    entry_put(l, 0, 0, is_there && r->how & TREE_LIST ? entry->next : 0, is_there ? tree_value(entry, l->type) : 0);
    return l->target.count - 1;
}

static uint32_t new_node(lists *l, const tree_row *r)
{
    const uint32_t here = l->feature.count;
    put_int(l, &l->feature, tree_feature(r));
    put_int(l, &l->mode, r->how & TREE_MEMBER ? 6 : r->how & TREE_EQ ? 4 : 0);
    put_int(l, &l->missing, (r->how & TREE_NAN) != 0);
    PUT_REAL(l, &l->split, r->how & TREE_MEMBER ? 0 : tree_value(r, l->type));
    put_int(l, &l->yes, 0);
    put_int(l, &l->no, 0);
    put_int(l, &l->is_yes_leaf, 0);
    put_int(l, &l->is_no_leaf, 0);
    for (uint32_t i = 0; r->how & TREE_MEMBER && i < r->value[1]; i++)
        PUT_REAL(l, &l->member, tree_value(&l->row[r->value[0] + i], l->type));
    if (r->how & TREE_MEMBER) PUT_REAL(l, &l->member, (double)NAN);
    return here;
}

/* The tree with weight number k of each leaf; the most weights that a leaf has. */
static uint32_t new_tree(lists *l, int64_t tree, uint32_t k)
{
    static const tree_row always;
    const uint32_t first = l->feature.count;
    uint32_t opens = 0, most = 0;
    put_int(l, &l->root, first);
    l->open[opens++] = (uint32_t)tree;
    l->open[opens++] = UINT32_MAX;
    l->visited = 0;
    while (opens && !l->x->status && is_visit(l)) {
        const uint32_t parent = l->open[--opens], at = l->open[--opens];
        const tree_row *r = &l->row[at];
        const bool is_node = r->how & TREE_NODE;
        if (!is_node && weights_of(r) > most) most = weights_of(r);
        /* A tree that is a leaf: a node whose children are both that leaf. */
        const uint32_t here = is_node ? new_node(l, r) : parent == UINT32_MAX ? new_node(l, &always) : 0;
        const int64_t to = is_node ? here : new_leaf(l, r, k);
        if (l->x->status) return 0;
        if (parent == UINT32_MAX && !is_node) {
            l->yes.at[here] = l->no.at[here] = to;
            l->is_yes_leaf.at[here] = l->is_no_leaf.at[here] = 1;
        } else if (parent != UINT32_MAX) {
            const uint32_t owner = parent >> 1;
            (parent & 1 ? &l->no : &l->yes)->at[owner] = to;
            (parent & 1 ? &l->is_no_leaf : &l->is_yes_leaf)->at[owner] = !is_node;
        }
        for (uint32_t side = 2; is_node && side-- > 0;) {
            l->open[opens++] = tree_next(r) + side;
            l->open[opens++] = here << 1 | side;
        }
    }
    return most;
}

static void put_tensor(lists *l, export_node *to, const char *name, sinter_dtype type, const double *at, uint32_t count)
{
    uint8_t *data = arena_alloc(&l->x->a, (size_t)count * 8 + 8, 16);
    if (!data) EXPORT_FAIL(l->x, NO_MEMORY, "out of memory for trees");
    for (uint32_t i = 0; data && i < count; i++) dtype_store_f64(type, data, i, at[i]);
    if (data) node_tensor(l->x, to, name, type, data, count);
}

static void new_write(lists *l, const ir_node *n)
{
    static const int64_t kinds[reduce_kind_count] = {
        [reduce_kind_mean] = 0, [reduce_kind_sum] = 1, [reduce_kind_min] = 2, [reduce_kind_max] = 3
    };
    exporter *x = l->x;
    for (int64_t t = 0; t < l->a->trees && !x->status; t++)
        for (uint32_t k = 0, most = 1; k < most && !x->status; k++) most = new_tree(l, t, k);
    uint8_t *mode = ARENA_NEW(&x->a, uint8_t, (size_t)l->mode.count + 1);
    if (!mode) EXPORT_FAIL(x, NO_MEMORY, "out of memory for trees");
    if (x->status) return;
    for (uint32_t i = 0; i < l->mode.count; i++) mode[i] = (uint8_t)l->mode.at[i];
    /* A mean over trees that are written several times is their sum, divided by how many there were. */
    const bool divides = l->a->kind == reduce_kind_mean && l->root.count != l->a->trees;
    const char *sum = divides ? export_fresh(x, "trees") : NULL;
    export_node to = node_begin(x, "TreeEnsemble");
    node_domain(x, &to, domain, ML_ENSEMBLE);
    node_in(x, &to, export_name(x, n->in[0]));
    if (divides) node_out(x, &to, sum);
    else node_outs(x, &to, n);
    put_ints(x, &to, "tree_roots", &l->root);
    put_ints(x, &to, "nodes_featureids", &l->feature);
    put_ints(x, &to, "nodes_truenodeids", &l->yes);
    put_ints(x, &to, "nodes_falsenodeids", &l->no);
    put_ints(x, &to, "nodes_trueleafs", &l->is_yes_leaf);
    put_ints(x, &to, "nodes_falseleafs", &l->is_no_leaf);
    put_ints(x, &to, "nodes_missing_value_tracks_true", &l->missing);
    put_ints(x, &to, "leaf_targetids", &l->target);
    node_tensor(x, &to, "nodes_modes", SINTER_DTYPE_U8, mode, l->mode.count);
    put_tensor(l, &to, "nodes_splits", l->type, l->split.at, l->split.count);
    put_tensor(l, &to, "leaf_weights", l->type, l->weight.at, l->weight.count);
    if (l->member.count) put_tensor(l, &to, "membership_values", l->type, l->member.at, l->member.count);
    node_int(x, &to, "n_targets", l->a->targets);
    node_int(x, &to, "aggregate_function", divides ? 1 : kinds[l->a->kind]);
    node_int(x, &to, "post_transform", 0);
    node_end(x, &to, x->scope);
    if (!divides) return;
    void *count = arena_alloc(&x->a, 8, 8);
    if (!count) {
        EXPORT_FAIL(x, NO_MEMORY, "out of memory for trees");
        return;
    }
    dtype_store_f64(l->type, count, 0, (double)l->a->trees);
    export_node div = node_begin(x, "Div");
    node_in(x, &div, sum);
    node_in(x, &div, export_constant(x, NULL, l->type, 0, NULL, count));
    node_outs(x, &div, n);
    node_end(x, &div, x->scope);
}

/* ---- both ---- */

static bool table_of(const exporter *x, const ir_node *n, const tree_row **row, int64_t *count)
{
    const ir_value *v = ir_value_at(x->g, n->in[1]);
    *row = v->data;
    return v->data && !v->is_released && dim_is_const(x->g->dims, v->dim[0], count);
}

/* Does a model with these trees need version 5 of ai.onnx.ml? */
static bool is_new(const exporter *x, const ir_node *n)
{
    const tree_row *row;
    int64_t count;
    if (n->op != OP_tree_ensemble || !table_of(x, n, &row, &count)) return false;
    if (ir_value_at(x->g, n->in[0])->dtype != SINTER_DTYPE_F32) return true;
    for (int64_t i = 0; i < count; i++)
        if (row[i].how & TREE_NODE && row[i].how & TREE_MEMBER) return true;
    return false;
}

void export_tree_ensemble(exporter *x, const ir_node *n, const export_row *row_)
{
    (void)row_;
    lists l = { .x = x, .a = n->attrs, .type = ir_value_at(x->g, n->in[0])->dtype };
    tree_facts facts;
    if (!table_of(x, n, &l.row, &l.count)) {
        EXPORT_FAIL(x, UNSUPPORTED, "trees whose table of nodes is no constant");
        return;
    }
    const char *why = tree_check(l.row, l.count, l.a->trees, l.a->targets, TREE_FEATURES_MAX, &facts);
    if (why) EXPORT_FAIL(x, INVALID_MODEL, "trees: %s", why);
    l.open = ARENA_NEW(&x->a, uint32_t, 4 * (size_t)l.count + 4);
    if (!l.open) EXPORT_FAIL(x, NO_MEMORY, "out of memory for trees");
    if (!x->trees_version) {
        x->trees_version = ML_REGRESSOR;
        for (ir_node_id i = 1; i < x->g->node.count; i++)
            if (is_new(x, ir_node_at(x->g, i))) x->trees_version = ML_ENSEMBLE;
    }
    if (x->status) return;
    if (x->trees_version == ML_ENSEMBLE) new_write(&l, n);
    else old_write(&l, n);
}
