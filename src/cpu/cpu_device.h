/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_device.h - a CPU as a device: the instruction set it may use, its caches, and its pool of workers. */
#ifndef CPU_DEVICE_H
#define CPU_DEVICE_H

#include "backend/backend.h"
#include "cpu/isa.h"
#include "cpu/threads.h"

typedef struct cpu_device {
    kernel_target target;
    isa_choice    isa;                  /* in use: what the machine has, under the cap */
    cpu_pool     *pool;
} cpu_device;

/* isa_cap: "plain", "avx2", "avx512", or NULL for what the machine has; a level above that is lowered to it. The pool
 * is the one that all devices of the process with these options share. */
sinter_status cpu_device_init(env *e, const char *isa_cap, const cpu_pool_options *pool, cpu_device *out);
void          cpu_device_deinit(cpu_device *d);                          /* a zeroed one too */
/* The machine's class as text for the timing cache: ISA in use, vendor, family, model, stepping, caches. */
void          cpu_device_describe(const cpu_device *d, text *out);
/* The target of a level with this machine's caches: what cpu_device_init fills. */
kernel_target cpu_target_of(isa_choice isa, uint32_t threads);

/* probe.c. `touched`: bytes that a run reads and writes; the bandwidth of memory is that of a block of this size. Takes
 * 0.1 to 0.5 s. */
sinter_status cpu_rates(env *e, const cpu_device *d, size_t touched, device_rates *out);

#endif
