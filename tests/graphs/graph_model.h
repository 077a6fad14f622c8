/* SPDX-License-Identifier: Apache-2.0 */
/* graph_model.h - a model that tests make: ONNX operators over named values, with the data of a few runs.
 *
 * A run is an environment: it gives each symbol a size and each input its data. Operators are named as in ONNX
 * ("com.microsoft.Gelu" where the domain is not the default one). Scopes are the graphs: 0 is the main one, each
 * subgraph of a node is another. The text form (graph_text.c) is what reports and the corpus are written in. */
#ifndef GRAPH_MODEL_H
#define GRAPH_MODEL_H

#include "base/arena.h"
#include "base/text.h"
#include "core/dtype.h"
#include "onnx_bytes.h"
#include "sinter/sinter.h"

#include <stdio.h>

enum { G_ENVS = 4, G_LANES = 3, G_IN = 24, G_OUT = 6, G_ATTRS = 18, G_SYMBOLS = 8, G_PROFILES = 3,
       G_STATES = 4,            /* pairs that stay in a context */
       G_ELEMENTS = 24,         /* numbers of an attribute */
       G_IO = 256 };            /* inputs of a model, and outputs */
#define G_NONE UINT32_MAX
#define G_STRING 8      /* ONNX's number of text */

typedef struct gtensor {
    sinter_dtype dtype;
    uint32_t rank;
    int64_t dim[SINTER_RANK_MAX];
    int64_t count;
    size_t size;            /* bytes */
    void *data;
} gtensor;

typedef struct gsymbol {
    char name[16];
    bool is_free;           /* the model gives the axis no name */
    int64_t at[G_ENVS];
    int64_t min[G_PROFILES], opt[G_PROFILES], max[G_PROFILES];
} gsymbol;

typedef struct gdim { uint32_t symbol; int64_t size; } gdim;        /* symbol G_NONE: size */

typedef enum gkind { G_INPUT, G_CONST, G_PARAM, G_RESULT } gkind;

/* Numbers of inputs and constants: lo + step * (a random integer), at most hi; step 0: any number between. With
 * G_SPECIAL in the seed, some are infinite, no numbers, -0 or denormal. */
typedef struct gfill { double lo, hi, step; uint64_t seed; } gfill;
#define G_SPECIAL ((uint64_t)1 << 62)

typedef struct gvalue {
    char name[16];
    gkind kind;
    sinter_dtype dtype;
    uint32_t rank;
    gdim dim[SINTER_RANK_MAX];              /* of inputs and constants; parameters: symbol G_NONE, size -1 where free */
    bool has_no_shape;                      /* a parameter whose shape is not told */
    uint32_t scope;
    bool is_explicit;                       /* `data` says what an input or constant holds, else `fill` does */
    gtensor *data[G_ENVS];                  /* a constant has one */
    gtensor *const *held;                   /* lanes of an input that is a state, of whatever run; NULL: as data says */
    gfill fill;
    /* What the judge found. Lane 0 is the answer; the others show how far rounding may move it. */
    gtensor *at[G_ENVS][G_LANES];
    bool is_list, is_text;                  /* a sequence; text, whose numbers are the data */
    VEC(uint32_t) item;                     /* of a sequence: values */
    bool is_chaotic[G_ENVS];                /* lanes took different ways: no comparison can be trusted */
} gvalue;

typedef enum gattr_kind { GA_INT, GA_REAL, GA_TEXT, GA_INTS, GA_REALS, GA_TEXTS, GA_GRAPH, GA_TENSOR } gattr_kind;
typedef struct gattr {
    char name[32];
    gattr_kind kind;
    int64_t i;                              /* GA_GRAPH: the scope */
    double f;                               /* GA_TENSOR of `dtype` and rank 1: its element, where count is 0 */
    sinter_dtype dtype;
    uint32_t count;
    int64_t ints[G_ELEMENTS];
    double reals[G_ELEMENTS];               /* GA_REALS, and elements of GA_TENSOR */
    char text[192];                         /* GA_TEXTS: words with a space between */
} gattr;

typedef struct gnode {
    char op[48];
    uint32_t scope;
    bool is_dead;
    uint32_t count_in, count_out, count_attr;
    uint32_t in[G_IN], out[G_OUT];          /* values; G_NONE: absent */
    gattr attr[G_ATTRS];
} gnode;

typedef struct gscope {
    uint32_t parent;                        /* G_NONE: of the main graph */
    VEC(uint32_t) param, result;            /* of the main graph: inputs and outputs */
} gscope;

/* An input and an output that are a state of the context. With rows that grow, an axis of the input is gmodel.past. */
typedef struct gstate { uint32_t in, out; } gstate;

typedef struct gmodel {
    env *e;
    arena *a;
    int64_t opset;
    bool has_constant_nodes;                /* constants are written as nodes, as some exporters do */
    uint32_t allow;                         /* SINTER_ALLOW_…: the type that f32 work uses wherever it may; 0: none */
    uint32_t envs, profiles;
    uint32_t symbols;
    gsymbol symbol[G_SYMBOLS];
    uint32_t profile_of[G_ENVS];            /* which profile an environment runs in first */
    VEC(gvalue) value;
    VEC(gnode) node;                        /* in an order in which they can run */
    VEC(gscope) scope;
    gstate state[G_STATES];
    uint32_t states;
    uint32_t past;                          /* the symbol of the rows of states before a run; G_NONE: none grow */
    char error[1024];                       /* what the judge refused */
    bool is_unfit;                          /* for its size, or for what data makes of it: no fault of what is tested */
    uint64_t work;                          /* elements that judging the current outermost node has looked at */
} gmodel;

void     gmodel_init(gmodel *m, env *e, arena *a);
/* A copy in the same arena, without what the judge found. */
void     gmodel_copy(gmodel *to, const gmodel *from);
uint32_t gmodel_value(gmodel *m, gkind kind, uint32_t scope, sinter_dtype dtype);
uint32_t gmodel_node(gmodel *m, const char *op, uint32_t scope);
uint32_t gmodel_scope(gmodel *m, uint32_t parent);
uint32_t gmodel_symbol(gmodel *m, const int64_t *at);
gattr   *gnode_attr(gnode *n, const char *name, gattr_kind kind);
const gattr *gnode_find(const gnode *n, const char *name);
/* Is scope `inner` the scope `outer`, or inside it? */
bool     gscope_is_in(const gmodel *m, uint32_t inner, uint32_t outer);
/* Does a live node or a result name the value? */
bool     gvalue_is_used(const gmodel *m, uint32_t value);
/* Drops what no output needs: dead nodes, values that nobody reads. Inputs of the main graph stay where keep_inputs. */
void     gmodel_sweep(gmodel *m, bool keep_inputs);

gtensor *gtensor_new(arena *a, sinter_dtype dtype, uint32_t rank, const int64_t *dim);
double   gtensor_at(const gtensor *t, int64_t i);
/* The data of an input or a constant in an environment. NULL: out of memory. */
gtensor *gvalue_leaf(const gmodel *m, const gvalue *v, uint32_t env_index);

void     gmodel_print(const gmodel *m, text *out);
/* False: `error` says what is wrong, with its line. */
bool     gmodel_parse(gmodel *m, const char *bytes, size_t size);
/* As an ONNX file; the caller frees .at. */
bytes    gmodel_onnx(const gmodel *m);

int64_t  onnx_type_of(sinter_dtype dtype);

#endif
