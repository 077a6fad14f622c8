/* SPDX-License-Identifier: Apache-2.0 */
/* order_args.h - parameters of topk.cu and scan.cu: lines of a tensor, and where they go. */
#ifndef CUDA_DEVICE_ORDER_ARGS_H
#define CUDA_DEVICE_ORDER_ARGS_H

#include "device_args.h"

enum { ORDER_AXES = 8, TOPK_RUNS = 8 }; /* runs that a launch of topk.cu makes one */

/* A kept axis: the last of the list turns fastest. */
struct order_axis {
    struct fast_div div;
    natural unused;
    wide x, values, indices;            /* strides in elements */
};

struct order_args {
    address x, values, indices;         /* 0: not wanted */
    address sums;                       /* scan.cu: of the parts of lines, [rows][parts] of 8 bytes */
    address from, to;                   /* topk.cu: runs before a launch and after it, [rows][room] entries */
    struct order_axis kept[ORDER_AXES];
    wide step, value_step, index_step;  /* from one element of a line to the next */
    small rows, n, k;                   /* lines, elements of one, how many of them are wanted */
    small size;                         /* of the sort: a power of two, at least 2; of a part */
    struct fast_div parts;
    /* topk.cu, in parts: elements that a part or a run stands for; how many entries of a run there are at most, before
     * and after a launch; entries of a row; of all rows. The entries' keys come first, then their places. */
    small span, kept_in, kept_out, room;
    wide entries;
    struct fast_div run;                /* kept_in */
};

#endif
