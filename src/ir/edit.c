/* SPDX-License-Identifier: Apache-2.0 */
/* edit.c - the only functions that change a graph.
 *
 * They keep two things true: use_count of a value is the number of inputs of live nodes and results of live regions
 * that name it, and every one of those readers is in the value's use list. Lists are only appended to; what has gone
 * stale is skipped by whoever reads them, so that no edit costs more than the readers it touches. */
#include "ir/graph.h"

#include <string.h>

static void use_add(ir_graph *g, ir_value_id v, uint32_t reader)
{
    if (!v || v >= g->value.count) return;
    g->value.at[v].use_count++;
    ir_use_list *use = &g->use.at[v];
    if (use->count && use->at[use->count - 1] == reader) return;
    uint32_t *slot = VEC_PUSH(&g->a, use);
    if (slot) *slot = reader;
}

static void use_drop(ir_graph *g, ir_value_id v)
{
    if (v && v < g->value.count && g->value.at[v].use_count) g->value.at[v].use_count--;
}

ir_region_id ir_region_new(ir_graph *g, ir_node_id owner)
{
    const ir_region_id id = g->region.count;
    ir_region *r = VEC_PUSH(&g->a, &g->region);
    if (!r) return 0;
    *r = (ir_region){ .owner = owner };
    ir_node *n = ir_node_at(g, owner);
    if (owner) {
        ir_region_id *list = ARENA_NEW(&g->a, ir_region_id, (size_t)n->count_region + 1);
        if (!list) return 0;
        if (n->count_region) memcpy(list, n->region, n->count_region * sizeof(*list));
        list[n->count_region++] = id;
        n->region = list;
    }
    return id;
}

ir_value_id ir_value_new(ir_graph *g, const char *name)
{
    const ir_value_id id = g->value.count;
    ir_use_list *use = VEC_PUSH(&g->a, &g->use);
    if (!use) return 0;
    *use = (ir_use_list){ 0 };
    ir_value *v = VEC_PUSH(&g->a, &g->value);
    if (!v) {
        g->use.count--;
        return 0;
    }
    *v = (ir_value){ .name = name };
    return id;
}

ir_value_id ir_param(ir_graph *g, ir_region_id region, const char *name, sinter_dtype dtype, uint32_t rank,
                     const dim *d)
{
    if (rank > SINTER_RANK_MAX) return 0;
    const ir_value_id id = ir_value_new(g, name);
    ir_value_id *slot = id ? VEC_PUSH(&g->a, &g->region.at[region].param) : NULL;
    if (!slot) return 0;
    *slot = id;
    ir_value *v = &g->value.at[id];
    v->dtype = dtype;
    v->rank = rank;
    for (uint32_t i = 0; i < rank; i++) v->dim[i] = d[i];
    v->is_input = region == IR_MAIN;
    return id;
}

void ir_result(ir_graph *g, ir_region_id region, ir_value_id v)
{
    ir_value_id *slot = VEC_PUSH(&g->a, &g->region.at[region].result);
    if (!slot) return;
    *slot = v;
    use_add(g, v, region * 2 + 1);
    if (region == IR_MAIN) ir_value_at(g, v)->is_output = true;
}

void ir_output(ir_graph *g, ir_value_id v)
{
    const uint32_t before = g->region.at[IR_MAIN].result.count;
    ir_result(g, IR_MAIN, v);
    const ir_value_list *list = &g->region.at[IR_MAIN].result;
    if (list->count == before) return; /* no memory: the arena says so */
    for (uint32_t i = before; i > before - g->states.count; i--) list->at[i] = list->at[i - 1];
    list->at[before - g->states.count] = v;
}

/* Integers of rank <= 1 are what shapes are made of: know them as expressions. */
static void shape_value_set(ir_graph *g, ir_value *v, int64_t count)
{
    if (v->rank > 1 || count > 64 || !dtype_is_int(v->dtype) || sinter_dtype_bits(v->dtype) < 16 || v->is_open) return;
    dim *at = ARENA_NEW(&g->a, dim, (size_t)count);
    if (!at) return;
    for (int64_t i = 0; i < count; i++) at[i] = dim_const(g->dims, dtype_load_i64(v->dtype, v->data, i));
    v->shape_value = at;
    v->shape_count = (uint32_t)count;
    v->is_read = true;
}

