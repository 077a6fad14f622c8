/* SPDX-License-Identifier: Apache-2.0 */
/* row_lines.c - reductions, softmax and normalisations: rows.cu where the axis that is innermost in memory goes,
 * columns.cu where it stays, and a second launch where lines are few and long.
 *
 * All rows of this file share tactics: how many threads take a line, how many elements each holds, and over how many
 * blocks a line is split. The cost model ranks them; there is always one that takes any length. */
#include "cuda/kernels.h"
#include "cuda/lines.h"

#include "cuda/device/line_args.h"

#include <string.h>

typedef struct line_args line_args;
typedef enum form { FORM_ROWS, FORM_COLUMNS, FORM_GROUPS } form;

/* clang-format off */
typedef struct line_tactic {
    uint8_t  form, vector, items, cluster;  /* items: vectors a thread holds; 0: passes; cluster: the splits are one */
    uint16_t across;                        /* rows: threads a row; columns: threads side by side */
    uint16_t block;
    uint16_t splits;                        /* blocks a line; 1, or a cluster: one launch */
    uint8_t  rest[TACTIC_SIZE - 10];
} line_tactic;
_Static_assert(sizeof(line_tactic) == TACTIC_SIZE, "a tactic is overlaid");

typedef struct size { int64_t max, opt; } size;
typedef struct shape {
    /* length: elements of a line; rows: lines, of columns without the innermost axis */
    size inner, length, lines, rows;
    uint32_t bytes;                         /* of an element */
} shape;
/* clang-format on */

enum { HELD_MOST = 32, SPLITS_MOST = 512, GROUP_MOST = 1024, JOIN_ACROSS = 32, JOIN_DOWN = 8 };

static line_tactic tactic_of(const tactic *t)
{
    line_tactic x;
    memcpy(&x, t, sizeof x);
    return x;
}

static uint32_t launches_of(const line_tactic *t)
{
    return t->splits > 1 && !t->cluster ? 2 : 1;
}

static bool is_reduction(const problem *p)
{
    return p->op == OP_reduce || p->op == OP_arg_reduce;
}

/* The type that the anchor works on. */
static sinter_dtype input_type(const problem *p)
{
    for (uint32_t i = 0; p->prologue && i < p->prologue->count; i++)
        if (p->prologue->at[i].op == EXPR_STORE) return (sinter_dtype)p->prologue->at[i].dtype;
    return p->in[0].dtype;
}

static enum line_op line_op_of(const problem *p)
{
    switch (p->op) {
    case OP_reduce: return (enum line_op)((const attrs_reduce *)p->attrs)->kind;
    case OP_arg_reduce: return ((const attrs_arg_reduce *)p->attrs)->is_max ? LINE_ARG_MAX : LINE_ARG_MIN;
    case OP_softmax: return LINE_SOFTMAX;
    case OP_log_softmax: return LINE_LOG_SOFTMAX;
    case OP_rms_norm: return LINE_RMS;
    case OP_lp_norm: return LINE_LP;
    default: return LINE_LAYER;
    }
}

static int line_type_of(sinter_dtype dtype)
{
    switch (dtype) {
    case SINTER_DTYPE_F32: return LINE_F32;
    case SINTER_DTYPE_F64: return LINE_F64;
    case SINTER_DTYPE_F16: return LINE_F16;
    case SINTER_DTYPE_BF16: return LINE_BF16;
    case SINTER_DTYPE_I8: return LINE_I8;
    case SINTER_DTYPE_U8: return LINE_U8;
    case SINTER_DTYPE_I16: return LINE_I16;
    case SINTER_DTYPE_U16: return LINE_U16;
    case SINTER_DTYPE_I32: return LINE_I32;
    case SINTER_DTYPE_U32: return LINE_U32;
    case SINTER_DTYPE_I64: return LINE_I64;
    case SINTER_DTYPE_U64: return LINE_U64;
    case SINTER_DTYPE_BOOL: return LINE_BOOL;
    default: return -1;
    }
}

static enum line_acc acc_of(const problem *p)
{
    const sinter_dtype t = input_type(p);
    return t == SINTER_DTYPE_F64 ? LINE_ACC_F64 : dtype_is_float(t) ? LINE_ACC_F32 : LINE_ACC_I64;
}

static uint32_t state_size(const problem *p)
{
    const enum line_op op = line_op_of(p);
    const bool is_two = op == LINE_LOG_SUM_EXP || op == LINE_SOFTMAX || op == LINE_LOG_SOFTMAX || op == LINE_LAYER ||
                        p->op == OP_arg_reduce;
    return (acc_of(p) == LINE_ACC_F32 ? 4u : 8u) * (is_two ? 2u : 1u);
}

