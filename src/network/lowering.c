/* SPDX-License-Identifier: Apache-2.0 */
/* lowering.c - a network becomes a graph: inputs, then layers in the order in which they read each other, then outputs.
 *
 * The importer of src/onnx does what is not special to networks: inputs with ranges and promised values, conversions of
 * operators, names of nodes, the list of everything that is wrong. A failed layer makes those that read it fail
 * silently, so that each failure is reported once. */
#include "network/lowering.h"

#include <string.h>

_Static_assert((int)ATTR_INTS_MAX == (int)SINTER_PARAM_INTS_MAX, "lists of parameters are lists of attributes");

enum { OUT_SPARE = 8 };

/* ---- the inputs ---- */

sinter_status network_face(const sinter_network *net, env *e, arena *a, onnx_model *out)
{
    *out = (onnx_model){ .ir_version = 10, .producer = "", .has_graph = true };
    onnx_opset *opset = VEC_PUSH(a, &out->opset);
    if (!opset) return FAIL_MEMORY(e, "a network");
    *opset = (onnx_opset){ "", ONNX_OPSET_MAX };
    out->graph.name = net->name;
    for (uint32_t i = 0; i < net->input.count; i++) {
        const sinter_network_tensor *t = net->input.at[i];
        onnx_value_info *v = VEC_PUSH(a, &out->graph.in);
        if (!v) return FAIL_MEMORY(e, "a network");
        *v = (onnx_value_info){
            .name = t->name,
            .has_type = true,
            .is_tensor = true,
            .has_shape = true,
            .type = onnx_dtype_to(t->dtype),
            .rank = t->rank,
        };
        for (uint32_t k = 0; k < t->rank; k++)
            v->dim[k] = (onnx_dim){ .has_value = t->dim[k] >= 0,
                                    .value = t->dim[k],
                                    .param = t->dim_name[k] ? t->dim_name[k] : "" };
    }
    return SINTER_OK;
}

static sinter_status inputs_make(lowering *l)
{
    importer *im = &l->im;
    TRY(importer_tables(im));
    TRY(importer_ranges(im, &im->model.graph));
    TRY(context_room(&l->main));
    for (uint32_t i = 0; i < im->model.graph.in.count; i++) {
        const onnx_value_info *v = &im->model.graph.in.at[i];
        TRY(NOTE(l->e, importer_input(im, &l->main.scope, v), "making input '%s'", v->name));
        const uint32_t *value = name_map_find(&l->main.scope.names, v->name);
        l->main.value[l->net->input.at[i]->id] = value ? *value : 0;
    }
    return SINTER_OK;
}

sinter_status lowering_begin(sinter_network *net, env *e, const onnx_import_options *options, lowering **out)
{
    *out = NULL;
    lowering *l = mem_zalloc(e, sizeof *l, _Alignof(lowering));
    if (!l) return FAIL_MEMORY(e, "a network's graph");
    l->e = e;
    l->net = net;
    l->is_flat = !options;
    if (options) l->options = *options;
    l->im = (importer){ .e = e, .options = &l->options, .node_max = e->limits.nodes_max };
    l->im.files = &l->im.files_own;
    arena_init(&l->im.a, e);
    l->main = (context){ .l = l, .region = IR_MAIN, .scope = { .region = IR_MAIN, .names = { .a = &l->im.a } } };
    sinter_status s = ir_graph_create(e, &l->im.g);
    if (s == SINTER_OK) s = network_face(net, e, &l->im.a, &l->im.model);
    l->main.scope.graph = &l->im.model.graph;
    if (s == SINTER_OK && net->functions) l->im.model.function = net->functions->function;
    l->im.model.graph_count = net->graph_count;
    if (s == SINTER_OK) s = inputs_make(l);
    if (s == SINTER_OK && !l->is_flat) s = lowering_controls(l);
    if (s == SINTER_OK) *out = l;
    else lowering_end(l);
    return s;
}

void lowering_end(lowering *l)
{
    if (!l) return;
    if (l->im.g) ir_graph_destroy(l->im.g);
    arena_deinit(&l->im.a);
    onnx_files_close(l->e, &l->im.files_own);
    mem_free(l->e, l, sizeof *l, _Alignof(lowering));
}

bool lowering_saw(const lowering *l, const sinter_layer *layer)
{
    return l && layer->id < l->main.state_size && l->main.state[layer->id] != LAYER_NEW;
}

ir_graph *lowering_graph(lowering *l)
{
    return l->im.g;
}

/* ---- values by tensor ---- */

