/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_forest.c - the older form of trees in ai.onnx.ml: nodes are named by tree and number, and leaves are nodes. */
#include "onnx/importer.h"
#include "onnx/quirks.h"
#include "onnx/quirks_tree.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct old_nodes {
    uint32_t count;
    const int64_t *tree, *number, *feature, *to[2], *missing;
    const onnx_text *mode;
    const float *split;
    name_map places; /* "tree,number": the place in the lists */
    uint32_t *index; /* by place: in the forest */
} old_nodes;

static const onnx_attr *list_of(onnx_call *c, const char *name, int32_t type, uint32_t count, bool is_wanted)
{
    const onnx_attr *a = call_attr(c, name);
    if (a && a->type == 0) a = NULL;
    if (!a && is_wanted) REJECT(c, UNSUPPORTED, "attribute %s is missing", name);
    if (!a || c->b.status) return NULL;
    const uint32_t given = type == ONNX_INTS      ? a->ints.count
                           : type == ONNX_FLOATS  ? a->floats.count
                           : type == ONNX_STRINGS ? a->strings.count
                                                  : 0;
    if (a->type != type || (count && given != count))
        REJECT(c, INVALID_MODEL, "attribute %s has %u values", name, given);
    return c->b.status ? NULL : a;
}

static const char *key_of(onnx_call *c, int64_t tree, int64_t number)
{
    const char *key = arena_printf(&c->im->a, "%lld,%lld", (long long)tree, (long long)number);
    if (!key) REJECT(c, NO_MEMORY, "out of memory for the trees");
    return key ? key : "";
}

static void nodes_read(onnx_call *c, old_nodes *o)
{
    const onnx_attr *tree = list_of(c, "nodes_treeids", ONNX_INTS, 0, true);
    const uint32_t n = tree ? tree->ints.count : 0;
    const onnx_attr *number = list_of(c, "nodes_nodeids", ONNX_INTS, n, true),
                    *feature = list_of(c, "nodes_featureids", ONNX_INTS, n, true),
                    *no = list_of(c, "nodes_falsenodeids", ONNX_INTS, n, true),
                    *yes = list_of(c, "nodes_truenodeids", ONNX_INTS, n, true),
                    *missing = list_of(c, "nodes_missing_value_tracks_true", ONNX_INTS, n, false),
                    *mode = list_of(c, "nodes_modes", ONNX_STRINGS, n, true),
                    *split = list_of(c, "nodes_values", ONNX_FLOATS, n, true);
    if (!n && !c->b.status) REJECT(c, INVALID_MODEL, "the trees have no nodes");
    if (c->b.status) return;
    *o = (old_nodes){ .count = n,
                      .tree = tree->ints.at,
                      .number = number->ints.at,
                      .feature = feature->ints.at,
                      .to = { no->ints.at, yes->ints.at },
                      .missing = missing ? missing->ints.at : NULL,
                      .mode = mode->strings.at,
                      .split = split->floats.at,
                      .places = { .a = &c->im->a },
                      .index = ARENA_NEW(&c->im->a, uint32_t, n) };
    for (uint32_t i = 0; i < n && !c->b.status; i++) {
        bool is_new = true;
        uint32_t *slot = name_map_add(&o->places, key_of(c, o->tree[i], o->number[i]), &is_new);
        if (!slot || !o->index) REJECT(c, NO_MEMORY, "out of memory for the trees");
        else if (!is_new)
            REJECT(c, INVALID_MODEL, "tree %lld has node %lld twice", (long long)o->tree[i], (long long)o->number[i]);
        else *slot = i;
    }
}

static uint32_t place_of(onnx_call *c, old_nodes *o, int64_t tree, int64_t number)
{
    const arena_mark mark = arena_save(&c->im->a);
    const uint32_t *slot = name_map_find(&o->places, key_of(c, tree, number));
    arena_rewind(&c->im->a, mark);
    if (!slot) REJECT(c, INVALID_MODEL, "tree %lld has no node %lld", (long long)tree, (long long)number);
    return slot ? *slot : 0;
}

static int mode_of(onnx_call *c, const onnx_text *name)
{
    static const char *const names[] = {
        "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"
    };
    if (strcmp(name->at, "LEAF") == 0) return TREE_LEAF;
    for (int i = 0; i < (int)COUNT_OF(names); i++)
        if (strcmp(names[i], name->at) == 0) return i;
    REJECT(c, UNSUPPORTED, "a node of mode '%.40s'", name->at);
    return TREE_LEAF;
}

