/* SPDX-License-Identifier: Apache-2.0 */
/* test_plugin_sizes.c - outputs whose sizes the data decide: against the same models with Compress, on the CPU and on
 * the emulated GPU; and plugins that declare or tell sizes that cannot be. */
#include "model_text.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Keep: the rows of x[N, C] whose sum is above 0, `times` over, and their number. What `rule` names goes wrong. */
enum { GOOD, TOO_MANY, NEGATIVE, NO_SCALAR, NO_INTEGER, TWICE, NO_OUTPUT, NINE, NO_DIM };

static int64_t field_of(const sinter_plugin_field *f, uint32_t i)
{
    return *(const int64_t *)f[i].data;
}

static sinter_status shapes(sinter_plugin_shapes *s)
{
    const int64_t times = field_of(s->field, 0), rule = field_of(s->field, 1);
    if (s->in[0].rank != 2 || s->in[0].dtype != SINTER_DTYPE_F32) return SINTER_UNSUPPORTED;
    s->out[1].dtype = rule == NO_INTEGER      ? SINTER_DTYPE_F32
                      : field_of(s->field, 2) ? SINTER_DTYPE_I32
                                              : SINTER_DTYPE_I64;
    s->out[1].rank = rule == NO_SCALAR;
    s->out[1].dim[0] = s->constant(s->dims, 1);
    const uint32_t most = rule == NO_DIM ? 1u << 30 : s->in[0].dim[0];
    const uint32_t size = s->declare_size(s->dims, rule == NO_OUTPUT ? 7 : 1, most);
    if (rule == TWICE) (void)s->declare_size(s->dims, 1, most);
    for (int i = 0; rule == NINE && i < 9; i++) (void)s->declare_size(s->dims, 1, most);
    s->out[0].dtype = SINTER_DTYPE_F32;
    s->out[0].rank = 2;
    s->out[0].dim[0] = s->apply(s->dims, SINTER_DIM_MUL, size, s->constant(s->dims, times));
    s->out[0].dim[1] = s->in[0].dim[1];
    return SINTER_OK;
}

static sinter_status run(const sinter_plugin_run *r)
{
    const int64_t times = field_of(r->field, 0), rule = field_of(r->field, 1), rows = r->in->dim[0],
                  columns = r->in->dim[1];
    const float *x = r->in->data;
    float *y = r->out[0].data;
    int64_t kept = 0;
    if (r->out[0].dim[0] != rows * times || r->out[0].dim[1] != columns) return SINTER_INTERNAL;
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t k = 0; k < columns; k++) sum += x[i * columns + k];
        if (sum <= 0) continue;
        for (int64_t t = 0; t < times; t++)
            memcpy(y + (kept * times + t) * columns, x + i * columns, (size_t)columns * sizeof *x);
        kept++;
    }
    if (rule == TOO_MANY) kept = rows + 1;
    if (rule == NEGATIVE) kept = -1;
    if (r->out[1].dtype == SINTER_DTYPE_I32) *(int32_t *)r->out[1].data = (int32_t)kept;
    else *(int64_t *)r->out[1].data = kept;
    return SINTER_OK;
}

static sinter_plugins *registry(void)
{
    static const int64_t one = 1, zero = 0;
    static const sinter_plugin_field field[] = { { "times", SINTER_PLUGIN_INT, 1, &one },
                                                 { "rule", SINTER_PLUGIN_INT, 1, &zero },
                                                 { "narrow", SINTER_PLUGIN_INT, 1, &zero } };
    const sinter_plugin keep = { .struct_size = sizeof keep,
                                 .name = "Keep",
                                 .field = field,
                                 .count_field = 3,
                                 .in_min = 1,
                                 .in_max = 1,
                                 .out_min = 2,
                                 .out_max = 2,
                                 .shapes = shapes,
                                 .run = run };
    sinter_plugins *r = NULL;
    CHECK_EQ(sinter_plugins_create(NULL, &r, NULL), SINTER_OK);
    CHECK_EQ(sinter_plugins_add(r, &keep, NULL), SINTER_OK);
    return r;
}

static void same(const char *device, const char *plain, const char *text)
{
    char why[1024];
    long runs = 0;
    sinter_plugins *r = registry();
    const char *wrong = model_compare_with(plain, text, (model_device){ .kind = device, .plugins = r }, why, &runs);
    if (!CHECK(!wrong)) printf("%s: %s\n  %s\n", device, text, wrong);
    CHECK(runs >= 1);
    sinter_plugins_destroy(r);
}

