/* SPDX-License-Identifier: Apache-2.0 */
/* tune.h - from a grouped graph to a plan: cuts, layouts, kernels and tactics, chosen together.
 *
 * Kernels are asked (reject), the cost model orders, the clock decides, and every measurement goes into the timing
 * cache before it is used. The reference kernel is last in every list, so every valid graph becomes a plan. */
#ifndef TUNE_TUNE_H
#define TUNE_TUNE_H

#include "backend/backend.h"
#include "ir/graph.h"
#include "plan/plan.h"

typedef enum tune_mode { TUNE_OFF, TUNE_FAST, TUNE_FULL } tune_mode;

typedef struct timing_cache timing_cache;
#define TIMING_CACHE_MAGIC "sinter timing cache 1\n"
/* A measured time, and how far its median may be off. ns is INFINITY where a kernel failed. */
typedef struct tune_time { double ns, spread; } tune_time;
/* Text, one measurement a line: "problem | device | threads | kernel tactic abi | ns spread", or "fails" for the
 * numbers. Malformed lines are dropped. */
sinter_status timing_cache_create(env *e, timing_cache **out);
void          timing_cache_destroy(timing_cache *c);
sinter_status timing_cache_read(timing_cache *c, const char *path);              /* a missing file is an empty cache */
/* Merges what was added since the last call with what the file has now, while no other process does. */
sinter_status timing_cache_write(timing_cache *c, const char *path);
/* Can the file be written? INVALID_ARG where it is something else: then nothing may be written there. */
sinter_status timing_cache_check(env *e, const char *path);
bool          timing_cache_find_time(const timing_cache *c, const char *key, tune_time *time);
sinter_status timing_cache_add_time(timing_cache *c, const char *key, tune_time time);
/* The same without a spread: for times of whole programs, and for other numbers that a build measured. */
bool          timing_cache_find(const timing_cache *c, const char *key, double *number);
sinter_status timing_cache_add(timing_cache *c, const char *key, double number);

/* Time and work that the choice of kernels took, summed over a build. */
typedef struct tune_stats {
    uint64_t compile_ns, measure_ns, pack_ns;
    uint32_t measured;                  /* tactics */
    uint32_t clock_low, clock_high;     /* MHz, after batches; 0: the device does not say */
    uint32_t repeated, doubtful;        /* batches measured again at a low clock; still low at the end */
    bool     was_throttled;
} tune_stats;

/* What a dry run over a graph notes: the kernels that the real run is going to compile. */
typedef struct tune_scout {
    arena *a;
    VEC(kernel_use) use;
} tune_scout;

typedef struct tune_options {
    const backend *backend;
    device        *device;
    tune_mode      mode;
    uint32_t       threads;
    bool           reference_only;      /* --device reference */
    bool           exact;               /* no kernels of transformed sums: math=exact */
    bool           relaxed;             /* kernels that round f32 operands, too: allow=tf32 */
    bool           cache_only;
    timing_cache  *cache;               /* never NULL */
    uint64_t       workspace_max;       /* bytes that one kernel may want beside its operands; 0: any */
    uint64_t       weights;             /* bytes of the network's constants; see tune_weights_are_cold */
    tune_stats    *stats;               /* NULL: nobody asks; added to */
    tune_scout    *scout;               /* dry run: notes kernels here, compiles nothing; NULL: a real run */
    int          (*progress)(void *user, const char *phase, double done);        /* NULL: none; non-zero cancels */
    void          *user;
} tune_options;

/* How a weight of the plan is made from a constant; plan_storage.recipe is an index into the list. */
typedef struct weight_recipe {
    ir_value_id   source;               /* the graph's constant */
    sinter_dtype  wider;                /* converted to this type; NONE: as it is */
    uint32_t      step, input;          /* packed for this step's input when it is written; step 0: not packed */
    uint32_t      value;                /* of the plan: what is packed */
} weight_recipe;

typedef struct tune_result {
    plan *plan;
    program_order order;            /* whether steps may run side by side */
    VEC(weight_recipe) recipe;
} tune_result;

