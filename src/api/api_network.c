/* SPDX-License-Identifier: Apache-2.0 */
/* api_network.c - sinter/network.h but for the typed calls: handles are checked here, the work is in src/network. */
#include "api/handle.h"
#include "builder/builder.h"
#include "network/network.h"
#include "onnx/export.h"

#include <string.h>

sinter_status sinter_network_create(const sinter_env_options *options, sinter_network **out, sinter_error *error)
{
    env e;
    env_init(&e, NULL, error);
    if (!out) return FAIL(&e, INVALID_ARG, "out is NULL");
    *out = NULL;
    env_init(&e, options, error);
    TRY(env_check(&e));
    sinter_network *net = mem_zalloc(&e, sizeof *net, _Alignof(sinter_network));
    if (!net) return FAIL_MEMORY(&e, "a network");
    net->e = e;
    net->e.error = &net->e.error_own;
    net->e.budget = &net->budget;
    net->name = "";
    arena_init(&net->a, &net->e);
    arena_init(&net->answers, &net->e);
    *out = net;
    return SINTER_OK;
}

void sinter_network_destroy(sinter_network *net)
{
    if (!net) return;
    net->e.error = &net->e.error_own;
    network_changed(net);
    arena_deinit(&net->answers);
    arena_deinit(&net->a);
    onnx_files_close(&net->e, &net->files);
    env e = net->e;
    e.budget = NULL;
    mem_free(&e, net, sizeof *net, _Alignof(sinter_network));
}

sinter_status sinter_network_set_name(sinter_network *net, const char *name, sinter_error *error)
{
    env *e = network_env(net, error);
    if (!e) return SINTER_INVALID_ARG;
    if (!name) return FAIL(e, INVALID_ARG, "the name is NULL");
    const char *own = network_text(net, name);
    if (!own) return FAIL_MEMORY(e, "a name");
    net->name = own;
    return SINTER_OK;
}

const char *sinter_network_name(const sinter_network *net)
{
    return net ? net->name : "";
}

sinter_network_tensor *sinter_network_add_input(sinter_network *net, const char *name, sinter_dtype dtype,
                                                uint32_t rank, const int64_t *d, const char *const *dim_name,
                                                sinter_error *error)
{
    env *e = network_env(net, error);
    return e ? network_add_input(net, e, name, dtype, rank, d, dim_name) : NULL;
}

sinter_status sinter_network_write_onnx(sinter_network *net, const char *path, sinter_error *error)
{
    env *e = network_env(net, error);
    if (!e) return SINTER_INVALID_ARG;
    if (!path) return FAIL(e, INVALID_ARG, "path is NULL");
    ir_graph *g = NULL;
    const onnx_import_options whole = { 0 }; /* NULL: loops and conditionals without their regions */
    TRY(NOTE(e, network_lower(net, e, &whole, &g), "writing a network as ONNX"));
    const onnx_write_options options = { .graph_name = *net->name ? net->name : NULL };
    sinter_status s = ir_sweep(g);
    if (s == SINTER_OK) s = onnx_write_file(e, g, &options, false, path);
    ir_graph_destroy(g);
    return NOTE(e, s, "writing '%s'", path);
}

/* ---- marks ---- */

sinter_status sinter_network_mark_output(sinter_network *net, sinter_network_tensor *t, sinter_error *error)
{
    env *e = network_env(net, error);
    if (!e) return SINTER_INVALID_ARG;
    TRY(network_tensor_check(e, net, t, "the tensor"));
    return network_mark(net, e, t, &net->output, &t->is_output, true, "an output");
}

sinter_status sinter_network_unmark_output(sinter_network *net, sinter_network_tensor *t, sinter_error *error)
{
    env *e = network_env(net, error);
    if (!e) return SINTER_INVALID_ARG;
    TRY(network_tensor_check(e, net, t, "the tensor"));
    return network_mark(net, e, t, &net->output, &t->is_output, false, "an output");
}

sinter_status sinter_network_mark_shape_output(sinter_network *net, sinter_network_tensor *t, uint32_t is_marked,
                                               sinter_error *error)
{
    env *e = network_env(net, error);
    if (!e) return SINTER_INVALID_ARG;
    TRY(network_tensor_check(e, net, t, "the tensor"));
    return network_mark(net, e, t, &net->shape_output, &t->is_shape_output, is_marked != 0, "an output for its shape");
}

sinter_status sinter_network_mark_debug(sinter_network *net, sinter_network_tensor *t, uint32_t is_marked,
                                        sinter_error *error)
{
    env *e = network_env(net, error);
    if (!e) return SINTER_INVALID_ARG;
    TRY(network_tensor_check(e, net, t, "the tensor"));
    return network_mark(net, e, t, &net->debug, &t->is_debug, is_marked != 0, "a debug tensor");
}

