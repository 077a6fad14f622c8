/* SPDX-License-Identifier: Apache-2.0 */
/* exporter.h - what the files of the export share: names, nodes under construction, sizes as values.
 *
 * Failure is sticky: x->status keeps the first one, and everything here does nothing afterwards. */
#ifndef ONNX_EXPORTER_H
#define ONNX_EXPORTER_H

#include "base/name_map.h"
#include "ir/build.h"
#include "onnx/export.h"
#include "onnx/wire_write.h"

/* Where the value of a symbol is read. */
typedef struct export_source {
    uint32_t    symbol;
    const char *tensor;                 /* a tensor with this size, or with this number as an element */
    uint32_t    at;                     /* the axis, or the element */
    bool        is_number;
    uint32_t    rank;                   /* of a tensor of numbers: 0 or 1 */
} export_source;

typedef struct export_list { const dim *at; uint32_t count; const char *name; } export_list;

/* A GraphProto under construction. A size is computed in the outermost scope that knows its symbols. */
typedef struct export_scope {
    struct export_scope *outer;
    uint32_t  depth;
    ir_region_id region;
    wire_out  nodes, infos;             /* fields of GraphProto: node, value_info */
    VEC(const char *)  one;             /* by dim: the name of its value as i64[1]; NULL: not computed here */
    VEC(const char *)  scalar;          /* by dim: as i64[] */
    VEC(export_list)   list;            /* by list of dims: as i64[count] */
    VEC(export_source) source;
} export_scope;

typedef struct export_tensor {
    const char *name;
    sinter_dtype dtype;
    uint32_t    rank;
    int64_t     dim[SINTER_RANK_MAX];
    const void *data;
    size_t      size;
} export_tensor;

/* A weight with a scale for each block of an axis: dequantize, and the nodes that bring its result into shape. */
typedef struct export_blocks {
    ir_node_id  node, merge, last;      /* the dequantize; the reshape; that, or a slice behind it */
    ir_node_id  before[2];              /* what pads and reshapes the codes, and nothing else reads; 0: none */
    ir_value_id codes;                  /* the constant, with the last block cut or padded */
    uint32_t    rank, axis;
    int64_t     size;                   /* of a block */
    int64_t     dim[SINTER_RANK_MAX], padded[SINTER_RANK_MAX], parts[SINTER_RANK_MAX];  /* of the weight, of scales */
} export_blocks;

typedef struct exporter {
    env      *e;
    arena     a;
    ir_graph *g;                        /* the clone */
    const onnx_write_options *o;
    sinter_status status;
    int64_t   opset;                    /* the lowest that has what was written so far */
    int64_t   opset_ml;                 /* of ai.onnx.ml; 0: nothing of it was written */
    int64_t   trees_version;            /* of ai.onnx.ml, in whose form trees are written; 0: not looked at yet */
    const char **name;                  /* by value; NULL: not named yet */
    uint32_t  name_count;
    name_map  names, constants;         /* names in use; constants by content */
    uint64_t  fresh;                    /* numbers of fresh names */
    export_scope *scope;
    VEC(export_tensor) tensor;          /* the initializers */
    ir_node_id *sum;                    /* by node: the last of those that are written with it; 0: none */
    bool     *is_inside;                /* by node: another node is written with it */
    VEC(export_blocks) blocks;          /* weights with a scale for each block */
    const ir_node *node;                /* being written, for messages */
    const char *spare;                  /* written to after a failure */
} exporter;

struct export_row;
typedef void export_write_fn(exporter *x, const ir_node *n, const struct export_row *row);
typedef struct export_row {
    const char  *type;                  /* the operator; "": depends on the attributes */
    int64_t      since;                 /* the opset that brought it */
    export_write_fn *write;             /* NULL: the op is always rewritten before (export_lower.c) */
} export_row;
/* The row of an op (export_ops.c). */
const export_row *export_row_at(op_id op);

/* ---- failure ---- */
#define EXPORT_FAIL(x, code, ...) ((x)->status ? (void)0 : (void)((x)->status = FAIL((x)->e, code, __VA_ARGS__)))
void export_need(exporter *x, int64_t opset);           /* what is written needs this opset at least */

/* ---- names ---- */
const char *export_fresh(exporter *x, const char *stem);            /* not in use so far */
const char *export_name(exporter *x, ir_value_id v);                /* ""; 0: absent */
int32_t     export_type(exporter *x, sinter_dtype dtype);           /* TensorProto.DataType */
/* A constant; equal ones share an initializer. name: wished for, or NULL. */
const char *export_constant(exporter *x, const char *name, sinter_dtype dtype, uint32_t rank, const int64_t *dim_at,
                            const void *data);
