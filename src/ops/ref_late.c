/* SPDX-License-Identifier: Apache-2.0 */
/* ref_late.c - references of the ops whose result has a size that data decides, and of bind, which only tells sizes.
 *
 * Each looks first, asks for memory of the size it found (resize), and then writes. */
#include "ops/move.h"

/* ---- bind ---- */

static sinter_status bind_reshape(ref_call *c, const int64_t *asked, uint32_t count, int64_t *out)
{
    const attrs_bind *a = c->attrs;
    int64_t total = 1, known = 1;
    uint32_t free_axis = count;
    for (uint32_t i = 0; i < a->dims.count; i++) {
        if (!i64_mul(total, a->dims.at[i], &total)) return move_shape_fault(c, "the input has too many elements");
    }
    for (uint32_t i = 0; i < count; i++) {
        out[i] = asked[i];
        if (asked[i] == -1) {
            if (free_axis < count) return move_shape_fault(c, "the new shape has two sizes of -1");
            free_axis = i;
            continue;
        }
        if (asked[i] == 0 && !a->flag) {
            if (i >= a->dims.count)
                return FAIL(c->e, INVALID_ARG, "the new shape keeps size %u of an input of rank %u", i, a->dims.count);
            out[i] = a->dims.at[i];
        }
        if (out[i] < 0) return FAIL(c->e, INVALID_ARG, "the new shape has size %lld at axis %u", (long long)out[i], i);
        if (!i64_mul(known, out[i], &known)) return move_shape_fault(c, "the new shape has too many elements");
    }
    if (free_axis < count) {
        if (known == 0 || total % known != 0) {
            return FAIL(c->e, INVALID_ARG, "the input has %lld elements, which is no multiple of the new shape's %lld",
                        (long long)total, (long long)known);
        }
        out[free_axis] = total / known;
    } else if (known != total) {
        return FAIL(c->e, INVALID_ARG, "the input has %lld elements, the new shape has %lld", (long long)total,
                    (long long)known);
    }
    return SINTER_OK;
}

/* ONNX Slice of one axis: negative ends count from the end, and what is outside is cut. */
static sinter_status bind_slice(ref_call *c, int64_t start, int64_t end, int64_t step, int64_t *out)
{
    const attrs_bind *a = c->attrs;
    const int64_t d = a->dims.at[0];
    if (step == 0) return move_shape_fault(c, "the step of a slice is 0");
    const int64_t high = step > 0 ? d : d - 1; /* -1 on an empty axis: no element */
    if (start < 0) start = start < -d ? 0 : start + d;
    if (start > high) start = high;
    if (step < 0 && end < -d) end = -1;
    else if (end < 0) end = end < -d ? 0 : end + d;
    if (end > high) end = high;
    const int64_t span = step > 0 ? end - start : start - end;
    const uint64_t pace = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    out[1] = span > 0 ? (int64_t)(((uint64_t)span - 1) / pace) + 1 : 0;
    out[0] = out[1] > 0 ? start : 0;
    return SINTER_OK;
}

/* The parts of a split: together they are the axis. */
static sinter_status check_split(ref_call *c, const int64_t *part, int64_t count)
{
    const int64_t whole = ((const attrs_bind *)c->attrs)->dims.at[0];
    int64_t sum = 0;
    for (int64_t i = 0; i < count; i++) {
        if (part[i] < 0)
            return FAIL(c->e, INVALID_ARG, "part %lld of a split has size %lld", (long long)i, (long long)part[i]);
        if (!i64_add(sum, part[i], &sum)) return move_shape_fault(c, "the parts of a split are too large");
    }
    if (sum == whole) return SINTER_OK;
    return FAIL(c->e, INVALID_ARG, "the %lld parts of a split have %lld elements together, the axis has %lld",
                (long long)count, (long long)sum, (long long)whole);
}

static sinter_status bind_expand(ref_call *c, const int64_t *asked, uint32_t given, uint32_t count, int64_t *out)
{
    const attrs_bind *a = c->attrs;
    if (given > count || a->dims.count > count)
        return move_shape_fault(c, "the result has a lower rank than what goes into it");
    for (uint32_t i = 0; i < count; i++) {
        const int64_t x = i + given >= count ? asked[i + given - count] : 1;
        const int64_t y = i + a->dims.count >= count ? a->dims.at[i + a->dims.count - count] : 1;
        if (x < 0 || (x != y && x != 1 && y != 1)) {
            return FAIL(c->e, INVALID_ARG, "axis %u: size %lld does not broadcast to %lld", i, (long long)y,
                        (long long)x);
        }
        out[i] = x == 1 ? y : x;
    }
    return SINTER_OK;
}

