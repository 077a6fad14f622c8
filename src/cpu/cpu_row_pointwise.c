/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_row_pointwise.c - programs without an anchor, and single elementwise ops, on the tile machine. */
#include "cpu/cpu_kernels.h"
#include "cpu/row.h"

typedef struct record {
    vm_program program;
} record;

enum { ARITY_MAX = 3 };

/* A scalar op as a program, written at s: its loads, itself, a store. */
static const expr *program_of(const problem *p, expr *s)
{
    if (p->op == OP_pointwise) return p->epilogue;
    const uint32_t arity = scalar_at(p->op)->arity;
    for (uint32_t i = 0; i < arity; i++)
        s->at[i] = (expr_instr){ .op = EXPR_LOAD, .operand = (uint16_t)i, .dtype = (uint8_t)p->in[i].dtype };
    s->at[arity] = (expr_instr){ .op = (uint16_t)p->op, .dtype = (uint8_t)p->out[0].dtype, .arg = { 0, 1, 2 } };
    for (uint32_t i = arity; i < 3; i++) s->at[arity].arg[i] = 0;
    s->at[arity + 1] = (expr_instr){ .op = EXPR_STORE, .dtype = (uint8_t)p->out[0].dtype, .arg = { (uint16_t)arity } };
    s->count = arity + 2;
    return s;
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_pointwise || op_is_scalar(p->op), "not elementwise");
    REJECT_UNLESS(!p->prologue && (p->op == OP_pointwise || !p->epilogue), "an elementwise op takes no programs");
    REJECT_UNLESS(p->op != OP_pointwise || p->epilogue, "has no program");
    REJECT_UNLESS(p->count_in <= EXPR_MAX && p->count_out <= EXPR_MAX, "has too many operands");
    sinter_dtype in[EXPR_MAX], out[EXPR_MAX];
    for (uint32_t i = 0; i < p->count_in; i++) in[i] = p->in[i].dtype;
    for (uint32_t i = 0; i < p->count_out; i++) out[i] = p->out[i].dtype;
    if (p->op == OP_pointwise) return vm_reject(p->epilogue, p->count_in, in, p->count_out, out);
    for (uint32_t i = 0; i < p->count_in; i++)
        REJECT_UNLESS(sinter_dtype_bits(in[i]) >= 8, "an operand's type is under a byte");
    REJECT_UNLESS(sinter_dtype_bits(out[0]) >= 8, "a result's type is under a byte");
    return NULL;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    double ops = 1;
    if (p->epilogue) ops = p->epilogue->count;
    const double threads = target->threads ? target->threads : 1, flops = target->flops > 0 ? target->flops : 1e10;
    return row_memory_ns(p, target, 1) + ops * row_operand_bytes(&p->out[0]) * 2 / flops * 1e9 / threads;
}

static size_t record_size(const problem *p, const tactic *t)
{
    (void)t;
    _Alignas(expr) unsigned char own[sizeof(expr) + (ARITY_MAX + 2) * sizeof(expr_instr)];
    return sizeof(record) + vm_room(program_of(p, (expr *)(void *)own));
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    (void)attrs;
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    _Alignas(expr) unsigned char own[sizeof(expr) + (ARITY_MAX + 2) * sizeof(expr_instr)];
    return vm_bind(e, &r->program, r + 1, isa, program_of(p, (expr *)(void *)own), out[0].rank, out[0].dim, NULL, false,
                   in, out);
}

typedef struct job {
    const vm_program *program;
    vm_io io;
} job;

static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    vm_run(j->program, &j->io, begin, end);
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { &r->program, { k->in, k->out } };
    row_parallel(k, vm_tile_count(&r->program), body, &j);
    return SINTER_OK;
}

const kernel cpu_pointwise = {
    .name = "cpu_pointwise",
    .abi = 1,
    .out_strides = STRIDES_ANY,
    .is_in_place = true,
    .reject = reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record_size = record_size,
    .bind = bind,
    .run = run,
};