/* Lowers the graph for the ranges that its symbols have now. Everything lives in `a`, packed weights in blobs of the
 * graph. */
sinter_status tune_graph(env *e, arena *a, ir_graph *g, const tune_options *options, tune_result *out);

/* A constant of a plan as it lies in memory; false where its shape is not known. */
bool tune_const_view(const plan *p, uint32_t value, view *out);

/* Compiles in parallel every kernel that tune_graph is going to measure. Without this call tune_graph compiles them one
 * problem at a time. */
sinter_status tune_prepare(env *e, ir_graph *g, const tune_options *options);

/* Lowers the f32 ops that lose little precision to `type` (F16 or BF16). Runs on an optimised graph before grouping,
 * and leaves casts at the edges. is_kept: one flag for each of the `count` ops that could be lowered, in graph order; a
 * flagged op stays in f32. NULL: none stays. *count is the length of is_kept on entry. If the graph has another number
 * of such ops, nothing is lowered. */
sinter_status tune_narrow(env *e, ir_graph *g, sinter_dtype type, const uint8_t *is_kept, uint32_t *count);

/* ---- gains.c: which of the ops that may be lowered are faster lowered, on this device ---- */
typedef struct tune_gains {
    uint8_t       *is_slow;             /* [count], in the arena, in graph order: set for an op that stays in f32 */
    uint32_t       count, lowered;
    uint32_t       slower;              /* ops that stay because they are slower; the others only stay beside them */
    const char    *why;                 /* name and times of the most expensive op that does not gain; NULL: none */
    /* The products in 8 bits are faster in sum: those that the model quantises and those that the user permits. */
    bool           integers_pay;
} tune_gains;
/* Of the ops that tune_narrow would lower to `type`. */
sinter_status tune_narrow_gains(env *e, arena *a, ir_graph *g, sinter_dtype type, const tune_options *options,
                                tune_gains *out);
/* Of the products that tune_quantize would take. otherwise: NONE, or a narrower float that is permitted as well. */
sinter_status tune_quantize_gains(env *e, arena *a, ir_graph *g, sinter_dtype otherwise, const tune_options *options,
                                  tune_gains *out);

/* ---- found.c ---- */
/* Moves ops with data-dependent result sizes to the device where it has a kernel for them. Only the sizes go to the
 * host. Runs on an optimised graph before grouping. Kernels are asked with the ranges `asked` of the first `count`
 * symbols. */
sinter_status tune_find_on_device(env *e, ir_graph *g, const tune_options *options, const dim_symbol *asked,
                                  uint32_t count, bool *is_changed);

/* ---- join.c ---- */
/* Replaces several ops by one where a kernel of the device runs them in one launch: squeeze and excite; a norm and the
 * products that read it; attention and the appending of its new keys and values. Runs on a grouped graph whose symbols
 * have the ranges that kernels are asked with. */
typedef enum tune_joins { TUNE_JOIN_EXCITES, TUNE_JOIN_NORMS, TUNE_JOIN_APPENDS } tune_joins;
sinter_status tune_join(env *e, ir_graph *g, const tune_options *options, tune_joins what);

/* ---- lower_state.c ---- */
/* Are these values one state before and after the run, and does exactly one node read the value before? That node may
 * then write into the state. */
bool          tune_is_state(const ir_graph *g, ir_value_id before, ir_value_id after);

/* ---- selections.c: of a graph whose results' sizes its data decide; else nothing changes ---- */
/* Adds outputs behind the graph's own: the floats that each selection (top-k, NMS, a comparison) decides by. */
sinter_status tune_tap_selections(env *e, ir_graph *g);

/* ---- integers.c: f32 products with constant weights, in 8 bits; in a graph before the rules for integers ---- */
/* The types of the quantised numbers. ENGINE: i8, and u8 for data that cannot be negative. I8 and F8 are for a model
 * that is written: i8 or f8e4m3fn everywhere, and weights with a list of zero points as ONNX requires. */
