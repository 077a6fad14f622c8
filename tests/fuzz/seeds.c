/* SPDX-License-Identifier: Apache-2.0 */
/* seeds.c - see seeds.h. */
#include "seeds.h"

#include "cuda_fake.h"
#include "samples.h"
#include "test.h"

enum { F32 = 1, I64 = 7, BOOL = 9, FREE = -1 };
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define DIMS(...) (const int64_t[]){ __VA_ARGS__ }, (uint32_t)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))

/* ---- words of a model: FREE is a size without a name ---- */

static bytes value_of(const char *name, int64_t type, const int64_t *dim_at, uint32_t rank, const char *symbol)
{
    int64_t size_at[8];
    for (uint32_t i = 0; i < rank; i++) size_at[i] = dim_at[i] == FREE ? INT64_MIN : dim_at[i];
    return onnx_value(name, type, size_at, rank, symbol);
}

static void in(bytes *g, const char *name, int64_t type, const int64_t *dim_at, uint32_t rank)
{
    bytes_put(g, 11, value_of(name, type, dim_at, rank, "n"));
}

static void scalar_in(bytes *g, const char *name, int64_t type)
{
    in(g, name, type, NULL, 0);
}

static void out(bytes *g, const char *name, int64_t type, uint32_t rank)
{
    static const int64_t any[8] = { FREE, FREE, FREE, FREE, FREE, FREE, FREE, FREE };
    bytes_put(g, 12, value_of(name, type, any, rank, ""));
}

static bytes node_of(const char *op, const char *inputs, const char *outputs)
{
    return onnx_node_bytes(op, outputs, inputs, outputs);
}

static void node(bytes *g, const char *op, const char *inputs, const char *outputs)
{
    bytes_put(g, 1, node_of(op, inputs, outputs));
}

static void node_int(bytes *g, const char *op, const char *inputs, const char *outputs, const char *name, int64_t value)
{
    bytes n = node_of(op, inputs, outputs);
    bytes_put(&n, 5, onnx_attr_int(name, value));
    bytes_put(g, 1, n);
}

static bytes attr_ints(const char *name, const int64_t *at, uint32_t count)
{
    bytes a = { 0 };
    bytes_text(&a, 1, name);
    for (uint32_t i = 0; i < count; i++) bytes_int(&a, 8, at[i]);
    bytes_int(&a, 20, 7);
    return a;
}

static void ints(bytes *g, const char *name, const int64_t *at, uint32_t count)
{
    const int64_t size = count;
    bytes_put(g, 5, onnx_tensor_bytes(name, I64, &size, 1, at, count * sizeof *at));
}

static void number(bytes *g, const char *name, int64_t value)
{
    bytes_put(g, 5, onnx_tensor_bytes(name, I64, NULL, 0, &value, sizeof value));
}

static void weight(bytes *g, const char *name, int64_t rows, int64_t columns)
{
    float w[256];
    uint64_t seed = (uint64_t)rows;
    for (size_t i = 0; i < COUNT(w); i++) w[i] = (float)(test_random(&seed) % 64) / 64.0f;
    const int64_t dim_at[] = { rows, columns };
    bytes_put(g, 5, onnx_tensor_bytes(name, F32, dim_at, 2, w, (size_t)(rows * columns) * sizeof *w));
}

static void if_node(bytes *g, const char *condition, const char *outputs, bytes yes, bytes no)
{
    bytes n = node_of("If", condition, outputs);
    bytes_put(&n, 5, onnx_attr_graph("then_branch", yes));
    bytes_put(&n, 5, onnx_attr_graph("else_branch", no));
    bytes_put(g, 1, n);
}

static void body_node(bytes *g, const char *op, const char *inputs, const char *outputs, bytes body)
{
    bytes n = node_of(op, inputs, outputs);
    bytes_put(&n, 5, onnx_attr_graph("body", body));
    bytes_put(g, 1, n);
}

