/* SPDX-License-Identifier: Apache-2.0 */
/* test_cpu_vm.c - expression programs on the tile machine against expr_run: random programs, shapes, strides and types
 * at every instruction set that this machine has, and every scalar function by itself. */
#include "cpu/vm.h"

#include "base/arena.h"
#include "base/os.h"
#include "core/dtype.h"
#include "test.h"

#include <math.h>

enum { GUARD = 64, SPACE_MAX = 20000 };

typedef struct fixture {
    env e;
    arena a;
    uint64_t seed;
} fixture;

static void fixture_init(fixture *f)
{
    env_init(&f->e, NULL, NULL);
    arena_init(&f->a, &f->e);
    f->seed = 7;
}

static uint32_t below(fixture *f, uint32_t n)
{
    return (uint32_t)(test_random(&f->seed) % n);
}

/* A view of that shape in a buffer with guards: random axis order, gaps, sometimes broadcast where it may be, and then
 * also an axis of two backwards. */
static view make_view(fixture *f, sinter_dtype type, uint32_t rank, const int64_t *dim_at, bool may_repeat,
                      size_t *size, void **buffer)
{
    view v = { .dtype = type, .rank = rank };
    uint8_t order[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) order[i] = (uint8_t)i;
    if (below(f, 3) == 0)
        for (uint32_t i = rank; i > 1; i--) {
            const uint32_t j = below(f, i);
            const uint8_t t = order[i - 1];
            order[i - 1] = order[j];
            order[j] = t;
        }
    int64_t stride = below(f, 6) ? 1 : 3;
    for (uint32_t i = rank; i-- > 0;) {
        const uint32_t a = order[i];
        v.dim[a] = may_repeat && below(f, 4) == 0 ? 1 : dim_at[a];
        v.stride[a] = stride;
        stride *= v.dim[a] + (below(f, 8) ? 0 : 1);
    }
    const size_t bytes = sinter_dtype_bits(type) / 8;
    *size = (size_t)(stride + 1) * bytes + 2 * GUARD;
    *buffer = arena_alloc(&f->a, *size, 64);
    memset(*buffer, 0xA5, *size);
    v.data = (char *)*buffer + GUARD;
    for (uint32_t a = 0; a < rank && may_repeat; a++) {
        if (v.dim[a] != 2 || below(f, 3)) continue;
        v.data = (char *)v.data + v.stride[a] * (int64_t)bytes;
        v.stride[a] = -v.stride[a];
    }
    return v;
}

static void fill_view(fixture *f, const view *v, double scale)
{
    int64_t i[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(v->dim, v->rank, i); more; more = view_next(v->dim, v->rank, i)) {
        const double x = ((double)(test_random(&f->seed) >> 11) / 9007199254740992.0 * 2 - 1) * scale;
        if (dtype_is_float(v->dtype)) view_store_f64(v, view_offset(v, i), x);
        else view_store_i64(v, view_offset(v, i), v->dtype == SINTER_DTYPE_BOOL ? x > 0 : (int64_t)(x * 3));
    }
}

static double tolerance(sinter_dtype t)
{
    return t == SINTER_DTYPE_F16 ? 2e-3 : t == SINTER_DTYPE_BF16 ? 2e-2 : t == SINTER_DTYPE_F64 ? 1e-13 : 4e-6;
}

/* Where computing is in f32 and not in double, what is not a number or infinite is so in both. */
static bool is_close(double got, double want, double within, double size)
{
    if (isnan(got) || isnan(want)) return isnan(got) && isnan(want);
    if (isinf(got) || isinf(want)) return got == want || (fabs(want) > 3e38 || fabs(got) > 3e38);
    return fabs(got - want) <= within * (fabs(want) + size);
}

static bool compare(const view *got, const view *want, double within, double size)
{
    int64_t i[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(got->dim, got->rank, i); more; more = view_next(got->dim, got->rank, i)) {
        const double g = view_load_f64(got, view_offset(got, i)), w = view_load_f64(want, view_offset(want, i));
        if (is_close(g, w, within, size)) continue;
        (void)printf("got %.9g, want %.9g\n", g, w);
        return false;
    }
    return true;
}

