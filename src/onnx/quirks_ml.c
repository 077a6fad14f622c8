/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_ml.c - the plain arithmetic of ai.onnx.ml: scaling, filling in, linear models, support vectors. */
#include "onnx/importer.h"
#include "onnx/quirks.h"

#include <math.h>
#include <string.h>

ir_value_id quirk_reals(onnx_call *c, const float *at, uint32_t count, uint32_t rows)
{
    view v;
    float *copy = ARENA_NEW(&c->b.g->a, float, (size_t)count + 1);
    const int64_t d[2] = { rows, rows ? count / rows : 0 };
    const bool is_row = rows <= 1;
    if (!copy || !view_init(&v, SINTER_DTYPE_F32, is_row ? 1 : 2, is_row ? d + 1 : d, copy))
        REJECT(c, NO_MEMORY, "out of memory");
    if (c->b.status) return 0;
    if (count) memcpy(copy, at, count * sizeof *copy);
    return build_const(&c->b, NULL, &v);
}

static const onnx_attr *floats_of(onnx_call *c, const char *name)
{
    const onnx_attr *a = call_attr(c, name);
    if (!a || a->type == 0) return NULL;
    if (a->type != ONNX_FLOATS) REJECT(c, INVALID_MODEL, "attribute %s is no list of numbers", name);
    return c->b.status || !a->floats.count ? NULL : a;
}

/* (x - offset) * scale */
void convert_scaler(onnx_call *c)
{
    const onnx_attr *offset = floats_of(c, "offset"), *scale = floats_of(c, "scale");
    ir_value_id x = build_typed(&c->b, call_in(c, 0), SINTER_DTYPE_F32);
    if (offset) x = build_sub(&c->b, x, quirk_reals(c, offset->floats.at, offset->floats.count, 1));
    if (scale) x = build_mul(&c->b, x, quirk_reals(c, scale->floats.at, scale->floats.count, 1));
    c->out[0] = offset || scale ? x : build_identity(&c->b, x);
}

/* Rows over their largest, the sum of their magnitudes, or their length. A row of zeros stays. */
void convert_normalizer(onnx_call *c)
{
    const char *norm = call_text(c, "norm", "MAX");
    const ir_value_id x = build_typed(&c->b, call_in(c, 0), SINTER_DTYPE_F32);
    const int64_t last = c->b.status ? 0 : (int64_t)call_rank(c, x) - 1;
    ir_value_id size = 0;
    if (strcmp(norm, "MAX") == 0) size = build_reduced(&c->b, reduce_kind_max, x, &last, 1, true);
    else if (strcmp(norm, "L1") == 0) size = build_reduced(&c->b, reduce_kind_l1, x, &last, 1, true);
    else if (strcmp(norm, "L2") == 0) size = build_reduced(&c->b, reduce_kind_l2, x, &last, 1, true);
    else REJECT(c, INVALID_MODEL, "attribute norm is '%s'", norm);
    const ir_value_id is_zero = build_eq(&c->b, size, build_scalar_like(&c->b, x, 0));
    c->out[0] = build_div(&c->b, x, build_where(&c->b, is_zero, build_scalar_like(&c->b, x, 1), size));
}

