/* SPDX-License-Identifier: Apache-2.0 */
/* row_mma.c - matmul and convolution on tensor cores by mma.sync: the rows of mma.cu.
 *
 * A convolution over channels-last data is the product of its pixels by its filters; what differs from a product of
 * matrices is how the address of a row is made, so both are one kernel. Batch axes over which W does not vary are rows;
 * the others, and the groups of a convolution, are products of their own. Shapes are parameters: layers that differ in
 * sizes alone share their code. */
#include "cuda/row_mma.h"
#include "core/dim_range.h"
#include "cuda/cuda_emit.h"
#include "cuda/cuda_kernels.h"
#include "cuda/device/mma_args.h"

/* ---- the problem as products of matrices ---- */

static bool is_static(dim_range d)
{
    return problem_dim_is_static(d) && d.max > 0;
}

static const char *type_of(mma_shape *s)
{
    static const struct {
        sinter_dtype x, w;
        uint8_t type;
    } types[] = {
        { SINTER_DTYPE_F16, SINTER_DTYPE_F16, MMA_F16 },  { SINTER_DTYPE_BF16, SINTER_DTYPE_BF16, MMA_BF16 },
        { SINTER_DTYPE_F32, SINTER_DTYPE_F32, MMA_TF32 }, { SINTER_DTYPE_I8, SINTER_DTYPE_I8, MMA_S8 },
        { SINTER_DTYPE_U8, SINTER_DTYPE_U8, MMA_U8 },     { SINTER_DTYPE_U8, SINTER_DTYPE_I8, MMA_U8_S8 },
        { SINTER_DTYPE_I8, SINTER_DTYPE_U8, MMA_S8_U8 },
    };
    uint32_t i = 0;
    while (i < COUNT_OF(types) && (types[i].x != s->d.type_x || types[i].w != s->d.type_w)) i++;
    REJECT_UNLESS(i < COUNT_OF(types) && (types[i].type >= MMA_S8) == s->d.is_integer,
                  "not in types of the tensor cores");
    s->type = types[i].type;
    s->element = (uint8_t)(sinter_dtype_bits(s->d.type_x) / 8);
    s->chunk = (uint8_t)(16 / s->element);
    return NULL;
}

/* Sizes of what does not vary but for the batch: false where they overflow. */
static bool count_add(int64_t *count, int64_t by)
{
    return i64_mul(*count, by, count) && *count < INT32_MAX;
}

/* Zero points of integers: one of X, of W one or one for each column. */
static const char *zeros_shape(const problem *p, const mma_shape *s)
{
    if (!s->d.is_integer) return NULL;
    REJECT_UNLESS(s->b_kind == MMA_B_PACKED, "integers by what is no constant");
    REJECT_UNLESS(s->d.zero_x <= ZERO_ONE, "the left factor has several zero points");
    REJECT_UNLESS(!s->d.zero_x || p->in[2].is_const || !s->spatial, "pads with a zero point that is no constant");
    REJECT_UNLESS(s->d.zero_w <= ZERO_ROW, "the right factor's zero points are no row");
    return NULL;
}

