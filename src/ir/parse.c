/* SPDX-License-Identifier: Apache-2.0 */
/* parse.c - reads what ir_print.c writes, and what people write by hand.
 *
 * Types and dims of a node's outputs may be left out; they are inferred then. Constants given by a hash alone get
 * pseudo-random values seeded with it: enough to run and compare. Numbers of values are names, nothing more: the graph
 * numbers them anew. */
#include "ir/graph.h"

#include <string.h>

typedef struct name_row {
    uint32_t number;
    ir_value_id value;
} name_row;
typedef struct parser {
    env *e;
    ir_graph *g;
    scan s;
    uint32_t line;
    name_row *map; /* open addressing; value 0: free */
    uint32_t map_size, map_used;
} parser;

static sinter_status bad(parser *p, const char *what)
{
    size_t length = 0;
    while (p->s.at + length < p->s.end && p->s.at[length] != '\n' && length < 40) length++;
    return FAIL(p->e, INVALID_MODEL, "graph text line %u: %s at '%.*s'", p->line, what, (int)length, p->s.at);
}

static ir_value_id *slot_of(parser *p, uint32_t number)
{
    uint32_t i = (number * 2654435761u) & (p->map_size - 1);
    while (p->map[i].value && p->map[i].number != number) i = (i + 1) & (p->map_size - 1);
    p->map[i].number = number;
    return &p->map[i].value;
}

static sinter_status map_grow(parser *p)
{
    if (p->map_used * 2 < p->map_size) return SINTER_OK;
    name_row *old = p->map;
    const uint32_t size = p->map_size;
    if (size >= 1u << 28) return FAIL_MEMORY(p->e, "graph text");
    p->map = ARENA_NEW(&p->g->a, name_row, (size_t)(size ? size * 2 : 256));
    if (!p->map) return FAIL_MEMORY(p->e, "graph text");
    p->map_size = size ? size * 2 : 256;
    for (uint32_t i = 0; i < size; i++)
        if (old[i].value) *slot_of(p, old[i].number) = old[i].value;
    return SINTER_OK;
}

static sinter_status define(parser *p, uint32_t number, ir_value_id v)
{
    if (!v) return FAIL_MEMORY(p->e, "graph text");
    TRY(map_grow(p));
    ir_value_id *slot = slot_of(p, number);
    if (*slot) return FAIL(p->e, INVALID_MODEL, "graph text line %u: %%%u is defined twice", p->line, number);
    *slot = v;
    p->map_used++;
    return SINTER_OK;
}

static bool number(parser *p, uint32_t *out)
{
    int64_t v;
    const scan before = p->s;
    if (scan_char(&p->s, '%') && scan_i64(&p->s, &v) && v >= 0 && v <= UINT32_MAX) {
        *out = (uint32_t)v;
        return true;
    }
    p->s = before;
    return false;
}

static sinter_status use(parser *p, ir_value_id *out)
{
    uint32_t n;
    if (!number(p, &n)) return bad(p, "a value is missing");
    *out = p->map_size ? *slot_of(p, n) : 0;
    if (!*out) return FAIL(p->e, INVALID_MODEL, "graph text line %u: %%%u is not defined", p->line, n);
    return SINTER_OK;
}

typedef struct type {
    sinter_dtype dtype;
    uint32_t rank;
    dim at[SINTER_RANK_MAX];
} type;

static sinter_status parse_type(parser *p, type *t)
{
    const char *name;
    size_t length;
    scan_space(&p->s);
    if (!scan_name(&p->s, &name, &length) || !dtype_parse(name, length, &t->dtype)) return bad(p, "a type is missing");
    t->rank = 0;
    if (!scan_char(&p->s, '[')) return bad(p, "'[' is missing");
    if (scan_char(&p->s, ']')) return SINTER_OK;
    do {
        if (t->rank == SINTER_RANK_MAX) return bad(p, "too many axes");
        if (!dim_parse(p->g->dims, &p->s, &t->at[t->rank++])) return bad(p, "a dimension is malformed");
    } while (scan_char(&p->s, ','));
    return scan_char(&p->s, ']') ? SINTER_OK : bad(p, "']' is missing");
}

