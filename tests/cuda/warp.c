/* SPDX-License-Identifier: Apache-2.0 */
/* warp.c - shuffles, ldmatrix and mma over the registers of 32 lanes, laid out as the PTX manual draws the fragments.
 *
 * With g = lane / 4 and t = lane % 4: C has row g and g + 8, columns 2t and 2t + 1. A word of A holds neighbours in a
 * row, a word of B neighbours in a column: 2 of 16 bits, 4 of 8 bits, 1 of 32. Sums are made in double and rounded
 * once. */
#include "warp.h"

#include <stdbool.h>
#include <string.h>

static const char *const names[EMULATOR_COLLECTIVES] = {
    [EMULATOR_SYNC_WARP] = "sync_warp",
    [EMULATOR_SHUFFLE] = "shuffle",
    [EMULATOR_SHUFFLE_XOR] = "shuffle_xor",
    [EMULATOR_SHUFFLE_UP] = "shuffle_up",
    [EMULATOR_SHUFFLE_DOWN] = "shuffle_down",
    [EMULATOR_BALLOT] = "ballot",
    [EMULATOR_LOAD_MATRIX] = "load_matrix",
    [EMULATOR_LOAD_MATRIX_TRANSPOSED] = "load_matrix_transposed",
    [EMULATOR_STORE_MATRIX] = "store_matrix",
    [EMULATOR_STORE_MATRIX_TRANSPOSED] = "store_matrix_transposed",
    [EMULATOR_MMA_F16] = "mma_f16",
    [EMULATOR_MMA_BF16] = "mma_bf16",
    [EMULATOR_MMA_TF32] = "mma_tf32",
    [EMULATOR_MMA_S8] = "mma_s8",
    [EMULATOR_MMA_U8] = "mma_u8",
    [EMULATOR_MMA_S8_U8] = "mma_s8_u8",
    [EMULATOR_MMA_U8_S8] = "mma_u8_s8",
    [EMULATOR_MMA_F64] = "mma_f64",
    [EMULATOR_PRODUCT_WAIT] = "product_wait",
};

const char *warp_collective_name(enum emulator_collective kind)
{
    return names[kind];
}

