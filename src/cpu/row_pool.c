/* SPDX-License-Identifier: Apache-2.0 */
/* row_pool.c - max and average pooling in f32, f16 and bf16, pooling by norms in f32, max pooling of 8-bit codes: the
 * largest code is that of the largest number.
 *
 * Channels-last: vectors along channels over pointers to the window's pixels. Adjacent widths: pool_width.c; planes
 * that are narrower than a vector are turned in scratch, so that many are pooled as channels-last operands are. Any
 * other order: element by element. */
#include "cpu/cpu_kernels.h"
#include "cpu/cpu_move.h"
#include "cpu/level.h"
#include "cpu/pool.h"

#include <math.h>
#include <string.h>

enum {
    TAPS = 128,         /* pointers that are folded at once                           */
    TILE_RESULTS = 4096 /* results of a tile, so that several threads share a long row */
};

/* NARROW: widths that are less than a vector. TURNED: numbers of the planes that are turned at once, TURNED_LEAST
 * planes at least. Of more than TURNED_TAPS it is faster to fold rows first. */
enum { NARROW = 16, TURNED = 4096, TURNED_LEAST = 32, TURNED_PART = 16, TURNED_TAPS = 32 };

/* Places: four results side by side, whose windows have the same taps. */
typedef float floats __attribute__((vector_size(16)));
typedef int32_t words __attribute__((vector_size(16)));
enum { SIDE = 4, PLANE_MAX = INT32_MAX };

typedef struct pool_attrs {
    const attr_ints *kernel, *stride, *dilation, *pad;
    bool counts_pad;
    int64_t power;
} pool_attrs;
static pool_attrs attrs_of(const problem *p, const void *attrs)
{
    if (p->op == OP_max_pool) {
        const attrs_max_pool *a = attrs;
        return (pool_attrs){ &a->kernel, &a->stride, &a->dilation, &a->pad, false, 0 };
    }
    if (p->op == OP_lp_pool) {
        const attrs_lp_pool *a = attrs;
        return (pool_attrs){ &a->kernel, &a->stride, &a->dilation, &a->pad, false, a->p };
    }
    const attrs_avg_pool *a = attrs;
    return (pool_attrs){ &a->kernel, &a->stride, &a->dilation, &a->pad, a->count_pad != 0, 0 };
}

static bool is_code(sinter_dtype type)
{
    return type == SINTER_DTYPE_U8 || type == SINTER_DTYPE_I8;
}

static bool is_half(sinter_dtype type)
{
    return type == SINTER_DTYPE_F16 || type == SINTER_DTYPE_BF16;
}

static double window_of(const problem *p)
{
    const pool_attrs a = attrs_of(p, p->attrs);
    double taps = 1;
    for (uint32_t i = 0; i < a.kernel->count; i++) taps *= (double)a.kernel->at[i];
    return taps;
}

static bool has_places(const problem *p)
{
    return !p->epilogue && p->count_out > 1;
}

static const char *reject_common(const problem *p)
{
    REJECT_UNLESS(p->in[0].rank >= 3 && p->in[0].rank <= 2 + POOL_SPATIAL, "has no or more than three spatial axes");
    if (has_places(p)) {
        REJECT_UNLESS(p->op == OP_max_pool && !p->prologue && row_is_f32(p, 1) && p->out[1].dtype == SINTER_DTYPE_I64,
                      "indices are wanted, and the input is not f32");
        double size = 1;
        for (uint32_t i = 2; i < p->in[0].rank; i++) size *= (double)p->in[0].dim[i].max;
        REJECT_UNLESS(size <= PLANE_MAX, "indices are wanted, and a plane may be large");
        return NULL;
    }
    if (p->op == OP_max_pool && is_code(p->in[0].dtype)) {
        REJECT_UNLESS(p->out[0].dtype == p->in[0].dtype && !p->prologue && !p->epilogue, "codes take no programs");
        return NULL;
    }
    const bool has_channels_inside = p->in[0].order[p->in[0].rank - 1] == 1 && p->in[0].dim[1].max != 1;
    if (is_half(p->in[0].dtype)) {
        REJECT_UNLESS(p->out[0].dtype == p->in[0].dtype && !p->prologue && !p->epilogue, "16 bits take no programs");
        REJECT_UNLESS(!has_channels_inside || p->out[0].order[p->out[0].rank - 1] == 1,
                      "16 bits, and channels lie innermost on one side alone");
        /* More taps would be summed in parts, and the parts are rounded. */
        REJECT_UNLESS(!has_channels_inside || p->op == OP_max_pool || window_of(p) <= TAPS,
                      "16 bits, channels lie innermost, and windows have more than 128 taps");
        return NULL;
    }
    REJECT_UNLESS(row_is_f32(p, 1), "not in f32");
    if (row_is_channels_last(&p->out[0]) || (p->out[0].is_strided && p->out[0].order[p->out[0].rank - 1] == 1)) {
        if (p->in[0].order[p->in[0].rank - 1] == 1 && !p->in[0].is_strided) return row_epilogue_reject(p);
    }
    return row_after_reject(p);
}

