/* SPDX-License-Identifier: Apache-2.0 */
/* network_parse.c - an ONNX model becomes layers: nodes in an order in which names are made before they are read. What
 * cannot be converted is found by converting everything once, as questions do. */
#include "network/network_parse.h"

#include "network/lowering.h"

#include <string.h>

/* ---- problems ---- */

static sinter_status problem(parsing *s, sinter_status status, uint32_t index, const onnx_node *n)
{
    sinter_parser *p = s->p;
    if (status == SINTER_OK || status == SINTER_NO_MEMORY) return status;
    network_problem *slot = VEC_PUSH(&p->a, &p->problem);
    const char *line = s->e->error->text;
    const char *message = arena_text(&p->a, line, strcspn(line, "\n"));
    if (!slot || !message) return FAIL_MEMORY(s->e, "a message");
    *slot = (network_problem){
        .status = status, .node = index, .name = n ? n->name : "", .type = n ? n->type : "", .message = message
    };
    if (n && index < p->node_count) p->is_bad[index] = true;
    *s->e->error = (sinter_error){ 0 };
    return SINTER_OK;
}

/* ---- tensors ---- */

const onnx_tensor *parsed_initializer(const parsing *s, const char *name, uint32_t *index)
{
    const uint32_t *slot = name_map_find(&s->names, name);
    if (!slot || *slot == PARSED_BAD || *slot < PARSED_TENSOR) return NULL;
    if (index) *index = *slot & ~PARSED_TENSOR;
    return &s->model->graph.initializer.at[*slot & ~PARSED_TENSOR];
}

bool parsed_weights(parsing *s, const onnx_tensor *t, view *out)
{
    return onnx_tensor_decode(s->e, &s->net->a, s->folder, &s->net->files, t, out) == SINTER_OK;
}

sinter_layer *parsed_constant(parsing *s, const onnx_tensor *t, const char *name)
{
    view v;
    if (t->type == ONNX_TYPE_STRING) { /* text stays an operator */
        sinter_layer *layer = network_add_op(s->net, s->e, "", "Constant", 0, NULL, 0, 1);
        onnx_attr *a = layer ? ARENA_NEW(&s->net->a, onnx_attr, 1) : NULL;
        if (!a) return NULL;
        *a = (onnx_attr){ .name = "value", .ref = "", .type = ONNX_TENSOR, .t = (onnx_tensor *)(uintptr_t)t };
        layer->op.attr = a;
        layer->op.count_attr = 1;
        return layer;
    }
    if (!parsed_weights(s, t, &v)) return NULL;
    sinter_layer *layer = network_make(s->net, s->e, SINTER_LAYER_CONSTANT, NULL, 0, 0);
    const sinter_weights w = { v.dtype, 1, view_count(&v), v.data };
    if (!layer || network_set_ints(layer, s->e, "shape", v.dim, v.rank) ||
        network_set_weights(layer, s->e, "weights", &w) ||
        (*name && network_set_weights_name(layer, s->e, "weights", name)))
        return NULL;
    return layer;
}

static sinter_status name_set(parsing *s, const char *name, uint32_t value)
{
    bool is_new;
    uint32_t *slot = name_map_add(&s->names, name, &is_new);
    if (!slot) return FAIL_MEMORY(s->e, "names");
    if (!is_new && *slot != PARSED_BAD) return FAIL(s->e, INVALID_MODEL, "the name '%s' is given twice", name);
    *slot = value;
    return SINTER_OK;
}

/* The tensor of a name; NULL with *is_bad: its node could not be taken. */
static sinter_status tensor_of(parsing *s, const char *name, sinter_network_tensor **out, bool *is_bad)
{
    *out = NULL;
    uint32_t *slot = name_map_find(&s->names, name);
    if (!slot) return FAIL(s->e, INVALID_MODEL, "input '%s' is made by no node", name);
    if (*slot == PARSED_BAD) {
        *is_bad = true;
        return SINTER_OK;
    }
    if (*slot >= PARSED_TENSOR) {
        sinter_layer *layer = parsed_constant(s, &s->model->graph.initializer.at[*slot & ~PARSED_TENSOR], name);
        if (!layer) return s->e->error->status ? s->e->error->status : SINTER_NO_MEMORY;
        TRY(network_set_layer_text(layer, s->e, name, true));
        TRY(network_tensor_set_name(layer->out[0], s->e, name));
        *slot = layer->out[0]->id + 1;
    }
    *out = s->net->tensor.at[*slot - 1];
    return SINTER_OK;
}

