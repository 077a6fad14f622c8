/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - the trust boundary: every byte of an engine is checked once, in linear time, before anything is believed.
 *
 * In stages: structure (header, sections, checksums; here), references (every id in range, regions form a tree; here),
 * and meaning (problems parse, kernels take them, operands agree, results go only where writing is allowed;
 * verify_step.c). What depends on a shape (sizes, strides, bounds) the executor checks with real numbers each time a
 * shape is set. */
#include "engine/verify.h"

#include "base/hash.h"
#include "base/os.h"
#include "base/name_map.h"

#include <string.h>

#define BAD(e, ...) FAIL(e, INVALID_MODEL, __VA_ARGS__)

/* ---- structure ---- */

const size_t engine_record_size[SECTION_KIND_COUNT] = {
    [SECTION_STRINGS] = 1,
    [SECTION_DIMS] = sizeof(engine_dim),
    [SECTION_SYMBOLS] = sizeof(engine_symbol),
    [SECTION_RANGES] = sizeof(engine_range),
    [SECTION_IOS] = sizeof(engine_io),
    [SECTION_PROFILES] = sizeof(engine_profile),
    [SECTION_STORAGES] = sizeof(engine_storage),
    [SECTION_VALUES] = sizeof(engine_value),
    [SECTION_ARGS] = sizeof(uint32_t),
    [SECTION_REGIONS] = sizeof(engine_region),
    [SECTION_STEPS] = sizeof(engine_step),
    [SECTION_KERNELS] = sizeof(engine_kernel),
    [SECTION_RECIPES] = sizeof(engine_recipe),
    [SECTION_WEIGHTS] = 1,
    [SECTION_NOTES] = sizeof(engine_notes),
    [SECTION_CODE] = 1,
    [SECTION_INPUTS] = sizeof(engine_input),
    [SECTION_STATE] = sizeof(engine_state),
    [SECTION_DETAIL] = sizeof(engine_detail_record),
};
_Static_assert(sizeof(engine_dim) == sizeof(dim_node), "the shape program is evaluated where it lies");

/* The only range test: written so that no sum can wrap. */
static bool range_ok(uint64_t at, uint64_t size, uint64_t limit)
{
    return at <= limit && size <= limit - at;
}

/* What files are that are taken for engines, by their first bytes. */
static const struct {
    uint32_t at, length;
    const char *bytes, *what;
} mistaken[] = {
    { 0, 4, "ftrt", "an engine of TensorRT, which cannot be read: build an engine of its model" },
    { 0, 4, "PK\3\4", "an archive of PyTorch: export the model to ONNX, and build an engine of that" },
    { 4, 1, "{", "JSON behind its size, which exporters put before an engine: give the bytes behind both" },
    { 0, 1, "\x08", "an ONNX model: build an engine of it" },
};

static sinter_status no_engine(env *e, const engine *g)
{
    for (uint32_t i = 0; i < sizeof mistaken / sizeof *mistaken; i++)
        if (!memcmp(g->bytes + mistaken[i].at, mistaken[i].bytes, mistaken[i].length))
            return BAD(e, "this is no engine file: it begins as %s", mistaken[i].what);
    return BAD(e, "this is no engine file: it does not begin with the engine's mark");
}

