/* SPDX-License-Identifier: Apache-2.0 */
/* begin.h - what all builds of one model with the same shapes have in common: the model imported, and the passes that
 * depend on no device and no lowering. A build changes a clone of this graph; the last one takes the graph itself. */
#ifndef BUILD_BEGIN_H
#define BUILD_BEGIN_H

#include "builder/builder.h"
#include "builder/source.h"
#include "onnx/import.h"
#include "opt/pipeline.h"
#include "ops/values.h"

struct build_base {
    env                        *e;
    const sinter_build_options *o;      /* those it was begun with */
    arena                       a;
    source                      source;
    uint32_t                    node_count;     /* of the model */
    const onnx_input_value     *promise;        /* [o->value_count] */
    value_range                *values;         /* by input: what it may hold; NULL: all are floats */
    ir_graph                   *g;              /* NULL: a build took it */
    uint64_t                    fired;          /* rules, so far */
    uint8_t                     digest[32];     /* of the model */
};

/* Failure is NOTEd; *out is NULL then. */
sinter_status build_begin(env *e, const build_model *m, const sinter_build_options *o, build_base **out);
/* Frees the base; NULL is fine. All builds that use the base must have ended before the call. */
void          build_base_end(build_base *base);
/* The base's graph, for a build that changes it: a clone, or the graph itself for the last build. */
sinter_status build_base_graph(build_base *base, bool is_last, ir_graph **out);
/* The options of its passes. */
opt_options   build_passes(build_base *base);

#endif
