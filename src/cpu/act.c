/* SPDX-License-Identifier: Apache-2.0 */
/* act.c - the loop of an activation for an instruction set. */
#include "cpu/act.h"

act_fn *act_of(isa_level isa, op_id op)
{
#if CPU_HAS_X86
    if (isa >= ISA_AVX512) return act_of_avx512(op);
    if (isa >= ISA_AVX2) return act_of_avx2(op);
#endif
    (void)isa;
    return act_of_plain(op);
}
