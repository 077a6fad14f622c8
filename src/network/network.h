/* SPDX-License-Identifier: Apache-2.0 */
/* network.h - a network as data: layers, tensors, parameters; and its conversion into a graph.
 *
 * Layers and tensors live in the network's arena until the network ends; what is removed stays, marked. The table of
 * kinds is layers.def. A network is converted ("lowered") layer by layer with the graph builder and the conversions of
 * src/onnx. A question about a tensor lowers what the tensor depends on. A change ends the lowering that questions use.
 * A build lowers anew, with the build's own ranges of shapes. */
#ifndef NETWORK_NETWORK_H
#define NETWORK_NETWORK_H

#include "onnx/importer.h"
#include "sinter/network.h"

enum { NETWORK_LIST = 1 << 16, NETWORK_SPATIAL_MAX = 3, NETWORK_OUT_MAX = 64 };

typedef struct network_call network_call;
/* A row of layers.def. */
typedef struct network_row {
    sinter_layer_kind   kind;
    const char         *name, *word;
    uint32_t            in_min, in_max, outs;
    const sinter_param *param;          /* ends with name NULL */
    const char         *tensorrt, *call;
    void              (*lower)(network_call *n);
} network_row;
const network_row *network_row_of(sinter_layer_kind kind);         /* NULL: no kind that can be added */
/* nearest.c: sinter_layer_nearest_kind. */
sinter_layer_kind network_nearest_kind(const sinter_layer *layer);
const char        *network_kind_name(sinter_layer_kind kind);

/* Kinds whose operator the caller names, with any number of outputs. */
static inline bool network_is_call(sinter_layer_kind kind)
{
    return kind == SINTER_LAYER_OP || kind == SINTER_LAYER_PLUGIN;
}

typedef struct network_param {
    bool           is_set;
    int64_t        i;
    double         r;
    const char    *text;
    uint32_t       count;
    int64_t       *ints;                /* [SINTER_PARAM_INTS_MAX], made when first set */
    double        *reals;
    sinter_weights weights;
    const char    *name;                /* of the weights, for refits; NULL: LAYER.PARAMETER */
} network_param;

/* A loop or a conditional: the layers that join it to what is around it. */
typedef struct network_control {
    sinter_network *net;
    const char     *name;
    bool            is_loop;
    uint32_t        id;
    VEC(sinter_layer *) layer;
} network_control;
struct sinter_loop { network_control c; };
struct sinter_conditional { network_control c; };

/* What a layer of kind OP is. */
typedef struct network_op_info {
    const char        *domain, *type;
    const onnx_opsets *opset;           /* NULL: `version` of the domain */
    int64_t            version;
    onnx_attr         *attr;            /* those that are no parameters: tensors, graphs, lists of text */
    uint32_t           count_attr, count_in;        /* inputs behind these are captured by subgraphs, under `reads` */
    const char *const *reads;
    const char *const *out;             /* the model's names of outputs; "" not wanted. NULL: all are */
} network_op_info;

/* What a layer of kind PLUGIN calls. */
typedef struct network_plugin_info {
    const char          *name, *version, *space;    /* version, space NULL: any */
    sinter_plugin_field *field;
    uint32_t             count_field;
} network_plugin_info;

struct sinter_layer {
    sinter_network         *net;
    network_control        *control;    /* the loop or conditional that it joins; NULL: none */
    network_op_info         op;
    network_plugin_info     plugin;
    sinter_dtype            precision;  /* that it is to be computed in; NONE: not said */
    sinter_layer_kind       kind;
    const network_row      *row;
    const char             *name, *metadata;
    bool                    is_removed;
    uint32_t                id;         /* among all layers ever made */
    uint32_t                count_in, capacity_in, count_out, count_param;
    sinter_network_tensor **in, **out;
    const sinter_param     *param_row;
    network_param          *param;
};

struct sinter_network_tensor {
    sinter_network *net;
    sinter_layer   *producer;           /* NULL: an input */
    const char     *name;
    bool            is_removed, is_output, is_shape_output, is_debug;
    uint32_t        id, index;          /* among all tensors ever made; among the producer's outputs */
    uint32_t        use_count;          /* inputs of live layers that are this tensor */
    sinter_dtype    dtype;              /* of an input; behind a layer: the type asked for, or NONE */
    uint32_t        rank;               /* of an input */
    int64_t         dim[SINTER_RANK_MAX];
    const char     *dim_name[SINTER_RANK_MAX];
};

