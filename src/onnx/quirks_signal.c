/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_signal.c - Fourier transforms, windows, mel weights, and the two classification losses. */
#include "onnx/quirks.h"
#include <math.h>
#include <string.h>

/* Where only the run knows whether numbers are real or complex: half of a spectrum is that of real ones; others get an
 * imaginary part of 0. */
static ir_value_id parts_known(onnx_call *c, ir_value_id x, bool is_real)
{
    dim_table *t = c->b.g->dims;
    dim none[SINTER_RANK_MAX], more[SINTER_RANK_MAX];
    const uint32_t rank = c->b.status ? 0 : call_rank(c, x), last = rank - 1;
    const dim zero = call_k(c, 0), one = call_k(c, 1), two = call_k(c, 2), parts = rank ? call_dim(c, x, last) : one;
    if (!rank || dim_is_const(t, parts, NULL)) return x;
    if (is_real) return build_part(&c->b, x, last, zero, 1, one);
    for (uint32_t i = 0; i < rank; i++) none[i] = more[i] = zero;
    more[last] = dim_max(t, dim_sub(t, two, parts), zero);
    x = build_padded(&c->b, x, pad_mode_constant, none, more, 0);
    return build_part(&c->b, x, last, zero, 1, two);
}

static ir_value_id dft(onnx_call *c, ir_value_id x, int64_t axis, bool inverse, bool onesided, dim length)
{
    x = parts_known(c, x, onesided && !inverse);
    attrs_dft *a = DEFAULTS(dft);
    a->axis = axis;
    a->inverse = inverse;
    a->onesided = onesided;
    if (length != DIM_NONE) a->length = build_dims(&c->b, &length, 1);
    return build_dft(&c->b, x, a);
}

/* An axis that the model computes: x is seen as [before, along, behind, parts], the transform is along axis 1, and the
 * result is seen as it should be. */
static void dft_along(onnx_call *c, ir_value_id x, ir_value_id axis, dim length)
{
    ir_builder *b = &c->b;
    dim d[SINTER_RANK_MAX], one = call_k(c, 1), sizes = DIM_NONE;
    const uint32_t rank = call_shape(c, x, d);
    if (rank < 2) REJECT(c, INVALID_MODEL, "an input of rank %u", rank);
    if (b->status) return;
    axis = quirk_axis_counted(c, axis, rank);
    const ir_value_id all = build_sizes(b, d, rank, false), number = build_iota(b, call_k(c, rank)),
                      none = build_scalar_i64(b, SINTER_DTYPE_I64, 1), is_here = build_eq(b, number, axis),
                      end = build_scalar_i64(b, SINTER_DTYPE_I64, rank - 1), follows = build_gt(b, number, axis),
                      behind = build_and(b, follows, build_lt(b, number, end));
    ir_value_id part[4] = { build_lt(b, number, axis), is_here, behind };
    for (uint32_t i = 0; i < 3; i++) {
        const ir_value_id of = build_where(b, part[i], all, none);
        part[i] = build_reduced(b, reduce_kind_prod, of, (int64_t[]){ 0 }, 1, true);
    }
    part[3] = build_sizes(b, &d[rank - 1], 1, false);
    ir_value_id y = quirk_reshape_late(c, x, build_concat(b, part, 4, &(attrs_concat){ .axis = 0 }), 4, true);
    dim known[SINTER_RANK_MAX];
    if (b->status) return;
    call_shape(c, y, known);
    known[3] = d[rank - 1];
    y = build_shaped(b, y, known, 4);
    y = dft(c, y, 1, call_int(c, "inverse", 0) != 0, call_int(c, "onesided", 0) != 0, length);
    if (b->status) return;
    sizes = call_dim(c, y, 1);
    const dim pair = call_dim(c, y, 3);
    const ir_value_id along = build_shaped(b, build_sizes(b, &sizes, 1, false), &one, 1),
                      last = build_eq(b, number, end),
                      shape =
                          build_where(b, is_here, along, build_where(b, last, build_sizes(b, &pair, 1, false), all));
    y = quirk_reshape_late(c, y, shape, rank, true);
    if (b->status) return;
    call_shape(c, y, d);
    d[rank - 1] = pair;
    c->out[0] = build_shaped(b, y, d, rank);
}

