/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - an engine's life: bytes in, verified, weights put where kernels read them, shared by contexts, gone with the
 * last reference. */
#include "engine/engine.h"

#include <string.h>

static void destroy(engine *g)
{
    env e = g->e;
    e.error = &e.error_own;
    engine_drop_weights(g);
    if (g->device) g->backend->close(&e, g->device);
    arena_deinit(&g->a);
    e.budget = g->budget.outer;
    if (g->bytes) mem_free(&e, g->bytes, g->size, ENGINE_ALIGN);
    mem_free(&e, g, sizeof *g, _Alignof(engine));
}

bool engine_peek(const uint8_t *bytes, size_t size, engine_hint *out)
{
    engine_header h;
    engine_section strings = { 0 }, notes = { 0 };
    *out = (engine_hint){ 0 };
    if (size < sizeof h) return false;
    memcpy(&h, bytes, sizeof h);
    for (uint32_t i = 0; i < h.section_count && i < ENGINE_SECTIONS_MAX; i++) {
        engine_section s;
        if (sizeof h + (i + 1) * sizeof s > size) return false;
        memcpy(&s, bytes + sizeof h + i * sizeof s, sizeof s);
        if (s.at > size || s.size > size - s.at) return false;
        if (s.kind == SECTION_NOTES) notes = s;
        if (s.kind == SECTION_STRINGS) strings = s;
    }
    engine_notes n;
    if (notes.size != sizeof n) return false;
    memcpy(&n, bytes + notes.at, sizeof n);
    if (n.backend >= strings.size) return false;
    const char *name = (const char *)bytes + strings.at + n.backend;
    const size_t length = strnlen(name, (size_t)strings.size - n.backend);
    if (length >= sizeof out->backend) return false;
    memcpy(out->backend, name, length);
    out->threads = n.threads;
    out->isa = n.isa;
    return true;
}

/* ---- opening ---- */

static sinter_status start(engine *g, const device_options *options, uint64_t weight_budget)
{
    device_options d = *options;
    engine_hint hint;
    d.is_shown = g->is_offline && engine_peek(g->bytes, g->size, &hint);
    if (d.is_shown) d.shown_isa = hint.isa;
    TRY(g->backend->open(&g->e, &d, &g->device));
    g->backend->target(g->device, &g->target);
    g->threads = g->target.threads;
    TRY(engine_verify(&g->e, g));
    g->weight_place = ARENA_NEW(&g->a, engine_weight_place, g->storage_count);
    g->slot_size = ARENA_NEW(&g->a, size_t, g->profile_count);
    if (!g->weight_place || !g->slot_size) return FAIL_MEMORY(&g->e, "an engine");
    if (g->is_offline || g->is_stripped) return SINTER_OK;
    if (options->trusts_code) TRY(NOTE(&g->e, engine_import_code(&g->e, g), "taking the engine's compiled kernels"));
    return g->backend->copy ? engine_place_weights(g, weight_budget) : SINTER_OK;
}

static sinter_status open(const env *from, uint8_t *bytes, size_t size, const backend *b, const device_options *options,
                          bool is_offline, uint64_t weight_budget, engine **out, sinter_error *error)
{
    env e = *from;
    e.error = error ? error : &e.error_own;
    *out = NULL;
    engine *g = mem_zalloc(&e, sizeof *g, _Alignof(engine));
    if (!g) {
        mem_free(&e, bytes, size, ENGINE_ALIGN);
        return FAIL_MEMORY(&e, "an engine");
    }
    g->e = e;
    g->budget = (env_budget){ .outer = e.budget, .used = size };
    g->e.budget = &g->budget;
    g->bytes = bytes;
    g->size = size;
    g->references = 1;
    g->backend = b;
    g->is_offline = is_offline;
    arena_init(&g->a, &g->e);
    const sinter_status s = start(g, options, weight_budget);
    g->e.error = &g->e.error_own;
    if (s == SINTER_OK) {
        *out = g;
    } else {
        destroy(g);
    }
    return s;
}

sinter_status engine_check(env *e, const uint8_t *bytes, size_t size, bool is_mapped, const backend *b,
                           const kernel_target *target)
{
    engine *g = mem_zalloc(e, sizeof *g, _Alignof(engine));
    if (!g) return FAIL_MEMORY(e, "an engine");
    g->e = *e;
    g->bytes = (uint8_t *)(uintptr_t)bytes; /* which nothing changes */
    g->size = size;
    g->is_mapped = is_mapped;
    g->backend = b;
    g->target = *target;
    g->threads = target->threads;
    arena_init(&g->a, e);
    const sinter_status s = engine_verify(e, g);
    arena_deinit(&g->a);
    mem_free(e, g, sizeof *g, _Alignof(engine));
    return s;
}

sinter_status engine_open(const env *e, uint8_t *bytes, size_t size, const backend *b, const device_options *options,
                          uint64_t weight_budget, engine **out, sinter_error *error)
{
    return open(e, bytes, size, b, options, false, weight_budget, out, error);
}

sinter_status engine_open_offline(const env *e, uint8_t *bytes, size_t size, const backend *b,
                                  const device_options *options, engine **out, sinter_error *error)
{
    return open(e, bytes, size, b, options, true, 0, out, error);
}

void engine_retain(engine *g)
{
    if (g) __atomic_fetch_add(&g->references, 1, __ATOMIC_RELAXED);
}

void engine_release(engine *g)
{
    if (g && __atomic_fetch_sub(&g->references, 1, __ATOMIC_ACQ_REL) == 1) destroy(g);
}
