/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - the row kernels of a level. */
#include "cpu/rows.h"

const rows_set *rows_set_of(isa_level isa)
{
#if CPU_HAS_X86
    if (isa >= ISA_AVX512) return &rows_set_avx512;
    if (isa == ISA_AVX2) return &rows_set_avx2;
#endif
    (void)isa;
    return &rows_set_plain;
}