int warp_collective_is_whole(enum emulator_collective kind)
{
    return kind >= EMULATOR_LOAD_MATRIX;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float of_f16(uint32_t h)
{
    const uint32_t sign = (h & 0x8000) << 16, rest = h & 0x7fff;
    if (rest >= 0x7c00) return float_of(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    if (rest >= 0x400) return float_of(sign | ((rest << 13) + ((127 - 15) << 23)));
    const float x = (float)rest * 5.9604644775390625e-8f;
    return sign ? -x : x;
}

/* Element `i` of a word as `kind` has it. first: of A. */
static double element(enum emulator_collective kind, uint32_t word, uint32_t i, int first)
{
    switch (kind) {
    case EMULATOR_MMA_F16: return (double)of_f16(word >> 16 * i & 0xffff);
    case EMULATOR_MMA_BF16: return (double)float_of((word >> 16 * i & 0xffff) << 16);
    case EMULATOR_MMA_TF32: return (double)float_of(word & ~0x1fffu);
    default: break;
    }
    const uint32_t byte = word >> 8 * i & 255;
    const int is_signed =
        kind == EMULATOR_MMA_S8 || (kind == EMULATOR_MMA_S8_U8 && first) || (kind == EMULATOR_MMA_U8_S8 && !first);
    return is_signed && byte > 127 ? (double)byte - 256 : (double)byte;
}

static void mma(enum emulator_collective kind, void *const *lane)
{
    const int is_integer = kind >= EMULATOR_MMA_S8 && kind <= EMULATOR_MMA_U8_S8;
    const uint32_t per = is_integer ? 4 : kind == EMULATOR_MMA_TF32 ? 1 : 2, depth = 8 * per;
    double a[16][32], b[32][8];
    for (uint32_t l = 0; l < 32; l++) {
        const struct emulator_lane_mma *x = lane[l];
        const uint32_t g = l / 4, t = l % 4;
        const uint32_t *words = x->a;
        for (uint32_t w = 0; w < 4; w++)
            for (uint32_t i = 0; i < per; i++)
                a[g + w % 2 * 8][w / 2 * 4 * per + t * per + i] = element(kind, words[w], i, 1);
        for (uint32_t i = 0; i < per; i++) {
            b[t * per + i][g] = element(kind, x->b0, i, 0);
            b[(4 + t) * per + i][g] = element(kind, x->b1, i, 0);
        }
    }
    for (uint32_t l = 0; l < 32; l++) {
        const struct emulator_lane_mma *x = lane[l];
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t row = l / 4 + i / 2 * 8, column = l % 4 * 2 + i % 2;
            double sum = 0;
            for (uint32_t k = 0; k < depth; k++) sum += a[row][k] * b[k][column];
            if (is_integer) ((uint32_t *)x->c)[i] += (uint32_t)(int32_t)sum;
            else ((float *)x->c)[i] = (float)((double)((float *)x->c)[i] + sum);
        }
    }
}

/* 8 x 8 x 4 of doubles: a word of A is row g, column t; of B row t, column g; C is row g, columns 2t and 2t + 1. */
static void mma_f64(void *const *lane)
{
    double a[8][4], b[4][8];
    for (uint32_t l = 0; l < 32; l++) {
        const struct emulator_lane_mma *x = lane[l];
        a[l / 4][l % 4] = *(const double *)x->a;
        b[l % 4][l / 4] = *(const double *)x->b;
    }
    for (uint32_t l = 0; l < 32; l++) {
        const struct emulator_lane_mma *x = lane[l];
        for (uint32_t i = 0; i < 2; i++)
            for (uint32_t k = 0; k < 4; k++) ((double *)x->c)[i] += a[l / 4][k] * b[k][l % 4 * 2 + i];
    }
}

/* Lane 8 m + i names row i of matrix m; lane l has of each matrix row l / 4, elements 2 (l % 4) and the next one, or
 * those of the transposed matrix. */
static void matrix(enum emulator_collective kind, void *const *lane,
                   unsigned char *(*shared)(unsigned, unsigned, unsigned))
{
    const int is_store = kind == EMULATOR_STORE_MATRIX || kind == EMULATOR_STORE_MATRIX_TRANSPOSED,
              is_turned = kind == EMULATOR_LOAD_MATRIX_TRANSPOSED || kind == EMULATOR_STORE_MATRIX_TRANSPOSED;
    for (uint32_t m = 0; m < ((const struct emulator_lane_matrix *)lane[0])->count; m++) {
        unsigned char *row[8];
        for (uint32_t i = 0; i < 8; i++)
            row[i] = shared(((const struct emulator_lane_matrix *)lane[8 * m + i])->at, 16, 16);
        for (uint32_t l = 0; l < 32; l++) {
            unsigned *r = &((const struct emulator_lane_matrix *)lane[l])->r[m];
            for (uint32_t i = 0; i < 2; i++) {
                unsigned char *at = is_turned ? row[l % 4 * 2 + i] + 2 * (l / 4) : row[l / 4] + 2 * (l % 4 * 2 + i);
                if (is_store) memcpy(at, (unsigned char *)r + 2 * i, 2);
                else memcpy((unsigned char *)r + 2 * i, at, 2);
            }
        }
    }
}

static void exchange(enum emulator_collective kind, void *const *lane)
{
    unsigned value[32], all = 0;
    for (uint32_t l = 0; l < 32; l++) {
        const struct emulator_lane_exchange *x = lane[l];
        value[l] = x ? x->value : 0xffffffffu; /* what an ended lane holds is nobody's business */
        if (x && x->value) all |= 1u << l;
    }
    for (uint32_t l = 0; l < 32; l++) {
        struct emulator_lane_exchange *x = lane[l];
        if (!x) continue;
        switch (kind) {
        case EMULATOR_SHUFFLE: x->value = value[x->by & 31]; break;
        case EMULATOR_SHUFFLE_XOR: x->value = value[(l ^ x->by) & 31]; break;
        case EMULATOR_SHUFFLE_UP: x->value = value[l >= x->by ? l - x->by : l]; break;
        case EMULATOR_SHUFFLE_DOWN: x->value = value[l + x->by < 32 ? l + x->by : l]; break;
        default: x->value = all; break;
        }
    }
}

void warp_collective_run(enum emulator_collective kind, void *const *lane,
                         unsigned char *(*shared)(unsigned, unsigned, unsigned))
{
    switch (kind) {
    case EMULATOR_PRODUCT_WAIT:
    case EMULATOR_SYNC_WARP: break;
    case EMULATOR_LOAD_MATRIX:
    case EMULATOR_LOAD_MATRIX_TRANSPOSED:
    case EMULATOR_STORE_MATRIX:
    case EMULATOR_STORE_MATRIX_TRANSPOSED: matrix(kind, lane, shared); break;
    case EMULATOR_MMA_F64: mma_f64(lane); break;
    default:
        if (kind >= EMULATOR_MMA_F16) mma(kind, lane);
        else exchange(kind, lane);
    }
}

/* Row `row`, 16-byte unit `unit` of an operand of wgmma that runs along k. Rows of 128, 64 or 32 bytes in groups of
 * eight, the units of a row exchanged by the address's own bits; or 8 x 16-byte pieces that the descriptor spaces. */
static const unsigned char *operand_unit(uint64_t descriptor, uint32_t row, uint32_t unit,
                                         unsigned char *(*shared)(unsigned, unsigned, unsigned))
{
    const uint32_t start = (uint32_t)(descriptor & 0x3fff) << 4, leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4,
                   group = (uint32_t)(descriptor >> 32 & 0x3fff) << 4, mode = (uint32_t)(descriptor >> 62);
    if (!mode) return shared(start + row / 8 * group + unit * leading + row % 8 * 16, 16, 16);
    const uint32_t pitch = 256u >> mode, mask = 8u >> (mode - 1);
    const uint32_t at = start + row / 8 * group + row % 8 * pitch + unit * 16;
    return shared(at ^ (at >> 7 & (mask - 1)) << 4, 16, 16);
}

static void load_row(enum emulator_collective kind, uint64_t descriptor, uint32_t row, float *to,
                     unsigned char *(*shared)(unsigned, unsigned, unsigned))
{
    for (uint32_t unit = 0; unit < 2; unit++) {
        uint16_t at[8];
        memcpy(at, operand_unit(descriptor, row, unit, shared), sizeof at);
        for (uint32_t i = 0; i < 8; i++)
            to[unit * 8 + i] = kind == EMULATOR_MMA_F16 ? of_f16(at[i]) : float_of((uint32_t)at[i] << 16);
    }
}

/* Rows lane / 4 and lane / 4 + 8 of the warp, as four lanes have them in registers. */
static void rows_of_registers(enum emulator_collective kind, const unsigned *const *registers, float (*rows)[16])
{
    for (uint32_t h = 0; h < 2; h++)
        for (uint32_t k = 0; k < 16; k++) {
            const uint16_t x = (uint16_t)(registers[k % 8 / 2][h + k / 8 * 2] >> (k % 2 * 16));
            rows[h][k] = kind == EMULATOR_MMA_F16 ? of_f16(x) : float_of((uint32_t)x << 16);
        }
}

/* Column `column` of a turned operand: blocks of columns as wide as a swizzled line, the leading offset apart; rows
 * along k in groups of eight, the other offset apart. */
static void load_column(enum emulator_collective kind, uint64_t descriptor, uint32_t column, float *to,
                        unsigned char *(*shared)(unsigned, unsigned, unsigned))
{
    const uint32_t start = (uint32_t)(descriptor & 0x3fff) << 4, leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4,
                   group = (uint32_t)(descriptor >> 32 & 0x3fff) << 4, mode = (uint32_t)(descriptor >> 62);
    const uint32_t pitch = 256u >> mode, mask = 8u >> (mode - 1), width = pitch / 2;
    for (uint32_t k = 0; k < 16; k++) {
        const uint32_t at = start + column / width * leading + column % width * 2 + k / 8 * group + k % 8 * pitch;
        uint16_t x;
        memcpy(&x, shared(at ^ (at >> 7 & (mask - 1)) << 4, 2, 2), sizeof x);
        to[k] = kind == EMULATOR_MMA_F16 ? of_f16(x) : float_of((uint32_t)x << 16);
    }
}

static void load_bytes(enum emulator_collective kind, uint64_t descriptor, uint32_t row, int first, int32_t *to,
                       unsigned char *(*shared)(unsigned, unsigned, unsigned))
{
    for (uint32_t unit = 0; unit < 2; unit++) {
        uint32_t at[4];
        memcpy(at, operand_unit(descriptor, row, unit, shared), sizeof at);
        for (uint32_t i = 0; i < 16; i++) to[unit * 16 + i] = (int32_t)element(kind, at[i / 4], i % 4, first);
    }
}

static void product_integers(enum emulator_collective kind, uint32_t *c, uint32_t n, const warp_factors *f, int adds,
                             uint32_t first_row, uint32_t lane, unsigned char *(*shared)(unsigned, unsigned, unsigned))
{
    int32_t rows[2][32], column[32];
    for (uint32_t h = 0; h < 2; h++) load_bytes(kind, f->a, first_row + 8 * h, 1, rows[h], shared);
    for (uint32_t j = 0; j < n / 8; j++)
        for (uint32_t i = 0; i < 2; i++) {
            load_bytes(kind, f->b, 8 * j + lane % 4 * 2 + i, 0, column, shared);
            for (uint32_t h = 0; h < 2; h++) {
                int32_t sum = 0;
                for (uint32_t k = 0; k < 32; k++) sum += rows[h][k] * column[k];
                uint32_t *to = &c[4 * j + 2 * h + i];
                *to = (adds ? *to : 0) + (uint32_t)sum;
            }
        }
}

void warp_product(enum emulator_collective kind, void *c, uint32_t n, const warp_factors *f, int adds, uint32_t warp,
                  uint32_t lane, unsigned char *(*shared)(unsigned, unsigned, unsigned))
{
    if (kind >= EMULATOR_MMA_S8 && kind <= EMULATOR_MMA_U8_S8) {
        product_integers(kind, c, n, f, adds, warp % 4 * 16 + lane / 4, lane, shared);
        return;
    }
    float *const sums = c;
    const bool is_turned = f->registers[0];
    float rows[2][16], column[16];
    if (is_turned) rows_of_registers(kind, f->registers, rows);
    else
        for (uint32_t h = 0; h < 2; h++) load_row(kind, f->a, warp % 4 * 16 + lane / 4 + 8 * h, rows[h], shared);
    for (uint32_t j = 0; j < n / 8; j++)
        for (uint32_t i = 0; i < 2; i++) {
            if (is_turned) load_column(kind, f->b, 8 * j + lane % 4 * 2 + i, column, shared);
            else load_row(kind, f->b, 8 * j + lane % 4 * 2 + i, column, shared);
            for (uint32_t h = 0; h < 2; h++) {
                double sum = 0;
                for (uint32_t k = 0; k < 16; k++) sum += (double)rows[h][k] * (double)column[k];
                float *to = &sums[4 * j + 2 * h + i];
                *to = adds ? (float)((double)*to + sum) : (float)sum;
            }
        }
}