void convert_dft(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    dim length = DIM_NONE;
    uint32_t count = 0;
    int64_t axis = call_int(c, "axis", 1);
    const bool is_late = c->version >= 20 && quirk_axes_late(c, call_in(c, 2));
    if (c->version >= 20 && !is_late) {
        axis = -2;
        if (call_in(c, 2) && (!call_const_ints(c, call_in(c, 2), "the axis", &axis, 1, &count) || count != 1))
            REJECT(c, INVALID_MODEL, "no axis");
    }
    if (!is_late) axis = call_axis(c, axis, call_rank(c, x));
    if (call_in(c, 1) && (!call_sizes(c, call_in(c, 1), "the length", DIM_NONE, &length, 1, &count) || count != 1))
        REJECT(c, INVALID_MODEL, "the length is not one number");
    if (is_late) {
        dft_along(c, x, call_in(c, 2), length);
        return;
    }
    c->out[0] = dft(c, x, axis, call_int(c, "inverse", 0) != 0, call_int(c, "onesided", 0) != 0, length);
}

/* com.microsoft's Rfft and Irfft over the last axis of the signal. */
void convert_rfft(onnx_call *c) /* arg 1: the inverse */
{
    dim d[SINTER_RANK_MAX];
    const ir_value_id x = call_in(c, 0);
    const uint32_t rank = call_shape(c, x, d);
    const int64_t axes = call_int(c, "signal_ndim", 1);
    if (axes != 1) REJECT(c, UNSUPPORTED, "attribute signal_ndim is %lld, 1 is wanted", (long long)axes);
    if (call_int(c, "normalized", 0)) REJECT(c, UNSUPPORTED, "attribute normalized is 1");
    if (!call_int(c, "onesided", 1)) REJECT(c, UNSUPPORTED, "attribute onesided is 0");
    if (!x || rank < 1 + (uint32_t)c->arg || rank >= SINTER_RANK_MAX)
        REJECT(c, INVALID_MODEL, "an input of rank %u", rank);
    if (c->b.status) return;
    if (!c->arg) {
        c->out[0] = dft(c, build_unsqueezed(&c->b, x, rank), rank - 1, false, true, DIM_NONE);
        return;
    }
    const dim bins = dim_sub(c->b.g->dims, d[rank - 2], call_k(c, 1)),
              length = dim_mul(c->b.g->dims, bins, call_k(c, 2));
    const ir_value_id pairs = call_pairs(c, 0);
    if (!c->b.status) c->out[0] = build_squeezed(&c->b, dft(c, pairs, rank - 2, true, true, length), rank - 1);
}

void convert_stft(onnx_call *c)
{
    dim_table *t = c->b.g->dims;
    ir_value_id x = call_in(c, 0);
    const ir_value_id window = call_in(c, 2);
    int64_t known = 0;
    uint32_t count = 0;
    dim length = DIM_NONE, step = DIM_NONE;
    if (!call_in(c, 1) || !call_sizes(c, call_in(c, 1), "the step", DIM_NONE, &step, 1, &count) || count != 1)
        REJECT(c, INVALID_MODEL, "the step is not one number");
    else if (dim_is_const(t, step, &known) && known < 1)
        REJECT(c, INVALID_MODEL, "the step is %lld, not positive", (long long)known);
    if (call_in(c, 3)) call_sizes(c, call_in(c, 3), "the length of a frame", DIM_NONE, &length, 1, &count);
    else if (window) length = call_dim(c, window, 0);
    else REJECT(c, INVALID_MODEL, "neither a window nor the length of a frame");
    if (c->b.status) return;
    if (call_rank(c, x) == 2) x = build_unsqueezed(&c->b, x, 2);
    if (call_rank(c, x) != 3) REJECT(c, INVALID_MODEL, "a signal of rank %u", call_rank(c, x));
    const dim frames = dim_add(t, dim_floordiv(t, dim_sub(t, call_dim(c, x, 1), length), step), call_k(c, 1));
    const ir_value_id pace = build_sizes(&c->b, &step, 1, true);
    const ir_value_id first = build_mul(&c->b, build_unsqueezed(&c->b, build_iota(&c->b, frames), 1), pace);
    const ir_value_id at = build_add(&c->b, first, build_unsqueezed(&c->b, build_iota(&c->b, length), 0));
    attrs_gather *a = DEFAULTS(gather);
    a->axis = 1;
    ir_value_id y = build_gather(&c->b, x, at, a);
    if (window) y = build_mul(&c->b, y, build_unsqueezed(&c->b, window, 1));
    c->out[0] = dft(c, y, 2, false, call_int(c, "onesided", 1) != 0, DIM_NONE);
}