ir_value_id ir_const(ir_graph *g, const char *name, sinter_dtype dtype, uint32_t rank, const int64_t *dim_at,
                     const void *data)
{
    view shape;
    if (rank > SINTER_RANK_MAX || !view_init(&shape, dtype, rank, dim_at, NULL)) return 0;
    const int64_t count = view_count(&shape);
    const sinter_tensor tensor = { .dtype = dtype, .rank = 1, .dim = { count } };
    const size_t size = sinter_tensor_size(&tensor);
    const void *bytes = data ? data : ir_blob(g, size);
    const ir_value_id id = bytes ? ir_value_new(g, name) : 0;
    if (!id) return 0;
    ir_value *v = &g->value.at[id];
    v->dtype = dtype;
    v->rank = rank;
    for (uint32_t i = 0; i < rank; i++) v->dim[i] = dim_const(g->dims, dim_at[i]);
    v->data = bytes;
    v->data_size = size;
    if (data) shape_value_set(g, v, count);
    return id;
}

ir_value_id ir_const_as(ir_graph *g, ir_value_id v, sinter_dtype dtype, uint32_t rank, const int64_t *dim_at)
{
    const ir_value x = *ir_value_at(g, v);
    const ir_value_id made = ir_const(g, x.name, dtype, rank, dim_at, x.data);
    if (!made) return 0;
    ir_value *y = ir_value_at(g, made);
    y->recipe = x.recipe;
    y->producer_out = x.producer_out;
    y->is_open = x.is_open;
    y->initializer = x.initializer;
    return made;
}

ir_value_id ir_const_i64s(ir_graph *g, const int64_t *at, uint32_t count)
{
    int64_t *copy = ARENA_NEW(&g->a, int64_t, count);
    if (!copy) return 0;
    if (count) memcpy(copy, at, count * sizeof(*at));
    return ir_const(g, NULL, SINTER_DTYPE_I64, 1, (int64_t[]){ count }, copy);
}

ir_node_id ir_node_new(ir_graph *g, ir_region_id parent, op_id op, void *attrs, const ir_value_id *in,
                       uint32_t count_in, uint32_t count_out)
{
    if (g->node.count >= g->e->limits.nodes_max) {
        FAIL(g->e, NO_MEMORY, "the graph has more than %llu nodes, the limit nodes_max",
             (unsigned long long)g->e->limits.nodes_max);
        return 0;
    }
    ir_value_id *in_at = ARENA_NEW(&g->a, ir_value_id, count_in);
    ir_value_id *out_at = ARENA_NEW(&g->a, ir_value_id, count_out);
    if (!attrs) attrs = op_attrs_new(&g->a, op);
    if (!in_at || !out_at || !attrs) {
        FAIL_MEMORY(g->e, "a node");
        return 0;
    }
    const ir_node_id id = g->node.count;
    for (uint32_t i = 0; i < count_in; i++) in_at[i] = in[i];
    for (uint32_t i = 0; i < count_out; i++) {
        out_at[i] = ir_value_new(g, NULL);
        if (!out_at[i]) {
            FAIL_MEMORY(g->e, "a node's output");
            return 0;
        }
        g->value.at[out_at[i]].producer = id;
        g->value.at[out_at[i]].producer_out = i;
    }
    ir_node_id *listed = VEC_PUSH(&g->a, &ir_region_at(g, parent)->node);
    ir_node *n = listed ? VEC_PUSH(&g->a, &g->node) : NULL;
    if (!n) {
        FAIL_MEMORY(g->e, "a node");
        return 0;
    }
    *listed = id;
    *n = (ir_node){ .op = op,
                    .attrs = attrs,
                    .count_in = count_in,
                    .count_anchor = count_in,
                    .count_out = count_out,
                    .in = in_at,
                    .out = out_at,
                    .parent = parent };
    for (uint32_t i = 0; i < count_in; i++) use_add(g, in_at[i], id * 2);
    if (g->a.failed) {
        FAIL_MEMORY(g->e, "a node");
        return 0;
    }
    return id;
}

void ir_node_set_in(ir_graph *g, ir_node_id n, uint32_t i, ir_value_id v)
{
    ir_node *x = ir_node_at(g, n);
    if (i >= x->count_in || x->in[i] == v) return;
    use_drop(g, x->in[i]);
    x->in[i] = v;
    use_add(g, v, n * 2);
}

sinter_status ir_node_add_in(ir_graph *g, ir_node_id n, const ir_value_id *in, uint32_t count)
{
    ir_node *x = ir_node_at(g, n);
    ir_value_id *at = ARENA_NEW(&g->a, ir_value_id, (size_t)x->count_in + count);
    if (!at) return FAIL_MEMORY(g->e, "a node's inputs");
    if (x->count_in) memcpy(at, x->in, x->count_in * sizeof(*at));
    if (count) memcpy(at + x->count_in, in, count * sizeof(*at));
    x->in = at;
    x->count_in += count;
    if (x->count_region) x->count_anchor += count; /* captures */
    for (uint32_t i = 0; i < count; i++) use_add(g, in[i], n * 2);
    return g->a.failed ? FAIL_MEMORY(g->e, "a node's inputs") : SINTER_OK;
}

