/* SPDX-License-Identifier: Apache-2.0 */
/* ref_pool.c - max_pool, avg_pool, lp_pool and max_unpool over any number of spatial axes.
 *
 * For each position of the result the elements under the window are listed once, then read for every image and channel.
 */
#include "ops/ref_loops.h"
#include <math.h>

enum { SPATIAL_MAX = SINTER_RANK_MAX - 2 };

typedef struct window {
    const attr_ints *kernel, *stride, *dilation, *pad;
    bool is_column_major;
} window;
typedef struct tap {
    int64_t at, index;
} tap; /* offset in the view; position in the plane */

static size_t tap_max_of(const view *x, const window *w)
{
    size_t count = 1;
    for (uint32_t i = 0; i + 2 < x->rank; i++) {
        const int64_t in = x->dim[2 + i];
        count = size_mul(count, (size_t)(w->kernel->at[i] < in ? w->kernel->at[i] : in));
    }
    return count;
}

/* Lists the elements under the window at `o`. padded: gets how many positions lie inside the padded input. */
static size_t taps_of(const view *x, const window *w, const int64_t *o, tap *taps, double *padded)
{
    const uint32_t spatial = x->rank - 2;
    int64_t first[SPATIAL_MAX];
    int64_t count[SPATIAL_MAX];
    int64_t plane[SPATIAL_MAX]; /* steps of a dense plane */
    int64_t size = 1;
    *padded = 1;
    for (uint32_t j = 0; j < spatial; j++) {
        const uint32_t i = w->is_column_major ? j : spatial - 1 - j;
        plane[i] = size;
        size *= x->dim[2 + i];
    }
    for (uint32_t i = 0; i < spatial; i++) {
        const int64_t start = o[i] * w->stride->at[i] - w->pad->at[i];
        const int64_t in = x->dim[2 + i];
        const int64_t d = w->dilation->at[i];
        const int64_t kernel = w->kernel->at[i];
        first[i] = ref_clamp(ref_ceildiv(-start, d), 0, kernel);
        count[i] = ref_clamp(ref_ceildiv(in - start, d), first[i], kernel) - first[i];
        *padded *= (double)ref_clamp(ref_ceildiv(in + w->pad->at[spatial + i] - start, d), 0, kernel);
    }
    size_t found = 0;
    int64_t k[SPATIAL_MAX];
    for (bool more = view_first(count, spatial, k); more; more = view_next(count, spatial, k)) {
        tap t = { 0 };
        for (uint32_t i = 0; i < spatial; i++) {
            const int64_t at = o[i] * w->stride->at[i] - w->pad->at[i] + (first[i] + k[i]) * w->dilation->at[i];
            t.at += at * x->stride[2 + i];
            t.index += at * plane[i];
        }
        taps[found++] = t;
    }
    return found;
}

/* What a pool does with the elements under one window. */
typedef struct pool {
    const ref_call *c;
    const tap *tap;
    size_t count;
    double padded;
    int64_t plane_size;
} pool;
typedef void pool_fn(const pool *p, int64_t x_at, int64_t plane, const int64_t *index);

static sinter_status pool_run(ref_call *c, const window *w, pool_fn *run)
{
    const view *x = &c->in[0];
    const view *y = &c->out[0];
    tap *taps = ARENA_NEW(c->scratch, tap, tap_max_of(x, w));
    if (!taps) return FAIL_MEMORY(c->e, "the window of a pool");
    pool p = { .c = c, .tap = taps, .plane_size = 1 };
    for (uint32_t i = 2; i < x->rank; i++) p.plane_size *= x->dim[i];
    int64_t index[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(y->dim + 2, y->rank - 2, index + 2); more;
         more = view_next(y->dim + 2, y->rank - 2, index + 2)) {
        p.count = taps_of(x, w, index + 2, taps, &p.padded);
        for (index[0] = 0; index[0] < y->dim[0]; index[0]++) {
            for (index[1] = 0; index[1] < y->dim[1]; index[1]++) {
                run(&p, index[0] * x->stride[0] + index[1] * x->stride[1], index[0] * y->dim[1] + index[1], index);
            }
        }
    }
    return SINTER_OK;
}

