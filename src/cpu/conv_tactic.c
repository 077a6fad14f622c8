/* SPDX-License-Identifier: Apache-2.0 */
/* conv_tactic.c - which tactics are worth measuring for a convolution: the product's, on each path that applies. */
#include "cpu/conv.h"
#include "cpu/conv_lines.h"
#include <stdio.h>
#include <string.h>

enum { ROWS_CHANNELS_MAX = 32 };

static bool rows_path_merges(const conv_shape *s)
{
    return s->groups == 1 && s->dilation[2] == 1 && !gemm_unit_splits(s->unit);
}

static gemm_shape product_of(const conv_shape *s, conv_path path)
{
    gemm_shape g = {
        .m = s->images * s->out[0] * s->out[1] * s->out[2],
        .n = s->c_out / s->groups,
        .k = s->c_in / s->groups,
        .taps = s->kernel[0] * s->kernel[1] * s->kernel[2],
        .a_row = s->stride[2] * s->x_dim[2],
        .a_col = 1,
        .unit = s->unit,
        .cache = s->cache,
        .is_converted = s->is_converted && path == CONV_TAPS,
    };
    bool is_dense = true; /* pixels of the result are those of the input */
    for (int i = 0; i < 3; i++)
        is_dense = is_dense && s->kernel[i] == 1 && s->stride[i] == 1 && s->pad[i] == 0 && s->in[i] == s->out[i];
    if (!is_dense) g.line = s->out[2];
    if (path == CONV_LINES) {
        g.k *= g.taps;
        g.taps = 1;
        g.a_row = s->stride[2] > GEMM_STEPS_MAX ? 1 : s->stride[2];
    } else if (path == CONV_ROWS) {
        g.a_row = s->stride[2] * s->c_in;
        if (rows_path_merges(s)) {
            g.taps /= s->kernel[2];
            g.k *= s->kernel[2];
        }
    }
    return g;
}

const char *conv_shape_check(const conv_shape *s)
{
    if (s->groups < 1 || s->c_in < 1 || s->c_out < 1 || s->c_in % s->groups || s->c_out % s->groups) {
        return "channels do not divide into the groups";
    }
    const int64_t in[] = { s->images, s->in[0], s->in[1], s->in[2], s->c_in };
    const int64_t out[] = { s->images, s->out[0], s->out[1], s->out[2], s->c_out };
    const int64_t weights[] = { s->kernel[0], s->kernel[1], s->kernel[2], s->c_in, s->c_out };
    if (!gemm_counts_fit(in, 5, true) || !gemm_counts_fit(out, 5, true) || !gemm_counts_fit(weights, 5, false)) {
        return "sizes of the convolution are negative or too large";
    }
    int64_t reach[] = { s->images, s->c_in, 0, 0, 0 };
    for (int i = 0; i < 3; i++) {
        const int64_t most = (int64_t)1 << 31;
        if (s->stride[i] < 1 || s->dilation[i] < 1 || s->stride[i] > most || s->dilation[i] > most ||
            s->out[i] > most || s->kernel[i] > most || s->pad[i] < -most || s->pad[i] > most) {
            return "strides, dilations or pads are out of range";
        }
        const int64_t steps = s->out[i] > 0 ? (s->out[i] - 1) * s->stride[i] : 0;
        const int64_t taps = (s->kernel[i] - 1) * s->dilation[i];
        if (steps > most || taps > most) return "the padded image is too large";
        reach[2 + i] = steps + taps + 1;
    }
    return gemm_counts_fit(reach, 5, true) ? NULL : "the padded image is too large";
}

const char *conv_tactic_check(isa_level isa, const conv_shape *s, conv_tactic t)
{
    static const uint8_t zero[sizeof t.zero];
    if (t.path > CONV_LINES) return "unknown path";
    if (memcmp(t.zero, zero, sizeof zero) != 0) return "reserved bytes are set";
    if (s->kernel[0] < 1 || s->kernel[1] < 1 || s->kernel[2] < 1) return "the filter is empty";
    if (t.path == CONV_TAPS && s->x_c != 1) return "channels of the input are not adjacent";
    const gemm_shape g = product_of(s, (conv_path)t.path);
    const char *why = t.path == CONV_LINES ? conv_lines_check(isa, s, t) : NULL;
    return why ? why : gemm_tactic_check(isa, &g, t.gemm);
}

