/* SPDX-License-Identifier: Apache-2.0 */
/* graph_ops_values.c - rows of operators for training, of previews, and of what looks values up in lists. */
#include "graph_ops.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A tensor with its gradient and its states, which must not be negative. arg: states */
static bool optimiser(grow *g, const gop *op)
{
    const uint32_t n = grow_between(g, 1, 2) == 1 ? 1 : 2, kinds = 2 + (uint32_t)op->arg;
    uint32_t in[G_IN];
    for (uint32_t i = 0; i < n; i++) {
        gsize d[3];
        in[i] = grow_pick(g, T_F32, 0, 3);
        if (in[i] == G_NONE) return false;
        for (uint32_t k = 0; k < grow_rank(g, in[i]); k++) d[k] = grow_dim(g, in[i], k);
        for (uint32_t k = 1; k < kinds; k++)
            in[k * n + i] = k == 1 ? grow_shaped(g, SINTER_DTYPE_F32, d, grow_rank(g, in[i]))
                                   : grow_leaf(g, SINTER_DTYPE_F32, d, grow_rank(g, in[i]), false,
                                               (gfill){ 0.5, 2, 0.125, grow_below(g, 999) });
    }
    const uint32_t rate = grow_const_scalar(g, SINTER_DTYPE_F32, 0.125),
                   steps = grow_leaf(g, SINTER_DTYPE_I64, NULL, 0, false, (gfill){ 0, 3, 1, grow_below(g, 999) }),
                   node = grow_begin(g, op->name);
    grow_in(g, node, rate);
    grow_in(g, node, steps);
    for (uint32_t i = 0; i < kinds * n; i++) grow_in(g, node, in[i]);
    if (grow_one_in(g, 2)) grow_real(g, node, "norm_coefficient", 0.25);
    grow_real(g, node, "alpha", 0.5);
    grow_real(g, node, "beta", 0.75);
    grow_real(g, node, "epsilon", 0.0625);
    if (strstr(op->name, "Adagrad")) grow_real(g, node, "decay_factor", 0.5);
    if (strstr(op->name, "Momentum")) grow_text(g, node, "mode", grow_one_in(g, 2) ? "nesterov" : "standard");
    if (strstr(op->name, "Adam") && grow_one_in(g, 2)) grow_real(g, node, "norm_coefficient_post", 0.125);
    return grow_end(g, node, (uint32_t)(op->arg + 1) * n) != G_NONE;
}

/* Its subgraphs are in ONNX's own cases. A precision of its own takes the way that they take. */
static bool flex(grow *g, const gop *op)
{
    const int64_t groups = grow_between(g, 1, 2), heads = groups * grow_between(g, 1, 2), width = grow_between(g, 1, 6);
    const gsize batch = grow_size(g), s = grow_size(g), t = grow_size(g);
    if (gsize_min(g, t) < 1) return false;
    const gsize depth = grow_one_in(g, 2) ? grow_size(g) : gsize_of(width), q[4] = { batch, gsize_of(heads), s, depth },
                k[4] = { batch, gsize_of(groups), t, depth },
                v[4] = { batch, k[1], t, gsize_of(grow_between(g, 1, 6)) };
    if (gsize_min(g, depth) < 1) return false;
    const uint32_t query = grow_shaped(g, SINTER_DTYPE_F32, q, 4), key = grow_shaped(g, SINTER_DTYPE_F32, k, 4),
                   value = grow_shaped(g, SINTER_DTYPE_F32, v, 4), n = grow_begin(g, op->name);
    grow_in(g, n, query);
    grow_in(g, n, key);
    grow_in(g, n, value);
    if (grow_one_in(g, 2)) grow_real(g, n, "scale", 0.375);
    if (grow_one_in(g, 2)) grow_int(g, n, "softmax_precision", 11);
    return grow_end(g, n, 1) != G_NONE;
}

