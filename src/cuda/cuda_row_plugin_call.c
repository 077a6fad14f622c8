/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_row_plugin_call.c - a plugin's function that puts its own work on the stream, called in each run. */
#include "backend/plugin_row.h"

#include "cuda/cuda_kernels.h"

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_plugin, "not a plugin");
    REJECT_UNLESS(p->plugin, "its plugin is not registered");
    return plugin_row_reject(p, p->plugin->plugin->cuda_run != NULL, "its plugin has no function for a stream");
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    (void)attrs;
    return plugin_row_bind(e, p, cuda_plugin_number(t), true, in, out, to);
}

static void serial(const void *pool, uint32_t count, sinter_plugin_body_fn body, void *arg)
{
    (void)pool;
    if (count) body(arg, 0, count);
}

static sinter_status run(const kernel_run *k)
{
    sinter_plugin_tensor at[2 * PLUGIN_OPERANDS_MAX];
    char error[PLUGIN_ERROR_SIZE] = "";
    sinter_plugin_run call;
    const sinter_plugin *plugin = plugin_row_plugin(k->record);
    plugin_row_call(k, at, &call);
    call.stream = k->stream;
    call.parallel = serial;
    call.error = error;
    call.error_size = sizeof error;
    call.allocator = &k->e->alloc;
    const sinter_status s = plugin->cuda_run(&call);
    return s ? plugin_failed(k->e, plugin, s, "failed", error) : SINTER_OK;
}

const cuda_kernel cuda_plugin_call = {
    .base = { .name = "cuda_plugin_call",
              .abi = 1,
              .where = KERNEL_ON_STREAM,
              .reject = reject,
              .tactics = cuda_plugin_tactics,
              .check = cuda_plugin_check,
              .print = cuda_plugin_print,
              .cost_ns = cuda_plugin_cost_ns,
              .workspace = plugin_row_workspace,
              .record_size = plugin_row_record_size,
              .bind = bind,
              .unbind = plugin_row_unbind,
              .run = run },
};
