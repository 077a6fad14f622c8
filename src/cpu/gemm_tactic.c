/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_tactic.c - which tactics are worth measuring for a product, and a rough order among them.
 *
 * The model counts what no machine escapes: multiply-adds with the lanes that padding wastes, loads, the latency of a
 * short accumulator chain. It knows no clock and no vendor. Blocks of B take a third of the L2 cache at most, since the
 * next block is prefetched meanwhile, or less where rows of A and C want more of it. */
#include "cpu/gemm_core.h"
#include <math.h>
#include <stdio.h>

enum {
    CACHE_USUAL = 1 << 20,
    CACHE_LEAST = 256 << 10,
    CACHE_MOST = 8 << 20,
    CACHE_WAY = 4096,
    CACHE_LINE = 64,
    WAYS = 8,
    DEEP = 2 * GEMM_CUT /* terms from which on K is cut */
};

/* Rows whose distance is a multiple of the size of an L1 way all compete for one set of, at least, eight lines. Matrix
 * registers load 16 rows at once, twice as slowly where their distance is a multiple of four lines. */
static bool rows_collide(const gemm_shape *s, const gemm_tile_set *set, int rows)
{
    const int64_t size = sinter_dtype_bits(gemm_unit_type(s->unit)) / 8;
    const int64_t bad = set->set_up ? (int64_t)4 * CACHE_LINE : CACHE_WAY;
    return rows >= WAYS && s->m >= WAYS && s->taps == 1 && s->k * size >= 256 && s->a_row * size % bad == 0;
}

bool gemm_counts_fit(const int64_t *counts, int count, bool empty)
{
    const int64_t most = (int64_t)1 << 46;
    int64_t product = 1;
    for (int i = 0; i < count; i++) {
        if (counts[i] < (empty ? 0 : 1) || counts[i] > most) return false;
        const int64_t factor = counts[i] ? counts[i] : 1;
        if (factor > most / product) return false;
        product *= factor;
    }
    return true;
}

const char *gemm_shape_check(const gemm_shape *s)
{
    const int64_t a[] = { s->m, s->k, s->taps }, b[] = { s->k, s->n, s->taps }, c[] = { s->m, s->n };
    if (!gemm_counts_fit(a, 3, true) || !gemm_counts_fit(b, 3, true) || !gemm_counts_fit(c, 2, true)) {
        return "sizes of the product are negative or too large";
    }
    return NULL;
}

static double max3(double a, double b, double c)
{
    const double ab = a > b ? a : b;
    return ab > c ? ab : c;
}

/* One row of B over a register tile, in multiply-adds of one vector. Fewer than eight sums wait for each other, and
 * loads are never wholly hidden. */
static double step_cost(int64_t rows, int64_t vectors)
{
    const double fma = (double)(rows * vectors), loads = (double)(rows + vectors), chain = 8.0;
    return max3(fma, loads, chain) + 0.5 * loads;
}

/* What multiplying a word takes, in multiply-adds of f32. */
static double unit_cost(gemm_unit unit)
{
    return unit == GEMM_BF16 ? 2.5 : unit == GEMM_U8 ? 4.5 : unit == GEMM_U8_PAIRS ? 1.2 : 1.0;
}

/* The same by matrix registers, in which every step takes as long whatever they hold. B comes from L2 unless it is
 * small. Registers of A whose rows do not lie at one distance are copied for each panel. */
static double amx_cost(const gemm_shape *s, gemm_tactic t, int64_t parts, double steps, int64_t rows, int64_t vectors)
{
    enum { HIGH = 16, NEAR = 24 };
    const int64_t high = rows > HIGH ? 2 : 1, each = (rows + high - 1) / high;
    /* Of numbers in two or three parts three or six products are made, where two or three times as many steps are
     * counted. */
    const double product = 16.0 * (1.0 + (double)parts) * (double)(high * vectors);
    const double loads = 24.0 * (double)high + (steps * (double)vectors > NEAR ? 44.0 : 28.0) * (double)vectors;
    double copied = 0;
    if (s->line && !t.copy_a) {
        const bool is_cut = s->line % each != 0 && each % s->line != 0;
        copied = (is_cut || s->line < each ? 0.8 : s->taps > 1 ? 0.3 : 0.0) * 40.0 * (double)high;
    }
    return steps * (max3(product, loads, 0) + 0.125 * (product + loads) + copied + 4.0) +
           6.0 * (double)(rows * vectors);
}

