/* SPDX-License-Identifier: Apache-2.0 */
/* hopper.cuh - src/cuda/device/hopper.cuh for the CPU, to prelude.cuh's rules. Tensor maps are what emulate.c puts in
 * their place (emulator.h: emulator_map). */
#ifndef HOPPER_CUH
#define HOPPER_CUH

#include "prelude.cuh"

struct alignas(64) tensor_map { u64 opaque[16]; };

DEVICE void copy_tensor(u32 dst, const tensor_map *map, u32 bar, i32 x, i32 y)
{
    const int at[5] = { x, y, 0, 0, 0 };
    emulated_calls->copy_tensor(dst, map, bar, at, nullptr);
}
DEVICE void copy_tensor(u32 dst, const tensor_map *map, u32 bar, i32 x, i32 y, i32 z)
{
    const int at[5] = { x, y, z, 0, 0 };
    emulated_calls->copy_tensor(dst, map, bar, at, nullptr);
}
DEVICE void copy_tensor(u32 dst, const tensor_map *map, u32 bar, i32 x, i32 y, i32 z, i32 w)
{
    const int at[5] = { x, y, z, w, 0 };
    emulated_calls->copy_tensor(dst, map, bar, at, nullptr);
}
DEVICE void copy_tensor(u32 dst, const tensor_map *map, u32 bar, i32 x, i32 y, i32 z, i32 w, i32 v)
{
    const int at[5] = { x, y, z, w, v };
    emulated_calls->copy_tensor(dst, map, bar, at, nullptr);
}
template <int N>
DEVICE void copy_im2col(u32 dst, const tensor_map *map, u32 bar, i32 c, const i32 (&from)[N + 1], const u16 (&by)[N])
{
    int at[5] = { c };
    u16 offset[3] = {};
    for (int i = 0; i <= N; i++) at[1 + i] = from[i];
    for (int i = 0; i < N; i++) offset[i] = by[i];
    emulated_calls->copy_tensor(dst, map, bar, at, offset);
}
DEVICE void copy_out(u32 src, const tensor_map *map, i32 x, i32 y)
{
    const int at[5] = { x, y, 0, 0, 0 };
    emulated_calls->copy_out(src, map, at);
}
DEVICE void copy_out(u32 src, const tensor_map *map, i32 x, i32 y, i32 z)
{
    const int at[5] = { x, y, z, 0, 0 };
    emulated_calls->copy_out(src, map, at);
}
DEVICE void copies_out_commit() { emulated_calls->copies_out_commit(); }
template <int N> DEVICE void copies_out_wait() { emulated_calls->copies_out_wait(N); }
DEVICE void fence_copies() {}
DEVICE void prefetch_map(const tensor_map *) {}

DEVICE u32 warpgroup_id() { return shuffle(threadIdx.x / 128, 0); }
DEVICE u64 matrix_rows128(u32 at) { return (u64)(at >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62; }
enum { TURNED_GROUP = 1024 };
template <u32 NEXT> DEVICE u64 matrix_columns128(u32 at)
{
    return (u64)(at >> 4 & 0x3fff) | (u64)(NEXT >> 4) << 16 | (u64)(TURNED_GROUP >> 4) << 32 | 1ull << 62;
}
DEVICE void product_begin() { emulated_calls->product_begin(); }
DEVICE void product_commit() { emulated_calls->product_commit(); }
template <int N> DEVICE void product_wait(EMULATED_AT) { emulated_calls->product_wait(N, file, line); }
DEVICE void product_after(float x, EMULATED_AT)
{
    if (x < 0) emulated_calls->fail("product_after() of what is negative", file, line);
}
template <int N> DEVICE void product_f16(float (&c)[N][4], u64 a, u64 b, i32 adds)
{
    emulated_calls->product(EMULATOR_MMA_F16, &c[0][0], 8 * N, a, b, adds);
}
template <int N> DEVICE void product_bf16(float (&c)[N][4], u64 a, u64 b, i32 adds)
{
    emulated_calls->product(EMULATOR_MMA_BF16, &c[0][0], 8 * N, a, b, adds);
}
#define PRODUCT_INTEGERS(name, kind)                                                                \
    template <int N> DEVICE void name(i32 (&c)[N][4], u64 a, u64 b, i32 adds)                       \
    {                                                                                               \
        static_assert(N <= 4 || N % 2 == 0, "more than 32 columns of integers are a multiple of 16"); \
        emulated_calls->product(kind, &c[0][0], 8 * N, a, b, adds);                                 \
    }
PRODUCT_INTEGERS(product_s8, EMULATOR_MMA_S8)
PRODUCT_INTEGERS(product_u8_s8, EMULATOR_MMA_U8_S8)
PRODUCT_INTEGERS(product_s8_u8, EMULATOR_MMA_S8_U8)
template <int N> DEVICE void product_turned_f16(float (&c)[N][4], const u32 (&a)[4], u64 b, i32 adds)
{
    static_assert(N % 8 == 0, "columns are a multiple of 64");
    emulated_calls->product_turned(EMULATOR_MMA_F16, &c[0][0], 8 * N, a, b, adds);
}
template <int N> DEVICE void product_turned_bf16(float (&c)[N][4], const u32 (&a)[4], u64 b, i32 adds)
{
    static_assert(N % 8 == 0, "columns are a multiple of 64");
    emulated_calls->product_turned(EMULATOR_MMA_BF16, &c[0][0], 8 * N, a, b, adds);
}

template <int N> DEVICE void registers_give() { emulated_calls->registers(N); }
template <int N> DEVICE void registers_take() { emulated_calls->registers(N); }

#endif
