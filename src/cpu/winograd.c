/* SPDX-License-Identifier: Apache-2.0 */
/* winograd.c - the loops around the transforms: tiles in, one product for each point, tiles out.
 *
 * Two cuts. A block of tiles passes all three stages in one worker's scratch, small enough to stay in its L2 cache
 * while filters of few channels do, too. Or (phased) each stage is a phase over all tiles in shared memory: big filters
 * are then read once, and small images still give work to every thread. */
#include "cpu/winograd.h"
#include "cpu/level.h"
#include "base/env.h"
#include "cpu/gemm_core.h"
#include <stdio.h>
#include <string.h>

enum {
    CHUNK = 8, /* tiles of a work item in the phases of transforms, and of one call of the hook */
    FLOATS_PER_LINE = 16,
    COLLIDE_FLOATS = 256
};

static int64_t i64_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* Floats from one row of data or products to the next: whole lines, and no distance at which rows share an L1 set. */
int64_t winograd_row_size(int64_t channels)
{
    const int64_t size = ceil_div(channels, FLOATS_PER_LINE) * FLOATS_PER_LINE;
    return size % COLLIDE_FLOATS ? size : size + FLOATS_PER_LINE;
}

/* The same from one point to the next. */
static int64_t point_size(int64_t tiles, int64_t channels)
{
    const int64_t size = tiles * winograd_row_size(channels);
    return size % COLLIDE_FLOATS ? size : size + FLOATS_PER_LINE;
}

typedef struct tile_grid {
    int64_t high, wide, count; /* tiles of an image of one remainder along each axis, of all images */
    int64_t blocks;
} tile_grid;

static tile_grid tiles_of(const winograd_shape *s, winograd_tactic t)
{
    tile_grid g = { .high = winograd_tiles_along(s, 0, t.out), .wide = winograd_tiles_along(s, 1, t.out) };
    g.count = s->images * winograd_step(s, 0) * winograd_step(s, 1) * g.high * g.wide;
    g.blocks = t.phased || !t.tiles ? 1 : ceil_div(g.count, t.tiles);
    return g;
}

/* Tiles that are in memory at once. */
static int64_t tiles_held(const winograd_shape *s, winograd_tactic t)
{
    const int64_t count = tiles_of(s, t).count;
    return t.phased ? count : i64_min(count, t.tiles);
}

static size_t floats_size(size_t count)
{
    return size_align(size_mul(count, sizeof(float)), 64);
}

/* Bytes of data and of products for all points. Their rows are made up to lines, so this is not bounded by the tensors.
 */
static size_t stage_size(const winograd_shape *s, winograd_tactic t, int64_t channels)
{
    const size_t tiles = (size_t)tiles_held(s, t);
    const size_t point = size_add(size_mul(tiles, (size_t)winograd_row_size(channels)), FLOATS_PER_LINE);
    return floats_size(size_mul(point, (size_t)winograd_points(s, t.out)));
}

const char *winograd_shape_check(const winograd_shape *s)
{
    const int64_t in[] = { s->images, s->in[0], s->in[1], s->c_in };
    const int64_t out[] = { s->images, s->out[0], s->out[1], s->c_out };
    const int64_t weights[] = { WINOGRAD_POINTS_MAX, s->c_in, s->c_out };
    if (!gemm_counts_fit(in, 4, true) || !gemm_counts_fit(out, 4, true) || !gemm_counts_fit(weights, 3, false)) {
        return "sizes of the convolution are negative or too large";
    }
    for (int i = 0; i < 2; i++) {
        const int64_t most = (int64_t)1 << 31;
        if (s->out[i] > most || s->pad[i] < 0 || s->pad[i] > most) return "sizes or pads are out of range";
        if (winograd_step(s, i) > WINOGRAD_STEP_MAX) return "a dilation is out of range";
    }
    const int64_t taps = winograd_taps(s);
    if (taps != 3 && taps != 5) return "the filter has neither three nor five taps along an axis";
    for (int i = 0; i < 2; i++)
        if (s->filter[i] != 1 && s->filter[i] != taps) return "the filter is neither a square nor a line";
    return NULL;
}

