/* SPDX-License-Identifier: Apache-2.0 */
/* export.h - a graph of canonical ops becomes an ONNX model.
 *
 * Every op has a row in export.def. Ops that ONNX has not are rewritten as compositions first, on a clone: the caller's
 * graph stays as it is. Names of inputs and outputs are kept. Sizes that an operator takes as a tensor become
 * constants, or are computed from the shapes of the inputs, each once.
 *
 * The model does not express checks that a run would make (a size that must be a multiple of another, a branch that was
 * decided while importing) and the ranges of named sizes. */
#ifndef ONNX_EXPORT_H
#define ONNX_EXPORT_H

#include "ir/graph.h"

/* The lowest and the highest opset that is written. */
enum { ONNX_WRITE_OPSET_MIN = 21, ONNX_WRITE_OPSET_MAX = 28 };

/* Receives bytes in order. The caller of onnx_write() owns `user`. A failure ends the writing. */
typedef struct onnx_sink {
    sinter_status (*put)(void *user, const void *data, size_t size);
    void *user;
} onnx_sink;

/* What a model's file begins with, an os_file_kind: the version of the format, field 1 of ModelProto. */
#define ONNX_FILE_KIND { "an ONNX model", "\x08", 1 }

typedef struct onnx_write_options {
    int64_t     opset;          /* of the default domain; 0: the lowest that has every operator of the model, at least
                                   ONNX_WRITE_OPSET_MIN */
    int64_t     opset_min;      /* with opset 0: the model's opset is not below this one, and operators up to it are
                                   used in the place of compositions; 0: ONNX_WRITE_OPSET_MIN */
    const char *graph_name;     /* NULL: "sinter" */
    /* The file of external data, as the model names it: a path relative to the model's folder. NULL: all constants are
     * in the model, which may then have 2 GiB at most. */
    const char *data_name;
    size_t      data_min;       /* with data_name: constants of fewer bytes stay in the model */
    /* A constant that folding made is written as the nodes that make it, where it has more bytes than unfold_min and
     * than 1.5 times what it is made of. 0: always as a constant. */
    size_t      unfold_min;
    bool        unfold_all;     /* with unfold_min: whatever it is made of */
    /* Called once for each node that is written, with its operator. NULL: nobody counts. */
    void      (*counted)(void *user, const char *type);
    void       *count_user;
} onnx_write_options;

/* Writes the graph as a ModelProto. The bytes of constants go to the sink from where they lie.
 *   data   receives the external data; NULL where options->data_name is NULL.
 * Errors: UNSUPPORTED (an op or a type without a form in ONNX, or more than 2 GiB), NO_MEMORY, those of the sinks. */
sinter_status onnx_write(env *e, const ir_graph *g, const onnx_write_options *options, const onnx_sink *model,
                         const onnx_sink *data);

/* The same into the file `path`, which is replaced as a whole. Where options->data_name is NULL and the constants have
 * more than 2 GiB, or where is_external is set, they go to "<path>.data" beside it. Both files are complete before the
 * first of them gets its name: external data first. */
sinter_status onnx_write_file(env *e, const ir_graph *g, const onnx_write_options *options, bool is_external,
                              const char *path);

#endif
