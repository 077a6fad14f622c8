/* SPDX-License-Identifier: Apache-2.0 */
/* conv_run.c - convolution as a product whose rows of A are pointers into the image.
 *
 * M is every output pixel of every image, so register tiles run over the ends of output rows and small images fill them
 * as well as large ones. The only cost is the list of pointers, made once for a register tile and used by all panels.
 */
#include "base/env.h"
#include "cpu/conv.h"
#include "cpu/gemm_core.h"
#include "cpu/level.h"
#include <string.h>

static int64_t volume(const int64_t d[3])
{
    return d[0] * d[1] * d[2];
}
static int64_t pixel_count(const conv_shape *s)
{
    return s->images * volume(s->out);
}

/* In path `rows` the taps of a kernel row are one run where they lie side by side. */
static bool runs_merge(const conv_shape *s)
{
    return s->groups == 1 && s->dilation[2] == 1;
}

/* The padded copy holds exactly the pixels that taps read: none where there is no result. */
static void padded_dims(const conv_shape *s, int64_t dims[3])
{
    for (int i = 0; i < 3; i++)
        dims[i] = s->out[i] ? (s->out[i] - 1) * s->stride[i] + (s->kernel[i] - 1) * s->dilation[i] + 1 : 0;
}

typedef struct conv_inner {
    int64_t taps, k; /* as the micro-kernel sees them */
} conv_inner;

static conv_inner inner_of(const conv_params *p)
{
    const conv_shape *s = &p->shape;
    const int64_t k = s->c_in / s->groups;
    if (p->tactic.path == CONV_ROWS && runs_merge(s)) {
        return (conv_inner){ .taps = s->kernel[0] * s->kernel[1], .k = s->kernel[2] * k };
    }
    return (conv_inner){ .taps = volume(s->kernel), .k = k };
}

static gemm_grid grid_of(const conv_params *p)
{
    const conv_shape *s = &p->shape;
    return gemm_grid_of(level_of(p->isa)->gemm, p->tactic.gemm, pixel_count(s), s->c_out / s->groups);
}

size_t conv_pack_size(isa_level isa, const conv_shape *s, conv_tactic tactic)
{
    const size_t group = gemm_pack_size(isa, tactic.gemm, volume(s->kernel), s->c_in / s->groups, s->c_out / s->groups);
    return size_mul(group, (size_t)s->groups);
}

void conv_pack(isa_level isa, const conv_shape *s, conv_tactic tactic, const float *w, const int64_t w_stride[5],
               float *dst)
{
    const gemm_tile_set *set = level_of(isa)->gemm;
    const int64_t k = s->c_in / s->groups, n = s->c_out / s->groups;
    const gemm_grid g = gemm_grid_of(set, tactic.gemm, 1, n);
    const size_t group_size = gemm_pack_size(isa, tactic.gemm, volume(s->kernel), k, n) / sizeof(float);
    for (int64_t group = 0; group < s->groups; group++) {
        float *to = dst + (size_t)group * group_size;
        for (int64_t panel = 0; panel < g.panels; panel++) {
            const int64_t col = panel * g.width, left = n - col < g.width ? n - col : g.width;
            const int64_t width = (left + g.lanes - 1) / g.lanes * g.lanes;
            const float *from = w + (group * n + col) * w_stride[0];
            for (int64_t d = 0; d < s->kernel[0]; d++) {
                for (int64_t h = 0; h < s->kernel[1]; h++) {
                    for (int64_t x = 0; x < s->kernel[2]; x++, to += k * width) {
                        set->pack(to, from + d * w_stride[2] + h * w_stride[3] + x * w_stride[4], k, (int32_t)left,
                                  (int32_t)width, w_stride[1], w_stride[0]);
                    }
                }
            }
        }
    }
}

size_t conv_workspace_size(const conv_params *p)
{
    if (p->tactic.path != CONV_ROWS) return 0;
    int64_t dims[3];
    padded_dims(&p->shape, dims);
    size_t size = size_mul((size_t)p->shape.images, sizeof(float));
    for (int i = 0; i < 3; i++) size = size_mul(size, (size_t)dims[i]);
    return size_align(size_mul(size, (size_t)p->shape.c_in), 64);
}

static size_t zeros_size(const conv_params *p)
{
    if (p->tactic.path == CONV_ROWS) return 0;
    return size_align(size_mul((size_t)(p->shape.c_in / p->shape.groups), sizeof(float)), 64);
}

