/* SPDX-License-Identifier: Apache-2.0 */
/* profiles.c - ranges belong to symbols: a range for an axis of an input narrows the symbol of that axis.
 *
 * The graph is imported and optimised once, for the union of all profiles. Each profile then gets its own kernels and
 * memory. */
#include "builder/profiles.h"

#include "base/name_map.h"
#include "builder/states.h"

#include <string.h>

static sinter_status check_range(env *e, uint32_t profile, const sinter_shape_range *r)
{
    if (!r->input || r->rank > SINTER_RANK_MAX)
        return FAIL(e, INVALID_ARG, "profile %u names no input, or has rank %u (at most %d)", profile, r->rank,
                    SINTER_RANK_MAX);
    for (uint32_t k = 0; k < r->rank; k++)
        if (r->min[k] < 0 || r->min[k] > r->opt[k] || r->opt[k] > r->max[k])
            return FAIL(e, INVALID_ARG,
                        "axis %u of '%s' ranges over %lld,%lld,%lld in profile %u: expected 0 <= min <= opt <= max", k,
                        r->input, (long long)r->min[k], (long long)r->opt[k], (long long)r->max[k], profile);
    return SINTER_OK;
}

static sinter_status merge(env *e, onnx_input_shape *to, const sinter_shape_range *r)
{
    if (to->rank != r->rank)
        return FAIL(e, INVALID_ARG, "input '%s' has rank %u in one profile and %u in another", r->input, to->rank,
                    r->rank);
    for (uint32_t k = 0; k < r->rank; k++) {
        if (r->min[k] < to->min[k]) to->min[k] = r->min[k];
        if (r->max[k] > to->max[k]) to->max[k] = r->max[k];
    }
    return SINTER_OK;
}

/* The number of bytes of a text, and of entries of a map, where no profile says it: least, usual, most. */
enum { PARTS_LEAST = 1, PARTS_USUAL = 32, PARTS_MOST = 256 };

static bool counts_parts(const onnx_value_info *v, uint32_t axis)
{
    return !v->dim[axis].has_value && ((v->part == ONNX_TEXT && axis + 1 == v->rank) || v->key_type);
}

static void set_range(onnx_input_shape *s, uint32_t axis, int64_t least, int64_t usual, int64_t most)
{
    s->min[axis] = least;
    s->opt[axis] = usual;
    s->max[axis] = most;
}

/* Adds the width to a profile's shape of a text input. The shape has no width, because the model's shape has none. */
static void add_width(const onnx_value_info *v, onnx_input_shape *s)
{
    if (v->part == ONNX_TEXT && v->has_shape && v->rank == s->rank + 1)
        set_range(s, s->rank++, PARTS_LEAST, PARTS_USUAL, PARTS_MOST);
}

static onnx_input_shape *find(onnx_input_shape *list, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0) return &list[i];
    return NULL;
}

/* Is the symbol an axis of an input that a profile gives a range? */
static bool is_ranged(const onnx_model *m, onnx_input_shape *list, uint32_t count, const char *param)
{
    for (uint32_t i = 0; count && i < m->graph.in.count; i++) {
        const onnx_value_info *v = &m->graph.in.at[i];
        if (!find(list, count, v->name)) continue;
        for (uint32_t k = 0; k < v->rank && k < SINTER_RANK_MAX; k++)
            if (onnx_dim_is_named(&v->dim[k]) && strcmp(v->dim[k].param, param) == 0) return true;
    }
    return false;
}

static bool is_state(const sinter_build_options *o, const char *input)
{
    for (uint32_t i = 0; i < o->state_count; i++)
        if (states_match(o->state[i].input, input, NULL, NULL)) return true;
    return false;
}

/* Is this free axis the number of rows of states? Yes if no other input has it. */
static bool is_row_axis(const onnx_model *m, const sinter_build_options *o, const onnx_dim *d)
{
    if (d->has_value) return false;
    for (uint32_t i = 0; onnx_dim_is_named(d) && i < m->graph.in.count; i++) {
        const onnx_value_info *v = &m->graph.in.at[i];
        if (is_state(o, v->name)) continue;
        for (uint32_t k = 0; k < v->rank && k < SINTER_RANK_MAX; k++)
            if (onnx_dim_is_named(&v->dim[k]) && strcmp(v->dim[k].param, d->param) == 0) return false;
    }
    return true;
}

/* Sets the ranges of states' axes. Sizes that follow from other sizes have no range of their own, and the number of
 * rows begins at 0. */
static void range_states(const onnx_model *m, const sinter_build_options *o, const onnx_value_info *v,
                         onnx_input_shape *s)
{
    for (uint32_t k = 0; k < v->rank; k++) {
        for (uint32_t i = 0; i < o->equal_count; i++)
            if (onnx_dim_is_named(&v->dim[k]) && strcmp(v->dim[k].param, o->equal[i].dim) == 0)
                s->min[k] = s->opt[k] = s->max[k] = -1;
        if (!o->capacity || !is_state(o, v->name) || !is_row_axis(m, o, &v->dim[k])) continue;
        s->min[k] = 0;
        s->opt[k] = (int64_t)(o->capacity / 2);
        s->max[k] = (int64_t)o->capacity;
    }
}

