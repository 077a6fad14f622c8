/* SPDX-License-Identifier: Apache-2.0 */
/* graph_ops.h - how random graphs grow: a row for each ONNX operator, which adds a node that is valid for every
 * environment.
 *
 * A row's function picks or makes the operands, and says the attributes; the judge runs the node in each environment
 * and so tells its shapes. A node whose results are no use (not finite, too large, too steep to be compared) is taken
 * back. Chains are rows, too: several operators as models have them, for the rules and groups of the optimiser. */
#ifndef GRAPH_OPS_H
#define GRAPH_OPS_H

#include "graph_judge.h"

typedef struct grow grow;
typedef struct gop gop;
struct gop {
    const char *name;       /* the operator; of chains, in lower case */
    int64_t since;          /* the version of the opset that has it in the form that is made */
    uint32_t params;        /* bit i: input i is a parameter, which the judge gives as a constant */
    uint32_t weight;        /* how often; 0: only asked for by name */
    bool (*add)(grow *g, const gop *op);
    int64_t arg;
    uint64_t types;         /* of the first operand: T_… */
    const char *reason;     /* why there is no `add` */
};

/* Sets of types. */
#define T_OF(x) ((uint64_t)1 << SINTER_DTYPE_##x)
#define T_F (T_OF(F32) | T_OF(F64) | T_OF(F16) | T_OF(BF16))
#define T_F32 T_OF(F32)
#define T_I (T_OF(I8) | T_OF(I16) | T_OF(I32) | T_OF(I64) | T_OF(U8) | T_OF(U16) | T_OF(U32) | T_OF(U64))
#define T_B T_OF(BOOL)
#define T_F8 (T_OF(F8E4M3FN) | T_OF(F8E4M3FNUZ) | T_OF(F8E5M2) | T_OF(F8E5M2FNUZ))
#define T_F4 T_OF(F4E2M1)
#define T_I4 (T_OF(I4) | T_OF(U4))
#define T_I2 (T_OF(I2) | T_OF(U2))
#define T_SMALL (T_F8 | T_F4 | T_I4 | T_I2) /* what only some operators take */
#define T_N (T_F | T_I)
#define T_ALL (T_N | T_B)

/* What the graphs that share kernels are made of. */
enum { PALETTE_ROWS = 14, PALETTE_SIZES = 3 };
typedef struct palette {
    uint32_t row_count;         /* 0: there is no palette, and all rows are used */
    const gop *row[PALETTE_ROWS];
    uint64_t seed[PALETTE_ROWS];    /* of a row's choices, which are the same in all graphs */
    int64_t size[PALETTE_SIZES];
    uint64_t types;
} palette;

typedef struct gsize { int64_t at[G_ENVS]; } gsize;         /* a size in each environment */

struct grow {
    gmodel *m;
    uint64_t seed;              /* of what is made */
    uint64_t pick_seed;         /* of which values are its operands */
    uint32_t scope;
    uint32_t size_max;          /* sizes of new axes */
    int64_t size;               /* not 0: of all of them */
    int64_t count_max;          /* elements of a value */
    uint32_t depth;
    bool is_refused;            /* the judge refused a node: m->error */
    bool has_symbols, has_zeros;
    bool has_specials;          /* numbers that are infinite, none, -0 or denormal */
    bool keeps_opset;           /* nodes that need a later one are taken back */
    bool is_unfit;              /* the node that is being made is such a one */
    uint64_t types;             /* that leaves may have */
    VEC(uint32_t) seen;         /* values of the scopes that are open, newest last */
    uint32_t nodes_left;
    palette palette;
    gsize rows;                 /* of states with the new rows, where they grow: no other input has such an axis */
};

/* The rows, and the row of an operator; NULL: none. */
const gop *gop_at(uint32_t i);
const gop *gop_find(const char *name);
bool       gop_is_param(const char *name, uint32_t input);
bool       gop_is_chain(const char *name);
bool       gop_moves(const char *name);     /* its results are elements of its operands */
/* Does an opset before 18 have the operator, in whatever form? */
bool       gop_has_old(const char *name, int64_t opset);
/* Makes a node one of the model's opset. False: it cannot be said so. */
bool       gop_old_form(const gmodel *m, gnode *n);
extern const gop gops_elementwise[], gops_move[], gops_index[], gops_compute[], gops_layers[], gops_control[],
    gops_quant[], gops_fused[], gops_contrib[], gops_small[], gops_decoders[], gops_sequence[], gops_values[],
    gops_old[], gops_chains[], gops_qdq[], gops_blocks[];

/* ---- chance ---- */
uint32_t grow_below(grow *g, uint32_t count);
static inline bool grow_one_in(grow *g, uint32_t count) { return grow_below(g, count) == 0; }
int64_t  grow_between(grow *g, int64_t low, int64_t high);

