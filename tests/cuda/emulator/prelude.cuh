/* SPDX-License-Identifier: Apache-2.0 */
/* prelude.cuh - src/cuda/device/prelude.cuh for the CPU: the same names with the same meaning, in plain C++17, so that
 * g++ compiles the kernels' own sources. It is included before them, and its guard keeps the real one out.
 *
 * What concerns one thread is done here; what concerns more than one goes to the runtime (emulator.h). The first part
 * is what NVRTC offers without headers. */
#ifndef PRELUDE_CUH
#define PRELUDE_CUH

#define EMULATED 1
#define __CUDACC_RTC__ 1
#include "emulator.h"
#include "device_args.h"

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

/* ---- the language ---- */

#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_assume(x) ((void)0)
#define __CUDA_ARCH__ (SM * 10)

extern "C" {
extern emulator_thread *emulated_now;
extern const emulator_calls *emulated_calls;
}
#define threadIdx (emulated_now->thread)
#define blockIdx (emulated_now->block)
#define blockDim (emulated_now->threads)
#define gridDim (emulated_now->blocks)
#define warpSize 32
#define EMULATED_AT const char *file = __builtin_FILE(), int line = __builtin_LINE()

#define EMULATED_VECTOR(T, name, bytes2, bytes4)                                                         \
    struct alignas(bytes2) name##2 { T x, y; };                                                          \
    struct alignas(bytes4) name##4 { T x, y, z, w; };                                                    \
    static inline name##2 make_##name##2(T x, T y) { return { x, y }; }                                  \
    static inline name##4 make_##name##4(T x, T y, T z, T w) { return { x, y, z, w }; }
EMULATED_VECTOR(float, float, 8, 16)
EMULATED_VECTOR(int, int, 8, 16)
EMULATED_VECTOR(unsigned, uint, 8, 16)
struct alignas(16) double2 { double x, y; };
struct dim3 { unsigned x, y, z; };

/* ---- arithmetic ---- */

extern "C" {
#define EMULATED_MATH1(name) double name(double); float name##f(float);
#define EMULATED_MATH2(name) double name(double, double); float name##f(float, float);
EMULATED_MATH1(sqrt) EMULATED_MATH1(exp) EMULATED_MATH1(exp2) EMULATED_MATH1(expm1) EMULATED_MATH1(log)
EMULATED_MATH1(log2) EMULATED_MATH1(log10) EMULATED_MATH1(log1p) EMULATED_MATH1(sin) EMULATED_MATH1(cos)
EMULATED_MATH1(tan) EMULATED_MATH1(asin) EMULATED_MATH1(acos) EMULATED_MATH1(atan) EMULATED_MATH1(sinh)
EMULATED_MATH1(cosh) EMULATED_MATH1(tanh) EMULATED_MATH1(asinh) EMULATED_MATH1(acosh) EMULATED_MATH1(atanh)
EMULATED_MATH1(erf) EMULATED_MATH1(erfc) EMULATED_MATH1(floor) EMULATED_MATH1(ceil) EMULATED_MATH1(trunc)
EMULATED_MATH1(round) EMULATED_MATH1(rint) EMULATED_MATH1(nearbyint) EMULATED_MATH1(fabs) EMULATED_MATH1(cbrt)
EMULATED_MATH1(tgamma) EMULATED_MATH1(lgamma) EMULATED_MATH2(pow) EMULATED_MATH2(fmod) EMULATED_MATH2(fmax)
EMULATED_MATH2(fmin) EMULATED_MATH2(atan2) EMULATED_MATH2(copysign) EMULATED_MATH2(hypot) EMULATED_MATH2(remainder)
EMULATED_MATH2(nextafter) EMULATED_MATH2(fdim)
double fma(double, double, double);
float fmaf(float, float, float);
double ldexp(double, int);
float ldexpf(float, int);
double frexp(double, int *);
float frexpf(float, int *);
long lrint(double);
long lrintf(float);
long long llrint(double);
long long llrintf(float);
int abs(int);
long long llabs(long long);
void *memcpy(void *, const void *, __SIZE_TYPE__);
void *memset(void *, int, __SIZE_TYPE__);
}
#define EMULATED_FLOAT1(name) static inline float name(float x) { return name##f(x); }
EMULATED_FLOAT1(sqrt) EMULATED_FLOAT1(exp) EMULATED_FLOAT1(exp2) EMULATED_FLOAT1(log) EMULATED_FLOAT1(log2)
EMULATED_FLOAT1(log10) EMULATED_FLOAT1(sin) EMULATED_FLOAT1(cos) EMULATED_FLOAT1(tan) EMULATED_FLOAT1(tanh)
EMULATED_FLOAT1(erf) EMULATED_FLOAT1(floor) EMULATED_FLOAT1(ceil) EMULATED_FLOAT1(trunc) EMULATED_FLOAT1(round)
EMULATED_FLOAT1(rint) EMULATED_FLOAT1(fabs)
static inline float pow(float x, float y) { return powf(x, y); }
static inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
static inline float abs(float x) { return fabsf(x); }
static inline double abs(double x) { return fabs(x); }
static inline long long abs(long long x) { return x < 0 ? -x : x; }
template <class T> static inline bool isnan(T x) { return __builtin_isnan(x); }
template <class T> static inline bool isinf(T x) { return __builtin_isinf(x); }
template <class T> static inline bool isfinite(T x) { return __builtin_isfinite(x); }
static inline bool signbit(float x) { return __builtin_signbit(x); }
static inline bool signbit(double x) { return __builtin_signbit(x); }
#define EMULATED_ORDER(T, less)                                            \
    static inline T min(T a, T b) { return less ? a : b; }                 \
    static inline T max(T a, T b) { return less ? b : a; }
