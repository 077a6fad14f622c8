/* SPDX-License-Identifier: Apache-2.0 */
/* row_order.c - top_k: the first of each line, in order. */
#include "cuda/cuda_kernels.h"
#include "cuda/line_order.h"
#include "cuda/ranking.h"

#include <math.h>
#include <string.h>

/* clang-format off */
typedef struct top_k_tactic {
    uint8_t  kind;                      /* a top_k_kind */
    uint8_t  zero;
    uint16_t block;
    uint32_t room;                      /* entries that a block sorts, or of a thread's list */
    uint32_t part;                      /* elements of a part of a line; 0: it is taken whole */
    uint16_t lanes;                     /* TOPK_FEW: threads of a line, or of a part */
    uint8_t  rest[TACTIC_SIZE - 14];
} top_k_tactic;
_Static_assert(sizeof(top_k_tactic) == TACTIC_SIZE, "a tactic is overlaid");
/* clang-format on */

enum { SELECT_SPARE = 64 + 256, ROOM_MOST = 16384, TOPK_PART_MOST = 1 << 20, MERGE_BLOCK = 256, LIST_MOST = 32 };
enum { ENTRIES_MOST = 16 }; /* of a thread that sorts */
/* A block sorts a line, or selects its first and sorts them; or threads keep lists of a few. */
typedef enum top_k_kind { TOPK_SORT, TOPK_SELECT, TOPK_FEW } top_k_kind;
static const tactic_field top_k_fields[] = {
    FIELD(top_k_tactic, kind, 0, TOPK_FEW),        FIELD(top_k_tactic, block, 32, 1024, true),
    FIELD(top_k_tactic, room, 1, ROOM_MOST, true), FIELD(top_k_tactic, part, 0, TOPK_PART_MOST),
    FIELD(top_k_tactic, lanes, 0, 1024),
};
/* Of both results, whichever is there. */
static dim_range wanted_range(const lines *l)
{
    return order_range(l, &l->out[l->out[0].dtype != SINTER_DTYPE_NONE ? 0 : 1]);
}

static int64_t power_above(int64_t x, int64_t least)
{
    int64_t p = least;
    while (p < x && p < INT32_MAX) p *= 2;
    return p;
}

/* A key and its place in memory; in shared memory those of 12 bytes take 16. */
static uint32_t entry_size(const problem *p)
{
    return sinter_dtype_bits(p->in[0].dtype) == 64 ? 12 : 8;
}

static uint32_t shared_bytes(const problem *p, const top_k_tactic *t, int64_t room)
{
    const int64_t sorted = room < t->block ? t->block : room;
    return (uint32_t)sorted * (entry_size(p) == 12 ? 16 : 8) + (t->kind == TOPK_SELECT ? SELECT_SPARE * 4u : 0);
}

/* Launches that bring the parts of a line of n elements together. */
static uint32_t merges_of(int64_t n, int64_t part)
{
    uint32_t count = 1;
    for (int64_t runs = cuda_ceil_div(n, part); runs > TOPK_RUNS; runs = cuda_ceil_div(runs, TOPK_RUNS)) count++;
    return count;
}

/* Entries of the runs of a line of n elements. INT64_MAX: no bound. */
static int64_t top_k_room(const top_k_tactic *x, int64_t n, int64_t k)
{
    int64_t room = 0;
    return i64_mul(cuda_ceil_div(n, x->part), k < x->part ? k : x->part, &room) ? room : INT64_MAX;
}

/* Keys and places of lines of at most n elements fit in 32 bits. */
static bool is_packed(const problem *p, int64_t n)
{
    return sinter_dtype_bits(p->in[0].dtype) <= 16 && n <= UINT16_MAX;
}

/* Of an entry in registers. */
static uint32_t entry_words(const problem *p, int64_t n)
{
    return is_packed(p, n) ? 1 : sinter_dtype_bits(p->in[0].dtype) == 64 ? 3 : 2;
}

