/* SPDX-License-Identifier: Apache-2.0 */
/* test_plugins_cuda.c - plugins on the emulated GPU: those that run on the host between copies, those with a kernel of
 * their own, compiled from its text, and those that put work on the stream themselves. */
#include "model_text.h"
#include "plugin_set.h"
#include "test.h"

#include "cuda/driver_types.h"

#include <dlfcn.h>
#include <unistd.h>

/* y = x * scale, by a kernel that knows nothing of sinter. */
static const char source[] = "extern \"C\" __global__ void __launch_bounds__(128) scale_kernel(const float *x, float "
                             "*y, int count, float scale)\n"
                             "{\n"
                             "    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);\n"
                             "    if (i < count) y[i] = x[i] * scale;\n"
                             "}\n";

static int64_t count_of(const sinter_plugin_operand *o)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < o->rank; i++) n *= o->opt[i];
    return n;
}

static sinter_status shapes(sinter_plugin_shapes *s)
{
    s->out[0] = s->in[0];
    return s->in[0].dtype == SINTER_DTYPE_F32 ? SINTER_OK : SINTER_UNSUPPORTED;
}

static uint32_t tactics(const sinter_plugin_problem *p, uint32_t *list, uint32_t room)
{
    (void)p;
    for (uint32_t i = 0; i < 3 && i < room; i++) list[i] = 32u << i;
    return 3;
}

static sinter_status launch(const sinter_plugin_problem *p, sinter_plugin_launch *l)
{
    const int64_t count = count_of(p->in);
    if (count > INT32_MAX) return SINTER_UNSUPPORTED;
    l->block = l->tactic;
    l->grid[0] = (uint64_t)((count + l->block - 1) / l->block);
    l->count_arg = 4;
    l->arg[0].kind = SINTER_PLUGIN_ARG_IN;
    l->arg[1].kind = SINTER_PLUGIN_ARG_OUT;
    l->arg[2] = (sinter_plugin_arg){ .kind = SINTER_PLUGIN_ARG_INT, .integer = count };
    l->arg[3] = (sinter_plugin_arg){ .kind = SINTER_PLUGIN_ARG_F32, .real = *(const double *)p->field[0].data };
    return SINTER_OK;
}

static const double one = 1;
static const sinter_plugin_field field[] = { { "scale", SINTER_PLUGIN_REAL, 1, &one } };

static const sinter_plugin scales = { .struct_size = sizeof(sinter_plugin),
                                      .name = "CudaScale",
                                      .field = field,
                                      .count_field = 1,
                                      .in_min = 1,
                                      .in_max = 1,
                                      .out_min = 1,
                                      .out_max = 1,
                                      .shapes = shapes,
                                      .tactics = tactics,
                                      .cuda_source = source,
                                      .cuda_kernel = "scale_kernel",
                                      .cuda_launch = launch };

static void same(sinter_plugins *r, const char *plain, const char *text)
{
    char why[1024];
    long runs = 0;
    const char *wrong = model_compare_with(plain, text, (model_device){ .kind = "cuda", .plugins = r }, why, &runs);
    if (!CHECK(!wrong)) printf("%s\n  %s\n", text, wrong);
    CHECK(runs >= 1);
}

static void on_the_host(void)
{
    sinter_plugins *r = plugin_set_new();
    same(r, "sym N 1 3 9; in x f32 N,40; a = Exp x; b = Mul a #2.5; y = Neg b; out y",
         "sym N 1 3 9; in x f32 N,40; a = Exp x; b = CustomPlugin a scale=2.5; y = Neg b; out y");
    same(r, "in x f32 4,5; y = Relu x; out y", "in x f32 4,5; y = CustomQuantized x; out y");
    sinter_plugins_destroy(r);
}

