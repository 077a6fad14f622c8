/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_row_attention.c - attention: on matrix units for f16 and bf16 whose head sizes lie innermost, else in f32
 * arithmetic.
 *
 * Operands may lie anyhow: views of [B, S, heads * D] are what models have. */
#include "cuda/cuda_row_attention.h"
#include "cuda/cuda_kernels.h"

static bool has_mask(const problem *p)
{
    return p->count_anchor > 3 && p->in[3].dtype != SINTER_DTYPE_NONE;
}

/* MASK of the sources. */
static int mask_kind(const problem *p)
{
    if (!has_mask(p)) return 0;
    return p->in[3].dtype == SINTER_DTYPE_BOOL ? 2 : p->in[3].dtype == SINTER_DTYPE_F32 ? 1 : 3;
}

int64_t attention_depth(const problem *p)
{
    return p->in[0].dim[3].max;
}

int64_t attention_width(const problem *p)
{
    return p->in[2].dim[3].max;
}

bool attention_has_length(const problem *p)
{
    return cuda_has_in(p, 4);
}

bool attention_appends(const problem *p)
{
    return cuda_has_in(p, 5);
}

const char *attention_reject_any(const problem *p)
{
    REJECT_UNLESS(p->op == OP_attention, "not attention");
    REJECT_UNLESS(!p->prologue && !p->epilogue, "takes no programs");
    REJECT_UNLESS(p->count_out == (attention_appends(p) ? 3u : 1u), "has other results");
    REJECT_UNLESS(!attention_has_length(p) || p->in[4].dtype == SINTER_DTYPE_I64, "the length is no i64");
    for (uint32_t i = 0; i < 4; i++) {
        const problem_operand *o = i < 3 ? &p->in[i] : &p->out[0];
        REJECT_UNLESS(o->rank == 4, "an operand has not four axes");
        REJECT_UNLESS(o->dtype == p->in[0].dtype, "operands of several types");
    }
    const sinter_dtype d = p->in[0].dtype;
    REJECT_UNLESS(d == SINTER_DTYPE_F32 || d == SINTER_DTYPE_F16 || d == SINTER_DTYPE_BF16, "not f32, f16 or bf16");
    if (has_mask(p))
        REJECT_UNLESS(p->in[3].dtype == SINTER_DTYPE_BOOL || p->in[3].dtype == SINTER_DTYPE_F32 || p->in[3].dtype == d,
                      "the mask is neither bool, f32, nor of the operands' type");
    REJECT_UNLESS(attention_depth(p) > 0 && attention_width(p) > 0 && attention_depth(p) <= 512 &&
                      attention_width(p) <= 512,
                  "heads of no elements, or of more than 512");
    REJECT_UNLESS(p->in[0].dim[0].max <= 65535 && p->in[0].dim[1].max <= 65535, "too many heads");
    for (uint32_t i = 0; i < 3; i++) REJECT_UNLESS(p->in[i].dim[2].max < (1 << 30), "too many tokens");
    return NULL;
}

const char *attention_reject_matrix(const problem *p, const kernel_target *t)
{
    const char *why = attention_reject_any(p);
    if (why) return why;
    REJECT_UNLESS(!attention_appends(p), "appends rows to keys and values");
    REJECT_UNLESS(p->in[0].dtype != SINTER_DTYPE_F32, "f32 has no exact matrix units");
    REJECT_UNLESS(p->in[0].dtype == SINTER_DTYPE_F16 || t->isa >= 80, "bf16 begins with sm_80");
    REJECT_UNLESS(attention_depth(p) <= 256 && attention_width(p) <= 256, "heads of more than 256");
    for (uint32_t i = 0; i < 4; i++) {
        const problem_operand *o = i < 3 ? &p->in[i] : &p->out[0];
        REJECT_UNLESS(!o->is_gapped && o->order[3] == 3, "heads do not lie innermost");
        REJECT_UNLESS(problem_dim_is_static(o->dim[3]) && o->dim[3].max % 8 == 0, "head size is no multiple of 8");
    }
    return NULL;
}

