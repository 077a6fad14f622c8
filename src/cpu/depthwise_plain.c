/* SPDX-License-Identifier: Apache-2.0 */
/* depthwise_plain.c - the depthwise row kernel of the level "plain": the common text over this level's vectors. */
#include "cpu/depthwise.h"
#include "cpu/vec_plain.h"

#include "cpu/depthwise_row.inc.h"
