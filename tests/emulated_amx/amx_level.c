/* SPDX-License-Identifier: Apache-2.0 */
/* amx_level.c - the micro-kernels by matrix registers, on emulated ones. A program that links this file has them in
 * place of the library's own, on every machine with AVX-512. */
#include "amx.h"

#define EMULATED_AMX 1
#include "cpu/level_avx512_amx.c"
