/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_row_pointwise.c - expression programs without an anchor, and single scalar functions: one pass over memory.
 *
 * A scalar function is a program of its own. The tactic is the width of a vector, how many of them a thread has under
 * way (wide and many for large results, narrow for those that a few blocks do at once), and when the next grid starts.
 */
#include "cuda/cuda_kernels.h"
#include "cuda/space.h"

#include "cuda/device/pointwise_args.h"

#include <string.h>

typedef struct pointwise_tactic {
    uint8_t width, unroll;
    uint16_t block;
    uint8_t is_across, trigger; /* when the next grid may start: 1 at once, 2 when operands are under way */
    uint8_t zero[TACTIC_SIZE - 6];
} pointwise_tactic;
_Static_assert(sizeof(pointwise_tactic) == TACTIC_SIZE, "a tactic");
static const tactic_field fields[] = {
    FIELD(pointwise_tactic, width, 1, 16, true, "", 1),
    FIELD(pointwise_tactic, unroll, 1, 4, true, "x", 1),
    FIELD(pointwise_tactic, block, 64, 256, true, "/", 1),
    FIELD(pointwise_tactic, is_across, 0, 1, false, " across", 0),
    FIELD(pointwise_tactic, trigger, 1, 2, false, " t", 1),
};
enum { ACROSS_LANES = 64 }; /* threads side by side along the result's innermost axis */

/* A program of up to four instructions, for scalar functions. */
typedef union small_program {
    expr x;
    _Alignas(expr_instr) uint8_t bytes[sizeof(expr) + 8 * sizeof(expr_instr)];
} small_program;

static const expr *program_of(const problem *p, small_program *own)
{
    if (p->op == OP_pointwise) return p->epilogue;
    const uint32_t arity = scalar_at(p->op)->arity;
    memset(own, 0, sizeof *own);
    expr_instr *at = own->x.at;
    for (uint32_t i = 0; i < arity; i++)
        at[i] = (expr_instr){ .op = EXPR_LOAD, .dtype = (uint8_t)p->in[i].dtype, .operand = (uint16_t)i };
    at[arity] = (expr_instr){ .op = (uint16_t)p->op, .dtype = (uint8_t)p->out[0].dtype, .arg = { 0, 1, 2 } };
    for (uint32_t i = arity; i < 3; i++) at[arity].arg[i] = 0;
    at[arity + 1] = (expr_instr){ .op = EXPR_STORE, .dtype = at[arity].dtype, .arg = { (uint16_t)arity } };
    own->x.count = arity + 2;
    return &own->x;
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    space s;
    small_program own;
    REJECT_UNLESS(p->op == OP_pointwise || p->op < OP_SCALAR_COUNT, "not elementwise");
    REJECT_UNLESS(!p->prologue, "it has a prologue");
    if (p->op != OP_pointwise) {
        REJECT_UNLESS(!p->epilogue, "a scalar function with an epilogue");
        REJECT_UNLESS(p->count_in == scalar_at(p->op)->arity && p->count_out == 1, "operands beyond those of the op");
    }
    return space_init(p, program_of(p, &own), true, false, &s);
}

static void shape_of(const problem *p, uint32_t *width, double *vectors)
{
    space s;
    small_program own;
    uint32_t widest, narrowest;
    *width = 1;
    *vectors = 1;
    if (space_init(p, program_of(p, &own), true, false, &s)) return;
    space_sizes(&s, &widest, &narrowest);
    *width = space_vector(&s, 16 / widest);
    *vectors = (double)space_count(&s) / *width;
}

/* The axis along which the largest operand has its elements adjacent, where that is not the result's and both are long;
 * `count` of its elements at once. False: there is none. */
static bool across_of(const problem *p, uint32_t *axis, uint32_t *count)
{
    space s;
    small_program own;
    int64_t largest = 0;
    if (space_init(p, program_of(p, &own), true, false, &s)) return false;
    const uint32_t last = s.count - 1;
    for (uint32_t i = 0; i < p->count_in; i++) {
        const problem_operand *o = &s.in[i];
        if (!o->rank || o->is_gapped || cuda_operand_count(o) <= largest) continue;
        const uint32_t inner = cuda_operand_inner(o);
        if (inner == UINT32_MAX || inner == last || o->dim[last].max == 1 || s.out[0].dim[last].opt < 16 ||
            s.out[0].dim[inner].opt < 16)
            continue;
        largest = cuda_operand_count(o);
        *axis = inner;
        const uint32_t size = sinter_dtype_bits(o->dtype) / 8;
        /* Unaligned ones, too: one after the other, but of the same sectors. */
        *count = size >= 2 ? 16 / size : 8;
    }
    return largest > 0;
}

