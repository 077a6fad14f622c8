/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_window.c - convolutions and pools: lists filled in, auto_pad resolved, bias and global forms spelled out.
 *
 * SAME padding with a stride depends on the input's size. Where that is an expression, an explicit pad goes before. */
#include "onnx/quirks.h"
#include <math.h>
#include <string.h>

enum { SPATIAL = SINTER_RANK_MAX - 2, WINDOW_MAX = 1 << 24 };

static bool list_of(onnx_call *c, const char *name, uint32_t count, int64_t initial, int64_t min, attr_ints *out)
{
    const bool given = call_ints(c, name, out) && out->count;
    if (!given) {
        out->count = count;
        for (uint32_t i = 0; i < count && i < ATTR_INTS_MAX; i++) out->at[i] = initial;
    }
    if (out->count != count)
        REJECT(c, INVALID_MODEL, "attribute %s has %u values, %u are wanted", name, out->count, count);
    for (uint32_t i = 0; i < out->count; i++)
        if (out->at[i] < min || out->at[i] > WINDOW_MAX)
            REJECT(c, INVALID_MODEL, "attribute %s has the value %lld", name, (long long)out->at[i]);
    return given;
}

/* Fills stride, dilation and pad for an input [N, C, …]; `x` becomes a padded input where pads are expressions. */
static void quirk_window(onnx_call *c, ir_value_id *x, uint32_t spatial, quirk_window_attrs *w, ir_value_id pad_value)
{
    dim_table *t = c->b.g->dims;
    list_of(c, "strides", spatial, 1, 1, &w->stride);
    list_of(c, "dilations", spatial, 1, 1, &w->dilation);
    const char *mode = call_text(c, "auto_pad", "NOTSET");
    const bool lower = strcmp(mode, "SAME_LOWER") == 0, same = lower || strcmp(mode, "SAME_UPPER") == 0;
    if (!same && strcmp(mode, "NOTSET") != 0 && strcmp(mode, "VALID") != 0)
        REJECT(c, INVALID_MODEL, "attribute auto_pad is '%s'", mode);
    if (strcmp(mode, "NOTSET") == 0) {
        list_of(c, "pads", 2 * spatial, 0, -WINDOW_MAX, &w->pad);
        return;
    }
    w->pad.count = 2 * spatial;
    memset(w->pad.at, 0, sizeof w->pad.at);
    if (!same) return;
    dim begin[SINTER_RANK_MAX], end[SINTER_RANK_MAX];
    bool is_known = true;
    for (uint32_t i = 0; i < 2; i++) begin[i] = end[i] = call_k(c, 0);
    for (uint32_t i = 0; i < spatial && !c->b.status; i++) {
        const dim d = call_dim(c, *x, i + 2), s = call_k(c, w->stride.at[i]);
        const int64_t reach = (w->kernel.at[i] - 1) * w->dilation.at[i] + 1;
        const dim covered = dim_add(t, dim_mul(t, dim_sub(t, dim_ceildiv(t, d, s), call_k(c, 1)), s), call_k(c, reach));
        const dim total = call_clamp_max(c, dim_sub(t, covered, d), call_k(c, 0));
        const dim small = dim_floordiv(t, total, call_k(c, 2)), large = dim_sub(t, total, small);
        begin[i + 2] = lower ? large : small;
        end[i + 2] = lower ? small : large;
        is_known = is_known && dim_is_const(t, begin[i + 2], &w->pad.at[i]) &&
                   dim_is_const(t, end[i + 2], &w->pad.at[spatial + i]);
    }
    if (is_known || c->b.status) return;
    memset(w->pad.at, 0, sizeof w->pad.at);
    if (!pad_value)
        REJECT(c, UNSUPPORTED, "auto_pad %s on a size that is not known, where padding is not counted", mode);
    *x = build_padded(&c->b, *x, pad_mode_constant, begin, end, pad_value);
}

