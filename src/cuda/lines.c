/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c - the rebuilt problem of lines.h, and views as it sees them. */
#include "cuda/lines.h"

#include "cuda/device/line_args.h"

#include <string.h>

/* An operand with all full axes; place: where the axis stands in memory, outermost lowest. */
typedef struct whole {
    const problem_operand *o;
    dim_range dim[LINES_FULL];
    uint8_t place[LINES_FULL];
    int8_t *own;
} whole;

enum { NO_PLACE = 0, WHOLES = 2 * LINES_OPERANDS };
static const dim_range one = { 1, 1, 1, 1 };

/* An axis that may also have none is not left out: a sum over nothing reads nothing. */
static bool is_one(dim_range d)
{
    return d.min == 1 && d.max == 1;
}

/* Those of group_norm; groups: into which its channels are told apart, 0 where they need not be, as where each channel
 * is a group. */
static const char *group_axes(const problem *p, bool by_channel, uint32_t *mask, int64_t *groups)
{
    const attrs_group_norm *a = p->attrs;
    const problem_operand *x = &p->in[0];
    REJECT_UNLESS(x->rank >= 2 && a->groups >= 0, "has no channels, or no groups");
    *mask = ((1u << x->rank) - 1) & ~3u;
    if (by_channel || a->groups == 0) return NULL;
    if (a->groups == 1) {
        *mask |= 2;
        return NULL;
    }
    REJECT_UNLESS(problem_dim_is_static(x->dim[1]) && x->dim[1].max > 0 && x->dim[1].max % a->groups == 0,
                  "the number of channels varies");
    *groups = a->groups;
    return NULL;
}

/* Axes of the input that are gone, in the problem's own numbers, as bits. */
static const char *gone_axes(const problem *p, bool by_channel, uint32_t *mask, int64_t *groups)
{
    static const char *const no_axis = "an axis that is not there";
    const uint32_t rank = p->in[0].rank;
    int64_t axis = 0;
    *groups = 0;
    switch (p->op) {
    case OP_reduce: {
        const attr_ints *axes = &((const attrs_reduce *)p->attrs)->axes;
        for (uint32_t i = 0; i < axes->count; i++) {
            REJECT_UNLESS(axes->at[i] >= 0 && axes->at[i] < (int64_t)rank, no_axis);
            *mask |= 1u << axes->at[i];
        }
        return NULL;
    }
    case OP_arg_reduce: axis = ((const attrs_arg_reduce *)p->attrs)->axis; break;
    case OP_softmax: axis = ((const attrs_softmax *)p->attrs)->axis; break;
    case OP_log_softmax: axis = ((const attrs_log_softmax *)p->attrs)->axis; break;
    case OP_lp_norm: axis = ((const attrs_lp_norm *)p->attrs)->axis; break;
    case OP_cumulate: axis = ((const attrs_cumulate *)p->attrs)->axis; break;
    case OP_top_k: axis = ((const attrs_top_k *)p->attrs)->axis; break;
    case OP_layer_norm: axis = ((const attrs_layer_norm *)p->attrs)->axis; break;
    case OP_rms_norm: axis = ((const attrs_rms_norm *)p->attrs)->axis; break;
    case OP_group_norm: return group_axes(p, by_channel, mask, groups);
    default: return "no op that works along lines";
    }
    REJECT_UNLESS(axis >= 0 && axis < (int64_t)rank, no_axis);
    const bool is_tail = p->op == OP_layer_norm || p->op == OP_rms_norm;
    *mask = is_tail ? ((1u << rank) - 1) & ~((1u << axis) - 1) : 1u << axis;
    return NULL;
}

/* Sees `o` with all full axes; its own axes are the last of the `count` axes in `space`. */
static const char *widen(const lines *l, const problem_operand *o, const uint8_t *space, uint32_t count, whole *w)
{
    w->o = o;
    for (uint32_t f = 0; f < LINES_FULL; f++) {
        w->dim[f] = one;
        w->place[f] = NO_PLACE;
        w->own[f] = -1;
    }
    if (o->dtype == SINTER_DTYPE_NONE) return NULL;
    REJECT_UNLESS(o->rank <= count, "an operand has more axes than the result");
    for (uint32_t f = 0; f < l->full; f++) {
        for (uint32_t t = 0; t < o->rank; t++) {
            if (space[count - o->rank + t] != l->source[f]) continue;
            w->own[f] = (int8_t)t;
            w->dim[f] = o->dim[t];
            if (l->part[f] && !is_one(o->dim[t])) {
                const int64_t size = l->part[f] == 2 ? l->members : o->dim[t].max / l->members;
                w->dim[f] = (dim_range){ size, size, size, size };
            }
            for (uint32_t k = 0; k < o->rank; k++)
                if (o->order[k] == t) w->place[f] = (uint8_t)(1 + 2 * k + (l->part[f] == 2));
        }
    }
    return NULL;
}