/* Bytes between the elements of `v`, and around it, are as they were. */
static bool is_untouched(fixture *f, const view *v, const void *buffer, size_t size)
{
    unsigned char *seen = arena_alloc(&f->a, size, 1);
    const size_t bytes = sinter_dtype_bits(v->dtype) / 8;
    int64_t i[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(v->dim, v->rank, i); more; more = view_next(v->dim, v->rank, i))
        memset(seen + GUARD + (size_t)view_offset(v, i) * bytes, 1, bytes);
    for (size_t k = 0; k < size; k++)
        if (!seen[k] && ((const unsigned char *)buffer)[k] != 0xA5) return false;
    return true;
}

static bool run_case(fixture *f, isa_level isa, const char *program, uint32_t count_in, const sinter_dtype *type_in,
                     sinter_dtype type_out, uint32_t rank, const int64_t *dim_at, double scale, double size)
{
    const arena_mark mark = arena_save(&f->a);
    scan s = scan_of(program, strlen(program));
    expr *x = NULL;
    const char *why = NULL;
    const bool is_parsed = expr_parse(&f->a, &s, &x, &why);
    if (!is_parsed && why && strstr(why, "more than 64")) return true;
    if (!CHECK(is_parsed)) {
        (void)printf("%s: %s\n", program, why);
        return false;
    }
    expr_canonicalize(x);
    why = expr_check(x, count_in, 1, false);
    if (why) {
        (void)printf("%s: %s\n", program, why);
        return CHECK(!why);
    }
    view in[8];
    void *in_data[8];
    size_t bytes;
    void *buffer;
    for (uint32_t i = 0; i < count_in; i++) {
        in[i] = make_view(f, type_in[i], rank, dim_at, true, &bytes, &buffer);
        fill_view(f, &in[i], scale);
        in_data[i] = in[i].data;
    }
    view out = make_view(f, type_out, rank, dim_at, false, &bytes, &buffer), want;
    (void)view_init(&want, type_out, rank, dim_at, NULL);
    want.data = arena_alloc(&f->a, (size_t)view_count(&want) * 8, 64);
    CHECK_EQ(expr_run(x, rank, dim_at, NULL, in, &want, false), SINTER_OK);
    vm_program *p = arena_alloc(&f->a, sizeof *p + vm_room(x), 64);
    CHECK_EQ(vm_bind(&f->e, p, p + 1, isa, x, rank, dim_at, NULL, false, in, &out), SINTER_OK);
    vm_io io = { in_data, &out.data };
    const int64_t tiles = vm_tile_count(p);
    for (int64_t i = 0; i < tiles; i++) vm_run(p, &io, i, i + 1);
    bool ok = compare(&out, &want, tolerance(type_out), size);
    bool is_swapped = false;
    for (uint32_t k = 0; k < p->operand_count; k++) is_swapped = is_swapped || p->operand[k].swap;
    if (p->has_chain && !is_swapped) { /* the loops over slots give the same bits */
        void *chained = arena_alloc(&f->a, bytes, 64);
        memcpy(chained, buffer, bytes);
        p->has_chain = false;
        for (int64_t i = 0; i < tiles; i++) vm_run(p, &io, i, i + 1);
        ok = CHECK(memcmp(chained, buffer, bytes) == 0) && ok;
    }
    ok = CHECK(is_untouched(f, &out, buffer, bytes)) && ok;
    if (!ok) {
        test_failures++;
        (void)printf("%s at %s, shape", program, isa_level_name(isa));
        for (uint32_t i = 0; i < rank; i++) (void)printf(" %lld", (long long)dim_at[i]);
        (void)printf("\n");
    }
    arena_rewind(&f->a, mark);
    return ok;
}

