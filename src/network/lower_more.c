/* SPDX-License-Identifier: Apache-2.0 */
/* lower_more.c - layers that are one operator of ONNX, and those that make, count, pick or check. */
#include "network/network.h"
#include "onnx/quirks.h"

#include <math.h>

void lower_parametric_relu(network_call *n)
{
    network_widen(n);
    n->c.out[0] = build_prelu(&n->c.b, n->c.in[0], n->c.in[1]);
}

void lower_lrn(network_call *n)
{
    const onnx_attr a[] = { network_attr_int("size", network_int(n, "window_size")),
                            network_attr_real("alpha", network_real(n, "alpha", 1e-4)),
                            network_attr_real("beta", network_real(n, "beta", 0.75)),
                            network_attr_real("bias", network_real(n, "k", 1)) };
    n->c.out[0] = network_op(n, "LRN", a, COUNT_OF(a), n->c.in, 1);
}

void lower_ragged_softmax(network_call *n)
{
    ir_builder *b = &n->c.b;
    const ir_value_id x = n->c.in[0];
    const uint32_t rank = call_rank(&n->c, x);
    if (!rank || call_rank(&n->c, n->c.in[1]) != rank)
        REJECT(&n->c, INVALID_ARG, "input and bounds have ranks %u and %u", rank, call_rank(&n->c, n->c.in[1]));
    if (n->c.b.status) return;
    const ir_value_id at = build_iota(b, call_dim(&n->c, x, rank - 1));
    const ir_value_id inside = build_lt(b, at, build_typed(b, n->c.in[1], SINTER_DTYPE_I64));
    const ir_value_id cut = build_where(b, inside, x, build_scalar_like(b, x, -(double)INFINITY));
    const ir_value_id y = build_softmax(b, cut, &(attrs_softmax){ .axis = rank - 1 });
    n->c.out[0] = build_where(b, inside, y, build_scalar_like(b, x, 0));
}

void lower_cumulative(network_call *n)
{
    const onnx_attr a[] = { network_attr_int("exclusive", network_int(n, "exclusive")),
                            network_attr_int("reverse", network_int(n, "reverse")) };
    const bool is_sum = network_int(n, "op") == SINTER_CUMULATIVE_SUM;
    n->c.out[0] = network_op(n, is_sum ? "CumSum" : "CumProd", a, 2, n->c.in, 2);
}

void lower_einsum(network_call *n)
{
    network_widen(n);
    const onnx_attr a = network_attr_text("equation", network_param_of(n->layer, "equation")->text);
    n->c.out[0] = network_op(n, "Einsum", &a, 1, n->c.in, n->c.count_in);
}

void lower_squeeze(network_call *n)
{
    n->c.out[0] = network_op(n, "Squeeze", NULL, 0, n->c.in, n->c.count_in);
}

void lower_unsqueeze(network_call *n)
{
    n->c.out[0] = network_op(n, "Unsqueeze", NULL, 0, n->c.in, 2);
}

void lower_scatter(network_call *n)
{
    network_widen(n);
    const onnx_attr a = network_attr_int("axis", network_int(n, "axis"));
    const bool is_nd = network_int(n, "mode") == SINTER_SCATTER_ND;
    n->c.out[0] = network_op(n, is_nd ? "ScatterND" : "ScatterElements", &a, is_nd ? 0 : 1, n->c.in, 3);
}

void lower_one_hot(network_call *n)
{
    const onnx_attr a = network_attr_int("axis", network_int(n, "axis"));
    const ir_value_id in[3] = { n->c.in[0], n->c.in[2], n->c.in[1] };
    n->c.out[0] = network_op(n, "OneHot", &a, 1, in, 3);
}

static sinter_dtype indices_type(network_call *n)
{
    const sinter_dtype type = (sinter_dtype)network_int(n, "indices_type");
    if (type != SINTER_DTYPE_I32 && type != SINTER_DTYPE_I64)
        REJECT(&n->c, INVALID_ARG, "indices of type %s, wanted is i32 or i64", sinter_dtype_name(type));
    return type;
}

void lower_non_zero(network_call *n)
{
    const sinter_dtype type = indices_type(n);
    n->c.out[0] = build_typed(&n->c.b, network_op(n, "NonZero", NULL, 0, n->c.in, 1), type);
}

void lower_reverse_sequence(network_call *n)
{
    const onnx_attr a[] = { network_attr_int("batch_axis", network_int(n, "batch_axis")),
                            network_attr_int("time_axis", network_int(n, "sequence_axis")) };
    const ir_value_id in[2] = { n->c.in[0], build_typed(&n->c.b, n->c.in[1], SINTER_DTYPE_I64) };
    n->c.out[0] = network_op(n, "ReverseSequence", a, 2, in, 2);
}

