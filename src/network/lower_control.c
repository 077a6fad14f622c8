/* SPDX-License-Identifier: Apache-2.0 */
/* lower_control.c - loops and conditionals become the ops loop and if.
 *
 * Nobody says which layers are in a loop: those are that depend on its recurrences and iterators. What such a layer
 * reads from outside is captured: it becomes a parameter of the region. A question about a type or shape needs no
 * regions: there, the outputs of these layers are parameters of the right type and shape. */
#include "network/lowering.h"
#include "onnx/quirks.h"

#include <string.h>

/* ---- what is inside ---- */

/* Layers whose outputs are seen inside of the loop or conditional, and those that give its results. */
bool network_opens(const sinter_layer *layer)
{
    return layer->kind == SINTER_LAYER_RECURRENCE || layer->kind == SINTER_LAYER_ITERATOR ||
           layer->kind == SINTER_LAYER_CONDITIONAL_INPUT;
}

bool network_gives_results(const sinter_layer *layer)
{
    return layer->kind == SINTER_LAYER_LOOP_OUTPUT || layer->kind == SINTER_LAYER_CONDITIONAL_OUTPUT;
}

/* Does the layer depend on what is inside of `c`? is_in has what is known so far. */
static bool depends(const network_control *c, const sinter_layer *layer, const bool *is_in)
{
    for (uint32_t i = 0; i < layer->count_in; i++) {
        const sinter_layer *from = layer->in[i] ? layer->in[i]->producer : NULL;
        if (!from) continue;
        if (from->control == c) {
            if (network_opens(from)) return true;
        } else if (is_in[from->id]) {
            return true;
        }
    }
    /* The results of a loop inside depend on everything that the loop reads. */
    for (uint32_t i = 0; layer->control && layer->control != c && i < layer->control->layer.count; i++)
        if (is_in[layer->control->layer.at[i]->id]) return true;
    return false;
}

static sinter_status find_inside(lowering *l, network_control *c, bool **out)
{
    const sinter_network *net = l->net;
    bool *is_in = ARENA_NEW(&l->im.a, bool, net->layer_count + 1u), more = true;
    if (!is_in) return FAIL_MEMORY(l->e, "a network's graph");
    while (more) {
        more = false;
        for (uint32_t i = 0; i < net->layer.count; i++) {
            const sinter_layer *layer = net->layer.at[i];
            if (layer->control == c || is_in[layer->id] || !depends(c, layer, is_in)) continue;
            is_in[layer->id] = more = true;
        }
    }
    *out = is_in;
    return SINTER_OK;
}

sinter_status lowering_controls(lowering *l)
{
    const sinter_network *net = l->net;
    l->inside = ARENA_NEW(&l->im.a, bool *, net->control_count + 1u);
    l->is_inner = ARENA_NEW(&l->im.a, bool, net->layer_count + 1u);
    if (!l->inside || !l->is_inner) return FAIL_MEMORY(l->e, "a network's graph");
    for (uint32_t i = 0; i < net->layer.count; i++) {
        network_control *c = net->layer.at[i]->control;
        if (!c || l->inside[c->id]) continue;
        TRY(find_inside(l, c, &l->inside[c->id]));
        for (uint32_t k = 0; k < net->layer_count; k++) l->is_inner[k] = l->is_inner[k] || l->inside[c->id][k];
    }
    for (uint32_t i = 0; i < net->layer.count; i++)
        if (net->layer.at[i]->control && !network_gives_results(net->layer.at[i]))
            l->is_inner[net->layer.at[i]->id] = true;
    return SINTER_OK;
}

/* Is the tensor made in the region of this context? */
bool context_owns(const context *x, const sinter_network_tensor *t)
{
    const sinter_layer *from = t->producer;
    if (!x->outer) return true;
    if (!from) return false;
    return from->control == x->control ? network_opens(from) : x->l->inside[x->control->id][from->id];
}

/* ---- captures ---- */

