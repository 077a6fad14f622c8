/* SPDX-License-Identifier: Apache-2.0 */
/* row_packed.c - products whose weight stays in codes of 4 or 8 bits (device/packed_product.cu), of one row to a few
 * hundred. The layout of codes, scales and zero points is written there. */
#include "cuda/contract.h"
#include "cuda/cuda_emit.h"
#include "cuda/cuda_kernels.h"
#include "cuda/device/packed_args.h"
#include "cuda/device/simt_args.h"
#include "cuda/ranking.h"
#include "ops/packed.h"

#include <stddef.h>

enum { COLUMNS = 16, ROWS_MOST = 512, HELD_MOST = 8, SLOTS_MOST = 16, SHARED_ROWS = 8, SHARED_MOST = 232448 };
typedef struct packed_tactic {
    uint8_t groups, split, pre, tiles, trigger, is_shared, zero[TACTIC_SIZE - 6];
} packed_tactic;
_Static_assert(sizeof(packed_tactic) == TACTIC_SIZE, "a tactic is overlaid");
static const tactic_field fields[] = {
    FIELD(packed_tactic, groups, 1, 4, true, "groups ", 1),
    FIELD(packed_tactic, split, 1, 16, true, " split ", 1),
    FIELD(packed_tactic, pre, 1, SLOTS_MOST, false, " held ", 1),
    FIELD(packed_tactic, tiles, 1, 4, true, " rows ", 8),
    FIELD(packed_tactic, trigger, 1, 3, false, " trigger ", 1),
    FIELD(packed_tactic, is_shared, 0, 1, false, " shared"),
};

typedef struct packed {
    contract c;
    packed_form f;
    int32_t block;      /* terms with one scale or zero point; 0: none varies along the terms */
    int32_t terms, run; /* of a tile; that a lane reads of x at once, times 4 */
    int32_t shift;      /* added to codes as they are packed */
    bool is_vector;     /* x is read 16 or 8 bytes at a time */
} packed;

/* What the kernel makes of the codes of a type: CODE and, by the type of x, UNIT of packed_product.cu. */
typedef struct code_row {
    sinter_dtype type;
    uint8_t code, shift; /* shift: added to codes as they are packed */
    int8_t unit_f16, unit_bf16;
} code_row;

static const code_row code_rows[] = {
    { SINTER_DTYPE_U4, 0, 0, 0, 0 },           { SINTER_DTYPE_I4, 0, 8, 0, 0 },
    { SINTER_DTYPE_U8, 1, 0, 0, 0 },           { SINTER_DTYPE_I8, 1, 128, 0, 0 },
    { SINTER_DTYPE_F4E2M1, 2, 0, 14, 0 },      { SINTER_DTYPE_F8E4M3FN, 3, 0, 8, 0 },
    { SINTER_DTYPE_F8E4M3FNUZ, 3, 0, 7, -1 },  { SINTER_DTYPE_F8E5M2, 4, 0, 0, 0 },
    { SINTER_DTYPE_F8E5M2FNUZ, 4, 0, -1, -1 },
};

static const code_row *code_of(sinter_dtype type)
{
    for (size_t i = 0; i < COUNT_OF(code_rows); i++)
        if (code_rows[i].type == type) return &code_rows[i];
    return NULL;
}

static const char *packed_of(const problem *p, const void *attrs, const view *in, const view *out, packed *g)
{
    const char *why = packed_form_of(p, &g->f);
    if (!why) why = contract_with_codes(p, attrs, in, out, &g->c);
    if (why) return why;
    const code_row *row = code_of(g->f.type);
    const contract_axis *k = &g->c.axis[CONTRACT_DEPTH][0];
    REJECT_UNLESS(row, "its weight is not of 4 or 8 bits");
    REJECT_UNLESS(g->c.count[CONTRACT_DEPTH] == 1 && k->range.min == k->range.max, "the sum's size is not fixed");
    const bool varies = g->f.scale_varies || g->f.zero_varies;
    REJECT_UNLESS(!varies || g->f.block % 16 == 0, "its weight is in blocks of other than a multiple of 16 terms");
    g->shift = row->shift;
    const int32_t least = -g->shift, most = (1 << g->f.bits) - 1 - g->shift;
    REJECT_UNLESS(g->f.zero_point >= least && g->f.zero_point <= most, "its zero point is no code");
    g->block = varies ? (int32_t)g->f.block : 0;
    g->terms = 256 / (int32_t)g->f.bits;
    g->run = g->block % 32 ? 16 : 32;
    const uint32_t unit = (uint32_t)g->run / 4;
    const uint32_t at_once = unit * sinter_dtype_bits(p->in[0].dtype) / 8 > 16 ? 4 : unit;
    g->is_vector = k->of[0] >= 0 && (uint32_t)k->of[0] == cuda_operand_inner(&p->in[0]) && k->size % unit == 0 &&
                   cuda_operand_vector(&p->in[0], at_once) == at_once;
    return NULL;
}

