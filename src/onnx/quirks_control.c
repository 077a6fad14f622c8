/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_control.c - recurrent layers, and the operators that own subgraphs. */
#include "onnx/importer.h"
#include "onnx/quirks.h"
#include <stdlib.h>
#include <string.h>

/* ---- LSTM, GRU, RNN ---- */
static const char *activations_of(onnx_call *c)
{
    const onnx_attr *a = call_attr(c, "activations");
    size_t size = 1, n = 0;
    if (a && a->type == ONNX_STRING) return a->s.at; /* a layer's attributes are no lists of texts: "Relu,Relu" */
    if (!a || a->type != ONNX_STRINGS) return "";
    for (uint32_t i = 0; i < a->strings.count; i++) size = size_add(size, a->strings.at[i].length + 1);
    char *all = arena_alloc(&c->b.g->a, size, 1);
    if (!all) return "";
    for (uint32_t i = 0; i < a->strings.count; i++) {
        if (i) all[n++] = ',';
        memcpy(all + n, a->strings.at[i].at, a->strings.at[i].length);
        n += a->strings.at[i].length;
    }
    return all;
}

static int64_t direction_of(onnx_call *c)
{
    static const char *const names[] = { "forward", "reverse", "bidirectional" };
    const char *direction = call_text(c, "direction", "forward");
    for (int64_t i = 0; i < 3; i++)
        if (strcmp(names[i], direction) == 0) return i;
    REJECT(c, INVALID_MODEL, "attribute direction is '%s'", direction);
    return 0;
}

#define RNN_FILL(a)                                                                                                    \
    do {                                                                                                               \
        (a)->direction = direction_of(c);                                                                              \
        (a)->activations = activations_of(c);                                                                          \
        call_reals(c, "activation_alpha", &(a)->alpha);                                                                \
        call_reals(c, "activation_beta", &(a)->beta);                                                                  \
        (a)->clip = call_real(c, "clip", 0);                                                                           \
    } while (0)

void convert_rnn(onnx_call *c) /* arg: op */
{
    static const int64_t swap[3] = { 1, 0, 2 }, last[4] = { 2, 0, 1, 3 };
    ir_value_id in[8] = { 0 };
    attrs_lstm *lstm = DEFAULTS(lstm);
    attrs_gru *gru = DEFAULTS(gru);
    attrs_rnn *rnn = DEFAULTS(rnn);
    const void *attrs = c->arg == OP_lstm ? (void *)lstm : c->arg == OP_gru ? (void *)gru : rnn;
    uint32_t count = 3;
    if (c->arg == OP_lstm) {
        RNN_FILL(lstm);
        lstm->input_forget = call_int(c, "input_forget", 0) != 0;
    } else if (c->arg == OP_gru) {
        RNN_FILL(gru);
        gru->linear_before_reset = call_int(c, "linear_before_reset", 0) != 0;
    } else {
        RNN_FILL(rnn);
    }
    const bool batch_first = call_int(c, "layout", 0) != 0;
    if (c->version < 7 && call_int(c, "output_sequence", 1) == 0 && call_wants(c, 0))
        REJECT(c, UNSUPPORTED, "attribute output_sequence is 0");
    const uint32_t in_max = c->arg == OP_lstm ? 8 : 6;
    for (uint32_t i = 0; i < in_max; i++) {
        in[i] = call_in(c, i);
        if (!in[i]) continue;
        if (i + 1 > count) count = i + 1;
        if (batch_first && (i == 0 || i == 5 || i == 6) && call_rank(c, in[i]) == 3)
            in[i] = build_permuted(&c->b, in[i], swap, 3);
    }
    uint32_t outputs = 1;
    for (uint32_t i = 1; i < (c->arg == OP_lstm ? 3u : 2u); i++)
        if (call_wants(c, i)) outputs = i + 1;
    const ir_node_id n = build_node(&c->b, (op_id)c->arg, attrs, in, count, outputs);
    for (uint32_t i = 0; i < outputs && i < c->count_out && !c->b.status; i++) {
        c->out[i] = build_result(&c->b, n, i);
        if (batch_first)
            c->out[i] = i == 0 ? build_permuted(&c->b, c->out[i], last, 4) : build_permuted(&c->b, c->out[i], swap, 3);
    }
}

