/* SPDX-License-Identifier: Apache-2.0 */
/* row_transpose_planes.c - transposed convolution in f32 where operands lie row-major: dense or in groups, few or odd
 * channels.
 *
 * Output o gets x[i] * w[k] wherever o + pad == i * stride + k * dilation. So with u = (o + pad) / stride and
 * q = (o + pad) % stride, a class q of outputs is a convolution of stride 1 over u, whose taps are those k with
 * k * dilation % stride == q: they read x[u - k * dilation / stride]. Classes that read the same places are a family,
 * computed together as if they were channels; where strides divide the filter's sizes there is one. The loops are those
 * of cpu_conv_planes. They write chunks of all classes to scratch, from which rows of the result are joined. Rows of a
 * band lie behind each other, and are computed as one. */
#include "cpu/conv_planes.h"
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/plane_band.h"
#include "cpu/row_conv_shape.h"

#include <string.h>

/* BAND: floats of the copies of a group's planes, as long as they can be cut; HARD: at most. READ: floats of them for a
 * chunk, and SUMS: floats of its results, as long as it has COLUMNS. OUTS: channels and classes that are computed
 * together, at least. FULL: channels of a vector. */
enum {
    BAND = 32768,
    HARD = 262144,
    READ = 6144,
    SUMS = 16384,
    COLUMNS = 48,
    OUTS = 8,
    FULL = 16,
    TERMS = 4096,
    TAPS = 256,
    CLASSES = 64
};

/* The classes families.at[begin] to families.at[begin + members - 1], of so many taps each. */
typedef struct family {
    int64_t begin, members, taps;
} family;
typedef struct families {
    int64_t classes, count, block; /* block: channels of the result that are computed together */
    family list[CLASSES];
    uint8_t at[CLASSES], of[CLASSES], member[CLASSES]; /* of, member: of each class */
} families;

typedef struct record {
    const plane_set *set;
    conv_shape shape, near; /* near: the convolution over u */
    plane_band band;
    families families;
    int64_t first[3], channels, outs, chunk; /* first: the u of result 0; channels, outs: of a group */
    int64_t at[TAPS];                        /* of each family */
    int64_t copied;                          /* floats of the copies, which chunks follow */
    size_t scratch;
    bool is_direct;  /* each result reads the pixel at its own u: all but the end of a band is read where it lies */
    row_after after; /* the epilogue: bias and clip in the loops, or a program behind them */
} record;

static int64_t classes_of(const conv_shape *s)
{
    return s->stride[0] * s->stride[1] * s->stride[2];
}

/* One index of three, of sizes n. */
static void index3(const int64_t n[3], int64_t i, int64_t out[3])
{
    out[0] = i / (n[1] * n[2]);
    out[1] = i / n[2] % n[1];
    out[2] = i % n[2];
}

/* The taps of a class in order. Returns their number. */
static int64_t taps_of(const conv_shape *s, int64_t class, int64_t tap[TAPS])
{
    int64_t q[3], k[3], count = 0;
    index3(s->stride, class, q);
    for (int64_t t = 0; t < row_conv_taps(s); t++) {
        index3(s->kernel, t, k);
        bool is_ours = true;
        for (int i = 0; i < 3; i++) is_ours = is_ours && k[i] * s->dilation[i] % s->stride[i] == q[i];
        if (is_ours) tap[count++] = t;
    }
    return count;
}

/* How far before u a tap reads, along each axis. */
static void reach_of(const conv_shape *s, int64_t tap, int64_t out[3])
{
    index3(s->kernel, tap, out);
    for (int i = 0; i < 3; i++) out[i] = out[i] * s->dilation[i] / s->stride[i];
}

static bool is_family(const conv_shape *s, int64_t a, int64_t b)
{
    int64_t tap[2][TAPS], reach[2][3];
    const int64_t count = taps_of(s, a, tap[0]);
    bool is_same = taps_of(s, b, tap[1]) == count;
    for (int64_t t = 0; is_same && t < count; t++) {
        for (int i = 0; i < 2; i++) reach_of(s, tap[i][t], reach[i]);
        is_same = !memcmp(reach[0], reach[1], sizeof reach[0]);
    }
    return is_same;
}

