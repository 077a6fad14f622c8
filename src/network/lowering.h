/* SPDX-License-Identifier: Apache-2.0 */
/* lowering.h - the state of one lowering: a graph that grows, and which value each tensor is in each region. */
#ifndef NETWORK_LOWERING_H
#define NETWORK_LOWERING_H

#include "base/hash.h"
#include "network/network.h"

enum { LAYER_NEW = 0, LAYER_OPEN, LAYER_DONE, LAYER_FAILED };

/* The values that tensors have in one region of the graph. */
typedef struct context {
    lowering     *l;
    struct context *outer, *sibling;    /* around it; the other branch. NULL: none */
    const network_control *control;     /* that it is the inside of; NULL: main */
    ir_node_id    owner;
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
    bool                is_flat;        /* for questions: no regions are made */
    bool              **inside;         /* by control and layer: does the layer belong inside? NULL: no such control */
    bool               *is_inner;       /* by layer: it is inside of something, or has no value of its own */
    const sinter_layer *failed;         /* the layer that failed, as opposed to those that read it */
};

sinter_status context_room(context *x);     /* for all tensors and layers there are */
sinter_status context_layer(context *x, sinter_layer *layer);
/* lower_control.c: which layers are inside of what; whether a tensor is made in this region, and its value where it
 * is not; the inputs of a layer, up to one that has to be lowered first; a whole loop or conditional, by a result. */
sinter_status lowering_controls(lowering *l);
bool          context_owns(const context *x, const sinter_network_tensor *t);
sinter_status context_capture(context *x, sinter_network_tensor *t);
sinter_status context_inputs(context *x, const sinter_layer *layer, sinter_network_tensor **missing);
bool          network_opens(const sinter_layer *layer);    /* its outputs are inside of a loop or conditional */
bool          network_gives_results(const sinter_layer *layer);
sinter_status context_control(context *x, const sinter_layer *layer);
sinter_status context_value(context *x, sinter_network_tensor *t, ir_value_id *out);

/* Parts of network_digest: a text with its end; what a layer of kind PLUGIN calls. */
void network_hash_text(sha256 *h, const char *words);
void network_hash_plugin(sha256 *h, const network_plugin_info *plugin);

#endif