static bool grow(arena *a, void **at, uint32_t *size, size_t each, uint32_t want)
{
    if (want <= *size) return true;
    const uint32_t count = want < 64 ? 64 : want * 2;
    void *bigger = arena_alloc(a, size_mul(each, count), 8);
    if (!bigger) return false;
    if (*size) memcpy(bigger, *at, *size * each);
    *at = bigger;
    *size = count;
    return true;
}

sinter_status context_room(context *x)
{
    lowering *l = x->l;
    void *value = x->value, *state = x->state;
    const bool ok = grow(&l->im.a, &value, &x->value_size, sizeof *x->value, l->net->tensor.count) &&
                    grow(&l->im.a, &state, &x->state_size, sizeof *x->state, l->net->layer_count);
    x->value = value;
    x->state = state;
    return ok ? SINTER_OK : FAIL_MEMORY(l->e, "a network's graph");
}

/* ---- one layer ---- */

/* Converts the f32 inputs of a layer that has to be computed in a narrower type. False: there are none. */
static bool narrow_inputs(network_call *n)
{
    const sinter_dtype type = network_obeyed(n->layer);
    bool is_any = false;
    for (uint32_t i = 0; i < n->c.count_in && network_is_narrower(type); i++) {
        const ir_value_id v = n->in[i];
        if (!v || name_is_list(v) || call_type(&n->c, v) != SINTER_DTYPE_F32) continue;
        n->in[i] = build_cast(&n->c.b, v, type);
        is_any = true;
    }
    return is_any;
}

static sinter_status finish_layer(context *x, network_call *n, uint32_t node_first, bool is_narrowed)
{
    ir_graph *g = x->l->im.g;
    const sinter_layer *layer = n->layer;
    for (uint32_t i = 0; i < layer->count_out && !n->c.b.status; i++) {
        const sinter_network_tensor *t = layer->out[i];
        ir_value_id v = n->c.out[i];
        if (!v && layer->kind == SINTER_LAYER_OP) continue; /* one that the model does not want */
        if (!v) return FAIL(x->l->e, INTERNAL, "output %u was not made", i);
        if (is_narrowed && !name_is_list(v) && ir_value_at(g, v)->dtype == network_obeyed(layer))
            v = build_typed(&n->c.b, v, SINTER_DTYPE_F32);
        if (t->dtype && !name_is_list(v)) v = build_typed(&n->c.b, v, t->dtype);
        x->value[t->id] = v;
        ir_value *made = n->c.b.status || name_is_list(v) ? NULL : ir_value_at(g, v);
        if (made && (!made->name || made->producer >= node_first)) made->name = t->name;
    }
    TRY(n->c.b.status);
    importer_name_nodes(&x->l->im, layer->name, node_first);
    if (network_obeyed(layer) && node_first != g->node.count) {
        const bool is_coded = network_obeyed(layer) == SINTER_DTYPE_I8;
        uint32_t *slot = is_coded ? VEC_PUSH(&g->a, &g->coded_origin) : VEC_PUSH(&g->a, &g->kept_origin);
        if (slot) *slot = g->origin_name.count - 1;
    }
    return g->a.failed || x->l->im.a.failed ? FAIL_MEMORY(x->l->e, "a network's graph") : SINTER_OK;
}

/* Lowers a layer whose inputs have values. */
static sinter_status lower_layer(context *x, sinter_layer *layer)
{
    static const onnx_node no_node = { .name = "", .type = "", .domain = "", .overload = "" };
    lowering *l = x->l;
    ir_graph *g = l->im.g;
    ir_value_id *in = ARENA_NEW(&l->im.a, ir_value_id, layer->count_in + 1u),
                *out = ARENA_NEW(&l->im.a, ir_value_id, (size_t)layer->count_out + OUT_SPARE);
    if (!in || !out) return FAIL_MEMORY(l->e, "a network's graph");
    for (uint32_t i = 0; i < layer->count_in; i++) in[i] = layer->in[i] ? x->value[layer->in[i]->id] : 0;
    network_call n = { .c = { .im = &l->im,
                              .scope = &x->scope,
                              .e = l->e,
                              .b = { .g = g, .region = x->region, .fold_max = FOLD_MAX },
                              .node = &no_node,
                              .version = ONNX_OPSET_MAX,
                              .count_in = layer->count_in,
                              .count_out = layer->count_out,
                              .in = in,
                              .out = out },
                       .l = l,
                       .x = x,
                       .layer = layer,
                       .in = in };
    const uint32_t node_first = g->node.count;
    const bool is_narrowed = narrow_inputs(&n);
    if (!n.c.b.status) layer->row->lower(&n);
    return finish_layer(x, &n, node_first, is_narrowed);
}

