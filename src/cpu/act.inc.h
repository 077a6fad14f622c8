/* SPDX-License-Identifier: Apache-2.0 */
/* act.inc.h - the loops of activations, included once by each instruction set's file after its simd_*.h.
 *
 * Whole vectors and one masked step a row; blocks without gaps are one long row. */
#include "cpu/simd_math.inc.h"

#define ACT(name, value)                                                                                               \
    static void act_##name(const act_block *b)                                                                         \
    {                                                                                                                  \
        const vec y = v_set(b->y), z = v_set(b->z);                                                                    \
        const vec scale = v_set(b->trip.scale), inverse = v_set(b->trip.inverse), back = v_set(b->trip.back);          \
        const vec low = v_set(b->trip.low), high = v_set(b->trip.high);                                                \
        (void)y, (void)z, (void)scale, (void)inverse, (void)back, (void)low, (void)high;                               \
        const bool dense = b->cols == b->ldc && (!b->added || b->ld_added == b->ldc);                                  \
        const int64_t rows = dense ? 1 : b->rows, cols = dense ? b->rows * b->cols : b->cols;                          \
        const int left = (int)(cols % VEC_LANES);                                                                      \
        float *c = b->c;                                                                                               \
        const float *q = b->added;                                                                                     \
        for (int64_t row = 0; row < rows; row++, c += b->ldc) {                                                        \
            int64_t i = 0;                                                                                             \
            if (q) {                                                                                                   \
                for (; i + VEC_LANES <= cols; i += VEC_LANES) {                                                        \
                    const vec x = v_load(c + i);                                                                       \
                    v_store(c + i, v_add(value, v_load(q + i)));                                                       \
                }                                                                                                      \
                if (left) {                                                                                            \
                    const vec x = v_load_n(c + i, left);                                                               \
                    v_store_n(c + i, v_add(value, v_load_n(q + i, left)), left);                                       \
                }                                                                                                      \
                q += b->ld_added;                                                                                      \
                continue;                                                                                              \
            }                                                                                                          \
            for (; i + VEC_LANES <= cols; i += VEC_LANES) {                                                            \
                const vec x = v_load(c + i);                                                                           \
                v_store(c + i, value);                                                                                 \
            }                                                                                                          \
            if (left) {                                                                                                \
                const vec x = v_load_n(c + i, left);                                                                   \
                v_store_n(c + i, value, left);                                                                         \
            }                                                                                                          \
        }                                                                                                              \
    }

ACT(identity, x)
ACT(sigmoid, v_sigmoid(x))
ACT(tanh, v_tanh(x))
ACT(silu, v_silu(x))
ACT(gelu, v_gelu(x))
ACT(gelu_tanh, v_gelu_tanh(x))
ACT(hardswish, v_hardswish(x))
ACT(mish, v_mish(x))
ACT(prelu, v_prelu(x, y))
ACT(hard_sigmoid, v_hard_sigmoid(x, y, z))
ACT(round_trip, v_round_trip(v_div_by(v_between(x, low, high), scale, inverse), back))

act_fn *VEC_SUFFIX(act_of)(op_id op)
{
    switch (op) {
    case OP_identity: return act_identity;
    case OP_sigmoid: return act_sigmoid;
    case OP_tanh: return act_tanh;
    case OP_silu: return act_silu;
    case OP_gelu: return act_gelu;
    case OP_gelu_tanh: return act_gelu_tanh;
    case OP_hardswish: return act_hardswish;
    case OP_mish: return act_mish;
    case OP_prelu: return act_prelu;
    case OP_hard_sigmoid: return act_hard_sigmoid;
    case OP_dequantize: return act_round_trip;
    default: return NULL;
    }
}
