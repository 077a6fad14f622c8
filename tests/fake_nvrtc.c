/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvrtc.c - see fake_nvrtc.h. */
#include "fake_nvrtc.h"

#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGE_SIZE = 1000 };
struct nvrtcProgram_st {
    uint64_t digest;
    long fail, spill;
};
static long compiled, live;

static uint64_t mix(uint64_t digest, const char *text_at)
{
    return hash64(text_at, strlen(text_at), digest);
}

static nvrtcResult version_13(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return NVRTC_SUCCESS;
}

static const char *error_string(nvrtcResult r)
{
    return r == NVRTC_ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}

static nvrtcResult program_create(nvrtcProgram *out, const char *source, const char *name, int count,
                                  const char *const *headers, const char *const *names)
{
    struct nvrtcProgram_st *p = calloc(1, sizeof *p);
    if (!p) return NVRTC_ERROR_OUT_OF_MEMORY;
    p->digest = mix(mix(1, source), name);
    for (int i = 0; i < count; i++) p->digest = mix(mix(p->digest, headers[i]), names[i]);
    __atomic_fetch_add(&live, 1, __ATOMIC_RELAXED);
    *out = p;
    return NVRTC_SUCCESS;
}

static nvrtcResult program_destroy(nvrtcProgram *p)
{
    free(*p);
    *p = NULL;
    __atomic_fetch_sub(&live, 1, __ATOMIC_RELAXED);
    return NVRTC_SUCCESS;
}

static nvrtcResult program_compile(nvrtcProgram p, int count, const char *const *options)
{
    __atomic_fetch_add(&compiled, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < count; i++) {
        p->digest = mix(p->digest, options[i]);
        if (!strncmp(options[i], "-DFAIL=", 7)) p->fail = strtol(options[i] + 7, NULL, 10);
        if (!strncmp(options[i], "-DSPILL=", 8)) p->spill = strtol(options[i] + 8, NULL, 10);
    }
    return p->fail == 1 ? NVRTC_ERROR_COMPILATION : p->fail == 3 ? NVRTC_ERROR_OUT_OF_MEMORY : NVRTC_SUCCESS;
}

static int log_print(nvrtcProgram p, char *out, size_t size)
{
    if (p->fail == 1) return snprintf(out, size, "remark: nothing\nfake.cu(7): error: a wrong word\n    wrong\n");
    return snprintf(out, size,
                    "ptxas info    : Compiling entry function 'k' for 'sm_90a'\nptxas info    : Function properties\n"
                    "    0 bytes stack frame, %ld bytes spill stores, %ld bytes spill loads\n"
                    "ptxas info    : Used 40 registers, used 1 barriers, 400 bytes cmem[0]\n",
                    p->spill / 2, p->spill - p->spill / 2);
}

static nvrtcResult log_size(nvrtcProgram p, size_t *size)
{
    *size = (size_t)log_print(p, NULL, 0) + 1;
    return NVRTC_SUCCESS;
}

static nvrtcResult log_text(nvrtcProgram p, char *log)
{
    (void)log_print(p, log, 1000);
    return NVRTC_SUCCESS;
}

static nvrtcResult image_size(nvrtcProgram p, size_t *size)
{
    *size = p->fail == 2 ? 0 : IMAGE_SIZE;
    return NVRTC_SUCCESS;
}

static nvrtcResult image_bytes(nvrtcProgram p, char *image)
{
    for (size_t i = 0; i < IMAGE_SIZE; i++) image[i] = (char)(p->digest >> i % 8 * 8);
    return NVRTC_SUCCESS;
}

void fake_nvrtc_fill(cuda_driver *d, int version)
{
    static int handle;
    d->nvrtc = &handle;
    d->nvrtc_version = version;
    d->nvrtcVersion = version_13;
    d->nvrtcGetErrorString = error_string;
    d->nvrtcCreateProgram = program_create;
    d->nvrtcDestroyProgram = program_destroy;
    d->nvrtcCompileProgram = program_compile;
    d->nvrtcGetProgramLogSize = log_size;
    d->nvrtcGetProgramLog = log_text;
    d->nvrtcGetCUBINSize = image_size;
    d->nvrtcGetCUBIN = image_bytes;
}

long fake_nvrtc_compiled(void)
{
    return __atomic_load_n(&compiled, __ATOMIC_RELAXED);
}

long fake_nvrtc_live(void)
{
    return __atomic_load_n(&live, __ATOMIC_RELAXED);
}
