/* SPDX-License-Identifier: Apache-2.0 */
/* copy.cu - copies between any two sets of strides, in units of 1 to 16 bytes. Everything is a parameter, so that one
 * compilation serves all types and shapes. JOBS copies run side by side: the parts of a concatenation. */
#include "copy_args.h"
#include "prelude.cuh"

struct copy_args { copy_job job[JOBS]; };

DEVICE void copy_seek(const copy_job &p, i64 t, const u8 *&src, u8 *&dst)
{
    i64 from = 0, to = 0, rest = t, line;
    i32 at;
#pragma unroll 1
    for (int k = p.axes - 1; k > 0; k--) {
        divmod_wide(rest, p.dim[k], line, at);
        to += at * p.dst_step[k];
        if (!p.is_split) from += at * p.src_step[k];
        rest = line;
    }
    to += rest * p.dst_step[0];
    if (p.is_split) {
        rest = t;
#pragma unroll 1
        for (int k = p.src_axes - 1; k > 0; k--) {
            divmod_wide(rest, p.src_dim[k], line, at);
            from += at * p.src_step[k];
            rest = line;
        }
    }
    from += rest * p.src_step[0];
    src = (const u8 *)p.src + from;
    dst = (u8 *)p.dst + to;
}

template <class T, int N> DEVICE void copy_units(const u8 *const (&src)[N], u8 *const (&dst)[N])
{
    T v[N];
#pragma unroll
    for (int u = 0; u < N; u++)
        if (src[u]) v[u] = *(const T *)src[u];
    grid_trigger();
#pragma unroll
    for (int u = 0; u < N; u++)
        if (src[u]) *(T *)dst[u] = v[u];
}

template <int N> DEVICE void copy_all(const copy_job &p)
{
    const i64 first = (i64)blockIdx.x * (blockDim.x * N) + threadIdx.x;
    const u8 *src[N];
    u8 *dst[N];
#pragma unroll
    for (int u = 0; u < N; u++) {
        const i64 t = first + u * blockDim.x;
        src[u] = nullptr;
        if (t < p.total) copy_seek(p, t, src[u], dst[u]);
    }
    grid_wait();
    switch (p.unit) {
    case 1: copy_units<u8, N>(src, dst); break;
    case 2: copy_units<u16, N>(src, dst); break;
    case 4: copy_units<u32, N>(src, dst); break;
    case 8: copy_units<u32x2, N>(src, dst); break;
    default: copy_units<u32x4, N>(src, dst); break;
    }
}

KERNEL void copy(const __grid_constant__ copy_args a)
{
    const copy_job &p = a.job[JOBS == 1 ? 0 : blockIdx.y];
    if (p.each == 1) copy_all<1>(p);
    else copy_all<4>(p);
}