static void models_agree(void)
{
    static const char *const device[] = { "cpu", "reference", "cuda" };
    const int count = getenv("SINTER_LIBCUDA") ? 3 : 2;
    for (int i = 0; i < count; i++) {
        const char *d = device[i];
        same(d, "in x f32 6,4; s = ReduceSum x {1} keepdims=0; c = Greater s #0.0; y = Compress x c axis=0; out y",
             "in x f32 6,4; y,n = Keep x; out y");
        same(d,
             "sym N 0 3 9; in x f32 N,3; a = Neg x; s = ReduceSum a {1} keepdims=0; c = Greater s #0.0;"
             " b = Compress a c axis=0; y = Exp b; z = ReduceSum y {0}; out y; out z",
             "sym N 0 3 9; in x f32 N,3; a = Neg x; b,n = Keep a narrow=1; y = Exp b; z = ReduceSum y {0}; out y; out "
             "z");
        /* an expression over the size, and the size itself as a result */
        same(d,
             "sym N 1 4 9; in x f32 N,3; s = ReduceSum x {1} keepdims=0; c = Greater s #0.0; b = Compress x c axis=0;"
             " u = Unsqueeze b {1}; e = Concat u u axis=1; y = Reshape e {-1,3}; k = Shape b; z = Gather k {0};"
             " n = Squeeze z; out y; out n",
             "sym N 1 4 9; in x f32 N,3; y,n = Keep x times=2; out y; out n");
    }
}

static void refused(int rule, const char *why)
{
    char text[128];
    sinter_error error = { 0 };
    sinter_plugins *r = registry();
    sinter_env_options env = SINTER_ENV_OPTIONS;
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    sinter_engine_options load = SINTER_ENGINE_OPTIONS;
    sinter_buffer file = { 0 };
    sinter_engine *g = NULL;
    sinter_context *c = NULL;
    model_text m;
    env.plugins = r;
    o.env = load.env = &env;
    (void)snprintf(text, sizeof text, "sym N 1 2 9; in x f32 N,3; y,n = Keep x rule=%d; out y; out n", rule);
    model_read(text, &m);
    sinter_profile profile = { .shape = m.range, .count = m.count_input };
    o.profile = &profile;
    o.profile_count = 1;
    sinter_status s = sinter_build_memory(m.model.at, m.model.size, &o, &file, &error);
    if (!s) s = sinter_engine_load_memory(file.data, file.size, &load, &g, &error);
    if (!s) s = sinter_context_create(g, NULL, &c, &error);
    float data[6] = { 1, 2, 3, -1, -2, -3 };
    const sinter_tensor x = { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { 2, 3 }, .data = data };
    if (!s) s = sinter_context_set_input(c, "x", &x, &error);
    if (!s) s = sinter_context_run(c, &error);
    CHECK(s != SINTER_OK);
    CHECK_HAS(error.text, why);
    sinter_context_destroy(c);
    sinter_engine_release(g);
    sinter_buffer_free(&file);
    free(m.model.at);
    sinter_plugins_destroy(r);
}

static void sizes_are_checked(void)
{
    refused(TOO_MANY, "reaches outside its storage");
    refused(NEGATIVE, "-1");
    refused(NO_SCALAR, "plugin 'Keep' declares output 1 as a size: it is i64 of rank 1");
    refused(NO_INTEGER, "it is f32 of rank 0");
    refused(TWICE, "declares output 1 as a size twice");
    refused(NO_OUTPUT, "declares output 7 as a size, the node has 2 outputs");
    refused(NINE, "declares 10 sizes, the most is 8");
    refused(NO_DIM, "gives axis 0 of output 0 no size");
}

static const test tests[] = { T(models_agree), T(sizes_are_checked), { 0 } };

int main(int argc, char **argv)
{
    char path[1024];
    if (!getcwd(path, sizeof path - 64)) return 2;
    (void)strcat(path, "/tests/libsinter_emulated_cuda.so");
    if (system("${SINTER_CXX:-g++} --version >/dev/null 2>&1") == 0) {
        (void)setenv("SINTER_LIBCUDA", path, 1);
        (void)setenv("SINTER_LIBNVRTC", path, 1);
    }
    (void)setenv("SINTER_KERNEL_CACHE", "emulated/cache", 1);
    (void)setenv("SINTER_FAKE_SM", "90", 1);
    (void)setenv("SINTER_FAKE_DEVICES", "1", 1);
    return test_run_all(tests, argc, argv);
}
