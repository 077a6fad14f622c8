/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_row_plugin.c - a plugin's own kernel, compiled from its text. The plugin says for each shape how it is launched.
 */
#include "backend/plugin_row.h"

#include "cuda/cuda_kernels.h"

#include "cuda/device/plugin_args.h"

#include <string.h>

_Static_assert((int)PLUGIN_ARGS == (int)SINTER_PLUGIN_ARGS, "the kernel has as many words as the interface");

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_plugin, "not a plugin");
    REJECT_UNLESS(p->plugin, "its plugin is not registered");
    return plugin_row_reject(p, p->plugin->plugin->cuda_source != NULL, "its plugin has no CUDA source");
}

void cuda_plugin_tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    (void)t;
    uint32_t list[PLUGIN_TACTICS] = { 0 };
    const uint32_t count = plugin_tactics(p, list, PLUGIN_TACTICS);
    for (uint32_t i = 0; i < count && out->count < PLUGIN_TACTICS; i++) {
        tactic x = { 0 };
        memcpy(x.at, &list[i], sizeof list[i]);
        out->at[out->count++] = x;
    }
}

uint32_t cuda_plugin_number(const tactic *t)
{
    uint32_t number;
    memcpy(&number, t->at, sizeof number);
    return number;
}

bool cuda_plugin_check(const problem *p, const tactic *t)
{
    static const tactic_field number = { .size = 4, .most = UINT32_MAX };
    return fields_hold(&number, 1, t) && plugin_row_has_tactic(p, cuda_plugin_number(t));
}

void cuda_plugin_print(const tactic *t, text *out)
{
    text_printf(out, "%u", cuda_plugin_number(t));
}

double cuda_plugin_cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    return cuda_cost_ns(target, cuda_problem_bytes(p), 0);
}

static bool cuda_plugin_code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index,
                             cuda_code *c)
{
    (void)t, (void)target;
    if (index) return false;
    const sinter_plugin *plugin = p->plugin->plugin;
    c->source = "plugin.cu";
    c->entry = "plugin";
    c->may_spill = true;
    text_printf(c->generated, "#define PLUGIN_KERNEL %s\n#line 1 \"plugin %s\"\n", plugin->cuda_kernel, plugin->name);
    text_append(c->generated, plugin->cuda_source, strlen(plugin->cuda_source));
    text_append(c->generated, "\n", 1);
    return true;
}

static sinter_status put(env *e, const problem *p, cuda_record *r, struct plugin_args *to, uint32_t i,
                         const sinter_plugin_arg *from)
{
    const float single = (float)from->real;
    const size_t at = offsetof(struct plugin_args, at) + i * sizeof to->at[0];
    switch (from->kind) {
    case SINTER_PLUGIN_ARG_IN:
        if (from->index >= p->count_in) break;
        cuda_patch_add(r, to, at, PATCH_IN, from->index, 0);
        return SINTER_OK;
    case SINTER_PLUGIN_ARG_OUT:
        if (from->index >= p->count_out) break;
        cuda_patch_add(r, to, at, PATCH_OUT, from->index, 0);
        return SINTER_OK;
    case SINTER_PLUGIN_ARG_WORKSPACE: cuda_patch_add(r, to, at, PATCH_WORKSPACE, 0, 0); return SINTER_OK;
    case SINTER_PLUGIN_ARG_INT: to->at[i] = (address)from->integer; return SINTER_OK;
    case SINTER_PLUGIN_ARG_F32: memcpy(&to->at[i], &single, sizeof single); return SINTER_OK;
    case SINTER_PLUGIN_ARG_F64: memcpy(&to->at[i], &from->real, sizeof from->real); return SINTER_OK;
    }
    return FAIL(e, INVALID_ARG, "plugin '%s' gives its kernel argument %u of kind %d and index %u",
                p->plugin->plugin->name, i, (int)from->kind, from->index);
}

static sinter_status cuda_plugin_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                                      const view *out, void *record)
{
    (void)attrs;
    cuda_record *r = record;
    const sinter_plugin *plugin = p->plugin->plugin;
    plugin_problem x;
    sinter_plugin_launch l = {
        .struct_size = sizeof l, .tactic = cuda_plugin_number(t), .grid = { 1, 1, 1 }, .block = 1
    };
    plugin_problem_init(&x, p);
    plugin_problem_set(&x, p, in, out);
    const sinter_status s = plugin->cuda_launch(&x.p, &l);
    if (s) return plugin_failed(e, plugin, s, "cannot be launched", x.error);
    if (l.count_arg > SINTER_PLUGIN_ARGS || !l.block || l.block > 1024)
        return FAIL(e, INVALID_ARG,
                    "plugin '%s' launches blocks of %u threads with %u arguments: 1 to 1024 and at most %d",
                    plugin->name, l.block, l.count_arg, SINTER_PLUGIN_ARGS);
    struct plugin_args *to;
    TRY(NOTE(e, cuda_launch_begin(e, r, 0, l.grid[0], l.grid[1], l.grid[2], l.block, l.shared, sizeof *to, &to),
             "launching plugin '%s'", plugin->name));
    for (uint32_t i = 0; i < l.count_arg; i++) TRY(put(e, p, r, to, i, &l.arg[i]));
    return SINTER_OK;
}

CUDA_ROW(cuda_plugin, 1, reject, cuda_plugin_, .workspace = plugin_row_workspace);
