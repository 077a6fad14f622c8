/* SPDX-License-Identifier: Apache-2.0 */
/* row_wgmma_tactic.c - tiles, splits and slots for wgmma.cu and wgmma_once.cu, by an estimate of what each costs.
 *
 * The estimate is that of row_mma_tactic.c: a block's first data arrive after a latency; then each step takes what the
 * slowest of tensor cores, shared memory and the way from L2 takes, for all blocks that share a multiprocessor; then
 * its sums are finished. */
#include "cuda/ranking.h"
#include "cuda/row_wgmma.h"

/* SHORT: steps of a product that waits for L2 more than for its tensor cores. */
enum { STEP = WGMMA_STEP, SHARED_MOST = 232448, SPLIT_LOG_MAX = 3, STAGES_MAX = 24, GIVEN = 18, SHORT = 4 };

static const tactic_field fields[] = {
    FIELD(wgmma_tactic, bn8, 1, 32),      FIELD(wgmma_tactic, stages, 1, STAGES_MAX),
    FIELD(wgmma_tactic, lines, 1, 3),     FIELD(wgmma_tactic, units, 0, UINT8_MAX),
    FIELD(wgmma_tactic, is_once, 0, 1),   FIELD(wgmma_tactic, is_swapped, 0, 1),
    FIELD(wgmma_tactic, groups, 0, 2),    FIELD(wgmma_tactic, split_log, 0, SPLIT_LOG_MAX),
    FIELD(wgmma_tactic, trigger, 0, 3),   FIELD(wgmma_tactic, is_pingpong, 0, 1),
    FIELD(wgmma_tactic, is_staged, 0, 2), FIELD(wgmma_tactic, is_kept, 0, 1),
    FIELD(wgmma_tactic, is_paired, 0, 1),
};

int64_t wgmma_tm(const wgmma_tactic *w)
{
    return w->is_swapped ? w->bn8 * 8 : w->lines * 64;
}

int64_t wgmma_tn(const wgmma_tactic *w)
{
    return w->is_swapped ? w->lines * 64 : w->bn8 * 8;
}

static uint32_t result_size(const problem *p)
{
    return sinter_dtype_bits(p->out[0].dtype) / 8;
}

uint32_t wgmma_strip(const problem *p, const wgmma_tactic *w)
{
    const uint32_t bytes = (uint32_t)wgmma_tn(w) * result_size(p);
    return bytes % 128 == 0 ? 128 : bytes % 64 == 0 ? 64 : 32;
}

/* Bytes of the slots of a block, and how many there are. Each holds 16 rows by a strip of columns, of results or of
 * what is added to them: two for each warp, or, with a residual, as many as its part of a tile takes. */
static uint32_t staged_of(const problem *p, const wgmma_tactic *w, uint32_t *slots)
{
    *slots = 0;
    if (!w->is_staged) return 0;
    const uint32_t strip = wgmma_strip(p, w), warps = w->lines * 4,
                   of_warp = (w->is_pingpong ? w->lines : 1) * (uint32_t)wgmma_tn(w) * result_size(p) / strip;
    *slots = warps * (w->is_staged == 2 && of_warp > 2 ? of_warp : 2);
    return *slots * 16 * strip;
}

/* Bytes of a residual that are on their way to a block at any time: all slots of a warp but one. */
static double staged_ahead(const problem *p, const wgmma_tactic *w)
{
    uint32_t slots;
    const double bytes = staged_of(p, w, &slots);
    return w->is_staged == 2 ? bytes - bytes * w->lines * 4 / slots : 0;
}

