/* SPDX-License-Identifier: Apache-2.0 */
/* graph_eval.h - runs a graph node by node through the oracle: what optimised graphs are compared with.
 *
 * Symbols take their opt. The main region only: no ops with regions, none whose sizes come late. */
#ifndef GRAPH_EVAL_H
#define GRAPH_EVAL_H

#include "ir/graph.h"

/* Fills one view for each result of the main region, in `a`. in: one dense view for each parameter. */
sinter_status graph_eval(const ir_graph *g, const view *in, arena *a, view *out);
/* Random inputs: floats in [-1, 1) (in [0.1, 1) where the name begins with "pos"), integers in [0, 4), bools. */
sinter_status graph_inputs(const ir_graph *g, uint64_t seed, arena *a, view *in);
/* Puts zeros, infinities, NaN, subnormals and (far) large numbers among floats; all values of integers of 8 bits. */
void graph_inputs_special(const ir_graph *g, uint64_t seed, bool far, view *in);
/* The graph written as ONNX and imported again. The bytes live in `a`, and so do constants of the new graph. */
sinter_status graph_written(const ir_graph *g, arena *a, ir_graph **out);
/* Equal types, shapes and bits; all NaN are one. signs: of zeros, too. */
bool graph_same(const view *a, const view *b, bool signs);
/* The largest |a - b| / max(1, |b|) over all elements; infinite where shapes or types differ, or one alone is NaN. */
double graph_gap(const view *a, const view *b);

#endif
