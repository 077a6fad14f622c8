/* SPDX-License-Identifier: Apache-2.0 */
/* raise.c - which kind of layer an ONNX node is, where one has the same meaning; all others stay operators.
 *
 * A row names the operator, the first version whose meaning is the kind's, and the function that makes the layer. A
 * function checks everything before it adds a layer, and gives NULL where an attribute has no parameter. */
#include "network/raise.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the node ---- */

const onnx_attr *raise_attr(const raising *r, const char *name, int32_t type)
{
    for (uint32_t i = 0; i < r->n->attr.count; i++)
        if (!strcmp(r->n->attr.at[i].name, name))
            return r->n->attr.at[i].type == type && !r->n->attr.at[i].ref[0] ? &r->n->attr.at[i] : NULL;
    return NULL;
}

bool raise_has(const raising *r, const char *name)
{
    for (uint32_t i = 0; i < r->n->attr.count; i++)
        if (!strcmp(r->n->attr.at[i].name, name)) return true;
    return false;
}

int64_t raise_integer(const raising *r, const char *name, int64_t initial)
{
    const onnx_attr *a = raise_attr(r, name, ONNX_INT);
    return a ? a->i : initial;
}

const char *raise_words(const raising *r, const char *name, const char *initial)
{
    const onnx_attr *a = raise_attr(r, name, ONNX_STRING);
    return a ? a->s.at : initial;
}

/* Does the node have as many inputs and outputs as that, and no other attributes than these ("a b c")? */
bool raise_shaped(const raising *r, uint32_t in_min, uint32_t in_max, uint32_t outs, const char *attrs)
{
    uint32_t count = r->n->in.count, named = 0;
    while (count && !r->n->in.at[count - 1][0]) count--;
    if (count < in_min || count > in_max) return false;
    for (uint32_t i = 0; i < in_min; i++)
        if (!r->n->in.at[i][0]) return false;
    for (uint32_t i = 0; i < r->n->out.count; i++)
        if (r->n->out.at[i][0]) named = i + 1;
    if (named != outs) return false;
    for (uint32_t i = 0; i < r->n->attr.count; i++) {
        const size_t length = strlen(r->n->attr.at[i].name);
        bool is_known = false;
        for (const char *at = attrs; *at && !is_known; at += strcspn(at, " ") + (at[strcspn(at, " ")] != 0))
            is_known = strcspn(at, " ") == length && !memcmp(at, r->n->attr.at[i].name, length);
        if (!is_known || r->n->attr.at[i].ref[0]) return false;
    }
    return true;
}

bool raise_has_input(const raising *r, uint32_t i)
{
    return i < r->n->in.count && r->n->in.at[i][0];
}

static const onnx_tensor *initializer(const raising *r, uint32_t i)
{
    return raise_has_input(r, i) && !r->in[i] ? parsed_initializer(r->s, r->n->in.at[i], NULL) : NULL;
}

/* Input i as a tensor: an initializer becomes a layer. */
sinter_network_tensor *raise_tensor(raising *r, uint32_t i)
{
    if (!raise_has_input(r, i)) return NULL;
    if (r->in[i]) return r->in[i];
    const char *name = r->n->in.at[i];
    uint32_t *slot = name_map_find(&r->s->names, name);
    if (slot && *slot >= PARSED_TENSOR && *slot != PARSED_BAD) {
        sinter_layer *layer = parsed_constant(r->s, initializer(r, i), name);
        if (!layer || network_set_layer_text(layer, r->s->e, name, true) ||
            network_tensor_set_name(layer->out[0], r->s->e, name)) {
            r->is_wrong = true;
            return NULL;
        }
        *slot = layer->out[0]->id + 1;
    }
    return r->in[i] = slot && *slot != PARSED_BAD ? r->s->net->tensor.at[*slot - 1] : NULL;
}

/* The elements of an input that is an initializer, or a Constant node that is a layer by now. */
static bool known(raising *r, uint32_t i, view *out)
{
    const onnx_tensor *t = initializer(r, i);
    if (t) return t->type != ONNX_TYPE_STRING && parsed_weights(r->s, t, out);
    const sinter_layer *layer = raise_has_input(r, i) && r->in[i] ? r->in[i]->producer : NULL;
    if (!layer || layer->kind != SINTER_LAYER_CONSTANT) return false;
    const network_param *shape = network_param_of(layer, "shape"), *weights = network_param_of(layer, "weights");
    return view_init(out, weights->weights.dtype, shape->count, shape->ints, (void *)(uintptr_t)weights->weights.data);
}

/* The integers of such an input. */
bool raise_known_ints(raising *r, uint32_t i, attr_ints *out)
{
    view v;
    out->count = 0;
    if (!known(r, i, &v) || v.rank > 1 || !dtype_is_int(v.dtype) || view_count(&v) > ATTR_INTS_MAX) return false;
    for (int64_t k = 0; k < view_count(&v); k++) out->at[out->count++] = dtype_load_i64(v.dtype, v.data, k);
    return true;
}

/* The rank and type of an input; false where they cannot be told before ranges of sizes are known. */
static bool input_is(raising *r, uint32_t i, uint32_t *rank, sinter_dtype *type)
{
    const onnx_tensor *t = initializer(r, i);
    sinter_network_shape shape = { 0 };
    if (t) {
        *rank = t->rank;
        return onnx_dtype_of(t->type, type);
    }
    if (!r->in[i] || r->s->has_loose_ranks || network_shape(r->in[i], r->s->e, &shape)) return false;
    *rank = shape.rank;
    *type = shape.dtype;
    return true;
}

static bool rank_of(raising *r, uint32_t i, uint32_t *rank)
{
    sinter_dtype type;
    return input_is(r, i, rank, &type);
}

