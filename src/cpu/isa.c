/* SPDX-License-Identifier: Apache-2.0 */
/* isa.c - CPUID and XGETBV on x86-64, the auxiliary vector on Arm. */
#include "cpu/isa.h"

#include "base/env.h"

#include <string.h>

/* What each level stands on. */
static const struct {
    const char *name, *architecture;
    isa_level below;
} levels[ISA_LEVEL_COUNT] = {
#if CPU_HAS_X86
    [ISA_PLAIN] = { "plain", "x86-64", ISA_PLAIN },
#elif CPU_HAS_NEON
    [ISA_PLAIN] = { "plain", "aarch64", ISA_PLAIN },
#else
    [ISA_PLAIN] = { "plain", "another architecture", ISA_PLAIN },
#endif
    [ISA_AVX2] = { "avx2", "x86-64", ISA_PLAIN },
    [ISA_AVX512] = { "avx512", "x86-64", ISA_AVX2 },
    [ISA_NEON] = { "neon", "aarch64", ISA_PLAIN },
};

enum {
    OF_AVX512_VNNI = ISA_AVX_VNNI | ISA_VNNI,
    OF_AVX512_BF16 = OF_AVX512_VNNI | ISA_BF16,
    OF_AVX512_FP16 = OF_AVX512_BF16 | ISA_FP16,
    OF_AVX512_AMX = OF_AVX512_FP16 | ISA_AMX_TILE | ISA_AMX_BF16 | ISA_AMX_INT8,
    OF_NEON_I8MM = ISA_DOT | ISA_I8MM
};

static const struct {
    const char *name;
    isa_choice is;
} choices[] = {
    { "plain", { ISA_PLAIN, 0 } },
    { "avx2", { ISA_AVX2, 0 } },
    { "avx2_vnni", { ISA_AVX2, ISA_AVX_VNNI } },
    { "avx512", { ISA_AVX512, 0 } },
    { "avx512_vnni", { ISA_AVX512, OF_AVX512_VNNI } },
    { "avx512_bf16", { ISA_AVX512, OF_AVX512_BF16 } },
    { "avx512_fp16", { ISA_AVX512, OF_AVX512_FP16 } },
    { "avx512_amx", { ISA_AVX512, OF_AVX512_AMX } },
    { "neon", { ISA_NEON, 0 } },
    { "neon_dot", { ISA_NEON, ISA_DOT } },
    { "neon_i8mm", { ISA_NEON, OF_NEON_I8MM } },
    { "neon_bf16", { ISA_NEON, OF_NEON_I8MM | ISA_NEON_BF16 } },
};

#if CPU_HAS_X86
#include <cpuid.h>

enum { XCR0_YMM = 0x6, XCR0_ZMM = 0xe6, XCR0_TILE = 0x60000 };

static uint32_t xcr0_low(void)
{
    uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static isa_features bit(uint32_t word, int at, isa_features feature)
{
    return word >> at & 1 ? feature : 0;
}

isa_choice isa_detect(void)
{
    const uint32_t fma = 1u << 12, osxsave = 1u << 27, avx = 1u << 28, f16c = 1u << 29;
    const uint32_t need1 = fma | osxsave | avx | f16c;
    const uint32_t avx2 = 1u << 5;
    const uint32_t avx512 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31; /* F DQ CD BW VL */
    uint32_t a = 0, b = 0, c = 0, d = 0, a1 = 0, b1 = 0, c1 = 0, d1 = 0;
    isa_choice is = { ISA_PLAIN, 0 };
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & need1) != need1) return is;
    const uint32_t saved = xcr0_low();
    if ((saved & XCR0_YMM) != XCR0_YMM) return is;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & avx2)) return is;
    if (a >= 1) (void)__get_cpuid_count(7, 1, &a1, &b1, &c1, &d1);
    is = (isa_choice){ ISA_AVX2, bit(a1, 4, ISA_AVX_VNNI) };
    if ((b & avx512) != avx512 || (saved & XCR0_ZMM) != XCR0_ZMM) return is;
    is.level = ISA_AVX512;
    is.features |= bit(c, 11, ISA_VNNI) | bit(a1, 5, ISA_BF16) | bit(d, 23, ISA_FP16);
    if ((saved & XCR0_TILE) == XCR0_TILE && bit(d, 24, ISA_AMX_TILE))
        is.features |= ISA_AMX_TILE | bit(d, 22, ISA_AMX_BF16) | bit(d, 25, ISA_AMX_INT8);
    is.features = level_avx512_amx_permitted(is.features);
    return is;
}
#elif CPU_HAS_NEON
#include <sys/auxv.h>

