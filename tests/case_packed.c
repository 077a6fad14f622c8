/* SPDX-License-Identifier: Apache-2.0 */
/* case_packed.c - random problems of products with packed weights: every type of codes and of activations, scales and
 * zero points for all, for columns and for blocks, either order of the weight, rows that vary, epilogues. */
#include "case_lines.h"

#include <stdio.h>

typedef struct dice {
    uint64_t state;
} dice;

static uint32_t below(dice *d, uint32_t n)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((d->state >> 33) % n);
}

static bool one_in(dice *d, uint32_t n)
{
    return below(d, n) == 0;
}

static const char *const code_types[] = { "u4", "i4",     "u8",       "i8",     "u4",         "i4",        "u8",
                                          "i8", "f4e2m1", "f8e4m3fn", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz" };
static const char *const float_types[] = { "f32", "f16", "bf16" };

/* "[k,n]", or "[n,k]" of a transposed weight. */
static void put_shape(text *to, bool is_turned, uint32_t k, uint32_t n)
{
    if (is_turned) text_printf(to, "[%u,%u]", n, k);
    else text_printf(to, "[%u,%u]", k, n);
}

/* How a scale or zero point varies: 0 one for all, 1 one a column, 2 one a block. One scale for all could be 0. */
static void put_operand(text *to, const char *type, uint32_t way, bool is_turned, uint32_t blocks, uint32_t n)
{
    text_printf(to, " w:%s", type);
    if (way == 2) put_shape(to, is_turned, blocks, n);
    else if (way == 0) text_printf(to, "[]");
    else if (is_turned) text_printf(to, "[%u,1]", n);
    else text_printf(to, "[%u]", n);
}

static void put_line(dice *d, text *to)
{
    static const uint32_t blocks_of[] = { 16, 32, 32, 48, 64, 96, 128, 256 };
    const char *code = code_types[below(d, COUNT_OF(code_types))], *x = float_types[below(d, 3)];
    const char *scale = one_in(d, 2) ? x : float_types[below(d, 3)];
    const bool is_float = code[0] == 'f', is_turned = one_in(d, 2), has_epilogue = one_in(d, 3);
    const uint32_t block = blocks_of[below(d, COUNT_OF(blocks_of))];
    const uint32_t k = one_in(d, 2) ? 1 + below(d, 400) : block * (1 + below(d, 4)), n = 1 + below(d, 70),
                   m = one_in(d, 3) ? 1 : 1 + below(d, 40), blocks = (k + block - 1) / block;
    const bool is_ranged = m > 1 && one_in(d, 3);
    const uint32_t usual = 1 + below(d, m);
    const uint32_t scale_way = blocks > 1 ? 1 + below(d, 2) : 1, zero_way = is_float || one_in(d, 2) ? 3
                                                                            : blocks > 1             ? below(d, 3)
                                                                                                     : below(d, 2);
    text_printf(to, "matmul:%s[", x);
    if (is_ranged) text_printf(to, "1..%u/1@%u", m, usual);
    else text_printf(to, "%u", m);
    text_printf(to, ",%u] w:%s", k, code);
    put_shape(to, is_turned, k, n);
    text_printf(to, " +");
    if (has_epilogue) text_printf(to, " w:%s[%u]", x, n);
    put_operand(to, scale, scale_way, is_turned, blocks, n);
    if (zero_way < 3) put_operand(to, code, zero_way, is_turned, blocks, n);
    text_printf(to, " -> %s[", x);
    if (is_ranged) text_printf(to, "1..%u/1@%u", m, usual);
    else text_printf(to, "%u", m);
    text_printf(to, ",%u] trans_b=%d weight=\"a=load 1 : %s; b=load %u", n, is_turned, code, 2u + has_epilogue);
    if (scale_way == 2) text_printf(to, " / %d:%u", is_turned, block);
    text_printf(to, " : %s; ", scale);
    if (zero_way == 3) {
        const uint32_t zero = is_float ? 0 : code[0] == 'u' ? below(d, 16) : below(d, 8);
        text_printf(to, "c=imm %u : %s", zero, code);
    } else {
        text_printf(to, "c=load %u", 3u + has_epilogue);
        if (zero_way == 2) text_printf(to, " / %d:%u", is_turned, block);
        text_printf(to, " : %s", code);
    }
    text_printf(to, "; d=dequantize a b c : %s; store 0 d\"", x);
    if (has_epilogue)
        text_printf(to, " epi=\"a=acc : %s; b=load 2 : %s; c=add a b : %s; d=tanh c : %s; store 0 d\"", x, x, x, x);
}

void case_lines_packed(case_rig *r, case_lines *l, uint32_t count, uint64_t seed)
{
    dice d = { seed * 2 + 1 };
    for (uint32_t i = 0; i < count; i++) {
        text t;
        text_init(&t, &r->e);
        put_line(&d, &t);
        case_lines_add(l, arena_printf(&r->a, "%s", t.at));
        text_deinit(&t);
    }
}

const char *case_lines_ask_packed(case_rig *r, const char *asked, case_lines *l)
{
    unsigned long long seed;
    unsigned count;
    if (sscanf(asked, "%llu,%u", &seed, &count) != 2 || !count || count > 1000000) return "expected SEED,COUNT";
    case_lines_packed(r, l, count, seed);
    return NULL;
}
