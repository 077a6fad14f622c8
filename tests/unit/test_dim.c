/* SPDX-License-Identifier: Apache-2.0 */
/* test_dim.c - dimension expressions: one id for equal ones, known simplifications, ranges, text, and random
 * expressions that must evaluate to what plain arithmetic says. */
#include "core/dim.h"
#include "core/dim_range.h"
#include "test.h"

typedef struct fixture {
    env e;
    arena a;
    dim_table *t;
} fixture;

static void setup(fixture *f)
{
    env_init(&f->e, NULL, NULL);
    arena_init(&f->a, &f->e);
    f->t = dim_table_create(&f->a);
}

static void teardown(fixture *f)
{
    arena_deinit(&f->a);
}

static dim parse(fixture *f, const char *s)
{
    scan at = scan_of(s, strlen(s));
    dim d = DIM_NONE;
    if (!dim_parse(f->t, &at, &d) || at.at != at.end) return DIM_NONE;
    return d;
}

static const char *print(fixture *f, dim d)
{
    text t;
    text_init(&t, &f->e);
    dim_print(f->t, d, &t);
    const char *own = arena_text(&f->a, t.at, t.length);
    text_deinit(&t);
    return own;
}

static void equal_expressions_have_one_id(void)
{
    static const char *const pair[][2] = {
        { "N+S", "S+N" },
        { "2*(N+1)", "2*N+2" },
        { "N*S*N", "N*N*S" },
        { "(N+1)*(N-1)", "N*N-1" },
        { "N-N", "0" },
        { "floordiv(8*N,4)", "2*N" },
        { "floordiv(N*S,S)", "N" },
        { "floordiv(N+8,4)", "floordiv(N,4)+2" },
        { "floordiv(2*N,4)", "floordiv(N,2)" },
        { "floordiv(floordiv(H,2),3)", "floordiv(H,6)" },
        { "floordiv(floordiv(H-1,2)+1-1,2)+1", "floordiv(H-1,4)+1" },
        { "ceildiv(H,2)", "floordiv(H+1,2)" },
        { "ceildiv(6*N,3)", "2*N" },
        { "mod(4*N,2)", "0" },
        { "mod(N+7,4)", "mod(N+3,4)" },
        { "mod(6*N,4)", "2*mod(3*N,2)" },
        { "min(N,N+1)", "N" },
        { "max(N,0)", "N" },
        { "max(N,S)", "max(S,N)" },
        { "max(max(N,S),N)", "max(N,S)" },
        { "floordiv(mod(N,4),4)", "0" },
        { "floordiv(-7,2)", "-4" },
        { "mod(-7,2)", "1" },
        { "ceildiv(-7,2)", "-3" },
        { "floordiv(N,-2)", "floordiv(-N,2)" },
        { "floordiv(N*S+N,N)", "S+1" },
        { "--N", "N" },
        { "floordiv((N+S)*(N+2),N+S)", "N+2" },
    };
    for (size_t i = 0; i < sizeof(pair) / sizeof(*pair); i++) {
        fixture f;
        setup(&f);
        const dim a = parse(&f, pair[i][0]), b = parse(&f, pair[i][1]);
        CHECK(a != DIM_NONE);
        if (a != b) (void)printf("%s is %s, %s is %s\n", pair[i][0], print(&f, a), pair[i][1], print(&f, b));
        CHECK_EQ(a, b);
        teardown(&f);
    }
}

static void text_round_trips(void)
{
    static const char *const form[] = {
        "2*S+1",    "floordiv(H-1,2)", "N*S-3*N",        "max(N,floordiv(S,2))", "-N",       "-3", "ceildiv(N,S)",
        "mod(N,S)", "\"a b\"*N",       "\"floordiv\"+1", "floordiv(N+S,S*S+1)",  "-2*N*S-1",
    };
    for (size_t i = 0; i < sizeof(form) / sizeof(*form); i++) {
        fixture f;
        setup(&f);
        const dim d = parse(&f, form[i]);
        CHECK(d != DIM_NONE);
        const char *own = print(&f, d);
        CHECK_EQ(parse(&f, own), d);
        fixture g;
        setup(&g);
        CHECK_STR(print(&g, parse(&g, own)), own);
        teardown(&g);
        teardown(&f);
    }
    fixture f;
    setup(&f);
    static const char *const bad[] = { "", "2*", "N+", "(N", "min(N)", "floordiv(N,2", "99999999999999999999", "*" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) CHECK_EQ(parse(&f, bad[i]), DIM_NONE);
    char deep[400];
    memset(deep, '(', sizeof(deep));
    scan s = scan_of(deep, sizeof(deep));
    dim d;
    CHECK(!dim_parse(f.t, &s, &d));
    CHECK(s.at == deep);
    teardown(&f);
}