uint32_t wgmma_shared(const problem *p, const wgmma_tactic *w, uint32_t *sums_at, uint32_t *barriers_at)
{
    const uint32_t tm = (uint32_t)wgmma_tm(w), tn = (uint32_t)wgmma_tn(w);
    const uint32_t slots = w->stages * (tm + (w->is_kept ? 0 : tn)) * STEP;
    wgmma_form f;
    uint32_t staged;
    if (!w->is_once) {
        const uint32_t kept = w->is_kept && !wgmma_form_of(p, &f) ? (uint32_t)(wgmma_steps(&f) * tn * STEP) : 0;
        *sums_at = slots;
        *barriers_at = slots + kept + staged_of(p, w, &staged);
        return *barriers_at + 16u * (0u + w->stages + w->is_pingpong + w->is_kept) +
               (w->is_staged == 2 ? 8 * staged : 0);
    }
    /* Blocks of a cluster write into one another while slots are still read. */
    const uint32_t sums = w->groups * tm * (tn + (w->is_swapped ? 4 : 8)) * 4;
    *sums_at = w->split_log ? slots : 0;
    *barriers_at = w->split_log ? slots + sums : slots > sums ? slots : sums;
    return *barriers_at + 16u * w->stages;
}

static uint32_t shared_of(const problem *p, const wgmma_tactic *w)
{
    uint32_t sums, barriers;
    return wgmma_shared(p, w, &sums, &barriers);
}

uint32_t wgmma_resident(const problem *p, const wgmma_tactic *w)
{
    if (!w->is_once) return w->lines == 1 || w->is_paired ? 2 : 1;
    /* A thread's sums, and one item of the epilogue: pointers, and 8 elements of what it reads. */
    uint32_t registers = w->bn8 * 4u + 19 + (sinter_dtype_bits(p->in[1].dtype) == 8 ? 24 : 0);
    for (uint32_t i = p->count_anchor; i < p->count_in; i++) {
        const uint32_t elements = sinter_dtype_bits(p->in[i].dtype) / 4;
        registers += 2 + (elements > 1 ? elements : 1);
    }
    if (registers < 64) registers = 64; /* addresses and counts */
    const uint32_t threads = w->lines * w->groups * 128u + 64, blocks = 65536 / (threads * ((registers + 7) / 8 * 8));
    return blocks > 4 ? 4 : blocks ? blocks : 1;
}

/* ---- the estimate ---- */

typedef struct shape {
    const problem *p;
    uint8_t staging; /* what is_staged may be; 0: nothing else */
    bool may_keep;   /* the right side is packed, and one */
    int64_t m, n, batch;
    double steps, depth, bytes, out_bytes; /* bytes of all operands; of one element of the result */
    double drained;                        /* bytes of the result and what is added to it */
} shape;

static uint8_t staging_kind(const problem *p, const wgmma_form *f)
{
    const wgmma_staging g = wgmma_staging_of(p, f);
    return !g.is_possible ? 0 : g.has_residual ? 2 : 1;
}

static bool may_keep(const problem *p, const wgmma_form *f)
{
    return p->in[1].is_const && !f->is_batched;
}

static bool shape_of(const problem *p, shape *s)
{
    wgmma_form f;
    if (wgmma_form_of(p, &f)) return false;
    *s = (shape){ .p = p,
                  .staging = staging_kind(p, &f),
                  .may_keep = may_keep(p, &f),
                  .m = wgmma_rows(p, &f),
                  .n = f.n,
                  .batch = f.batch,
                  .steps = (double)wgmma_steps(&f),
                  .depth = (double)wgmma_depth(&f) };
    for (uint32_t i = 0; i < p->count_in; i++) s->bytes += cuda_operand_bytes(&p->in[i]);
    s->bytes += cuda_operand_bytes(&p->out[0]);
    s->drained = s->bytes - cuda_operand_bytes(&p->in[0]) - cuda_operand_bytes(&p->in[1]);
    s->out_bytes = sinter_dtype_bits(p->out[0].dtype) / 8.0;
    return true;
}

