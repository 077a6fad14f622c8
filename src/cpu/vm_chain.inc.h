/* SPDX-License-Identifier: Apache-2.0 */
/* vm_chain.inc.h - the steps of chains (vm_chain.h), once for each level.
 *
 * A step takes the running value as eight vectors, does its work, and calls the next step as its last act. Optimising
 * compilers make that call a jump, so the value stays in registers from the load to the store; without optimisation the
 * calls are as deep as the chain is long. Integers of 32 bits are carried as the bits of floats. */
#include "cpu/vm_chain.h"

#define STEP_ARGS                                                                                                  \
    const vm_step *p, vm_chunk *k, vec x0, vec x1, vec x2, vec x3, vec x4, vec x5, vec x6, vec x7
typedef void step_fn(STEP_ARGS);
#define NEXT ((step_fn *)p[1].fn)(p + 1, k, x0, x1, x2, x3, x4, x5, x6, x7)
#define EACH_ONE(r, i, value)        \
    {                                \
        const vec x = r;             \
        enum { j = i };              \
        (void)x;                     \
        r = value;                   \
    }
#define EACH(value)                                                                                              \
    EACH_ONE(x0, 0, value)                                                                                       \
    EACH_ONE(x1, 1, value)                                                                                       \
    EACH_ONE(x2, 2, value)                                                                                       \
    EACH_ONE(x3, 3, value)                                                                                       \
    EACH_ONE(x4, 4, value)                                                                                       \
    EACH_ONE(x5, 5, value)                                                                                       \
    EACH_ONE(x6, 6, value)                                                                                       \
    EACH_ONE(x7, 7, value)
#define STEP(name, set_up, value)                                                                                \
    static void s_##name(STEP_ARGS)                                                                              \
    {                                                                                                            \
        set_up;                                                                                                  \
        EACH(value)                                                                                              \
        NEXT;                                                                                                    \
    }

/* ---- where vector j of an operand lies ---- */
#define AT (k->at[p->a])
#define DENSE_AT(type) ((const type *)(const void *)AT + j * VEC_LANES)
#define ROWS_AT(type)  ((const type *)(const void *)(AT + k->row[j] * k->stride[p->a]))

#define FROM_DENSE(type, load) load(DENSE_AT(type))
#define FROM_ROWS(type, load)  load(ROWS_AT(type))
#define FROM_PART(type, load)  load##_n(ROWS_AT(type), k->count[j])
#define FROM_SPLAT(type, load) load##_1(ROWS_AT(type))
/* One element for a whole dense run. */
#define OF_ONE const vec y = v_set(*(const float *)(const void *)AT)

/* At most PART bytes, in two parts that may overlap. */
enum { PART = 32 };
static inline void part_copy(void *to, const void *from, size_t size)
{
    char *d = to;
    const char *s = from;
#define PART_COPY(part)                                                                                          \
    if (size >= (part)) {                                                                                        \
        memcpy(d, s, part);                                                                                      \
        memcpy(d + size - (part), s + size - (part), part);                                                      \
        return;                                                                                                  \
    }
    PART_COPY(16)
    PART_COPY(8)
    PART_COPY(4)
    PART_COPY(2)
#undef PART_COPY
    if (size) *d = *s;
}

static inline vec get_f32(const float *p) { return v_load(p); }
static inline vec get_f32_n(const float *p, int n) { return v_load_n(p, n); }
static inline vec get_f32_1(const float *p) { return v_set(*p); }
#define GETS(name, type, value)                                                                                  \
    static inline vec get_##name(const type *p) { return value; }                                                \
    static inline vec get_##name##_n(const type *s, int n)                                                       \
    {                                                                                                            \
        type p[PART / sizeof(type)] = { 0 };                                                                     \
        part_copy(p, s, (size_t)n * sizeof *p);                                                                  \
        return value;                                                                                            \
    }                                                                                                            \
    static inline vec get_##name##_1(const type *s)                                                              \
    {                                                                                                            \
        type p[VEC_LANES];                                                                                       \
        for (int i = 0; i < VEC_LANES; i++) p[i] = *s;                                                           \
        return value;                                                                                            \
    }
