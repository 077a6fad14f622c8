/* SPDX-License-Identifier: Apache-2.0 */
/* build.c - the graph builder: checks what it is given, adds the node, infers its outputs.
 *
 * The shape functions of the op table check types and sizes. This file checks what they take for granted: that ids mean
 * live values of this region, that counts are the op's, and that attributes are such as attrs.def can hold. */
#include "ir/build.h"

#include <string.h>

void build_fail(ir_builder *b, sinter_status status)
{
    if (!b->status) b->status = status;
}

static void no_memory(ir_builder *b)
{
    if (!b->status) b->status = b->g->e->error->status ? b->g->e->error->status : FAIL_MEMORY(b->g->e, "the graph");
}

/* ---- checks ---- */

static sinter_status check_input(const ir_builder *b, const op_info *op, uint32_t i, ir_value_id id)
{
    const ir_graph *g = b->g;
    if (!id) return FAIL(g->e, INVALID_MODEL, "input %u of %s is missing", i, op->name);
    if (id >= g->value.count)
        return FAIL(g->e, INVALID_ARG, "input %u of %s is value %u, but the graph has %u values", i, op->name, id,
                    g->value.count - 1);
    const ir_value *v = &g->value.at[id];
    const ir_node *from = ir_node_at(g, v->producer);
    const char *name = v->name ? v->name : "";
    if (v->dtype == SINTER_DTYPE_NONE)
        return FAIL(g->e, INVALID_ARG, "input %u of %s, value %u '%s', has no type yet", i, op->name, id, name);
    if (v->producer && from->is_dead)
        return FAIL(g->e, INVALID_ARG, "input %u of %s, value %u '%s', is of node '%s', which was removed", i, op->name,
                    id, name, ir_node_label(g, v->producer));
    if (v->producer && from->parent != b->region)
        return FAIL(g->e, INVALID_ARG, "input %u of %s, value %u '%s', is of region %u; wanted is one of region %u", i,
                    op->name, id, name, from->parent, b->region);
    return SINTER_OK;
}

static sinter_status check_inputs(const ir_builder *b, op_id id, const ir_value_id *in, uint32_t count)
{
    const op_info *op = op_at(id);
    if (count < op->in_min || count > op->in_max)
        return FAIL(b->g->e, INVALID_MODEL, "%s has %u inputs, wanted are %u to %u", op->name, count, op->in_min,
                    op->in_max);
    for (uint32_t i = 0; i < count; i++)
        if (in[i] || (i < op->in_min && id != OP_loop)) TRY(check_input(b, op, i, in[i]));
    return SINTER_OK;
}

static sinter_status check_number(env *e, const op_info *op, const attr_info *a, int64_t value)
{
    if (a->kind == ATTR_TYPE && value != (int64_t)a->initial &&
        (value < 0 || value > INT32_MAX || !dtype_is_valid((int)value)))
        return FAIL(e, INVALID_ARG, "attribute %s of %s is %lld, which is no type", a->name, op->name,
                    (long long)value);
    if (a->kind != ATTR_NAME) return SINTER_OK;
    int64_t count = 0;
    while (a->item[count]) count++;
    if (value >= 0 && value < count) return SINTER_OK;
    return FAIL(e, INVALID_ARG, "attribute %s of %s is %lld, wanted is a number below %lld", a->name, op->name,
                (long long)value, (long long)count);
}

static sinter_status check_dims(const ir_graph *g, const op_info *op, const attr_info *a, const attr_dims *list)
{
    if (list->count && !list->at) return FAIL(g->e, INVALID_ARG, "attribute %s of %s is NULL", a->name, op->name);
    for (uint32_t i = 0; i < list->count; i++)
        if (list->at[i] <= 0 || list->at[i] >= (int64_t)dim_count(g->dims)) {
            if (dim_table_failed(g->dims)) return FAIL_MEMORY(g->e, "dimension expressions");
            return FAIL(g->e, INVALID_ARG, "attribute %s of %s has the size %lld at %u, which is no expression",
                        a->name, op->name, (long long)list->at[i], i);
        }
    return SINTER_OK;
}

