/* SPDX-License-Identifier: Apache-2.0 */
/* row_reduce.c - reductions of f32, f64 and integers over any axes of any strides.
 *
 * Axes are sorted by how they lie and merged. Adjacent results are made together: where the innermost axis is kept,
 * columns are folded, several rows at a time; where it is reduced, one run for each result. Both read memory in order.
 * Long sums of f32 are cut and the parts added in double. Other types are folded in their own type, or in i64 or f64,
 * where the kind or the lack of a loop demands it; integers wrap. */
#include "cpu/cpu_kernels.h"
#include "cpu/cpu_move.h"
#include "cpu/level.h"
#include "cpu/row.h"
#include "cpu/rows.h"

#include "core/dtype.h"

#include <math.h>
#include <string.h>

/* SHORT: runs of at most so many numbers are turned into columns, TURNED runs at a time. ROWS_RUN: rows that are added
 * in f32, four by four. Numbers that are alike round alike, so a long sum would drift. NARROW: columns that fill
 * vectors. */
enum { RUN = 4096, SHORT = 16, TURNED = 512, NARROW = 64, ROWS_RUN = 256, COLS = 1024, TILE_ELEMENTS = 16384 };

typedef struct axis {
    int64_t dim, in, out;
} axis;

typedef struct record {
    const rows_set *set;
    axis kept[SINTER_RANK_MAX], gone[SINTER_RANK_MAX]; /* the last of each is the innermost in memory */
    uint32_t kept_count, gone_count;
    int64_t kept_total, gone_total; /* kept: without the innermost */
    axis inner;                     /* the innermost that is kept */
    bool is_cols;
    int64_t piece;  /* results along `inner` that are made together, at most COLS */
    int64_t enough; /* results of a tile */
    int64_t kind;   /* reduce_kind */
    rows_fold fold;
    rows_fold_fn *folds;  /* NULL: f32 */
    bool is_own;          /* it takes numbers of the input's type */
    rows_widen_fn *widen; /* numbers that are not adjacent, or not of the type that is folded */
    sinter_dtype type, wide;
    int64_t size, wide_size; /* of an element, and of one that is folded, in bytes */
    row_after after;
} record;

/* The type that a kind is folded in; NONE: there is no way. */
static sinter_dtype folded_in(sinter_dtype type, int64_t kind)
{
    const bool is_real = kind == reduce_kind_l2 || kind == reduce_kind_log_sum_exp;
    const bool is_extreme = kind == reduce_kind_max || kind == reduce_kind_min;
    if (type == SINTER_DTYPE_F32 || type == SINTER_DTYPE_F64) return type;
    /* A small sum of large integers, in f64, depends on their order. */
    if (kind == reduce_kind_log_sum) return SINTER_DTYPE_NONE;
    switch (type) {
    case SINTER_DTYPE_I8:
    case SINTER_DTYPE_U8: return is_real ? SINTER_DTYPE_F64 : is_extreme ? type : SINTER_DTYPE_I64;
    case SINTER_DTYPE_I32: return is_real ? SINTER_DTYPE_F64 : kind != reduce_kind_mean ? type : SINTER_DTYPE_I64;
    case SINTER_DTYPE_I16:
    case SINTER_DTYPE_U16:
    case SINTER_DTYPE_U32: return is_real ? SINTER_DTYPE_F64 : SINTER_DTYPE_I64;
    case SINTER_DTYPE_I64:
    case SINTER_DTYPE_U64: return is_real ? SINTER_DTYPE_F64 : type;
    default: return SINTER_DTYPE_NONE;
    }
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_reduce, "not a reduction");
    const sinter_dtype type = p->in[0].dtype;
    REJECT_UNLESS(folded_in(type, ((const attrs_reduce *)p->attrs)->kind), "a type without loops for it");
    if (type != SINTER_DTYPE_F32) {
        REJECT_UNLESS(!p->prologue && !p->epilogue, "programs, and not f32");
        REJECT_UNLESS(!p->out[0].is_strided, "the result is strided");
        return NULL;
    }
    REJECT_UNLESS(row_is_f32(p, 1), "the result is not f32");
    return row_after_reject(p);
}

