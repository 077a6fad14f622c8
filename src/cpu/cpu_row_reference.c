/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_row_reference.c - the last row: any problem, by the reference of its op. */
#include "backend/reference.h"
#include "cpu/cpu_kernels.h"

const kernel cpu_reference = { .name = "cpu_reference", .abi = 1, .out_strides = STRIDES_ANY, REFERENCE_FUNCTIONS };
