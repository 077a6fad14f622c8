/* SPDX-License-Identifier: Apache-2.0 */
/* graph_run.h - a judged model through the whole pipeline: import, optimise, tune, save, load, run, compare. */
#ifndef GRAPH_RUN_H
#define GRAPH_RUN_H

#include "graph_judge.h"

typedef enum grewrite { G_AS_IT_IS, G_EXPORTED, G_SIMPLIFIED } grewrite;
typedef struct grun {
    const char *device;
    const char *isa;                /* NULL: what the machine has */
    sinter_tune tune;
    sinter_math math;
    uint32_t threads;
    uint64_t seed;                  /* of the order of runs, and of where buffers stand */
    uint32_t refittable;            /* and refitted with other weights */
    sinter_stage_fn stage;          /* sees the graph after each pass; NULL: nobody does */
    grewrite rewrite;               /* the model is written as ONNX first, and read again */
} grun;

typedef struct gverdict {
    /* "": all is well; "judge", "write", "build", "load", "recipe", "refit", "context", "shape",
     * "run", "wrong", "memory" */
    char stage[16];
    char text[1400];
    uint32_t compared, doubtful;    /* results */
    uint32_t changed;               /* weights that were replaced */
    uint32_t kernels, compiled;     /* of a GPU: what the build wanted, and what no cache had */
    bool is_refused;                /* the build does not take it, for a reason that is accepted */
} gverdict;

/* What to try for a graph of a random campaign. */
grun grun_random(uint64_t seed, const char *device);
bool grun_is_cuda(const char *device);
void grun_print(const grun *o, char *out, size_t size);
/* The engine that grun_model runs; the caller frees it. False: `out` says why there is none. */
bool grun_build(const gmodel *m, const grun *o, sinter_buffer *engine, gverdict *out);
/* True: nothing is wrong. The model has been judged in all environments. */
bool grun_model(const gmodel *m, const grun *o, gverdict *out);
/* A file of graph_text.c on all instruction sets, measured and not, exact and not. False: said on stdout. */
bool grun_file(const char *path, const char *device);
/* A verdict without its numbers and names: failures of one class have one. */
void gverdict_class(const gverdict *v, char *out, size_t size);

#endif
