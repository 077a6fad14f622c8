/* SPDX-License-Identifier: Apache-2.0 */
/* samples.c - the models, written byte by byte, and inputs for any engine. */
#include "samples.h"

#include "base/hash.h"
#include "test.h"

enum { F32 = 1, I32 = 6, I64 = 7, BOOL = 9, F16 = 10, FREE = 0 };
#define DIMS(...) (const int64_t[]){ __VA_ARGS__ }, (uint32_t)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))

/* A dimension of 0 is the free one, called "n". */
static bytes value_of(const char *name, int64_t type, const int64_t *dim_at, uint32_t rank)
{
    int64_t size_at[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) size_at[i] = dim_at[i] == FREE ? INT64_MIN : dim_at[i];
    return onnx_value(name, type, size_at, rank, "n");
}

static void in(bytes *g, const char *name, int64_t type, const int64_t *dim_at, uint32_t rank)
{
    bytes_put(g, 11, value_of(name, type, dim_at, rank));
}

static void out(bytes *g, const char *name, int64_t type, uint32_t rank)
{
    int64_t size_at[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) size_at[i] = INT64_MIN;
    static const char *const any = "";
    bytes_put(g, 12, onnx_value(name, type, size_at, rank, any));
}

static void node(bytes *g, const char *op, const char *inputs, const char *outputs)
{
    bytes_put(g, 1, onnx_node_bytes(op, outputs, inputs, outputs));
}

/* A weight of fixed values between -0.5 and 0.5. */
static void weight(bytes *g, const char *name, const int64_t *dim_at, uint32_t rank)
{
    size_t count = 1;
    uint64_t seed = strlen(name);
    for (uint32_t i = 0; i < rank; i++) count *= (size_t)dim_at[i];
    float *w = malloc(count * sizeof *w);
    if (!w) abort();
    for (size_t i = 0; i < count; i++) w[i] = (float)(test_random(&seed) % 1024) / 1024.0f - 0.5f;
    bytes_put(g, 5, onnx_tensor_bytes(name, F32, dim_at, rank, w, count * sizeof *w));
    free(w);
}

static void ints(bytes *g, const char *name, const int64_t *at, uint32_t count)
{
    const int64_t size = count;
    bytes_put(g, 5, onnx_tensor_bytes(name, I64, &size, 1, at, count * sizeof *at));
}

static bytes attr_ints(const char *name, const int64_t *at, uint32_t count)
{
    bytes a = { 0 };
    bytes_text(&a, 1, name);
    for (uint32_t i = 0; i < count; i++) bytes_int(&a, 8, at[i]);
    bytes_int(&a, 20, 7);
    return a;
}

static bytes conv(void)
{
    bytes g = { 0 };
    in(&g, "x", F32, DIMS(FREE, 3, 8, 8));
    weight(&g, "cw", DIMS(4, 3, 3, 3));
    weight(&g, "cb", DIMS(4));
    weight(&g, "gw", DIMS(64, 5));
    weight(&g, "gb", DIMS(5));
    bytes n = onnx_node_bytes("Conv", "conv", "x,cw,cb", "a");
    bytes_put(&n, 5, attr_ints("pads", DIMS(1, 1, 1, 1)));
    bytes_put(&g, 1, n);
    node(&g, "Relu", "a", "b");
    n = onnx_node_bytes("MaxPool", "pool", "b", "c");
    bytes_put(&n, 5, attr_ints("kernel_shape", DIMS(2, 2)));
    bytes_put(&n, 5, attr_ints("strides", DIMS(2, 2)));
    bytes_put(&g, 1, n);
    node(&g, "Flatten", "c", "d");
    node(&g, "Gemm", "d,gw,gb", "e");
    node(&g, "Softmax", "e", "y");
    out(&g, "y", F32, 2);
    return g;
}

static bytes branch(const char *op, const char *result)
{
    bytes g = { 0 };
    node(&g, op, "x", result);
    out(&g, result, F32, 2);
    return g;
}

