/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_device.c - what is asked of the machine once: instruction set, caches, identity. The figures only order
 * candidates; the clock decides. */
#include "cpu/cpu_device.h"

#include <unistd.h>
#if CPU_HAS_X86
#include <cpuid.h>
#endif

static uint64_t cache_size(int name, uint64_t otherwise)
{
    const long size = sysconf(name);
    return size > 0 ? (uint64_t)size : otherwise;
}

kernel_target cpu_target_of(isa_choice isa, uint32_t threads)
{
    /* Two multiply-adds a cycle at 2.5 GHz, half of that for the plain level, which has no multiply-add. */
    const double flops[ISA_LEVEL_COUNT] = {
        [ISA_PLAIN] = 2e10, [ISA_AVX2] = 8e10, [ISA_AVX512] = 1.2e11, [ISA_NEON] = 4e10
    };
    kernel_target t = { .isa = (uint32_t)isa.level,
                        .features = isa.features,
                        .threads = threads,
                        .flops = flops[isa.level],
                        .bandwidth = 1.5e10 };
#if defined(_SC_LEVEL1_DCACHE_SIZE) && defined(_SC_LEVEL2_CACHE_SIZE)
    t.cache_l1 = cache_size(_SC_LEVEL1_DCACHE_SIZE, 32 << 10);
    t.cache_l2 = cache_size(_SC_LEVEL2_CACHE_SIZE, 512 << 10);
#else
    t.cache_l1 = 32 << 10;
    t.cache_l2 = 512 << 10;
#endif
#if defined(_SC_LEVEL3_CACHE_SIZE)
    t.cache_last = cache_size(_SC_LEVEL3_CACHE_SIZE, 32 << 20);
#else
    t.cache_last = 32 << 20;
#endif
    return t;
}

sinter_status cpu_device_init(env *e, const char *isa_cap, const cpu_pool_options *pool, cpu_device *out)
{
    *out = (cpu_device){ .isa = isa_of(e) };
    isa_choice cap = out->isa;
    if (isa_cap && *isa_cap && !isa_choice_parse(isa_cap, &cap))
        return FAIL(e, INVALID_ARG,
                    "the instruction set '%s' is not one of plain, avx2, avx2_vnni, avx512, avx512_vnni, avx512_bf16, "
                    "avx512_fp16, avx512_amx, neon, neon_dot, neon_i8mm, neon_bf16",
                    isa_cap);
    out->isa = isa_choice_cap(out->isa, cap);
    TRY(cpu_pool_take(e, pool, &out->pool));
    out->target = cpu_target_of(out->isa, cpu_pool_threads(out->pool));
    return SINTER_OK;
}

void cpu_device_deinit(cpu_device *d)
{
    cpu_pool_give(d->pool);
    d->pool = NULL;
}

void cpu_device_describe(const cpu_device *d, text *out)
{
    text_printf(out, "cpu %s", isa_choice_name(d->isa));
#if CPU_HAS_X86
    uint32_t a = 0, b = 0, c = 0, di = 0;
    if (__get_cpuid(0, &a, &b, &c, &di)) {
        char vendor[13] = { 0 };
        memcpy(vendor, &b, 4);
        memcpy(vendor + 4, &di, 4);
        memcpy(vendor + 8, &c, 4);
        text_printf(out, " %s", vendor);
    }
    if (__get_cpuid(1, &a, &b, &c, &di)) {
        const uint32_t family = (a >> 8 & 15) + (a >> 20 & 255), model = (a >> 4 & 15) + (a >> 12 & 240);
        text_printf(out, " %u/%u/%u", family, model, a & 15);
    }
#endif
    text_printf(out, " l1=%llu l2=%llu", (unsigned long long)d->target.cache_l1,
                (unsigned long long)d->target.cache_l2);
}
