/* SPDX-License-Identifier: Apache-2.0 */
/* case_variants.c - sizes, orders and ranges around a problem. */
#include "case_variants.h"

#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

enum { ATOMS = 48, CHANGES = 4096 };

/* A size that is written down once: an axis of an input, or an entry of a list of sizes among the attributes. */
typedef struct atom {
    uint32_t input, axis;
    const attr_info *attr; /* NULL: of an input */
    int64_t size;
} atom;

/* Some atoms get another size. */
typedef struct change {
    uint64_t atoms;
    int64_t size;
} change;

struct case_variants {
    case_rig *r;
    const problem *p;
    atom atom[ATOMS];
    uint32_t atoms, changes, next;
    change change[CHANGES];
};

/* ---- a problem with other sizes ---- */

static problem *copy_of(case_rig *r, const problem *p)
{
    problem *q = ARENA_NEW(&r->a, problem, 1);
    *q = *p;
    q->attrs = op_attrs_copy(&r->a, p->op, p->attrs);
    q->in = ARENA_NEW(&r->a, problem_operand, p->count_in);
    q->out = ARENA_NEW(&r->a, problem_operand, p->count_out);
    if (p->count_in) memcpy(q->in, p->in, p->count_in * sizeof *p->in);
    memcpy(q->out, p->out, p->count_out * sizeof *p->out);
    return q;
}

static attr_dims *dims_of(const problem *p, const attr_info *info)
{
    return (attr_dims *)(void *)((char *)(uintptr_t)p->attrs + info->at);
}

static void set_size(problem_operand *o, uint32_t axis, int64_t size)
{
    o->dim[axis] = (dim_range){ .min = size, .max = size, .opt = size, .divisor = 1 };
}

/* Everything at the sizes of opt. */
static problem *sized_of(case_rig *r, const problem *p)
{
    problem *q = copy_of(r, p);
    for (uint32_t i = 0; i < p->count_in; i++)
        for (uint32_t k = 0; k < p->in[i].rank; k++) set_size(&q->in[i], k, p->in[i].dim[k].opt);
    for (uint32_t i = 0; i < p->count_out; i++)
        for (uint32_t k = 0; k < p->out[i].rank; k++) set_size(&q->out[i], k, p->out[i].dim[k].opt);
    for (const attr_info *a = op_at(p->op)->attr; a->name; a++)
        if (a->kind == ATTR_DIMS) dims_of(q, a)->is_dynamic = false;
    return q;
}

static bool loads(const expr *x, uint32_t operand)
{
    for (uint32_t i = 0; x && i < x->count; i++)
        if (x->at[i].op == EXPR_LOAD && x->at[i].operand == operand) return true;
    return false;
}

/* An operand of a program goes with what the program runs over: axes that were as long as that one's still are. */
static void follow(problem_operand *o, const problem_operand *was, const problem_operand *is)
{
    for (uint32_t k = 0; k < o->rank && o->rank <= was->rank && o->rank <= is->rank; k++) {
        const int64_t old = was->dim[was->rank - o->rank + k].opt;
        if (o->dim[k].opt == old && old != 1) set_size(o, k, is->dim[is->rank - o->rank + k].opt);
    }
}

typedef struct inference {
    dim_table *t;
    infer_value *in, *out;
    void *attrs;
} inference;

static void state(inference *x, const problem_operand *o, infer_value *v)
{
    *v = (infer_value){ .dtype = o->dtype, .rank = o->rank };
    for (uint32_t k = 0; k < o->rank; k++) v->dim[k] = dim_const(x->t, o->dim[k].opt);
}

static void infer_begin(case_rig *r, const problem *p, inference *x)
{
    x->t = dim_table_create(&r->a);
    x->in = ARENA_NEW(&r->a, infer_value, p->count_in + 1);
    x->out = ARENA_NEW(&r->a, infer_value, p->count_out + 1);
    x->attrs = op_attrs_copy(&r->a, p->op, p->attrs);
    for (uint32_t i = 0; i < p->count_in; i++) state(x, &p->in[i], &x->in[i]);
    for (const attr_info *a = op_at(p->op)->attr; a->name; a++) {
        if (a->kind != ATTR_DIMS) continue;
        attr_dims *d = (attr_dims *)(void *)((char *)x->attrs + a->at);
        int64_t *list = ARENA_NEW(&r->a, int64_t, d->count + 1);
        for (uint32_t i = 0; i < d->count; i++) list[i] = dim_const(x->t, d->at[i]);
        d->at = list;
    }
}

