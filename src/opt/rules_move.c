/* SPDX-License-Identifier: Apache-2.0 */
/* rules_move.c - what slices, concatenations and transposes make of one value becomes one gather.
 *
 * Windows that are shifted, cut out and put back together (Liu 2021, Swin) are a dozen copies of the same rows. Where
 * all of a chain's results come from one value, and runs of its innermost axis stay whole, it says which run lies
 * where:
 *
 *   move(… concat(slice(x), slice(x)) …)  -> reshape(gather(reshape(x), constant))
 *   concat(x, y, z), where there is concat(x, y)  -> concat(concat(x, y), z)
 *
 * Rotary positions (Su 2021) are written with the second half of a row, negative, before the first. Where that is
 * multiplied, the halves are an axis that is read backwards, and the signs belong to the other factor, which is
 * smaller:
 *
 *   x c + concat(-x[n:], x[:n]) s  -> x c + reverse(x) (s * [-1, 1])
 *
 * Indices of single elements that are one list, repeated along all other axes, name whole slices (graph networks), here
 * as an expansion or as a constant:
 *
 *   gather_elements(x, expand(list))      -> gather(x, list)
 *   scatter_elements(x, expand(list), u)  -> scatter_nd(x, list, u)       along the first axis */
#include "opt/rewrite.h"

#include <string.h>

/* A gather pays from so many copies on, each of which was a step. Chains that are longer, and results of more or of
 * shorter runs, are left alone. */
enum { X };
enum { COPIES_LEAST = 3, LOOKS_MAX = 128, UNITS_LEAST = 32, UNITS_MOST = 1 << 20, RUN_LEAST = 16 };

typedef struct chain {
    const ir_graph *g;
    arena a;
    ir_value_id source;
    int64_t run; /* elements of a unit: the source's innermost axis */
    uint32_t looks, copies;
} chain;

/* The sizes of a value, the innermost in units. */
typedef struct grid {
    int64_t dim[SINTER_RANK_MAX], count;
    uint32_t rank;
} grid;

static const ir_node *mover_of(const chain *c, ir_value_id v)
{
    const ir_node *n = ir_node_at(c->g, ir_value_at(c->g, v)->producer);
    return n->op == OP_reshape || n->op == OP_transpose || n->op == OP_slice || n->op == OP_concat ? n : NULL;
}

static bool grid_of(const chain *c, ir_value_id v, grid *out)
{
    const ir_value *x = ir_value_at(c->g, v);
    *out = (grid){ .count = 1, .rank = x->rank };
    for (uint32_t i = 0; i < x->rank; i++) {
        int64_t *d = &out->dim[i];
        if (!dim_is_const(c->g->dims, x->dim[i], d) || *d <= 0) return false;
        if (i + 1 == x->rank && *d % c->run) return false;
        if (i + 1 == x->rank) *d /= c->run;
        if (*d > UNITS_MOST / out->count) return false;
        out->count *= *d;
    }
    return x->rank > 0;
}

static int32_t *units_of(chain *c, ir_value_id v);

/* Element i of axis k of the result is `first` + i * step[k] of the input. */
static int32_t *strided(chain *c, ir_value_id from, const grid *to, int64_t first, const int64_t *step)
{
    const int32_t *x = units_of(c, from);
    int32_t *y = x ? ARENA_NEW(&c->a, int32_t, (size_t)to->count) : NULL;
    int64_t at[SINTER_RANK_MAX] = { 0 }, place = first;
    for (int64_t i = 0; y && i < to->count; i++) {
        y[i] = x[place];
        for (uint32_t k = to->rank; k-- > 0;) {
            place += step[k];
            if (++at[k] < to->dim[k]) break;
            place -= step[k] * to->dim[k];
            at[k] = 0;
        }
    }
    return y;
}

static int32_t *turned(chain *c, const ir_node *n, const grid *from, const grid *to, const int64_t *stride)
{
    const attr_ints *perm = &((const attrs_transpose *)n->attrs)->perm;
    int64_t step[SINTER_RANK_MAX];
    if (perm->count != from->rank || perm->at[from->rank - 1] != (int64_t)from->rank - 1) return NULL;
    for (uint32_t i = 0; i < from->rank; i++) step[i] = stride[perm->at[i]];
    c->copies++;
    return strided(c, n->in[0], to, 0, step);
}

