/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_bytes.h - writes protobuf messages by hand, for tests of what reads them. */
#ifndef ONNX_BYTES_H
#define ONNX_BYTES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct bytes { uint8_t *at; size_t size, capacity; } bytes;

static inline void bytes_add(bytes *b, const void *data, size_t size)
{
    if (b->size + size > b->capacity) {
        b->capacity = (b->size + size) * 2;
        b->at = realloc(b->at, b->capacity);
        if (!b->at) abort();
    }
    if (size) memcpy(b->at + b->size, data, size);
    b->size += size;
}

static inline void bytes_varint(bytes *b, uint64_t value)
{
    for (; value >= 128; value >>= 7) bytes_add(b, &(uint8_t){ (uint8_t)(value | 128) }, 1);
    bytes_add(b, &(uint8_t){ (uint8_t)value }, 1);
}

static inline void bytes_int(bytes *b, uint32_t field, int64_t value)
{
    bytes_varint(b, (uint64_t)field << 3);
    bytes_varint(b, (uint64_t)value);
}

static inline void bytes_data(bytes *b, uint32_t field, const void *data, size_t size)
{
    bytes_varint(b, (uint64_t)field << 3 | 2);
    bytes_varint(b, size);
    bytes_add(b, data, size);
}

static inline void bytes_text(bytes *b, uint32_t field, const char *s) { bytes_data(b, field, s, strlen(s)); }

/* Appends `inner` as field `field` and frees it. */
static inline void bytes_put(bytes *b, uint32_t field, bytes inner)
{
    bytes_data(b, field, inner.at, inner.size);
    free(inner.at);
}

/* ---- ONNX messages ---- */
static inline bytes onnx_value(const char *name, int64_t type, const int64_t *size_at, uint32_t rank, const char *param)
{
    bytes shape = { 0 }, tensor = { 0 }, outer = { 0 }, value = { 0 };
    for (uint32_t i = 0; i < rank; i++) {
        bytes d = { 0 };
        if (size_at[i] == INT64_MIN) bytes_text(&d, 2, param);
        else bytes_int(&d, 1, size_at[i]);
        bytes_put(&shape, 1, d);
    }
    bytes_int(&tensor, 1, type);
    bytes_put(&tensor, 2, shape);
    bytes_put(&outer, 1, tensor);
    bytes_text(&value, 1, name);
    bytes_put(&value, 2, outer);
    return value;
}

/* in and out: names separated by commas. */
static inline bytes onnx_node_bytes(const char *op, const char *name, const char *in, const char *out)
{
    bytes n = { 0 };
    const char *list[2] = { in, out };
    for (uint32_t field = 1; field <= 2; field++) {
        for (const char *p = list[field - 1]; *p;) {
            const size_t length = strcspn(p, ",");
            bytes_data(&n, field, p, length);
            p += length + (p[length] == ',');
        }
    }
    bytes_text(&n, 3, name);
    bytes_text(&n, 4, op);
    return n;
}

static inline bytes onnx_attr_int(const char *name, int64_t value)
{
    bytes a = { 0 };
    bytes_text(&a, 1, name);
    bytes_int(&a, 3, value);
    bytes_int(&a, 20, 2);
    return a;
}

static inline bytes onnx_attr_graph(const char *name, bytes graph)
{
    bytes a = { 0 };
    bytes_text(&a, 1, name);
    bytes_put(&a, 6, graph);
    bytes_int(&a, 20, 5);
    return a;
}

static inline bytes onnx_tensor_bytes(const char *name, int64_t type, const int64_t *size_at, uint32_t rank,
                                      const void *raw, size_t size)
{
    bytes t = { 0 };
    for (uint32_t i = 0; i < rank; i++) bytes_int(&t, 1, size_at[i]);
    bytes_int(&t, 2, type);
    bytes_text(&t, 8, name);
    if (raw) bytes_data(&t, 9, raw, size);
    return t;
}

/* Takes the graph; adds the IR version and the opset of the default domain. */
static inline bytes onnx_model_bytes(bytes graph, int64_t opset)
{
    bytes m = { 0 }, o = { 0 };
    bytes_int(&m, 1, 8);
    bytes_int(&o, 2, opset);
    bytes_put(&m, 8, o);
    bytes_put(&m, 7, graph);
    return m;
}

#endif
