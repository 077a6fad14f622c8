/* SPDX-License-Identifier: Apache-2.0 */
/* rows_avx2.c - the row kernels for this instruction set: the text is in rows.inc.h. */
#include <math.h>
#include <stdbool.h>

#include "cpu/simd_avx2.h"
#include "cpu/rows.inc.h"
