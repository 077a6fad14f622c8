/* SPDX-License-Identifier: Apache-2.0 */
/* expr.c - expression programs as data: check, compare, canonical order, and the reference that runs them.
 *
 * The reference evaluates the whole program at each point of its space, floats in double without rounding between
 * instructions (a cast rounds, and so does a store), integers wrapped to their type. */
#include "ops/expr.h"

#include "base/hash.h"

#include <math.h>
#include <string.h>

static bool is_root(const expr_instr *x)
{
    return x->op == EXPR_STORE || x->op == EXPR_REDUCE;
}

uint32_t expr_arity(const expr_instr *x)
{
    if (x->op < OP_SCALAR_COUNT) return scalar_at((op_id)x->op)->arity;
    return is_root(x) ? 1 : 0;
}

/* The instruction with everything that it does not use cleared, so that bytes compare. */
static expr_instr plain(const expr_instr *x)
{
    expr_instr p = { .op = x->op, .dtype = x->dtype };
    for (uint32_t i = 0; i < expr_arity(x); i++) p.arg[i] = x->arg[i];
    if (x->op == EXPR_LOAD || is_root(x)) p.operand = x->operand;
    if (x->op == EXPR_IMM) p.imm = x->imm;
    if (x->op == EXPR_LOAD && x->imm.i) {
        p.imm = x->imm;
        p.kind = x->kind;
    }
    if (x->op == EXPR_REDUCE) {
        p.kind = x->kind;
        p.axes = x->axes;
    }
    return p;
}

static bool instr_equal(const expr_instr *a, const expr_instr *b)
{
    const expr_instr x = plain(a), y = plain(b);
    return x.op == y.op && x.dtype == y.dtype && x.kind == y.kind && memcmp(x.arg, y.arg, sizeof(x.arg)) == 0 &&
           x.operand == y.operand && x.axes == y.axes && x.imm.i == y.imm.i;
}

expr *expr_copy(arena *a, const expr *x)
{
    expr *copy = arena_alloc(a, expr_size(x->count), _Alignof(expr));
    if (copy) memcpy(copy, x, expr_size(x->count));
    return copy;
}

bool expr_equal(const expr *a, const expr *b)
{
    if (!a || !b) return a == b;
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++) {
        if (!instr_equal(&a->at[i], &b->at[i])) return false;
    }
    return true;
}

uint64_t expr_hash(const expr *x, uint64_t seed)
{
    uint64_t h = seed;
    for (uint32_t i = 0; x && i < x->count; i++) {
        const expr_instr p = plain(&x->at[i]);
        const uint64_t word[4] = {
            (uint64_t)p.op | (uint64_t)p.dtype << 16 | (uint64_t)p.kind << 24 | (uint64_t)p.operand << 32,
            (uint64_t)p.arg[0] | (uint64_t)p.arg[1] << 16 | (uint64_t)p.arg[2] << 32,
            p.axes,
            (uint64_t)p.imm.i,
        };
        h = hash64(word, sizeof(word), h);
    }
    return h;
}

/* ---- check ---- */

static bool type_allowed(const char *types, sinter_dtype dtype)
{
    if (strcmp(types, "NUM") == 0) return dtype_is_float(dtype) || dtype_is_int(dtype);
    if (strcmp(types, "FLT") == 0) return dtype_is_float(dtype);
    if (strcmp(types, "LOG") == 0) return dtype == SINTER_DTYPE_BOOL;
    if (strcmp(types, "ALL") == 0) return dtype_is_valid((int)dtype);
    return dtype_is_int(dtype);
}

static const char *check_scalar(const expr *x, const expr_instr *n)
{
    const scalar_info *info = scalar_at((op_id)n->op);
    sinter_dtype type[3] = { SINTER_DTYPE_NONE };
    for (uint32_t i = 0; i < info->arity; i++) type[i] = (sinter_dtype)x->at[n->arg[i]].dtype;
    const sinter_dtype own = (sinter_dtype)n->dtype;
    if (n->op == OP_where) {
        if (type[0] != SINTER_DTYPE_BOOL) return "the condition of where is not bool";
        return type[1] == type[2] && own == type[1] ? NULL : "where wants one type for both values and its result";
    }
    if (n->op == OP_quantize || n->op == OP_dequantize) {
        const sinter_dtype quantized = n->op == OP_quantize ? own : type[0];
        if (!dtype_is_float(type[1]) || !type_allowed("NUM", type[0]))
            return "quantisation wants a number and a float scale";
        return type[2] == quantized ? NULL : "a zero point does not have the type of the quantised side";
    }
    for (uint32_t i = 0; i < info->arity; i++) {
        if (!type_allowed(info->types, type[i])) return "an argument has a type that its function does not take";
        if (type[i] != type[0]) return "the arguments of a function have different types";
    }
    if (strcmp(info->result, "BOOL") == 0)
        return own == SINTER_DTYPE_BOOL ? NULL : "the result of a question is not bool";
    if (strcmp(info->result, "SAME") == 0 && own != type[0]) return "a result does not have the type of its arguments";
    return NULL;
}

