/* SPDX-License-Identifier: Apache-2.0 */
/* integers.c - f32 products with constant weights made products of 8-bit integers, where the user permits it.
 *
 * Data is quantised with one scale, as far as the range says that was measured; weights with a scale for each channel,
 * up to their largest. All zero points are 0. What stands here is Quantize and Dequantize around a product that stays,
 * as a quantised model has it: the rules for such models make the product of integers of it. Data that cannot be
 * negative takes all 8 bits. */
#include "ir/build.h"
#include "tune/gains.h"

#include <float.h>
#include <string.h>

enum { TERMS_MIN = 16, COLUMNS_MIN = 8, DEPTH = 6 };

/* The axis of the weight's channels. UINT32_MAX: not a product that gains, or one that the rules for integers do not
 * know. A product that the user requires in 8 bits need not gain. */
static uint32_t channels_axis(const ir_graph *g, const ir_node *n)
{
    const ir_value *w = ir_value_at(g, n->in[1]);
    const bool is_any = ir_wants_codes(g, n);
    int64_t d[SINTER_RANK_MAX], terms = 1;
    for (uint32_t i = 0; i < w->rank; i++)
        if (!dim_is_const(g->dims, w->dim[i], &d[i]) || d[i] < 1) return UINT32_MAX;
    if (n->op == OP_conv) {
        const int64_t groups = ((const attrs_conv *)n->attrs)->groups;
        if (w->rank < 3 || w->rank > 5) return UINT32_MAX;
        for (uint32_t i = 1; i < w->rank; i++) terms *= d[i];
        const bool is_depthwise = groups > 1 && d[1] == 1;
        if (is_depthwise || is_any) return 0;
        return terms >= TERMS_MIN && d[0] / groups >= COLUMNS_MIN && (groups == 1 || d[1] >= 16) ? 0 : UINT32_MAX;
    }
    const attrs_matmul *a = n->attrs;
    if (w->rank != 2 || (a && a->trans_a) || ir_value_at(g, n->in[0])->rank < 2) return UINT32_MAX;
    const uint32_t axis = a && a->trans_b ? 0 : 1;
    return is_any || (d[1 - axis] >= TERMS_MIN && d[axis] >= COLUMNS_MIN) ? axis : UINT32_MAX;
}

const ir_node *quantize_source(const ir_graph *g, ir_value_id v)
{
    for (uint32_t depth = 0; depth < DEPTH; depth++) {
        const ir_value *x = ir_value_at(g, v);
        const ir_node *n = ir_node_at(g, x->producer ? x->producer : x->recipe);
        if (n->op == OP_dequantize && (x->producer || x->recipe)) return n;
        if ((!x->producer && !x->recipe) || !op_has(n->op, VIEW)) return NULL;
        v = n->in[0];
    }
    return NULL;
}

static bool is_dequantized(const ir_graph *g, ir_value_id v)
{
    return quantize_source(g, v) != NULL;
}

/* Products of the main region. A product in another region may run any number of times. */
static bool is_product(const ir_graph *g, ir_node_id id)
{
    const ir_node *n = ir_node_at(g, id);
    if (n->is_dead || !op_has(n->op, QUANTIZES) || n->parent != IR_MAIN || n->count_in < 2) return false;
    if (ir_keeps_types(g, n)) return false;
    const ir_value *x = ir_value_at(g, n->in[0]), *w = ir_value_at(g, n->in[1]);
    if (x->dtype != SINTER_DTYPE_F32 || w->dtype != SINTER_DTYPE_F32 || x->data || !w->data) return false;
    if (is_dequantized(g, n->in[0]) || is_dequantized(g, n->in[1])) return false;
    return channels_axis(g, n) != UINT32_MAX;
}

/* The same of numbers that the model quantised. */
static bool is_quantized_product(const ir_graph *g, ir_node_id id)
{
    const ir_node *n = ir_node_at(g, id);
    if (n->is_dead || !op_has(n->op, QUANTIZES) || n->count_in < 2) return false;
    const bool has_both = is_dequantized(g, n->in[0]) && is_dequantized(g, n->in[1]);
    return has_both && ir_value_at(g, n->in[0])->dtype == SINTER_DTYPE_F32 && channels_axis(g, n) != UINT32_MAX;
}