/* ---- TOPK_FEW ---- */

/* Elements that each of `lanes` threads reads at once, of lines of n elements. */
static uint32_t few_vector(const problem *p, const lines *l, int64_t n, uint32_t lanes)
{
    const uint32_t bits = sinter_dtype_bits(p->in[0].dtype), most = bits < 16 ? 8 : 128 / bits;
    uint32_t v = l->is_rows ? cuda_operand_vector(&l->in[0], most) : 1;
    while (v > 1 && (int64_t)v * lanes > n) v /= 2;
    return v;
}

/* Elements that a thread of `lanes` reads before it looks at the first, of lines of n elements. */
static uint32_t few_ahead(const top_k_tactic *t, int64_t n, uint32_t lanes, uint32_t vector)
{
    const int64_t own = cuda_ceil_div(n, (int64_t)lanes * vector), list = t->room <= 4 ? 16 : t->room <= 8 ? 8 : 4;
    const int64_t most = list > vector ? list / vector : 1;
    return vector * (uint32_t)(own > 1 ? cuda_ceil_div(own, cuda_ceil_div(own, most)) : 1);
}

/* Lists between warps. */
static uint32_t few_shared(const problem *p, const top_k_tactic *t, bool is_across, uint32_t lanes, uint32_t block)
{
    const uint32_t entry = sinter_dtype_bits(p->in[0].dtype) == 64 ? 16 : 8;
    return (is_across ? block : lanes) > 32 && lanes > 1 ? t->room * block * entry : 0;
}

static uint32_t few_registers(const problem *p, const lines *l, const top_k_tactic *t, int64_t n, uint32_t lanes)
{
    return 30 + entry_words(p, n) * (2 * t->room + few_ahead(t, n, lanes, few_vector(p, l, n, lanes)));
}

static bool few_is_sound(const problem *p, const lines *l, const top_k_tactic *t, uint32_t shared)
{
    const int64_t n = t->part ? t->part : order_range(l, &l->in[0]).max;
    /* So that what is read at once is aligned in every part. */
    if (t->part % 16) return false;
    return t->room <= LIST_MOST && is_power(t->lanes, t->block) && t->room >= wanted_range(l).max &&
           few_shared(p, t, !l->is_rows, t->lanes, t->block) <= shared &&
           (!t->part || few_shared(p, t, false, MERGE_BLOCK, MERGE_BLOCK) <= shared) &&
           few_registers(p, l, t, n, t->lanes) * t->block <= 65536;
}

/* `count` lines of n elements, each by `lanes` threads of blocks of `block`; is_merge: of runs. */
static double few_ns(const problem *p, const lines *l, const top_k_tactic *t, const kernel_target *target,
                     bool is_merge, double count, double n)
{
    const uint32_t lanes = is_merge ? MERGE_BLOCK : t->lanes, block = is_merge ? MERGE_BLOCK : t->block;
    const uint32_t words = entry_words(p, (int64_t)n), vector = is_merge ? 1 : few_vector(p, l, (int64_t)n, lanes);
    const double own = ceil(n / lanes), k = t->room, swap = words == 1 ? 2 : 3 * words, line = block / lanes;
    const double ahead = few_ahead(t, (int64_t)n, lanes, vector), warps = ceil(count / line) * block / 32;
    const double meeting = k * (words + swap) + k / 2 * log2(k) * swap;
    const double work = 80 + own * (6 + 6.0 / vector + k * swap) + log2(lanes) * meeting + ceil(k / lanes) * 40;
    const double units = target->units ? target->units : 100, ghz = machine_of(target).ghz;
    /* What a warp reads at once lies in so many places; and warps that are there at the same time. */
    const double places = !is_merge && !l->is_rows ? 32 / fmin(line, 32) : fmax(1, 32.0 / lanes);
    const double resident = fmin(fmin(64, block), 2048.0 / few_registers(p, l, t, (int64_t)n, lanes)) * units;
    const double blocks = ceil(ceil(count / line) / units);
    const double issue = blocks * block / 32 * fmax(work / 2.4, own / vector * places) / ghz;
    const double serial = (work * 1.5 / ghz + ceil(own / ahead) * 700) * fmax(1, warps / resident);
    return fmax(issue, serial) + blocks * 30 + (lanes > 32 ? log2(lanes / 32.0) * 100 : 0);
}

