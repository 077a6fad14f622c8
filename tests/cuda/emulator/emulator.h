/* SPDX-License-Identifier: Apache-2.0 */
/* emulator.h - what kernels compiled for the CPU and the runtime that runs them say to each other.
 *
 * Seen by kernels through prelude.cuh (C++, no headers but this one) and by runtime.c. A compiled kernel is a shared
 * object: it exports emulated_attach, emulated_sizes, emulated_entry and emulated_now, and asks the runtime for all
 * that concerns more than one thread through the table of functions that it was attached to. */
#ifndef EMULATOR_H
#define EMULATOR_H

struct emulator_index { unsigned x, y, z; };

/* What a thread of a kernel sees of itself. */
struct emulator_thread {
    struct emulator_index thread, block, threads, blocks;       /* threadIdx, blockIdx, blockDim, gridDim */
    unsigned cluster_rank, cluster_size;
    unsigned char *shared;
};

/* What all lanes of a warp do together; the argument is a struct of pointers to the lane's registers. */
enum emulator_collective {
    EMULATOR_SYNC_WARP, EMULATOR_SHUFFLE, EMULATOR_SHUFFLE_XOR, EMULATOR_SHUFFLE_UP, EMULATOR_SHUFFLE_DOWN,
    EMULATOR_BALLOT,
    EMULATOR_LOAD_MATRIX, EMULATOR_LOAD_MATRIX_TRANSPOSED, EMULATOR_STORE_MATRIX, EMULATOR_STORE_MATRIX_TRANSPOSED,
    EMULATOR_MMA_F16, EMULATOR_MMA_BF16, EMULATOR_MMA_TF32, EMULATOR_MMA_S8, EMULATOR_MMA_U8, EMULATOR_MMA_S8_U8,
    EMULATOR_MMA_U8_S8, EMULATOR_MMA_F64, EMULATOR_PRODUCT_WAIT, EMULATOR_COLLECTIVES
};
struct emulator_lane_exchange { unsigned value, by; };          /* shuffles, ballot: the result is left in value */
struct emulator_lane_matrix { unsigned *r; unsigned at, count; };
struct emulator_lane_mma { void *c; const void *a; unsigned b0, b1; const void *b; };

/* What stands in the 128 bytes of an emulated tensor map (launch.h: cuda_map), as the fake driver fills it. */
struct emulator_map {
    unsigned magic;
    unsigned char type, rank, swizzle, is_im2col;
    unsigned long long at, stride[5];           /* bytes; stride[0]: of an element */
    unsigned dim[5];
    unsigned short box[5], step[5];
    short low[3], high[3];
    unsigned short pixels, channels;
};
enum { EMULATOR_MAP_MAGIC = 0x50414d46 };

struct emulator_calls {
    /* The warp meets: returns when the last lane has come and the work is done. */
    void (*collective)(enum emulator_collective kind, void *lane, const char *file, int line);
    void (*sync)(unsigned id, unsigned threads, const char *file, int line);       /* threads 0: the block */
    void (*arrive)(unsigned id, unsigned threads, const char *file, int line);     /* bar.arrive: does not wait */
    void (*grid_wait)(const char *file, int line);
    void (*give_way)(const char *file, int line);       /* in loops that wait for what another thread writes */
    /* valid false: zeros; src is not read */
    void (*copy_async)(unsigned dst, const void *src, unsigned bytes, unsigned valid);
    void (*copy_commit)(void);
    void (*copy_wait)(unsigned groups);
    unsigned char *(*shared_pointer)(unsigned at, unsigned bytes, unsigned align);
    unsigned (*shared_address)(const void *p);
    void *(*cluster_map)(const void *p, unsigned rank);
    void (*cluster_arrive)(void);
    void (*cluster_wait)(const char *file, int line);
    void (*barrier_init)(unsigned bar, unsigned count);
    void (*barrier_arrive)(unsigned bar, unsigned count, unsigned bytes);           /* bytes are expected first */
    void (*barrier_expect)(unsigned bar, unsigned bytes);                           /* without arriving */
    void (*barrier_wait)(unsigned bar, unsigned parity, const char *file, int line);
    void (*barrier_arrive_copies)(unsigned bar);
    void (*copy_bulk)(unsigned dst, const void *src, unsigned bytes, unsigned bar);
    /* st.async: 4 or 8 bytes to a block of the cluster, where they arrive at a barrier of that block */
    void (*send_async)(unsigned dst, const void *value, unsigned bytes, unsigned bar);
    unsigned (*cluster_address)(unsigned at, unsigned rank);
    /* cp.async.bulk.tensor into shared memory; at: coordinates, innermost first; offset: of im2col, or NULL */
    void (*copy_tensor)(unsigned dst, const void *map, unsigned bar, const int *at, const unsigned short *offset);
    /* the other way: read when its thread waits for it, and no earlier; commit ends a group */
    void (*copy_out)(unsigned src, const void *map, const int *at);
    void (*copies_out_commit)(void);
    void (*copies_out_wait)(unsigned groups);
    void (*product_begin)(void);
    /* wgmma by one lane: its part of 64 x n, both sides in shared memory as their descriptors say. c: floats, or i32 of
       integers. adds: 0 writes. */
    void (*product)(enum emulator_collective kind, void *c, unsigned n, unsigned long long a, unsigned long long b,
                    int adds);
    /* the same with a in registers (which stay until it is waited for) and b turned: rows along k, columns innermost */
    void (*product_turned)(enum emulator_collective kind, float *c, unsigned n, const unsigned *a,
                           unsigned long long b, int adds);
    void (*product_commit)(void);
    void (*product_wait)(unsigned groups, const char *file, int line);
    /* setmaxnreg: this thread has `count` registers from now on */
    void (*registers)(unsigned count);
    void (*fail)(const char *why, const char *file, int line);
};

#endif
