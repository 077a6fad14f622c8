/* SPDX-License-Identifier: Apache-2.0 */
/* export_bind.c - sizes that the model computes as data: what a bind node does, in operators on i64[count].
 *
 * The formulas are those of reference_bind (ops/ref_late.c), without its checks. */
#include "onnx/exporter.h"

static const char *emit2(exporter *x, const char *type, const char *a, const char *b)
{
    return export_emit(x, x->scope, type, (const char *[]){ a, b }, 2);
}

static const char *where(exporter *x, const char *condition, const char *a, const char *b)
{
    return export_emit(x, x->scope, "Where", (const char *[]){ condition, a, b }, 3);
}

static const char *k(exporter *x, int64_t value)
{
    return export_ints(x, &value, 1);
}

static const char *as_i64(exporter *x, ir_value_id v)
{
    const char *name = export_name(x, v);
    if (ir_value_at(x->g, v)->dtype == SINTER_DTYPE_I64) return name;
    const char *wide = export_fresh(x, "size");
    export_node to = node_begin(x, "Cast");
    node_in(x, &to, name);
    node_out(x, &to, wide);
    node_int(x, &to, "to", export_type(x, SINTER_DTYPE_I64));
    node_end(x, &to, x->scope);
    return wide;
}

/* `count` dims, those that the list has not are 1: at the front, or at the end. */
static const char *dims_fit(exporter *x, const attr_dims *list, uint32_t count, bool at_front)
{
    dim d[64];
    if (count > COUNT_OF(d)) EXPORT_FAIL(x, UNSUPPORTED, "a list of %u sizes", count);
    if (x->status) return "";
    const uint32_t lead = at_front && count > list->count ? count - list->count : 0;
    for (uint32_t i = 0; i < count; i++)
        d[i] = i >= lead && i - lead < list->count ? export_dim(list, i - lead) : dim_const(x->g->dims, 1);
    return export_sizes(x, d, count);
}

static const char *reshaped(exporter *x, const attrs_bind *a, const char *asked)
{
    dim from[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < a->dims.count && i < SINTER_RANK_MAX; i++) from[i] = export_dim(&a->dims, i);
    const char *kept = asked;
    if (!a->flag) {
        const char *given = dims_fit(x, &a->dims, a->symbols.count, false);
        kept = where(x, emit2(x, "Equal", asked, k(x, 0)), given, asked);
    }
    const char *is_open = emit2(x, "Equal", kept, k(x, -1));
    const char *others = where(x, is_open, k(x, 1), kept);
    const char *product = export_emit(x, x->scope, "ReduceProd", &others, 1);
    const char *one = emit2(x, "Reshape", product, k(x, 1));
    const char *total = export_size(x, dim_product(x->g->dims, from, a->dims.count));
    return where(x, is_open, emit2(x, "Div", total, emit2(x, "Max", one, k(x, 1))), kept);
}

static const char *expanded(exporter *x, const ir_node *n, const attrs_bind *a, const char *asked)
{
    int64_t given = 0, ones[SINTER_RANK_MAX];
    const ir_value *in = ir_value_at(x->g, n->in[0]);
    for (uint32_t i = 0; i < SINTER_RANK_MAX; i++) ones[i] = 1;
    if (in->rank != 1 || !dim_is_const(x->g->dims, in->dim[0], &given) || given > SINTER_RANK_MAX)
        EXPORT_FAIL(x, UNSUPPORTED, "an expansion to a rank that is not known");
    if (x->status) return "";
    if ((uint32_t)given < a->symbols.count) {
        const char *name = export_fresh(x, "sizes");
        const char *lead = export_ints(x, ones, a->symbols.count - (uint32_t)given);
        export_node to = node_begin(x, "Concat");
        node_in(x, &to, lead);
        node_in(x, &to, asked);
        node_out(x, &to, name);
        node_int(x, &to, "axis", 0);
        node_end(x, &to, x->scope);
        asked = name;
    }
    const char *own = dims_fit(x, &a->dims, a->symbols.count, true);
    return where(x, emit2(x, "Equal", asked, k(x, 1)), own, asked);
}

/* Start and size of one axis of a slice from [start, end, step]. */
static void sliced(exporter *x, const attrs_bind *a, const char *asked, const char **start, const char **size)
{
    const char *d = export_size(x, export_dim(&a->dims, 0)), *zero = k(x, 0), *one = k(x, 1);
    const char *from = emit2(x, "Gather", asked, k(x, 0)), *to = emit2(x, "Gather", asked, k(x, 1));
    const char *step = emit2(x, "Gather", asked, k(x, 2)), *is_forward = emit2(x, "Less", zero, step);
    const char *high = where(x, is_forward, d, emit2(x, "Sub", d, one));
    const char *counted = emit2(x, "Max", emit2(x, "Add", from, d), zero);
    const char *first = where(x, emit2(x, "Less", from, zero), counted, from);
    first = emit2(x, "Min", first, high);
    const char *least = where(x, is_forward, zero, k(x, -1));
    const char *wrapped = emit2(x, "Max", emit2(x, "Add", to, d), least);
    const char *last = emit2(x, "Min", where(x, emit2(x, "Less", to, zero), wrapped, to), high);
    const char *back = emit2(x, "Sub", first, last);
    const char *span = where(x, is_forward, emit2(x, "Sub", last, first), back);
    const char *pace = emit2(x, "Max", export_emit(x, x->scope, "Abs", &step, 1), one);
    const char *count = emit2(x, "Add", emit2(x, "Div", emit2(x, "Sub", span, one), pace), one);
    *size = where(x, emit2(x, "Less", zero, span), count, zero);
    *start = where(x, emit2(x, "Less", zero, *size), first, zero);
}

void export_bind(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_bind *a = n->attrs;
    (void)row;
    if (a->kind == bind_kind_raw && a->flag) return; /* a guard checks and computes nothing */
    const char *asked = as_i64(x, n->in[0]);
    uint32_t rank = ir_value_at(x->g, n->in[0])->rank;
    if (a->kind == bind_kind_slice) {
        const char *start = "", *size = "";
        sliced(x, a, asked, &start, &size);
        export_know_number(x, export_dim(&a->symbols, 0), start, 0, 1);
        export_know_number(x, export_dim(&a->symbols, 1), size, 0, 1);
        return;
    }
    if (a->kind == bind_kind_reshape) asked = reshaped(x, a, asked);
    if (a->kind == bind_kind_expand) asked = expanded(x, n, a, asked);
    if (a->kind == bind_kind_reshape || a->kind == bind_kind_expand) rank = 1;
    for (uint32_t i = 0; i < a->symbols.count; i++) export_know_number(x, export_dim(&a->symbols, i), asked, i, rank);
}