static sinter_status check_header(env *e, const engine *g)
{
    if (g->size < sizeof(engine_header))
        return BAD(e, "%zu bytes are no engine, the header alone has %zu", g->size, sizeof(engine_header));
    const engine_header *h = (const engine_header *)g->bytes;
    if (memcmp(h->magic, ENGINE_MAGIC, sizeof h->magic) != 0) return no_engine(e, g);
    if (h->byte_order != 0x01020304) return FAIL(e, INCOMPATIBLE, "the engine was written with another byte order");
    if (h->major != ENGINE_MAJOR)
        return FAIL(e, INCOMPATIBLE, "the engine has format %u.%u, this library reads %d.x: build it again", h->major,
                    h->minor, ENGINE_MAJOR);
    if (h->header_size != sizeof *h) return BAD(e, "the header says %u bytes, expected %zu", h->header_size, sizeof *h);
    if (h->file_size != g->size)
        return BAD(e, "the file has %zu bytes, its header says %llu: it is cut or damaged", g->size,
                   (unsigned long long)h->file_size);
    if (h->section_count == 0 || h->section_count > ENGINE_SECTIONS_MAX)
        return BAD(e, "%u sections, expected 1 to %d", h->section_count, ENGINE_SECTIONS_MAX);
    if (!range_ok(sizeof *h, (uint64_t)h->section_count * sizeof(engine_section), g->size))
        return BAD(e, "the section table passes the end of the file");
    engine_header copy = *h;
    copy.header_sum = 0;
    const uint64_t sum = hash64(&copy, sizeof copy, 0);
    if (hash64(g->bytes + sizeof *h, h->section_count * sizeof(engine_section), sum) != h->header_sum)
        return BAD(e, "the header's checksum is wrong: the file is damaged");
    return SINTER_OK;
}

static bool is_zero(const uint8_t *at, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++)
        if (at[i]) return false;
    return true;
}

static uint64_t sum_of(const engine *g, const engine_section *s)
{
    enum { PART = 16 << 20 };
    const uint8_t *at = g->bytes + s->at;
    if (!g->is_mapped) return hash64(at, s->size, 0);
    hash64_parts sum;
    hash64_begin(&sum);
    for (uint64_t done = 0; done < s->size; done += PART) {
        const size_t size = s->size - done < PART ? (size_t)(s->size - done) : PART;
        hash64_add(&sum, at + done, size);
        os_file_forget(at + done, size);
    }
    return hash64_end(&sum);
}

static sinter_status check_sections(env *e, engine *g, const engine_section **found)
{
    const engine_header *h = g->header;
    const engine_section *s = (const engine_section *)(g->bytes + sizeof *h);
    uint64_t at = sizeof *h + h->section_count * sizeof *s;
    for (uint32_t i = 0; i < h->section_count; i++) {
        if (!range_ok(s[i].at, s[i].size, g->size) || s[i].at % ENGINE_ALIGN || s[i].at < at ||
            s[i].at - at >= ENGINE_ALIGN)
            return BAD(e, "section %u (kind %u) does not follow the one before it", i, s[i].kind);
        if (!is_zero(g->bytes + at, s[i].at - at)) return BAD(e, "the padding before section %u is not zero", i);
        at = s[i].at + s[i].size;
        if (sum_of(g, &s[i]) != s[i].sum)
            return BAD(e, "the checksum of section %u (kind %u) is wrong: the file is damaged", i, s[i].kind);
        if (s[i].kind == SECTION_NONE || s[i].kind >= SECTION_KIND_COUNT) {
            if (s[i].flags & SECTION_REQUIRED)
                return FAIL(e, INCOMPATIBLE, "section %u has kind %u, which only a newer library knows", i, s[i].kind);
            continue;
        }
        if (found[s[i].kind]) return BAD(e, "section kind %u occurs twice", s[i].kind);
        if (s[i].size % engine_record_size[s[i].kind] || s[i].size / engine_record_size[s[i].kind] > UINT32_MAX / 2)
            if (engine_record_size[s[i].kind] != 1 || s[i].kind == SECTION_STRINGS)
                return BAD(e, "section %u has %llu bytes, its records have %zu", i, (unsigned long long)s[i].size,
                           engine_record_size[s[i].kind]);
        found[s[i].kind] = &s[i];
    }
    if (g->size - at >= ENGINE_ALIGN || !is_zero(g->bytes + at, g->size - at))
        return BAD(e, "bytes follow the last section");
    for (uint32_t i = 1; i < SECTION_KIND_COUNT; i++)
        if (!found[i] && i != SECTION_CODE && i != SECTION_INPUTS && i != SECTION_STATE && i != SECTION_DETAIL)
            return BAD(e, "section kind %u is missing", i);
    return SINTER_OK;
}