/* [D] or [D, 4 H] beside weights [D, input, 4 H]. */
static ir_value_id gate_parameter(onnx_call *c, uint32_t i, ir_value_id weights)
{
    dim d[SINTER_RANK_MAX];
    const ir_value_id v = call_in(c, i);
    const uint32_t rank = v ? call_shape(c, v, d) : 0;
    if (rank != 1 && rank != 2) REJECT(c, INVALID_MODEL, "input %u is of rank %u, 1 or 2 is wanted", i, rank);
    if (c->b.status) return 0;
    if (d[0] != call_dim(c, weights, 0) || (rank == 2 && d[1] != call_dim(c, weights, 2)))
        REJECT(c, INVALID_MODEL, "input %u has other directions or gates than its weights", i);
    const dim one = call_k(c, 1), wide[3] = { rank ? d[0] : one, one, rank == 2 ? d[1] : one };
    return build_shaped(&c->b, v, wide, 3);
}

/* com.microsoft's: an LSTM with weights of 8 bits. ONNX Runtime quantises the input, and the state before each step,
 * too. Here they stay floats: the weights are dequantised, and the layer is an ordinary one, which is closer to the
 * layer that was quantised. */
void convert_dynamic_quantize_lstm(onnx_call *c) /* arg: OP_lstm */
{
    static const int64_t swap[3] = { 0, 2, 1 };
    const ir_value_id *given = c->in;
    const uint32_t count = c->count_in;
    ir_value_id in[8];
    for (uint32_t i = 0; i < 12; i++)
        if (!call_in(c, i) && (i < 3 || i > 7)) REJECT(c, INVALID_MODEL, "input %u is missing", i);
    for (uint32_t i = 1; i < 3 && !c->b.status; i++)
        if (call_rank(c, call_in(c, i)) != 3)
            REJECT(c, INVALID_MODEL, "weights of rank %u, 3 is wanted", call_rank(c, call_in(c, i)));
    for (uint32_t i = 0; i < 8 && !c->b.status; i++) {
        in[i] = call_in(c, i);
        if (i != 1 && i != 2) continue;
        const ir_value_id scale = gate_parameter(c, 6 + 2 * i, in[i]), zero = gate_parameter(c, 7 + 2 * i, in[i]);
        in[i] = build_permuted(&c->b, quirk_dequantize(c, in[i], scale, zero), swap, 3);
    }
    if (c->b.status) return;
    c->in = in;
    c->count_in = 8;
    convert_rnn(c);
    c->in = given;
    c->count_in = count;
}

/* ---- what If, Loop and Scan share ---- */
const onnx_graph *quirk_graph(onnx_call *c, const char *name)
{
    const onnx_attr *a = call_attr(c, name);
    if (!a || !a->g) REJECT(c, INVALID_MODEL, "attribute %s is missing", name);
    return a ? a->g : NULL;
}

void quirk_owner_done(onnx_call *c, ir_node_id n)
{
    build_close(&c->b, n);
    for (uint32_t i = 0; i < c->count_out && !c->b.status; i++) c->out[i] = build_result(&c->b, n, i);
}

ir_value_id quirk_scalar_in(onnx_call *c, ir_value_id v)
{
    return v && call_rank(c, v) ? build_shaped(&c->b, v, NULL, 0) : v;
}