/* ---- the layer ---- */

sinter_layer *raise_make(raising *r, sinter_layer_kind kind, uint32_t count)
{
    sinter_network_tensor *in[8] = { 0 };
    for (uint32_t i = 0; i < count && i < COUNT_OF(in); i++) in[i] = raise_tensor(r, i);
    return r->is_wrong ? NULL : network_make(r->s->net, r->s->e, kind, in, count, 0);
}

void raise_set(raising *r, sinter_layer *layer, const char *name, int64_t value)
{
    if (layer && network_set_int(layer, r->s->e, name, value)) r->is_wrong = true;
}

void raise_set_list(raising *r, sinter_layer *layer, const char *name, const int64_t *at, uint32_t count)
{
    if (layer && network_set_ints(layer, r->s->e, name, at, count)) r->is_wrong = true;
}

static void set_float(raising *r, sinter_layer *layer, const char *to, const char *from)
{
    const onnx_attr *a = raise_attr(r, from, ONNX_FLOAT);
    if (layer && a && network_set_real(layer, r->s->e, to, (double)a->f)) r->is_wrong = true;
}

/* ---- scalar functions ---- */

static sinter_layer *raise_unary(raising *r)
{
    uint32_t rank;
    sinter_dtype type = SINTER_DTYPE_F32;
    if (r->arg == SINTER_UNARY_ERF && (!input_is(r, 0, &rank, &type) || !dtype_is_float(type))) return NULL;
    sinter_layer *layer = raise_shaped(r, 1, 1, 1, "") ? raise_make(r, SINTER_LAYER_UNARY, 1) : NULL;
    raise_set(r, layer, "op", r->arg);
    return layer;
}

static sinter_layer *raise_elementwise(raising *r)
{
    sinter_layer *layer = raise_shaped(r, 2, 2, 1, "") ? raise_make(r, SINTER_LAYER_ELEMENTWISE, 2) : NULL;
    raise_set(r, layer, "op", r->arg);
    return layer;
}

static sinter_layer *raise_activation(raising *r)
{
    static const struct {
        const char *attrs;
        double alpha, beta;
        const char *second; /* what ONNX calls beta, where it has another name */
    } usual[] = {
        [SINTER_ACTIVATION_RELU] = { "", 0, 0, NULL },
        [SINTER_ACTIVATION_LEAKY_RELU] = { "alpha", 0.01, 0, NULL },
        [SINTER_ACTIVATION_ELU] = { "alpha", 1, 0, NULL },
        [SINTER_ACTIVATION_SELU] = { "alpha gamma", 1.67326319217681884765625, 1.05070102214813232421875, "gamma" },
        [SINTER_ACTIVATION_HARD_SIGMOID] = { "alpha beta", 0.2, 0.5, NULL },
        [SINTER_ACTIVATION_THRESHOLDED_RELU] = { "alpha", 1, 0, NULL },
        [SINTER_ACTIVATION_GELU_TANH] = { "", 0, 0, NULL },
    };
    const char *attrs = usual[r->arg].attrs ? usual[r->arg].attrs : "";
    const bool is_gelu = r->arg == SINTER_ACTIVATION_GELU_ERF;
    if (!raise_shaped(r, 1, 1, 1, is_gelu ? "approximate" : attrs)) return NULL;
    sinter_layer *layer = raise_make(r, SINTER_LAYER_ACTIVATION, 1);
    const bool is_tanh = is_gelu && !strcmp(raise_words(r, "approximate", "none"), "tanh");
    raise_set(r, layer, "type", is_tanh ? SINTER_ACTIVATION_GELU_TANH : r->arg);
    if (!layer || !*attrs) return layer;
    const onnx_attr *a = raise_attr(r, "alpha", ONNX_FLOAT),
                    *b = raise_attr(r, usual[r->arg].second ? usual[r->arg].second : "beta", ONNX_FLOAT);
    const double alpha = a ? (double)a->f : (double)(float)usual[r->arg].alpha;
    const double beta = b ? (double)b->f : (double)(float)usual[r->arg].beta;
    if (network_set_real(layer, r->s->e, "alpha", alpha) || network_set_real(layer, r->s->e, "beta", beta))
        r->is_wrong = true;
    return layer;
}

/* Clip between two numbers: constants, or attributes before version 11. */
static sinter_layer *raise_clip(raising *r)
{
    uint32_t rank;
    sinter_dtype type = SINTER_DTYPE_F32;
    const bool is_old = r->version < 11;
    const onnx_attr *given[] = { raise_attr(r, "min", ONNX_FLOAT), raise_attr(r, "max", ONNX_FLOAT) };
    double bound[2] = { -(double)FLT_MAX, (double)FLT_MAX };
    if (!raise_shaped(r, is_old ? 1 : 3, is_old ? 1 : 3, 1, is_old ? "min max" : "") || !input_is(r, 0, &rank, &type) ||
        (is_old ? type != SINTER_DTYPE_F32 : !dtype_is_float(type)))
        return NULL;
    for (uint32_t i = 0; i < 2; i++) {
        view v;
        if (is_old && given[i]) bound[i] = (double)given[i]->f;
        if (is_old) continue;
        if (!known(r, 1 + i, &v) || v.dtype != type || v.rank || view_count(&v) != 1) return NULL;
        bound[i] = dtype_load_f64(v.dtype, v.data, 0);
    }
    sinter_layer *layer = raise_make(r, SINTER_LAYER_ACTIVATION, 1);
    raise_set(r, layer, "type", SINTER_ACTIVATION_CLIP);
    if (layer &&
        (network_set_real(layer, r->s->e, "alpha", bound[0]) || network_set_real(layer, r->s->e, "beta", bound[1])))
        r->is_wrong = true;
    return layer;
}

