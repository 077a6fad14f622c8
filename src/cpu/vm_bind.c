/* SPDX-License-Identifier: Apache-2.0 */
/* vm_bind.c - compiling an expression for known shapes: axes merged, loops chosen, values given slots.
 *
 * What depends on scalars alone comes first and is computed once a call. Stores come last, and only the last computing
 * instruction may write into memory itself: a result may lie where an operand does, which is read until then. */
#include "cpu/vm_chain.h"
#include "cpu/level.h"

#include "core/dtype.h"
#include <string.h>

typedef struct binder {
    vm_program *p;
    const expr *x;
    const view *in, *out;
    uint32_t rank;
    int64_t dim[SINTER_RANK_MAX]; /* in order of work */
    int64_t stride[EXPR_MAX][SINTER_RANK_MAX];
    uint8_t type[EXPR_MAX]; /* of each value */
    bool is_scalar[EXPR_MAX], is_full[EXPR_MAX];
    uint32_t uses[EXPR_MAX];
    bool is_left_out[EXPR_MAX]; /* a round trip has it, or nobody reads it */
    uint16_t trip_from[EXPR_MAX];
    round_trip trip[EXPR_MAX];   /* of dequantize, where scale is not 0 */
    uint16_t last_use[EXPR_MAX]; /* index of an op */
} binder;

static bool type_is_taken(sinter_dtype t)
{
    return sinter_dtype_bits(t) >= 8;
}

const char *vm_reject(const expr *x, uint32_t count_in, const sinter_dtype *in, uint32_t count_out,
                      const sinter_dtype *out)
{
    for (uint32_t i = 0; i < x->count; i++) {
        const expr_instr *n = &x->at[i];
        if (n->op == EXPR_REDUCE) return "the program reduces";
        if (n->op == EXPR_LOAD && (n->operand >= count_in || !type_is_taken(in[n->operand])))
            return "an operand's type is under a byte";
        if (n->op == EXPR_STORE && (n->operand >= count_out || !type_is_taken(out[n->operand])))
            return "a result's type is under a byte";
        if (n->op < OP_SCALAR_COUNT && !type_is_taken((sinter_dtype)n->dtype)) return "a value's type is under a byte";
    }
    return NULL;
}

/* ---- the space ---- */

/* Elements of a unit; columns at once where an operand lies across. */
enum { UNIT = 16384, ACROSS_COLS = 32 };

static int64_t magnitude(int64_t v)
{
    return v < 0 ? -v : v;
}

/* Axes by the strides of result 0, largest first; equal ones keep their order. */
static void memory_order(uint32_t rank, const int64_t *dim_at, const view *out, uint8_t *order)
{
    for (uint32_t i = 0; i < rank; i++) order[i] = (uint8_t)i;
    for (uint32_t i = 1; i < rank; i++) {
        for (uint32_t j = i; j > 0; j--) {
            const uint32_t a = order[j - 1], b = order[j];
            if (dim_at[a] == 1 || dim_at[b] == 1 || magnitude(out->stride[a]) >= magnitude(out->stride[b])) break;
            order[j - 1] = (uint8_t)b;
            order[j] = (uint8_t)a;
        }
    }
}

static bool can_merge(const binder *b, uint32_t outer, uint32_t inner, int64_t inner_dim)
{
    for (uint32_t k = 0; k < b->p->operand_count; k++)
        if (b->p->operand[k].index != VM_ACC && b->stride[k][outer] != b->stride[k][inner] * inner_dim) return false;
    return true;
}

/* Drops axes of size 1 and merges neighbours; `split` leaves the last axis alone. */
static void collapse(binder *b, bool split)
{
    vm_program *p = b->p;
    uint32_t n = 0;
    for (uint32_t a = 0; a < b->rank; a++) {
        const bool is_col = a + 1 == b->rank && split;
        if (b->dim[a] == 1 && !is_col) continue;
        if (n && !is_col && can_merge(b, n - 1, a, b->dim[a])) {
            b->dim[n - 1] *= b->dim[a];
            for (uint32_t k = 0; k < p->operand_count; k++) b->stride[k][n - 1] = b->stride[k][a];
            continue;
        }
        b->dim[n] = b->dim[a];
        for (uint32_t k = 0; k < p->operand_count; k++) b->stride[k][n] = b->stride[k][a];
        n++;
    }
    if (!n) {
        b->dim[0] = 1;
        for (uint32_t k = 0; k < p->operand_count; k++) b->stride[k][0] = 0;
        n = 1;
    }
    p->axes = n;
    p->rows = 1;
    for (uint32_t a = 0; a < n; a++) {
        p->dim[a] = b->dim[a];
        if (a + 1 < n) p->rows *= b->dim[a];
        for (uint32_t k = 0; k < p->operand_count; k++) p->operand[k].stride[a] = b->stride[k][a];
    }
    p->cols = p->dim[n - 1];
}

