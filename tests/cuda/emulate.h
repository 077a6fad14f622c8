/* SPDX-License-Identifier: Apache-2.0 */
/* emulate.h - a CUDA kernel row on the CPU: its code compiled by g++ with the emulator's prelude, its record run.
 *
 * Compiled code lives in a folder of the build, named by the hash of all that it is made of, so that it is compiled once.
 * SINTER_CXX names the compiler (g++). */
#ifndef CUDA_EMULATE_H
#define CUDA_EMULATE_H

#include "cuda/device/args.h"
#include "cuda/launch.h"
#include "runtime.h"

enum { EMULATED_CODES = 8, EMULATED_KEY = 33 };

typedef struct emulated_code { char key[EMULATED_KEY], entry[64]; bool may_fail; } emulated_code;

/* The folder of this build. */
const char *emulate_folder(void);
/* Writes what is to be compiled for code `index` of the row. False: there is none of that number. A failure to write
 * is an exit: there is nothing to test then. */
bool emulate_code(env *e, const cuda_kernel *k, const problem *p, const tactic *t, const kernel_target *target,
                  uint32_t index, emulated_code *out);