static int64_t divided(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t tiles_of(const shape *s, const wgmma_tactic *w)
{
    return divided(s->m, wgmma_tm(w)) * divided(s->n, wgmma_tn(w)) * s->batch;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double estimate(const shape *s, const wgmma_tactic *w, const kernel_target *t)
{
    const double latency = 900, ghz = 1.7;
    /* Clusters do not fill every group of multiprocessors. */
    const double chip = t->units ? t->units : 132, units = w->is_once && w->split_log > 1 ? chip * 0.95 : chip;
    const double tm = (double)wgmma_tm(w), tn = (double)wgmma_tn(w), bn = w->bn8 * 8.0;
    const double blocks = (double)(tiles_of(s, w) << (w->is_once ? w->split_log : 0));
    double resident = (double)(int)((SHARED_MOST + 1024) / (shared_of(s->p, w) + 1024.0));
    const double registers = wgmma_resident(s->p, w);
    if (resident > registers) resident = registers;
    const double each = (double)(int64_t)((blocks + units - 1) / units), together = each < resident ? each : resident;
    const double waves = (double)(int64_t)((blocks + units * resident - 1) / (units * resident));
    /* Clocks of a step: 4096 operations a clock, of 8 bits twice that, nine tenths of it; an instruction reads both
     * sides from shared memory. */
    const double local = s->depth * w->lines * (16 + bn / 4) + tm + tn, math = s->depth * w->lines * bn / 2 / 0.9,
                 rate = !w->is_once              ? 52
                        : blocks >= units * 0.75 ? 38
                                                 : 48,
                 far = (tm + (w->is_kept ? 0 : tn)) * 128 / rate, own = 90.0 / (w->is_once ? w->groups : 1);
    double busy = larger(larger(math, local), far) * together;
    busy = (larger(busy, own) + 20) / ghz;
    const double steps = w->is_once ? s->steps / (1 << w->split_log) : s->steps;
    if (steps > w->stages && latency / w->stages > busy) busy = latency / w->stages;
    const double stored = tm * tn * s->out_bytes / (w->is_staged ? 64 : 40) / ghz;
    double memory = s->bytes / (t->bandwidth > 0 ? t->bandwidth * 1e-9 : 4000);
    if (s->steps <= SHORT) {
        /* Short products wait for L2, which gives the operands of all tiles, and takes results, at so many bytes a
         * nanosecond; less where a block has one tile, since it reads, multiplies and writes one after the other. A
         * residual comes 1.3 us after it was asked for, and slots hold what may be asked for ahead. Fitted to the times
         * of ResNet-50's convolutions at batch 32 on an H200. */
        const double read = 9500 * chip / 132, drained = 4700 * chip / 132, late = 1300, apart = w->is_once ? 1.4 : 1;
        const double fetched = (double)tiles_of(s, w) * s->steps * STEP * (tm + (w->is_kept ? 0 : tn));
        memory = larger(memory, apart * (fetched / read + s->drained / drained));
        const double ahead = staged_ahead(s->p, w) * (resident < 2 ? 1 : 2) * chip;
        if (ahead > 0) memory = larger(memory, (double)tiles_of(s, w) * tm * tn * s->out_bytes * late / ahead);
    }
    if (w->is_once)
        return tile_cost_ns(&(tile_cost){ .latency = latency,
                                          .ready = 200,
                                          .ghz = ghz,
                                          .waves = waves,
                                          .resident = resident,
                                          .share = each / together,
                                          .steps = steps,
                                          .busy = busy,
                                          .sums = tm * tn * 4 * w->groups,
                                          .stored = stored,
                                          .memory = memory,
                                          .groups = w->groups,
                                          .split_log = w->split_log });
    const double finish = 200 + tm * tn * 4 / 64 / ghz + stored, product = steps * busy;
    double total = 200 + latency + finish;
    /* By turns: the next tile's products hide what finishes a tile, or the other way round. */
    if (w->is_pingpong) total += each * larger(product, (product + finish) / 2);
    else total = total + (each - 1) * finish / (together > 1 ? 2 : 1) + each / together * product;
    return 1000 + larger(total, memory + latency + finish);
}

double wgmma_cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    const wgmma_tactic w = TACTIC_AS(wgmma_tactic, t);
    shape s;
    return shape_of(p, &s) ? estimate(&s, &w, target) : 1e12;
}

/* ---- tactics ---- */

static void choice_add(ranking *c, const shape *s, const kernel_target *t, wgmma_tactic w)
{
    if (shared_of(s->p, &w) <= t->shared) ranking_add(c, estimate(s, &w, t), &w);
}

/* Lines, groups and columns for which there are registers: a thread holds half a column of sums for each. */
static bool is_size(const wgmma_tactic *w)
{
    const bool is_power = w->bn8 == 1 || w->bn8 == 2 || w->bn8 == 4 || w->bn8 == 8 || w->bn8 == 16;
    if (w->is_pingpong && w->is_paired) return false;
    if (w->is_pingpong) return !w->is_once && w->lines == 2 && (w->bn8 == 8 || w->bn8 == 16);
    if (w->is_paired && (w->is_once || w->lines != 2 || w->bn8 > 8)) return false;
    if (!w->is_once) return w->bn8 && w->bn8 % 4 == 0 && w->bn8 <= (w->lines == 3 ? 24 : 32);
    return is_power && (w->is_swapped ? w->bn8 <= 8 : w->bn8 >= 2) && w->bn8 * w->groups <= 16 && w->lines < 3;
}

/* Columns of 64 lines that the busiest block multiplies. */
static int64_t columns_of(const shape *s, const wgmma_tactic *w, int64_t units)
{
    return divided(tiles_of(s, w), units) * wgmma_tn(w) * w->lines;
}

/* Is it worth a try? By turns is, where some blocks have several tiles, 64 wide only where there are no more columns.
 * Widths between the others and tiles of 192 rows are, where blocks get by with fewer columns for it. */
static bool is_promising(const shape *s, const wgmma_tactic *w, int64_t units)
{
    if (w->is_pingpong) return tiles_of(s, w) > units && (s->n > 64 ? w->bn8 == 16 : w->bn8 == 8);
    if (w->lines < 3 && (w->bn8 < 8 || w->bn8 % 8 == 0)) return true;
    if (w->lines == 3 && s->n <= 64) return false;
    if (s->n <= 64 || tiles_of(s, w) <= units / 2) return false;
    for (uint8_t bn8 = 16; bn8 <= 32; bn8 = (uint8_t)(bn8 + 8)) {
        const wgmma_tactic x = { .bn8 = bn8, .lines = w->lines < 3 ? w->lines : 2 };
        if (columns_of(s, &x, units) <= columns_of(s, w, units)) return false;
    }
    return true;
}

/* Four warpgroups leave a thread 160 registers: sums, addresses, and what the epilogue reads for two times 8 elements.
 */
static bool has_registers(const problem *p, const wgmma_tactic *w)
{
    uint32_t registers = w->bn8 * 4u + 40;
    for (uint32_t i = p->count_anchor; i < p->count_in; i++)
        registers += 4 + 2 * (sinter_dtype_bits(p->in[i].dtype) / 4);
    return w->lines < 3 || registers <= 160;
}

/* With what memory there is for steps. */
static void add_fitting(ranking *c, const shape *s, const kernel_target *t, wgmma_tactic w)
{
    const uint32_t most = w.lines == 1 || w.is_paired ? (uint32_t)WGMMA_TWO_BLOCKS : (uint32_t)SHARED_MOST;
    while (w.stages > 2 && shared_of(s->p, &w) > most) w.stages--;
    if (shared_of(s->p, &w) <= most) choice_add(c, s, t, w);
}

static void add_staying(ranking *c, const shape *s, const kernel_target *t)
{
    static const uint8_t shapes[][4] = {
        { 32, 4, 2 }, { 24, 5, 2 },    { 16, 6, 2 },   { 8, 8, 2 },  { 16, 3, 2 }, { 8, 4, 2 },  { 8, 6, 1 },
        { 16, 5, 1 }, { 8, 4, 1 },     { 16, 4, 1 },   { 4, 8, 2 },  { 4, 6, 1 },  { 28, 5, 2 }, { 20, 6, 2 },
        { 12, 7, 2 }, { 16, 7, 2, 1 }, { 8, 8, 2, 1 }, { 24, 4, 3 }, { 20, 5, 3 }, { 16, 5, 3 },
    };
    const uint8_t units = t->units == 0 || t->units > UINT8_MAX ? UINT8_MAX : (uint8_t)t->units;
    for (uint32_t i = 0; i < COUNT_OF(shapes); i++) {
        const uint8_t *x = shapes[i];
        wgmma_tactic w = { .bn8 = x[0], .stages = x[1], .lines = x[2], .units = units, .is_pingpong = x[3] };
        if (i && (w.bn8 * 8 >= 2 * s->n || (w.lines > 1 && s->m <= 64) || s->m < 32)) continue;
        if (!is_promising(s, &w, units) || !has_registers(s->p, &w)) continue;
        choice_add(c, s, t, w);
        /* Where tiles are many and their products short, what goes with each tile counts. Memory sets their steps. */
        bool is_new = true;
        for (uint32_t k = 0; k < i; k++)
            is_new = is_new && (shapes[k][0] != x[0] || shapes[k][2] != x[2] || shapes[k][3] != x[3]);
        const bool may_keep = s->may_keep && tiles_of(s, &w) > units && divided(s->n, wgmma_tn(&w)) <= units;
        for (uint32_t kind = 1; kind < 8 && is_new; kind++) {
            w.is_staged = kind & 1 ? s->staging : 0;
            w.is_kept = kind >> 1 & 1;
            w.is_paired = (uint8_t)(kind >> 2);
            if ((kind & 1 && !w.is_staged) || (w.is_kept && !may_keep) || (w.is_paired && !is_size(&w))) continue;
            add_fitting(c, s, t, w);
        }
    }
}

static void add_once(ranking *c, const shape *s, const kernel_target *t, wgmma_tactic w)
{
    const int64_t tm = wgmma_tm(&w), tn = wgmma_tn(&w), steps = (int64_t)s->steps;
    if (!is_size(&w) || tn >= 2 * s->n + 8 || (tm > 8 && s->m * 2 <= tm) || (w.is_swapped && s->m > 2 * tm)) return;
    for (uint8_t log = 0; log <= SPLIT_LOG_MAX && 1u << log <= cuda_cluster_most(t) && 1 << log <= tm; log++) {
        w.split_log = log;
        if ((log || w.groups > 1) && steps < (int64_t)w.groups * 2 << log) break;
        if (log && tiles_of(s, &w) << log > 4 * (int64_t)(t->units ? t->units : 132)) break;
        const int64_t share = divided(steps, 1 << log), whole = divided(share, w.groups) * w.groups;
        if (whole <= STAGES_MAX && whole * (tm + tn) * STEP <= 160 * 1024) {
            w.stages = (uint8_t)whole;
            choice_add(c, s, t, w);
        }
        for (uint8_t stages = 4; stages <= 12; stages = (uint8_t)(stages + 4)) {
            w.stages = stages;
            if (whole > stages) choice_add(c, s, t, w);
        }
    }
}

void wgmma_tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    shape s;
    if (!shape_of(p, &s)) return;
    ranking c = { .most = RANKING_MAX };
    add_staying(&c, &s, t);
    for (uint32_t i = 0; i < 2 * 5 * 2 * 2; i++)
        add_once(&c, &s, t,
                 (wgmma_tactic){ .is_once = 1,
                                 .is_swapped = i % 2,
                                 .lines = (uint8_t)(1 + i / 2 % 2),
                                 .groups = (uint8_t)(1 + i / 4 % 2),
                                 .bn8 = (uint8_t)(1 << i / 8),
                                 .trigger = 2 });
    /* One of each tile and split, of the best with other slots, too; and where kernels are short when the next may
     * start. */
    const uint32_t first = out->count;
    for (uint32_t i = 0; i < c.count && out->count - first < GIVEN; i++) {
        const wgmma_tactic w = TACTIC_AS(wgmma_tactic, &c.at[i]);
        uint32_t seen = 0, alike = 0;
        for (uint32_t k = 0; k < i; k++) {
            const wgmma_tactic x = TACTIC_AS(wgmma_tactic, &c.at[k]);
            const bool is_alike = x.bn8 == w.bn8 && x.lines == w.lines && x.is_once == w.is_once &&
                                  x.is_swapped == w.is_swapped && x.is_pingpong == w.is_pingpong &&
                                  x.is_staged == w.is_staged && x.is_kept == w.is_kept && x.is_paired == w.is_paired &&
                                  x.groups == w.groups;
            alike += is_alike;
            seen += is_alike && x.split_log == w.split_log;
        }
        if ((seen && (seen > 1 || i > 3)) || alike > 4) continue;
        tactic_put(out, &w);
    }
    if (!c.count || c.cost[0] > 15000) return;
    uint32_t more = 0;
    for (uint32_t i = 0; i < c.count && more < 2; i++)
        for (uint8_t trigger = 1; trigger <= 3 && TACTIC_AS(wgmma_tactic, &c.at[i]).is_once;
             trigger = (uint8_t)(trigger + 2)) {
            wgmma_tactic w = TACTIC_AS(wgmma_tactic, &c.at[i]);
            w.trigger = trigger;
            tactic_put(out, &w);
            more++;
        }
}

