/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_cu.c - a CUDA source file alone as a plugin: its comment is read into a table, which stands behind the
 * functions that every such plugin shares.
 *
 * An expression is evaluated twice: over dims for the shapes, over numbers for the launch. */
#include "ops/plugin_cu.h"

#include "core/dim_range.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPERANDS = 16, FIELDS = 16, WORD = 64, LINE = 256, DEPTH = 32 };

typedef struct cu_operand {
    char name[WORD];
    sinter_dtype dtype;
    uint32_t rank;
    char dim[SINTER_RANK_MAX][WORD]; /* an input's: a name or a number; an output's: an expression */
    char like[WORD];                 /* an output of the shape of this input; an input of any shape: "*" */
} cu_operand;

typedef struct cu_plugin {
    char name[WORD], version[WORD], space[WORD], kernel[WORD];
    cu_operand in[OPERANDS], out[OPERANDS];
    uint32_t count_in, count_out, count_field, count_grid, count_arg;
    sinter_plugin_field field[FIELDS];
    char field_name[FIELDS][WORD];
    union {
        int64_t i;
        double r;
    } initial[FIELDS];
    char grid[3][LINE], block[LINE], shared[LINE], arg[SINTER_PLUGIN_ARGS][LINE];
} cu_plugin;

/* ---- expressions ---- */

typedef struct calc {
    const cu_plugin *c;
    const sinter_plugin_shapes *s;  /* over dims; or */
    const sinter_plugin_problem *p; /* over numbers */
    const char *at;
    uint32_t depth;
    bool failed;
} calc;

static int64_t number(calc *x, int64_t value)
{
    return x->s ? (int64_t)x->s->constant(x->s->dims, value) : value;
}

static int64_t divided(calc *x, int64_t a, int64_t b)
{
    if (b > 0) return i64_floor_div(a, b);
    x->failed = true;
    return 0;
}

static int64_t apply(calc *x, sinter_dim_op op, int64_t a, int64_t b)
{
    int64_t out = 0;
    if (x->s) return (int64_t)x->s->apply(x->s->dims, op, (uint32_t)a, (uint32_t)b);
    switch (op) {
    case SINTER_DIM_ADD: x->failed |= !i64_add(a, b, &out); return out;
    case SINTER_DIM_SUB: x->failed |= !i64_sub(a, b, &out); return out;
    case SINTER_DIM_MUL: x->failed |= !i64_mul(a, b, &out); return out;
    case SINTER_DIM_FLOORDIV: return divided(x, a, b);
    case SINTER_DIM_CEILDIV: return -divided(x, a == INT64_MIN ? INT64_MAX : -a, b);
    case SINTER_DIM_MOD: return a - b * divided(x, a, b);
    case SINTER_DIM_MIN: return a < b ? a : b;
    case SINTER_DIM_MAX: return a > b ? a : b;
    case SINTER_DIM_BROADCAST: return a == 1 ? b : a;
    }
    return 0;
}

static int64_t axis_of(const calc *x, uint32_t i, uint32_t k)
{
    return x->s ? (int64_t)x->s->in[i].dim[k] : x->p->in[i].opt[k];
}

static const sinter_plugin_field *field_of(const calc *x, const char *name)
{
    const sinter_plugin_field *f = x->s ? x->s->field : x->p->field;
    for (uint32_t i = 0; i < x->c->count_field; i++)
        if (strcmp(f[i].name, name) == 0) return &f[i];
    return NULL;
}

static void skip(calc *x)
{
    while (*x->at == ' ' || *x->at == '\t') x->at++;
}