static const char *check_program(const expr *x, uint32_t count_in, uint32_t count_out, bool has_acc, bool has_blocks)
{
    uint32_t stored = 0;
    if (x->count == 0 || x->count > EXPR_MAX) return "a program has 1 to 64 instructions";
    if (count_out == 0 || count_out > 32) return "a program has 1 to 32 results";
    for (uint32_t i = 0; i < x->count; i++) {
        const expr_instr *n = &x->at[i];
        if (n->op >= EXPR_OP_COUNT) return "an instruction is none";
        if (!dtype_is_valid(n->dtype)) return "an instruction has no type";
        for (uint32_t k = 0; k < expr_arity(n); k++) {
            if (n->arg[k] >= i) return "an argument does not come before its use";
            if (is_root(&x->at[n->arg[k]])) return "an argument is no value";
        }
        if (n->op == EXPR_ACC && !has_acc) return "acc stands where there is no anchor";
        if (n->op == EXPR_LOAD && n->operand >= count_in) return "a load names an input that is not there";
        if (n->op == EXPR_LOAD && n->imm.i) {
            if (!has_blocks) return "a load is in blocks outside the program of a weight";
            if (n->imm.i < 2 || n->imm.i > INT32_MAX || n->kind >= SINTER_RANK_MAX)
                return "the blocks of a load are none";
        }
        if (n->op < OP_SCALAR_COUNT) {
            const char *why = check_scalar(x, n);
            if (why) return why;
        }
        if (!is_root(n)) continue;
        if (n->operand >= count_out) return "a result is stored that is not there";
        if (stored >> n->operand & 1u) return "a result is stored twice";
        stored |= 1u << n->operand;
        if (n->dtype != x->at[n->arg[0]].dtype) return "what is stored has another type than its value";
        if (n->op == EXPR_REDUCE && (n->kind >= reduce_kind_count || n->axes >> SINTER_RANK_MAX))
            return "a reduction is malformed";
    }
    for (uint32_t k = 0; k < count_out; k++) {
        if (!(stored >> k & 1u)) return "a result is never stored";
    }
    return NULL;
}

const char *expr_check(const expr *x, uint32_t count_in, uint32_t count_out, bool has_acc)
{
    return check_program(x, count_in, count_out, has_acc, false);
}

const char *expr_check_weight(const expr *x, uint32_t count_in)
{
    const char *why = check_program(x, count_in, 1, false, true);
    bool reads = false;
    for (uint32_t i = 0; i < x->count && !why; i++) {
        if (x->at[i].op == EXPR_REDUCE) why = "the program of a weight reduces";
        reads = reads || (x->at[i].op == EXPR_LOAD && x->at[i].operand == 1 && !x->at[i].imm.i);
    }
    return why || reads ? why : "the program of a weight does not read it";
}

/* ---- canonical order ---- */

typedef struct sorter {
    const expr *from;
    expr_instr at[EXPR_MAX];
    uint32_t count;
    uint16_t place[EXPR_MAX]; /* new index + 1 of an old one */
} sorter;

/* Post-order: arguments first. Depth is at most the number of instructions. */
static uint16_t visit(sorter *s, uint32_t old)
{
    if (s->place[old]) return (uint16_t)(s->place[old] - 1);
    expr_instr n = plain(&s->from->at[old]);
    for (uint32_t i = 0; i < expr_arity(&n); i++) n.arg[i] = visit(s, n.arg[i]);
    if (n.op < OP_SCALAR_COUNT && (op_at((op_id)n.op)->traits & COMMUTES) && n.arg[0] > n.arg[1]) {
        const uint16_t first = n.arg[1];
        n.arg[1] = n.arg[0];
        n.arg[0] = first;
    }
    uint32_t at = 0;
    while (at < s->count && (is_root(&n) || !instr_equal(&s->at[at], &n))) at++;
    if (at == s->count) s->at[s->count++] = n;
    s->place[old] = (uint16_t)(at + 1);
    return (uint16_t)at;
}

