/* SPDX-License-Identifier: Apache-2.0 */
/* info.h - reports about the library: operators, variables, the machine. */
#ifndef SINTER_INFO_H
#define SINTER_INFO_H

#include "engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, text): the environment variables that the library reads. An option overrides its variable. */
#define SINTER_VARIABLES(X) \
    X(SINTER_LOG, "Topics to log: import,opt,select,plan,jit,run, or all. The command logs to stderr.") \
    X(SINTER_ISA, "The most to use of the CPU, as --isa has it: plain, avx2, avx512, neon, neon_dot and others.") \
    X(SINTER_LIBCUDA, "The file of NVIDIA's driver library, instead of libcuda.so.1.") \
    X(SINTER_LIBNVRTC, "The file of the CUDA compiler, instead of the newest libnvrtc.so that is found.") \
    X(SINTER_LIBNVML, "The file of the GPU management library, instead of libnvidia-ml.so.1.") \
    X(SINTER_LIBNVTX, "The file of NVIDIA's library of profiler ranges (libnvToolsExt.so.1): runs are ranges, and so " \
                      "are their steps on the host. Unset: opened where a profiler asks for it " \
                      "(NVTX_INJECTION64_PATH); empty: never.") \
    X(SINTER_KERNEL_CACHE, "The folder of compiled GPU kernels, instead of sinter/kernels below ~/.cache; empty: none.")

/* Prints the ONNX operators that the importer supports, and the operations of sinter that they become. `format`: 0
 * plain, 1 Markdown (docs/ops.md), 2 JSON. */
SINTER_API sinter_status sinter_print_operators(int format, sinter_write_fn write, void *user) SINTER_MUST_USE;

/* Prints the CPU's features and caches, threads, GPUs and their libraries, and environment variables. States what is
 * missing and how to add it. */
SINTER_API sinter_status sinter_print_machine(sinter_print format, sinter_write_fn write, void *user) SINTER_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