sinter_status ir_node_set_out(ir_graph *g, ir_node_id n, uint32_t i, ir_value_id v)
{
    const ir_node_id before = g->value.at[v].producer;
    const uint32_t before_out = g->value.at[v].producer_out;
    if (before) {
        const ir_value_id fresh = ir_value_new(g, NULL);
        if (!fresh) return FAIL_MEMORY(g->e, "a value");
        ir_value *f = &g->value.at[fresh];
        const ir_value *old = &g->value.at[v];
        f->dtype = old->dtype;
        f->rank = old->rank;
        memcpy(f->dim, old->dim, sizeof(f->dim));
        f->producer = before;
        f->producer_out = before_out;
        g->node.at[before].out[before_out] = fresh;
    }
    ir_node *x = &g->node.at[n];
    ir_value *gone = &g->value.at[x->out[i]];
    if (gone->producer == n && gone->producer_out == i) gone->producer = 0;
    x->out[i] = v;
    g->value.at[v].producer = n;
    g->value.at[v].producer_out = i;
    return SINTER_OK;
}

ir_value_id ir_node_add_out(ir_graph *g, ir_node_id n, ir_value_id v)
{
    const ir_value_id fresh = ir_value_new(g, NULL);
    ir_node *x = ir_node_at(g, n);
    ir_value_id *at = fresh ? ARENA_NEW(&g->a, ir_value_id, (size_t)x->count_out + 1) : NULL;
    if (!at) return 0;
    if (x->count_out) memcpy(at, x->out, x->count_out * sizeof(*at));
    const uint32_t i = x->count_out++;
    at[i] = fresh;
    x->out = at;
    g->value.at[fresh].producer = n;
    g->value.at[fresh].producer_out = i;
    if (!v) return fresh;
    return ir_node_set_out(g, n, i, v) == SINTER_OK ? v : 0;
}

static void uses_move(ir_graph *g, ir_value_id from, ir_value_id to, bool results)
{
    /* The list grows under us only where to's does, never from's. */
    const ir_use_list use = g->use.at[from];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < use.count; i++) {
        const uint32_t reader = use.at[i], id = reader >> 1;
        if (reader & 1u) {
            if (!results) {
                use.at[kept++] = reader;
                continue;
            }
            ir_region *r = &g->region.at[id];
            for (uint32_t k = 0; k < r->result.count; k++) {
                if (r->result.at[k] != from) continue;
                r->result.at[k] = to;
                use_drop(g, from);
                use_add(g, to, reader);
            }
            continue;
        }
        ir_node *n = &g->node.at[id];
        if (n->is_dead) continue;
        for (uint32_t k = 0; k < n->count_in; k++)
            if (n->in[k] == from) ir_node_set_in(g, id, k, to);
    }
    g->use.at[from].count = kept;
}

void ir_value_replace(ir_graph *g, ir_value_id from, ir_value_id to)
{
    if (from == to || !from || !to) return;
    if (!g->value.at[from].is_output) {
        /* What has no name takes the name of what it stands for. */
        if (!g->value.at[to].name && !g->value.at[to].data && !g->value.at[from].data)
            g->value.at[to].name = g->value.at[from].name;
        uses_move(g, from, to, true);
        return;
    }
    /* An output keeps its id, name, type and dims: the new producer takes it over, or a copy stands between. */
    const ir_value *t = &g->value.at[to];
    ir_node_id n = t->producer;
    uint32_t i = t->producer_out;
    if (n && !t->is_output && g->node.at[n].parent == IR_MAIN && t->dtype == g->value.at[from].dtype) {
        uses_move(g, to, from, true);
    } else {
        n = ir_node_new(g, IR_MAIN, OP_copy, NULL, &to, 1, 1);
        i = 0;
        if (!n) return;
        uses_move(g, from, to, false);
    }
    (void)ir_node_set_out(g, n, i, from); /* fails only with the arena, whose failure is sticky */
}

static void region_kill(ir_graph *g, ir_region_id r);

static void node_kill(ir_graph *g, ir_node_id n)
{
    ir_node *x = &g->node.at[n];
    if (x->is_dead) return;
    x->is_dead = true;
    for (uint32_t i = 0; i < x->count_in; i++) use_drop(g, x->in[i]);
    for (uint32_t i = 0; i < x->count_region; i++) region_kill(g, x->region[i]);
}