/* Do two neighbouring full axes lie in this operand as one axis would? */
static bool is_joint(const whole *w, uint32_t full, uint32_t a, uint32_t b)
{
    if (is_one(w->dim[a]) && is_one(w->dim[b])) return true;
    if (w->o->is_strided || w->dim[a].min < 2 || w->dim[b].min < 2 || w->place[a] >= w->place[b]) return false;
    for (uint32_t f = 0; f < full; f++)
        if (!is_one(w->dim[f]) && w->place[f] > w->place[a] && w->place[f] < w->place[b]) return false;
    return true;
}

/* Operands have the input's sizes, or one. Sizes that vary may be either. */
static bool is_within(const whole *w, const whole *x, uint32_t full)
{
    for (uint32_t f = 0; f < full; f++) {
        const dim_range a = w->dim[f], b = x->dim[f];
        if (!is_one(a) && problem_dim_is_static(a) && problem_dim_is_static(b) && a.max != b.max) return false;
        if (!is_one(a) && is_one(b)) return false;
    }
    return true;
}

static int64_t product(int64_t a, int64_t b)
{
    int64_t c;
    return i64_mul(a, b, &c) ? c : INT64_MAX;
}

/* The operand in merged axes. */
static void rebuild(const lines *l, const whole *w, problem_operand *to)
{
    *to = *w->o;
    if (to->dtype == SINTER_DTYPE_NONE) return;
    uint8_t place[SINTER_RANK_MAX];
    to->rank = (uint8_t)l->rank;
    for (uint32_t m = 0; m < l->rank; m++) {
        to->dim[m] = one;
        place[m] = NO_PLACE;
    }
    for (uint32_t f = 0; f < l->full; f++) {
        if (l->merged[f] < 0) continue;
        const uint32_t m = (uint32_t)l->merged[f];
        const dim_range d = w->dim[f];
        to->dim[m] =
            (dim_range){ product(to->dim[m].min, d.min), product(to->dim[m].max, d.max), product(to->dim[m].opt, d.opt),
                         product(to->dim[m].divisor, d.min == d.max ? d.max > 0 ? d.max : 1 : d.divisor) };
        if (!is_one(d)) place[m] = w->place[f];
    }
    uint32_t count = 0;
    for (uint32_t at = NO_PLACE; at <= 2 * SINTER_RANK_MAX + 1; at++)
        for (uint32_t m = 0; m < l->rank; m++)
            if (place[m] == at) to->order[count++] = (uint8_t)m;
}

static uint32_t program_append(lines *l, expr_instr instr)
{
    expr *x = (expr *)(void *)l->program;
    x->at[x->count++] = instr;
    return x->count - 1;
}

static uint32_t append_operand(lines *l, const problem *p, uint32_t input, sinter_dtype carrier)
{
    const sinter_dtype dtype = p->in[input].dtype;
    const uint32_t at =
        program_append(l, (expr_instr){ .op = EXPR_LOAD, .dtype = (uint8_t)dtype, .operand = (uint16_t)input });
    if (dtype == carrier) return at;
    return program_append(l, (expr_instr){ .op = OP_cast, .dtype = (uint8_t)carrier, .arg = { (uint16_t)at } });
}

static bool has_in(const problem *p, uint32_t i)
{
    return i < p->count_anchor && p->in[i].dtype != SINTER_DTYPE_NONE;
}

