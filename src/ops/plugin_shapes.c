/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_shapes.c - calls of a plugin's `shapes`: expressions of sizes, and sizes that the data decide. */
#include "ops/plugin.h"

#include <string.h>

/* What `dims` of a call points to. */
typedef struct call_dims {
    dim_table *t;
    plugin_sizes *sizes;
    uint32_t declared;
    bool is_too_many;
} call_dims;

static uint32_t constant(void *dims, int64_t value)
{
    return dim_const(((call_dims *)dims)->t, value);
}

static uint32_t apply(void *dims, sinter_dim_op op, uint32_t a, uint32_t b)
{
    dim_table *t = ((call_dims *)dims)->t;
    if (a >= dim_count(t) || b >= dim_count(t)) return DIM_NONE;
    switch (op) {
    case SINTER_DIM_ADD: return dim_add(t, a, b);
    case SINTER_DIM_SUB: return dim_sub(t, a, b);
    case SINTER_DIM_MUL: return dim_mul(t, a, b);
    case SINTER_DIM_FLOORDIV: return dim_floordiv(t, a, b);
    case SINTER_DIM_CEILDIV: return dim_ceildiv(t, a, b);
    case SINTER_DIM_MOD: return dim_mod(t, a, b);
    case SINTER_DIM_MIN: return dim_min(t, a, b);
    case SINTER_DIM_MAX: return dim_max(t, a, b);
    case SINTER_DIM_BROADCAST: return dim_broadcast(t, a, b);
    }
    return DIM_NONE;
}

static int known(void *dims, uint32_t d, int64_t *value)
{
    const dim_table *t = ((call_dims *)dims)->t;
    return d < dim_count(t) && dim_is_const(t, d, value);
}

static uint32_t declare_size(void *dims, uint32_t output, uint32_t most)
{
    call_dims *c = dims;
    plugin_sizes *s = c->sizes;
    const uint32_t i = c->declared++;
    if (most == DIM_NONE || most >= dim_count(c->t)) return DIM_NONE;
    if (i >= PLUGIN_SIZES_MAX) {
        c->is_too_many = true;
        return DIM_NONE;
    }
    s->at[i].output = output;
    s->at[i].most = most;
    if (i >= s->count) s->at[i].size = most; /* nobody has put something there */
    return s->at[i].size;
}

static void value_of(const infer_value *v, sinter_plugin_value *out)
{
    *out = (sinter_plugin_value){ .dtype = v->dtype, .rank = v->rank };
    for (uint32_t i = 0; i < v->rank; i++) out->dim[i] = v->dim[i];
}

static sinter_status take_output(env *e, dim_table *t, const sinter_plugin *p, uint32_t i, const sinter_plugin_value *v,
                                 infer_value *out)
{
    if (!dtype_is_valid((int)v->dtype) || v->rank > SINTER_RANK_MAX)
        return FAIL(e, INVALID_ARG, "plugin '%s' gives output %u the type %d and the rank %u", p->name, i,
                    (int)v->dtype, v->rank);
    out->dtype = v->dtype;
    out->rank = v->rank;
    for (uint32_t k = 0; k < v->rank; k++) {
        if (v->dim[k] == DIM_NONE || v->dim[k] >= dim_count(t))
            return dim_table_failed(t)
                       ? FAIL_MEMORY(e, "dimension expressions")
                       : FAIL(e, INVALID_ARG, "plugin '%s' gives axis %u of output %u no size", p->name, k, i);
        out->dim[k] = v->dim[k];
    }
    return SINTER_OK;
}

static sinter_status check_sizes(env *e, const sinter_plugin *p, const call_dims *c, const infer_value *out,
                                 uint32_t count_out)
{
    if (c->is_too_many)
        return FAIL(e, INVALID_ARG, "plugin '%s' declares %u sizes, the most is %d", p->name, c->declared,
                    PLUGIN_SIZES_MAX);
    for (uint32_t i = 0; i < c->declared; i++) {
        const uint32_t k = c->sizes->at[i].output;
        if (k >= count_out)
            return FAIL(e, INVALID_ARG, "plugin '%s' declares output %u as a size, the node has %u outputs", p->name, k,
                        count_out);
        if (out[k].rank || (out[k].dtype != SINTER_DTYPE_I32 && out[k].dtype != SINTER_DTYPE_I64))
            return FAIL(e, INVALID_ARG,
                        "plugin '%s' declares output %u as a size: it is %s of rank %u, wanted is i32 "
                        "or i64 of rank 0",
                        p->name, k, sinter_dtype_name(out[k].dtype), out[k].rank);
        for (uint32_t n = 0; n < i; n++)
            if (c->sizes->at[n].output == k)
                return FAIL(e, INVALID_ARG, "plugin '%s' declares output %u as a size twice", p->name, k);
    }
    c->sizes->count = c->declared;
    return SINTER_OK;
}

sinter_status plugin_shapes_of(env *e, dim_table *t, const plugin_use *u, const infer_value *in, uint32_t count_in,
                               infer_value *out, uint32_t count_out, plugin_sizes *sizes)
{
    sinter_plugin_value from[PLUGIN_OPERANDS_MAX], to[PLUGIN_OPERANDS_MAX];
    for (uint32_t i = 0; i < count_in; i++) value_of(&in[i], &from[i]);
    memset(to, 0, sizeof to);
    char error[PLUGIN_ERROR_SIZE] = "";
    call_dims dims = { .t = t, .sizes = sizes };
    sinter_plugin_shapes s = { .struct_size = sizeof s,
                               .user = u->plugin->user,
                               .count_field = u->plugin->count_field,
                               .count_in = count_in,
                               .count_out = count_out,
                               .field = u->field,
                               .in = from,
                               .out = to,
                               .dims = &dims,
                               .constant = constant,
                               .apply = apply,
                               .known = known,
                               .error = error,
                               .error_size = sizeof error,
                               .declare_size = declare_size };
    const sinter_status status = u->plugin->shapes(&s);
    if (status) return plugin_failed(e, u->plugin, status, "refuses the call", error);
    for (uint32_t i = 0; i < count_out; i++) TRY(take_output(e, t, u->plugin, i, &to[i], &out[i]));
    return check_sizes(e, u->plugin, &dims, out, count_out);
}
