/* SPDX-License-Identifier: Apache-2.0 */
/* contract.c - the axes of each contraction: which operand steps along which, and where its results go. */
#include "cuda/contract.h"

#include "core/dim_range.h"
#include "cuda/launch.h"
#include "ops/einsum.h"

#include <string.h>

static bool is_one(dim_range d)
{
    return d.min == 1 && d.max == 1;
}

static dim_range fixed(int64_t n)
{
    return (dim_range){ n, n, n, n };
}

/* Stands for sizes and strides without a bound: far too much, and products with attributes do not overflow. */
static const int64_t unbounded = (int64_t)1 << 40;

void contract_views(const problem *p, contract_at at, view in[4], view *out)
{
    for (uint32_t i = 0; i < 5; i++) {
        view *v = i < 4 ? &in[i] : out;
        *v = (view){ .dtype = SINTER_DTYPE_NONE };
        if (i < 4 && i >= p->count_in) continue;
        const problem_operand *o = i < 4 ? &p->in[i] : &p->out[0];
        v->dtype = o->dtype;
        v->rank = o->rank;
        int64_t stride = 1;
        for (uint32_t k = o->rank; k-- > 0;) {
            const uint32_t axis = o->order[k];
            v->dim[axis] = i64_min(at == CONTRACT_OPT ? o->dim[axis].opt : o->dim[axis].max, unbounded);
            v->stride[axis] = stride;
            if (!i64_mul(stride, i64_max(v->dim[axis], 1), &stride) || stride > unbounded) stride = unbounded;
        }
    }
}

int64_t contract_size(const contract *c, contract_role role)
{
    int64_t size = 1;
    for (uint32_t i = 0; i < c->count[role]; i++)
        if (!i64_mul(size, c->axis[role][i].size, &size)) return INT64_MAX;
    return size;
}

int64_t contract_offset(const contract *c, contract_role role, uint32_t input, bool only_own, int64_t at,
                        int64_t index[CONTRACT_AXES])
{
    int64_t offset = 0;
    for (uint32_t i = c->count[role]; i-- > 0;) {
        const contract_axis *a = &c->axis[role][i];
        index[i] = 0;
        if (only_own && !a->has[input]) continue;
        index[i] = a->size > 0 ? at % a->size : 0;
        at = a->size > 0 ? at / a->size : 0;
        offset += index[i] * a->stride[input];
    }
    return offset;
}

static contract_axis *axis_add(contract *c, contract_role role, int64_t size, dim_range range, int out)
{
    if (c->count[role] == CONTRACT_AXES) {
        c->is_full = true;
        return &c->axis[role][0];
    }
    contract_axis *a = &c->axis[role][c->count[role]++];
    *a = (contract_axis){
        .size = size, .range = range, .of = { -1, -1 }, .axis0 = -1, .out = (int8_t)out, .out_step = 1
    };
    return a;
}

/* Operand i steps along axis `axis` of its view, `step` elements of it at a time. */
static void axis_steps(contract_axis *a, uint32_t i, const view *v, uint32_t axis, int64_t step)
{
    a->has[i] = true;
    a->of[i] = step == 1 ? (int8_t)axis : -1;
    const bool is_repeated = v->dim[axis] == 1 && a->size > 1;
    a->stride[i] = is_repeated ? 0 : v->stride[axis] * step;
    if (i) return;
    a->axis0 = (int8_t)axis;
    a->step0 = is_repeated ? 0 : step;
}

static int64_t zero_stride(const view *z, uint32_t rank, uint32_t axis, bool is_line)
{
    if (z->dtype == SINTER_DTYPE_NONE || !z->rank) return 0;
    if (z->rank == 1 && rank != 1) return is_line && z->dim[0] > 1 ? z->stride[0] : 0;
    if (z->rank == 1) return is_line && z->dim[0] > 1 ? z->stride[0] : 0;
    return z->dim[axis] > 1 ? z->stride[axis] : 0;
}

/* ---- matrix products ---- */