typedef enum tune_codes { TUNE_CODES_ENGINE, TUNE_CODES_I8, TUNE_CODES_F8 } tune_codes;
/* Quantises the products. range: for each product, the largest magnitude of its data that 8 bits have to represent; 0:
 * the product stays in f32. is_kept: products that stay in f32; NULL: none. *count is the length of both lists on
 * entry. If the graph has another number of products, nothing is quantised. */
sinter_status tune_quantize(env *e, ir_graph *g, tune_codes codes, const double *range, const uint8_t *is_kept,
                            uint32_t *count);

/* The name of a product that the user requires in 8 bits and that the model itself did not quantise; NULL: there is
 * none. */
const char *tune_quantize_demanded(const ir_graph *g);
/* Clears is_kept of the products that the user requires in 8 bits; count: the length of is_kept. UNSUPPORTED where such
 * a product has no 8-bit form, or where its range[i] is 0. */
sinter_status tune_quantize_demand(env *e, ir_graph *g, const double *range, uint8_t *is_kept, uint32_t count);

/* ---- weights_only.c: weights of f32 products as numbers of 4 bits in blocks of `block` terms ---- */
/* Rows of the data that a product reads, [count, terms]; count 0: none are known. */
typedef struct tune_rows { const float *at; int64_t count, terms; } tune_rows;
typedef struct tune_weights {
    int64_t          block;
    bool             is_clipped;        /* the largest magnitude of a block is chosen by the error on the data */
    bool             is_scaled;         /* weights are multiplied by a scale per term, and the data is divided by it */
    const bool      *is_taken;          /* by product, in the order of tune_products */
    const tune_rows *rows;              /* the same; NULL: there is no data */
    uint32_t         count;
} tune_weights;
sinter_status tune_quantize_weights(env *e, ir_graph *g, const tune_weights *how);
/* Why the weight of a product cannot be stored in 4 bits; NULL: it can. */
const char *tune_weights_refusal(const ir_graph *g, const ir_node *n);

/* ---- placement.c: where quantize and dequantize stand in a model ---- */
/* Quantises the other operand of each sum that reads a quantised product. range: by value; 0: the operand stays in
 * floats. */
sinter_status tune_quantize_sums(env *e, ir_graph *g, tune_codes codes, const double *range, uint32_t count);
/* Calls `told` for each rule that a node breaks. */
typedef void (*tune_told)(void *user, const char *rule, const char *node, const char *text);
sinter_status tune_placement(env *e, ir_graph *g, tune_told told, void *user);

/* ---- tap.c: tensors that calibration looks at, in a graph before the rules for integers ---- */
typedef struct tune_tensor {
    const char *name;
    ir_value_id value;
    bool        is_data;                /* a product that tune_quantize takes reads it */
} tune_tensor;
/* The f32 tensors of the main region that are not constants, with names that differ; in `a`. */
sinter_status tune_tensors(env *e, arena *a, ir_graph *g, tune_tensor **list, uint32_t *count);
/* The products that tune_quantize takes, in their order: the op, the node, and the name of what it reads; in `a`. */
typedef struct tune_product { const char *op, *node, *data; ir_node_id id; } tune_product;
sinter_status tune_products(env *e, arena *a, ir_graph *g, tune_product **list, uint32_t *count);
/* Adds tensors as outputs behind the graph's own. Begins with tensor `first` and stops before their sizes together
 * exceed size_max, but adds at least one. */
typedef struct tune_taps {
    arena       *a;                     /* of the names */
    size_t       size_max;
    bool         is_whole;              /* all tensors; else what products read */
    uint32_t     first, end, count;     /* end: the first that is no output; count: of all. tune_tap sets both */
    const char **name;                  /* [count]; tune_tap sets it */
} tune_taps;
sinter_status tune_tap(env *e, ir_graph *g, tune_taps *taps);

/* ---- choose.c ---- */
typedef struct choice {
    const kernel *kernel;
    tactic        tactic;
    double        ns;                   /* measured, or by the model */
    bool          is_measured;
} choice;
/* The best kernel that takes the problem, and its tactic. */
sinter_status tune_choose(env *e, const problem *p, const tune_options *options, choice *out);
/* Measures a choice that was made without measuring, so that it can be compared with others. Does nothing in a mode
 * that measures nothing. */
