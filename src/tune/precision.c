/* SPDX-License-Identifier: Apache-2.0 */
/* precision.c - f32 work lowered to a narrower float, where the user permits it.
 *
 * Every op that loses little by it is wrapped in casts: its f32 inputs are narrowed, its f32 results widened again.
 * Between two such ops the pair of casts cancels, constants are converted here, and what is left at the edges fuses
 * into neighbours like any other elementwise op. Sums stay f32 inside kernels, whatever the type of operands. Ops that
 * are steep, that choose or count, or whose constants the narrow type cannot hold stay as they are. */
#include "ir/build.h"
#include "tune/gains.h"

#include <math.h>
#include <string.h>

enum { CHAIN = 10, LOOKS_MAX = 1024 };

typedef struct narrowing {
    env *e;
    ir_graph *g;
    sinter_dtype type;
    arena *scratch;
    ir_value_id *of; /* by value: the same in the narrow type; 0: not made yet */
    uint32_t of_count, count;
    uint32_t looks; /* values left to visit for one answer: chains may meet again and again */
} narrowing;

/* An attention mask may hold what only f32 holds. */
bool narrow_stays(const ir_node *n, uint32_t input)
{
    return n->op == OP_attention && input == 3;
}

/* The largest number of the type. */
static double most_of(sinter_dtype type)
{
    return type == SINTER_DTYPE_F16 ? 65504 : 3.3895313892515355e38;
}

/* Does the constant fit into the narrow type? Limits of clip and large numbers of masks saturate. Other constants must
 * keep their values. A constant that may be replaced later counts as fitting. */
static bool const_fits(const narrowing *w, const ir_node *n, ir_value_id v)
{
    view x;
    if (!ir_const_view(w->g, v, &x)) return false;
    if (ir_value_at(w->g, v)->is_open) return true;
    const bool saturates = op_has(n->op, LIMITS);
    const double most = most_of(w->type), least = w->type == SINTER_DTYPE_F16 ? 6e-8 : 1e-38;
    const int64_t count = view_count(&x);
    bool has_infinite = false, has_large = false;
    for (int64_t i = 0; i < count; i++) {
        const double a = fabs((double)((const float *)x.data)[i]);
        if (a > most && !saturates) return false;
        has_infinite = has_infinite || isinf(a);
        has_large = has_large || (a > most && !isinf(a));
        if (a > 0 && a < least && count == 1) return false;
    }
    return !(has_infinite && has_large); /* they would become one */
}

static bool is_f32(const narrowing *w, ir_value_id v)
{
    return v && ir_value_at(w->g, v)->dtype == SINTER_DTYPE_F32;
}

/* Is v a sum of integers, in an integer type or in f32? Such a sum may exceed the narrow float's range until all its
 * scales are applied. */
static bool is_sum(const narrowing *w, ir_value_id v, uint32_t depth)
{
    const ir_value *x = ir_value_at(w->g, v);
    const ir_node *n = ir_node_at(w->g, x->producer);
    if (!x->producer || depth > 2) return false;
    if (n->op == OP_matmul) return ((const attrs_matmul *)n->attrs)->type == SINTER_DTYPE_F32;
    if (n->op == OP_cast) {
        const ir_value *from = ir_value_at(w->g, n->in[0]);
        return from->producer && from->dtype == SINTER_DTYPE_I32 &&
               op_has(ir_node_at(w->g, from->producer)->op, CONTRACTION);
    }
    return n->op == OP_mul && (is_sum(w, n->in[0], depth + 1) || is_sum(w, n->in[1], depth + 1));
}

/* Ops that fuse into the kernel before or behind them, or that only move numbers. */
static bool is_light(op_id op)
{
    return op_has(op, ELEMENTWISE | VIEW | MOVES);
}

/* Ops with a kernel of their own, which reads what is dequantised as integers. */
static bool is_pool(op_id op)
{
    return op_has(op, REDUCTION);
}

/* Is v computed from integers in the kernel that reads it? */
static bool comes_from_integers(narrowing *w, ir_value_id v, uint32_t depth)
{
    const ir_value *x = ir_value_at(w->g, v);
    const ir_node *n = ir_node_at(w->g, x->producer);
    if (x->data) return true;
    if (!x->producer || depth > CHAIN || !w->looks) return false;
    w->looks--;
    const bool is_typed = op_is_scalar(n->op) && op_at(n->op)->attrs_size;
    if (is_typed) return !dtype_is_float(ir_value_at(w->g, n->in[0])->dtype);
    if (is_pool(n->op)) return ir_node_at(w->g, ir_value_at(w->g, n->in[0])->producer)->op == OP_dequantize;
    bool does = is_light(n->op);
    for (uint32_t i = 0; i < n->count_in && does; i++) does = !n->in[i] || comes_from_integers(w, n->in[i], depth + 1);
    return does;
}

