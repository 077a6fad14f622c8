/* SPDX-License-Identifier: Apache-2.0 */
/* row_window.c - tactics, defines and launches of depthwise and grouped convolutions. */
#include "cuda/row_window.h"
#include "cuda/product.h"
#include "cuda/ranking.h"

#include <math.h>
#include <stddef.h>

enum { WIDTH_MOST = 11, STEP_MOST = 4, TAPS_MOST = 192 };

/* ---- tactics ---- */

const tactic_field window_fields[WINDOW_FIELDS] = {
    FIELD(window_tactic, pix, 1, 8, true, "", 1),
    FIELD(window_tactic, c, 4, 16, true, " pixels, block ", 1),
    FIELD(window_tactic, x, 1, 8, true, "x", 1),
    FIELD(window_tactic, y, 1, 8, true, "x", 1),
    FIELD(window_tactic, trigger, 1, 3, false, " trigger ", 1),
    FIELD(window_tactic, half, 0, 1, false, " half", 0),
};

bool window_check(const tactic *t, uint32_t pix_most, bool may_halve)
{
    const window_tactic x = TACTIC_AS(window_tactic, t);
    const uint32_t threads = (uint32_t)x.c * x.x * x.y;
    return FIELDS_HOLD(window_fields, t) && x.pix <= pix_most && x.half <= may_halve && threads % 32 == 0 &&
           threads <= 512;
}

typedef struct extent {
    int64_t images, channels, rows, w;
} extent;

static extent extent_of(const problem *p)
{
    const problem_operand *y = &p->out[0];
    const window g = window_of(p, p->attrs);
    int64_t n[WINDOW_AXES];
    for (uint32_t i = 0; i < WINDOW_AXES; i++) n[i] = g.axis[i] < 0 ? 1 : y->dim[g.axis[i]].opt;
    return (extent){ y->dim[0].opt, y->dim[1].opt, n[0] * n[1], n[2] };
}

/* Adds those with `half` to `best`. */
static void rank(const problem *p, const kernel_target *t, uint32_t width, uint32_t pix_most, uint8_t half,
                 window_cost_fn cost, ranking *best)
{
    static const uint8_t shape[][2] = {
        { 1, 8 }, { 2, 8 }, { 4, 8 }, { 4, 4 }, { 2, 4 }, { 1, 4 }, { 8, 1 }, { 2, 2 }
    };
    const extent n = extent_of(p);
    for (uint8_t pix = 1; pix <= pix_most; pix = (uint8_t)(pix * 2))
        for (uint8_t c = 4; c <= 16; c = (uint8_t)(c * 2))
            for (uint32_t i = 0; i < COUNT_OF(shape); i++) {
                if (pix > 1 && pix > n.w) continue;
                if (c > 4 && (c / 2) * (int64_t)width >= n.channels) continue;
                if ((shape[i][0] > 1 && shape[i][0] * pix > 2 * n.w) || (shape[i][1] > 1 && shape[i][1] > 2 * n.rows))
                    continue;
                window_tactic x = {
                    .pix = pix, .c = c, .x = shape[i][0], .y = shape[i][1], .trigger = 2, .half = half
                };
                const int threads = x.c * x.x * x.y;
                if (threads % 32 || threads > 512) continue;
                const double ns = cost(p, &x, t);
                if (!isfinite(ns)) continue;
                ranking_add(best, ns, &x);
            }
}

void window_tactics(const problem *p, const kernel_target *t, uint32_t width, uint32_t pix_most, bool may_halve,
                    window_cost_fn cost, tactic_sink *out)
{
    /* The model says little of which of the two forms is the faster. */
    for (uint8_t half = 0; half <= may_halve; half++) {
        ranking best = { .most = may_halve ? 4 : 6 };
        rank(p, t, half ? width / 2 : width, pix_most, half, cost, &best);
        if (!best.count && !half)
            ranking_add(&best, 0, &(window_tactic){ .pix = 1, .c = 4, .x = 8, .y = 1, .trigger = 1 });
        ranking_take(&best, out);
    }
}

/* ---- the window ---- */