/* The dims of the anchor's results; of pointwise: those of its broadcast inputs. */
static bool anchor_results(case_rig *r, const problem *p, inference *x, infer_value *out, uint32_t count)
{
    if (p->op == OP_pointwise) {
        out[0] = (infer_value){ .rank = p->out[0].rank };
        for (uint32_t k = 0; k < out[0].rank; k++) out[0].dim[k] = dim_const(x->t, 1);
        for (uint32_t i = 0; i < p->count_in; i++)
            for (uint32_t k = 0; k < x->in[i].rank; k++) {
                dim *d = &out[0].dim[out[0].rank - x->in[i].rank + k];
                if (x->in[i].rank > out[0].rank || !infer_broadcast(x->t, *d, x->in[i].dim[k], d)) return false;
            }
        return true;
    }
    infer_ctx c = { .e = &r->e,
                    .a = &r->a,
                    .dims = x->t,
                    .op = p->op,
                    .attrs = x->attrs,
                    .count_in = p->count_anchor,
                    .count_out = count,
                    .in = x->in,
                    .out = out };
    const bool ok = op_infer(&c) == SINTER_OK;
    *r->e.error = (sinter_error){ 0 };
    return ok;
}

/* A result of a program is like its space, or reduced along some of its axes. */
static void set_result(problem_operand *o, const problem_operand *was, const problem_operand *space)
{
    for (uint32_t k = 0; k < o->rank; k++)
        if (o->dim[k].opt == was->dim[k].opt) set_size(o, k, space->dim[k].opt);
}

/* Results and operands of programs that go with the anchor's inputs as they are now. False: no such problem. */
static bool complete(case_rig *r, const problem *before, problem *q)
{
    inference x;
    if (q->weight) return false; /* its scales are as many as its sizes say */
    for (uint32_t i = q->count_anchor; i < q->count_in; i++)
        if (loads(q->prologue, i)) follow(&q->in[i], &before->in[0], &q->in[0]);
    infer_begin(r, q, &x);
    const uint32_t count = q->epilogue ? 1 : q->count_out;
    infer_value *out = ARENA_NEW(&r->a, infer_value, q->count_out + 1);
    if (!anchor_results(r, q, &x, out, count)) return false;
    for (uint32_t i = 0; i < count; i++) {
        if (q->out[i].dtype == SINTER_DTYPE_NONE) continue;
        if (out[i].rank != q->out[i].rank) return false;
        for (uint32_t k = 0; k < out[i].rank; k++) {
            int64_t size;
            if (!dim_is_const(x.t, out[i].dim[k], &size)) return false;
            set_size(&q->out[i], k, size);
        }
    }
    for (uint32_t i = 1; q->epilogue && i < q->count_out; i++) set_result(&q->out[i], &before->out[0], &q->out[0]);
    for (uint32_t i = q->count_anchor; i < q->count_in && q->op != OP_pointwise; i++)
        if (loads(q->epilogue, i)) follow(&q->in[i], &before->out[0], &q->out[0]);
    infer_begin(r, q, &x);
    for (uint32_t i = 0; i < q->count_out; i++) state(&x, &q->out[i], &x.out[i]);
    return problem_shape_follows(&r->e, &r->a, x.t, q, x.attrs, x.in, x.out);
}

/* NULL where the op refuses it. */
static problem *changed(case_variants *v, const problem *p, const change *c)
{
    problem *q = copy_of(v->r, p);
    for (uint32_t i = 0; i < v->atoms; i++) {
        if (!(c->atoms >> i & 1)) continue;
        const atom *a = &v->atom[i];
        if (a->attr) ((int64_t *)(uintptr_t)dims_of(q, a->attr)->at)[a->axis] = c->size;
        else set_size(&q->in[a->input], a->axis, c->size);
    }
    return complete(v->r, p, q) ? q : NULL;
}

