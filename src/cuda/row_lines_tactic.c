/* SPDX-License-Identifier: Apache-2.0 */
/* row_lines_tactic.c - how many threads take a line, how many elements each holds, over how many blocks a line is
 * split, and whether blocks stay for many lines. The cost model ranks them; there is always one that takes any length.
 */
#include "cuda/cuda_kernels.h"
#include "cuda/row_lines.h"

#include <string.h>

enum { HELD_MOST = 32, GROUP_MOST = 1024 };
/* Blocks that stay: threads of a multiprocessor that every chip can hold, its registers, rows on their way. */
enum { STAYING_THREADS = 1024, REGISTERS = 65536, AHEAD_MOST = 5 };
enum { SHARED_MOST = 48 * 1024, SHARED_STAYING = 96 * 1024 };

uint32_t line_state_size(const problem *p)
{
    const enum line_op op = line_op_of(p);
    const bool is_two = op == LINE_LOG_SUM_EXP || op == LINE_SOFTMAX || op == LINE_LOG_SOFTMAX || op == LINE_LAYER ||
                        p->op == OP_arg_reduce;
    return (line_acc_of(p) == LINE_ACC_F32 ? 4u : 8u) * (is_two ? 2u : 1u);
}

/* The vectors of a line of so many elements, whose innermost axis has `inner`. */
int64_t line_vectors(int64_t length, int64_t inner, uint32_t vector)
{
    return inner > 0 ? length / inner * cuda_ceil_div(inner, vector) : 0;
}

static uint32_t vector_of(const lines *l, const line_shape *s)
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

uint32_t line_shared_bytes(const problem *p, const line_tactic *t)
{
    if (t->form == FORM_ROWS && t->ahead > 1) return LINE_MEETING + (t->ahead - 1u) * t->block * t->items * 16;
    if (t->form == FORM_ROWS) return t->cluster || t->across > 32 ? LINE_MEETING : 0;
    const uint32_t seats = (uint32_t)(t->across < 32 ? t->block / 32 : t->block / t->across);
    uint32_t bytes = seats > 1 ? seats * t->vector * t->across * line_state_size(p) : 0;
    if (t->cluster) bytes = (seats + 3) * t->vector * t->across * line_state_size(p);
    if (t->form == FORM_GROUPS) {
        const uint32_t each = (uint32_t)(p->in[0].dim[1].max / ((const attrs_group_norm *)p->attrs)->groups);
        const uint32_t joined = (t->across * t->vector + 2 * each) * line_state_size(p);
        if (joined > bytes) bytes = joined;
    }
    return bytes;
}

/* Can blocks stay for many rows? */
static bool may_stay(const problem *p, const lines *l, const line_tactic *t)
{
    line_shape s;
    line_shape_of(l, &s);
    if (t->form != FORM_ROWS || !t->items || t->splits != 1 || !l->kept_count || t->ahead > AHEAD_MOST) return false;
    if (!t->grid || !t->resident || t->resident * t->block > STAYING_THREADS) return false;
    return t->ahead == 1 || (!p->prologue && !l->in[0].is_gapped && line_is_exact(l, t->vector) &&
                             t->vector * s.bytes == 16 && line_input_type(p) == p->in[0].dtype);
}

/* Channels are what is told apart: they alone are the innermost axis. */
static bool channels_are_inner(const lines *l)
{
    bool are_inner = false;
    for (uint32_t f = 0; f < l->full; f++) {
        if (l->merged[f] < 0 || (uint32_t)l->merged[f] != l->inner) continue;
        if (l->source[f] != 1) return false;
        are_inner = true;
    }
    return are_inner;
}

/* Is this tactic sound for every size in range? */
bool line_is_sound(const problem *p, const lines *l, const line_tactic *t)
{
    line_shape s;
    line_shape_of(l, &s);
    const uint32_t most = vector_of(l, &s);
    if (t->vector > most || most % t->vector) return false;
    if (t->across > t->block) return false;
    if (t->cluster && t->splits != 2 && t->splits != 4 && t->splits != 8) return false;
    if (t->cluster && (t->form == FORM_GROUPS || (t->form == FORM_ROWS && t->across != t->block))) return false;
    if (t->ahead ? !may_stay(p, l, t) : t->resident || t->grid) return false;
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
        if (!channels_are_inner(l) || s.length.most > INT32_MAX / GROUP_MOST) return false;
        if (!problem_dim_is_static(p->in[0].dim[1]) || p->in[0].dim[1].max / groups > GROUP_MOST) return false;
    }
    if (line_blocks(t, s.inner.most, s.rows.most) > INT32_MAX) return false;
    if (line_shared_bytes(p, t) > (t->ahead ? SHARED_STAYING : SHARED_MOST)) return false;
    if (!t->items) return true;
    if (line_is_reduction(p)) return false;
    const uint32_t held = t->items * t->vector;
    if (held > (line_acc_of(p) == LINE_ACC_F64 ? HELD_MOST / 2 : HELD_MOST)) return false;
    const int64_t each = (t->form == FORM_ROWS ? t->across : t->block / t->across) * (t->cluster ? t->splits : 1);
    const int64_t count = t->form == FORM_ROWS ? line_vectors(s.length.max, s.inner.max, t->vector) : s.length.max;
    /* Where several gone axes vary, the number of vectors may be larger than at their upper bounds. */
    if (t->form == FORM_ROWS && l->gone_count > 1 && s.inner.max != INT64_MAX &&
        !problem_dim_is_static(l->in[0].dim[l->inner]))
        return false;
    return s.length.max < INT32_MAX && count <= each * t->items;
}

