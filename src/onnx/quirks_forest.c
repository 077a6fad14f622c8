/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_forest.c - the older form of trees in ai.onnx.ml: nodes are named by tree and number, and leaves are nodes.
 *
 * Attributes that end in "_as_tensor" hold f64 where features do. Results are f32 all the same. */
#include "onnx/importer.h"
#include "onnx/quirks.h"
#include "onnx/quirks_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A list of numbers, as floats or as a tensor. */
typedef struct real_list {
    const float *floats;
    view tensor;
    uint32_t count;
} real_list;

/* The names of the nodes, in their order. */
typedef struct node_name {
    int64_t tree, number;
    uint32_t index;
} node_name;

typedef struct old_nodes {
    uint32_t count;
    const int64_t *feature, *to[2], *missing;
    const int64_t *tree;
    const onnx_text *mode;
    real_list split;
    node_name *name;
    uint32_t *place; /* by index: in the forest */
} old_nodes;

static const onnx_attr *list_of(onnx_call *c, const char *name, int32_t type, uint32_t count, bool is_wanted)
{
    const onnx_attr *a = call_attr(c, name);
    if (a && a->type == 0) a = NULL;
    if (!a && is_wanted) REJECT(c, UNSUPPORTED, "attribute %s is missing", name);
    if (!a || c->b.status) return NULL;
    const uint32_t given = type == ONNX_INTS ? a->ints.count : type == ONNX_STRINGS ? a->strings.count : 0;
    if (a->type != type || (count && given != count))
        REJECT(c, INVALID_MODEL, "attribute %s has %u values", name, given);
    return c->b.status ? NULL : a;
}

static double real_at(const real_list *l, uint32_t i)
{
    return l->floats ? (double)l->floats[i] : dtype_load_f64(l->tensor.dtype, l->tensor.data, i);
}

/* count 0: any. No list: a count of 0. */
static real_list reals_of(onnx_call *c, const char *name, uint32_t count, bool is_wanted)
{
    char tensor[64];
    real_list l = { 0 };
    (void)snprintf(tensor, sizeof tensor, "%s_as_tensor", name);
    const onnx_attr *a = call_attr(c, name), *t = call_attr(c, tensor);
    if (a && a->type == ONNX_FLOATS && a->floats.count) {
        l.floats = a->floats.at;
        l.count = a->floats.count;
    } else if (t && t->type == ONNX_TENSOR && t->t && call_tensor(c, t->t, &l.tensor)) {
        if (l.tensor.rank != 1 || l.tensor.dim[0] > UINT32_MAX || !dtype_is_float(l.tensor.dtype))
            REJECT(c, INVALID_MODEL, "attribute %s is no list of numbers", tensor);
        else l.count = (uint32_t)l.tensor.dim[0];
    }
    if (is_wanted && !l.count) REJECT(c, UNSUPPORTED, "attribute %s is missing", name);
    if (l.count && count && l.count != count) REJECT(c, INVALID_MODEL, "attribute %s has %u values", name, l.count);
    return l;
}

