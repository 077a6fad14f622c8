/* SPDX-License-Identifier: Apache-2.0 */
/* copy.cu - copies between any two sets of strides, in units of 1 to 16 bytes. Everything is a parameter, so that one
 * compilation serves all types and shapes. JOBS copies run side by side: the parts of a concatenation.
 *
 * A unit may lie at any address that is a multiple of an element: it is read and written in the pieces that the address
 * allows. Where the units are small and the result is dense, a thread makes 16 bytes of it. */
#include "copy_args.h"
#include "emit.cuh"

struct copy_args { copy_job job[JOBS]; };

/* Where unit t of the source is, and how far it is along the innermost axis. */
DEVICE const u8 *copy_source(const copy_job &p, i64 t, i32 &inner)
{
    i64 from = 0, rest = t, line;
    i32 at = 0;
    const int axes = p.is_split ? p.src_axes : p.axes;
    const fast_div *const dim = p.is_split ? p.src_dim : p.dim;
    inner = axes > 1 ? 0 : (i32)t;
#pragma unroll 1
    for (int k = axes - 1; k > 0; k--) {
        divmod_wide(rest, dim[k], line, at);
        if (k == axes - 1) inner = at;
        from += at * p.src_step[k];
        rest = line;
    }
    return (const u8 *)p.src + from + rest * p.src_step[0];
}

DEVICE u8 *copy_result(const copy_job &p, i64 t)
{
    i64 to = 0, rest = t, line;
    i32 at;
#pragma unroll 1
    for (int k = p.axes - 1; k > 0; k--) {
        divmod_wide(rest, p.dim[k], line, at);
        to += at * p.dst_step[k];
        rest = line;
    }
    return (u8 *)p.dst + to + rest * p.dst_step[0];
}

/* UNIT bytes in pieces of S. */
template <int S, int UNIT> DEVICE void copy_read(u32 (&w)[EMIT_WORDS(UNIT, 1)], const u8 *p)
{
    if constexpr (S == 16) {
        const u32x4 v = *(const u32x4 *)p;
        w[0] = v.x, w[1] = v.y, w[2] = v.z, w[3] = v.w;
    } else {
#pragma unroll
        for (int k = 0; k < UNIT / S; k++) emit_read<S>(w, k, p + k * S);
    }
}
template <int S, int UNIT> DEVICE void copy_write(const u32 (&w)[EMIT_WORDS(UNIT, 1)], u8 *p)
{
    if constexpr (S == 16) {
        *(u32x4 *)p = u32x4{ w[0], w[1], w[2], w[3] };
    } else {
#pragma unroll
        for (int k = 0; k < UNIT / S; k++) emit_write<S>(w, k, p + k * S);
    }
}

/* The largest piece of a unit that an address allows; all units of a copy lie alike. */
template <int UNIT> DEVICE i32 piece_at(const void *p)
{
    const u32 low = (u32)(u64)p & (UNIT - 1);
    return low ? (i32)(low & (0u - low)) : UNIT;
}

template <int UNIT> DEVICE void copy_load(u32 (&w)[EMIT_WORDS(UNIT, 1)], const u8 *p, i32 piece)
{
    if (piece == UNIT) copy_read<UNIT, UNIT>(w, p);
    else if (UNIT > 8 && piece == 8) copy_read<UNIT < 8 ? UNIT : 8, UNIT>(w, p);
    else if (UNIT > 4 && piece == 4) copy_read<UNIT < 4 ? UNIT : 4, UNIT>(w, p);
    else if (UNIT > 2 && piece == 2) copy_read<UNIT < 2 ? UNIT : 2, UNIT>(w, p);
    else copy_read<1, UNIT>(w, p);
}
template <int UNIT> DEVICE void copy_store(const u32 (&w)[EMIT_WORDS(UNIT, 1)], u8 *p, i32 piece)
{
    if (piece == UNIT) copy_write<UNIT, UNIT>(w, p);
    else if (UNIT > 8 && piece == 8) copy_write<UNIT < 8 ? UNIT : 8, UNIT>(w, p);
    else if (UNIT > 4 && piece == 4) copy_write<UNIT < 4 ? UNIT : 4, UNIT>(w, p);
    else if (UNIT > 2 && piece == 2) copy_write<UNIT < 2 ? UNIT : 2, UNIT>(w, p);
    else copy_write<1, UNIT>(w, p);
}