/* A pool of n-grams that are all of different elements, so that none stands there twice. */
static bool tfidf(grow *g, const gop *op)
{
    static const char *const modes[] = { "TF", "IDF", "TFIDF" };
    const int64_t longest = grow_between(g, 1, 3), shortest = grow_between(g, 1, longest);
    const gsize d[2] = { grow_size(g), grow_size(g) };
    const bool has_batch = grow_one_in(g, 2);
    int64_t starts[3], pool[16], column[16], count = 0, grams = 0;
    for (int64_t length = 1; length <= longest; length++) {
        const int64_t here = grow_between(g, length == longest, 2);
        starts[length - 1] = count;
        for (int64_t i = 0; i < here * length; i++) pool[count++] = (i / length + i % length) % 4;
        for (int64_t i = 0; i < here; i++) column[grams++] = grow_between(g, 0, 4);
    }
    const sinter_dtype type = grow_one_in(g, 2) ? SINTER_DTYPE_I32 : SINTER_DTYPE_I64;
    const uint32_t x = grow_leaf(g, type, has_batch ? d : d + 1, has_batch ? 2 : 1, false,
                                 (gfill){ 0, 3, 1, grow_below(g, 999) }),
                   n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_text(g, n, "mode", modes[grow_below(g, 3)]);
    grow_int(g, n, "min_gram_length", shortest);
    grow_int(g, n, "max_gram_length", longest);
    grow_int(g, n, "max_skip_count", grow_between(g, 0, 2));
    grow_list(g, n, "ngram_counts", starts, (uint32_t)longest);
    grow_list(g, n, "ngram_indexes", column, (uint32_t)grams);
    grow_list(g, n, "pool_int64s", pool, (uint32_t)count);
    return grow_end(g, n, 1) != G_NONE;
}

static void reals(grow *g, uint32_t node, const char *name, uint32_t count)
{
    gattr *a = gnode_attr(&g->m->node.at[node], name, GA_REALS);
    a->count = count;
    for (uint32_t i = 0; i < count; i++) a->reals[i] = (double)grow_between(g, -8, 8) / 4;
}

/* Rows of few features. */
static uint32_t features(grow *g, int64_t count)
{
    const gsize d[2] = { grow_size(g), gsize_of(count) };
    return grow_shaped(g, SINTER_DTYPE_F32, d, 2);
}

enum { SCALER, NORMALIZER, IMPUTER, REGRESSOR, CLASSIFIER, ENCODER };

static bool learned(grow *g, const gop *op)
{
    static const char *const norms[] = { "MAX", "L1", "L2" }, *const after[] = { "NONE", "SOFTMAX", "LOGISTIC" };
    const int64_t count = grow_between(g, 1, 2), rows = grow_between(g, 1, 3),
                  labels = op->arg == CLASSIFIER && rows == 1 ? 2 : rows, cats[3] = { 1, 7, 3 },
                  label[3] = { 5, -2, 9 };
    const uint32_t x = op->arg == ENCODER ? grow_pick(g, T_OF(I64) | T_OF(I32), 0, 3) : features(g, count);
    if (x == G_NONE) return false;
    const uint32_t n = grow_begin(g, op->name);
    const bool is_linear = op->arg == REGRESSOR || op->arg == CLASSIFIER;
    grow_in(g, n, x);
    if (op->arg == SCALER) reals(g, n, "scale", grow_one_in(g, 2) ? 1 : (uint32_t)count);
    if (op->arg == SCALER) reals(g, n, "offset", (uint32_t)count);
    if (op->arg == NORMALIZER) grow_text(g, n, "norm", norms[grow_below(g, 3)]);
    if (op->arg == IMPUTER) reals(g, n, "imputed_value_floats", (uint32_t)count);
    if (op->arg == ENCODER) grow_list(g, n, "cats_int64s", cats, 3);
    if (is_linear) reals(g, n, "coefficients", (uint32_t)(rows * count));
    if (is_linear) reals(g, n, "intercepts", (uint32_t)rows);
    if (is_linear) grow_text(g, n, "post_transform", after[grow_below(g, 3)]);
    if (op->arg == REGRESSOR) grow_int(g, n, "targets", rows);
    if (op->arg == CLASSIFIER) grow_list(g, n, "classlabels_ints", label, (uint32_t)labels);
    return grow_end(g, n, op->arg == CLASSIFIER ? 2 : 1) != G_NONE;
}