static const char *conv_shape(const problem *p, mma_shape *s)
{
    const problem_operand *x = &p->in[0], *w = &p->in[1], *y = &p->out[0];
    const attr_ints *pad = s->d.slide.pad;
    const uint32_t spatial = s->d.spatial;
    s->groups = s->d.slide.groups;
    s->is_grouped = s->groups > 1;
    s->channels = w->dim[1].max;
    s->cols = w->dim[0].max / s->groups;
    REJECT_UNLESS(!s->is_grouped || (s->channels >= 16 && s->cols % 8 == 0), "groups are narrow");
    s->inner = w->dim[w->rank - 1].max;
    s->outer = 1;
    for (uint32_t i = 0; i < spatial; i++) {
        const bool has_taps = w->dim[2 + i].max > 1 || pad->at[i] || pad->at[spatial + i];
        if (has_taps) s->spatial = (uint8_t)spatial;
        if (i + 1 < spatial) REJECT_UNLESS(count_add(&s->outer, w->dim[2 + i].max), "the filter is too large");
    }
    s->row_axes = (uint8_t)(spatial + 1);
    const uint32_t inner = cuda_operand_inner(x);
    /* Images of a few channels come as planes, too: their elements are read one by one anyhow. */
    REJECT_UNLESS(inner == 1 || x->dim[1].max == 1 || x->dim[1].max <= 4, "the input is not channels-last");
    s->a_vec = inner == 1 ? (uint8_t)cuda_power_in(s->channels, cuda_operand_vector(x, s->chunk)) : 1;
    s->rows = 1;
    for (uint32_t i = 0; i < y->rank; i++)
        if (i != 1 && !i64_mul(s->rows, y->dim[i].opt, &s->rows)) return "the result is too large";
    s->batch = s->groups;
    s->is_k_static = true;
    s->b_kind = MMA_B_PACKED;
    return NULL;
}

static const char *transposed_shape(const problem *p, mma_shape *s)
{
    const attrs_conv_transpose *a = p->attrs;
    const problem_operand *x = &p->in[0], *w = &p->in[1], *y = &p->out[0];
    const uint32_t spatial = s->d.spatial;
    REJECT_UNLESS(a->groups == 1, "a transposed convolution of several groups");
    REJECT_UNLESS(a->out_pad.count == spatial, "an attribute list has another length");
    REJECT_UNLESS(x->dim[1].max == w->dim[0].max, "the filter is made for another number of channels");
    s->groups = s->batch = s->inner = s->outer = s->rows = 1;
    s->channels = w->dim[0].max;
    s->cols = w->dim[1].max;
    for (uint32_t i = 0; i < spatial; i++) {
        const int64_t stride = a->stride.at[i], taps = w->dim[2 + i].max;
        REJECT_UNLESS(stride >= 1 && stride <= MMA_PHASES, "a stride of more than 8");
        REJECT_UNLESS(a->dilation.at[i] >= 1 && a->dilation.at[i] <= 1 << 20 && a->pad.at[i] >= -(1 << 28) &&
                          a->pad.at[i] <= 1 << 28 && taps <= 1 << 20,
                      "taps lie too far apart");
        s->batch *= stride;
        int64_t most = 0;
        for (int64_t q = 0; q < stride; q++) {
            const product_phase f = product_phase_at(&s->d.slide, i, taps, q);
            most = i64_max(most, f.count);
            /* One tap that stands on the image needs no bounds. */
            if (f.count != 1 || f.start || a->pad.at[spatial + i] < 0 || a->out_pad.at[i])
                s->spatial = (uint8_t)spatial;
        }
        if (i + 1 == spatial) s->inner = most;
        else REJECT_UNLESS(count_add(&s->outer, most), "the filter is too large");
        if (!i64_mul(s->rows, (y->dim[2 + i].opt + stride - 1) / stride, &s->rows)) return "the result is too large";
    }
    if (!i64_mul(s->rows, y->dim[0].opt, &s->rows)) return "the result is too large";
    s->row_axes = (uint8_t)(spatial + 1);
    const uint32_t inner = cuda_operand_inner(x);
    REJECT_UNLESS(inner == 1 || x->dim[1].max == 1, "the input is not channels-last");
    s->a_vec = inner == 1 ? (uint8_t)cuda_power_in(s->channels, cuda_operand_vector(x, s->chunk)) : 1;
    s->is_k_static = true;
    s->b_kind = MMA_B_PACKED;
    return NULL;
}

