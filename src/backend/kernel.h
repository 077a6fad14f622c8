/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h - a kernel: a family of code that takes a problem or says why not.
 *
 * Rows of a backend's kernels.def, in order of preference; the reference is last and rejects nothing. `reject`,
 * `check`, `workspace`, `pack_size` and `record_size` are pure functions of problem and tactic: the engine verifier
 * calls them again. */
#ifndef BACKEND_KERNEL_H
#define BACKEND_KERNEL_H

#include "ops/problem.h"

enum { TACTIC_SIZE = 32 };
/* equal bytes, equal tactic; kernels overlay a struct */
typedef struct tactic { uint8_t at[TACTIC_SIZE]; } tactic;

/* What a kernel may know of the machine it is chosen for. */
typedef struct kernel_target {
    uint32_t isa;                       /* cpu: isa_level; cuda: compute capability, 75 to 120 */
    uint32_t features;                  /* cpu: isa_features beside the level */
    bool     is_exact;                  /* math=exact: nothing that takes a number for another */
    uint32_t threads;                   /* tuned for this many; runs with any; cuda: 1 */
    double   flops;                     /* f32 per second and thread (cuda: device), roughly: for the cost model */
    double   bandwidth;                 /* bytes per second and thread from the last cache (cuda: device memory) */
    uint64_t cache_l1, cache_l2;        /* bytes a core; cuda: l2 of the device */
    uint64_t cache_last;                /* bytes of the last level, which cores share; cuda: as l2 */
    uint32_t units;                     /* cuda: multiprocessors */
    uint32_t shared;                    /* cuda: bytes of shared memory that one block may have */
    uint32_t cluster;                   /* cuda: the most blocks of that much shared memory in a cluster; 0: none */
} kernel_target;

typedef struct tactic_sink { tactic at[32]; uint32_t count; } tactic_sink;

/* How the tiles of a phase are handed out: calls body(arg, begin, end, worker) over disjoint ranges that cover [0,
 * count), and returns when all are done. worker < threads and no two calls with the same worker overlap. NULL parallel
 * functions run everything at once. */
typedef struct parallel {
    void   (*run)(const struct parallel *p, uint32_t count,
                  void (*body)(void *arg, uint32_t begin, uint32_t end, uint32_t worker), void *arg);
    uint32_t threads;
} parallel;

typedef struct kernel_run {
    const void     *record;             /* what bind wrote */
    void *const    *in;                 /* data of each input's element [0…]; constants as packed */
    void *const    *out;
    void           *workspace;          /* 64-byte aligned, as booked */
    const parallel *parallel;
    data_fault     *fault;
    void           *stream;             /* KERNEL_ON_STREAM: the driver's handle */
    env            *e;                  /* reference kernels and plugins: errors and scratch */
    arena          *scratch;
} kernel_run;

/* What a kernel's results are against the op's own arithmetic; bound.h says in numbers what each class may err. */
typedef enum kernel_numerics {
    KERNEL_EXACT_SUMS = 0,              /* sums of the op's own products in some order */
    KERNEL_TRANSFORMED,                 /* sums of other products that are equal but for rounding: not for math=exact */
    KERNEL_RELAXED                      /* rounds operands: only where the user permits it */
} kernel_numerics;

/* Where a kernel runs, and so where its operands lie. */
typedef enum kernel_where {
    KERNEL_ON_DEVICE,                   /* in a program of the backend */
    KERNEL_ON_HOST,                     /* by `run`, on host memory, between programs: all operands in PLACE_HOST */
    /* by `run`, which puts work on the stream; operands as on the device. Such steps are programs of their own, and
     * `run` is called in each launch */
    KERNEL_ON_STREAM,
    KERNEL_TRANSFER                     /* one dense operand from one place to the other: backend.copy */
} kernel_where;

/* What a kernel can write beside dense results. The innermost axis of the order is always dense. */
typedef enum strides_out {
    STRIDES_NONE,
    STRIDES_ROWS,                       /* rows of a pitch: axes further out run on */
    STRIDES_ANY                         /* each axis further out has a stride of its own */
} strides_out;

typedef struct kernel {
    const char *name;                   /* stable: part of cache keys and engine files */
    uint32_t    abi;                    /* parameters and packing; raised by hand */
    strides_out out_strides;            /* concat by address: such a result is a part of another */
    /* a single result may lie exactly where an operand of the programs lies that is seen alike */
    bool        is_in_place;
    /* results that op_updates names may lie exactly where their inputs lie: only new elements are written */
    bool        updates_in_place;
    kernel_numerics numerics;
    kernel_where where;
    const char *(*reject)(const problem *p, const kernel_target *t);         /* NULL: can run; else the reason */
    /* best guess first; at least one */
    void   (*tactics)(const problem *p, const kernel_target *t, tactic_sink *out);
    bool   (*check)(const problem *p, const tactic *t);
    /* The tactic with the kernel behind it let in at other times, the soonest first, its own among them; `check` may
     * refuse some. Weights are packed alike. What it is worth shows in a whole program alone. NULL: no choice. */
    void   (*lets_in)(const tactic *t, tactic_sink *out);
    void   (*print)(const tactic *t, text *out);                             /* "14x32"; NULL: no parameters */
    double (*cost_ns)(const problem *p, const tactic *t, const kernel_target *target);
    /* bytes, for every shape in range; NULL: none */
    size_t (*workspace)(const problem *p, const tactic *t, uint32_t threads);
    /* bytes; 0: taken as it is (dense row-major); NULL: always */
    size_t (*pack_size)(const problem *p, const tactic *t, uint32_t input);
    void   (*pack)(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst);
    size_t  record;                     /* bytes of the record; kernel_record_size has the sum of both */
    size_t (*record_size)(const problem *p, const tactic *t);                /* bytes behind these; NULL: none */
    /* Shapes are known, and a result has an element: fills the record. `in` and `out` have dims and strides; data is
     * NULL except for constants that are not packed. attrs: resolved. The record may point to p, t, attrs and itself,
     * which outlive it. */
    sinter_status (*bind)(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                          const view *out, void *record);
    sinter_status (*run)(const kernel_run *r);
    /* Frees what `bind` made besides the record: before the record is bound again, and before its memory goes. A zeroed
     * record is accepted. NULL: nothing. */
    void   (*unbind)(void *record);
} kernel;

static inline size_t kernel_record_size(const kernel *k, const problem *p, const tactic *t)
{
    return k->record + (k->record_size ? k->record_size(p, t) : 0);
}

/* Must result i lie where input i does, since nothing but its new elements is written? */
static inline bool kernel_updates(const kernel *k, const problem *p, uint32_t i)
{
    if (!k->updates_in_place || !op_updates(p->op, i)) return false;
    return p->op != OP_tensor_scatter || ((const attrs_tensor_scatter *)p->attrs)->in_place;
}

#define REJECT_UNLESS(condition, reason)      \
    do {                                      \
        if (!(condition)) return (reason);    \
    } while (0)

#endif
