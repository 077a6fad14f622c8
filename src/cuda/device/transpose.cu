/* SPDX-License-Identifier: Apache-2.0 */
/* transpose.cu - blocks of elements of SIZE bytes turned over in shared memory, so that reads run along the source's
 * innermost axes and writes along the result's, 16 bytes at once where both allow it.
 *
 * A block has three kinds of places: x, over axes that are innermost in the source; y, over axes that are innermost in
 * the result; z, over an axis that is innermost in both. It is read in the order y, x, z and written in the order x, y,
 * z. What x and y stand for is looked up in tables of steps. */
#include "copy_args.h"
#include "emit.cuh"

#define EACH (16 / SIZE)        /* elements of 16 bytes */
#define BATCH 4                 /* reads on their way at once */

/* Rows of a block begin at multiples of 4 bytes. */
DEVICE void block_put(const u32 (&w)[EMIT_WORDS(SIZE, 1)], u8 *to)
{
    if constexpr (SIZE == 8) *(u32 *)to = w[0], *(u32 *)(to + 4) = w[1];
    else emit_write<SIZE>(w, 0, to);
}

template <int N> DEVICE void block_get(u32 (&w)[N], int k, const u8 *from)
{
    if constexpr (SIZE == 8) w[2 * k] = *(const u32 *)from, w[2 * k + 1] = *(const u32 *)(from + 4);
    else emit_read<SIZE>(w, k, from);
}

/* The steps of each place of x or y. */
DEVICE void fill_table(const block_side &s, i64 *src, i64 *dst)
{
    for (i32 t = threadIdx.x; t < s.count; t += 256) {
        i32 rest = t;
        i64 from = 0, to = 0;
        for (int k = 0; k < s.axes; k++) {
            i32 line, at = rest;
            if (k + 1 < s.axes) divmod_fast(rest, s.dim[k], line, at), rest = line;
            from += at * s.src_step[k];
            to += at * s.dst_step[k];
        }
        src[t] = from;
        dst[t] = to;
    }
}

KERNEL void transpose(const __grid_constant__ block_args p)
{
    const i32 nx = p.x.count, ny = p.y.count, nz = (i32)p.z.d;
    i64 *const src_x = (i64 *)shared_base(), *const dst_x = src_x + nx, *const src_y = dst_x + nx, *const dst_y = src_y + ny;
    u8 *const block = (u8 *)(dst_y + ny);
    const u8 *src = (const u8 *)p.src;
    u8 *dst = (u8 *)p.dst;
    i32 rest = (i32)blockIdx.x, left_x = nx, left_y = ny;
    for (int k = p.axes - 1; k >= 0; k--) {
        i32 line, at;
        divmod_fast(rest, p.dim[k], line, at);
        src += at * p.src_step[k];
        dst += at * p.dst_step[k];
        if (k == p.x.cut_axis) left_x = p.x.inner * smaller(p.x.cut, p.x.size - at * p.x.cut);
        if (k == p.y.cut_axis) left_y = p.y.inner * smaller(p.y.cut, p.y.size - at * p.y.cut);
        rest = line;
    }
    fill_table(p.x, src_x, dst_x);
    fill_table(p.y, src_y, dst_y);
    sync_block();
    grid_wait();
    const i32 t = threadIdx.x;
    if (p.is_wide_in && !((u64)src & 15)) {
        const i32 rows = 256 >> p.in_vector_log;
        for (i32 x = (t & ((1 << p.in_vector_log) - 1)) * EACH; x < left_x; x += EACH << p.in_vector_log)
            for (i32 y0 = t >> p.in_vector_log; y0 < left_y; y0 += rows * BATCH) {
                u32x4 v[BATCH];
#pragma unroll
                for (int u = 0; u < BATCH; u++)
                    if (y0 + u * rows < left_y) v[u] = *(const u32x4 *)(src + src_y[y0 + u * rows] + src_x[x]);
#pragma unroll
                for (int u = 0; u < BATCH; u++) {
                    u32 *const to = (u32 *)(block + (y0 + u * rows) * p.pitch + x * SIZE);
                    if (y0 + u * rows < left_y) to[0] = v[u].x, to[1] = v[u].y, to[2] = v[u].z, to[3] = v[u].w;
                }
            }
    } else {
        const i32 rows = 256 >> p.in_log;
        for (i32 at = t & ((1 << p.in_log) - 1); at < left_x * nz; at += 1 << p.in_log) {
            i32 x, z;
            divmod_fast(at, p.z, x, z);
            const u8 *const from = src + src_x[x] + z * SIZE;
            for (i32 y0 = t >> p.in_log; y0 < left_y; y0 += rows * BATCH) {
                u32 w[BATCH][EMIT_WORDS(SIZE, 1)] = {};
#pragma unroll
                for (int u = 0; u < BATCH; u++)
                    if (y0 + u * rows < left_y) emit_read<SIZE>(w[u], 0, from + src_y[y0 + u * rows]);
#pragma unroll
                for (int u = 0; u < BATCH; u++)
                    if (y0 + u * rows < left_y) block_put(w[u], block + (y0 + u * rows) * p.pitch + at * SIZE);
            }
        }
    }
    sync_block();
    grid_trigger();
    if (p.is_wide_out && !((u64)dst & 15)) {
        for (i32 y = (t & ((1 << p.out_vector_log) - 1)) * EACH; y < left_y; y += EACH << p.out_vector_log)
            for (i32 x = t >> p.out_vector_log; x < left_x; x += 256 >> p.out_vector_log) {
                u32 w[4] = {};
#pragma unroll
                for (int k = 0; k < EACH; k++) block_get(w, k, block + (y + k) * p.pitch + x * SIZE);
                *(u32x4 *)(dst + dst_x[x] + dst_y[y]) = u32x4{ w[0], w[1], w[2], w[3] };
            }
    } else {
        for (i32 at = t & ((1 << p.out_log) - 1); at < left_y * nz; at += 1 << p.out_log) {
            i32 y, z;
            divmod_fast(at, p.z, y, z);
            u8 *const to = dst + dst_y[y] + z * SIZE;
            const u8 *const from = block + y * p.pitch + z * SIZE;
#pragma unroll 4
            for (i32 x = t >> p.out_log; x < left_x; x += 256 >> p.out_log) {
                u32 w[EMIT_WORDS(SIZE, 1)] = {};
                block_get(w, 0, from + x * nz * SIZE);
                emit_write<SIZE>(w, 0, to + dst_x[x]);
            }
        }
    }
}