static families families_of(const conv_shape *s)
{
    families f = { .classes = classes_of(s) };
    bool is_placed[CLASSES] = { false };
    int64_t placed = 0, most = 1, tap[TAPS];
    for (int64_t a = 0; a < f.classes; a++) {
        if (is_placed[a]) continue;
        family *to = &f.list[f.count];
        *to = (family){ .begin = placed, .taps = taps_of(s, a, tap) };
        for (int64_t b = a; b < f.classes; b++) {
            if (is_placed[b] || !is_family(s, a, b)) continue;
            is_placed[b] = true;
            f.of[b] = (uint8_t)f.count;
            f.member[b] = (uint8_t)to->members++;
            f.at[placed++] = (uint8_t)b;
        }
        if (to->members > most) most = to->members;
        f.count++;
    }
    f.block = (OUTS - 1) / most + 1;
    return f;
}

static conv_shape shape_begin(const problem *p, const void *attrs)
{
    const attrs_conv_transpose *a = attrs;
    const uint32_t spatial = p->in[0].rank - 2;
    conv_shape s = { .groups = a->groups, .c_in = p->in[0].dim[1].max, .c_out = p->in[1].dim[1].max * a->groups };
    for (uint32_t i = 0; i < 3; i++) s.in[i] = s.out[i] = s.kernel[i] = s.stride[i] = s.dilation[i] = 1;
    for (uint32_t i = 0; i < spatial; i++) {
        const uint32_t to = 3 - spatial + i;
        s.kernel[to] = p->in[1].dim[2 + i].max;
        s.stride[to] = a->stride.at[i];
        s.dilation[to] = a->dilation.at[i];
        s.pad[to] = a->pad.at[i];
    }
    return s;
}

static conv_shape shape_of(const problem *p, row_bound b)
{
    conv_shape s = shape_begin(p, p->attrs);
    const uint32_t spatial = p->in[0].rank - 2;
    s.images = row_size(p->in[0].dim[0], b);
    for (uint32_t i = 0; i < spatial; i++) {
        s.in[3 - spatial + i] = row_size(p->in[0].dim[2 + i], b);
        s.out[3 - spatial + i] = row_size(p->out[0].dim[2 + i], b);
    }
    return s;
}

/* The convolution of stride 1 that all classes are parts of. */
static conv_shape near_of(const conv_shape *s)
{
    conv_shape n = *s;
    for (int i = 0; i < 3; i++) {
        n.kernel[i] = (s->kernel[i] - 1) * s->dilation[i] / s->stride[i] + 1;
        n.stride[i] = n.dilation[i] = 1;
        n.pad[i] = n.kernel[i] - 1 - s->pad[i] / s->stride[i];
        n.out[i] = s->out[i] > 0 ? (s->out[i] - 1 + s->pad[i]) / s->stride[i] - s->pad[i] / s->stride[i] + 1 : 0;
    }
    return n;
}

/* A band, whose rows lie behind each other, and the floats that its copy of a plane takes. */
static plane_band band_of(const conv_shape *near, int64_t most)
{
    plane_band b = plane_band_find(near, most);
    b.row = b.part -= PLANE_SLACK;
    return b;
}

