/* SPDX-License-Identifier: Apache-2.0 */
/* rows_plain.c - the row kernels for this instruction set: the text is in rows.inc.h. */
#include <math.h>
#include <stdbool.h>

#include "cpu/simd_plain.h"
#include "cpu/rows.inc.h"
