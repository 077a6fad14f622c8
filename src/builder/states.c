/* SPDX-License-Identifier: Apache-2.0 */
/* states.c - names and patterns of states, and the pairs of a graph that they name. */
#include "builder/states.h"

#include <string.h>

bool states_match(const char *pattern, const char *name, const char **star, size_t *length)
{
    const char *at = strchr(pattern, '*');
    const size_t before = at ? (size_t)(at - pattern) : strlen(pattern), after = at ? strlen(at + 1) : 0,
                 size = strlen(name);
    if (star) *star = name + before;
    if (length) *length = size - before - after;
    if (!at) return strcmp(pattern, name) == 0;
    return size >= before + after && !memcmp(pattern, name, before) && !memcmp(at + 1, name + size - after, after);
}

static uint32_t stars(const char *at)
{
    uint32_t count = 0;
    for (; *at; at++) count += *at == '*';
    return count;
}

sinter_status states_check(env *e, const sinter_build_options *o)
{
    if (o->state_count && !o->state) return FAIL(e, INVALID_ARG, "%u states at NULL", o->state_count);
    if (o->equal_count && !o->equal) return FAIL(e, INVALID_ARG, "%u equal sizes at NULL", o->equal_count);
    for (uint32_t i = 0; i < o->equal_count; i++)
        if (!o->equal[i].dim || !o->equal[i].equals) return FAIL(e, INVALID_ARG, "equal size %u is NULL", i);
    for (uint32_t i = 0; i < o->state_count; i++) {
        const sinter_state *s = &o->state[i];
        if (!s->input || !s->output || !*s->input || !*s->output)
            return FAIL(e, INVALID_ARG, "state %u names no input or no output", i);
        if (stars(s->input) > 1 || stars(s->input) != stars(s->output))
            return FAIL(e, INVALID_ARG, "state %u is '%s' and '%s': expected one '*' in both, or in neither", i,
                        s->input, s->output);
    }
    if (o->state_count && (o->allow & SINTER_ALLOW_INT8))
        return FAIL(e, UNSUPPORTED,
                    "products in 8 bits are allowed in a model with a state: expected fp16, bf16 or tf32");
    return SINTER_OK;
}

/* The result that belongs to the parameter; 0: its name fits no pair. */
static sinter_status partner_of(env *e, const ir_graph *g, const sinter_build_options *o, const char *input,
                                ir_value_id *out)
{
    const ir_region *main = ir_region_at(g, IR_MAIN);
    *out = 0;
    for (uint32_t i = 0; i < o->state_count; i++) {
        const char *star;
        size_t length;
        if (!states_match(o->state[i].input, input, &star, &length)) continue;
        for (uint32_t k = 0; k < main->result.count; k++) {
            const char *name = ir_value_at(g, main->result.at[k])->name, *part;
            size_t size;
            if (!name || !states_match(o->state[i].output, name, &part, &size)) continue;
            if (stars(o->state[i].input) && (size != length || memcmp(star, part, size) != 0)) continue;
            *out = main->result.at[k];
            return SINTER_OK;
        }
        return FAIL(e, INVALID_ARG, "input '%s' is a state, and no output fits '%s'", input, o->state[i].output);
    }
    return SINTER_OK;
}

static bool is_in(const ir_value_id *list, uint32_t count, ir_value_id v)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == v) return true;
    return false;
}

/* Moves the values in `last` behind the others; the order within both groups stays. */
static void move_back(ir_value_list *list, const ir_value_id *last, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < list->count; i++)
        if (!is_in(last, count, list->at[i])) list->at[kept++] = list->at[i];
    for (uint32_t i = 0; i < count; i++) list->at[kept + i] = last[i];
}

sinter_status states_find(env *e, ir_graph *g, const sinter_build_options *o)
{
    if (!o->state_count) return SINTER_OK;
    ir_region *main = ir_region_at(g, IR_MAIN);
    ir_value_id *input = ARENA_NEW(&g->a, ir_value_id, main->param.count),
                *output = ARENA_NEW(&g->a, ir_value_id, main->param.count);
    uint32_t count = 0;
    if (!input || !output) return FAIL_MEMORY(e, "states");
    for (uint32_t i = 0; i < main->param.count; i++) {
        const ir_value *v = ir_value_at(g, main->param.at[i]);
        ir_value_id partner = 0;
        if (v->name) TRY(partner_of(e, g, o, v->name, &partner));
        if (!partner) continue;
        if (is_in(output, count, partner) || is_in(input, count, partner))
            return FAIL(e, INVALID_ARG, "output '%s' is the state of two inputs", ir_value_at(g, partner)->name);
        if (ir_value_at(g, partner)->dtype != v->dtype)
            return FAIL(e, INVALID_ARG, "state '%s' is %s before a run and %s after it", v->name,
                        sinter_dtype_name(v->dtype), sinter_dtype_name(ir_value_at(g, partner)->dtype));
        input[count] = main->param.at[i];
        output[count++] = partner;
    }
    if (!count) return FAIL(e, INVALID_ARG, "no input fits '%s', which is to be a state", o->state[0].input);
    move_back(&main->param, input, count);
    move_back(&main->result, output, count);
    g->states.count = count;
    g->states.capacity = (int64_t)o->capacity;
    return SINTER_OK;
}
