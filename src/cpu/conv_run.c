/* SPDX-License-Identifier: Apache-2.0 */
/* conv_run.c - convolution as a product whose rows of A are pointers into the image.
 *
 * M is every output pixel of every image, so register tiles run over the ends of output rows and small images fill them
 * as well as large ones. The only cost is the list of pointers, made once for a register tile and used by all panels.
 */
#include "base/env.h"
#include "cpu/conv_lines.h"
#include "cpu/cpu_move.h"
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
static bool runs_merge(const conv_shape *s, conv_tactic t)
{
    return s->groups == 1 && s->dilation[2] == 1 && !gemm_unit_splits((gemm_unit)t.gemm.unit);
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

/* Bytes of a term, or of one of its parts. */
static int64_t term_size(conv_tactic t)
{
    return sinter_dtype_bits(gemm_unit_type((gemm_unit)t.gemm.unit)) / 8 /
           (gemm_unit_splits((gemm_unit)t.gemm.unit) ? 2 : 1);
}

static conv_inner inner_of(const conv_shape *s, conv_tactic t)
{
    const int64_t k = s->c_in / s->groups;
    if (t.path == CONV_LINES) return (conv_inner){ .taps = 1, .k = volume(s->kernel) * k };
    if (t.path == CONV_ROWS && runs_merge(s, t)) {
        const int64_t all = s->kernel[2] * k, terms = s->has_zeros ? 4 / term_size(t) : 1;
        return (conv_inner){ .taps = s->kernel[0] * s->kernel[1], .k = (all + terms - 1) / terms * terms };
    }
    return (conv_inner){ .taps = volume(s->kernel), .k = k };
}

/* Bytes of an element of the input where it lies. */
static int64_t x_size_of(const conv_params *p)
{
    const sinter_dtype t = p->x_type == SINTER_DTYPE_NONE ? gemm_unit_type((gemm_unit)p->tactic.gemm.unit) : p->x_type;
    return sinter_dtype_bits(t) / 8;
}

static gemm_grid grid_of(const conv_params *p)
{
    const conv_shape *s = &p->shape;
    return gemm_grid_of(gemm_set_of(p->isa, p->tactic.gemm), p->tactic.gemm, pixel_count(s), s->c_out / s->groups);
}

static size_t group_size_of(isa_level isa, const conv_shape *s, conv_tactic tactic)
{
    const conv_inner inner = inner_of(s, tactic);
    return gemm_pack_size(isa, tactic.gemm, inner.taps, inner.k, s->c_out / s->groups);
}

size_t conv_pack_size(isa_level isa, const conv_shape *s, conv_tactic tactic)
{
    return size_mul(group_size_of(isa, s, tactic), (size_t)s->groups);
}

/* Words whose terms belong to neighbouring taps of a row. w: the first column's first term. */
static void pack_run(const gemm_tile_set *set, const conv_shape *s, const char *w, const int64_t w_stride[5],
                     int64_t cols, int64_t width, char *to)
{
    const int64_t size = gemm_b_size(set), term = 4 / set->terms, k = s->c_in / s->groups, all = k * s->kernel[2];
    memset(to, 0, (size_t)(gemm_words(set, all) * width * 4));
    for (int64_t i = 0; i < all; i++) {
        const char *from = w + (i / k * w_stride[4] + i % k * w_stride[1]) * size;
        for (int64_t j = 0; j < cols; j++) {
            char *at = to + gemm_word_at(set, all, width, i / set->terms, j) * 4 + i % set->terms * term;
            const char *one = from + j * w_stride[0] * size;
            if (size == term) memcpy(at, one, (size_t)size);
            else memcpy(at, &(int16_t){ *(const int8_t *)one }, sizeof(int16_t));
        }
    }
}

void conv_pack(isa_level isa, const conv_shape *s, conv_tactic tactic, const void *w, const int64_t w_stride[5],
               void *dst)
{
    const gemm_tile_set *set = gemm_set_of(isa, tactic.gemm);
    const int64_t k = s->c_in / s->groups, n = s->c_out / s->groups, size = gemm_b_size(set);
    const gemm_grid g = gemm_grid_of(set, tactic.gemm, 1, n);
    const bool is_run = set->terms > 1 && tactic.path == CONV_ROWS && runs_merge(s, tactic) && s->kernel[2] > 1;
    for (int64_t group = 0; group < s->groups; group++) {
        char *to = (char *)dst + (size_t)group * group_size_of(isa, s, tactic);
        for (int64_t panel = 0; panel < g.panels; panel++) {
            const int64_t col = panel * g.width, left = n - col < g.width ? n - col : g.width;
            const int64_t width = (left + g.lanes - 1) / g.lanes * g.lanes;
            const char *from = (const char *)w + (group * n + col) * w_stride[0] * size;
            for (int64_t d = 0; d < s->kernel[0]; d++) {
                for (int64_t h = 0; h < s->kernel[1]; h++) {
                    const char *row = from + (d * w_stride[2] + h * w_stride[3]) * size;
                    if (is_run) {
                        pack_run(set, s, row, w_stride, left, width, to);
                        to += gemm_words(set, k * s->kernel[2]) * width * 4;
                        continue;
                    }
                    for (int64_t x = 0; x < s->kernel[2]; x++, to += gemm_words(set, k) * width * 4)
                        set->pack(to, row + x * w_stride[4] * size, k, (int32_t)left, (int32_t)width, w_stride[1],
                                  w_stride[0]);
                }
            }
        }
    }
}

/* Bytes of the padded image, or of one part of it. */
static size_t padded_size(const conv_params *p)
{
    int64_t dims[3];
    padded_dims(&p->shape, dims);
    size_t size = size_mul((size_t)p->shape.images, (size_t)term_size(p->tactic));
    for (int i = 0; i < 3; i++) size = size_mul(size, (size_t)dims[i]);
    /* The last pixel is read to the end of a word. */
    return size_align(size_add(size_mul(size, (size_t)p->shape.c_in), 4), 64);
}

size_t conv_workspace_size(const conv_params *p)
{
    if (p->tactic.path != CONV_ROWS) return 0;
    return size_mul(padded_size(p), (size_t)gemm_parts_of(gemm_set_of(p->isa, p->tactic.gemm)));
}

static size_t zeros_size(const conv_params *p)
{
    if (p->tactic.path != CONV_TAPS) return 0;
    return size_align(size_mul((size_t)(p->shape.c_in / p->shape.groups), sizeof(float)), 64);
}

size_t conv_scratch_size(const conv_params *p)
{
    if (p->tactic.path == CONV_LINES) return conv_lines_scratch_size(p);
    const conv_inner inner = inner_of(&p->shape, p->tactic);
    return size_add(zeros_size(p), gemm_core_scratch_size(gemm_set_of(p->isa, p->tactic.gemm), p->tactic.gemm,
                                                          inner.taps, inner.k, p->epilogue.drain));
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
    if (p->tactic.path == CONV_LINES) return conv_lines_tile_count(&p->shape);
    const gemm_grid g = grid_of(p);
    return p->shape.groups * g.m_blocks * g.n_blocks;
}

typedef uint32_t words __attribute__((vector_size(16)));

/* Pixels of three channels of 4 bytes, four at a time. Returns how many of `count` were joined. */
static int64_t join_three(const char *red, const char *green, const char *blue, int64_t count, char *to)
{
    int64_t x = 0;
    for (; x + 4 <= count; x += 4, to += 48) {
        words r, g, b;
        memcpy(&r, red + 4 * x, sizeof r);
        memcpy(&g, green + 4 * x, sizeof g);
        memcpy(&b, blue + 4 * x, sizeof b);
        const words low = __builtin_shufflevector(r, g, 0, 4, 1, 5), mid = __builtin_shufflevector(g, b, 1, 5, 2, 6);
        const words high = __builtin_shufflevector(__builtin_shufflevector(r, g, 2, 6, 3, 7), b, 2, 3, 6, 7);
        const words y[3] = { __builtin_shufflevector(low, b, 0, 1, 4, 2), __builtin_shufflevector(mid, r, 0, 1, 6, 2),
                             __builtin_shufflevector(high, high, 2, 0, 1, 3) };
        memcpy(to, y, sizeof y);
    }
    return x;
}

/* Channels [0, channels) of `count` pixels of any strides; in blocks, so that lines written to are still near for the
 * next channel. to_step: elements from pixel to pixel. */
#define PIXELS_GATHER(type)                                                                                            \
    static void pixels_gather_##type(const type *from, int64_t x_step, int64_t c_step, int64_t count,                  \
                                     int64_t channels, type *to, int64_t to_step)                                      \
    {                                                                                                                  \
        if (channels == 3) {                                                                                           \
            const type *r = from, *g = from + c_step, *b = g + c_step;                                                 \
            const bool is_dense = sizeof(type) == 4 && x_step == 1 && to_step == 3;                                    \
            const int64_t done =                                                                                       \
                is_dense ? join_three((const char *)r, (const char *)g, (const char *)b, count, (char *)to) : 0;       \
            to += done * to_step;                                                                                      \
            for (int64_t x = done; x < count; x++, to += to_step) {                                                    \
                to[0] = r[x * x_step];                                                                                 \
                to[1] = g[x * x_step];                                                                                 \
                to[2] = b[x * x_step];                                                                                 \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t x = 0; x < count; x += PIXELS) {                                                                  \
            const int64_t end = count - x < PIXELS ? count : x + PIXELS;                                               \
            for (int64_t c = 0; c < channels; c++)                                                                     \
                for (int64_t i = x; i < end; i++) to[i * to_step + c] = from[c * c_step + i * x_step];                 \
        }                                                                                                              \
    }
enum { PIXELS = 16, CHANNELS = 64 };
PIXELS_GATHER(uint32_t)
PIXELS_GATHER(uint16_t)
PIXELS_GATHER(uint8_t)

static void pixels_gather(const conv_shape *s, const char *from, int64_t size, int64_t count, int64_t channels,
                          char *to, int64_t to_step)
{
    const int64_t step = s->x_dim[2];
    if (step == 1 && channels > 3) {
        for (int64_t x = 0; x < count; x += PIXELS) {
            const int64_t pixels = count - x < PIXELS ? count - x : PIXELS;
            for (int64_t c = 0; c < channels; c += PIXELS)
                move_transpose((uint32_t)size, to + (x * to_step + c) * size, to_step * size,
                               from + (c * s->x_c + x) * size, s->x_c * size, pixels,
                               channels - c < PIXELS ? channels - c : PIXELS);
        }
        return;
    }
    if (size == 4)
        pixels_gather_uint32_t((const uint32_t *)(const void *)from, step, s->x_c, count, channels,
                               (uint32_t *)(void *)to, to_step);
    else if (size == 2)
        pixels_gather_uint16_t((const uint16_t *)(const void *)from, step, s->x_c, count, channels,
                               (uint16_t *)(void *)to, to_step);
    else pixels_gather_uint8_t((const uint8_t *)from, step, s->x_c, count, channels, (uint8_t *)to, to_step);
}

/* Copies `count` pixels into a dense row, in the type of the terms. plane: bytes from part to part. */
static void row_gather(const conv_params *p, gemm_load_fn *load, const char *from, int64_t count, char *to,
                       int64_t plane)
{
    const conv_shape *s = &p->shape;
    const gemm_tile_set *set = gemm_set_of(p->isa, p->tactic.gemm);
    const int64_t size = x_size_of(p), term = term_size(p->tactic), channels = s->c_in;
    if (s->x_c == 1 && s->x_dim[2] == channels) {
        gemm_terms_copy(set, load, to, plane, from, count * channels, size);
        return;
    }
    if (!load && !set->split) {
        pixels_gather(s, from, size, count, channels, to, channels);
        return;
    }
    _Alignas(64) char part[PIXELS * CHANNELS * sizeof(float)];
    for (int64_t x = 0; x < count; x += PIXELS) {
        const int64_t pixels = count - x < PIXELS ? count - x : PIXELS;
        for (int64_t c = 0; c < channels; c += CHANNELS) {
            const int64_t some = channels - c < CHANNELS ? channels - c : CHANNELS;
            pixels_gather(s, from + (x * s->x_dim[2] + c * s->x_c) * size, size, pixels, some, part, some);
            if (some == channels) {
                gemm_terms_copy(set, load, to + x * channels * term, plane, part, pixels * channels, size);
                continue;
            }
            for (int64_t i = 0; i < pixels; i++)
                gemm_terms_copy(set, load, to + ((x + i) * channels + c) * term, plane, part + i * some * size, some,
                                size);
        }
    }
}

/* Fills `size` bytes of elements of a type with what padding is. */
static void pad_fill(sinter_dtype type, uint8_t byte, char *to, int64_t size)
{
    if (type != SINTER_DTYPE_I16) {
        memset(to, byte, (size_t)size);
        return;
    }
    int16_t *wide = (int16_t *)(void *)to;
    for (int64_t i = 0; i < size / 2; i++) wide[i] = byte;
}

/* The same in each part of a padded copy. */
static void parts_fill(const conv_params *p, uint8_t byte, char *to, int64_t plane, int64_t pixels)
{
    const sinter_dtype type = gemm_unit_type((gemm_unit)p->tactic.gemm.unit);
    const int64_t size = pixels * p->shape.c_in * term_size(p->tactic),
                  parts = gemm_parts_of(gemm_set_of(p->isa, p->tactic.gemm));
    for (int64_t part = 0; part < parts; part++) pad_fill(type, byte, to + part * plane, size);
}

/* Copies rows [begin, end) of the padded image, whatever the strides of the input. */
static void pad_rows(const conv_params *p, int64_t begin, int64_t end, char *padded)
{
    const conv_shape *s = &p->shape;
    int64_t dims[3];
    padded_dims(s, dims);
    gemm_load_fn *load;
    (void)gemm_load_of(p->isa, (gemm_unit)p->tactic.gemm.unit, p->x_type, &load);
    uint8_t fill = p->pad_byte;
    if (p->x_type == SINTER_DTYPE_I8) fill ^= 0x80u;
    const int64_t pixel = s->c_in * term_size(p->tactic), row_size = dims[2] * pixel, size = x_size_of(p);
    const int64_t plane = (int64_t)padded_size(p);
    for (int64_t row = begin; row < end; row++) {
        const int64_t image = row / (dims[0] * dims[1]);
        const int64_t d = row / dims[1] % dims[0] - s->pad[0], h = row % dims[1] - s->pad[1];
        char *to = padded + row * row_size;
        if (d < 0 || d >= s->in[0] || h < 0 || h >= s->in[1]) {
            parts_fill(p, fill, to, plane, dims[2]);
            continue;
        }
        const char *from = (const char *)p->x + (image * s->x_image + d * s->x_dim[0] + h * s->x_dim[1]) * size;
        const int64_t pad = s->pad[2], cut = pad < 0 ? -pad : 0, left = s->in[2] > cut ? s->in[2] - cut : 0;
        const int64_t before = pad < 0 ? 0 : pad < dims[2] ? pad : dims[2];
        const int64_t inside = left < dims[2] - before ? left : dims[2] - before;
        from += cut * s->x_dim[2] * size;
        const int64_t after = dims[2] - before - inside;
        parts_fill(p, fill, to, plane, before);
        to += before * pixel;
        row_gather(p, load, from, inside, to, plane);
        parts_fill(p, fill, to + inside * pixel, plane, after);
    }
}

/* The pointers that were made last, for the group that begins at x. */
enum { KEPT = 256 };
typedef struct rows_kept {
    int64_t row;
    int32_t rows; /* 0: none */
    const char *x;
    const void *at[KEPT];
} rows_kept;

/* Where the rows of A lie: an image (padded or not) and the walk over output pixels. */
typedef struct conv_rows {
    const conv_shape *s;
    const char *x, *zeros;
    int64_t image, dim[3]; /* strides of x in bytes                 */
    int64_t in[3], pad[3]; /* of x: the padded copy has no padding  */
    int64_t kernel[3];     /* taps that are told apart              */
    rows_kept *kept;       /* NULL: there is one group              */
    bool is_dense;         /* rows of A are the pixels, in order    */
} conv_rows;

/* The pointers of one tap for `count` neighbouring output pixels of a row; input column of the first is `x`. */
static void tap_fill(const conv_rows *r, const char *line, int64_t x, int64_t count, const void **out)
{
    const int64_t stride = r->s->stride[2], step = stride * r->dim[2];
    const char *pixel = line + x * r->dim[2];
    if (x >= 0 && x + (count - 1) * stride < r->in[2]) {
        for (int64_t i = 0; i < count; i++) out[i] = pixel + i * step;
        return;
    }
    for (int64_t i = 0; i < count; i++, x += stride) out[i] = x >= 0 && x < r->in[2] ? line + x * r->dim[2] : r->zeros;
}

static void rows_make(const conv_rows *r, int64_t row, int32_t rows, const void **out)
{
    const conv_shape *s = r->s;
    int64_t x = row % s->out[2], y = row / s->out[2];
    for (int64_t done = 0; done < rows; x = 0, y++) { /* a part of one output row at a time; y counts over images */
        const int64_t left = rows - done, count = s->out[2] - x < left ? s->out[2] - x : left;
        const int64_t z = y / s->out[1];
        const int64_t in_z = z % s->out[0] * s->stride[0] - r->pad[0], in_y = y % s->out[1] * s->stride[1] - r->pad[1];
        const int64_t in_x = x * s->stride[2] - r->pad[2];
        const char *plane = r->x + z / s->out[0] * r->image;
        const void **to = out + done;
        for (int64_t d = 0; d < r->kernel[0]; d++) {
            const int64_t at_z = in_z + d * s->dilation[0];
            for (int64_t h = 0; h < r->kernel[1]; h++) {
                const int64_t at_y = in_y + h * s->dilation[1];
                const bool inside = at_z >= 0 && at_z < r->in[0] && at_y >= 0 && at_y < r->in[1];
                const char *line = inside ? plane + at_z * r->dim[0] + at_y * r->dim[1] : NULL;
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

/* The pointers of a group are those of the group before, moved by its channels. */
static void conv_rows_fill(const void *source, int64_t row, int32_t rows, const void **out)
{
    const conv_rows *r = source;
    rows_kept *kept = r->kept;
    if (r->is_dense) {
        const char *at = r->x + row * r->dim[2];
        for (int32_t i = 0; i < rows; i++) out[i] = at + i * r->dim[2];
        return;
    }
    const int64_t count = rows * volume(r->kernel);
    if (!kept || count > KEPT) {
        rows_make(r, row, rows, out);
        return;
    }
    if (kept->row != row || kept->rows != rows) {
        rows_make(r, row, rows, kept->at);
        kept->row = row;
        kept->rows = rows;
        kept->x = r->x;
    }
    const int64_t moved = r->x - kept->x;
    for (int64_t i = 0; i < count; i++) {
        const char *at = kept->at[i];
        out[i] = at == r->zeros ? at : at + moved;
    }
}

/* Whether every output pixel is one of the input, at a fixed distance from the one before. */
static bool rows_are_dense(const conv_rows *r)
{
    const conv_shape *s = r->s;
    const int64_t distance[] = { r->image, r->dim[0], r->dim[1] }, count[] = { s->images, s->in[0], s->in[1] };
    int64_t next = r->dim[2] * s->in[2];
    for (int i = 2; i >= 0; i--) {
        if (s->kernel[i] != 1 || s->stride[i] != 1 || s->pad[i] != 0 || s->in[i] != s->out[i]) return false;
        if (count[i] > 1 && distance[i] != next) return false;
        next *= count[i];
    }
    return true;
}

/* The column's element of that of the two that there is; else NULL. */
static const void *column(const float *wide, const uint16_t *narrow, int64_t col)
{
    return narrow ? (const void *)(narrow + col) : wide ? wide + col : NULL;
}

void conv_run(const conv_params *p, int phase, int64_t begin, int64_t end, void *workspace, void *scratch,
              void *post_user)
{
    if (begin >= end) return;
    if (p->tactic.path == CONV_ROWS && phase == 0) {
        pad_rows(p, begin, end, workspace);
        return;
    }
    if (p->tactic.path == CONV_LINES) {
        conv_lines_run(p, begin, end, scratch, post_user);
        return;
    }
    const conv_shape *s = &p->shape;
    const conv_inner inner = inner_of(&p->shape, p->tactic);
    const gemm_grid g = grid_of(p);
    const int64_t k = s->c_in / s->groups, n = s->c_out / s->groups;
    const size_t pack_size = group_size_of(p->isa, s, p->tactic);
    const bool is_copied = p->tactic.path == CONV_ROWS;
    const int64_t term = term_size(p->tactic), size = is_copied ? term : x_size_of(p);
    char *zeros = scratch;
    const sinter_dtype x_type =
        p->x_type == SINTER_DTYPE_NONE ? gemm_unit_type((gemm_unit)p->tactic.gemm.unit) : p->x_type;
    if (!is_copied) pad_fill(x_type, p->pad_byte, zeros, k * (int64_t)sizeof(float));
    gemm_load_fn *load = NULL;
    if (!is_copied) (void)gemm_load_of(p->isa, (gemm_unit)p->tactic.gemm.unit, p->x_type, &load);

    conv_rows rows = { .s = s, .x = p->x, .zeros = zeros, .image = s->x_image * size };
    for (int i = 0; i < 3; i++) {
        rows.dim[i] = s->x_dim[i] * size;
        rows.in[i] = s->in[i];
        rows.pad[i] = s->pad[i];
        rows.kernel[i] = s->kernel[i];
    }
    if (is_copied) {
        int64_t dims[3];
        padded_dims(s, dims);
        rows.x = workspace;
        rows.dim[2] = s->c_in * size;
        rows.dim[1] = dims[2] * rows.dim[2];
        rows.dim[0] = dims[1] * rows.dim[1];
        rows.image = dims[0] * rows.dim[0];
        for (int i = 0; i < 3; i++) {
            rows.in[i] = dims[i];
            rows.pad[i] = 0;
        }
        if (runs_merge(s, p->tactic)) rows.kernel[2] = 1;
    }
    rows.is_dense = !is_copied && rows_are_dense(&rows);
    /* Signed integers have 128 added where they are copied. */
    const bool adds_nothing = !p->pad_byte && p->x_type != SINTER_DTYPE_I8;
    const char *image = rows.x;
    const gemm_tile_set *set = gemm_set_of(p->isa, p->tactic.gemm);
    int32_t state = 0;
    rows_kept kept = { .rows = 0 };
    if (s->groups > 1) rows.kept = &kept;
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t group = tile % s->groups, block = tile / s->groups;
        const int64_t n_block = block / g.m_blocks, m_block = block % g.m_blocks;
        rows.x = image + group * k * size;
        const gemm_core core = {
            .set = set,
            .state = &state,
            .tactic = p->tactic.gemm,
            .rows = conv_rows_fill,
            .source = &rows,
            .m = pixel_count(s),
            .n = n,
            .k = inner.k,
            .taps = inner.taps,
            .a_row = s->stride[2] * rows.dim[2] / size,
            .a_col = 1,
            .load = load,
            .a_size = size,
            .plane = is_copied && set->split ? (int64_t)padded_size(p) : 0,
            .b_words = (s->groups - group) * (int64_t)(pack_size / sizeof(float)),
            .b = (const char *)p->w + (size_t)group * pack_size,
            .c = (char *)p->y + group * n * (p->narrow_y ? 2 : 4),
            .ldc = p->ldy,
            .narrow_c = p->narrow_y,
            .bias = column(p->epilogue.bias, p->epilogue.narrow_bias, group * n),
            .residual = column(p->epilogue.residual, p->epilogue.narrow_residual, group * n),
            .epilogue = &p->epilogue,
            .col = group * n,
            .zeros = !is_copied && inner.taps > 1 && adds_nothing ? zeros : NULL,
        };
        gemm_core_block(&core, &g, m_block, n_block, 0, (char *)scratch + zeros_size(p), post_user);
    }
    if (state) set->give_back();
}
