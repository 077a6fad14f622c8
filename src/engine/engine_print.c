/* SPDX-License-Identifier: Apache-2.0 */
/* engine_print.c - an engine for people and for programs: interface, profiles, memory, steps and the kernels chosen. */
#include "core/storage.h"
#include "engine/engine.h"

#include <string.h>

/* ---- the interface in public words ---- */

/* The value of an expression in a profile: at the symbols' min, opt and max, by interval arithmetic where they are
 * symbols. */
dim_range engine_range_of(const engine *g, uint32_t d, uint32_t profile)
{
    const dim_node *n = &g->dim[d];
    if (n->kind == DIM_CONST) return (dim_range){ n->value, n->value, n->value, 1 };
    if (n->kind == DIM_SYMBOL) {
        const engine_range *r = &g->range[(size_t)profile * g->symbol_count + (size_t)n->value];
        return (dim_range){ r->min, r->max, r->opt, r->divisor };
    }
    return (dim_range){ 0, INT64_MAX, -1, 1 };
}

sinter_status engine_io_describe(const engine *g, uint32_t index, uint32_t profile, sinter_io *out)
{
    const engine_io *io = &g->io[index];
    *out = (sinter_io){
        .name = engine_text(g, io->name), .is_input = io->is_input, .dtype = (sinter_dtype)io->dtype, .rank = io->rank
    };
    out->value_min = g->input && io->is_input ? g->input[index].min : INT64_MIN;
    out->value_max = g->input && io->is_input ? g->input[index].max : INT64_MAX;
    for (uint32_t k = 0; k < io->rank; k++) {
        const dim_range r = engine_range_of(g, io->dim[k], profile);
        out->dim[k] = g->dim[io->dim[k]].kind == DIM_CONST ? r.min : -1;
        out->dim_text[k] = g->io_text[index * SINTER_RANK_MAX + k];
        out->min[k] = r.min;
        out->opt[k] = r.opt;
        out->max[k] = r.max;
    }
    return SINTER_OK;
}

/* ---- text ---- */

const char *engine_step_kernel(const engine *g, uint32_t step)
{
    return g->code[step].kernel ? g->code[step].kernel->name : "call";
}

void engine_step_tactic(const engine *g, uint32_t step, text *out)
{
    tactic t;
    memcpy(t.at, g->step[step].tactic, sizeof t.at);
    if (g->code[step].kernel && g->code[step].kernel->print) g->code[step].kernel->print(&t, out);
}

/* ---- places ---- */

static const engine_storage *storage_of(const engine *g, const engine_profile *p, uint32_t value)
{
    return &g->storage[p->storage_first + g->value[p->value_first + value].storage];
}

const char *engine_step_where(const engine *g, const engine_profile *p, uint32_t id)
{
    const kernel *k = g->code[id].kernel;
    if (!g->backend->copy || (g->step[id].kind == STEP_KERNEL && k->where == KERNEL_ON_DEVICE)) return "device";
    if (g->step[id].kind != STEP_KERNEL || k->where == KERNEL_ON_HOST) return "host";
    if (k->where == KERNEL_ON_STREAM) return "call";
    return storage_of(g, p, g->arg[g->step[id].out_at])->place == PLACE_HOST ? "to host" : "to device";
}

static bool is_program(const engine *g, const engine_profile *p, uint32_t id)
{
    return g->step[id].kind == STEP_KERNEL && strcmp(engine_step_where(g, p, id), "device") == 0;
}

/* By input and output: the places of its storages in the first profile, as bits. NULL without memory. */
static uint8_t *places_of(const engine *g, arena *a)
{
    const engine_profile *p = &g->profile[0];
    uint8_t *places = ARENA_NEW(a, uint8_t, g->io_count);
    for (uint32_t i = 1; places && i < p->storage_count; i++) {
        const engine_storage *s = &g->storage[p->storage_first + i];
        if (s->kind == STORAGE_INPUT || s->kind == STORAGE_OUTPUT) places[s->at] |= (uint8_t)(1u << s->place);
    }
    return places;
}

