/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - a program: launches with their parameters, and the graph that was made of them.
 *
 * bind.c fills the launches, cuda_graph.c makes and updates the graph, program.c runs; program_call.c has programs that
 * the host launches by calling functions. */
#ifndef CUDA_PROGRAM_H
#define CUDA_PROGRAM_H

#include "cuda/cuda_device.h"
#include "cuda/launch.h"
#include "cuda/stream.h"

/* Where an address goes, or a tensor map over one. */
typedef struct program_patch {
    uint8_t  *to;                       /* in the launch's parameters */
    uint64_t  now;                      /* the address that is there or that the map was encoded for */
    int64_t   offset;
    uint32_t  slot;                     /* of program.slot; SLOT_* */
    const cuda_map *map;                /* NULL: the address itself */
} program_patch;
enum { SLOT_WORKSPACE = 0, SLOT_FAULT = 1, SLOT_FIRST = 2 };

/* A value, or the workspace, that a launch touches; constants are not among them. */
typedef struct program_touch { uint32_t slot; bool is_written; } program_touch;

typedef struct program_node {
    const loaded_code *code;
    uint32_t  grid[3], block, cluster, shared;
    uint32_t  step;                     /* which of the program's steps */
    uint32_t  param_count;
    void     *param[LAUNCH_PARAMS];
    program_patch *patch;
    uint32_t  patch_count, touch_count;
    program_touch *touch;
    CUgraphNode handle;
} program_node;

typedef struct program_slot { uint32_t id; uint64_t now; } program_slot;   /* id: in program_run.address */

/* What lies at a slot's address. Apart from the slots, which every launch goes through. */
typedef struct program_extent {
    view v;                             /* without its address */
    bool is_touched, is_written;        /* by a launch; constants are not */
    bool is_vague;                      /* steps see it differently: only the bytes count */
    uintptr_t begin, end;               /* counted from the address, around 0 */
} program_extent;

typedef struct program_call program_call;

struct program {
    arena      a;
    arena_mark bound;                   /* what lies after it is bound again */
    bool       is_once, has_fault;
    uint32_t   step_count, node_count, slot_count;
    const char **name;                  /* by step: the kernel's, for errors */
    uint32_t  *index;                   /* by step: the engine's number of it */
    use_code  *code;                    /* by step */
    program_node *node;
    program_slot *slot;
    program_extent *extent;             /* by slot */
    uint64_t  *next;                    /* by slot: room for addresses */
    program_order order;                /* of the graph */
    bool       has_branches;            /* the graph is no chain */
    CUgraph    graph;
    CUgraphExec exec;                   /* NULL: not made yet */
    CUevent   *event;                   /* step_count + 1, made when first timed; at least two */
    uint32_t   event_count;
    program_call *call;                 /* by step: the program is made of calls, and has no nodes. NULL: it is not */
    void     **pointer;                 /* of calls: room for the addresses of one */
};

/* bind.c: fills nodes, patches and slots. A bound program is bound again in place. */
sinter_status program_bind(env *e, device *d, const program_step *step, program *p);
/* Puts the addresses of this run where they belong; *is_changed[node] where one of its bytes is another now. */
sinter_status program_patch_node(env *e, device *d, const program *p, const program_node *n, bool *is_changed);

/* program_call.c: a program of steps whose kernels are called; all or none of a program's are. */
bool          program_has_calls(const program_step *step, uint32_t count);
sinter_status program_calls_bind(env *e, const program_step *step, program *p);
void          program_calls_drop(program *p);
/* after: NULL, or an event for each step, recorded behind it. */
sinter_status program_calls_run(env *e, device *d, program *p, const program_run *run, const CUevent *after);

/* graph.c */
typedef struct program_edge { uint32_t from, to; bool is_programmatic; } program_edge;
/* What waits for what, in `a`. Addresses are those that the slots have now. */
sinter_status program_edges(env *e, const program *p, const kernel_target *t, program_order order, arena *a,
                            program_edge **out, uint32_t *count);
/* Would other addresses lead to other edges? Those of the slots are the graph's. */
bool          program_edges_may_change(const program *p, const uint64_t *next);
sinter_status program_graph_make(env *e, device *d, program *p);
sinter_status program_graph_update(env *e, device *d, program *p, program_node *n);
void          program_graph_drop(device *d, program *p);
/* Runs the program once, in a graph of its own with an event before the first step and one after each, and waits: were
 * kernels launched one by one, short ones would wait for the host. */
sinter_status program_graph_time(env *e, device *d, program *p, CUstream s);

/* program.c */
sinter_status cuda_program_create(env *e, device *d, const program_step *step, uint32_t count, bool is_once,
                                  program *reuse, program **out);
sinter_status cuda_program_launch(device *d, program *p, const program_run *run);
sinter_status cuda_program_ready(device *d, program *p, const program_run *run);
sinter_status cuda_program_time(device *d, program *p, const program_run *run, uint32_t repeats, double *ns);
void          cuda_program_destroy(env *e, device *d, program *p);
size_t        cuda_program_memory(const program *p);

#endif
