/* SPDX-License-Identifier: Apache-2.0 */
/* row_mma_pack.c - weights in the order in which mma.cu reads them. */
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
    if (input == 2 && s.d.zero_x && p->in[2].is_const) return 16;
    if (input != 1 || s.b_kind != MMA_B_PACKED) return 0;
    const mma_tactic tt = TACTIC_AS(mma_tactic, t);
    return size_mul(mma_packed_matrix(&s, mma_tile_at(tt.tile)), (size_t)matrices(p, &s));
}

mma_shape mma_phase_shape(const problem *p, const mma_shape *s, int64_t z, product_phase at[3])
{
    const attrs_conv_transpose *a = p->attrs;
    mma_shape phase = *s;
    phase.outer = 1;
    for (uint32_t i = p->in[0].rank - 2u, last = i; i-- > 0; z /= a->stride.at[i]) {
        at[i] = product_phase_at(&s->d.slide, i, p->in[1].dim[2 + i].max, z % a->stride.at[i]);
        if (i + 1 == last) phase.inner = at[i].count;
        else phase.outer *= at[i].count;
    }
    phase.run = (phase.inner * s->channels + s->chunk - 1) / s->chunk * s->chunk;
    phase.k = phase.outer * phase.run;
    return phase;
}

static void pack_matrix(const mma_shape *s, uint32_t bn, const uint8_t *src, int64_t stride_n, int64_t stride_c,
                        const int64_t *taps, const int64_t *stride_k, uint8_t *dst, int32_t *sums)
{
    const product_columns x = { .element = s->element,
                                .is_unsigned = s->type == MMA_U8 || s->type == MMA_S8_U8,
                                .is_tf32 = s->type == MMA_TF32,
                                .bn = bn,
                                .cols = s->cols,
                                .taps = { taps[0], taps[1], taps[2] },
                                .inner = s->inner,
                                .channels = s->channels,
                                .run = s->run,
                                .stride_n = stride_n,
                                .stride_c = stride_c,
                                .stride_tap = { stride_k[0], stride_k[1], stride_k[2] } };
    product_pack(&x, src, dst, s->type >= MMA_S8 ? sums : NULL);
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
            product_phase at[3];
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
        pack_matrix(&s, tile->bn, (const uint8_t *)src->data + offset * s.element, src->stride[s.d.w_n],
                    src->stride[s.d.w_k], one, none, to, (int32_t *)(void *)(to + sums_at));
    }
}