/* Tiles cover rows of one axis: where it is short, the longest axis takes its place, or, of the few halves of rows, the
 * nearest that is longer. */
enum { SHORT_ELEMENTS = 64, HALVES = 4, HALF_ELEMENTS = 512 };
static void lengthen(vm_program *p)
{
    if (p->axes < 3) return;
    const uint32_t inner = p->axes - 2;
    const int64_t count = p->dim[inner] * p->cols;
    uint32_t most = inner;
    if (count >= SHORT_ELEMENTS && p->dim[inner] <= HALVES && count <= HALF_ELEMENTS) {
        for (uint32_t a = inner; a-- > 0 && most == inner;)
            if (p->dim[a] > HALVES) most = a;
    }
    for (uint32_t a = 0; a < inner && count < SHORT_ELEMENTS; a++)
        if (p->dim[a] > p->dim[most]) most = a;
    if (most == inner) return;
    const int64_t dim_most = p->dim[most];
    p->dim[most] = p->dim[inner];
    p->dim[inner] = dim_most;
    for (uint32_t k = 0; k < p->operand_count; k++) {
        int64_t *stride = p->operand[k].stride, s = stride[most];
        stride[most] = stride[inner];
        stride[inner] = s;
    }
}

/* What a sum arrives in. */
static sinter_dtype acc_type(const expr_instr *acc)
{
    return acc->dtype == SINTER_DTYPE_I32 ? SINTER_DTYPE_I32 : SINTER_DTYPE_F32;
}

static void operands_find(binder *b)
{
    vm_program *p = b->p;
    for (uint32_t i = 0; i < b->x->count; i++) {
        const expr_instr *n = &b->x->at[i];
        if (n->op != EXPR_LOAD && n->op != EXPR_STORE && n->op != EXPR_ACC) continue;
        const view *v = n->op == EXPR_LOAD ? &b->in[n->operand] : n->op == EXPR_STORE ? &b->out[n->operand] : NULL;
        const sinter_dtype type = v ? v->dtype : acc_type(n);
        p->operand[p->operand_count++] = (vm_operand){
            .index = v ? n->operand : VM_ACC,
            .dtype = (uint8_t)type,
            .cls = (uint8_t)vm_class_of(type),
            .size = (uint8_t)(sinter_dtype_bits(type) / 8),
        };
    }
}

/* ---- instructions ---- */

static void use(binder *b, uint16_t value)
{
    b->is_full[value] = true;
}

/* The level's loop on integers or f64, `variant` of vm_set.binary; NULL: it has none. Results of types under 32 bits
 * may not be of the type. */
static vm_fn *wide_loop_of(const vm_set *set, const vm_op *op, int variant)
{
    const bool is_cast = op->op == OP_cast || op->op == OP_cast_wrap;
    const bool is_sum = op->op == OP_add || op->op == OP_sub || op->op == OP_mul || op->op == OP_div;
    const vm_class from = vm_class_of((sinter_dtype)op->from);
    if (is_cast)
        return variant                                                      ? NULL
               : from == VM_F32 && op->to == SINTER_DTYPE_I64               ? set->float_to_i64
               : op->from == SINTER_DTYPE_I64 && op->to == SINTER_DTYPE_F32 ? set->i64_to_float
               : from == VM_F64 && op->to == SINTER_DTYPE_F16               ? set->f64_to_f16
               : from == VM_F64 && op->to == SINTER_DTYPE_BF16              ? set->f64_to_bf16
                                                                            : NULL;
    if (from == VM_F64) return op->op == OP_exp ? set->exp_f64 : NULL;
    if (op->from == SINTER_DTYPE_I64) return set->i64[op->op][variant];
    return from == VM_I32 && (op->from == SINTER_DTYPE_I32 || !is_sum) ? set->i32[op->op][variant] : NULL;
}