EMULATED_ORDER(int, a < b)
EMULATED_ORDER(unsigned, a < b)
EMULATED_ORDER(long, a < b)
EMULATED_ORDER(unsigned long, a < b)
EMULATED_ORDER(long long, a < b)
EMULATED_ORDER(unsigned long long, a < b)
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }

template <class To, class From> static inline To emulated_cast(From x)
{
    static_assert(sizeof(To) == sizeof(From), "a cast of bits keeps the size");
    To y;
    __builtin_memcpy(&y, &x, sizeof y);
    return y;
}
static inline float __uint_as_float(u32 x) { return emulated_cast<float>(x); }
static inline u32 __float_as_uint(float x) { return emulated_cast<u32>(x); }
static inline float __int_as_float(i32 x) { return emulated_cast<float>(x); }
static inline i32 __float_as_int(float x) { return emulated_cast<i32>(x); }
static inline double __longlong_as_double(i64 x) { return emulated_cast<double>(x); }
static inline i64 __double_as_longlong(double x) { return emulated_cast<i64>(x); }
static inline double __hiloint2double(i32 hi, i32 lo) { return emulated_cast<double>((u64)(u32)hi << 32 | (u32)lo); }
static inline i32 __double2hiint(double x) { return (i32)(emulated_cast<u64>(x) >> 32); }
static inline i32 __double2loint(double x) { return (i32)emulated_cast<u64>(x); }