/* Every scalar function on f32 (or bool, or integers where it takes nothing else), over the whole useful range. */
static void runs_every_function(void)
{
    fixture f;
    fixture_init(&f);
    for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
        for (uint32_t op = 0; op < OP_SCALAR_COUNT; op++) {
            const scalar_info *i = scalar_at((op_id)op);
            if (op == OP_quantize || op == OP_dequantize || op == OP_cast || op == OP_cast_wrap) continue;
            const bool is_log = !strcmp(i->types, "LOG"), is_bit = !strcmp(i->types, "BIT"), is_where = op == OP_where;
            const sinter_dtype t = is_log ? SINTER_DTYPE_BOOL : is_bit ? SINTER_DTYPE_I32 : SINTER_DTYPE_F32;
            const sinter_dtype r = !strcmp(i->result, "BOOL") ? SINTER_DTYPE_BOOL : t;
            const sinter_dtype types[3] = { is_where ? SINTER_DTYPE_BOOL : t, t, t };
            char program[256];
            int at = 0;
            for (uint32_t k = 0; k < i->arity; k++)
                at += snprintf(program + at, sizeof program - (size_t)at, "%c=load %u : %s; ", 'a' + (int)k, k,
                               sinter_dtype_name(types[k]));
            at += snprintf(program + at, sizeof program - (size_t)at, "d=%s %s : %s; store 0 d", i->name,
                           i->arity == 1   ? "a"
                           : i->arity == 2 ? "a b"
                                           : "a b c",
                           sinter_dtype_name(r));
            for (uint32_t k = 0; k < 6; k++) {
                const int64_t dim_at[2] = { 1 + below(&f, 40), 1 + below(&f, 100) };
                const double scale[6] = { 0.01, 1, 4, 12, 100, 5000 };
                if (!run_case(&f, isa, program, i->arity, types, r, 2, dim_at, scale[k],
                              op == OP_hard_sigmoid ? 1
                              : k                   ? 1e-3
                                                    : 1e-4))
                    break;
            }
        }
    }
    arena_deinit(&f.a);
}

static void runs_casts_and_quantisation(void)
{
    fixture f;
    fixture_init(&f);
    static const sinter_dtype all[] = { SINTER_DTYPE_F32,  SINTER_DTYPE_F64,      SINTER_DTYPE_F16,   SINTER_DTYPE_BF16,
                                        SINTER_DTYPE_I8,   SINTER_DTYPE_U8,       SINTER_DTYPE_I16,   SINTER_DTYPE_U16,
                                        SINTER_DTYPE_I32,  SINTER_DTYPE_U32,      SINTER_DTYPE_I64,   SINTER_DTYPE_U64,
                                        SINTER_DTYPE_BOOL, SINTER_DTYPE_F8E4M3FN, SINTER_DTYPE_F8E5M2 };
    for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
        for (size_t i = 0; i < COUNT_OF(all); i++) {
            for (size_t k = 0; k < COUNT_OF(all); k++) {
                char program[200];
                (void)snprintf(program, sizeof program, "a=load 0 : %s; b=cast a : %s; store 0 b",
                               sinter_dtype_name(all[i]), sinter_dtype_name(all[k]));
                const int64_t dim_at[2] = { 5, 77 };
                (void)run_case(&f, isa, program, 1, &all[i], all[k], 2, dim_at, 90, 0);
                /* Most pass 32 bits. */
                if (all[i] == SINTER_DTYPE_I64 && all[k] == SINTER_DTYPE_F32)
                    (void)run_case(&f, isa, program, 1, &all[i], all[k], 2, dim_at, 1e10, 0);
            }
        }
        static const sinter_dtype q[] = { SINTER_DTYPE_I8, SINTER_DTYPE_U8, SINTER_DTYPE_I16, SINTER_DTYPE_I32 };
        static const sinter_dtype scales[] = { SINTER_DTYPE_F32, SINTER_DTYPE_F16, SINTER_DTYPE_BF16 };
        for (size_t i = 0; i < COUNT_OF(q) * COUNT_OF(scales); i++) {
            char program[256];
            const sinter_dtype code = q[i % COUNT_OF(q)], real = scales[i / COUNT_OF(q)];
            const sinter_dtype up[] = { real, real, code }, down[] = { code, real, code };
            const int64_t dim_at[2] = { 9, 133 };
            const char *t = sinter_dtype_name(code), *r = sinter_dtype_name(real);
            (void)snprintf(program, sizeof program,
                           "a=load 0 : %s; b=load 1 : %s; z=load 2 : %s; c=quantize a b z : %s; store 0 c", r, r, t, t);
            (void)run_case(&f, isa, program, 3, up, code, 2, dim_at, 20, 0);
            (void)snprintf(program, sizeof program,
                           "a=load 0 : %s; b=load 1 : %s; z=load 2 : %s; c=dequantize a b z : %s; store 0 c", t, r, t,
                           r);
            (void)run_case(&f, isa, program, 3, down, real, 2, dim_at, 20, 0);
            (void)snprintf(
                program, sizeof program,
                "a=load 0 : %s; b=imm 0.25 : %s; z=imm 3 : %s; c=quantize a b z : %s; d=dequantize c b z : %s; "
                "store 0 d",
                r, r, t, t, r);
            (void)run_case(&f, isa, program, 1, up, real, 2, dim_at, 20, 0);
        }
        static const sinter_dtype f8[] = { SINTER_DTYPE_F8E4M3FN, SINTER_DTYPE_F8E4M3FNUZ, SINTER_DTYPE_F8E5M2,
                                           SINTER_DTYPE_F8E5M2FNUZ };
        for (size_t i = 0; i < COUNT_OF(f8); i++) {
            char program[256];
            const char *t = sinter_dtype_name(f8[i]);
            static const double sizes[] = { 1e-4, 0.1, 20, 3000, 1e6 };
            for (size_t k = 0; k < COUNT_OF(sizes); k++) {
                const sinter_dtype x[] = { SINTER_DTYPE_F32 };
                const int64_t dim_at[2] = { 9, 133 };
                (void)snprintf(program, sizeof program,
                               "a=load 0 : f32; b=imm 0.75 : f32; z=imm 0 : %s; c=quantize a b z : %s; "
                               "d=dequantize c b z : f32; store 0 d",
                               t, t);
                (void)run_case(&f, isa, program, 1, x, SINTER_DTYPE_F32, 2, dim_at, sizes[k], 0);
                (void)snprintf(program, sizeof program, "a=load 0 : f32; b=cast a : %s; c=cast b : f32; store 0 c", t);
                (void)run_case(&f, isa, program, 1, x, SINTER_DTYPE_F32, 2, dim_at, sizes[k], 0);
            }
        }
    }
    arena_deinit(&f.a);
}

