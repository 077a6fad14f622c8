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

/* A number of a mask, multiplied for exp2. Exporters mask a key with the lowest finite number. The product stays finite,
 * so that a row whose keys are all masked has equal scores. Masks beyond 2.36e38 become equal. */
[[maybe_unused]] DEVICE float in_powers(float x)
{
    const float y = x * LOG2E;
    return x >= -LARGEST && x <= LARGEST ? fminf(fmaxf(y, -LARGEST), LARGEST) : y;
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

/* The mask at two keys next to each other, as it is; of bool, what is added. */
[[maybe_unused]] DEVICE void mask_read(const attention_args &a, i64 at, bool has_first, bool has_second, float &x,
                                       float &y)
{
    x = y = 0;
    [[maybe_unused]] const i64 next = at + a.mask_stride[3];
#if MASK == 1 && PAIRS
    if (has_second) {
        const u32x2 both = *(const u32x2 *)((const float *)a.mask + at);
        x = __uint_as_float(both.x);
        y = __uint_as_float(both.y);
    } else if (has_first) {
        x = ((const float *)a.mask)[at];
    }
#elif MASK == 1
    if (has_first) x = ((const float *)a.mask)[at];
    if (has_second) y = ((const float *)a.mask)[next];
#elif MASK == 2
    if (has_first) x = ((const u8 *)a.mask)[at] ? 0.0f : MINUS_INFINITY;
    if (has_second) y = ((const u8 *)a.mask)[next] ? 0.0f : MINUS_INFINITY;
#elif MASK == 3 && IS_BF16
    if (has_first) x = to_float(((const bf16 *)a.mask)[at]);
    if (has_second) y = to_float(((const bf16 *)a.mask)[next]);
#elif MASK == 3
    if (has_first) x = to_float(((const f16 *)a.mask)[at]);
    if (has_second) y = to_float(((const f16 *)a.mask)[next]);
#endif
}

/* In powers of two. */
[[maybe_unused]] DEVICE float mask_power(float x)
{
    return MASK == 2 ? x : in_powers(x);
}

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