static sinter_layer *raise_cast(raising *r)
{
    sinter_dtype type;
    const int64_t to = raise_integer(r, "to", 0);
    if (!raise_shaped(r, 1, 1, 1, "to") || to < 1 || to > 1000 || !onnx_dtype_of((int32_t)to, &type)) return NULL;
    sinter_layer *layer = raise_make(r, SINTER_LAYER_CAST, 1);
    raise_set(r, layer, "to_type", type);
    return layer;
}

static sinter_layer *raise_plain(raising *r) /* arg: kind * 8 + inputs */
{
    return raise_shaped(r, (uint32_t)(r->arg & 7), (uint32_t)(r->arg & 7), 1, "")
               ? raise_make(r, (sinter_layer_kind)(r->arg >> 3), (uint32_t)(r->arg & 7))
               : NULL;
}

/* A product, and behind it the sum with C; the product has the node's name, too. */
static sinter_layer *raise_gemm(raising *r)
{
    const onnx_attr *factor[] = { raise_attr(r, "alpha", ONNX_FLOAT), raise_attr(r, "beta", ONNX_FLOAT) };
    sinter_network_tensor *in[2];
    if (!raise_shaped(r, 2, 3, 1, "alpha beta transA transB")) return NULL;
    for (uint32_t i = 0; i < 2; i++)
        if (factor[i] && (double)factor[i]->f != 1) return NULL;
    for (uint32_t i = 0; i < 2; i++) in[i] = raise_tensor(r, i);
    sinter_network_tensor *sum = raise_has_input(r, 2) ? raise_tensor(r, 2) : NULL;
    sinter_layer *layer = r->is_wrong ? NULL : raise_make(r, SINTER_LAYER_MATRIX_MULTIPLY, 2);
    raise_set(r, layer, "op0", raise_integer(r, "transA", 0) ? SINTER_MATRIX_TRANSPOSE : SINTER_MATRIX_NONE);
    raise_set(r, layer, "op1", raise_integer(r, "transB", 0) ? SINTER_MATRIX_TRANSPOSE : SINTER_MATRIX_NONE);
    if (!layer || !sum || r->is_wrong) return layer;
    in[0] = layer->out[0];
    in[1] = sum;
    (void)network_set_layer_text(layer, r->s->e, r->n->name, true);
    layer = network_make(r->s->net, r->s->e, SINTER_LAYER_ELEMENTWISE, in, 2, 0);
    raise_set(r, layer, "op", SINTER_ELEMENTWISE_SUM);
    return layer;
}

/* ---- convolutions and pools ---- */

/* Stride, dilation, pads and auto_pad, which windows share. False: there is no parameter for it. */
static bool window(raising *r, sinter_layer *layer, uint32_t spatial)
{
    static const char *const from[] = { "strides", "dilations" }, *const to[] = { "stride", "dilation" };
    const char *mode = raise_words(r, "auto_pad", "NOTSET");
    for (uint32_t i = 0; i < 2; i++) {
        const onnx_attr *a = raise_attr(r, from[i], ONNX_INTS);
        if (!a || !a->ints.count) continue;
        bool is_one = true;
        for (uint32_t k = 0; k < a->ints.count; k++) is_one = is_one && a->ints.at[k] == 1;
        if (!is_one) raise_set_list(r, layer, to[i], a->ints.at, a->ints.count);
    }
    const onnx_attr *pads = raise_attr(r, "pads", ONNX_INTS);
    if (!strcmp(mode, "NOTSET") && pads && pads->ints.count == 2 * spatial) {
        raise_set_list(r, layer, "pre_padding", pads->ints.at, spatial);
        raise_set_list(r, layer, "post_padding", pads->ints.at + spatial, spatial);
    }
    if (!strncmp(mode, "SAME_", 5))
        raise_set(r, layer, "padding_mode",
                  !strcmp(mode, "SAME_UPPER") ? SINTER_PADDING_SAME_UPPER : SINTER_PADDING_SAME_LOWER);
    return !r->is_wrong;
}

/* A convolution whose kernel is computed, as behind DequantizeLinear: kernel and bias are inputs. */
static sinter_layer *conv_by_inputs(raising *r)
{
    sinter_network_shape shape = { 0 };
    const onnx_attr *pads = raise_attr(r, "pads", ONNX_INTS);
    if (!r->in[0] || r->s->has_loose_ranks || network_shape(r->in[1], r->s->e, &shape) || shape.rank < 3) return NULL;
    for (uint32_t i = 0; i < shape.rank; i++)
        if (shape.dim[i] < 1) return NULL;
    const uint32_t spatial = shape.rank - 2;
    const int64_t groups = raise_integer(r, "group", 1);
    if (pads && pads->ints.count != 2 * spatial) return NULL;
    sinter_layer *layer =
        raise_make(r, r->arg ? SINTER_LAYER_DECONVOLUTION : SINTER_LAYER_CONVOLUTION, raise_has_input(r, 2) ? 3 : 2);
    if (!layer) return NULL;
    raise_set(r, layer, "maps", r->arg ? shape.dim[1] * groups : shape.dim[0]);
    raise_set(r, layer, "groups", groups);
    raise_set_list(r, layer, "kernel_size", shape.dim + 2, spatial);
    return window(r, layer, spatial) ? layer : NULL;
}

