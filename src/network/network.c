/* SPDX-License-Identifier: Apache-2.0 */
/* network.c - layers and tensors: made, found, rewired and removed. */
#include "network/network.h"

#include <string.h>

enum { NAME_SIZE_MAX = 4096 };

env *network_env(sinter_network *net, sinter_error *error)
{
    if (!net) {
        env e;
        env_init(&e, NULL, error);
        (void)FAIL(&e, INVALID_ARG, "the network, layer or tensor is NULL");
        return NULL;
    }
    net->e.error_own = (sinter_error){ 0 };
    net->e.error = error ? error : &net->e.error_own;
    return &net->e;
}

void network_changed(sinter_network *net)
{
    lowering_end(net->asked);
    net->asked = NULL;
    arena_deinit(&net->answers);
    arena_init(&net->answers, &net->e);
}

void network_layer_changed(const sinter_layer *layer)
{
    if (lowering_saw(layer->net->asked, layer)) network_changed(layer->net);
}

const char *network_text(sinter_network *net, const char *words)
{
    return arena_text(&net->a, words, strlen(words));
}

/* ---- checks ---- */

static sinter_status check_text(env *e, const char *what, const char *words)
{
    if (!words) return FAIL(e, INVALID_ARG, "%s is NULL", what);
    for (size_t i = 0; words[i]; i++)
        if (i >= NAME_SIZE_MAX) return FAIL(e, INVALID_ARG, "%s has more than %d bytes", what, NAME_SIZE_MAX);
    return SINTER_OK;
}

sinter_status network_tensor_check(env *e, const sinter_network *net, const sinter_network_tensor *t, const char *what)
{
    if (!t) return FAIL(e, INVALID_ARG, "%s is NULL", what);
    if (t->net != net) return FAIL(e, INVALID_ARG, "%s, '%s', is of another network", what, t->name);
    if (t->is_removed) return FAIL(e, INVALID_ARG, "%s, '%s', was removed", what, t->name);
    return SINTER_OK;
}

sinter_status network_layer_check(env *e, const sinter_layer *layer)
{
    if (layer->is_removed) return FAIL(e, INVALID_ARG, "layer '%s' was removed", layer->name);
    return SINTER_OK;
}

/* ---- tensors ---- */

bool network_name_is_free(const sinter_network *net, const sinter_network_tensor *but, const char *name)
{
    const network_tensors *list[] = { &net->input, &net->output, &net->debug };
    for (uint32_t k = 0; k < COUNT_OF(list); k++)
        for (uint32_t i = 0; i < list[k]->count; i++)
            if (list[k]->at[i] != but && strcmp(list[k]->at[i]->name, name) == 0) return false;
    return true;
}

sinter_network_tensor *network_tensor_new(sinter_network *net, sinter_layer *producer, uint32_t index, const char *name)
{
    sinter_network_tensor *t = ARENA_NEW(&net->a, sinter_network_tensor, 1);
    const char *own = network_text(net, name);
    sinter_network_tensor **slot = t && own ? VEC_PUSH(&net->a, &net->tensor) : NULL;
    if (!slot) return NULL;
    *t = (sinter_network_tensor){
        .net = net, .producer = producer, .name = own, .id = net->tensor.count - 1, .index = index
    };
    return *slot = t;
}

static bool list_add(sinter_network *net, network_tensors *list, sinter_network_tensor *t)
{
    sinter_network_tensor **slot = VEC_PUSH(&net->a, list);
    if (slot) *slot = t;
    return slot != NULL;
}

static void list_remove(network_tensors *list, const sinter_network_tensor *t)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < list->count; i++)
        if (list->at[i] != t) list->at[kept++] = list->at[i];
    list->count = kept;
}

