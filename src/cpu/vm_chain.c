/* SPDX-License-Identifier: Apache-2.0 */
/* vm_chain.c - binding chains.
 *
 * Instructions are taken in order. The result of one is the running value of the next; operands that are read second
 * come straight from memory where they lie as f32, else a stage converts them into a slot first. */
#include "cpu/vm_chain.h"

#include "core/dtype.h"
#include "cpu/level.h"
#include <string.h>

enum { NOTHING = -1 };

typedef enum home_kind { HOME_NONE, HOME_SLOT, HOME_OPERAND, HOME_IMM, HOME_SCALAR } home_kind;

typedef struct maker {
    vm_program *p;
    const vm_chain_set *set;
    vm_lie lie;
    vm_step *step;
    uint32_t count, room;
    uint32_t once; /* steps in front that run once, not for every chunk */
    bool has_failed;
    vm_step spare;   /* where steps go that have no room */
    int32_t running; /* a value, or NOTHING */
    home_kind home[EXPR_MAX];
    uint8_t ref[EXPR_MAX];
    const vm_op *imm[EXPR_MAX];
    uint32_t left[EXPR_MAX]; /* uses of a value that are still to come */
    bool is_taken[EXPR_MAX];
    uint32_t slots;
} maker;

/* ---- what a chain can do ---- */

static bool in_of(const vm_operand *o, vm_in *in)
{
    switch (o->dtype) {
    case SINTER_DTYPE_F32:
    case SINTER_DTYPE_I32: *in = VM_IN_F32; return true;
    case SINTER_DTYPE_F16: *in = VM_IN_F16; return true;
    case SINTER_DTYPE_BF16: *in = VM_IN_BF16; return true;
    case SINTER_DTYPE_I8: *in = VM_IN_I8; return true;
    case SINTER_DTYPE_U8:
    case SINTER_DTYPE_BOOL: *in = VM_IN_U8; return true;
    default: return false;
    }
}

static bool is_narrow_class(uint8_t dtype)
{
    const vm_class cls = vm_class_of((sinter_dtype)dtype);
    return cls == VM_F32 || cls == VM_I32;
}

static int64_t col_stride(const vm_operand *o, uint32_t last)
{
    return o->index == VM_ACC ? 1 : o->stride[last];
}

/* Rows of fewer columns go through the slot loops, which pack them. */
enum { COLS_LEAST = 9 };

static bool is_packed(const vm_program *p)
{
    const uint32_t last = p->axes - 1;
    if (p->cols >= COLS_LEAST || !last) return true;
    for (uint32_t i = 0; i < p->operand_count; i++) {
        const vm_operand *o = &p->operand[i];
        if (o->index == VM_ACC || o->is_scalar || (!o->stride[last - 1] && o->stride[last] == 1)) continue;
        if (o->stride[last - 1] != o->stride[last] * p->cols) return false;
    }
    return true;
}

static bool is_possible(const vm_program *p)
{
    const uint32_t last = p->axes - 1;
    for (uint32_t i = 0; i < p->op_count; i++) {
        const vm_op *op = &p->op[i];
        if (op->kind != VM_STORE && !is_narrow_class(op->to)) return false;
        for (uint32_t k = 0; op->kind == VM_COMPUTE && k < op->arity; k++)
            if (!is_narrow_class(op->arg_type[k])) return false;
        if (op->kind != VM_LOAD && op->kind != VM_STORE) continue;
        const vm_operand *o = &p->operand[op->operand];
        vm_in in;
        if (i < p->once_count) continue;
        if (!in_of(o, &in)) return false;
        const int64_t col = col_stride(o, last);
        if (col != 1 && (col || op->kind == VM_STORE) && p->cols != 1) return false;
    }
    return is_packed(p);
}

/* ---- steps ---- */

static vm_step *push(maker *m, vm_step_fn *fn)
{
    if (!fn || m->count == m->room) {
        m->has_failed = true;
        return &m->spare;
    }
    vm_step *s = &m->step[m->count++];
    *s = (vm_step){ .fn = fn };
    return s;
}