static sinter_layer *raise_conv(raising *r) /* arg: 1 is transposed */
{
    const onnx_tensor *weight[2] = { initializer(r, 1), initializer(r, 2) };
    view v[2];
    const char *const name[2] = { "kernel", "bias" };
    if (!raise_shaped(r, 2, 3, 1, "auto_pad dilations group kernel_shape pads strides")) return NULL;
    if (r->arg && strcmp(raise_words(r, "auto_pad", "NOTSET"), "NOTSET") != 0) return NULL;
    if (r->in[1]) return conv_by_inputs(r);
    const onnx_attr *pads = raise_attr(r, "pads", ONNX_INTS);
    if (!weight[0] || weight[0]->rank < 3 || (raise_has_input(r, 2) && !weight[1]) || !r->in[0]) return NULL;
    if (pads && pads->ints.count != 2 * (weight[0]->rank - 2)) return NULL;
    const int64_t groups = raise_integer(r, "group", 1);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t index = 0;
        if (!weight[i]) continue;
        (void)parsed_initializer(r->s, r->n->in.at[i + 1], &index);
        if (r->s->uses[index] != 1 || weight[i]->type == ONNX_TYPE_STRING || !parsed_weights(r->s, weight[i], &v[i]))
            return NULL;
    }
    sinter_layer *layer = raise_make(r, r->arg ? SINTER_LAYER_DECONVOLUTION : SINTER_LAYER_CONVOLUTION, 1);
    if (!layer) return NULL;
    const uint32_t spatial = v[0].rank - 2;
    raise_set(r, layer, "maps", r->arg ? v[0].dim[1] * groups : v[0].dim[0]);
    raise_set(r, layer, "groups", groups);
    raise_set_list(r, layer, "kernel_size", v[0].dim + 2, spatial);
    for (uint32_t i = 0; i < 2; i++) {
        if (!weight[i]) continue;
        const sinter_weights w = { v[i].dtype, 1, view_count(&v[i]), v[i].data };
        if (network_set_weights(layer, r->s->e, name[i], &w) ||
            network_set_weights_name(layer, r->s->e, name[i], r->n->in.at[i + 1]))
            r->is_wrong = true;
    }
    return window(r, layer, spatial) ? layer : NULL;
}

static sinter_layer *raise_pool(raising *r) /* arg: sinter_pooling */
{
    const onnx_attr *kernel = raise_attr(r, "kernel_shape", ONNX_INTS),
                    *dilation = raise_attr(r, "dilations", ONNX_INTS);
    const bool is_ceil = raise_integer(r, "ceil_mode", 0) != 0,
               is_auto = strcmp(raise_words(r, "auto_pad", "NOTSET"), "NOTSET") != 0;
    if (!raise_shaped(r, 1, 1, 1,
                      "auto_pad ceil_mode count_include_pad dilations kernel_shape pads storage_order strides") ||
        !kernel || (is_ceil && is_auto))
        return NULL;
    for (uint32_t i = 0; dilation && i < dilation->ints.count; i++)
        if (dilation->ints.at[i] != 1) return NULL;
    sinter_layer *layer = raise_make(r, SINTER_LAYER_POOLING, 1);
    raise_set(r, layer, "type", r->arg);
    raise_set_list(r, layer, "window_size", kernel->ints.at, kernel->ints.count);
    if (is_ceil) raise_set(r, layer, "padding_mode", SINTER_PADDING_EXPLICIT_ROUND_UP);
    if (r->arg == SINTER_POOLING_AVERAGE)
        raise_set(r, layer, "average_count_excludes_padding", !raise_integer(r, "count_include_pad", 0));
    return layer && window(r, layer, kernel->ints.count) ? layer : NULL;
}

/* ---- axes ---- */

static bool mask_of(const attr_ints *axes, uint32_t rank, int64_t *mask)
{
    *mask = 0;
    for (uint32_t i = 0; i < axes->count; i++) {
        const int64_t axis = axes->at[i] < 0 ? axes->at[i] + rank : axes->at[i];
        if (axis < 0 || axis >= (int64_t)rank) return false;
        *mask |= INT64_C(1) << axis;
    }
    return *mask != 0;
}

static sinter_layer *raise_reduce(raising *r) /* arg: sinter_reduction, plus 16 where axes are an input from 13 on */
{
    attr_ints axes = { 0 };
    uint32_t rank;
    int64_t mask;
    const bool is_input = r->version >= (r->arg & 16 ? 13 : 18);
    if (!raise_shaped(r, 1, 2, 1, "axes keepdims noop_with_empty_axes") ||
        raise_integer(r, "noop_with_empty_axes", 0) || !rank_of(r, 0, &rank) || !rank)
        return NULL;
    const onnx_attr *a = raise_attr(r, "axes", ONNX_INTS);
    if (is_input && raise_has_input(r, 1) && !raise_known_ints(r, 1, &axes)) return NULL;
    if (!is_input && a && a->ints.count > ATTR_INTS_MAX) return NULL;
    for (uint32_t i = 0; !is_input && a && i < a->ints.count; i++) axes.at[axes.count++] = a->ints.at[i];
    if (!axes.count)
        for (uint32_t i = 0; i < rank; i++) axes.at[axes.count++] = i;
    if (!mask_of(&axes, rank, &mask)) return NULL;
    sinter_layer *layer = raise_make(r, SINTER_LAYER_REDUCE, 1);
    raise_set(r, layer, "op", r->arg & 15);
    raise_set(r, layer, "axes", mask);
    raise_set(r, layer, "keep_dims", raise_integer(r, "keepdims", 1) != 0);
    return layer;
}

static sinter_layer *raise_global(raising *r) /* arg: sinter_reduction */
{
    uint32_t rank;
    if (!raise_shaped(r, 1, 1, 1, "") || !rank_of(r, 0, &rank) || rank < 3) return NULL;
    sinter_layer *layer = raise_make(r, SINTER_LAYER_REDUCE, 1);
    raise_set(r, layer, "op", r->arg);
    raise_set(r, layer, "axes", (INT64_C(1) << rank) - 4);
    raise_set(r, layer, "keep_dims", 1);
    return layer;
}