sinter_status context_capture(context *x, sinter_network_tensor *t)
{
    ir_graph *g = x->l->im.g;
    ir_value_id v = 0;
    TRY(context_value(x->outer, t, &v));
    x->value[t->id] = v;
    if (x->region == x->outer->region || name_is_list(v) || ir_is_const(g, v)) return SINTER_OK;
    context *const list[2] = { x, x->sibling };
    for (uint32_t i = 0; i < 2 && list[i]; i++) {
        const ir_value from = *ir_value_at(g, v);
        const ir_value_id p = ir_param(g, list[i]->region, from.name, from.dtype, from.rank, from.dim);
        if (!p) return FAIL_MEMORY(x->l->e, "a captured value");
        ir_value_at(g, p)->shape_value = from.shape_value;
        ir_value_at(g, p)->shape_count = from.shape_count;
        TRY(context_room(list[i]));
        list[i]->value[t->id] = p;
    }
    return ir_node_add_in(g, x->owner, &v, 1);
}

/* Gives values to the inputs of a layer that come from outside. *missing: one that has to be lowered here first. */
sinter_status context_inputs(context *x, const sinter_layer *layer, sinter_network_tensor **missing)
{
    *missing = NULL;
    const network_control *c = network_gives_results(layer) && !x->l->is_flat ? layer->control : NULL;
    const uint32_t lists = c ? c->layer.count : 1;
    for (uint32_t k = 0; k < lists; k++) { /* of a loop's result: what all its layers read from outside of it */
        const sinter_layer *from = c ? c->layer.at[k] : layer;
        const bool is_flat_recurrence = x->l->is_flat && from->kind == SINTER_LAYER_RECURRENCE;
        const uint32_t count = is_flat_recurrence ? 1 : from->count_in;
        for (uint32_t i = 0; i < count; i++) {
            sinter_network_tensor *t = from->in[i];
            if (!t || x->value[t->id]) continue;
            const sinter_layer *maker = t->producer;
            if (c && maker && (x->l->inside[c->id][maker->id] || (maker->control == c && network_opens(maker))))
                continue;
            if (context_owns(x, t)) {
                *missing = t;
                return SINTER_OK;
            }
            TRY(context_capture(x, t));
        }
    }
    return SINTER_OK;
}

static context inner_context(context *outer, const network_control *c, ir_region_id region, ir_node_id owner)
{
    return (context){ .l = outer->l,
                      .outer = outer,
                      .control = c,
                      .region = region,
                      .owner = owner,
                      .scope = { .parent = NULL,
                                 .region = region,
                                 .depth = outer->scope.depth + 1,
                                 .names = { .a = &outer->l->im.a } } };
}

static sinter_status need(env *e, const sinter_layer *layer, uint32_t i, const char *what, sinter_network_tensor **out)
{
    *out = i < layer->count_in ? layer->in[i] : NULL;
    return *out ? SINTER_OK : FAIL(e, INVALID_MODEL, "layer '%s' has no input %u, %s", layer->name, i, what);
}

/* ---- loops ---- */

typedef struct loop_plan {
    const network_control *c;
    context *outer;
    const sinter_layer *count, *condition; /* trip limits; NULL: none */
    uint32_t carried, scanned;
    const sinter_layer **recurrence, **scan; /* scan: outputs that need the value of each turn */
    ir_value_id *first;                      /* before the first turn, of each recurrence */
    ir_value_id trip, go;
} loop_plan;

/* A loop's result that is simply what a recurrence becomes: the recurrence's place. */
static bool is_carried(const loop_plan *p, const sinter_layer *output, uint32_t *place)
{
    for (uint32_t i = 0; i < p->carried; i++)
        if (output->in[0] == p->recurrence[i]->out[0]) {
            *place = i;
            return network_param_of(output, "kind")->i == SINTER_LOOP_OUTPUT_LAST_VALUE;
        }
    return false;
}

