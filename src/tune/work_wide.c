/* SPDX-License-Identifier: Apache-2.0 */
/* work_wide.c - work on f16, bf16 or small integers that only kernels of wider types do fast, done in these between
 * conversions. */
#include "core/dtype.h"
#include "tune/work.h"

#include <string.h>

sinter_dtype work_wider(const work *w, sinter_dtype t)
{
    if (t == SINTER_DTYPE_F16 || t == SINTER_DTYPE_BF16) return op_widens(w->op) ? SINTER_DTYPE_F32 : t;
    /* Integers that are compared and moved are the same in more bits. */
    if (!dtype_is_int(t) || !op_has(w->op, MOVES) || !op_has(w->op, WIDENS)) return t;
    return t == SINTER_DTYPE_U32 ? SINTER_DTYPE_I64 : sinter_dtype_bits(t) < 32 ? SINTER_DTYPE_I32 : t;
}

/* A narrow constant as f32, converted now: all of it, so that views of it stay what they are. */
static sinter_status widen_const(lowering *l, uint32_t value, uint32_t *out)
{
    const plan_value v = l->p->value.at[value];
    const plan_storage source = l->p->storage.at[v.storage];
    const weight_recipe from = l->out->recipe.at[source.recipe];
    const size_t count = (size_t)(source.bound / 2);
    const uint32_t storage =
        plan_storage_new(l->p, STORAGE_WEIGHT, dim_const(l->p->dims, (int64_t)size_mul(count, sizeof(float))));
    weight_recipe *recipe = VEC_PUSH(l->a, &l->out->recipe);
    plan_value *slot = storage && recipe ? VEC_PUSH(l->a, &l->p->value) : NULL;
    float *to = slot ? ir_blob(l->g, size_mul(count, sizeof *to)) : NULL;
    if (!to || from.step)
        return to ? FAIL(l->e, INTERNAL, "a packed weight cannot be widened") : FAIL_MEMORY(l->e, "a weight");
    for (size_t i = 0; i < count; i++) to[i] = (float)dtype_load_f64(v.dtype, source.data, (int64_t)i);
    *recipe = (weight_recipe){ .source = from.source, .wider = SINTER_DTYPE_F32 };
    l->p->storage.at[storage].data = to;
    l->p->storage.at[storage].place = source.place;
    l->p->storage.at[storage].recipe = l->out->recipe.count - 1;
    *slot = v;
    slot->dtype = SINTER_DTYPE_F32;
    slot->storage = storage;
    *out = l->p->value.count - 1;
    return SINTER_OK;
}

/* A step that converts `value` to the type of `out`. */
static sinter_status convert(lowering *l, uint32_t value, const work_out *out, const char *name, uint32_t *result)
{
    attrs_typed *attrs = op_attrs_new(l->a, OP_cast);
    if (!attrs) return FAIL_MEMORY(l->e, "a conversion");
    attrs->type = out->dtype;
    work_out to = *out;
    const work w = { .op = OP_cast,
                     .attrs = attrs,
                     .count_in = 1,
                     .count_anchor = 1,
                     .count_out = 1,
                     .in = &value,
                     .out = &to,
                     .name = name };
    return work_lower(l, &w, result);
}

bool work_may_widen(lowering *l, const work *w)
{
    bool widens = false;
    for (uint32_t i = 0; i < w->count_in; i++) {
        const sinter_dtype t = w->in[i] ? l->p->value.at[w->in[i]].dtype : SINTER_DTYPE_NONE;
        widens = widens || work_wider(w, t) != t;
    }
    return widens;
}

/* Work that only kernels of wider types do fast: the same in these between conversions. Sums are as wide as the
 * reference's contract asks and results are rounded once, so this loses nothing. */
sinter_status work_widen(lowering *l, const work *w, uint32_t *value, bool *done)
{
    *done = !w->prologue && !w->epilogue && work_may_widen(l, w);
    if (!*done) return SINTER_OK;
    work wide;
    if (!work_piece_of(l, w, &wide)) return FAIL_MEMORY(l->e, "a conversion");
    wide.out = ARENA_NEW(l->a, work_out, w->count_out);
    uint32_t *middle = ARENA_NEW(l->a, uint32_t, w->count_out);
    if (!wide.out || !middle) return FAIL_MEMORY(l->e, "a conversion");
    for (uint32_t i = 0; i < w->count_out; i++) {
        wide.out[i] = w->out[i];
        wide.out[i].dtype = work_wider(w, w->out[i].dtype);
        if (wide.out[i].dtype != w->out[i].dtype) wide.out[i].io = 0;
    }
    for (uint32_t i = 0; i < w->count_in; i++) {
        if (!w->in[i]) continue;
        const plan_value *v = &l->p->value.at[w->in[i]];
        work_out to = { .dtype = work_wider(w, v->dtype), .rank = v->rank };
        if (to.dtype == v->dtype) continue;
        memcpy(to.dim, v->dim, sizeof to.dim);
        uint32_t made = 0;
        const bool is_const = lower_is_const(l, w->in[i]) && to.dtype == SINTER_DTYPE_F32;
        TRY(is_const ? widen_const(l, w->in[i], &made) : convert(l, w->in[i], &to, w->name, &made));
        wide.in[i] = made;
    }
    TRY(work_lower(l, &wide, middle));
    for (uint32_t i = 0; i < w->count_out; i++) {
        const bool is_wide = wide.out[i].dtype != w->out[i].dtype;
        value[i] = is_wide ? 0 : middle[i];
        if (is_wide) TRY(convert(l, middle[i], &w->out[i], w->name, &value[i]));
    }
    return SINTER_OK;
}
