/* SPDX-License-Identifier: Apache-2.0 */
/* fold.c - computes nodes whose inputs are known while the graph is built.
 *
 * The reference kernels do the work, so folding can never disagree with running. ir_fold() turns a node's outputs into
 * constants; the node stays as the recipe of them. ir_known_scalar() asks what a value will be and changes nothing: the
 * importer asks for conditions, since exporters guard branches with comparisons of ranks and sizes, and only one of the
 * branches fits the rest of the model. */
#include "ir/graph.h"

#include <math.h>

enum {
    ARGS_MAX = 16,
    FREE_SIZE = 1 << 20, /* results of so many bytes are always computed, */
    GROWTH = 4,          /* and of so many times the bytes of the operands */
    ARENA_SIZE = 4096,   /* larger results are blobs */
    DEPTH_MAX = 32,      /* of the search for a known scalar */
    VISITS_MAX = 256,
    ELEMENTS_MAX = 4096
};

/* ---- large weights, fast ---- */

static bool is_packed(sinter_dtype t)
{
    return sinter_dtype_bits(t) <= 8 && t != SINTER_DTYPE_BOOL;
}

static bool is_wide(sinter_dtype t)
{
    return t == SINTER_DTYPE_F32 || t == SINTER_DTYPE_F16 || t == SINTER_DTYPE_BF16;
}

/* One row along the last axis of the result, and what each operand has for it. */
typedef struct rows {
    const view *x;            /* as broadcast to the result */
    const double *value;      /* of each code of 8 bits or fewer, where there are such */
    int64_t at[3], stride[3]; /* elements: where the row begins, and to the next */
    uint32_t bits[3];
    view *out;
    int64_t first, count; /* of the result */
} rows;
typedef void (*rows_function)(const rows *r);

static double f32_at(const rows *r, uint32_t input, int64_t i)
{
    return (double)((const float *)r->x[input].data)[r->at[input] + i * r->stride[input]];
}

static void multiply_row(const rows *r)
{
    float *y = (float *)r->out->data + r->first;
    for (int64_t i = 0; i < r->count; i++) y[i] = (float)(f32_at(r, 0, i) * f32_at(r, 1, i));
}

static void abs_row(const rows *r)
{
    float *y = (float *)r->out->data + r->first;
    for (int64_t i = 0; i < r->count; i++) y[i] = (float)fabs(f32_at(r, 0, i));
}

static void f16_row(const rows *r)
{
    uint16_t *y = (uint16_t *)r->out->data + r->first;
    for (int64_t i = 0; i < r->count; i++) y[i] = dtype_f16_of_f64(f32_at(r, 0, i));
}

static void bf16_row(const rows *r)
{
    uint16_t *y = (uint16_t *)r->out->data + r->first;
    for (int64_t i = 0; i < r->count; i++) y[i] = dtype_bf16_of_f64(f32_at(r, 0, i));
}

static double code_value(const rows *r, uint32_t input, int64_t i)
{
    const int64_t index = r->at[input] + i * r->stride[input];
    const uint8_t *at = r->x[input].data;
    const uint32_t bits = r->bits[input]; /* 8, 4 or 2 */
    if (bits == 8) return r->value[at[index]];
    const int64_t bit = index * bits;
    return r->value[(uint32_t)at[bit / 8] >> (bit % 8) & ((1u << bits) - 1)];
}

static double wide_at(const rows *r, uint32_t input, int64_t i)
{
    const int64_t index = r->at[input] + i * r->stride[input];
    if (r->bits[input] == 32) return (double)((const float *)r->x[input].data)[index];
    const uint16_t half = ((const uint16_t *)r->x[input].data)[index];
    return (double)(r->x[input].dtype == SINTER_DTYPE_F16 ? dtype_f16_to_f32(half) : dtype_bf16_to_f32(half));
}

static void dequantize_row(const rows *r)
{
    const sinter_dtype t = r->out->dtype;
    const bool has_zero = r->x[2].data;
    for (int64_t i = 0; i < r->count; i++) {
        const double zero = has_zero ? code_value(r, 2, i) : 0, y = (code_value(r, 0, i) - zero) * wide_at(r, 1, i);
        if (t == SINTER_DTYPE_F32) ((float *)r->out->data)[r->first + i] = (float)y;
        else
            ((uint16_t *)r->out->data)[r->first + i] =
                t == SINTER_DTYPE_F16 ? dtype_f16_of_f64(y) : dtype_bf16_of_f64(y);
    }
}