/* The number of spatial axes and the kernel's size, from the attribute or from the weights' dims from `first` on. */
static uint32_t kernel_of(onnx_call *c, ir_value_id x, ir_value_id w, quirk_window_attrs *out)
{
    *out = (quirk_window_attrs){ 0 };
    const uint32_t rank = call_rank(c, x);
    if (!x || rank < 3 || rank > SINTER_RANK_MAX) {
        REJECT(c, INVALID_MODEL, "an input of rank %u", rank);
        return 1;
    }
    const bool given = call_ints(c, "kernel_shape", &out->kernel) && out->kernel.count;
    if (!given && w) {
        out->kernel.count = call_rank(c, w) >= 2 ? call_rank(c, w) - 2 : 0;
        for (uint32_t i = 0; i < out->kernel.count; i++)
            if (!call_size(c, w, i + 2, &out->kernel.at[i]))
                REJECT(c, UNSUPPORTED, "the size of the kernel is not known");
    }
    if (out->kernel.count != rank - 2)
        REJECT(c, INVALID_MODEL, "a kernel of rank %u for an input of rank %u", out->kernel.count, rank);
    for (uint32_t i = 0; i < out->kernel.count; i++)
        if (out->kernel.at[i] < 0 || out->kernel.at[i] > WINDOW_MAX || (!w && out->kernel.at[i] < 1))
            REJECT(c, INVALID_MODEL, "a kernel of size %lld", (long long)out->kernel.at[i]);
    return rank - 2;
}

static int64_t groups_of(onnx_call *c, const char *name)
{
    const int64_t groups = call_int(c, name, 1);
    if (groups < 1) REJECT(c, INVALID_MODEL, "attribute %s is %lld", name, (long long)groups);
    return groups < 1 ? 1 : groups;
}

ir_value_id quirk_bias(onnx_call *c, ir_value_id y, ir_value_id bias)
{
    return bias ? build_add(&c->b, y, build_along(&c->b, bias, 1, call_rank(c, y))) : y;
}

ir_value_id quirk_conv(onnx_call *c, ir_value_id x, ir_value_id w)
{
    quirk_window_attrs k;
    const uint32_t spatial = kernel_of(c, x, w, &k);
    quirk_window(c, &x, spatial, &k, x ? build_scalar_like(&c->b, x, 0) : 0);
    attrs_conv *a = DEFAULTS(conv);
    a->stride = k.stride;
    a->dilation = k.dilation;
    a->pad = k.pad;
    a->groups = groups_of(c, "group");
    return build_conv(&c->b, x, w, a);
}

void convert_conv(onnx_call *c)
{
    c->out[0] = quirk_bias(c, quirk_conv(c, call_in(c, 0), call_in(c, 1)), call_in(c, 2));
}

ir_value_id quirk_conv_integer(onnx_call *c, ir_value_id x, ir_value_id w, ir_value_id x_zero, ir_value_id w_zero)
{
    quirk_window_attrs k;
    const uint32_t spatial = kernel_of(c, x, w, &k);
    if (x_zero && call_rank(c, x_zero)) x_zero = build_shaped(&c->b, x_zero, NULL, 0);
    quirk_window(c, &x, spatial, &k, x_zero ? x_zero : x ? build_scalar_like(&c->b, x, 0) : 0);
    attrs_conv_integer *a = DEFAULTS(conv_integer);
    a->stride = k.stride;
    a->dilation = k.dilation;
    a->pad = k.pad;
    a->groups = groups_of(c, "group");
    return build_conv_integer(&c->b, x, w, x_zero, w_zero, a);
}

/* [B, T, C] as [B, C, T], and back. */
static ir_value_id turned(onnx_call *c, ir_value_id x, bool is_last)
{
    return is_last && x ? build_permuted(&c->b, x, (const int64_t[]){ 0, 2, 1 }, 3) : x;
}

/* A depthwise convolution along time that only looks back; what it looks back on comes in and goes out.
 * arg 1: com.microsoft's, which spaces its taps, and has channels last. */