/* Loops for codes and small floats: without one, each element costs a call of scalar_eval. */
static void codes_have_loops(void)
{
    fixture f;
    fixture_init(&f);
    static const char *const programs[] = {
        "a=load 0 : f16; b=imm 0.5 : f16; z=imm 3 : u8; c=quantize a b z : u8; d=dequantize c b z : f16; store 0 d",
        "a=load 0 : f16; b=imm 0.5 : f16; z=imm 3 : i16; c=quantize a b z : i16; d=dequantize c b z : f16; store 0 d",
        "a=load 0 : bf16; b=imm 0.5 : bf16; z=imm 3 : i8; c=quantize a b z : i8; d=dequantize c b z : bf16; store 0 d",
        ("a=load 0 : f32; b=imm 0.5 : f32; z=imm 0 : f8e4m3fn; c=quantize a b z : f8e4m3fn; d=dequantize c b z : f32; "
         "store 0 d"),
    };
    static const sinter_dtype type[] = { SINTER_DTYPE_F16, SINTER_DTYPE_F16, SINTER_DTYPE_BF16, SINTER_DTYPE_F32 };
    const vm_op unknown = { .op = OP_erf, .from = SINTER_DTYPE_F64, .to = SINTER_DTYPE_F64 };
    for (size_t i = 0; i < COUNT_OF(programs); i++) {
        scan s = scan_of(programs[i], strlen(programs[i]));
        expr *x = NULL;
        const char *why = NULL;
        if (!CHECK(expr_parse(&f.a, &s, &x, &why))) continue;
        const int64_t dim_at[1] = { 500 };
        view in, out;
        CHECK(view_init(&in, type[i], 1, dim_at, NULL));
        CHECK(view_init(&out, type[i], 1, dim_at, NULL));
        vm_program *p = arena_alloc(&f.a, sizeof *p + vm_room(x), 64);
        CHECK_EQ(vm_bind(&f.e, p, p + 1, ISA_PLAIN, x, 1, dim_at, NULL, false, &in, &out), SINTER_OK);
        for (uint32_t k = 0; k < p->op_count; k++)
            CHECK(p->op[k].kind != VM_COMPUTE || p->op[k].fn != vm_basic_of(&unknown));
    }
    arena_deinit(&f.a);
}

