/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_row_attention.c - attention in f32: the kernel row of attention.h.
 *
 * Operands may lie anyhow: views of [B, S, heads * D] are what models have. The result is written in the order that is
 * asked for; between tokens and head sizes ({0,2,1,3}) the transpose that follows costs nothing. */
#include "cpu/attention.h"
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/row.h"

typedef struct record {
    attention_params params;
    size_t scratch;
    bool has_mask, is_bool, has_length;
    row_after after;
} record;

static bool has_mask(const problem *p)
{
    return p->count_anchor > 3 && p->in[3].dtype != SINTER_DTYPE_NONE;
}

static bool has_length(const problem *p)
{
    return p->count_anchor > 4 && p->in[4].dtype != SINTER_DTYPE_NONE;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static attention_bounds bounds_of(const problem *p)
{
    const problem_operand *q = &p->in[0], *k = &p->in[1], *v = &p->in[2], *y = &p->out[0];
    attention_bounds b = { .depth = most(q->dim[3].max, k->dim[3].max),
                           .width = most(v->dim[3].max, y->dim[3].max),
                           .keys = most(k->dim[2].max, v->dim[2].max) };
    if (!i64_mul(q->dim[1].max, q->dim[2].max, &b.rows)) b.rows = INT64_MAX;
    return b;
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_attention, "not attention");
    REJECT_UNLESS(p->count_anchor <= 5, "appends rows to keys and values");
    REJECT_UNLESS(row_is_f32(p, 3), "not in f32");
    for (uint32_t i = 0; i < 3; i++) REJECT_UNLESS(p->in[i].rank == 4, "an operand has not four axes");
    REJECT_UNLESS(p->out[0].rank == 4, "the result has not four axes");
    if (has_mask(p))
        REJECT_UNLESS(p->in[3].dtype == SINTER_DTYPE_F32 || p->in[3].dtype == SINTER_DTYPE_BOOL,
                      "the mask is neither f32 nor bool");
    const attention_bounds b = bounds_of(p);
    const char *why = attention_bounds_check(&b);
    if (why) return why;
    REJECT_UNLESS(!has_length(p) || p->in[4].dtype == SINTER_DTYPE_I64, "the length is no i64");
    REJECT_UNLESS(!p->prologue, "has a prologue");
    if (p->epilogue) return row_after_reject(p);
    REJECT_UNLESS(p->count_out == 1, "has several results");
    return NULL;
}

static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    const attention_bounds b = bounds_of(p);
    return size_mul(attention_scratch_size((isa_level)t->at[0], &b), threads);
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    const problem_operand *q = &p->in[0], *k = &p->in[1], *v = &p->in[2];
    const double scores = (double)q->dim[0].opt * (double)q->dim[1].opt * (double)q->dim[2].opt * (double)k->dim[2].opt;
    const double work = scores * 2 * ((double)k->dim[3].opt + (double)v->dim[3].opt + 16);
    const double flops = target->flops > 0 ? target->flops : 1e10, threads = target->threads ? target->threads : 1;
    return 1.2 * work / flops * 1e9 / threads + row_memory_ns(p, target, 1.0);
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    const attrs_attention *a = attrs;
    const view *q = &in[0], *k = &in[1], *v = &in[2], *y = &out[0];
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const int64_t heads = k->dim[1], group = heads ? q->dim[1] / heads : 0;
    if (k->dim[0] != q->dim[0] || v->dim[0] != q->dim[0] || v->dim[1] != heads || group * heads != q->dim[1] ||
        k->dim[3] != q->dim[3] || v->dim[2] != k->dim[2])
        return FAIL(e, INTERNAL, "the operands of attention do not fit each other");
    r->params = (attention_params){
        .tile = level_of(isa)->gemm,
        .loop = level_of(isa)->attention,
        .row = level_of(isa)->rows,
        .bounds = bounds_of(p),
        .batch = q->dim[0],
        .heads = heads,
        .group = group,
        .queries = q->dim[2],
        .keys = k->dim[2],
        .depth = q->dim[3],
        .width = v->dim[3],
        .scale = (float)a->scale,
        .cap = (float)a->softcap,
        .causal = a->causal != 0,
    };
    for (uint32_t i = 0; i < 4; i++) {
        r->params.q_stride[i] = q->stride[i];
        r->params.k_stride[i] = k->stride[i];
        r->params.v_stride[i] = v->stride[i];
        r->params.y_stride[i] = y->stride[i];
    }
    r->has_mask = has_mask(p);
    r->has_length = has_length(p);
    r->is_bool = r->has_mask && in[3].dtype == SINTER_DTYPE_BOOL;
    if (r->has_mask) {
        view mask;
        if (!view_broadcast(&in[3], 4, (const int64_t[]){ q->dim[0], q->dim[1], q->dim[2], k->dim[2] }, &mask))
            return FAIL(e, INTERNAL, "the mask of attention does not broadcast");
        memcpy(r->params.mask_stride, mask.stride, sizeof r->params.mask_stride);
    }
    r->scratch = attention_scratch_size(isa, &r->params.bounds);
    r->after.has_program = false;
    return p->epilogue ? row_after_bind(e, p, isa, in, out, &r->after, r + 1) : SINTER_OK;
}

typedef struct job {
    attention_params p;
    char *workspace;
    size_t scratch;
} job;

static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    const job *j = arg;
    attention_run(&j->p, begin, end, j->workspace + worker * j->scratch);
}

/* Keys behind the length are not read. */
static int64_t valid_keys(const kernel_run *k, int64_t most)
{
    const int64_t length = *(const int64_t *)k->in[4];
    if (length >= 0 && length <= most) return length;
    if (k->fault && !k->fault->is_set) *k->fault = (data_fault){ .is_set = 1, .value = length, .limit = most + 1 };
    return most;
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { .p = r->params, .workspace = k->workspace, .scratch = r->scratch };
    j.p.q = k->in[0];
    j.p.k = k->in[1];
    j.p.v = k->in[2];
    j.p.y = k->out[0];
    if (r->has_length) j.p.keys = valid_keys(k, j.p.keys);
    if (r->has_mask && r->is_bool) j.p.allow = k->in[3];
    else if (r->has_mask) j.p.add = k->in[3];
    row_parallel(k, attention_tile_count(&j.p), body, &j);
    row_after_all(&r->after, k, k->out[0]);
    return SINTER_OK;
}

const kernel cpu_attention = {
    .name = "cpu_attention",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .reject = reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .workspace = workspace,
    .record = sizeof(record),
    .record_size = row_record_room,
    .bind = bind,
    .run = run,
};
