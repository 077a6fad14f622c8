/* SPDX-License-Identifier: Apache-2.0 */
/* network_add.c - typed calls of sinter/network.h, first part: layers of dense networks. */
#include "api/network_adding.h"

sinter_layer *sinter_add_constant(sinter_network *net, const sinter_tensor *value, uint32_t is_borrowed,
                                  sinter_error *error)
{
    env *e = network_env(net, error);
    if (!e) return NULL;
    view v;
    if (!value) return (void)FAIL(e, INVALID_ARG, "the value is NULL"), NULL;
    if (value->rank > SINTER_RANK_MAX || !dtype_is_valid((int)value->dtype) ||
        !view_init(&v, value->dtype, value->rank, value->dim, value->data))
        return (void)FAIL(e, INVALID_ARG, "the value is no tensor"), NULL;
    if (value->place == SINTER_PLACE_DEVICE)
        return (void)FAIL(e, INVALID_ARG, "the value lies on the device, wanted on the host"), NULL;
    const sinter_weights w = {
        .dtype = value->dtype, .is_borrowed = is_borrowed != 0, .count = view_count(&v), .data = value->data
    };
    adding a = begin(net, SINTER_LAYER_CONSTANT, NULL, 0, error);
    set_ints(&a, "shape", value->dim, value->rank);
    set_weights(&a, "weights", &w);
    return end(&a);
}

static sinter_layer *add_window(sinter_network *net, sinter_layer_kind kind, sinter_network_tensor *input, int64_t maps,
                                uint32_t spatial, const int64_t *size, const sinter_weights *kernel,
                                const sinter_weights *bias, sinter_error *error)
{
    adding a = begin(net, kind, &input, 1, error);
    if (!a.status && (spatial < 1 || spatial > NETWORK_SPATIAL_MAX))
        a.status = FAIL(a.e, INVALID_ARG, "%u spatial axes, wanted are 1 to %d", spatial, NETWORK_SPATIAL_MAX);
    set_int(&a, "maps", maps);
    set_ints(&a, "kernel_size", size, spatial);
    set_weights(&a, "kernel", kernel);
    set_weights(&a, "bias", bias);
    return end(&a);
}

sinter_layer *sinter_add_convolution(sinter_network *net, sinter_network_tensor *input, int64_t maps, uint32_t spatial,
                                     const int64_t *kernel_size, const sinter_weights *kernel,
                                     const sinter_weights *bias, sinter_error *error)
{
    return add_window(net, SINTER_LAYER_CONVOLUTION, input, maps, spatial, kernel_size, kernel, bias, error);
}

sinter_layer *sinter_add_deconvolution(sinter_network *net, sinter_network_tensor *input, int64_t maps,
                                       uint32_t spatial, const int64_t *kernel_size, const sinter_weights *kernel,
                                       const sinter_weights *bias, sinter_error *error)
{
    return add_window(net, SINTER_LAYER_DECONVOLUTION, input, maps, spatial, kernel_size, kernel, bias, error);
}

sinter_layer *sinter_add_pooling(sinter_network *net, sinter_network_tensor *input, sinter_pooling type,
                                 uint32_t spatial, const int64_t *window, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_POOLING, &input, 1, error);
    if (!a.status && (spatial < 1 || spatial > NETWORK_SPATIAL_MAX))
        a.status = FAIL(a.e, INVALID_ARG, "%u spatial axes, wanted are 1 to %d", spatial, NETWORK_SPATIAL_MAX);
    set_int(&a, "type", type);
    set_ints(&a, "window_size", window, spatial);
    return end(&a);
}

sinter_layer *sinter_add_activation(sinter_network *net, sinter_network_tensor *input, sinter_activation type,
                                    sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_ACTIVATION, &input, 1, error);
    set_int(&a, "type", type);
    return end(&a);
}

sinter_layer *sinter_add_scale(sinter_network *net, sinter_network_tensor *input, sinter_scale_mode mode,
                               const sinter_weights *shift, const sinter_weights *scale, const sinter_weights *power,
                               int64_t channel_axis, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_SCALE, &input, 1, error);
    set_int(&a, "mode", mode);
    set_int(&a, "channel_axis", channel_axis);
    set_weights(&a, "shift", shift);
    set_weights(&a, "scale", scale);
    set_weights(&a, "power", power);
    return end(&a);
}

sinter_layer *sinter_add_softmax(sinter_network *net, sinter_network_tensor *input, uint32_t axes, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_SOFTMAX, &input, 1, error);
    set_int(&a, "axes", axes);
    return end(&a);
}

