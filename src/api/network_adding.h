/* SPDX-License-Identifier: Apache-2.0 */
/* network_adding.h - how a typed call adds a layer: the layer of the kind, then its parameters. A layer of which a
 * parameter is refused is removed. */
#ifndef API_NETWORK_ADDING_H
#define API_NETWORK_ADDING_H

#include "network/network.h"

/* One call while it goes on. */
typedef struct adding {
    env *e;
    sinter_network *net;
    sinter_layer *layer;
    sinter_status status;
} adding;

static inline adding begin(sinter_network *net, sinter_layer_kind kind, sinter_network_tensor *const *in,
                           uint32_t count,
                    sinter_error *error)
{
    adding a = { .e = network_env(net, error), .net = net };
    if (a.e) a.layer = network_add(net, a.e, kind, in, count);
    a.status = a.layer ? SINTER_OK : SINTER_INVALID_ARG;
    return a;
}

static inline void set_int(adding *a, const char *name, int64_t value)
{
    if (!a->status) a->status = network_set_int(a->layer, a->e, name, value);
}

static inline void set_real(adding *a, const char *name, double value)
{
    if (!a->status) a->status = network_set_real(a->layer, a->e, name, value);
}

static inline void set_text(adding *a, const char *name, const char *value)
{
    if (!a->status) a->status = network_set_text(a->layer, a->e, name, value);
}

static inline void set_ints(adding *a, const char *name, const int64_t *value, uint32_t count)
{
    if (!a->status) a->status = network_set_ints(a->layer, a->e, name, value, count);
}

static inline void set_weights(adding *a, const char *name, const sinter_weights *value)
{
    if (!a->status && value) a->status = network_set_weights(a->layer, a->e, name, value);
}

static inline sinter_layer *end(adding *a)
{
    if (!a->status || !a->layer) return a->layer;
    const sinter_error kept = *a->e->error;
    (void)network_remove(a->net, a->e, a->layer);
    *a->e->error = kept;
    return NULL;
}

#endif
