/* SPDX-License-Identifier: Apache-2.0 */
/* row_attention_wgmma.c - attention on Hopper's warpgroups: long sequences in f16 and bf16.
 *
 * Queries, keys and values come by tensor copies from wherever their heads lie, 64 elements of a head at a time; what a
 * head has less than a multiple of 64 arrives as zeros. */
#include "cuda/device/attention_wgmma_args.h"
#include "cuda/cuda_kernels.h"
#include "cuda/cuda_row_attention.h"

#include <math.h>

enum { BOX = ATTENTION_BOX, LINE = ATTENTION_LINE, SWIZZLE_128 = 3, BARRIERS = 10 * 8 };

typedef struct hopper_tactic {
    uint8_t consumers, bn8, blocks; /* warpgroups of 64 queries; keys a tile over 8; blocks a multiprocessor */
    uint8_t has_overlap, has_turns, trigger;
    uint8_t units; /* multiprocessors of the chip on which blocks stay; 0: they do not */
    uint8_t zero[TACTIC_SIZE - 7];
} hopper_tactic;
_Static_assert(sizeof(hopper_tactic) == TACTIC_SIZE, "a tactic is overlaid");
static const tactic_field fields[] = {
    FIELD(hopper_tactic, consumers, 1, 3, false, "", 64),
    FIELD(hopper_tactic, bn8, 8, 22, false, "x", 8),
    FIELD(hopper_tactic, blocks, 1, 3, false, " b", 1),
    FIELD(hopper_tactic, has_overlap, 0, 1, false, " overlap", 0),
    FIELD(hopper_tactic, has_turns, 0, 1, false, " turns", 0),
    FIELD(hopper_tactic, units, 0, UINT8_MAX, false, " stay", 0),
    FIELD(hopper_tactic, trigger, 1, 3, false, " t", 1),
};

const char *attention_reject_group(const problem *p, const kernel_target *t)
{
    REJECT_UNLESS(t->isa == 90, "not Hopper");
    const char *why = attention_reject_matrix(p, t);
    if (why) return why;
    REJECT_UNLESS(p->in[0].dim[2].opt >= 16, "few queries");
    REJECT_UNLESS(!attention_has_length(p), "a length of its own");
    return NULL;
}

bool attention_is_plain(const problem *p)
{
    const attrs_attention *a = p->attrs;
    return (p->count_anchor <= 3 || p->in[3].dtype == SINTER_DTYPE_NONE) && a->softcap <= 0;
}

uint32_t attention_boxes(int64_t elements)
{
    return (uint32_t)((elements + BOX - 1) / BOX);
}

/* For which sizes does the kernel read the masks of eight keys at once (DEALT)? */
typedef enum deal { DEAL_NEVER, DEAL_FOR_SOME_SIZES, DEAL_ALWAYS } deal;

static deal deal_of(const problem *p, uint32_t bn)
{
    if (bn % 32 || p->count_anchor <= 3 || p->in[3].dtype == SINTER_DTYPE_NONE || attention_is_keyed(p))
        return DEAL_NEVER;
    const problem_operand *m = &p->in[3];
    const dim_range *keys = &p->in[1].dim[2];
    const uint32_t bytes = sinter_dtype_bits(m->dtype) / 8, unit = bytes * 8 < 16 ? bytes * 8 : 16;
    if (m->is_gapped || m->order[m->rank - 1] != m->rank - 1) return DEAL_NEVER;
    if (m->dim[m->rank - 1].min > 1 && (keys->min == keys->max ? keys->min : keys->divisor) % 8 == 0 &&
        cuda_operand_vector(m, 8) * bytes >= unit)
        return DEAL_ALWAYS;
    return keys->max < 8 || (keys->min == keys->max && keys->min % 8) ? DEAL_NEVER : DEAL_FOR_SOME_SIZES;
}

/* For the sizes of a run: are the masks of eight keys neighbours in memory, at an address that one load can read? */
static bool lies_in_eights(const view *mask, const view *keys)
{
    const int64_t bytes = sinter_dtype_bits(mask->dtype) / 8, unit = 16 / bytes < 8 ? 16 / bytes : 8;
    if (keys->dim[2] % 8 || !mask->rank || mask->dim[mask->rank - 1] != keys->dim[2]) return false;
    for (uint32_t i = 0; i + 1 < mask->rank; i++)
        if (mask->dim[i] > 1 && mask->stride[i] % unit) return false;
    return mask->stride[mask->rank - 1] == 1;
}

