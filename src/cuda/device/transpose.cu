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
        if (k == p.x.cut_axis) left_x = smaller(nx, p.x.inner * (p.x.size - at * p.x.cut));
        if (k == p.y.cut_axis) left_y = smaller(ny, p.y.inner * (p.y.size - at * p.y.cut));
        rest = line;
    }
    fill_table(p.x, src_x, dst_x);
    fill_table(p.y, src_y, dst_y);
    sync_block();
    grid_wait();
    if (p.is_wide_in && !((u64)src & 15)) {
        for (i32 t = threadIdx.x; t < p.vectors_in; t += 256 * BATCH) {
            u32x4 v[BATCH];
            u32 *to[BATCH];
#pragma unroll
            for (int u = 0; u < BATCH; u++) {
                i32 y, x;
                to[u] = nullptr;
                divmod_fast(t + u * 256, p.row_in_vectors, y, x);
                x *= EACH;
                if (y >= left_y || x >= left_x) continue;
                to[u] = (u32 *)(block + y * p.pitch + x * SIZE);
                v[u] = *(const u32x4 *)(src + src_y[y] + src_x[x]);
            }
#pragma unroll
            for (int u = 0; u < BATCH; u++)
                if (to[u]) to[u][0] = v[u].x, to[u][1] = v[u].y, to[u][2] = v[u].z, to[u][3] = v[u].w;
        }
    } else {
        for (i32 t = threadIdx.x; t < p.total; t += 256 * BATCH) {
            u32 w[BATCH][EMIT_WORDS(SIZE, 1)] = {};
            u8 *to[BATCH];
#pragma unroll
            for (int u = 0; u < BATCH; u++) {
                i32 y, at, x, z;
                to[u] = nullptr;
                divmod_fast(t + u * 256, p.row_in, y, at);
                divmod_fast(at, p.z, x, z);
                if (y >= left_y || x >= left_x) continue;
                to[u] = block + y * p.pitch + at * SIZE;
                emit_read<SIZE>(w[u], 0, src + src_y[y] + src_x[x] + z * SIZE);
            }
#pragma unroll
            for (int u = 0; u < BATCH; u++)
                if (to[u]) block_put(w[u], to[u]);
        }
    }
    sync_block();
    grid_trigger();
    if (p.is_wide_out && !((u64)dst & 15)) {
        for (i32 t = threadIdx.x; t < p.vectors_out; t += 256) {
            i32 x, y;
            divmod_fast(t, p.row_out_vectors, x, y);
            y *= EACH;
            if (y >= left_y || x >= left_x) continue;
            u32 w[4] = {};
#pragma unroll
            for (int k = 0; k < EACH; k++) block_get(w, k, block + (y + k) * p.pitch + x * SIZE);
            *(u32x4 *)(dst + dst_x[x] + dst_y[y]) = u32x4{ w[0], w[1], w[2], w[3] };
        }
    } else {
        for (i32 t = threadIdx.x; t < p.total; t += 256) {
            i32 x, at, y, z;
            divmod_fast(t, p.row_out, x, at);
            divmod_fast(at, p.z, y, z);
            if (y >= left_y || x >= left_x) continue;
            u32 w[EMIT_WORDS(SIZE, 1)] = {};
            block_get(w, 0, block + y * p.pitch + (x * nz + z) * SIZE);
            emit_write<SIZE>(w, 0, dst + dst_x[x] + dst_y[y] + z * SIZE);
        }
    }
}
