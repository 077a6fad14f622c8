/* SPDX-License-Identifier: Apache-2.0 */
/* row.c - helpers of the kernel rows: tactics that name an ISA, sizes, and epilogues taken apart. */
#include "cpu/row.h"
#include "cpu/level.h"

#include <math.h>

void row_tactic_own(const tactic *t, void *own, size_t size)
{
    memcpy(own, t->at + offsetof(row_tactic, own), size);
}

void row_tactics_add(const kernel_target *t, const void *list, int count, size_t size, tactic_sink *out)
{
    for (int i = 0; i < count && out->count < COUNT_OF(out->at); i++) {
        row_tactic r = { .isa = (uint8_t)t->isa };
        memcpy(r.own, (const char *)list + (size_t)i * size, size);
        memcpy(&out->at[out->count++], &r, sizeof r);
    }
}

bool row_tactic_check(const tactic *t, size_t size)
{
    static const row_tactic zeros;
    row_tactic r;
    memcpy(&r, t, sizeof r);
    return r.isa < ISA_LEVEL_COUNT && !memcmp(r.zero, zeros.zero, sizeof r.zero) &&
           !memcmp(r.own + size, zeros.own, sizeof r.own - size);
}

void row_tactic_print(const tactic *t, const char *own, text *out)
{
    text_printf(out, "%s %s", isa_level_name(row_isa(t)), own);
}

void row_tactics_isa(const problem *p, const kernel_target *t, tactic_sink *out)
{
    (void)p;
    out->at[out->count++] = (tactic){ .at = { (uint8_t)t->isa } };
}

bool row_check_isa(const problem *p, const tactic *t)
{
    (void)p;
    return row_tactic_check(t, 0);
}

void row_print_isa(const tactic *t, text *out)
{
    text_printf(out, "%s", isa_level_name(row_isa(t)));
}

sinter_status row_isa_bind(env *e, const problem *p, const tactic *t, isa_level *out)
{
    const isa_level have = isa_level_of(e), want = row_isa(t);
    if (!isa_level_runs(have, want))
        return FAIL(e, INCOMPATIBLE, "a %s step was built for %s, this machine has %s", op_at(p->op)->name,
                    isa_level_name(want), isa_level_name(have));
    *out = want;
    return SINTER_OK;
}

sinter_status row_unit_bind(env *e, const problem *p, const tactic *t, gemm_unit unit, isa_level *out)
{
    TRY(row_isa_bind(e, p, t, out));
    const isa_choice have = isa_of(e), want = { *out, gemm_unit_needs(*out, unit) };
    if (!isa_choice_runs(have, want))
        return FAIL(e, INCOMPATIBLE, "a %s step was built for a CPU with %s products (%s), this machine has %s",
                    op_at(p->op)->name, gemm_unit_name(unit), isa_feature_name(want.features), isa_choice_name(have));
    return SINTER_OK;
}

int row_units_of(sinter_dtype operand, const kernel_target *t, gemm_unit out[2])
{
    const bool is_byte = operand == SINTER_DTYPE_U8 || operand == SINTER_DTYPE_I8;
    return gemm_units_best((isa_choice){ (isa_level)t->isa, t->features },
                           is_byte                        ? GEMM_U8
                           : operand == SINTER_DTYPE_BF16 ? GEMM_BF16
                                                          : GEMM_F32,
                           t->is_exact, out);
}

bool row_unit_fits(sinter_dtype operand, uint32_t unit)
{
    const sinter_dtype type = operand == SINTER_DTYPE_BF16 ? operand : SINTER_DTYPE_F32;
    return unit < GEMM_UNITS && gemm_unit_type((gemm_unit)unit) == type && !gemm_unit_splits((gemm_unit)unit);
}

const char *row_split_reject(const problem *p, const kernel_target *t)
{
    REJECT_UNLESS(row_is_f32(p, p->count_anchor), "not in f32");
    const isa_level level = (isa_level)t->isa;
    REJECT_UNLESS(gemm_unit_set(level, GEMM_F32_AMX) && !(gemm_unit_needs(level, GEMM_F32_AMX) & ~t->features),
                  "no matrix registers");
    return NULL;
}

