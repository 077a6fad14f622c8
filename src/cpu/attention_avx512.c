/* SPDX-License-Identifier: Apache-2.0 */
/* attention_avx512.c - the loops of attention for this instruction set: the text is in attention.inc.h. */
#include <math.h>
#include <stdbool.h>

#include "cpu/simd_avx512.h"
#include "cpu/attention.inc.h"
