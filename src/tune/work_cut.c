/* SPDX-License-Identifier: Apache-2.0 */
/* work_cut.c - a group taken apart: prologue, anchor and epilogue by themselves, because no fast kernel takes them
 * together, or because the prologue of a contraction and the rest are faster one after the other. */
#include "tune/work.h"

#include <string.h>

static expr *program_with(lowering *l, const expr *x, uint16_t acc_operand, bool has_acc)
{
    expr *y = expr_copy(l->a, x);
    for (uint32_t i = 0; y && has_acc && i < y->count; i++)
        if (y->at[i].op == EXPR_ACC) {
            y->at[i].op = EXPR_LOAD;
            y->at[i].operand = acc_operand;
        }
    return y;
}

static sinter_dtype acc_type(const expr *x, sinter_dtype otherwise)
{
    for (uint32_t i = 0; i < x->count; i++)
        if (x->at[i].op == EXPR_ACC) return (sinter_dtype)x->at[i].dtype;
    return otherwise;
}

/* Keeps only the operands that the program loads, in order of first use. */
static void compact(work *w, expr *x)
{
    uint32_t kept = 0;
    uint32_t *in = w->in;
    for (uint32_t i = 0; i < x->count; i++) {
        if (x->at[i].op != EXPR_LOAD) continue;
        uint32_t k = 0;
        while (k < kept && in[w->count_in + k] != in[x->at[i].operand]) k++;
        if (k == kept) in[w->count_in + kept++] = in[x->at[i].operand];
        x->at[i].operand = (uint16_t)k;
    }
    memmove(in, in + w->count_in, kept * sizeof *in);
    w->count_in = w->count_anchor = kept;
}

/* Everything of the group but the program: a work whose lists have room for one more operand and its compaction. */
bool work_piece_of(lowering *l, const work *w, work *piece)
{
    *piece = *w;
    piece->in = ARENA_NEW(l->a, uint32_t, 2 * (size_t)w->count_in + 4);
    if (!piece->in) return false;
    memcpy(piece->in, w->in, w->count_in * sizeof *w->in);
    return true;
}

sinter_status work_cut_epilogue(lowering *l, const work *w, uint32_t *value)
{
    work anchor, rest;
    work_out between = w->out[0];
    between.io = 0;
    between.dtype = acc_type(w->epilogue, between.dtype);
    if (!work_piece_of(l, w, &anchor) || !work_piece_of(l, w, &rest)) return FAIL_MEMORY(l->e, "a cut");
    anchor.epilogue = NULL;
    anchor.count_in = w->prologue ? w->count_in : w->count_anchor;
    anchor.count_out = 1;
    anchor.out = &between;
    uint32_t middle = 0;
    TRY(work_lower(l, &anchor, &middle));
    rest.in[rest.count_in++] = middle;
    rest.op = OP_pointwise;
    rest.attrs = op_attrs_new(l->a, OP_pointwise);
    rest.prologue = NULL;
    expr *x = program_with(l, w->epilogue, (uint16_t)(rest.count_in - 1), true);
    if (!x || !rest.attrs) return FAIL_MEMORY(l->e, "a cut");
    compact(&rest, x);
    rest.epilogue = x;
    return work_lower(l, &rest, value);
}

/* Forgets inputs that neither the anchor nor its epilogue reads. */
static bool drop_unread(lowering *l, work *w)
{
    uint32_t kept = w->count_anchor;
    expr *x = w->epilogue ? expr_copy(l->a, w->epilogue) : NULL;
    if (w->epilogue && !x) return false;
    for (uint32_t i = w->count_anchor; i < w->count_in; i++) {
        bool is_read = false;
        for (uint32_t k = 0; x && k < x->count; k++) {
            if (x->at[k].op != EXPR_LOAD || w->epilogue->at[k].operand != i) continue;
            x->at[k].operand = (uint16_t)kept;
            is_read = true;
        }
        if (is_read) w->in[kept++] = w->in[i];
    }
    w->count_in = kept;
    w->epilogue = x;
    return true;
}

