/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - the driver: nodes one by one through the table, functions, outputs.
 *
 * A node that cannot be converted poisons its outputs and the import goes on, so that everything wrong with a model is
 * said at once. Only exhaustion stops it. */
#include "onnx/importer.h"
#include "onnx/quirks.h"
#include "ops/plugin.h"

#include <string.h>

enum { OUT_SPARE = 8 };

sinter_status importer_tensor(importer *im, const onnx_tensor *t, view *out)
{
    enum { SMALL = 1 << 16 };
    const uint8_t *bytes;
    size_t size = 0;
    const bool stays = !t->is_external || im->files != &im->files_own; /* else the mapping ends with the import */
    TRY(onnx_tensor_find(im->e, im->options->folder, im->files, t, out, &bytes, &size));
    if (!bytes || (stays && size < SMALL))
        return onnx_tensor_decode(im->e, &im->g->a, im->options->folder, im->files, t, out);
    if (stays && onnx_tensor_in_place(out, bytes, size)) return SINTER_OK;
    out->data = ir_blob(im->g, size);
    if (!out->data) return FAIL_MEMORY(im->e, "a tensor");
    memcpy(out->data, bytes, size);
    if (t->is_external || im->options->is_mapped) os_file_forget(bytes, size);
    return SINTER_OK;
}

sinter_status importer_sparse(importer *im, const onnx_sparse *t, view *out)
{
    return onnx_sparse_decode(im->e, &im->g->a, im->options->folder, im->files, t, out);
}

/* ---- problems ---- */
sinter_status importer_problem(importer *im, sinter_status status, const char *what)
{
    if (status == SINTER_OK) return SINTER_OK;
    if (status == SINTER_NO_MEMORY || im->a.failed || im->g->a.failed) return status;
    const char *reason = im->e->error->text;
    size_t length = strcspn(reason, "\n");
    for (size_t i = length; i > 1; i--) { /* without the place in our source, which each line gets anyway */
        if (reason[i - 1] != '[') continue;
        if (reason[i - 2] == ' ') length = i - 2;
        break;
    }
    if (length > 240) length = 240;
    char *line = arena_printf(&im->a, "%s: %.*s", what ? what : "", (int)length, reason);
    if (!line) return FAIL_MEMORY(im->e, "a message");
    env_log(im->e, LOG_IMPORT, "%s", line);
    if (im->problem_shown < COUNT_OF(im->problem)) im->problem[im->problem_shown++] = line;
    im->problem_count++;
    static const uint8_t weight[] = { [SINTER_UNSUPPORTED] = 1,
                                      [SINTER_IO] = 2,
                                      [SINTER_INVALID_ARG] = 3,
                                      [SINTER_INVALID_MODEL] = 4,
                                      [SINTER_INTERNAL] = 5 };
    const uint8_t w = (size_t)status < sizeof weight ? weight[status] : 0;
    if (!im->problem_status || w > weight[im->problem_status]) im->problem_status = status;
    im->e->error->status = SINTER_OK;
    im->e->error->length = 0;
    im->e->error->text[0] = 0;
    return SINTER_OK;
}

sinter_status importer_report(importer *im)
{
    if (!im->problem_count) return SINTER_OK;
    if (im->problem_count == 1) return env_fail(im->e, im->problem_status, __FILE__, __LINE__, "%s", im->problem[0]);
    const sinter_status s = env_fail(im->e, im->problem_status, __FILE__, __LINE__,
                                     "%u things in the model cannot be imported", im->problem_count);
    for (uint32_t i = 0; i < im->problem_shown && i < 30; i++)
        (void)NOTE(im->e, s, "while importing %s", im->problem[i]);
    return s;
}

/* ---- attributes, which functions may pass on ---- */
static const onnx_attr *attr_find(const onnx_node *n, const char *name)
{
    for (uint32_t i = 0; i < n->attr.count; i++)
        if (strcmp(n->attr.at[i].name, name) == 0) return &n->attr.at[i];
    return NULL;
}