struct lowering;
typedef VEC(sinter_network_tensor *) network_tensors;
struct sinter_network {
    env              e;
    env_budget       budget;
    arena            a;
    const char      *name;
    VEC(sinter_layer *) layer;          /* live ones, in order */
    network_tensors  input, output, shape_output, debug;
    VEC(sinter_network_tensor *) tensor;    /* all ever made, by id */
    uint32_t         layer_count, control_count;    /* ever made */
    const onnx_model *functions;        /* the model whose functions layers of kind OP may call; NULL: none */
    uint32_t         graph_count;       /* the most subgraphs that a parsed model has */
    sinter_precision_mode precision;
    bool             is_strongly_typed;
    onnx_files       files;             /* that weights of parsed models lie in */
    struct lowering *asked;             /* of questions; NULL: none since the last change */
    arena            answers;           /* text of answers; dies with the next change */
};

/* ---- network.c, layer.c, param.c ---- */
/* Begins a call: errors go to `error`. NULL network: the failure is in `error`, and NULL is returned. */
env *network_env(sinter_network *net, sinter_error *error);
void network_changed(sinter_network *net);                         /* ends the lowering of questions */
void network_layer_changed(const sinter_layer *layer);             /* the same, if they have seen the layer */
const char *network_text(sinter_network *net, const char *words);  /* a copy; NULL: no memory */
sinter_network_tensor *network_tensor_new(sinter_network *net, sinter_layer *producer, uint32_t index,
                                          const char *name);
sinter_status network_tensor_check(env *e, const sinter_network *net, const sinter_network_tensor *t, const char *what);
sinter_status network_layer_check(env *e, const sinter_layer *layer);
/* network_add: of kinds that stand alone. network_make: of all; count_out counts for kind OP. */
sinter_layer *network_add(sinter_network *net, env *e, sinter_layer_kind kind, sinter_network_tensor *const *in,
                          uint32_t count);
sinter_layer *network_make(sinter_network *net, env *e, sinter_layer_kind kind, sinter_network_tensor *const *in,
                           uint32_t count, uint32_t count_out);
sinter_layer *network_add_op(sinter_network *net, env *e, const char *domain, const char *type, int64_t version,
                             sinter_network_tensor *const *in, uint32_t count, uint32_t count_out);
/* ---- plugin_layer.c ---- */
sinter_layer *network_add_plugin(sinter_network *net, env *e, const network_plugin_info *plugin,
                                 sinter_network_tensor *const *in, uint32_t count, uint32_t count_out);
sinter_status network_set_field(sinter_layer *layer, env *e, const sinter_plugin_field *field);

/* A layer that joins a loop or conditional. */
sinter_layer *network_join(network_control *c, env *e, sinter_layer_kind kind, sinter_network_tensor *const *in,
                           uint32_t count);
network_control *network_control_add(sinter_network *net, env *e, bool is_loop);
sinter_status network_remove(sinter_network *net, env *e, sinter_layer *layer);
sinter_status network_remove_input(sinter_network *net, env *e, sinter_network_tensor *t);
bool network_name_is_free(const sinter_network *net, const sinter_network_tensor *but, const char *name);
sinter_network_tensor *network_add_input(sinter_network *net, env *e, const char *name, sinter_dtype dtype,
                                         uint32_t rank, const int64_t *d, const char *const *dim_name);
sinter_status network_tensor_set_type(sinter_network_tensor *t, env *e, sinter_dtype dtype);
sinter_status network_tensor_set_shape(sinter_network_tensor *t, env *e, uint32_t rank, const int64_t *d);
sinter_status network_tensor_set_dim_name(sinter_network_tensor *t, env *e, uint32_t axis, const char *name);
sinter_status network_tensor_set_name(sinter_network_tensor *t, env *e, const char *name);
/* Marks a tensor, or takes its mark back: *mark, and the place in the list. */
sinter_status network_mark(sinter_network *net, env *e, sinter_network_tensor *t, network_tensors *list, bool *mark,
                           bool is_marked, const char *what);
sinter_status network_set_input(sinter_layer *layer, env *e, uint32_t index, sinter_network_tensor *t);
sinter_status network_set_layer_text(sinter_layer *layer, env *e, const char *words, bool is_name);
sinter_status network_set_precision(sinter_layer *layer, env *e, sinter_dtype dtype);
/* The type that a layer has to be computed in; NONE: the build decides. */
sinter_dtype network_obeyed(const sinter_layer *layer);
/* Is it a float that f32 is converted to? */
bool          network_is_narrower(sinter_dtype type);
sinter_status network_set_output_type(sinter_layer *layer, env *e, uint32_t index, sinter_dtype dtype);
sinter_status network_set_int(sinter_layer *layer, env *e, const char *name, int64_t value);
sinter_status network_set_real(sinter_layer *layer, env *e, const char *name, double value);
sinter_status network_set_ints(sinter_layer *layer, env *e, const char *name, const int64_t *value, uint32_t count);
sinter_status network_set_reals(sinter_layer *layer, env *e, const char *name, const double *value, uint32_t count);
sinter_status network_set_text(sinter_layer *layer, env *e, const char *name, const char *value);
sinter_status network_set_weights(sinter_layer *layer, env *e, const char *name, const sinter_weights *value);
sinter_status network_weights_copy(sinter_network *net, env *e, const sinter_weights *from, sinter_weights *out);
sinter_status network_set_weights_name(sinter_layer *layer, env *e, const char *name, const char *value);
sinter_status network_get_int(const sinter_layer *layer, env *e, const char *name, int64_t *out);
sinter_status network_get_real(const sinter_layer *layer, env *e, const char *name, double *out);
sinter_status network_get_ints(const sinter_layer *layer, env *e, const char *name, int64_t *out, uint32_t capacity,
                               uint32_t *count);