static void ranges_follow_the_symbols(void)
{
    fixture f;
    setup(&f);
    const dim n = dim_symbol_named(f.t, "N"), h = dim_symbol_named(f.t, "H");
    CHECK_EQ(dim_symbol_named(f.t, "N"), n);
    dim_symbol_set(f.t, 0, &(dim_symbol){ .min = 1, .max = 8, .opt = 4, .divisor = 1 });
    dim_symbol_set(f.t, 1, &(dim_symbol){ .min = 32, .max = 640, .opt = 64, .divisor = 32 });
    dim_range r = dim_range_of(f.t, dim_mul(f.t, n, h));
    CHECK(r.min == 32 && r.max == 5120 && r.opt == 256 && r.divisor == 32);
    r = dim_range_of(f.t, dim_floordiv(f.t, h, dim_const(f.t, 8)));
    CHECK(r.min == 4 && r.max == 80 && r.opt == 8 && r.divisor == 4);
    CHECK(dim_is(f.t, dim_mod(f.t, h, dim_const(f.t, 16)), 0));
    CHECK_EQ(dim_max(f.t, n, h), h);
    dim_symbol_set(f.t, 0, &(dim_symbol){ .min = 1, .max = 6, .opt = 4, .divisor = 1 }); /* narrowed: known at once */
    CHECK_EQ(dim_range_of(f.t, dim_mul(f.t, n, h)).max, 3840);
    const dim free = dim_symbol_named(f.t, "free");
    r = dim_range_of(f.t, dim_mul(f.t, free, free));
    CHECK(r.min == 0 && r.max == INT64_MAX);
    const dim late = dim_symbol_late(f.t, "nz", dim_mul(f.t, n, h));
    CHECK(dim_is_late(f.t, dim_add(f.t, late, n)) && !dim_is_late(f.t, n));
    CHECK_EQ(dim_range_of(f.t, late).max, 3840);
    uint32_t symbol;
    CHECK(dim_symbol_of(f.t, h, &symbol) && symbol == 1);
    dim q;
    CHECK(dim_divide_exact(f.t, dim_mul(f.t, dim_const(f.t, 8), n), dim_const(f.t, 4), &q));
    CHECK_EQ(q, dim_mul(f.t, n, dim_const(f.t, 2)));
    CHECK(!dim_divide_exact(f.t, n, h, &q) && !dim_divide_exact(f.t, n, dim_const(f.t, 0), &q));
    CHECK_EQ(dim_add(f.t, DIM_NONE, n), DIM_NONE);
    teardown(&f);
}

static void overflow_and_zero_fail_in_evaluation(void)
{
    fixture f;
    setup(&f);
    const dim n = dim_symbol_named(f.t, "N");
    const dim big = dim_mul(f.t, dim_const(f.t, INT64_MAX), n), none = dim_floordiv(f.t, dim_const(f.t, 7), n);
    const dim over = dim_add(f.t, dim_const(f.t, INT64_MAX), dim_const(f.t, 1));
    CHECK(big && none && over && !dim_is_const(f.t, over, NULL));
    int64_t value[32], symbol[1] = { 2 };
    CHECK(dim_count(f.t) <= 32);
    CHECK(!dim_eval_all(dim_at(f.t, 0), dim_count(f.t), symbol, 1, value));
    CHECK(value[big] == INT64_MIN && value[over] == INT64_MIN && value[none] == 3);
    symbol[0] = 0;
    CHECK(!dim_eval_all(dim_at(f.t, 0), dim_count(f.t), symbol, 1, value));
    CHECK(value[none] == INT64_MIN && value[big] == 0);
    teardown(&f);
}

static void bounds_hold(void)
{
    fixture f;
    setup(&f);
    /* More terms and more factors than a polynomial holds: still right when evaluated. */
    dim sum = dim_const(f.t, 0), product = dim_const(f.t, 1);
    char name[16];
    for (int i = 0; i < 200; i++) {
        (void)snprintf(name, sizeof(name), "s%d", i);
        sum = dim_add(f.t, sum, dim_symbol_named(f.t, name));
        if (i < 20) product = dim_mul(f.t, product, dim_symbol_named(f.t, name));
    }
    const uint32_t count = dim_count(f.t);
    int64_t *value = calloc(count, sizeof(*value)), symbol[200];
    for (int i = 0; i < 200; i++) symbol[i] = i < 20 ? 2 : 3;
    CHECK(dim_eval_all(dim_at(f.t, 0), count, symbol, 200, value));
    CHECK_EQ(value[sum], 20 * 2 + 180 * 3);
    CHECK_EQ(value[product], 1 << 20);
    free(value);
    /* Nesting without end fails the table instead of the stack. */
    dim d = dim_symbol_named(f.t, "x");
    for (int i = 0; i < 1000 && d; i++) {
        d = dim_max(f.t, dim_mul(f.t, d, d), dim_symbol_named(f.t, i % 2 ? "y" : "z"));
    }
    CHECK(d == DIM_NONE && dim_table_failed(f.t));
    teardown(&f);
}