/* The input's innermost axis is kept, and is not the result's: neither runs nor columns, so one element at a time. */
static bool is_scattered(const problem *p)
{
    const attrs_reduce *a = p->attrs;
    const problem_operand *x = &p->in[0], *y = &p->out[0];
    if (!x->rank || !y->rank) return false;
    const uint32_t last = x->order[x->rank - 1];
    uint32_t before = 0;
    for (uint32_t i = 0; i < a->axes.count; i++) {
        if (a->axes.at[i] == last) return false;
        before += a->axes.at[i] < last && !a->keep;
    }
    return y->order[y->rank - 1] != last - before;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    const double threads = target->threads ? target->threads : 1;
    return row_memory_ns(p, target, 1) + (is_scattered(p) ? row_operand_bytes(&p->in[0]) * 2.5 / threads : 0);
}

static int64_t magnitude(int64_t v)
{
    return v < 0 ? -v : v;
}

/* Appends in order of falling strides, then merges neighbours. */
static uint32_t sort(axis *at, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t k = i; k > 0 && magnitude(at[k - 1].in) < magnitude(at[k].in); k--) {
            const axis x = at[k];
            at[k] = at[k - 1];
            at[k - 1] = x;
        }
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        axis *last = n ? &at[n - 1] : NULL;
        if (last && last->in == at[i].in * at[i].dim && last->out == at[i].out * at[i].dim)
            *last = (axis){ last->dim * at[i].dim, at[i].in, at[i].out };
        else at[n++] = at[i];
    }
    return n;
}

static int64_t total(const axis *at, uint32_t count)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < count; i++) n *= at[i].dim;
    return n;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const attrs_reduce *a = attrs;
    static const rows_fold folds[reduce_kind_count] = {
        [reduce_kind_sum] = ROWS_SUM,         [reduce_kind_mean] = ROWS_SUM,    [reduce_kind_max] = ROWS_MAX,
        [reduce_kind_min] = ROWS_MIN,         [reduce_kind_prod] = ROWS_PROD,   [reduce_kind_l1] = ROWS_ABS,
        [reduce_kind_l2] = ROWS_SQUARE,       [reduce_kind_log_sum] = ROWS_SUM, [reduce_kind_sum_square] = ROWS_SQUARE,
        [reduce_kind_log_sum_exp] = ROWS_MAX,
    };
    r->set = level_of(isa)->rows;
    r->kind = a->kind;
    r->fold = folds[a->kind];
    r->type = in[0].dtype;
    r->wide = folded_in(r->type, a->kind);
    r->size = sinter_dtype_bits(r->type) / 8;
    r->wide_size = sinter_dtype_bits(r->wide) / 8;
    r->folds = r->fold == ROWS_SUM && r->wide == SINTER_DTYPE_I64 ? r->set->sum_widened_of(r->type) : NULL;
    r->is_own = r->folds || r->type == r->wide;
    if (!r->folds) r->folds = r->set->fold_of(r->fold, r->wide);
    r->widen = r->set->widen_of(r->type, r->is_own ? r->type : r->wide);
    r->kept_count = r->gone_count = 0;
    uint32_t to_axis = 0;
    for (uint32_t i = 0; i < in[0].rank; i++) {
        bool is_gone = false;
        for (uint32_t k = 0; k < a->axes.count; k++) is_gone = is_gone || a->axes.at[k] == i;
        const axis x = { in[0].dim[i], in[0].stride[i], is_gone ? 0 : out[0].stride[to_axis] };
        if (!is_gone || a->keep) to_axis++;
        if (x.dim == 1) continue;
        if (is_gone) r->gone[r->gone_count++] = x;
        else r->kept[r->kept_count++] = x;
    }
    r->kept_count = sort(r->kept, r->kept_count);
    r->gone_count = sort(r->gone, r->gone_count);
    const axis *g = r->gone_count ? &r->gone[r->gone_count - 1] : NULL;
    r->inner = r->kept_count ? r->kept[--r->kept_count] : (axis){ 1, 0, 0 };
    r->is_cols = r->inner.in == 1 && r->inner.out == 1 && (!g || magnitude(g->in) != 1);
    r->gone_total = total(r->gone, r->gone_count);
    r->kept_total = total(r->kept, r->kept_count);
    /* Results of long runs are made one at a time: there is work for all threads. */
    const int64_t enough = r->gone_total > 0 ? TILE_ELEMENTS / r->gone_total : COLS;
    /* Where runs lie in several places, those of a few results are read at each. */
    const int64_t near = r->gone_count > 1 && g->dim > 0 ? RUN / g->dim : 1, least = near > enough ? near : enough;
    r->piece = r->is_cols ? COLS : least > COLS / 4 ? COLS / 4 : least < 1 ? 1 : least;
    r->enough = enough;
    return row_after_bind(e, p, isa, in, out, &r->after, r + 1);
}