uint32_t engine_program_count(const engine *g, uint32_t profile)
{
    const engine_profile *p = &g->profile[profile];
    uint32_t count = 0;
    for (uint32_t r = 1; r < p->region_count; r++) {
        const engine_region *x = &g->region[p->region_first + r];
        int last = -1;
        for (uint32_t i = 0; i < x->step_count; i++) {
            const uint32_t id = p->step_first + x->step_at + i;
            const int kind = is_program(g, p, id) ? g->code[id].is_late : -1;
            count += kind >= 0 && kind != last;
            last = kind;
        }
    }
    return count;
}

/* ---- branches ---- */

static const char *order_name(const engine_profile *p)
{
    static const char *const names[ORDER_COUNT] = { "off", "small", "all" };
    return names[p->order];
}

/* What a step waits for: [edge, edge + count) of the edges. */
typedef struct step_after {
    uint32_t program; /* 1 + the first step of its program; 0: none that may have branches */
    uint32_t edge, count;
} step_after;

typedef struct after {
    arena a;
    order_edges edges; /* of all programs, by the step that waits */
    step_after *of;    /* by step; NULL: there are no branches */
} after;

static bool is_early_program(const engine *g, const engine_profile *p, uint32_t step)
{
    return is_program(g, p, p->step_first + step) && !g->code[p->step_first + step].is_late;
}

/* Adds those of the program of steps [first, end). */
static void after_add(after *x, env *e, const engine *g, uint32_t profile, uint32_t first, uint32_t end)
{
    const uint32_t before = x->edges.count;
    if (engine_waits(e, g, profile, first, end - first, &x->a, &x->edges) != SINTER_OK) {
        x->edges.count = before;
        return;
    }
    for (uint32_t i = first; i < end; i++) x->of[i].program = first + 1;
    for (uint32_t k = before; k < x->edges.count; k++) {
        step_after *s = &x->of[x->edges.at[k].to];
        if (!s->count++) s->edge = k;
    }
}

/* Each program by itself. What does not fit into memory is not shown. */
static void after_init(after *x, const engine *g, uint32_t profile, const text *out)
{
    const engine_profile *p = &g->profile[profile];
    env quiet = *out->e;
    quiet.error = &quiet.error_own;
    *x = (after){ 0 };
    arena_init(&x->a, out->e);
    if (p->order == ORDER_CHAIN || !g->backend->copy) return;
    x->of = ARENA_NEW(&x->a, step_after, p->step_count);
    for (uint32_t r = 1; r < p->region_count && x->of; r++) {
        const engine_region *from = &g->region[p->region_first + r];
        const uint32_t last = from->step_at + from->step_count;
        for (uint32_t first = from->step_at, end; first < last; first = end) {
            end = first + 1;
            if (!is_early_program(g, p, first)) continue;
            while (end < last && is_early_program(g, p, end)) end++;
            if (end - first > 1 && end - first <= ORDER_WORKS_MAX) after_add(x, &quiet, g, profile, first, end);
        }
    }
}

/* Said where it is not the step before. */
static void print_after(const after *x, uint32_t step, text *out)
{
    const step_after s = x->of ? x->of[step] : (step_after){ 0 };
    if (!s.program || s.program == step + 1) return;
    if (s.count == 1 && x->edges.at[s.edge].from + 1 == step) return;
    text_printf(out, s.count ? " after" : " after none");
    for (uint32_t i = 0; i < s.count; i++) text_printf(out, " %u", x->edges.at[s.edge + i].from);
}

static void json_after(const after *x, uint32_t step, text *out)
{
    const step_after s = x->of ? x->of[step] : (step_after){ 0 };
    if (!s.program) return;
    text_printf(out, ",\"after\":[");
    for (uint32_t i = 0; i < s.count; i++) text_printf(out, "%s%u", i ? "," : "", x->edges.at[s.edge + i].from);
    text_append(out, "]", 1);
}