static const char *matmul_of(const problem *p, const void *attrs, const view *in, const view *out, contract *c)
{
    const bool is_integer = p->op == OP_matmul_integer;
    const attrs_matmul *m = attrs;
    const view *a = &in[0], *b = &in[1];
    const uint32_t ta = !is_integer && m->trans_a && a->rank > 1, tb = !is_integer && m->trans_b && b->rank > 1;
    const uint32_t batch_a = a->rank > 2 ? a->rank - 2 : 0, batch_b = b->rank > 2 ? b->rank - 2 : 0;
    const uint32_t batch = batch_a > batch_b ? batch_a : batch_b;
    const view none = { .dtype = SINTER_DTYPE_NONE };
    const view *za = is_integer && p->count_anchor > 2 ? &in[2] : &none,
               *zb = is_integer && p->count_anchor > 3 ? &in[3] : &none;
    const uint32_t depth_a = a->rank - 1 - ta, depth_b = b->rank > 1 ? b->rank - 2 + tb : 0;
    if (za->rank > 1 && !is_one(p->in[2].dim[depth_a])) return "zero points vary along the sum";
    if (zb->rank > 1 && !is_one(p->in[3].dim[depth_b])) return "zero points vary along the sum";
    for (uint32_t i = 0; i < batch; i++) {
        const bool in_a = i + batch_a >= batch && !is_one(p->in[0].dim[i + batch_a - batch]);
        const bool in_b = i + batch_b >= batch && !is_one(p->in[1].dim[i + batch_b - batch]);
        if (!in_a && !in_b) continue;
        const contract_role role = in_a && in_b ? CONTRACT_BATCH : in_a ? CONTRACT_LEFT : CONTRACT_RIGHT;
        contract_axis *x = axis_add(c, role, out->dim[i], p->out[0].dim[i], (int)i);
        if (in_a) {
            axis_steps(x, 0, a, i + batch_a - batch, 1);
            if (za->rank > 1) x->zero[0] = zero_stride(za, a->rank, i + batch_a - batch, false);
        }
        if (in_b) {
            axis_steps(x, 1, b, i + batch_b - batch, 1);
            if (zb->rank > 1) x->zero[1] = zero_stride(zb, b->rank, i + batch_b - batch, false);
        }
    }
    if (a->rank > 1) {
        const uint32_t axis = a->rank - 2 + ta;
        contract_axis *x = axis_add(c, CONTRACT_LEFT, a->dim[axis], p->in[0].dim[axis], (int)batch);
        axis_steps(x, 0, a, axis, 1);
        x->zero[0] = zero_stride(za, a->rank, axis, true);
    }
    if (b->rank > 1) {
        const uint32_t axis = b->rank - 1 - tb;
        contract_axis *x =
            axis_add(c, CONTRACT_RIGHT, b->dim[axis], p->in[1].dim[axis], (int)batch + (a->rank > 1 ? 1 : 0));
        axis_steps(x, 1, b, axis, 1);
        x->zero[1] = zero_stride(zb, b->rank, axis, true);
    }
    contract_axis *k = axis_add(c, CONTRACT_DEPTH, a->dim[depth_a], p->in[0].dim[depth_a], -1);
    axis_steps(k, 0, a, depth_a, 1);
    axis_steps(k, 1, b, depth_b, 1);
    return NULL;
}

/* ---- convolutions ---- */

/* A filter of one tap that nothing pads: positions are those of the image, stepped. */
static bool is_plain(const problem *p, const product_slide *s, uint32_t spatial)
{
    for (uint32_t i = 0; i < spatial; i++)
        if (!is_one(p->in[1].dim[2 + i]) || s->pad->at[i] || s->pad->at[spatial + i]) return false;
    return true;
}

