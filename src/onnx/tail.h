/* SPDX-License-Identifier: Apache-2.0 */
/* tail.h - which nodes behind an If move into its branches, because they read outputs whose ranks differ: quirks_if.c.
 *
 * A place is an index into the order of a scope's nodes. A search costs what the tail has and reads, however many nodes
 * lie behind the If. */
#ifndef ONNX_TAIL_H
#define ONNX_TAIL_H

#include "onnx/importer.h"

typedef VEC(uint32_t) tail_places;
typedef struct tail_search {
    onnx_scope *s;
    arena       a;              /* dies with the search */
    name_map    varying;        /* names whose rank differs from branch to branch */
    onnx_names  varied;         /* the same, as a list in the importer's arena */
    tail_places in;             /* the nodes of the tail */
    tail_places cone;           /* nodes behind the If that the tail reads, directly or not, and that were not in it */
    tail_places ahead;          /* those of them that do not depend on the If */
    uint32_t    spread;         /* varied names whose readers are in the tail */
    uint32_t    closed;         /* nodes of the tail whose inputs were looked at */
    uint32_t    prepared;       /* nodes of `ahead` that were converted */
} tail_search;

/* A search for the If that the scope converts now. Every search that was begun is ended. */
sinter_status tail_begin(importer *im, onnx_scope *s, tail_search *x);
void          tail_end(tail_search *x);
/* The name varies. A name that neither the If nor a node behind it gives is left out. */
void          tail_varies(importer *im, tail_search *x, const char *name);
/* Puts each reader of a varying name into the tail, and each node that lies between the If and the tail. What an
 * Identity in the tail gives varies as its input does. */
sinter_status tail_close(importer *im, tail_search *x);
/* Is a varying name read when all nodes are done? Then no tail helps. */
bool          tail_is_stuck(const tail_search *x);
/* The tail also reads values that are made behind the If and do not depend on the If. Converts their nodes. */
sinter_status tail_prepare(importer *im, tail_search *x);
/* Lists the tail's nodes, and the names that leave the branches: the outputs of the If and of the tail that something
 * else reads. */
sinter_status tail_list(importer *im, tail_search *x, call_tail *out);
/* The nodes of the tail are converted: nothing else converts them. */
void          tail_done(tail_search *x);

#endif
