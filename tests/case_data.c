/* SPDX-License-Identifier: Apache-2.0 */
/* case_data.c - data for the operands of problems: small integers, random values, special values. */
#include "case_rig.h"
#include "ops/tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Whole numbers that must lie in [least, limit); limit 0: any will do. */
typedef struct places {
    int64_t least, limit;
} places;

/* Where new rows may begin: where all fit, or, in a ring, some turns on. */
static places starts_of(const problem *p)
{
    const attrs_tensor_scatter *a = p->attrs;
    const int64_t size = p->in[0].dim[a->axis].opt;
    return (places){ 0, a->circular ? 3 * size + 1 : size - p->in[1].dim[a->axis].opt + 1 };
}

/* A length below the count of queries would leave rows without a key: a result that is mostly zero. */
static places lengths_of(const problem *p)
{
    const int64_t queries = p->in[0].dim[2].opt, keys = p->in[1].dim[2].opt;
    return (places){ queries < keys ? queries : keys, keys + 1 };
}

/* The smallest axis that the tuples name, of those from `first` on: each number fits them all. */
static places tuples_of(const problem *p, int64_t first)
{
    const int64_t count = p->in[1].dim[p->in[1].rank - 1].opt;
    int64_t least = INT64_MAX;
    for (int64_t i = 0; i < count; i++)
        if (p->in[0].dim[first + i].opt < least) least = p->in[0].dim[first + i].opt;
    return count ? (places){ -least, least } : (places){ 0 };
}

/* Where new keys may begin. */
static places appended_of(const problem *p)
{
    return (places){ 0, p->in[1].dim[2].opt - p->in[5].dim[2].opt + 1 };
}

static places places_of(const problem *p, uint32_t input)
{
    if (p->op == OP_tensor_scatter && input == 2) return starts_of(p);
    if (p->op == OP_attention && input == 4 && p->in[1].rank == 4) return lengths_of(p);
    if (p->op == OP_attention && input == 7) return appended_of(p);
    if (p->op == OP_roi_align && input == 2) return (places){ 0, p->in[0].dim[0].opt };
    if (p->op == OP_reverse_sequence && input == 1)
        return (places){ 0, p->in[0].dim[((const attrs_reverse_sequence *)p->attrs)->time_axis].opt + 1 };
    if (p->op == OP_gather_elements && input == 1) {
        const int64_t size = p->in[0].dim[((const attrs_gather_elements *)p->attrs)->axis].opt;
        return (places){ -size, size };
    }
    if (p->op == OP_gather_nd && input == 1) return tuples_of(p, ((const attrs_gather_nd *)p->attrs)->batch_dims);
    if (p->op == OP_scatter_nd && input == 1) return tuples_of(p, 0);
    if (p->op == OP_nms_rows && input == 2) {
        const int64_t most = ((const attrs_nms_rows *)p->attrs)->most.at[0];
        return (places){ most / 2, most + 3 };
    }
    if (p->op != OP_max_unpool || input != 1) return (places){ 0 };
    places all = { 0, 1 };
    for (uint32_t i = 0; i < p->out[0].rank; i++) all.limit *= p->out[0].dim[i].opt;
    return all;
}

/* ---- special values ---- */

/* Every function of the programs reads operands alone: nothing overflows on the way that doubles would hold. */
static bool is_flat(const expr *x)
{
    for (uint32_t i = 0; i < x->count; i++) {
        const uint32_t arity = x->at[i].op < OP_SCALAR_COUNT ? scalar_at((op_id)x->at[i].op)->arity : 0;
        for (uint32_t k = 0; k < arity; k++)
            if (x->at[x->at[i].arg[k]].op < OP_SCALAR_COUNT) return false;
    }
    return true;
}

/* Does each element of a result come from one of each operand, or is it chosen from some? */
static bool is_alone(const problem *p)
{
    if (p->prologue || (p->epilogue && (p->op != OP_pointwise || !is_flat(p->epilogue)))) return false;
    if (p->op == OP_pointwise || op_has(p->op, ELEMENTWISE | MOVES)) return true;
    const int64_t kind = p->op == OP_reduce ? ((const attrs_reduce *)p->attrs)->kind : 0;
    return kind == reduce_kind_max || kind == reduce_kind_min;
}

/* Half of the elements where each stands alone; else so few that most sums have one at most. */
static double special_share(const problem *p, const view *v)
{
    int64_t longest = 1;
    for (uint32_t i = 0; i < v->rank; i++) longest = v->dim[i] > longest ? v->dim[i] : longest;
    return op_is_scalar(p->op) || p->op == OP_pointwise ? 0.6 : 0.5 / (double)longest;
}

static bool has_parameters(const expr *x)
{
    for (uint32_t i = 0; i < x->count; i++) {
        const uint32_t op = x->at[i].op;
        if (op < OP_SCALAR_COUNT && op_has((op_id)op, PARAMETERS)) return true;
    }
    return false;
}

static bool loads(const expr *x, uint32_t input)
{
    for (uint32_t i = 0; x && i < x->count; i++)
        if (x->at[i].op == EXPR_LOAD && x->at[i].operand == input) return true;
    return false;
}

