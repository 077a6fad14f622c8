/* SPDX-License-Identifier: Apache-2.0 */
/* scalar_error.c - how exact scalar functions of f32 are: the contract of every kernel that computes them.
 *
 * A result y of a function whose exact value is v satisfies |y - v| <= ulps * ulp(v) + least, where ulp(v) is the gap
 * between f32 numbers at v. A function that has no row is rounded correctly. Infinities, NaN and the signs of zeros
 * are exact. Functions that end in exp(x) for negative x give 0 where exp(-x) overflows: `least` covers that. */
#include "ops/ops.h"

static const scalar_error error_at[OP_SCALAR_COUNT] = {
    [OP_rsqrt] = { 2, 0 }, /* a square root and a division */
    [OP_exp] = { 2, 0 },
    [OP_log] = { 2, 0 },
    [OP_sin] = { 3, 0 },
    [OP_cos] = { 3, 0 },
    [OP_tan] = { 4, 0 },
    [OP_asin] = { 4, 0 },
    [OP_acos] = { 2, 0 },
    [OP_atan] = { 3, 0 },
    [OP_sinh] = { 3, 0 },
    [OP_cosh] = { 2, 0 },
    [OP_tanh] = { 8, 0 },
    [OP_asinh] = { 3, 0 },
    [OP_acosh] = { 4, 0 },
    [OP_atanh] = { 3, 0 },
    [OP_erf] = { 4, 0 },
    [OP_softplus] = { 4, 0 },
    [OP_softsign] = { 2, 0 },
    [OP_hardswish] = { 3, 0 },
    [OP_sigmoid] = { 4, 0x1p-126 },
    [OP_silu] = { 4, 0x1p-119 },
    [OP_mish] = { 6, 0x1p-140 },
    [OP_gelu] = { 12, 4e-9 },
    [OP_gelu_tanh] = { 8, 1e-8 },
    [OP_pow] = { 8, 0 },
    [OP_elu] = { 4, 0 },
    [OP_celu] = { 2, 0 },
    [OP_selu] = { 5, 0 },
    [OP_hard_sigmoid] = { 1, 0x1p-24 },
};

scalar_error scalar_error_of(op_id op)
{
    const scalar_error e = error_at[op];
    return (scalar_error){ e.ulps > 0.5 ? e.ulps : 0.5, e.least };
}
