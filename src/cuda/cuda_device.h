/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_device.h - one GPU, or a chip that is not there and is only built for.
 *
 * Any thread may use a device, and several devices may be open: each call pushes the device's primary context and pops
 * it. A failure that kills the context is remembered: every later call gives the same error at once, with the name of
 * what failed first. What the device owns (the table of code) is made by whatever thread asks first, so it lives in the
 * allocator of the env that opened the device. */
#ifndef CUDA_DEVICE_H
#define CUDA_DEVICE_H

#include "backend/backend.h"
#include "cuda/compile.h"
#include "cuda/lock.h"
#include "cuda/table.h"

enum { CLUSTER_SIZES = 4 };             /* 2, 4, 8 and 16 blocks */

struct device {
    cuda_driver   driver;
    cuda_compiler compiler;
    kernel_target target;
    bool          is_present, trusts_code;
    char          name[96];             /* "NVIDIA H200", or "sm_90a" */
    uint32_t      clusters[CLUSTER_SIZES];          /* how many it holds at once; 0: none, or the driver cannot say */
    CUdevice      handle;
    CUcontext     context;              /* the primary one, retained */
    CUstream      setup;                /* clears fresh memory */
    sinter_device_allocator allocator;  /* the caller's; allocate NULL: the driver's */
    memory_counts counts;
    env           own;
    cuda_lock     lock;                 /* of `table`, `own` and `death` */
    code_table    table;
    uint32_t      is_dead;
    uint32_t      launch_needs_context; /* a driver that wants a current context for a graph's launch */
    char          death[256];
    uint32_t      nvml_state;           /* clock.c: NVML_UNKNOWN until first asked */
    nvmlDevice    nvml;
};

/* What kernels may know of a chip that is not there: of a card that has it. false: no such compute capability. */
bool          cuda_chip_target(uint32_t isa, kernel_target *out);

sinter_status cuda_device_open(env *e, const device_options *options, device **out);
void          cuda_device_close(env *e, device *d);
void          cuda_device_describe(const device *d, text *out);

void *cuda_memory_alloc(env *e, device *d, size_t size);
void  cuda_memory_free(env *e, device *d, void *ptr, size_t size);
void *cuda_memory_grow(env *e, device *d, void *ptr, size_t old_size, size_t size);
sinter_status cuda_memory_left(env *e, device *d, uint64_t *left, uint64_t *all);
const memory_counts *cuda_memory_counts(const device *d);
/* Without clearing it, and with the device's context current. */
CUresult cuda_memory_take(device *d, size_t size, uint32_t flags, CUdeviceptr *out);
void  cuda_memory_give(device *d, CUdeviceptr at, size_t size);
void *cuda_host_alloc(env *e, device *d, size_t size);
void  cuda_host_free(env *e, device *d, void *ptr, size_t size);

/* clusters.c: fills `clusters` and target.cluster, with the context current. */
sinter_status cuda_device_ask_clusters(env *e, device *d);

/* clock.c: false where NVML is not there or does not tell. */
bool  cuda_device_clock(device *d, device_clock *out);
/* As the driver states the chip; products of 16 and 8 bits are those of its tensor cores. */
sinter_status cuda_device_rates(env *e, device *d, size_t touched, device_rates *out);
void  cuda_device_clock_close(device *d);

/* Begins and ends what a profiler with a capture range records. */
sinter_status cuda_device_profile(env *e, device *d, bool is_on);

/* Between these two the device's context is current. enter fails where there is no device, and where it is dead. */
sinter_status cuda_device_enter(env *e, device *d);
void          cuda_device_leave(device *d);
/* For releasing: what there is of a context becomes current, dead or not; false: leave it alone. */
bool          cuda_device_enter_any(device *d);
/* cuda_fail, and the device is dead from now on where the context is. */
sinter_status cuda_device_fail(env *e, device *d, CUresult r, const char *what);
/* The error of a dead device; OK otherwise. */
sinter_status cuda_device_check(env *e, device *d);
#define DEVICE_TRY(e, d, call, what)                                                                      \
    do {                                                                                                  \
        const CUresult device_try_result = (d)->driver.call;                                              \
        if (device_try_result != CUDA_SUCCESS) return cuda_device_fail(e, d, device_try_result, what);    \
    } while (0)

#endif
