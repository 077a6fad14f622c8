/* SPDX-License-Identifier: Apache-2.0 */
/* grow_decoder.c - see grow_decoder.h. A decoder is written node by node, as exporters write them: sizes come from
 * Shape nodes, positions from Range, heads from Reshape and Transpose. */
#include "grow_decoder.h"

#include "decode.h"
#include "test.h"

#include <math.h>
#include <stdio.h>

enum { WORDS = DECODE_TOKENS + 1, POSITIONS = 128, OPSET = 18 };

typedef struct writer {
    const decoder *d;
    bytes graph;
    uint64_t seed;
    uint32_t names;
    char at[4096][24];
} writer;

static const char *new_name(writer *w)
{
    char *name = w->at[w->names];
    (void)snprintf(name, sizeof w->at[0], "v%u", w->names++);
    return name;
}

static const char *node_of(writer *w, const char *op, const char *in, bytes attribute, const char *out)
{
    bytes n = onnx_node_bytes(op, out, in, out);
    if (attribute.size) bytes_put(&n, 5, attribute);
    else free(attribute.at);
    bytes_put(&w->graph, 1, n);
    return out;
}

/* op(a, b, c) as a new value; "" ends the list. */
static const char *apply(writer *w, const char *op, const char *a, const char *b, const char *c, bytes attribute)
{
    char in[80];
    (void)snprintf(in, sizeof in, "%s%s%s%s%s", a, *b ? "," : "", b, *c ? "," : "", c);
    return node_of(w, op, in, attribute, new_name(w));
}

static const char *apply2(writer *w, const char *op, const char *a, const char *b)
{
    return apply(w, op, a, b, "", (bytes){ 0 });
}

static bytes ints(const char *name, const int64_t *at, uint32_t count)
{
    bytes a = { 0 };
    bytes_text(&a, 1, name);
    for (uint32_t i = 0; i < count; i++) bytes_int(&a, 8, at[i]);
    bytes_int(&a, 20, 7);
    return a;
}

static const char *numbers(writer *w, const int64_t *at, int64_t count)
{
    const char *name = new_name(w);
    bytes_put(&w->graph, 5, onnx_tensor_bytes(name, 7, &count, 1, at, (size_t)count * sizeof *at));
    return name;
}

static const char *number(writer *w, int64_t x)
{
    const char *name = new_name(w);
    bytes_put(&w->graph, 5, onnx_tensor_bytes(name, 7, NULL, 0, &x, sizeof x));
    return name;
}

static const char *real(writer *w, float x)
{
    const char *name = new_name(w);
    bytes_put(&w->graph, 5, onnx_tensor_bytes(name, 1, NULL, 0, &x, sizeof x));
    return name;
}

static const char *table(writer *w, int64_t rows, int64_t columns, bool ends_in_nan)
{
    const char *name = new_name(w);
    float *at = malloc((size_t)(rows * columns) * sizeof *at);
    const float scale = 2.0f / (float)(rows < 4 ? 2 : rows > 16 ? 8 : 4);
    for (int64_t i = 0; i < rows * columns; i++)
        at[i] = scale * ((float)(test_random(&w->seed) % 2001) / 1000.0f - 1.0f);
    for (int64_t i = 0; i < columns && ends_in_nan; i++) at[(rows - 1) * columns + i] = NAN;
    bytes_put(&w->graph, 5,
              onnx_tensor_bytes(name, 1, (int64_t[]){ rows, columns }, 2, at, (size_t)(rows * columns) * sizeof *at));
    free(at);
    return name;
}

static const char *weights(writer *w, int64_t rows, int64_t columns)
{
    return table(w, rows, columns, false);
}

/* A dim below 0 is a size with a name: -1 S, -2 P, -3 T, -4 an unnamed sum. */
static void interface(writer *w, uint32_t field, const char *name, int64_t type, const int64_t *at, uint32_t rank)
{
    static const char *const size_name[] = { "", "S", "P", "T", "P + S" };
    bytes shape = { 0 }, tensor = { 0 }, outer = { 0 }, value = { 0 };
    for (uint32_t i = 0; i < rank; i++) {
        bytes d = { 0 };
        if (at[i] < 0) bytes_text(&d, 2, size_name[-at[i]]);
        else bytes_int(&d, 1, at[i]);
        bytes_put(&shape, 1, d);
    }
    bytes_int(&tensor, 1, type);
    bytes_put(&tensor, 2, shape);
    bytes_put(&outer, 1, tensor);
    bytes_text(&value, 1, name);
    bytes_put(&value, 2, outer);
    bytes_put(&w->graph, field, value);
}

static const char *transpose(writer *w, const char *x, const int64_t *perm)
{
    return apply(w, "Transpose", x, "", "", ints("perm", perm, 4));
}

static const char *to_type(writer *w, const char *x, int64_t type)
{
    return apply(w, "Cast", x, "", "", onnx_attr_int("to", type));
}