bool attention_is_keyed(const problem *p)
{
    const problem_operand *m = has_mask(p) ? &p->in[3] : NULL;
    return m && (m->rank < 2 || m->dim[m->rank - 2].max <= 1);
}

/* Keys lie next to each other, and rows begin at even elements. */
static bool mask_has_pairs(const problem *p)
{
    const problem_operand *m = &p->in[3];
    return has_mask(p) && m->rank > 0 && m->dim[m->rank - 1].min > 1 && m->order[m->rank - 1] == m->rank - 1 &&
           cuda_operand_vector(m, 2) == 2;
}

void attention_define(const problem *p, cuda_code *c)
{
    const attrs_attention *a = p->attrs;
    cuda_code_define(c, "MASK", mask_kind(p));
    cuda_code_define(c, "PAIRS", mask_has_pairs(p));
    cuda_code_define(c, "KEYED", attention_is_keyed(p));
    cuda_code_define(c, "IS_BF16", p->in[0].dtype == SINTER_DTYPE_BF16);
    cuda_code_define(c, "CAP", a->softcap > 0);
    cuda_code_define(c, "CAUSAL", a->causal != 0);
    cuda_code_define(c, "LENGTH", attention_has_length(p));
}

typedef struct mma_tactic {
    uint8_t mi, wm, wn, bn, trigger, zero[TACTIC_SIZE - 5];
} mma_tactic;
_Static_assert(sizeof(mma_tactic) == TACTIC_SIZE, "a tactic is overlaid");
static const tactic_field fields[] = {
    FIELD(mma_tactic, mi, 1, 2, false, "", 16),       FIELD(mma_tactic, wm, 1, 8, false, "x", 1),
    FIELD(mma_tactic, wn, 1, 4, false, "x", 1),       FIELD(mma_tactic, bn, 16, 64, true, " n", 1),
    FIELD(mma_tactic, trigger, 0, 3, false, " t", 1),
};

static uint32_t rounded(int64_t x, uint32_t to)
{
    return ((uint32_t)x + to - 1) / to * to;
}

/* The two stages of keys and values, or the sums that meet at the end. */
static uint32_t mma_shared(const problem *p, mma_tactic m)
{
    const uint32_t depth = rounded(attention_depth(p), 16), width = rounded(attention_width(p), 16),
                   rows = 16u * m.mi * m.wm, tile = (uint32_t)m.bn * m.wn;
    const uint32_t stages = rows * (depth * 2 + 16) + 2 * tile * (depth * 2 + 16 + width * 2 + 16),
                   ends = m.wn * rows * (width + 4 + 2) * 4;
    return stages > ends ? stages : ends;
}

static double mma_cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    const mma_tactic m = TACTIC_AS(mma_tactic, t);
    const problem_operand *q = &p->in[0], *k = &p->in[1];
    const double heads = (double)q->dim[0].opt * (double)q->dim[1].opt, units = target->units ? target->units : 100;
    const double rows = 16.0 * m.mi * m.wm,
                 blocks = heads * (double)((q->dim[2].opt + (int64_t)rows - 1) / (int64_t)rows);
    const double tiles = (double)((k->dim[2].opt + m.bn * m.wn - 1) / (m.bn * m.wn));
    /* A tile: a barrier and a chain of loads, products and powers; several blocks share a multiprocessor. */
    const double products =
        (double)m.bn / 16 * (double)(attention_depth(p) + attention_width(p)) / 16 * 2 * (m.mi > 1 ? 1.5 : 1);
    const double warps = m.wm * m.wn, at_once = 16 / warps < 1 ? 1 : 16 / warps;
    const double tile_ns = 250 + products * 6 * (warps > 4 ? warps / 4 : 1);
    double waves = blocks / (units * at_once);
    if (waves < 1) waves = 1;
    const double share = blocks / units < at_once ? (blocks / units < 1 ? 1 : blocks / units) : at_once;
    const double work =
        2500 + waves * tiles * (tile_ns + products * 6 * warps / 4 * (share - 1)) + (m.wn > 1 ? 300 : 0);
    const double memory = cuda_cost_ns(target, cuda_problem_bytes(p), 0);
    return work > memory ? work : memory;
}

