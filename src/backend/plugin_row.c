/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_row.c - see plugin_row.h. */
#include "backend/plugin_row.h"

#include <string.h>

typedef struct record {
    const problem *p;
    uint32_t tactic;
    size_t workspace;
    void *state;
    sinter_plugin_tensor at[]; /* inputs, then results */
} record;

const char *plugin_row_reject(const problem *p, bool is_there, const char *missing)
{
    REJECT_UNLESS(is_there, missing);
    REJECT_UNLESS(!p->plugin->plugin->workspace || plugin_is_bounded(p),
                  "its plugin wants a workspace, and a size has no upper bound");
    return plugin_reject(p);
}

bool plugin_row_has_tactic(const problem *p, uint32_t number)
{
    uint32_t list[PLUGIN_TACTICS] = { 0 };
    const uint32_t count = plugin_tactics(p, list, PLUGIN_TACTICS);
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == number) return true;
    return false;
}

size_t plugin_row_workspace(const problem *p, const tactic *t, uint32_t threads)
{
    (void)t, (void)threads;
    return plugin_workspace(p);
}

size_t plugin_row_record_size(const problem *p, const tactic *t)
{
    (void)t;
    return sizeof(record) + sizeof(sinter_plugin_tensor) * (p->count_in + p->count_out);
}

sinter_status plugin_row_bind(env *e, const problem *p, uint32_t number, bool is_cuda, const view *in, const view *out,
                              void *to)
{
    record *r = to;
    const sinter_plugin *plugin = p->plugin->plugin;
    r->p = NULL;
    r->tactic = number;
    r->workspace = plugin_workspace(p);
    r->state = NULL;
    for (uint32_t i = 0; i < p->count_in; i++) plugin_tensor_of(&in[i], &r->at[i]);
    for (uint32_t i = 0; i < p->count_out; i++) plugin_tensor_of(&out[i], &r->at[p->count_in + i]);
    if (plugin->create) {
        plugin_problem x;
        plugin_problem_init(&x, p);
        plugin_problem_set(&x, p, in, out);
        x.p.allocator = &e->alloc;
        x.p.is_cuda = is_cuda;
        const sinter_status s = plugin->create(&x.p, &r->state);
        if (s) return plugin_failed(e, plugin, s, "cannot make its state", x.error);
    }
    r->p = p;
    return SINTER_OK;
}

void plugin_row_unbind(void *from)
{
    record *r = from;
    if (!r->p) return;
    const sinter_plugin *plugin = r->p->plugin->plugin;
    if (plugin->destroy) plugin->destroy(plugin->user, r->state);
    r->p = NULL;
}

const sinter_plugin *plugin_row_plugin(const void *from)
{
    return ((const record *)from)->p->plugin->plugin;
}

void plugin_row_call(const kernel_run *k, sinter_plugin_tensor *at, sinter_plugin_run *out)
{
    const record *r = k->record;
    const problem *p = r->p;
    memcpy(at, r->at, sizeof *at * (p->count_in + p->count_out));
    for (uint32_t i = 0; i < p->count_in; i++) at[i].data = k->in[i];
    for (uint32_t i = 0; i < p->count_out; i++) at[p->count_in + i].data = k->out[i];
    *out = (sinter_plugin_run){ .struct_size = sizeof *out,
                                .user = p->plugin->plugin->user,
                                .count_field = p->plugin->plugin->count_field,
                                .count_in = p->count_in,
                                .count_out = p->count_out,
                                .field = p->plugin->field,
                                .in = at,
                                .out = at + p->count_in,
                                .workspace = r->workspace ? k->workspace : NULL,
                                .workspace_size = r->workspace,
                                .state = r->state,
                                .tactic = r->tactic };
}
