/* SPDX-License-Identifier: Apache-2.0 */
/* api_engine.c - sinter/engine.h: the public handle is the engine itself. */
#include "sinter/engine.h"

#include "api/handle.h"
#include "base/options.h"
#include "base/os.h"
#include "engine/engine.h"

#include <string.h>

static engine *inner(const sinter_engine *g)
{
    return (engine *)(uintptr_t)g;
}

static sinter_status begin(env *e, const sinter_engine_options *from, sinter_engine_options *o, sinter_engine **out,
                           sinter_error *error)
{
    env_init(e, NULL, error);
    *o = (sinter_engine_options)SINTER_ENGINE_OPTIONS;
    if (!out) return FAIL(e, INVALID_ARG, "out is NULL");
    *out = NULL;
    TRY(api_options(e, o, sizeof *o, from));
    env_init(e, o->env, error);
    TRY(env_check(e));
    const sinter_device_allocator *a = o->device_allocator;
    if (a && (!a->allocate || !a->release))
        return FAIL(e, INVALID_ARG, "device_allocator has no function '%s'", a->allocate ? "release" : "allocate");
    return options_check(e, engine_option_rows, o);
}

/* The kind must be the engine's. */
static sinter_status device_of(env *e, const char *wanted, const backend *b, const char **which)
{
    device_words d = { 0 };
    if (!wanted) return SINTER_OK;
    (void)device_words_read(wanted, &d);
    if (strcmp(b->name, d.backend) != 0 || d.is_reference)
        return FAIL(e, INVALID_ARG, "the engine was built for '%s', device '%.64s' is of another kind", b->name,
                    wanted);
    *which = d.which;
    return SINTER_OK;
}

static sinter_status open(env *e, const sinter_engine_options *o, uint8_t *bytes, size_t size, sinter_engine **out)
{
    engine_hint hint;
    const bool is_known = engine_peek(bytes, size, &hint);
    const backend *b = backend_find(is_known ? hint.backend : "cpu"); /* verifying says what is wrong */
    uint32_t threads = o->threads;
    if (!threads) {
        const uint32_t cpus = hint.threads > 1 ? os_cpu_count() : 1; /* which reads a file for each CPU */
        threads = hint.threads < cpus ? hint.threads : cpus;
    }
    device_options d = { .threads = threads,
                         .spin_us = o->spin,
                         .is_pinned = o->pin != 0,
                         .isa = o->isa ? o->isa : os_env("SINTER_ISA"),
                         .kernel_cache = o->kernel_cache,
                         .trusts_code = o->trust_code != 0,
                         .allocator = o->device_allocator };
    sinter_status s =
        b ? device_of(e, o->device, b, &d.name)
          : FAIL(e, UNSUPPORTED, "this build has no backend '%s', which the engine was built for", hint.backend);
    engine *g = NULL;
    if (s != SINTER_OK) mem_free(e, bytes, size, ENGINE_ALIGN);
    else if (o->no_device) s = engine_open_offline(e, bytes, size, b, &d, &g, e->error);
    else s = engine_open(e, bytes, size, b, &d, o->weight_budget, &g, e->error);
    *out = (sinter_engine *)(void *)g;
    return s;
}

sinter_status sinter_engine_load_memory(const void *bytes, size_t size, const sinter_engine_options *options,
                                        sinter_engine **out, sinter_error *error)
{
    env e;
    sinter_engine_options o;
    TRY(begin(&e, options, &o, out, error));
    if (!bytes || !size) return FAIL(&e, INVALID_ARG, "no bytes are no engine");
    env_budget budget = { 0 }; /* until the engine counts its bytes itself */
    e.budget = &budget;
    uint8_t *copy = mem_alloc(&e, size, ENGINE_ALIGN);
    e.budget = NULL;
    if (!copy) return FAIL_MEMORY(&e, "an engine");
    os_memory_hint_large(copy, size);
    os_memory_spread(copy, size);
    memcpy(copy, bytes, size);
    return open(&e, &o, copy, size, out);
}

