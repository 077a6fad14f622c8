/* SPDX-License-Identifier: Apache-2.0 */
/* packed_args.h - the parameters of packed_product.cu beside those of simt_args.h. */
#ifndef CUDA_DEVICE_PACKED_ARGS_H
#define CUDA_DEVICE_PACKED_ARGS_H

#include "device_args.h"

struct packed_args {
    address scale, zero;                            /* as they are packed; zero 0: there is one for all */
};

#endif
