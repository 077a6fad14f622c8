/* SPDX-License-Identifier: Apache-2.0 */
/* weights_only.c - weights of f32 products as numbers of 4 bits in blocks; the data of the products stays as it is.
 *
 * What stands here is a dequantize of blocks, as an imported model has it. Products that read the same data are looked
 * at together: where terms are scaled, the data is divided once for all of them. */
#include "ir/build.h"
#include "tune/gains.h"
#include "tune/weights4.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* The terms' scales that are tried: the mean magnitude of the data to the power 0, 1/20, …, 1. */
enum { POWERS = 20 };

typedef struct weighing {
    env *e;
    ir_graph *g;
    ir_builder b;
    arena *a; /* scratch */
    const tune_weights *how;
    const ir_node_id *product;
} weighing;

static bool weight_of(const weighing *q, uint32_t index, weight4 *out)
{
    const ir_node *n = ir_node_at(q->g, q->product[index]);
    const attrs_matmul *a = n->attrs;
    view w;
    if (n->op != OP_matmul || !ir_const_view(q->g, n->in[1], &w) || w.rank != 2 || !view_is_dense(&w)) return false;
    const bool is_turned = a && a->trans_b;
    *out = (weight4){
        .w = w.data, .terms = w.dim[is_turned ? 1 : 0], .columns = w.dim[is_turned ? 0 : 1], .is_turned = is_turned
    };
    out->block = q->how->block < out->terms ? q->how->block : out->terms;
    const tune_rows *r = q->how->rows ? &q->how->rows[index] : NULL;
    if (r && r->count && r->terms == out->terms) {
        out->data = r->at;
        out->rows = r->count;
    }
    return true;
}

const char *tune_weights_refusal(const ir_graph *g, const ir_node *n)
{
    view w;
    if (n->op != OP_matmul) return "weights of convolutions are not stored in 4 bits";
    if (!ir_const_view(g, n->in[1], &w) || !view_is_dense(&w)) return "its weight is no matrix in one piece";
    for (int64_t i = 0; i < view_count(&w); i++)
        if (!isfinite(((const float *)w.data)[i])) return "its weight is not finite everywhere";
    return NULL;
}

/* ---- scales of terms ---- */

/* The mean magnitude of each term of the data, to a power, around 1. False: the data says nothing. */
static void powers_of(const weight4 *w, float power, float *by)
{
    float least = FLT_MAX, most = 0;
    for (int64_t t = 0; t < w->terms; t++) {
        double sum = 0;
        for (int64_t r = 0; r < w->rows; r++) sum += fabs((double)w->data[r * w->terms + t]);
        const float mean = (float)(sum / (double)w->rows);
        by[t] = powf(mean > 1e-4f ? mean : 1e-4f, power);
        least = by[t] < least ? by[t] : least;
        most = by[t] > most ? by[t] : most;
    }
    const float middle = sqrtf(least * most);
    for (int64_t t = 0; t < w->terms; t++) by[t] /= middle;
}

static bool is_usable(const float *by, int64_t terms)
{
    for (int64_t t = 0; t < terms; t++)
        if (!(by[t] > 1e-6f && by[t] < 1e6f)) return false;
    return true;
}

/* The scales of terms with which the results of all products of a group move least. NULL: 1 is best, or there is no
 * data. */
static float *scale_terms(weighing *q, const weight4 *w, uint32_t count)
{
    const int64_t terms = w[0].terms;
    float *best = ARENA_NEW(q->a, float, (size_t)terms), *by = ARENA_NEW(q->a, float, (size_t)terms);
    double least = 0;
    bool is_found = false;
    if (!best || !by) q->b.status = FAIL_MEMORY(q->e, "scales of terms");
    for (uint32_t k = 0; k <= POWERS && !q->b.status && w[0].rows; k++) {
        double sum = 0;
        powers_of(&w[0], (float)k / POWERS, by);
        if (!is_usable(by, terms)) continue;
        for (uint32_t i = 0; i < count; i++) {
            const double one = weight4_error(&w[i], k ? by : NULL, q->a);
            if (one < 0) q->b.status = FAIL_MEMORY(q->e, "scales of terms");
            sum += one;
        }
        if (k && sum >= least) continue;
        least = sum;
        is_found = k > 0;
        memcpy(best, by, (size_t)terms * sizeof *best);
    }
    return is_found ? best : NULL;
}

/* ---- the graph ---- */

static ir_value_id codes_const(weighing *q, const char *name, const int64_t *d, const int8_t *code)
{
    view v;
    const size_t size = (size_t)(d[0] * d[1] * d[2]);
    void *data = ir_blob(q->g, (size + 1) / 2);
    if (!data || !view_init(&v, SINTER_DTYPE_I4, 3, d, data)) return 0;
    for (size_t i = 0; i < size; i++) view_store_i64(&v, (int64_t)i, code[i]);
    return ir_const(q->g, name, SINTER_DTYPE_I4, 3, d, data);
}