static bool can_cut(const gemm_shape *s)
{
    return s->is_whole && gemm_cuts(s->unit, s->k) && s->taps == 1 && !s->b_raw;
}

/* Whether A may be copied once, before all work tiles. */
static bool can_copy_first(const gemm_shape *s)
{
    return s->is_whole && s->taps == 1 && !s->b_raw;
}

double gemm_cost(isa_level isa, const gemm_shape *s, gemm_tactic t)
{
    const gemm_tile_set *set = gemm_set_of(isa, t);
    const gemm_grid g = gemm_grid_of(set, t, s->m, s->n);
    if (g.m_tiles == 0 || g.panels == 0) return 0.0;
    const int64_t vectors = (s->n + g.lanes - 1) / g.lanes, full = s->n / g.width;
    const int64_t rest = vectors - full * t.vectors;
    const double deep = (double)gemm_words(set, s->k) * (double)s->taps;
    const double scale = deep * unit_cost((gemm_unit)t.unit);
    double step = 0.0;
    for (int high = 0; high < 2; high++) {
        const int64_t rows = g.rows_small + high;
        const double count = (double)(high ? g.rows_extra : g.m_tiles - g.rows_extra);
        if (set->set_up) {
            const double steps = ceil((double)gemm_words(set, s->k) / set->step) * (double)s->taps;
            step += count * (double)full * amx_cost(s, t, g.parts, steps, rows, t.vectors);
            if (rest) step += count * amx_cost(s, t, g.parts, steps, rows, rest);
            continue;
        }
        step += count * (double)full * step_cost(rows, t.vectors) * scale;
        if (rest) step += count * step_cost(rows, rest) * scale;
    }
    const double tiles = (double)g.m_tiles * (double)g.panels;
    const double passes = (double)g.n_blocks;
    if (can_cut(s) && !t.cut && s->k >= DEEP && s->m > GEMM_ROWS_FEW) step *= 1.1; /* rows of A leave L1 */
    double extra = tiles * 40.0 + (double)g.m_tiles * passes * (double)(s->taps * t.rows) * 2.0;
    if (t.copy_a) {
        const double each = (s->is_converted ? 0.5 : 0.25) + (s->a_col == 1 ? 0 : 1.25 * set->terms);
        extra += (double)s->m * deep * (t.copy_a == GEMM_COPY_FIRST ? 1.5 : passes) * each;
    } else if (rows_collide(s, set, t.rows)) {
        extra += step * 0.3;
    }
    if (s->b_raw) extra += deep * (double)s->n * (double)g.m_blocks * 0.5;
    return 0.15 * (step + extra);
}

const char *gemm_tactic_check(isa_level isa, const gemm_shape *s, gemm_tactic t)
{
    const gemm_tile_set *set = gemm_set_of(isa, t);
    if (!set) return "the instruction set has no such unit";
    if (t.unit != s->unit) return "the tactic is of another unit";
    if (t.direct != 0 || t.dot != 0 || t.copy_a > GEMM_COPY_FIRST || t.cut > 1 || t.ahead > GEMM_AHEAD_PAGES)
        return "reserved bits are set";
    if (t.cut && !can_cut(s)) return "K is only cut in products of f32 by a packed matrix";
    if (t.copy_a == GEMM_COPY_FIRST && !can_copy_first(s))
        return "A is only copied first in products by a packed matrix";
    if (t.vectors < 1 || t.vectors > GEMM_VECTORS_MAX) return "panel width is not 1 to 4 vectors";
    if (t.rows < 1 || t.rows > set->rows_max[t.vectors - 1])
        return "the register tile is higher than the registers allow";
    if (s->a_col != 1 && !t.copy_a) return "rows of A without unit stride have to be copied";
    if (s->is_converted && !t.copy_a) return "rows of A in another type have to be copied";
    return NULL;
}

