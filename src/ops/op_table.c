/* SPDX-License-Identifier: Apache-2.0 */
/* op_table.c - the op table: rows of scalar.def and ops.def with the attributes of attrs.def.
 *
 * Each row stands in a function of its own, because only there can the attribute macros name "the struct of this op";
 * rows are constant all the same. Below the table: the calls that go through it. */
#include "ops/expr.h"
#include "ops/ops.h"

#include <string.h>

/* clang-format off */
#define ITEM(name, item) #item,
#define E(name) const char *const attr_items_##name[] = { ENUM_##name(ITEM, name) NULL };
ATTR_ENUMS(E)
#undef E
#undef ITEM

#define ROW(row_kind, field, value, items) \
    { .name = #field, .kind = (row_kind), .at = offsetof(self, field), .initial = (double)(value), .item = (items) },
#define ROW_INT(field, value) ROW(ATTR_INT, field, value, NULL)
#define ROW_REAL(field, value) ROW(ATTR_REAL, field, value, NULL)
#define ROW_INTS(field, value) ROW(ATTR_INTS, field, 0, NULL)
#define ROW_REALS(field, value) ROW(ATTR_REALS, field, 0, NULL)
#define ROW_DIMS(field, value) ROW(ATTR_DIMS, field, 0, NULL)
#define ROW_TEXT(field, value) ROW(ATTR_TEXT, field, 0, NULL)
#define ROW_TYPE(field, value) ROW(ATTR_TYPE, field, value, NULL)
#define ROW_NAME(field, items) ROW(ATTR_NAME, field, 0, attr_items_##items)
#define ATTR_ROW(kind, field, value) ROW_##kind(field, value)

/* What the result column of scalar.def says about attributes. */
#define SCALAR_SAME(own) static const attr_info attr[] = { { .name = NULL } }; enum { attrs_size = 0 };
#define SCALAR_BOOL(own) SCALAR_SAME(own)
#define SCALAR_TYPED(own) \
    typedef attrs_typed self; \
    static const attr_info attr[] = { ATTRS_##own(ATTR_ROW) { .name = NULL } }; enum { attrs_size = sizeof(self) };

#define S(op_name, arity, types, result, more)                                                             \
    static const op_info *row_##op_name(void)                                                              \
    {                                                                                                      \
        SCALAR_##result(op_name)                                                                           \
        static const op_info row = {                                                                       \
            .name = #op_name, .in_min = (arity), .in_max = (arity), .out_min = 1, .out_max = 1,            \
            .traits = ELEMENTWISE | (more), .attrs_size = attrs_size, .attr = attr,                        \
            .infer = infer_elementwise, .reference = reference_elementwise,                                \
        };                                                                                                 \
        return &row;                                                                                       \
    }
#include "ops/scalar.def"
#undef S

#define OP(op_name, infer_name, reference_name, least_in, most_in, least_out, most_out, count_region, more) \
    static const op_info *row_##op_name(void)                                                              \
    {                                                                                                      \
        typedef attrs_##op_name self;                                                                      \
        static const attr_info attr[] = { ATTRS_##op_name(ATTR_ROW) { .name = NULL } };                    \
        static const op_info row = {                                                                       \
            .name = #op_name,                                                                              \
            .in_min = (least_in), .in_max = (most_in) == VARIADIC ? OP_IN_MAX : (most_in),                 \
            .out_min = (least_out), .out_max = (most_out) == VARIADIC ? OP_OUT_MAX : (most_out),           \
            .regions = (count_region), .traits = (more), .attrs_size = sizeof(self), .attr = attr,         \
            .infer = infer_##infer_name, .reference = reference_##reference_name,                          \
        };                                                                                                 \
        return &row;                                                                                       \
    }
#include "ops/ops.def"
#undef OP

static const op_info *(*const row_at[OP_COUNT])(void) = {
#define S(name, ...) [OP_##name] = row_##name,
#include "ops/scalar.def"
#undef S
#define OP(name, ...) [OP_##name] = row_##name,
#include "ops/ops.def"
#undef OP
};
/* clang-format on */

const op_info *op_at(op_id op)
{
    return row_at[op]();
}

bool op_parse(const char *name, size_t length, op_id *out)
{
    for (uint32_t op = 0; op < OP_COUNT; op++) {
        const char *own = op_at((op_id)op)->name;
        if (strlen(own) == length && memcmp(own, name, length) == 0) {
            *out = (op_id)op;
            return true;
        }
    }
    return false;
}

static sinter_status check_count(env *e, const char *what, uint32_t count, uint32_t min, uint32_t max)
{
    if (count >= min && count <= max) return SINTER_OK;
    if (min == max) return FAIL(e, INVALID_MODEL, "%u %s where %u are wanted", count, what, min);
    return FAIL(e, INVALID_MODEL, "%u %s where %u to %u are wanted", count, what, min, max);
}

static sinter_status check_inputs(const infer_ctx *c, const op_info *row)
{
    TRY(check_count(c->e, "inputs", c->count_in, row->in_min, row->in_max));
    TRY(check_count(c->e, "outputs", c->count_out, row->out_min, row->out_max));
    for (uint32_t i = 0; i < c->count_in; i++) {
        /* The trip count and the condition of a loop may be absent although they come first. */
        if (c->in[i].dtype == SINTER_DTYPE_NONE && i < row->in_min && row->regions == 0) {
            return FAIL(c->e, INVALID_MODEL, "input %u is absent but not optional", i);
        }
    }
    return SINTER_OK;
}

/* What every shape function must leave behind, checked once here instead of in each. */
static sinter_status check_outputs(const infer_ctx *c)
{
    for (uint32_t i = 0; i < c->count_out; i++) {
        const infer_value *v = &c->out[i];
        if (v->rank > SINTER_RANK_MAX) {
            return FAIL(c->e, UNSUPPORTED, "output %u has rank %u; at most %d is supported", i, v->rank,
                        SINTER_RANK_MAX);
        }
        for (uint32_t k = 0; k < v->rank; k++) {
            int64_t size;
            if (v->dim[k] == DIM_NONE) {
                return FAIL(c->e, NO_MEMORY,
                            "the size of axis %u of output %u: no memory, or an expression beyond its bounds", k, i);
            }
            if (dim_is_const(c->dims, v->dim[k], &size) && size < 0) {
                return FAIL(c->e, INVALID_MODEL, "axis %u of output %u would have size %lld", k, i, (long long)size);
            }
        }
    }
    return SINTER_OK;
}

sinter_status op_infer(infer_ctx *c)
{
    const op_info *row = op_at(c->op);
    sinter_status status = check_inputs(c, row);
    if (status == SINTER_OK) status = row->infer(c);
    if (status == SINTER_OK) status = check_outputs(c);
    return NOTE(c->e, status, "inferring the types and shapes of op '%s'", row->name);
}

sinter_status op_reference(ref_call *c)
{
    const op_info *row = op_at(c->op);
    return NOTE(c->e, row->reference(c), "running op '%s'", row->name);
}

void ref_fault(ref_call *c, int64_t index, int64_t value, int64_t limit)
{
    if (!c->fault || c->fault->is_set) return;
    c->fault->is_set = 1;
    c->fault->index = index;
    c->fault->value = value;
    c->fault->limit = limit;
}
