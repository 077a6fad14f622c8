/* SPDX-License-Identifier: Apache-2.0 */
/* amx.c - see amx.h. */
#include "amx.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REGISTERS = 8, ROWS = 16, BYTES = 64 };

typedef struct shape {
    uint8_t palette, start, zero[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} shape;

static _Thread_local shape now;
static _Thread_local uint8_t reg[REGISTERS][ROWS][BYTES];

static void want(int is_right, const char *what)
{
    if (is_right) return;
    fprintf(stderr, "emulated matrix registers: %s\n", what);
    abort();
}

void emulated_config(const void *from)
{
    memcpy(&now, from, sizeof now);
    memset(reg, 0, sizeof reg);
    want(now.palette == 1, "palette");
    for (int i = 0; i < 14; i++) want(!now.zero[i], "reserved bytes");
    want(!now.start, "a start row");
    for (int i = 0; i < 16; i++) {
        want(now.rows[i] <= ROWS && now.bytes[i] <= BYTES, "too large a register");
        want(!now.rows[i] == !now.bytes[i], "a register of rows or columns alone");
        want(i < REGISTERS || !now.rows[i], "too many registers");
    }
}

void emulated_release(void)
{
    memset(&now, 0, sizeof now);
}

static void check(int r)
{
    want(now.palette == 1, "not set up");
    want(r >= 0 && r < REGISTERS && now.rows[r], "no such register");
}

void emulated_zero(int r)
{
    check(r);
    memset(reg[r], 0, sizeof reg[r]);
}

void emulated_load(int r, const void *from, int64_t stride)
{
    check(r);
    memset(reg[r], 0, sizeof reg[r]);
    for (int i = 0; i < now.rows[r]; i++) memcpy(reg[r][i], (const char *)from + i * stride, now.bytes[r]);
}

void emulated_store(int r, void *to, int64_t stride)
{
    check(r);
    for (int i = 0; i < now.rows[r]; i++) memcpy((char *)to + i * stride, reg[r][i], now.bytes[r]);
}

static void check_product(int s, int a, int b)
{
    check(s), check(a), check(b);
    want(s != a && s != b && a != b, "a product of a register with itself");
    want(now.bytes[a] % 4 == 0 && now.bytes[b] % 4 == 0, "a part of a word");
    want(now.rows[s] == now.rows[a] && now.bytes[s] == now.bytes[b] && now.rows[b] == now.bytes[a] / 4,
         "shapes that do not fit");
}

/* A subnormal number is 0 of its sign. */
static float flushed(float x)
{
    return fpclassify(x) == FP_SUBNORMAL ? copysignf(0.0f, x) : x;
}

static float widened(const uint8_t *p)
{
    uint16_t half;
    memcpy(&half, p, sizeof half);
    const uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return flushed(x);
}

/* The even and the odd terms are summed apart from each other, and then added to what was there. */
void emulated_dpbf16ps(int s, int a, int b)
{
    check_product(s, a, b);
    for (int m = 0; m < now.rows[s]; m++) {
        for (int n = 0; n < now.bytes[s] / 4; n++) {
            float part[2] = { 0, 0 }, sum;
            for (int k = 0; k < now.bytes[a] / 4; k++)
                for (int t = 0; t < 2; t++)
                    part[t] =
                        flushed(fmaf(widened(reg[a][m] + 4 * k + 2 * t), widened(reg[b][k] + 4 * n + 2 * t), part[t]));
            memcpy(&sum, reg[s][m] + 4 * n, sizeof sum);
            sum = flushed(flushed(sum) + flushed(part[0] + part[1]));
            memcpy(reg[s][m] + 4 * n, &sum, sizeof sum);
        }
    }
}

void emulated_dpbusd(int s, int a, int b)
{
    check_product(s, a, b);
    for (int m = 0; m < now.rows[s]; m++) {
        for (int n = 0; n < now.bytes[s] / 4; n++) {
            uint32_t sum;
            memcpy(&sum, reg[s][m] + 4 * n, sizeof sum);
            for (int k = 0; k < now.bytes[a]; k++)
                sum += (uint32_t)(reg[a][m][k] * (int8_t)reg[b][k / 4][4 * n + k % 4]);
            memcpy(reg[s][m] + 4 * n, &sum, sizeof sum);
        }
    }
}
