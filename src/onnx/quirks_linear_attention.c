/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_linear_attention.c - LinearAttention as a scan over time with the state S [B, H, K, V], in f32:
 *
 *   S = exp(g) * S;   v = beta * (v - k S);   S = S + k^T v;   o = q S
 *
 * the first for the gated rules, the second for the delta rules. The heads of q that share one of k and v are its rows,
 * so nothing is transposed or repeated. */
#include "onnx/quirks.h"
#include <math.h>
#include <string.h>

enum { QUERY, KEY, VALUE, DECAY, BETA, SCANNED };
typedef struct rule {
    bool gated, delta;
    int64_t q_heads, kv_heads;
    dim batch, time, k, v;
} rule;

/* [B, T, heads * width] in f32 as [B, T, H, rows, columns] */
static ir_value_id laid(onnx_call *c, ir_value_id x, const rule *r, dim heads, dim rows, dim columns)
{
    const dim d[5] = { r->batch, r->time, heads, rows, columns };
    return build_shaped(&c->b, build_typed(&c->b, x, SINTER_DTYPE_F32), d, 5);
}

/* One moment: part[i] is [B, H, rows, columns]. The new state goes to *state. */
static ir_value_id step(onnx_call *c, const rule *r, const ir_value_id *part, ir_value_id *state)
{
    const dim column[4] = { r->batch, call_k(c, r->kv_heads), r->k, call_k(c, 1) };
    ir_value_id s = *state, v = part[VALUE];
    if (r->gated) s = build_mul(&c->b, s, build_exp(&c->b, part[DECAY]));
    if (r->delta) v = build_mul(&c->b, part[BETA], build_sub(&c->b, v, build_matmul(&c->b, part[KEY], s, NULL)));
    s = build_add(&c->b, s, build_mul(&c->b, build_shaped(&c->b, part[KEY], column, 4), v));
    *state = s;
    return build_matmul(&c->b, part[QUERY], s, NULL);
}

/* The scan's node: inputs state and parts, outputs state and [B, T, H, rows, V]. */
static void scanned(onnx_call *c, const rule *r, const ir_value_id *part, ir_value_id *state, ir_value_id *y)
{
    ir_value_id in[1 + SCANNED] = { *state }, inner[SCANNED] = { 0 };
    uint32_t count = 1;
    attrs_scan *a = DEFAULTS(scan);
    for (uint32_t i = 0; i < SCANNED; i++)
        if (part[i]) in[count++] = part[i];
    a->carried = 1;
    a->scanned = a->in_axis.count = a->in_reverse.count = count - 1;
    for (uint32_t i = 0; i + 1 < count; i++) a->in_axis.at[i] = 1;
    a->out_axis = (attr_ints){ .count = 1, .at = { 1 } };
    a->out_reverse.count = 1;
    if (c->b.status) return;
    const ir_node_id n = build_scan(&c->b, in, count, a, 2);
    const ir_region_id region = n ? ir_region_new(c->b.g, n) : 0, outer = c->b.region;
    if (!region) {
        build_fail(&c->b, FAIL_MEMORY(c->e, "a subgraph"));
        return;
    }
    dim d[SINTER_RANK_MAX];
    ir_value_id s = ir_param(c->b.g, region, "state", SINTER_DTYPE_F32, call_shape(c, *state, d), d);
    for (uint32_t i = 0; i < SCANNED; i++) {
        if (!part[i]) continue;
        const uint32_t rank = call_shape(c, part[i], d);
        for (uint32_t k = 1; k + 1 < rank; k++) d[k] = d[k + 1];
        inner[i] = ir_param(c->b.g, region, "part", SINTER_DTYPE_F32, rank - 1, d);
        if (!inner[i]) s = 0;
    }
    if (!s) {
        c->b.status = FAIL_MEMORY(c->e, "a subgraph");
        return;
    }
    c->b.region = region;
    const ir_value_id o = step(c, r, inner, &s);
    c->b.region = outer;
    if (c->b.status) return;
    ir_result(c->b.g, region, s);
    ir_result(c->b.g, region, o);
    build_close(&c->b, n);
    *state = build_result(&c->b, n, 0);
    *y = build_result(&c->b, n, 1);
}

