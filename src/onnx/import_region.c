/* SPDX-License-Identifier: Apache-2.0 */
/* import_region.c - subgraphs: what they read from around them, regions of their own or nodes in their place, and the
 * sequences that exist only while a model is read. */
#include "onnx/importer.h"
#include "onnx/quirks.h"

#include <string.h>

/* Where the table has, or would have, 1 + the index of `v`. There is room. */
static uint32_t *place_of(const call_captures *x, ir_value_id v)
{
    uint32_t i = v * UINT32_C(2654435761) & (x->places - 1);
    while (x->place[i] && x->at[x->place[i] - 1] != v) i = (i + 1) & (x->places - 1);
    return &x->place[i];
}

static bool places_grow(onnx_call *c, call_captures *x)
{
    const uint32_t count = x->places ? x->places * 2 : 16;
    x->place = count > x->places ? ARENA_NEW(&c->im->a, uint32_t, count) : NULL;
    x->places = x->place ? count : 0;
    for (uint32_t k = 0; k < x->count && x->place; k++) *place_of(x, x->at[k]) = k + 1;
    if (!x->place) REJECT(c, NO_MEMORY, "out of memory for a subgraph");
    return x->place != NULL;
}

static void capture_value(onnx_call *c, ir_value_id v, call_captures *captures)
{
    const call_list *l = call_list_at(c, v);
    const call_strings *s = call_strings_at(c, v);
    if (s) v = s->number ? s->number : s->bytes;
    if (l && l->has) {
        capture_value(c, l->has, captures);
        capture_value(c, l->inner, captures);
    }
    for (uint32_t i = 0; l && i < l->count; i++) capture_value(c, l->item[i], captures); /* holds tensors alone */
    if (name_is_list(v) || !v || ir_is_const(c->b.g, v)) return;
    if (captures->count >= captures->places / 2 && !places_grow(c, captures)) return;
    uint32_t *place = place_of(captures, v);
    ir_value_id *slot = *place ? NULL : VEC_PUSH(&c->im->a, captures);
    if (!slot) return;
    *slot = v;
    *place = captures->count;
}

void call_capture(onnx_call *c, const onnx_graph *graph, call_captures *captures)
{
    const onnx_names *names = &graph->reads;
    for (uint32_t i = 0; i < names->count && !c->b.status; i++) {
        ir_value_id v = 0;
        uint32_t mark = 0;
        c->b.status = scope_find(c->im, c->scope, names->at[i], &v, &mark);
        capture_value(c, v, captures);
    }
}

static ir_value_id captured(const call_captures *captures, const ir_value_id *param, ir_value_id v)
{
    const uint32_t place = param && captures->count ? *place_of(captures, v) : 0;
    return place ? param[place - 1] : v;
}

/* A value from outside as the region has it: text and lists of its own parameters. */
static ir_value_id inside(onnx_call *c, const call_captures *captures, const ir_value_id *param, ir_value_id v)
{
    const call_strings *s = call_strings_at(c, v);
    if (!param || (s && !s->number && !s->bytes)) return v;
    if (s) {
        call_strings copy = *s;
        if (s->number) copy.number = captured(captures, param, s->number);
        else copy.bytes = captured(captures, param, s->bytes);
        const ir_value_id made = call_strings_new(c->im, &copy);
        if (!made) REJECT(c, NO_MEMORY, "out of memory for text");
        return made;
    }
    if (!call_list_at(c, v)) return captured(captures, param, v);
    const call_list l = *call_list_at(c, v);
    if (l.has) return call_optional_new(c, inside(c, captures, param, l.inner), captured(captures, param, l.has));
    ir_value_id *item = ARENA_NEW(&c->im->a, ir_value_id, l.count);
    for (uint32_t k = 0; item && k < l.count; k++) item[k] = inside(c, captures, param, l.item[k]);
    return call_list_new(c, item, item ? l.count : 0, l.is_none);
}

/* The names that the graph reads from around it, as seen inside: constants as they are, captures as parameters. */
static sinter_status captured_names(onnx_call *c, onnx_scope *inner, const onnx_graph *graph,
                                    const call_captures *captures, const ir_value_id *param)
{
    const onnx_names names = graph->reads;
    for (uint32_t i = 0; i < names.count; i++) {
        ir_value_id v = 0;
        uint32_t mark = 0;
        TRY(scope_find(c->im, c->scope, names.at[i], &v, &mark));
        if (!v && !mark) continue; /* unknown: whoever reads it says so */
        const uint32_t value = mark ? mark : inside(c, captures, param, v);
        TRY(c->b.status);
        TRY(scope_set(c->im, inner, names.at[i], value));
    }
    return SINTER_OK;
}