const char *export_ints(exporter *x, const int64_t *at, uint32_t count);        /* i64[count] */
const char *export_int(exporter *x, int64_t value);                             /* i64[] */

/* ---- a node under construction: begin, inputs, outputs and attributes in any order, end ---- */
typedef struct export_node {
    const char *type;
    const ir_node *from;                /* whose label the node gets; see node_outs */
    wire_out    w;
} export_node;
export_node node_begin(exporter *x, const char *type);
void node_domain(exporter *x, export_node *n, const char *domain, int64_t version);     /* ai.onnx.ml */
void node_in(exporter *x, export_node *n, const char *name);
void node_ins(exporter *x, export_node *n, const ir_node *from, uint32_t first);    /* inputs from `first` on */
void node_out(exporter *x, export_node *n, const char *name);
void node_outs(exporter *x, export_node *n, const ir_node *from);
void node_int(exporter *x, export_node *n, const char *name, int64_t value);
void node_ints(exporter *x, export_node *n, const char *name, const int64_t *at, uint32_t count);
void node_list(exporter *x, export_node *n, const char *name, const attr_ints *list);       /* nothing where empty */
void node_float(exporter *x, export_node *n, const char *name, double value);
void node_floats(exporter *x, export_node *n, const char *name, const attr_reals *list);    /* nothing where empty */
void node_reals(exporter *x, export_node *n, const char *name, const double *at, uint32_t count);
void node_bytes(exporter *x, export_node *n, const char *name, const void *at, size_t size);     /* a string */
void node_text(exporter *x, export_node *n, const char *name, const char *value);
void node_texts(exporter *x, export_node *n, const char *name, const char *words);          /* separated by commas */
void node_words(exporter *x, export_node *n, const char *name, const char *const *at, uint32_t count);
/* of rank 1 */
void node_tensor(exporter *x, export_node *n, const char *name, sinter_dtype dtype, const void *at, uint32_t count);
void node_graph(exporter *x, export_node *n, const char *name, const wire_out *graph);
void node_end(exporter *x, export_node *n, export_scope *scope);
/* A node without attributes and with one fresh result, in a scope. */
const char *export_emit(exporter *x, export_scope *scope, const char *type, const char *const *in, uint32_t count_in);

/* ---- sizes as values (export_size.c) ---- */
export_scope *export_scope_enter(exporter *x, ir_region_id region);
void          export_scope_leave(exporter *x, export_scope *s);     /* frees it */
/* Makes the symbols of a value's dims known: those of inputs (is_input), or late ones. */
void export_know_dims(exporter *x, ir_value_id v, const char *name, bool is_input);
void export_know_number(exporter *x, dim d, const char *tensor, uint32_t at, uint32_t rank);
const char *export_size(exporter *x, dim d);                        /* i64[1] */
const char *export_size_scalar(exporter *x, dim d);                 /* i64[] */
const char *export_sizes(exporter *x, const dim *d, uint32_t count);            /* i64[count] */
const char *export_dims(exporter *x, const attr_dims *list);
dim         export_dim(const attr_dims *list, uint32_t i);

/* ---- the rest ---- */
/* Rewrites ops that ONNX has not, in the clone (export_lower.c, export_program.c). */
sinter_status export_lower(exporter *x);
/* The results of a node that has programs, as single ops. `n` is a copy of the node. */
void          export_program(ir_builder *b, const ir_node *n, ir_value_id *out);
/* Makes nodes of constants that folding made large, as the options say (export_unfold.c). */
void          export_unfold(exporter *x);
/* Is this dequantize such a weight, with all constants? (export_blocks.c) */
bool          export_blocks_find(exporter *x, ir_node_id id, export_blocks *out);
void          export_blocks_write(exporter *x, const export_blocks *b);
/* Writes a region as a GraphProto. param[i]: the outer name of a captured value; NULL: a parameter of its own. */
void          export_value_info(exporter *x, wire_out *to, uint32_t field, ir_value_id v, const char *name,
                                bool with_late);
void          export_graph(exporter *x, ir_region_id region, const char *const *param, const char *name, wire_out *out);

/* ---- the writers, as export.def names them; declared twice where two ops share one ---- */
#define W(op, type, since, function) export_write_fn export_##function;
#define L(op)
#include "onnx/export.def"
#undef W
#undef L
/* Is the product one of two matrices, for which ONNX has Gemm? */
bool export_is_gemm(const exporter *x, const ir_node *n);
/* The window of stride 1 by which a max_unpool gives its shape. False: there is none, or sizes are not known. */
bool export_unpool_window(const exporter *x, const ir_node *n, attr_ints *kernel);

#endif
