/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_read.c - TensorProto to elements: raw bytes, typed fields, external files, sparse tensors.
 *
 * Nothing is allocated before the bytes that justify it have been seen: a tensor's size is computed from its dims with
 * checked arithmetic and compared with what the file brings. */
#include "onnx/model.h"
#include "onnx/wire.h"
#include <string.h>

/* X(TensorProto.DataType, name, dtype) */
/* clang-format off */
#define ONNX_TYPES(X)                                                                           \
    X(1, "float", F32) X(2, "uint8", U8) X(3, "int8", I8) X(4, "uint16", U16)                   \
    X(5, "int16", I16) X(6, "int32", I32) X(7, "int64", I64) X(8, "string", NONE)               \
    X(9, "bool", BOOL) X(10, "float16", F16) X(11, "double", F64) X(12, "uint32", U32)          \
    X(13, "uint64", U64) X(14, "complex64", NONE) X(15, "complex128", NONE)                     \
    X(16, "bfloat16", BF16) X(17, "float8e4m3fn", F8E4M3FN)                                     \
    X(18, "float8e4m3fnuz", F8E4M3FNUZ) X(19, "float8e5m2", F8E5M2)                             \
    X(20, "float8e5m2fnuz", F8E5M2FNUZ) X(21, "uint4", U4) X(22, "int4", I4)                    \
    X(23, "float4e2m1", F4E2M1) X(24, "float8e8m0", F8E8M0) X(25, "uint2", U2) X(26, "int2", I2)
/* clang-format on */

bool onnx_dtype_of(int32_t type, sinter_dtype *out)
{
    switch (type) {
#define X(number, name, dtype)                                                                                         \
    case number: *out = SINTER_DTYPE_##dtype; break;
        ONNX_TYPES(X)
#undef X
    default: *out = SINTER_DTYPE_NONE; break;
    }
    return *out != SINTER_DTYPE_NONE;
}

int32_t onnx_dtype_to(sinter_dtype dtype)
{
    if (dtype == SINTER_DTYPE_NONE) return 0;
#define X(number, name, type)                                                                                          \
    if (dtype == SINTER_DTYPE_##type) return number;
    ONNX_TYPES(X)
#undef X
    return 0;
}

const char *onnx_type_name(int32_t type)
{
    switch (type) {
#define X(number, name, dtype)                                                                                         \
    case number: return name;
        ONNX_TYPES(X)
#undef X
    default: return type ? "an unknown type" : "no type";
    }
}

void onnx_files_close(env *e, onnx_files *files)
{
    for (uint32_t i = 0; i < files->count; i++) {
        os_file_close(e, &files->at[i].file);
        mem_free(e, files->at[i].name, files->at[i].name_size, 1);
    }
    mem_free(e, files->at, files->capacity * sizeof *files->at, _Alignof(onnx_file));
    *files = (onnx_files){ 0 };
}

static sinter_status file_of(env *e, const char *folder, onnx_files *files, const char *name, const os_file **out)
{
    for (uint32_t i = 0; i < files->count; i++) {
        if (strcmp(files->at[i].name, name) == 0) {
            *out = &files->at[i].file;
            return SINTER_OK;
        }
    }
    if (files->count == files->capacity) {
        const uint32_t capacity = files->capacity ? files->capacity * 2 : 4;
        onnx_file *at =
            mem_resize(e, files->at, files->capacity * sizeof *at, capacity * sizeof *at, _Alignof(onnx_file));
        if (!at) return FAIL_MEMORY(e, "the list of external files");
        files->at = at;
        files->capacity = capacity;
    }
    onnx_file *f = &files->at[files->count];
    *f = (onnx_file){ .name_size = strlen(name) + 1 };
    f->name = mem_alloc(e, f->name_size, 1);
    if (!f->name) return FAIL_MEMORY(e, "the list of external files");
    memcpy(f->name, name, f->name_size);
    const sinter_status s = os_file_map_beneath(e, folder, name, &f->file);
    if (s != SINTER_OK) {
        mem_free(e, f->name, f->name_size, 1);
        return s;
    }
    files->count++;
    *out = &f->file;
    return SINTER_OK;
}

static bool decimal(const char *s, uint64_t *out)
{
    uint64_t value = 0;
    if (!*s) return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9') return false;
        if (__builtin_mul_overflow(value, (uint64_t)10, &value)) return false;
        if (__builtin_add_overflow(value, (uint64_t)(*s - '0'), &value)) return false;
    }
    *out = value;
    return true;
}

