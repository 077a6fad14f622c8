/* SPDX-License-Identifier: Apache-2.0 */
/* export_file.c - a model into a file, with its external data beside it. */
#include "onnx/export.h"

#include "base/os.h"

#include <string.h>

static const os_file_kind model_kind = ONNX_FILE_KIND;

/* A file being written; where the target is a FIFO or a device, its bytes. */
typedef struct target {
    env *e;
    const char *path;
    const os_file_kind *kind;
    os_output *file;
    uint64_t at;
    uint8_t *bytes;
    size_t capacity;
} target;

static sinter_status target_put(void *user, const void *data, size_t size)
{
    target *t = user;
    if (t->file) {
        TRY(os_output_put(t->e, t->file, t->at, data, size));
    } else {
        const size_t wanted = size_add((size_t)t->at, size);
        if (wanted > t->capacity) {
            const size_t capacity = wanted > SIZE_MAX / 2 ? wanted : wanted * 2;
            uint8_t *grown = mem_resize(t->e, t->bytes, t->capacity, capacity, 1);
            if (!grown) return FAIL_MEMORY(t->e, "a model");
            t->bytes = grown;
            t->capacity = capacity;
        }
        memcpy(t->bytes + t->at, data, size);
    }
    t->at += size;
    return SINTER_OK;
}

static sinter_status target_open(target *t)
{
    return os_output_open(t->e, t->path, t->kind, &t->file);
}

static sinter_status target_done(target *t)
{
    return t->file ? os_output_done(t->e, t->file) : os_file_write(t->e, t->path, t->kind, t->bytes, (size_t)t->at);
}

static void target_close(target *t)
{
    os_output_close(t->e, t->file);
    if (t->bytes) mem_free(t->e, t->bytes, t->capacity, 1);
}

/* More than this in constants does not go into one message with the rest. */
static bool is_large(const ir_graph *g)
{
    static const uint64_t most = (uint64_t)INT32_MAX - (1u << 26);
    uint64_t all = 0;
    for (ir_value_id v = 1; v < g->value.count; v++)
        if (g->value.at[v].data && g->value.at[v].use_count) all += g->value.at[v].data_size;
    return all > most;
}

sinter_status onnx_write_file(env *e, const ir_graph *g, const onnx_write_options *options, bool is_external,
                              const char *path)
{
    enum { DATA_MIN = 1024 };
    onnx_write_options o = options ? *options : (onnx_write_options){ 0 };
    arena names;
    arena_init(&names, e);
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    if (!o.data_name && (is_external || is_large(g))) {
        o.data_name = arena_printf(&names, "%s.data", base);
        if (!o.data_min) o.data_min = DATA_MIN;
    }
    target model = { .e = e, .path = path, .kind = &model_kind }, data = { .e = e };
    if (o.data_name) data.path = arena_printf(&names, "%.*s%s", (int)(base - path), path, o.data_name);
    const onnx_sink to = { target_put, &model }, data_to = { target_put, &data };
    sinter_status s = names.failed ? FAIL_MEMORY(e, "a path") : target_open(&model);
    if (s == SINTER_OK && data.path) s = target_open(&data);
    if (s == SINTER_OK) s = onnx_write(e, g, &o, &to, data.path ? &data_to : NULL);
    if (s == SINTER_OK && data.path) s = target_done(&data);
    if (s == SINTER_OK) s = target_done(&model);
    target_close(&data);
    target_close(&model);
    arena_deinit(&names);
    return s;
}
