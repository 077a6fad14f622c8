/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - an engine's life: bytes in, verified, weights put where kernels read them, shared by contexts, gone with the
 * last reference. */
#include "engine/engine.h"

#include <string.h>

static void destroy(engine *g)
{
    env e = g->e;
    e.error = &e.error_own;
    if (g->device_weights) g->backend->memory_free(&e, g->device, g->device_weights, (size_t)g->device_size);
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

/* ---- weights on the device ---- */

static sinter_status copy_and_wait(engine *g, stream *s, void *to, const void *from, size_t size)
{
    data_fault none = { 0 };
    TRY(g->backend->copy(&g->e, g->device, s, COPY_TO_DEVICE, to, from, size));
    return g->backend->stream_wait(&g->e, g->device, s, &none);
}

/* Through two halves of pinned memory: one is filled while the other is under way. */
static sinter_status copy_staged(engine *g, stream *s, uint8_t *stage, size_t half)
{
    data_fault none = { 0 };
    const uint8_t *from = g->weights + g->device_at;
    for (uint64_t at = 0, i = 0; at < g->device_size; i++) {
        const size_t size = g->device_size - at < half ? (size_t)(g->device_size - at) : half;
        uint8_t *part = stage + (i & 1) * half;
        memcpy(part, from + at, size);
        TRY(g->backend->stream_wait(&g->e, g->device, s, &none));
        TRY(g->backend->copy(&g->e, g->device, s, COPY_TO_DEVICE, g->device_weights + at, part, size));
        at += size;
    }
    return g->backend->stream_wait(&g->e, g->device, s, &none);
}

static sinter_status upload_weights(engine *g)
{
    enum { HALF = 4 << 20 };
    uint64_t first = UINT64_MAX, end = 0;
    for (uint32_t i = 0; i < g->storage_count; i++) {
        const engine_storage *x = &g->storage[i];
        if (x->kind != STORAGE_WEIGHT || x->place != PLACE_DEVICE) continue;
        if (x->at < first) first = x->at;
        if (x->at + x->bound > end) end = x->at + x->bound;
    }
    if (first >= end) return SINTER_OK;
    const uint64_t size = end - first;
    if (size > SIZE_MAX || !env_take(&g->e, size))
        return FAIL(&g->e, NO_MEMORY, "%llu bytes of weights pass the limit memory_max, %llu", (unsigned long long)size,
                    (unsigned long long)g->e.limits.memory_max);
    g->device_weights = g->backend->memory_alloc(&g->e, g->device, (size_t)size);
    if (!g->device_weights)
        return NOTE(&g->e, g->e.error->status, "moving %llu bytes of weights to the device", (unsigned long long)size);
    g->device_at = first;
    g->device_size = size;
    stream *s = NULL;
    TRY(g->backend->stream_create(&g->e, g->device, NULL, &s));
    const size_t half = size_align(size < HALF ? (size_t)size : HALF, ENGINE_ALIGN);
    env quiet = g->e; /* it goes without, too */
    quiet.error = &quiet.error_own;
    uint8_t *stage = g->backend->host_alloc(&quiet, g->device, 2 * half);
    const sinter_status status = stage ? copy_staged(g, s, stage, half)
                                       : copy_and_wait(g, s, g->device_weights, g->weights + first, (size_t)size);
    if (stage) g->backend->host_free(&g->e, g->device, stage, 2 * half);
    g->backend->stream_destroy(&g->e, g->device, s);
    return NOTE(&g->e, status, "copying %llu bytes of weights to the device", (unsigned long long)size);
}

/* ---- opening ---- */

static sinter_status start(engine *g, const device_options *options)
{
    device_options d = *options;
    engine_hint hint;
    d.is_shown = g->is_offline && engine_peek(g->bytes, g->size, &hint);
    if (d.is_shown) d.shown_isa = hint.isa;
    TRY(g->backend->open(&g->e, &d, &g->device));
    g->backend->target(g->device, &g->target);
    g->threads = g->target.threads;
    TRY(engine_verify(&g->e, g));
    if (g->is_offline || g->is_stripped) return SINTER_OK;
    if (options->trusts_code) TRY(NOTE(&g->e, engine_import_code(&g->e, g), "taking the engine's compiled kernels"));
    return g->backend->copy ? upload_weights(g) : SINTER_OK;
}

static sinter_status open(const env *from, uint8_t *bytes, size_t size, const backend *b, const device_options *options,
                          bool is_offline, engine **out, sinter_error *error)
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
    const sinter_status s = start(g, options);
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
                          engine **out, sinter_error *error)
{
    return open(e, bytes, size, b, options, false, out, error);
}

sinter_status engine_open_offline(const env *e, uint8_t *bytes, size_t size, const backend *b,
                                  const device_options *options, engine **out, sinter_error *error)
{
    return open(e, bytes, size, b, options, true, out, error);
}

void engine_retain(engine *g)
{
    if (g) __atomic_fetch_add(&g->references, 1, __ATOMIC_RELAXED);
}

void engine_release(engine *g)
{
    if (g && __atomic_fetch_sub(&g->references, 1, __ATOMIC_ACQ_REL) == 1) destroy(g);
}
