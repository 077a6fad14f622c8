/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - the code that a device has: found by key and entry, compiled where it is missing, loaded where it runs.
 *
 * Entries live as long as the device, so programs point to them. Compiling happens outside the device's lock: two
 * threads that want the same code at the same moment both make it, and the first is kept. */
#ifndef CUDA_TABLE_H
#define CUDA_TABLE_H

#include "backend/backend.h"
#include "cuda/compile.h"

enum { TABLE_BUCKETS = 256 };
enum { SHARED_ALLOWED = 48 << 10 };     /* what a block may have without more ado */

typedef struct loaded_code {
    struct loaded_code *next;
    uint8_t     key[CUDA_KEY];
    char        entry[64];
    const void *image;                  /* a cubin; not copied by the driver */
    size_t      size;
    bool        is_borrowed;            /* the image came with an engine */
    CUlibrary   library;
    CUkernel    kernel;
    CUfunction  function;               /* NULL: not loaded */
    uint32_t    shared;                 /* dynamic shared memory that it may have */
    bool        has_wide_clusters;      /* clusters of more than 8 blocks are allowed */
} loaded_code;

/* What an engine carries: taken where all but the key's version of NVRTC agrees, so it serves where there is none. */
typedef struct carried_code {
    struct carried_code *next;
    uint8_t     key[CUDA_KEY];
    const void *image;
    size_t      size;
} carried_code;

/* Code that did not compile: it is not compiled again. */
typedef struct failed_code {
    struct failed_code *next;
    uint8_t       key[CUDA_KEY];
    sinter_status status;
    sinter_error  why;                  /* length 0: another code failed at the same moment, and its log was shown */
} failed_code;

typedef struct code_table {
    loaded_code  *at[TABLE_BUCKETS];
    carried_code *carried[TABLE_BUCKETS];
    failed_code  *failed;
} code_table;

/* The codes of one use, by the index that launches name. */
typedef struct use_code { loaded_code **at; uint32_t count; } use_code;

/* Finds or makes the code of every use; out[i] lies in `a`. loads: a context is current, and the code is made ready to
 * be launched. A failure names the kernel and the problem. */
sinter_status code_table_resolve(env *e, device *d, const kernel_use *use, uint32_t count, bool loads, arena *a,
                                 use_code *out);
/* Raises what one block of the code may have, with the context current. */
sinter_status code_table_allow(env *e, device *d, loaded_code *x, uint32_t shared, uint32_t cluster);
sinter_status code_table_export(env *e, device *d, const kernel_use *use, uint32_t count,
                                sinter_status (*add)(void *user, const uint8_t key[CUDA_KEY], const void *bytes,
                                                     size_t size),
                                void *user);
sinter_status code_table_import(env *e, device *d, const uint8_t key[CUDA_KEY], const void *bytes, size_t size);
/* "code=1f…": a hash over the keys of all its codes. */
void          code_table_describe(const device *d, const kernel_use *use, text *out);
void          code_table_deinit(device *d);     /* with the context current, where there is one */

#endif