sinter_status sinter_engine_load(const char *path, const sinter_engine_options *options, sinter_engine **out,
                                 sinter_error *error)
{
    env e;
    sinter_engine_options o;
    TRY(begin(&e, options, &o, out, error));
    if (!path) return FAIL(&e, INVALID_ARG, "path is NULL");
    os_file file = { 0 };
    env_budget budget = { 0 }; /* until the engine counts its bytes itself */
    e.budget = &budget;
    TRY(os_file_read(&e, path, SIZE_MAX, &file));
    e.budget = NULL;
    return NOTE(&e, open(&e, &o, file.data, file.size, out), "loading '%s'", path);
}

void sinter_engine_retain(sinter_engine *g)
{
    engine_retain(inner(g));
}
void sinter_engine_release(sinter_engine *g)
{
    engine_release(inner(g));
}
uint32_t sinter_engine_io_count(const sinter_engine *g)
{
    return g ? inner(g)->io_count : 0;
}
uint32_t sinter_engine_profile_count(const sinter_engine *g)
{
    return g ? inner(g)->profile_count : 0;
}

sinter_status sinter_engine_io(const sinter_engine *handle, uint32_t index, uint32_t profile, sinter_io *out)
{
    const engine *g = inner(handle);
    if (!g || !out || index >= g->io_count || profile >= g->profile_count) return SINTER_INVALID_ARG;
    return engine_io_describe(g, index, profile, out);
}

uint32_t sinter_engine_state_count(const sinter_engine *g)
{
    return g ? engine_state_count(inner(g), 0) : 0;
}

sinter_status sinter_engine_state(const sinter_engine *handle, uint32_t index, uint32_t profile, sinter_io *out)
{
    const engine *g = inner(handle);
    if (!g || !out || profile >= g->profile_count || index >= engine_state_count(g, profile)) return SINTER_INVALID_ARG;
    engine_state_describe(g, index, profile, out);
    return SINTER_OK;
}

/* Structs that the library fills: as much as the caller's struct has room for. */
static void give(void *out, const void *from, size_t size)
{
    size_t room;
    memcpy(&room, out, sizeof room);
    memcpy((char *)out + sizeof room, (const char *)from + sizeof room, (room < size ? room : size) - sizeof room);
}

static sinter_status begin_info(env *e, const engine *g, const void *out, sinter_error *error)
{
    env_init(e, NULL, error);
    if (!g || !out) return FAIL(e, INVALID_ARG, "%s is NULL", g ? "out" : "engine");
    size_t room;
    memcpy(&room, out, sizeof room);
    if (room >= sizeof room) return SINTER_OK;
    return FAIL(e, INVALID_ARG, "struct_size is %zu: initialise the struct with its macro", room);
}

sinter_status sinter_engine_describe(const sinter_engine *handle, sinter_engine_info *out, sinter_error *error)
{
    env e;
    sinter_engine_info info;
    TRY(begin_info(&e, inner(handle), out, error));
    TRY(engine_describe(&e, inner(handle), &info));
    give(out, &info, sizeof info);
    return SINTER_OK;
}

sinter_status sinter_engine_describe_profile(const sinter_engine *handle, uint32_t profile, sinter_profile_info *out,
                                             sinter_error *error)
{
    env e;
    sinter_profile_info info;
    const engine *g = inner(handle);
    TRY(begin_info(&e, g, out, error));
    if (profile >= g->profile_count)
        return FAIL(&e, INVALID_ARG, "profile %u, the engine has %u", profile, g->profile_count);
    TRY(engine_describe_profile(&e, g, profile, &info));
    give(out, &info, sizeof info);
    return SINTER_OK;
}

const char *sinter_engine_name(const sinter_engine *g)
{
    return g ? engine_text(inner(g), inner(g)->notes->model) : "";
}