/* Types that the level's loops round to. */
static bool is_vector_float(sinter_dtype type)
{
    return type == SINTER_DTYPE_F32 || type == SINTER_DTYPE_F16 || type == SINTER_DTYPE_BF16;
}

/* Picks the loop of a computing instruction; scalar arguments that it cannot take as one element are asked for in full.
 */
static void choose(binder *b, vm_op *op)
{
    const vm_set *set = b->p->set;
    const vm_class from = vm_class_of((sinter_dtype)op->from);
    const bool s0 = b->is_scalar[op->arg[0]], s1 = op->arity > 1 && b->is_scalar[op->arg[1]],
               s2 = op->arity > 2 && b->is_scalar[op->arg[2]];
    const int variant = op->arity != 2 ? 0 : s1 && !s0 ? 1 : s0 && !s1 ? 2 : 0;
    op->fn = NULL;
    if (op->trip.scale != 0) {
        op->fn = set->round_trip[op->trip.inverse != 0];
        return;
    }
    if (op->op == OP_cast || op->op == OP_cast_wrap) {
        const sinter_dtype to = (sinter_dtype)op->to;
        const vm_class cls = vm_class_of(to);
        if (from == VM_F32 && to == SINTER_DTYPE_BOOL) op->fn = set->float_to_bool;
        else if (from == VM_F32 && cls == VM_I32 && op->op == OP_cast) op->fn = set->float_to_int;
        else if (from == VM_I32 && to == SINTER_DTYPE_F32) op->fn = set->int_to_float;
        else if (from == VM_F32 && to == SINTER_DTYPE_F32) op->fn = set->unary[OP_identity];
        else if (from == VM_F32 && to == SINTER_DTYPE_F16) op->fn = set->round_f16;
        else if (from == VM_F32 && to == SINTER_DTYPE_BF16) op->fn = set->round_bf16;
    } else if (op->op == OP_quantize) {
        if (from == VM_F32 && vm_class_of((sinter_dtype)op->arg_type[1]) == VM_F32 &&
            vm_class_of((sinter_dtype)op->arg_type[2]) == VM_I32 && sinter_dtype_bits((sinter_dtype)op->to) <= 16 &&
            dtype_is_int((sinter_dtype)op->to))
            op->fn = set->quantize;
    } else if (op->op == OP_dequantize) {
        if (from == VM_I32 && op->from != SINTER_DTYPE_I32 && vm_class_of((sinter_dtype)op->arg_type[1]) == VM_F32 &&
            is_vector_float((sinter_dtype)op->to) && vm_class_of((sinter_dtype)op->arg_type[2]) == VM_I32)
            op->fn = set->dequantize;
    } else if (from == VM_F32 && op->op == OP_where) {
        op->fn = set->where;
    } else if (from == VM_F32 && op->arity == 1) {
        op->fn = set->unary[op->op];
    } else if (from == VM_F32 && op->arity == 2) {
        if (op->op == OP_pow && variant == 1 && vm_class_of((sinter_dtype)op->arg_type[1]) == VM_F32) {
            op->fn = set->pow_scalar;
            return;
        }
        const bool is_taken = op->op != OP_fmod || op->to == SINTER_DTYPE_F32;
        if (is_taken && set->binary[op->op][variant]) {
            op->fn = set->binary[op->op][variant];
            if (variant) return;
        } else if (is_taken) {
            op->fn = set->binary[op->op][0];
        }
    } else if (from == VM_F32 && op->arity == 3) {
        const int bounds = !s0 && s1 && s2;
        if (set->ternary[op->op][bounds]) {
            op->fn = set->ternary[op->op][bounds];
            if (bounds) return;
        }
    }
    if (!op->fn && variant) {
        op->fn = wide_loop_of(set, op, variant);
        if (op->fn) return;
    }
    if (!op->fn) op->fn = wide_loop_of(set, op, 0);
    if (!op->fn) op->fn = vm_basic_of(op);
    for (uint32_t k = 0; k < op->arity; k++)
        if (b->is_scalar[op->arg[k]]) use(b, op->arg[k]);
}