static bool canonical_pass(expr *x)
{
    sorter s = { .from = x };
    uint32_t done = 0;
    for (uint32_t result = 0; result <= UINT16_MAX; result++) {
        for (uint32_t i = 0; i < x->count; i++) {
            if (!is_root(&x->at[i]) || x->at[i].operand != result) continue;
            (void)visit(&s, i);
            done++;
        }
        uint32_t roots = 0;
        for (uint32_t i = 0; i < x->count; i++) roots += is_root(&x->at[i]);
        if (done >= roots) break;
    }
    bool is_same = s.count == x->count;
    for (uint32_t i = 0; i < s.count && is_same; i++) is_same = instr_equal(&s.at[i], &x->at[i]);
    memcpy(x->at, s.at, s.count * sizeof(*s.at));
    x->count = s.count;
    return is_same;
}

void expr_canonicalize(expr *x)
{
    /* Ordering the arguments of a commuting function may change which of them comes first: again until nothing moves.
     */
    if (x->count > EXPR_MAX) return;
    for (uint32_t pass = 0; pass < EXPR_MAX && !canonical_pass(x); pass++) {}
}

/* ---- the reference ---- */

typedef struct machine {
    const expr *x;
    uint32_t rank;
    view load[EXPR_MAX];  /* of loads and acc: the operand in the shape of the space, or of its blocks */
    int64_t at[EXPR_MAX]; /* of loads and acc: where it is read now */
    int64_t last;         /* the index along the last axis */
    bool in_f32;
    scalar value[EXPR_MAX];
} machine;

static bool is_read(const expr_instr *n)
{
    return n->op == EXPR_LOAD || n->op == EXPR_ACC;
}

/* Reads as the type's class says: the anchor's result may come in a wider float than the program names. */
static scalar read_as(sinter_dtype dtype, const view *v, int64_t at)
{
    if (dtype_is_float(dtype)) return (scalar){ .f = view_load_f64(v, at) };
    return (scalar){ .i = view_load_i64(v, at) };
}

static void write_as(sinter_dtype dtype, const view *v, int64_t at, scalar value)
{
    if (dtype_is_float(dtype) == dtype_is_float(v->dtype)) scalar_store(v->dtype, v->data, at, value);
    else if (dtype_is_float(dtype)) view_store_f64(v, at, value.f);
    else view_store_i64(v, at, value.i);
}

static bool is_in_blocks(const expr_instr *n)
{
    return n->op == EXPR_LOAD && n->imm.i > 0;
}

static void machine_seek(machine *m, const int64_t *index)
{
    m->last = m->rank ? index[m->rank - 1] : 0;
    for (uint32_t i = 0; i < m->x->count; i++) {
        const expr_instr *n = &m->x->at[i];
        if (!is_read(n)) continue;
        m->at[i] = view_offset(&m->load[i], index);
        if (is_in_blocks(n)) m->at[i] += (index[n->kind] / n->imm.i - index[n->kind]) * m->load[i].stride[n->kind];
    }
}

static void machine_step(machine *m)
{
    m->last++;
    for (uint32_t i = 0; i < m->x->count && m->rank; i++) {
        const expr_instr *n = &m->x->at[i];
        if (!is_read(n)) continue;
        const bool stays = is_in_blocks(n) && n->kind == m->rank - 1 && m->last % n->imm.i;
        if (!stays) m->at[i] += m->load[i].stride[m->rank - 1];
    }
}

static void machine_eval(machine *m)
{
    for (uint32_t i = 0; i < m->x->count; i++) {
        const expr_instr *n = &m->x->at[i];
        const sinter_dtype own = (sinter_dtype)n->dtype;
        if (is_read(n)) {
            m->value[i] = read_as(own, &m->load[i], m->at[i]);
        } else if (n->op == EXPR_IMM) {
            m->value[i] = n->imm;
        } else if (n->op < OP_SCALAR_COUNT) {
            scalar arg[3];
            for (uint32_t k = 0; k < 3; k++) arg[k] = m->value[n->arg[k] < i ? n->arg[k] : 0];
            const sinter_dtype from = (sinter_dtype)m->x->at[n->arg[n->op == OP_where ? 1 : 0]].dtype;
            m->value[i] = scalar_eval((op_id)n->op, from, own, arg);
            if (m->in_f32 && dtype_is_float(own) && own != SINTER_DTYPE_F64) m->value[i].f = (float)m->value[i].f;
        }
    }
}

