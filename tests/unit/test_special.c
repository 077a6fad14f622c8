/* SPDX-License-Identifier: Apache-2.0 */
/* test_special.c - scalar functions on zeros, infinities, NaN, subnormals, ties and limits against tests/special: the
 * reference, and the loops of each instruction set at every place of a row.
 *
 * The table's numbers are those of ONNX's text (make.py), not of the reference. Signs of zeros count. */
#include "base/arena.h"
#include "base/os.h"
#include "core/dtype.h"
#include "cpu/vm.h"
#include "places.h"
#include "test.h"

#include <math.h>

enum { VALUES = 64, ROW = 40 };

typedef struct table_line {
    op_id op;
    sinter_dtype to;
    uint32_t arity;
    double y, z;
    double want[VALUES];
} table_line;

typedef struct table {
    env e;
    arena a;
    uint32_t count; /* of x */
    double x[VALUES];
    long lines;
} table;

static double number(const char **at)
{
    char *end;
    const double v = strtod(*at, &end);
    *at = end;
    return v;
}

static uint32_t numbers(const char *at, double *out)
{
    uint32_t count = 0;
    while (count < VALUES && at[strspn(at, " ")]) out[count++] = number(&at);
    return count;
}

/* Nine digits name one f32, not one double. */
static void read_x(table *t, const char *at)
{
    t->count = numbers(at, t->x);
    for (uint32_t i = 0; i < t->count; i++) t->x[i] = (double)(float)t->x[i];
}

/* "name to=T y=V z=V : numbers" */
static bool parse(char *words, const table *t, table_line *l)
{
    *l = (table_line){ .op = OP_SCALAR_COUNT, .to = SINTER_DTYPE_F32, .arity = 1 };
    char *colon = strstr(words, " : ");
    if (!colon) return false;
    *colon = 0;
    char *save = NULL;
    const char *word = strtok_r(words, " ", &save);
    for (uint32_t op = 0; op < OP_SCALAR_COUNT; op++)
        if (!strcmp(scalar_at((op_id)op)->name, word)) l->op = (op_id)op, l->arity = scalar_at((op_id)op)->arity;
    if (l->op != OP_SCALAR_COUNT && !strcmp(scalar_at(l->op)->result, "BOOL")) l->to = SINTER_DTYPE_BOOL;
    while ((word = strtok_r(NULL, " ", &save))) {
        const char *value = strchr(word, '=') + 1;
        if (word[0] == 'y') l->y = (double)(float)number(&value);
        else if (word[0] == 'z') l->z = (double)(float)number(&value);
        else if (!dtype_parse(value, strlen(value), &l->to)) return false;
    }
    return l->op != OP_SCALAR_COUNT && numbers(colon + 3, l->want) == t->count;
}

/* Between zeros of both signs a choice of the lesser or greater is free. */
static bool chooses(op_id op)
{
    return op == OP_min || op == OP_max || op == OP_clip || op == OP_celu;
}

static bool is_same(const table_line *l, double got, double want)
{
    if (isnan(got) || isnan(want)) return isnan(got) && isnan(want);
    if (got == want) return !dtype_is_float(l->to) || signbit(got) == signbit(want) || chooses(l->op);
    const scalar_error bound = scalar_error_of(l->op);
    return dtype_is_float(l->to) && isfinite(got) && isfinite(want) &&
           fabs(got - want) <= bound.least + (bound.ulps + 1) * fmax(fabs(want) * 0x1p-23, 0x1p-149);
}

static void report(const table_line *l, const char *who, double x, double got, double want)
{
    test_failures++;
    (void)printf("%s %s of %.9g, %.9g, %.9g to %s is %.9g, wanted %.9g\n", who, scalar_at(l->op)->name, x, l->y, l->z,
                 sinter_dtype_name(l->to), got, want);
}

static double real_of(sinter_dtype type, scalar v)
{
    return dtype_is_float(type) ? v.f : type == SINTER_DTYPE_U64 ? (double)(uint64_t)v.i : (double)v.i;
}

/* The type of further argument k: zero points have that of the result. */
static sinter_dtype type_of(const table_line *l, uint32_t k)
{
    return l->op == OP_quantize && k == 2 ? l->to : SINTER_DTYPE_F32;
}

static void check_reference(const table *t, const table_line *l)
{
    for (uint32_t i = 0; i < t->count; i++) {
        const scalar z = dtype_is_float(type_of(l, 2)) ? (scalar){ .f = l->z } : (scalar){ .i = (int64_t)l->z };
        const scalar arg[3] = { { .f = t->x[i] }, { .f = l->y }, z };
        uint64_t cell = 0;
        scalar_store(l->to, &cell, 0, scalar_eval(l->op, SINTER_DTYPE_F32, l->to, arg));
        const double got = real_of(l->to, scalar_load(l->to, &cell, 0));
        if (!is_same(l, got, l->want[i])) report(l, "reference:", t->x[i], got, l->want[i]);
    }
}