/* What scalar_eval is told: the type of the arguments, that of a and b for `where`. */
static sinter_dtype from_type(const binder *b, const expr_instr *n)
{
    return (sinter_dtype)b->type[n->arg[n->op == OP_where ? 1 : 0]];
}

static vm_op compute_op(binder *b, uint32_t i)
{
    const expr_instr *n = &b->x->at[i];
    vm_op op = { .kind = VM_COMPUTE,
                 .op = n->op,
                 .dst = (uint16_t)i,
                 .to = n->dtype,
                 .arity = (uint8_t)scalar_at((op_id)n->op)->arity };
    op.from = (uint8_t)from_type(b, n);
    for (uint32_t k = 0; k < 3; k++) op.arg[k] = k < op.arity ? n->arg[k] : n->arg[0];
    for (uint32_t k = 0; k < op.arity; k++) op.arg_type[k] = b->type[n->arg[k]];
    if (b->trip[i].scale == 0) return op;
    op.trip = b->trip[i];
    op.arity = 1;
    op.from = SINTER_DTYPE_F32;
    for (uint32_t k = 0; k < 3; k++) op.arg[k] = b->trip_from[i];
    return op;
}

/* Finds round trips; what only they read is left out. */
static void round_trips(binder *b)
{
    const expr *x = b->x;
    for (uint32_t i = 0; i < x->count; i++)
        for (uint32_t k = 0; k < expr_arity(&x->at[i]); k++) b->uses[x->at[i].arg[k]]++;
    for (uint32_t i = 0; i < x->count; i++) {
        round_trip trip;
        uint16_t from;
        if (!round_trip_find(x, b->uses, i, &trip, &from) || b->is_scalar[i]) continue;
        if (vm_class_of((sinter_dtype)b->type[from]) != VM_F32) continue;
        b->trip[i] = trip;
        b->trip_from[i] = from;
        for (uint16_t at = x->at[i].arg[0]; at != from; at = x->at[at].arg[0]) {
            b->is_left_out[at] = true;
            for (uint32_t k = 1; k < 3; k++) b->uses[x->at[at].arg[k]]--;
        }
        for (uint32_t k = 1; k < 3; k++) b->uses[x->at[i].arg[k]]--;
    }
}

/* Leaves out what nobody reads: a value without a use would have a slot and no end of its life. */
static void leave_out_unread(binder *b)
{
    for (uint32_t i = b->x->count; i-- > 0;) {
        const expr_instr *n = &b->x->at[i];
        if (n->op == EXPR_STORE || b->uses[i] || b->is_left_out[i]) continue;
        b->is_left_out[i] = true;
        if (b->trip[i].scale != 0) b->uses[b->trip_from[i]]--;
        else
            for (uint32_t k = 0; k < expr_arity(n); k++) b->uses[n->arg[k]]--;
    }
}