/* What a run of a device is made of: launches, and what the host does between them. */
static void print_segments(const engine *g, uint32_t profile, text *out)
{
    enum { SHOWN = 12 };
    const engine_profile *p = &g->profile[profile];
    const uint32_t count = engine_program_count(g, profile);
    uint32_t others = 0;
    text_printf(out, "  %u graph launch%s", count, count == 1 ? "" : "es");
    if (g->backend->program_time) text_printf(out, ", branches %s", order_name(p));
    for (uint32_t i = 0; i < p->step_count; i++) {
        const uint32_t id = p->step_first + i;
        if (is_program(g, p, id) || ++others > SHOWN) continue;
        const char *where = engine_step_where(g, p, id), *name = engine_text(g, g->step[id].name);
        const bool is_call = strcmp(where, "call") == 0, is_copy = !is_call && strcmp(where, "host") != 0;
        const uint32_t moved = is_copy ? g->value[p->value_first + g->arg[g->step[id].in_at]].name : 0;
        if (moved) name = engine_text(g, moved);
        text_printf(out, "%s%s '%s'", others == 1 ? "; by the host: " : ", ",
                    is_copy   ? "copy of"
                    : is_call ? "call of"
                              : "step",
                    *name ? name : engine_step_kernel(g, id));
        if (is_copy) text_printf(out, " %s", where);
    }
    if (others > SHOWN) text_printf(out, " and %u more", others - SHOWN);
    text_append(out, "\n", 1);
}

static void print_dims(const engine *g, uint32_t io, text *out)
{
    text_append(out, "[", 1);
    for (uint32_t k = 0; k < g->io[io].rank; k++)
        text_printf(out, "%s%s", k ? "," : "", g->io_text[io * SINTER_RANK_MAX + k]);
    text_append(out, "]", 1);
}

/* The numbers that an input may hold, where tables bound them. */
static void print_values(const engine *g, uint32_t io, text *out)
{
    if (!g->input || !g->io[io].is_input) return;
    const engine_input *v = &g->input[io];
    if (v->min != INT64_MIN) text_printf(out, " from %lld", (long long)v->min);
    if (v->max != INT64_MAX) text_printf(out, " to %lld", (long long)v->max);
}

static void print_steps(const engine *g, uint32_t profile, text *out)
{
    const engine_profile *p = &g->profile[profile];
    after w;
    after_init(&w, g, profile, out);
    for (uint32_t r = 1; r < p->region_count; r++) {
        const engine_region *x = &g->region[p->region_first + r];
        if (r > 1) text_printf(out, "  region %u:\n", r);
        for (uint32_t i = 0; i < x->step_count; i++) {
            const uint32_t id = p->step_first + x->step_at + i;
            text_printf(out, "  %4u %-16s ", x->step_at + i, engine_step_kernel(g, id));
            if (g->backend->copy) text_printf(out, "%-9s ", is_program(g, p, id) ? "" : engine_step_where(g, p, id));
            const size_t before = out->length;
            engine_step_tactic(g, id, out);
            for (size_t n = out->length - before; n < 14; n++) text_append(out, " ", 1);
            text_printf(out, " %s", engine_text(g, g->step[id].problem));
            if (g->step[id].region[0]) text_printf(out, " region %u", g->step[id].region[0]);
            if (g->step[id].region[1]) text_printf(out, " or %u", g->step[id].region[1]);
            print_after(&w, x->step_at + i, out);
            if (*engine_text(g, g->step[id].name)) text_printf(out, "   # %s", engine_text(g, g->step[id].name));
            text_append(out, "\n", 1);
        }
    }
    arena_deinit(&w.a);
}

static void print_states(const engine *g, text *out)
{
    for (uint32_t i = 0; i < engine_state_count(g, 0); i++) {
        sinter_io io;
        engine_state_describe(g, i, 0, &io);
        text_printf(out, "state  %s %s[", io.name, sinter_dtype_name(io.dtype));
        for (uint32_t k = 0; k < io.rank; k++) text_printf(out, "%s%s", k ? "," : "", io.dim_text[k]);
        text_append(out, "]\n", 2);
    }
    if (g->state) text_printf(out, "the states hold at most %llu rows\n", (unsigned long long)g->state->capacity);
}

static void print_sizes(const engine *g, text *out)
{
    sinter_engine_info info;
    if (engine_describe(out->e, g, &info) != SINTER_OK) {
        out->failed = true;
        return;
    }
    text_printf(out, "file %llu bytes, weights %llu", (unsigned long long)info.file_size,
                (unsigned long long)info.weights_size);
    if (info.stripped_size) text_printf(out, " (%llu stripped)", (unsigned long long)info.stripped_size);
    text_printf(out, "; a context: memory %llu, states %llu; %u steps of %u kernels in %u tactics\n",
                (unsigned long long)info.memory_size, (unsigned long long)info.state_size, info.step_count,
                info.kernel_count, info.tactic_count);
}

