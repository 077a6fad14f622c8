/* SPDX-License-Identifier: Apache-2.0 */
/* row_excite.c - squeeze and excite in one launch (device/excite.cu): a cluster of blocks an image. Weights are packed
 * with what lies between the products innermost. */
#include "cuda/cuda_emit.h"
#include "cuda/cuda_kernels.h"
#include "cuda/device/excite_args.h"
#include "cuda/ranking.h"

#include <stddef.h>

/* One cluster reads an image: beyond so many bytes all multiprocessors had better do it. */
enum { IMAGE_MOST = 8 << 20, SHARED_MOST = 160 << 10 };
typedef struct excite_tactic {
    uint8_t warps, cluster, parts, trigger, zero[TACTIC_SIZE - 4];
} excite_tactic;
_Static_assert(sizeof(excite_tactic) == TACTIC_SIZE, "a tactic is overlaid");
static const tactic_field fields[] = {
    FIELD(excite_tactic, warps, 4, 32, true, "warps ", 1),
    FIELD(excite_tactic, cluster, 1, 16, true, " cluster ", 1),
    FIELD(excite_tactic, parts, 1, 16, true, " parts ", 1),
    FIELD(excite_tactic, trigger, 1, 2, false, " trigger ", 1),
};

typedef struct layout {
    int64_t channels, hidden, results, pitch, each, own;
    uint32_t unit, width; /* elements of 16 bytes; those that a thread reads at once */
    bool is_last;
    size_t shared;
} layout;

/* Are the channels innermost (or the only axis)? Else positions are. */
static bool channels_are_last(const problem_operand *x)
{
    const uint32_t inner = cuda_operand_inner(x);
    return inner == 1 || inner == UINT32_MAX;
}

static layout layout_of(const problem *p, excite_tactic x)
{
    const problem_operand *w1 = &p->in[1], *w2 = &p->in[2];
    const bool is_factor = w1->rank == 2;
    layout l = { .channels = w1->dim[!is_factor].max,
                 .hidden = w1->dim[is_factor].max,
                 .results = w2->dim[is_factor].max,
                 .unit = 128 / sinter_dtype_bits(p->in[0].dtype),
                 .is_last = channels_are_last(&p->in[0]) };
    const int64_t tile = l.unit == 8 ? 16 : 1, units = cuda_ceil_div(cuda_ceil_div(l.hidden, tile) * tile, l.unit);
    l.pitch = (units | 1) * l.unit;
    l.width = l.is_last ? cuda_power_in(l.channels, l.unit) : 1;
    l.each = cuda_ceil_div(l.channels / l.width, x.parts) * l.width;
    l.own = cuda_ceil_div(l.results, x.cluster);
    const size_t threads = 32u * x.warps, floats = l.is_last ? threads * l.width + threads + (size_t)l.each : 0;
    const size_t deep = (size_t)(cuda_ceil_div(l.each, tile) * tile),
                 tall = (size_t)(cuda_ceil_div(l.own, tile) * tile);
    l.shared = (deep + tall) * (size_t)l.pitch * (16 / l.unit) + 4 * (deep + 2 * (size_t)l.pitch + tall + floats);
    return l;
}

static bool holds(const problem *p, excite_tactic x)
{
    const layout l = layout_of(p, x);
    /* Each thread has some channels at least. */
    return x.parts <= x.cluster && l.shared <= SHARED_MOST && (!l.is_last || l.each / l.width <= (int64_t)x.warps * 32);
}

static void middle_space(const problem *p, emit_space *s)
{
    const problem_operand *w1 = &p->in[1];
    *s = (emit_space){
        .p = p, .program = p->middle, .prefix = "pro", .rank = w1->rank, .inner = 1, .width = 1, .acc = SINTER_DTYPE_F32
    };
    for (uint32_t i = 0; i < s->rank; i++) s->dim[i] = (dim_range){ 1, 1, 1, 1 };
    s->dim[1] = w1->dim[w1->rank == 2];
}

static void result_space(const problem *p, emit_space *s)
{
    emit_space_of(p, s);
    s->width = 1;
}

