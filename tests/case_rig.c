/* SPDX-License-Identifier: Apache-2.0 */
/* case_rig.c - operands for problems, and what results may differ by. */
#include "case_rig.h"
#include "plugin_set.h"

#include "backend/bound.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t next_bits(case_rig *r)
{
    uint64_t x = r->seed += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

double case_unit(case_rig *r)
{
    return (double)(next_bits(r) >> 11) / 9007199254740992.0;
}

uint32_t case_below(case_rig *r, uint32_t count)
{
    return (uint32_t)(next_bits(r) % count);
}

tactic case_damage(case_rig *r, const tactic *t)
{
    tactic d = *t;
    for (uint32_t left = case_below(r, 8) ? 1 : 2; left; left--) {
        uint8_t *at = &d.at[case_below(r, case_below(r, 4) ? 12 : TACTIC_SIZE)];
        const uint8_t next[] = { 0, 255, (uint8_t)(*at + 1 + case_below(r, 3)), (uint8_t)case_below(r, 256) };
        *at = next[case_below(r, 4)];
    }
    return d;
}

void case_tactics(const kernel *k, const problem *p, const kernel_target *t, tactic_sink *out)
{
    tactic_sink more = { .count = 0 };
    k->tactics(p, t, out);
    if (k->lets_in && out->count) k->lets_in(&out->at[0], &more);
    for (uint32_t i = 0; i < more.count; i++) {
        bool is_there = !k->check(p, &more.at[i]);
        for (uint32_t n = 0; n < out->count; n++)
            is_there = is_there || !memcmp(out->at[n].at, more.at[i].at, TACTIC_SIZE);
        if (!is_there && out->count < COUNT_OF(out->at)) out->at[out->count++] = more.at[i];
    }
}

void *case_guarded(case_rig *r, size_t size, int with)
{
    const size_t total = size_align(size, 64) + 2 * CASE_GUARD;
    char *at = arena_alloc(&r->a, total, 64);
    if (!at) exit(2);
    memset(at, with, total);
    return at + CASE_GUARD;
}

bool case_guards_hold(const void *data, size_t size, int with)
{
    const unsigned char *at = data;
    for (size_t i = 1; i <= CASE_GUARD; i++)
        if (*(at - i) != (unsigned char)with) return false;
    for (size_t i = size; i < size_align(size, 64) + CASE_GUARD; i++)
        if (at[i] != (unsigned char)with) return false;
    return true;
}

/* The operand at opt; strided ones get a gap after each run of the innermost axis that can have more than one element,
 * as the kernel was told by `chosen`. Returns its bytes in memory. */
static size_t operand_view(const problem_operand *o, const problem_operand *chosen, size_t pitch, view *v)
{
    *v = (view){ .dtype = o->dtype, .rank = o->rank };
    if (o->dtype == SINTER_DTYPE_NONE) return 0;
    int64_t stride = o->is_gapped ? 3 : 1;
    bool has_gap = false;
    for (uint32_t i = o->rank; i-- > 0;) {
        const uint32_t axis = o->order[i];
        v->dim[axis] = o->dim[axis].opt;
        v->stride[axis] = stride;
        stride *= v->dim[axis];
        if (!o->is_strided || has_gap || (chosen->dim[axis].max == 1 && i)) continue;
        has_gap = true;
        stride += 5;
        const int64_t unit = (int64_t)(pitch * 8 / sinter_dtype_bits(o->dtype));
        if (!o->is_gapped && unit > 1) stride = (stride + unit - 1) / unit * unit;
    }
    return ((size_t)stride * sinter_dtype_bits(o->dtype) + 7) / 8;
}

/* What a program makes of small integers and simple fractions is exact. */
static bool keeps_exact(const expr *x, bool is_prologue)
{
    for (uint32_t i = 0; x && i < x->count; i++) {
        const uint32_t op = x->at[i].op;
        if (op >= OP_SCALAR_COUNT || op_has((op_id)op, WHOLE)) continue;
        if (!is_prologue || (op != OP_mul && op != OP_cast)) return false;
    }
    return true;
}

/* Ops whose results on small integers are integers that f32 holds exactly. */
static bool is_exact(const problem *p)
{
    return op_has(p->op, WHOLE | MOVES) && !op_is_scalar(p->op) && keeps_exact(p->prologue, true) &&
           keeps_exact(p->epilogue, false);
}

double case_operations(const problem *p)
{
    view in[CASE_OPERANDS];
    double most = 0, out = 0;
    for (uint32_t i = 0; i < p->count_in + p->count_out; i++) {
        const bool is_in = i < p->count_in;
        view v;
        const problem_operand *o = is_in ? &p->in[i] : &p->out[i - p->count_in];
        (void)operand_view(o, o, 1, &v);
        if (is_in) in[i] = v;
        if (is_in) most += (double)view_count(&v);
        else out += (double)view_count(&v);
    }
    const double work = op_at(p->op)->traits & CONTRACTION ? 2 * out * problem_terms(p, in) : 0;
    return most + out > work ? most + out : work;
}

/* " of 1, nan": what an element of an elementwise result was computed from. */
static const char *operands_at(const case_trial *x, const view *out, const int64_t *index)
{
    static char list[256];
    list[0] = 0;
    if (!op_is_scalar(x->p->op) && x->p->op != OP_pointwise) return list;
    for (uint32_t i = 0, at = 0; i < x->p->count_in && at < 200; i++) {
        view v;
        if (!view_broadcast(&x->in[i], out->rank, out->dim, &v)) continue;
        at += (uint32_t)snprintf(list + at, sizeof list - at, "%s %.9g", i ? "," : " of",
                                 view_load_f64(&v, view_offset(&v, index)));
    }
    return list;
}

/* Elements of v whose first axes are those of `at`: axes of size 1 in place of them. */
static view row_of(const view *v, uint32_t axes, const int64_t *at)
{
    view row = *v;
    int64_t first[SINTER_RANK_MAX] = { 0 };
    for (uint32_t k = 0; k < axes; k++) {
        first[k] = v->dim[k] > 1 ? at[k] : 0;
        row.dim[k] = 1;
    }
    row.data = (char *)v->data + view_offset(v, first) * (int64_t)(sinter_dtype_bits(v->dtype) / 8);
    return row;
}

static double finite_rms(const view *v)
{
    double rms = 0, count = 0;
    int64_t i[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(v->dim, v->rank, i); more; more = view_next(v->dim, v->rank, i)) {
        const double w = view_load_f64(v, view_offset(v, i));
        rms += isfinite(w) ? w * w : 0;
        count += isfinite(w);
    }
    return sqrt(rms / (count > 0 ? count : 1));
}

static bool is_finite(const view *v)
{
    int64_t i[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(v->dim, v->rank, i); more; more = view_next(v->dim, v->rank, i))
        if (!isfinite(view_load_f64(v, view_offset(v, i)))) return false;
    return true;
}

/* NULL, or what result `result` has wrong. sum_rms: the least size of its sums. */
static const char *compare(const case_trial *x, uint32_t result, bool exact, kernel_bound bound, double sum_rms,
                           char *why, size_t size)
{
    const problem *p = x->p;
    const view *got = &x->out[result], *want = &x->want[result];
    const double rms = fmax(finite_rms(want), sum_rms);
    int64_t i[SINTER_RANK_MAX] = { 0 };
    /* Reductions of values of about 1 may cancel. */
    const double spread = bound.spread * (rms + (p->op == OP_reduce ? 1 : 0)) + bound.least;
    const bool counts_sign = x->is_special && case_counts_sign(p, result);
    for (bool more = view_first(want->dim, want->rank, i); more; more = view_next(want->dim, want->rank, i)) {
        const double g = view_load_f64(got, view_offset(got, i)), w = view_load_f64(want, view_offset(want, i));
        if (got->dtype == SINTER_DTYPE_BOOL && ((const uint8_t *)got->data)[view_offset(got, i)] > 1) {
            (void)snprintf(why, size, "an element is neither false nor true: 0x%02X",
                           ((const uint8_t *)got->data)[view_offset(got, i)]);
            return why;
        }
        if (isnan(g) && isnan(w)) continue;
        if (g == w && (!counts_sign || signbit(g) == signbit(w))) continue;
        if (!exact && isfinite(g) && isfinite(w) && fabs(g - w) <= bound.relative * fabs(w) + spread) continue;
        (void)snprintf(why, size, "element [%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "]%s is %.9g, wanted %.9g%s",
                       i[0], i[1], i[2], i[3], operands_at(x, want, i), g, w, exact ? " exactly" : "");
        return why;
    }
    return NULL;
}