void quirk_guard(onnx_call *c, ir_value_id condition, bool wanted, quirk_guard_kind kind)
{
    const dim d = dim_symbol_late(c->b.g->dims, "guard", dim_const(c->b.g->dims, wanted));
    uint32_t symbol;
    attrs_bind *bind = DEFAULTS(bind);
    if (!dim_symbol_of(c->b.g->dims, d, &symbol)) REJECT(c, NO_MEMORY, "out of memory for a guard");
    if (c->b.status) return;
    dim_symbol s = *dim_symbol_at(c->b.g->dims, symbol);
    s.min = s.opt = wanted;
    dim_symbol_set(c->b.g->dims, symbol, &s);
    bind->kind = bind_kind_raw;
    bind->flag = kind;
    bind->symbols = build_dims(&c->b, &d, 1);
    const ir_value_id number = build_typed(&c->b, quirk_scalar_in(c, condition), SINTER_DTYPE_I64);
    build_bind(&c->b, number, bind);
}

void quirk_discard(onnx_call *c, uint32_t node_first, uint32_t region_first)
{
    ir_graph *g = c->b.g;
    for (uint32_t r = region_first; r < g->region.count; r++) {
        ir_region *x = ir_region_at(g, r);
        for (uint32_t i = 0; i < x->result.count; i++) {
            ir_value *v = ir_value_at(g, x->result.at[i]);
            if (v->use_count) v->use_count--;
        }
        x->result.count = x->param.count = 0;
    }
    for (uint32_t n = g->node.count; n-- > node_first;)
        if (!ir_node_at(g, n)->is_dead) ir_node_kill(g, n);
}

/* ---- Loop and Scan ---- */
typedef struct body {
    const onnx_graph *graph;
    ir_value *param;
    uint32_t count;
    uint32_t carried, carried_first; /* the carried ones among the parameters */
    uint32_t result_first;           /* of the carried values among the results */
    VEC(dim) late;                   /* sizes of carried parameters that change from turn to turn */
    const char *rank_change;         /* text: the carried value whose rank a turn changes; NULL: there is none */
} body;

/* A loop's iteration number or condition, with one axis where the body declares it so. */
static ir_value own_param(const onnx_call *c, sinter_dtype dtype, const onnx_value_info *declared)
{
    ir_value p = { .dtype = dtype };
    if (!declared->has_shape || declared->rank != 1) return p;
    p.rank = 1;
    p.dim[0] = call_k(c, 1);
    return p;
}

static ir_value like(const onnx_call *c, ir_value_id v)
{
    const ir_value *x = ir_value_at(c->b.g, v);
    ir_value p = { .dtype = x->dtype, .rank = x->rank };
    memcpy(p.dim, x->dim, sizeof p.dim);
    return p;
}

/* A negative axis of a scanned output counts in the output's rank, one more than the body's result has. */
static void axes_count(onnx_call *c, attrs_scan *a, const ir_region *inner)
{
    for (uint32_t i = 0; i < a->out_axis.count; i++) {
        const uint32_t k = (uint32_t)a->carried + i;
        if (a->out_axis.at[i] >= 0 || k >= inner->result.count) continue;
        a->out_axis.at[i] = call_axis(c, a->out_axis.at[i], call_rank(c, inner->result.at[k]) + 1);
    }
}

/* Gives a carried parameter a size that is not known. */
static void make_late(onnx_call *c, body *b, uint32_t carried, uint32_t axis)
{
    dim *size = &b->param[b->carried_first + carried].dim[axis], *slot = VEC_PUSH(&c->im->a, &b->late);
    *size = dim_symbol_late(c->b.g->dims, "loop", DIM_NONE);
    if (!slot) REJECT(c, NO_MEMORY, "out of memory for a subgraph");
    else *slot = *size;
}

/* Gives late sizes to the carried parameters whose sizes differ after a turn; with `all` also to those that do not. */
static bool resize_params(onnx_call *c, ir_node_id n, body *b, const ir_region *region, bool all)
{
    const uint32_t before = b->late.count;
    for (uint32_t i = 0; i < b->carried && b->result_first + i < region->result.count; i++) {
        const ir_value *to = ir_value_at(c->b.g, region->result.at[b->result_first + i]);
        ir_value *from = &b->param[b->carried_first + i];
        for (uint32_t k = 0; k < from->rank && to->rank == from->rank; k++) {
            if ((to->dim[k] == from->dim[k] && !all) || ir_binds(c->b.g, n, from->dim[k])) continue;
            make_late(c, b, i, k);
            learned *l = importer_learned(c->im, b->graph);
            uint32_t *slot = l ? VEC_PUSH(&c->im->a, &l->late) : NULL;
            if (slot) *slot = i * SINTER_RANK_MAX + k;
        }
    }
    return b->late.count != before;
}