static int name_order(const void *x, const void *y)
{
    const node_name *a = x, *b = y;
    if (a->tree != b->tree) return a->tree < b->tree ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static void nodes_read(onnx_call *c, old_nodes *o)
{
    const onnx_attr *tree = list_of(c, "nodes_treeids", ONNX_INTS, 0, true);
    const uint32_t n = tree ? tree->ints.count : 0;
    if (!n) REJECT(c, INVALID_MODEL, "the trees have no nodes");
    const onnx_attr *number = list_of(c, "nodes_nodeids", ONNX_INTS, n, true),
                    *feature = list_of(c, "nodes_featureids", ONNX_INTS, n, true),
                    *no = list_of(c, "nodes_falsenodeids", ONNX_INTS, n, true),
                    *yes = list_of(c, "nodes_truenodeids", ONNX_INTS, n, true),
                    *missing = list_of(c, "nodes_missing_value_tracks_true", ONNX_INTS, 0, false),
                    *mode = list_of(c, "nodes_modes", ONNX_STRINGS, n, true);
    const real_list split = reals_of(c, "nodes_values", n, true);
    if (missing && missing->ints.count && missing->ints.count != n)
        REJECT(c, INVALID_MODEL, "attribute nodes_missing_value_tracks_true has %u values", missing->ints.count);
    node_name *name = forest_table(c, n, sizeof *name);
    uint32_t *place = forest_table(c, n, sizeof *place);
    if (c->b.status) return;
    *o = (old_nodes){ .count = n,
                      .feature = feature->ints.at,
                      .to = { no->ints.at, yes->ints.at },
                      .missing = missing && missing->ints.count ? missing->ints.at : NULL,
                      .tree = tree->ints.at,
                      .mode = mode->strings.at,
                      .split = split,
                      .name = name,
                      .place = place };
    for (uint32_t i = 0; i < n; i++) name[i] = (node_name){ tree->ints.at[i], number->ints.at[i], i };
    qsort(name, n, sizeof *name, name_order);
    for (uint32_t i = 1; i < n; i++)
        if (name_order(&name[i - 1], &name[i]) == 0)
            REJECT(c, INVALID_MODEL, "tree %lld has node %lld twice", (long long)name[i].tree,
                   (long long)name[i].number);
}

static uint32_t index_of(onnx_call *c, const old_nodes *o, int64_t tree, int64_t number)
{
    const node_name key = { tree, number, 0 }, *found = bsearch(&key, o->name, o->count, sizeof key, name_order);
    if (!found) REJECT(c, INVALID_MODEL, "tree %lld has no node %lld", (long long)tree, (long long)number);
    return found ? found->index : 0;
}

static uint8_t mode_of(onnx_call *c, const onnx_text *name)
{
    static const char *const names[] = {
        "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"
    };
    for (uint8_t i = 0; i < COUNT_OF(names); i++)
        if (strcmp(names[i], name->at) == 0) return i;
    if (strcmp(name->at, "LEAF") != 0) REJECT(c, UNSUPPORTED, "a node of mode '%.40s'", name->at);
    return FOREST_LEAF;
}

/* Counts nodes, leaves and roots: who is nobody's child is a root. child[2 i + k]: the index of a node's child. */
static void nodes_count(onnx_call *c, const old_nodes *o, forest *f, const uint8_t *mode, uint8_t *is_child,
                        uint32_t *child)
{
    for (uint32_t i = 0; i < o->count && !c->b.status; i++) {
        const bool is_leaf = mode[i] == FOREST_LEAF;
        o->place[i] = is_leaf ? f->leaves++ : f->nodes++;
        for (uint32_t k = 0; k < 2 && !is_leaf && !c->b.status; k++) {
            child[2 * i + k] = index_of(c, o, o->tree[i], o->to[k][i]);
            is_child[child[2 * i + k]] = 1;
        }
    }
    for (uint32_t i = 0; i < o->count; i++) f->trees += !is_child[i];
}

/* f: its targets and its type are set. */
static void nodes_fill(onnx_call *c, old_nodes *o, forest *f, uint32_t weights)
{
    uint8_t *is_child = forest_table(c, o->count, 1), *mode = forest_table(c, o->count, 1);
    uint32_t *child = forest_table(c, 2 * (size_t)o->count, sizeof *child), trees = 0;
    if (c->b.status) return;
    for (uint32_t i = 0; i < o->count && !c->b.status; i++) mode[i] = mode_of(c, &o->mode[i]);
    nodes_count(c, o, f, mode, is_child, child);
    forest_new(c, f, weights);
    for (uint32_t i = 0; i < o->count && !c->b.status; i++) {
        const uint32_t at = o->place[i] += mode[i] == FOREST_LEAF ? f->nodes : 0;
        if (!is_child[i]) f->root[trees++] = at;
        if (mode[i] == FOREST_LEAF) continue;
        f->feature[at] = o->feature[i];
        f->split[at] = real_at(&o->split, i);
        f->mode[at] = mode[i];
        f->missing[at] = o->missing && o->missing[i];
    }
    for (uint32_t i = 0; i < o->count && !c->b.status; i++)
        for (uint32_t k = 0; k < 2 && mode[i] != FOREST_LEAF; k++)
            f->next[2 * o->place[i] + k] = o->place[child[2 * i + k]];
}

/* Targets and weights of the leaves, by leaf, each leaf's in the order of the lists. */
typedef struct old_weights {
    const int64_t *tree, *number, *id;
    real_list weight;
    uint32_t count;
} old_weights;

static old_weights weights_read(onnx_call *c, const char *prefix)
{
    char name[4][32];
    static const char *const suffix[] = { "treeids", "nodeids", "ids", "weights" };
    for (uint32_t i = 0; i < 4; i++) (void)snprintf(name[i], sizeof name[i], "%s_%s", prefix, suffix[i]);
    const onnx_attr *tree = list_of(c, name[0], ONNX_INTS, 0, true);
    const uint32_t n = tree ? tree->ints.count : 0;
    const onnx_attr *number = list_of(c, name[1], ONNX_INTS, n, true), *id = list_of(c, name[2], ONNX_INTS, n, true);
    const real_list weight = reals_of(c, name[3], n, n != 0);
    if (c->b.status) return (old_weights){ 0 };
    return (old_weights){ tree->ints.at, number->ints.at, id->ints.at, weight, n };
}

/* is_one: all targets are 0, whatever the lists say. Where the trees have one target, a leaf has one weight: ONNX
 * Runtime takes the first of the list, and exporters rely on this (decision paths of scikit-learn's trees). */
static void weights_fill(onnx_call *c, const old_nodes *o, forest *f, const old_weights *w, bool is_one)
{
    const bool is_first = f->targets == 1 && !is_one;
    uint32_t *leaf = forest_table(c, w->count, sizeof *leaf), used = 0;
    for (uint32_t i = 0; i < w->count && !c->b.status; i++) {
        const uint32_t at = o->place[index_of(c, o, w->tree[i], w->number[i])];
        if (at < f->nodes || w->id[i] < 0 || (!is_one && w->id[i] >= f->targets))
            REJECT(c, INVALID_MODEL, "weight %u is for target %lld, or of a node that is no leaf", i,
                   (long long)w->id[i]);
        if (c->b.status) return;
        leaf[i] = is_first && f->pair[at - f->nodes + 1] ? UINT32_MAX : at - f->nodes;
        if (leaf[i] == UINT32_MAX) continue;
        f->pair[leaf[i] + 1]++;
        used++;
    }
    if (c->b.status) return;
    for (uint32_t i = 0; i < f->leaves; i++) f->pair[i + 1] += f->pair[i];
    for (uint32_t i = w->count; i-- > 0;) {
        if (leaf[i] == UINT32_MAX) continue;
        const uint32_t to = --f->pair[leaf[i] + 1];
        f->target[to] = is_one ? 0 : (uint32_t)w->id[i];
        f->weight[to] = real_at(&w->weight, i);
    }
    for (uint32_t i = 0; i < f->leaves; i++) f->pair[i] = f->pair[i + 1];
    f->pair[f->leaves] = used;
}

/* The scores of the trees with the base values, [B, targets], of the forest's type. */
static ir_value_id scores(onnx_call *c, const old_weights *w, uint32_t targets, bool is_one, reduce_kind kind)
{
    const ir_value_id x = call_in(c, 0);
    old_nodes o = { 0 };
    forest f = { .targets = targets };
    if (!x) REJECT(c, INVALID_MODEL, "input 0 is missing");
    nodes_read(c, &o);
    if (c->b.status) return 0;
    const bool is_wide =
        call_type(c, x) == SINTER_DTYPE_F64 || (!o.split.floats && o.split.tensor.dtype == SINTER_DTYPE_F64);
    f.type = is_wide ? SINTER_DTYPE_F64 : SINTER_DTYPE_F32;
    nodes_fill(c, &o, &f, w->count);
    if (!c->b.status) weights_fill(c, &o, &f, w, is_one);
    return forest_build(c, &f, x, kind);
}

/* Base values as a constant, from the one numbered `first` on; 0: there are none. */
static ir_value_id bases(onnx_call *c, const real_list *l, uint32_t first, uint32_t count, ir_value_id like)
{
    double *at = forest_table(c, count, sizeof *at);
    if (!at || !l->count) return 0;
    for (uint32_t i = 0; i < count; i++) at[i] = real_at(l, first + i);
    const sinter_dtype type = call_type(c, like);
    void *data = arena_alloc(&c->b.g->a, (size_t)count * 8, 16);
    if (!data) {
        REJECT(c, NO_MEMORY, "out of memory for the trees");
        return 0;
    }
    for (uint32_t i = 0; i < count; i++) dtype_store_f64(type, data, i, at[i]);
    return ir_const(c->b.g, NULL, type, 1, (const int64_t[]){ count }, data);
}

void convert_tree_regressor(onnx_call *c)
{
    static const char *const names[] = { "AVERAGE", "SUM", "MIN", "MAX" };
    static const reduce_kind kinds[] = { reduce_kind_mean, reduce_kind_sum, reduce_kind_min, reduce_kind_max };
    const char *how = call_text(c, "aggregate_function", "SUM");
    const int64_t targets = call_int(c, "n_targets", 0);
    uint32_t kind = 0;
    while (kind < COUNT_OF(names) && strcmp(names[kind], how) != 0) kind++;
    if (kind == COUNT_OF(names)) REJECT(c, INVALID_MODEL, "attribute aggregate_function is '%s'", how);
    if (targets < 1 || targets > INT16_MAX) REJECT(c, INVALID_MODEL, "attribute n_targets is %lld", (long long)targets);
    const old_weights w = weights_read(c, "target");
    const real_list base = reals_of(c, "base_values", 0, false);
    if (base.count && base.count != 1 && base.count != targets)
        REJECT(c, INVALID_MODEL, "base_values has %u values", base.count);
    if (c->b.status) return;
    ir_value_id y = scores(c, &w, (uint32_t)targets, false, kinds[kind]);
    if (!c->b.status && base.count) y = build_add(&c->b, y, bases(c, &base, 0, base.count, y));
    y = c->b.status ? 0 : build_typed(&c->b, y, SINTER_DTYPE_F32);
    c->out[0] = quirk_post_transform(c, call_text(c, "post_transform", "NONE"), y);
}

/* ---- TreeEnsembleClassifier ---- */

/* y times two signs, plus [add, 0]: the scores of two classes of one score, [B, 2]. */
static ir_value_id both(onnx_call *c, ir_value_id y, const float sign[2], double add)
{
    const float more[2] = { (float)add, 0 };
    const ir_value_id z = build_mul(&c->b, y, quirk_reals(c, sign, 2, 1));
    return add == 0 ? z : build_add(&c->b, z, quirk_reals(c, more, 2, 1));
}

/* Two classes, of which the leaves give one score. As ONNX Runtime has it: the label is the second class where the
 * score is large, whichever class the weights are for; a sum of weights that are no less than 0 is a probability.
 * Weights for class 0 without base values, or with one, are a score of the second class, and the first has its
 * opposite. Else the class that has the weights has the score, and the other has 0. */
static void two_classes(onnx_call *c, const old_weights *w, const real_list *base, const char *how)
{
    static const float opposite[2] = { -1, 1 }, first[2] = { 1, 0 }, second[2] = { 0, 1 };
    const bool is_second = w->count && w->id[0] == 1, is_one = !is_second && base->count < 2;
    const bool is_plain = strcmp(how, "NONE") == 0;
    bool is_probability = true;
    for (uint32_t i = 0; i < w->count; i++) is_probability &= real_at(&w->weight, i) >= 0;
    if (is_second && base->count)
        REJECT(c, UNSUPPORTED, "base_values, and weights for the second of two classes alone");
    if (is_one && !is_plain && strcmp(how, "LOGISTIC") != 0)
        REJECT(c, UNSUPPORTED, "attribute post_transform is '%s' for one score of two classes", how);
    ir_value_id y = scores(c, w, 1, true, reduce_kind_sum);
    if (!c->b.status && base->count) y = build_add(&c->b, y, bases(c, base, 0, 1, y));
    if (c->b.status) return;
    const ir_value_id least = build_scalar_like(&c->b, y, is_probability ? 0.5 : 0),
                      is_large = build_squeezed(&c->b, build_gt(&c->b, y, least), 1);
    c->out[0] = quirk_labelled(c, build_typed(&c->b, is_large, SINTER_DTYPE_I64), 2, "classlabels_int64s");
    if (c->count_out < 2 || c->b.status) return;
    y = build_typed(&c->b, y, SINTER_DTYPE_F32);
    const bool is_share = is_one && is_probability && is_plain;
    const ir_value_id z = both(c, y, is_one ? opposite : is_second ? second : first, is_share ? 1 : 0);
    c->out[1] = quirk_post_transform(c, how, z);
}

void convert_tree_classifier(onnx_call *c)
{
    const onnx_attr *words = call_attr(c, "classlabels_strings"), *ints = call_attr(c, "classlabels_int64s");
    const uint32_t classes = words && words->strings.count ? words->strings.count : ints ? ints->ints.count : 0;
    const char *how = call_text(c, "post_transform", "NONE");
    if (!classes || classes > INT16_MAX) REJECT(c, INVALID_MODEL, "%u labels of classes", classes);
    const old_weights w = weights_read(c, "class");
    const real_list base = reals_of(c, "base_values", 0, false);
    bool is_one = true; /* all weights are for one class */
    for (uint32_t i = 1; i < w.count; i++) is_one &= w.id[i] == w.id[0];
    const bool is_two = classes == 2 && is_one;
    if (base.count && base.count != classes && !(is_two && base.count == 1))
        REJECT(c, INVALID_MODEL, "base_values has %u values for %u classes", base.count, classes);
    if (c->b.status) return;
    if (is_two) {
        two_classes(c, &w, &base, how);
        return;
    }
    attrs_arg_reduce *a = DEFAULTS(arg_reduce);
    a->axis = 1;
    a->keep = 0;
    ir_value_id y = scores(c, &w, classes, false, reduce_kind_sum);
    if (!c->b.status && base.count) y = build_add(&c->b, y, bases(c, &base, 0, base.count, y));
    if (c->b.status) return;
    c->out[0] = quirk_labelled(c, build_emit(&c->b, OP_arg_reduce, a, &y, 1), classes, "classlabels_int64s");
    y = build_typed(&c->b, y, SINTER_DTYPE_F32);
    if (c->count_out > 1) c->out[1] = quirk_post_transform(c, how, y);
}
