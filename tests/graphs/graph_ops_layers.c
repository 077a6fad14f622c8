/* SPDX-License-Identifier: Apache-2.0 */
/* graph_ops_layers.c - rows of whole layers: recurrent ones, attention, images, signals, quantised and fused operators.
 */
#include "graph_ops.h"

/* A value of these constant sizes and type F32. */
static uint32_t weight(grow *g, int64_t a, int64_t b, int64_t c, uint32_t rank)
{
    return grow_weight(g, SINTER_DTYPE_F32, (const int64_t[]){ a, b, c }, rank, 0.5);
}

/* Mostly F32; else one of the types of floats that leaves of the graph may have. */
static sinter_dtype float_among(grow *g, uint64_t types)
{
    static const sinter_dtype all[] = { SINTER_DTYPE_F16, SINTER_DTYPE_BF16, SINTER_DTYPE_F64 };
    const sinter_dtype t = all[grow_below(g, COUNT_OF(all))];
    return g->types & types & (uint64_t)1 << t ? t : SINTER_DTYPE_F32;
}

static sinter_dtype float_of(grow *g)
{
    return float_among(g, T_F);
}

/* The last axis where it is a number; 0: it is not. */
static int64_t width_of(const grow *g, uint32_t x)
{
    if (x == G_NONE || !grow_rank(g, x)) return 0;
    const gsize d = grow_dim(g, x, grow_rank(g, x) - 1);
    return gsize_is_const(g, d) ? d.at[0] : 0;
}

/* ---- recurrent; arg: gates ---- */
static void activations(grow *g, uint32_t n, int64_t gates, int64_t dirs)
{
    static const char *const names[] = { "Sigmoid", "Tanh", "Relu", "HardSigmoid", "Elu", "Softsign" };
    const uint32_t each = gates == 4 ? 3 : gates == 3 ? 2 : 1;
    gattr *a = gnode_attr(&g->m->node.at[n], "activations", GA_TEXTS);
    for (uint32_t i = 0; i < each * (uint32_t)dirs; i++) {
        const char *name = names[grow_below(g, grow_one_in(g, 3) ? COUNT_OF(names) : 2)];
        const size_t length = strlen(a->text);
        (void)snprintf(a->text + length, sizeof a->text - length, "%s%s", i ? " " : "", name);
    }
}

/* Numbers of units as networks have them, and beside them. */
static int64_t units(grow *g)
{
    static const int64_t usual[] = { 7, 8, 15, 16, 17, 24, 31, 32, 33, 40, 48, 63, 64, 65, 72, 96, 100 };
    if (!grow_one_in(g, 3)) return grow_between(g, 1, 5);
    return grow_one_in(g, 3) ? grow_between(g, 6, 100) : usual[grow_below(g, COUNT_OF(usual))];
}

/* The layer's input. Beside many units the input is often wide, too. */
static uint32_t sequence(grow *g, int64_t hidden)
{
    const uint64_t types = g->m->opset >= 22 ? T_F : T_F & ~T_OF(BF16);
    if (hidden < 6 || grow_one_in(g, 2)) return grow_pick(g, types, 3, 3);
    const gsize d[3] = { grow_size(g), grow_size(g), gsize_of(units(g)) };
    return grow_shaped(g, float_among(g, types), d, 3);
}

/* The outputs of all steps; G_NONE: none was made. */
static uint32_t layer(grow *g, const gop *op, uint32_t x, int64_t hidden, bool is_batch_first)
{
    static const char *const directions[] = { "forward", "reverse", "bidirectional" };
    enum { PRODUCTS_MAX = 1 << 21, WEIGHTS_MAX = 1 << 17, RESULTS_MAX = 1 << 14 };
    const uint32_t way = grow_below(g, 3);
    const int64_t width = width_of(g, x), dirs = way == 2 ? 2 : 1, count_max = g->count_max;
    if (!width || gsize_min(g, grow_dim(g, x, 1)) < 1 || gsize_min(g, grow_dim(g, x, 0)) < 1) return G_NONE;
    const gsize batch = grow_dim(g, x, !is_batch_first), time = grow_dim(g, x, is_batch_first);
    int64_t rows = 1;
    for (uint32_t k = 0; k < G_ENVS; k++)
        if (dirs * batch.at[k] * time.at[k] > rows) rows = dirs * batch.at[k] * time.at[k];
    while (hidden > 1 && (rows * op->arg * hidden * (hidden + width) > PRODUCTS_MAX || rows * hidden > RESULTS_MAX))
        hidden--;
    double scale = 0.5; /* states of many units would swing otherwise, and rounding would decide the results */
    while (scale * scale * (double)hidden > 1.25) scale /= 2;
    const gsize first = is_batch_first ? batch : gsize_of(dirs), second = is_batch_first ? gsize_of(dirs) : batch,
                state[3] = { first, second, gsize_of(hidden) };
    const sinter_dtype t = grow_type(g, x);
    const bool has_lengths = grow_one_in(g, 4), has_state = grow_one_in(g, 2), is_lstm = op->arg == 4;
    g->count_max = WEIGHTS_MAX;
    const uint32_t in[8] = {
        x,
        grow_weight(g, t, (const int64_t[]){ dirs, op->arg * hidden, width }, 3, scale),
        grow_weight(g, t, (const int64_t[]){ dirs, op->arg * hidden, hidden }, 3, scale),
        grow_one_in(g, 2) ? grow_weight(g, t, (const int64_t[]){ dirs, 2 * op->arg * hidden }, 2, 0.5) : G_ABSENT,
        has_lengths ? grow_leaf(g, SINTER_DTYPE_I32, &batch, 1, false,
                                (gfill){ 1, (double)gsize_min(g, time), 1, grow_below(g, 999) })
                    : G_ABSENT,
        has_state ? grow_shaped(g, t, state, 3) : G_ABSENT,
        has_state && is_lstm ? grow_shaped(g, t, state, 3) : G_ABSENT,
        is_lstm && grow_one_in(g, 4) ? grow_weight(g, t, (const int64_t[]){ dirs, 3 * hidden }, 2, 0.5) : G_ABSENT,
    };
    const uint32_t n = grow_begin(g, op->name);
    if (t == SINTER_DTYPE_BF16) grow_since(g, 22);
    for (uint32_t i = 0; i < (is_lstm ? 8u : 6u); i++) grow_in(g, n, in[i]);
    grow_int(g, n, "hidden_size", hidden);
    if (is_batch_first) grow_int(g, n, "layout", 1);
    if (way) grow_text(g, n, "direction", directions[way]);
    if (op->arg == 3 && grow_one_in(g, 2)) grow_int(g, n, "linear_before_reset", 1);
    if (grow_one_in(g, 4)) activations(g, n, op->arg, dirs);
    g->count_max = count_max > RESULTS_MAX ? count_max : RESULTS_MAX;
    const uint32_t made = grow_end(g, n, op->arg == 4 ? 3 : 2);
    g->count_max = count_max;
    return made;
}