/* What is missing (a number, or no number) is filled in by feature. */
void convert_imputer(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    const onnx_attr *with = floats_of(c, "imputed_value_floats"), *ints = call_attr(c, "imputed_value_int64s");
    const bool is_int = !c->b.status && call_type(c, x) == SINTER_DTYPE_I64;
    ir_value_id missing, fill = 0;
    if (is_int && ints && ints->type == ONNX_INTS && ints->ints.count) {
        view v;
        int64_t *copy = ARENA_NEW(&c->b.g->a, int64_t, ints->ints.count);
        if (!copy || !view_init(&v, SINTER_DTYPE_I64, 1, (const int64_t[]){ ints->ints.count }, copy))
            REJECT(c, NO_MEMORY, "out of memory");
        if (c->b.status) return;
        memcpy(copy, ints->ints.at, ints->ints.count * sizeof *copy);
        fill = build_const(&c->b, NULL, &v);
        missing = build_eq(&c->b, x, build_scalar_i64(&c->b, SINTER_DTYPE_I64, call_int(c, "replaced_value_int64", 0)));
    } else {
        const double mark = call_real(c, "replaced_value_float", 0);
        if (!with || is_int) REJECT(c, INVALID_MODEL, "there are no values to fill in");
        if (c->b.status) return;
        fill = build_typed(&c->b, quirk_reals(c, with->floats.at, with->floats.count, 1), call_type(c, x));
        missing = isnan(mark) ? build_is_nan(&c->b, x) : build_eq(&c->b, x, build_scalar_like(&c->b, x, mark));
    }
    c->out[0] = build_where(&c->b, missing, fill, x);
}

/* A list as one row; more axes than two as one. */
static ir_value_id features_of(onnx_call *c, uint32_t input)
{
    dim d[SINTER_RANK_MAX];
    const ir_value_id x = build_typed(&c->b, call_in(c, input), SINTER_DTYPE_F32);
    const uint32_t rank = c->b.status ? 0 : call_shape(c, x, d);
    if (!rank) REJECT(c, INVALID_MODEL, "input %u is missing or has no axis", input);
    if (c->b.status || rank == 1) return build_unsqueezed(&c->b, x, 0);
    d[1] = dim_product(c->b.g->dims, d + 1, rank - 1);
    return build_shaped(&c->b, x, d, 2);
}

/* The first `width` columns, with zeros for those that are not there. */
static ir_value_id widen(onnx_call *c, ir_value_id x, int64_t width)
{
    int64_t own = 0;
    const dim zero = call_k(c, 0), wanted = call_k(c, width);
    if (c->b.status || (call_size(c, x, 1, &own) && own == width)) return x;
    if (own < width) x = build_padded(&c->b, x, pad_mode_constant, (dim[]){ zero, zero }, (dim[]){ zero, wanted }, 0);
    return build_part(&c->b, x, 1, zero, 1, wanted);
}

/* Columns side by side: of each input as many as inputdimensions says, as ONNX Runtime reads it. */
void convert_feature_vectorizer(onnx_call *c)
{
    const onnx_attr *widths = call_attr(c, "inputdimensions");
    ir_value_id *all = ARENA_NEW(&c->im->a, ir_value_id, (size_t)c->count_in + 1);
    if (!all || !c->count_in) REJECT(c, INVALID_MODEL, "no inputs");
    if (widths && (widths->type != ONNX_INTS || widths->ints.count != c->count_in))
        REJECT(c, INVALID_MODEL, "inputdimensions is no list of %u numbers", c->count_in);
    for (uint32_t i = 0; i < c->count_in && !c->b.status; i++) {
        all[i] = features_of(c, i);
        if (!widths) continue;
        if (widths->ints.at[i] < 0)
            REJECT(c, INVALID_MODEL, "an input has %lld columns", (long long)widths->ints.at[i]);
        all[i] = widen(c, all[i], widths->ints.at[i]);
    }
    if (c->b.status) return;
    c->out[0] = c->count_in == 1 ? build_identity(&c->b, all[0])
                                 : build_concat(&c->b, all, c->count_in, &(attrs_concat){ .axis = 1 });
}

/* Input 0 as rows of f32. */
static ir_value_id rows_of(onnx_call *c)
{
    const ir_value_id x = build_typed(&c->b, call_in(c, 0), SINTER_DTYPE_F32);
    return !c->b.status && call_rank(c, x) == 1 ? build_unsqueezed(&c->b, x, 0) : x;
}

/* [rows, columns] */
static ir_value_id matrix_of(onnx_call *c, const float *at, uint32_t rows, uint32_t columns)
{
    const ir_value_id v = quirk_reals(c, at, rows * columns, rows);
    return rows == 1 ? build_unsqueezed(&c->b, v, 0) : v;
}