static void add(tactic_sink *out, uint32_t width, uint32_t unroll, uint32_t block, bool is_across, uint32_t trigger)
{
    const pointwise_tactic own = { .width = (uint8_t)width,
                                   .unroll = (uint8_t)unroll,
                                   .block = (uint16_t)block,
                                   .is_across = is_across,
                                   .trigger = (uint8_t)trigger };
    tactic t;
    memcpy(&t, &own, sizeof t);
    for (uint32_t i = 0; i < out->count; i++)
        if (memcmp(&out->at[i], &t, sizeof t) == 0) return;
    if (out->count < 32) out->at[out->count++] = t;
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    uint32_t width;
    double vectors;
    shape_of(p, &width, &vectors);
    uint32_t axis, count;
    if (across_of(p, &axis, &count)) add(out, count, 1, 256, true, 2);
    const double lanes = (double)(t->units ? t->units : 1) * 1024; /* half of the threads that the chip holds */
    if (vectors < lanes / 8) {
        /* Everything runs at once: the less a thread does, the sooner it ends. */
        add(out, width, 1, 64, false, 2);
        if (width > 1) add(out, width / 2, 1, 128, false, 2);
    }
    if (vectors > lanes * 2) add(out, width, 4, 256, false, 2);
    if (vectors > lanes / 2) add(out, width, 2, 256, false, 2);
    add(out, width, 1, 128, false, 2);
    if (vectors > lanes / 2) add(out, width, 1, 256, false, 2);
    /* The best by the model, with the next grid let in at once. */
    pointwise_tactic first;
    memcpy(&first, &out->at[0], sizeof first);
    add(out, first.width, first.unroll, first.block, first.is_across, 1);
}

static bool check(const problem *p, const tactic *t)
{
    const pointwise_tactic own = TACTIC_AS(pointwise_tactic, t);
    uint32_t width;
    double vectors;
    shape_of(p, &width, &vectors);
    uint32_t axis, count;
    if (!FIELDS_HOLD(fields, t)) return false;
    if (!own.is_across) return own.width <= width;
    return own.unroll == 1 && own.block == 256 && across_of(p, &axis, &count) && own.width == count;
}

FIELDS_PRINT(print, fields)
FIELDS_LET_IN(lets_in, pointwise_tactic, 2)

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    const pointwise_tactic own = TACTIC_AS(pointwise_tactic, t);
    uint32_t width;
    double vectors, bytes = cuda_problem_bytes(p);
    shape_of(p, &width, &vectors);
    const double count = vectors * width, ops = p->epilogue ? p->epilogue->count : 3;
    /* Too few bytes under way, or too few threads, and the memory is not kept busy. */
    const double per_thread = own.width * own.unroll, threads = count / per_thread,
                 lanes = (double)(target->units ? target->units : 1) * 1024;
    uint32_t axis, across;
    if (!own.is_across && across_of(p, &axis, &across)) bytes *= 3;
    const double fill = threads < lanes ? 1 : 1 + 0.1 / own.unroll + (own.width < width ? 0.2 : 0);
    const double serial = 300 * (own.unroll - 1.0) * (threads < lanes / 4);
    return cuda_cost_ns(target, bytes * fill, count * ops * 4) + serial;
}

