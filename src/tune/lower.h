/* SPDX-License-Identifier: Apache-2.0 */
/* lower.h - what lower.c, index.c, tune_place.c, concat.c and the files of work.h share: the state of a lowering, a
 * unit of work. */
#ifndef TUNE_LOWER_H
#define TUNE_LOWER_H

#include "tune/tune.h"

/* `value` copied dense in `order`. `before`: 1 + index of the value's conversion before this one; 0: none. */
typedef struct conversion {
    uint32_t value, result, before;
    uint8_t  order[SINTER_RANK_MAX];
} conversion;

/* `value` seen in the other place. Moves by a step belong to the region that they were made in. */
typedef struct placing {
    uint32_t      value, result;
} placing;

/* Facts about a value and a storage of the plan, kept so that nobody has to search the plan for them. */
typedef struct value_facts {
    uint32_t      next;                 /* the next value on the same storage; 0: the last */
    uint32_t      writer, region;       /* the step that writes it, and the region of that step; 0: none */
    uint32_t      moved;                /* the value that replaced it (work_redirect); 0: none */
    uint32_t      converted, placed;    /* 1 + index of its last entry in the lists below; 0: none */
} value_facts;
typedef struct storage_facts {
    uint32_t      first, last, views;   /* values on it, by id, and how many they are */
    uint32_t      reads;                /* inputs of steps that are values on it */
} storage_facts;

typedef struct lowering {
    env                *e;
    arena              *a;
    ir_graph           *g;
    plan               *p;
    const tune_options *o;
    tune_result        *out;
    uint32_t           *map;            /* graph value -> plan value */
    /* Graph value -> 1 + index of the engine's output that it is; 0: none. Only main results that may be written
     * straight into the output's memory. */
    uint32_t           *io;
    VEC(conversion)     converted;
    VEC(placing)        placed;
    VEC(value_facts)    value;          /* by plan value, as far as it was asked for */
    VEC(storage_facts)  storage;
    uint32_t           *twin;           /* hash table of storages of inputs and weights, see index.c */
    uint32_t            twin_size, twin_count, twin_seen;
    uint32_t            region;         /* the plan's region that is being filled */
    uint32_t            done, total;    /* nodes, for progress */
    bool               *is_wanted;      /* by graph value: the host reads it, see counts.c */
    bool               *is_counting;    /* by node: computes such values from others, on the host */
} lowering;

/* The description of an output. Its storage is made once the layout is chosen. */
typedef struct work_out {
    const char  *name;
    sinter_dtype dtype;
    uint32_t     rank;
    dim          dim[SINTER_RANK_MAX];
    uint32_t     io;                    /* 1 + output of the engine; 0: none */
    uint8_t      wish[SINTER_RANK_MAX]; /* the axis order that is best for its reader */
    bool         has_wish;
} work_out;

/* One node, or a piece of one after a cut. Inputs are plan values. */
typedef struct work {
    op_id       op;
    const void *attrs;                  /* DIMS hold dim ids */
    uint32_t    count_in, count_anchor, count_out;
    uint32_t   *in;
    work_out   *out;
    const expr *prologue, *weight, *epilogue;
    const char *name;
    bool        is_counting;            /* on the host, wherever its inputs lie */
} work;

/* Chooses layouts, cut and kernel, emits the steps; `value` receives the outputs' plan values. */
sinter_status work_lower(lowering *l, const work *w, uint32_t *value);
/* Emits one step with the reference kernel and row-major results, on the host. For ops with data-dependent sizes, and
 * for --device reference. */
sinter_status work_reference(lowering *l, const work *w, step_kind kind, uint32_t *value);
/* Returns a value with the same content that steps in `place` can read: `value` itself, the same weight or input stored
 * in `place`, or the result of a transfer. */
