/* SPDX-License-Identifier: Apache-2.0 */
/* row_stem.c - convolutions of a few input channels on tensor cores: the row of stem.cu.
 *
 * The first layers of networks of images: too few channels for the rows that take them sixteen at a time. A block reads
 * what its pixels see once, in the order in which it lies and through the prologue (a cast, a normalisation), so that
 * no kernel has to prepare the image. Everything but the sizes of the image is a constant of the compilation.
 *
 * A convolution of integers of 8 bits is one of f16: the image without its zero point and the weights are exact there,
 * and so are sums in f32 as long as they stay below 2^23. */
#include "cuda/cuda_emit.h"
#include "cuda/cuda_kernels.h"
#include "cuda/device/stem_args.h"
#include "cuda/product.h"
#include "cuda/ranking.h"

#include <math.h>
#include <string.h>

enum { CHANNELS_MOST = 8, STEPS_MOST = 28, STEPS_CHUNK = 16, STEPS_ROW = 32, THREADS_MOST = 256, LOOPS_MOST = 16 };

typedef struct stem_tactic {
    uint8_t tw;             /* pixels of a row of the tile; the rest are rows */
    uint8_t mt, nt, wm, wn; /* fragments of a warp, warps */
    uint8_t blocks;         /* that registers must allow on a multiprocessor */
    uint8_t loops, trigger, zero[TACTIC_SIZE - 8];
} stem_tactic;
_Static_assert(sizeof(stem_tactic) == TACTIC_SIZE, "a tactic is overlaid");
static const tactic_field fields[] = {
    FIELD(stem_tactic, tw, 8, 64, true),      FIELD(stem_tactic, mt, 1, 4, true), FIELD(stem_tactic, nt, 2, 8),
    FIELD(stem_tactic, wm, 1, 8, true),       FIELD(stem_tactic, wn, 1, 4),       FIELD(stem_tactic, blocks, 1, 8),
    FIELD(stem_tactic, loops, 1, LOOPS_MOST), FIELD(stem_tactic, trigger, 1, 3),
};

/* ---- the problem ---- */

typedef struct stem_shape {
    uint8_t type, rank, size, per; /* bytes of an element in the patch, elements of a word */
    uint8_t from;                  /* STEM_FROM_…: the image's elements */
    bool is_planes, is_disjoint, by_rows, has_zero;
    uint32_t vec; /* elements of a line that are read at once */
    int64_t c, cp, kh, kw, sh, sw, dh, pad_y, pad_x, cols;
    int64_t kr, steps; /* rows of the filter of a chunk, its steps of 8 words */
    int64_t lead;      /* elements of a line before the first that is used */
} stem_shape;

typedef struct stem_patch {
    int64_t rows, groups, pitch, pix, bytes;
} stem_patch;

static bool is_static(dim_range d)
{
    return problem_dim_is_static(d) && d.max > 0;
}

/* Operands of a prologue have the image as their whole space. */
static const char *prologue_fits(const problem *p)
{
    const problem_operand *x = &p->in[0];
    for (uint32_t i = 0; p->prologue && i < p->prologue->count; i++) {
        if (p->prologue->at[i].op != EXPR_LOAD) continue;
        const problem_operand *o = &p->in[p->prologue->at[i].operand];
        REJECT_UNLESS(o->rank <= x->rank, "an operand of the prologue has more axes than the image");
        for (uint32_t k = 0; k < o->rank; k++) {
            const dim_range d = o->dim[k], full = x->dim[x->rank - o->rank + k];
            REJECT_UNLESS(d.max == 1 || (d.min == full.min && d.max == full.max && d.divisor == full.divisor),
                          "an operand of the prologue is larger than the image");
        }
    }
    return NULL;
}

/* How the image is read. */
static void lines_of(const problem *p, stem_shape *s)
{
    const problem_operand *x = &p->in[0];
    const uint32_t last = x->rank - 1u, inner = cuda_operand_inner(x);
    const dim_range d = x->dim[last];
    const int64_t width = problem_dim_is_static(d) ? d.max : d.divisor;
    /* A row of pixels of all channels is one line where nothing lies between them. */
    s->is_planes = p->prologue || inner != 1 || s->c != s->cp || x->is_strided || x->order[last - 1] != last;
    const uint32_t size = s->from && !p->prologue ? 1 : s->size;
    if (!s->is_planes) s->vec = cuda_power_in(width * s->c, 16u / size);
    else s->vec = inner == last ? cuda_power_in(width, cuda_operand_vector(x, 4)) : 1;
    const int64_t from = s->pad_x * (s->is_planes ? 1 : s->c);
    s->lead = cuda_ceil_div(from, s->vec) * s->vec - from;
}

