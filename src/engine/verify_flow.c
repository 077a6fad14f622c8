/* SPDX-License-Identifier: Apache-2.0 */
/* verify_flow.c - is every byte written before it is read, and still there when it is?
 *
 * The steps of a profile are walked once, in order, with the sizes of one shape. Each storage knows which of its bits
 * were written (core/cover.h). Writing to a part of the slab ends all other storages there. Branches are walked one
 * after the other from the same state, and what either ends has ended afterwards. A body is walked once; what it reads
 * from outside has to be there for the next iteration too. All of this takes n log n time. */
#include "engine/flow.h"

#include "core/cover.h"

#include <string.h>

#define BAD(e, ...) FAIL(e, INVALID_MODEL, __VA_ARGS__)

#define NEVER UINT64_MAX

/* Pairs of boxes: about a second. */
static const uint64_t work_max = (uint64_t)1 << 27;

/* A value was written where another that had been written or read lay. */
typedef struct overwrite {
    cover_box box;
    uint64_t when;
    uint32_t value, step;
} overwrite;

/* What is known of a storage. */
typedef struct holder {
    bool is_alive;     /* something was written, and nothing else since at the same place */
    bool is_whole;     /* all of it counts as written: the caller's, weights, and what has no size yet */
    uint32_t ended_by; /* the step that wrote at its place; NOBODY */
    uint64_t born;
    uint32_t scope; /* the innermost scope that keeps its state from before */
    uint32_t noted; /* the scope whose list of reads has it */
    cover_set written;
    VEC(overwrite) over;
} holder;

typedef struct kept {
    uint32_t storage;
    holder before;
} kept;

typedef struct kept_value {
    uint32_t value;
    uint64_t before;
} kept_value;

/* A branch or a body: what its storages were before, and which of those outside it reads. */
typedef struct scope {
    struct scope *outer;
    uint32_t id;
    bool repeats;
    uint64_t begin;
    VEC(kept) kept;
    VEC(kept_value) value; /* what it wrote */
    VEC(uint32_t) read;
    VEC(uint32_t) ended; /* storages from outside that it ended */
} scope;

typedef struct flow {
    env *e;
    const engine *g;
    const engine_profile *p;
    const int64_t *dim;
    arena *a;
    holder *holder; /* by storage */
    uint64_t *seen; /* by value: when it was written or read last */
    uint64_t *made; /* by value: when it was written last; NEVER: it will be; 0: it is a view of what others write */
    uint64_t now, work;
    uint32_t scopes, step; /* step: the one that is walked */
    scope *inner;
    flow_places places;
} flow;

static const engine_value *value_at(const flow *f, uint32_t v)
{
    return &f->g->value[f->p->value_first + v];
}
static const engine_storage *storage_at(const flow *f, uint32_t s)
{
    return &f->g->storage[f->p->storage_first + s];
}
static const engine_step *step_at(const flow *f, uint32_t s)
{
    return &f->g->step[f->p->step_first + s];
}
static const char *name_of(const flow *f, uint32_t v)
{
    return engine_text(f->g, value_at(f, v)->name);
}

/* ---- scopes ---- */

static void scope_begin(flow *f, scope *s, bool repeats)
{
    *s = (scope){ .outer = f->inner, .id = ++f->scopes, .repeats = repeats, .begin = ++f->now };
    f->inner = s;
}

/* Before a storage changes: the innermost scope keeps what it was. The set is taken away, and where it
 * goes on, a copy takes its place. */
static sinter_status keep(flow *f, uint32_t storage, bool goes_on)
{
    holder *h = &f->holder[storage];
    scope *s = f->inner;
    if (!s || h->scope == s->id) return SINTER_OK;
    kept *k = VEC_PUSH(f->a, &s->kept);
    if (!k) return FAIL_MEMORY(f->e, "checking a plan");
    *k = (kept){ .storage = storage, .before = *h };
    h->scope = s->id;
    h->written = (cover_set){ .a = f->a };
    for (uint32_t i = 0; goes_on && h->is_alive && i < k->before.written.box.count; i++)
        if (!cover_add(&h->written, &k->before.written.box.at[i])) return FAIL_MEMORY(f->e, "checking a plan");
    return SINTER_OK;
}

static sinter_status end_storage(flow *f, uint32_t storage, uint32_t by)
{
    holder *h = &f->holder[storage];
    TRY(keep(f, storage, false));
    flow_place_set(&f->places, storage, false);
    h->is_alive = h->is_whole = false;
    h->ended_by = by;
    h->written.box.count = 0;
    return SINTER_OK;
}