static bytes regions(void)
{
    bytes g = { 0 }, body = { 0 };
    in(&g, "x", F32, DIMS(FREE, 4));
    bytes_put(&g, 11, onnx_value("c", BOOL, NULL, 0, ""));
    bytes_put(&g, 11, onnx_value("t", I64, NULL, 0, ""));
    bytes n = onnx_node_bytes("If", "choose", "c", "a");
    bytes_put(&n, 5, onnx_attr_graph("then_branch", branch("Relu", "p")));
    bytes_put(&n, 5, onnx_attr_graph("else_branch", branch("Neg", "q")));
    bytes_put(&g, 1, n);
    bytes_put(&body, 11, onnx_value("i", I64, NULL, 0, ""));
    bytes_put(&body, 11, onnx_value("go", BOOL, NULL, 0, ""));
    in(&body, "s", F32, DIMS(FREE, 4));
    node(&body, "Identity", "go", "again");
    bytes k = onnx_node_bytes("Cast", "cast", "i", "f");
    bytes_put(&k, 5, onnx_attr_int("to", F32));
    bytes_put(&body, 1, k);
    node(&body, "Add", "s,x", "u");
    node(&body, "Add", "u,f", "v");
    node(&body, "Sin", "v", "w");
    bytes_put(&body, 12, onnx_value("again", BOOL, NULL, 0, ""));
    out(&body, "v", F32, 2);
    out(&body, "w", F32, 2);
    n = onnx_node_bytes("Loop", "repeat", "t,,a", "y,z");
    bytes_put(&n, 5, onnx_attr_graph("body", body));
    bytes_put(&g, 1, n);
    out(&g, "y", F32, 2);
    out(&g, "z", F32, 3);
    return g;
}

static bytes late(void)
{
    bytes g = { 0 };
    in(&g, "x", F32, DIMS(FREE, 6));
    in(&g, "k", I64, DIMS(1));
    ints(&g, "zero", DIMS(0));
    node(&g, "Relu", "x", "r");
    node(&g, "NonZero", "r", "nz");
    node(&g, "Transpose", "nz", "at");
    node(&g, "GatherND", "r,at", "picked");
    node(&g, "Mul", "picked,picked", "y");
    node(&g, "TopK", "x,k", "top,which");
    node(&g, "Slice", "x,zero,k", "head");
    node(&g, "Exp", "head", "z");
    out(&g, "y", F32, 1);
    out(&g, "top", F32, 2);
    out(&g, "which", I64, 2);
    out(&g, "z", F32, 2);
    return g;
}

static bytes scan_model(void)
{
    bytes g = { 0 }, body = { 0 };
    in(&g, "x", F32, DIMS(FREE, 4));
    in(&g, "s0", F32, DIMS(4));
    in(&body, "s", F32, DIMS(4));
    in(&body, "e", F32, DIMS(4));
    node(&body, "Add", "s,e", "s1");
    node(&body, "Tanh", "s1", "o");
    out(&body, "s1", F32, 1);
    out(&body, "o", F32, 1);
    bytes n = onnx_node_bytes("Scan", "scan", "s0,x", "last,all");
    bytes_put(&n, 5, onnx_attr_graph("body", body));
    bytes_put(&n, 5, onnx_attr_int("num_scan_inputs", 1));
    bytes_put(&g, 1, n);
    out(&g, "last", F32, 1);
    out(&g, "all", F32, 2);
    return g;
}

static bytes lstm(void)
{
    bytes g = { 0 };
    in(&g, "x", F32, DIMS(FREE, 2, 3));
    weight(&g, "w", DIMS(1, 16, 3));
    weight(&g, "rr", DIMS(1, 16, 4));
    weight(&g, "bbb", DIMS(1, 32));
    bytes n = onnx_node_bytes("LSTM", "lstm", "x,w,rr,bbb", "all,h,c");
    bytes_put(&n, 5, onnx_attr_int("hidden_size", 4));
    bytes_put(&g, 1, n);
    out(&g, "all", F32, 4);
    out(&g, "h", F32, 3);
    out(&g, "c", F32, 3);
    return g;
}

static bytes gather(void)
{
    bytes g = { 0 };
    in(&g, "id", I64, DIMS(FREE));
    weight(&g, "table", DIMS(10, 8));
    weight(&g, "wq", DIMS(8, 8));
    weight(&g, "wk", DIMS(8, 8));
    weight(&g, "wv", DIMS(8, 8));
    weight(&g, "scale", DIMS(8));
    weight(&g, "bias", DIMS(8));
    node(&g, "Gather", "table,id", "x");
    node(&g, "LayerNormalization", "x,scale,bias", "n");
    node(&g, "MatMul", "n,wq", "q");
    node(&g, "MatMul", "n,wk", "kk");
    node(&g, "MatMul", "n,wv", "v");
    node(&g, "Transpose", "kk", "kt");
    node(&g, "MatMul", "q,kt", "s");
    node(&g, "Softmax", "s", "p");
    node(&g, "MatMul", "p,v", "o");
    node(&g, "Add", "o,x", "y");
    node(&g, "ArgMax", "y", "best");
    out(&g, "y", F32, 2);
    out(&g, "best", I64, 2);
    return g;
}