/* Queries, where results are put together later, too; two tiles of keys and values, and of masks. */
static uint32_t shared_of(const problem *p, hopper_tactic h)
{
    const uint32_t k = attention_boxes(attention_depth(p)), v = attention_boxes(attention_width(p)), y = k > v ? k : v;
    return h.consumers * 64u * y * LINE + 2 * h.bn8 * 8u * (k + v) * LINE + BARRIERS +
           (attention_is_keyed(p) ? h.consumers * 2u * h.bn8 * 8u * 4 : 0);
}

static uint32_t threads_of(hopper_tactic h)
{
    return 128u * h.consumers + (h.blocks == 1 && h.consumers > 1 ? 128u : 32u);
}

/* Whether a consumer's scores, factors and sums leave registers to work with, by what the compiler has been seen to
 * need. */
static bool fits(const problem *p, hopper_tactic h)
{
    const uint32_t bn = h.bn8 * 8u, scores = bn / 2, factors = bn / 4,
                   sums = attention_boxes(attention_width(p)) * BOX / 2;
    /* Registers are shared out to four warps at a time; where a warpgroup produces, it hands its own over. */
    const uint32_t warps = (threads_of(h) / 32 * h.blocks + 3) / 4 * 4, even = 65536 / (32 * warps) / 8 * 8;
    const uint32_t there = h.blocks > 1 || h.consumers == 1 ? even : h.consumers == 3 ? 160 : 240;
    const uint32_t masks = attention_is_plain(p)           ? 0
                           : attention_is_keyed(p)         ? 8
                           : deal_of(p, bn) == DEAL_ALWAYS ? bn / 8 * sinter_dtype_bits(p->in[3].dtype) / 8 + 8
                                                           : bn / 2 + 8,
                   work = (h.has_overlap ? 26 : 12) + masks;
    return scores + factors + sums + work <= (there < 255 ? there : 255) &&
           (h.consumers < 3 || attention_depth(p) <= 128) && shared_of(p, h) + 1024 <= 228u * 1024 / h.blocks;
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    /* Consumers, keys, blocks, overlap, turns, whether blocks stay. */
    static const uint8_t shapes[][6] = {
        { 3, 128, 1, 1, 1, 1 }, { 2, 176, 1, 1, 1, 1 }, { 2, 128, 1, 1, 1, 1 }, { 3, 128, 1, 1, 1, 0 },
        { 2, 176, 1, 1, 1, 0 }, { 2, 128, 1, 1, 1, 0 }, { 3, 128, 1, 1, 0, 1 }, { 2, 176, 1, 1, 0, 1 },
        { 2, 128, 1, 1, 0, 0 }, { 3, 96, 1, 1, 1, 1 },  { 2, 160, 1, 1, 1, 1 }, { 3, 80, 1, 1, 1, 1 },
        { 2, 64, 2, 0, 0, 0 },  { 2, 80, 1, 1, 1, 1 },  { 1, 128, 2, 1, 0, 0 }, { 1, 64, 3, 1, 0, 0 },
        { 2, 128, 1, 0, 0, 0 }, { 1, 80, 2, 1, 0, 0 },  { 3, 96, 1, 0, 0, 0 },  { 2, 80, 1, 0, 0, 0 },
        { 2, 64, 1, 1, 0, 0 },  { 1, 64, 1, 0, 0, 0 },
    };
    const uint8_t units = t->units == 0 || t->units > UINT8_MAX ? UINT8_MAX : (uint8_t)t->units;
    for (uint32_t i = 0; i < COUNT_OF(shapes); i++) {
        const hopper_tactic h = { .consumers = shapes[i][0],
                                  .bn8 = shapes[i][1] / 8,
                                  .blocks = shapes[i][2],
                                  .has_overlap = shapes[i][3],
                                  .has_turns = shapes[i][4],
                                  .trigger = 2,
                                  .units = shapes[i][5] ? units : 0 };
        if (fits(p, h) && shared_of(p, h) <= t->shared) tactic_put(out, &h);
    }
}