const char *sinter_engine_device(const sinter_engine *g)
{
    return g ? inner(g)->backend->name : "";
}

/* ---- weights ---- */

sinter_status sinter_engine_set_weight_budget(sinter_engine *handle, uint64_t budget, sinter_error *error)
{
    env e;
    engine *g = inner(handle);
    env_init(&e, NULL, error);
    if (!g) return FAIL(&e, INVALID_ARG, "engine is NULL");
    if (g->is_offline || g->is_stripped) return FAIL(&e, INVALID_ARG, "the engine cannot run: it has no device");
    const uint32_t contexts = __atomic_load_n(&g->contexts, __ATOMIC_ACQUIRE);
    if (contexts) return FAIL(&e, INVALID_ARG, "the engine has %u contexts: their weights cannot move", contexts);
    if (!g->backend->copy) return SINTER_OK;
    g->e.error = e.error;
    const sinter_status s = engine_place_weights(g, budget);
    g->e.error = &g->e.error_own;
    g->has_no_weights = s != SINTER_OK;
    return s;
}

sinter_status sinter_engine_automatic_weight_budget(const sinter_engine *handle, uint64_t *out, sinter_error *error)
{
    env e;
    const engine *g = inner(handle);
    env_init(&e, NULL, error);
    if (!g || !out) return FAIL(&e, INVALID_ARG, "%s is NULL", g ? "out" : "engine");
    *out = 0;
    if (g->is_offline) return FAIL(&e, INVALID_ARG, "the engine was opened without a device: it has no memory");
    if (!g->backend->memory_left) return SINTER_OK;
    uint64_t left, all;
    TRY(g->backend->memory_left(&e, g->device, &left, &all));
    const uint64_t streamable = engine_streamable_size(&e, g), held = left + g->device_size,
                   wanted = sinter_engine_memory_size(handle, SINTER_ALL_PROFILES) + all / 16;
    const uint64_t room = held > wanted ? held - wanted : 0;
    *out = room > streamable ? streamable : room;
    if (!*out && streamable) *out = 1;
    return SINTER_OK;
}

/* ---- memory ---- */

size_t sinter_engine_memory_size(const sinter_engine *handle, uint32_t profile)
{
    const engine *g = inner(handle);
    size_t most = 0;
    for (uint32_t i = 0; g && i < g->profile_count; i++) {
        const size_t size = i == profile || profile == SINTER_ALL_PROFILES ? engine_memory_size(g, i) : 0;
        if (size > most) most = size;
    }
    return most;
}

static sinter_status check_memory(const sinter_engine *g, const char *null, sinter_place a, sinter_place b,
                                  sinter_error *error)
{
    env e;
    env_init(&e, NULL, error);
    if (!g || null) return FAIL(&e, INVALID_ARG, "%s is NULL", g ? null : "engine");
    const sinter_place wrong = (unsigned)a > SINTER_PLACE_PINNED ? a : b;
    if ((unsigned)wrong <= SINTER_PLACE_PINNED) return SINTER_OK;
    return FAIL(&e, INVALID_ARG, "a place is %d, expected 0 (host), 1 (device) or 2 (pinned)", (int)wrong);
}

sinter_status sinter_engine_memory(const sinter_engine *handle, sinter_memory_info *out, sinter_error *error)
{
    env e;
    const engine *g = inner(handle);
    TRY(begin_info(&e, g, out, error));
    sinter_memory_info info = { .struct_size = sizeof info };
    const memory_counts *c = g->device && g->backend->memory_counts ? g->backend->memory_counts(g->device) : NULL;
    if (c) {
        info.live = __atomic_load_n(&c->live, __ATOMIC_RELAXED);
        info.peak = __atomic_load_n(&c->peak, __ATOMIC_RELAXED);
        info.total = __atomic_load_n(&c->total, __ATOMIC_RELAXED);
        info.allocations = __atomic_load_n(&c->allocations, __ATOMIC_RELAXED);
        info.frees = __atomic_load_n(&c->frees, __ATOMIC_RELAXED);
    }
    give(out, &info, sizeof info);
    return SINTER_OK;
}