/* The prologue by itself, and the rest, whose first input is then to be set. */
static sinter_status prologue_pieces(lowering *l, const work *w, work *first, work *anchor)
{
    const plan_value *x0 = &l->p->value.at[w->in[0]];
    work_out *between = ARENA_NEW(l->a, work_out, 1);
    expr *x = program_with(l, w->prologue, 0, false);
    if (!x || !between || !work_piece_of(l, w, first) || !work_piece_of(l, w, anchor))
        return FAIL_MEMORY(l->e, "a cut");
    *between = (work_out){ .dtype = x0->dtype, .rank = x0->rank };
    memcpy(between->dim, x0->dim, sizeof between->dim);
    for (uint32_t i = 0; i < w->prologue->count; i++)
        if (w->prologue->at[i].op == EXPR_STORE) between->dtype = (sinter_dtype)w->prologue->at[i].dtype;
    /* As any value that only an op on images reads. */
    if (l->o->backend->copy && op_has(w->op, IMAGE) && between->rank >= 4) {
        work_order_channels_last(between->rank, between->wish);
        between->has_wish = true;
    }
    first->op = OP_pointwise;
    first->attrs = op_attrs_new(l->a, OP_pointwise);
    first->prologue = NULL;
    first->count_out = 1;
    first->out = between;
    compact(first, x);
    first->epilogue = x;
    anchor->prologue = NULL;
    return first->attrs && drop_unread(l, anchor) ? SINTER_OK : FAIL_MEMORY(l->e, "a cut");
}

sinter_status work_cut_prologue(lowering *l, const work *w, uint32_t *value)
{
    work first, anchor;
    uint32_t middle = 0;
    TRY(prologue_pieces(l, w, &first, &anchor));
    TRY(work_lower(l, &first, &middle));
    anchor.in[0] = middle;
    return work_lower(l, &anchor, value);
}

/* The launches that copies take on a device. A prologue that runs as a step of its own needs no copies, because it
 * reads operands with any strides. */
static double copies_launch_ns(const lowering *l, const work_trial *t)
{
    double ns = 0;
    for (uint32_t i = 0; i < t->p->count_in && i < COUNT_OF(t->convert); i++)
        if (t->convert[i] && l->o->backend->copy) ns += 1700;
    return ns;
}

/* Compares the whole work with its two pieces: by measured times where there are any, else by the cost model. */
static sinter_status compare_cut(lowering *l, const work_trial *whole, const work_trial *first,
                                 const work_trial *anchor, bool *is_cut)
{
    enum { TRIALS = 3 };
    static const double worth_comparing = 3; /* times the other */
    const work_trial *const at[TRIALS] = { whole, first, anchor };
    double ns[TRIALS];
    for (uint32_t i = 0; i < TRIALS; i++) ns[i] = at[i]->ns + copies_launch_ns(l, at[i]);
    *is_cut = ns[1] + ns[2] < ns[0];
    if (l->o->mode == TUNE_OFF || ns[0] > worth_comparing * (ns[1] + ns[2]) || ns[1] + ns[2] > worth_comparing * ns[0])
        return SINTER_OK;
    bool is_measured = true;
    for (uint32_t i = 0; i < TRIALS && (is_measured || l->o->scout); i++) {
        choice c;
        TRY(tune_choose(l->e, at[i]->p, l->o, &c));
        TRY(tune_choice_time(l->e, at[i]->p, l->o, &c));
        ns[i] = c.ns + work_trial_copies_ns(l, at[i]) + copies_launch_ns(l, at[i]);
        is_measured = is_measured && c.is_measured;
    }
    if (is_measured) *is_cut = ns[1] + ns[2] < ns[0];
    return SINTER_OK;
}

/* Is it faster to run the prologue first? A contraction whose prologue fills registers is slower than one that copies
 * rows. The intermediate value exists only during this comparison. */
sinter_status work_is_better_cut(lowering *l, const work *w, const work_trial *whole, bool *is_cut)
{
    work first, anchor;
    work_trial before, after;
    *is_cut = false;
    if (!w->prologue || !(op_at(w->op)->traits & CONTRACTION)) return SINTER_OK;
    TRY(prologue_pieces(l, w, &first, &anchor));
    TRY(work_trial_best(l, &first, &before));
    if (!before.p) return SINTER_OK;
    const uint32_t values = l->p->value.count, storages = l->p->storage.count;
    anchor.in[0] = work_output_new(l, first.out, before.p->out[0].order, PLACE_DEVICE);
    if (!anchor.in[0]) return FAIL_MEMORY(l->e, "a cut");
    sinter_status s = work_trial_best(l, &anchor, &after);
    if (s == SINTER_OK && after.p) s = compare_cut(l, whole, &before, &after, is_cut);
    l->p->value.count = values;
    l->p->storage.count = storages;
    return s;
}