static const char *packed_at(const problem *p, packed *g)
{
    view in[4], out;
    contract_views(p, CONTRACT_OPT, in, &out);
    return packed_of(p, p->attrs, in, &out, g);
}

static void space_of(const problem *p, emit_space *space)
{
    emit_space_of(p, space);
    space->width = 1;
}

static int64_t rows_least(const packed *g)
{
    int64_t rows = 1;
    for (uint32_t i = 0; i < g->c.count[CONTRACT_LEFT]; i++)
        if (!i64_mul(rows, g->c.axis[CONTRACT_LEFT][i].range.min, &rows)) return INT64_MAX;
    return rows;
}

static const char *reject(const problem *p, const kernel_target *t)
{
    REJECT_UNLESS(p->op == OP_matmul && p->weight, "no product with a packed weight");
    REJECT_UNLESS(!p->prologue, "has a prologue");
    const sinter_dtype d = p->in[0].dtype;
    REJECT_UNLESS(d == SINTER_DTYPE_F32 || d == SINTER_DTYPE_F16 || d == SINTER_DTYPE_BF16, "not in f32, f16 or bf16");
    REJECT_UNLESS(d == SINTER_DTYPE_F16 || t->isa >= 80, "products of bf16 numbers begin with sm_80");
    packed g;
    const char *why = packed_at(p, &g);
    if (why) return why;
    REJECT_UNLESS(g.f.product == d, "the factors differ in type");
    REJECT_UNLESS(rows_least(&g) <= ROWS_MOST, "more than 512 rows");
    emit_space space;
    space_of(p, &space);
    return emit_reject(&space);
}

static int64_t tiles_of(const packed *g)
{
    return cuda_ceil_div(g->f.k, g->terms);
}

static double cost_of(const problem *p, const packed *g, packed_tactic x, const kernel_target *t)
{
    const double units = t->units ? t->units : 100, rows = (double)contract_size(&g->c, CONTRACT_LEFT);
    const double passes = rows > 8.0 * x.tiles ? (double)cuda_ceil_div((int64_t)rows, 8 * x.tiles) : 1;
    const double warps = (double)cuda_ceil_div(g->f.n, COLUMNS) * x.split, all = warps * passes;
    const double steps = (double)cuda_ceil_div(tiles_of(g), x.split), held = steps < x.pre ? steps : x.pre;
    double under_way = all / units * 512 * held / 32768;
    under_way = under_way > 1 ? 1 : under_way < 0.02 ? 0.02 : under_way;
    /* Registers, of which a multiprocessor has 65536, say how many blocks there are at once. */
    const double registers = 40 + 12.0 * x.pre + 24.0 * (x.tiles - 1), block = 32.0 * x.groups * x.split,
                 most = (double)(int)(65536 / (registers * block));
    double waves = all * 32 / block / (units * (most < 1 ? 1 : most));
    waves = waves < 1 ? 1 : (double)(int64_t)(waves + 0.999);
    const double memory =
        cuda_problem_bytes(p) / (t->bandwidth > 0 ? t->bandwidth : 1e12) * 1e9 / (0.3 + 0.7 * under_way);
    /* Instructions of a warp for a tile: codes become floats, then products, three times as many in f32. */
    const double products = (double)x.tiles * (p->in[0].dtype == SINTER_DTYPE_F32 ? 3 * 8 + 60 : 8 + 8);
    const double work = all * steps * (50 + products) / (units * 4) / 1.6;
    const double chain = steps / x.pre * 500 * waves;
    double ns = memory > chain ? memory : chain;
    if (work > ns) ns = work;
    return 1500 + ns + 30.0 * x.split;
}

/* ---- tiles of codes in shared memory ---- */

/* Bytes of the scales, or zero points, of `size` bytes that belong to a tile. */
static int64_t tile_part(const packed *g, uint32_t size)
{
    const int64_t spans = g->block && g->block < g->terms ? g->terms / g->block : 1;
    return spans * COLUMNS * size;
}

