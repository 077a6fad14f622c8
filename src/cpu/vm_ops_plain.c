/* SPDX-License-Identifier: Apache-2.0 */
/* vm_ops_plain.c - the loops of expression programs for this instruction set: the text is in vm_ops.inc.h. */
#include "core/dtype.h"
#include <math.h>
#include "cpu/simd_plain.h"
#include "cpu/vm_ops.inc.h"
