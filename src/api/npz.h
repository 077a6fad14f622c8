/* SPDX-License-Identifier: Apache-2.0 */
/* npz.h - the directory of a ZIP archive of .npy files, read with suspicion. */
#ifndef API_NPZ_H
#define API_NPZ_H

#include "base/env.h"
#include "sinter/build.h"

typedef struct npz_entry {
    const char *name;                   /* in the archive's bytes, not terminated; without ".npy" */
    uint32_t name_length;
    bool     is_deflated;
    const uint8_t *at;                  /* as it is stored */
    size_t   packed, size;              /* bytes in the archive, and of the file */
    uint32_t crc;
} npz_entry;

bool npz_is(const uint8_t *bytes, size_t size);

/* How many files the archive has, and where their directory begins. */
sinter_status npz_open(env *e, const uint8_t *bytes, size_t size, uint32_t *count, size_t *at);
/* The next file of the directory; *at moves on. *used: bytes of the archive that its files take so far: they cannot
 * take more than there are, so they do not overlap. */
sinter_status npz_next(env *e, const uint8_t *bytes, size_t size, size_t *at, size_t *used, npz_entry *out);
/* All arrays in one block: a list of sinter_named_tensor at its beginning. On failure the caller frees the block,
 * too. */
sinter_status npz_read(env *e, const uint8_t *bytes, size_t size, uint32_t *count, sinter_buffer *memory);

#endif