static const char *conv_of(const problem *p, const void *attrs, const view *in, const view *out, contract *c)
{
    product d;
    const char *why = product_of(p, &d);
    if (why) return why;
    REJECT_UNLESS(problem_dim_is_static(p->in[0].dim[1]) && problem_dim_is_static(p->in[1].dim[0]),
                  "channels are not fixed");
    const product_slide s = product_slide_of(p->op, attrs);
    const view *x = &in[0], *w = &in[1];
    const uint32_t spatial = d.spatial;
    const int64_t channels = w->dim[1], filters = w->dim[0] / s.groups;
    const bool has_zero = p->op == OP_conv_integer && p->count_anchor > 3 && in[3].rank && in[3].dim[0] > 1;
    const int64_t zero = has_zero ? in[3].stride[0] : 0;
    c->is_window = !is_plain(p, &s, spatial);
    c->spatial = spatial;
    if (s.groups > 1) {
        contract_axis *g = axis_add(c, CONTRACT_BATCH, s.groups, fixed(s.groups), 1);
        axis_steps(g, 0, x, 1, channels);
        axis_steps(g, 1, w, 0, filters);
        g->out_step = filters;
        g->zero[1] = filters * zero;
    }
    axis_steps(axis_add(c, CONTRACT_LEFT, x->dim[0], p->in[0].dim[0], 0), 0, x, 0, 1);
    for (uint32_t i = 0; i < spatial; i++) {
        contract_axis *o = axis_add(c, CONTRACT_LEFT, out->dim[2 + i], p->out[0].dim[2 + i], (int)(2 + i));
        axis_steps(o, 0, x, 2 + i, s.stride->at[i]);
        o->step0 = s.stride->at[i];
        if (x->dim[2 + i] == 1) o->stride[0] = x->stride[2 + i] * s.stride->at[i];
        if (c->is_window) o->of[0] = -1;
        c->in[i] = x->dim[2 + i];
        c->out[i] = out->dim[2 + i];
        c->in_stride[i] = x->stride[2 + i];
        c->line_step[i] = s.stride->at[i];
        c->tap_step[i] = s.dilation->at[i];
        c->start[i][0] = -s.pad->at[i];
        if (!c->is_window) continue;
        contract_axis *k = axis_add(c, CONTRACT_DEPTH, w->dim[2 + i], p->in[1].dim[2 + i], -1);
        axis_steps(k, 1, w, 2 + i, 1);
        k->has[0] = true;
        k->axis0 = (int8_t)(2 + i);
        k->step0 = s.dilation->at[i];
        k->stride[0] = x->stride[2 + i] * s.dilation->at[i];
    }
    contract_axis *n = axis_add(c, CONTRACT_RIGHT, filters, fixed(filters), 1);
    axis_steps(n, 1, w, 0, 1);
    n->zero[1] = zero;
    contract_axis *k = axis_add(c, CONTRACT_DEPTH, channels, p->in[1].dim[1], -1);
    axis_steps(k, 0, x, 1, 1);
    axis_steps(k, 1, w, 1, 1);
    if (channels == 1) k->stride[0] = 0;
    return NULL;
}

