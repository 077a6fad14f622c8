/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_ngram.c - TfIdfVectorizer: how often each n-gram of a pool occurs in a row.
 *
 * An n-gram with skip s is n elements that are s + 1 apart. All n-grams of one length and one distance are compared at
 * once with all places where they may start. Text is looked up in the pool's vocabulary first, and then counts as
 * integers, too. */
#include "onnx/importer.h"
#include "onnx/quirks.h"
#include <string.h>

enum { POOL_MAX = 1 << 20, COMPARISONS_MAX = 1024 };

typedef struct ngrams {
    ir_value_id x;              /* [B, C] i64 */
    const int64_t *pool;        /* all n-grams, one after the other, in order of their lengths */
    uint32_t pool_count, count; /* count: of n-grams */
    const int64_t *column;      /* of the result, for each n-gram */
    int64_t width, shortest, longest, distances;
} ngrams;

static const onnx_attr *list_of(onnx_call *c, const char *name, int32_t type)
{
    const onnx_attr *a = call_attr(c, name);
    if (a && a->type == 0) return NULL;
    if (a && a->type != type) REJECT(c, INVALID_MODEL, "attribute %s has another type", name);
    return a;
}

/* Words as places in a vocabulary; -1: not in it. */
static void words_read(onnx_call *c, ngrams *n, const onnx_attr *texts)
{
    name_map known = { .a = &c->im->a };
    int64_t *pool = ARENA_NEW(&c->im->a, int64_t, n->pool_count);
    onnx_text *word = ARENA_NEW(&c->im->a, onnx_text, n->pool_count);
    uint32_t count = 0;
    if (!pool || !word) REJECT(c, NO_MEMORY, "out of memory for n-grams");
    for (uint32_t i = 0; i < n->pool_count && !c->b.status; i++) {
        bool is_new = false;
        uint32_t *slot = name_map_add(&known, texts->strings.at[i].at, &is_new);
        if (!slot) REJECT(c, NO_MEMORY, "out of memory for n-grams");
        if (c->b.status) return;
        if (is_new) word[ *slot = count++] = texts->strings.at[i];
        pool[i] = *slot;
    }
    ir_value_id found = 0;
    const ir_value_id at = quirk_text_find(c, quirk_text_bytes(c, n->x), word, count, &found);
    n->pool = pool;
    n->x = build_where(&c->b, found, at, build_scalar_i64(&c->b, SINTER_DTYPE_I64, -1));
}

/* The pool, text as indices in the vocabulary, and x likewise. */
static void pool_read(onnx_call *c, ngrams *n)
{
    const onnx_attr *ints = list_of(c, "pool_int64s", ONNX_INTS), *texts = list_of(c, "pool_strings", ONNX_STRINGS);
    if (!ints == !texts) REJECT(c, INVALID_MODEL, "there is not one of pool_int64s and pool_strings");
    if (c->b.status) return;
    n->pool_count = ints ? ints->ints.count : texts->strings.count;
    if (!n->pool_count || n->pool_count > POOL_MAX)
        REJECT(c, UNSUPPORTED, "a pool of %u elements; up to %d are supported", n->pool_count, (int)POOL_MAX);
    if (ints && call_strings_at(c, n->x)) REJECT(c, INVALID_MODEL, "text with a pool of numbers");
    if (c->b.status) return;
    if (texts) {
        words_read(c, n, texts);
        return;
    }
    n->pool = ints->ints.at;
    n->x = build_typed(&c->b, n->x, SINTER_DTYPE_I64);
}

