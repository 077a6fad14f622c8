/* SPDX-License-Identifier: Apache-2.0 */
/* vm_line.c - programs of one or two instructions, whose loop needs neither slots nor steps. */
#include "cpu/vm_chain.h"

#include <string.h>

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
    const bool is_byte =
        from->dtype == SINTER_DTYPE_U8 || from->dtype == SINTER_DTYPE_I8 || from->dtype == SINTER_DTYPE_BOOL;
    if (is_byte && cast->op == OP_cast && to->dtype == SINTER_DTYPE_I32) return set->load[from->dtype];
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

static void line_find(vm_program *p)
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
        vm_fn *const *form = op->fn == p->set->i32[op->op][0] ? p->set->i32[op->op] : p->set->binary[op->op];
        if (op->arity != 2 || op->fn != form[0] || has_one[0] == has_one[1]) return;
        l.fn = form[has_one[1] ? 1 : 2];
        if (!l.fn) return;
        l.is_uneven = true;
    }
    p->line = l;
    p->chain_once = p->chain_once || is_once;
}

/* ---- rows that are scaled or moved, or products of rows ---- */

/* The operand that value v is loaded from; NULL: v is something else. */
static const vm_operand *loaded(const vm_program *p, uint16_t v, uint8_t *at)
{
    for (uint32_t i = p->once_count; i < p->op_count; i++) {
        const vm_op *op = &p->op[i];
        if (op->kind == VM_STORE || op->dst != v) continue;
        *at = (uint8_t)op->operand;
        return op->kind == VM_LOAD ? &p->operand[op->operand] : NULL;
    }
    return NULL;
}

static bool is_along(const vm_program *p, const vm_operand *o)
{
    return o && (o->index == VM_ACC || o->stride[p->axes - 1] == 1);
}

static bool is_one_a_row(const vm_program *p, const vm_operand *o)
{
    return o && o->index != VM_ACC && !o->stride[p->axes - 1];
}

/* Takes an op of f32 apart: *rest is what runs along the row, *one the operand that is the same in all of it. */
static bool rows_split(const vm_program *p, const vm_op *op, uint16_t *rest, uint8_t *one)
{
    if (op->arity != 2 || op->fn != p->set->binary[op->op][0]) return false;
    for (uint32_t k = 0; k < 2; k++) {
        const vm_operand *o = loaded(p, op->arg[k], one);
        if (!is_one_a_row(p, o) || o->dtype != SINTER_DTYPE_F32) continue;
        *rest = op->arg[!k];
        return true;
    }
    return false;
}

/* Rows of f32 times a number, plus a number, or both. first: NULL where there is one instruction. */
static vm_rows_fn *rows_affine(const vm_program *p, const vm_op *first, const vm_op *last, vm_line *l)
{
    const vm_op *const mul = first || last->op == OP_add ? first : last, *const add = mul == last ? NULL : last;
    uint16_t rest = last->dst;
    if (add && (add->op != OP_add || !rows_split(p, add, &rest, &l->of[1]))) return NULL;
    if (mul && (mul->op != OP_mul || rest != mul->dst || !rows_split(p, mul, &rest, &l->of[0]))) return NULL;
    const vm_operand *x = loaded(p, rest, &l->x);
    if (!is_along(p, x) || x->dtype != SINTER_DTYPE_F32) return NULL;
    return !mul ? p->set->rows_add : add ? p->set->rows_mul_add : p->set->rows_mul;
}

/* Rows of codes, with a scale and perhaps a zero point each. */
static vm_rows_fn *rows_codes(const vm_program *p, const vm_op *op, vm_line *l)
{
    if (op->arity != 3 || op->fn != p->set->dequantize || op->to != SINTER_DTYPE_F32) return NULL;
    const vm_operand *x = loaded(p, op->arg[0], &l->x), *scale = loaded(p, op->arg[1], &l->of[0]);
    if (!is_along(p, x) || !is_one_a_row(p, scale) || scale->dtype != SINTER_DTYPE_F32) return NULL;
    const vm_operand *zero = loaded(p, op->arg[2], &l->of[1]);
    if (zero && (!is_one_a_row(p, zero) || zero->dtype != x->dtype)) return NULL;
    if (!zero) {
        const vm_op *imm = NULL;
        for (uint32_t i = 0; i < p->op_count; i++)
            if (p->op[i].kind == VM_IMM && p->op[i].dst == op->arg[2]) imm = &p->op[i];
        if (!imm) return NULL;
        l->zero = (int32_t)imm->imm.i;
        l->of[1] = VM_NO_OPERAND;
    }
    return x->dtype == SINTER_DTYPE_U8   ? p->set->rows_dequantize[0]
           : x->dtype == SINTER_DTYPE_I8 ? p->set->rows_dequantize[1]
                                         : NULL;
}