static const char *types_of(const product *d, stem_shape *s)
{
    const sinter_dtype type = d->type_x, weight = d->type_w;
    if (!d->is_integer) {
        REJECT_UNLESS(type == weight, "the factors differ in type");
        REJECT_UNLESS(type == SINTER_DTYPE_F16 || type == SINTER_DTYPE_BF16 || type == SINTER_DTYPE_F32,
                      "not in f16, bf16 or f32");
        s->type = type == SINTER_DTYPE_F16 ? STEM_F16 : type == SINTER_DTYPE_BF16 ? STEM_BF16 : STEM_TF32;
        return NULL;
    }
    s->type = STEM_F16;
    s->from = type == SINTER_DTYPE_U8 ? STEM_FROM_U8 : STEM_FROM_I8;
    s->has_zero = d->zero_x;
    REJECT_UNLESS((type == SINTER_DTYPE_U8 || type == SINTER_DTYPE_I8) &&
                      (weight == SINTER_DTYPE_U8 || weight == SINTER_DTYPE_I8),
                  "not in i8 or u8");
    REJECT_UNLESS(!d->zero_w && d->zero_x <= ZERO_ONE, "the weights have zero points, or the image several");
    return NULL;
}

static const char *stem_shape_of(const problem *p, stem_shape *s)
{
    *s = (stem_shape){ 0 };
    product d;
    const char *why = product_of(p, &d);
    if (why) return why;
    const product_slide *a = &d.slide;
    const problem_operand *x = &p->in[0], *w = &p->in[1];
    REJECT_UNLESS(d.kind == PRODUCT_CONV && d.spatial <= 2, "no convolution along one axis or two");
    REJECT_UNLESS(d.is_w_fixed && !d.is_w_empty, "the filter is no constant of fixed size");
    REJECT_UNLESS(a->groups == 1 && is_static(x->dim[1]) && x->dim[1].max == w->dim[1].max, "has groups");
    REJECT_UNLESS(x->dim[1].max <= CHANNELS_MOST, "more than 8 input channels");
    why = prologue_fits(p);
    if (!why) why = types_of(&d, s);
    if (why) return why;
    const uint32_t spatial = d.spatial;
    const bool is_plane = spatial == 2;
    s->size = s->type == STEM_TF32 ? 4 : 2;
    s->per = (uint8_t)(4 / s->size);
    s->rank = x->rank;
    s->c = x->dim[1].max;
    s->cols = w->dim[0].max;
    s->kh = is_plane ? w->dim[2].max : 1;
    s->kw = w->dim[x->rank - 1].max;
    s->sh = is_plane ? a->stride->at[0] : 1;
    s->sw = a->stride->at[spatial - 1];
    s->dh = is_plane ? a->dilation->at[0] : 1;
    s->pad_y = is_plane ? a->pad->at[0] : 0;
    s->pad_x = a->pad->at[spatial - 1];
    REJECT_UNLESS(s->kw == 1 || a->dilation->at[spatial - 1] == 1, "dilated along rows");
    REJECT_UNLESS(s->sh >= 1 && s->sw >= 1 && s->sh <= 64 && s->sw <= 64 && s->dh >= 1 && s->dh <= 64 &&
                      s->pad_y >= 0 && s->pad_x >= 0 && s->pad_y <= 4096 && s->pad_x <= 4096,
                  "a stride, dilation or pad out of range");
    s->cp = s->sw * s->c % s->per ? s->c + 1 : s->c;
    REJECT_UNLESS(s->kw <= 512 && s->kh <= 64, "more than 512 taps across or 64 down");
    const int64_t largest = w->dtype == SINTER_DTYPE_I8 ? 128 * 255 : 255 * 255;
    REJECT_UNLESS(!s->from || s->kh * s->kw * s->c * largest < 1 << 23, "sums that f32 does not hold exactly");
    const int64_t words = cuda_ceil_div(s->kw * s->cp, s->per);
    s->kr = s->kh;
    if (cuda_ceil_div(s->kr * words, 8) > STEPS_MOST)
        while (s->kr > 1 && (s->kh % s->kr || cuda_ceil_div(s->kr * words, 8) > STEPS_CHUNK)) s->kr--;
    s->steps = cuda_ceil_div(s->kr * words, 8);
    REJECT_UNLESS(s->steps <= STEPS_ROW, "a row of the filter has more than 1024 bytes");
    s->is_disjoint = s->sw >= s->kw;
    s->by_rows = s->kr != s->kh || s->sh >= s->kh;
    lines_of(p, s);
    return NULL;
}