static void size_times(size *s, dim_range d)
{
    if (!i64_mul(s->max, d.max, &s->max)) s->max = INT64_MAX;
    if (!i64_mul(s->opt, d.opt, &s->opt)) s->opt = INT64_MAX;
}

static void shape_of(const lines *l, shape *s)
{
    const problem_operand *x = &l->in[0];
    const size one = { 1, 1 };
    s->inner = s->length = s->lines = s->rows = one;
    s->bytes = sinter_dtype_bits(x->dtype) / 8;
    size_times(&s->inner, x->dim[l->inner]);
    for (uint32_t i = 0; i < l->gone_count; i++) size_times(&s->length, x->dim[l->gone[i]]);
    for (uint32_t i = 0; i < l->kept_count; i++) {
        size_times(&s->lines, x->dim[l->kept[i]]);
        if (l->is_rows || l->kept[i] != l->inner) size_times(&s->rows, x->dim[l->kept[i]]);
    }
}

static int64_t ceildiv(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* The vectors of a line of so many elements, whose innermost axis has `inner`. */
static int64_t vectors(int64_t length, int64_t inner, uint32_t vector)
{
    return inner > 0 ? length / inner * ceildiv(inner, vector) : 0;
}

/* ---- spaces of the programs ---- */

static sinter_dtype acc_type(const problem *p)
{
    const enum line_acc a = acc_of(p);
    return a == LINE_ACC_F32 ? SINTER_DTYPE_F32 : a == LINE_ACC_F64 ? SINTER_DTYPE_F64 : SINTER_DTYPE_I64;
}

/* The axis along which results of rows are adjacent: the last kept one. */
static uint8_t outer_axis(const lines *l)
{
    return l->kept_count ? l->kept[l->kept_count - 1] : 0;
}

static emit_space space_of(const lines *l, bool is_prologue, uint32_t vector)
{
    const problem *p = &l->p;
    emit_space s = { .p = p,
                     .program = is_prologue ? p->prologue : p->epilogue,
                     .prefix = is_prologue ? "pro" : "epi",
                     .rank = l->rank,
                     .inner = l->inner,
                     .width = vector,
                     .acc = acc_type(p) };
    for (uint32_t m = 0; m < l->rank; m++) s.dim[m] = p->in[0].dim[m];
    if (is_prologue || !is_reduction(p)) return s;
    for (uint32_t m = 0; m < l->rank; m++)
        if (l->gone_mask >> m & 1u) s.dim[m] = (dim_range){ 1, 1, 1, 1 };
    if (l->is_rows) s.inner = outer_axis(l);
    return s;
}

static const char *reject_lines(const problem *p, const lines *l)
{
    const int type = line_type_of(input_type(p));
    REJECT_UNLESS(type >= 0 && line_type_of(p->in[0].dtype) >= 0, "a type of 8-bit floats or under a byte");
    if (!dtype_is_float(input_type(p))) {
        const enum line_op op = line_op_of(p);
        REJECT_UNLESS(is_reduction(p), "not of floats");
        REJECT_UNLESS(op != LINE_L2 && op != LINE_LOG_SUM && op != LINE_LOG_SUM_EXP, "a norm or logarithm of integers");
    }
    const emit_space after = space_of(l, false, 8), before = space_of(l, true, 8);
    const char *why = emit_reject(&after);
    if (!why && p->prologue) why = emit_reject(&before);
    if (why) return why;
    if (p->op == OP_layer_norm && !p->epilogue)
        for (uint32_t i = 1; i < p->count_out; i++)
            REJECT_UNLESS(p->out[i].dtype == SINTER_DTYPE_NONE || p->out[i].dtype == acc_type(p),
                          "statistics of another type");
    shape s;
    shape_of(l, &s);
    /* Sizes without bound are checked when they are known. */
    REJECT_UNLESS(s.length.opt < INT32_MAX && s.lines.opt < INT32_MAX, "more than 2^31 elements or lines");
    return NULL;
}

static const char *reject(const problem *p)
{
    lines l;
    const char *why = lines_of(p, false, &l);
    return why ? why : reject_lines(p, &l);
}

/* ---- tactics ---- */

static uint32_t vector_of(const lines *l, const shape *s)
{
    uint32_t most = s->bytes ? 16 / s->bytes : 1;
    return cuda_operand_vector(&l->in[0], most > 8 ? 8 : most);
}

static int64_t power_above(int64_t x)
{
    int64_t p = 1;
    while (p < x && p < 4096) p *= 2;
    return p;
}

/* Is this tactic sound for every size in range? */
static bool is_sound(const problem *p, const lines *l, const line_tactic *t)
{
    shape s;
    shape_of(l, &s);
    const uint32_t most = vector_of(l, &s);
    if (!t->vector || t->vector > most || most % t->vector) return false;
    if (!t->across || (t->across & (t->across - 1)) || t->block < 32 || t->block > 1024 || t->block & (t->block - 1))
        return false;
    if (t->across > t->block || !t->splits || t->splits > SPLITS_MOST) return false;
    if (t->cluster > 1 || (t->cluster && t->splits != 2 && t->splits != 4 && t->splits != 8)) return false;
    if (t->cluster && (t->form == FORM_GROUPS || (t->form == FORM_ROWS && t->across != t->block))) return false;
    if (!t->cluster && t->splits > 1 && (t->items || s.lines.max >= INT32_MAX)) return false;
    if (t->form == FORM_ROWS) {
        if (!l->is_rows || (t->splits > 1 && t->across != t->block)) return false;
        if (t->across > 32 && t->across != t->block) return false;
    } else if (l->is_rows) {
        return false;
    }
    if (t->form == FORM_GROUPS) {
        const int64_t groups = ((const attrs_group_norm *)p->attrs)->groups;
        if (p->op != OP_group_norm || groups < 2 || t->splits < 2 || t->items) return false;
        if (!problem_dim_is_static(p->in[0].dim[1]) || p->in[0].dim[1].max / groups > GROUP_MOST) return false;
    }
    if (!t->items) return true;
    if (is_reduction(p)) return false;
    const uint32_t held = t->items * t->vector;
    if (held > (acc_of(p) == LINE_ACC_F64 ? HELD_MOST / 2 : HELD_MOST)) return false;
    const int64_t each = (t->form == FORM_ROWS ? t->across : t->block / t->across) * (t->cluster ? t->splits : 1);
    const int64_t count = t->form == FORM_ROWS ? vectors(s.length.max, s.inner.max, t->vector) : s.length.max;
    /* Where several gone axes vary, the number of vectors may be larger than at their upper bounds. */
    if (t->form == FORM_ROWS && l->gone_count > 1 && s.inner.max != INT64_MAX &&
        !problem_dim_is_static(l->in[0].dim[l->inner]))
        return false;
    return s.length.max < INT32_MAX && count <= each * t->items;
}

static uint32_t shared_bytes(const problem *p, const line_tactic *t)
{
    const uint32_t state = state_size(p) < 16 ? 16 : state_size(p);
    if (t->form == FORM_ROWS) return t->cluster || t->across > 32 ? 2 * 32 * 16 + 2 * state : 0;
    const uint32_t seats = (uint32_t)(t->across < 32 ? t->block / 32 : t->block / t->across);
    uint32_t bytes = seats > 1 ? seats * t->vector * t->across * state_size(p) : 0;
    if (t->cluster) bytes = (seats + 3) * t->vector * t->across * state_size(p);
    if (t->form == FORM_GROUPS) {
        const uint32_t each = (uint32_t)(p->in[0].dim[1].max / ((const attrs_group_norm *)p->attrs)->groups);
        const uint32_t joined = (t->across * t->vector + 2 * each) * state_size(p);
        if (joined > bytes) bytes = joined;
    }
    return bytes;
}

static int64_t blocks_of(const line_tactic *t, int64_t inner, int64_t rows)
{
    if (t->form == FORM_ROWS) return t->splits > 1 ? rows * t->splits : ceildiv(rows, t->block / t->across);
    return rows * ceildiv(inner, (int64_t)t->across * t->vector) * t->splits;
}

/* Launches, bytes at the rate that the loads under way reach, and rounds of loads that wait for one another. */
static double cost_of(const problem *p, const lines *l, const line_tactic *t, const kernel_target *target)
{
    shape s;
    shape_of(l, &s);
    double bytes = 0;
    for (uint32_t i = 0; i < p->count_in; i++) bytes += cuda_operand_bytes(&p->in[i]);
    for (uint32_t i = 0; i < p->count_out; i++) bytes += cuda_operand_bytes(&p->out[i]);
    const double x_bytes = cuda_operand_bytes(&p->in[0]);
    const double units = target->units ? target->units : 100,
                 bandwidth = target->bandwidth > 0 ? target->bandwidth : 1e12;
    const double blocks = (double)blocks_of(t, s.inner.opt, s.rows.opt);
    const double each = t->form == FORM_ROWS ? t->across : t->block / t->across;
    const double count =
        t->form == FORM_ROWS ? (double)vectors(s.length.opt, s.inner.opt, t->vector) : (double)s.length.opt;
    const double unroll = t->items ? t->items : 4;
    double rounds = count / (double)t->splits / each / unroll;
    if (rounds < 1) rounds = 1;
    const uint32_t held = t->items ? t->items * t->vector : 4u * t->vector;
    const double resident = 2048.0 / t->block * (held > 24 ? 0.5 : held > 16 ? 0.75 : 1);
    double at_once = blocks < units * resident ? blocks : units * resident;
    const double waves = blocks > at_once ? blocks / at_once : 1;
    /* Threads without an element, or a line, of their own do not load. */
    double busy = t->form == FORM_ROWS ? count / (double)t->splits / (each * unroll * rounds)
                                       : (double)s.inner.opt / t->vector / t->across;
    if (busy > 1) busy = 1;
    if (t->form == FORM_ROWS && t->splits == 1 && (double)s.rows.opt * each < blocks * t->block)
        busy *= (double)s.rows.opt * each / (blocks * t->block);
    const double under_way = at_once * t->block * busy * unroll * t->vector * s.bytes;
    double share = under_way / (units * 24e3);
    const double active = at_once < units ? at_once / units : 1;
    if (share > active * 3) share = active * 3; /* what one multiprocessor can draw */
    if (share > 1) share = 1;
    /* Runs that are shorter than two sectors waste what lies beside them. */
    double run = (double)(t->form == FORM_ROWS ? s.inner.opt : (int64_t)t->across * t->vector) * s.bytes;
    if (t->form != FORM_ROWS && t->across * t->vector >= s.inner.opt) run = 128;
    if (run < 128 && l->kept_count + l->gone_count > 1) share *= run < 16 ? 0.25 : run < 64 ? run / 64 : 0.9;
    if (share < 1e-3) share = 1e-3;
    const double passes = is_reduction(p) || t->items ? 1 : 2;
    const double again = passes > 1 ? x_bytes * (x_bytes < (double)target->cache_l2 * 0.7 ? 0.4 : 1) : 0;
    const double moving = (bytes + again) / (bandwidth * share) * 1e9;
    /* A thread's own chain: its elements, then steps in which lanes and warps meet. */
    double meetings = 0;
    if (t->form == FORM_ROWS) {
        for (uint32_t m = 1; m < t->across && m < 32; m *= 2) meetings += 15;
        if (t->across > 32) meetings += 110;
    } else {
        for (uint32_t m = t->across; m < 32; m *= 2) meetings += 15;
        meetings += (t->across < 32 ? t->block / 32 : t->block / t->across) > 1 ? 60 + t->block / 16.0 : 0;
    }
    const double waiting = waves * (rounds * passes * 600 + held * 3 * rounds + meetings * (is_reduction(p) ? 1 : 2));
    double ns = 1600 + (moving > waiting ? moving + waiting / waves / 8 : waiting + moving / 8);
    if (t->cluster) ns += 350 * (t->items ? 2 : 1) + 50;
    else if (t->splits > 1) ns += 1100 + (t->form == FORM_GROUPS ? t->splits * 30.0 : t->splits * 4.0);
    return ns;
}

/* The best of each kind: in registers or in passes, one block a line, a cluster or two launches. */
enum { KINDS = 6, EACH_KIND = 2, TACTICS_MOST = 6 };
typedef struct ranking {
    double cost[KINDS][EACH_KIND];
    line_tactic at[KINDS][EACH_KIND];
} ranking;

static void consider(const problem *p, const lines *l, const kernel_target *target, const line_tactic *t, ranking *r)
{
    if (!is_sound(p, l, t) || shared_bytes(p, t) > 48 * 1024) return;
    const uint32_t kind = (t->items ? 3u : 0u) + (t->cluster ? 1u : t->splits > 1 ? 2u : 0u);
    double ns = cost_of(p, l, t, target);
    line_tactic x = *t;
    for (uint32_t i = 0; i < EACH_KIND; i++) {
        if (!memcmp(&r->at[kind][i], &x, sizeof x)) return;
        if (r->cost[kind][i] > 0 && r->cost[kind][i] <= ns) continue;
        const line_tactic last = r->at[kind][i];
        const double last_ns = r->cost[kind][i];
        r->at[kind][i] = x;
        r->cost[kind][i] = ns;
        if (!(last_ns > 0)) return;
        x = last;
        ns = last_ns;
    }
}

/* Best first; what seems far slower than the best is not worth measuring. */
static void hand_out(ranking *r, tactic_sink *out)
{
    double first = 0;
    while (out->count < TACTICS_MOST) {
        double *best = NULL;
        const line_tactic *t = NULL;
        for (uint32_t k = 0; k < KINDS; k++) {
            for (uint32_t i = 0; i < EACH_KIND; i++) {
                if (!(r->cost[k][i] > 0) || (best && *best <= r->cost[k][i])) continue;
                best = &r->cost[k][i];
                t = &r->at[k][i];
            }
        }
        if (!best || (out->count && *best > 2.5 * first)) return;
        if (!out->count) first = *best;
        memcpy(&out->at[out->count++], t, sizeof *t);
        *best = 0;
    }
}

/* Over how many blocks a line might be split: until the chip is full, and no thinner than one round of loads. */
static uint32_t splits_for(double blocks, double rounds, double units, double waves)
{
    double splits = units * waves / (blocks > 1 ? blocks : 1);
    if (splits > rounds) splits = rounds;
    if (splits > SPLITS_MOST) splits = SPLITS_MOST;
    return splits < 2 ? 1 : (uint32_t)splits;
}

static void consider_all(const problem *p, const lines *l, form f, const kernel_target *target, ranking *r)
{
    shape s;
    shape_of(l, &s);
    const uint32_t vector = vector_of(l, &s);
    const double units = target->units ? target->units : 100;
    for (uint32_t across = 1; across <= 1024; across *= 2) {
        for (uint32_t block = 32; block <= 1024; block *= 2) {
            if (across > block || (f == FORM_ROWS && across > 32 && block != across)) continue;
            const bool is_small = (double)s.rows.opt * across < units * 512;
            if (f == FORM_ROWS && across <= 32 && block != (is_small ? 64 : 128)) continue;
            if (f != FORM_ROWS && (across > 256 || block > 512)) continue;
            line_tactic t = { .form = (uint8_t)f,
                              .vector = (uint8_t)vector,
                              .across = (uint16_t)across,
                              .block = (uint16_t)block,
                              .splits = 1 };
            const int64_t each = f == FORM_ROWS ? across : block / across;
            const int64_t count = f == FORM_ROWS ? vectors(s.length.max, s.inner.max, vector) : s.length.max;
            const double count_opt =
                f == FORM_ROWS ? (double)vectors(s.length.opt, s.inner.opt, vector) : (double)s.length.opt;
            const int64_t most_across = f == FORM_ROWS ? count : ceildiv(s.inner.max, vector);
            if (across > 1 && across / 2 >= (uint32_t)(most_across < 4096 ? power_above(most_across) : 4096)) continue;
            if (f != FORM_ROWS && each > 1 && each / 2 >= power_above(s.length.max < 4096 ? s.length.max : 4096) &&
                block > 32)
                continue;
            if (!is_reduction(p) && count < INT32_MAX && f != FORM_GROUPS) {
                const int64_t items = ceildiv(count, each);
                t.items = (uint8_t)(items < 1 ? 1 : items < 255 ? items : 255);
                consider(p, l, target, &t, r);
                t.items = 0;
            }
            if (f != FORM_GROUPS) consider(p, l, target, &t, r);
            const double blocks = (double)blocks_of(&t, s.inner.opt, s.rows.opt), rounds = count_opt / (double)each / 4;
            for (uint16_t cluster = 2; cluster <= 8 && target->isa >= 90 && f != FORM_GROUPS; cluster *= 2) {
                t.cluster = 1;
                t.splits = cluster;
                if (blocks * cluster > units * 4) continue;
                if (!is_reduction(p) && count < INT32_MAX) {
                    const int64_t items = ceildiv(count, each * cluster);
                    t.items = (uint8_t)(items < 1 ? 1 : items < 255 ? items : 255);
                    consider(p, l, target, &t, r);
                    t.items = 0;
                }
                consider(p, l, target, &t, r);
            }
            t.cluster = 0;
            for (int waves = 1; waves <= 2; waves++) {
                t.splits = (uint16_t)splits_for(blocks, rounds, units, waves);
                if (f == FORM_GROUPS && t.splits < 2) t.splits = 2;
                if (f == FORM_GROUPS && t.splits > 16) t.splits = 16;
                if (t.splits > 1) consider(p, l, target, &t, r);
            }
        }
    }
}

static void tactics(const problem *p, const kernel_target *target, tactic_sink *out)
{
    ranking r;
    memset(&r, 0, sizeof r);
    lines l;
    if (lines_of(p, false, &l)) return;
    consider_all(p, &l, l.is_rows ? FORM_ROWS : FORM_COLUMNS, target, &r);
    lines channels;
    if (p->op == OP_group_norm && !lines_of(p, true, &channels) && !channels.is_rows)
        consider_all(p, &channels, FORM_GROUPS, target, &r);
    hand_out(&r, out);
}

static const char *lines_for(const problem *p, const line_tactic *t, lines *l)
{
    return lines_of(p, t->form == FORM_GROUPS, l);
}

static bool check(const problem *p, const tactic *t)
{
    const line_tactic x = tactic_of(t);
    const line_tactic clean = { x.form, x.vector, x.items, x.cluster, x.across, x.block, x.splits, { 0 } };
    lines l;
    if (memcmp(&clean, t, sizeof clean) != 0 || x.form > FORM_GROUPS || lines_for(p, &x, &l)) return false;
    return !reject_lines(p, &l) && is_sound(p, &l, &x) && shared_bytes(p, &x) <= 48 * 1024;
}

static void print(const tactic *t, text *out)
{
    static const char *const names[] = { "rows", "columns", "groups" };
    const line_tactic x = tactic_of(t);
    text_printf(out, "%s %u/%u", names[x.form < 3 ? x.form : 0], x.across, x.block);
    if (x.items) text_printf(out, " held %ux%u", x.items, x.vector);
    else text_printf(out, " passes x%u", x.vector);
    if (x.splits > 1) text_printf(out, " %s %u", x.cluster ? "cluster" : "split", x.splits);
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    const line_tactic x = tactic_of(t);
    lines l;
    return lines_for(p, &x, &l) ? 1e12 : cost_of(p, &l, &x, target);
}

static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    (void)threads;
    const line_tactic x = tactic_of(t);
    lines l;
    if (launches_of(&x) < 2 || lines_for(p, &x, &l)) return 0;
    shape s;
    shape_of(&l, &s);
    return size_mul(size_mul((size_t)s.lines.max, x.splits), state_size(p));
}

