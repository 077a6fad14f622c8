/* SPDX-License-Identifier: Apache-2.0 */
/* placement.c - where quantize and dequantize stand in a model: the sums that quantised products end in, and the rules
 * that TensorRT states for such models.
 *
 * A sum has a residual where one operand is the result of a quantised product, with its bias, and the other one is data
 * from elsewhere. Where that is quantised, the sum is done behind the product without a tensor of floats. */
#include "core/dim.h"
#include "ir/build.h"
#include "tune/gains.h"

static bool is_data(const ir_graph *g, ir_value_id v)
{
    const ir_value *x = ir_value_at(g, v);
    return v && !x->data && x->dtype == SINTER_DTYPE_F32;
}

/* The product whose result v is, with a constant added or without; NULL: none. */
static const ir_node *product_of(const ir_graph *g, ir_value_id v)
{
    for (uint32_t depth = 0; depth < 3; depth++) {
        const ir_node *n = ir_node_at(g, ir_value_at(g, v)->producer);
        if (op_has(n->op, QUANTIZES)) return n;
        if (n->op != OP_add || n->count_in < 2) return NULL;
        if (ir_value_at(g, n->in[1])->data) v = n->in[0];
        else if (ir_value_at(g, n->in[0])->data) v = n->in[1];
        else return NULL;
    }
    return NULL;
}

static bool is_quantized(const ir_graph *g, const ir_node *product)
{
    return product && product->count_in > 1 && quantize_source(g, product->in[0]) && quantize_source(g, product->in[1]);
}

/* Which operand of the sum is a residual; -1: none. Of two results of products the second one is. */
static int residual_of(const ir_graph *g, const ir_node *n)
{
    if (n->is_dead || n->op != OP_add || n->parent != IR_MAIN || !is_data(g, n->in[0]) || !is_data(g, n->in[1]))
        return -1;
    if (n->in[0] == n->in[1]) return -1;
    if (is_quantized(g, product_of(g, n->in[0]))) return 1;
    return is_quantized(g, product_of(g, n->in[1])) ? 0 : -1;
}

/* ---- quantising ---- */

/* Finds, for each value of codes, the node that already dequantises it. */
static void made_find(const ir_graph *g, ir_value_id *of)
{
    for (ir_node_id id = 1; id < g->node.count; id++) {
        const ir_node *n = ir_node_at(g, id);
        if (n->is_dead || n->op != OP_dequantize) continue;
        const ir_node *codes = ir_node_at(g, ir_value_at(g, n->in[0])->producer);
        if (codes->op == OP_quantize) of[codes->in[0]] = n->out[0];
    }
}

sinter_status tune_quantize_sums(env *e, ir_graph *g, tune_codes codes, const double *range, uint32_t count)
{
    const sinter_dtype type = codes == TUNE_CODES_F8 ? SINTER_DTYPE_F8E4M3FN : SINTER_DTYPE_I8;
    const double most = codes == TUNE_CODES_F8 ? 448 : 127;
    const uint32_t nodes = g->node.count;
    ir_builder b = { .g = g, .region = IR_MAIN };
    arena a;
    arena_init(&a, e);
    ir_value_id *of = ARENA_NEW(&a, ir_value_id, g->value.count);
    if (!of) b.status = FAIL_MEMORY(e, "quantising sums");
    else made_find(g, of);
    for (ir_node_id id = 1; id < nodes && !b.status; id++) {
        const int which = residual_of(g, ir_node_at(g, id));
        const ir_value_id x = which < 0 ? 0 : ir_node_at(g, id)->in[which];
        if (!x || x >= count || !(range[x] > 0) || quantize_source(g, x)) continue;
        if (!of[x]) {
            build_from(&b, &id, 1);
            const ir_value_id scale = build_scalar(&b, SINTER_DTYPE_F32, range[x] / most),
                              zero = build_scalar(&b, type, 0);
            of[x] = build_dequantize(&b, build_quantize(&b, x, scale, zero, type), scale, zero, SINTER_DTYPE_F32);
        }
        if (!b.status) ir_node_set_in(g, id, (uint32_t)which, of[x]);
    }
    const sinter_status s = b.status;
    arena_deinit(&a);
    return s;
}