/* The sizes that changed when the body was converted before are late from the first attempt on. */
static void recall_late(onnx_call *c, body *b)
{
    const learned *l = importer_learned(c->im, b->graph);
    if (!l) REJECT(c, NO_MEMORY, "out of memory for a subgraph");
    for (uint32_t n = 0; l && n < l->late.count; n++) {
        const uint32_t i = l->late.at[n] / SINTER_RANK_MAX, k = l->late.at[n] % SINTER_RANK_MAX;
        if (i < b->carried && k < b->param[b->carried_first + i].rank) make_late(c, b, i, k);
    }
}

/* Says which carried value has another rank after a turn. */
static bool rank_changes(onnx_call *c, body *b, const ir_region *region)
{
    for (uint32_t i = 0; i < b->carried && b->result_first + i < region->result.count; i++) {
        const uint32_t from = b->param[b->carried_first + i].rank;
        const uint32_t to = call_rank(c, region->result.at[b->result_first + i]);
        if (from == to) continue;
        b->rank_change = arena_printf(&c->im->a, "carried value '%s' has rank %u before a turn and rank %u after it",
                                      b->graph->in.at[b->carried_first + i].name, from, to);
        if (!b->rank_change) REJECT(c, NO_MEMORY, "out of memory for a subgraph");
        return true;
    }
    return false;
}

/* Converts the body. Where a carried value changes its size, converts it again with a size that is not known, which may
 * change others. After a few turns all sizes are taken as not known. */
static void carry(onnx_call *c, op_id op, const void *attrs, const ir_value_id *in, uint32_t count_in, body *b,
                  const call_captures *captures)
{
    enum { EXACT_MAX = 3 };
    recall_late(c, b);
    for (uint32_t attempt = 0; !c->b.status; attempt++) {
        const uint32_t node_first = c->b.g->node.count, region_first = c->b.g->region.count;
        const ir_node_id n = build_node(&c->b, op, attrs, in, count_in, c->count_out);
        for (uint32_t i = 0; i < b->late.count && !c->b.status; i++)
            c->b.status = ir_bound_add(c->b.g, n, b->late.at[i]);
        const ir_region_id r = call_region(c, b->graph, n, b->param, b->count, captures, NULL);
        if (op == OP_scan && !c->b.status) axes_count(c, ir_node_at(c->b.g, n)->attrs, ir_region_at(c->b.g, r));
        if (c->b.status) return;
        if (op == OP_loop && rank_changes(c, b, ir_region_at(c->b.g, r))) {
            quirk_discard(c, node_first, region_first);
            return;
        }
        if (!resize_params(c, n, b, ir_region_at(c->b.g, r), attempt >= EXACT_MAX)) {
            quirk_owner_done(c, n);
            return;
        }
        quirk_discard(c, node_first, region_first);
    }
}

static ir_value_id *inputs_with(onnx_call *c, const ir_value_id *in, uint32_t count, const call_captures *captures)
{
    ir_value_id *all = ARENA_NEW(&c->b.g->a, ir_value_id, size_add(count, captures->count));
    if (!all) {
        if (!c->b.status) c->b.status = FAIL_MEMORY(c->e, "a subgraph");
        return NULL;
    }
    memcpy(all, in, count * sizeof *all);
    if (captures->count) memcpy(all + count, captures->at, captures->count * sizeof *all);
    return all;
}

