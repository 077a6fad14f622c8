/* SPDX-License-Identifier: Apache-2.0 */
/* test_rules.c - each rewrite rule against its file tests/rules/<name>.txt.
 *
 * A file has sections that begin with a line "before:", "after:" or "not:". The rule, alone, turns each before into the
 * after that follows (compared as text, numbered anew), both compute the same in the rule's class from random and from
 * special inputs, and the rule leaves each not alone. All of them keep their bits when the pipeline runs in exact math.
 * A rule without a file, without a firing or without a near miss fails. SINTER_BLESS=1 writes the after sections from
 * what happened.
 *
 * Each section is also varied: in other types, with each of its sizes as 0 and as 1, and with one input in the place of
 * another of its type. What still parses is a graph to which the rule may say yes or no; where it fires, and in the
 * pipeline of exact math, the same has to hold. */
#include "base/os.h"
#include "graph_eval.h"
#include "opt/rewrite.h"
#include "places.h"
#include "test.h"

#include <ctype.h>
#include <math.h>

static const rule *const tables[] = { rules_shape,      rules_arith,    rules_linear, rules_activation,  rules_norm,
                                      rules_attention,  rules_strength, rules_sink,   rules_integer,     rules_unsigned,
                                      rules_requantize, rules_move,     rules_turn,   rules_sink_turned, NULL };

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
    return dtype == SINTER_DTYPE_F16 ? 2e-2 : dtype == SINTER_DTYPE_BF16 ? 0.15 : dtype_is_float(dtype) ? 2e-5 : 0;
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

static bool has_op(const ir_graph *g, op_id op)
{
    for (ir_node_id n = 1; n < g->node.count; n++)
        if (g->node.at[n].op == op && !g->node.at[n].is_dead) return true;
    return false;
}

/* Sums in another order are the same products: a last bit may differ, and far more where numbers are far apart. */
static bool has_sums(const ir_graph *g)
{
    for (ir_node_id n = 1; n < g->node.count; n++)
        if (op_at((op_id)g->node.at[n].op)->traits & CONTRACTION) return true;
    return false;
}

/* Attention makes 0 of a row whose scores are all minus infinity, where softmax makes NaN. */
static void forgive_masked(const view *before, const view *after)
{
    int64_t i[SINTER_RANK_MAX];
    for (bool more = view_first(after->dim, after->rank, i); more; more = view_next(after->dim, after->rank, i)) {
        if (isnan(view_load_f64(before, view_offset(before, i))) && view_load_f64(after, view_offset(after, i)) == 0)
            view_store_f64(after, view_offset(after, i), (double)NAN);
    }
}