/* Rows of any axes behind the first, or lists, which are one row; widths as they are, or one more or less. */
static bool vectorizer(grow *g, const gop *op)
{
    static const sinter_dtype types[] = { SINTER_DTYPE_F32, SINTER_DTYPE_F64, SINTER_DTYPE_I32, SINTER_DTYPE_I64 };
    enum { MOST = 3 };
    const uint32_t count = 1 + grow_below(g, MOST);
    const bool has_lists = grow_one_in(g, 4), has_widths = grow_one_in(g, 2);
    const gsize rows = has_lists ? gsize_of(1) : grow_size(g);
    int64_t width[MOST];
    uint32_t in[MOST];
    for (uint32_t i = 0; i < count; i++) {
        const int64_t size = grow_between(g, 1, 3), more = grow_one_in(g, 4) ? 2 : 1;
        const gsize d[3] = { rows, gsize_of(size), gsize_of(more) };
        const bool is_list = has_lists && more == 1 && grow_one_in(g, 2);
        in[i] = grow_shaped(g, types[grow_below(g, COUNT_OF(types))], is_list ? d + 1 : d,
                            is_list ? 1 : 1 + (uint32_t)more);
        if (in[i] == G_NONE) return false;
        width[i] = size * more + grow_between(g, size * more > 1 ? -1 : 0, 1);
    }
    const uint32_t n = grow_begin(g, op->name);
    for (uint32_t i = 0; i < count; i++) grow_in(g, n, in[i]);
    if (has_widths) grow_list(g, n, "inputdimensions", width, count);
    return grow_end(g, n, 1) != G_NONE;
}

/* arg: whether it is the classifier. */
static bool vectors(grow *g, const gop *op)
{
    static const char *const kernels[] = { "LINEAR", "RBF", "POLY", "SIGMOID" };
    static const char *const after[] = { "NONE", "LOGISTIC", "SOFTMAX" };
    const int64_t columns = grow_between(g, 1, 3), classes = op->arg ? grow_between(g, 2, 3) : 1,
                  label[3] = { 5, -2, 9 };
    int64_t each[3] = { 0, 0, 0 }, count = 0;
    const bool has_vectors = !grow_one_in(g, 4);
    for (int64_t i = 0; i < classes && has_vectors; i++) count += each[i] = grow_between(g, 1, op->arg ? 2 : 4);
    const uint32_t x = features(g, columns);
    if (x == G_NONE) return false;
    const uint32_t n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_text(g, n, "kernel_type", kernels[grow_below(g, 4)]);
    gattr *a = gnode_attr(&g->m->node.at[n], "kernel_params", GA_REALS);
    a->count = 3;
    a->reals[0] = (double)grow_between(g, 1, 4) / 4;
    a->reals[1] = (double)grow_between(g, -2, 2);
    a->reals[2] = (double)grow_between(g, 1, 3);
    const int64_t rows = op->arg && count ? classes - 1 : classes;
    reals(g, n, "coefficients", (uint32_t)(rows * (count ? count : columns)));
    if (count) reals(g, n, "support_vectors", (uint32_t)(count * columns));
    const uint32_t pairs = (uint32_t)(classes * (classes - 1) / 2);
    reals(g, n, "rho", op->arg && count ? pairs : 1);
    if (op->arg && count && grow_one_in(g, 2)) {
        reals(g, n, "prob_a", pairs);
        reals(g, n, "prob_b", pairs);
    }
    grow_text(g, n, "post_transform", after[grow_below(g, 3)]);
    if (op->arg && count) grow_list(g, n, "vectors_per_class", each, (uint32_t)classes);
    if (op->arg) grow_list(g, n, "classlabels_ints", label, (uint32_t)classes);
    else grow_int(g, n, "n_supports", count);
    if (!op->arg && grow_one_in(g, 4)) grow_int(g, n, "one_class", 1);
    return grow_end(g, n, op->arg ? 2 : 1) != G_NONE;
}

/* ---- trees: as many as fit into the lists of an attribute ---- */

enum { TREE_NODES = 16 };
typedef struct tree_node {
    int64_t tree, number, feature, yes, no, mode, missing; /* mode: 0 a leaf, else 1 more than in TreeEnsemble */
    double split;
} tree_node;

static int64_t trees_grow(grow *g, int64_t features, int64_t modes, tree_node *n, int64_t *trees)
{
    int64_t count = 0;
    *trees = grow_between(g, 1, 3);
    for (int64_t t = 0; t < *trees; t++) {
        const int64_t first = count, inner = grow_between(g, 0, 2);
        n[count++] = (tree_node){ .tree = t };
        for (int64_t i = 0; i < inner; i++) {
            int64_t at = first + grow_between(g, 0, count - first - 1);
            while (n[at].mode) at++; /* the last node is a leaf */
            n[at].mode = 1 + grow_between(g, 0, modes - 1);
            n[at].feature = grow_between(g, 0, features - 1);
            n[at].missing = grow_between(g, 0, 1);
            n[at].split = (double)grow_between(g, -6, 6) / 4;
            n[at].yes = count - first;
            n[at].no = count - first + 1;
            for (int64_t k = 0; k < 2; k++, count++) n[count] = (tree_node){ .tree = t, .number = count - first };
        }
    }
    return count;
}

