/* SPDX-License-Identifier: Apache-2.0 */
/* test_tune_prologue.c - whether a product keeps its prologue: on a backend whose kernels cost what the test says, by
 * the model and by measured times (which a timing cache holds: nothing is run). */
#include "ir/graph.h"
#include "opt/pipeline.h"
#include "test.h"
#include "tune/tune.h"

/* ---- a backend: one kernel for products as they are, one for those with a prologue, one for programs ---- */

enum { MADE, PLAIN, PROGRAM, KINDS };
typedef struct prices {
    double model[KINDS];
} prices;
static double price_at[KINDS]; /* of the one test that runs */

static const char *reject_made(const problem *p, const kernel_target *t)
{
    (void)t;
    return p->op == OP_matmul && p->prologue ? NULL : "no product with a prologue";
}
static const char *reject_plain(const problem *p, const kernel_target *t)
{
    (void)t;
    return p->op == OP_matmul && !p->prologue ? NULL : "no product";
}
static const char *reject_program(const problem *p, const kernel_target *t)
{
    (void)t;
    return p->op == OP_pointwise ? NULL : "no program";
}
static const char *reject_none(const problem *p, const kernel_target *t)
{
    (void)p, (void)t;
    return NULL;
}

static void one_tactic(const problem *p, const kernel_target *t, tactic_sink *out)
{
    (void)p, (void)t;
    out->at[out->count++] = (tactic){ { 0 } };
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t, (void)target;
    return price_at[p->op == OP_pointwise ? PROGRAM : p->prologue ? MADE : PLAIN];
}

#define ROW(id, rejects)                                                                                               \
    static const kernel id = { .name = #id, .abi = 1, .reject = rejects, .tactics = one_tactic, .cost_ns = cost_ns }
ROW(made, reject_made);
ROW(plain, reject_plain);
ROW(program_row, reject_program);
ROW(reference, reject_none);
static const kernel *const rows[] = { &made, &plain, &program_row, &reference };

static const kernel *const *kernels(uint32_t *count)
{
    *count = 4;
    return rows;
}
static void target(const device *d, kernel_target *out)
{
    (void)d;
    *out = (kernel_target){ .threads = 1, .bandwidth = 1e12 };
}
static void describe(const device *d, text *out)
{
    (void)d;
    text_printf(out, "none");
}
static const backend none = { .name = "none", .target = target, .kernels = kernels, .describe = describe };

/* ---- plans ---- */

static const char graph_text[] =
    "input %1: f32[8,16] name=\"x\"\ninput %2: f32[16] name=\"g\"\n"
    "const %3: f32[16,2] = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5}\n"
    "%4 = mul(%1, %2)\n%5 = matmul(%4, %3)\n%6 = relu(%5)\noutput %6 name=\"y\"\n";
static const char pro[] = "pro=\"a=load 0; b=load 2; c=mul a b : f32; store 0 c\"";

/* Kernels of the plan's steps, one after the other; `times`: lines of a timing cache, NULL: nothing is measured. */
static void planned(const prices *price, const char *const *times, const double *ns, bool takes_prologues, text *out)
{
    sinter_error error = { 0 };
    static env e; /* text that this function gives is freed by its caller */
    arena a;
    ir_graph *g;
    timing_cache *cache;
    env_init(&e, NULL, &error);
    arena_init(&a, &e);
    text_init(out, &e);
    memcpy(price_at, price->model, sizeof price_at);
    if (!CHECK_EQ(ir_parse(&e, graph_text, strlen(graph_text), &g), SINTER_OK)) return;
    const opt_options o = { .math = OPT_MATH_FP32, .prologues = takes_prologues };
    opt_state state = { .e = &e, .g = g, .o = &o };
    CHECK_EQ(pass_groups(&state), SINTER_OK);
    CHECK_EQ(timing_cache_create(&e, &cache), SINTER_OK);
    for (uint32_t i = 0; times && i < KINDS; i++) CHECK_EQ(timing_cache_add(cache, times[i], ns[i]), SINTER_OK);
    const tune_options options = {
        .backend = &none, .mode = times ? TUNE_FAST : TUNE_OFF, .threads = 1, .cache_only = true, .cache = cache
    };
    tune_result result;
    if (!CHECK_EQ(tune_graph(&e, &a, g, &options, &result), SINTER_OK)) printf("%s\n", error.text);
    else
        for (uint32_t i = 1; i < result.plan->step.count; i++) {
            const plan_step *s = &result.plan->step.at[i];
            text_printf(out, "%s%s/%u", i > 1 ? " " : "", ((const kernel *)s->kernel)->name, s->count_in);
        }
    timing_cache_destroy(cache);
    arena_deinit(&a);
    ir_graph_destroy(g);
}

static void by_the_model(void)
{
    text t;
    planned(&(prices){ { 5000, 3000, 2500 } }, NULL, NULL, true, &t);
    CHECK_STR(t.at, "made/3");
    text_deinit(&t);
    planned(&(prices){ { 6000, 3000, 2500 } }, NULL, NULL, true, &t);
    CHECK_STR(t.at, "program_row/2 plain/2");
    text_deinit(&t);
    planned(&(prices){ { 5000, 3000, 2500 } }, NULL, NULL, false, &t);
    CHECK_STR(t.at, "program_row/2 plain/2");
    text_deinit(&t);
}

static void by_the_clock(void)
{
    text t;
    static const char *const times[KINDS] = {
        "matmul:f32[8,16] w:f32[16,2] + f32[16] -> f32[8,2] PRO epi=\"a=acc; b=relu a : f32; store 0 b\" | none",
        "matmul:f32[8,16] w:f32[16,2] -> f32[8,2] epi=\"a=acc; b=relu a : f32; store 0 b\" | none",
        "pointwise:f32[8,16] f32[16] -> f32[8,16] epi=\"a=load 0; b=load 1; c=mul a b : f32; store 0 c\" | none",
    };
    static const char *const row[KINDS] = { "made", "plain", "program_row" };
    char key[KINDS][300];
    const char *key_at[KINDS];
    for (uint32_t i = 0; i < KINDS; i++) {
        const char *at = strstr(times[i], "PRO");
        const int head = at ? (int)(at - times[i]) : (int)strlen(times[i]);
        (void)snprintf(key[i], sizeof key[i], "%.*s%s%s | 1 threads | %s.1", head, times[i], at ? pro : "",
                       at ? at + 3 : "", row[i]);
        key_at[i] = key[i];
    }
    /* The model errs both ways. */
    planned(&(prices){ { 6000, 3000, 2500 } }, key_at, (const double[]){ 4000, 3000, 2000 }, true, &t);
    CHECK_STR(t.at, "made/3");
    text_deinit(&t);
    planned(&(prices){ { 5000, 3000, 2500 } }, key_at, (const double[]){ 5500, 3000, 2000 }, true, &t);
    CHECK_STR(t.at, "program_row/2 plain/2");
    text_deinit(&t);
    /* What costs several times the other is not asked for. */
    planned(&(prices){ { 60000, 3000, 2500 } }, key_at, (const double[]){ 1, 3000, 2000 }, true, &t);
    CHECK_STR(t.at, "program_row/2 plain/2");
    text_deinit(&t);
}

static const test tests[] = { T(by_the_model), T(by_the_clock), { 0 } };

TEST_MAIN(tests)
