/* SPDX-License-Identifier: Apache-2.0 */
/* export_size.c - sizes as values of the model: constants, or Shape and arithmetic, each computed once.
 *
 * A size is an expression over symbols. Each symbol is read where it is known: from the shape of an input, of a tensor
 * whose size data decides, or from a number that the model computes. An expression is computed in the outermost graph
 * that knows all its symbols, so subgraphs share it. */
#include "onnx/exporter.h"

#include <string.h>

/* ---- scopes ---- */

export_scope *export_scope_enter(exporter *x, ir_region_id region)
{
    export_scope *s = ARENA_NEW(&x->a, export_scope, 1);
    if (!s) {
        EXPORT_FAIL(x, NO_MEMORY, "out of memory for a graph");
        return NULL;
    }
    *s = (export_scope){ .outer = x->scope, .depth = x->scope ? x->scope->depth + 1 : 0, .region = region };
    wire_out_init(&s->nodes, x->e);
    wire_out_init(&s->infos, x->e);
    x->scope = s;
    return s;
}

void export_scope_leave(exporter *x, export_scope *s)
{
    if (!s) return;
    wire_out_deinit(&s->nodes);
    wire_out_deinit(&s->infos);
    x->scope = s->outer;
}

static export_scope *main_scope(exporter *x)
{
    export_scope *s = x->scope;
    while (s->outer) s = s->outer;
    return s;
}

static const export_source *source_find(const exporter *x, uint32_t symbol, export_scope **in)
{
    for (export_scope *s = x->scope; s; s = s->outer) {
        for (uint32_t i = s->source.count; i-- > 0;) {
            if (s->source.at[i].symbol != symbol) continue;
            *in = s;
            return &s->source.at[i];
        }
    }
    return NULL;
}

static void source_add(exporter *x, const export_source *from)
{
    export_scope *in;
    if (source_find(x, from->symbol, &in) && in == x->scope) return;
    export_source *to = VEC_PUSH(&x->a, &x->scope->source);
    if (to) *to = *from;
    else EXPORT_FAIL(x, NO_MEMORY, "out of memory for sizes");
}

void export_know_dims(exporter *x, ir_value_id v, const char *name, bool is_input)
{
    const ir_value *value = ir_value_at(x->g, v);
    for (uint32_t i = 0; i < value->rank; i++) {
        uint32_t symbol;
        export_scope *in;
        if (!dim_symbol_of(x->g->dims, value->dim[i], &symbol)) continue;
        const bool is_late = dim_symbol_at(x->g->dims, symbol)->is_late;
        if (!is_input && (!is_late || source_find(x, symbol, &in))) continue;
        if (is_input && x->scope->outer && source_find(x, symbol, &in)) continue; /* a parameter of a subgraph */
        source_add(x, &(export_source){ .symbol = symbol, .tensor = name, .at = i });
    }
}

void export_know_number(exporter *x, dim d, const char *tensor, uint32_t at, uint32_t rank)
{
    uint32_t symbol;
    if (!dim_symbol_of(x->g->dims, d, &symbol)) return;
    source_add(x, &(export_source){ .symbol = symbol, .tensor = tensor, .at = at, .is_number = true, .rank = rank });
}

/* ---- one size ---- */

static const char **slot_of(exporter *x, export_scope *s, dim d, bool is_scalar)
{
    while (!x->status && (is_scalar ? s->scalar.count : s->one.count) <= d) {
        const char **slot = is_scalar ? VEC_PUSH(&x->a, &s->scalar) : VEC_PUSH(&x->a, &s->one);
        if (!slot) EXPORT_FAIL(x, NO_MEMORY, "out of memory for sizes");
    }
    if (x->status) return &x->spare;
    return is_scalar ? &s->scalar.at[d] : &s->one.at[d];
}

static const char *known(const exporter *x, dim d, bool is_scalar, export_scope **in)
{
    for (export_scope *s = x->scope; s; s = s->outer) {
        const char *name =
            is_scalar ? (d < s->scalar.count ? s->scalar.at[d] : NULL) : (d < s->one.count ? s->one.at[d] : NULL);
        if (!name) continue;
        *in = s;
        return name;
    }
    return NULL;
}