size_t conv_scratch_size(const conv_params *p)
{
    const conv_inner inner = inner_of(p);
    return size_add(zeros_size(p), gemm_core_scratch_size(level_of(p->isa)->gemm, p->tactic.gemm, inner.taps, inner.k));
}

int conv_phase_count(const conv_params *p)
{
    return p->tactic.path == CONV_ROWS ? 2 : 1;
}

int64_t conv_tile_count(const conv_params *p, int phase)
{
    if (p->tactic.path == CONV_ROWS && phase == 0) {
        int64_t dims[3];
        padded_dims(&p->shape, dims);
        return p->shape.images * dims[0] * dims[1];
    }
    const gemm_grid g = grid_of(p);
    return p->shape.groups * g.m_blocks * g.n_blocks;
}

/* Copies `count` pixels of any strides; in blocks, so that lines written to are still near for the next channel. */
static void row_gather(const conv_shape *s, const float *from, int64_t count, float *to)
{
    enum { BLOCK = 16 };
    const int64_t channels = s->c_in, step = s->x_dim[2];
    if (channels == 3) {
        const float *r = from, *g = from + s->x_c, *b = g + s->x_c;
        for (int64_t x = 0; x < count; x++, to += 3) {
            to[0] = r[x * step];
            to[1] = g[x * step];
            to[2] = b[x * step];
        }
        return;
    }
    for (int64_t x = 0; x < count; x += BLOCK) {
        const int64_t end = count - x < BLOCK ? count : x + BLOCK;
        for (int64_t c = 0; c < channels; c++) {
            for (int64_t i = x; i < end; i++) to[i * channels + c] = from[c * s->x_c + i * step];
        }
    }
}

/* Copies rows [begin, end) of the padded image, whatever the strides of the input. */
static void pad_rows(const conv_params *p, int64_t begin, int64_t end, float *padded)
{
    const conv_shape *s = &p->shape;
    int64_t dims[3];
    padded_dims(s, dims);
    const int64_t channels = s->c_in, row_size = dims[2] * channels;
    for (int64_t row = begin; row < end; row++) {
        const int64_t image = row / (dims[0] * dims[1]);
        const int64_t d = row / dims[1] % dims[0] - s->pad[0], h = row % dims[1] - s->pad[1];
        float *to = padded + row * row_size;
        if (d < 0 || d >= s->in[0] || h < 0 || h >= s->in[1]) {
            memset(to, 0, (size_t)row_size * sizeof(float));
            continue;
        }
        const float *from = p->x + image * s->x_image + d * s->x_dim[0] + h * s->x_dim[1];
        const int64_t before = s->pad[2] < dims[2] ? s->pad[2] : dims[2];
        const int64_t inside = s->in[2] < dims[2] - before ? s->in[2] : dims[2] - before;
        const int64_t after = dims[2] - before - inside;
        memset(to, 0, (size_t)(before * channels) * sizeof(float));
        to += before * channels;
        if (s->x_c == 1 && s->x_dim[2] == channels) {
            memcpy(to, from, (size_t)(inside * channels) * sizeof(float));
        } else {
            row_gather(s, from, inside, to);
        }
        memset(to + inside * channels, 0, (size_t)(after * channels) * sizeof(float));
    }
}

/* Where the rows of A lie: an image (padded or not) and the walk over output pixels. */
typedef struct conv_rows {
    const conv_shape *s;
    const float *x, *zeros;
    int64_t image, dim[3]; /* strides of x                          */
    int64_t in[3], pad[3]; /* of x: the padded copy has no padding  */
    int64_t kernel[3];     /* taps that are told apart              */
} conv_rows;

/* The pointers of one tap for `count` neighbouring output pixels of a row; input column of the first is `x`. */
static void tap_fill(const conv_rows *r, const float *line, int64_t x, int64_t count, const float **out)
{
    const int64_t stride = r->s->stride[2], step = stride * r->dim[2];
    const float *pixel = line + x * r->dim[2];
    if (x >= 0 && x + (count - 1) * stride < r->in[2]) {
        for (int64_t i = 0; i < count; i++) out[i] = pixel + i * step;
        return;
    }
    for (int64_t i = 0; i < count; i++, x += stride) out[i] = x >= 0 && x < r->in[2] ? line + x * r->dim[2] : r->zeros;
}

