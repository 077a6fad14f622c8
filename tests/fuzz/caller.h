/* SPDX-License-Identifier: Apache-2.0 */
/* caller.h - one caller of the random call orders: his context, and all memory that he has given to it.
 *
 * Host memory lies at pages without access. What was replaced may not be touched any more. */
#ifndef CALLER_H
#define CALLER_H

#include "engine_rig.h"
#include "sinter/sinter.h"

#include <stdbool.h>

enum { CALLER_IO_MAX = 16 };

/* How a caller answers the request for an output's memory. */
typedef enum caller_answer {
    ANSWER_EXACT,                   /* new memory of the exact size, each time */
    ANSWER_BOUND,                   /* memory of the upper bound, allocated before */
    ANSWER_EXPERIENCE,              /* memory that was enough before, or none */
    ANSWER_GROW,                    /* what there is, grown when it is too small */
    ANSWER_LATE,                    /* none before the first request, then as ANSWER_GROW */
    ANSWER_COUNT
} caller_answer;

struct caller;
typedef struct caller_request {
    struct caller *x;
    uint32_t       io;
    bool           is_used;         /* the output has the allocator */
    caller_answer  how;
    size_t         asked;           /* bytes of the last request */
    uint32_t       requests, notes; /* in this run */
    int64_t        dim[SINTER_RANK_MAX];
    bool           refused;         /* in this run */
} caller_request;

typedef struct caller {
    sinter_engine *g;
    sinter_context *c;
    uint32_t profile, ios;
    bool has_places, has_kernels; /* memory of the device, too; kernels that do something */
    uint64_t random;
    sinter_io io[CALLER_IO_MAX];
    bool is_set[CALLER_IO_MAX];
    sinter_tensor input[CALLER_IO_MAX];
    uint64_t sum[CALLER_IO_MAX]; /* of an input's bytes */
    void *output[CALLER_IO_MAX];
    sinter_place place[CALLER_IO_MAX];                   /* of the memory given for an output */
    size_t room[CALLER_IO_MAX], last[CALLER_IO_MAX];     /* of the memory given for an output, and of its last result */
    caller_request request[CALLER_IO_MAX];
    sinter_memory strategy;
    void *memory;                   /* for activations */
    size_t memory_size;
    rig_count *count;
} caller;

bool caller_expect(caller *x, bool is_true, const char *what, const char *name);
void *caller_take(caller *x, size_t size, sinter_place place);
void caller_give(caller *x, void *at, size_t size, sinter_place place);
sinter_place caller_any_place(caller *x);
void caller_copy(caller *x, void *to, sinter_place to_place, const void *from, sinter_place from_place, size_t size);
/* A tensor's bytes on the host (malloc). */
uint8_t *caller_read(caller *x, const sinter_tensor *t);

/* ---- caller_memory.c ---- */
/* Activation memory of some size, or none; wrong calls now and then. */
void caller_give_memory(caller *x);
void caller_forget_memory(caller *x);
/* Other bytes wherever the context may keep nothing: in the caller's activation memory. */
void caller_poison(caller *x);
/* Is there enough activation memory for the shapes that are set? */
bool caller_has_memory(caller *x);
/* The output's memory comes from the caller during runs. */
void caller_answer_requests(caller *x, uint32_t i);
void caller_forget_output(caller *x, uint32_t i);
/* Before and after a run: what the requests were. dims: of the result. */
void caller_begin_run(caller *x);
void caller_check_request(caller *x, uint32_t i, const sinter_tensor *result);
/* Another profile for the context. */
void caller_change_profile(caller *x);

/* Sizes that are told before a run are those that it has. */
typedef struct caller_sizes {
    bool          is_known;
    sinter_tensor shape;
    size_t        bound;            /* SIZE_MAX: there is none */
} caller_sizes;
void caller_foretell(caller *x, caller_sizes out[CALLER_IO_MAX]);
void caller_check_sizes(caller *x, const caller_sizes *told, uint32_t i, const sinter_tensor *result);

#endif