void convert_causal_conv(onnx_call *c)
{
    static const char *const refused[] = { "state_length", "input_channel_offset", "input_channels",
                                           "state_update_capacity" };
    dim_table *t = c->b.g->dims;
    const ir_value_id w = call_in(c, 1);
    ir_value_id x = call_in(c, 0), past = call_in(c, 3);
    const char *what = call_text(c, "activation", "none");
    const bool silu = strcmp(what, "silu") == 0 || strcmp(what, "swish") == 0;
    const bool is_last = c->arg && call_int(c, "channels_last", 0) != 0;
    const int64_t dilation = c->arg ? call_int(c, "dilation", 1) : 1,
                  of_state = c->arg ? call_int(c, "state_channels_last", -1) : -1;
    const bool is_state_last = of_state < 0 ? is_last : of_state != 0;
    dim d[SINTER_RANK_MAX];
    int64_t k = 0, channels = 0;
    if (!silu && strcmp(what, "none") != 0) REJECT(c, UNSUPPORTED, "attribute activation is '%s'", what);
    if (c->arg && (call_int(c, "ndim", 1) != 1 || call_int(c, "state_window", 0) != 0))
        REJECT(c, UNSUPPORTED, "attribute ndim is not 1, or state_window is not 0");
    for (uint32_t i = 0; i < COUNT_OF(refused); i++)
        if (c->arg && call_int(c, refused[i], 0)) REJECT(c, UNSUPPORTED, "attribute %s", refused[i]);
    if (dilation < 1 || dilation > WINDOW_MAX)
        REJECT(c, INVALID_MODEL, "attribute dilation is %lld", (long long)dilation);
    if (!x || !w || call_shape(c, x, d) != 3 || call_rank(c, w) != 3 || (past && call_rank(c, past) != 3))
        REJECT(c, INVALID_MODEL, "input, weight and past_state are not all of rank 3");
    if (!c->b.status &&
        (!call_size(c, w, 2, &k) || !call_size(c, w, 0, &channels) || k < 1 || k > WINDOW_MAX || channels < 1))
        REJECT(c, UNSUPPORTED, "the size of the kernel is not known");
    if (c->b.status) return;
    x = turned(c, x, is_last);
    past = turned(c, past, is_state_last);
    const dim zero = call_k(c, 0), back = call_k(c, (k - 1) * dilation), begin[3] = { zero, zero, back },
              end[3] = { zero, zero, zero };
    const ir_value_id padded =
        past ? build_concat(&c->b, (ir_value_id[]){ past, x }, 2, &(attrs_concat){ .axis = 2 })
             : build_padded(&c->b, x, pad_mode_constant, begin, end, build_scalar_like(&c->b, x, 0));
    attrs_conv *a = DEFAULTS(conv);
    a->stride = (attr_ints){ .count = 1, .at = { 1 } };
    a->dilation = (attr_ints){ .count = 1, .at = { dilation } };
    a->pad.count = 2;
    a->groups = channels;
    const ir_value_id y = quirk_bias(c, build_conv(&c->b, padded, w, a), call_in(c, 2));
    c->out[0] = turned(c, silu ? build_silu(&c->b, y) : y, is_last);
    if (c->count_out < 2) return;
    const ir_value_id state = build_part(&c->b, padded, 2, dim_sub(t, call_dim(c, padded, 2), back), 1, back);
    c->out[1] = turned(c, state, is_state_last);
}

void convert_conv_integer(onnx_call *c)
{
    c->out[0] = quirk_conv_integer(c, call_in(c, 0), call_in(c, 1), call_in(c, 2), call_in(c, 3));
}

/* Cuts pads that the run knows off the result; negative ones widen it. */
static ir_value_id cut_late(onnx_call *c, ir_value_id y, const dim *pad, uint32_t n)
{
    dim_table *t = c->b.g->dims;
    dim begin[SINTER_RANK_MAX], end[SINTER_RANK_MAX];
    const dim zero = call_k(c, 0);
    for (uint32_t i = 0; i < n + 2; i++) {
        begin[i] = i < 2 ? zero : dim_sub(t, zero, pad[i - 2]);
        end[i] = i < 2 ? zero : dim_sub(t, zero, pad[n + i - 2]);
    }
    return build_padded(&c->b, y, pad_mode_constant, begin, end, 0);
}