/* x W^T + b, [B, rows] */
static ir_value_id linear(onnx_call *c, uint32_t rows)
{
    const onnx_attr *weight = floats_of(c, "coefficients"), *bias = floats_of(c, "intercepts");
    if (!weight || !rows || weight->floats.count % rows)
        REJECT(c, INVALID_MODEL, "%u coefficients for %u rows", weight ? weight->floats.count : 0, rows);
    if (bias && bias->floats.count != rows)
        REJECT(c, INVALID_MODEL, "%u intercepts for %u rows", bias->floats.count, rows);
    const ir_value_id x = rows_of(c);
    if (c->b.status) return 0;
    const ir_value_id w = matrix_of(c, weight->floats.at, rows, weight->floats.count / rows);
    const ir_value_id y = build_matmul(&c->b, x, w, &(attrs_matmul){ .trans_b = true });
    return bias ? build_add(&c->b, y, quirk_reals(c, bias->floats.at, rows, 1)) : y;
}

void convert_linear_regressor(onnx_call *c)
{
    const int64_t targets = call_int(c, "targets", 1);
    if (targets < 1 || targets > INT32_MAX) REJECT(c, INVALID_MODEL, "attribute targets is %lld", (long long)targets);
    if (c->b.status) return;
    const ir_value_id y = linear(c, (uint32_t)targets);
    c->out[0] = quirk_post_transform(c, call_text(c, "post_transform", "NONE"), y);
}

/* ---- labels of classes ---- */
/* All labels, or the bytes of those that are text. */
static ir_value_id labels_of(onnx_call *c, uint32_t count, const char *name, bool *is_text)
{
    const onnx_attr *words = call_attr(c, "classlabels_strings"), *ints = call_attr(c, name);
    view v;
    *is_text = words && words->type == ONNX_STRINGS && words->strings.count;
    if (*is_text) {
        const call_strings s = {
            .rank = 1, .dim = { words->strings.count }, .count = words->strings.count, .at = words->strings.at
        };
        if (s.count != count) REJECT(c, INVALID_MODEL, "%u labels for %u classes", s.count, count);
        return c->b.status ? 0 : quirk_text_bytes(c, call_strings_new(c->im, &s));
    }
    if (!ints || ints->type != ONNX_INTS || ints->ints.count != count)
        REJECT(c, INVALID_MODEL, "there is not one label a class");
    int64_t *copy = ARENA_NEW(&c->b.g->a, int64_t, (size_t)count + 1);
    if (!copy || !view_init(&v, SINTER_DTYPE_I64, 1, (const int64_t[]){ count }, copy))
        REJECT(c, NO_MEMORY, "out of memory");
    if (c->b.status) return 0;
    memcpy(copy, ints->ints.at, count * sizeof *copy);
    return build_const(&c->b, NULL, &v);
}

ir_value_id quirk_labelled(onnx_call *c, ir_value_id at, uint32_t count, const char *name)
{
    bool is_text;
    const ir_value_id labels = labels_of(c, count, name, &is_text), y = build_gather(&c->b, labels, at, NULL);
    return is_text ? quirk_text_new(c, y) : y;
}

/* A map for each row, from the labels to its numbers. */
void convert_zip_map(onnx_call *c)
{
    const onnx_attr *words = call_attr(c, "classlabels_strings"), *ints = call_attr(c, "classlabels_int64s");
    const uint32_t count = words && words->strings.count ? words->strings.count : ints ? ints->ints.count : 0;
    bool is_text;
    ir_value_id x = call_in(c, 0);
    int64_t size = count;
    if (!c->b.status && call_rank(c, x) == 1) x = build_unsqueezed(&c->b, x, 0);
    if (!c->b.status && (call_rank(c, x) != 2 || (call_size(c, x, 1, &size) && size != count)))
        REJECT(c, INVALID_MODEL, "rows of %lld numbers for %u labels", (long long)size, count);
    if (!c->b.status) c->out[0] = call_maps_new(c, x, labels_of(c, count, "classlabels_int64s", &is_text));
}

