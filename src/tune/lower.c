/* SPDX-License-Identifier: Apache-2.0 */
/* lower.c - walks a graph in order and turns it into a plan: views cost nothing, everything else is work for a kernel.
 * Bodies of If, Loop and Scan become regions of the plan (lower_call.c). */
#include "base/os.h"
#include "tune/work.h"

#include <string.h>

enum { ATTENTION_FAR = 8 }; /* views between a value and attention */
enum { TURNS = 2 };         /* transpositions between a value and its reader */

sinter_status lower_value(lowering *l, ir_value_id v, uint32_t *out)
{
    *out = 0;
    if (!v) return SINTER_OK;
    if (!l->map[v]) {
        const ir_value *x = ir_value_at(l->g, v);
        if (!x->data) return FAIL(l->e, INTERNAL, "value '%s' is used before it is made", x->name ? x->name : "?");
        const uint32_t made = plan_value_dense(l->p, STORAGE_WEIGHT, x->name, x->dtype, x->rank, x->dim, NULL);
        weight_recipe *r = made ? VEC_PUSH(l->a, &l->out->recipe) : NULL;
        if (!r) return FAIL_MEMORY(l->e, "a weight");
        r->source = v;
        plan_storage *s = &l->p->storage.at[l->p->value.at[made].storage];
        s->data = x->data;
        s->recipe = l->out->recipe.count - 1;
        l->map[v] = made;
    }
    *out = l->map[v] = lower_current(l, l->map[v]);
    return SINTER_OK;
}

/* ---- names ---- */

/* Is this node one of several layers that were made from one model node? They follow each other and share its name. */
static bool is_named_again(const lowering *l, const ir_node *n, uint32_t i)
{
    const char *name = l->g->origin_name.at[n->origin[i]], *last = i ? l->g->origin_name.at[n->origin[i - 1]] : NULL;
    return name && last && strcmp(name, last) == 0;
}

static const char *name_of(lowering *l, const ir_node *n)
{
    if (n->count_origin < 2) return n->name ? n->name : n->count_origin ? l->g->origin_name.at[n->origin[0]] : "";
    text t;
    text_init(&t, l->e);
    for (uint32_t i = 0; i < n->count_origin && t.length < 160; i++) {
        if (is_named_again(l, n, i)) continue;
        text_printf(&t, "%s%s", i ? " + " : "",
                    l->g->origin_name.at[n->origin[i]] ? l->g->origin_name.at[n->origin[i]] : "?");
    }
    const char *name = t.failed ? "" : arena_text(l->a, t.at, t.length);
    text_deinit(&t);
    return name ? name : "";
}

/* ---- views ---- */

static sinter_status lower_view(lowering *l, const ir_node *n, bool *done)
{
    *done = false;
    uint32_t in;
    TRY(lower_value(l, n->in[0], &in));
    if (l->is_counting[n - l->g->node.at]) TRY(work_place(l, in, PLACE_HOST, name_of(l, n), &in));
    const ir_value *o = ir_value_at(l->g, n->out[0]);
    if (sinter_dtype_bits(o->dtype) < 8) return SINTER_OK;
    plan_value v = { 0 }, source = l->p->value.at[in];
    if (n->op == OP_transpose) *done = view_dims_transpose(&source, &((const attrs_transpose *)n->attrs)->perm, &v);
    if (n->op == OP_expand) *done = view_dims_expand(l->p->dims, &source, o->rank, o->dim, &v);
    if (n->op == OP_slice) {
        const attrs_slice *s = n->attrs;
        view_dims_slice(l->p->dims, &source, &s->start, &s->step, &s->size, &v);
        *done = true;
    }
    /* Where the sizes are not known to agree, a step looks at the numbers. */
    const bool agrees = n->op == OP_reshape &&
                        dim_product(l->p->dims, source.dim, source.rank) == dim_product(l->p->dims, o->dim, o->rank);
    if (agrees) {
        *done = view_dims_reshape(l->p->dims, &source, o->rank, o->dim, &v);
        if (!*done) {
            TRY(work_copy(l, in, NULL, false, 0, name_of(l, n), &in));
            source = l->p->value.at[in];
            *done = view_dims_reshape(l->p->dims, &source, o->rank, o->dim, &v);
        }
    }
    if (!*done) return SINTER_OK;
    v.name = o->name;
    v.is_old = source.is_old;
    plan_value *slot = VEC_PUSH(l->a, &l->p->value);
    if (!slot) return FAIL_MEMORY(l->e, "a view");
    *slot = v;
    l->map[n->out[0]] = l->p->value.count - 1;
    return SINTER_OK;
}