static void mma_tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    static const uint8_t shapes[][4] = { { 1, 4, 1, 64 }, { 1, 1, 4, 32 }, { 2, 4, 1, 64 }, { 2, 4, 1, 32 },
                                         { 1, 2, 2, 64 }, { 1, 8, 1, 64 }, { 2, 2, 2, 32 }, { 1, 2, 4, 32 },
                                         { 1, 1, 4, 64 }, { 1, 4, 2, 32 }, { 1, 4, 1, 32 }, { 1, 1, 2, 32 } };
    for (uint32_t i = 0; i < COUNT_OF(shapes); i++)
        for (uint8_t trigger = 2; trigger <= 3; trigger++) {
            const mma_tactic m = {
                .mi = shapes[i][0], .wm = shapes[i][1], .wn = shapes[i][2], .bn = shapes[i][3], .trigger = trigger
            };
            if (mma_shared(p, m) > t->shared || out->count == COUNT_OF(out->at)) continue;
            if (m.wm * m.wn > 4 && attention_depth(p) > 128) continue;
            if (m.mi > 1 && (attention_width(p) > 128 || (attention_width(p) > 64 && m.bn > 32))) continue;
            tactic_put(out, &m);
        }
    if (out->count) return;
    const mma_tactic least = { .mi = 1, .wm = 1, .wn = 1, .bn = 16, .trigger = 3 };
    tactic_put(out, &least);
}

static bool mma_check(const problem *p, const tactic *t)
{
    const mma_tactic m = TACTIC_AS(mma_tactic, t);
    return FIELDS_HOLD(fields, t) && m.wm * m.wn <= 16 && mma_shared(p, m) <= 227 * 1024;
}

FIELDS_PRINT(mma_print, fields)

static bool mma_code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    if (index) return false;
    const mma_tactic m = TACTIC_AS(mma_tactic, t);
    c->source = "attention.cu";
    c->entry = "attention";
    /* Compilers for other chips than Hopper's give up a few words for more blocks. */
    c->may_spill =
        target->isa != 90 || attention_depth(p) > 128 || attention_width(p) > 128 || m.mi > 1 || m.wm * m.wn > 4;
    cuda_code_define(c, "DEPTH", rounded(attention_depth(p), 16));
    cuda_code_define(c, "WIDTH", rounded(attention_width(p), 16));
    attention_define(p, c);
    cuda_code_define(c, "MI", m.mi);
    cuda_code_define(c, "WM", m.wm);
    cuda_code_define(c, "WN", m.wn);
    cuda_code_define(c, "BN", m.bn);
    cuda_code_define(c, "TRIGGER", m.trigger);
    return true;
}

sinter_status attention_fill(env *e, const problem *p, const void *attrs, const view *in, const view *out,
                             cuda_record *r, struct attention_args *x)
{
    const attrs_attention *a = attrs;
    const view *q = &in[0], *k = &in[1], *v = &in[2], *y = &out[0];
    const int64_t heads = k->dim[1], group = heads ? q->dim[1] / heads : 0;
    if (k->dim[0] != q->dim[0] || v->dim[0] != q->dim[0] || v->dim[1] != heads || group * heads != q->dim[1] ||
        k->dim[3] != q->dim[3] || v->dim[2] != k->dim[2])
        return FAIL(e, INTERNAL, "the operands of attention do not fit each other");
    x->heads = (small)q->dim[1];
    x->group = (small)(group ? group : 1);
    x->queries = (small)q->dim[2];
    x->keys = (small)k->dim[2];
    x->depth = (small)q->dim[3];
    x->width = (small)v->dim[3];
    x->scale = (float)a->scale;
    x->cap = (float)a->softcap;
    x->causal = a->causal != 0;
    for (uint32_t i = 0; i < 4; i++) {
        x->q_stride[i] = q->stride[i];
        x->k_stride[i] = k->stride[i];
        x->v_stride[i] = v->stride[i];
        x->y_stride[i] = y->stride[i];
    }
    CUDA_PATCH(r, x, q, PATCH_IN, 0);
    CUDA_PATCH(r, x, k, PATCH_IN, 1);
    CUDA_PATCH(r, x, v, PATCH_IN, 2);
    CUDA_PATCH(r, x, y, PATCH_OUT, 0);
    if (attention_has_length(p)) CUDA_PATCH(r, x, length, PATCH_IN, 4);
    if (!has_mask(p)) return SINTER_OK;
    view mask;
    if (!view_broadcast(&in[3], 4, (const int64_t[]){ q->dim[0], q->dim[1], q->dim[2], k->dim[2] }, &mask))
        return FAIL(e, INTERNAL, "the mask of attention does not broadcast");
    for (uint32_t i = 0; i < 4; i++) x->mask_stride[i] = mask.stride[i];
    CUDA_PATCH(r, x, mask, PATCH_IN, 3);
    return SINTER_OK;
}