/* Dense, the image outermost, its positions in one line. */
static bool is_plain(const problem_operand *x)
{
    uint32_t last = 0;
    if (x->is_strided) return false;
    for (uint32_t i = 0; i < x->rank; i++) {
        const uint32_t axis = x->order[i];
        if (x->dim[axis].max == 1 || axis == 1) continue;
        if (axis < last) return false;
        last = axis;
    }
    /* Channels are behind the image, and before all positions or behind them. */
    uint32_t at = 0, before = 0, behind = 0;
    while (x->order[at] != 1) at++;
    for (uint32_t i = 0; i < x->rank; i++) {
        const uint32_t axis = x->order[i];
        if (x->dim[axis].max == 1 || axis == 1) continue;
        if (axis == 0 && i > at && x->dim[1].max != 1) return false;
        if (axis > 1) (i < at ? before++ : behind++);
    }
    return !before || !behind || x->dim[1].max == 1;
}

static const char *reject(const problem *p, const kernel_target *t)
{
    REJECT_UNLESS(p->op == OP_excite, "not squeeze and excite");
    const problem_operand *x = &p->in[0];
    REJECT_UNLESS(t->isa >= 90, "no clusters before sm_90");
    REJECT_UNLESS(x->dtype == SINTER_DTYPE_F32 || x->dtype == SINTER_DTYPE_F16 || x->dtype == SINTER_DTYPE_BF16,
                  "not in f32, f16 or bf16");
    REJECT_UNLESS(p->middle || !((const attrs_excite *)p->attrs)->middle[0], "a middle that is no program");
    REJECT_UNLESS(is_plain(x), "images are neither row-major nor channels-last");
    double bytes = sinter_dtype_bits(x->dtype) / 8.0;
    for (uint32_t i = 1; i < x->rank; i++) bytes *= (double)x->dim[i].opt;
    REJECT_UNLESS(bytes <= IMAGE_MOST, "an image of more than 8 MiB");
    for (uint32_t i = 1; i < 3; i++) {
        const problem_operand *w = &p->in[i];
        REJECT_UNLESS(w->is_const && !w->is_strided, "a weight that is no dense constant");
        for (uint32_t k = 0; k < 2; k++)
            REJECT_UNLESS(problem_dim_is_static(w->dim[k]) && w->dim[k].max > 0 && w->dim[k].max < 1 << 16,
                          "a weight of no size that is known");
    }
    REJECT_UNLESS(problem_dim_is_static(x->dim[1]), "channels that vary");
    REJECT_UNLESS(holds(p, (excite_tactic){ .warps = 32, .cluster = 8, .parts = 8 }),
                  "weights of more than eight blocks hold");
    emit_space s;
    middle_space(p, &s);
    const char *why = p->middle ? emit_reject_prologue(&s) : NULL;
    result_space(p, &s);
    return why ? why : emit_reject(&s);
}

static double cost_of(const problem *p, excite_tactic x, const kernel_target *t)
{
    const layout l = layout_of(p, x);
    const double units = t->units ? t->units : 100, images = (double)p->in[0].dim[0].opt;
    const double bytes = cuda_operand_bytes(&p->in[0]) / (images > 1 ? images : 1);
    /* Each multiprocessor takes about 60 bytes a ns from the cache, fewer with few threads. */
    double waves = images * x.cluster * (double)l.shared / (units * 220e3);
    if (waves < 1) waves = images * x.cluster / (units * 4);
    if (waves < 1) waves = 1;
    const double share = bytes / x.cluster, empty = (double)(l.each * x.parts) / (double)l.channels;
    const double products = (double)(l.each + l.own) * (double)l.hidden / (double)(x.warps * 32 * 8);
    return 2200 + waves * (share * empty / (x.warps >= 16 ? 60 : 40) + 4 * products + 300) + 30.0 * x.cluster +
           10.0 * x.warps;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    return cost_of(p, TACTIC_AS(excite_tactic, t), target);
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    ranking best = { .most = 8 };
    for (uint8_t warps = 8; warps <= 32; warps = (uint8_t)(warps * 2))
        for (uint8_t cluster = 1; cluster <= 16; cluster = (uint8_t)(cluster * 2))
            for (uint8_t parts = cluster; parts >= 1; parts = (uint8_t)(parts / 2)) {
                const excite_tactic x = { .warps = warps, .cluster = cluster, .parts = parts, .trigger = 1 };
                if (cluster > cuda_cluster_most(t) || !holds(p, x)) continue;
                ranking_add(&best, cost_of(p, x, t), &x);
            }
    ranking_take(&best, out);
}

static bool check(const problem *p, const tactic *t)
{
    return FIELDS_HOLD(fields, t) && holds(p, TACTIC_AS(excite_tactic, t));
}

FIELDS_PRINT(print, fields)
FIELDS_LET_IN(lets_in, excite_tactic, 2)

