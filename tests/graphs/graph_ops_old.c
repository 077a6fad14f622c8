/* SPDX-License-Identifier: Apache-2.0 */
/* graph_ops_old.c - operators as opsets before 18 have them: what is an input now was an attribute, and some attributes
 * were not there. Rows make the new form, and old_form() rewrites the node, or says that it cannot be said so. */
#include "graph_ops.h"

#define OLD_TYPES (T_F32 | T_OF(F64) | T_OF(F16) | T_OF(I32) | T_OF(I64) | T_OF(U8) | T_B)
#define OLD_FLOATS (T_F32 | T_OF(F64) | T_OF(F16))

typedef struct moved {
    uint32_t input;   /* 0: the list ends */
    const char *attr; /* NULL: it has to say 1 everywhere, and goes */
    gattr_kind kind;
} moved;

/* Versions since..until; of several rows of a name, the first that fits. */
typedef struct old_row {
    const char *name;
    int64_t since, until;
    uint64_t types;    /* of input 0 */
    const char *lacks; /* attributes that there are not, with a space behind each */
    moved moved[3];
} old_row;

#define SAME(name, since, types)                                                                                       \
    {                                                                                                                  \
        name, since, 99, types, "",                                                                                    \
        {                                                                                                              \
            {                                                                                                          \
                0, NULL, GA_INT                                                                                        \
            }                                                                                                          \
        }                                                                                                              \
    }
#define LACKS(name, since, until, types, lacks)                                                                        \
    {                                                                                                                  \
        name, since, until, types, lacks,                                                                              \
        {                                                                                                              \
            {                                                                                                          \
                0, NULL, GA_INT                                                                                        \
            }                                                                                                          \
        }                                                                                                              \
    }
#define ATTR_1(name, since, until, types, lacks, i, attr, kind)                                                        \
    {                                                                                                                  \
        name, since, until, types, lacks,                                                                              \
        {                                                                                                              \
            { i, attr, kind },                                                                                         \
            {                                                                                                          \
                0, NULL, GA_INT                                                                                        \
            }                                                                                                          \
        }                                                                                                              \
    }
#define ATTR_2(name, since, until, types, lacks, i, attr, kind, k, other, other_kind)                                  \
    {                                                                                                                  \
        name, since, until, types, lacks,                                                                              \
        {                                                                                                              \
            { i, attr, kind }, { k, other, other_kind },                                                               \
            {                                                                                                          \
                0, NULL, GA_INT                                                                                        \
            }                                                                                                          \
        }                                                                                                              \
    }
#define REDUCE(name) ATTR_1(name, 1, 17, OLD_FLOATS, "noop_with_empty_axes ", 1, "axes", GA_INTS)