static bool code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    (void)target;
    space s;
    small_program own;
    const pointwise_tactic tac = TACTIC_AS(pointwise_tactic, t);
    if (index || space_init(p, program_of(p, &own), true, false, &s)) return false;
    c->source = "pointwise.cu";
    c->entry = "pointwise";
    cuda_code_define(c, "WIDTH", tac.width);
    cuda_code_define(c, "UNROLL", tac.unroll);
    cuda_code_define(c, "TRIGGER", tac.trigger);
    if (tac.is_across) {
        uint32_t axis, count;
        if (!across_of(p, &axis, &count)) return false;
        s.emit.inner = (uint8_t)axis;
        cuda_code_define(c, "ACROSS", axis);
        cuda_code_define(c, "XT", ACROSS_LANES);
    }
    cuda_code_define(c, "EVEN", space_is_even(&s, tac.width));
    if (!tac.is_across) cuda_code_define(c, "WIDE", space_is_wide(&s, tac.width));
    s.emit.width = tac.width;
    emit_text(&s.emit, c->generated);
    return true;
}

static sinter_status bind_across(env *e, const problem *p, const pointwise_tactic *t, space *s, const view *in,
                                 const view *out, cuda_record *r)
{
    int64_t size_at[SINTER_RANK_MAX], blocks = 1;
    uint32_t axis, count;
    if (!across_of(p, &axis, &count)) return FAIL(e, INTERNAL, "no operand that runs across the result");
    s->emit.inner = (uint8_t)axis;
    space_dims(s, out, size_at);
    const uint32_t last = s->count - 1;
    const int64_t high = (int64_t)(256 / ACROSS_LANES) * t->width;
    const int64_t tiles_x = (size_at[last] + ACROSS_LANES - 1) / ACROSS_LANES,
                  tiles_y = (size_at[axis] + high - 1) / high;
    for (uint32_t i = 0; i < last; i++)
        if (!i64_mul(blocks, i == axis ? 1 : size_at[i], &blocks)) blocks = INT64_MAX;
    if (!i64_mul(blocks, tiles_x, &blocks) || !i64_mul(blocks, tiles_y, &blocks) || blocks > INT32_MAX)
        return FAIL(e, UNSUPPORTED, "a result of more than 2^31 tiles");
    struct pointwise_args *a;
    TRY(cuda_launch_begin(e, r, 0, (uint64_t)blocks, 1, 1, 256, 0, sizeof *a, &a));
    a->inner = (small)size_at[last];
    a->across = (small)size_at[axis];
    a->tiles_x = cuda_fast_div(tiles_x);
    a->tiles_y = cuda_fast_div(tiles_y);
    for (uint32_t i = 0; i < s->count; i++) a->dim[i] = cuda_fast_div(size_at[i]);
    return space_bind(e, s, in, out, r);
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *record)
{
    (void)attrs;
    space s;
    small_program own;
    const pointwise_tactic tac = TACTIC_AS(pointwise_tactic, t);
    cuda_record *r = record;
    int64_t size_at[SINTER_RANK_MAX];
    const char *why = space_init(p, program_of(p, &own), true, false, &s);
    if (why) return FAIL(e, INTERNAL, "a pointwise program of which the kernel says: %s", why);
    s.emit.width = tac.width;
    space_dims(&s, out, size_at);
    const uint32_t last = s.count - 1;
    if (tac.is_across) return bind_across(e, p, &tac, &s, in, out, r);
    const int64_t row = (size_at[last] + tac.width - 1) / tac.width;
    int64_t total = row;
    for (uint32_t i = 0; i < last; i++)
        if (!i64_mul(total, size_at[i], &total)) total = INT64_MAX;
    const int64_t blocks = cuda_ceil_div(total, (int64_t)tac.block * tac.unroll);
    if (blocks > INT32_MAX || (total > INT32_MAX && !space_is_wide(&s, tac.width)))
        return FAIL(e, UNSUPPORTED, "a result of %lld vectors of %u elements, more than a launch makes",
                    (long long)total, tac.width);
    struct pointwise_args *a;
    TRY(cuda_launch_begin(e, r, 0, (uint64_t)blocks, 1, 1, tac.block, 0, sizeof *a, &a));
    a->total = total;
    a->inner = (small)size_at[last];
    a->row = cuda_fast_div(row);
    for (uint32_t i = 0; i < s.count; i++) a->dim[i] = cuda_fast_div(size_at[i]);
    return space_bind(e, &s, in, out, r);
}

CUDA_ROW(cuda_pointwise, 2, reject, , .out_strides = STRIDES_ANY, .is_in_place = true, .lets_in = lets_in);
