/* SPDX-License-Identifier: Apache-2.0 */
/* engine_info.c - what an engine holds and what its contexts need, in numbers; and the tensors of its state. */
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

/* ---- activation memory ---- */

/* Every block is followed by 64 bytes that nothing is planned for. */
enum { BEHIND = 64 };

size_t engine_slots_at(const engine *g, uint32_t profile)
{
    return size_align(size_add(g->workspace[profile], BEHIND), ENGINE_ALIGN);
}

size_t engine_slab_at(const engine *g, uint32_t profile)
{
    return size_add(engine_slots_at(g, profile), g->slot_size ? size_mul(2, g->slot_size[profile]) : 0);
}

size_t engine_memory_size(const engine *g, uint32_t profile)
{
    const uint64_t slab = g->profile[profile].slab_size;
    const size_t whole =
        size_add(engine_slab_at(g, profile), size_add(slab > SIZE_MAX ? SIZE_MAX : (size_t)slab, BEHIND));
    return size_align(whole, ENGINE_ALIGN);
}

/* ---- states ---- */

static sinter_status list_profile(env *e, engine *g, uint32_t profile, uint32_t *count)
{
    const engine_profile *p = &g->profile[profile];
    uint32_t *first = arena_alloc(&g->a, size_mul(p->storage_count, sizeof *first), _Alignof(uint32_t));
    if (!first) return FAIL_MEMORY(e, "an engine");
    for (uint32_t i = p->value_count; i-- > 1;) first[g->value[p->value_first + i].storage] = i;
    g->state_first[profile] = *count;
    for (uint32_t i = 1; i < p->value_count; i++) {
        const uint32_t storage = g->value[p->value_first + i].storage;
        if (g->storage[p->storage_first + storage].kind == STORAGE_STATE && first[storage] == i)
            g->state_value[(*count)++] = p->value_first + i;
    }
    return SINTER_OK;
}

sinter_status engine_list_states(env *e, engine *g, const dim *canonical)
{
    uint32_t most = 0, count = 0;
    for (uint32_t i = 0; i < g->storage_count; i++) most += g->storage[i].kind == STORAGE_STATE;
    g->state_first = ARENA_NEW(&g->a, uint32_t, (size_t)g->profile_count + 1);
    g->state_value = ARENA_NEW(&g->a, uint32_t, most);
    g->state_text = ARENA_NEW(&g->a, const char *, size_mul(most, SINTER_RANK_MAX));
    if (!g->state_first || (most && (!g->state_value || !g->state_text))) return FAIL_MEMORY(e, "an engine");
    if (!most) return SINTER_OK;
    for (uint32_t i = 0; i < g->profile_count; i++) TRY(list_profile(e, g, i, &count));
    g->state_first[g->profile_count] = count;
    text t;
    text_init(&t, e);
    for (uint32_t i = 0; i < count; i++) {
        const engine_value *v = &g->value[g->state_value[i]];
        for (uint32_t k = 0; k < v->rank; k++) {
            text_clear(&t);
            dim_print(g->dims, canonical[v->dim[k]], &t);
            g->state_text[(size_t)i * SINTER_RANK_MAX + k] = t.failed ? "" : arena_text(&g->a, t.at, t.length);
        }
    }
    const bool failed = t.failed || g->a.failed;
    text_deinit(&t);
    return failed ? FAIL_MEMORY(e, "an engine") : SINTER_OK;
}

void engine_state_describe(const engine *g, uint32_t index, uint32_t profile, sinter_io *out)
{
    const uint32_t at = g->state_first[profile] + index;
    const engine_value *v = &g->value[g->state_value[at]];
    *out = (sinter_io){ .name = engine_text(g, v->name),
                        .dtype = (sinter_dtype)v->dtype,
                        .rank = v->rank,
                        .value_min = INT64_MIN,
                        .value_max = INT64_MAX };
    for (uint32_t k = 0; k < v->rank; k++) {
        const dim_range r = engine_range_of(g, v->dim[k], profile);
        out->dim[k] = g->dim[v->dim[k]].kind == DIM_CONST ? r.min : -1;
        out->dim_text[k] = g->state_text[(size_t)at * SINTER_RANK_MAX + k];
        out->min[k] = r.min;
        out->opt[k] = r.opt;
        out->max[k] = r.max;
    }
}

/* ---- sizes ---- */

