/* SPDX-License-Identifier: Apache-2.0 */
/* graph_states.h - what the states of a context hold after some runs, as the judge has it. */
#ifndef GRAPH_STATES_H
#define GRAPH_STATES_H

#include "graph_judge.h"

typedef struct gheld {
    gtensor *at[G_STATES][G_LANES];
    int64_t rows;               /* that count, of states that grow */
} gheld;

/* Zeros, and no rows. */
void gheld_reset(const gmodel *m, gheld *h);
/* May a run be in this environment, with the rows that there are or fewer? */
bool gheld_allows(const gmodel *m, const gheld *h, uint32_t k);
/* The model of a run in environment k, judged. False: the judge refused it (to->error). `h` is borrowed. */
bool gheld_judge(gmodel *to, const gmodel *m, gheld *h, uint32_t k);
/* What the run leaves. False: nobody can tell. */
bool gheld_take(const gmodel *judged, gheld *h, uint32_t k);

bool gmodel_is_state_in(const gmodel *m, uint32_t value);
bool gmodel_is_state_out(const gmodel *m, uint32_t value);

#endif