static sinter_layer *raise_axis(raising *r, sinter_layer_kind kind, const char *param, int64_t initial, bool as_mask)
{
    uint32_t rank;
    const attr_ints axis = { .count = 1, .at = { raise_integer(r, "axis", initial) } };
    int64_t mask;
    if (!raise_shaped(r, 1, 1, 1, "axis") || !rank_of(r, 0, &rank) || !mask_of(&axis, rank, &mask)) return NULL;
    sinter_layer *layer = raise_make(r, kind, 1);
    raise_set(r, layer, param, as_mask ? mask : axis.at[0]);
    return layer;
}

/* Before version 13 the axes behind `axis` go along with it. */
static sinter_layer *raise_softmax(raising *r)
{
    uint32_t rank;
    const int64_t axis = raise_integer(r, "axis", 1);
    if (r->version < 13) {
        if (!rank_of(r, 0, &rank) || !rank || (axis < 0 ? axis + rank : axis) != (int64_t)rank - 1) return NULL;
        return raise_axis(r, SINTER_LAYER_SOFTMAX, "axes", 1, true);
    }
    return raise_axis(r, SINTER_LAYER_SOFTMAX, "axes", -1, true);
}

static sinter_layer *raise_layer_norm(raising *r)
{
    uint32_t rank;
    int64_t axis = raise_integer(r, "axis", -1);
    if (!raise_shaped(r, 3, 3, 1, "axis epsilon stash_type") || raise_integer(r, "stash_type", 1) != 1) return NULL;
    if (!rank_of(r, 0, &rank)) return NULL;
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= (int64_t)rank) return NULL;
    sinter_layer *layer = raise_make(r, SINTER_LAYER_NORMALIZATION, 3);
    raise_set(r, layer, "axes", (INT64_C(1) << rank) - (INT64_C(1) << axis));
    if (layer && network_set_real(layer, r->s->e, "epsilon", (double)1e-5f)) r->is_wrong = true;
    set_float(r, layer, "epsilon", "epsilon");
    return layer;
}

/* ---- moves ---- */

static sinter_layer *raise_concat(raising *r)
{
    network_tensors in = { 0 };
    if (!r->n->in.count || !raise_has(r, "axis") || !raise_shaped(r, r->n->in.count, r->n->in.count, 1, "axis"))
        return NULL;
    for (uint32_t i = 0; i < r->n->in.count; i++) {
        sinter_network_tensor **slot = VEC_PUSH(&r->s->p->a, &in);
        if (slot) *slot = raise_tensor(r, i);
    }
    if (r->is_wrong || in.count != r->n->in.count) return NULL;
    sinter_layer *layer = network_make(r->s->net, r->s->e, SINTER_LAYER_CONCATENATION, in.at, in.count, 0);
    raise_set(r, layer, "axis", raise_integer(r, "axis", 0));
    return layer;
}

static sinter_layer *raise_transpose(raising *r)
{
    const onnx_attr *perm = raise_attr(r, "perm", ONNX_INTS);
    uint32_t rank = 0;
    int64_t back[SINTER_RANK_MAX];
    if (!raise_shaped(r, 1, 1, 1, "perm") || (perm && (!perm->ints.count || perm->ints.count > SINTER_RANK_MAX)))
        return NULL;
    if (!perm && (raise_has(r, "perm") || !rank_of(r, 0, &rank) || !rank)) return NULL;
    for (uint32_t i = 0; i < rank; i++) back[i] = rank - 1 - i;
    sinter_layer *layer = raise_make(r, SINTER_LAYER_SHUFFLE, 1);
    raise_set_list(r, layer, "first_transpose", perm ? perm->ints.at : back, perm ? perm->ints.count : rank);
    return layer;
}

static sinter_layer *raise_reshape(raising *r)
{
    attr_ints shape;
    if (!raise_shaped(r, 2, 2, 1, "allowzero")) return NULL;
    view v;
    const bool is_known = raise_known_ints(r, 1, &shape) && known(r, 1, &v) && v.rank == 1;
    sinter_layer *layer = raise_make(r, SINTER_LAYER_SHUFFLE, is_known ? 1 : 2);
    if (is_known) raise_set_list(r, layer, "reshape", shape.at, shape.count);
    raise_set(r, layer, "zero_is_placeholder", !raise_integer(r, "allowzero", 0));
    return layer;
}

/* Flatten behind the first axis; behind others no list of sizes says the same. */
static sinter_layer *raise_flatten(raising *r)
{
    static const int64_t rows[2] = { 0, -1 };
    uint32_t rank;
    if (!raise_shaped(r, 1, 1, 1, "axis") || raise_integer(r, "axis", 1) != 1 || !rank_of(r, 0, &rank) || rank < 2)
        return NULL;
    sinter_layer *layer = raise_make(r, SINTER_LAYER_SHUFFLE, 1);
    raise_set_list(r, layer, "reshape", rows, 2);
    return layer;
}

/* The place of a word in a list; -1: it is not there. */
int64_t raise_place(const char *word, const char *const *of, int64_t count)
{
    while (count-- > 0 && strcmp(word, of[count]) != 0) continue;
    return count;
}