/* The column that is largest. */
static ir_value_id best_of(onnx_call *c, ir_value_id y)
{
    attrs_arg_reduce *a = DEFAULTS(arg_reduce);
    a->axis = 1;
    a->keep = 0;
    return build_emit(&c->b, OP_arg_reduce, a, &y, 1);
}

/* One score a row, of the second of two classes. As ONNX Runtime has it: that class where the score is above 0, and for
 * the first class what is left to 1. */
static void one_row_labelled(onnx_call *c, ir_value_id y, bool is_logistic)
{
    ir_builder *b = &c->b;
    const ir_value_id row = build_squeezed(b, y, 1), is_second = build_gt(b, row, build_scalar_like(b, y, 0));
    c->out[0] = quirk_labelled(c, build_typed(b, is_second, SINTER_DTYPE_I64), 2, "classlabels_ints");
    ir_value_id both[2] = { 0 };
    both[1] = is_logistic ? build_unary(b, OP_sigmoid, y) : y;
    both[0] = build_sub(b, build_scalar_like(b, y, 1), both[1]);
    if (c->count_out > 1) c->out[1] = build_concat(b, both, 2, &(attrs_concat){ .axis = 1 });
}

/* Scores of one row a class; one row alone speaks for the second of two classes. */
void convert_linear_classifier(onnx_call *c)
{
    const onnx_attr *words = call_attr(c, "classlabels_strings"), *ints = call_attr(c, "classlabels_ints"),
                    *bias = floats_of(c, "intercepts");
    const uint32_t classes = words && words->strings.count ? words->strings.count : ints ? ints->ints.count : 0;
    const char *how = call_text(c, "post_transform", "NONE");
    if (!bias) REJECT(c, UNSUPPORTED, "no intercepts");
    if (c->b.status) return;
    const uint32_t rows = bias->floats.count;
    const bool is_one = rows == 1 && classes == 2;
    if (rows != classes && !is_one) REJECT(c, UNSUPPORTED, "%u rows of coefficients for %u classes", rows, classes);
    if (is_one && strcmp(how, "PROBIT") == 0) REJECT(c, UNSUPPORTED, "PROBIT of one row for two classes");
    const ir_value_id y = linear(c, rows);
    if (is_one) {
        one_row_labelled(c, y, strcmp(how, "LOGISTIC") == 0);
        return;
    }
    c->out[0] = quirk_labelled(c, best_of(c, y), classes, "classlabels_ints");
    if (c->count_out > 1) c->out[1] = quirk_post_transform(c, how, y);
}

/* ---- OneHotEncoder: a column for each category ---- */
static void each_has_one(onnx_call *c, ir_value_id same)
{
    const int64_t first = 0;
    dim d[SINTER_RANK_MAX];
    const ir_value_id any = build_typed(&c->b, quirk_text_any(c, same, false), SINTER_DTYPE_U8);
    if (c->b.status) return;
    const dim all = dim_product(c->b.g->dims, d, call_shape(c, any, d));
    const ir_value_id one = build_unsqueezed(&c->b, build_scalar_like(&c->b, any, 1), 0),
                      flat = build_concat(&c->b, (ir_value_id[]){ build_shaped(&c->b, any, &all, 1), one }, 2,
                                          &(attrs_concat){ .axis = 0 });
    quirk_guard(c, build_reduced(&c->b, reduce_kind_min, flat, &first, 1, false), true, GUARD_CATEGORY);
}

