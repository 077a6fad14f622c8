/* SPDX-License-Identifier: Apache-2.0 */
/* importer.h - the state of one import, shared by the files that make it up. */
#ifndef ONNX_IMPORTER_H
#define ONNX_IMPORTER_H

#include "base/name_map.h"
#include "onnx/onnx_call.h"
#include "onnx/import.h"

/* A call of a model-local function that is being expanded. */
typedef struct onnx_frame {
    const struct onnx_frame *parent;
    const onnx_function     *function;
    const onnx_node         *call;
    const char              *path;      /* prefix of node names */
} onnx_frame;

/* The names of one list of nodes: a graph's, or a function body's. */
typedef struct onnx_scope {
    struct onnx_scope *parent;          /* whose names a subgraph may read; NULL for main and for function bodies */
    const onnx_graph  *graph;           /* NULL for a function body */
    const onnx_frame  *frame;
    ir_region_id       region;
    uint64_t           depth;
    name_map           names;           /* value ids, or marks; see scope_find */
    /* The list of nodes that is converted, for an if that takes nodes behind it into its branches. */
    const onnx_nodes  *nodes;
    const uint32_t    *order;
    uint32_t           count, at;       /* of the order; the place of the node that is converted */
    bool              *is_done;         /* by place: converted ahead, or inside an if */
    bool               is_ahead;        /* a node is being converted ahead of its place */
    onnx_names         wanted;          /* names that are read when all nodes are done */
    struct tail_index *tails;           /* tail.c: who makes and who reads the names; NULL until an If asks */
} onnx_scope;

/* Exporters compute sizes, pads and conditions with chains of ordinary operators. What such a chain says decides ranks
 * and branches, so it is computed as it is made. Weights are left to the optimiser, which folds without this limit. */
enum { FOLD_MAX = 4096 };

/* What the conversion of a subgraph found out, for when it is converted again: in another try of the If, Loop or Scan
 * around it. Without that, subgraphs in subgraphs would be converted 2 to the power of their depth times. */
typedef struct learned {
    uint64_t   round;                   /* importer.control_round, or nothing was learned */
    bool       is_merged;               /* an If: as branches.is_merged */
    onnx_names varying;                 /* an If (then_branch): the names whose rank differs from branch to branch */
    VEC(uint32_t) late;                 /* a body: carried value * SINTER_RANK_MAX + axis, of a size that changes */
} learned;

/* is_split: inputs were given sizes of that name that cannot be one, so each axis has a symbol of its own. */
typedef struct size_range { const char *name; int64_t min, opt, max; bool is_split; } size_range;
typedef struct importer {
    env              *e;
    ir_graph         *g;
    arena             a;                /* dies with the import */
    const onnx_import_options *options;
    onnx_files       *files;
    onnx_files        files_own;
    onnx_model        model;
    name_map          ops, functions, symbols;
    name_map          shapes;           /* inputs that the options give a shape: its index */
    uint64_t          node_count;       /* converted so far, functions expanded */
    uint64_t          node_max;         /* of the limits, or what a file of this size may expand to */
    uint32_t          problem_count, problem_shown;
    sinter_status     problem_status;
    const char       *problem[32];
    VEC(size_range)   range;            /* of named sizes, from the options */
    VEC(call_list)    list;             /* sequences */
    ir_value_id       part[2];          /* of an input that has several: those that were read */
    bool              wants_tail;       /* a branch gives what no node can: what reads it has to go into the branch */
    learned          *learned;          /* by id of a graph; NULL until the first is wanted */
    uint64_t          control_round;    /* counts outermost Ifs, Loops and Scans: what one learned is not for others */
    uint32_t          control_depth;    /* how many of them are being converted, one in the other */
} importer;

/* Names that stand for no value: what produced them could not be imported, or does not give them. */
#define NAME_POISONED UINT32_C(0xffffffff)
#define NAME_MISSING  UINT32_C(0xfffffffe)
#define NAME_TENSOR   UINT32_C(0x80000000)     /* with the index of an initializer that nobody has read yet */
#define NAME_SPARSE   UINT32_C(0xc0000000)
#define NAME_LIST     UINT32_C(0xe0000000)     /* with the index of a sequence: passes for a value's id */
#define NAME_INDEX    UINT32_C(0x1fffffff)
static inline bool name_is_list(uint32_t value) { return value >= NAME_LIST && value < NAME_MISSING; }