static sinter_status check_attrs(const ir_graph *g, op_id id, const void *attrs)
{
    const op_info *op = op_at(id);
    for (const attr_info *a = op->attr; attrs && a->name; a++) {
        const char *at = (const char *)attrs + a->at;
        uint32_t count = 0;
        int64_t value = 0;
        const char *words = NULL;
        switch (a->kind) {
        case ATTR_REAL: break;
        case ATTR_INT:
        case ATTR_TYPE:
        case ATTR_NAME:
            memcpy(&value, at, sizeof value);
            TRY(check_number(g->e, op, a, value));
            break;
        case ATTR_DIMS: TRY(check_dims(g, op, a, (const attr_dims *)(const void *)at)); break;
        case ATTR_INTS:
        case ATTR_REALS:
            memcpy(&count, at, sizeof count);
            if (count > (a->kind == ATTR_INTS ? (uint32_t)ATTR_INTS_MAX : (uint32_t)ATTR_REALS_MAX))
                return FAIL(g->e, INVALID_ARG, "attribute %s of %s has %u values", a->name, op->name, count);
            break;
        case ATTR_TEXT:
            memcpy(&words, at, sizeof words);
            if (!words) return FAIL(g->e, INVALID_ARG, "attribute %s of %s is NULL", a->name, op->name);
            break;
        }
    }
    return SINTER_OK;
}

/* ---- any op ---- */

static sinter_status add(ir_builder *b, op_id op, const void *attrs, const ir_value_id *in, uint32_t count_in,
                         uint32_t count_out, ir_node_id *out)
{
    ir_graph *g = b->g;
    const op_info *row = op_at(op);
    if (count_out < row->out_min || count_out > row->out_max)
        return FAIL(g->e, INVALID_MODEL, "%s has %u outputs, wanted are %u to %u", row->name, count_out, row->out_min,
                    row->out_max);
    TRY(check_inputs(b, op, in, count_in));
    TRY(check_attrs(g, op, attrs));
    void *own = op_attrs_copy(&g->a, op, attrs);
    if (!own) return FAIL_MEMORY(g->e, "a node");
    const ir_node_id id = ir_node_new(g, b->region, op, own, in, count_in, count_out);
    if (!id) return SINTER_NO_MEMORY;
    ir_node *n = &g->node.at[id];
    n->name = b->name;
    n->origin = b->origin;
    n->count_origin = b->count_origin;
    if (!row->regions) {
        const sinter_status s = ir_infer(g, id);
        if (s) {
            ir_node_kill(g, id);
            return s;
        }
    }
    *out = id;
    bool folded = false;
    return b->fold_max ? ir_fold(g, id, b->fold_max, &folded) : SINTER_OK;
}

ir_node_id build_node(ir_builder *b, op_id op, const void *attrs, const ir_value_id *in, uint32_t count_in,
                      uint32_t count_out)
{
    if (b->status) return 0;
    ir_node_id n = 0;
    while (count_in > op_at(op)->in_min && !in[count_in - 1]) count_in--;
    b->status = add(b, op, attrs, in, count_in, count_out, &n);
    return n;
}

ir_value_id build_emit(ir_builder *b, op_id op, const void *attrs, const ir_value_id *in, uint32_t count_in)
{
    return build_result(b, build_node(b, op, attrs, in, count_in, op_at(op)->out_min), 0);
}

ir_value_id build_unary(ir_builder *b, op_id op, ir_value_id x)
{
    return build_emit(b, op, NULL, &x, 1);
}

ir_value_id build_binary(ir_builder *b, op_id op, ir_value_id x, ir_value_id y)
{
    return build_emit(b, op, NULL, (const ir_value_id[]){ x, y }, 2);
}