static sinter_status set_shape(env *e, sinter_network_tensor *t, uint32_t rank, const int64_t *d)
{
    if (rank > SINTER_RANK_MAX) return FAIL(e, INVALID_ARG, "rank %u, the most is %d", rank, SINTER_RANK_MAX);
    if (rank && !d) return FAIL(e, INVALID_ARG, "the sizes of '%s' are NULL", t->name);
    for (uint32_t i = 0; i < rank; i++)
        if (d[i] < -1)
            return FAIL(e, INVALID_ARG, "axis %u of '%s' has size %lld, wanted is -1 or more", i, t->name,
                        (long long)d[i]);
    t->rank = rank;
    if (rank) memcpy(t->dim, d, rank * sizeof *d);
    return SINTER_OK;
}

static sinter_status set_dim_name(env *e, sinter_network_tensor *t, uint32_t axis, const char *name)
{
    if (axis >= t->rank) return FAIL(e, INVALID_ARG, "axis %u of '%s', which has rank %u", axis, t->name, t->rank);
    if (name) TRY(check_text(e, "the name of an axis", name));
    const char *own = name && *name ? network_text(t->net, name) : NULL;
    if (name && *name && !own) return FAIL_MEMORY(e, "a name");
    t->dim_name[axis] = own;
    return SINTER_OK;
}

sinter_network_tensor *network_add_input(sinter_network *net, env *e, const char *name, sinter_dtype dtype,
                                         uint32_t rank, const int64_t *d, const char *const *dim_name)
{
    sinter_network_tensor probe = { .net = net, .name = name ? name : "" };
    if (check_text(e, "the name of an input", name)) return NULL;
    if (!*name) return (void)FAIL(e, INVALID_ARG, "the name of an input is empty"), NULL;
    if (!dtype_is_valid((int)dtype))
        return (void)FAIL(e, INVALID_ARG, "input '%s' has type %d, which is no type", name, (int)dtype), NULL;
    if (!network_name_is_free(net, NULL, name))
        return (void)FAIL(e, INVALID_ARG, "another input or output is named '%s'", name), NULL;
    if (set_shape(e, &probe, rank, d)) return NULL;
    for (uint32_t i = 0; dim_name && i < rank; i++)
        if (set_dim_name(e, &probe, i, dim_name[i])) return NULL;
    sinter_network_tensor *t = network_tensor_new(net, NULL, 0, name);
    if (!t || !list_add(net, &net->input, t)) return (void)FAIL_MEMORY(e, "an input"), NULL;
    t->dtype = dtype;
    t->rank = rank;
    memcpy(t->dim, probe.dim, sizeof t->dim);
    memcpy(t->dim_name, probe.dim_name, sizeof t->dim_name);
    network_changed(net);
    return t;
}

static sinter_status want_input(env *e, const sinter_network_tensor *t)
{
    TRY(network_tensor_check(e, t->net, t, "the tensor"));
    return t->producer ? FAIL(e, INVALID_ARG, "'%s' is no input of the network", t->name) : SINTER_OK;
}

sinter_status network_tensor_set_type(sinter_network_tensor *t, env *e, sinter_dtype dtype)
{
    TRY(want_input(e, t));
    if (!dtype_is_valid((int)dtype))
        return FAIL(e, INVALID_ARG, "type %d for '%s', which is no type", (int)dtype, t->name);
    t->dtype = dtype;
    network_changed(t->net);
    return SINTER_OK;
}

sinter_status network_tensor_set_shape(sinter_network_tensor *t, env *e, uint32_t rank, const int64_t *d)
{
    TRY(want_input(e, t));
    TRY(set_shape(e, t, rank, d));
    for (uint32_t i = rank; i < SINTER_RANK_MAX; i++) t->dim_name[i] = NULL;
    network_changed(t->net);
    return SINTER_OK;
}

sinter_status network_tensor_set_dim_name(sinter_network_tensor *t, env *e, uint32_t axis, const char *name)
{
    TRY(want_input(e, t));
    TRY(set_dim_name(e, t, axis, name));
    network_changed(t->net);
    return SINTER_OK;
}

