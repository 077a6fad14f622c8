/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_kernels.h - CUDA's list of kernels, best first; the reference, which runs on the host, is last. */
#ifndef CUDA_KERNELS_H
#define CUDA_KERNELS_H

#include "cuda/launch.h"

#define KERNEL(name) extern const cuda_kernel name;
#include "cuda/cuda_kernels.def"
#undef KERNEL
extern const kernel *const cuda_kernels[];
extern const uint32_t cuda_kernels_count;

/* Tactics of plugins, by number: for the rows of both ways in which a plugin runs on a GPU. */
void     cuda_plugin_tactics(const problem *p, const kernel_target *t, tactic_sink *out);
uint32_t cuda_plugin_number(const tactic *t);
bool     cuda_plugin_check(const problem *p, const tactic *t);
void     cuda_plugin_print(const tactic *t, text *out);
double   cuda_plugin_cost_ns(const problem *p, const tactic *t, const kernel_target *target);

#endif