/* What was there before is there again, but for what the scope ended; that is put on the list. */
static sinter_status scope_restore(flow *f, scope *s)
{
    for (uint32_t i = s->value.count; i-- > 0;) f->made[s->value.at[i].value] = s->value.at[i].before;
    for (uint32_t i = 0; i < s->kept.count; i++) flow_place_set(&f->places, s->kept.at[i].storage, false);
    for (uint32_t i = 0; i < s->kept.count; i++) {
        const kept *k = &s->kept.at[i];
        holder *h = &f->holder[k->storage];
        const holder after = *h;
        *h = k->before;
        h->over = after.over;
        flow_place_set(&f->places, k->storage, h->is_alive);
        if (!h->is_alive || (after.is_alive && after.born == h->born)) continue;
        uint32_t *ended = VEC_PUSH(f->a, &s->ended);
        if (!ended) return FAIL_MEMORY(f->e, "checking a plan");
        *ended = k->storage;
        h->ended_by = after.is_alive ? f->step : after.ended_by;
    }
    f->inner = s->outer;
    return SINTER_OK;
}

static sinter_status end_all(flow *f, const scope *s)
{
    for (uint32_t i = 0; i < s->ended.count; i++)
        if (f->holder[s->ended.at[i]].is_alive) TRY(end_storage(f, s->ended.at[i], f->holder[s->ended.at[i]].ended_by));
    return SINTER_OK;
}

/* ---- reads and writes ---- */

/* What the value covers. False: nothing, or (wild) it has no sensible size in this shape. Such a branch is not taken,
 * or the executor refuses it. */
static bool box_of(const flow *f, uint32_t v, cover_box *out, bool *is_wild)
{
    const engine_value *x = value_at(f, v);
    const engine_storage *s = storage_at(f, x->storage);
    const int64_t bits = sinter_dtype_bits((sinter_dtype)x->dtype), most = INT64_MAX / 64;
    int64_t dim_at[SINTER_RANK_MAX], stride[SINTER_RANK_MAX], low = f->dim[x->offset], high = low, span;
    bool is_empty = false;
    *is_wild = true;
    for (uint32_t i = 0; i < x->rank; i++) {
        dim_at[i] = f->dim[x->dim[i]];
        stride[i] = f->dim[x->stride[i]];
        if (dim_at[i] < 0) return false;
        is_empty = is_empty || dim_at[i] == 0;
    }
    *is_wild = false;
    if (is_empty) return false;
    *is_wild = true;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (dim_at[i] == 1) continue;
        if (!i64_mul(dim_at[i] - 1, stride[i], &span) || !i64_add(span < 0 ? low : high, span, span < 0 ? &low : &high))
            return false;
    }
    if (low < 0 || high > most) return false;
    const bool has_bound = s->kind == STORAGE_SLAB || s->kind == STORAGE_WEIGHT || s->kind == STORAGE_STATE;
    const uint64_t wanted = (uint64_t)((high + 1) * bits + 7) / 8;
    if (has_bound && wanted > s->bound) return false;
    /* These sizes do not occur together: binding.c refuses a value that leaves what its storage has for them. */
    const int64_t real = s->kind == STORAGE_SLAB ? f->dim[s->size_dim] : -1;
    if (real >= 0 && wanted > (uint64_t)real) return false;
    *is_wild = false;
    return cover_box_of((uint32_t)bits, x->rank, dim_at, stride, f->dim[x->offset], out);
}

static sinter_status no_source(const flow *f, uint32_t v)
{
    const holder *h = &f->holder[value_at(f, v)->storage];
    const char *by = h->ended_by < f->p->step_count ? engine_text(f->g, step_at(f, h->ended_by)->name) : NULL;
    if (by)
        return BAD(f->e, "value '%s' is read after step %u '%s' wrote at its place", name_of(f, v), h->ended_by, by);
    return BAD(f->e, "value '%s' is read, and no step has written it", name_of(f, v));
}

/* A part whose place, or whose storage's size, data decides: the sizes of this walk need not be ones that occur
 * together. The executor checks that it lies inside what the storage holds. */
static bool is_late_part(const flow *f, uint32_t v, const cover_box *box)
{
    const engine_value *x = value_at(f, v);
    const int64_t bytes = f->dim[storage_at(f, x->storage)->size_dim];
    const bool is_late = f->g->value_late[f->p->value_first + v];
    return is_late && (box->at || box->levels || box->run / 8 != bytes);
}

