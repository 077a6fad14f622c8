/* SPDX-License-Identifier: Apache-2.0 */
/* ir_print.c - a graph as text: the language of dumps, golden tests and bug reports.
 *
 *   symbol "N" 1..8/1@4
 *   const %1: f32[2] = {1,2} name="w"              (more than 64 elements: hash=0x… instead of the list)
 *   input %2: f32[N,2] name="x"
 *   %3: f32[N,2] = mul(%2, %1) name="Mul_0"
 *   output %3 name="y"
 * Regions follow their node, indented, each as { input… nodes… output… }. parse.c is the inverse. */
#include "ir/graph.h"

#include "base/hash.h"

#include <inttypes.h>

enum { CONST_PRINT_MAX = 64, DEPTH_MAX = 64 };

static void print_name(text *out, const char *name)
{
    if (!name || !*name) return;
    size_t length = 0;
    while (name[length]) length++;
    text_printf(out, " name=");
    text_quoted(out, name, length);
}

static void print_type(const ir_graph *g, const ir_value *v, text *out)
{
    text_printf(out, "%s[", sinter_dtype_name(v->dtype));
    for (uint32_t i = 0; i < v->rank; i++) {
        if (i) text_append(out, ",", 1);
        dim_print(g->dims, v->dim[i], out);
    }
    text_append(out, "]", 1);
}

static void print_const(const ir_graph *g, ir_value_id id, text *out)
{
    const ir_value *v = &g->value.at[id];
    text_printf(out, "const %%%u: ", id);
    print_type(g, v, out);
    view x;
    if (!ir_const_view(g, id, &x)) {
        text_printf(out, " hash=0x0");
    } else if (view_count(&x) > CONST_PRINT_MAX) {
        text_printf(out, " hash=0x%016" PRIx64, hash64(v->data, v->data_size, 0));
    } else {
        text_printf(out, " = {");
        const int64_t count = view_count(&x);
        for (int64_t i = 0; i < count; i++) {
            if (i) text_append(out, ",", 1);
            if (dtype_is_float(x.dtype)) text_f64(out, view_load_f64(&x, i));
            else text_printf(out, "%" PRId64, view_load_i64(&x, i));
        }
        text_append(out, "}", 1);
    }
    print_name(out, v->name);
    text_append(out, "\n", 1);
}

static void print_program(const char *word, const expr *program, text *out)
{
    if (!program) return;
    text_printf(out, " %s=\"", word);
    expr_print(program, out);
    text_append(out, "\"", 1);
}

typedef struct printer {
    const ir_graph *g;
    text *out;
    arena a;
} printer;

static void indent(printer *p, uint32_t depth)
{
    for (uint32_t i = 0; i < depth; i++) text_append(p->out, "  ", 2);
}

static void print_region(printer *p, ir_region_id id, uint32_t depth);

static void print_node(printer *p, ir_node_id id, uint32_t depth)
{
    const ir_graph *g = p->g;
    const ir_node *n = &g->node.at[id];
    text *out = p->out;
    indent(p, depth);
    for (uint32_t i = 0; i < n->count_out; i++) {
        text_printf(out, "%s%%%u: ", i ? ", " : "", n->out[i]);
        print_type(g, &g->value.at[n->out[i]], out);
    }
    text_printf(out, "%s%s(", n->count_out ? " = " : "", op_at(n->op)->name);
    for (uint32_t i = 0; i < n->count_in; i++) {
        if (n->in[i]) text_printf(out, "%s%%%u", i ? ", " : "", n->in[i]);
        else text_printf(out, "%s-", i ? ", " : "");
    }
    text_append(out, ")", 1);
    op_attrs_print(n->op, n->attrs, g->dims, out);
    if (n->count_anchor != n->count_in) text_printf(out, " anchor=%u", n->count_anchor);
    print_program("pro", n->prologue, out);
    print_program("epi", n->epilogue, out);
    print_name(out, n->name);
    text_append(out, "\n", 1);
    for (uint32_t i = 0; i < n->count_region; i++) {
        indent(p, depth + 1);
        text_printf(out, "{\n");
        print_region(p, n->region[i], depth + 1);
        indent(p, depth + 1);
        text_printf(out, "}\n");
    }
}

static void print_region(printer *p, ir_region_id id, uint32_t depth)
{
    const ir_graph *g = p->g;
    const ir_region *r = &g->region.at[id];
    for (uint32_t i = 0; i < r->param.count; i++) {
        indent(p, depth);
        text_printf(p->out, "input %%%u: ", r->param.at[i]);
        const ir_value *v = &g->value.at[r->param.at[i]];
        print_type(g, v, p->out);
        if (v->shape_value) {
            text_printf(p->out, " shape={");
            for (uint32_t k = 0; k < v->shape_count; k++) {
                if (k) text_append(p->out, ",", 1);
                dim_print(g->dims, v->shape_value[k], p->out);
            }
            text_append(p->out, "}", 1);
        }
        print_name(p->out, v->name);
        text_append(p->out, "\n", 1);
    }
    ir_node_id *at = NULL;
    uint32_t count = 0;
    if (depth > DEPTH_MAX || ir_order(g, id, &p->a, &at, &count) != SINTER_OK) text_printf(p->out, "# no order\n");
    for (uint32_t i = 0; i < count; i++) print_node(p, at[i], depth);
    for (uint32_t i = 0; i < r->result.count; i++) {
        indent(p, depth);
        text_printf(p->out, "output %%%u", r->result.at[i]);
        if (id == IR_MAIN) print_name(p->out, g->value.at[r->result.at[i]].name);
        text_append(p->out, "\n", 1);
    }
}

void ir_print(const ir_graph *g, text *out)
{
    for (uint32_t i = 0; i < dim_symbol_count(g->dims); i++) {
        const dim_symbol *s = dim_symbol_at(g->dims, i);
        size_t length = 0;
        while (s->name[length]) length++;
        text_printf(out, "symbol ");
        text_quoted(out, s->name, length);
        text_printf(out, " %" PRId64 "..%" PRId64 "/%" PRId64 "@%" PRId64 "%s\n", s->min, s->max, s->divisor, s->opt,
                    s->is_late ? " late" : "");
    }
    for (ir_value_id v = 1; v < g->value.count; v++)
        if (g->value.at[v].data && g->value.at[v].use_count) print_const(g, v, out);
    printer p = { .g = g, .out = out };
    arena_init(&p.a, g->e);
    print_region(&p, IR_MAIN, 0);
    arena_deinit(&p.a);
}
