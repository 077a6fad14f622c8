/* SPDX-License-Identifier: Apache-2.0 */
/* vm_chains.c - what expression programs cost against a loop fused by hand, in the best that this machine has.
 *
 * vm_chains [filter]: for each program and size, nanoseconds an element of the fused loop, of the chain of steps
 * (vm_chain.h) and of the loops over slots, by processor time, best of many turns. The fused loop takes four vectors at
 * a time. */
#include <stdbool.h>

#if defined(__AVX512F__)
#include "cpu/simd_avx512.h"
#define LEVEL ISA_AVX512
#elif defined(__AVX2__)
#include "cpu/simd_avx2.h"
#define LEVEL ISA_AVX2
#else
#include "cpu/simd_plain.h"
#define LEVEL ISA_PLAIN
#endif
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "cpu/simd_math.inc.h"
#include "cpu/vm.h"

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef void fused_fn(void *out, const float *in, int64_t n);
#define FUSED(name, type, store, value)                                                                                \
    static void name(void *out, const float *in, int64_t n)                                                            \
    {                                                                                                                  \
        type *o = out;                                                                                                 \
        for (int64_t i = 0; i < n; i += 4 * VEC_LANES)                                                                 \
            for (int k = 0; k < 4; k++) {                                                                              \
                const vec x = v_load(in + i + k * VEC_LANES);                                                          \
                store(o + i + k * VEC_LANES, value);                                                                   \
            }                                                                                                          \
    }
#define CLIP(v, lo, hi) v_min(v_set(hi), v_max(v_set(lo), (v)))
static inline void store_u8(uint8_t *o, vec v)
{
    vi_store_8(o, v_to_int(v));
}
FUSED(f_cheap, float, v_store, v_sub(CLIP(v_add(v_mul(x, v_set(1.25f)), v_set(0.5f)), -1.5f, 2.0f), x))
FUSED(f_silu, float, v_store, v_silu(x))
FUSED(f_gelu, float, v_store, v_gelu(x))
FUSED(f_gelu_tanh, float, v_store, v_gelu_tanh(x))
FUSED(f_hardswish, float, v_store, v_hardswish(x))
FUSED(f_silu_chain, float, v_store, v_sub(CLIP(v_add(v_mul(v_silu(x), v_set(1.25f)), v_set(0.5f)), -1.5f, 2.0f), x))
FUSED(f_requantize, uint8_t, store_u8,
      CLIP(v_add(v_nearest(v_div(v_add(v_mul(x, v_set(1.25f)), v_set(0.5f)), v_set(0.05f))), v_set(7)), 0, 255))
FUSED(f_bf16, uint16_t, v_store_bf16, v_max(v_zero(), v_add(v_mul(x, v_set(1.25f)), v_set(0.5f))))

static const struct {
    const char *name, *program;
    sinter_dtype out;
    fused_fn *fused;
} chains[] = {
    { "cheap",
      "x=load 0 : f32; a=imm 1.25 : f32; b=imm 0.5 : f32; c=mul x a : f32; d=add c b : f32; l=imm -1.5 : f32; "
      "h=imm 2 : f32; e=clip d l h : f32; g=sub e x : f32; store 0 g",
      SINTER_DTYPE_F32, f_cheap },
    { "silu", "x=load 0 : f32; y=silu x : f32; store 0 y", SINTER_DTYPE_F32, f_silu },
    { "gelu", "x=load 0 : f32; y=gelu x : f32; store 0 y", SINTER_DTYPE_F32, f_gelu },
    { "gelu_tanh", "x=load 0 : f32; y=gelu_tanh x : f32; store 0 y", SINTER_DTYPE_F32, f_gelu_tanh },
    { "hardswish", "x=load 0 : f32; y=hardswish x : f32; store 0 y", SINTER_DTYPE_F32, f_hardswish },
    { "silu chain",
      "x=load 0 : f32; s=silu x : f32; a=imm 1.25 : f32; b=imm 0.5 : f32; c=mul s a : f32; d=add c b : f32; "
      "l=imm -1.5 : f32; h=imm 2 : f32; e=clip d l h : f32; g=sub e x : f32; store 0 g",
      SINTER_DTYPE_F32, f_silu_chain },
    { "requantize",
      "x=load 0 : f32; a=imm 1.25 : f32; b=imm 0.5 : f32; c=mul x a : f32; d=add c b : f32; s=imm 0.05 : f32; "
      "z=imm 7 : u8; q=quantize d s z : u8; store 0 q",
      SINTER_DTYPE_U8, f_requantize },
    { "to bf16",
      "x=load 0 : f32; a=imm 1.25 : f32; b=imm 0.5 : f32; c=mul x a : f32; d=add c b : f32; r=relu d : f32; "
      "q=cast r : bf16; store 0 q",
      SINTER_DTYPE_BF16, f_bf16 },
};

static void bench(env *e, arena *a, uint32_t which, int64_t n)
{
    const char *program = chains[which].program, *why;
    scan s = scan_of(program, strlen(program));
    expr *x = NULL;
    if (!expr_parse(a, &s, &x, &why)) exit(1);
    const view in = { .dtype = SINTER_DTYPE_F32, .rank = 1, .dim = { n }, .stride = { 1 } };
    view out = in;
    out.dtype = chains[which].out;
    vm_program *p = arena_alloc(a, sizeof *p + vm_room(x), 64);
    if (vm_bind(e, p, p + 1, LEVEL, x, 1, &n, NULL, false, &in, &out) != SINTER_OK) exit(1);
    float *from = arena_alloc(a, (size_t)n * 4, 64);
    void *to = arena_alloc(a, (size_t)n * 4, 64), *in_at = from;
    for (int64_t i = 0; i < n; i++) from[i] = (float)(rand() % 8000 - 4000) / 1000;
    memset(to, 0, (size_t)n * 4);
    const vm_io io = { &in_at, &to };
    const bool has_chain = p->has_chain;
    const int turns = (int)(60000000 / n / 3) < 40 ? 40 : (int)(60000000 / n / 3);
    double best[3] = { 1e9, 1e9, 1e9 };
    for (int t = 0; t < turns; t++)
        for (int kind = 0; kind < 3; kind++) {
            p->has_chain = has_chain && kind == 1;
            const int64_t repeats = 1 + 65536 / n;
            const double start = now();
            for (int64_t r = 0; r < repeats; r++) {
                if (kind == 0) chains[which].fused(to, from, n);
                else vm_run(p, &io, 0, vm_tile_count(p));
            }
            const double time = (now() - start) * 1e9 / (double)(n * repeats);
            if (time < best[kind]) best[kind] = time;
        }
    printf("%-12s %8lld  fused %.4f ns  chain %.4f (%.2f)  slots %.4f (%.2f)\n", chains[which].name, (long long)n,
           best[0], best[1], best[1] / best[0], best[2], best[2] / best[0]);
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    env e;
    env_init(&e, NULL, NULL);
    for (uint32_t i = 0; i < COUNT_OF(chains); i++) {
        if (argc > 1 && !strstr(chains[i].name, argv[1])) continue;
        static const int64_t size[] = { 4096, 65536, 1048576 };
        for (uint32_t k = 0; k < COUNT_OF(size); k++) {
            arena a;
            arena_init(&a, &e);
            bench(&e, &a, i, size[k]);
            arena_deinit(&a);
        }
    }
    return 0;
}