static bool check(const problem *p, const tactic *t)
{
    const hopper_tactic h = TACTIC_AS(hopper_tactic, t);
    static const uint8_t tiles[] = { 64, 80, 96, 128, 160, 176 };
    bool is_tile = false;
    for (uint32_t i = 0; i < sizeof tiles; i++) is_tile = is_tile || h.bn8 * 8 == tiles[i];
    return FIELDS_HOLD(fields, t) && is_tile && h.has_turns <= h.has_overlap && (!h.has_turns || h.consumers > 1) &&
           fits(p, h) && shared_of(p, h) <= 227 * 1024;
}

FIELDS_PRINT(print, fields)

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    const hopper_tactic h = TACTIC_AS(hopper_tactic, t);
    const attrs_attention *a = p->attrs;
    const problem_operand *q = &p->in[0], *k = &p->in[1];
    const double heads = (double)q->dim[0].opt * (double)q->dim[1].opt, units = target->units ? target->units : 132;
    const double rows = 64.0 * h.consumers, bn = h.bn8 * 8.0, per = ceil((double)q->dim[2].opt / rows);
    const double depth = ceil((double)attention_depth(p) / 16) * 16,
                 width = BOX * (double)attention_boxes(attention_width(p));
    const double blocks = heads * per, at_once = units * h.blocks;
    double tiles = ceil((double)k->dim[2].opt / bn);
    /* 4096 operations a clock for products; a power takes as long as 256 of them, and other work of a score half that.
     */
    const double products = 2 * bn * (depth + width) * rows / (4096 * 1.7), powers = 1.5 * bn * rows / (16 * 1.7);
    const double is_hidden = (h.has_overlap ? 0.5 : 0) + (h.has_turns ? 0.1 : 0) + 0.15 * h.blocks;
    const double hidden = (products < powers ? products : powers) * (is_hidden < 0.8 ? is_hidden : 0.8);
    double tile = products + powers - hidden + 150;
    if (!attention_is_plain(p)) tile += (attention_is_keyed(p) ? 0.01 : 0.05) * bn * rows;
    if (a->causal && (double)k->dim[2].opt > rows) tiles = tiles * 0.5 + rows / bn;
    /* Blocks that share a multiprocessor take their turns on it. */
    const double share = blocks / units < 1 ? 1 : blocks / units < h.blocks ? blocks / units : h.blocks;
    const double waves = blocks / at_once < 1 ? 1 : ceil(blocks / at_once);
    const double work = 4000 + waves * (tiles * (tile * share + (share < 2 ? 250 : 0)) + (h.units ? 700 : 1500));
    const double memory = cuda_cost_ns(target, cuda_problem_bytes(p), 0);
    return work > memory ? work : memory;
}

void attention_define_group(const problem *p, cuda_code *c)
{
    const attrs_attention *a = p->attrs;
    c->may_spill = !attention_is_plain(p);
    attention_define(p, c);
    cuda_code_define(c, "DEPTH", (attention_depth(p) + 15) / 16 * 16);
    cuda_code_define(c, "WIDTH", attention_boxes(attention_width(p)) * BOX);
    cuda_code_define(c, "FOLD", attention_is_plain(p) && a->scale > 0);
}

static bool code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    (void)target;
    const hopper_tactic h = TACTIC_AS(hopper_tactic, t);
    const deal d = deal_of(p, h.bn8 * 8u);
    if (index > (d == DEAL_FOR_SOME_SIZES ? 1u : 0u)) return false;
    c->source = "attention_wgmma.cu";
    c->entry = "attention_wgmma";
    attention_define_group(p, c);
    cuda_code_define(c, "CONSUMERS", h.consumers);
    cuda_code_define(c, "BN", h.bn8 * 8);
    cuda_code_define(c, "BLOCKS", h.blocks);
    cuda_code_define(c, "OVERLAP", h.has_overlap);
    cuda_code_define(c, "TURNS", h.has_turns);
    cuda_code_define(c, "TRIGGER", h.trigger);
    cuda_code_define(c, "DEALT", d != DEAL_NEVER && !index);
    return true;
}