static void point(engine *g, const engine_section *const *found)
{
#define POINT(kind, field, count_field)                                                                                \
    g->field = (const void *)(g->bytes + found[kind]->at);                                                             \
    g->count_field = (uint32_t)(found[kind]->size / engine_record_size[kind])
    POINT(SECTION_STRINGS, strings, string_size);
    POINT(SECTION_DIMS, dim, dim_count);
    POINT(SECTION_SYMBOLS, symbol, symbol_count);
    POINT(SECTION_IOS, io, io_count);
    POINT(SECTION_PROFILES, profile, profile_count);
    POINT(SECTION_STORAGES, storage, storage_count);
    POINT(SECTION_VALUES, value, value_count);
    POINT(SECTION_ARGS, arg, arg_count);
    POINT(SECTION_REGIONS, region, region_count);
    POINT(SECTION_STEPS, step, step_count);
    POINT(SECTION_KERNELS, kernel_ref, kernel_count);
    POINT(SECTION_RECIPES, recipe, recipe_count);
#undef POINT
    g->range = (const void *)(g->bytes + found[SECTION_RANGES]->at);
    g->weights = g->bytes + found[SECTION_WEIGHTS]->at;
    g->weights_size = found[SECTION_WEIGHTS]->size;
    g->notes = (const void *)(g->bytes + found[SECTION_NOTES]->at);
    if (found[SECTION_CODE]) {
        g->binary = g->bytes + found[SECTION_CODE]->at;
        g->binary_size = found[SECTION_CODE]->size;
    }
    if (found[SECTION_STATE] && found[SECTION_STATE]->size)
        g->state = (const void *)(g->bytes + found[SECTION_STATE]->at);
    if (found[SECTION_DETAIL] && found[SECTION_DETAIL]->size)
        g->detail = (const void *)(g->bytes + found[SECTION_DETAIL]->at);
    if (found[SECTION_INPUTS] && found[SECTION_INPUTS]->size) {
        g->input = (const void *)(g->bytes + found[SECTION_INPUTS]->at);
        g->input_records = (uint32_t)(found[SECTION_INPUTS]->size / sizeof(engine_input));
    }
}

/* ---- references ---- */

static bool string_ok(const engine *g, uint32_t at)
{
    return at < g->string_size;
}

static sinter_status check_dims(env *e, engine *g)
{
    if (g->dim_count < 1) return BAD(e, "the shape program is empty");
    for (uint32_t i = 0; i < g->dim_count; i++) {
        const dim_node *d = &g->dim[i];
        const bool is_binary = d->kind >= DIM_ADD && d->kind < DIM_KIND_COUNT;
        if (i == 0 ? d->kind != DIM_INVALID : d->kind == DIM_INVALID || d->kind >= DIM_KIND_COUNT)
            return BAD(e, "expression %u has kind %u", i, d->kind);
        if (is_binary && (d->a == 0 || d->a >= i || d->b == 0 || d->b >= i))
            return BAD(e, "expression %u uses one that is not before it", i);
        if (d->kind == DIM_SYMBOL && (d->value < 0 || d->value >= g->symbol_count))
            return BAD(e, "expression %u names symbol %lld of %u", i, (long long)d->value, g->symbol_count);
    }
    for (uint32_t i = 0; i < g->symbol_count; i++) {
        if (!string_ok(g, g->symbol[i].name) || !*engine_text(g, g->symbol[i].name) || g->symbol[i].is_late > 1)
            return BAD(e, "symbol %u is malformed", i);
    }
    for (size_t i = 0; i < (size_t)g->symbol_count * g->profile_count; i++) {
        const engine_range *r = &g->range[i];
        if (r->min > r->opt || r->opt > r->max || r->divisor < 1)
            return BAD(e, "the range of a symbol is malformed (%lld..%lld)", (long long)r->min, (long long)r->max);
    }
    return SINTER_OK;
}

