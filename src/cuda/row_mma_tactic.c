/* SPDX-License-Identifier: Apache-2.0 */
/* row_mma_tactic.c - tiles, splits and slots for mma.cu, by an estimate of what each costs.
 *
 * The estimate: a block's first data arrive after a latency; then each step takes what the slowest of tensor cores,
 * shared memory and the way from L2 takes, for all blocks that share a multiprocessor; then its sums are finished. Few
 * blocks of many steps are spread over the chip by splitting the steps over a cluster, which costs a meeting. */
#include "cuda/device/mma_args.h"
#include "cuda/ranking.h"
#include "cuda/row_mma.h"

static const mma_tile tiles[] = {
    { 64, 64, 2, 2, 2, 2 },   { 32, 64, 2, 2, 2, 2 },   { 64, 32, 2, 2, 2, 2 },   { 32, 32, 2, 2, 2, 2 },
    { 16, 64, 1, 4, 2, 2 },   { 16, 32, 1, 2, 2, 2 },   { 64, 128, 2, 4, 1, 2 },  { 128, 64, 4, 2, 1, 2 },
    { 128, 128, 2, 4, 1, 2 }, { 128, 256, 2, 4, 1, 1 }, { 256, 128, 4, 2, 1, 1 }, { 64, 256, 1, 4, 1, 2 },
    { 128, 32, 4, 1, 2, 2 },  { 32, 128, 2, 2, 2, 2 },  { 16, 128, 1, 4, 2, 2 },  { 256, 64, 4, 1, 1, 2 },
    { 128, 128, 2, 2, 1, 2 },
};
enum { TILES = COUNT_OF(tiles), SPLIT_LOG_MAX = 4, STAGES_WHOLE = 16, SHARED_MOST = 232448 };

static const tactic_field fields[] = {
    FIELD(mma_tactic, tile, 0, TILES - 1),        FIELD(mma_tactic, split_log, 0, SPLIT_LOG_MAX),
    FIELD(mma_tactic, stages, 1, MMA_STAGES_MAX), FIELD(mma_tactic, trigger, 1, 3),
    FIELD(mma_tactic, is_hopper, 0, 1),
};

const mma_tile *mma_tile_at(uint32_t index)
{
    return &tiles[index];
}

uint32_t mma_shared_size(const mma_tile *tile, const mma_tactic *t, uint32_t stages, uint32_t *barriers_at)
{
    const uint32_t slots = stages * (tile->bm + tile->bn) * MMA_STEP_BYTES,
                   sums = (uint32_t)tile->kg * tile->bm * (tile->bn + 8u) * 4u;
    /* Blocks of a cluster write into one another while slots are still read. */
    *barriers_at = t->split_log ? slots + sums : slots > sums ? slots : sums;
    return *barriers_at + (t->is_hopper ? stages * 16 : 0);
}

static uint32_t steps_of(const mma_shape *s, uint32_t split_log)
{
    const int64_t step = MMA_STEP_BYTES / s->element, steps = (s->k + step - 1) / step;
    return (uint32_t)((steps + (1 << split_log) - 1) >> split_log);
}

bool mma_is_whole(const mma_shape *s, const mma_tactic *t)
{
    return s->is_k_static && steps_of(s, t->split_log) <= t->stages;
}

/* Slots of a ring are filled again while the next round's are multiplied, so they are of two rounds at least. Whether
 * slots become a ring is not known where k varies. */
static uint32_t stages_least(const mma_shape *s, const mma_tactic *t)
{
    return (mma_is_whole(s, t) ? 1u : 2u) * tiles[t->tile].kg;
}

/* Rows of X of which a thread has a chunk in each step. */
static double thread_rows(const mma_tile *x)
{
    const uint32_t pass = 4u * x->wm * x->wn * x->kg;
    return (x->bm + pass - 1) / pass;
}

bool mma_prologue_is_heavy(const mma_shape *s, const mma_tile *x)
{
    if (!s->pro_ops) return false;
    return x->kg * thread_rows(x) * s->pro_words > 24 || s->pro_ops > 8 || x->bm * x->bn >= 128 * 64;
}

/* ---- the estimate ---- */

static double divided(double a, double b)
{
    const int64_t whole = (int64_t)(a / b);
    return (double)whole < a / b ? (double)whole + 1 : (double)whole;
}

/* Clocks that a row of 128 bytes takes beyond its bytes where it is read in pieces of `vec` elements. Those under four
 * bytes go through registers, a few a clock. */