/* Nothing between the elements of a result, which began as 0xFF, was written. */
static bool gaps_hold(case_rig *r, const view *v, size_t size)
{
    const size_t bytes = sinter_dtype_bits(v->dtype) / 8;
    if (!bytes) return true;
    unsigned char *seen = arena_alloc(&r->a, size + 1, 1);
    int64_t i[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(v->dim, v->rank, i); more; more = view_next(v->dim, v->rank, i))
        memset(seen + (size_t)view_offset(v, i) * bytes, 1, bytes);
    for (size_t k = 0; k < size; k++)
        if (!seen[k] && ((const unsigned char *)v->data)[k] != 0xFF) return false;
    return true;
}

/* The root mean square of products of values as they are here, of one term each. Sums are no smaller where an epilogue
 * bounds the results and the kernel's rounding shows. */
static const double product_rms = 4;

/* As compare, each row by its own size. */
static const char *compare_rows(const case_trial *x, kernel_numerics numerics, kernel_bound bound, char *why,
                                size_t size)
{
    case_trial row = *x;
    int64_t i[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(x->want[0].dim, x->row_axes, i); more;
         more = view_next(x->want[0].dim, x->row_axes, i)) {
        row.in[0] = row_of(&x->in[0], x->row_axes, i);
        row.out[0] = row_of(&x->out[0], x->row_axes, i);
        row.want[0] = row_of(&x->want[0], x->row_axes, i);
        /* An infinity in an image makes NaN of all results of its tile. */
        if (op_has(x->p->op, IMAGE) && numerics == KERNEL_TRANSFORMED && !is_finite(&row.in[0])) continue;
        const double sums = fmax(finite_rms(&row.in[0]), x->p->epilogue ? product_rms : 0) * sqrt(x->terms);
        char in_row[200];
        if (!compare(&row, 0, false, bound, sums, in_row, sizeof in_row)) continue;
        (void)snprintf(why, size, "row %" PRId64 ",%" PRId64 ": %s", i[0], i[1], in_row);
        return why;
    }
    return NULL;
}

