/* SPDX-License-Identifier: Apache-2.0 */
/* test_rules.c - each rewrite rule against its file tests/rules/<name>.txt.
 *
 * A file has sections that begin with a line "before:", "after:" or "not:". The rule, alone, turns each before into the
 * after that follows (compared as text, numbered anew), both compute the same in the rule's class from random and from
 * special inputs, and the rule leaves each not alone. All of them keep their bits when the pipeline runs in exact math.
 * A rule without a file, without a firing or without a near miss fails. SINTER_BLESS=1 writes the after sections from
 * what happened. */
#include "base/os.h"
#include "graph_eval.h"
#include "opt/rewrite.h"
#include "places.h"
#include "test.h"

static const rule *const tables[] = { rules_shape,      rules_arith, rules_linear,
                                      rules_activation, rules_norm,  rules_attention,
                                      rules_strength,   rules_sink,  rules_integer,
                                      rules_requantize, NULL };

typedef struct section {
    const char *at;
    size_t size;
    char kind;
} section; /* b, a, n; c: what comes before the first */

static uint32_t split(const char *at, size_t size, section *out, uint32_t max)
{
    uint32_t count = 0;
    const char *end = at + size;
    section current = { at, 0, 'c' };
    for (const char *line = at; line < end;) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        next = next ? next + 1 : end;
        const char kind = !strncmp(line, "before:", 7)  ? 'b'
                          : !strncmp(line, "after:", 6) ? 'a'
                          : !strncmp(line, "not:", 4)   ? 'n'
                                                        : 0;
        if (kind) {
            current.size = (size_t)(line - current.at);
            if (count < max) out[count++] = current;
            current = (section){ next, 0, kind };
        }
        line = next;
    }
    current.size = (size_t)(end - current.at);
    if (count < max) out[count++] = current;
    return count;
}

static void print_anew(env *e, const ir_graph *g, text *out)
{
    text first;
    text_init(&first, e);
    ir_print(g, &first);
    ir_graph *again;
    if (CHECK(ir_parse(e, first.at, first.length, &again) == SINTER_OK)) {
        ir_print(again, out);
        ir_graph_destroy(again);
    } else {
        printf("%s\nof\n%s", e->error->text, first.at);
    }
    text_deinit(&first);
}

static void count_firing(void *user, const char *name)
{
    (void)name;
    ++*(int *)user;
}

static int run_rule(env *e, ir_graph *g, const rule *x)
{
    int fired = 0;
    const rule alone[2] = { *x, { 0 } };
    const opt_options o = { .math = x->numerics == EXACT ? OPT_MATH_EXACT : OPT_MATH_FP32,
                            .fired = count_firing,
                            .fired_user = &fired };
    opt_state s = { .e = e, .g = g, .o = &o };
    if (!CHECK(opt_rules_run(&s, (const rule *const[]){ alone, NULL }) == SINTER_OK)) printf("%s\n", e->error->text);
    if (!CHECK(ir_verify(g, IR_STAGE_OPTIMIZED) == SINTER_OK)) printf("%s\n", e->error->text);
    return fired;
}

static double within(sinter_dtype dtype)
{
    return dtype == SINTER_DTYPE_F16 ? 4e-3 : dtype == SINTER_DTYPE_BF16 ? 3e-2 : dtype_is_float(dtype) ? 2e-5 : 0;
}

/* These may give a zero of either sign where zeros of both meet (docs/numerics.md). */
static bool leaves_signs(const ir_graph *g)
{
    for (ir_node_id n = 1; n < g->node.count; n++) {
        const op_id op = (op_id)g->node.at[n].op;
        if (op == OP_min || op == OP_max || op == OP_clip || op == OP_max_pool) return true;
    }
    return false;
}

/* Sums in another order are the same products: a last bit may differ, and far more where numbers are far apart. */
static bool has_sums(const ir_graph *g)
{
    for (ir_node_id n = 1; n < g->node.count; n++)
        if (op_at((op_id)g->node.at[n].op)->traits & CONTRACTION) return true;
    return false;
}

static bool compare_runs(env *e, const ir_graph *before, const ir_graph *after, rule_numerics numerics, uint64_t seed,
                         bool is_special)
{
    arena a;
    arena_init(&a, e);
    view in[16] = { { 0 } }, x[16] = { { 0 } }, y[16] = { { 0 } };
    bool ok = CHECK(graph_inputs(before, seed, &a, in) == SINTER_OK);
    if (ok && is_special) graph_inputs_special(before, seed, numerics == EXACT && !has_sums(before), in);
    ok = ok && CHECK(graph_eval(before, in, &a, x) == SINTER_OK) && CHECK(graph_eval(after, in, &a, y) == SINTER_OK);
    if (!ok) printf("%s\n", e->error->text);
    for (uint32_t i = 0; ok && i < ir_region_at(before, IR_MAIN)->result.count; i++) {
        if (numerics == EXACT && has_sums(before)) ok = CHECK_NEAR(graph_gap(&y[i], &x[i]), 0, 2e-7);
        else if (numerics == EXACT) ok = CHECK(graph_same(&y[i], &x[i], !leaves_signs(before)));
        else ok = CHECK_NEAR(graph_gap(&y[i], &x[i]), 0, within(x[i].dtype));
    }
    if (!ok) printf("on %s inputs, seed %u\n", is_special ? "special" : "random", (unsigned)seed);
    arena_deinit(&a);
    return ok;
}