/* Emits instructions in four passes: scalars, the body, stores of what was loaded, stores of what was computed. */
static sinter_status emit(env *e, binder *b)
{
    vm_program *p = b->p;
    const expr *x = b->x;
    uint16_t operand_of[EXPR_MAX] = { 0 }, next = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        const expr_instr *n = &x->at[i];
        if (n->op == EXPR_LOAD || n->op == EXPR_STORE || n->op == EXPR_ACC) operand_of[i] = next++;
        b->type[i] = n->op == EXPR_ACC    ? (uint8_t)acc_type(n)
                     : n->op == EXPR_LOAD ? (uint8_t)b->in[n->operand].dtype
                                          : n->dtype;
        if (n->op == EXPR_IMM) {
            b->is_scalar[i] = true;
        } else if (n->op == EXPR_LOAD) {
            b->is_scalar[i] = p->operand[operand_of[i]].is_scalar;
        } else if (n->op < OP_SCALAR_COUNT) {
            b->is_scalar[i] = true;
            for (uint32_t k = 0; k < scalar_at((op_id)n->op)->arity; k++)
                b->is_scalar[i] = b->is_scalar[i] && b->is_scalar[n->arg[k]];
        }
    }
    round_trips(b);
    leave_out_unread(b);
    for (uint32_t pass = 0; pass < 4; pass++) {
        for (uint32_t i = 0; i < x->count; i++) {
            const expr_instr *n = &x->at[i];
            if (b->is_left_out[i]) continue;
            const bool is_store = n->op == EXPR_STORE;
            const uint32_t store_pass = is_store && x->at[n->arg[0]].op < OP_SCALAR_COUNT ? 3 : 2;
            if ((is_store ? store_pass : b->is_scalar[i] ? 0u : 1u) != pass) continue;
            vm_op *op = &p->op[p->op_count++];
            if (n->op < OP_SCALAR_COUNT) {
                *op = compute_op(b, i);
                choose(b, op);
                if (pass == 0)
                    for (uint32_t k = 0; k < op->arity; k++) use(b, op->arg[k]);
                if (pass == 0) op->is_full = 1;
                continue;
            }
            *op = (vm_op){ .kind = n->op == EXPR_IMM ? VM_IMM
                                   : is_store        ? VM_STORE
                                                     : VM_LOAD,
                           .dst = (uint16_t)i,
                           .to = b->type[i],
                           .operand = operand_of[i],
                           .imm = n->imm };
            if (!is_store) continue;
            const sinter_dtype stored = b->out[n->operand].dtype;
            if (vm_class_of(stored) != vm_class_of((sinter_dtype)b->type[n->arg[0]]))
                return FAIL(e, INTERNAL, "a program stores %s as %s without a cast",
                            sinter_dtype_name((sinter_dtype)b->type[n->arg[0]]), sinter_dtype_name(stored));
            op->arg[0] = n->arg[0];
            if (b->is_scalar[n->arg[0]]) use(b, n->arg[0]);
        }
        if (pass == 0) p->once_count = p->op_count;
    }
    for (uint32_t i = 0; i < p->once_count; i++) p->op[i].is_full = b->is_full[p->op[i].dst];
    return SINTER_OK;
}

/* Gives values slots by liveness; scalars keep theirs. Then the size of a tile follows. */
static void place(binder *b)
{
    vm_program *p = b->p;
    bool is_wide = false;
    for (uint32_t i = 0; i < p->op_count; i++) {
        const vm_op *op = &p->op[i];
        if (op->kind == VM_COMPUTE)
            for (uint32_t k = 0; k < op->arity; k++) b->last_use[op->arg[k]] = (uint16_t)i;
        if (op->kind == VM_STORE) {
            b->last_use[op->arg[0]] = (uint16_t)i;
            continue;
        }
        const vm_class cls = vm_class_of((sinter_dtype)op->to);
        is_wide = is_wide || cls == VM_F64 || cls == VM_I64;
    }
    bool is_taken[EXPR_MAX] = { false };
    uint32_t slots = 0;
    for (uint32_t i = 0; i < p->op_count; i++) {
        const vm_op *op = &p->op[i];
        if (op->kind != VM_STORE) {
            uint32_t s = 0;
            while (is_taken[s]) s++;
            is_taken[s] = true;
            p->slot[op->dst] = (uint8_t)s;
            if (s + 1 > slots) slots = s + 1;
        }
        if (i < p->once_count) continue;
        for (uint32_t v = 0; v < b->x->count; v++) {
            const uint16_t op_of = b->x->at[v].op;
            if (op_of != EXPR_STORE && !b->is_scalar[v] && !b->is_left_out[v] && b->last_use[v] == i && v != op->dst)
                is_taken[p->slot[v]] = false;
        }
    }
    const uint32_t width = is_wide ? 8 : 4;
    uint32_t tile = VM_SLOT_BYTES / width / (slots ? slots : 1) / 16 * 16;
    if (tile > VM_TILE) tile = VM_TILE;
    p->tile = (int32_t)tile;
    p->slot_size = tile * width;
}