/* A Loop's body so far: its own two parameters. */
static bytes loop_body(const char *iteration, const char *condition)
{
    bytes b = { 0 };
    scalar_in(&b, iteration, I64);
    scalar_in(&b, condition, BOOL);
    return b;
}

static bytes inputs(void)
{
    bytes g = { 0 };
    in(&g, "x", F32, DIMS(FREE, 4));
    scalar_in(&g, "c", BOOL);
    scalar_in(&g, "t", I64);
    return g;
}

static bytes unary(const char *op, const char *from, const char *result)
{
    bytes g = { 0 };
    node(&g, op, from, result);
    out(&g, result, F32, 2);
    return g;
}

/* ---- models ---- */

/* A Loop in a branch in a Loop; what is outside is read in all of them. */
static bytes nested(void)
{
    bytes g = inputs(), outer = loop_body("i", "go"), inner = loop_body("k", "on"), yes = { 0 };
    number(&g, "three", 3);
    in(&outer, "s", F32, DIMS(FREE, 4));
    in(&inner, "u", F32, DIMS(FREE, 4));
    node(&inner, "Identity", "on", "on1");
    node(&inner, "Add", "u,x", "u1");
    node(&inner, "Mul", "s,u1", "u2");
    out(&inner, "on1", BOOL, 0);
    out(&inner, "u2", F32, 2);
    body_node(&yes, "Loop", "three,,s", "p", inner);
    out(&yes, "p", F32, 2);
    if_node(&outer, "c", "s1", yes, unary("Neg", "s", "q"));
    node(&outer, "Identity", "go", "go1");
    node(&outer, "Tanh", "s1", "w");
    out(&outer, "go1", BOOL, 0);
    out(&outer, "s1", F32, 2);
    out(&outer, "w", F32, 2);
    body_node(&g, "Loop", "t,,x", "last,y", outer);
    out(&g, "y", F32, 3);
    out(&g, "last", F32, 2);
    return g;
}

/* Branches whose results have sizes that data decides. */
static bytes late_branch(void)
{
    bytes g = inputs(), yes = { 0 }, no = { 0 };
    node(&yes, "NonZero", "x", "p");
    out(&yes, "p", I64, 2);
    node(&no, "NonZero", "r", "q0");
    bytes n = node_of("Concat", "q0,q0", "q");
    bytes_put(&n, 5, onnx_attr_int("axis", 1));
    bytes_put(&no, 1, n);
    out(&no, "q", I64, 2);
    node(&g, "Relu", "x", "r");
    if_node(&g, "c", "z", yes, no);
    node_int(&g, "Cast", "z", "f", "to", F32);
    node(&g, "Mul", "f,f", "y");
    out(&g, "y", F32, 2);
    return g;
}

/* What is carried grows in each iteration. */
static bytes growing(void)
{
    bytes g = inputs(), body = loop_body("i", "go");
    in(&body, "s", F32, DIMS(FREE, 4));
    node(&body, "Identity", "go", "go1");
    bytes n = node_of("Concat", "s,x", "s1");
    bytes_put(&n, 5, onnx_attr_int("axis", 0));
    bytes_put(&body, 1, n);
    node(&body, "ReduceSum", "s1", "w");
    out(&body, "go1", BOOL, 0);
    bytes_put(&body, 12, value_of("s1", F32, DIMS(FREE, 4), "grown"));
    out(&body, "w", F32, 2);
    body_node(&g, "Loop", "t,,x", "y,sums", body);
    out(&g, "y", F32, 2);
    out(&g, "sums", F32, 3);
    return g;
}

