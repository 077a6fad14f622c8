/* SPDX-License-Identifier: Apache-2.0 */
/* raise_slice.c - nodes that cut, pad and split, or that add and take axes, as layers: their numbers are attributes in
 * one version of ONNX and inputs in another. */
#include "network/raise.h"

#include <stdlib.h>
#include <string.h>

/* Numbers that are an input from version `since` on, and an attribute before. False: they are not there, or not known.
 */
static bool list_of(raising *r, const char *name, uint32_t input, int64_t since, attr_ints *out)
{
    const onnx_attr *a = r->version < since ? raise_attr(r, name, ONNX_INTS) : NULL;
    out->count = 0;
    if (r->version >= since) return raise_has_input(r, input) && raise_known_ints(r, input, out);
    if (!a || a->ints.count > ATTR_INTS_MAX) return false;
    while (out->count < a->ints.count) {
        out->at[out->count] = a->ints.at[out->count];
        out->count++;
    }
    return true;
}

static bool is_there(const raising *r, const char *name, uint32_t input, int64_t since)
{
    return r->version < since ? raise_has(r, name) : raise_has_input(r, input);
}

/* Squeeze and Unsqueeze with axes that were an attribute: a constant has them. */
sinter_layer *raise_axes(raising *r) /* arg: the kind */
{
    attr_ints axes;
    if (r->version >= 13) return raise_shaped(r, 2, 2, 1, "") ? raise_make(r, (sinter_layer_kind)r->arg, 2) : NULL;
    if (!raise_shaped(r, 1, 1, 1, "axes") || !list_of(r, "axes", 1, 13, &axes) || !r->in[0]) return NULL;
    const int64_t count = axes.count;
    int64_t *kept = ARENA_NEW(&r->s->net->a, int64_t, axes.count + 1); /* weights are not copied */
    if (!kept) return NULL;
    memcpy(kept, axes.at, axes.count * sizeof *kept);
    const sinter_weights w = { SINTER_DTYPE_I64, 1, count, kept };
    sinter_layer *constant = network_make(r->s->net, r->s->e, SINTER_LAYER_CONSTANT, NULL, 0, 0);
    raise_set_list(r, constant, "shape", &count, 1);
    if (!constant || network_set_weights(constant, r->s->e, "weights", &w)) return NULL;
    sinter_network_tensor *in[2] = { r->in[0], constant->out[0] };
    return network_make(r->s->net, r->s->e, (sinter_layer_kind)r->arg, in, 2, 0);
}

/* A bound of a slice of an axis of size n. */
static int64_t bound(int64_t at, int64_t n, int64_t least, int64_t most)
{
    if (at < 0) at += n;
    return at < least ? least : at > most ? most : at;
}

/* Appends the part of an axis of size n that number k of the lists takes; n < 0: it is not known. False: no numbers say
 * it. */
static bool slice_axis(raising *r, const attr_ints *list, int64_t k, int64_t n, attr_ints *out)
{
    int64_t step = raise_has_input(r, 4) ? list[3].at[k] : 1;
    if (n < 0 || !step) return false;
    step = step > INT32_MAX ? INT32_MAX : step < -(int64_t)INT32_MAX ? -(int64_t)INT32_MAX : step;
    const bool is_back = step < 0;
    const int64_t first = bound(list[0].at[k], n, 0, is_back ? n - 1 : n),
                  end = bound(list[1].at[k], n, is_back ? -1 : 0, is_back ? n - 1 : n);
    const int64_t length = is_back ? first - end : end - first,
                  count = n && length > 0 ? (length - 1) / llabs(step) + 1 : 0;
    out[0].at[out[0].count++] = count ? first : 0;
    out[1].at[out[1].count++] = count;
    out[2].at[out[2].count++] = step;
    return true;
}

/* A slice by numbers, of axes whose sizes are known. Where other axes are not, the layer's lists have the sliced axes
 * alone. */
