/* SPDX-License-Identifier: Apache-2.0 */
/* engine_rig.h - damages engine files on purpose and tries what is left of them.
 *
 * Checksums stop most damage at the door, so half of it is repaired afterwards: what counts is what stands behind them.
 * A file is taken apart into sections, damaged as records of their kind, and put together again. */
#ifndef ENGINE_RIG_H
#define ENGINE_RIG_H

#include "sinter/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct image { uint8_t *at; size_t size; } image;      /* malloc'ed */

/* Makes the checksums of sections and header right, as far as the table can be read. */
void rig_seal(uint8_t *at, size_t size);
/* A damaged copy of `seed`, spliced with parts of `other` now and then. sealed: with checksums repaired. */
image rig_damage(image seed, image other, bool sealed, uint64_t *random);

typedef struct rig_count {
    long         tried, loaded, contexts, ran, refused_runs;
    long         failed;            /* checks inside: test.h counts those of its own file alone */
    double       slowest_s;
    sinter_error last;
} rig_count;
/* Loads the bytes, prints what loaded, runs each profile at its smallest, usual and largest shape. */
void rig_try(const uint8_t *at, size_t size, uint64_t seed, rig_count *count);

#endif