/* Bytes of a slot of packed_product.cu. */
static int64_t slot_size(const packed *g)
{
    return 512 + (g->f.scale_varies ? tile_part(g, sinter_dtype_bits(g->f.scale_type) / 8) : 0) +
           (g->f.zero && g->f.zero_varies ? tile_part(g, 2) : 0);
}

/* A row of X as shared memory holds it, in whole tiles. */
static int64_t x_bytes(const problem *p, const packed *g)
{
    return tiles_of(g) * g->terms * (sinter_dtype_bits(p->in[0].dtype) / 8);
}

/* Rows begin in other banks than their neighbours. */
static int64_t x_pitch(const problem *p, const packed *g)
{
    return (x_bytes(p, g) + 127) / 128 * 128 + 64;
}

/* 0: a tile's scales do not lie side by side, or X does not lie so, or there may be too many rows. */
static uint32_t shared_rows(const packed *g)
{
    int64_t rows = 1;
    for (uint32_t i = 0; i < g->c.count[CONTRACT_LEFT]; i++) {
        const int64_t most = g->c.axis[CONTRACT_LEFT][i].range.max;
        if (!i64_mul(rows, most, &rows) || rows > SHARED_ROWS) return 0;
    }
    const bool is_whole = !g->block || (g->block < g->terms ? g->terms % g->block : g->block % g->terms) == 0;
    return is_whole && g->is_vector && g->run == 32 && rows > 0 ? (uint32_t)rows : 0;
}

static int64_t shared_of(const problem *p, const packed *g, packed_tactic x)
{
    const int64_t warps = (int64_t)x.groups * x.split;
    if (!x.is_shared) return warps * 8 * x.tiles * COLUMNS * 4;
    return warps * x.pre * slot_size(g) + (int64_t)shared_rows(g) * x_pitch(p, g);
}

/* A block asks for its weights while the kernels before it still work, if it finds room beside them. */
static double shared_cost(const problem *p, const packed *g, packed_tactic x, const kernel_target *t)
{
    const double units = t->units ? t->units : 100, room = t->shared ? t->shared : 48 * 1024;
    const double threads = 32.0 * x.groups * x.split, shared = (double)shared_of(p, g, x) + 1024;
    const double blocks = (double)cuda_ceil_div(g->f.n, COLUMNS * x.groups);
    double resident = (double)(int64_t)(room / shared), most = (double)(int64_t)(1024 / threads);
    if (resident > most) resident = most;
    if (resident < 1) resident = 1;
    const double each = (double)cuda_ceil_div((int64_t)blocks, (int64_t)units);
    const double waves = (double)cuda_ceil_div((int64_t)each, (int64_t)resident);
    const double steps = (double)cuda_ceil_div(tiles_of(g), x.split), held = steps < x.pre ? steps : x.pre;
    const double at_once = each < resident ? each : resident;
    double under_way = at_once * threads / 32 * held * (double)slot_size(g) / 32768;
    if (under_way > 1) under_way = 1;
    /* Half of the room is for the next kernel. */
    const double late = at_once * shared * 2 > room || at_once * threads > 1024 ? 1500 : 900;
    const double memory =
        cuda_problem_bytes(p) / (t->bandwidth > 0 ? t->bandwidth : 1e12) * 1e9 / (0.3 + 0.7 * under_way);
    /* Instructions of a warp for a tile. */
    const double products = p->in[0].dtype == SINTER_DTYPE_F32 ? 3 * 8 + 60 : 8 + 8;
    const double work = each * threads / 32 * steps * (70 + products) / 4 / 1.6;
    const double chain = (steps / held - 1) * 700 + steps * 40 + waves * 300;
    const double sum = memory > work ? memory : work;
    return late + (sum > chain ? sum : chain) + 20.0 * x.split;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    const packed_tactic x = TACTIC_AS(packed_tactic, t);
    packed g;
    if (packed_at(p, &g)) return 1e15;
    return x.is_shared ? shared_cost(p, &g, x, target) : cost_of(p, &g, x, target);
}