/* A step in front of all chunks. */
static vm_step *push_once(maker *m, vm_step_fn *fn)
{
    vm_step *s = push(m, fn);
    if (s == &m->spare) return s;
    memmove(&m->step[m->once + 1], &m->step[m->once], (m->count - 1 - m->once) * sizeof *s);
    m->step[m->once] = (vm_step){ .fn = fn };
    return &m->step[m->once++];
}

static uint8_t slot_take(maker *m)
{
    uint32_t s = 0;
    while (s < EXPR_MAX - 1 && m->is_taken[s]) s++;
    m->is_taken[s] = true;
    if (s + 1 > m->slots) m->slots = s + 1;
    return (uint8_t)(SLOT_REF + s);
}

/* One that no step has used. */
static uint8_t slot_new(maker *m)
{
    m->is_taken[m->slots] = true;
    return (uint8_t)(SLOT_REF + m->slots++);
}

static void used(maker *m, uint32_t v)
{
    if (m->left[v]) m->left[v]--;
    if (!m->left[v] && m->home[v] == HOME_SLOT) m->is_taken[m->ref[v] - SLOT_REF] = false;
}

static void spill(maker *m, uint32_t v)
{
    m->ref[v] = slot_take(m);
    m->home[v] = HOME_SLOT;
    push(m, m->set->store[VM_IN_F32][VM_DENSE])->a = m->ref[v];
}

static float imm_of(const vm_op *op)
{
    float f = (float)op->imm.f;
    const int32_t i = (int32_t)op->imm.i;
    if (vm_class_of((sinter_dtype)op->to) == VM_I32) memcpy(&f, &i, sizeof f);
    return f;
}

static vm_lie get_of(const maker *m, uint32_t operand)
{
    return col_stride(&m->p->operand[operand], m->p->axes - 1) || m->p->cols == 1 ? m->lie : VM_SPLAT;
}

/* Values that are the same in all chunks of a run are staged once, in slots that nothing else has. */
enum { ONCE_SLOTS = 16 };
static bool is_same(const maker *m, uint32_t v)
{
    if (m->slots >= ONCE_SLOTS) return false;
    if (m->home[v] == HOME_IMM || m->home[v] == HOME_SCALAR) return true;
    return m->lie == VM_DENSE && get_of(m, m->ref[v]) == VM_SPLAT;
}

static void stage(maker *m, uint32_t v)
{
    const bool once = is_same(m, v), is_scalar = m->home[v] == HOME_SCALAR;
    vm_step_fn *fn = m->set->step[VM_STEP_FILL];
    vm_in in = VM_IN_F32;
    if (m->home[v] == HOME_OPERAND) (void)in_of(&m->p->operand[m->ref[v]], &in);
    if (m->home[v] != HOME_IMM) fn = m->set->stage[in][is_scalar ? VM_SPLAT : get_of(m, m->ref[v])];
    if (is_scalar) m->p->chain_once = true;
    vm_step *s = once ? push_once(m, fn) : push(m, fn);
    if (m->home[v] == HOME_IMM) s->imm[0] = imm_of(m->imm[v]);
    else s->a = m->ref[v];
    if (once) m->left[v]++;
    m->ref[v] = s->b = once ? slot_new(m) : slot_take(m);
    m->home[v] = HOME_SLOT;
}

/* Where eight vectors of a value lie dense. */
static uint8_t memory_of(maker *m, uint32_t v)
{
    vm_in in = VM_INS;
    if (m->home[v] == HOME_SLOT) return m->ref[v];
    if (m->home[v] == HOME_NONE) {
        if (m->running != (int32_t)v) m->has_failed = true;
        spill(m, v);
        return m->ref[v];
    }
    if (m->home[v] == HOME_OPERAND) (void)in_of(&m->p->operand[m->ref[v]], &in);
    if (in == VM_IN_F32 && get_of(m, m->ref[v]) == VM_DENSE) return m->ref[v];
    stage(m, v);
    return m->ref[v];
}