static int64_t columns_of(const stem_tactic *t)
{
    return 8 * (int64_t)t->nt * t->wn;
}

static int64_t rows_of(const stem_tactic *t)
{
    return 16 * (int64_t)t->mt * t->wm / t->tw;
}

static int64_t weight_bytes(const stem_shape *s, const stem_tactic *t)
{
    return s->steps * columns_of(t) * 32;
}

static stem_patch patch_of(const stem_shape *s, const stem_tactic *t)
{
    stem_patch x;
    const int64_t per = s->is_planes ? 1 : s->c, run = s->vec * (s->is_planes ? s->cp : 1);
    x.rows = s->by_rows ? rows_of(t) * s->kr : (rows_of(t) - 1) * s->sh + (s->kh - 1) * s->dh + 1;
    x.groups = cuda_ceil_div(s->lead + ((t->tw - 1) * s->sw + s->kw) * per, s->vec);
    x.pix = s->sw * s->cp;
    /* Windows of their own: 8 pixels at 4 banks each fall on all. */
    const int64_t bank4 = 4 * s->per;
    if (s->is_disjoint) x.pix = cuda_ceil_div(s->kw * s->cp + 1, bank4) * bank4;
    if (s->is_disjoint && x.pix % (2 * bank4) == 0) x.pix += bank4;
    /* One element more may be read (and masked), one less be a half of a pair. */
    x.pitch = cuda_ceil_div((s->is_disjoint ? t->tw * x.pix : x.groups * run) + 2, 8) * 8;
    x.bytes = x.rows * x.pitch * s->size;
    return x;
}

static int64_t shared_of(const stem_shape *s, const stem_tactic *t)
{
    return weight_bytes(s, t) * (s->kr < s->kh ? 2 : 1) + patch_of(s, t).bytes;
}

/* Sums of integers are handed over as the floats that they are. */
static void space_of(const problem *p, emit_space *s)
{
    emit_space_of(p, s);
    s->width = 8;
    s->acc = SINTER_DTYPE_F32;
}

static emit_space prologue_of(const problem *p, const stem_shape *s)
{
    emit_space e = { .p = p,
                     .program = p->prologue,
                     .prefix = "pro",
                     .rank = p->in[0].rank,
                     .inner = (uint8_t)(p->in[0].rank - 1),
                     .width = s->vec,
                     .acc = SINTER_DTYPE_F32 };
    memcpy(e.dim, p->in[0].dim, sizeof e.dim);
    return e;
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out);

static const char *reject_of(const problem *p, const kernel_target *t, bool is_relaxed)
{
    stem_shape s;
    const char *why = stem_shape_of(p, &s);
    if (why) return why;
    REJECT_UNLESS((s.type == STEM_TF32) == is_relaxed, is_relaxed ? "not in f32" : "f32 would be rounded to tf32");
    REJECT_UNLESS(t->isa >= 80 || (t->isa >= 75 && s.type == STEM_F16),
                  "the chip's tensor cores do not take this type");
    emit_space e;
    space_of(p, &e);
    REJECT_UNLESS(e.rank == p->out[0].rank && e.inner == 1, "columns of the result are not adjacent");
    why = emit_reject(&e);
    if (why) return why;
    if (p->prologue) {
        const emit_space before = prologue_of(p, &s);
        why = emit_reject(&before);
        if (why) return why;
    }
    tactic_sink sink = { .count = 0 };
    tactics(p, t, &sink);
    REJECT_UNLESS(sink.count, "the filter and what a few pixels see do not fit shared memory");
    return NULL;
}