typedef struct sized {
    const char *name;
    export_scope *scope;
} sized;

static sized size_one(exporter *x, dim d);

static sized binary(exporter *x, const char *type, sized a, sized b)
{
    export_scope *scope = a.scope->depth > b.scope->depth ? a.scope : b.scope;
    return (sized){ export_emit(x, scope, type, (const char *[]){ a.name, b.name }, 2), scope };
}

static sized number(exporter *x, int64_t value)
{
    return (sized){ export_ints(x, &value, 1), main_scope(x) };
}

/* Towards minus infinity. ONNX's Div truncates, so a dividend that may be negative loses its remainder first. */
static sized floor_div(exporter *x, dim a, sized p, dim b, sized q)
{
    const dim_range r = dim_range_of(x->g->dims, a), s = dim_range_of(x->g->dims, b);
    if (r.min >= 0 && s.min >= 0) return binary(x, "Div", p, q);
    return binary(x, "Div", binary(x, "Sub", p, binary(x, "Mod", p, q)), q);
}

static sized size_symbol(exporter *x, dim d)
{
    uint32_t symbol = 0;
    export_scope *scope = main_scope(x);
    (void)dim_symbol_of(x->g->dims, d, &symbol);
    const export_source *s = source_find(x, symbol, &scope);
    if (!s) {
        EXPORT_FAIL(x, UNSUPPORTED, "the size '%s' is no axis of an input by itself: it cannot be read in the model",
                    dim_symbol_at(x->g->dims, symbol)->name);
        return number(x, 1);
    }
    const export_source from = *s;
    if (from.is_number) {
        const char *in[2] = { from.tensor, export_ints(x, &(int64_t){ from.rank ? from.at : 1 }, 1) };
        return (sized){ export_emit(x, scope, from.rank ? "Gather" : "Reshape", in, 2), scope };
    }
    const char *name = export_fresh(x, "size");
    export_node n = node_begin(x, "Shape");
    node_in(x, &n, from.tensor);
    node_out(x, &n, name);
    node_int(x, &n, "start", from.at);
    node_int(x, &n, "end", (int64_t)from.at + 1);
    node_end(x, &n, scope);
    return (sized){ name, scope };
}

static sized size_of(exporter *x, dim d)
{
    const dim_node n = *dim_at(x->g->dims, d);
    if (n.kind == DIM_CONST) return number(x, n.value);
    if (n.kind == DIM_SYMBOL) return size_symbol(x, d);
    if (n.kind <= DIM_SYMBOL || n.kind >= DIM_KIND_COUNT) {
        EXPORT_FAIL(x, INTERNAL, "a size that is none");
        return number(x, 1);
    }
    sized a = size_one(x, n.a);
    const sized b = size_one(x, n.b);
    if (x->status) return number(x, 1);
    switch ((dim_kind)n.kind) {
    case DIM_ADD: return binary(x, "Add", a, b);
    case DIM_MUL: return binary(x, "Mul", a, b);
    case DIM_MOD: return binary(x, "Mod", a, b);
    case DIM_MIN: return binary(x, "Min", a, b);
    case DIM_MAX: return binary(x, "Max", a, b);
    case DIM_FLOORDIV: return floor_div(x, n.a, a, n.b, b);
    case DIM_CEILDIV: /* -floor(-a / b) */
        a = floor_div(x, DIM_NONE, binary(x, "Sub", number(x, 0), a), n.b, b);
        return binary(x, "Sub", number(x, 0), a);
    default: break;
    }
    /* A broadcast: the one that is not 1. */
    const sized is_one = binary(x, "Equal", a, number(x, 1));
    export_scope *scope = is_one.scope->depth > b.scope->depth ? is_one.scope : b.scope;
    return (sized){ export_emit(x, scope, "Where", (const char *[]){ is_one.name, b.name, a.name }, 3), scope };
}