sinter_layer *sinter_add_normalization(sinter_network *net, sinter_network_tensor *input, sinter_network_tensor *scale,
                                       sinter_network_tensor *bias, uint32_t axes, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_NORMALIZATION, (sinter_network_tensor *[]){ input, scale, bias }, 3, error);
    set_int(&a, "axes", axes);
    return end(&a);
}

sinter_layer *sinter_add_elementwise(sinter_network *net, sinter_network_tensor *x, sinter_network_tensor *y,
                                     sinter_elementwise op, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_ELEMENTWISE, (sinter_network_tensor *[]){ x, y }, 2, error);
    set_int(&a, "op", op);
    return end(&a);
}

sinter_layer *sinter_add_unary(sinter_network *net, sinter_network_tensor *input, sinter_unary op, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_UNARY, &input, 1, error);
    set_int(&a, "op", op);
    return end(&a);
}

sinter_layer *sinter_add_reduce(sinter_network *net, sinter_network_tensor *input, sinter_reduction op, uint32_t axes,
                                uint32_t keeps_axes, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_REDUCE, &input, 1, error);
    set_int(&a, "op", op);
    set_int(&a, "axes", axes);
    set_int(&a, "keep_dims", keeps_axes != 0);
    return end(&a);
}

sinter_layer *sinter_add_matrix_multiply(sinter_network *net, sinter_network_tensor *x, sinter_matrix op_x,
                                         sinter_network_tensor *y, sinter_matrix op_y, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_MATRIX_MULTIPLY, (sinter_network_tensor *[]){ x, y }, 2, error);
    set_int(&a, "op0", op_x);
    set_int(&a, "op1", op_y);
    return end(&a);
}

sinter_layer *sinter_add_concatenation(sinter_network *net, sinter_network_tensor *const *input, uint32_t count,
                                       int64_t axis, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_CONCATENATION, input, count, error);
    set_int(&a, "axis", axis);
    return end(&a);
}

sinter_layer *sinter_add_slice(sinter_network *net, sinter_network_tensor *input, uint32_t rank, const int64_t *start,
                               const int64_t *size, const int64_t *stride, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_SLICE, &input, 1, error);
    set_ints(&a, "start", start, rank);
    set_ints(&a, "size", size, rank);
    set_ints(&a, "stride", stride, rank);
    return end(&a);
}

sinter_layer *sinter_add_padding(sinter_network *net, sinter_network_tensor *input, uint32_t count, const int64_t *pre,
                                 const int64_t *post, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_PADDING, &input, 1, error);
    set_ints(&a, "pre_padding", pre, count);
    set_ints(&a, "post_padding", post, count);
    return end(&a);
}

sinter_layer *sinter_add_shuffle(sinter_network *net, sinter_network_tensor *input, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_SHUFFLE, &input, 1, error);
    return end(&a);
}

sinter_layer *sinter_add_shape(sinter_network *net, sinter_network_tensor *input, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_SHAPE, &input, 1, error);
    return end(&a);
}

sinter_layer *sinter_add_gather(sinter_network *net, sinter_network_tensor *data, sinter_network_tensor *indices,
                                sinter_gather mode, int64_t axis, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_GATHER, (sinter_network_tensor *[]){ data, indices }, 2, error);
    set_int(&a, "mode", mode);
    set_int(&a, "axis", axis);
    return end(&a);
}

sinter_layer *sinter_add_topk(sinter_network *net, sinter_network_tensor *input, sinter_topk op, int64_t k,
                              uint32_t axes, sinter_dtype indices_type, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_TOPK, &input, 1, error);
    set_int(&a, "op", op);
    set_int(&a, "k", k);
    set_int(&a, "axes", axes);
    set_int(&a, "indices_type", indices_type);
    return end(&a);
}

sinter_layer *sinter_add_resize(sinter_network *net, sinter_network_tensor *input, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_RESIZE, &input, 1, error);
    return end(&a);
}

sinter_layer *sinter_add_identity(sinter_network *net, sinter_network_tensor *input, sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_IDENTITY, &input, 1, error);
    return end(&a);
}

sinter_layer *sinter_add_cast(sinter_network *net, sinter_network_tensor *input, sinter_dtype dtype,
                              sinter_error *error)
{
    adding a = begin(net, SINTER_LAYER_CAST, &input, 1, error);
    set_int(&a, "to_type", dtype);
    return end(&a);
}

sinter_layer *sinter_add_select(sinter_network *net, sinter_network_tensor *condition,
                                sinter_network_tensor *then_value, sinter_network_tensor *else_value,
                                sinter_error *error)
{
    adding a =
        begin(net, SINTER_LAYER_SELECT, (sinter_network_tensor *[]){ condition, then_value, else_value }, 3, error);
    return end(&a);
}
