/* SPDX-License-Identifier: Apache-2.0 */
/* tap.c - the tensors of a graph that calibration looks at, by name, and taps: copies of them as outputs.
 *
 * A tensor has the model's name for it. What a product reads that has none, because a rewrite made it, is named after
 * the first product that reads it. All names of one graph differ, and two builds of one model give the same names. */
#include "base/name_map.h"
#include "ir/build.h"
#include "tune/gains.h"

/* Which value is a tensor, and which product reads it first. */
static void tensors_mark(const ir_graph *g, const ir_node_id *product, uint32_t count, ir_node_id *reader, bool *is_one)
{
    const ir_region *main = ir_region_at(g, IR_MAIN);
    for (uint32_t i = 0; i < main->param.count; i++) is_one[main->param.at[i]] = true;
    for (ir_node_id id = 1; id < g->node.count; id++) {
        const ir_node *n = ir_node_at(g, id);
        for (uint32_t i = 0; !n->is_dead && n->parent == IR_MAIN && i < n->count_out; i++) is_one[n->out[i]] = true;
    }
    for (uint32_t i = 0; i < count; i++) {
        const ir_value_id v = ir_node_at(g, product[i])->in[0];
        if (!reader[v]) reader[v] = product[i];
    }
    for (ir_value_id v = 1; v < g->value.count; v++) {
        const ir_value *x = ir_value_at(g, v);
        const bool has_name = x->name && *x->name;
        is_one[v] = is_one[v] && x->dtype == SINTER_DTYPE_F32 && !x->data && x->use_count && (has_name || reader[v]);
    }
}

static const char *name_new(arena *a, name_map *names, const char *wanted)
{
    const char *name = wanted;
    for (uint32_t i = 2; name; i++) {
        bool is_new = false;
        if (!name_map_add(names, name, &is_new)) return NULL;
        if (is_new) return name;
        name = arena_printf(a, "%s_%u", wanted, i);
    }
    return NULL;
}

sinter_status tune_tensors(env *e, arena *a, ir_graph *g, tune_tensor **list, uint32_t *count)
{
    ir_node_id *product;
    uint32_t products, all;
    *count = 0;
    TRY(quantize_candidates(e, a, g, &product, &products, &all));
    ir_node_id *reader = ARENA_NEW(a, ir_node_id, g->value.count);
    bool *is_one = ARENA_NEW(a, bool, g->value.count);
    tune_tensor *out = *list = ARENA_NEW(a, tune_tensor, g->value.count);
    if (!reader || !is_one || !out) return FAIL_MEMORY(e, "tensors");
    tensors_mark(g, product, products, reader, is_one);
    name_map names = { .a = a };
    for (ir_value_id v = 1; v < g->value.count; v++)
        if (is_one[v]) out[(*count)++] = (tune_tensor){ .value = v, .is_data = reader[v] != 0 };
    /* A generated name is changed if it equals a name of the model. */
    for (uint32_t i = 0; i < *count; i++) {
        const char *own = ir_value_at(g, out[i].value)->name;
        if (own && *own) out[i].name = name_new(a, &names, arena_text(a, own, strlen(own)));
    }
    for (uint32_t i = 0; i < *count; i++)
        if (!out[i].name)
            out[i].name = name_new(a, &names, arena_printf(a, "%s_input", ir_node_label(g, reader[out[i].value])));
    return a->failed ? FAIL_MEMORY(e, "names of tensors") : SINTER_OK;
}

sinter_status tune_products(env *e, arena *a, ir_graph *g, tune_product **list, uint32_t *count)
{
    tune_tensor *tensor;
    ir_node_id *product;
    uint32_t tensors, all;
    TRY(tune_tensors(e, a, g, &tensor, &tensors));
    TRY(quantize_candidates(e, a, g, &product, count, &all));
    const char **of = ARENA_NEW(a, const char *, g->value.count);
    tune_product *p = *list = ARENA_NEW(a, tune_product, *count);
    if (!of || !p) return FAIL_MEMORY(e, "names of tensors");
    for (uint32_t i = 0; i < tensors; i++) of[tensor[i].value] = tensor[i].name;
    for (uint32_t i = 0; i < *count; i++) {
        const ir_node *n = ir_node_at(g, product[i]);
        p[i] = (tune_product){ op_at(n->op)->name, ir_node_label(g, product[i]), of[n->in[0]], product[i] };
    }
    return SINTER_OK;
}

static size_t size_of(const ir_graph *g, ir_value_id v)
{
    const ir_value *x = ir_value_at(g, v);
    size_t size = 4;
    for (uint32_t i = 0; i < x->rank; i++) size = size_mul(size, (size_t)dim_range_of(g->dims, x->dim[i]).opt);
    return size;
}

sinter_status tune_tap(env *e, ir_graph *g, tune_taps *t)
{
    tune_tensor *tensor;
    uint32_t tensors;
    ir_builder b = { .g = g, .region = IR_MAIN };
    size_t size = 0;
    TRY(tune_tensors(e, t->a, g, &tensor, &tensors));
    t->name = ARENA_NEW(t->a, const char *, tensors);
    if (!t->name) return FAIL_MEMORY(e, "taps");
    t->count = 0;
    t->end = t->first;
    for (uint32_t i = 0; i < tensors; i++) {
        if (!t->is_whole && !tensor[i].is_data) continue;
        const uint32_t index = t->count++;
        const ir_value_id x = tensor[i].value;
        t->name[index] = tensor[i].name;
        if (index != t->end || (index > t->first && size_add(size, size_of(g, x)) > t->size_max)) continue;
        size = size_add(size, size_of(g, x));
        const ir_value_id out = build_copy(&b, x, NULL);
        if (b.status) return NOTE(e, b.status, "adding tap %u", index);
        ir_value *y = ir_value_at(g, out);
        y->name = arena_printf(&g->a, "tap %u", index);
        y->is_output = true;
        ir_output(g, out);
        t->end++;
    }
    return SINTER_OK;
}