/* To integers of 8 bits. */
static void quantize_row(const rows *r)
{
    int64_t low, high;
    dtype_int_range(r->out->dtype, &low, &high);
    for (int64_t i = 0; i < r->count; i++) {
        const double q = nearbyint((double)(float)(f32_at(r, 0, i) / f32_at(r, 1, i))) + code_value(r, 2, i);
        const int64_t beyond = q >= (double)high ? high : low; /* of NaN: the lowest */
        ((int8_t *)r->out->data)[r->first + i] = (int8_t)(q > (double)low && q < (double)high ? (int64_t)q : beyond);
    }
}

/* Weights are large, and little else is folded into them: scales, magnitudes, narrower types. They are computed along
 * rows as the reference computes them (in double, rounded once), without its indirection. NULL: not one of these. */
static rows_function rows_of(op_id op, const view *in, const view *out)
{
    const bool is_f32 = in[0].dtype == SINTER_DTYPE_F32;
    if (op == OP_dequantize)
        return is_packed(in[0].dtype) && is_wide(in[1].dtype) && is_wide(out->dtype) ? dequantize_row : NULL;
    if (op == OP_quantize)
        return is_f32 && in[1].dtype == SINTER_DTYPE_F32 && sinter_dtype_bits(out->dtype) == 8 &&
                       dtype_is_int(out->dtype)
                   ? quantize_row
                   : NULL;
    if (op == OP_cast && is_f32)
        return out->dtype == SINTER_DTYPE_F16 ? f16_row : out->dtype == SINTER_DTYPE_BF16 ? bf16_row : NULL;
    if (!is_f32 || out->dtype != SINTER_DTYPE_F32) return NULL;
    if (op == OP_mul) return multiply_row;
    return op == OP_abs ? abs_row : NULL;
}

static bool compute_rows(const ir_node *n, const view *in, view *out)
{
    const rows_function compute = n->count_in && out->rank ? rows_of(n->op, in, out) : NULL;
    if (!compute) return false;
    view x[3] = { { 0 } };
    double value[256];
    rows r = { .x = x, .value = value, .out = out };
    const uint32_t last = out->rank - 1;
    for (uint32_t i = 0; i < n->count_in; i++) {
        if (!view_broadcast(&in[i], out->rank, out->dim, &x[i])) return false;
        r.stride[i] = x[i].stride[last];
        r.bits[i] = (uint32_t)sinter_dtype_bits(x[i].dtype);
    }
    const sinter_dtype codes = is_packed(in[0].dtype) ? in[0].dtype : out->dtype;
    for (uint32_t i = 0; i < COUNT_OF(value) && is_packed(codes); i++) {
        const uint8_t code = (uint8_t)i;
        value[i] = dtype_load_f64(codes, &code, 0);
    }
    r.count = out->dim[last];
    int64_t index[SINTER_RANK_MAX];
    for (bool more = view_first(out->dim, last, index); more; more = view_next(out->dim, last, index)) {
        for (uint32_t i = 0; i < n->count_in; i++) {
            r.at[i] = 0;
            for (uint32_t k = 0; k < last; k++) r.at[i] += index[k] * x[i].stride[k];
        }
        compute(&r);
        r.first += r.count;
    }
    return true;
}

/* ---- one node ---- */

static bool is_computable(const ir_node *n)
{
    const op_info *op = op_at(n->op);
    return !op->regions && !(op->traits & (LATE | VARIES)) && !n->prologue && !n->epilogue && n->count_out &&
           (n->count_in <= ARGS_MAX || n->op == OP_concat);
}

/* Integers that are known although no constant holds them. */
static bool has_known_integers(const ir_graph *g, const ir_value *v)
{
    if (!v->shape_value || v->rank > 1) return false;
    for (uint32_t i = 0; i < v->shape_count; i++)
        if (!dim_is_const(g->dims, v->shape_value[i], NULL)) return false;
    return true;
}

static size_t size_of(const view *v)
{
    const sinter_tensor t = { .dtype = v->dtype, .rank = 1, .dim = { view_count(v) } };
    return sinter_tensor_size(&t);
}

/* A dense view of the value's type and sizes, without data. False where the sizes are not numbers. */
static bool shape_view(const ir_graph *g, const ir_value *v, view *out)
{
    int64_t d[SINTER_RANK_MAX] = { 0 };
    for (uint32_t i = 0; i < v->rank; i++)
        if (!dim_is_const(g->dims, v->dim[i], &d[i]) || d[i] < 0) return false;
    return view_init(out, v->dtype, v->rank, d, NULL) && size_of(out) != SIZE_MAX;
}

