/* SPDX-License-Identifier: Apache-2.0 */
/* list.c - every backend of this build: the one file that names them. */
#include "cpu/backend_cpu.h"
#include "cuda/backend_cuda.h"

#include <string.h>

static const backend *const backends[] = { &cpu_backend, &cuda_backend };

const backend *backend_find(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(backends); i++)
        if (strcmp(backends[i]->name, name) == 0) return backends[i];
    return NULL;
}
