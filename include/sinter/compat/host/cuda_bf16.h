/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_bf16.h - bf16 numbers on the host: storage, and conversions from and to float. */
#ifndef SINTER_HOST_CUDA_BF16
#define SINTER_HOST_CUDA_BF16

#include "cuda_runtime_api.h"

struct __nv_bfloat16 {
    unsigned short __x = 0;
    __nv_bfloat16() = default;
    /* To the nearest, ties to even. */
    __nv_bfloat16(float value)
    {
        std::uint32_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        if ((bits & 0x7FFFFFFFu) > 0x7F800000u) __x = 0x7FFF;
        else __x = static_cast<unsigned short>((bits + 0x7FFFu + (bits >> 16 & 1)) >> 16);
    }
    __nv_bfloat16(double value) : __nv_bfloat16(static_cast<float>(value)) {}
    operator float() const
    {
        const std::uint32_t bits = static_cast<std::uint32_t>(__x) << 16;
        float value;
        std::memcpy(&value, &bits, sizeof value);
        return value;
    }
};
typedef __nv_bfloat16 nv_bfloat16;

inline __nv_bfloat16 __float2bfloat16(float value) { return __nv_bfloat16(value); }
inline float __bfloat162float(__nv_bfloat16 value) { return value; }

#endif