int64_t line_blocks(const line_tactic *t, int64_t inner, int64_t rows)
{
    if (t->form == FORM_ROWS) {
        const int64_t groups = t->splits > 1 ? rows * t->splits : cuda_ceil_div(rows, t->block / t->across);
        /* Those that stay do equally many turns. */
        return t->grid && groups > t->grid ? cuda_ceil_div(groups, cuda_ceil_div(groups, t->grid)) : groups;
    }
    return rows * cuda_ceil_div(inner, (int64_t)t->across * t->vector) * t->splits;
}

/* Launches, bytes at the rate that the loads under way reach, and rounds of loads that wait for one another. */
static double cost_of(const problem *p, const lines *l, const line_tactic *t, const kernel_target *target)
{
    line_shape s;
    line_shape_of(l, &s);
    const double bytes = cuda_problem_bytes(p);
    const double x_bytes = cuda_operand_bytes(&p->in[0]);
    const double units = target->units ? target->units : 100,
                 bandwidth = target->bandwidth > 0 ? target->bandwidth : 1e12;
    const double blocks = (double)line_blocks(t, s.inner.opt, s.rows.opt);
    const double each = t->form == FORM_ROWS ? t->across : t->block / t->across;
    const double count =
        t->form == FORM_ROWS ? (double)line_vectors(s.length.opt, s.inner.opt, t->vector) : (double)s.length.opt;
    const double unroll = t->items ? t->items : 4;
    double rounds = count / (double)t->splits / each / unroll;
    if (rounds < 1) rounds = 1;
    const uint32_t held = t->items ? t->items * t->vector : 4u * t->vector;
    const double resident = t->resident ? t->resident : 2048.0 / t->block * (held > 24 ? 0.5 : held > 16 ? 0.75 : 1);
    double at_once = blocks < units * resident ? blocks : units * resident;
    const double waves = blocks > at_once ? blocks / at_once : 1;
    /* Threads without an element, or a line, of their own do not load. */
    double busy = t->form == FORM_ROWS ? count / (double)t->splits / (each * unroll * rounds)
                                       : (double)s.inner.opt / t->vector / t->across;
    if (busy > 1) busy = 1;
    if (t->form == FORM_ROWS && t->splits == 1 && !t->ahead && (double)s.rows.opt * each < blocks * t->block)
        busy *= (double)s.rows.opt * each / (blocks * t->block);
    const double depth = t->ahead > 2 ? t->ahead - 1 : 1;
    const double under_way = at_once * t->block * busy * unroll * t->vector * s.bytes * depth;
    double share = under_way / (units * 24e3);
    const double active = at_once < units ? at_once / units : 1;
    if (share > active * 3) share = active * 3; /* what one multiprocessor can draw */
    if (share > 1) share = 1;
    /* Runs that are shorter than two sectors waste what lies beside them. */
    double run = (double)(t->form == FORM_ROWS ? s.inner.opt : (int64_t)t->across * t->vector) * s.bytes;
    if (t->form != FORM_ROWS && t->across * t->vector >= s.inner.opt) run = 128;
    if (run < 128 && l->kept_count + l->gone_count > 1) share *= run < 16 ? 0.25 : run < 64 ? run / 64 : 0.9;
    if (share < 1e-3) share = 1e-3;
    const double passes = line_is_reduction(p) || t->items ? 1 : 2;
    const double again = passes > 1 ? x_bytes * (x_bytes < (double)target->cache_l2 * 0.7 ? 0.4 : 1) : 0;
    double moving = (bytes + again) / (bandwidth * share) * 1e9;
    if (!line_is_reduction(p)) {
        /* What all rows share comes from a cache for each again, and loads pause from block to block, where none stays.
         */
        const emit_space after = line_space(l, false, t->vector);
        const double shared = 4.0 * emit_operand_words(&after, false) / t->vector / s.bytes;
        if (!t->ahead) moving *= 1 + 0.04 * shared + (waves > 1 ? 0.05 : 0);
        else moving *= (t->ahead == 1 ? 1.01 : 1) * (t->block * t->resident < 512 ? 1.1 : 1);
    }
    /* A thread's own chain: its elements, then steps in which lanes and warps meet. */
    double meetings = 0;
    if (t->form == FORM_ROWS) {
        for (uint32_t m = 1; m < t->across && m < 32; m *= 2) meetings += 15;
        if (t->across > 32) meetings += 110;
    } else {
        for (uint32_t m = t->across; m < 32; m *= 2) meetings += 15;
        meetings += (t->across < 32 ? t->block / 32 : t->block / t->across) > 1 ? 60 + t->block / 16.0 : 0;
    }
    if (t->ahead) {
        const double turns = (double)cuda_ceil_div(s.rows.opt, t->block / t->across) / blocks;
        const double chain = held * 3 + meetings * 1.6 + 100, all = turns * chain;
        return 2400 + (moving > all ? moving + chain : all + moving / 8);
    }
    const double waiting =
        waves * (rounds * passes * 600 + held * 3 * rounds + meetings * (line_is_reduction(p) ? 1 : 1.6));
    double ns = 1600 + (moving > waiting ? moving + waiting / waves / 8 : waiting + moving / 8);
    if (t->cluster) ns += 350 * (t->items ? 2 : 1) + 50;
    else if (t->splits > 1) ns += 1100 + (t->form == FORM_GROUPS ? t->splits * 30.0 : t->splits * 4.0);
    return ns;
}