static const char *reject(const problem *p, const kernel_target *t)
{
    return reject_of(p, t, false);
}

static const char *reject_tf32(const problem *p, const kernel_target *t)
{
    return reject_of(p, t, true);
}

/* ---- the estimate ---- */

static double tiles_of(const problem *p, const stem_tactic *t)
{
    const problem_operand *y = &p->out[0];
    const double h = y->rank == 4 ? (double)y->dim[2].opt : 1;
    return (double)y->dim[0].opt * ceil((double)y->dim[y->rank - 1].opt / t->tw) * ceil(h / (double)rows_of(t));
}

/* A block's work in clocks of a multiprocessor, by what bounds it; then whole rounds of blocks, or bytes. */
static double estimate(const problem *p, const stem_shape *s, const stem_tactic *t, const kernel_target *target)
{
    const machine m = machine_of(target);
    const double units = m.units, ghz = m.ghz, rate = m.flops / 2; /* products of a clock */
    const stem_patch patch = patch_of(s, t);
    const double bm = (double)rows_of(t) * t->tw, bn = (double)columns_of(t), warps = t->wm * t->wn;
    const double chunks = (double)(s->kh / s->kr), steps = (double)s->steps * chunks;
    const double math = steps * 16 * bm * bn / rate; /* of half as many terms at half the rate in tf32 */
    const double words = (double)s->sw * (double)s->cp / s->per;
    const double ways = s->is_disjoint || (int64_t)words % 8 ? 1 : 2;
    const double local = steps * (bm / 16 * t->wn * 4 * ways + bn / 16 * t->wm * 4);
    /* Instructions of all warps over four schedulers. */
    const double lines = s->is_planes ? (double)s->c : 1, run = (double)(s->vec * s->c);
    const double unit = 18 + lines * (p->prologue ? 6 : 3) + run * (p->prologue ? 2.5 : 1.5);
    const double vec = t->nt % 4 ? 4 : 8;
    const double issue =
        ((double)(patch.rows * patch.groups) * chunks * unit / 32 +
         steps * warps * (t->mt * 4 + t->nt / 2.0 + t->mt * t->nt + 6) + bm * bn / vec / 32 * (25 + 5 * vec)) /
        4;
    const double weights = (double)weight_bytes(s, t) / 40 * (chunks > 1 ? chunks * t->loops : 1);
    const double size = (double)shared_of(s, t) + 1024;
    double resident = (double)(int64_t)(m.shared / size);
    const double fit = 2048 / (warps * 32) < t->blocks ? 2048 / (warps * 32) : t->blocks;
    if (resident > fit) resident = fit;
    if (resident < 1) resident = 1;
    /* What bounds it hides the rest as far as there are warps to take turns. */
    const double turns = resident * warps / 4, apart = turns >= 4 ? 0.15 : turns >= 3 ? 0.3 : turns >= 2 ? 0.5 : 0.9;
    double tile = math > local ? math : local;
    if (issue > tile) tile = issue;
    tile += (math + local + issue - tile) * apart;
    const double blocks = ceil(tiles_of(p, t) / t->loops) * ceil((double)s->cols / bn);
    const double each = ceil(blocks / units), together = each < resident ? each : resident;
    const double rounds = ceil(each / resident);
    /* Nothing hides a wait but other blocks: what one waits for its patch, in turns, and its own work when alone. */
    const double alone = (t->loops * (tile * 2 + 500) + weights) / ghz + 900;
    const double busy = (each * (t->loops * tile + weights)) / ghz;
    double total = rounds * alone * (together > 2 ? 0.75 : 1);
    if (busy > total) total = busy;
    const double memory = cuda_problem_bytes(p) / m.bandwidth;
    if (memory > total) total = memory;
    return 1500 + total;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    stem_shape s;
    const stem_tactic x = TACTIC_AS(stem_tactic, t);
    return stem_shape_of(p, &s) ? 1e12 : estimate(p, &s, &x, target);
}

/* ---- tactics ---- */

