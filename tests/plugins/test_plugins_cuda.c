/* SPDX-License-Identifier: Apache-2.0 */
/* test_plugins_cuda.c - plugins on the emulated GPU: those that run on the host between copies, and those with a kernel
 * of their own, compiled from its text. */
#include "model_text.h"
#include "plugin_set.h"
#include "test.h"

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

static const test tests[] = {
    T(on_the_host), T(by_its_kernel), T(from_a_source_alone), T(comments_are_checked), { 0 }
};

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