static double few_cost_of(const problem *p, const lines *l, const top_k_tactic *t, const kernel_target *target)
{
    const double n = fmax(1, (double)order_range(l, &l->in[0]).opt), rows = order_lines(l);
    const double bytes = cuda_operand_bytes(&p->in[0]) + cuda_operand_bytes(&p->out[0]) +
                         (p->count_out > 1 ? cuda_operand_bytes(&p->out[1]) : 0);
    const double memory = cuda_cost_ns(target, bytes, 0);
    if (!t->part) return memory + few_ns(p, l, t, target, false, rows, n);
    const double parts = ceil(n / t->part), k = fmin((double)wanted_range(l).opt, t->part);
    return memory + few_ns(p, l, t, target, false, rows * parts, fmin(n, t->part)) + 2000 +
           few_ns(p, l, t, target, true, rows, parts * k);
}

static void few_tactics(const problem *p, const lines *l, const kernel_target *target, uint32_t shared, ranking *best)
{
    const int64_t room = power_above(wanted_range(l).max, 1), n = order_range(l, &l->in[0]).max;
    if (room > LIST_MOST) return;
    for (uint32_t part = 0; part <= TOPK_PART_MOST; part = part ? part * 2 : 1024)
        for (uint32_t lanes = 1; lanes <= 1024 && (!part || part < n); lanes *= 2) {
            const uint32_t all = l->is_rows ? lanes : lanes * 32, most = all < 256 ? 256 : all < 1024 ? all : 1024;
            ranking own = { .most = 1 };
            for (uint32_t block = lanes < 32 ? 32 : lanes; block <= most; block *= 2) {
                const top_k_tactic t = { .kind = TOPK_FEW,
                                         .block = (uint16_t)block,
                                         .room = (uint32_t)room,
                                         .part = part,
                                         .lanes = (uint16_t)lanes };
                if (few_is_sound(p, l, &t, shared)) ranking_add(&own, few_cost_of(p, l, &t, target), &t);
            }
            if (own.count) ranking_add(best, own.cost[0], &own.at[0]);
        }
}

static void few_define(const problem *p, const lines *l, const top_k_tactic *t, bool is_merge, cuda_code *c)
{
    const uint32_t lanes = is_merge ? MERGE_BLOCK : t->lanes;
    int64_t n = order_range(l, &l->in[0]).max;
    if (is_merge) n = top_k_room(t, n, t->room);
    else if (t->part) n = t->part;
    cuda_code_define(c, "K", t->room);
    cuda_code_define(c, "LANES", lanes);
    cuda_code_define(c, "ACROSS", !is_merge && !l->is_rows);
    cuda_code_define(c, "PACKED", !is_merge && is_packed(p, n));
    const uint32_t vector = is_merge ? 1 : few_vector(p, l, n, lanes);
    cuda_code_define(c, "VECTOR", vector);
    cuda_code_define(c, "AHEAD", few_ahead(t, n, lanes, vector));
}

/* ---- TOPK_SORT, TOPK_SELECT ---- */

static bool top_k_is_sound(const problem *p, const lines *l, const top_k_tactic *t, uint32_t shared)
{
    if (t->kind == TOPK_FEW) return few_is_sound(p, l, t, shared);
    const dim_range n = order_range(l, &l->in[0]), k = wanted_range(l);
    const int64_t sorted = t->kind ? k.max : t->part ? t->part : n.max;
    if (t->lanes || t->room < 2 || t->room / t->block > ENTRIES_MOST) return false;
    if (t->part && merges_of(n.max, t->part) >= RECORD_LAUNCHES) return false;
    return (!t->kind || t->block >= 256) && sorted <= t->room && shared_bytes(p, t, t->room) <= shared;
}

