/* SPDX-License-Identifier: Apache-2.0 */
/* graph_written.c - a graph becomes an ONNX model and a graph again. */
#include "graph_eval.h"

#include "onnx/export.h"
#include "onnx/import.h"

#include <string.h>

typedef struct written {
    arena *a;
    VEC(uint8_t) byte;
} written;

static sinter_status put(void *user, const void *data, size_t size)
{
    written *w = user;
    while (w->byte.count + size > w->byte.capacity) {
        if (!arena_vec_grow(w->a, (void **)&w->byte.at, &w->byte.capacity, 1, w->byte.count))
            return FAIL_MEMORY(w->a->e, "a model");
    }
    memcpy(w->byte.at + w->byte.count, data, size);
    w->byte.count += (uint32_t)size;
    return SINTER_OK;
}

sinter_status graph_written(const ir_graph *g, arena *a, ir_graph **out)
{
    written w = { .a = a };
    const onnx_sink to = { put, &w };
    *out = NULL;
    TRY(onnx_write(g->e, g, NULL, &to, NULL));
    return onnx_import(g->e, NULL, w.byte.at, w.byte.count, out);
}