sinter_status engine_describe_profile(env *e, const engine *g, uint32_t profile, sinter_profile_info *out)
{
    const engine_profile *p = &g->profile[profile];
    (void)e;
    *out = (sinter_profile_info){ .struct_size = sizeof *out,
                                  .memory_size = engine_memory_size(g, profile),
                                  .slab_size = p->slab_size,
                                  .workspace_size = g->workspace[profile],
                                  .host_slab_size = p->host_slab_size,
                                  .host_workspace_size = g->host_workspace[profile],
                                  .weight_scratch_size = g->slot_size ? 2 * (uint64_t)g->slot_size[profile] : 0,
                                  .step_count = p->step_count,
                                  .program_count = engine_program_count(g, profile) };
    for (uint32_t i = 1; i < p->storage_count; i++) {
        const engine_storage *s = &g->storage[p->storage_first + i];
        if (s->kind == STORAGE_WEIGHT) out->weights_size += s->bound;
        if (s->kind == STORAGE_STATE) out->state_size += s->bound;
    }
    return SINTER_OK;
}

/* Entries are equal if both numbers and the tactics are. */
typedef struct entry {
    uint64_t a, b, size;
    const uint8_t *tactic; /* TACTIC_SIZE bytes, or NULL */
} entry;

static int by_entry(const void *x, const void *y)
{
    const entry *p = x, *q = y;
    if (p->a != q->a) return p->a < q->a ? -1 : 1;
    if (p->b != q->b) return p->b < q->b ? -1 : 1;
    return p->tactic && q->tactic ? memcmp(p->tactic, q->tactic, TACTIC_SIZE) : 0;
}

/* Weights by where they lie, those that are absent by how they are made. Profiles share them. */
static void sum_weights(const engine *g, entry *list, sinter_engine_info *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->storage_count; i++) {
        const engine_storage *s = &g->storage[i];
        if (s->kind != STORAGE_WEIGHT) continue;
        const bool is_absent = s->at == WEIGHT_ABSENT;
        list[count++] = (entry){ .a = s->at, .b = is_absent ? s->recipe : 0, .size = s->bound };
    }
    qsort(list, count, sizeof *list, by_entry);
    for (uint32_t i = 0; i < count; i++) {
        if (i && by_entry(&list[i], &list[i - 1]) == 0) continue;
        out->weights_size += list[i].size;
        if (list[i].a == WEIGHT_ABSENT) out->stripped_size += list[i].size;
    }
}

static void count_kernels(const engine *g, entry *list, sinter_engine_info *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->step_count; i++)
        if (g->step[i].kernel) list[count++] = (entry){ .a = g->step[i].kernel, .tactic = g->step[i].tactic };
    qsort(list, count, sizeof *list, by_entry);
    for (uint32_t i = 0; i < count; i++) {
        out->tactic_count += !i || by_entry(&list[i], &list[i - 1]) != 0;
        out->kernel_count += !i || list[i].a != list[i - 1].a;
    }
}

sinter_status engine_describe(env *e, const engine *g, sinter_engine_info *out)
{
    *out = (sinter_engine_info){ .struct_size = sizeof *out,
                                 .file_size = g->size,
                                 .device_weights_size = g->device_size,
                                 .profile_count = g->profile_count,
                                 .step_count = g->step_count,
                                 .node_count = g->notes->node_count,
                                 .streamable_size = engine_streamable_size(e, g),
                                 .weight_budget = g->weight_budget,
                                 .streamed_size = g->streamed_size,
                                 .is_refittable = strstr(engine_text(g, g->notes->options), " refittable") != NULL };
    arena a;
    arena_init(&a, e);
    const uint32_t most = g->storage_count > g->step_count ? g->storage_count : g->step_count;
    entry *list = ARENA_NEW(&a, entry, most);
    sinter_status s = list || !most ? SINTER_OK : FAIL_MEMORY(e, "describing an engine");
    if (s == SINTER_OK && most) {
        sum_weights(g, list, out);
        count_kernels(g, list, out);
    }
    arena_deinit(&a);
    for (uint32_t i = 0; i < g->profile_count && s == SINTER_OK; i++) {
        sinter_profile_info p;
        s = engine_describe_profile(e, g, i, &p);
        if (p.weight_scratch_size > out->weight_scratch_size) out->weight_scratch_size = p.weight_scratch_size;
        if (p.state_size > out->state_size) out->state_size = p.state_size;
        if (p.memory_size > out->memory_size) out->memory_size = p.memory_size;
    }
    return s;
}