/* ---- nodes ---- */

/* Is attention the only reader of `v`, directly or through views? Attention accepts any order of tokens and heads. */
static bool is_for_attention(lowering *l, ir_value_id v, arena *scratch, uint32_t depth)
{
    ir_node_id *reader;
    const uint32_t count = depth ? ir_readers(l->g, v, scratch, &reader) : 0;
    bool is_all = count > 0 && !ir_value_at(l->g, v)->is_output;
    for (uint32_t i = 0; i < count && is_all; i++) {
        const ir_node *n = ir_node_at(l->g, reader[i]);
        is_all = n->op == OP_attention ||
                 ((op_at(n->op)->traits & VIEW) && is_for_attention(l, n->out[0], scratch, depth - 1));
    }
    return is_all;
}

/* The axis order that the readers of v (a value of the graph) prefer: the order of kernels for images, or the order in
 * which a later transposition becomes a view and costs nothing. far: how many transpositions to look through. */
static bool wish_of(lowering *l, ir_value_id v, arena *scratch, uint32_t far, uint8_t *order)
{
    ir_node_id *reader;
    const ir_value *x = ir_value_at(l->g, v);
    const uint32_t count = x->is_output ? 0 : ir_readers(l->g, v, scratch, &reader);
    /* Of several readers only those behind a transposition count. */
    for (uint32_t i = 0; i < count && (count == 1 || far < TURNS); i++) {
        const ir_node *n = ir_node_at(l->g, reader[i]);
        if (l->o->backend->copy && op_has(n->op, IMAGE) && n->in[0] == v && x->rank >= 4)
            return work_order_channels_last(x->rank, order), true;
    }
    const ir_node *n = count == 1 && x->use_count == 1 ? ir_node_at(l->g, reader[0]) : NULL;
    if (!n || n->op != OP_transpose || !far) return false;
    const attr_ints *perm = &((const attrs_transpose *)n->attrs)->perm;
    if (perm->count != x->rank) return false;
    if (perm->at[perm->count - 1] == (int64_t)perm->count - 1 && is_for_attention(l, n->out[0], scratch, ATTENTION_FAR))
        return false;
    uint8_t behind[SINTER_RANK_MAX];
    if (!wish_of(l, n->out[0], scratch, far - 1, behind)) work_order_plain(x->rank, behind);
    for (uint32_t i = 0; i < x->rank; i++) order[i] = (uint8_t)perm->at[behind[i]];
    return true;
}

sinter_status lower_work(lowering *l, const ir_node *n, work *w)
{
    *w = (work){ .op = n->op,
                 .attrs = n->attrs,
                 .count_in = n->count_in,
                 .count_anchor = n->count_anchor,
                 .count_out = n->count_out,
                 .prologue = n->prologue,
                 .epilogue = n->epilogue,
                 .name = name_of(l, n),
                 .is_counting = l->is_counting[n - l->g->node.at] };
    w->in = ARENA_NEW(l->a, uint32_t, n->count_in);
    w->out = ARENA_NEW(l->a, work_out, n->count_out);
    if (!w->in || !w->out) return FAIL_MEMORY(l->e, "a node");
    for (uint32_t i = 0; i < n->count_in; i++) TRY(lower_value(l, n->in[i], &w->in[i]));
    arena_mark mark = arena_save(l->a);
    for (uint32_t i = 0; i < n->count_out; i++) {
        const ir_value *v = ir_value_at(l->g, n->out[i]);
        w->out[i] = (work_out){ .name = v->name, .dtype = v->dtype, .rank = v->rank, .io = l->io[n->out[i]] };
        memcpy(w->out[i].dim, v->dim, sizeof v->dim);
        if (!l->o->reference_only) w->out[i].has_wish = wish_of(l, n->out[i], l->a, TURNS, w->out[i].wish);
    }
    arena_rewind(l->a, mark);
    return SINTER_OK;
}