static sinter_status loop_read(loop_plan *p, ir_builder *b)
{
    lowering *l = p->outer->l;
    env *e = l->e;
    const uint32_t most = p->c->layer.count + 1;
    p->recurrence = ARENA_NEW(&l->im.a, const sinter_layer *, most);
    p->scan = ARENA_NEW(&l->im.a, const sinter_layer *, most);
    p->first = ARENA_NEW(&l->im.a, ir_value_id, most);
    if (!p->recurrence || !p->scan || !p->first) return FAIL_MEMORY(e, "a loop");
    for (uint32_t i = 0; i < p->c->layer.count; i++) {
        const sinter_layer *layer = p->c->layer.at[i];
        if (layer->kind == SINTER_LAYER_TRIP_LIMIT)
            *(network_param_of(layer, "kind")->i ? &p->condition : &p->count) = layer;
        if (layer->kind != SINTER_LAYER_RECURRENCE) continue;
        TRY(context_value(p->outer, layer->in[0], &p->first[p->carried]));
        p->recurrence[p->carried++] = layer;
    }
    if (!p->count && !p->condition) return FAIL(e, INVALID_MODEL, "loop '%s' has no trip limit", p->c->name);
    for (uint32_t i = 0; i < p->c->layer.count; i++) {
        uint32_t place;
        const sinter_layer *layer = p->c->layer.at[i];
        if (network_gives_results(layer) && !is_carried(p, layer, &place)) p->scan[p->scanned++] = layer;
    }
    if (p->count) {
        onnx_call c = { .e = e, .b = *b };
        TRY(context_value(p->outer, p->count->in[0], &p->trip));
        p->trip = build_typed(b, quirk_scalar_in(&c, p->trip), SINTER_DTYPE_I64);
    }
    return b->status;
}

/* The condition of a while loop, where the recurrences have these values; in the region of `around`. */
static sinter_status loop_condition(loop_plan *p, context *around, const ir_value_id *values, ir_builder *b,
                                    ir_value_id *out)
{
    lowering *l = around->l;
    context x = inner_context(around, p->c, around->region, 0);
    TRY(context_room(&x));
    for (uint32_t i = 0; i < p->carried; i++) x.value[p->recurrence[i]->out[0]->id] = values[i];
    TRY(context_value(&x, p->condition->in[0], out));
    onnx_call c = { .e = l->e, .b = *b };
    *out = quirk_scalar_in(&c, *out);
    b->status = c.b.status;
    if (!b->status && ir_value_at(l->im.g, *out)->dtype != SINTER_DTYPE_BOOL)
        return FAIL(l->e, INVALID_MODEL, "the condition of loop '%s' has type %s, wanted is bool", p->c->name,
                    sinter_dtype_name(ir_value_at(l->im.g, *out)->dtype));
    return b->status;
}

/* The slices of iterators that this turn has. */
static sinter_status loop_iterators(loop_plan *p, context *x, ir_value_id turn, ir_builder *b)
{
    dim_table *t = b->g->dims;
    for (uint32_t i = 0; i < p->c->layer.count; i++) {
        const sinter_layer *layer = p->c->layer.at[i];
        ir_value_id v = 0, at = turn;
        if (layer->kind != SINTER_LAYER_ITERATOR) continue;
        TRY(context_value(x, layer->in[0], &v));
        onnx_call c = { .e = x->l->e, .b = *b };
        const int64_t axis = call_axis(&c, network_param_of(layer, "axis")->i, ir_value_at(b->g, v)->rank);
        TRY(c.b.status);
        const dim last = dim_sub(t, ir_value_at(b->g, v)->dim[axis], dim_const(t, 1));
        if (network_param_of(layer, "reverse")->i) at = build_sub(b, build_sizes(b, &last, 1, true), turn);
        x->value[layer->out[0]->id] = build_gather(b, v, at, &(attrs_gather){ .axis = axis });
        TRY(b->status);
    }
    return SINTER_OK;
}

