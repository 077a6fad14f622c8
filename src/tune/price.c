/* SPDX-License-Identifier: Apache-2.0 */
/* price.c - what one op of a graph would take on the device in one type or another, before the graph is lowered.
 *
 * The op is a piece of work as lower.c makes them, of inputs that lie densely, and is asked about in the same way: the
 * cost model picks the layouts, and the clock times the best kernels where it is asked to. What no fast kernel takes is
 * priced as it would be done: in wider types between conversions, in two pieces, or by the reference. */
#include "tune/gains.h"
#include "tune/work.h"

#include <string.h>

static sinter_status price(lowering *l, const work *w, bool is_timed, op_price *out);

static sinter_status price_whole(lowering *l, const work_trial *t, bool is_timed, op_price *out)
{
    choice c;
    *out = (op_price){ .ns = t->ns };
    if (!is_timed) return SINTER_OK;
    TRY(tune_choose(l->e, t->p, l->o, &c));
    TRY(tune_choice_time(l->e, t->p, l->o, &c));
    *out = (op_price){ .ns = c.ns + work_trial_copies_ns(l, t), .is_measured = c.is_measured };
    return SINTER_OK;
}

static sinter_status price_of_cast(lowering *l, uint32_t value, sinter_dtype to, double *ns)
{
    attrs_typed *attrs = op_attrs_new(l->a, OP_cast);
    if (!attrs) return FAIL_MEMORY(l->e, "a price");
    attrs->type = to;
    const plan_value *v = &l->p->value.at[value];
    work_out y = { .dtype = to, .rank = v->rank };
    memcpy(y.dim, v->dim, sizeof y.dim);
    const work w = { .op = OP_cast,
                     .attrs = attrs,
                     .count_in = 1,
                     .count_anchor = 1,
                     .count_out = 1,
                     .in = &value,
                     .out = &y,
                     .name = "" };
    op_price p;
    TRY(price(l, &w, false, &p));
    *ns += p.ns;
    return SINTER_OK;
}

static uint32_t value_like(lowering *l, const plan_value *v, sinter_dtype type, bool is_const)
{
    const plan_value own = *v;
    return plan_value_dense(l->p, is_const ? STORAGE_WEIGHT : STORAGE_SLAB, NULL, type, own.rank, own.dim, NULL);
}

/* In wider types between conversions, as work_widen does it. */
static sinter_status price_wide(lowering *l, const work *w, bool is_timed, op_price *out)
{
    double casts = 0;
    work wide;
    if (!work_piece_of(l, w, &wide)) return FAIL_MEMORY(l->e, "a price");
    wide.out = ARENA_NEW(l->a, work_out, w->count_out);
    if (!wide.out) return FAIL_MEMORY(l->e, "a price");
    for (uint32_t i = 0; i < w->count_in; i++) {
        const plan_value v = l->p->value.at[w->in[i]];
        const sinter_dtype type = work_wider(w, v.dtype);
        if (!w->in[i] || type == v.dtype) continue;
        const bool is_const = lower_is_const(l, w->in[i]);
        if (!is_const) TRY(price_of_cast(l, w->in[i], type, &casts));
        wide.in[i] = value_like(l, &v, type, is_const);
        if (!wide.in[i]) return FAIL_MEMORY(l->e, "a price");
    }
    for (uint32_t i = 0; i < w->count_out; i++) {
        wide.out[i] = w->out[i];
        wide.out[i].dtype = work_wider(w, w->out[i].dtype);
        if (wide.out[i].dtype == w->out[i].dtype) continue;
        plan_value v = { .rank = w->out[i].rank };
        memcpy(v.dim, w->out[i].dim, sizeof v.dim);
        const uint32_t made = value_like(l, &v, wide.out[i].dtype, false);
        if (!made) return FAIL_MEMORY(l->e, "a price");
        TRY(price_of_cast(l, made, w->out[i].dtype, &casts));
    }
    TRY(price(l, &wide, is_timed, out));
    out->ns += casts;
    out->is_converted = true;
    return SINTER_OK;
}

