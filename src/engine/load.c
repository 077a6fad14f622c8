/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - an engine's life: bytes in, verified, shared by contexts, gone with the last reference. */
#include "engine/engine.h"

#include <string.h>

static void destroy(engine *g)
{
    env e = g->e;
    e.error = &e.error_own;
    if (g->device) g->backend->close(&e, g->device);
    arena_deinit(&g->a);
    if (g->bytes) mem_free(&e, g->bytes, g->size, ENGINE_ALIGN);
    mem_free(&e, g, sizeof *g, _Alignof(engine));
}

sinter_status engine_open(const env *from, uint8_t *bytes, size_t size, const backend *b, const device_options *options,
                          engine **out, sinter_error *error)
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
    g->bytes = bytes;
    g->size = size;
    g->references = 1;
    g->backend = b;
    arena_init(&g->a, &g->e);
    device_options d = *options;
    sinter_status s = b->open(&g->e, &d, &g->device);
    if (s == SINTER_OK) {
        b->target(g->device, &g->target);
        g->threads = g->target.threads;
        s = engine_verify(&g->e, g);
    }
    g->e.error = &g->e.error_own;
    if (s == SINTER_OK) {
        *out = g;
    } else {
        destroy(g);
    }
    return s;
}

void engine_retain(engine *g)
{
    if (g) __atomic_fetch_add(&g->references, 1, __ATOMIC_RELAXED);
}

void engine_release(engine *g)
{
    if (g && __atomic_fetch_sub(&g->references, 1, __ATOMIC_ACQ_REL) == 1) destroy(g);
}
