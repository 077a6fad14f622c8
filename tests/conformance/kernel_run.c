/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_run.c - one problem on one kernel of the CPU. */
#include "kernel_run.h"

#include "cpu/cpu_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* As programs do: a step without results is neither bound nor run. */
static bool has_results(const case_trial *x)
{
    for (uint32_t i = 0; i < x->p->count_out; i++)
        if (x->out[i].dtype != SINTER_DTYPE_NONE && view_count(&x->out[i]) > 0) return true;
    return false;
}

/* Operands as a program gives them. Inputs are alone in their memory, so that sanitizers see what is read beside them.
 */
typedef struct operands {
    void *in[CASE_OPERANDS], *out[CASE_OPERANDS], *own[CASE_OPERANDS];
    view view_in[CASE_OPERANDS], view_out[CASE_OPERANDS];
} operands;

static const char *open_operands(case_rig *r, const kernel *k, const tactic *t, const problem *p, case_trial *x,
                                 operands *o)
{
    for (uint32_t i = 0; i < p->count_in; i++) {
        o->view_in[i] = x->in[i];
        o->view_in[i].data = NULL;
        if (p->in[i].dtype == SINTER_DTYPE_NONE) continue;
        const size_t packed = p->in[i].is_const && k->pack_size ? k->pack_size(p, t, i) : 0;
        if (packed) {
            o->in[i] = case_guarded(r, packed, 0xFF);
            k->pack(p, t, i, &x->in[i], o->in[i]);
            if (!case_guards_hold(o->in[i], packed, 0xFF)) return "packing wrote beyond its size";
            continue;
        }
        if (posix_memalign(&o->own[i], 64, x->in_size[i] ? x->in_size[i] : 1) != 0) exit(2);
        if (x->in_size[i]) memcpy(o->own[i], x->in[i].data, x->in_size[i]);
        o->in[i] = o->own[i];
        if (p->in[i].is_const) o->view_in[i].data = o->in[i];
    }
    for (uint32_t i = 0; i < p->count_out; i++) {
        o->out[i] = x->out[i].data = case_guarded(r, x->out_size[i], 0xFF);
        o->view_out[i] = x->out[i];
        o->view_out[i].data = NULL;
    }
    return NULL;
}

static const char *run_on(case_rig *r, const kernel *k, const tactic *t, const problem *p, case_trial *x,
                          const parallel *workers, const operands *o)
{
    const size_t book = k->workspace ? k->workspace(p, t, workers ? workers->threads : 1) : 0,
                 record = kernel_record_size(k, p, t);
    void *workspace = case_guarded(r, book, 0xFF), *to = case_guarded(r, record, 0xAB);
    if (k->unbind) memset(to, 0, record);
    if (k->bind(&r->e, p, t, x->p->attrs, o->view_in, o->view_out, to) != SINTER_OK) return r->e.error->text;
    if (!case_guards_hold(to, record, 0xAB)) return "bind wrote beyond the record";
    data_fault fault = { 0 };
    const kernel_run run = { .record = to,
                             .in = o->in,
                             .out = o->out,
                             .workspace = workspace,
                             .parallel = workers,
                             .fault = &fault,
                             .e = &r->e,
                             .scratch = &r->scratch };
    const arena_mark mark = arena_save(&r->scratch);
    const sinter_status s = k->run(&run);
    if (k->unbind) k->unbind(to);
    arena_rewind(&r->scratch, mark);
    if (s != SINTER_OK) return r->e.error->text;
    if (!case_guards_hold(workspace, book, 0xFF)) return "wrote beyond the workspace";
    for (uint32_t i = 0; i < p->count_out; i++)
        if (!case_guards_hold(o->out[i], x->out_size[i], 0xFF)) return "wrote outside a result";
    return NULL;
}

const char *kernel_run_case(case_rig *r, const kernel *k, const tactic *t, const problem *p, case_trial *x,
                            const parallel *workers, char *why, size_t size)
{
    if (!k->check(p, t)) return "check refuses a tactic that tactics gave";
    if (k->cost_ns) {
        const kernel_target target = cpu_target_of(kernel_machine(), 1);
        const double cost = k->cost_ns(p, t, &target);
        if (!(cost > 0) || isinf(cost)) return "the cost is no positive number";
    }
    operands o = { 0 };
    const char *wrong = open_operands(r, k, t, p, x, &o);
    if (!wrong && has_results(x)) wrong = run_on(r, k, t, p, x, workers, &o);
    for (uint32_t i = 0; i < CASE_OPERANDS; i++) free(o.own[i]);
    return wrong ? wrong : case_check(r, x, k->numerics, why, size);
}

isa_choice kernel_machine(void)
{
    static isa_choice machine;
    static bool is_known;
    if (!is_known) machine = isa_detect();
    is_known = true;
    return machine;
}

bool kernel_is_for_machine(const kernel *k)
{
    return !strstr(k->name, "_split") || kernel_machine().features & ISA_AMX_TILE;
}

void kernel_new_tactics(tactic_sink *list, tactic_sink *before)
{
    const tactic_sink all = *list;
    list->count = 0;
    for (uint32_t i = 0; i < all.count; i++) {
        bool is_known = false;
        for (uint32_t k = 0; k < before->count && !is_known; k++)
            is_known = !memcmp(&all.at[i], &before->at[k], sizeof all.at[i]);
        if (!is_known) list->at[list->count++] = all.at[i];
    }
    *before = all;
}