/* x in heads: [batch, heads, rows, size]. */
static const char *heads_of(writer *w, const char *x, const char *weight, int64_t heads)
{
    const char *flat = apply2(w, "MatMul", x, weight);
    const char *split = apply2(w, "Reshape", flat, numbers(w, (int64_t[]){ 0, 0, heads, w->d->size }, 4));
    return transpose(w, split, (int64_t[]){ 0, 2, 1, 3 });
}

/* The cache with the new rows; gives it back as [batch, heads, rows, size] in f32. */
static const char *cached(writer *w, const char *x, int64_t layer, const char *which)
{
    const decoder *d = w->d;
    static const int64_t perm[CACHE_FORMS][4] = { { 0, 1, 2, 3 }, { 0, 2, 1, 3 }, { 0, 1, 3, 2 } };
    static const uint32_t axis[CACHE_FORMS] = { 2, 1, 3 };
    char past[24], both[64], *const present = w->at[w->names++];
    int64_t shape[4] = { d->batch, d->heads, -2, d->size }, laid[4];
    for (uint32_t i = 0; i < 4; i++) laid[i] = shape[perm[d->cache][i]];
    (void)snprintf(past, sizeof past, "past.%d.%s", (int)layer, which);
    (void)snprintf(present, sizeof w->at[0], "present.%d.%s", (int)layer, which);
    interface(w, 11, past, d->type, laid, 4);
    laid[axis[d->cache]] = -4;
    interface(w, 12, present, d->type, laid, 4);
    if (d->cache != CACHE_HEADS) x = transpose(w, x, perm[d->cache]);
    if (d->type != 1) x = to_type(w, x, d->type);
    (void)snprintf(both, sizeof both, "%s,%s", past, x);
    const char *all = node_of(w, "Concat", both, onnx_attr_int("axis", axis[d->cache]), present);
    if (d->type != 1) all = to_type(w, all, 1);
    if (d->cache != CACHE_HEADS) all = transpose(w, all, perm[d->cache]);
    if (d->groups == 1) return all;
    const char *wide = apply2(w, "Unsqueeze", all, numbers(w, (int64_t[]){ 2 }, 1));
    wide = apply2(w, "Expand", wide, numbers(w, (int64_t[]){ 1, 1, d->groups, 1, 1 }, 5));
    return apply2(w, "Reshape", wide, numbers(w, (int64_t[]){ d->batch, d->heads * d->groups, -1, d->size }, 4));
}

/* What a query may look at, bool [batch or 1, 1, S, T]; NULL: everything. */
static const char *allowed(writer *w, const char *ids)
{
    if (w->d->mask == MASK_NONE) return NULL;
    static const uint32_t axis[CACHE_FORMS] = { 2, 1, 3 };
    const char *one = numbers(w, (int64_t[]){ 1 }, 1), *zero = number(w, 0), *first = numbers(w, (int64_t[]){ 0 }, 1);
    const char *past = apply(w, "Gather", apply(w, "Shape", "past.0.key", "", "", (bytes){ 0 }),
                             number(w, axis[w->d->cache]), "", (bytes){ 0 });
    const char *rows = apply2(w, "Gather", apply(w, "Shape", ids, "", "", (bytes){ 0 }), number(w, 1));
    const char *total = apply2(w, "Add", past, rows);
    const char *keys = apply(w, "Range", zero, total, number(w, 1), (bytes){ 0 });
    char in[96];
    (void)snprintf(in, sizeof in, "%s,%s,%s", keys, apply2(w, "Unsqueeze", past, first),
                   apply2(w, "Unsqueeze", total, first));
    const char *queries = test_below(&w->seed, 2) ? node_of(w, "Slice", in, (bytes){ 0 }, new_name(w))
                                                  : apply(w, "Range", past, total, number(w, 1), (bytes){ 0 });
    const char *left = apply2(w, "Unsqueeze", keys, first), *right = apply2(w, "Unsqueeze", queries, one);
    const char *mask =
        apply2(w, "Unsqueeze", apply2(w, "LessOrEqual", left, right), numbers(w, (int64_t[]){ 0, 1 }, 2));
    if (w->d->mask != MASK_INPUT) return mask;
    interface(w, 11, "attention_mask", 7, (int64_t[]){ w->d->batch, -3 }, 2);
    const char *given = apply2(w, "Greater", "attention_mask", zero);
    return apply2(w, "And", mask, apply2(w, "Unsqueeze", given, numbers(w, (int64_t[]){ 1, 2 }, 2)));
}

