/* SPDX-License-Identifier: Apache-2.0 */
/* model.h - a ModelProto as plain structs: names and lists in an arena, tensor bytes still where the file has them.
 *
 * Reading checks the wire format, the nesting of subgraphs and that lists are no longer than their bytes justify; it
 * does not know operators. Tensors are decoded when somebody asks for their elements. */
#ifndef ONNX_MODEL_H
#define ONNX_MODEL_H

#include "base/arena.h"
#include "base/os.h"
#include "core/view.h"

typedef struct onnx_pair { const char *key, *value; } onnx_pair;

typedef struct onnx_tensor {
    const char    *name;                /* "" where it has none; so are all names below */
    int32_t        type;                /* TensorProto.DataType */
    uint32_t       rank;                /* as the file says; only the first SINTER_RANK_MAX dims are kept */
    int64_t        dim[SINTER_RANK_MAX];
    bool           has_raw, is_external;
    const uint8_t *raw;
    size_t         raw_size;
    const uint8_t *span;                /* the whole message, for the typed fields */
    size_t         span_size;
    VEC(onnx_pair) external;
} onnx_tensor;

typedef struct onnx_sparse {
    onnx_tensor values, indices;
    uint32_t    rank;
    int64_t     dim[SINTER_RANK_MAX];
} onnx_sparse;

typedef enum onnx_attr_type {
    ONNX_FLOAT = 1, ONNX_INT, ONNX_STRING, ONNX_TENSOR, ONNX_GRAPH, ONNX_FLOATS, ONNX_INTS, ONNX_STRINGS, ONNX_TENSORS,
    ONNX_GRAPHS, ONNX_SPARSE, ONNX_SPARSES, ONNX_TYPE, ONNX_TYPES
} onnx_attr_type;

typedef struct onnx_text { const char *at; size_t length; } onnx_text;
typedef struct onnx_graph onnx_graph;
typedef struct onnx_attr {
    const char  *name, *ref;            /* ref: the function's attribute that stands for this one, or "" */
    int32_t      type;
    float        f;
    int64_t      i;
    onnx_text    s;                     /* NUL-terminated too */
    onnx_tensor *t;
    onnx_sparse *sparse;
    onnx_graph  *g;
    VEC(float)     floats;
    VEC(int64_t)   ints;
    VEC(onnx_text) strings;
} onnx_attr;

typedef VEC(const char *) onnx_names;
typedef struct onnx_node {
    const char *name, *type, *domain, *overload;
    uint32_t    index;                  /* in its list */
    onnx_names  in, out;
    VEC(onnx_attr) attr;
} onnx_node;

typedef struct onnx_dim { bool has_value; int64_t value; const char *param; } onnx_dim;
/* What tensor an input or output of the main graph is (faces.c): itself, or a part of a value that is no tensor of
 * numbers. */
typedef enum onnx_part { ONNX_WHOLE, ONNX_TEXT, ONNX_VALUES, ONNX_SHAPES, ONNX_HAS, ONNX_KEYS } onnx_part;
typedef struct onnx_value_info {
    const char *name;
    bool        has_type, is_tensor, has_shape;
    bool        is_sequence, is_optional;   /* of tensors that the rest describes */
    int32_t     key_type;               /* a map, or a sequence of maps, from this to `type`; 0: is none */
    onnx_part   part;
    bool        is_last;                /* of the parts of a value */
    const char *of;                     /* the name of the value that it is a part of; NULL: none */
    int32_t     type;
    uint32_t    rank;                   /* as the file says */
    onnx_dim    dim[SINTER_RANK_MAX];
} onnx_value_info;

typedef VEC(onnx_value_info) onnx_values;
typedef VEC(onnx_node) onnx_nodes;
struct onnx_graph {
    const char *name;
    onnx_nodes  node;
    VEC(onnx_tensor)     initializer;
    VEC(onnx_sparse)     sparse;        /* its name is that of `values` */
    onnx_values in, out;                /* of the main graph: as tensors of numbers */
    uint32_t    id;                     /* counts the model's graphs from 1 */
    onnx_names  reads;                  /* of a subgraph: the names that it reads from around it, once each */
};

typedef struct onnx_opset { const char *domain; int64_t version; } onnx_opset;
typedef VEC(onnx_opset) onnx_opsets;
typedef struct onnx_function {
    const char *name, *domain, *overload;
    onnx_names  in, out;
    onnx_nodes  node;
    onnx_opsets opset;
    VEC(onnx_attr) attr;                /* with defaults */
} onnx_function;

typedef struct onnx_model {
    int64_t     ir_version;
    const char *producer;
    onnx_opsets opset;
    onnx_graph  graph;
    bool        has_graph;
    uint32_t    graph_count;            /* subgraphs, those of functions included */
    VEC(onnx_function) function;
    VEC(onnx_pair)     metadata;
} onnx_model;

/* Reads a ModelProto. `bytes` must live as long as the tensors are wanted. */
sinter_status onnx_model_read(env *e, arena *a, const uint8_t *bytes, size_t size, onnx_model *out);

/* Replaces values that are no tensors of numbers by the tensors that stand for them. False: no memory. */
bool onnx_values_expand(arena *a, onnx_values *list);

/* Adds the names to which a graph gives values of its own. An input of such a name is no input. False: no memory. */
struct name_map;
bool onnx_graph_initialized(const onnx_graph *g, struct name_map *out);
/* Appends, to a list in `a`, the names that a list of nodes reads from around it, once each. The reads of subgraphs in
 * the nodes are known. False: no memory. */
bool onnx_nodes_read(arena *a, arena *scratch, const onnx_graph *g, onnx_names *out);

/* Files of external data that were mapped for a model: they live until the caller closes them. */
typedef struct onnx_file { char *name; size_t name_size; os_file file; } onnx_file;
typedef struct onnx_files { uint32_t count, capacity; onnx_file *at; } onnx_files;
void onnx_files_close(env *e, onnx_files *files);

enum { ONNX_TYPE_STRING = 8 };          /* the number of an element type that is no sinter_dtype */
SINTER_MUST_USE bool onnx_dtype_of(int32_t type, sinter_dtype *out);   /* false: strings, complex, unknown */
int32_t     onnx_dtype_to(sinter_dtype dtype);                         /* 0 for NONE */
const char *onnx_type_name(int32_t type);

/* The type and shape of a tensor, and its elements as they lie in a file, of any alignment; NULL: typed fields, or no
 * elements. In place: true where they may be read where they lie. */
sinter_status onnx_tensor_find(env *e, const char *folder, onnx_files *files, const onnx_tensor *t, view *out,
                                const uint8_t **bytes, size_t *bytes_size);
bool          onnx_tensor_in_place(view *v, const uint8_t *bytes, size_t size);
/* The elements of a tensor, dense: in place where the file has them aligned, else in `a`. folder NULL: no external
 * data. */
sinter_status onnx_tensor_decode(env *e, arena *a, const char *folder, onnx_files *files, const onnx_tensor *t,
                                 view *out);
sinter_status onnx_sparse_decode(env *e, arena *a, const char *folder, onnx_files *files, const onnx_sparse *t,
                                 view *out);
/* A serialised TensorProto by itself, as test data is stored. */
sinter_status onnx_tensor_read(env *e, arena *a, const uint8_t *bytes, size_t size, view *out);

/* For tensors inside other readers: one TensorProto message. */
sinter_status onnx_tensor_parse(env *e, arena *a, const uint8_t *bytes, size_t size, onnx_tensor *out);

#endif
