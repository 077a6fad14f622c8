/* SPDX-License-Identifier: Apache-2.0 */
/* depthwise_avx2.c - the depthwise row kernel of the level "avx2": the common text over this level's vectors. */
#include "cpu/depthwise.h"
#include "cpu/vec_avx2.h"

#include "cpu/depthwise_row.inc.h"