ir_value_id build_attended(ir_builder *b, ir_value_id q, ir_value_id k, ir_value_id v, ir_value_id mask,
                           ir_value_id length, const attrs_attention *attrs)
{
    return build_emit(b, OP_attention, attrs, (const ir_value_id[]){ q, k, v, mask, length }, 5);
}

ir_value_id build_again(ir_builder *b, ir_node_id n, const ir_value_id *in, uint32_t count_in)
{
    const ir_node *from = ir_node_at(b->g, n);
    return build_emit(b, from->op, from->attrs, in, count_in);
}

ir_value_id build_result(const ir_builder *b, ir_node_id n, uint32_t i)
{
    const ir_node *x = ir_node_at(b->g, n);
    return n && i < x->count_out ? x->out[i] : 0;
}

void build_close(ir_builder *b, ir_node_id n)
{
    if (!b->status) b->status = ir_infer(b->g, n);
}

ir_value_id build_folded(ir_builder *b, ir_value_id v)
{
    bool is_folded;
    if (b->status || !v || !ir_value_at(b->g, v)->producer) return b->status ? 0 : v;
    build_fail(b, ir_fold(b->g, ir_value_at(b->g, v)->producer, 0, &is_folded));
    return b->status ? 0 : v;
}

void build_from(ir_builder *b, const ir_node_id *n, uint32_t count)
{
    b->origin = NULL;
    b->count_origin = 0;
    for (uint32_t i = 0; i < count && !b->status; i++)
        b->status = ir_origins_unite(b->g, &b->origin, &b->count_origin, ir_node_at(b->g, n[i]));
}

/* ---- constants ---- */

static sinter_status check_const(env *e, const char *name, const view *v)
{
    view dense;
    if (!dtype_is_valid((int)v->dtype)) return FAIL(e, INVALID_ARG, "constant '%s' has no type", name ? name : "");
    if (v->rank > SINTER_RANK_MAX || !view_init(&dense, v->dtype, v->rank, v->dim, v->data))
        return FAIL(e, INVALID_ARG, "constant '%s' has rank %u, or sizes that are too large or negative",
                    name ? name : "", v->rank);
    if (!view_is_dense(v)) return FAIL(e, INVALID_ARG, "constant '%s' is not dense", name ? name : "");
    if (!v->data && view_count(v)) return FAIL(e, INVALID_ARG, "constant '%s' has no data", name ? name : "");
    return SINTER_OK;
}

ir_value_id build_const(ir_builder *b, const char *name, const view *v)
{
    if (!b->status) b->status = check_const(b->g->e, name, v);
    if (b->status) return 0;
    const ir_value_id id = ir_const(b->g, name, v->dtype, v->rank, v->dim, v->data);
    if (!id) no_memory(b);
    return id;
}

/* A scalar's room; NULL where there is none, or no such type. */
static void *scalar_room(ir_builder *b, sinter_dtype type, view *out)
{
    if (!b->status && !dtype_is_valid((int)type))
        b->status = FAIL(b->g->e, INVALID_ARG, "a constant of type %d, which is no type", (int)type);
    void *at = b->status ? NULL : arena_alloc(&b->g->a, 8, 8);
    if (at && view_init(out, type, 0, NULL, at)) return at;
    no_memory(b);
    return NULL;
}

ir_value_id build_scalar(ir_builder *b, sinter_dtype type, double value)
{
    view v;
    void *at = scalar_room(b, type, &v);
    if (!at) return 0;
    dtype_store_f64(type, at, 0, value);
    return build_const(b, NULL, &v);
}

ir_value_id build_scalar_like(ir_builder *b, ir_value_id like, double value)
{
    const sinter_dtype type = ir_value_at(b->g, like)->dtype;
    return build_scalar(b, type ? type : SINTER_DTYPE_F32, value);
}

ir_value_id build_scalar_i64(ir_builder *b, sinter_dtype type, int64_t value)
{
    view v;
    void *at = scalar_room(b, type, &v);
    if (!at) return 0;
    dtype_store_i64(type, at, 0, value);
    return build_const(b, NULL, &v);
}