static void by_its_kernel(void)
{
    sinter_plugins *r = plugin_set_new();
    CHECK_EQ(sinter_plugins_add(r, &scales, NULL), SINTER_OK);
    same(r, "in x f32 3,50; y = Mul x #2.5; out y", "in x f32 3,50; y = CudaScale x scale=2.5; out y");
    same(r, "sym N 1 3 9; in x f32 N,40; a = Exp x; b = Mul a #2.5; y = Neg b; out y",
         "sym N 1 3 9; in x f32 N,40; a = Exp x; b = CudaScale a scale=2.5; y = Neg b; out y");
    same(r, "in x f32 2,3,7; m = ReduceMean x {-1}; y = Sub x m; z = Exp y; out z",
         "in x f32 2,3,7; y = CustomKernel x; z = Exp y; out z");
    /* sizes that data decides: a program without a graph */
    same(r, "in x f32 12; z = NonZero x; f = Cast z to=1; y = Mul f #3.0; out y",
         "in x f32 12; z = NonZero x; f = Cast z to=1; y = CudaScale f scale=3; out y");
    char why[1024];
    long runs = 0; /* it does not run on the CPU */
    const char *wrong =
        model_compare("in x f32 3; y = CudaScale x; out y", (model_device){ .kind = "cpu", .plugins = r }, why, &runs);
    CHECK(!wrong && !runs);
    sinter_plugins_destroy(r);
    /* only some of what a kernel needs */
    sinter_error error = { 0 };
    sinter_plugin p = scales;
    CHECK_EQ(sinter_plugins_create(NULL, &r, NULL), SINTER_OK);
    p.cuda_launch = NULL;
    CHECK_EQ(sinter_plugins_add(r, &p, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "only some of cuda_source, cuda_kernel and cuda_launch");
    p = scales, p.cuda_kernel = "a-b";
    CHECK_EQ(sinter_plugins_add(r, &p, &error), SINTER_INVALID_ARG);
    sinter_plugins_destroy(r);
}

static void from_a_source_alone(void)
{
    sinter_error error = { 0 };
    sinter_plugins *r = NULL;
    CHECK_EQ(sinter_plugins_create(NULL, &r, &error), SINTER_OK);
    if (!CHECK_EQ(sinter_plugins_load(r, SINTER_SOURCE_DIR "/tests/plugins/cu_scale.cu", &error), SINTER_OK) ||
        !CHECK_EQ(sinter_plugins_load(r, SINTER_SOURCE_DIR "/tests/plugins/cu_pool.cu", &error), SINTER_OK))
        printf("%s\n", error.text);
    CHECK_EQ(sinter_plugins_count(r), 2);
    CHECK_STR(sinter_plugins_at(r, 0)->version, "2");
    same(r, "sym N 1 3 9; in x f32 N,40; a = Exp x; b = Mul a #2.5; y = Neg b; out y",
         "sym N 1 3 9; in x f32 N,40; a = Exp x; b = CuScale a scale=2.5; y = Neg b; out y");
    same(r,
         "sym N 1 3 9; in x f32 N,6; in w f32 6; a = Mul x w; b = Reshape a {-1,3,2}; y = ReduceSum b {2} keepdims=0;"
         " s = Shape x; n = Gather s {0}; m = Min n {6}; e = Add m {1}; q = Squeeze e; f = Range #0.0 #99.0 #1.0;"
         " z = Slice f {0} e {0}; out y; out z",
         "sym N 1 3 9; in x f32 N,6; in w f32 6; y,z = CuPool x w k=2; out y; out z");
    sinter_plugins_destroy(r);
}

/* ---- work on the stream ---- */

typedef CUresult (*copy_fn)(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream);
typedef CUresult (*find_fn)(const char *name, void **fn, int version, uint64_t flags, int *status);

/* What the functions of StreamCopy saw. */
static struct {
    copy_fn copy;
    long runs, states, states_cuda;
    void *stream, *in, *out;
    int fails;
} seen;

static CUdeviceptr at(const void *p)
{
    return (CUdeviceptr)(uintptr_t)p;
}

static size_t bytes_of(const sinter_plugin_operand *o)
{
    size_t n = 4;
    for (uint32_t i = 0; i < o->rank; i++)
        n = o->max[i] >= 0 && (uint64_t)o->max[i] < SIZE_MAX / 16 / n ? n * (size_t)o->max[i] : SIZE_MAX / 16;
    return n;
}

static size_t stream_workspace(const sinter_plugin_problem *p)
{
    return bytes_of(p->in);
}

static sinter_status stream_create(const sinter_plugin_problem *p, void **state)
{
    seen.states++;
    seen.states_cuda += p->is_cuda != 0;
    *state = &seen;
    return SINTER_OK;
}

static void stream_destroy(void *user, void *state)
{
    (void)user;
    if (CHECK(state == &seen)) seen.states--;
}

/* y = x by way of the workspace. */
static sinter_status stream_run(const sinter_plugin_run *r)
{
    size_t size = 4;
    for (uint32_t i = 0; i < r->in->rank; i++) size *= (size_t)r->in->dim[i];
    seen.runs++;
    seen.stream = r->stream;
    seen.in = r->in->data;
    seen.out = r->out->data;
    if (seen.fails) {
        (void)snprintf(r->error, r->error_size, "run %ld is not wanted", seen.runs);
        return SINTER_DEVICE;
    }
    if (r->state != &seen || r->workspace_size < size || r->tactic < 32 || r->tactic > 128) return SINTER_INTERNAL;
    if (seen.copy(at(r->workspace), at(r->in->data), size, r->stream) != CUDA_SUCCESS) return SINTER_DEVICE;
    if (seen.copy(at(r->out->data), at(r->workspace), size, r->stream) != CUDA_SUCCESS) return SINTER_DEVICE;
    return SINTER_OK;
}

static const sinter_plugin stream_copy = { .struct_size = sizeof(sinter_plugin),
                                           .name = "StreamCopy",
                                           .in_min = 1,
                                           .in_max = 1,
                                           .out_min = 1,
                                           .out_max = 1,
                                           .shapes = shapes,
                                           .workspace = stream_workspace,
                                           .tactics = tactics,
                                           .create = stream_create,
                                           .destroy = stream_destroy,
                                           .cuda_run = stream_run };

static void *driver_function(const char *name)
{
    void *library = dlopen(getenv("SINTER_LIBCUDA"), RTLD_NOW), *symbol = dlsym(library, "cuGetProcAddress_v2");
    find_fn find;
    int status = 0;
    memcpy(&find, &symbol, sizeof find);
    CHECK_EQ(find(name, &symbol, 12030, 0, &status), CUDA_SUCCESS);
    return symbol;
}

static sinter_plugins *stream_registry(void)
{
    void *symbol = driver_function("cuMemcpyDtoDAsync");
    sinter_plugins *r = NULL;
    memset(&seen, 0, sizeof seen);
    memcpy(&seen.copy, &symbol, sizeof seen.copy);
    CHECK_EQ(sinter_plugins_create(NULL, &r, NULL), SINTER_OK);
    CHECK_EQ(sinter_plugins_add(r, &stream_copy, NULL), SINTER_OK);
    return r;
}

static void on_the_stream(void)
{
    sinter_plugins *r = stream_registry();
    same(r, "in x f32 3,50; y = Relu x; out y", "in x f32 3,50; a = Relu x; y = StreamCopy a; out y");
    same(r, "sym N 1 3 9; in x f32 N,40; a = Exp x; b = Abs a; y = Neg b; z = Add y x; out y; out z",
         "sym N 1 3 9; in x f32 N,40; a = Exp x; c = StreamCopy a; b = Abs c; y = Neg b; d = StreamCopy x; z = Add y d;"
         " out y; out z");
    same(r, "sym N 0 3 9; in x f32 N,4; y = Relu x; out y",
         "sym N 0 3 9; in x f32 N,4; a = StreamCopy x; y = Relu a; out y");
    /* sizes that data decides: bound in each run */
    same(r, "in x f32 12; z = NonZero x; f = Cast z to=1; y = Mul f #3.0; out y",
         "in x f32 12; z = NonZero x; f = Cast z to=1; g = StreamCopy f; y = Mul g #3.0; out y");
    same(r, "in x f32 4; c = Greater #1.0 #0.5; y = Neg x; out y",
         "in x f32 4; a = StreamCopy x; b = StreamCopy a; y = Neg b; out y");
    CHECK(seen.runs > 12);
    CHECK(seen.states_cuda > 0);
    CHECK_EQ(seen.states, 0);
    sinter_plugins_destroy(r);
}

typedef struct own_stream {
    CUcontext context;
    CUstream handle;
} own_stream;

static own_stream stream_make(void)
{
    own_stream s = { 0 };
    CUcontext old;
    CUresult (*retain)(CUcontext *, int), (*push)(CUcontext), (*pop)(CUcontext *), (*create)(CUstream *, unsigned);
    void *const symbol[] = { driver_function("cuDevicePrimaryCtxRetain"), driver_function("cuCtxPushCurrent"),
                             driver_function("cuCtxPopCurrent"), driver_function("cuStreamCreate") };
    memcpy(&retain, &symbol[0], sizeof retain), memcpy(&push, &symbol[1], sizeof push);
    memcpy(&pop, &symbol[2], sizeof pop), memcpy(&create, &symbol[3], sizeof create);
    CHECK(!retain(&s.context, 0) && !push(s.context) && !create(&s.handle, 1) && !pop(&old));
    return s;
}

static void own_stream_free(own_stream s)
{
    CUresult (*destroy)(CUstream);
    void *const symbol = driver_function("cuStreamDestroy");
    memcpy(&destroy, &symbol, sizeof destroy);
    CHECK(!destroy(s.handle));
}

/* Builds and loads. */
static sinter_engine *stream_engine(sinter_plugins *r, const char *text, sinter_tune tune)
{
    sinter_error error = { 0 };
    sinter_env_options env = SINTER_ENV_OPTIONS;
    sinter_build_options build = SINTER_BUILD_OPTIONS;
    sinter_engine_options load = SINTER_ENGINE_OPTIONS;
    sinter_buffer file = { 0 };
    sinter_engine *engine = NULL;
    model_text m;
    env.plugins = r;
    build.env = load.env = &env;
    build.device = "cuda";
    build.tune = tune;
    model_read(text, &m);
    if (!CHECK_EQ(sinter_build_memory(m.model.at, m.model.size, &build, &file, &error), SINTER_OK) ||
        !CHECK_EQ(sinter_engine_load_memory(file.data, file.size, &load, &engine, &error), SINTER_OK))
        printf("%s\n", error.text);
    sinter_buffer_free(&file);
    free(m.model.at);
    return engine;
}

/* Asynchronous, on memory of the caller, which is read and written where it lies. */
static void on_the_callers_stream(void)
{
    enum { COUNT = 64, RUNS = 3 };
    sinter_plugins *r = stream_registry();
    sinter_error error = { 0 };
    sinter_engine *engine = stream_engine(r, "in x f32 64; y = StreamCopy x; out y", SINTER_TUNE_FULL);
    CHECK(seen.runs > 0); /* the tuner's */
    const own_stream stream = stream_make();
    sinter_context_options options = SINTER_CONTEXT_OPTIONS;
    sinter_context *context = NULL;
    float host[COUNT], got[COUNT];
    void *device = NULL;
    options.stream = stream.handle;
    CHECK_EQ(sinter_context_create(engine, &options, &context, &error), SINTER_OK);
    CHECK_EQ(sinter_engine_alloc(engine, SINTER_PLACE_DEVICE, 2 * RUNS * sizeof host, &device, &error), SINTER_OK);
    for (int i = 0; i < RUNS && device; i++) {
        float *in = (float *)device + (ptrdiff_t)2 * i * COUNT, *out = in + COUNT;
        const sinter_tensor x = {
            .dtype = SINTER_DTYPE_F32, .rank = 1, .dim = { COUNT }, .data = in, .place = SINTER_PLACE_DEVICE
        };
        for (int k = 0; k < COUNT; k++) host[k] = (float)(i * 1000 + k);
        CHECK_EQ(sinter_engine_copy(engine, in, SINTER_PLACE_DEVICE, host, SINTER_PLACE_HOST, sizeof host, &error),
                 SINTER_OK);
        CHECK_EQ(sinter_context_set_input(context, "x", &x, &error), SINTER_OK);
        CHECK_EQ(sinter_context_set_output(context, "y", out, sizeof host, SINTER_PLACE_DEVICE, &error), SINTER_OK);
        const long before = seen.runs;
        if (!CHECK_EQ(sinter_context_run_async(context, &error), SINTER_OK)) printf("%s\n", error.text);
        CHECK_EQ(seen.runs, before + 1);
        CHECK(seen.stream == stream.handle && seen.in == in && seen.out == out);
        CHECK_EQ(sinter_context_wait(context, &error), SINTER_OK);
        CHECK_EQ(sinter_engine_copy(engine, got, SINTER_PLACE_HOST, out, SINTER_PLACE_DEVICE, sizeof got, &error),
                 SINTER_OK);
        CHECK(!memcmp(host, got, sizeof got));
    }
    /* a failure names the plugin and the reason, and the next run works */
    seen.fails = 1;
    CHECK_EQ(sinter_context_run(context, &error), SINTER_DEVICE);
    CHECK_HAS(error.text, "plugin 'StreamCopy' version '1' failed: run ");
    seen.fails = 0;
    CHECK_EQ(sinter_context_run(context, &error), SINTER_OK);
    sinter_engine_free(engine, SINTER_PLACE_DEVICE, device, 2 * RUNS * sizeof host);
    sinter_context_destroy(context);
    sinter_engine_release(engine);
    own_stream_free(stream);
    CHECK_EQ(seen.states, 0);
    sinter_plugins_destroy(r);
}

static void print_to(void *user, const char *words, size_t size)
{
    (void)strncat(user, words, size);
}

static void is_shown(void)
{
    static char shown[1 << 16];
    sinter_plugins *r = stream_registry();
    sinter_error error = { 0 };
    sinter_engine *engine =
        stream_engine(r, "in x f32 64; a = Exp x; b = StreamCopy a; y = Neg b; out y", SINTER_TUNE_OFF);
    shown[0] = 0;
    CHECK_EQ(sinter_engine_print(engine, SINTER_PRINT_TEXT, print_to, shown, &error), SINTER_OK);
    CHECK_HAS(shown, "2 graph launches");
    CHECK_HAS(shown, "by the host: call of");
    CHECK_HAS(shown, "cuda_plugin_call");
    sinter_engine_release(engine);
    sinter_plugins_destroy(r);
}

static void comment_refused(const char *text, const char *why)
{
    char path[64];
    sinter_error error = { 0 };
    sinter_plugins *r = NULL;
    (void)snprintf(path, sizeof path, "test_plugins_cuda.%ld.cu", (long)getpid());
    FILE *f = fopen(path, "w");
    if (!CHECK(f)) return;
    (void)fputs(text, f);
    (void)fclose(f);
    CHECK_EQ(sinter_plugins_create(NULL, &r, &error), SINTER_OK);
    CHECK_EQ(sinter_plugins_load(r, path, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, why);
    sinter_plugins_destroy(r);
    (void)remove(path);
}

static void comments_are_checked(void)
{
    comment_refused("int x;", "no comment that begins with");
    comment_refused("/* sinter plugin\n * name A\n */", "no line 'kernel'");
    comment_refused("/* sinter plugin\n * name A\n * color red\n */", "the line 'color red'");
    comment_refused("/* sinter plugin\n * name A\n * input x f33 [N]\n */", "'input x f33 [N]'");
    comment_refused("/* sinter plugin\n * name A\n * input x f32 N\n */", "'input x f32 N'");
    comment_refused("/* sinter plugin\n * name A\n * field k text\n */", "'field k text'");
    comment_refused("/* sinter plugin\n * name A\n * grid 1, 2, 3, 4\n */", "'grid 1, 2, 3, 4'");
    comment_refused("/* sinter plugin\n * name A B\n * kernel k\n * block 1\n * grid 1\n * output y f32 [1]\n */",
                    "'A B'");
}

static const test tests[] = { T(on_the_host),           T(by_its_kernel), T(from_a_source_alone),  T(on_the_stream),
                              T(on_the_callers_stream), T(is_shown),      T(comments_are_checked), { 0 } };

int main(int argc, char **argv)
{
    char path[1024];
    if (system("${SINTER_CXX:-g++} --version >/dev/null 2>&1") != 0) return 77;
    if (!getcwd(path, sizeof path - 64)) return 2;
    (void)strcat(path, "/tests/libsinter_emulated_cuda.so");
    (void)setenv("SINTER_LIBCUDA", path, 1);
    (void)setenv("SINTER_LIBNVRTC", path, 1);
    (void)setenv("SINTER_KERNEL_CACHE", "emulated/cache", 1);
    (void)setenv("SINTER_FAKE_SM", "90", 1);
    (void)setenv("SINTER_FAKE_DEVICES", "1", 1);
    return test_run_all(tests, argc, argv);
}