/* ---- which changes there are ---- */

static void find_atoms(case_variants *v)
{
    const problem *p = v->p;
    const uint32_t inputs = p->op == OP_pointwise ? p->count_in : p->count_anchor;
    for (uint32_t i = 0; i < inputs; i++)
        for (uint32_t k = 0; k < p->in[i].rank && v->atoms < ATOMS; k++)
            v->atom[v->atoms++] = (atom){ .input = i, .axis = k, .size = p->in[i].dim[k].opt };
    for (const attr_info *a = op_at(p->op)->attr; a->name; a++)
        for (uint32_t k = 0; a->kind == ATTR_DIMS && k < dims_of(p, a)->count && v->atoms < ATOMS; k++)
            v->atom[v->atoms++] = (atom){ .attr = a, .axis = k, .size = dims_of(p, a)->at[k] };
}

static void try_change(case_variants *v, uint64_t atoms, int64_t size)
{
    const change c = { atoms, size };
    bool is_same = true;
    for (uint32_t i = 0; i < v->atoms; i++) is_same = is_same && (!(atoms >> i & 1) || v->atom[i].size == size);
    for (uint32_t i = 0; i < v->changes; i++)
        if (v->change[i].atoms == atoms && v->change[i].size == size) return;
    if (is_same || v->changes == CHANGES) return;
    const arena_mark mark = arena_save(&v->r->a);
    if (changed(v, v->p, &c)) v->change[v->changes++] = c;
    arena_rewind(&v->r->a, mark);
}

/* One atom, two, three of one size, all of one size. */
static void find_changes(case_variants *v)
{
    for (uint32_t i = 0; i < v->atoms; i++) {
        const int64_t own = v->atom[i].size, sizes[4] = { 0, 1, own + 3, 2 * own + 1 };
        for (uint32_t s = 0; s < 4; s++) {
            const uint32_t before = v->changes;
            try_change(v, 1ull << i, sizes[s]);
            for (uint32_t k = i + 1; k < v->atoms; k++) {
                const bool is_alike = v->atom[k].size == own;
                if (is_alike || s < 2) try_change(v, 1ull << i | 1ull << k, sizes[s]);
                for (uint32_t j = k + 1; is_alike && j < v->atoms && v->changes == before; j++)
                    if (v->atom[j].size == own) try_change(v, 1ull << i | 1ull << k | 1ull << j, sizes[s]);
            }
            uint64_t all = 0;
            for (uint32_t k = 0; k < v->atoms; k++) all |= v->atom[k].size == own ? 1ull << k : 0;
            try_change(v, all, sizes[s]);
        }
    }
}

case_variants *case_variants_of(case_rig *r, const problem *p)
{
    case_variants *v = ARENA_NEW(&r->a, case_variants, 1);
    if (!v) exit(2);
    v->r = r;
    v->p = sized_of(r, p);
    find_atoms(v);
    find_changes(v);
    return v;
}

uint32_t case_variants_systematic(const case_variants *v)
{
    return v->changes;
}

/* ---- layouts and ranges ---- */

static void shuffle_layout(case_rig *r, problem_operand *o)
{
    const bool moves_units_only = case_below(r, 2);
    for (uint32_t i = o->rank; i-- > 1;) {
        const uint32_t k = case_below(r, i + 1);
        const uint8_t a = o->order[i], b = o->order[k];
        if (moves_units_only && o->dim[a].opt != 1 && o->dim[b].opt != 1) continue;
        o->order[i] = b;
        o->order[k] = a;
    }
    if (o->is_const) return;
    o->is_gapped = case_below(r, 8) == 0;
    o->is_strided = o->is_gapped || case_below(r, 5) == 0;
}

static dim_range joined(dim_range a, dim_range b, uint32_t slack)
{
    if (a.min == b.min && !slack) return a;
    return (dim_range){
        .min = a.min < b.min ? a.min : b.min, .max = (a.max > b.max ? a.max : b.max) + slack, .opt = a.opt, .divisor = 1
    };
}

static bool join_operand(problem_operand *to, const problem_operand *from)
{
    bool is_same = true;
    for (uint32_t k = 0; k < to->rank; k++) {
        is_same = is_same && to->dim[k].min == from->dim[k].min;
        to->dim[k] = joined(to->dim[k], from->dim[k], 0);
    }
    return is_same || !to->is_const;
}

