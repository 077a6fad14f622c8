/* SPDX-License-Identifier: Apache-2.0 */
/* wgmma_staged.cuh - how wgmma.cu writes results by tensor copies.
 *
 * Each warp has 16 rows of results. It writes them to shared memory, one strip of columns after another, and one copy
 * takes a strip to memory, in whole lines of 128 bytes where columns allow it. An operand that moves with the rows (a
 * residual) comes the same way, some strips ahead; each result is written where its residual was.
 *
 * Beside what wgmma.cu lists: STAGED, bytes of an element of the result; RESIDUAL, 1 where there is such an operand. */
#ifndef WGMMA_STAGED_CUH
#define WGMMA_STAGED_CUH

enum { ROW_BYTES = BN * STAGED, STRIP = ROW_BYTES % 128 == 0 ? 128 : ROW_BYTES % 64 == 0 ? 64 : 32 };
enum { STRIP_COLUMNS = STRIP / STAGED, STRIP_PASSES = STRIP_COLUMNS / 32, STRIPS = ROW_BYTES / STRIP };
/* Strips of a tile, slots of a warp, and how many strips ahead residuals come, each at a barrier of its slot. */
enum { OF_TILE = ATOMS * STRIPS, SLOTS = RESIDUAL && OF_TILE > 2 ? OF_TILE : 2 };
enum { SLOT = 16 * STRIP, STAGED_BYTES = 4 * LINES * SLOTS * SLOT };
enum { AHEAD = RESIDUAL ? SLOTS - 1 : 0, ARRIVALS = RESIDUAL ? 4 * LINES * SLOTS : 0 };

/* What a warp knows of its slots: where they are, its barriers, where in a slot its lane's first 8 elements are; which
 * slot is next, and the parity of its barrier. */
struct staging { u8 *slots; u32 at, arrived, lane_at, slot, parity; };

DEVICE staging staging_of(u8 *shared, u32 base, u32 barriers, u32 warp, u32 lane)
{
    const u32 unit = lane % 4 * STAGED / 2, moved = lane / 4 / (128 / STRIP) % (STRIP / 16);
    staging g;
    g.slots = shared + warp * SLOTS * SLOT;
    g.at = base + warp * SLOTS * SLOT;
    g.arrived = barriers + 8 * warp * SLOTS;
    g.lane_at = lane / 4 * STRIP + (unit ^ moved) * 16 + (STAGED == 1 ? lane % 2 * 8 : 0);
    g.slot = g.parity = 0;
    return g;
}

/* Where the lane's 8 elements of pass q are, 8 k rows below. Tensor copies exchange the units of 16 bytes of a row by an
 * exclusive or with bits of the row's number (CU_TENSOR_MAP_SWIZZLE_*), so that of pass q is another one. */
DEVICE u8 *staging_place(const staging &g, int q, int k)
{
    return g.slots + g.slot * SLOT + 8 * k * STRIP + (g.lane_at ^ (u32)q * 32 * STAGED);
}

DEVICE void staging_turn(staging &g)
{
    if (++g.slot == SLOTS) g.slot = 0, g.parity ^= 1;
}

/* Strip s of the rows of tile p that begin `row` below its first: one lane asks for its residual, or sends it off. */
DEVICE void staging_fetch(const wgmma_args &a, const staging &g, u32 slot, int s, i32 row, const place &p)
{
    const u32 bar = g.arrived + 8 * slot, to = g.at + slot * SLOT;
    const i32 column = p.n + s % STRIPS * STRIP_COLUMNS, line = p.m + row + s / STRIPS * 64;
    barrier_expect(bar, SLOT);
#if BATCHED
    copy_tensor(to, (const tensor_map *)a.map_r, bar, column, line, p.z);
#else
    copy_tensor(to, (const tensor_map *)a.map_r, bar, column, line);
#endif
}
DEVICE void staging_send(const wgmma_args &a, const staging &g, int s, i32 row, const place &p)
{
    const u32 from = g.at + g.slot * SLOT;
    const i32 column = p.n + s % STRIPS * STRIP_COLUMNS, line = p.m + row + s / STRIPS * 64;
#if BATCHED
    copy_out(from, (const tensor_map *)a.map_d, column, line, p.z);
#else
    copy_out(from, (const tensor_map *)a.map_d, column, line);
#endif
    copies_out_commit();
}

#endif
