/* SPDX-License-Identifier: Apache-2.0 */
/* line_args.h - parameters of the kernels that work along lines (rows.cu, columns.cu, combine.cu): where the input
 * lies, and how a number of a row or of an element becomes coordinates. Kept axes number the rows, gone ones the
 * elements of a row; of each the last turns fastest. */
#ifndef CUDA_DEVICE_LINE_ARGS_H
#define CUDA_DEVICE_LINE_ARGS_H

#include "device_args.h"

/* Reductions first, in the order of reduce_kind. */
enum line_op {
    LINE_SUM, LINE_MEAN, LINE_MAX, LINE_MIN, LINE_PROD, LINE_L1, LINE_L2, LINE_LOG_SUM, LINE_LOG_SUM_EXP,
    LINE_SUM_SQUARE, LINE_ARG_MAX, LINE_ARG_MIN, LINE_SOFTMAX, LINE_LOG_SOFTMAX, LINE_LAYER, LINE_RMS, LINE_LP
};
enum line_type {
    LINE_F32, LINE_F64, LINE_F16, LINE_BF16, LINE_I8, LINE_U8, LINE_I16, LINE_U16, LINE_I32, LINE_U32, LINE_I64,
    LINE_U64, LINE_BOOL
};
enum line_acc { LINE_ACC_F32, LINE_ACC_F64, LINE_ACC_I64 };
/* One launch does all; or one makes states of parts of lines, and another joins them (and reads the lines again). */
enum line_mode { LINE_WHOLE, LINE_PARTIAL, LINE_APPLY };
enum { LINE_AXES = 16 };
/* rows.cu: bytes of shared memory in which warps and blocks meet; rows on their way lie behind them. */
enum { LINE_PART = 24, LINE_MEETING = 2 * 32 * LINE_PART + 2 * LINE_PART + 80 };

struct line_axis {
    struct fast_div div;                /* by its size */
    natural unused;
    wide x, mean, inverse;              /* strides in elements */
};

struct line_args {
    address x, part, mean, inverse;     /* mean, inverse: of layer_norm, or 0 */
    struct line_axis kept[LINE_AXES], gone[LINE_AXES];
    struct fast_div runs;               /* rows: vectors of the innermost axis; columns: tiles of it */
    struct fast_div splits;             /* parts of a line */
    wide step;                          /* elements from one of the innermost axis to the next */
    wide outputs;                       /* lines in all */
    double epsilon, power;
    small inner;                        /* size of the innermost axis */
    small count;                        /* rows: vectors of a row; columns: elements of a column */
    small per;                          /* of those, how many a part has */
    small rows;                         /* lines; columns: without the innermost axis */
    small elements;                     /* of a line */
    small unused;
    struct fast_div each;               /* columns: so many neighbours make one group */
};

#endif
