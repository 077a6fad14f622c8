/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_call.c - the functions of a plugin, called from the op table and from kernels: types, layouts, workspace, and
 * the reference, which calls the plugin itself on dense copies. */
#include "ops/plugin.h"

#include "core/dim_range.h"
#include "ops/excite.h"

#include <string.h>

sinter_status plugin_failed(env *e, const sinter_plugin *plugin, sinter_status s, const char *what, char *error)
{
    error[PLUGIN_ERROR_SIZE - 1] = 0;
    if (s <= SINTER_OK || s > SINTER_CANCELLED) s = SINTER_INTERNAL;
    return env_fail(e, s, __FILE__, __LINE__, "plugin '%s' version '%s' %s%s%.400s", plugin->name, plugin->version,
                    what, error[0] ? ": " : "", error);
}

static sinter_status check_count(env *e, const sinter_plugin *p, const char *what, uint32_t count, uint32_t min,
                                 uint32_t max)
{
    if (count >= min && count <= max) return SINTER_OK;
    return FAIL(e, INVALID_MODEL, "plugin '%s' has %u to %u %s, the node has %u", p->name, min, max, what, count);
}

/* ---- shapes ---- */

static void operand_of(const infer_ctx *c, const infer_value *v, problem_operand *out)
{
    *out = (problem_operand){ .dtype = v->dtype, .rank = (uint8_t)v->rank };
    for (uint32_t i = 0; i < v->rank; i++) {
        out->order[i] = (uint8_t)i;
        out->dim[i] = dim_range_of(c->dims, v->dim[i]);
    }
}

/* Does the plugin take these types, row-major? */
static sinter_status check_types(infer_ctx *c, const plugin_use *u)
{
    problem_operand in[PLUGIN_OPERANDS_MAX], out[PLUGIN_OPERANDS_MAX];
    const problem p = {
        .op = c->op, .count_in = c->count_in, .count_out = c->count_out, .in = in, .out = out, .plugin = u
    };
    for (uint32_t i = 0; i < c->count_in; i++) operand_of(c, &c->in[i], &in[i]);
    for (uint32_t i = 0; i < c->count_out; i++) operand_of(c, &c->out[i], &out[i]);
    plugin_problem x;
    plugin_problem_init(&x, &p);
    if (!u->plugin->supports || u->plugin->supports(&x.p)) return SINTER_OK;
    char words[256] = "";
    size_t at = 0;
    for (uint32_t i = 0; i < c->count_in + c->count_out && at + 24 < sizeof words; i++) {
        const bool is_in = i < c->count_in;
        const char *name = sinter_dtype_name(is_in ? c->in[i].dtype : c->out[i - c->count_in].dtype);
        const char *gap = i == c->count_in ? " -> " : i ? " " : "";
        memcpy(words + at, gap, strlen(gap));
        at += strlen(gap);
        memcpy(words + at, name, strlen(name) + 1);
        at += strlen(name);
    }
    return FAIL(c->e, UNSUPPORTED, "plugin '%s' version '%s' does not take operands of the types %s", u->plugin->name,
                u->plugin->version, words);
}

sinter_status infer_plugin(infer_ctx *c)
{
    plugin_use u = { 0 };
    plugin_sizes sizes = { 0 };
    TRY(plugin_resolve(c->e, c->a, c->attrs, &u));
    TRY(check_count(c->e, u.plugin, "inputs", c->count_in, u.plugin->in_min, u.plugin->in_max));
    TRY(check_count(c->e, u.plugin, "outputs", c->count_out, u.plugin->out_min, u.plugin->out_max));
    TRY(plugin_shapes_of(c->e, c->dims, &u, c->in, c->count_in, c->out, c->count_out, &sizes));
    return check_types(c, &u);
}

/* ---- problems ---- */

static void range_of(const problem_operand *o, sinter_plugin_operand *out)
{
    *out = (sinter_plugin_operand){ .dtype = o->dtype, .rank = o->rank };
    for (uint32_t i = 0; i < o->rank; i++) {
        out->min[i] = o->dim[i].min;
        out->opt[i] = o->dim[i].opt;
        out->max[i] = o->dim[i].max;
        out->order[i] = o->order[i];
    }
}

void plugin_problem_init(plugin_problem *x, const problem *p)
{
    x->p = (sinter_plugin_problem){ .struct_size = sizeof x->p,
                                    .user = p->plugin->plugin->user,
                                    .count_field = p->plugin->plugin->count_field,
                                    .count_in = p->count_in,
                                    .count_out = p->count_out,
                                    .field = p->plugin->field,
                                    .in = x->in,
                                    .out = x->out,
                                    .error = x->error,
                                    .error_size = sizeof x->error };
    x->error[0] = 0;
    for (uint32_t i = 0; i < p->count_in; i++) range_of(&p->in[i], &x->in[i]);
    for (uint32_t i = 0; i < p->count_out; i++) range_of(&p->out[i], &x->out[i]);
}