static bytes move(void)
{
    bytes g = { 0 };
    in(&g, "x", F32, DIMS(FREE, 4, 6));
    in(&g, "i", I64, DIMS(3));
    ints(&g, "pads", DIMS(0, 1, 1, 0, 0, 2));
    ints(&g, "start", DIMS(1));
    ints(&g, "end", DIMS(-1));
    ints(&g, "axis", DIMS(2));
    ints(&g, "flat", DIMS(0, -1));
    ints(&g, "reps", DIMS(1, 2));
    bytes n = onnx_node_bytes("Transpose", "turn", "x", "xt");
    bytes_put(&n, 5, attr_ints("perm", DIMS(0, 2, 1)));
    bytes_put(&g, 1, n);
    node(&g, "Pad", "x,pads", "padded");
    node(&g, "Slice", "padded,start,end,axis", "cut");
    node(&g, "Reshape", "cut,flat", "rows");
    node(&g, "Reshape", "xt,flat", "columns");
    n = onnx_node_bytes("Concat", "join", "rows,columns", "joined");
    bytes_put(&n, 5, onnx_attr_int("axis", 1));
    bytes_put(&g, 1, n);
    node(&g, "Tile", "joined,reps", "tiled");
    n = onnx_node_bytes("Gather", "pick", "tiled,i", "picked");
    bytes_put(&n, 5, onnx_attr_int("axis", 1));
    bytes_put(&g, 1, n);
    node(&g, "ReduceSum", "tiled", "total");
    node(&g, "Div", "picked,total", "y");
    n = onnx_node_bytes("Cast", "half", "picked", "h");
    bytes_put(&n, 5, onnx_attr_int("to", F16));
    bytes_put(&g, 1, n);
    node(&g, "Mul", "h,h", "hh");
    n = onnx_node_bytes("Cast", "integer", "hh", "z");
    bytes_put(&n, 5, onnx_attr_int("to", I32));
    bytes_put(&g, 1, n);
    n = onnx_node_bytes("Split", "part", "x", "left,right");
    bytes_put(&n, 5, onnx_attr_int("axis", 2));
    bytes_put(&n, 5, onnx_attr_int("num_outputs", 2));
    bytes_put(&g, 1, n);
    node(&g, "Sub", "left,right", "w");
    n = onnx_node_bytes("CumSum", "run", "w,start", "sum");
    bytes_put(&g, 1, n);
    out(&g, "y", F32, 2);
    out(&g, "z", I32, 2);
    out(&g, "sum", F32, 3);
    return g;
}

const char *sample_name(sample s)
{
    static const char *const name[SAMPLE_COUNT] = { "conv", "profiles", "regions", "late",
                                                    "scan", "lstm",     "gather",  "move" };
    return name[s];
}

bytes sample_model(sample s)
{
    static bytes (*const make[SAMPLE_COUNT])(void) = { conv, conv, regions, late, scan_model, lstm, gather, move };
    return onnx_model_bytes(make[s](), 18);
}

/* ---- shapes ---- */

#define RANGE(in, r, lo, mid, hi, ...)                                                                                 \
    {                                                                                                                  \
        .input = in, .rank = r, .min = { lo, __VA_ARGS__ }, .opt = { mid, __VA_ARGS__ }, .max = { hi, __VA_ARGS__ }    \
    }
static const sinter_shape_range conv_range[] = { RANGE("x", 4, 1, 2, 4, 3, 8, 8) };
static const sinter_shape_range one_range[] = { RANGE("x", 4, 1, 1, 1, 3, 8, 8) };
static const sinter_shape_range many_range[] = { RANGE("x", 4, 2, 4, 8, 3, 8, 8) };
static const sinter_shape_range regions_range[] = { RANGE("x", 2, 1, 2, 3, 4) };
static const sinter_shape_range late_range[] = { RANGE("x", 2, 2, 3, 5, 6) };
static const sinter_shape_range scan_range[] = { RANGE("x", 2, 1, 3, 5, 4) };
static const sinter_shape_range lstm_range[] = { RANGE("x", 3, 1, 3, 5, 2, 3) };
static const sinter_shape_range gather_range[] = {
    { .input = "id", .rank = 1, .min = { 1 }, .opt = { 4 }, .max = { 9 } }
};
static const sinter_shape_range move_range[] = { RANGE("x", 3, 1, 2, 3, 4, 6) };
static const sinter_profile two_profiles[] = { { one_range, 1 }, { many_range, 1 } };
static const sinter_profile one_profile[SAMPLE_COUNT] = {
    [SAMPLE_CONV] = { conv_range, 1 }, [SAMPLE_REGIONS] = { regions_range, 1 }, [SAMPLE_LATE] = { late_range, 1 },
    [SAMPLE_SCAN] = { scan_range, 1 }, [SAMPLE_LSTM] = { lstm_range, 1 },       [SAMPLE_GATHER] = { gather_range, 1 },
    [SAMPLE_MOVE] = { move_range, 1 },
};