/* acc * scale + bias, and then what the problem's own epilogue does with it. */
static const char *program_of(const problem *p, lines *l)
{
    l->p.epilogue = p->epilogue;
    const bool is_norm = p->op == OP_layer_norm || p->op == OP_rms_norm || p->op == OP_group_norm;
    if (!is_norm || (!has_in(p, 1) && !has_in(p, 2))) return NULL;
    REJECT_UNLESS((p->epilogue ? p->epilogue->count : 1) + 8 <= EXPR_MAX, "an epilogue that is too long");
    const sinter_dtype carrier = p->in[0].dtype == SINTER_DTYPE_F64 ? SINTER_DTYPE_F64 : SINTER_DTYPE_F32;
    uint32_t top = program_append(l, (expr_instr){ .op = EXPR_ACC, .dtype = (uint8_t)carrier });
    for (uint32_t i = 1; i < 3; i++) {
        if (!has_in(p, i) || (i == 2 && p->op == OP_rms_norm)) continue;
        const uint32_t v = append_operand(l, p, i, carrier);
        top = program_append(l, (expr_instr){ .op = i == 1 ? OP_mul : OP_add,
                                              .dtype = (uint8_t)carrier,
                                              .arg = { (uint16_t)top, (uint16_t)v } });
    }
    if (!p->epilogue) {
        (void)program_append(
            l, (expr_instr){ .op = EXPR_STORE, .dtype = (uint8_t)p->out[0].dtype, .arg = { (uint16_t)top } });
    } else {
        uint16_t became[EXPR_MAX];
        for (uint32_t i = 0; i < p->epilogue->count; i++) {
            expr_instr n = p->epilogue->at[i];
            if (n.op == EXPR_ACC) {
                became[i] = (uint16_t)top;
                continue;
            }
            for (uint32_t k = 0; k < 3; k++)
                if (n.arg[k] < i) n.arg[k] = became[n.arg[k]];
            became[i] = (uint16_t)program_append(l, n);
        }
    }
    l->p.epilogue = (const expr *)(const void *)l->program;
    return NULL;
}

static bool loads(const expr *x, uint32_t input)
{
    for (uint32_t i = 0; x && i < x->count; i++)
        if (x->at[i].op == EXPR_LOAD && x->at[i].operand == input) return true;
    return false;
}

/* The axes of the problem that the result has. */
static uint32_t result_space(const problem *p, uint32_t mask, uint8_t *space)
{
    bool keeps = true;
    if (p->op == OP_reduce) keeps = ((const attrs_reduce *)p->attrs)->keep != 0;
    if (p->op == OP_arg_reduce) keeps = ((const attrs_arg_reduce *)p->attrs)->keep != 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->in[0].rank; i++)
        if (keeps || !(mask >> i & 1u)) space[count++] = (uint8_t)i;
    return count;
}

static const char *see_operands(const problem *p, lines *l, uint32_t mask, whole *w)
{
    uint8_t in_space[SINTER_RANK_MAX], out_space[SINTER_RANK_MAX];
    for (uint8_t i = 0; i < SINTER_RANK_MAX; i++) in_space[i] = i;
    const uint32_t in_count = p->in[0].rank, out_count = result_space(p, mask, out_space);
    const bool is_reduced = p->op == OP_reduce || p->op == OP_arg_reduce;
    l->is_same_space = !is_reduced;
    for (uint32_t i = 0; i < p->count_in; i++) {
        w[i].own = l->own_in[i];
        const bool in_epilogue = loads(p->epilogue, i), in_prologue = loads(p->prologue, i);
        const bool is_channels = p->op == OP_group_norm && (i == 1 || i == 2);
        REJECT_UNLESS(!(is_reduced && in_epilogue && (i < p->count_anchor || in_prologue)),
                      "an operand of both the input's and the result's shape");
        const char *why;
        if (is_channels && i < p->count_anchor) {
            const uint8_t channels[1] = { 1 };
            REJECT_UNLESS(!in_epilogue, "an epilogue that reads scale or bias");
            why = widen(l, &p->in[i], channels, 1, &w[i]);
        } else if (is_reduced && in_epilogue) {
            why = widen(l, &p->in[i], out_space, out_count, &w[i]);
        } else {
            why = widen(l, &p->in[i], in_space, in_count, &w[i]);
        }
        if (why) return why;
        REJECT_UNLESS(is_within(&w[i], &w[0], l->full), "an operand that is larger than the input");
    }
    for (uint32_t i = 0; i < p->count_out; i++) {
        whole *to = &w[p->count_in + i];
        to->own = l->own_out[i];
        const char *why = widen(l, &p->out[i], out_space, out_count, to);
        if (why) return why;
    }
    return NULL;
}