/* The largest difference between integers: their blends are rounded, and a tie goes either way. */
static double steps_apart(const view *a, const view *b)
{
    double most = 0;
    int64_t i[SINTER_RANK_MAX];
    for (bool more = view_first(a->dim, a->rank, i); more; more = view_next(a->dim, a->rank, i))
        most = fmax(most, fabs(view_load_f64(a, view_offset(a, i)) - view_load_f64(b, view_offset(b, i))));
    return most;
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
        if (numerics == EXACT) continue;
        if (has_op(after, OP_attention) && dtype_is_float(x[i].dtype)) forgive_masked(&x[i], &y[i]);
        if (has_op(before, OP_resize) && dtype_is_int(x[i].dtype) && graph_gap(&y[i], &x[i]) < INFINITY)
            ok = CHECK_NEAR(steps_apart(&y[i], &x[i]), 0, 1);
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
static bool compare_all(env *e, const ir_graph *before, const ir_graph *after, rule_numerics numerics, bool special,
                        long seeds)
{
    bool ok = true;
    for (long seed = 1; seed <= seeds && ok; seed++)
        ok = compare_runs(e, before, after, numerics, (uint64_t)seed, false) &&
             (!special || compare_runs(e, before, after, numerics, (uint64_t)seed, true));
    return ok;
}

static long seeds_of_file(void)
{
    return test_scale(20, 2000);
}

/* The passes before the groups, which round less than single nodes do. */
static bool run_exact(env *e, const char *at, size_t size, long seeds)
{
    ir_graph *before, *after;
    bool ok = CHECK(ir_parse(e, at, size, &before) == SINTER_OK);
    if (!ok) return false;
    CHECK(ir_parse(e, at, size, &after) == SINTER_OK);
    const opt_options o = { .math = OPT_MATH_EXACT, .integers = true, .verify = true, .stop_after = "cse-again" };
    ok = CHECK(opt_run(e, after, &o) == SINTER_OK);
    if (!ok) printf("%s\n", e->error->text);
    else ok = compare_all(e, before, after, EXACT, true, seeds);
    ir_graph_destroy(after);
    ir_graph_destroy(before);
    return ok;
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
        (void)run_exact(&e, s[i].at, s[i].size, seeds_of_file());
        const int firings = run_rule(&e, g, x);
        if (s[i].kind == 'n') {
            CHECK_EQ(firings, 0);
            missed++;
        } else if (CHECK(firings > 0)) {
            fired++;
            (void)compare_all(&e, same, g, x->numerics, !wants_finite(x), seeds_of_file());
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

/* ---- variants ---- */

typedef struct varied {
    const rule *x;
    env *e;
    long parsed, fired;
} varied;

/* A size that was written down may not be that of its node any more: then the graph does not run. */
static bool is_valid(env *e, const ir_graph *g)
{
    arena a;
    arena_init(&a, e);
    view in[16] = { { 0 } }, out[16] = { { 0 } };
    const bool ok = graph_inputs(g, 1, &a, in) == SINTER_OK && graph_eval(g, in, &a, out) == SINTER_OK;
    arena_deinit(&a);
    *e->error = (sinter_error){ 0 };
    return ok;
}

/* What a variant may be: the rule alone in its class, and all rules in exact math. */
static void run_variant(varied *v, const text *graph, const char *what)
{
    ir_graph *g = NULL, *same = NULL;
    *v->e->error = (sinter_error){ 0 };
    if (ir_parse(v->e, graph->at, graph->length, &g) == SINTER_OK && is_valid(v->e, g)) {
        const int failures = test_failures;
        v->parsed++;
        CHECK(ir_parse(v->e, graph->at, graph->length, &same) == SINTER_OK);
        if (run_rule(v->e, g, v->x)) {
            v->fired++;
            (void)compare_all(v->e, same, g, v->x->numerics, !wants_finite(v->x), test_scale(3, 50));
        }
        (void)run_exact(v->e, graph->at, graph->length, test_scale(3, 50));
        if (test_failures != failures) printf("rule %s, %s:\n%s\n", v->x->name, what, graph->at);
        ir_graph_destroy(same);
    }
    ir_graph_destroy(g);
}

/* The text with each `from` as `to`, where it stands as a word. */
static void put_words(text *out, const char *at, size_t size, const char *from, const char *to)
{
    const size_t length = strlen(from);
    for (size_t i = 0; i < size; i++) {
        const bool is_start = !i || !isalnum((unsigned char)at[i - 1]);
        const bool is_word = is_start && i + length <= size && !memcmp(at + i, from, length) &&
                             (i + length == size || !isalnum((unsigned char)at[i + length]));
        if (is_word) text_append(out, to, strlen(to));
        else text_append(out, at + i, 1);
        if (is_word) i += length - 1;
    }
}

/* A list of sizes, the size `from` as `to`. Gives the count of elements. */
static long put_sizes(text *out, const char **at, long from, long to)
{
    long count = 1;
    while (**at != ']') {
        char *end;
        const long size = strtol(*at, &end, 10);
        if (end == *at) { /* a symbol, or what joins */
            text_append(out, (*at)++, 1);
            continue;
        }
        text_printf(out, "%ld", size == from ? to : size);
        count *= size == from ? to : size;
        *at = end;
    }
    return count;
}

/* Sizes stand behind the name of a type, and in shape=[...]; lists of constants lose what is too much. */
static void put_resized(text *out, const char *at, size_t size, long from, long to)
{
    const char *const end = at + size;
    long count = 0;
    while (at < end) {
        const bool is_list = *at == '[' && (isalnum((unsigned char)at[-1]) || (at[-1] == '=' && at[-2] == 'e'));
        const bool is_data = *at == '{';
        text_append(out, at++, 1);
        if (is_list) count = put_sizes(out, &at, from, to);
        for (long i = 0; is_data && *at != '}'; at++) {
            i += *at == ',';
            if (i < count) text_append(out, at, 1);
        }
    }
}

/* The id and the type of each input: "input %1: f32[2,3] name=...". */
typedef struct input_line {
    char id[16], type[64];
} input_line;

static uint32_t inputs_of(const char *at, size_t size, input_line *out, uint32_t max)
{
    uint32_t count = 0;
    for (const char *line = at; line && line < at + size && count < max; line = strchr(line, '\n'), line += !!line) {
        if (sscanf(line, "input %15[^:]: %63s", out[count].id, out[count].type) == 2) count++;
        if (!strchr(line, '\n')) break;
    }
    return count;
}

/* In the place of input `from` its readers have `to`; the line that declares it stays. */
static void put_tied(text *out, const char *at, size_t size, const char *from, const char *to)
{
    for (const char *line = at, *next; line < at + size; line = next) {
        next = memchr(line, '\n', (size_t)(at + size - line));
        next = next ? next + 1 : at + size;
        if (!strncmp(line, "input ", 6)) text_append(out, line, (size_t)(next - line));
        else put_words(out, line, (size_t)(next - line), from + 1, to + 1);
    }
}

static void vary_types(varied *v, const char *at, size_t size)
{
    static const char *const types[] = { "f16", "bf16", "f64", "i32", "i64", "u8" };
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        text graph;
        text_init(&graph, v->e);
        put_words(&graph, at, size, "f32", types[i]);
        run_variant(v, &graph, types[i]);
        text_deinit(&graph);
    }
}

static void vary_sizes(varied *v, const char *at, size_t size)
{
    for (long from = 1; from <= 64; from++) {
        char digits[24];
        (void)snprintf(digits, sizeof digits, "%ld", from);
        text without;
        text_init(&without, v->e);
        put_words(&without, at, size, digits, "");
        const bool is_there = without.length != size;
        text_deinit(&without);
        for (long to = 0; to < 2 && is_there; to++) {
            char what[64];
            text graph;
            text_init(&graph, v->e);
            put_resized(&graph, at, size, from, to);
            (void)snprintf(what, sizeof what, "size %ld as %ld", from, to);
            run_variant(v, &graph, what);
            text_deinit(&graph);
        }
    }
}

static void vary_ties(varied *v, const char *at, size_t size)
{
    input_line in[16];
    const uint32_t count = inputs_of(at, size, in, COUNT_OF(in));
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < count; k++) {
            if (i == k || strcmp(in[i].type, in[k].type) != 0) continue;
            text graph;
            text_init(&graph, v->e);
            put_tied(&graph, at, size, in[i].id, in[k].id);
            run_variant(v, &graph, "two inputs are one");
            text_deinit(&graph);
        }
    }
}