void convert_conv_transpose(onnx_call *c) /* arg 1: com.microsoft's, whose pads are an input */
{
    dim late[ATTR_INTS_MAX];
    bool is_late = false;
    quirk_window_attrs k;
    attr_ints out_pad, size;
    ir_value_id x = call_in(c, 0);
    const ir_value_id w = call_in(c, 1);
    const uint32_t n = kernel_of(c, x, w, &k);
    list_of(c, "strides", n, 1, 1, &k.stride);
    list_of(c, "dilations", n, 1, 1, &k.dilation);
    list_of(c, "output_padding", n, 0, 0, &out_pad);
    if (c->arg && call_in(c, 2)) {
        (void)call_numbers(c, call_of_length(c, call_in(c, 2), 2 * n), "the pads", late, ATTR_INTS_MAX, &k.pad.count);
        if (k.pad.count != 2 * n) REJECT(c, INVALID_MODEL, "%u pads, %u are wanted", k.pad.count, 2 * n);
        for (uint32_t i = 0; i < k.pad.count && !c->b.status; i++)
            is_late = !dim_is_const(c->b.g->dims, late[i], &k.pad.at[i]) || is_late;
        if (is_late) memset(k.pad.at, 0, sizeof k.pad.at);
        for (uint32_t i = 0; i < k.pad.count && !c->b.status; i++)
            if (k.pad.at[i] < -WINDOW_MAX || k.pad.at[i] > WINDOW_MAX)
                REJECT(c, INVALID_MODEL, "a pad of %lld", (long long)k.pad.at[i]);
    } else {
        list_of(c, "pads", 2 * n, 0, -WINDOW_MAX, &k.pad);
    }
    const char *mode = call_text(c, "auto_pad", "NOTSET");
    const bool upper = strcmp(mode, "SAME_UPPER") == 0, same = upper || strcmp(mode, "SAME_LOWER") == 0;
    const bool sized = call_ints(c, "output_shape", &size) && size.count;
    is_late = is_late && !same && !sized && strcmp(mode, "VALID") != 0;
    if (strcmp(mode, "VALID") == 0) memset(k.pad.at, 0, sizeof k.pad.at);
    if (sized && size.count == n + 2) { /* some files give batch and channels too */
        memmove(size.at, size.at + 2, n * sizeof size.at[0]);
        size.count = n;
    }
    if (sized && size.count != n)
        REJECT(c, INVALID_MODEL, "attribute output_shape has %u values, %u are wanted", size.count, n);
    for (uint32_t i = 0; i < n && (same || sized) && !c->b.status; i++) {
        int64_t total = (k.kernel.at[i] - 1) * k.dilation.at[i] + 1 - k.stride.at[i] + out_pad.at[i], d = 0;
        if (sized) {
            if (!call_size(c, x, i + 2, &d) || d > INT32_MAX || size.at[i] < 0 || size.at[i] > INT32_MAX) {
                REJECT(c, UNSUPPORTED, "output_shape on an input whose size is not known, or huge");
                return;
            }
            total += d * k.stride.at[i] - size.at[i];
        }
        if (total < 0) {
            out_pad.at[i] -= total;
            total = 0;
        }
        const int64_t half = total / 2;
        k.pad.at[i] = upper ? half : total - half;
        k.pad.at[n + i] = upper ? total - half : half;
    }
    attrs_conv_transpose *a = DEFAULTS(conv_transpose);
    a->stride = k.stride;
    a->dilation = k.dilation;
    a->pad = k.pad;
    a->out_pad = out_pad;
    a->groups = groups_of(c, "group");
    ir_value_id y = build_conv_transpose(&c->b, x, w, a);
    if (is_late && !c->b.status) y = cut_late(c, y, late, n);
    c->out[0] = quirk_bias(c, y, call_in(c, c->arg ? 3 : 2));
}

void convert_deform_conv(onnx_call *c)
{
    quirk_window_attrs k;
    const ir_value_id x = call_in(c, 0), w = call_in(c, 1), bias = call_in(c, 3), mask = call_in(c, 4);
    const uint32_t n = kernel_of(c, x, w, &k);
    list_of(c, "strides", n, 1, 1, &k.stride);
    list_of(c, "dilations", n, 1, 1, &k.dilation);
    list_of(c, "pads", 2 * n, 0, 0, &k.pad);
    attrs_deform_conv *a = DEFAULTS(deform_conv);
    a->stride = k.stride;
    a->dilation = k.dilation;
    a->pad = k.pad;
    a->groups = groups_of(c, "group");
    a->offset_groups = groups_of(c, "offset_group");
    c->out[0] = build_deform_conv(&c->b, x, w, call_in(c, 2), bias, mask, a);
}

/* ModulatedDeformConv2d as TensorRT ships it, and as MMDeploy writes it (arg 1). */
void convert_deform_conv_plugin(onnx_call *c)
{
    quirk_window_attrs k;
    attr_ints half;
    const ir_value_id x = call_in(c, 0), offset = call_in(c, 1), mask = call_in(c, 2), w = call_in(c, 3);
    if (!x || !offset || !mask || !w) REJECT(c, INVALID_MODEL, "an input is missing");
    if (c->b.status) return;
    const uint32_t n = kernel_of(c, x, w, &k);
    attrs_deform_conv *a = DEFAULTS(deform_conv);
    list_of(c, "stride", n, 1, 1, &a->stride);
    list_of(c, "dilation", n, 1, 1, &a->dilation);
    list_of(c, "padding", n, 0, 0, &half);
    if (c->b.status) return;
    a->pad.count = 2 * n;
    for (uint32_t i = 0; i < n; i++) a->pad.at[i] = a->pad.at[n + i] = half.at[i];
    a->groups = groups_of(c, c->arg ? "groups" : "group");
    a->offset_groups = groups_of(c, c->arg ? "deform_groups" : "deformable_group");
    c->out[0] = build_deform_conv(&c->b, x, w, offset, call_in(c, 4), mask, a);
}

