/* SPDX-License-Identifier: Apache-2.0 */
/* combine.cu - the second launch of a reduction whose lines were taken by parts: joins each line's states in order, and
 * stores. TX lines side by side, BLOCK / TX threads for each. The kept axes are all in the list here. */
#include "line.cuh"

enum { TY = BLOCK / TX };

KERNEL void __launch_bounds__(BLOCK) combine(const __grid_constant__ line_args a, const __grid_constant__ epi_args e)
{
    const i32 tx = threadIdx.x % TX, ty = threadIdx.x / TX;
    const i32 line = blockIdx.x * TX + tx;
    const bool is_live = line < a.rows;
    state *spare = (state *)shared_base();
    spot s;
    spot_kept(a, is_live ? line : 0, s);
    if (TRIGGER == 1) grid_trigger();
    grid_wait();
    state f;
    state_clear(f);
#pragma unroll 4
    for (i32 k = ty; k < (i32)a.splits.d; k += TY)
        if (is_live) f = state_join(f, ((const state *)a.part)[k * a.outputs + line]);
    spare[ty * TX + tx] = f;
    for (i32 half = TY / 2; half; half /= 2) {
        sync_block();
        if (ty < half) spare[ty * TX + tx] = f = state_join(f, spare[(ty + half) * TX + tx]);
    }
    if (ty || !is_live) return;
    acc y[1] = { finish(f, a.elements, 0, a).a };
    s.i = s.at[INNER];
    s.at[INNER] = 0;
    line_store<1>(e, s, 1, y);
}