static const char *matmul_shape(const problem *p, mma_shape *s)
{
    const problem_operand *x = &p->in[0], *w = &p->in[1], *y = &p->out[0];
    bool has_batch = false;
    for (uint32_t i = 0; i + 2 < w->rank; i++) has_batch = has_batch || w->dim[i].max != 1;
    s->batch_axes = has_batch ? (uint8_t)(y->rank - 2) : 0;
    s->row_axes = (uint8_t)(y->rank - 1 - s->batch_axes);
    s->groups = s->inner = s->outer = 1;
    REJECT_UNLESS(cuda_operand_inner(x) == s->d.x_k || x->dim[s->d.x_k].max == 1,
                  "rows of the left factor are not adjacent");
    const dim_range k = x->dim[s->d.x_k], n = w->dim[s->d.w_n];
    s->channels = k.opt;
    s->cols = n.opt;
    const bool is_fixed = is_static(k) && is_static(w->dim[s->d.w_k]);
    s->a_vec = (uint8_t)cuda_power_in(is_static(k) ? k.max : k.divisor, cuda_operand_vector(x, s->chunk));
    s->is_k_static = is_fixed;
    if (w->is_const && is_fixed && is_static(n)) {
        for (uint32_t i = 0; i + 2 < w->rank; i++)
            REJECT_UNLESS(is_static(w->dim[i]), "the weight's size is not fixed");
        s->b_kind = MMA_B_PACKED;
    } else {
        const uint32_t inner = cuda_operand_inner(w);
        if (inner == s->d.w_k) s->b_kind = MMA_B_NK;
        else if (inner == s->d.w_n && s->element == 2) s->b_kind = MMA_B_KN;
        else
            return "the right factor has no adjacent elements that the tensor cores "
                   "take";
        const dim_range run = s->b_kind == MMA_B_NK ? k : n;
        s->b_vec = (uint8_t)cuda_power_in(is_static(run) ? run.max : run.divisor, cuda_operand_vector(w, s->chunk));
    }
    s->rows = s->batch = 1;
    for (uint32_t i = 0; i + 1 < y->rank; i++) {
        int64_t *of = i < s->batch_axes ? &s->batch : &s->rows;
        if (!i64_mul(*of, y->dim[i].opt, of)) return "the result is too large";
    }
    return NULL;
}

static void prologue_space(const problem *p, const mma_shape *s, emit_space *space)
{
    const sinter_dtype acc = s->type >= MMA_S8 ? SINTER_DTYPE_I32 : SINTER_DTYPE_F32;
    emit_space_of_prologue(p, s->is_conv ? 1 : s->d.x_k, s->chunk, acc, space);
    space->is_rounded = true;
}

/* X passes through registers, a chunk at a time: a chunk lies in one tap. */
static const char *prologue_shape(const problem *p, mma_shape *s)
{
    REJECT_UNLESS(cuda_operand_inner(&p->in[0]) == (s->is_conv ? 1u : s->d.x_k),
                  "elements of the prologue are not adjacent");
    const bool is_whole = s->is_k_static ? s->channels % s->chunk == 0 : p->in[0].dim[s->d.x_k].divisor % s->chunk == 0;
    REJECT_UNLESS(is_whole || !s->spatial, "a prologue of taps that are not of whole 16 bytes");
    REJECT_UNLESS(is_whole || !s->is_grouped, "a prologue of groups that are not of whole 16 bytes");
    s->a_vec = is_whole ? s->chunk : 1;
    uint32_t words = 0;
    for (uint32_t i = 0; i < p->prologue->count; i++) {
        const expr_instr *n = &p->prologue->at[i];
        if (n->op != EXPR_LOAD) continue;
        words += s->chunk * (uint32_t)sinter_dtype_bits((sinter_dtype)n->dtype) / 32;
    }
    s->pro_ops = (uint8_t)p->prologue->count;
    s->pro_words = (uint8_t)(words < UINT8_MAX ? words : UINT8_MAX);
    emit_space space;
    prologue_space(p, s, &space);
    return emit_reject_prologue(&space);
}

