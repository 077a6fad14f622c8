/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_row_reference.c - the last row: any problem, on the host, by the reference of its op. Its operands lie in host
 * memory, so copies stand around it, and `inspect` shows them. */
#include "backend/reference.h"
#include "cuda/cuda_kernels.h"

const cuda_kernel cuda_reference = {
    .base = { .name = "cuda_reference",
              .abi = 1,
              .out_strides = STRIDES_ANY,
              .where = KERNEL_ON_HOST,
              REFERENCE_FUNCTIONS },
};