/* A body's next iteration reads this again. */
static sinter_status note_read(flow *f, uint32_t storage)
{
    holder *h = &f->holder[storage];
    scope *s = f->inner;
    while (s && !s->repeats) s = s->outer;
    if (!s || h->noted == s->id || h->born > s->begin) return SINTER_OK;
    h->noted = s->id;
    uint32_t *read = VEC_PUSH(f->a, &s->read);
    if (!read) return FAIL_MEMORY(f->e, "checking a plan");
    *read = storage;
    return SINTER_OK;
}

static bool is_zero(const flow *f, uint32_t d)
{
    return f->g->dim[d].kind == DIM_CONST && f->g->dim[d].value == 0;
}

/* No shape gives this storage a byte: the executor refuses every value that has an element there. */
static bool has_no_room(const flow *f, const engine_storage *s)
{
    if (s->kind == STORAGE_SLAB) return is_zero(f, s->size_dim);
    if (s->kind != STORAGE_OUTPUT) return false;
    bool is_empty = false;
    for (uint32_t i = 0; i < f->g->io[s->at].rank; i++) is_empty = is_empty || is_zero(f, f->g->io[s->at].dim[i]);
    return is_empty;
}

/* In every shape: a size is the number 0, or the storage holds nothing. */
static bool is_empty_always(const flow *f, uint32_t v)
{
    const engine_value *x = value_at(f, v);
    for (uint32_t i = 0; i < x->rank; i++)
        if (is_zero(f, x->dim[i])) return true;
    return has_no_room(f, storage_at(f, x->storage));
}

static sinter_status read_value(flow *f, uint32_t v)
{
    cover_box box;
    bool is_wild;
    if (!v) return SINTER_OK;
    const uint32_t storage = value_at(f, v)->storage;
    const uint64_t seen = f->seen[v];
    holder *h = &f->holder[storage];
    f->seen[v] = ++f->now;
    const bool has_bits = box_of(f, v, &box, &is_wild);
    if ((h->is_whole && !h->is_alive) || is_empty_always(f, v)) return SINTER_OK; /* a weight, or the caller's */
    /* No size matters for these two: they hold for all shapes. */
    if (!h->is_alive) return no_source(f, v);
    if (f->made[v] == NEVER || (f->made[v] && f->made[v] < h->born))
        return BAD(f->e, "value '%s' is read before the step that writes it", name_of(f, v));
    if (!has_bits || h->is_whole) return note_read(f, storage);
    if (f->work > work_max) return BAD(f->e, "the parts of storages are too many to follow");
    if (!cover_has(&h->written, &box, &f->work) && !is_late_part(f, v, &box))
        return BAD(f->e, "value '%s' is read, and no step has written all of it", name_of(f, v));
    for (uint32_t i = h->over.count; seen >= h->born && i-- > 0 && h->over.at[i].when > seen;)
        if (h->over.at[i].value != v && cover_boxes_touch(&h->over.at[i].box, &box))
            return BAD(f->e, "value '%s' is read after step %u '%s' wrote over it", name_of(f, v), h->over.at[i].step,
                       engine_text(f->g, step_at(f, h->over.at[i].step)->name));
    return note_read(f, storage);
}

/* All other storages where `storage` lies have ended. */
static sinter_status end_others(flow *f, uint32_t storage)
{
    for (uint32_t other; (other = flow_place_other(&f->places, storage)) != NOBODY;)
        TRY(end_storage(f, other, f->step));
    flow_place_set(&f->places, storage, true);
    return SINTER_OK;
}

static sinter_status make_value(flow *f, uint32_t v)
{
    kept_value *k = f->inner ? VEC_PUSH(f->a, &f->inner->value) : NULL;
    if (f->inner && !k) return FAIL_MEMORY(f->e, "checking a plan");
    if (k) *k = (kept_value){ .value = v, .before = f->made[v] };
    f->seen[v] = f->made[v] = ++f->now;
    return SINTER_OK;
}

