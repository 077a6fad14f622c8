/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_ml.c - the plain arithmetic of ai.onnx.ml: scaling, filling in, linear models. */
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

/* Columns side by side. */
void convert_feature_vectorizer(onnx_call *c)
{
    ir_value_id *all = ARENA_NEW(&c->im->a, ir_value_id, (size_t)c->count_in + 1);
    if (!all || !c->count_in) REJECT(c, INVALID_MODEL, "no inputs");
    for (uint32_t i = 0; i < c->count_in && !c->b.status; i++) {
        all[i] = build_typed(&c->b, call_in(c, i), SINTER_DTYPE_F32);
        if (!c->b.status && call_rank(c, all[i]) != 2)
            REJECT(c, UNSUPPORTED, "an input of rank %u", call_rank(c, all[i]));
    }
    if (c->b.status) return;
    c->out[0] = c->count_in == 1 ? build_identity(&c->b, all[0])
                                 : build_concat(&c->b, all, c->count_in, &(attrs_concat){ .axis = 1 });
}

/* x W^T + b, [B, rows] */
static ir_value_id linear(onnx_call *c, uint32_t rows)
{
    const onnx_attr *weight = floats_of(c, "coefficients"), *bias = floats_of(c, "intercepts");
    if (!weight || !rows || weight->floats.count % rows)
        REJECT(c, INVALID_MODEL, "%u coefficients for %u rows", weight ? weight->floats.count : 0, rows);
    if (bias && bias->floats.count != rows)
        REJECT(c, INVALID_MODEL, "%u intercepts for %u rows", bias->floats.count, rows);
    ir_value_id x = build_typed(&c->b, call_in(c, 0), SINTER_DTYPE_F32);
    if (c->b.status) return 0;
    if (call_rank(c, x) == 1) x = build_unsqueezed(&c->b, x, 0);
    ir_value_id w = quirk_reals(c, weight->floats.at, weight->floats.count, rows);
    if (rows == 1) w = build_unsqueezed(&c->b, w, 0);
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
ir_value_id quirk_labelled(onnx_call *c, ir_value_id at, uint32_t count, const char *name)
{
    const onnx_attr *words = call_attr(c, "classlabels_strings"), *ints = call_attr(c, name);
    view v;
    if (words && words->type == ONNX_STRINGS && words->strings.count) {
        const call_strings s = {
            .rank = 1, .dim = { words->strings.count }, .count = words->strings.count, .at = words->strings.at
        };
        if (s.count != count) REJECT(c, INVALID_MODEL, "%u labels for %u classes", s.count, count);
        const ir_value_id table = c->b.status ? 0 : quirk_text_bytes(c, call_strings_new(c->im, &s));
        return quirk_text_new(c, build_gather(&c->b, table, at, NULL));
    }
    if (!ints || ints->type != ONNX_INTS || ints->ints.count != count)
        REJECT(c, INVALID_MODEL, "there is not one label a class");
    int64_t *copy = ARENA_NEW(&c->b.g->a, int64_t, (size_t)count + 1);
    if (!copy || !view_init(&v, SINTER_DTYPE_I64, 1, (const int64_t[]){ count }, copy))
        REJECT(c, NO_MEMORY, "out of memory");
    if (c->b.status) return 0;
    memcpy(copy, ints->ints.at, count * sizeof *copy);
    return build_gather(&c->b, build_const(&c->b, NULL, &v), at, NULL);
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
    if (rows != classes) REJECT(c, UNSUPPORTED, "%u rows of coefficients for %u classes", rows, classes);
    const ir_value_id y = linear(c, rows);
    attrs_arg_reduce *a = DEFAULTS(arg_reduce);
    a->axis = 1;
    a->keep = 0;
    c->out[0] = quirk_labelled(c, build_emit(&c->b, OP_arg_reduce, a, &y, 1), classes, "classlabels_ints");
    if (c->count_out > 1) c->out[1] = quirk_post_transform(c, how, y);
}

/* ---- OneHotEncoder: a column for each category ---- */
void convert_one_hot_encoder(onnx_call *c)
{
    const onnx_attr *words = call_attr(c, "cats_strings"), *ints = call_attr(c, "cats_int64s");
    const ir_value_id x = call_in(c, 0);
    const bool is_text = call_strings_at(c, x) != NULL;
    ir_value_id same = 0;
    if (call_int(c, "zeros", 1) == 0)
        REJECT(c, UNSUPPORTED, "attribute zeros is 0: what is in no category would be an error");
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
    c->out[0] = build_typed(&c->b, same, SINTER_DTYPE_F32);
}
