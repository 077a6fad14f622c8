/* SPDX-License-Identifier: Apache-2.0 */
/* level.inc.h - the loops of one instruction-set level: included once by each level_*.c after its simd_*.h.
 *
 * All names in the included texts are static and share one file, so each text needs names of its own. This file has
 * the names that several texts use. */
#include "cpu/level.h"

#include "cpu/act.h"
#include "cpu/attention.h"
#include "cpu/choose.h"
#include "cpu/codes.h"
#include "cpu/conv_planes.h"
#include "cpu/cpu_rnn.h"
#include "cpu/depthwise.h"
#include "cpu/dft.h"
#include "cpu/gemm_tile.h"
#include "cpu/group_conv.h"
#include "cpu/matmul_wide.h"
#include "cpu/plane_filter.h"
#include "cpu/probe.h"
#include "cpu/rows.h"
#include "cpu/strassen.h"
#include "cpu/trees.h"
#include "cpu/vm_chain.h"
#include "cpu/winograd.h"

#include "cpu/unroll.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { L = VEC_LANES };

#include "cpu/simd_math.inc.h"

/* The larger or the smaller one; a NaN wins. */
static inline vec nan_most(vec a, vec b) { return v_blend(v_is_nan(a), a, v_max(a, b)); }
static inline vec nan_least(vec a, vec b) { return v_blend(v_is_nan(a), a, v_min(a, b)); }

#include "cpu/act.inc.h"
#include "cpu/codes.inc.h"
#include "cpu/cpu_rnn.inc.h"
#include "cpu/depthwise_byte.inc.h"
#include "cpu/depthwise_row.inc.h"
#include "cpu/dft.inc.h"
#include "cpu/gemm_tile.inc.h"
#include "cpu/group_conv.inc.h"
#include "cpu/integer.inc.h"
#include "cpu/conv_planes.inc.h"
#include "cpu/plane_filter.inc.h"
#include "cpu/probe.inc.h"
#include "cpu/requant.inc.h"
#include "cpu/rows_image.inc.h"
#include "cpu/rows_fold.inc.h"
#include "cpu/rows_wide.inc.h"
#include "cpu/choose.inc.h"
#include "cpu/matmul_wide.inc.h"
#include "cpu/move_square.inc.h"
#include "cpu/rows_pool.inc.h"

#include "cpu/rows.inc.h"
#include "cpu/attention.inc.h"
#include "cpu/strassen.inc.h"
#include "cpu/trees.inc.h"
#include "cpu/vm_wide.inc.h"

#include "cpu/vm_ops.inc.h"
#include "cpu/winograd.inc.h"

#include "cpu/vm_chain.inc.h"

const cpu_level VEC_SUFFIX(level) = {
    .act = &act_loops,
    .gemm = &unit_set_f32,
    .unit = gemm_units,
    .rows = &rows_loops,
    .vm = &vm_loops,
    .chain = &chain_steps,
    .attention = &attention_loops,
    .choose = &choose_loops,
    .matmul_wide = &matmul_wide_loops,
    .winograd = &winograd_loops,
    .codes = &codes_loops,
    .rnn = &rnn_loops,
    .plane = &plane_loops,
    .probe = &probe_loops,
    .integer = &integer_loops,
    .strassen = &strassen_loops,
    .dft = &dft_loops,
    .trees_f32 = &trees_loops_f32,
    .trees_f64 = &trees_loops_f64,
    .depthwise = depthwise_rows_run,
    .group_conv = group_conv_row,
    .depthwise_byte = depthwise_byte_pairs,
    .requant = requant_rows,
    .squares = move_squares,
};
