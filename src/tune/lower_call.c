/* SPDX-License-Identifier: Apache-2.0 */
/* lower_call.c - If, Loop and Scan: bodies become regions of the plan.
 *
 * A captured value is the same plan value inside, so captures cost nothing. Carried values, slices and results have
 * storages of their own, into which the executor copies. They lie on the device, so that a turn of a loop needs no
 * transfer, but for the integers that the host reads (counts.c). A body that only computes with small values of the
 * host runs on the host as a whole. */
#include "tune/lower.h"

/* ---- where what a call copies lies ---- */

static bool is_small(const lowering *l, ir_value_id v)
{
    const ir_value *x = ir_value_at(l->g, v);
    return !v || work_is_small(l, x->rank, x->dim);
}

static bool has_small_nodes(const lowering *l, const ir_node *n)
{
    for (uint32_t i = 1; i < l->g->node.count; i++) {
        const ir_node *x = &l->g->node.at[i];
        bool is_inside = false;
        for (uint32_t k = 0; k < n->count_region; k++) is_inside = is_inside || x->parent == n->region[k];
        if (x->is_dead || x->is_folded || !is_inside) continue;
        for (uint32_t k = 0; k < x->count_in; k++)
            if (!is_small(l, x->in[k])) return false;
        for (uint32_t k = 0; k < x->count_out; k++)
            if (!is_small(l, x->out[k])) return false;
        if (x->count_region && !has_small_nodes(l, x)) return false;
    }
    return true;
}

/* Everything that the body works on is small, and lies on the host already. */
static bool is_for_host(const lowering *l, const ir_node *n, const uint32_t *in)
{
    for (uint32_t i = 0; i < n->count_in; i++) {
        if (!in[i] || lower_is_const(l, in[i])) continue;
        const plan_storage *s = &l->p->storage.at[l->p->value.at[in[i]].storage];
        if (s->place != PLACE_HOST && s->kind != STORAGE_INPUT) return false;
    }
    for (uint32_t i = 0; i < n->count_out; i++)
        if (!is_small(l, n->out[i])) return false;
    return has_small_nodes(l, n);
}

static storage_place place_of(const lowering *l, ir_value_id v, bool is_host_call)
{
    if (!l->o->backend->copy) return PLACE_DEVICE;
    if (is_host_call || sinter_dtype_bits(ir_value_at(l->g, v)->dtype) < 8) return PLACE_HOST;
    return l->is_wanted[v] ? PLACE_HOST : PLACE_DEVICE;
}

/* `value` where the executor copies it from: on the device dense, since its bytes are copied as they are. */
static sinter_status place_source(lowering *l, uint32_t value, storage_place place, const char *name, uint32_t *out)
{
    *out = value;
    if (!value || !l->o->backend->copy) return SINTER_OK;
    if (place == PLACE_DEVICE && lower_is_const(l, value)) {
        uint32_t dense;
        TRY(work_place(l, value, PLACE_HOST, name, &value));
        TRY(work_copy(l, value, NULL, false, 0, name, &dense));
        return *out = dense, SINTER_OK;
    }
    TRY(work_place(l, value, place, name, out));
    return place == PLACE_DEVICE ? work_copy(l, *out, NULL, false, 0, name, out) : SINTER_OK;
}

static uint32_t new_value(lowering *l, ir_value_id v, storage_place place)
{
    const ir_value *x = ir_value_at(l->g, v);
    const uint32_t made = plan_value_dense(l->p, STORAGE_SLAB, x->name, x->dtype, x->rank, x->dim, NULL);
    if (made) l->p->storage.at[l->p->value.at[made].storage].place = place;
    return made;
}

/* ---- bodies ---- */

/* The copies of a call and their places: one entry for each input and for each result of a body. */
typedef struct call {
    const ir_node *n;
    uint32_t own;     /* inputs that are copied, or read by the executor; captures follow */
    uint32_t read;    /* of these, how many it reads */
    uint32_t carried; /* of these, how many it copies back each turn; they follow those that are read */
    uint32_t skip;    /* results of a body before those that become results of the call */
    storage_place *in, *out;
} call;

/* Slices along other axes than the first are not dense. */
static bool is_first_axis(const attr_ints *axes, uint32_t i)
{
    return i >= axes->count || axes->at[i] == 0;
}

static void places_of(const lowering *l, call *c, const uint32_t *in)
{
    const ir_node *n = c->n;
    const bool is_host = l->o->backend->copy && is_for_host(l, n, in);
    const ir_region *body = ir_region_at(l->g, n->region[0]);
    const attrs_scan *axes = n->op == OP_scan ? n->attrs : NULL;
    for (uint32_t i = 0; i < c->own; i++) {
        c->in[i] =
            i < c->read ? l->o->backend->copy ? PLACE_HOST : PLACE_DEVICE : place_of(l, body->param.at[i], is_host);
        if (axes && i >= c->carried && !is_first_axis(&axes->in_axis, i - c->carried) && l->o->backend->copy)
            c->in[i] = PLACE_HOST;
    }
    for (uint32_t i = 0; i < n->count_out; i++) {
        c->out[i] = i < c->carried ? c->in[c->read + i] : place_of(l, n->out[i], is_host);
        if (axes && i >= c->carried && !is_first_axis(&axes->out_axis, i - c->carried) && l->o->backend->copy)
            c->out[i] = PLACE_HOST;
    }
}

static bool is_param_storage(const lowering *l, const plan_region *r, uint32_t storage)
{
    for (uint32_t i = 0; i < r->count_param; i++)
        if (r->param[i] && l->p->value.at[r->param[i]].storage == storage) return true;
    return false;
}

/* Results of a body are copied out one by one while parameters are overwritten: a result must not lie in a parameter.
 */