/* ---- code ---- */

static int64_t axes_word(const uint8_t *axis, uint32_t count)
{
    int64_t word = 0;
    for (uint32_t i = 0; i < count; i++) word |= (int64_t)axis[i] << (4 * i);
    return word;
}

static int64_t norm_power(const problem *p)
{
    if (p->op != OP_lp_norm) return 0;
    const int64_t power = ((const attrs_lp_norm *)p->attrs)->p;
    return power == 1 || power == 2 ? power : 0;
}

static uint32_t count_loads(const expr *x)
{
    uint32_t n = 0;
    for (uint32_t i = 0; x && i < x->count; i++) n += x->at[i].op == EXPR_LOAD;
    return n;
}

/* Is the innermost axis whole vectors, whatever its size? */
static bool is_exact(const lines *l, uint32_t vector)
{
    const dim_range d = l->in[0].dim[l->inner];
    return (problem_dim_is_static(d) ? d.max : d.divisor) % vector == 0;
}

static bool code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    (void)target;
    const line_tactic x = tactic_of(t);
    lines l;
    if (index >= launches_of(&x) || lines_for(p, &x, &l)) return false;
    const bool joins = index == 1 && is_reduction(p), is_rows = x.form == FORM_ROWS;
    c->source = joins ? "combine.cu" : is_rows ? "rows.cu" : "columns.cu";
    c->entry = joins ? "combine" : is_rows ? "rows" : "columns";
    uint8_t gone_count = l.gone_count, kept_count = l.kept_count;
    if (is_rows) gone_count -= 1;
    else if (!joins) kept_count -= 1;
    const uint32_t loads = count_loads(l.p.epilogue);
    cuda_code_define(c, "OP", line_op_of(p));
    cuda_code_define(c, "ACC", acc_of(p));
    cuda_code_define(c, "X_TYPE", line_type_of(input_type(p)));
    cuda_code_define(c, "X_DENSE", !p->in[0].is_gapped);
    cuda_code_define(c, "EXACT", is_exact(&l, x.vector));
    cuda_code_define(c, "RANK", l.rank);
    cuda_code_define(c, "KEPT", kept_count);
    cuda_code_define(c, "KEPT_AXES", axes_word(l.kept, kept_count));
    cuda_code_define(c, "GONE", gone_count);
    cuda_code_define(c, "GONE_AXES", axes_word(l.gone, gone_count));
    cuda_code_define(c, "INNER", joins ? outer_axis(&l) : l.inner);
    cuda_code_define(c, "OUTER", outer_axis(&l));
    cuda_code_define(c, "VECTOR", x.vector);
    cuda_code_define(c, is_rows && !joins ? "LANES" : "TX", joins ? JOIN_ACROSS : x.across);
    cuda_code_define(c, "BLOCK", joins ? JOIN_ACROSS * JOIN_DOWN : x.block);
    cuda_code_define(c, "ITEMS", x.items);
    cuda_code_define(c, "CLUSTER", x.cluster ? x.splits : 1);
    cuda_code_define(c, "MODE", launches_of(&x) < 2 ? LINE_WHOLE : index ? LINE_APPLY : LINE_PARTIAL);
    cuda_code_define(c, "PRO", p->prologue && !joins);
    cuda_code_define(c, "NORM_P", norm_power(p));
    cuda_code_define(c, "LAST", p->op == OP_arg_reduce && ((const attrs_arg_reduce *)p->attrs)->last);
    cuda_code_define(c, "STATS", p->op == OP_layer_norm && !p->epilogue && p->count_out > 1);
    cuda_code_define(c, "GROUPED", x.form == FORM_GROUPS);
    cuda_code_define(c, "PREFETCH", x.items && loads && loads <= 3 && x.items * x.vector <= 16);
    cuda_code_define(c, "TRIGGER", x.items ? 2 : 1);
    const bool is_scalar = is_reduction(p) && (is_rows || joins);
    const emit_space after = space_of(&l, false, is_scalar ? 1 : x.vector), before = space_of(&l, true, x.vector);
    emit_text(&after, c->generated);
    if (p->prologue && !joins) emit_text(&before, c->generated);
    return true;
}

