/* SPDX-License-Identifier: Apache-2.0 */
/* warp.h - what the lanes of a warp do together, once all have come. */
#ifndef CUDA_WARP_H
#define CUDA_WARP_H

#include <stdint.h>

#include "emulator/emulator.h"

const char *warp_collective_name(enum emulator_collective kind);
/* Needs all 32 lanes: the others work with those that are left. */
int warp_collective_is_whole(enum emulator_collective kind);
/* lane[i]: what lane i came with; NULL: it has ended. */
void warp_collective_run(enum emulator_collective kind, void *const *lane,
                         unsigned char *(*shared)(unsigned at, unsigned bytes, unsigned align));

/* What a wgmma multiplies. Both sides in shared memory as descriptors say; or a in the registers of the four lanes that
 * have a row of it, and b turned: rows along k, columns innermost. */
typedef struct warp_factors {
    uint64_t a, b;
    const unsigned *registers[4];       /* NULL: a is in shared memory */
} warp_factors;

/* The part of lane `lane` of warp `warp` (of 4) of a wgmma of 64 x n by 32 bytes, into c[n / 8][4]: floats, or i32. */
void warp_product(enum emulator_collective kind, void *c, uint32_t n, const warp_factors *f, int adds, uint32_t warp,
                  uint32_t lane, unsigned char *(*shared)(unsigned at, unsigned bytes, unsigned align));

#endif
