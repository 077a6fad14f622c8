/* SPDX-License-Identifier: Apache-2.0 */
/* network_add_more.c - typed calls of sinter/network.h, second part: indices, quantisation, attention, loops. */
#include "api/network_adding.h"

sinter_layer *sinter_add_parametric_relu(sinter_network *net, sinter_network_tensor *input,
                                         sinter_network_tensor *slopes, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_PARAMETRIC_RELU, (sinter_network_tensor *[]){ input, slopes }, 2, error);
    return end(&a);
}

sinter_layer *sinter_add_lrn(sinter_network *net, sinter_network_tensor *input, int64_t window, double alpha,
                             double beta, double k, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_LRN, &input, 1, error);
    set_int(&a, "window_size", window);
    set_real(&a, "alpha", alpha);
    set_real(&a, "beta", beta);
    set_real(&a, "k", k);
    return end(&a);
}

sinter_layer *sinter_add_ragged_softmax(sinter_network *net, sinter_network_tensor *input,
                                        sinter_network_tensor *bounds, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_RAGGED_SOFTMAX, (sinter_network_tensor *[]){ input, bounds }, 2, error);
    return end(&a);
}

sinter_layer *sinter_add_cumulative(sinter_network *net, sinter_network_tensor *input, sinter_network_tensor *axis,
                                    sinter_cumulative op, uint32_t exclusive, uint32_t reverse, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_CUMULATIVE, (sinter_network_tensor *[]){ input, axis }, 2, error);
    set_int(&a, "op", op);
    set_int(&a, "exclusive", exclusive != 0);
    set_int(&a, "reverse", reverse != 0);
    return end(&a);
}

sinter_layer *sinter_add_einsum(sinter_network *net, sinter_network_tensor *const *input, uint32_t count,
                                const char *equation, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_EINSUM, input, count, error);
    set_text(&a, "equation", equation);
    return end(&a);
}

sinter_layer *sinter_add_squeeze(sinter_network *net, sinter_network_tensor *input, sinter_network_tensor *axes,
                                 sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_SQUEEZE, (sinter_network_tensor *[]){ input, axes }, 2, error);
    return end(&a);
}

sinter_layer *sinter_add_unsqueeze(sinter_network *net, sinter_network_tensor *input, sinter_network_tensor *axes,
                                   sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_UNSQUEEZE, (sinter_network_tensor *[]){ input, axes }, 2, error);
    return end(&a);
}

sinter_layer *sinter_add_scatter(sinter_network *net, sinter_network_tensor *data, sinter_network_tensor *indices,
                                 sinter_network_tensor *updates, sinter_scatter mode, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_SCATTER, (sinter_network_tensor *[]){ data, indices, updates }, 3, error);
    set_int(&a, "mode", mode);
    return end(&a);
}

sinter_layer *sinter_add_one_hot(sinter_network *net, sinter_network_tensor *indices, sinter_network_tensor *values,
                                 sinter_network_tensor *depth, int64_t axis, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_ONE_HOT, (sinter_network_tensor *[]){ indices, values, depth }, 3, error);
    set_int(&a, "axis", axis);
    return end(&a);
}

sinter_layer *sinter_add_non_zero(sinter_network *net, sinter_network_tensor *input, sinter_dtype indices_type,
                                  sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_NON_ZERO, &input, 1, error);
    set_int(&a, "indices_type", indices_type);
    return end(&a);
}

sinter_layer *sinter_add_nms(sinter_network *net, sinter_network_tensor *boxes, sinter_network_tensor *scores,
                             sinter_network_tensor *most_per_class, sinter_dtype indices_type, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_NMS, (sinter_network_tensor *[]){ boxes, scores, most_per_class }, 3, error);
    set_int(&a, "indices_type", indices_type);
    return end(&a);
}

sinter_layer *sinter_add_reverse_sequence(sinter_network *net, sinter_network_tensor *input,
                                          sinter_network_tensor *lengths, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_REVERSE_SEQUENCE, (sinter_network_tensor *[]){ input, lengths }, 2, error);
    return end(&a);
}

sinter_layer *sinter_add_grid_sample(sinter_network *net, sinter_network_tensor *input, sinter_network_tensor *grid,
                                     sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_GRID_SAMPLE, (sinter_network_tensor *[]){ input, grid }, 2, error);
    return end(&a);
}

sinter_layer *sinter_add_fill(sinter_network *net, uint32_t rank, const int64_t *d, sinter_fill op, sinter_dtype dtype,
                              sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_FILL, NULL, 0, error);
    set_ints(&a, "dim", d, rank);
    set_int(&a, "op", op);
    set_int(&a, "to_type", dtype);
    return end(&a);
}

