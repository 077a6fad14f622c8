/* SPDX-License-Identifier: Apache-2.0 */
/* reference.h - the functions of a reference row: the same for every backend, on host memory. */
#ifndef BACKEND_REFERENCE_H
#define BACKEND_REFERENCE_H

#include "backend/kernel.h"

const char   *reference_row_reject(const problem *p, const kernel_target *t);       /* NULL: it takes everything */
void          reference_row_tactics(const problem *p, const kernel_target *t, tactic_sink *out);
bool          reference_row_check(const problem *p, const tactic *t);
double        reference_row_cost_ns(const problem *p, const tactic *t, const kernel_target *target);
size_t        reference_row_record_size(const problem *p, const tactic *t);
sinter_status reference_row_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                             const view *out, void *to);
sinter_status reference_row_run(const kernel_run *k);

#define REFERENCE_FUNCTIONS                                                                             \
    .reject = reference_row_reject, .tactics = reference_row_tactics, .check = reference_row_check,                 \
    .cost_ns = reference_row_cost_ns, .record_size = reference_row_record_size, .bind = reference_row_bind,         \
    .run = reference_row_run, .updates_in_place = true

#endif