/* Chains whose values stay tame, over random shapes, orders and broadcasts. */
static void runs_random_programs(void)
{
    fixture f;
    fixture_init(&f);
    static const char *const unary[] = { "relu", "tanh", "sigmoid",  "silu",      "gelu",  "abs",
                                         "neg",  "exp",  "softsign", "hardswish", "floor", "atan" };
    static const char *const binary[] = { "add", "sub", "mul", "min", "max" };
    static const sinter_dtype type[] = { SINTER_DTYPE_F32, SINTER_DTYPE_F16, SINTER_DTYPE_BF16, SINTER_DTYPE_F64 };
    const long count = test_scale(300, 5000);
    for (long c = 0; c < count; c++) {
        char program[1600];
        const uint32_t count_in = 1 + below(&f, 3), length = 1 + below(&f, 12);
        const sinter_dtype t = type[below(&f, 8) < 5 ? 0 : below(&f, 4)];
        const char *name = sinter_dtype_name(t);
        sinter_dtype types[4] = { t, t, t, t };
        int at = 0;
        for (uint32_t k = 0; k < count_in; k++)
            at += snprintf(program + at, sizeof program - (size_t)at, "v%u=load %u : %s; ", k, k, name);
        at += snprintf(program + at, sizeof program - (size_t)at, "v%u=imm %g : %s; ", count_in,
                       (double)below(&f, 9) / 4 - 1, name);
        uint32_t values = count_in + 1;
        for (uint32_t k = 0; k < length; k++, values++) {
            const uint32_t x = below(&f, values), y = below(&f, values), z = below(&f, values);
            switch (below(&f, 6)) {
            case 0:
            case 1:
                at += snprintf(program + at, sizeof program - (size_t)at, "v%u=%s v%u : %s; ", values,
                               unary[below(&f, COUNT_OF(unary))], x, name);
                break;
            case 2:
                at += snprintf(program + at, sizeof program - (size_t)at,
                               "w%u=lt v%u v%u : bool; v%u=where w%u v%u v%u : %s; ", values, x, y, values, values, y,
                               z, name);
                break;
            case 3:
                at += snprintf(program + at, sizeof program - (size_t)at,
                               "k%u=imm -1 : %s; l%u=imm 1.5 : %s; v%u=clip v%u k%u l%u : %s; ", values, name, values,
                               name, values, x, values, values, name);
                break;
            default:
                at += snprintf(program + at, sizeof program - (size_t)at, "v%u=%s v%u v%u : %s; ", values,
                               binary[below(&f, COUNT_OF(binary))], x, y, name);
            }
            at += snprintf(program + at, sizeof program - (size_t)at,
                           "u%u=imm 2 : %s; y%u=tanh v%u : %s; v%u=mul y%u u%u : %s; ", values, name, values, values,
                           name, values + 1, values, values, name);
            values++;
        }
        (void)snprintf(program + at, sizeof program - (size_t)at, "store 0 v%u", values - 1);
        const uint32_t rank = below(&f, 6);
        int64_t dim_at[SINTER_RANK_MAX] = { 0 }, total = 1;
        for (uint32_t k = 0; k < rank; k++) {
            const int64_t most = SPACE_MAX / total;
            const int64_t d =
                below(&f, 12) == 0 ? (most > 1500 ? 1500 : most) : 1 + below(&f, most < 20 ? (uint32_t)most : 20);
            dim_at[k] = d;
            total *= d;
        }
        /* A comparison of values that differ by rounding may go either way: such programs are checked in f64 alone. */
        const bool is_cut = strstr(program, " lt ") || strstr(program, "=lt") || strstr(program, "floor");
        if (is_cut && t != SINTER_DTYPE_F64) {
            continue;
        }
        const bool is_narrow = t == SINTER_DTYPE_F16 || t == SINTER_DTYPE_BF16;
        for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa))
            if (!run_case(&f, isa, program, count_in, types, t, rank, dim_at, 1,
                          is_narrow               ? 1
                          : t == SINTER_DTYPE_F64 ? 1
                                                  : 4))
                return;
    }
    arena_deinit(&f.a);
}

