/* SPDX-License-Identifier: Apache-2.0 */
/* compile.h - from cuda_code to machine code: NVRTC, several at once, and a cache on disk.
 *
 * The key of a code is made of everything that decides its bytes: the source and all that it includes, the generated
 * text, the defines, the architecture, the options (CUDA_KEY_CODE bytes of their SHA-256), and NVRTC's version behind
 * them. A folder of files named by their keys is the cache: each file is checked by its own sum before it is believed,
 * and replaced atomically. */
#ifndef CUDA_COMPILE_H
#define CUDA_COMPILE_H

#include "base/arena.h"
#include "cuda/cuda_driver.h"
#include "cuda/launch.h"

/* cuda/device's files, embedded by cmake/embed.cmake, in order of their names: generated/cuda_sources.c defines the
 * list. Each text ends with a NUL that `size` does not count; `sum` is its SHA-256 in hexadecimal, so that keys cost
 * little. */
typedef struct cuda_source { const char *name; const char *text_at; size_t size; const char *sum; } cuda_source;
extern const cuda_source cuda_sources[];
extern const uint32_t cuda_sources_count;

/* Keys that agree in so many bytes are of the same code, whichever NVRTC compiled it: what there is may be used where
 * there is no compiler. */
enum { CUDA_KEY = 32, CUDA_KEY_CODE = 28 };

typedef struct cuda_binary {
    uint8_t  key[CUDA_KEY];
    void    *image;                     /* a cubin; the env's allocator */
    size_t   size;
    char     entry[64];
    uint32_t registers, spill_bytes;    /* as ptxas reported them when it was compiled */
    bool     was_cached;
} cuda_binary;

typedef struct cuda_compiler {
    const cuda_driver *driver;
    uint32_t sm;                        /* 75, 80, 86, 89, 90, 100, 120; 90 and above are compiled as sm_90a … */
    char     cache[512];                /* folder; "": none */
    uint32_t threads;                   /* compilations at once; 0: as many as there are CPUs */
} cuda_compiler;

/* The key alone: pure. nvrtc_version is part of it; 0 where there is none. */
void          cuda_code_key(const cuda_compiler *c, const cuda_code *code, uint8_t key[CUDA_KEY]);
/* From the cache, or compiled and put there. A failure shows the compiler's log. Without NVRTC, what any version of it
 * put into the cache is taken. */
sinter_status cuda_compile(env *e, const cuda_compiler *c, const cuda_code *code, cuda_binary *out);
/* Many, in parallel: out[i] is for code[i]. The status is the first failure in the list's order; the codes that do
 * compile are in `out` all the same, and the others have no image. NO_MEMORY ends the rest, and nothing is left. */
sinter_status cuda_compile_all(env *e, const cuda_compiler *c, const cuda_code *code, uint32_t count,
                               cuda_binary *out);
void          cuda_binary_free(env *e, cuda_binary *b);
/* The folder for `wanted` (NULL: SINTER_KERNEL_CACHE, else the user's cache folder; "": none). */
void          cuda_cache_folder(const char *wanted, char *out, size_t size);

#endif