/* ---- inputs ---- */

static sinter_status parse_input(parsing *s, const onnx_value_info *v)
{
    sinter_dtype dtype;
    int64_t d[SINTER_RANK_MAX];
    const char *name[SINTER_RANK_MAX];
    if (!v->is_tensor || v->of || v->part != ONNX_WHOLE)
        return FAIL(s->e, UNSUPPORTED, "input '%s' is no tensor of numbers", v->name);
    if (!onnx_dtype_of(v->type, &dtype))
        return FAIL(s->e, UNSUPPORTED, "input '%s' has elements of type %d (%s)", v->name, v->type,
                    onnx_type_name(v->type));
    if (!v->has_shape || v->rank > SINTER_RANK_MAX)
        return FAIL(s->e, UNSUPPORTED, "input '%s' has no rank, or more than %d axes", v->name, SINTER_RANK_MAX);
    for (uint32_t i = 0; i < v->rank; i++) {
        d[i] = v->dim[i].has_value && v->dim[i].value >= 0 ? v->dim[i].value : -1;
        name[i] = onnx_dim_is_named(&v->dim[i]) ? v->dim[i].param : NULL;
    }
    sinter_network_tensor *t = network_add_input(s->net, s->e, v->name, dtype, v->rank, d, name);
    return t ? name_set(s, v->name, t->id + 1) : s->e->error->status;
}

static sinter_status parse_inputs(parsing *s)
{
    const onnx_graph *g = &s->model->graph;
    for (uint32_t i = 0; i < g->initializer.count; i++) {
        const sinter_status status = name_set(s, g->initializer.at[i].name, PARSED_TENSOR | i);
        TRY(problem(s, status, UINT32_MAX, NULL));
    }
    for (uint32_t i = 0; i < g->in.count; i++) {
        const onnx_value_info *v = &g->in.at[i];
        if (parsed_initializer(s, v->name, NULL)) continue;
        const sinter_status status = parse_input(s, v);
        if (status) TRY(name_set(s, v->of ? v->of : v->name, PARSED_BAD));
        TRY(problem(s, status, UINT32_MAX, NULL));
    }
    if (g->sparse.count) TRY(problem(s, FAIL(s->e, UNSUPPORTED, "sparse initializers"), UINT32_MAX, NULL));
    return SINTER_OK;
}

/* ---- nodes ---- */

static int64_t version_of(const parsing *s, const char *domain)
{
    const bool is_own = !*domain || !strcmp(domain, "ai.onnx");
    for (uint32_t i = 0; i < s->model->opset.count; i++) {
        const char *other = s->model->opset.at[i].domain;
        if (!strcmp(other, domain) || (is_own && (!*other || !strcmp(other, "ai.onnx"))))
            return s->model->opset.at[i].version;
    }
    return 1;
}

static bool is_function(const parsing *s, const onnx_node *n)
{
    for (uint32_t i = 0; i < s->model->function.count; i++)
        if (!strcmp(s->model->function.at[i].name, n->type) && !strcmp(s->model->function.at[i].domain, n->domain))
            return true;
    return false;
}

static sinter_status real_list(sinter_layer *layer, env *e, const onnx_attr *a)
{
    double at[SINTER_PARAM_INTS_MAX] = { 0 };
    for (uint32_t i = 0; i < a->floats.count; i++) at[i] = (double)a->floats.at[i];
    return network_set_reals(layer, e, a->name, at, a->floats.count);
}

/* Attributes that a parameter can hold become parameters; the others stay as they are. */
static sinter_status op_attrs(parsing *s, sinter_layer *layer, const onnx_node *n)
{
    layer->op.attr = ARENA_NEW(&s->net->a, onnx_attr, n->attr.count + 1u);
    if (!layer->op.attr) return FAIL_MEMORY(s->e, "a layer");
    for (uint32_t i = 0; i < n->attr.count; i++) {
        const onnx_attr *a = &n->attr.at[i];
        const bool is_plain = !a->ref[0];
        if (is_plain && a->type == ONNX_INT) TRY(network_set_int(layer, s->e, a->name, a->i));
        else if (is_plain && a->type == ONNX_STRING && strlen(a->s.at) == a->s.length)
            TRY(network_set_text(layer, s->e, a->name, a->s.at));
        else if (is_plain && a->type == ONNX_INTS && a->ints.count <= SINTER_PARAM_INTS_MAX)
            TRY(network_set_ints(layer, s->e, a->name, a->ints.at, a->ints.count));
        else if (is_plain && a->type == ONNX_FLOAT && a->f == a->f)
            TRY(network_set_real(layer, s->e, a->name, (double)a->f));
        else if (is_plain && a->type == ONNX_FLOATS && a->floats.count <= SINTER_PARAM_INTS_MAX)
            TRY(real_list(layer, s->e, a));
        else layer->op.attr[layer->op.count_attr++] = *a;
    }
    return SINTER_OK;
}