/* Do all readers of v, directly or behind light ops, round it to whole numbers or codes, or select by it? */
static bool becomes_steps(narrowing *w, ir_value_id v, uint32_t depth)
{
    ir_node_id *reader;
    if (ir_value_at(w->g, v)->is_output || depth > CHAIN || !w->looks) return false;
    w->looks--;
    const arena_mark mark = arena_save(w->scratch);
    const uint32_t count = ir_readers(w->g, v, w->scratch, &reader);
    bool does = count > 0;
    for (uint32_t i = 0; i < count && does; i++) {
        const ir_node *n = ir_node_at(w->g, reader[i]);
        const bool is_last = op_has(n->op, STEPS) || !dtype_is_float(ir_value_at(w->g, n->out[0])->dtype);
        does = is_last ||
               (is_light(n->op) && n->count_out == 1 && is_f32(w, n->out[0]) && becomes_steps(w, n->out[0], depth + 1));
    }
    arena_rewind(w->scratch, mark);
    return does;
}

/* Values between integers never reach memory, so a narrower type gains nothing. */
static bool is_between_integers(narrowing *w, const ir_node *n)
{
    if (op_has(n->op, CONTRACTION) || n->count_out != 1) return false;
    w->looks = LOOKS_MAX;
    for (uint32_t i = 0; i < n->count_in; i++)
        if (n->in[i] && !comes_from_integers(w, n->in[i], 0)) return false;
    return becomes_steps(w, n->out[0], 0);
}

/* Is v computed from inputs, constants and results that stay f32, in the kernel that reads it? */
static bool comes_from_f32(narrowing *w, ir_value_id v, uint32_t depth)
{
    const ir_value *x = ir_value_at(w->g, v);
    const ir_node *n = ir_node_at(w->g, x->producer);
    if (!x->producer || !op_has(n->op, NARROWS)) return true;
    if (depth > CHAIN || !w->looks || !is_light(n->op)) return false;
    w->looks--;
    bool does = true;
    for (uint32_t i = 0; i < n->count_in && does; i++) does = !n->in[i] || comes_from_f32(w, n->in[i], depth + 1);
    return does;
}

/* Coordinates and the like are computed in f32 and then rounded or compared: their last bits decide. */
static bool is_position(narrowing *w, const ir_node *n)
{
    w->looks = LOOKS_MAX;
    return is_light(n->op) && n->count_out == 1 && comes_from_f32(w, n->out[0], 0) && becomes_steps(w, n->out[0], 0);
}

/* Is v a scale for quantising, or is a scale computed from v in the kernel that reads v? */
static bool is_scale(narrowing *w, ir_value_id v, uint32_t depth)
{
    ir_node_id *reader;
    if (depth > CHAIN || !w->looks) return false;
    w->looks--;
    const arena_mark mark = arena_save(w->scratch);
    const uint32_t count = ir_readers(w->g, v, w->scratch, &reader);
    bool is = false;
    for (uint32_t i = 0; i < count && !is; i++) {
        const ir_node *n = ir_node_at(w->g, reader[i]);
        is = (n->op == OP_quantize && n->in[1] == v) ||
             (is_light(n->op) && n->count_out == 1 && is_f32(w, n->out[0]) && is_scale(w, n->out[0], depth + 1));
    }
    arena_rewind(w->scratch, mark);
    return is;
}

/* A scale has few numbers: a narrower type gains nothing. */
static bool makes_scale(narrowing *w, const ir_node *n)
{
    w->looks = LOOKS_MAX;
    return (is_light(n->op) || is_pool(n->op)) && n->count_out == 1 && is_scale(w, n->out[0], 0);
}

static bool wants(narrowing *w, const ir_node *n)
{
    if (n->is_dead || n->count_region || !op_has(n->op, NARROWS) || ir_keeps_types(w->g, n)) return false;
    if (n->op == OP_reduce) { /* sums and products may pass what the type holds, means and extremes do not */
        const int64_t kind = ((const attrs_reduce *)n->attrs)->kind;
        if (kind != reduce_kind_mean && kind != reduce_kind_max && kind != reduce_kind_min) return false;
    }
    if (n->op == OP_mul && (is_sum(w, n->in[0], 0) || is_sum(w, n->in[1], 0))) return false;
    for (uint32_t i = 0; i < n->count_out; i++)
        if (!is_f32(w, n->out[i])) return false;
    bool is_any = n->op == OP_gather; /* tables are constants */
    for (uint32_t i = 0; i < n->count_in; i++) {
        if (!is_f32(w, n->in[i]) || narrow_stays(n, i)) continue;
        if (ir_is_const(w->g, n->in[i]) && !const_fits(w, n, n->in[i])) return false;
        is_any = is_any || !ir_is_const(w->g, n->in[i]);
    }
    return is_any && !is_between_integers(w, n) && !is_position(w, n) && !makes_scale(w, n);
}