static int64_t band_size(const plane_band *b)
{
    return plane_band_size(b) + PLANE_SLACK;
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_conv_transpose, "not a transposed convolution");
    REJECT_UNLESS(row_is_f32(p, p->count_anchor), "not in f32");
    const problem_operand *x = &p->in[0], *w = &p->in[1], *y = &p->out[0];
    const uint32_t spatial = x->rank - 2u;
    REJECT_UNLESS(x->rank >= 3 && x->rank <= 5 && w->rank == x->rank && y->rank == x->rank,
                  "has no or more than three spatial axes");
    REJECT_UNLESS(row_is_row_major(x) && row_is_row_major(y), "an operand is not row-major");
    REJECT_UNLESS(w->is_const && !w->is_strided, "the filter is no constant, or a part of one");
    const attrs_conv_transpose *a = p->attrs;
    const char *why = problem_window_reject(&a->stride, &a->dilation, &a->pad, spatial);
    if (why) return why;
    int64_t taps = 1, classes = 1;
    for (uint32_t i = 0; i < w->rank; i++) {
        REJECT_UNLESS(problem_dim_is_static(w->dim[i]) && w->dim[i].max > 0, "the filter's size is not fixed");
        if (i < 2) continue;
        REJECT_UNLESS(i64_mul(taps, w->dim[i].max, &taps) && taps <= TAPS, "the filter has too many taps");
        REJECT_UNLESS(i64_mul(classes, a->stride.at[i - 2], &classes) && classes <= CLASSES, "strides are large");
        REJECT_UNLESS(a->dilation.at[i - 2] < HARD, "dilations are out of range");
        REJECT_UNLESS(a->pad.at[i - 2] >= 0 && a->pad.at[i - 2] < (w->dim[i].max - 1) * a->dilation.at[i - 2] + 1,
                      "a pad is negative, or as wide as the filter");
        REJECT_UNLESS(x->dim[i].max < HARD && y->dim[i].max < HARD, "a size has no bound, or is large");
    }
    REJECT_UNLESS(problem_dim_is_static(x->dim[1]) && x->dim[1].max == w->dim[0].max && a->groups > 0 &&
                      x->dim[1].max % a->groups == 0 && a->groups <= INT32_MAX / w->dim[1].max,
                  "the groups do not divide the channels");
    REJECT_UNLESS(x->dim[1].max / a->groups <= TERMS, "sums have too many terms");
    /* These are as fast channels-last. A network that leaves that order for one convolution pays for it at the next. */
    REJECT_UNLESS(a->groups > 1 || w->dim[1].max < FULL || w->dim[1].max % (FULL / 2), "its channels fill vectors");
    const conv_shape s = shape_of(p, AT_MAX), near = near_of(&s);
    const plane_band one = plane_band_of(&near, 1, 1);
    REJECT_UNLESS(one.rows[0] <= HARD && one.rows[1] <= HARD && one.row <= HARD && one.rows[0] * one.rows[1] <= HARD &&
                      plane_band_size(&one) <= HARD / (s.c_in / s.groups),
                  "a row of results reads too much");
    REJECT_UNLESS(!p->prologue, "has a prologue");
    return row_after_reject(p);
}

/* Floats of a group's copies, and of the chunks, at the largest sizes. */
static int64_t copy_max(const problem *p)
{
    const conv_shape s = shape_of(p, AT_MAX), near = near_of(&s);
    const plane_band one = plane_band_of(&near, 1, 1);
    const int64_t size = band_size(&one), chunk = COLUMNS + PLANE_SLACK;
    const int64_t least = s.c_in / s.groups * (size > chunk ? size : chunk);
    return least > BAND ? least : BAND;
}

static int64_t sums_max(const problem *p)
{
    const conv_shape s = shape_of(p, AT_MAX);
    const int64_t least = classes_of(&s) * OUTS * COLUMNS;
    return (least > SUMS ? least : SUMS) + PLANE_SLACK;
}

static size_t scratch_of(const problem *p)
{
    return size_align(size_mul((size_t)(copy_max(p) + sums_max(p)), sizeof(float)), 64);
}

static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    (void)t;
    return size_mul(scratch_of(p), threads);
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    const conv_shape s = shape_of(p, AT_OPT), near = near_of(&s);
    const double threads = target->threads ? target->threads : 1, flops = target->flops > 0 ? target->flops : 1e10;
    const int64_t lanes = level_of(row_isa(t))->gemm->lanes;
    const double rows = (double)(s.images * near.out[0] * near.out[1]), wide = (double)(near.out[2] + near.kernel[2]);
    const double results = rows * wide * (double)(classes_of(&s) * s.c_out);
    const double terms = (double)(row_conv_taps(&s) * (s.c_in / s.groups)) / (double)classes_of(&s);
    const double work = results * (terms * 2.2 + 4 + (double)lanes) + row_operand_bytes(&p->in[0]) / 4 * 8;
    return row_memory_ns(p, target, 0.5) + (work / flops * 1e9 + 500) / threads;
}

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    (void)t;
    if (input != 1) return 0;
    size_t count = sizeof(float);
    for (uint32_t i = 0; i < p->in[1].rank; i++) count = size_mul(count, (size_t)p->in[1].dim[i].max);
    return size_align(count, 64);
}