/* ---- rules ---- */

typedef struct placement {
    ir_graph *g;
    tune_told told;
    void *user;
} placement;

static void tell(const placement *p, const ir_node *n, const char *rule, const char *what)
{
    p->told(p->user, rule, ir_node_label(p->g, (ir_node_id)(n - p->g->node.at)), what);
}

static bool is_one(const ir_graph *g, ir_value_id v)
{
    const ir_value *x = ir_value_at(g, v);
    for (uint32_t i = 0; i < x->rank; i++)
        if (!dim_is(g->dims, x->dim[i], 1)) return false;
    return true;
}

static bool is_zero(const ir_graph *g, ir_value_id v)
{
    view x;
    if (!ir_const_view(g, v, &x)) return false;
    for (int64_t i = 0; i < view_count(&x); i++)
        if (view_load_f64(&x, i) != 0) return false;
    return true;
}

static bool is_weight_only(const ir_graph *g, const ir_node *weight)
{
    return sinter_dtype_bits(ir_value_at(g, weight->in[0])->dtype) < 8;
}

static void operands_check(const placement *p, const ir_node *n)
{
    const ir_graph *g = p->g;
    const ir_node *data = quantize_source(g, n->in[0]), *weight = quantize_source(g, n->in[1]);
    const bool is_weight = weight && !ir_value_at(g, n->in[1])->producer;
    if (data && !weight) tell(p, n, "inputs", "its first operand is quantised, its second one is not");
    if (!data && weight && !is_weight_only(g, weight))
        tell(p, n, "inputs", "its second operand is quantised, its first one is not");
    if (data && !is_one(g, data->in[1])) tell(p, n, "scales", "its data has several scales: one is wanted");
    if (is_weight && !is_weight_only(g, weight) && is_one(g, weight->in[1]) && !is_one(g, n->in[1]))
        tell(p, n, "scales", "its weights have one scale: one for each output channel is wanted");
    if (data && sinter_dtype_bits(ir_value_at(g, data->in[0])->dtype) == 8 &&
        (ir_value_at(g, data->in[0])->dtype == SINTER_DTYPE_U8 || !is_zero(g, data->in[2])))
        tell(p, n, "zero", "its data is u8, or has a zero point that is not 0: i8 with 0 is wanted");
    if (weight && !is_zero(g, weight->in[2])) tell(p, n, "zero", "its weights have a zero point that is not 0");
}

/* Are the dequantised codes of `q` read by an activation function? */
static bool feeds_activation(const ir_graph *g, const ir_node *q)
{
    for (ir_node_id id = 1; id < g->node.count; id++) {
        const ir_node *n = ir_node_at(g, id);
        if (n->is_dead || !n->count_in) continue;
        const ir_node *d = ir_node_at(g, ir_value_at(g, n->in[0])->producer);
        const bool reads = d->op == OP_dequantize && d->in[0] == q->out[0];
        if (reads && op_has(n->op, NOT_NEGATIVE)) return true;
    }
    return false;
}

static void node_check(const placement *p, const ir_node *n)
{
    const ir_graph *g = p->g;
    if (op_has(n->op, QUANTIZES) && n->count_in > 1) operands_check(p, n);
    const ir_node *product = n->op == OP_quantize ? product_of(g, n->in[0]) : NULL;
    if (is_quantized(g, product)) {
        if (feeds_activation(g, n)) tell(p, product, "activation", "its output is quantised before its activation");
        else tell(p, product, "output", "its output is quantised at once: behind what follows it is better");
    }
    const int which = residual_of(g, n);
    if (which >= 0 && !quantize_source(g, n->in[which]))
        tell(p, n, "residual", "what is added to a quantised product is not quantised");
}

sinter_status tune_placement(env *e, ir_graph *g, tune_told told, void *user)
{
    (void)e;
    const placement p = { .g = g, .told = told, .user = user };
    for (ir_node_id id = 1; id < g->node.count; id++)
        if (!ir_node_at(g, id)->is_dead) node_check(&p, ir_node_at(g, id));
    return SINTER_OK;
}