/* ---- layers in order ---- */

typedef VEC(sinter_layer *) layer_stack;

static sinter_status failed(context *x, sinter_layer *layer, sinter_status s)
{
    x->state[layer->id] = LAYER_FAILED;
    if (!x->l->failed) x->l->failed = layer;
    return s;
}

static sinter_status push(context *x, layer_stack *stack, sinter_layer *layer)
{
    sinter_layer **slot = VEC_PUSH(&x->l->im.a, stack);
    if (!slot) return FAIL_MEMORY(x->l->e, "a network's graph");
    *slot = layer;
    x->state[layer->id] = LAYER_OPEN;
    return SINTER_OK;
}

/* The layer on top of the stack: lowers it, or puts a layer that has to come first on the stack. */
static sinter_status step(context *x, layer_stack *stack)
{
    lowering *l = x->l;
    sinter_layer *layer = stack->at[stack->count - 1];
    sinter_network_tensor *t = NULL;
    sinter_status s = context_inputs(x, layer, &t);
    if (s) return failed(x, layer, s);
    if (!t) {
        const bool is_control = network_gives_results(layer) && !l->is_flat;
        s = is_control ? context_control(x, layer) : lower_layer(x, layer);
        for (uint32_t i = 0; s && is_control && i < layer->control->layer.count; i++)
            x->state[layer->control->layer.at[i]->id] = LAYER_FAILED;
        if (s) return failed(x, layer, NOTE(l->e, s, "converting layer '%s' (%s)", layer->name, layer->row->name));
        x->state[layer->id] = LAYER_DONE;
        stack->count--;
        return SINTER_OK;
    }
    if (!t->producer) return failed(x, layer, FAIL(l->e, INTERNAL, "input '%s' has no value", t->name));
    if (x->state[t->producer->id] == LAYER_OPEN)
        return failed(
            x, layer,
            FAIL(l->e, INVALID_MODEL, "layers '%s' and '%s' depend on each other", layer->name, t->producer->name));
    if (x->state[t->producer->id] == LAYER_FAILED) {
        x->state[layer->id] = LAYER_FAILED;
        return FAIL(l->e, INVALID_MODEL, "layer '%s' reads '%s', which could not be converted", layer->name, t->name);
    }
    return push(x, stack, t->producer);
}

sinter_status context_layer(context *x, sinter_layer *layer)
{
    layer_stack stack = { 0 };
    TRY(context_room(x));
    if (x->state[layer->id] == LAYER_DONE) return SINTER_OK;
    if (x->state[layer->id] == LAYER_OPEN)
        return FAIL(x->l->e, INVALID_MODEL, "layer '%s' depends on itself", layer->name);
    if (x->state[layer->id] == LAYER_FAILED)
        return FAIL(x->l->e, INVALID_MODEL, "layer '%s' could not be converted", layer->name);
    sinter_status s = push(x, &stack, layer);
    while (s == SINTER_OK && stack.count) s = step(x, &stack);
    for (uint32_t i = 0; i < stack.count; i++) /* those that wait for one that failed */
        if (x->state[stack.at[i]->id] == LAYER_OPEN) x->state[stack.at[i]->id] = LAYER_FAILED;
    return s;
}

sinter_status context_value(context *x, sinter_network_tensor *t, ir_value_id *out)
{
    TRY(context_room(x));
    if (!x->value[t->id] && !context_owns(x, t)) TRY(context_capture(x, t));
    if (!x->value[t->id] && t->producer) TRY(context_layer(x, t->producer));
    *out = x->value[t->id];
    return *out ? SINTER_OK : FAIL(x->l->e, INTERNAL, "tensor '%s' has no value", t->name);
}

sinter_status lowering_value(lowering *l, sinter_network_tensor *t, ir_value_id *out)
{
    return context_value(&l->main, t, out);
}

/* ---- everything ---- */

/* Converts all layers. Goes on behind a failure, so that all are found. */
static sinter_status lower_all(lowering *l)
{
    for (uint32_t i = 0; i < l->net->layer.count; i++) {
        sinter_layer *layer = l->net->layer.at[i];
        TRY(context_room(&l->main));
        if (l->main.state[layer->id] == LAYER_FAILED || (!l->is_flat && l->is_inner[layer->id])) continue;
        l->failed = NULL;
        const sinter_status s = context_layer(&l->main, layer);
        if (s == SINTER_OK) continue;
        if (!l->failed && s != SINTER_NO_MEMORY) { /* reported already */
            *l->e->error = (sinter_error){ 0 };
            continue;
        }
        const sinter_layer *at = l->failed ? l->failed : layer;
        TRY(importer_problem(&l->im, s, arena_printf(&l->im.a, "layer '%s' (%s)", at->name, at->row->name)));
    }
    return SINTER_OK;
}

