/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_kernels.c - cpu_kernels.def as a table. */
#include "cpu/cpu_kernels.h"

#include <string.h>

/* The build makes the hashes (cmake/kernel_hash.cmake). A build without them cannot tell kernels apart by their
 * timings. */
#if defined(__has_include)
#if __has_include("generated/kernel_hash.h")
#include "generated/kernel_hash.h"
#endif
#endif
#ifndef SINTER_CPU_KERNEL_HASHES
#define SINTER_CPU_KERNEL_HASHES(X) X(cpu_reference, "unknown")
#endif

const kernel *const cpu_kernels[] = {
#define KERNEL(name) &name,
#include "cpu/cpu_kernels.def"
#undef KERNEL
};
const uint32_t cpu_kernels_count = COUNT_OF(cpu_kernels);

const char *cpu_kernel_hash(const kernel *k)
{
    static const struct {
        const char *name, *hash;
    } hashes[] = {
#define HASH(name, hash) { #name, hash },
        SINTER_CPU_KERNEL_HASHES(HASH)
#undef HASH
    };
    for (uint32_t i = 0; i < COUNT_OF(hashes); i++) {
        if (strcmp(hashes[i].name, k->name) == 0) return hashes[i].hash;
    }
    return "unknown";
}