const char *row_unit_reject(const problem *p)
{
    const sinter_dtype type = p->in[0].dtype;
    if (type != SINTER_DTYPE_BF16) return row_is_f32(p, p->count_anchor) ? NULL : "not in f32 or bf16";
    for (uint32_t i = 1; i < p->count_anchor && i < p->count_in; i++)
        REJECT_UNLESS(p->in[i].dtype == type || p->in[i].dtype == SINTER_DTYPE_NONE, "operands of several types");
    REJECT_UNLESS(p->count_out && (p->epilogue || p->out[0].dtype == type), "the result is of another type");
    return NULL;
}

size_t row_record_room(const problem *p, const tactic *t)
{
    (void)t;
    return row_room(p);
}

bool row_may_drain(const problem *p)
{
    return p->in[0].dtype == SINTER_DTYPE_BF16 && p->epilogue;
}

void row_parallel(const kernel_run *r, int64_t count,
                  void (*body)(void *arg, uint32_t begin, uint32_t end, uint32_t worker), void *arg)
{
    if (count <= 0) return;
    /* Counts beyond 32 bits do not occur: tiles are at least thousands of elements. */
    const uint32_t n = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
    if (r->parallel && r->parallel->run && n > 1) r->parallel->run(r->parallel, n, body, arg);
    else body(arg, 0, n, 0);
}

uint32_t row_threads(const kernel_run *r)
{
    return r->parallel && r->parallel->run ? r->parallel->threads : 1;
}

double row_operand_bytes(const problem_operand *o)
{
    if (o->dtype == SINTER_DTYPE_NONE) return 0;
    double n = sinter_dtype_bits(o->dtype) / 8.0;
    for (uint32_t i = 0; i < o->rank; i++) n *= (double)o->dim[i].opt;
    return n;
}

double row_bytes(const problem *p)
{
    double n = 0;
    for (uint32_t i = 0; i < p->count_in; i++) n += row_operand_bytes(&p->in[i]);
    for (uint32_t i = 0; i < p->count_out; i++) n += row_operand_bytes(&p->out[i]);
    return n;
}

double row_memory_ns(const problem *p, const kernel_target *target, double weight)
{
    const double threads = target->threads ? target->threads : 1;
    return 500 + row_bytes(p) * weight / (target->bandwidth > 0 ? target->bandwidth : 1e10) * 1e9 / threads;
}

int64_t row_count_max(const problem_operand *o)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < o->rank; i++)
        if (!i64_mul(n, o->dim[i].max, &n)) return INT64_MAX;
    return n;
}

void row_order_channels_last(uint32_t rank, uint8_t *order)
{
    order[0] = 0;
    for (uint32_t i = 1; i + 1 < rank; i++) order[i] = (uint8_t)(i + 1);
    order[rank - 1] = 1;
}

bool row_has_channels_last(const problem_operand *o)
{
    uint8_t order[SINTER_RANK_MAX];
    if (o->rank < 3) return false;
    row_order_channels_last(o->rank, order);
    return !memcmp(o->order, order, o->rank);
}

bool row_is_channels_last(const problem_operand *o)
{
    return !o->is_strided && row_has_channels_last(o);
}

const char *row_pitch_reject(const problem_operand *y)
{
    REJECT_UNLESS(!y->is_gapped, "the result's channels are not adjacent");
    REJECT_UNLESS(!y->is_strided || y->dim[y->order[y->rank - 1]].max != 1, "the result is strided, of one channel");
    return NULL;
}

sinter_status row_pitch(env *e, const view *y, int64_t *pitch)
{
    *pitch = y->dim[1];
    int64_t run = 0; /* where the next axis is to lie */
    for (uint32_t i = y->rank; i-- > 1;) {
        const uint32_t axis = i > 1 ? i : 0;
        if (y->dim[axis] == 1) continue;
        if (!run) *pitch = run = y->stride[axis];
        if (y->stride[axis] != run || run < y->dim[1])
            return FAIL(e, INVALID_MODEL, "the pixels of a result do not lie at one pitch");
        run *= y->dim[axis];
    }
    return SINTER_OK;
}