#define FIELD(g, node, name, list, count, field)                                                                       \
    do {                                                                                                               \
        int64_t at_[TREE_NODES];                                                                                       \
        for (int64_t i_ = 0; i_ < (count); i_++) at_[i_] = (list)[i_].field;                                           \
        grow_list(g, node, name, at_, (uint32_t)(count));                                                              \
    } while (0)

static void tensor(grow *g, uint32_t node, const char *name, sinter_dtype type, const double *at, int64_t count)
{
    gattr *a = gnode_attr(&g->m->node.at[node], name, GA_TENSOR);
    a->dtype = type;
    a->count = (uint32_t)count;
    for (int64_t i = 0; i < count; i++) a->reals[i] = at[i];
}

static uint32_t rows(grow *g, sinter_dtype type, int64_t features)
{
    const gsize d[2] = { grow_size(g), gsize_of(features) };
    const bool is_row = grow_one_in(g, 8);
    return grow_shaped(g, type, is_row ? d + 1 : d, is_row ? 1 : 2);
}

/* The older operators. arg: how many results. */
static bool trees(grow *g, const gop *op)
{
    static const char *const modes[] = { "LEAF",      "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                         "BRANCH_GT", "BRANCH_EQ",  "BRANCH_NEQ" },
                             *const after[] = { "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO" },
                             *const kinds[] = { "SUM", "AVERAGE", "MIN", "MAX" };
    const bool is_classifier = op->arg == 2, is_wide = grow_one_in(g, 4);
    const sinter_dtype type = is_wide ? SINTER_DTYPE_F64 : SINTER_DTYPE_F32;
    const int64_t features = grow_between(g, 1, 4), targets = grow_between(g, is_classifier ? 2 : 1, 3),
                  label[3] = { 5, -2, 9 };
    tree_node n[TREE_NODES];
    int64_t count_trees, tree[TREE_NODES], number[TREE_NODES], id[TREE_NODES], weights = 0;
    double split[TREE_NODES], weight[TREE_NODES];
    char words[192] = "", name[32];
    const int64_t count = trees_grow(g, features, 6, n, &count_trees);
    const bool is_one = is_classifier && targets == 2;
    for (int64_t i = 0; i < count; i++) {
        (void)snprintf(words + strlen(words), sizeof words - strlen(words), "%s%s", i ? " " : "", modes[n[i].mode]);
        split[i] = n[i].split;
        if (n[i].mode) continue;
        for (int64_t k = 0; k < (is_one ? 1 : 2) && weights < TREE_NODES; k++) {
            if (k && grow_one_in(g, 2)) continue;
            tree[weights] = n[i].tree;
            number[weights] = n[i].number;
            id[weights] = is_one ? 0 : grow_between(g, 0, targets - 1);
            weight[weights++] = (double)grow_between(g, -8, 8) / 4;
        }
    }
    const uint32_t x = rows(g, type, features), node = grow_begin(g, op->name);
    grow_in(g, node, x);
    FIELD(g, node, "nodes_treeids", n, count, tree);
    FIELD(g, node, "nodes_nodeids", n, count, number);
    FIELD(g, node, "nodes_featureids", n, count, feature);
    FIELD(g, node, "nodes_truenodeids", n, count, yes);
    FIELD(g, node, "nodes_falsenodeids", n, count, no);
    if (grow_one_in(g, 2)) FIELD(g, node, "nodes_missing_value_tracks_true", n, count, missing);
    gattr *mode = gnode_attr(&g->m->node.at[node], "nodes_modes", GA_TEXTS);
    (void)snprintf(mode->text, sizeof mode->text, "%s", words);
    const char *prefix = is_classifier ? "class" : "target";
    (void)snprintf(name, sizeof name, "%s_treeids", prefix);
    grow_list(g, node, name, tree, (uint32_t)weights);
    (void)snprintf(name, sizeof name, "%s_nodeids", prefix);
    grow_list(g, node, name, number, (uint32_t)weights);
    (void)snprintf(name, sizeof name, "%s_ids", prefix);
    grow_list(g, node, name, id, (uint32_t)weights);
    (void)snprintf(name, sizeof name, "%s_weights%s", prefix, is_wide ? "_as_tensor" : "");
    if (is_wide) {
        tensor(g, node, name, type, weight, weights);
        tensor(g, node, "nodes_values_as_tensor", type, split, count);
    } else {
        gattr *a = gnode_attr(&g->m->node.at[node], name, GA_REALS);
        a->count = (uint32_t)weights;
        for (int64_t i = 0; i < weights; i++) a->reals[i] = weight[i];
        a = gnode_attr(&g->m->node.at[node], "nodes_values", GA_REALS);
        a->count = (uint32_t)count;
        for (int64_t i = 0; i < count; i++) a->reals[i] = split[i];
        if (grow_one_in(g, 3)) reals(g, node, "base_values", is_one ? 1 : (uint32_t)targets);
    }
    grow_text(g, node, "post_transform", is_one ? after[2 * grow_below(g, 2)] : after[grow_below(g, 4)]);
    if (is_classifier) grow_list(g, node, "classlabels_int64s", label, (uint32_t)targets);
    else grow_int(g, node, "n_targets", targets);
    if (!is_classifier) grow_text(g, node, "aggregate_function", kinds[grow_below(g, 4)]);
    return grow_end(g, node, (uint32_t)op->arg) != G_NONE;
}

/* TreeEnsemble: nodes and leaves are apart, and a root is a node. */
static bool ensemble(grow *g, const gop *op)
{
    const sinter_dtype type = grow_one_in(g, 3) ? SINTER_DTYPE_F64 : SINTER_DTYPE_F32;
    const int64_t features = grow_between(g, 1, 4), targets = grow_between(g, 1, 3);
    tree_node n[TREE_NODES], inner[TREE_NODES];
    int64_t roots[TREE_NODES], at[TREE_NODES], target[TREE_NODES], list[2][TREE_NODES], is_leaf[2][TREE_NODES],
        count_trees, nodes = 0, leaves = 0, members = 0, first = 0;
    double split[TREE_NODES], mode[TREE_NODES], weight[TREE_NODES], member[TREE_NODES];
    const int64_t count = trees_grow(g, features, grow_one_in(g, 2) ? 7 : 6, n, &count_trees);
    for (int64_t i = 0; i < count; i++) {
        if (!n[i].mode && !n[i].number && (i + 1 == count || n[i + 1].tree != n[i].tree)) return false;
        at[i] = n[i].mode ? nodes++ : leaves++;
    }
    int64_t count_roots = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!n[i].number) first = i;
        if (!n[i].number) roots[count_roots++] = at[i];
        if (!n[i].mode) {
            target[at[i]] = grow_between(g, 0, targets - 1);
            weight[at[i]] = (double)grow_between(g, -8, 8) / 4;
            continue;
        }
        inner[at[i]] = n[i];
        split[at[i]] = n[i].split;
        mode[at[i]] = (double)(n[i].mode - 1);
        for (int64_t k = 0; k < 2; k++) {
            const int64_t to = first + (k ? n[i].yes : n[i].no);
            list[k][at[i]] = at[to];
            is_leaf[k][at[i]] = !n[to].mode;
        }
        for (int64_t k = 0; n[i].mode == 7 && k < 2; k++) member[members++] = (double)grow_between(g, -6, 6) / 4;
        if (n[i].mode == 7) member[members++] = (double)NAN;
    }
    const uint32_t x = rows(g, type, features), node = grow_begin(g, op->name);
    grow_in(g, node, x);
    grow_list(g, node, "tree_roots", roots, (uint32_t)count_roots);
    FIELD(g, node, "nodes_featureids", inner, nodes, feature);
    grow_list(g, node, "nodes_truenodeids", list[1], (uint32_t)nodes);
    grow_list(g, node, "nodes_falsenodeids", list[0], (uint32_t)nodes);
    grow_list(g, node, "nodes_trueleafs", is_leaf[1], (uint32_t)nodes);
    grow_list(g, node, "nodes_falseleafs", is_leaf[0], (uint32_t)nodes);
    if (grow_one_in(g, 2)) FIELD(g, node, "nodes_missing_value_tracks_true", inner, nodes, missing);
    grow_list(g, node, "leaf_targetids", target, (uint32_t)leaves);
    tensor(g, node, "leaf_weights", type, weight, leaves);
    tensor(g, node, "nodes_splits", type, split, nodes);
    tensor(g, node, "nodes_modes", SINTER_DTYPE_U8, mode, nodes);
    if (members) tensor(g, node, "membership_values", type, member, members);
    grow_int(g, node, "n_targets", targets);
    grow_int(g, node, "aggregate_function", grow_between(g, 0, 3));
    grow_int(g, node, "post_transform", grow_between(g, 0, 3));
    return grow_end(g, node, 1) != G_NONE;
}