/* `waves` blocks of a multiprocessor that sort `size` entries, or first select them of n elements. A step of the sort
 * is between registers, lanes of a warp, or warps. */
static double top_k_block_ns(const problem *p, const top_k_tactic *x, double size, double n, double waves, double ghz)
{
    const double digits = sinter_dtype_bits(p->in[0].dtype) == 64 ? 8 : 4, each = fmax(1, (double)x->room / x->block);
    const double words = entry_words(p, (int64_t)n), step = words > 1 ? 4 * words : 3, runs = log2(size);
    const double own = fmin(log2(each), runs), far = fmax(0, runs - 5 - log2(each));
    const double near_steps = own * (runs - (own - 1) / 2), far_steps = far * (far + 1) / 2;
    const double warp_steps = runs * (runs + 1) / 2 - near_steps - far_steps;
    const double work = each * step * (near_steps / 2 + warp_steps + far_steps * 1.5);
    const double issue = work * x->block / 32 / 2.4 / ghz,
                 alone = (work * 1.2 + warp_steps * 40) / ghz + far_steps * 100;
    const double select = digits * (1500 + n / x->block * 250) + n / x->block * 300;
    return fmax(alone, issue * fmax(1, waves)) + waves * 50 +
           (x->kind ? select : n / x->block * 40) * fmax(1, waves * (x->block > 512 ? 1 : 0.3));
}

static double top_k_cost_of(const problem *p, top_k_tactic x, const kernel_target *target)
{
    lines l;
    if (lines_of(p, false, &l)) return 1e12;
    if (x.kind == TOPK_FEW) return few_cost_of(p, &l, &x, target);
    const double line = fmax(1, (double)order_range(&l, &l.in[0]).opt), k = (double)wanted_range(&l).opt;
    const double n = x.part ? fmin(line, x.part) : line, rows = order_lines(&l);
    const double units = target->units ? target->units : 100;
    double runs = ceil(line / n), run = fmin(n, k);
    const double size = (double)power_above((int64_t)(x.kind ? k : n), 2);
    double ns = top_k_block_ns(p, &x, size, n, rows * runs / units, machine_of(target).ghz);
    for (uint32_t i = 0, merges = x.part ? merges_of((int64_t)line, x.part) : 0; i < merges; i++) {
        ns += 2000 + 250 * log2(run + 1) + rows * runs * run * 0.02;
        runs = ceil(runs / TOPK_RUNS);
        run = fmin(run * TOPK_RUNS, k);
    }
    return cuda_cost_ns(target, cuda_operand_bytes(&p->in[0]), 0) + ns;
}

static double top_k_cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    return top_k_cost_of(p, TACTIC_AS(top_k_tactic, t), target);
}