static bool recurrent(grow *g, const gop *op)
{
    const bool is_batch_first = g->m->opset >= 14 && grow_one_in(g, 5);
    const int64_t hidden = units(g);
    return layer(g, op, sequence(g, hidden), hidden, is_batch_first) != G_NONE;
}

/* What a layer gives for all steps, as the next one takes it: both directions beside each other. */
static uint32_t joined(grow *g, uint32_t y, bool is_batch_first)
{
    if (y == G_NONE || g->is_refused) return G_NONE;
    const uint32_t at = is_batch_first ? 2 : 1;
    if (gsize_is(g, grow_dim(g, y, at), 1) && grow_one_in(g, 2))
        return grow_2(g, "Squeeze", y, grow_const_ints(g, (const int64_t[]){ at }, 1));
    const uint32_t turned = is_batch_first ? y : grow_transpose(g, y, (const int64_t[]){ 0, 2, 1, 3 });
    if (turned == G_NONE) return G_NONE;
    return grow_2(g, "Reshape", turned, grow_const_ints(g, (const int64_t[]){ 0, 0, -1 }, 3));
}

/* Two or three layers, of one kind mostly; between them there may be an activation. */
static bool stacked(grow *g, const gop *op)
{
    enum { RESULTS_MAX = 1 << 14 };
    static const char *const kinds[] = { "LSTM", "GRU", "RNN" };
    (void)op;
    const bool is_batch_first = g->m->opset >= 14 && grow_one_in(g, 4);
    const uint32_t layers = 2 + grow_one_in(g, 3);
    const int64_t count_max = g->count_max;
    int64_t hidden = units(g);
    const gop *kind = gop_find(kinds[grow_below(g, 3)]);
    uint32_t x = sequence(g, hidden);
    for (uint32_t i = 0; i < layers && x != G_NONE && !g->is_refused; i++) {
        if (grow_one_in(g, 5)) kind = gop_find(kinds[grow_below(g, 3)]);
        if (grow_one_in(g, 3)) hidden = units(g);
        x = layer(g, kind, x, hidden, is_batch_first);
        g->count_max = count_max > RESULTS_MAX ? count_max : RESULTS_MAX;
        if (i + 1 < layers) x = joined(g, x, is_batch_first);
        if (i + 1 < layers && x != G_NONE && grow_one_in(g, 4)) x = grow_1(g, "Relu", x);
        g->count_max = count_max;
    }
    return x != G_NONE;
}

/* ---- attention ---- */

/* [batch, heads, tokens, size], or the heads beside each other in [batch, tokens, heads * size]. */
static uint32_t heads_of(grow *g, sinter_dtype t, gsize batch, int64_t heads, gsize tokens, int64_t size, bool is_flat)
{
    const gsize apart[4] = { batch, gsize_of(heads), tokens, gsize_of(size) },
                flat[3] = { batch, tokens, gsize_of(heads * size) };
    return grow_shaped(g, t, is_flat ? flat : apart, is_flat ? 3 : 4);
}

/* How many heads of which sizes, and how many queries and keys. */
typedef struct extent {
    int64_t groups, heads, depth, wide, past;
    gsize batch, s, t, all; /* all: with the past */
} extent;

static extent few_heads(grow *g)
{
    extent x = { .groups = grow_between(g, 1, 2) };
    x.heads = x.groups * grow_between(g, 1, 2);
    x.depth = grow_between(g, 1, 8);
    x.wide = grow_one_in(g, 3) ? grow_between(g, 1, 8) : x.depth;
    x.past = grow_one_in(g, 4) ? 3 : 0;
    x.batch = grow_size(g);
    x.s = grow_size(g);
    x.t = grow_one_in(g, 2) ? x.s : grow_size(g);
    return x;
}

/* Elements of a head as kernels for matrix units want them, or odd. */
static int64_t head_size(grow *g)
{
    static const int64_t usual[] = { 16, 32, 40, 64, 64, 72, 80, 96, 128 };
    if (grow_one_in(g, 4)) return grow_between(g, 9, 128);
    return grow_one_in(g, 3) ? 8 * grow_between(g, 1, 16) : usual[grow_below(g, COUNT_OF(usual))];
}

/* Mostly multiples of 8. Where the graph has symbols, some differ between runs. */
static gsize token_count(grow *g)
{
    static const int64_t usual[] = { 1, 8, 16, 24, 32, 48, 63, 64, 65, 80, 96, 112, 127, 128, 129, 130 };
    const bool differs = g->has_symbols && grow_one_in(g, 2), is_odd = grow_one_in(g, 3);
    const int64_t unit = is_odd ? 1 : 8;
    gsize s = gsize_of(is_odd ? grow_between(g, 16, 130) : usual[grow_below(g, COUNT_OF(usual))]);
    for (uint32_t k = 1; k < G_ENVS && differs; k++) s.at[k] = unit * grow_between(g, 1, 130 / unit);
    return s;
}

