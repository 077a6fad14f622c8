/* SPDX-License-Identifier: Apache-2.0 */
/* act_plain.c - activations for this instruction set: the text is in act.inc.h. */
#include "cpu/act.h"
#include <math.h>
#include "cpu/simd_plain.h"
#include "cpu/act.inc.h"
