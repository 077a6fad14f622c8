/* SPDX-License-Identifier: Apache-2.0 */
/* network_unfused.c - which tensors of a network an engine keeps between its steps.
 *
 * An engine does not know the network's tensors, so they are found by their names. Tensors inside loops and
 * conditionals cannot be outputs of an engine, so they are left out. */
#include "base/name_map.h"
#include "engine/engine.h"
#include "network/lowering.h"

/* Does the layer make tensors inside a loop or conditional? is_in: the layers that are known to do so, by id. */
static bool is_inside(const sinter_layer *layer, const bool *is_in)
{
    if (network_opens(layer)) return true;
    if (network_gives_results(layer)) return false;
    for (uint32_t i = 0; i < layer->count_in; i++)
        if (layer->in[i] && layer->in[i]->producer && is_in[layer->in[i]->producer->id]) return true;
    return false;
}

/* Layers may be in any order, so the search repeats until nothing changes. */
static void find_inside(const sinter_network *net, bool *is_in)
{
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < net->layer.count; i++) {
            const sinter_layer *layer = net->layer.at[i];
            if (is_in[layer->id] || !is_inside(layer, is_in)) continue;
            is_in[layer->id] = more = true;
        }
    }
}

/* The names of what the steps of a profile write to the slab. */
static void names_of_profile(const engine *g, uint32_t profile, arena *a, name_map *out)
{
    const engine_profile *p = &g->profile[profile];
    const uint32_t *name = engine_storage_names(g, profile, a);
    bool is_new;
    for (uint32_t i = 0; name && i < p->step_count; i++) {
        const engine_step *s = &g->step[p->step_first + i];
        for (uint32_t k = 0; k < s->out_count; k++) {
            const uint32_t id = g->arg[s->out_at + k];
            const uint32_t storage = id ? g->value[p->value_first + id].storage : 0;
            if (id && g->storage[p->storage_first + storage].kind == STORAGE_SLAB && name[storage])
                (void)name_map_add(out, engine_text(g, name[storage]), &is_new);
        }
    }
}

static bool is_listed(const sinter_network_tensor *t, const name_map *names, const bool *is_in)
{
    return !t->is_removed && t->producer && !t->is_output && !t->is_debug && !is_in[t->producer->id] &&
           name_map_find(names, t->name);
}

sinter_status sinter_network_unfused(sinter_network *net, const sinter_engine *given, sinter_network_tensor **out,
                                     uint32_t capacity, uint32_t *count, sinter_error *error)
{
    env *e = network_env(net, error);
    if (!e) return SINTER_INVALID_ARG;
    if (!given || !count || (capacity && !out))
        return FAIL(e, INVALID_ARG, "%s is NULL", !given ? "engine" : !count ? "count" : "out");
    const engine *g = (const engine *)(const void *)given;
    arena a;
    arena_init(&a, e);
    name_map names = { .a = &a };
    bool *is_in = ARENA_NEW(&a, bool, net->layer_count + 1u);
    if (is_in) {
        find_inside(net, is_in);
        for (uint32_t p = 0; p < g->profile_count; p++) names_of_profile(g, p, &a, &names);
    }
    *count = 0;
    for (uint32_t i = 0; is_in && i < net->tensor.count; i++) {
        if (!is_listed(net->tensor.at[i], &names, is_in)) continue;
        if (*count < capacity) out[*count] = net->tensor.at[i];
        ++*count;
    }
    const bool failed = a.failed;
    arena_deinit(&a);
    return failed ? FAIL_MEMORY(e, "the list of unfused tensors") : SINTER_OK;
}