/* Largest of the environments. */
static int64_t size_max_of(const grow *g, gsize s)
{
    int64_t most = 0;
    for (uint32_t k = 0; k < g->m->envs; k++) most = s.at[k] > most ? s.at[k] : most;
    return most;
}

/* Heads of sizes that matrix units take, and so many tokens that a kernel has several tiles of them: as many heads as
 * the judge can do soon. */
static extent large_heads(grow *g)
{
    enum { PRODUCTS_MAX = 1 << 21 };
    extent x = { .groups = grow_between(g, 1, 3), .depth = head_size(g) };
    x.heads = x.groups * grow_between(g, 1, 4);
    x.wide = grow_one_in(g, 4) ? head_size(g) : x.depth;
    x.batch = gsize_of(grow_between(g, 1, 2));
    x.s = token_count(g);
    x.t = grow_one_in(g, 2) ? x.s : token_count(g);
    x.past = grow_one_in(g, 4) ? grow_between(g, 1, 6) * (grow_one_in(g, 2) ? 8 : 1) : 0;
    const int64_t each = size_max_of(g, x.s) * (size_max_of(g, x.t) + x.past) * (x.depth + x.wide);
    if (x.batch.at[0] * x.heads * each > PRODUCTS_MAX) x.batch = gsize_of(1);
    if (x.heads * each > PRODUCTS_MAX) x.heads = x.groups;
    if (x.heads * each > PRODUCTS_MAX) x.heads = x.groups = 1;
    return x;
}

/* A mask of keys, of queries and keys, of one or all heads and batches: whether a key counts, or what is added. Of many
 * tokens some queries may see a few keys alone. */
static uint32_t mask_of(grow *g, const extent *x, sinter_dtype type, bool is_large)
{
    static const sinter_dtype added[] = { SINTER_DTYPE_F32, SINTER_DTYPE_F16 };
    gsize d[4] = { x->batch, gsize_of(grow_one_in(g, 2) ? 1 : x->heads), x->s, x->all };
    if (grow_one_in(g, 2)) d[0] = gsize_of(1);
    if (grow_one_in(g, 4)) d[2] = gsize_of(1);
    const uint32_t from = grow_below(g, 3), cut = grow_one_in(g, 2) ? from : 2;
    if (grow_one_in(g, 3)) type = SINTER_DTYPE_BOOL;
    else if (is_large && grow_one_in(g, 4)) type = added[grow_below(g, COUNT_OF(added))];
    return grow_shaped(g, type, d + cut, 4 - cut);
}

static bool attend(grow *g, const gop *op, extent x, sinter_dtype type, bool is_large)
{
    const bool is_flat = grow_one_in(g, 3), has_lengths = !x.past && g->m->opset >= 24 && grow_one_in(g, 4);
    x.all = x.t;
    for (uint32_t k = 0; k < G_ENVS; k++) x.all.at[k] += x.past;
    const gsize past = gsize_of(x.past);
    const uint32_t query = heads_of(g, type, x.batch, x.heads, x.s, x.depth, is_flat),
                   key = heads_of(g, type, x.batch, x.groups, x.t, x.depth, is_flat),
                   value = x.wide == x.depth && grow_one_in(g, 3)
                               ? key
                               : heads_of(g, type, x.batch, x.groups, x.t, x.wide, is_flat),
                   masked = grow_one_in(g, 2) ? G_ABSENT : mask_of(g, &x, type, is_large),
                   old_key = x.past ? heads_of(g, type, x.batch, x.groups, past, x.depth, false) : G_ABSENT,
                   old_value = x.past ? heads_of(g, type, x.batch, x.groups, past, x.wide, false) : G_ABSENT,
                   lengths = has_lengths ? grow_leaf(g, SINTER_DTYPE_I64, &x.batch, 1, false,
                                                     (gfill){ 1, (double)gsize_min(g, x.t), 1, grow_below(g, 999) })
                                         : G_ABSENT,
                   n = grow_begin(g, op->name);
    const uint32_t in[7] = { query, key, value, masked, old_key, old_value, lengths };
    for (uint32_t i = 0; i < (has_lengths ? 7u : x.past ? 6u : 4u); i++) grow_in(g, n, in[i]);
    if ((masked == G_ABSENT || x.past || is_large) && grow_one_in(g, 2)) grow_int(g, n, "is_causal", 1);
    if (is_flat) grow_int(g, n, "q_num_heads", x.heads);
    if (is_flat) grow_int(g, n, "kv_num_heads", x.groups);
    if (grow_one_in(g, 3)) grow_real(g, n, "scale", is_large ? 1 / (double)x.depth : 0.5);
    const bool shows = grow_one_in(g, 5);
    if (shows) grow_int(g, n, "qk_matmul_output_mode", grow_below(g, 4));
    return grow_end(g, n, shows && x.past ? 4 : x.past ? 3 : 1) != G_NONE;
}

static bool attention(grow *g, const gop *op)
{
    enum { RESULTS_MAX = 1 << 16 };
    const bool is_large = !g->size && !g->palette.row_count && !g->depth && grow_one_in(g, 3);
    const extent x = is_large ? large_heads(g) : few_heads(g);
    const int64_t count_max = g->count_max;
    if (gsize_min(g, x.t) < 1) return false;
    sinter_dtype type = float_of(g);
    if (is_large && grow_one_in(g, 2)) type = grow_one_in(g, 3) ? SINTER_DTYPE_BF16 : SINTER_DTYPE_F16;
    if (is_large) g->count_max = RESULTS_MAX;
    const bool did = attend(g, op, x, type, is_large);
    g->count_max = count_max;
    return did;
}

