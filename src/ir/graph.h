/* SPDX-License-Identifier: Apache-2.0 */
/* graph.h - the graph: values and nodes are ids into growing arrays in the build arena.
 *
 * Ids are cheap to copy, stable across growth and printable. Id 0 of every table is a real, inert entry: "absent".
 * Order is not stored: ir_order gives a topological one. Constants belong to no region and are seen by all. Other
 * values of the graphs around a subgraph come in through its parameters: captures are inputs of the node that owns it.
 *   if:   in = condition, captures…; both regions take the captures
 *   loop: in = trip, condition, carried…, captures…; absent trip or condition is value 0.
 *         The region takes iteration i64[], condition bool[], carried…, captures…
 *         and gives condition, carried…, scanned…
 *   scan: in = carried…, scanned…, captures…
 *         The region takes carried…, one slice of each scanned…, captures… and gives carried…, scanned… */
#ifndef IR_GRAPH_H
#define IR_GRAPH_H

#include "ops/expr.h"
#include "ops/ops.h"
#include "ops/values.h"

typedef uint32_t ir_value_id, ir_node_id, ir_region_id;

typedef struct ir_value {
    const char  *name;                  /* the model's, or NULL */
    sinter_dtype dtype;
    uint32_t     rank;
    dim          dim[SINTER_RANK_MAX];
    ir_node_id   producer;              /* 0: a constant or a region's parameter */
    uint32_t     producer_out;
    uint32_t     use_count;             /* inputs of live nodes and results of live regions that name it */
    /* Constants: dense row-major bytes (in the model's mapping, a blob or the arena) */
    const void  *data;
    size_t       data_size;
    const dim   *shape_value;           /* known integers, see infer_value; set for constants too where it is cheap */
    uint32_t     shape_count;
    ir_node_id   recipe;                /* a constant that folding made: the folded node; 0: an initializer */
    uint64_t     digest;                /* hash64 of the data of a constant whose memory ir_release_unused freed */
    bool         is_released;
    sinter_dtype initializer;           /* of a constant whose bytes the model has under this name: its type there */
    bool         is_read;               /* a constant whose values decided something: ir_look */
    bool         is_open;               /* a constant whose values may change later: nothing may look at them */
    bool         is_output, is_input;   /* of the main region: types, dims and names stay */
} ir_value;

typedef struct ir_node {
    op_id         op;
    void         *attrs;                /* struct attrs_<op>; DIMS hold dim ids */
    uint32_t      count_in, count_anchor, count_out, count_region;   /* in[count_anchor…] belong to the programs */
    ir_value_id  *in, *out;
    ir_region_id *region;
    const expr   *prologue, *epilogue;  /* see problem.h */
    ir_region_id  parent;
    const char   *name;                 /* the model's node, for messages */
    uint32_t      count_origin;
    const uint32_t *origin;             /* sorted ids of model nodes (graph.origin_name), the first ORIGINS_MAX */
    bool          is_dead;              /* out of the graph */
    bool          is_folded;            /* dead, but kept as the recipe of the constants that its outputs became */
} ir_node;

typedef VEC(ir_value_id) ir_value_list;
/* Readers: node id * 2, or region id * 2 + 1; stale entries and repeats occur */
typedef VEC(uint32_t) ir_use_list;
typedef struct ir_region {
    ir_node_id    owner;                /* 0: the main region */
    ir_value_list param, result;
    VEC(ir_node_id) node;               /* each once; the dead stay, and those that were inlined elsewhere */
} ir_region;
/* Numbers by node and by symbol, all 0 between uses; see ir_order.c. */
typedef struct ir_marks {
    arena    *a;
    uint32_t *place, *binder, *seen;
    uint32_t  node_size, symbol_size;
} ir_marks;

/* Tensors that stay in the context from run to run. The last `count` parameters of the main region (before `rows`) and
 * its last `count` results are pairs: what the tensor is before the run and after the run. pass_state makes `rows`, an
 * i64[STATE_ROWS] parameter behind all others, where a pair grows; each run appends `append` rows up to `capacity`. */
typedef struct ir_states {
    uint32_t    count;
    ir_value_id rows;                   /* 0: no pair grows */
    dim         append;
    int64_t     capacity;               /* 0: not given */
} ir_states;

typedef struct ir_graph {
    env       *e;
    arena      a;
    dim_table *dims;
    VEC(ir_value)     value;
    VEC(ir_use_list)  use;              /* of each value; kept by edit.c */
    VEC(ir_node)      node;
    VEC(ir_region)    region;           /* 1 is main */
    VEC(const char *) origin_name;
    VEC(uint32_t)     kept_origin;      /* sorted origins: nodes that come from them keep their types */
    VEC(uint32_t)     coded_origin;     /* the same: products that come from them are done in 8 bits */
    /* Large memory of mem_alloc, freed with the graph: {pointer, size} in graph.c */
    VEC(void *)       blob;
    bool              is_blob_sorted;
    ir_marks         *marks;            /* room for ir_order */
    ir_states         states;
} ir_graph;
/* So many origins fill the name of a step, which is cut (tune/lower.c): more are not kept. */
enum { IR_MAIN = 1, ORIGINS_MAX = 64 };