/* ---- random expressions against plain arithmetic ---- */

static uint64_t state = 1;

static uint32_t random_below(uint32_t bound)
{
    return (uint32_t)(test_random(&state) >> 33) % bound;
}

static int64_t floored(int64_t a, int64_t b)
{
    const int64_t q = a / b;
    return a % b && (a < 0) != (b < 0) ? q - 1 : q;
}

typedef struct pair {
    dim d;
    int64_t v;
} pair;

static int64_t broadcast(int64_t a, int64_t b)
{
    if (a == 1) return b;
    if (b == 1) return a;
    return a > b ? a : b;
}

static pair random_pair(fixture *f, const int64_t *symbol, int depth)
{
    static const char *const name[3] = { "A", "B", "C" };
    const uint32_t kind = depth ? random_below(13) : random_below(2);
    if (kind == 0) {
        const int64_t v = (int64_t)random_below(13) - 4;
        return (pair){ dim_const(f->t, v), v };
    }
    if (kind <= 2) {
        const uint32_t i = random_below(3);
        return (pair){ dim_symbol_named(f->t, name[i]), symbol[i] };
    }
    const pair a = random_pair(f, symbol, depth - 1);
    pair b = random_pair(f, symbol, depth - 1);
    if (kind >= 6 && kind <= 8) { /* divisors: never 0 */
        if (random_below(2)) {
            b.v = (int64_t)random_below(9) + 1;
            if (random_below(4) == 0) b.v = -b.v;
            b.d = dim_const(f->t, b.v);
        } else {
            const uint32_t i = random_below(3);
            b = (pair){ dim_add(f->t, dim_symbol_named(f->t, name[i]), dim_const(f->t, 1)), symbol[i] + 1 };
        }
    }
    switch (kind) {
    case 3: return (pair){ dim_add(f->t, a.d, b.d), a.v + b.v };
    case 4: return (pair){ dim_sub(f->t, a.d, b.d), a.v - b.v };
    case 5: return (pair){ dim_mul(f->t, a.d, b.d), a.v * b.v };
    case 6: return (pair){ dim_floordiv(f->t, a.d, b.d), floored(a.v, b.v) };
    case 7: return (pair){ dim_ceildiv(f->t, a.d, b.d), -floored(-a.v, b.v) };
    case 8: return (pair){ dim_mod(f->t, a.d, b.d), a.v - b.v * floored(a.v, b.v) };
    case 9: return (pair){ dim_min(f->t, a.d, b.d), a.v < b.v ? a.v : b.v };
    case 10: return (pair){ dim_max(f->t, a.d, b.d), a.v > b.v ? a.v : b.v };
    default: return (pair){ dim_broadcast(f->t, a.d, b.d), broadcast(a.v, b.v) };
    }
}

static void random_expressions_keep_their_value(void)
{
    const long rounds = test_scale(5000, 200000);
    for (long round = 0; round < rounds; round++) {
        fixture f;
        setup(&f);
        const int64_t symbol[3] = { random_below(20), random_below(7), random_below(40) };
        for (uint32_t i = 0; i < 3; i++) (void)dim_symbol_named(f.t, (const char *const[]){ "A", "B", "C" }[i]);
        const pair p = random_pair(&f, symbol, 4);
        const uint32_t count = dim_count(f.t);
        int64_t *value = malloc(count * sizeof(*value));
        CHECK(p.d != DIM_NONE);
        CHECK(dim_eval_all(dim_at(f.t, 0), count, symbol, 3, value));
        if (value[p.d] != p.v)
            (void)printf("%s: A=%d B=%d C=%d\n", print(&f, p.d), (int)symbol[0], (int)symbol[1], (int)symbol[2]);
        CHECK_EQ(value[p.d], p.v);
        const dim_range r = dim_range_of(f.t, p.d);
        CHECK(r.min <= p.v && p.v <= r.max && p.v % r.divisor == 0);
        for (dim d = 1; d < count; d++) {
            const dim_node *n = dim_at(f.t, d);
            CHECK(n->kind == DIM_CONST || n->kind == DIM_SYMBOL || (n->a < d && n->b < d && n->a && n->b));
        }
        CHECK_EQ(parse(&f, print(&f, p.d)), p.d);
        free(value);
        teardown(&f);
    }
}

