/* SPDX-License-Identifier: Apache-2.0 */
/* row_attention_once.c - attention on Hopper's warpgroups over so few keys that one tile has them all. */
#include "cuda/cuda_kernels.h"
#include "cuda/cuda_row_attention.h"

#include <math.h>

enum { BARRIERS = 6 * 8 };

typedef struct once_tactic {
    uint8_t groups, bn8, blocks; /* warpgroups of 64 queries; keys over 8; blocks a multiprocessor */
    uint8_t trigger;
    uint8_t units; /* multiprocessors of the chip on which blocks stay; 0: they do not */
    uint8_t zero[TACTIC_SIZE - 5];
} once_tactic;
_Static_assert(sizeof(once_tactic) == TACTIC_SIZE, "a tactic is overlaid");
static const tactic_field fields[] = {
    FIELD(once_tactic, groups, 1, 4, false, "", 64),   FIELD(once_tactic, bn8, 1, 32, false, "x", 8),
    FIELD(once_tactic, blocks, 1, 4, false, " b", 1),  FIELD(once_tactic, units, 0, UINT8_MAX, false, " stay", 0),
    FIELD(once_tactic, trigger, 1, 3, false, " t", 1),
};

/* Of products of a warpgroup with as many columns. */
static const uint16_t tiles[] = { 32, 64, 80, 96, 112, 128, 160, 176, 208, 256 };

/* The tile that holds all keys; 0: there is none. */
static uint32_t tile_of(const problem *p)
{
    for (uint32_t i = 0; i < COUNT_OF(tiles); i++)
        if (p->in[1].dim[2].max <= tiles[i]) return tiles[i];
    return 0;
}

static const char *reject(const problem *p, const kernel_target *t)
{
    const char *why = attention_reject_group(p, t);
    if (why) return why;
    REJECT_UNLESS(tile_of(p), "many keys");
    REJECT_UNLESS(attention_depth(p) <= 128 && attention_width(p) <= 128, "large heads");
    return NULL;
}

static uint32_t stages_of(once_tactic x)
{
    return x.units ? 2 : 1;
}

/* Queries, where results are put together later, too; keys and values; masks. */
static uint32_t shared_of(const problem *p, once_tactic x)
{
    const uint32_t k = attention_boxes(attention_depth(p)), v = attention_boxes(attention_width(p)), y = k > v ? k : v;
    return stages_of(x) * (x.groups * 64u * y + x.bn8 * 8u * (k + v)) * ATTENTION_LINE + BARRIERS +
           (attention_is_keyed(p) ? x.groups * 2u * x.bn8 * 8u * 4 : 0);
}

/* Whether a warpgroup's scores, and then its factors and sums, leave registers to work with. */
static bool fits(const problem *p, once_tactic x)
{
    const uint32_t bn = x.bn8 * 8u, sums = attention_boxes(attention_width(p)) * ATTENTION_BOX / 2;
    const uint32_t there = 65536 / (128u * x.groups * x.blocks) / 8 * 8;
    const uint32_t most = bn / 2 > bn / 4 + sums ? bn / 2 : bn / 4 + sums;
    const uint32_t work = attention_is_plain(p) || attention_is_keyed(p) ? 32 : bn / 4 + 40;
    return most + work <= (there < 255 ? there : 255) && shared_of(p, x) + 1024 <= 228u * 1024 / x.blocks;
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    /* Groups, blocks, whether they stay. */
    static const uint8_t shapes[][3] = {
        { 2, 2, 1 }, { 1, 4, 0 }, { 3, 1, 1 }, { 1, 3, 0 }, { 2, 2, 0 }, { 4, 1, 1 },
        { 1, 1, 0 }, { 2, 1, 1 }, { 1, 2, 1 }, { 2, 1, 0 }, { 4, 1, 0 }, { 1, 2, 0 },
    };
    const uint8_t units = t->units == 0 || t->units > UINT8_MAX ? UINT8_MAX : (uint8_t)t->units;
    for (uint32_t i = 0; i < COUNT_OF(shapes); i++)
        for (uint8_t trigger = 2; trigger <= 3; trigger++) {
            const once_tactic x = { .groups = shapes[i][0],
                                    .bn8 = (uint8_t)(tile_of(p) / 8),
                                    .blocks = shapes[i][1],
                                    .trigger = trigger,
                                    .units = shapes[i][2] ? units : 0 };
            if (out->count < COUNT_OF(out->at) && fits(p, x) && shared_of(p, x) <= t->shared) tactic_put(out, &x);
        }
}

static bool check(const problem *p, const tactic *t)
{
    const once_tactic x = TACTIC_AS(once_tactic, t);
    return FIELDS_HOLD(fields, t) && x.bn8 * 8u == tile_of(p) && fits(p, x) && shared_of(p, x) <= 227 * 1024;
}

FIELDS_PRINT(print, fields)

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    const once_tactic x = TACTIC_AS(once_tactic, t);
    const problem_operand *q = &p->in[0];
    const double heads = (double)q->dim[0].opt * (double)q->dim[1].opt, units = target->units ? target->units : 132;
    const double rows = 64.0 * x.groups, bn = x.bn8 * 8.0;
    const double blocks = heads * ceil((double)q->dim[2].opt / rows), at_once = units * x.blocks;
    const double depth = ceil((double)attention_depth(p) / 16) * 16,
                 width = ATTENTION_BOX * (double)attention_boxes(attention_width(p));
    /* 4096 operations a clock for products, 16 powers; both at once where other warpgroups have their turn. */
    const double products = 2 * bn * (depth + width) * rows / (4096 * 1.7), powers = 1.3 * bn * rows / (16 * 1.7);
    const double others = x.groups * x.blocks > 1 ? 0.6 : 1;
    const double share = blocks / units < 1 ? 1 : blocks / units < x.blocks ? blocks / units : x.blocks;
    const double waves = blocks / at_once < 1 ? 1 : ceil(blocks / at_once);
    double score = (products + powers) * others;
    if (!attention_is_plain(p) && !attention_is_keyed(p)) score += 0.05 * bn * rows;
    const double work = 2000 + waves * (score * share + (x.units ? 300 : 900));
    const double memory = cuda_cost_ns(target, cuda_problem_bytes(p), 0);
    return work > memory ? work : memory;
}

static bool code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    (void)target;
    if (index) return false;
    const once_tactic x = TACTIC_AS(once_tactic, t);
    c->source = "attention_once.cu";
    c->entry = "attention_once";
    attention_define_group(p, c);
    cuda_code_define(c, "GROUPS", x.groups);
    cuda_code_define(c, "BN", x.bn8 * 8);
    cuda_code_define(c, "BLOCKS", x.blocks);
    cuda_code_define(c, "STAGES", stages_of(x));
    cuda_code_define(c, "TRIGGER", x.trigger);
    return true;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    const once_tactic x = TACTIC_AS(once_tactic, t);
    if (in[1].dim[2] > x.bn8 * 8) return FAIL(e, INTERNAL, "more keys than a tile of attention has");
    const attention_group g = { .rows = 64 * x.groups,
                                .most = x.units * x.blocks,
                                .bn = x.bn8 * 8u,
                                .threads = 128u * x.groups,
                                .shared = shared_of(p, x) };
    return attention_bind_group(e, p, attrs, in, out, &g, to);
}

CUDA_ROW(cuda_attention_once, 1, reject, , .out_strides = STRIDES_ROWS);
