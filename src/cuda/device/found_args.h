/* SPDX-License-Identifier: Apache-2.0 */
/* found_args.h - parameters of nonzero.cu and nms.cu: what is searched, and where the rows that are found go. */
#ifndef CUDA_DEVICE_FOUND_ARGS_H
#define CUDA_DEVICE_FOUND_ARGS_H

#include "device_args.h"

enum { FOUND_AXES = 8 };

struct non_zero_args {
    address x, rows, count;
    address sums;                       /* workspace: elements that each block found */
    struct { struct fast_div div; natural unused; wide step; } axis[FOUND_AXES];
    wide row_step, column_step;         /* elements */
    small total, tile, blocks;          /* elements; those of one block; blocks */
};

struct nms_args {
    address boxes, scores, most, overlap, least;        /* 0: absent */
    address rows, count;
    address entries, kept_box, kept_at, counts;         /* workspace; the first three by list: a class of an image */
    wide box_step[3], score_step[3];    /* elements */
    wide row_step, column_step;
    small images, classes, n, limit;    /* limit: rows of a list at most */
};

#endif