bool row_is_row_major(const problem_operand *o)
{
    for (uint32_t i = 0; i < o->rank; i++)
        if (o->order[i] != i) return false;
    return !o->is_strided;
}

bool row_is_f32(const problem *p, uint32_t count)
{
    for (uint32_t i = 0; i < count && i < p->count_in; i++)
        if (p->in[i].dtype != SINTER_DTYPE_F32 && p->in[i].dtype != SINTER_DTYPE_NONE) return false;
    return p->count_out && p->out[0].dtype == SINTER_DTYPE_F32;
}

const char *row_epilogue_reject(const problem *p)
{
    REJECT_UNLESS(!p->prologue, "has a prologue");
    if (!p->epilogue) return p->count_out > 1 ? "has several results" : NULL;
    sinter_dtype in[EXPR_MAX], out[EXPR_MAX];
    REJECT_UNLESS(p->count_in <= EXPR_MAX && p->count_out <= EXPR_MAX, "has too many operands");
    for (uint32_t i = 0; i < p->count_in; i++) in[i] = p->in[i].dtype;
    for (uint32_t i = 0; i < p->count_out; i++) out[i] = p->out[i].dtype;
    bool stores = false;
    for (uint32_t i = 0; i < p->epilogue->count; i++)
        stores = stores || (p->epilogue->at[i].op == EXPR_STORE && p->epilogue->at[i].operand == 0);
    REJECT_UNLESS(stores, "the epilogue does not store result 0");
    return vm_reject(p->epilogue, p->count_in, in, p->count_out, out);
}

/* ---- bias, residual and clip, in this order, out of a program ---- */

/* What the micro-kernels read and write beside f32, in products of bf16. */
static bool type_is_taken(sinter_dtype t, bool is_narrow)
{
    return t == SINTER_DTYPE_F32 || (is_narrow && t == SINTER_DTYPE_BF16);
}

/* A load along columns alone, contiguous. */
static bool is_bias(const view *v, uint32_t rank, const int64_t *dim_at, uint32_t col, bool is_narrow)
{
    view b;
    if (!type_is_taken(v->dtype, is_narrow) || !view_broadcast(v, rank, dim_at, &b)) return false;
    for (uint32_t i = 0; i < rank; i++)
        if (dim_at[i] > 1 && b.stride[i] != (i == col ? 1 : 0)) return false;
    return true;
}

static bool is_like(const view *v, const view *out, bool is_narrow)
{
    if (!type_is_taken(v->dtype, is_narrow) || v->rank != out->rank) return false;
    for (uint32_t i = 0; i < out->rank; i++)
        if (v->dim[i] != out->dim[i] || (out->dim[i] > 1 && v->stride[i] != out->stride[i])) return false;
    return true;
}

static bool imm_of(const expr *x, uint16_t at, float *value)
{
    *value = (float)x->at[at].imm.f;
    return x->at[at].op == EXPR_IMM && type_is_taken((sinter_dtype)x->at[at].dtype, true);
}

/* A program seen from its accumulator on, where values have one reader each. */
typedef struct chain {
    const expr *x;
    const view *in, *out;
    uint32_t uses[EXPR_MAX];
    uint32_t reader[EXPR_MAX]; /* the last one */
    uint32_t stores;
    uint32_t at;    /* how far it has been taken */
    bool is_narrow; /* values in bf16, too: they are not rounded before the store */
} chain;

static bool chain_init(chain *c, const expr *x, const view *in, const view *out, bool is_narrow)
{
    *c = (chain){ .x = x, .in = in, .out = out, .is_narrow = is_narrow };
    uint32_t accs = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        const expr_instr *n = &x->at[i];
        for (uint32_t k = 0; k < expr_arity(n); k++) {
            c->uses[n->arg[k]]++;
            c->reader[n->arg[k]] = i;
        }
        if (n->op == EXPR_STORE) c->stores++;
        if (n->op != EXPR_ACC) continue;
        accs++;
        c->at = i;
    }
    return accs == 1 && type_is_taken((sinter_dtype)x->at[c->at].dtype, is_narrow);
}

