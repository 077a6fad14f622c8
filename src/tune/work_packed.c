/* SPDX-License-Identifier: Apache-2.0 */
/* work_packed.c - a product whose weight was dequantised when the graph was folded, as one that reads what the model
 * stores.
 *
 * The recipe of the weight says what it was made of. The packed form is one piece of work more, which kernels are asked
 * about beside the product with the weight in f32: where none takes it, or it is slower, nothing changes. */
#include "tune/work.h"

#include <math.h>
#include <string.h>

enum { CHAIN_MAX = 16, BLOCKS_RANK = 3 };

/* What a weight was made of: numbers [size[0], size[1]], each times a scale, of which there is one for each `block`
 * elements along an axis. */
typedef struct origin {
    const ir_node *dequantize;
    sinter_dtype type; /* of the product */
    dim flat[2];       /* as dequantised, before anything is cut off */
    dim size[2];
    int64_t block[2]; /* 1: none */
    bool is_turned;   /* the weight is its transpose */
    bool is_flat, is_rounded;
} origin;

static bool is_wide_float(sinter_dtype t)
{
    return t == SINTER_DTYPE_F32 || t == SINTER_DTYPE_F16 || t == SINTER_DTYPE_BF16;
}

static bool starts_at_zero(const lowering *l, const attrs_slice *s)
{
    for (uint32_t i = 0; i < s->start.count; i++)
        if (!dim_is(l->g->dims, (dim)s->start.at[i], 0) || s->step.at[i] != 1) return false;
    return true;
}

/* Goes one step back along the recipe of a value of rank 2; 0: the chain ends here. */
static ir_value_id before(const lowering *l, const ir_node *n, origin *o)
{
    const ir_value *x = ir_value_at(l->g, n->in[0]);
    if (n->op == OP_cast) {
        if (!is_wide_float(x->dtype)) return 0;
        o->is_rounded = o->is_rounded || x->dtype != SINTER_DTYPE_F32;
        return n->in[0];
    }
    if (n->op == OP_reshape) {
        o->is_flat = true;
        return x->rank == BLOCKS_RANK || x->rank == 2 ? n->in[0] : 0;
    }
    if (o->is_flat || x->rank != 2) return 0;
    if (n->op == OP_slice && starts_at_zero(l, n->attrs)) return n->in[0];
    if (n->op != OP_transpose) return 0;
    o->is_turned = !o->is_turned;
    return n->in[0];
}

static bool same(const lowering *l, dim a, dim b)
{
    return a == b || (dim_is(l->g->dims, a, 1) && dim_is(l->g->dims, b, 1));
}

/* A scale or zero point of blocks along `axis`: one for all, or one for each block. */
static bool fits_blocks(const lowering *l, ir_value_id v, uint32_t axis)
{
    const ir_value *x = ir_value_at(l->g, v);
    return x->rank == 0 || (x->rank == BLOCKS_RANK && dim_is(l->g->dims, x->dim[axis + 1], 1));
}

/* The blocks of numbers of rank 3 that are [flat[0], flat[1]] together: the axis inside the blocks is the one along
 * which there is one scale. */
static bool find_blocks(const lowering *l, origin *o)
{
    dim_table *t = l->g->dims;
    const ir_node *n = o->dequantize;
    const ir_value *q = ir_value_at(l->g, n->in[0]);
    o->block[0] = o->block[1] = 1;
    if (q->rank == 2)
        return same(l, q->dim[0], o->flat[0]) && same(l, q->dim[1], o->flat[1]) &&
               ir_value_at(l->g, n->in[1])->rank <= 2 && ir_value_at(l->g, n->in[2])->rank <= 2;
    for (uint32_t axis = 0; axis < 2 && q->rank == BLOCKS_RANK; axis++) {
        const uint32_t other = axis ? 0 : 2;
        int64_t block = 0;
        if (!fits_blocks(l, n->in[1], axis) || !fits_blocks(l, n->in[2], axis)) continue;
        if (!same(l, q->dim[other], o->flat[1 - axis])) continue;
        if (!same(l, dim_mul(t, q->dim[axis], q->dim[axis + 1]), o->flat[axis])) continue;
        if (!dim_is_const(t, q->dim[axis + 1], &block) || block < 2) continue;
        o->block[axis] = block;
        return true;
    }
    return false;
}

static bool find_origin(const lowering *l, ir_value_id v, origin *o)
{
    const ir_value *x = ir_value_at(l->g, v);
    if (x->rank != 2) return false;
    *o = (origin){ .type = x->dtype, .is_rounded = x->dtype != SINTER_DTYPE_F32 };
    for (uint32_t i = 0; i < CHAIN_MAX; i++) {
        x = ir_value_at(l->g, v);
        const ir_node *n = x->recipe ? ir_node_at(l->g, x->recipe) : NULL;
        if (!n || n->prologue || n->epilogue) return false;
        if (!o->is_flat && x->rank == 2) memcpy(o->flat, x->dim, sizeof o->flat);
        if (n->op == OP_dequantize) {
            o->dequantize = n;
            o->is_rounded = o->is_rounded || x->dtype != SINTER_DTYPE_F32;
            return n->count_in == 3 && n->in[2] && find_blocks(l, o);
        }
        if (!(v = before(l, n, o))) return false;
    }
    return false;
}

