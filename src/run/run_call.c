/* SPDX-License-Identifier: Apache-2.0 */
/* run_call.c - If, Loop and Scan: bodies are regions; values go in and out of their storages by copies.
 *
 * Captured values are the same values inside and cost nothing. Sizes that a body decides bind late symbols on the way
 * out. Copies of values on the device are put on the stream and not waited for: the host waits where it reads a
 * condition or a value of its own memory that a copy may be at. */
#include "run/context.h"

#include <string.h>

static const char *step_name(const context *c, uint32_t step)
{
    return engine_text(c->g, context_step(c, step)->name);
}

/* `v` as it is now: prepared again, since its sizes may be late. */
static sinter_status current(context *c, uint32_t v, view *out)
{
    TRY(context_prepare_value(c, v));
    if (!c->now->is_bounded[v])
        return FAIL(&c->e, INVALID_MODEL, "value '%s' reaches outside its storage",
                    engine_text(c->g, context_value(c, v)->name));
    *out = c->now->value[v];
    return SINTER_OK;
}

static bool is_on_device(const context *c, uint32_t v)
{
    return context_has_places(c) && context_storage(c, context_value(c, v)->storage)->place != PLACE_HOST;
}

static size_t view_bytes(const view *v)
{
    return (size_t)view_count(v) * sinter_dtype_bits(v->dtype) / 8;
}

/* A view of value `v`, or of a part of it. */
typedef struct part {
    view v;
    bool is_on_device;
} part;

/* Elements into the place that was made for them; what already lies there stays. */
static sinter_status copy(context *c, const part *to, const part *from, const char *what)
{
    if (to->is_on_device == from->is_on_device) {
        if (view_is_same(&to->v, &from->v)) return SINTER_OK;
        if (view_overlaps(&to->v, &from->v)) return FAIL(&c->e, INVALID_MODEL, "'%s' copies a value over itself", what);
    }
    if (!to->is_on_device && !from->is_on_device) {
        TRY(context_before_host(c));
        view_copy(&to->v, &from->v);
        return SINTER_OK;
    }
    if (!view_is_dense(&to->v) || !view_is_dense(&from->v) || view_bytes(&to->v) != view_bytes(&from->v) ||
        sinter_dtype_bits(to->v.dtype) < 8)
        return FAIL(&c->e, INVALID_MODEL, "'%s' copies a value of the device that is not dense", what);
    return context_copy(c,
                        !to->is_on_device    ? COPY_FROM_DEVICE
                        : from->is_on_device ? COPY_ON_DEVICE
                                             : COPY_TO_DEVICE,
                        to->v.data, from->v.data, view_bytes(&to->v));
}

/* Is the expression a late symbol that the step binds? All other sizes were decided before it. */
static bool binds(const context *c, uint32_t step, uint32_t d)
{
    const engine_step *s = context_step(c, step);
    const dim_node *n = &c->g->dim[d];
    for (uint32_t i = 0; i < s->dim_count && n->kind == DIM_SYMBOL; i++) {
        const dim_node *own = &c->g->dim[context_args(c, s->dim_at)[i]];
        if (own->kind == DIM_SYMBOL && own->value == n->value) return true;
    }
    return false;
}

/* Gives value `v` the dims of a body's or caller's view: the step's own symbols are bound, other sizes must agree. */
static sinter_status bind_dims(context *c, uint32_t step, uint32_t v, const int64_t *dim_at, uint32_t rank)
{
    const engine_value *x = context_value(c, v);
    if (rank != x->rank)
        return FAIL(&c->e, INVALID_MODEL, "'%s' gives a value of rank %u, expected %u", step_name(c, step), rank,
                    x->rank);
    bool is_changed = false;
    for (uint32_t i = 0; i < rank; i++) {
        if (!binds(c, step, x->dim[i])) continue;
        TRY(context_bind_symbol(c, step, x->dim[i], dim_at[i], step_name(c, step)));
        is_changed = true;
    }
    if (is_changed) context_evaluate(c);
    for (uint32_t i = 0; i < rank; i++)
        if (c->now->dim[x->dim[i]] != dim_at[i])
            return FAIL(&c->e, INVALID_MODEL, "'%s' gives a value of size %lld on axis %u, expected %lld",
                        step_name(c, step), (long long)dim_at[i], i, (long long)c->now->dim[x->dim[i]]);
    return SINTER_OK;
}