/* A resize by scales of all axes that are numbers, or by sizes, which may be computed. */
static sinter_layer *raise_resize(raising *r)
{
    static const char *const modes[] = { "nearest", "linear", "cubic" },
                             *const wheres[] = { "align_corners", "asymmetric", "half_pixel", "pytorch_half_pixel" },
                             *const rounds[] = { "round_prefer_ceil", "round_prefer_floor", "floor", "ceil" };
    const int64_t mode = raise_place(raise_words(r, "mode", "nearest"), modes, COUNT_OF(modes)),
                  round = raise_place(raise_words(r, "nearest_mode", "round_prefer_floor"), rounds, COUNT_OF(rounds)),
                  where = raise_place(raise_words(r, "coordinate_transformation_mode", "half_pixel"), wheres,
                                      COUNT_OF(wheres));
    uint32_t rank;
    attr_ints size = { 0 };
    double scale[SINTER_RANK_MAX];
    view v = { 0 };
    if (!raise_shaped(r, 1, 4, 1,
                      "mode coordinate_transformation_mode nearest_mode cubic_coeff_a exclude_outside antialias "
                      "extrapolation_value keep_aspect_ratio_policy") ||
        raise_integer(r, "antialias", 0) ||
        strcmp(raise_words(r, "keep_aspect_ratio_policy", "stretch"), "stretch") != 0 || mode < 0 || round < 0 ||
        where < 0 || !rank_of(r, 0, &rank) || !rank)
        return NULL;
    const bool has_scales = raise_has_input(r, 2) && !(known(r, 2, &v) && !view_count(&v)),
               has_sizes = raise_has_input(r, 3);
    const bool is_known = has_sizes && raise_known_ints(r, 3, &size);
    if (has_scales == has_sizes || (is_known && size.count != rank)) return NULL;
    if (has_scales && (!known(r, 2, &v) || v.dtype != SINTER_DTYPE_F32 || view_count(&v) != rank)) return NULL;
    for (uint32_t i = 0; has_scales && i < rank; i++) {
        scale[i] = dtype_load_f64(v.dtype, v.data, i);
        /* ONNX's last element may lie between two; a layer's is the last of the input. */
        if (!where && scale[i] != floor(scale[i])) return NULL;
    }
    sinter_network_tensor *in[2] = { raise_tensor(r, 0), has_sizes && !is_known ? raise_tensor(r, 3) : NULL };
    sinter_layer *layer =
        r->is_wrong ? NULL : network_make(r->s->net, r->s->e, SINTER_LAYER_RESIZE, in, in[1] ? 2 : 1, 0);
    if (is_known) raise_set_list(r, layer, "size", size.at, size.count);
    if (has_scales && layer && network_set_reals(layer, r->s->e, "scales", scale, rank)) r->is_wrong = true;
    raise_set(r, layer, "mode", mode);
    raise_set(r, layer, "nearest_rounding", round);
    raise_set(r, layer, "coordinate_transformation", where < 3 ? where : SINTER_COORDINATE_HALF_PIXEL);
    raise_set(r, layer, "selector_for_single_pixel", where < 3 ? SINTER_SELECTOR_FORMULA : SINTER_SELECTOR_UPPER);
    raise_set(r, layer, "exclude_outside", raise_integer(r, "exclude_outside", 0) != 0);
    set_float(r, layer, "cubic_coeff", "cubic_coeff_a");
    return layer;
}

static sinter_layer *raise_topk(raising *r)
{
    attr_ints k;
    uint32_t rank;
    int64_t mask;
    const attr_ints axis = { .count = 1, .at = { raise_integer(r, "axis", -1) } };
    if (!raise_shaped(r, 2, 2, 2, "axis largest sorted") || !rank_of(r, 0, &rank) || !mask_of(&axis, rank, &mask))
        return NULL;
    const bool is_known = raise_known_ints(r, 1, &k) && k.count == 1;
    sinter_layer *layer = raise_make(r, SINTER_LAYER_TOPK, is_known ? 1 : 2);
    raise_set(r, layer, "op", raise_integer(r, "largest", 1) ? SINTER_TOPK_MAX : SINTER_TOPK_MIN);
    if (is_known) raise_set(r, layer, "k", k.at[0]);
    raise_set(r, layer, "axes", mask);
    raise_set(r, layer, "indices_type", SINTER_DTYPE_I64);
    return layer;
}

static sinter_layer *raise_gather(raising *r) /* arg: sinter_gather */
{
    if (!raise_shaped(r, 2, 2, 1, r->arg == SINTER_GATHER_ND ? "batch_dims" : "axis")) return NULL;
    sinter_layer *layer = raise_make(r, SINTER_LAYER_GATHER, 2);
    raise_set(r, layer, "mode", r->arg);
    raise_set(r, layer, "axis", raise_integer(r, "axis", 0));
    raise_set(r, layer, "num_elementwise_dims", raise_integer(r, "batch_dims", 0));
    return layer;
}

static sinter_layer *raise_scatter(raising *r) /* arg: sinter_scatter */
{
    if (!raise_shaped(r, 3, 3, 1, r->arg == SINTER_SCATTER_ND ? "reduction" : "axis reduction") ||
        strcmp(raise_words(r, "reduction", "none"), "none") != 0)
        return NULL;
    sinter_layer *layer = raise_make(r, SINTER_LAYER_SCATTER, 3);
    raise_set(r, layer, "mode", r->arg);
    raise_set(r, layer, "axis", raise_integer(r, "axis", 0));
    return layer;
}

static sinter_layer *raise_einsum(raising *r)
{
    sinter_layer *layer = raise_shaped(r, 2, 2, 1, "equation") ? raise_make(r, SINTER_LAYER_EINSUM, 2) : NULL;
    if (layer && network_set_text(layer, r->s->e, "equation", raise_words(r, "equation", ""))) r->is_wrong = true;
    return layer;
}