/* Any tree over some of the operands. */
static dim random_tree(fixture *f, const dim *operand, uint32_t begin, uint32_t end)
{
    if (end - begin == 1) return operand[begin];
    const uint32_t cut = begin + 1 + random_below(end - begin - 1);
    const dim a = random_tree(f, operand, begin, cut), b = random_tree(f, operand, cut, end);
    return random_below(2) ? dim_broadcast(f->t, a, b) : dim_broadcast(f->t, b, a);
}

static void broadcasts_are_sets(void)
{
    enum { OPERANDS = 12, NAMES = 7 };
    for (long round = test_scale(2000, 100000); round > 0; round--) {
        fixture f;
        setup(&f);
        int64_t symbol[NAMES], value[256], whole = 1;
        dim name[NAMES], operand[OPERANDS], other[OPERANDS];
        const int64_t k = (int64_t)random_below(5) + 2;
        for (uint32_t i = 0; i < NAMES; i++) {
            symbol[i] = (int64_t[]){ 0, 1, 1, k }[random_below(4)];
            name[i] = dim_symbol_named(f.t, (const char *const[]){ "A", "B", "C", "D", "E", "F", "G" }[i]);
        }
        for (uint32_t i = 0; i < OPERANDS; i++) {
            const uint32_t n = random_below(NAMES);
            const bool is_sum = random_below(4) == 0;
            operand[i] = other[i] = is_sum ? dim_add(f.t, name[n], dim_const(f.t, 1)) : name[n];
            whole = broadcast(whole, symbol[n] + is_sum);
        }
        for (uint32_t i = OPERANDS; i-- > 1;) {
            const uint32_t n = random_below(i + 1);
            const dim d = other[i];
            other[i] = other[n];
            other[n] = d;
        }
        const dim a = random_tree(&f, operand, 0, OPERANDS), b = random_tree(&f, other, 0, OPERANDS);
        CHECK_EQ(a, b);
        CHECK_EQ(dim_broadcast(f.t, a, operand[random_below(OPERANDS)]), a);
        CHECK_EQ(dim_broadcast(f.t, dim_const(f.t, 1), a), a);
        CHECK(dim_count(f.t) <= 256);
        CHECK(dim_eval_all(dim_at(f.t, 0), dim_count(f.t), symbol, NAMES, value));
        CHECK_EQ(value[a], whole);
        CHECK_EQ(parse(&f, print(&f, a)), a);
        teardown(&f);
    }
}

static void broadcasts_of_many_symbols_are_one_list(void)
{
    fixture f;
    setup(&f);
    dim d = dim_const(f.t, 1);
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t i = 0; i < 60; i++) {
            char name[16];
            (void)snprintf(name, sizeof name, "N%u", i);
            d = dim_broadcast(f.t, d, dim_symbol_named(f.t, name));
        }
    CHECK(!dim_table_failed(f.t));
    CHECK_EQ(dim_count(f.t), 1 + 1 + 60 + 59);
    CHECK_EQ(parse(&f, print(&f, d)), d);
    const dim s = dim_symbol_named(f.t, "S"), cut = dim_min(f.t, s, dim_const(f.t, 1024));
    CHECK_EQ(dim_broadcast(f.t, cut, s), s);
    teardown(&f);
}

/* Ranges of forged engines: infinity and its neighbours at either end, in every combination. */
static void ranges_at_the_ends(void)
{
    static const int64_t at[] = { INT64_MIN, INT64_MIN + 1, -2, -1, 0, 1, 2, INT64_MAX - 1, INT64_MAX };
    dim_range of[256];
    uint32_t count = 0, wrong = 0;
    for (uint32_t i = 0; i < COUNT_OF(at); i++)
        for (uint32_t k = i; k < COUNT_OF(at); k++)
            for (uint32_t o = i; o <= k; o++) of[count++] = (dim_range){ at[i], at[k], at[o], 1 };
    for (uint32_t kind = DIM_ADD; kind <= DIM_BROADCAST; kind++)
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t k = 0; k < count; k++) {
                const dim_range r = dim_range_apply(kind, of[i], of[k]);
                wrong += r.min > r.max;
            }
    CHECK_EQ(wrong, 0);
}

static const test tests[] = {
    T(ranges_at_the_ends),
    T(broadcasts_are_sets),
    T(broadcasts_of_many_symbols_are_one_list),
    T(equal_expressions_have_one_id),
    T(text_round_trips),
    T(ranges_follow_the_symbols),
    T(overflow_and_zero_fail_in_evaluation),
    T(bounds_hold),
    T(random_expressions_keep_their_value),
    { 0 },
};
TEST_MAIN(tests)
