/* SPDX-License-Identifier: Apache-2.0 */
/* attention.cuh - what the kernels of attention on matrix units share: powers of two, packed pairs, masks.
 *
 *   MASK   0 none, 1 f32, 2 bool, 3 of the operands' type      IS_BF16
 *   PAIRS  two neighbours of the mask may be read at once
 *   KEYED  the mask is the same for all queries of a head */
#ifndef ATTENTION_CUH
#define ATTENTION_CUH

#include "prelude.cuh"
#include "attention_args.h"

#define LOG2E 1.4426950408889634f
#define MINUS_INFINITY __uint_as_float(0xff800000u)
#define LARGEST __uint_as_float(0x7f7fffffu)

/* A number of a mask, multiplied for exp2. Exporters mask a key with the lowest finite number. Rounded towards zero the
 * product stays finite, so that a row whose keys are all masked has equal scores. Masks beyond 2.36e38 become equal. */
[[maybe_unused]] DEVICE float in_powers(float x)
{
    return multiply_towards_zero(x, LOG2E);
}

/* Keys behind the length are not read. */
[[maybe_unused]] DEVICE i32 valid_keys(const attention_args &a)
{
#if LENGTH
    const i64 length = *(const i64 *)a.length;
    return length < 0 || length > a.keys ? a.keys : (i32)length;
#else
    return a.keys;
#endif
}

DEVICE u32 pack(float lo, float hi)
{
#if IS_BF16
    return pack_bf16(lo, hi);
#else
    return pack_f16(lo, hi);
#endif
}

#if MASK == 1
typedef float mask_type;
#elif MASK == 2
typedef u8 mask_type;
#elif MASK && IS_BF16
typedef bf16 mask_type;
#elif MASK
typedef f16 mask_type;
#endif

#if MASK
/* What is added. */
DEVICE float mask_number(mask_type x)
{
#if MASK == 1
    return x;
#elif MASK == 2
    return x ? 0.0f : MINUS_INFINITY;
#else
    return to_float(x);
#endif
}
#endif

/* The mask at two keys next to each other; 0 where there is none. */
[[maybe_unused]] DEVICE void mask_read(const attention_args &a, i64 at, bool has_first, bool has_second, float &x,
                                       float &y)
{
    x = y = 0;
#if MASK
    const mask_type *const from = (const mask_type *)a.mask + at;
#if PAIRS
    if (has_second) {
        const vec<mask_type, 2> both = *(const vec<mask_type, 2> *)from;
        x = mask_number(both.at[0]);
        y = mask_number(both.at[1]);
    } else if (has_first) {
        x = mask_number(*from);
    }
#else
    if (has_first) x = mask_number(*from);
    if (has_second) y = mask_number(from[a.mask_stride[3]]);
#endif
#endif
}

/* What is added, multiplied for exp2. */
[[maybe_unused]] DEVICE float mask_power(float x)
{
    return MASK == 2 ? x : in_powers(x);
}

/* mask_read, multiplied for exp2. */
[[maybe_unused]] DEVICE void mask_pair(const attention_args &a, i64 at, bool has_first, bool has_second, float &x,
                                       float &y)
{
    mask_read(a, at, has_first, has_second, x, y);
    x = mask_power(x);
    y = mask_power(y);
}

#if KEYED
/* The mask of a head at a key, in powers of two. */
DEVICE float mask_at_key(const attention_args &a, i32 batch, i32 head, i32 key)
{
    const i64 at = batch * a.mask_stride[0] + head * a.mask_stride[1] + key * a.mask_stride[3];
    float x, unused;
    mask_pair(a, at, key < a.keys, false, x, unused);
    return x;
}
#endif

/* A score under its mask. What is forbidden is left out even where it is NaN; numbers are added. */
[[maybe_unused]] DEVICE float masked(float x, float mask)
{
#if MASK == 2
    return mask < 0 ? mask : x;
#else
    return x + mask;
#endif
}

#endif
