/* SPDX-License-Identifier: Apache-2.0 */
/* faults.cu - kernels that are right, and the same with one thing wrong each: what
 * test_emulator.c knows must be seen. */
#include "hopper.cuh"

struct fault_args { address in, out; small n; };

/* out[i] = in[i ^ 1], by shared memory. MODE leaves out one step at a time. */
template <int MODE> DEVICE void exchange(const fault_args &a)
{
    float *const shared = (float *)shared_base();
    const i32 i = threadIdx.x;
    if (MODE == 1) ((float *)a.out)[i] = 0;
    if (MODE == 2 && i == 5) return;
    grid_wait();
    copy_async<4>(shared_address(shared + i), (const float *)a.in + i + (MODE == 3 ? 128 : 0), i < a.n);
    copy_commit();
    if (MODE != 4) copy_wait<0>();
    if (MODE != 5) sync_block();
    if (MODE == 6 && i < 32) sync_some(1, 64);
    if (MODE == 7) shared[i + 128] = 1;
    if (MODE == 8 && lane_id() < 16) sync_warp();
    if (MODE == 8 && lane_id() >= 16) ballot(true);
    if (MODE == 9) *(u32x4 *)(shared + i) = {};
    ((float *)a.out)[i] = shared[i ^ 1];
}
KERNEL void exchange_right(const __grid_constant__ fault_args a) { exchange<0>(a); }
KERNEL void writes_early(const __grid_constant__ fault_args a) { exchange<1>(a); }
KERNEL void waits_not(const __grid_constant__ fault_args a) { exchange<2>(a); }
KERNEL void reads_behind(const __grid_constant__ fault_args a) { exchange<3>(a); }
KERNEL void copies_unwaited(const __grid_constant__ fault_args a) { exchange<4>(a); }
KERNEL void threads_unmet(const __grid_constant__ fault_args a) { exchange<5>(a); }
KERNEL void one_more_sync(const __grid_constant__ fault_args a) { exchange<6>(a); }
KERNEL void writes_beyond_shared(const __grid_constant__ fault_args a) { exchange<7>(a); }
KERNEL void warp_apart(const __grid_constant__ fault_args a) { exchange<8>(a); }
KERNEL void misaligned(const __grid_constant__ fault_args a) { exchange<9>(a); }

/* The same by a bulk copy and a barrier. MODE as above. */
template <int MODE> DEVICE void bulk(const fault_args &a)
{
    float *const shared = (float *)shared_base();
    const u32 base = shared_address(shared), bar = base + 256;
    const i32 i = threadIdx.x;
    if (i == 0) {
        barrier_init(bar, 1);
        barrier_init_fence();
    }
    sync_block();
    grid_wait();
    if (i == 0) {
        barrier_expect(bar, MODE == 1 ? 512 : 256);
        copy_bulk(base, (const void *)a.in, 256, bar);
    }
    if (MODE != 2) barrier_wait(bar, 0);
    ((float *)a.out)[i] = shared[i ^ 1];
}
KERNEL void bulk_right(const __grid_constant__ fault_args a) { bulk<0>(a); }
KERNEL void bulk_short(const __grid_constant__ fault_args a) { bulk<1>(a); }
KERNEL void bulk_unwaited(const __grid_constant__ fault_args a) { bulk<2>(a); }

/* out[i] of block r of a cluster of two: what the other block has at i. */
template <int MODE> DEVICE void over_cluster(const fault_args &a)
{
    float *const shared = (float *)shared_base();
    const i32 i = threadIdx.x;
    grid_wait();
    shared[i] = ((const float *)a.in)[64 * cluster_rank() + i];
    if (MODE != 1) cluster_sync();
    ((float *)a.out)[64 * cluster_rank() + i] = cluster_map(shared, cluster_rank() ^ 1)[i];
    if (MODE != 2) cluster_sync();
}
KERNEL void cluster_right(const __grid_constant__ fault_args a) { over_cluster<0>(a); }
KERNEL void cluster_unmet(const __grid_constant__ fault_args a) { over_cluster<1>(a); }
KERNEL void cluster_left_early(const __grid_constant__ fault_args a) { over_cluster<2>(a); }

/* out[i], as words, = in[i] as f16, and as bf16 above. */
KERNEL void narrows(const __grid_constant__ fault_args a)
{
    grid_wait();
    for (i32 i = threadIdx.x; i < a.n; i += 64) {
        const float x = ((const float *)a.in)[i];
        ((u32 *)a.out)[i] = (u32)to_f16(x).bits | (u32)to_bf16(x).bits << 16;
    }
}

/* A block of 64 threads has 255 registers for each; half of them want one more. */
template <bool GIVES> DEVICE void registers(const fault_args &a)
{
    grid_wait();
    if (threadIdx.x >= 32) registers_take<256>();
    else if (GIVES) registers_give<240>();
    ((float *)a.out)[threadIdx.x] = ((const float *)a.in)[threadIdx.x ^ 1];
}
KERNEL void registers_right(const __grid_constant__ fault_args a) { registers<true>(a); }
KERNEL void registers_not_given(const __grid_constant__ fault_args a) { registers<false>(a); }