const char *winograd_tactic_check(isa_level isa, const winograd_shape *s, winograd_tactic t)
{
    static const uint8_t zero[sizeof t.zero];
    if (t.out != 4 && (t.out != 2 || winograd_taps(s) == 5)) return "tiles of so many points are not known";
    if (t.phased > 1 || memcmp(t.zero, zero, sizeof zero) != 0) return "reserved bits are set";
    if (t.phased == (t.tiles != 0)) return "blocks of tiles and phases exclude each other";
    if (t.gemm.copy_a) return "data is never copied";
    const gemm_shape g = { .m = 1, .n = s->c_out, .k = s->c_in, .taps = 1, .a_row = s->c_in, .a_col = 1 };
    return gemm_tactic_check(isa, &g, t.gemm);
}

int winograd_tactic_print(char *text, size_t size, isa_level isa, winograd_tactic t)
{
    const int width = t.gemm.vectors * level_of(isa)->gemm->lanes;
    if (t.phased) return snprintf(text, size, "f%u %ux%d n%u phased", t.out, t.gemm.rows, width, t.gemm.block_n);
    return snprintf(text, size, "f%u %ux%d n%u t%u", t.out, t.gemm.rows, width, t.gemm.block_n, t.tiles);
}

/* ---- filters ---- */

/* One line of a filter, of `taps` numbers, at the points of the tile. */
static void filter_line(int64_t taps, int out, const double *g, int64_t g_step, double *to, int64_t step)
{
    to[0] = g[0];
    if (taps == 1) return;
    const double g0 = g[0], g1 = g[g_step], g2 = g[2 * g_step];
    const double g3 = taps == 5 ? g[3 * g_step] : 0, g4 = taps == 5 ? g[4 * g_step] : 0;
    if (out == 2) {
        to[step] = 0.5 * (g0 + g1 + g2);
        to[2 * step] = 0.5 * (g0 - g1 + g2);
        to[3 * step] = g2;
        return;
    }
    /* g(p) over the product of p's distances to the other points. */
    const double p = 0.625, q = 1.5, pp = p * p, qq = q * q;
    const double at_p = 1 / (2 * pp * (pp - qq)), at_q = 1 / (2 * qq * (qq - pp));
    to[0] = g0 / (pp * qq);
    to[step] = (g0 + pp * (g2 + pp * g4) + p * (g1 + pp * g3)) * at_p;
    to[2 * step] = (g0 + pp * (g2 + pp * g4) - p * (g1 + pp * g3)) * at_p;
    to[3 * step] = (g0 + qq * (g2 + qq * g4) + q * (g1 + qq * g3)) * at_q;
    to[4 * step] = (g0 + qq * (g2 + qq * g4) - q * (g1 + qq * g3)) * at_q;
    to[5 * step] = taps == 5 ? g4 : g2;
}

size_t winograd_pack_size(isa_level isa, const winograd_shape *s, winograd_tactic t)
{
    return size_mul(gemm_pack_size(isa, t.gemm, 1, s->c_in, s->c_out), (size_t)winograd_points(s, t.out));
}

void winograd_pack(isa_level isa, const winograd_shape *s, winograd_tactic t, const float *w, const int64_t w_stride[4],
                   float *dst)
{
    const gemm_grid g = gemm_grid_of(level_of(isa)->gemm, t.gemm, 1, s->c_out);
    const int64_t points = winograd_points(s, t.out), high = s->filter[0], wide = s->filter[1];
    const int64_t points_high = winograd_points_along(s, 0, t.out), points_wide = winograd_points_along(s, 1, t.out);
    const size_t point = gemm_pack_size(isa, t.gemm, 1, s->c_in, s->c_out) / sizeof(float);
    memset(dst, 0, point * (size_t)points * sizeof(float));
    for (int64_t panel = 0; panel < g.panels; panel++) {
        const int64_t col = panel * g.width, cols = i64_min(s->c_out - col, g.width);
        const int64_t width = ceil_div(cols, g.lanes) * g.lanes;
        float *to = dst + gemm_panel_at(&g, 1, s->c_in, s->c_out, panel);
        for (int64_t k = 0; k < s->c_in; k++, to += width) {
            for (int64_t j = 0; j < cols; j++) {
                const float *from = w + (col + j) * w_stride[0] + k * w_stride[1];
                double filter[25], half[30], whole[WINOGRAD_POINTS_MAX];
                for (int64_t i = 0; i < high * wide; i++)
                    filter[i] = (double)from[i / wide * w_stride[2] + i % wide * w_stride[3]];
                for (int64_t i = 0; i < wide; i++) filter_line(high, t.out, filter + i, wide, half + i, wide);
                for (int64_t i = 0; i < points_high; i++)
                    filter_line(wide, t.out, half + wide * i, 1, whole + points_wide * i, 1);
                for (int64_t i = 0; i < points; i++) to[(size_t)i * point + (size_t)j] = (float)whole[i];
            }
        }
    }
}

