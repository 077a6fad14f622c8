/* SPDX-License-Identifier: Apache-2.0 */
/* prelude.cuh - what every kernel starts from: types, conversions, and the instructions that C++ has no word for.
 *
 * Nothing of CUDA's headers is needed. Kernels use an instruction only through a function here (or in hopper.cuh), so
 * that the emulator, which has a prelude of its own with these functions, runs the same kernels on a CPU. Rules for
 * kernels: no static __shared__ (memory comes from shared_base()), no function-local statics, no printf; every thread
 * of every block calls grid_wait() once before it reads anything that is not a constant and before it writes. */
#ifndef PRELUDE_CUH
#define PRELUDE_CUH

#include "device_args.h"

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

#define DEVICE static __device__ __forceinline__
#define KERNEL extern "C" __global__
#ifndef SM
#define SM (__CUDA_ARCH__ / 10)
#endif

/* ---- types of elements ---- */

struct f16 { u16 bits; };
struct bf16 { u16 bits; };
struct alignas(16) u32x4 { u32 x, y, z, w; };
struct alignas(8) u32x2 { u32 x, y; };
template <class T, int N> struct alignas(sizeof(T) * N <= 16 ? sizeof(T) * N : 16) vec { T at[N]; };

DEVICE float float_of_bits(u32 x) { return __uint_as_float(x); }
DEVICE u32 bits_of_float(float x) { return __float_as_uint(x); }
DEVICE double double_of_bits(u64 x) { return __longlong_as_double((i64)x); }
DEVICE u64 bits_of_double(double x) { return (u64)__double_as_longlong(x); }
DEVICE float to_float(f16 x) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits)); return y; }
DEVICE float to_float(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
DEVICE float to_float(float x) { return x; }
DEVICE f16 to_f16(float x) { f16 y; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x)); return y; }
/* Nearest even, NaN stays NaN: by integers, since cvt.rn.bf16 begins with sm_80. */
DEVICE bf16 to_bf16(float x)
{
    bf16 y;
#if SM >= 80
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#else
    const u32 b = __float_as_uint(x);
    y.bits = x != x ? (u16)0x7fff : (u16)((b + 0x7fff + (b >> 16 & 1)) >> 16);
#endif
    return y;
}
/* Two floats as a pair of narrow ones, low half first. */
DEVICE u32 pack_f16(float lo, float hi)
{
#if SM >= 80
    u32 y; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(hi), "f"(lo)); return y;
#else
    return (u32)to_f16(lo).bits | (u32)to_f16(hi).bits << 16;
#endif
}
DEVICE u32 pack_bf16(float lo, float hi)
{
#if SM >= 80
    u32 y; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(hi), "f"(lo)); return y;
#else
    return (u32)to_bf16(lo).bits | (u32)to_bf16(hi).bits << 16;
#endif
}
/* Bytes of b:a, chosen by the four nibbles of `which` (0 to 3: of a, 4 to 7: of b), lowest first. */
DEVICE u32 permute_bytes(u32 a, u32 b, u32 which) { return __byte_perm(a, b, which); }
/* x & mask | bits as one instruction: of two constants the compiler makes two. */
DEVICE u32 and_or(u32 x, u32 mask, u32 bits)
{
    u32 r; asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(r) : "r"(x), "r"(mask), "r"(bits)); return r;
}
/* x * y + z of pairs of narrow floats, rounded once. */
DEVICE u32 fma_pair_f16(u32 x, u32 y, u32 z)
{
    u32 r; asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); return r;
}
#if SM >= 80
DEVICE u32 fma_pair_bf16(u32 x, u32 y, u32 z)
{
    u32 r; asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); return r;
}
#endif
/* f32 rounded to tf32, as bits. */
DEVICE u32 to_tf32(float x)
{
#if SM >= 80
    u32 y; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x)); return y;
#else
    return __float_as_uint(x);
#endif
}