static sinter_layer *raise_cumulative(raising *r) /* arg: sinter_cumulative */
{
    sinter_layer *layer =
        raise_shaped(r, 2, 2, 1, "exclusive reverse") ? raise_make(r, SINTER_LAYER_CUMULATIVE, 2) : NULL;
    raise_set(r, layer, "op", r->arg);
    raise_set(r, layer, "exclusive", raise_integer(r, "exclusive", 0) != 0);
    raise_set(r, layer, "reverse", raise_integer(r, "reverse", 0) != 0);
    return layer;
}

static sinter_layer *raise_constant(raising *r)
{
    const onnx_attr *a = raise_attr(r, "value", ONNX_TENSOR);
    if (!raise_shaped(r, 0, 0, 1, "value") || !a || !a->t || a->t->type == ONNX_TYPE_STRING) return NULL;
    return parsed_constant(r->s, a->t, "");
}

/* ---- quantisation ---- */

/* Is a zero point absent, or nothing but zeros? */
static bool is_without_zero(const raising *r)
{
    view v;
    const onnx_tensor *t = initializer(r, 2);
    if (!raise_has_input(r, 2)) return true;
    if (!t || !parsed_weights(r->s, t, &v) || sinter_dtype_bits(v.dtype) < 8) return false;
    const uint8_t *bytes = v.data;
    for (int64_t i = 0; i < view_count(&v) * (int64_t)(sinter_dtype_bits(v.dtype) / 8); i++)
        if (bytes[i]) return false;
    return true;
}

static sinter_layer *raise_quantize(raising *r) /* arg: the kind */
{
    uint32_t rank, rank_scale, rank_zero;
    sinter_dtype type = SINTER_DTYPE_F32, scale = SINTER_DTYPE_F32, to = SINTER_DTYPE_U8;
    const bool is_quantize = r->arg == SINTER_LAYER_QUANTIZE;
    if (!raise_shaped(r, 2, 3, 1, "axis saturate") || raise_integer(r, "saturate", 1) != 1) return NULL;
    if (!input_is(r, 0, &rank, &type) || !input_is(r, 1, &rank_scale, &scale) || rank_scale > 1) return NULL;
    if (raise_has_input(r, 2) && (!input_is(r, 2, &rank_zero, &to) || rank_zero > 1)) return NULL;
    if (!dtype_is_float(scale) || (is_quantize && type != scale)) return NULL;
    sinter_layer *layer = raise_make(r, (sinter_layer_kind)r->arg, is_without_zero(r) ? 2 : 3);
    raise_set(r, layer, "to_type", is_quantize ? to : scale);
    raise_set(r, layer, "axis", raise_integer(r, "axis", 1));
    return layer;
}

/* ---- the table ---- */

typedef struct raise_row {
    const char *type;
    int64_t since, arg;
    sinter_layer *(*raise)(raising *r);
} raise_row;