/* Angles of each token, or angles by position. A head may turn in part. */
static bool rotary(grow *g, const gop *op)
{
    const int64_t half = grow_between(g, 1, 4), heads = grow_between(g, 1, 3), rest = grow_one_in(g, 4) ? 2 : 0,
                  places = 9;
    const gsize batch = grow_size(g), s = grow_size(g), c[3] = { batch, s, gsize_of(half) };
    sinter_dtype t = float_of(g);
    if (t == SINTER_DTYPE_F64) t = SINTER_DTYPE_F32;
    const bool has_places = grow_one_in(g, 3), is_flat = grow_one_in(g, 3);
    const gsize table[2] = { gsize_of(places), gsize_of(half) };
    const uint32_t x = heads_of(g, t, batch, heads, s, 2 * half + rest, is_flat),
                   cosine = has_places ? grow_shaped(g, t, table, 2) : grow_shaped(g, t, c, 3),
                   sine = grow_one_in(g, 3) ? cosine
                          : has_places      ? grow_shaped(g, t, table, 2)
                                            : grow_shaped(g, t, c, 3),
                   place = has_places ? grow_leaf(g, SINTER_DTYPE_I64, c, 2, false,
                                                  (gfill){ 0, (double)places - 1, 1, grow_below(g, 999) })
                                      : G_ABSENT,
                   n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, cosine);
    grow_in(g, n, sine);
    if (has_places) grow_in(g, n, place);
    if (is_flat) grow_int(g, n, "num_heads", heads);
    if (rest) grow_int(g, n, "rotary_embedding_dim", 2 * half);
    if (grow_one_in(g, 2)) grow_int(g, n, "interleaved", 1);
    return grow_end(g, n, 1) != G_NONE;
}

/* ---- images and signals ---- */
static bool grid_sample(grow *g, const gop *op)
{
    static const char *const modes[] = { "linear", "nearest", "cubic" }, *const pads[] = { "zeros", "border",
                                                                                           "reflection" };
    const gsize batch = grow_size(g);
    static const char *const old_modes[] = { "bilinear", "nearest", "bicubic" };
    const bool is_old = op->since == 1, is_deep = !is_old && grow_one_in(g, 4);
    const uint32_t rank = is_deep ? 5 : 4, mode = grow_below(g, is_deep ? 2 : 3);
    gsize d[5] = { batch, gsize_of(grow_between(g, 1, 4)) }, s[5] = { batch };
    for (uint32_t i = 2; i < rank; i++) d[i] = gsize_of(grow_between(g, 2, 6));
    for (uint32_t i = 1; i + 1 < rank; i++) s[i] = grow_size(g);
    s[rank - 1] = gsize_of(rank - 2);
    const sinter_dtype t = float_of(g) == SINTER_DTYPE_F64 ? SINTER_DTYPE_F64 : SINTER_DTYPE_F32;
    const uint32_t x = grow_shaped(g, t, d, rank), at = grow_shaped(g, t, s, rank), n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, at);
    grow_text(g, n, "mode", is_old ? old_modes[mode] : modes[mode]);
    grow_text(g, n, "padding_mode", pads[grow_below(g, 3)]);
    return grow_end(g, n, 1) != G_NONE;
}

static bool affine_grid(grow *g, const gop *op)
{
    const int64_t axes = grow_one_in(g, 3) ? 3 : 2;
    const gsize batch = grow_size(g), d[3] = { batch, gsize_of(axes), gsize_of(axes + 1) };
    gsize size[5] = { batch, gsize_of(2) };
    for (int64_t i = 0; i < axes; i++) size[2 + i] = gsize_of(grow_between(g, 2, 5));
    return grow_2(g, op->name, grow_shaped(g, float_of(g), d, 3), grow_ints(g, size, 2 + (uint32_t)axes, false)) !=
           G_NONE;
}

static bool roi_align(grow *g, const gop *op)
{
    const gsize count = grow_size(g),
                d[4] = { gsize_of(2), gsize_of(grow_between(g, 1, 4)), gsize_of(grow_between(g, 3, 8)),
                         gsize_of(grow_between(g, 3, 8)) },
                b[2] = { count, gsize_of(4) };
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, d, 4),
                   boxes = grow_leaf(g, SINTER_DTYPE_F32, b, 2, false, (gfill){ 0, 3, 0.25, grow_below(g, 999) }),
                   at = grow_leaf(g, SINTER_DTYPE_I64, &count, 1, false, (gfill){ 0, 1, 1, grow_below(g, 999) }),
                   n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, boxes);
    grow_in(g, n, at);
    if (!grow_one_in(g, 4)) grow_int(g, n, "output_height", 2);
    if (!grow_one_in(g, 4)) grow_int(g, n, "output_width", 3);
    if (!grow_one_in(g, 4)) grow_int(g, n, "sampling_ratio", grow_below(g, 3));
    if (grow_one_in(g, 2)) grow_text(g, n, "coordinate_transformation_mode", "output_half_pixel");
    if (grow_one_in(g, 3)) grow_text(g, n, "mode", "max");
    return grow_end(g, n, 1) != G_NONE;
}

/* Regions [R, 5] of an image and two corners, which may lie outside or in the other order. */
static bool max_roi_pool(grow *g, const gop *op)
{
    const gsize count = grow_size(g),
                d[4] = { gsize_of(2), gsize_of(grow_between(g, 1, 4)), gsize_of(grow_between(g, 1, 9)),
                         gsize_of(grow_between(g, 1, 9)) },
                corners[2] = { count, gsize_of(4) }, image[2] = { count, gsize_of(1) };
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, d, 4),
                   at = grow_leaf(g, SINTER_DTYPE_F32, image, 2, false, (gfill){ 0, 1, 1, grow_below(g, 999) }),
                   boxes =
                       grow_leaf(g, SINTER_DTYPE_F32, corners, 2, false, (gfill){ -2, 9, 0.25, grow_below(g, 999) }),
                   together = grow_begin(g, "Concat");
    grow_in(g, together, at);
    grow_in(g, together, boxes);
    grow_int(g, together, "axis", 1);
    const uint32_t rois = grow_end(g, together, 1);
    if (rois == G_NONE) return false;
    const uint32_t n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, rois);
    grow_list(g, n, "pooled_shape", (const int64_t[]){ grow_between(g, 1, 4), grow_between(g, 1, 4) }, 2);
    if (grow_one_in(g, 2)) grow_real(g, n, "spatial_scale", grow_one_in(g, 2) ? 0.5 : 0.25);
    return grow_end(g, n, 1) != G_NONE;
}

