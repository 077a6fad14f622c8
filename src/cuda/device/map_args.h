/* SPDX-License-Identifier: Apache-2.0 */
/* map_args.h - parameters of map.cu: the space, the operands of the anchor by axes of their own, and the op's numbers,
 * which each loader (map_*.cuh) gives a meaning. */
#ifndef CUDA_DEVICE_MAP_ARGS_H
#define CUDA_DEVICE_MAP_ARGS_H

#include "device_args.h"

#define MAP_IN 5
#define MAP_AXES 16
#define MAP_NUMBERS 48
#define MAP_REALS 24

struct map_args {
    address         in[MAP_IN], extra;              /* extra: result 1 */
    address         fault;
    wide            in_step[MAP_IN][MAP_AXES];      /* elements */
    wide            extra_step[MAP_AXES];
    small           in_dim[MAP_IN][MAP_AXES], out_dim[MAP_AXES];
    wide            k[MAP_NUMBERS];
    double          f[MAP_REALS];
    wide            total;                          /* vectors in all; at most 2^31 unless WIDE */
    small           inner;                          /* elements of a row of the space */
    struct fast_div row;                            /* vectors of a row */
    struct fast_div dim[MAP_AXES];                  /* of the space's axes */
    natural         step;
};

#endif
