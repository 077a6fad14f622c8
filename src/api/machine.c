/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c - include/sinter/info.h: the machine as the library sees it. */
#include "backend/backend.h"
#include "base/os.h"
#include "sinter/info.h"
#include "sinter/version.h"

#include <string.h>

/* One fact: a line of text or a member of an object. */
typedef struct page {
    text *t;
    bool is_json, has_member;
} page;

static void member(page *p, const char *key)
{
    if (p->is_json) text_printf(p->t, "%s\n  \"%s\": ", p->has_member ? "," : "", key);
    else text_printf(p->t, "%-20s", key);
    p->has_member = true;
}

static void put_text(page *p, const char *key, const char *value)
{
    member(p, key);
    if (p->is_json) text_quoted(p->t, value, strlen(value));
    else text_printf(p->t, "%s\n", value);
}

static void put_number(page *p, const char *key, uint64_t value, const char *unit)
{
    member(p, key);
    text_printf(p->t, p->is_json ? "%llu" : "%llu%s\n", (unsigned long long)value, unit);
}

static void put_line(void *user, const char *name, const char *value)
{
    put_text(user, name, value);
}

static void features_text(text *t)
{
#if defined(__x86_64__)
#define FEATURE(name)                                                                                                  \
    if (__builtin_cpu_supports(name)) text_printf(t, "%s%s", t->length ? " " : "", name);
    FEATURE("sse4.2")
    FEATURE("avx")
    FEATURE("avx2")
    FEATURE("fma")
    FEATURE("avx512f")
    FEATURE("avx512bw")
    FEATURE("avx512dq")
    FEATURE("avx512vl")
    FEATURE("avx512cd")
    FEATURE("avx512vnni")
    FEATURE("avx512bf16")
#undef FEATURE
#else
    text_printf(t, "baseline");
#endif
}

static void machine_print(env *e, text *t, bool is_json)
{
    page p = { .t = t, .is_json = is_json };
    text scratch;
    text_init(&scratch, e);
    if (is_json) text_printf(t, "{");
    put_text(&p, "version", sinter_version());

    const backend *cpu = backend_find("cpu");
    device *d = NULL;
    const device_options options = { .isa = os_env("SINTER_ISA") };
    const sinter_status opened = cpu ? cpu->open(e, &options, &d) : SINTER_INTERNAL;
    kernel_target target = { 0 };
    if (opened == SINTER_OK) {
        cpu->describe(d, &scratch);
        cpu->target(d, &target);
        put_text(&p, "cpu", scratch.failed ? "" : scratch.at);
    } else {
        put_text(&p, "cpu", e->error->text);
    }
    text_clear(&scratch);
    features_text(&scratch);
    put_text(&p, "features", scratch.failed || !scratch.length ? "none" : scratch.at);
    put_number(&p, "cache_l1", target.cache_l1 >> 10, " KiB");
    put_number(&p, "cache_l2", target.cache_l2 >> 10, " KiB");
    put_number(&p, "cpus", os_cpu_count(), " usable by this process");
    put_number(&p, "memory", os_memory_size() >> 20, " MiB");
    uint32_t kernels = 0;
    if (cpu) (void)cpu->kernels(&kernels);
    put_number(&p, "kernels", kernels, "");
    if (d) cpu->close(e, d);

    const backend *gpu = backend_find("cuda");
    if (gpu && gpu->report) gpu->report(put_line, &p);
#define SINTER_X(name, about) put_text(&p, #name, os_env(#name) ? os_env(#name) : is_json ? "" : "(unset)");
    SINTER_VARIABLES(SINTER_X)
#undef SINTER_X

    text_clear(&scratch);
    if (opened != SINTER_OK) text_printf(&scratch, "The CPU backend does not open: correct SINTER_ISA. ");
    else if (target.isa == 0 && !os_env("SINTER_ISA"))
        text_printf(
            &scratch,
            "This CPU shows no AVX2: kernels run in plain C. On a virtual machine, let the host's features through. ");
    else if (os_env("SINTER_ISA"))
        text_printf(&scratch, "SINTER_ISA caps the instruction set: unset it for full speed. ");
    if (os_cpu_count() == 1)
        text_printf(&scratch, "One CPU is usable: an affinity mask or a container's limit may hide others. ");
    if (!scratch.length) text_printf(&scratch, "The CPU backend works.");
    put_text(&p, "advice", scratch.failed ? "" : scratch.at);
    if (is_json) text_printf(t, "\n}\n");
    text_deinit(&scratch);
}

sinter_status sinter_print_machine(sinter_print format, sinter_write_fn write, void *user)
{
    env e;
    env_init(&e, NULL, NULL);
    if (!write) return FAIL(&e, INVALID_ARG, "write is NULL");
    text t;
    text_init(&t, &e);
    machine_print(&e, &t, format == SINTER_PRINT_JSON);
    const sinter_status s = t.failed ? SINTER_NO_MEMORY : SINTER_OK;
    if (s == SINTER_OK) write(user, t.at, t.length);
    text_deinit(&t);
    return s;
}