/* ---- pools ---- */
static ir_value_id lowest(onnx_call *c, ir_value_id x)
{
    const sinter_dtype type = call_type(c, x);
    int64_t min = 0, max = 0;
    if (dtype_is_float(type)) return build_scalar(&c->b, type, -(double)INFINITY);
    dtype_int_range(type, &min, &max);
    return build_scalar_i64(&c->b, type, min);
}

/* From [N, …, C] to [N, C, …], or back. */
static ir_value_id channels_moved(onnx_call *c, ir_value_id x, bool to_last)
{
    int64_t perm[SINTER_RANK_MAX] = { 0 };
    const uint32_t rank = call_rank(c, x);
    if (!x || c->b.status) return 0;
    if (rank < 3) REJECT(c, INVALID_MODEL, "an input of rank %u with the channels last", rank);
    for (uint32_t i = 1; i < rank; i++) perm[i] = to_last ? (i + 1 < rank ? i + 1 : 1) : (i == 1 ? rank - 1 : i - 1);
    return build_permuted(&c->b, x, perm, rank);
}

/* com.microsoft's NhwcConv, NhwcFusedConv and NhwcMaxPool: the operator of arg between two transposes. */
static void channels_last(onnx_call *c, void (*convert)(onnx_call *c), uint32_t more, bool has_filter)
{
    enum { INPUTS = 9 };
    const ir_value_id *given = c->in;
    ir_value_id in[INPUTS] = { 0 };
    const uint32_t count = c->count_in;
    if (!call_in(c, 0)) REJECT(c, INVALID_MODEL, "input 0 is missing");
    for (uint32_t i = 0; i < count && i < INPUTS; i++)
        in[i] = i == 0 || i == more ? channels_moved(c, c->in[i], false) : c->in[i];
    if (has_filter) in[1] = channels_moved(c, in[1], false);
    if (c->b.status) return;
    c->in = in;
    c->count_in = count < INPUTS ? count : INPUTS;
    convert(c);
    c->in = given;
    c->count_in = count;
    c->out[0] = channels_moved(c, c->out[0], true);
}

/* Is a filter [M, kernel…, C / groups]? ONNX Runtime's text says [M, C / groups, kernel…]; its kernel for GPUs and the
 * optimiser that makes NhwcConv have the channels last. Where both fit, it is as the kernel has it. */
static bool is_filter_channels_last(onnx_call *c, ir_value_id x, ir_value_id w)
{
    const uint32_t rank = call_rank(c, w);
    int64_t channels = 0, size = 0;
    attr_ints kernel;
    if (rank < 3 || rank != call_rank(c, x) || !call_size(c, w, rank - 1, &size)) return false;
    if (!call_size(c, x, rank - 1, &channels) || channels != size * groups_of(c, "group")) return false;
    if (!call_ints(c, "kernel_shape", &kernel)) return true;
    for (uint32_t i = 0; i < kernel.count && i < rank - 2; i++)
        if (!call_size(c, w, i + 1, &size) || size != kernel.at[i]) return false;
    return true;
}

/* com.microsoft's operators of codes: the attribute says where the channels are. */
static void channels_as_told(onnx_call *c, void (*convert)(onnx_call *c))
{
    if (call_int(c, "channels_last", 0)) channels_last(c, convert, 0, false);
    else convert(c);
}

void convert_qlinear_conv_told(onnx_call *c)
{
    channels_as_told(c, convert_qlinear_conv);
}

void convert_qlinear_pool(onnx_call *c)
{
    channels_as_told(c, quirk_qlinear_pool);
}

void convert_nhwc_conv(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0), w = call_in(c, 1);
    channels_last(c, convert_fused_conv, 3, c->arg && x && w && is_filter_channels_last(c, x, w));
}

void convert_nhwc_max_pool(onnx_call *c)
{
    channels_last(c, convert_max_pool, 0, false);
}