const char *case_check(case_rig *r, const case_trial *x, kernel_numerics numerics, char *why, size_t size)
{
    const bool is_coarse = numerics == KERNEL_TRANSFORMED || numerics == KERNEL_RELAXED || x->is_special;
    const double sum_rms = is_coarse && x->p->epilogue ? product_rms * sqrt(x->terms)
                           : x->p->op == OP_matmul     ? sqrt(x->terms)
                                                       : 0;
    for (uint32_t i = 0; i < x->p->count_out; i++) {
        if (x->p->out[i].dtype == SINTER_DTYPE_NONE) continue;
        if (!gaps_hold(r, &x->out[i], x->out_size[i])) return "wrote between the elements of a result";
        const kernel_bound bound = bound_of(x->p, numerics, x->out[i].dtype, x->terms);
        if (x->row_axes) {
            if (compare_rows(x, numerics, bound, why, size)) return why;
        } else if (compare(x, i, x->is_exact && numerics != KERNEL_TRANSFORMED, bound, sum_rms, why, size)) return why;
    }
    return NULL;
}

static bool is_mostly_zero(const view *v)
{
    int64_t zeros = 0, count = 0;
    int64_t i[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(v->dim, v->rank, i); more; more = view_next(v->dim, v->rank, i), count++) {
        const double x = view_load_f64(v, view_offset(v, i));
        zeros += x == 0 || isnan(x);
    }
    return count > 8 && zeros * 10 > count * 9;
}

