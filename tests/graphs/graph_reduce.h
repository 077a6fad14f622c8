/* SPDX-License-Identifier: Apache-2.0 */
/* graph_reduce.h - makes a failing model small: outputs, nodes, environments and sizes go while it fails alike. */
#ifndef GRAPH_REDUCE_H
#define GRAPH_REDUCE_H

#include "graph_run.h"

/* Reduces, prints the model, and saves it as text and ONNX below `folder` (NULL: not at all). */
void greduce_report(const gmodel *m, const grun *o, const gverdict *v, const char *folder, unsigned long long seed,
                    long graph);

#endif