/* The channels [o, o + n) of a group: for each family blocks of PLANES_BLOCK results, whose members come first. */
static float *pack_block(const conv_shape *s, const families *f, const float *w, const int64_t stride[5], int64_t n,
                         float *to)
{
    for (int64_t i = 0; i < f->count; i++) {
        const family *now = &f->list[i];
        const int64_t each = now->members, outs = each * n;
        int64_t tap[PLANES_BLOCK][TAPS];
        for (int64_t o = 0, block; o < outs; o += block) {
            block = outs - o < PLANES_BLOCK ? outs - o : PLANES_BLOCK;
            for (int64_t k = 0; k < block; k++) (void)taps_of(s, f->at[now->begin + (o + k) % each], tap[k]);
            for (int64_t t = 0; t < now->taps; t++)
                for (int64_t c = 0; c < s->c_in / s->groups; c++)
                    for (int64_t k = 0; k < block; k++) {
                        int64_t at[3];
                        index3(s->kernel, tap[k][t], at);
                        *to++ = w[c * stride[0] + (o + k) / each * stride[1] + at[0] * stride[2] + at[1] * stride[3] +
                                  at[2] * stride[4]];
                    }
        }
    }
    return to;
}

static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    const conv_shape s = shape_of(p, AT_OPT);
    const families f = families_of(&s);
    const int64_t outs = s.c_out / s.groups, channels = s.c_in / s.groups;
    int64_t stride[5];
    row_filter_strides(src, stride);
    memset(dst, 0, pack_size(p, t, input));
    float *to = dst;
    for (int64_t g = 0; g < s.groups; g++)
        for (int64_t o = 0; o < outs; o += f.block)
            to = pack_block(&s, &f, (const float *)src->data + g * channels * stride[0] + o * stride[1], stride,
                            outs - o < f.block ? outs - o : f.block, to);
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    r->set = level_of(isa)->plane;
    conv_shape *s = &r->shape;
    *s = shape_begin(p, attrs);
    const view *x = &in[0], *y = &out[0];
    const uint32_t spatial = x->rank - 2;
    s->images = x->dim[0];
    s->x_image = x->stride[0];
    s->x_c = x->stride[1];
    for (uint32_t i = 0; i < spatial; i++) {
        const uint32_t at = 3 - spatial + i;
        s->in[at] = x->dim[2 + i];
        s->out[at] = y->dim[2 + i];
        s->x_dim[at] = x->stride[2 + i];
    }
    if (x->dim[1] != s->c_in || y->dim[1] != s->c_out)
        return FAIL(e, INVALID_ARG, "conv_transpose: the shapes of the operands do not go together");
    r->channels = s->c_in / s->groups;
    r->outs = s->c_out / s->groups;
    r->copied = copy_max(p);
    r->scratch = scratch_of(p);
    TRY(row_after_bind_planes(e, p, isa, in, out, &r->after, r + 1));
    if (!s->images || !s->out[0] || !s->out[1] || !s->out[2]) {
        s->images = 0;
        return SINTER_OK;
    }
    r->near = near_of(s);
    r->band = band_of(&r->near, BAND / r->channels);
    r->is_direct = true;
    for (int i = 0; i < 3; i++) r->is_direct &= r->near.kernel[i] == 1 && r->near.in[i] == r->near.out[i];
    r->families = families_of(s);
    const families *f = &r->families;
    for (int i = 0; i < 3; i++) r->first[i] = s->pad[i] / s->stride[i];
    const int64_t sums = SUMS / (f->classes * f->block), read = READ / r->channels;
    r->chunk = (sums < read ? sums : read) / COLUMNS * COLUMNS;
    if (r->chunk < COLUMNS) r->chunk = COLUMNS;
    int64_t count = 0;
    for (int64_t i = 0; i < f->count; i++) {
        int64_t tap[TAPS], back[3];
        const int64_t taps = taps_of(s, f->at[f->list[i].begin], tap);
        for (int64_t k = 0; k < taps; k++) {
            reach_of(s, tap[k], back);
            r->at[count++] = plane_band_tap(&r->near, &r->band, r->near.kernel[0] - 1 - back[0],
                                            r->near.kernel[1] - 1 - back[1], r->near.kernel[2] - 1 - back[2]);
        }
    }
    return SINTER_OK;
}

typedef struct job {
    const record *r;
    const kernel_run *k;
    const float *x, *w, *bias;
    float *y;
} job;