/* ---- lists ---- */

uint32_t sinter_network_layer_count(const sinter_network *net)
{
    return net ? net->layer.count : 0;
}

sinter_layer *sinter_network_layer(const sinter_network *net, uint32_t index)
{
    return net && index < net->layer.count ? net->layer.at[index] : NULL;
}

uint32_t sinter_network_input_count(const sinter_network *net)
{
    return net ? net->input.count : 0;
}

sinter_network_tensor *sinter_network_input(const sinter_network *net, uint32_t index)
{
    return net && index < net->input.count ? net->input.at[index] : NULL;
}

uint32_t sinter_network_output_count(const sinter_network *net)
{
    return net ? net->output.count : 0;
}

sinter_network_tensor *sinter_network_output(const sinter_network *net, uint32_t index)
{
    return net && index < net->output.count ? net->output.at[index] : NULL;
}

sinter_layer *sinter_network_find_layer(const sinter_network *net, const char *name)
{
    for (uint32_t i = 0; net && name && i < net->layer.count; i++)
        if (strcmp(net->layer.at[i]->name, name) == 0) return net->layer.at[i];
    return NULL;
}

sinter_network_tensor *sinter_network_find_tensor(const sinter_network *net, const char *name)
{
    for (uint32_t i = 0; net && name && i < net->tensor.count; i++)
        if (!net->tensor.at[i]->is_removed && strcmp(net->tensor.at[i]->name, name) == 0) return net->tensor.at[i];
    return NULL;
}

sinter_status sinter_network_remove_layer(sinter_network *net, sinter_layer *layer, sinter_error *error)
{
    env *e = network_env(net, error);
    if (!e) return SINTER_INVALID_ARG;
    return layer ? network_remove(net, e, layer) : FAIL(e, INVALID_ARG, "the layer is NULL");
}

sinter_status sinter_network_remove_input(sinter_network *net, sinter_network_tensor *input, sinter_error *error)
{
    env *e = network_env(net, error);
    return e ? network_remove_input(net, e, input) : SINTER_INVALID_ARG;
}

/* ---- tensors ---- */

const char *sinter_network_tensor_name(const sinter_network_tensor *t)
{
    return t ? t->name : "";
}

sinter_layer *sinter_network_tensor_producer(const sinter_network_tensor *t)
{
    return t ? t->producer : NULL;
}

uint32_t sinter_network_tensor_is_input(const sinter_network_tensor *t)
{
    return t && !t->producer && !t->is_removed;
}

uint32_t sinter_network_tensor_is_output(const sinter_network_tensor *t)
{
    return t && t->is_output;
}

uint32_t sinter_network_tensor_is_shape_output(const sinter_network_tensor *t)
{
    return t && t->is_shape_output;
}

uint32_t sinter_network_tensor_is_debug(const sinter_network_tensor *t)
{
    return t && t->is_debug;
}

uint32_t sinter_network_tensor_is_removed(const sinter_network_tensor *t)
{
    return t && t->is_removed;
}

#define TENSOR_CALL(call)                                                                                              \
    env *e = network_env(t ? t->net : NULL, error);                                                                    \
    return e ? (call) : SINTER_INVALID_ARG

sinter_status sinter_network_tensor_set_name(sinter_network_tensor *t, const char *name, sinter_error *error)
{
    TENSOR_CALL(network_tensor_set_name(t, e, name));
}

sinter_status sinter_network_tensor_set_type(sinter_network_tensor *t, sinter_dtype dtype, sinter_error *error)
{
    TENSOR_CALL(network_tensor_set_type(t, e, dtype));
}

sinter_status sinter_network_tensor_set_shape(sinter_network_tensor *t, uint32_t rank, const int64_t *d,
                                              sinter_error *error)
{
    TENSOR_CALL(network_tensor_set_shape(t, e, rank, d));
}

sinter_status sinter_network_tensor_set_dim_name(sinter_network_tensor *t, uint32_t axis, const char *name,
                                                 sinter_error *error)
{
    TENSOR_CALL(network_tensor_set_dim_name(t, e, axis, name));
}

sinter_status sinter_network_tensor_shape(sinter_network_tensor *t, sinter_network_shape *out, sinter_error *error)
{
    TENSOR_CALL(out ? network_shape(t, e, out) : FAIL(e, INVALID_ARG, "out is NULL"));
}

sinter_status sinter_network_tensor_values(sinter_network_tensor *t, int64_t *out, uint32_t count, sinter_error *error)
{
    TENSOR_CALL(out || !count ? network_values(t, e, out, count) : FAIL(e, INVALID_ARG, "out is NULL"));
}

/* ---- layers ---- */

sinter_layer_kind sinter_layer_get_kind(const sinter_layer *layer)
{
    return layer ? layer->kind : SINTER_LAYER_OP;
}

