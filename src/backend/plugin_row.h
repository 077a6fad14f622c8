/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_row.h - what the rows that call a plugin's function have in common, on the host or on a stream. */
#ifndef BACKEND_PLUGIN_ROW_H
#define BACKEND_PLUGIN_ROW_H

#include "backend/kernel.h"
#include "ops/plugin.h"

/* NULL, or why the plugin does not take the problem. is_there: it has the function in question. */
const char   *plugin_row_reject(const problem *p, bool is_there, const char *missing);
/* How many tactics are asked for at most; is this one of them? */
enum { PLUGIN_TACTICS = COUNT_OF(((tactic_sink *)0)->at) };
bool          plugin_row_has_tactic(const problem *p, uint32_t number);
size_t        plugin_row_workspace(const problem *p, const tactic *t, uint32_t threads);
/* A record: operands, tactic and state. is_cuda: for `cuda_run`. */
size_t        plugin_row_record_size(const problem *p, const tactic *t);
sinter_status plugin_row_bind(env *e, const problem *p, uint32_t number, bool is_cuda, const view *in, const view *out,
                              void *to);
void          plugin_row_unbind(void *from);
const sinter_plugin *plugin_row_plugin(const void *record);
/* The call of a run: all but the function, the stream and how work is spread. `at` has room for all operands. */
void          plugin_row_call(const kernel_run *k, sinter_plugin_tensor *at, sinter_plugin_run *out);

#endif