static inline u32 __umulhi(u32 a, u32 b) { return (u32)((u64)a * b >> 32); }
static inline i32 __mulhi(i32 a, i32 b) { return (i32)((i64)a * b >> 32); }
static inline u64 __umul64hi(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
static inline int __popc(u32 x) { return __builtin_popcount(x); }
static inline int __popcll(u64 x) { return __builtin_popcountll(x); }
static inline int __clz(i32 x) { return x ? __builtin_clz((u32)x) : 32; }
static inline int __clzll(i64 x) { return x ? __builtin_clzll((u64)x) : 64; }
static inline int __ffs(i32 x) { return __builtin_ffs(x); }
static inline int __ffsll(i64 x) { return __builtin_ffsll(x); }
static inline u32 __brev(u32 x)
{
    u32 y = 0;
    for (int i = 0; i < 32; i++) y |= (x >> i & 1u) << (31 - i);
    return y;
}
static inline u32 __byte_perm(u32 a, u32 b, u32 s)
{
    const u64 both = (u64)b << 32 | a;
    u32 y = 0;
    for (int i = 0; i < 4; i++) y |= (u32)(both >> (s >> 4 * i & 7) * 8 & 255) << 8 * i;
    return y;
}
static inline u32 __funnelshift_l(u32 lo, u32 hi, u32 by) { return (u32)((((u64)hi << 32 | lo) << (by & 31)) >> 32); }
static inline u32 __funnelshift_r(u32 lo, u32 hi, u32 by) { return (u32)(((u64)hi << 32 | lo) >> (by & 31)); }
static inline i32 __dp4a(i32 a, i32 b, i32 c)
{
    for (int i = 0; i < 4; i++) c += (i8)(a >> 8 * i) * (i8)(b >> 8 * i);
    return c;
}

static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float exp10f(float x) { return powf(10.0f, x); }
static inline float __saturatef(float x) { return x > 0 ? x < 1 ? x : 1 : 0; }
static inline float __expf(float x) { return expf(x); }
static inline float __exp2f(float x) { return exp2f(x); }
static inline float __logf(float x) { return logf(x); }
static inline float __log2f(float x) { return log2f(x); }
static inline float __sinf(float x) { return sinf(x); }
static inline float __cosf(float x) { return cosf(x); }
static inline float __powf(float x, float y) { return powf(x, y); }
static inline float __tanhf(float x) { return tanhf(x); }
static inline float fdividef(float x, float y) { return x / y; }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __frsqrt_rn(float x) { return (float)(1.0 / sqrt((double)x)); }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fsub_rn(float x, float y) { return x - y; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline double __dadd_rn(double x, double y) { return x + y; }
static inline double __dsub_rn(double x, double y) { return x - y; }
static inline double __dmul_rn(double x, double y) { return x * y; }
static inline double __ddiv_rn(double x, double y) { return x / y; }
static inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
/* Conversions saturate, and NaN becomes 0 (64 bits: the smallest). */
template <class To> static inline To emulated_integer(double x, double low, double high, To lowest, To highest, To nan)
{
    return x != x ? nan : x <= low ? lowest : x >= high ? highest : (To)x;
}
static inline i32 emulated_i32(double x)
{
    return emulated_integer<i32>(x, -2147483648.0, 2147483647.0, -2147483647 - 1, 2147483647, 0);
}
static inline u32 emulated_u32(double x) { return emulated_integer<u32>(x, 0, 4294967295.0, 0, ~0u, 0); }
static inline i64 emulated_i64(double x)
{
    return emulated_integer<i64>(x, -9223372036854775808.0, 9223372036854775807.0, -9223372036854775807ll - 1,
                                 9223372036854775807ll, -9223372036854775807ll - 1);
}
static inline u64 emulated_u64(double x)
{
    return emulated_integer<u64>(x, 0, 18446744073709551615.0, 0, ~0ull, 1ull << 63);
}
#define EMULATED_ROUND(from, T)                                                                       \
    static inline i32 __##from##2int_rn(T x) { return emulated_i32(rint((double)x)); }                \
    static inline i32 __##from##2int_rz(T x) { return emulated_i32(trunc((double)x)); }               \
    static inline i32 __##from##2int_rd(T x) { return emulated_i32(floor((double)x)); }               \
    static inline i32 __##from##2int_ru(T x) { return emulated_i32(ceil((double)x)); }                \
    static inline u32 __##from##2uint_rn(T x) { return emulated_u32(rint((double)x)); }               \
    static inline u32 __##from##2uint_rz(T x) { return emulated_u32(trunc((double)x)); }              \
    static inline i64 __##from##2ll_rn(T x) { return emulated_i64(rint((double)x)); }                 \
    static inline i64 __##from##2ll_rz(T x) { return emulated_i64(trunc((double)x)); }                \
    static inline i64 __##from##2ll_rd(T x) { return emulated_i64(floor((double)x)); }                \
    static inline u64 __##from##2ull_rn(T x) { return emulated_u64(rint((double)x)); }                \
    static inline u64 __##from##2ull_rz(T x) { return emulated_u64(trunc((double)x)); }
EMULATED_ROUND(float, float)
EMULATED_ROUND(double, double)
static inline float __int2float_rn(i32 x) { return (float)x; }
static inline float __uint2float_rn(u32 x) { return (float)x; }
static inline float __ll2float_rn(i64 x) { return (float)x; }
static inline float __ull2float_rn(u64 x) { return (float)x; }
static inline double __int2double_rn(i32 x) { return x; }
static inline double __ll2double_rn(i64 x) { return (double)x; }
static inline double __ull2double_rn(u64 x) { return (double)x; }
static inline float __double2float_rn(double x) { return (float)x; }

/* ---- memory and threads, by their CUDA names: one thread runs at a time ---- */

static inline void __syncthreads(EMULATED_AT) { emulated_calls->sync(0, 0, file, line); }
static inline void __syncwarp(u32 = ~0u, EMULATED_AT)
{
    emulated_calls->collective(EMULATOR_SYNC_WARP, nullptr, file, line);
}
static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __threadfence_system() {}
static inline void __nanosleep(u32, EMULATED_AT) { emulated_calls->give_way(file, line); }
static inline void __trap(EMULATED_AT) { emulated_calls->fail("__trap", file, line); }
template <class T> static inline T __ldg(const T *p) { return *p; }
template <class T> static inline T __ldcs(const T *p) { return *p; }
template <class T> static inline T __ldcg(const T *p) { return *p; }
template <class T> static inline T __ldca(const T *p) { return *p; }
template <class T> static inline void __stcs(T *p, T x) { *p = x; }
template <class T> static inline void __stcg(T *p, T x) { *p = x; }
#define EMULATED_ATOMIC(name, next)                                                                                   \
    template <class T, class U> static inline T name(T *p, U y, EMULATED_AT)                                          \
    {                                                                                                                 \
        emulated_calls->give_way(file, line);                                                                         \
        const T x = *p;                                                                                               \
        *p = (T)(next);                                                                                               \
        return x;                                                                                                     \
    }
EMULATED_ATOMIC(atomicAdd, x + y)
EMULATED_ATOMIC(atomicSub, x - y)
EMULATED_ATOMIC(atomicExch, y)
EMULATED_ATOMIC(atomicMax, x > (T)y ? x : (T)y)
EMULATED_ATOMIC(atomicMin, x < (T)y ? x : (T)y)
EMULATED_ATOMIC(atomicAnd, x & y)
EMULATED_ATOMIC(atomicOr, x | y)
EMULATED_ATOMIC(atomicXor, x ^ y)
template <class T> static inline T atomicCAS(T *p, T expected, T y, EMULATED_AT)
{
    emulated_calls->give_way(file, line);
    const T x = *p;
    if (x == expected) *p = y;
    return x;
}

/* ==== from here on: the names of src/cuda/device/prelude.cuh, in its order ==== */

#define DEVICE static inline __attribute__((unused))
#define KERNEL extern "C"

struct f16 { u16 bits; };
struct bf16 { u16 bits; };
struct alignas(16) u32x4 { u32 x, y, z, w; };
struct alignas(8) u32x2 { u32 x, y; };
template <class T, int N> struct alignas(sizeof(T) * N <= 16 ? sizeof(T) * N : 16) vec { T at[N]; };

DEVICE float float_of_bits(u32 x) { return emulated_cast<float>(x); }
DEVICE u32 bits_of_float(float x) { return emulated_cast<u32>(x); }
DEVICE double double_of_bits(u64 x) { return emulated_cast<double>(x); }
DEVICE u64 bits_of_double(double x) { return emulated_cast<u64>(x); }
DEVICE float to_float(f16 x)
{
    const u32 sign = (u32)(x.bits & 0x8000) << 16, rest = x.bits & 0x7fff;
    if (rest >= 0x7c00) return __uint_as_float(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    if (rest >= 0x400) return __uint_as_float(sign | ((rest << 13) + ((127 - 15) << 23)));
    const float small_one = (float)rest * 5.9604644775390625e-8f;
    return sign ? -small_one : small_one;
}
DEVICE float to_float(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
DEVICE float to_float(float x) { return x; }
DEVICE f16 to_f16(float x)
{
    const u32 b = __float_as_uint(x), rest = b & 0x7fffffff;
    const u16 sign = (u16)(b >> 16 & 0x8000);
    if (rest > 0x7f800000) return { 0x7fff };
    if (rest >= 0x477ff000) return { (u16)(sign | 0x7c00) };
    if (rest < 0x38800000) {                                                    /* subnormal: units of 2^-24 */
        const float units = rintf(__uint_as_float(rest) * 16777216.0f);
        return { (u16)(sign | (u16)(i32)units) };
    }
    const u32 bias = rest - ((127 - 15) << 23);
    return { (u16)(sign | (u16)((bias + 0xfff + (bias >> 13 & 1)) >> 13)) };
}
DEVICE bf16 to_bf16(float x)
{
    const u32 b = __float_as_uint(x);
    return { x != x ? (u16)0x7fff : (u16)((b + 0x7fff + (b >> 16 & 1)) >> 16) };
}
DEVICE u32 pack_f16(float lo, float hi) { return (u32)to_f16(lo).bits | (u32)to_f16(hi).bits << 16; }
DEVICE u32 pack_bf16(float lo, float hi) { return (u32)to_bf16(lo).bits | (u32)to_bf16(hi).bits << 16; }
DEVICE u32 permute_bytes(u32 a, u32 b, u32 which) { return __byte_perm(a, b, which); }
DEVICE u32 and_or(u32 x, u32 mask, u32 bits) { return (x & mask) | bits; }
template <class T> static inline u32 emulated_fma_pair(u32 x, u32 y, u32 z, T (*narrow)(float))
{
    u32 r = 0;
    for (int i = 0; i < 32; i += 16) {
        const T a = { (u16)(x >> i) }, b = { (u16)(y >> i) }, c = { (u16)(z >> i) };
        r |= (u32)narrow(fmaf(to_float(a), to_float(b), to_float(c))).bits << i;
    }
    return r;
}
DEVICE u32 fma_pair_f16(u32 x, u32 y, u32 z) { return emulated_fma_pair<f16>(x, y, z, to_f16); }
#if SM >= 80
DEVICE u32 fma_pair_bf16(u32 x, u32 y, u32 z) { return emulated_fma_pair<bf16>(x, y, z, to_bf16); }
#endif
DEVICE float multiply_towards_zero(float x, float y)
{
    const double exact = (double)x * y;
    const float near = (float)exact;
    return fabs((double)near) > fabs(exact) ? nextafterf(near, 0.0f) : near;
}
DEVICE float exp2_fast(float x) { return exp2f(x); }
DEVICE float rsqrt_fast(float x) { return 1 / sqrtf(x); }
DEVICE float exp2_flush(float x) { const float y = exp2f(x); return y < 0x1p-126f ? 0.0f : y; }
DEVICE float reciprocal_normal(float x) { return 1 / x; }
DEVICE u32 to_tf32(float x)
{
#if SM >= 80
    const u32 b = __float_as_uint(x);
    return (b & 0x7f800000) == 0x7f800000 ? b : (b + 0x1000) & ~0x1fffu;       /* nearest, ties away from zero */
#else
    return __float_as_uint(x);
#endif
}

DEVICE void renew(u32 &) {}
DEVICE u32 lane_id() { return threadIdx.x & 31; }
DEVICE u32 warp_id() { return threadIdx.x >> 5; }

DEVICE void grid_wait(EMULATED_AT) { emulated_calls->grid_wait(file, line); }
DEVICE void grid_trigger() {}

DEVICE void sync_block(EMULATED_AT) { emulated_calls->sync(0, 0, file, line); }
DEVICE void sync_warp(EMULATED_AT) { emulated_calls->collective(EMULATOR_SYNC_WARP, nullptr, file, line); }
DEVICE void sync_some(u32 id, u32 threads, EMULATED_AT) { emulated_calls->sync(id, threads, file, line); }
DEVICE void arrive_some(u32 id, u32 threads, EMULATED_AT) { emulated_calls->arrive(id, threads, file, line); }
template <class T> DEVICE T emulated_shuffle(emulator_collective kind, T x, u32 by, const char *file, int line)
{
    static_assert(sizeof(T) == 4, "shuffles move 4-byte types");
    emulator_lane_exchange lane = { emulated_cast<u32>(x), by };
    emulated_calls->collective(kind, &lane, file, line);
    return emulated_cast<T>(lane.value);
}
template <class T> DEVICE T shuffle(T x, u32 lane, EMULATED_AT)
{
    return emulated_shuffle(EMULATOR_SHUFFLE, x, lane, file, line);
}
template <class T> DEVICE T shuffle_xor(T x, u32 mask, EMULATED_AT)
{
    return emulated_shuffle(EMULATOR_SHUFFLE_XOR, x, mask, file, line);
}
template <class T> DEVICE T shuffle_up(T x, u32 by, EMULATED_AT)
{
    return emulated_shuffle(EMULATOR_SHUFFLE_UP, x, by, file, line);
}
template <class T> DEVICE T shuffle_down(T x, u32 by, EMULATED_AT)
{
    return emulated_shuffle(EMULATOR_SHUFFLE_DOWN, x, by, file, line);
}
DEVICE u32 ballot(bool x, EMULATED_AT) { return emulated_shuffle(EMULATOR_BALLOT, (u32)x, 0, file, line); }

DEVICE u8 *shared_base() { return emulated_now->shared; }
DEVICE u32 shared_address(const void *p) { return emulated_calls->shared_address(p); }
template <class T> DEVICE T load_constant(const T *p) { return *p; }
DEVICE u32x4 load_constant(const u32x4 *p) { return *p; }
DEVICE void atomic_add(float *p, float x, EMULATED_AT) { atomicAdd(p, x, file, line); }
DEVICE u32 atomic_add(u32 *p, u32 x, EMULATED_AT) { return atomicAdd(p, x, file, line); }
DEVICE u32 atomic_cas(u32 *p, u32 expected, u32 x, EMULATED_AT) { return atomicCAS(p, expected, x, file, line); }
DEVICE u64 atomic_cas(u64 *p, u64 expected, u64 x, EMULATED_AT) { return atomicCAS(p, expected, x, file, line); }

DEVICE void copy_async16(u32 dst, const void *src, bool valid) { emulated_calls->copy_async(dst, src, 16, valid); }
template <int N> DEVICE void copy_async(u32 dst, const void *src, bool valid)
{
    static_assert(N == 4 || N == 8, "copies of 4 or 8 bytes");
    emulated_calls->copy_async(dst, src, N, valid);
}
DEVICE void copy_commit() { emulated_calls->copy_commit(); }
template <int N> DEVICE void copy_wait() { emulated_calls->copy_wait(N); }

DEVICE void emulated_matrix(emulator_collective kind, u32 *r, u32 at, u32 count, const char *file, int line)
{
    emulator_lane_matrix lane = { r, at, count };
    emulated_calls->collective(kind, &lane, file, line);
}
DEVICE void load_matrix4(u32 (&r)[4], u32 at, EMULATED_AT)
{
    emulated_matrix(EMULATOR_LOAD_MATRIX, r, at, 4, file, line);
}
DEVICE void load_matrix4_transposed(u32 (&r)[4], u32 at, EMULATED_AT)
{
    emulated_matrix(EMULATOR_LOAD_MATRIX_TRANSPOSED, r, at, 4, file, line);
}
DEVICE void emulated_mma(emulator_collective kind, void *c, const u32 *a, u32 b0, u32 b1, const char *file, int line)
{
    emulator_lane_mma lane = { c, a, b0, b1, nullptr };
    emulated_calls->collective(kind, &lane, file, line);
}
DEVICE void mma_f16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1, EMULATED_AT)
{
    emulated_mma(EMULATOR_MMA_F16, c, a, b0, b1, file, line);
}
#if SM >= 80
DEVICE void mma_bf16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1, EMULATED_AT)
{
    emulated_mma(EMULATOR_MMA_BF16, c, a, b0, b1, file, line);
}
DEVICE void mma_tf32(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1, EMULATED_AT)
{
    emulated_mma(EMULATOR_MMA_TF32, c, a, b0, b1, file, line);
}
#endif
DEVICE void mma_s8(i32 (&c)[4], const u32 (&a)[4], u32 b0, u32 b1, EMULATED_AT)
{
    emulated_mma(EMULATOR_MMA_S8, c, a, b0, b1, file, line);
}
DEVICE void mma_u8(i32 (&c)[4], const u32 (&a)[4], u32 b0, u32 b1, EMULATED_AT)
{
    emulated_mma(EMULATOR_MMA_U8, c, a, b0, b1, file, line);
}
DEVICE void mma_s8_u8(i32 (&c)[4], const u32 (&a)[4], u32 b0, u32 b1, EMULATED_AT)
{
    emulated_mma(EMULATOR_MMA_S8_U8, c, a, b0, b1, file, line);
}
DEVICE void mma_u8_s8(i32 (&c)[4], const u32 (&a)[4], u32 b0, u32 b1, EMULATED_AT)
{
    emulated_mma(EMULATOR_MMA_U8_S8, c, a, b0, b1, file, line);
}

#if SM >= 90
DEVICE void barrier_init(u32 bar, u32 count) { emulated_calls->barrier_init(bar, count); }
DEVICE void barrier_init_fence() {}
DEVICE void barrier_arrive(u32 bar) { emulated_calls->barrier_arrive(bar, 1, 0); }
DEVICE void barrier_expect(u32 bar, u32 bytes) { emulated_calls->barrier_arrive(bar, 1, bytes); }
DEVICE void barrier_wait(u32 bar, u32 parity, EMULATED_AT) { emulated_calls->barrier_wait(bar, parity, file, line); }
DEVICE void barrier_arrive_copies(u32 bar) { emulated_calls->barrier_arrive_copies(bar); }
DEVICE void copy_bulk(u32 dst, const void *src, u32 bytes, u32 bar) { emulated_calls->copy_bulk(dst, src, bytes, bar); }
DEVICE u32 cluster_rank() { return emulated_now->cluster_rank; }
DEVICE void cluster_arrive() { emulated_calls->cluster_arrive(); }
DEVICE void cluster_wait(EMULATED_AT) { emulated_calls->cluster_wait(file, line); }
DEVICE void cluster_sync(EMULATED_AT) { emulated_calls->cluster_arrive(); emulated_calls->cluster_wait(file, line); }
DEVICE u32 cluster_address(u32 at, u32 rank) { return emulated_calls->cluster_address(at, rank); }
template <class T> DEVICE void send_async(u32 to, T value, u32 bar) { emulated_calls->send_async(to, &value, sizeof value, bar); }
template <class T> DEVICE T *cluster_map(T *p, u32 rank)
{
    return (T *)emulated_calls->cluster_map((const void *)p, rank);
}
#endif

DEVICE i32 div_fast(i32 x, const fast_div &d) { return d.magic ? (i32)(__umulhi((u32)x, d.magic) >> d.shift) : x; }
DEVICE void divmod_fast(i32 x, const fast_div &d, i32 &quotient, i32 &rest)
{
    quotient = div_fast(x, d);
    rest = x - quotient * (i32)d.d;
}
/* What is beyond counts in 64 bits. */
#define NARROW_MOST 1000 /* small: so that small cases take both ways */
/* Of what may be beyond 2^31: by a division there. */
DEVICE void divmod_wide(i64 x, const fast_div &d, i64 &quotient, i32 &rest)
{
    i32 narrow;
    if (x > NARROW_MOST) {
        quotient = x / d.d;
        rest = (i32)(x - quotient * d.d);
    } else {
        divmod_fast((i32)x, d, narrow, rest);
        quotient = narrow;
    }
}
/* The number of a vector, and what is left of it on the way to coordinates. WIDE: there may be more than 2^31. */
#if defined(WIDE) && WIDE
typedef u64 vector_id;
typedef i64 vector_at;
#define vector_divmod divmod_wide
#else
typedef u32 vector_id;
typedef i32 vector_at;
#define vector_divmod divmod_fast
#endif
DEVICE void report_fault(address fault, u32 step, i64 index, i64 value, i64 limit)
{
    device_fault *f = (device_fault *)fault;
    if (atomic_cas(&f->is_set, 0u, 1u)) return;
    f->step = step;
    f->index = index;
    f->value = value;
    f->limit = limit;
}
template <class T> DEVICE T smaller(T a, T b) { return a < b ? a : b; }
template <class T> DEVICE T larger(T a, T b) { return a > b ? a : b; }

/* ---- what the emulator adds after a kernel's source ---- */

template <class T> struct emulated_plain { typedef T type; };
template <__SIZE_TYPE__... I> struct emulated_indices {};
template <class... A, __SIZE_TYPE__... I>
static inline void emulated_run(void (*kernel)(A...), void *const *param, emulated_indices<I...>)
{
    kernel(*(typename emulated_plain<A>::type *)param[I]...);
}
template <class... A> static inline void emulated_call(void (*kernel)(A...), void *const *param)
{
    emulated_run(kernel, param, emulated_indices<__integer_pack(sizeof...(A))...>());
}
template <class... A> static inline unsigned emulated_measure(void (*)(A...), unsigned *size)
{
    const unsigned sizes[] = { (unsigned)sizeof(A)..., 0 };
    for (unsigned i = 0; i < sizeof...(A); i++) size[i] = sizes[i];
    return sizeof...(A);
}

/* Once for each entry that may be launched. */
#define EMULATED_ENTRY(name)                                                                                          \
    extern "C" __attribute__((visibility("default"))) void emulated_entry_##name(void *const *param)                  \
    {                                                                                                                 \
        emulated_call(&name, param);                                                                                  \
    }                                                                                                                 \
    extern "C" __attribute__((visibility("default"))) unsigned emulated_sizes_##name(unsigned *size)                  \
    {                                                                                                                 \
        return emulated_measure(&name, size);                                                                         \
    }
#define EMULATED_OBJECT                                                                                               \
    extern "C" {                                                                                                      \
    __attribute__((visibility("default"))) emulator_thread *emulated_now;                                             \
    const emulator_calls *emulated_calls;                                                                             \
    __attribute__((visibility("default"))) void emulated_attach(const emulator_calls *calls)                          \
    {                                                                                                                 \
        emulated_calls = calls;                                                                                       \
    }                                                                                                                 \
    }

#endif
