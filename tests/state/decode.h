/* SPDX-License-Identifier: Apache-2.0 */
/* decode.h - one sequence of runs by two engines of a decoder: with its keys and values in the context, and with all of
 * them as inputs and outputs. Both see the same data and must give the same results.
 *
 * The model names sizes S (new rows), P (past rows) and, where an input has both together, T. */
#ifndef DECODE_H
#define DECODE_H

#include "sinter/sinter.h"
#include <stdbool.h>

/* Tokens are below DECODE_TOKENS. DECODE_NAN, added to a number of rows: all of them are token DECODE_TOKENS, whose
 * embedding is NaN in the models of grow_decoder.h. */
enum { DECODE_RUNS = 512, DECODE_WHY = 4096, DECODE_TOKENS = 60, DECODE_NAN = 1 << 20 };

typedef struct decode {
    const char *path;               /* of the model */
    const char *device, *judge;     /* of the engine with state, and of the engine without */
    const char *input, *output;     /* the pair of options.state */
    bool        has_total;          /* T is a size of the model */
    uint64_t    capacity;
    int64_t     most;               /* new rows of a run, at most */
    int64_t     rows[DECODE_RUNS];  /* of each run; 0: reset; below 0: so many of the last rows are forgotten */
    uint32_t    runs;
    uint32_t    allow;              /* types that the engine with state may use */
    double      tolerance;          /* of an output's largest element */
    uint64_t    seed;
    bool        checks_growth;      /* count what later runs of a size that was seen allocate and bind */
} decode;

typedef struct decode_report {
    double   worst;                 /* difference, as a part of the output's largest element */
    long     requests;              /* allocations of runs whose size was seen */
    uint64_t binds;                 /* programs bound by such runs */
    double   with_s, without_s;     /* the median time of a run of one row; 0: there was none */
    uint64_t state_bytes;
} decode_report;

/* NULL: equal; else `why`, which has room for DECODE_WHY. */
const char *decode_compare(const decode *d, decode_report *r, char *why);

#endif