static const char *layer_of(writer *w, const char *x, int64_t layer, const char *mask)
{
    const decoder *d = w->d;
    const int64_t all = d->heads * d->groups * d->size;
    const char *q = heads_of(w, x, weights(w, d->width, all), d->heads * d->groups);
    const char *k = heads_of(w, x, weights(w, d->width, d->heads * d->size), d->heads);
    const char *v = heads_of(w, x, weights(w, d->width, d->heads * d->size), d->heads);
    k = transpose(w, cached(w, k, layer, "key"), (int64_t[]){ 0, 1, 3, 2 });
    v = cached(w, v, layer, "value");
    const char *scores = apply2(w, "Mul", apply2(w, "MatMul", q, k), real(w, 0.5f));
    const char *zero = real(w, 0), *low = real(w, -1e9f);
    if (mask && d->chooses) scores = apply(w, "Where", mask, scores, low, (bytes){ 0 });
    else if (mask) scores = apply2(w, "Add", scores, apply(w, "Where", mask, zero, low, (bytes){ 0 }));
    const char *p = apply(w, "Softmax", scores, "", "", onnx_attr_int("axis", -1));
    const char *y = transpose(w, apply2(w, "MatMul", p, v), (int64_t[]){ 0, 2, 1, 3 });
    y = apply2(w, "Reshape", y, numbers(w, (int64_t[]){ 0, 0, all }, 3));
    return apply2(w, "Add", x, apply2(w, "MatMul", y, weights(w, all, d->width)));
}

/* A state that does not grow: h = tanh(h + mean(x) W), which is added to every row. */
static const char *recurrence(writer *w, const char *x)
{
    const int64_t shape[2] = { w->d->batch, w->d->width };
    interface(w, 11, "past.h", 1, shape, 2);
    interface(w, 12, "present.h", 1, shape, 2);
    bytes keeps = onnx_attr_int("keepdims", 0);
    const char *mean = apply(w, "ReduceMean", x, numbers(w, (int64_t[]){ 1 }, 1), "", keeps);
    const char *sum = apply2(w, "Add", "past.h", apply2(w, "MatMul", mean, weights(w, w->d->width, w->d->width)));
    const char *h = node_of(w, "Tanh", sum, (bytes){ 0 }, "present.h");
    return apply2(w, "Add", x, apply2(w, "Unsqueeze", h, numbers(w, (int64_t[]){ 1 }, 1)));
}

bytes decoder_model(const decoder *d, uint64_t seed)
{
    writer *w = calloc(1, sizeof *w);
    w->d = d;
    w->seed = seed;
    bytes_text(&w->graph, 2, "decoder");
    interface(w, 11, "input_ids", 7, (int64_t[]){ d->batch, -1 }, 2);
    const char *x = apply2(w, "Gather", table(w, WORDS, d->width, true), "input_ids");
    if (d->has_positions) {
        interface(w, 11, "position_ids", 7, (int64_t[]){ d->batch, -1 }, 2);
        x = apply2(w, "Add", x, apply2(w, "Gather", weights(w, POSITIONS, d->width), "position_ids"));
    }
    const char *mask = allowed(w, "input_ids");
    for (int64_t i = 0; i < d->layers; i++) {
        x = layer_of(w, x, i, mask);
        if (d->has_recurrence && i == 0) x = recurrence(w, x);
    }
    interface(w, 12, "logits", 1, (int64_t[]){ d->batch, -1, WORDS }, 3);
    char in[64];
    (void)snprintf(in, sizeof in, "%s,%s", x, weights(w, d->width, WORDS));
    (void)node_of(w, "MatMul", in, (bytes){ 0 }, "logits");
    const bytes model = onnx_model_bytes(w->graph, OPSET);
    free(w);
    return model;
}

decoder decoder_random(uint64_t *seed)
{
    static const int64_t types[] = { 1, 1, 10, 16 };
    decoder d = { .layers = 1 + (int64_t)test_below(seed, 3),
                  .batch = 1 + (int64_t)(test_below(seed, 3) == 0),
                  .heads = 1 + (int64_t)test_below(seed, 4),
                  .groups = 1 + (int64_t)test_below(seed, 3),
                  .size = (int64_t[]){ 4, 8, 8, 16, 20, 24, 33, 64 }[test_below(seed, 8)],
                  .width = 8 + (int64_t)test_below(seed, 24),
                  .cache = (cache_form)(test_below(seed, 2) ? 0 : test_below(seed, CACHE_FORMS)),
                  .mask = (mask_form)test_below(seed, MASK_FORMS),
                  .chooses = test_below(seed, 2),
                  .has_positions = test_below(seed, 2),
                  .has_recurrence = test_below(seed, 4) == 0,
                  .type = types[test_below(seed, 4)] };
    return d;
}

void decoder_print(const decoder *d, char *out, size_t size)
{
    (void)snprintf(out, size,
                   "%d layers, batch %d, %d heads of keys of %d, %d queries each, width %d, cache form %d, mask form "
                   "%d%s%s%s, type %d",
                   (int)d->layers, (int)d->batch, (int)d->heads, (int)d->size, (int)d->groups, (int)d->width,
                   (int)d->cache, (int)d->mask, d->chooses ? ", chosen" : "", d->has_positions ? ", positions" : "",
                   d->has_recurrence ? ", recurrence" : "", (int)d->type);
}
