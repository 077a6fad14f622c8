/* SPDX-License-Identifier: Apache-2.0 */
/* lowering.h - the state of one lowering: a graph that grows, and which value each tensor is in each region. */
#ifndef NETWORK_LOWERING_H
#define NETWORK_LOWERING_H

#include "network/network.h"

enum { LAYER_NEW = 0, LAYER_OPEN, LAYER_DONE, LAYER_FAILED };

/* The values that tensors have in one region of the graph. */
typedef struct context {
    lowering     *l;
    ir_region_id  region;
    onnx_scope    scope;                /* of conversions of operators */
    ir_value_id  *value;                /* by a tensor's id; 0: none yet */
    uint8_t      *state;                /* by a layer's id */
    uint32_t      value_size, state_size;
} context;

struct lowering {
    env                *e;
    sinter_network     *net;
    importer            im;
    onnx_import_options options;
    context             main;
    const sinter_layer *failed;         /* the layer that failed, as opposed to those that read it */
};

sinter_status context_room(context *x);     /* for all tensors and layers there are */
sinter_status context_layer(context *x, sinter_layer *layer);
sinter_status context_value(context *x, sinter_network_tensor *t, ir_value_id *out);

#endif
