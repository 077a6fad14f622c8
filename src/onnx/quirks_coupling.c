/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_coupling.c - probabilities of classes from those of each pair of them, as libsvm couples them (Wu, Lin and
 * Weng, Probability Estimates for Multi-class Classification by Pairwise Coupling, 2004, algorithm 2).
 *
 * With r[i][j] the probability of class i where it is i or j, p minimises p Q p, where Q[t][t] is the sum of r[j][t]^2
 * and Q[t][j] is -r[j][t] r[t][j]. One iteration of a loop changes p[0], p[1] … in turn. A row whose error is below
 * the tolerance keeps its p, as in libsvm: more iterations would give other results than libsvm's. */
#include "onnx/quirks.h"

enum { TURNS = 100, CLASSES_MAX = 128 };

typedef struct coupling {
    dim rows;
    uint32_t classes;
} coupling;

/* [N, classes, classes] of r[i][j], or of r[j][i] where it is transposed; 0 on the diagonal. all: [N, 2 * pairs + 1], r
 * of the pairs with i < j, 1 - r of the same, and 0. */
static ir_value_id pair_matrix(onnx_call *c, const coupling *x, ir_value_id all, bool is_transposed)
{
    const uint32_t k = x->classes, pairs = k * (k - 1) / 2;
    int64_t *at = ARENA_NEW(&c->b.g->a, int64_t, (size_t)k * k);
    const dim d[3] = { x->rows, call_k(c, k), call_k(c, k) };
    if (!at) REJECT(c, NO_MEMORY, "out of memory");
    if (c->b.status) return 0;
    for (uint32_t i = 0, pair = 0; i < k; i++) {
        at[i * k + i] = 2 * pairs;
        for (uint32_t j = i + 1; j < k; j++, pair++) {
            at[is_transposed ? j * k + i : i * k + j] = pair;
            at[is_transposed ? i * k + j : j * k + i] = pairs + pair;
        }
    }
    attrs_gather *a = DEFAULTS(gather);
    a->axis = 1;
    return build_shaped(&c->b, build_gather(&c->b, all, ir_const_i64s(c->b.g, at, k * k), a), d, 3);
}

/* Q, [N, classes, classes]. */
static ir_value_id form_of(onnx_call *c, const coupling *x, ir_value_id r)
{
    static const int64_t last = 2;
    const dim one[2] = { x->rows, call_k(c, 1) };
    const ir_value_id zero = build_expanded(&c->b, build_scalar_like(&c->b, r, 0), one, 2);
    const ir_value_id part[3] = { r, build_sub(&c->b, build_scalar_like(&c->b, r, 1), r), zero };
    const ir_value_id all = build_concat(&c->b, part, 3, &(attrs_concat){ .axis = 1 });
    const ir_value_id to = pair_matrix(c, x, all, false), from = pair_matrix(c, x, all, true);
    const ir_value_id sum = build_reduced(&c->b, reduce_kind_sum, build_mul(&c->b, from, from), &last, 1, true);
    const ir_value_id index = build_iota(&c->b, call_k(c, x->classes)), column = build_unsqueezed(&c->b, index, 1),
                      same = build_typed(&c->b, build_eq(&c->b, index, column), SINTER_DTYPE_F32);
    const ir_value_id diagonal = build_mul(&c->b, sum, same);
    return build_sub(&c->b, diagonal, build_mul(&c->b, to, from));
}

/* One iteration: p [N, classes] changes in the rows that are not near; near [N, 1] gets those whose error is below the
 * tolerance, 0.005 / classes. */