/* The best of each kind: in registers or in passes, one block a line, a cluster or two launches, and blocks that stay.
 */
enum { KINDS = 8, EACH_KIND = 2, TACTICS_MOST = 7 };
typedef struct ranking {
    double cost[KINDS][EACH_KIND];
    line_tactic at[KINDS][EACH_KIND];
} ranking;

static void consider(const problem *p, const lines *l, const kernel_target *target, const line_tactic *t, ranking *r)
{
    if (!line_is_sound(p, l, t)) return;
    const uint32_t kind = t->ahead ? (t->ahead > 1 ? 7u : 6u)
                                   : (t->items ? 3u : 0u) + (t->cluster      ? 1u
                                                             : t->splits > 1 ? 2u
                                                                             : 0u);
    double ns = cost_of(p, l, t, target);
    line_tactic x = *t;
    x.trigger = x.items ? 2 : 1;
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
        tactic_put(out, t);
        *best = 0;
        if (out->count > 1) continue;
        /* The best, with the next grid let in at another time. */
        line_tactic other = *t;
        other.trigger = t->trigger == 1 ? 2 : 1;
        tactic_put(out, &other);
    }
}

/* Over how many blocks a line might be split: until the chip is full, and no thinner than one round of loads. */
static uint32_t splits_for(double blocks, double rounds, double units, double waves)
{
    double splits = units * waves / (blocks > 1 ? blocks : 1);
    if (splits > rounds) splits = rounds;
    if (splits > LINE_SPLITS_MOST) splits = LINE_SPLITS_MOST;
    return splits < 2 ? 1 : (uint32_t)splits;
}

/* Registers of a thread of a block that stays, roughly. */
static uint32_t registers_of(const problem *p, const lines *l, const line_tactic *t)
{
    const emit_space after = line_space(l, false, t->vector), before = line_space(l, true, t->vector);
    const uint32_t still = emit_operand_words(&after, false), moving = emit_operand_words(&after, true);
    const uint32_t raw = t->ahead > 1  ? 0
                         : p->prologue ? emit_operand_words(&before, true) + emit_operand_words(&before, false)
                                       : (t->vector * sinter_dtype_bits(l->in[0].dtype) / 8 + 3u) / 4;
    const uint32_t held = (uint32_t)t->vector * (line_acc_of(p) == LINE_ACC_F64 ? 2u : 1u);
    return 34 + (uint32_t)t->items * (held + raw + still + 2 * moving);
}