/* ---- memory and work items ---- */

size_t winograd_workspace_size(const winograd_params *p)
{
    if (!p->tactic.phased) return 0;
    return size_add(stage_size(&p->shape, p->tactic, p->shape.c_in), stage_size(&p->shape, p->tactic, p->shape.c_out));
}

static size_t core_scratch(const winograd_params *p)
{
    return gemm_core_scratch_size(level_of(p->isa)->gemm, p->tactic.gemm, 1, p->shape.c_in, false);
}

size_t winograd_scratch_size(const winograd_params *p)
{
    const size_t size = size_add(core_scratch(p), floats_size((size_t)p->shape.c_in));
    if (p->tactic.phased) return size;
    return size_add(size, size_add(stage_size(&p->shape, p->tactic, p->shape.c_in),
                                   stage_size(&p->shape, p->tactic, p->shape.c_out)));
}

int winograd_phase_count(const winograd_params *p)
{
    return p->tactic.phased ? 3 : 1;
}

static gemm_grid product_grid(const winograd_params *p, int64_t tiles)
{
    gemm_tactic t = p->tactic.gemm;
    t.block_m = 0;
    return gemm_grid_of(level_of(p->isa)->gemm, t, tiles, p->shape.c_out);
}

int64_t winograd_tile_count(const winograd_params *p, int phase)
{
    const tile_grid g = tiles_of(&p->shape, p->tactic);
    if (g.count == 0) return 0;
    if (!p->tactic.phased) return g.blocks;
    const int64_t points = winograd_points(&p->shape, p->tactic.out);
    return phase == 1 ? points * product_grid(p, g.count).n_blocks : ceil_div(g.count, CHUNK);
}

/* ---- the stages, for tiles [begin, end), of which the first lies at the beginning of the memory ---- */

typedef struct stage {
    const winograd_params *p;
    tile_grid g;
    int64_t held; /* tiles that the memory was cut for */
    float *v, *m; /* data and products                 */
    const float *zeros;
} stage;

typedef struct tile_at {
    int64_t image, y, x; /* of its first result */
} tile_at;

static tile_at tile_of(const stage *t, int64_t tile)
{
    const winograd_shape *s = &t->p->shape;
    const int64_t row = tile / t->g.wide, part = row / t->g.high;
    const int64_t high = winograd_step(s, 0), wide = winograd_step(s, 1);
    const int64_t out_high = winograd_out_along(s, 0, t->p->tactic.out);
    const int64_t out_wide = winograd_out_along(s, 1, t->p->tactic.out);
    return (tile_at){ .image = part / (high * wide),
                      .y = part / wide % high + row % t->g.high * out_high * high,
                      .x = part % wide + tile % t->g.wide * out_wide * wide };
}

/* How many of `count` results from `at` on there are. */
static int64_t results_left(const winograd_shape *s, int axis, int64_t at, int64_t count)
{
    return at >= s->out[axis] ? 0 : i64_min(count, ceil_div(s->out[axis] - at, winograd_step(s, axis)));
}