sinter_status ir_graph_create(env *e, ir_graph **out);
void          ir_graph_destroy(ir_graph *g);
/* A graph that prints the same and can be changed by itself (clone.c). It shares constants, names and programs with
 * `from`, which must outlive it and keep its constants' memory. */
sinter_status ir_graph_clone(const ir_graph *from, ir_graph **out);

/* ---- edit: the only functions that change a graph; they keep the use counts ---- */
ir_region_id ir_region_new(ir_graph *g, ir_node_id owner);
ir_value_id  ir_value_new(ir_graph *g, const char *name);           /* no producer; caller sets type and dims */
ir_value_id  ir_param(ir_graph *g, ir_region_id region, const char *name, sinter_dtype dtype, uint32_t rank,
                      const dim *d);
void         ir_result(ir_graph *g, ir_region_id region, ir_value_id v);
/* One more output: it stands before what states become, which are the last results of the main region. */
void         ir_output(ir_graph *g, ir_value_id v);
/* A constant with the given dense bytes, which must live as long as the graph (NULL: they come from ir_blob). */
ir_value_id  ir_const(ir_graph *g, const char *name, sinter_dtype dtype, uint32_t rank, const int64_t *dim_at,
                      const void *data);
/* The bytes of constant `v` as another type or shape; it has the same recipe. */
ir_value_id  ir_const_as(ir_graph *g, ir_value_id v, sinter_dtype dtype, uint32_t rank, const int64_t *dim_at);
ir_value_id  ir_const_i64s(ir_graph *g, const int64_t *at, uint32_t count);            /* i64[count] */
void        *ir_blob(ir_graph *g, size_t size);                                        /* 64-byte aligned, zeroed */
/* Frees a blob before the graph goes; nothing happens where `at` is none. */
void         ir_blob_free(ir_graph *g, const void *at);
/* Frees the blobs of constants that nobody reads. Such a constant keeps its digest; its data must not be read. */
void         ir_release_unused(ir_graph *g);
/* hash64 of a constant's data, also where its memory was freed. */
uint64_t     ir_const_digest(const ir_value *v);
/* A node whose outputs are not inferred yet, for build.c, parse.c and programs of groups; all others use the builder.
 * `attrs` comes from op_attrs_new; NULL: defaults. */
ir_node_id   ir_node_new(ir_graph *g, ir_region_id parent, op_id op, void *attrs, const ir_value_id *in,
                         uint32_t count_in, uint32_t count_out);
/* Infers types, dims and shape values of the outputs. NOTEs the node's name and op on failure. Idempotent. */
sinter_status ir_infer(ir_graph *g, ir_node_id n);
/* Its part for if, loop and scan. */
sinter_status ir_infer_region(ir_graph *g, ir_node_id n);
void         ir_node_set_in(ir_graph *g, ir_node_id n, uint32_t i, ir_value_id v);
void         ir_value_replace(ir_graph *g, ir_value_id from, ir_value_id to);          /* all uses, results included */
void         ir_node_kill(ir_graph *g, ir_node_id n);                                  /* outputs must be unused */
/* Appends inputs behind the others (operands of programs; captures). */
sinter_status ir_node_add_in(ir_graph *g, ir_node_id n, const ir_value_id *in, uint32_t count);
/* Makes `v` output i of node n; the node that gave it before, if any, gets a fresh unused value in its place. */
sinter_status ir_node_set_out(ir_graph *g, ir_node_id n, uint32_t i, ir_value_id v);
/* Adds an output: a fresh value, or `v` where it is not 0. Returns the value, 0 on failure. */
ir_value_id  ir_node_add_out(ir_graph *g, ir_node_id n, ir_value_id v);
/* Turns a node's outputs into constants: data[i] are dense bytes that live as long as the graph. Keeps it as recipe. */
void         ir_node_fold(ir_graph *g, ir_node_id n, void *const *data, const size_t *size);
/* Computes a node whose inputs are all known and makes its outputs constants (fold.c). each_max: bytes of an operand or
 * result, above which nothing is done, and a node that cannot be computed is no failure; 0: as much as is worth it.
 * *folded: they are constants now. */
sinter_status ir_fold(ir_graph *g, ir_node_id n, size_t each_max, bool *folded);
/* Adds the sorted set of model nodes of `from` to that of `to`, or to the list at *origin. */
sinter_status ir_origin_unite(ir_graph *g, ir_node_id to, ir_node_id from);
sinter_status ir_origins_unite(ir_graph *g, const uint32_t **origin, uint32_t *count, const ir_node *from);
/* Moves the nodes of a region of `owner` into the region that holds `owner`, with arg[i] for parameter i. result[i] is
 * what the region's result i has become. The region is empty afterwards. */
