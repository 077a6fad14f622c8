/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_linear_attention.c - LinearAttention and GatedDeltaNet as a scan over time with the state S [B, H, K, V], in
 * f32:
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

static void named(onnx_call *c, rule *r)
{
    static const struct {
        const char *name;
        bool gated, delta;
    } rules[] = {
        { "linear", false, false }, { "gated", true, false }, { "delta", false, true }, { "gated_delta", true, true }
    };
    const char *name = call_text(c, "update_rule", "gated_delta");
    uint32_t i = 0;
    while (i < COUNT_OF(rules) && strcmp(rules[i].name, name) != 0) i++;
    if (i == COUNT_OF(rules)) {
        REJECT(c, UNSUPPORTED, "attribute update_rule is '%s'", name);
        return;
    }
    r->gated = rules[i].gated;
    r->delta = rules[i].delta;
}

static rule rule_of(onnx_call *c)
{
    const char *name = call_text(c, "update_rule", "gated_delta");
    rule r = { .q_heads = call_int(c, "q_num_heads", 0), .kv_heads = call_int(c, "kv_num_heads", 0) };
    named(c, &r);
    if (c->b.status) return r;
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

/* All moments: a scan, or without one where there is one moment. */
static ir_value_id recurred(onnx_call *c, const rule *r, ir_value_id *part, ir_value_id *state)
{
    ir_value_id y = 0;
    if (!dim_is(c->b.g->dims, r->time, 1)) {
        scanned(c, r, part, state, &y);
        return y;
    }
    for (uint32_t i = 0; i < SCANNED; i++)
        if (part[i]) part[i] = build_squeezed(&c->b, part[i], 1);
    return c->b.status ? 0 : step(c, r, part, state);
}

void convert_linear_attention(onnx_call *c)
{
    const rule r = rule_of(c);
    ir_value_id part[SCANNED] = { 0 };
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
    const ir_value_id y = recurred(c, &r, part, &state);
    const dim flat[3] = { r.batch, r.time, dim_mul(c->b.g->dims, call_k(c, r.q_heads), r.v) };
    c->out[0] = build_typed(&c->b, build_shaped(&c->b, y, flat, 3), type);
    if (c->count_out > 1) c->out[1] = build_typed(&c->b, state, state_type);
}

/* ---- GatedDeltaNet: tokens of all sequences behind each other, each head of queries and keys for several of values
 * ---- */

/* What the gates of the state are: the logarithms that are given, or of these and two parameters of each head. */
static ir_value_id decayed(onnx_call *c, ir_value_id x, dim heads)
{
    const char *how = call_text(c, "gate_activation", "none");
    const bool is_soft = strcmp(how, "softplus") == 0 || strcmp(how, "qwen") == 0,
               is_bounded = strcmp(how, "sigmoid") == 0 || strcmp(how, "kda") == 0;
    if (strcmp(how, "none") == 0) return x;
    if (!is_soft && !is_bounded) REJECT(c, UNSUPPORTED, "attribute gate_activation is '%s'", how);
    if (!call_in(c, 7) || !call_in(c, 8)) REJECT(c, INVALID_MODEL, "gate_activation '%s' wants a_log and dt_bias", how);
    if (c->b.status) return 0;
    const dim width = call_dim(c, x, 3), each[3] = { heads, call_k(c, 1), call_k(c, 1) };
    dim d[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(c, call_in(c, 8), d);
    const bool is_wide = rank == 2 || (rank == 1 && d[0] != heads);
    const ir_value_id bias =
                          build_shaped(&c->b, call_in(c, 8), (dim[]){ heads, is_wide ? width : each[1], each[1] }, 3),
                      moved = build_add(&c->b, x, bias),
                      rate = build_exp(&c->b, build_shaped(&c->b, call_in(c, 7), each, 3));
    if (is_soft) return build_neg(&c->b, build_mul(&c->b, rate, build_softplus(&c->b, moved)));
    const ir_value_id lowest = build_scalar(&c->b, SINTER_DTYPE_F32, call_real(c, "gate_lower_bound", -5));
    return build_mul(&c->b, lowest, build_sigmoid(&c->b, build_mul(&c->b, rate, moved)));
}

/* Heads of queries or keys, normalised where the node asks for it, once for each of the values': [B, T, H, 1, K]. */
static ir_value_id shared_heads(onnx_call *c, ir_value_id x, const rule *r, int64_t heads)
{
    const int64_t last = 4;
    const dim one = call_k(c, 1),
              wide[5] = { r->batch, r->time, call_k(c, heads), call_k(c, r->kv_heads / heads), r->k };
    ir_value_id y = laid(c, x, r, wide[2], one, r->k);
    if (call_int(c, "qk_l2_norm", 0)) {
        const ir_value_id sum = build_reduced(&c->b, reduce_kind_sum, build_mul(&c->b, y, y), &last, 1, true),
                          least = build_scalar(&c->b, SINTER_DTYPE_F32, 1e-6);
        y = build_mul(&c->b, y, build_rsqrt(&c->b, build_add(&c->b, sum, least)));
    }
    if (heads == r->kv_heads) return y;
    return laid(c, build_expanded(&c->b, y, wide, 5), r, call_k(c, r->kv_heads), one, r->k);
}

void convert_gated_delta_net(onnx_call *c)
{
    static const int64_t turn[4] = { 0, 1, 3, 2 };
    const ir_value_id q = call_in(c, 0), k = call_in(c, 1), v = call_in(c, 2), first = call_in(c, 6);
    rule r = { 0 };
    ir_value_id part[SCANNED] = { 0 };
    int64_t heads = 0, sequences = 1;
    named(c, &r);
    if (!q || !k || !v) REJECT(c, UNSUPPORTED, "packed query, key and value are not supported");
    if (call_int(c, "state_update_capacity", 0) || call_wants(c, 2))
        REJECT(c, UNSUPPORTED, "attribute state_update_capacity");
    const uint32_t rank = call_rank(c, q);
    if ((rank != 3 && rank != 4) || call_rank(c, k) != rank || call_rank(c, v) != rank ||
        (first && call_rank(c, first) != 4))
        REJECT(c, INVALID_MODEL, "query, key and value of ranks %u, %u and %u", rank, call_rank(c, k), call_rank(c, v));
    if ((r.gated && !call_in(c, 4)) || (r.delta && !call_in(c, 5)) || (rank == 3 && !first && !call_in(c, 3)))
        REJECT(c, INVALID_MODEL, "decay, beta or the number of sequences is missing");
    if (c->b.status) return;
    if (call_in(c, 3) && (!call_size(c, call_in(c, 3), 0, &sequences) || sequences-- != 2))
        REJECT(c, UNSUPPORTED, "sequences of different lengths, cu_seqlens");
    if (!call_size(c, q, rank - 2, &heads) || !call_size(c, v, rank - 2, &r.kv_heads))
        REJECT(c, UNSUPPORTED, "numbers of heads that are not known");
    if (!c->b.status && (heads < 1 || r.kv_heads < heads || r.kv_heads % heads || r.kv_heads > INT32_MAX ||
                         call_dim(c, k, rank - 2) != call_dim(c, q, rank - 2)))
        REJECT(c, INVALID_MODEL, "%lld heads of queries for %lld of values", (long long)heads, (long long)r.kv_heads);
    if (c->b.status) return;
    r.q_heads = r.kv_heads;
    r.batch = rank == 4 ? call_dim(c, q, 0) : first ? call_dim(c, first, 0) : call_k(c, 1);
    r.time = rank == 4 ? call_dim(c, q, 1) : call_quotient(c, call_dim(c, q, 0), r.batch);
    r.k = call_dim(c, q, rank - 1);
    r.v = call_dim(c, v, rank - 1);
    const double scale = call_real(c, "scale", 0);
    const dim one = call_k(c, 1), wide = call_k(c, r.kv_heads), shape[4] = { r.batch, wide, r.k, r.v };
    const sinter_dtype type = call_type(c, q);
    const ir_value_id factor = scale == 0 ? quirk_head_scale(c, r.k) : build_scalar(&c->b, SINTER_DTYPE_F32, scale);
    part[QUERY] = build_mul(&c->b, shared_heads(c, q, &r, heads), factor);
    part[KEY] = shared_heads(c, k, &r, heads);
    part[VALUE] = laid(c, v, &r, wide, one, r.v);
    if (r.gated) {
        const bool each = call_rank(c, call_in(c, 4)) == rank;
        part[DECAY] = decayed(c, laid(c, call_in(c, 4), &r, wide, each ? r.k : one, one), wide);
    }
    if (r.delta) {
        part[BETA] = laid(c, call_in(c, 5), &r, wide, one, one);
        if (strcmp(call_text(c, "beta_activation", "none"), "none") != 0) part[BETA] = build_sigmoid(&c->b, part[BETA]);
    }
    ir_value_id state = first ? build_permuted(&c->b, first, turn, 4)
                              : build_expanded(&c->b, build_scalar(&c->b, SINTER_DTYPE_F32, 0), shape, 4);
    const ir_value_id y = recurred(c, &r, part, &state);
    dim d[SINTER_RANK_MAX];
    (void)call_shape(c, v, d);
    c->out[0] = build_typed(&c->b, build_shaped(&c->b, y, d, rank), type);
    if (c->count_out > 1) c->out[1] = build_permuted(&c->b, state, turn, 4);
}
