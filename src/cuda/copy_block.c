/* SPDX-License-Identifier: Apache-2.0 */
/* copy_block.c - how a copy whose sides run along different axes is cut into blocks: the launch of device/transpose.cu.
 *
 * A block grows along the innermost axes of the source and of the result in turn, until it is as large as shared memory
 * is wanted for it: so both sides are read and written in runs as long as can be. */
#include "cuda/copy_move.h"
#include "cuda/device/copy_args.h"

#include <stdlib.h>

enum {
    BLOCK_PLACES = 512, /* of x or of y, at most */
    BLOCK_THREADS = 256
};

typedef struct block_plan {
    int64_t size[MOVE_AXES];      /* of a block along each axis */
    uint8_t kind[MOVE_AXES];      /* of the axis: OUTSIDE until the block reaches beyond one element of it */
    uint8_t by_source[MOVE_AXES]; /* axes, innermost in the source first */
    int64_t places[4], volume;    /* of each kind; of the block */
} block_plan;
enum { OUTSIDE, ALONG_X, ALONG_Y, ALONG_Z };

/* The axis on which a block has to grow for longer runs, or UINT32_MAX; *run: elements that run on so far. */
static uint32_t block_edge(const move *m, const block_plan *b, bool is_source, int64_t *run)
{
    *run = 1;
    for (uint32_t i = 0; i < m->count; i++) {
        const uint32_t axis = is_source ? b->by_source[i] : m->count - 1 - i;
        if (is_source && m->from[axis] == 0) return UINT32_MAX; /* nothing runs on along what is repeated */
        *run *= b->size[axis];
        if (b->size[axis] < m->size[axis]) return axis;
    }
    return UINT32_MAX;
}

/* Twice as many elements along the axis, or all where few would be left. */
static bool block_grow(const move *m, block_plan *b, uint32_t axis, uint8_t kind, int64_t most)
{
    const int64_t old = b->size[axis], all = m->size[axis];
    if (b->kind[axis] != OUTSIDE) kind = b->kind[axis];
    uint32_t axes = 0;
    for (uint32_t i = 0; i < m->count; i++) axes += b->kind[i] == kind;
    if (b->kind[axis] == OUTSIDE && axes == BLOCK_AXES) return false;
    int64_t size = all <= 3 * old ? all : 2 * old;
    if (size == all && b->volume / old * size <= most + most / 4) most += most / 4; /* rather than leave a few over */
    else if (b->volume / old * size > most) size = 2 * old < all ? 2 * old : all;
    if (b->volume / old * size > most || b->places[kind] / old * size > BLOCK_PLACES) return false;
    b->kind[axis] = kind;
    b->size[axis] = size;
    b->volume = b->volume / old * size;
    b->places[kind] = b->places[kind] / old * size;
    return true;
}

/* Grows the block to `most` elements, always on the side whose runs are shorter. */
static void block_choose(const move *m, block_plan *b, int64_t most)
{
    *b = (block_plan){ .volume = 1, .places = { 1, 1, 1, 1 } };
    for (uint32_t i = 0; i < m->count; i++) {
        uint32_t k = i;
        const int64_t own = m->from[i] == 0 ? INT64_MAX : llabs(m->from[i]);
        for (; k > 0; k--) {
            const int64_t last = m->from[b->by_source[k - 1]];
            if ((last == 0 ? INT64_MAX : llabs(last)) <= own) break;
            b->by_source[k] = b->by_source[k - 1];
        }
        b->by_source[k] = (uint8_t)i;
        b->size[i] = 1;
    }
    const uint32_t last = m->count - 1;
    if (m->count > 1 && m->from[last] == m->bytes && m->to[last] == m->bytes && m->size[last] <= BLOCK_SIDE / 2) {
        b->kind[last] = ALONG_Z;
        b->size[last] = b->places[ALONG_Z] = b->volume = m->size[last];
    }
    for (;;) {
        int64_t in, out;
        const uint32_t source = block_edge(m, b, true, &in), result = block_edge(m, b, false, &out);
        const bool by_source = source != UINT32_MAX && (in <= out || result == UINT32_MAX);
        if (by_source && block_grow(m, b, source, ALONG_X, most)) continue;
        if (result != UINT32_MAX && block_grow(m, b, result, ALONG_Y, most)) continue;
        if (by_source || source == UINT32_MAX || !block_grow(m, b, source, ALONG_X, most)) return;
    }
}