/* Slices of inner axes, backwards. */
static bytes scanned(void)
{
    bytes g = inputs(), body = { 0 };
    in(&g, "s0", F32, DIMS(FREE));
    in(&body, "s", F32, DIMS(FREE));
    in(&body, "e", F32, DIMS(FREE));
    in(&body, "f", F32, DIMS(FREE));
    node(&body, "Add", "s,e", "s1");
    node(&body, "Mul", "s1,f", "o");
    node(&body, "Sub", "s1,f", "p");
    out(&body, "s1", F32, 1);
    out(&body, "o", F32, 1);
    out(&body, "p", F32, 1);
    bytes n = node_of("Scan", "s0,x,x", "last,y,back");
    bytes_put(&n, 5, onnx_attr_graph("body", body));
    bytes_put(&n, 5, onnx_attr_int("num_scan_inputs", 2));
    bytes_put(&n, 5, attr_ints("scan_input_axes", DIMS(1, 1)));
    bytes_put(&n, 5, attr_ints("scan_input_directions", DIMS(0, 1)));
    bytes_put(&n, 5, attr_ints("scan_output_axes", DIMS(1, 0)));
    bytes_put(&n, 5, attr_ints("scan_output_directions", DIMS(1, 0)));
    bytes_put(&g, 1, n);
    out(&g, "last", F32, 1);
    out(&g, "y", F32, 2);
    out(&g, "back", F32, 2);
    return g;
}

/* Parts that are written where the whole lies, one inside another; products with packed weights; chains in place. */
static bytes joined(void)
{
    bytes g = inputs();
    weight(&g, "w", 4, 8);
    weight(&g, "v", 16, 4);
    node(&g, "MatMul", "x,w", "a");
    node(&g, "Relu", "a", "b");
    node_int(&g, "Softmax", "b", "d", "axis", 1);
    node_int(&g, "Concat", "b,d", "e", "axis", 1);
    node(&g, "MatMul", "e,v", "f");
    node_int(&g, "Concat", "f,x,f", "h", "axis", 0);
    node_int(&g, "Concat", "h,h", "k", "axis", 1);
    node(&g, "Sigmoid", "k", "l");
    node(&g, "ReduceMean", "l", "m");
    node(&g, "Sub", "l,m", "y");
    bytes n = node_of("Transpose", "y", "z");
    bytes_put(&n, 5, attr_ints("perm", DIMS(1, 0)));
    bytes_put(&g, 1, n);
    out(&g, "y", F32, 2);
    out(&g, "z", F32, 2);
    return g;
}

/* Sizes without a bound. */
static bytes unbounded(void)
{
    bytes g = inputs();
    number(&g, "zero", 0);
    number(&g, "one", 1);
    ints(&g, "first", DIMS(0));
    node(&g, "Range", "zero,t,one", "r");
    node_int(&g, "Cast", "r", "f", "to", F32);
    node(&g, "Mul", "f,f", "q");
    node(&g, "Unsqueeze", "q,first", "u");
    node(&g, "Shape", "u", "shape");
    node(&g, "Expand", "one,shape", "ones");
    node_int(&g, "Cast", "ones", "o", "to", F32);
    node(&g, "Add", "u,o", "v");
    node(&g, "ReduceSum", "x", "total");
    node(&g, "Mul", "v,total", "y");
    out(&g, "y", F32, 2);
    return g;
}

/* No trip count: the body says when it ends. */
static bytes conditional(void)
{
    bytes g = inputs(), body = loop_body("i", "go");
    in(&body, "s", F32, DIMS(FREE, 4));
    node(&body, "Less", "i,t", "go1");
    node(&body, "NonZero", "s", "nz");
    node(&body, "Add", "s,x", "s1");
    node(&body, "Transpose", "nz", "at");
    node(&body, "GatherND", "s1,at", "picked");
    node(&body, "ReduceSum", "picked", "sum");
    out(&body, "go1", BOOL, 0);
    out(&body, "s1", F32, 2);
    out(&body, "sum", F32, 1);
    body_node(&g, "Loop", ",c,x", "y,sums", body);
    out(&g, "y", F32, 2);
    out(&g, "sums", F32, 2);
    return g;
}