const char *mma_shape_of(const problem *p, mma_shape *s)
{
    *s = (mma_shape){ 0 };
    const char *why = product_of(p, &s->d);
    if (!why) why = type_of(s);
    if (why) return why;
    s->is_conv = s->d.spatial > 0;
    s->is_transposed = s->d.kind == PRODUCT_TRANSPOSED;
    REJECT_UNLESS(!p->prologue || !s->is_transposed, "has a prologue");
    REJECT_UNLESS(!s->is_conv || (s->d.is_w_fixed && !s->d.is_w_empty && is_static(p->in[0].dim[1])),
                  "the filter is no constant of fixed size, or the number of "
                  "channels is not fixed");
    why = s->is_transposed ? transposed_shape(p, s) : s->is_conv ? conv_shape(p, s) : matmul_shape(p, s);
    if (!why) why = zeros_shape(p, s);
    if (!why && p->prologue) why = prologue_shape(p, s);
    if (why) return why;
    if (!i64_mul(s->inner, s->channels, &s->run) || s->run > INT32_MAX / 2) return "a sum is too long";
    s->run = (s->run + s->chunk - 1) / s->chunk * s->chunk;
    s->k = s->outer;
    REJECT_UNLESS(count_add(&s->k, s->run) && s->k < INT32_MAX / 8, "a sum is too long");
    if (!s->is_transposed) return NULL;
    product_phase at[3];
    for (int64_t z = 0; z < s->batch; z++) s->k_all += mma_phase_shape(p, s, z, at).k;
    return NULL;
}

static const char *reject_of(const problem *p, const kernel_target *t, bool is_relaxed)
{
    mma_shape s;
    const char *why = mma_shape_of(p, &s);
    if (why) return why;
    REJECT_UNLESS((s.type == MMA_TF32) == is_relaxed, is_relaxed ? "not in f32" : "f32 would be rounded to tf32");
    REJECT_UNLESS(t->isa >= 75, "the chip has no tensor cores that this kernel knows");
    REJECT_UNLESS(t->isa >= 80 || s.type == MMA_F16 || s.type >= MMA_S8,
                  "the chip's tensor cores do not take this type");
    emit_space e;
    emit_space_of(p, &e);
    REJECT_UNLESS(e.rank == p->out[0].rank && e.inner == (s.is_conv ? 1 : p->out[0].rank - 1),
                  "columns of the result are not adjacent");
    return emit_reject(&e);
}

static const char *reject(const problem *p, const kernel_target *t)
{
    return reject_of(p, t, false);
}

static const char *reject_tf32(const problem *p, const kernel_target *t)
{
    return reject_of(p, t, true);
}

/* ---- code ---- */

/* Blocks on a multiprocessor that registers must allow: with fewer, no spills. */
static uint32_t mma_min_blocks(const problem *p, const mma_shape *s, const mma_tactic *m, const kernel_target *target)
{
    const mma_tile *x = mma_tile_at(m->tile);
    const bool is_heavy = (p->epilogue && p->epilogue->count > 20) || s->a_vec * s->element == 1 ||
                          mma_prologue_is_heavy(s, x) ||
                          (x->bm * x->bn >= 128 * 128 && (m->split_log || mma_is_whole(s, m)));
    return target->isa < 80 || is_heavy ? 1 : x->min_blocks;
}

/* The axis of X that goes with axis `i` of those of the result that are no columns; -1: none. */
static int axis_of(const problem *p, const mma_shape *s, uint32_t i)
{
    if (s->is_conv) return i ? (int)i + 1 : 0;
    const int lead = p->out[0].rank - p->in[0].rank;
    if (i + 2u == p->out[0].rank) return s->d.x_m;
    return (int)i < lead ? -1 : (int)i - lead;
}

static void put_axes(const problem *p, const mma_shape *s, const char *name, uint32_t first, uint32_t count, text *to)
{
    text_printf(to, "[[maybe_unused]] constexpr i32 %s[] = {", name);
    for (uint32_t i = 0; i < count; i++) text_printf(to, " %d,", axis_of(p, s, first + i));
    text_printf(to, count ? " };\n" : " -1 };\n");
}