static sinter_status output(lowering *l, sinter_network_tensor *t, bool is_shape)
{
    ir_value_id v = 0;
    TRY(lowering_value(l, t, &v));
    if (!is_shape) return importer_result(&l->im, &l->main.scope, v, t->name);
    if (name_is_list(v)) return FAIL(l->e, UNSUPPORTED, "'%s' is no tensor of numbers", t->name);
    ir_builder b = { .g = l->im.g, .region = IR_MAIN };
    const ir_value x = *ir_value_at(l->im.g, v);
    v = build_sizes(&b, x.dim, x.rank, false);
    const char *name = arena_printf(&l->im.g->a, "%s.shape", t->name);
    if (!name) return FAIL_MEMORY(l->e, "an output");
    return b.status ? b.status : importer_result(&l->im, &l->main.scope, v, name);
}

static sinter_status outputs(lowering *l, const network_tensors *list, bool is_shape)
{
    for (uint32_t i = 0; i < list->count; i++) {
        sinter_network_tensor *t = list->at[i];
        if (t->producer && l->main.state[t->producer->id] == LAYER_FAILED) continue;
        TRY(importer_problem(&l->im, output(l, t, is_shape), arena_printf(&l->im.a, "output '%s'", t->name)));
    }
    return SINTER_OK;
}

static sinter_status lower_network(lowering *l)
{
    const sinter_network *net = l->net;
    if (net->output.count + net->shape_output.count + net->debug.count == 0)
        return FAIL(l->e, INVALID_MODEL, "the network has no outputs: mark a tensor");
    TRY(lower_all(l));
    TRY(outputs(l, &net->output, false));
    TRY(outputs(l, &net->shape_output, true));
    TRY(outputs(l, &net->debug, false));
    TRY(importer_report(&l->im));
    if (l->im.g->a.failed || dim_table_failed(l->im.g->dims)) return FAIL_MEMORY(l->e, "the graph");
    return ir_sweep(l->im.g);
}

sinter_status network_lower(sinter_network *net, env *e, const onnx_import_options *options, ir_graph **out)
{
    lowering *l = NULL;
    *out = NULL;
    TRY(lowering_begin(net, e, options, &l));
    const sinter_status s = lower_network(l);
    if (s == SINTER_OK) {
        *out = l->im.g;
        l->im.g = NULL;
    }
    lowering_end(l);
    return s;
}

/* ---- questions ---- */

static sinter_status ask(sinter_network_tensor *t, env *e, ir_value_id *out)
{
    sinter_network *net = t->net;
    TRY(network_tensor_check(e, net, t, "the tensor"));
    if (!net->asked) TRY(lowering_begin(net, e, NULL, &net->asked));
    net->asked->failed = NULL;
    sinter_status s = lowering_value(net->asked, t, out);
    if (s == SINTER_OK && name_is_list(*out)) s = FAIL(e, UNSUPPORTED, "'%s' is no tensor of numbers", t->name);
    if (s) network_changed(net); /* the next question tries again */
    return s;
}

sinter_status network_shape(sinter_network_tensor *t, env *e, sinter_network_shape *out)
{
    ir_value_id id = 0;
    *out = (sinter_network_shape){ 0 };
    TRY(ask(t, e, &id));
    ir_graph *g = lowering_graph(t->net->asked);
    const ir_value *v = ir_value_at(g, id);
    out->dtype = v->dtype;
    out->rank = v->rank;
    for (uint32_t i = 0; i < v->rank; i++) {
        out->dim[i] = -1;
        if (dim_is_const(g->dims, v->dim[i], &out->dim[i])) continue;
        text line;
        text_init(&line, e);
        dim_print(g->dims, v->dim[i], &line);
        out->dim_name[i] = line.failed ? NULL : arena_text(&t->net->answers, line.at, line.length);
        text_deinit(&line);
        if (!out->dim_name[i]) return FAIL_MEMORY(e, "a size");
    }
    return SINTER_OK;
}

