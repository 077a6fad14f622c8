/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_fp16.h - half-precision numbers on the host: storage, and conversions from and to float. */
#ifndef SINTER_HOST_CUDA_FP16
#define SINTER_HOST_CUDA_FP16

#include "cuda_runtime_api.h"

struct __half_raw {
    unsigned short x;
};
namespace sinter_host_cuda {
inline float half_to_float(unsigned short h)
{
    const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000) << 16, rest = h & 0x7FFFu;
    float f;
    if (rest >= 0x7C00) { /* infinity, NaN */
        const std::uint32_t bits = sign | 0x7F800000u | (rest & 0x3FFu) << 13;
        std::memcpy(&f, &bits, sizeof f);
        return f;
    }
    /* The exponent is moved by 112. Multiplying by 2^112 makes subnormal numbers right, too. */
    std::uint32_t bits = rest << 13;
    std::memcpy(&f, &bits, sizeof f);
    f *= 5.192296858534828e33f;
    std::memcpy(&bits, &f, sizeof bits);
    bits |= sign;
    std::memcpy(&f, &bits, sizeof f);
    return f;
}
/* To the nearest, ties to even. */
inline unsigned short half_from_float(float value)
{
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const std::uint32_t sign = bits >> 16 & 0x8000u, rest = bits & 0x7FFFFFFFu;
    if (rest > 0x7F800000u) return static_cast<unsigned short>(sign | 0x7E00u);
    if (rest >= 0x477FF000u) return static_cast<unsigned short>(sign | 0x7C00u);
    if (rest < 0x38800000u) { /* subnormal: the sum with 0.5 rounds at 2^-24 */
        float f;
        std::memcpy(&f, &rest, sizeof f);
        f += 0.5f;
        std::memcpy(&bits, &f, sizeof bits);
        return static_cast<unsigned short>(sign | (bits - 0x3F000000u));
    }
    const std::uint32_t rounded = rest + 0xFFFu + (rest >> 13 & 1);
    return static_cast<unsigned short>(sign | ((rounded - 0x38000000u) >> 13));
}
} // namespace sinter_host_cuda

struct __half {
    unsigned short __x = 0;
    __half() = default;
    __half(float value) : __x(sinter_host_cuda::half_from_float(value)) {}
    __half(double value) : __half(static_cast<float>(value)) {}
    __half(int value) : __half(static_cast<float>(value)) {}
    __half(__half_raw raw) : __x(raw.x) {}
    operator float() const { return sinter_host_cuda::half_to_float(__x); }
    operator __half_raw() const { return __half_raw{ __x }; }
};
typedef __half half;
struct __half2 {
    __half x, y;
};
typedef __half2 half2;

inline __half __float2half(float value) { return __half(value); }
inline __half __float2half_rn(float value) { return __half(value); }
inline float __half2float(__half value) { return value; }

#endif