static bool mma_code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    mma_shape s;
    if (index || mma_shape_of(p, &s)) return false;
    const mma_tactic m = TACTIC_AS(mma_tactic, t);
    const mma_tile *x = mma_tile_at(m.tile);
    if (m.is_hopper != (target->isa >= 90)) return false;
    c->source = "mma.cu";
    c->entry = "mma";
    cuda_code_define(c, "TYPE", s.type);
    cuda_code_define(c, "BM", x->bm);
    cuda_code_define(c, "BN", x->bn);
    cuda_code_define(c, "WM", x->wm);
    cuda_code_define(c, "WN", x->wn);
    cuda_code_define(c, "KG", x->kg);
    cuda_code_define(c, "MIN_BLOCKS", mma_min_blocks(p, &s, &m, target));
    cuda_code_define(c, "CLUSTER", m.split_log > 0);
    cuda_code_define(c, "A_VEC", s.a_vec);
    cuda_code_define(c, "SPATIAL", s.spatial);
    cuda_code_define(c, "ROW_AXES", s.row_axes);
    cuda_code_define(c, "AXIS_GAP", s.is_conv);
    cuda_code_define(c, "BATCH_AXES", s.batch_axes);
    cuda_code_define(c, "GROUPED", s.is_grouped);
    cuda_code_define(c, "TRANSPOSED", s.is_transposed);
    cuda_code_define(c, "B_KIND", s.b_kind);
    cuda_code_define(c, "B_VEC", s.b_vec);
    cuda_code_define(c, "HAS_ZERO_X", s.d.zero_x > 0);
    cuda_code_define(c, "HAS_ZERO_W", s.d.zero_w > 0);
    cuda_code_define(c, "VEC", m.split_log ? 4 : 8);
    cuda_code_define(c, "PROLOGUE", s.pro_ops > 0);
    if (target->isa < 90) cuda_code_define(c, "STAGES", m.stages);
    else cuda_code_define(c, "RING", !mma_is_whole(&s, &m));
    emit_space e;
    emit_space_of(p, &e);
    emit_text(&e, c->generated);
    if (!s.pro_ops) return true;
    prologue_space(p, &s, &e);
    emit_text(&e, c->generated);
    c->may_spill = s.pro_words > 24;
    text_printf(c->generated, "constexpr i32 PRO_INNER = %u;\n", e.inner);
    put_axes(p, &s, "pro_row_axis", s.batch_axes, s.row_axes, c->generated);
    put_axes(p, &s, "pro_batch_axis", 0, s.batch_axes, c->generated);
    return true;
}

/* ---- bind ---- */

typedef struct binding {
    env *e;
    mma_shape s;
    mma_args *a;
    int64_t rows, batch, reach; /* reach: what offsets in X may come to, in units */
} binding;

static sinter_status overflows(env *e)
{
    return FAIL(e, UNSUPPORTED, "a product has more rows, columns or tiles than 32 bits count");
}

/* A stride of X in units of what is read at once; of no effect where the axis has one element. */
static sinter_status units_of(const binding *b, int64_t size, int64_t stride, int64_t *out)
{
    *out = size > 1 && !b->s.pro_ops ? stride / b->s.a_vec : 0; /* a prologue finds its operands itself */
    if (size > 1 && !b->s.pro_ops && stride % b->s.a_vec)
        return FAIL(b->e, INTERNAL, "a pitch of %lld elements is no multiple of %u", (long long)stride, b->s.a_vec);
    return SINTER_OK;
}

static sinter_status row_axis_set(binding *b, uint32_t i, int64_t size, int64_t step)
{
    if (!i64_mul(b->rows, size, &b->rows) || b->rows > INT32_MAX / 2) return overflows(b->e);
    if (step > INT32_MAX / 2 || step < INT32_MIN / 2)
        return FAIL(b->e, UNSUPPORTED, "rows lie %lld elements apart; less than 2^30 is wanted", (long long)step);
    b->reach += size > 0 ? (size - 1) * (step < 0 ? -step : step) : 0;
    b->a->row_div[i] = cuda_fast_div(size);
    b->a->x_step[i] = (small)step;
    return SINTER_OK;
}