static rule rule_of(onnx_call *c)
{
    static const struct {
        const char *name;
        bool gated, delta;
    } rules[] = {
        { "linear", false, false }, { "gated", true, false }, { "delta", false, true }, { "gated_delta", true, true }
    };
    const char *name = call_text(c, "update_rule", "gated_delta");
    rule r = { .q_heads = call_int(c, "q_num_heads", 0), .kv_heads = call_int(c, "kv_num_heads", 0) };
    uint32_t i = 0;
    while (i < COUNT_OF(rules) && strcmp(rules[i].name, name) != 0) i++;
    if (i == COUNT_OF(rules)) {
        REJECT(c, UNSUPPORTED, "attribute update_rule is '%s'", name);
        return r;
    }
    r.gated = rules[i].gated;
    r.delta = rules[i].delta;
    if (call_int(c, "state_window", 0) != 0) REJECT(c, UNSUPPORTED, "attribute state_window is not 0");
    for (uint32_t k = 0; k < 6; k++) {
        const bool wanted = k < 3 || (k == 4 && r.gated) || (k == 5 && r.delta);
        if (wanted && !call_in(c, k)) REJECT(c, INVALID_MODEL, "update_rule '%s' wants input %u", name, k);
        if (!wanted && k != 3 && call_in(c, k)) REJECT(c, INVALID_MODEL, "update_rule '%s' has no input %u", name, k);
        if (call_in(c, k) && call_rank(c, call_in(c, k)) != (k == 3 ? 4 : 3))
            REJECT(c, INVALID_MODEL, "input %u has rank %u", k, call_rank(c, call_in(c, k)));
    }
    if (r.q_heads < 1 || r.kv_heads < 1 || r.q_heads % r.kv_heads || r.q_heads > INT32_MAX)
        REJECT(c, INVALID_MODEL, "%lld heads of queries for %lld of keys", (long long)r.q_heads, (long long)r.kv_heads);
    if (c->b.status) return r;
    r.batch = call_dim(c, call_in(c, 0), 0);
    r.time = call_dim(c, call_in(c, 0), 1);
    r.k = call_quotient(c, call_dim(c, call_in(c, 0), 2), call_k(c, r.q_heads));
    r.v = call_quotient(c, call_dim(c, call_in(c, 2), 2), call_k(c, r.kv_heads));
    return r;
}

void convert_linear_attention(onnx_call *c)
{
    const rule r = rule_of(c);
    ir_value_id part[SCANNED] = { 0 }, y = 0;
    const double scale = call_real(c, "scale", 0);
    if (c->b.status) return;
    const ir_value_id factor = scale == 0 ? quirk_head_scale(c, r.k) : build_scalar(&c->b, SINTER_DTYPE_F32, scale);
    const dim one = call_k(c, 1), heads = call_k(c, r.kv_heads), group = call_k(c, r.q_heads / r.kv_heads);
    part[QUERY] = laid(c, call_in(c, 0), &r, heads, group, r.k);
    part[QUERY] = build_mul(&c->b, part[QUERY], factor);
    part[KEY] = laid(c, call_in(c, 1), &r, heads, one, r.k);
    part[VALUE] = laid(c, call_in(c, 2), &r, heads, one, r.v);
    if (r.gated) {
        const bool each = call_dim(c, call_in(c, 4), 2) != heads;
        part[DECAY] = laid(c, call_in(c, 4), &r, heads, each ? r.k : one, one);
    }
    if (r.delta) part[BETA] = laid(c, call_in(c, 5), &r, call_dim(c, call_in(c, 5), 2), one, one);
    const dim shape[4] = { r.batch, heads, r.k, r.v };
    const sinter_dtype type = call_type(c, call_in(c, 0));
    const sinter_dtype state_type = call_in(c, 3) ? call_type(c, call_in(c, 3)) : type;
    ir_value_id state = call_in(c, 3) ? build_typed(&c->b, call_in(c, 3), SINTER_DTYPE_F32)
                                      : build_expanded(&c->b, build_scalar(&c->b, SINTER_DTYPE_F32, 0), shape, 4);
    if (dim_is(c->b.g->dims, r.time, 1)) {
        for (uint32_t i = 0; i < SCANNED; i++)
            if (part[i]) part[i] = build_squeezed(&c->b, part[i], 1);
        y = c->b.status ? 0 : step(c, &r, part, &state);
    } else {
        scanned(c, &r, part, &state, &y);
    }
    const dim flat[3] = { r.batch, r.time, dim_mul(c->b.g->dims, call_k(c, r.q_heads), r.v) };
    c->out[0] = build_typed(&c->b, build_shaped(&c->b, y, flat, 3), type);
    if (c->count_out > 1) c->out[1] = build_typed(&c->b, state, state_type);
}
