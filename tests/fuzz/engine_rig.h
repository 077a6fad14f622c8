/* SPDX-License-Identifier: Apache-2.0 */
/* engine_rig.h - damages engine files on purpose and tries what is left of them.
 *
 * Checksums stop most damage at the door, so half of it is repaired afterwards: what counts is what stands behind them.
 * What loads is run as a caller would who changes his mind: several shapes, memory that comes and goes, calls that
 * fail. All memory of the caller's has its exact size and lies at pages without access. */
#ifndef ENGINE_RIG_H
#define ENGINE_RIG_H

#include "engine_parts.h"
#include "sinter/tensor.h"

/* A damaged copy of `seed`, spliced with parts of `other` now and then. sealed: with checksums repaired. */
image rig_damage(image seed, image other, bool sealed, uint64_t *random);

/* Floats, bools and integers from 0 to 3; now and then numbers that no well-behaved caller has. */
void rig_fill(void *to, size_t size, sinter_dtype dtype, uint64_t *random);

typedef struct rig_count {
    long         rounds, models, built, tried, loaded, contexts, ran, refused_runs;
    long         failed;            /* checks inside: test.h counts those of its own file alone */
    double       slowest_s;
    uint8_t      seen;              /* every byte of every result was read */
    sinter_error last;
} rig_count;
/* Loads the bytes, prints what loaded now and then, runs each profile several times. */
void rig_try(const uint8_t *at, size_t size, uint64_t seed, rig_count *count);

#endif