static int32_t *cut_out(chain *c, const ir_node *n, const grid *from, const grid *to, const int64_t *stride)
{
    const attrs_slice *at = n->attrs;
    int64_t step[SINTER_RANK_MAX], first = 0;
    for (uint32_t i = 0; i < from->rank; i++) {
        const int64_t by = i < at->step.count ? at->step.at[i] : 1, unit = i + 1 < from->rank ? 1 : c->run;
        int64_t start;
        if (!dim_is_const(c->g->dims, (dim)at->start.at[i], &start) || start % unit || (unit > 1 && by != 1))
            return NULL;
        first += start / unit * stride[i];
        step[i] = to->dim[i] > 1 ? by * stride[i] : 0; /* the step of a single element may be anything */
    }
    return strided(c, n->in[0], to, first, step);
}

static int32_t *joined(chain *c, const ir_node *n, const grid *to)
{
    const int64_t axis = ((const attrs_concat *)n->attrs)->axis;
    int32_t *y = ARENA_NEW(&c->a, int32_t, (size_t)to->count);
    int64_t outer = 1, inner = 1, at = 0;
    for (uint32_t i = 0; i < to->rank; i++) *(i < axis ? &outer : i > axis ? &inner : &at) *= to->dim[i];
    const int64_t pitch = to->dim[axis] * inner;
    at = 0;
    for (uint32_t i = 0; i < n->count_in && y; i++) {
        grid part;
        const int32_t *x = grid_of(c, n->in[i], &part) ? units_of(c, n->in[i]) : NULL;
        if (!x) return NULL;
        const int64_t size = part.dim[axis] * inner;
        for (int64_t k = 0; k < outer; k++) memcpy(y + k * pitch + at, x + k * size, (size_t)size * sizeof *y);
        at += size;
        c->copies++;
    }
    return y;
}

/* Which of the source's units each of v's is; NULL: it is made otherwise. */
static int32_t *units_of(chain *c, ir_value_id v)
{
    grid from, to;
    const ir_node *n = mover_of(c, v);
    if (++c->looks > LOOKS_MAX || !grid_of(c, v, &to)) return NULL;
    if (v == c->source) {
        int32_t *y = ARENA_NEW(&c->a, int32_t, (size_t)to.count);
        for (int64_t i = 0; y && i < to.count; i++) y[i] = (int32_t)i;
        return y;
    }
    if (!n || !grid_of(c, n->in[0], &from)) return NULL;
    if (n->op == OP_reshape) return units_of(c, n->in[0]);
    if (n->op == OP_concat) return joined(c, n, &to);
    int64_t stride[SINTER_RANK_MAX], run = 1;
    for (uint32_t i = from.rank; i-- > 0; run *= from.dim[i]) stride[i] = run;
    return n->op == OP_transpose ? turned(c, n, &from, &to, stride) : cut_out(c, n, &from, &to, stride);
}

/* The value at the end of first inputs, where a concatenation lies on the way to it; 0: none does. */
static ir_value_id source_of(const chain *c, ir_value_id v)
{
    bool is_joined = false;
    for (uint32_t i = 0; i < LOOKS_MAX; i++) {
        const ir_node *n = mover_of(c, v);
        if (!n) return is_joined && !ir_is_const(c->g, v) ? v : 0;
        is_joined = is_joined || n->op == OP_concat;
        v = n->in[0];
    }
    return 0;
}

/* Do all that read it move it on? Then the chain is longer. */
static bool goes_on(chain *c, ir_value_id v)
{
    ir_node_id *reader;
    const uint32_t count = ir_readers(c->g, v, &c->a, &reader);
    for (uint32_t i = 0; i < count; i++)
        if (!mover_of(c, ir_node_at(c->g, reader[i])->out[0])) return false;
    return count > 0;
}