static sinter_status external_bytes(env *e, const char *folder, onnx_files *files, const onnx_tensor *t, size_t size,
                                    const uint8_t **out)
{
    const char *location = NULL;
    uint64_t offset = 0, length = 0;
    bool has_length = false;
    for (uint32_t i = 0; i < t->external.count; i++) {
        const onnx_pair *p = &t->external.at[i];
        if (strcmp(p->key, "location") == 0) {
            location = p->value;
        } else if (strcmp(p->key, "offset") == 0) {
            if (!decimal(p->value, &offset))
                return FAIL(e, INVALID_MODEL, "external data has offset '%s', a count of bytes is wanted", p->value);
        } else if (strcmp(p->key, "length") == 0) {
            if (!decimal(p->value, &length))
                return FAIL(e, INVALID_MODEL, "external data has length '%s', a count of bytes is wanted", p->value);
            has_length = true;
        } else if (strcmp(p->key, "checksum") != 0) {
            return FAIL(e, INVALID_MODEL,
                        "external data has the key '%s'; only location, offset, length and checksum are known", p->key);
        }
    }
    if (!location || !*location) return FAIL(e, INVALID_MODEL, "external data has no location");
    if (has_length && length != size)
        return FAIL(e, INVALID_MODEL, "external data has length %llu, its shape and type need %zu bytes",
                    (unsigned long long)length, size);
    if (!folder) return FAIL(e, IO, "its data is in '%s', and a model given from memory may not open files", location);
    const os_file *file = NULL;
    TRY(file_of(e, folder, files, location, &file));
    if (offset > file->size || size > file->size - offset)
        return FAIL(e, INVALID_MODEL, "external data wants bytes %llu to %llu of '%s', which has %zu",
                    (unsigned long long)offset, (unsigned long long)(offset + size), location, file->size);
    *out = size ? file->data + offset : NULL;
    return SINTER_OK;
}

/* Which typed field holds a dtype's elements, and how each is encoded on the wire. */
static uint32_t field_of(sinter_dtype dtype, wire_type *kind)
{
    *kind = WIRE_VARINT;
    switch (dtype) {
    case SINTER_DTYPE_F32: *kind = WIRE_32; return 4;
    case SINTER_DTYPE_F64: *kind = WIRE_64; return 10;
    case SINTER_DTYPE_I64: return 7;
    case SINTER_DTYPE_U32:
    case SINTER_DTYPE_U64: return 11;
    default: return 5;
    }
}

static sinter_status typed_fields(env *e, arena *a, const onnx_tensor *t, sinter_dtype dtype, size_t size, void **out)
{
    wire_type kind;
    const uint32_t number = field_of(dtype, &kind);
    const size_t item =
        sinter_dtype_bits(dtype) < 8 ? 1 : sinter_dtype_bits(dtype) / 8; /* smaller ones come packed, a byte a number */
    size_t count = 0;
    wire w = wire_of(t->span, t->span_size);
    for (wire_field f; wire_next(&w, &f);) {
        wire_list list;
        if (f.number != number) continue;
        if (!wire_list_of(&f, kind, &list)) return FAIL(e, INVALID_MODEL, "field %u of the tensor is damaged", number);
        count = size_add(count, wire_list_count(&list));
    }
    if (size_mul(count, item) != size)
        return FAIL(e, INVALID_MODEL, "it holds %zu values in field %u, its shape and type need %zu bytes", count,
                    number, size);
    uint8_t *at = arena_alloc(a, size, 64);
    if (!at) return FAIL_MEMORY(e, "a tensor");
    *out = at;
    const uint8_t *end = at + size;
    w = wire_of(t->span, t->span_size);
    for (wire_field f; wire_next(&w, &f);) {
        wire_list list;
        if (f.number != number || !wire_list_of(&f, kind, &list)) continue;
        uint64_t value = 0;
        while (at < end && wire_list_next(&list, &value)) {
            for (size_t b = 0; b < item; b++) at[b] = (uint8_t)(value >> (8 * b));
            at += item;
        }
        if (list.w.is_bad) return FAIL(e, INVALID_MODEL, "field %u of the tensor is damaged", number);
    }
    return SINTER_OK;
}