/* ---- bind ---- */

static void set_axis(struct line_axis *a, const view *x, const view *mean, const view *inverse, uint8_t axis)
{
    a->div = cuda_fast_div(x->dim[axis] > 1 ? x->dim[axis] : 1);
    a->x = x->stride[axis];
    a->mean = mean->dtype != SINTER_DTYPE_NONE ? mean->stride[axis] : 0;
    a->inverse = inverse->dtype != SINTER_DTYPE_NONE ? inverse->stride[axis] : 0;
}

/* Does layer_norm hand out its mean (1) or inverse deviation (2)? */
static bool has_stat(const problem *p, uint32_t i)
{
    return p->op == OP_layer_norm && !p->epilogue && i < p->count_out && p->out[i].dtype != SINTER_DTYPE_NONE;
}

static sinter_status bind_launch(env *e, const problem *p, const lines *l, const line_tactic *t, uint32_t index,
                                 const line_args *args, const view *in, const view *out, cuda_record *r)
{
    const bool joins = index == 1 && is_reduction(p), is_rows = t->form == FORM_ROWS;
    const int64_t blocks = joins ? ceildiv(args->outputs, JOIN_ACROSS) : blocks_of(t, args->inner, args->rows);
    const uint32_t shared = joins ? JOIN_ACROSS * JOIN_DOWN * state_size(p) : shared_bytes(p, t);
    const uint32_t block = joins ? JOIN_ACROSS * JOIN_DOWN : t->block;
    line_args *a =
        cuda_launch_add(r, index, (uint64_t)blocks, 1, 1, block, shared) ? cuda_param_add(r, sizeof *a) : NULL;
    if (!a || blocks > INT32_MAX)
        return FAIL(e, UNSUPPORTED, "%s over %lld lines needs %lld blocks", op_at(p->op)->name,
                    (long long)args->outputs, (long long)blocks);
    *a = *args;
    if (t->cluster) r->at[r->count - 1].cluster = t->splits;
    if (joins) a->rows = (small)args->outputs;
    CUDA_PATCH(r, a, x, PATCH_IN, 0);
    if (launches_of(t) > 1) CUDA_PATCH(r, a, part, PATCH_WORKSPACE, 0);
    if (has_stat(p, 1) && !joins) CUDA_PATCH(r, a, mean, PATCH_OUT, 1);
    if (has_stat(p, 2) && !joins) CUDA_PATCH(r, a, inverse, PATCH_OUT, 2);
    const bool is_scalar = is_reduction(p) && (is_rows || joins);
    const emit_space after = space_of(l, false, is_scalar ? 1 : t->vector), before = space_of(l, true, t->vector);
    TRY(emit_bind(e, &after, in, out, r));
    return p->prologue && !joins ? emit_bind(e, &before, in, out, r) : SINTER_OK;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *record)
{
    const line_tactic x = tactic_of(t);
    cuda_record *r = record;
    memset(r, 0, sizeof *r);
    lines l;
    const char *why = lines_for(p, &x, &l);
    if (why) return FAIL(e, UNSUPPORTED, "%s: %s", op_at(p->op)->name, why);
    view own_in[LINES_OPERANDS], own_out[LINES_OPERANDS];
    for (uint32_t i = 0; i < p->count_in; i++) lines_view(&l, false, i, &in[i], &own_in[i]);
    for (uint32_t i = 0; i < p->count_out; i++) lines_view(&l, true, i, &out[i], &own_out[i]);
    const view *v = &own_in[0], none = { .dtype = SINTER_DTYPE_NONE };
    const view *mean = has_stat(p, 1) ? &own_out[1] : &none, *inverse = has_stat(p, 2) ? &own_out[2] : &none;
    line_args a = { .step = v->stride[l.inner] };
    int64_t length = 1, rows = 1, outputs = 1, outer = 1;
    uint32_t kept = 0, gone = 0;
    for (uint32_t i = 0; i < l.gone_count; i++) {
        (void)i64_mul(length, v->dim[l.gone[i]], &length);
        if (x.form == FORM_ROWS && l.gone[i] == l.inner) continue;
        (void)i64_mul(outer, v->dim[l.gone[i]], &outer);
        set_axis(&a.gone[gone++], v, mean, inverse, l.gone[i]);
    }
    for (uint32_t i = 0; i < l.kept_count; i++) {
        (void)i64_mul(outputs, v->dim[l.kept[i]], &outputs);
        set_axis(&a.kept[kept++], v, mean, inverse, l.kept[i]);
        if (x.form != FORM_ROWS && l.kept[i] == l.inner) continue;
        (void)i64_mul(rows, v->dim[l.kept[i]], &rows);
    }
    const int64_t inner = v->dim[l.inner];
    const int64_t count = x.form == FORM_ROWS ? outer * ceildiv(inner, x.vector) : length;
    if (length > INT32_MAX || outputs > INT32_MAX || count > INT32_MAX)
        return FAIL(e, UNSUPPORTED, "%s over %lld lines of %lld elements, more than 2^31 of one", op_at(p->op)->name,
                    (long long)outputs, (long long)length);
    const int64_t tiles = x.form == FORM_ROWS ? ceildiv(inner, x.vector) : ceildiv(inner, (int64_t)x.across * x.vector);
    a.runs = cuda_fast_div(tiles > 1 ? tiles : 1);
    a.splits = cuda_fast_div(x.splits);
    a.outputs = outputs;
    a.inner = (small)inner;
    a.count = (small)count;
    a.per = (small)ceildiv(count, x.splits);
    a.rows = (small)rows;
    a.elements = (small)length;
    a.each = cuda_fast_div(1);
    if (x.form == FORM_GROUPS) {
        const int64_t groups = ((const attrs_group_norm *)attrs)->groups, members = groups ? inner / groups : 0;
        if (members < 1 || length * members > INT32_MAX)
            return FAIL(e, UNSUPPORTED, "group_norm of %lld channels in %lld groups", (long long)inner,
                        (long long)groups);
        a.each = cuda_fast_div(members);
        a.elements = (small)(length * members);
    }
    if (p->op == OP_layer_norm) a.epsilon = ((const attrs_layer_norm *)attrs)->epsilon;
    if (p->op == OP_rms_norm) a.epsilon = ((const attrs_rms_norm *)attrs)->epsilon;
    if (p->op == OP_group_norm) a.epsilon = ((const attrs_group_norm *)attrs)->epsilon;
    if (p->op == OP_lp_norm) a.power = (double)((const attrs_lp_norm *)attrs)->p;
    for (uint32_t i = 0; i < launches_of(&x); i++) TRY(bind_launch(e, p, &l, &x, i, &a, own_in, own_out, r));
    return SINTER_OK;
}