/* The anchor and its epilogue one after the other. */
static sinter_status price_cut(lowering *l, const work *w, bool is_timed, op_price *out)
{
    work anchor = *w, rest = *w;
    work_out between = w->out[0];
    for (uint32_t i = 0; i < w->epilogue->count; i++)
        if (w->epilogue->at[i].op == EXPR_ACC) between.dtype = (sinter_dtype)w->epilogue->at[i].dtype;
    anchor.epilogue = NULL;
    anchor.out = &between;
    plan_value v = { .rank = between.rank };
    memcpy(v.dim, between.dim, sizeof v.dim);
    uint32_t middle = value_like(l, &v, between.dtype, false);
    expr *x = expr_copy(l->a, w->epilogue);
    rest.op = OP_pointwise;
    rest.attrs = op_attrs_new(l->a, OP_pointwise);
    if (!middle || !x || !rest.attrs) return FAIL_MEMORY(l->e, "a price");
    for (uint32_t i = 0; i < x->count; i++)
        if (x->at[i].op == EXPR_ACC) x->at[i].op = EXPR_LOAD; /* of operand 0 */
    rest.epilogue = x;
    rest.in = &middle;
    rest.count_in = rest.count_anchor = 1;
    op_price p;
    TRY(price(l, &rest, false, &p));
    TRY(price(l, &anchor, is_timed, out));
    out->ns += p.ns;
    return SINTER_OK;
}

static sinter_status price(lowering *l, const work *w, bool is_timed, op_price *out)
{
    work_trial t;
    TRY(work_trial_best(l, w, &t));
    if (t.p) return price_whole(l, &t, is_timed, out);
    if (w->epilogue && w->op != OP_pointwise) return price_cut(l, w, is_timed, out);
    if (work_may_widen(l, w)) return price_wide(l, w, is_timed, out);
    choice c;
    TRY(work_trial_make(l, w, MODE_ROW, false, &t));
    tune_estimate(t.p, l->o, false, &c);
    *out = (op_price){ .ns = c.ns, .is_converted = true };
    return SINTER_OK;
}

/* ---- the op as a piece of work ---- */

static uint32_t operand(lowering *l, ir_value_id v, sinter_dtype type, const uint8_t *order)
{
    const ir_value *x = ir_value_at(l->g, v);
    return plan_value_dense(l->p, x->data ? STORAGE_WEIGHT : STORAGE_SLAB, NULL, type, x->rank, x->dim,
                            x->data ? NULL : order);
}

static sinter_dtype type_in(const ir_graph *g, const ir_node *n, uint32_t i, sinter_dtype type)
{
    const sinter_dtype own = ir_value_at(g, n->in[i])->dtype;
    return own == SINTER_DTYPE_F32 && !narrow_stays(n, i) ? type : own;
}

static bool make_float(lowering *l, const ir_node *n, sinter_dtype type, bool is_last, work *w)
{
    *w = (work){ .op = n->op,
                 .attrs = n->attrs,
                 .count_in = n->count_in,
                 .count_anchor = n->count_in,
                 .count_out = n->count_out,
                 .name = "" };
    w->in = ARENA_NEW(l->a, uint32_t, n->count_in);
    w->out = ARENA_NEW(l->a, work_out, n->count_out);
    if (!w->in || !w->out) return false;
    for (uint32_t i = 0; i < n->count_in; i++) {
        uint8_t order[SINTER_RANK_MAX];
        const uint32_t rank = ir_value_at(l->g, n->in[i])->rank;
        (is_last ? work_order_channels_last : work_order_plain)(rank, order);
        if (n->in[i]) w->in[i] = operand(l, n->in[i], type_in(l->g, n, i, type), order);
        if (n->in[i] && !w->in[i]) return false;
    }
    for (uint32_t i = 0; i < n->count_out; i++) {
        const ir_value *y = ir_value_at(l->g, n->out[i]);
        w->out[i] = (work_out){ .dtype = y->dtype == SINTER_DTYPE_F32 ? type : y->dtype, .rank = y->rank };
        memcpy(w->out[i].dim, y->dim, sizeof y->dim);
    }
    return true;
}

