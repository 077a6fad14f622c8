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

#endif
