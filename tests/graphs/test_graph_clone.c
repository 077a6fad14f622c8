/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph_clone.c - a clone is the graph: it prints the same, changes alone, and gives the same engine bytes.
 *
 * Random models are imported once. Clones are optimised, and lowered by builds; the graph that they came from must
 * print as before, and the last build, which takes the graph itself, must write what a build from a clone wrote. */
#include "backend/backend.h"
#include "builder/begin.h"
#include "engine/engine.h"
#include "graph_ops.h"
#include "test.h"

static text printed(env *e, const ir_graph *g)
{
    text t;
    text_init(&t, e);
    ir_print(g, &t);
    return t;
}

static bool is_same(const char *what, const text *a, const text *b)
{
    if (CHECK(a->length == b->length && !memcmp(a->at, b->at, a->length))) return true;
    printf("  %s\n--- before\n%s--- after\n%s", what, a->at, b->at);
    return false;
}

/* A clone goes through the rest of the passes; the graph does not notice. */
static bool clones_alone(env *e, ir_graph *g)
{
    ir_graph *clone = NULL, *second = NULL;
    text before = printed(e, g), copy = { 0 }, after = { 0 }, again = { 0 };
    bool ok = CHECK(ir_graph_clone(g, &clone) == SINTER_OK);
    if (ok) copy = printed(e, clone);
    ok = ok && is_same("a clone", &before, &copy) && CHECK(ir_verify(clone, IR_STAGE_OPTIMIZED) == SINTER_OK);
    const opt_options o = { .math = OPT_MATH_FP32, .integers = true, .prologues = true, .verify = true };
    ok = ok && CHECK(opt_run(e, clone, &o) == SINTER_OK);
    if (ok) after = printed(e, g);
    ok = ok && is_same("the graph, once its clone was optimised", &before, &after);
    /* A clone of what has groups, dead nodes and recipes. */
    text_deinit(&copy);
    copy = (text){ 0 };
    ok = ok && CHECK(ir_graph_clone(clone, &second) == SINTER_OK);
    if (ok) copy = printed(e, clone), again = printed(e, second);
    ok = ok && is_same("a clone of a clone", &copy, &again) && CHECK(ir_verify(second, IR_STAGE_GROUPED) == SINTER_OK);
    ir_graph_destroy(second);
    ir_graph_destroy(clone);
    text_deinit(&before);
    text_deinit(&copy);
    text_deinit(&after);
    text_deinit(&again);
    return ok;
}

static bool build_of(env *e, build_base *base, sinter_build_options *o, uint32_t allow, bool is_last, build_output *out)
{
    build_lowering l = { .is_last = is_last, .moved = -1 };
    const uint32_t asked = o->allow;
    o->allow = allow;
    const sinter_status s = build_once(e, base, o, &l, out);
    o->allow = asked;
    if (l.narrow.is_kept) mem_free(e, l.narrow.is_kept, l.narrow.size, 1);
    return CHECK(s == SINTER_OK);
}

static bool builds_alike(env *e, const gmodel *m, long *count)
{
    const bytes model = gmodel_onnx(m);
    const build_model file = { .bytes = model.at, .size = model.size, .name = "m" };
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    o.tune = SINTER_TUNE_OFF;
    o.threads = 1;
    build_base *base = NULL;
    build_output from_clone = { 0 }, lowered = { 0 }, from_graph = { 0 };
    /* Sizes of 1, which symbols become here, do not suit each model. */
    bool ok = true;
    if (build_begin(e, &file, &o, &base) == SINTER_OK) {
        (*count)++;
        ok = clones_alone(e, base->g) && build_of(e, base, &o, 0, false, &from_clone) &&
             build_of(e, base, &o, SINTER_ALLOW_FP16, false, &lowered) && build_of(e, base, &o, 0, true, &from_graph) &&
             CHECK_EQ(from_clone.size, from_graph.size) &&
             CHECK(!memcmp(from_clone.bytes, from_graph.bytes, from_graph.size)) && CHECK(!base->g);
    }
    build_output *const out[] = { &from_clone, &lowered, &from_graph };
    for (uint32_t i = 0; i < COUNT_OF(out); i++)
        if (out[i]->bytes) mem_free(e, out[i]->bytes, out[i]->size, ENGINE_ALIGN);
    build_base_end(base);
    free(model.at);
    return ok;
}

static void clones_of_random_models(void)
{
    const long models = test_scale(250, 20000);
    long built = 0;
    for (long k = 0; k < models; k++) {
        sinter_error error = { 0 };
        env e;
        arena a;
        gmodel m;
        env_init(&e, NULL, &error);
        arena_init(&a, &e);
        gmodel_init(&m, &e, &a);
        const grow_options o = { .nodes = 24, .is_static = k % 4 != 0 };
        const bool ok = !grow_model(&m, 1000 + (uint64_t)k, &o) || builds_alike(&e, &m, &built);
        arena_deinit(&a);
        if (ok) continue;
        printf("  model %ld: %s\n", k, error.text);
        break;
    }
    CHECK(built * 2 > models);
}

static const test tests[] = { T(clones_of_random_models), { 0 } };
TEST_MAIN(tests)