static void shared_tactics(const problem *p, const packed *g, const kernel_target *t, ranking *best)
{
    const int64_t tiles = tiles_of(g);
    for (uint8_t split = 2; split <= 16; split = (uint8_t)(split * 2)) {
        for (uint8_t groups = 1; groups <= 4 && groups * split <= 16; groups = (uint8_t)(groups * 2)) {
            for (uint8_t pre = 2; pre <= SLOTS_MOST; pre = (uint8_t)(pre * 2)) {
                if (groups * split < 4 || tiles < split) continue;
                if (pre > 2 && cuda_ceil_div(tiles, split) <= pre / 2) break;
                const packed_tactic x = {
                    .split = split, .groups = groups, .pre = pre, .tiles = 1, .trigger = 1, .is_shared = 1
                };
                if (shared_of(p, g, x) > (t->shared ? t->shared : 48 * 1024)) break;
                ranking_add(best, shared_cost(p, g, x, t), &x);
            }
        }
    }
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    packed g;
    if (packed_at(p, &g)) return;
    ranking best = { .most = 24 };
    const int64_t rows = contract_size(&g.c, CONTRACT_LEFT), tiles = tiles_of(&g);
    const uint8_t of_rows = rows <= 8 ? 1 : rows <= 16 ? 2 : 4;
    for (uint8_t split = 1; split <= 16; split = (uint8_t)(split * 2)) {
        if (split > 1 && tiles < split) break;
        for (uint8_t pre = 1; pre <= HELD_MOST; pre = (uint8_t)(pre * 2)) {
            if (pre > 1 && cuda_ceil_div(tiles, split) <= pre / 2) break;
            packed_tactic x = { .split = split,
                                .groups = (uint8_t)(split >= 8 ? 1 : 8 / split),
                                .pre = pre,
                                .tiles = of_rows,
                                .trigger = 3 };
            if (x.groups > 4) x.groups = 4;
            const int64_t blocks = cuda_ceil_div(g.f.n, COLUMNS * x.groups) * cuda_ceil_div(rows, 8 * of_rows);
            if (blocks <= 2 * (int64_t)(t->units ? t->units : 100)) x.trigger = 1;
            if (shared_of(p, &g, x) > 48 * 1024) continue;
            ranking_add(&best, cost_of(p, &g, x, t), &x);
        }
    }
    if (t->isa >= 80 && shared_rows(&g)) shared_tactics(p, &g, t, &best);
    ranking_take(&best, out);
}

static bool check(const problem *p, const tactic *t)
{
    const packed_tactic x = TACTIC_AS(packed_tactic, t);
    packed g;
    if (!FIELDS_HOLD(fields, t) || x.groups * x.split > 16 || x.trigger == 2 || packed_at(p, &g)) return false;
    if (!x.is_shared) return x.pre <= HELD_MOST && shared_of(p, &g, x) <= 48 * 1024;
    return x.tiles == 1 && shared_rows(&g) && shared_of(p, &g, x) <= SHARED_MOST;
}

FIELDS_PRINT(print, fields)
FIELDS_LET_IN(lets_in, packed_tactic, 3)

/* ---- packing ---- */

static int64_t column_tiles(const packed *g)
{
    return cuda_ceil_div(g->f.n, COLUMNS);
}

/* Blocks whose numbers lie side by side, and all of them, rounded up to that. */
static int64_t in_group(const packed *g)
{
    return g->block && g->terms % g->block == 0 ? g->terms / g->block : 1;
}

static int64_t blocks_of(const packed *g, bool varies)
{
    return varies ? cuda_ceil_div(cuda_ceil_div(g->f.k, g->block), in_group(g)) * in_group(g) : 1;
}

/* A zero point takes 2 bytes. */
static size_t number_size(const packed *g, uint32_t input)
{
    return input == g->f.scale ? sinter_dtype_bits(g->f.scale_type) / 8 : 2;
}

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    (void)t;
    packed g;
    if (!input || packed_at(p, &g)) return 0;
    const size_t tiles = (size_t)column_tiles(&g);
    if (input == 1) return size_mul(size_mul(tiles, (size_t)tiles_of(&g)), 512);
    if (input != g.f.scale && input != g.f.zero) return 0;
    const bool varies = input == g.f.scale ? g.f.scale_varies : g.f.zero_varies;
    return size_align(size_mul(size_mul(tiles, (size_t)blocks_of(&g, varies)), COLUMNS * number_size(&g, input)), 16);
}

/* Where a tile of column n % COLUMNS has the code of a term: its byte, and how far from the byte's low end. */
typedef struct code_place {
    uint16_t at;
    uint8_t shift;
} code_place;