void convert_one_hot_encoder(onnx_call *c)
{
    const onnx_attr *words = call_attr(c, "cats_strings"), *ints = call_attr(c, "cats_int64s");
    const ir_value_id x = call_in(c, 0);
    const bool is_text = call_strings_at(c, x) != NULL;
    ir_value_id same = 0;
    if (is_text && words && words->strings.count) {
        same = quirk_text_which(c, quirk_text_bytes(c, x), words->strings.at, words->strings.count);
    } else if (!is_text && ints && ints->type == ONNX_INTS && ints->ints.count) {
        view v;
        int64_t *copy = ARENA_NEW(&c->b.g->a, int64_t, ints->ints.count);
        if (!copy || !view_init(&v, SINTER_DTYPE_I64, 1, (const int64_t[]){ ints->ints.count }, copy))
            REJECT(c, NO_MEMORY, "out of memory");
        if (c->b.status) return;
        memcpy(copy, ints->ints.at, ints->ints.count * sizeof *copy);
        same = build_const(&c->b, NULL, &v);
        same = build_eq(&c->b, build_unsqueezed(&c->b, build_typed(&c->b, x, SINTER_DTYPE_I64), call_rank(c, x)), same);
    } else {
        REJECT(c, INVALID_MODEL, "there are no categories of the input's type");
    }
    if (call_int(c, "zeros", 1) == 0) each_has_one(c, same);
    c->out[0] = build_typed(&c->b, same, SINTER_DTYPE_F32);
}

/* ---- support vectors ---- */

typedef struct machine {
    const float *at; /* [count, features] */
    uint32_t count, features;
    float gamma, offset, degree;
} machine;

static ir_value_id times(onnx_call *c, ir_value_id x, double by)
{
    return build_mul(&c->b, x, build_scalar_like(&c->b, x, by));
}

static ir_value_id plus(onnx_call *c, ir_value_id x, double more)
{
    return build_add(&c->b, x, build_scalar_like(&c->b, x, more));
}

static ir_value_id is_positive(onnx_call *c, ir_value_id x)
{
    return build_gt(&c->b, x, build_scalar_like(&c->b, x, 0));
}

/* x V^T, [B, count] */
static ir_value_id with_vectors(onnx_call *c, ir_value_id x, const float *at, const machine *m)
{
    return build_matmul(&c->b, x, matrix_of(c, at, m->count, m->features), &(attrs_matmul){ .trans_b = true });
}

/* exp(-gamma |x - v|^2), [B, count], by |x|^2 + |v|^2 - 2 x v. All are taken from the mean of the vectors first: what
 * lies far from 0 would lose its digits in the difference. */
static ir_value_id radial(onnx_call *c, ir_value_id x, const machine *m)
{
    const size_t count = (size_t)m->count * m->features;
    float *near = ARENA_NEW(&c->im->a, float, count + 1), *mean = ARENA_NEW(&c->im->a, float, (size_t)m->features + 1),
          *length = ARENA_NEW(&c->im->a, float, (size_t)m->count + 1);
    if (!near || !mean || !length) REJECT(c, NO_MEMORY, "out of memory");
    if (c->b.status) return 0;
    for (uint32_t k = 0; k < m->features; k++) {
        double sum = 0;
        for (uint32_t i = 0; i < m->count; i++) sum += m->at[(size_t)i * m->features + k];
        mean[k] = (float)(sum / m->count);
    }
    for (uint32_t i = 0; i < m->count; i++) {
        double sum = 0;
        for (size_t k = 0, at = (size_t)i * m->features; k < m->features; k++, at++) {
            near[at] = m->at[at] - mean[k];
            sum += (double)near[at] * near[at];
        }
        length[i] = (float)sum;
    }
    static const int64_t last = 1;
    const ir_value_id from = build_sub(&c->b, x, quirk_reals(c, mean, m->features, 1));
    const ir_value_id own = build_reduced(&c->b, reduce_kind_sum_square, from, &last, 1, true);
    const ir_value_id far = build_add(&c->b, own, quirk_reals(c, length, m->count, 1));
    const ir_value_id square = build_sub(&c->b, far, times(c, with_vectors(c, from, near, m), 2));
    const ir_value_id positive = build_max(&c->b, square, build_scalar_like(&c->b, x, 0));
    return build_exp(&c->b, times(c, positive, -(double)m->gamma));
}