static bool is_tile(const stem_tactic *t)
{
    const uint32_t threads = 32u * t->wm * t->wn, sums = (uint32_t)t->mt * t->nt;
    return t->nt % 2 == 0 && threads >= 64 && threads <= THREADS_MOST && sums <= 16 * (threads > 128 ? 1u : 2u) &&
           t->tw <= 16 * t->mt * t->wm && 16 * t->mt * t->wm % t->tw == 0;
}

/* As many as leave each warp what sums, fragments, addresses and a patch that is under way take; a quarter of the
 * multiprocessor has 512 registers a lane for its warps. */
static uint8_t blocks_of(const stem_tactic *t)
{
    const uint32_t warps = (uint32_t)t->wm * t->wn,
                   wants = t->mt * t->nt * 4u + t->mt * t->mt * 4u + t->nt * 2u + (t->loops > 1 ? 60 : 32);
    uint32_t n = 512 / (wants < 72 ? 72 : wants) * 4 / warps;
    if (n > 8) n = 8;
    return (uint8_t)(n ? n : 1);
}

static bool check(const problem *p, const tactic *t)
{
    stem_shape s;
    const stem_tactic x = TACTIC_AS(stem_tactic, t);
    return FIELDS_HOLD(fields, t) && !stem_shape_of(p, &s) && is_tile(&x) && x.blocks == blocks_of(&x) &&
           shared_of(&s, &x) <= 232448;
}

/* The best of each number of warps and columns, then others by their estimate. */
static void tactics(const problem *p, const kernel_target *target, tactic_sink *out)
{
    enum { BEST = 12 };
    stem_shape s;
    if (stem_shape_of(p, &s)) return;
    struct {
        double cost;
        stem_tactic t;
    } best[BEST + 1];
    uint32_t count = 0;
    const problem_operand *y = &p->out[0];
    const int64_t w = y->dim[y->rank - 1].opt, h = y->rank == 4 ? y->dim[2].opt : 1, limit = target->shared;
    static const uint8_t widths[] = { 8, 16, 32, 64 }, powers[] = { 1, 2, 4, 8 };
    stem_tactic x = { .trigger = 2 };
    for (x.nt = 2; x.nt <= 8; x.nt = (uint8_t)(x.nt + 2))
        for (x.wn = 1; x.wn <= 4; x.wn++) {
            const int64_t bn = columns_of(&x);
            if (bn > cuda_ceil_div(s.cols, 16) * 16 && bn > 16) continue;
            if (bn < 32 && s.cols > bn) continue;
            for (uint32_t k = 0; k < 4 * 3 * 4 * 4; k++) {
                x.tw = widths[k % 4];
                x.mt = powers[k / 4 % 3];
                x.wm = powers[k / 12 % 4];
                x.loops = powers[k / 48];
                if (!is_tile(&x) || shared_of(&s, &x) > limit) continue;
                if ((x.tw > 8 && x.tw >= 2 * w) || (rows_of(&x) > 1 && rows_of(&x) >= 2 * h)) continue;
                x.blocks = blocks_of(&x);
                const double cost = estimate(p, &s, &x, target);
                /* One of a kind: loops and widths of a tile differ little. */
                uint32_t at = count;
                for (uint32_t i = 0; i < count; i++)
                    if (best[i].t.nt == x.nt && best[i].t.wn == x.wn && best[i].t.wm == x.wm && best[i].t.mt == x.mt &&
                        (best[i].t.loops > 1) == (x.loops > 1))
                        at = i;
                if (at < count && best[at].cost <= cost) continue;
                if (at == count) at = count < BEST ? count++ : BEST;
                while (at > 0 && best[at - 1].cost > cost) {
                    best[at] = best[at - 1];
                    at--;
                }
                best[at].cost = cost;
                best[at].t = x;
            }
        }
    for (uint32_t i = 0; i < count; i++) tactic_put(out, &best[i].t);
    for (uint32_t i = 0; i < 2 && i < count && target->isa >= 90; i++) {
        stem_tactic t = best[i].t;
        t.trigger = 3;
        tactic_put(out, &t);
    }
}

static void print(const tactic *t, text *out)
{
    const stem_tactic x = TACTIC_AS(stem_tactic, t);
    text_printf(out, "%ux%u pixels x %u, warps %ux%u, %u tiles, t%u", (unsigned)rows_of(&x), x.tw,
                (unsigned)columns_of(&x), x.wm, x.wn, x.loops, x.trigger);
}