static sinter_status current_part(context *c, uint32_t v, part *out)
{
    out->is_on_device = is_on_device(c, v);
    return current(c, v, &out->v);
}

/* Gives `to` the dims of `from`, then its elements. */
static sinter_status assign(context *c, uint32_t step, uint32_t to, const part *from)
{
    part target;
    TRY(bind_dims(c, step, to, from->v.dim, from->v.rank));
    TRY(current_part(c, to, &target));
    return copy(c, &target, from, step_name(c, step));
}

static sinter_status read_bool(context *c, uint32_t v, bool *out)
{
    view x;
    TRY(current(c, v, &x));
    if (view_count(&x) != 1)
        return FAIL(&c->e, INVALID_MODEL, "a condition has %lld elements, expected 1", (long long)view_count(&x));
    TRY(context_before_host(c));
    *out = view_load_i64(&x, 0) != 0;
    return SINTER_OK;
}

static sinter_status write_scalar(context *c, uint32_t v, int64_t value)
{
    view x;
    TRY(current(c, v, &x));
    if (view_count(&x) != 1)
        return FAIL(&c->e, INVALID_MODEL, "a loop's own parameter has %lld elements, expected 1",
                    (long long)view_count(&x));
    TRY(context_before_host(c));
    view_store_i64(&x, 0, value);
    return SINTER_OK;
}

static sinter_status run_if(context *c, uint32_t step)
{
    const engine_step *s = context_step(c, step);
    bool is_true;
    TRY(read_bool(c, context_args(c, s->in_at)[0], &is_true));
    const uint32_t region = s->region[is_true ? 0 : 1];
    TRY(context_run_region(c, region));
    const engine_region *body = &c->g->region[c->p->region_first + region];
    for (uint32_t i = 0; i < s->out_count; i++) {
        const uint32_t out = context_args(c, s->out_at)[i];
        part from;
        TRY(current_part(c, context_args(c, body->result_at)[i], &from));
        if (out) TRY(assign(c, step, out, &from));
    }
    return SINTER_OK;
}

/* ---- bodies that repeat ---- */

typedef struct repeat {
    context *c;
    uint32_t step, carried, scanned_out, skip; /* skip: results before the carried ones */
    const engine_step *s;
    const engine_region *body;
    const uint32_t *in, *out, *param, *result;
} repeat;

static repeat repeat_of(context *c, uint32_t step, int64_t carried, uint32_t skip)
{
    const engine_step *s = context_step(c, step);
    const engine_region *body = &c->g->region[c->p->region_first + s->region[0]];
    return (repeat){ .c = c,
                     .step = step,
                     .carried = (uint32_t)carried,
                     .scanned_out = s->out_count - (uint32_t)carried,
                     .skip = skip,
                     .s = s,
                     .body = body,
                     .in = context_args(c, s->in_at),
                     .out = context_args(c, s->out_at),
                     .param = context_args(c, body->param_at),
                     .result = context_args(c, body->result_at) };
}

/* The first values of what is carried; own: how many inputs and parameters come before them. */
static sinter_status start_carried(const repeat *r, uint32_t own)
{
    for (uint32_t i = 0; i < r->carried; i++) {
        part from;
        if (!r->in[own + i]) return FAIL(&r->c->e, INVALID_MODEL, "carried value %u is missing", i);
        TRY(current_part(r->c, r->in[own + i], &from));
        TRY(assign(r->c, r->step, r->param[own + i], &from));
    }
    return SINTER_OK;
}

/* Results become the next parameters. Their views are taken first: binding a parameter's dims may change expressions.
 */
