/* SPDX-License-Identifier: Apache-2.0 */
/* nonzero.cu - coordinates of the elements that are not zero, in row-major order, and how many they are. The rows behind
 * them are zeros.
 *
 * A block takes `tile` elements. -DPHASE=0 counts them; -DPHASE=1 adds the counts of the blocks before and writes. One
 * block needs phase 1 alone. Floats are zero whatever their sign. */
#include "prelude.cuh"
#include "found_args.h"

enum { EACH = 8, STRIP = BLOCK * EACH, WARPS = BLOCK / 32 };
template <int S> struct bits_of {};
template <> struct bits_of<1> { typedef u8 type; };
template <> struct bits_of<2> { typedef u16 type; };
template <> struct bits_of<4> { typedef u32 type; };
template <> struct bits_of<8> { typedef u64 type; };
typedef bits_of<SIZE>::type raw;

/* The sum of x over the warps before this one; `all`: over all. All lanes of a warp have the same x. */
DEVICE i32 before(i32 x, i32 *spare, i32 &all)
{
    sync_block();
    if (!lane_id()) spare[warp_id()] = x;
    sync_block();
    i32 lower = 0;
    all = 0;
    for (u32 w = 0; w < WARPS; w++) {
        if (w < warp_id()) lower += spare[w];
        all += spare[w];
    }
    return lower;
}

DEVICE i32 warp_sum(i32 x)
{
    for (u32 by = 16; by; by /= 2) x += shuffle_xor(x, by);
    return x;
}

DEVICE bool is_there(const non_zero_args &a, i32 i)
{
    i64 at = i;
    if (!DENSE) {
        at = 0;
        i32 rest = i, c;
#pragma unroll
        for (int k = RANK - 1; k > 0; k--) {
            divmod_fast(rest, a.axis[k].div, rest, c);
            at += c * a.axis[k].step;
        }
        at += rest * a.axis[0].step;
    }
    const raw v = ((const raw *)a.x)[at];
    return IS_FLOAT ? (raw)(v << 1) != 0 : v != 0;
}

DEVICE void put(const non_zero_args &a, i32 row, i32 i)
{
    i64 *to = (i64 *)a.rows + row * a.row_step;
    i32 rest = i, c;
#pragma unroll
    for (int k = RANK - 1; k > 0; k--) {
        divmod_fast(rest, a.axis[k].div, rest, c);
        to[k * a.column_step] = c;
    }
    to[0] = rest;
}

KERNEL void __launch_bounds__(BLOCK) non_zero(const __grid_constant__ non_zero_args a)
{
    i32 *spare = (i32 *)shared_base();
    grid_wait();
    if (TRIGGER == 1) grid_trigger();
    const i32 first = (i32)blockIdx.x * a.tile, last = smaller(first + a.tile, a.total);
    i32 at = 0, found = 0;
    if (PHASE == 1 && a.blocks > 1) {
        const i32 mine = (i32)threadIdx.x < a.blocks ? ((const i32 *)a.sums)[threadIdx.x] : 0;
        (void)before(warp_sum(threadIdx.x < blockIdx.x ? mine : 0), spare, at);
        (void)before(warp_sum(mine), spare, found);
    }
    for (i32 base = first; base < last; base += STRIP) {
        const i32 own = base + (i32)(warp_id() * 32 * EACH + lane_id());
        u32 there[EACH];
        i32 count = 0, sum;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const i32 i = own + k * 32;
            there[k] = ballot(i < last && is_there(a, i));
            count += __popc(there[k]);
        }
        i32 to = at + before(count, spare, sum);
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            if (PHASE == 1 && there[k] >> lane_id() & 1)
                put(a, to + __popc(there[k] & ((1u << lane_id()) - 1)), own + k * 32);
            to += __popc(there[k]);
        }
        at += sum;
    }
    if (PHASE == 0) {
        if (!threadIdx.x) ((i32 *)a.sums)[blockIdx.x] = at;
        return;
    }
    if (a.blocks == 1) found = at;
    for (i32 row = first + (i32)threadIdx.x; row < last; row += BLOCK)
        for (int k = 0; row >= found && k < RANK; k++)
            ((i64 *)a.rows)[row * a.row_step + k * a.column_step] = 0;
    if (!blockIdx.x && !threadIdx.x) *(i64 *)a.count = found;
}