/* ---- values; all functions give G_NONE where there is nothing that fits ---- */
static inline const gtensor *grow_data(const grow *g, uint32_t v, uint32_t k) { return g->m->value.at[v].at[k][0]; }
static inline sinter_dtype grow_type(const grow *g, uint32_t v) { return g->m->value.at[v].dtype; }
static inline uint32_t grow_rank(const grow *g, uint32_t v) { return g->m->value.at[v].rank; }
gsize    grow_dim(const grow *g, uint32_t v, uint32_t axis);
gsize    gsize_of(int64_t size);
bool     gsize_is(const grow *g, gsize s, int64_t size);    /* everywhere */
bool     gsize_same(const grow *g, gsize a, gsize b);
bool     gsize_is_const(const grow *g, gsize s);
int64_t  gsize_min(const grow *g, gsize s);
/* A value of one of the types and of a rank in range that exists, or a new one. */
uint32_t grow_pick(grow *g, uint64_t types, uint32_t rank_min, uint32_t rank_max);
/* One that exists. */
uint32_t grow_find(grow *g, uint64_t types, uint32_t rank_min, uint32_t rank_max);
/* One with these sizes: that exists, or a new one. */
uint32_t grow_shaped(grow *g, sinter_dtype dtype, const gsize *d, uint32_t rank);
/* A new input or constant with these sizes (a constant only where they are constant). */
uint32_t grow_leaf(grow *g, sinter_dtype dtype, const gsize *d, uint32_t rank, bool is_const, gfill fill);
uint32_t grow_weight(grow *g, sinter_dtype dtype, const int64_t *d, uint32_t rank, double scale);
/* A value that broadcasts with `v`, of a type. */
uint32_t grow_fellow(grow *g, uint32_t v, sinter_dtype dtype);
bool     grow_broadcasts(const grow *g, uint32_t a, uint32_t b);
/* Are there few enough elements? */
bool     grow_fits(const grow *g, const gsize *d, uint32_t rank);
/* A random size for a new axis. */
gsize    grow_size(grow *g);
gfill    grow_fill(grow *g, sinter_dtype dtype);
/* Integers as a value of type I64 and rank 1 (rank 0 where `is_scalar`): a constant, an input, or made of shapes. */
uint32_t grow_ints(grow *g, const gsize *at, uint32_t count, bool is_scalar);
/* A new input of them, whose type can hold them. */
uint32_t grow_input_ints(grow *g, sinter_dtype dtype, const gsize *at, uint32_t count, bool is_scalar);
/* The same as grow_ints, computed from the values of small inputs (graph_grow_sizes.c). */
uint32_t grow_computed(grow *g, const gsize *at, uint32_t count, bool is_scalar);
uint32_t grow_const_ints(grow *g, const int64_t *at, uint32_t count);
/* At most SINTER_RANK_MAX of them: mostly a constant, else what grow_ints gives, or an input of none. */
uint32_t grow_axes(grow *g, const int64_t *at, uint32_t count);
uint32_t grow_const_scalar(grow *g, sinter_dtype dtype, double x);

/* ---- nodes: an operand that is left out is G_ABSENT; G_NONE is one that was not found, and spoils the node ---- */
#define G_ABSENT (G_NONE - 1)
uint32_t grow_begin(grow *g, const char *op);
/* The node that is being made needs this version of the opset. */
void     grow_since(grow *g, int64_t version);
/* It has an operand or a result of this type. */
void     grow_since_type(grow *g, sinter_dtype dtype);
void     grow_in(grow *g, uint32_t node, uint32_t value);
void     grow_int(grow *g, uint32_t node, const char *name, int64_t x);
void     grow_real(grow *g, uint32_t node, const char *name, double x);
void     grow_text(grow *g, uint32_t node, const char *name, const char *text);
void     grow_list(grow *g, uint32_t node, const char *name, const int64_t *at, uint32_t count);
/* Runs the node, which must be the newest of its scope: its first output, or G_NONE where it was taken back. */
uint32_t grow_end(grow *g, uint32_t node, uint32_t outputs);
/* Optional attributes and results of a node that is about to end (graph_ops_extras.c). */
void     grow_extras(grow *g, uint32_t node, uint32_t *outputs);
/* Is the result named where there are so many? */
bool     grow_names(const char *op, uint32_t output);
/* The usual kinds of nodes in one line. */
uint32_t grow_1(grow *g, const char *op, uint32_t x);
uint32_t grow_2(grow *g, const char *op, uint32_t x, uint32_t y);
uint32_t grow_3(grow *g, const char *op, uint32_t x, uint32_t y, uint32_t z);
uint32_t grow_cast(grow *g, uint32_t x, sinter_dtype to);
uint32_t grow_transpose(grow *g, uint32_t x, const int64_t *perm);
uint32_t grow_reshape(grow *g, uint32_t x, const gsize *d, uint32_t rank);

/* ---- bodies of If, Loop and Scan ---- */
typedef struct opened { uint32_t scope, seen; } opened;
opened   grow_open(grow *g);
/* The body's scope, for the attribute of the node. */
uint32_t grow_close(grow *g, opened o);
/* Makes the value a result of the open body. False: there is no value. */
bool     grow_result(grow *g, uint32_t value);
/* A parameter of the open body, with what it is in the first turn: a scalar; a list. */
uint32_t grow_param(grow *g, sinter_dtype dtype, int64_t x);
uint32_t grow_param_list(grow *g, uint32_t list);

/* ---- graphs ---- */
typedef struct grow_options {
    uint32_t nodes;             /* at most so many more than `only` wants */
    bool is_static;             /* no symbols */
    const char *only;           /* an operator that each graph has; NULL: any */
    int64_t size;               /* all new axes have this size; 0: any */
    uint32_t allow;             /* the model's (graph_model.h) */
    uint64_t palette;           /* seed of a choice of few sizes, types and rows; 0: no such choice is made */
    bool has_states;            /* some inputs and outputs stay in the context */
} grow_options;
/* A random model whose values have been judged. False: the judge refused a node (m->error), which is a failure. */
bool grow_model(gmodel *m, uint64_t seed, const grow_options *o);
/* States whose rows grow, before other nodes, and states of one size, where the outputs have been chosen
 * (graph_grow_states.c). */
void grow_rows(grow *g);
void grow_states(grow *g);
/* One random node or chain in the open scope. False: nothing fitted, or refused. */
bool grow_some(grow *g);

#endif