static bool word_equals(parser *p, const char *word)
{
    const scan before = p->s;
    scan_space(&p->s);
    if (scan_word(&p->s, word) && scan_char(&p->s, '=')) return true;
    p->s = before;
    return false;
}

static sinter_status parse_name(parser *p, const char **out)
{
    char *name = NULL;
    if (word_equals(p, "name")) {
        if (!scan_quoted(&p->s, &p->g->a, &name)) return bad(p, "a quoted name is missing");
        *out = name;
    }
    return SINTER_OK;
}

static sinter_status line_end(parser *p)
{
    scan_space(&p->s);
    if (scan_char(&p->s, '#'))
        while (p->s.at < p->s.end && *p->s.at != '\n') p->s.at++;
    if (p->s.at == p->s.end) return SINTER_OK;
    if (!scan_char(&p->s, '\n')) return bad(p, "the line does not end");
    p->line++;
    return SINTER_OK;
}

static void skip_blank(parser *p)
{
    for (;;) {
        scan_space(&p->s);
        if (p->s.at < p->s.end && *p->s.at == '#')
            while (p->s.at < p->s.end && *p->s.at != '\n') p->s.at++;
        if (!scan_char(&p->s, '\n')) return;
        p->line++;
    }
}

static sinter_status parse_symbol(parser *p)
{
    char *name;
    int64_t min, max, divisor, opt;
    scan_space(&p->s);
    if (!scan_quoted(&p->s, &p->g->a, &name)) return bad(p, "a symbol's name is missing");
    scan_space(&p->s);
    if (!scan_i64(&p->s, &min) || !scan_char(&p->s, '.') || !scan_char(&p->s, '.') || !scan_i64(&p->s, &max) ||
        !scan_char(&p->s, '/') || !scan_i64(&p->s, &divisor) || !scan_char(&p->s, '@') || !scan_i64(&p->s, &opt) ||
        divisor < 1)
        return bad(p, "a symbol's range MIN..MAX/DIVISOR@OPT is missing");
    uint32_t s;
    const dim d = dim_symbol_named(p->g->dims, name);
    if (!dim_symbol_of(p->g->dims, d, &s)) return FAIL_MEMORY(p->e, "a symbol");
    scan_space(&p->s);
    const dim_symbol to = {
        .min = min, .max = max, .opt = opt, .divisor = divisor, .is_late = scan_word(&p->s, "late")
    };
    dim_symbol_set(p->g->dims, s, &to);
    return line_end(p);
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static bool parse_hex(scan *s, uint64_t *out)
{
    if (!scan_char(s, '0') || !scan_char(s, 'x')) return false;
    uint64_t v = 0;
    for (; s->at < s->end; s->at++) {
        const char c = *s->at;
        if (c >= '0' && c <= '9') v = v << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f') v = v << 4 | (uint64_t)(c - 'a' + 10);
        else break;
    }
    *out = v;
    return true;
}

static sinter_status fill(parser *p, sinter_dtype dtype, void *at, int64_t count)
{
    uint64_t seed;
    if (word_equals(p, "hash")) {
        if (!parse_hex(&p->s, &seed)) return bad(p, "a hash is malformed");
        for (int64_t i = 0; i < count; i++) {
            const double unit = (double)(next_random(&seed) >> 11) * 0x1p-53;
            dtype_store_f64(dtype, at, i, dtype_is_float(dtype) ? unit * 2 - 1 : unit * 2);
        }
        return SINTER_OK;
    }
    scan_space(&p->s);
    if (!scan_char(&p->s, '=')) return bad(p, "'=' or a hash is missing");
    scan_space(&p->s);
    if (!scan_char(&p->s, '{')) return bad(p, "'{' is missing");
    for (int64_t i = 0; i < count; i++) {
        double f = 0;
        int64_t n = 0;
        if (i && !scan_char(&p->s, ',')) return bad(p, "an element is missing");
        scan_space(&p->s);
        if (dtype_is_float(dtype) ? !scan_f64(&p->s, &f) : !scan_i64(&p->s, &n))
            return bad(p, "an element is malformed");
        if (dtype_is_float(dtype)) dtype_store_f64(dtype, at, i, f);
        else dtype_store_i64(dtype, at, i, n);
    }
    scan_space(&p->s);
    return scan_char(&p->s, '}') ? SINTER_OK : bad(p, "'}' is missing");
}

static sinter_status parse_const(parser *p)
{
    uint32_t n;
    type t;
    scan_space(&p->s);
    if (!number(p, &n) || !scan_char(&p->s, ':')) return bad(p, "a value and ':' are missing");
    TRY(parse_type(p, &t));
    int64_t at[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < t.rank; i++)
        if (!dim_is_const(p->g->dims, t.at[i], &at[i]) || at[i] < 0)
            return bad(p, "a constant's size must be a number");
    view v;
    if (!view_init(&v, t.dtype, t.rank, at, NULL)) return bad(p, "the constant is too large");
    const int64_t count = view_count(&v);
    if ((uint64_t)count > p->e->limits.fold_max) return bad(p, "the constant is too large");
    void *data = ir_blob(p->g, ((size_t)count * sinter_dtype_bits(t.dtype) + 7) / 8);
    if (!data) return FAIL_MEMORY(p->e, "a constant");
    TRY(fill(p, t.dtype, data, count));
    const char *name = NULL;
    TRY(parse_name(p, &name));
    TRY(define(p, n, ir_const(p->g, name, t.dtype, t.rank, at, data)));
    return line_end(p);
}

static sinter_status parse_input(parser *p, ir_region_id region)
{
    uint32_t n;
    type t;
    scan_space(&p->s);
    if (!number(p, &n) || !scan_char(&p->s, ':')) return bad(p, "a value and ':' are missing");
    TRY(parse_type(p, &t));
    const ir_value_id v = ir_param(p->g, region, NULL, t.dtype, t.rank, t.at);
    TRY(define(p, n, v));
    if (word_equals(p, "shape")) {
        if (!scan_char(&p->s, '{')) return bad(p, "'{' is missing");
        dim at[64];
        uint32_t count = 0;
        if (!scan_char(&p->s, '}')) {
            do {
                if (count == 64 || !dim_parse(p->g->dims, &p->s, &at[count++]))
                    return bad(p, "a shape value is malformed");
            } while (scan_char(&p->s, ','));
            if (!scan_char(&p->s, '}')) return bad(p, "'}' is missing");
        }
        dim *copy = ARENA_NEW(&p->g->a, dim, count);
        if (!copy) return FAIL_MEMORY(p->e, "a shape value");
        if (count) memcpy(copy, at, count * sizeof(*at));
        p->g->value.at[v].shape_value = copy;
        p->g->value.at[v].shape_count = count;
    }
    TRY(parse_name(p, &p->g->value.at[v].name));
    return line_end(p);
}

static sinter_status parse_output(parser *p, ir_region_id region)
{
    ir_value_id v;
    scan_space(&p->s);
    TRY(use(p, &v));
    ir_result(p->g, region, v);
    if (p->g->value.at[v].is_input) {
        const char *ignored;
        TRY(parse_name(p, &ignored));
    } else {
        TRY(parse_name(p, &p->g->value.at[v].name));
    }
    return line_end(p);
}

static sinter_status parse_program(parser *p, const char *word, expr **out)
{
    *out = NULL;
    if (!word_equals(p, word)) return SINTER_OK;
    char *body;
    const char *why = "malformed";
    if (!scan_quoted(&p->s, &p->g->a, &body)) return bad(p, "a quoted program is missing");
    scan s = scan_of(body, strlen(body));
    if (!expr_parse(&p->g->a, &s, out, &why)) return bad(p, why);
    return SINTER_OK;
}

static sinter_status parse_region(parser *p, ir_region_id region, uint32_t depth);

enum { LIST_MAX = 4096 };
typedef struct node_text {
    uint32_t count_in, count_out;
    ir_value_id in[LIST_MAX];
    uint32_t out[LIST_MAX];
    bool has_type[LIST_MAX];
    type out_type[LIST_MAX];
} node_text;

static sinter_status parse_head(parser *p, node_text *x, op_id *op)
{
    while (number(p, &x->out[x->count_out])) {
        x->has_type[x->count_out] = scan_char(&p->s, ':');
        if (x->has_type[x->count_out]) TRY(parse_type(p, &x->out_type[x->count_out]));
        if (++x->count_out == LIST_MAX) return bad(p, "too many outputs");
        scan_space(&p->s);
        if (!scan_char(&p->s, ',')) break;
        scan_space(&p->s);
    }
    if (x->count_out && !scan_char(&p->s, '=')) return bad(p, "'=' is missing");
    scan_space(&p->s);
    const char *name;
    size_t length;
    if (!scan_name(&p->s, &name, &length) || !op_parse(name, length, op)) return bad(p, "an op is missing");
    if (!scan_char(&p->s, '(')) return bad(p, "'(' is missing");
    scan_space(&p->s);
    if (scan_char(&p->s, ')')) return SINTER_OK;
    do {
        if (x->count_in == LIST_MAX) return bad(p, "too many inputs");
        scan_space(&p->s);
        ir_value_id v = 0;
        if (!scan_char(&p->s, '-')) TRY(use(p, &v));
        x->in[x->count_in++] = v;
        scan_space(&p->s);
    } while (scan_char(&p->s, ','));
    return scan_char(&p->s, ')') ? SINTER_OK : bad(p, "')' is missing");
}

static sinter_status settle_types(parser *p, ir_node_id id, const node_text *x)
{
    ir_graph *g = p->g;
    bool typed = true;
    for (uint32_t i = 0; i < x->count_out; i++) {
        if (!x->has_type[i]) {
            typed = false;
            continue;
        }
        ir_value *v = &g->value.at[g->node.at[id].out[i]];
        v->dtype = x->out_type[i].dtype;
        v->rank = x->out_type[i].rank;
        memcpy(v->dim, x->out_type[i].at, sizeof(v->dim));
    }
    const bool has_programs = g->node.at[id].epilogue || g->node.at[id].prologue;
    if (typed && (op_at(g->node.at[id].op)->regions || has_programs)) return SINTER_OK;
    TRY(ir_infer(g, id));
    for (uint32_t i = 0; i < x->count_out; i++) {
        if (!x->has_type[i]) continue;
        ir_value *v = &g->value.at[g->node.at[id].out[i]];
        if (v->dtype != x->out_type[i].dtype || v->rank != x->out_type[i].rank)
            return FAIL(p->e, INVALID_MODEL,
                        "graph text line %u: output %u is inferred as %s of rank %u, the text says %s of rank %u",
                        p->line, i, sinter_dtype_name(v->dtype), v->rank, sinter_dtype_name(x->out_type[i].dtype),
                        x->out_type[i].rank);
        memcpy(v->dim, x->out_type[i].at, sizeof(v->dim));
    }
    return SINTER_OK;
}

static sinter_status parse_node(parser *p, ir_region_id region, uint32_t depth, node_text *x)
{
    ir_graph *g = p->g;
    op_id op;
    x->count_in = x->count_out = 0;
    TRY(parse_head(p, x, &op));
    void *attrs = op_attrs_new(&g->a, op);
    if (!attrs) return FAIL_MEMORY(p->e, "a node");
    const char *why = "an attribute is malformed";
    if (!op_attrs_parse(op, attrs, &g->a, g->dims, &p->s, &why)) return bad(p, why);
    const op_info *info = op_at(op);
    int64_t anchor = -1;
    if (word_equals(p, "anchor") && (!scan_i64(&p->s, &anchor) || anchor < 0 || anchor > x->count_in))
        return bad(p, "a count of inputs is missing");
    expr *pro, *epi;
    TRY(parse_program(p, "pro", &pro));
    TRY(parse_program(p, "epi", &epi));
    const uint32_t count_in = anchor >= 0 ? (uint32_t)anchor : x->count_in;
    if (op != OP_pointwise && (count_in < info->in_min || (info->in_max < VARIADIC && count_in > info->in_max)))
        return bad(p, "the number of inputs is wrong before");
    if (x->count_out < info->out_min || (!epi && info->out_max < VARIADIC && x->count_out > info->out_max))
        return bad(p, "the number of outputs is wrong before");
    if (epi) why = expr_check(epi, x->count_in, x->count_out, op != OP_pointwise);
    if (epi && why) return bad(p, why);
    if (op == OP_pointwise && !epi) return bad(p, "pointwise needs a program before");
    for (uint32_t i = 0; i < info->in_min && op != OP_loop; i++)
        if (!x->in[i]) return bad(p, "an input that must be there is absent before");
    const ir_node_id id = ir_node_new(g, region, op, attrs, x->in, x->count_in, x->count_out);
    if (!id) return SINTER_NO_MEMORY;
    ir_node *n = &g->node.at[id];
    n->count_anchor = count_in;
    n->prologue = pro;
    n->epilogue = epi;
    const char *name = NULL;
    TRY(parse_name(p, &name));
    n->name = name;
    for (uint32_t i = 0; i < x->count_out; i++) TRY(define(p, x->out[i], n->out[i]));
    TRY(line_end(p));
    if (!info->regions) return settle_types(p, id, x);

    /* The scratch lists are overwritten by the nodes of the regions: keep the types. */
    node_text *own = mem_alloc(p->e, sizeof(*own), _Alignof(node_text));
    if (!own) return FAIL_MEMORY(p->e, "a node");
    memcpy(own, x, sizeof(*own));
    sinter_status status = SINTER_OK;
    for (uint32_t i = 0; i < info->regions && !status; i++) {
        skip_blank(p);
        const ir_region_id r = ir_region_new(g, id);
        if (!r) status = FAIL_MEMORY(p->e, "a region");
        else if (depth + 1 >= p->e->limits.depth_max) status = bad(p, "regions nest too deep");
        else if (!scan_char(&p->s, '{')) status = bad(p, "a region's '{' is missing");
        else status = parse_region(p, r, depth + 1);
        if (!status && !scan_char(&p->s, '}')) status = bad(p, "a region's '}' is missing");
    }
    if (!status) status = settle_types(p, id, own);
    mem_free(p->e, own, sizeof(*own), _Alignof(node_text));
    return status;
}

static sinter_status parse_region(parser *p, ir_region_id region, uint32_t depth)
{
    node_text *x = mem_alloc(p->e, sizeof(*x), _Alignof(node_text));
    if (!x) return FAIL_MEMORY(p->e, "graph text");
    sinter_status status = SINTER_OK;
    while (!status) {
        skip_blank(p);
        if (p->s.at == p->s.end || *p->s.at == '}') break;
        if (scan_word(&p->s, "symbol")) status = parse_symbol(p);
        else if (scan_word(&p->s, "const")) status = parse_const(p);
        else if (scan_word(&p->s, "input")) status = parse_input(p, region);
        else if (scan_word(&p->s, "output")) status = parse_output(p, region);
        else status = parse_node(p, region, depth, x);
    }
    mem_free(p->e, x, sizeof(*x), _Alignof(node_text));
    return status;
}

sinter_status ir_parse(env *e, const char *bytes, size_t size, ir_graph **out)
{
    *out = NULL;
    ir_graph *g;
    TRY(ir_graph_create(e, &g));
    parser p = { .e = e, .g = g, .s = scan_of(bytes, size), .line = 1 };
    sinter_status status = map_grow(&p);
    if (!status) status = parse_region(&p, IR_MAIN, 0);
    if (!status && p.s.at != p.s.end) status = bad(&p, "text is left over");
    if (!status && (g->a.failed || dim_table_failed(g->dims))) status = FAIL_MEMORY(e, "graph text");
    /* What a person wrote may break any invariant: that is their text's fault, not ours. */
    bool grouped = false;
    for (ir_node_id n = 1; n < g->node.count; n++) grouped |= g->node.at[n].epilogue || g->node.at[n].prologue;
    if (!status) status = ir_verify(g, grouped ? IR_STAGE_GROUPED : IR_STAGE_IMPORTED);
    if (status == SINTER_INTERNAL) status = e->error->status = SINTER_INVALID_MODEL;
    if (status) {
        ir_graph_destroy(g);
        return status;
    }
    *out = g;
    return SINTER_OK;
}