static void attributes_read(onnx_call *c, ngrams *n)
{
    const onnx_attr *columns = list_of(c, "ngram_indexes", ONNX_INTS);
    n->shortest = call_int(c, "min_gram_length", 0);
    n->longest = call_int(c, "max_gram_length", 0);
    n->distances = call_int(c, "max_skip_count", 0) + 1;
    if (n->shortest < 1 || n->longest < n->shortest || n->distances < 1)
        REJECT(c, INVALID_MODEL, "n-grams of %lld to %lld, at most %lld apart", (long long)n->shortest,
               (long long)n->longest, (long long)n->distances);
    if (n->longest > COMPARISONS_MAX || n->distances > COMPARISONS_MAX ||
        n->longest * n->longest * n->distances > COMPARISONS_MAX)
        REJECT(c, UNSUPPORTED, "n-grams of up to %lld, in %lld distances", (long long)n->longest,
               (long long)n->distances);
    if (!columns || !columns->ints.count) REJECT(c, INVALID_MODEL, "attribute ngram_indexes is missing");
    if (c->b.status) return;
    n->count = columns->ints.count;
    n->column = columns->ints.at;
    for (uint32_t i = 0; i < n->count && !c->b.status; i++) {
        if (n->column[i] < 0 || n->column[i] >= POOL_MAX)
            REJECT(c, UNSUPPORTED, "ngram_indexes[%u] is %lld", i, (long long)n->column[i]);
        if (n->column[i] >= n->width) n->width = n->column[i] + 1;
    }
}

/* In how many places, of those that are `distance` apart, each of `count` n-grams of `length` stands: [B, count]. */
static ir_value_id occurrences(onnx_call *c, const ngrams *n, const int64_t *grams, int64_t length, int64_t count,
                               int64_t distance)
{
    static const int64_t last = 2;
    dim_table *t = c->b.g->dims;
    const dim all = call_dim(c, n->x, 1), zero = call_k(c, 0),
              places = call_clamp_max(c, dim_sub(t, all, call_k(c, (length - 1) * distance)), zero);
    ir_value_id is_there = 0;
    for (int64_t k = 0; k < length && !c->b.status; k++) {
        int64_t *each = ARENA_NEW(&c->b.g->a, int64_t, (size_t)count);
        if (!each) REJECT(c, NO_MEMORY, "out of memory for n-grams");
        if (c->b.status) return 0;
        for (int64_t i = 0; i < count; i++) each[i] = grams[i * length + k];
        const ir_value_id wanted = ir_const(c->b.g, NULL, SINTER_DTYPE_I64, 2, (int64_t[]){ count, 1 }, each),
                          part = build_part(&c->b, n->x, 1, call_clamp_min(c, call_k(c, k * distance), all), 1, places),
                          same = build_eq(&c->b, build_unsqueezed(&c->b, part, 1), wanted);
        is_there = k ? build_and(&c->b, is_there, same) : same;
    }
    return build_reduced(&c->b, reduce_kind_sum, build_typed(&c->b, is_there, SINTER_DTYPE_F32), &last, 1, false);
}

/* One n-gram twice would count once, for the later one: no such pool is taken. */
static void distinct(onnx_call *c, const int64_t *grams, int64_t length, int64_t count)
{
    const arena_mark mark = arena_save(&c->im->a);
    name_map seen = { .a = &c->im->a };
    for (int64_t i = 0; i < count && !c->b.status; i++) {
        const char *key = "";
        for (int64_t k = 0; k < length && key; k++)
            key = arena_printf(&c->im->a, "%s %lld", key, (long long)grams[i * length + k]);
        bool is_new = true;
        if (!key || !name_map_add(&seen, key, &is_new)) REJECT(c, NO_MEMORY, "out of memory for n-grams");
        if (!is_new) REJECT(c, INVALID_MODEL, "the pool has the n-gram%s twice", key);
    }
    arena_rewind(&c->im->a, mark);
}