static void top_k_tactics(const problem *p, const kernel_target *target, tactic_sink *out)
{
    lines l;
    if (order_reject(p, &l)) return;
    const dim_range n = order_range(&l, &l.in[0]), k = wanted_range(&l);
    const uint32_t shared = target->shared ? target->shared : 48 * 1024;
    /* The best of each kind are measured: the estimates of one say little about another. */
    ranking best = { .most = 9 }, of_kind[] = { { .most = 3 }, { .most = 3 }, { .most = 3 } };
    few_tactics(p, &l, target, shared, &of_kind[TOPK_FEW]);
    for (uint32_t kind = 0; kind < TOPK_FEW; kind++)
        for (uint32_t part = 0; part <= TOPK_PART_MOST; part = part ? part * 2 : 1024) {
            const int64_t room = power_above(kind ? k.max : part ? part : n.max, 2);
            if (room > ROOM_MOST || (part && part >= n.max)) continue;
            for (uint32_t each = kind ? 16 : 2; each <= ENTRIES_MOST; each *= 2) {
                const int64_t block = kind ? 1024 : room / each;
                if (each > 2 && block < 32) break;
                const top_k_tactic t = { .kind = (uint8_t)kind,
                                         .block = (uint16_t)(block < 32     ? 32
                                                             : block > 1024 ? 1024
                                                                            : block),
                                         .room = (uint32_t)room,
                                         .part = part };
                if (top_k_is_sound(p, &l, &t, shared)) ranking_add(&of_kind[kind], top_k_cost_of(p, t, target), &t);
            }
        }
    for (uint32_t kind = 0; kind < COUNT_OF(of_kind); kind++)
        for (uint32_t i = 0; i < of_kind[kind].count; i++)
            ranking_add(&best, of_kind[kind].cost[i], &of_kind[kind].at[i]);
    ranking_take(&best, out);
}

static const char *top_k_reject(const problem *p, const kernel_target *t)
{
    REJECT_UNLESS(p->op == OP_top_k, "not top_k");
    lines l;
    const char *why = order_reject(p, &l);
    if (why) return why;
    tactic_sink sink = { .count = 0 };
    top_k_tactics(p, t, &sink);
    return sink.count ? NULL : "more is to be sorted than shared memory holds";
}

static bool top_k_check(const problem *p, const tactic *t)
{
    const top_k_tactic x = TACTIC_AS(top_k_tactic, t);
    lines l;
    return p->op == OP_top_k && FIELDS_HOLD(top_k_fields, t) && !order_reject(p, &l) &&
           top_k_is_sound(p, &l, &x, UINT32_MAX);
}

static void top_k_print(const tactic *t, text *out)
{
    const top_k_tactic x = TACTIC_AS(top_k_tactic, t);
    static const char *const name[] = { "sort", "select", "few" };
    text_printf(out, "%s %u of %u", x.kind <= TOPK_FEW ? name[x.kind] : "?", x.room, x.block);
    if (x.lanes) text_printf(out, " lanes %u", x.lanes);
    if (x.part) text_printf(out, " parts of %u", x.part);
}

/* Of the runs of all lines, `entries` in all; what lies behind them is aligned for keys. SIZE_MAX: no bound. */
static size_t top_k_bytes(const problem *p, int64_t entries)
{
    int64_t bytes;
    return i64_mul(entries, entry_size(p), &bytes) && bytes < INT64_MAX / 4 ? size_align((size_t)bytes, 16) : SIZE_MAX;
}

/* Runs before a launch, and after it. SIZE_MAX: lines, or their lengths, have no bound. */
static size_t top_k_workspace(const problem *p, const tactic *t, uint32_t threads)
{
    (void)threads;
    const top_k_tactic x = TACTIC_AS(top_k_tactic, t);
    lines l;
    if (!x.part || lines_of(p, false, &l)) return 0;
    int64_t entries = top_k_room(&x, order_range(&l, &l.in[0]).max, wanted_range(&l).max);
    for (uint32_t i = 0; i < l.kept_count; i++)
        if (!i64_mul(entries, l.in[0].dim[l.kept[i]].max, &entries)) return SIZE_MAX;
    return size_mul(2, top_k_bytes(p, entries));
}