/* A product of two operands of f32 that run along the row. */
static bool is_product(const vm_program *p, const vm_op *op, uint8_t *a, uint8_t *b)
{
    const vm_operand *x = loaded(p, op->arg[0], a), *y = loaded(p, op->arg[1], b);
    return op->op == OP_mul && op->fn == p->set->binary[OP_mul][0] && is_along(p, x) && is_along(p, y) &&
           x->dtype == SINTER_DTYPE_F32 && y->dtype == SINTER_DTYPE_F32;
}

static void exchange(uint8_t *a, uint8_t *b)
{
    const uint8_t t = *a;
    *a = *b;
    *b = t;
}

/* The sum or difference of two products: what turns pairs of numbers by an angle. */
static vm_rows_fn *rows_products(const vm_program *p, const vm_op *const *op, vm_line *l)
{
    const vm_op *const last = op[2];
    if ((last->op != OP_add && last->op != OP_sub) || last->fn != p->set->binary[last->op][0]) return NULL;
    const uint32_t at = last->arg[0] == op[1]->dst;
    if (last->arg[0] != op[at]->dst || last->arg[1] != op[!at]->dst) return NULL;
    uint8_t of[4];
    if (!is_product(p, op[at], &of[0], &of[1]) || !is_product(p, op[!at], &of[2], &of[3])) return NULL;
    const vm_operand *o = p->operand;
    if (last->op == OP_add && (o[of[0]].swap || o[of[1]].swap)) { /* the swapped one is b */
        exchange(&of[0], &of[2]);
        exchange(&of[1], &of[3]);
    }
    if (o[of[3]].swap) exchange(&of[2], &of[3]);
    if (o[of[0]].swap || o[of[1]].swap || o[of[3]].swap) return NULL;
    l->is_products = true;
    l->x = of[0];
    memcpy(l->of, of + 1, sizeof l->of);
    l->run = o[of[2]].swap > 1 ? o[of[2]].swap : 0;
    return p->set->rows_products[o[of[2]].swap == 1][last->op == OP_sub];
}

/* Whether a program does the same to each row, with numbers of the row's own or rows as operands. */
static void rows_find(vm_program *p)
{
    const vm_op *op[3] = { NULL }, *store = NULL;
    uint32_t count = 0;
    for (uint32_t i = p->once_count; i < p->op_count; i++) {
        if (p->op[i].kind == VM_LOAD || p->op[i].kind == VM_IMM) continue;
        if (p->op[i].kind == VM_COMPUTE ? count == 3 : store != NULL) return;
        if (p->op[i].kind == VM_COMPUTE) op[count++] = &p->op[i];
        else store = &p->op[i];
    }
    const vm_op *const last = count ? op[count - 1] : NULL;
    if (!last || !store || p->cols == 1 || store->arg[0] != last->dst) return;
    const vm_operand *to = &p->operand[store->operand];
    if (to->dtype != SINTER_DTYPE_F32 || !is_along(p, to)) return;
    vm_line l = p->line;
    l.of[0] = l.of[1] = l.of[2] = VM_NO_OPERAND;
    l.rows = count == 3                       ? rows_products(p, op, &l)
             : count == 1 && last->arity == 3 ? rows_codes(p, last, &l)
                                              : rows_affine(p, count == 2 ? op[0] : NULL, last, &l);
    if (!l.rows) return;
    l.to = (uint8_t)store->operand;
    p->line = l;
}

void vm_line_find(vm_program *p)
{
    line_find(p);
    rows_find(p);
}