/* x y, rounded towards zero: finite factors never make an infinite product. */
DEVICE float multiply_towards_zero(float x, float y) { return __fmul_rz(x, y); }
/* 2 to the x and 1 / sqrt(x) to 2 units of the last place or so. */
DEVICE float rsqrt_fast(float x) { float y; asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
DEVICE float exp2_fast(float x) { float y; asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
/* The same, 0 where the result would be subnormal: one instruction. */
DEVICE float exp2_flush(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
/* 1 / x, 0 where that is subnormal: without the steps that care for those. */
DEVICE float reciprocal_normal(float x) { float y; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }

/* The compiler takes x for new here: what is made of it is not made sooner, to be kept. */
DEVICE void renew(u32 &x) { asm volatile("" : "+r"(x)); }

/* ---- where a thread is ---- */

DEVICE u32 lane_id() { return threadIdx.x & 31; }
DEVICE u32 warp_id() { return threadIdx.x >> 5; }

/* ---- the order of grids ---- */

/* Nothing but constants may be read, and nothing written, before this: it waits for the grids before this one in the
 * chain and makes what they wrote visible. */
DEVICE void grid_wait()
{
#if SM >= 90
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/* The next grid may start once every block has called this or has ended. */
DEVICE void grid_trigger()
{
#if SM >= 90
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* ---- blocks and warps ---- */

DEVICE void sync_block() { __syncthreads(); }
DEVICE void sync_warp() { __syncwarp(); }
/* `threads` of the block, a multiple of 32, meet at barrier `id` (1 to 15). */
DEVICE void sync_some(u32 id, u32 threads) { asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(threads) : "memory"); }
/* Counts as come for those who meet at barrier `id`, without waiting for them. */
DEVICE void arrive_some(u32 id, u32 threads) { asm volatile("bar.arrive %0, %1;" :: "r"(id), "r"(threads) : "memory"); }
/* T: 4-byte types. All lanes take part. */
template <class T> DEVICE T shuffle(T x, u32 lane) { return __shfl_sync(~0u, x, lane); }
template <class T> DEVICE T shuffle_xor(T x, u32 mask) { return __shfl_xor_sync(~0u, x, mask); }
template <class T> DEVICE T shuffle_up(T x, u32 by) { return __shfl_up_sync(~0u, x, by); }
DEVICE u32 ballot(bool x) { return __ballot_sync(~0u, x); }

/* ---- memory ---- */

/* The block's dynamic shared memory, 1024-byte aligned. */
DEVICE u8 *shared_base()
{
    extern __shared__ __align__(1024) u8 shared_memory[];
    return shared_memory;
}
DEVICE u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }
/* Through the read-only path: only for what no kernel that may still run writes, constants above all. */
template <class T> DEVICE T load_constant(const T *p) { return *p; }
DEVICE u32x4 load_constant(const u32x4 *p)
{
    u32x4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
}
DEVICE void atomic_add(float *p, float x) { atomicAdd(p, x); }
DEVICE u32 atomic_add(u32 *p, u32 x) { return atomicAdd(p, x); }
DEVICE u32 atomic_cas(u32 *p, u32 expected, u32 x) { return atomicCAS(p, expected, x); }
DEVICE u64 atomic_cas(u64 *p, u64 expected, u64 x) { return atomicCAS(p, expected, x); }

/* 16 bytes from global to shared memory, asynchronously; where not valid zeros are written and src is not read. */
DEVICE void copy_async16(u32 dst, const void *src, bool valid)
{
#if SM >= 80
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(dst), "l"(src), "r"(valid ? 16 : 0) : "memory");
#else
    u32x4 v = {};
    if (valid) v = *(const u32x4 *)src;
    asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" :: "r"(dst), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
#endif
}
/* The same for 4 or 8 bytes (N). */
template <int N> DEVICE void copy_async(u32 dst, const void *src, bool valid)
{
#if SM >= 80
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" :: "r"(dst), "l"(src), "r"(valid ? N : 0), "n"(N) : "memory");
#else
    for (int i = 0; i < N / 4; i++) {
        const u32 v = valid ? ((const u32 *)src)[i] : 0;
        asm volatile("st.shared.u32 [%0], %1;" :: "r"(dst + 4 * i), "r"(v) : "memory");
    }
#endif
}
DEVICE void copy_commit()
{
#if SM >= 80
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/* Until at most N groups of this thread are under way. */
template <int N> DEVICE void copy_wait()
{
#if SM >= 80
    asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
#endif
}

/* ---- matrix units: fragments as the PTX manual draws them ---- */

DEVICE void load_matrix4(u32 (&r)[4], u32 at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}
DEVICE void load_matrix4_transposed(u32 (&r)[4], u32 at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}
/* c += a * b, 16 x 8 x 16; on sm_75 as two products of 8. */
DEVICE void mma_f16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
#if SM >= 80
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(b0));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[2]), "r"(a[3]), "r"(b1));
#endif
}
#if SM >= 80
DEVICE void mma_bf16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
/* 16 x 8 x 8, operands as to_tf32 left them. */
DEVICE void mma_tf32(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#endif
/* 16 x 8 x 32; the types of a and b, once where they are the same. On sm_75 four products of 8 x 8 x 16, whose fragments are
 * the registers of the large one: two halves of the rows by two halves of k. */
#if SM >= 80
#define MMA_INTEGERS(TYPES)                                                                                            \
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." TYPES ".s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
#else
#define MMA_INTEGERS_PART(TYPES, half, part, b)                                                                        \
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32." TYPES ".s32 {%0,%1}, {%2}, {%3}, {%0,%1};"                    \
                 : "+r"(c[2 * half]), "+r"(c[2 * half + 1]) : "r"(a[2 * part + half]), "r"(b))
#define MMA_INTEGERS(TYPES)                                                                                            \
    MMA_INTEGERS_PART(TYPES, 0, 0, b0);                                                                                \
    MMA_INTEGERS_PART(TYPES, 1, 0, b0);                                                                                \
    MMA_INTEGERS_PART(TYPES, 0, 1, b1);                                                                                \
    MMA_INTEGERS_PART(TYPES, 1, 1, b1)
#endif
DEVICE void mma_s8(i32 (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) { MMA_INTEGERS("s8.s8"); }
DEVICE void mma_u8(i32 (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) { MMA_INTEGERS("u8.u8"); }
DEVICE void mma_s8_u8(i32 (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) { MMA_INTEGERS("s8.u8"); }
DEVICE void mma_u8_s8(i32 (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) { MMA_INTEGERS("u8.s8"); }

/* ---- barriers in shared memory, bulk copies, clusters: sm_90 and later ---- */

#if SM >= 90
DEVICE void barrier_init(u32 bar, u32 count) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory"); }
/* After the inits and before the cluster (or block) meets. */
DEVICE void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEVICE void barrier_arrive(u32 bar) { asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(bar) : "memory"); }
DEVICE void barrier_expect(u32 bar, u32 bytes) { asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory"); }
DEVICE void barrier_wait(u32 bar, u32 parity)
{
    asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @p bra DONE; bra WAIT; DONE: }" :: "r"(bar), "r"(parity) : "memory");
}
/* This thread's asynchronous copies so far arrive at the barrier when they are done (counted by its init). */
DEVICE void barrier_arrive_copies(u32 bar) { asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(bar) : "memory"); }
/* bytes: a multiple of 16; both ends 16-byte aligned; arrives as bytes at the barrier. */
DEVICE void copy_bulk(u32 dst, const void *src, u32 bytes, u32 bar)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(dst), "l"(src), "r"(bytes), "r"(bar) : "memory");
}
DEVICE u32 cluster_rank() { u32 r; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
DEVICE void cluster_sync() { cluster_arrive(); cluster_wait(); }
/* The place of a shared address in block `rank` of the cluster, for send_async. */
DEVICE u32 cluster_address(u32 at, u32 rank) { u32 y; asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(y) : "r"(at), "r"(rank)); return y; }
/* Writes to a block of the cluster without waiting; the bytes arrive at a barrier of that block. */
DEVICE void send_async(u32 to, float value, u32 bar)
{
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" :: "r"(to), "f"(value), "r"(bar) : "memory");
}
DEVICE void send_async(u32 to, double value, u32 bar)
{
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f64 [%0], %1, [%2];" :: "r"(to), "d"(value), "r"(bar) : "memory");
}
/* The same place in the shared memory of block `rank` of the cluster, as a generic address that may be written. */
template <class T> DEVICE T *cluster_map(T *p, u32 rank)
{
    u64 y;
    asm("mapa.u64 %0, %1, %2;" : "=l"(y) : "l"((u64)p), "r"(rank));
    return (T *)y;
}
#endif

/* ---- small helpers ---- */

DEVICE i32 div_fast(i32 x, const fast_div &d) { return d.magic ? (i32)(__umulhi((u32)x, d.magic) >> d.shift) : x; }
DEVICE void divmod_fast(i32 x, const fast_div &d, i32 &quotient, i32 &rest)
{
    quotient = div_fast(x, d);
    rest = x - quotient * (i32)d.d;
}
/* What is beyond counts in 64 bits. */
#define NARROW_MOST 0x7FFFFFFF
/* Of what may be beyond 2^31: by a division there. */
DEVICE void divmod_wide(i64 x, const fast_div &d, i64 &quotient, i32 &rest)
{
    i32 narrow;
    if (x > NARROW_MOST) {
        quotient = x / d.d;
        rest = (i32)(x - quotient * d.d);
    } else {
        divmod_fast((i32)x, d, narrow, rest);
        quotient = narrow;
    }
}
/* The number of a vector, and what is left of it on the way to coordinates. WIDE: there may be more than 2^31. */
#if defined(WIDE) && WIDE
typedef u64 vector_id;
typedef i64 vector_at;
#define vector_divmod divmod_wide
#else
typedef u32 vector_id;
typedef i32 vector_at;
#define vector_divmod divmod_fast
#endif
/* The first to find something wrong says so; `value` is out of range at position `index` of its indices. */
DEVICE void report_fault(address fault, u32 step, i64 index, i64 value, i64 limit)
{
    device_fault *f = (device_fault *)fault;
    if (atomic_cas(&f->is_set, 0u, 1u)) return;
    f->step = step;
    f->index = index;
    f->value = value;
    f->limit = limit;
}
template <class T> DEVICE T smaller(T a, T b) { return a < b ? a : b; }
template <class T> DEVICE T larger(T a, T b) { return a > b ? a : b; }

#endif