/* A size found outside is used inside. */
static bytes captured(void)
{
    bytes g = inputs(), body = loop_body("i", "go"), yes = { 0 };
    node(&g, "NonZero", "x", "nz");
    node_int(&g, "Cast", "nz", "f", "to", F32);
    in(&body, "s", F32, DIMS(FREE, 4));
    node(&body, "Identity", "go", "go1");
    node(&body, "ReduceSum", "f", "total");
    node(&body, "Add", "s,total", "s1");
    node(&yes, "Exp", "f", "p0");
    node(&yes, "ReduceMax", "p0", "p1");
    node(&yes, "Mul", "s1,p1", "p");
    out(&yes, "p", F32, 2);
    if_node(&body, "c", "w", yes, unary("Neg", "s", "q"));
    out(&body, "go1", BOOL, 0);
    out(&body, "s1", F32, 2);
    out(&body, "w", F32, 2);
    body_node(&g, "Loop", "t,,x", "y,all", body);
    out(&g, "y", F32, 2);
    out(&g, "all", F32, 3);
    return g;
}

/* Outputs that are an input, a constant, one value twice, or read again inside, of sizes that a run decides. */
static bytes handed(void)
{
    bytes g = inputs(), body = loop_body("i", "go"), yes = { 0 };
    ints(&g, "k", DIMS(3, 1, 4));
    node(&g, "Relu", "x", "y");
    node(&g, "Identity", "y", "y1");
    node(&g, "NonZero", "y", "nz");
    node(&g, "Identity", "nz", "nz1");
    node(&g, "Transpose", "nz", "turned");
    in(&body, "s", F32, DIMS(FREE, 4));
    node(&body, "Identity", "go", "go1");
    node(&body, "Add", "s,y", "s1");
    out(&body, "go1", BOOL, 0);
    out(&body, "s1", F32, 2);
    out(&body, "s1", F32, 2);
    body_node(&g, "Loop", "t,,x", "last,sums", body);
    node(&g, "Identity", "sums", "sums1");
    node(&g, "Neg", "sums", "less");
    out(&yes, "x", F32, 2);
    if_node(&g, "c", "z", yes, unary("Identity", "last", "q"));
    out(&g, "x", F32, 2);
    out(&g, "y", F32, 2);
    out(&g, "k", I64, 1);
    out(&g, "y1", F32, 2);
    out(&g, "nz", I64, 2);
    out(&g, "nz1", I64, 2);
    out(&g, "turned", I64, 2);
    out(&g, "sums", F32, 3);
    out(&g, "sums1", F32, 3);
    out(&g, "less", F32, 3);
    out(&g, "z", F32, 2);
    return g;
}

/* Two products with weights of 4 bits: in blocks with zero points, and one scale a column. */
static bytes packed(void)
{
    enum { DEEP = 32, U4 = 21, I4 = 22 };
    static const uint8_t code[DEEP * 4] = { 0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE }, zero[8] = { 0x78, 0x87 };
    const int64_t size[2] = { DEEP, 4 }, blocks[2] = { 2, 4 }, turned[2] = { 4, DEEP };
    bytes g = inputs(), n = node_of("DequantizeLinear", "q,s,z", "w");
    weight(&g, "s", 2, 4);
    weight(&g, "s1", 1, DEEP);
    bytes_put(&g, 5, onnx_tensor_bytes("q", U4, size, 2, code, DEEP * 4 / 2));
    bytes_put(&g, 5, onnx_tensor_bytes("z", U4, blocks, 2, zero, 4));
    bytes_put(&g, 5, onnx_tensor_bytes("q1", I4, turned, 2, code, DEEP * 4 / 2));
    bytes_put(&n, 5, onnx_attr_int("axis", 0));
    bytes_put(&n, 5, onnx_attr_int("block_size", 16));
    bytes_put(&g, 1, n);
    ints(&g, "shape", (const int64_t[]){ DEEP }, 1);
    node(&g, "Reshape", "s1,shape", "s2");
    node(&g, "DequantizeLinear", "q1,s2", "w1");
    node(&g, "MatMul", "x,w1", "a");
    node(&g, "Relu", "a", "b");
    node(&g, "MatMul", "b,w", "y");
    out(&g, "y", F32, 2);
    return g;
}