void case_rig_init(case_rig *r)
{
    *r = (case_rig){ .seed = 1 };
    sinter_env_options options = SINTER_ENV_OPTIONS;
    options.plugins = r->plugins = plugin_set_new();
    env_init(&r->e, &options, NULL);
    arena_init(&r->a, &r->e);
    arena_init(&r->scratch, &r->e);
}

void case_rig_deinit(case_rig *r)
{
    arena_deinit(&r->scratch);
    arena_deinit(&r->a);
    sinter_plugins_destroy(r->plugins);
}

const problem *case_parse(case_rig *r, const char *line, size_t length, const char **why)
{
    scan s = scan_of(line, length);
    problem *p = NULL;
    *why = NULL;
    if (!problem_parse(&r->a, &s, &p, why)) return NULL;
    if (p->count_in <= CASE_OPERANDS && p->count_out <= CASE_OPERANDS) return p;
    *why = "has too many operands";
    return NULL;
}

void case_views(const problem *p, const problem *chosen, size_t pitch, view *in, view *out)
{
    for (uint32_t i = 0; i < p->count_in; i++) (void)operand_view(&p->in[i], &chosen->in[i], pitch, &in[i]);
    for (uint32_t i = 0; i < p->count_out; i++) (void)operand_view(&p->out[i], &chosen->out[i], pitch, &out[i]);
}

const char *case_make(case_rig *r, const problem *p, case_data kind, size_t pitch, case_trial *x)
{
    return case_make_chosen(r, p, p, kind, pitch, x);
}

const char *case_make_chosen(case_rig *r, const problem *p, const problem *chosen, case_data kind, size_t pitch,
                             case_trial *x)
{
    *x = (case_trial){ .p = p };
    for (uint32_t i = 0; i < p->count_in; i++) {
        if (p->in[i].dtype == SINTER_DTYPE_NONE) continue;
        x->in_size[i] = operand_view(&p->in[i], &chosen->in[i], pitch, &x->in[i]);
        x->in[i].data = case_guarded(r, x->in_size[i], 0xFF);
        case_fill(r, p, i, &x->in[i], kind);
    }
    for (uint32_t i = 0; i < p->count_out; i++) {
        x->out_size[i] = operand_view(&p->out[i], &chosen->out[i], pitch, &x->out[i]);
        (void)operand_view(&p->out[i], &chosen->out[i], pitch, &x->want[i]);
        x->want[i].data = case_guarded(r, x->out_size[i], 0xFF);
    }
    data_fault fault = { 0 };
    ref_call c = { .e = &r->e,
                   .op = p->op,
                   .attrs = p->attrs,
                   .count_in = p->count_in,
                   .count_out = p->count_out,
                   .in = x->in,
                   .out = x->want,
                   .program = p->op == OP_pointwise ? p->epilogue : NULL,
                   .scratch = &r->scratch,
                   .fault = &fault };
    const arena_mark scratch = arena_save(&r->scratch);
    const sinter_status status = problem_reference(p, &c);
    arena_rewind(&r->scratch, scratch);
    if (status != SINTER_OK) return r->e.error->text;
    x->is_faulty = fault.is_set;
    x->is_exact = kind == CASE_INTEGERS && is_exact(p);
    x->is_special = kind == CASE_SPECIAL;
    x->row_axes = kind == CASE_ROWS ? case_row_axes(p) : 0;
    x->terms = problem_terms(p, x->in);
    bool is_any = x->is_special || x->row_axes || r->is_any || p->op == OP_nms_rows; /* sums of nothing are zero */
    is_any = is_any || (p->op == OP_div && !dtype_is_float(p->in[0].dtype));         /* by a larger number: zero */
    for (uint32_t i = 0; i < p->count_in; i++)
        is_any = is_any || (p->in[i].dtype != SINTER_DTYPE_NONE && view_count(&x->in[i]) == 0);
    return is_any || !is_mostly_zero(&x->want[0])
               ? NULL
               : "the result is mostly zero or not a number: the case proves nothing";
}
