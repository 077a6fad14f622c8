/* SPDX-License-Identifier: Apache-2.0 */
/* mutate_size.c - the sizes of an engine, changed: numbers, expressions, symbols, and the problem lines that state
 * them.
 */
#include "mutant.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A place of its own where an earlier change left an index out of range. */
uint32_t *mutant_arg(const mutant *m, uint64_t i)
{
    static uint32_t nowhere;
    return i < parts_count(m->p, SECTION_ARGS) ? parts_record(m->p, SECTION_ARGS, (uint32_t)i) : &nowhere;
}
uint32_t *mutant_operand(const mutant *m, const engine_step *s, uint32_t i)
{
    return mutant_arg(m, i < s->in_count ? (uint64_t)s->in_at + i : (uint64_t)s->out_at + i - s->in_count);
}
uint32_t any_value(const mutant *m)
{
    return m->of->value_count > 1 ? 1 + pick(m, m->of->value_count - 1) : 0;
}
/* ---- numbers and expressions ---- */

int64_t any_number(const mutant *m, int64_t now)
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

uint32_t new_dim(const mutant *m, uint32_t kind, uint32_t a, uint32_t b, int64_t value)
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

uint32_t any_dim(mutant *m, uint32_t now)
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

void change_dims(mutant *m)
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

void change_symbol(mutant *m)
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

void change_line(mutant *m)
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
void resize_everywhere(mutant *m)
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
void loosen_everywhere(mutant *m)
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

void widen_everywhere(mutant *m)
{
    edit_all_lines(m, EDIT_WIDEN, -1, 0);
}

/* One size of one value, and of what its steps state of it. */
void loosen_value(mutant *m)
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
        for (uint32_t k = 0; k < s->in_count + s->out_count; k++) uses = uses || *mutant_operand(m, s, k) == v;
        if (uses) edit_line(m, s, EDIT_WIDEN, -1, 0);
    }
}