static void print_text(const engine *g, text *out)
{
    arena a;
    arena_init(&a, out->e);
    const uint8_t *places_at = places_of(g, &a);
    text_printf(out, "engine format %u.%u, written by sinter %s from '%s' (%u nodes)\n", g->header->major,
                g->header->minor, engine_text(g, g->notes->version), engine_text(g, g->notes->model),
                g->notes->node_count);
    text_printf(out, "built for %s, %u threads, %s\n", engine_text(g, g->notes->target), g->notes->threads,
                engine_text(g, g->notes->options));
    for (uint32_t i = 0; i < g->io_count; i++) {
        text_printf(out, "%s %s %s", g->io[i].is_input ? "input " : "output", engine_text(g, g->io[i].name),
                    sinter_dtype_name((sinter_dtype)g->io[i].dtype));
        print_dims(g, i, out);
        const uint32_t places = places_at ? places_at[i] : 0;
        if (places & 1u << PLACE_HOST) text_printf(out, places & 1u << PLACE_DEVICE ? " on both" : " on the host");
        print_values(g, i, out);
        text_append(out, "\n", 1);
    }
    print_states(g, out);
    print_sizes(g, out);
    for (uint32_t k = 0; k < g->profile_count; k++) {
        const engine_profile *p = &g->profile[k];
        sinter_profile_info info;
        if (engine_describe_profile(out->e, g, k, &info) != SINTER_OK) continue;
        text_printf(out,
                    "profile %u: %u steps in %u segments, %u regions, slab %llu bytes, workspace %zu, weights %llu, "
                    "memory %llu\n",
                    k, p->step_count, info.program_count, p->region_count - 1, (unsigned long long)p->slab_size,
                    g->workspace[k], (unsigned long long)info.weights_size, (unsigned long long)info.memory_size);
        if (g->backend->copy) print_segments(g, k, out);
        for (uint32_t i = 0; i < g->symbol_count; i++) {
            const engine_range *r = &g->range[(size_t)k * g->symbol_count + i];
            if (g->symbol[i].is_late) continue;
            text_printf(out, "  %s = %lld..%lld, opt %lld\n", engine_text(g, g->symbol[i].name), (long long)r->min,
                        (long long)r->max, (long long)r->opt);
        }
        print_steps(g, k, out);
    }
    arena_deinit(&a);
}

/* ---- JSON ---- */

void engine_json_text(text *out, const char *s)
{
    text_append(out, "\"", 1);
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') {
            text_printf(out, "\\%c", c);
        } else if (c < 0x20) {
            text_printf(out, "\\u%04x", c);
        } else {
            text_append(out, s, 1);
        }
    }
    text_append(out, "\"", 1);
}

static void json_field(text *out, const char *name, const char *value, bool more)
{
    engine_json_text(out, name);
    text_append(out, ":", 1);
    engine_json_text(out, value);
    if (more) text_append(out, ",", 1);
}

static void json_steps(const engine *g, uint32_t profile, text *out)
{
    const engine_profile *p = &g->profile[profile];
    after w;
    after_init(&w, g, profile, out);
    const uint32_t *names = engine_storage_names(g, profile, &w.a);
    for (uint32_t i = 0; i < p->step_count; i++) {
        const uint32_t id = p->step_first + i;
        text_append(out, i ? ",\n{" : "\n{", i ? 3 : 2);
        json_field(out, "kernel", engine_step_kernel(g, id), true);
        json_field(out, "where", engine_step_where(g, p, id), true);
        text t;
        text_init(&t, out->e);
        engine_step_tactic(g, id, &t);
        json_field(out, "tactic", t.length && !t.failed ? t.at : "", true);
        text_deinit(&t);
        json_field(out, "problem", engine_text(g, g->step[id].problem), true);
        json_field(out, "name", engine_text(g, g->step[id].name), false);
        json_after(&w, i, out);
        engine_print_tensors(g, profile, id, names, out);
        text_append(out, "}", 1);
    }
    arena_deinit(&w.a);
}

static void json_states(const engine *g, text *out)
{
    text_printf(out, "\"states\":[");
    for (uint32_t i = 0; i < engine_state_count(g, 0); i++) {
        sinter_io io;
        engine_state_describe(g, i, 0, &io);
        text_append(out, i ? ",\n{" : "\n{", i ? 3 : 2);
        json_field(out, "name", io.name, true);
        json_field(out, "dtype", sinter_dtype_name(io.dtype), true);
        text_append(out, "\"dims\":[", 8);
        for (uint32_t k = 0; k < io.rank; k++) {
            if (k) text_append(out, ",", 1);
            engine_json_text(out, io.dim_text[k]);
        }
        text_append(out, "]}", 2);
    }
    text_printf(out, "],\"capacity\":%llu,", (unsigned long long)(g->state ? g->state->capacity : 0));
}