/* Callers say which input or output they mean by its name. */
static sinter_status check_names(env *e, const engine *g, uint32_t first, uint32_t end, arena *scratch)
{
    name_map names = { .a = scratch };
    for (uint32_t i = first; i < end; i++) {
        bool is_new;
        const char *name = engine_text(g, g->io[i].name);
        if (!name_map_add(&names, name, &is_new)) return FAIL_MEMORY(e, "checking an engine");
        if (!is_new) return BAD(e, "two %s have the name '%.64s'", g->io[i].is_input ? "inputs" : "outputs", name);
    }
    return SINTER_OK;
}

static sinter_status check_ios(env *e, engine *g, arena *scratch)
{
    g->input_count = 0;
    for (uint32_t i = 0; i < g->io_count; i++) {
        const engine_io *io = &g->io[i];
        if (!range_ok(io->promise_at, io->promise_size, g->weights_size) || (io->promise_size && !io->is_input))
            return BAD(e, "the promise of input %u is malformed", i);
        if (!string_ok(g, io->name) || io->is_input > 1 || !dtype_is_valid((int)io->dtype) ||
            io->rank > SINTER_RANK_MAX)
            return BAD(e, "input or output %u is malformed", i);
        for (uint32_t k = 0; k < io->rank; k++)
            if (io->dim[k] == 0 || io->dim[k] >= g->dim_count)
                return BAD(e, "input or output %u has an expression out of range", i);
        if (io->is_input && i != g->input_count) return BAD(e, "an input follows an output");
        g->input_count += io->is_input;
    }
    TRY(check_names(e, g, 0, g->input_count, scratch));
    TRY(check_names(e, g, g->input_count, g->io_count, scratch));
    if (g->input && g->input_records != g->input_count)
        return BAD(e, "%u ranges of values for %u inputs", g->input_records, g->input_count);
    for (uint32_t i = 0; g->input && i < g->input_count; i++)
        if (g->input[i].min > g->input[i].max) return BAD(e, "the range of values of input %u is empty", i);
    return SINTER_OK;
}

/* A state has as many bytes in every shape. */
static sinter_status check_state_storage(env *e, const engine *g, const engine_storage *s, uint32_t i)
{
    const dim_node *size = &g->dim[s->size_dim];
    if (size->kind != DIM_CONST || size->value < 0 || (uint64_t)size->value != s->bound)
        return BAD(e, "storage %u is a state whose size is no number, or not that of its bytes", i);
    if (!g->state) return BAD(e, "storage %u is of a state, and the engine has no record of one", i);
    if (s->kind == STORAGE_ROWS && s->bound != STATE_ROWS * sizeof(int64_t))
        return BAD(e, "storage %u counts rows of a state and has %llu bytes", i, (unsigned long long)s->bound);
    if (s->kind == STORAGE_STATE && s->bound > e->limits.memory_max)
        return FAIL(e, NO_MEMORY, "a state has %llu bytes, the limit memory_max is %llu", (unsigned long long)s->bound,
                    (unsigned long long)e->limits.memory_max);
    return SINTER_OK;
}

/* How many rows a run appends is known before the run. */
static sinter_status check_state(env *e, const engine *g, const engine_section *section)
{
    if (!g->state) return SINTER_OK;
    if (section->size != sizeof *g->state || g->state->append == 0 || g->state->append >= g->dim_count ||
        g->state->capacity > (uint64_t)1 << 40)
        return BAD(e, "the record of the state is malformed");
    return SINTER_OK;
}