static const char *max_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_max_pool, "not a max pool");
    return reject_common(p);
}

static const char *avg_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_avg_pool, "not an average pool");
    return reject_common(p);
}

static const char *lp_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_lp_pool, "no pool by norms");
    REJECT_UNLESS(row_is_f32(p, 1), "not in f32");
    return reject_common(p);
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    const double taps = window_of(p);
    const uint32_t last = p->in[0].order[p->in[0].rank - 1], inner = p->in[0].rank - 1u;
    const int64_t power = attrs_of(p, p->attrs).power;
    const bool is_vector = (last == 1 && power != 1) || last == inner;
    const double threads = target->threads ? target->threads : 1, flops = target->flops > 0 ? target->flops : 1e10;
    return row_memory_ns(p, target, 1) + row_operand_bytes(&p->out[0]) / 4 * taps *
                                             (power > 2   ? 400
                                              : is_vector ? 4
                                                          : 60) /
                                             flops * 1e9 / threads;
}

/* Places count the elements of all planes, row-major or with the last axis outermost in a plane. */
static void places_bind(pool_record *r, const view *x, const view *at, bool is_column_major)
{
    const uint32_t spatial = x->rank - 2, first = POOL_SPATIAL - spatial;
    r->way = POOL_PLACES;
    r->at_image = at->stride[0];
    r->at_channel = at->stride[1];
    r->plane_size = 1;
    for (uint32_t i = 0; i < POOL_SPATIAL; i++) r->at_dim[i] = r->plane[i] = 0;
    for (uint32_t i = 0; i < spatial; i++) {
        const uint32_t k = first + (is_column_major ? i : spatial - 1 - i);
        r->at_dim[k] = at->stride[2 + k - first];
        r->plane[k] = r->plane_size;
        r->plane_size *= r->in[k];
    }
}

/* Whether windows tile the rows, and rows of input and result follow each other: axis i - 1 goes on where i ends. */
static bool is_tiled(const pool_record *r, uint32_t i)
{
    return r->stride[2] == r->kernel[2] && r->dilation[2] == 1 && !r->pad[2] && !r->pad_end[2] &&
           r->in[2] == r->out[2] * r->stride[2] && r->kernel[i] == 1 && r->stride[i] == 1 && !r->pad[i] &&
           !r->pad_end[i] && r->in[i] == r->out[i];
}

/* Whether one window is the whole axis. */
static bool is_whole(const pool_record *r, uint32_t i)
{
    return r->out[i] == 1 && r->in[i] == r->kernel[i] && r->dilation[i] == 1 && !r->pad[i] && !r->pad_end[i];
}

