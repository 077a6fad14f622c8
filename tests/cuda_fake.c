/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_fake.c - opens the library and finds its controls. */
#include "cuda_fake.h"

#include "places.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fake_control control;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find(void *library, const char *name, void *slot)
{
    void *function = dlsym(library, name);
    if (!function) {
        (void)fprintf(stderr, "%s has no %s\n", PLACE_FAKE_CUDA, name);
        exit(1);
    }
    memcpy(slot, &function, sizeof function);
}

static void load(void)
{
    void *library = dlopen(PLACE_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        (void)fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    (void)setenv("SINTER_LIBCUDA", PLACE_FAKE_CUDA, 1);
    (void)setenv("SINTER_LIBNVRTC", PLACE_FAKE_CUDA, 1);
    (void)setenv("SINTER_LIBNVML", PLACE_FAKE_CUDA, 1);
#define FAKE_X(name) find(library, "fake_" #name, &control.name);
    FAKE_CONTROLS(FAKE_X)
#undef FAKE_X
}

const fake_control *cuda_fake(void)
{
    (void)pthread_once(&once, load);
    return &control;
}