static sinter_status check_values(env *e, engine *g, const engine_profile *p)
{
    for (uint32_t i = 1; i < p->storage_count; i++) {
        const engine_storage *s = &g->storage[p->storage_first + i];
        if (s->kind == STORAGE_NONE || s->kind >= STORAGE_KIND_COUNT || s->size_dim >= g->dim_count)
            return BAD(e, "storage %u is malformed", i);
        if (s->place >= PLACE_COUNT || (s->place != PLACE_DEVICE && !g->backend->copy))
            return BAD(e, "storage %u is in place %u, which backend '%s' does not have", i, s->place, g->backend->name);
        const uint64_t slab_size = s->place == PLACE_HOST ? p->host_slab_size : p->slab_size;
        if (s->kind == STORAGE_SLAB && (!range_ok(s->at, s->bound, slab_size) || s->at % 64))
            return BAD(e, "storage %u lies outside the slab", i);
        const bool is_absent = s->kind == STORAGE_WEIGHT && s->at == WEIGHT_ABSENT && s->recipe;
        g->is_stripped = g->is_stripped || is_absent;
        if (s->kind == STORAGE_WEIGHT && !is_absent &&
            (!range_ok(s->at, s->bound, g->weights_size) || s->at % ENGINE_ALIGN))
            return BAD(e, "storage %u lies outside the weights", i);
        if (s->kind == STORAGE_STATE || s->kind == STORAGE_ROWS) TRY(check_state_storage(e, g, s, i));
        if (s->kind == STORAGE_INPUT && s->at >= g->input_count) return BAD(e, "storage %u belongs to no input", i);
        if (s->kind == STORAGE_OUTPUT && (s->at < g->input_count || s->at >= g->io_count))
            return BAD(e, "storage %u belongs to no output", i);
        if (s->recipe > g->recipe_count) return BAD(e, "storage %u has no recipe %u", i, s->recipe);
    }
    for (uint32_t i = 1; i < p->value_count; i++) {
        const engine_value *v = &g->value[p->value_first + i];
        if (!string_ok(g, v->name) || !dtype_is_valid((int)v->dtype) || v->rank > SINTER_RANK_MAX || v->storage == 0 ||
            v->storage >= p->storage_count || v->flags > VALUE_IS_OLD || v->offset == 0 || v->offset >= g->dim_count)
            return BAD(e, "value %u is malformed", i);
        for (uint32_t k = 0; k < v->rank; k++)
            if (v->dim[k] == 0 || v->dim[k] >= g->dim_count || v->stride[k] == 0 || v->stride[k] >= g->dim_count)
                return BAD(e, "value %u has an expression out of range", i);
    }
    return SINTER_OK;
}

static bool values_ok(const engine *g, const engine_profile *p, uint32_t at, uint32_t count)
{
    if (!range_ok(at, count, g->arg_count)) return false;
    for (uint32_t i = 0; i < count; i++)
        if (g->arg[at + i] >= p->value_count) return false;
    return true;
}

/* Regions form a tree: each but main is called exactly once, by a step of a region before it. */
static sinter_status check_regions(env *e, const engine *g, const engine_profile *p, arena *scratch)
{
    uint8_t *owner = ARENA_NEW(scratch, uint8_t, p->step_count), *called = ARENA_NEW(scratch, uint8_t, p->region_count),
            *depth = ARENA_NEW(scratch, uint8_t, p->region_count);
    if (!owner || !called || !depth) return FAIL_MEMORY(e, "checking an engine");
    if (p->region_count < 2) return BAD(e, "a profile has no main region");
    for (uint32_t r = 1; r < p->region_count; r++) {
        const engine_region *x = &g->region[p->region_first + r];
        if (!range_ok(x->step_at, x->step_count, p->step_count) || !values_ok(g, p, x->param_at, x->param_count) ||
            !values_ok(g, p, x->result_at, x->result_count))
            return BAD(e, "region %u is malformed", r);
        if (r > 1 && !called[r]) return BAD(e, "region %u is never called", r);
        for (uint32_t i = 0; i < x->step_count; i++) {
            const uint32_t id = x->step_at + i;
            const engine_step *s = &g->step[p->step_first + id];
            if (owner[id]) return BAD(e, "step %u belongs to two regions", id);
            owner[id] = 1;
            const bool is_call = s->kind >= STEP_IF;
            for (uint32_t k = 0; k < 2; k++) {
                const uint32_t to = s->region[k];
                if ((to != 0) != (is_call && (k == 0 || s->kind == STEP_IF)))
                    return BAD(e, "step %u calls the wrong number of regions", id);
                if (!to) continue;
                if (to <= r || to >= p->region_count || called[to])
                    return BAD(e, "step %u calls region %u, which is not its own", id, to);
                if (depth[r] >= e->limits.depth_max)
                    return BAD(e, "regions nest deeper than %llu", (unsigned long long)e->limits.depth_max);
                called[to] = 1;
                depth[to] = (uint8_t)(depth[r] + 1);
            }
        }
    }
    for (uint32_t i = 0; i < p->step_count; i++)
        if (!owner[i]) return BAD(e, "step %u belongs to no region", i);
    return SINTER_OK;
}

