/* SPDX-License-Identifier: Apache-2.0 */
/* tree.c - trees of decisions: tables of nodes (tree.h), their check, and the op tree_ensemble.
 *
 *   y[b, k] = the sum, mean, least or largest weight for target k over the leaves that row b of x comes to
 *
 * Of the last two, a target that no leaf speaks of is 0. */
#include "ops/tree.h"
#include "ops/move.h"

#include <math.h>

/* ---- the table ---- */

static bool is_node(const tree_row *row, int64_t i)
{
    return row[i].how & TREE_NODE || (!(row[i].how & TREE_ENTRY) && row[i].next == 2 * i);
}

/* The list is in the table, behind row i. left: rows that lists may still have, so that all of them are short together.
 */
static bool is_list(const tree_row *row, int64_t i, int64_t count, int64_t *left)
{
    const int64_t first = row[i].value[0], size = row[i].value[1];
    *left -= size;
    return first > i && first <= count && size <= count - first && *left >= 0;
}

const char *tree_check(const tree_row *row, int64_t count, int64_t trees, int64_t targets, int64_t features,
                       tree_facts *facts)
{
    *facts = (tree_facts){ 0 };
    if (count > TREE_ROWS_MAX) return "too many rows";
    if (trees < 0 || trees > count) return "more trees than rows";
    int64_t left = count;
    for (int64_t i = 0; i < trees; i++)
        if (!is_node(row, i)) return "a root is neither a node nor a leaf";
    for (int64_t i = 0; i < count; i++) {
        const tree_row *r = &row[i];
        if (r->how & TREE_NODE) {
            const int64_t child = tree_next(r);
            if (child <= i || child >= count - 1 || r->next % 2) return "a child is not behind its node";
            if (!is_node(row, child) || !is_node(row, child + 1)) return "a child is neither a node nor a leaf";
            if (tree_feature(r) >= features || r->how % 4) return "a node compares a feature that is not there";
            if (r->how & (TREE_EQ | TREE_MEMBER)) facts->has_equal = true;
            if (r->how & TREE_MEMBER && !is_list(row, i, count, &left)) return "a set is not behind its node";
        } else if (r->how & TREE_LIST && !(r->how & TREE_ENTRY)) {
            facts->has_lists = true;
            if (!is_list(row, i, count, &left)) return "a list is not behind its leaf";
            for (uint32_t k = 0; k < r->value[1]; k++)
                if (row[r->value[0] + k].next >= targets) return "a leaf speaks of a target that is not there";
        }
        if (!(r->how & TREE_NODE) && r->how & 0xFFFFFF) return "a leaf has a feature";
    }
    return targets < 1 ? "no targets" : NULL;
}

static uint32_t next_of(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(*seed >> 8) * below >> 24);
}

/* Values on a grid of quarters in [-2, 2), so that features meet them exactly. */
static double grid_of(uint32_t *seed)
{
    return next_of(seed, 16) / 4.0 - 2;
}

/* A list of up to four entries in rows [at, end): the row behind it. */
static int64_t list_make(tree_row *row, tree_row *owner, int64_t at, int64_t end, int64_t targets, sinter_dtype type,
                         uint32_t *seed)
{
    const int64_t room = end - at < 4 ? end - at : 4;
    const uint32_t size = next_of(seed, (uint32_t)room + 1);
    owner->value[0] = (uint32_t)at;
    owner->value[1] = size;
    for (uint32_t i = 0; i < size; i++, at++) {
        row[at] = (tree_row){ .how = TREE_ENTRY, .next = next_of(seed, (uint32_t)targets) };
        tree_value_set(&row[at], type, grid_of(seed));
    }
    return at;
}

/* A tree has its root and rows [from, end). Level by level, nodes take two rows each while there are some. Trees of
 * several targets that are for measuring have one entry a leaf, in the last third. */