static sinter_status next_carried(const repeat *r, uint32_t own)
{
    context *c = r->c;
    const arena_mark mark = arena_save(&c->scratch);
    part *from = ARENA_NEW(&c->scratch, part, r->carried);
    sinter_status s = from ? SINTER_OK : FAIL_MEMORY(&c->e, "carried values");
    for (uint32_t i = 0; s == SINTER_OK && i < r->carried; i++) s = current_part(c, r->result[r->skip + i], &from[i]);
    for (uint32_t i = 0; s == SINTER_OK && i < r->carried; i++) s = assign(c, r->step, r->param[own + i], &from[i]);
    arena_rewind(&c->scratch, mark);
    return s;
}

static sinter_status finish_carried(const repeat *r, uint32_t own)
{
    for (uint32_t i = 0; i < r->carried; i++) {
        if (!r->out[i]) continue;
        part from;
        TRY(current_part(r->c, r->param[own + i], &from));
        TRY(assign(r->c, r->step, r->out[i], &from));
    }
    return SINTER_OK;
}

/* Appends one iteration's slice to the dense rows that output `i` of a Loop will be. */
static sinter_status append(const repeat *r, uint32_t i, uint64_t iteration)
{
    context *c = r->c;
    const uint32_t out = r->out[r->carried + i];
    if (!out) return SINTER_OK;
    part from, to = { .is_on_device = is_on_device(c, out) };
    TRY(current_part(c, r->result[r->skip + r->carried + i], &from));
    const engine_value *x = context_value(c, out);
    const engine_storage *s = context_storage(c, x->storage);
    if (from.v.rank + 1 != x->rank || sinter_dtype_bits(from.v.dtype) < 8)
        return FAIL(&c->e, INVALID_MODEL, "a slice of rank %u is appended to a result of rank %u", from.v.rank,
                    x->rank);
    if (!iteration) {
        for (uint32_t k = 0; k < from.v.rank; k++)
            if (binds(c, r->step, x->dim[k + 1]))
                TRY(context_bind_symbol(c, r->step, x->dim[k + 1], from.v.dim[k], step_name(c, r->step)));
        context_evaluate(c);
    }
    for (uint32_t k = 0; k < from.v.rank; k++)
        if (c->now->dim[x->dim[k + 1]] != from.v.dim[k])
            return FAIL(&c->e, INVALID_MODEL, "the slices of '%s' differ in shape: %lld and %lld elements on axis %u",
                        step_name(c, r->step), (long long)from.v.dim[k], (long long)c->now->dim[x->dim[k + 1]], k);
    const size_t size = view_bytes(&from.v), wanted = size_mul(size, iteration + 1);
    if (s->kind == STORAGE_SLAB ? wanted > s->bound : s->kind != STORAGE_GROWN)
        return FAIL(&c->e, INVALID_MODEL, "the slices of '%s' need %zu bytes, planned were %llu", step_name(c, r->step),
                    wanted, (unsigned long long)s->bound);
    if (s->kind == STORAGE_GROWN) TRY(context_ensure(c, x->storage, wanted, true));
    if (!view_init(&to.v, from.v.dtype, from.v.rank, from.v.dim, (uint8_t *)c->base[x->storage] + size * iteration))
        return FAIL(&c->e, NO_MEMORY, "a result is too large");
    return copy(c, &to, &from, step_name(c, r->step));
}

/* A scanned output's final dims: `count` slices along `axis`. Sizes that only an iteration could tell are 0. */
static sinter_status finish_scanned(const repeat *r, uint32_t i, uint32_t axis, uint64_t count)
{
    context *c = r->c;
    const uint32_t out = r->out[r->carried + i];
    if (!out) return SINTER_OK;
    const engine_value *x = context_value(c, out);
    if (axis >= x->rank) return FAIL(&c->e, INVALID_MODEL, "scanned output %u has no axis %u", i, axis);
    for (uint32_t k = 0; k < x->rank; k++)
        if (binds(c, r->step, x->dim[k]) && (k == axis || count == 0))
            TRY(context_bind_symbol(c, r->step, x->dim[k], k == axis ? (int64_t)count : 0, step_name(c, r->step)));
    context_evaluate(c);
    if (c->now->dim[x->dim[axis]] != (int64_t)count)
        return FAIL(&c->e, INVALID_MODEL, "'%s' ran %llu times, its result is for %lld", step_name(c, r->step),
                    (unsigned long long)count, (long long)c->now->dim[x->dim[axis]]);
    view v;
    return current(c, out, &v);
}