/* Sums and differences of two products, of operands that may have the last axis but one, or the last, backwards. */
static void runs_products(void)
{
    fixture f;
    fixture_init(&f);
    static const int64_t widths[] = { 1, 2, 3, 8, 15, 16, 33, 64, 9000 };
    static const char *const sums[] = { "add e f", "add f e", "sub e f", "sub f e" };
    const sinter_dtype type[4] = { SINTER_DTYPE_F32, SINTER_DTYPE_F32, SINTER_DTYPE_F32, SINTER_DTYPE_F32 };
    const long count = test_scale(200, 4000);
    for (long c = 0; c < count; c++) {
        char program[256];
        (void)snprintf(program, sizeof program,
                       "a=load 0; b=load %u; c=load %u; d=load 3; e=mul a b : f32; f=mul c d : f32; g=%s : f32; "
                       "store 0 g",
                       1 + below(&f, 2), 1 + below(&f, 2), sums[below(&f, COUNT_OF(sums))]);
        const uint32_t rank = 2 + below(&f, 3), pair = rank - 1 - below(&f, 2);
        int64_t dim_at[SINTER_RANK_MAX] = { 0 };
        for (uint32_t k = 0; k < rank; k++) dim_at[k] = 1 + below(&f, 6);
        dim_at[rank - 1] = widths[below(&f, COUNT_OF(widths))];
        dim_at[pair] = 2;
        for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa))
            if (!run_case(&f, isa, program, 4, type, SINTER_DTYPE_F32, rank, dim_at, 1, 4)) return;
    }
    arena_deinit(&f.a);
}

/* Operands and results of several types, adjacent or not: conversions at both ends of a chain. */
static void runs_types(void)
{
    fixture f;
    fixture_init(&f);
    static const sinter_dtype type[] = { SINTER_DTYPE_F32, SINTER_DTYPE_F16, SINTER_DTYPE_BF16, SINTER_DTYPE_U8,
                                         SINTER_DTYPE_I8,  SINTER_DTYPE_I32, SINTER_DTYPE_BOOL };
    static const char *const middle[] = {
        "v=mul x y : f32; w=add v z : f32",
        "m=imm 1.25 : f32; n=imm -0.5 : f32; v=mul x m : f32; u=add v n : f32; t=sub y u : f32; w=mul t z : f32",
        "v=where c x y : f32; t=relu v : f32; w=add t z : f32",
        "v=sub z x : f32; t=mul v v : f32; u=add t y : f32; w=sub u v : f32",
        "l=imm -2 : f32; h=imm 2 : f32; v=clip x l h : f32; t=max v y : f32; w=min t z : f32",
    };
    const long count = test_scale(600, 20000);
    for (long c = 0; c < count; c++) {
        sinter_dtype in[4];
        for (uint32_t k = 0; k < 3; k++) in[k] = type[below(&f, COUNT_OF(type))];
        in[3] = SINTER_DTYPE_BOOL;
        const sinter_dtype out = type[below(&f, 6)];
        char program[600];
        int at = snprintf(program, sizeof program,
                          "a=load 0 : %s; b=load 1 : %s; d=load 2 : %s; c=load 3 : bool; x=cast a : f32; "
                          "y=cast b : f32; z=cast d : f32; %s; ",
                          sinter_dtype_name(in[0]), sinter_dtype_name(in[1]), sinter_dtype_name(in[2]),
                          middle[below(&f, COUNT_OF(middle))]);
        const bool quantizes = below(&f, 2) && (out == SINTER_DTYPE_U8 || out == SINTER_DTYPE_I8);
        if (quantizes)
            (void)snprintf(program + at, sizeof program - (size_t)at,
                           "s=imm 0.5 : f32; p=imm 3 : %s; q=quantize w s p : %s; store 0 q", sinter_dtype_name(out),
                           sinter_dtype_name(out));
        else
            (void)snprintf(program + at, sizeof program - (size_t)at, "q=cast w : %s; store 0 q",
                           sinter_dtype_name(out));
        /* Squares reach 65,000, and an integer may be one beside the reference's. */
        const double size = dtype_is_float(out) ? 4000 : 4e5;
        const uint32_t rank = 1 + below(&f, 3);
        int64_t dim_at[3];
        for (uint32_t k = 0; k < rank; k++) dim_at[k] = 1 + below(&f, k + 1 == rank ? 300 : 13);
        for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa))
            if (!run_case(&f, isa, program, 4, in, out, rank, dim_at, 2, size)) return;
    }
    arena_deinit(&f.a);
}