attr_dims build_dims(ir_builder *b, const dim *d, uint32_t count)
{
    int64_t *at = ARENA_NEW(&b->g->a, int64_t, count);
    if (!at) no_memory(b);
    for (uint32_t i = 0; at && i < count; i++) at[i] = d[i];
    return (attr_dims){ .count = at ? count : 0, .at = at };
}

ir_value_id build_sizes(ir_builder *b, const dim *d, uint32_t count, bool is_scalar)
{
    return build_shape_value(
        b, &(attrs_shape_value){ .value = build_dims(b, d, count), .scalar = is_scalar, .type = SINTER_DTYPE_I64 });
}

ir_value_id build_iota(ir_builder *b, dim count)
{
    const ir_value_id first = build_scalar_i64(b, SINTER_DTYPE_I64, 0), step = build_scalar_i64(b, SINTER_DTYPE_I64, 1);
    return build_range(b, first, step, &(attrs_range){ .count = build_dims(b, &count, 1) });
}

/* ---- the value in another form ---- */

static bool has_shape(const ir_value *v, const dim *d, uint32_t rank)
{
    return v->rank == rank && (!rank || !memcmp(v->dim, d, rank * sizeof *d));
}

ir_value_id build_typed(ir_builder *b, ir_value_id v, sinter_dtype type)
{
    return v && ir_value_at(b->g, v)->dtype == type ? v : build_cast(b, v, type);
}

/* A constant in another shape is the same bytes, made in the same way. */
static ir_value_id shaped_const(ir_builder *b, ir_value_id v, const dim *d, uint32_t rank)
{
    const ir_value *x = ir_value_at(b->g, v);
    int64_t size[SINTER_RANK_MAX], total = 1, count = 1;
    for (uint32_t i = 0; i < rank; i++)
        if (!dim_is_const(b->g->dims, d[i], &size[i]) || size[i] < 0 || !i64_mul(total, size[i], &total)) return 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        int64_t own = 0;
        if (!dim_is_const(b->g->dims, x->dim[i], &own) || !i64_mul(count, own, &count)) return 0;
    }
    return count == total ? ir_const_as(b->g, v, x->dtype, rank, size) : 0;
}

ir_value_id build_shaped(ir_builder *b, ir_value_id v, const dim *d, uint32_t rank)
{
    if (b->status) return 0;
    const ir_value x = *ir_value_at(b->g, v);
    if (v && has_shape(&x, d, rank)) return v;
    const ir_value_id made = x.data && rank <= SINTER_RANK_MAX ? shaped_const(b, v, d, rank) : 0;
    return made ? made : build_reshape(b, v, &(attrs_reshape){ .shape = build_dims(b, d, rank) });
}

ir_value_id build_expanded(ir_builder *b, ir_value_id v, const dim *d, uint32_t rank)
{
    if (b->status || (v && has_shape(ir_value_at(b->g, v), d, rank))) return b->status ? 0 : v;
    return build_expand(b, v, &(attrs_expand){ .shape = build_dims(b, d, rank) });
}

ir_value_id build_permuted(ir_builder *b, ir_value_id v, const int64_t *perm, uint32_t rank)
{
    bool is_same = true;
    attrs_transpose *a = DEFAULTS(transpose);
    a->perm.count = rank;
    for (uint32_t i = 0; i < rank && i < ATTR_INTS_MAX; i++) {
        a->perm.at[i] = perm[i];
        is_same = is_same && perm[i] == (int64_t)i;
    }
    return is_same ? v : build_transpose(b, v, a);
}

static ir_value_id refuse_axis(ir_builder *b, uint32_t axis, uint32_t rank)
{
    if (!b->status) b->status = FAIL(b->g->e, INVALID_MODEL, "axis %u of a tensor of rank %u", axis, rank);
    return 0;
}

