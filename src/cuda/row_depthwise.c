/* SPDX-License-Identifier: Apache-2.0 */
/* row_depthwise.c - convolutions of one input channel a filter (device/depthwise.cu), in f32, f16, bf16 and
 * integers of 8 bits: at the speed of memory where images are channels-last. Weights are packed [tap][channel],
 * integers as f16, which holds them exactly. */
#include "cuda/device/depthwise_args.h"
#include "cuda/emit.h"
#include "cuda/kernels.h"

#include <math.h>
#include <stddef.h>

enum { KERNEL_MOST = 11 };
typedef struct depthwise_tactic {
    uint8_t pix, c, x, y, trigger, zero[TACTIC_SIZE - 5];
} depthwise_tactic;
_Static_assert(sizeof(depthwise_tactic) == TACTIC_SIZE, "a tactic is overlaid");

static depthwise_tactic tactic_of(const tactic *t)
{
    depthwise_tactic x;
    memcpy(&x, t, sizeof x);
    return x;
}

static bool is_integer(const problem *p)
{
    return p->op == OP_conv_integer;
}

static uint32_t width_of(const problem *p)
{
    return is_integer(p) ? 8 : 128 / sinter_dtype_bits(p->in[0].dtype);
}

/* conv's attributes and those of conv_integer. */
typedef struct slide {
    const attr_ints *stride, *dilation, *pad;
    int64_t groups;
} slide;

static slide slide_of(const problem *p, const void *attrs)
{
    if (is_integer(p)) {
        const attrs_conv_integer *a = attrs;
        return (slide){ &a->stride, &a->dilation, &a->pad, a->groups };
    }
    const attrs_conv *a = attrs;
    return (slide){ &a->stride, &a->dilation, &a->pad, a->groups };
}

/* Kernel, stride and the like of the two spatial axes; of one there is no height. */
typedef struct geometry {
    int64_t kernel[2], stride[2], dilation[2], pad[2];
} geometry;
static geometry geometry_of(const problem *p, const void *attrs)
{
    const slide a = slide_of(p, attrs);
    geometry g = { { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0 } };
    const uint32_t spatial = p->in[0].rank - 2u;
    for (uint32_t i = 0; i < spatial; i++) {
        const uint32_t to = 2 - spatial + i;
        g.kernel[to] = p->in[1].dim[2 + i].max;
        g.stride[to] = a.stride->at[i];
        g.dilation[to] = a.dilation->at[i];
        g.pad[to] = a.pad->at[i];
    }
    return g;
}

static void space_of(const problem *p, emit_space *s)
{
    emit_space_of(p, s);
    s->inner = 1;
    s->width = width_of(p);
}

static bool is_byte(const problem_operand *o)
{
    return o->dtype == SINTER_DTYPE_I8 || o->dtype == SINTER_DTYPE_U8;
}

static bool is_one(const problem_operand *o)
{
    for (uint32_t i = 0; i < o->rank; i++)
        if (o->dim[i].min != 1 || o->dim[i].max != 1) return false;
    return true;
}

static bool has_zero(const problem *p, uint32_t input)
{
    return is_integer(p) && p->count_anchor > input && p->in[input].dtype != SINTER_DTYPE_NONE;
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_conv || is_integer(p), "not a convolution");
    REJECT_UNLESS(!p->prologue, "has a prologue");
    const slide a = slide_of(p, p->attrs);
    const problem_operand *x = &p->in[0], *w = &p->in[1];
    REJECT_UNLESS(is_byte(x) || (!is_integer(p) && (x->dtype == SINTER_DTYPE_F32 || x->dtype == SINTER_DTYPE_F16 ||
                                                    x->dtype == SINTER_DTYPE_BF16)),
                  "not in f32, f16, bf16 or integers of 8 bits");
    REJECT_UNLESS(!is_integer(p) || is_byte(w), "a filter of integers that are not of 8 bits");
    REJECT_UNLESS(!has_zero(p, 2) || (p->in[2].is_const && is_one(&p->in[2])),
                  "the zero point of the image is no constant, or not one");
    REJECT_UNLESS(!has_zero(p, 3) ||
                      (p->in[3].is_const && (is_one(&p->in[3]) || p->in[3].rank == 1) && !p->in[3].is_strided),
                  "the filter's zero points are no constant row");
    REJECT_UNLESS(x->rank == 3 || x->rank == 4, "has no or more than two spatial axes");
    REJECT_UNLESS(w->is_const && !w->is_strided && w->rank == x->rank, "the filter is no dense constant");
    for (uint32_t i = 0; i < w->rank; i++)
        REJECT_UNLESS(problem_dim_is_static(w->dim[i]) && w->dim[i].max > 0, "the filter's size is not fixed");
    REJECT_UNLESS(problem_dim_is_static(x->dim[1]) && a.groups == x->dim[1].max && w->dim[1].max == 1 &&
                      w->dim[0].max % a.groups == 0,
                  "not depthwise");
    const uint32_t spatial = x->rank - 2u;
    REJECT_UNLESS(a.stride->count == spatial && a.dilation->count == spatial && a.pad->count == 2 * spatial,
                  "an attribute list has another length");
    const geometry g = geometry_of(p, p->attrs);
    REJECT_UNLESS(g.kernel[0] <= KERNEL_MOST && g.kernel[1] <= KERNEL_MOST,
                  "a filter of more than 11 taps along an axis");
    REJECT_UNLESS(g.stride[1] <= 4 && g.dilation[1] <= 4, "a stride or dilation of more than 4 along rows");
    emit_space s;
    space_of(p, &s);
    return emit_reject(&s);
}

