/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_fp8.h - floats of 8 bits on the host: storage, and conversions from and to float. */
#ifndef SINTER_HOST_CUDA_FP8
#define SINTER_HOST_CUDA_FP8

#include "cuda_runtime_api.h"

#include <cmath>

typedef unsigned char __nv_fp8_storage_t;
namespace sinter_host_cuda {
/* The code of `value` in a float with a sign, an exponent of this bias and MANTISSA bits: to the nearest, ties to even.
 * Values beyond the largest one, whose code is MOST, become the largest one, infinities too. A NaN becomes
 * NOT_A_NUMBER. */
template <int BIAS, int MANTISSA, int MOST, int NOT_A_NUMBER, int SIGN>
inline unsigned char small_from_float(float value)
{
    if (value != value) return static_cast<unsigned char>(NOT_A_NUMBER);
    const int sign = std::signbit(value) ? SIGN : 0;
    const float size = std::fabs(value);
    int exponent = size > 0 && size <= 1e30f ? std::ilogb(size) : size > 0 ? 127 : 1 - BIAS;
    if (exponent < 1 - BIAS) exponent = 1 - BIAS;
    const int code = exponent + BIAS > MOST >> MANTISSA
                         ? MOST
                         : static_cast<int>(std::nearbyint(std::ldexp(size, MANTISSA - exponent))) +
                               (exponent + BIAS - 1) * (1 << MANTISSA);
    return static_cast<unsigned char>(sign | (code > MOST ? MOST : code));
}
/* The value of a code without its sign that is neither infinite nor a NaN. */
template <int BIAS, int MANTISSA> inline float small_to_float(int code)
{
    const int exponent = code >> MANTISSA, rest = code & ((1 << MANTISSA) - 1);
    return exponent ? std::ldexp(static_cast<float>(rest + (1 << MANTISSA)), exponent - BIAS - MANTISSA)
                    : std::ldexp(static_cast<float>(rest), 1 - BIAS - MANTISSA);
}
} // namespace sinter_host_cuda

/* 4 bits of exponent, 3 of mantissa; no infinity. */
struct __nv_fp8_e4m3 {
    __nv_fp8_storage_t __x = 0;
    __nv_fp8_e4m3() = default;
    explicit __nv_fp8_e4m3(float value) : __x(sinter_host_cuda::small_from_float<7, 3, 0x7E, 0x7F, 0x80>(value)) {}
    explicit __nv_fp8_e4m3(double value) : __nv_fp8_e4m3(static_cast<float>(value)) {}
    explicit __nv_fp8_e4m3(int value) : __nv_fp8_e4m3(static_cast<float>(value)) {}
    explicit operator float() const
    {
        const int code = __x & 0x7F;
        const float size = code == 0x7F ? std::nanf("") : sinter_host_cuda::small_to_float<7, 3>(code);
        return __x & 0x80 ? -size : size;
    }
};
/* 5 bits of exponent, 2 of mantissa. */
struct __nv_fp8_e5m2 {
    __nv_fp8_storage_t __x = 0;
    __nv_fp8_e5m2() = default;
    explicit __nv_fp8_e5m2(float value) : __x(sinter_host_cuda::small_from_float<15, 2, 0x7B, 0x7E, 0x80>(value)) {}
    explicit __nv_fp8_e5m2(double value) : __nv_fp8_e5m2(static_cast<float>(value)) {}
    explicit __nv_fp8_e5m2(int value) : __nv_fp8_e5m2(static_cast<float>(value)) {}
    explicit operator float() const
    {
        const int code = __x & 0x7F;
        const float size = code > 0x7C ? std::nanf("")
                           : code == 0x7C ? HUGE_VALF
                                          : sinter_host_cuda::small_to_float<15, 2>(code);
        return __x & 0x80 ? -size : size;
    }
};

#endif
