/* SPDX-License-Identifier: Apache-2.0 */
/* export_ops.c - ops whose operator has attributes or inputs of another form: scalar functions, layers, reductions. */
#include "onnx/exporter.h"
#include "onnx/model.h"

#include <string.h>

/* clang-format off */
static const export_row rows[OP_COUNT] = {
#define W(op, type, since, function) [OP_##op] = { type, since, export_##function },
#define L(op) [OP_##op] = { "", 0, NULL },
#include "onnx/export.def"
#undef W
#undef L
};
/* clang-format on */

const export_row *export_row_at(op_id op)
{
    return &rows[op];
}

/* Begins a node with all inputs and outputs of `n`. */
static export_node begin(exporter *x, const ir_node *n, const char *type)
{
    export_node to = node_begin(x, type);
    node_ins(x, &to, n, 0);
    node_outs(x, &to, n);
    return to;
}

static void end(exporter *x, export_node *to)
{
    node_end(x, to, x->scope);
}

void export_plain(exporter *x, const ir_node *n, const export_row *row)
{
    export_node to = begin(x, n, row->type);
    end(x, &to);
}

/* ---- scalar functions ---- */

void export_cast(exporter *x, const ir_node *n, const export_row *row)
{
    const sinter_dtype type = (sinter_dtype)((const attrs_typed *)n->attrs)->type;
    export_node to = begin(x, n, row->type);
    node_int(x, &to, "to", export_type(x, type));
    if (n->op == OP_cast_wrap) node_int(x, &to, "saturate", 0);
    end(x, &to);
}

void export_gelu_tanh(exporter *x, const ir_node *n, const export_row *row)
{
    export_node to = begin(x, n, row->type);
    node_text(x, &to, "approximate", "tanh");
    end(x, &to);
}

void export_is_inf(exporter *x, const ir_node *n, const export_row *row)
{
    export_node to = begin(x, n, row->type);
    node_int(x, &to, n->op == OP_is_inf_pos ? "detect_negative" : "detect_positive", 0);
    end(x, &to);
}

void export_fmod(exporter *x, const ir_node *n, const export_row *row)
{
    export_node to = begin(x, n, row->type);
    node_int(x, &to, "fmod", 1);
    end(x, &to);
}

void export_shift(exporter *x, const ir_node *n, const export_row *row)
{
    export_node to = begin(x, n, row->type);
    node_text(x, &to, "direction", n->op == OP_shift_left ? "LEFT" : "RIGHT");
    end(x, &to);
}

/* Parameters that are scalar constants become attributes; export_lower.c has rewritten the others. */
void export_alpha(exporter *x, const ir_node *n, const export_row *row)
{
    static const struct {
        op_id op;
        const char *name[2];
    } attrs[] = {
        { OP_elu, { "alpha", NULL } },
        { OP_celu, { "alpha", NULL } },
        { OP_selu, { "alpha", "gamma" } },
        { OP_thresholded_relu, { "alpha", NULL } },
        { OP_hard_sigmoid, { "alpha", "beta" } },
        { OP_shrink, { "bias", "lambd" } },
    };
    export_node to = node_begin(x, row->type);
    node_in(x, &to, export_name(x, n->in[0]));
    node_outs(x, &to, n);
    for (uint32_t i = 0; i < COUNT_OF(attrs); i++) {
        for (uint32_t k = 0; attrs[i].op == n->op && k < 2 && attrs[i].name[k]; k++) {
            double value = 0;
            if (!ir_const_scalar(x->g, n->in[1 + k], &value)) EXPORT_FAIL(x, INTERNAL, "a parameter is no constant");
            node_float(x, &to, attrs[i].name[k], value);
        }
    }
    end(x, &to);
}

/* A scale or zero point [1, C, 1, …] as the list that ONNX wants, with its axis. export_lower.c leaves no others. */
static const char *quant_list(exporter *x, ir_value_id v, uint32_t rank, int64_t *axis)
{
    const ir_value *value = ir_value_at(x->g, v);
    int64_t size = 1, count = 1;
    if (value->rank == 0) return export_name(x, v);
    for (uint32_t i = 0; i < value->rank; i++) {
        if (!dim_is_const(x->g->dims, value->dim[i], &size) || size == 1) continue;
        *axis = (int64_t)rank - value->rank + i;
        count = size;
    }
    const uint32_t to = count != 1;
    if (value->data) return export_constant(x, value->name, value->dtype, to, &count, value->data);
    if (value->rank == to) return export_name(x, v);
    const char *shape = export_ints(x, &count, to);
    return export_emit(x, x->scope, "Reshape", (const char *[]){ export_name(x, v), shape }, 2);
}