static sinter_status write_value(flow *f, uint32_t v)
{
    cover_box box;
    bool is_wild;
    if (!v) return SINTER_OK;
    const uint32_t storage = value_at(f, v)->storage;
    holder *h = &f->holder[storage];
    const bool has_bits = box_of(f, v, &box, &is_wild);
    TRY(keep(f, storage, true));
    TRY(end_others(f, storage));
    TRY(make_value(f, v));
    if (!h->is_alive) {
        h->is_alive = true;
        h->born = f->now;
        h->written.box.count = 0;
        h->over.count = 0;
    }
    h->is_whole = h->is_whole || is_wild;
    if (!has_bits) return SINTER_OK;
    if (f->work < work_max && cover_touches(&h->written, &box, &f->work)) {
        overwrite *o = VEC_PUSH(f->a, &h->over);
        if (!o) return FAIL_MEMORY(f->e, "checking a plan");
        *o = (overwrite){ .box = box, .when = f->now, .value = v, .step = f->step };
    }
    return cover_add(&h->written, &box) ? SINTER_OK : FAIL_MEMORY(f->e, "checking a plan");
}

static sinter_status read_values(flow *f, uint32_t at, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) TRY(read_value(f, f->g->arg[at + i]));
    return SINTER_OK;
}

/* ---- regions ---- */

static sinter_status walk(flow *f, uint32_t region);

/* Reads each of `from` and writes what it is copied to. */
static sinter_status copy_values(flow *f, const uint32_t *from, const uint32_t *to, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        TRY(read_value(f, from[i]));
        TRY(write_value(f, to[i]));
    }
    return SINTER_OK;
}

static sinter_status write_values(flow *f, const uint32_t *to, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) TRY(write_value(f, to[i]));
    return SINTER_OK;
}

static sinter_status walk_if(flow *f, const engine_step *s)
{
    const uint32_t step = f->step;
    const uint32_t *out = f->g->arg + s->out_at;
    scope branch[2];
    TRY(read_value(f, f->g->arg[s->in_at]));
    for (uint32_t k = 0; k < 2; k++) {
        const engine_region *r = &f->g->region[f->p->region_first + s->region[k]];
        scope_begin(f, &branch[k], false);
        TRY(walk(f, s->region[k]));
        f->step = step;
        TRY(copy_values(f, f->g->arg + r->result_at, out, s->out_count));
        TRY(scope_restore(f, &branch[k]));
    }
    for (uint32_t k = 0; k < 2; k++) TRY(end_all(f, &branch[k]));
    return write_values(f, out, s->out_count);
}

/* What the body has read from outside must be as it was. */
static sinter_status check_repeats(flow *f, const scope *s)
{
    for (uint32_t i = 0; i < s->read.count; i++) {
        const uint32_t storage = s->read.at[i];
        const holder *h = &f->holder[storage];
        const overwrite *last = h->over.count ? &h->over.at[h->over.count - 1] : NULL;
        const uint32_t by =
            h->is_alive && h->born <= s->begin ? (last && last->when > s->begin ? last->step : NOBODY) : h->ended_by;
        if (h->is_alive && h->born <= s->begin && by == NOBODY) continue;
        return BAD(f->e, "step %u '%s' writes over what the next iteration reads", by < f->p->step_count ? by : 0,
                   by < f->p->step_count ? engine_text(f->g, step_at(f, by)->name) : "");
    }
    return SINTER_OK;
}

static sinter_status repeat_ends(flow *f, scope *s)
{
    TRY(check_repeats(f, s));
    TRY(scope_restore(f, s));
    for (uint32_t i = 0; i < s->read.count; i++) TRY(note_read(f, s->read.at[i]));
    return end_all(f, s);
}

/* Loop and Scan: `own` inputs have parameters, of which the carried ones begin at `first`; skip: results before theirs.
 */
static sinter_status walk_repeat(flow *f, const engine_step *s, uint32_t first, uint32_t carried, uint32_t own,
                                 uint32_t skip)
{
    const uint32_t step = f->step;
    const engine_region *r = &f->g->region[f->p->region_first + s->region[0]];
    const uint32_t *in = f->g->arg + s->in_at, *out = f->g->arg + s->out_at, *param = f->g->arg + r->param_at,
                   *result = f->g->arg + r->result_at;
    scope body;
    for (uint32_t i = 0; i < first; i++) TRY(read_value(f, in[i]));
    scope_begin(f, &body, true);
    TRY(copy_values(f, in + first, param + first, carried));
    /* Slices are collected while the body runs again. */
    TRY(write_values(f, out + carried, s->out_count - carried));
    TRY(write_values(f, param, first));
    for (uint32_t i = first + carried; i < own; i++) {
        TRY(read_value(f, in[i]));
        TRY(write_value(f, param[i]));
    }
    TRY(walk(f, s->region[0]));
    f->step = step;
    if (skip) TRY(read_value(f, result[0]));
    for (uint32_t i = carried; i < s->out_count; i++) {
        TRY(read_value(f, result[skip + i]));
        TRY(read_value(f, out[i]));
    }
    TRY(copy_values(f, result + skip, param + first, carried));
    for (uint32_t i = first + carried; i < own; i++) TRY(read_value(f, in[i]));
    TRY(copy_values(f, param + first, out, carried));
    for (uint32_t i = carried; i < s->out_count; i++) TRY(read_value(f, out[i]));
    TRY(repeat_ends(f, &body));
    return write_values(f, out, s->out_count);
}

