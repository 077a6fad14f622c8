/* SPDX-License-Identifier: Apache-2.0 */
/* plane_band.c - parts of planes between zeros: sizes, places of taps, and the copy. */
#include "cpu/plane_band.h"

static int64_t reach(const conv_shape *s, int axis)
{
    return (s->kernel[axis] - 1) * s->dilation[axis] + 1;
}

static int64_t rows_of(const conv_shape *s, int axis, int64_t out)
{
    return (out - 1) * s->stride[axis] + reach(s, axis);
}

plane_band plane_band_of(const conv_shape *s, int64_t deep, int64_t high)
{
    plane_band b = { .out = { deep, high }, .rows = { rows_of(s, 0, deep), rows_of(s, 1, high) } };
    b.part = (rows_of(s, 2, s->out[2]) + s->stride[2] - 1) / s->stride[2] + PLANE_SLACK;
    b.row = b.part * s->stride[2];
    return b;
}

plane_band plane_band_find(const conv_shape *s, int64_t most)
{
    plane_band b = plane_band_of(s, s->out[0], s->out[1]);
    while (plane_band_size(&b) > most && (b.out[0] > 1 || b.out[1] > 1)) {
        if (b.out[0] > 1) b = plane_band_of(s, (b.out[0] + 1) / 2, b.out[1]);
        else b = plane_band_of(s, 1, (b.out[1] + 1) / 2);
    }
    return b;
}

int64_t plane_band_tap(const conv_shape *s, const plane_band *b, int64_t deep, int64_t high, int64_t wide)
{
    const int64_t col = wide * s->dilation[2];
    return (deep * s->dilation[0] * b->rows[1] + high * s->dilation[1]) * b->row + col % s->stride[2] * b->part +
           col / s->stride[2];
}

/* Rows of a plane into the copy, the width between zeros. */
static void copy_rows(const plane_set *set, const conv_shape *s, const plane_band *b, float *to, const float *x,
                      int64_t rows)
{
    const int64_t step = s->stride[2], pad = s->pad[2], room = rows_of(s, 2, s->out[2]) - pad;
    const int64_t n = s->in[2] < room ? s->in[2] : room;
    if (n <= 0) return;
    if (step == 1) {
        set->copy(to + pad, b->row, x, s->x_dim[1], rows, n);
    } else if (step == 2) {
        set->split(to + pad % 2 * b->part + pad / 2, to + (pad + 1) % 2 * b->part + (pad + 1) / 2, b->row, x,
                   s->x_dim[1], rows, n);
    } else if (step == 4) {
        float *part[4];
        for (int64_t c = 0; c < 4; c++) part[c] = to + (pad + c) % 4 * b->part + (pad + c) / 4;
        set->split4(part, b->row, x, s->x_dim[1], rows, n);
    } else {
        for (int64_t c = 0; c < step && c < n; c++) {
            float *part = to + (pad + c) % step * b->part + (pad + c) / step;
            for (int64_t i = 0; i < rows; i++)
                for (int64_t k = c, at = 0; k < n; k += step, at++) part[i * b->row + at] = x[i * s->x_dim[1] + k];
        }
    }
}

/* What of `rows` rows from `at` on, counted in the padded input, lies inside: from `first` to `stop`. */
static void inside(const conv_shape *s, int axis, int64_t at, int64_t rows, int64_t *first, int64_t *stop)
{
    const int64_t before = s->pad[axis] - at, behind = s->in[axis] + s->pad[axis] - at;
    *first = before > 0 ? before < rows ? before : rows : 0;
    *stop = behind < rows ? behind > *first ? behind : *first : rows;
}

void plane_band_copy(const plane_set *set, const conv_shape *s, const plane_band *b, const float *x, int64_t deep,
                     int64_t high, float *to)
{
    const int64_t at[2] = { deep * s->stride[0], high * s->stride[1] };
    int64_t first[2], stop[2];
    for (int i = 0; i < 2; i++) inside(s, i, at[i], b->rows[i], &first[i], &stop[i]);
    for (int64_t d = first[0]; d < stop[0]; d++)
        copy_rows(set, s, b, to + (d * b->rows[1] + first[1]) * b->row,
                  x + (at[0] + d - s->pad[0]) * s->x_dim[0] + (at[1] + first[1] - s->pad[1]) * s->x_dim[1],
                  stop[1] - first[1]);
}