static code_place place_of(const packed *g, uint32_t column, uint32_t term)
{
    const uint32_t run = (uint32_t)g->run, each = run / 4, in_run = term % run, i = in_run % each;
    const uint32_t lane = column % 8 * 4 + in_run / each, step = term / run * (run / 16) + i / 4;
    /* Register of the fragment, and which of its halves. */
    const uint32_t reg = column / 8 + (i % 4 / 2) * 2, half = i % 2;
    if (g->f.bits == 8) return (code_place){ (uint16_t)(lane * 16 + step * 8 + reg * 2 + half), 0 };
    return (code_place){ (uint16_t)(lane * 16 + step * 4 + half * 2 + reg / 2), (uint8_t)(reg % 2 * 4) };
}

static void pack_codes(const packed *g, uint32_t axis, const view *src, uint8_t *to)
{
    enum { TERMS_MOST = 64 };
    const int64_t tiles = tiles_of(g), step_k = src->stride[axis], step_n = src->stride[1 - axis];
    const uint32_t flip = (uint32_t)g->shift, bits = g->f.bits;
    code_place place[COLUMNS][TERMS_MOST];
    for (uint32_t column = 0; column < COLUMNS; column++)
        for (int32_t term = 0; term < g->terms; term++) place[column][term] = place_of(g, column, (uint32_t)term);
    for (int64_t n = 0; n < g->f.n; n++) {
        const code_place *of = place[n % COLUMNS];
        for (int64_t first = 0; first < g->f.k; first += g->terms) {
            uint8_t *const tile = to + (n / COLUMNS * tiles + first / g->terms) * 512;
            const int64_t count = g->f.k - first < g->terms ? g->f.k - first : g->terms;
            for (int64_t i = 0; i < count; i++) {
                const uint32_t code = packed_code(src->data, bits, n * step_n + (first + i) * step_k) ^ flip;
                tile[of[i].at] |= (uint8_t)(code << of[i].shift);
            }
        }
    }
}

static void pack_numbers(const packed *g, uint32_t axis, bool varies, const view *src, uint8_t *to)
{
    const int64_t blocks = varies ? cuda_ceil_div(g->f.k, g->block) : 1, side = varies ? in_group(g) : 1,
                  all = blocks_of(g, varies);
    const bool is_float = src->dtype == g->f.scale_type && dtype_is_float(src->dtype);
    const uint32_t bits = (uint32_t)sinter_dtype_bits(src->dtype);
    const size_t size = is_float ? bits / 8 : 2;
    view whole = *src;
    int64_t dim_at[2] = { 0 };
    dim_at[axis] = blocks;
    dim_at[1 - axis] = g->f.n;
    if (!view_broadcast(src, 2, dim_at, &whole)) return;
    for (int64_t n = 0; n < g->f.n; n++) {
        for (int64_t b = 0; b < blocks; b++) {
            const int64_t from = b * whole.stride[axis] + n * whole.stride[1 - axis];
            const int64_t pair = ((n / 16 * (all / side) + b / side) * 8 + n % 8) * side + b % side;
            uint8_t *const at = to + (size_t)(pair * 2 + n % 16 / 8) * size;
            if (is_float) {
                memcpy(at, (const char *)src->data + (size_t)from * size, size);
                continue;
            }
            const uint16_t zero = (uint16_t)(packed_code(src->data, bits, from) ^ (uint32_t)g->shift);
            memcpy(at, &zero, sizeof zero);
        }
    }
}

static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    packed g;
    if (packed_at(p, &g)) return;
    memset(dst, 0, pack_size(p, t, input));
    const uint32_t axis = packed_axis(p);
    if (input == 1) pack_codes(&g, axis, src, dst);
    else pack_numbers(&g, axis, input == g.f.scale ? g.f.scale_varies : g.f.zero_varies, src, dst);
}

/* ---- code and launches ---- */

static int64_t type_number(sinter_dtype t)
{
    return t == SINTER_DTYPE_F32 ? 0 : t == SINTER_DTYPE_F16 ? 1 : 2;
}

