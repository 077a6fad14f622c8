/* SPDX-License-Identifier: Apache-2.0 */
/* engine_mutate.c - see engine_mutate.h. */
#include "engine_mutate.h"

#include "core/storage.h"
#include "core/dim.h"
#include "engine/engine.h"
#include "sinter/tensor.h"
#include "test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef struct mutant {
    parts *p, *other;
    uint64_t *random;
    uint32_t profile;
    engine_profile *of;
} mutant;

static uint32_t pick(const mutant *m, uint64_t limit)
{
    return (uint32_t)test_below(m->random, limit);
}

static void choose_profile(mutant *m)
{
    m->profile = pick(m, parts_count(m->p, SECTION_PROFILES));
    m->of = parts_record(m->p, SECTION_PROFILES, m->profile);
}

static engine_value *value_at(const mutant *m, uint32_t v)
{
    return parts_record(m->p, SECTION_VALUES, m->of->value_first + v);
}
static engine_step *step_at(const mutant *m, uint32_t s)
{
    return parts_record(m->p, SECTION_STEPS, m->of->step_first + s);
}
/* A place of its own where an earlier change left an index out of range. */
static uint32_t *arg_at(const mutant *m, uint64_t i)
{
    static uint32_t nowhere;
    return i < parts_count(m->p, SECTION_ARGS) ? parts_record(m->p, SECTION_ARGS, (uint32_t)i) : &nowhere;
}
static uint32_t *operand_at(const mutant *m, const engine_step *s, uint32_t i)
{
    return arg_at(m, i < s->in_count ? (uint64_t)s->in_at + i : (uint64_t)s->out_at + i - s->in_count);
}
/* 1 .. count - 1, or 0 where there is none. */
static uint32_t any_value(const mutant *m)
{
    return m->of->value_count > 1 ? 1 + pick(m, m->of->value_count - 1) : 0;
}
static uint32_t any_storage(const mutant *m)
{
    return m->of->storage_count > 1 ? 1 + pick(m, m->of->storage_count - 1) : 0;
}

/* ---- numbers and expressions ---- */

static int64_t any_number(const mutant *m, int64_t now)
{
    const int64_t list[] = { 0,
                             1,
                             2,
                             3,
                             4,
                             5,
                             7,
                             8,
                             16,
                             63,
                             64,
                             65,
                             1000,
                             -1,
                             -2,
                             -4,
                             INT64_MIN,
                             INT64_MAX,
                             INT64_MAX / 2,
                             (int64_t)1 << 31,
                             (int64_t)1 << 32,
                             (int64_t)1 << 60,
                             (int64_t)((uint64_t)now + 1),
                             (int64_t)((uint64_t)now - 1),
                             (int64_t)((uint64_t)now * 2),
                             now / 2,
                             (int64_t)(0 - (uint64_t)now) };
    return list[pick(m, COUNT(list))];
}

static uint32_t new_dim(const mutant *m, uint32_t kind, uint32_t a, uint32_t b, int64_t value)
{
    const engine_dim d = { .kind = kind, .a = a, .b = b, .value = value };
    return parts_insert(m->p, SECTION_DIMS, parts_count(m->p, SECTION_DIMS), &d);
}

/* A symbol that no input names: late, or without anything that binds it. */
static uint32_t new_symbol(mutant *m, bool is_late)
{
    char name[24];
    const uint32_t count = parts_count(m->p, SECTION_SYMBOLS), profiles = parts_count(m->p, SECTION_PROFILES);
    (void)snprintf(name, sizeof name, "new%u", count);
    const engine_symbol s = { .name = parts_text(m->p, name), .is_late = is_late };
    (void)parts_insert(m->p, SECTION_SYMBOLS, count, &s);
    for (uint32_t i = 0; i < profiles; i++) {
        const engine_range r = { .min = 0, .opt = 2, .max = pick(m, 2) ? 64 : INT64_MAX, .divisor = 1 };
        (void)parts_insert(m->p, SECTION_RANGES, i * (count + 1) + count, &r);
    }
    return new_dim(m, DIM_SYMBOL, 0, 0, count);
}

static uint32_t any_symbol(mutant *m)
{
    const uint32_t count = parts_count(m->p, SECTION_SYMBOLS);
    if (!count || pick(m, 4) == 0) return new_symbol(m, pick(m, 4) > 0);
    return new_dim(m, DIM_SYMBOL, 0, 0, pick(m, count));
}

static uint32_t any_dim(mutant *m, uint32_t now)
{
    const uint32_t count = parts_count(m->p, SECTION_DIMS), a = pick(m, count), b = pick(m, count);
    switch (pick(m, 8)) {
    case 0: return new_dim(m, DIM_CONST, 0, 0, any_number(m, 0));
    case 1: return any_symbol(m);
    case 2: return new_dim(m, DIM_ADD + pick(m, DIM_KIND_COUNT - DIM_ADD), a, b, 0);
    case 3: return new_dim(m, DIM_ADD, now, new_dim(m, DIM_CONST, 0, 0, any_number(m, 0)), 0);
    case 4: return new_dim(m, DIM_MUL, now, new_dim(m, DIM_CONST, 0, 0, pick(m, 2) ? -1 : any_number(m, 1)), 0);
    default: return a;
    }
}

