/* SPDX-License-Identifier: Apache-2.0 */
/* row_grouped.c - convolutions of a few input channels a filter (device/grouped.cu), in f32, f16 and bf16. Weights are
 * packed as floats by run of filters: [run][tap][channel][filter of the run]. */
#include "cuda/cuda_kernels.h"
#include "cuda/row_window.h"

#include <math.h>
#include <string.h>

enum { PIX_MOST = 4, CHANNELS_MOST = 16, SHARED_MOST = 48 << 10 };

/* Channels of the result that a thread has: they divide a group's. */
static uint32_t width_of(const problem *p)
{
    const int64_t filters = p->in[1].dim[0].max / ((const attrs_conv *)p->attrs)->groups;
    return filters % 8 == 0 ? 8 : filters % 4 == 0 ? 4 : filters % 2 == 0 ? 2 : 1;
}

/* Floats of a run: the runs that a warp reads at once begin 16 bytes of banks apart. */
static int64_t pitch_of(const problem *p)
{
    const window g = window_of(p, p->attrs);
    const int64_t size = window_taps(&g) * p->in[1].dim[1].max * width_of(p);
    return cuda_ceil_div(size, 32) * 32 + 4;
}

static void space_of(const problem *p, emit_space *s)
{
    emit_space_of(p, s);
    s->inner = 1;
    s->width = width_of(p);
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_conv, "not a convolution");
    const problem_operand *x = &p->in[0], *w = &p->in[1];
    REJECT_UNLESS(x->dtype == SINTER_DTYPE_F32 || x->dtype == SINTER_DTYPE_F16 || x->dtype == SINTER_DTYPE_BF16,
                  "not in f32, f16 or bf16");
    const char *why = window_reject(p);
    if (why) return why;
    const window g = window_of(p, p->attrs);
    REJECT_UNLESS(problem_dim_is_static(x->dim[1]) && g.groups > 1 && w->dim[0].max % g.groups == 0 &&
                      w->dim[1].max * g.groups == x->dim[1].max,
                  "has no groups");
    REJECT_UNLESS(w->dim[1].max <= CHANNELS_MOST, "groups are wide");
    REJECT_UNLESS(4 * pitch_of(p) * 4 <= SHARED_MOST, "the filters of four runs of channels do not fit shared memory");
    emit_space s;
    space_of(p, &s);
    return emit_reject(&s);
}

/* Channels of the image that are read at once. */
static uint32_t unit_of(const problem *p)
{
    const problem_operand *x = &p->in[0];
    const uint32_t most = 128 / sinter_dtype_bits(x->dtype);
    uint32_t v = x->order[x->rank - 1] == 1 && !x->is_gapped ? cuda_operand_vector(x, most) : 1;
    while (v > 1 && p->in[1].dim[1].max % v) v /= 2;
    return v;
}

static double cost_of(const problem *p, window_tactic x, const kernel_target *t)
{
    const window g = window_of(p, p->attrs);
    const double units = t->units ? t->units : 100, blocks = window_blocks(p, x, width_of(p));
    const double threads = blocks * x.c * x.x * x.y, v = width_of(p), bytes = window_bytes(p);
    const double terms = (double)(window_taps(&g) * p->in[1].dim[1].max);
    /* What the first cache gives: 64 bytes a clock and multiprocessor; a load of shared memory for 2 * pix products. */
    const double size = unit_of(p) > 1 ? sinter_dtype_bits(p->in[0].dtype) / 8.0 : 16,
                 lines = threads * x.pix * terms * size / (units * 64 * 1.6e9),
                 work =
                     threads * terms * (v * x.pix * 2 + x.pix * 2 + v * 2) / ((t->flops > 0 ? t->flops : 1e13) * 0.5);
    const double fill = blocks >= units ? 1 : blocks / units;
    double most = bytes / (t->bandwidth > 0 ? t->bandwidth : 1e12);
    if (lines / fill > most) most = lines / fill;
    if (work / fill > most) most = work / fill;
    const double chain = (double)window_lines(&g) * 600 + x.pix * 40;
    return 1500 + chain + most * 1e9;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    return cost_of(p, TACTIC_AS(window_tactic, t), target);
}

static bool fits(const problem *p, window_tactic x)
{
    return x.c * 4 * pitch_of(p) <= SHARED_MOST;
}

/* Few blocks: the next grid may come at once, there is room for it. */
static double try_cost(const problem *p, window_tactic *x, const kernel_target *t)
{
    if (!fits(p, *x)) return INFINITY;
    x->trigger = window_blocks(p, *x, width_of(p)) <= 2.0 * (t->units ? t->units : 100) ? 1 : 3;
    return cost_of(p, *x, t);
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    window_tactics(p, t, width_of(p), PIX_MOST, false, try_cost, out);
}

FIELDS_PRINT(print, window_fields)

static bool check(const problem *p, const tactic *t)
{
    const window_tactic x = TACTIC_AS(window_tactic, t);
    return window_check(t, PIX_MOST, false) && x.trigger != 2 && fits(p, x);
}

/* Runs of channels, rounded up to what any block takes. */
static int64_t runs_of(const problem *p)
{
    return cuda_ceil_div(p->in[1].dim[0].max / width_of(p), 16) * 16;
}

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    (void)t;
    return input == 1 ? size_mul(size_mul((size_t)runs_of(p), (size_t)pitch_of(p)), 4) : 0;
}

static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    const window g = window_of(p, p->attrs);
    const int64_t pitch = pitch_of(p), width = width_of(p), taps = window_taps(&g);
    float *to = dst;
    memset(dst, 0, pack_size(p, t, input));
    for (int64_t n = 0; n < src->dim[0]; n++)
        for (int64_t c = 0; c < src->dim[1]; c++)
            for (int64_t k = 0; k < taps; k++) {
                const int64_t from = n * src->stride[0] + c * src->stride[1] + window_tap_at(&g, src, k);
                to[n / width * pitch + (k * src->dim[1] + c) * width + n % width] = (float)view_load_f64(src, from);
            }
}

static bool code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    (void)target;
    if (index) return false;
    const window_tactic x = TACTIC_AS(window_tactic, t);
    c->source = "grouped.cu";
    c->entry = "grouped";
    c->may_spill = x.pix * (p->in[1].dim[1].max + width_of(p)) > 64 || (p->epilogue && p->epilogue->count > 12);
    window_defines(p, x, c);
    cuda_code_define(c, "CG", p->in[1].dim[1].max);
    cuda_code_define(c, "NV", width_of(p));
    cuda_code_define(c, "X_UNIT", unit_of(p));
    emit_space s;
    space_of(p, &s);
    emit_text(&s, c->generated);
    text_printf(c->generated, "typedef %s type_x;\n", emit_stored(p->in[0].dtype));
    return true;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *record)
{
    const window_tactic x = TACTIC_AS(window_tactic, t);
    cuda_record *r = record;
    struct depthwise_args *a;
    const int64_t pitch = pitch_of(p);
    TRY(window_bind(e, p, attrs, x, in, out, width_of(p), pitch,
                    p->in[1].dim[0].max / ((const attrs_conv *)attrs)->groups / width_of(p), pitch * x.c * 4, r, &a));
    emit_space s;
    space_of(p, &s);
    return emit_bind(e, &s, in, out, r);
}

CUDA_ROW(cuda_grouped, 1, reject, , .out_strides = STRIDES_ROWS, .pack_size = pack_size, .pack = pack);
