/* SPDX-License-Identifier: Apache-2.0 */
/* nms.cu - non-maximum suppression: of each class of each image the boxes of the highest scores that overlap none before
 * them by more than `overlap`; of equal scores the lower index comes first.
 *
 * -DPHASE=0: a block for each list, which is a class of an image. Scores above the threshold become 64-bit entries, score
 * and index, that sort as the boxes are to be visited. ROOM of them are sorted in shared memory; where there are more,
 * the first ROOM are selected by histograms of digits, and the next ones when those are done. Entries are visited 64 at a
 * time: all threads compare the 64 with what is kept and with each other, one thread then walks through the bits.
 * -DPHASE=1: the lists one behind the other, how many rows there are, and zeros behind them.
 *
 * Overlaps are computed in double, operation by operation as the reference does it, so that the same boxes stay. Boxes
 * that lie apart, which most do, are told by comparisons alone. */
#include "prelude.cuh"
#include "found_args.h"

enum { WARPS = BLOCK / 32, CHUNK = 64, BINS = 256 };
template <int T> struct float_type {};
template <> struct float_type<0> { typedef float type; };
template <> struct float_type<1> { typedef f16 type; };
template <> struct float_type<2> { typedef bf16 type; };
template <bool WIDE_COORDINATES> struct coordinate { typedef float type; };
template <> struct coordinate<true> { typedef double type; };
typedef float_type<BOX_TYPE>::type box_element;
typedef float_type<SCORE_TYPE>::type score_element;
typedef coordinate<CENTER != 0>::type coord;
struct box { coord y0, x0, y1, x1; };

DEVICE float number(address at, float otherwise)
{
    return at ? to_float(*(const float_type<LIMIT_TYPE>::type *)at) : otherwise;
}

DEVICE box box_at(const nms_args &a, i32 image, i32 i)
{
    const box_element *at = (const box_element *)a.boxes + image * a.box_step[0] + i * a.box_step[1];
    coord v[4];
    for (int k = 0; k < 4; k++) v[k] = (coord)to_float(at[k * a.box_step[2]]);
    box b;
    if (CENTER) {
        b.y0 = v[1] - v[3] / 2;
        b.x0 = v[0] - v[2] / 2;
        b.y1 = v[1] + v[3] / 2;
        b.x1 = v[0] + v[2] / 2;
    } else {
        b.y0 = v[0] < v[2] ? v[0] : v[2];
        b.x0 = v[1] < v[3] ? v[1] : v[3];
        b.y1 = v[0] < v[2] ? v[2] : v[0];
        b.x1 = v[1] < v[3] ? v[3] : v[1];
    }
    return b;
}

/* Is the intersection over the union more than `most`? */
DEVICE bool overlaps(const box &a, const box &b, double most)
{
    const bool none = 0 > most;
    const coord right = a.x1 < b.x1 ? a.x1 : b.x1, left = a.x0 > b.x0 ? a.x0 : b.x0;
    const coord top = a.y1 < b.y1 ? a.y1 : b.y1, bottom = a.y0 > b.y0 ? a.y0 : b.y0;
    if (!(right > left) || !(top > bottom)) return none;
    const double width = (double)right - (double)left, height = (double)top - (double)bottom;
    if (!(width > 0) || !(height > 0)) return none;
    const double area_a = __dmul_rn((double)a.y1 - (double)a.y0, (double)a.x1 - (double)a.x0);
    const double area_b = __dmul_rn((double)b.y1 - (double)b.y0, (double)b.x1 - (double)b.x0);
    if (!(area_a > 0) || !(area_b > 0)) return none;
    const double both = __dmul_rn(height, width), either = __dadd_rn(__dadd_rn(area_a, area_b), -both);
    return either > 0 ? both / either > most : none;
}

DEVICE u64 entry_of(float score, i32 i)
{
    const u32 b = bits_of_float(score + 0.0f), key = b >> 31 ? ~b : b | 1u << 31;
    return (u64)~key << 32 | (u32)i;
}

/* What the threads of a block share behind the entries. */
struct desk {
    box chunk[CHUNK];
    u32 mask[CHUNK][2];                 /* of each of the 64: which before it overlap it */
    u32 dead[WARPS];                    /* by warp: which of 32 overlap what is kept */
    u32 taken[2];
    u32 count, digit, before;
    u32 bins[BINS];
};

/* The number of this thread among those of the block for which `is` holds, and of earlier calls. */
DEVICE u32 take_number(desk &d, bool is)
{
    const u32 all = ballot(is);
    u32 base = 0;
    if (!lane_id() && all) base = atomic_add(&d.count, (u32)__popc(all));
    return shuffle(base, 0) + (u32)__popc(all & ((1u << lane_id()) - 1));
}

