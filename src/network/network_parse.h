/* SPDX-License-Identifier: Apache-2.0 */
/* network_parse.h - an ONNX model becomes layers of a network. */
#ifndef NETWORK_NETWORK_PARSE_H
#define NETWORK_NETWORK_PARSE_H

#include "network/network.h"

typedef struct network_problem {
    sinter_status status;
    uint32_t      node;                 /* in the model's main graph; UINT32_MAX: none */
    const char   *name, *type, *message;
} network_problem;

/* Models that were parsed into one network: what was wrong, and which nodes of the last one can be run. */
struct sinter_parser {
    sinter_network *net;
    arena           a;
    VEC(network_problem) problem;
    uint32_t        node_count;         /* of the last model */
    uint32_t       *order;              /* [node_count] */
    bool           *is_bad;             /* by node */
    VEC(uint32_t)   first;              /* of each subgraph: its place in the order */
};

/* Adds the model to the network. The bytes must live as long as the network. INVALID_MODEL or UNSUPPORTED: see the
 * problems. */
sinter_status parse_model(sinter_parser *p, env *e, const uint8_t *bytes, size_t size, const char *folder);

/* raise.c: a layer for a node whose inputs are known. NULL and no failure: none of the kinds is the same. */
typedef struct parsing {
    sinter_parser *p;
    sinter_network *net;
    env           *e;
    onnx_model    *model;
    const char    *folder;
    bool           has_text;            /* text or sequences: what may take them stays an operator */
    bool           has_loose_ranks;     /* a rank depends on the sizes: Squeeze without axes */
    name_map       names;               /* 1 + tensor ids; PARSED_TENSOR | index of an initializer that nobody read */
    uint32_t      *uses;                /* by initializer: how many inputs read it */
} parsing;
#define PARSED_TENSOR UINT32_C(0x80000000)
#define PARSED_BAD    UINT32_C(0xffffffff)
sinter_layer *raise_node(parsing *s, const onnx_node *n, int64_t version, sinter_network_tensor **in);
const onnx_tensor *parsed_initializer(const parsing *s, const char *name, uint32_t *index);
sinter_layer *parsed_constant(parsing *s, const onnx_tensor *t, const char *name);
bool          parsed_weights(parsing *s, const onnx_tensor *t, view *out);

#endif