static bool top_k_code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    (void)target;
    const top_k_tactic x = TACTIC_AS(top_k_tactic, t);
    lines l;
    if (index > (!x.part ? 0 : x.kind == TOPK_FEW ? 1 : 2) || lines_of(p, false, &l)) return false;
    c->source = "topk.cu";
    c->entry = "top_k";
    cuda_code_define(c, "X_TYPE", lines_type_of(p->in[0].dtype));
    cuda_code_define(c, "KEPT", l.kept_count);
    cuda_code_define(c, "LARGEST", ((const attrs_top_k *)p->attrs)->largest != 0);
    cuda_code_define(c, "KIND", x.kind);
    cuda_code_define(c, "PARTS", x.part ? 1 + index : 0);
    cuda_code_define(c, "BLOCK", index ? MERGE_BLOCK : x.block);
    cuda_code_define(c, "TRIGGER", 1);
    if (x.kind == TOPK_FEW) {
        few_define(p, &l, &x, index > 0, c);
    } else {
        const int64_t n = order_range(&l, &l.in[0]).max;
        cuda_code_define(c, "ROOM", x.room);
        cuda_code_define(c, "PACKED", is_packed(p, x.part ? x.part : n));
    }
    return true;
}

static sinter_status top_k_launch(env *e, cuda_record *r, uint32_t code, int64_t blocks, uint32_t block,
                                  uint32_t shared, const order_args *a, order_args **to)
{
    TRY(cuda_launch_begin(e, r, code, (uint64_t)blocks, 1, 1, block, shared, sizeof *a, to));
    **to = *a;
    CUDA_PATCH(r, *to, x, PATCH_IN, 0);
    return SINTER_OK;
}

static void top_k_results(cuda_record *r, order_args *to, const view *values, const view *indices)
{
    if (values->dtype != SINTER_DTYPE_NONE) CUDA_PATCH(r, to, values, PATCH_OUT, 0);
    if (indices->dtype != SINTER_DTYPE_NONE) CUDA_PATCH(r, to, indices, PATCH_OUT, 1);
}

/* Lists of a few: of whole lines, or of parts and then of their runs. */
static sinter_status few_bind(env *e, const problem *p, const top_k_tactic *x, bool is_across, order_args a,
                              const view *values, const view *indices, cuda_record *r)
{
    const int64_t parts = x->part ? cuda_ceil_div(a.n, x->part) : 1, room = x->part ? top_k_room(x, a.n, a.k) : 0;
    int64_t blocks = 0;
    order_args *to;
    if (!a.k) return SINTER_OK;
    if (!i64_mul(cuda_ceil_div(a.rows, x->block / x->lanes), parts, &blocks) || blocks > INT32_MAX)
        return FAIL(e, UNSUPPORTED, "top_k: too many parts of lines");
    a.room = (small)room;
    a.entries = room * a.rows;
    a.span = x->part ? (small)x->part : a.n;
    a.kept_out = a.k < a.span ? a.k : a.span;
    a.parts = cuda_fast_div(parts);
    TRY(top_k_launch(e, r, 0, blocks, x->block, few_shared(p, x, is_across, x->lanes, x->block), &a, &to));
    if (x->part) {
        CUDA_PATCH(r, to, to, PATCH_WORKSPACE, 0);
        /* The last run may be short. */
        const int64_t last = a.n - (parts - 1) * x->part;
        a.n = a.span = (small)((parts - 1) * a.kept_out + (last < a.kept_out ? last : a.kept_out));
        a.parts = cuda_fast_div(1);
        TRY(top_k_launch(e, r, 1, a.rows, MERGE_BLOCK, few_shared(p, x, false, MERGE_BLOCK, MERGE_BLOCK), &a, &to));
        CUDA_PATCH(r, to, from, PATCH_WORKSPACE, 0);
    }
    top_k_results(r, to, values, indices);
    return SINTER_OK;
}

