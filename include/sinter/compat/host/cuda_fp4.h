/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_fp4.h - floats of 4 bits on the host, one in a byte: storage, and conversions from and to float. */
#ifndef SINTER_HOST_CUDA_FP4
#define SINTER_HOST_CUDA_FP4

#include "cuda_fp8.h"

typedef unsigned char __nv_fp4_storage_t;
/* 2 bits of exponent, 1 of mantissa; neither infinity nor NaN. */
struct __nv_fp4_e2m1 {
    __nv_fp4_storage_t __x = 0;
    __nv_fp4_e2m1() = default;
    explicit __nv_fp4_e2m1(float value) : __x(sinter_host_cuda::small_from_float<1, 1, 7, 7, 8>(value)) {}
    explicit __nv_fp4_e2m1(double value) : __nv_fp4_e2m1(static_cast<float>(value)) {}
    explicit __nv_fp4_e2m1(int value) : __nv_fp4_e2m1(static_cast<float>(value)) {}
    explicit operator float() const
    {
        const float size = sinter_host_cuda::small_to_float<1, 1>(__x & 7);
        return __x & 8 ? -size : size;
    }
};

#endif