/* The kernel of each row with each vector, [B, count]. */
static ir_value_id with_kernel(onnx_call *c, ir_value_id x, const machine *m, const char *kernel)
{
    int64_t size = m->features;
    if (!c->b.status && (call_rank(c, x) != 2 || (call_size(c, x, 1, &size) && size != m->features)))
        REJECT(c, INVALID_MODEL, "rows of %lld features, the vectors have %u", (long long)size, m->features);
    if (strcmp(kernel, "RBF") == 0) return radial(c, x, m);
    const ir_value_id y = with_vectors(c, x, m->at, m);
    if (strcmp(kernel, "LINEAR") == 0) return y;
    const ir_value_id z = plus(c, times(c, y, m->gamma), m->offset);
    if (strcmp(kernel, "POLY") == 0) return build_pow(&c->b, z, build_scalar_like(&c->b, y, m->degree));
    if (strcmp(kernel, "SIGMOID") != 0) REJECT(c, INVALID_MODEL, "attribute kernel_type is '%s'", kernel);
    return build_tanh(&c->b, z);
}

/* The machine of a node: so many vectors, or without any, the coefficients as so many rows of a linear model, whatever
 * the kernel is, as ONNX Runtime has it. */
static machine machine_of(onnx_call *c, int64_t count, uint32_t rows)
{
    const onnx_attr *weight = floats_of(c, "coefficients"), *vectors = floats_of(c, "support_vectors"),
                    *more = floats_of(c, "kernel_params");
    if (!weight || !floats_of(c, "rho")) REJECT(c, INVALID_MODEL, "no %s", weight ? "rho" : "coefficients");
    if (more && more->floats.count != 3) REJECT(c, INVALID_MODEL, "%u kernel_params, wanted 3", more->floats.count);
    if (count < 0 || count > INT32_MAX || (count && !vectors))
        REJECT(c, INVALID_MODEL, "%lld vectors", (long long)count);
    const onnx_attr *from = count ? vectors : weight;
    if (count) rows = (uint32_t)count;
    if (!c->b.status && from->floats.count % rows)
        REJECT(c, INVALID_MODEL, "%u numbers for %u vectors", from->floats.count, rows);
    if (c->b.status) return (machine){ 0 };
    machine m = { .at = from->floats.at, .count = rows, .features = from->floats.count / rows };
    if (!more) return m;
    m.gamma = more->floats.at[0];
    m.offset = more->floats.at[1];
    m.degree = more->floats.at[2];
    return m;
}

void convert_svm_regressor(onnx_call *c)
{
    const onnx_attr *weight = floats_of(c, "coefficients"), *bias = floats_of(c, "rho");
    const char *kernel = call_text(c, "kernel_type", "LINEAR");
    const int64_t count = call_int(c, "n_supports", 0), is_one_class = call_int(c, "one_class", 0);
    const machine m = machine_of(c, count, 1);
    if (!c->b.status && count && weight->floats.count != m.count)
        REJECT(c, INVALID_MODEL, "%u coefficients for %u vectors", weight->floats.count, m.count);
    if (c->b.status) return;
    ir_value_id y = with_kernel(c, rows_of(c), &m, count ? kernel : "LINEAR");
    if (count)
        y = build_matmul(&c->b, y, matrix_of(c, weight->floats.at, 1, m.count), &(attrs_matmul){ .trans_b = true });
    y = plus(c, y, bias->floats.at[0]);
    if (is_one_class) { /* 1 or -1 */
        const ir_value_id two = build_typed(&c->b, is_positive(c, y), SINTER_DTYPE_F32);
        y = plus(c, times(c, two, 2), -1);
    }
    c->out[0] = quirk_post_transform(c, call_text(c, "post_transform", "NONE"), y);
}

/* Coefficients [classes - 1, vectors] as weights [pairs, vectors] of a score for each pair of classes. Pair (i, j)
 * takes row j - 1 for the vectors of class i, and row i for those of class j. votes: [classes, pairs], what a positive
 * score gives less what another one gives; where no score is positive, class i has i votes. */
