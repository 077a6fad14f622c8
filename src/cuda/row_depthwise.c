/* SPDX-License-Identifier: Apache-2.0 */
/* row_depthwise.c - convolutions of one input channel a filter (device/depthwise.cu), in f32, f16, bf16 and
 * integers of 8 bits: at the speed of memory where images are channels-last. Weights are packed [tap][channel],
 * integers as f16, which holds them exactly. A thread has 16 bytes of channels of an image, or 8, so that small images
 * keep more threads busy; then weights of 16 bits are packed as f32. */
#include "cuda/cuda_kernels.h"
#include "cuda/product.h"
#include "cuda/row_window.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { PIX_MOST = 8 };

static bool is_integer(const problem *p)
{
    return p->op == OP_conv_integer;
}

/* Channels of a thread. */
static uint32_t width_of(const problem *p, window_tactic x)
{
    return (is_integer(p) ? 8 : 128 / sinter_dtype_bits(p->in[0].dtype)) >> x.half;
}

/* May a thread have 8 bytes of channels? Its weights are f32 then, 16 bytes as ever. */
static bool may_halve(const problem *p)
{
    return p->in[0].dtype == SINTER_DTYPE_F16 || p->in[0].dtype == SINTER_DTYPE_BF16;
}

static void space_of(const problem *p, window_tactic x, emit_space *s)
{
    emit_space_of(p, s);
    s->inner = 1;
    s->width = width_of(p, x);
}

static bool is_byte(const problem_operand *o)
{
    return o->dtype == SINTER_DTYPE_I8 || o->dtype == SINTER_DTYPE_U8;
}

static product_zero zero_of(const problem *p, uint32_t input)
{
    return is_integer(p) ? product_zero_of(p, input) : ZERO_NONE;
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_conv || is_integer(p), "not a convolution");
    const problem_operand *x = &p->in[0], *w = &p->in[1];
    REJECT_UNLESS(is_byte(x) || (!is_integer(p) && (x->dtype == SINTER_DTYPE_F32 || x->dtype == SINTER_DTYPE_F16 ||
                                                    x->dtype == SINTER_DTYPE_BF16)),
                  "not in f32, f16, bf16 or integers of 8 bits");
    REJECT_UNLESS(!is_integer(p) || is_byte(w), "a filter of integers that are not of 8 bits");
    for (uint32_t i = 2; i < 4; i++)
        REJECT_UNLESS(!zero_of(p, i) || (p->in[i].is_const && !p->in[i].is_strided &&
                                         zero_of(p, i) <= (i == 2 ? ZERO_ONE : ZERO_ROW)),
                      "a zero point that is no constant, or several of the image");
    const char *why = window_reject(p);
    if (why) return why;
    const window g = window_of(p, p->attrs);
    REJECT_UNLESS(problem_dim_is_static(x->dim[1]) && g.groups > 0 && g.groups == x->dim[1].max && w->dim[1].max == 1 &&
                      w->dim[0].max % g.groups == 0,
                  "not depthwise");
    emit_space s;
    space_of(p, (window_tactic){ 0 }, &s);
    return emit_reject(&s);
}

/* Channels are adjacent, start at multiples of what a thread reads, and are the result's, one for one. */
static bool is_vector(const problem *p, window_tactic t)
{
    const problem_operand *x = &p->in[0];
    const uint32_t v = width_of(p, t);
    return x->order[x->rank - 1] == 1 && !x->is_gapped && x->dim[1].max % v == 0 && cuda_operand_vector(x, v) == v &&
           p->in[1].dim[0].max == x->dim[1].max;
}

static double cost_of(const problem *p, window_tactic x, const kernel_target *t)
{
    const window g = window_of(p, p->attrs);
    const double units = t->units ? t->units : 100, blocks = window_blocks(p, x, width_of(p, x));
    const double threads = blocks * x.c * x.x * x.y, v = width_of(p, x), bytes = window_bytes(p);
    const double span = (x.pix - 1.0) * (double)g.stride[2] + (double)((g.kernel[2] - 1) * g.dilation[2]) + 1,
                 read = span < x.pix * (double)g.kernel[2] ? span : x.pix * (double)g.kernel[2],
                 taps = (double)window_taps(&g), high = (double)window_lines(&g);
    const double size = v * sinter_dtype_bits(p->in[0].dtype) / 8;
    /* What the first cache gives: 64 bytes a clock and multiprocessor; conversions cost as much as products. */
    const double lines = threads * read * high * size * (is_vector(p, x) ? 1 : v) / (units * 64 * 1.6e9),
                 work = threads * v * (x.pix * taps * 2 + read * high * 2) / ((t->flops > 0 ? t->flops : 1e13) * 0.6);
    const double fill = blocks >= units ? 1 : blocks / units;
    double most = bytes / (t->bandwidth > 0 ? t->bandwidth : 1e12);
    if (lines / fill > most) most = lines / fill;
    if (work / fill > most) most = work / fill;
    /* The kernel asks for so many rows of the image at once. */
    const double words = span * size / 4;
    const double rows = words * high <= 100 ? high : words <= 50 ? floor(100 / words) : 1;
    const double most_rows = is_vector(p, x) ? rows : 1;
    /* ... and one thread's instructions take their time, however many threads there are. */
    const double own = v * (x.pix * taps + (read + (x.half ? 0 : (double)g.kernel[2])) * high) * 0.6;
    const double chain = ceil(high / most_rows) * 600 + x.pix * 40 + own;
    return 1500 + chain + most * 1e9;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    return cost_of(p, TACTIC_AS(window_tactic, t), target);
}