int gemm_tactic_print(char *text, size_t size, isa_level isa, gemm_tactic t)
{
    static const char *const copies[] = {
        [GEMM_COPY_NONE] = "", [GEMM_COPY_EACH] = " copy", [GEMM_COPY_FIRST] = " copy first", [3] = ""
    };
    static const char *const aheads[] = {
        [GEMM_AHEAD_NONE] = "", [GEMM_AHEAD_ALL] = " ahead", [GEMM_AHEAD_PAGES] = " pages", [3] = ""
    };
    const gemm_tile_set *set = gemm_set_of(isa, t);
    return snprintf(text, size, "%ux%d m%u n%u%s%s%s%s%s", t.rows, set ? t.vectors * set->lanes : 0, t.block_m,
                    t.block_n, copies[t.copy_a], t.cut ? " cut" : "", aheads[t.ahead], t.unit ? " " : "",
                    gemm_unit_name((gemm_unit)t.unit));
}

/* The highest tiles that no end of a line cuts, or as high as there are. */
static uint8_t rows_in_lines(int64_t line, int32_t most)
{
    if (line < 1 || line >= INT32_MAX) return (uint8_t)most;
    if (line <= most) return (uint8_t)(most / line * line);
    const int64_t parts = (line + most - 1) / most;
    return (uint8_t)(line % parts ? most : line / parts);
}

static uint16_t block_of(int64_t bytes, int64_t panel_bytes, int64_t panels)
{
    int64_t count = panel_bytes > 0 ? bytes / panel_bytes : panels;
    if (count < 1) count = 1;
    if (count >= panels) return 0;
    return (uint16_t)(count > UINT16_MAX ? UINT16_MAX : count);
}

/* Register tiles of a work tile: beginning one takes some time. There remain enough for many threads. */
static uint16_t block_height(const gemm_shape *s, gemm_tactic t, int64_t panels)
{
    enum { WORK = 1 << 15, TILES = 128, HIGH = 16 };
    const double columns = (double)(t.block_n ? t.block_n : panels) * t.vectors;
    const double each = (double)t.rows * columns * (double)s->k * (double)s->taps + 1;
    const int64_t wanted = each > WORK ? 1 : (int64_t)(WORK / each) + 1, most = s->m / t.rows / TILES;
    const int64_t high = wanted < most ? wanted : most;
    return (uint16_t)(high < 1 ? 1 : high > HIGH ? HIGH : high);
}

typedef struct candidates {
    gemm_tactic list[GEMM_TACTICS_MAX];
    double cost[GEMM_TACTICS_MAX];
    int count;
} candidates;

/* Keeps the list in order of cost; equal tactics once. */
static void candidates_insert(candidates *c, isa_level isa, const gemm_shape *s, gemm_tactic t)
{
    for (int i = 0; i < c->count; i++) {
        const gemm_tactic o = c->list[i];
        if (o.vectors == t.vectors && o.rows == t.rows && o.copy_a == t.copy_a && o.cut == t.cut &&
            o.ahead == t.ahead && o.block_m == t.block_m && o.block_n == t.block_n) {
            return;
        }
    }
    const double cost = gemm_cost(isa, s, t);
    int at = c->count;
    while (at > 0 && c->cost[at - 1] > cost) at--;
    if (at == GEMM_TACTICS_MAX) return;
    if (c->count < GEMM_TACTICS_MAX) c->count++;
    for (int i = c->count - 1; i > at; i--) {
        c->list[i] = c->list[i - 1];
        c->cost[i] = c->cost[i - 1];
    }
    c->list[at] = t;
    c->cost[at] = cost;
}

/* The tactic; and where several blocks of columns would each copy the rows, the one that copies them first. */
static void candidates_add(candidates *c, isa_level isa, const gemm_shape *s, gemm_tactic t)
{
    candidates_insert(c, isa, s, t);
    if (!t.copy_a || !can_copy_first(s) || gemm_grid_of(gemm_set_of(isa, t), t, s->m, s->n).n_blocks < 2) return;
    t.copy_a = GEMM_COPY_FIRST;
    candidates_insert(c, isa, s, t);
}