sinter_status reference_bind(ref_call *c)
{
    const attrs_bind *a = c->attrs;
    const view *in = &c->in[0];
    const uint32_t count = a->symbols.count;
    const int64_t given = view_count(in);
    int64_t asked[MOVE_VALUES_MAX] = { 0 }, out[MOVE_VALUES_MAX] = { 0 };
    if (in->rank > 1 || given > MOVE_VALUES_MAX || count > MOVE_VALUES_MAX) {
        return FAIL(c->e, UNSUPPORTED, "%lld sizes for %u symbols, the most is %d", (long long)given, count,
                    MOVE_VALUES_MAX);
    }
    if (a->kind != bind_kind_expand && given != (a->kind == bind_kind_slice ? 3 : (int64_t)count)) {
        return FAIL(c->e, INVALID_ARG, "%lld sizes are given for %u symbols", (long long)given, count);
    }
    for (int64_t i = 0; i < given; i++) asked[i] = view_load_i64(in, i * (in->rank ? in->stride[0] : 0));
    if (a->kind == bind_kind_reshape) {
        TRY(bind_reshape(c, asked, count, out));
    } else if (a->kind == bind_kind_slice) {
        if (count != 2 || a->dims.count != 1) return move_shape_fault(c, "a slice binds two symbols against one size");
        TRY(bind_slice(c, asked[0], asked[1], asked[2], out));
    } else if (a->kind == bind_kind_expand) {
        TRY(bind_expand(c, asked, (uint32_t)given, count, out));
    } else {
        if (a->kind == bind_kind_split) {
            if (a->dims.count != 1) return move_shape_fault(c, "a split has one axis");
            TRY(check_split(c, asked, given));
        }
        memcpy(out, asked, sizeof(out));
    }
    return c->resize(c, 0, out, count);
}

/* ---- non_zero, compress ---- */

static bool is_zero(const view *v, int64_t at)
{
    if (v->dtype == SINTER_DTYPE_BOOL) return !((const uint8_t *)v->data)[at];
    return dtype_is_float(v->dtype) ? view_load_f64(v, at) == 0 : view_load_i64(v, at) == 0;
}

/* MARKED: elements that are looked at before what was found is stored. */
enum { MARKED = 512 };

#define MARK(type)                                                                                                     \
    for (int64_t i = 0; i < n; i++) mark[i] = ((const type *)v->data)[at + i * step] != 0

/* mark[i]: 1 where element at + i * step is not 0. Returns how many are. */
static int64_t mark_some(const view *v, int64_t at, int64_t step, int64_t n, uint8_t *mark)
{
    int64_t count = 0;
    switch (v->dtype) {
    case SINTER_DTYPE_BOOL: MARK(uint8_t); break;
    case SINTER_DTYPE_F32: MARK(float); break;
    case SINTER_DTYPE_I32: MARK(int32_t); break;
    case SINTER_DTYPE_I64: MARK(int64_t); break;
    default:
        for (int64_t i = 0; i < n; i++) mark[i] = !is_zero(v, at + i * step);
        break;
    }
    for (int64_t i = 0; i < n; i++) count += mark[i];
    return count;
}

/* The places of the marked ones, counted from `at`. There is room for n. */
static void list_marked(const uint8_t *mark, int64_t n, int64_t at, int64_t *place)
{
    for (int64_t i = 0, count = 0; i < n; i++) {
        place[count] = at + i;
        count += mark[i];
    }
}