/* A map of (element, token, head, batch) with boxes of 64 elements by `tokens` tokens. is_dealt: a map of (element,
 * every fourth token, token of four, head, batch) with boxes of 64 elements by 32 tokens. */
static bool map_heads(cuda_record *r, const void *param, size_t at, uint8_t operand, const view *x, uint32_t tokens,
                      bool is_dealt)
{
    cuda_map *map = cuda_map_add(r, param, at);
    if (!map) return false;
    map->operand = operand;
    map->swizzle = SWIZZLE_128;
    map->dtype = (uint8_t)x->dtype;
    for (uint32_t i = 4; i-- > 0;) {
        const int64_t length = x->dim[i];
        const uint32_t k = map->rank++;
        /* An axis of one has any pitch, a map has only multiples of 16 bytes; an axis of none is not read. */
        map->dim[k] = length > 0 ? (uint64_t)length : 1;
        map->stride[k] = (uint64_t)(length > 1 || i == 3 ? x->stride[i] : x->dim[3]) * 2;
        map->box[k] = i == 3 ? BOX : i == 2 ? tokens : 1;
        map->step[k] = 1;
        if (i != 2 || !is_dealt) continue;
        map->dim[k + 1] = map->box[k + 1] = 4;
        map->stride[k + 1] = map->stride[k];
        map->step[k + 1] = 1;
        map->dim[k] = (map->dim[k] + 3) / 4;
        map->stride[k] *= 4;
        map->box[k] = 8;
        map->rank++;
    }
    return true;
}

sinter_status attention_bind_group(env *e, const problem *p, const void *attrs, const view *in, const view *out,
                                   const attention_group *g, cuda_record *r)
{
    const view *q = &in[0];
    const int64_t tiles = (q->dim[2] + g->rows - 1) / g->rows;
    int64_t items;
    if (!i64_mul(tiles, q->dim[1], &items) || !i64_mul(items, q->dim[0], &items) || items > INT32_MAX / 2)
        return FAIL(e, UNSUPPORTED, "attention over %lld heads of %lld tokens passes what a grid can be",
                    (long long)q->dim[1], (long long)q->dim[2]);
    struct attention_wgmma_args *x;
    const int64_t blocks = g->most && items > g->most ? g->most : items;
    TRY(cuda_launch_begin(e, r, g->code, (uint64_t)blocks, 1, 1, g->threads, g->shared, sizeof *x, &x));
    if (!map_heads(r, x, offsetof(struct attention_wgmma_args, map_q), 0, q, 64, false) ||
        !map_heads(r, x, offsetof(struct attention_wgmma_args, map_k), 1, &in[1], g->bn, g->is_dealt) ||
        !map_heads(r, x, offsetof(struct attention_wgmma_args, map_v), 2, &in[2], g->bn, g->is_dealt))
        return FAIL(e, INTERNAL, "attention's parameters do not fit");
    x->tiles = (small)tiles;
    x->items = (small)items;
    TRY(attention_fill(e, p, attrs, in, out, r, &x->rows));
    x->by_tiles = cuda_fast_div(tiles ? tiles : 1);
    x->by_lines = cuda_fast_div(tiles && items ? items / tiles : 1);
    x->by_heads = cuda_fast_div(x->rows.heads ? x->rows.heads : 1);
    x->by_group = cuda_fast_div(x->rows.group);
    return SINTER_OK;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    const hopper_tactic h = TACTIC_AS(hopper_tactic, t);
    const deal d = deal_of(p, h.bn8 * 8u);
    const bool is_dealt = d == DEAL_ALWAYS || (d == DEAL_FOR_SOME_SIZES && lies_in_eights(&in[3], &in[1]));
    const attention_group g = { .rows = 64 * h.consumers,
                                .most = h.units * h.blocks,
                                .bn = h.bn8 * 8u,
                                .threads = threads_of(h),
                                .shared = shared_of(p, h),
                                .code = d == DEAL_FOR_SOME_SIZES && !is_dealt,
                                .is_dealt = is_dealt };
    return attention_bind_group(e, p, attrs, in, out, &g, to);
}

CUDA_ROW(cuda_attention_wgmma, 3, attention_reject_group, , .out_strides = STRIDES_ROWS);