/* Short rows cost more than what they hold, so rows, and planes of rows, become one row. */
static void merge_rows(pool_record *r)
{
    for (uint32_t i = 2; i-- > 0 && is_whole(r, 2) && is_whole(r, i) && r->x_dim[i] == r->in[2];) {
        if (r->kernel[i] > POOL_WHOLE / r->kernel[2]) break;
        r->in[2] *= r->in[i];
        r->kernel[2] *= r->kernel[i];
        r->in[i] = r->kernel[i] = 1;
    }
    if (is_whole(r, 2) && r->kernel[2] <= POOL_WHOLE) r->stride[2] = r->kernel[2];
    for (uint32_t i = 2; i-- > 0;) {
        if (!is_tiled(r, i)) return;
        if (r->in[i] > 1 && (r->x_dim[i] != r->in[2] || r->y_dim[i] != r->out[2])) return;
        r->in[2] *= r->in[i];
        r->out[2] *= r->out[i];
        r->in[i] = r->out[i] = 1;
    }
    if (r->channels > 1 && (r->x_channel != r->in[2] || r->y_channel != r->out[2])) return;
    r->in[2] *= r->channels;
    r->out[2] *= r->channels;
    r->channels = 1;
}

/* Numbers of a plane that lie behind each other, or INT64_MAX. */
static int64_t dense_size(const int64_t extent[POOL_SPATIAL], const int64_t stride[POOL_SPATIAL])
{
    int64_t size = 1;
    for (uint32_t i = POOL_SPATIAL; i-- > 0;) {
        if (extent[i] > 1 && stride[i] != size) return INT64_MAX;
        size *= extent[i];
    }
    return size;
}

/* The larger plane of input and result. */
static int64_t turned_size(const pool_record *r)
{
    const int64_t from = dense_size(r->in, r->x_dim), to = dense_size(r->out, r->y_dim);
    return from > to ? from : to;
}

static bool is_turned(const pool_record *r)
{
    return r->type == SINTER_DTYPE_F32 && !r->power && r->in[2] < NARROW && r->out[2] < NARROW &&
           turned_size(r) <= TURNED / TURNED_LEAST && r->channels >= TURNED_LEAST &&
           r->kernel[0] * r->kernel[1] * r->kernel[2] <= TURNED_TAPS;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    pool_record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const pool_attrs a = attrs_of(p, attrs);
    const view *x = &in[0], *y = &out[0];
    const uint32_t spatial = x->rank - 2;
    r->set = level_of(isa)->rows;
    r->is_max = p->op == OP_max_pool;
    r->is_mean = p->op == OP_avg_pool;
    r->power = a.power;
    r->fold = r->is_max      ? r->set->pool_max
              : r->is_mean   ? r->set->pool_sum
              : a.power == 1 ? r->set->pool_abs
                             : r->set->pool_squares;
    r->type = x->dtype;
    r->size = (uint8_t)(sinter_dtype_bits(x->dtype) / 8);
    r->flip = x->dtype == SINTER_DTYPE_U8 ? 0x80 : 0;
    r->counts_pad = a.counts_pad;
    r->images = x->dim[0];
    r->channels = x->dim[1];
    r->x_image = x->stride[0];
    r->x_channel = x->stride[1];
    r->y_image = y->stride[0];
    r->y_channel = y->stride[1];
    for (uint32_t i = 0; i < POOL_SPATIAL; i++) {
        r->in[i] = r->out[i] = r->kernel[i] = r->stride[i] = r->dilation[i] = 1;
        r->pad[i] = r->pad_end[i] = r->x_dim[i] = r->y_dim[i] = 0;
    }
    for (uint32_t i = 0; i < spatial; i++) {
        const uint32_t k = POOL_SPATIAL - spatial + i;
        r->in[k] = x->dim[2 + i];
        r->out[k] = y->dim[2 + i];
        r->kernel[k] = a.kernel->at[i];
        r->stride[k] = a.stride->at[i];
        r->dilation[k] = a.dilation->at[i];
        r->pad[k] = a.pad->at[i];
        r->pad_end[k] = a.pad->at[spatial + i];
        r->x_dim[k] = x->stride[2 + i];
        r->y_dim[k] = y->stride[2 + i];
    }
    r->epilogue.has_program = r->after.has_program = false;
    if (has_places(p)) {
        places_bind(r, x, &out[1], ((const attrs_max_pool *)attrs)->column_major != 0);
        return SINTER_OK;
    }
    const bool is_last = r->channels == 1 ? !is_half(r->type) /* these have the way along the width */
                                          : r->x_channel == 1 && r->y_channel == 1;
    /* The epilogue counts rows of pixels in the order in which the result lies. */
    bool is_order = p->out[0].order[y->rank - 1] == 1 && p->out[0].order[0] == 0;
    for (uint32_t i = 1; i + 1 < y->rank; i++) is_order = is_order && p->out[0].order[i] == i + 1;
    const bool is_width = (r->x_dim[2] == 1 || r->in[2] == 1) && (r->y_dim[2] == 1 || r->out[2] == 1);
    /* Squares of more taps would be summed in parts, and parts would be squared again. */
    const bool takes_last = !a.power || (a.power == 2 && window_of(p) <= TAPS);
    r->way = is_last && takes_last && (is_order || !p->epilogue) && !row_epilogue_reject(p) ? POOL_LAST
             : is_width && a.power <= 2 && pool_width_takes(r)                              ? POOL_WIDTH
                                                                                            : POOL_ELEMENTS;
    if (r->way == POOL_WIDTH) {
        merge_rows(r);
        if (is_turned(r)) r->way = POOL_TURNED;
    }
    if (r->way == POOL_LAST && p->epilogue)
        return row_epilogue_bind(e, p, isa, in, out, p->out[0].order, false, &r->epilogue, r + 1);
    return row_after_bind(e, p, isa, in, out, &r->after, r + 1);
}