window window_of(const problem *p, const void *attrs)
{
    const product_slide a = product_slide_of(p->op, attrs);
    window g = { { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, { 0, 0, 0 }, a.groups, { -1, -1, -1 } };
    const uint32_t spatial = p->in[0].rank - 2u;
    const bool is_tall = spatial == 1 && (p->in[1].dim[2].max > WIDTH_MOST || a.stride->at[0] > STEP_MOST ||
                                          a.dilation->at[0] > STEP_MOST);
    for (uint32_t i = 0; i < spatial; i++) {
        const uint32_t to = WINDOW_AXES - spatial + i - is_tall;
        g.axis[to] = (int8_t)(2 + i);
        g.kernel[to] = p->in[1].dim[2 + i].max;
        g.stride[to] = a.stride->at[i];
        g.dilation[to] = a.dilation->at[i];
        g.pad[to] = a.pad->at[i];
    }
    return g;
}

int64_t window_tap_at(const window *g, const view *filter, int64_t k)
{
    int64_t at = 0;
    for (uint32_t i = WINDOW_AXES; i-- > 0; k /= g->kernel[i])
        if (g->axis[i] >= 0) at += k % g->kernel[i] * filter->stride[g->axis[i]];
    return at;
}

const char *window_reject(const problem *p)
{
    product d;
    const char *why = product_of(p, &d);
    if (why) return why;
    REJECT_UNLESS(!p->prologue, "has a prologue");
    REJECT_UNLESS(d.kind == PRODUCT_CONV && d.spatial <= WINDOW_AXES, "no convolution along one to three axes");
    REJECT_UNLESS(d.is_w_fixed && !d.is_w_empty && !p->in[1].is_strided,
                  "the filter is no dense constant of fixed size");
    const window g = window_of(p, p->attrs);
    int64_t taps = g.kernel[2];
    REJECT_UNLESS(i64_mul(taps, g.kernel[0], &taps) && i64_mul(taps, g.kernel[1], &taps) && taps <= TAPS_MOST &&
                      g.kernel[2] <= WIDTH_MOST,
                  "a filter of more than 192 taps, or 11 along a row");
    REJECT_UNLESS(g.stride[2] <= STEP_MOST && g.dilation[2] <= STEP_MOST,
                  "a stride or dilation of more than 4 along rows");
    return NULL;
}

/* ---- costs ---- */

double window_blocks(const problem *p, window_tactic x, uint32_t width)
{
    const extent n = extent_of(p);
    return (double)n.images * (double)cuda_ceil_div(n.channels, (int64_t)x.c * width) *
           (double)cuda_ceil_div(n.w, (int64_t)x.x * x.pix) * (double)cuda_ceil_div(n.rows, x.y);
}

double window_bytes(const problem *p)
{
    double bytes = cuda_problem_bytes(p);
    /* Threads lie across channels: where those are not adjacent, each reads and writes sectors of its own. */
    const problem_operand *const image[] = { &p->in[0], &p->out[0] };
    for (uint32_t i = 0; i < 2; i++)
        if (image[i]->order[image[i]->rank - 1] != 1 || image[i]->is_gapped) bytes += 7 * cuda_operand_bytes(image[i]);
    return bytes;
}

/* ---- code and launches ---- */

void window_defines(const problem *p, window_tactic x, cuda_code *c)
{
    const window g = window_of(p, p->attrs);
    cuda_code_define(c, "KD", g.kernel[0]);
    cuda_code_define(c, "KH", g.kernel[1]);
    cuda_code_define(c, "KW", g.kernel[2]);
    cuda_code_define(c, "STRIDE_W", g.stride[2]);
    cuda_code_define(c, "DILATION_W", g.dilation[2]);
    cuda_code_define(c, "IS_TALL", g.axis[2] < 0);
    cuda_code_define(c, "PIX", x.pix);
    cuda_code_define(c, "C_THREADS", x.c);
    cuda_code_define(c, "X_THREADS", x.x);
    cuda_code_define(c, "Y_THREADS", x.y);
    cuda_code_define(c, "RANK", p->in[0].rank);
    cuda_code_define(c, "TRIGGER", x.trigger);
}

sinter_status window_bind(env *e, const problem *p, const void *attrs, window_tactic x, const view *in, const view *out,
                          uint32_t width, int64_t pitch, int64_t multiplier, int64_t shared, cuda_record *r,
                          struct depthwise_args **args)
{
    const window g = window_of(p, attrs);
    const view *from = &in[0], *to = &out[0];
    int64_t size[WINDOW_AXES], result[WINDOW_AXES], step[WINDOW_AXES], rows = 0;
    for (uint32_t i = 0; i < WINDOW_AXES; i++) {
        const int8_t axis = g.axis[i];
        size[i] = axis < 0 ? 1 : from->dim[axis];
        result[i] = axis < 0 ? 1 : to->dim[axis];
        step[i] = axis < 0 ? 0 : from->stride[axis];
    }
    if (!i64_mul(result[0], result[1], &rows) || rows > INT32_MAX)
        return FAIL(e, UNSUPPORTED, "a convolution of more than 2147483647 rows");
    const int64_t w = result[2], channels = to->dim[1];
    const int64_t tiles_c = cuda_ceil_div(channels, (int64_t)x.c * width),
                  tiles_x = cuda_ceil_div(w, (int64_t)x.x * x.pix), tiles_y = cuda_ceil_div(rows, x.y);
    int64_t blocks = tiles_c;
    if (!i64_mul(blocks, tiles_x, &blocks) || !i64_mul(blocks, tiles_y, &blocks) ||
        !i64_mul(blocks, to->dim[0], &blocks) || blocks > INT32_MAX)
        return FAIL(e, UNSUPPORTED, "a convolution of more than 2147483647 blocks");
    struct depthwise_args *a;
    TRY(cuda_launch_begin(e, r, 0, (uint64_t)blocks, 1, 1, (uint32_t)x.c * x.x * x.y, (uint32_t)shared, sizeof *a, &a));
    *args = a;
    *a = (struct depthwise_args){
        .x_image = from->stride[0],
        .x_plane = step[0],
        .x_row = step[1],
        .x_col = step[2],
        .x_channel = from->stride[1],
        .channels = (small)channels,
        .in_d = (small)size[0],
        .in_h = (small)size[1],
        .in_w = (small)size[2],
        .rows = (small)rows,
        .out_w = (small)w,
        .stride_d = (small)g.stride[0],
        .stride_h = (small)g.stride[1],
        .dilation_d = (small)g.dilation[0],
        .dilation_h = (small)g.dilation[1],
        .pad_d = (small)g.pad[0],
        .pad_h = (small)g.pad[1],
        .pad_w = (small)g.pad[2],
        .w_pitch = (small)pitch,
        .tiles_c = cuda_fast_div(tiles_c),
        .tiles_x = cuda_fast_div(tiles_x),
        .tiles_y = cuda_fast_div(tiles_y),
        .out_h = cuda_fast_div(result[1]),
        .multiplier = cuda_fast_div(multiplier),
    };
    CUDA_PATCH(r, a, x, PATCH_IN, 0);
    CUDA_PATCH(r, a, w, PATCH_IN, 1);
    return SINTER_OK;
}
