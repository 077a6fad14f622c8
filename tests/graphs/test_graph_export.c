/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph_export.c - random graphs that are written as ONNX, read again and run on the reference kernels, against
 * the judge: as they were imported, with and without the constants that folding made, and simplified. */
#include "graph_campaign.h"
#include "test.h"

static gcampaign campaign_of(grewrite rewrite)
{
    return (gcampaign){ .seed = 5,
                        .count = test_scale(250, 20000),
                        .nodes = 10,
                        .limit = 60,
                        .every = 60,
                        .jobs = 2,
                        .device = "reference",
                        .rewrite = rewrite };
}

static void written_models_compute_the_same(void)
{
    const gcampaign c = campaign_of(G_EXPORTED);
    CHECK_EQ(gcampaign_run(&c), 0);
}

static void simplified_models_compute_the_same(void)
{
    const gcampaign c = campaign_of(G_SIMPLIFIED);
    CHECK_EQ(gcampaign_run(&c), 0);
}

static const test tests[] = {
    T(written_models_compute_the_same),
    T(simplified_models_compute_the_same),
    { 0 },
};
TEST_MAIN(tests)