sinter_layer *raise_slice(raising *r)
{
    attr_ints list[4] = { { 0 } }, out[3] = { { 0 } }, axes = { 0 }; /* start, end, axis, step; start, size, stride */
    sinter_network_shape shape = { 0 };
    uint32_t cut = 0;
    static const char *const given[] = { "starts", "ends", "axes", "steps" };
    const bool is_old = r->version < 10;
    if (!raise_shaped(r, is_old ? 1 : 3, is_old ? 1 : 5, 1, is_old ? "starts ends axes" : "") || !r->in[0] ||
        r->s->has_loose_ranks || network_shape(r->in[0], r->s->e, &shape))
        return NULL;
    for (uint32_t i = 0; i < 4; i++)
        if ((i < 2 || is_there(r, given[i], i + 1, 10)) &&
            (!list_of(r, given[i], i + 1, 10, &list[i]) || list[i].count != list[0].count))
            return NULL;
    bool is_whole = true;
    for (uint32_t i = 0; i < shape.rank; i++) is_whole = is_whole && shape.dim[i] >= 0;
    for (uint32_t axis = 0; axis < shape.rank; axis++) {
        const uint32_t before = cut;
        for (uint32_t k = 0; k < list[0].count; k++) {
            const int64_t at = is_there(r, given[2], 3, 10) ? list[2].at[k] : k;
            if (at != axis && at != (int64_t)axis - shape.rank) continue;
            if (cut != before || !slice_axis(r, list, k, shape.dim[axis], out)) return NULL;
            axes.at[axes.count++] = axis;
            cut++;
        }
        if (cut != before || !is_whole) continue;
        out[0].at[out[0].count++] = 0;
        out[1].at[out[1].count++] = shape.dim[axis];
        out[2].at[out[2].count++] = 1;
    }
    if (!cut || cut != list[0].count) return NULL;
    sinter_layer *layer = raise_make(r, SINTER_LAYER_SLICE, 1);
    static const char *const names[] = { "start", "size", "stride" };
    for (uint32_t i = 0; i < 3; i++) raise_set_list(r, layer, names[i], out[i].at, out[i].count);
    if (!is_whole) raise_set_list(r, layer, "axes", axes.at, axes.count);
    return layer;
}

/* A slice that begins before its input and ends behind it, along axes of known sizes. */
sinter_layer *raise_pad(raising *r)
{
    static const char *const modes[] = { "constant", "reflect", "edge", "wrap" };
    static const int64_t sample[] = { SINTER_SAMPLE_FILL, SINTER_SAMPLE_REFLECT, SINTER_SAMPLE_CLAMP,
                                      SINTER_SAMPLE_WRAP };
    attr_ints pads, axes = { 0 }, out[2] = { { 0 } }, padded = { 0 };
    sinter_network_shape shape = { 0 };
    const int64_t mode = raise_place(raise_words(r, "mode", "constant"), modes, COUNT_OF(modes));
    const onnx_attr *old = raise_attr(r, "value", ONNX_FLOAT);
    if (!raise_shaped(r, 1, 4, 1, r->version < 11 ? "mode pads value" : "mode") || mode < 0 || !r->in[0] ||
        r->s->has_loose_ranks || network_shape(r->in[0], r->s->e, &shape) || !list_of(r, "pads", 1, 11, &pads) ||
        (old && (double)old->f != 0))
        return NULL;
    if (raise_has_input(r, 3) && !raise_known_ints(r, 3, &axes)) return NULL;
    if (!raise_has_input(r, 3))
        for (uint32_t i = 0; i < shape.rank; i++) axes.at[axes.count++] = i;
    if (pads.count != 2 * axes.count) return NULL;
    for (uint32_t k = 0; k < axes.count; k++) {
        const int64_t axis = axes.at[k] < 0 ? axes.at[k] + shape.rank : axes.at[k], before = pads.at[k],
                      behind = pads.at[k + axes.count];
        if (axis < 0 || axis >= (int64_t)shape.rank || before < 0 || behind < 0) return NULL;
        if (!before && !behind) continue;
        const int64_t size = shape.dim[axis];
        if (size < 1 || (mode == 1 && (before >= size || behind >= size)) || before > INT32_MAX || behind > INT32_MAX)
            return NULL;
        padded.at[padded.count++] = axis;
        out[0].at[out[0].count++] = -before;
        out[1].at[out[1].count++] = before + size + behind;
    }
    if (!padded.count) return NULL;
    const bool has_value = mode == 0 && raise_has_input(r, 2);
    sinter_network_tensor *in[5] = { r->in[0], NULL, NULL, NULL, has_value ? raise_tensor(r, 2) : NULL };
    sinter_layer *layer =
        r->is_wrong ? NULL : network_make(r->s->net, r->s->e, SINTER_LAYER_SLICE, in, has_value ? 5 : 1, 0);
    raise_set_list(r, layer, "start", out[0].at, padded.count);
    raise_set_list(r, layer, "size", out[1].at, padded.count);
    for (uint32_t i = 0; i < padded.count; i++) out[0].at[i] = 1;
    raise_set_list(r, layer, "stride", out[0].at, padded.count);
    if (padded.count != shape.rank) raise_set_list(r, layer, "axes", padded.at, padded.count);
    raise_set(r, layer, "mode", sample[mode]);
    return layer;
}