/* clang-format off */
static const old_row rows[] = {
    SAME("Abs", 6, OLD_FLOATS), SAME("Neg", 6, OLD_FLOATS), SAME("Relu", 6, OLD_FLOATS), SAME("Sigmoid", 6, OLD_FLOATS),
    SAME("Tanh", 6, OLD_FLOATS), SAME("Exp", 6, OLD_FLOATS), SAME("Log", 6, OLD_FLOATS), SAME("Sqrt", 6, OLD_FLOATS),
    SAME("Erf", 9, OLD_FLOATS), SAME("Floor", 6, OLD_FLOATS), SAME("Ceil", 6, OLD_FLOATS), SAME("Sign", 9, OLD_FLOATS),
    SAME("Reciprocal", 6, OLD_FLOATS), SAME("Add", 7, OLD_TYPES & ~(T_B | T_OF(U8))),
    SAME("Sub", 7, OLD_TYPES & ~(T_B | T_OF(U8))), SAME("Mul", 7, OLD_TYPES & ~(T_B | T_OF(U8))),
    SAME("Div", 7, OLD_TYPES & ~(T_B | T_OF(U8))), SAME("Mod", 10, OLD_TYPES & ~T_B), SAME("Pow", 7, OLD_FLOATS),
    SAME("Equal", 7, T_B | T_OF(I32) | T_OF(I64)), SAME("Greater", 7, OLD_FLOATS), SAME("Less", 7, OLD_FLOATS),
    SAME("GreaterOrEqual", 12, OLD_FLOATS), SAME("LessOrEqual", 12, OLD_FLOATS), SAME("Max", 8, OLD_FLOATS),
    SAME("Min", 8, OLD_FLOATS), SAME("Sum", 8, OLD_FLOATS), SAME("Mean", 8, OLD_FLOATS), SAME("Where", 9, OLD_TYPES),
    SAME("PRelu", 9, OLD_FLOATS), LACKS("Cast", 9, 18, OLD_TYPES, "saturate "), SAME("Clip", 11, OLD_FLOATS),
    ATTR_2("Clip", 6, 10, OLD_FLOATS, "", 1, "min", GA_REAL, 2, "max", GA_REAL),
    SAME("Transpose", 1, OLD_TYPES), LACKS("Reshape", 5, 13, OLD_TYPES, "allowzero "), SAME("Flatten", 11, OLD_TYPES),
    SAME("Flatten", 9, OLD_TYPES), ATTR_1("Squeeze", 1, 12, OLD_TYPES, "", 1, "axes", GA_INTS),
    ATTR_1("Unsqueeze", 1, 12, OLD_TYPES, "", 1, "axes", GA_INTS), SAME("Slice", 10, OLD_TYPES),
    { "Slice", 1, 9, OLD_TYPES, "", { { 1, "starts", GA_INTS }, { 2, "ends", GA_INTS }, { 3, "axes", GA_INTS } } },
    SAME("Expand", 8, OLD_TYPES), SAME("Concat", 4, OLD_TYPES), LACKS("Split", 13, 17, OLD_TYPES, "num_outputs "),
    ATTR_1("Split", 2, 12, OLD_TYPES, "num_outputs ", 1, "split", GA_INTS), SAME("Tile", 6, OLD_TYPES),
    SAME("Pad", 11, OLD_FLOATS), ATTR_2("Pad", 2, 10, OLD_FLOATS, "", 1, "pads", GA_INTS, 2, "value", GA_REAL),
    SAME("DepthToSpace", 11, OLD_FLOATS), LACKS("DepthToSpace", 1, 10, OLD_FLOATS, "mode "),
    SAME("SpaceToDepth", 1, OLD_FLOATS), LACKS("Shape", 1, 14, OLD_TYPES, "start end "), SAME("Size", 1, OLD_TYPES),
    SAME("Gather", 1, OLD_TYPES), SAME("GatherElements", 11, OLD_TYPES), SAME("GatherND", 11, OLD_TYPES),
    SAME("ScatterElements", 16, OLD_TYPES & ~T_B), LACKS("ScatterElements", 11, 15, OLD_TYPES & ~T_B, "reduction "),
    SAME("ScatterND", 16, OLD_TYPES & ~T_B), LACKS("ScatterND", 11, 15, OLD_TYPES & ~T_B, "reduction "),
    SAME("OneHot", 9, OLD_TYPES),
    LACKS("TopK", 10, 10, OLD_FLOATS, "largest "),
    ATTR_1("TopK", 1, 9, OLD_FLOATS, "largest ", 1, "k", GA_INT), SAME("ArgMax", 12, OLD_FLOATS),
    SAME("ArgMin", 12, OLD_FLOATS), LACKS("ArgMax", 1, 11, OLD_FLOATS, "select_last_index "),
    LACKS("ArgMin", 1, 11, OLD_FLOATS, "select_last_index "), SAME("CumSum", 11, OLD_FLOATS & ~T_OF(F16)),
    SAME("NonZero", 9, OLD_TYPES), SAME("MatMul", 1, OLD_FLOATS), SAME("Gemm", 11, OLD_FLOATS),
    SAME("Gemm", 7, OLD_FLOATS),
    SAME("MaxPool", 8, OLD_FLOATS), SAME("AveragePool", 7, OLD_FLOATS), SAME("LpPool", 2, OLD_FLOATS),
    SAME("ReduceSum", 13, OLD_FLOATS),
    ATTR_1("ReduceSum", 1, 12, OLD_FLOATS, "noop_with_empty_axes ", 1, "axes", GA_INTS),
    REDUCE("ReduceMean"), REDUCE("ReduceMax"), REDUCE("ReduceMin"), REDUCE("ReduceProd"), REDUCE("ReduceL1"),
    REDUCE("ReduceL2"), REDUCE("ReduceLogSum"), REDUCE("ReduceLogSumExp"), REDUCE("ReduceSumSquare"),
    SAME("Softmax", 1, OLD_FLOATS), SAME("LogSoftmax", 1, OLD_FLOATS), SAME("Hardmax", 1, OLD_FLOATS),
    SAME("BatchNormalization", 9, OLD_FLOATS), SAME("LRN", 1, OLD_FLOATS), SAME("Resize", 13, OLD_FLOATS),
    SAME("Dropout", 7, OLD_FLOATS), SAME("MeanVarianceNormalization", 9, OLD_FLOATS), SAME("RoiAlign", 10, OLD_FLOATS),
    SAME("NonMaxSuppression", 10, OLD_FLOATS), SAME("LSTM", 7, OLD_FLOATS), SAME("GRU", 7, OLD_FLOATS),
    SAME("RNN", 7, OLD_FLOATS), SAME("If", 1, T_B), SAME("Loop", 1, OLD_TYPES), SAME("Scan", 9, OLD_TYPES),
    SAME("NegativeLogLikelihoodLoss", 12, OLD_FLOATS), SAME("SoftmaxCrossEntropyLoss", 12, OLD_FLOATS),
};
/* clang-format on */

static const old_row *row_of(const char *name, int64_t opset)
{
    for (uint32_t i = 0; i < COUNT_OF(rows); i++)
        if (!strcmp(rows[i].name, name) && rows[i].since <= opset && opset <= rows[i].until) return &rows[i];
    return NULL;
}

bool gop_has_old(const char *name, int64_t opset)
{
    return row_of(name, opset) != NULL;
}