/* A program of bool alone, with nothing that is computed once, works on bytes as they lie. */
static bool bytes_find(binder *b)
{
    vm_program *p = b->p;
    bool is_all = p->op_count && !p->once_count;
    for (uint32_t i = 0; i < p->operand_count; i++)
        is_all = is_all && p->operand[i].dtype == SINTER_DTYPE_BOOL && p->operand[i].index != VM_ACC;
    for (uint32_t i = 0; i < p->op_count; i++) {
        const vm_op *op = &p->op[i];
        is_all = is_all && op->kind != VM_IMM &&
                 (op->kind != VM_COMPUTE || (op->to == SINTER_DTYPE_BOOL && p->set->byte[op->op]));
    }
    if (!is_all) return false;
    for (uint32_t i = 0; i < p->operand_count; i++) p->operand[i].cls = VM_BYTE;
    for (uint32_t i = 0; i < p->op_count; i++)
        if (p->op[i].kind == VM_COMPUTE) p->op[i].fn = p->set->byte[p->op[i].op];
    const uint32_t slots = VM_SLOT_BYTES / p->slot_size, most = VM_SLOT_BYTES / slots / 64 * 64;
    p->slot_size = most < VM_TILE_BYTES ? most : VM_TILE_BYTES;
    p->tile = (int32_t)p->slot_size;
    return true;
}

/* The last computing instruction may write into a result that stores it. */
static void direct_find(vm_program *p)
{
    uint32_t last = p->op_count;
    for (uint32_t i = p->once_count; i < p->op_count; i++)
        if (p->op[i].kind == VM_COMPUTE) last = i;
    if (last == p->op_count) return;
    for (uint32_t i = 0; i < p->op_count; i++) { /* a stored load may be a pointer into what would be overwritten */
        if (p->op[i].kind != VM_STORE) continue;
        for (uint32_t j = p->once_count; j < i; j++)
            if (p->op[j].kind == VM_LOAD && p->op[j].dst == p->op[i].arg[0]) return;
    }
    for (uint32_t i = last + 1; i < p->op_count; i++) {
        if (p->op[i].kind != VM_STORE || p->op[i].arg[0] != p->op[last].dst) continue;
        const vm_operand *o = &p->operand[p->op[i].operand];
        if (o->cls != VM_BYTE && vm_class_of((sinter_dtype)p->op[last].to) != o->cls) continue;
        p->op[last].operand = (uint16_t)(p->op[i].operand + 1u);
        return;
    }
}

/* Where an argument is read from memory, has one element a row, and nothing else is done with it, the instruction takes
 * row after row. */
enum { BY_ROW_COLS = 32 };
static void by_row_find(binder *b)
{
    vm_program *p = b->p;
    for (uint32_t i = p->once_count; i < p->op_count && p->cols >= BY_ROW_COLS; i++) {
        vm_op *op = &p->op[i];
        if (op->kind != VM_COMPUTE || op->arity != 2 || op->fn != wide_loop_of(p->set, op, 0)) continue;
        for (uint32_t j = p->once_count; j < i && !op->by_row; j++) {
            vm_op *load = &p->op[j];
            const vm_operand *o = &p->operand[load->operand];
            const uint8_t at = op->arg[1] == load->dst;
            if (load->kind != VM_LOAD || o->index == VM_ACC || o->stride[p->axes - 1] || op->arg[at] != load->dst ||
                op->arg[!at] == load->dst || b->uses[load->dst] != 1 || o->dtype != SINTER_DTYPE_I64)
                continue;
            op->by_row = wide_loop_of(p->set, op, at ? 1 : 2);
            op->one_at = at;
            op->one_operand = load->operand;
            load->is_one = op->by_row != NULL;
        }
    }
}

static void units(vm_program *p)
{
    const uint32_t last = p->axes - 1;
    p->tile_cols = p->tile;
    for (uint32_t k = 0; k < p->operand_count && last; k++) {
        const vm_operand *o = &p->operand[k];
        if (o->index != VM_ACC && o->stride[last - 1] == 1 && magnitude(o->stride[last]) > 1 && p->cols > ACROSS_COLS)
            p->tile_cols = ACROSS_COLS < p->tile ? ACROSS_COLS : p->tile;
    }
    p->unit_cols = p->cols < UNIT ? p->cols : UNIT;
    for (uint32_t k = 0; k < p->operand_count && p->unit_cols < p->cols; k++)
        if (p->operand[k].swap) p->unit_cols = UNIT / (2 * p->operand[k].swap) * 2 * p->operand[k].swap;
    if (p->unit_cols < 1) p->unit_cols = 1;
    p->unit_rows = UNIT / p->unit_cols;
}

/* Steps of the three chains of a program: a load, a function and a spill for each instruction at most. */
static uint32_t chain_room(uint32_t count)
{
    return VM_LIES * (3 * count + 2);
}