static void runs_integers(void)
{
    fixture f;
    fixture_init(&f);
    static const char *const binary[] = { "add", "sub", "mul", "div", "min", "max", "mod", "pow" };
    static const sinter_dtype type[] = { SINTER_DTYPE_I32, SINTER_DTYPE_I64, SINTER_DTYPE_U8, SINTER_DTYPE_I8,
                                         SINTER_DTYPE_U32, SINTER_DTYPE_U64, SINTER_DTYPE_I16 };
    for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
        for (size_t t = 0; t < COUNT_OF(type); t++) {
            for (size_t k = 0; k < COUNT_OF(binary); k++) {
                char program[300];
                const char *name = sinter_dtype_name(type[t]);
                (void)snprintf(program, sizeof program,
                               "a=load 0 : %s; b=load 1 : %s; c=%s a b : %s; d=gt c a : bool; e=where d b c : %s; "
                               "g=imm 3 : %s; h=add e g : %s; store 0 h",
                               name, name, binary[k], name, name, name, name);
                const sinter_dtype types[2] = { type[t], type[t] };
                const int64_t dim_at[3] = { 3, 7, 41 };
                (void)run_case(&f, isa, program, 2, types, type[t], 3, dim_at, 60, 0);
            }
        }
    }
    arena_deinit(&f.a);
}

/* Blocks of some rows and columns: rows are pixels, columns channels; the result lies where acc does. */
static void run_blocks(fixture *f, const char *program, int64_t channels, int64_t rows_at_once, int64_t cols_at_once)
{
    enum { N = 2, H = 5, W = 9, PIXELS = N * H * W, CHANNELS_MAX = 140 };
    scan s = scan_of(program, strlen(program));
    expr *x = NULL;
    const char *why = NULL;
    if (!CHECK(expr_parse(&f->a, &s, &x, &why))) return;
    const int64_t c = channels, dim_at[4] = { N, c, H, W };
    static float bias[CHANNELS_MAX], plane[H * W], full[PIXELS * CHANNELS_MAX], acc[PIXELS * CHANNELS_MAX],
        want[PIXELS * CHANNELS_MAX], got[PIXELS * CHANNELS_MAX];
    float *fill[] = { bias, plane, full, acc };
    const size_t count[] = { CHANNELS_MAX, H * W, PIXELS * CHANNELS_MAX, PIXELS * CHANNELS_MAX };
    for (size_t k = 0; k < 4; k++)
        for (size_t i = 0; i < count[k]; i++) fill[k][i] = (float)below(f, 2000) / 500 - 2;
    view full_view = {
        .dtype = SINTER_DTYPE_F32, .rank = 4, .dim = { N, c, H, W }, .stride = { H * W * c, 1, W * c, c }, .data = full
    };
    view acc_view = full_view, want_view = full_view, got_view = full_view;
    acc_view.data = acc;
    want_view.data = want;
    got_view.data = got;
    view in[5] = {
        full_view,
        full_view,
        { .dtype = SINTER_DTYPE_F32, .rank = 4, .dim = { 1, c, 1, 1 }, .stride = { c, 1, 1, 1 }, .data = bias },
        full_view,
        { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { H, W }, .stride = { W, 1 }, .data = plane }
    };
    CHECK_EQ(expr_run(x, 4, dim_at, &acc_view, in, &want_view, false), SINTER_OK);
    void *in_data[5], *out_data = got;
    for (uint32_t i = 0; i < 5; i++) in_data[i] = in[i].data;
    const uint8_t order[4] = { 0, 2, 3, 1 };
    vm_program *p = arena_alloc(&f->a, sizeof *p + vm_room(x), 64);
    for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
        CHECK_EQ(vm_bind(&f->e, p, p + 1, isa, x, 4, dim_at, order, true, in, &got_view), SINTER_OK);
        const vm_io io = { in_data, &out_data };
        memcpy(got, acc, sizeof got);
        for (int64_t row = 0; row < PIXELS; row += rows_at_once)
            for (int64_t col = 0; col < c; col += cols_at_once)
                vm_block(p, &io, row, PIXELS - row < rows_at_once ? PIXELS - row : rows_at_once, col,
                         c - col < cols_at_once ? c - col : cols_at_once, got + row * c + col, c);
        CHECK(compare(&got_view, &want_view, 1e-5, 1e-2));
    }
}

