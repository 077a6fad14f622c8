/* SPDX-License-Identifier: Apache-2.0 */
/* row_col2im.c - adds columns of blocks up to an image of one or two dims, in f32. Element k of all blocks is a row of
 * the input: its pieces are added to rows of the image, one or `stride` elements apart. */
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/row.h"
#include "cpu/rows.h"

#include <string.h>

/* How a block moves along one axis of the image. */
typedef struct slide {
    int64_t n, block, dilation, stride, pad, places;
} slide;

typedef struct record {
    const rows_set *set;
    slide h, w; /* h: of 1 where the image has one dim */
    int64_t images, channels;
    int64_t x_image, x_row, y_image, y_channel, y_row;
} record;

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_col2im, "not a col2im");
    REJECT_UNLESS(row_is_f32(p, 1), "not in f32");
    const problem_operand *x = &p->in[0], *y = &p->out[0];
    REJECT_UNLESS(x->rank == 3 && (y->rank == 3 || y->rank == 4), "an image of more than two dims");
    REJECT_UNLESS(x->order[2] == 2 && !x->is_gapped && y->order[y->rank - 1] == y->rank - 1 && !y->is_gapped,
                  "widths are not adjacent");
    REJECT_UNLESS(!p->prologue && !p->epilogue && p->count_out == 1, "takes no programs");
    return NULL;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    return row_memory_ns(p, target, 2);
}

static bool slide_of(const attrs_col2im *a, uint32_t i, uint32_t spatial, int64_t n, slide *out)
{
    const slide s = { n,
                      a->block.at[i],
                      a->dilation.count > i ? a->dilation.at[i] : 1,
                      a->stride.count > i ? a->stride.at[i] : 1,
                      a->pad.count > i ? a->pad.at[i] : 0,
                      0 };
    const int64_t pad_end = a->pad.count > i + spatial ? a->pad.at[i + spatial] : 0;
    int64_t room = 0, span = 0;
    *out = s;
    if (s.block < 1 || s.dilation < 1 || s.stride < 1 || s.pad < 0 || pad_end < 0 ||
        !i64_mul(s.block - 1, s.dilation, &span) || !i64_add(n, s.pad, &room) || !i64_add(room, pad_end, &room) ||
        span > room - 1)
        return false;
    out->places = (room - 1 - span) / s.stride + 1;
    return true;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const attrs_col2im *a = attrs;
    const view *x = &in[0], *y = &out[0];
    const uint32_t spatial = y->rank - 2, last = y->rank - 1;
    *r = (record){ .set = level_of(isa)->rows,
                   .h = { 1, 1, 1, 1, 0, 1 },
                   .images = y->dim[0],
                   .channels = y->dim[1],
                   .x_image = x->stride[0],
                   .x_row = x->stride[1],
                   .y_image = y->stride[0],
                   .y_channel = y->stride[1],
                   .y_row = spatial == 2 ? y->stride[2] : 0 };
    int64_t rows = 0, places = 0;
    if (a->block.count != spatial || !slide_of(a, spatial - 1, spatial, y->dim[last], &r->w) ||
        (spatial == 2 && !slide_of(a, 0, spatial, y->dim[2], &r->h)) || !i64_mul(r->h.block, r->w.block, &rows) ||
        !i64_mul(rows, r->channels, &rows) || !i64_mul(r->h.places, r->w.places, &places) || x->dim[0] != r->images ||
        x->dim[1] != rows || x->dim[2] != places)
        return FAIL(e, INVALID_ARG, "col2im: input and image do not have shapes that go together");
    return SINTER_OK;
}

typedef struct job {
    const record *r;
    const float *x;
    float *y;
} job;

/* Adds one row of places to a row of the image, whose element k of a block lies `at` from its start. */
static void add_row(const record *r, float *y, const float *x, int64_t at)
{
    const int64_t step = r->w.stride;
    int64_t first = at < 0 ? (step - 1 - at) / step : 0;
    int64_t stop = at < r->w.n ? (r->w.n - 1 - at) / step + 1 : 0;
    if (stop > r->w.places) stop = r->w.places;
    if (first >= stop) return;
    if (step == 1) {
        r->set->fold_cols(ROWS_SUM, y + at + first, x + first, 1, 0, stop - first);
        return;
    }
    y += at;
    for (; first < stop; first++) y[first * step] += x[first];
}

/* A tile is one channel of an image. Rows of the input are read from end to end, one after the other. */
static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    for (int64_t t = begin; t < end; t++) {
        const int64_t n = t / r->channels, c = t % r->channels;
        const float *x = j->x + n * r->x_image + c * r->h.block * r->w.block * r->x_row;
        float *y = j->y + n * r->y_image + c * r->y_channel;
        for (int64_t i = 0; i < r->h.n; i++) memset(y + i * r->y_row, 0, (size_t)r->w.n * sizeof *y);
        for (int64_t k = 0; k < r->h.block * r->w.block; k++, x += r->x_row) {
            const int64_t high = k / r->w.block * r->h.dilation - r->h.pad;
            const int64_t wide = k % r->w.block * r->w.dilation - r->w.pad;
            for (int64_t place = 0; place < r->h.places; place++) {
                const int64_t row = place * r->h.stride + high;
                if (row >= 0 && row < r->h.n) add_row(r, y + row * r->y_row, x + place * r->w.places, wide);
            }
        }
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { r, k->in[0], k->out[0] };
    row_parallel(k, r->images * r->channels, body, &j);
    return SINTER_OK;
}

const kernel cpu_col2im = {
    .name = "cpu_col2im",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .reject = reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record = sizeof(record),
    .bind = bind,
    .run = run,
};