/* Result o = phase + stride * q sums the taps k for which (o + pad - k * dilation) is a multiple of the stride. */
static const char *conv_transpose_of(const problem *p, const void *attrs, const view *in, const view *out, contract *c)
{
    product d;
    const char *why = product_of(p, &d);
    if (why) return why;
    REJECT_UNLESS(d.is_w_fixed, "the filter is no constant of fixed size");
    const product_slide s = product_slide_of(p->op, attrs);
    const problem_operand *f = &p->in[1];
    const uint32_t spatial = d.spatial;
    const view *x = &in[0], *w = &in[1];
    const int64_t channels = f->dim[0].max / s.groups, filters = f->dim[1].max;
    c->is_window = true;
    c->spatial = c->phases = spatial;
    for (uint32_t i = 0; i < spatial; i++) {
        const int64_t stride = s.stride->at[i], taps = f->dim[2 + i].max;
        if (stride < 1 || stride > CONTRACT_PHASES) return "a stride of more than 8";
        contract_axis *phase = axis_add(c, CONTRACT_BATCH, stride, fixed(stride), (int)(2 + i));
        phase->has[1] = true;
        c->taps[i] = taps;
        for (int64_t q = 0; q < stride; q++) {
            const product_phase phase_q = product_phase_at(&s, i, taps, q);
            c->tap_first[i][q] = phase_q.count ? phase_q.first : -1;
            c->start[i][q] = phase_q.start;
            c->tap_by[i] = phase_q.by;
            c->tap_step[i] = -phase_q.back;
        }
    }
    if (s.groups > 1) {
        contract_axis *g = axis_add(c, CONTRACT_BATCH, s.groups, fixed(s.groups), 1);
        axis_steps(g, 0, x, 1, channels);
        axis_steps(g, 1, w, 0, channels);
        g->out_step = filters;
    }
    axis_steps(axis_add(c, CONTRACT_LEFT, x->dim[0], p->in[0].dim[0], 0), 0, x, 0, 1);
    for (uint32_t i = 0; i < spatial; i++) {
        const int64_t stride = s.stride->at[i];
        const dim_range whole = p->out[0].dim[2 + i];
        const int64_t size = (out->dim[2 + i] + stride - 1) / stride;
        contract_axis *o =
            axis_add(c, CONTRACT_LEFT, size, stride == 1 ? whole : (dim_range){ 0, whole.max, size, 1 }, (int)(2 + i));
        o->has[0] = true;
        o->stride[0] = x->stride[2 + i];
        o->out_step = stride;
        c->in[i] = x->dim[2 + i];
        c->out[i] = out->dim[2 + i];
        c->in_stride[i] = x->stride[2 + i];
        c->line_step[i] = 1;
        const int64_t steps = (f->dim[2 + i].max + c->tap_by[i] - 1) / c->tap_by[i];
        contract_axis *k = axis_add(c, CONTRACT_DEPTH, steps, fixed(steps), -1);
        k->has[0] = k->has[1] = true;
        k->stride[0] = x->stride[2 + i] * c->tap_step[i];
    }
    axis_steps(axis_add(c, CONTRACT_RIGHT, filters, f->dim[1], 1), 1, w, 1, 1);
    contract_axis *k = axis_add(c, CONTRACT_DEPTH, channels, fixed(channels), -1);
    axis_steps(k, 0, x, 1, 1);
    axis_steps(k, 1, w, 0, 1);
    return NULL;
}

/* ---- einsum ---- */

/* A label that occurs twice in an operand walks its diagonal. */
static bool label_of(const einsum_term *t, const problem_operand *o, const view *v, uint8_t label, uint32_t i,
                     contract_axis *a)
{
    uint32_t found = 0;
    for (uint32_t k = 0; k < t->count; k++) {
        if (t->label[k] != label || is_one(o->dim[k])) continue;
        found++;
        a->has[i] = true;
        a->of[i] = found == 1 ? (int8_t)k : -1;
        if (v->dim[k] > 1) a->stride[i] += v->stride[k];
        if (v->dim[k] != 1 || a->size < 0) {
            a->size = v->dim[k];
            a->range = o->dim[k];
        }
    }
    return found > 0;
}

static const char *einsum_of(const problem *p, const void *attrs, const view *in, const view *out, contract *c)
{
    (void)out;
    if (p->count_in != 2) return "an einsum of another number of operands than two";
    env e;
    einsum x;
    env_init(&e, NULL, NULL);
    const uint32_t rank[2] = { p->in[0].rank, p->in[1].rank };
    if (einsum_parse(&e, ((const attrs_einsum *)attrs)->equation, 2, rank, &x) != SINTER_OK)
        return "the equation cannot be read";
    for (uint32_t label = 0; label < EINSUM_LABELS; label++) {
        contract_axis a = { .size = -1, .of = { -1, -1 }, .out = -1, .out_step = 1 };
        const bool in_a = label_of(&x.in[0], &p->in[0], &in[0], (uint8_t)label, 0, &a);
        const bool in_b = label_of(&x.in[1], &p->in[1], &in[1], (uint8_t)label, 1, &a);
        if (!in_a && !in_b) continue;
        for (uint32_t k = 0; k < x.out.count; k++)
            if (x.out.label[k] == label) a.out = (int8_t)k;
        const contract_role role = a.out < 0      ? CONTRACT_DEPTH
                                   : in_a && in_b ? CONTRACT_BATCH
                                   : in_a         ? CONTRACT_LEFT
                                                  : CONTRACT_RIGHT;
        *axis_add(c, role, 0, fixed(0), -1) = a;
    }
    return NULL;
}