/* Blocks that stay, where rows are many: as many as registers allow, and rows on their way until 48 KiB are. */
static void consider_staying(const problem *p, const lines *l, const kernel_target *target, line_tactic t, ranking *r)
{
    line_shape s;
    line_shape_of(l, &s);
    const int64_t groups = cuda_ceil_div(s.rows.opt, t.block / t.across), units = target->units ? target->units : 100;
    if (t.form != FORM_ROWS) return;
    for (uint8_t form = 1; form <= (target->isa >= 80 ? 2 : 1); form++) {
        for (uint32_t threads = STAYING_THREADS; threads >= 128; threads -= 128) {
            if (threads % t.block) continue;
            t.ahead = form;
            t.resident = (uint8_t)(threads / t.block);
            t.grid = (uint16_t)(units * t.resident < UINT16_MAX ? units * t.resident : UINT16_MAX);
            if (groups < 2 * (int64_t)t.grid || registers_of(p, l, &t) > REGISTERS / threads) continue;
            const uint32_t bytes = (uint32_t)t.block * t.items * 16 * t.resident; /* of a row of each */
            const uint32_t room = target->shared + 1024;
            while (form > 1 && t.ahead < AHEAD_MOST && (t.ahead - 1u) * bytes < 48 * 1024) t.ahead++;
            while (t.ahead > 2 && t.resident * (line_shared_bytes(p, &t) + 1024) > room) t.ahead--;
            if (form > 1 && t.resident * (line_shared_bytes(p, &t) + 1024) > room) continue;
            consider(p, l, target, &t, r);
            break;
        }
    }
}

static void consider_all(const problem *p, const lines *l, line_form f, const kernel_target *target, ranking *r)
{
    line_shape s;
    line_shape_of(l, &s);
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
                              .splits = 1,
                              .trigger = 1 };
            const int64_t each = f == FORM_ROWS ? across : block / across;
            const int64_t count = f == FORM_ROWS ? line_vectors(s.length.max, s.inner.max, vector) : s.length.max;
            const double count_opt =
                f == FORM_ROWS ? (double)line_vectors(s.length.opt, s.inner.opt, vector) : (double)s.length.opt;
            const int64_t most_across = f == FORM_ROWS ? count : cuda_ceil_div(s.inner.max, vector);
            if (across > 1 && across / 2 >= (uint32_t)(most_across < 4096 ? power_above(most_across) : 4096)) continue;
            if (f != FORM_ROWS && each > 1 && each / 2 >= power_above(s.length.max < 4096 ? s.length.max : 4096) &&
                block > 32)
                continue;
            if (!line_is_reduction(p) && count < INT32_MAX && f != FORM_GROUPS) {
                const int64_t items = cuda_ceil_div(count, each);
                t.items = (uint8_t)(items < 1 ? 1 : items < 255 ? items : 255);
                consider(p, l, target, &t, r);
                consider_staying(p, l, target, t, r);
                t.items = 0;
            }
            if (f != FORM_GROUPS) consider(p, l, target, &t, r);
            const double blocks = (double)line_blocks(&t, s.inner.opt, s.rows.opt),
                         rounds = count_opt / (double)each / 4;
            for (uint16_t cluster = 2; cluster <= 8 && target->isa >= 90 && f != FORM_GROUPS; cluster *= 2) {
                t.cluster = 1;
                t.splits = cluster;
                if (blocks * cluster > units * 4) continue;
                if (!line_is_reduction(p) && count < INT32_MAX) {
                    const int64_t items = cuda_ceil_div(count, each * cluster);
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

void line_tactics(const problem *p, const kernel_target *target, tactic_sink *out)
{
    ranking r;
    memset(&r, 0, sizeof r);
    lines l;
    if (lines_of(p, false, &l)) return;
    consider_all(p, &l, l.is_rows ? FORM_ROWS : FORM_COLUMNS, target, &r);
    lines channels;
    const bool has_groups = p->op == OP_group_norm && ((const attrs_group_norm *)p->attrs)->groups > 1;
    if (has_groups && !lines_of(p, true, &channels) && !channels.is_rows)
        consider_all(p, &channels, FORM_GROUPS, target, &r);
    hand_out(&r, out);
}

void line_print(const tactic *t, text *out)
{
    static const char *const names[] = { "rows", "columns", "groups" };
    const line_tactic x = TACTIC_AS(line_tactic, t);
    text_printf(out, "%s %u/%u", names[x.form < 3 ? x.form : 0], x.across, x.block);
    if (x.items) text_printf(out, " held %ux%u", x.items, x.vector);
    else text_printf(out, " passes x%u", x.vector);
    if (x.splits > 1) text_printf(out, " %s %u", x.cluster ? "cluster" : "split", x.splits);
    if (x.ahead) text_printf(out, " stay %ux%u ahead %u", x.resident, x.grid, x.ahead);
    text_printf(out, " t%u", x.trigger);
}

void line_lets_in(const tactic *t, tactic_sink *out)
{
    fields_vary(t, offsetof(line_tactic, trigger), 2, out);
}

double line_cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    const line_tactic x = TACTIC_AS(line_tactic, t);
    lines l;
    return line_problem(p, &x, &l) ? 1e12 : cost_of(p, &l, &x, target);
}