/* Inner nodes first, then leaves; who is nobody's child is a root. */
static void nodes_fill(onnx_call *c, old_nodes *o, forest *f)
{
    uint8_t *is_child = arena_alloc(&c->im->a, o->count, 1);
    uint32_t inner = 0, leaves = 0, trees = 0;
    if (!is_child) REJECT(c, NO_MEMORY, "out of memory for the trees");
    if (c->b.status) return;
    memset(is_child, 0, o->count);
    for (uint32_t i = 0; i < o->count && !c->b.status; i++) {
        const bool is_leaf = mode_of(c, &o->mode[i]) == TREE_LEAF;
        o->index[i] = is_leaf ? leaves++ : inner++;
        for (uint32_t k = 0; k < 2 && !is_leaf && !c->b.status; k++)
            is_child[place_of(c, o, o->tree[i], o->to[k][i])] = 1;
    }
    for (uint32_t i = 0; i < o->count; i++) trees += !is_child[i];
    f->nodes = o->count;
    f->leaves = leaves;
    f->trees = trees;
    f->type = SINTER_DTYPE_F32;
    tree_forest_new(c, f);
    trees = 0;
    for (uint32_t i = 0; i < o->count && !c->b.status; i++) {
        const int mode = mode_of(c, &o->mode[i]);
        const uint32_t at = o->index[i] += mode == TREE_LEAF ? inner : 0;
        if (!is_child[i]) f->root[trees++] = at;
        f->next[2 * at] = f->next[2 * at + 1] = at;
        if (mode == TREE_LEAF) continue;
        f->feature[at] = o->feature[i];
        f->split[at] = (double)o->split[i];
        f->mode[at] = (uint8_t)mode;
        f->has_mode[mode] = true;
        f->missing[at] = o->missing && o->missing[i];
        f->has_missing |= f->missing[at];
    }
    for (uint32_t i = 0; i < o->count && !c->b.status; i++)
        for (uint32_t k = 0; k < 2 && o->index[i] < inner && !c->b.status; k++)
            f->next[2 * o->index[i] + k] = o->index[place_of(c, o, o->tree[i], o->to[k][i])];
    for (size_t i = 0; i < (size_t)f->leaves * f->width && !c->b.status; i++) f->weight[i] = (double)NAN;
}

static void weights_fill(onnx_call *c, old_nodes *o, forest *f, const char *prefix)
{
    char name[4][32];
    static const char *const suffix[] = { "treeids", "nodeids", "ids", "weights" };
    for (uint32_t i = 0; i < 4; i++) (void)snprintf(name[i], sizeof name[i], "%s_%s", prefix, suffix[i]);
    const onnx_attr *tree = list_of(c, name[0], ONNX_INTS, 0, true);
    const uint32_t n = tree ? tree->ints.count : 0, inner = f->nodes - f->leaves;
    const onnx_attr *number = list_of(c, name[1], ONNX_INTS, n, true), *id = list_of(c, name[2], ONNX_INTS, n, true),
                    *weight = list_of(c, name[3], ONNX_FLOATS, n, true);
    for (uint32_t i = 0; i < n && !c->b.status; i++) {
        const uint32_t at = o->index[place_of(c, o, tree->ints.at[i], number->ints.at[i])];
        const int64_t target = id->ints.at[i];
        if (at < inner || target < 0 || target >= f->width)
            REJECT(c, INVALID_MODEL, "%s[%u] is %lld, or of a node that is no leaf", name[2], i, (long long)target);
        if (c->b.status) return;
        double *w = &f->weight[(size_t)(at - inner) * f->width + (size_t)target];
        *w = (isnan(*w) ? 0 : *w) + (double)weight->floats.at[i];
    }
}

void convert_tree_regressor(onnx_call *c)
{
    static const char *const names[] = { "AVERAGE", "SUM", "MIN", "MAX" };
    static const reduce_kind kinds[] = { reduce_kind_mean, reduce_kind_sum, reduce_kind_min, reduce_kind_max };
    const char *how = call_text(c, "aggregate_function", "SUM");
    const int64_t width = call_int(c, "n_targets", 0);
    const ir_value_id x = call_in(c, 0);
    old_nodes o;
    forest f = { 0 };
    uint32_t kind = 0;
    while (kind < COUNT_OF(names) && strcmp(names[kind], how) != 0) kind++;
    if (kind == COUNT_OF(names)) REJECT(c, INVALID_MODEL, "attribute aggregate_function is '%s'", how);
    if (width < 1 || width > INT16_MAX) REJECT(c, INVALID_MODEL, "attribute n_targets is %lld", (long long)width);
    if (!x) REJECT(c, INVALID_MODEL, "input 0 is missing");
    if (c->b.status) return;
    f.width = (uint32_t)width;
    nodes_read(c, &o);
    if (!c->b.status) nodes_fill(c, &o, &f);
    if (!c->b.status) weights_fill(c, &o, &f, "target");
    if (c->b.status) return;
    ir_value_id y = tree_answer(c, &f, x, kinds[kind]);
    const onnx_attr *base = list_of(c, "base_values", ONNX_FLOATS, 0, false);
    if (base && base->floats.count) {
        if (base->floats.count != 1 && base->floats.count != f.width)
            REJECT(c, INVALID_MODEL, "base_values has %u values", base->floats.count);
        y = build_add(&c->b, y, quirk_reals(c, base->floats.at, base->floats.count, 1));
    }
    c->out[0] = quirk_post_transform(c, call_text(c, "post_transform", "NONE"), y);
}