static sinter_status walk_step(flow *f, uint32_t step)
{
    const engine_step *s = step_at(f, step);
    const problem *p = f->g->code[f->p->step_first + step].problem;
    f->step = step;
    switch (s->kind) {
    case STEP_IF: return walk_if(f, s);
    case STEP_LOOP: {
        const uint32_t carried = (uint32_t)((const attrs_loop *)p->attrs)->carried;
        return walk_repeat(f, s, 2, carried, 2 + carried, 1);
    }
    case STEP_SCAN: {
        const attrs_scan *a = p->attrs;
        return walk_repeat(f, s, 0, (uint32_t)a->carried, (uint32_t)(a->carried + a->scanned), 0);
    }
    default: break;
    }
    TRY(read_values(f, s->in_at, s->in_count));
    return write_values(f, f->g->arg + s->out_at, s->out_count);
}

static sinter_status walk(flow *f, uint32_t region)
{
    const engine_region *r = &f->g->region[f->p->region_first + region];
    for (uint32_t i = 0; i < r->step_count; i++)
        TRY(NOTE(f->e, walk_step(f, r->step_at + i), "following the data to step %u '%s'", r->step_at + i,
                 engine_text(f->g, step_at(f, r->step_at + i)->name)));
    return SINTER_OK;
}

/* A state was written by the run before. Who reads what that run left, reads it before a step writes there. */
static sinter_status begin_state(flow *f, uint32_t storage)
{
    cover_box box;
    holder *h = &f->holder[storage];
    const int64_t bits = 8 * (int64_t)storage_at(f, storage)->bound, stride = 1;
    h->is_alive = true;
    h->born = f->now;
    if (!bits || !cover_box_of(1, 1, &bits, &stride, 0, &box)) return SINTER_OK;
    return cover_add(&h->written, &box) ? SINTER_OK : FAIL_MEMORY(f->e, "checking a plan");
}

static sinter_status check(flow *f)
{
    f->holder = ARENA_NEW(f->a, holder, f->p->storage_count);
    f->seen = ARENA_NEW(f->a, uint64_t, f->p->value_count);
    f->made = ARENA_NEW(f->a, uint64_t, f->p->value_count);
    if (!f->holder || !f->seen || !f->made) return FAIL_MEMORY(f->e, "checking a plan");
    f->now = 1; /* before the first step */
    TRY(flow_places_init(&f->places, f->e, f->g, f->p, f->a));
    for (uint32_t i = 1; i < f->p->storage_count; i++) {
        const uint32_t kind = storage_at(f, i)->kind;
        f->holder[i] = (holder){ .ended_by = NOBODY, .written = { .a = f->a } };
        f->holder[i].is_whole = kind == STORAGE_WEIGHT || kind == STORAGE_INPUT || kind == STORAGE_ROWS;
        if (kind == STORAGE_STATE) TRY(begin_state(f, i));
    }
    for (uint32_t i = 1; i < f->p->value_count; i++)
        if (value_at(f, i)->flags & VALUE_IS_OLD) f->seen[i] = f->now;
    for (uint32_t i = 0; i < f->p->step_count; i++) {
        const engine_step *s = step_at(f, i);
        for (uint32_t k = 0; k < s->out_count; k++) f->made[f->g->arg[s->out_at + k]] = NEVER;
    }
    TRY(walk(f, 1));
    for (uint32_t i = f->g->input_count; i < f->g->io_count; i++)
        TRY(NOTE(f->e, read_value(f, f->g->arg[f->p->io_first + i]), "following the data to output '%s'",
                 engine_text(f->g, f->g->io[i].name)));
    return SINTER_OK;
}

sinter_status engine_check_flow(env *e, const engine *g, const engine_profile *p, arena *scratch, const int64_t *dim_at)
{
    const arena_mark mark = arena_save(scratch);
    flow f = { .e = e, .g = g, .p = p, .dim = dim_at, .a = scratch };
    const sinter_status s = check(&f);
    arena_rewind(scratch, mark);
    return s;
}
