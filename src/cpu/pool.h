/* SPDX-License-Identifier: Apache-2.0 */
/* pool.h - what the files of the pools share: the record, windows, and pools of planes whose widths are adjacent. */
#ifndef CPU_POOL_H
#define CPU_POOL_H

#include "cpu/row.h"
#include "cpu/rows.h"

/* POOL_WHOLE: numbers of a window that pool_width_takes, whatever its stride up to its own size. */
enum { POOL_SPATIAL = 3, POOL_WHOLE = 1024 };
typedef enum pool_way { POOL_LAST, POOL_WIDTH, POOL_TURNED, POOL_ELEMENTS, POOL_PLACES } pool_way;

typedef struct pool_record {
    const rows_set *set;
    pool_way way;
    bool is_max, is_mean, counts_pad;
    int64_t power;                    /* 0, or results are the root of this degree of sums of |x|^power */
    void (*fold)(const rows_pool *p); /* POOL_WIDTH */
    sinter_dtype type;
    uint8_t size; /* bytes of an element */
    uint8_t flip; /* of codes: 0x80 where they have no sign */
    int64_t images, channels, in[POOL_SPATIAL], out[POOL_SPATIAL];
    int64_t kernel[POOL_SPATIAL], stride[POOL_SPATIAL], dilation[POOL_SPATIAL], pad[POOL_SPATIAL];
    int64_t pad_end[POOL_SPATIAL];
    int64_t x_image, x_channel, x_dim[POOL_SPATIAL], y_image, y_channel, y_dim[POOL_SPATIAL];
    int64_t at_image, at_channel, at_dim[POOL_SPATIAL]; /* strides of the places */
    int64_t plane[POOL_SPATIAL], plane_size;            /* how places count the elements of a plane */
    row_epilogue epilogue;                              /* channels-last: by output rows */
    row_after after;
} pool_record;

typedef struct pool_job {
    const pool_record *r;
    vm_io io;
    const char *x;
    char *y;
} pool_job;

/* Kernel positions [first, stop) that lie inside, and how many lie inside the padded input. */
typedef struct pool_span {
    int64_t at, first, stop, padded;
} pool_span;
/* The window of result `o` along spatial axis i. */
pool_span pool_span_of(const pool_record *r, uint32_t i, int64_t o);

/* Whether pool_width_run can do the record, widths being adjacent in input and result. */
bool pool_width_takes(const pool_record *r);
void pool_width_run(const pool_record *r, const kernel_run *k, pool_job *j);

#endif