static int64_t seek(const axis *at, uint32_t count, int64_t index, int64_t *out)
{
    int64_t in = 0;
    *out = 0;
    for (uint32_t i = count; i-- > 0;) {
        const int64_t x = index % at[i].dim;
        index /= at[i].dim;
        in += x * at[i].in;
        *out += x * at[i].out;
    }
    return in;
}

static double seed(rows_fold fold)
{
    return fold == ROWS_MAX ? -INFINITY : fold == ROWS_MIN ? INFINITY : fold == ROWS_PROD ? 1 : 0;
}

static void join(rows_fold fold, double *v, const float *part, int64_t n)
{
    switch (fold) {
    case ROWS_MAX:
        for (int64_t i = 0; i < n; i++) v[i] = isnan(v[i]) || (double)part[i] <= v[i] ? v[i] : (double)part[i];
        break;
    case ROWS_MIN:
        for (int64_t i = 0; i < n; i++) v[i] = isnan(v[i]) || (double)part[i] >= v[i] ? v[i] : (double)part[i];
        break;
    case ROWS_PROD:
        for (int64_t i = 0; i < n; i++) v[i] *= (double)part[i];
        break;
    default:
        for (int64_t i = 0; i < n; i++) v[i] += (double)part[i];
        break;
    }
}

/* Results of the sums v, `step` apart. */
static void finish(const record *r, float *y, int64_t step, const double *v, int64_t count)
{
    const double n = (double)r->gone_total;
    switch (r->kind) {
    case reduce_kind_mean:
        for (int64_t i = 0; i < count; i++) y[i * step] = (float)(v[i] * (1 / n));
        break;
    case reduce_kind_l2:
        for (int64_t i = 0; i < count; i++) y[i * step] = (float)sqrt(v[i]);
        break;
    case reduce_kind_log_sum:
        for (int64_t i = 0; i < count; i++) y[i * step] = (float)log(v[i]);
        break;
    default:
        for (int64_t i = 0; i < count; i++) y[i * step] = (float)v[i];
        break;
    }
}

/* How many of n rows of `count` columns are folded as one row: those of a few columns that follow each other fill no
 * vector. */
static int64_t rows_side_by_side(const axis *run, int64_t count, int64_t n)
{
    return run->in == count && count <= NARROW / 4 && count * n >= 2 * NARROW ? NARROW / count : 1;
}

/* What joins two folds. */
static rows_fold join_of(rows_fold fold)
{
    return fold == ROWS_ABS || fold == ROWS_SQUARE ? ROWS_SUM : fold;
}

/* The folds of n numbers of the innermost reduced axis, for `count` adjacent results. */
static void fold_part(const record *r, float *part, const float *x, const axis *run, int64_t count, int64_t n)
{
    if (r->is_cols) {
        for (int64_t c = 0; c < count; c++) part[c] = (float)seed(r->fold);
        const int64_t rows = rows_side_by_side(run, count, n), whole = rows > 1 ? n / rows : 0;
        if (whole > 1) {
            float side[NARROW];
            for (int64_t c = 0; c < rows * count; c++) side[c] = (float)seed(r->fold);
            r->set->fold_cols(r->fold, side, x, whole, rows * count, rows * count);
            r->set->fold_cols(join_of(r->fold), part, side, rows, count, count);
            x += whole * rows * count;
            n -= whole * rows;
        }
        r->set->fold_cols(r->fold, part, x, n, run->in, count);
        return;
    }
    if (run->in == 1 && n > 1 && n <= SHORT && count >= SHORT / 2 && r->inner.in > 0) {
        float turned[SHORT * TURNED];
        for (int64_t c = 0; c < count; c++) part[c] = (float)seed(r->fold);
        for (int64_t c = 0, some; c < count; c += some) {
            some = count - c < TURNED ? count - c : TURNED;
            const char *from = (const char *)(x + c * r->inner.in);
            move_transpose(4, (char *)turned, some * 4, from, r->inner.in * 4, n, some);
            r->set->fold_cols(r->fold, part + c, turned, n, some, some);
        }
        return;
    }
    if (run->in == 1 || n == 1) {
        r->set->fold_rows(r->fold, part, x, count, r->inner.in, n);
        return;
    }
    float row[RUN];
    for (int64_t c = 0; c < count; c++, x += r->inner.in) {
        for (int64_t i = 0; i < n; i++) row[i] = x[i * run->in];
        r->set->fold_rows(r->fold, part + c, row, 1, 0, n);
    }
}

