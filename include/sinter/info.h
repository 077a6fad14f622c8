/* SPDX-License-Identifier: Apache-2.0 */
/* info.h - what this library knows: operators, options, the machine. */
#ifndef SINTER_INFO_H
#define SINTER_INFO_H

#include "engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, text): the environment variables that are read. An option that says the same wins over its variable. */
#define SINTER_VARIABLES(X) \
    X(SINTER_LOG, "Topics to log: import,opt,select,plan,jit,run, or all. The command logs to stderr.") \
    X(SINTER_ISA, "The highest instruction set to use: plain, avx2, avx512. A level that the CPU lacks is lowered.")

/* The ONNX operators that the importer takes, and the canonical ops that they become. `format`: 0 plain, 1 Markdown
 * (docs/ops.md), 2 JSON. */
SINTER_API sinter_status sinter_print_operators(int format, sinter_write_fn write, void *user) SINTER_MUST_USE;

/* CPU level and features, caches, threads, GPU libraries if any, environment variables; what is missing and what
 * to do. */
SINTER_API sinter_status sinter_print_machine(sinter_print format, sinter_write_fn write, void *user) SINTER_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