void lower_grid_sample(network_call *n)
{
    static const char *const mode[] = { "nearest", "linear", "cubic" };
    const int64_t outside = network_int(n, "sample_mode");
    const char *padding = outside == SINTER_SAMPLE_FILL      ? "zeros"
                          : outside == SINTER_SAMPLE_CLAMP   ? "border"
                          : outside == SINTER_SAMPLE_REFLECT ? "reflection"
                                                             : NULL;
    if (!padding) {
        REJECT(&n->c, INVALID_ARG, "sample_mode is none of clamp, fill and reflect");
        return;
    }
    const onnx_attr a[] = { network_attr_text("mode", mode[network_int(n, "interpolation_mode")]),
                            network_attr_text("padding_mode", padding),
                            network_attr_int("align_corners", network_int(n, "align_corners")) };
    n->c.out[0] = network_op(n, "GridSample", a, COUNT_OF(a), n->c.in, 2);
}

/* ---- nms ---- */

/* The rows in the order of their keys; those of equal keys stay as they are. */
static ir_value_id ordered(network_call *n, ir_value_id rows, ir_value_id key, dim count, bool is_descending)
{
    const onnx_attr a[] = { network_attr_int("axis", 0), network_attr_int("largest", is_descending) };
    const ir_value_id in[2] = { key, build_sizes(&n->c.b, &count, 1, false) };
    ir_value_id out[2] = { 0 };
    network_ops(n, "TopK", a, 2, in, 2, out, 2);
    return n->c.b.status ? 0 : network_op(n, "Gather", a, 1, (const ir_value_id[]){ rows, out[1] }, 2);
}

/* Rows are sorted by batch, and by score in it, over all classes; ONNX has them class by class. */
void lower_nms(network_call *n)
{
    static const int64_t to_front[4] = { 0, 2, 1, 3 }, swap[3] = { 0, 2, 1 };
    ir_builder *b = &n->c.b;
    dim_table *t = b->g->dims;
    dim d[SINTER_RANK_MAX];
    const sinter_dtype type = indices_type(n);
    ir_value_id in[5] = { n->c.in[0], build_permuted(b, n->c.in[1], swap, 3), n->c.in[2], call_in(&n->c, 3),
                          call_in(&n->c, 4) };
    const uint32_t rank = call_shape(&n->c, in[0], d);
    if ((rank != 3 && rank != 4) || call_rank(&n->c, n->c.in[1]) != 3)
        REJECT(&n->c, INVALID_ARG, "boxes of rank %u and scores of rank %u", rank, call_rank(&n->c, n->c.in[1]));
    if (n->c.b.status) return;
    const dim classes = call_dim(&n->c, in[1], 1), one = call_k(&n->c, 1);
    const int64_t limit = network_int(n, "topk_box_limit");
    int64_t boxes = 0;
    if (limit > 0 && (!dim_is_const(t, d[1], &boxes) || boxes > limit))
        REJECT(&n->c, UNSUPPORTED, "topk_box_limit is %lld, and there may be more boxes", (long long)limit);
    if (rank == 4) { /* boxes of their own for each class: classes become part of the batch */
        const dim all = dim_mul(t, d[0], classes), to[3] = { all, d[1], d[3] }, scores[3] = { all, one, d[1] };
        in[0] = build_shaped(b, build_permuted(b, in[0], to_front, 4), to, 3);
        in[1] = build_shaped(b, in[1], scores, 3);
    }
    in[2] = build_typed(b, in[2], SINTER_DTYPE_I64);
    const onnx_attr a =
        network_attr_int("center_point_box", network_int(n, "bounding_box_format") == SINTER_BOX_CENTER_SIZES);
    ir_value_id found = network_op(n, "NonMaxSuppression", &a, 1, in, 5);
    if (n->c.b.status) return;
    const dim count = call_dim(&n->c, found, 0);
    int64_t batch = 0;
    found =
        ordered(n, found, network_op(n, "GatherND", NULL, 0, (const ir_value_id[]){ in[1], found }, 2), count, true);
    if (n->c.b.status) return;
    if (rank == 4) {
        const ir_value_id each = build_sizes(b, &classes, 1, true);
        const ir_value_id at = build_part(b, found, 1, call_k(&n->c, 0), 1, one);
        ir_value_id part[3] = { build_div(b, at, each) };
        part[1] = build_mod(b, at, each);
        part[2] = build_part(b, found, 1, call_k(&n->c, 2), 1, one);
        found = build_concat(b, part, 3, &(attrs_concat){ .axis = 1 });
    }
    if (!dim_is_const(t, d[0], &batch) || batch != 1)
        found =
            ordered(n, found, build_squeezed(b, build_part(b, found, 1, call_k(&n->c, 0), 1, one), 1), count, false);
    n->c.out[0] = build_typed(b, found, type);
    n->c.out[1] = build_typed(b, build_sizes(b, &count, 1, true), SINTER_DTYPE_I32);
}

