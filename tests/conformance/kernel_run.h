/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_run.h - one problem on one kernel of the CPU, between guards, compared with the reference. */
#ifndef KERNEL_RUN_H
#define KERNEL_RUN_H

#include "case_rig.h"

#include "cpu/isa.h"

/* chosen: the problem that k and t were chosen for; it holds the sizes of x->p. workers NULL: in this thread. NULL, or
 * what is wrong; a text that does not fit is in `why`. */
const char *kernel_run_case(case_rig *r, const kernel *k, const tactic *t, const problem *chosen, case_trial *x,
                            const parallel *workers, char *why, size_t size);

/* What isa_detect() says, asked once: in a virtual machine that takes longer than a case. */
isa_choice kernel_machine(void);
/* Kernels of matrix registers alone take no problem on a machine without. */
bool kernel_is_for_machine(const kernel *k);

/* Instruction sets that differ by features alone give many of the same tactics, which one run of each covers. Leaves in
 * `list` what is not in `before`, which becomes the whole list. */
void kernel_new_tactics(tactic_sink *list, tactic_sink *before);

#endif
