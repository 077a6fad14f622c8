/* SPDX-License-Identifier: Apache-2.0 */
/* tune_place.c - host and device: which of them a value is seen in, and the transfers between.
 *
 * Weights, inputs and the number of rows can be in both places at once without a step: the file has the bytes, or the
 * caller or the context gives them.
 * Everything else is moved, dense, by a step that the plan shows. Where a backend has one place, nothing here does
 * anything. */
#include "tune/lower.h"

#include <string.h>

/* At most this many elements are computed on the host as fast as moved to the device and back. */
static const int64_t host_elements_max = 4096;

bool work_is_small(const lowering *l, uint32_t rank, const dim *d)
{
    int64_t count = 1;
    for (uint32_t k = 0; k < rank; k++) {
        const dim_range r = dim_range_of(l->p->dims, d[k]);
        if (r.max > host_elements_max || !i64_mul(count, r.max > 0 ? r.max : 1, &count)) return false;
    }
    return count <= host_elements_max;
}

/* Does the work have types of less than a byte, other than in weights? No kernel of a device with its own memory
 * accepts them. */
static bool is_under_byte(const lowering *l, const work *w)
{
    for (uint32_t i = 0; i < w->count_in; i++) {
        const bool is_there = w->in[i] && !lower_is_const(l, w->in[i]);
        if (is_there && sinter_dtype_bits(l->p->value.at[w->in[i]].dtype) < 8) return true;
    }
    for (uint32_t i = 0; i < w->count_out; i++)
        if (w->out[i].dtype != SINTER_DTYPE_NONE && sinter_dtype_bits(w->out[i].dtype) < 8) return true;
    return false;
}

bool work_is_for_host(const lowering *l, const work *w)
{
    if (!l->o->backend->copy) return false;
    if (w->is_counting || is_under_byte(l, w)) return true;
    bool is_any = false;
    for (uint32_t i = 0; i < w->count_in; i++) {
        if (!w->in[i] || lower_is_const(l, w->in[i])) continue;
        const plan_storage *s = &l->p->storage.at[l->p->value.at[w->in[i]].storage];
        if (s->place != PLACE_HOST && s->kind != STORAGE_INPUT) return false;
        is_any = is_any || s->place == PLACE_HOST;
    }
    for (uint32_t i = 0; is_any && i < w->count_in; i++)
        if (w->in[i] && !work_is_small(l, l->p->value.at[w->in[i]].rank, l->p->value.at[w->in[i]].dim)) return false;
    for (uint32_t i = 0; is_any && i < w->count_out; i++)
        if (!work_is_small(l, w->out[i].rank, w->out[i].dim)) return false;
    return is_any;
}

/* The same bytes in the other place: a storage of their own, shared by all views of the first. */
static uint32_t twin_storage(lowering *l, uint32_t storage, storage_place place)
{
    const plan_storage from = l->p->storage.at[storage];
    const uint32_t known = lower_twin(l, storage, place);
    if (known || l->a->failed) return known;
    const uint32_t made = plan_storage_new(l->p, from.kind, from.size);
    if (!made) return 0;
    l->p->storage.at[made] = from;
    l->p->storage.at[made].place = place;
    return made;
}

static const kernel *transfer_kernel(const lowering *l)
{
    uint32_t count = 0;
    const kernel *const *list = l->o->backend->kernels(&count);
    for (uint32_t i = 0; i < count; i++)
        if (list[i]->where == KERNEL_TRANSFER) return list[i];
    return NULL;
}

static void operand_of(lowering *l, uint32_t value, const uint8_t *order, problem_operand *o)
{
    const plan_value *v = &l->p->value.at[value];
    *o = (problem_operand){ .dtype = v->dtype, .rank = (uint8_t)v->rank };
    memcpy(o->order, order, v->rank);
    for (uint32_t i = 0; i < v->rank; i++) o->dim[i] = dim_size_range_of(l->p->dims, v->dim[i]);
    problem_operand_calm(o);
}