void export_quantize(exporter *x, const ir_node *n, const export_row *row)
{
    int64_t axis = -1;
    const uint32_t rank = ir_value_at(x->g, n->out[0])->rank;
    for (uint32_t i = 0; i < x->blocks.count && x->sum[n - x->g->node.at]; i++)
        if (ir_node_at(x->g, x->blocks.at[i].node) == n) {
            export_blocks_write(x, &x->blocks.at[i]);
            return;
        }
    const char *scale = quant_list(x, n->in[1], rank, &axis), *zero = quant_list(x, n->in[2], rank, &axis);
    export_node to = node_begin(x, row->type);
    node_in(x, &to, export_name(x, n->in[0]));
    node_in(x, &to, scale);
    node_in(x, &to, zero);
    node_outs(x, &to, n);
    if (axis >= 0) node_int(x, &to, "axis", axis);
    end(x, &to);
}

/* ---- products and convolutions ---- */

/* The outputs of the addition of a bias where there is one, and that bias as a list. */
static void bias_in(exporter *x, const ir_node *n, export_node *to)
{
    const ir_node *sum = ir_node_at(x->g, x->sum[n - x->g->node.at]);
    if (sum == &x->g->node.at[0]) {
        node_outs(x, to, n);
        return;
    }
    const ir_value_id v = sum->in[0] == n->out[0] ? sum->in[1] : sum->in[0];
    const ir_value *bias = ir_value_at(x->g, v);
    int64_t count = 1, size;
    for (uint32_t i = 0; i < bias->rank; i++)
        if (dim_is_const(x->g->dims, bias->dim[i], &size)) count *= size;
    node_in(x, to, export_constant(x, bias->name, bias->dtype, 1, &count, bias->data));
    node_outs(x, to, sum);
    to->from = n;
}

bool export_is_gemm(const exporter *x, const ir_node *n)
{
    static const sinter_dtype types[] = { SINTER_DTYPE_F32, SINTER_DTYPE_F16, SINTER_DTYPE_F64, SINTER_DTYPE_BF16,
                                          SINTER_DTYPE_I32, SINTER_DTYPE_I64, SINTER_DTYPE_U32, SINTER_DTYPE_U64 };
    const ir_value *a = ir_value_at(x->g, n->in[0]), *b = ir_value_at(x->g, n->in[1]);
    for (uint32_t i = 0; i < COUNT_OF(types); i++)
        if (a->dtype == types[i] && n->op == OP_matmul)
            return a->rank == 2 && b->rank == 2 && ir_value_at(x->g, n->out[0])->dtype == a->dtype;
    return false;
}

void export_matmul(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_matmul *a = n->attrs;
    const bool is_gemm = a->trans_a || a->trans_b || x->sum[n - x->g->node.at];
    export_node to = node_begin(x, is_gemm ? "Gemm" : row->type);
    node_ins(x, &to, n, 0);
    bias_in(x, n, &to);
    if (a->trans_a) node_int(x, &to, "transA", 1);
    if (a->trans_b) node_int(x, &to, "transB", 1);
    end(x, &to);
}

static void window(exporter *x, export_node *to, const attr_ints *stride, const attr_ints *dilation,
                   const attr_ints *pad)
{
    node_list(x, to, "strides", stride);
    node_list(x, to, "dilations", dilation);
    node_list(x, to, "pads", pad);
}

void export_conv(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_conv *a = n->attrs;
    export_node to = node_begin(x, row->type);
    node_ins(x, &to, n, 0);
    bias_in(x, n, &to);
    window(x, &to, &a->stride, &a->dilation, &a->pad);
    if (a->groups != 1) node_int(x, &to, "group", a->groups);
    end(x, &to);
}

void export_conv_transpose(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_conv_transpose *a = n->attrs;
    export_node to = node_begin(x, row->type);
    node_ins(x, &to, n, 0);
    bias_in(x, n, &to);
    window(x, &to, &a->stride, &a->dilation, &a->pad);
    node_list(x, &to, "output_padding", &a->out_pad);
    if (a->groups != 1) node_int(x, &to, "group", a->groups);
    end(x, &to);
}

void export_conv_integer(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_conv_integer *a = n->attrs;
    export_node to = begin(x, n, row->type);
    window(x, &to, &a->stride, &a->dilation, &a->pad);
    if (a->groups != 1) node_int(x, &to, "group", a->groups);
    end(x, &to);
}

