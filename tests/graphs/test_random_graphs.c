/* SPDX-License-Identifier: Apache-2.0 */
/* test_random_graphs.c - random graphs through the whole pipeline, each in every environment, against the judge.
 *
 *     graphs_test_random_graphs [--count N] [--seconds N] [--seed S] [--graph N] [--from N]
 *                               [--device cpu|reference|cuda] [--gpus N] [--tuned N] [--palette N] [--jobs N]
 *                               [--nodes N] [--limit SECONDS] [--only OPERATOR] [--allow BITS] [--known N] [--reduce]
 *                               [--save DIR] [--every N] [--dump DIR]
 *                               [--file GRAPH...] [--print] [--rewrite export|simplify] [--coverage FILE] [--states]
 *
 * --seconds: no graph is begun after so many; without --count, there is no other end. --every: seconds between lines of
 * counts. --save: failures are kept as text and ONNX as soon as they are met; --reduce: the first of each class are
 * also made small, printed and kept. --palette: so many graphs after each other are made of few sizes, types and
 * operators, so that they share compiled kernels. --gpus: workers take turns among so many.
 * --tuned: on a GPU, one build of so many is tuned. --limit: of one graph. --allow: all graphs may be in a narrower
 * type (SINTER_ALLOW_…). --dump writes the graphs for compare_onnxruntime.py, and runs none. --rewrite: each model is
 * written as ONNX first, as it is or simplified, and that model is run. --file runs a model as text. --coverage appends
 * what the graphs have to a file for uncovered.py, and runs none. --states: each graph has inputs and outputs that stay
 * in the context; else one of 16. Graph N of a seed and a palette is the same everywhere. */
#include "graph_ops.h"
#include "graph_campaign.h"
#include "test.h"

#include <limits.h>
#include <unistd.h>

typedef struct options {
    gcampaign c;
    long known;
    const char *files[256];
    uint32_t file_count;
} options;

static bool read_option(options *o, const char *name, const char *v)
{
    gcampaign *c = &o->c;
    if (!strcmp(name, "--file") && o->file_count < COUNT_OF(o->files)) o->files[o->file_count++] = v;
    else if (!strcmp(name, "--count")) c->count = atol(v);
    else if (!strcmp(name, "--seconds")) c->seconds = (uint32_t)atol(v);
    else if (!strcmp(name, "--every")) c->every = (uint32_t)atol(v);
    else if (!strcmp(name, "--seed")) c->seed = strtoull(v, NULL, 10);
    else if (!strcmp(name, "--graph")) c->first = atol(v), c->count = 1;
    else if (!strcmp(name, "--from")) c->first = atol(v);
    else if (!strcmp(name, "--jobs")) c->jobs = (uint32_t)atol(v);
    else if (!strcmp(name, "--gpus")) c->gpus = (uint32_t)atol(v);
    else if (!strcmp(name, "--tuned")) c->tuned = (uint32_t)atol(v);
    else if (!strcmp(name, "--limit")) c->limit = (uint32_t)atol(v);
    else if (!strcmp(name, "--palette")) c->palette = (uint32_t)atol(v);
    else if (!strcmp(name, "--nodes")) c->nodes = (uint32_t)atol(v);
    else if (!strcmp(name, "--known")) o->known = atol(v);
    else if (!strcmp(name, "--only") && gop_find(v)) c->only = v;
    else if (!strcmp(name, "--dump")) c->dump = v;
    else if (!strcmp(name, "--coverage")) c->coverage = v;
    else if (!strcmp(name, "--save")) c->save = v;
    else if (!strcmp(name, "--device")) c->device = v;
    else if (!strcmp(name, "--allow")) c->allow = (uint32_t)atol(v);
    else if (!strcmp(name, "--rewrite")) c->rewrite = !strcmp(v, "export") ? G_EXPORTED : G_SIMPLIFIED;
    else return false;
    return true;
}

static bool read_options(options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--print")) o->c.prints = true;
        else if (!strcmp(argv[i], "--reduce")) o->c.reduces = true;
        else if (!strcmp(argv[i], "--states")) o->c.states = true;
        else if (i + 1 == argc || !read_option(o, argv[i], argv[i + 1])) return false;
        else i++;
    }
    if (!o->c.count) o->c.count = o->c.seconds ? LONG_MAX / 2 : test_scale(2000, 200000);
    return o->c.jobs >= 1 && o->c.jobs <= CAMPAIGN_JOBS;
}

int main(int argc, char **argv)
{
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    options o = { .c = { .seed = 1,
                         .nodes = 10,
                         .limit = 60,
                         .every = 10,
                         .jobs = cpus < 1    ? 1
                                 : cpus > 64 ? 64
                                             : (uint32_t)cpus } };
    if (!read_options(&o, argc, argv)) {
        (void)fprintf(stderr, "%s: see the top of test_random_graphs.c for the options\n", argv[0]);
        return 2;
    }
    for (uint32_t i = 0; i < o.file_count; i++)
        if (!grun_file(o.files[i], o.c.device)) return 1;
    if (o.file_count) return 0;
    return gcampaign_run(&o.c) > o.known;
}