/* Parts of K: panels of one part fill a block, and rows of A stay in L1 meanwhile. Many rows share a block, since each
 * part of it is read again for every work tile. */
static void add_cut(candidates *c, isa_level isa, const gemm_shape *s, gemm_tactic t, int64_t bytes, int64_t panels)
{
    enum { HIGH = 96 };
    if (!can_cut(s) || s->k < DEEP) return;
    const gemm_tile_set *set = gemm_set_of(isa, t);
    const int64_t panel =
        gemm_words(set, s->k / gemm_cuts(s->unit, s->k)) * t.vectors * set->lanes * (int64_t)sizeof(float);
    t.cut = 1;
    t.block_m = (uint16_t)(HIGH / t.rows);
    t.block_n = block_of(bytes, panel, panels);
    candidates_add(c, isa, s, t);
}

int gemm_tactics(isa_level isa, const gemm_shape *s, gemm_tactic out[GEMM_TACTICS_MAX])
{
    const gemm_tile_set *set = gemm_unit_set(isa, s->unit);
    candidates c = { .count = 0 };
    const int64_t cache = !s->cache                ? CACHE_USUAL
                          : s->cache < CACHE_LEAST ? CACHE_LEAST
                          : s->cache > CACHE_MOST  ? CACHE_MOST
                                                   : (int64_t)s->cache;
    const int64_t large = cache / 3, small = cache / 8;
    for (int v = 1; v <= GEMM_VECTORS_MAX && set->rows_max[v - 1]; v++) {
        if (v > 1 && s->n <= (int64_t)(v - 1) * set->lanes) break;
        const int64_t width = (int64_t)v * set->lanes;
        const int64_t panels = s->n / width + (s->n % width != 0);
        const double panel_bytes =
            (double)s->taps * (double)gemm_words(set, s->k) * (double)width * (double)sizeof(float);
        const int64_t bytes = panel_bytes > (double)large ? large : (int64_t)panel_bytes;
        gemm_tactic t = { .vectors = (uint8_t)v & 15u,
                          .unit = (uint8_t)s->unit & 15u,
                          .rows = (uint8_t)set->rows_max[v - 1] };
        t.copy_a = s->a_col != 1 || s->is_converted || rows_collide(s, set, t.rows);
        /* A raw B is packed by whoever computes with it: a block then takes all rows, so that it is packed once. */
        t.block_m = s->b_raw ? 0 : 1;
        if (s->m <= GEMM_ROWS_FEW && !s->b_raw && !set->set_up) {
            /* B is read once, whatever is a block of it: small ones are easily shared among threads. */
            t.block_n = block_of(small, bytes, panels);
            t.ahead = s->m == 1 ? GEMM_AHEAD_ALL : GEMM_AHEAD_PAGES;
            candidates_add(&c, isa, s, t);
            t.ahead = GEMM_AHEAD_NONE;
            candidates_add(&c, isa, s, t);
            t.ahead = s->m == 1 ? GEMM_AHEAD_PAGES : GEMM_AHEAD_ALL;
            candidates_add(&c, isa, s, t);
            continue;
        }
        t.block_n = block_of(large, bytes, panels);
        if (!s->b_raw) t.block_m = block_height(s, t, panels);
        candidates_add(&c, isa, s, t);
        if (t.copy_a && s->a_col == 1 && !s->is_converted) {
            gemm_tactic direct = t;
            direct.copy_a = 0;
            candidates_add(&c, isa, s, direct);
        }
        t.block_n = block_of(small, bytes, panels);
        candidates_add(&c, isa, s, t);
        add_cut(&c, isa, s, t, large, panels);
        if (!set->set_up || !s->line) continue;
        t.block_n = block_of(large, bytes, panels);
        t.copy_a = 1;
        candidates_add(&c, isa, s, t);
        t.copy_a = s->a_col != 1 || s->is_converted;
        t.rows = rows_in_lines(s->line, set->rows_max[v - 1]);
        candidates_add(&c, isa, s, t);
    }
    for (int i = 0; i < c.count; i++) out[i] = c.list[i];
    return c.count;
}