void export_deform_conv(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_deform_conv *a = n->attrs;
    export_node to = begin(x, n, row->type);
    window(x, &to, &a->stride, &a->dilation, &a->pad);
    node_int(x, &to, "group", a->groups);
    node_int(x, &to, "offset_group", a->offset_groups);
    end(x, &to);
}

void export_einsum(exporter *x, const ir_node *n, const export_row *row)
{
    export_node to = begin(x, n, row->type);
    node_text(x, &to, "equation", ((const attrs_einsum *)n->attrs)->equation);
    end(x, &to);
}

void export_attention(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_attention *a = n->attrs;
    if (n->count_out > 1) EXPORT_FAIL(x, UNSUPPORTED, "attention that appends rows to its keys has no form in ONNX");
    if (n->count_in > 4 && n->in[4]) EXPORT_FAIL(x, UNSUPPORTED, "attention with a length has no form in ONNX");
    export_node to = begin(x, n, row->type);
    node_float(x, &to, "scale", a->scale);
    if (a->causal) node_int(x, &to, "is_causal", 1);
    if (a->softcap != 0) node_float(x, &to, "softcap", a->softcap);
    end(x, &to);
}

/* ---- windows ---- */

/* Before opset 22, a last window that begins in the padding counts too. */
static void ceil_mode(exporter *x, export_node *to, bool is_ceil)
{
    enum { SINCE = 22 };
    if (!is_ceil) return;
    export_need(x, SINCE);
    node_int(x, to, "ceil_mode", 1);
}

void export_max_pool(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_max_pool *a = n->attrs;
    export_node to = begin(x, n, row->type);
    node_list(x, &to, "kernel_shape", &a->kernel);
    window(x, &to, &a->stride, &a->dilation, &a->pad);
    ceil_mode(x, &to, a->ceil != 0);
    if (a->column_major) node_int(x, &to, "storage_order", 1);
    end(x, &to);
}

void export_avg_pool(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_avg_pool *a = n->attrs;
    export_node to = begin(x, n, row->type);
    node_list(x, &to, "kernel_shape", &a->kernel);
    window(x, &to, &a->stride, &a->dilation, &a->pad);
    ceil_mode(x, &to, a->ceil != 0);
    if (a->count_pad) node_int(x, &to, "count_include_pad", 1);
    end(x, &to);
}

void export_lp_pool(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_lp_pool *a = n->attrs;
    export_node to = begin(x, n, row->type);
    node_list(x, &to, "kernel_shape", &a->kernel);
    window(x, &to, &a->stride, &a->dilation, &a->pad);
    ceil_mode(x, &to, a->ceil != 0);
    node_int(x, &to, "p", a->p);
    end(x, &to);
}

bool export_unpool_window(const exporter *x, const ir_node *n, attr_ints *kernel)
{
    const attr_dims *shape = &((const attrs_max_unpool *)n->attrs)->shape;
    const ir_value *in = ir_value_at(x->g, n->in[0]);
    *kernel = (attr_ints){ .count = shape->count - 2 };
    for (uint32_t i = 0; i < kernel->count; i++) {
        int64_t from, to;
        if (!dim_is_const(x->g->dims, in->dim[2 + i], &from) ||
            !dim_is_const(x->g->dims, export_dim(shape, 2 + i), &to) || to < from)
            return false;
        kernel->at[i] = to - from + 1;
    }
    return true;
}

/* Indices count in the shape that the window implies: with a stride of 1 that is the shape wanted. */
void export_max_unpool(exporter *x, const ir_node *n, const export_row *row)
{
    attr_ints kernel;
    if (!export_unpool_window(x, n, &kernel)) EXPORT_FAIL(x, INTERNAL, "a window that is not known");
    export_node to = begin(x, n, row->type);
    node_list(x, &to, "kernel_shape", &kernel);
    end(x, &to);
}

/* ---- reductions ---- */

void export_reduce(exporter *x, const ir_node *n, const export_row *row)
{
    static const char *const types[reduce_kind_count] = {
        "ReduceSum", "ReduceMean", "ReduceMax",    "ReduceMin",       "ReduceProd",
        "ReduceL1",  "ReduceL2",   "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare",
    };
    const attrs_reduce *a = n->attrs;
    (void)row;
    const char *axes = export_ints(x, a->axes.at, a->axes.count);
    export_node to = begin(x, n, types[a->kind]);
    node_in(x, &to, axes);
    if (!a->keep) node_int(x, &to, "keepdims", 0);
    if (!a->axes.count) node_int(x, &to, "noop_with_empty_axes", 1);
    end(x, &to);
}