/* What subgraphs of the node read from around it: inputs behind its own. */
static sinter_status captures(parsing *s, const onnx_node *n, network_tensors *in, onnx_names *names, bool *is_bad)
{
    for (uint32_t i = 0; i < n->attr.count; i++) {
        const onnx_graph *g = n->attr.at[i].g;
        for (uint32_t k = 0; g && k < g->reads.count; k++) {
            const char *name = g->reads.at[k];
            bool is_known = !name_map_find(&s->names, name); /* unknown: the importer says so */
            for (uint32_t j = 0; j < names->count; j++) is_known = is_known || !strcmp(names->at[j], name);
            if (is_known) continue;
            sinter_network_tensor **slot = VEC_PUSH(&s->p->a, in);
            const char **own = VEC_PUSH(&s->net->a, names);
            if (!slot || !own) return FAIL_MEMORY(s->e, "a layer");
            *own = name;
            TRY(tensor_of(s, name, slot, is_bad));
        }
    }
    return SINTER_OK;
}

static sinter_status parse_op(parsing *s, const onnx_node *n, network_tensors *in, sinter_layer **out)
{
    onnx_names reads = { 0 };
    bool is_bad = false;
    TRY(captures(s, n, in, &reads, &is_bad));
    if (is_bad) return FAIL(s->e, INVALID_MODEL, "a subgraph reads what could not be converted");
    sinter_layer *layer =
        network_add_op(s->net, s->e, n->domain, n->type, version_of(s, n->domain), in->at, in->count, n->out.count);
    if (!layer) return s->e->error->status;
    layer->op.opset = &s->model->opset;
    layer->op.count_in = n->in.count;
    layer->op.reads = reads.at;
    layer->op.out = n->out.at;
    *out = layer;
    return op_attrs(s, layer, n);
}

static sinter_status name_layer(parsing *s, sinter_layer *layer, const onnx_node *n)
{
    const char *name = *n->name ? n->name : arena_printf(&s->p->a, "%s_%u", n->type, n->index);
    if (!name) return FAIL_MEMORY(s->e, "a name");
    TRY(network_set_layer_text(layer, s->e, name, true));
    for (uint32_t i = 0; i < n->out.count && i < layer->count_out; i++) {
        if (!n->out.at[i][0]) continue;
        TRY(network_tensor_set_name(layer->out[i], s->e, n->out.at[i]));
        TRY(name_set(s, n->out.at[i], layer->out[i]->id + 1));
    }
    return SINTER_OK;
}

/* A node whose outputs are a layer each, the last ones that were added. */
static sinter_status name_parts(parsing *s, const onnx_node *n)
{
    const uint32_t count = n->out.count;
    for (uint32_t i = 0; i < count; i++) {
        const char *name = *n->name ? n->name : arena_printf(&s->p->a, "%s_%u", n->type, n->index);
        if (name && i) name = arena_printf(&s->p->a, "%s_%u", name, i);
        if (!name) return FAIL_MEMORY(s->e, "a name");
        onnx_node part = *n;
        part.name = name;
        part.out.at = n->out.at + i;
        part.out.count = 1;
        TRY(name_layer(s, s->net->layer.at[s->net->layer.count - count + i], &part));
    }
    return SINTER_OK;
}

