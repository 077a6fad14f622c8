/* SPDX-License-Identifier: Apache-2.0 */
/* concat.cu - PARTS dense operands side by side: each is rows that go to the rows of the result, in units of 1 to 16
 * bytes. */
#include "copy_args.h"
#include "prelude.cuh"

struct concat_args { copy_part part[PARTS]; };

template <class T, int N> DEVICE void concat_units(const copy_part &p)
{
    const i64 first = (i64)blockIdx.x * (blockDim.x * N) + threadIdx.x;
    T v[N];
    i64 to[N];
#pragma unroll
    for (int u = 0; u < N; u++) {
        const i64 t = first + u * blockDim.x;
        i64 row, i;
        if (p.total > NARROW_MOST) {
            row = t / p.units;
            i = t - row * p.units;
        } else {
            i32 line, at;
            divmod_fast((i32)t, p.row, line, at);
            row = line, i = at;
        }
        to[u] = row * p.dst_step + i * (i64)sizeof(T);
        if (t < p.total) v[u] = *(const T *)((const u8 *)p.src + row * p.src_step + i * (i64)sizeof(T));
    }
    grid_trigger();
#pragma unroll
    for (int u = 0; u < N; u++)
        if (first + u * blockDim.x < p.total) *(T *)((u8 *)p.dst + to[u]) = v[u];
}

KERNEL void concat(const __grid_constant__ concat_args a)
{
    const copy_part &p = a.part[blockIdx.y];
    grid_wait();
    switch (p.unit) {
    case 1: concat_units<u8, 4>(p); break;
    case 2: concat_units<u16, 4>(p); break;
    case 4: concat_units<u32, 4>(p); break;
    case 8: concat_units<u32x2, 2>(p); break;
    default:
        if (p.each == 1) concat_units<u32x4, 1>(p);
        else concat_units<u32x4, 4>(p);
        break;
    }
}
