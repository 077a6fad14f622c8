/* SPDX-License-Identifier: Apache-2.0 */
/* lower_dense.c - constants, convolutions, pools, products, reductions and normalisations. */
#include "network/network.h"
#include "onnx/quirks.h"

#include <math.h>
#include <string.h>

void lower_constant(network_call *n)
{
    attr_ints shape;
    network_ints(n, "shape", &shape);
    if (shape.count > SINTER_RANK_MAX) REJECT(&n->c, INVALID_ARG, "rank %u", shape.count);
    const network_param *p = network_param_of(n->layer, "weights");
    int64_t total = 1;
    for (uint32_t i = 0; i < shape.count; i++)
        if (shape.at[i] < 0 || !i64_mul(total, shape.at[i], &total))
            REJECT(&n->c, INVALID_ARG, "axis %u of the constant has size %lld", i, (long long)shape.at[i]);
    if (!p->is_set) REJECT(&n->c, INVALID_ARG, "the constant has no weights");
    n->c.out[0] = network_weights(n, "weights", shape.count, shape.at);
    if (n->c.b.status || n->c.out[0]) return;
    if (total) REJECT(&n->c, INVALID_ARG, "the constant has no weights for %lld elements", (long long)total);
    view v;
    if (!view_init(&v, p->weights.dtype ? p->weights.dtype : SINTER_DTYPE_F32, shape.count, shape.at, NULL))
        REJECT(&n->c, INVALID_ARG, "the constant's shape is too large");
    else n->c.out[0] = build_const(&n->c.b, NULL, &v);
}

/* ---- windows ---- */

static void check_list(network_call *n, const char *name, const attr_ints *list, uint32_t spatial)
{
    if (list->count != spatial)
        REJECT(
            &n->c, INVALID_ARG,
            "parameter %s has %u numbers for %u spatial axes: the input has rank %u, batch and channels come first%s",
            name, list->count, spatial, spatial + 2,
            list->count == spatial + 1 ? "; an implicit batch is not supported" : "");
}

/* Axes in front of batch and channels are more of the batch: *x, which was input 0, is seen without them while a window
 * moves over it. Gives their number; `front` gets what stands in front of the channels. */