/* Nearly 0, which is not for scales of packed weights: the tuner leaves a weight alone that has such
 * (tune/work_packed.c). Nor for what a program makes the operands of: f32 rounds a product of two to 0, and the
 * judge's doubles do not. */
enum { TINY = 3 };

/* Where infinities and NaN prove nothing: weights whose window meets padding (a zero that is added becomes NaN), keys
 * and values behind a mask, scales of packed weights (docs/numerics.md), and the attributes that ONNX gives
 * activations. */
static bool takes_finite(const problem *p, uint32_t input)
{
    if (loads(p->weight, input)) return true;
    if (p->op == OP_dft) return true; /* a twiddle factor near 0 has either sign */
    if (p->op == OP_pointwise) return input > 0 && has_parameters(p->epilogue);
    if (p->op == OP_attention)
        return input > 0 && (((const attrs_attention *)p->attrs)->causal ||
                             (p->count_anchor > 3 && p->in[3].dtype == SINTER_DTYPE_BOOL));
    return input == 1 && (op_has(p->op, IMAGE) || p->op == OP_deform_conv);
}

static void store_special(case_rig *r, const view *v, int64_t at, bool is_alone_, bool is_finite, bool no_tiny)
{
    /* The last TINY are nearly 0. */
    static const double usual[] = { 0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, 0x1p-149, -0x1p-149, 0x1p-126 };
    static const double endless[] = { INFINITY, -INFINITY, NAN };
    static const double far[] = { 0x1.fffffep127,
                                  -0x1.fffffep127,
                                  1e10,
                                  -1e10,
                                  300,
                                  -300,
                                  88.5,
                                  -88.5,
                                  -104,
                                  127.5,
                                  128,
                                  -128.5,
                                  255.5,
                                  65504,
                                  65520,
                                  -40000,
                                  2e9,
                                  -0.125,
                                  0x1p31,
                                  4e9,
                                  -0x1p63,
                                  0x1p64,
                                  20,
                                  -20,
                                  7.5,
                                  0x1p-1074,
                                  3e38,
                                  -3e-39 };
    const uint32_t turn = case_below(r, is_finite ? 3 : is_alone_ ? 10 : 6);
    if (dtype_is_float(v->dtype)) {
        view_store_f64(v, at,
                       turn < 3   ? usual[case_below(r, COUNT_OF(usual) - (no_tiny ? TINY : 0))]
                       : turn < 6 ? endless[case_below(r, COUNT_OF(endless))]
                                  : far[case_below(r, COUNT_OF(far))]);
        return;
    }
    int64_t least, most;
    dtype_int_range(v->dtype, &least, &most);
    const uint32_t below = case_below(r, UINT32_MAX);
    const int64_t whole[] = {
        0, 1, -1, 2, least, most, least + 1, most - 1, (int64_t)((uint64_t)below * 0x100000001u)
    };
    view_store_i64(v, at, v->dtype == SINTER_DTYPE_BOOL ? below & 1 : whole[case_below(r, COUNT_OF(whole))]);
}

bool case_takes_special(const problem *p, const kernel *k)
{
    if (k->numerics == KERNEL_RELAXED) return false;
    return p->op != OP_conv_transpose || (strcmp(k->name, "cuda_simt") && strcmp(k->name, "cuda_mma"));
}

bool case_counts_sign(const problem *p, uint32_t result)
{
    if (!is_alone(p) || op_has(p->op, REDUCTION) || !dtype_is_float(p->out[result].dtype)) return false;
    for (uint32_t i = 0; p->epilogue && i < p->epilogue->count; i++) {
        const uint32_t op = p->epilogue->at[i].op;
        if (op < OP_SCALAR_COUNT && op_has((op_id)op, EITHER_ZERO)) return false;
    }
    return !op_has(p->op, EITHER_ZERO);
}

/* ---- rows ---- */

uint32_t case_row_axes(const problem *p)
{
    const problem_operand *x = &p->in[0], *y = &p->out[0];
    const bool is_image = op_has(p->op, CONTRACTION) && op_has(p->op, IMAGE);
    if ((p->op != OP_matmul && !is_image) || p->prologue || p->weight || x->rank != y->rank) return 0;
    if (x->dtype != SINTER_DTYPE_F32 || y->dtype != SINTER_DTYPE_F32) return 0;
    if (is_image) return 1;
    return ((const attrs_matmul *)p->attrs)->trans_a ? 0 : x->rank - 1u;
}