static bool pairs_read(onnx_call *c, const int64_t *each, uint32_t classes, const float *from, uint32_t vectors,
                       float **weights, float **votes)
{
    const size_t pairs = (size_t)classes * (classes - 1) / 2, count_w = pairs * vectors, count_vote = pairs * classes;
    float *w = *weights = ARENA_NEW(&c->im->a, float, count_w + 1),
          *vote = *votes = ARENA_NEW(&c->im->a, float, count_vote + 1);
    if (!w || !vote) REJECT(c, NO_MEMORY, "out of memory");
    if (c->b.status) return false;
    memset(w, 0, count_w * sizeof *w);
    memset(vote, 0, count_vote * sizeof *vote);
    size_t pair = 0, of_i = 0;
    for (uint32_t i = 0; i < classes; of_i += (size_t)each[i++]) {
        size_t of_j = of_i + (size_t)each[i];
        for (uint32_t j = i + 1; j < classes; of_j += (size_t)each[j++], pair++, w += vectors) {
            vote[i * pairs + pair] = 1;
            vote[j * pairs + pair] = -1;
            memcpy(w + of_i, from + (size_t)(j - 1) * vectors + of_i, (size_t)each[i] * sizeof *w);
            memcpy(w + of_j, from + (size_t)i * vectors + of_j, (size_t)each[j] * sizeof *w);
        }
    }
    return true;
}

/* Probabilities by prob_a and prob_b, from a score for each pair. */
static ir_value_id shares(onnx_call *c, ir_value_id y, uint32_t classes)
{
    const onnx_attr *a = floats_of(c, "prob_a"), *b = floats_of(c, "prob_b");
    const uint32_t pairs = classes * (classes - 1) / 2;
    if (!b || a->floats.count < pairs || b->floats.count < pairs)
        REJECT(c, INVALID_MODEL, "%u prob_a and %u prob_b for %u pairs of classes", a->floats.count,
               b ? b->floats.count : 0, pairs);
    if (c->b.status) return 0;
    y = build_mul(&c->b, y, quirk_reals(c, a->floats.at, pairs, 1));
    y = build_add(&c->b, y, quirk_reals(c, b->floats.at, pairs, 1));
    y = build_sigmoid(&c->b, build_neg(&c->b, y));
    const ir_value_id least = build_scalar_like(&c->b, y, 1e-7), most = build_scalar_like(&c->b, y, 1 - 1e-7);
    return quirk_coupled(c, build_clip(&c->b, y, least, most), classes);
}

/* A score for each pair of classes; the class with most votes wins. Of two classes, both get the one score: [-s, s],
 * its logistic, or with other transforms [1 - s, s], as ONNX Runtime has it. */
static void by_votes(onnx_call *c, const machine *m, const int64_t *each, uint32_t classes, const char *kernel,
                     const char *how)
{
    const onnx_attr *weight = floats_of(c, "coefficients"), *bias = floats_of(c, "rho");
    const uint32_t pairs = classes * (classes - 1) / 2;
    float *weights, *votes;
    if (weight->floats.count < (uint64_t)(classes - 1) * m->count || bias->floats.count < pairs)
        REJECT(c, INVALID_MODEL, "%u coefficients and %u rho for %u classes and %u vectors", weight->floats.count,
               bias->floats.count, classes, m->count);
    if ((uint64_t)pairs * (m->count > classes ? m->count : classes) > INT32_MAX)
        REJECT(c, UNSUPPORTED, "%u pairs of classes with %u vectors", pairs, m->count);
    if (c->b.status || !pairs_read(c, each, classes, weight->floats.at, m->count, &weights, &votes)) return;
    const attrs_matmul by_rows = { .trans_b = true };
    ir_value_id y = with_kernel(c, rows_of(c), m, kernel);
    y = build_matmul(&c->b, y, matrix_of(c, weights, pairs, m->count), &by_rows);
    y = build_add(&c->b, y, quirk_reals(c, bias->floats.at, pairs, 1));
    const ir_value_id won = build_typed(&c->b, is_positive(c, y), SINTER_DTYPE_F32);
    const ir_value_id start = build_typed(&c->b, build_iota(&c->b, call_k(c, classes)), SINTER_DTYPE_F32);
    ir_value_id all = build_matmul(&c->b, won, matrix_of(c, votes, classes, pairs), &by_rows);
    all = build_add(&c->b, all, start);
    c->out[0] = quirk_labelled(c, best_of(c, all), classes, "classlabels_ints");
    if (c->count_out < 2) return;
    if (floats_of(c, "prob_a")) {
        c->out[1] = quirk_post_transform(c, how, shares(c, y, classes));
        return;
    }
    if (classes > 2) {
        c->out[1] = quirk_post_transform(c, how, y);
        return;
    }
    if (strcmp(how, "PROBIT") == 0) REJECT(c, UNSUPPORTED, "attribute post_transform is 'PROBIT' for two classes");
    static const float opposite[2] = { -1, 1 }, rest[2] = { 1, 0 };
    y = build_mul(&c->b, y, quirk_reals(c, opposite, 2, 1));
    const bool is_usual = strcmp(how, "NONE") == 0 || strcmp(how, "LOGISTIC") == 0;
    c->out[1] = is_usual ? quirk_post_transform(c, how, y) : build_add(&c->b, y, quirk_reals(c, rest, 2, 1));
}

