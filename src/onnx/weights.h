/* SPDX-License-Identifier: Apache-2.0 */
/* weights.h - the initializers of a model by name, without importing it. */
#ifndef ONNX_WEIGHTS_H
#define ONNX_WEIGHTS_H

#include "onnx/model.h"

typedef struct onnx_weight { const char *name; view value; } onnx_weight;
typedef VEC(onnx_weight) onnx_weights;

/* Dense tensors: initializers of the graph and of subgraphs, and the tensors of Constant nodes, which have the name of
 * the node's output. A name of a subgraph may occur more than once. What is no tensor of numbers is left out. Elements
 * lie in the model's bytes, in `files` or in `a`. Errors: IO, INVALID_MODEL, NO_MEMORY. */
sinter_status onnx_weights_read(env *e, arena *a, const onnx_model *m, const char *folder, onnx_files *files,
                                onnx_weights *out);

#endif