/* The elements of a constant, or of known integers. */
static bool known_view(const ir_graph *g, arena *a, ir_value_id id, view *out)
{
    const ir_value *v = ir_value_at(g, id);
    if (ir_const_view(g, id, out)) return true;
    if (!has_known_integers(g, v) || !shape_view(g, v, out) || view_count(out) != (int64_t)v->shape_count) return false;
    out->data = arena_alloc(a, size_of(out), 8);
    for (uint32_t i = 0; out->data && i < v->shape_count; i++) {
        int64_t item = 0;
        (void)dim_is_const(g->dims, v->shape_value[i], &item);
        view_store_i64(out, i, item);
    }
    return out->data != NULL;
}

/* The attributes as a kernel sees them, with numbers where the graph has expressions. False: one is no number. */
static bool resolve(const ir_graph *g, arena *a, const ir_node *n, void **out)
{
    *out = op_attrs_copy(a, n->op, n->attrs);
    for (const attr_info *d = op_at(n->op)->attr; *out && d->name; d++) {
        if (d->kind != ATTR_DIMS) continue;
        attr_dims *list = (attr_dims *)(void *)((char *)*out + d->at);
        int64_t *at = ARENA_NEW(a, int64_t, list->count);
        for (uint32_t i = 0; at && i < list->count; i++)
            if (!dim_is_const(g->dims, (dim)list->at[i], &at[i])) return false;
        list->at = at;
    }
    return true;
}

/* *is_done false: an index is bad, which is the run's to report. */
static sinter_status evaluate(const ir_graph *g, const ir_node *n, arena *a, const void *attrs, const view *in,
                              view *out, bool *is_done)
{
    if (!attrs || a->failed) return FAIL_MEMORY(g->e, "constant folding");
    data_fault fault = { 0 };
    ref_call c = { .e = g->e,
                   .op = n->op,
                   .attrs = attrs,
                   .count_in = n->count_in,
                   .count_out = n->count_out,
                   .in = in,
                   .out = out,
                   .scratch = a,
                   .fault = &fault };
    if (!compute_rows(n, in, out)) TRY(op_reference(&c));
    *is_done = !fault.is_set;
    return SINTER_OK;
}

/* ---- folding ---- */

/* Without a limit of its own: a result of many more elements than its operands is left to the run, since reading it
 * back would cost more than computing it. A result of at most twice the elements is always computed, also above
 * fold_max: packed weights (4 or 8 bits that are dequantised) must not be unpacked in every run, and what they become
 * is bounded by what the model holds. */
static bool is_worth(const ir_graph *g, const ir_node *n, const view *in, const view *out)
{
    size_t size_in = 0, size_out = 0;
    int64_t most_in = 0, count_out = 0;
    for (uint32_t i = 0; i < n->count_in; i++) {
        if (!n->in[i]) continue;
        size_in = size_add(size_in, size_of(&in[i]));
        if (view_count(&in[i]) > most_in) most_in = view_count(&in[i]);
    }
    for (uint32_t i = 0; i < n->count_out; i++) {
        size_out = size_add(size_out, size_of(&out[i]));
        count_out += view_count(&out[i]);
    }
    const size_t grown = size_mul(size_in, GROWTH), allowed = grown > FREE_SIZE ? grown : FREE_SIZE;
    if (size_out <= allowed && size_out <= g->e->limits.fold_max) return true;
    return count_out / 2 <= most_in && size_out <= g->e->limits.memory_max;
}

static bool is_small(const ir_node *n, const view *in, const view *out, size_t each_max)
{
    for (uint32_t i = 0; i < n->count_in; i++)
        if (n->in[i] && size_of(&in[i]) > each_max) return false;
    for (uint32_t i = 0; i < n->count_out; i++)
        if (size_of(&out[i]) > each_max) return false;
    return true;
}