/* Up to COLS adjacent results. */
static void fold_results(const record *r, void *to, const void *from, int64_t count)
{
    float *y = to;
    const float *x = from;
    double v[COLS];
    float part[COLS];
    const axis one = { 1, 0, 0 }, *run = r->gone_count ? &r->gone[r->gone_count - 1] : &one;
    const int64_t outer = run->dim ? r->gone_total / run->dim : 0, piece = r->is_cols ? ROWS_RUN : RUN;
    if (outer == 1 && run->dim <= piece) { /* the only part is all */
        const bool is_double = r->kind == reduce_kind_mean || r->kind == reduce_kind_log_sum;
        float *folds = !is_double && r->inner.out == 1 ? y : part;
        fold_part(r, folds, x, run, count, run->dim);
        if (folds == y && r->kind == reduce_kind_l2) r->set->root(y, count);
        if (folds == y) return;
        for (int64_t c = 0; c < count; c++) v[c] = (double)part[c];
        finish(r, y, r->inner.out, v, count);
        return;
    }
    for (int64_t c = 0; c < count; c++) v[c] = seed(r->fold);
    for (int64_t i = 0; i < outer; i++) {
        int64_t none;
        const float *at = x + seek(r->gone, r->gone_count ? r->gone_count - 1 : 0, i, &none);
        for (int64_t k = 0; k < run->dim; k += piece) {
            fold_part(r, part, at + k * run->in, run, count, run->dim - k < piece ? run->dim - k : piece);
            join(r->fold, v, part, count);
        }
    }
    finish(r, y, r->inner.out, v, count);
}

static void seed_wide(const record *r, char *acc, int64_t count)
{
    int64_t min, max;
    dtype_int_range(r->type, &min, &max);
    if (r->type == SINTER_DTYPE_U64) max = -1;
    if (r->wide == SINTER_DTYPE_F64) dtype_store_f64(r->wide, acc, 0, seed(r->fold));
    else dtype_store_i64(r->wide, acc, 0, r->fold == ROWS_MAX ? min : r->fold == ROWS_MIN ? max : r->fold == ROWS_PROD);
    for (int64_t done = 1; done < count; done *= 2)
        memcpy(acc + done * r->wide_size, acc, (size_t)((done < count - done ? done : count - done) * r->wide_size));
}

/* Results of the folds, `step` apart. */
static void finish_wide(const record *r, void *y, int64_t step, void *acc, int64_t count)
{
    double *real = acc;
    int64_t *whole = acc;
    const double n = (double)r->gone_total;
    const bool is_real = r->wide == SINTER_DTYPE_F64, is_mean = r->kind == reduce_kind_mean;
    for (int64_t c = 0; is_real && is_mean && c < count; c++) real[c] /= n;
    for (int64_t c = 0; r->kind == reduce_kind_l2 && c < count; c++) real[c] = sqrt(real[c]);
    for (int64_t c = 0; r->kind == reduce_kind_log_sum && c < count; c++) real[c] = log(real[c]);
    for (int64_t c = 0; !is_real && is_mean && c < count; c++) {
        if (!r->gone_total) whole[c] = 0;
        else if (r->wide == SINTER_DTYPE_I64) whole[c] /= r->gone_total;
        else whole[c] = (int64_t)((uint64_t)whole[c] / (uint64_t)r->gone_total);
    }
    if (r->type == r->wide && step == 1) {
        memcpy(y, acc, (size_t)(count * r->size));
        return;
    }
    for (int64_t c = 0; c < count; c++) {
        if (r->type == r->wide) dtype_move(r->type, y, c * step, acc, c);
        else if (is_real) dtype_store_f64(r->type, y, c * step, trunc(real[c]));
        else dtype_store_i64(r->type, y, c * step, whole[c]);
    }
}