static sinter_status conv_bind(binding *b, const problem *p, const product_slide *at, const mma_tile *tile,
                               const view *x, const view *y)
{
    const mma_shape *s = &b->s;
    const uint32_t spatial = x->rank - 2;
    mma_args *a = b->a;
    int64_t step, base = 0;
    TRY(units_of(b, y->dim[0], x->stride[0], &step));
    TRY(row_axis_set(b, 0, y->dim[0], step));
    a->pro_row[0] = 1;
    for (uint32_t i = 0; i < spatial; i++) {
        TRY(units_of(b, x->dim[2 + i], x->stride[2 + i], &step));
        int64_t row, tap;
        if (!i64_mul(step, at->stride->at[i], &row) || !i64_mul(step, at->dilation->at[i], &tap) ||
            tap > INT32_MAX / 2 || tap < INT32_MIN / 2)
            return overflows(b->e);
        TRY(row_axis_set(b, 1 + i, y->dim[2 + i], row));
        const int64_t taps = p->in[1].dim[2 + i].max;
        b->reach += (taps - 1) * (tap < 0 ? -tap : tap);
        base -= at->pad->at[i] * step;
        a->stride[i] = a->pro_row[1 + i] = (small)at->stride->at[i];
        a->pad[i] = (small)at->pad->at[i];
        a->dilation[i] = (small)at->dilation->at[i];
        a->in[i] = (small)x->dim[2 + i];
        a->tap_step[i] = (small)tap;
        a->kernel_div[i] = cuda_fast_div(taps);
    }
    b->reach += base < 0 ? -base : base;
    a->x_base = (small)base;
    a->x_channel = s->a_vec > 1 || x->dim[1] == 1 ? 1 : (small)x->stride[1];
    b->batch = s->groups;
    a->x_batch[0] = s->channels * (x->dim[1] > 1 ? x->stride[1] : 0) * s->element;
    a->w_batch[0] = (wide)mma_packed_matrix(s, tile);
    return SINTER_OK;
}

static sinter_status transposed_bind(binding *b, const problem *p, const attrs_conv_transpose *at, const mma_tile *tile,
                                     const view *x, const view *y, mma_phases *phases)
{
    const mma_shape *s = &b->s;
    const uint32_t spatial = x->rank - 2;
    mma_args *a = b->a;
    int64_t step;
    TRY(units_of(b, y->dim[0], x->stride[0], &step));
    TRY(row_axis_set(b, 0, y->dim[0], step));
    for (uint32_t i = 0; i < spatial; i++) {
        const product_slide taps_of = product_slide_of(OP_conv_transpose, at);
        const int64_t stride = at->stride.at[i], taps = p->in[1].dim[2 + i].max;
        TRY(units_of(b, x->dim[2 + i], x->stride[2 + i], &step));
        TRY(row_axis_set(b, 1 + i, (y->dim[2 + i] + stride - 1) / stride, step));
        phases->stride[i] = cuda_fast_div(stride);
        phases->out[i] = (small)y->dim[2 + i];
        int64_t far = 0;
        for (int64_t q = 0; q < stride; q++) {
            const product_phase f = product_phase_at(&taps_of, i, taps, q);
            const int64_t run = (f.count * s->channels + s->chunk - 1) / s->chunk;
            if (f.start > INT32_MAX / 8 || f.start < INT32_MIN / 8 || f.back > INT32_MAX / 8) return overflows(b->e);
            phases->at[i][q] = (mma_phase){ cuda_fast_div(f.count), cuda_fast_div(run), (small)f.start };
            far = i64_max(far, (f.start < 0 ? -f.start : f.start) + f.count * f.back);
            a->dilation[i] = (small)-f.back;
        }
        int64_t tap;
        if (!i64_mul(far, step, &far) || !i64_mul(step, a->dilation[i], &tap)) return overflows(b->e);
        b->reach += far < 0 ? -far : far;
        if (b->reach > INT32_MAX / 2) return overflows(b->e);
        a->stride[i] = 1;
        a->in[i] = (small)x->dim[2 + i];
        a->tap_step[i] = (small)tap;
    }
    a->x_channel = 1;
    b->batch = s->batch;
    a->batch_div[0] = cuda_fast_div(s->batch);
    a->w_batch[0] = (wide)mma_packed_matrix(s, tile);
    return SINTER_OK;
}