static double try_cost(const problem *p, window_tactic *x, const kernel_target *t)
{
    return cost_of(p, *x, t);
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    window_tactics(p, t, width_of(p, (window_tactic){ 0 }), PIX_MOST, may_halve(p), try_cost, out);
}

FIELDS_PRINT(print, window_fields)

static bool check(const problem *p, const tactic *t)
{
    return window_check(t, PIX_MOST, may_halve(p));
}

/* Rounded up to what any block takes. */
static int64_t pitch_of(const problem *p, window_tactic x)
{
    const int64_t unit = 16 * (int64_t)width_of(p, x);
    return cuda_ceil_div(p->in[1].dim[0].max, unit) * unit;
}

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    if (input != 1) return 0;
    const window g = window_of(p, p->attrs);
    const window_tactic x = TACTIC_AS(window_tactic, t);
    return size_mul(size_mul((size_t)pitch_of(p, x), 16 / width_of(p, x)), (size_t)window_taps(&g));
}

static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    const window g = window_of(p, p->attrs);
    const window_tactic x = TACTIC_AS(window_tactic, t);
    const int64_t pitch = pitch_of(p, x);
    const size_t size = 16 / width_of(p, x);
    memset(dst, 0, pack_size(p, t, input));
    for (int64_t c = 0; c < src->dim[0]; c++)
        for (int64_t k = 0; k < window_taps(&g); k++) {
            const int64_t from = c * src->stride[0] + window_tap_at(&g, src, k);
            const size_t to = (size_t)(k * pitch + c);
            if (is_integer(p)) ((uint16_t *)dst)[to] = dtype_f16_of_f64(view_load_f64(src, from));
            else if (x.half) ((float *)dst)[to] = (float)view_load_f64(src, from);
            else memcpy((char *)dst + to * size, (const char *)src->data + from * (int64_t)size, size);
        }
}

static bool code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    (void)target;
    if (index) return false;
    const window_tactic x = TACTIC_AS(window_tactic, t);
    const window g = window_of(p, p->attrs);
    c->source = "depthwise.cu";
    c->entry = "depthwise";
    c->may_spill = !is_vector(p, x) || g.kernel[2] > 5 || (x.pix > 4 && g.kernel[2] > 3) ||
                   (p->epilogue && p->epilogue->count > 12);
    window_defines(p, x, c);
    cuda_code_define(c, "X_VECTOR", is_vector(p, x));
    cuda_code_define(c, "MULT", p->in[1].dim[0].max / p->in[0].dim[1].max);
    cuda_code_define(c, "HAS_ZERO_X", zero_of(p, 2) > 0);
    cuda_code_define(c, "HAS_ZERO_W", zero_of(p, 3) > 0);
    emit_space s;
    space_of(p, x, &s);
    emit_text(&s, c->generated);
    const char *image = emit_stored(p->in[0].dtype);
    text_printf(c->generated, "typedef %s type_x;\ntypedef %s type_w;\ntypedef %s zero_t;\n", image,
                is_integer(p) ? "f16"
                : x.half      ? "float"
                              : image,
                is_integer(p) ? emit_stored(p->in[1].dtype) : "u8");
    return true;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *record)
{
    const window_tactic x = TACTIC_AS(window_tactic, t);
    const window g = window_of(p, attrs);
    cuda_record *r = record;
    struct depthwise_args *a;
    TRY(window_bind(e, p, attrs, x, in, out, width_of(p, x), pitch_of(p, x), p->in[1].dim[0].max / p->in[0].dim[1].max,
                    window_taps(&g) * x.c * 16, r, &a));
    a->zero_w_step = zero_of(p, 3) == ZERO_ROW;
    if (zero_of(p, 2)) CUDA_PATCH(r, a, zero_x, PATCH_IN, 2);
    if (zero_of(p, 3)) CUDA_PATCH(r, a, zero_w, PATCH_IN, 3);
    emit_space s;
    space_of(p, x, &s);
    return emit_bind(e, &s, in, out, r);
}

CUDA_ROW(cuda_depthwise, 1, reject, , .out_strides = STRIDES_ROWS, .pack_size = pack_size, .pack = pack);
