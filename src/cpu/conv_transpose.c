/* SPDX-License-Identifier: Apache-2.0 */
/* conv_transpose.c - transposed convolution as one stride-1 convolution for each class of output pixels.
 *
 * Output o gets x[i] * w[k] wherever o + pad == i * stride + k * dilation. So with q = (o + pad) mod stride, the taps
 * of o are those with k * dilation mod stride == q, and neighbours of a class read neighbouring inputs. */
#include "cpu/conv_transpose.h"
#include "cpu/level.h"
#include "base/env.h"
#include "cpu/gemm_core.h"
#include <string.h>

enum { POST_FLOATS = 2048 };

/* One axis of one class. */
typedef struct axis_class {
    int64_t q, taps, taps_before; /* its taps, and those of the classes before it on this axis */
    int64_t tap, tap_step;        /* its first tap, and from each to the next                  */
    int64_t first, count;         /* its outputs: first, first + stride, ...                   */
} axis_class;

static axis_class class_of(const conv_shape *s, int axis, int64_t q)
{
    const int64_t stride = s->stride[axis];
    axis_class c = { .q = q, .tap = s->kernel[axis], .tap_step = s->kernel[axis] };
    for (int64_t k = 0; k < s->kernel[axis]; k++) {
        const int64_t rest = k * s->dilation[axis] % stride;
        c.taps_before += rest < q;
        if (rest != q) continue;
        if (!c.taps) c.tap = k;
        else if (c.taps == 1) c.tap_step = k - c.tap;
        c.taps++;
    }
    c.first = ((q - s->pad[axis]) % stride + stride) % stride;
    c.count = c.first < s->out[axis] ? (s->out[axis] - c.first - 1) / stride + 1 : 0;
    return c;
}

static int64_t taps_total(const conv_shape *s)
{
    return s->kernel[0] * s->kernel[1] * s->kernel[2];
}

/* The classes of each axis, as far as there is room: each takes several divisions. */
enum { CLASSES = 8 };
typedef struct class_table {
    axis_class at[3][CLASSES];
} class_table;

static void classes_fill(const conv_shape *s, class_table *to)
{
    for (int axis = 0; axis < 3; axis++)
        for (int64_t q = 0; q < CLASSES && q < s->stride[axis]; q++) to->at[axis][q] = class_of(s, axis, q);
}

static axis_class class_in(const class_table *t, const conv_shape *s, int axis, int64_t q)
{
    return (uint64_t)q < CLASSES ? t->at[axis][q] : class_of(s, axis, q);
}

/* Taps of all classes that are packed before this one. */
static int64_t taps_before(const conv_shape *s, const axis_class c[3])
{
    return c[0].taps_before * s->kernel[1] * s->kernel[2] +
           c[0].taps * (c[1].taps_before * s->kernel[2] + c[1].taps * c[2].taps_before);
}

static gemm_shape product_of(const conv_shape *s)
{
    gemm_shape g = { .m = (s->out[2] + s->stride[2] - 1) / s->stride[2],
                     .n = s->c_out / s->groups,
                     .k = s->c_in / s->groups,
                     .taps = 1,
                     .a_row = s->x_dim[2],
                     .a_col = 1,
                     .cache = s->cache };
    for (int i = 0; i < 3; i++) g.taps *= (s->kernel[i] + s->stride[i] - 1) / s->stride[i];
    return g;
}

int conv_transpose_tactics(isa_level isa, const conv_shape *s, gemm_tactic out[GEMM_TACTICS_MAX])
{
    const gemm_shape g = product_of(s);
    return gemm_tactics(isa, &g, out);
}

const char *conv_transpose_tactic_check(isa_level isa, const conv_shape *s, gemm_tactic tactic)
{
    if (s->x_c != 1) return "channels of the input are not adjacent";
    const gemm_shape g = product_of(s);
    return gemm_tactic_check(isa, &g, tactic);
}

double conv_transpose_cost(isa_level isa, const conv_shape *s, gemm_tactic tactic)
{
    const gemm_shape g = product_of(s);
    const double rows = (double)s->images * (double)s->out[0] * (double)s->out[1] * (double)s->stride[2];
    return gemm_cost(isa, &g, tactic) * rows * (double)s->groups;
}

/* Floats of one tap over all output channels of a group. */
static int64_t tap_floats(const gemm_grid *g, const conv_shape *s)
{
    return gemm_panel_at(g, 1, s->c_in / s->groups, s->c_out / s->groups, g->panels);
}

size_t conv_transpose_pack_size(isa_level isa, const conv_shape *s, gemm_tactic tactic)
{
    const size_t group = gemm_pack_size(isa, tactic, taps_total(s), s->c_in / s->groups, s->c_out / s->groups);
    return size_mul(group, (size_t)s->groups);
}