/* [B, count], in the pool's order. */
static ir_value_id counted(onnx_call *c, const ngrams *n)
{
    const onnx_attr *starts = list_of(c, "ngram_counts", ONNX_INTS);
    ir_value_id *part = starts ? ARENA_NEW(&c->im->a, ir_value_id, starts->ints.count) : NULL;
    uint32_t parts = 0;
    int64_t found = 0;
    if (!part) REJECT(c, INVALID_MODEL, "attribute ngram_counts is missing");
    const dim batch = call_dim(c, n->x, 0);
    for (uint32_t i = 0; !c->b.status && i < starts->ints.count; i++) {
        const int64_t from = starts->ints.at[i], length = i + 1,
                      to = i + 1 < starts->ints.count ? starts->ints.at[i + 1] : n->pool_count;
        if (from < 0 || to < from || to > n->pool_count || (to - from) % length)
            REJECT(c, INVALID_MODEL, "n-grams of %lld from %lld to %lld of a pool of %u", (long long)length,
                   (long long)from, (long long)to, n->pool_count);
        const int64_t count = (to - from) / length;
        if (c->b.status || !count) continue;
        found += count;
        ir_value_id sum = 0;
        distinct(c, n->pool + from, length, count);
        for (int64_t d = 1; d <= (length == 1 ? 1 : n->distances) && !c->b.status; d++) {
            if (length < n->shortest || length > n->longest) break;
            const ir_value_id hits = occurrences(c, n, n->pool + from, length, count, d);
            sum = sum ? build_add(&c->b, sum, hits) : hits;
        }
        if (!sum)
            sum =
                build_expanded(&c->b, build_scalar(&c->b, SINTER_DTYPE_F32, 0), (dim[]){ batch, call_k(c, count) }, 2);
        part[parts++] = sum;
    }
    if (found != n->count)
        REJECT(c, INVALID_MODEL, "the pool has %lld n-grams, ngram_indexes has %u", (long long)found, n->count);
    return c->b.status ? 0 : build_concat(&c->b, part, parts, &(attrs_concat){ .axis = 1 });
}

static ir_value_id weighted(onnx_call *c, const ngrams *n, ir_value_id y)
{
    const onnx_attr *weights = list_of(c, "weights", ONNX_FLOATS);
    const char *mode = call_text(c, "mode", "");
    const bool is_idf = strcmp(mode, "IDF") == 0;
    const uint32_t given = weights ? weights->floats.count : 0;
    if (!is_idf && strcmp(mode, "TF") != 0 && strcmp(mode, "TFIDF") != 0)
        REJECT(c, INVALID_MODEL, "attribute mode is '%s'", mode);
    if (given && given < n->width) REJECT(c, INVALID_MODEL, "%u weights for %lld columns", given, (long long)n->width);
    if (c->b.status) return 0;
    if (is_idf) y = build_typed(&c->b, build_gt(&c->b, y, build_scalar_like(&c->b, y, 0)), SINTER_DTYPE_F32);
    if (!given || strcmp(mode, "TF") == 0) return y;
    float *copy = ARENA_NEW(&c->b.g->a, float, (size_t)n->width);
    if (!copy) {
        REJECT(c, NO_MEMORY, "out of memory for weights");
        return 0;
    }
    memcpy(copy, weights->floats.at, (size_t)n->width * sizeof *copy);
    return build_mul(&c->b, y, ir_const(c->b.g, NULL, SINTER_DTYPE_F32, 1, &n->width, copy));
}

void convert_tfidf(onnx_call *c)
{
    ngrams n = { .x = call_in(c, 0) };
    attributes_read(c, &n);
    pool_read(c, &n);
    if (c->b.status) return;
    const uint32_t rank = call_rank(c, n.x);
    if (rank != 1 && rank != 2) REJECT(c, INVALID_MODEL, "an input of rank %u", rank);
    if (rank == 1) n.x = build_unsqueezed(&c->b, n.x, 0);
    const ir_value_id hits = counted(c, &n);
    int64_t *columns = ARENA_NEW(&c->b.g->a, int64_t, n.count);
    if (c->b.status || !columns) return;
    memcpy(columns, n.column, n.count * sizeof *columns);
    const dim batch = call_dim(c, n.x, 0), to[2] = { batch, call_k(c, n.width) },
              from[2] = { batch, call_k(c, n.count) };
    const ir_value_id at = ir_const(c->b.g, NULL, SINTER_DTYPE_I64, 1, (int64_t[]){ n.count }, columns);
    attrs_scatter_elements *a = DEFAULTS(scatter_elements);
    a->axis = 1;
    a->kind = scatter_kind_add;
    const ir_value_id none = build_expanded(&c->b, build_scalar(&c->b, SINTER_DTYPE_F32, 0), to, 2),
                      y = weighted(c, &n,
                                   build_emit(&c->b, OP_scatter_elements, a,
                                              (ir_value_id[]){ none, build_expanded(&c->b, at, from, 2), hits }, 3));
    c->out[0] = rank == 1 ? build_squeezed(&c->b, y, 0) : y;
}
