/* SPDX-License-Identifier: Apache-2.0 */
/* depthwise_avx512.c - the depthwise row kernel of the level "avx512": the common text over this level's vectors. */
#include "cpu/depthwise.h"
#include "cpu/vec_avx512.h"

#include "cpu/depthwise_row.inc.h"