static void class_pack(const gemm_tile_set *set, const gemm_grid *g, const conv_shape *s, const axis_class c[3],
                       const float *w, const int64_t w_stride[5], float *dst)
{
    const int64_t k = s->c_in / s->groups, n = s->c_out / s->groups;
    for (int64_t panel = 0; panel < g->panels; panel++) {
        const int64_t col = panel * g->width, left = n - col < g->width ? n - col : g->width;
        const int64_t width = (left + g->lanes - 1) / g->lanes * g->lanes;
        for (int64_t tap = 0; tap < taps_total(s); tap++) {
            const int64_t at[3] = { tap / (s->kernel[1] * s->kernel[2]), tap / s->kernel[2] % s->kernel[1],
                                    tap % s->kernel[2] };
            bool ours = true;
            const float *from = w + col * w_stride[1];
            for (int i = 0; i < 3; i++) {
                ours = ours && at[i] * s->dilation[i] % s->stride[i] == c[i].q;
                from += at[i] * w_stride[2 + i];
            }
            if (!ours) continue;
            set->pack(dst, from, k, (int32_t)left, (int32_t)width, w_stride[0], w_stride[1]);
            dst += k * width;
        }
    }
}

void conv_transpose_pack(isa_level isa, const conv_shape *s, gemm_tactic tactic, const float *w,
                         const int64_t w_stride[5], float *dst)
{
    const gemm_tile_set *set = level_of(isa)->gemm;
    const int64_t k = s->c_in / s->groups, n = s->c_out / s->groups;
    const gemm_grid g = gemm_grid_of(set, tactic, 1, n);
    const size_t group_size = gemm_pack_size(isa, tactic, taps_total(s), k, n) / sizeof(float);
    for (int64_t group = 0; group < s->groups; group++) {
        const float *from = w + group * k * w_stride[0];
        float *to = dst + (size_t)group * group_size;
        for (int64_t q = 0; q < s->stride[0] * s->stride[1] * s->stride[2]; q++) {
            const axis_class c[3] = { class_of(s, 0, q / (s->stride[1] * s->stride[2])),
                                      class_of(s, 1, q / s->stride[2] % s->stride[1]),
                                      class_of(s, 2, q % s->stride[2]) };
            class_pack(set, &g, s, c, from, w_stride, to + taps_before(s, c) * tap_floats(&g, s));
        }
    }
}

static size_t zeros_size(const conv_shape *s)
{
    return size_align(size_mul((size_t)(s->c_in / s->groups), sizeof(float)), 64);
}

size_t conv_transpose_scratch_size(const conv_transpose_params *p)
{
    const conv_shape *s = &p->shape;
    return size_add(zeros_size(s), gemm_core_scratch_size(level_of(p->isa)->gemm, p->tactic, taps_total(s),
                                                          s->c_in / s->groups, false));
}

static gemm_grid columns_of(const conv_transpose_params *p)
{
    return gemm_grid_of(level_of(p->isa)->gemm, p->tactic, 1, p->shape.c_out / p->shape.groups);
}

int64_t conv_transpose_tile_count(const conv_transpose_params *p)
{
    const conv_shape *s = &p->shape;
    return s->groups * columns_of(p).n_blocks * s->images * s->out[0] * s->out[1];
}

/* Where the rows of A lie for one class of one output row. */
typedef struct gather_rows {
    const conv_shape *s;
    const axis_class *c;
    const float *x, *zeros; /* the image */
    int64_t z, y;           /* of the output */
} gather_rows;

static void gather_rows_fill(const void *source, int64_t row, int32_t rows, const void **out)
{
    const gather_rows *r = source;
    const conv_shape *s = r->s;
    for (int64_t d = r->c[0].tap; d < s->kernel[0]; d += r->c[0].tap_step) {
        const int64_t in_z = (r->z + s->pad[0] - d * s->dilation[0]) / s->stride[0];
        for (int64_t h = r->c[1].tap; h < s->kernel[1]; h += r->c[1].tap_step) {
            const int64_t in_y = (r->y + s->pad[1] - h * s->dilation[1]) / s->stride[1];
            const bool inside = in_z >= 0 && in_z < s->in[0] && in_y >= 0 && in_y < s->in[1];
            for (int64_t w = r->c[2].tap; w < s->kernel[2]; w += r->c[2].tap_step) {
                int64_t in_x = (r->c[2].first + s->pad[2] - w * s->dilation[2]) / s->stride[2] + row;
                for (int32_t i = 0; i < rows; i++, in_x++) {
                    *out++ = inside && in_x >= 0 && in_x < s->in[2]
                                 ? r->x + in_z * s->x_dim[0] + in_y * s->x_dim[1] + in_x * s->x_dim[2]
                                 : r->zeros;
                }
            }
        }
    }
}

