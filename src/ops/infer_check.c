/* SPDX-License-Identifier: Apache-2.0 */
/* infer_check.c - the checks that shape functions share: infer_check.h has the contract. */
#include "ops/infer_check.h"
#include <inttypes.h>

static const char *text_keep(infer_ctx *c, text *t)
{
    const char *kept = t->failed || !t->at ? NULL : arena_text(c->a, t->at, t->length);
    text_deinit(t);
    return kept ? kept : "?";
}

const char *infer_dim_text(infer_ctx *c, dim d)
{
    text t;
    text_init(&t, c->e);
    dim_print(c->dims, d, &t);
    return text_keep(c, &t);
}

const char *infer_shape_text(infer_ctx *c, const infer_value *v)
{
    text t;
    text_init(&t, c->e);
    text_printf(&t, "[");
    for (uint32_t i = 0; i < v->rank; i++) {
        if (i) text_printf(&t, ",");
        dim_print(c->dims, v->dim[i], &t);
    }
    text_printf(&t, "]");
    return text_keep(c, &t);
}

sinter_status infer_want_in(infer_ctx *c, uint32_t i, const char *name, uint32_t rank_min, uint32_t rank_max)
{
    if (!infer_has(c, i))
        return FAIL(c->e, INVALID_MODEL, "input %" PRIu32 " (%s) is absent, but it is required", i, name);
    const uint32_t rank = c->in[i].rank;
    if (rank >= rank_min && rank <= rank_max) return SINTER_OK;
    const char *shape = infer_shape_text(c, &c->in[i]);
    if (rank_min == rank_max) {
        return FAIL(c->e, INVALID_MODEL, "%s %s has rank %" PRIu32 ", wanted %" PRIu32, name, shape, rank, rank_min);
    }
    return FAIL(c->e, INVALID_MODEL, "%s %s has rank %" PRIu32 ", wanted %" PRIu32 " to %" PRIu32, name, shape, rank,
                rank_min, rank_max);
}

sinter_status infer_want_float(infer_ctx *c, const infer_value *v, const char *name)
{
    if (dtype_is_float(v->dtype)) return SINTER_OK;
    return FAIL(c->e, INVALID_MODEL, "%s has type %s, wanted a float type", name, sinter_dtype_name(v->dtype));
}

sinter_status infer_want_numeric(infer_ctx *c, const infer_value *v, const char *name)
{
    if (dtype_is_float(v->dtype) || dtype_is_int(v->dtype)) return SINTER_OK;
    return FAIL(c->e, INVALID_MODEL, "%s has type %s, wanted a float or integer type", name,
                sinter_dtype_name(v->dtype));
}

sinter_status infer_want_type(infer_ctx *c, const infer_value *v, const char *name, sinter_dtype wanted)
{
    if (v->dtype == wanted) return SINTER_OK;
    return FAIL(c->e, INVALID_MODEL, "%s has type %s, wanted %s", name, sinter_dtype_name(v->dtype),
                sinter_dtype_name(wanted));
}

sinter_status infer_want_dim(infer_ctx *c, const char *name, dim found, const char *wanted_name, dim wanted)
{
    if (infer_agree(c->dims, found, wanted)) return SINTER_OK;
    return FAIL(c->e, INVALID_MODEL, "%s is %s, wanted %s (%s)", name, infer_dim_text(c, found),
                infer_dim_text(c, wanted), wanted_name);
}

sinter_status infer_want_axis(infer_ctx *c, int64_t axis, uint32_t rank)
{
    if (axis >= 0 && axis < (int64_t)rank) return SINTER_OK;
    return FAIL(c->e, INVALID_MODEL, "axis is %" PRId64 ", wanted 0 to %" PRId64 " for rank %" PRIu32, axis,
                (int64_t)rank - 1, rank);
}

sinter_status infer_want_ints(infer_ctx *c, const char *name, const attr_ints *list, uint32_t count, int64_t min,
                              int64_t max)
{
    if (list->count != count) {
        return FAIL(c->e, INVALID_MODEL, "%s has %" PRIu32 " values, wanted %" PRIu32, name, list->count, count);
    }
    for (uint32_t i = 0; i < count && i < ATTR_INTS_MAX; i++) {
        if (list->at[i] >= min && list->at[i] <= max) continue;
        return FAIL(c->e, INVALID_MODEL, "%s[%" PRIu32 "] is %" PRId64 ", wanted %" PRId64 " to %" PRId64, name, i,
                    list->at[i], min, max);
    }
    return SINTER_OK;
}

sinter_status infer_set(infer_ctx *c, uint32_t i, sinter_dtype dtype, uint32_t rank, const dim *d)
{
    if (i >= c->count_out) return SINTER_OK;
    if (rank > SINTER_RANK_MAX) {
        return FAIL(c->e, UNSUPPORTED, "output %" PRIu32 " has rank %" PRIu32 ", the most is %d", i, rank,
                    SINTER_RANK_MAX);
    }
    infer_value *v = &c->out[i];
    v->dtype = dtype;
    v->rank = rank;
    for (uint32_t k = 0; k < rank; k++) {
        int64_t value;
        v->dim[k] = d[k];
        if (dim_table_failed(c->dims)) return FAIL_MEMORY(c->e, "dimension expressions");
        if (d[k] == DIM_NONE) {
            return FAIL(c->e, INVALID_MODEL, "axis %" PRIu32 " of output %" PRIu32 " is too large: its size overflows",
                        k, i);
        }
        if (dim_is_const(c->dims, d[k], &value) && value < 0) {
            return FAIL(c->e, INVALID_MODEL,
                        "axis %" PRIu32 " of output %" PRIu32 " would have size %" PRId64 ", wanted >= 0", k, i, value);
        }
    }
    return SINTER_OK;
}
