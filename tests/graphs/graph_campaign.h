/* SPDX-License-Identifier: Apache-2.0 */
/* graph_campaign.h - many random graphs in several processes: counts as it goes, and files of what fails. */
#ifndef GRAPH_CAMPAIGN_H
#define GRAPH_CAMPAIGN_H

#include "graph_run.h"

enum { CAMPAIGN_JOBS = 256 };

typedef struct gcampaign {
    long count, first;
    uint64_t seed;
    uint32_t jobs, nodes, gpus;
    uint32_t palette;           /* graphs that share a palette (grow_options); 0: none has one */
    uint32_t tuned;             /* on a GPU: of so many builds one is tuned; 0: none. It costs what many others do. */
    uint32_t limit;             /* seconds of a graph */
    uint32_t seconds;           /* of all; 0: until `count` graphs are done */
    uint32_t every;             /* seconds between lines of counts */
    const char *device;
    grewrite rewrite;           /* each model is written as ONNX first */
    uint32_t allow;             /* SINTER_ALLOW_…, of all graphs; 0: of some */
    const char *only, *save, *dump;
    const char *coverage;       /* a file for what the graphs have (graph_coverage.h); they are not run */
    bool states;                /* all graphs have a state, if they can; else some */
    bool prints, reduces;
} gcampaign;

/* How many graphs failed, those that killed their process among them. */
long gcampaign_run(const gcampaign *c);

#endif
