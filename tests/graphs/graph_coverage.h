/* SPDX-License-Identifier: Apache-2.0 */
/* graph_coverage.h - what a model has, as lines for uncovered.py. */
#ifndef GRAPH_COVERAGE_H
#define GRAPH_COVERAGE_H

#include "graph_model.h"

/* Appends the facts of a judged model to a file. False: the file cannot be written. Several processes may append to one
 * file: the lines of a model are one write. */
bool gcoverage(const gmodel *m, const char *path);

#endif
