/* SPDX-License-Identifier: Apache-2.0 */
/* context.h - one caller's run state: memory, the shape in use, and the programs bound for it.
 *
 * A shape (dims of all inputs) that was seen keeps its evaluated dims, views and bound programs; the least recently
 * used goes first. What depends on late symbols is evaluated and bound again while running. */
#ifndef RUN_CONTEXT_H
#define RUN_CONTEXT_H

#include "core/storage.h"
#include "engine/engine.h"

enum { SHAPES_KEPT = 8 };
#define UNBOUND INT64_MIN

/* Consecutive steps that run as one program, or one step that the executor runs itself. */
typedef struct run_item {
    uint32_t first, count;          /* steps, relative to the profile */
    bool     is_program, is_late;
    uint32_t program;               /* index of the program in a shape */
} run_item;

typedef struct run_region {
    run_item *item;
    uint32_t  count;
} run_region;

/* Everything that a shape decides. */
typedef struct shape {
    arena     a;
    int64_t  *key;                  /* dims of all inputs */
    uint64_t  used;                 /* when last; 0: this slot is free */
    int64_t  *symbol, *dim;         /* values; UNBOUND where late and not yet known */
    view     *value;                /* by value; data is its address */
    uint8_t  *is_bounded;           /* by value: it lies inside its storage */
    program_step *step;             /* by step; arrays and attrs are filled when its shapes are known */
    program **program;
} shape;

typedef struct buffer { void *at; size_t size; } buffer;

typedef struct context {
    env           e;
    engine       *g;
    const engine_profile *p;
    uint32_t      profile;
    arena         a, scratch;
    run_region   *region;
    uint32_t      program_count;
    uint8_t      *slab;
    void         *workspace;
    size_t        workspace_size;
    buffer       *own;              /* by storage: outputs and grown buffers of the context */
    void        **base;             /* by storage */
    uint32_t     *moving;           /* values in storages whose base may change from run to run */
    uint32_t      moving_count;
    struct { void *data; bool is_set; int64_t dim[SINTER_RANK_MAX]; } *input;
    struct { void *data; size_t size; } *output;      /* the caller's; by io - input_count */
    bool         *result_ready;     /* by output */
    shape         kept[SHAPES_KEPT];
    shape        *now;
    uint64_t      tick;
    void        **address;          /* by value, of the shape in use */
    step_clock   *clock;            /* by step; NULL: not measured */
    data_fault    fault;
} context;

static inline const engine_value *context_value(const context *c, uint32_t v)
{
    return &c->g->value[c->p->value_first + v];
}
static inline const engine_storage *context_storage(const context *c, uint32_t s)
{
    return &c->g->storage[c->p->storage_first + s];
}
static inline const engine_step *context_step(const context *c, uint32_t s)
{
    return &c->g->step[c->p->step_first + s];
}
static inline const engine_code *context_code(const context *c, uint32_t s)
{
    return &c->g->code[c->p->step_first + s];
}
static inline const uint32_t *context_args(const context *c, uint32_t at) { return c->g->arg + at; }

sinter_status context_create(engine *g, uint32_t profile, bool timing, context **out, sinter_error *error);
void          context_destroy(context *c);
sinter_status context_run(context *c);
size_t        context_memory(const context *c);

/* ---- binding.c: from numbers to views and programs ---- */
/* Makes the shape of the inputs current: found, or evaluated, checked and bound. */
sinter_status context_set_shape(context *c);
/* The view and address of a value from the dims as they are now; checks that it lies inside its storage. */
sinter_status context_prepare_value(context *c, uint32_t v);
/* All values of a step, its attributes, and the checks that no shape may skip. */
sinter_status context_prepare_step(context *c, uint32_t step);
/* Prepares the steps of a program and binds it, in place where it was bound before. */
sinter_status context_bind_item(context *c, const run_item *item);
/* Binds the late symbols among `v`'s dims to `dim_at`; the others must be equal. Evaluates the shape program again. */
sinter_status context_bind_dims(context *c, uint32_t v, const int64_t *dim_at, uint32_t rank, const char *what);
sinter_status context_bind_symbol(context *c, dim d, int64_t value, const char *what);
void          context_evaluate(context *c);
/* Memory of at least `size` bytes behind a grown or output storage; keep: the bytes so far stay. */
sinter_status context_ensure(context *c, uint32_t storage, size_t size, bool keep);

/* ---- execute.c ---- */
sinter_status context_run_region(context *c, uint32_t region);
/* ---- call.c: If, Loop, Scan ---- */
sinter_status context_run_call(context *c, uint32_t step);

#endif