static void size_of(const view *v, sinter_plugin_operand *out)
{
    for (uint32_t i = 0; i < v->rank && i < out->rank; i++) out->min[i] = out->opt[i] = out->max[i] = v->dim[i];
}

void plugin_problem_set(plugin_problem *x, const problem *p, const view *in, const view *out)
{
    for (uint32_t i = 0; i < p->count_in; i++) size_of(&in[i], &x->in[i]);
    for (uint32_t i = 0; i < p->count_out; i++) size_of(&out[i], &x->out[i]);
}

const char *plugin_reject(const problem *p)
{
    const sinter_plugin *plugin = p->plugin->plugin;
    if (p->count_in < plugin->in_min || p->count_in > plugin->in_max || p->count_out < plugin->out_min ||
        p->count_out > plugin->out_max)
        return "the plugin takes another number of operands";
    bool is_row_major = true;
    for (uint32_t i = 0; i < p->count_in + p->count_out; i++) {
        const problem_operand *o = i < p->count_in ? &p->in[i] : &p->out[i - p->count_in];
        if (o->dtype == SINTER_DTYPE_NONE) continue;
        if (o->is_strided) return "an operand of a plugin is not dense";
        is_row_major = is_row_major && problem_operand_is_row_major(o);
    }
    if (!plugin->supports) return is_row_major ? NULL : "the plugin takes row-major operands alone";
    plugin_problem x;
    plugin_problem_init(&x, p);
    return plugin->supports(&x.p) ? NULL : "the plugin does not take these types in these layouts";
}

bool plugin_is_bounded(const problem *p)
{
    for (uint32_t i = 0; i < p->count_in + p->count_out; i++) {
        const problem_operand *o = i < p->count_in ? &p->in[i] : &p->out[i - p->count_in];
        for (uint32_t k = 0; k < o->rank; k++)
            if (o->dim[k].max == INT64_MAX) return false;
    }
    return true;
}

size_t plugin_workspace(const problem *p)
{
    const sinter_plugin *plugin = p->plugin->plugin;
    if (!plugin->workspace) return 0;
    plugin_problem x;
    plugin_problem_init(&x, p);
    return plugin->workspace(&x.p);
}

uint32_t plugin_tactics(const problem *p, uint32_t *list, uint32_t room)
{
    const sinter_plugin *plugin = p->plugin->plugin;
    list[0] = 0;
    if (!plugin->tactics) return 1;
    plugin_problem x;
    plugin_problem_init(&x, p);
    const uint32_t count = plugin->tactics(&x.p, list, room);
    return count == 0 ? 1 : count < room ? count : room;
}

void plugin_tensor_of(const view *v, sinter_plugin_tensor *out)
{
    *out = (sinter_plugin_tensor){ .dtype = v->dtype, .rank = v->rank, .data = v->data };
    for (uint32_t i = 0; i < v->rank; i++) {
        out->dim[i] = v->dim[i];
        out->stride[i] = v->stride[i];
    }
}

/* As the attributes name it. NULL: it is not registered, or its fields cannot be read. */
void problem_resolve(arena *a, problem *p)
{
    if (p->op == OP_excite && p->attrs) (void)excite_parse(a, p->attrs, p->count_anchor, &p->middle);
    if (p->op != OP_plugin || !p->attrs) return;
    env quiet = *a->e;
    quiet.log = NULL;
    quiet.error = &quiet.error_own;
    plugin_use *u = ARENA_NEW(a, plugin_use, 1);
    p->plugin = u && plugin_resolve(&quiet, a, p->attrs, u) == SINTER_OK ? u : NULL;
}

sinter_status problem_need(env *e, arena *a, const problem *p)
{
    plugin_use u;
    return p->op == OP_plugin && !p->plugin ? plugin_resolve(e, a, p->attrs, &u) : SINTER_OK;
}

/* ---- the reference ---- */

static void serial(const void *pool, uint32_t count, sinter_plugin_body_fn body, void *arg)
{
    (void)pool;
    if (count) body(arg, 0, count);
}

/* A dense row-major copy, or the view itself. */
static sinter_status dense(ref_call *c, const view *v, bool is_in, view *out)
{
    *out = *v;
    if (v->dtype == SINTER_DTYPE_NONE || view_is_dense(v)) return SINTER_OK;
    sinter_tensor t = { .dtype = v->dtype, .rank = v->rank };
    memcpy(t.dim, v->dim, sizeof t.dim);
    void *data = arena_alloc(c->scratch, sinter_tensor_size(&t), 64);
    if (!data || !view_init(out, v->dtype, v->rank, v->dim, data)) return FAIL_MEMORY(c->e, "a plugin's operand");
    if (is_in) view_copy(out, v);
    return SINTER_OK;
}

