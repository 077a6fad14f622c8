/* SPDX-License-Identifier: Apache-2.0 */
/* test_round_trip.c - quantize and dequantize behind each other, computed as one function of f32, against the
 * reference: equal bits around each step's border, at special values, for scales of every size, types, zero points and
 * clips, in programs and as the activation of a block. */
#include "base/arena.h"
#include "core/dtype.h"
#include "cpu/act.h"
#include "cpu/level.h"
#include "cpu/vm.h"
#include "test.h"

#include <math.h>

enum { VALUES = 4096 };

typedef struct fixture {
    env e;
    arena a;
    uint64_t seed;
    float x[VALUES];
    double want[VALUES];
    long by_inverse, by_division;
} fixture;

typedef struct recipe {
    sinter_dtype type;
    float scale, back;
    int64_t zero, low, high;
    bool has_clip;
} recipe;

static float scale_of(fixture *f)
{
    const double mantissa = 1 + (double)(test_random(&f->seed) >> 41) * 0x1p-23;
    const int few = (int)test_below(&f->seed, 24) - 20, any = (int)test_below(&f->seed, 270) - 147;
    return (float)ldexp(mantissa, test_below(&f->seed, 4) ? few : any);
}

static recipe recipe_of(fixture *f)
{
    static const sinter_dtype types[] = { SINTER_DTYPE_U8, SINTER_DTYPE_I8, SINTER_DTYPE_U16, SINTER_DTYPE_I16 };
    recipe r = { .type = types[test_below(&f->seed, COUNT_OF(types))], .scale = scale_of(f) };
    int64_t min, max;
    dtype_int_range(r.type, &min, &max);
    const uint64_t span = (uint64_t)(max - min) + 1;
    r.back = test_below(&f->seed, 2) ? r.scale : scale_of(f);
    r.zero = test_below(&f->seed, 2) ? 0 : min + (int64_t)test_below(&f->seed, span);
    r.has_clip = test_below(&f->seed, 2);
    r.low = min + (int64_t)test_below(&f->seed, span);
    r.high = min + (int64_t)test_below(&f->seed, span);
    return r;
}

/* Around a border between two steps, or anything. */
static float value_of(fixture *f, const recipe *r, uint32_t i)
{
    static const float special[] = { 0, -0.0f, INFINITY, -INFINITY, NAN, 0x1p-149f, -0x1p-149f, 3.4e38f, -3.4e38f };
    if (i < COUNT_OF(special)) return special[i];
    const int64_t step = (int64_t)test_below(&f->seed, 0x20000) - 0x10000;
    const int64_t near = test_below(&f->seed, 2) ? step : step % 300;
    float x = (float)(((double)near + 0.5) * (double)r->scale);
    for (int64_t k = (int64_t)test_below(&f->seed, 7) - 3; k; k += k < 0 ? 1 : -1)
        x = nextafterf(x, k < 0 ? -INFINITY : INFINITY);
    return x;
}

static double reference(const recipe *r, float x)
{
    const scalar to[3] = { { .f = (double)x }, { .f = (double)r->scale }, { .i = r->zero } };
    scalar q = scalar_eval(OP_quantize, SINTER_DTYPE_F32, r->type, to);
    if (r->has_clip) q = scalar_eval(OP_clip, r->type, r->type, (scalar[]){ q, { .i = r->low }, { .i = r->high } });
    const scalar back[3] = { q, { .f = (double)r->back }, { .i = r->zero } };
    return scalar_eval(OP_dequantize, r->type, SINTER_DTYPE_F32, back).f;
}

static bool is_same(const fixture *f, const float *got, const char *who)
{
    for (uint32_t i = 0; i < VALUES; i++) {
        const double g = (double)got[i];
        if (g == f->want[i] && signbit(g) == signbit(f->want[i])) continue;
        test_failures++;
        (void)printf("%s: of %.9g got %.9g, want %.9g\n", who, (double)f->x[i], g, f->want[i]);
        return false;
    }
    return true;
}

static expr *program_of(fixture *f, const recipe *r)
{
    char line[512];
    const char *name = sinter_dtype_name(r->type), *why = NULL;
    char clip[128] = "";
    if (r->has_clip)
        (void)snprintf(clip, sizeof clip, "g=imm %" PRId64 " : %s; h=imm %" PRId64 " : %s; i=clip d g h : %s; ", r->low,
                       name, r->high, name, name);
    (void)snprintf(line, sizeof line,
                   "a=load 0; b=imm %.9g; c=imm %" PRId64 " : %s; d=quantize a b c : %s; %sj=imm %.9g; "
                   "k=dequantize %s j c : f32; store 0 k",
                   (double)r->scale, r->zero, name, name, clip, (double)r->back, r->has_clip ? "i" : "d");
    scan s = scan_of(line, strlen(line));
    expr *x = NULL;
    if (!CHECK(expr_parse(&f->a, &s, &x, &why))) (void)printf("%s: %s\n", line, why);
    return x;
}

