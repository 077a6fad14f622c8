/* SPDX-License-Identifier: Apache-2.0 */
/* backend.h - a device, seen from outside: memory, kernels, and programs made of launches.
 *
 * A segment of an engine (steps between two points where the host must look) becomes one program: a list of bound
 * records on the CPU, one graph launch on a GPU. backends/list.c names every backend; nothing registers itself. */
#ifndef BACKEND_BACKEND_H
#define BACKEND_BACKEND_H

#include "backend/kernel.h"
#include "sinter/engine.h"

typedef struct device device;           /* each backend's own */
typedef struct program program;

/* An order of work on a device. Work on it is asynchronous: what a call was given lives until stream_wait. */
typedef struct stream stream;
enum { STREAM_MARKS = 4 };

typedef struct device_options {
    uint32_t    threads;                /* 0: as many as there are CPUs */
    uint32_t    spin_us;                /* how long idle workers watch after a run before they sleep */
    bool        is_pinned;              /* each worker stays on a core of its own */
    const char *isa;                    /* a cap, or NULL */
    const char *name;                   /* which one: cuda: "0", "1" …, or "sm_90a" (build only); NULL: the first */
    const char *kernel_cache;           /* folder of compiled kernels; NULL: the user's; "": none */
    bool        trusts_code;            /* code that the engine carries may run */
    bool        is_shown;               /* an engine is shown and never run: the device is as one of `shown_isa` */
    uint32_t    shown_isa;              /* what the engine was built for, as its notes say */
    const sinter_device_allocator *allocator;           /* of its memory; NULL: its own. Copied */
} device_options;

/* Bytes and calls. Changed and read atomically, each by itself. */
typedef struct memory_counts { uint64_t live, peak, total, allocations, frees; } memory_counts;
void memory_count_take(memory_counts *c, size_t size);
void memory_count_give(memory_counts *c, size_t size);

/* What a device can do at most, with all of its threads, in a second: operations on f32; on 16-bit floats and on 8-bit
 * integers in products; bytes from its memory, and from the caches beside its units. */
typedef struct device_rates { double f32, f16, int8, memory, cache; } device_rates;

/* How fast a device runs at this moment. is_throttled: less than it could, for want of power or for heat. */
typedef struct device_clock { uint32_t mhz; bool is_throttled; } device_clock;

typedef enum copy_kind { COPY_TO_DEVICE, COPY_FROM_DEVICE, COPY_ON_DEVICE } copy_kind;

/* A kernel as it was chosen: what decides which code it needs. */
typedef struct kernel_use {
    const kernel  *kernel;
    const problem *problem;
    const tactic  *tactic;
} kernel_use;

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

/* Has a result an element? Where none has, a step is neither bound nor run. */
static inline bool program_step_has_results(const program_step *s)
{
    for (uint32_t i = 0; i < s->count_out; i++)
        if (s->out[i].dtype != SINTER_DTYPE_NONE && view_count(&s->out[i]) > 0) return true;
    return false;
}

typedef struct step_clock { uint64_t runs, total_ns, min_ns; } step_clock;

/* Which steps of a program may run side by side, where a backend can do that: none; such that share no bytes and of
 * which neither fills the device; all that share no bytes. Stored in engines: numbers stay. */
typedef enum program_order { ORDER_CHAIN = 0, ORDER_SMALL = 1, ORDER_FREE = 2, ORDER_COUNT } program_order;

/* Told when the work of a step begins and ends, in the thread that launches it. */
typedef struct step_watch {
    void (*begin)(void *user, uint32_t step);
    void (*end)(void *user);
    void *user;
} step_watch;

typedef struct program_run {
    void *const *address;               /* of each value's element [0, 0, …] */
    void        *workspace;
    data_fault  *fault;
    step_clock  *clock;                 /* by step index; NULL: not measured */
    env         *e;
    arena       *scratch;               /* of the caller's thread; rewound after each step */
    stream      *stream;                /* NULL where the backend has none */
    program_order order;
    const step_watch *watch;            /* NULL: nobody. Backends that launch many steps at once do not call it */
} program_run;

/* Receives one fact about the machine. */
typedef void (*backend_line_fn)(void *user, const char *name, const char *value);

/* What a backend does well, for passes that have a choice. INTEGERS: products of 8-bit numbers are faster than those
 * of the floats that they stand for. UNSIGNED: they want data without a sign, and take zero points of both factors.
 * PROLOGUES: contractions run programs on their operands. REBINDS: a program that is made for one launch may be bound
 * again while that launch is under way. */
enum { BACKEND_INTEGERS = 1, BACKEND_PROLOGUES = 2, BACKEND_REBINDS = 4, BACKEND_UNSIGNED = 8 };