/* ---- weights ---- */

static int64_t packed_blocks(const stem_shape *s, const stem_tactic *t)
{
    return cuda_ceil_div(s->cols, columns_of(t));
}

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    stem_shape s;
    const stem_tactic x = TACTIC_AS(stem_tactic, t);
    if (input != 1 || stem_shape_of(p, &s)) return 0;
    return size_mul((size_t)(packed_blocks(&s, &x) * (s.kh / s.kr)), (size_t)weight_bytes(&s, &x));
}

/* What stands at (tile, column) of a block's fragments: as stem.cu hands sums to its epilogue. */
static int64_t channel_of(const stem_tactic *t, int64_t tile, int64_t column)
{
    const int64_t group = t->nt % 4 ? 2 : 4, warp = tile / t->nt, at = tile % t->nt;
    return (warp * t->nt + at / group * group) * 8 + column / 2 * (2 * group) + at % group * 2 + column % 2;
}

static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    stem_shape s;
    const stem_tactic x = TACTIC_AS(stem_tactic, t);
    if (stem_shape_of(p, &s)) return;
    memset(dst, 0, pack_size(p, t, input));
    const int64_t words = cuda_ceil_div(s.kw * s.cp, s.per), bn = columns_of(&x), chunks = s.kh / s.kr;
    const int64_t stride_y = src->rank == 4 ? src->stride[2] : 0, stride_x = src->stride[src->rank - 1];
    uint8_t *to = dst;
    for (int64_t block = 0; block < packed_blocks(&s, &x) * chunks; block++)
        for (int64_t i = 0; i < s.steps * (bn / 16) * 32 * 4 * s.per; i++, to += s.size) {
            /* Elements of a lane: tile of two, half of the step, element of the word. */
            const int64_t word = i / s.per, lane = word / 4 % 32, step = word / 128 / (bn / 16);
            const int64_t tile = word / 128 % (bn / 16) * 2 + (word >> 1 & 1);
            const int64_t q = step * 8 + (word & 1) * 4 + lane % 4, row = q / words;
            const int64_t e = q % words * s.per + i % s.per, tap = e / s.cp, c = e % s.cp;
            const int64_t n = block / chunks * bn + channel_of(&x, tile, lane / 4);
            if (row >= s.kr || tap >= s.kw || c >= s.c || n >= s.cols) continue;
            const int64_t at =
                n * src->stride[0] + c * src->stride[1] + (block % chunks * s.kr + row) * stride_y + tap * stride_x;
            if (s.from) {
                const uint8_t byte = ((const uint8_t *)src->data)[at];
                const uint16_t half = dtype_f16_of_f64(src->dtype == SINTER_DTYPE_I8 ? (int8_t)byte : byte);
                memcpy(to, &half, sizeof half);
                continue;
            }
            memcpy(to, (const uint8_t *)src->data + at * s.size, s.size);
            if (s.type == STEM_TF32) product_round_tf32(to);
        }
}

/* ---- code and launch ---- */