sinter_status sinter_engine_rates(const sinter_engine *handle, size_t touched, sinter_rates *out, sinter_error *error)
{
    env e;
    const engine *g = inner(handle);
    env_init(&e, NULL, error);
    if (!g || !out) return FAIL(&e, INVALID_ARG, "%s is NULL", g ? "out" : "engine");
    *out = (sinter_rates){ 0 };
    if (g->is_offline) return FAIL(&e, INVALID_ARG, "the engine was opened without a device: it has no rates");
    if (!g->backend->rates) return FAIL(&e, UNSUPPORTED, "the rates of '%s' are not known", g->backend->name);
    device_rates r = { 0 };
    TRY(g->backend->rates(&e, g->device, touched, &r));
    *out = (sinter_rates){ .f32 = r.f32, .f16 = r.f16, .int8 = r.int8, .memory = r.memory, .cache = r.cache };
    return SINTER_OK;
}

sinter_status sinter_engine_profile(sinter_engine *handle, int is_on, sinter_error *error)
{
    env e;
    const engine *g = inner(handle);
    env_init(&e, NULL, error);
    if (!g) return FAIL(&e, INVALID_ARG, "engine is NULL");
    if (g->is_offline) return FAIL(&e, INVALID_ARG, "the engine was opened without a device: nothing runs on it");
    return g->backend->profile ? g->backend->profile(&e, g->device, is_on != 0) : SINTER_OK;
}

sinter_status sinter_engine_alloc(sinter_engine *g, sinter_place place, size_t size, void **out, sinter_error *error)
{
    if (out) *out = NULL;
    TRY(check_memory(g, out ? NULL : "out", place, place, error));
    return engine_memory_alloc(inner(g), place, size, out, error);
}

void sinter_engine_free(sinter_engine *g, sinter_place place, void *data, size_t size)
{
    if (g) engine_memory_free(inner(g), place, data, size);
}

sinter_status sinter_engine_copy(sinter_engine *g, void *to, sinter_place to_place, const void *from,
                                 sinter_place from_place, size_t size, sinter_error *error)
{
    const char *null = !size || (to && from) ? NULL : to ? "from" : "to";
    TRY(check_memory(g, null, to_place, from_place, error));
    return engine_memory_copy(inner(g), to, to_place, from, from_place, size, error);
}

sinter_detail sinter_engine_detail(const sinter_engine *handle)
{
    return handle ? engine_detail(inner(handle)) : SINTER_DETAIL_ALL;
}

sinter_status sinter_engine_print_layers(const sinter_engine *handle, uint32_t index, sinter_print format,
                                         sinter_write_fn write, void *user, sinter_error *error)
{
    env e;
    env_init(&e, NULL, error);
    if (!handle || !write) return FAIL(&e, INVALID_ARG, "%s is NULL", handle ? "write" : "engine");
    const engine_layers o = { .index = index, .is_json = format == SINTER_PRINT_JSON };
    return engine_print_layers(&e, inner(handle), &o, write, user);
}

sinter_status sinter_engine_print(const sinter_engine *handle, sinter_print format, sinter_write_fn write, void *user,
                                  sinter_error *error)
{
    env e;
    env_init(&e, NULL, error);
    if (!handle || !write) return FAIL(&e, INVALID_ARG, "%s is NULL", handle ? "write" : "engine");
    text t;
    text_init(&t, &e);
    engine_print(inner(handle), format == SINTER_PRINT_JSON, &t);
    const sinter_status s = t.failed ? FAIL_MEMORY(&e, "a description") : SINTER_OK;
    if (s == SINTER_OK) write(user, t.at, t.length);
    text_deinit(&t);
    return s;
}
