/* SPDX-License-Identifier: Apache-2.0 */
/* file_value.c - values that are no tensors, from ONNX's messages: a SequenceProto or OptionalProto becomes the tensors
 * that stand for the value among a model's inputs or outputs. */
#include "sinter/file.h"

#include "api/handle.h"
#include "base/os.h"
#include "onnx/model.h"
#include "onnx/wire.h"

enum { BUFFER_ALIGN = 64, TENSOR_FIELD = 3, SEQUENCE_FIELD = 5, ITEMS_MAX = 1 << 20 };

typedef struct reading {
    env *e;
    arena a;
    const sinter_model_io *io;
    uint32_t count;
    view part[3];
} reading;

/* The first field of that number; NULL: there is none. */
static const uint8_t *field_find(const uint8_t *at, size_t size, uint32_t number, size_t *length)
{
    wire w = wire_of(at, size);
    for (wire_field f; wire_next(&w, &f);) {
        if (f.number != number || f.type != WIRE_BYTES) continue;
        *length = f.size;
        return f.at;
    }
    return NULL;
}

static sinter_status zeros(reading *r, view *v, sinter_dtype type, const int64_t *d, uint32_t rank)
{
    sinter_tensor t = { .dtype = type, .rank = rank };
    if (rank) memcpy(t.dim, d, rank * sizeof *d);
    const size_t size = sinter_tensor_size(&t);
    void *at = size == SIZE_MAX ? NULL : arena_alloc(&r->a, size ? size : 1, BUFFER_ALIGN);
    if (!at || !view_init(v, type, rank, t.dim, at)) return FAIL(r->e, NO_MEMORY, "out of memory for a value");
    memset(at, 0, size);
    return SINTER_OK;
}

/* The elements of all tensors, and their sizes. */
static sinter_status sequence_read(reading *r, const uint8_t *at, size_t size)
{
    VEC(view) items = { 0 };
    int64_t total = 0;
    wire w = wire_of(at, size);
    for (wire_field f; wire_next(&w, &f);) {
        if (f.number != TENSOR_FIELD || f.type != WIRE_BYTES) continue;
        view *v = items.count < ITEMS_MAX ? VEC_PUSH(&r->a, &items) : NULL;
        if (!v) return FAIL(r->e, NO_MEMORY, "a sequence of more than %d tensors, or out of memory", (int)ITEMS_MAX);
        TRY(onnx_tensor_read(r->e, &r->a, f.at, f.size, v));
        const view *first = &items.at[0];
        if (v->rank != first->rank || v->dtype != first->dtype)
            return FAIL(r->e, UNSUPPORTED, "a sequence of tensors that differ in rank or type");
        total += view_count(v);
    }
    if (w.is_bad) return FAIL(r->e, INVALID_MODEL, "the sequence is damaged");
    const uint32_t n = items.count, rank = n ? items.at[0].rank : r->io[1].dim[1] > 0 ? (uint32_t)r->io[1].dim[1] : 0;
    TRY(zeros(r, &r->part[0], n ? items.at[0].dtype : r->io[0].dtype, &total, 1));
    TRY(zeros(r, &r->part[1], SINTER_DTYPE_I64, (const int64_t[]){ n, rank }, 2));
    int64_t to = 0;
    for (uint32_t i = 0; i < n; i++) {
        const view *v = &items.at[i];
        for (int64_t k = 0; k < view_count(v); k++) dtype_move(v->dtype, r->part[0].data, to++, v->data, k);
        if (rank) memcpy((int64_t *)r->part[1].data + (size_t)i * rank, v->dim, rank * sizeof *v->dim);
    }
    return SINTER_OK;
}

/* Nothing stands for a value that is not there: zeros in the sizes that the model declares. */
static sinter_status nothing(reading *r)
{
    if (r->io[0].part == SINTER_PART_VALUES) return sequence_read(r, (const uint8_t *)"", 0);
    int64_t d[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < r->io[0].rank; i++) d[i] = r->io[0].dim[i] < 0 ? 0 : r->io[0].dim[i];
    return zeros(r, &r->part[0], r->io[0].dtype, d, r->io[0].rank);
}

static sinter_status value_read(reading *r, const os_file *file)
{
    const bool is_sequence = r->io[0].part == SINTER_PART_VALUES,
               is_optional = r->io[r->count - 1].part == SINTER_PART_HAS;
    if (!is_optional) return sequence_read(r, file->data, file->size);
    size_t length = 0;
    const uint8_t *inner = field_find(file->data, file->size, is_sequence ? SEQUENCE_FIELD : TENSOR_FIELD, &length);
    view *has = &r->part[r->count - 1];
    TRY(zeros(r, has, SINTER_DTYPE_BOOL, NULL, 0));
    *(uint8_t *)has->data = inner != NULL;
    if (!inner) return nothing(r);
    return is_sequence ? sequence_read(r, inner, length) : onnx_tensor_read(r->e, &r->a, inner, length, &r->part[0]);
}

static sinter_status take(env *e, const view *v, sinter_tensor *out, sinter_buffer *memory)
{
    *out = (sinter_tensor){ .dtype = v->dtype, .rank = v->rank };
    memcpy(out->dim, v->dim, sizeof out->dim);
    const size_t size = sinter_tensor_size(out), booked = size ? size : 1;
    memory->data = mem_alloc(e, booked, BUFFER_ALIGN);
    if (!memory->data) return FAIL(e, NO_MEMORY, "out of memory for the %zu bytes of a tensor", size);
    memory->size = booked;
    memory->allocator = e->alloc;
    if (size) memcpy(memory->data, v->data, size);
    out->data = memory->data;
    return SINTER_OK;
}

sinter_status sinter_value_read(const char *path, const sinter_env_options *options, const sinter_model_io *io,
                                uint32_t count, sinter_tensor *out, sinter_buffer *memory, sinter_error *error)
{
    if (count == 1) return sinter_tensor_read(path, options, out, memory, error);
    reading r = { .io = io, .count = count };
    env e;
    env_init(&e, options, error);
    TRY(env_check(&e));
    if (!path || !io || !out || !memory) return FAIL(&e, INVALID_ARG, "path, io, out and memory must not be NULL");
    if (!count || count > COUNT_OF(r.part)) return FAIL(&e, INVALID_ARG, "%u tensors for one value", count);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = (sinter_tensor){ 0 };
        memory[i] = (sinter_buffer){ 0 };
    }
    r.e = &e;
    os_file file = { 0 };
    arena_init(&r.a, &e);
    sinter_status s = os_file_read(&e, path, (size_t)e.limits.memory_max, &file);
    if (s == SINTER_OK) s = value_read(&r, &file);
    for (uint32_t i = 0; i < count && s == SINTER_OK; i++) s = take(&e, &r.part[i], &out[i], &memory[i]);
    for (uint32_t i = 0; i < count && s != SINTER_OK; i++) sinter_buffer_free(&memory[i]);
    os_file_close(&e, &file);
    arena_deinit(&r.a);
    return NOTE(&e, s, "while reading '%s'", path);
}