template <int UNIT, int N> DEVICE void copy_units(const copy_job &p)
{
    const i64 first = (i64)blockIdx.x * (blockDim.x * N) + threadIdx.x;
    const u8 *src[N];
    u8 *dst[N];
    i32 inner;
#pragma unroll
    for (int u = 0; u < N; u++) {
        const i64 t = first + u * blockDim.x;
        dst[u] = nullptr;
        if (t >= p.total) continue;
        src[u] = copy_source(p, t, inner);
        dst[u] = p.is_dense ? (u8 *)p.dst + t * UNIT : copy_result(p, t);
    }
    const i32 piece_in = piece_at<UNIT>((const void *)p.src), piece_out = piece_at<UNIT>((const void *)p.dst);
    u32 w[N][EMIT_WORDS(UNIT, 1)] = {};
    grid_wait();
#pragma unroll
    for (int u = 0; u < N; u++)
        if (dst[u]) copy_load<UNIT>(w[u], src[u], piece_in);
    grid_trigger();
#pragma unroll
    for (int u = 0; u < N; u++)
        if (dst[u]) copy_store<UNIT>(w[u], dst[u], piece_out);
}

template <int S> DEVICE void copy_dense(const copy_job &p)
{
    constexpr int N = 16 / S;
    const i64 first = ((i64)blockIdx.x * blockDim.x + threadIdx.x) * N;
    grid_wait();
    if (first >= p.total) return;
    const int last = p.axes - 1;
    const i64 step = p.src_step[last];
    const i32 size = p.inner;
    const u8 *src[N];
    i32 inner;
    src[0] = copy_source(p, first, inner);
    const bool is_run = step == S && inner + N <= size && first + N <= p.total;
    u32 w[4] = {};
    if (is_run) {
        copy_load<16>(w, src[0], smaller(piece_at<16>((const void *)p.src), (i32)p.piece));
    } else {
#pragma unroll
        for (int k = 1; k < N; k++) {
            src[k] = src[k - 1] + step;
            if (++inner == size) src[k] = first + k < p.total ? copy_source(p, first + k, inner) : src[k - 1];
        }
#pragma unroll
        for (int k = 0; k < N; k++)
            if (first + k < p.total) emit_read<S>(w, k, src[k]);
    }
    grid_trigger();
    u8 *const dst = (u8 *)p.dst + first * S;
    if (first + N <= p.total) {
        copy_store<16>(w, dst, piece_at<16>((const void *)p.dst));
    } else {
#pragma unroll
        for (int k = 0; k < N; k++)
            if (first + k < p.total) emit_write<S>(w, k, dst + k * S);
    }
}

template <int UNIT> DEVICE void copy_of(const copy_job &p)
{
    if (UNIT < 8 && p.is_dense) copy_dense<UNIT < 8 ? UNIT : 4>(p);
    else if (p.each == 1) copy_units<UNIT, 1>(p);
    else copy_units<UNIT, 4>(p);
}

KERNEL void copy(const __grid_constant__ copy_args a)
{
    const copy_job &p = a.job[JOBS == 1 ? 0 : blockIdx.y];
    switch (p.unit) {
    case 1: copy_of<1>(p); break;
    case 2: copy_of<2>(p); break;
    case 4: copy_of<4>(p); break;
    case 8: copy_of<8>(p); break;
    default: copy_of<16>(p); break;
    }
}
