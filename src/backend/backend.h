/* SPDX-License-Identifier: Apache-2.0 */
/* backend.h - a device, seen from outside: memory, kernels, and programs made of launches.
 *
 * A segment of an engine (steps between two points where the host must look) becomes one program: a list of bound
 * records on the CPU, one graph launch on a GPU. backends/list.c names every backend; nothing registers itself. */
#ifndef BACKEND_BACKEND_H
#define BACKEND_BACKEND_H

#include "backend/kernel.h"

typedef struct device device;           /* each backend's own */
typedef struct program program;

typedef struct device_options {
    uint32_t    threads;                /* 0: as many as there are CPUs */
    const char *isa;                    /* a cap, or NULL */
} device_options;

/* One launch: a kernel with its shapes known. Views carry data only for constants that are not packed. */
typedef struct program_step {
    const kernel   *kernel;
    const problem  *problem;
    const tactic   *tactic;
    const void     *attrs;              /* resolved; copied as far as the program needs it */
    uint32_t        count_in, count_out;
    const view     *in, *out;
    const uint32_t *in_id, *out_id;     /* where their addresses are in program_run.address; 0: absent */
    uint32_t        index;              /* of the step in the engine: for faults and times */
} program_step;

typedef struct step_clock { uint64_t runs, total_ns, min_ns; } step_clock;

typedef struct program_run {
    void *const *address;               /* of each value's element [0, 0, …] */
    void        *workspace;
    data_fault  *fault;
    step_clock  *clock;                 /* by step index; NULL: not measured */
    env         *e;
    arena       *scratch;               /* of the caller's thread; rewound after each step */
} program_run;

typedef struct backend {
    const char *name;
    sinter_status (*open)(env *e, const device_options *options, device **out);
    void          (*close)(env *e, device *d);
    void          (*target)(const device *d, kernel_target *out);
    const kernel *const *(*kernels)(uint32_t *count);
    /* Text that names the class of this device for the timing cache; nothing dispatches on it. */
    void          (*describe)(const device *d, text *out);

    /* Memory of the place where programs read and write; host memory here means that address is usable by both. */
    void         *(*memory_alloc)(env *e, device *d, size_t size);
    void          (*memory_free)(env *e, device *d, void *ptr, size_t size);

    /* Binds `count` steps into one program. `reuse`: a program of the same steps to bind again in place, or NULL. */
    sinter_status (*program_create)(env *e, device *d, const program_step *step, uint32_t count, program *reuse,
                                    program **out);
    sinter_status (*program_launch)(device *d, program *p, const program_run *run);
    void          (*program_destroy)(env *e, device *d, program *p);
    size_t        (*program_memory)(const program *p);
} backend;

/* backends/list.c: every backend of this build, by name. NULL: no such one. */
const backend *backend_find(const char *name);

#endif