sinter_status network_values(sinter_network_tensor *t, env *e, int64_t *out, uint32_t count)
{
    ir_value_id id = 0;
    TRY(ask(t, e, &id));
    ir_graph *g = lowering_graph(t->net->asked);
    const ir_value *v = ir_value_at(g, id);
    view data;
    if (v->shape_value) {
        for (uint32_t i = 0; i < v->shape_count && i < count; i++) {
            out[i] = -1;
            (void)dim_is_const(g->dims, v->shape_value[i], &out[i]);
        }
        return SINTER_OK;
    }
    if (!ir_const_view(g, id, &data) || !dtype_is_int(data.dtype))
        return FAIL(e, INVALID_ARG, "the values of '%s' are not known before the run, or no integers", t->name);
    for (uint32_t i = 0; i < count && i < view_count(&data); i++) out[i] = dtype_load_i64(data.dtype, data.data, i);
    return SINTER_OK;
}

/* ---- digest ---- */

void network_hash_text(sha256 *h, const char *words)
{
    sha256_update(h, words, strlen(words) + 1);
}

static void hash_param(sha256 *h, const sinter_param *row, const network_param *p)
{
    const sinter_tensor shape = { .dtype = p->weights.dtype, .rank = 1, .dim = { p->weights.count } };
    network_hash_text(h, row->name);
    sha256_update(h, &p->i, sizeof p->i);
    sha256_update(h, &p->r, sizeof p->r);
    sha256_update(h, &p->is_set, sizeof p->is_set);
    network_hash_text(h, p->text ? p->text : "");
    sha256_update(h, &p->count, sizeof p->count);
    if (p->ints && p->count) sha256_update(h, p->ints, p->count * sizeof *p->ints);
    if (p->reals && p->count) sha256_update(h, p->reals, p->count * sizeof *p->reals);
    sha256_update(h, &p->weights.dtype, sizeof p->weights.dtype);
    if (p->weights.count) sha256_update(h, p->weights.data, sinter_tensor_size(&shape));
}

static void hash_op(sha256 *h, const sinter_layer *layer)
{
    const uint32_t control = layer->control ? layer->control->id + 1 : 0;
    sha256_update(h, &control, sizeof control);
    if (layer->kind == SINTER_LAYER_PLUGIN) network_hash_plugin(h, &layer->plugin);
    if (layer->kind != SINTER_LAYER_OP) return;
    network_hash_text(h, layer->op.domain);
    network_hash_text(h, layer->op.type);
    sha256_update(h, &layer->op.version, sizeof layer->op.version);
    for (uint32_t i = 0; i < layer->op.count_attr; i++) {
        const onnx_attr *a = &layer->op.attr[i];
        network_hash_text(h, a->name);
        if (a->t) sha256_update(h, a->t->span, a->t->span_size);
    }
}

static void hash_tensors(sha256 *h, const network_tensors *list)
{
    sha256_update(h, &list->count, sizeof list->count);
    for (uint32_t i = 0; i < list->count; i++) {
        const sinter_network_tensor *t = list->at[i];
        sha256_update(h, &t->id, sizeof t->id);
        network_hash_text(h, t->name);
        sha256_update(h, &t->dtype, sizeof t->dtype);
        sha256_update(h, &t->rank, sizeof t->rank);
        sha256_update(h, t->dim, t->rank * sizeof *t->dim);
        for (uint32_t k = 0; k < t->rank; k++) network_hash_text(h, t->dim_name[k] ? t->dim_name[k] : "");
    }
}

void network_digest(const sinter_network *net, uint8_t digest[32])
{
    sha256 h;
    sha256_init(&h);
    const network_tensors *list[] = { &net->input, &net->output, &net->shape_output, &net->debug };
    for (uint32_t i = 0; i < COUNT_OF(list); i++) hash_tensors(&h, list[i]);
    for (uint32_t i = 0; i < net->layer.count; i++) {
        const sinter_layer *layer = net->layer.at[i];
        sha256_update(&h, &layer->kind, sizeof layer->kind);
        const sinter_dtype precision = network_obeyed(layer);
        sha256_update(&h, &precision, sizeof precision);
        network_hash_text(&h, layer->name);
        hash_op(&h, layer);
        for (uint32_t k = 0; k < layer->count_in; k++) {
            const uint32_t id = layer->in[k] ? layer->in[k]->id : UINT32_MAX;
            sha256_update(&h, &id, sizeof id);
        }
        for (uint32_t k = 0; k < layer->count_out; k++) {
            sha256_update(&h, &layer->out[k]->id, sizeof layer->out[k]->id);
            sha256_update(&h, &layer->out[k]->dtype, sizeof layer->out[k]->dtype);
        }
        for (uint32_t k = 0; k < layer->count_param; k++) hash_param(&h, &layer->param_row[k], &layer->param[k]);
    }
    sha256_final(&h, digest);
}