/* The one reader of the value, NULL where there are several or its result is no f32. */
static const expr_instr *chain_next(const chain *c)
{
    const expr_instr *n = c->uses[c->at] == 1 ? &c->x->at[c->reader[c->at]] : NULL;
    return n && type_is_taken((sinter_dtype)n->dtype, c->is_narrow) ? n : NULL;
}

static bool chain_is_end(const chain *c)
{
    const expr_instr *n = chain_next(c);
    return n && n->op == EXPR_STORE && n->operand == 0 && c->stores == 1 && type_is_taken(c->out->dtype, c->is_narrow);
}

/* A cast that changes nothing: to f32, in which values are held, or to bf16 right before the store that rounds to it.
 */
static bool chain_is_idle(const chain *c, const expr_instr *n)
{
    if (!c->is_narrow || n->op != OP_cast) return false;
    if (n->dtype == SINTER_DTYPE_F32) return true;
    chain next = *c;
    next.at = c->reader[c->at];
    return c->out->dtype == SINTER_DTYPE_BF16 && chain_is_end(&next);
}

/* The operand that `n` adds to the value; 0: it adds none. Input 0 is always the anchor's. */
static uint16_t chain_added(const chain *c, const expr_instr *n)
{
    if (n->op != OP_add) return 0;
    const expr_instr *other = &c->x->at[n->arg[0] == c->at ? n->arg[1] : n->arg[0]];
    return other->op == EXPR_LOAD ? other->operand : 0;
}

/* Takes any of: one bias, one residual, relu or clip, in that order. */
static void take_prefix(chain *c, uint32_t col, row_epilogue *r)
{
    for (const expr_instr *n = chain_next(c); n; n = chain_next(c)) {
        const uint16_t k = r->has_clip ? 0 : chain_added(c, n);
        if (k && !r->bias && !r->residual && is_bias(&c->in[k], c->out->rank, c->out->dim, col, c->is_narrow)) {
            r->bias = k;
            r->narrow_bias = c->in[k].dtype == SINTER_DTYPE_BF16;
        } else if (k && !r->residual && is_like(&c->in[k], c->out, c->is_narrow)) {
            r->residual = k;
            r->narrow_residual = c->in[k].dtype == SINTER_DTYPE_BF16;
        } else if (chain_is_idle(c, n)) {
            /* nothing to do */
        } else if (n->op == OP_relu && !r->has_clip) {
            r->has_clip = true;
            r->lo = 0;
            r->hi = INFINITY;
        } else if (n->op == OP_clip && !r->has_clip && n->arg[0] == c->at && imm_of(c->x, n->arg[1], &r->lo) &&
                   imm_of(c->x, n->arg[2], &r->hi)) {
            r->has_clip = true;
        } else {
            return;
        }
        c->at = c->reader[c->at];
    }
}

/* Takes a round trip of the value through integers. */
static bool take_round_trip(chain *c, round_trip *trip)
{
    uint16_t from = 0;
    uint32_t end = c->at;
    do {
        if (c->uses[end] != 1) return false;
        end = c->reader[end];
    } while (c->x->at[end].op == OP_quantize || c->x->at[end].op == OP_clip);
    if (!round_trip_find(c->x, c->uses, end, trip, &from) || from != c->at || trip->inverse == 0) return false;
    c->at = end;
    return true;
}

static act_fn *take_function(chain *c, isa_level isa, row_epilogue *r)
{
    if (take_round_trip(c, &r->trip)) return level_of(isa)->act->run[OP_dequantize];
    const expr_instr *n = chain_next(c);
    const uint32_t arity = n && n->op < OP_SCALAR_COUNT ? expr_arity(n) : 0;
    act_fn *act = NULL;
    if (arity && n->op != OP_identity && n->op != OP_dequantize && n->arg[0] == c->at)
        act = level_of(isa)->act->run[n->op];
    if (!act || (arity > 1 && !imm_of(c->x, n->arg[1], &r->act_y)) ||
        (arity > 2 && !imm_of(c->x, n->arg[2], &r->act_z)))
        return level_of(isa)->act->run[OP_identity];
    c->at = c->reader[c->at];
    return act;
}