sinter_status network_tensor_set_name(sinter_network_tensor *t, env *e, const char *name)
{
    TRY(network_tensor_check(e, t->net, t, "the tensor"));
    TRY(check_text(e, "a tensor's name", name));
    const bool is_seen = !t->producer || t->is_output || t->is_debug;
    if (is_seen && !*name) return FAIL(e, INVALID_ARG, "the name of an input or output is empty");
    if (is_seen && !network_name_is_free(t->net, t, name))
        return FAIL(e, INVALID_ARG, "another input or output is named '%s'", name);
    const char *own = network_text(t->net, name);
    if (!own) return FAIL_MEMORY(e, "a name");
    t->name = own;
    return SINTER_OK;
}

sinter_status network_mark(sinter_network *net, env *e, sinter_network_tensor *t, network_tensors *list, bool *mark,
                           bool is_marked, const char *what)
{
    TRY(network_tensor_check(e, net, t, "the tensor"));
    if (*mark == is_marked) return FAIL(e, INVALID_ARG, "'%s' is %s %s", t->name, is_marked ? "already" : "not", what);
    const bool is_named = t->is_output || t->is_debug || !t->producer;
    if (is_marked && list != &net->shape_output && !is_named && !network_name_is_free(net, t, t->name))
        return FAIL(e, INVALID_ARG, "another input or output is named '%s'", t->name);
    if (is_marked && !*t->name) return FAIL(e, INVALID_ARG, "the name of an output is empty");
    if (is_marked && !list_add(net, list, t)) return FAIL_MEMORY(e, "an output");
    if (!is_marked) list_remove(list, t);
    *mark = is_marked;
    return SINTER_OK;
}

/* ---- layers ---- */

static bool layer_room(sinter_layer *layer, uint32_t count)
{
    if (count <= layer->capacity_in) return true;
    const uint32_t capacity = count < 4 ? 4 : count * 2;
    sinter_network_tensor **in = ARENA_NEW(&layer->net->a, sinter_network_tensor *, capacity);
    if (!in) return false;
    if (layer->count_in) memcpy(in, layer->in, layer->count_in * sizeof *in);
    layer->in = in;
    layer->capacity_in = capacity;
    return true;
}

static bool may_miss(const network_row *row, uint32_t input)
{
    return network_is_call(row->kind) || (input >= row->in_min && row->in_max != NETWORK_LIST);
}

static sinter_status check_inputs(env *e, const sinter_network *net, const network_row *row,
                                  sinter_network_tensor *const *in, uint32_t count)
{
    if (count < row->in_min || count > row->in_max)
        return FAIL(e, INVALID_ARG, "%u inputs for a layer of kind %s, wanted are %u to %u", count, row->name,
                    row->in_min, row->in_max);
    if (count && !in) return FAIL(e, INVALID_ARG, "the list of inputs is NULL");
    for (uint32_t i = 0; i < count; i++) {
        if (!in[i] && may_miss(row, i)) continue;
        sinter_status s = network_tensor_check(e, net, in[i], "a tensor");
        if (s) return NOTE(e, s, "while giving input %u of a layer of kind %s", i, row->name);
    }
    return SINTER_OK;
}

static bool fill_layer(sinter_layer *layer, const network_row *row, sinter_network_tensor *const *in, uint32_t count,
                       uint32_t outs)
{
    sinter_network *net = layer->net;
    while (row->param[layer->count_param].name) layer->count_param++;
    layer->param_row = row->param;
    layer->param = ARENA_NEW(&net->a, network_param, layer->count_param);
    layer->out = ARENA_NEW(&net->a, sinter_network_tensor *, outs);
    layer->name = arena_printf(&net->a, "%s_%u", row->name, layer->id);
    layer->metadata = "";
    if (!layer->param || !layer->out || !layer->name || !layer_room(layer, count)) return false;
    for (uint32_t i = 0; i < layer->count_param; i++) {
        layer->param[i].r = row->param[i].initial;
        layer->param[i].i = (int64_t)row->param[i].initial;
        layer->param[i].text = "";
    }
    for (uint32_t i = 0; i < outs; i++) {
        const char *name = arena_printf(&net->a, "%s.%u", layer->name, i);
        layer->out[i] = name ? network_tensor_new(net, layer, i, name) : NULL;
        if (!layer->out[i]) return false;
        layer->count_out++;
    }
    for (uint32_t i = 0; i < count; i++) {
        layer->in[i] = in[i];
        if (in[i]) in[i]->use_count++;
    }
    layer->count_in = count;
    return true;
}