static double pieces(const mma_shape *s, uint32_t vec)
{
    return vec < s->chunk ? 8.0 * (s->chunk / vec) / (vec * s->element < 4 ? 2.7 : 64) : 0;
}

static double estimate(const machine *m, const mma_shape *s, const mma_tactic *t, double bytes)
{
    const mma_tile *x = &tiles[t->tile];
    const double latency = 700, rate = s->type == MMA_TF32 ? 0.5 : s->type >= MMA_S8 ? 2 : 1;
    const double blocks = divided((double)s->rows, x->bm) * divided((double)s->cols, x->bn) * (double)s->batch *
                          (double)(1 << t->split_log);
    uint32_t at;
    const double size = mma_shared_size(x, t, t->stages, &at) + 1024.0;
    double resident = (double)(int)((m->shared + 1024) / size);
    const double most = mma_prologue_is_heavy(s, x) ? 1 : x->min_blocks;
    if (resident > most) resident = most;
    if (resident < 1) resident = 1;
    const double steps = steps_of(s, t->split_log), waves = divided(blocks, m->units * resident);
    const double each = divided(blocks, m->units), together = each < resident ? each : resident;
    /* Clocks of a step of one block where nothing waits. */
    const double mi = x->bm / x->wm / 16.0, nj = x->bn / x->wn / 8.0;
    const double math = x->bm * x->bn * 2.0 * MMA_STEP_BYTES / s->element / (m->flops * rate),
                 local = ((mi + nj / 2) * 4 * 512 * x->wm * x->wn + (x->bm + x->bn) * 128.0) / 128,
                 far = (x->bm + x->bn) * 128.0 / 36;
    double step = math > local ? math : local;
    if (far > step) step = far;
    step = (step + 30) / m->ghz;
    step += (x->bm * pieces(s, s->a_vec) + (s->b_vec ? x->bn * pieces(s, s->b_vec) : 0)) / m->ghz;
    double late = 0; /* before the first step */
    if (s->pro_ops) step += x->bm * 128.0 / s->element * (s->pro_ops + 3) / 128 * 0.8 / m->ghz;
    double busy = step * together;
    /* Phases differ in steps: a wave takes as long as the longest, many take turns. */
    if (s->is_transposed && waves > 1) busy *= (double)s->k_all / (double)(s->k * s->batch);
    if (steps > t->stages && latency / t->stages > busy) busy = latency / t->stages;
    if (s->pro_ops) {
        /* Loads of a prologue are under way a few steps at a time, and later one round. */
        double fills = (double)(int)(72 / (thread_rows(x) * s->pro_words));
        if (fills < 1) fills = 1;
        late = (divided(steps < t->stages ? steps : t->stages, fills) - 1) * latency;
        if (steps > t->stages && latency / x->kg > busy) busy = latency / x->kg;
    }
    return tile_cost_ns(&(tile_cost){ .latency = latency,
                                      .late = late,
                                      .ready = 150,
                                      .ghz = m->ghz,
                                      .waves = waves,
                                      .resident = resident,
                                      .share = each / together,
                                      .steps = steps,
                                      .busy = busy,
                                      .sums = x->bm * x->bn * 4.0 * x->kg,
                                      .memory = bytes / m->bandwidth,
                                      .groups = x->kg,
                                      .split_log = t->split_log });
}

/* ---- tactics ---- */

static void form_add(ranking *list, const machine *m, const mma_shape *s, mma_tactic t, double bytes)
{
    uint32_t at;
    if (mma_shared_size(&tiles[t.tile], &t, t.stages, &at) <= m->shared)
        ranking_add(list, estimate(m, s, &t, bytes), &t);
}

static bool is_tile_wanted(const mma_shape *s, const mma_tile *x)
{
    if (s->b_kind == MMA_B_KN && x->bn < 64) return false;
    if (s->a_vec < s->chunk && x->bm > 128) return false;
    if (s->b_vec && s->b_vec < s->chunk && x->bn > 128) return false;
    if (x->bm > 16 && s->rows <= x->bm / 2) return false;
    return x->bn <= 32 || s->cols > x->bn / 2;
}

