/* SPDX-License-Identifier: Apache-2.0 */
/* engine_mutate.c - see engine_mutate.h. Values, storages, steps, regions and all the rest; sizes: mutate_size.c. */
#include "engine_mutate.h"

#include "mutant.h"
#include "sinter/tensor.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void choose_profile(mutant *m)
{
    m->profile = pick(m, parts_count(m->p, SECTION_PROFILES));
    m->of = parts_record(m->p, SECTION_PROFILES, m->profile);
}

static uint32_t any_storage(const mutant *m)
{
    return m->of->storage_count > 1 ? 1 + pick(m, m->of->storage_count - 1) : 0;
}

/* ---- values and storages ---- */

static void change_value(mutant *m)
{
    const uint32_t v = any_value(m);
    if (!v) return;
    engine_value now = *value_at(m, v);
    const uint32_t axis = now.rank && now.rank <= SINTER_RANK_MAX ? pick(m, now.rank) : 0,
                   other = now.rank && now.rank <= SINTER_RANK_MAX ? pick(m, now.rank) : 0;
    switch (pick(m, 10)) {
    case 8: now.flags ^= 1u << pick(m, 3); break;
    case 0: now.dim[axis] = any_dim(m, now.dim[axis]); break;
    case 1: now.stride[axis] = any_dim(m, now.stride[axis]); break;
    case 2: now.offset = any_dim(m, now.offset); break;
    case 3: now.storage = any_storage(m); break;
    case 4: now.dtype = pick(m, SINTER_DTYPE_COUNT + 1); break;
    case 5: now.rank = pick(m, 10); break;
    case 6: { /* backwards */
        const uint32_t minus = new_dim(m, DIM_CONST, 0, 0, -1), less = new_dim(m, DIM_ADD, now.dim[axis], minus, 0);
        const uint32_t span = new_dim(m, DIM_MUL, less, now.stride[axis], 0);
        now.offset = new_dim(m, DIM_ADD, now.offset, span, 0);
        now.stride[axis] = new_dim(m, DIM_MUL, now.stride[axis], minus, 0);
        break;
    }
    case 7: { /* two axes change places */
        const uint32_t size = now.dim[axis], stride = now.stride[axis];
        now.dim[axis] = now.dim[other], now.stride[axis] = now.stride[other];
        now.dim[other] = size, now.stride[other] = stride;
        break;
    }
    default: now = *value_at(m, any_value(m)); break;
    }
    *value_at(m, v) = now;
}

static uint64_t any_size(const mutant *m, uint64_t now)
{
    const uint64_t list[] = { 0,       64,      128,     now + 64,        now - 64,          now / 2,
                              now * 2, now + 1, now - 1, UINT64_MAX - 63, (uint64_t)1 << 63, (uint64_t)1 << 20 };
    return list[pick(m, COUNT(list))];
}

static void change_storage(mutant *m)
{
    const uint32_t id = any_storage(m);
    if (!id) return;
    const engine_storage like =
        *(engine_storage *)parts_record(m->p, SECTION_STORAGES, m->of->storage_first + any_storage(m));
    engine_storage now = *(engine_storage *)parts_record(m->p, SECTION_STORAGES, m->of->storage_first + id);
    switch (pick(m, 8)) {
    case 0: now.kind = pick(m, STORAGE_KIND_COUNT + 1); break;
    case 1: now.at = like.at; break;
    case 2: now.at = any_size(m, now.at); break;
    case 3: now.bound = any_size(m, now.bound); break;
    case 4: now.size_dim = any_dim(m, now.size_dim); break;
    case 5: now.place = pick(m, 3); break;
    case 6: now.kind = STORAGE_GROWN; break;
    default: now = like; break;
    }
    *(engine_storage *)parts_record(m->p, SECTION_STORAGES, m->of->storage_first + id) = now;
}