/* As ONNX Runtime has it. Of two classes without vectors, the second wins where the larger score is positive (where no
 * coefficient is below 0: one half). */
void convert_svm_classifier(onnx_call *c)
{
    const onnx_attr *words = call_attr(c, "classlabels_strings"), *ints = call_attr(c, "classlabels_ints"),
                    *each = call_attr(c, "vectors_per_class"), *weight = floats_of(c, "coefficients"),
                    *bias = floats_of(c, "rho");
    const uint32_t classes = words && words->strings.count ? words->strings.count : ints ? ints->ints.count : 0;
    const char *how = call_text(c, "post_transform", "NONE"), *kernel = call_text(c, "kernel_type", "LINEAR");
    const uint32_t count_each = each && each->type == ONNX_INTS ? each->ints.count : 0;
    int64_t count = 0;
    for (uint32_t i = 0; i < count_each; i++) {
        if (each->ints.at[i] < 0 || each->ints.at[i] > INT32_MAX)
            REJECT(c, INVALID_MODEL, "class %u has %lld vectors", i, (long long)each->ints.at[i]);
        count += each->ints.at[i] & INT32_MAX;
    }
    if (floats_of(c, "prob_a") && !count)
        REJECT(c, UNSUPPORTED, "probabilities (attribute prob_a) without support vectors");
    if (classes < 2 || classes > INT16_MAX || (count && count_each != classes))
        REJECT(c, INVALID_MODEL, "%u labels for %u classes", classes, count_each);
    if (c->b.status) return;
    const machine m = machine_of(c, count, classes);
    if (c->b.status) return;
    if (count) {
        by_votes(c, &m, each->ints.at, classes, kernel, how);
        return;
    }
    ir_value_id y = with_kernel(c, rows_of(c), &m, "LINEAR");
    y = plus(c, y, bias->floats.at[0]);
    ir_value_id best = best_of(c, y);
    if (classes == 2) {
        bool is_share = true;
        for (uint32_t i = 0; i < weight->floats.count; i++) is_share &= weight->floats.at[i] >= 0;
        static const int64_t last = 1;
        const ir_value_id most = build_reduced(&c->b, reduce_kind_max, y, &last, 1, false),
                          least = build_scalar_like(&c->b, y, 0.5), one = build_scalar_i64(&c->b, SINTER_DTYPE_I64, 1);
        best = build_where(&c->b, is_share ? build_ge(&c->b, most, least) : is_positive(c, most), one, best);
    }
    c->out[0] = quirk_labelled(c, best, classes, "classlabels_ints");
    if (c->count_out > 1) c->out[1] = quirk_post_transform(c, how, y);
}