void export_arg_reduce(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_arg_reduce *a = n->attrs;
    (void)row;
    export_node to = begin(x, n, a->is_max ? "ArgMax" : "ArgMin");
    node_int(x, &to, "axis", a->axis);
    if (!a->keep) node_int(x, &to, "keepdims", 0);
    if (a->last) node_int(x, &to, "select_last_index", 1);
    end(x, &to);
}

void export_top_k(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_top_k *a = n->attrs;
    const char *k = export_size(x, export_dim(&a->k, 0));
    export_node to = begin(x, n, row->type);
    node_in(x, &to, k);
    node_int(x, &to, "axis", a->axis);
    if (!a->largest) node_int(x, &to, "largest", 0);
    if (!a->sorted) node_int(x, &to, "sorted", 0);
    end(x, &to);
}

void export_cumulate(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_cumulate *a = n->attrs;
    (void)row;
    if (a->is_product) export_need(x, 26);
    const char *axis = export_int(x, a->axis);
    export_node to = begin(x, n, a->is_product ? "CumProd" : "CumSum");
    node_in(x, &to, axis);
    if (a->exclusive) node_int(x, &to, "exclusive", 1);
    if (a->reverse) node_int(x, &to, "reverse", 1);
    end(x, &to);
}

/* ---- normalisations ---- */

void export_softmax(exporter *x, const ir_node *n, const export_row *row)
{
    export_node to = begin(x, n, row->type);
    node_int(x, &to, "axis", ((const attrs_softmax *)n->attrs)->axis);
    end(x, &to);
}

void export_layer_norm(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_layer_norm *a = n->attrs;
    export_node to = begin(x, n, row->type);
    node_int(x, &to, "axis", a->axis);
    node_float(x, &to, "epsilon", a->epsilon);
    end(x, &to);
}

void export_rms_norm(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_rms_norm *a = n->attrs;
    export_node to = begin(x, n, row->type);
    node_int(x, &to, "axis", a->axis);
    node_float(x, &to, "epsilon", a->epsilon);
    end(x, &to);
}

void export_group_norm(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_group_norm *a = n->attrs;
    (void)row;
    export_node to = begin(x, n, a->groups ? "GroupNormalization" : "InstanceNormalization");
    if (a->groups) node_int(x, &to, "num_groups", a->groups);
    node_float(x, &to, "epsilon", a->epsilon);
    end(x, &to);
}

void export_lrn(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_lrn *a = n->attrs;
    export_node to = begin(x, n, row->type);
    node_int(x, &to, "size", a->size);
    node_float(x, &to, "alpha", a->alpha);
    node_float(x, &to, "beta", a->beta);
    node_float(x, &to, "bias", a->bias);
    end(x, &to);
}

void export_lp_norm(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_lp_norm *a = n->attrs;
    export_node to = begin(x, n, row->type);
    node_int(x, &to, "axis", a->axis);
    node_int(x, &to, "p", a->p);
    end(x, &to);
}

/* ---- recurrent layers ---- */

/* ONNX's inputs and attributes are the op's; names of activations stay as the model had them. */
#define EXPORT_RNN(x, to, n, a)                                                                                        \
    do {                                                                                                               \
        int64_t hidden = 0; /* may be left out: the weights have it, too */                                            \
        if (dim_is_const((x)->g->dims, ir_value_at((x)->g, (n)->in[2])->dim[2], &hidden))                              \
            node_int(x, to, "hidden_size", hidden);                                                                    \
        node_text(x, to, "direction", attr_items_rnn_direction[(a)->direction]);                                       \
        node_texts(x, to, "activations", (a)->activations);                                                            \
        node_floats(x, to, "activation_alpha", &(a)->alpha);                                                           \
        node_floats(x, to, "activation_beta", &(a)->beta);                                                             \
        if ((a)->clip > 0) node_float(x, to, "clip", (a)->clip);                                                       \
    } while (0)

void export_lstm(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_lstm *a = n->attrs;
    export_node to = begin(x, n, row->type);
    EXPORT_RNN(x, &to, n, a);
    if (a->input_forget) node_int(x, &to, "input_forget", 1);
    end(x, &to);
}

void export_gru(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_gru *a = n->attrs;
    export_node to = begin(x, n, row->type);
    EXPORT_RNN(x, &to, n, a);
    if (a->linear_before_reset) node_int(x, &to, "linear_before_reset", 1);
    end(x, &to);
}

void export_rnn(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_rnn *a = n->attrs;
    export_node to = begin(x, n, row->type);
    EXPORT_RNN(x, &to, n, a);
    end(x, &to);
}