static sinter_status lower_node(lowering *l, ir_node_id id)
{
    const ir_node *n = ir_node_at(l->g, id);
    const uint32_t traits = op_at(n->op)->traits;
    if (n->count_region) return lower_call(l, n);
    bool done = false;
    if ((traits & VIEW) && !l->o->reference_only && !n->epilogue) TRY(lower_view(l, n, &done));
    if (done) return SINTER_OK;
    work w;
    TRY(lower_work(l, n, &w));
    uint32_t *value = ARENA_NEW(l->a, uint32_t, n->count_out);
    if (!value) return FAIL_MEMORY(l->e, "a node");
    if (traits & LATE) {
        TRY(work_reference(l, &w, STEP_LATE, value));
    } else if (traits & HOST) {
        TRY(work_reference(l, &w, STEP_KERNEL, value));
    } else if (n->op == OP_concat && !l->o->reference_only && !n->epilogue && n->count_in > 1 &&
               sinter_dtype_bits(w.out[0].dtype) >= 8 && !work_is_for_host(l, &w)) { /* parts begin at whole bytes */
        TRY(concat_lower(l, &w, value));
    } else if (l->region == 1 && lower_updates_state(l, n)) {
        TRY(work_update(l, &w, value));
    } else {
        TRY(work_lower(l, &w, value));
    }
    for (uint32_t i = 0; i < n->count_out; i++) l->map[n->out[i]] = value[i];
    return SINTER_OK;
}

/* ---- regions ---- */

/* Marks the storages that are not written by a kernel but, for example, by a loop. */
static bool *foreign_storages(lowering *l)
{
    bool *is = ARENA_NEW(l->a, bool, l->p->storage.count);
    for (uint32_t i = 1; is && i < l->p->step.count; i++) {
        const plan_step *step = &l->p->step.at[i];
        for (uint32_t k = 0; step->kind != STEP_KERNEL && k < step->count_out; k++)
            is[l->p->value.at[step->out[k]].storage] = true;
    }
    return is;
}

/* Does v, dense and row-major, fill its storage? Then v may become an output. A storage of 0 bytes does not count: any
 * part fills it, also a part whose size is found later than the size of the whole. */
static bool may_be_output(lowering *l, uint32_t v)
{
    const plan_value *x = &l->p->value.at[v];
    const plan_storage *s = &l->p->storage.at[x->storage];
    uint8_t row[SINTER_RANK_MAX];
    work_order_plain(x->rank, row);
    return s->kind == STORAGE_SLAB && dim_is(l->p->dims, x->offset, 0) && work_lies_dense(l, x, row) &&
           !dim_is(l->p->dims, s->size, 0) && s->size == plan_dense_size(l->p, x->dtype, x->rank, x->dim);
}

/* The outputs of the engine: dense row-major, each in a storage of its own. */
static sinter_status lower_outputs(lowering *l, uint32_t *io)
{
    const ir_region *main = ir_region_at(l->g, IR_MAIN);
    const uint32_t inputs = ir_input_count(l->g), outputs = ir_output_count(l->g), known = l->p->storage.count;
    const bool *is_foreign = foreign_storages(l);
    if (!is_foreign) return FAIL_MEMORY(l->e, "storages");
    for (uint32_t i = 0; i < outputs; i++) {
        uint32_t v;
        TRY(lower_value(l, main->result.at[i], &v));
        const uint32_t storage = l->p->value.at[v].storage;
        plan_storage *s = &l->p->storage.at[storage];
        if (storage < known && !is_foreign[storage] && may_be_output(l, v)) {
            s->kind = STORAGE_OUTPUT;
            s->io = inputs + i;
            io[i] = v;
            continue;
        }
        const bool in_place =
            s->kind == STORAGE_OUTPUT && s->io == inputs + i && l->io[main->result.at[i]] == inputs + i + 1;
        if (!in_place)
            TRY(work_copy(l, v, NULL, true, inputs + i + 1, ir_value_at(l->g, main->result.at[i])->name, &v));
        io[i] = v;
    }
    l->p->region.at[1].result = io;
    l->p->region.at[1].count_result = outputs;
    return SINTER_OK;
}

sinter_status lower_nodes(lowering *l, ir_region_id from, uint32_t to)
{
    l->region = to;
    ir_node_id *order;
    uint32_t count;
    TRY(ir_order(l->g, from, l->a, &order, &count));
    for (uint32_t i = 0; i < count; i++) {
        const ir_node *n = ir_node_at(l->g, order[i]);
        TRY(NOTE(l->e, lower_node(l, order[i]), "choosing a kernel for node '%s' (%s)", n->name ? n->name : "?",
                 op_at(n->op)->name));
        l->region = to;
        l->done++;
        if (l->o->progress && l->o->progress(l->o->user, "tune", (double)l->done / (double)(l->total ? l->total : 1)))
            return FAIL(l->e, CANCELLED, "the build was cancelled");
    }
    return SINTER_OK;
}

