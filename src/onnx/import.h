/* SPDX-License-Identifier: Apache-2.0 */
/* import.h - an ONNX model becomes a graph of canonical ops.
 *
 * All that ONNX's 200 operators, 27 versions and their habits amount to ends here. What cannot be taken is reported for
 * all nodes at once. */
#ifndef ONNX_IMPORT_H
#define ONNX_IMPORT_H

#include "ir/graph.h"
#include "onnx/model.h"

/* A shape, or a range of shapes, for one input. min -1: the axis stays as the model has it; min == max fixes it. */
typedef struct onnx_input_shape {
    const char *name;
    uint32_t    rank;
    int64_t     min[SINTER_RANK_MAX], opt[SINTER_RANK_MAX], max[SINTER_RANK_MAX];
} onnx_input_shape;

/* A promise that an input always holds these elements (dense, copied): what operators need to know while building, such
 * as the axes of a reduction. The graph keeps the input, and nothing reads it. */
typedef struct onnx_input_value {
    const char *name;
    view        data;
} onnx_input_value;

/* A named size that is always this expression of other named sizes. */
typedef struct onnx_dim_equal { const char *name, *text; } onnx_dim_equal;

typedef struct onnx_import_options {
    const onnx_model *model;            /* the bytes as onnx_model_read read them; NULL: the import reads them */
    const char   *folder;               /* where external data may lie; NULL: the model may open no files */
    bool          is_mapped;            /* the model's bytes are a mapped file: pages that were copied are given up */
    onnx_files *files; /* receives the mappings; close them after the graph. NULL: external data is copied */
    const onnx_input_shape *shape;
    uint32_t      count_shape;
    const onnx_dim_equal *equal;
    uint32_t      count_equal;
    const onnx_input_value *value;
    uint32_t      count_value;
} onnx_import_options;

/* Reads `bytes` into a new graph. The bytes (and `files`) must outlive it: weights stay where they are.
 * Errors: INVALID_MODEL, UNSUPPORTED (both list every node concerned), INVALID_ARG (a shape that fits no input), IO,
 * NO_MEMORY. */
sinter_status onnx_import(env *e, const onnx_import_options *options, const uint8_t *bytes, size_t size,
                          ir_graph **out);

/* Does the model name this size, so that equal names mean equal sizes? "?" and the like name nothing. */
bool onnx_dim_is_named(const onnx_dim *d);

/* The table of operators taken, for documentation: row `i`; false past the end. until 0: still valid. */
typedef struct onnx_op_row { const char *domain, *name; int64_t since, until; } onnx_op_row;
bool onnx_op_at(uint32_t i, onnx_op_row *out);

#endif
