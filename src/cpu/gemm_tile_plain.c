/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_tile_plain.c - the micro-kernels of the level "plain": the common text over this level's vectors.
 *
 * The one place besides its siblings that is compiled with flags of its own. */
#include "cpu/gemm_tile.h"
#include "cpu/vec_plain.h"

#include "cpu/gemm_tile.inc.h"
