/* SPDX-License-Identifier: Apache-2.0 */
/* isa.c - CPUID and XGETBV. */
#include "cpu/isa.h"

#include "base/env.h"

#include <stdint.h>
#include <string.h>

static const char *const level_names[ISA_LEVEL_COUNT] = {
    [ISA_PLAIN] = "plain",
    [ISA_AVX2] = "avx2",
    [ISA_AVX512] = "avx512",
};

#if CPU_HAS_X86
#include <cpuid.h>

enum { XCR0_YMM = 0x6, XCR0_ZMM = 0xe6 };

static uint32_t xcr0_low(void)
{
    uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

isa_level isa_level_detect(void)
{
    const uint32_t fma = 1u << 12, osxsave = 1u << 27, avx = 1u << 28, f16c = 1u << 29;
    const uint32_t need1 = fma | osxsave | avx | f16c;
    const uint32_t avx2 = 1u << 5;
    const uint32_t avx512 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31; /* F DQ CD BW VL */
    uint32_t a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & need1) != need1) return ISA_PLAIN;
    const uint32_t saved = xcr0_low();
    if ((saved & XCR0_YMM) != XCR0_YMM) return ISA_PLAIN;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & avx2)) return ISA_PLAIN;
    return (b & avx512) == avx512 && (saved & XCR0_ZMM) == XCR0_ZMM ? ISA_AVX512 : ISA_AVX2;
}
#else
isa_level isa_level_detect(void)
{
    return ISA_PLAIN;
}
#endif

isa_level isa_level_of(env *e)
{
    if (!e->isa_asked) e->isa_asked = 1 + (uint32_t)isa_level_detect();
    return (isa_level)(e->isa_asked - 1);
}

const char *isa_level_name(isa_level level)
{
    return (unsigned)level < ISA_LEVEL_COUNT ? level_names[level] : "unknown";
}

bool isa_level_parse(const char *name, isa_level *out)
{
    for (int i = 0; i < ISA_LEVEL_COUNT; i++) {
        if (strcmp(name, level_names[i]) == 0) {
            *out = (isa_level)i;
            return true;
        }
    }
    return false;
}