/* Channels are adjacent, start at multiples of 16 bytes, and are the result's, one for one. */
static bool is_vector(const problem *p)
{
    const problem_operand *x = &p->in[0];
    const uint32_t v = width_of(p);
    return x->order[x->rank - 1] == 1 && !x->is_gapped && x->dim[1].max % v == 0 && cuda_operand_vector(x, v) == v &&
           p->in[1].dim[0].max == x->dim[1].max;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

typedef struct extent {
    int64_t images, channels, h, w;
} extent;
static extent extent_of(const problem *p)
{
    const problem_operand *y = &p->out[0];
    return (extent){ y->dim[0].opt, y->dim[1].opt, y->rank == 4 ? y->dim[2].opt : 1, y->dim[y->rank - 1].opt };
}

static double blocks_of(const problem *p, depthwise_tactic x)
{
    const extent n = extent_of(p);
    return (double)n.images * (double)ceil_div(n.channels, (int64_t)x.c * width_of(p)) *
           (double)ceil_div(n.w, (int64_t)x.x * x.pix) * (double)ceil_div(n.h, x.y);
}

static double cost_of(const problem *p, depthwise_tactic x, const kernel_target *t)
{
    const geometry g = geometry_of(p, p->attrs);
    const double units = t->units ? t->units : 100, blocks = blocks_of(p, x);
    const double threads = blocks * x.c * x.x * x.y, v = width_of(p);
    double bytes = 0;
    for (uint32_t i = 0; i < p->count_in; i++) bytes += cuda_operand_bytes(&p->in[i]);
    for (uint32_t i = 0; i < p->count_out; i++) bytes += cuda_operand_bytes(&p->out[i]);
    /* Threads lie across channels: where those are not adjacent, each reads and writes sectors of its own. */
    const problem_operand *const image[] = { &p->in[0], &p->out[0] };
    for (uint32_t i = 0; i < 2; i++)
        if (image[i]->order[image[i]->rank - 1] != 1 || image[i]->is_gapped) bytes += 7 * cuda_operand_bytes(image[i]);
    const double span = (x.pix - 1.0) * (double)g.stride[1] + (double)((g.kernel[1] - 1) * g.dilation[1]) + 1,
                 read = span < x.pix * (double)g.kernel[1] ? span : x.pix * (double)g.kernel[1],
                 taps = (double)(g.kernel[0] * g.kernel[1]);
    /* What the first cache gives: 64 bytes a clock and multiprocessor; conversions cost as much as products. */
    const double lines = threads * read * (double)g.kernel[0] * 16 * (is_vector(p) ? 1 : v) / (units * 64 * 1.6e9),
                 work = threads * v * (x.pix * taps * 2 + read * (double)g.kernel[0] * 2) /
                        ((t->flops > 0 ? t->flops : 1e13) * 0.6);
    const double fill = blocks >= units ? 1 : blocks / units;
    double most = bytes / (t->bandwidth > 0 ? t->bandwidth : 1e12);
    if (lines / fill > most) most = lines / fill;
    if (work / fill > most) most = work / fill;
    /* The kernel asks for so many rows of the image at once. */
    const double rows = span * 4 * (double)g.kernel[0] <= 100 ? (double)g.kernel[0] : span <= 12 ? floor(25 / span) : 1;
    const double most_rows = is_vector(p) ? rows : 1;
    const double chain = ceil((double)g.kernel[0] / most_rows) * 600 + x.pix * 40;
    return 1500 + chain + most * 1e9;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    return cost_of(p, tactic_of(t), target);
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    enum { BEST = 6 };
    static const uint8_t shape[][2] = {
        { 1, 8 }, { 2, 8 }, { 4, 8 }, { 4, 4 }, { 2, 4 }, { 1, 4 }, { 8, 1 }, { 2, 2 }
    };
    struct {
        double cost;
        depthwise_tactic at;
    } best[BEST + 1];
    uint32_t count = 0;
    const extent n = extent_of(p);
    for (uint8_t pix = 1; pix <= 8; pix = (uint8_t)(pix * 2))
        for (uint8_t c = 4; c <= 16; c = (uint8_t)(c * 2))
            for (uint32_t i = 0; i < COUNT_OF(shape); i++) {
                if (pix > 1 && pix > n.w) continue;
                if (c > 4 && (c / 2) * (int64_t)width_of(p) >= n.channels) continue;
                if ((shape[i][0] > 1 && shape[i][0] * pix > 2 * n.w) || (shape[i][1] > 1 && shape[i][1] > 2 * n.h))
                    continue;
                depthwise_tactic x = { .pix = pix, .c = c, .x = shape[i][0], .y = shape[i][1], .trigger = 2 };
                const int threads = x.c * x.x * x.y;
                if (threads % 32 || threads > 512) continue;
                const double cost = cost_of(p, x, t);
                uint32_t at = count < BEST ? count++ : BEST;
                while (at > 0 && best[at - 1].cost > cost) {
                    best[at] = best[at - 1];
                    at--;
                }
                best[at].cost = cost;
                best[at].at = x;
            }
    if (!count) best[count++].at = (depthwise_tactic){ .pix = 1, .c = 4, .x = 8, .y = 1, .trigger = 1 };
    for (uint32_t i = 0; i < count && out->count < COUNT_OF(out->at); i++)
        memcpy(&out->at[out->count++], &best[i].at, sizeof best[i].at);
}

static bool is_power(uint32_t n, uint32_t most)
{
    return n && n <= most && !(n & (n - 1));
}

static bool check(const problem *p, const tactic *t)
{
    (void)p;
    static const uint8_t zero[TACTIC_SIZE];
    const depthwise_tactic x = tactic_of(t);
    const uint32_t threads = (uint32_t)x.c * x.x * x.y;
    return is_power(x.pix, 8) && is_power(x.c, 16) && x.c >= 4 && is_power(x.x, 8) && is_power(x.y, 8) &&
           threads % 32 == 0 && threads <= 512 && x.trigger >= 1 && x.trigger <= 3 &&
           memcmp(x.zero, zero, sizeof x.zero) == 0;
}

static void print(const tactic *t, text *out)
{
    const depthwise_tactic x = tactic_of(t);
    text_printf(out, "%u pixels, block %ux%ux%u trigger %u", x.pix, x.c, x.x, x.y, x.trigger);
}

/* Rounded up to what any block takes. */
static int64_t pitch_of(const problem *p)
{
    const int64_t unit = 16 * (int64_t)width_of(p);
    return ceil_div(p->in[1].dim[0].max, unit) * unit;
}

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    (void)t;
    if (input != 1) return 0;
    const geometry g = geometry_of(p, p->attrs);
    return size_mul(size_mul((size_t)pitch_of(p), 16 / width_of(p)), (size_t)(g.kernel[0] * g.kernel[1]));
}