/* Text that comes of numbers, is joined, compared and split; the pieces are counted. A sequence on the way. */
static bytes worded(void)
{
    static const char *const words[] = { "a", "b,c", "", "d,,e" };
    bytes g = inputs(), label = node_of("LabelEncoder", "i", "s"), split = node_of("StringSplit", "j", "p,k"),
          list = { 0 };
    node_int(&g, "Cast", "x", "i", "to", I64);
    bytes_text(&list, 1, "classes_strings");
    for (uint32_t i = 0; i < 4; i++) bytes_text(&list, 9, words[i]);
    bytes_int(&list, 20, 8);
    bytes_put(&label, 5, list);
    bytes_text(&label, 7, "ai.onnx.ml");
    bytes_put(&g, 1, label);
    node(&g, "StringConcat", "s,s", "j");
    bytes by = { 0 };
    bytes_text(&by, 1, "delimiter");
    bytes_text(&by, 4, ",");
    bytes_int(&by, 20, 3);
    bytes_put(&split, 5, by);
    bytes_put(&g, 1, split);
    node(&g, "Equal", "s,j", "e");
    node_int(&g, "Cast", "e", "f", "to", F32);
    node_int(&g, "Cast", "k", "h", "to", F32);
    node(&g, "SequenceConstruct", "f,h", "q");
    number(&g, "zero", 0);
    node(&g, "SequenceAt", "q,zero", "u");
    node(&g, "Add", "u,h", "y");
    out(&g, "y", F32, 2);
    return g;
}

/* Two trees of two targets: comparisons of both kinds, leaves with one weight and with more. */
static bytes trees(void)
{
    static const char *const modes[] = {
        "BRANCH_LEQ", "BRANCH_EQ", "LEAF", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"
    };
    static const float split[] = { 0.25f, 0, 0, 0, 0, -0.5f, 0, 0 }, weight[] = { 1, 2, 3, -4, -5, 6, 7 };
    bytes g = inputs(), n = node_of("TreeEnsembleRegressor", "x", "y"), mode = { 0 }, number[2] = { { 0 }, { 0 } };
    bytes_text(&n, 7, "ai.onnx.ml");
    bytes_put(&n, 5, attr_ints("nodes_treeids", DIMS(0, 0, 0, 0, 0, 1, 1, 1)));
    bytes_put(&n, 5, attr_ints("nodes_nodeids", DIMS(0, 1, 2, 3, 4, 0, 1, 2)));
    bytes_put(&n, 5, attr_ints("nodes_featureids", DIMS(3, 0, 0, 0, 0, 1, 0, 0)));
    bytes_put(&n, 5, attr_ints("nodes_truenodeids", DIMS(1, 3, 0, 0, 0, 1, 0, 0)));
    bytes_put(&n, 5, attr_ints("nodes_falsenodeids", DIMS(2, 4, 0, 0, 0, 2, 0, 0)));
    bytes_put(&n, 5, attr_ints("target_treeids", DIMS(0, 0, 0, 0, 1, 1, 1)));
    bytes_put(&n, 5, attr_ints("target_nodeids", DIMS(2, 3, 3, 4, 1, 1, 2)));
    bytes_put(&n, 5, attr_ints("target_ids", DIMS(0, 0, 1, 1, 0, 1, 0)));
    bytes_put(&n, 5, onnx_attr_int("n_targets", 2));
    bytes_text(&mode, 1, "nodes_modes");
    for (uint32_t i = 0; i < COUNT(modes); i++) bytes_text(&mode, 9, modes[i]);
    bytes_int(&mode, 20, 8);
    bytes_put(&n, 5, mode);
    for (uint32_t k = 0; k < 2; k++) {
        bytes_text(&number[k], 1, k ? "target_weights" : "nodes_values");
        bytes_data(&number[k], 7, k ? weight : split, k ? sizeof weight : sizeof split); /* packed */
        bytes_int(&number[k], 20, 6);
        bytes_put(&n, 5, number[k]);
    }
    bytes_put(&g, 1, n);
    out(&g, "y", F32, 2);
    return g;
}