static bool machine_init(machine *m, const expr *x, uint32_t rank, const int64_t *dim_at, const view *acc,
                         const view *in, bool in_f32)
{
    m->in_f32 = in_f32;
    m->x = x;
    m->rank = rank;
    for (uint32_t i = 0; i < x->count; i++) {
        const expr_instr *n = &x->at[i];
        if (!is_read(n)) continue;
        const view *v = n->op == EXPR_ACC ? acc : &in[n->operand];
        int64_t seen[SINTER_RANK_MAX];
        if (is_in_blocks(n) && n->kind >= rank) return false;
        for (uint32_t k = 0; k < rank; k++) seen[k] = n->op == EXPR_LOAD ? expr_blocks(n, k, dim_at[k]) : dim_at[k];
        if (!v || !view_broadcast(v, rank, seen, &m->load[i])) return false;
    }
    return true;
}

static void run_stores(machine *m, const int64_t *dim_at, const view *out)
{
    const uint32_t outer = m->rank ? m->rank - 1 : 0;
    const int64_t row = m->rank ? dim_at[outer] : 1;
    int64_t index[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(dim_at, outer, index); more; more = view_next(dim_at, outer, index)) {
        if (m->rank) index[outer] = 0;
        machine_seek(m, index);
        for (int64_t k = 0; k < row; k++) {
            if (m->rank) index[outer] = k;
            machine_eval(m);
            machine_step(m);
            for (uint32_t i = 0; i < m->x->count; i++) {
                const expr_instr *n = &m->x->at[i];
                if (n->op != EXPR_STORE) continue;
                const view *v = &out[n->operand];
                write_as((sinter_dtype)n->dtype, v, view_offset(v, index), m->value[n->arg[0]]);
            }
        }
    }
}

/* A running reduction: floats in f (and for log_sum_exp relative to the largest so far), integers in i. */
typedef struct total {
    double f, largest;
    int64_t i, count;
} total;

static total total_start(reduce_kind kind, sinter_dtype dtype)
{
    int64_t min, max;
    dtype_int_range(dtype, &min, &max);
    if (dtype == SINTER_DTYPE_U64) max = -1; /* all bits */
    switch (kind) {
    case reduce_kind_prod: return (total){ .f = 1, .i = 1 };
    case reduce_kind_max: return (total){ .f = -INFINITY, .i = min };
    case reduce_kind_min: return (total){ .f = INFINITY, .i = max };
    default: return (total){ .largest = -INFINITY };
    }
}

static void total_add_f64(total *t, reduce_kind kind, double x)
{
    switch (kind) {
    case reduce_kind_prod: t->f *= x; break;
    case reduce_kind_max: t->f = isnan(x) || x > t->f ? x : t->f; break;
    case reduce_kind_min: t->f = isnan(x) || x < t->f ? x : t->f; break;
    case reduce_kind_l1: t->f += fabs(x); break;
    case reduce_kind_l2:
    case reduce_kind_sum_square: t->f += x * x; break;
    case reduce_kind_log_sum_exp:
        if (x > t->largest) {
            t->f = t->f * exp(t->largest - x) + 1;
            t->largest = x;
        } else {
            t->f += x == t->largest ? 1 : exp(x - t->largest);
        }
        break;
    default: t->f += x; break;
    }
}

static void total_add_i64(total *t, reduce_kind kind, sinter_dtype dtype, int64_t x)
{
    const scalar pair[2] = { { .i = t->i }, { .i = x } };
    const uint64_t a = (uint64_t)t->i, b = (uint64_t)x;
    switch (kind) {
    case reduce_kind_prod: t->i = (int64_t)(a * b); break;
    case reduce_kind_max: t->i = scalar_eval(OP_max, dtype, dtype, pair).i; break;
    case reduce_kind_min: t->i = scalar_eval(OP_min, dtype, dtype, pair).i; break;
    case reduce_kind_l1: t->i = (int64_t)(a + (x < 0 && dtype != SINTER_DTYPE_U64 ? 0 - b : b)); break;
    case reduce_kind_sum_square: t->i = (int64_t)(a + b * b); break;
    default: t->i = (int64_t)(a + b); break;
    }
}

