/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_kernels.h - the CPU's list of kernels, best first; the reference is last. */
#ifndef CPU_KERNELS_H
#define CPU_KERNELS_H

#include "backend/kernel.h"

#define KERNEL(name) extern const kernel name;
#include "cpu/cpu_kernels.def"
#undef KERNEL
extern const kernel *const cpu_kernels[];
extern const uint32_t cpu_kernels_count;

/* A hash of all sources that decide how long a kernel takes, for the timing cache. */
const char *cpu_kernel_hash(const kernel *k);

#endif
