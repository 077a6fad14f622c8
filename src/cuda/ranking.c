/* SPDX-License-Identifier: Apache-2.0 */
/* ranking.c - see ranking.h. */
#include "cuda/ranking.h"

#include <string.h>

void ranking_add(ranking *r, double cost, const void *tactic_bytes)
{
    uint32_t at = r->count < r->most ? r->count++ : r->most;
    for (; at > 0 && r->cost[at - 1] > cost; at--) {
        r->cost[at] = r->cost[at - 1];
        r->at[at] = r->at[at - 1];
    }
    r->cost[at] = cost;
    memcpy(&r->at[at], tactic_bytes, sizeof r->at[at]);
}

void ranking_take(const ranking *r, tactic_sink *out)
{
    for (uint32_t i = 0; i < r->count && out->count < COUNT_OF(out->at); i++) out->at[out->count++] = r->at[i];
}

machine machine_of(const kernel_target *t)
{
    machine m = { .units = t->units ? t->units : 80, .shared = t->shared ? t->shared : 49152 };
    const double lanes = t->isa == 75 || t->isa == 80 ? 64 : 128;
    m.ghz = t->flops > 0 ? t->flops / (m.units * 2 * lanes) * 1e-9 : 1.6;
    if (m.ghz < 0.8 || m.ghz > 3.5) m.ghz = 1.6;
    /* Through mma.sync, sm_90 and sm_100 reach about six tenths of what wgmma does. */
    m.flops = t->isa == 80 ? 2048 : t->isa == 90 || t->isa == 100 ? 2500 : 1024;
    m.bandwidth = t->bandwidth > 0 ? t->bandwidth * 1e-9 : 1000;
    return m;
}

double tile_cost_ns(const tile_cost *x)
{
    const double parts = (double)(x->groups << x->split_log), once = x->sums / 128 / x->ghz;
    double finish = x->ready + parts * 15 + once + x->stored / (1 << x->split_log);
    finish += x->split_log ? 300 + 150.0 * x->split_log + x->sums / 32 / x->ghz : once;
    double total = x->waves * (x->latency + x->late + finish) + x->share * x->steps * x->busy;
    /* With several blocks at once one's latencies hide behind another's work. */
    if (x->waves > 2 && x->resident > 1) total -= (x->waves - 2) * 0.5 * (x->latency + finish);
    const double least = x->memory + x->latency + finish;
    return 1000 + (total > least ? total : least);
}