static void tree_make_one(tree_row *row, int64_t root, int64_t from, int64_t end, int64_t targets, int64_t features,
                          sinter_dtype type, uint32_t *seed, bool varied, bool has_kinds)
{
    const bool has_entries = !varied && targets > 1;
    const int64_t stop = has_entries ? from + (end - from) / 3 * 2 - 2 : end;
    int64_t free_row = from, entry = stop > from ? stop : from;
    for (int64_t i = root; i < free_row || i == root; i = i == root ? from : i + 1) {
        if (i != root && row[i].how & TREE_ENTRY) continue;
        tree_row *r = &row[i];
        *r = (tree_row){ .next = 2 * (uint32_t)i };
        tree_value_set(r, type, varied ? grid_of(seed) : next_of(seed, 1 << 16) / 32768.0 - 1);
        const bool is_leaf = stop - free_row < 2 || features < 1 || (varied && i != root && !next_of(seed, 6));
        if (is_leaf && varied && free_row < end && next_of(seed, 2)) {
            r->how = TREE_LIST;
            free_row = list_make(row, r, free_row, end, targets, type, seed);
        }
        if (is_leaf && has_entries && entry < end && entry >= free_row) {
            row[entry] = (tree_row){ { r->value[0], r->value[1] }, TREE_ENTRY, next_of(seed, (uint32_t)targets) };
            *r = (tree_row){ { (uint32_t)entry++, 1 }, TREE_LIST, 2 * (uint32_t)i };
        }
        if (is_leaf) continue;
        r->how = tree_how(next_of(seed, (uint32_t)features), TREE_NODE);
        r->next = 2 * (uint32_t)free_row;
        row[free_row] = row[free_row + 1] = (tree_row){ 0 };
        free_row += 2;
        if (!varied) continue;
        if (next_of(seed, 3) == 0) r->how |= TREE_NAN;
        const uint32_t kind = has_kinds ? next_of(seed, 8) : 8;
        if (kind == 0) r->how |= TREE_EQ;
        if (kind == 1) r->how |= TREE_MEMBER;
        if (kind == 1) free_row = list_make(row, r, free_row, end, targets, type, seed);
    }
}

void tree_make(tree_row *row, int64_t count, int64_t trees, int64_t targets, int64_t features, sinter_dtype type,
               uint32_t seed, bool varied)
{
    const bool has_kinds = seed >> 16 & 1;
    const int64_t rest = count - trees, share = trees > 0 ? rest / trees : 0;
    if (features > TREE_FEATURES_MAX) features = TREE_FEATURES_MAX;
    for (int64_t i = trees > 0 ? trees : 0; i < count; i++) row[i] = (tree_row){ .how = TREE_ENTRY };
    for (int64_t i = 0; i < trees && i < count; i++)
        tree_make_one(row, i, trees + i * share, trees + (i + 1) * share, targets, features, type, &seed, varied,
                      has_kinds);
}

/* ---- the op ---- */

sinter_status infer_tree_ensemble(infer_ctx *c)
{
    const attrs_tree_ensemble *a = c->attrs;
    const infer_value *x = &c->in[0], *nodes = &c->in[1];
    dim ignored = DIM_NONE;
    TRY(infer_want_in(c, 0, "the input", 2, 2));
    TRY(infer_want_in(c, 1, "the table of nodes", 2, 2));
    if (x->dtype != SINTER_DTYPE_F32 && x->dtype != SINTER_DTYPE_F64)
        return FAIL(c->e, INVALID_MODEL, "the input has type %s, expected f32 or f64", sinter_dtype_name(x->dtype));
    TRY(infer_want_type(c, nodes, "the table of nodes", SINTER_DTYPE_U32));
    TRY(move_same_check(c, "the table of nodes", 1, dim_const(c->dims, 4), nodes->dim[1], &ignored));
    if (a->targets < 1 || a->targets > INT32_MAX || a->trees < 0 || a->trees > TREE_ROWS_MAX)
        return FAIL(c->e, INVALID_MODEL, "%lld trees for %lld targets", (long long)a->trees, (long long)a->targets);
    if (a->kind != reduce_kind_sum && a->kind != reduce_kind_mean && a->kind != reduce_kind_min &&
        a->kind != reduce_kind_max)
        return FAIL(c->e, INVALID_MODEL, "kind is %s, expected sum, mean, min or max", attr_items_reduce_kind[a->kind]);
    return infer_set(c, 0, x->dtype, 2, (const dim[]){ x->dim[0], dim_const(c->dims, a->targets) });
}