static sinter_status transfer(lowering *l, uint32_t from, const uint8_t *order, storage_place place, const char *name,
                              uint32_t *out)
{
    const plan_value v = l->p->value.at[from];
    const kernel *k = transfer_kernel(l);
    if (!k) return FAIL(l->e, INTERNAL, "the backend '%s' moves nothing", l->o->backend->name);
    *out = plan_value_dense(l->p, STORAGE_SLAB, v.name, v.dtype, v.rank, v.dim, order);
    problem *p = ARENA_NEW(l->a, problem, 1);
    problem_operand *operand = ARENA_NEW(l->a, problem_operand, 2);
    uint32_t *id = ARENA_NEW(l->a, uint32_t, 2);
    void *attrs = op_attrs_new(l->a, OP_copy);
    if (!*out || !p || !operand || !id || !attrs) return FAIL_MEMORY(l->e, "a transfer");
    l->p->storage.at[l->p->value.at[*out].storage].place = place;
    operand_of(l, from, order, &operand[0]);
    operand_of(l, *out, order, &operand[1]);
    *p = (problem){ .op = OP_copy,
                    .attrs = attrs,
                    .count_in = 1,
                    .count_anchor = 1,
                    .count_out = 1,
                    .in = &operand[0],
                    .out = &operand[1] };
    id[0] = from;
    id[1] = *out;
    const plan_step s = { .kind = STEP_KERNEL,
                          .kernel = k,
                          .problem = p,
                          .count_in = 1,
                          .count_out = 1,
                          .in = &id[0],
                          .out = &id[1],
                          .in_place_from = UINT32_MAX,
                          .name = name };
    return lower_step_new(l, &s) ? SINTER_OK : FAIL_MEMORY(l->e, "a transfer");
}

/* Elements at most, saturated. */
static int64_t elements_of(const lowering *l, const plan_value *v)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < v->rank; i++) {
        const int64_t most = dim_range_of(l->p->dims, v->dim[i]).max;
        if (!i64_mul(count, most > 0 ? most : 1, &count)) return INT64_MAX;
    }
    return count;
}

/* A dense value that fills the storage of `value` and has no more elements than `value` (`value` may repeat elements);
 * 0: there is none. A dense value that fills only a part of the storage, such as an operand of a concatenation, does
 * not count: moving it might miss elements that `value` reads. */
static uint32_t source_of(lowering *l, uint32_t value)
{
    const plan_value *v = &l->p->value.at[value];
    if (!lower_facts(l)) return 0;
    for (uint32_t i = l->storage.at[v->storage].first; i; i = l->value.at[i].next) {
        const plan_value *x = &l->p->value.at[i];
        uint8_t order[SINTER_RANK_MAX];
        bool is_dense;
        int64_t offset;
        if (i == value || x->dtype != v->dtype) continue;
        if (!dim_is_const(l->p->dims, x->offset, &offset) || offset) continue;
        view_dims_order(l->p->dims, x, order, &is_dense);
        if (!is_dense || plan_dense_size(l->p, x->dtype, x->rank, x->dim) != l->p->storage.at[x->storage].size)
            continue;
        if (elements_of(l, x) <= elements_of(l, v)) return i;
    }
    return 0;
}

sinter_status work_place(lowering *l, uint32_t value, storage_place place, const char *name, uint32_t *out)
{
    *out = value;
    if (!value || !l->o->backend->copy || lower_place(l, value) == place) return SINTER_OK;
    if (!lower_facts(l)) return FAIL_MEMORY(l->e, "a value in the other place");
    const uint32_t known = l->value.at[value].placed;
    if (known) return *out = l->placed.at[known - 1].result, SINTER_OK;
    const plan_value v = l->p->value.at[value];
    const storage_kind kind = l->p->storage.at[v.storage].kind;
    uint8_t order[SINTER_RANK_MAX];
    bool is_dense;
    uint32_t storage = 0; /* of the other place, that the value is seen in as it is in its own */
    view_dims_order(l->p->dims, &v, order, &is_dense);
    for (uint32_t i = 0; i < v.rank; i++) /* nothing is moved, whatever the strides */
        if (dim_range_of(l->p->dims, v.dim[i]).max <= 0) is_dense = true;
    const uint32_t source = is_dense ? 0 : source_of(l, value);
    if (kind == STORAGE_WEIGHT || kind == STORAGE_INPUT || kind == STORAGE_ROWS) {
        storage = twin_storage(l, v.storage, place);
        if (!storage) return FAIL_MEMORY(l->e, "a value in the other place");
    } else if (source) {
        uint32_t moved;
        TRY(work_place(l, source, place, name, &moved));
        storage = l->p->value.at[moved].storage;
    } else {
        uint32_t dense = value;
        for (uint32_t i = 0; i < v.rank && !is_dense; i++) order[i] = (uint8_t)i;
        if (!is_dense) TRY(work_copy(l, value, NULL, false, 0, name, &dense));
        TRY(transfer(l, dense, order, place, name, out));
    }
    if (storage) {
        plan_value *slot = VEC_PUSH(l->a, &l->p->value);
        if (!slot) return FAIL_MEMORY(l->e, "a value in the other place");
        *slot = v;
        slot->storage = storage;
        *out = l->p->value.count - 1;
    }
    placing *entry = VEC_PUSH(l->a, &l->placed);
    if (!entry) return FAIL_MEMORY(l->e, "a value in the other place");
    *entry = (placing){ .value = value, .result = *out };
    l->value.at[value].placed = l->placed.count;
    return SINTER_OK;
}