isa_choice isa_detect(void)
{
    const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
    isa_choice is = { ISA_NEON, 0 };
    if (first >> 20 & 1) is.features |= ISA_DOT;
    if (second >> 13 & 1) is.features |= ISA_I8MM;
    if (second >> 14 & 1) is.features |= ISA_NEON_BF16;
    return is;
}
#else
isa_choice isa_detect(void)
{
    return (isa_choice){ ISA_PLAIN, 0 };
}
#endif

isa_level isa_level_detect(void)
{
    return isa_detect().level;
}

isa_choice isa_of(env *e)
{
    if (!e->isa_asked) {
        const isa_choice is = isa_detect();
        e->isa_asked = 1 + (uint32_t)is.level + (is.features << 8);
    }
    return (isa_choice){ (isa_level)((e->isa_asked & 255) - 1), e->isa_asked >> 8 };
}

isa_level isa_level_of(env *e)
{
    return isa_of(e).level;
}

const char *isa_level_name(isa_level level)
{
    return (unsigned)level < ISA_LEVEL_COUNT ? levels[level].name : "unknown";
}

const char *isa_level_architecture(isa_level level)
{
    return (unsigned)level < ISA_LEVEL_COUNT ? levels[level].architecture : "unknown";
}

bool isa_level_parse(const char *name, isa_level *out)
{
    isa_choice c;
    if (!isa_choice_parse(name, &c) || strcmp(isa_level_name(c.level), name) != 0) return false;
    *out = c.level;
    return true;
}

bool isa_level_runs(isa_level have, isa_level want)
{
    if ((unsigned)have >= ISA_LEVEL_COUNT || (unsigned)want >= ISA_LEVEL_COUNT) return false;
    while (have != want && have != ISA_PLAIN) have = levels[have].below;
    return have == want;
}

isa_level isa_level_next(isa_level level)
{
    const isa_level most = isa_level_detect();
    while (++level < ISA_LEVEL_COUNT && !isa_level_runs(most, level)) continue;
    return level;
}

const char *isa_choice_at(uint32_t index, isa_choice *out)
{
    if (index >= COUNT_OF(choices)) return NULL;
    *out = choices[index].is;
    return choices[index].name;
}

bool isa_choice_in(isa_choice machine, uint32_t index, isa_choice *out)
{
    for (uint32_t i = 0; i < COUNT_OF(choices); i++) {
        const isa_choice c = isa_choice_cap(machine, choices[i].is);
        if (strcmp(isa_choice_name(c), choices[i].name) != 0 || index--) continue;
        *out = c;
        return true;
    }
    return false;
}

bool isa_choice_parse(const char *name, isa_choice *out)
{
    for (uint32_t i = 0; i < COUNT_OF(choices); i++) {
        if (strcmp(name, choices[i].name) == 0) {
            *out = choices[i].is;
            return true;
        }
    }
    return false;
}

const char *isa_feature_name(isa_features features)
{
    static const char *const names[] = { "avx_vnni", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile",
                                         "amx_bf16", "amx_int8",    "asimddp",     "i8mm",        "bf16" };
    for (uint32_t i = COUNT_OF(names); i-- > 0;)
        if (features & 1u << i) return names[i];
    return "";
}

const char *isa_choice_name(isa_choice c)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < COUNT_OF(choices); i++) {
        /* A CPU of AVX-512 need not have the instructions of 256 bits of the same use. */
        const isa_features has = c.features | (c.features & ISA_VNNI ? ISA_AVX_VNNI : 0u);
        if (isa_choice_runs((isa_choice){ c.level, has }, choices[i].is)) at = i;
    }
    return choices[at].name;
}

isa_choice isa_choice_cap(isa_choice a, isa_choice b)
{
    while (!isa_level_runs(b.level, a.level)) a.level = levels[a.level].below;
    return (isa_choice){ a.level, a.features & b.features };
}