/* Entries of a list; those up to `last` are done where `is_later`. */
struct list { u64 *at; i32 count; u64 last; bool is_later; };
DEVICE bool is_open(const list &l, u64 x) { return !l.is_later || x > l.last; }

/* The `wanted`-th of the open entries. */
DEVICE u64 nth(const list &l, u32 wanted, desk &d)
{
    u64 prefix = 0;
    for (int shift = 56; shift >= 0; shift -= 8) {
        for (i32 i = threadIdx.x; i < BINS; i += BLOCK) d.bins[i] = 0;
        sync_block();
        for (i32 i = threadIdx.x; i < l.count; i += BLOCK) {
            const u64 x = l.at[i];
            if (is_open(l, x) && (shift == 56 || x >> (shift + 8) % 64 == prefix))
                atomic_add(&d.bins[(u32)(x >> shift) % BINS], 1u);
        }
        sync_block();
        if (!warp_id()) {
            u32 own = 0, sum;
            for (u32 k = 0; k < BINS / 32; k++) own += d.bins[lane_id() * (BINS / 32) + k];
            sum = own;
            for (u32 by = 1; by < 32; by *= 2) {
                const u32 y = shuffle_up(sum, by);
                if (lane_id() >= by) sum += y;
            }
            u32 lower = sum - own;
            if (lower < wanted && wanted <= sum) {
                u32 bin = lane_id() * (BINS / 32);
                while (lower + d.bins[bin] < wanted) lower += d.bins[bin++];
                d.digit = bin;
                d.before = lower;
            }
        }
        sync_block();
        prefix = prefix << 8 | d.digit;
        wanted -= d.before;
        sync_block();
    }
    return prefix;
}

/* Sorts `size` entries, a power of two. */
DEVICE void sort(u64 *x, i32 size)
{
    for (i32 run = 2; run <= size; run *= 2) {
        for (i32 gap = run / 2; gap; gap /= 2) {
            sync_block();
            for (i32 i = threadIdx.x; i < size / 2; i += BLOCK) {
                const i32 low = (i & ~(gap - 1)) * 2 | (i & (gap - 1)), high = low | gap;
                const u64 a = x[low], b = x[high];
                if ((a > b) == !(low & run)) {
                    x[low] = b;
                    x[high] = a;
                }
            }
        }
    }
    sync_block();
}

/* Visits the sorted entries; returns how many are kept now. */
DEVICE i32 visit(const nms_args &a, i32 image, i32 at, const u64 *x, i32 count, i32 kept, i32 limit, double most, desk &d)
{
    box *box_of = (box *)a.kept_box + (i64)at * a.limit;
    i32 *index_of = (i32 *)a.kept_at + (i64)at * a.limit;
    for (i32 base = 0; base < count && kept < limit; base += CHUNK) {
        const i32 size = smaller(count - base, (i32)CHUNK);
        if ((i32)threadIdx.x < size) d.chunk[threadIdx.x] = box_at(a, image, (i32)(u32)x[base + threadIdx.x]);
        sync_block();
        const i32 own = (i32)(warp_id() % 2 * 32 + lane_id());
        bool is_dead = false;
        if (own < size) {
            const box b = d.chunk[own];
            for (i32 k = (i32)warp_id() / 2; k < kept && !is_dead; k += WARPS / 2) is_dead = overlaps(b, box_of[k], most);
        }
        const u32 dead = ballot(is_dead);
        if (!lane_id()) d.dead[warp_id()] = dead;
        for (i32 i = (i32)warp_id(); i < size; i += WARPS) {
            for (i32 half = 0; half < 2; half++) {
                const i32 j = half * 32 + (i32)lane_id();
                const u32 m = ballot(j < i && overlaps(d.chunk[i], d.chunk[j], most));
                if (!lane_id()) d.mask[i][half] = m;
            }
        }
        sync_block();
        if (!threadIdx.x) {
            u32 gone[2] = { 0, 0 }, taken[2] = { 0, 0 };
            for (u32 w = 0; w < WARPS; w++) gone[w % 2] |= d.dead[w];
            for (i32 i = 0, left = limit - kept; i < size && left; i++) {
                if (gone[i / 32] >> i % 32 & 1 || (d.mask[i][0] & taken[0]) | (d.mask[i][1] & taken[1])) continue;
                taken[i / 32] |= 1u << i % 32;
                left--;
            }
            d.taken[0] = taken[0];
            d.taken[1] = taken[1];
        }
        sync_block();
        const u32 low = d.taken[0], high = d.taken[1];
        if (threadIdx.x < CHUNK && (threadIdx.x < 32 ? low : high) >> threadIdx.x % 32 & 1) {
            const u32 lower = (threadIdx.x < 32 ? low : high) & ((1u << threadIdx.x % 32) - 1);
            const i32 to = kept + __popc(lower) + (threadIdx.x < 32 ? 0 : __popc(low));
            box_of[to] = d.chunk[threadIdx.x];
            index_of[to] = (i32)(u32)x[base + threadIdx.x];
        }
        kept += __popc(low) + __popc(high);
        sync_block();
    }
    return kept;
}