/* A function with two nodes, of which each may be the function before it. */
static bytes function(const char *name, const char *inner)
{
    bytes f = { 0 }, o = { 0 }, n;
    bytes_text(&f, 1, name);
    bytes_text(&f, 4, "a");
    bytes_text(&f, 5, "b");
    for (int i = 0; i < 2; i++) {
        n = node_of(inner ? inner : i ? "Neg" : "Exp", i ? "h" : "a", i ? "b" : "h");
        if (inner) bytes_text(&n, 7, "own");
        bytes_put(&f, 7, n);
    }
    bytes_int(&o, 2, 18);
    bytes_put(&f, 9, o);
    o = (bytes){ 0 };
    bytes_text(&o, 1, "own");
    bytes_int(&o, 2, 1);
    bytes_put(&f, 9, o);
    bytes_text(&f, 10, "own");
    return f;
}

static bytes with_functions(void)
{
    static const char *const name[] = { "f", "g", "h" };
    bytes g = inputs(), o = { 0 };
    bytes n = node_of("h", "x", "y");
    bytes_text(&n, 7, "own");
    bytes_put(&g, 1, n);
    out(&g, "y", F32, 2);
    bytes m = onnx_model_bytes(g, 18);
    for (uint32_t i = 0; i < COUNT(name); i++) bytes_put(&m, 25, function(name[i], i ? name[i - 1] : NULL));
    bytes_text(&o, 1, "own");
    bytes_int(&o, 2, 1);
    bytes_put(&m, 8, o);
    return m;
}

/* Rows that are kept from run to run, attention over them, and a tensor that takes the place of its last form. */
static bytes decoding(void)
{
    bytes g = { 0 };
    bytes_text(&g, 2, "decoding");
    bytes_put(&g, 11, onnx_value("x", F32, DIMS(1, 2, INT64_MIN, 4), "n"));
    bytes_put(&g, 11, onnx_value("past.rows", F32, DIMS(1, 2, INT64_MIN, 4), "p"));
    bytes_put(&g, 11, onnx_value("past.sum", F32, DIMS(1, 2, 1, 4), "n"));
    node_int(&g, "Concat", "past.rows,x", "present.rows", "axis", 2);
    bytes turn = node_of("Transpose", "present.rows", "turned");
    bytes_put(&turn, 5, attr_ints("perm", DIMS(0, 1, 3, 2)));
    bytes_put(&g, 1, turn);
    node(&g, "MatMul", "x,turned", "scores");
    node_int(&g, "Softmax", "scores", "p", "axis", -1);
    node(&g, "MatMul", "p,present.rows", "mean");
    ints(&g, "axes", DIMS(2));
    node(&g, "ReduceSum", "mean,axes", "now");
    node(&g, "Add", "now,past.sum", "present.sum");
    node(&g, "Mul", "mean,present.sum", "y");
    out(&g, "y", F32, 4);
    out(&g, "present.rows", F32, 4);
    out(&g, "present.sum", F32, 4);
    return onnx_model_bytes(g, 18);
}

bytes seed_model(uint32_t which)
{
    static bytes (*const make[SEED_MODELS - 1])(void) = { nested,      late_branch, growing, scanned, joined, unbounded,
                                                          conditional, captured,    handed,  packed,  worded, trees };
    if (which == SEED_MODELS - 1) return with_functions();
    bytes m = onnx_model_bytes(make[which](), make[which] == packed || make[which] == worded ? 21 : 18);
    if (make[which] == worded || make[which] == trees) {
        bytes o = { 0 };
        bytes_text(&o, 1, "ai.onnx.ml");
        bytes_int(&o, 2, 1);
        bytes_put(&m, 8, o);
    }
    return m;
}