/* The value of the next turn in the sizes of the first. Sizes that only a run knows may be equal: a reshape checks. */
static sinter_status same_form(ir_builder *b, const char *name, const ir_value *from, ir_value_id *next)
{
    env *e = b->g->e;
    const ir_value to = *ir_value_at(b->g, *next);
    if (from->dtype != to.dtype || from->rank != to.rank)
        return FAIL(e, INVALID_MODEL, "recurrence '%s' begins as %s of rank %u and becomes %s of rank %u", name,
                    sinter_dtype_name(from->dtype), from->rank, sinter_dtype_name(to.dtype), to.rank);
    bool is_same = true;
    for (uint32_t i = 0; i < to.rank; i++) {
        int64_t had, has;
        is_same &= from->dim[i] == to.dim[i];
        if (!dim_is_const(b->g->dims, from->dim[i], &had) || !dim_is_const(b->g->dims, to.dim[i], &has) || had == has)
            continue;
        return FAIL(e, INVALID_MODEL, "axis %u of recurrence '%s' begins with %lld elements and gets %lld", i, name,
                    (long long)had, (long long)has);
    }
    if (!is_same) *next = build_shaped(b, *next, from->dim, from->rank);
    return b->status;
}

static sinter_status loop_body(loop_plan *p, ir_node_id node, ir_region_id region)
{
    lowering *l = p->outer->l;
    ir_graph *g = l->im.g;
    context x = inner_context(p->outer, p->c, region, node);
    ir_builder b = { .g = g, .region = region, .fold_max = FOLD_MAX };
    ir_value_id *next = ARENA_NEW(&l->im.a, ir_value_id, p->carried + 1u), go = 0;
    if (x.scope.depth >= l->e->limits.depth_max)
        return FAIL(l->e, UNSUPPORTED, "loops and conditionals nest deeper than the limit depth_max");
    TRY(context_room(&x));
    const ir_value_id turn = ir_param(g, region, NULL, SINTER_DTYPE_I64, 0, NULL),
                      before = ir_param(g, region, NULL, SINTER_DTYPE_BOOL, 0, NULL);
    if (!next || !turn || !before) return FAIL_MEMORY(l->e, "a loop");
    for (uint32_t i = 0; i < p->carried; i++) {
        const ir_value from = *ir_value_at(g, p->first[i]);
        const ir_value_id v = ir_param(g, region, p->recurrence[i]->out[0]->name, from.dtype, from.rank, from.dim);
        if (!v) return FAIL_MEMORY(l->e, "a loop");
        x.value[p->recurrence[i]->out[0]->id] = v;
    }
    TRY(loop_iterators(p, &x, turn, &b));
    for (uint32_t i = 0; i < p->carried; i++) {
        sinter_network_tensor *t = NULL;
        TRY(need(l->e, p->recurrence[i], 1, "the value of the next turn", &t));
        TRY(context_value(&x, t, &next[i]));
        const ir_value from = *ir_value_at(g, p->first[i]);
        TRY(same_form(&b, p->recurrence[i]->name, &from, &next[i]));
    }
    if (p->condition) TRY(loop_condition(p, &x, next, &b, &go));
    else go = build_identity(&b, before);
    TRY(b.status);
    ir_result(g, region, go);
    for (uint32_t i = 0; i < p->carried; i++) ir_result(g, region, next[i]);
    for (uint32_t i = 0; i < p->scanned; i++) {
        ir_value_id v = 0;
        TRY(context_value(&x, p->scan[i]->in[0], &v));
        ir_result(g, region, v);
    }
    return SINTER_OK;
}