sinter_layer *network_add(sinter_network *net, env *e, sinter_layer_kind kind, sinter_network_tensor *const *in,
                          uint32_t count)
{
    const network_row *row = network_row_of(kind);
    const bool joins =
        row && (strncmp(row->call, "sinter_loop_", 12) == 0 || strncmp(row->call, "sinter_cond", 11) == 0);
    if (kind == SINTER_LAYER_DIST_COLLECTIVE)
        return (void)FAIL(e, UNSUPPORTED, "dist_collective: an engine runs on one device"), NULL;
    if (row && (joins || network_is_call(kind)))
        return (void)FAIL(e, INVALID_ARG, "a layer of kind %s is made by %s", row->name, row->call), NULL;
    return network_make(net, e, kind, in, count, 0);
}

sinter_layer *network_make(sinter_network *net, env *e, sinter_layer_kind kind, sinter_network_tensor *const *in,
                           uint32_t count, uint32_t count_out)
{
    const network_row *row = network_row_of(kind);
    if (!row) {
        const char *name = network_kind_name(kind);
        (void)FAIL(e, INVALID_ARG, "%d%s%s is no kind of layer that can be added", (int)kind, *name ? ", " : "", name);
        return NULL;
    }
    if (check_inputs(e, net, row, in, count)) return NULL;
    if (net->layer.count >= e->limits.nodes_max) {
        (void)FAIL(e, NO_MEMORY, "more than %llu layers, the limit nodes_max", (unsigned long long)e->limits.nodes_max);
        return NULL;
    }
    sinter_layer *layer = ARENA_NEW(&net->a, sinter_layer, 1);
    sinter_layer **slot = layer ? VEC_PUSH(&net->a, &net->layer) : NULL;
    if (!slot) return (void)FAIL_MEMORY(e, "a layer"), NULL;
    *layer = (sinter_layer){ .net = net, .kind = kind, .row = row, .id = net->layer_count++ };
    if (!fill_layer(layer, row, in, count, network_is_call(kind) ? count_out : row->outs)) {
        net->layer.count--;
        return (void)FAIL_MEMORY(e, "a layer"), NULL;
    }
    return *slot = layer;
}

sinter_layer *network_add_op(sinter_network *net, env *e, const char *domain, const char *type, int64_t version,
                             sinter_network_tensor *const *in, uint32_t count, uint32_t count_out)
{
    if (!domain || !type || !*type)
        return (void)FAIL(e, INVALID_ARG, "the operator's domain or type is NULL or empty"), NULL;
    if (count_out < 1 || count_out > NETWORK_OUT_MAX)
        return (void)FAIL(e, INVALID_ARG, "%u outputs, wanted are 1 to %d", count_out, NETWORK_OUT_MAX), NULL;
    if (version < 0) return (void)FAIL(e, INVALID_ARG, "version %lld", (long long)version), NULL;
    const char *own_domain = network_text(net, strcmp(domain, "ai.onnx") ? domain : ""), *own = network_text(net, type);
    if (!own_domain || !own) return (void)FAIL_MEMORY(e, "a layer"), NULL;
    sinter_layer *layer = network_make(net, e, SINTER_LAYER_OP, in, count, count_out);
    if (layer)
        layer->op = (network_op_info){
            .domain = own_domain, .type = own, .version = version ? version : ONNX_OPSET_MAX, .count_in = count
        };
    return layer;
}

/* ---- loops and conditionals ---- */