GETS(f16, uint16_t, v_load_f16(p))
GETS(bf16, uint16_t, v_load_bf16(p))
GETS(i8, int8_t, v_of_bits(vi_load_i8(p)))
GETS(u8, uint8_t, v_of_bits(vi_load_u8(p)))

/* Loads make the running value; stages fill a slot of scratch and leave the running value alone. */
#define STAGE(name, value)                                                                                       \
    static void s_##name(STEP_ARGS)                                                                              \
    {                                                                                                            \
        float *slot = (float *)(void *)k->at[p->b];                                                              \
        for (int j = 0; j < VM_CHAIN_VECTORS; j++) v_store(slot + j * VEC_LANES, value);                         \
        NEXT;                                                                                                    \
    }
#define LOADS(name, type)                                                                                        \
    STEP(load_##name##_dense, , FROM_DENSE(type, get_##name))                                                    \
    STEP(load_##name##_rows, , FROM_ROWS(type, get_##name))                                                      \
    STEP(load_##name##_part, , FROM_PART(type, get_##name))                                                      \
    STEP(load_##name##_splat, , FROM_SPLAT(type, get_##name))                                                    \
    STAGE(stage_##name##_dense, FROM_DENSE(type, get_##name))                                                    \
    STAGE(stage_##name##_rows, FROM_ROWS(type, get_##name))                                                      \
    STAGE(stage_##name##_part, FROM_PART(type, get_##name))                                                      \
    STAGE(stage_##name##_splat, FROM_SPLAT(type, get_##name))
LOADS(f32, float)
LOADS(f16, uint16_t)
LOADS(bf16, uint16_t)
LOADS(i8, int8_t)
LOADS(u8, uint8_t)
STAGE(fill, v_set(p->imm[0]))
STEP(splat, , v_set(p->imm[0]))

#define PUTS(name, type, store)                                                                                  \
    static inline void put_##name(type *p, vec v) { store; }                                                     \
    static inline void put_##name##_n(type *d, vec v, int n)                                                     \
    {                                                                                                            \
        type p[PART / sizeof(type)];                                                                             \
        store;                                                                                                   \
        part_copy(d, p, (size_t)n * sizeof *p);                                                                  \
    }
static inline void put_f32(float *p, vec v) { v_store(p, v); }
static inline void put_f32_n(float *p, vec v, int n) { v_store_n(p, v, n); }
PUTS(f16, uint16_t, v_store_f16(p, v))
PUTS(bf16, uint16_t, v_store_bf16(p, v))
PUTS(8, uint8_t, vi_store_8(p, v_bits(v)))
#define STORE_AS(name, put)                                                                                      \
    static void s_##name(STEP_ARGS)                                                                              \
    {                                                                                                            \
        char *const to = AT;                                                                                     \
        put(x0, 0) put(x1, 1) put(x2, 2) put(x3, 3) put(x4, 4) put(x5, 5) put(x6, 6) put(x7, 7) NEXT;            \
    }
#define TO(type, at) ((type *)(void *)(to + (at)))
#define STORES(name, type)                                                                                       \
    STORE_AS(store_##name##_dense, PUT_##name##_DENSE)                                                           \
    STORE_AS(store_##name##_rows, PUT_##name##_ROWS)                                                             \
    STORE_AS(store_##name##_part, PUT_##name##_PART)
#define PUT_DENSE(name, type, x, j) put_##name(TO(type, (j)*VEC_LANES * (int64_t)sizeof(type)), x);
#define PUT_ROWS(name, type, x, j)  put_##name(TO(type, k->row[j] * k->stride[p->a]), x);
#define PUT_PART(name, type, x, j)  put_##name##_n(TO(type, k->row[j] * k->stride[p->a]), x, k->count[j]);
#define PUT_f32_DENSE(x, j)  PUT_DENSE(f32, float, x, j)
#define PUT_f32_ROWS(x, j)   PUT_ROWS(f32, float, x, j)
#define PUT_f32_PART(x, j)   PUT_PART(f32, float, x, j)
#define PUT_f16_DENSE(x, j)  PUT_DENSE(f16, uint16_t, x, j)
#define PUT_f16_ROWS(x, j)   PUT_ROWS(f16, uint16_t, x, j)
#define PUT_f16_PART(x, j)   PUT_PART(f16, uint16_t, x, j)
#define PUT_bf16_DENSE(x, j) PUT_DENSE(bf16, uint16_t, x, j)
#define PUT_bf16_ROWS(x, j)  PUT_ROWS(bf16, uint16_t, x, j)
#define PUT_bf16_PART(x, j)  PUT_PART(bf16, uint16_t, x, j)
#define PUT_8_DENSE(x, j)    PUT_DENSE(8, uint8_t, x, j)
#define PUT_8_ROWS(x, j)     PUT_ROWS(8, uint8_t, x, j)
#define PUT_8_PART(x, j)     PUT_PART(8, uint8_t, x, j)
STORES(f32, float)
STORES(f16, uint16_t)
STORES(bf16, uint16_t)
STORES(8, uint8_t)

/* The next chunk of a run: from the first step again. */
static void s_again(STEP_ARGS)
{
    if (--k->left == 0) {
        v_leave();
        return;
    }
    for (uint32_t i = 0; i < VM_AT_ONCE; i++) k->at[i] += k->bump[i];
    for (uint32_t i = VM_AT_ONCE; i < k->operands; i++) k->at[i] += k->bump[i];
    p -= p->op;
    ((step_fn *)p->fn)(p, k, x0, x1, x2, x3, x4, x5, x6, x7);
}

/* ---- functions of one value ---- */
#define STEP_UNARY(name, value) STEP(u_##name, , value)
STEP_UNARY(neg, v_neg(x))
STEP_UNARY(abs, v_abs(x))
STEP_UNARY(ceil, v_ceil(x))
STEP_UNARY(floor, v_floor(x))
STEP_UNARY(round, v_nearest(x))
STEP_UNARY(sqrt, v_sqrt(x))
STEP_UNARY(rsqrt, v_div(v_set(1.0f), v_sqrt(x)))
STEP_UNARY(reciprocal, v_div(v_set(1.0f), x))
STEP_UNARY(exp, v_exp(x))
STEP_UNARY(log, v_log(x))
STEP_UNARY(tanh, v_tanh(x))
STEP_UNARY(erf, v_erf(x))
STEP_UNARY(sigmoid, v_sigmoid(x))
STEP_UNARY(relu, v_max(v_zero(), x))
STEP_UNARY(atan, v_atan(x))
STEP_UNARY(softplus, v_softplus(x))
STEP_UNARY(softsign, v_div(x, v_add(v_set(1.0f), v_abs(x))))
STEP_UNARY(hardswish, v_hardswish(x))
STEP_UNARY(mish, v_mish(x))
STEP_UNARY(silu, v_silu(x))
STEP_UNARY(gelu, v_gelu(x))
STEP_UNARY(gelu_tanh, v_gelu_tanh(x))
STEP(square, , v_mul(x, x))

/* ---- functions of two: the other is y, an immediate or in a slot or a dense operand ---- */
#define OF_IMM const vec y = v_set(p->imm[0])
#define MEMORY_Y v_load(DENSE_AT(float))
#define STEP_BINARY(name, f)                                                                                     \
    STEP(b_##name##_imm, OF_IMM, f(x, y))                                                                        \
    STEP(b_##name##_imm_r, OF_IMM, f(y, x))                                                                      \
    STEP(b_##name##_mem, , f(x, MEMORY_Y))                                                                       \
    STEP(b_##name##_mem_r, , f(MEMORY_Y, x))
static inline vec step_elu(vec x, vec y) { return v_blend(v_lt(x, v_zero()), v_mul(y, v_expm1(x)), x); }
static inline vec step_thresholded(vec x, vec y) { return v_blend(v_lt(y, x), x, v_zero()); }
#define STEP_COMPARE(name, value)                                                                                \
    static inline vec step_##name(vec x, vec y) { return v_of_bits(vi_of_mask(value)); }                         \
    STEP_BINARY(name, step_##name)
STEP_BINARY(add, v_add)
STEP_BINARY(sub, v_sub)
STEP_BINARY(mul, v_mul)
STEP_BINARY(div, v_div)
STEP_BINARY(min, nan_least)
STEP_BINARY(max, nan_most)
STEP_BINARY(prelu, v_prelu)
STEP_BINARY(elu, step_elu)
STEP_BINARY(thresholded_relu, step_thresholded)
STEP_COMPARE(eq, v_eq(x, y))
STEP_COMPARE(lt, v_lt(x, y))
STEP_COMPARE(le, v_le(x, y))
STEP_COMPARE(gt, v_lt(y, x))
STEP_COMPARE(ge, v_le(y, x))

/* Of int32, whose bits are in a lane. */
#define STEP_INTEGER(name, value)                                                                                \
    static inline vec step_i_##name(vec a, vec b)                                                                \
    {                                                                                                            \
        const veci x = v_bits(a), y = v_bits(b);                                                                 \
        return v_of_bits(value);                                                                                 \
    }                                                                                                            \
    STEP_BINARY(i_##name, step_i_##name)
STEP_INTEGER(add, vi_add(x, y))
STEP_INTEGER(sub, vi_sub(x, y))
STEP_INTEGER(min, vi_blend(vi_lt(y, x), y, x))
STEP_INTEGER(max, vi_blend(vi_lt(x, y), y, x))
STEP_INTEGER(eq, vi_of_mask(vi_eq(x, y)))
STEP_INTEGER(lt, vi_of_mask(vi_lt(x, y)))
STEP_INTEGER(le, vi_of_mask(m_not(vi_lt(y, x))))
STEP_INTEGER(gt, vi_of_mask(vi_lt(y, x)))
STEP_INTEGER(ge, vi_of_mask(m_not(vi_lt(x, y))))

/* The commonest take operands that lie in rows, and one element for all lanes, without a stage before them. */
#define STEP_DIRECT(name, f)                                                                                     \
    STEP(b_##name##_rows, , f(x, FROM_ROWS(float, get_f32)))                                                     \
    STEP(b_##name##_rows_r, , f(FROM_ROWS(float, get_f32), x))                                                   \
    STEP(b_##name##_splat, , f(x, FROM_SPLAT(float, get_f32)))                                                   \
    STEP(b_##name##_splat_r, , f(FROM_SPLAT(float, get_f32), x))                                                 \
    STEP(b_##name##_one, OF_ONE, f(x, y))                                                                        \
    STEP(b_##name##_one_r, OF_ONE, f(y, x))
STEP_DIRECT(add, v_add)
STEP_DIRECT(sub, v_sub)
STEP_DIRECT(mul, v_mul)

/* ---- superinstructions; every rounding of the instructions that they stand for is kept ---- */
STEP(mul_add, const vec m = v_set(p->imm[0]); const vec n = v_set(p->imm[1]), v_add(v_mul(x, m), n))
STEP(clip, const vec lo = v_set(p->imm[0]); const vec hi = v_set(p->imm[1]), v_min(hi, v_max(lo, x)))
STEP(hard_sigmoid, const vec y = v_set(p->imm[0]); const vec z = v_set(p->imm[1]), v_hard_sigmoid(x, y, z))
#define TRIP_OF                                                                                                  \
    const vec s = v_set(p->imm[0]), low = v_set(p->imm[2]), high = v_set(p->imm[3]), back = v_set(p->imm[4])
STEP(trip_divide, TRIP_OF, v_round_trip(v_div(v_between(x, low, high), s), back))
STEP(trip_inverse, TRIP_OF; const vec r = v_set(p->imm[1]), v_round_trip(v_div_by(v_between(x, low, high), s, r), back))
/* imm: scale, zero point, least, greatest. */
#define QUANTIZE_OF                                                                                              \
    const vec s = v_set(p->imm[0]), z = v_set(p->imm[1]), lo = v_set(p->imm[2]), hi = v_set(p->imm[3])
STEP(quantize, QUANTIZE_OF,
     v_of_bits(v_to_int(v_min(hi, v_max(v_add(v_nearest(v_div(x, s)), z), lo)))))
/* imm: scale, zero point. Both integers are small, so that their difference is exact in f32, too. */
STEP(dequantize, const vec s = v_set(p->imm[0]); const vec z = v_set(p->imm[1]),
     v_mul(v_sub(vi_to_f32(v_bits(x)), z), s))
/* The same with scales and zero points in memory. */
static inline vec step_dequantize(vec x, const float *scale, const float *zero)
{
    return v_mul(vi_to_f32(vi_sub(v_bits(x), v_bits(v_load(zero)))), v_load(scale));
}
STEP(dequantize_each, const float *a = (const float *)(const void *)AT;
     const float *b = (const float *)(const void *)k->at[p->b],
     step_dequantize(x, a + j * VEC_LANES, b + j * VEC_LANES))
STEP(int_to_float, , vi_to_f32(v_bits(x)))
STEP(float_to_bool, , v_of_bits(vi_of_mask(m_not(v_eq(x, v_zero())))))
/* imm: least, greatest; top: the greatest as an integer. */
static inline vec step_to_int(vec x, vec lo, vec hi, veci top)
{
    const veci y = v_to_int_cut(v_blend(v_is_nan(x), v_zero(), v_max(lo, x)));
    return v_of_bits(vi_blend(v_le(hi, x), top, y));
}
STEP(float_to_int, const vec lo = v_set(p->imm[0]); const vec hi = v_set(p->imm[1]); const veci top = vi_set(p->top),
     step_to_int(x, lo, hi, top))
static inline vec step_f16(vec x)
{
    uint16_t t[VEC_LANES];
    v_store_f16(t, x);
    return v_load_f16(t);
}
static inline vec step_bf16(vec x)
{
    uint16_t t[VEC_LANES];
    v_store_bf16(t, x);
    return v_load_bf16(t);
}
STEP(round_f16, , step_f16(x))
STEP(round_bf16, , step_bf16(x))
/* The running value is the condition. */
static inline vec step_where(vec x, const float *a, const float *b)
{
    return v_blend(vi_eq(v_bits(x), vi_set(0)), v_load(b), v_load(a));
}
STEP(where, const float *a = (const float *)(const void *)AT;
     const float *b = (const float *)(const void *)k->at[p->b],
     step_where(x, a + j * VEC_LANES, b + j * VEC_LANES))

/* Any other function, by its loop over slots. */
static void s_call(STEP_ARGS)
{
    const vm_op *op = &k->program->op[p->op];
    float *d = (float *)(void *)k->at[p->d];
    op->fn(op, d, k->at[p->a], k->at[p->b], k->at[p->c], VM_CHAIN_VECTORS * VEC_LANES);
    EACH(v_load(d + j * VEC_LANES))
    NEXT;
}

static void chain_run(const vm_step *p, vm_chunk *k)
{
    const vec z = v_zero();
    ((step_fn *)p->fn)(p, k, z, z, z, z, z, z, z, z);
}

#define G4(name) { (vm_step_fn *)s_##name##_dense, (vm_step_fn *)s_##name##_rows, (vm_step_fn *)s_##name##_part, \
                   (vm_step_fn *)s_##name##_splat }
#define G3(name) { (vm_step_fn *)s_##name##_dense, (vm_step_fn *)s_##name##_rows, (vm_step_fn *)s_##name##_part }
#define S1(name) (vm_step_fn *)s_##name
#define SU(name) [OP_##name] = (vm_step_fn *)s_u_##name
#define SB(name) [OP_##name] = { S1(b_##name##_imm), S1(b_##name##_imm_r), S1(b_##name##_mem), S1(b_##name##_mem_r) }
#define SI(name) [OP_##name] = { S1(b_i_##name##_imm), S1(b_i_##name##_imm_r), S1(b_i_##name##_mem), \
                                 S1(b_i_##name##_mem_r) }
#define SD(name) [OP_##name] = { S1(b_##name##_rows), S1(b_##name##_rows_r), S1(b_##name##_splat), \
                                 S1(b_##name##_splat_r), S1(b_##name##_one), S1(b_##name##_one_r) }
static const vm_chain_set chain_steps = {
    .lanes = VEC_LANES,
    .shift = VEC_LANES == 16 ? 4 : VEC_LANES == 8 ? 3 : 2,
    .run = chain_run,
    .load = { [VM_IN_F32] = G4(load_f32), [VM_IN_F16] = G4(load_f16), [VM_IN_BF16] = G4(load_bf16),
              [VM_IN_I8] = G4(load_i8), [VM_IN_U8] = G4(load_u8) },
    .stage = { [VM_IN_F32] = G4(stage_f32), [VM_IN_F16] = G4(stage_f16), [VM_IN_BF16] = G4(stage_bf16),
               [VM_IN_I8] = G4(stage_i8), [VM_IN_U8] = G4(stage_u8) },
    .store = { [VM_IN_F32] = G3(store_f32), [VM_IN_F16] = G3(store_f16), [VM_IN_BF16] = G3(store_bf16),
               [VM_IN_I8] = G3(store_8), [VM_IN_U8] = G3(store_8) },
    .unary = { SU(neg), SU(abs), SU(ceil), SU(floor), SU(round), SU(sqrt), SU(rsqrt), SU(reciprocal), SU(exp), SU(log),
               SU(tanh), SU(erf), SU(atan), SU(sigmoid), SU(relu), SU(softplus), SU(softsign), SU(hardswish),
               SU(mish), SU(silu), SU(gelu), SU(gelu_tanh) },
    .binary = { SB(add), SB(sub), SB(mul), SB(div), SB(min), SB(max), SB(prelu), SB(elu), SB(thresholded_relu), SB(eq),
                SB(lt), SB(le), SB(gt), SB(ge) },
    .integer = { SI(add), SI(sub), SI(min), SI(max), SI(eq), SI(lt), SI(le), SI(gt), SI(ge) },
    .direct = { SD(add), SD(sub), SD(mul) },
    .step = { [VM_STEP_AGAIN] = S1(again), [VM_STEP_FILL] = S1(fill),
              [VM_STEP_SPLAT] = S1(splat),
              [VM_STEP_SQUARE] = S1(square), [VM_STEP_MUL_ADD] = S1(mul_add), [VM_STEP_CLIP] = S1(clip),
              [VM_STEP_HARD_SIGMOID] = S1(hard_sigmoid), [VM_STEP_TRIP_DIVIDE] = S1(trip_divide),
              [VM_STEP_TRIP_INVERSE] = S1(trip_inverse), [VM_STEP_QUANTIZE] = S1(quantize),
              [VM_STEP_DEQUANTIZE] = S1(dequantize), [VM_STEP_DEQUANTIZE_EACH] = S1(dequantize_each),
              [VM_STEP_FLOAT_TO_BOOL] = S1(float_to_bool), [VM_STEP_INT_TO_FLOAT] = S1(int_to_float),
              [VM_STEP_FLOAT_TO_INT] = S1(float_to_int), [VM_STEP_ROUND_F16] = S1(round_f16),
              [VM_STEP_ROUND_BF16] = S1(round_bf16), [VM_STEP_WHERE] = S1(where), [VM_STEP_CALL] = S1(call) },
};