static const raise_row rows[] = {
    { "Conv", 1, 0, raise_conv },
    { "ConvTranspose", 1, 1, raise_conv },
    { "QuantizeLinear", 10, SINTER_LAYER_QUANTIZE, raise_quantize },
    { "DequantizeLinear", 10, SINTER_LAYER_DEQUANTIZE, raise_quantize },
    { "MaxPool", 1, SINTER_POOLING_MAX, raise_pool },
    { "AveragePool", 1, SINTER_POOLING_AVERAGE, raise_pool },
    { "GlobalAveragePool", 1, SINTER_REDUCTION_AVG, raise_global },
    { "GlobalMaxPool", 1, SINTER_REDUCTION_MAX, raise_global },
    { "Relu", 6, SINTER_ACTIVATION_RELU, raise_activation },
    { "Sigmoid", 6, SINTER_ACTIVATION_SIGMOID, raise_activation },
    { "Tanh", 6, SINTER_ACTIVATION_TANH, raise_activation },
    { "LeakyRelu", 6, SINTER_ACTIVATION_LEAKY_RELU, raise_activation },
    { "Elu", 6, SINTER_ACTIVATION_ELU, raise_activation },
    { "Selu", 6, SINTER_ACTIVATION_SELU, raise_activation },
    { "Softplus", 1, SINTER_ACTIVATION_SOFTPLUS, raise_activation },
    { "Clip", 6, 0, raise_clip },
    { "PRelu", 9, SINTER_LAYER_PARAMETRIC_RELU << 3 | 2, raise_plain },
    { "Softsign", 1, SINTER_ACTIVATION_SOFTSIGN, raise_activation },
    { "HardSigmoid", 6, SINTER_ACTIVATION_HARD_SIGMOID, raise_activation },
    { "ThresholdedRelu", 10, SINTER_ACTIVATION_THRESHOLDED_RELU, raise_activation },
    { "Gelu", 20, SINTER_ACTIVATION_GELU_ERF, raise_activation },
    { "Add", 7, SINTER_ELEMENTWISE_SUM, raise_elementwise },
    { "Mul", 7, SINTER_ELEMENTWISE_PROD, raise_elementwise },
    { "Max", 8, SINTER_ELEMENTWISE_MAX, raise_elementwise },
    { "Min", 8, SINTER_ELEMENTWISE_MIN, raise_elementwise },
    { "Sub", 7, SINTER_ELEMENTWISE_SUB, raise_elementwise },
    { "Div", 7, SINTER_ELEMENTWISE_DIV, raise_elementwise },
    { "Pow", 7, SINTER_ELEMENTWISE_POW, raise_elementwise },
    { "And", 7, SINTER_ELEMENTWISE_AND, raise_elementwise },
    { "Or", 7, SINTER_ELEMENTWISE_OR, raise_elementwise },
    { "Xor", 7, SINTER_ELEMENTWISE_XOR, raise_elementwise },
    { "Equal", 7, SINTER_ELEMENTWISE_EQUAL, raise_elementwise },
    { "Greater", 7, SINTER_ELEMENTWISE_GREATER, raise_elementwise },
    { "Less", 7, SINTER_ELEMENTWISE_LESS, raise_elementwise },
    { "Exp", 6, SINTER_UNARY_EXP, raise_unary },
    { "Log", 6, SINTER_UNARY_LOG, raise_unary },
    { "Sqrt", 6, SINTER_UNARY_SQRT, raise_unary },
    { "Reciprocal", 6, SINTER_UNARY_RECIP, raise_unary },
    { "Abs", 6, SINTER_UNARY_ABS, raise_unary },
    { "Neg", 6, SINTER_UNARY_NEG, raise_unary },
    { "Sin", 7, SINTER_UNARY_SIN, raise_unary },
    { "Cos", 7, SINTER_UNARY_COS, raise_unary },
    { "Tan", 7, SINTER_UNARY_TAN, raise_unary },
    { "Sinh", 9, SINTER_UNARY_SINH, raise_unary },
    { "Cosh", 9, SINTER_UNARY_COSH, raise_unary },
    { "Asin", 7, SINTER_UNARY_ASIN, raise_unary },
    { "Acos", 7, SINTER_UNARY_ACOS, raise_unary },
    { "Atan", 7, SINTER_UNARY_ATAN, raise_unary },
    { "Asinh", 9, SINTER_UNARY_ASINH, raise_unary },
    { "Acosh", 9, SINTER_UNARY_ACOSH, raise_unary },
    { "Atanh", 9, SINTER_UNARY_ATANH, raise_unary },
    { "Ceil", 6, SINTER_UNARY_CEIL, raise_unary },
    { "Floor", 6, SINTER_UNARY_FLOOR, raise_unary },
    { "Erf", 9, SINTER_UNARY_ERF, raise_unary },
    { "Not", 1, SINTER_UNARY_NOT, raise_unary },
    { "Sign", 9, SINTER_UNARY_SIGN, raise_unary },
    { "Round", 11, SINTER_UNARY_ROUND, raise_unary },
    { "IsNaN", 9, SINTER_UNARY_ISNAN, raise_unary },
    { "Gemm", 7, 0, raise_gemm },
    { "MatMul", 1, SINTER_LAYER_MATRIX_MULTIPLY << 3 | 2, raise_plain },
    { "Where", 9, SINTER_LAYER_SELECT << 3 | 3, raise_plain },
    { "Identity", 1, SINTER_LAYER_IDENTITY << 3 | 1, raise_plain },
    { "Shape", 1, SINTER_LAYER_SHAPE << 3 | 1, raise_plain },
    { "Unsqueeze", 1, SINTER_LAYER_UNSQUEEZE, raise_axes },
    { "Squeeze", 1, SINTER_LAYER_SQUEEZE, raise_axes },
    { "Cast", 6, 0, raise_cast },
    { "ReduceSum", 1, SINTER_REDUCTION_SUM | 16, raise_reduce },
    { "ReduceMean", 1, SINTER_REDUCTION_AVG, raise_reduce },
    { "ReduceMax", 1, SINTER_REDUCTION_MAX, raise_reduce },
    { "ReduceMin", 1, SINTER_REDUCTION_MIN, raise_reduce },
    { "ReduceProd", 1, SINTER_REDUCTION_PROD, raise_reduce },
    { "Softmax", 1, 0, raise_softmax },
    { "LayerNormalization", 17, 0, raise_layer_norm },
    { "Concat", 4, 0, raise_concat },
    { "Transpose", 1, 0, raise_transpose },
    { "Reshape", 5, 0, raise_reshape },
    { "Flatten", 1, 0, raise_flatten },
    { "Slice", 1, 0, raise_slice },
    { "Split", 2, 0, raise_split },
    { "Pad", 2, 0, raise_pad },
    { "Resize", 11, 0, raise_resize },
    { "TopK", 11, 0, raise_topk },
    { "Gather", 1, SINTER_GATHER_DEFAULT, raise_gather },
    { "GatherElements", 11, SINTER_GATHER_ELEMENT, raise_gather },
    { "GatherND", 11, SINTER_GATHER_ND, raise_gather },
    { "ScatterElements", 11, SINTER_SCATTER_ELEMENT, raise_scatter },
    { "ScatterND", 11, SINTER_SCATTER_ND, raise_scatter },
    { "Einsum", 12, 0, raise_einsum },
    { "CumSum", 11, SINTER_CUMULATIVE_SUM, raise_cumulative },
    { "Constant", 1, 0, raise_constant },
};

sinter_layer *raise_node(parsing *s, const onnx_node *n, int64_t version, sinter_network_tensor **in)
{
    if (*n->domain && strcmp(n->domain, "ai.onnx") != 0) return NULL;
    for (uint32_t i = 0; i < COUNT_OF(rows); i++) {
        if (strcmp(rows[i].type, n->type) != 0 || version < rows[i].since) continue;
        raising r = { .s = s, .n = n, .in = in, .version = version, .arg = rows[i].arg };
        const uint32_t layers = s->net->layer.count;
        sinter_layer *layer = rows[i].raise(&r);
        if (layer && !r.is_wrong) return layer;
        /* A layer that was half made goes again; constants stay, for the operator. */
        sinter_layer *last = s->net->layer.count > layers ? s->net->layer.at[s->net->layer.count - 1] : NULL;
        if (last && (last == layer || last->kind != SINTER_LAYER_CONSTANT)) (void)network_remove(s->net, s->e, last);
        return NULL;
    }
    return NULL;
}
