/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_file_write.c - writes parts of an ONNX file, and tensors as .pb. */
#include "onnx_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { GRAPH = 7, INPUT = 11, OUTPUT = 12 };

/* ---- bytes ---- */

static void bytes_add(kept_text *out, const void *data, size_t size)
{
    if (size) cli_write_kept(out, data, size);
}

static void varint(kept_text *out, uint64_t n)
{
    do {
        const char byte = (char)((n & 127) | (n > 127 ? 128 : 0));
        bytes_add(out, &byte, 1);
    } while (n >>= 7);
}

static void number(kept_text *out, uint32_t field, uint64_t n)
{
    varint(out, (uint64_t)field << 3);
    varint(out, n);
}

static void message(kept_text *out, uint32_t field, const void *data, size_t size)
{
    varint(out, (uint64_t)field << 3 | 2);
    varint(out, size);
    bytes_add(out, data, size);
}

static void kept_message(kept_text *out, uint32_t field, kept_text *content)
{
    message(out, field, content->at, content->length);
    free(content->at);
    *content = (kept_text){ 0 };
}

static void span_add(kept_text *out, onnx_span s)
{
    bytes_add(out, s.at, s.size);
}

static bool save(const kept_text *bytes, const char *path)
{
    FILE *file = fopen(path, "wbe");
    bool is_good = file && fwrite(bytes->at, 1, bytes->length, file) == bytes->length;
    if (file && fclose(file) != 0) is_good = false;
    return is_good || cli_fail("cannot write '%s': %s", path, strerror(errno)) == 0;
}

/* ONNX's number of a type. */
static uint64_t onnx_type(sinter_dtype t)
{
    static const uint8_t type[SINTER_DTYPE_COUNT] = {
        [SINTER_DTYPE_F32] = 1,     [SINTER_DTYPE_F64] = 11,        [SINTER_DTYPE_F16] = 10,
        [SINTER_DTYPE_BF16] = 16,   [SINTER_DTYPE_I8] = 3,          [SINTER_DTYPE_I16] = 5,
        [SINTER_DTYPE_I32] = 6,     [SINTER_DTYPE_I64] = 7,         [SINTER_DTYPE_U8] = 2,
        [SINTER_DTYPE_U16] = 4,     [SINTER_DTYPE_U32] = 12,        [SINTER_DTYPE_U64] = 13,
        [SINTER_DTYPE_BOOL] = 9,    [SINTER_DTYPE_F8E4M3FN] = 17,   [SINTER_DTYPE_F8E4M3FNUZ] = 18,
        [SINTER_DTYPE_F8E5M2] = 19, [SINTER_DTYPE_F8E5M2FNUZ] = 20, [SINTER_DTYPE_I4] = 22,
        [SINTER_DTYPE_U4] = 21,     [SINTER_DTYPE_F4E2M1] = 23,     [SINTER_DTYPE_F8E8M0] = 24,
        [SINTER_DTYPE_I2] = 26,     [SINTER_DTYPE_U2] = 25,
    };
    return type[t];
}

/* ---- parts of a model ---- */

static void typed_add(kept_text *graph, uint32_t field, const onnx_typed *v)
{
    kept_text dims = { 0 }, tensor = { 0 }, type = { 0 }, info = { 0 };
    message(&info, 1, v->name, strlen(v->name));
    if (v->type.dtype != SINTER_DTYPE_NONE) {
        for (uint32_t i = 0; i < v->type.rank; i++) {
            kept_text dim = { 0 };
            number(&dim, 1, (uint64_t)v->type.dim[i]);
            kept_message(&dims, 1, &dim);
        }
        number(&tensor, 1, onnx_type(v->type.dtype));
        kept_message(&tensor, 2, &dims);
        kept_message(&type, 1, &tensor);
        kept_message(&info, 2, &type);
    }
    kept_message(graph, field, &info);
}

/* As the file describes it, else by its name alone. */
static void value_write(kept_text *graph, uint32_t field, const onnx_file *f, const onnx_typed *v)
{
    const onnx_values *const list[] = { &f->input, &f->output };
    for (uint32_t k = 0; k < 2 && v->type.dtype == SINTER_DTYPE_NONE; k++) {
        const onnx_value *own = onnx_values_find(list[k], v->name);
        if (!own || own->field != field) continue;
        span_add(graph, own->span);
        return;
    }
    typed_add(graph, field, v);
}

static bool is_read(const onnx_file *f, const onnx_part *part, const char *name)
{
    for (uint32_t i = 0; i < f->nodes; i++)
        if (part->is_kept[i] && onnx_names_have(&f->node[i].in, name)) return true;
    for (uint32_t i = 0; i < part->outputs; i++)
        if (!strcmp(part->output[i].name, name)) return true;
    return false;
}

bool onnx_file_write(const onnx_file *f, const onnx_part *part, const char *path)
{
    kept_text graph = { 0 }, model = { 0 };
    for (uint32_t i = 0; i < f->nodes; i++)
        if (part->is_kept[i]) span_add(&graph, f->node[i].span);
    for (uint32_t i = 0; i < f->graph_rest.count; i++) span_add(&graph, f->graph_rest.at[i].span);
    for (uint32_t i = 0; i < f->weight.count; i++)
        if (is_read(f, part, f->weight.at[i].name)) span_add(&graph, f->weight.at[i].span);
    for (uint32_t i = 0; i < part->inputs; i++) value_write(&graph, INPUT, f, &part->input[i]);
    for (uint32_t i = 0; i < part->outputs; i++) value_write(&graph, OUTPUT, f, &part->output[i]);
    for (uint32_t i = 0; i < f->rest.count; i++) span_add(&model, f->rest.at[i].span);
    kept_message(&model, GRAPH, &graph);
    const bool is_good = save(&model, path);
    free(model.at);
    return is_good;
}

bool onnx_file_write_all(const onnx_file *f, const char *path)
{
    uint32_t outputs = 0;
    bool *all = cli_alloc(f->nodes, sizeof *all);
    onnx_typed *input = cli_alloc(f->input.count, sizeof *input), *output = NULL;
    for (uint32_t i = 0; i < f->input.count; i++) input[i].name = f->input.at[i].name;
    for (uint32_t i = 0; i < f->nodes; i++) outputs += f->node[i].out.count;
    output = cli_alloc((size_t)outputs + f->output.count, sizeof *output);
    outputs = 0;
    for (uint32_t i = 0; i < f->output.count; i++) output[outputs++].name = f->output.at[i].name;
    for (uint32_t i = 0; i < f->nodes; i++) {
        all[i] = true;
        for (uint32_t k = 0; k < f->node[i].out.count; k++) {
            const char *name = f->node[i].out.at[k];
            if (*name && !onnx_values_find(&f->output, name) && onnx_file_is_tensor(f, &f->node[i], name))
                output[outputs++].name = name;
        }
    }
    const onnx_part part = {
        .is_kept = all, .input = input, .inputs = f->input.count, .output = output, .outputs = outputs
    };
    const bool is_good = onnx_file_write(f, &part, path);
    free(all);
    free(input);
    free(output);
    return is_good;
}

bool onnx_tensor_write(const sinter_tensor *t, const char *path)
{
    enum { DIMS = 1, TYPE = 2, RAW = 9 };
    kept_text bytes = { 0 };
    for (uint32_t i = 0; i < t->rank; i++) number(&bytes, DIMS, (uint64_t)t->dim[i]);
    number(&bytes, TYPE, onnx_type(t->dtype));
    message(&bytes, RAW, t->data, sinter_tensor_size(t));
    const bool is_good = save(&bytes, path);
    free(bytes.at);
    return is_good;
}