bool wgmma_check(const problem *p, const tactic *t)
{
    const wgmma_tactic w = TACTIC_AS(wgmma_tactic, t);
    wgmma_form f;
    if (!FIELDS_HOLD(fields, t) || wgmma_form_of(p, &f) || !is_size(&w)) return false;
    if (shared_of(p, &w) > (w.is_paired ? (uint32_t)WGMMA_TWO_BLOCKS : (uint32_t)SHARED_MOST)) return false;
    if (w.is_staged && w.is_staged != staging_kind(p, &f)) return false;
    if (w.is_kept && (!may_keep(p, &f) || divided(f.n, wgmma_tn(&w)) > w.units)) return false;
    if (!w.is_once)
        return w.units && !w.is_swapped && !w.groups && !w.split_log && !w.trigger && w.stages >= 2 && w.stages <= 8;
    if (w.units || !w.groups || !w.trigger || w.stages < w.groups || w.is_staged || w.is_kept) return false;
    return 1 << w.split_log <= wgmma_tm(&w) && wgmma_steps(&f) >= (int64_t)w.groups << w.split_log;
}

void wgmma_lets_in(const tactic *t, tactic_sink *out)
{
    fields_vary(t, offsetof(wgmma_tactic, trigger), 3, out);
}

void wgmma_print(const tactic *t, text *out)
{
    const wgmma_tactic w = TACTIC_AS(wgmma_tactic, t);
    text_printf(out, "%lldx%lld s%u", (long long)wgmma_tm(&w), (long long)wgmma_tn(&w), w.stages);
    if (w.is_pingpong) text_printf(out, " pingpong");
    if (w.is_kept) text_printf(out, " kept");
    if (w.is_paired) text_printf(out, " paired");
    if (w.is_staged) text_printf(out, " staged");
    if (w.is_once)
        text_printf(out, " once%s k%u x%u t%u", w.is_swapped ? " swapped" : "", w.groups, 1u << w.split_log, w.trigger);
}