sinter_layer *sinter_add_assertion(sinter_network *net, sinter_network_tensor *condition, const char *message,
                                   sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_ASSERTION, &condition, 1, error);
    set_text(&a, "message", message);
    return end(&a);
}

sinter_layer *sinter_add_quantize(sinter_network *net, sinter_network_tensor *input, sinter_network_tensor *scale,
                                  sinter_dtype dtype, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_QUANTIZE, (sinter_network_tensor *[]){ input, scale }, 2, error);
    set_int(&a, "to_type", dtype);
    return end(&a);
}

sinter_layer *sinter_add_dequantize(sinter_network *net, sinter_network_tensor *input, sinter_network_tensor *scale,
                                    sinter_dtype dtype, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_DEQUANTIZE, (sinter_network_tensor *[]){ input, scale }, 2, error);
    set_int(&a, "to_type", dtype);
    return end(&a);
}

sinter_layer *sinter_add_dynamic_quantize(sinter_network *net, sinter_network_tensor *input,
                                          sinter_network_tensor *double_scale, int64_t axis, int64_t block_size,
                                          sinter_dtype dtype, sinter_dtype scale_type, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_DYNAMIC_QUANTIZE, (sinter_network_tensor *[]){ input, double_scale }, 2, error);
    set_int(&a, "axis", axis);
    set_int(&a, "block_size", block_size);
    set_int(&a, "to_type", dtype);
    set_int(&a, "scale_type", scale_type);
    return end(&a);
}

sinter_layer *sinter_add_attention(sinter_network *net, sinter_network_tensor *query, sinter_network_tensor *key,
                                   sinter_network_tensor *value, sinter_norm_op op, sinter_causal causal,
                                   sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_ATTENTION, (sinter_network_tensor *[]){ query, key, value }, 3, error);
    set_int(&a, "norm_op", op);
    set_int(&a, "causal_kind", causal);
    return end(&a);
}

sinter_layer *sinter_add_rotary_embedding(sinter_network *net, sinter_network_tensor *input,
                                          sinter_network_tensor *cos_cache, sinter_network_tensor *sin_cache,
                                          uint32_t interleaved, int64_t rotary_dim, sinter_error *error)
{
    adding a =
        begin(net, SINTER_LAYER_ROTARY_EMBEDDING, (sinter_network_tensor *[]){ input, cos_cache, sin_cache }, 3, error);
    set_int(&a, "interleaved", interleaved != 0);
    set_int(&a, "rotary_embedding_dim", rotary_dim);
    return end(&a);
}

sinter_layer *sinter_add_kv_cache_update(sinter_network *net, sinter_network_tensor *cache,
                                         sinter_network_tensor *update, sinter_network_tensor *write_indices,
                                         sinter_cache_mode mode, sinter_error *error)
{
    adding a =
        begin(net, SINTER_LAYER_KV_CACHE_UPDATE, (sinter_network_tensor *[]){ cache, update, write_indices }, 3, error);
    set_int(&a, "cache_mode", mode);
    return end(&a);
}

sinter_layer *sinter_add_moe(sinter_network *net, sinter_network_tensor *hidden, sinter_network_tensor *experts,
                             sinter_network_tensor *scores, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_MOE, (sinter_network_tensor *[]){ hidden, experts, scores }, 3, error);
    return end(&a);
}

sinter_layer *sinter_add_op(sinter_network *net, const char *domain, const char *type, int64_t version,
                            sinter_network_tensor *const *input, uint32_t count, uint32_t count_out,
                            sinter_error *error)
{
    env *e = network_env(net, error);
    return e ? network_add_op(net, e, domain, type, version, input, count, count_out) : NULL;
}

sinter_layer *sinter_add_plugin(sinter_network *net, const char *name, const char *version, const char *space,
                                sinter_network_tensor *const *input, uint32_t count, uint32_t count_out,
                                const sinter_plugin_field *field, uint32_t count_field, sinter_error *error)
{
    env *e = network_env(net, error);
    if (!e) return NULL;
    if (count_field && !field) return (void)FAIL(e, INVALID_ARG, "%u fields at NULL", count_field), NULL;
    const network_plugin_info plugin = { name, version, space, NULL, 0 };
    sinter_layer *layer = network_add_plugin(net, e, &plugin, input, count, count_out);
    adding a = { .e = e, .net = net, .layer = layer, .status = layer ? SINTER_OK : SINTER_INVALID_ARG };
    for (uint32_t i = 0; i < count_field && !a.status; i++) a.status = network_set_field(layer, e, &field[i]);
    return end(&a);
}