/* What a result is divided by, of the kernel positions of its window. */
static double divisor_of(const pool_record *r, const pool_span s[POOL_SPATIAL])
{
    if (r->counts_pad) return (double)(s[0].padded * s[1].padded * s[2].padded);
    return (double)((s[0].stop - s[0].first) * (s[1].stop - s[1].first) * (s[2].stop - s[2].first));
}

/* Operands that are folded into n elements at y, TAPS at a time. */
typedef struct fold {
    const pool_record *r;
    void *y;
    int64_t n;
    int64_t count;
    const void *tap[TAPS];
} fold;

static void fold_begin(fold *f, const pool_record *r, void *y, int64_t n)
{
    f->r = r;
    f->y = y;
    f->n = n;
    f->count = 0;
}

static void fold_now(fold *f, float scale)
{
    const pool_record *r = f->r;
    const void *const *from = f->tap;
    if (r->size == 1) {
        r->set->max_bytes(f->y, (const uint8_t *const *)from, f->count, f->n, r->flip);
        return;
    }
    if (r->size == 2) {
        r->set->fold_narrow(f->y, (const char *const *)from, f->count, f->n, r->is_max, scale, r->type);
        return;
    }
    if (r->power) {
        r->set->products_of(f->y, (const float *const *)from, (const float *const *)from, f->count, f->n);
        r->set->root(f->y, f->n);
        return;
    }
    (r->is_max ? r->set->max_of : r->set->sum_of)(f->y, (const float *const *)from, f->count, f->n, scale);
}

static void fold_add(fold *f, const void *x)
{
    if (f->count == TAPS) {
        fold_now(f, 1.0f);
        f->tap[0] = f->y; /* what was found so far */
        f->count = 1;
    }
    f->tap[f->count++] = x;
}

/* n results of a window without elements. */
static void fill(const pool_record *r, void *y, int64_t n, double divisor)
{
    if (r->size == 1) {
        memset(y, 0x80 ^ r->flip, (size_t)n);
        return;
    }
    const double none = r->is_max ? -INFINITY : r->is_mean ? 0 / divisor : 0;
    for (int64_t i = 0; i < n; i++) dtype_store_f64(r->type, y, i, none);
}

/* One output pixel of all channels. `f` has its taps afterwards. */
static void pixel_last(fold *f, const pool_record *r, char *y, const char *x, const pool_span s[POOL_SPATIAL])
{
    fold_begin(f, r, y, r->channels);
    for (int64_t d = s[0].first; d < s[0].stop; d++)
        for (int64_t h = s[1].first; h < s[1].stop; h++)
            for (int64_t w = s[2].first; w < s[2].stop; w++)
                fold_add(f, x + ((s[0].at + d * r->dilation[0]) * r->x_dim[0] +
                                 (s[1].at + h * r->dilation[1]) * r->x_dim[1] +
                                 (s[2].at + w * r->dilation[2]) * r->x_dim[2]) *
                                    r->size);
    if (f->count) fold_now(f, (float)(1 / divisor_of(r, s)));
    else fill(r, y, r->channels, divisor_of(r, s));
}