/* acc folds with the runs of `count` adjacent results. */
static void fold_runs(const record *r, char *acc, const char *from, int64_t count)
{
    int64_t wide[RUN / 2], none; /* of any type */
    const axis one = { 1, 0, 0 }, *run = r->gone_count ? &r->gone[r->gone_count - 1] : &one;
    const int64_t outer = run->dim ? r->gone_total / run->dim : 0;
    const int64_t some = r->is_cols ? RUN / 2 / count : RUN / 2; /* rows of columns, or numbers of a run */
    const bool is_short =
        !r->is_cols && run->in == 1 && r->inner.in > 0 && run->dim > 0 && run->dim <= SHORT && r->size >= 4;
    for (int64_t i = 0; i < outer; i++) {
        const char *x = from + seek(r->gone, r->gone_count ? r->gone_count - 1 : 0, i, &none) * r->size;
        for (int64_t c = 0, n; is_short && r->type == r->wide && c < count; c += n) {
            n = count - c < RUN / 2 / run->dim ? count - c : RUN / 2 / run->dim;
            move_transpose((uint32_t)r->size, (char *)wide, n * r->size, x + c * r->inner.in * r->size,
                           r->inner.in * r->size, run->dim, n);
            r->folds(acc + c * r->wide_size, wide, run->dim, n, n, 1);
        }
        if (is_short && r->type == r->wide) continue;
        const int64_t rows = r->is_cols ? rows_side_by_side(run, count, run->dim) : 1, whole = run->dim / rows;
        if (rows > 1 && r->type == r->wide) {
            seed_wide(r, (char *)wide, rows * count);
            r->folds(wide, x, whole, rows * count, rows * count, 1);
            r->set->fold_of(join_of(r->fold), r->wide)(acc, wide, rows, count, count, 1);
            r->folds(acc, x + whole * rows * count * r->size, run->dim - whole * rows, run->in, count, 1);
            continue;
        }
        if (r->is_own && (r->is_cols || run->in == 1 || run->dim == 1)) {
            r->folds(acc, x, run->dim, r->is_cols ? run->in : 1, count, r->is_cols ? 1 : r->inner.in);
            continue;
        }
        for (int64_t k = 0, n; r->is_cols && k < run->dim; k += n) {
            n = run->dim - k < some ? run->dim - k : some;
            for (int64_t m = 0; m < n; m++)
                r->widen(wide + m * count, x + (k + m) * run->in * r->size, count, 1); /* to i64 or f64 */
            r->folds(acc, wide, n, count, count, 1);
        }
        for (int64_t c = 0; !r->is_cols && c < count; c++, x += r->inner.in * r->size)
            for (int64_t k = 0, n; k < run->dim; k += n) {
                n = run->dim - k < some ? run->dim - k : some;
                r->widen(wide, x + k * run->in * r->size, n, run->in);
                r->folds(acc + c * r->wide_size, wide, n, 1, 1, 0);
            }
    }
}

/* The logarithm of the sum of exponentials of each of `count` adjacent results, whose largest number is top[c]. */
static void exponents_wide(const record *r, double *top, const char *from, int64_t count)
{
    const axis one = { 1, 0, 0 }, *run = r->gone_count ? &r->gone[r->gone_count - 1] : &one;
    const int64_t outer = run->dim ? r->gone_total / run->dim : 0;
    double wide[RUN / 2];
    for (int64_t c = 0; c < count; c++, from += r->inner.in * r->size) {
        double sum = 0;
        for (int64_t i = 0; i < outer && isfinite(top[c]); i++) {
            int64_t none;
            const char *x = from + seek(r->gone, r->gone_count ? r->gone_count - 1 : 0, i, &none) * r->size;
            for (int64_t k = 0, n; k < run->dim; k += n) {
                n = run->dim - k < RUN / 2 ? run->dim - k : RUN / 2;
                r->widen(wide, x + k * run->in * r->size, n, run->in);
                for (int64_t m = 0; m < n; m++) sum += exp(wide[m] - top[c]);
            }
        }
        if (isfinite(top[c])) top[c] += log(sum);
    }
}