static sinter_status parse_node(parsing *s, const onnx_node *n, bool *is_bad)
{
    network_tensors in = { 0 };
    sinter_layer *layer = NULL;
    if (!is_function(s, n)) {
        sinter_network_tensor **early = ARENA_NEW(&s->p->a, sinter_network_tensor *, n->in.count + 1u);
        if (!early) return FAIL_MEMORY(s->e, "a layer");
        for (uint32_t i = 0; i < n->in.count; i++) { /* initializers may become weights: they are not tensors yet */
            const bool is_weight = n->in.at[i][0] && parsed_initializer(s, n->in.at[i], NULL);
            if (n->in.at[i][0] && !is_weight) TRY(tensor_of(s, n->in.at[i], &early[i], is_bad));
        }
        if (*is_bad) return SINTER_OK;
        if (!s->has_text || !strcmp(n->type, "Conv")) layer = raise_node(s, n, version_of(s, n->domain), early);
        if (!layer && s->e->error->status == SINTER_NO_MEMORY) return SINTER_NO_MEMORY;
        *s->e->error = (sinter_error){ 0 };
    }
    if (!layer) {
        for (uint32_t i = 0; i < n->in.count; i++) {
            sinter_network_tensor **slot = VEC_PUSH(&s->p->a, &in);
            if (!slot) return FAIL_MEMORY(s->e, "a layer");
            if (n->in.at[i][0]) TRY(tensor_of(s, n->in.at[i], slot, is_bad));
        }
        if (*is_bad) return SINTER_OK;
        TRY(parse_op(s, n, &in, &layer));
    }
    return layer->kind == SINTER_LAYER_SLICE && n->out.count > 1 ? name_parts(s, n) : name_layer(s, layer, n);
}

/* Converts each layer once; the failures are the nodes'. */
static sinter_status check_layers(parsing *s, sinter_layer *const *made)
{
    lowering *l = NULL;
    sinter_status status = lowering_begin(s->net, s->e, NULL, &l);
    for (uint32_t i = 0; status == SINTER_OK && i < s->p->node_count; i++) {
        const uint32_t index = s->p->order[i];
        if (!made[index] || s->p->is_bad[index]) continue;
        l->failed = NULL;
        const sinter_status one = context_layer(&l->main, made[index]);
        if (one && !l->failed) { /* of a layer before it */
            s->p->is_bad[index] = true;
            *s->e->error = (sinter_error){ 0 };
            continue;
        }
        status = problem(s, one, index, &s->model->graph.node.at[index]);
    }
    lowering_end(l);
    return status;
}

/* ---- outputs, subgraphs ---- */

static sinter_status parse_outputs(parsing *s)
{
    const onnx_graph *g = &s->model->graph;
    for (uint32_t i = 0; i < g->out.count; i++) {
        sinter_network_tensor *t = NULL;
        bool is_bad = false;
        sinter_status status = tensor_of(s, g->out.at[i].of ? g->out.at[i].of : g->out.at[i].name, &t, &is_bad);
        if (g->out.at[i].of && !status)
            status = FAIL(s->e, UNSUPPORTED, "output '%s' is no tensor of numbers", g->out.at[i].of);
        if (!status && t && !t->is_output)
            status = network_mark(s->net, s->e, t, &s->net->output, &t->is_output, true, "an output");
        TRY(problem(s, status, UINT32_MAX, NULL));
    }
    return SINTER_OK;
}

static sinter_status split(sinter_parser *p, env *e)
{
    for (uint32_t i = 0; i < p->node_count; i++) {
        if (i && p->is_bad[p->order[i]] == p->is_bad[p->order[i - 1]]) continue;
        uint32_t *slot = VEC_PUSH(&p->a, &p->first);
        if (!slot) return FAIL_MEMORY(e, "subgraphs");
        *slot = i;
    }
    return SINTER_OK;
}

/* ---- the model ---- */

