/* SPDX-License-Identifier: Apache-2.0 */
/* info.h - what this library knows: operators, options, the machine. */
#ifndef SINTER_INFO_H
#define SINTER_INFO_H

#include "engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The ONNX operators that the importer takes: domain, name, versions, and the canonical ops they become. Markdown or plain. */
SINTER_API sinter_status sinter_print_operators(int markdown, sinter_write_fn write, void *user) SINTER_MUST_USE;

/* CPU level and features, caches, threads, GPU libraries if any, environment variables; what is missing and what to do. */
SINTER_API sinter_status sinter_print_machine(sinter_print format, sinter_write_fn write, void *user) SINTER_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
