/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_row_plugin.c - a plugin's own function for the CPU, in the layouts and with the tactics that the plugin names. */
#include "ops/plugin.h"

#include "cpu/row.h"

#include <string.h>

typedef struct record {
    const problem *p;
    uint32_t tactic;
    size_t workspace;
    void *state;
    sinter_plugin_tensor at[]; /* inputs, then results */
} record;

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_plugin, "not a plugin");
    REJECT_UNLESS(p->plugin, "its plugin is not registered");
    REJECT_UNLESS(p->plugin->plugin->run, "its plugin has no function for the CPU");
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
        row_tactic x = { .isa = ISA_PLAIN };
        memcpy(x.own, &list[i], sizeof list[i]);
        memcpy(&out->at[out->count++], &x, sizeof x);
    }
}

static uint32_t number_of(const tactic *t)
{
    uint32_t number;
    row_tactic_own(t, &number, sizeof number);
    return number;
}

static bool check(const problem *p, const tactic *t)
{
    if (!row_tactic_check(t, sizeof(uint32_t)) || row_isa(t) != ISA_PLAIN) return false;
    uint32_t list[TACTICS] = { 0 };
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
    return 500 + row_memory_ns(p, target, 4); /* unknown: the clock tells tactics apart */
}

static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    (void)t, (void)threads;
    return plugin_workspace(p);
}

static size_t record_size(const problem *p, const tactic *t)
{
    (void)t;
    return sizeof(record) + sizeof(sinter_plugin_tensor) * (p->count_in + p->count_out);
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    (void)attrs;
    record *r = to;
    const sinter_plugin *plugin = p->plugin->plugin;
    r->tactic = number_of(t);
    r->workspace = plugin_workspace(p);
    r->state = NULL;
    for (uint32_t i = 0; i < p->count_in; i++) plugin_tensor_of(&in[i], &r->at[i]);
    for (uint32_t i = 0; i < p->count_out; i++) plugin_tensor_of(&out[i], &r->at[p->count_in + i]);
    if (plugin->create) {
        plugin_problem x;
        plugin_problem_init(&x, p);
        plugin_problem_set(&x, p, in, out);
        x.p.allocator = &e->alloc;
        const sinter_status s = plugin->create(&x.p, &r->state);
        if (s) return plugin_failed(e, plugin, s, "cannot make its state", x.error);
    }
    r->p = p;
    return SINTER_OK;
}

static void unbind(void *from)
{
    record *r = from;
    if (!r->p) return;
    const sinter_plugin *plugin = r->p->plugin->plugin;
    if (plugin->destroy) plugin->destroy(plugin->user, r->state);
    r->p = NULL;
}

typedef struct job {
    sinter_plugin_body_fn body;
    void *arg;
} job;

static void job_body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    const job *j = arg;
    (void)worker;
    j->body(j->arg, begin, end);
}

static void spread(const void *pool, uint32_t count, sinter_plugin_body_fn body, void *arg)
{
    job j = { body, arg };
    row_parallel(pool, count, job_body, &j);
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    const problem *p = r->p;
    const sinter_plugin *plugin = p->plugin->plugin;
    sinter_plugin_tensor at[2 * PLUGIN_OPERANDS_MAX];
    memcpy(at, r->at, sizeof *at * (p->count_in + p->count_out));
    for (uint32_t i = 0; i < p->count_in; i++) at[i].data = k->in[i];
    for (uint32_t i = 0; i < p->count_out; i++) at[p->count_in + i].data = k->out[i];
    sinter_plugin_run call = { .struct_size = sizeof call,
                               .user = plugin->user,
                               .count_field = plugin->count_field,
                               .count_in = p->count_in,
                               .count_out = p->count_out,
                               .field = p->plugin->field,
                               .in = at,
                               .out = at + p->count_in,
                               .workspace = r->workspace ? k->workspace : NULL,
                               .workspace_size = r->workspace,
                               .state = r->state,
                               .tactic = r->tactic,
                               .parallel = spread,
                               .pool = k };
    return plugin_run(k->e, k->scratch, plugin, &call);
}

const kernel cpu_plugin = {
    .name = "cpu_plugin",
    .abi = 1,
    .reject = reject,
    .tactics = tactics,
    .check = check,
    .print = print,
    .cost_ns = cost_ns,
    .workspace = workspace,
    .record_size = record_size,
    .bind = bind,
    .unbind = unbind,
    .run = run,
};
