/* SPDX-License-Identifier: Apache-2.0 */
/* raise.h - what the functions of raise.c share, which make a layer of an ONNX node. */
#ifndef NETWORK_RAISE_H
#define NETWORK_RAISE_H

#include "network/network_parse.h"

typedef struct raising {
    parsing *s;
    const onnx_node *n;
    sinter_network_tensor **in; /* NULL: absent, or an initializer that is no tensor yet */
    int64_t version, arg;
    bool is_wrong;
} raising;

/* The node: NULL and `initial` where it does not have the attribute, with that type. */
const onnx_attr *raise_attr(const raising *r, const char *name, int32_t type);
bool          raise_has(const raising *r, const char *name);
int64_t       raise_integer(const raising *r, const char *name, int64_t initial);
const char   *raise_words(const raising *r, const char *name, const char *initial);
/* Does the node have as many inputs and outputs as that, and no other attributes than these ("a b c")? */
bool          raise_shaped(const raising *r, uint32_t in_min, uint32_t in_max, uint32_t outs, const char *attrs);
bool          raise_has_input(const raising *r, uint32_t i);
/* Input i as a tensor: an initializer becomes a layer. */
sinter_network_tensor *raise_tensor(raising *r, uint32_t i);
/* The integers of an input that is an initializer, or a constant. */
bool          raise_known_ints(raising *r, uint32_t i, attr_ints *out);
/* The place of a word in a list; -1: it is not there. */
int64_t       raise_place(const char *word, const char *const *of, int64_t count);

/* The layer: with the first `count` inputs. A failure sets is_wrong; a layer that is NULL is left alone. */
sinter_layer *raise_make(raising *r, sinter_layer_kind kind, uint32_t count);
void          raise_set(raising *r, sinter_layer *layer, const char *name, int64_t value);
void          raise_set_list(raising *r, sinter_layer *layer, const char *name, const int64_t *at, uint32_t count);

/* raise_slice.c */
sinter_layer *raise_axes(raising *r);   /* arg: the kind */
sinter_layer *raise_slice(raising *r);
sinter_layer *raise_pad(raising *r);
sinter_layer *raise_split(raising *r);

#endif
