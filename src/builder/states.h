/* SPDX-License-Identifier: Apache-2.0 */
/* states.h - which inputs and outputs of a model are its state. */
#ifndef BUILDER_STATES_H
#define BUILDER_STATES_H

#include "ir/graph.h"
#include "sinter/build.h"

/* Does the name fit the pattern, in which one '*' stands for any text? `star` and `length` (may be NULL) receive that
 * text. */
bool states_match(const char *pattern, const char *name, const char **star, size_t *length);
/* Are the options' pairs names, or patterns with one '*' each? */
sinter_status states_check(env *e, const sinter_build_options *o);
/* Finds the pairs that the options name, and puts them behind the other parameters and results (graph.states). */
sinter_status states_find(env *e, ir_graph *g, const sinter_build_options *o);

#endif
