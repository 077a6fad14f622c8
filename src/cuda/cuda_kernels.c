/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_kernels.c - cuda_kernels.def as a table. */
#include "cuda/cuda_kernels.h"

const kernel *const cuda_kernels[] = {
#define KERNEL(name) &name.base,
#include "cuda/cuda_kernels.def"
#undef KERNEL
};
const uint32_t cuda_kernels_count = COUNT_OF(cuda_kernels);