static bool run_program(fixture *f, isa_level isa, const expr *x)
{
    float got[VALUES];
    const int64_t dim_at[1] = { VALUES };
    view in, out;
    void *data = f->x, *to = got;
    (void)view_init(&in, SINTER_DTYPE_F32, 1, dim_at, data);
    (void)view_init(&out, SINTER_DTYPE_F32, 1, dim_at, to);
    vm_program *p = arena_alloc(&f->a, sizeof *p + vm_room(x), 64);
    if (!CHECK_EQ(vm_bind(&f->e, p, p + 1, isa, x, 1, dim_at, NULL, false, &in, &out), SINTER_OK)) return false;
    const vm_io io = { &data, &to };
    vm_run(p, &io, 0, vm_tile_count(p));
    return is_same(f, got, isa_level_name(isa));
}

/* In rows of 61 with a gap: the loops' ends, too. */
static bool run_block(fixture *f, isa_level isa, const round_trip *trip)
{
    enum { COLS = 61, LD = 64 };
    float got[VALUES];
    memcpy(got, f->x, sizeof got);
    const act_block b = { .c = got, .ldc = LD, .rows = VALUES / LD, .cols = COLS, .trip = *trip };
    level_of(isa)->act->run[OP_dequantize](&b);
    for (uint32_t i = 0; i < VALUES; i++) {
        if (i % LD < COLS) continue;
        if (!CHECK(!memcmp(&got[i], &f->x[i], sizeof got[i]))) return false;
        got[i] = (float)f->want[i];
    }
    return is_same(f, got, "a block");
}

static bool one_recipe(fixture *f)
{
    const recipe r = recipe_of(f);
    const expr *x = program_of(f, &r);
    uint32_t uses[EXPR_MAX] = { 0 };
    uint16_t from = 0;
    round_trip trip = { 0 };
    if (!x) return false;
    for (uint32_t i = 0; i < x->count; i++)
        for (uint32_t k = 0; k < expr_arity(&x->at[i]); k++) uses[x->at[i].arg[k]]++;
    const bool is_found = round_trip_find(x, uses, x->count - 2, &trip, &from);
    for (uint32_t i = 0; i < VALUES; i++) {
        f->x[i] = value_of(f, &r, i);
        f->want[i] = reference(&r, f->x[i]);
    }
    f->by_inverse += is_found && trip.inverse != 0;
    f->by_division += is_found && trip.inverse == 0;
    for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa))
        if (!run_program(f, isa, x) || (is_found && trip.inverse != 0 && !run_block(f, isa, &trip))) return false;
    return true;
}

static void keeps_every_bit(void)
{
    static fixture f = { .seed = 5 };
    env_init(&f.e, NULL, NULL);
    arena_init(&f.a, &f.e);
    const long count = test_scale(200, 20000);
    for (long i = 0; i < count; i++) {
        const arena_mark mark = arena_save(&f.a);
        if (!one_recipe(&f)) break;
        arena_rewind(&f.a, mark);
    }
    CHECK(f.by_inverse > count / 2);
    CHECK(f.by_division > count / 20);
    arena_deinit(&f.a);
}

/* A chain of two with a sum between, where each result has a slot of its own. */
static void chains(void)
{
    static const char line[] = "a=load 0; b=imm 0.25; c=imm 3 : u8; d=quantize a b c : u8; e=dequantize d b c : f32; "
                               "f=load 1; g=add f e : f32; h=imm 0.5; i=quantize g h c : u8; j=dequantize i h c : f32; "
                               "store 0 j";
    env e;
    arena a;
    env_init(&e, NULL, NULL);
    arena_init(&a, &e);
    scan s = scan_of(line, strlen(line));
    expr *x = NULL;
    const char *why = NULL;
    enum { N = 1000 };
    float left[N], right[N], got[N], want[N];
    const int64_t dim_at[1] = { N };
    view in[2], out, expected;
    uint64_t seed = 3;
    for (int i = 0; i < N; i++) {
        left[i] = (float)test_below(&seed, 4000) / 16 - 100;
        right[i] = (float)test_below(&seed, 4000) / 16 - 100;
    }
    (void)view_init(&in[0], SINTER_DTYPE_F32, 1, dim_at, left);
    (void)view_init(&in[1], SINTER_DTYPE_F32, 1, dim_at, right);
    (void)view_init(&out, SINTER_DTYPE_F32, 1, dim_at, got);
    (void)view_init(&expected, SINTER_DTYPE_F32, 1, dim_at, want);
    if (CHECK(expr_parse(&a, &s, &x, &why))) {
        CHECK_EQ(expr_run(x, 1, dim_at, NULL, in, &expected, false), SINTER_OK);
        for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
            vm_program *p = arena_alloc(&a, sizeof *p + vm_room(x), 64);
            void *data[2] = { left, right }, *to = got;
            const vm_io io = { data, &to };
            CHECK_EQ(vm_bind(&e, p, p + 1, isa, x, 1, dim_at, NULL, false, in, &out), SINTER_OK);
            vm_run(p, &io, 0, vm_tile_count(p));
            CHECK(!memcmp(got, want, sizeof got));
        }
    }
    arena_deinit(&a);
}

static const test tests[] = { T(keeps_every_bit), T(chains), { 0 } };
TEST_MAIN(tests)