static bool starts(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static bool uses_text(const onnx_model *m)
{
    static const char *const word[] = { "Sequence",           "Optional", "String",       "SplitToSequence",
                                        "ConcatFromSequence", "TfIdf",    "LabelEncoder", "OneHotEncoder" };
    for (uint32_t i = 0; i < m->graph.initializer.count; i++)
        if (m->graph.initializer.at[i].type == ONNX_TYPE_STRING) return true;
    for (uint32_t i = 0; i < m->graph.node.count; i++) {
        const onnx_node *n = &m->graph.node.at[i];
        for (uint32_t k = 0; k < COUNT_OF(word); k++)
            if (starts(n->type, word[k])) return true;
        for (uint32_t k = 0; k < n->attr.count; k++) {
            const onnx_attr *a = &n->attr.at[k];
            if (a->type == ONNX_STRINGS || !strcmp(a->name, "value_string")) return true;
            if ((a->t && a->t->type == ONNX_TYPE_STRING) ||
                (a->type == ONNX_INT && a->i == ONNX_TYPE_STRING && !strcmp(a->name, "to")))
                return true;
        }
    }
    return false;
}

static bool has_loose_squeeze(const onnx_model *m)
{
    for (uint32_t i = 0; i < m->graph.node.count; i++) {
        const onnx_node *n = &m->graph.node.at[i];
        if (!strcmp(n->type, "Squeeze") && !n->attr.count && (n->in.count < 2 || !n->in.at[1][0])) return true;
    }
    return false;
}

static sinter_status parse_nodes(parsing *s)
{
    sinter_parser *p = s->p;
    const onnx_nodes *nodes = &s->model->graph.node;
    importer im = { .e = s->e };
    arena_init(&im.a, s->e);
    uint32_t *order = NULL, count = 0;
    sinter_status status = scope_order(&im, nodes, &order, &count);
    p->order = ARENA_NEW(&p->a, uint32_t, nodes->count + 1u);
    p->is_bad = ARENA_NEW(&p->a, bool, nodes->count + 1u);
    sinter_layer **made = ARENA_NEW(&p->a, sinter_layer *, nodes->count + 1u);
    if (!status && (!p->order || !p->is_bad || !made)) status = FAIL_MEMORY(s->e, "a model");
    p->node_count = status ? 0 : count;
    if (p->node_count) memcpy(p->order, order, count * sizeof *order);
    arena_deinit(&im.a);
    TRY(status);
    for (uint32_t i = 0; i < count; i++) {
        const onnx_node *n = &nodes->at[p->order[i]];
        bool is_bad = false;
        status = parse_node(s, n, &is_bad);
        if (!status && !is_bad) made[p->order[i]] = s->net->layer.at[s->net->layer.count - 1];
        if (is_bad) p->is_bad[p->order[i]] = true;
        for (uint32_t k = 0; (status || is_bad) && k < n->out.count; k++)
            if (n->out.at[k][0] && !name_map_find(&s->names, n->out.at[k])) {
                sinter_error kept = *s->e->error;
                TRY(name_set(s, n->out.at[k], PARSED_BAD));
                *s->e->error = kept;
            }
        TRY(problem(s, status, p->order[i], n));
    }
    return check_layers(s, made);
}

sinter_status parse_model(sinter_parser *p, env *e, const uint8_t *bytes, size_t size, const char *folder)
{
    sinter_network *net = p->net;
    onnx_model *m = ARENA_NEW(&net->a, onnx_model, 1);
    p->node_count = p->first.count = 0;
    if (!m) return FAIL_MEMORY(e, "a model");
    parsing s = { .p = p, .net = net, .e = e, .model = m, .folder = folder, .names = { .a = &p->a } };
    const uint32_t before = p->problem.count;
    sinter_status status = onnx_model_read(e, &net->a, bytes, size, m);
    if (!status && m->function.count && net->functions)
        status = FAIL(e, UNSUPPORTED, "a second model with functions of its own");
    if (status == SINTER_NO_MEMORY) return status;
    if (!status) {
        if (m->function.count) net->functions = m;
        if (m->graph_count > net->graph_count) net->graph_count = m->graph_count;
        s.has_text = uses_text(m);
        s.has_loose_ranks = has_loose_squeeze(m);
        s.uses = ARENA_NEW(&p->a, uint32_t, m->graph.initializer.count + 1u);
        if (!s.uses) return FAIL_MEMORY(e, "a model");
        network_changed(net);
        status = parse_inputs(&s);
        uint32_t index;
        for (uint32_t i = 0; i < m->graph.node.count; i++)
            for (uint32_t k = 0; k < m->graph.node.at[i].in.count; k++)
                if (parsed_initializer(&s, m->graph.node.at[i].in.at[k], &index)) s.uses[index]++;
        if (!status) status = parse_nodes(&s);
        if (!status) status = parse_outputs(&s);
        if (!status) status = split(p, e);
    }
    TRY(problem(&s, status, UINT32_MAX, NULL));
    if (p->problem.count == before) return SINTER_OK;
    const network_problem *first = &p->problem.at[before];
    return env_fail(e, first->status, __FILE__, __LINE__, "%u problem%s in the model; the first: %s%s%s%s",
                    p->problem.count - before, p->problem.count - before == 1 ? "" : "s", first->name,
                    *first->name ? ": " : "", first->message, "");
}