/* ---- rows ---- */

static const char *reject_reduce(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(is_reduction(p), "not a reduction");
    return reject(p);
}

static const char *reject_softmax(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_softmax || p->op == OP_log_softmax, "not a softmax");
    return reject(p);
}

static const char *reject_norm(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_layer_norm || p->op == OP_rms_norm || p->op == OP_group_norm || p->op == OP_lp_norm,
                  "not a normalisation");
    REJECT_UNLESS(p->op != OP_lp_norm || ((const attrs_lp_norm *)p->attrs)->p >= 1, "p is less than 1");
    return reject(p);
}

/* Statistics are taken about a line's first element, which all its blocks read: none may have written there. */
#define LINES_ROW(NAME, REJECT, IN_PLACE)                                                                              \
    const cuda_kernel NAME = {                                                                                         \
        .base = { .name = #NAME,                                                                                       \
                  .abi = 1,                                                                                            \
                  .is_strided_out = true,                                                                              \
                  .is_in_place = IN_PLACE,                                                                             \
                  .reject = REJECT,                                                                                    \
                  .tactics = tactics,                                                                                  \
                  .check = check,                                                                                      \
                  .print = print,                                                                                      \
                  .cost_ns = cost_ns,                                                                                  \
                  .workspace = workspace,                                                                              \
                  .record_size = cuda_record_size,                                                                     \
                  .bind = bind },                                                                                      \
        .code = code,                                                                                                  \
    }
LINES_ROW(cuda_reduce, reject_reduce, true);
LINES_ROW(cuda_softmax, reject_softmax, true);
LINES_ROW(cuda_norm, reject_norm, false);