DEVICE i32 limit_of(const nms_args &a)
{
    i64 most = 0;
    if (a.most) most = MOST_WIDE ? *(const i64 *)a.most : (i64)*(const i32 *)a.most;
    return (i32)larger((i64)0, smaller(most, (i64)smaller(a.n, a.limit)));
}

DEVICE void search(const nms_args &a)
{
    u64 *x = (u64 *)shared_base();
    desk &d = *(desk *)(x + ROOM);
    const i32 image = blockIdx.y, at = image * a.classes + (i32)blockIdx.x, limit = limit_of(a);
    const score_element *scores = (const score_element *)a.scores + image * a.score_step[0] + blockIdx.x * a.score_step[1];
    const float least = number(a.least, 0);
    const double most = number(a.overlap, 0);
    list l = { (u64 *)a.entries + (i64)at * a.n, 0, 0, false };
    if (!threadIdx.x) d.count = 0;
    sync_block();
    for (i32 base = 0; limit && base < a.n; base += BLOCK) {
        const i32 i = base + (i32)threadIdx.x;
        const float score = i < a.n ? to_float(scores[i * a.score_step[2]]) : 0;
        const bool is = i < a.n && score == score && (!a.least || score > least);
        const u32 to = take_number(d, is);
        if (is) (to < ROOM ? x : l.at)[to] = entry_of(score, i);
    }
    sync_block();
    l.count = (i32)d.count;
    const bool is_long = l.count > ROOM;
    for (i32 i = threadIdx.x; is_long && i < ROOM; i += BLOCK) l.at[i] = x[i];
    i32 kept = 0;
    for (i32 done = 0, size; done < l.count && kept < limit; done += size) {
        size = smaller(l.count - done, (i32)ROOM);
        if (is_long) {
            sync_block();
            const u64 end = size < l.count - done ? nth(l, (u32)size, d) : ~0ull;
            if (!threadIdx.x) d.count = 0;
            sync_block();
            for (i32 base = 0; base < l.count; base += BLOCK) {
                const i32 i = base + (i32)threadIdx.x;
                const u64 e = i < l.count ? l.at[i] : 0;
                const bool is = i < l.count && is_open(l, e) && e <= end;
                const u32 to = take_number(d, is);
                if (is) x[to] = e;
            }
        }
        i32 whole = 2;
        while (whole < size) whole *= 2;
        for (i32 i = size + (i32)threadIdx.x; i < whole; i += BLOCK) x[i] = ~0ull;
        sort(x, whole);
        l.last = x[size - 1];
        l.is_later = true;
        kept = visit(a, image, at, x, size, kept, limit, most, d);
        sync_block();
    }
    if (!threadIdx.x) ((i32 *)a.counts)[at] = kept;
}

/* Rows of list blockIdx.x go behind those of the lists before. */
DEVICE void write(const nms_args &a)
{
    i32 *sums = (i32 *)shared_base();
    const i32 *counts = (const i32 *)a.counts;
    const i32 lists = a.images * a.classes, own = blockIdx.x;
    i32 lower = 0, all = 0;
    for (i32 i = threadIdx.x; i < lists; i += BLOCK) {
        all += counts[i];
        if (i < own) lower += counts[i];
    }
    for (u32 by = 16; by; by /= 2) {
        lower += shuffle_xor(lower, by);
        all += shuffle_xor(all, by);
    }
    if (!lane_id()) {
        sums[warp_id()] = lower;
        sums[WARPS + warp_id()] = all;
    }
    sync_block();
    lower = all = 0;
    for (u32 w = 0; w < WARPS; w++) {
        lower += sums[w];
        all += sums[WARPS + w];
    }
    i64 *rows = (i64 *)a.rows;
    for (i32 i = threadIdx.x; own < lists && i < counts[own]; i += BLOCK) {
        i64 *row = rows + (i64)(lower + i) * a.row_step;
        row[0] = own / a.classes;
        row[a.column_step] = own % a.classes;
        row[2 * a.column_step] = ((const i32 *)a.kept_at)[(i64)own * a.limit + i];
    }
    const i64 end = (i64)lists * a.limit;
    for (i64 i = all + (i64)own * BLOCK + threadIdx.x; i < end; i += (i64)gridDim.x * BLOCK)
        for (int k = 0; k < 3; k++) rows[i * a.row_step + k * a.column_step] = 0;
    if (!own && !threadIdx.x) *(i64 *)a.count = all;
}

KERNEL void __launch_bounds__(BLOCK, 1) nms(const __grid_constant__ nms_args a)
{
    grid_wait();
    if (TRIGGER == 1) grid_trigger();
    if (PHASE == 0) search(a);
    else write(a);
}
