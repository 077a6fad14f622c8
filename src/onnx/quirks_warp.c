/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_warp.c - DynamicTimeWarping: the cheapest path through a matrix of costs, from its first element to its last.
 *
 * Two scans. The first goes over the diagonals i + j = t, whose elements do not depend on each other: each is reached
 * from the element before it in both axes (0), in the first (1), or in the second (2), which is taken where none of the
 * others is less than both. The second goes back along what the first chose. */
#include "onnx/quirks.h"
#include <math.h>

typedef struct warp {
    dim rows, columns, turns, padded; /* rows + columns - 1 diagonals; states have infinity in front */
} warp;

/* The region of a node with `count` parameters of these types and shapes; 0 on failure. */
typedef struct warp_param {
    sinter_dtype type;
    uint32_t rank;
    dim size;
} warp_param;

static ir_region_id region_of(onnx_call *c, ir_node_id n, const warp_param *p, uint32_t count, ir_value_id *out)
{
    const ir_region_id region = n ? ir_region_new(c->b.g, n) : 0;
    bool is_made = region != 0;
    for (uint32_t i = 0; i < count && is_made; i++) {
        out[i] = ir_param(c->b.g, region, "part", p[i].type, p[i].rank, &p[i].size);
        is_made = out[i] != 0;
    }
    if (!is_made) build_fail(&c->b, FAIL_MEMORY(c->e, "a subgraph"));
    return is_made ? region : 0;
}

static attrs_scan one_scanned(uint32_t carried, uint32_t outputs)
{
    attrs_scan a = *DEFAULTS(scan);
    a.carried = carried;
    a.scanned = a.in_axis.count = a.in_reverse.count = 1;
    a.out_axis.count = a.out_reverse.count = outputs;
    return a;
}

static ir_value_id whole(onnx_call *c, int64_t value)
{
    return build_scalar_i64(&c->b, SINTER_DTYPE_I64, value);
}

/* The costs by diagonal, [turns, rows], infinite outside of the matrix. */
static ir_value_id by_diagonal(onnx_call *c, const warp *w, ir_value_id cost)
{
    ir_builder *b = &c->b;
    const dim all = dim_mul(b->g->dims, w->rows, w->columns);
    const ir_value_id i = build_iota(b, w->rows), t = build_unsqueezed(b, build_iota(b, w->turns), 1),
                      wide = build_sizes(b, &w->columns, 1, true), j = build_sub(b, t, i), zero = whole(c, 0),
                      is_late = build_ge(b, j, zero), is_in = build_and(b, is_late, build_lt(b, j, wide)),
                      at = build_add(b, build_mul(b, i, wide), j), safe = build_where(b, is_in, at, zero),
                      flat = build_shaped(b, cost, &all, 1), x = build_gather(b, flat, safe, DEFAULTS(gather));
    return build_where(b, is_in, x, build_scalar_like(b, cost, INFINITY));
}

/* Which way each element was reached, [turns, rows]. */
static ir_value_id ways(onnx_call *c, const warp *w, ir_value_id cost)
{
    ir_builder *b = &c->b;
    const dim first = call_k(c, 0), second = call_k(c, 1);
    const ir_value_id none = build_scalar(b, SINTER_DTYPE_F32, INFINITY), free = build_scalar(b, SINTER_DTYPE_F32, 0),
                      at = build_iota(b, w->padded), infinite = build_expanded(b, none, &w->padded, 1),
                      start = build_where(b, build_eq(b, at, whole(c, 0)), free, infinite),
                      in[3] = { infinite, start, by_diagonal(c, w, cost) };
    const attrs_scan a = one_scanned(2, 1);
    const warp_param param[3] = { { SINTER_DTYPE_F32, 1, w->padded },
                                  { SINTER_DTYPE_F32, 1, w->padded },
                                  { SINTER_DTYPE_F32, 1, w->rows } };
    ir_value_id p[3] = { 0 };
    if (b->status) return 0;
    const ir_node_id n = build_scan(b, in, 3, &a, 3);
    const ir_region_id outer = b->region, region = region_of(c, n, param, 3, p);
    if (!region) return 0;
    b->region = region;
    const ir_value_id both = build_part(b, p[1], 0, first, 1, w->rows), up = build_part(b, p[0], 0, first, 1, w->rows),
                      left = build_part(b, p[0], 0, second, 1, w->rows);
    const ir_value_id below_up = build_lt(b, both, up), below_left = build_lt(b, both, left),
                      below_both = build_lt(b, up, both), up_below = build_lt(b, up, left),
                      is_both = build_and(b, below_up, below_left), is_up = build_and(b, below_both, up_below),
                      other = build_where(b, is_up, up, left), least = build_where(b, is_both, both, other);
    const ir_value_id one = whole(c, 1), two = whole(c, 2), single = build_where(b, is_up, one, two),
                      zero = whole(c, 0), way = build_where(b, is_both, zero, single),
                      border = build_unsqueezed(b, none, 0),
                      next = build_concat(b, (ir_value_id[]){ border, build_add(b, p[2], least) }, 2, DEFAULTS(concat));
    b->region = outer;
    if (b->status) return 0;
    ir_result(b->g, region, next);
    ir_result(b->g, region, p[0]);
    ir_result(b->g, region, way);
    build_close(b, n);
    return build_result(b, n, 2);
}