static void conv_rows_fill(const void *source, int64_t row, int32_t rows, const float **out)
{
    const conv_rows *r = source;
    const conv_shape *s = r->s;
    int64_t x = row % s->out[2], y = row / s->out[2];
    for (int64_t done = 0; done < rows; x = 0, y++) { /* a part of one output row at a time; y counts over images */
        const int64_t left = rows - done, count = s->out[2] - x < left ? s->out[2] - x : left;
        const int64_t z = y / s->out[1];
        const int64_t in_z = z % s->out[0] * s->stride[0] - r->pad[0], in_y = y % s->out[1] * s->stride[1] - r->pad[1];
        const int64_t in_x = x * s->stride[2] - r->pad[2];
        const float *plane = r->x + z / s->out[0] * r->image;
        const float **to = out + done;
        for (int64_t d = 0; d < r->kernel[0]; d++) {
            const int64_t at_z = in_z + d * s->dilation[0];
            for (int64_t h = 0; h < r->kernel[1]; h++) {
                const int64_t at_y = in_y + h * s->dilation[1];
                const bool inside = at_z >= 0 && at_z < r->in[0] && at_y >= 0 && at_y < r->in[1];
                const float *line = inside ? plane + at_z * r->dim[0] + at_y * r->dim[1] : NULL;
                for (int64_t w = 0; w < r->kernel[2]; w++, to += rows) {
                    if (inside) {
                        tap_fill(r, line, in_x + w * s->dilation[2], count, to);
                    } else {
                        for (int64_t i = 0; i < count; i++) to[i] = r->zeros;
                    }
                }
            }
        }
        done += count;
    }
}

void conv_run(const conv_params *p, int phase, int64_t begin, int64_t end, void *workspace, void *scratch,
              void *post_user)
{
    if (begin >= end) return;
    if (p->tactic.path == CONV_ROWS && phase == 0) {
        pad_rows(p, begin, end, workspace);
        return;
    }
    const conv_shape *s = &p->shape;
    const conv_inner inner = inner_of(p);
    const gemm_grid g = grid_of(p);
    const int64_t k = s->c_in / s->groups, n = s->c_out / s->groups, blocks = g.m_blocks * g.n_blocks;
    const size_t pack_size = gemm_pack_size(p->isa, p->tactic.gemm, volume(s->kernel), k, n) / sizeof(float);
    float *zeros = scratch;
    memset(zeros, 0, zeros_size(p));

    conv_rows rows = { .s = s, .x = p->x, .zeros = zeros, .image = s->x_image };
    for (int i = 0; i < 3; i++) {
        rows.dim[i] = s->x_dim[i];
        rows.in[i] = s->in[i];
        rows.pad[i] = s->pad[i];
        rows.kernel[i] = s->kernel[i];
    }
    if (p->tactic.path == CONV_ROWS) {
        int64_t dims[3];
        padded_dims(s, dims);
        rows.x = workspace;
        rows.dim[2] = s->c_in;
        rows.dim[1] = dims[2] * rows.dim[2];
        rows.dim[0] = dims[1] * rows.dim[1];
        rows.image = dims[0] * rows.dim[0];
        for (int i = 0; i < 3; i++) {
            rows.in[i] = dims[i];
            rows.pad[i] = 0;
        }
        if (runs_merge(s)) rows.kernel[2] = 1;
    }
    const float *image = rows.x;
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t group = tile / blocks, n_block = tile % blocks / g.m_blocks, m_block = tile % g.m_blocks;
        rows.x = image + group * k;
        const gemm_core core = {
            .set = level_of(p->isa)->gemm,
            .tactic = p->tactic.gemm,
            .rows = conv_rows_fill,
            .source = &rows,
            .m = pixel_count(s),
            .n = n,
            .k = inner.k,
            .taps = inner.taps,
            .a_row = s->stride[2] * rows.dim[2],
            .a_col = 1,
            .b = p->w + (size_t)group * pack_size,
            .c = p->y + group * n,
            .ldc = p->ldy,
            .bias = p->epilogue.bias ? p->epilogue.bias + group * n : NULL,
            .residual = p->epilogue.residual ? p->epilogue.residual + group * n : NULL,
            .epilogue = &p->epilogue,
            .col = group * n,
            .zeros = p->tactic.path == CONV_TAPS && inner.taps > 1 ? zeros : NULL,
        };
        gemm_core_block(&core, &g, m_block, n_block, 0, (char *)scratch + zeros_size(p), post_user);
    }
}
