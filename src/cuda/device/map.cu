/* SPDX-License-Identifier: Apache-2.0 */
/* map.cu - results whose elements are computed one by one, or WIDTH at once along the innermost axis of the result.
 *
 * EVEN: rows are whole vectors. STRAIGHT: a vector of the result is one of operand 0; else its elements are computed one
 * by one, and only what they share once. MAP names the loader, which says what the anchor's value is at coordinates c (by
 * axes of the result); the epilogue and the store follow. The generated text has, beside the epilogue, MAP_ORDER (the
 * axes of the result from outermost to innermost) and for each operand k of the anchor INk_SIZE, INk_GET, INk_VECTOR and
 * its carrier ink_t. */
#include "prelude.cuh"
#include "generated.cuh"
#include "emit.cuh"
#include "map_args.h"

#define RANK EPI_RANK
#define MAP_PAD 1
#define MAP_GATHER 2
#define MAP_GATHER_ELEMENTS 3
#define MAP_GATHER_ND 4
#define MAP_REVERSE 5
#define MAP_MAKE 6
#define MAP_POOL 7
#define MAP_RESIZE 8
#define MAP_GRID 9
#define MAP_ROI 10
#define MAP_MISC 11
#define MAP_DEFORM 12

struct map_order { i32 at[RANK]; };
#define INNER (map_order MAP_ORDER.at[RANK - 1])

#define MAP_INPUT(k)                                                                                        \
    /* n of V adjacent elements from element `from` on */                                                   \
    template <int V> DEVICE void in##k##_vector(const map_args &p, i64 from, i32 n, in##k##_t (&v)[V])      \
    {                                                                                                       \
        u32 w[EMIT_WORDS(IN##k##_SIZE, V)];                                                                 \
        emit_load<IN##k##_SIZE, V, IN##k##_VECTOR>(w, (const u8 *)p.in[k] + from * IN##k##_SIZE, IN##k##_SIZE, n); \
        _Pragma("unroll") for (int i = 0; i < V; i++) v[i] = IN##k##_GET(w, i);                             \
    }                                                                                                       \
    DEVICE in##k##_t in##k##_at(const map_args &p, i64 from)                                                \
    {                                                                                                       \
        in##k##_t v[1];                                                                                     \
        in##k##_vector<1>(p, from, 1, v);                                                                   \
        return v[0];                                                                                        \
    }
#ifdef IN0_SIZE
MAP_INPUT(0)
#endif
#ifdef IN1_SIZE
MAP_INPUT(1)
#endif
#ifdef IN2_SIZE
MAP_INPUT(2)
#endif
#ifdef IN3_SIZE
MAP_INPUT(3)
#endif
#ifdef IN4_SIZE
MAP_INPUT(4)
#endif

/* An index as ONNX has it; what is outside is told, and false. */
DEVICE bool map_index(const map_args &p, i64 value, i64 position, i64 limit, i64 &index)
{
    index = value < 0 ? value + limit : value;
    if (index >= 0 && index < limit) return true;
    report_fault(p.fault, p.step, position, value, limit);
    return false;
}

#if MAP == MAP_PAD
#include "map_pad.cuh"
#elif MAP == MAP_GATHER || MAP == MAP_GATHER_ELEMENTS || MAP == MAP_GATHER_ND || MAP == MAP_REVERSE
#include "map_gather.cuh"
#elif MAP == MAP_MAKE
#include "map_make.cuh"
#elif MAP == MAP_POOL
#include "map_pool.cuh"
#elif MAP == MAP_RESIZE
#include "map_resize.cuh"
#elif MAP == MAP_GRID || MAP == MAP_ROI
#include "map_sample.cuh"
#elif MAP == MAP_DEFORM
#include "map_deform.cuh"
#else
#include "map_misc.cuh"
#endif

KERNEL void map(const __grid_constant__ map_args p, const __grid_constant__ epi_args a)
{
    const vector_id t = (vector_id)blockIdx.x * blockDim.x + threadIdx.x;
    constexpr map_order order = MAP_ORDER;
    i32 at[RANK], c[RANK];
    vector_at rest = (vector_at)t, line;
    i32 i = (i32)rest;
    if (RANK > 1) vector_divmod(rest, p.row, line, i), rest = line;
#pragma unroll
    for (int k = RANK - 2; k > 0; k--) {
        vector_divmod(rest, p.dim[k], line, at[k]);
        rest = line;
    }
    if (RANK > 1) at[0] = (i32)rest;
    i *= WIDTH;
    at[RANK - 1] = i;
#pragma unroll
    for (int k = 0; k < RANK; k++) c[order.at[k]] = at[k];
    at[RANK - 1] = 0;
    const i32 n = EVEN ? WIDTH : p.inner - i;
    epi_row row;
    epi_begin(a, row, at);
    if (TRIGGER == 1) grid_trigger();
    grid_wait();
    if (t >= (vector_id)p.total) return;
    epi_acc v[WIDTH];
#if STRAIGHT || WIDTH == 1
    map_value<WIDTH>(p, c, n, v);
#else
#pragma unroll
    for (int k = 0; k < WIDTH; k++) {
        epi_acc own[1] = {};
        c[INNER] = i + k;
        if (k < n) map_value<1>(p, c, 1, own);
        v[k] = own[0];
    }
#endif
    if (TRIGGER == 2) grid_trigger();
    epi_run(a, row, i, n, v);
}
