/* SPDX-License-Identifier: Apache-2.0 */
/* isa.h - the instruction-set levels that kernels are compiled for, the features beside them, and what this CPU allows.
 *
 * Levels are a tree: each stands on one other and runs all that was made for that one.
 *
 *     plain <- avx2 <- avx512      x86-64
 *     plain <- neon                64-bit Arm
 *
 * Features are not ordered: two CPUs of one level may have different ones. On x86-64 a level or a feature counts only
 * where both CPUID and XGETBV say so: the operating system must save the registers, too. On Arm the operating system
 * says what there is. Model and brand are never asked: virtual machines lie about them. Capping (for tests) is the
 * caller's business. */
#ifndef CPU_ISA_H
#define CPU_ISA_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#define CPU_HAS_X86 1
#else
#define CPU_HAS_X86 0
#endif
#if defined(__aarch64__)
#define CPU_HAS_NEON 1
#else
#define CPU_HAS_NEON 0
#endif

/* Engines store these numbers: they stay. */
typedef enum isa_level {
    ISA_PLAIN,  /* what the compiler's baseline has */
    ISA_AVX2,   /* AVX2, FMA, F16C                  */
    ISA_AVX512, /* F, BW, DQ, VL, CD                */
    ISA_NEON,   /* every 64-bit Arm CPU             */
    ISA_LEVEL_COUNT
} isa_level;

/* Features: bits of a mask. */
typedef uint32_t isa_features;
enum {
    ISA_AVX_VNNI = 1,                   /* vpdpbusd on 256 bits, of the level avx2   */
    ISA_VNNI = 2,                       /* vpdpbusd on 512 bits, of the level avx512 */
    ISA_BF16 = 4,                       /* vdpbf16ps on 512 bits                     */
    ISA_FP16 = 8,                       /* arithmetic in f16 on 512 bits             */
    ISA_AMX_TILE = 16,                  /* matrix registers, and what multiplies them */
    ISA_AMX_BF16 = 32,
    ISA_AMX_INT8 = 64,
    ISA_DOT = 128,                      /* udot and sdot, of the level neon          */
    ISA_I8MM = 256,                     /* usdot                                     */
    ISA_NEON_BF16 = 512,                /* bfdot                                     */
    ISA_FEATURES_ALL = 1023
};

/* What code may use: a level, and features beside it. */
typedef struct isa_choice {
    isa_level    level;
    isa_features features;
} isa_choice;

/* All that this machine can run. From any thread. In a virtual machine CPUID leaves to the host and takes tens of
 * microseconds. */
isa_choice isa_detect(void);
#if CPU_HAS_X86
/* `has` less what the operating system does not give this process; asks it for matrix registers. */
isa_features level_avx512_amx_permitted(isa_features has);
#endif
isa_level  isa_level_detect(void);
/* The same. Asks the CPU once and keeps the answer in `e`. */
typedef struct env env;
isa_choice isa_of(env *e);
isa_level  isa_level_of(env *e);
/* "plain", "avx2", "avx512", "neon". */
const char *isa_level_name(isa_level level);
/* "x86-64", "aarch64"; of plain that of this build, which may be "another architecture". */
const char *isa_level_architecture(isa_level level);
/* Whether a machine of level `have` can run what was made for `want`. */
bool isa_level_runs(isa_level have, isa_level want);
/* The next level after `level` that this machine can run; ISA_LEVEL_COUNT past the last. The first is ISA_PLAIN. */
isa_level isa_level_next(isa_level level);
/* The level of that name; false where there is none. */
bool isa_level_parse(const char *name, isa_level *out);

/* Named choices, from the least to the most for each architecture: the levels, and levels with features. NULL past the
 * last. */
const char *isa_choice_at(uint32_t index, isa_choice *out);
/* Those among them that a machine can run, with the features that it has. False past the last. */
bool        isa_choice_in(isa_choice machine, uint32_t index, isa_choice *out);
/* The choice of that name: the most that may be used. False where there is none. A name of another architecture leaves
 * "plain" (isa_choice_cap). */
bool        isa_choice_parse(const char *name, isa_choice *out);
/* The newest of some features as /proc/cpuinfo has it; "" where there is none. */
const char *isa_feature_name(isa_features features);
/* The last named choice that `c` has all of. */
const char *isa_choice_name(isa_choice c);
/* The highest level that both can run, and the features that both have. */
isa_choice  isa_choice_cap(isa_choice a, isa_choice b);
/* Whether a machine with `have` can run code made for `want`. */
static inline bool isa_choice_runs(isa_choice have, isa_choice want)
{
    return isa_level_runs(have.level, want.level) && !(want.features & ~have.features);
}

#endif