void convert_max_pool(onnx_call *c)
{
    quirk_window_attrs k;
    ir_value_id x = call_in(c, 0);
    const uint32_t n = kernel_of(c, x, 0, &k);
    if (c->b.status) return;
    quirk_window(c, &x, n, &k, call_wants(c, 1) ? 0 : lowest(c, x));
    attrs_max_pool *a = DEFAULTS(max_pool);
    a->kernel = k.kernel;
    a->stride = k.stride;
    a->dilation = k.dilation;
    a->pad = k.pad;
    a->ceil = call_int(c, "ceil_mode", 0) != 0;
    a->column_major = call_int(c, "storage_order", 0) != 0;
    const ir_node_id node = build_max_pool(&c->b, x, a, call_wants(c, 1) ? 2 : 1);
    c->out[0] = build_result(&c->b, node, 0);
    if (call_wants(c, 1)) c->out[1] = build_result(&c->b, node, 1);
}

ir_value_id quirk_avg_pool(onnx_call *c, ir_value_id x)
{
    quirk_window_attrs k;
    const uint32_t n = kernel_of(c, x, 0, &k);
    if (c->b.status) return 0;
    const bool count_pad = call_int(c, "count_include_pad", 0) != 0;
    quirk_window(c, &x, n, &k, count_pad ? build_scalar_like(&c->b, x, 0) : 0);
    attrs_avg_pool *a = DEFAULTS(avg_pool);
    a->kernel = k.kernel;
    a->stride = k.stride;
    a->dilation = k.dilation;
    a->pad = k.pad;
    a->ceil = call_int(c, "ceil_mode", 0) != 0;
    a->count_pad = count_pad;
    return build_avg_pool(&c->b, x, a);
}

void convert_avg_pool(onnx_call *c)
{
    c->out[0] = quirk_avg_pool(c, call_in(c, 0));
}

void convert_lp_pool(onnx_call *c)
{
    quirk_window_attrs k;
    ir_value_id x = call_in(c, 0);
    const uint32_t n = kernel_of(c, x, 0, &k);
    if (c->b.status) return;
    quirk_window(c, &x, n, &k, build_scalar_like(&c->b, x, 0));
    attrs_lp_pool *a = DEFAULTS(lp_pool);
    a->kernel = k.kernel;
    a->stride = k.stride;
    a->dilation = k.dilation;
    a->pad = k.pad;
    a->ceil = call_int(c, "ceil_mode", 0) != 0;
    const double p = c->version < 2 ? call_real(c, "p", 2) : (double)call_int(c, "p", 2);
    if (p != floor(p) || p < 1 || p > INT32_MAX) REJECT(c, UNSUPPORTED, "attribute p is %g, not a whole number", p);
    a->p = c->b.status ? 2 : (int64_t)p;
    c->out[0] = build_lp_pool(&c->b, x, a);
}

void convert_max_unpool(onnx_call *c)
{
    dim_table *t = c->b.g->dims;
    quirk_window_attrs k;
    const ir_value_id x = call_in(c, 0);
    const uint32_t n = kernel_of(c, x, 0, &k);
    dim d[SINTER_RANK_MAX], want[SINTER_RANK_MAX];
    if (c->b.status) return;
    list_of(c, "strides", n, 1, 1, &k.stride);
    list_of(c, "pads", 2 * n, 0, 0, &k.pad);
    const uint32_t rank = call_shape(c, x, d);
    dim inner[SINTER_RANK_MAX];
    memcpy(inner, d, sizeof inner);
    for (uint32_t i = 0; i < n; i++) {
        const dim span = dim_mul(t, dim_sub(t, d[i + 2], call_k(c, 1)), call_k(c, k.stride.at[i]));
        inner[i + 2] = dim_add(t, span, call_k(c, k.kernel.at[i] - k.pad.at[i] - k.pad.at[n + i]));
    }
    attrs_max_unpool *a = DEFAULTS(max_unpool);
    uint32_t count = 0;
    memcpy(want, inner, sizeof want);
    if (call_in(c, 2)) {
        call_sizes(c, call_in(c, 2), "the output shape", DIM_NONE, want, SINTER_RANK_MAX, &count);
        if (count != rank) REJECT(c, INVALID_MODEL, "an output shape of %u sizes for rank %u", count, rank);
    }
    /* The indices count in the shape that the window implies; a shape asked for adds zeros behind it, or cuts. */
    a->shape = build_dims(&c->b, inner, rank);
    c->out[0] = build_max_unpool(&c->b, x, call_in(c, 1), a);
    dim begin[SINTER_RANK_MAX], end[SINTER_RANK_MAX];
    bool is_same = true;
    for (uint32_t i = 0; i < rank; i++) {
        begin[i] = call_k(c, 0);
        end[i] = dim_sub(t, want[i], inner[i]);
        is_same = is_same && want[i] == inner[i];
    }
    if (!is_same)
        c->out[0] = build_padded(&c->b, c->out[0], pad_mode_constant, begin, end, build_scalar_like(&c->b, x, 0));
}