/* Makes a value the running one. */
static void into(maker *m, uint32_t v)
{
    if (m->running == (int32_t)v) return;
    m->running = (int32_t)v;
    if (m->home[v] == HOME_IMM) {
        push(m, m->set->step[VM_STEP_SPLAT])->imm[0] = imm_of(m->imm[v]);
        return;
    }
    vm_in in = VM_IN_F32;
    vm_lie get = m->home[v] == HOME_SCALAR ? VM_SPLAT : VM_DENSE;
    if (m->home[v] == HOME_OPERAND) {
        (void)in_of(&m->p->operand[m->ref[v]], &in);
        get = get_of(m, m->ref[v]);
    }
    if (m->home[v] == HOME_NONE) m->has_failed = true;
    if (m->home[v] == HOME_SCALAR) m->p->chain_once = true;
    push(m, m->set->load[in][get])->a = m->ref[v];
}

static bool is_imm(const maker *m, uint32_t v)
{
    return m->home[v] == HOME_IMM;
}

static bool is_f32_imm(const maker *m, uint32_t v)
{
    return is_imm(m, v) && m->imm[v]->to == SINTER_DTYPE_F32;
}

static void call(maker *m, const vm_op *op)
{
    uint8_t ref[3] = { 0 };
    for (uint32_t k = 0; k < op->arity; k++) {
        const uint16_t v = op->arg[k];
        const bool is_scalar = m->home[v] == HOME_IMM || m->home[v] == HOME_SCALAR;
        ref[k] = is_scalar ? (uint8_t)(SCALAR_REF + v) : memory_of(m, v);
        if (is_scalar) m->p->chain_once = true;
    }
    for (uint32_t k = op->arity; k < 3; k++) ref[k] = ref[0];
    vm_step *s = push(m, m->set->step[VM_STEP_CALL]);
    s->a = ref[0];
    s->b = ref[1];
    s->c = ref[2];
    s->op = (uint16_t)(op - m->p->op);
    s->d = slot_take(m);
    m->home[op->dst] = HOME_SLOT;
    m->ref[op->dst] = s->d;
}

/* An immediate that is added right behind a product with one. */
static bool join_mul_add(maker *m, const vm_op *op, float y)
{
    vm_step *last = m->count ? &m->step[m->count - 1] : NULL;
    if (op->op != OP_add || !last || last->fn != m->set->binary[OP_mul][0]) return false;
    last->fn = m->set->step[VM_STEP_MUL_ADD];
    last->imm[1] = y;
    return true;
}

static bool is_integer(const maker *m, const vm_op *op)
{
    vm_fn *const *fn = m->p->set->i32[op->op];
    return op->arity == 2 && m->set->integer[op->op][0] && fn[0] &&
           (op->fn == fn[0] || op->fn == fn[1] || op->fn == fn[2]);
}

