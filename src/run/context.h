/* SPDX-License-Identifier: Apache-2.0 */
/* context.h - one caller's run state: memory, the shape in use, and the programs bound for it.
 *
 * A shape (dims of all inputs) that was seen keeps its evaluated dims, views and bound programs; the least recently
 * used goes first. What depends on late symbols is evaluated and bound again while running. Where the backend has
 * memory of its own, its work is ordered by a stream, and the host waits only before it touches what a copy touches. */
#ifndef RUN_CONTEXT_H
#define RUN_CONTEXT_H

#include "base/nvtx.h"
#include "core/storage.h"
#include "engine/engine.h"
#include "sinter/run.h"

enum { SHAPES_KEPT = 8 };
#define UNBOUND INT64_MIN

/* Consecutive steps that run as one program or one after the other on the host; or one that the executor runs. */
typedef enum item_kind { ITEM_PROGRAM, ITEM_HOST, ITEM_TRANSFER, ITEM_LATE, ITEM_CALL } item_kind;
typedef struct run_item {
    uint32_t  first, count;         /* steps, relative to the profile */
    item_kind kind;
    bool      is_late;
    uint32_t  program;              /* of ITEM_PROGRAM: its index in a shape */
    uint32_t  weight_first, weight_count, slot;         /* streamed weights, of context.weight; and where they go */
} run_item;

/* A streamed weight of an item: its place in the slot. And where a weight is for the first item that reads it. */
typedef struct run_weight { uint32_t storage; uint64_t at; } run_weight;
typedef struct run_place { uint32_t slot; uint64_t at; bool is_set; } run_place;

typedef struct run_region {
    run_item *item;
    uint32_t  count;
} run_region;

/* Whose activation memory a context uses, and how much. */
typedef enum memory_strategy {
    MEMORY_PROFILE,                 /* its own, for the profile in use */
    MEMORY_STATIC,                  /* its own, for the largest profile */
    MEMORY_CALLER                   /* the caller's, for the shapes in use */
} memory_strategy;

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
    void    **record;               /* by step: what a kernel on the host bound */
    uint8_t  *is_bound;             /* by the first step of an item */
    uint8_t  *block;                /* MEMORY_CALLER: where the memory was when addresses were made */
    uint64_t  slab_size;            /* MEMORY_CALLER: bytes of it that the shape needs */
    uint64_t *slab_at;              /* MEMORY_CALLER: by storage, the offset in it */
} shape;

typedef struct buffer { void *at; size_t size; } buffer;

/* A storage of an input: where kernels find it, of which there may be one in each place. */
typedef struct run_feed { uint32_t io, storage; } run_feed;
/* A result: where it is, and where its bytes are still to go once the stream has been waited for. */
typedef struct run_result {
    uint32_t     storage;
    bool         is_ready;
    void        *at, *deliver;      /* deliver NULL: it is there */
    size_t       size;
    sinter_place place;
} run_result;

/* What the caller has said of an output: where it goes, or who gives it memory. */
typedef struct run_output {
    void        *data;
    size_t       size;
    sinter_place place;
    sinter_output_allocator allocator;      /* resize NULL: none */
    bool         is_asked;          /* in this run */
} run_output;

/* Who uses each expression and each symbol (`list` from first[id] on, to first[id + 1]), and the expressions that wait
 * to be evaluated. NULL where no symbol is late. */
typedef struct run_users {
    uint32_t *first, *list, *symbol_first, *symbol_list;
    uint32_t *heap, waiting;
    uint8_t  *is_waiting;
} run_users;