/* Does an operand step along axis `i` of the result, or is it repeated? */
static bool has_along(const view *v, uint32_t rank, uint32_t i)
{
    const uint32_t lead = rank - v->rank;
    return i >= lead && v->dim[i - lead] != 1;
}

static int64_t stride_along(const view *v, uint32_t rank, uint32_t i)
{
    return has_along(v, rank, i) ? v->stride[i + v->rank - rank] : 0;
}

static sinter_status matmul_bind(binding *b, const problem *p, const mma_tile *tile, const view *x, const view *w,
                                 const view *y)
{
    const mma_shape *s = &b->s;
    mma_args *a = b->a;
    const bool is_packed = s->b_kind == MMA_B_PACKED;
    int64_t step, matrix = (int64_t)mma_packed_matrix(s, tile);
    for (uint32_t i = s->batch_axes; i-- > 0;) {
        if (!i64_mul(b->batch, y->dim[i], &b->batch)) return overflows(b->e);
        a->batch_div[i] = cuda_fast_div(y->dim[i]);
        a->x_batch[i] = stride_along(x, y->rank, i) * s->element;
        a->pro_batch[i] = has_along(x, y->rank, i);
        const uint32_t lead = y->rank - p->in[1].rank;
        if (!is_packed) a->w_batch[i] = stride_along(w, y->rank, i) * s->element;
        else if (i >= lead && p->in[1].dim[i - lead].max > 1) {
            a->w_batch[i] = matrix;
            matrix *= p->in[1].dim[i - lead].max;
        }
    }
    for (uint32_t i = s->batch_axes; i + 2 < y->rank; i++) {
        TRY(units_of(b, y->dim[i], stride_along(x, y->rank, i), &step));
        TRY(row_axis_set(b, i - s->batch_axes, y->dim[i], step));
        a->pro_row[i - s->batch_axes] = has_along(x, y->rank, i);
    }
    TRY(units_of(b, x->dim[s->d.x_m], x->stride[s->d.x_m], &step));
    TRY(row_axis_set(b, s->row_axes - 1u, x->dim[s->d.x_m], step));
    a->pro_row[s->row_axes - 1u] = 1;
    a->x_channel = 1;
    if (!is_packed) {
        b->s.cols = w->dim[s->d.w_n];
        b->s.channels = x->dim[s->d.x_k];
        b->s.run = b->s.k = (b->s.channels + s->chunk - 1) / s->chunk * s->chunk;
        a->w_pitch = (s->b_kind == MMA_B_NK ? w->stride[s->d.w_n] : w->stride[s->d.w_k]) * s->element;
    }
    return SINTER_OK;
}