const sinter_profile *sample_profiles(sample s, uint32_t *count)
{
    *count = s == SAMPLE_PROFILES ? 2 : 1;
    return s == SAMPLE_PROFILES ? two_profiles : &one_profile[s];
}

sinter_status sample_build(sample s, const sinter_env_options *env, sinter_buffer *buffer, sinter_error *error)
{
    sinter_build_options o = { .struct_size = sizeof o, .env = env, .threads = 1, .tune = SINTER_TUNE_OFF };
    o.profile = sample_profiles(s, &o.profile_count);
    const bytes model = sample_model(s);
    const sinter_status status = sinter_build_memory(model.at, model.size, &o, buffer, error);
    free(model.at);
    return status;
}

/* ---- data ---- */

void sample_fill(void *to, size_t size, sinter_dtype dtype, uint64_t *seed)
{
    uint8_t *at = to;
    const uint32_t width = sinter_dtype_bits(dtype) / 8;
    for (size_t i = 0; i < size; i++) at[i] = 0;
    for (size_t i = 0; width && i < size / width; i++) {
        const uint64_t r = test_random(seed);
        const float f = (float)(r % 4096) / 1024.0f - 2.0f;
        const double d = f;
        if (dtype == SINTER_DTYPE_F32) memcpy(at + i * 4, &f, 4);
        else if (dtype == SINTER_DTYPE_F64) memcpy(at + i * 8, &d, 8);
        else if (dtype == SINTER_DTYPE_BOOL) at[i] = r & 1;
        else at[i * width] = (uint8_t)(1 + r % 3); /* least significant byte first */
    }
}

bool sample_data_make(const sinter_engine *g, uint32_t profile, sample_size size, uint64_t seed, size_t bytes_max,
                      sample_data *d)
{
    *d = (sample_data){ 0 };
    for (uint32_t i = 0; i < sinter_engine_io_count(g); i++) {
        sinter_io io;
        if (sinter_engine_io(g, i, profile, &io) != SINTER_OK) break;
        if (!io.is_input) continue;
        if (d->count == SAMPLE_IO_MAX) break;
        sinter_tensor *t = &d->at[d->count];
        const int64_t *const from = size == SAMPLE_MIN ? io.min : size == SAMPLE_OPT ? io.opt : io.max;
        *t = (sinter_tensor){ .dtype = io.dtype, .rank = io.rank };
        for (uint32_t k = 0; k < io.rank; k++) t->dim[k] = io.dim[k] >= 0 ? io.dim[k] : from[k];
        const size_t want = sinter_tensor_size(t);
        if (want > bytes_max) {
            sample_data_free(d);
            return false;
        }
        t->data = malloc(want ? want : 1);
        if (!t->data) abort();
        sample_fill(t->data, want, t->dtype, &seed);
        d->name[d->count++] = io.name;
    }
    return true;
}

void sample_data_free(sample_data *d)
{
    for (uint32_t i = 0; i < d->count; i++) free(d->at[i].data);
    *d = (sample_data){ 0 };
}

sinter_status sample_data_set(const sample_data *d, sinter_context *c, sinter_error *error)
{
    for (uint32_t i = 0; i < d->count; i++) {
        const sinter_status s = sinter_context_set_input(c, d->name[i], &d->at[i], error);
        if (s != SINTER_OK) return s;
    }
    return SINTER_OK;
}

uint64_t sample_results(const sinter_engine *g, sinter_context *c)
{
    uint64_t sum = 1;
    for (uint32_t i = 0; i < sinter_engine_io_count(g); i++) {
        sinter_io io;
        sinter_tensor t;
        if (sinter_engine_io(g, i, 0, &io) != SINTER_OK) return 0;
        if (io.is_input) continue;
        if (sinter_context_output(c, io.name, &t, NULL) != SINTER_OK) return 0;
        sum = hash64(&t.dtype, sizeof t.dtype, sum);
        sum = hash64(t.dim, t.rank * sizeof *t.dim, sum);
        sum = hash64(t.data, sinter_tensor_size(&t), sum);
    }
    return sum;
}