/* The leaf that a row of features, `step` apart, comes to. */
static const tree_row *leaf_of(const tree_row *row, const tree_row *r, const view *x, int64_t at)
{
    while (r->how & TREE_NODE) {
        const double v = view_load_f64(x, at + (int64_t)tree_feature(r) * x->stride[1]);
        bool holds = isnan(v) && r->how & TREE_NAN;
        if (r->how & TREE_MEMBER)
            for (uint32_t i = 0; i < r->value[1]; i++) holds |= v == tree_value(&row[r->value[0] + i], x->dtype);
        else holds |= r->how & TREE_EQ ? v == tree_value(r, x->dtype) : v <= tree_value(r, x->dtype);
        r = &row[tree_next(r) + !holds];
    }
    return r;
}

static void take(double *sum, int64_t kind, double weight)
{
    if (kind == reduce_kind_min) *sum = isnan(*sum) || weight < *sum ? weight : *sum;
    else if (kind == reduce_kind_max) *sum = isnan(*sum) || weight > *sum ? weight : *sum;
    else *sum += weight;
}

sinter_status reference_tree_ensemble(ref_call *c)
{
    const attrs_tree_ensemble *a = c->attrs;
    const view *x = &c->in[0], *nodes = &c->in[1], *out = &c->out[0];
    tree_facts facts;
    if (x->rank != 2 || nodes->rank != 2 || nodes->dim[1] != 4 || out->rank != 2 || out->dim[0] != x->dim[0] ||
        out->dim[1] != a->targets)
        return move_shape_fault(c, "input, table and result do not go together");
    const int64_t count = nodes->dim[0];
    tree_row *row = ARENA_NEW(c->scratch, tree_row, (size_t)count + 1);
    double *sum = ARENA_NEW(c->scratch, double, (size_t)a->targets);
    if (!row || !sum) return FAIL_MEMORY(c->e, "trees");
    for (int64_t i = 0; i < 4 * count; i++)
        ((uint32_t *)row)[i] = (uint32_t)view_load_i64(nodes, i / 4 * nodes->stride[0] + i % 4 * nodes->stride[1]);
    const char *why = tree_check(row, count, a->trees, a->targets, x->dim[1], &facts);
    if (why) return FAIL(c->e, INVALID_MODEL, "tree_ensemble: %s", why);
    const bool is_sum = a->kind == reduce_kind_sum || a->kind == reduce_kind_mean;
    for (int64_t b = 0; b < x->dim[0]; b++) {
        for (int64_t k = 0; k < a->targets; k++) sum[k] = is_sum ? 0 : (double)NAN;
        for (int64_t t = 0; t < a->trees; t++) {
            const tree_row *leaf = leaf_of(row, &row[t], x, b * x->stride[0]);
            if (!(leaf->how & TREE_LIST)) take(&sum[0], a->kind, tree_value(leaf, x->dtype));
            for (uint32_t i = 0; leaf->how & TREE_LIST && i < leaf->value[1]; i++) {
                const tree_row *entry = &row[leaf->value[0] + i];
                take(&sum[entry->next], a->kind, tree_value(entry, x->dtype));
            }
        }
        for (int64_t k = 0; k < a->targets; k++) {
            const double y = a->kind == reduce_kind_mean ? sum[k] / (double)a->trees : sum[k];
            view_store_f64(out, b * out->stride[0] + k * out->stride[1], !is_sum && isnan(y) ? 0 : y);
        }
    }
    return SINTER_OK;
}
