/* SPDX-License-Identifier: Apache-2.0 */
/* profiles.h - the caller's shape ranges, as the importer and as each profile's tuning want them. */
#ifndef BUILD_PROFILES_H
#define BUILD_PROFILES_H

#include "onnx/import.h"
#include "sinter/build.h"

/* The first free axis that no profile names. input NULL: there is none. */
typedef struct unranged_axis { const char *input; uint32_t axis; } unranged_axis;

/* The union over all profiles, one entry an input; free dims of inputs that no profile names become 1. */
sinter_status profiles_union(env *e, arena *a, const onnx_model *model, const sinter_build_options *o,
                             onnx_import_options *out, unranged_axis *unranged);
/* Narrows the graph's symbols to profile `index`. */
sinter_status profiles_apply(env *e, ir_graph *g, const sinter_build_options *o, uint32_t index);

#endif