sinter_status reference_non_zero(ref_call *c)
{
    const view *in = &c->in[0];
    uint8_t mark[MARKED];
    int64_t place[MARKED];
    const uint32_t last = in->rank ? in->rank - 1 : 0; /* a scalar is a line of one element */
    const int64_t n = in->rank ? in->dim[last] : 1, step = in->rank ? in->stride[last] : 0;
    int64_t i[SINTER_RANK_MAX] = { 0 };
    int64_t shape[2] = { in->rank, 0 };
    for (bool more = view_first(in->dim, last, i); more; more = view_next(in->dim, last, i)) {
        i[last] = 0;
        const int64_t line = view_offset(in, i);
        for (int64_t k = 0; k < n; k += MARKED)
            shape[1] += mark_some(in, line + k * step, step, n - k < MARKED ? n - k : MARKED, mark);
    }
    TRY(c->resize(c, 0, shape, 2));
    const view *out = &c->out[0];
    int64_t column = 0;
    for (bool more = view_first(in->dim, last, i); more; more = view_next(in->dim, last, i)) {
        i[last] = 0;
        const int64_t line = view_offset(in, i);
        for (int64_t begin = 0; begin < n; begin += MARKED) {
            const int64_t some = n - begin < MARKED ? n - begin : MARKED;
            const int64_t count = mark_some(in, line + begin * step, step, some, mark);
            list_marked(mark, some, begin, place);
            for (uint32_t k = 0; k < in->rank; k++) {
                int64_t *to = (int64_t *)out->data + k * out->stride[0] + column * out->stride[1];
                for (int64_t m = 0; m < count; m++) to[m * out->stride[1]] = k == last ? place[m] : i[k];
            }
            column += count;
        }
    }
    return SINTER_OK;
}

/* A dense copy where the view is not dense already. */
static sinter_status dense_of(ref_call *c, const view *v, view *out)
{
    const bool fits = view_init(out, v->dtype, v->rank, v->dim, v->data);
    if (!fits || view_is_dense(v)) return fits ? SINTER_OK : move_shape_fault(c, "the input has too many elements");
    sinter_tensor t = { .dtype = v->dtype, .rank = v->rank };
    memcpy(t.dim, v->dim, sizeof(t.dim));
    out->data = arena_alloc(c->scratch, sinter_tensor_size(&t), 16);
    if (!out->data) return FAIL_MEMORY(c->e, "a dense copy");
    view_copy(out, v);
    return SINTER_OK;
}

#define KEPT(type)                                                                                                     \
    for (int64_t i = 0; i < count; i++) ((type *)(void *)to)[i] = ((const type *)(const void *)from)[place[i]]

/* Of dense tensors. Blocks behind each other are copied together. */
static void compress_blocks(const view *in, const view *out, uint32_t axis, const int64_t *place, int64_t count)
{
    int64_t rows = 1, block = sinter_dtype_bits(in->dtype) / 8;
    for (uint32_t i = 0; i < in->rank; i++) {
        if (i < axis) rows *= in->dim[i];
        if (i > axis) block *= in->dim[i];
    }
    const char *from = in->data;
    char *to = out->data;
    for (int64_t r = 0; r < rows; r++, from += in->dim[axis] * block, to += count * block) {
        switch (block) {
        case 1: KEPT(uint8_t); break;
        case 2: KEPT(uint16_t); break;
        case 4: KEPT(uint32_t); break;
        case 8: KEPT(uint64_t); break;
        default:
            for (int64_t i = 0, some; i < count; i += some) {
                for (some = 1; i + some < count && place[i + some] == place[i] + some;) some++;
                memcpy(to + i * block, from + place[i] * block, (size_t)(some * block));
            }
        }
    }
}

sinter_status reference_compress(ref_call *c)
{
    const attrs_compress *a = c->attrs;
    const view *in = &c->in[0], *keep = &c->in[1];
    view flat = *in;
    uint32_t axis = 0;
    if (a->axis == -1) {
        TRY(dense_of(c, in, &flat));
        flat.dim[0] = view_count(in);
        flat.stride[0] = 1;
        flat.rank = 1;
    } else if (a->axis < (int64_t)in->rank && a->axis >= 0) {
        axis = (uint32_t)a->axis;
    } else {
        return move_shape_fault(c, "the axis is not there");
    }
    if (keep->rank != 1) return move_shape_fault(c, "the condition is no list");
    const int64_t limit = keep->dim[0] < flat.dim[axis] ? keep->dim[0] : flat.dim[axis];
    int64_t shape[SINTER_RANK_MAX] = { 0 };
    memcpy(shape, flat.dim, sizeof(shape));
    shape[axis] = 0;
    const int64_t step = keep->stride[0];
    uint8_t mark[MARKED];
    for (int64_t i = 0; i < limit; i += MARKED)
        shape[axis] += mark_some(keep, i * step, step, limit - i < MARKED ? limit - i : MARKED, mark);
    TRY(c->resize(c, 0, shape, flat.rank));
    const view *out = &c->out[0];
    if (view_count(out) == 0) return SINTER_OK;
    int64_t *place = arena_alloc(c->scratch, size_mul((size_t)(shape[axis] + MARKED), sizeof *place), 16), count = 0;
    if (!place) return FAIL_MEMORY(c->e, "the places that are kept");
    for (int64_t begin = 0; begin < limit; begin += MARKED) {
        const int64_t n = limit - begin < MARKED ? limit - begin : MARKED,
                      found = mark_some(keep, begin * step, step, n, mark);
        list_marked(mark, n, begin, place + count);
        count += found;
    }
    if (sinter_dtype_bits(flat.dtype) >= 8 && view_is_dense(&flat) && view_is_dense(out)) {
        compress_blocks(&flat, out, axis, place, count);
        return SINTER_OK;
    }
    const view to = move_drop(out, axis, 1), from = move_drop(&flat, axis, 1);
    for (int64_t i = 0; i < count; i++) move_block(&to, i * out->stride[axis], &from, place[i] * flat.stride[axis]);
    return SINTER_OK;
}