static sinter_status bind_rows(env *e, const problem *p, const void *attrs, const view *in, const view *out,
                               int64_t rows, uint32_t block, uint32_t shared, cuda_record *r)
{
    const view *q = &in[0];
    struct attention_args *x;
    TRY(cuda_launch_begin(e, r, 0, (uint64_t)((q->dim[2] + rows - 1) / rows), (uint64_t)q->dim[1], (uint64_t)q->dim[0],
                          block, shared, sizeof *x, &x));
    return attention_fill(e, p, attrs, in, out, r, x);
}

static sinter_status mma_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                              const view *out, void *to)
{
    const mma_tactic m = TACTIC_AS(mma_tactic, t);
    return bind_rows(e, p, attrs, in, out, 16 * m.mi * m.wm, 32u * m.wm * m.wn, mma_shared(p, m), to);
}

CUDA_ROW(cuda_attention, 5, attention_reject_matrix, mma_, .out_strides = STRIDES_ROWS);

/* ---- any float ---- */

static uint32_t any_shared(const problem *p)
{
    const uint32_t depth = rounded(attention_depth(p), 4), width = rounded(attention_width(p), 32);
    return (16 * depth + 32 * (depth + 1) + 32 * width) * 4;
}

static const char *any_reject(const problem *p, const kernel_target *t)
{
    const char *why = attention_reject_any(p);
    if (why) return why;
    REJECT_UNLESS(!attention_appends(p), "appends rows to keys and values");
    REJECT_UNLESS(any_shared(p) <= t->shared, "heads of more elements than shared memory holds");
    return NULL;
}

static double any_cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    const problem_operand *q = &p->in[0], *k = &p->in[1];
    const double heads = (double)q->dim[0].opt * (double)q->dim[1].opt, units = target->units ? target->units : 100;
    const double blocks = heads * (double)((q->dim[2].opt + 15) / 16), tiles = (double)((k->dim[2].opt + 31) / 32);
    const double waves = blocks / (units * 4) < 1 ? 1 : blocks / (units * 4);
    return 3000 + waves * tiles * (1000 + 12.0 * (double)(attention_depth(p) + attention_width(p)));
}

static bool any_code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    (void)t, (void)target;
    if (index) return false;
    c->source = "attention_any.cu";
    c->entry = "attention_any";
    cuda_code_define(c, "DEPTH", rounded(attention_depth(p), 4));
    cuda_code_define(c, "WIDTH", rounded(attention_width(p), 32));
    cuda_code_define(c, "MASK", mask_kind(p));
    cuda_code_define(c, "LENGTH", attention_has_length(p));
    cuda_code_define(c, "TYPE", p->in[0].dtype == SINTER_DTYPE_F16 ? 1 : p->in[0].dtype == SINTER_DTYPE_BF16 ? 2 : 0);
    return true;
}

static sinter_status any_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                              const view *out, void *to)
{
    (void)t;
    return bind_rows(e, p, attrs, in, out, 16, 128, any_shared(p), to);
}

CUDA_ROW_ONE(cuda_attention_any, 2, cuda_check_one, any_, .out_strides = STRIDES_ROWS);