/* The sums times a scale, rounded to 8 bits again: what stands between two such products. */
static bool requantize(lowering *l, expr **out)
{
    static const char *const between = "a=acc : i32; b=cast a : f32; c=imm 0.5 : f32; d=mul b c : f32; "
                                       "e=imm 0 : i8; f=quantize d c e : i8; store 0 f";
    const char *why;
    scan s = scan_of(between, strlen(between));
    return expr_parse(l->a, &s, out, &why);
}

static bool make_integers(lowering *l, const ir_node *n, bool is_last, work *w)
{
    const ir_value *weight = ir_value_at(l->g, n->in[1]);
    expr *between = NULL;
    uint8_t order[SINTER_RANK_MAX];
    plan_value v = { .rank = weight->rank };
    *w = (work){ .count_in = 2, .count_anchor = 2, .count_out = 1, .name = "" };
    w->in = ARENA_NEW(l->a, uint32_t, 2);
    w->out = ARENA_NEW(l->a, work_out, 1);
    if (!w->in || !w->out || !requantize(l, &between)) return false;
    memcpy(v.dim, weight->dim, sizeof v.dim);
    if (n->op == OP_conv) {
        const attrs_conv *from = n->attrs;
        attrs_conv_integer *at = op_attrs_new(l->a, OP_conv_integer);
        if (!at) return false;
        at->stride = from->stride;
        at->dilation = from->dilation;
        at->pad = from->pad;
        at->groups = from->groups;
        w->op = OP_conv_integer;
        w->attrs = at;
    } else {
        const attrs_matmul *at = n->attrs;
        w->op = OP_matmul_integer;
        if (at && at->trans_b && v.rank >= 2) {
            v.dim[v.rank - 2] = weight->dim[v.rank - 1];
            v.dim[v.rank - 1] = weight->dim[v.rank - 2];
        }
    }
    (is_last ? work_order_channels_last : work_order_plain)(ir_value_at(l->g, n->in[0])->rank, order);
    w->in[0] = operand(l, n->in[0], quantize_data_type(l->g, n), order);
    w->in[1] = value_like(l, &v, SINTER_DTYPE_I8, true);
    const ir_value *y = ir_value_at(l->g, n->out[0]);
    w->out[0] = (work_out){ .dtype = SINTER_DTYPE_I8, .rank = y->rank };
    memcpy(w->out[0].dim, y->dim, sizeof y->dim);
    w->epilogue = between;
    return w->in[0] && w->in[1];
}

static sinter_status begin(const pricing *p, lowering *l, tune_result *unused)
{
    *unused = (tune_result){ 0 };
    *l = (lowering){ .e = p->e, .a = p->scratch, .g = p->g, .o = p->o, .out = unused };
    TRY(plan_create(p->e, p->scratch, p->g->dims, &l->p));
    return VEC_PUSH(l->a, &unused->recipe) ? SINTER_OK : FAIL_MEMORY(p->e, "a price");
}

/* Images are priced in both layouts: in a network the better one of the type runs through. */
sinter_status price_op(const pricing *p, ir_node_id id, sinter_dtype type, bool is_timed, op_price *out)
{
    const arena_mark mark = arena_save(p->scratch);
    const ir_node n = *ir_node_at(p->g, id);
    const bool is_image = (op_has(n.op, IMAGE) || !op_has(n.op, CONTRACTION)) && ir_value_at(p->g, n.in[0])->rank >= 3;
    sinter_status s = SINTER_OK;
    work_trial best = { 0 };
    lowering l;
    tune_result unused;
    work w = { 0 }, taken = { 0 };
    TRY(begin(p, &l, &unused));
    for (uint32_t is_last = 0; is_last <= is_image && s == SINTER_OK; is_last++) {
        const bool made =
            type == SINTER_DTYPE_I8 ? make_integers(&l, &n, is_last, &w) : make_float(&l, &n, type, is_last, &w);
        work_trial t = { 0 };
        s = made ? work_trial_best(&l, &w, &t) : FAIL_MEMORY(p->e, "a price");
        const bool is_better = t.p && (!best.p || t.ns < best.ns);
        if (!is_last || is_better) taken = w;
        if (is_better) best = t;
    }
    if (s == SINTER_OK) s = price(&l, &taken, is_timed && p->o->mode != TUNE_OFF, out);
    arena_rewind(p->scratch, mark);
    return s;
}