static ir_value_id gather_of(rewriter *r, chain *c, ir_value_id v)
{
    const ir_value y = *ir_value_at(c->g, v), *x = ir_value_at(c->g, c->source);
    grid from, to;
    const uint32_t bits = sinter_dtype_bits(x->dtype);
    if (!x->rank || !dim_is_const(c->g->dims, x->dim[x->rank - 1], &c->run) || bits < 8 ||
        c->run < RUN_LEAST * 8 / bits)
        return 0;
    if (!grid_of(c, c->source, &from) || !grid_of(c, v, &to) || to.count < UNITS_LEAST || goes_on(c, v)) return 0;
    const int32_t *unit = units_of(c, v);
    if (!unit || c->copies < COPIES_LEAST) return 0;
    int64_t *index = ARENA_NEW(&r->g->a, int64_t, (size_t)to.count);
    if (!index) return 0;
    for (int64_t i = 0; i < to.count; i++) index[i] = unit[i];
    const view list = { .dtype = SINTER_DTYPE_I64, .rank = 1, .dim = { to.count }, .stride = { 1 }, .data = index };
    const dim rows[] = { dim_const(r->g->dims, from.count), dim_const(r->g->dims, c->run) };
    const ir_value_id flat = build_shaped(r->b, c->source, rows, 2), at = build_const(r->b, NULL, &list);
    const ir_value_id z = flat && at ? build_gather(r->b, flat, at, &(attrs_gather){ .axis = 0 }) : 0;
    return z ? build_shaped(r->b, z, y.dim, y.rank) : 0;
}

static ir_value_id moves_to_gather(rewriter *r, const match *m)
{
    const ir_value_id v = rw_node(r, m->root)->out[0];
    chain c = { .g = r->g };
    if (rw_value(r, v)->is_output || !(c.source = source_of(&c, v))) return 0;
    arena_init(&c.a, r->s->e);
    const ir_value_id z = gather_of(r, &c, v);
    arena_deinit(&c.a);
    return z;
}

/* Of the other concatenations along the same axis the one of the most first parts, but not of all; NULL: none. */
static const ir_node *concat_of_first(const rewriter *r, const ir_node *n, const ir_value_id *part, uint32_t count)
{
    const ir_use_list *use = &r->g->use.at[part[0]];
    const ir_node *best = NULL;
    for (uint32_t i = 0; i < use->count && i < LOOKS_MAX; i++) {
        if (use->at[i] & 1) continue;
        const ir_node *p = ir_node_at(r->g, use->at[i] / 2);
        if (p->is_dead || p->op != OP_concat || p->parent != n->parent || p->count_in < 2 || p->count_in >= count ||
            (best && p->count_in <= best->count_in) ||
            ((const attrs_concat *)p->attrs)->axis != ((const attrs_concat *)n->attrs)->axis ||
            memcmp(p->in, part, p->count_in * sizeof *part) != 0)
            continue;
        best = p;
    }
    return best;
}

/* Where another concatenation has the first parts of this one, its result takes their place: one copy, not several. */
static ir_value_id concat_grows(rewriter *r, const match *m)
{
    const ir_node n = *rw_node(r, m->root);
    uint32_t count = n.count_in;
    ir_value_id *part = count > 2 ? ARENA_NEW(&r->g->a, ir_value_id, count) : NULL;
    if (!part) return 0;
    memcpy(part, n.in, count * sizeof *part);
    for (const ir_node *p; (p = concat_of_first(r, &n, part, count));) {
        part += p->count_in - 1;
        count -= p->count_in - 1;
        part[0] = p->out[0];
    }
    return count < n.count_in ? build_concat(r->b, part, count, n.attrs) : 0;
}