/* Whether integers are reduced in 64 bits; the others are sums of reals that are cast at the end. */
static bool is_integral(reduce_kind kind)
{
    return kind != reduce_kind_l2 && kind != reduce_kind_log_sum && kind != reduce_kind_log_sum_exp;
}

static scalar total_end(const total *t, reduce_kind kind, sinter_dtype dtype, bool is_int)
{
    if (is_int) {
        const scalar pair[2] = { { .i = t->i }, { .i = t->count } };
        return kind == reduce_kind_mean ? scalar_eval(OP_div, SINTER_DTYPE_I64, SINTER_DTYPE_I64, pair) : pair[0];
    }
    double x = t->f;
    if (kind == reduce_kind_mean) x /= (double)t->count;
    else if (kind == reduce_kind_l2) x = sqrt(x);
    else if (kind == reduce_kind_log_sum) x = log(x);
    else if (kind == reduce_kind_log_sum_exp) x = isinf(t->largest) && !isnan(x) ? t->largest : t->largest + log(x);
    const scalar real = { .f = x };
    return dtype_is_float(dtype) ? real : scalar_eval(OP_cast, SINTER_DTYPE_F64, dtype, &real);
}

/* One reduction: for each element of the result, the program over the points that belong to it. */
static void run_reduce(machine *m, const int64_t *dim_at, const expr_instr *n, const view *v)
{
    const reduce_kind kind = (reduce_kind)n->kind;
    const sinter_dtype dtype = (sinter_dtype)n->dtype;
    const bool is_int = !dtype_is_float(dtype) && is_integral(kind);
    int64_t kept[SINTER_RANK_MAX], gone[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < m->rank; i++) {
        const bool is_gone = n->axes >> i & 1u;
        kept[i] = is_gone ? 1 : dim_at[i];
        gone[i] = is_gone ? dim_at[i] : 1;
    }
    int64_t to[SINTER_RANK_MAX] = { 0 }, from[SINTER_RANK_MAX] = { 0 }, index[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(kept, m->rank, to); more; more = view_next(kept, m->rank, to)) {
        total t = total_start(kind, dtype);
        for (bool inner = view_first(gone, m->rank, from); inner; inner = view_next(gone, m->rank, from)) {
            for (uint32_t i = 0; i < m->rank; i++) index[i] = to[i] + from[i];
            machine_seek(m, index);
            machine_eval(m);
            const scalar x = m->value[n->arg[0]];
            if (is_int) total_add_i64(&t, kind, dtype, x.i);
            else total_add_f64(&t, kind, dtype_is_float(dtype) ? x.f : (double)x.i);
            t.count++;
        }
        write_as(dtype, v, view_offset(v, to), total_end(&t, kind, dtype, is_int));
    }
}

sinter_status expr_run(const expr *x, uint32_t rank, const int64_t *dim_at, const view *acc, const view *in,
                       const view *out, bool in_f32)
{
    machine m;
    if (x->count > EXPR_MAX || rank > SINTER_RANK_MAX) return SINTER_INVALID_ARG;
    memset(m.value, 0, sizeof(m.value));
    if (!machine_init(&m, x, rank, dim_at, acc, in, in_f32)) return SINTER_INVALID_ARG;
    bool has_store = false;
    for (uint32_t i = 0; i < x->count; i++) {
        const expr_instr *n = &x->at[i];
        if (!is_root(n)) continue;
        const view *v = &out[n->operand];
        if (v->rank != rank) return SINTER_INVALID_ARG;
        for (uint32_t k = 0; k < rank; k++) {
            const bool is_gone = n->op == EXPR_REDUCE && (n->axes >> k & 1u);
            if (v->dim[k] != (is_gone ? 1 : dim_at[k])) return SINTER_INVALID_ARG;
        }
        has_store |= n->op == EXPR_STORE;
    }
    if (has_store) run_stores(&m, dim_at, out);
    for (uint32_t i = 0; i < x->count; i++) {
        if (x->at[i].op == EXPR_REDUCE) run_reduce(&m, dim_at, &x->at[i], &out[x->at[i].operand]);
    }
    return SINTER_OK;
}