sinter_status profiles_union(env *e, arena *a, const onnx_model *model, const sinter_build_options *o,
                             onnx_import_options *out, unranged_axis *unranged)
{
    *unranged = (unranged_axis){ 0 };
    size_t most = model->graph.in.count;
    for (uint32_t i = 0; i < o->profile_count; i++) most = size_add(most, o->profile[i].count);
    onnx_input_shape *list = ARENA_NEW(a, onnx_input_shape, most);
    if (!list) return FAIL_MEMORY(e, "profiles");
    uint32_t count = 0;
    for (uint32_t i = 0; i < o->profile_count; i++) {
        for (uint32_t k = 0; k < o->profile[i].count; k++) {
            const sinter_shape_range *r = &o->profile[i].shape[k];
            TRY(check_range(e, i, r));
            onnx_input_shape *known = find(list, count, r->input);
            if (known) {
                TRY(merge(e, known, r));
                continue;
            }
            known = &list[count++];
            *known = (onnx_input_shape){ .name = r->input, .rank = r->rank };
            memcpy(known->min, r->min, sizeof known->min);
            memcpy(known->opt, r->opt, sizeof known->opt);
            memcpy(known->max, r->max, sizeof known->max);
        }
    }
    const uint32_t given = count;
    for (uint32_t i = 0; i < model->graph.in.count; i++) {
        const onnx_value_info *v = &model->graph.in.at[i];
        onnx_input_shape *s = find(list, given, v->name);
        if (s) add_width(v, s);
        if (s && v->has_shape && v->rank == s->rank) range_states(model, o, v, s);
    }
    name_map initialized = { .a = a };
    if (!onnx_graph_initialized(&model->graph, &initialized)) return FAIL_MEMORY(e, "names");
    for (uint32_t i = 0; i < model->graph.in.count; i++) {
        const onnx_value_info *v = &model->graph.in.at[i];
        if (!v->has_shape || v->rank > SINTER_RANK_MAX || name_map_find(&initialized, v->name) ||
            find(list, given, v->name))
            continue;
        onnx_input_shape *s = &list[count];
        *s = (onnx_input_shape){ .name = v->name, .rank = v->rank };
        bool is_free = false;
        for (uint32_t k = 0; k < v->rank; k++) {
            const bool keeps = v->dim[k].has_value ||
                               (onnx_dim_is_named(&v->dim[k]) && is_ranged(model, list, given, v->dim[k].param));
            if (!keeps && counts_parts(v, k)) set_range(s, k, PARTS_LEAST, PARTS_USUAL, PARTS_MOST);
            else set_range(s, k, keeps ? -1 : 1, keeps ? -1 : 1, keeps ? -1 : 1);
            is_free = is_free || !keeps;
        }
        range_states(model, o, v, s);
        for (uint32_t k = 0; k < v->rank && !unranged->input; k++)
            if (s->min[k] == 1 && s->max[k] == 1) *unranged = (unranged_axis){ v->name, k };
        count += is_free;
    }
    out->shape = list;
    out->count_shape = count;
    return SINTER_OK;
}

/* Narrows the symbol to the range of one more axis. */
static bool narrow(dim_symbol *s, const sinter_shape_range *r, uint32_t axis, bool is_first)
{
    s->min = is_first || r->min[axis] > s->min ? r->min[axis] : s->min;
    s->max = is_first || r->max[axis] < s->max ? r->max[axis] : s->max;
    s->opt = is_first ? r->opt[axis] : s->opt;
    if (s->opt < s->min) s->opt = s->min;
    if (s->opt > s->max) s->opt = s->max;
    if (s->divisor > 1 && (s->min % s->divisor || s->max % s->divisor)) s->divisor = 1;
    return s->min <= s->max;
}

sinter_status profiles_apply(env *e, ir_graph *g, const sinter_build_options *o, uint32_t index)
{
    if (index >= o->profile_count) return SINTER_OK;
    const ir_region *main = ir_region_at(g, IR_MAIN);
    bool *is_ranged_yet = ARENA_NEW(&g->a, bool, dim_symbol_count(g->dims));
    if (!is_ranged_yet) return FAIL_MEMORY(e, "profiles");
    for (uint32_t i = 0; i < o->profile[index].count; i++) {
        const sinter_shape_range *r = &o->profile[index].shape[i];
        for (uint32_t k = 0; k < main->param.count; k++) {
            const ir_value *v = ir_value_at(g, main->param.at[k]);
            if (!v->name || strcmp(v->name, r->input) != 0 ||
                (v->rank != r->rank &&
                 v->rank != r->rank + 1)) /* text, whose width has the same range in all profiles */
                continue;
            for (uint32_t j = 0; j < r->rank; j++) {
                uint32_t symbol;
                if (!dim_symbol_of(g->dims, v->dim[j], &symbol)) continue;
                dim_symbol s = *dim_symbol_at(g->dims, symbol);
                if (!narrow(&s, r, j, !is_ranged_yet[symbol]))
                    return FAIL(e, INVALID_ARG, "the ranges of profile %u leave no value for '%s'", index, s.name);
                is_ranged_yet[symbol] = true;
                dim_symbol_set(g->dims, symbol, &s);
            }
        }
    }
    return dim_table_failed(g->dims) ? FAIL_MEMORY(e, "profiles") : SINTER_OK;
}