/* What a loop output is, from the values of all turns, [turns, …]. */
static ir_value_id scanned_result(const loop_plan *p, ir_builder *b, const sinter_layer *output, ir_value_id all)
{
    dim_table *t = b->g->dims;
    int64_t perm[SINTER_RANK_MAX];
    const int64_t kind = network_param_of(output, "kind")->i;
    onnx_call c = { .e = p->outer->l->e, .b = *b };
    const uint32_t rank = ir_value_at(b->g, all)->rank;
    const dim turns = ir_value_at(b->g, all)->dim[0], one = dim_const(t, 1), last = dim_sub(t, turns, one);
    if (kind == SINTER_LOOP_OUTPUT_LAST_VALUE) return build_squeezed(b, build_part(b, all, 0, last, 1, one), 0);
    const int64_t axis = call_axis(&c, network_param_of(output, "axis")->i, rank);
    b->status = c.b.status;
    if (b->status) return 0;
    if (kind == SINTER_LOOP_OUTPUT_REVERSE) all = build_part(b, all, 0, last, -1, turns);
    for (uint32_t i = 0; i < rank; i++) perm[i] = i < axis ? (int64_t)i + 1 : i == axis ? 0 : (int64_t)i;
    return build_permuted(b, all, perm, rank);
}

/* The length that a concatenation was promised: zeros fill it up, and what is more is cut off. */
static ir_value_id promised_length(const loop_plan *p, ir_builder *b, const sinter_layer *output, ir_value_id v)
{
    dim_table *t = b->g->dims;
    dim want = DIM_NONE, begin[SINTER_RANK_MAX], end[SINTER_RANK_MAX];
    uint32_t count = 0;
    ir_value_id length = 0;
    onnx_call c = { .e = p->outer->l->e, .b = *b };
    if (output->count_in < 2 || b->status || network_param_of(output, "kind")->i == SINTER_LOOP_OUTPUT_LAST_VALUE)
        return v;
    b->status = context_value(p->outer, output->in[1], &length);
    if (b->status) return v;
    const ir_value x = *ir_value_at(b->g, v);
    const int64_t axis = call_axis(&c, network_param_of(output, "axis")->i, x.rank);
    call_sizes(&c, length, "the length of a loop's output", DIM_NONE, &want, 1, &count);
    b->status = c.b.status;
    if (b->status || count != 1) return v;
    const dim more = dim_sub(t, want, x.dim[axis]);
    const dim_range r = dim_range_of(t, more);
    if (dim_is(t, more, 0)) return v;
    for (uint32_t i = 0; i < x.rank; i++) begin[i] = end[i] = dim_const(t, 0);
    end[axis] = r.min < 0 ? dim_max(t, more, begin[axis]) : more;
    if (r.max > 0) v = build_padded(b, v, pad_mode_constant, begin, end, 0);
    return r.min < 0 ? build_part(b, v, (uint32_t)axis, begin[axis], 1, want) : v;
}

static sinter_status loop_results(loop_plan *p, ir_builder *b, ir_node_id node)
{
    uint32_t scanned = 0;
    for (uint32_t i = 0; i < p->c->layer.count && !b->status; i++) {
        const sinter_layer *layer = p->c->layer.at[i];
        uint32_t place = 0;
        if (!network_gives_results(layer)) continue;
        ir_value_id v;
        if (is_carried(p, layer, &place)) {
            v = build_result(b, node, place);
        } else {
            v = scanned_result(p, b, layer, build_result(b, node, p->carried + scanned++));
            v = promised_length(p, b, layer, v);
        }
        if (!b->status && !ir_value_at(b->g, v)->name) ir_value_at(b->g, v)->name = layer->out[0]->name;
        p->outer->value[layer->out[0]->id] = v;
        p->outer->state[layer->id] = LAYER_DONE;
    }
    return b->status;
}