/* Can v hold nothing below 0? */
static bool is_unsigned(const ir_graph *g, ir_value_id v)
{
    for (uint32_t depth = 0; depth < DEPTH; depth++) {
        const ir_value *x = ir_value_at(g, v);
        const ir_node *n = ir_node_at(g, x->producer);
        double low;
        if (!x->producer) return false;
        if (op_has(n->op, NOT_NEGATIVE)) return true;
        if (n->op == OP_clip) return n->count_in > 1 && n->in[1] && ir_const_scalar(g, n->in[1], &low) && low >= 0;
        if (!op_has(n->op, WITHIN)) return false;
        v = n->in[0];
    }
    return false;
}

sinter_dtype quantize_data_type(const ir_graph *g, const ir_node *n)
{
    return is_unsigned(g, n->in[0]) ? SINTER_DTYPE_U8 : SINTER_DTYPE_I8;
}

sinter_status quantize_candidates(env *e, arena *a, ir_graph *g, ir_node_id **list, uint32_t *own, uint32_t *count)
{
    *own = *count = 0;
    *list = ARENA_NEW(a, ir_node_id, g->node.count);
    if (!*list) return FAIL_MEMORY(e, "quantising products");
    for (ir_node_id id = 1; id < g->node.count; id++)
        if (is_product(g, id)) (*list)[(*count)++] = id;
    *own = *count;
    for (ir_node_id id = 1; id < g->node.count; id++)
        if (is_quantized_product(g, id)) (*list)[(*count)++] = id;
    return SINTER_OK;
}

/* What the model quantised is in 8 bits already. */
static bool is_demanded(const ir_graph *g, ir_node_id id)
{
    const ir_node *n = ir_node_at(g, id);
    return !n->is_dead && op_has(n->op, QUANTIZES) && ir_wants_codes(g, n) && !is_dequantized(g, n->in[0]);
}

const char *tune_quantize_demanded(const ir_graph *g)
{
    for (ir_node_id id = 1; id < g->node.count && g->coded_origin.count; id++)
        if (is_demanded(g, id)) return ir_node_label(g, id);
    return NULL;
}

/* Checks all regions: a demand for 8 bits on a node that is no candidate is refused. */
static sinter_status demand_check(env *e, const ir_graph *g)
{
    for (ir_node_id id = 1; id < g->node.count; id++) {
        if (!is_demanded(g, id) || is_product(g, id)) continue;
        return FAIL(e, UNSUPPORTED,
                    "layer '%s' is to be computed in i8: wanted is an f32 product with constant weights",
                    ir_node_label(g, id));
    }
    return SINTER_OK;
}

sinter_status tune_quantize_demand(env *e, ir_graph *g, const double *range, uint8_t *is_kept, uint32_t count)
{
    if (!g->coded_origin.count) return SINTER_OK;
    TRY(demand_check(e, g));
    for (ir_node_id id = 1, i = 0; id < g->node.count && i < count; id++) {
        if (!is_product(g, id)) continue;
        const bool is_wanted = ir_wants_codes(g, ir_node_at(g, id));
        if (is_wanted && !(range[i] > 0))
            return FAIL(e, UNSUPPORTED, "layer '%s' is to be computed in i8, and its data has no range",
                        ir_node_label(g, id));
        if (is_wanted && is_kept) is_kept[i] = 0;
        i++;
    }
    return SINTER_OK;
}

/* ---- quantising ---- */

typedef struct quantizing {
    ir_graph *g;
    ir_builder b;
    tune_codes codes;
    ir_value_id *of; /* by value: the same, quantised and dequantised; 0: not made yet */
    uint32_t of_count;
} quantizing;

static const double most_i8 = 127, most_u8 = 255, most_f8 = 448;

static ir_value_id quantized_data(quantizing *q, ir_node_id id, double range)
{
    const ir_value_id x = ir_node_at(q->g, id)->in[0];
    if (x < q->of_count && q->of[x]) return q->of[x];
    const bool is_float = q->codes == TUNE_CODES_F8;
    const bool has_sign = q->codes == TUNE_CODES_I8 || !is_unsigned(q->g, x);
    const sinter_dtype type = is_float ? SINTER_DTYPE_F8E4M3FN : has_sign ? SINTER_DTYPE_I8 : SINTER_DTYPE_U8;
    const double most = is_float ? most_f8 : has_sign ? most_i8 : most_u8;
    build_from(&q->b, &id, 1);
    const ir_value_id scale = build_scalar(&q->b, SINTER_DTYPE_F32, range / most), zero = build_scalar(&q->b, type, 0);
    const ir_value_id y = build_quantize(&q->b, x, scale, zero, type);
    const ir_value_id z = build_dequantize(&q->b, y, scale, zero, SINTER_DTYPE_F32);
    if (x < q->of_count) q->of[x] = z;
    return z;
}