static sinter_status mma_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                              const view *out, void *record)
{
    cuda_record *r = record;
    const mma_tactic m = TACTIC_AS(mma_tactic, t);
    const mma_tile *tile = mma_tile_at(m.tile);
    mma_args args = { 0 };
    binding b = { .e = e, .a = &args, .rows = 1, .batch = 1 };
    const char *why = mma_shape_of(p, &b.s);
    if (why) return FAIL(e, INTERNAL, "cuda_mma was given a problem that it rejects: %s", why);
    mma_phases phases = { 0 };
    if (b.s.is_transposed) {
        TRY(transposed_bind(&b, p, attrs, tile, &in[0], &out[0], &phases));
    } else if (b.s.is_conv) {
        const product_slide taps = product_slide_of(p->op, attrs);
        TRY(conv_bind(&b, p, &taps, tile, &in[0], &out[0]));
    } else {
        TRY(matmul_bind(&b, p, tile, &in[0], &in[1], &out[0]));
    }
    if (b.reach > INT32_MAX / 2)
        return FAIL(e, UNSUPPORTED, "an operand spans %lld units; less than 2^30 is wanted", (long long)b.reach);
    const mma_shape *s = &b.s;
    if (s->cols > INT32_MAX / 2 || s->k > INT32_MAX / 8) return overflows(e);
    const int64_t step = MMA_STEP_BYTES / s->element, m_tiles = (b.rows + tile->bm - 1) / tile->bm,
                  n_tiles = (s->cols + tile->bn - 1) / tile->bn;
    int64_t tiles, blocks;
    if (!i64_mul(m_tiles, n_tiles, &tiles) || !i64_mul(tiles, b.batch, &blocks) ||
        !i64_mul(blocks, 1 << m.split_log, &blocks) || blocks > INT32_MAX || n_tiles > INT32_MAX / 16)
        return overflows(e);
    args.rows = (small)b.rows;
    args.cols = (small)s->cols;
    args.chunks = (small)(s->k / s->chunk);
    args.steps = (small)((s->k + step - 1) / step);
    args.run_div = cuda_fast_div(s->spatial && s->a_vec == s->chunk ? s->channels / s->chunk : s->run / s->chunk);
    args.channel_div = cuda_fast_div(s->channels);
    args.taps_inner = (small)s->inner;
    args.terms = (small)(s->outer * s->inner * s->channels);
    args.w_sums = (wide)mma_packed_tiles(s, tile);
    args.zero_w_step = s->d.zero_w == ZERO_ROW;
    args.split_log = m.split_log;
    args.trigger = m.trigger;
    args.m_tiles = (small)m_tiles;
    args.band_log = 3;
    args.band_div = cuda_fast_div(n_tiles << args.band_log);
    args.tile_div = cuda_fast_div(tiles);
    /* No more slots than a block has steps: a small block lets the next grid's in beside it. */
    const uint32_t most = (uint32_t)((args.steps + (1 << m.split_log) - 1) >> m.split_log),
                   wanted = (most + tile->kg - 1) / tile->kg * tile->kg;
    const uint32_t stages = m.is_hopper && wanted && wanted < m.stages ? wanted : m.stages;
    uint32_t barriers_at;
    const uint32_t shared = mma_shared_size(tile, &m, stages, &barriers_at);
    args.stages = (small)stages;
    args.barriers_at = (small)barriers_at;
    mma_args *a;
    TRY(cuda_launch_begin(e, r, 0, (uint64_t)blocks, 1, 1, 32u * tile->wm * tile->wn * tile->kg, shared, sizeof *a,
                          &a));
    cuda_launch_last(r)->cluster = m.split_log ? 1u << m.split_log : 0;
    *a = args;
    if (!s->pro_ops) CUDA_PATCH(r, a, x, PATCH_IN, 0);
    CUDA_PATCH(r, a, w, PATCH_IN, 1);
    if (s->d.zero_x) CUDA_PATCH(r, a, zero_x, PATCH_IN, 2);
    if (s->d.zero_w) CUDA_PATCH(r, a, zero_w, PATCH_IN, 3);
    emit_space space;
    emit_space_of(p, &space);
    TRY(emit_bind(e, &space, in, out, r));
    if (s->is_transposed) {
        mma_phases *to = cuda_param_add(r, sizeof *to);
        if (!to) return FAIL(e, INTERNAL, "a launch of cuda_mma does not fit its record");
        *to = phases;
    }
    if (!s->pro_ops) return SINTER_OK;
    prologue_space(p, s, &space);
    return emit_bind(e, &space, in, out, r);
}

#define MMA_ROW(id, rejects, of)                                                                                       \
    CUDA_ROW(id, 1, rejects, mma_, .out_strides = STRIDES_ROWS, .numerics = of, .pack_size = mma_pack_size,            \
             .pack = mma_pack, .lets_in = mma_lets_in)
MMA_ROW(cuda_mma, reject, KERNEL_EXACT_SUMS);
MMA_ROW(cuda_mma_tf32, reject_tf32, KERNEL_RELAXED);