static void binary(maker *m, const vm_op *op)
{
    const bool is_int = is_integer(m, op);
    vm_step_fn *const *form = is_int ? m->set->integer[op->op] : m->set->binary[op->op];
    vm_step_fn *const *direct = is_int ? NULL : m->set->direct[op->op];
    const uint16_t a = op->arg[0], b = op->arg[1];
    if (a == b && op->op == OP_mul && !is_int && !is_imm(m, a)) {
        into(m, a);
        (void)push(m, m->set->step[VM_STEP_SQUARE]);
        return;
    }
    /* The running value is one that is in registers already, or the first that is no scalar. */
    const bool a_scalar = is_imm(m, a) || m->home[a] == HOME_SCALAR,
               b_scalar = is_imm(m, b) || m->home[b] == HOME_SCALAR;
    const bool is_reversed = a_scalar || (!b_scalar && a != b && m->running == (int32_t)b);
    const uint16_t x = is_reversed ? b : a, y = is_reversed ? a : b;
    if (is_imm(m, y)) {
        const float value = imm_of(m->imm[y]);
        into(m, x);
        if (is_int || !join_mul_add(m, op, value)) push(m, form[is_reversed])->imm[0] = value;
        return;
    }
    vm_in in = VM_INS;
    if (m->home[y] == HOME_OPERAND) (void)in_of(&m->p->operand[m->ref[y]], &in);
    const vm_lie get = m->home[y] == HOME_SCALAR ? VM_SPLAT : in == VM_IN_F32 ? get_of(m, m->ref[y]) : VM_PART;
    if (direct && direct[0] && a != b && (get == VM_SPLAT || get == VM_ROWS)) {
        into(m, x);
        const uint32_t form_of = get != VM_SPLAT ? 0 : m->lie == VM_DENSE ? 4 : 2;
        push(m, direct[form_of + is_reversed])->a = m->ref[y];
        if (m->home[y] == HOME_SCALAR) m->p->chain_once = true;
        return;
    }
    if (a == b) into(m, x);
    const uint8_t ref = memory_of(m, y);
    into(m, x);
    push(m, form[2 + is_reversed])->a = ref;
}

/* What a step of f32 gave, in the type of its op. */
static void round_to(maker *m, uint8_t type)
{
    if (type == SINTER_DTYPE_F16) push(m, m->set->step[VM_STEP_ROUND_F16]);
    if (type == SINTER_DTYPE_BF16) push(m, m->set->step[VM_STEP_ROUND_BF16]);
}

static bool ternary(maker *m, const vm_op *op)
{
    const vm_set *set = m->p->set;
    const uint16_t a = op->arg[0], b = op->arg[1], c = op->arg[2];
    vm_step_id id = VM_STEPS;
    if (op->fn == set->where) {
        const uint8_t yes = memory_of(m, b), no = memory_of(m, c);
        into(m, a);
        vm_step *s = push(m, m->set->step[VM_STEP_WHERE]);
        s->a = yes;
        s->b = no;
        return true;
    }
    if (op->fn == set->dequantize && !is_imm(m, b)) {
        const uint8_t scale = memory_of(m, b), zero = memory_of(m, c);
        into(m, a);
        vm_step *s = push(m, m->set->step[VM_STEP_DEQUANTIZE_EACH]);
        s->a = scale;
        s->b = zero;
        round_to(m, op->to);
        return true;
    }
    if (!is_imm(m, b) || !is_imm(m, c) || is_imm(m, a) || m->home[a] == HOME_SCALAR) return false;
    float y = imm_of(m->imm[b]), z = imm_of(m->imm[c]), lo = 0, hi = 0;
    if (op->fn == set->ternary[OP_clip][1] && op->op == OP_clip) {
        if (y <= z || y > z) id = VM_STEP_CLIP; /* not where a bound is NaN */
    } else if (op->fn == set->ternary[OP_hard_sigmoid][1] && op->op == OP_hard_sigmoid) {
        id = VM_STEP_HARD_SIGMOID;
    } else if ((op->fn == set->quantize || op->fn == set->dequantize) && is_imm(m, b)) {
        int64_t min = 0, max = 0;
        if (op->fn == set->quantize) dtype_int_range((sinter_dtype)op->to, &min, &max);
        lo = (float)min;
        hi = (float)max;
        z = (float)(int32_t)m->imm[c]->imm.i;
        id = op->fn == set->quantize ? VM_STEP_QUANTIZE : VM_STEP_DEQUANTIZE;
    }
    if (id == VM_STEPS) return false;
    into(m, a);
    vm_step *s = push(m, m->set->step[id]);
    s->imm[0] = y;
    s->imm[1] = z;
    s->imm[2] = lo;
    s->imm[3] = hi;
    if (id == VM_STEP_DEQUANTIZE) round_to(m, op->to);
    return true;
}