static void every_rule_varied(void)
{
    long parsed = 0, fired = 0;
    for (const rule *const *t = tables; *t; t++) {
        for (const rule *x = *t; x->name; x++) {
            char path[512];
            (void)snprintf(path, sizeof(path), "%s/tests/rules/%s.txt", PLACE_SOURCE_DIR, x->name);
            sinter_error error = { 0 };
            env e;
            env_init(&e, NULL, &error);
            varied v = { .x = x, .e = &e };
            os_file file;
            section s[64];
            if (!CHECK(os_file_read(&e, path, 1 << 20, &file) == SINTER_OK)) continue;
            const uint32_t count = split((const char *)file.data, file.size, s, 64);
            for (uint32_t i = 0; i < count; i++) {
                if (s[i].kind != 'b' && s[i].kind != 'n') continue;
                vary_types(&v, s[i].at, s[i].size);
                vary_sizes(&v, s[i].at, s[i].size);
                vary_ties(&v, s[i].at, s[i].size);
            }
            os_file_close(&e, &file);
            parsed += v.parsed;
            fired += v.fired;
        }
    }
    printf("%ld variants, the rule fires in %ld\n", parsed, fired);
    CHECK(parsed > 1000);
    CHECK(fired > 300);
}

static const test tests[] = { T(every_rule), T(every_rule_varied), { 0 } };
TEST_MAIN(tests)