/* `p` with ranges that hold the sizes of `q`, too; NULL where there is none: weights have one size. */
static problem *join(case_rig *r, const problem *p, const problem *q)
{
    problem *j = copy_of(r, p);
    bool ok = true;
    for (uint32_t i = 0; i < p->count_in; i++) ok = ok && join_operand(&j->in[i], &q->in[i]);
    for (uint32_t i = 0; i < p->count_out; i++) ok = ok && join_operand(&j->out[i], &q->out[i]);
    for (const attr_info *a = op_at(p->op)->attr; ok && a->name; a++) {
        if (a->kind != ATTR_DIMS) continue;
        attr_dims *d = dims_of(j, a);
        for (uint32_t k = 0; k < d->count; k++) d->is_dynamic = d->is_dynamic || d->at[k] != dims_of(q, a)->at[k];
    }
    return ok ? j : NULL;
}

static void copy_layout(const problem_operand *from, problem_operand *to, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        memcpy(to[i].order, from[i].order, sizeof to[i].order);
        to[i].is_gapped = from[i].is_gapped;
        to[i].is_strided = from[i].is_strided;
    }
}

static problem *random_change(case_variants *v, const problem *p)
{
    problem *q = v->changes ? changed(v, p, &v->change[case_below(v->r, v->changes)]) : NULL;
    return q ? q : copy_of(v->r, p);
}

/* A kernel writes rows of one pitch along the last axis of the order, if that can have more than one element. */
static problem *with_rows(case_rig *r, const problem *p)
{
    problem *q = copy_of(r, p);
    for (uint32_t i = 0; i < q->count_out; i++) {
        problem_operand *o = &q->out[i];
        if (!o->rank || o->dim[o->order[o->rank - 1]].max == 1) o->is_strided = o->is_gapped = false;
    }
    return q;
}

bool case_variants_next(case_variants *v, case_variant *out)
{
    if (v->next < v->changes) {
        const problem *q = with_rows(v->r, changed(v, v->p, &v->change[v->next++]));
        *out = (case_variant){ q, q };
        return true;
    }
    problem *base = copy_of(v->r, v->p);
    problem *q = random_change(v, base);
    if (case_below(v->r, 2)) q = random_change(v, q);
    if (case_below(v->r, 3)) {
        for (uint32_t i = 0; i < q->count_in; i++) shuffle_layout(v->r, &q->in[i]);
        for (uint32_t i = 0; i < q->count_out; i++) shuffle_layout(v->r, &q->out[i]);
        copy_layout(q->in, base->in, q->count_in);
        copy_layout(q->out, base->out, q->count_out);
    }
    const bool is_back = case_below(v->r, 3) == 0;
    problem *j = join(v->r, is_back ? q : base, is_back ? base : q);
    const problem *sized = is_back ? base : q;
    problem *chosen = with_rows(v->r, j ? j : sized), *own = copy_of(v->r, sized);
    copy_layout(chosen->out, own->out, own->count_out);
    *out = (case_variant){ own, chosen };
    return true;
}

bool case_variants_huge(case_variants *v, case_variant *out)
{
    static const int64_t huge[] = {
        65536, 131073, 1 << 20, (1 << 24) + 1, INT32_MAX, (int64_t)1 << 31, ((int64_t)1 << 33) + 5
    };
    if (!v->changes) return false;
    change c = v->change[case_below(v->r, v->changes)];
    c.size = huge[case_below(v->r, COUNT_OF(huge))];
    const problem *q = changed(v, v->p, &c), *j = q ? join(v->r, v->p, q) : NULL;
    for (uint32_t i = 0; j && i < q->count_in + q->count_out; i++) {
        const problem_operand *o = i < q->count_in ? &q->in[i] : &q->out[i - q->count_in];
        double count = 1;
        for (uint32_t k = 0; k < o->rank; k++) count *= o->dim[k].max ? (double)o->dim[k].max : 1;
        if (count > 1e12) return false;
    }
    *out = (case_variant){ q, j };
    return j != NULL;
}