sinter_status tune_choice_time(env *e, const problem *p, const tune_options *options, choice *c);
/* The other candidates for a problem whose times are known and at most `worth` times the best one's: fastest first. */
sinter_status tune_alternatives(env *e, const problem *p, const tune_options *options, double worth, choice *out,
                                uint32_t room, uint32_t *count);
/* Compiles ahead of the choice. Code that does not compile is not an error yet, because the kernel may never be chosen.
 */
sinter_status tune_compile(env *e, const tune_options *options, const kernel_use *use, uint32_t count);
/* The cost model's best without any measuring; kernel NULL where only the reference takes it and want_fast is set. */
void tune_estimate(const problem *p, const tune_options *options, bool want_fast, choice *out);

/* ---- swap.c: another kernel or tactic for a step of a finished plan ---- */
/* The value from which a step's weight was packed; for a value that is not packed, the value itself. */
uint32_t      tune_swap_source(const tune_result *t, uint32_t value);
/* Can the kernel replace the step's kernel without a change to any other step? */
bool          tune_swap_fits(const tune_result *t, const plan_step *s, const kernel *k, const tactic *x);
/* Do the tactics differ only in when the next kernel may start? Then both pack weights alike. */
bool          tune_lets_in_alone(const kernel *k, const tactic *a, const tactic *b);
/* Replaces the step's kernel. tune_swap_fits must have said yes. */
sinter_status tune_swap(env *e, tune_result *t, uint32_t step, const kernel *k, const tactic *x);

/* ---- measure.c: the operands of one problem, on which its kernels are timed ---- */
typedef struct tune_bench tune_bench;
/* Random data at the problem's opt shapes. estimate_ns: roughly what one launch will take. */
sinter_status tune_bench_create(env *e, const problem *p, const tune_options *options, double estimate_ns,
                                tune_bench **out);
void          tune_bench_destroy(tune_bench *b);                /* NULL is accepted */
/* Are the network's weights too many to stay in the device's cache from run to run? */
bool          tune_weights_are_cold(const tune_options *options);
/* ---- time.c: the clock ---- */
/* A kernel that takes so long is run once, and not again in turns with others. */
#define TUNE_HUGE_NS 1e8
/* The time of a kernel. best_ns: of the best one so far (0: none); what is far worse gets a rough time only. */
sinter_status tune_bench_time(tune_bench *b, const kernel *k, const tactic *t, double best_ns, tune_time *out);
/* Times several kernels in turns, and replaces their times. */
enum { TUNE_RACE_MAX = 4 };
typedef struct tune_entrant {
    const kernel *kernel;
    const tactic *tactic;
    tune_time     time;
} tune_entrant;
sinter_status tune_bench_race(tune_bench *b, tune_entrant *list, uint32_t count);
/* By how much `b` must be faster than `a` to be taken instead of it: one per cent, and more than the noise of both. */
double        tune_margin(tune_time a, tune_time b);

/* ---- tune_view.c: views over symbolic strides ---- */
/* Has it one element at most, in every run? Then its stride decides nothing: here, and where a run checks layouts. */
bool view_dim_is_unit(const dim_table *t, dim d);
bool view_dims_transpose(const plan_value *in, const attr_ints *perm, plan_value *out);
void view_dims_slice(dim_table *t, const plan_value *in, const attr_dims *start, const attr_ints *step,
                     const attr_dims *size, plan_value *out);
/* false: which axes repeat is known when it runs */
bool view_dims_expand(dim_table *t, const plan_value *in, uint32_t rank, const dim *d, plan_value *out);
/* false: needs a copy */
bool view_dims_reshape(dim_table *t, const plan_value *in, uint32_t rank, const dim *d, plan_value *out);
/* Do elements follow each other without a gap in `order` (axes from outermost to innermost; NULL: row-major)? */
bool view_dims_dense_in(dim_table *t, const plan_value *v, const uint8_t *order);
/* The order of axes in memory, outermost first, and whether the value is dense in it. */
void view_dims_order(dim_table *t, const plan_value *v, uint8_t *order, bool *is_dense);

#endif
