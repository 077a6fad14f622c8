/* SPDX-License-Identifier: Apache-2.0 */
/* attention_plain.c - the loops of attention for this instruction set: the text is in attention.inc.h. */
#include <math.h>
#include <stdbool.h>

#include "cpu/simd_plain.h"
#include "cpu/attention.inc.h"