/* How long the parts of a split of an axis of size n are. */
static bool parts_of(raising *r, int64_t n, int64_t count, attr_ints *out)
{
    int64_t sum = 0;
    if (is_there(r, "split", 1, 13)) {
        if (!list_of(r, "split", 1, 13, out) || out->count != count) return false;
    } else {
        const int64_t most = (n + count - 1) / count;
        for (out->count = 0; out->count < count; out->count++)
            out->at[out->count] = out->count + 1 < count ? most : n - most * (count - 1);
        if (n % count && !raise_has(r, "num_outputs")) return false;
    }
    for (uint32_t i = 0; i < out->count; i++) {
        if (out->at[i] < 0 || out->at[i] > n) return false;
        sum += out->at[i];
    }
    return sum == n;
}

/* A slice for each part, one after the other. */
sinter_layer *raise_split(raising *r)
{
    attr_ints part;
    sinter_network_shape shape = { 0 };
    int64_t axis = raise_integer(r, "axis", 0), start = 0;
    const uint32_t count = r->n->out.count;
    if (!count || count > ATTR_INTS_MAX || r->version < 2 ||
        !raise_shaped(r, 1, r->version < 13 ? 1 : 2, count, r->version < 13 ? "axis split" : "axis num_outputs") ||
        !r->in[0] || r->s->has_loose_ranks || network_shape(r->in[0], r->s->e, &shape))
        return NULL;
    axis += axis < 0 ? shape.rank : 0;
    if (axis < 0 || axis >= (int64_t)shape.rank || shape.dim[axis] < 1) return NULL;
    for (uint32_t i = 0; i < count; i++)
        if (!r->n->out.at[i][0]) return NULL;
    if (!parts_of(r, shape.dim[axis], count, &part)) return NULL;
    sinter_layer *first = NULL;
    for (uint32_t i = 0; i < count && !r->is_wrong; i++) {
        const int64_t one = 1;
        sinter_layer *layer = raise_make(r, SINTER_LAYER_SLICE, 1);
        raise_set_list(r, layer, "start", &start, 1);
        raise_set_list(r, layer, "size", &part.at[i], 1);
        raise_set_list(r, layer, "stride", &one, 1);
        raise_set_list(r, layer, "axes", &axis, 1);
        start += part.at[i];
        first = first ? first : layer;
        r->is_wrong = r->is_wrong || !layer;
    }
    return first;
}
