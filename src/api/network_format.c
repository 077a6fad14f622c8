/* SPDX-License-Identifier: Apache-2.0 */
/* network_format.c - sinter_network_add_format: layers between a tensor and its memory in a format. */
#include "network/network.h"

static const struct {
    sinter_format format;
    int64_t lanes;
    uint32_t behind;
    bool is_last;
} formats[] = {
#define SINTER_X(name, value, word, lanes, behind, is_last) { SINTER_FORMAT_##name, lanes, behind, is_last },
    SINTER_FORMAT_MAP(SINTER_X)
#undef SINTER_X
};

typedef struct maker {
    sinter_network *net;
    sinter_error *error;
    bool failed;
} maker;

static sinter_network_tensor *output(maker *m, sinter_layer *made)
{
    m->failed = !made;
    return made ? sinter_layer_output(made, 0) : NULL;
}

static sinter_network_tensor *numbers(maker *m, const int64_t *at, uint32_t count)
{
    const sinter_tensor t = { .dtype = SINTER_DTYPE_I64, .rank = 1, .dim = { count }, .data = (void *)(uintptr_t)at };
    return m->failed ? NULL : output(m, sinter_add_constant(m->net, &t, 0, m->error));
}

static sinter_network_tensor *op(maker *m, const char *type, sinter_network_tensor *const *in, uint32_t count)
{
    return m->failed ? NULL : output(m, sinter_add_op(m->net, "", type, 0, in, count, 1, m->error));
}

/* Moves axis `from` to place `to`. */
static sinter_network_tensor *moved(maker *m, sinter_network_tensor *x, uint32_t rank, uint32_t from, uint32_t to)
{
    int64_t perm[SINTER_RANK_MAX];
    for (uint32_t i = 0, k = 0; i < rank; i++) {
        k += k == from;
        perm[i] = i == to ? from : k++;
    }
    x = op(m, "Transpose", &x, 1);
    m->failed = !x || sinter_layer_set_ints(x->producer, "perm", perm, rank, m->error) != SINTER_OK;
    return x;
}

/* Keeps the axes before axis rank - 1, which becomes `last`, and `behind` after it where that is not 0. */
static sinter_network_tensor *reshaped(maker *m, sinter_network_tensor *x, uint32_t rank, int64_t last, int64_t behind)
{
    int64_t shape[SINTER_RANK_MAX] = { 0 }; /* 0: the size stays */
    shape[rank - 1] = last;
    if (behind) shape[rank] = behind;
    sinter_network_tensor *const in[2] = { x, numbers(m, shape, rank + (behind != 0)) };
    return op(m, "Reshape", in, 2);
}

sinter_network_tensor *sinter_network_add_format(sinter_network *net, sinter_network_tensor *x, sinter_format format,
                                                 uint32_t rank, int64_t channels, uint32_t to_memory,
                                                 sinter_error *error)
{
    env *e = network_env(net, error);
    if (!e || network_tensor_check(e, net, x, "the input") != SINTER_OK) return NULL;
    uint32_t row = 0;
    while (row < COUNT_OF(formats) && formats[row].format != format) row++;
    if (row == COUNT_OF(formats)) return (void)FAIL(e, INVALID_ARG, "the format %d is unknown", (int)format), NULL;
    const bool is_last = formats[row].is_last;
    const uint32_t first = formats[row].behind + 1, most = SINTER_RANK_MAX - !is_last;
    const int64_t lanes = formats[row].lanes;
    if (rank < first || rank > most || channels < 1 || channels > INT64_MAX - lanes)
        return (void)FAIL(e, INVALID_ARG, "the rank %u and %lld channels, wanted are a rank of %u to %u and 1 or more",
                          rank, (long long)channels, first, most),
               NULL;
    const int64_t groups = (channels - 1) / lanes + 1, padded = groups * lanes, channel = rank - first;
    const uint32_t from = (uint32_t)channel, last = rank - 1;
    const size_t count = net->layer.count;
    maker m = { net, error, false };
    if (to_memory) {
        if (padded != channels) {
            const int64_t pads[2] = { 0, padded - channels };
            sinter_network_tensor *const in[4] = { x, numbers(&m, pads, 2), NULL, numbers(&m, &channel, 1) };
            x = op(&m, "Pad", in, 4);
        }
        x = moved(&m, x, rank, from, last);
        if (!is_last) x = moved(&m, reshaped(&m, x, rank, groups, lanes), rank + 1, last, from);
    } else {
        if (!is_last) x = reshaped(&m, moved(&m, x, rank + 1, from, last), rank, padded, 0);
        x = moved(&m, x, rank, last, from);
        if (padded != channels) {
            sinter_network_tensor *const in[4] = { x, numbers(&m, &(int64_t){ 0 }, 1), numbers(&m, &channels, 1),
                                                   numbers(&m, &channel, 1) };
            x = op(&m, "Slice", in, 4);
        }
    }
    if (!m.failed) return x;
    while (net->layer.count > count) (void)sinter_network_remove_layer(net, net->layer.at[net->layer.count - 1], NULL);
    return NULL;
}
