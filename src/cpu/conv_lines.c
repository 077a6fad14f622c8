/* SPDX-License-Identifier: Apache-2.0 */
/* conv_lines.c - convolutions of few channels, such as first layers: the lines that a filter's rows meet are copied,
 * channel by channel, with their padding, and every term of a row of output pixels lies in them at a fixed place.
 *
 * The next row of pixels has most of these lines, too: a line is copied once by whoever computes all rows that meet
 * it. Where pixels are further apart than a kernel's steps, columns of a line are sorted into as many parts: the pixels
 * of a row then lie side by side in each part. */
#include "cpu/conv_lines.h"
#include "base/env.h"
#include "cpu/cpu_move.h"
#include <string.h>

enum { LINES_HIGH_MAX = 16, LINES_CHANNELS_MAX = 8, LINES_PARTS_MAX = 16 };

/* Padded lines or columns from the first to the last tap of an output. */
static int64_t reach_of(const conv_shape *s, int axis)
{
    return (s->kernel[axis] - 1) * s->dilation[axis] + 1;
}

/* Column x of a line lies in part x % parts, at x / parts. */
static int64_t parts_of(const conv_shape *s)
{
    return s->stride[2] > GEMM_STEPS_MAX ? s->stride[2] : 1;
}

/* Floats of a part from pixel to pixel. */
static int64_t step_of(const conv_shape *s)
{
    return s->stride[2] / parts_of(s);
}

const char *conv_lines_check(isa_level isa, const conv_shape *s, conv_tactic t)
{
    if (s->groups != 1 || s->kernel[0] != 1) return "lines are of one group, without depth";
    if (reach_of(s, 1) > LINES_HIGH_MAX || s->c_in > LINES_CHANNELS_MAX) return "too many lines";
    if (s->stride[2] > LINES_PARTS_MAX) return "pixels are too far apart";
    if (s->dilation[2] > LINES_HIGH_MAX) return "taps are too far apart";
    if (t.gemm.unit != GEMM_F32 || t.gemm.copy_a || t.gemm.ahead || t.gemm.block_m || t.gemm.block_n || s->is_converted)
        return "no tactic of lines";
    const gemm_tile_set *set = gemm_set_of(isa, t.gemm);
    if (!set || t.gemm.vectors < 1 || t.gemm.vectors > GEMM_VECTORS_MAX) return "panel width is not 1 to 4 vectors";
    if (!set->lines[step_of(s) - 1][t.gemm.vectors - 1]) return "the instruction set has no such kernel";
    return t.gemm.rows == set->rows_max[t.gemm.vectors - 1] ? NULL : "the register tile has another height";
}

int conv_lines_tactics(isa_level isa, const conv_shape *s, conv_tactic *out)
{
    const gemm_tile_set *set = gemm_unit_set(isa, s->unit);
    int count = 0;
    for (int v = 1; v <= GEMM_VECTORS_MAX; v++) {
        if (v > 1 && s->c_out <= (int64_t)(v - 1) * set->lanes) break;
        const conv_tactic t = { .path = CONV_LINES,
                                .gemm = { .vectors = (uint8_t)v & 15u,
                                          .unit = (uint8_t)s->unit & 15u,
                                          .rows = (uint8_t)set->rows_max[v - 1] } };
        if (!conv_lines_check(isa, s, t)) out[count++] = t;
    }
    return count;
}

/* Floats of a part of a copied line: the last tile reads its pixels to the full height of a register tile. Parts begin
 * an odd number of cache lines apart. */
static int64_t part_size(const conv_shape *s)
{
    const int64_t pixels = (s->out[2] + GEMM_UNIT_ROWS) * step_of(s) + (reach_of(s, 2) - 1) / parts_of(s) + 1;
    return (pixels + 15) / 16 * 16 | 16;
}

static int64_t line_size(const conv_shape *s)
{
    return parts_of(s) * part_size(s);
}

static int64_t term_count(const conv_shape *s)
{
    return s->kernel[1] * s->kernel[2] * s->c_in;
}

static size_t lines_size(const conv_shape *s)
{
    const size_t lines = size_mul((size_t)(reach_of(s, 1) * s->c_in), (size_t)line_size(s));
    return size_align(size_mul(lines, sizeof(float)), 64);
}

static size_t places_size(const conv_shape *s)
{
    return size_align(size_mul((size_t)term_count(s), sizeof(int64_t)), 64);
}

size_t conv_lines_scratch_size(const conv_params *p)
{
    const gemm_tile_set *set = gemm_set_of(p->isa, p->tactic.gemm);
    const size_t own = size_add(lines_size(&p->shape), places_size(&p->shape));
    return size_add(own, gemm_core_scratch_size(set, p->tactic.gemm, 1, term_count(&p->shape), p->epilogue.drain));
}

int64_t conv_lines_tile_count(const conv_shape *s)
{
    return s->images * s->out[0] * s->out[1];
}

/* Columns [begin, end) of every part lie in the image; the two are equal where parts have none in common. */
static void parts_inside(const conv_shape *s, int64_t *begin, int64_t *end)
{
    const int64_t parts = parts_of(s), pad = s->pad[2];
    *begin = pad > 0 ? (pad + parts - 1) / parts : 0;
    *end = pad + s->in[2] > 0 ? (pad + s->in[2]) / parts : 0;
    if (*end > part_size(s)) *end = part_size(s);
    if (*end < *begin) *end = *begin;
}