static void stage_input(const stage *t, int64_t begin, int64_t end, float *v)
{
    const winograd_params *p = t->p;
    const winograd_shape *s = &p->shape;
    const int64_t row = winograd_row_size(s->c_in), point = point_size(t->held, s->c_in);
    const int64_t high = winograd_points_along(s, 0, p->tactic.out), wide = winograd_points_along(s, 1, p->tactic.out);
    const winograd_set *set = level_of(p->isa)->winograd;
    for (int64_t tile = begin; tile < end; tile++, v += row) {
        const tile_at at = tile_of(t, tile);
        const float *image = p->x + at.image * s->x_image;
        const float *pixels[WINOGRAD_POINTS_MAX];
        for (int64_t i = 0; i < high; i++) {
            const int64_t y = at.y + i * winograd_step(s, 0) - s->pad[0];
            const bool inside = y >= 0 && y < s->in[0];
            for (int64_t j = 0; j < wide; j++) {
                const int64_t x = at.x + j * winograd_step(s, 1) - s->pad[1];
                pixels[i * wide + j] =
                    inside && x >= 0 && x < s->in[1] ? image + y * s->x_dim[0] + x * s->x_dim[1] : t->zeros;
            }
        }
        set->input[winograd_is_line(s)][p->tactic.out == 4](pixels, s->c_in, v, point);
    }
}

typedef struct product_rows {
    const float *v;
    int64_t row;
} product_rows;

static void product_rows_fill(const void *source, int64_t row, int32_t rows, const void **out)
{
    const product_rows *r = source;
    for (int32_t i = 0; i < rows; i++) out[i] = r->v + (row + i) * r->row;
}

/* Blocks [n_begin, n_end) of panels at one point. */
static void stage_product(const stage *t, int64_t point, int64_t tiles, int64_t n_begin, int64_t n_end, void *scratch)
{
    static const gemm_epilogue none;
    const winograd_params *p = t->p;
    const winograd_shape *s = &p->shape;
    const product_rows rows = { .v = t->v + point * point_size(t->held, s->c_in), .row = winograd_row_size(s->c_in) };
    const size_t packed = gemm_pack_size(p->isa, p->tactic.gemm, 1, s->c_in, s->c_out) / sizeof(float);
    const gemm_grid g = product_grid(p, tiles);
    const gemm_core core = {
        .set = level_of(p->isa)->gemm,
        .tactic = p->tactic.gemm,
        .rows = product_rows_fill,
        .source = &rows,
        .m = tiles,
        .n = s->c_out,
        .k = s->c_in,
        .taps = 1,
        .a_row = rows.row,
        .a_col = 1,
        .b = p->w + (size_t)point * packed,
        .b_words = (winograd_points(s, p->tactic.out) - point) * (int64_t)packed,
        .c = t->m + point * point_size(t->held, s->c_out),
        .ldc = winograd_row_size(s->c_out),
        .epilogue = &none,
    };
    for (int64_t i = n_begin; i < n_end; i++) gemm_core_block(&core, &g, 0, i, 0, scratch, NULL);
}

/* The hook sees runs of neighbouring tiles, one row of pixels after the other, while they are near. */
static void post_run(const stage *t, int64_t tile, int64_t count, void *post_user)
{
    const winograd_params *p = t->p;
    const winograd_shape *s = &p->shape;
    const tile_at at = tile_of(t, tile);
    const int64_t rows = results_left(s, 0, at.y, winograd_out_along(s, 0, p->tactic.out));
    const int64_t pixels = results_left(s, 1, at.x, count * winograd_out_along(s, 1, p->tactic.out));
    const int64_t step = winograd_step(s, 1);
    const int64_t calls = step > 1 ? pixels : pixels > 0, each = step > 1 ? 1 : pixels;
    for (int64_t i = 0; i < rows; i++) {
        int64_t pixel = (at.image * s->out[0] + at.y + i * winograd_step(s, 0)) * s->out[1] + at.x;
        for (int64_t j = 0; j < calls; j++, pixel += step)
            p->epilogue.post(post_user, 0, pixel, each, 0, s->c_out, p->y + pixel * p->ldy, p->ldy);
    }
}