sinter_status work_place(lowering *l, uint32_t value, storage_place place, const char *name, uint32_t *out);
/* Is a value so small that the host computes it as fast as the device? */
bool work_is_small(const lowering *l, uint32_t rank, const dim *d);
/* Does the work only read small values that are on the host already? Then it runs on the host, because moving them
 * costs more. */
bool work_is_for_host(const lowering *l, const work *w);
/* The problem of a call, which the executor runs and no kernel. */
sinter_status work_problem(lowering *l, const work *w, const problem **out);
/* The sizes of the attributes of a work, in the order in which a step lists them. NULL: memory ran out. */
const dim    *work_dims(lowering *l, const work *w, uint32_t *count);
/* Returns `value` dense in `order` (NULL: row-major): `value` itself, an earlier copy, or a new copy. fresh: always a
 * copy in a new storage. */
sinter_status work_copy(lowering *l, uint32_t value, const uint8_t *order, bool fresh, uint32_t io, const char *name,
                        uint32_t *out);
/* Lowers an op that updates inputs (op_updates). The updated results share the storages of these inputs. */
sinter_status work_update(lowering *l, const work *w, uint32_t *value);
/* A copy of `value` into the existing value `target` of the same dims. */
sinter_status work_copy_into(lowering *l, uint32_t value, uint32_t target, const char *name);
/* One step that copies the values side by side along `axis` into the existing value `target`. *is_done false: no kernel
 * of the device does that, and nothing changed. */
sinter_status work_join_into(lowering *l, uint32_t count, uint32_t *value, int64_t axis, uint32_t target,
                             const char *name, bool *is_done);
/* Makes the only step that writes `value` write into `target` instead, a strided part of a larger value. Also works
 * where `value` is a reshape of the step's result. False: the step's kernel cannot write with these strides, and
 * nothing changed. */
bool work_redirect(lowering *l, uint32_t value, uint32_t target);

/* Concatenation: inputs are written in place by their producers where they can, else copied to their part. */
sinter_status concat_lower(lowering *l, const work *w, uint32_t *value);

/* The plan's value for a value of the graph. A constant gets a weight if it has none yet. */
sinter_status lower_value(lowering *l, ir_value_id v, uint32_t *out);
uint32_t lower_step_new(lowering *l, const plan_step *s);       /* appends to the current region; 0 on failure */

/* ---- counts.c ---- */
/* Finds the integers that the host reads, and the nodes that compute them from other small integers. */
sinter_status lower_find_counts(lowering *l);

/* ---- lower_call.c: If, Loop and Scan ---- */
sinter_status lower_call(lowering *l, const ir_node *n);
/* lower.c's, for bodies: nodes of a region, and the inputs and results of a node. */
sinter_status lower_nodes(lowering *l, ir_region_id from, uint32_t to);
sinter_status lower_work(lowering *l, const ir_node *n, work *w);

/* ---- lower_state.c ---- */
/* The plan's values of the states before a run, and of the number of their rows. */
sinter_status lower_states_begin(lowering *l);
/* Does the node write new elements of a state into the state itself? */
bool          lower_updates_state(const lowering *l, const ir_node *n);
/* Adds steps at the end that copy results into their states, where a result was not written into the state itself. */
sinter_status lower_states_end(lowering *l);

/* ---- index.c: what would else be searched for ---- */
/* Brings the facts about all values and storages up to date; false on failure. */
bool     lower_facts(lowering *l);
/* The plan value to use instead of `value`: the one that work_redirect put in its place, else `value` itself. */
uint32_t lower_current(const lowering *l, uint32_t value);
/* Forgets the conversions and placings made since the lists had these lengths: those of a body that has ended. */
void     lower_forget(lowering *l, uint32_t converted, uint32_t placed);
/* The first storage of the same input or weight in `place`; 0: there is none. */
uint32_t lower_twin(lowering *l, uint32_t storage, storage_place place);

bool     lower_is_const(const lowering *l, uint32_t value);
storage_place lower_place(const lowering *l, uint32_t value);

#endif
