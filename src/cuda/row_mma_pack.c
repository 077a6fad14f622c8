/* SPDX-License-Identifier: Apache-2.0 */
/* row_mma_pack.c - weights in the order in which mma.cu reads them.
 *
 * Tiles of BN columns, each as steps of 128 bytes of k: BN rows of 8 chunks of 16 bytes, chunk c of row n at place
 * c ^ (n & 7), so that what ldmatrix reads at once falls on all banks. What is beyond n or k is zero. */
#include "core/dim_range.h"
#include "cuda/device/mma_args.h"
#include "cuda/row_mma.h"

#include <string.h>

size_t mma_packed_tiles(const mma_shape *s, const mma_tile *tile)
{
    const size_t tiles = ((size_t)s->cols + tile->bn - 1) / tile->bn;
    const size_t step = MMA_STEP_BYTES / s->element, steps = ((size_t)s->k + step - 1) / step;
    return size_mul(size_mul(tiles, steps), (size_t)tile->bn * MMA_STEP_BYTES);
}

size_t mma_packed_matrix(const mma_shape *s, const mma_tile *tile)
{
    const size_t columns = ((size_t)s->cols + tile->bn - 1) / tile->bn * tile->bn;
    return size_add(mma_packed_tiles(s, tile), s->type >= MMA_S8 ? size_mul(columns, 4) : 0);
}

static int64_t matrices(const problem *p, const mma_shape *s)
{
    if (s->is_transposed) return s->batch;
    int64_t n = s->groups;
    for (uint32_t i = 0; i + 2 < p->in[1].rank && !s->is_conv; i++)
        if (!i64_mul(n, p->in[1].dim[i].max, &n)) return INT64_MAX;
    return n;
}

size_t mma_pack_size(const problem *p, const tactic *t, uint32_t input)
{
    mma_shape s;
    if (mma_shape_of(p, &s)) return 0;
    /* A zero point that pads is read 16 bytes at once. */
    if (input == 2 && s.has_zero_x && p->in[2].is_const) return 16;
    if (input != 1 || s.b_kind != MMA_B_PACKED) return 0;
    const mma_tactic tt = TACTIC_AS(mma_tactic, t);
    return size_mul(mma_packed_matrix(&s, mma_tile_at(tt.tile)), (size_t)matrices(p, &s));
}

mma_tap_phase mma_phase_at(const attrs_conv_transpose *a, uint32_t axis, int64_t taps, int64_t q)
{
    const int64_t stride = a->stride.at[axis], dilation = a->dilation.at[axis], common = i64_gcd(stride, dilation);
    mma_tap_phase f = { .by = stride / common, .back = dilation / common };
    for (int64_t k = 0; k < taps && k < f.by; k++) {
        const int64_t moved = q + a->pad.at[axis] - k * dilation;
        if (moved % stride) continue;
        f.first = k;
        f.count = (taps - k + f.by - 1) / f.by;
        f.start = moved / stride;
        break;
    }
    return f;
}

mma_shape mma_phase_shape(const problem *p, const mma_shape *s, int64_t z, mma_tap_phase at[3])
{
    const attrs_conv_transpose *a = p->attrs;
    mma_shape phase = *s;
    phase.outer = 1;
    for (uint32_t i = p->in[0].rank - 2u, last = i; i-- > 0; z /= a->stride.at[i]) {
        at[i] = mma_phase_at(a, i, p->in[1].dim[2 + i].max, z % a->stride.at[i]);
        if (i + 1 == last) phase.inner = at[i].count;
        else phase.outer *= at[i].count;
    }
    phase.run = (phase.inner * s->channels + s->chunk - 1) / s->chunk * s->chunk;
    phase.k = phase.outer * phase.run;
    return phase;
}

/* To nearest, ties away: as the device rounds. */
static uint32_t tf32_of(uint32_t bits)
{
    return (bits & 0x7f800000) == 0x7f800000 ? bits : (bits + 0x1000) & ~0x1fffu;
}