static sinter_status lower_results(lowering *l, const call *c, ir_region_id from, uint32_t to)
{
    const ir_region *body = ir_region_at(l->g, from);
    uint32_t *result = ARENA_NEW(l->a, uint32_t, body->result.count);
    if (!result) return FAIL_MEMORY(l->e, "results");
    for (uint32_t i = 0; i < body->result.count; i++) {
        TRY(lower_value(l, body->result.at[i], &result[i]));
        TRY(place_source(l, result[i], i < c->skip ? PLACE_HOST : c->out[i - c->skip], "", &result[i]));
        const uint32_t storage = l->p->value.at[result[i]].storage;
        if (is_param_storage(l, &l->p->region.at[to], storage))
            TRY(work_copy(l, result[i], NULL, true, 0, "", &result[i]));
    }
    l->p->region.at[to].result = result;
    l->p->region.at[to].count_result = body->result.count;
    return SINTER_OK;
}

static sinter_status lower_body(lowering *l, const call *c, uint32_t k, const uint32_t *in, uint32_t *out)
{
    const ir_node *n = c->n;
    const ir_region *body = ir_region_at(l->g, n->region[k]);
    const uint32_t shift = n->op == OP_if; /* its condition has no parameter */
    if (!VEC_PUSH(l->a, &l->p->region)) return FAIL_MEMORY(l->e, "a region");
    const uint32_t to = *out = l->p->region.count - 1;
    uint32_t *param = ARENA_NEW(l->a, uint32_t, body->param.count);
    if (!param) return FAIL_MEMORY(l->e, "a region");
    for (uint32_t i = 0; i < body->param.count; i++) {
        const ir_value_id v = body->param.at[i];
        const uint32_t input = i + shift;
        if (input >= c->own) {
            l->map[v] = input < n->count_in ? in[input] : 0;
        } else {
            param[i] = l->map[v] = new_value(l, v, c->in[input]);
            if (!param[i]) return FAIL_MEMORY(l->e, "a parameter");
        }
    }
    l->p->region.at[to].param = param;
    l->p->region.at[to].count_param = body->param.count;
    TRY(lower_nodes(l, n->region[k], to));
    return lower_results(l, c, n->region[k], to);
}

/* Captured integers that a body reads on the host are moved once, before it. */
static sinter_status place_captures(lowering *l, const call *c, const uint32_t *in)
{
    const ir_node *n = c->n;
    const uint32_t shift = n->op == OP_if;
    if (!l->o->backend->copy) return SINTER_OK;
    for (uint32_t k = 0; k < n->count_region; k++) {
        const ir_region *body = ir_region_at(l->g, n->region[k]);
        for (uint32_t i = c->own; i < n->count_in; i++) {
            uint32_t unused;
            if (i >= shift && i - shift < body->param.count && l->is_wanted[body->param.at[i - shift]])
                TRY(work_place(l, in[i], PLACE_HOST, n->name ? n->name : "", &unused));
        }
    }
    return SINTER_OK;
}

sinter_status lower_call(lowering *l, const ir_node *n)
{
    plan_step s = { .kind = n->op == OP_if     ? STEP_IF
                            : n->op == OP_loop ? STEP_LOOP
                                               : STEP_SCAN,
                    .count_in = n->count_in,
                    .count_out = n->count_out,
                    .in_place_from = UINT32_MAX };
    uint32_t *in = ARENA_NEW(l->a, uint32_t, n->count_in), *out = ARENA_NEW(l->a, uint32_t, n->count_out);
    call c = { .n = n,
               .in = ARENA_NEW(l->a, storage_place, n->count_in),
               .out = ARENA_NEW(l->a, storage_place, n->count_out) };
    if (!in || !out || !c.in || !c.out) return FAIL_MEMORY(l->e, "a call");
    work w;
    const problem *p;
    TRY(lower_work(l, n, &w));
    TRY(work_problem(l, &w, &p));
    s.name = w.name;
    if (s.kind == STEP_IF) c.own = c.read = 1;
    if (s.kind == STEP_LOOP) {
        c.carried = (uint32_t)((const attrs_loop *)n->attrs)->carried;
        c.read = 2;
        c.own = c.read + c.carried;
        c.skip = 1;
    }
    if (s.kind == STEP_SCAN) {
        c.carried = (uint32_t)((const attrs_scan *)n->attrs)->carried;
        c.own = c.carried + (uint32_t)((const attrs_scan *)n->attrs)->scanned;
    }
    for (uint32_t i = 0; i < n->count_in; i++) TRY(lower_value(l, n->in[i], &in[i]));
    places_of(l, &c, in);
    for (uint32_t i = 0; i < c.own && i < n->count_in; i++) TRY(place_source(l, in[i], c.in[i], s.name, &in[i]));
    TRY(place_captures(l, &c, in));
    const uint32_t region = l->region;
    for (uint32_t k = 0; k < n->count_region; k++) {
        /* Conversions and transfers inside a body are lost afterwards, because the body may not have run. */
        const uint32_t converted = l->converted.count, placed = l->placed.count;
        TRY(lower_body(l, &c, k, in, &s.region[k]));
        lower_forget(l, converted, placed);
    }
    l->region = region;
    for (uint32_t i = 0; i < n->count_out; i++) {
        out[i] = l->map[n->out[i]] = new_value(l, n->out[i], c.out[i]);
        if (!out[i]) return FAIL_MEMORY(l->e, "a result");
    }
    s.in = in;
    s.out = out;
    s.problem = p;
    s.dim_at = work_dims(l, &w, &s.count_dim);
    return s.dim_at && lower_step_new(l, &s) ? SINTER_OK : FAIL_MEMORY(l->e, "a call");
}
