/* SPDX-License-Identifier: Apache-2.0 */
/* level.c - the loops of an instruction-set level. */
#include "cpu/level.h"

const cpu_level *level_of(isa_level isa)
{
#if CPU_HAS_X86
    if (isa == ISA_AVX512) return &level_avx512;
    if (isa == ISA_AVX2) return &level_avx2;
#endif
#if CPU_HAS_NEON
    if (isa == ISA_NEON) return &level_neon;
#endif
    (void)isa;
    return &level_plain;
}
