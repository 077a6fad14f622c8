/* SPDX-License-Identifier: Apache-2.0 */
/* excite_args.h - parameters of excite.cu. */
#ifndef CUDA_DEVICE_EXCITE_ARGS_H
#define CUDA_DEVICE_EXCITE_ARGS_H

#include "device_args.h"

struct excite_args {
    address x, w1, w2;                  /* weights as packed */
    small   positions;                  /* of an image */
    float   share;                      /* 1 / positions */
    small   trigger;                    /* 1: at the top, 2: behind the first product */
};

#endif