/* Scores of few values are often equal, and some are no numbers; limits are left out, keep nothing, or keep all. */
static bool nms(grow *g, const gop *op)
{
    static const double overlap[] = { 0, 0.3, 0.5, 1, -0.5 }, least[] = { 0.25, 0.5, -1, 2 };
    static const int64_t count[] = { 3, 0, 1, 200, -2 };
    const bool is_long = grow_one_in(g, 6), has_ties = grow_one_in(g, 2);
    const gsize n_boxes = gsize_of(is_long ? grow_between(g, 60, 140) : grow_between(g, 1, 9)),
                batch = gsize_of(grow_between(g, 1, 2)), b[3] = { batch, n_boxes, gsize_of(4) },
                s[3] = { batch, gsize_of(grow_between(g, 1, 3)), n_boxes };
    const uint64_t seed = grow_below(g, 999) | (grow_one_in(g, 4) ? G_SPECIAL : 0);
    const uint32_t boxes = grow_leaf(g, SINTER_DTYPE_F32, b, 3, false, (gfill){ 0, 4, 0, grow_below(g, 999) }),
                   scores = grow_leaf(g, SINTER_DTYPE_F32, s, 3, false, (gfill){ 0, 1, has_ties ? 0.25 : 0, seed }),
                   most = grow_const_scalar(g, SINTER_DTYPE_I64, (double)count[grow_below(g, COUNT_OF(count))]),
                   iou = grow_one_in(g, 3)
                             ? G_ABSENT
                             : grow_const_scalar(g, SINTER_DTYPE_F32, overlap[grow_below(g, COUNT_OF(overlap))]),
                   floor_score = grow_one_in(g, 2)
                                     ? G_ABSENT
                                     : grow_const_scalar(g, SINTER_DTYPE_F32, least[grow_below(g, COUNT_OF(least))]),
                   n = grow_begin(g, op->name);
    grow_in(g, n, boxes);
    grow_in(g, n, scores);
    grow_in(g, n, most);
    if (iou != G_ABSENT || floor_score != G_ABSENT) grow_in(g, n, iou);
    if (floor_score != G_ABSENT) grow_in(g, n, floor_score);
    if (grow_one_in(g, 3)) grow_int(g, n, "center_point_box", 1);
    return grow_end(g, n, 1) != G_NONE;
}

static bool col2im(grow *g, const gop *op)
{
    const int64_t h = grow_between(g, 2, 5), w = grow_between(g, 2, 5), block = grow_between(g, 1, 2);
    const gsize d[3] = { grow_size(g), gsize_of(block * block * grow_between(g, 1, 3)),
                         gsize_of((h - block + 1) * (w - block + 1)) };
    const gsize sizes[2] = { gsize_of(h), gsize_of(w) }, blocks[2] = { gsize_of(block), gsize_of(block) };
    const uint32_t x = grow_shaped(g, float_of(g), d, 3), image = grow_ints(g, sizes, 2, false),
                   sides = grow_ints(g, blocks, 2, false);
    return grow_3(g, op->name, x, image, sides) != G_NONE;
}

static bool det(grow *g, const gop *op)
{
    const gsize side = gsize_of(grow_between(g, 1, 3)), d[3] = { grow_size(g), side, side };
    return grow_1(g, op->name, grow_shaped(g, float_of(g), d, 3)) != G_NONE;
}

/* Along any axis; lengths of several factors, and of none. */
static bool dft(grow *g, const gop *op)
{
    gsize d[5];
    const uint32_t rank = (uint32_t)grow_between(g, 2, 5);
    const int64_t at = grow_between(g, 0, rank - 2), size = grow_between(g, 1, grow_one_in(g, 4) ? 70 : 9);
    for (uint32_t i = 0; i < rank; i++) d[i] = grow_size(g);
    d[at] = gsize_of(size);
    d[rank - 1] = gsize_of(grow_between(g, 1, 2));
    const bool is_from_end = grow_one_in(g, 2);
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, d, rank),
                   axis = is_from_end ? grow_const_scalar(g, SINTER_DTYPE_I64, (double)(at - rank))
                                      : grow_ints(g, (const gsize[]){ gsize_of(at) }, 1, true),
                   length = grow_one_in(g, 2)
                                ? G_ABSENT
                                : grow_ints(g, (const gsize[]){ gsize_of(grow_between(g, 1, size + 3)) }, 1, true),
                   n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, length);
    grow_in(g, n, axis);
    if (gsize_is(g, d[rank - 1], 1) && grow_one_in(g, 2)) grow_int(g, n, "onesided", 1);
    else if (gsize_is(g, d[rank - 1], 2) && grow_one_in(g, 2)) grow_int(g, n, "inverse", 1);
    return grow_end(g, n, 1) != G_NONE;
}

static bool stft(grow *g, const gop *op)
{
    const int64_t length = grow_between(g, 2, grow_one_in(g, 4) ? 40 : 6);
    const gsize d[3] = { grow_size(g), gsize_of(length * 3), gsize_of(1) }, frame = gsize_of(length);
    const gsize pace = gsize_of(grow_between(g, 1, 3));
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, d, 3), step = grow_ints(g, &pace, 1, true);
    return grow_3(g, op->name, x, step, grow_shaped(g, SINTER_DTYPE_F32, &frame, 1)) != G_NONE;
}

static bool window(grow *g, const gop *op)
{
    const gsize size = gsize_of(grow_between(g, 1, 20));
    return grow_1(g, op->name, grow_ints(g, &size, 1, true)) != G_NONE;
}