/* a - b cos(2 pi n / N) + d cos(4 pi n / N); arg: 0 Hann, 1 Hamming, 2 Blackman. */
void convert_window(onnx_call *c)
{
    static const double table[3][3] = { { 0.5, 0.5, 0 }, { 25.0 / 46, 21.0 / 46, 0 }, { 0.42, 0.5, 0.08 } };
    const double *w = table[c->arg];
    const sinter_dtype f64 = SINTER_DTYPE_F64, type = call_dtype(c, call_int(c, "output_datatype", 1));
    dim size = DIM_NONE;
    uint32_t count = 0;
    if (!call_in(c, 0) || !call_sizes(c, call_in(c, 0), "the size", DIM_NONE, &size, 1, &count) || count != 1)
        REJECT(c, INVALID_MODEL, "the size is not one number");
    if (c->b.status) return;
    const bool periodic = call_int(c, "periodic", 1) != 0;
    const dim span = periodic ? size : call_clamp_max(c, dim_sub(c->b.g->dims, size, call_k(c, 1)), call_k(c, 1));
    const ir_value_id n = build_typed(&c->b, build_iota(&c->b, size), f64),
                      whole = build_typed(&c->b, build_sizes(&c->b, &span, 1, true), f64);
    const ir_value_id turn = build_scalar(&c->b, f64, 2 * 3.14159265358979323846);
    const ir_value_id angle = build_mul(&c->b, build_div(&c->b, n, whole), turn);
    ir_value_id y = build_scalar(&c->b, f64, w[1]);
    y = build_mul(&c->b, build_cos(&c->b, angle), y);
    y = build_sub(&c->b, build_scalar(&c->b, f64, w[0]), y);
    if (w[2] != 0) {
        const ir_value_id twice = build_cos(&c->b, build_mul(&c->b, angle, build_scalar(&c->b, f64, 2)));
        y = build_add(&c->b, y, build_mul(&c->b, twice, build_scalar(&c->b, f64, w[2])));
    }
    c->out[0] = build_typed(&c->b, y, type);
}

