/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h - what measure.c and time.c share: the operands of one problem, and one kernel's program on them. */
#ifndef TUNE_BENCH_H
#define TUNE_BENCH_H

#include "tune/tune.h"

enum { BENCH_PITCH = 256 }; /* between copies of a weight */
/* About how long a chain of launches runs. */
static const double chain_ns = 1e6;

typedef struct bench_buffer {
    void *at;
    size_t size;
} bench_buffer;

typedef struct operand {
    view v;             /* data: host memory, of constants and where that is the device's */
    size_t count;       /* elements, with those between lines */
    size_t size;        /* bytes of one copy */
    uint32_t copies;    /* 0: absent */
    bench_buffer plain; /* on the device, as it is */
    int64_t length;     /* of an operand that is a length: how many keys are valid */
    value_range values; /* which numbers are indices in range; infinite: the operand has none */
} operand;

struct tune_bench {
    env *e;
    arena a; /* of the problem */
    const problem *p;
    const tune_options *o;
    bool is_on_device;
    /* On the host: weights are evicted before each launch. False from the first launch on that reads few of them. */
    bool is_cold;
    stream *stream;
    operand *at;
    bench_buffer *packed; /* by operand: weights packed for the current kernel; reused while large enough */
    uint32_t count, chain;
    bench_buffer workspace; /* on a device: of all lanes */
};

/* One kernel with a tactic, its weights and its program. */
typedef struct bench_lane {
    tune_bench *bench; /* NULL: it was not opened */
    const kernel *kernel;
    const tactic *tactic;
    bool is_own; /* has its own buffers of packed weights, beside other lanes */
    arena a, scratch;
    bench_buffer *packed;
    void **base;               /* by operand: the first copy */
    size_t *pitch;             /* by operand: bytes from copy to copy; on the host those of the only copy */
    uint32_t *first_id;        /* by operand: of its first copy's address */
    program *program;
    program_run run;
} bench_lane;

/* Close the lane whether or not it opened. The bench's own buffers serve one lane at a time (is_own false). */
sinter_status bench_lane_open(tune_bench *b, bench_lane *l, const kernel *k, const tactic *t, bool is_own);
void          bench_lane_close(bench_lane *l);

#endif
