/* SPDX-License-Identifier: Apache-2.0 */
/* round_trip.c - finding round trips in programs. */
#include "cpu/round_trip.h"

#include "core/dtype.h"
#include <math.h>

static bool imm_f32(const expr *x, uint16_t at, float *out)
{
    *out = (float)x->at[at].imm.f;
    return x->at[at].op == EXPR_IMM && x->at[at].dtype == SINTER_DTYPE_F32;
}

static bool imm_int(const expr *x, uint16_t at, int64_t *out)
{
    *out = x->at[at].imm.i;
    return x->at[at].op == EXPR_IMM && dtype_is_int((sinter_dtype)x->at[at].dtype);
}

static int64_t within(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* Walks back over clips of the integer, which narrow its range. */
static uint16_t before_clips(const expr *x, const uint32_t *uses, uint16_t at, int64_t *low, int64_t *high)
{
    while (x->at[at].op == OP_clip && uses[at] == 1) {
        int64_t a, b;
        if (!imm_int(x, x->at[at].arg[1], &a) || !imm_int(x, x->at[at].arg[2], &b)) return at;
        /* What comes later has the last word: its bounds first. */
        const int64_t l = within(within(a, INT64_MIN, b), *low, *high), h = within(b, *low, *high);
        *low = l;
        *high = h;
        at = x->at[at].arg[0];
    }
    return at;
}

/* Quotients by such scales and their remainders neither overflow nor underflow where they matter. */
static bool is_moderate(float scale)
{
    return scale > 0x1p-80f && scale < 0x1p80f;
}

bool round_trip_find(const expr *x, const uint32_t *uses, uint32_t end, round_trip *out, uint16_t *from)
{
    const expr_instr *d = &x->at[end];
    int64_t low, high, zero, again;
    if (d->op != OP_dequantize || d->dtype != SINTER_DTYPE_F32 || uses[d->arg[0]] != 1) return false;
    const sinter_dtype type = (sinter_dtype)x->at[d->arg[0]].dtype;
    if (!dtype_is_int(type) || sinter_dtype_bits(type) > 16) return false;
    dtype_int_range(type, &low, &high);
    const expr_instr *q = &x->at[before_clips(x, uses, d->arg[0], &low, &high)];
    const bool is_known = q->op == OP_quantize && imm_f32(x, q->arg[1], &out->scale) && imm_int(x, q->arg[2], &zero) &&
                          imm_f32(x, d->arg[1], &out->back) && imm_int(x, d->arg[2], &again) && zero == again;
    if (!is_known || uses[q - x->at] != 1 || !(out->scale > 0) || !isfinite(out->scale)) return false;
    out->inverse = is_moderate(out->scale) ? 1 / out->scale : 0;
    out->low = (float)(low - zero) * out->scale;
    out->high = (float)(high - zero) * out->scale;
    *from = q->arg[0];
    return isfinite(out->low) && isfinite(out->high);
}