static bool unary(maker *m, const vm_op *op)
{
    const vm_set *set = m->p->set;
    vm_step_id id = VM_STEPS;
    int64_t min = 0, max = 0;
    vm_step_fn *fn = NULL;
    if (op->trip.scale != 0) id = op->trip.inverse != 0 ? VM_STEP_TRIP_INVERSE : VM_STEP_TRIP_DIVIDE;
    else if (op->fn == set->float_to_int) id = VM_STEP_FLOAT_TO_INT;
    else if (op->fn == set->float_to_bool) id = VM_STEP_FLOAT_TO_BOOL;
    else if (op->fn == set->int_to_float) id = VM_STEP_INT_TO_FLOAT;
    else if (op->fn == set->round_f16) id = VM_STEP_ROUND_F16;
    else if (op->fn == set->round_bf16) id = VM_STEP_ROUND_BF16;
    else if (op->fn == set->unary[op->op]) fn = m->set->unary[op->op];
    if (id != VM_STEPS) fn = m->set->step[id];
    if (!fn) return false;
    into(m, op->arg[0]);
    vm_step *s = push(m, fn);
    if (op->trip.scale != 0) {
        const float imm[] = { op->trip.scale, op->trip.inverse, op->trip.low, op->trip.high, op->trip.back };
        memcpy(s->imm, imm, sizeof imm);
    } else if (id == VM_STEP_FLOAT_TO_INT) {
        dtype_int_range((sinter_dtype)op->to, &min, &max);
        s->imm[0] = (float)min;
        s->imm[1] = (float)max;
        s->top = (int32_t)max;
    }
    return true;
}

static bool is_binary(const maker *m, const vm_op *op)
{
    vm_fn *const *fn = m->p->set->binary[op->op];
    return op->arity == 2 && m->set->binary[op->op][0] && fn[0] &&
           (op->fn == fn[0] || op->fn == fn[1] || op->fn == fn[2]);
}

static uint32_t uses_by(const vm_op *op, uint32_t v)
{
    uint32_t n = 0;
    const uint32_t arity = op->kind == VM_STORE ? 1 : op->arity;
    for (uint32_t k = 0; k < arity; k++) n += op->arg[k] == v;
    return n;
}

static void compute(maker *m, uint32_t i)
{
    const vm_op *op = &m->p->op[i];
    const bool is_square = op->op == OP_pow && op->fn == m->p->set->pow_scalar && is_f32_imm(m, op->arg[1]) &&
                           imm_of(m->imm[op->arg[1]]) == 2;
    if (op->fn == m->p->set->unary[OP_identity]) {
        into(m, op->arg[0]);
    } else if (op->trip.scale != 0 || op->arity == 1) {
        if (!unary(m, op)) call(m, op);
    } else if (is_square) {
        into(m, op->arg[0]);
        (void)push(m, m->set->step[VM_STEP_SQUARE]);
    } else if (is_binary(m, op) || is_integer(m, op)) {
        binary(m, op);
    } else if (op->arity != 3 || !ternary(m, op)) {
        call(m, op);
    }
    m->running = op->dst;
    for (uint32_t k = 0; k < op->arity; k++) used(m, op->arg[k]);
    uint32_t next = i + 1;
    while (next < m->p->op_count && m->p->op[next].kind == VM_LOAD) next++;
    const uint32_t soon = next < m->p->op_count ? uses_by(&m->p->op[next], op->dst) : 0;
    if (m->left[op->dst] > soon && m->home[op->dst] == HOME_NONE) spill(m, op->dst);
}

static void store(maker *m, const vm_op *op)
{
    const uint16_t v = op->arg[0];
    const vm_operand *o = &m->p->operand[op->operand];
    vm_in in;
    (void)in_of(o, &in);
    const bool is_running = m->running == (int32_t)v;
    into(m, v);
    used(m, v);
    /* The store rounds: a cast just before it need not. */
    vm_step_fn *last = is_running && !m->left[v] && m->count ? m->step[m->count - 1].fn : NULL;
    if (last && ((in == VM_IN_BF16 && last == m->set->step[VM_STEP_ROUND_BF16]) ||
                 (in == VM_IN_F16 && last == m->set->step[VM_STEP_ROUND_F16])))
        m->count--;
    push(m, m->set->store[in][m->lie])->a = (uint8_t)op->operand;
}