/* ---- common ---- */

/* The innermost axis of more than one element, by what the problem knows; -1: none, or its elements are not adjacent.
 */
static int inner_of(const problem_operand *o)
{
    for (uint32_t k = o->rank; k-- > 0;)
        if (!is_one(o->dim[o->order[k]])) return o->is_gapped ? -1 : o->order[k];
    return -1;
}

static void move_last(contract *c, contract_role role, uint32_t i)
{
    contract_axis *a = c->axis[role];
    const contract_axis moved = a[i];
    memmove(a + i, a + i + 1, (c->count[role] - i - 1) * sizeof *a);
    a[c->count[role] - 1] = moved;
}

static void order_axes(const problem *p, contract *c)
{
    c->inner = inner_of(&p->out[0]);
    for (contract_role role = CONTRACT_LEFT; role <= CONTRACT_RIGHT; role++) {
        const bool is_fixed = role == CONTRACT_LEFT && c->is_window;
        const uint32_t input = role == CONTRACT_RIGHT;
        const int adjacent = inner_of(&p->in[input]);
        for (uint32_t i = 0; !is_fixed && adjacent >= 0 && i < c->count[role]; i++)
            if (c->axis[role][i].of[input] == adjacent) {
                move_last(c, role, i);
                break;
            }
        for (uint32_t i = 0; c->inner >= 0 && i < c->count[role]; i++) {
            if (c->axis[role][i].out != c->inner) continue;
            c->is_swapped = role == CONTRACT_LEFT;
            if (!is_fixed) move_last(c, role, i);
            break;
        }
    }
    for (uint32_t input = 2; !c->is_window && input-- > 0;) {
        const int adjacent = inner_of(&p->in[input]);
        for (uint32_t i = 0; adjacent >= 0 && i < c->count[CONTRACT_DEPTH]; i++)
            if (c->axis[CONTRACT_DEPTH][i].of[input] == adjacent) {
                move_last(c, CONTRACT_DEPTH, i);
                break;
            }
    }
}

const char *contract_of(const problem *p, const void *attrs, const view *in, const view *out, contract *c)
{
    return p->weight ? "its weight is packed" : contract_with_codes(p, attrs, in, out, c);
}

const char *contract_with_codes(const problem *p, const void *attrs, const view *in, const view *out, contract *c)
{
    memset(c, 0, sizeof *c);
    c->inner = -1;
    if (p->count_anchor < 2) return "has one operand";
    /* Constants of fixed sizes may be packed: their sizes are those of the problem. */
    view own[4] = { { .dtype = SINTER_DTYPE_NONE }, { .dtype = SINTER_DTYPE_NONE } };
    for (uint32_t i = 0; i < 4; i++) own[i].dtype = SINTER_DTYPE_NONE;
    for (uint32_t i = 0; i < 4 && i < p->count_anchor; i++) {
        own[i] = in[i];
        for (uint32_t k = 0; p->in[i].is_const && k < p->in[i].rank; k++)
            if (problem_dim_is_static(p->in[i].dim[k])) own[i].dim[k] = p->in[i].dim[k].max;
    }
    const char *why = "no contraction";
    switch (p->op) {
    case OP_matmul:
    case OP_matmul_integer: why = matmul_of(p, attrs, own, out, c); break;
    case OP_conv:
    case OP_conv_integer: why = conv_of(p, attrs, own, out, c); break;
    case OP_conv_transpose: why = conv_transpose_of(p, attrs, own, out, c); break;
    case OP_einsum: why = einsum_of(p, attrs, own, out, c); break;
    default: break;
    }
    if (why) return why;
    if (c->is_full) return "has too many axes";
    for (contract_role role = CONTRACT_BATCH; role < CONTRACT_ROLES; role++)
        if (!c->count[role]) (void)axis_add(c, role, 1, fixed(1), -1);
    order_axes(p, c);
    return NULL;
}

