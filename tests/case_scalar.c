/* SPDX-License-Identifier: Apache-2.0 */
/* case_scalar.c - problem lines that the op table makes: every scalar function on every type that it takes.
 *
 * Functions of the same type and arity share a program of several results, so that few codes are compiled. Further
 * operands are whole tensors in one form and single elements in the other: kernels have loops for both. */
#include "case_lines.h"

enum { RESULTS = 12 };

typedef struct writer {
    case_rig *rig;
    case_lines *lines;
    text in, out, program;
    uint32_t results, loads, next; /* next: number of the next instruction */
} writer;

static const sinter_dtype types[] = {
    SINTER_DTYPE_F32,        SINTER_DTYPE_F16,        SINTER_DTYPE_BF16, SINTER_DTYPE_F64,      SINTER_DTYPE_I8,
    SINTER_DTYPE_U8,         SINTER_DTYPE_I16,        SINTER_DTYPE_U16,  SINTER_DTYPE_I32,      SINTER_DTYPE_U32,
    SINTER_DTYPE_I64,        SINTER_DTYPE_U64,        SINTER_DTYPE_BOOL, SINTER_DTYPE_F8E4M3FN, SINTER_DTYPE_F8E5M2,
    SINTER_DTYPE_F8E4M3FNUZ, SINTER_DTYPE_F8E5M2FNUZ,
};
enum { PLAIN_TYPES = 13 };

static void begin(writer *w)
{
    text_init(&w->in, &w->rig->e);
    text_init(&w->out, &w->rig->e);
    text_init(&w->program, &w->rig->e);
    w->results = w->loads = w->next = 0;
}

static void end(writer *w)
{
    if (w->results) {
        case_line l = { .at = arena_printf(&w->rig->a, "pointwise:%s ->%s epi=\"%s\"", w->in.at, w->out.at,
                                           w->program.at),
                        .is_special = true };
        case_lines_put(w->lines, l);
    }
    text_deinit(&w->in);
    text_deinit(&w->out);
    text_deinit(&w->program);
    begin(w);
}

static void load(writer *w, sinter_dtype type, const char *shape)
{
    text_printf(&w->in, "%s%s[%s]", w->loads ? " " : "", sinter_dtype_name(type), shape);
    text_printf(&w->program, "%sv%u=load %u : %s", w->loads ? "; " : "", w->next++, w->loads, sinter_dtype_name(type));
    w->loads++;
}

/* Result `function v<first> v<first + 1> ...` of `type`. */
static void store(writer *w, const char *function, const uint32_t *arg, uint32_t arity, sinter_dtype type)
{
    const char *name = sinter_dtype_name(type);
    text_printf(&w->program, "; v%u=%s", w->next, function);
    for (uint32_t i = 0; i < arity; i++) text_printf(&w->program, " v%u", arg[i]);
    text_printf(&w->program, " : %s; store %u v%u", name, w->results, w->next++);
    text_printf(&w->out, " %s[23,41]", name);
    w->results++;
}

static bool takes(op_id op, sinter_dtype type)
{
    const char *t = scalar_at(op)->types;
    const bool is_float = dtype_is_float(type), is_bool = type == SINTER_DTYPE_BOOL;
    if (sinter_dtype_bits(type) == 8 && is_float) return false;
    return !strcmp(t, "NUM")   ? !is_bool
           : !strcmp(t, "FLT") ? is_float
           : !strcmp(t, "LOG") ? is_bool
           : !strcmp(t, "ALL") ? true
                               : !is_float && !is_bool;
}

static bool is_typed(op_id op)
{
    return !strcmp(scalar_at(op)->result, "TYPED") || op == OP_where;
}

/* Further arguments are attributes in ONNX, whose values are finite. */
static bool has_parameters(uint32_t op)
{
    return op_has((op_id)op, PARAMETERS);
}

static void functions(writer *w, sinter_dtype type, uint32_t arity, const char *further, bool parameters)
{
    const uint32_t arg[3] = { 0, 1, 2 };
    for (uint32_t op = 0; op < OP_SCALAR_COUNT; op++) {
        const scalar_info *i = scalar_at((op_id)op);
        if (i->arity != arity || is_typed((op_id)op) || !takes((op_id)op, type) || has_parameters(op) != parameters)
            continue;
        for (uint32_t k = 0; !w->results && k < arity; k++) load(w, type, k ? further : "23,41");
        store(w, i->name, arg, arity, !strcmp(i->result, "BOOL") ? SINTER_DTYPE_BOOL : type);
        if (w->results == RESULTS) end(w);
    }
    end(w);
}

static void casts(writer *w, sinter_dtype from)
{
    const uint32_t arg[1] = { 0 };
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        if (!w->results) load(w, from, "23,41");
        store(w, "cast", arg, 1, types[i]);
        if (dtype_is_float(types[i]) && sinter_dtype_bits(types[i]) == 8) store(w, "cast_wrap", arg, 1, types[i]);
        if (w->results >= RESULTS - 1) end(w);
    }
    end(w);
}

/* where, quantize and dequantize: their operands differ in type. */
static void mixed(writer *w, sinter_dtype type, const char *further)
{
    const uint32_t arg[3] = { 0, 1, 2 };
    load(w, SINTER_DTYPE_BOOL, "23,41");
    load(w, type, "23,41");
    load(w, type, further);
    store(w, "where", arg, 3, type);
    end(w);
    if (!dtype_is_int(type) || sinter_dtype_bits(type) > 32) return;
    load(w, SINTER_DTYPE_F32, "23,41");
    load(w, SINTER_DTYPE_F32, further);
    load(w, type, further);
    store(w, "quantize", arg, 3, type);
    end(w);
    load(w, type, "23,41");
    load(w, SINTER_DTYPE_F32, further);
    load(w, type, further);
    store(w, "dequantize", arg, 3, SINTER_DTYPE_F32);
    end(w);
}

void case_lines_scalar(case_rig *r, case_lines *l)
{
    writer w = { .rig = r, .lines = l };
    begin(&w);
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        casts(&w, types[i]);
        for (uint32_t form = 0; form < 2 && i < PLAIN_TYPES; form++) {
            const char *further = form ? "1" : "23,41";
            for (uint32_t arity = 1 + form; arity <= 3; arity++) {
                functions(&w, types[i], arity, further, false);
                functions(&w, types[i], arity, further, true);
            }
            mixed(&w, types[i], further);
        }
    }
    end(&w);
}
