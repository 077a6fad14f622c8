/* SPDX-License-Identifier: Apache-2.0 */
/* act.inc.h - the loops of activations, included once by each instruction set's file.
 *
 * Whole vectors and one masked step a row; blocks without gaps are one long row. */
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

static const act_set act_loops = {
    .run = {
        [OP_identity] = act_identity,
        [OP_sigmoid] = act_sigmoid,
        [OP_tanh] = act_tanh,
        [OP_silu] = act_silu,
        [OP_gelu] = act_gelu,
        [OP_gelu_tanh] = act_gelu_tanh,
        [OP_hardswish] = act_hardswish,
        [OP_mish] = act_mish,
        [OP_prelu] = act_prelu,
        [OP_hard_sigmoid] = act_hard_sigmoid,
        [OP_dequantize] = act_round_trip,
    },
};