/* An input that only the host reads is not copied to the device. */
static sinter_status lower_inputs(lowering *l, uint32_t *io, uint32_t count)
{
    if (!l->o->backend->copy) return SINTER_OK;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t storage = l->p->value.at[io[i]].storage;
        const uint32_t twin = lower_twin(l, storage, PLACE_HOST);
        if (!twin || twin == storage || !lower_facts(l) || l->storage.at[storage].reads) continue;
        plan_value *slot = VEC_PUSH(l->a, &l->p->value);
        if (!slot) return FAIL_MEMORY(l->e, "an input");
        *slot = l->p->value.at[io[i]];
        slot->storage = twin;
        io[i] = l->p->value.count - 1;
    }
    return SINTER_OK;
}

static sinter_status lower_main(lowering *l)
{
    const ir_region *main = ir_region_at(l->g, IR_MAIN);
    if (!VEC_PUSH(l->a, &l->p->region)) return FAIL_MEMORY(l->e, "a region");
    const uint32_t inputs = ir_input_count(l->g), outputs = ir_output_count(l->g);
    uint32_t *io = ARENA_NEW(l->a, uint32_t, (size_t)inputs + outputs);
    if (!io) return FAIL_MEMORY(l->e, "inputs and outputs");
    for (uint32_t i = 0; i < inputs; i++) {
        const ir_value *v = ir_value_at(l->g, main->param.at[i]);
        io[i] = l->map[main->param.at[i]] =
            plan_value_dense(l->p, STORAGE_INPUT, v->name, v->dtype, v->rank, v->dim, NULL);
        if (!io[i]) return FAIL_MEMORY(l->e, "an input");
        l->p->storage.at[l->p->value.at[io[i]].storage].io = i;
    }
    for (uint32_t i = outputs; i-- > 0;) {
        const ir_value *v = ir_value_at(l->g, main->result.at[i]);
        const ir_node *maker = ir_node_at(l->g, v->producer);
        if (v->producer && !v->data && !(op_at(maker->op)->traits & (VIEW | LATE)) && !maker->count_region)
            l->io[main->result.at[i]] = inputs + i + 1;
    }
    l->p->io = io;
    l->p->count_io = inputs + outputs;
    TRY(lower_states_begin(l));
    TRY(lower_nodes(l, IR_MAIN, 1));
    TRY(lower_outputs(l, io + inputs)); /* one may be a part of a state as it was */
    TRY(lower_states_end(l));
    return lower_inputs(l, io, inputs);
}

sinter_status tune_graph(env *e, arena *a, ir_graph *g, const tune_options *options, tune_result *out)
{
    *out = (tune_result){ 0 };
    lowering l = { .e = e, .a = a, .g = g, .o = options, .out = out };
    TRY(plan_create(e, a, g->dims, &l.p));
    out->plan = l.p;
    l.map = ARENA_NEW(a, uint32_t, g->value.count);
    l.io = ARENA_NEW(a, uint32_t, g->value.count);
    if (!l.map || !l.io || !VEC_PUSH(a, &out->recipe)) return FAIL_MEMORY(e, "a plan");
    TRY(lower_find_counts(&l));
    for (uint32_t i = 1; i < g->node.count; i++) l.total += !g->node.at[i].is_dead && !g->node.at[i].is_folded;
    TRY(lower_main(&l));
    return a->failed || dim_table_failed(g->dims) ? FAIL_MEMORY(e, "a plan") : SINTER_OK;
}

sinter_status tune_prepare(env *e, ir_graph *g, const tune_options *options)
{
    if (!options->backend->prepare || options->mode == TUNE_OFF || options->cache_only || options->reference_only)
        return SINTER_OK;
    arena a;
    tune_result unused;
    tune_options dry = *options;
    tune_scout scout = { .a = &a };
    dry.scout = &scout;
    dry.progress = NULL;
    dry.stats = NULL;
    arena_init(&a, e);
    sinter_status s = tune_graph(e, &a, g, &dry, &unused);
    const uint64_t start = os_time_ns();
    if (s == SINTER_OK && scout.use.count) s = tune_compile(e, options, scout.use.at, scout.use.count);
    if (options->stats) options->stats->compile_ns += os_time_ns() - start;
    arena_deinit(&a);
    return s;
}