/* The weights as the run computes them. Bin i rises from edge i to edge i + 1 and falls to edge i + 2. */
static void mel_weights_late(onnx_call *c, sinter_dtype type)
{
    ir_builder *b = &c->b;
    const sinter_dtype f64 = SINTER_DTYPE_F64;
    dim size[2] = { 0 };
    ir_value_id p[5], mel[2];
    uint32_t count = 0;
    if (!call_sizes(c, call_in(c, 0), "the number of mel bins", DIM_NONE, &size[0], 1, &count) ||
        !call_sizes(c, call_in(c, 1), "the length of the transform", DIM_NONE, &size[1], 1, &count))
        return;
    for (uint32_t i = 0; i < 5; i++) p[i] = build_typed(b, build_shaped(b, call_in(c, i), NULL, 0), f64);
    const ir_value_id hertz = build_scalar(b, f64, 700), slope = build_scalar(b, f64, 2595),
                      one = build_scalar(b, f64, 1), zero = build_scalar(b, f64, 0), ten = build_scalar(b, f64, 10),
                      log_ten = build_scalar(b, f64, log(10));
    for (uint32_t i = 0; i < 2; i++) {
        const ir_value_id of = build_log(b, build_add(b, one, build_div(b, p[3 + i], hertz)));
        mel[i] = build_mul(b, slope, build_div(b, of, log_ten));
    }
    dim_table *t = c->b.g->dims;
    const dim bins = size[0], edges = dim_add(t, bins, call_k(c, 2)),
              rows = dim_add(t, dim_floordiv(t, size[1], call_k(c, 2)), call_k(c, 1));
    const ir_value_id number = build_typed(b, build_iota(b, edges), f64),
                      parts = build_add(b, p[0], build_scalar(b, f64, 2)),
                      step = build_div(b, build_sub(b, mel[1], mel[0]), parts),
                      at = build_div(b, build_add(b, build_mul(b, number, step), mel[0]), slope),
                      pitch = build_mul(b, hertz, build_sub(b, build_pow(b, ten, at), one)),
                      place = build_div(b, build_mul(b, build_add(b, p[1], one), pitch), p[2]),
                      height = build_typed(b, build_sizes(b, &rows, 1, true), f64),
                      edge = build_max(b, build_min(b, build_floor(b, place), height), zero);
    ir_value_id bound[3];
    for (uint32_t i = 0; i < 3; i++) bound[i] = build_part(b, edge, 0, call_k(c, i), 1, bins);
    const ir_value_id row = build_unsqueezed(b, build_typed(b, build_iota(b, rows), f64), 1),
                      rise = build_sub(b, bound[1], bound[0]), fall = build_sub(b, bound[2], bound[1]),
                      up = build_div(b, build_sub(b, row, bound[0]), rise),
                      down = build_div(b, build_sub(b, bound[2], row), fall), is_before = build_lt(b, row, bound[1]),
                      is_begun = build_ge(b, row, bound[0]), is_after = build_ge(b, row, bound[1]),
                      rises = build_and(b, is_begun, is_before),
                      falls = build_and(b, is_after, build_lt(b, row, bound[2])),
                      is_centre = build_eq(b, row, bound[1]);
    ir_value_id y = build_where(b, falls, down, zero);
    y = build_where(b, rises, up, y);
    c->out[0] = build_typed(b, build_where(b, is_centre, one, y), type);
}

void convert_mel_weights(onnx_call *c)
{
    static const char *const names[5] = { "the number of mel bins", "the length of the transform", "the sample rate",
                                          "the lower edge", "the upper edge" };
    double p[5];
    uint32_t count = 0;
    bool is_late = false;
    const sinter_dtype type = call_dtype(c, call_int(c, "output_datatype", 1));
    for (uint32_t i = 0; i < 5; i++) {
        if (!call_in(c, i)) REJECT(c, INVALID_MODEL, "%s is missing", names[i]);
        is_late = is_late || (call_in(c, i) && !ir_is_const(c->b.g, call_in(c, i)));
    }
    if (c->b.status) return;
    if (is_late) {
        mel_weights_late(c, type);
        return;
    }
    for (uint32_t i = 0; i < 5; i++)
        if (!call_const_reals(c, call_in(c, i), names[i], &p[i], 1, &count) || count != 1)
            REJECT(c, INVALID_MODEL, "%s is not one number", names[i]);
    if (c->b.status) return;
    if (!(p[0] >= 1 && p[0] <= 1 << 16 && p[1] >= 1 && p[1] <= 1 << 20 && p[2] >= 1 && p[3] >= 0 && p[4] >= p[3])) {
        REJECT(c, INVALID_MODEL, "%g mel bins of %g points at %g", p[0], p[1], p[2]);
        return;
    }
    const int64_t bins = (int64_t)p[0], rows = (int64_t)p[1] / 2 + 1;
    const int64_t d[2] = { rows, bins };
    view v;
    if (!view_init(&v, type, 2, d, NULL)) return;
    const sinter_tensor shape = { .dtype = type, .rank = 2, .dim = { rows, bins } };
    v.data = ir_blob(c->b.g, sinter_tensor_size(&shape));
    int64_t *edge = ARENA_NEW(&c->b.g->a, int64_t, (size_t)bins + 2);
    if (!v.data || !edge) {
        c->b.status = FAIL_MEMORY(c->e, "mel weights");
        return;
    }
    const double low = 2595 * log10(1 + p[3] / 700), high = 2595 * log10(1 + p[4] / 700),
                 step = (high - low) / (double)(bins + 2);
    for (int64_t i = 0; i < bins + 2; i++) {
        const double hertz = 700 * (pow(10, ((double)i * step + low) / 2595) - 1);
        const double at = floor((p[1] + 1) * hertz / p[2]);
        edge[i] = at < 0 ? 0 : at > (double)rows ? rows : (int64_t)at;
    }
    for (int64_t i = 0; i < bins; i++) {
        const int64_t from = edge[i], centre = edge[i + 1], to = edge[i + 2];
        if (centre == from && centre < rows) dtype_store_f64(type, v.data, centre * bins + i, 1);
        for (int64_t j = from; j <= centre && j < rows && centre > from; j++)
            dtype_store_f64(type, v.data, j * bins + i, (double)(j - from) / (double)(centre - from));
        for (int64_t j = centre; j < to && j < rows; j++)
            dtype_store_f64(type, v.data, j * bins + i, (double)(to - j) / (double)(to - centre));
    }
    c->out[0] = build_const(&c->b, NULL, &v);
}

