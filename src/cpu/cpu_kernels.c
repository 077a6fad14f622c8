/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_kernels.c - cpu_kernels.def as a table. */
#include "cpu/cpu_kernels.h"

const kernel *const cpu_kernels[] = {
#define KERNEL(name) &name,
#include "cpu/cpu_kernels.def"
#undef KERNEL
};
const uint32_t cpu_kernels_count = COUNT_OF(cpu_kernels);