static sinter_status check_steps(env *e, const engine *g, const engine_profile *p)
{
    for (uint32_t i = 0; i < p->step_count; i++) {
        const engine_step *s = &g->step[p->step_first + i];
        const bool is_call = s->kind >= STEP_IF;
        if (s->kind >= STEP_KIND_COUNT || !string_ok(g, s->problem) || !string_ok(g, s->name) ||
            (s->kernel == 0) != is_call || s->kernel > g->kernel_count)
            return BAD(e, "step %u is malformed", i);
        if (!values_ok(g, p, s->in_at, s->in_count) || !values_ok(g, p, s->out_at, s->out_count) ||
            !range_ok(s->dim_at, s->dim_count, g->arg_count))
            return BAD(e, "step %u names values out of range", i);
        for (uint32_t k = 0; k < s->dim_count; k++)
            if (g->arg[s->dim_at + k] == 0 || g->arg[s->dim_at + k] >= g->dim_count)
                return BAD(e, "step %u has an expression out of range", i);
        for (uint32_t k = 0; k < s->out_count; k++) {
            const uint32_t v = g->arg[s->out_at + k];
            const uint32_t kind =
                v ? g->storage[p->storage_first + g->value[p->value_first + v].storage].kind : STORAGE_SLAB;
            if (kind == STORAGE_WEIGHT || kind == STORAGE_INPUT || kind == STORAGE_ROWS)
                return BAD(e, "step %u writes into %s", i,
                           kind == STORAGE_WEIGHT  ? "a weight"
                           : kind == STORAGE_INPUT ? "an input"
                                                   : "the number of rows");
        }
    }
    return SINTER_OK;
}

static sinter_status check_profiles(env *e, engine *g, arena *scratch)
{
    uint32_t storage = 0, value = 0, region = 0, step = 0;
    for (uint32_t i = 0; i < g->profile_count; i++) {
        const engine_profile *p = &g->profile[i];
        if (p->storage_first != storage || p->value_first != value || p->region_first != region ||
            p->step_first != step || !p->storage_count || !p->value_count)
            return BAD(e, "profile %u does not follow the one before it", i);
        if (p->order >= ORDER_COUNT) return BAD(e, "profile %u has an order of kind %u", i, p->order);
        if (!range_ok(storage, p->storage_count, g->storage_count) ||
            !range_ok(value, p->value_count, g->value_count) || !range_ok(region, p->region_count, g->region_count) ||
            !range_ok(step, p->step_count, g->step_count))
            return BAD(e, "profile %u passes the end of a table", i);
        const uint64_t slab_size = size_add(p->slab_size, p->host_slab_size);
        if (slab_size > e->limits.memory_max)
            return FAIL(e, NO_MEMORY, "the engine needs %llu bytes a context, the limit memory_max is %llu",
                        (unsigned long long)slab_size, (unsigned long long)e->limits.memory_max);
        storage += p->storage_count, value += p->value_count, region += p->region_count, step += p->step_count;
        TRY(check_values(e, g, p));
        TRY(check_regions(e, g, p, scratch));
        TRY(check_steps(e, g, p));
        if (!values_ok(g, p, p->io_first, g->io_count))
            return BAD(e, "profile %u names inputs or outputs out of range", i);
    }
    if (storage != g->storage_count || value != g->value_count || region != g->region_count || step != g->step_count)
        return BAD(e, "records belong to no profile");
    return SINTER_OK;
}

