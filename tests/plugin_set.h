/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_set.h - plugins for tests, through the public interface alone. tests/plugins makes a shared library of them.
 *
 *   CustomPlugin     y = x * scale + bias. f32 and f16, any layout, a state made of its parameters, two tactics
 *   CustomKernel     y = x - mean of its row (last axis). f32, row-major, a workspace of a number a row, a kernel
 *   CustomQuantized  y = relu(x), f32, f16 or i8 with scales; channels-last, too
 *   CustomPairs      x[N,C]: two outputs of sizes [2*N+1, ceildiv(C,k)] and [min(N,C)]; fields of every type */
#ifndef PLUGIN_SET_H
#define PLUGIN_SET_H

#include "sinter/plugin.h"

enum { PLUGIN_SET_COUNT = 4 };
extern const sinter_plugin plugin_set[PLUGIN_SET_COUNT];

/* A registry with all of them. The test ends where there is no memory. */
sinter_plugins *plugin_set_new(void);
/* One that all of a program shares, freed at its end. Not for several threads that ask first. */
const sinter_plugins *plugin_set_shared(void);

#endif