static void runs_blocks(void)
{
    fixture f;
    fixture_init(&f);
    static const char *const program[] = {
        "a=acc : f32; b=load 2 : f32; c=add a b : f32; d=load 3 : f32; e=add c d : f32; g=silu e : f32; "
        "h=load 4 : f32; i=mul g h : f32; store 0 i",
        "a=acc : f32; r=relu a : f32; b=load 2 : f32; c=mul r b : f32; d=load 3 : f32; e=add c d : f32; "
        "i=add e b : f32; store 0 i",
    };
    static const int64_t channels[] = { 1, 2, 5, 8, 12, 16, 24, 37, 64, 127, 140 };
    for (size_t k = 0; k < COUNT_OF(program); k++) {
        for (size_t i = 0; i < COUNT_OF(channels); i++) {
            run_blocks(&f, program[k], channels[i], 7, 16);
            run_blocks(&f, program[k], channels[i], 7 + below(&f, 90), channels[i]);
        }
    }
    arena_deinit(&f.a);
}

/* Sums of integers drained to u8: scaled by columns, rounded, in blocks of any size. */
static void runs_integer_blocks(void)
{
    fixture f;
    fixture_init(&f);
    enum { R = 23, C = 203 };
    static const char program[] =
        "a=acc : i32; b=cast a : f32; c=load 1 : f32; d=mul b c : f32; e=load 2 : f32; g=add d e : f32; "
        "s=imm 0.75 : f32; z=imm 7 : u8; q=quantize g s z : u8; store 0 q";
    scan s = scan_of(program, sizeof program - 1);
    expr *x = NULL;
    const char *why = NULL;
    if (!CHECK(expr_parse(&f.a, &s, &x, &why))) return;
    const int64_t dim_at[2] = { R, C };
    static int32_t acc[R * C];
    static float scale[C], bias[C];
    static uint8_t want[R * C], got[R * C];
    for (size_t i = 0; i < R * C; i++) acc[i] = (int32_t)below(&f, 20000) - 10000;
    for (size_t i = 0; i < C; i++) scale[i] = (float)(below(&f, 100) + 1) / 4096, bias[i] = (float)below(&f, 50) - 10;
    view full = { .dtype = SINTER_DTYPE_U8, .rank = 2, .dim = { R, C }, .stride = { C, 1 }, .data = want };
    view sums = full, out = full;
    sums.dtype = SINTER_DTYPE_I32;
    sums.data = acc;
    out.data = got;
    view in[3] = { full, { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { 1, C }, .stride = { C, 1 }, .data = scale } };
    in[2] = in[1];
    in[2].data = bias;
    CHECK_EQ(expr_run(x, 2, dim_at, &sums, in, &full, true), SINTER_OK);
    void *in_data[3] = { want, scale, bias }, *out_data = got;
    const uint8_t order[2] = { 0, 1 };
    vm_program *p = arena_alloc(&f.a, sizeof *p + vm_room(x), 64);
    for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
        CHECK_EQ(vm_bind(&f.e, p, p + 1, isa, x, 2, dim_at, order, true, in, &out), SINTER_OK);
        CHECK(p->has_chain);
        const vm_io io = { in_data, &out_data };
        for (int64_t step = 1; step < 300; step += 1 + (int64_t)below(&f, 40)) {
            const int64_t high = 1 + (int64_t)below(&f, R);
            memset(got, 0xA5, sizeof got);
            for (int64_t row = 0; row < R; row += high)
                for (int64_t col = 0; col < C; col += step)
                    vm_block(p, &io, row, R - row < high ? R - row : high, col, C - col < step ? C - col : step,
                             acc + row * C + col, C);
            CHECK(compare(&out, &full, 0, 0));
        }
    }
    arena_deinit(&f.a);
}

static const test tests[] = { T(runs_products),
                              T(runs_every_function),
                              T(runs_casts_and_quantisation),
                              T(codes_have_loops),
                              T(runs_random_programs),
                              T(runs_types),
                              T(runs_integers),
                              T(runs_blocks),
                              T(runs_integer_blocks),
                              { 0 } };
TEST_MAIN(tests)