static bool take(calc *x, char c)
{
    skip(x);
    if (*x->at != c) return false;
    x->at++;
    return true;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static void word(calc *x, char out[WORD])
{
    uint32_t n = 0;
    skip(x);
    while (is_word(*x->at) && n + 1 < WORD) out[n++] = *x->at++;
    out[n] = 0;
    x->failed |= !n || is_word(*x->at);
}

static int64_t sum(calc *x);

/* #x: the elements of input x. */
static int64_t elements(calc *x)
{
    char name[WORD];
    word(x, name);
    for (uint32_t i = 0; i < x->c->count_in; i++) {
        if (strcmp(x->c->in[i].name, name) != 0) continue;
        const uint32_t rank = x->s ? x->s->in[i].rank : x->p->in[i].rank;
        int64_t count = number(x, 1);
        for (uint32_t k = 0; k < rank; k++) count = apply(x, SINTER_DIM_MUL, count, axis_of(x, i, k));
        return count;
    }
    x->failed = true;
    return 0;
}

static int64_t named(calc *x)
{
    static const struct {
        const char *name;
        sinter_dim_op op;
    } two[] = { { "ceildiv", SINTER_DIM_CEILDIV },
                { "floordiv", SINTER_DIM_FLOORDIV },
                { "mod", SINTER_DIM_MOD },
                { "min", SINTER_DIM_MIN },
                { "max", SINTER_DIM_MAX } };
    char name[WORD];
    word(x, name);
    for (size_t i = 0; i < COUNT_OF(two) && !x->failed; i++) {
        if (strcmp(two[i].name, name) != 0) continue;
        x->failed |= !take(x, '(');
        const int64_t a = sum(x);
        x->failed |= !take(x, ',');
        const int64_t b = sum(x);
        x->failed |= !take(x, ')');
        return x->failed ? 0 : apply(x, two[i].op, a, b);
    }
    if (name[0] >= '0' && name[0] <= '9') {
        char *end;
        const long long value = strtoll(name, &end, 10);
        x->failed |= *end != 0 || strlen(name) > 15;
        return x->failed ? 0 : number(x, value);
    }
    for (uint32_t i = 0; i < x->c->count_in; i++)
        for (uint32_t k = 0; k < x->c->in[i].rank; k++)
            if (strcmp(x->c->in[i].dim[k], name) == 0) return axis_of(x, i, k);
    const sinter_plugin_field *f = field_of(x, name);
    if (f && f->type == SINTER_PLUGIN_INT) return number(x, *(const int64_t *)f->data);
    x->failed = true;
    return 0;
}

static int64_t atom(calc *x)
{
    if (x->failed || ++x->depth > DEPTH) {
        x->failed = true;
        return 0;
    }
    int64_t value;
    if (take(x, '(')) {
        value = sum(x);
        x->failed |= !take(x, ')');
    } else {
        value = take(x, '#') ? elements(x) : named(x);
    }
    x->depth--;
    return value;
}

static int64_t product(calc *x)
{
    int64_t a = atom(x);
    for (;;) {
        const sinter_dim_op op = take(x, '*') ? SINTER_DIM_MUL : take(x, '/') ? SINTER_DIM_FLOORDIV : SINTER_DIM_ADD;
        if (op == SINTER_DIM_ADD || x->failed) return a;
        const int64_t b = atom(x);
        a = x->failed ? 0 : apply(x, op, a, b);
    }
}

static int64_t sum(calc *x)
{
    int64_t a = product(x);
    for (;;) {
        const sinter_dim_op op = take(x, '+') ? SINTER_DIM_ADD : take(x, '-') ? SINTER_DIM_SUB : SINTER_DIM_MUL;
        if (op == SINTER_DIM_MUL || x->failed) return a;
        const int64_t b = product(x);
        a = x->failed ? 0 : apply(x, op, a, b);
    }
}

static bool evaluate(calc *x, const char *words, int64_t *out)
{
    x->at = words;
    x->depth = 0;
    *out = sum(x);
    skip(x);
    return !x->failed && !*x->at;
}

/* ---- the functions of every such plugin ---- */

static sinter_status refuse(char *error, size_t size, const char *format, const char *a, const char *b)
{
    (void)snprintf(error, size, format, a, b);
    return SINTER_INVALID_MODEL;
}

/* A name stands for one size; a number for itself. */
static bool fits(calc *x, const cu_operand *o, uint32_t i)
{
    for (uint32_t k = 0; k < o->rank; k++) {
        int64_t wanted;
        if (!evaluate(x, o->dim[k], &wanted) || wanted != axis_of(x, i, k)) return false;
    }
    return true;
}

static sinter_status shapes(sinter_plugin_shapes *s)
{
    const cu_plugin *c = s->user;
    calc x = { .c = c, .s = s };
    for (uint32_t i = 0; i < c->count_in; i++) {
        const cu_operand *o = &c->in[i];
        if (s->in[i].dtype != o->dtype || (!o->like[0] && s->in[i].rank != o->rank))
            return refuse(s->error, s->error_size, "input %s has another type or rank than the %s of its comment",
                          o->name, sinter_dtype_name(o->dtype));
    }
    for (uint32_t i = 0; i < c->count_in; i++)
        if (!fits(&x, &c->in[i], i))
            return refuse(s->error, s->error_size, "the sizes of input %s do not fit%s", c->in[i].name, "");
    for (uint32_t i = 0; i < c->count_out; i++) {
        const cu_operand *o = &c->out[i];
        s->out[i].dtype = o->dtype;
        s->out[i].rank = o->rank;
        for (uint32_t k = 0; k < c->count_in && o->like[0]; k++) {
            if (strcmp(c->in[k].name, o->like) != 0) continue;
            s->out[i] = s->in[k];
            s->out[i].dtype = o->dtype;
        }
        for (uint32_t k = 0; k < o->rank; k++) {
            int64_t size;
            if (!evaluate(&x, o->dim[k], &size))
                return refuse(s->error, s->error_size, "the size '%s' of output %s cannot be computed", o->dim[k],
                              o->name);
            s->out[i].dim[k] = (uint32_t)size;
        }
    }
    return SINTER_OK;
}

static bool operand_arg(const cu_plugin *c, const char *name, sinter_plugin_arg *out)
{
    for (uint32_t i = 0; i < c->count_in + c->count_out; i++) {
        const bool is_in = i < c->count_in;
        if (strcmp(is_in ? c->in[i].name : c->out[i - c->count_in].name, name) != 0) continue;
        *out = (sinter_plugin_arg){ .kind = is_in ? SINTER_PLUGIN_ARG_IN : SINTER_PLUGIN_ARG_OUT,
                                    .index = is_in ? i : i - c->count_in };
        return true;
    }
    return false;
}

/* "scale:f32" of a real field. */
static bool real_arg(const calc *x, const char *words, sinter_plugin_arg *out)
{
    const char *colon = strchr(words, ':');
    char name[WORD];
    if (!colon || colon - words >= WORD) return false;
    (void)snprintf(name, sizeof name, "%.*s", (int)(colon - words), words);
    const sinter_plugin_field *f = field_of(x, name);
    const bool single = strcmp(colon, ":f32") == 0;
    if (!f || f->type != SINTER_PLUGIN_REAL || (!single && strcmp(colon, ":f64") != 0)) return false;
    *out = (sinter_plugin_arg){ .kind = single ? SINTER_PLUGIN_ARG_F32 : SINTER_PLUGIN_ARG_F64,
                                .real = *(const double *)f->data };
    return true;
}

static sinter_status launch(const sinter_plugin_problem *p, sinter_plugin_launch *l)
{
    const cu_plugin *c = p->user;
    calc x = { .c = c, .p = p };
    int64_t value = 0;
    for (uint32_t i = 0; i < c->count_grid; i++) {
        if (!evaluate(&x, c->grid[i], &value) || value < 0) return SINTER_UNSUPPORTED;
        l->grid[i] = (uint64_t)value;
    }
    if (!evaluate(&x, c->block, &value) || value < 1 || value > 1024) return SINTER_UNSUPPORTED;
    l->block = (uint32_t)value;
    if (c->shared[0] && (!evaluate(&x, c->shared, &value) || value < 0 || value > 1 << 20)) return SINTER_UNSUPPORTED;
    l->shared = c->shared[0] ? (uint32_t)value : 0;
    l->count_arg = c->count_arg;
    for (uint32_t i = 0; i < c->count_arg; i++) {
        if (operand_arg(c, c->arg[i], &l->arg[i]) || real_arg(&x, c->arg[i], &l->arg[i])) continue;
        if (!evaluate(&x, c->arg[i], &value)) return SINTER_UNSUPPORTED;
        l->arg[i] = (sinter_plugin_arg){ .kind = SINTER_PLUGIN_ARG_INT, .integer = value };
    }
    return SINTER_OK;
}

/* ---- the comment ---- */

/* A list divided by commas outside of brackets, without the spaces around each. False: too many, or too long. */
static bool split(const char *words, char (*out)[LINE], uint32_t room, uint32_t *count)
{
    *count = 0;
    while (*words) {
        uint32_t n = 0, depth = 0;
        while (*words == ' ') words++;
        if (*count == room) return false;
        for (; *words && (*words != ',' || depth); words++) {
            depth += (*words == '(' || *words == '[');
            if ((*words == ')' || *words == ']') && depth) depth--;
            if (n + 1 == LINE) return false;
            out[*count][n++] = *words;
        }
        while (n && out[*count][n - 1] == ' ') n--;
        out[*count][n] = 0;
        if (!n) return false;
        (*count)++;
        words += *words == ',';
    }
    return true;
}

/* "x f32 [N, C]", "x f32 [*]", "y f32 [*x]". */
static bool read_operand(const char *words, bool is_in, cu_operand *o)
{
    char type[WORD], list[SINTER_RANK_MAX][LINE], inner[LINE];
    int at = 0;
    if (sscanf(words, "%63s %63s [%n", o->name, type, &at) != 2 || !at) return false;
    const char *close = strrchr(words, ']');
    if (!dtype_parse(type, strlen(type), &o->dtype) || !close || close < words + at) return false;
    (void)snprintf(inner, sizeof inner, "%.*s", (int)(close - words - at), words + at);
    if (inner[0] == '*') {
        (void)snprintf(o->like, sizeof o->like, "%.63s", is_in ? "*" : inner + 1);
        return is_in ? !inner[1] : o->like[0] != 0;
    }
    if (!split(inner, list, SINTER_RANK_MAX, &o->rank)) return false;
    for (uint32_t k = 0; k < o->rank; k++) {
        if (strlen(list[k]) >= WORD) return false;
        memcpy(o->dim[k], list[k], strlen(list[k]) + 1);
    }
    return true;
}

/* "scale real 1", "k int": without a default the node has to give it. */
static bool read_field(const char *words, cu_plugin *c)
{
    char type[WORD], value[WORD] = "";
    if (c->count_field == FIELDS) return false;
    const uint32_t i = c->count_field++;
    if (sscanf(words, "%63s %63s %63s", c->field_name[i], type, value) < 2) return false;
    const bool is_int = strcmp(type, "int") == 0;
    if (!is_int && strcmp(type, "real") != 0) return false;
    scan s = scan_of(value, strlen(value));
    if (value[0] && (is_int ? !scan_i64(&s, &c->initial[i].i) : !scan_f64(&s, &c->initial[i].r))) return false;
    c->field[i] = (sinter_plugin_field){ .name = c->field_name[i],
                                         .type = is_int ? SINTER_PLUGIN_INT : SINTER_PLUGIN_REAL,
                                         .count = 1,
                                         .data = value[0] ? &c->initial[i] : NULL };
    return s.at == s.end;
}

static bool read_text(const char *words, char *out, size_t size)
{
    return (size_t)snprintf(out, size, "%s", words) < size;
}

static bool read_line(const char *key, const char *words, cu_plugin *c)
{
    if (strcmp(key, "name") == 0) return read_text(words, c->name, sizeof c->name);
    if (strcmp(key, "version") == 0) return read_text(words, c->version, sizeof c->version);
    if (strcmp(key, "namespace") == 0) return read_text(words, c->space, sizeof c->space);
    if (strcmp(key, "kernel") == 0) return read_text(words, c->kernel, sizeof c->kernel);
    if (strcmp(key, "block") == 0) return read_text(words, c->block, sizeof c->block);
    if (strcmp(key, "shared") == 0) return read_text(words, c->shared, sizeof c->shared);
    if (strcmp(key, "grid") == 0) return split(words, c->grid, 3, &c->count_grid);
    if (strcmp(key, "args") == 0) return split(words, c->arg, SINTER_PLUGIN_ARGS, &c->count_arg);
    if (strcmp(key, "field") == 0) return read_field(words, c);
    if (strcmp(key, "input") == 0) return c->count_in < OPERANDS && read_operand(words, true, &c->in[c->count_in++]);
    if (strcmp(key, "output") == 0)
        return c->count_out < OPERANDS && read_operand(words, false, &c->out[c->count_out++]);
    return false;
}

static sinter_status read_comment(env *e, const char *path, const char *words, cu_plugin *c)
{
    const char *at = strstr(words, "/* sinter plugin"), *end = at ? strstr(at, "*/") : NULL;
    if (!end) return FAIL(e, INVALID_ARG, "'%s' has no comment that begins with '/* sinter plugin'", path);
    for (at = strchr(at, '\n'); at && at < end; at = strchr(at + 1, '\n')) {
        char line[LINE], key[WORD] = "";
        int from = 0;
        const char *begin = at + 1;
        while (*begin == ' ' || *begin == '\t' || (*begin == '*' && begin[1] != '/')) begin++;
        size_t length = strcspn(begin, "\n");
        if (begin + length > end) length = (size_t)(end - begin);
        while (length && (begin[length - 1] == ' ' || begin[length - 1] == '\r')) length--;
        if (begin >= end || !length) break; /* what follows an empty line is the author's */
        const bool fit = length < LINE;
        (void)snprintf(line, sizeof line, "%.*s", (int)(fit ? length : LINE - 1), begin);
        if (!fit || sscanf(line, "%63s %n", key, &from) != 1 || !read_line(key, line + (from ? from : (int)length), c))
            return FAIL(e, INVALID_ARG, "'%s': the line '%.100s' of the plugin's comment is not understood", path,
                        line);
    }
    if (!c->name[0] || !c->kernel[0] || !c->block[0] || !c->count_grid || !c->count_out)
        return FAIL(e, INVALID_ARG, "'%s': the plugin's comment has no line '%s'", path,
                    !c->name[0]     ? "name"
                    : !c->kernel[0] ? "kernel"
                    : !c->block[0]  ? "block"
                    : !c->count_out ? "output"
                                    : "grid");
    return SINTER_OK;
}

sinter_status plugin_cu_add(env *e, struct sinter_plugins *r, const char *path, const char *words, size_t size)
{
    cu_plugin *c = ARENA_NEW(&r->a, cu_plugin, 1);
    char *own = arena_text(&r->a, words, size);
    if (!c || !own) return FAIL_MEMORY(e, "a plugin");
    if (strlen(own) != size) return FAIL(e, INVALID_ARG, "'%s' is no text: it has a NUL", path);
    TRY(read_comment(e, path, own, c));
    const sinter_plugin p = { .struct_size = sizeof p,
                              .name = c->name,
                              .version = c->version[0] ? c->version : "1",
                              .space = c->space,
                              .user = c,
                              .field = c->field,
                              .count_field = c->count_field,
                              .in_min = c->count_in,
                              .in_max = c->count_in,
                              .out_min = c->count_out,
                              .out_max = c->count_out,
                              .shapes = shapes,
                              .cuda_source = own,
                              .cuda_kernel = c->kernel,
                              .cuda_launch = launch };
    return NOTE(e, plugin_add(e, r, &p), "reading '%s'", path);
}