sinter_layer_kind sinter_layer_nearest_kind(const sinter_layer *layer)
{
    return layer ? network_nearest_kind(layer) : SINTER_LAYER_OP;
}

const char *sinter_layer_kind_name(sinter_layer_kind kind)
{
    return network_kind_name(kind);
}

const char *sinter_layer_name(const sinter_layer *layer)
{
    return layer ? layer->name : "";
}

const char *sinter_layer_metadata(const sinter_layer *layer)
{
    return layer ? layer->metadata : "";
}

uint32_t sinter_layer_input_count(const sinter_layer *layer)
{
    return layer ? layer->count_in : 0;
}

sinter_network_tensor *sinter_layer_input(const sinter_layer *layer, uint32_t index)
{
    return layer && index < layer->count_in ? layer->in[index] : NULL;
}

uint32_t sinter_layer_output_count(const sinter_layer *layer)
{
    return layer ? layer->count_out : 0;
}

sinter_network_tensor *sinter_layer_output(const sinter_layer *layer, uint32_t index)
{
    return layer && index < layer->count_out ? layer->out[index] : NULL;
}

uint32_t sinter_layer_is_removed(const sinter_layer *layer)
{
    return layer && layer->is_removed;
}

sinter_loop *sinter_layer_loop(const sinter_layer *layer)
{
    return layer && layer->control && layer->control->is_loop ? (sinter_loop *)(void *)layer->control : NULL;
}

sinter_conditional *sinter_layer_conditional(const sinter_layer *layer)
{
    return layer && layer->control && !layer->control->is_loop ? (sinter_conditional *)(void *)layer->control : NULL;
}

#define LAYER_CALL(call)                                                                                               \
    env *e = network_env(layer ? layer->net : NULL, error);                                                            \
    return e ? (call) : SINTER_INVALID_ARG

sinter_status sinter_layer_set_name(sinter_layer *layer, const char *name, sinter_error *error)
{
    LAYER_CALL(network_set_layer_text(layer, e, name, true));
}

sinter_status sinter_layer_set_metadata(sinter_layer *layer, const char *words, sinter_error *error)
{
    LAYER_CALL(network_set_layer_text(layer, e, words, false));
}

sinter_status sinter_layer_set_input(sinter_layer *layer, uint32_t index, sinter_network_tensor *t, sinter_error *error)
{
    LAYER_CALL(network_set_input(layer, e, index, t));
}

sinter_status sinter_layer_set_output_type(sinter_layer *layer, uint32_t index, sinter_dtype dtype, sinter_error *error)
{
    LAYER_CALL(network_set_output_type(layer, e, index, dtype));
}

sinter_dtype sinter_layer_output_type(const sinter_layer *layer, uint32_t index)
{
    return layer && index < layer->count_out ? layer->out[index]->dtype : SINTER_DTYPE_NONE;
}

sinter_status sinter_layer_set_precision(sinter_layer *layer, sinter_dtype dtype, sinter_error *error)
{
    LAYER_CALL(network_set_precision(layer, e, dtype));
}

sinter_dtype sinter_layer_precision(const sinter_layer *layer)
{
    return layer ? layer->precision : SINTER_DTYPE_NONE;
}

sinter_status sinter_network_set_precision_mode(sinter_network *net, sinter_precision_mode mode, sinter_error *error)
{
    env *e = network_env(net, error);
    if (!e) return SINTER_INVALID_ARG;
    if (mode < SINTER_PRECISION_OBEY || mode > SINTER_PRECISION_IGNORE)
        return FAIL(e, INVALID_ARG, "mode %d of precisions", (int)mode);
    net->precision = mode;
    network_changed(net);
    return SINTER_OK;
}

sinter_status sinter_network_set_strongly_typed(sinter_network *net, uint32_t is_strongly_typed, sinter_error *error)
{
    env *e = network_env(net, error);
    if (!e) return SINTER_INVALID_ARG;
    for (uint32_t i = 0; i < net->layer.count && is_strongly_typed; i++) {
        const sinter_layer *layer = net->layer.at[i];
        bool has_type = layer->precision != SINTER_DTYPE_NONE;
        for (uint32_t k = 0; k < layer->count_out; k++) has_type = has_type || layer->out[k]->dtype;
        if (has_type) return FAIL(e, INVALID_ARG, "layer '%s' has a precision or an output type", layer->name);
    }
    net->is_strongly_typed = is_strongly_typed != 0;
    return SINTER_OK;
}

uint32_t sinter_network_is_strongly_typed(const sinter_network *net)
{
    return net && net->is_strongly_typed;
}

/* ---- parameters ---- */

const sinter_param *sinter_layer_kind_param(sinter_layer_kind kind, uint32_t index)
{
    const network_row *row = network_row_of(kind);
    for (uint32_t i = 0; row && row->param[i].name; i++)
        if (i == index) return &row->param[i];
    return NULL;
}