/* The pixel to the right of the one whose taps `f` has, where no tap of either falls into padding along the width. */
static void pixel_next(fold *f, const pool_record *r, char *y, const pool_span s[POOL_SPATIAL])
{
    const int64_t step = r->stride[2] * r->x_dim[2] * r->size;
    for (int64_t i = 0; i < f->count; i++) f->tap[i] = (const char *)f->tap[i] + step;
    f->y = y;
    fold_now(f, (float)(1 / divisor_of(r, s)));
}

/* Output pixels of a tile. */
static int64_t tile_of(const pool_record *r)
{
    const int64_t pixels = TILE_RESULTS / r->channels;
    return pixels < 1 ? 1 : pixels < r->out[2] ? pixels : r->out[2];
}

static int64_t tiles_of_row(const pool_record *r)
{
    return (r->out[2] - 1) / tile_of(r) + 1;
}

static void rows_last(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const pool_job *j = arg;
    const pool_record *r = j->r;
    const int64_t tile = tile_of(r), tiles = tiles_of_row(r);
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i / tiles, first = i % tiles * tile;
        const int64_t stop = first + tile < r->out[2] ? first + tile : r->out[2];
        const int64_t h = row % r->out[1], d = row / r->out[1] % r->out[0], n = row / r->out[1] / r->out[0];
        pool_span s[POOL_SPATIAL] = { pool_span_of(r, 0, d), pool_span_of(r, 1, h) };
        char *y = j->y + (n * r->y_image + d * r->y_dim[0] + h * r->y_dim[1] + first * r->y_dim[2]) * r->size;
        /* More taps would be folded in parts. */
        const int64_t reach = (r->kernel[2] - 1) * r->dilation[2];
        const bool is_kept = r->kernel[0] <= TAPS && r->kernel[1] <= TAPS && r->kernel[2] <= TAPS &&
                             r->kernel[0] * r->kernel[1] * r->kernel[2] <= TAPS;
        bool was_inside = false;
        fold f;
        for (int64_t w = first; w < stop; w++) {
            char *to = y + (w - first) * r->y_dim[2] * r->size;
            const int64_t at = w * r->stride[2] - r->pad[2];
            const bool is_inside = at >= 0 && at + reach < r->in[2];
            if (was_inside && is_inside && f.count) {
                s[2].at = at;
                pixel_next(&f, r, to, s);
                continue;
            }
            s[2] = pool_span_of(r, 2, w);
            pixel_last(&f, r, to, j->x + n * r->x_image * r->size, s);
            was_inside = is_inside && is_kept;
        }
        if (r->epilogue.has_program)
            vm_block(&r->epilogue.program, &j->io, row * r->out[2] + first, stop - first, 0, r->channels, y,
                     r->y_dim[2]);
    }
}

/* Planes of a tile. */
static int64_t turned_planes(const pool_record *r)
{
    return TURNED / turned_size(r) / TURNED_PART * TURNED_PART;
}

static int64_t turned_tiles(const pool_record *r)
{
    return (r->channels - 1) / turned_planes(r) + 1;
}

static void turned(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    const pool_job *j = arg;
    const pool_record *r = j->r;
    const int64_t most = turned_planes(r), tiles = turned_tiles(r);
    const int64_t from = dense_size(r->in, r->x_dim), to = dense_size(r->out, r->y_dim);
    float x[TURNED], y[TURNED];
    pool_record part = *r;
    part.images = part.x_channel = part.y_channel = 1;
    const pool_job pixels = { .r = &part, .x = (const char *)x, .y = (char *)y };
    for (int64_t i = begin; i < end; i++) {
        const int64_t n = i / tiles, c = i % tiles * most, count = r->channels - c < most ? r->channels - c : most;
        const int64_t lines = count * (int64_t)sizeof *x;
        part.channels = count;
        for (uint32_t k = POOL_SPATIAL; k-- > 0;) {
            part.x_dim[k] = k + 1 < POOL_SPATIAL ? part.x_dim[k + 1] * r->in[k + 1] : count;
            part.y_dim[k] = k + 1 < POOL_SPATIAL ? part.y_dim[k + 1] * r->out[k + 1] : count;
        }
        move_transpose(r->size, (char *)x, lines, j->x + (n * r->x_image + c * r->x_channel) * r->size,
                       r->x_channel * r->size, from, count);
        rows_last((void *)(uintptr_t)&pixels, 0, (uint32_t)(r->out[0] * r->out[1] * tiles_of_row(&part)), worker);
        move_transpose(r->size, j->y + (n * r->y_image + c * r->y_channel) * r->size, r->y_channel * r->size,
                       (const char *)y, lines, count, to);
    }
}

