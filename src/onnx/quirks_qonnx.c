/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_qonnx.c - the domain qonnx.custom_op.general: numbers that are rounded to those that a quantised tensor holds,
 * and stay floats. Scales, zero points and numbers of bits are tensors, which broadcast. */
#include "onnx/quirks.h"

#include <ctype.h>
#include <string.h>

/* Input i, which has to be there, in the type of input 0. */
static ir_value_id operand(onnx_call *c, uint32_t i)
{
    const ir_value_id v = call_in(c, i);
    if (!v || !call_in(c, 0)) REJECT(c, INVALID_MODEL, "input %u is missing", v ? 0 : i);
    return c->b.status ? 0 : build_typed(&c->b, v, call_type(c, call_in(c, 0)));
}

static ir_value_id plus(onnx_call *c, ir_value_id x, double k)
{
    return k == 0 ? x : build_add(&c->b, x, build_scalar_like(&c->b, x, k));
}

/* x rounded as the attribute rounding_mode says. Modes but ROUND, CEIL and FLOOR round the magnitude. */
static ir_value_id rounded(onnx_call *c, ir_value_id x, const char *otherwise)
{
    static const struct {
        const char *name;
        op_id op;
        bool is_magnitude;
        double add;
    } modes[] = { { "ROUND", OP_round, false, 0 },    { "HALF_EVEN", OP_round, false, 0 },
                  { "CEIL", OP_ceil, false, 0 },      { "FLOOR", OP_floor, false, 0 },
                  { "UP", OP_ceil, true, 0 },         { "DOWN", OP_floor, true, 0 },
                  { "HALF_UP", OP_floor, true, 0.5 }, { "HALF_DOWN", OP_ceil, true, -0.5 } };
    const char *given = call_text(c, "rounding_mode", otherwise);
    char name[16] = "";
    for (size_t i = 0; i + 1 < sizeof name && given[i]; i++) name[i] = (char)toupper((unsigned char)given[i]);
    uint32_t k = 0;
    while (k < COUNT_OF(modes) && strcmp(modes[k].name, name) != 0) k++;
    if (k == COUNT_OF(modes)) REJECT(c, UNSUPPORTED, "attribute rounding_mode is '%.40s'", given);
    if (c->b.status) return 0;
    if (!modes[k].is_magnitude) return build_unary(&c->b, modes[k].op, x);
    const ir_value_id whole = build_unary(&c->b, modes[k].op, plus(c, build_abs(&c->b, x), modes[k].add));
    return build_mul(&c->b, build_sign(&c->b, x), whole);
}

static ir_value_id power_of_two(onnx_call *c, ir_value_id exponent)
{
    return build_pow(&c->b, build_scalar_like(&c->b, exponent, 2), exponent);
}

/* x within the whole numbers of so many bits. */
static ir_value_id within_bits(onnx_call *c, ir_value_id x, ir_value_id bits, bool is_signed)
{
    const bool is_narrow = call_int(c, "narrow", 0) != 0;
    const ir_value_id count = power_of_two(c, plus(c, bits, is_signed ? -1 : 0));
    const ir_value_id most = plus(c, count, is_narrow && !is_signed ? -2 : -1);
    const ir_value_id least =
        is_signed ? plus(c, build_neg(&c->b, count), is_narrow ? 1 : 0) : build_scalar_like(&c->b, bits, 0);
    return build_max(&c->b, build_min(&c->b, x, most), least);
}

/* 1 where x is not negative, else -1. */
static ir_value_id sides(onnx_call *c, ir_value_id x)
{
    const ir_value_id one = build_scalar_like(&c->b, x, 1), least = build_scalar_like(&c->b, x, -1);
    return build_where(&c->b, build_ge(&c->b, x, build_scalar_like(&c->b, x, 0)), one, least);
}

/* x / scale + zero */
static ir_value_id codes_of(onnx_call *c, ir_value_id x, ir_value_id scale, ir_value_id zero)
{
    return build_add(&c->b, build_div(&c->b, x, scale), zero);
}

void convert_qonnx_quant(onnx_call *c)
{
    const bool is_signed = call_int(c, "signed", 1) != 0;
    const ir_value_id x = operand(c, 0), scale = operand(c, 1), zero = operand(c, 2), bits = operand(c, 3);
    if (c->b.status) return;
    const ir_value_id given = codes_of(c, x, scale, zero);
    ir_value_id code = rounded(c, within_bits(c, given, bits, is_signed), "ROUND");
    if (is_signed && !c->b.status) {
        const ir_value_id is_one = build_eq(&c->b, bits, build_scalar_like(&c->b, bits, 1));
        code = build_where(&c->b, is_one, sides(c, given), code);
    }
    if (!c->b.status) c->out[0] = build_mul(&c->b, build_sub(&c->b, code, zero), scale);
}

void convert_qonnx_bipolar(onnx_call *c)
{
    const ir_value_id x = operand(c, 0), scale = operand(c, 1);
    if (!c->b.status) c->out[0] = build_mul(&c->b, sides(c, x), scale);
}

/* Fewer bits. Version 1 leaves the scale as it is, version 2 has a scale of the result as input 4. */
void convert_qonnx_trunc(onnx_call *c)
{
    const bool is_first = c->count_in == 5;
    const ir_value_id x = operand(c, 0), scale = operand(c, 1), zero = operand(c, 2), bits = operand(c, 3),
                      then = operand(c, 4), left = is_first ? then : operand(c, 5);
    if (c->b.status) return;
    ir_value_id step = 0;
    if (is_first) {
        step = power_of_two(c, build_sub(&c->b, bits, left));
    } else {
        const ir_value_id natural = build_log(&c->b, build_div(&c->b, then, scale));
        const ir_value_id two = build_scalar_like(&c->b, natural, 0.69314718055994531);
        step = power_of_two(c, build_round(&c->b, build_div(&c->b, natural, two)));
    }
    ir_value_id code = build_div(&c->b, build_round(&c->b, codes_of(c, x, scale, zero)), step);
    if (!is_first) code = within_bits(c, code, left, call_int(c, "signed", 1) != 0);
    code = rounded(c, code, "FLOOR");
    if (c->b.status) return;
    const ir_value_id moved = is_first ? zero : build_div(&c->b, zero, step);
    c->out[0] = build_mul(&c->b, build_sub(&c->b, code, moved), is_first ? scale : then);
}