static void change_dims(mutant *m)
{
    const uint32_t count = parts_count(m->p, SECTION_DIMS);
    engine_dim *d = parts_record(m->p, SECTION_DIMS, pick(m, count));
    switch (pick(m, 4)) {
    case 0: d->kind = pick(m, DIM_KIND_COUNT + 1); break;
    case 1: d->a = pick(m, count); break;
    case 2: d->b = pick(m, count); break;
    default: d->value = any_number(m, d->value); break;
    }
}

static void change_symbol(mutant *m)
{
    const uint32_t count = parts_count(m->p, SECTION_SYMBOLS);
    if (!count) return;
    if (pick(m, 3) == 0) {
        engine_symbol *s = parts_record(m->p, SECTION_SYMBOLS, pick(m, count));
        s->is_late ^= 1;
        return;
    }
    engine_range *r = parts_record(m->p, SECTION_RANGES, pick(m, parts_count(m->p, SECTION_RANGES)));
    switch (pick(m, 5)) {
    case 0: r->min = 0; break;
    case 1: r->max = INT64_MAX; break;
    case 2: r->max = r->max < INT64_MAX / 4 ? r->max * 2 + 1 : r->max; break;
    case 3: r->divisor = any_number(m, r->divisor); break;
    default: r->opt = any_number(m, r->opt); break;
    }
}

/* ---- problem lines ---- */

typedef enum line_edit { EDIT_NUMBER, EDIT_ALL_NUMBERS, EDIT_WIDEN, EDIT_CHARACTER } line_edit;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The step gets a line of its own. from and to: of EDIT_ALL_NUMBERS; and the sizes that are widened (-1: all). */
static void edit_line(const mutant *m, engine_step *s, line_edit edit, int64_t from, int64_t to)
{
    enum { SIZE = 4096 };
    char out[SIZE + 128];
    const char *line = (const char *)m->p->at[SECTION_STRINGS].at + s->problem;
    const size_t length = strlen(line);
    if (length > SIZE / 4) return;
    size_t n = 0, numbers = 0;
    for (size_t i = 0; i < length; i++) numbers += is_digit(line[i]) && (i == 0 || !is_digit(line[i - 1]));
    size_t target = edit == EDIT_CHARACTER ? pick(m, length) : numbers ? pick(m, numbers) : SIZE;
    bool in_sizes = false;
    for (size_t i = 0; i < length && n < SIZE; i++) {
        if (line[i] == '[') in_sizes = i && (is_digit(line[i - 1]) || line[i - 1] == 'l');
        if (line[i] == ']') in_sizes = false;
        const bool begins = is_digit(line[i]) && (i == 0 || !is_digit(line[i - 1]));
        if (!begins) {
            static const char put[] = "0123456789-*.,()[]{}:;=@/x fiub_%\"+w";
            const bool is_target = edit == EDIT_CHARACTER && i == target;
            out[n++] = is_target ? put[pick(m, sizeof put - 1)] : line[i];
            continue;
        }
        char *end;
        const long long number = strtoll(line + i, &end, 10);
        const bool is_target = edit == EDIT_NUMBER && target-- == 0;
        const bool is_plain = in_sizes && line[i - 1] != '.' && line[i - 1] != '/' && line[i - 1] != '@' && *end != '.';
        if (is_target) n += (size_t)snprintf(out + n, 64, "%lld", (long long)any_number(m, number));
        else if (edit == EDIT_ALL_NUMBERS && number == from) n += (size_t)snprintf(out + n, 64, "%lld", (long long)to);
        else if (edit == EDIT_WIDEN && is_plain && (from < 0 || number == from))
            n += (size_t)snprintf(out + n, 64, "0..%lld/1@%lld", number > 1000 ? number : 1000, number);
        else n += (size_t)snprintf(out + n, 64, "%lld", number);
        i = (size_t)(end - line) - 1;
    }
    if (n >= SIZE) return;
    out[n] = 0;
    s->problem = parts_text(m->p, out);
}

static void change_line(mutant *m)
{
    const uint32_t count = parts_count(m->p, SECTION_STEPS);
    if (!count) return;
    engine_step *s = parts_record(m->p, SECTION_STEPS, pick(m, count));
    static const line_edit list[] = { EDIT_NUMBER, EDIT_NUMBER, EDIT_NUMBER, EDIT_CHARACTER, EDIT_WIDEN };
    edit_line(m, s, list[pick(m, COUNT(list))], -1, -1);
}

static void edit_all_lines(const mutant *m, line_edit edit, int64_t from, int64_t to)
{
    for (uint32_t i = 0; i < parts_count(m->p, SECTION_STEPS); i++)
        edit_line(m, parts_record(m->p, SECTION_STEPS, i), edit, from, to);
}