void mma_tactics(const problem *p, const kernel_target *target, tactic_sink *out)
{
    mma_shape s;
    if (mma_shape_of(p, &s)) return;
    const machine m = machine_of(target);
    const double bytes = cuda_problem_bytes(p);
    ranking list = { .most = RANKING_MAX };
    const bool is_hopper = target->isa >= 90;
    const uint32_t cluster = is_hopper ? cuda_cluster_most(target) : 1;
    for (uint32_t pass = 0; pass < 2 && !list.count; pass++) /* at least one, whatever the sizes */
        for (uint32_t i = 0; i < TILES; i++) {
            const mma_tile *x = &tiles[i];
            if (s.b_kind == MMA_B_KN && x->bn < 64) continue;
            if (!pass && !is_tile_wanted(&s, x)) continue;
            for (uint32_t log = 0; log <= SPLIT_LOG_MAX && 1u << log <= cluster && 1 << log <= x->bm; log++) {
                const uint32_t steps = steps_of(&s, log);
                if (log && (steps_of(&s, 0) < 2u << log || x->bm > 128 || x->bn > 128)) break;
                mma_tactic t = { .tile = (uint8_t)i, .split_log = (uint8_t)log, .trigger = 2, .is_hopper = is_hopper };
                const uint32_t whole = (steps + x->kg - 1u) / x->kg * x->kg, least = (s.is_k_static ? 1u : 2u) * x->kg,
                               slot = ((uint32_t)x->bm + x->bn) * MMA_STEP_BYTES;
                if (whole <= STAGES_WHOLE && whole * slot <= 160 * 1024) {
                    t.stages = (uint8_t)(whole > least ? whole : least);
                    form_add(&list, &m, &s, t, bytes);
                }
                if (whole > 8 || (x->kg == 1 && whole > 4)) {
                    t.stages = 4;
                    form_add(&list, &m, &s, t, bytes);
                }
                if (x->kg == 2 && whole > 12) {
                    t.stages = 8;
                    form_add(&list, &m, &s, t, bytes);
                }
                if (x->kg == 1 && whole > 3) {
                    t.stages = 3;
                    form_add(&list, &m, &s, t, bytes);
                }
            }
        }
    /* One of each tile and split, of the best with other slots, too. Where the next kernel is let in depends on what
     * waits beside what, and matters where kernels are short: measured, not guessed. */
    mma_tactic best[3];
    uint32_t kinds = 0, given = 0;
    for (uint32_t i = 0; i < list.count && given < 14; i++) {
        const mma_tactic t = TACTIC_AS(mma_tactic, &list.at[i]);
        uint32_t seen = 0;
        for (uint32_t k = 0; k < i; k++) {
            const mma_tactic x = TACTIC_AS(mma_tactic, &list.at[k]);
            seen += x.tile == t.tile && x.split_log == t.split_log;
        }
        if (seen && (seen > 1 || i > 3)) continue;
        if (!seen && kinds < COUNT_OF(best)) best[kinds++] = t;
        tactic_put(out, &t);
        given++;
    }
    if (!is_hopper || list.cost[0] > 15000) return;
    for (uint32_t i = 0; i < kinds + 1; i++) {
        mma_tactic t = best[i % kinds];
        t.trigger = i < kinds ? 3 : 1;
        tactic_put(out, &t);
    }
}

bool mma_check(const problem *p, const tactic *t)
{
    const mma_tactic m = TACTIC_AS(mma_tactic, t);
    mma_shape s;
    if (!FIELDS_HOLD(fields, t) || mma_shape_of(p, &s)) return false;
    const mma_tile *x = &tiles[m.tile];
    if (1 << m.split_log > x->bm || (m.split_log && !m.is_hopper)) return false;
    if (m.stages < stages_least(&s, &m) || m.stages % x->kg) return false;
    if (s.b_kind == MMA_B_KN && x->bn < 64) return false;
    uint32_t at;
    return mma_shared_size(x, &m, m.stages, &at) <= SHARED_MOST;
}

void mma_print(const tactic *t, text *out)
{
    const mma_tactic m = TACTIC_AS(mma_tactic, t);
    const mma_tile *x = &tiles[m.tile];
    text_printf(out, "%ux%u/%u s%u k%u x%u t%u", x->bm, x->bn, x->wm * x->wn * x->kg, m.stages, x->kg,
                1u << m.split_log, m.trigger);
}

void mma_lets_in(const tactic *t, tactic_sink *out)
{
    fields_vary(t, offsetof(mma_tactic, trigger), 3, out);
}

double mma_cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    mma_shape s;
    if (mma_shape_of(p, &s)) return 1e12;
    const machine m = machine_of(target);
    const mma_tactic tt = TACTIC_AS(mma_tactic, t);
    return estimate(&m, &s, &tt, cuda_problem_bytes(p));
}