sinter_status network_get_reals(const sinter_layer *layer, env *e, const char *name, double *out, uint32_t capacity,
                                uint32_t *count);
sinter_status network_get_text(const sinter_layer *layer, env *e, const char *name, const char **out);
sinter_status network_get_weights(const sinter_layer *layer, env *e, const char *name, sinter_weights *out);
/* What a tensor is, and its values where they are known. */
sinter_status network_shape(sinter_network_tensor *t, env *e, sinter_network_shape *out);
sinter_status network_values(sinter_network_tensor *t, env *e, int64_t *out, uint32_t count);

/* ---- lowering (lowering.c) ---- */
typedef struct lowering lowering;
/* One layer while it is lowered. `c` has the builder, the inputs and the outputs: c.in[i], c.out[i]. */
struct network_call {
    onnx_call       c;
    lowering       *l;
    struct context *x;                  /* where its inputs and outputs are values */
    sinter_layer   *layer;
    ir_value_id    *in;                 /* c.in */
    sinter_dtype    type;               /* that network_widen gave the layer; NONE: none */
};

/* A graph with the network's inputs. `options` may be NULL. */
sinter_status lowering_begin(sinter_network *net, env *e, const onnx_import_options *options, lowering **out);
void          lowering_end(lowering *l);
bool          lowering_saw(const lowering *l, const sinter_layer *layer);      /* NULL: no */
ir_graph     *lowering_graph(lowering *l);
/* The value of a tensor: lowers what the tensor depends on. */
sinter_status lowering_value(lowering *l, sinter_network_tensor *t, ir_value_id *out);
/* A model with the network's inputs and no nodes, for what looks at the names of inputs alone. */
sinter_status network_face(const sinter_network *net, env *e, arena *a, onnx_model *out);
/* Lowers everything into a graph with the network's outputs. */
sinter_status network_lower(sinter_network *net, env *e, const onnx_import_options *options, ir_graph **out);
/* SHA-256 over all that decides what is built. */
void          network_digest(const sinter_network *net, uint8_t digest[32]);

/* ---- inside lowering functions ---- */
const network_param *network_param_of(const sinter_layer *layer, const char *name);
int64_t     network_int(network_call *n, const char *name);
double      network_real(network_call *n, const char *name, double unset);     /* `unset` where it was not set */
bool        network_ints(network_call *n, const char *name, attr_ints *out);   /* false: not set, or empty */
/* Gives the float inputs and weights of the layer one type: the widest of f16, bf16 and f32 that one of them has (f16
 * beside bf16: f32). Nothing changes in a strongly typed network, or beside floats of other types. */
void        network_widen(network_call *n);
void        network_widen_sizes(network_call *n); /* the same, and i32 beside i64 becomes i64: sizes were i32 once */
/* Weights as a constant of this shape, named LAYER.NAME; 0: there are none. */
ir_value_id network_weights(network_call *n, const char *name, uint32_t rank, const int64_t *dim);
/* Attributes of an ONNX operator, and its conversion. */
onnx_attr   network_attr_int(const char *name, int64_t value);
onnx_attr   network_attr_real(const char *name, double value);
onnx_attr   network_attr_ints(const char *name, const attr_ints *list);
onnx_attr   network_attr_text(const char *name, const char *value);
ir_value_id network_op(network_call *n, const char *type, const onnx_attr *attr, uint32_t count_attr,
                       const ir_value_id *in, uint32_t count_in);
/* The same with several outputs. */
void        network_ops(network_call *n, const char *type, const onnx_attr *attr, uint32_t count_attr,
                        const ir_value_id *in, uint32_t count_in, ir_value_id *out, uint32_t count_out);
ir_value_id network_i64s(network_call *n, const int64_t *at, uint32_t count);  /* a constant i64[count] */
/* The axes of a mask. Rejects axes outside of the rank. */
void        network_mask(network_call *n, const char *name, uint32_t rank, attr_ints *out);

#define LAYER(KIND, name, ...) void lower_##name(network_call *n);
#define LIST 0
#include "network/layers.def"
#undef LAYER
#undef LIST

#endif
