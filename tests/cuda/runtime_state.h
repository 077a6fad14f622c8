/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_state.h - what runtime.c (the scheduler) and calls.c (what kernels ask for) share: the launch under way. */
#ifndef CUDA_RUNTIME_STATE_H
#define CUDA_RUNTIME_STATE_H

#include "fiber.h"
#include "runtime.h"
#include "warp.h"

#include <setjmp.h>
#include <signal.h>

enum {
    STACK = 256 << 10, STACK_TOP = 16 << 10,
    PAGE = 4096,
    THREADS_MAX = 1024,
    CLUSTER_MAX = 16,
    FIBERS_MAX = THREADS_MAX * CLUSTER_MAX,
    SHARED_MAX = 232448,
    SHARED_PLACE = 256 << 10,
    SHARED_SLACK = 0xC5,
    NAMED = 16,
    PHASES = 256
};
/* Addresses of shared memory as kernels have them: the block's rank above, then a gap that no address may be in. */
enum { RANK_SHIFT = 24, SHARED_FROM = 1024 };

typedef enum fiber_state {
    FIBER_READY,
    FIBER_ENDED,
    FIBER_IN_GRID_WAIT,
    FIBER_IN_COLLECTIVE,
    FIBER_IN_SYNC,
    FIBER_IN_BARRIER,
    FIBER_IN_CLUSTER
} fiber_state;

typedef struct copy {
    unsigned char *dst;
    const void *src;
    uint32_t bytes, group;
    bool is_valid;
} copy;

/* A lane's part of a product of its warpgroup. */
typedef struct product {
    enum emulator_collective kind;
    void *c;                            /* floats or i32 */
    uint32_t n, group;
    uint64_t a, b;
    const unsigned *registers;          /* of a; NULL: a is a descriptor, and b is not turned */
    int adds;
} product;

typedef struct warp {
    uint32_t alive, come;
    enum emulator_collective kind;
    void *lane[32];
    int line;
    const char *file;
} warp;

/* An mbarrier. The 64 bits in shared memory are not used. */
typedef struct phase_barrier {
    uint32_t at, count;
    int64_t pending, bytes;
    uint32_t phase;
} phase_barrier;

typedef struct block {
    struct emulator_index index;
    unsigned char *shared;
    uint32_t rank, alive;
    struct {
        uint32_t come, wanted;
    } named[NAMED];
    phase_barrier phase[PHASES];
    uint32_t phase_count;
    int64_t registers;                  /* that its threads take beyond those of the launch */
} block;

/* Work that the hardware does by itself: a bulk copy, a value sent to a block, or the arrival of a thread's copies. */
typedef struct event {
    block *block;
    uint32_t bar, bytes;                /* bytes: of a tensor copy out its group */
    unsigned char *dst;
    const void *src;                    /* NULL: the bytes are in `value` */
    unsigned char value[8];
    struct fiber *of;
    bool is_tensor, is_out;
    struct emulator_map map;
    uint32_t to;
    int at[5];
    unsigned short offset[3];
} event;

typedef struct fiber {
    struct emulator_thread seen; /* first: what the kernel has */
    fiber_context context;
    fiber_state state;
    bool has_waited;
    bool has_begun;                     /* product_begin() */
    block *block;
    warp *warp;
    uint32_t id, named, parity, groups, cluster_phase;
    phase_barrier *phase;
    const char *file;
    int line;
    copy *copies;
    product *products;
    event *outs;                        /* tensor copies out that it has not waited for */
    uint32_t out_count, out_room, out_groups;
    uint32_t copy_count, copy_room, product_count, product_room, product_groups, product_left;
} fiber;

typedef struct runtime {
    const runtime_launch *l;
    void (*entry)(void *const *param);
    struct emulator_thread **now;
    fiber_context main;
    sigjmp_buf jump;
    fiber *current;
    bool is_open, has_failed;
    volatile sig_atomic_t signal;
    uintptr_t pc, address;
    fiber *fibers;
    warp *warps;
    block blocks[CLUSTER_MAX];
    unsigned char *stacks, *shared_memory;
    uint32_t guarded; /* stacks that end with a page that nobody may touch */
    uint32_t fiber_count, alive, threads, cluster;
    uint32_t cluster_come, cluster_phase;
    event *events;
    uint32_t event_first, event_count, event_room;
    char why[1600];
} runtime;

extern runtime rt;
extern const struct emulator_calls runtime_calls;

/* ---- runtime.c ---- */

/* The most that a thread can be launched with: a block has 65536 at most. */
int64_t runtime_registers(void);

/* Adds to what is wrong. */
void runtime_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void runtime_say_thread(const fiber *f);
const char *runtime_base_name(const char *path);
/* Back to the scheduler, for good. */
void runtime_give_up(void);
void runtime_give_way(void);
/* Operands that are no constants: within reach, or out of it. */
void runtime_set_open(bool is_open);

#define THREAD_FAIL(...)                                                                                      \
    do {                                                                                                      \
        runtime_say(__VA_ARGS__);                                                                             \
        if (rt.current) runtime_say_thread(rt.current);                                                       \
        runtime_give_up();                                                                                    \
    } while (0)

/* ---- calls.c ---- */

/* Wakes those of the block that wait for named barrier `id`. */
void runtime_open_named(block *b, uint32_t id);
/* All lanes have come: does what they came for. */
void runtime_run_collective(warp *w);
void runtime_wake_warp(const warp *w);
/* Does the oldest asynchronous work that is under way. */
void runtime_run_event(void);
void runtime_cluster_check(void);
bool runtime_has_passed(const phase_barrier *p, uint32_t parity);

#endif
