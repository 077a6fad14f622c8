/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_row_plugin.c - a plugin's own function for the CPU, in the layouts and with the tactics that the plugin names. */
#include "backend/plugin_row.h"

#include "cpu/row.h"

#include <string.h>

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_plugin, "not a plugin");
    REJECT_UNLESS(p->plugin, "its plugin is not registered");
    return plugin_row_reject(p, p->plugin->plugin->run != NULL, "its plugin has no function for the CPU");
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    (void)t;
    uint32_t list[PLUGIN_TACTICS] = { 0 };
    const uint32_t count = plugin_tactics(p, list, PLUGIN_TACTICS);
    for (uint32_t i = 0; i < count && out->count < PLUGIN_TACTICS; i++) {
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
    return plugin_row_has_tactic(p, number_of(t));
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

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    (void)attrs;
    return plugin_row_bind(e, p, number_of(t), false, in, out, to);
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
    sinter_plugin_tensor at[2 * PLUGIN_OPERANDS_MAX];
    sinter_plugin_run call;
    plugin_row_call(k, at, &call);
    call.parallel = spread;
    call.pool = k;
    return plugin_run(k->e, k->scratch, plugin_row_plugin(k->record), &call);
}

const kernel cpu_plugin = {
    .name = "cpu_plugin",
    .abi = 1,
    .reject = reject,
    .tactics = tactics,
    .check = check,
    .print = print,
    .cost_ns = cost_ns,
    .workspace = plugin_row_workspace,
    .record_size = plugin_row_record_size,
    .bind = bind,
    .unbind = plugin_row_unbind,
    .run = run,
};