/* ---- others ---- */
static bool simple(grow *g, const gop *op)
{
    const uint32_t rank = op->arg ? (uint32_t)op->arg : 1, x = grow_pick(g, op->types, rank, op->arg ? rank : 5);
    for (uint32_t i = 0; x != G_NONE && i < grow_rank(g, x); i++)
        if (gsize_min(g, grow_dim(g, x, i)) < 1) return false;
    return grow_1(g, op->name, x) != G_NONE;
}

/* Nothing is dropped while training_mode is not true, or the ratio is 0. The run may decide one of the two. */
static bool dropout(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, op->types, 1, 5), way = grow_below(g, 5);
    const bool drops_none = way >= 3;
    uint32_t ratio = G_ABSENT, mode = G_ABSENT;
    if (x == G_NONE) return false;
    const sinter_dtype type = grow_one_in(g, 2) ? SINTER_DTYPE_F32 : grow_type(g, x);
    if (way >= 1)
        ratio = grow_one_in(g, 2) ? grow_const_scalar(g, type, drops_none ? 0 : 0.25)
                                  : grow_leaf(g, type, NULL, 0, false, (gfill){ 0, drops_none ? 0 : 0.5, 0.5, 7 });
    if (way >= 2)
        mode = grow_one_in(g, 2)
                   ? grow_const_scalar(g, SINTER_DTYPE_BOOL, drops_none)
                   : grow_leaf(g, SINTER_DTYPE_BOOL, NULL, 0, false, (gfill){ 0, drops_none, 1, grow_below(g, 99) });
    const uint32_t n = grow_begin(g, op->name);
    grow_in(g, n, x);
    if (ratio != G_ABSENT) grow_in(g, n, ratio);
    if (mode != G_ABSENT) grow_in(g, n, mode);
    return grow_end(g, n, 1) != G_NONE;
}

static bool loss(grow *g, const gop *op)
{
    static const char *const reductions[] = { "none", "sum", "mean" };
    const int64_t classes = grow_between(g, 1, 5);
    const gsize d[3] = { grow_size(g), gsize_of(classes), grow_size(g) }, t[2] = { d[0], d[2] };
    if (gsize_min(g, d[0]) < 1 || gsize_min(g, d[2]) < 1) return false;
    const sinter_dtype t_of = float_of(g);
    const uint32_t x = grow_shaped(g, t_of, d, 3),
                   target = grow_leaf(g, SINTER_DTYPE_I64, t, 2, false,
                                      (gfill){ 0, (double)classes - 1, 1, grow_below(g, 999) }),
                   weights = grow_one_in(g, 2)
                                 ? G_ABSENT
                                 : grow_leaf(g, t_of, &d[1], 1, false, (gfill){ 0.25, 2, 0.25, grow_below(g, 999) }),
                   n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, target);
    if (weights != G_ABSENT) grow_in(g, n, weights);
    grow_text(g, n, "reduction", reductions[grow_below(g, 3)]);
    return grow_end(g, n, 1) != G_NONE;
}

static bool bit_cast(grow *g, const gop *op)
{
    static const sinter_dtype pairs[][2] = {
        { SINTER_DTYPE_U8, SINTER_DTYPE_I8 },   { SINTER_DTYPE_I8, SINTER_DTYPE_U8 },
        { SINTER_DTYPE_I32, SINTER_DTYPE_U32 }, { SINTER_DTYPE_I64, SINTER_DTYPE_U64 },
        { SINTER_DTYPE_F32, SINTER_DTYPE_F32 }, { SINTER_DTYPE_I16, SINTER_DTYPE_U16 },
        { SINTER_DTYPE_U16, SINTER_DTYPE_I16 }, { SINTER_DTYPE_F16, SINTER_DTYPE_F16 }
    };
    const uint32_t x = grow_pick(g, T_I | T_F32 | T_OF(F16), 0, 5);
    if (x == G_NONE) return false;
    sinter_dtype to = grow_type(g, x);
    for (uint32_t i = 0; i < COUNT_OF(pairs); i++)
        if (pairs[i][0] == grow_type(g, x)) to = pairs[i][1];
    const uint32_t n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_int(g, n, "to", onnx_type_of(to));
    return grow_end(g, n, 1) != G_NONE;
}

static bool tensor_scatter(grow *g, const gop *op)
{
    const gsize batch = grow_size(g), heads = grow_size(g), width = grow_size(g),
                d[4] = { batch, heads, gsize_of(6), width }, u[4] = { batch, heads, gsize_of(2), width };
    const sinter_dtype t = grow_one_in(g, 4) ? SINTER_DTYPE_I32 : float_of(g);
    const uint32_t x = grow_shaped(g, t, d, 4), y = grow_shaped(g, t, u, 4),
                   at = grow_one_in(g, 3)
                            ? G_ABSENT
                            : grow_leaf(g, SINTER_DTYPE_I64, &batch, 1, false, (gfill){ 0, 4, 1, grow_below(g, 999) });
    const uint32_t n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, y);
    if (at != G_ABSENT) grow_in(g, n, at);
    if (grow_one_in(g, 3)) grow_text(g, n, "mode", "circular");
    if (grow_one_in(g, 3)) grow_int(g, n, "axis", -2);
    return grow_end(g, n, 1) != G_NONE;
}

static bool causal_conv(grow *g, const gop *op)
{
    const int64_t channels = grow_between(g, 1, 5), k = grow_between(g, 1, 4);
    const gsize d[3] = { grow_size(g), gsize_of(channels), grow_size(g) };
    if (gsize_min(g, d[2]) < 1) return false;
    const int64_t dilation = op->arg ? grow_between(g, 1, 3) : 1;
    const bool is_last = op->arg && grow_one_in(g, 2);
    const gsize back = gsize_of((k - 1) * dilation), kept[3] = { d[0], is_last ? back : d[1], is_last ? d[1] : back },
                own[3] = { d[0], is_last ? d[2] : d[1], is_last ? d[1] : d[2] };
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, own, 3), w = weight(g, channels, 1, k, 3),
                   bias = grow_one_in(g, 2) ? G_ABSENT : weight(g, channels, 0, 0, 1),
                   past = k < 2 || grow_one_in(g, 2) ? G_ABSENT : grow_shaped(g, SINTER_DTYPE_F32, kept, 3),
                   n = grow_begin(g, op->name);
    grow_in(g, n, x);
    grow_in(g, n, w);
    if (bias != G_ABSENT || past != G_ABSENT) grow_in(g, n, bias);
    if (past != G_ABSENT) grow_in(g, n, past);
    if (grow_one_in(g, 2)) grow_text(g, n, "activation", "silu");
    if (dilation > 1) grow_int(g, n, "dilation", dilation);
    if (is_last) grow_int(g, n, "channels_last", 1);
    return grow_end(g, n, k > 1 && grow_one_in(g, 2) ? 2 : 1) != G_NONE;
}