sinter_status price_cast(const pricing *p, ir_value_id v, sinter_dtype type, double *ns)
{
    const arena_mark mark = arena_save(p->scratch);
    const char *rounding =
        type == SINTER_DTYPE_I8
            ? "a=load 0; b=imm 0.5 : f32; c=imm 0 : i8; d=quantize a b c : i8; store 0 d"
            : arena_printf(p->scratch, "a=load 0; b=cast a : %s; store 0 b", sinter_dtype_name(type));
    if (!rounding) return FAIL_MEMORY(p->e, "a price");
    const ir_value *x = ir_value_at(p->g, v);
    expr *made = NULL;
    const char *why;
    scan text_at = scan_of(rounding, strlen(rounding));
    lowering l;
    tune_result unused;
    op_price price_of = { 0 };
    TRY(begin(p, &l, &unused));
    uint32_t in = operand(&l, v, SINTER_DTYPE_F32, NULL);
    work_out out = { .dtype = type, .rank = x->rank };
    memcpy(out.dim, x->dim, sizeof out.dim);
    work w = {
        .op = OP_pointwise, .count_in = 1, .count_anchor = 1, .count_out = 1, .in = &in, .out = &out, .name = ""
    };
    w.attrs = op_attrs_new(p->scratch, OP_pointwise);
    if (!in || !w.attrs || !expr_parse(p->scratch, &text_at, &made, &why)) return FAIL_MEMORY(p->e, "a price");
    w.epilogue = made;
    const sinter_status s = price(&l, &w, false, &price_of);
    *ns = price_of.ns;
    arena_rewind(p->scratch, mark);
    return s;
}

sinter_status price_key(const pricing *p, ir_node_id id, text *key)
{
    const arena_mark mark = arena_save(p->scratch);
    lowering l;
    tune_result unused;
    work w;
    const problem *made = NULL;
    TRY(begin(p, &l, &unused));
    sinter_status s =
        make_float(&l, ir_node_at(p->g, id), SINTER_DTYPE_F32, false, &w) ? SINTER_OK : FAIL_MEMORY(p->e, "a price");
    if (s == SINTER_OK) s = work_problem(&l, &w, &made);
    if (s == SINTER_OK) problem_print_timed(made, key);
    arena_rewind(p->scratch, mark);
    return s == SINTER_OK && key->failed ? FAIL_MEMORY(p->e, "a price") : s;
}

sinter_status price_is_on_device(const pricing *p, ir_node_id id, bool *out)
{
    const arena_mark mark = arena_save(p->scratch);
    lowering l;
    tune_result unused;
    work w;
    const problem *made = NULL;
    uint32_t kernels = 0;
    kernel_target machine;
    *out = false;
    TRY(begin(p, &l, &unused));
    sinter_status s =
        make_float(&l, ir_node_at(p->g, id), SINTER_DTYPE_F32, false, &w) ? SINTER_OK : FAIL_MEMORY(p->e, "a price");
    if (s == SINTER_OK) s = work_problem(&l, &w, &made);
    const kernel *const *list = p->o->backend->kernels(&kernels);
    p->o->backend->target(p->o->device, &machine);
    for (uint32_t i = 0; s == SINTER_OK && i < kernels && !*out; i++)
        *out = list[i]->where == KERNEL_ON_DEVICE && !list[i]->reject(made, &machine);
    arena_rewind(p->scratch, mark);
    return s;
}