/* Rows are handed out class by class, so that neighbours read the same weights. Returns the index-th. */
static int64_t row_in_class_order(const class_table *t, const conv_shape *s, int axis, int64_t index)
{
    for (int64_t q = 0; q < s->stride[axis]; q++) {
        const axis_class c = class_in(t, s, axis, q);
        if (index < c.count) return c.first + index * s->stride[axis];
        index -= c.count;
    }
    return 0;
}

static void row_run(const conv_transpose_params *p, const class_table *classes, const gemm_grid *columns, int64_t tile,
                    void *scratch, void *post_user)
{
    const conv_shape *s = &p->shape;
    const gemm_tile_set *set = level_of(p->isa)->gemm;
    const int64_t k = s->c_in / s->groups, n = s->c_out / s->groups, per_row = s->images * s->out[0];
    const int64_t image = tile % s->images, z = tile / s->images % s->out[0];
    const int64_t y = row_in_class_order(classes, s, 1, tile / per_row % s->out[1]);
    const int64_t n_block = tile / (per_row * s->out[1]) % columns->n_blocks;
    const int64_t group = tile / (per_row * s->out[1] * columns->n_blocks);
    const size_t group_size = gemm_pack_size(p->isa, p->tactic, taps_total(s), k, n) / sizeof(float);
    const int64_t pixel = ((image * s->out[0] + z) * s->out[1] + y) * s->out[2];
    axis_class c[3] = { class_in(classes, s, 0, (z + s->pad[0]) % s->stride[0]),
                        class_in(classes, s, 1, (y + s->pad[1]) % s->stride[1]) };
    gemm_tactic whole = p->tactic; /* beginning a block takes as long as a small register tile */
    whole.block_m = 0;
    gemm_epilogue e = p->epilogue;
    e.post = NULL; /* called below, when the whole row is there */
    e.ldr *= s->stride[2];
    for (int64_t q = 0; q < s->stride[2]; q++) {
        c[2] = class_in(classes, s, 2, q);
        const int64_t taps = c[0].taps * c[1].taps * c[2].taps;
        const gather_rows rows = {
            .s = s, .c = c, .x = p->x + image * s->x_image + group * k, .zeros = scratch, .z = z, .y = y
        };
        const int64_t at = pixel + c[2].first;
        const gemm_core core = {
            .set = set,
            .tactic = whole,
            .rows = gather_rows_fill,
            .source = &rows,
            .m = c[2].count,
            .n = n,
            .k = k,
            .taps = taps,
            .a_row = s->x_dim[2],
            .a_col = 1,
            .b = p->w + (size_t)group * group_size + (size_t)(taps_before(s, c) * tap_floats(columns, s)),
            .c = p->y + at * p->ldy + group * n,
            .ldc = p->ldy * s->stride[2],
            .bias = e.bias ? e.bias + group * n : NULL,
            .residual = e.residual ? e.residual + at * p->epilogue.ldr + group * n : NULL,
            .epilogue = &e,
            .zeros = taps > 1 ? scratch : NULL,
        };
        const gemm_grid g = gemm_grid_of(set, whole, core.m, n);
        for (int64_t m = 0; m < g.m_blocks; m++) { /* one, or none */
            gemm_core_block(&core, &g, m, n_block, 0, (char *)scratch + zeros_size(s), NULL);
        }
    }
    if (!p->epilogue.post) return;
    const int64_t col = columns->panels * n_block / columns->n_blocks * columns->width;
    const int64_t end = columns->panels * (n_block + 1) / columns->n_blocks * columns->width;
    const int64_t cols = (end < n ? end : n) - col;
    int64_t step = POST_FLOATS / cols;
    if (step < 1) step = 1;
    for (int64_t x = 0; x < s->out[2]; x += step) {
        const int64_t rows = s->out[2] - x < step ? s->out[2] - x : step;
        p->epilogue.post(post_user, 0, pixel + x, rows, group * n + col, cols,
                         p->y + (pixel + x) * p->ldy + group * n + col, p->ldy);
    }
}

void conv_transpose_run(const conv_transpose_params *p, int64_t begin, int64_t end, void *scratch, void *post_user)
{
    const gemm_grid columns = columns_of(p);
    class_table classes;
    classes_fill(&p->shape, &classes);
    memset(scratch, 0, zeros_size(&p->shape));
    for (int64_t tile = begin; tile < end; tile++) row_run(p, &classes, &columns, tile, scratch, post_user);
}