/* ---- unique ---- */

/* The things to tell apart: rows of `length` elements, dense. */
typedef struct unique_rows {
    sinter_dtype dtype;
    const void *data;
    int64_t length;
} unique_rows;

/* -1, 0 or 1; NaN is the largest number, and equal to itself. */
static int element_order(sinter_dtype dtype, const void *data, int64_t a, int64_t b)
{
    if (dtype_is_float(dtype)) {
        const double x = dtype_load_f64(dtype, data, a), y = dtype_load_f64(dtype, data, b);
        if (x != x || y != y) return (x != x) - (y != y);
        return (x > y) - (x < y);
    }
    const int64_t x = dtype_load_i64(dtype, data, a), y = dtype_load_i64(dtype, data, b);
    if (dtype == SINTER_DTYPE_U64) return ((uint64_t)x > (uint64_t)y) - ((uint64_t)x < (uint64_t)y);
    return (x > y) - (x < y);
}

static bool row_before(const void *user, int64_t a, int64_t b)
{
    const unique_rows *r = user;
    for (int64_t k = 0; k < r->length; k++) {
        const int order = element_order(r->dtype, r->data, a * r->length + k, b * r->length + k);
        if (order != 0) return order < 0;
    }
    return false;
}

static bool first_before(const void *user, int64_t a, int64_t b)
{
    const int64_t *first = user;
    return first[a] < first[b];
}

static sinter_status store_list(ref_call *c, uint32_t k, const int64_t *list, const int64_t *order, int64_t count)
{
    if (!move_wanted(c, k)) return SINTER_OK;
    TRY(c->resize(c, k, &count, 1));
    const view *out = &c->out[k];
    for (int64_t i = 0; i < count; i++) view_store_i64(out, i * out->stride[0], list[order ? order[i] : i]);
    return SINTER_OK;
}

/* What is found of n things: their groups in order, by the first of each and its count, and the group of each thing. */
typedef struct unique_found {
    int64_t *first, *count, *group, groups;
} unique_found;

/* Integers of a range that is about as large as their number are counted in a table, which needs no sorting. False
 * where that cannot be. */
static bool unique_count(arena *scratch, const unique_rows *r, int64_t n, unique_found *f)
{
    enum { EACH = 4 };
    if (r->length != 1 || !dtype_is_int(r->dtype) || r->dtype == SINTER_DTYPE_U64 || n < 1) return false;
    const int64_t *value = r->data;
    if (r->dtype != SINTER_DTYPE_I64) {
        int64_t *wide = ARENA_NEW(scratch, int64_t, (size_t)n);
        if (!wide) return false;
        for (int64_t i = 0; i < n; i++) wide[i] = dtype_load_i64(r->dtype, r->data, i);
        value = wide;
    }
    int64_t low = value[0], high = low;
    for (int64_t i = 1; i < n; i++) {
        const int64_t v = value[i];
        low = v < low ? v : low;
        high = v > high ? v : high;
    }
    const uint64_t range = (uint64_t)high - (uint64_t)low;
    if (range / EACH >= (uint64_t)n) return false;
    int64_t *table = ARENA_NEW(scratch, int64_t, size_mul(2, (size_t)range + 1)); /* zeros */
    if (!table) return false;
    int64_t *const seen = table, *const first = table + range + 1;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t at = (uint64_t)value[i] - (uint64_t)low;
        if (!seen[at]++) first[at] = i;
    }
    for (uint64_t at = 0; at <= range; at++) {
        if (!seen[at]) continue;
        f->first[f->groups] = first[at];
        f->count[f->groups] = seen[at];
        first[at] = f->groups++;
    }
    for (int64_t i = 0; i < n; i++) f->group[i] = first[(uint64_t)value[i] - (uint64_t)low];
    return true;
}