/* A new value, seen like another or by other numbers, in the place of one that a step or region names. */
static void add_value(mutant *m)
{
    const uint32_t v = any_value(m);
    if (!v) return;
    engine_value now = *value_at(m, v);
    if (pick(m, 2)) { /* on a storage of its own */
        engine_storage s =
            *(engine_storage *)parts_record(m->p, SECTION_STORAGES, m->of->storage_first + any_storage(m));
        if (pick(m, 2)) s.kind = STORAGE_GROWN;
        parts_insert_in(m->p, SECTION_STORAGES, m->profile, &s);
        m->of = parts_record(m->p, SECTION_PROFILES, m->profile);
        now.storage = m->of->storage_count - 1;
    }
    parts_insert_in(m->p, SECTION_VALUES, m->profile, &now);
    m->of = parts_record(m->p, SECTION_PROFILES, m->profile);
    for (uint32_t tries = 0; tries < 50; tries++) {
        uint32_t *arg = mutant_arg(m, pick(m, parts_count(m->p, SECTION_ARGS)));
        if (*arg != v) continue;
        *arg = m->of->value_count - 1;
        return;
    }
}

/* ---- steps and regions ---- */

static void change_args(mutant *m)
{
    const uint32_t count = parts_count(m->p, SECTION_ARGS);
    if (!count) return;
    uint32_t *a = parts_record(m->p, SECTION_ARGS, pick(m, count)),
             *b = parts_record(m->p, SECTION_ARGS, pick(m, count));
    if (m->of->step_count && pick(m, 3)) { /* of one step */
        const engine_step *s = step_at(m, pick(m, m->of->step_count));
        const uint32_t all = s->in_count + s->out_count;
        if (!all) return;
        a = mutant_operand(m, s, pick(m, all));
        b = mutant_operand(m, s, pick(m, all));
    }
    const uint32_t old = *a;
    switch (pick(m, 4)) {
    case 0: *a = any_value(m); break;
    case 1: *a = *b; break;
    case 2: *a = *b, *b = old; break;
    default: *a = pick(m, 3) ? old ^ 1u : 0; break;
    }
}

static void change_step(mutant *m)
{
    if (!m->of->step_count) return;
    engine_step *s = step_at(m, pick(m, m->of->step_count)), *other = step_at(m, pick(m, m->of->step_count));
    const engine_step old = *s;
    switch (pick(m, 9)) {
    case 0: s->kind = pick(m, STEP_KIND_COUNT + 1); break;
    case 1: s->kernel = pick(m, parts_count(m->p, SECTION_KERNELS) + 2); break;
    case 2: s->problem = other->problem; break;
    case 3: *s = *other, *other = old; break;
    case 4: s->region[pick(m, 2)] = pick(m, m->of->region_count + 1); break;
    case 5: s->tactic[pick(m, 32)] = (uint8_t)(pick(m, 2) ? pick(m, 8) : pick(m, 256)); break;
    case 6:
        if (s->dim_count) *mutant_arg(m, (uint64_t)s->dim_at + pick(m, s->dim_count)) = any_dim(m, 1);
        break;
    case 7: {
        uint32_t *const field[] = { &s->in_at, &s->in_count, &s->out_at, &s->out_count, &s->dim_at, &s->dim_count };
        uint32_t *f = field[pick(m, COUNT(field))];
        *f += pick(m, 2) ? 1u : (uint32_t)-1;
        break;
    }
    default: *s = *other; break;
    }
}

static void change_region(mutant *m)
{
    if (m->of->region_count < 2) return;
    engine_region *r = parts_record(m->p, SECTION_REGIONS, m->of->region_first + 1 + pick(m, m->of->region_count - 1));
    engine_region *other =
        parts_record(m->p, SECTION_REGIONS, m->of->region_first + 1 + pick(m, m->of->region_count - 1));
    const engine_region old = *r;
    switch (pick(m, 6)) {
    case 0: /* a step goes from one region to the next */
        if (r->step_count) r->step_count--, other->step_at--, other->step_count++;
        break;
    case 1: *r = *other, *other = old; break;
    case 2: r->result_at = other->result_at; break;
    case 3: r->param_at = other->param_at; break;
    case 4:
        if (r->result_count) *mutant_arg(m, (uint64_t)r->result_at + pick(m, r->result_count)) = any_value(m);
        break;
    default:
        if (r->param_count) *mutant_arg(m, (uint64_t)r->param_at + pick(m, r->param_count)) = any_value(m);
        break;
    }
}