/* ---- loops and conditionals ---- */

static adding join(network_control *c, sinter_layer_kind kind, sinter_network_tensor *const *in, uint32_t count,
                   sinter_error *error)
{
    adding a = { .e = network_env(c ? c->net : NULL, error), .net = c ? c->net : NULL };
    if (a.e) a.layer = network_join(c, a.e, kind, in, count);
    a.status = a.layer ? SINTER_OK : SINTER_INVALID_ARG;
    return a;
}

sinter_loop *sinter_network_add_loop(sinter_network *net, sinter_error *error)
{
    env *e = network_env(net, error);
    return e ? (sinter_loop *)(void *)network_control_add(net, e, true) : NULL;
}

sinter_conditional *sinter_network_add_conditional(sinter_network *net, sinter_error *error)
{
    env *e = network_env(net, error);
    return e ? (sinter_conditional *)(void *)network_control_add(net, e, false) : NULL;
}

static sinter_status set_name(network_control *c, const char *name, sinter_error *error)
{
    env *e = network_env(c ? c->net : NULL, error);
    if (!e) return SINTER_INVALID_ARG;
    if (!name) return FAIL(e, INVALID_ARG, "the name is NULL");
    const char *own = network_text(c->net, name);
    if (!own) return FAIL_MEMORY(e, "a name");
    c->name = own;
    return SINTER_OK;
}

const char *sinter_loop_name(const sinter_loop *loop)
{
    return loop ? loop->c.name : "";
}

sinter_status sinter_loop_set_name(sinter_loop *loop, const char *name, sinter_error *error)
{
    return set_name(loop ? &loop->c : NULL, name, error);
}

const char *sinter_conditional_name(const sinter_conditional *conditional)
{
    return conditional ? conditional->c.name : "";
}

sinter_status sinter_conditional_set_name(sinter_conditional *conditional, const char *name, sinter_error *error)
{
    return set_name(conditional ? &conditional->c : NULL, name, error);
}

sinter_layer *sinter_loop_add_trip_limit(sinter_loop *loop, sinter_network_tensor *t, sinter_trip_limit kind,
                                         sinter_error *error)
{
    adding a = join(loop ? &loop->c : NULL, SINTER_LAYER_TRIP_LIMIT, &t, 1, error);
    set_int(&a, "kind", kind);
    return end(&a);
}

sinter_layer *sinter_loop_add_recurrence(sinter_loop *loop, sinter_network_tensor *initial, sinter_error *error)
{
    adding a = join(loop ? &loop->c : NULL, SINTER_LAYER_RECURRENCE, &initial, 1, error);
    return end(&a);
}

sinter_layer *sinter_loop_add_iterator(sinter_loop *loop, sinter_network_tensor *t, int64_t axis, uint32_t reverse,
                                       sinter_error *error)
{
    adding a = join(loop ? &loop->c : NULL, SINTER_LAYER_ITERATOR, &t, 1, error);
    set_int(&a, "axis", axis);
    set_int(&a, "reverse", reverse != 0);
    return end(&a);
}

sinter_layer *sinter_loop_add_output(sinter_loop *loop, sinter_network_tensor *t, sinter_loop_output kind, int64_t axis,
                                     sinter_error *error)
{
    adding a = join(loop ? &loop->c : NULL, SINTER_LAYER_LOOP_OUTPUT, &t, 1, error);
    set_int(&a, "kind", kind);
    set_int(&a, "axis", axis);
    return end(&a);
}

sinter_layer *sinter_conditional_set_condition(sinter_conditional *conditional, sinter_network_tensor *condition,
                                               sinter_error *error)
{
    adding a = join(conditional ? &conditional->c : NULL, SINTER_LAYER_CONDITION, &condition, 1, error);
    return end(&a);
}

sinter_layer *sinter_conditional_add_input(sinter_conditional *conditional, sinter_network_tensor *input,
                                           sinter_error *error)
{
    adding a = join(conditional ? &conditional->c : NULL, SINTER_LAYER_CONDITIONAL_INPUT, &input, 1, error);
    return end(&a);
}

sinter_layer *sinter_conditional_add_output(sinter_conditional *conditional, sinter_network_tensor *then_value,
                                            sinter_network_tensor *else_value, sinter_error *error)
{
    adding a = join(conditional ? &conditional->c : NULL, SINTER_LAYER_CONDITIONAL_OUTPUT,
                    (sinter_network_tensor *[]){ then_value, else_value }, 2, error);
    return end(&a);
}
