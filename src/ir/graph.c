/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - the tables of a graph, its blobs, and the questions that need nothing else.
 *
 * Everything small lives in the graph's arena. Large memory is one allocation each, listed in `blob`, so that a build
 * can tell what weights cost; both go when the graph goes. */
#include "ir/graph.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

typedef struct blob {
    void *at; /* NULL: freed before the graph goes */
    size_t size;
    uintptr_t from; /* where it lies, or lay when the list was sorted */
    bool is_used;
} blob;
enum { BLOB_ALIGN = 64 };

sinter_status ir_graph_create(env *e, ir_graph **out)
{
    *out = NULL;
    ir_graph *g = mem_zalloc(e, sizeof(*g), _Alignof(ir_graph));
    if (!g) return FAIL_MEMORY(e, "a graph");
    g->e = e;
    arena_init(&g->a, e);
    g->dims = dim_table_create(&g->a);
    ir_region *main_region = NULL;
    if (g->dims && VEC_PUSH(&g->a, &g->value) && VEC_PUSH(&g->a, &g->use) && VEC_PUSH(&g->a, &g->node) &&
        VEC_PUSH(&g->a, &g->region) && VEC_PUSH(&g->a, &g->origin_name)) {
        g->node.at[0].is_dead = true;
        main_region = VEC_PUSH(&g->a, &g->region);
        g->marks = ARENA_NEW(&g->a, ir_marks, 1);
    }
    if (!main_region || !g->marks) {
        ir_graph_destroy(g);
        return FAIL_MEMORY(e, "a graph");
    }
    g->marks->a = &g->a;
    *out = g;
    return SINTER_OK;
}

void ir_graph_destroy(ir_graph *g)
{
    if (!g) return;
    env *e = g->e;
    for (uint32_t i = 0; i < g->blob.count; i++) {
        blob *b = g->blob.at[i];
        if (b->at) mem_free(e, b->at, b->size, BLOB_ALIGN);
    }
    arena_deinit(&g->a);
    mem_free(e, g, sizeof(*g), _Alignof(ir_graph));
}

void *ir_blob(ir_graph *g, size_t size)
{
    blob *b = ARENA_NEW(&g->a, blob, 1);
    void **slot = b ? VEC_PUSH(&g->a, &g->blob) : NULL;
    if (!slot) return NULL;
    *slot = b;
    b->size = size ? size : 1;
    b->at = mem_zalloc(g->e, b->size, BLOB_ALIGN);
    if (!b->at) g->blob.count--;
    g->is_blob_sorted = false;
    return b->at;
}

static int by_address(const void *a, const void *b)
{
    const blob *const *x = a, *const *y = b;
    return ((*x)->from > (*y)->from) - ((*x)->from < (*y)->from);
}

/* The blob that `at` lies in; NULL: none. */
static blob *blob_find(ir_graph *g, const void *at)
{
    if (!g->is_blob_sorted) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < g->blob.count; i++) {
            blob *b = g->blob.at[i];
            b->from = (uintptr_t)b->at;
            if (b->at) g->blob.at[kept++] = b;
        }
        g->blob.count = kept;
        if (kept) qsort(g->blob.at, kept, sizeof *g->blob.at, by_address);
        g->is_blob_sorted = true;
    }
    uint32_t low = 0, high = g->blob.count;
    while (low < high) {
        const uint32_t mid = (low + high) / 2;
        blob *b = g->blob.at[mid];
        if ((uintptr_t)at < b->from) high = mid;
        else if ((uintptr_t)at - b->from >= b->size) low = mid + 1;
        else return b->at ? b : NULL;
    }
    return NULL;
}

static void blob_free(ir_graph *g, blob *b)
{
    mem_free(g->e, b->at, b->size, BLOB_ALIGN);
    b->at = NULL;
}

void ir_blob_free(ir_graph *g, const void *at)
{
    blob *b = blob_find(g, at);
    if (b && b->at == at) blob_free(g, b);
}

uint64_t ir_const_digest(const ir_value *v)
{
    return v->is_released ? v->digest : hash64(v->data, v->data_size, 0);
}

void ir_release_unused(ir_graph *g)
{
    static const uint8_t gone; /* what stands for the data of a constant without memory */
    for (uint32_t i = 0; i < g->blob.count; i++) ((blob *)g->blob.at[i])->is_used = false;
    for (ir_value_id id = 1; id < g->value.count; id++) {
        const ir_value *v = &g->value.at[id];
        blob *b = v->data && v->use_count ? blob_find(g, v->data) : NULL;
        if (b) b->is_used = true;
    }
    /* What a folded weight was dequantised from, since a product may take that instead; and what the recipe of one
     * needs but the model does not have. */
    for (ir_node_id id = 1; id < g->node.count; id++) {
        const ir_node *n = &g->node.at[id];
        for (uint32_t i = 0; n->is_folded && i < n->count_in; i++) {
            const ir_value *v = &g->value.at[n->in[i]];
            const bool is_kept = n->op == OP_dequantize || !(v->recipe || (v->initializer && v->name));
            blob *b = v->data && is_kept ? blob_find(g, v->data) : NULL;
            if (b) b->is_used = true;
        }
    }
    for (ir_value_id id = 1; id < g->value.count; id++) {
        ir_value *v = &g->value.at[id];
        const blob *b = v->data && !v->use_count ? blob_find(g, v->data) : NULL;
        if (!b || b->is_used) continue;
        v->digest = ir_const_digest(v);
        v->is_released = true;
    }
    for (ir_value_id id = 1; id < g->value.count; id++) {
        ir_value *v = &g->value.at[id];
        if (!v->is_released || v->data == &gone) continue;
        blob *b = blob_find(g, v->data);
        if (b) blob_free(g, b);
        v->data = &gone;
    }
}