static sinter_status lower_loop(context *outer, const network_control *c)
{
    lowering *l = outer->l;
    ir_builder b = { .g = l->im.g, .region = outer->region, .fold_max = FOLD_MAX, .name = c->name };
    loop_plan p = { .c = c, .outer = outer };
    TRY(loop_read(&p, &b));
    if (p.condition) TRY(loop_condition(&p, outer, p.first, &b, &p.go));
    ir_value_id *in = ARENA_NEW(&l->im.a, ir_value_id, p.carried + 2u);
    if (!in) return FAIL_MEMORY(l->e, "a loop");
    in[0] = p.trip;
    in[1] = p.go;
    if (p.carried) memcpy(in + 2, p.first, p.carried * sizeof *in);
    if (!p.carried && !p.scanned)
        return FAIL(l->e, INVALID_MODEL, "loop '%s' has neither recurrences nor outputs", c->name);
    const ir_node_id node =
        build_node(&b, OP_loop, &(attrs_loop){ .carried = p.carried }, in, p.carried + 2, p.carried + p.scanned);
    TRY(b.status);
    const ir_region_id region = ir_region_new(l->im.g, node);
    if (!region) return FAIL_MEMORY(l->e, "a loop");
    TRY(loop_body(&p, node, region));
    build_close(&b, node);
    TRY(b.status);
    return loop_results(&p, &b, node);
}

/* ---- conditionals ---- */

static sinter_status branch(context *x, const network_control *c, uint32_t which)
{
    for (uint32_t i = 0; i < c->layer.count; i++) {
        const sinter_layer *layer = c->layer.at[i];
        ir_value_id v = 0;
        if (!network_gives_results(layer)) continue;
        TRY(context_value(x, layer->in[which], &v));
        ir_result(x->l->im.g, x->region, v);
    }
    return SINTER_OK;
}

static sinter_status lower_conditional(context *outer, const network_control *c)
{
    lowering *l = outer->l;
    ir_graph *g = l->im.g;
    ir_builder b = { .g = g, .region = outer->region, .fold_max = FOLD_MAX, .name = c->name };
    const sinter_layer *condition = NULL;
    uint32_t results = 0;
    ir_value_id go = 0;
    for (uint32_t i = 0; i < c->layer.count; i++) {
        if (c->layer.at[i]->kind == SINTER_LAYER_CONDITION) condition = c->layer.at[i];
        results += network_gives_results(c->layer.at[i]);
    }
    if (!condition) return FAIL(l->e, INVALID_MODEL, "conditional '%s' has no condition", c->name);
    TRY(context_value(outer, condition->in[0], &go));
    onnx_call call = { .e = l->e, .b = b };
    go = quirk_scalar_in(&call, go);
    TRY(call.b.status);
    const ir_node_id node = build_node(&b, OP_if, NULL, &go, 1, results);
    TRY(b.status);
    const ir_region_id yes = ir_region_new(g, node), no = yes ? ir_region_new(g, node) : 0;
    if (!no) return FAIL_MEMORY(l->e, "a conditional");
    context x[2] = { inner_context(outer, c, yes, node), inner_context(outer, c, no, node) };
    if (x[0].scope.depth >= l->e->limits.depth_max)
        return FAIL(l->e, UNSUPPORTED, "loops and conditionals nest deeper than the limit depth_max");
    x[0].sibling = &x[1];
    x[1].sibling = &x[0];
    for (uint32_t k = 0; k < 2; k++) TRY(context_room(&x[k]));
    for (uint32_t i = 0; i < c->layer.count; i++) {
        const sinter_layer *layer = c->layer.at[i];
        ir_value_id v;
        if (layer->kind != SINTER_LAYER_CONDITIONAL_INPUT) continue;
        for (uint32_t k = 0; k < 2; k++) {
            TRY(context_value(&x[k], layer->in[0], &v));
            x[k].value[layer->out[0]->id] = v;
        }
    }
    for (uint32_t k = 0; k < 2; k++) TRY(branch(&x[k], c, k));
    build_close(&b, node);
    for (uint32_t i = 0, k = 0; i < c->layer.count && !b.status; i++) {
        const sinter_layer *layer = c->layer.at[i];
        if (!network_gives_results(layer)) continue;
        outer->value[layer->out[0]->id] = build_result(&b, node, k++);
        outer->state[layer->id] = LAYER_DONE;
        ir_value_at(g, outer->value[layer->out[0]->id])->name = layer->out[0]->name;
    }
    return b.status;
}