/* One matrix: elements at n * stride_n + the offset of its (row of taps, tap, channel). */
static void pack_matrix(const mma_shape *s, uint32_t bn, const uint8_t *src, int64_t stride_n, int64_t stride_c,
                        const int64_t *taps, const int64_t *stride_k, uint8_t *dst, int32_t *sums)
{
    const bool is_unsigned = s->type == MMA_U8 || s->type == MMA_S8_U8;
    const int64_t step = MMA_STEP_BYTES / s->element, steps = (s->k + step - 1) / step;
    for (int64_t n = 0; n < s->cols; n++) {
        uint8_t *row = dst + (n / bn * steps * bn + n % bn) * MMA_STEP_BYTES;
        for (int64_t o = 0; o < s->outer; o++) {
            const int64_t d = o / taps[1], r = o % taps[1];
            int64_t k = o * s->run;
            for (int64_t i = 0; i < s->inner; i++) {
                const uint8_t *from =
                    src + (n * stride_n + d * stride_k[0] + r * stride_k[1] + i * stride_k[2]) * s->element;
                for (int64_t c = 0; c < s->channels; c++, k++) {
                    uint8_t *to = row + k / step * bn * MMA_STEP_BYTES + ((k % step / s->chunk) ^ (n & 7)) * 16 +
                                  k % s->chunk * s->element;
                    memcpy(to, from + c * stride_c * s->element, s->element);
                    if (s->type >= MMA_S8) sums[n] += is_unsigned ? *to : (int8_t)*to;
                    if (s->type != MMA_TF32) continue;
                    uint32_t bits;
                    memcpy(&bits, to, sizeof bits);
                    bits = tf32_of(bits);
                    memcpy(to, &bits, sizeof bits);
                }
            }
        }
    }
}

void mma_pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    mma_shape s;
    if (mma_shape_of(p, &s)) return;
    if (input == 2) {
        memset(dst, *(const uint8_t *)src->data, 16);
        return;
    }
    const mma_tile *tile = mma_tile_at(TACTIC_AS(mma_tactic, t).tile);
    const size_t size = mma_packed_matrix(&s, tile), sums_at = mma_packed_tiles(&s, tile);
    memset(dst, 0, mma_pack_size(p, t, input));
    const int64_t one[3] = { 1, 1, 1 }, none[3] = { 0, 0, 0 };
    if (s.is_transposed) {
        for (int64_t z = 0; z < s.batch; z++) {
            mma_tap_phase at[3];
            const mma_shape phase = mma_phase_shape(p, &s, z, at);
            int64_t taps[3] = { 1, 1, 1 }, stride[3] = { 0, 0, 0 }, first = 0;
            for (uint32_t i = 2; i < src->rank; i++) {
                taps[3 - src->rank + i] = at[i - 2].count;
                stride[3 - src->rank + i] = at[i - 2].by * src->stride[i];
                first += at[i - 2].first * src->stride[i];
            }
            if (!phase.k) continue;
            pack_matrix(&phase, tile->bn, (const uint8_t *)src->data + first * s.element, src->stride[1],
                        src->stride[0], taps, stride, (uint8_t *)dst + (size_t)z * size, NULL);
        }
        return;
    }
    if (s.is_conv) {
        int64_t taps[3] = { 1, 1, 1 }, stride[3] = { 0, 0, 0 };
        for (uint32_t i = 2; i < src->rank; i++) {
            taps[3 - src->rank + i] = src->dim[i];
            stride[3 - src->rank + i] = src->stride[i];
        }
        for (int64_t g = 0; g < s.groups; g++)
            pack_matrix(&s, tile->bn, (const uint8_t *)src->data + g * s.cols * src->stride[0] * s.element,
                        src->stride[0], src->stride[1], taps, stride, (uint8_t *)dst + (size_t)g * size,
                        (int32_t *)(void *)((uint8_t *)dst + (size_t)g * size + sums_at));
        return;
    }
    int64_t at[SINTER_RANK_MAX] = { 0 };
    const uint32_t rank = src->rank - 2;
    uint8_t *to = dst;
    for (bool more = view_first(src->dim, rank, at); more; more = view_next(src->dim, rank, at), to += size) {
        int64_t offset = 0;
        for (uint32_t i = 0; i < rank; i++) offset += at[i] * src->stride[i];
        pack_matrix(&s, tile->bn, (const uint8_t *)src->data + offset * s.element, src->stride[s.w_n],
                    src->stride[s.w_k], one, none, to, (int32_t *)(void *)(to + sums_at));
    }
}