static void loop_convert(onnx_call *c)
{
    const onnx_graph *graph = quirk_graph(c, "body");
    call_captures captures = { 0 };
    if (c->count_in < 2 && !c->b.status) REJECT(c, INVALID_MODEL, "%u inputs", c->count_in);
    if (c->b.status) return;
    const uint32_t carried = c->count_in - 2;
    if (c->count_out < carried || graph->out.count != c->count_out + 1) {
        REJECT(c, INVALID_MODEL, "a body with %u results for %u outputs and %u carried values", graph->out.count,
               c->count_out, carried);
        return;
    }
    for (uint32_t i = 0; i < c->count_in; i++) {
        if (!call_list_at(c, c->in[i])) continue;
        quirk_loop_unroll(c, graph, "it carries a sequence");
        return;
    }
    ir_value_id *first = ARENA_NEW(&c->b.g->a, ir_value_id, c->count_in);
    body b = { .graph = graph,
               .param = ARENA_NEW(&c->b.g->a, ir_value, c->count_in),
               .count = c->count_in,
               .carried = carried,
               .carried_first = 2,
               .result_first = 1 };
    if (!first || !b.param) REJECT(c, NO_MEMORY, "out of memory for a subgraph");
    if (c->b.status) return;
    memcpy(first, c->in, c->count_in * sizeof *first);
    first[0] = quirk_scalar_in(c, first[0]);
    first[1] = quirk_scalar_in(c, first[1]);
    if (graph->in.count != c->count_in)
        REJECT(c, INVALID_MODEL, "a body with %u inputs, %u are wanted", graph->in.count, c->count_in);
    if (c->b.status) return;
    b.param[0] = own_param(c, SINTER_DTYPE_I64, &graph->in.at[0]);
    b.param[1] = own_param(c, SINTER_DTYPE_BOOL, &graph->in.at[1]);
    for (uint32_t i = 2; i < c->count_in; i++) {
        if (!first[i]) REJECT(c, INVALID_MODEL, "carried value %u is missing", i - 2);
        b.param[i] = like(c, first[i]);
    }
    call_capture(c, graph, &captures);
    ir_value_id *in = inputs_with(c, first, c->count_in, &captures);
    attrs_loop *a = DEFAULTS(loop);
    a->carried = carried;
    if (!c->b.status) carry(c, OP_loop, a, in, c->count_in + captures.count, &b, &captures);
    if (!c->b.status && b.rank_change) quirk_loop_unroll(c, graph, b.rank_change);
}

void convert_loop(onnx_call *c)
{
    importer_enter(c->im);
    loop_convert(c);
    importer_leave(c->im);
}

static bool scan_list(onnx_call *c, const char *name, uint32_t count, attr_ints *out)
{
    if (count > ATTR_INTS_MAX) {
        REJECT(c, UNSUPPORTED, "%u scanned values", count);
        return false;
    }
    if (!call_ints(c, name, out) || !out->count) {
        memset(out, 0, sizeof *out);
        out->count = count;
    }
    if (out->count != count)
        REJECT(c, INVALID_MODEL, "attribute %s has %u values, %u are wanted", name, out->count, count);
    return !c->b.status;
}

