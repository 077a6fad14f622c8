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
/* Pixels from (w, h, n) on, channels from c on, seen through filter tap (dx, dy). */
DEVICE void copy_im2col(u32 dst, const tensor_map *map, u32 bar, i32 c, i32 w, i32 h, i32 n, u16 dx, u16 dy)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};"
                 :: "r"(dst), "l"(map), "r"(bar), "r"(c), "r"(w), "r"(h), "r"(n), "h"(dx), "h"(dy) : "memory");
}
/* The same bytes into all blocks of the cluster whose bits are set, each at the same place, with the same barrier. */
DEVICE void copy_tensor_to(u32 dst, const tensor_map *map, u32 bar, i32 x, i32 y, u16 blocks)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;"
                 :: "r"(dst), "l"(map), "r"(bar), "r"(x), "r"(y), "h"(blocks) : "memory");
}
DEVICE void copy_bulk_to(u32 dst, const void *src, u32 bytes, u32 bar, u16 blocks)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
                 :: "r"(dst), "l"(src), "r"(bytes), "r"(bar), "h"(blocks) : "memory");
}
/* At the barrier at the same place in block `rank` of the cluster. */
DEVICE void barrier_arrive_in(u32 bar, u32 rank)
{
    asm volatile("{ .reg .b32 at; mapa.shared::cluster.u32 at, %0, %1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [at]; }"
                 :: "r"(bar), "r"(rank) : "memory");
}
DEVICE void prefetch_map(const tensor_map *map) { asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory"); }

/* ---- products of a warpgroup: 64 rows of a by N columns of b, 16 deep; both in shared memory, rows of 128 swizzled
 * bytes. c[j] are columns 8 j + lane % 4 * 2 and the next, of rows lane / 4 and lane / 4 + 8 of the warp's 16. ---- */

/* Rows of 128 bytes, swizzled, in groups of eight; `at` 1024-byte aligned. Sixteen elements further along a row: + 2. */
DEVICE u64 matrix_rows128(u32 at) { return (u64)(at >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62; }
DEVICE void product_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void product_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/* Until at most N groups are under way. */
template <int N> DEVICE void product_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory"); }

#define REGISTERS_4 "%0,%1,%2,%3"
#define REGISTERS_8 REGISTERS_4 ",%4,%5,%6,%7"
#define REGISTERS_16 REGISTERS_8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define REGISTERS_32 REGISTERS_16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define REGISTERS_64 \
    REGISTERS_32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49," \
    "%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define REGISTERS_96 \
    REGISTERS_64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81," \
    "%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define REGISTERS_128 \
    REGISTERS_96 ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113," \
    "%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define PAIR(i) "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
#define PAIRS_4(i) PAIR(i), PAIR(i + 1), PAIR(i + 2), PAIR(i + 3)
#define PAIRS_8(i) PAIRS_4(i), PAIRS_4(i + 4)

/* adds: 0 writes the product, 1 adds it. */
#define PRODUCT(name, type, n, registers, a_at, b_at, adds_at, ...)                                               \
    DEVICE void name(float (&c)[n / 8][4], u64 a, u64 b, i32 adds)                                                \
    {                                                                                                             \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %" adds_at ", 0; wgmma.mma_async.sync.aligned.m64n" #n       \
                     "k16.f32." type "." type " {" registers "}, %" a_at ", %" b_at ", p, 1, 1, 0, 0; }"          \
                     : __VA_ARGS__ : "l"(a), "l"(b), "r"(adds));                                                  \
    }
PRODUCT(product_f16, "f16", 8, REGISTERS_4, "4", "5", "6", PAIR(0))
PRODUCT(product_f16, "f16", 16, REGISTERS_8, "8", "9", "10", PAIR(0), PAIR(1))
PRODUCT(product_f16, "f16", 32, REGISTERS_16, "16", "17", "18", PAIRS_4(0))
PRODUCT(product_f16, "f16", 64, REGISTERS_32, "32", "33", "34", PAIRS_8(0))
PRODUCT(product_f16, "f16", 128, REGISTERS_64, "64", "65", "66", PAIRS_8(0), PAIRS_8(8))
PRODUCT(product_f16, "f16", 192, REGISTERS_96, "96", "97", "98", PAIRS_8(0), PAIRS_8(8), PAIRS_8(16))
PRODUCT(product_f16, "f16", 256, REGISTERS_128, "128", "129", "130", PAIRS_8(0), PAIRS_8(8), PAIRS_8(16), PAIRS_8(24))
PRODUCT(product_bf16, "bf16", 8, REGISTERS_4, "4", "5", "6", PAIR(0))
PRODUCT(product_bf16, "bf16", 16, REGISTERS_8, "8", "9", "10", PAIR(0), PAIR(1))
PRODUCT(product_bf16, "bf16", 32, REGISTERS_16, "16", "17", "18", PAIRS_4(0))
PRODUCT(product_bf16, "bf16", 64, REGISTERS_32, "32", "33", "34", PAIRS_8(0))
PRODUCT(product_bf16, "bf16", 128, REGISTERS_64, "64", "65", "66", PAIRS_8(0), PAIRS_8(8))
PRODUCT(product_bf16, "bf16", 192, REGISTERS_96, "96", "97", "98", PAIRS_8(0), PAIRS_8(8), PAIRS_8(16))
PRODUCT(product_bf16, "bf16", 256, REGISTERS_128, "128", "129", "130", PAIRS_8(0), PAIRS_8(8), PAIRS_8(16), PAIRS_8(24))

/* ---- registers: whole warpgroups give some back, or take more ---- */

template <int N> DEVICE void registers_give() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(N)); }
template <int N> DEVICE void registers_take() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(N)); }

#endif