ir_value_id build_unsqueezed(ir_builder *b, ir_value_id v, uint32_t axis)
{
    dim to[SINTER_RANK_MAX + 1];
    const ir_value *x = ir_value_at(b->g, v);
    const uint32_t rank = x->rank;
    if (axis > rank) return refuse_axis(b, axis, rank + 1);
    for (uint32_t i = 0, k = 0; i <= rank; i++) to[i] = i == axis ? DIM_NONE : x->dim[k++];
    to[axis] = dim_const(b->g->dims, 1);
    if (rank == SINTER_RANK_MAX && !b->status)
        b->status = FAIL(b->g->e, UNSUPPORTED, "rank %u, the most is %d", rank + 1, SINTER_RANK_MAX);
    return build_shaped(b, v, to, rank + 1);
}

ir_value_id build_squeezed(ir_builder *b, ir_value_id v, uint32_t axis)
{
    dim to[SINTER_RANK_MAX];
    const ir_value *x = ir_value_at(b->g, v);
    uint32_t k = 0;
    if (axis >= x->rank) return refuse_axis(b, axis, x->rank);
    for (uint32_t i = 0; i < x->rank; i++)
        if (i != axis) to[k++] = x->dim[i];
    return build_shaped(b, v, to, k);
}

ir_value_id build_along(ir_builder *b, ir_value_id v, uint32_t axis, uint32_t rank)
{
    dim d[SINTER_RANK_MAX];
    if (b->status) return 0;
    const ir_value *x = ir_value_at(b->g, v);
    if (x->rank == 0) return v;
    if (axis >= rank || rank > SINTER_RANK_MAX) return refuse_axis(b, axis, rank);
    if (x->rank != 1) {
        b->status = FAIL(b->g->e, INVALID_MODEL, "a parameter has rank %u, 1 is wanted", x->rank);
        return 0;
    }
    const dim length = x->dim[0];
    for (uint32_t i = 0; i < rank; i++) d[i] = i == axis ? length : dim_const(b->g->dims, 1);
    return build_shaped(b, v, d, rank);
}

/* ---- one axis, or a few ---- */

ir_value_id build_part(ir_builder *b, ir_value_id v, uint32_t axis, dim start, int64_t step, dim size)
{
    dim first[SINTER_RANK_MAX], count[SINTER_RANK_MAX];
    attrs_slice *a = DEFAULTS(slice);
    const ir_value *x = ir_value_at(b->g, v);
    const uint32_t rank = x->rank;
    if (axis >= rank) return refuse_axis(b, axis, rank);
    memcpy(count, x->dim, rank * sizeof *count);
    a->step.count = rank;
    for (uint32_t i = 0; i < rank; i++) {
        first[i] = dim_const(b->g->dims, 0);
        a->step.at[i] = 1;
    }
    first[axis] = start;
    count[axis] = size;
    a->step.at[axis] = step;
    a->start = build_dims(b, first, rank);
    a->size = build_dims(b, count, rank);
    return build_slice(b, v, a);
}

ir_value_id build_padded(ir_builder *b, ir_value_id v, pad_mode mode, const dim *begin, const dim *end,
                         ir_value_id value)
{
    const uint32_t rank = ir_value_at(b->g, v)->rank;
    const attr_dims before = build_dims(b, begin, rank), after = build_dims(b, end, rank);
    return build_pad(b, v, value, &(attrs_pad){ .mode = mode, .begin = before, .end = after });
}

ir_value_id build_reduced(ir_builder *b, reduce_kind kind, ir_value_id v, const int64_t *axes, uint32_t count,
                          bool keep)
{
    attrs_reduce *a = DEFAULTS(reduce);
    a->kind = kind;
    a->keep = keep;
    a->axes.count = count;
    for (uint32_t i = 0; i < count && i < ATTR_INTS_MAX; i++) a->axes.at[i] = axes[i];
    return build_reduce(b, v, a);
}