static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    const geometry g = geometry_of(p, p->attrs);
    const int64_t pitch = pitch_of(p);
    const size_t size = 16 / width_of(p);
    const bool is_plane = src->rank == 4;
    memset(dst, 0, pack_size(p, t, input));
    for (int64_t c = 0; c < src->dim[0]; c++)
        for (int64_t r = 0; r < g.kernel[0]; r++)
            for (int64_t s = 0; s < g.kernel[1]; s++) {
                const int64_t from =
                    c * src->stride[0] + (is_plane ? r * src->stride[2] : 0) + s * src->stride[src->rank - 1];
                const size_t to = (size_t)((r * g.kernel[1] + s) * pitch + c);
                if (is_integer(p)) ((uint16_t *)dst)[to] = dtype_f16_of_f64(view_load_f64(src, from));
                else memcpy((char *)dst + to * size, (const char *)src->data + from * (int64_t)size, size);
            }
}

static const char *name_of(sinter_dtype d)
{
    return d == SINTER_DTYPE_F32 ? "float" : sinter_dtype_name(d);
}

static bool code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    (void)target;
    if (index) return false;
    const depthwise_tactic x = tactic_of(t);
    const geometry g = geometry_of(p, p->attrs);
    c->source = "depthwise.cu";
    c->entry = "depthwise";
    c->may_spill =
        !is_vector(p) || g.kernel[1] > 5 || (x.pix > 4 && g.kernel[1] > 3) || (p->epilogue && p->epilogue->count > 12);
    cuda_code_define(c, "KH", g.kernel[0]);
    cuda_code_define(c, "KW", g.kernel[1]);
    cuda_code_define(c, "STRIDE_W", g.stride[1]);
    cuda_code_define(c, "DILATION_W", g.dilation[1]);
    cuda_code_define(c, "PIX", x.pix);
    cuda_code_define(c, "C_THREADS", x.c);
    cuda_code_define(c, "X_THREADS", x.x);
    cuda_code_define(c, "Y_THREADS", x.y);
    cuda_code_define(c, "X_VECTOR", is_vector(p));
    cuda_code_define(c, "MULT", p->in[1].dim[0].max / p->in[0].dim[1].max);
    cuda_code_define(c, "RANK", p->in[0].rank);
    cuda_code_define(c, "TRIGGER", x.trigger);
    cuda_code_define(c, "HAS_ZERO_X", has_zero(p, 2));
    cuda_code_define(c, "HAS_ZERO_W", has_zero(p, 3));
    emit_space s;
    space_of(p, &s);
    emit_text(&s, c->generated);
    const char *image = name_of(p->in[0].dtype);
    text_printf(c->generated, "typedef %s type_x;\ntypedef %s type_w;\ntypedef %s zero_t;\n", image,
                is_integer(p) ? "f16" : image, is_integer(p) ? name_of(p->in[1].dtype) : "u8");
    return true;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *record)
{
    const depthwise_tactic x = tactic_of(t);
    cuda_record *r = record;
    r->count = r->args_size = r->patch_count = r->map_count = 0;
    const geometry g = geometry_of(p, attrs);
    const view *from = &in[0], *to = &out[0];
    const bool is_plane = from->rank == 4;
    const uint32_t last = from->rank - 1;
    const int64_t h = is_plane ? to->dim[2] : 1, w = to->dim[last], channels = to->dim[1];
    const int64_t tiles_c = ceil_div(channels, (int64_t)x.c * width_of(p)), tiles_x = ceil_div(w, (int64_t)x.x * x.pix),
                  tiles_y = ceil_div(h, x.y);
    int64_t blocks = tiles_c;
    if (!i64_mul(blocks, tiles_x, &blocks) || !i64_mul(blocks, tiles_y, &blocks) ||
        !i64_mul(blocks, to->dim[0], &blocks) || blocks > INT32_MAX)
        return FAIL(e, UNSUPPORTED, "a convolution of more than 2147483647 blocks");
    const uint32_t shared = (uint32_t)(g.kernel[0] * g.kernel[1]) * x.c * 16u;
    if (!cuda_launch_add(r, 0, (uint64_t)blocks, 1, 1, (uint32_t)x.c * x.x * x.y, shared))
        return FAIL(e, INTERNAL, "no room for the launch of a convolution");
    struct depthwise_args *a = cuda_param_add(r, sizeof *a);
    if (!a) return FAIL(e, INTERNAL, "no room for the parameters of a convolution");
    *a = (struct depthwise_args){
        .x_image = from->stride[0],
        .x_row = is_plane ? from->stride[2] : 0,
        .x_col = from->stride[last],
        .x_channel = from->stride[1],
        .channels = (small)channels,
        .in_h = is_plane ? (small)from->dim[2] : 1,
        .in_w = (small)from->dim[last],
        .out_h = (small)h,
        .out_w = (small)w,
        .stride_h = (small)g.stride[0],
        .dilation_h = (small)g.dilation[0],
        .pad_h = (small)g.pad[0],
        .pad_w = (small)g.pad[1],
        .w_pitch = (small)pitch_of(p),
        .zero_w_step = has_zero(p, 3) && !is_one(&p->in[3]),
        .tiles_c = cuda_fast_div(tiles_c),
        .tiles_x = cuda_fast_div(tiles_x),
        .tiles_y = cuda_fast_div(tiles_y),
        .multiplier = cuda_fast_div(p->in[1].dim[0].max / p->in[0].dim[1].max),
    };
    CUDA_PATCH(r, a, x, PATCH_IN, 0);
    CUDA_PATCH(r, a, w, PATCH_IN, 1);
    if (has_zero(p, 2)) CUDA_PATCH(r, a, zero_x, PATCH_IN, 2);
    if (has_zero(p, 3)) CUDA_PATCH(r, a, zero_w, PATCH_IN, 3);
    emit_space s;
    space_of(p, &s);
    return emit_bind(e, &s, in, out, r);
}

const cuda_kernel cuda_depthwise = {
    .base = { .name = "cuda_depthwise",
              .abi = 1,
              .is_strided_out = true,
              .reject = reject,
              .tactics = tactics,
              .check = check,
              .print = print,
              .cost_ns = cost_ns,
              .pack_size = pack_size,
              .pack = pack,
              .record_size = cuda_record_size,
              .bind = bind },
    .code = code,
};
