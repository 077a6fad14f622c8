/* SPDX-License-Identifier: Apache-2.0 */
/* isa.h - the instruction-set levels that kernels are compiled for, and what this CPU and its system allow.
 *
 * A level counts only where both CPUID and XGETBV say so: the operating system must save the registers, too. Model and
 * brand are never asked: virtual machines lie about them. Capping a level (for tests) is the caller's business. */
#ifndef CPU_ISA_H
#define CPU_ISA_H

#include <stdbool.h>

#if defined(__x86_64__)
#define CPU_HAS_X86 1
#else
#define CPU_HAS_X86 0
#endif

typedef enum isa_level {
    ISA_PLAIN,  /* what the compiler's baseline has */
    ISA_AVX2,   /* AVX2, FMA, F16C                  */
    ISA_AVX512, /* F, BW, DQ, VL, CD                */
    ISA_LEVEL_COUNT
} isa_level;

/* The highest level that this machine can run. From any thread. In a virtual machine CPUID leaves to the host and takes
 * tens of microseconds. */
isa_level isa_level_detect(void);
/* The same. Asks the CPU once and keeps the answer in `e`. */
typedef struct env env;
isa_level isa_level_of(env *e);
/* "plain", "avx2", "avx512". */
const char *isa_level_name(isa_level level);
/* The level of that name; false where there is none. */
bool isa_level_parse(const char *name, isa_level *out);

#endif