sinter_status context_control(context *x, const sinter_layer *layer)
{
    const network_control *c = layer->control;
    const uint32_t node_first = x->l->im.g->node.count;
    const sinter_status s = c->is_loop ? lower_loop(x, c) : lower_conditional(x, c);
    if (s == SINTER_OK) importer_name_nodes(&x->l->im, c->name, node_first);
    return NOTE(x->l->e, s, "converting %s '%s'", c->is_loop ? "loop" : "conditional", c->name);
}

/* ---- without regions, for questions ---- */

static ir_value_id unknown(network_call *n, ir_value_id like, uint32_t rank, const dim *d)
{
    if (n->c.b.status) return 0;
    if (!n->l->is_flat) {
        REJECT(&n->c, INVALID_MODEL, "it is read where its loop or conditional does not run");
        return 0;
    }
    const ir_value_id v = ir_param(n->c.b.g, IR_MAIN, NULL, call_type(&n->c, like), rank, d);
    if (!v) REJECT(&n->c, NO_MEMORY, "out of memory");
    return v;
}

static void like_input(network_call *n)
{
    dim d[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(&n->c, n->c.in[0], d);
    n->c.out[0] = unknown(n, n->c.in[0], rank, d);
}

void lower_trip_limit(network_call *n)
{
    (void)n;
}

void lower_condition(network_call *n)
{
    (void)n;
}

void lower_recurrence(network_call *n)
{
    like_input(n);
}

void lower_conditional_input(network_call *n)
{
    like_input(n);
}

void lower_iterator(network_call *n)
{
    dim d[SINTER_RANK_MAX], to[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(&n->c, n->c.in[0], d);
    const int64_t axis = call_axis(&n->c, network_int(n, "axis"), rank);
    for (uint32_t i = 0, k = 0; i < rank; i++)
        if (i != axis) to[k++] = d[i];
    n->c.out[0] = unknown(n, n->c.in[0], rank ? rank - 1 : 0, to);
}

void lower_loop_output(network_call *n)
{
    dim d[SINTER_RANK_MAX], to[SINTER_RANK_MAX], length = DIM_NONE;
    uint32_t count = 0;
    const uint32_t rank = call_shape(&n->c, n->c.in[0], d);
    if (network_int(n, "kind") == SINTER_LOOP_OUTPUT_LAST_VALUE) {
        like_input(n);
        return;
    }
    const int64_t axis = call_axis(&n->c, network_int(n, "axis"), rank + 1);
    if (rank == SINTER_RANK_MAX) REJECT(&n->c, UNSUPPORTED, "rank %u", rank + 1);
    if (n->c.b.status) return;
    if (!call_in(&n->c, 1) || !call_known(&n->c, n->c.in[1], &length, 1, &count) || count != 1)
        length = dim_symbol_late(n->c.b.g->dims, "turns", DIM_NONE);
    for (uint32_t i = 0, k = 0; i <= rank; i++) to[i] = i == axis ? length : d[k++];
    n->c.out[0] = unknown(n, n->c.in[0], rank + 1, to);
}

void lower_conditional_output(network_call *n)
{
    dim d[SINTER_RANK_MAX], other[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(&n->c, n->c.in[0], d);
    if (call_shape(&n->c, n->c.in[1], other) != rank || call_type(&n->c, n->c.in[0]) != call_type(&n->c, n->c.in[1]))
        REJECT(&n->c, INVALID_ARG, "the branches differ in type or rank");
    for (uint32_t i = 0; i < rank; i++)
        if (d[i] != other[i]) d[i] = dim_symbol_late(n->c.b.g->dims, "branch", DIM_NONE);
    n->c.out[0] = unknown(n, n->c.in[0], rank, d);
}