static void stage_output(const stage *t, int64_t begin, int64_t end, const float *m, void *post_user)
{
    const winograd_params *p = t->p;
    const winograd_shape *s = &p->shape;
    const gemm_epilogue *e = &p->epilogue;
    const winograd_set *set = level_of(p->isa)->winograd;
    winograd_out o = {
        .m = m,
        .m_point = point_size(t->held, s->c_out),
        .bias = e->bias,
        .channels = s->c_out,
        .y_row = p->ldy * s->out[1] * winograd_step(s, 0),
        .y_pixel = p->ldy * winograd_step(s, 1),
        .r_row = e->ldr * s->out[1] * winograd_step(s, 0),
        .r_pixel = e->ldr * winograd_step(s, 1),
        .clip = e->clip,
        .lo = e->lo,
        .hi = e->hi,
    };
    const int kind = winograd_taps(s) == 5 ? 2 : p->tactic.out == 4;
    const bool is_column = s->filter[1] == 1; /* a line down the image */
    if (is_column) {
        o.y_pixel = o.y_row;
        o.r_pixel = o.r_row;
    }
    int64_t fresh = begin; /* the first tile that the hook has not seen */
    for (int64_t tile = begin; tile < end; tile++, o.m += winograd_row_size(s->c_out)) {
        const tile_at at = tile_of(t, tile);
        const int64_t pixel = (at.image * s->out[0] + at.y) * s->out[1] + at.x;
        o.y = p->y + pixel * p->ldy;
        o.residual = e->residual ? e->residual + pixel * e->ldr : NULL;
        const int32_t rows = (int32_t)results_left(s, 0, at.y, winograd_out_along(s, 0, p->tactic.out));
        const int32_t cols = (int32_t)results_left(s, 1, at.x, winograd_out_along(s, 1, p->tactic.out));
        o.rows = is_column ? cols : rows;
        o.cols = is_column ? rows : cols;
        if (rows && cols) set->output[winograd_is_line(s)][kind](&o);
        const int64_t next = tile + 1;
        if (e->post && (next == end || next % t->g.wide == 0 || next - fresh == CHUNK)) {
            post_run(t, fresh, next - fresh, post_user);
            fresh = next;
        }
    }
}

void winograd_run(const winograd_params *p, int phase, int64_t begin, int64_t end, void *workspace, void *scratch,
                  void *post_user)
{
    if (begin >= end) return;
    const winograd_shape *s = &p->shape;
    const int64_t points = winograd_points(s, p->tactic.out);
    float *zeros = (float *)((char *)scratch + core_scratch(p));
    float *memory = zeros + floats_size((size_t)s->c_in) / sizeof(float);
    stage t = { .p = p, .g = tiles_of(s, p->tactic), .held = tiles_held(s, p->tactic), .zeros = zeros };
    t.v = p->tactic.phased ? workspace : memory;
    t.m = t.v + stage_size(s, p->tactic, s->c_in) / sizeof(float);
    if (!p->tactic.phased || phase == 0) memset(zeros, 0, (size_t)s->c_in * sizeof(float));
    if (p->tactic.phased && phase == 1) {
        const int64_t blocks = product_grid(p, t.g.count).n_blocks;
        for (int64_t i = begin; i < end; i++) {
            stage_product(&t, i / blocks, t.g.count, i % blocks, i % blocks + 1, scratch);
        }
        return;
    }
    if (p->tactic.phased) {
        const int64_t first = begin * CHUNK, last = i64_min(end * CHUNK, t.g.count);
        if (phase == 0) stage_input(&t, first, last, t.v + first * winograd_row_size(s->c_in));
        else stage_output(&t, first, last, t.m + first * winograd_row_size(s->c_out), post_user);
        return;
    }
    for (int64_t block = begin; block < end; block++) {
        const int64_t first = t.g.count * block / t.g.blocks, last = t.g.count * (block + 1) / t.g.blocks;
        const int64_t n_blocks = product_grid(p, last - first).n_blocks;
        stage_input(&t, first, last, t.v);
        for (int64_t point = 0; point < points; point++) stage_product(&t, point, last - first, 0, n_blocks, scratch);
        stage_output(&t, first, last, t.m, post_user);
    }
}