bool ir_const_view(const ir_graph *g, ir_value_id v, view *out)
{
    const ir_value *x = ir_value_at(g, v);
    if (!x->data) return false;
    int64_t at[SINTER_RANK_MAX] = { 0 };
    for (uint32_t i = 0; i < x->rank; i++)
        if (!dim_is_const(g->dims, x->dim[i], &at[i])) return false;
    /* Views are read by all; a constant's bytes are never written through one. */
    void *bytes;
    memcpy(&bytes, &x->data, sizeof(bytes));
    return view_init(out, x->dtype, x->rank, at, bytes);
}

bool ir_look(const ir_graph *g, ir_value_id v)
{
    ir_value *x = ir_value_at(g, v);
    if (x->is_open) return false;
    x->is_read = true;
    return true;
}

sinter_status ir_look_back(ir_graph *g)
{
    arena a;
    arena_init(&a, g->e);
    VEC(ir_value_id) open = { 0 };
    for (ir_value_id v = 1; v < g->value.count && !a.failed; v++)
        if (g->value.at[v].is_read && g->value.at[v].recipe) {
            ir_value_id *slot = VEC_PUSH(&a, &open);
            if (slot) *slot = v;
        }
    while (open.count && !a.failed) {
        const ir_node *n = ir_node_at(g, ir_value_at(g, open.at[--open.count])->recipe);
        for (uint32_t i = 0; i < n->count_in; i++) {
            ir_value *x = ir_value_at(g, n->in[i]);
            if (!n->in[i] || x->is_read) continue;
            x->is_read = true;
            ir_value_id *slot = x->recipe ? VEC_PUSH(&a, &open) : NULL;
            if (slot) *slot = n->in[i];
        }
    }
    const bool failed = a.failed;
    arena_deinit(&a);
    return failed ? FAIL_MEMORY(g->e, "what constants decided") : SINTER_OK;
}

bool ir_const_scalar(const ir_graph *g, ir_value_id v, double *out)
{
    view x;
    if (!ir_const_view(g, v, &x) || view_count(&x) != 1 || !ir_look(g, v)) return false;
    *out = view_load_f64(&x, 0);
    return true;
}

static bool has_origin(const ir_node *n, const uint32_t *list, uint32_t count)
{
    for (uint32_t i = 0; i < n->count_origin && count; i++) {
        uint32_t first = 0, end = count;
        while (first < end) {
            const uint32_t middle = first + (end - first) / 2;
            if (list[middle] == n->origin[i]) return true;
            if (list[middle] < n->origin[i]) first = middle + 1;
            else end = middle;
        }
    }
    return false;
}

bool ir_keeps_types(const ir_graph *g, const ir_node *n)
{
    return has_origin(n, g->kept_origin.at, g->kept_origin.count);
}

bool ir_wants_codes(const ir_graph *g, const ir_node *n)
{
    return has_origin(n, g->coded_origin.at, g->coded_origin.count);
}

const char *ir_node_label(const ir_graph *g, ir_node_id n)
{
    const ir_node *x = ir_node_at(g, n);
    if (x->name) return x->name;
    if (x->count_origin && x->origin[0] < g->origin_name.count && g->origin_name.at[x->origin[0]])
        return g->origin_name.at[x->origin[0]];
    return "";
}

static int by_id(const void *a, const void *b)
{
    const ir_node_id x = *(const ir_node_id *)a, y = *(const ir_node_id *)b;
    return (x > y) - (x < y);
}

uint32_t ir_readers(const ir_graph *g, ir_value_id v, arena *a, ir_node_id **out)
{
    *out = NULL;
    if (!v || v >= g->use.count) return 0;
    const ir_use_list *use = &g->use.at[v];
    ir_node_id *at = ARENA_NEW(a, ir_node_id, use->count);
    if (!at) return 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < use->count; i++) {
        if (use->at[i] & 1u) continue;
        const ir_node_id n = use->at[i] >> 1;
        const ir_node *x = &g->node.at[n];
        if (x->is_dead) continue;
        bool reads = false;
        for (uint32_t k = 0; k < x->count_in && !reads; k++) reads = x->in[k] == v;
        if (reads) at[count++] = n;
    }
    if (count > 1) {
        uint32_t unique = 1;
        for (uint32_t i = 1; i < count; i++)
            if (at[i] < at[i - 1]) {
                qsort(at, count, sizeof(*at), by_id);
                break;
            }
        for (uint32_t i = 1; i < count; i++)
            if (at[i] != at[i - 1]) at[unique++] = at[i];
        count = unique;
    }
    *out = at;
    return count;
}