/* An input becomes an attribute: it is a constant, or there is none. */
static bool move_input(const gmodel *m, gnode *n, const moved *to)
{
    if (to->input >= n->count_in || n->in[to->input] == G_NONE) return true;
    const gvalue *v = &m->value.at[n->in[to->input]];
    if (v->kind != G_CONST || n->count_attr == G_ATTRS) return false;
    const gtensor *t = v->at[0][0];
    if (to->kind == GA_INTS && t->count > (int64_t)COUNT_OF(n->attr[0].ints)) return false;
    gattr *a = gnode_attr(n, to->attr, to->kind);
    a->f = t->count ? gtensor_at(t, 0) : 0;
    a->i = (int64_t)a->f;
    a->count = (uint32_t)t->count;
    for (uint32_t i = 0; i < a->count && to->kind == GA_INTS; i++) a->ints[i] = dtype_load_i64(t->dtype, t->data, i);
    return true;
}

static bool is_all_1(const gmodel *m, uint32_t value)
{
    const gtensor *t = m->value.at[value].at[0][0];
    for (int64_t i = 0; i < t->count; i++)
        if (gtensor_at(t, i) != 1) return false;
    return m->value.at[value].kind == G_CONST;
}

bool gop_old_form(const gmodel *m, gnode *n)
{
    const gop *now = gop_find(n->op);
    const old_row *row = now && now->since > m->opset ? row_of(n->op, m->opset) : NULL;
    if (!row) return !now || now->since <= m->opset || strchr(n->op, '.');
    if (n->count_in && n->in[0] != G_NONE && !(row->types >> m->value.at[n->in[0]].dtype & 1)) return false;
    for (uint32_t i = 0; i < n->count_attr; i++) {
        char name[40];
        (void)snprintf(name, sizeof name, "%s ", n->attr[i].name);
        if (strstr(row->lacks, name)) return false;
    }
    uint32_t kept = n->count_in;
    for (uint32_t i = 0; i < COUNT_OF(row->moved) && row->moved[i].input; i++) {
        if (!move_input(m, n, &row->moved[i])) return false;
        if (row->moved[i].input < kept) kept = row->moved[i].input;
    }
    /* Steps had no attribute. */
    if (!strcmp(n->op, "Slice") && kept == 1 && n->count_in > 4 && !is_all_1(m, n->in[4])) return false;
    if (!strcmp(n->op, "Pad") && n->count_in > 3) return false; /* nor had pads axes */
    if (!strcmp(n->op, "Gemm") && m->opset < 11 && n->count_in < 3) return false;
    /* Their axis was 1 where none was said. */
    if (strstr(n->op, "max") && !strstr(n->op, "Pool") && !gnode_find(n, "axis") && m->value.at[n->in[0]].rank < 2)
        return false;
    n->count_in = kept;
    return true;
}

/* ---- operators that are no more ---- */

static bool scatter(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, OLD_FLOATS, 1, 4);
    if (x == G_NONE || g->m->opset > 10) return false;
    gsize d[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < grow_rank(g, x); i++) d[i] = gsize_of(1);
    const uint32_t axis = grow_below(g, grow_rank(g, x));
    const int64_t least = gsize_min(g, grow_dim(g, x, axis));
    for (uint32_t i = 0; i < grow_rank(g, x); i++)
        if (gsize_min(g, grow_dim(g, x, i)) < 1) return false;
    const uint32_t at = grow_leaf(g, SINTER_DTYPE_I64, d, grow_rank(g, x), grow_one_in(g, 2),
                                  (gfill){ 0, (double)least - 1, 1, grow_below(g, 999) }),
                   updates = grow_shaped(g, grow_type(g, x), d, grow_rank(g, x)), n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, at);
    grow_in(g, n, updates);
    grow_int(g, n, "axis", axis);
    return grow_end(g, n, 1) != G_NONE;
}

static bool upsample(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, T_F32, 4, 4);
    if (x == G_NONE || g->m->opset != 9) return false;
    const gsize four = gsize_of(4);
    const uint32_t scales = grow_leaf(g, SINTER_DTYPE_F32, &four, 1, true, (gfill){ 1, 1, 1, 1 }),
                   n = grow_begin(g, op->name);
    gvalue *v = &g->m->value.at[scales];
    for (uint32_t i = 2; i < 4; i++)
        dtype_store_f64(SINTER_DTYPE_F32, v->at[0][0]->data, i, (double)grow_between(g, 1, 3));
    v->is_explicit = true;
    v->data[0] = v->at[0][0];
    judge_leaf(g->m, scales);
    grow_in(g, n, x);
    grow_in(g, n, scales);
    if (grow_one_in(g, 2)) grow_text(g, n, "mode", "linear");
    return grow_end(g, n, 1) != G_NONE;
}

const gop gops_old[] = {
    { "Scatter", 9, 0, 1, scatter, 0, 0, 0 },
    { "Upsample", 9, 2, 1, upsample, 0, 0, 0 },
    { 0 },
};