static void element(const pool_record *r, char *y, const char *x, const pool_span s[POOL_SPATIAL])
{
    double v = r->is_max ? -INFINITY : 0;
    bool is_any = false;
    for (int64_t d = s[0].first; d < s[0].stop; d++)
        for (int64_t h = s[1].first; h < s[1].stop; h++)
            for (int64_t w = s[2].first; w < s[2].stop; w++) {
                const double u = dtype_load_f64(r->type, x,
                                                (s[0].at + d * r->dilation[0]) * r->x_dim[0] +
                                                    (s[1].at + h * r->dilation[1]) * r->x_dim[1] +
                                                    (s[2].at + w * r->dilation[2]) * r->x_dim[2]);
                is_any = true;
                if (r->power) v += r->power == 1 ? fabs(u) : r->power == 2 ? u * u : pow(fabs(u), (double)r->power);
                else if (r->is_mean) v += u;
                else if (!(u <= v) && !isnan(v)) v = u;
            }
    if (!is_any && r->size == 1) fill(r, y, 1, 1);
    else if (r->is_mean) dtype_store_f64(r->type, y, 0, v / divisor_of(r, s));
    else dtype_store_f64(r->type, y, 0, r->power <= 1 ? v : r->power == 2 ? sqrt(v) : pow(v, 1 / (double)r->power));
}

/* Planes of one channel, element by element. */
static void planes(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const pool_job *j = arg;
    const pool_record *r = j->r;
    for (int64_t i = begin; i < end; i++) {
        const int64_t n = i / r->channels, c = i % r->channels;
        const char *x = j->x + (n * r->x_image + c * r->x_channel) * r->size;
        char *y = j->y + (n * r->y_image + c * r->y_channel) * r->size;
        pool_span s[POOL_SPATIAL];
        for (int64_t d = 0; d < r->out[0]; d++) {
            s[0] = pool_span_of(r, 0, d);
            for (int64_t h = 0; h < r->out[1]; h++) {
                s[1] = pool_span_of(r, 1, h);
                for (int64_t w = 0; w < r->out[2]; w++) {
                    s[2] = pool_span_of(r, 2, w);
                    element(r, y + (d * r->y_dim[0] + h * r->y_dim[1] + w * r->y_dim[2]) * r->size, x, s);
                }
            }
        }
    }
}

/* The largest elements under the windows from `s` on, and their places in the plane: the first of equals, 0 of windows
 * without elements. Nobody can guess which element is the largest, so there is no branch on it. */
static void largest(const pool_record *r, const float *x, const pool_span s[POOL_SPATIAL], bool is_one, floats *most,
                    words *place)
{
    const int64_t step = r->dilation[2] * r->x_dim[2], next = is_one ? 0 : r->stride[2] * r->x_dim[2];
    const int64_t wide = s[2].at + s[2].first * r->dilation[2], taps = s[2].stop - s[2].first;
    const int32_t step_at = (int32_t)(r->dilation[2] * r->plane[2]);
    const int32_t next_at = is_one ? 0 : (int32_t)(r->stride[2] * r->plane[2]);
    const words apart = { 0, next_at, 2 * next_at, 3 * next_at };
    floats best = { -INFINITY, -INFINITY, -INFINITY, -INFINITY };
    words found = { 0 };
    bool is_first = true;
    for (int64_t d = s[0].first; d < s[0].stop; d++)
        for (int64_t h = s[1].first; h < s[1].stop; h++) {
            const int64_t deep = s[0].at + d * r->dilation[0], high = s[1].at + h * r->dilation[1];
            const float *from = x + deep * r->x_dim[0] + high * r->x_dim[1] + wide * r->x_dim[2];
            words at = apart + (int32_t)(deep * r->plane[0] + high * r->plane[1] + wide * r->plane[2]);
            for (int64_t w = 0; w < taps; w++, from += step, at += step_at) {
                const floats v = { from[0], from[next], from[2 * next], from[3 * next] };
                const words is_better = ~(v <= best) & (best == best);
                best = (floats)(((words)v & is_better) | ((words)best & ~is_better));
                found = (at & is_better) | (found & ~is_better);
                if (is_first) found = at;
                is_first = false;
            }
        }
    *most = best;
    *place = found;
}