typedef struct backend {
    const char *name;
    uint32_t    traits;
    sinter_status (*open)(env *e, const device_options *options, device **out);
    void          (*close)(env *e, device *d);
    void          (*target)(const device *d, kernel_target *out);
    /* FAILs with INCOMPATIBLE where this target cannot run an engine whose notes state `isa`, and names both. */
    sinter_status (*admit)(env *e, uint32_t isa, const kernel_target *target);
    const kernel *const *(*kernels)(uint32_t *count);
    /* NULL, or why a kernel's `bind` refuses a tactic at sizes in the problem's ranges: the text of `error`. For
     * tactics that `check` accepts. NULL: kernels count in 64 bits. */
    const char   *(*fit)(const kernel *k, const problem *p, const tactic *t, sinter_error *error);
    /* Text that names the class of this device for the timing cache; nothing dispatches on it. */
    void          (*describe)(const device *d, text *out);
    /* Text that names the code of one kernel as it was chosen, for the same cache. NULL: that of the device says it. */
    void          (*describe_use)(const device *d, const kernel_use *use, text *out);

    /* Memory of the place where programs read and write, zeroed. NULL: `e` says why; so for host_alloc. */
    void         *(*memory_alloc)(env *e, device *d, size_t size);
    void          (*memory_free)(env *e, device *d, void *ptr, size_t size);
    const memory_counts *(*memory_counts)(const device *d);

    /* What follows up to `program_create` is NULL where programs read and write host memory and end before
     * program_launch returns: there is one place then, and no stream. */

    /* Views whose offset, or pitch of any axis but the innermost, is not known to be a multiple of so many bytes are
     * stated as gapped; 0: any will do. Dense operands at an aligned offset always qualify. */
    uint32_t      alignment;
    /* ptr NULL and old_size 0: memory_alloc for a block that may have to grow. Else makes such a block larger: its
     * bytes stay, new ones are zero. NULL: it stays as it is. NULL function: blocks do not grow. */
    void         *(*memory_grow)(env *e, device *d, void *ptr, size_t old_size, size_t size);
    /* Host memory that copies to and from the device at full speed and asynchronously. */
    void         *(*host_alloc)(env *e, device *d, size_t size);
    void          (*host_free)(env *e, device *d, void *ptr, size_t size);
    /* native: the caller's own stream (CUstream), used and never destroyed; NULL: a new one. */
    sinter_status (*stream_create)(env *e, device *d, void *native, stream **out);
    void          (*stream_destroy)(env *e, device *d, stream *s);
    /* The driver's handle of a stream (CUstream). */
    void         *(*stream_native)(const stream *s);
    /* What is put on stream `s` from now on begins after all that is on `before` now. NULL: weights are not streamed */
    sinter_status (*stream_order)(env *e, device *d, stream *s, stream *before);
    /* Bytes of the device's memory: free, and all. */
    sinter_status (*memory_left)(env *e, device *d, uint64_t *left, uint64_t *all);
    /* Waits for all work on the stream; what a kernel found wrong in the data is put into `fault` and forgotten. */
    sinter_status (*stream_wait)(env *e, device *d, stream *s, data_fault *fault);
    /* The same before the stream is destroyed, where faults no longer matter. The caller's own stream may be gone
     * already: then, too, its work is done when this returns. */
    void          (*stream_finish)(env *e, device *d, stream *s);
    /* Marks where the work on the stream is when it gets there, and the time between two marks that were reached. NULL:
     * the host's clock serves. */
    sinter_status (*stream_mark)(env *e, device *d, stream *s, uint32_t mark);
    sinter_status (*stream_elapsed)(env *e, device *d, stream *s, uint32_t from, uint32_t to, double *ns);
    /* Has all work on the stream ended? NULL: cannot be told without waiting. */
    bool          (*stream_is_done)(device *d, stream *s);
    sinter_status (*copy)(env *e, device *d, stream *s, copy_kind kind, void *to, const void *from, size_t size);
    /* Makes the code of all these ready, in parallel: a hint before they are measured or bound. */
    sinter_status (*prepare)(env *e, device *d, const kernel_use *use, uint32_t count);
    /* Mean time of one of `repeats` launches one after the other, by the device's clock. */
    sinter_status (*program_time)(device *d, program *p, const program_run *run, uint32_t repeats, double *ns);
    /* The rates, measured or as the device states them. touched: bytes of one run; caches may hold them. */
    sinter_status (*rates)(env *e, device *d, size_t touched, device_rates *out);
    /* Tells profilers that wait for it to begin to record, or to end. NULL: there are none. */
    sinter_status (*profile)(env *e, device *d, bool is_on);
    /* false, or NULL: cannot be told. */
    bool          (*clock)(device *d, device_clock *out);
    /* Code for engines: everything that `use` needs, handed to `add` by key. import: what an engine carries; borrowed
     * while the device is open. Bytes are believed only if options.trusts_code was set. */
    sinter_status (*code_export)(env *e, device *d, const kernel_use *use, uint32_t count,
                                 sinter_status (*add)(void *user, const uint8_t key[32], const void *bytes,
                                                      size_t size),
                                 void *user);
    sinter_status (*code_import)(env *e, device *d, const uint8_t key[32], const void *bytes, size_t size);

    /* Binds `count` steps into one program. `reuse`: a program of the same steps to bind again in place, or NULL.
     * is_once: sizes that data decides; it will be bound again before its next launch. */
    sinter_status (*program_create)(env *e, device *d, const program_step *step, uint32_t count, bool is_once,
                                    program *reuse, program **out);
    sinter_status (*program_launch)(device *d, program *p, const program_run *run);
    /* Does what the first launch would do before it launches, for these addresses. NULL: that takes no time. */
    sinter_status (*program_ready)(device *d, program *p, const program_run *run);
    void          (*program_destroy)(env *e, device *d, program *p);
    size_t        (*program_memory)(const program *p);

    /* What this backend needs of the machine, found or missing, without opening a device: for doctor. NULL: nothing. */
    void          (*report)(backend_line_fn line, void *user);
} backend;

/* backends/list.c: every backend of this build, by name ("cpu", "cuda"; what follows a colon is device_options.name).
 * NULL: no such one. */
const backend *backend_find(const char *name);

#endif
