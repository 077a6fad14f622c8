/* SPDX-License-Identifier: Apache-2.0 */
/* context.c - a context's memory and the items that each region is run as. */
#include "run/context.h"

#include <string.h>

/* Consecutive kernel steps of one kind (all late or none) become one program. */
static sinter_status make_items(context *c, uint32_t region)
{
    const engine_region *r = &c->g->region[c->p->region_first + region];
    run_region *to = &c->region[region];
    to->item = ARENA_NEW(&c->a, run_item, r->step_count);
    if (!to->item) return FAIL_MEMORY(&c->e, "a region");
    for (uint32_t i = 0; i < r->step_count; i++) {
        const uint32_t step = r->step_at + i;
        const bool is_program = context_step(c, step)->kind == STEP_KERNEL, is_late = context_code(c, step)->is_late;
        run_item *last = to->count ? &to->item[to->count - 1] : NULL;
        if (is_program && last && last->is_program && last->is_late == is_late) {
            last->count++;
            continue;
        }
        to->item[to->count++] = (run_item){ .first = step,
                                            .count = 1,
                                            .is_program = is_program,
                                            .is_late = is_late,
                                            .program = is_program ? c->program_count++ : 0 };
    }
    return SINTER_OK;
}

static sinter_status make_arrays(context *c, bool timing)
{
    engine *g = c->g;
    c->region = ARENA_NEW(&c->a, run_region, c->p->region_count);
    c->own = ARENA_NEW(&c->a, buffer, c->p->storage_count);
    c->base = ARENA_NEW(&c->a, void *, c->p->storage_count);
    c->moving = ARENA_NEW(&c->a, uint32_t, c->p->value_count);
    c->address = ARENA_NEW(&c->a, void *, c->p->value_count);
    c->input = arena_alloc(&c->a, sizeof *c->input * g->input_count, 8);
    c->output = arena_alloc(&c->a, sizeof *c->output * (g->io_count - g->input_count), 8);
    c->result_ready = ARENA_NEW(&c->a, bool, g->io_count - g->input_count);
    if (timing) c->clock = ARENA_NEW(&c->a, step_clock, c->p->step_count);
    return c->a.failed ? FAIL_MEMORY(&c->e, "a context") : SINTER_OK;
}

static sinter_status make_memory(context *c)
{
    engine *g = c->g;
    c->slab = g->backend->memory_alloc(&c->e, g->device, c->p->slab_size + 64);
    c->workspace_size = g->workspace[c->profile] + 64;
    c->workspace = g->backend->memory_alloc(&c->e, g->device, c->workspace_size);
    if (!c->slab || !c->workspace)
        return FAIL(&c->e, NO_MEMORY, "out of memory for a context: %llu bytes of activations and %zu of workspace",
                    (unsigned long long)c->p->slab_size, c->workspace_size);
    for (uint32_t i = 1; i < c->p->storage_count; i++) {
        const engine_storage *s = context_storage(c, i);
        if (s->kind == STORAGE_SLAB) c->base[i] = c->slab + s->at;
        if (s->kind == STORAGE_WEIGHT)
            c->base[i] = (uint8_t *)(uintptr_t)(g->weights + s->at); /* the verifier saw that nothing writes there */
    }
    for (uint32_t i = 1; i < c->p->value_count; i++) {
        const uint32_t kind = context_storage(c, context_value(c, i)->storage)->kind;
        if (kind == STORAGE_INPUT || kind == STORAGE_OUTPUT || kind == STORAGE_GROWN) c->moving[c->moving_count++] = i;
    }
    return SINTER_OK;
}

static sinter_status build(context *c, bool timing)
{
    TRY(make_arrays(c, timing));
    for (uint32_t i = 1; i < c->p->region_count; i++) TRY(make_items(c, i));
    return make_memory(c);
}

sinter_status context_create(engine *g, uint32_t profile, bool timing, context **out, sinter_error *error)
{
    env e = g->e;
    e.error = error ? error : &e.error_own;
    *out = NULL;
    if (g->is_offline) return FAIL(&e, INVALID_ARG, "the engine was opened without a device: it cannot run");
    if (profile >= g->profile_count)
        return FAIL(&e, INVALID_ARG, "profile %u, the engine has %u", profile, g->profile_count);
    context *c = mem_zalloc(&e, sizeof *c, _Alignof(context));
    if (!c) return FAIL_MEMORY(&e, "a context");
    c->e = e;
    c->g = g;
    c->profile = profile;
    c->p = &g->profile[profile];
    engine_retain(g);
    arena_init(&c->a, &c->e);
    arena_init(&c->scratch, &c->e);
    c->scratch.is_kept = true;
    const sinter_status s = build(c, timing);
    c->e.error = &c->e.error_own;
    if (s == SINTER_OK) {
        *out = c;
    } else {
        context_destroy(c);
    }
    return s;
}

void context_destroy(context *c)
{
    if (!c) return;
    engine *g = c->g;
    env e = c->e;
    e.error = &e.error_own;
    for (uint32_t i = 0; i < SHAPES_KEPT; i++) {
        shape *s = &c->kept[i];
        for (uint32_t k = 0; s->program && k < c->program_count; k++)
            if (s->program[k]) g->backend->program_destroy(&e, g->device, s->program[k]);
        arena_deinit(&s->a);
    }
    for (uint32_t i = 0; c->own && i < c->p->storage_count; i++)
        if (c->own[i].at) g->backend->memory_free(&e, g->device, c->own[i].at, c->own[i].size);
    if (c->slab) g->backend->memory_free(&e, g->device, c->slab, c->p->slab_size + 64);
    if (c->workspace) g->backend->memory_free(&e, g->device, c->workspace, c->workspace_size);
    arena_deinit(&c->scratch);
    arena_deinit(&c->a);
    mem_free(&e, c, sizeof *c, _Alignof(context));
    engine_release(g);
}

size_t context_memory(const context *c)
{
    size_t size = c->p->slab_size + c->workspace_size + c->a.total + c->scratch.total;
    for (uint32_t i = 0; i < c->p->storage_count; i++) size += c->own[i].size;
    for (uint32_t i = 0; i < SHAPES_KEPT; i++) {
        if (!c->kept[i].used) continue;
        size += c->kept[i].a.total;
        for (uint32_t k = 0; k < c->program_count; k++)
            if (c->kept[i].program[k]) size += c->g->backend->program_memory(c->kept[i].program[k]);
    }
    return size;
}