/* A name's value as a result of the region. */
static sinter_status result_of(onnx_call *c, onnx_scope *inner, ir_region_id region, const char *name, bool is_reported)
{
    importer *im = c->im;
    ir_value_id v = 0;
    uint32_t mark = 0;
    TRY(scope_find(im, inner, name, &v, &mark));
    if (!v && !is_reported) return FAIL(im->e, INVALID_MODEL, "output '%s' of a subgraph is made by no node", name);
    if (!v) return FAIL(im->e, UNSUPPORTED, "its subgraph cannot be imported");
    im->wants_tail = im->wants_tail || name_is_list(v);
    if (name_is_list(v))
        return FAIL(im->e, UNSUPPORTED, "its subgraph gives a sequence or text that is made while the model runs");
    ir_result(c->b.g, region, v);
    return SINTER_OK;
}

/* Nodes from behind the if, once more in its branch: they read the branch's results under the names of the if's. */
static sinter_status tail_fill(onnx_call *c, onnx_scope *branch, const onnx_graph *graph, const call_captures *captures,
                               const ir_value_id *param, const call_tail *tail)
{
    importer *im = c->im;
    const uint32_t problems = im->problem_count;
    onnx_scope behind = { .parent = c->scope,
                          .graph = c->scope->graph,
                          .frame = c->scope->frame,
                          .region = branch->region,
                          .depth = branch->depth,
                          .names = { .a = &im->a },
                          .wanted = tail->exports };
    for (uint32_t i = 0; i < c->node->out.count && i < graph->out.count; i++) {
        ir_value_id v = 0;
        uint32_t mark = 0;
        if (!c->node->out.at[i][0]) continue;
        TRY(scope_find(im, branch, graph->out.at[i].name, &v, &mark));
        if (v || mark) TRY(scope_set(im, &behind, c->node->out.at[i], v ? v : mark));
    }
    TRY(captured_names(c, &behind, &tail->graph, captures, param));
    TRY(scope_convert(im, &behind, &tail->graph.node));
    for (uint32_t i = 0; i < tail->exports.count; i++)
        TRY(result_of(c, &behind, branch->region, tail->exports.at[i], im->problem_count != problems));
    return SINTER_OK;
}

static sinter_status region_fill(onnx_call *c, const onnx_graph *graph, ir_region_id region, const ir_value *param,
                                 uint32_t count_param, const call_captures *captures, const call_tail *tail)
{
    importer *im = c->im;
    ir_graph *g = c->b.g;
    onnx_scope inner = { .parent = c->scope,
                         .graph = graph,
                         .frame = c->scope->frame,
                         .region = region,
                         .depth = c->scope->depth + 1,
                         .names = { .a = &im->a } };
    if (inner.depth >= im->e->limits.depth_max)
        return FAIL(im->e, UNSUPPORTED, "functions and subgraphs nest deeper than %llu, the limit depth_max",
                    (unsigned long long)im->e->limits.depth_max);
    if (graph->in.count != count_param)
        return FAIL(im->e, INVALID_MODEL, "a subgraph has %u inputs, %u are wanted", graph->in.count, count_param);
    ir_value_id *id = ARENA_NEW(&im->a, ir_value_id, captures->count);
    if (!id) return FAIL_MEMORY(im->e, "a subgraph");
    for (uint32_t i = 0; i < count_param; i++) {
        const char *name = graph->in.at[i].name;
        const ir_value_id v =
            ir_param(g, region, arena_text(&g->a, name, strlen(name)), param[i].dtype, param[i].rank, param[i].dim);
        if (!v) return FAIL_MEMORY(im->e, "a subgraph");
        TRY(scope_set(im, &inner, name, v));
    }
    for (uint32_t i = 0; i < captures->count; i++) {
        const ir_value from = *ir_value_at(g, captures->at[i]);
        id[i] = ir_param(g, region, from.name, from.dtype, from.rank, from.dim);
        if (!id[i]) return FAIL_MEMORY(im->e, "a subgraph");
        ir_value_at(g, id[i])->shape_value = from.shape_value;
        ir_value_at(g, id[i])->shape_count = from.shape_count;
    }
    TRY(scope_add_initializers(im, &inner, graph));
    TRY(captured_names(c, &inner, graph, captures, id));
    const uint32_t problems = im->problem_count;
    TRY(scope_wants(im, &inner, graph));
    TRY(scope_convert(im, &inner, &graph->node));
    if (tail) return im->problem_count == problems ? tail_fill(c, &inner, graph, captures, id, tail) : SINTER_OK;
    for (uint32_t i = 0; i < graph->out.count; i++)
        TRY(result_of(c, &inner, region, graph->out.at[i].name, im->problem_count != problems));
    return SINTER_OK;
}

ir_region_id call_region(onnx_call *c, const onnx_graph *graph, ir_node_id owner, const ir_value *param,
                         uint32_t count_param, const call_captures *captures, const call_tail *tail)
{
    if (c->b.status) return 0;
    const ir_region_id region = ir_region_new(c->b.g, owner);
    if (!region) {
        c->b.status = FAIL_MEMORY(c->e, "a subgraph");
        return 0;
    }
    c->b.status = region_fill(c, graph, region, param, count_param, captures, tail);
    return region;
}

