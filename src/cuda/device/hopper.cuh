/* SPDX-License-Identifier: Apache-2.0 */
/* hopper.cuh - what only sm_90a has: tensor copies, products of warpgroups, registers handed over. */
#ifndef HOPPER_CUH
#define HOPPER_CUH

#include "prelude.cuh"

struct alignas(64) tensor_map { u64 opaque[16]; };

/* ---- tensor copies: the box at (x, y, …), x innermost, arrives as bytes at the barrier ---- */

DEVICE void copy_tensor(u32 dst, const tensor_map *map, u32 bar, i32 x, i32 y)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
                 :: "r"(dst), "l"(map), "r"(bar), "r"(x), "r"(y) : "memory");
}
DEVICE void copy_tensor(u32 dst, const tensor_map *map, u32 bar, i32 x, i32 y, i32 z)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];"
                 :: "r"(dst), "l"(map), "r"(bar), "r"(x), "r"(y), "r"(z) : "memory");
}
DEVICE void copy_tensor(u32 dst, const tensor_map *map, u32 bar, i32 x, i32 y, i32 z, i32 w)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];"
                 :: "r"(dst), "l"(map), "r"(bar), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}
DEVICE void copy_tensor(u32 dst, const tensor_map *map, u32 bar, i32 x, i32 y, i32 z, i32 w, i32 v)
{
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2];"
                 :: "r"(dst), "l"(map), "r"(bar), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v) : "memory");
}
/* Pixels from `at` on (innermost axis first, the image last), channels from c on, seen through the filter's tap `by`. */
DEVICE void copy_im2col(u32 dst, const tensor_map *map, u32 bar, i32 c, const i32 (&at)[2], const u16 (&by)[1])
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2], {%6};"
                 :: "r"(dst), "l"(map), "r"(bar), "r"(c), "r"(at[0]), "r"(at[1]), "h"(by[0]) : "memory");
}
DEVICE void copy_im2col(u32 dst, const tensor_map *map, u32 bar, i32 c, const i32 (&at)[3], const u16 (&by)[2])
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};"
                 :: "r"(dst), "l"(map), "r"(bar), "r"(c), "r"(at[0]), "r"(at[1]), "r"(at[2]), "h"(by[0]), "h"(by[1]) : "memory");
}
DEVICE void copy_im2col(u32 dst, const tensor_map *map, u32 bar, i32 c, const i32 (&at)[4], const u16 (&by)[3])
{
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2], {%8, %9, %10};"
                 :: "r"(dst), "l"(map), "r"(bar), "r"(c), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "h"(by[0]), "h"(by[1]), "h"(by[2]) : "memory");
}
/* The other way, to where the tensor does not end; done when the thread that began it has waited for its group. */
DEVICE void copy_out(u32 src, const tensor_map *map, i32 x, i32 y)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%1, {%2, %3}], [%0];"
                 :: "r"(src), "l"(map), "r"(x), "r"(y) : "memory");
}
DEVICE void copy_out(u32 src, const tensor_map *map, i32 x, i32 y, i32 z)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%1, {%2, %3, %4}], [%0];"
                 :: "r"(src), "l"(map), "r"(x), "r"(y), "r"(z) : "memory");
}
DEVICE void copies_out_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/* Until all of this thread's groups but the last N have read shared memory. */
template <int N> DEVICE void copies_out_wait() { asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(N) : "memory"); }
/* What this thread has done to shared memory lies before copies that others begin later. */
DEVICE void fence_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEVICE void prefetch_map(const tensor_map *map) { asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory"); }

/* ---- products of a warpgroup: 64 rows of a by N columns of b, 32 bytes deep; both in shared memory, rows of 128
 * swizzled bytes. c[j] are columns 8 j + lane % 4 * 2 and the next, of rows lane / 4 and lane / 4 + 8 of the warp's 16. ---- */

/* The thread's warpgroup. All lanes take part. The compiler does not know that the thread's number over 128 is equal in
 * all lanes; of a shuffle it does, so what follows from this (which rows, where they lie) is computed once a warp. */
DEVICE u32 warpgroup_id() { return shuffle(threadIdx.x / 128, 0); }

/* Rows of 128 bytes, swizzled, in groups of eight; `at` 1024-byte aligned. 32 bytes further along a row: + 2. */
DEVICE u64 matrix_rows128(u32 at) { return (u64)(at >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62; }
DEVICE void product_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void product_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/* Until at most N groups are under way. */
template <int N> DEVICE void product_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory"); }
/* The compiler moves a wait up past the arithmetic that was to run beside products. It cannot where the arithmetic's
 * result, x, which is never negative, decides on a branch before it. (A trap there would cost the compiler its plan of
 * registers that are handed over.) */
DEVICE void product_after(float x) { if (x < 0) asm volatile("nanosleep.u32 0;"); }

/* in: "+f", or "+r" of integers. */
#define PAIR(in, i) in(c[i][0]), in(c[i][1]), in(c[i][2]), in(c[i][3])
#define REGISTERS_4 "%0,%1,%2,%3"
#define SUMS_4(in) PAIR(in, 0)
#define REGISTERS_8 REGISTERS_4 ",%4,%5,%6,%7"
#define SUMS_8(in) SUMS_4(in), PAIR(in, 1)
#define REGISTERS_16 REGISTERS_8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define SUMS_16(in) SUMS_8(in), PAIR(in, 2), PAIR(in, 3)
#define REGISTERS_24 REGISTERS_16 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define SUMS_24(in) SUMS_16(in), PAIR(in, 4), PAIR(in, 5)
#define REGISTERS_32 REGISTERS_24 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define SUMS_32(in) SUMS_24(in), PAIR(in, 6), PAIR(in, 7)
#define REGISTERS_40 REGISTERS_32 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define SUMS_40(in) SUMS_32(in), PAIR(in, 8), PAIR(in, 9)
#define REGISTERS_48 REGISTERS_40 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define SUMS_48(in) SUMS_40(in), PAIR(in, 10), PAIR(in, 11)
#define REGISTERS_56 REGISTERS_48 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define SUMS_56(in) SUMS_48(in), PAIR(in, 12), PAIR(in, 13)
#define REGISTERS_64 REGISTERS_56 ",%56,%57,%58,%59,%60,%61,%62,%63"
#define SUMS_64(in) SUMS_56(in), PAIR(in, 14), PAIR(in, 15)
#define REGISTERS_72 REGISTERS_64 ",%64,%65,%66,%67,%68,%69,%70,%71"
#define SUMS_72(in) SUMS_64(in), PAIR(in, 16), PAIR(in, 17)
#define REGISTERS_80 REGISTERS_72 ",%72,%73,%74,%75,%76,%77,%78,%79"
#define SUMS_80(in) SUMS_72(in), PAIR(in, 18), PAIR(in, 19)
#define REGISTERS_88 REGISTERS_80 ",%80,%81,%82,%83,%84,%85,%86,%87"
#define SUMS_88(in) SUMS_80(in), PAIR(in, 20), PAIR(in, 21)
#define REGISTERS_96 REGISTERS_88 ",%88,%89,%90,%91,%92,%93,%94,%95"
#define SUMS_96(in) SUMS_88(in), PAIR(in, 22), PAIR(in, 23)
#define REGISTERS_104 REGISTERS_96 ",%96,%97,%98,%99,%100,%101,%102,%103"
#define SUMS_104(in) SUMS_96(in), PAIR(in, 24), PAIR(in, 25)
#define REGISTERS_112 REGISTERS_104 ",%104,%105,%106,%107,%108,%109,%110,%111"
#define SUMS_112(in) SUMS_104(in), PAIR(in, 26), PAIR(in, 27)
#define REGISTERS_120 REGISTERS_112 ",%112,%113,%114,%115,%116,%117,%118,%119"
#define SUMS_120(in) SUMS_112(in), PAIR(in, 28), PAIR(in, 29)
#define REGISTERS_128 REGISTERS_120 ",%120,%121,%122,%123,%124,%125,%126,%127"
#define SUMS_128(in) SUMS_120(in), PAIR(in, 30), PAIR(in, 31)

/* For n columns, whose sums take n / 2 registers; the operands behind those are numbered. adds: 0 writes the product, 1
 * adds it. */
#define PRODUCT(name, type, n, sums, a_at, b_at, adds_at)                                                         \
    DEVICE void name(float (&c)[n / 8][4], u64 a, u64 b, i32 adds)                                                \
    {                                                                                                             \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #adds_at ", 0; wgmma.mma_async.sync.aligned.m64n" #n      \
                     "k16.f32." type "." type " {" REGISTERS_##sums "}, %" #a_at ", %" #b_at ", p, 1, 1, 0, 0; }" \
                     : SUMS_##sums("+f") : "l"(a), "l"(b), "r"(adds));                                                  \
    }
#define PRODUCT_INTEGERS(name, type_a, type_b, n, sums, a_at, b_at, adds_at)                                     \
    DEVICE void name(i32 (&c)[n / 8][4], u64 a, u64 b, i32 adds)                                                  \
    {                                                                                                             \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #adds_at ", 0; wgmma.mma_async.sync.aligned.m64n" #n      \
                     "k32.s32." type_a "." type_b " {" REGISTERS_##sums "}, %" #a_at ", %" #b_at ", p; }"         \
                     : SUMS_##sums("+r") : "l"(a), "l"(b), "r"(adds));                                            \
    }
#define PRODUCTS(n, sums, a_at, b_at, adds_at)                  \
    PRODUCT(product_f16, "f16", n, sums, a_at, b_at, adds_at)   \
    PRODUCT(product_bf16, "bf16", n, sums, a_at, b_at, adds_at)
/* Of integers, more than 32 columns are a multiple of 16. */
#define PRODUCTS_INTEGERS(n, sums, a_at, b_at, adds_at)                             \
    PRODUCT_INTEGERS(product_s8, "s8", "s8", n, sums, a_at, b_at, adds_at)          \
    PRODUCT_INTEGERS(product_u8_s8, "u8", "s8", n, sums, a_at, b_at, adds_at)       \
    PRODUCT_INTEGERS(product_s8_u8, "s8", "u8", n, sums, a_at, b_at, adds_at)
PRODUCTS(8, 4, 4, 5, 6)
PRODUCTS(16, 8, 8, 9, 10)
PRODUCTS(32, 16, 16, 17, 18)
PRODUCTS(64, 32, 32, 33, 34)
PRODUCTS(80, 40, 40, 41, 42)
PRODUCTS(96, 48, 48, 49, 50)
PRODUCTS(112, 56, 56, 57, 58)
PRODUCTS(128, 64, 64, 65, 66)
PRODUCTS(160, 80, 80, 81, 82)
PRODUCTS(176, 88, 88, 89, 90)
PRODUCTS(192, 96, 96, 97, 98)
PRODUCTS(208, 104, 104, 105, 106)
PRODUCTS(224, 112, 112, 113, 114)
PRODUCTS(256, 128, 128, 129, 130)
PRODUCTS_INTEGERS(8, 4, 4, 5, 6)
PRODUCTS_INTEGERS(16, 8, 8, 9, 10)
PRODUCTS_INTEGERS(32, 16, 16, 17, 18)
PRODUCTS_INTEGERS(64, 32, 32, 33, 34)
PRODUCTS_INTEGERS(96, 48, 48, 49, 50)
PRODUCTS_INTEGERS(128, 64, 64, 65, 66)
PRODUCTS_INTEGERS(160, 80, 80, 81, 82)
PRODUCTS_INTEGERS(192, 96, 96, 97, 98)
PRODUCTS_INTEGERS(224, 112, 112, 113, 114)
PRODUCTS_INTEGERS(256, 128, 128, 129, 130)

/* ---- the same with a in registers and b turned: a as the sums of 16 columns lie in a thread, two to a register, lower
 * column lower (c[0][0..1], c[0][2..3], c[1][0..1], c[1][2..3]); b as 16 rows along k, columns innermost. Columns are a
 * multiple of 64. The registers of a stay as they are until the product has been waited for. ---- */

/* Blocks of 64 columns, each of rows of 128 bytes, swizzled, in groups of eight that follow each other; NEXT bytes from
 * one block of columns to the next. `at` 1024-byte aligned. Sixteen rows further: + 128. For such operands the leading
 * dimension's offset is from block to block, the stride dimension's from group to group (PTX ISA, "Strides", of
 * MN-major matrices with a 128-byte swizzle). */
enum { TURNED_GROUP = 1024 };
template <u32 NEXT> DEVICE u64 matrix_columns128(u32 at)
{
    return (u64)(at >> 4 & 0x3fff) | (u64)(NEXT >> 4) << 16 | (u64)(TURNED_GROUP >> 4) << 32 | 1ull << 62;
}

#define TURNED(name, type, n, sums, a0, a1, a2, a3, b_at, adds_at)                                                \
    DEVICE void name(float (&c)[n / 8][4], const u32 (&a)[4], u64 b, i32 adds)                                    \
    {                                                                                                             \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #adds_at ", 0; wgmma.mma_async.sync.aligned.m64n" #n      \
                     "k16.f32." type "." type " {" REGISTERS_##sums "}, {%" #a0 ",%" #a1 ",%" #a2 ",%" #a3        \
                     "}, %" #b_at ", p, 1, 1, 1; }"                                                               \
                     : SUMS_##sums("+f") : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds));              \
    }
#define TURNED_PRODUCTS(n, sums, a0, a1, a2, a3, b_at, adds_at)                        \
    TURNED(product_turned_f16, "f16", n, sums, a0, a1, a2, a3, b_at, adds_at)          \
    TURNED(product_turned_bf16, "bf16", n, sums, a0, a1, a2, a3, b_at, adds_at)
TURNED_PRODUCTS(64, 32, 32, 33, 34, 35, 36, 37)
TURNED_PRODUCTS(128, 64, 64, 65, 66, 67, 68, 69)
TURNED_PRODUCTS(192, 96, 96, 97, 98, 99, 100, 101)
TURNED_PRODUCTS(256, 128, 128, 129, 130, 131, 132, 133)

/* ---- registers: whole warpgroups give some back, or take more ---- */

template <int N> DEVICE void registers_give() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(N)); }
template <int N> DEVICE void registers_take() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(N)); }

#endif