static void region_kill(ir_graph *g, ir_region_id r)
{
    ir_region *x = &g->region.at[r];
    for (uint32_t i = 0; i < x->result.count; i++) use_drop(g, x->result.at[i]);
    x->result.count = 0;
    x->param.count = 0;
    for (uint32_t i = 0; i < x->node.count; i++)
        if (g->node.at[x->node.at[i]].parent == r) node_kill(g, x->node.at[i]);
}

void ir_node_kill(ir_graph *g, ir_node_id n)
{
    if (n && n < g->node.count) node_kill(g, n);
}

void ir_nodes_keep(ir_graph *g, const bool *live)
{
    for (ir_node_id id = 1; id < g->node.count; id++) {
        ir_node *n = &g->node.at[id];
        if (live[id] || n->is_dead) continue;
        n->is_dead = true;
        for (uint32_t i = 0; i < n->count_in; i++) use_drop(g, n->in[i]);
        for (uint32_t i = 0; i < n->count_region; i++) {
            ir_region *r = &g->region.at[n->region[i]];
            for (uint32_t k = 0; k < r->result.count; k++) use_drop(g, r->result.at[k]);
            r->result.count = r->param.count = 0;
        }
    }
}

void ir_node_fold(ir_graph *g, ir_node_id n, void *const *data, const size_t *size)
{
    ir_node *x = &g->node.at[n];
    for (uint32_t i = 0; i < x->count_out; i++) {
        ir_value *v = &g->value.at[x->out[i]];
        v->data = data[i];
        v->data_size = size[i];
        v->producer = 0;
        v->producer_out = i;
        v->recipe = n;
        for (uint32_t k = 0; k < x->count_in; k++) v->is_open = v->is_open || ir_value_at(g, x->in[k])->is_open;
        int64_t count = 1, d = 0;
        for (uint32_t k = 0; k < v->rank; k++)
            if (!dim_is_const(g->dims, v->dim[k], &d) || !i64_mul(count, d, &count)) count = INT64_MAX;
        if (!v->shape_value) shape_value_set(g, v, count);
    }
    node_kill(g, n);
    x->is_folded = true;
}

sinter_status ir_origins_unite(ir_graph *g, const uint32_t **origin, uint32_t *count_origin, const ir_node *f)
{
    if (!f->count_origin || (*origin == f->origin && *count_origin == f->count_origin)) return SINTER_OK;
    if (!*count_origin) {
        *origin = f->origin;
        *count_origin = f->count_origin;
        return SINTER_OK;
    }
    uint32_t at[ORIGINS_MAX], i = 0, k = 0, count = 0;
    while (count < ORIGINS_MAX && (i < *count_origin || k < f->count_origin)) {
        const bool left = k == f->count_origin || (i < *count_origin && (*origin)[i] <= f->origin[k]);
        const uint32_t id = left ? (*origin)[i++] : f->origin[k++];
        if (!count || at[count - 1] != id) at[count++] = id;
    }
    if (count == *count_origin && !memcmp(at, *origin, count * sizeof *at)) return SINTER_OK;
    uint32_t *list = ARENA_NEW(&g->a, uint32_t, count);
    if (!list) return FAIL_MEMORY(g->e, "a node's origins");
    memcpy(list, at, count * sizeof *at);
    *origin = list;
    *count_origin = count;
    return SINTER_OK;
}

sinter_status ir_origin_unite(ir_graph *g, ir_node_id to, ir_node_id from)
{
    ir_node *t = ir_node_at(g, to);
    return ir_origins_unite(g, &t->origin, &t->count_origin, ir_node_at(g, from));
}

sinter_status ir_region_inline(ir_graph *g, ir_node_id owner, uint32_t region, const ir_value_id *arg,
                               ir_value_id *result)
{
    const ir_region_id id = g->node.at[owner].region[region], parent = g->node.at[owner].parent;
    ir_region *r = &g->region.at[id];
    for (uint32_t i = 0; i < r->node.count; i++) {
        const ir_node_id n = r->node.at[i];
        if (g->node.at[n].parent != id) continue;
        g->node.at[n].parent = parent;
        ir_node_id *slot = VEC_PUSH(&g->a, &g->region.at[parent].node);
        if (!slot) return FAIL_MEMORY(g->e, "inlining a subgraph");
        *slot = n;
    }
    r->node.count = 0;
    for (uint32_t i = 0; i < r->param.count; i++) uses_move(g, r->param.at[i], arg[i], true);
    r = &g->region.at[id];
    for (uint32_t i = 0; i < r->result.count; i++) {
        result[i] = r->result.at[i];
        use_drop(g, result[i]);
    }
    r->result.count = 0;
    r->param.count = 0;
    return g->a.failed ? FAIL_MEMORY(g->e, "inlining a subgraph") : SINTER_OK;
}