const onnx_attr *call_attr(onnx_call *c, const char *name)
{
    const onnx_attr *a = attr_find(c->node, name);
    const onnx_frame *f = c->scope->frame;
    while (a && a->ref[0]) {
        if (!f) {
            REJECT(c, INVALID_MODEL, "attribute %s refers to '%s' outside of a function", name, a->ref);
            return NULL;
        }
        const onnx_attr *given = attr_find(f->call, a->ref);
        if (!given) {
            for (uint32_t i = 0; i < f->function->attr.count; i++)
                if (strcmp(f->function->attr.at[i].name, a->ref) == 0) return &f->function->attr.at[i];
            return NULL;
        }
        if (given->g) {
            REJECT(c, UNSUPPORTED, "attribute %s is a subgraph passed to a function", name);
            return NULL;
        }
        a = given;
        f = f->parent;
    }
    return a;
}

/* ---- nodes ---- */
static const char *domain_of(const char *domain)
{
    return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

static int64_t version_of(const importer *im, const onnx_frame *f, const char *domain)
{
    const onnx_opsets *list = f && f->function->opset.count ? &f->function->opset : &im->model.opset;
    for (uint32_t i = 0; i < list->count; i++)
        if (strcmp(domain_of(list->at[i].domain), domain) == 0) return list->at[i].version;
    return 1;
}

static const char *key_of(importer *im, const char *domain, const char *name, const char *overload)
{
    const char *key = arena_printf(&im->a, "%s|%s|%s", domain, name, overload);
    return key ? key : "";
}

const op_row *importer_row(importer *im, const char *domain, const char *name, int64_t version, bool *is_known)
{
    uint32_t count = 0;
    const op_row *rows = op_rows(&count);
    const arena_mark mark = arena_save(&im->a);
    const uint32_t *first = name_map_find(&im->ops, key_of(im, domain, name, ""));
    arena_rewind(&im->a, mark);
    *is_known = first != NULL;
    if (!first) return NULL;
    for (uint32_t i = *first; i < count && strcmp(rows[i].name, name) == 0 && strcmp(rows[i].domain, domain) == 0; i++)
        if (version >= rows[i].since && (!rows[i].until || version <= rows[i].until)) return &rows[i];
    return NULL;
}

static const char *node_name(importer *im, const onnx_scope *s, const onnx_node *n)
{
    const char *path = s->frame ? s->frame->path : "";
    if (n->name[0]) return arena_printf(&im->g->a, "%s%s", path, n->name);
    return arena_printf(&im->g->a, "%s%s_%u", path, n->type, n->index);
}

void importer_name_nodes(importer *im, const char *name, uint32_t from)
{
    ir_graph *g = im->g;
    if (from == g->node.count) return;
    uint32_t *origin = ARENA_NEW(&g->a, uint32_t, 1);
    const char **slot = VEC_PUSH(&g->a, &g->origin_name);
    if (!name || !origin || !slot) return;
    *slot = name;
    *origin = g->origin_name.count - 1;
    for (uint32_t i = from; i < g->node.count; i++) {
        if (g->node.at[i].name) continue;
        g->node.at[i].name = name;
        g->node.at[i].origin = origin;
        g->node.at[i].count_origin = 1;
    }
}

static sinter_status function_expand(importer *im, onnx_scope *s, const onnx_node *n, const onnx_function *fn,
                                     const ir_value_id *in, const uint32_t *mark, uint32_t *out)
{
    if (s->depth + 1 >= im->e->limits.depth_max)
        return FAIL(im->e, UNSUPPORTED, "functions and subgraphs nest deeper than %llu, the limit depth_max",
                    (unsigned long long)im->e->limits.depth_max);
    for (const onnx_frame *f = s->frame; f; f = f->parent)
        if (f->function == fn) return FAIL(im->e, INVALID_MODEL, "function '%s' calls itself", fn->name);
    if (n->in.count > fn->in.count)
        return FAIL(im->e, INVALID_MODEL, "%u inputs for a function of %u", n->in.count, fn->in.count);
    if (n->out.count > fn->out.count)
        return FAIL(im->e, INVALID_MODEL, "%u outputs of a function of %u", n->out.count, fn->out.count);
    const char *name = n->name[0] ? n->name : n->type;
    const onnx_frame frame = { .parent = s->frame,
                               .function = fn,
                               .call = n,
                               .path = arena_printf(&im->a, "%s%s/", s->frame ? s->frame->path : "", name) };
    if (!frame.path) return FAIL_MEMORY(im->e, "a name");
    onnx_scope body = { .frame = &frame, .region = s->region, .depth = s->depth + 1, .names = { .a = &im->a } };
    for (uint32_t i = 0; i < fn->in.count; i++) {
        /* An absent input is the empty name inside too: value 0 says so. */
        const uint32_t value = i >= n->in.count ? 0 : mark[i] ? mark[i] : in[i];
        TRY(scope_set(im, &body, fn->in.at[i], value));
    }
    body.wanted = fn->out;
    TRY(scope_convert(im, &body, &fn->node));
    for (uint32_t i = 0; i < n->out.count; i++) {
        ir_value_id id = 0;
        uint32_t bad = 0;
        TRY(scope_find(im, &body, fn->out.at[i], &id, &bad));
        out[i] = bad ? bad : id ? id : NAME_MISSING;
    }
    return SINTER_OK;
}

sinter_status importer_run(importer *im, onnx_scope *s, const onnx_node *n, const op_row *row, int64_t version,
                           const ir_value_id *in, uint32_t *out)
{
    onnx_call c = { .im = im,
                    .scope = s,
                    .e = im->e,
                    .b = { .g = im->g, .region = s->region, .fold_max = FOLD_MAX },
                    .node = n,
                    .version = version,
                    .arg = row->arg,
                    .count_in = n->in.count,
                    .count_out = n->out.count,
                    .in = in,
                    .out = out };
    bool moves_text = false;
    for (uint32_t i = 0; i < n->in.count; i++) {
        if (!name_is_list(in[i])) continue;
        const call_strings *strings = call_strings_at(&c, in[i]);
        const bool is_text = strings != NULL;
        const bool takes_maps = row->takes_lists && *row->domain;
        if (!is_text && call_list_at(&c, in[i])->keys && !takes_maps)
            return FAIL(im->e, UNSUPPORTED, "input '%s' is a map, or a sequence of maps", n->in.at[i]);
        moves_text = moves_text || (is_text && row->text == TEXT_MOVED);
        if (is_text ? row->text == TEXT_NO : !row->takes_lists)
            return FAIL(im->e, UNSUPPORTED, "input '%s' is %s", n->in.at[i],
                        is_text ? "text" : "a sequence or optional");
    }
    if (moves_text) quirk_move_text(&c, row->convert);
    else row->convert(&c);
    return c.b.status;
}

/* Inputs by name. is_poisoned: something before this node failed, and has been reported. */
static sinter_status inputs_find(importer *im, onnx_scope *s, const onnx_node *n, ir_value_id *in, uint32_t *mark,
                                 bool *is_poisoned)
{
    for (uint32_t i = 0; i < n->in.count; i++) {
        if (!n->in.at[i][0]) continue;
        TRY(scope_find(im, s, n->in.at[i], &in[i], &mark[i]));
        if (mark[i] == NAME_POISONED) *is_poisoned = true;
    }
    for (uint32_t i = 0; i < n->in.count && !*is_poisoned; i++) {
        if (mark[i] == NAME_MISSING)
            return FAIL(im->e, UNSUPPORTED, "input '%s' is an output that its node is not supported to give",
                        n->in.at[i]);
        if (n->in.at[i][0] && !in[i] && !name_map_find(&s->names, n->in.at[i]))
            return FAIL(im->e, INVALID_MODEL, "input '%s' is made by no node", n->in.at[i]);
    }
    return SINTER_OK;
}

sinter_status importer_convert(importer *im, onnx_scope *s, const onnx_node *n, uint32_t *out)
{
    env *e = im->e;
    if (++im->node_count > im->node_max)
        return FAIL(e, NO_MEMORY, "the model has more than %llu nodes after functions are expanded: %s",
                    (unsigned long long)im->node_max,
                    im->node_max < e->limits.nodes_max ? "too many for a file of its size" : "the limit nodes_max");
    const char *domain = domain_of(n->domain);
    const int64_t version = version_of(im, s->frame, domain);
    const uint32_t *fn =
        im->functions.count ? name_map_find(&im->functions, key_of(im, domain, n->type, n->overload)) : NULL;
    bool is_known = false;
    const op_row *row = fn ? NULL : importer_row(im, domain, n->type, version, &is_known);
    const bool is_plugin = !fn && !row && plugin_is_known(e, n->type);
    if (!fn && !row && !is_plugin && !is_known) row = importer_row(im, ONNX_TENSORRT, n->type, 1, &is_known);
    if (!fn && !row && !is_plugin && strcmp(domain, "com.microsoft.nchwc") == 0)
        return FAIL(e, UNSUPPORTED,
                    "its data lie in blocks as one machine's ONNX Runtime has them: let that write the "
                    "model with ORT_ENABLE_EXTENDED, or less");
    if (!fn && !row && !is_plugin)
        return is_known ? FAIL(e, UNSUPPORTED, "this version of the operator is not supported")
                        : FAIL(e, UNSUPPORTED, "the operator is not supported");
    ir_value_id *in = ARENA_NEW(&im->a, ir_value_id, n->in.count);
    uint32_t *mark = ARENA_NEW(&im->a, uint32_t, n->in.count);
    if (!in || !mark) return FAIL_MEMORY(e, "a node");
    bool is_poisoned = false;
    TRY(inputs_find(im, s, n, in, mark, &is_poisoned));
    if (is_poisoned && !fn) {
        for (uint32_t i = 0; i < n->out.count; i++) out[i] = NAME_POISONED;
        return SINTER_OK;
    }
    if (fn) return function_expand(im, s, n, &im->model.function.at[*fn], in, mark, out);
    static const op_row plugin = { .name = "a plugin", .convert = quirk_plugin };
    return importer_run(im, s, n, is_plugin ? &plugin : row, version, in, out);
}

static sinter_status node_import(importer *im, onnx_scope *s, const onnx_node *n)
{
    ir_graph *g = im->g;
    const uint32_t node_first = g->node.count;
    uint32_t *out = ARENA_NEW(&im->a, uint32_t,
                              (size_t)n->out.count + OUT_SPARE); /* so that a conversion may fill what nobody named */
    if (!out) return FAIL_MEMORY(im->e, "a node");
    sinter_status status = importer_convert(im, s, n, out);
    if (node_first != g->node.count) importer_name_nodes(im, node_name(im, s, n), node_first);
    const bool failed = status != SINTER_OK;
    if (failed) {
        const char *what = arena_printf(
            &im->a, "node #%u '%s%s' (%s, %s %lld)", n->index, s->frame ? s->frame->path : "", n->name, n->type,
            domain_of(n->domain)[0] ? n->domain : "ai.onnx", (long long)version_of(im, s->frame, domain_of(n->domain)));
        TRY(importer_problem(im, status, what));
    }
    for (uint32_t i = 0; i < n->out.count; i++) {
        const char *name = n->out.at[i];
        if (!name[0]) continue;
        const uint32_t value = failed ? NAME_POISONED : out[i] ? out[i] : NAME_MISSING;
        ir_value *v = value < NAME_TENSOR ? ir_value_at(g, value) : NULL;
        /* What a function or an inlined branch made has an inner name; the outer one is the user's. */
        if (v && (!v->name || v->producer >= node_first)) v->name = arena_text(&g->a, name, strlen(name));
        TRY(NOTE(im->e, scope_set(im, s, name, value), "importing node #%u '%s' (%s)", n->index, n->name, n->type));
    }
    return g->a.failed || im->a.failed ? FAIL_MEMORY(im->e, "the graph") : SINTER_OK;
}

sinter_status scope_convert(importer *im, onnx_scope *s, const onnx_nodes *nodes)
{
    uint32_t *order = NULL, count = 0;
    TRY(scope_order(im, nodes, &order, &count));
    s->is_done = ARENA_NEW(&im->a, bool, count);
    if (!s->is_done) return FAIL_MEMORY(im->e, "the order of nodes");
    s->nodes = nodes;
    s->order = order;
    s->count = count;
    for (s->at = 0; s->at < count; s->at++)
        if (!s->is_done[s->at]) TRY(node_import(im, s, &nodes->at[order[s->at]]));
    return SINTER_OK;
}

sinter_status scope_convert_ahead(importer *im, onnx_scope *s, uint32_t place)
{
    const uint32_t at = s->at;
    const bool was_ahead = s->is_ahead;
    s->at = place;
    s->is_ahead = s->is_done[place] = true;
    const sinter_status status = node_import(im, s, &s->nodes->at[s->order[place]]);
    s->at = at;
    s->is_ahead = was_ahead;
    return status;
}

sinter_status scope_wants(importer *im, onnx_scope *s, const onnx_graph *graph)
{
    for (uint32_t i = 0; i < graph->out.count; i++) {
        const char **slot = VEC_PUSH(&im->a, &s->wanted);
        if (!slot) return FAIL_MEMORY(im->e, "names");
        *slot = graph->out.at[i].of ? graph->out.at[i].of : graph->out.at[i].name;
    }
    return SINTER_OK;
}

/* ---- outputs ---- */
/* An output has a value of its own under its own name, also where the model hands an input or a constant through. */
sinter_status importer_result(importer *im, onnx_scope *s, ir_value_id v, const char *name)
{
    ir_graph *g = im->g;
    if (name_is_list(v)) {
        onnx_call c = { .im = im, .scope = s, .e = im->e, .b = { .g = g, .region = IR_MAIN } };
        if (!im->list.at[v & NAME_INDEX].strings)
            return FAIL(im->e, UNSUPPORTED, "it is a sequence or optional, and the model does not say of what");
        v = quirk_text_bytes(&c, v);
        TRY(c.b.status);
    }
    const ir_value *x = ir_value_at(g, v);
    if (!x->producer || x->is_output || !x->name || strcmp(x->name, name) != 0) {
        ir_builder b = { .g = g, .region = IR_MAIN, .name = arena_text(&g->a, name, strlen(name)) };
        v = build_identity(&b, v);
        if (b.status) return b.status;
        ir_value_at(g, v)->name = b.name;
    }
    ir_result(g, IR_MAIN, v);
    return SINTER_OK;
}

static sinter_status output_import(importer *im, onnx_scope *s, const onnx_value_info *o)
{
    ir_value_id v = 0;
    uint32_t mark = 0;
    TRY(scope_find(im, s, o->of ? o->of : o->name, &v, &mark));
    if (mark == NAME_POISONED) return SINTER_OK;
    if (mark == NAME_MISSING) return FAIL(im->e, UNSUPPORTED, "its node is not supported to give it");
    if (!v) return FAIL(im->e, INVALID_MODEL, "it is made by no node");
    if (o->of) TRY(importer_output_part(im, s, o, &v));
    return importer_result(im, s, v, o->name);
}

sinter_status importer_tables(importer *im)
{
    uint32_t count = 0;
    const op_row *rows = op_rows(&count);
    im->ops.a = im->functions.a = &im->a;
    for (uint32_t i = 0; i < count; i++) {
        bool is_new;
        uint32_t *slot = name_map_add(&im->ops, key_of(im, rows[i].domain, rows[i].name, ""), &is_new);
        if (!slot) return FAIL_MEMORY(im->e, "the operator table");
        if (is_new) *slot = i;
    }
    for (uint32_t i = 0; i < im->model.function.count; i++) {
        const onnx_function *fn = &im->model.function.at[i];
        bool is_new;
        uint32_t *slot =
            name_map_add(&im->functions, key_of(im, domain_of(fn->domain), fn->name, fn->overload), &is_new);
        if (!slot) return FAIL_MEMORY(im->e, "functions");
        if (!is_new) return FAIL(im->e, INVALID_MODEL, "function '%s' is defined twice", fn->name);
        *slot = i;
    }
    return SINTER_OK;
}

static sinter_status model_import(importer *im, const uint8_t *bytes, size_t size)
{
    env *e = im->e;
    if (im->options->model) im->model = *im->options->model;
    else TRY(onnx_model_read(e, &im->a, bytes, size, &im->model));
    const onnx_graph *graph = &im->model.graph;
    const int64_t version = version_of(im, NULL, "");
    if (version < 1 || version > ONNX_OPSET_MAX)
        return FAIL(e, UNSUPPORTED, "the model uses opset %lld; 1 to %d are supported", (long long)version,
                    ONNX_OPSET_MAX);
    TRY(importer_tables(im));
    TRY(importer_ranges(im, graph));
    onnx_scope main_scope = { .graph = graph, .region = IR_MAIN, .names = { .a = &im->a } };
    TRY(scope_add_initializers(im, &main_scope, graph));
    for (uint32_t i = 0; i < graph->in.count; i++) {
        const onnx_value_info *v = &graph->in.at[i];
        const uint32_t *known = name_map_find(&main_scope.names, v->name);
        if (known && *known >= NAME_TENSOR && *known < NAME_LIST)
            continue; /* an initializer under an input's name: a constant, as before IR 4 */
        const sinter_status s = importer_input(im, &main_scope, v);
        if (s == SINTER_INVALID_ARG) return NOTE(e, s, "importing input '%s'", v->name);
        TRY(importer_problem(im, s, arena_printf(&im->a, "input '%s'", v->name)));
        bool is_new = false;
        uint32_t *slot = s ? name_map_add(&main_scope.names, v->of ? v->of : v->name, &is_new) : NULL;
        if (s && !slot) return FAIL_MEMORY(e, "names");
        if (is_new) *slot = NAME_POISONED;
    }
    TRY(scope_wants(im, &main_scope, graph));
    TRY(scope_convert(im, &main_scope, &graph->node));
    for (uint32_t i = 0; i < graph->out.count; i++)
        TRY(importer_problem(im, output_import(im, &main_scope, &graph->out.at[i]),
                             arena_printf(&im->a, "output '%s'", graph->out.at[i].name)));
    if (!graph->out.count) return FAIL(e, INVALID_MODEL, "the model has no outputs");
    TRY(importer_report(im));
    if (im->g->a.failed || dim_table_failed(im->g->dims)) return FAIL_MEMORY(e, "the graph");
    return SINTER_OK;
}

/* A few functions that call each other say a great deal in few bytes. */
static uint64_t node_max(const env *e, size_t size)
{
    const uint64_t most = size_add(1 << 16, size_mul(size, 64));
    return most < e->limits.nodes_max ? most : e->limits.nodes_max;
}

sinter_status onnx_import(env *e, const onnx_import_options *options, const uint8_t *bytes, size_t size, ir_graph **out)
{
    static const onnx_import_options defaults = { 0 };
    *out = NULL;
    importer im = { .e = e, .options = options ? options : &defaults, .node_max = node_max(e, size) };
    im.files = im.options->files ? im.options->files : &im.files_own;
    arena_init(&im.a, e);
    sinter_status s = ir_graph_create(e, &im.g);
    if (s == SINTER_OK) s = model_import(&im, bytes, size);
    if (s == SINTER_OK) s = ir_sweep(im.g);
    arena_deinit(&im.a);
    onnx_files_close(e, &im.files_own);
    if (s != SINTER_OK) {
        if (im.g) ir_graph_destroy(im.g);
        return s;
    }
    *out = im.g;
    return SINTER_OK;
}