sinter_status ir_region_inline(ir_graph *g, ir_node_id owner, uint32_t region, const ir_value_id *arg,
                               ir_value_id *result);
/* Adds a late symbol to the attribute `symbols` of an if, loop or scan. */
sinter_status ir_bound_add(ir_graph *g, ir_node_id n, dim d);
/* Kills the nodes of which no output is used and no symbol that they bind, and their regions. Linear (sweep.c). */
sinter_status ir_sweep(ir_graph *g);
/* Kills the nodes that `live` does not mark, with their regions. A live node reads no dead one. */
void         ir_nodes_keep(ir_graph *g, const bool *live);

/* ---- look ---- */
static inline ir_value *ir_value_at(const ir_graph *g, ir_value_id v)
{
    return &g->value.at[v < g->value.count ? v : 0];
}
static inline ir_node *ir_node_at(const ir_graph *g, ir_node_id n)
{
    return &g->node.at[n < g->node.count ? n : 0];
}
static inline ir_region *ir_region_at(const ir_graph *g, ir_region_id r)
{
    return &g->region.at[r < g->region.count ? r : 0];
}
static inline bool ir_is_const(const ir_graph *g, ir_value_id v) { return ir_value_at(g, v)->data != NULL; }
/* The parameters and results of the main region that are the engine's inputs and outputs: the first ones. */
static inline uint32_t ir_input_count(const ir_graph *g)
{
    return ir_region_at(g, IR_MAIN)->param.count - g->states.count - (g->states.rows != 0);
}
static inline uint32_t ir_output_count(const ir_graph *g)
{
    return ir_region_at(g, IR_MAIN)->result.count - g->states.count;
}
bool ir_const_scalar(const ir_graph *g, ir_value_id v, double *out);                   /* one element, any type */
/* The same, also where ops on constants and on known sizes decide it (fold.c): computed, not folded. */
bool ir_known_scalar(const ir_graph *g, ir_value_id v, double *out);
bool ir_const_view(const ir_graph *g, ir_value_id v, view *out);                       /* static dims and data */
/* To be asked before values of a constant decide what the graph is; folding need not ask. False: they may change. */
bool ir_look(const ir_graph *g, ir_value_id v);
/* Marks what the constants were folded from that were looked at. */
sinter_status ir_look_back(ir_graph *g);
/* Does the node come from a model node that no lowering of types may touch? */
bool ir_keeps_types(const ir_graph *g, const ir_node *n);
/* Does the node come from a model node that has to be done in 8 bits? */
bool ir_wants_codes(const ir_graph *g, const ir_node *n);
/* The node's name, or its first origin's, or "". */
const char *ir_node_label(const ir_graph *g, ir_node_id n);
/* Readers of a value in its region: nodes (each once), in id order; allocated in `a`. */
uint32_t ir_readers(const ir_graph *g, ir_value_id v, arena *a, ir_node_id **out);
/* The late symbols that a node binds while it runs. Each symbol has one such node. Those are the symbols of the
 * attribute `symbols` (bind, if, loop, scan), or for other ops with the trait LATE, the sizes that results alone have.
 *     uint32_t symbol;
 *     for (ir_bound b = ir_bound_of(g, n); ir_bound_next(&b, &symbol);) */
typedef struct ir_bound {
    const ir_graph  *g;
    const ir_node   *n;
    const attr_dims *list;              /* NULL: the node's results are searched */
    uint32_t         at, axis;
} ir_bound;
ir_bound ir_bound_of(const ir_graph *g, ir_node_id n);
bool     ir_bound_next(ir_bound *b, uint32_t *symbol);
bool     ir_binds(const ir_graph *g, ir_node_id n, dim d);                             /* is d one of them */
/* What each input of the graph may hold so that no index leaves its table (input_values.c). Allocated in `a`. */
sinter_status ir_input_values(ir_graph *g, arena *a, value_range **out);
/* Live nodes of a region in a topological order (stable: by id among the free). A node also follows the node that
 * binds any late symbol its outputs' dims or its attributes mention. Allocated in `a`. Fails on a cycle. Cost: that of
 * the nodes in the region and in the regions inside it. */
sinter_status ir_order(const ir_graph *g, ir_region_id region, arena *a, ir_node_id **out, uint32_t *count);

/* ---- stages, verify, text ---- */
typedef enum ir_stage { IR_STAGE_IMPORTED, IR_STAGE_OPTIMIZED, IR_STAGE_GROUPED, IR_STAGE_COUNT } ir_stage;
sinter_status ir_verify(ir_graph *g, ir_stage stage);               /* INTERNAL with what is wrong */
/* Round-trips; small constants in full, large by name and hash */
void          ir_print(const ir_graph *g, text *out);
sinter_status ir_parse(env *e, const char *bytes, size_t size, ir_graph **out);

#endif
