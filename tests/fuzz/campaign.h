/* SPDX-License-Identifier: Apache-2.0 */
/* campaign.h - many rounds in processes of their own: one that dies is named, and the others go on. */
#ifndef CAMPAIGN_H
#define CAMPAIGN_H

#include "engine_rig.h"

typedef struct campaign {
    const char *name;               /* <name>=round in the environment repeats that round alone, in this process */
    long        rounds;
    void      (*round)(void *user, long round, rig_count *count);
    void       *user;
    rig_count   count;              /* of all rounds that came to an end */
    long        died;
} campaign;

/* One process for each CPU, and a line with the counts at the end. A round may take a minute. From the environment:
 * CAMPAIGN_FIRST and CAMPAIGN_ROUNDS say where to begin and where to end, CAMPAIGN_WORKERS how many processes work, and
 * CAMPAIGN_SECONDS after which time no round is begun; with it the counts so far are printed each 10 seconds. */
void campaign_run(campaign *c);

#endif