/* Takes one activation, a sum with something like the result, or both; true where nothing is left. */
static bool take_act(chain *c, isa_level isa, row_epilogue *r)
{
    act_fn *act = take_function(c, isa, r);
    const expr_instr *n = chain_next(c);
    const uint16_t k = n ? chain_added(c, n) : 0;
    if (k && is_like(&c->in[k], c->out, false)) {
        r->added = k;
        c->at = c->reader[c->at];
    }
    if (!chain_is_end(c)) return false;
    r->act = act;
    return true;
}

sinter_status row_epilogue_bind(env *e, const problem *p, isa_level isa, const view *in, const view *out,
                                const uint8_t *order, bool fast, row_epilogue *x, void *room)
{
    x->has_program = x->has_clip = x->has_scale = x->drain = x->narrow_bias = x->narrow_residual = false;
    x->bias = x->residual = x->added = 0;
    x->act = NULL;
    x->act_y = x->act_z = 0;
    if (!p->epilogue) return SINTER_OK;
    const expr *program = p->epilogue;
    _Alignas(expr) unsigned char rest_memory[sizeof(expr) + EXPR_MAX * sizeof(expr_instr)];
    const bool is_narrow = p->in[0].dtype == SINTER_DTYPE_BF16;
    chain c;
    if (fast && program->count <= EXPR_MAX && chain_init(&c, program, in, &out[0], is_narrow)) {
        take_prefix(&c, order[out[0].rank - 1], x);
        if (chain_is_end(&c)) return SINTER_OK;
        const uint32_t left = c.at;
        if (!is_narrow && take_act(&c, isa, x)) return SINTER_OK;
        x->added = 0;
        /* The program of what is left: its accumulator is the value so far. */
        expr *rest = (expr *)(void *)rest_memory;
        memcpy(rest, program, expr_size(program->count));
        rest->at[left] = (expr_instr){ .op = EXPR_ACC, .dtype = SINTER_DTYPE_F32 };
        expr_canonicalize(rest);
        program = rest;
    }
    x->has_program = true;
    x->drain = is_narrow;
    return vm_bind(e, &x->program, room, isa, program, out[0].rank, out[0].dim, order, true, in, out);
}

/* Whether the epilogue is a bias of each channel (axis 1), relu or clip, or both in this order; fills these fields. */
static bool is_bias_and_clip(const problem *p, const view *in, const view *out, row_epilogue *x)
{
    chain c;
    x->has_clip = x->narrow_bias = x->narrow_residual = false;
    x->bias = x->residual = 0;
    if (!p->epilogue || p->epilogue->count > EXPR_MAX || !chain_init(&c, p->epilogue, in, &out[0], false)) return false;
    take_prefix(&c, 1, x);
    return chain_is_end(&c) && !x->residual;
}

void row_gemm_epilogue_bind(const row_epilogue *x, int64_t ldr, gemm_epilogue *g)
{
    g->clip = x->has_clip;
    g->lo = x->lo;
    g->hi = x->hi;
    g->ldr = ldr;
    g->drain = x->drain;
}

void row_gemm_epilogue_run(const row_epilogue *x, const kernel_run *k, gemm_post_fn *post, gemm_epilogue *g)
{
    if (x->bias && x->narrow_bias) g->narrow_bias = k->in[x->bias];
    else if (x->bias) g->bias = k->in[x->bias];
    if (x->residual && x->narrow_residual) g->narrow_residual = k->in[x->residual];
    else if (x->residual) g->residual = k->in[x->residual];
    if (row_epilogue_has_block(x)) g->post = post;
}

double row_epilogue_ns(const problem *p)
{
    return p->epilogue ? row_operand_bytes(&p->out[0]) * 0.02 * p->epilogue->count : 0;
}