static uint32_t fold_batch(network_call *n, const char *window_name, ir_value_id *x, dim *front)
{
    attr_ints window;
    dim d[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(&n->c, *x, d);
    if (!network_ints(n, window_name, &window) || n->c.b.status || rank <= window.count + 2) return 0;
    const uint32_t more = rank - window.count - 2;
    for (uint32_t i = 0; i <= more; i++) front[i] = d[i];
    for (uint32_t i = 0; i < more; i++) d[more] = dim_mul(n->c.b.g->dims, d[more], front[i]);
    *x = build_shaped(&n->c.b, *x, d + more, rank - more);
    return more;
}

static void unfold_batch(network_call *n, const dim *front, uint32_t more)
{
    dim d[SINTER_RANK_MAX], to[SINTER_RANK_MAX];
    if (!more || n->c.b.status) return;
    const uint32_t rank = call_shape(&n->c, n->c.out[0], d);
    for (uint32_t i = 0; i < rank + more; i++) to[i] = i <= more ? front[i] : d[i - more];
    n->c.out[0] = build_shaped(&n->c.b, n->c.out[0], to, rank + more);
}

static bool rounds_up(network_call *n)
{
    const int64_t mode = network_int(n, "padding_mode");
    return mode == SINTER_PADDING_EXPLICIT_ROUND_UP || mode == SINTER_PADDING_CAFFE_ROUND_UP;
}

/* The attributes that windows share; `at` has room for 5 more. Round up: the output gets an element more where a part
 * of a stride is left, so zeros behind the axis that make the last stride whole give the same. The modes of Caffe pad
 * as much behind an axis as before it. */
static uint32_t window_attrs(network_call *n, uint32_t spatial, bool rounds_by_padding, attr_ints *stride,
                             attr_ints *dilation, attr_ints *pads, onnx_attr *at)
{
    attr_ints pre, post;
    uint32_t count = 0;
    const int64_t mode = network_int(n, "padding_mode");
    if (network_ints(n, "stride", stride)) {
        check_list(n, "stride", stride, spatial);
        at[count++] = network_attr_ints("strides", stride);
    }
    if (network_ints(n, "dilation", dilation)) {
        check_list(n, "dilation", dilation, spatial);
        at[count++] = network_attr_ints("dilations", dilation);
    }
    const bool is_caffe = mode == SINTER_PADDING_CAFFE_ROUND_DOWN || mode == SINTER_PADDING_CAFFE_ROUND_UP;
    if (mode >= SINTER_PADDING_SAME_UPPER && !is_caffe) {
        at[count++] = network_attr_text("auto_pad", mode == SINTER_PADDING_SAME_UPPER ? "SAME_UPPER" : "SAME_LOWER");
        return count;
    }
    const bool has_pre = network_ints(n, "pre_padding", &pre),
               has_post = network_ints(n, is_caffe ? "pre_padding" : "post_padding", &post);
    if (has_pre) check_list(n, "pre_padding", &pre, spatial);
    if (has_post) check_list(n, "post_padding", &post, spatial);
    *pads = (attr_ints){ .count = 2 * spatial };
    for (uint32_t i = 0; i < spatial && !n->c.b.status; i++) {
        pads->at[i] = has_pre ? pre.at[i] : 0;
        pads->at[spatial + i] = has_post ? post.at[i] : 0;
        if (rounds_by_padding && stride->count && rounds_up(n)) pads->at[spatial + i] += stride->at[i] - 1;
    }
    at[count++] = network_attr_ints("pads", pads);
    return count;
}

/* The channels of an input whose size is not known, as the number of weights tells. */
static int64_t channels_of(network_call *n, bool is_transposed, const attr_ints *size)
{
    const int64_t count = network_param_of(n->layer, "kernel")->weights.count;
    const int64_t maps = network_int(n, "maps"), groups = network_int(n, "groups");
    int64_t each = is_transposed ? maps / groups : maps;
    for (uint32_t i = 0; i < size->count; i++)
        if (!i64_mul(each, size->at[i], &each)) each = 0;
    return each < 1 ? 0 : is_transposed ? count / each : count / each * groups;
}

/* Kernel and bias: weights of the layer, or inputs. */
static bool kernel_of(network_call *n, bool is_transposed, ir_value_id x, ir_value_id *kernel, ir_value_id *bias)
{
    attr_ints size;
    const int64_t maps = network_int(n, "maps"), groups = network_int(n, "groups");
    const uint32_t rank = call_rank(&n->c, x);
    int64_t channels = 0, shape[2 + SINTER_PARAM_INTS_MAX];
    network_ints(n, "kernel_size", &size);
    if (rank < 3) REJECT(&n->c, INVALID_ARG, "the input has rank %u, wanted is 3 or more", rank);
    if (groups < 1) REJECT(&n->c, INVALID_ARG, "parameter groups is %lld", (long long)groups);
    *kernel = call_in(&n->c, 1);
    *bias = call_in(&n->c, 2);
    const bool has_weights = network_param_of(n->layer, "kernel")->weights.count != 0;
    if (*kernel && has_weights) REJECT(&n->c, INVALID_ARG, "the kernel is given as weights and as input 1");
    if (!*kernel && !has_weights) REJECT(&n->c, INVALID_ARG, "there is no kernel, neither as weights nor as input 1");
    if (n->c.b.status) return false;
    if (!*kernel) {
        check_list(n, "kernel_size", &size, rank - 2);
        if (!call_size(&n->c, x, 1, &channels)) channels = channels_of(n, is_transposed, &size);
        if (maps < 1 || channels < 1 || channels % groups || maps % groups)
            REJECT(&n->c, INVALID_ARG, "%lld channels to %lld maps in %lld groups", (long long)channels,
                   (long long)maps, (long long)groups);
        if (n->c.b.status) return false;
        shape[0] = is_transposed ? channels : maps;
        shape[1] = (is_transposed ? maps : channels) / groups;
        memcpy(shape + 2, size.at, size.count * sizeof *shape);
        *kernel = network_weights(n, "kernel", rank, shape);
    }
    if (network_param_of(n->layer, "bias")->weights.count) {
        if (*bias) REJECT(&n->c, INVALID_ARG, "the bias is given as weights and as input 2");
        *bias = network_weights(n, "bias", 1, &maps);
    }
    return !n->c.b.status;
}

static void lower_conv(network_call *n, bool is_transposed)
{
    onnx_attr at[8];
    attr_ints stride, dilation, pads, more;
    dim front[SINTER_RANK_MAX];
    network_widen(n);
    ir_value_id in[3] = { n->c.in[0] };
    const uint32_t more_axes = fold_batch(n, "kernel_size", &in[0], front);
    if (!kernel_of(n, is_transposed, in[0], &in[1], &in[2])) return;
    const uint32_t spatial = call_rank(&n->c, in[0]) - 2;
    uint32_t count = window_attrs(n, spatial, !is_transposed, &stride, &dilation, &pads, at);
    at[count++] = network_attr_int("group", network_int(n, "groups"));
    if (is_transposed && network_ints(n, "output_padding", &more)) {
        check_list(n, "output_padding", &more, spatial);
        at[count++] = network_attr_ints("output_padding", &more);
    }
    n->c.out[0] = network_op(n, is_transposed ? "ConvTranspose" : "Conv", at, count, in, 3);
    unfold_batch(n, front, more_axes);
}

void lower_convolution(network_call *n)
{
    lower_conv(n, false);
}

void lower_deconvolution(network_call *n)
{
    lower_conv(n, true);
}

void lower_pooling(network_call *n)
{
    onnx_attr at[10];
    attr_ints window, stride, dilation, pads;
    dim front[SINTER_RANK_MAX];
    ir_value_id x = n->c.in[0];
    const uint32_t more_axes = fold_batch(n, "window_size", &x, front);
    const int64_t type = network_int(n, "type");
    const uint32_t rank = call_rank(&n->c, x);
    if (rank < 3) REJECT(&n->c, INVALID_ARG, "the input has rank %u, wanted is 3 or more", rank);
    network_ints(n, "window_size", &window);
    if (!n->c.b.status) check_list(n, "window_size", &window, rank - 2);
    if (n->c.b.status) return;
    uint32_t count = window_attrs(n, rank - 2, false, &stride, &dilation, &pads, at);
    at[count++] = network_attr_ints("kernel_shape", &window);
    at[count++] = network_attr_int("ceil_mode", rounds_up(n));
    const ir_value_id most = type == SINTER_POOLING_AVERAGE ? 0 : network_op(n, "MaxPool", at, count, &x, 1);
    at[count++] = network_attr_int("count_include_pad", !network_int(n, "average_count_excludes_padding"));
    const ir_value_id mean = type == SINTER_POOLING_MAX ? 0 : network_op(n, "AveragePool", at, count, &x, 1);
    n->c.out[0] = most ? most : mean;
    if (most && mean) {
        ir_builder *b = &n->c.b;
        const double factor = network_real(n, "blend_factor", 0);
        const ir_value_id share = build_mul(b, mean, build_scalar_like(b, x, factor));
        n->c.out[0] = build_add(b, build_mul(b, most, build_scalar_like(b, x, 1 - factor)), share);
    }
    unfold_batch(n, front, more_axes);
}

/* ---- products, reductions ---- */

void lower_matrix_multiply(network_call *n)
{
    network_widen(n);
    ir_builder *b = &n->c.b;
    const int64_t op0 = network_int(n, "op0"), op1 = network_int(n, "op1");
    const bool is_row = op0 == SINTER_MATRIX_VECTOR, is_column = op1 == SINTER_MATRIX_VECTOR;
    ir_value_id x = n->c.in[0], y = n->c.in[1];
    if (!call_rank(&n->c, x) || !call_rank(&n->c, y)) REJECT(&n->c, INVALID_ARG, "an input is a scalar");
    if (is_row) x = build_unsqueezed(b, x, call_rank(&n->c, x) - 1);
    if (is_column) y = build_unsqueezed(b, y, call_rank(&n->c, y));
    attrs_matmul *a = DEFAULTS(matmul);
    a->trans_a = op0 == SINTER_MATRIX_TRANSPOSE;
    a->trans_b = op1 == SINTER_MATRIX_TRANSPOSE;
    ir_value_id out = build_matmul(b, x, y, a);
    if (is_column && out) out = build_squeezed(b, out, call_rank(&n->c, out) - 1);
    if (is_row && out) out = build_squeezed(b, out, call_rank(&n->c, out) - (is_column ? 1 : 2));
    n->c.out[0] = out;
}

void lower_reduce(network_call *n)
{
    static const reduce_kind kind[] = { [SINTER_REDUCTION_SUM] = reduce_kind_sum,
                                        [SINTER_REDUCTION_PROD] = reduce_kind_prod,
                                        [SINTER_REDUCTION_MAX] = reduce_kind_max,
                                        [SINTER_REDUCTION_MIN] = reduce_kind_min,
                                        [SINTER_REDUCTION_AVG] = reduce_kind_mean };
    attr_ints axes;
    network_mask(n, "axes", call_rank(&n->c, n->c.in[0]), &axes);
    if (!axes.count) REJECT(&n->c, INVALID_ARG, "parameter axes is 0: no axis is reduced");
    n->c.out[0] = build_reduced(&n->c.b, kind[network_int(n, "op")], n->c.in[0], axes.at, axes.count,
                                network_int(n, "keep_dims") != 0);
}

void lower_softmax(network_call *n)
{
    ir_builder *b = &n->c.b;
    attr_ints axes;
    const ir_value_id x = n->c.in[0];
    const uint32_t rank = call_rank(&n->c, x);
    if (!rank) REJECT(&n->c, INVALID_ARG, "the input is a scalar");
    network_mask(n, "axes", rank, &axes);
    if (!axes.count) axes = (attr_ints){ .count = 1, .at = { rank > 3 ? rank - 3 : 0 } };
    if (n->c.b.status) return;
    if (axes.count == 1) {
        n->c.out[0] = build_softmax(b, x, &(attrs_softmax){ .axis = axes.at[0] });
        return;
    }
    const ir_value_id most = build_reduced(b, reduce_kind_max, x, axes.at, axes.count, true);
    const ir_value_id power = build_exp(b, build_sub(b, x, most));
    n->c.out[0] = build_div(b, power, build_reduced(b, reduce_kind_sum, power, axes.at, axes.count, true));
}

/* ---- normalisations ---- */

/* A parameter [1, …, 1, rest…] as its last `keep` axes; 0: it does not have that form. */
static ir_value_id last_axes(network_call *n, ir_value_id v, ir_value_id x, uint32_t keep)
{
    dim d[SINTER_RANK_MAX], want[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(&n->c, v, d), wide = call_shape(&n->c, x, want);
    if (rank < keep || rank > wide) return 0;
    for (uint32_t i = 0; i < rank - keep; i++)
        if (!dim_is(n->c.b.g->dims, d[i], 1)) return 0;
    for (uint32_t i = 0; i < keep; i++)
        if (d[rank - keep + i] != want[wide - keep + i]) return 0;
    return build_shaped(&n->c.b, v, d + (rank - keep), keep);
}

/* A parameter with one number for each channel as [C]; [groups] is repeated. 0: it does not have that form. */
static ir_value_id by_channel(network_call *n, ir_value_id v, ir_value_id x, int64_t groups)
{
    dim_table *t = n->c.b.g->dims;
    dim d[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(&n->c, v, d), wide = call_rank(&n->c, x);
    const dim channels = call_dim(&n->c, x, 1);
    if (rank == 1 && d[0] == channels) return v;
    if (rank != wide) return 0;
    for (uint32_t i = 0; i < rank; i++)
        if (i != 1 && !dim_is(t, d[i], 1)) return 0;
    if (d[1] == channels) return build_shaped(&n->c.b, v, &channels, 1);
    if (!dim_is(t, d[1], groups)) return 0;
    const dim each = call_quotient(&n->c, channels, call_k(&n->c, groups)), pair[2] = { d[1], each };
    const ir_value_id column = build_shaped(&n->c.b, v, (dim[]){ d[1], call_k(&n->c, 1) }, 2);
    return build_shaped(&n->c.b, build_expanded(&n->c.b, column, pair, 2), &channels, 1);
}

static bool is_range(const attr_ints *axes, uint32_t first, uint32_t rank)
{
    if (axes->count != rank - first) return false;
    for (uint32_t i = 0; i < axes->count; i++)
        if (axes->at[i] != (int64_t)(first + i)) return false;
    return true;
}

/* Statistics over the axes, written out. */
static ir_value_id norm_plain(network_call *n, ir_value_id x, const attr_ints *axes, double epsilon)
{
    ir_builder *b = &n->c.b;
    const ir_value_id mean = build_reduced(b, reduce_kind_mean, x, axes->at, axes->count, true);
    const ir_value_id off = build_sub(b, x, mean);
    const ir_value_id var = build_reduced(b, reduce_kind_mean, build_mul(b, off, off), axes->at, axes->count, true);
    return build_div(b, off, build_sqrt(b, build_add(b, var, build_scalar_like(b, x, epsilon))));
}

void lower_normalization(network_call *n)
{
    network_widen(n);
    ir_builder *b = &n->c.b;
    attr_ints axes;
    const ir_value_id x = n->c.in[0];
    const uint32_t rank = call_rank(&n->c, x);
    const int64_t groups = network_int(n, "groups");
    const double epsilon = network_real(n, "epsilon", 1e-5);
    network_mask(n, "axes", rank, &axes);
    if (!axes.count) REJECT(&n->c, INVALID_ARG, "parameter axes is 0");
    if (groups < 1) REJECT(&n->c, INVALID_ARG, "parameter groups is %lld", (long long)groups);
    if (n->c.b.status) return;
    const bool is_spatial = rank > 2 && is_range(&axes, 2, rank), is_last = is_range(&axes, (uint32_t)axes.at[0], rank);
    ir_value_id scale = 0, bias = 0;
    if (groups > 1 && !is_spatial) REJECT(&n->c, INVALID_ARG, "groups need all axes behind axis 1 in the mask");
    if (is_spatial) {
        scale = by_channel(n, n->c.in[1], x, groups);
        bias = by_channel(n, n->c.in[2], x, groups);
        if (groups > 1 && (!scale || !bias))
            REJECT(&n->c, INVALID_ARG, "scale and bias need one number for each channel, or for each group");
        if (scale && bias) {
            attrs_group_norm *a = DEFAULTS(group_norm);
            a->groups = groups > 1 ? groups : 0;
            a->epsilon = epsilon;
            n->c.out[0] = build_group_norm(b, x, scale, bias, a);
            return;
        }
    } else if (is_last) {
        scale = last_axes(n, n->c.in[1], x, axes.count);
        bias = last_axes(n, n->c.in[2], x, axes.count);
        ir_value_id out[3] = { 0 };
        const bool fit = scale && bias;
        if (n->c.b.status) return;
        quirk_layer_norm(&n->c, x, fit ? scale : n->c.in[1], fit ? bias : n->c.in[2], axes.at[0], epsilon, 1, out);
        n->c.out[0] = out[0];
        return;
    }
    const ir_value_id y = norm_plain(n, x, &axes, epsilon);
    n->c.out[0] = build_add(b, build_mul(b, y, n->c.in[1]), n->c.in[2]);
}

/* ---- scale ---- */

static ir_value_id scale_part(network_call *n, const char *name)
{
    int64_t d[SINTER_RANK_MAX] = { 0 };
    const ir_value_id x = n->c.in[0];
    const uint32_t rank = call_rank(&n->c, x);
    const int64_t mode = network_int(n, "mode"), axis = network_int(n, "channel_axis");
    uint32_t wide = 0;
    if (!network_param_of(n->layer, name)->weights.count || n->c.b.status) return 0;
    if (mode == SINTER_SCALE_CHANNEL) {
        if (axis < 0 || axis >= (int64_t)rank)
            REJECT(&n->c, INVALID_ARG, "channel_axis is %lld, and the input has rank %u", (long long)axis, rank);
        for (uint32_t i = 0; i < rank; i++) d[i] = 1;
        wide = rank;
    } else if (mode == SINTER_SCALE_ELEMENTWISE) {
        wide = rank ? rank - 1 : 0;
    }
    for (uint32_t i = 0; i < wide && !n->c.b.status; i++) {
        const uint32_t from = mode == SINTER_SCALE_CHANNEL ? i : i + 1;
        if ((mode != SINTER_SCALE_CHANNEL || from == axis) && !call_size(&n->c, x, from, &d[i]))
            REJECT(&n->c, INVALID_ARG, "axis %u of the input has no fixed size", from);
    }
    const ir_value_id v = network_weights(n, name, wide, d);
    return v ? build_typed(&n->c.b, v, call_type(&n->c, x)) : 0;
}

void lower_scale(network_call *n)
{
    ir_builder *b = &n->c.b;
    const ir_value_id scale = scale_part(n, "scale"), shift = scale_part(n, "shift"), power = scale_part(n, "power");
    ir_value_id y = n->c.in[0];
    if (scale) y = build_mul(b, y, scale);
    if (shift) y = build_add(b, y, shift);
    if (power) y = build_pow(b, y, power);
    n->c.out[0] = y;
}