/* Makes special what a row of input 0 begins as: ordinary values of either sign. */
static void fill_rows(case_rig *r, const problem *p, const view *v)
{
    /* Programs may square or cube what they get. */
    const double far = p->epilogue ? 1e9 : 1e30;
    const double scale[] = { 1, 1, 1, 2.5, 0.5, far, 1 / far, 0 };
    const uint32_t axes = case_row_axes(p), kinds = COUNT_OF(scale) + 3;
    int64_t i[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(v->dim, axes, i); more; more = view_next(v->dim, axes, i)) {
        const uint32_t kind = case_below(r, kinds), one = kinds - 1 - kind;
        view row = *v;
        int64_t at[SINTER_RANK_MAX] = { 0 }, count = 1;
        for (uint32_t k = 0; k < axes; k++) at[k] = i[k];
        for (uint32_t k = 0; k < v->rank; k++) row.dim[k] = k < axes ? 1 : v->dim[k];
        for (uint32_t k = axes; k < v->rank; k++) count *= v->dim[k];
        const int64_t first = view_offset(v, at), chosen = count ? case_below(r, (uint32_t)count) : 0;
        int64_t n = 0;
        int64_t j[SINTER_RANK_MAX] = { 0 };
        for (bool next = view_first(row.dim, row.rank, j); next; next = view_next(row.dim, row.rank, j), n++) {
            const int64_t to = first + view_offset(&row, j);
            const double x = view_load_f64(v, to);
            if (kind < COUNT_OF(scale)) view_store_f64(v, to, scale[kind] * x);
            else if (one < 2 && n == chosen) view_store_f64(v, to, one ? NAN : copysign(INFINITY, x));
            else if (one == 2 && x > 1) view_store_f64(v, to, INFINITY);
        }
    }
}

/* A table of nodes with all that rows may have. */
static void fill_trees(case_rig *r, const problem *p, const view *v)
{
    const attrs_tree_ensemble *a = p->attrs;
    const int64_t count = v->dim[0];
    tree_row *row = calloc((size_t)count + 1, sizeof *row);
    tree_make(row, count, a->trees, a->targets, p->in[0].dim[1].opt, p->in[0].dtype, case_below(r, UINT32_MAX), true);
    for (int64_t i = 0; i < 4 * count; i++)
        view_store_i64(v, i / 4 * v->stride[0] + i % 4 * v->stride[1], ((const uint32_t *)row)[i]);
    free(row);
}

void case_fill(case_rig *r, const problem *p, uint32_t input, const view *v, case_data kind)
{
    int64_t i[SINTER_RANK_MAX] = { 0 };
    if (p->op == OP_tree_ensemble && input == 1) {
        fill_trees(r, p, v);
        return;
    }
    const bool is_index = (p->op == OP_gather || p->op == OP_scatter_elements) && input == 1;
    const bool is_box = p->op == OP_roi_align && input == 1;
    const bool is_nms = p->op == OP_nms_rows && input != 1;
    /* Weights of recurrent layers are small, or else the layer amplifies what its first step rounded. */
    const bool is_weight = op_has(p->op, RECURRENT) && (input == 1 || input == 2);
    const double scale = is_weight ? 0.4 / sqrt((double)(v->dim[2] > 0 ? v->dim[2] : 1)) : 1;
    const double often = special_share(p, v);
    /* Integers beside the data say where it is. */
    const bool is_place =
        input > 0 && !dtype_is_float(v->dtype) && !is_alone(p) && !(op_at(p->op)->traits & CONTRACTION);
    const bool is_finite = takes_finite(p, input);
    const places place = places_of(p, input);
    int64_t limit = 0;
    if (is_index && p->op == OP_gather) limit = p->in[0].dim[((const attrs_gather *)p->attrs)->axis].opt;
    else if (is_index) limit = p->in[0].dim[((const attrs_scatter_elements *)p->attrs)->axis].opt;
    for (bool more = view_first(v->dim, v->rank, i); more; more = view_next(v->dim, v->rank, i)) {
        const int64_t at = view_offset(v, i);
        if (kind == CASE_SPECIAL && !is_index && !is_box && !is_place && !place.limit && case_unit(r) < often) {
            store_special(r, v, at, is_alone(p), is_finite, loads(p->weight, input) || p->prologue);
            continue;
        }
        const double u = case_unit(r);
        if (is_index) view_store_i64(v, at, (int64_t)(u * 2 * (double)limit) - limit);
        else if (is_nms && input == 3) view_store_f64(v, at, kind == CASE_INTEGERS ? 0.25 : u * 0.7 - 0.1);
        else if (is_nms && input == 4) view_store_f64(v, at, u - 1.5);
        else if (is_nms && input == 0) view_store_f64(v, at, kind == CASE_INTEGERS ? (double)(int)(u * 12) : u * 20);
        else if (is_box) view_store_f64(v, at, i[1] < 2 ? u * 10 - 3 : u * 20); /* some reach out of the image */
        else if (place.limit) view_store_i64(v, at, place.least + (int64_t)(u * (double)(place.limit - place.least)));
        else if (v->dtype == SINTER_DTYPE_BOOL) view_store_i64(v, at, u < 0.6);
        else if (!dtype_is_float(v->dtype))
            view_store_i64(v, at, (int64_t)(u * 9) - (dtype_is_signed(v->dtype) ? 4 : 0));
        else if (kind == CASE_INTEGERS) view_store_f64(v, at, scale * (double)((int64_t)(u * 7) - 3));
        else view_store_f64(v, at, scale * (r->is_small ? 0.5 + u * 1.5 : u * 4 - 2));
    }
    if (kind == CASE_ROWS && input == 0) fill_rows(r, p, v);
}
