/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.c - kernels.def as a table. */
#include "cpu/kernels.h"

const kernel *const cpu_kernels[] = {
#define KERNEL(name) &name,
#include "cpu/kernels.def"
#undef KERNEL
};
const uint32_t cpu_kernels_count = COUNT_OF(cpu_kernels);