/* A chunk of columns of u for channels [o, o + n) of a group. x: its first column, in planes x_c apart. */
static void run_chunk(const job *j, const float *x, int64_t x_c, int64_t group, int64_t o, int64_t n, int64_t columns,
                      float *sums)
{
    const record *r = j->r;
    const families *f = &r->families;
    const int64_t *at = r->at, all = row_conv_taps(&r->shape) * r->channels;
    const float *w = j->w + (group * r->outs + o) * all;
    float bias[CLASSES + OUTS];
    for (int64_t i = 0; i < f->count; i++) {
        const int64_t each = f->list[i].members, outs = each * n;
        for (int64_t k = 0; j->bias && k < outs; k++) bias[k] = j->bias[group * r->outs + o + k / each];
        conv_planes c = { .x = x,
                          .w = w,
                          .bias = j->bias ? bias : NULL,
                          .y = sums,
                          .at = at,
                          .taps = f->list[i].taps,
                          .channels = r->channels,
                          .outs = outs,
                          .n = columns,
                          .x_c = x_c,
                          .y_c = r->chunk,
                          .lo = r->after.lo,
                          .hi = r->after.hi,
                          .has_clip = r->after.has_clip };
        r->set->conv(&c);
        w += outs * c.taps * r->channels;
        at += c.taps;
        sums += outs * r->chunk;
    }
}

/* Elements of one column of u. */
static void join_column(float *y, const float *const *part, int64_t i, int64_t at, int64_t step, int64_t n)
{
    for (int64_t q = 0; q < step; q++)
        if (at + q >= 0 && at + q < n) y[at + q] = part[q][i];
}

/* Columns [from, from + count) of u into a row of results; part[q]: those of class q of the width. */
static void join_row(const record *r, float *y, const float *const *part, int64_t from, int64_t count)
{
    const int64_t step = r->shape.stride[2], n = r->shape.out[2];
    int64_t at = (r->first[2] + from) * step - r->shape.pad[2], i = 0;
    for (; i < count && at < 0; i++, at += step) join_column(y, part, i, at, step, n);
    const int64_t inside = (n - at) / step, whole = inside < count - i ? inside : count - i;
    if (whole > 0) {
        const float *rest[CLASSES];
        for (int64_t q = 0; q < step; q++) rest[q] = part[q] + i;
        r->set->join(y + at, rest, step, whole);
        i += whole;
        at += whole * step;
    }
    for (; i < count && at < n; i++, at += step) join_column(y, part, i, at, step, n);
}

/* Joins a chunk: columns [at, at + columns) of the rows of u from (deep, high) on, which lie behind each other. y: the
 * plane of the first of n channels. */
static void join_chunk(const record *r, float *y, int64_t n, int64_t deep, int64_t high, int64_t at, int64_t columns,
                       const float *sums)
{
    const conv_shape *s = &r->shape;
    const families *f = &r->families;
    const int64_t pitch = r->band.row, wide = s->stride[2], plane = s->out[0] * s->out[1] * s->out[2];
    for (int64_t q = 0; q < s->stride[0] * s->stride[1]; q++) {
        const int64_t z = (r->first[0] + deep) * s->stride[0] + q / s->stride[1] - s->pad[0];
        if (z < 0 || z >= s->out[0]) continue;
        for (int64_t row = at / pitch; row * pitch < at + columns; row++) {
            const int64_t h = (r->first[1] + high + row) * s->stride[1] + q % s->stride[1] - s->pad[1];
            const int64_t from = at > row * pitch ? at - row * pitch : 0, left = at + columns - row * pitch;
            const int64_t to = left < r->near.out[2] ? left : r->near.out[2];
            if (h < 0 || h >= s->out[1] || from >= to) continue;
            for (int64_t o = 0; o < n; o++) {
                const float *part[CLASSES];
                for (int64_t k = 0; k < wide; k++) {
                    const int64_t class = q * wide + k;
                    const family *its = &f->list[f->of[class]];
                    const int64_t slot = its->begin * n + o * its->members + f->member[class];
                    part[k] = sums + slot * r->chunk + row * pitch + from - at;
                }
                join_row(r, y + o * plane + (z * s->out[1] + h) * s->out[2], part, from, to - from);
            }
        }
    }
}