/* ---- for kernels ---- */

static void text_axes(text *to, const char *name, const contract *c, contract_role role, bool is_out)
{
    const contract_axis *a = c->axis[role];
    text_printf(to, "constexpr i32 %s[%u] = {", name, c->count[role]);
    for (uint32_t i = 0; i < c->count[role]; i++)
        text_printf(to, "%s %d", i ? "," : "", is_out ? a[i].out : a[i].axis0);
    text_printf(to, " };\n");
}

void contract_text_outs(text *to, const contract *c, contract_role rows, contract_role cols)
{
    text_axes(to, "batch_out", c, CONTRACT_BATCH, true);
    text_axes(to, "row_out", c, rows, true);
    text_axes(to, "col_out", c, cols, true);
}

void contract_text_prologue(text *to, const contract *c, contract_role role)
{
    text_axes(to, "pro_batch_axis", c, CONTRACT_BATCH, false);
    text_axes(to, "pro_line_axis", c, role, false);
    text_axes(to, "pro_depth_axis", c, CONTRACT_DEPTH, false);
}

void contract_prologue(const contract *c, contract_role role, struct simt_prologue *to)
{
    for (uint32_t i = 0; i < c->count[CONTRACT_BATCH]; i++) to->batch[i] = (small)c->axis[CONTRACT_BATCH][i].step0;
    for (uint32_t i = 0; i < c->count[role]; i++) to->line[i] = (small)c->axis[role][i].step0;
    for (uint32_t i = 0; i < c->count[CONTRACT_DEPTH]; i++) to->depth[i] = (small)c->axis[CONTRACT_DEPTH][i].step0;
}

static sinter_status lines_of(env *e, const contract *c, contract_role role, struct simt_lines *to)
{
    const int64_t count = contract_size(c, role);
    if (count > INT32_MAX)
        return FAIL(e, UNSUPPORTED, "a contraction over %lld lines; the most is 2147483647", (long long)count);
    to->count = (small)count;
    for (uint32_t i = 0; i < c->count[role]; i++) {
        to->div[i] = cuda_fast_div(c->axis[role][i].size);
        to->out_step[i] = (small)c->axis[role][i].out_step;
    }
    return SINTER_OK;
}

sinter_status contract_sizes(env *e, const contract *c, contract_role rows, contract_role cols, struct simt_args *to)
{
    const int64_t depth = contract_size(c, CONTRACT_DEPTH);
    TRY(lines_of(e, c, rows, &to->row));
    TRY(lines_of(e, c, cols, &to->col));
    TRY(lines_of(e, c, CONTRACT_BATCH, &to->batch));
    if (depth > INT32_MAX - 64)
        return FAIL(e, UNSUPPORTED, "sums of %lld products; the most is 2147483583", (long long)depth);
    to->depth = (small)depth;
    for (uint32_t i = 0; i < c->count[CONTRACT_DEPTH]; i++)
        to->depth_div[i] = cuda_fast_div(c->axis[CONTRACT_DEPTH][i].size);
    return SINTER_OK;
}

void contract_steps(const contract *c, contract_role role, uint32_t input, struct simt_operand *to)
{
    for (uint32_t i = 0; i < c->count[role]; i++) to->line[i] = c->axis[role][i].stride[input];
    for (uint32_t i = 0; i < c->count[CONTRACT_DEPTH]; i++) to->depth[i] = c->axis[CONTRACT_DEPTH][i].stride[input];
}
