/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_driver.h - libcuda, NVRTC and NVML, opened at run time from one table of symbols (driver.def).
 *
 * Nothing of CUDA is needed to build sinter: types and constants that we use are declared here, from the documentation
 * of the driver API. Symbols of libcuda are asked for through cuGetProcAddress with the version whose signature is
 * declared. Which files are opened: SINTER_LIBCUDA, SINTER_LIBNVRTC, SINTER_LIBNVML, else the usual names and places.
 * Tests put a recording, failing or emulating library there. */
#ifndef CUDA_DRIVER_H
#define CUDA_DRIVER_H

#include "base/env.h"
#include "base/text.h"

#include "cuda/driver_types.h"

/* One pointer for each row of driver.def; NULL where the library is missing or too old. Where `cuda` is set, all rows
 * of libcuda are; so for `nvrtc`. Rows of NVML are NULL one by one. */
typedef struct cuda_driver {
#define CUDA_SYMBOL(library, name, version, result, arguments) result (*name) arguments;
#include "cuda/driver.def"
#undef CUDA_SYMBOL
    void *cuda, *nvrtc, *nvml;          /* dlopen handles; NULL: not found */
    int   cuda_version, nvrtc_version;  /* 13000 for 13.0; 0: none */
    char  cuda_path[256], nvrtc_path[256], why_cuda[256], why_nvrtc[256], why_nvml[256];    /* for doctor and errors */
} cuda_driver;

/* Opens what is there. Never fails for want of a library: what is missing is NULL and `why_*` says so. */
void cuda_driver_open(cuda_driver *d);
void cuda_driver_close(cuda_driver *d);
/* For code that runs on the GPU here: an NVRTC of a later major version than the driver is forgotten, and why_nvrtc
 * says so. The driver could not load its code. */
void cuda_driver_match(cuda_driver *d);

/* Turns a CUresult into a status: NO_MEMORY for out of memory, DEVICE for what kills a context or says that no device
 * works, INCOMPATIBLE for code of another chip, else INTERNAL, with the driver's own name for it. `what` says what was
 * being done. */
sinter_status cuda_fail(env *e, const cuda_driver *d, CUresult r, const char *what);
#define CUDA_TRY(e, driver, call, what)                                             \
    do {                                                                            \
        const CUresult cuda_try_result = (driver)->call;                            \
        if (cuda_try_result != CUDA_SUCCESS) return cuda_fail(e, driver, cuda_try_result, what); \
    } while (0)

#endif