/* Rows of one plane. */
static void rows_with_places(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const pool_job *j = arg;
    const pool_record *r = j->r;
    for (int64_t i = begin; i < end; i++) {
        const int64_t h = i % r->out[1], d = i / r->out[1] % r->out[0], plane = i / r->out[1] / r->out[0];
        const int64_t n = plane / r->channels, c = plane % r->channels;
        const float *x = (const float *)(const void *)j->x + n * r->x_image + c * r->x_channel;
        float *y = (float *)(void *)j->y + n * r->y_image + c * r->y_channel + d * r->y_dim[0] + h * r->y_dim[1];
        int64_t *at =
            (int64_t *)j->io.out[1] + n * r->at_image + c * r->at_channel + d * r->at_dim[0] + h * r->at_dim[1];
        pool_span s[POOL_SPATIAL] = { pool_span_of(r, 0, d), pool_span_of(r, 1, h) };
        for (int64_t w = 0, count; w < r->out[2]; w += count) {
            floats most;
            words place;
            s[2] = pool_span_of(r, 2, w);
            const bool is_inside = s[2].first == 0 && s[2].stop == r->kernel[2] && w + SIDE <= r->out[2] &&
                                   pool_span_of(r, 2, w + SIDE - 1).stop == r->kernel[2];
            count = is_inside ? SIDE : 1;
            largest(r, x, s, !is_inside, &most, &place);
            for (int64_t k = 0; k < count; k++) {
                y[(w + k) * r->y_dim[2]] = most[k];
                at[(w + k) * r->at_dim[2]] = plane * r->plane_size + place[k];
            }
        }
    }
}

static sinter_status run(const kernel_run *k)
{
    const pool_record *r = k->record;
    pool_job j = { r, { k->in, k->out }, k->in[0], k->out[0] };
    if (!r->images || !r->channels || !r->out[0] || !r->out[1] || !r->out[2]) return SINTER_OK;
    if (r->way == POOL_LAST) {
        row_parallel(k, r->images * r->out[0] * r->out[1] * tiles_of_row(r), rows_last, &j);
        return SINTER_OK;
    }
    if (r->way == POOL_PLACES) {
        row_parallel(k, r->images * r->channels * r->out[0] * r->out[1], rows_with_places, &j);
        return SINTER_OK;
    }
    if (r->way == POOL_WIDTH) pool_width_run(r, k, &j);
    else if (r->way == POOL_TURNED) row_parallel(k, r->images * turned_tiles(r), turned, &j);
    else row_parallel(k, r->images * r->channels, planes, &j);
    row_after_all(&r->after, k, k->out[0]);
    return SINTER_OK;
}

const kernel cpu_pool_max = {
    .name = "cpu_pool_max",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .reject = max_reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record = sizeof(pool_record),
    .record_size = row_record_room,
    .bind = bind,
    .run = run,
};
const kernel cpu_pool_avg = {
    .name = "cpu_pool_avg",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .reject = avg_reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record = sizeof(pool_record),
    .record_size = row_record_room,
    .bind = bind,
    .run = run,
};
const kernel cpu_pool_lp = {
    .name = "cpu_pool_lp",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .reject = lp_reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record = sizeof(pool_record),
    .record_size = row_record_room,
    .bind = bind,
    .run = run,
};