/* The epilogue's program over all results of the rows of u. */
static void finish(const job *j, int64_t image, int64_t group, int64_t deep, int64_t high, int64_t rows)
{
    const record *r = j->r;
    const conv_shape *s = &r->shape;
    if (!r->after.has_program) return;
    int64_t from = (r->first[1] + high) * s->stride[1] - s->pad[1], to = from + rows * s->stride[1];
    if (from < 0) from = 0;
    if (to > s->out[1]) to = s->out[1];
    for (int64_t q = 0; q < s->stride[0]; q++) {
        const int64_t z = (r->first[0] + deep) * s->stride[0] + q - s->pad[0];
        for (int64_t o = 0; z >= 0 && z < s->out[0] && o < r->outs; o++) {
            const int64_t plane = ((image * s->c_out + group * r->outs + o) * s->out[0] + z) * s->out[1];
            row_after_part(&r->after, j->k, j->y, (plane + from) * s->out[2], (plane + to) * s->out[2]);
        }
    }
}

static void run_band(const job *j, float *copy, float *sums, int64_t image, int64_t group, int64_t deep, int64_t high)
{
    const record *r = j->r;
    const conv_shape *s = &r->shape, *near = &r->near;
    const plane_band *b = &r->band;
    const float *x = j->x + image * s->x_image + group * r->channels * s->x_c;
    const int64_t size = band_size(b), left = near->out[1] - high, rows = b->out[1] < left ? b->out[1] : left;
    const int64_t total = (rows - 1) * b->row + near->out[2];
    float *y = j->y + (image * s->c_out + group * r->outs) * s->out[0] * s->out[1] * s->out[2];
    for (int64_t c = 0; !r->is_direct && c < r->channels; c++)
        plane_band_copy(r->set, near, b, x + c * s->x_c, deep, high, copy + c * size);
    for (int64_t d = 0; d < b->out[0] && deep + d < near->out[0]; d++) {
        for (int64_t at = 0; at < total; at += r->chunk) {
            const int64_t columns = total - at < r->chunk ? total - at : r->chunk;
            const float *from = copy + d * b->rows[1] * b->row + at;
            int64_t x_c = size;
            if (r->is_direct) {
                from = x + ((deep + d) * s->in[1] + high) * s->in[2] + at;
                x_c = s->x_c;
                if (columns < r->chunk) { /* loops read whole vectors */
                    x_c = r->chunk + PLANE_SLACK;
                    r->set->copy(copy, x_c, from, s->x_c, r->channels, columns);
                    from = copy;
                }
            }
            for (int64_t o = 0, n; o < r->outs; o += n) {
                n = r->outs - o < r->families.block ? r->outs - o : r->families.block;
                run_chunk(j, from, x_c, group, o, n, columns, sums);
                join_chunk(r, y + o * s->out[0] * s->out[1] * s->out[2], n, deep + d, high, at, columns, sums);
            }
        }
        finish(j, image, group, deep + d, high, rows);
    }
}

static int64_t bands(const record *r, int axis)
{
    return (r->near.out[axis] - 1) / r->band.out[axis] + 1;
}

/* A tile is a band of one group of one image. Tiles of the same place follow each other. */
static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    const job *j = arg;
    const record *r = j->r;
    const conv_shape *s = &r->shape;
    float *copy = (float *)(void *)((char *)j->k->workspace + worker * r->scratch);
    const int64_t parts = s->images * s->groups, high = bands(r, 1);
    int64_t before = -1;
    for (int64_t i = begin; i < end; i++) {
        const int64_t place = i / parts, image = i % parts / s->groups, group = i % s->groups;
        /* Bands of the same place have the same zeros. */
        if (place != before && !r->is_direct)
            memset(copy, 0, (size_t)(r->channels * band_size(&r->band)) * sizeof *copy);
        before = place;
        run_band(j, copy, copy + r->copied, image, group, place / high * r->band.out[0], place % high * r->band.out[1]);
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    const conv_shape *s = &r->shape;
    job j = { r, k, k->in[0], k->in[1], r->after.bias ? k->in[r->after.bias] : NULL, k->out[0] };
    if (!s->images) return SINTER_OK;
    row_parallel(k, s->images * s->groups * bands(r, 0) * bands(r, 1), body, &j);
    return SINTER_OK;
}

const kernel cpu_transpose_planes = {
    .name = "cpu_transpose_planes",
    .abi = 1,
    .reject = reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .workspace = workspace,
    .pack_size = pack_size,
    .pack = pack,
    .record = sizeof(record),
    .record_size = row_record_room,
    .bind = bind,
    .run = run,
};