size_t vm_room(const expr *x)
{
    return x ? x->count * (sizeof(vm_operand) + sizeof(vm_op)) + chain_room(x->count) * sizeof(vm_step) : 0;
}

/* Operands that read an axis of two backwards: two elements that lie together, or two runs. */
static void swapped_find(binder *b)
{
    uint32_t n = 0, at[SINTER_RANK_MAX] = { 0 };
    for (uint32_t a = 0; a < b->rank; a++)
        if (b->dim[a] != 1) at[n++] = a;
    for (uint32_t k = 0; k < b->p->operand_count; k++) {
        vm_operand *o = &b->p->operand[k];
        int64_t *stride = b->stride[k];
        if (o->index == VM_ACC || !n) continue;
        const uint32_t last = at[n - 1], pair = stride[last] == 1 && n > 1 ? at[n - 2] : last;
        const int64_t run = pair == last ? 1 : b->dim[last];
        if (b->dim[pair] != 2 || stride[pair] != -run || run > UNIT / 2) continue;
        o->swap = (int32_t)run;
        stride[pair] = run;
    }
}

static sinter_status bind_as(env *e, vm_program *p, void *room, isa_level isa, const expr *x, uint32_t rank,
                             const int64_t *dim_at, const uint8_t *order, bool split, const view *in, const view *out,
                             bool may_swap)
{
    memset(p, 0, sizeof *p);
    p->op = room;
    p->operand = (vm_operand *)(void *)(p->op + x->count);
    vm_step *step = (vm_step *)(void *)(p->operand + x->count);
    p->set = level_of(isa)->vm;
    binder b = { .p = p, .x = x, .in = in, .out = out, .rank = rank };
    if (x->count > EXPR_MAX)
        return FAIL(e, INTERNAL, "a program has %u instructions, at most %d are possible", x->count, EXPR_MAX);
    operands_find(&b);
    uint8_t own[SINTER_RANK_MAX];
    if (!order) {
        memory_order(rank, dim_at, &out[0], own);
        order = own;
    }
    for (uint32_t i = 0; i < rank; i++) b.dim[i] = dim_at[order[i]];
    for (uint32_t i = 0, k = 0; i < x->count; i++) {
        const expr_instr *n = &x->at[i];
        if (n->op != EXPR_LOAD && n->op != EXPR_STORE && n->op != EXPR_ACC) continue;
        vm_operand *o = &p->operand[k];
        if (n->op != EXPR_ACC) {
            view v;
            if (!view_broadcast(n->op == EXPR_LOAD ? &in[n->operand] : &out[n->operand], rank, dim_at, &v))
                return FAIL(e, INTERNAL, "operand %u of a program does not fit its space", n->operand);
            o->is_scalar = n->op == EXPR_LOAD;
            for (uint32_t a = 0; a < rank; a++) {
                b.stride[k][a] = dim_at[order[a]] == 1 ? 0 : v.stride[order[a]];
                if (b.stride[k][a]) o->is_scalar = false;
            }
        }
        k++;
    }
    if (may_swap) swapped_find(&b);
    collapse(&b, split);
    if (!split) lengthen(p);
    TRY(emit(e, &b));
    place(&b);
    const bool is_bytes = bytes_find(&b);
    direct_find(p);
    if (!is_bytes) by_row_find(&b);
    units(p);
    if (!is_bytes) vm_chain_bind(p, isa, step, chain_room(x->count));
    return SINTER_OK;
}

sinter_status vm_bind(env *e, vm_program *p, void *room, isa_level isa, const expr *x, uint32_t rank,
                      const int64_t *dim_at, const uint8_t *order, bool split, const view *in, const view *out)
{
    TRY(bind_as(e, p, room, isa, x, rank, dim_at, order, split, in, out, !split));
    bool is_read = p->line.is_products, has_swapped = false; /* only products read runs that are swapped in one row */
    for (uint32_t k = 0; k < p->operand_count; k++) {
        if (!p->operand[k].swap) continue;
        has_swapped = true;
        is_read = is_read && p->cols % (2 * p->operand[k].swap) == 0;
    }
    if (!has_swapped || is_read) return SINTER_OK;
    return bind_as(e, p, room, isa, x, rank, dim_at, order, split, in, out, false);
}
