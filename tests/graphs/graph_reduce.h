/* SPDX-License-Identifier: Apache-2.0 */
/* graph_reduce.h - keeps a failing model, and makes it small: outputs, nodes, environments and sizes go while it fails
 * alike. */
#ifndef GRAPH_REDUCE_H
#define GRAPH_REDUCE_H

#include "graph_run.h"

typedef struct greport {
    const grun *o;
    const char *flags;          /* the options that make the graph again */
    const char *folder;         /* of files; NULL: none are written */
    unsigned long long seed;
    long graph;
} greport;

/* Writes SEED-GRAPH.graph and SEED-GRAPH.onnx: the model as it is. */
void greport_save(const gmodel *m, const greport *r, const gverdict *v);
/* Reduces, prints the small model, and writes SEED-GRAPH.small.graph and SEED-GRAPH.small.onnx. Models are tried in
 * processes of their own, so the caller must not have used a GPU. */
void greport_reduced(const gmodel *m, const greport *r, const gverdict *v);

#endif