static bool code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    stem_shape s;
    const stem_tactic x = TACTIC_AS(stem_tactic, t);
    if (index || stem_shape_of(p, &s)) return false;
    const stem_patch patch = patch_of(&s, &x);
    c->source = "stem.cu";
    c->entry = "stem";
    const struct {
        const char *name;
        int64_t value;
    } list[] = {
        { "TYPE", s.type },
        { "C", s.c },
        { "CP", s.cp },
        { "KH", s.kh },
        { "KW", s.kw },
        { "SH", s.sh },
        { "SW", s.sw },
        { "DH", s.dh },
        { "KR", s.kr },
        { "STEPS", s.steps },
        { "TH", rows_of(&x) },
        { "TW", x.tw },
        { "MT", x.mt },
        { "NT", x.nt },
        { "WM", x.wm },
        { "WN", x.wn },
        { "PLANES", s.is_planes },
        { "X_VEC", s.vec },
        { "LEAD", s.lead },
        { "ROWS", patch.rows },
        { "GROUPS", patch.groups },
        { "PITCH", patch.pitch },
        { "PIX", patch.pix },
        { "PRO", p->prologue != NULL },
        { "FROM", s.from },
        { "HAS_ZERO", s.has_zero },
        { "MANY", x.loops > 1 || s.kr < s.kh },
        { "RANK", s.rank },
        { "COLS", s.cols },
        { "MIN_BLOCKS", x.blocks },
    };
    for (uint32_t i = 0; i < COUNT_OF(list); i++) cuda_code_define(c, list[i].name, list[i].value);
    /* Compilers for other chips than Hopper's give up a few words of f32 for more blocks. */
    c->may_spill = (p->epilogue && p->epilogue->count > 20) || (p->prologue && p->prologue->count > 12) ||
                   (s.type == STEM_TF32 && target->isa != 90);
    emit_space e;
    space_of(p, &e);
    emit_text(&e, c->generated);
    if (p->prologue) {
        const emit_space before = prologue_of(p, &s);
        emit_text(&before, c->generated);
    }
    return true;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *record)
{
    cuda_record *r = record;
    (void)attrs;
    stem_shape s;
    const stem_tactic x = TACTIC_AS(stem_tactic, t);
    const char *why = stem_shape_of(p, &s);
    if (why) return FAIL(e, INTERNAL, "cuda_stem was given a problem that it rejects: %s", why);
    const view *from = &in[0], *to = &out[0];
    const bool is_plane = from->rank == 4;
    const uint32_t last = from->rank - 1;
    const int64_t h = is_plane ? to->dim[2] : 1, w = to->dim[last], per = s.is_planes ? 1 : s.c;
    const int64_t tiles_x = cuda_ceil_div(w, x.tw), tiles_y = cuda_ceil_div(h, rows_of(&x)),
                  n_blocks = packed_blocks(&s, &x);
    int64_t tiles, blocks;
    if (!i64_mul(tiles_x, tiles_y, &tiles) || !i64_mul(tiles, to->dim[0], &tiles) || tiles > INT32_MAX / 2 ||
        !i64_mul(cuda_ceil_div(tiles, x.loops), n_blocks, &blocks) || blocks > INT32_MAX ||
        from->dim[last] > INT32_MAX / 64 || (is_plane && from->dim[2] > INT32_MAX / 64) || w > INT32_MAX / 1024 ||
        h > INT32_MAX / 128)
        return FAIL(e, UNSUPPORTED, "a convolution of more pixels than 32 bits count");
    stem_args *a;
    TRY(cuda_launch_begin(e, r, 0, (uint64_t)blocks, 1, 1, 32u * x.wm * x.wn, (uint32_t)shared_of(&s, &x), sizeof *a,
                          &a));
    *a = (stem_args){
        .x_image = from->stride[0],
        .x_channel = from->stride[1],
        .x_row = is_plane ? from->stride[2] : 0,
        .x_step = s.is_planes ? from->stride[last] : 1,
        .in_h = is_plane ? (small)from->dim[2] : 1,
        .in_line = (small)(from->dim[last] * per),
        .out_h = (small)h,
        .out_w = (small)w,
        .pad_y = (small)s.pad_y,
        .line_from = (small)(s.pad_x * per + s.lead),
        .tiles = (small)tiles,
        .loops = x.loops,
        .trigger = x.trigger,
        .n_blocks = cuda_fast_div(n_blocks),
        .tiles_x = cuda_fast_div(tiles_x),
        .tiles_y = cuda_fast_div(tiles_y),
    };
    CUDA_PATCH(r, a, x, PATCH_IN, 0);
    CUDA_PATCH(r, a, w, PATCH_IN, 1);
    if (s.has_zero) CUDA_PATCH(r, a, zero, PATCH_IN, 2);
    emit_space space;
    space_of(p, &space);
    TRY(emit_bind(e, &space, in, out, r));
    if (!p->prologue) return SINTER_OK;
    const emit_space before = prologue_of(p, &s);
    return emit_bind(e, &before, in, out, r);
}

#define STEM_ROW(id, rejects, of)                                                                                      \
    CUDA_ROW(id, 2, rejects, , .out_strides = STRIDES_ROWS, .numerics = of, .pack_size = pack_size, .pack = pack)
STEM_ROW(cuda_stem, reject, KERNEL_EXACT_SUMS);
STEM_ROW(cuda_stem_tf32, reject_tf32, KERNEL_RELAXED);
