/* SPDX-License-Identifier: Apache-2.0 */
/* cache.h - compiled kernels on disk, a file each, named by its key.
 *
 * The folder is a convenience: whatever is wrong with it or with a file is a miss, and never an error. */
#ifndef CUDA_CACHE_H
#define CUDA_CACHE_H

#include "cuda/compile.h"

enum { BINARY_ALIGN = 64 };     /* of cuda_binary.image */

/* True: `out` has image, size, registers, spills and was_cached. */
bool cuda_cache_find(env *e, const char *folder, const uint8_t key[CUDA_KEY], cuda_binary *out);
/* The same code compiled by any version of NVRTC, the newest first. */
bool cuda_cache_find_any(env *e, const char *folder, const uint8_t key[CUDA_KEY], cuda_binary *out);
void cuda_cache_store(env *e, const char *folder, const cuda_binary *b);
/* The last bytes of a key. */
void cuda_key_set_version(uint8_t key[CUDA_KEY], int nvrtc_version);

#endif
