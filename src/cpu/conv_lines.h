/* SPDX-License-Identifier: Apache-2.0 */
/* conv_lines.h - path `lines` of convolutions. Weights are packed as on path `rows`, and the sums are the same. A tile
 * is a row of output pixels. */
#ifndef CPU_CONV_LINES_H
#define CPU_CONV_LINES_H

#include "cpu/conv.h"
#include "cpu/gemm_core.h"

/* As conv_tactic_check, of a tactic of this path. */
const char *conv_lines_check(isa_level isa, const conv_shape *s, conv_tactic t);
/* Adds those that can run the shape, GEMM_VECTORS_MAX at most. */
int conv_lines_tactics(isa_level isa, const conv_shape *s, conv_tactic *out);
size_t conv_lines_scratch_size(const conv_params *p);
int64_t conv_lines_tile_count(const conv_shape *s);
void conv_lines_run(const conv_params *p, int64_t begin, int64_t end, void *scratch, void *post_user);

#endif