const sinter_param *sinter_layer_param(const sinter_layer *layer, uint32_t index)
{
    return layer && index < layer->count_param ? &layer->param_row[index] : NULL;
}

sinter_status sinter_layer_set_int(sinter_layer *layer, const char *name, int64_t value, sinter_error *error)
{
    LAYER_CALL(network_set_int(layer, e, name, value));
}

sinter_status sinter_layer_set_real(sinter_layer *layer, const char *name, double value, sinter_error *error)
{
    LAYER_CALL(network_set_real(layer, e, name, value));
}

sinter_status sinter_layer_set_ints(sinter_layer *layer, const char *name, const int64_t *value, uint32_t count,
                                    sinter_error *error)
{
    LAYER_CALL(network_set_ints(layer, e, name, value, count));
}

sinter_status sinter_layer_set_reals(sinter_layer *layer, const char *name, const double *value, uint32_t count,
                                     sinter_error *error)
{
    LAYER_CALL(network_set_reals(layer, e, name, value, count));
}

sinter_status sinter_layer_set_text(sinter_layer *layer, const char *name, const char *value, sinter_error *error)
{
    LAYER_CALL(network_set_text(layer, e, name, value));
}

sinter_status sinter_layer_set_weights(sinter_layer *layer, const char *name, const sinter_weights *value,
                                       sinter_error *error)
{
    LAYER_CALL(network_set_weights(layer, e, name, value));
}

sinter_status sinter_layer_set_weights_name(sinter_layer *layer, const char *name, const char *value,
                                            sinter_error *error)
{
    LAYER_CALL(network_set_weights_name(layer, e, name, value));
}

#define LAYER_READ(call)                                                                                               \
    env *e = network_env(layer ? layer->net : NULL, error);                                                            \
    return !e ? SINTER_INVALID_ARG : !out ? FAIL(e, INVALID_ARG, "out is NULL") : (call)

sinter_status sinter_layer_get_int(const sinter_layer *layer, const char *name, int64_t *out, sinter_error *error)
{
    LAYER_READ(network_get_int(layer, e, name, out));
}

sinter_status sinter_layer_get_real(const sinter_layer *layer, const char *name, double *out, sinter_error *error)
{
    LAYER_READ(network_get_real(layer, e, name, out));
}

sinter_status sinter_layer_get_ints(const sinter_layer *layer, const char *name, int64_t *out, uint32_t capacity,
                                    uint32_t *count, sinter_error *error)
{
    LAYER_CALL(network_get_ints(layer, e, name, out, capacity, count));
}

sinter_status sinter_layer_get_reals(const sinter_layer *layer, const char *name, double *out, uint32_t capacity,
                                     uint32_t *count, sinter_error *error)
{
    LAYER_CALL(network_get_reals(layer, e, name, out, capacity, count));
}

sinter_status sinter_layer_get_text(const sinter_layer *layer, const char *name, const char **out, sinter_error *error)
{
    LAYER_READ(network_get_text(layer, e, name, out));
}

sinter_status sinter_layer_get_weights(const sinter_layer *layer, const char *name, sinter_weights *out,
                                       sinter_error *error)
{
    LAYER_READ(network_get_weights(layer, e, name, out));
}

sinter_status sinter_layer_operator(const sinter_layer *layer, const char **domain, const char **type, int64_t *version)
{
    if (!layer || layer->kind != SINTER_LAYER_OP) return SINTER_INVALID_ARG;
    if (domain) *domain = layer->op.domain;
    if (type) *type = layer->op.type;
    if (version) *version = layer->op.version;
    return SINTER_OK;
}

sinter_status sinter_layer_set_field(sinter_layer *layer, const sinter_plugin_field *field, sinter_error *error)
{
    LAYER_CALL(network_set_field(layer, e, field));
}

const sinter_plugin_field *sinter_layer_field(const sinter_layer *layer, uint32_t index)
{
    return layer && index < layer->plugin.count_field ? &layer->plugin.field[index] : NULL;
}

sinter_status sinter_layer_plugin(const sinter_layer *layer, const char **name, const char **version,
                                  const char **space)
{
    if (!layer || layer->kind != SINTER_LAYER_PLUGIN) return SINTER_INVALID_ARG;
    if (name) *name = layer->plugin.name;
    if (version) *version = layer->plugin.version;
    if (space) *space = layer->plugin.space;
    return SINTER_OK;
}

sinter_layer *sinter_network_add(sinter_network *net, sinter_layer_kind kind, sinter_network_tensor *const *in,
                                 uint32_t count, sinter_error *error)
{
    env *e = network_env(net, error);
    return e ? network_add(net, e, kind, in, count) : NULL;
}
