/* SPDX-License-Identifier: Apache-2.0 */
/* reference.c - the last row of every backend: any problem, by the reference of its op. Slow, and always right. */
#include "backend/reference.h"

#include "ops/plugin.h"

#include <string.h>

typedef struct record {
    const problem *p;
    const void *attrs;
    view at[]; /* inputs, then results */
} record;

const char *reference_row_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    if (p->op != OP_plugin) return NULL;
    REJECT_UNLESS(p->plugin, "its plugin is not registered");
    REJECT_UNLESS(p->plugin->plugin->run, "its plugin has no function for the CPU");
    return NULL;
}

void reference_row_tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    (void)p, (void)t;
    out->at[out->count++] = (tactic){ 0 };
}

bool reference_row_check(const problem *p, const tactic *t)
{
    (void)p;
    const tactic none = { 0 };
    return !memcmp(t, &none, sizeof none);
}

static double operand_bytes(const problem_operand *o)
{
    double bytes = sinter_dtype_bits(o->dtype) / 8.0;
    for (uint32_t i = 0; i < o->rank; i++) bytes *= (double)o->dim[i].opt;
    return bytes;
}

/* Element by element through accessors: some tens of nanoseconds each, many times that where it sums. */
double reference_row_cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t, (void)target;
    double out = 0, in = 0;
    for (uint32_t i = 0; i < p->count_in; i++) in += operand_bytes(&p->in[i]);
    for (uint32_t i = 0; i < p->count_out; i++) out += operand_bytes(&p->out[i]);
    const double work = op_at(p->op)->traits & CONTRACTION && p->count_in > 1 ? out * 100 : 0;
    return 2000 + (in + out + work) * 20;
}

size_t reference_row_record_size(const problem *p, const tactic *t)
{
    (void)t;
    return size_add(sizeof(record), size_mul(sizeof(view), size_add(p->count_in, p->count_out)));
}

sinter_status reference_row_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                                 const view *out, void *to)
{
    (void)e, (void)t;
    record *r = to;
    r->p = p;
    r->attrs = attrs;
    for (uint32_t i = 0; i < p->count_in; i++) r->at[i] = in[i];
    for (uint32_t i = 0; i < p->count_out; i++) r->at[p->count_in + i] = out[i];
    return SINTER_OK;
}

sinter_status reference_row_run(const kernel_run *k)
{
    const record *r = k->record;
    const problem *p = r->p;
    view *at = ARENA_NEW(k->scratch, view, size_add(p->count_in, p->count_out));
    if (!at) return FAIL_MEMORY(k->e, "a reference kernel's views");
    memcpy(at, r->at, sizeof(view) * (p->count_in + p->count_out));
    for (uint32_t i = 0; i < p->count_in; i++) at[i].data = k->in[i];
    for (uint32_t i = 0; i < p->count_out; i++) at[p->count_in + i].data = k->out[i];
    ref_call c = {
        .e = k->e,
        .op = p->op,
        .attrs = r->attrs,
        .count_in = p->count_in,
        .count_out = p->count_out,
        .in = at,
        .out = at + p->count_in,
        .program = p->op == OP_pointwise ? p->epilogue : NULL,
        .in_f32 = true,
        .scratch = k->scratch,
        .fault = k->fault,
    };
    return problem_reference(p, &c);
}