/* How often a Loop runs at most. Absent: as often as its condition says. */
static sinter_status trip_count(const repeat *r, uint64_t *out)
{
    context *c = r->c;
    view x;
    *out = UINT64_MAX;
    if (!r->in[0]) return SINTER_OK;
    TRY(current(c, r->in[0], &x));
    if (view_count(&x) != 1)
        return FAIL(&c->e, INVALID_MODEL, "a trip count has %lld elements, expected 1", (long long)view_count(&x));
    TRY(context_before_host(c));
    const int64_t wanted = view_load_i64(&x, 0);
    *out = wanted > 0 ? (uint64_t)wanted : 0;
    return SINTER_OK;
}

static sinter_status run_loop(context *c, uint32_t step)
{
    const attrs_loop *attrs = context_code(c, step)->problem->attrs;
    const repeat r = repeat_of(c, step, attrs->carried, 1);
    const uint64_t limit = c->e.limits.loop_max;
    uint64_t trip, count = 0;
    bool more = true;
    TRY(trip_count(&r, &trip));
    if (r.in[1]) TRY(read_bool(c, r.in[1], &more));
    TRY(start_carried(&r, 2));
    for (; more && count < trip; count++) {
        if (count == limit)
            return FAIL(&c->e, UNSUPPORTED, "a loop passed the limit loop_max, %llu iterations",
                        (unsigned long long)limit);
        TRY(write_scalar(c, r.param[0], (int64_t)count));
        TRY(write_scalar(c, r.param[1], more));
        TRY(context_run_region(c, r.s->region[0]));
        TRY(read_bool(c, r.result[0], &more));
        for (uint32_t i = 0; i < r.scanned_out; i++) TRY(append(&r, i, count));
        TRY(next_carried(&r, 2));
    }
    TRY(finish_carried(&r, 2));
    for (uint32_t i = 0; i < r.scanned_out; i++) TRY(finish_scanned(&r, i, 0, count));
    return SINTER_OK;
}

/* ---- scan ---- */

static int64_t listed(const attr_ints *list, uint32_t i)
{
    return i < list->count ? list->at[i] : 0;
}

/* Slice `at` of `whole` along `axis`. */
static view slice_of(const view *whole, uint32_t axis, int64_t at)
{
    view v = { .dtype = whole->dtype, .rank = whole->rank - 1 };
    for (uint32_t i = 0, k = 0; i < whole->rank; i++) {
        if (i == axis) continue;
        v.dim[k] = whole->dim[i];
        v.stride[k++] = whole->stride[i];
    }
    /* The strides of what is empty are never taken, and may be any number. */
    const int64_t skipped = view_count(whole) ? at * whole->stride[axis] : 0;
    v.data = (uint8_t *)whole->data + skipped * (int64_t)(sinter_dtype_bits(whole->dtype) / 8);
    return v;
}

static sinter_status scan_in(const repeat *r, const attrs_scan *a, uint32_t i, int64_t iteration, int64_t trip)
{
    context *c = r->c;
    view whole;
    if (!r->in[r->carried + i]) return FAIL(&c->e, INVALID_MODEL, "scanned input %u is missing", i);
    TRY(current(c, r->in[r->carried + i], &whole));
    const int64_t axis = listed(&a->in_axis, i);
    if (axis < 0 || axis >= (int64_t)whole.rank || sinter_dtype_bits(whole.dtype) < 8)
        return FAIL(&c->e, INVALID_MODEL, "scanned input %u has no axis %lld", i, (long long)axis);
    if (whole.dim[axis] != trip)
        return FAIL(&c->e, INVALID_MODEL, "scanned input %u has %lld slices, the first has %lld", i,
                    (long long)whole.dim[axis], (long long)trip);
    if (iteration == trip) return SINTER_OK;
    const part slice = {
        .v = slice_of(&whole, (uint32_t)axis, listed(&a->in_reverse, i) ? trip - 1 - iteration : iteration),
        .is_on_device = is_on_device(c, r->in[r->carried + i]),
    };
    return assign(c, r->step, r->param[r->carried + i], &slice);
}

