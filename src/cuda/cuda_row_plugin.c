/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_row_plugin.c - a plugin's own kernel, compiled from its text. The plugin says for each shape how it is launched.
 */
#include "ops/plugin.h"

#include "cuda/cuda_kernels.h"

#include "cuda/device/plugin_args.h"

#include <string.h>

_Static_assert((int)PLUGIN_ARGS == (int)SINTER_PLUGIN_ARGS, "the kernel has as many words as the interface");

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_plugin, "not a plugin");
    REJECT_UNLESS(p->plugin, "its plugin is not registered");
    REJECT_UNLESS(p->plugin->plugin->cuda_source, "its plugin has no CUDA source");
    REJECT_UNLESS(!p->plugin->plugin->workspace || plugin_is_bounded(p),
                  "its plugin wants a workspace, and a size has no upper bound");
    return plugin_reject(p);
}

enum { TACTICS = COUNT_OF(((tactic_sink *)0)->at) };

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    (void)t;
    uint32_t list[TACTICS] = { 0 };
    const uint32_t count = plugin_tactics(p, list, TACTICS);
    for (uint32_t i = 0; i < count && out->count < TACTICS; i++) {
        tactic x = { 0 };
        memcpy(x.at, &list[i], sizeof list[i]);
        out->at[out->count++] = x;
    }
}

static uint32_t number_of(const tactic *t)
{
    uint32_t number;
    memcpy(&number, t->at, sizeof number);
    return number;
}

static bool check(const problem *p, const tactic *t)
{
    const tactic none = { 0 };
    uint32_t list[TACTICS] = { 0 };
    if (memcmp(t->at + 4, none.at + 4, sizeof none - 4) != 0) return false;
    const uint32_t count = plugin_tactics(p, list, TACTICS);
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == number_of(t)) return true;
    return false;
}

static void print(const tactic *t, text *out)
{
    text_printf(out, "%u", number_of(t));
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    return cuda_cost_ns(target, cuda_problem_bytes(p), 0);
}

static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    (void)t, (void)threads;
    return plugin_workspace(p);
}

static bool code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
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

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *record)
{
    (void)attrs;
    cuda_record *r = record;
    memset(r, 0, sizeof *r);
    const sinter_plugin *plugin = p->plugin->plugin;
    plugin_problem x;
    sinter_plugin_launch l = { .struct_size = sizeof l, .tactic = number_of(t), .grid = { 1, 1, 1 }, .block = 1 };
    plugin_problem_init(&x, p);
    plugin_problem_set(&x, p, in, out);
    const sinter_status s = plugin->cuda_launch(&x.p, &l);
    if (s) return plugin_failed(e, plugin, s, "cannot be launched", x.error);
    if (l.count_arg > SINTER_PLUGIN_ARGS || !l.block || l.block > 1024)
        return FAIL(e, INVALID_ARG,
                    "plugin '%s' launches blocks of %u threads with %u arguments: 1 to 1024 and at most %d",
                    plugin->name, l.block, l.count_arg, SINTER_PLUGIN_ARGS);
    if (!cuda_launch_add(r, 0, l.grid[0], l.grid[1], l.grid[2], l.block, l.shared))
        return FAIL(e, UNSUPPORTED, "plugin '%s' launches a grid of %llu x %llu x %llu blocks", plugin->name,
                    (unsigned long long)l.grid[0], (unsigned long long)l.grid[1], (unsigned long long)l.grid[2]);
    struct plugin_args *to = cuda_param_add(r, sizeof *to);
    if (!to) return FAIL(e, INTERNAL, "no room for a plugin's arguments");
    for (uint32_t i = 0; i < l.count_arg; i++) TRY(put(e, p, r, to, i, &l.arg[i]));
    return SINTER_OK;
}

const cuda_kernel cuda_plugin = {
    .base = { .name = "cuda_plugin",
              .abi = 1,
              .reject = reject,
              .tactics = tactics,
              .check = check,
              .print = print,
              .cost_ns = cost_ns,
              .workspace = workspace,
              .record_size = cuda_record_size,
              .bind = bind },
    .code = code,
};
