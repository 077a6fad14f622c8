/* SPDX-License-Identifier: Apache-2.0 */
/* quantize.h - a model becomes a model with QuantizeLinear and DequantizeLinear around its products. */
#ifndef BUILD_QUANTIZE_H
#define BUILD_QUANTIZE_H

#include "builder/builder.h"
#include "sinter/quantize.h"

/* Writes the quantised model to the file `path`. */
sinter_status quantize_model(env *e, const build_model *m, const sinter_quantize_options *o, const char *path);

/* quantize_weights.c: a change of a simplified graph (simplify.h). user: a quantize_weights_job. */
struct ir_graph;
typedef struct quantize_weights_job {
    const build_model *model;
    const sinter_quantize_options *o;
} quantize_weights_job;
sinter_status quantize_weights(void *user, env *e, struct ir_graph *g);

/* Tells which rules the nodes of a model break. */
sinter_status quantize_check(env *e, const build_model *m,
                             void (*told)(void *user, const char *rule, const char *node, const char *text),
                             void *user);

#endif