static sinter_status scan_out(const repeat *r, const attrs_scan *a, uint32_t i, int64_t iteration, int64_t trip)
{
    context *c = r->c;
    const uint32_t out = r->out[r->carried + i];
    if (!out) return SINTER_OK;
    view whole;
    part from;
    TRY(current_part(c, r->result[r->carried + i], &from));
    const int64_t axis = listed(&a->out_axis, i);
    if (axis < 0 || axis > (int64_t)from.v.rank || from.v.rank >= SINTER_RANK_MAX ||
        sinter_dtype_bits(from.v.dtype) < 8)
        return FAIL(&c->e, INVALID_MODEL, "scanned output %u has no axis %lld", i, (long long)axis);
    int64_t dim_at[SINTER_RANK_MAX];
    for (uint32_t k = 0, n = 0; k < from.v.rank + 1; k++) dim_at[k] = k == (uint32_t)axis ? trip : from.v.dim[n++];
    if (iteration == 0) TRY(bind_dims(c, r->step, out, dim_at, from.v.rank + 1));
    TRY(current(c, out, &whole));
    for (uint32_t k = 0; k < whole.rank;
         k++) /* in each iteration: the body may have changed what the sizes are made of */
        if (whole.rank != from.v.rank + 1 || whole.dim[k] != dim_at[k])
            return FAIL(&c->e, INVALID_MODEL, "the slices of '%s' differ in shape", step_name(c, r->step));
    const part slice = {
        .v = slice_of(&whole, (uint32_t)axis, listed(&a->out_reverse, i) ? trip - 1 - iteration : iteration),
        .is_on_device = is_on_device(c, out),
    };
    return copy(c, &slice, &from, step_name(c, r->step));
}

static sinter_status run_scan(context *c, uint32_t step)
{
    const attrs_scan *a = context_code(c, step)->problem->attrs;
    const repeat r = repeat_of(c, step, a->carried, 0);
    const uint32_t scanned = (uint32_t)a->scanned;
    int64_t trip = 0;
    if (scanned && r.in[r.carried]) {
        view whole;
        TRY(current(c, r.in[r.carried], &whole));
        const int64_t axis = listed(&a->in_axis, 0);
        if (axis >= 0 && axis < (int64_t)whole.rank) trip = whole.dim[axis];
    }
    TRY(start_carried(&r, 0));
    for (uint32_t i = 0; i < scanned; i++) TRY(scan_in(&r, a, i, trip, trip));
    const uint64_t limit = c->e.limits.loop_max; /* slices without elements take no memory: there may be any number */
    if ((uint64_t)trip > limit)
        return FAIL(&c->e, UNSUPPORTED, "a scan over %lld slices passes the limit loop_max, %llu iterations",
                    (long long)trip, (unsigned long long)limit);
    for (int64_t k = 0; k < trip; k++) {
        for (uint32_t i = 0; i < scanned; i++) TRY(scan_in(&r, a, i, k, trip));
        TRY(context_run_region(c, r.s->region[0]));
        for (uint32_t i = 0; i < r.scanned_out; i++) TRY(scan_out(&r, a, i, k, trip));
        TRY(next_carried(&r, 0));
    }
    TRY(finish_carried(&r, 0));
    for (uint32_t i = 0; i < r.scanned_out && trip == 0; i++)
        TRY(finish_scanned(&r, i, (uint32_t)listed(&a->out_axis, i), 0));
    return SINTER_OK;
}

sinter_status context_run_call(context *c, uint32_t step)
{
    const step_kind kind = context_step(c, step)->kind;
    return kind == STEP_IF ? run_if(c, step) : kind == STEP_LOOP ? run_loop(c, step) : run_scan(c, step);
}
