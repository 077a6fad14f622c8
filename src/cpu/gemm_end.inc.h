/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_end.inc.h - what becomes of the sums of a register tile: scale, bias, residual, clip, and the store.
 *
 * Included once for each unit. Who includes this defines UNIT, UNIT_IS_INTEGER, UNIT_IS_NARROW and, where the unit is
 * narrow, UNIT_STORE_NARROW (gemm_unit.inc.h); gemm_unit_off.inc.h takes them back. */
#define UNIT_PASTE_(a, b) a##_##b
#define UNIT_PASTE(a, b) UNIT_PASTE_(a, b)
#define UNIT_NAME(name) UNIT_PASTE(name, UNIT)

#if UNIT_IS_INTEGER
#define UNIT_SUM veci
#define UNIT_ZERO() vi_set(0)
#else
#define UNIT_SUM vec
#define UNIT_ZERO() v_zero()
#endif

/* t: of the first row; acc: `rows` rows of sums, of which `live` are written. */
static inline __attribute__((always_inline)) void UNIT_NAME(tile_end)(const gemm_tile *t,
                                                                      UNIT_SUM (*acc)[GEMM_VECTORS_MAX],
                                                                      const int rows, const int live, const int vectors)
{
    const int last = vectors - 1, tail = t->cols - last * VEC_LANES;
#if UNIT_IS_INTEGER
    int32_t *c = t->c;
    UNROLL for (int i = 0; i < rows; i++, c += t->ldc)
    {
        if (i >= live) continue;
        UNROLL for (int j = 0; j < last; j++) vi_store(c + j * VEC_LANES, acc[i][j]);
        if (tail == VEC_LANES) {
            vi_store(c + last * VEC_LANES, acc[i][last]);
        } else {
            v_store_n((float *)(void *)(c + last * VEC_LANES), v_of_bits(acc[i][last]), tail);
        }
    }
#else
    if (t->flags & GEMM_TILE_ALPHA) {
        const vec alpha = v_set(t->alpha);
        UNROLL for (int i = 0; i < rows; i++)
        {
            UNROLL for (int j = 0; j < vectors; j++) acc[i][j] = v_mul(alpha, acc[i][j]);
        }
    }
    vec bias[GEMM_VECTORS_MAX];
    UNROLL for (int j = 0; j < vectors; j++) bias[j] = v_zero();
#if UNIT_IS_NARROW
    if (t->bias && t->flags & GEMM_TILE_NARROW_BIAS) {
        const uint16_t *from_bias = t->bias;
        UNROLL for (int j = 0; j < last; j++) bias[j] = v_load_bf16(from_bias + j * VEC_LANES);
        bias[last] = narrow_load_n(from_bias + last * VEC_LANES, tail);
    } else
#endif
        if (t->bias) {
        const float *from_bias = t->bias;
        UNROLL for (int j = 0; j < last; j++) bias[j] = v_load(from_bias + j * VEC_LANES);
        bias[last] = v_load_n(from_bias + last * VEC_LANES, tail);
    }
    UNROLL for (int i = 0; i < rows; i++)
    {
        UNROLL for (int j = 0; j < vectors; j++) acc[i][j] = v_add(acc[i][j], bias[j]);
    }
#if UNIT_IS_NARROW
    if (t->residual && t->flags & GEMM_TILE_NARROW_RESIDUAL) {
        const uint16_t *residual = t->residual;
        UNROLL for (int i = 0; i < rows; i++, residual += t->ldr)
        {
            if (i >= live) continue;
            UNROLL for (int j = 0; j < last; j++) acc[i][j] = v_add(acc[i][j], v_load_bf16(residual + j * VEC_LANES));
            acc[i][last] = v_add(acc[i][last], narrow_load_n(residual + last * VEC_LANES, tail));
        }
    } else
#endif
        if (t->residual) {
        const float *residual = t->residual;
        UNROLL for (int i = 0; i < rows; i++, residual += t->ldr)
        {
            if (i >= live) continue;
            UNROLL for (int j = 0; j < last; j++) acc[i][j] = v_add(acc[i][j], v_load(residual + j * VEC_LANES));
            acc[i][last] = v_add(acc[i][last], v_load_n(residual + last * VEC_LANES, tail));
        }
    }
    if (t->flags & GEMM_TILE_CLIP) {
        const vec lo = v_set(t->lo), hi = v_set(t->hi);
        UNROLL for (int i = 0; i < rows; i++)
        {
            UNROLL for (int j = 0; j < vectors; j++) acc[i][j] = v_min(hi, v_max(lo, acc[i][j]));
        }
    }
#if UNIT_IS_NARROW
    if (t->flags & GEMM_TILE_NARROW_C) {
        uint16_t *c = t->c;
        UNROLL for (int i = 0; i < rows; i++, c += t->ldc)
        {
            if (i >= live) continue;
            UNROLL for (int j = 0; j < last; j++) UNIT_STORE_NARROW(c + j * VEC_LANES, acc[i][j]);
            if (tail == VEC_LANES) {
                UNIT_STORE_NARROW(c + last * VEC_LANES, acc[i][last]);
            } else {
                uint16_t end[VEC_LANES];
                UNIT_STORE_NARROW(end, acc[i][last]);
                shorts_store_n(c + last * VEC_LANES, end, tail);
            }
        }
        return;
    }
#endif
    float *c = t->c;
    if (tail == VEC_LANES) {
        UNROLL for (int i = 0; i < rows; i++, c += t->ldc)
        {
            if (i >= live) continue;
            UNROLL for (int j = 0; j < vectors; j++) v_store(c + j * VEC_LANES, acc[i][j]);
        }
    } else {
        UNROLL for (int i = 0; i < rows; i++, c += t->ldc)
        {
            if (i >= live) continue;
            UNROLL for (int j = 0; j < last; j++) v_store(c + j * VEC_LANES, acc[i][j]);
            v_store_n(c + last * VEC_LANES, acc[i][last], tail);
        }
    }
#endif
}
