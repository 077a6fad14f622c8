/* SPDX-License-Identifier: Apache-2.0 */
/* simplify.h - a model becomes a smaller model: import, the portable passes, export. */
#ifndef BUILD_SIMPLIFY_H
#define BUILD_SIMPLIFY_H

#include "builder/builder.h"
#include "onnx/export.h"
#include "sinter/simplify.h"

/* What else is done to the simplified graph. */
typedef struct simplify_change {
    sinter_status (*run)(void *user, env *e, ir_graph *g);
    void          *user;
} simplify_change;

/* Writes the simplified model to the file `path`, or, where that is NULL, to the sink. change: NULL: nothing. */
sinter_status simplify_model(env *e, const build_model *m, const sinter_simplify_options *o,
                             const simplify_change *change, const char *path, const onnx_sink *to);

#endif
