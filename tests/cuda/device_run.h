/* SPDX-License-Identifier: Apache-2.0 */
/* device_run.h - one problem on one kernel on a GPU, through the backend's own functions.
 *
 * Operands lie in one piece of device memory with guards between them, copied there and back as a whole; results and
 * workspace begin as 0xFF. Where they lie apart, each has an allocation of exactly its size, so that a tool that
 * watches allocations sees what leaves them. */
#ifndef CUDA_DEVICE_RUN_H
#define CUDA_DEVICE_RUN_H

#include "backend/backend.h"
#include "case_rig.h"

enum { DEVICE_LANES = 2 };

typedef struct device_rig {
    bool     is_separate;               /* operands lie apart */
    uint32_t repeat;                    /* on two streams at once, so many times; 0: once on one */
    long     unsteady;                  /* runs whose results differed in bits from time to time */
    sinter_status last;                 /* of the backend's last call: why device_rig_run says no */
    case_rig *cases;
    env      *e;
    device   *device;
    kernel_target target;
    stream   *stream[DEVICE_LANES];
    unsigned char *before, *after[DEVICE_LANES], *slab[DEVICE_LANES];  /* images: host, host, device */
    size_t    room;
} device_rig;

/* gpu: which one, or NULL. threads: compilations at once; 0: as many as there are CPUs. */
sinter_status device_rig_open(device_rig *r, case_rig *cases, const char *gpu, uint32_t threads);
void          device_rig_close(device_rig *r);
/* NULL, or what is wrong. is_late: as a program of sizes that are known late, which is launched without a graph. */
const char   *device_rig_run(device_rig *r, const kernel *k, const tactic *t, case_trial *x, bool is_late, char *why,
                             size_t size);

#endif