/* ---- engines ---- */

static bool build(bytes model, const sinter_build_options *o, const char *what, image *to)
{
    sinter_error error = { 0 };
    sinter_buffer b = { 0 };
    const bool ok = CHECK_EQ(sinter_build_memory(model.at, model.size, o, &b, &error), SINTER_OK);
    if (ok) *to = image_copy(b.data, b.size);
    else printf("%s: %s\n", what, error.text);
    sinter_buffer_free(&b);
    free(model.at);
    return ok;
}

static const sinter_shape_range
    seed_range = { .input = "x", .rank = 2, .min = { 1, 4 }, .opt = { 3, 4 }, .max = { 5, 4 } },
    seed_small = { .input = "x", .rank = 2, .min = { 0, 4 }, .opt = { 1, 4 }, .max = { 2, 4 } };
static const sinter_profile seed_profiles[] = { { &seed_range, 1 }, { &seed_small, 1 } };

static bool build_state(const char *device, image *to)
{
    static const sinter_shape_range range = {
        .input = "x", .rank = 4, .min = { 1, 2, 1, 4 }, .opt = { 1, 2, 1, 4 }, .max = { 1, 2, 3, 4 }
    };
    static const sinter_profile profile = { &range, 1 };
    static const sinter_state state = { "past.*", "present.*" };
    const sinter_build_options o = { .struct_size = sizeof o,
                                     .threads = 1,
                                     .tune = SINTER_TUNE_OFF,
                                     .device = device,
                                     .kernel_cache = "",
                                     .profile = &profile,
                                     .profile_count = 1,
                                     .state = &state,
                                     .state_count = 1,
                                     .capacity = 9 };
    return build(decoding(), &o, "a model with state", to);
}

uint32_t seed_engines(image to[SEED_MAX])
{
    static const char *const isa[] = { "plain", "avx2", NULL };
    uint32_t count = 0;
    for (uint32_t i = 0; i < SAMPLE_COUNT * COUNT(isa); i++) {
        const sample s = (sample)(i % SAMPLE_COUNT);
        sinter_build_options o = {
            .struct_size = sizeof o, .threads = 1, .tune = SINTER_TUNE_OFF, .isa = isa[i / SAMPLE_COUNT]
        };
        o.profile = sample_profiles(s, &o.profile_count);
        count += build(sample_model(s), &o, sample_name(s), &to[count]);
    }
    for (uint32_t i = 0; i < SEED_MODELS * 2; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "model %u", i % SEED_MODELS);
        const sinter_build_options o = { .struct_size = sizeof o,
                                         .threads = 1,
                                         .tune = SINTER_TUNE_OFF,
                                         .device = i % 3 == 2 ? "reference" : "cpu",
                                         .profile = seed_profiles,
                                         .profile_count = 1 + i / SEED_MODELS };
        count += build(seed_model(i % SEED_MODELS), &o, name, &to[count]);
    }
    count += build_state("cpu", &to[count]);
    count += build_state("reference", &to[count]);
    return count;
}

uint32_t seed_engines_cuda(image to[SEED_MAX])
{
    uint32_t count = 0;
    (void)cuda_fake();
    for (uint32_t i = 0; i < SAMPLE_COUNT + SEED_MODELS; i++) {
        const bool is_sample = i < SAMPLE_COUNT;
        sinter_build_options o = { .struct_size = sizeof o,
                                   .tune = SINTER_TUNE_OFF,
                                   .device = "cuda",
                                   .kernel_cache = "",
                                   .profile = seed_profiles,
                                   .profile_count = COUNT(seed_profiles) };
        if (is_sample) o.profile = sample_profiles((sample)i, &o.profile_count);
        const bytes model = is_sample ? sample_model((sample)i) : seed_model(i - SAMPLE_COUNT);
        count += build(model, &o, is_sample ? sample_name((sample)i) : "a model for CUDA", &to[count]);
    }
    return count;
}