static void turn(onnx_call *c, const coupling *x, ir_value_id q, ir_value_id *p, ir_value_id *near)
{
    static const int64_t last = 1;
    const uint32_t k = x->classes;
    const dim row[2] = { x->rows, call_k(c, k) }, one_of[2] = { x->rows, call_k(c, 1) };
    const ir_value_id one = build_scalar(&c->b, SINTER_DTYPE_F32, 1), two = build_scalar(&c->b, SINTER_DTYPE_F32, 2);
    ir_value_id now = *p, qp = build_matmul(&c->b, q, build_unsqueezed(&c->b, now, 2), NULL);
    qp = build_shaped(&c->b, qp, row, 2);
    ir_value_id pqp = build_reduced(&c->b, reduce_kind_sum, build_mul(&c->b, now, qp), &last, 1, true);
    const ir_value_id error = build_abs(&c->b, build_sub(&c->b, qp, pqp)),
                      most = build_reduced(&c->b, reduce_kind_max, error, &last, 1, true),
                      enough = build_scalar(&c->b, SINTER_DTYPE_F32, 0.005 / (double)k);
    *near = build_or(&c->b, *near, build_lt(&c->b, most, enough));
    const ir_value_id index = build_iota(&c->b, call_k(c, k));
    for (uint32_t t = 0; t < k && !c->b.status; t++) {
        const dim at = call_k(c, t), single = call_k(c, 1);
        const ir_value_id line = build_shaped(&c->b, build_part(&c->b, q, 1, at, 1, single), row, 2),
                          own = build_shaped(&c->b, build_part(&c->b, line, 1, at, 1, single), one_of, 2),
                          its = build_part(&c->b, qp, 1, at, 1, single);
        const ir_value_id by = build_div(&c->b, build_sub(&c->b, pqp, its), own), rest = build_add(&c->b, by, one);
        const ir_value_id is_t = build_eq(&c->b, index, build_scalar_i64(&c->b, SINTER_DTYPE_I64, t));
        const ir_value_id more = build_mul(&c->b, by, build_typed(&c->b, is_t, SINTER_DTYPE_F32));
        now = build_div(&c->b, build_add(&c->b, now, more), rest);
        const ir_value_id twice = build_mul(&c->b, two, its);
        const ir_value_id grown = build_mul(&c->b, by, build_add(&c->b, build_mul(&c->b, by, own), twice));
        pqp = build_div(&c->b, build_div(&c->b, build_add(&c->b, pqp, grown), rest), rest);
        qp = build_div(&c->b, build_add(&c->b, qp, build_mul(&c->b, by, line)), rest);
    }
    *p = build_where(&c->b, *near, *p, now);
}

ir_value_id quirk_coupled(onnx_call *c, ir_value_id r, uint32_t classes)
{
    const coupling x = { .rows = call_dim(c, r, 0), .classes = classes };
    static const int64_t both[2] = { 0, 1 };
    if (classes > CLASSES_MAX)
        REJECT(c, UNSUPPORTED, "probabilities of %u classes; at most %d are coupled", classes, CLASSES_MAX);
    if (c->b.status) return 0;
    const dim row[2] = { x.rows, call_k(c, classes) }, one[2] = { x.rows, call_k(c, 1) },
              form[3] = { x.rows, call_k(c, classes), call_k(c, classes) };
    const ir_value_id q = form_of(c, &x, r), share = build_scalar(&c->b, SINTER_DTYPE_F32, 1.0 / classes),
                      no = build_scalar(&c->b, SINTER_DTYPE_BOOL, 0);
    const ir_value_id turns = build_scalar_i64(&c->b, SINTER_DTYPE_I64, TURNS),
                      yes = build_scalar(&c->b, SINTER_DTYPE_BOOL, 1), start = build_expanded(&c->b, share, row, 2),
                      none = build_expanded(&c->b, no, one, 2), in[5] = { turns, yes, start, none, q };
    if (c->b.status) return 0;
    const ir_node_id n = build_loop(&c->b, in, 5, &(attrs_loop){ .carried = 2 }, 2);
    const ir_region_id region = n ? ir_region_new(c->b.g, n) : 0, outer = c->b.region;
    const bool has = region && ir_param(c->b.g, region, "turn", SINTER_DTYPE_I64, 0, NULL) &&
                     ir_param(c->b.g, region, "goes_on", SINTER_DTYPE_BOOL, 0, NULL);
    ir_value_id p = has ? ir_param(c->b.g, region, "p", SINTER_DTYPE_F32, 2, row) : 0;
    ir_value_id near = p ? ir_param(c->b.g, region, "near", SINTER_DTYPE_BOOL, 2, one) : 0;
    const ir_value_id inner = near ? ir_param(c->b.g, region, "q", SINTER_DTYPE_F32, 3, form) : 0;
    if (!inner) {
        build_fail(&c->b, FAIL_MEMORY(c->e, "a subgraph"));
        return 0;
    }
    c->b.region = region;
    turn(c, &x, inner, &p, &near);
    const ir_value_id far = build_typed(&c->b, build_not(&c->b, near), SINTER_DTYPE_I32),
                      any = build_reduced(&c->b, reduce_kind_max, far, both, 2, false),
                      goes_on = build_gt(&c->b, any, build_scalar_like(&c->b, any, 0));
    c->b.region = outer;
    if (c->b.status) return 0;
    ir_result(c->b.g, region, goes_on);
    ir_result(c->b.g, region, p);
    ir_result(c->b.g, region, near);
    build_close(&c->b, n);
    return build_result(&c->b, n, 0);
}