sinter_status reference_unique(ref_call *c)
{
    const attrs_unique *a = c->attrs;
    const bool is_flat = a->axis == -1;
    if (!is_flat && (a->axis < 0 || a->axis >= (int64_t)c->in[0].rank))
        return move_shape_fault(c, "the axis is not there");
    /* The axis goes first, so that each thing is a row of its own. */
    view in = c->in[0], dense;
    const uint32_t axis = is_flat ? 0 : (uint32_t)a->axis;
    for (uint32_t i = 0; !is_flat && i < in.rank; i++) {
        const uint32_t from = i == 0 ? axis : i <= axis ? i - 1 : i;
        in.dim[i] = c->in[0].dim[from];
        in.stride[i] = c->in[0].stride[from];
    }
    TRY(dense_of(c, &in, &dense));
    const int64_t n = is_flat ? view_count(&in) : in.dim[0];
    const view rest = is_flat ? (view){ 0 } : move_drop(&in, 0, 1);
    const unique_rows r = { in.dtype, dense.data, is_flat ? 1 : view_count(&rest) };
    int64_t *list = ARENA_NEW(c->scratch, int64_t, size_mul(7, (size_t)n));
    if (!list) return FAIL_MEMORY(c->e, "unique");
    int64_t *id = list, *spare = list + n, *first = list + 2 * n, *count = list + 3 * n, *group = list + 4 * n,
            *order = list + 5 * n, *place = list + 6 * n;
    unique_found found = { first, count, group, 0 };
    const bool is_counted = unique_count(c->scratch, &r, n, &found);
    int64_t groups = found.groups;
    for (int64_t i = 0; i < n && !is_counted; i++) id[i] = i;
    if (!is_counted) move_sort(id, spare, n, row_before, &r);
    for (int64_t i = 0; i < n && !is_counted; i++) {
        /* The sort is stable, so the first of a run is the first occurrence. */
        if (i == 0 || row_before(&r, id[i - 1], id[i])) first[groups++] = id[i];
        group[id[i]] = groups - 1;
        count[groups - 1]++;
    }
    for (int64_t g = 0; g < groups; g++) order[g] = g;
    if (!a->sorted) move_sort(order, spare, groups, first_before, first);
    for (int64_t g = 0; g < groups; g++) place[order[g]] = g;
    for (int64_t i = 0; i < n; i++) group[i] = place[group[i]];
    TRY(store_list(c, 1, first, order, groups));
    TRY(store_list(c, 2, group, NULL, n));
    TRY(store_list(c, 3, count, order, groups));
    if (!move_wanted(c, 0)) return SINTER_OK;
    int64_t shape[SINTER_RANK_MAX] = { 0 };
    memcpy(shape, c->in[0].dim, sizeof(shape));
    shape[axis] = groups;
    TRY(c->resize(c, 0, shape, is_flat ? 1 : in.rank));
    const view *out = &c->out[0];
    if (view_count(out) == 0) return SINTER_OK;
    const view to = move_drop(out, axis, 1);
    for (int64_t g = 0; g < groups; g++) {
        if (is_flat) move_element(out, g * out->stride[0], &dense, first[order[g]]);
        else move_block(&to, g * out->stride[axis], &rest, first[order[g]] * in.stride[0]);
    }
    return SINTER_OK;
}

/* ---- non-maximum suppression ---- */

typedef struct box {
    double y0, x0, y1, x1;
} box;

static double number_at(const view *v, int64_t at)
{
    return v->dtype == SINTER_DTYPE_F32 ? (double)((const float *)v->data)[at] : view_load_f64(v, at);
}

static box box_at(const view *boxes, int64_t batch, int64_t i, bool is_center)
{
    double v[4];
    for (int64_t k = 0; k < 4; k++) {
        v[k] = number_at(boxes, batch * boxes->stride[0] + i * boxes->stride[1] + k * boxes->stride[2]);
    }
    if (is_center) return (box){ v[1] - v[3] / 2, v[0] - v[2] / 2, v[1] + v[3] / 2, v[0] + v[2] / 2 };
    return (box){ v[0] < v[2] ? v[0] : v[2], v[1] < v[3] ? v[1] : v[3], v[0] < v[2] ? v[2] : v[0],
                  v[1] < v[3] ? v[3] : v[1] };
}