static sinter_status check_others(env *e, const engine *g)
{
    for (uint32_t i = 0; i < g->kernel_count; i++)
        if (!string_ok(g, g->kernel_ref[i].name)) return BAD(e, "kernel %u is malformed", i);
    for (uint32_t i = 0; i < g->recipe_count; i++) {
        const engine_recipe *r = &g->recipe[i];
        if (r->kind > RECIPE_DATA || !string_ok(g, r->text) || !range_ok(r->in_at, r->in_count, g->arg_count) ||
            (r->kind == RECIPE_PACK && r->kernel > g->kernel_count) ||
            (r->kind == RECIPE_DATA && !range_ok(r->data.at, r->data.size, g->weights_size)))
            return BAD(e, "recipe %u is malformed", i);
        for (uint32_t k = 0; k < r->in_count; k++)
            if (g->arg[r->in_at + k] > i) return BAD(e, "recipe %u uses one that is not before it", i);
    }
    const engine_notes *n = g->notes;
    if (!string_ok(g, n->version) || !string_ok(g, n->target) || !string_ok(g, n->options) || !string_ok(g, n->model) ||
        !string_ok(g, n->backend))
        return BAD(e, "the notes are malformed");
    if (engine_detail(g) > SINTER_DETAIL_NONE) return BAD(e, "the record of what layers tell is malformed");
    if (strcmp(engine_text(g, n->backend), g->backend->name) != 0)
        return FAIL(e, INCOMPATIBLE, "the engine was built for '%.32s', it is opened for '%s'",
                    engine_text(g, n->backend), g->backend->name);
    return g->backend->admit(e, n->isa, &g->target);
}

sinter_status engine_verify(env *e, engine *g)
{
    const engine_section *found[SECTION_KIND_COUNT] = { 0 };
    TRY(check_header(e, g));
    g->header = (const engine_header *)g->bytes;
    TRY(check_sections(e, g, found));
    point(g, found);
    if (g->string_size == 0 || g->strings[g->string_size - 1] != 0 || g->strings[0] != 0)
        return BAD(e, "the strings are not terminated");
    if (found[SECTION_NOTES]->size != sizeof(engine_notes))
        return BAD(e, "the notes have %llu bytes, expected %zu", (unsigned long long)found[SECTION_NOTES]->size,
                   sizeof(engine_notes));
    if (g->profile_count == 0 || g->profile_count > 1024)
        return BAD(e, "%u profiles, expected 1 to 1024", g->profile_count);
    if (found[SECTION_RANGES]->size / sizeof(engine_range) != (uint64_t)g->symbol_count * g->profile_count)
        return BAD(e, "the ranges do not fit symbols and profiles");
    TRY(check_dims(e, g));
    TRY(check_others(e, g));
    TRY(engine_verify_code(e, g));
    arena scratch;
    arena_init(&scratch, e);
    sinter_status s = check_state(e, g, found[SECTION_STATE]);
    if (s == SINTER_OK) s = check_ios(e, g, &scratch);
    if (s == SINTER_OK) s = check_profiles(e, g, &scratch);
    arena_deinit(&scratch);
    TRY(s);
    TRY(engine_verify_steps(e, g));
    if (g->state && g->symbol_late[g->state->append])
        return BAD(e, "how many rows a run appends to the state is known only after the run");
    TRY(engine_verify_scopes(e, g));
    return engine_verify_plan(e, g);
}