static void scan_convert(onnx_call *c)
{
    const onnx_graph *graph = quirk_graph(c, "body");
    const int64_t scanned = call_int(c, "num_scan_inputs", 0);
    call_captures captures = { 0 };
    if (c->b.status) return;
    if (scanned < 1 || scanned > (int64_t)c->count_in || graph->out.count != c->count_out)
        REJECT(c, INVALID_MODEL, "%lld scanned inputs of %u, and a body with %u results for %u outputs",
               (long long)scanned, c->count_in, graph->out.count, c->count_out);
    if (c->b.status) return;
    const uint32_t carried = c->count_in - (uint32_t)scanned;
    if (carried > c->count_out) {
        REJECT(c, INVALID_MODEL, "%u carried values and %u outputs", carried, c->count_out);
        return;
    }
    attrs_scan *a = DEFAULTS(scan);
    a->carried = carried;
    a->scanned = scanned;
    scan_list(c, "scan_input_axes", (uint32_t)scanned, &a->in_axis);
    scan_list(c, c->version < 9 ? "directions" : "scan_input_directions", (uint32_t)scanned, &a->in_reverse);
    scan_list(c, "scan_output_axes", c->count_out - carried, &a->out_axis);
    scan_list(c, "scan_output_directions", c->count_out - carried, &a->out_reverse);
    body b = {
        .graph = graph, .param = ARENA_NEW(&c->b.g->a, ir_value, c->count_in), .count = c->count_in, .carried = carried
    };
    if (!b.param) REJECT(c, NO_MEMORY, "out of memory for a subgraph");
    for (uint32_t i = 0; i < c->count_in && !c->b.status; i++) {
        if (!c->in[i]) {
            REJECT(c, INVALID_MODEL, "input %u is missing", i);
            return;
        }
        ir_value p = like(c, c->in[i]);
        if (i >= carried) {
            const uint32_t k = i - carried;
            a->in_axis.at[k] = call_axis(c, a->in_axis.at[k], p.rank);
            for (uint32_t x = (uint32_t)a->in_axis.at[k]; x + 1 < p.rank; x++) p.dim[x] = p.dim[x + 1];
            if (p.rank) p.rank--;
        }
        b.param[i] = p;
    }
    call_capture(c, graph, &captures);
    ir_value_id *in = inputs_with(c, c->in, c->count_in, &captures);
    if (!c->b.status) carry(c, OP_scan, a, in, c->count_in + captures.count, &b, &captures);
}

/* Before opset 9 everything had a batch axis in front, and an input 0 the lengths: one scan for each of the batch. */
static void scan_batched(onnx_call *c)
{
    enum { BATCH_MAX = 64 };
    int64_t batch = 0;
    if (c->count_in < 2 || call_in(c, 0)) REJECT(c, UNSUPPORTED, "sequence_lens");
    for (uint32_t i = 1; i < c->count_in; i++)
        if (!c->in[i] || !call_size(c, c->in[i], 0, &batch) || batch < 1 || batch > BATCH_MAX)
            REJECT(c, UNSUPPORTED, "a batch that is not known, or over %d", (int)BATCH_MAX);
    ir_value_id *in = ARENA_NEW(&c->b.g->a, ir_value_id, c->count_in);
    ir_value_id *all = ARENA_NEW(&c->b.g->a, ir_value_id, size_mul(c->count_out, BATCH_MAX));
    ir_value_id *made = ARENA_NEW(&c->b.g->a, ir_value_id, (size_t)c->count_out + 1);
    if (!in || !all || !made) REJECT(c, NO_MEMORY, "out of memory for a subgraph");
    for (int64_t b = 0; b < batch && !c->b.status; b++) {
        for (uint32_t i = 1; i < c->count_in; i++)
            in[i - 1] = build_squeezed(&c->b, build_part(&c->b, c->in[i], 0, call_k(c, b), 1, call_k(c, 1)), 0);
        onnx_call one = *c;
        one.in = in;
        one.count_in = c->count_in - 1;
        one.out = made;
        if (!c->b.status) scan_convert(&one);
        c->b.status = one.b.status;
        for (uint32_t i = 0; i < c->count_out && !c->b.status; i++)
            all[(size_t)i * BATCH_MAX + (size_t)b] = build_unsqueezed(&c->b, made[i], 0);
    }
    for (uint32_t i = 0; i < c->count_out && !c->b.status; i++) {
        const ir_value_id *parts = all + (size_t)i * BATCH_MAX;
        c->out[i] = batch == 1 ? parts[0] : build_concat(&c->b, parts, (uint32_t)batch, &(attrs_concat){ .axis = 0 });
    }
}

void convert_scan(onnx_call *c)
{
    importer_enter(c->im);
    if (c->version < 9) scan_batched(c);
    else scan_convert(c);
    importer_leave(c->im);
}