/* Intersection over union. Most pairs lie apart: nothing else is computed for those, and one branch finds them. */
static double overlap(const box *a, const box *b)
{
    const double width = (a->x1 < b->x1 ? a->x1 : b->x1) - (a->x0 > b->x0 ? a->x0 : b->x0);
    const double height = (a->y1 < b->y1 ? a->y1 : b->y1) - (a->y0 > b->y0 ? a->y0 : b->y0);
    if (!((width > 0) & (height > 0))) return 0;
    const double area_a = (a->y1 - a->y0) * (a->x1 - a->x0), area_b = (b->y1 - b->y0) * (b->x1 - b->x0);
    if (!(area_a > 0) || !(area_b > 0)) return 0;
    const double both = height * width, either = area_a + area_b - both;
    return either > 0 ? both / either : 0;
}

static bool score_before(const void *user, int64_t a, int64_t b)
{
    const double *score = user;
    return score[a] > score[b];
}

/* The kept boxes once more, in f32 and side by side: most boxes lie apart, and four at once are found to. */
typedef float four __attribute__((vector_size(16), aligned(4)));
typedef int32_t words __attribute__((vector_size(16)));
typedef int64_t two __attribute__((vector_size(16)));
enum { SIDES = 4, FOUR = 4 };

typedef struct kept_sides {
    float *at[SIDES]; /* y0, x0, y1, x1; room for whole fours */
} kept_sides;

static void sides_add(const kept_sides *s, int64_t count, const box *b)
{
    const double v[SIDES] = { b->y0, b->x0, b->y1, b->x1 };
    for (int i = 0; i < SIDES; i++) s->at[i][count] = (float)v[i];
}

/* Which of kept boxes [k, k + 4) box b surely does not overlap; true: none. Rounding keeps the order of what differs,
 * so nothing that is less in f32 is not less before. */
static bool is_apart(const kept_sides *s, int64_t k, const box *b, words *which)
{
    const float y0 = (float)b->y0, x0 = (float)b->x0, y1 = (float)b->y1, x1 = (float)b->x1;
    four side[SIDES];
    for (int i = 0; i < SIDES; i++) side[i] = *(const four *)(const void *)(s->at[i] + k);
    *which = (y1 < side[0]) | (side[2] < y0) | (x1 < side[1]) | (side[3] < x0);
    const two all = (two)*which;
    return (all[0] & all[1]) == -1;
}

/* Whether a box overlaps none of the kept ones by more than iou. */
static bool is_free_of(const box *kept, const kept_sides *s, int64_t count, const box *b, double iou)
{
    for (int64_t k = 0; k < count; k += FOUR) {
        words apart;
        if (is_apart(s, k, b, &apart) && iou >= 0) continue;
        for (int64_t i = k; i < count && i < k + FOUR; i++)
            if (!(iou >= 0 && apart[i - k]) && overlap(b, &kept[i]) > iou) return false;
    }
    return true;
}

/* Candidates from the highest score on, equal ones as they were: by the bytes of their scores, which are f32 there, the
 * lowest first. room: as long as id. */
enum { DIGIT = 8, DIGITS = 32 / DIGIT, DIGIT_VALUES = 1 << DIGIT, RADIX_LEAST = 64 };

static uint32_t score_key(double score)
{
    const float value = (float)score + 0.0f; /* both zeros are equal */
    uint32_t key;
    memcpy(&key, &value, sizeof key);
    return key >> 31 ? key : ~key & INT32_MAX;
}

static void sort_scores(int64_t *id, int64_t *room, int64_t count, const double *score)
{
    uint32_t begin[DIGITS][DIGIT_VALUES] = { 0 };
    uint64_t *from = (uint64_t *)(void *)id, *to = (uint64_t *)(void *)room;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t key = score_key(score[id[i]]);
        for (int d = 0; d < DIGITS; d++) begin[d][key >> d * DIGIT & (DIGIT_VALUES - 1)]++;
        from[i] = (uint64_t)key << 32 | (uint64_t)id[i];
    }
    for (int d = 0; d < DIGITS; d++) {
        uint32_t at = 0;
        for (int v = 0; v < DIGIT_VALUES; v++) {
            const uint32_t n = begin[d][v];
            begin[d][v] = at;
            at += n;
        }
        for (int64_t i = 0; i < count; i++) to[begin[d][from[i] >> (32 + d * DIGIT) & (DIGIT_VALUES - 1)]++] = from[i];
        uint64_t *const swap = from;
        from = to;
        to = swap;
    }
    for (int64_t i = 0; i < count; i++) id[i] = (int64_t)(from[i] & UINT32_MAX);
}

