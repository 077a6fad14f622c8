/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_wide.inc.h - how the units that widen terms in registers do so, in the vocabulary that all levels have.
 *
 * A *_word is a word of A, broadcast; *_words are a vector of words of B. Included by gemm_tile.inc.h where a level has
 * no instructions of its own for this. */
#if VEC_REGISTERS == 32
#define WIDE_BF16_ROWS_1 14
#define WIDE_BF16_ROWS_2 12
#define WIDE_U8_ROWS_1 14
#define WIDE_U8_ROWS_2 12
#else
#define WIDE_BF16_ROWS_1 9
#define WIDE_BF16_ROWS_2 4
#define WIDE_U8_ROWS_1 9
#define WIDE_U8_ROWS_2 4
#endif

/* The two numbers of a word as f32. */
typedef struct bf16_words {
    vec low, high;
} bf16_words;
typedef bf16_words bf16_word;

static inline bf16_words bf16_widen(veci words)
{
    return (bf16_words){ v_of_bits(vi_sll(words, 16)), v_of_bits(vi_and(words, vi_set((int32_t)0xFFFF0000u))) };
}
static inline bf16_word bf16_word_load(const char *p)
{
    return bf16_widen(vi_set(word_of(p)));
}
static inline bf16_words bf16_words_load(const float *p)
{
    return bf16_widen(v_bits(v_load(p)));
}
static inline vec bf16_mul(vec s, bf16_word a, bf16_words b)
{
    return v_fma(a.high, b.high, v_fma(a.low, b.low, s));
}

/* The four integers of a word as pairs of 16 bits: the first and third, the second and fourth. */
typedef struct u8_words {
    veci low, high;
} u8_words;
typedef u8_words u8_word;

static inline u8_word u8_word_load(const char *p)
{
    const veci word = vi_set(word_of(p)), mask = vi_set(0x00FF00FF);
    return (u8_word){ vi_and(word, mask), vi_and(vi_sra(word, 8), mask) };
}
static inline u8_words u8_words_load(const float *p)
{
    const veci words = v_bits(v_load(p));
    return (u8_words){ vi_sra16(vi_sll16(words, 8), 8), vi_sra16(words, 8) };
}
static inline veci u8_mul(veci s, u8_word a, u8_words b)
{
    return vi_add(s, vi_add(vi_madd16(a.low, b.low), vi_madd16(a.high, b.high)));
}
