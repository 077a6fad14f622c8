/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.c - kernels.def as a table. */
#include "cuda/kernels.h"

const kernel *const cuda_kernels[] = {
#define KERNEL(name) &name.base,
#include "cuda/kernels.def"
#undef KERNEL
};
const uint32_t cuda_kernels_count = COUNT_OF(cuda_kernels);