/* The path from its end: places in both axes, and whether there is one in this turn; [turns] each. */
static void trodden(onnx_call *c, const warp *w, ir_value_id way, ir_value_id *out)
{
    ir_builder *b = &c->b;
    const dim all = dim_mul(b->g->dims, w->turns, w->rows),
              last[2] = { dim_sub(b->g->dims, w->rows, call_k(c, 1)), dim_sub(b->g->dims, w->columns, call_k(c, 1)) };
    const ir_value_id first = build_sizes(b, &last[0], 1, true), second = build_sizes(b, &last[1], 1, true),
                      turn = build_iota(b, w->turns), flat = build_shaped(b, way, &all, 1),
                      wide = build_sizes(b, &w->rows, 1, true), in[5] = { first, second, turn, flat, wide };
    const attrs_scan a = one_scanned(2, 3);
    const warp_param param[5] = { { SINTER_DTYPE_I64, 0, 0 },
                                  { SINTER_DTYPE_I64, 0, 0 },
                                  { SINTER_DTYPE_I64, 0, 0 },
                                  { SINTER_DTYPE_I64, 1, all },
                                  { SINTER_DTYPE_I64, 0, 0 } };
    ir_value_id p[5] = { 0 };
    if (b->status) return;
    const ir_node_id n = build_scan(b, in, 5, &a, 5);
    const ir_region_id outer = b->region, region = region_of(c, n, param, 5, p);
    if (!region) return;
    b->region = region;
    const ir_value_id zero = whole(c, 0), one = whole(c, 1), i = build_max(b, p[0], zero), j = build_max(b, p[1], zero),
                      at = build_add(b, build_mul(b, build_add(b, i, j), p[4]), i),
                      taken = build_gather(b, p[3], at, DEFAULTS(gather)), keeps_i = build_eq(b, taken, whole(c, 2)),
                      keeps_j = build_eq(b, taken, one),
                      next_i = build_sub(b, p[0], build_where(b, keeps_i, zero, one)),
                      next_j = build_sub(b, p[1], build_where(b, keeps_j, zero, one)),
                      is_there = build_typed(b, build_ge(b, p[0], zero), SINTER_DTYPE_I64),
                      seen_i = build_unary(b, OP_identity, p[0]), seen_j = build_unary(b, OP_identity, p[1]);
    b->region = outer;
    if (b->status) return;
    const ir_value_id result[5] = { next_i, next_j, seen_i, seen_j, is_there };
    for (uint32_t k = 0; k < 5; k++) ir_result(b->g, region, result[k]);
    build_close(b, n);
    for (uint32_t k = 0; k < 3; k++) out[k] = build_result(b, n, 2 + k);
}

void convert_dynamic_time_warping(onnx_call *c)
{
    ir_builder *b = &c->b;
    dim_table *t = b->g->dims;
    dim d[SINTER_RANK_MAX];
    ir_value_id x = call_in(c, 0), path[3] = { 0 };
    const uint32_t rank = x ? call_shape(c, x, d) : 0;
    if ((rank != 2 && rank != 3) || (rank == 3 && !dim_is(t, d[0], 1)))
        REJECT(c, INVALID_MODEL, "costs of rank %u, [rows, columns] or [1, rows, columns] is wanted", rank);
    if (b->status) return;
    warp w = { .rows = d[rank - 2], .columns = d[rank - 1] };
    if (dim_range_of(t, w.rows).max < 1 || dim_range_of(t, w.columns).max < 1)
        REJECT(c, INVALID_MODEL, "costs without an element");
    w.padded = dim_add(t, w.rows, call_k(c, 1));
    w.turns = dim_sub(t, dim_add(t, w.rows, w.columns), call_k(c, 1));
    x = build_shaped(b, x, &d[rank - 2], 2);
    trodden(c, &w, ways(c, &w, x), path);
    if (b->status) return;
    const dim line[2] = { call_k(c, 1), w.turns };
    for (uint32_t i = 0; i < 3; i++)
        path[i] = build_part(b, path[i], 0, dim_sub(t, w.turns, call_k(c, 1)), -1, w.turns);
    const ir_value_id first = build_shaped(b, path[0], line, 2), second = build_shaped(b, path[1], line, 2),
                      both[2] = { first, second };
    const ir_value_id all = build_typed(b, build_concat(b, both, 2, DEFAULTS(concat)), SINTER_DTYPE_I32),
                      is_there = build_typed(b, path[2], SINTER_DTYPE_BOOL);
    c->out[0] = build_compress(b, all, is_there, &(attrs_compress){ .axis = 1 });
}
