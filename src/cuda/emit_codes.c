/* SPDX-License-Identifier: Apache-2.0 */
/* emit_codes.c - which numbers are carried as codes, and the text of what is done with them. */
#include "cuda/emit_codes.h"

#include <inttypes.h>
#include <string.h>

static const int32_t half = 1 << 23, middle = 3 << 22; /* 2^23 and 1.5 * 2^23 */

bool emit_is_exact_in_f32(sinter_dtype dtype)
{
    return dtype != SINTER_DTYPE_F64 && (dtype_is_float(dtype) || sinter_dtype_bits(dtype) <= 16);
}

bool emit_has_reciprocal(const expr_instr *scale, float *reciprocal)
{
    if (scale->op != EXPR_IMM || !dtype_is_float((sinter_dtype)scale->dtype)) return false;
    const float d = (float)scale->imm.f;
    if (!(d > 0x1p-60f && d < 0x1p60f)) return false;
    *reciprocal = 1.0f / d;
    return true;
}

static bool is_byte(uint8_t dtype)
{
    return dtype == SINTER_DTYPE_I8 || dtype == SINTER_DTYPE_U8;
}

/* ---- which ---- */

static bool is_quantize(const expr *x, const expr_instr *n)
{
    float unused;
    return n->op == OP_quantize && is_byte(n->dtype) && emit_is_exact_in_f32((sinter_dtype)x->at[n->arg[0]].dtype) &&
           x->at[n->arg[1]].dtype != SINTER_DTYPE_F64 && emit_has_reciprocal(&x->at[n->arg[1]], &unused) &&
           x->at[n->arg[2]].op == EXPR_IMM && x->at[n->arg[2]].dtype == n->dtype;
}

/* The zero points of a code and of what reads it are small, so that sums stay in range. */
static bool is_dequantize(const expr *x, const expr_instr *n)
{
    return n->op == OP_dequantize && n->dtype != SINTER_DTYPE_F64 && x->at[n->arg[1]].dtype != SINTER_DTYPE_F64 &&
           x->at[n->arg[2]].op == EXPR_IMM && is_byte(x->at[n->arg[2]].dtype);
}

void emit_codes_find(const expr *x, bool stores, emit_codes *out)
{
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; x && i < x->count; i++) {
        const expr_instr *n = &x->at[i];
        out->is_code[i] = is_quantize(x, n) || (n->op == EXPR_LOAD && is_byte(n->dtype));
    }
    for (uint32_t i = 0; x && i < x->count; i++) {
        const expr_instr *n = &x->at[i];
        for (uint32_t k = 0; k < expr_arity(n); k++) {
            const expr_instr *a = &x->at[n->arg[k]];
            const bool is_read = k == 0 && is_dequantize(x, n),
                       is_stored = n->op == EXPR_STORE && stores && a->op == OP_quantize && a->dtype == n->dtype;
            if (!is_read && !is_stored) out->is_code[n->arg[k]] = false;
        }
    }
}

/* ---- text ---- */

static void put_float(float f, text *out)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    text_printf(out, "float_of_bits(0x%08" PRIx32 "u)", bits);
}

static int32_t even_below(int32_t z)
{
    return z - (z & 1);
}

static int32_t zero_of(const expr *x, const expr_instr *n)
{
    const expr_instr *z = &x->at[n->arg[2]];
    return z->dtype == SINTER_DTYPE_U8 ? (int32_t)(uint8_t)z->imm.i : (int32_t)(int8_t)z->imm.i;
}

/* What stands in the float beside the number itself. */
static int32_t offset_of(const expr *x, const expr_instr *code)
{
    if (code->op == EXPR_LOAD) return code->dtype == SINTER_DTYPE_I8 ? half + 128 : half;
    const int32_t z = zero_of(x, code);
    return middle + even_below(z) - z;
}

/* Limiting x first is as limiting the code: the ends of the range are quotients, too, and quotients are in the order of
 * x. A NaN becomes the least. */
void emit_code_quantize(const expr *x, const expr_instr *n, text *out)
{
    const int32_t least = n->dtype == SINTER_DTYPE_U8 ? 0 : -128, z = zero_of(x, n);
    const expr_instr *scale = &x->at[n->arg[1]];
    const float d = (float)scale->imm.f;
    float reciprocal = 1;
    (void)emit_has_reciprocal(scale, &reciprocal);
    text_printf(out, "emit_code((float)t%u, ", n->arg[0]);
    put_float((float)(least - z) * d, out);
    text_printf(out, ", ");
    put_float((float)(least + 255 - z) * d, out);
    text_printf(out, ", ");
    put_float(d, out);
    text_printf(out, ", ");
    put_float(reciprocal, out);
    text_printf(out, ", ");
    put_float((float)(middle + even_below(z)), out);
    text_printf(out, ")");
}

void emit_code_dequantize(const expr *x, const expr_instr *n, text *out)
{
    text_printf(out, "emit_cast_%s((t%u - ", sinter_dtype_name((sinter_dtype)n->dtype), n->arg[0]);
    put_float((float)(offset_of(x, &x->at[n->arg[0]]) + zero_of(x, n)), out);
    text_printf(out, ") * t%u)", n->arg[1]);
}

void emit_code_store(const expr *x, const expr_instr *n, text *out)
{
    const int32_t z = zero_of(x, &x->at[n->arg[0]]);
    text_printf(out, z & 1 ? "t%u + 1.0f" : "t%u", n->arg[0]);
}

void emit_code_value(const expr *x, const expr_instr *n, text *out)
{
    text_printf(out, "t%u - ", n->arg[0]);
    put_float((float)offset_of(x, &x->at[n->arg[0]]), out);
}
