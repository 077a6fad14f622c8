/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - include/sinter/file.h: tensors in .npy and .pb files.
 *
 * The first bytes tell the kind: protobuf cannot begin as .npy does. What comes back is always dense and aligned, in
 * one block that the caller frees. */
#include "sinter/file.h"

#include "api/handle.h"
#include "api/npy.h"
#include "base/os.h"
#include "onnx/model.h"
#include "onnx/wire.h"

enum { BUFFER_ALIGN = 64 };

/* The file's own bytes become the tensor's memory. */
static sinter_status read_npy(env *e, const os_file *file, sinter_tensor *out)
{
    npy_header header;
    TRY(npy_header_read(e, file->data, file->size, &header));
    uint8_t *data = file->data + header.data_at;
    const size_t size = file->size - header.data_at;
    if (header.data_at % BUFFER_ALIGN) {
        memmove(file->data, data, size);
        data = file->data;
    }
    if (header.tensor.dtype == SINTER_DTYPE_BOOL) {
        for (size_t i = 0; i < size; i++) data[i] = data[i] != 0;
    }
    *out = header.tensor;
    out->data = data;
    return SINTER_OK;
}

/* ONNX's test data holds sequences and optional values in messages of their own kind, which nothing but their fields
 * tells from a tensor: field 3 is a list there, and in a tensor the segment that no writer uses. */
static bool is_sequence(const os_file *file)
{
    wire w = wire_of(file->data, file->size);
    wire_field field;
    bool has_list = false;
    while (wire_next(&w, &field)) {
        if (field.number > 7 || field.number == 4) return false;
        if (field.number == 3 && field.type == WIRE_BYTES) has_list = true;
    }
    return has_list && !w.is_bad;
}

static sinter_status read_pb(env *e, arena *a, const os_file *file, sinter_tensor *out, sinter_buffer *memory)
{
    view v;
    if (is_sequence(file)) return FAIL(e, UNSUPPORTED, "a sequence or an optional value: only tensors are supported");
    TRY(onnx_tensor_read(e, a, file->data, file->size, &v));
    *out = (sinter_tensor){ .dtype = v.dtype, .rank = v.rank };
    memcpy(out->dim, v.dim, sizeof out->dim);
    const size_t size = sinter_tensor_size(out);
    const size_t booked = size ? size : 1;
    memory->data = mem_alloc(e, booked, BUFFER_ALIGN);
    if (!memory->data) return FAIL(e, NO_MEMORY, "out of memory for the %zu bytes of a tensor", size);
    memory->size = booked;
    memory->allocator = e->alloc;
    if (size) memcpy(memory->data, v.data, size);
    out->data = memory->data;
    return SINTER_OK;
}

sinter_status sinter_tensor_read(const char *path, const sinter_env_options *options, sinter_tensor *out,
                                 sinter_buffer *memory, sinter_error *error)
{
    env e;
    env_init(&e, options, error);
    TRY(env_check(&e));
    if (!path || !out || !memory) return FAIL(&e, INVALID_ARG, "path, out and memory must not be NULL");
    *out = (sinter_tensor){ 0 };
    *memory = (sinter_buffer){ 0 };
    os_file file = { 0 };
    arena a;
    arena_init(&a, &e);
    sinter_status s = os_file_read(&e, path, (size_t)e.limits.memory_max, &file);
    if (s == SINTER_OK && npy_is(file.data, file.size)) {
        s = read_npy(&e, &file, out);
        if (s == SINTER_OK) {
            *memory = (sinter_buffer){ .data = file.data, .size = file.size, .allocator = e.alloc };
            file = (os_file){ 0 };
        }
    } else if (s == SINTER_OK && file.size == 0) {
        s = FAIL(&e, INVALID_MODEL, "the file is empty");
    } else if (s == SINTER_OK) {
        s = read_pb(&e, &a, &file, out, memory);
    }
    os_file_close(&e, &file);
    arena_deinit(&a);
    return NOTE(&e, s, "while reading '%s'", path);
}

sinter_status sinter_tensor_write(const char *path, const sinter_tensor *tensor, sinter_error *error)
{
    env e;
    env_init(&e, NULL, error);
    if (!path || !tensor) return FAIL(&e, INVALID_ARG, "path and tensor must not be NULL");
    sinter_tensor t = *tensor;
    if (!dtype_is_valid((int)t.dtype) || t.rank > SINTER_RANK_MAX)
        return FAIL(&e, INVALID_ARG, "a tensor of type %d and rank %u cannot be written", (int)t.dtype, t.rank);
    t.dtype = npy_dtype(tensor->dtype);
    const size_t size = sinter_tensor_size(&t);
    if (size == SIZE_MAX) return FAIL(&e, INVALID_ARG, "the size of the tensor for '%s' overflows", path);
    if (size && !tensor->data) return FAIL(&e, INVALID_ARG, "the tensor for '%s' has no data", path);

    text file;
    text_init(&file, &e);
    npy_header_write(&t, &file);
    const size_t header = file.length, total = size_add(header, size);
    uint8_t *bytes = mem_alloc(&e, total, BUFFER_ALIGN);
    sinter_status s = SINTER_OK;
    if (!bytes || file.failed) {
        s = FAIL(&e, NO_MEMORY, "out of memory for the %zu bytes of '%s'", total, path);
        goto done;
    }
    memcpy(bytes, file.at, header);
    if (t.dtype == tensor->dtype && size) {
        memcpy(bytes + header, tensor->data, size);
    } else {
        const int64_t count = (int64_t)(size / (sinter_dtype_bits(t.dtype) / 8));
        for (int64_t i = 0; i < count; i++)
            dtype_store_f64(t.dtype, bytes + header, i, dtype_load_f64(tensor->dtype, tensor->data, i));
    }
    s = os_file_write(&e, path, &api_file_kind[SINTER_FILE_NPY], bytes, total);
done:
    mem_free(&e, bytes, total, BUFFER_ALIGN);
    text_deinit(&file);
    return s;
}

double sinter_tensor_value(const sinter_tensor *tensor, int64_t index)
{
    return dtype_load_f64(tensor->dtype, tensor->data, index);
}
