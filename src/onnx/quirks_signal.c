/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_signal.c - Fourier transforms, windows, mel weights, and the two classification losses. */
#include "onnx/quirks.h"
#include <math.h>
#include <string.h>

static ir_value_id dft(onnx_call *c, ir_value_id x, int64_t axis, bool inverse, bool onesided, dim length)
{
    attrs_dft *a = DEFAULTS(dft);
    a->axis = axis;
    a->inverse = inverse;
    a->onesided = onesided;
    if (length != DIM_NONE) a->length = build_dims(&c->b, &length, 1);
    return build_dft(&c->b, x, a);
}

void convert_dft(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    dim length = DIM_NONE;
    uint32_t count = 0;
    int64_t axis = call_int(c, "axis", 1);
    if (c->version >= 20) {
        axis = -2;
        if (call_in(c, 2) && (!call_const_ints(c, call_in(c, 2), "the axis", &axis, 1, &count) || count != 1))
            REJECT(c, INVALID_MODEL, "no axis");
    }
    axis = call_axis(c, axis, call_rank(c, x));
    if (call_in(c, 1) && (!call_sizes(c, call_in(c, 1), "the length", DIM_NONE, &length, 1, &count) || count != 1))
        REJECT(c, INVALID_MODEL, "the length is not one number");
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
    int64_t step = 0;
    uint32_t count = 0;
    dim length = DIM_NONE;
    if (!call_in(c, 1) || !call_const_ints(c, call_in(c, 1), "the step", &step, 1, &count) || step < 1)
        REJECT(c, INVALID_MODEL, "the step is not positive");
    if (call_in(c, 3)) call_sizes(c, call_in(c, 3), "the length of a frame", DIM_NONE, &length, 1, &count);
    else if (window) length = call_dim(c, window, 0);
    else REJECT(c, INVALID_MODEL, "neither a window nor the length of a frame");
    if (c->b.status) return;
    if (call_rank(c, x) == 2) x = build_unsqueezed(&c->b, x, 2);
    if (call_rank(c, x) != 3) REJECT(c, INVALID_MODEL, "a signal of rank %u", call_rank(c, x));
    const dim frames =
        dim_add(t, dim_floordiv(t, dim_sub(t, call_dim(c, x, 1), length), call_k(c, step)), call_k(c, 1));
    const ir_value_id pace = build_scalar_i64(&c->b, SINTER_DTYPE_I64, step);
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

void convert_mel_weights(onnx_call *c)
{
    static const char *const names[5] = { "the number of mel bins", "the length of the transform", "the sample rate",
                                          "the lower edge", "the upper edge" };
    double p[5];
    uint32_t count = 0;
    const sinter_dtype type = call_dtype(c, call_int(c, "output_datatype", 1));
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