/* The scale of each channel: its largest number is the code `largest`. A channel of zeros, or of numbers too small for
 * their scale, takes any. */
static ir_value_id scale_of(ir_builder *b, ir_value_id w, uint32_t axis, double largest)
{
    int64_t others[SINTER_RANK_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < ir_value_at(b->g, w)->rank; i++)
        if (i != axis) others[count++] = i;
    const ir_value_id size = build_folded(b, build_abs(b, w));
    const ir_value_id most = build_folded(b, build_reduced(b, reduce_kind_max, size, others, count, true));
    const ir_value_id is_large = build_folded(b, build_gt(b, most, build_scalar(b, SINTER_DTYPE_F32, 1e-30))),
                      is_finite =
                          build_folded(b, build_le(b, most, build_scalar(b, SINTER_DTYPE_F32, (double)FLT_MAX))),
                      is = build_folded(b, build_and(b, is_large, is_finite)),
                      scale = build_folded(b, build_div(b, most, build_scalar(b, SINTER_DTYPE_F32, largest)));
    return build_folded(b, build_where(b, is, scale, build_scalar(b, SINTER_DTYPE_F32, 1)));
}

/* Zeros of the shape of a constant. */
static ir_value_id zeros_like(ir_builder *b, ir_value_id v, sinter_dtype type)
{
    int64_t d[SINTER_RANK_MAX];
    const ir_value *x = ir_value_at(b->g, v);
    size_t count = 1;
    for (uint32_t i = 0; i < x->rank; i++) {
        (void)dim_is_const(b->g->dims, x->dim[i], &d[i]);
        count *= (size_t)d[i];
    }
    void *zeros = arena_alloc(&b->g->a, count, 8);
    return zeros ? ir_const(b->g, NULL, type, x->rank, d, zeros) : 0;
}

/* Folded nodes, so that the weight's recipe says how it was quantised. */
static ir_value_id quantized_weight(quantizing *q, ir_node_id id)
{
    ir_builder *b = &q->b;
    const ir_value_id w = ir_node_at(q->g, id)->in[1];
    build_from(b, &id, 1);
    const sinter_dtype type = q->codes == TUNE_CODES_F8 ? SINTER_DTYPE_F8E4M3FN : SINTER_DTYPE_I8;
    const ir_value_id scale =
        scale_of(b, w, channels_axis(q->g, ir_node_at(q->g, id)), q->codes == TUNE_CODES_F8 ? most_f8 : most_i8);
    if (!scale) return 0;
    const ir_value_id zero = q->codes == TUNE_CODES_ENGINE ? build_scalar(b, type, 0) : zeros_like(b, scale, type);
    const ir_value_id code = build_folded(b, build_quantize(b, w, scale, zero, type));
    return build_dequantize(b, code, scale, zero, SINTER_DTYPE_F32);
}

sinter_status tune_quantize(env *e, ir_graph *g, tune_codes codes, const double *range, const uint8_t *is_kept,
                            uint32_t *count)
{
    const uint32_t known = *count;
    quantizing q = { .g = g, .b = { .g = g, .region = IR_MAIN }, .codes = codes, .of_count = g->value.count };
    const uint32_t nodes = g->node.count;
    arena scratch;
    arena_init(&scratch, e);
    /* Marks the products first, because quantising one changes what the search for the others finds. */
    bool *is_one = ARENA_NEW(&scratch, bool, nodes);
    q.of = ARENA_NEW(&scratch, ir_value_id, q.of_count);
    sinter_status s = q.of && is_one ? SINTER_OK : FAIL_MEMORY(e, "quantising products");
    *count = 0;
    for (ir_node_id id = 1; id < nodes && s == SINTER_OK; id++) {
        is_one[id] = is_product(g, id);
        *count += is_one[id];
    }
    uint32_t next = 0;
    for (ir_node_id id = 1; id < nodes && s == SINTER_OK; id++) {
        if (!is_one[id]) continue;
        const uint32_t index = next++;
        if (known != *count || !(range[index] > 0) || (is_kept && is_kept[index])) continue;
        const ir_value_id x = quantized_data(&q, id, range[index]), w = x ? quantized_weight(&q, id) : 0;
        if (!w) s = q.b.status;
        if (w) ir_node_set_in(g, id, 0, x);
        if (w) ir_node_set_in(g, id, 1, w);
    }
    arena_deinit(&scratch);
    return s;
}
