/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_file.h - an ONNX file as its nodes: lists them, and writes the same model with fewer nodes or more outputs.
 * Nodes and weights are copied byte for byte. Nothing is checked beyond what this needs: the library reads models. */
#ifndef CLI_ONNX_FILE_H
#define CLI_ONNX_FILE_H

#include "print.h"

typedef struct onnx_span {
    const uint8_t *at;
    size_t size;
} onnx_span;
typedef struct onnx_names {
    char **at;
    uint32_t count;
} onnx_names;

/* An input, output, weight or described value. `span`: its message. */
typedef struct onnx_value {
    char *name;
    onnx_span span;
    uint32_t field;
} onnx_value;
typedef struct onnx_values {
    onnx_value *at;
    uint32_t count;
} onnx_values;

/* `in` holds what the node's subgraphs read, too. */
typedef struct onnx_node {
    char *name, *op;
    onnx_names in, out;
    onnx_span span;
} onnx_node;

typedef struct onnx_file {
    uint8_t *bytes;
    size_t size;
    onnx_node *node;
    uint32_t nodes;
    onnx_values input, output, weight, about; /* about: value_info */
    onnx_values rest, graph_rest;             /* fields of the model and of the graph that are copied as they are */
    bool has_external;                        /* weights in other files, which are found by the model's folder */
} onnx_file;

bool onnx_file_read(const char *path, onnx_file *out); /* false: reported */
void onnx_file_free(onnx_file *f);

bool onnx_names_have(const onnx_names *list, const char *name);
const onnx_value *onnx_values_find(const onnx_values *list, const char *name);
/* False for a sequence, map or optional, as far as the file or the operator tells. `name`: an output of the node. */
bool onnx_file_is_tensor(const onnx_file *f, const onnx_node *n, const char *name);

/* A value with a type; data is not written. dtype NONE: the file's own description of it, else none. */
typedef struct onnx_typed {
    const char *name;
    sinter_tensor type;
} onnx_typed;

/* The nodes to write, and inputs and outputs in place of the model's own. */
typedef struct onnx_part {
    const bool *is_kept; /* by node */
    const onnx_typed *input, *output;
    uint32_t inputs, outputs;
} onnx_part;
/* Weights that no kept node reads and that are no outputs are left out. False: reported. */
bool onnx_file_write(const onnx_file *f, const onnx_part *part, const char *path);
/* Writes the model with the tensors that nodes make as outputs, behind its own. */
bool onnx_file_write_all(const onnx_file *f, const char *path);
/* Writes a tensor as ONNX's .pb, which has names for all types. */
bool onnx_tensor_write(const sinter_tensor *t, const char *path);

#endif