static bool deform_conv(grow *g, const gop *op)
{
    const int64_t groups = grow_one_in(g, 3) ? 2 : 1, offsets = grow_one_in(g, 3) ? 2 : 1, k = 2, side = 6,
                  channels = 2 * grow_between(g, 1, 2), outs = groups * grow_between(g, 1, 3), pad = grow_below(g, 2),
                  stride = grow_between(g, 1, 2), dilation = grow_between(g, 1, 2),
                  to = (side + 2 * pad - (k - 1) * dilation - 1) / stride + 1;
    const gsize batch = grow_size(g), d[4] = { batch, gsize_of(channels), gsize_of(side), gsize_of(side) },
                o[4] = { batch, gsize_of(offsets * 2 * k * k), gsize_of(to), gsize_of(to) },
                m[4] = { batch, gsize_of(offsets * k * k), gsize_of(to), gsize_of(to) };
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, d, 4),
                   w = grow_weight(g, SINTER_DTYPE_F32, (const int64_t[]){ outs, channels / groups, k, k }, 4, 1),
                   offset = grow_shaped(g, SINTER_DTYPE_F32, o, 4),
                   bias = grow_one_in(g, 2) ? G_ABSENT : weight(g, outs, 0, 0, 1),
                   mask = grow_one_in(g, 2) ? G_ABSENT : grow_shaped(g, SINTER_DTYPE_F32, m, 4),
                   n = grow_begin(g, op->name), in[5] = { x, w, offset, bias, mask };
    for (uint32_t i = 0; i < 5; i++) grow_in(g, n, in[i]);
    grow_list(g, n, "kernel_shape", (const int64_t[]){ k, k }, 2);
    grow_list(g, n, "strides", (const int64_t[]){ stride, stride }, 2);
    grow_list(g, n, "dilations", (const int64_t[]){ dilation, dilation }, 2);
    grow_list(g, n, "pads", (const int64_t[]){ pad, pad, pad, pad }, 4);
    if (groups > 1) grow_int(g, n, "group", groups);
    if (offsets > 1) grow_int(g, n, "offset_group", offsets);
    return grow_end(g, n, 1) != G_NONE;
}

/* ---- made of constants, or of what another operator gave ---- */
static bool mel(grow *g, const gop *op)
{
    const gsize bins = gsize_of(grow_between(g, 1, 6)), points = gsize_of(16);
    const uint32_t n_bins = grow_ints(g, &bins, 1, true), length = grow_ints(g, &points, 1, true),
                   rate = grow_const_scalar(g, SINTER_DTYPE_I64, 8000), low = grow_const_scalar(g, SINTER_DTYPE_F32, 0),
                   high = grow_const_scalar(g, SINTER_DTYPE_F32, 4000), n = grow_begin(g, op->name);
    const uint32_t in[5] = { n_bins, length, rate, low, high };
    for (uint32_t i = 0; i < 5; i++) grow_in(g, n, in[i]);
    return grow_end(g, n, 1) != G_NONE;
}

static bool constant(grow *g, const gop *op)
{
    const uint32_t n = grow_begin(g, op->name);
    const int64_t list[3] = { grow_between(g, -4, 4), 1, grow_between(g, 0, 3) };
    const uint32_t way = grow_below(g, 4);
    if (way == 0) grow_int(g, n, "value_int", list[0]);
    else if (way == 1) grow_list(g, n, "value_ints", list, 1 + grow_below(g, 3));
    else if (way == 2) grow_real(g, n, "value_float", 0.5 * (double)list[0]);
    else {
        gattr *a = gnode_attr(&g->m->node.at[n], "value", GA_TENSOR);
        a->dtype = grow_one_in(g, 2) ? SINTER_DTYPE_F32 : SINTER_DTYPE_I32;
        a->f = (double)list[0];
    }
    return grow_end(g, n, 1) != G_NONE;
}

static bool max_unpool(grow *g, const gop *op)
{
    const gsize d[4] = { grow_size(g), gsize_of(grow_between(g, 1, 3)), gsize_of(2 * grow_between(g, 1, 4)),
                         gsize_of(2 * grow_between(g, 1, 4)) };
    const uint32_t x = grow_shaped(g, SINTER_DTYPE_F32, d, 4), n = grow_begin(g, "MaxPool");
    grow_in(g, n, x);
    grow_list(g, n, "kernel_shape", (const int64_t[]){ 2, 2 }, 2);
    grow_list(g, n, "strides", (const int64_t[]){ 2, 2 }, 2);
    const uint32_t y = grow_end(g, n, 2);
    if (y == G_NONE) return false;
    const uint32_t back = grow_begin(g, op->name);
    grow_in(g, back, y);
    grow_in(g, back, g->m->node.at[n].out[1]);
    grow_list(g, back, "kernel_shape", (const int64_t[]){ 2, 2 }, 2);
    grow_list(g, back, "strides", (const int64_t[]){ 2, 2 }, 2);
    return grow_end(g, back, 1) != G_NONE;
}

static bool array_feature(grow *g, const gop *op)
{
    const uint32_t x = grow_pick(g, T_F32 | T_OF(I64), 1, 4);
    const int64_t width = width_of(g, x);
    if (!width) return false;
    const gsize d[2] = { gsize_of(1), grow_size(g) };
    return grow_2(g, op->name, x,
                  grow_leaf(g, SINTER_DTYPE_I64, &d[grow_below(g, 2)], 1, false,
                            (gfill){ 0, (double)width - 1, 1, grow_below(g, 999) })) != G_NONE;
}