/* A constant that is small enough to be a size; 0: none was found. */
static uint32_t small_constant(const mutant *m, int64_t *value)
{
    for (int tries = 0; tries < 20; tries++) {
        const uint32_t i = pick(m, parts_count(m->p, SECTION_DIMS));
        const engine_dim *d = parts_record(m->p, SECTION_DIMS, i);
        if (d->kind == DIM_CONST && d->value >= 0 && d->value <= 64) return *value = d->value, i;
    }
    return 0;
}

/* Another size, wherever it stands. */
static void resize_everywhere(mutant *m)
{
    int64_t from;
    const uint32_t id = small_constant(m, &from);
    if (!id) return;
    const int64_t list[] = { 0, 1, from + 1, from * 2, from * 3, from + 64 }, to = list[pick(m, COUNT(list))];
    ((engine_dim *)parts_record(m->p, SECTION_DIMS, id))->value = to;
    edit_all_lines(m, EDIT_ALL_NUMBERS, from, to);
}

static void replace_in(uint32_t *at, uint32_t count, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < count; i++)
        if (at[i] == from) at[i] = to;
}

/* A size becomes an expression, wherever it stands. */
static void loosen_everywhere(mutant *m)
{
    int64_t value;
    const uint32_t from = small_constant(m, &value);
    if (!from) return;
    const uint32_t to = pick(m, 3) ? any_symbol(m) : any_dim(m, from);
    const bool with_strides = pick(m, 2), with_ios = pick(m, 3) > 0;
    for (uint32_t i = 0; i < parts_count(m->p, SECTION_VALUES); i++) {
        engine_value *v = parts_record(m->p, SECTION_VALUES, i);
        if (v->rank > SINTER_RANK_MAX) continue;
        replace_in(v->dim, v->rank, from, to);
        if (with_strides) replace_in(v->stride, v->rank, from, to);
    }
    for (uint32_t i = 0; with_ios && i < parts_count(m->p, SECTION_IOS); i++) {
        engine_io *io = parts_record(m->p, SECTION_IOS, i);
        if (io->rank <= SINTER_RANK_MAX) replace_in(io->dim, io->rank, from, to);
    }
    edit_all_lines(m, EDIT_WIDEN, value, 0);
}

static void widen_everywhere(mutant *m)
{
    edit_all_lines(m, EDIT_WIDEN, -1, 0);
}

/* One size of one value, and of what its steps state of it. */
static void loosen_value(mutant *m)
{
    const uint32_t v = any_value(m);
    if (!v) return;
    engine_value *x = value_at(m, v);
    if (!x->rank || x->rank > SINTER_RANK_MAX) return;
    const uint32_t axis = pick(m, x->rank), to = any_dim(m, x->dim[axis]);
    x = value_at(m, v);
    x->dim[axis] = to;
    for (uint32_t i = 0; i < m->of->step_count; i++) {
        engine_step *s = step_at(m, i);
        bool uses = false;
        for (uint32_t k = 0; k < s->in_count + s->out_count; k++) uses = uses || *operand_at(m, s, k) == v;
        if (uses) edit_line(m, s, EDIT_WIDEN, -1, 0);
    }
}

/* ---- values and storages ---- */

static void change_value(mutant *m)
{
    const uint32_t v = any_value(m);
    if (!v) return;
    engine_value now = *value_at(m, v);
    const uint32_t axis = now.rank && now.rank <= SINTER_RANK_MAX ? pick(m, now.rank) : 0,
                   other = now.rank && now.rank <= SINTER_RANK_MAX ? pick(m, now.rank) : 0;
    switch (pick(m, 9)) {
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
        uint32_t *arg = arg_at(m, pick(m, parts_count(m->p, SECTION_ARGS)));
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
        a = operand_at(m, s, pick(m, all));
        b = operand_at(m, s, pick(m, all));
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
        if (s->dim_count) *arg_at(m, (uint64_t)s->dim_at + pick(m, s->dim_count)) = any_dim(m, 1);
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
        if (r->result_count) *arg_at(m, (uint64_t)r->result_at + pick(m, r->result_count)) = any_value(m);
        break;
    default:
        if (r->param_count) *arg_at(m, (uint64_t)r->param_at + pick(m, r->param_count)) = any_value(m);
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
        const uint32_t to = any_dim(m, now.dim[axis]), v = *arg_at(m, (uint64_t)m->of->io_first + i);
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
    default: *arg_at(m, m->of->io_first) = any_value(m); break;
    }
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
        change_dims,       change_symbol,     change_symbol,     change_line,      change_line,     change_line,
        resize_everywhere, loosen_everywhere, loosen_everywhere, widen_everywhere, loosen_value,    loosen_value,
        change_value,      change_value,      change_value,      change_storage,   change_storage,  change_storage,
        add_value,         change_args,       change_args,       change_args,      change_step,     change_step,
        change_region,     change_region,     change_io,         change_profile,   change_anything,
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