/* Puts candidates with the highest scores in front, each part in the order that it had: at least `wanted`, and all that
 * share the first bits of their keys with them. Returns how many. */
enum { COARSE = 11, COARSE_VALUES = 1 << COARSE };

static int64_t divide_scores(int64_t *id, int64_t *room, int64_t count, int64_t wanted, const double *score)
{
    uint32_t found[2][COARSE_VALUES] = { 0 }, limit = 0; /* two, as a count waits for the one before */
    int64_t front = 0, behind = 0;
    for (int64_t i = 0; i < count; i++) found[i & 1][score_key(score[id[i]]) >> (32 - COARSE)]++;
    for (int64_t sum = 0; limit < COARSE_VALUES - 1; limit++) {
        sum += found[0][limit] + found[1][limit];
        if (sum >= wanted) break;
    }
    for (int64_t i = 0; i < count; i++) { /* nobody can guess which ones: no branch */
        const int64_t at = id[i];
        const bool is_front = score_key(score[at]) >> (32 - COARSE) <= limit;
        id[front] = at;
        room[behind] = at;
        front += is_front;
        behind += !is_front;
    }
    memcpy(id + front, room, (size_t)behind * sizeof *id);
    return front;
}

typedef struct picks {
    int64_t (*at)[3];
    uint32_t count, capacity;
} picks;

/* What is computed once for all classes (all: of one batch), and room. */
typedef struct nms_room {
    box *all, *kept; /* all: NULL where each box is read once at most */
    int64_t *id;
    double *score;
    kept_sides sides; /* of kept */
} nms_room;

static sinter_status nms_class(ref_call *c, int64_t batch, int64_t class_at, int64_t most, const nms_room *room,
                               bool is_center, picks *out)
{
    const view *scores = &c->in[1];
    int64_t *id = room->id;
    box *kept = room->kept;
    const double iou = move_given(c, 3) && view_count(&c->in[3]) > 0 ? view_load_f64(&c->in[3], 0) : 0;
    const bool has_floor = move_given(c, 4) && view_count(&c->in[4]) > 0;
    const double floor_score = has_floor ? view_load_f64(&c->in[4], 0) : 0;
    const int64_t n = scores->dim[2], first = batch * scores->stride[0] + class_at * scores->stride[1];
    int64_t candidates = 0, count = 0;
    for (int64_t i = 0; i < n; i++) {
        const double score = room->score[i] = number_at(scores, first + i * scores->stride[2]);
        id[candidates] = i; /* nobody can guess which ones count: no branch */
        candidates += (score == score) & (!has_floor | (score > floor_score));
    }
    /* Few of many are wanted, and most of those that are looked at are kept: the rest is not sorted until it is asked.
     */
    const bool by_bytes = scores->dtype == SINTER_DTYPE_F32 && candidates >= RADIX_LEAST && n <= UINT32_MAX;
    int64_t sorted = candidates;
    if (by_bytes && candidates / 4 >= most) sorted = divide_scores(id, id + n, candidates, 2 * most, room->score);
    if (by_bytes) sort_scores(id, id + n, sorted, room->score);
    else move_sort(id, id + n, candidates, score_before, room->score);
    for (int64_t i = 0; i < candidates && count < most; i++) {
        if (i == sorted) {
            sort_scores(id + i, id + n, candidates - i, room->score);
            sorted = candidates;
        }
        const box b = room->all ? room->all[id[i]] : box_at(&c->in[0], batch, id[i], is_center);
        if (!is_free_of(kept, &room->sides, count, &b, iou)) continue;
        sides_add(&room->sides, count, &b);
        kept[count++] = b;
        int64_t(*row)[3] = VEC_PUSH(c->scratch, out);
        if (!row) return FAIL_MEMORY(c->e, "the selected boxes");
        (*row)[0] = batch;
        (*row)[1] = class_at;
        (*row)[2] = id[i];
    }
    return SINTER_OK;
}