/* Where element (line along what is hidden, the other) of a weight is. */
static int64_t lines_of(const problem *p, uint32_t input)
{
    const problem_operand *w = &p->in[input];
    const bool is_factor = w->rank == 2;
    return input == 1 ? w->dim[!is_factor].max : w->dim[is_factor].max;
}

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    if (input != 1 && input != 2) return 0;
    const layout l = layout_of(p, TACTIC_AS(excite_tactic, t));
    return size_mul((size_t)lines_of(p, input), (size_t)l.pitch * (16 / l.unit));
}

static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    const layout l = layout_of(p, TACTIC_AS(excite_tactic, t));
    const size_t size = 16 / l.unit;
    /* The axis of the hidden values: of the first weight its lines, of the second its depth. */
    const bool is_factor = src->rank == 2;
    const uint32_t hidden = input == 1 ? is_factor : !is_factor;
    memset(dst, 0, pack_size(p, t, input));
    for (int64_t line = 0; line < lines_of(p, input); line++)
        for (int64_t f = 0; f < l.hidden; f++) {
            const int64_t from = line * src->stride[!hidden] + f * src->stride[hidden];
            memcpy((char *)dst + (size_t)(line * l.pitch + f) * size, (const char *)src->data + from * (int64_t)size,
                   size);
        }
}

static bool code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    const excite_tactic x = TACTIC_AS(excite_tactic, t);
    if (index || target->isa < 90) return false;
    const layout l = layout_of(p, x);
    c->source = "excite.cu";
    c->entry = "excite";
    cuda_code_define(c, "TYPE", p->in[0].dtype == SINTER_DTYPE_F16 ? 1 : p->in[0].dtype == SINTER_DTYPE_BF16 ? 2 : 0);
    cuda_code_define(c, "CHANNELS", l.channels);
    cuda_code_define(c, "HIDDEN", l.hidden);
    cuda_code_define(c, "RESULTS", l.results);
    cuda_code_define(c, "PITCH", l.pitch);
    cuda_code_define(c, "WARPS", x.warps);
    cuda_code_define(c, "CLUSTER", x.cluster);
    cuda_code_define(c, "PARTS", x.parts);
    cuda_code_define(c, "EACH", l.each);
    cuda_code_define(c, "OWN", l.own);
    bool is_constant = true;
    for (uint32_t i = p->count_anchor; i < p->count_in; i++) is_constant = is_constant && p->in[i].is_const;
    cuda_code_define(c, "CONSTANT", is_constant);
    cuda_code_define(c, "WIDTH", l.width);
    cuda_code_define(c, "LAST", l.is_last);
    cuda_code_define(c, "MIDDLE", p->middle != NULL);
    emit_space s;
    result_space(p, &s);
    emit_text(&s, c->generated);
    if (!p->middle) return true;
    middle_space(p, &s);
    emit_text(&s, c->generated);
    return true;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *record)
{
    (void)attrs;
    const excite_tactic x = TACTIC_AS(excite_tactic, t);
    const layout l = layout_of(p, x);
    cuda_record *r = record;
    int64_t positions = 1, most;
    for (uint32_t i = 2; i < in[0].rank; i++)
        if (!i64_mul(positions, in[0].dim[i], &positions)) positions = INT64_MAX;
    if (!i64_mul(positions, l.channels, &most) || most > INT32_MAX)
        return FAIL(e, UNSUPPORTED, "an image of more than 2^31 elements");
    struct excite_args *a;
    TRY(cuda_launch_begin(e, r, 0, (uint64_t)in[0].dim[0] * x.cluster, 1, 1, 32u * x.warps, (uint32_t)l.shared,
                          sizeof *a, &a));
    cuda_launch_last(r)->cluster = x.cluster;
    a->positions = (small)positions;
    a->share = 1.0f / (float)positions;
    a->trigger = x.trigger;
    CUDA_PATCH(r, a, x, PATCH_IN, 0);
    CUDA_PATCH(r, a, w1, PATCH_IN, 1);
    CUDA_PATCH(r, a, w2, PATCH_IN, 2);
    emit_space s;
    result_space(p, &s);
    TRY(emit_bind(e, &s, in, out, r));
    if (!p->middle) return SINTER_OK;
    middle_space(p, &s);
    return emit_bind(e, &s, in, out, r);
}

CUDA_ROW(cuda_excite, 1, reject, , .out_strides = STRIDES_ROWS, .pack_size = pack_size, .pack = pack,
         .lets_in = lets_in);