#define TEXT "text is no operand of random graphs: tests/golden/test_cli_values.py makes it"
#define NO(name, why)                                                                                                  \
    {                                                                                                                  \
        name, 0, 0, 0, NULL, 0, 0, why                                                                                 \
    }
#define MAPS "maps are outputs of models alone: tests/golden/test_cli_values.py makes them"
#define MAPS_IN "it takes a map from outside: tests/python/test_package.py, tests/models/forms.txt"
#define SHIPPED "its outputs are compared with NumPy: tests/python/test_shipped_plugins.py"
#define QONNX "qonnx.custom_op.general."
#define ROUNDED "results of random nodes are compared with NumPy: tests/python/test_onnx_qonnx.py"
#define CODES "every code and scale of random models is compared with NumPy: tests/python/test_onnx_trt.py"
/* clang-format off */
#define TRAINING "ai.onnx.preview.training."
#define ML "ai.onnx.ml."
const gop gops_values[] = {
    { TRAINING "Adagrad", 1, 0, 2, optimiser, 1, 0, 0 },    { TRAINING "Adam", 1, 0, 1, optimiser, 2, 0, 0 },
    { TRAINING "Momentum", 1, 0, 1, optimiser, 1, 0, 0 },   { "ai.onnx.preview.FlexAttention", 1, 0, 1, flex, 0, 0, 0 },
    { "TfIdfVectorizer", 9, 0, 1, tfidf, 0, 0, 0 },
    { ML "Scaler", 1, 0, 1, learned, SCALER, 0, 0 },        { ML "Normalizer", 1, 0, 1, learned, NORMALIZER, 0, 0 },
    { ML "Imputer", 1, 0, 1, learned, IMPUTER, 0, 0 },
    { ML "FeatureVectorizer", 1, 0, 1, vectorizer, 0, 0, 0 },
    { ML "LinearRegressor", 1, 0, 1, learned, REGRESSOR, 0, 0 },
    { ML "LinearClassifier", 1, 0, 1, learned, CLASSIFIER, 0, 0 },
    { ML "OneHotEncoder", 1, 0, 1, learned, ENCODER, 0, 0 },
    { ML "SVMRegressor", 1, 0, 1, vectors, 0, 0, 0 },       { ML "SVMClassifier", 1, 0, 1, vectors, 1, 0, 0 },
    { ML "TreeEnsembleRegressor", 1, 0, 2, trees, 1, 0, 0 },
    { ML "TreeEnsembleClassifier", 1, 0, 2, trees, 2, 0, 0 },
    { ML "TreeEnsemble", 1, 0, 2, ensemble, 0, 0, 0 },      NO(ML "LabelEncoder", TEXT), NO(ML "CategoryMapper", TEXT),
    NO(ML "ZipMap", MAPS), NO(ML "CastMap", MAPS_IN), NO(ML "DictVectorizer", MAPS_IN),
    NO("TRT.EfficientNMS_TRT", SHIPPED), NO("TRT.BatchedNMS_TRT", SHIPPED), NO("TRT.BatchedNMSDynamic_TRT", SHIPPED),
    NO("TRT.InstanceNormalization_TRT", SHIPPED), NO("TRT.MMCVModulatedDeformConv2d", SHIPPED),
    NO("TRT.ModulatedDeformConv2d", SHIPPED), NO("TRT.MultiscaleDeformableAttnPlugin_TRT", SHIPPED),
    NO("TRT.ROIAlign_TRT", SHIPPED),
    NO("trt.DequantizeLinear", CODES), NO("trt.TRT_INT4DequantizeLinear", CODES),
    NO("trt.TRT_INT4QuantizeLinear", CODES), NO("trt.TRT_FP8QuantizeLinear", CODES),
    NO("trt.TRT_FP8DequantizeLinear", CODES), NO("trt.TRT_MXFP8DequantizeLinear", CODES),
    NO("trt.TRT_FP4DynamicQuantize", CODES), NO("trt.TRT_MXFP8DynamicQuantize", CODES),
    NO(QONNX "Quant", ROUNDED), NO(QONNX "IntQuant", ROUNDED), NO(QONNX "BipolarQuant", ROUNDED),
    NO(QONNX "Trunc", ROUNDED),
    NO("StringConcat", TEXT), NO("StringSplit", TEXT), NO("StringNormalizer", TEXT),
    NO("com.microsoft.Tokenizer", TEXT),
    { 0 },
};
/* clang-format on */
