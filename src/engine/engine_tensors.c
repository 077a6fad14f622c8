/* SPDX-License-Identifier: Apache-2.0 */
/* engine_tensors.c - the JSON report's tensors: what each step reads and writes, and where results lie in memory.
 *
 * All values over one storage have the storage's name, so a step that writes a storage and a step that reads a view of
 * it name the same tensor. The name is the input's or output's, else the first name that a value of the storage has,
 * else "tN", N being the storage's number. */
#include "engine/engine.h"

#include "core/storage.h"
#include <string.h>

static const char *const kind_name[STORAGE_KIND_COUNT] = { "none",   "slab",  "weight", "input",
                                                           "output", "grown", "state",  "rows" };

/* For each storage of the profile the string of its name; 0: none. NULL: memory ran out, and no names are shown. */
const uint32_t *engine_storage_names(const engine *g, uint32_t profile, arena *a)
{
    const engine_profile *p = &g->profile[profile];
    uint32_t *name = ARENA_NEW(a, uint32_t, p->storage_count);
    if (!name) return NULL;
    memset(name, 0, p->storage_count * sizeof *name);
    for (uint32_t i = 0; i < p->storage_count; i++) {
        const engine_storage *s = &g->storage[p->storage_first + i];
        if (s->kind == STORAGE_INPUT || s->kind == STORAGE_OUTPUT) name[i] = g->io[s->at].name;
    }
    for (uint32_t i = 1; i < p->value_count; i++) {
        const engine_value *v = &g->value[p->value_first + i];
        if (!name[v->storage]) name[v->storage] = v->name;
    }
    return name;
}

/* The axes whose size a run may choose. "dims" has the usual size of such an axis. */
static void varying_print(const engine *g, uint32_t profile, const engine_value *v, text *out)
{
    bool is_first = true;
    for (uint32_t k = 0; k < v->rank; k++) {
        const dim_range r = engine_range_of(g, v->dim[k], profile);
        if (r.min == r.max) continue;
        text_printf(out, "%s%u", is_first ? ",\"varying\":[" : ",", k);
        is_first = false;
    }
    if (!is_first) text_append(out, "]", 1);
}

static void tensor_print(const engine *g, uint32_t profile, uint32_t value, const uint32_t *name, text *out)
{
    const engine_profile *p = &g->profile[profile];
    const engine_value *v = &g->value[p->value_first + value];
    const engine_storage *s = &g->storage[p->storage_first + v->storage];
    const char *known = name && name[v->storage] ? engine_text(g, name[v->storage]) : "";
    text_printf(out, "{\"name\":");
    if (*known) engine_json_text(out, known);
    else text_printf(out, "\"t%u\"", v->storage);
    text_printf(out, ",\"storage\":%u,\"kind\":\"%s\",\"place\":\"%s\",\"dtype\":\"%s\",\"dims\":[", v->storage,
                kind_name[s->kind], s->place == PLACE_HOST ? "host" : "device",
                sinter_dtype_name((sinter_dtype)v->dtype));
    for (uint32_t k = 0; k < v->rank; k++)
        text_printf(out, "%s%lld", k ? "," : "", (long long)engine_range_of(g, v->dim[k], profile).opt);
    text_append(out, "]", 1);
    varying_print(g, profile, v, out);
    text_append(out, "}", 1);
}

static void tensors_print(const engine *g, uint32_t profile, uint32_t at, uint32_t count, const uint32_t *name,
                          text *out)
{
    bool is_first = true;
    for (uint32_t i = 0; i < count; i++) {
        if (!g->arg[at + i]) continue; /* absent */
        if (!is_first) text_append(out, ",", 1);
        is_first = false;
        tensor_print(g, profile, g->arg[at + i], name, out);
    }
}

void engine_print_tensors(const engine *g, uint32_t profile, uint32_t step, const uint32_t *name, text *out)
{
    const engine_step *s = &g->step[step];
    text_printf(out, ",\"in\":[");
    tensors_print(g, profile, s->in_at, s->in_count, name, out);
    text_printf(out, "],\"out\":[");
    tensors_print(g, profile, s->out_at, s->out_count, name, out);
    text_append(out, "]", 1);
}

void engine_print_slab(const engine *g, uint32_t profile, text *out)
{
    const engine_profile *p = &g->profile[profile];
    bool is_first = true;
    text_printf(out, "\"slab\":[");
    for (uint32_t i = 0; i < p->storage_count; i++) {
        const engine_storage *s = &g->storage[p->storage_first + i];
        if (s->kind != STORAGE_SLAB) continue;
        text_printf(out, "%s{\"storage\":%u,\"at\":%llu,\"bytes\":%llu,\"place\":\"%s\"}", is_first ? "" : ",\n", i,
                    (unsigned long long)s->at, (unsigned long long)s->bound,
                    s->place == PLACE_HOST ? "host" : "device");
        is_first = false;
    }
    text_printf(out, "],");
}