static bool code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    const packed_tactic x = TACTIC_AS(packed_tactic, t);
    packed g;
    if (index || packed_at(p, &g)) return false;
    const code_row *row = code_of(g.f.type);
    const sinter_dtype d = p->in[0].dtype;
    c->source = "packed_product.cu";
    c->entry = "packed_product";
    c->may_spill = target->isa != 90 || x.tiles > 1 || (p->epilogue && p->epilogue->count > 16);
    cuda_code_define(c, "CODE", row->code);
    cuda_code_define(c, "TYPE", type_number(d));
    cuda_code_define(c, "SCALE", type_number(g.f.scale_type));
    cuda_code_define(c, "SCALE_BLOCKS", g.f.scale_varies);
    cuda_code_define(c, "ZERO_BLOCKS", !g.f.zero ? 0 : g.f.zero_varies ? 2 : 1);
    cuda_code_define(c, "ZERO_POINT", g.f.zero_point + g.shift);
    cuda_code_define(c, "UNIT", d == SINTER_DTYPE_F16 ? row->unit_f16 : row->unit_bf16);
    cuda_code_define(c, "BLOCK", g.block);
    cuda_code_define(c, "RUN", g.run);
    cuda_code_define(c, "GROUPS", x.groups);
    cuda_code_define(c, "SPLIT", x.split);
    cuda_code_define(c, "PRE", x.pre);
    cuda_code_define(c, "TILES", x.tiles);
    cuda_code_define(c, "X_VECTOR", g.is_vector);
    cuda_code_define(c, "SHARED", x.is_shared);
    cuda_code_define(c, "DEPTH", x.is_shared ? g.f.k : 0);
    cuda_code_define(c, "X_ROWS", x.is_shared ? shared_rows(&g) : 1);
    cuda_code_define(c, "X_CHUNKS", x.is_shared ? x_bytes(p, &g) / 16 : 1);
    cuda_code_define(c, "X_PITCH", x.is_shared ? x_pitch(p, &g) : 16);
    cuda_code_define(c, "DEPTH_AXES", 1);
    cuda_code_define(c, "BATCH_AXES", g.c.count[CONTRACT_BATCH]);
    cuda_code_define(c, "ROW_AXES", g.c.count[CONTRACT_LEFT]);
    cuda_code_define(c, "COL_AXES", g.c.count[CONTRACT_RIGHT]);
    cuda_code_define(c, "SPATIAL", 0);
    cuda_code_define(c, "PHASES", 0);
    cuda_code_define(c, "EPI_V", 1);
    emit_space space;
    space_of(p, &space);
    emit_text(&space, c->generated);
    text_printf(c->generated, "typedef float sum;\ntypedef float acc_type;\nenum { INNER = 0 };\n");
    contract_text_outs(c->generated, &g.c, CONTRACT_LEFT, CONTRACT_RIGHT);
    return true;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *record)
{
    const packed_tactic x = TACTIC_AS(packed_tactic, t);
    cuda_record *r = record;
    packed g;
    const char *why = packed_of(p, attrs, in, out, &g);
    if (why) return FAIL(e, UNSUPPORTED, "a product with a packed weight cannot be launched: %s", why);
    struct simt_args a = { 0 };
    TRY(contract_sizes(e, &g.c, CONTRACT_LEFT, CONTRACT_RIGHT, &a));
    contract_steps(&g.c, CONTRACT_LEFT, 0, &a.p);
    const uint64_t rows = (uint64_t)a.row.count, each = 8u * x.tiles;
    const uint64_t blocks = ((uint64_t)a.col.count + COLUMNS * x.groups - 1) / (COLUMNS * x.groups);
    struct simt_args *to;
    TRY(cuda_launch_begin(e, r, 0, rows ? blocks : 0, rows ? (rows + each - 1) / each : 1, 1, 32u * x.groups * x.split,
                          (uint32_t)shared_of(p, &g, x), sizeof *to, &to));
    *to = a;
    to->trigger = x.trigger;
    CUDA_PATCH(r, to, p.data, PATCH_IN, 0);
    CUDA_PATCH(r, to, q.data, PATCH_IN, 1);
    struct packed_args *w = cuda_param_add(r, sizeof *w);
    if (!w) return FAIL(e, INTERNAL, "no room for the parameters of a packed weight");
    CUDA_PATCH(r, w, scale, PATCH_IN, g.f.scale);
    if (g.f.zero) CUDA_PATCH(r, w, zero, PATCH_IN, g.f.zero);
    emit_space space;
    space_of(p, &space);
    return emit_bind(e, &space, in, out, r);
}

CUDA_ROW(cuda_packed, 1, reject, , .out_strides = STRIDES_ROWS, .pack_size = pack_size, .pack = pack,
         .lets_in = lets_in);
