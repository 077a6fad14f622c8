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