/* limit: rows of a class at most. */
static sinter_status suppress(ref_call *c, bool is_center, int64_t limit)
{
    const view *boxes = &c->in[0], *scores = &c->in[1];
    if (boxes->rank != 3 || scores->rank != 3 || boxes->dim[2] != 4 || boxes->dim[0] != scores->dim[0] ||
        boxes->dim[1] != scores->dim[2]) {
        return move_shape_fault(c, "boxes and scores do not have shapes that go together");
    }
    const int64_t n = boxes->dim[1];
    const int64_t asked = move_given(c, 2) && view_count(&c->in[2]) > 0 ? view_load_i64(&c->in[2], 0) : 0;
    int64_t most = asked < n ? asked : n;
    if (most > limit) most = limit;
    picks out = { 0 };
    if (most > 0) {
        const bool is_shared = scores->dim[1] > 1;
        nms_room room = { .all = is_shared ? ARENA_NEW(c->scratch, box, (size_t)n) : NULL,
                          .kept = ARENA_NEW(c->scratch, box, (size_t)most),
                          .id = ARENA_NEW(c->scratch, int64_t, size_mul(2, (size_t)n)),
                          .score = ARENA_NEW(c->scratch, double, (size_t)n) };
        const size_t side = size_align((size_t)most, FOUR);
        float *sides = ARENA_NEW(c->scratch, float, size_mul(SIDES, side)); /* zeros */
        if ((is_shared && !room.all) || !room.kept || !room.id || !room.score || !sides)
            return FAIL_MEMORY(c->e, "the candidates");
        for (int i = 0; i < SIDES; i++) room.sides.at[i] = sides + (size_t)i * side;
        for (int64_t b = 0; b < scores->dim[0]; b++) {
            for (int64_t i = 0; is_shared && i < n; i++) room.all[i] = box_at(boxes, b, i, is_center);
            for (int64_t k = 0; k < scores->dim[1]; k++) TRY(nms_class(c, b, k, most, &room, is_center, &out));
        }
    }
    TRY(c->resize(c, 0, (const int64_t[]){ out.count, 3 }, 2));
    const view *to = &c->out[0];
    for (int64_t i = 0; i < (int64_t)out.count; i++) {
        for (int64_t k = 0; k < 3; k++) view_store_i64(to, i * to->stride[0] + k * to->stride[1], out.at[i][k]);
    }
    return SINTER_OK;
}

sinter_status reference_nms(ref_call *c)
{
    return suppress(c, ((const attrs_nms *)c->attrs)->center_box != 0, INT64_MAX);
}

/* ---- results at their bounds ---- */

typedef struct bounded {
    ref_call *outer;
    view *out;
    int64_t count;
} bounded;

/* What a reference calls once it knows its size: it gets the first rows of the larger result. */
static sinter_status take_rows(ref_call *inner, uint32_t i, const int64_t *dim_at, uint32_t rank)
{
    bounded *b = inner->user;
    const view *whole = &b->outer->out[0];
    const bool is_turned = inner->op == OP_non_zero;
    if (i || rank != 2 || dim_at[is_turned] > whole->dim[0] || dim_at[!is_turned] != whole->dim[1])
        return move_shape_fault(b->outer, "more rows are found than there can be");
    b->count = dim_at[is_turned];
    *b->out = *whole;
    for (uint32_t k = 0; k < 2; k++) {
        b->out->dim[k] = dim_at[k];
        b->out->stride[k] = whole->stride[is_turned ? 1 - k : k];
    }
    return SINTER_OK;
}

static sinter_status found_boxes(ref_call *c)
{
    const attrs_nms_rows *a = c->attrs;
    return suppress(c, a->center_box != 0, a->most.count ? a->most.at[0] : 0);
}

static sinter_status rows_at_bound(ref_call *c, op_id op, sinter_status (*find)(ref_call *))
{
    view out = { 0 };
    bounded b = { .outer = c, .out = &out };
    ref_call inner = *c;
    inner.op = op;
    inner.count_out = 1;
    inner.out = &out;
    inner.resize = take_rows;
    inner.user = &b;
    for (int64_t k = 0; k < c->out[0].dim[0]; k++)
        for (int64_t i = 0; i < c->out[0].dim[1]; i++)
            view_store_i64(&c->out[0], k * c->out[0].stride[0] + i * c->out[0].stride[1], 0);
    TRY(find(&inner));
    view_store_i64(&c->out[1], 0, b.count);
    return SINTER_OK;
}

sinter_status reference_non_zero_rows(ref_call *c)
{
    return rows_at_bound(c, OP_non_zero, reference_non_zero);
}

sinter_status reference_nms_rows(ref_call *c)
{
    return rows_at_bound(c, OP_nms, found_boxes);
}

sinter_status reference_region(ref_call *c)
{
    return FAIL(c->e, INTERNAL, "%s: regions are run by the executor, not by a kernel", op_at(c->op)->name);
}