static sized size_one(exporter *x, dim d)
{
    export_scope *scope = NULL;
    const char *name = known(x, d, false, &scope);
    if (name) return (sized){ name, scope };
    const sized s = size_of(x, d);
    *slot_of(x, s.scope, d, false) = s.name;
    return s;
}

const char *export_size(exporter *x, dim d)
{
    return x->status ? "" : size_one(x, d).name;
}

const char *export_size_scalar(exporter *x, dim d)
{
    int64_t value;
    export_scope *scope = NULL;
    if (x->status) return "";
    if (dim_is_const(x->g->dims, d, &value)) return export_int(x, value);
    const char *name = known(x, d, true, &scope);
    if (name) return name;
    const sized s = size_one(x, d);
    name = export_emit(x, s.scope, "Reshape", (const char *[]){ s.name, export_ints(x, NULL, 0) }, 2);
    *slot_of(x, s.scope, d, true) = name;
    return name;
}

/* ---- lists ---- */

static const char *list_known(const exporter *x, const dim *d, uint32_t count)
{
    for (const export_scope *s = x->scope; s; s = s->outer)
        for (uint32_t i = 0; i < s->list.count; i++)
            if (s->list.at[i].count == count && !memcmp(s->list.at[i].at, d, count * sizeof *d))
                return s->list.at[i].name;
    return NULL;
}

/* How many dims from `i` on are constants. */
static uint32_t run_of_constants(exporter *x, const dim *d, uint32_t i, uint32_t count, int64_t *value)
{
    uint32_t n = 0;
    while (i + n < count && dim_is_const(x->g->dims, d[i + n], &value[n])) n++;
    return n;
}

const char *export_sizes(exporter *x, const dim *d, uint32_t count)
{
    int64_t value[64];
    const char *part[64] = { "" };
    uint32_t parts = 0;
    if (count > COUNT_OF(value)) EXPORT_FAIL(x, UNSUPPORTED, "a list of %u sizes; up to 64 are supported", count);
    if (x->status) return "";
    if (run_of_constants(x, d, 0, count, value) == count) return export_ints(x, value, count);
    const char *name = list_known(x, d, count);
    if (name) return name;
    export_scope *scope = main_scope(x);
    for (uint32_t i = 0; i < count && !x->status;) {
        const uint32_t n = run_of_constants(x, d, i, count, value);
        if (n) {
            part[parts++] = export_ints(x, value, n);
            i += n;
            continue;
        }
        const sized s = size_one(x, d[i++]);
        part[parts++] = s.name;
        if (s.scope->depth > scope->depth) scope = s.scope;
    }
    if (x->status) return "";
    name = part[0];
    if (parts > 1) {
        name = export_fresh(x, "sizes");
        export_node n = node_begin(x, "Concat");
        for (uint32_t i = 0; i < parts; i++) node_in(x, &n, part[i]);
        node_out(x, &n, name);
        node_int(x, &n, "axis", 0);
        node_end(x, &n, scope);
    }
    export_list *to = VEC_PUSH(&x->a, &scope->list);
    dim *copy = ARENA_NEW(&x->a, dim, count);
    if (!to || !copy) {
        EXPORT_FAIL(x, NO_MEMORY, "out of memory for sizes");
        return "";
    }
    memcpy(copy, d, count * sizeof *d);
    *to = (export_list){ .at = copy, .count = count, .name = name };
    return name;
}

dim export_dim(const attr_dims *list, uint32_t i)
{
    return i < list->count ? (dim)list->at[i] : DIM_NONE;
}

const char *export_dims(exporter *x, const attr_dims *list)
{
    dim d[64];
    if (list->count > COUNT_OF(d)) EXPORT_FAIL(x, UNSUPPORTED, "a list of %u sizes", list->count);
    if (x->status) return "";
    for (uint32_t i = 0; i < list->count; i++) d[i] = export_dim(list, i);
    return export_sizes(x, d, list->count);
}
