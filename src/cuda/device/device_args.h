/* SPDX-License-Identifier: Apache-2.0 */
/* device_args.h - parameters of kernels, as host and device both see them. Addresses are 64-bit numbers here: the host
 * patches them in, the device casts them. */
#ifndef CUDA_DEVICE_ARGS_H
#define CUDA_DEVICE_ARGS_H

#ifdef __CUDACC_RTC__
typedef unsigned long long address;
typedef long long wide;
typedef int small;
typedef unsigned natural;
typedef unsigned char tiny;
#else
#include <stdint.h>
typedef uint64_t address;
typedef int64_t wide;
typedef int32_t small;
typedef uint32_t natural;
typedef uint8_t tiny;
#endif

#ifdef __cplusplus
#define ALIGNED(bytes) alignas(bytes)
#else
#define ALIGNED(bytes) _Alignas(bytes)
#endif

/* Quotients by multiplication (Granlund and Montgomery 1994): x / d = mulhi(x, magic) >> shift for 0 <= x < 2^31;
 * magic 0: d is 1. */
struct fast_div { natural magic, shift, d; };

/* Where a kernel says what it found wrong in the data; the first to find something wins. One for each stream. */
struct device_fault { natural is_set, step; wide index, value, limit; };

#endif