void call_inline(onnx_call *c, const onnx_graph *graph, const ir_value_id *in, uint32_t count_in, ir_value_id *out,
                 uint32_t count_out)
{
    if (c->b.status) return;
    importer *im = c->im;
    onnx_scope inner = { .parent = c->scope,
                         .graph = graph,
                         .frame = c->scope->frame,
                         .region = c->b.region,
                         .depth = c->scope->depth + 1,
                         .names = { .a = &im->a } };
    const call_captures none = { 0 };
    if (inner.depth >= c->e->limits.depth_max) REJECT(c, UNSUPPORTED, "functions and subgraphs nest too deep");
    if (graph->in.count != count_in)
        REJECT(c, INVALID_MODEL, "a subgraph has %u inputs, %u are wanted", graph->in.count, count_in);
    if (graph->out.count != count_out)
        REJECT(c, INVALID_MODEL, "a subgraph gives %u results, %u are wanted", graph->out.count, count_out);
    for (uint32_t i = 0; i < count_in && !c->b.status; i++)
        c->b.status = scope_set(im, &inner, graph->in.at[i].name, in[i]);
    if (!c->b.status) c->b.status = scope_add_initializers(im, &inner, graph);
    if (!c->b.status) c->b.status = captured_names(c, &inner, graph, &none, NULL);
    if (!c->b.status) c->b.status = scope_wants(im, &inner, graph);
    if (!c->b.status) c->b.status = scope_convert(im, &inner, &graph->node);
    for (uint32_t i = 0; i < count_out && !c->b.status; i++) {
        ir_value_id v = 0;
        uint32_t mark = 0;
        c->b.status = scope_find(im, &inner, graph->out.at[i].name, &v, &mark);
        if (!v && !mark)
            REJECT(c, INVALID_MODEL, "output '%s' of a subgraph is made by no node", graph->out.at[i].name);
        if (mark && count_in) REJECT(c, UNSUPPORTED, "its subgraph cannot be imported");
        out[i] = mark ? mark : v;
    }
}

/* ---- what is learned of subgraphs ---- */

void importer_enter(importer *im)
{
    if (im->control_depth++ == 0) importer_forget(im);
}

void importer_leave(importer *im)
{
    im->control_depth--;
}

void importer_forget(importer *im)
{
    im->control_round++;
}

learned *importer_learned(importer *im, const onnx_graph *graph)
{
    if (!im->learned) im->learned = ARENA_NEW(&im->a, learned, (size_t)im->model.graph_count + 1);
    if (!im->learned) return NULL;
    learned *l = &im->learned[graph->id];
    if (l->round != im->control_round) *l = (learned){ .round = im->control_round };
    return l;
}

/* ---- sequences ---- */

ir_value_id call_list_new(onnx_call *c, const ir_value_id *item, uint32_t count, bool is_none)
{
    importer *im = c->im;
    if (c->b.status) return 0;
    ir_value_id *copy = ARENA_NEW(&im->a, ir_value_id, count);
    call_list *l = im->list.count < NAME_INDEX - 2 ? VEC_PUSH(&im->a, &im->list) : NULL;
    if (!copy || !l) {
        c->b.status = FAIL_MEMORY(c->e, "a sequence");
        return 0;
    }
    if (count) memcpy(copy, item, count * sizeof *copy);
    *l = (call_list){ .is_none = is_none, .count = count, .item = copy };
    return NAME_LIST | (im->list.count - 1);
}

static const call_list *entry_of(const onnx_call *c, ir_value_id v)
{
    return name_is_list(v) && (v & NAME_INDEX) < c->im->list.count ? &c->im->list.at[v & NAME_INDEX] : NULL;
}

ir_value_id call_optional_new(onnx_call *c, ir_value_id inner, ir_value_id has)
{
    double known = 0;
    if (!c->b.status && ir_const_scalar(c->b.g, has, &known))
        return known != 0 ? inner : call_list_new(c, NULL, 0, true);
    const ir_value_id id = call_list_new(c, NULL, 0, false);
    if (c->b.status) return 0;
    c->im->list.at[id & NAME_INDEX].has = has;
    c->im->list.at[id & NAME_INDEX].inner = inner;
    return id;
}

ir_value_id call_maps_new(onnx_call *c, ir_value_id values, ir_value_id keys)
{
    const ir_value_id id = call_list_new(c, &values, 1, false);
    if (!c->b.status) c->im->list.at[id & NAME_INDEX].keys = keys;
    return id;
}

const call_list *call_list_at(const onnx_call *c, ir_value_id v)
{
    const call_list *l = entry_of(c, v);
    return l && !l->strings ? l : NULL;
}

const call_strings *call_strings_at(const onnx_call *c, ir_value_id v)
{
    const call_list *l = entry_of(c, v);
    return l ? l->strings : NULL;
}