/* ---- fill ---- */

/* A number: an input, or a parameter. */
static ir_value_id fill_number(network_call *n, uint32_t input, const char *name, double unset, sinter_dtype type)
{
    const ir_value_id v = call_in(&n->c, input);
    if (v) return build_typed(&n->c.b, v, type);
    const double value = network_real(n, name, unset);
    return dtype_is_float(type) ? build_scalar(&n->c.b, type, value) : build_scalar_i64(&n->c.b, type, (int64_t)value);
}

static ir_value_id linspace(network_call *n, const dim *d, uint32_t rank, sinter_dtype type)
{
    ir_builder *b = &n->c.b;
    ir_value_id y = quirk_scalar_in(&n->c, fill_number(n, 1, "alpha", 0, type));
    const ir_value_id step = fill_number(n, 2, "beta", 1, type);
    if (!rank) return y;
    const bool is_list = call_rank(&n->c, step) == 1;
    if (rank > 1 && !is_list)
        REJECT(&n->c, INVALID_ARG, "linspace of rank %u needs input 2, a step for each axis", rank);
    for (uint32_t i = 0; i < rank && !b->status; i++) {
        const ir_value_id own =
            is_list && rank > 1 ? build_squeezed(b, build_part(b, step, 0, call_k(&n->c, i), 1, call_k(&n->c, 1)), 0)
                                : quirk_scalar_in(&n->c, step);
        const ir_value_id at = build_typed(b, build_along(b, build_iota(b, d[i]), i, rank), type);
        y = build_add(b, y, build_mul(b, at, own));
    }
    return y;
}

void lower_fill(network_call *n)
{
    ir_builder *b = &n->c.b;
    dim d[SINTER_RANK_MAX];
    attr_ints list;
    uint32_t rank = 0;
    const int64_t op = network_int(n, "op");
    const sinter_dtype type = (sinter_dtype)network_int(n, "to_type");
    network_ints(n, "dim", &list);
    if (call_in(&n->c, 0)) {
        call_sizes(&n->c, n->c.in[0], "the shape", DIM_NONE, d, SINTER_RANK_MAX, &rank);
    } else {
        for (; rank < list.count && rank < SINTER_RANK_MAX; rank++) {
            if (list.at[rank] < 0) REJECT(&n->c, INVALID_ARG, "axis %u has size %lld", rank, (long long)list.at[rank]);
            d[rank] = call_k(&n->c, list.at[rank]);
        }
    }
    if (n->c.b.status) return;
    if (op == SINTER_FILL_LINSPACE) {
        n->c.out[0] = linspace(n, d, rank, type);
        return;
    }
    if (!dtype_is_float(type)) REJECT(&n->c, INVALID_ARG, "random numbers of type %s", sinter_dtype_name(type));
    attrs_random *a = DEFAULTS(random);
    a->normal = op == SINTER_FILL_RANDOM_NORMAL;
    a->seed = network_int(n, "seed");
    a->shape = build_dims(b, d, rank);
    const ir_value_id dice = build_random(b, 0, a); /* f32, from 0 to 1, or of mean 0 and deviation 1 */
    const ir_value_id low = quirk_scalar_in(&n->c, fill_number(n, 1, "alpha", 0, SINTER_DTYPE_F32)),
                      high = quirk_scalar_in(&n->c, fill_number(n, 2, "beta", 1, SINTER_DTYPE_F32));
    const ir_value_id width = a->normal ? high : build_sub(b, high, low);
    n->c.out[0] = build_typed(b, build_add(b, build_mul(b, dice, width), low), type);
}

/* ---- assertion ---- */

void lower_assertion(network_call *n)
{
    int64_t axes[SINTER_RANK_MAX];
    double known = 0;
    const char *message = network_param_of(n->layer, "message")->text;
    ir_value_id v = n->c.in[0];
    const uint32_t rank = call_rank(&n->c, v);
    if (call_type(&n->c, v) != SINTER_DTYPE_BOOL)
        REJECT(&n->c, INVALID_ARG, "the condition has type %s, wanted is bool", sinter_dtype_name(call_type(&n->c, v)));
    for (uint32_t i = 0; i < rank; i++) axes[i] = i;
    v = build_typed(&n->c.b, v, SINTER_DTYPE_I32);
    if (rank) v = build_reduced(&n->c.b, reduce_kind_min, v, axes, rank, false);
    v = build_ge(&n->c.b, v, build_scalar_i64(&n->c.b, SINTER_DTYPE_I32, 1)); /* of no elements: true */
    if (n->c.b.status) return;
    if (ir_known_scalar(n->c.b.g, v, &known)) {
        if (known == 0) REJECT(&n->c, INVALID_ARG, "the assertion does not hold: %s", message);
        return;
    }
    quirk_guard(&n->c, v, true, GUARD_ASSERTION);
}