static ir_value_id cast(narrowing *w, ir_region_id parent, ir_value_id v, sinter_dtype to)
{
    ir_builder b = { .g = w->g, .region = parent };
    return build_cast(&b, v, to);
}

/* The constant, saturated where it is a limit that the type does not hold. It is folded, so
 * that its recipe says how it was narrowed. */
static ir_value_id narrow_const(narrowing *w, const ir_node *n, ir_value_id v)
{
    ir_builder b = { .g = w->g, .region = IR_MAIN };
    const double most = most_of(w->type);
    bool fits = !ir_value_at(w->g, v)->is_open;
    view x;
    const int64_t count = ir_const_view(w->g, v, &x) ? view_count(&x) : 0;
    for (int64_t i = 0; i < count && fits; i++) {
        const double a = fabs((double)((const float *)x.data)[i]);
        fits = !(a > most) || isinf(a);
    }
    if (!fits && op_has(n->op, LIMITS)) {
        const ir_value_id low = build_scalar(&b, SINTER_DTYPE_F32, -most);
        v = build_folded(&b, build_clip(&b, v, low, build_scalar(&b, SINTER_DTYPE_F32, most)));
    }
    return build_folded(&b, build_cast(&b, v, w->type));
}

static sinter_status narrow_input(narrowing *w, ir_node_id id, uint32_t i)
{
    const ir_node *n = ir_node_at(w->g, id);
    const ir_value_id v = n->in[i];
    const bool is_const = ir_is_const(w->g, v);
    ir_value_id made = v < w->of_count && is_const ? w->of[v] : 0;
    if (!made) made = is_const ? narrow_const(w, n, v) : cast(w, n->parent, v, w->type);
    if (!made) return FAIL_MEMORY(w->e, "a narrower value");
    if (v < w->of_count && is_const) w->of[v] = made;
    ir_node_set_in(w->g, id, i, made);
    return SINTER_OK;
}

/* Gives the node a narrow result, followed by a cast to the type that the result had before. */
static sinter_status narrow_output(narrowing *w, ir_node_id id, uint32_t i)
{
    const ir_value_id v = ir_node_at(w->g, id)->out[i];
    const ir_value_id made = ir_value_new(w->g, NULL);
    if (!made) return FAIL_MEMORY(w->e, "a narrower value");
    const ir_value x = *ir_value_at(w->g, v);
    ir_value *y = ir_value_at(w->g, made);
    y->dtype = w->type;
    y->rank = x.rank;
    memcpy(y->dim, x.dim, sizeof y->dim);
    TRY(ir_node_set_out(w->g, id, i, made));
    const ir_value_id wide = cast(w, ir_node_at(w->g, id)->parent, made, SINTER_DTYPE_F32);
    if (!wide) return FAIL_MEMORY(w->e, "a wider value");
    const ir_node_id maker = ir_value_at(w->g, wide)->producer;
    TRY(ir_origin_unite(w->g, maker, id));
    return ir_node_set_out(w->g, maker, 0, v);
}

/* ---- states ---- */

static bool is_narrowing(const narrowing *w, ir_node_id id)
{
    const ir_node *n = ir_node_at(w->g, id);
    return n->op == OP_cast && ir_value_at(w->g, n->out[0])->dtype == w->type;
}

/* Changes the value to the narrow type. Its readers get a cast to f32. */
static sinter_status narrow_value(narrowing *w, ir_value_id v)
{
    ir_node_id *reader;
    const uint32_t count = ir_readers(w->g, v, w->scratch, &reader);
    ir_value_at(w->g, v)->dtype = w->type;
    const ir_value_id wide = count ? cast(w, IR_MAIN, v, SINTER_DTYPE_F32) : v;
    if (!wide) return FAIL_MEMORY(w->e, "a wider value");
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < ir_node_at(w->g, reader[i])->count_in; k++)
            if (ir_node_at(w->g, reader[i])->in[k] == v) ir_node_set_in(w->g, reader[i], k, wide);
    return SINTER_OK;
}

/* Narrows a state to which rows are appended, if the reader of all rows rounds them in any case. */
static sinter_status narrow_appended(narrowing *w, ir_value_id past, ir_value_id present)
{
    const ir_node_id id = ir_value_at(w->g, present)->producer;
    ir_node_id *reader;
    const uint32_t count = ir_readers(w->g, present, w->scratch, &reader);
    bool is_read = false;
    for (uint32_t i = 0; i < count; i++) is_read = is_read || is_narrowing(w, reader[i]);
    if (!is_read) return SINTER_OK;
    TRY(narrow_input(w, id, 1));
    ir_value_at(w->g, past)->dtype = w->type;
    return narrow_value(w, present);
}