/* The x of concat(-x[n:], x[:n]) along its last axis; 0: v is something else. */
static ir_value_id halves_of(const rewriter *r, ir_value_id v, dim *half)
{
    const ir_node *n = rw_def(r, v, OP_concat), *minus = n && n->count_in == 2 ? rw_def(r, n->in[0], OP_neg) : NULL;
    const ir_node *part[2] = { n && n->count_in == 2 ? rw_def(r, n->in[1], OP_slice) : NULL,
                               minus ? rw_def(r, minus->in[0], OP_slice) : NULL };
    if (!part[0] || !part[1] || part[0]->in[0] != part[1]->in[0] || !rw_only(r, v)) return 0;
    const ir_value *x = rw_value(r, part[0]->in[0]);
    if (((const attrs_concat *)n->attrs)->axis + 1 != x->rank || x->rank >= SINTER_RANK_MAX) return 0;
    *half = rw_value(r, n->in[1])->dim[x->rank - 1];
    if (dim_mul(r->g->dims, *half, dim_const(r->g->dims, 2)) != x->dim[x->rank - 1]) return 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        const bool is_last = i + 1 == x->rank;
        for (uint32_t k = 0; k < 2; k++) {
            const attrs_slice *at = part[k]->attrs;
            const dim start = is_last && k ? *half : dim_const(r->g->dims, 0), size = is_last ? *half : x->dim[i];
            if ((dim)at->start.at[i] != start || (i < at->step.count && at->step.at[i] != 1) ||
                (dim)at->size.at[i] != size)
                return 0;
        }
    }
    return part[0]->in[0];
}

/* v with its last axis as two halves. */
static ir_value_id halved(rewriter *r, ir_value_id v, dim half)
{
    const ir_value x = *rw_value(r, v);
    dim d[SINTER_RANK_MAX];
    memcpy(d, x.dim, x.rank * sizeof *d);
    d[x.rank - 1] = dim_const(r->g->dims, 2);
    d[x.rank] = half;
    return build_shaped(r->b, v, d, x.rank + 1);
}

static const float signs_of_halves[2] = { -1, 1 };

static ir_value_id halves_turn(rewriter *r, const match *m)
{
    const ir_node n = *rw_node(r, m->root);
    for (uint32_t k = 0; k < 4; k++) {
        const ir_node *left = rw_def(r, n.in[k / 2], OP_mul), *right = rw_def(r, n.in[1 - k / 2], OP_mul);
        dim half = 0;
        const ir_value_id x = left && right ? halves_of(r, left->in[k % 2], &half) : 0;
        if (!x || !rw_is_float(r, x) || !rw_only(r, n.in[0]) || !rw_only(r, n.in[1])) continue;
        if ((right->in[0] != x && right->in[1] != x) || !rw_same_shape(r, x, n.out[0])) continue;
        ir_value_id s = left->in[1 - k % 2], c = right->in[right->in[0] == x];
        const ir_value whole = *rw_value(r, x), *sine = rw_value(r, s), *cosine = rw_value(r, c);
        const dim last = whole.dim[whole.rank - 1];
        if (!sine->rank || !cosine->rank || sine->dim[sine->rank - 1] != last || cosine->dim[cosine->rank - 1] != last)
            continue;
        const view signs = { .dtype = SINTER_DTYPE_F32,
                             .rank = 2,
                             .dim = { 2, 1 },
                             .stride = { 1, 1 },
                             .data = (void *)(uintptr_t)signs_of_halves };
        const ir_value_id y = halved(r, x, half),
                          other = build_part(r->b, y, whole.rank - 1, dim_const(r->g->dims, 1), -1,
                                             dim_const(r->g->dims, 2)),
                          sign = build_typed(r->b, build_const(r->b, NULL, &signs), whole.dtype);
        c = build_mul(r->b, y, halved(r, c, half));
        s = build_mul(r->b, halved(r, s, half), sign);
        s = build_mul(r->b, other, s);
        return build_shaped(r->b, build_add(r->b, c, s), whole.dim, whole.rank);
    }
    return 0;
}