/* NaN wins; the first of equals is the one whose index is told. */
static void max_run(const pool *p, int64_t x_at, int64_t plane, const int64_t *index)
{
    const view *x = &p->c->in[0];
    const view *y = &p->c->out[0];
    const bool is_float = dtype_is_float(x->dtype);
    const bool is_u64 = x->dtype == SINTER_DTYPE_U64;
    double best = -INFINITY;
    int64_t best_int = 0;
    int64_t unused;
    int64_t best_index = p->count ? p->tap[0].index : 0;
    if (!is_float) dtype_int_range(x->dtype, &best_int, &unused);
    for (size_t t = 0; t < p->count; t++) {
        bool is_better;
        if (is_float) {
            const double v = view_load_f64(x, x_at + p->tap[t].at);
            is_better = v > best || (isnan(v) && !isnan(best));
            if (is_better) best = v;
        } else {
            const int64_t v = view_load_i64(x, x_at + p->tap[t].at);
            is_better = is_u64 ? (uint64_t)v > (uint64_t)best_int : v > best_int;
            if (is_better) best_int = v;
        }
        if (is_better) best_index = p->tap[t].index;
    }
    if (is_float) view_store_f64(y, view_offset(y, index), best);
    else view_store_i64(y, view_offset(y, index), best_int);
    if (!ref_has_out(p->c, 1)) return;
    const view *indices = &p->c->out[1];
    view_store_i64(indices, view_offset(indices, index), plane * p->plane_size + best_index);
}

static void avg_run(const pool *p, int64_t x_at, int64_t plane, const int64_t *index)
{
    const attrs_avg_pool *a = p->c->attrs;
    const view *x = &p->c->in[0];
    const view *y = &p->c->out[0];
    double sum = 0;
    (void)plane;
    for (size_t t = 0; t < p->count; t++) sum += view_load_f64(x, x_at + p->tap[t].at);
    const double divisor = a->count_pad ? p->padded : (double)p->count;
    view_store_f64(y, view_offset(y, index), divisor > 0 ? sum / divisor : 0);
}

static void lp_run(const pool *p, int64_t x_at, int64_t plane, const int64_t *index)
{
    const attrs_lp_pool *a = p->c->attrs;
    const view *x = &p->c->in[0];
    const view *y = &p->c->out[0];
    double sum = 0;
    (void)plane;
    for (size_t t = 0; t < p->count; t++) sum += pow(fabs(view_load_f64(x, x_at + p->tap[t].at)), (double)a->p);
    view_store_f64(y, view_offset(y, index), pow(sum, 1 / (double)a->p));
}

sinter_status reference_max_pool(ref_call *c)
{
    const attrs_max_pool *a = c->attrs;
    TRY(ref_check(c));
    return pool_run(c, &(window){ &a->kernel, &a->stride, &a->dilation, &a->pad, a->column_major != 0 }, max_run);
}

sinter_status reference_avg_pool(ref_call *c)
{
    const attrs_avg_pool *a = c->attrs;
    TRY(ref_check(c));
    return pool_run(c, &(window){ &a->kernel, &a->stride, &a->dilation, &a->pad, false }, avg_run);
}

sinter_status reference_lp_pool(ref_call *c)
{
    const attrs_lp_pool *a = c->attrs;
    TRY(ref_check(c));
    return pool_run(c, &(window){ &a->kernel, &a->stride, &a->dilation, &a->pad, false }, lp_run);
}

/* Indices count the elements of the result, row-major; later ones win. */
sinter_status reference_max_unpool(ref_call *c)
{
    TRY(ref_check(c));
    const view *x = &c->in[0];
    const view *indices = &c->in[1];
    const view *y = &c->out[0];
    const int64_t limit = view_count(y);
    const bool is_float = dtype_is_float(x->dtype);
    int64_t index[SINTER_RANK_MAX];
    for (bool more = view_first(y->dim, y->rank, index); more; more = view_next(y->dim, y->rank, index)) {
        view_store_i64(y, view_offset(y, index), 0);
    }
    int64_t count = 0;
    for (bool more = view_first(x->dim, x->rank, index); more; more = view_next(x->dim, x->rank, index), count++) {
        int64_t rest = view_load_i64(indices, view_offset(indices, index));
        if (rest < 0 || rest >= limit) {
            ref_fault(c, count, rest, limit);
            continue;
        }
        int64_t to = 0;
        for (uint32_t k = y->rank; k-- > 0;) {
            to += rest % y->dim[k] * y->stride[k];
            rest /= y->dim[k];
        }
        const int64_t from = view_offset(x, index);
        if (is_float) view_store_f64(y, to, view_load_f64(x, from));
        else view_store_i64(y, to, view_load_i64(x, from));
    }
    return SINTER_OK;
}