/* Operands that are stored as they are: all are read before the first store. */
static void stage_stored(maker *m, uint32_t from)
{
    uint32_t stores = 0;
    for (uint32_t i = from; i < m->p->op_count; i++) stores += m->p->op[i].kind == VM_STORE;
    for (uint32_t i = from; i < m->p->op_count && stores > 1; i++) {
        const vm_op *op = &m->p->op[i];
        if (op->kind == VM_STORE && m->home[op->arg[0]] == HOME_OPERAND) stage(m, op->arg[0]);
    }
}

static bool make(maker *m, vm_lie lie)
{
    const vm_program *p = m->p;
    m->lie = lie;
    m->running = NOTHING;
    m->count = m->once = 0;
    memset(m->left, 0, sizeof m->left);
    memset(m->is_taken, 0, sizeof m->is_taken);
    for (uint32_t i = 0; i < p->op_count; i++) {
        const vm_op *op = &p->op[i];
        const uint32_t arity = op->kind == VM_STORE ? 1 : op->kind == VM_COMPUTE ? op->arity : 0;
        for (uint32_t k = 0; i >= p->once_count && k < arity; k++) m->left[op->arg[k]]++;
        if (op->kind == VM_STORE) continue;
        m->home[op->dst] = HOME_NONE;
        if (op->kind == VM_IMM) {
            m->home[op->dst] = HOME_IMM;
            m->imm[op->dst] = op;
        } else if (i < p->once_count) {
            m->home[op->dst] = HOME_SCALAR;
            m->ref[op->dst] = (uint8_t)(SCALAR_REF + op->dst);
        } else if (op->kind == VM_LOAD) {
            m->home[op->dst] = HOME_OPERAND;
            m->ref[op->dst] = (uint8_t)op->operand;
        }
    }
    bool has_stored = false;
    for (uint32_t i = p->once_count; i < p->op_count; i++) {
        const vm_op *op = &p->op[i];
        if (op->kind == VM_COMPUTE) compute(m, i);
        if (op->kind != VM_STORE) continue;
        if (!has_stored) stage_stored(m, i);
        has_stored = true;
        store(m, op);
    }
    vm_step *end = push(m, m->set->step[VM_STEP_AGAIN]);
    end->op = (uint16_t)(m->count - 1 - m->once);
    return !m->has_failed;
}

void vm_chain_bind(vm_program *p, isa_level isa, vm_step *step, uint32_t room)
{
    p->chain_set = level_of(isa)->chain;
    p->chain_once = false;
    if (!is_possible(p)) return;
    maker m = { .p = p, .set = p->chain_set };
    for (uint32_t lie = 0, begin = 0; lie < VM_LIES; lie++) {
        m.step = step + begin;
        m.room = room - begin;
        if (!make(&m, (vm_lie)lie)) return;
        p->chain[lie] = m.step;
        begin += m.count;
    }
    /* Slots of chains lie behind those of scalars. */
    uint32_t scalars = 0;
    for (uint32_t i = 0; i < p->once_count; i++)
        if (p->slot[p->op[i].dst] + 1u > scalars) scalars = p->slot[p->op[i].dst] + 1u;
    const uint32_t slot = (uint32_t)m.set->lanes * VM_CHAIN_VECTORS * sizeof(float);
    p->chain_slots = scalars * p->slot_size;
    p->chain_slot_count = m.slots;
    p->has_chain = p->chain_slots + m.slots * slot <= VM_SLOT_BYTES && (!scalars || p->slot_size >= slot);
    if (p->has_chain) vm_line_find(p);
}