/* The same of all types but f32. */
static void fold_wide(const record *r, void *to, const void *from, int64_t count)
{
    int64_t acc[COLS]; /* of any type */
    seed_wide(r, (char *)acc, count);
    fold_runs(r, (char *)acc, from, count);
    if (r->kind == reduce_kind_log_sum_exp) exponents_wide(r, (void *)acc, from, count);
    finish_wide(r, to, r->inner.out, acc, count);
}

/* Numbers [k, k + n) of the innermost reduced axis at `at`, in `row` where these are not adjacent. */
static const float *piece_of(const axis *run, const float *at, int64_t k, int64_t n, float *row)
{
    if (run->in == 1 || n == 1) return at + k * run->in;
    for (int64_t i = 0; i < n; i++) row[i] = at[(k + i) * run->in];
    return row;
}

/* The largest number first, then the sum of exponentials below it: `pass` 0 gives the one, 1 the other. */
static double exponent_pass(const record *r, const float *x, int pass, float top)
{
    const axis one = { 1, 0, 0 }, *run = r->gone_count ? &r->gone[r->gone_count - 1] : &one;
    const int64_t outer = run->dim ? r->gone_total / run->dim : 0;
    double v = pass ? 0 : -INFINITY;
    float row[RUN];
    for (int64_t i = 0; i < outer; i++) {
        int64_t none;
        const float *at = x + seek(r->gone, r->gone_count ? r->gone_count - 1 : 0, i, &none);
        for (int64_t k = 0; k < run->dim; k += RUN) {
            const int64_t n = run->dim - k < RUN ? run->dim - k : RUN;
            const float *part = piece_of(run, at, k, n, row);
            float found;
            if (pass) found = r->set->sum_exp(part, n, top);
            else r->set->fold_rows(ROWS_MAX, &found, part, 1, 0, n);
            join(pass ? ROWS_SUM : ROWS_MAX, &v, &found, 1);
        }
    }
    return v;
}

static void exponents(const record *r, void *to, const void *from, int64_t count)
{
    float *y = to;
    const float *x = from;
    for (int64_t c = 0; c < count; c++, x += r->inner.in, y += r->inner.out) {
        const float top = (float)exponent_pass(r, x, 0, 0);
        *y = isfinite(top) ? (float)((double)top + log(exponent_pass(r, x, 1, top))) : top;
    }
}

typedef struct job {
    const record *r;
    const char *x;
    char *y;
    int64_t piece, pieces, unit; /* results of a piece, pieces of the innermost axis, pieces of a tile */
} job;

static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    const int64_t size = r->size, all = r->kept_total * j->pieces;
    const int64_t stop = end * j->unit < all ? end * j->unit : all;
    for (int64_t i = begin * j->unit; i < stop; i++) {
        int64_t out;
        const int64_t at = seek(r->kept, r->kept_count, i / j->pieces, &out), first = i % j->pieces * j->piece;
        const int64_t left = r->inner.dim - first;
        (r->wide != SINTER_DTYPE_F32          ? fold_wide
         : r->kind == reduce_kind_log_sum_exp ? exponents
                                              : fold_results)(r, j->y + (out + first * r->inner.out) * size,
                                                              j->x + (at + first * r->inner.in) * size,
                                                              left < j->piece ? left : j->piece);
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    /* Rows are cut where several threads would have too few tiles; else they are read from end to end. */
    const bool is_cut = r->is_cols && r->kept_total < 8 && row_threads(k) > 1;
    job j = { .r = r, .x = k->in[0], .y = k->out[0], .piece = is_cut ? COLS / 4 : r->piece };
    const int64_t width = r->inner.dim < j.piece ? r->inner.dim : j.piece;
    j.pieces = (r->inner.dim + j.piece - 1) / j.piece;
    j.unit = width > 0 && r->enough > width ? r->enough / width : 1;
    row_parallel(k, (r->kept_total * j.pieces + j.unit - 1) / j.unit, body, &j);
    row_after_all(&r->after, k, k->out[0]);
    return SINTER_OK;
}

const kernel cpu_reduce = {
    .name = "cpu_reduce",
    .abi = 1,
    .reject = reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record = sizeof(record),
    .record_size = row_record_room,
    .bind = bind,
    .run = run,
};
