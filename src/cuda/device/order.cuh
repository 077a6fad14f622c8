/* SPDX-License-Identifier: Apache-2.0 */
/* order.cuh - what topk.cu and scan.cu share: element types (-DX_TYPE) and where line `row` begins. */
#ifndef ORDER_CUH
#define ORDER_CUH

#include "prelude.cuh"
#include "line_args.h"
#include "order_args.h"
#include "generated.cuh"

template <int T> struct order_element {};
template <> struct order_element<LINE_F32> { typedef float type; };
template <> struct order_element<LINE_F64> { typedef double type; };
template <> struct order_element<LINE_F16> { typedef f16 type; };
template <> struct order_element<LINE_BF16> { typedef bf16 type; };
template <> struct order_element<LINE_I8> { typedef i8 type; };
template <> struct order_element<LINE_U8> { typedef u8 type; };
template <> struct order_element<LINE_I16> { typedef i16 type; };
template <> struct order_element<LINE_U16> { typedef u16 type; };
template <> struct order_element<LINE_I32> { typedef i32 type; };
template <> struct order_element<LINE_U32> { typedef u32 type; };
template <> struct order_element<LINE_I64> { typedef i64 type; };
template <> struct order_element<LINE_U64> { typedef u64 type; };
typedef order_element<X_TYPE>::type element;

struct line_at { i64 x, values, indices; };
DEVICE line_at line_of(const order_args &a, i32 row)
{
    line_at l = { 0, 0, 0 };
#pragma unroll
    for (int k = KEPT - 1; k >= 0; k--) {
        i32 c = row;
        if (k) divmod_fast(row, a.kept[k].div, row, c);
        l.x += c * a.kept[k].x;
        l.values += c * a.kept[k].values;
        l.indices += c * a.kept[k].indices;
    }
    return l;
}

#endif
