/* SPDX-License-Identifier: Apache-2.0 */
/* nvrtc.c - a compiler whose images say how large the parameters are, or that of whoever sets another. */
#include "fake_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct program {
    fake_object o;
    char *text, *name, **header, **header_name;
    int header_count;
    void *image;
    size_t size;
    char *log;
} program;

static fake_compile_fn compiler;

void fake_set_compile(fake_compile_fn compile)
{
    compiler = compile;
}

/* "-DFAKE_PARAM0=64" with the name FAKE_PARAM0: 64; -1: not given */
static long option(const fake_source *s, const char *name)
{
    const size_t length = strlen(name);
    for (int i = 0; i < s->option_count; i++) {
        const char *o = s->options[i];
        if (!strncmp(o, "-D", 2) && !strncmp(o + 2, name, length) && o[2 + length] == '=') return atol(o + 3 + length);
    }
    return -1;
}

static void *compile_nothing(const fake_source *s, size_t *size, char **log)
{
    *log = strdup(option(s, "FAKE_FAILS") > 0 ? "test.cu(1): error: as the test asked for" : "Used 32 registers");
    if (option(s, "FAKE_FAILS") > 0) return NULL;
    fake_image *i = calloc(1, sizeof *i);
    if (!i) abort();
    *i = (fake_image){ .magic = FAKE_IMAGE_MAGIC, .size = sizeof *i, .param_count = -1 };
    for (int k = 0; k < s->option_count; k++)
        if (!strncmp(s->options[k], "-arch=sm_", 9)) i->sm = (uint32_t)atoi(s->options[k] + 9);
    for (int k = 0; k < FAKE_PARAMS; k++) {
        char name[24];
        (void)snprintf(name, sizeof name, "FAKE_PARAM%d", k);
        const long bytes = option(s, name);
        if (bytes <= 0) break;
        i->param[k] = (uint32_t)bytes;
        i->param_count = k + 1;
    }
    *size = sizeof *i;
    return i;
}

FAKE_EXPORT nvrtcResult nvrtcVersion(int *major, int *minor);
FAKE_EXPORT const char *nvrtcGetErrorString(nvrtcResult r);
FAKE_EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram *out, const char *source, const char *name, int header_count,
                                           const char *const *headers, const char *const *header_names);
FAKE_EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *handle);
FAKE_EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram handle, int count, const char *const *options);
FAKE_EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram handle, size_t *size);
FAKE_EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram handle, char *image);
FAKE_EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram handle, size_t *size);
FAKE_EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram handle, char *log);

#define CALL_NVRTC(name)                                                                                               \
    do {                                                                                                               \
        if (fake_enter(name) != CUDA_SUCCESS) return NVRTC_ERROR_COMPILATION;                                          \
    } while (0)

nvrtcResult nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return NVRTC_SUCCESS;
}

const char *nvrtcGetErrorString(nvrtcResult r)
{
    return r == NVRTC_SUCCESS ? "NVRTC_SUCCESS" : "NVRTC_ERROR_COMPILATION";
}

static char *copy(const char *from)
{
    char *to = strdup(from);
    if (!to) abort();
    return to;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *out, const char *source, const char *name, int header_count,
                               const char *const *headers, const char *const *header_names)
{
    CALL_NVRTC("nvrtcCreateProgram");
    program *p = fake_make(FAKE_PROGRAM, sizeof *p);
    p->text = copy(source);
    p->name = copy(name);
    p->header_count = header_count;
    p->header = calloc((size_t)header_count + 1, sizeof *p->header);
    p->header_name = calloc((size_t)header_count + 1, sizeof *p->header_name);
    if (!p->header || !p->header_name) abort();
    for (int i = 0; i < header_count; i++) {
        p->header[i] = copy(headers[i]);
        p->header_name[i] = copy(header_names[i]);
    }
    *out = (nvrtcProgram)(void *)p;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *handle)
{
    const bool fails = fake_enter("nvrtcDestroyProgram") != CUDA_SUCCESS;
    program *p = (program *)(void *)*handle;
    if (!fake_is(p, FAKE_PROGRAM)) {
        (void)fake_wrong(CUDA_ERROR_INVALID_HANDLE, "what is no program is destroyed");
        return NVRTC_ERROR_COMPILATION;
    }
    for (int i = 0; i < p->header_count; i++) {
        free(p->header[i]);
        free(p->header_name[i]);
    }
    free(p->header);
    free(p->header_name);
    free(p->text);
    free(p->name);
    free(p->image);
    free(p->log);
    fake_drop(p);
    *handle = NULL;
    return fails ? NVRTC_ERROR_COMPILATION : NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram handle, int count, const char *const *options)
{
    CALL_NVRTC("nvrtcCompileProgram");
    program *p = (program *)(void *)handle;
    const fake_source s = { .text = p->text,
                            .name = p->name,
                            .header_count = p->header_count,
                            .option_count = count,
                            .headers = (const char *const *)p->header,
                            .header_names = (const char *const *)p->header_name,
                            .options = options };
    p->image = (compiler ? compiler : compile_nothing)(&s, &p->size, &p->log);
    return p->image ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram handle, size_t *size)
{
    CALL_NVRTC("nvrtcGetCUBINSize");
    *size = ((const program *)(const void *)handle)->size;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram handle, char *image)
{
    CALL_NVRTC("nvrtcGetCUBIN");
    const program *p = (const program *)(const void *)handle;
    if (!p->image) return NVRTC_ERROR_COMPILATION;
    memcpy(image, p->image, p->size);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram handle, size_t *size)
{
    CALL_NVRTC("nvrtcGetProgramLogSize");
    const program *p = (const program *)(const void *)handle;
    *size = p->log ? strlen(p->log) + 1 : 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram handle, char *log)
{
    CALL_NVRTC("nvrtcGetProgramLog");
    const program *p = (const program *)(const void *)handle;
    memcpy(log, p->log ? p->log : "", p->log ? strlen(p->log) + 1 : 1);
    return NVRTC_SUCCESS;
}