/* Of infinities these make another NaN or zero than what they replace (docs/numerics.md). */
static bool wants_finite(const rule *x)
{
    return !strcmp(x->name, "softmax") || !strcmp(x->name, "attention");
}

/* EXACT: equal bits. REASSOC: near, and the same infinities and NaN. */
static void compare_all(env *e, const ir_graph *before, const ir_graph *after, rule_numerics numerics, bool special)
{
    const long seeds = test_scale(20, 2000);
    bool ok = true;
    for (long seed = 1; seed <= seeds && ok; seed++)
        ok = compare_runs(e, before, after, numerics, (uint64_t)seed, false) &&
             (!special || compare_runs(e, before, after, numerics, (uint64_t)seed, true));
}

/* The passes before the groups, which round less than single nodes do. */
static void run_exact(env *e, const char *at, size_t size)
{
    ir_graph *before, *after;
    if (!CHECK(ir_parse(e, at, size, &before) == SINTER_OK)) return;
    CHECK(ir_parse(e, at, size, &after) == SINTER_OK);
    const opt_options o = { .math = OPT_MATH_EXACT, .integers = true, .verify = true, .stop_after = "cse-again" };
    if (CHECK(opt_run(e, after, &o) == SINTER_OK)) compare_all(e, before, after, EXACT, true);
    ir_graph_destroy(after);
    ir_graph_destroy(before);
}

static void run_file(const rule *x, bool bless)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/tests/rules/%s.txt", PLACE_SOURCE_DIR, x->name);
    sinter_error error = { 0 };
    env e;
    env_init(&e, NULL, &error);
    os_file file;
    if (!CHECK(os_file_read(&e, path, 1 << 20, &file) == SINTER_OK)) {
        printf("rule %s has no file: %s\n", x->name, error.text);
        return;
    }
    section s[64];
    const uint32_t count = split((const char *)file.data, file.size, s, 64);
    uint32_t fired = 0, missed = 0;
    text blessed;
    text_init(&blessed, &e);
    const int failures = test_failures;
    for (uint32_t i = 0; i < count; i++) {
        if (s[i].kind == 'c') text_append(&blessed, s[i].at, s[i].size);
        if (s[i].kind == 'c' || s[i].kind == 'a') continue;
        text_printf(&blessed, "%s:\n", s[i].kind == 'b' ? "before" : "not");
        text_append(&blessed, s[i].at, s[i].size);
        ir_graph *g, *same;
        memset(&error, 0, sizeof(error));
        if (!CHECK(ir_parse(&e, s[i].at, s[i].size, &g) == SINTER_OK)) {
            printf("%s section %u: %s\n", x->name, i, error.text);
            continue;
        }
        CHECK(ir_parse(&e, s[i].at, s[i].size, &same) == SINTER_OK);
        run_exact(&e, s[i].at, s[i].size);
        const int firings = run_rule(&e, g, x);
        if (s[i].kind == 'n') {
            CHECK_EQ(firings, 0);
            missed++;
        } else if (CHECK(firings > 0)) {
            fired++;
            compare_all(&e, same, g, x->numerics, !wants_finite(x));
            text got, want;
            text_init(&got, &e);
            text_init(&want, &e);
            print_anew(&e, g, &got);
            text_printf(&blessed, "after:\n%s", got.at);
            if (!bless && CHECK(i + 1 < count && s[i + 1].kind == 'a')) {
                text_append(&want, s[i + 1].at, s[i + 1].size);
                CHECK_STR(got.at, want.at);
            }
            text_deinit(&got);
            text_deinit(&want);
        }
        ir_graph_destroy(same);
        ir_graph_destroy(g);
    }
    CHECK(fired > 0);
    CHECK(missed > 0);
    if (test_failures != failures) printf("in %s\n", path);
    else if (bless) CHECK(os_file_write(&e, path, NULL, blessed.at, blessed.length) == SINTER_OK);
    text_deinit(&blessed);
    os_file_close(&e, &file);
}

static void every_rule(void)
{
    const bool bless = getenv("SINTER_BLESS") != NULL;
    for (const rule *const *t = tables; *t; t++)
        for (const rule *x = *t; x->name; x++) run_file(x, bless);
}

static const test tests[] = { T(every_rule), { 0 } };
TEST_MAIN(tests)