static void program_of(const table_line *l, char *out, size_t size)
{
    int at = 0;
    const char *const letters = "abc";
    for (uint32_t k = 0; k < l->arity; k++)
        at +=
            snprintf(out + at, size - (size_t)at, "%c=load %u : %s; ", letters[k], k, sinter_dtype_name(type_of(l, k)));
    at += snprintf(out + at, size - (size_t)at, "d=%s", scalar_at(l->op)->name);
    for (uint32_t k = 0; k < l->arity; k++) at += snprintf(out + at, size - (size_t)at, " %c", letters[k]);
    (void)snprintf(out + at, size - (size_t)at, " : %s; store 0 d", sinter_dtype_name(l->to));
}

/* Rows of n that begin at each value in turn. spread: further arguments are rows, too, not one number. */
static void check_loops(table *t, const table_line *l, isa_level isa, int64_t n, bool spread)
{
    char program[256], who[64];
    const char *why = NULL;
    expr *x = NULL;
    float row[3][ROW];
    int32_t zero[ROW] = { 0 };
    uint64_t result[ROW] = { 0 };
    program_of(l, program, sizeof program);
    scan s = scan_of(program, strlen(program));
    if (!CHECK(expr_parse(&t->a, &s, &x, &why))) return;
    view in[3], out;
    void *data[3], *to = result;
    for (uint32_t k = 0; k < l->arity; k++) {
        const int64_t dim_at[1] = { k && !spread ? 1 : n };
        data[k] = dtype_is_float(type_of(l, k)) ? (void *)row[k] : zero;
        (void)view_init(&in[k], type_of(l, k), 1, dim_at, data[k]);
    }
    const int64_t dim_at[1] = { n };
    (void)view_init(&out, l->to, 1, dim_at, result);
    vm_program *p = arena_alloc(&t->a, sizeof *p + vm_room(x), 64);
    if (!CHECK_EQ(vm_bind(&t->e, p, p + 1, isa, x, 1, dim_at, NULL, false, in, &out), SINTER_OK)) return;
    for (int64_t i = 0; i < n; i++) {
        row[1][i] = (float)l->y;
        row[2][i] = (float)l->z;
        if (l->arity > 2 && !dtype_is_float(type_of(l, 2))) dtype_store_i64(l->to, zero, i, (int64_t)l->z);
    }
    (void)snprintf(who, sizeof who, "%s, row of %d%s:", isa_level_name(isa), (int)n, spread ? " and rows" : "");
    const vm_io io = { data, &to };
    for (uint32_t first = 0; first < t->count; first++) {
        for (int64_t i = 0; i < n; i++) row[0][i] = (float)t->x[(first + (uint32_t)i) % t->count];
        vm_run(p, &io, 0, vm_tile_count(p));
        for (int64_t i = 0; i < n; i++) {
            const double got = real_of(l->to, scalar_load(l->to, result, i)),
                         want = l->want[(first + (uint32_t)i) % t->count];
            if (is_same(l, got, want)) continue;
            report(l, who, (double)row[0][i], got, want);
            return;
        }
    }
}

static void check_line(table *t, const table_line *l)
{
    static const int64_t rows[] = { 1, 3, 4, 5, 11, 16, 23, 33 };
    check_reference(t, l);
    for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            const arena_mark mark = arena_save(&t->a);
            check_loops(t, l, isa, rows[i], false);
            if (l->arity > 1) check_loops(t, l, isa, rows[i], true);
            arena_rewind(&t->a, mark);
        }
    }
    t->lines++;
}

static void table_of_onnx(void)
{
    static table t;
    os_file file;
    char path[512];
    (void)snprintf(path, sizeof path, "%s/tests/special/scalar.txt", PLACE_SOURCE_DIR);
    env_init(&t.e, NULL, NULL);
    arena_init(&t.a, &t.e);
    if (!CHECK_EQ(os_file_read(&t.e, path, 1 << 20, &file), SINTER_OK)) return;
    char *all = malloc(file.size + 1), *save = NULL;
    if (!all) exit(2);
    memcpy(all, file.data, file.size);
    all[file.size] = 0;
    for (char *line = strtok_r(all, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        table_line l;
        if (line[0] == '#') continue;
        if (!strncmp(line, "x : ", 4)) read_x(&t, line + 4);
        else if (parse(line, &t, &l)) check_line(&t, &l);
        else CHECK_STR(line, "a line of the table");
    }
    CHECK(t.lines > 100);
    free(all);
    os_file_close(&t.e, &file);
    arena_deinit(&t.a);
}

static const test tests[] = { T(table_of_onnx), { 0 } };
TEST_MAIN(tests)