/* The share of an axis's taps that meet the image: far ones of dilated filters often meet padding alone. */
static double share_inside(const conv_shape *s, int axis)
{
    if (s->dilation[axis] < 2 || s->out[axis] < 1) return 1.0;
    double inside = 0;
    for (int64_t k = 0; k < s->kernel[axis]; k++) {
        const int64_t first = k * s->dilation[axis] - s->pad[axis], stride = s->stride[axis];
        const int64_t low = first < 0 ? (-first + stride - 1) / stride : 0;
        const int64_t high = first < s->in[axis] ? (s->in[axis] - first - 1) / stride + 1 : 0;
        const int64_t end = high < s->out[axis] ? high : s->out[axis];
        if (end > low) inside += (double)(end - low);
    }
    const double share = inside / ((double)s->kernel[axis] * (double)s->out[axis]);
    return share > 0.05 ? share : 0.05;
}

double conv_cost(isa_level isa, const conv_shape *s, conv_tactic t)
{
    const gemm_shape g = product_of(s, (conv_path)t.path);
    double cost = gemm_cost(isa, &g, t.gemm) * (double)s->groups;
    if (t.path == CONV_TAPS) cost *= share_inside(s, 0) * share_inside(s, 1) * share_inside(s, 2);
    if (t.path == CONV_ROWS) {
        const double copied = (double)s->images * (double)(s->in[0] * s->in[1] * s->in[2]) * (double)s->c_in;
        cost += copied * (s->x_c == 1 ? 0.1 : 0.3);
    }
    if (t.path == CONV_LINES) { /* rows of pixels have register tiles of their own */
        const double tiles = (double)((s->out[2] + t.gemm.rows - 1) / t.gemm.rows);
        const double copied = (double)s->images * (double)(s->in[0] * s->in[1] * s->in[2]) * (double)s->c_in;
        const double each = s->stride[2] > GEMM_STEPS_MAX ? 0.5 : 0.1;
        return cost * tiles * t.gemm.rows / (double)(s->out[2] > 0 ? s->out[2] : 1) + each * copied;
    }
    /* Every tap of every register tile reloads its pointers. */
    const double tiles =
        (double)g.m / t.gemm.rows * (double)(g.n / (t.gemm.vectors * gemm_set_of(isa, t.gemm)->lanes) + 1);
    return cost + 0.15 * tiles * (double)g.taps * t.gemm.rows * (double)s->groups;
}

int conv_tactic_print(char *text, size_t size, isa_level isa, conv_tactic t)
{
    static const char *const names[] = { "taps", "rows", "lines" };
    char product[48];
    (void)gemm_tactic_print(product, sizeof product, isa, t.gemm);
    return snprintf(text, size, "%s %s", names[t.path <= CONV_LINES ? t.path : 0], product);
}

static int path_tactics(isa_level isa, const conv_shape *s, conv_path path, conv_tactic *out)
{
    gemm_tactic list[GEMM_TACTICS_MAX];
    const gemm_shape g = product_of(s, path);
    const int count = gemm_tactics(isa, &g, list);
    for (int i = 0; i < count; i++) out[i] = (conv_tactic){ .gemm = list[i], .path = (uint8_t)path };
    return count;
}

int conv_tactics(isa_level isa, const conv_shape *s, conv_tactic out[CONV_TACTICS_MAX])
{
    int count = 0;
    if (s->x_c == 1) count += path_tactics(isa, s, CONV_TAPS, out);
    /* A copy pays where runs of a few channels become longer ones, and for matrix registers, which load rows that lie
     * at one distance; other inputs need it for their strides. */
    const gemm_tile_set *set = gemm_unit_set(isa, s->unit);
    const bool longer = rows_path_merges(s) && s->kernel[2] > 1 && (s->c_in <= ROWS_CHANNELS_MAX || set->set_up);
    /* Or it pays since a pixel is then split once, and not for each tap. */
    const bool is_split = set->split && s->kernel[0] * s->kernel[1] * s->kernel[2] > 1;
    if (s->x_c != 1 || longer || is_split) count += path_tactics(isa, s, CONV_ROWS, out + count);
    /* Lines are copied from planes; of channels side by side it would take as long as the sums. */
    if (s->x_dim[2] == 1) count += conv_lines_tactics(isa, s, out + count);
    for (int i = 1; i < count; i++) { /* a short list: insertion keeps equals in order */
        const conv_tactic t = out[i];
        const double cost = conv_cost(isa, s, t);
        int at = i;
        for (; at > 0 && conv_cost(isa, s, out[at - 1]) > cost; at--) out[at] = out[at - 1];
        out[at] = t;
    }
    return count;
}