const char *lines_of(const problem *p, bool by_channel, lines *l)
{
    memset(l, 0, sizeof *l);
    uint32_t mask = 0;
    int64_t groups = 0;
    REJECT_UNLESS(p->count_in >= 1 && p->count_out >= 1 && p->count_in <= LINES_OPERANDS &&
                      p->count_out <= LINES_OPERANDS,
                  "too many operands");
    const char *why = gone_axes(p, by_channel, &mask, &groups);
    if (why) return why;
    const problem_operand *x = &p->in[0];
    for (uint32_t i = 0; i < x->rank; i++) {
        const bool is_split = groups && i == 1;
        for (uint8_t part = is_split ? 1 : 0; part <= (is_split ? 2 : 0); part++) {
            l->source[l->full] = (uint8_t)i;
            l->part[l->full++] = part;
        }
    }
    l->members = groups ? x->dim[1].max / groups : 1;
    whole w[WHOLES];
    why = see_operands(p, l, mask, w);
    if (why) return why;
    const uint32_t count = p->count_in + p->count_out;
    int last = -1;
    for (uint32_t f = 0; f < l->full; f++) {
        const bool is_gone = mask >> l->source[f] & 1u || l->part[f] == 2;
        bool is_dropped = true, is_joined = last >= 0;
        for (uint32_t i = 0; i < count; i++) is_dropped = is_dropped && is_one(w[i].dim[f]);
        l->merged[f] = -1;
        if (is_dropped) continue;
        if (is_joined && (l->gone_mask >> l->merged[last] & 1u) != (is_gone ? 1u : 0u)) is_joined = false;
        for (uint32_t i = 0; is_joined && i < count; i++) is_joined = is_joint(&w[i], l->full, (uint32_t)last, f);
        REJECT_UNLESS(is_joined || l->rank < SINTER_RANK_MAX, "too many axes");
        if (!is_joined) l->gone_mask |= is_gone ? 1u << l->rank : 0;
        l->merged[f] = (int8_t)(is_joined ? l->merged[last] : (int)l->rank++);
        last = (int)f;
    }
    /* There is something to work along, if of one element. */
    if (!l->gone_mask) {
        REJECT_UNLESS(l->rank < SINTER_RANK_MAX, "too many axes");
        l->gone_mask = 1u << l->rank++;
    }
    l->p = *p;
    l->p.in = l->in;
    l->p.out = l->out;
    for (uint32_t i = 0; i < p->count_in; i++) rebuild(l, &w[i], &l->in[i]);
    for (uint32_t i = 0; i < p->count_out; i++) rebuild(l, &w[p->count_in + i], &l->out[i]);
    for (uint32_t k = 0; k < l->rank; k++) {
        const uint8_t m = l->in[0].order[k];
        if (l->gone_mask >> m & 1u) l->gone[l->gone_count++] = m;
        else l->kept[l->kept_count++] = m;
        if (!is_one(l->in[0].dim[m]) || !k) l->inner = m;
    }
    /* Where nothing but single elements is gone, the innermost kept axis leads. */
    if (is_one(l->in[0].dim[l->inner]) && l->kept_count) l->inner = l->kept[l->kept_count - 1];
    l->is_rows = l->gone_mask >> l->inner & 1u;
    return program_of(p, l);
}

void lines_view(const lines *l, bool is_out, uint32_t index, const view *v, view *to)
{
    const int8_t *own = is_out ? l->own_out[index] : l->own_in[index];
    *to = *v;
    if (v->dtype == SINTER_DTYPE_NONE) return;
    to->rank = l->rank;
    for (uint32_t m = 0; m < l->rank; m++) {
        to->dim[m] = 1;
        to->stride[m] = 0;
    }
    for (uint32_t f = 0; f < l->full; f++) {
        if (l->merged[f] < 0 || own[f] < 0) continue;
        const uint32_t m = (uint32_t)l->merged[f];
        int64_t size = v->dim[own[f]], stride = v->stride[own[f]];
        if (l->part[f] && size != 1) {
            if (l->part[f] == 1) {
                size /= l->members;
                stride *= l->members;
            } else {
                size = l->members;
            }
        }
        if (size != 1) to->stride[m] = stride;
        to->dim[m] *= size;
    }
}

int lines_type_of(sinter_dtype dtype)
{
    static const int types[SINTER_DTYPE_COUNT] = {
        [SINTER_DTYPE_F32] = 1 + LINE_F32,   [SINTER_DTYPE_F64] = 1 + LINE_F64, [SINTER_DTYPE_F16] = 1 + LINE_F16,
        [SINTER_DTYPE_BF16] = 1 + LINE_BF16, [SINTER_DTYPE_I8] = 1 + LINE_I8,   [SINTER_DTYPE_U8] = 1 + LINE_U8,
        [SINTER_DTYPE_I16] = 1 + LINE_I16,   [SINTER_DTYPE_U16] = 1 + LINE_U16, [SINTER_DTYPE_I32] = 1 + LINE_I32,
        [SINTER_DTYPE_U32] = 1 + LINE_U32,   [SINTER_DTYPE_I64] = 1 + LINE_I64, [SINTER_DTYPE_U64] = 1 + LINE_U64,
        [SINTER_DTYPE_BOOL] = 1 + LINE_BOOL,
    };
    return types[dtype] - 1;
}
