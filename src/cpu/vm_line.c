/* SPDX-License-Identifier: Apache-2.0 */
/* vm_line.c - programs of one instruction, whose loop needs neither slots nor steps. */
#include "cpu/vm_chain.h"

/* Memory holds what a register of 32 bits does. */
static bool is_word(const vm_operand *o)
{
    return o->dtype == SINTER_DTYPE_F32 || o->dtype == SINTER_DTYPE_I32;
}

/* Where value v lies. has_one: one element stands for a whole run. */
static bool find(const vm_program *p, uint16_t v, uint8_t *at, bool *has_one)
{
    for (uint32_t i = 0; i < p->op_count; i++) {
        const vm_op *op = &p->op[i];
        if (op->kind == VM_STORE || op->dst != v) continue;
        *has_one = i < p->once_count;
        *at = (uint8_t)(*has_one ? VM_LINE_SCALAR + v : op->operand);
        if (*has_one) return !op->is_full; /* a full one ends with the tile */
        const vm_operand *o = &p->operand[op->operand];
        *has_one = o->index != VM_ACC && p->cols != 1 && !o->stride[p->axes - 1];
        return op->kind == VM_LOAD && is_word(o);
    }
    return false;
}

/* What a cast of an operand into the result does in one loop; NULL: it takes more. */
static vm_convert_fn *convert_of(const vm_program *p, const vm_op *cast, const vm_operand *from, const vm_operand *to)
{
    const vm_set *set = p->set;
    const bool is_row = from->index != VM_ACC && (p->cols == 1 || from->stride[p->axes - 1]);
    if (!is_row) return NULL;
    if (cast->fn == set->unary[OP_identity] && to->dtype == SINTER_DTYPE_F32) return set->load[from->dtype];
    if (from->dtype != SINTER_DTYPE_F32) return NULL;
    if (cast->fn == set->float_to_bool && to->dtype == SINTER_DTYPE_BOOL) return set->float_to_byte;
    if (cast->fn == set->round_f16 && to->dtype == SINTER_DTYPE_F16) return set->store[SINTER_DTYPE_F16];
    if (cast->fn == set->round_bf16 && to->dtype == SINTER_DTYPE_BF16) return set->store[SINTER_DTYPE_BF16];
    return NULL;
}

/* Whether a program of a load, a cast and a store is one loop. */
static bool convert_find(vm_program *p, const vm_op *cast, const vm_op *store)
{
    for (uint32_t i = p->once_count; i < p->op_count; i++) {
        const vm_op *load = &p->op[i];
        if (load->kind != VM_LOAD || load->dst != cast->arg[0] || cast->arity != 1) continue;
        vm_convert_fn *fn = convert_of(p, cast, &p->operand[load->operand], &p->operand[store->operand]);
        if (!fn) return false;
        p->line =
            (vm_line){ .convert = fn, .op = cast, .at = { (uint8_t)load->operand }, .to = (uint8_t)store->operand };
        return true;
    }
    return false;
}

void vm_line_find(vm_program *p)
{
    const vm_op *op = NULL, *store = NULL;
    for (uint32_t i = p->once_count; i < p->op_count; i++) {
        const vm_op **const to = p->op[i].kind == VM_COMPUTE ? &op : p->op[i].kind == VM_STORE ? &store : NULL;
        if (!to) continue;
        if (*to) return;
        *to = &p->op[i];
    }
    if (!op || !store || store->arg[0] != op->dst || convert_find(p, op, store)) return;
    /* A chain has a way of its own for squares. */
    if (op->op == OP_pow || !is_word(&p->operand[store->operand])) return;
    vm_line l = { .fn = op->fn, .op = op, .to = (uint8_t)store->operand };
    bool has_one[3] = { false }, is_once = false;
    for (uint32_t k = 0; k < 3; k++) {
        if (!find(p, op->arg[k], &l.at[k], &has_one[k])) return;
        is_once = is_once || l.at[k] >= VM_LINE_SCALAR;
    }
    bool is_even = true; /* the loop takes operands as they are */
    for (uint32_t k = 0; k < op->arity; k++) is_even = is_even && (!has_one[k] || l.at[k] >= VM_LINE_SCALAR);
    if (!is_even) {
        vm_fn *const *form = p->set->binary[op->op];
        if (op->arity != 2 || op->fn != form[0] || has_one[0] == has_one[1]) return;
        l.fn = form[has_one[1] ? 1 : 2];
        if (!l.fn) return;
    }
    p->line = l;
    p->chain_once = p->chain_once || is_once;
}