typedef struct context {
    env           e;
    env_budget    budget;           /* all that it holds */
    engine       *g;
    const engine_profile *p;
    uint32_t      profile;
    bool          is_lazy, has_clock;
    bool          is_ready;         /* there is all that the profile needs: false after a change that failed */
    /* fixed: what all profiles have in common; a: what the profile in use needs */
    arena         fixed, a, scratch;
    run_region   *region;
    uint32_t      program_count;
    stream       *stream;           /* NULL: programs end before their launch returns */
    bool          is_busy;          /* something may be under way on the stream */
    bool          is_copying;       /* and a copy that reads or writes host memory among it */
    bool          is_receiving;     /* and one that writes it */
    bool          is_running;       /* a run was begun and not waited for */
    bool          is_beginning;     /* a run is being begun: allocators of outputs may be asked */
    uint32_t      is_cancelled;     /* atomic: another thread wants the run to end */
    uint32_t      stops_at;         /* the step before which the host must wait; UINT32_MAX: none */
    uint8_t      *slab, *host_slab; /* host_slab: NULL where there is one place */
    void         *workspace, *host_workspace;
    size_t        host_workspace_size;
    memory_strategy strategy;
    buffer        memory;           /* [workspace | slab] where programs run; of MEMORY_CALLER: the caller's */
    engine_block  block;            /* MEMORY_CALLER: what this context's runs use, for others to see */
    uint32_t     *slab_by_at, *slab_by_end, slab_count;     /* MEMORY_CALLER: storages in the slab, in two orders */
    buffer       *own;              /* by storage: inputs that cannot stay where they are, outputs, grown buffers */
    buffer       *stage;            /* by storage: host memory that the caller's data goes through */
    buffer        mail;             /* pinned memory that small values go to the device through, in turns */
    size_t        mail_at;          /* where the next one goes */
    void        **base;             /* by storage */
    uint32_t     *moving;           /* values in storages whose base may change from run to run, by storage */
    uint32_t     *moving_first;     /* by storage: where its values begin in `moving`; one entry more than storages */
    uint32_t      moving_count;
    bool          has_state;
    bool          is_state_fresh;   /* all zeros: no run has written it */
    bool          is_state_kept;    /* another profile is being made, and the state goes on in it */
    bool          is_state_torn;    /* a run that writes it was begun and has not ended well */
    int64_t       rows;             /* of the state, from earlier runs */
    VEC(run_weight) weight;         /* streamed, item by item */
    run_place    *weight_first;     /* by storage */
    uint32_t      slots_used;
    stream       *weight_stream;    /* of their copies; NULL until first used */
    const run_item *fetched;        /* its weights are on their way; NULL: none are */
    bool          is_fetching;      /* copies may be under way on weight_stream */
    uint32_t      next_io;          /* where the search for a name begins */
    run_users     users;
    uint32_t     *size_step, size_count;    /* steps that compute sizes of what small inputs hold, and bind them */
    uint8_t      *is_size;          /* by input: its values decide sizes */
    run_feed     *feed;
    uint32_t      feed_count;
    void        **pointer;          /* room for the operands of the widest step on the host */
    struct { void *data; sinter_place place; bool is_set, has_shape; int64_t dim[SINTER_RANK_MAX]; } *input;
    run_output   *output;           /* by io - input_count */
    run_result   *result;           /* by output */
    shape         kept[SHAPES_KEPT];
    shape        *now;
    uint64_t      tick, binds;      /* of shapes in use; programs bound so far */
    void        **address;          /* by value, of the shape in use */
    step_clock   *clock;            /* by step; NULL: not measured */
    nvtx          nvtx;             /* for profilers */
    step_watch    watch;            /* of steps that a program runs, for the ranges */
    bool          has_phases, has_times;    /* phases are timed; there are times of a run */
    uint64_t      mark[STREAM_MARKS];       /* before the copies in, the steps, the copies out; at the end */
    uint64_t      phase_ns[STREAM_MARKS - 1];
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

typedef struct context_options {
    uint32_t profile;
    bool     has_clock;             /* of steps */
    bool     has_phases;
    bool     is_lazy;               /* nothing is made ready for a first run */
    memory_strategy strategy;
    void    *native_stream;         /* of the caller, or NULL */
} context_options;
sinter_status context_create(engine *g, const context_options *options, context **out, sinter_error *error);
void          context_destroy(context *c);
/* Begins a run (must_not_stop: or refuses to, where the host would have to wait in the middle), and ends it. */
sinter_status context_begin(context *c, bool must_not_stop);
sinter_status context_end(context *c);
/* Notes when the stream gets here, where phases are timed. */
sinter_status context_mark(context *c, uint32_t mark);
/* Has the backend make the main region's programs ready to be launched in the shape in use. */
void          context_watch(context *c);           /* makes c->watch, which names the steps for profilers */
sinter_status context_make_ready(context *c);
/* Runs on zeros and forgets it, where the host takes no part: what happens on a first run has happened. */
sinter_status context_rehearse(context *c);
/* The time of the main region's programs in the shape in use, on whatever its memory holds, by a backend that has
 * program_time. What they find wrong in the data is nothing. */
sinter_status context_time(context *c, program_order order, uint32_t repeats, double *ns);
size_t        context_memory(const context *c);
/* Ends the current run, and makes all that another profile needs. If that fails, only another change is possible. */
sinter_status context_set_profile(context *c, uint32_t profile);

/* ---- run_memory.c: activation memory ---- */
sinter_status context_make_memory(context *c);
void          context_drop_memory(context *c, bool is_kept);        /* is_kept: the block stays, where it fits */
/* MEMORY_CALLER: waits for the current run. NULL: none. */
sinter_status context_set_memory(context *c, void *data, size_t size);
/* Bytes that the inputs' shapes need. */
sinter_status context_memory_wanted(context *c, size_t *out);
/* MEMORY_CALLER: gives the storages of a shape their places in the caller's memory. INVALID_ARG: it is too small. */
sinter_status context_lay_out(context *c, shape *s);
/* MEMORY_CALLER: from now on, until the second, the memory must be nobody else's. */
sinter_status context_take_memory(context *c);
void          context_give_memory(context *c);

/* ---- shape_cache.c ---- */
/* Makes the shape of the inputs current: found, or evaluated, checked and bound. */
sinter_status context_set_shape(context *c);
void          context_drop_shapes(context *c);
/* The numbers of symbols and expressions that the inputs' dims decide; inputs without dims decide none. */
sinter_status context_eval_inputs(context *c, int64_t *symbol, int64_t *dim_at, bool all);
/* Prepares the steps of a program and binds it, in place where it was bound before. */
sinter_status context_bind_item(context *c, const run_item *item);
static inline bool context_item_is_bound(const context *c, const run_item *item)
{
    if (item->is_late) return false;
    return c->now->is_bound[item->first];
}

/* ---- binding.c: from numbers to views, and their checks ---- */
/* Does a late symbol decide its dims, strides or offset, or the room that it has? */
static inline bool context_is_late_value(const context *c, uint32_t v)
{
    return c->g->value_late[c->p->value_first + v];
}
/* The view and address of a value from the dims as they are now; checks that it lies inside its storage. */
sinter_status context_prepare_value(context *c, uint32_t v);
/* All values of a step, its attributes, and the checks that no shape may skip. */
sinter_status context_prepare_step(context *c, uint32_t step);
/* Does the view, from so many elements on, begin at a byte and lie inside `size` bytes? */
bool          context_view_fits(const view *v, int64_t offset, uint64_t size);
/* INVALID_MODEL: the step's results have other shapes than the op gives them. */
sinter_status context_check_follows(context *c, const problem *p, const program_step *s);
/* Binds the late symbols among `v`'s dims that `step` binds to `dim_at`; the others must be equal. Evaluates the shape
 * program again. */
sinter_status context_bind_dims(context *c, uint32_t step, uint32_t v, const int64_t *dim_at, uint32_t rank,
                                const char *what);
/* Where another step binds the symbol, it must have that value. */
sinter_status context_bind_symbol(context *c, uint32_t step, dim d, int64_t value, const char *what);
/* Memory of at least `size` bytes behind a grown or output storage; keep: the bytes so far stay. */
sinter_status context_ensure(context *c, uint32_t storage, size_t size, bool keep);

/* ---- evaluate.c ---- */
sinter_status context_make_users(context *c);
/* A late symbol's value; what depends on it is evaluated by context_evaluate. */
void          context_symbol_set(context *c, uint32_t symbol, int64_t value);
void          context_evaluate(context *c);
void          context_evaluate_all(context *c);

/* ---- run_place.c: whose memory, and copies from one place to the other ---- */
static inline bool context_has_places(const context *c) { return c->g->backend->copy != NULL; }
void         *context_alloc(context *c, storage_place place, size_t size);
void         *context_alloc_growing(context *c, storage_place place, size_t size);
/* A block of context_alloc_growing, larger: its bytes stay. NULL: it stays as it is; that is no failure. */
void         *context_grow(context *c, storage_place place, void *at, size_t old_size, size_t size);
void          context_free(context *c, storage_place place, void *at, size_t size);
/* Where kernels find each input, and room for those that cannot stay where they are. */
sinter_status context_place_inputs(context *c);
/* The same for an output whose result has so many bytes. */
sinter_status context_place_output(context *c, uint32_t storage, size_t bytes);
/* Copies the inputs that cannot stay where they are. */
sinter_status context_feed(context *c);
/* The same with zeros from the context's own memory. */
sinter_status context_feed_zeros(context *c);
/* The bytes of an input on the host, also where the caller gave memory of the device. */
sinter_status context_read_input(context *c, uint32_t io, size_t size, const void **out);
sinter_status context_transfer(context *c, uint32_t step);
/* Sends an output on its way to where the caller wants it; after the stream was waited for, the rest of the way. */
sinter_status context_collect(context *c, uint32_t output);
void          context_deliver(context *c);
/* Waits for all that is under way. What it found wrong in the data is the run's fault. */
sinter_status context_settle(context *c);
/* The same before the context is destroyed: nobody asks for faults, and the caller's stream may be gone. */
void          context_finish(context *c);
/* Before the host reads or writes memory that a copy may be at. */
static inline sinter_status context_before_host(context *c) { return c->is_copying ? context_settle(c) : SINTER_OK; }

/* Pinned memory of the context beside a storage. */
sinter_status context_ensure_stage(context *c, uint32_t storage, size_t size);
sinter_status context_copy(context *c, copy_kind kind, void *to, const void *from, size_t size);

/* ---- run_state.c: what stays from run to run ---- */
sinter_status context_make_state(context *c);
/* Before the first step: is there room for the rows that the run appends? Tells the steps how many there are. */
sinter_status context_begin_state(context *c);
void          context_end_state(context *c);        /* all steps were begun, and none failed */
/* Zeros, and no rows. */
sinter_status context_reset_state(context *c);
sinter_status context_set_rows(context *c, int64_t rows);
/* The states on their way from one profile to another: none, if they are all zeros. INVALID_ARG: the other profile has
 * states of other sizes. Adopting takes them over, and leaves those that the profile had made; both are freed. */
typedef struct kept_states {
    buffer       *at;
    storage_place *place;
    uint32_t      count;
} kept_states;
sinter_status context_keep_states(context *c, uint32_t profile, kept_states *out);
void          context_adopt_states(context *c, kept_states *kept);
void          context_free_states(context *c, kept_states *kept);

/* ---- run_weights.c: weights that do not stay on the device ---- */
bool          context_is_streamed(const context *c, uint32_t storage);
/* Where kernels find a weight of the device: for streamed ones, in the first item that reads it. */
uint8_t      *context_weight_base(const context *c, uint32_t storage);
/* While items are made: does a slot hold the weights of the item and of one step more? And adds the step's. */
bool          context_weights_fit(const context *c, const run_item *item, uint32_t step);
sinter_status context_weights_add(context *c, run_item *item, uint32_t step);
/* Before item `i` of a region is launched: its weights are in its slot by then, and those of the next are sent. */
sinter_status context_weights_take(context *c, const run_region *r, uint32_t i);
/* Operands of an item have the addresses that they will have in its slot. */
void          context_weights_address(context *c, const run_item *item);

/* ---- run_sizes.c: sizes that small integers say ---- */
/* Finds the steps between inputs and sizes that can be computed before a run. */
sinter_status context_find_sizes(context *c);
/* Runs them on what inputs hold, as far as they are set and on the host: symbols that become known are set, and dims
 * are evaluated again. In scratch memory. */
sinter_status context_eval_sizes(context *c, int64_t *symbol, int64_t *dim_at);

/* ---- run_infer.c: sizes before a run ---- */
/* An output's dims, -1 where data decides or an input has no shape yet. */
sinter_status context_output_dims(context *c, uint32_t io, int64_t *dim_at);
/* At most so many bytes, for the inputs that have shapes and the profile's ranges of the others. UNSUPPORTED: there is
 * no bound. */
sinter_status context_output_bound(context *c, uint32_t io, size_t *out);
/* Has it no shape, or does its value decide sizes, and it has none? */
bool          context_input_is_missing(const context *c, uint32_t io);

/* ---- execute.c ---- */
sinter_status context_run_region(context *c, uint32_t region);
/* ---- run_call.c: If, Loop, Scan ---- */
sinter_status context_run_call(context *c, uint32_t step);

#endif