static bool linear_attention(grow *g, const gop *op)
{
    static const char *const rules[] = { "linear", "gated", "delta", "gated_delta" };
    const uint32_t rule = grow_below(g, 4);
    const int64_t heads = grow_between(g, 1, 2), groups = grow_between(g, 1, 2), k = grow_between(g, 1, 4),
                  v = grow_between(g, 1, 4);
    const gsize batch = grow_size(g), time = grow_size(g);
    const int64_t wide[5] = { heads * groups * k, heads * k, heads * v, heads, heads };
    uint32_t in[6] = { G_ABSENT, G_ABSENT, G_ABSENT, G_ABSENT, G_ABSENT, G_ABSENT };
    for (uint32_t i = 0; i < 5; i++) {
        const gsize d[3] = { batch, time, gsize_of(wide[i]) };
        if (i == 3 && !(rule & 1)) continue;
        if (i == 4 && !(rule & 2)) continue;
        in[i < 3 ? i : i + 1] = i < 3 ? grow_shaped(g, SINTER_DTYPE_F32, d, 3)
                                      : grow_leaf(g, SINTER_DTYPE_F32, d, 3, false,
                                                  (gfill){ i == 3 ? -1 : 0, i == 3 ? 0 : 0.5, 0, grow_below(g, 999) });
    }
    const uint32_t n = grow_begin(g, op->name);
    for (uint32_t i = 0; i < (rule & 2 ? 6u : rule & 1 ? 5u : 3u); i++) grow_in(g, n, in[i]);
    grow_int(g, n, "q_num_heads", heads * groups);
    grow_int(g, n, "kv_num_heads", heads);
    grow_text(g, n, "update_rule", rules[rule]);
    return grow_end(g, n, grow_one_in(g, 2) ? 2 : 1) != G_NONE;
}

#define NO(name, why)                                                                                                  \
    {                                                                                                                  \
        name, 0, 0, 0, NULL, 0, 0, why                                                                                 \
    }
#define RANDOM "its numbers are random: tests/unit/test_ops_b.c, tests/models/forms.txt"
/* clang-format off */
const gop gops_layers[] = {
    { "LSTM", 14, 0, 2, recurrent, 4, 0, 0 },      { "GRU", 14, 0, 2, recurrent, 3, 0, 0 },
    { "RNN", 14, 0, 2, recurrent, 1, 0, 0 },       { "stacked", 0, 0, 2, stacked, 0, 0, 0 },
    { "Attention", 23, 0, 2, attention, 0, 0, 0 }, { "RotaryEmbedding", 23, 0, 2, rotary, 0, 0, 0 },
    { "LinearAttention", 27, 0, 1, linear_attention, 0, 0, 0 },
    { "com.microsoft.LinearAttention", 1, 0, 1, linear_attention, 0, 0, 0 },
    { "com.microsoft.CausalConvWithState", 1, 0, 1, causal_conv, 1, 0, 0 },
    { "com.microsoft.GridSample", 1, 0, 1, grid_sample, 0, 0, 0 },
    { "GridSample", 20, 0, 2, grid_sample, 0, 0, 0 },       { "AffineGrid", 20, 2, 1, affine_grid, 0, 0, 0 },
    { "RoiAlign", 16, 0, 1, roi_align, 0, 0, 0 },           { "MaxRoiPool", 1, 0, 1, max_roi_pool, 0, 0, 0 },
    { "NonMaxSuppression", 11, 0, 1, nms, 0, 0, 0 },
    { "Col2Im", 18, 6, 1, col2im, 0, 0, 0 },                { "Det", 11, 0, 1, det, 0, 0, 0 },
    { "DFT", 20, 4, 1, dft, 0, 0, 0 },                      { "STFT", 17, 2, 1, stft, 0, 0, 0 },
    { "HannWindow", 17, 1, 1, window, 0, 0, 0 },            { "HammingWindow", 17, 1, 1, window, 0, 0, 0 },
    { "BlackmanWindow", 17, 1, 1, window, 0, 0, 0 },        { "MelWeightMatrix", 17, 31, 1, mel, 0, 0, 0 },
    { "MaxUnpool", 11, 4, 1, max_unpool, 0, 0, 0 },         { "Constant", 13, 0, 1, constant, 0, 0, 0 },
    { "Dropout", 13, 6, 1, dropout, 0, T_F, 0 },           { "Hardmax", 13, 0, 1, simple, 0, T_F32, 0 },
    { "MeanVarianceNormalization", 13, 0, 1, simple, 4, T_F32, 0 },
    { "GlobalLpPool", 2, 0, 1, simple, 4, T_F32, 0 },
    { "ai.onnx.ml.Binarizer", 1, 0, 1, simple, 0, T_F32, 0 },
    { "ai.onnx.ml.ArrayFeatureExtractor", 1, 0, 1, array_feature, 0, 0, 0 },
    { "NegativeLogLikelihoodLoss", 13, 0, 1, loss, 0, 0, 0 }, { "SoftmaxCrossEntropyLoss", 13, 0, 1, loss, 0, 0, 0 },
    { "BitCast", 26, 0, 1, bit_cast, 0, 0, 0 },             { "TensorScatter", 24, 0, 1, tensor_scatter, 0, 0, 0 },
    { "CausalConvWithState", 27, 0, 1, causal_conv, 0, 0, 0 }, { "DeformConv", 19, 0, 1, deform_conv, 0, 0, 0 },
    NO("Bernoulli", RANDOM), NO("RandomNormal", RANDOM), NO("RandomNormalLike", RANDOM), NO("RandomUniform", RANDOM),
    NO("RandomUniformLike", RANDOM), NO("Multinomial", RANDOM),
    { 0 },
};
/* clang-format on */