/* The weight of a product: dequantize of [blocks, block, columns], reshaped, cut. */
static ir_value_id weight_made(weighing *q, uint32_t index, const weight4 *w, const float *by)
{
    const ir_node *n = ir_node_at(q->g, q->product[index]);
    const char *own = ir_value_at(q->g, n->in[1])->name;
    const ir_value like = *ir_value_at(q->g, n->in[1]);
    const int64_t blocks = weight4_blocks(w), padded = blocks * w->block;
    const int64_t wide[] = { w->is_turned ? w->columns : blocks, w->is_turned ? blocks : w->block,
                             w->is_turned ? w->block : w->columns };
    const int64_t each[] = { wide[0], w->is_turned ? blocks : 1, w->is_turned ? 1 : w->columns };
    const arena_mark mark = arena_save(q->a);
    int8_t *code = ARENA_NEW(q->a, int8_t, (size_t)(padded * w->columns));
    float *scale = ir_blob(q->g, (size_t)(blocks * w->columns) * sizeof *scale);
    if (!code || !scale || !weight4_make(w, by, q->how->is_clipped, q->a, code, scale)) {
        q->b.status = FAIL_MEMORY(q->e, "a weight of 4 bits");
        return 0;
    }
    const char *name = own && *own ? own : NULL;
    const ir_value_id codes = codes_const(q, name ? arena_printf(&q->g->a, "%s_int4", name) : NULL, wide, code);
    const ir_value_id scales =
        ir_const(q->g, name ? arena_printf(&q->g->a, "%s_scale", name) : NULL, SINTER_DTYPE_F32, 3, each, scale);
    arena_rewind(q->a, mark);
    if (!codes || !scales) {
        q->b.status = FAIL_MEMORY(q->e, "a weight of 4 bits");
        return 0;
    }
    const uint32_t axis = w->is_turned ? 1 : 0;
    build_from(&q->b, &q->product[index], 1);
    const ir_value_id y =
        build_dequantize(&q->b, codes, scales, build_scalar(&q->b, SINTER_DTYPE_I4, 0), SINTER_DTYPE_F32);
    dim flat[2] = { like.dim[0], like.dim[1] };
    flat[axis] = dim_const(q->g->dims, padded);
    const ir_value_id all = build_shaped(&q->b, y, flat, 2);
    if (padded == w->terms) return all;
    return build_part(&q->b, all, axis, dim_const(q->g->dims, 0), 1, like.dim[axis]);
}

/* Data divided by the scales of its terms. */
static ir_value_id data_scaled(weighing *q, ir_value_id x, int64_t terms, const float *by)
{
    float *back = ir_blob(q->g, (size_t)terms * sizeof *back);
    const ir_value_id c = back ? ir_const(q->g, NULL, SINTER_DTYPE_F32, 1, &terms, back) : 0;
    if (!c) {
        q->b.status = FAIL_MEMORY(q->e, "scales of terms");
        return 0;
    }
    for (int64_t t = 0; t < terms; t++) back[t] = 1 / by[t];
    return build_mul(&q->b, x, c);
}

/* The products that read what product `first` reads, that one included. */
static void group_do(weighing *q, uint32_t first, bool *is_done)
{
    const ir_value_id x = ir_node_at(q->g, q->product[first])->in[0];
    const arena_mark mark = arena_save(q->a);
    weight4 *w = ARENA_NEW(q->a, weight4, q->how->count - first);
    uint32_t *of = ARENA_NEW(q->a, uint32_t, q->how->count - first), count = 0;
    if (!w || !of) q->b.status = FAIL_MEMORY(q->e, "weights of 4 bits");
    for (uint32_t i = first; i < q->how->count && !q->b.status; i++) {
        if (is_done[i] || !q->how->is_taken[i] || ir_node_at(q->g, q->product[i])->in[0] != x) continue;
        if (!weight_of(q, i, &w[count]) || w[count].terms != (count ? w[0].terms : w[count].terms)) continue;
        is_done[i] = true;
        of[count++] = i;
    }
    const float *by = count && q->how->is_scaled && !q->b.status ? scale_terms(q, w, count) : NULL;
    ir_value_id data = x;
    if (by) {
        build_from(&q->b, &q->product[first], 1);
        data = data_scaled(q, x, w[0].terms, by);
    }
    for (uint32_t i = 0; i < count && !q->b.status; i++) {
        const ir_value_id made = weight_made(q, of[i], &w[i], by);
        if (q->b.status) break;
        ir_node_set_in(q->g, q->product[of[i]], 0, data);
        ir_node_set_in(q->g, q->product[of[i]], 1, made);
    }
    arena_rewind(q->a, mark);
}

sinter_status tune_quantize_weights(env *e, ir_graph *g, const tune_weights *how)
{
    ir_node_id *product = NULL;
    uint32_t count = 0, all = 0;
    arena a;
    arena_init(&a, e);
    weighing q = { .e = e, .g = g, .b = { .g = g, .region = IR_MAIN }, .a = &a, .how = how };
    q.b.status = quantize_candidates(e, &a, g, &product, &count, &all);
    q.product = product;
    bool *is_done = q.b.status ? NULL : ARENA_NEW(&a, bool, how->count);
    if (!q.b.status && !is_done) q.b.status = FAIL_MEMORY(e, "weights of 4 bits");
    if (!q.b.status && count != how->count)
        q.b.status = FAIL(e, INTERNAL, "%u products in a graph of %u", how->count, count);
    for (uint32_t i = 0; i < how->count && !q.b.status; i++)
        if (!is_done[i] && how->is_taken[i]) group_do(&q, i, is_done);
    arena_deinit(&a);
    return q.b.status;
}