static uint32_t spatial_axes(onnx_call *c, ir_value_id x, int64_t *axes)
{
    const uint32_t rank = call_rank(c, x);
    if (!x || rank < 2) REJECT(c, INVALID_MODEL, "an input of rank %u", rank);
    uint32_t count = 0;
    for (uint32_t i = 2; i < rank; i++) axes[count++] = i;
    return count;
}

void convert_global_pool(onnx_call *c) /* arg: reduce_kind */
{
    int64_t axes[SINTER_RANK_MAX];
    const uint32_t count = spatial_axes(c, call_in(c, 0), axes);
    c->out[0] = build_reduced(&c->b, (reduce_kind)c->arg, call_in(c, 0), axes, count, true);
}

void convert_global_lp_pool(onnx_call *c)
{
    int64_t axes[SINTER_RANK_MAX];
    const ir_value_id x = call_in(c, 0);
    const uint32_t count = spatial_axes(c, x, axes);
    const double p = c->version < 2 ? call_real(c, "p", 2) : (double)call_int(c, "p", 2);
    if (p == 1 || p == 2) {
        c->out[0] = build_reduced(&c->b, p == 1 ? reduce_kind_l1 : reduce_kind_l2, x, axes, count, true);
        return;
    }
    if (p == 0) REJECT(c, INVALID_MODEL, "attribute p is 0");
    const ir_value_id exponent = build_scalar_like(&c->b, x, p);
    const ir_value_id power = build_pow(&c->b, build_abs(&c->b, x), exponent);
    const ir_value_id root = build_scalar_like(&c->b, x, 1 / p);
    c->out[0] = build_pow(&c->b, build_reduced(&c->b, reduce_kind_sum, power, axes, count, true), root);
}

/* A block whose shape the model computes. Each column of each place goes to an element of the padded image, by a list
 * that is computed; columns beyond the image go to a spare element behind it. */
static void col2im_late(onnx_call *c, const attrs_col2im *a, const dim *image, const dim *block, uint32_t n)
{
    ir_builder *b = &c->b;
    dim_table *t = c->b.g->dims;
    const sinter_dtype i64 = SINTER_DTYPE_I64;
    const ir_value_id x = call_in(c, 0), zero = build_scalar_i64(b, i64, 0);
    dim d[SINTER_RANK_MAX], place[SINTER_RANK_MAX];
    if (call_shape(c, x, d) != 3) REJECT(c, INVALID_MODEL, "columns of rank %u", call_rank(c, x));
    if (b->status) return;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t pads = a->pad.count ? a->pad.at[i] + a->pad.at[n + i] : 0;
        const dim reach = dim_add(t, dim_mul(t, dim_sub(t, block[i], call_k(c, 1)), call_k(c, a->dilation.at[i])),
                                  call_k(c, 1)),
                  room = dim_sub(t, dim_add(t, image[i], call_k(c, pads)), reach);
        place[i] = dim_add(t, dim_floordiv(t, room, call_k(c, a->stride.at[i])), call_k(c, 1));
    }
    const dim columns = dim_product(t, block, n), places = dim_product(t, place, n), pixels = dim_product(t, image, n);
    ir_value_id column = build_unsqueezed(b, build_iota(b, columns), 1),
                at = build_unsqueezed(b, build_iota(b, places), 0), index = zero, is_inside = 0;
    ir_value_id wide = build_scalar_i64(b, i64, 1);
    for (uint32_t i = n; i-- > 0 && !b->status;) { /* from the last axis, whose elements are adjacent */
        const ir_value_id side = build_sizes(b, &block[i], 1, true), row = build_sizes(b, &place[i], 1, true),
                          size = build_sizes(b, &image[i], 1, true),
                          dilation = build_scalar_i64(b, i64, a->dilation.at[i]),
                          stride = build_scalar_i64(b, i64, a->stride.at[i]),
                          inner = build_mul(b, build_mod(b, column, side), dilation),
                          outer = build_mul(b, build_mod(b, at, row), stride),
                          pad = build_scalar_i64(b, i64, a->pad.count ? a->pad.at[i] : 0),
                          to = build_sub(b, build_add(b, inner, outer), pad), is_behind = build_ge(b, to, zero),
                          fits = build_and(b, is_behind, build_lt(b, to, size));
        column = build_div(b, column, side);
        at = build_div(b, at, row);
        index = build_add(b, index, build_mul(b, to, wide));
        wide = build_mul(b, wide, size);
        is_inside = is_inside ? build_and(b, is_inside, fits) : fits;
    }
    const dim all = dim_mul(t, columns, places), tuples[2] = { all, call_k(c, 1) };
    index = build_shaped(b, build_where(b, is_inside, index, build_sizes(b, &pixels, 1, true)), tuples, 2);
    const dim one = call_k(c, 1), sides[2] = { columns, d[2] };
    const ir_value_id wholes = build_sizes(b, &d[1], 1, false), parts = build_sizes(b, &columns, 1, false);
    ir_value_id shape[3] = { build_sizes(b, d, 1, false) };
    shape[1] = build_div(b, wholes, parts);
    shape[2] = build_sizes(b, sides, 2, false);
    ir_value_id y = quirk_reshape_late(c, x, build_concat(b, shape, 3, &(attrs_concat){ .axis = 0 }), 4, true);
    if (b->status) return;
    const dim channels = call_dim(c, y, 1), apart[4] = { d[0], channels, columns, places },
              flat[3] = { all, d[0], channels }, spare[3] = { dim_add(t, pixels, one), d[0], channels };
    static const int64_t first[4] = { 2, 3, 0, 1 }, back[3] = { 1, 2, 0 };
    y = build_shaped(b, build_permuted(b, build_shaped(b, y, apart, 4), first, 4), flat, 3);
    y = build_scatter_nd(b, build_expanded(b, build_scalar_like(b, x, 0), spare, 3), index, y,
                         &(attrs_scatter_nd){ .kind = scatter_kind_add });
    y = build_permuted(b, build_part(b, y, 0, call_k(c, 0), 1, pixels), back, 3);
    dim whole[SINTER_RANK_MAX] = { d[0], channels };
    memcpy(whole + 2, image, n * sizeof *image);
    c->out[0] = build_shaped(b, y, whole, n + 2);
}