/* ---- the rest ---- */

static void change_io(mutant *m)
{
    if (!parts_count(m->p, SECTION_IOS)) return;
    const uint32_t i = pick(m, parts_count(m->p, SECTION_IOS));
    engine_io now = *(engine_io *)parts_record(m->p, SECTION_IOS, i);
    const uint32_t axis = now.rank && now.rank <= SINTER_RANK_MAX ? pick(m, now.rank) : 0;
    switch (pick(m, 5)) {
    case 0:
    case 1: { /* with the value that it has */
        const uint32_t to = any_dim(m, now.dim[axis]), v = *mutant_arg(m, (uint64_t)m->of->io_first + i);
        now.dim[axis] = to;
        if (v && v < m->of->value_count) value_at(m, v)->dim[axis] = to;
        break;
    }
    case 2: now.dtype = pick(m, SINTER_DTYPE_COUNT + 1); break;
    case 3: now.promise_size = pick(m, 64); break;
    default: now.rank = pick(m, 10); break;
    }
    *(engine_io *)parts_record(m->p, SECTION_IOS, i) = now;
}

static void change_profile(mutant *m)
{
    switch (pick(m, 4)) {
    case 0: m->of->order = pick(m, 4); break;
    case 1: m->of->slab_size = any_size(m, m->of->slab_size); break;
    case 2: m->of->host_slab_size = any_size(m, m->of->host_slab_size); break;
    default: *mutant_arg(m, m->of->io_first) = any_value(m); break;
    }
}

/* How many rows a run appends, and how many there may be. */
static void change_state(mutant *m)
{
    if (!parts_count(m->p, SECTION_STATE)) return;
    engine_state now = *(engine_state *)parts_record(m->p, SECTION_STATE, 0);
    if (pick(m, 2)) now.append = any_dim(m, now.append);
    else now.capacity = any_size(m, now.capacity);
    *(engine_state *)parts_record(m->p, SECTION_STATE, 0) = now;
}

/* A byte, a field of any record, a record too few or too many, a table of another engine. */
static void change_anything(mutant *m)
{
    const uint32_t kind = 1 + pick(m, SECTION_KIND_COUNT - 1), count = parts_count(m->p, kind);
    const size_t size = engine_record_size[kind];
    if (!count) return;
    uint8_t *record = parts_record(m->p, kind, pick(m, count));
    switch (pick(m, 5)) {
    case 0: record[pick(m, size)] = (uint8_t)test_random(m->random); break;
    case 1:
        if (size >= 4) {
            const uint32_t word = (uint32_t)any_number(m, 1);
            memcpy(record + pick(m, size / 4) * 4, &word, 4);
        }
        break;
    case 2: parts_remove(m->p, kind, pick(m, count)); break;
    case 3: (void)parts_insert(m->p, kind, pick(m, count), record); break;
    default:
        if (pick(m, 4)) break;
        free(m->p->at[kind].at);
        m->p->at[kind] = image_copy(m->other->at[kind].at, m->other->at[kind].size);
        break;
    }
}

image mutant_of(image seed, image other, uint64_t *random)
{
    static void (*const change[])(mutant *) = {
        change_dims,       change_symbol,     change_symbol,     change_line,      change_line,    change_line,
        resize_everywhere, loosen_everywhere, loosen_everywhere, widen_everywhere, loosen_value,   loosen_value,
        change_value,      change_value,      change_value,      change_storage,   change_storage, change_storage,
        add_value,         change_args,       change_args,       change_args,      change_step,    change_step,
        change_region,     change_region,     change_io,         change_profile,   change_state,   change_anything,
    };
    parts p = parts_of(seed), o = parts_of(other);
    mutant m = { .p = &p, .other = &o, .random = random };
    for (uint32_t n = 1 + pick(&m, 3); n; n--) {
        const uint32_t which = pick(&m, COUNT(change));
        const bool is_torn = !parts_count(&p, SECTION_PROFILES);
        if (is_torn) break;
        choose_profile(&m);
        change[which](&m);
        if (which == COUNT(change) - 1) break; /* ids may mean nothing now */
    }
    parts_free(&o);
    return parts_together(&p);
}
