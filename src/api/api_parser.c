/* SPDX-License-Identifier: Apache-2.0 */
/* api_parser.c - the parser of sinter/network.h. */
#include "base/os.h"
#include "network/network_parse.h"

#include <string.h>

sinter_status sinter_parser_create(sinter_network *net, sinter_parser **out, sinter_error *error)
{
    env *e = network_env(net, error);
    if (!e) return SINTER_INVALID_ARG;
    if (!out) return FAIL(e, INVALID_ARG, "out is NULL");
    *out = NULL;
    sinter_parser *p = mem_zalloc(e, sizeof *p, _Alignof(sinter_parser));
    if (!p) return FAIL_MEMORY(e, "a parser");
    p->net = net;
    arena_init(&p->a, e);
    *out = p;
    return SINTER_OK;
}

void sinter_parser_destroy(sinter_parser *p)
{
    if (!p) return;
    env *e = network_env(p->net, NULL);
    arena_deinit(&p->a);
    if (e) mem_free(e, p, sizeof *p, _Alignof(sinter_parser));
}

static env *parser_env(const sinter_parser *p, sinter_error *error)
{
    return network_env(p ? p->net : NULL, error);
}

sinter_status sinter_parser_parse_memory(sinter_parser *p, const void *model, size_t size, sinter_error *error)
{
    env *e = parser_env(p, error);
    if (!e) return SINTER_INVALID_ARG;
    if (!model) return FAIL(e, INVALID_ARG, "model is NULL");
    uint8_t *copy = arena_alloc(&p->net->a, size, 64);
    if (!copy) return FAIL_MEMORY(e, "a model");
    memcpy(copy, model, size);
    return parse_model(p, e, copy, size, NULL);
}

/* The mapping of a file joins those of external data: all end with the network. */
static sinter_status keep_file(sinter_network *net, env *e, const os_file *file)
{
    onnx_files *files = &net->files;
    if (files->count == files->capacity) {
        const uint32_t capacity = files->capacity ? files->capacity * 2 : 4;
        onnx_file *at =
            mem_resize(e, files->at, files->capacity * sizeof *at, capacity * sizeof *at, _Alignof(onnx_file));
        if (!at) return FAIL_MEMORY(e, "a file");
        files->at = at;
        files->capacity = capacity;
    }
    char *name = mem_zalloc(e, 1, 1);
    if (!name) return FAIL_MEMORY(e, "a file");
    files->at[files->count++] = (onnx_file){ .name = name, .name_size = 1, .file = *file };
    return SINTER_OK;
}

sinter_status sinter_parser_parse_file(sinter_parser *p, const char *path, sinter_error *error)
{
    env *e = parser_env(p, error);
    os_file file = { 0 };
    if (!e) return SINTER_INVALID_ARG;
    if (!path) return FAIL(e, INVALID_ARG, "path is NULL");
    TRY(NOTE(e, os_file_map(e, path, &file), "parsing '%s'", path));
    const char *slash = strrchr(path, '/');
    const char *folder = slash ? arena_text(&p->net->a, path, slash == path ? 1 : (size_t)(slash - path))
                               : arena_text(&p->net->a, ".", 1);
    sinter_status s = folder ? keep_file(p->net, e, &file) : FAIL_MEMORY(e, "a path");
    if (s) {
        os_file_close(e, &file);
        return s;
    }
    return NOTE(e, parse_model(p, e, file.data, file.size, folder), "parsing '%s'", path);
}

uint32_t sinter_parser_error_count(const sinter_parser *p)
{
    return p ? p->problem.count : 0;
}

sinter_status sinter_parser_error_at(const sinter_parser *p, uint32_t index, sinter_parser_error *out)
{
    if (!p || !out || index >= p->problem.count) return SINTER_INVALID_ARG;
    const network_problem *x = &p->problem.at[index];
    *out = (sinter_parser_error){ x->status, x->node, x->name, x->type, x->message };
    return SINTER_OK;
}

void sinter_parser_clear_errors(sinter_parser *p)
{
    if (p) p->problem.count = 0;
}

uint32_t sinter_parser_subgraph_count(const sinter_parser *p)
{
    return p ? p->first.count : 0;
}

sinter_status sinter_parser_subgraph(const sinter_parser *p, uint32_t index, uint32_t *node, uint32_t capacity,
                                     uint32_t *count, uint32_t *is_supported)
{
    if (!p || index >= p->first.count || (capacity && !node)) return SINTER_INVALID_ARG;
    const uint32_t from = p->first.at[index], to = index + 1 < p->first.count ? p->first.at[index + 1] : p->node_count;
    for (uint32_t i = from; i < to && i - from < capacity; i++) node[i - from] = p->order[i];
    if (count) *count = to - from;
    if (is_supported) *is_supported = !p->is_bad[p->order[from]];
    return SINTER_OK;
}