/* Narrows a state that is replaced as a whole, if all its readers round it and its new value is rounded already. */
static sinter_status narrow_replaced(narrowing *w, ir_value_id past, ir_value_id present)
{
    const ir_node *maker = ir_node_at(w->g, ir_value_at(w->g, present)->producer);
    ir_builder b = { .g = w->g, .region = IR_MAIN };
    ir_node_id *reader;
    const uint32_t count = ir_readers(w->g, past, w->scratch, &reader);
    bool is_one = ir_value_at(w->g, present)->producer && maker->op == OP_cast && present != past &&
                  ir_value_at(w->g, maker->in[0])->dtype == w->type;
    for (uint32_t i = 0; i < count; i++) is_one = is_one && is_narrowing(w, reader[i]);
    if (!is_one || ir_value_at(w->g, past)->use_count != count) return SINTER_OK;
    const ir_value_id made = build_copy(&b, maker->in[0], DEFAULTS(copy));
    if (!made) return FAIL_MEMORY(w->e, "a state");
    TRY(narrow_value(w, present));
    TRY(ir_node_set_out(w->g, ir_value_at(w->g, made)->producer, 0, present));
    return narrow_value(w, past);
}

/* Keeps a state in the narrow type where each run would otherwise convert it. */
static sinter_status narrow_states(narrowing *w)
{
    const uint32_t count = w->g->states.count;
    for (uint32_t i = 0; i < count; i++) {
        const ir_region *main = ir_region_at(w->g, IR_MAIN);
        const ir_value_id past = main->param.at[ir_input_count(w->g) + i],
                          present = main->result.at[ir_output_count(w->g) + i];
        const ir_value *x = ir_value_at(w->g, past), *y = ir_value_at(w->g, present);
        if (x->dtype != SINTER_DTYPE_F32 || !y->producer) continue;
        const ir_node *n = ir_node_at(w->g, y->producer);
        const bool is_appended = op_has(n->op, UPDATES) && n->in[0] == past && x->use_count == 1;
        TRY(is_appended ? narrow_appended(w, past, present) : narrow_replaced(w, past, present));
    }
    return SINTER_OK;
}

sinter_status narrow_candidates(env *e, arena *a, ir_graph *g, sinter_dtype type, ir_node_id **list, uint32_t *count)
{
    arena scratch;
    arena_init(&scratch, e);
    narrowing w = { .e = e, .g = g, .type = type, .scratch = &scratch };
    *count = 0;
    *list = ARENA_NEW(a, ir_node_id, g->node.count);
    for (ir_node_id id = 1; *list && id < g->node.count; id++)
        if (wants(&w, ir_node_at(g, id))) (*list)[(*count)++] = id;
    arena_deinit(&scratch);
    return *list ? SINTER_OK : FAIL_MEMORY(e, "lowering types");
}

sinter_status tune_narrow(env *e, ir_graph *g, sinter_dtype type, const uint8_t *is_kept, uint32_t *count)
{
    const uint32_t known = *count;
    narrowing w = { .e = e, .g = g, .type = type, .of_count = g->value.count };
    arena scratch;
    arena_init(&scratch, e);
    w.scratch = &scratch;
    w.of = ARENA_NEW(&scratch, ir_value_id, w.of_count);
    const uint32_t nodes = g->node.count;
    /* Marks the ops first, because lowering one changes what the search for the others finds. */
    bool *is_one = ARENA_NEW(&scratch, bool, nodes);
    sinter_status s = w.of && is_one ? SINTER_OK : FAIL_MEMORY(e, "lowering types");
    *count = 0;
    for (ir_node_id id = 1; id < nodes && s == SINTER_OK; id++) {
        is_one[id] = wants(&w, ir_node_at(g, id));
        *count += is_one[id];
    }
    for (ir_node_id id = 1; id < nodes && s == SINTER_OK; id++) {
        if (!is_one[id]) continue;
        const uint32_t index = w.count++;
        if (is_kept && (*count != known || is_kept[index])) continue;
        for (uint32_t i = 0; i < ir_node_at(g, id)->count_in && s == SINTER_OK; i++)
            if (is_f32(&w, ir_node_at(g, id)->in[i]) && !narrow_stays(ir_node_at(g, id), i))
                s = narrow_input(&w, id, i);
        for (uint32_t i = 0; i < ir_node_at(g, id)->count_out && s == SINTER_OK; i++) s = narrow_output(&w, id, i);
    }
    if (s == SINTER_OK) s = narrow_states(&w);
    arena_deinit(&scratch);
    return s;
}
