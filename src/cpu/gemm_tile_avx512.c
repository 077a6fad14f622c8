/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_tile_avx512.c - the micro-kernels of the level "avx512": the common text over this level's vectors.
 *
 * The one place besides its siblings that is compiled with flags of its own. */
#include "cpu/gemm_tile.h"
#include "cpu/vec_avx512.h"

#include "cpu/gemm_tile.inc.h"