void row_epilogue_block(const row_epilogue *x, const vm_io *io, int64_t row, int64_t rows, int64_t col, int64_t cols,
                        float *c, int64_t ldc)
{
    if (!x->act) {
        vm_block(&x->program, io, row, rows, col, cols, c, ldc);
        return;
    }
    /* What is added lies as the result does. */
    const float *added = x->added ? (const float *)io->in[x->added] + (c - (const float *)io->out[0]) : NULL;
    const act_block b = { .c = c,
                          .added = added,
                          .ldc = ldc,
                          .ld_added = ldc,
                          .rows = rows,
                          .cols = cols,
                          .y = x->act_y,
                          .z = x->act_z,
                          .trip = x->trip };
    x->act(&b);
}

/* ---- an epilogue afterwards ---- */

const char *row_after_reject(const problem *p)
{
    const char *why = row_epilogue_reject(p);
    if (why) return why;
    REJECT_UNLESS(p->out[0].dtype == SINTER_DTYPE_F32, "the result is not f32");
    REJECT_UNLESS(!p->out[0].is_strided, "the result is strided");
    return NULL;
}

sinter_status row_after_bind(env *e, const problem *p, isa_level isa, const view *in, const view *out, row_after *x,
                             void *room)
{
    x->has_program = false;
    if (!p->epilogue) return SINTER_OK;
    /* Axes of one element first, so that the last one has the columns. */
    uint8_t order[SINTER_RANK_MAX] = { 0 };
    uint32_t n = 0;
    const uint32_t rank = out[0].rank;
    for (uint32_t i = 0; i < rank; i++)
        if (out[0].dim[p->out[0].order[i]] == 1) order[n++] = p->out[0].order[i];
    for (uint32_t i = 0; i < rank; i++)
        if (out[0].dim[p->out[0].order[i]] != 1) order[n++] = p->out[0].order[i];
    x->has_program = true;
    x->cols = rank ? out[0].dim[order[rank - 1]] : 1;
    x->rows = x->cols ? view_count(&out[0]) / x->cols : 0;
    return vm_bind(e, &x->program, room, isa, p->epilogue, rank, out[0].dim, order, true, in, out);
}

sinter_status row_after_bind_planes(env *e, const problem *p, isa_level isa, const view *in, const view *out,
                                    row_after *x, void *room)
{
    row_epilogue end;
    x->has_program = x->has_clip = false;
    x->bias = 0;
    x->lo = x->hi = 0;
    if (!is_bias_and_clip(p, in, out, &end)) return row_after_bind(e, p, isa, in, out, x, room);
    x->bias = end.bias;
    x->has_clip = end.has_clip;
    if (end.has_clip) x->lo = end.lo, x->hi = end.hi;
    return SINTER_OK;
}

void row_after_part(const row_after *x, const kernel_run *k, float *y, int64_t begin, int64_t end)
{
    if (!x->has_program) return;
    const vm_io io = { k->in, k->out };
    /* Whole rows of the program, and parts of them at the ends: the caller's rows may be shorter. */
    while (begin < end) {
        const int64_t row = begin / x->cols, col = begin % x->cols, left = end - begin;
        const int64_t rows = col || left < x->cols ? 1 : left / x->cols;
        const int64_t cols = col + left < x->cols ? left : x->cols - col;
        vm_block(&x->program, &io, row, rows, col, cols, y + begin, x->cols);
        begin += rows == 1 ? cols : rows * x->cols;
    }
}

enum { AFTER_ELEMENTS = 8192 };
typedef struct after_job {
    const row_after *x;
    const kernel_run *k;
    float *y;
    int64_t step;
} after_job;

static void after_body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const after_job *j = arg;
    const int64_t stop = end * j->step < j->x->rows ? end * j->step : j->x->rows;
    row_after_part(j->x, j->k, j->y, begin * j->step * j->x->cols, stop * j->x->cols);
}

void row_after_all(const row_after *x, const kernel_run *k, float *y)
{
    if (!x->has_program || !x->rows || !x->cols) return;
    after_job j = { x, k, y, x->cols < AFTER_ELEMENTS ? AFTER_ELEMENTS / x->cols : 1 };
    row_parallel(k, (x->rows + j.step - 1) / j.step, after_body, &j);
}