network_control *network_control_add(sinter_network *net, env *e, bool is_loop)
{
    network_control *c = ARENA_NEW(&net->a, network_control, 1);
    const char *name = arena_printf(&net->a, "%s_%u", is_loop ? "loop" : "conditional", net->control_count);
    if (!c || !name) return (void)FAIL_MEMORY(e, "a loop"), NULL;
    *c = (network_control){ .net = net, .name = name, .is_loop = is_loop, .id = net->control_count++ };
    return c;
}

static bool has_kind(const network_control *c, sinter_layer_kind kind, int64_t of)
{
    for (uint32_t i = 0; i < c->layer.count; i++)
        if (c->layer.at[i]->kind == kind && network_param_of(c->layer.at[i], "kind")->i == of) return true;
    return false;
}

sinter_layer *network_join(network_control *c, env *e, sinter_layer_kind kind, sinter_network_tensor *const *in,
                           uint32_t count)
{
    if (kind == SINTER_LAYER_CONDITION && has_kind(c, kind, 0))
        return (void)FAIL(e, INVALID_ARG, "conditional '%s' has a condition already", c->name), NULL;
    sinter_layer *layer = network_make(c->net, e, kind, in, count, 0);
    sinter_layer **slot = layer ? VEC_PUSH(&c->net->a, &c->layer) : NULL;
    if (layer && !slot) return (void)FAIL_MEMORY(e, "a loop"), NULL;
    if (!layer) return NULL;
    layer->control = c;
    return *slot = layer;
}

sinter_status network_remove(sinter_network *net, env *e, sinter_layer *layer)
{
    if (layer->net != net) return FAIL(e, INVALID_ARG, "layer '%s' is of another network", layer->name);
    TRY(network_layer_check(e, layer));
    for (uint32_t i = 0; i < layer->count_out; i++) {
        const sinter_network_tensor *t = layer->out[i];
        uint32_t own = 0;
        for (uint32_t k = 0; k < layer->count_in; k++) own += layer->in[k] == t;
        if (t->use_count > own)
            return FAIL(e, INVALID_ARG, "layer '%s' cannot be removed: '%s' is read by another layer", layer->name,
                        t->name);
        if (t->is_output || t->is_shape_output || t->is_debug)
            return FAIL(e, INVALID_ARG, "layer '%s' cannot be removed: '%s' is an output", layer->name, t->name);
    }
    for (uint32_t i = 0; i < layer->count_in; i++)
        if (layer->in[i]) layer->in[i]->use_count--;
    for (uint32_t i = 0; i < layer->count_out; i++) layer->out[i]->is_removed = true;
    layer->is_removed = true;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < net->layer.count; i++)
        if (net->layer.at[i] != layer) net->layer.at[kept++] = net->layer.at[i];
    net->layer.count = kept;
    network_control *c = layer->control;
    kept = 0;
    for (uint32_t i = 0; c && i < c->layer.count; i++)
        if (c->layer.at[i] != layer) c->layer.at[kept++] = c->layer.at[i];
    if (c) c->layer.count = kept;
    network_changed(net);
    return SINTER_OK;
}

sinter_status network_remove_input(sinter_network *net, env *e, sinter_network_tensor *t)
{
    TRY(network_tensor_check(e, net, t, "the input"));
    TRY(want_input(e, t));
    if (t->use_count) return FAIL(e, INVALID_ARG, "input '%s' cannot be removed: a layer reads it", t->name);
    if (t->is_output || t->is_shape_output || t->is_debug)
        return FAIL(e, INVALID_ARG, "input '%s' cannot be removed: it is an output", t->name);
    list_remove(&net->input, t);
    t->is_removed = true;
    network_changed(net);
    return SINTER_OK;
}