sinter_status importer_tensor(importer *im, const onnx_tensor *t, view *out);
sinter_status importer_sparse(importer *im, const onnx_sparse *t, view *out);

/* Takes the failure that is in the error chain as one more problem and goes on; passes on what cannot be gone on from.
 */
sinter_status importer_problem(importer *im, sinter_status status, const char *what);

/* Looks a name up in a scope: a value id, 0 with *mark = NAME_POISONED or NAME_MISSING, 0 with *mark 0 where it is
 * unknown. */
sinter_status scope_find(importer *im, onnx_scope *s, const char *name, ir_value_id *out, uint32_t *mark);
sinter_status scope_set(importer *im, onnx_scope *s, const char *name, uint32_t value);
sinter_status scope_add_initializers(importer *im, onnx_scope *s, const onnx_graph *graph);
/* An order of a list of nodes in which names are made before they are read. */
sinter_status scope_order(importer *im, const onnx_nodes *nodes, uint32_t **out, uint32_t *count_out);
sinter_status scope_convert(importer *im, onnx_scope *s, const onnx_nodes *nodes);
/* Converts the node at a place behind the one that is being converted; nothing that it reads may depend on that one. */
sinter_status scope_convert_ahead(importer *im, onnx_scope *s, uint32_t place);
/* The names of a graph's outputs. */
sinter_status scope_wants(importer *im, onnx_scope *s, const onnx_graph *graph);

/* Around the conversion of an If, Loop or Scan. */
void importer_enter(importer *im);
void importer_leave(importer *im);
/* Makes all that was learned so far old. */
void importer_forget(importer *im);
/* What was learned of a subgraph, to read and to add to; NULL: no memory, and the arena knows. */
learned *importer_learned(importer *im, const onnx_graph *graph);

/* import_input.c: what the options say of sizes, before any input is made; and an input of the main graph. */
sinter_status importer_ranges(importer *im, const onnx_graph *graph);
sinter_status importer_input(importer *im, onnx_scope *s, const onnx_value_info *v);
/* import_value.c: values that are made of several tensors. An input's next part; an output's part. */
sinter_status importer_part(importer *im, onnx_scope *s, const onnx_value_info *v, ir_value_id value);
sinter_status importer_output_part(importer *im, onnx_scope *s, const onnx_value_info *o, ir_value_id *v);

/* onnx.def */
enum { ONNX_OPSET_MAX = 28 };
typedef struct op_row {
    const char  *domain, *name;
    int64_t      since, until;
    onnx_convert convert;
    int64_t      arg;
    bool         takes_lists;
    enum { TEXT_NO, TEXT_YES, TEXT_MOVED } text;
} op_row;
#define ONNX_TENSORRT "TRT" /* the domain of TensorRT's plugins; models name it, others, or none */
const op_row *op_rows(uint32_t *count);

/* import.c: the steps of an import, which the network (src/network) takes one by one. */
sinter_status importer_tables(importer *im);
const op_row *importer_row(importer *im, const char *domain, const char *name, int64_t version, bool *is_known);
/* Converts a node whose inputs are known: by its row, or by names in the scope (which expands functions). `out` has
 * room for a few more values than the node names. */
sinter_status importer_run(importer *im, onnx_scope *s, const onnx_node *n, const op_row *row, int64_t version,
                           const ir_value_id *in, uint32_t *out);
sinter_status importer_convert(importer *im, onnx_scope *s, const onnx_node *n, uint32_t *out);
/* Gives the nodes made since `from` this name and an origin of this name. `name` lives as long as the graph. */
void importer_name_nodes(importer *im, const char *name, uint32_t from);
/* Makes `v` an output of the graph under this name. */
sinter_status importer_result(importer *im, onnx_scope *s, ir_value_id v, const char *name);
/* The problems that were taken, as one failure. */
sinter_status importer_report(importer *im);

#endif