/* How many axes the image of Col2Im has, as the block and attributes say; 0: they do not. */
static uint32_t image_axes(onnx_call *c)
{
    static const char *const names[] = { "dilations", "strides", "pads" };
    int64_t length = 0;
    attr_ints list;
    if (call_rank(c, call_in(c, 2)) == 1 && call_size(c, call_in(c, 2), 0, &length) && length <= SPATIAL)
        return (uint32_t)length;
    for (uint32_t i = 0; i < COUNT_OF(names); i++)
        if (call_ints(c, names[i], &list) && list.count) return i == 2 ? list.count / 2 : list.count;
    return 0;
}

void convert_col2im(onnx_call *c)
{
    dim image[SINTER_RANK_MAX], block[SINTER_RANK_MAX];
    attrs_col2im *a = DEFAULTS(col2im);
    uint32_t n = 0, count = 0;
    bool is_late = false;
    if (!call_in(c, 1) || !call_in(c, 2)) REJECT(c, INVALID_MODEL, "the image's or the block's shape is missing");
    if (c->b.status) return;
    const uint32_t axes = image_axes(c);
    const ir_value_id shape = axes ? call_of_length(c, call_in(c, 1), axes) : call_in(c, 1);
    if (!call_sizes(c, shape, "the image's shape", DIM_NONE, image, SPATIAL, &n)) {
        REJECT(c, UNSUPPORTED, "an image of that rank");
        return;
    }
    a->image = build_dims(&c->b, image, n);
    call_sizes(c, call_of_length(c, call_in(c, 2), n), "the block's shape", DIM_NONE, block, SPATIAL, &count);
    if (count != n) REJECT(c, INVALID_MODEL, "a block of rank %u for an image of rank %u", count, n);
    a->block.count = count;
    for (uint32_t i = 0; i < count && !c->b.status; i++)
        is_late = !dim_is_const(c->b.g->dims, block[i], &a->block.at[i]) || is_late;
    list_of(c, "dilations", n, 1, 1, &a->dilation);
    list_of(c, "pads", 2 * n, 0, 0, &a->pad);
    list_of(c, "strides", n, 1, 1, &a->stride);
    if (c->b.status) return;
    if (is_late) col2im_late(c, a, image, block, n);
    else c->out[0] = build_col2im(&c->b, call_in(c, 0), a);
}