/* ---- losses: scores [N, C, …] are logarithms of probabilities, targets [N, …] ---- */
static ir_value_id loss_of(onnx_call *c, ir_value_id scores, ir_value_id target, ir_value_id weight)
{
    const char *how = call_text(c, "reduction", "mean");
    const bool mean = strcmp(how, "mean") == 0, none = strcmp(how, "none") == 0;
    const sinter_dtype type = call_type(c, scores), index = call_type(c, target);
    int64_t axes[SINTER_RANK_MAX];
    if (!mean && !none && strcmp(how, "sum") != 0) REJECT(c, INVALID_MODEL, "attribute reduction is '%s'", how);
    if (call_rank(c, scores) < 2 || call_rank(c, target) + 1 != call_rank(c, scores))
        REJECT(c, INVALID_MODEL, "scores of rank %u and targets of rank %u", call_rank(c, scores),
               call_rank(c, target));
    if (c->b.status) return 0;
    ir_value_id keep = 0;
    if (call_attr(c, "ignore_index")) {
        keep =
            build_not(&c->b, build_eq(&c->b, target, build_scalar_i64(&c->b, index, call_int(c, "ignore_index", 0))));
        target = build_where(&c->b, keep, target, build_scalar_i64(&c->b, index, 0));
    }
    attrs_gather_elements *a = DEFAULTS(gather_elements);
    a->axis = 1;
    const ir_value_id picked = build_gather_elements(&c->b, scores, build_unsqueezed(&c->b, target, 1), a);
    ir_value_id loss = build_neg(&c->b, build_squeezed(&c->b, picked, 1)), share = 0;
    if (weight) share = build_gather(&c->b, weight, target, NULL);
    if (share) loss = build_mul(&c->b, loss, share);
    if (keep) {
        loss = build_where(&c->b, keep, loss, build_scalar(&c->b, type, 0));
        share = share ? build_where(&c->b, keep, share, build_scalar(&c->b, type, 0)) : build_typed(&c->b, keep, type);
    }
    if (none) return loss;
    const uint32_t rank = call_rank(c, loss);
    for (uint32_t i = 0; i < rank; i++) axes[i] = i;
    if (mean && !share) return build_reduced(&c->b, reduce_kind_mean, loss, axes, rank, false);
    const ir_value_id sum = build_reduced(&c->b, reduce_kind_sum, loss, axes, rank, false);
    return mean ? build_div(&c->b, sum, build_reduced(&c->b, reduce_kind_sum, share, axes, rank, false)) : sum;
}

void convert_nll_loss(onnx_call *c)
{
    c->out[0] = loss_of(c, call_in(c, 0), call_in(c, 1), call_in(c, 2));
}

void convert_softmax_loss(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    if (call_rank(c, x) < 2) REJECT(c, INVALID_MODEL, "scores of rank %u", call_rank(c, x));
    const ir_value_id logs = build_log_softmax(&c->b, x, &(attrs_log_softmax){ .axis = 1 });
    c->out[0] = loss_of(c, logs, call_in(c, 1), call_in(c, 2));
    if (c->count_out > 1) c->out[1] = logs;
}
