/* SPDX-License-Identifier: Apache-2.0 */
/* test_plugins.c - plugins in models: against the same model without, saved and loaded, refused when missing; what the
 * registry refuses; damaged engines; memory that runs out. */
#include "faulty.h"
#include "model_text.h"
#include "plugin_set.h"
#include "test.h"

#include <stdio.h>

static const char scaled[] =
    "sym N 1 3 9; in x f32 N,40; a = Relu x; b = CustomPlugin a scale=2.5 bias=0.5; y = Neg b; out y";

/* ---- the registry ---- */

static sinter_status shapes(sinter_plugin_shapes *s)
{
    s->out[0] = s->in[0];
    return SINTER_OK;
}

static sinter_status nothing(const sinter_plugin_run *r)
{
    (void)r;
    return SINTER_OK;
}

static sinter_plugin usual(const char *name)
{
    return (sinter_plugin){ .struct_size = sizeof(sinter_plugin),
                            .name = name,
                            .in_min = 1,
                            .in_max = 1,
                            .out_min = 1,
                            .out_max = 1,
                            .shapes = shapes,
                            .run = nothing };
}

static void refused(sinter_plugins *r, const sinter_plugin *p, const char *why)
{
    sinter_error error = { 0 };
    const uint32_t before = sinter_plugins_count(r);
    CHECK_EQ(sinter_plugins_add(r, p, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, why);
    CHECK_EQ(sinter_plugins_count(r), before);
}

static void registry_checks(void)
{
    sinter_error error = { 0 };
    sinter_plugins *r = plugin_set_new();
    CHECK_EQ(sinter_plugins_count(r), PLUGIN_SET_COUNT);
    CHECK_STR(sinter_plugins_at(r, 0)->name, "CustomPlugin");
    CHECK_STR(sinter_plugins_at(r, 0)->version, "1");
    CHECK_STR(sinter_plugins_at(r, 1)->version, "2");
    CHECK_STR(sinter_plugins_at(r, 2)->space, "quant");
    CHECK(!sinter_plugins_at(r, PLUGIN_SET_COUNT) && !sinter_plugins_at(NULL, 0) && !sinter_plugins_count(NULL));
    sinter_plugin p = usual("CustomPlugin");
    refused(r, &p, "already");
    p.version = "2"; /* another version of a name is another plugin */
    CHECK_EQ(sinter_plugins_add(r, &p, &error), SINTER_OK);
    p = usual("a b"), refused(r, &p, "'a b'");
    p = usual(""), refused(r, &p, "name");
    p = usual(NULL), refused(r, &p, "name");
    p = usual("A"), p.version = "", refused(r, &p, "version ''");
    p = usual("A"), p.space = "x/y", refused(r, &p, "x/y");
    p = usual("A"), p.shapes = NULL, refused(r, &p, "shapes");
    p = usual("A"), p.in_max = 33, refused(r, &p, "33 inputs");
    p = usual("A"), p.in_min = 2, refused(r, &p, "2 to 1 inputs");
    p = usual("A"), p.out_min = 0, refused(r, &p, "0 to 1 outputs");
    p = usual("A"), p.struct_size = 8, refused(r, &p, "struct_size");
    sinter_plugin_field f[2] = { { "k", SINTER_PLUGIN_INT, 1, NULL }, { "k", SINTER_PLUGIN_INT, 1, NULL } };
    p = usual("A"), p.count_field = 2, refused(r, &p, "at NULL");
    p.field = f, refused(r, &p, "twice");
    f[1].name = "1k", refused(r, &p, "'1k'");
    f[1].name = "l", f[1].type = (sinter_plugin_type)9, refused(r, &p, "type 9");
    f[1] = (sinter_plugin_field){ "l", SINTER_PLUGIN_TEXT, 2, "a\0" };
    refused(r, &p, "NUL");
    CHECK_EQ(sinter_plugins_add(r, NULL, &error), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_plugins_add(NULL, &p, &error), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_plugins_load(r, "no_such_library.so", &error), SINTER_IO);
    CHECK_HAS(error.text, "no_such_library.so");
    sinter_plugins_destroy(r);
    sinter_plugins_destroy(NULL);
}

/* ---- models ---- */

static void same(sinter_plugins *r, const char *plain, const char *text)
{
    static const char *const isa[] = { "plain", "avx2" };
    char why[1024];
    long runs = 0;
    for (uint32_t i = 0; i < 2; i++) {
        const model_device d = { .kind = "cpu", .isa = isa[i], .plugins = r };
        const char *wrong = model_compare_with(plain, text, d, why, &runs);
        if (!CHECK(!wrong)) printf("%s\n  %s\n", text, wrong);
    }
    CHECK(runs >= 2);
}

static void models_agree(void)
{
    sinter_plugins *r = plugin_set_new();
    same(r, "sym N 1 3 9; in x f32 N,40; a = Relu x; b = Mul a #2.5; c = Add b #0.5; y = Neg c; out y", scaled);
    same(r, "in x f32 2,3; y = Mul x #1.0; out y", "in x f32 2,3; y = CustomPlugin x; out y");
    same(r, "in x f32 2,3; y = Mul x #3.0; out y", "in x f32 2,3; y = CustomPlugin x scale=3; out y");
    same(r, "sym N 0 2 5; in x f32 N,6; y = Mul x #1.5; out y",
         "sym N 0 2 5; in x f32 N,6; y = CustomPlugin x scale=1.5 plugin_version=1; out y");
    /* between convolutions, whose layout it takes */
    same(r, "in x f32 1,8,9,9; a = Conv x %16,8,1,1; b = Mul a #0.5; y = Conv b %8,16,1,1; out y",
         "in x f32 1,8,9,9; a = Conv x %16,8,1,1; b = CustomPlugin a scale=0.5; y = Conv b %8,16,1,1; out y");
    same(r, "sym N 0 2 5; in x f32 N,3,7; m = ReduceMean x {-1}; y = Sub x m; out y",
         "sym N 0 2 5; in x f32 N,3,7; y = CustomKernel x; out y");
    same(r, "in x f32 1,8,9,9; a = Conv x %16,8,3,3; m = ReduceMean a {-1}; y = Sub a m; z = Conv y %4,16,1,1; out z",
         "in x f32 1,8,9,9; a = Conv x %16,8,3,3; y = CustomKernel a; z = Conv y %4,16,1,1; out z");
    same(r, "in x f32 2,3,5; t = Transpose x perm=[2,0,1]; m = ReduceMean t {-1}; y = Sub t m; out y",
         "in x f32 2,3,5; t = Transpose x perm=[2,0,1]; y = CustomKernel t; out y");
    same(r, "sym N 1 2 5; in x f32 N,3; y = Relu x; out y", "sym N 1 2 5; in x f32 N,3; y = CustomQuantized x; out y");
    same(r, "sym N 1 2 5; in x f16 N,3; y = Relu x; out y", "sym N 1 2 5; in x f16 N,3; y = CustomQuantized x; out y");
    /* inside a Loop, and of sizes that data decides */
    same(r,
         "in x f32 4; y = Loop {3} - x body=(in i i64 ; in c bool ; in a f32 4; d = Identity c; b = Mul a #2.0;"
         " out d; out b); out y",
         "in x f32 4; y = Loop {3} - x body=(in i i64 ; in c bool ; in a f32 4; d = Identity c;"
         " b = CustomPlugin a scale=2.0; out d; out b); out y");
    same(r, "in x f32 12; z = NonZero x; f = Cast z to=1; m = ReduceMean f {-1}; y = Sub f m; out y",
         "in x f32 12; z = NonZero x; f = Cast z to=1; y = CustomKernel f; out y");
    sinter_plugins_destroy(r);
}

/* Sizes are expressions, and every kind of field reaches the plugin: its last row is their sum. */
static void fields_and_sizes(void)
{
    sinter_plugins *r = plugin_set_new();
    const char *text =
        "sym N 1 3 9; sym C 1 5 8; in x f32 N,C; y,z = CustomPairs x k=3 mode=abc axes=[5,-1] table=xyz; "
        "out y; out z";
    char why[1024];
    long runs = 0;
    const char *wrong = model_compare(text, (model_device){ .kind = "cpu", .plugins = r }, why, &runs);
    if (!CHECK(!wrong)) printf("%s\n", wrong);
    const sinter_env_options given = { .struct_size = sizeof given, .plugins = r };
    const sinter_engine_options o = { .struct_size = sizeof o, .env = &given };
    sinter_buffer built = model_build(text, (model_device){ .kind = "cpu", .plugins = r });
    sinter_engine *g = NULL;
    sinter_context *c = NULL;
    float x[10] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
    const sinter_tensor in = { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { 2, 5 }, .data = x };
    sinter_tensor y = { 0 }, z = { 0 };
    CHECK_EQ(sinter_engine_load_memory(built.data, built.size, &o, &g, NULL), SINTER_OK);
    CHECK_EQ(sinter_context_create(g, NULL, &c, NULL), SINTER_OK);
    CHECK_EQ(sinter_context_set_input(c, "x", &in, NULL), SINTER_OK);
    CHECK_EQ(sinter_context_run(c, NULL), SINTER_OK);
    CHECK_EQ(sinter_context_output(c, "y", &y, NULL), SINTER_OK);
    CHECK_EQ(sinter_context_output(c, "z", &z, NULL), SINTER_OK);
    CHECK(y.rank == 2 && y.dim[0] == 5 && y.dim[1] == 2 && z.rank == 1 && z.dim[0] == 2);
    const float sum = 'a' + 'b' + 'c' + 'x' + 'y' + 'z' + 5 - 1 + 1;
    const float want[10] = { 1, 4, -1, -4, 6, 9, -6, -9, sum, sum };
    for (uint32_t i = 0; i < 10; i++) CHECK_EQ(((const float *)y.data)[i], want[i]);
    CHECK_EQ(((const float *)z.data)[1], 7);
    sinter_context_destroy(c);
    sinter_engine_release(g);
    sinter_buffer_free(&built);
    sinter_plugins_destroy(r);
}

/* ---- refusals ---- */

static sinter_status try_build(const char *text, const sinter_plugins *r, sinter_error *error)
{
    model_text m;
    sinter_buffer built = { 0 };
    const sinter_env_options given = { .struct_size = sizeof given, .plugins = r };
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    model_read(text, &m);
    o.env = &given;
    *error = (sinter_error){ 0 };
    const sinter_status s = sinter_build_memory(m.model.at, m.model.size, &o, &built, error);
    sinter_buffer_free(&built);
    free(m.model.at);
    return s;
}

static void model_refused(const sinter_plugins *r, const char *text, sinter_status status, const char *why)
{
    sinter_error error;
    if (!CHECK_EQ(try_build(text, r, &error), status)) printf("%s\n", error.text);
    CHECK_HAS(error.text, why);
}

static void models_are_refused(void)
{
    sinter_plugins *r = plugin_set_new();
    model_refused(NULL, "in x f32 2; y = CustomPlugin x; out y", SINTER_UNSUPPORTED, "CustomPlugin");
    model_refused(r, "in x f32 2; y = Customs x; out y", SINTER_UNSUPPORTED, "Customs");
    model_refused(r, "in x f32 2; y = CustomPlugin x plugin_version=3; out y", SINTER_UNSUPPORTED,
                  "plugin 'CustomPlugin' version '3'");
    model_refused(r, "in x f32 2; y = CustomPlugin x plugin_namespace=other; out y", SINTER_UNSUPPORTED, "'other'");
    model_refused(r, "in x f32 2; y = CustomPlugin x scales=3; out y", SINTER_INVALID_MODEL, "no field 'scales'");
    model_refused(r, "in x f32 2; y = CustomPlugin x scale=abc; out y", SINTER_INVALID_MODEL,
                  "'scale' is a text, wanted is a number");
    model_refused(r, "in x f32 2; y = CustomPlugin x x; out y", SINTER_INVALID_MODEL, "1 to 1 inputs, the node has 2");
    model_refused(r, "in x f32 2; y,z = CustomPlugin x; out y", SINTER_INVALID_MODEL, "1 to 1 outputs");
    model_refused(r, "in x i64 2; y = CustomPlugin x; out y", SINTER_UNSUPPORTED, "types i64 -> i64");
    model_refused(r, "in x i64 2; y = CustomKernel x; out y", SINTER_UNSUPPORTED, "wanted are rows of f32");
    model_refused(r, "in x f32 2,2; y = CustomPairs x k=0; out y", SINTER_INVALID_MODEL, "k=0");
    sinter_plugin p = plugin_set[0];
    p.version = "2";
    CHECK_EQ(sinter_plugins_add(r, &p, NULL), SINTER_OK);
    model_refused(r, "in x f32 2; y = CustomPlugin x; out y", SINTER_UNSUPPORTED, "2 plugins are named 'CustomPlugin'");
    p.version = "3", p.run = NULL;
    CHECK_EQ(sinter_plugins_add(r, &p, NULL), SINTER_OK);
    model_refused(r, "in x f32 2; y = CustomPlugin x plugin_version=3; out y", SINTER_UNSUPPORTED,
                  "'y' cannot run on the backend 'cpu': its plugin has no function for the CPU");
    sinter_plugins_destroy(r);
}

static void engines_need_their_plugins(void)
{
    sinter_plugins *r = plugin_set_new(), *none = NULL, *other = NULL;
    sinter_error error = { 0 };
    sinter_buffer built = model_build(scaled, (model_device){ .kind = "cpu", .plugins = r });
    sinter_engine *g = NULL;
    sinter_env_options given = SINTER_ENV_OPTIONS;
    sinter_engine_options o = SINTER_ENGINE_OPTIONS;
    o.env = &given;
    CHECK_EQ(sinter_engine_load_memory(built.data, built.size, &o, &g, &error), SINTER_UNSUPPORTED);
    CHECK_HAS(error.text, "plugin 'CustomPlugin' version '1' in namespace '' is not registered: no plugins were given");
    CHECK(!g);
    CHECK_EQ(sinter_plugins_create(NULL, &none, NULL), SINTER_OK);
    given.plugins = none;
    CHECK_EQ(sinter_engine_load_memory(built.data, built.size, &o, &g, &error), SINTER_UNSUPPORTED);
    CHECK_HAS(error.text, "is not registered");
    sinter_plugin p = plugin_set[0];
    p.version = "4";
    CHECK_EQ(sinter_plugins_create(NULL, &other, NULL), SINTER_OK);
    CHECK_EQ(sinter_plugins_add(other, &p, NULL), SINTER_OK);
    given.plugins = other;
    CHECK_EQ(sinter_engine_load_memory(built.data, built.size, &o, &g, &error), SINTER_UNSUPPORTED);
    CHECK_HAS(error.text, "version '4' in namespace '' is");
    p.version = "1", p.count_field = 1; /* the engine stores a field that this one does not declare */
    CHECK_EQ(sinter_plugins_add(other, &p, NULL), SINTER_OK);
    CHECK_EQ(sinter_engine_load_memory(built.data, built.size, &o, &g, &error), SINTER_INVALID_MODEL);
    CHECK_HAS(error.text, "no field 'bias'");
    given.plugins = r;
    CHECK_EQ(sinter_engine_load_memory(built.data, built.size, &o, &g, &error), SINTER_OK);
    sinter_engine_release(g);
    sinter_buffer_free(&built);
    sinter_plugins_destroy(r);
    sinter_plugins_destroy(none);
    sinter_plugins_destroy(other);
}

/* ---- what a plugin does wrong ---- */

static sinter_status fails(const sinter_plugin_run *r)
{
    (void)snprintf(r->error, r->error_size, "the moon is full");
    return SINTER_INVALID_ARG;
}

static sinter_status no_size(sinter_plugin_shapes *s)
{
    s->out[0] = s->in[0];
    s->out[0].dim[0] = s->apply(s->dims, SINTER_DIM_ADD, 12345678, s->in[0].dim[0]);
    return SINTER_OK;
}

static sinter_status no_type(sinter_plugin_shapes *s)
{
    s->out[0].rank = 99;
    return SINTER_OK;
}

static void failures_are_named(void)
{
    sinter_plugins *r = plugin_set_new();
    sinter_error error = { 0 };
    sinter_plugin p = usual("Fails");
    p.run = fails;
    CHECK_EQ(sinter_plugins_add(r, &p, NULL), SINTER_OK);
    sinter_buffer built =
        model_build("in x f32 2; y = Fails x; out y", (model_device){ .kind = "reference", .plugins = r });
    const sinter_env_options given = { .struct_size = sizeof given, .plugins = r };
    const sinter_engine_options o = { .struct_size = sizeof o, .env = &given };
    sinter_engine *g = NULL;
    sinter_context *c = NULL;
    CHECK_EQ(sinter_engine_load_memory(built.data, built.size, &o, &g, &error), SINTER_OK);
    (void)!sinter_context_create(
        g, &(sinter_context_options){ .struct_size = sizeof(sinter_context_options), .lazy = 1 }, &c, &error);
    float x[2] = { 0 };
    const sinter_tensor in = { .dtype = SINTER_DTYPE_F32, .rank = 1, .dim = { 2 }, .data = x };
    CHECK_EQ(sinter_context_set_input(c, "x", &in, &error), SINTER_OK);
    CHECK_EQ(sinter_context_run(c, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "plugin 'Fails' version '1' failed: the moon is full");
    sinter_context_destroy(c);
    sinter_engine_release(g);
    sinter_buffer_free(&built);
    p = usual("NoSize"), p.shapes = no_size;
    CHECK_EQ(sinter_plugins_add(r, &p, NULL), SINTER_OK);
    model_refused(r, "in x f32 2; y = NoSize x; out y", SINTER_INVALID_ARG,
                  "'NoSize' gives axis 0 of output 0 no size");
    p = usual("NoType"), p.shapes = no_type;
    CHECK_EQ(sinter_plugins_add(r, &p, NULL), SINTER_OK);
    model_refused(r, "in x f32 2; y = NoType x; out y", SINTER_INVALID_ARG, "the type 0 and the rank 99");
    sinter_plugins_destroy(r);
}

/* ---- checks ---- */

static sinter_status writes_behind(const sinter_plugin_run *r)
{
    ((float *)r->out[0].data)[6] = 1;
    return SINTER_OK;
}

static sinter_status writes_before(const sinter_plugin_run *r)
{
    ((float *)r->out[0].data)[-2] = 1;
    return SINTER_OK;
}

static sinter_status writes_input(const sinter_plugin_run *r)
{
    ((float *)r->in[0].data)[5] += 1;
    return SINTER_OK;
}

static sinter_status writes_workspace(const sinter_plugin_run *r)
{
    ((char *)r->workspace)[r->workspace_size] = 1;
    return SINTER_OK;
}

static sinter_status allocates(const sinter_plugin_run *r)
{
    const sinter_allocator *a = r->allocator;
    void *p = a->resize(a->user, NULL, 0, 100, 8);
    if (p) (void)a->resize(a->user, p, 100, 0, 8);
    return SINTER_OK;
}

static size_t some_workspace(const sinter_plugin_problem *p)
{
    (void)p;
    return 100;
}

static void offenders_are_named(void)
{
    static const struct {
        sinter_status (*run)(const sinter_plugin_run *r);
        const char *text;
    } each[] = { { writes_behind,
                   "'Offends' version '1' wrote 1 bytes behind the end of output 0, which has 24 bytes" },
                 { writes_before, "wrote 5 bytes before output 0" },
                 { writes_input, "wrote to its input 0" },
                 { writes_workspace, "wrote 1 bytes behind the end of workspace 0, which has 100 bytes" },
                 { allocates, "allocated during a run, 2 times" },
                 { nothing, NULL } };
    static const char *const device[] = { "cpu", "reference" };
    for (uint32_t i = 0; i < 2 * sizeof each / sizeof each[0]; i++) {
        sinter_plugins *r = plugin_set_new();
        sinter_plugin p = usual("Offends");
        p.run = each[i / 2].run;
        p.workspace = some_workspace;
        CHECK_EQ(sinter_plugins_add(r, &p, NULL), SINTER_OK);
        const sinter_env_options given = { .struct_size = sizeof given, .plugins = r };
        const sinter_engine_options o = { .struct_size = sizeof o, .env = &given };
        sinter_buffer built =
            model_build("in x f32 2,3; y = Offends x; out y", (model_device){ .kind = device[i % 2], .plugins = r });
        sinter_plugins_check(r, 1);
        sinter_engine *g = NULL;
        sinter_context *c = NULL;
        sinter_error error = { 0 };
        float x[6] = { 1, 2, 3, 4, 5, 6 };
        const sinter_tensor in = { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { 2, 3 }, .data = x };
        const sinter_context_options lazy = { .struct_size = sizeof lazy, .lazy = 1 };
        CHECK_EQ(sinter_engine_load_memory(built.data, built.size, &o, &g, &error), SINTER_OK);
        CHECK_EQ(sinter_context_create(g, &lazy, &c, &error), SINTER_OK);
        CHECK_EQ(sinter_context_set_input(c, "x", &in, &error), SINTER_OK);
        CHECK_EQ(sinter_context_run(c, &error), each[i / 2].text ? SINTER_INTERNAL : SINTER_OK);
        if (each[i / 2].text) CHECK_HAS(error.text, each[i / 2].text);
        sinter_context_destroy(c);
        sinter_engine_release(g);
        sinter_buffer_free(&built);
        sinter_plugins_destroy(r);
    }
    /* Checked plugins that do nothing wrong give the same results. */
    sinter_plugins *r = plugin_set_new();
    sinter_plugins_check(r, 1);
    same(r, "sym N 1 3 9; in x f32 N,40; a = Relu x; b = Mul a #2.5; c = Add b #0.5; y = Neg c; out y", scaled);
    same(r, "sym N 0 2 5; in x f32 N,3,7; m = ReduceMean x {-1}; y = Sub x m; out y",
         "sym N 0 2 5; in x f32 N,3,7; y = CustomKernel x; out y");
    sinter_plugins_destroy(r);
}

/* ---- memory ---- */

static void memory_runs_out(void)
{
    sinter_plugins *r = plugin_set_new();
    model_text m;
    model_read("in x f32 2,6; a = CustomPlugin x scale=2.0; y = CustomPairs a; out y", &m);
    long survived = 0;
    for (long n = 0; n < 3000 && !survived; n++) {
        faulty f = { .budget = n };
        const sinter_allocator allocator = { &f, faulty_resize };
        const sinter_env_options given = { .struct_size = sizeof given, .allocator = &allocator, .plugins = r };
        sinter_build_options o = SINTER_BUILD_OPTIONS;
        sinter_engine_options load = { .struct_size = sizeof load, .env = &given, .threads = 1 };
        sinter_error error = { 0 };
        sinter_buffer built = { 0 };
        sinter_engine *g = NULL;
        sinter_context *c = NULL;
        o.env = &given;
        o.tune = SINTER_TUNE_OFF;
        o.threads = 1;
        sinter_status s = sinter_build_memory(m.model.at, m.model.size, &o, &built, &error);
        if (!s) s = sinter_engine_load_memory(built.data, built.size, &load, &g, &error);
        if (!s) s = sinter_context_create(g, NULL, &c, &error);
        survived += s == SINTER_OK;
        if (!CHECK(s == SINTER_OK || s == SINTER_NO_MEMORY)) printf("request %ld: %s\n", n, error.text);
        sinter_context_destroy(c);
        sinter_engine_release(g);
        sinter_buffer_free(&built);
        CHECK_EQ(f.live, 0);
        CHECK_EQ(f.misuse, 0);
    }
    CHECK(survived);
    for (long n = 0; n < 100; n++) {
        faulty f = { .budget = n };
        const sinter_allocator allocator = { &f, faulty_resize };
        const sinter_env_options given = { .struct_size = sizeof given, .allocator = &allocator };
        sinter_plugins *own = NULL;
        sinter_status s = sinter_plugins_create(&given, &own, NULL);
        for (uint32_t i = 0; i < PLUGIN_SET_COUNT && !s; i++) s = sinter_plugins_add(own, &plugin_set[i], NULL);
        CHECK(s == SINTER_OK || s == SINTER_NO_MEMORY);
        sinter_plugins_destroy(own);
        CHECK_EQ(f.live, 0);
        if (!s) break;
    }
    free(m.model.at);
    sinter_plugins_destroy(r);
}

static const test tests[] = { T(registry_checks),     T(models_agree),       T(fields_and_sizes),
                              T(models_are_refused),  T(failures_are_named), T(engines_need_their_plugins),
                              T(offenders_are_named), T(memory_runs_out),    { 0 } };
TEST_MAIN(tests)