/* The runs of parts, and launches that bring them together. */
static sinter_status top_k_bind_parts(env *e, const problem *p, const top_k_tactic *x, order_args a, const view *values,
                                      const view *indices, cuda_record *r)
{
    const int64_t room = top_k_room(x, a.n, a.k), second = (int64_t)top_k_bytes(p, room * a.rows);
    const uint32_t merges = merges_of(a.n, x->part);
    int64_t runs = cuda_ceil_div(a.n, x->part), blocks = 0;
    order_args *to;
    if (!a.k) return SINTER_OK;
    if (!i64_mul(runs, a.rows, &blocks) || blocks > INT32_MAX)
        return FAIL(e, UNSUPPORTED, "top_k: too many parts of lines");
    a.room = (small)room;
    a.entries = room * a.rows;
    a.span = (small)x->part;
    a.kept_out = a.k < a.span ? a.k : a.span;
    a.parts = cuda_fast_div(runs);
    TRY(top_k_launch(e, r, 0, blocks, x->block, shared_bytes(p, x, x->room), &a, &to));
    CUDA_PATCH(r, to, to, PATCH_WORKSPACE, 0);
    for (uint32_t i = 0; i < merges; i++) {
        const int64_t row = cuda_ceil_div(runs * a.kept_out, MERGE_BLOCK), span = (int64_t)a.span * TOPK_RUNS;
        if (!i64_mul(row, a.rows, &blocks) || blocks > INT32_MAX)
            return FAIL(e, UNSUPPORTED, "top_k: too many entries of lines");
        a.kept_in = a.kept_out;
        a.kept_out = span < a.k ? (small)span : a.k;
        a.size = (small)power_above((int64_t)a.kept_in + 1, 2);
        a.run = cuda_fast_div(a.kept_in);
        a.parts = cuda_fast_div(row);
        TRY(top_k_launch(e, r, i + 1 < merges ? 1 : 2, blocks, MERGE_BLOCK, 0, &a, &to));
        cuda_patch_add(r, to, offsetof(order_args, from), PATCH_WORKSPACE, 0, i % 2 ? second : 0);
        if (i + 1 == merges) top_k_results(r, to, values, indices);
        else cuda_patch_add(r, to, offsetof(order_args, to), PATCH_WORKSPACE, 0, i % 2 ? 0 : second);
        a.span = span < a.n ? (small)span : a.n;
        runs = cuda_ceil_div(runs, TOPK_RUNS);
    }
    return SINTER_OK;
}

static sinter_status top_k_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                                const view *out, void *record)
{
    const top_k_tactic x = TACTIC_AS(top_k_tactic, t);
    cuda_record *r = record;
    lines l;
    const char *why = lines_of(p, false, &l);
    if (why) return FAIL(e, UNSUPPORTED, "top_k: %s", why);
    view own, values, indices = { .dtype = SINTER_DTYPE_NONE };
    lines_view(&l, false, 0, &in[0], &own);
    lines_view(&l, true, 0, &out[0], &values);
    if (p->count_out > 1) lines_view(&l, true, 1, &out[1], &indices);
    order_args a = { 0 };
    const int64_t k = ((const attrs_top_k *)attrs)->k.at[0];
    if (!order_set(&l, &own, &values, &indices, &a) || k < 0 || k > a.n)
        return FAIL(e, UNSUPPORTED, "top_k: %lld of lines of %d elements", (long long)k, a.n);
    a.k = (small)k;
    if (x.kind == TOPK_FEW) return few_bind(e, p, &x, !l.is_rows, a, &values, &indices, r);
    const int64_t part = x.part, size = power_above(x.kind ? k : part && part < a.n ? part : a.n, 2);
    if (size > x.room) return FAIL(e, UNSUPPORTED, "top_k: %lld entries to sort, room for %u", (long long)size, x.room);
    a.size = (small)size;
    if (x.part) return top_k_bind_parts(e, p, &x, a, &values, &indices, r);
    order_args *to;
    TRY(top_k_launch(e, r, 0, k ? a.rows : 0, x.block, shared_bytes(p, &x, x.room), &a, &to));
    top_k_results(r, to, &values, &indices);
    return SINTER_OK;
}

CUDA_ROW(cuda_top_k, 2, top_k_reject, top_k_, .out_strides = STRIDES_ROWS, .workspace = top_k_workspace);