static sinter_status size_of(env *e, const onnx_tensor *t, sinter_dtype dtype, view *out, size_t *size)
{
    if (t->rank > SINTER_RANK_MAX)
        return FAIL(e, UNSUPPORTED, "rank %u; up to %d is supported", t->rank, SINTER_RANK_MAX);
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dim[i] < 0) return FAIL(e, INVALID_MODEL, "dimension %u is %lld", i, (long long)t->dim[i]);
    sinter_tensor described = { .dtype = dtype, .rank = t->rank };
    memcpy(described.dim, t->dim, t->rank * sizeof t->dim[0]);
    *size = sinter_tensor_size(&described);
    if (*size > PTRDIFF_MAX / 2 || !view_init(out, dtype, t->rank, t->dim, NULL))
        return FAIL(e, INVALID_MODEL, "its dimensions make more bytes than memory has addresses");
    return SINTER_OK;
}

sinter_status onnx_tensor_find(env *e, const char *folder, onnx_files *files, const onnx_tensor *t, view *out,
                               const uint8_t **bytes, size_t *bytes_size)
{
    *out = (view){ 0 };
    *bytes = NULL;
    sinter_dtype dtype;
    if (!onnx_dtype_of(t->type, &dtype))
        return FAIL(e, UNSUPPORTED, "elements of type %d (%s)", t->type, onnx_type_name(t->type));
    TRY(size_of(e, t, dtype, out, bytes_size));
    if (t->is_external) return external_bytes(e, folder, files, t, *bytes_size, bytes);
    if (t->has_raw && t->raw_size != *bytes_size)
        return FAIL(e, INVALID_MODEL, "it holds %zu bytes, its shape and type need %zu", t->raw_size, *bytes_size);
    *bytes = t->raw;
    return SINTER_OK;
}

bool onnx_tensor_in_place(view *v, const uint8_t *bytes, size_t size)
{
    const size_t align = sinter_dtype_bits(v->dtype) < 8 ? 1 : sinter_dtype_bits(v->dtype) / 8;
    if (!size || (uintptr_t)bytes % align) return false;
    v->data = (void *)(uintptr_t)bytes; /* read-only: views carry no const */
    return true;
}

sinter_status onnx_tensor_decode(env *e, arena *a, const char *folder, onnx_files *files, const onnx_tensor *t,
                                 view *out)
{
    const uint8_t *bytes;
    size_t size = 0;
    TRY(onnx_tensor_find(e, folder, files, t, out, &bytes, &size));
    if (!t->is_external && !t->has_raw) return typed_fields(e, a, t, out->dtype, size, &out->data);
    if (onnx_tensor_in_place(out, bytes, size)) return SINTER_OK;
    out->data = arena_alloc(a, size, 64);
    if (!out->data) return FAIL_MEMORY(e, "a tensor");
    if (size) memcpy(out->data, bytes, size);
    return SINTER_OK;
}