/* The list that constant `v` repeats along all axes but `axis`; 0: it repeats none. */
static ir_value_id list_in_const(rewriter *r, ir_value_id v, const view *index, int64_t axis)
{
    const int64_t size = index->dim[axis], count = view_count(index);
    int64_t inner = 1;
    for (uint32_t k = (uint32_t)axis + 1; k < index->rank; k++) inner *= index->dim[k];
    int64_t *list = count ? ARENA_NEW(&r->g->a, int64_t, (size_t)size) : NULL;
    if (!list) return 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = i / inner % size, own = view_load_i64(index, i);
        if (i == at * inner) list[at] = own;
        if (list[at] != own) return 0;
    }
    const view one = { .dtype = SINTER_DTYPE_I64, .rank = 1, .dim = { size }, .stride = { 1 }, .data = list };
    return ir_look(r->g, v) ? build_const(r->b, NULL, &one) : 0;
}

/* The list that indices `v` repeat along all axes but `axis`; 0: they repeat none. */
static ir_value_id repeated_list(rewriter *r, ir_value_id v, int64_t axis)
{
    const ir_value y = *rw_value(r, v);
    const ir_node *n = rw_def(r, v, OP_expand);
    view index;
    if (axis < 0 || axis >= (int64_t)y.rank) return 0;
    if (ir_const_view(r->g, v, &index)) return list_in_const(r, v, &index, axis);
    if (!n) return 0;
    const ir_value *x = rw_value(r, n->in[0]);
    const int64_t added = (int64_t)y.rank - x->rank;
    if (axis < added) return 0;
    for (int64_t k = added; k < (int64_t)y.rank; k++) {
        const dim own = x->dim[k - added];
        if (k == axis ? own != y.dim[k] : !dim_is(r->g->dims, own, 1)) return 0;
    }
    return build_shaped(r->b, n->in[0], &y.dim[axis], 1);
}

static bool same_dims_but(const rewriter *r, ir_value_id a, ir_value_id b, int64_t axis)
{
    const ir_value *x = rw_value(r, a), *y = rw_value(r, b);
    if (x->rank != y->rank || x->rank < 2) return false;
    for (int64_t k = 0; k < (int64_t)x->rank; k++)
        if (k != axis && x->dim[k] != y->dim[k]) return false;
    return true;
}

/* Picks whole slices. */
static ir_value_id gather_repeated(rewriter *r, const match *m)
{
    const ir_node n = *rw_node(r, m->root);
    const int64_t axis = ((const attrs_gather_elements *)n.attrs)->axis;
    if (!same_dims_but(r, n.in[0], n.in[1], axis)) return 0;
    const ir_value_id list = repeated_list(r, n.in[1], axis);
    return list ? build_gather(r->b, n.in[0], list, &(attrs_gather){ .axis = axis }) : 0;
}

/* Updates whole slices of the first axis: graph networks sum over their edges so. */
static ir_value_id scatter_repeated(rewriter *r, const match *m)
{
    const ir_node n = *rw_node(r, m->root);
    const attrs_scatter_elements a = *(const attrs_scatter_elements *)n.attrs;
    if (a.axis != 0 || !same_dims_but(r, n.in[0], n.in[2], 0)) return 0;
    const ir_value_id list = repeated_list(r, n.in[1], 0);
    const dim rows[] = { rw_value(r, n.in[1])->dim[0], dim_const(r->g->dims, 1) };
    const ir_value_id tuples = list ? build_shaped(r->b, list, rows, 2) : 0;
    return tuples ? build_scatter_nd(r->b, n.in[0], tuples, n.in[2], &(attrs_scatter_nd){ .kind = a.kind }) : 0;
}

/* clang-format off */
const rule rules_move[] = {
    { "moves-concat",         ROOT(concat),                           moves_to_gather,        EXACT },
    { "moves-reshape",        MATCH(reshape, ANY(X)),                 moves_to_gather,        EXACT },
    { "moves-transpose",      MATCH(transpose, ANY(X)),               moves_to_gather,        EXACT },
    { "concat-grows",         ROOT(concat),                           concat_grows,           EXACT },
    { "halves",               ROOT(add),                              halves_turn,            EXACT },
    { "gather-repeated",      ROOT(gather_elements),                  gather_repeated,        EXACT },
    { "scatter-repeated",     ROOT(scatter_elements),                 scatter_repeated,       EXACT },
    { .name = NULL },
};
/* clang-format on */
