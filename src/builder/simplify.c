/* SPDX-License-Identifier: Apache-2.0 */
/* simplify.c - from a model to a smaller one: simplify.h has the contract. */
#include "builder/simplify.h"

#include "base/name_map.h"
#include "onnx/import.h"
#include "opt/pipeline.h"

#include <stdlib.h>
#include <string.h>

/* ---- counts of operators ---- */

typedef struct op_count {
    const char *name;
    uint64_t before, after;
} op_count;

typedef struct counts {
    arena *a;
    name_map names;
    VEC(op_count) op;
} counts;

static op_count *count_of(counts *c, const char *name)
{
    bool is_new = false;
    uint32_t *slot = name_map_add(&c->names, name, &is_new);
    op_count *op = slot && is_new ? VEC_PUSH(c->a, &c->op) : NULL;
    if (!slot || (is_new && !op)) return NULL;
    if (!is_new) return &c->op.at[*slot];
    *slot = c->op.count - 1;
    op->name = name;
    return op;
}

static void count_graph(counts *c, const onnx_graph *g, uint32_t depth)
{
    enum { DEPTH_MAX = 64 };
    for (uint32_t i = 0; i < g->node.count; i++) {
        const onnx_node *n = &g->node.at[i];
        const bool is_default = !*n->domain || strcmp(n->domain, "ai.onnx") == 0;
        const char *name = is_default ? n->type : arena_printf(c->a, "%s::%s", n->domain, n->type);
        op_count *op = name ? count_of(c, name) : NULL;
        if (op) op->before++;
        for (uint32_t k = 0; k < n->attr.count && depth < DEPTH_MAX; k++)
            if (n->attr.at[k].g) count_graph(c, n->attr.at[k].g, depth + 1);
    }
}

static void count_written(void *user, const char *type)
{
    op_count *op = count_of(user, type);
    if (op) op->after++;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const op_count *)a)->name, ((const op_count *)b)->name);
}

static void counts_tell(counts *c, const sinter_simplify_options *o)
{
    if (!o->counted) return;
    if (c->op.count) qsort(c->op.at, c->op.count, sizeof *c->op.at, by_name);
    for (uint32_t i = 0; i < c->op.count; i++)
        o->counted(o->user, c->op.at[i].name, c->op.at[i].before, c->op.at[i].after);
}

/* ---- what is read and written ---- */

/* Refuses inputs and outputs that are text or sequences. The library stores them as tensors of numbers, so the written
 * model would have other inputs and outputs. */
static sinter_status check_faces(env *e, const onnx_values *list, const char *what)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->at[i].part != ONNX_WHOLE)
            return FAIL(e, UNSUPPORTED,
                        "%s '%s' is text, a sequence or an optional: a simplified model has tensors of "
                        "numbers alone",
                        what, list->at[i].of ? list->at[i].of : list->at[i].name);
    return SINTER_OK;
}

static sinter_status shapes_read(env *e, arena *a, const sinter_simplify_options *o, onnx_import_options *to)
{
    onnx_input_shape *list = ARENA_NEW(a, onnx_input_shape, (size_t)o->shape_count + 1);
    if (!list) return FAIL_MEMORY(e, "shapes");
    for (uint32_t i = 0; i < o->shape_count; i++) {
        const sinter_shape_range *r = &o->shape[i];
        if (!r->input || r->rank > SINTER_RANK_MAX)
            return FAIL(e, INVALID_ARG, "shape %u names no input, or has rank %u (at most %d)", i, r->rank,
                        SINTER_RANK_MAX);
        list[i].name = r->input;
        list[i].rank = r->rank;
        memcpy(list[i].min, r->min, sizeof list[i].min);
        memcpy(list[i].opt, r->opt, sizeof list[i].opt);
        memcpy(list[i].max, r->max, sizeof list[i].max);
    }
    to->shape = list;
    to->count_shape = o->shape_count;
    return SINTER_OK;
}

static sinter_status optimize(env *e, ir_graph *g, const sinter_simplify_options *o)
{
    const opt_options options = { .math = OPT_MATH_FP32, .disabled = o->skip_rules, .is_portable = true };
    if (o->skip_rules) TRY(opt_rules_check(e, o->skip_rules));
    if (o->skip_optimization) return ir_sweep(g);
    TRY(NOTE(e, opt_run(e, g, &options), "simplifying the graph"));
    return ir_sweep(g);
}

static sinter_status simplify(env *e, arena *a, const build_model *m, const sinter_simplify_options *o,
                              const simplify_change *change, onnx_files *files, const char *path, const onnx_sink *to)
{
    onnx_model model;
    ir_graph *g = NULL;
    counts count = { .a = a, .names = { .a = a } };
    TRY(onnx_model_read(e, a, m->bytes, m->size, &model));
    count_graph(&count, &model.graph, 0);
    TRY(check_faces(e, &model.graph.in, "input"));
    TRY(check_faces(e, &model.graph.out, "output"));
    onnx_import_options options = { .model = &model, .folder = m->folder, .files = files };
    TRY(shapes_read(e, a, o, &options));
    TRY(onnx_import(e, &options, m->bytes, m->size, &g));
    sinter_status s = optimize(e, g, o);
    if (s == SINTER_OK && change) s = change->run(change->user, e, g);
    int64_t opset = 0;
    for (uint32_t i = 0; i < model.opset.count; i++)
        if (!*model.opset.at[i].domain || strcmp(model.opset.at[i].domain, "ai.onnx") == 0)
            opset = model.opset.at[i].version;
    const onnx_write_options write = { .opset = o->opset,
                                       .opset_min = opset,
                                       .graph_name = *model.graph.name ? model.graph.name : NULL,
                                       .unfold_min = o->skip_constant_folding ? 1 : (size_t)o->no_large_tensor,
                                       .unfold_all = o->skip_constant_folding != 0,
                                       .counted = count_written,
                                       .count_user = &count };
    if (s == SINTER_OK)
        s = path ? onnx_write_file(e, g, &write, o->external_data != 0, path) : onnx_write(e, g, &write, to, NULL);
    ir_graph_destroy(g);
    if (a->failed) return FAIL_MEMORY(e, "counts of operators");
    if (s == SINTER_OK) counts_tell(&count, o);
    return s;
}

sinter_status simplify_model(env *e, const build_model *m, const sinter_simplify_options *o,
                             const simplify_change *change, const char *path, const onnx_sink *to)
{
    arena a;
    onnx_files files = { 0 };
    arena_init(&a, e);
    const sinter_status s = simplify(e, &a, m, o, change, &files, path, to);
    arena_deinit(&a);
    onnx_files_close(e, &files);
    return s;
}