static void json_sizes(const engine *g, text *out)
{
    sinter_engine_info info;
    if (engine_describe(out->e, g, &info) != SINTER_OK) out->failed = true;
    text_printf(out,
                "\"weight_bytes\":%llu,\"stripped_bytes\":%llu,\"memory_bytes\":%llu,\"state_bytes\":%llu,"
                "\"kernels\":%u,\"tactics\":%u,",
                (unsigned long long)info.weights_size, (unsigned long long)info.stripped_size,
                (unsigned long long)info.memory_size, (unsigned long long)info.state_size, info.kernel_count,
                info.tactic_count);
}

static void print_json(const engine *g, text *out)
{
    arena a;
    arena_init(&a, out->e);
    const uint8_t *places_at = places_of(g, &a);
    text_append(out, "{", 1);
    json_field(out, "version", engine_text(g, g->notes->version), true);
    json_field(out, "model", engine_text(g, g->notes->model), true);
    json_field(out, "target", engine_text(g, g->notes->target), true);
    json_field(out, "backend", g->backend->name, true);
    text_printf(out, "\"threads\":%u,\"nodes\":%u,\"file_bytes\":%zu,\"io\":[", g->notes->threads, g->notes->node_count,
                g->size);
    for (uint32_t i = 0; i < g->io_count; i++) {
        text_append(out, i ? ",\n{" : "\n{", i ? 3 : 2);
        json_field(out, "name", engine_text(g, g->io[i].name), true);
        json_field(out, "kind", g->io[i].is_input ? "input" : "output", true);
        json_field(out, "dtype", sinter_dtype_name((sinter_dtype)g->io[i].dtype), true);
        const uint32_t places = places_at ? places_at[i] : 0;
        text_printf(out, "\"places\":[%s%s%s],", places & 1u << PLACE_DEVICE ? "\"device\"" : "",
                    places == 3 ? "," : "", places & 1u << PLACE_HOST ? "\"host\"" : "");
        text_append(out, "\"dims\":[", 8);
        for (uint32_t k = 0; k < g->io[i].rank; k++) {
            if (k) text_append(out, ",", 1);
            engine_json_text(out, g->io_text[i * SINTER_RANK_MAX + k]);
        }
        text_append(out, "]", 1);
        if (g->input && g->io[i].is_input && g->input[i].min != INT64_MIN)
            text_printf(out, ",\"min\":%lld", (long long)g->input[i].min);
        if (g->input && g->io[i].is_input && g->input[i].max != INT64_MAX)
            text_printf(out, ",\"max\":%lld", (long long)g->input[i].max);
        text_append(out, "}", 1);
    }
    text_append(out, "],", 2);
    json_states(g, out);
    json_sizes(g, out);
    text_append(out, "\"profiles\":[", 12);
    for (uint32_t k = 0; k < g->profile_count; k++) {
        sinter_profile_info info = { 0 };
        if (engine_describe_profile(out->e, g, k, &info) != SINTER_OK) out->failed = true;
        text_printf(out,
                    "%s\n{\"slab_bytes\":%llu,\"host_slab_bytes\":%llu,\"workspace_bytes\":%llu,\"weight_bytes\":%llu,"
                    "\"memory_bytes\":%llu,\"segments\":%u,\"branches\":\"%s\",",
                    k ? "," : "", (unsigned long long)info.slab_size, (unsigned long long)info.host_slab_size,
                    (unsigned long long)info.workspace_size, (unsigned long long)info.weights_size,
                    (unsigned long long)info.memory_size, info.program_count, order_name(&g->profile[k]));
        engine_print_slab(g, k, out);
        text_printf(out, "\"steps\":[");
        json_steps(g, k, out);
        text_append(out, "]}", 2);
    }
    text_append(out, "]}\n", 3);
    arena_deinit(&a);
}

void engine_print(const engine *g, bool json, text *out)
{
    if (json) {
        print_json(g, out);
    } else {
        print_text(g, out);
    }
}