/* The problem of these views. */
static void problem_of(const ref_call *c, const plugin_use *u, const view *in, const view *out, problem_operand *room,
                       problem *p)
{
    *p = (problem){ .op = c->op,
                    .count_in = c->count_in,
                    .count_anchor = c->count_in,
                    .count_out = c->count_out,
                    .in = room,
                    .out = room + c->count_in,
                    .plugin = u };
    for (uint32_t i = 0; i < c->count_in + c->count_out; i++) {
        const view *v = i < c->count_in ? &in[i] : &out[i - c->count_in];
        room[i] = (problem_operand){ .dtype = v->dtype, .rank = (uint8_t)v->rank };
        for (uint32_t k = 0; k < v->rank; k++) {
            room[i].order[k] = (uint8_t)k;
            room[i].dim[k] = (dim_range){ v->dim[k], v->dim[k], v->dim[k], v->dim[k] > 0 ? v->dim[k] : 1 };
        }
    }
}

static sinter_status run_on(ref_call *c, const plugin_use *u, const problem *p, const view *in, const view *out)
{
    const sinter_plugin *plugin = u->plugin;
    sinter_plugin_tensor tensor[2 * PLUGIN_OPERANDS_MAX];
    for (uint32_t i = 0; i < c->count_in; i++) plugin_tensor_of(&in[i], &tensor[i]);
    for (uint32_t i = 0; i < c->count_out; i++) plugin_tensor_of(&out[i], &tensor[c->count_in + i]);
    plugin_problem *x = ARENA_NEW(c->scratch, plugin_problem, 1);
    if (!x) return FAIL_MEMORY(c->e, "a plugin's call");
    plugin_problem_init(x, p);
    const size_t size = plugin_workspace(p);
    uint32_t tactic = 0;
    (void)plugin_tactics(p, &tactic, 1);
    sinter_plugin_run r = { .struct_size = sizeof r,
                            .user = plugin->user,
                            .count_field = plugin->count_field,
                            .count_in = c->count_in,
                            .count_out = c->count_out,
                            .field = u->field,
                            .in = tensor,
                            .out = tensor + c->count_in,
                            .workspace = size ? arena_alloc(c->scratch, size, 64) : NULL,
                            .workspace_size = size,
                            .tactic = tactic,
                            .parallel = serial };
    if (size && !r.workspace)
        return NOTE(c->e, FAIL_MEMORY(c->e, "a plugin's workspace"),
                    "running plugin '%s' version '%s', which wants %zu bytes", plugin->name, plugin->version, size);
    x->p.allocator = &c->e->alloc;
    sinter_status s = plugin->create ? plugin->create(&x->p, &r.state) : SINTER_OK;
    if (s) return plugin_failed(c->e, plugin, s, "cannot make its state", x->error);
    s = plugin_run(c->e, c->scratch, plugin, &r);
    if (plugin->destroy) plugin->destroy(plugin->user, r.state);
    return s;
}

sinter_status reference_plugin(ref_call *c)
{
    plugin_use u = { 0 };
    TRY(plugin_resolve(c->e, c->scratch, c->attrs, &u));
    TRY(check_count(c->e, u.plugin, "inputs", c->count_in, u.plugin->in_min, u.plugin->in_max));
    TRY(check_count(c->e, u.plugin, "outputs", c->count_out, u.plugin->out_min, u.plugin->out_max));
    if (!u.plugin->run)
        return FAIL(c->e, UNSUPPORTED, "plugin '%s' version '%s' has no function for the CPU", u.plugin->name,
                    u.plugin->version);
    view in[PLUGIN_OPERANDS_MAX], out[PLUGIN_OPERANDS_MAX];
    problem_operand room[2 * PLUGIN_OPERANDS_MAX];
    for (uint32_t i = 0; i < c->count_in; i++) TRY(dense(c, &c->in[i], true, &in[i]));
    for (uint32_t i = 0; i < c->count_out; i++) TRY(dense(c, &c->out[i], false, &out[i]));
    problem p;
    problem_of(c, &u, in, out, room, &p);
    const char *why = plugin_reject(&p);
    if (why) return FAIL(c->e, UNSUPPORTED, "plugin '%s' version '%s': %s", u.plugin->name, u.plugin->version, why);
    TRY(run_on(c, &u, &p, in, out));
    for (uint32_t i = 0; i < c->count_out; i++)
        if (out[i].data != c->out[i].data) view_copy(&c->out[i], &out[i]);
    return SINTER_OK;
}
