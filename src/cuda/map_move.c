/* SPDX-License-Identifier: Apache-2.0 */
/* map_move.c - plans of the ops that take elements from elsewhere, or make them of little: pad, gathers,
 * reverse_sequence, trilu, one_hot, range, eye_like. */
#include "cuda/map.h"

#include "cuda/device/map_args.h"

#include <inttypes.h>
#include <string.h>

static const char *plan_pad(const problem *p, map_plan *m)
{
    const attrs_pad *a = p->attrs;
    const uint32_t inner = map_inner(p);
    m->map = MAP_PAD;
    m->is_bits_out = true;
    m->bits_in = 3;
    map_define(m, "MODE", a->mode);
    if (p->out[0].rank != p->in[0].rank || a->begin.count != p->in[0].rank || a->end.count != p->in[0].rank)
        return "begin and end are not as long as the rank";
    if (p->in[0].rank && !a->begin.is_dynamic && !a->end.is_dynamic && a->begin.at[inner] == 0 && a->end.at[inner] == 0)
        m->inner_in = (uint8_t)inner;
    return NULL;
}

static const char *plan_gather(const problem *p, map_plan *m)
{
    const attrs_gather *a = p->attrs;
    const uint32_t inner = map_inner(p), count = p->in[1].rank, axis = (uint32_t)a->axis;
    m->map = MAP_GATHER;
    m->is_bits_out = true;
    m->bits_in = 1;
    if (a->axis < 0 || a->axis >= (int64_t)p->in[0].rank) return "the axis is not there";
    map_define(m, "AXIS", a->axis);
    map_define(m, "INDEX_RANK", count);
    if (inner < axis) m->inner_in = (uint8_t)inner;
    else if (inner >= axis + count && p->out[0].rank) m->inner_in = (uint8_t)(inner - count + 1);
    return NULL;
}

static const char *plan_gather_nd(const problem *p, map_plan *m)
{
    const attrs_gather_nd *a = p->attrs;
    const problem_operand *x = &p->in[1];
    const uint32_t inner = map_inner(p), lead = x->rank - 1;
    m->map = MAP_GATHER_ND;
    m->is_bits_out = true;
    m->bits_in = 1;
    if (x->rank == 0 || a->batch_dims < 0 || a->batch_dims > (int64_t)lead) return "the indices have no tuples";
    if (!problem_dim_is_static(x->dim[lead])) return "tuples of a length that varies";
    const int64_t tuple = x->dim[lead].max;
    if (tuple + a->batch_dims > (int64_t)p->in[0].rank) return "tuples of more numbers than there are axes";
    map_define(m, "LEAD", lead);
    map_define(m, "BATCH", a->batch_dims);
    map_define(m, "TUPLE", tuple);
    if (inner >= lead && p->out[0].rank > lead)
        m->inner_in = (uint8_t)(inner - lead + (uint32_t)(a->batch_dims + tuple));
    return NULL;
}

static const char *plan_make(const problem *p, map_plan *m, int64_t kind)
{
    m->map = MAP_MAKE;
    map_define(m, "KIND", kind);
    m->is_bits_out = kind < 2;
    if (kind == 0) {
        map_define(m, "UPPER", ((const attrs_trilu *)p->attrs)->upper != 0);
        m->bits_in = 1;
        if (p->out[0].rank < 2) return "no matrix";
    }
    if (kind == 1) {
        m->bits_in = 2;
        map_define(m, "AXIS", ((const attrs_one_hot *)p->attrs)->axis);
    }
    if (kind == 2) map_define(m, "IS_FLOAT", dtype_is_float(p->out[0].dtype));
    if (kind == 3 && p->out[0].rank != 2) return "no matrix";
    return NULL;
}

const char *map_plan_move(const problem *p, map_plan *m)
{
    const uint32_t inner = map_inner(p);
    switch (p->op) {
    case OP_pad: return plan_pad(p, m);
    case OP_gather: return plan_gather(p, m);
    case OP_gather_nd: return plan_gather_nd(p, m);
    case OP_gather_elements:
        m->map = MAP_GATHER_ELEMENTS;
        m->is_bits_out = true;
        m->bits_in = 1;
        map_define(m, "AXIS", ((const attrs_gather_elements *)p->attrs)->axis);
        return NULL;
    case OP_reverse_sequence: {
        const attrs_reverse_sequence *a = p->attrs;
        m->map = MAP_REVERSE;
        m->is_bits_out = true;
        m->bits_in = 1;
        map_define(m, "BATCH", a->batch_axis);
        map_define(m, "TIME", a->time_axis);
        if (inner != a->batch_axis && inner != a->time_axis) m->inner_in = (uint8_t)inner;
        return NULL;
    }
    case OP_trilu: return plan_make(p, m, 0);
    case OP_one_hot: return plan_make(p, m, 1);
    case OP_range: return plan_make(p, m, 2);
    case OP_eye_like: return plan_make(p, m, 3);
    default: return NULL;
    }
}

/* ---- when shapes are known ---- */

static sinter_status fill_pad(env *e, const attrs_pad *a, const view *in, const view *out, struct map_args *args)
{
    if (a->begin.count != in->rank || a->end.count != in->rank)
        return FAIL(e, INVALID_ARG, "pad: begin and end are not as long as the rank, %u", in->rank);
    for (uint32_t i = 0; i < in->rank; i++) {
        const int64_t begin = a->begin.at[i], end = a->end.at[i];
        int64_t size = 0;
        if (!i64_add(in->dim[i], begin, &size) || !i64_add(size, end, &size) || size != out->dim[i])
            return FAIL(e, INVALID_ARG,
                        "pad: axis %u of %" PRId64 " with %" PRId64 " and %" PRId64 " does not become %" PRId64, i,
                        in->dim[i], begin, end, out->dim[i]);
        const int64_t low = begin < 0 ? -begin : 0, left = in->dim[i] - low + (end < 0 ? end : 0);
        args->k[i] = begin > 0 ? begin : 0;
        args->k[MAP_AXES + i] = low;
        args->k[2 * MAP_AXES + i] = left < 0 ? 0 : left;
        if (left <= 0 && a->mode != pad_mode_constant && out->dim[i] > 0 && view_count(out) > 0)
            return FAIL(e, INVALID_ARG, "pad: axis %u is empty, so there is nothing to fill it from", i);
    }
    return SINTER_OK;
}

sinter_status map_fill_move(env *e, const problem *p, const map_plan *m, const void *attrs, const view *in,
                            const view *out, struct map_args *a)
{
    switch (m->map) {
    case MAP_PAD: return fill_pad(e, attrs, in, out, a);
    case MAP_GATHER_ND:
        if (in[1].dim[in[1].rank - 1] != p->in[1].dim[in[1].rank - 1].max)
            return FAIL(e, INVALID_ARG, "gather_nd: tuples of another length than the kernel was made for");
        return SINTER_OK;
    case MAP_MAKE:
        if (p->op == OP_trilu) {
            const attrs_trilu *own = attrs;
            const int64_t asked = own->k.count ? own->k.at[0] : 0;
            a->k[0] = asked > INT32_MAX ? INT32_MAX : asked < -INT32_MAX ? -INT32_MAX : asked;
        }
        if (p->op == OP_eye_like) {
            const int64_t asked = ((const attrs_eye_like *)attrs)->k;
            a->k[0] = asked > INT32_MAX ? INT32_MAX : asked < -INT32_MAX ? -INT32_MAX : asked;
        }
        return SINTER_OK;
    default: return SINTER_OK;
    }
}