/* Line y of every channel; y and z may lie outside the image. */
static void lines_copy(const conv_params *p, int64_t image, int64_t z, int64_t y, float *to)
{
    const conv_shape *s = &p->shape;
    const int64_t size = part_size(s), parts = parts_of(s), step = parts * s->x_dim[2];
    const bool is_inside = z >= 0 && z < s->in[0] && y >= 0 && y < s->in[1];
    const float *line = (const float *)p->x + image * s->x_image + z * s->x_dim[0] + y * s->x_dim[1];
    int64_t begin = 0, end = 0; /* columns that all parts have are sorted together */
    if (is_inside && parts > 1 && s->x_dim[2] == 1) parts_inside(s, &begin, &end);
    for (int64_t c = 0; c < s->c_in; c++, line += s->x_c) {
        if (begin < end)
            move_transpose(4, (char *)(to + begin), size * 4, (const char *)(line + begin * parts - s->pad[2]),
                           parts * 4, parts, end - begin);
        for (int64_t part = 0; part < parts; part++, to += size) {
            const int64_t before = s->pad[2] - part; /* columns of padding in front of this part's first one */
            int64_t first = before > 0 ? (before + parts - 1) / parts : 0; /* the first that lies in the image */
            if (first > size || !is_inside) first = size;
            const int64_t at = first * parts - before, left = at < s->in[2] ? (s->in[2] - at - 1) / parts + 1 : 0;
            const int64_t count = first == size ? 0 : left < size - first ? left : size - first;
            memset(to, 0, (size_t)first * sizeof *to);
            memset(to + first + count, 0, (size_t)(size - first - count) * sizeof *to);
            if (!count) continue;
            const float *pixels = line + at * s->x_dim[2];
            if (step == 1) memcpy(to + first, pixels, (size_t)count * sizeof *to);
            else {
                const int64_t stop = first + count, skip = begin < end ? begin : stop, on = begin < end ? end : stop;
                for (int64_t x = first; x < skip; x++) to[x] = pixels[(x - first) * step];
                for (int64_t x = on; x < stop; x++) to[x] = pixels[(x - first) * step];
            }
        }
    }
}

/* Where the terms of the first output pixel lie, when padded line top is in slot top % reach. */
static void places_make(const conv_shape *s, int64_t top, int64_t *at)
{
    const int64_t size = line_size(s), parts = parts_of(s);
    for (int64_t h = 0; h < s->kernel[1]; h++) {
        const int64_t slot = (top + h * s->dilation[1]) % reach_of(s, 1) * s->c_in;
        for (int64_t w = 0; w < s->kernel[2]; w++) {
            const int64_t col = w * s->dilation[2], in_line = col % parts * part_size(s) + col / parts;
            for (int64_t c = 0; c < s->c_in; c++) *at++ = ((slot + c) * size + in_line) * (int64_t)sizeof(float);
        }
    }
}

void conv_lines_run(const conv_params *p, int64_t begin, int64_t end, void *scratch, void *post_user)
{
    const conv_shape *s = &p->shape;
    const gemm_epilogue *e = &p->epilogue;
    float *lines = scratch;
    int64_t *at = (int64_t *)(void *)((char *)scratch + lines_size(s));
    void *own = (char *)at + places_size(s);
    const gemm_tile_set *set = gemm_set_of(p->isa, p->tactic.gemm);
    const gemm_grid g = gemm_grid_of(set, p->tactic.gemm, s->out[2], s->c_out);
    if (!g.m_blocks || !g.n_blocks) return;
    struct {
        int64_t plane, line;
    } held[LINES_HIGH_MAX]; /* what is in each slot */
    for (int i = 0; i < LINES_HIGH_MAX; i++) held[i].plane = held[i].line = -1;
    gemm_core core = {
        .set = set,
        .tactic = p->tactic.gemm,
        .line = (const char *)lines,
        .at = at,
        .step = (int32_t)step_of(s),
        .m = s->out[2],
        .n = s->c_out,
        .k = term_count(s),
        .taps = 1,
        .a_col = 1,
        .b = p->w,
        .ldc = p->ldy,
        .bias = e->bias,
        .epilogue = e,
    };
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t plane = tile / s->out[1], image = plane / s->out[0], top = tile % s->out[1] * s->stride[1];
        const int64_t z = plane % s->out[0] * s->stride[0] - s->pad[0];
        for (int64_t h = 0; h < s->kernel[1]; h++) {
            const int64_t at_line = top + h * s->dilation[1], slot = at_line % reach_of(s, 1);
            if (held[slot].plane == plane && held[slot].line == at_line) continue;
            held[slot].plane = plane;
            held[slot].line = at_line;
            lines_copy(p, image, z, at_line - s->pad[1], lines + slot * s->c_in * line_size(s));
        }
        places_make(s, top, at);
        core.row = tile * s->out[2];
        core.c = (float *)p->y + core.row * p->ldy;
        core.residual = e->residual ? e->residual + core.row * e->ldr : NULL;
        gemm_core_block(&core, &g, 0, 0, 0, own, post_user);
    }
}
