/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_args.h - parameters of scatter.cu; steps in elements. */
#ifndef CUDA_DEVICE_SCATTER_ARGS_H
#define CUDA_DEVICE_SCATTER_ARGS_H

#include "device_args.h"

#define SCATTER_AXES 8
#define SCATTER_BLOCK 128
/* -DPHASE= */
#define SCATTER_WRITE 0
#define SCATTER_FIND 1
#define SCATTER_CLEAR 2
#define SCATTER_OFFSETS 3
#define SCATTER_LIST 4
#define SCATTER_RANK 5

struct scatter_args {
    address         out, indices, updates, fault;
    address         winners;            /* u32 of each place: its last update + 1; with lists, how many it has */
    address         offsets;            /* lists: u32 of each place: where its list begins */
    address         list, order;        /* lists: u32 of each update */
    wide            out_step[SCATTER_AXES], index_step[SCATTER_AXES], update_step[SCATTER_AXES];
    small           out_dim[SCATTER_AXES], update_dim[SCATTER_AXES];
    struct fast_div dim[SCATTER_AXES];  /* of what the threads go over */
    natural         total;              /* threads */
    natural         walk;               /* updates that a thread does one after the other */
    natural         step;
    small           trigger;            /* when the next grid may start: 1: at the top, 2: as blocks end */
};

#endif
