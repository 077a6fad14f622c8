/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.h - element types and descriptions of tensors in the caller's memory. */
#ifndef SINTER_TENSOR_H
#define SINTER_TENSOR_H

#include "status.h"
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, value, bits an element, text). Values are stored in engine files: they never change. */
#define SINTER_DTYPE_MAP(X)       \
    X(NONE, 0, 0, "none")         \
    X(F32, 1, 32, "f32")          \
    X(F64, 2, 64, "f64")          \
    X(F16, 3, 16, "f16")          \
    X(BF16, 4, 16, "bf16")        \
    X(I8, 5, 8, "i8")             \
    X(I16, 6, 16, "i16")          \
    X(I32, 7, 32, "i32")          \
    X(I64, 8, 64, "i64")          \
    X(U8, 9, 8, "u8")             \
    X(U16, 10, 16, "u16")         \
    X(U32, 11, 32, "u32")         \
    X(U64, 12, 64, "u64")         \
    X(BOOL, 13, 8, "bool")        \
    X(F8E4M3FN, 14, 8, "f8e4m3fn")     \
    X(F8E4M3FNUZ, 15, 8, "f8e4m3fnuz") \
    X(F8E5M2, 16, 8, "f8e5m2")         \
    X(F8E5M2FNUZ, 17, 8, "f8e5m2fnuz") \
    X(I4, 18, 4, "i4")            \
    X(U4, 19, 4, "u4")            \
    X(F4E2M1, 20, 4, "f4e2m1")    \
    X(F8E8M0, 21, 8, "f8e8m0")    \
    X(I2, 22, 2, "i2")            \
    X(U2, 23, 2, "u2")

typedef enum sinter_dtype {
#define SINTER_X(name, value, bits, text) SINTER_DTYPE_##name = value,
    SINTER_DTYPE_MAP(SINTER_X)
#undef SINTER_X
    SINTER_DTYPE_COUNT
} sinter_dtype;

enum { SINTER_RANK_MAX = 16 };

/* Where memory is. PINNED is host memory that the device can read and write itself (sinter_engine_alloc,
 * cuMemHostAlloc); a transfer then needs no extra copy. On the CPU all three are the same. */
typedef enum sinter_place {
    SINTER_PLACE_HOST = 0,
    SINTER_PLACE_DEVICE = 1,
    SINTER_PLACE_PINNED = 2
} sinter_place;

/* A dense, row-major tensor; dims in ONNX's order. Types of 4 bits hold two elements a byte, types of 2 bits four,
 * the first in the lowest bits. */
typedef struct sinter_tensor {
    sinter_dtype dtype;
    uint32_t     rank;                    /* 0 to SINTER_RANK_MAX; 0 is a scalar */
    int64_t      dim[SINTER_RANK_MAX];    /* elements, each >= 0 */
    void        *data;                    /* the call that uses the tensor states the ownership */
    sinter_place place;                   /* where data is; zero: host memory */
} sinter_tensor;

/* The short name ("f32") and the bits of one element. A value that is no type gives "none" and 0. */
SINTER_API const char *sinter_dtype_name(sinter_dtype dtype);
SINTER_API uint32_t    sinter_dtype_bits(sinter_dtype dtype);

/* Bytes of a dense tensor of that type and shape: ceil(elements * bits / 8). SIZE_MAX if the size does not fit. */
SINTER_API size_t sinter_tensor_size(const sinter_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