static sinter_status fold(ir_graph *g, ir_node_id id, arena *a, size_t each_max, bool *folded)
{
    const ir_node *n = &g->node.at[id];
    view *in = ARENA_NEW(a, view, n->count_in), *out = ARENA_NEW(a, view, n->count_out);
    size_t *size = ARENA_NEW(a, size_t, n->count_out);
    void **data = ARENA_NEW(a, void *, n->count_out), *attrs;
    if (!in || !out || !size || !data) return FAIL_MEMORY(g->e, "constant folding");
    for (uint32_t i = 0; i < n->count_in; i++)
        if (n->in[i] && !known_view(g, a, n->in[i], &in[i])) return SINTER_OK;
    for (uint32_t i = 0; i < n->count_out; i++)
        if (!shape_view(g, ir_value_at(g, n->out[i]), &out[i])) return SINTER_OK;
    if (!resolve(g, a, n, &attrs)) return SINTER_OK;
    if (each_max ? !is_small(n, in, out, each_max) : !is_worth(g, n, in, out)) return SINTER_OK;
    for (uint32_t i = 0; i < n->count_out; i++) {
        size[i] = size_of(&out[i]);
        data[i] = size[i] <= ARENA_SIZE ? arena_alloc(&g->a, size[i], 64) : ir_blob(g, size[i]);
        if (!data[i]) return FAIL_MEMORY(g->e, "a folded constant");
        out[i].data = data[i];
    }
    TRY(evaluate(g, n, a, attrs, in, out, folded));
    if (*folded) ir_node_fold(g, id, data, size);
    return SINTER_OK;
}

sinter_status ir_fold(ir_graph *g, ir_node_id id, size_t each_max, bool *folded)
{
    const ir_node *n = ir_node_at(g, id);
    *folded = false;
    if (!is_computable(n)) return SINTER_OK;
    for (uint32_t i = 0; i < n->count_in; i++)
        if (n->in[i] && !ir_is_const(g, n->in[i]) && !has_known_integers(g, ir_value_at(g, n->in[i]))) return SINTER_OK;
    for (uint32_t i = 0; i < n->count_out; i++)
        if (ir_value_at(g, n->out[i])->is_output) return SINTER_OK; /* an output needs someone to write it */
    arena a;
    arena_init(&a, g->e);
    const sinter_error before = *g->e->error;
    sinter_status s = fold(g, id, &a, each_max, folded);
    arena_deinit(&a);
    if (s && s != SINTER_NO_MEMORY && each_max) {
        *g->e->error = before; /* the optimiser decides, or the run says what is wrong */
        s = SINTER_OK;
    }
    return s ? NOTE(g->e, s, "while folding node %s (%s)", ir_node_label(g, id), op_at(n->op)->name) : SINTER_OK;
}

/* ---- asking ---- */

typedef struct search {
    const ir_graph *g;
    arena *a;
    uint32_t visits;
} search;

static bool known(search *s, ir_value_id v, uint32_t depth, view *out);

static bool compute(search *s, ir_node_id id, uint32_t depth, uint32_t output, view *out)
{
    const ir_node *n = ir_node_at(s->g, id);
    void *attrs;
    bool is_done = false;
    if (!is_computable(n) || !resolve(s->g, s->a, n, &attrs)) return false;
    view *in = ARENA_NEW(s->a, view, n->count_in), *all = ARENA_NEW(s->a, view, n->count_out);
    for (uint32_t i = 0; i < n->count_in; i++)
        if (!in || (n->in[i] && !known(s, n->in[i], depth + 1, &in[i]))) return false;
    for (uint32_t i = 0; i < n->count_out; i++) {
        if (!all || !shape_view(s->g, ir_value_at(s->g, n->out[i]), &all[i])) return false;
        if (view_count(&all[i]) > ELEMENTS_MAX) return false;
        all[i].data = arena_alloc(s->a, size_of(&all[i]), 8);
    }
    const sinter_error before = *s->g->e->error;
    if (evaluate(s->g, n, s->a, attrs, in, all, &is_done) != SINTER_OK) {
        *s->g->e->error = before; /* nobody asked to run it: no failure of theirs */
        return false;
    }
    *out = all[output];
    return is_done;
}

static bool known(search *s, ir_value_id v, uint32_t depth, view *out)
{
    const ir_node_id maker = ir_value_at(s->g, v)->producer;
    if (ir_const_view(s->g, v, out)) return ir_look(s->g, v);
    if (depth > DEPTH_MAX || ++s->visits > VISITS_MAX) return false;
    return known_view(s->g, s->a, v, out) ||
           (maker && compute(s, maker, depth, ir_value_at(s->g, v)->producer_out, out));
}

bool ir_known_scalar(const ir_graph *g, ir_value_id v, double *out)
{
    arena a;
    arena_init(&a, g->e);
    search s = { .g = g, .a = &a };
    view x;
    const bool ok = v && known(&s, v, 0, &x) && view_count(&x) == 1;
    if (ok) *out = view_load_f64(&x, 0);
    arena_deinit(&a);
    return ok;
}