sinter_status onnx_sparse_decode(env *e, arena *a, const char *folder, onnx_files *files, const onnx_sparse *t,
                                 view *out)
{
    view values, indices;
    TRY(onnx_tensor_decode(e, a, folder, files, &t->values, &values));
    TRY(onnx_tensor_decode(e, a, folder, files, &t->indices, &indices));
    onnx_tensor dense = { .rank = t->rank };
    memcpy(dense.dim, t->dim, sizeof dense.dim);
    size_t size = 0;
    TRY(size_of(e, &dense, values.dtype, out, &size));
    const int64_t count = view_count(&values);
    if (size > e->limits.fold_max)
        return FAIL(e, UNSUPPORTED, "a sparse tensor of %zu bytes when dense; the limit fold_max is %llu", size,
                    (unsigned long long)e->limits.fold_max);
    const bool is_linear = indices.rank == 1;
    if (values.rank != 1 || indices.dtype != SINTER_DTYPE_I64 || sinter_dtype_bits(values.dtype) < 8 ||
        indices.rank < 1 || indices.rank > 2 || indices.dim[0] != count ||
        (!is_linear && indices.dim[1] != (int64_t)t->rank))
        return FAIL(e, INVALID_MODEL, "a sparse tensor's values and indices do not belong together");
    out->data = arena_alloc(a, size, 64);
    if (!out->data) return FAIL_MEMORY(e, "a tensor");
    const int64_t total = view_count(out);
    const size_t item = sinter_dtype_bits(values.dtype) / 8;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = 0;
        bool is_inside = true;
        for (uint32_t k = 0; k < (is_linear ? 1 : t->rank); k++) {
            const int64_t index =
                dtype_load_i64(SINTER_DTYPE_I64, indices.data, is_linear ? i : i * (int64_t)t->rank + k);
            is_inside = is_inside && index >= 0 && index < (is_linear ? total : t->dim[k]);
            if (is_inside) at = is_linear ? index : at * t->dim[k] + index;
        }
        if (!is_inside)
            return FAIL(e, INVALID_MODEL, "index %lld of a sparse tensor lies outside its shape", (long long)i);
        memcpy((uint8_t *)out->data + (size_t)at * item, (const uint8_t *)values.data + (size_t)i * item, item);
    }
    return SINTER_OK;
}

/* Text as bytes: one axis more, as wide as the longest, and filled up with zeros. */
static sinter_status text_read(env *e, arena *a, const onnx_tensor *t, view *out)
{
    enum { STRING_FIELD = 6 };
    int64_t d[SINTER_RANK_MAX], width = 1, wanted = 1, count = 0;
    wire w = wire_of(t->span, t->span_size);
    for (wire_field f; wire_next(&w, &f);) {
        if (f.number != STRING_FIELD || f.type != WIRE_BYTES) continue;
        if (f.size && memchr(f.at, 0, f.size)) return FAIL(e, UNSUPPORTED, "text with a zero byte");
        if ((int64_t)f.size > width) width = (int64_t)f.size;
        count++;
    }
    if (t->rank >= SINTER_RANK_MAX) return FAIL(e, UNSUPPORTED, "text of rank %u", t->rank);
    for (uint32_t i = 0; i < t->rank; i++) {
        d[i] = t->dim[i];
        if (d[i] < 0 || !i64_mul(wanted, d[i], &wanted))
            return FAIL(e, INVALID_MODEL, "dimension %u is %lld", i, (long long)d[i]);
    }
    d[t->rank] = width;
    if (w.is_bad || count != wanted)
        return FAIL(e, INVALID_MODEL, "%lld texts, the shape wants %lld", (long long)count, (long long)wanted);
    const size_t size = size_mul((size_t)count, (size_t)width);
    uint8_t *at = arena_alloc(a, size ? size : 1, 64);
    if (!at) return FAIL_MEMORY(e, "text");
    memset(at, 0, size);
    if (!view_init(out, SINTER_DTYPE_U8, t->rank + 1, d, at)) return FAIL(e, INVALID_MODEL, "text of too many bytes");
    w = wire_of(t->span, t->span_size);
    for (wire_field f; wire_next(&w, &f);) {
        if (f.number != STRING_FIELD || f.type != WIRE_BYTES) continue;
        if (f.size) memcpy(at, f.at, f.size);
        at += width;
    }
    return SINTER_OK;
}

sinter_status onnx_tensor_read(env *e, arena *a, const uint8_t *bytes, size_t size, view *out)
{
    onnx_tensor t;
    onnx_files none = { 0 };
    TRY(onnx_tensor_parse(e, a, bytes, size, &t));
    if (t.type == ONNX_TYPE_STRING) return text_read(e, a, &t, out);
    return onnx_tensor_decode(e, a, NULL, &none, &t, out);
}