sinter_status network_set_input(sinter_layer *layer, env *e, uint32_t index, sinter_network_tensor *t)
{
    const network_row *row = layer->row;
    TRY(network_layer_check(e, layer));
    const uint32_t most = row->in_max == NETWORK_LIST ? layer->count_in + 1 : row->in_max;
    if (index >= most || index >= NETWORK_LIST)
        return FAIL(e, INVALID_ARG, "input %u of layer '%s' (%s), which has at most %u", index, layer->name, row->name,
                    most);
    if (t || !may_miss(row, index)) TRY(network_tensor_check(e, layer->net, t, "the tensor"));
    if (!layer_room(layer, index + 1)) return FAIL_MEMORY(e, "an input");
    for (; layer->count_in <= index; layer->count_in++) layer->in[layer->count_in] = NULL;
    if (layer->in[index]) layer->in[index]->use_count--;
    if (t) t->use_count++;
    layer->in[index] = t;
    while (layer->count_in > row->in_min && !layer->in[layer->count_in - 1]) layer->count_in--;
    network_layer_changed(layer);
    return SINTER_OK;
}

sinter_status network_set_layer_text(sinter_layer *layer, env *e, const char *words, bool is_name)
{
    TRY(network_layer_check(e, layer));
    if (is_name) TRY(check_text(e, "a layer's name", words));
    if (!words) return FAIL(e, INVALID_ARG, "the text is NULL");
    const char *own = network_text(layer->net, words);
    if (!own) return FAIL_MEMORY(e, "a name");
    if (is_name) layer->name = own;
    else layer->metadata = own;
    return SINTER_OK;
}

sinter_status network_set_precision(sinter_layer *layer, env *e, sinter_dtype dtype)
{
    TRY(network_layer_check(e, layer));
    if (layer->net->is_strongly_typed)
        return FAIL(e, INVALID_ARG, "the network is strongly typed: layer '%s' has the types of its inputs",
                    layer->name);
    const bool is_product = layer->kind == SINTER_LAYER_CONVOLUTION || layer->kind == SINTER_LAYER_MATRIX_MULTIPLY;
    if (dtype == SINTER_DTYPE_I8 && !is_product)
        return FAIL(e, INVALID_ARG, "layer '%s' has the precision i8; wanted is a convolution or a matrix_multiply",
                    layer->name);
    if (dtype != SINTER_DTYPE_NONE && dtype != SINTER_DTYPE_F32 && dtype != SINTER_DTYPE_I8 &&
        !network_is_narrower(dtype))
        return FAIL(e, INVALID_ARG, "precision %d of layer '%s', wanted is f32, f16, bf16, i8 or none", (int)dtype,
                    layer->name);
    layer->precision = dtype;
    network_layer_changed(layer);
    return SINTER_OK;
}

bool network_is_narrower(sinter_dtype type)
{
    return type == SINTER_DTYPE_F16 || type == SINTER_DTYPE_BF16;
}

sinter_dtype network_obeyed(const sinter_layer *layer)
{
    const sinter_precision_mode mode = layer->net->precision;
    if (mode == SINTER_PRECISION_IGNORE || layer->control) return SINTER_DTYPE_NONE;
    return mode == SINTER_PRECISION_OBEY || layer->precision == SINTER_DTYPE_F32 ? layer->precision : SINTER_DTYPE_NONE;
}

sinter_status network_set_output_type(sinter_layer *layer, env *e, uint32_t index, sinter_dtype dtype)
{
    TRY(network_layer_check(e, layer));
    if (index >= layer->count_out)
        return FAIL(e, INVALID_ARG, "output %u of layer '%s', which has %u", index, layer->name, layer->count_out);
    if (layer->net->is_strongly_typed && dtype != SINTER_DTYPE_NONE)
        return FAIL(e, INVALID_ARG, "the network is strongly typed: layer '%s' has the types of its inputs",
                    layer->name);
    if (dtype != SINTER_DTYPE_NONE && !dtype_is_valid((int)dtype))
        return FAIL(e, INVALID_ARG, "type %d for an output of layer '%s', which is no type", (int)dtype, layer->name);
    layer->out[index]->dtype = dtype;
    network_layer_changed(layer);
    return SINTER_OK;
}