/* Axes of one kind from the innermost on, as `is_source` counts. */
static void fill_side(const move *m, const block_plan *b, uint8_t kind, bool is_source, struct block_side *s)
{
    s->count = 1;
    s->inner = 1;
    s->cut_axis = -1;
    for (uint32_t i = 0; i < m->count; i++) {
        const uint32_t axis = is_source ? b->by_source[i] : m->count - 1 - i;
        if (b->kind[axis] != kind) continue;
        s->dim[s->axes] = cuda_fast_div(b->size[axis]);
        s->src_step[s->axes] = m->from[axis];
        s->dst_step[s->axes++] = m->to[axis];
        if (b->size[axis] < m->size[axis])
            s->inner = s->count, s->cut = (small)b->size[axis], s->size = (small)m->size[axis];
        s->count *= (small)b->size[axis];
    }
}

/* Whole vectors along the innermost axis of x or y, and every other step a multiple of them. */
static bool is_wide(const move *m, const block_plan *b, const struct block_side *s, uint8_t kind, const int64_t *step,
                    int64_t first)
{
    const int64_t lanes = 16 / m->bytes;
    if (!s->axes || first != m->bytes || s->dim[0].d % lanes) return false;
    for (uint32_t i = 0, seen = 0; i < m->count; i++) {
        if (b->kind[i] == ALONG_Z) return false;
        if (b->kind[i] == kind && step[i] == first && !seen) {
            if (m->size[i] % lanes) return false;
            seen = 1;
        } else if (step[i] % 16) {
            return false;
        }
    }
    return true;
}

/* Threads that stand along a row of so many: a power of two that wastes less than half of them, 32 at most. */
static small threads_log(int64_t row)
{
    small log = 0;
    while (log < 5 && 1 << log < row) log++;
    return log;
}

bool move_runs_together(const move *m)
{
    const uint32_t last = m->count - 1;
    return m->count == 0 || m->from[last] == 0 ||
           (m->from[last] == m->bytes && m->to[last] == m->bytes && m->size[last] * m->bytes >= RUN_BYTES);
}

sinter_status move_bind_block(env *e, const move *m, uint32_t side, cuda_record *r)
{
    block_plan b;
    int64_t blocks = 1;
    block_choose(m, &b, (int64_t)side * side);
    const int64_t nx = b.places[ALONG_X], ny = b.places[ALONG_Y], nz = b.places[ALONG_Z];
    /* An odd number of words: neighbours lie in other banks. */
    const int64_t pitch = (((nx * nz * m->bytes + 3) / 4) | 1) * 4;
    struct block_args *a;
    TRY(cuda_launch_begin(e, r, 0, 1, 1, 1, BLOCK_THREADS, (uint32_t)(16 * (nx + ny) + ny * pitch), sizeof *a, &a));
    fill_side(m, &b, ALONG_X, true, &a->x);
    fill_side(m, &b, ALONG_Y, false, &a->y);
    for (uint32_t i = 0; i < m->count; i++) {
        if (m->size[i] > INT32_MAX) return move_too_large(e);
        const int64_t count = cuda_ceil_div(m->size[i], b.size[i]);
        if (count == 1) continue;
        if (a->axes == COPY_AXES || !i64_mul(blocks, count, &blocks)) return move_too_large(e);
        if (b.kind[i] == ALONG_X) a->x.cut_axis = a->axes;
        if (b.kind[i] == ALONG_Y) a->y.cut_axis = a->axes;
        a->dim[a->axes] = cuda_fast_div(count);
        a->src_step[a->axes] = m->from[i] * b.size[i];
        a->dst_step[a->axes++] = m->to[i] * b.size[i];
    }
    if (blocks > INT32_MAX) return move_too_large(e);
    const int64_t lanes = 16 / m->bytes;
    a->z = cuda_fast_div(nz);
    a->pitch = (small)pitch;
    a->in_log = threads_log(nx * nz);
    a->out_log = threads_log(ny * nz);
    a->in_vector_log = threads_log(nx / lanes);
    a->out_vector_log = threads_log(ny / lanes);
    a->is_wide_in = is_wide(m, &b, &a->x, ALONG_X, m->from, a->x.src_step[0]);
    a->is_wide_out = is_wide(m, &b, &a->y, ALONG_Y, m->to, a->y.dst_step[0]);
    cuda_launch_last(r)->grid[0] = (uint32_t)blocks;
    cuda_patch_add(r, a, offsetof(struct block_args, src), PATCH_IN, 0, m->offset_in);
    cuda_patch_add(r, a, offsetof(struct block_args, dst), PATCH_OUT, 0, m->offset_out);
    return SINTER_OK;
}