static bool is_there(const lowering *l, ir_value_id v)
{
    const ir_value *x = ir_value_at(l->g, v);
    return x->data && !x->is_released;
}

/* The largest scale that may be applied to a sum of codes instead of to each weight. A scale that is infinite, NaN or
 * nearly so would change the result, and so would a scale near 0, because the weight itself may then be 0. With larger
 * scales the weight may exceed the range of f16. */
static double scale_most(const lowering *l, const origin *o)
{
    if (o->type != SINTER_DTYPE_F16) return 0x1p96;
    const sinter_dtype codes = ir_value_at(l->g, o->dequantize->in[0])->dtype;
    return codes == SINTER_DTYPE_F8E5M2 || codes == SINTER_DTYPE_F8E5M2FNUZ ? 1 : 65504.0 / 512;
}

static const double scale_least = 0x1p-96;

static bool are_scales_usual(const lowering *l, const origin *o)
{
    view x;
    int64_t i[SINTER_RANK_MAX];
    const ir_value_id v = o->dequantize->in[1];
    const double most = scale_most(l, o);
    if (!is_there(l, v) || !is_wide_float(ir_value_at(l->g, v)->dtype) || !ir_const_view(l->g, v, &x)) return false;
    for (bool more = view_first(x.dim, x.rank, i); more; more = view_next(x.dim, x.rank, i)) {
        const double scale = fabs(view_load_f64(&x, view_offset(&x, i)));
        if (!(scale < most) || (scale > 0 && scale < scale_least)) return false;
    }
    return ir_look(l->g, v);
}

/* Are all float codes finite? Kernels do not multiply infinities and NaNs correctly. */
static bool are_codes_finite(const lowering *l, ir_value_id v)
{
    view x;
    if (!dtype_is_float(ir_value_at(l->g, v)->dtype)) return true;
    if (!ir_const_view(l->g, v, &x)) return false;
    const int64_t count = view_count(&x); /* dense */
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(view_load_f64(&x, i))) return false;
    return ir_look(l->g, v);
}

/* The operand that `v` is seen as: [size[0], size[1]] of the weight, or of its blocks; turned where the weight is. */
static sinter_status see(lowering *l, const origin *o, ir_value_id v, bool is_scale, uint32_t *out)
{
    const ir_value *x = ir_value_at(l->g, v);
    uint32_t base;
    TRY(lower_value(l, v, &base));
    plan_value s = l->p->value.at[base];
    dim_table *t = l->p->dims;
    dim own[2] = { dim_const(t, 1), dim_const(t, 1) };
    if (x->rank == 1) own[1] = x->dim[0];
    if (x->rank == 2) memcpy(own, x->dim, sizeof own);
    if (x->rank == BLOCKS_RANK && !is_scale) memcpy(own, o->flat, sizeof own);
    if (x->rank == BLOCKS_RANK && is_scale) {
        own[0] = x->dim[0];
        own[1] = o->block[0] > 1 ? x->dim[2] : x->dim[1];
    }
    s.rank = 2;
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t to = o->is_turned ? 1 - i : i;
        const int64_t block = is_scale ? o->block[i] : 1;
        s.stride[to] = i ? dim_const(t, 1) : own[1];
        s.dim[to] = dim_is(t, own[i], 1) ? own[i] : dim_ceildiv(t, o->size[i], dim_const(t, block));
    }
    plan_value *slot = VEC_PUSH(l->a, &l->p->value);
    if (!slot) return FAIL_MEMORY(l->e, "a packed weight");
    *slot = s;
    *out = l->p->value.count - 1;
    return SINTER_OK;
}

static expr_instr load_of(const lowering *l, const origin *o, uint32_t operand, uint32_t value, bool is_scale)
{
    const plan_value *v = &l->p->value.at[value];
    expr_instr n = { .op = EXPR_LOAD, .dtype = (uint8_t)v->dtype, .operand = (uint16_t)operand };
    for (uint32_t i = 0; i < 2 && is_scale; i++) {
        const uint32_t axis = o->is_turned ? 1 - i : i;
        if (o->block[i] < 2 || dim_is(l->p->dims, v->dim[axis], 1)) continue;
        n.imm.i = o->block[i];
        n.kind = (uint8_t)axis;
    }
    return n;
}

