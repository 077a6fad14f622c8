/* SPDX-License-Identifier: Apache-2.0 */
/* graph_dump.h - models with the data of their runs as files, for compare_onnxruntime.py. */
#ifndef GRAPH_DUMP_H
#define GRAPH_DUMP_H

#include "graph_judge.h"

/* FOLDER/NAME.onnx, .json (what is what) and .bin (the numbers). */
bool gdump(const gmodel *m, const char *folder, const char *name);

#endif