/* Operands behind the work's own, and the program over them. */
static sinter_status build(lowering *l, const work *w, const origin *o, work *out)
{
    const ir_node *n = o->dequantize;
    const ir_value_id zero = n->in[2];
    view zero_view;
    const bool is_imm =
        zero && ir_value_at(l->g, zero)->rank == 0 && ir_const_view(l->g, zero, &zero_view) && ir_look(l->g, zero);
    uint32_t *in = ARENA_NEW(l->a, uint32_t, (size_t)w->count_in + 2), count = w->count_in;
    expr *x = arena_alloc(l->a, expr_size(5), _Alignof(expr));
    if (!in || !x) return FAIL_MEMORY(l->e, "a packed weight");
    memcpy(in, w->in, w->count_in * sizeof *in);
    TRY(see(l, o, n->in[0], false, &in[1]));
    x->count = 5;
    x->at[0] = load_of(l, o, 1, in[1], false);
    TRY(see(l, o, n->in[1], true, &in[count]));
    x->at[1] = load_of(l, o, count, in[count], true);
    count++;
    if (is_imm) {
        x->at[2] = (expr_instr){ .op = EXPR_IMM, .dtype = (uint8_t)zero_view.dtype };
        x->at[2].imm = scalar_load(zero_view.dtype, zero_view.data, 0);
    } else {
        TRY(see(l, o, zero, true, &in[count]));
        x->at[2] = load_of(l, o, count, in[count], true);
        count++;
    }
    x->at[3] = (expr_instr){ .op = OP_dequantize, .dtype = (uint8_t)o->type, .arg = { 0, 1, 2 } };
    x->at[4] = (expr_instr){ .op = EXPR_STORE, .dtype = (uint8_t)o->type, .arg = { 3 } };
    *out = *w;
    out->in = in;
    out->count_in = count;
    out->weight = x;
    return SINTER_OK;
}

/* The weight as it lies in its storage, or its transpose. */
static bool is_whole(const lowering *l, const plan_value *v, const ir_value *x, bool *is_turned)
{
    const dim_table *t = l->p->dims;
    if (v->rank != 2 || x->rank != 2 || !dim_is(t, v->offset, 0)) return false;
    *is_turned = v->dim[0] != x->dim[0] || v->dim[1] != x->dim[1] || !dim_is(t, v->stride[1], 1);
    if (!*is_turned) return v->stride[0] == x->dim[1] || dim_is(t, x->dim[0], 1);
    return v->dim[0] == x->dim[1] && v->dim[1] == x->dim[0] && dim_is(t, v->stride[0], 1) && v->stride[1] == x->dim[1];
}

static sinter_status make(lowering *l, const work *w, work *out, bool *has)
{
    origin o;
    bool is_turned = false;
    *has = false;
    if (!(op_at(w->op)->traits & EXPANDS_WEIGHT) || w->prologue || w->weight || w->count_anchor < 2 ||
        !lower_is_const(l, w->in[1]) || !is_wide_float(l->p->value.at[w->in[1]].dtype))
        return SINTER_OK;
    const plan_storage *s = &l->p->storage.at[l->p->value.at[w->in[1]].storage];
    const weight_recipe *r = &l->out->recipe.at[s->recipe];
    if (!r->source || r->step || !find_origin(l, r->source, &o)) return SINTER_OK;
    if (l->o->exact && o.is_rounded) return SINTER_OK;
    const plan_value *v = &l->p->value.at[w->in[1]];
    if (!is_whole(l, v, ir_value_at(l->g, r->source), &is_turned)) return SINTER_OK;
    memcpy(o.size, ir_value_at(l->g, r->source)->dim, sizeof o.size);
    if (o.is_turned) {
        const dim first = o.size[0];
        o.size[0] = o.size[1];
        o.size[1] = first;
    }
    o.is_turned = o.is_turned != is_turned;
    const ir_node *n = o.dequantize;
    if (!is_there(l, n->in[0]) || !are_codes_finite(l, n->in[0]) || !are_scales_usual(l, &o) || !is_there(l, n->in[2]))
        return SINTER_OK;
    work found;
    TRY(build(l, w, &o, &found));
    *has = true;
    return work_in_place(l, &found, PLACE_DEVICE, out);
}

/* Compares measured times where there are any, else the cost model's. At about equal times the form with less memory
 * wins. */
static sinter_status compare(lowering *l, const work_trial *plain, const work_trial *packed, bool *is_better)
{
    static const double as_fast_measured = 1.02, as_fast_by_model = 1.25;
    const work_trial *const at[2] = { plain, packed };
    double ns[2] = { plain->ns, packed->ns };
    *is_better = ns[1] <= as_fast_by_model * ns[0];
    if (l->o->mode == TUNE_OFF) return SINTER_OK;
    bool is_measured = true;
    for (uint32_t i = 0; i < 2; i++) {
        choice c;
        TRY(tune_choose(l->e, at[i]->p, l->o, &c));
        TRY(tune_choice_time(l->e, at[i]->p, l->o, &c));
        ns[i] = c.ns + work_trial_copies_ns(l, at[i]);
        is_measured = is_measured && c.is_measured;
    }
    if (is_measured) *is_better = ns[1] <= as_fast_measured * ns[0];
    return SINTER_OK;
}

sinter_status work_pack(lowering *l, const work *w, const work_trial *plain, work *packed, work_trial *best,
                        bool *is_taken)
{
    bool has = false;
    *is_taken = false;
    TRY(make(l, w, packed, &has));
    if (!has) return SINTER_OK;
    TRY(work_trial_best(l, packed, best));
    if (best->p && !plain->p) *is_taken = true;
    else if (best->p) TRY(compare(l, plain, best, is_taken));
    return SINTER_OK;
}
