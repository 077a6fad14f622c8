/* SPDX-License-Identifier: Apache-2.0 */
/* topk.cu - the first k of each line in order, a block for each line; of equal ones the lower index comes first.
 *
 * Values become unsigned keys that sort as they do; an entry is a key and its place. PACKED: in 32 bits, for keys of 16
 * in lines of less than 2^16. A line that fits in a block's registers is sorted there (bitonic, ROOM entries). Of a longer
 * one (-DKIND=1) the key of the k-th is found digit by digit from the top by histograms; those before it, and as
 * many of its equals as are wanted, are gathered and sorted. The first few (-DKIND=2) are held in registers:
 * topk_few.cuh.
 *
 * PARTS: 1: a block does so with a part of a line, and keeps the part's first k, a run of keys and places in the
 * workspace. 2: up to RUNS runs become one: an entry's place in it is its place in its own run, and how many entries of
 * each other run come before it. What lands behind the k-th is dropped. 3: the same, into the results. */
#include "order.cuh"

enum { IS_WIDE = sizeof(element) == 8, DIGIT = 8, BINS = 1 << DIGIT, KEY_BITS = IS_WIDE ? 64 : 32,
       AT_ONCE = 8, RUNS = TOPK_RUNS };
template <bool WIDE> struct key_of_width { typedef u32 type; };
template <> struct key_of_width<true> { typedef u64 type; };
typedef key_of_width<IS_WIDE>::type key;

/* Keys of narrow types have their bits at the top. */
DEVICE u32 turned(u32 x) { return x ^ ((u32)((i32)x >> 31) | 1u << 31); }
DEVICE u32 float_key(float x) { return x != x ? ~0u : turned(bits_of_float(x + 0.0f)); }
DEVICE u64 double_key(double x)
{
    if (x != x) return ~0ull;
    const u64 b = bits_of_double(x + 0.0);
    return b >> 63 ? ~b : b | 1ull << 63;
}
DEVICE key key_raw(float x) { return float_key(x); }
DEVICE key key_raw(f16 x)
{
    const u32 b = (u32)x.bits << 16;
    return b << 1 > 0xf8000000u ? ~0u : turned(b << 1 ? b : 0);
}
DEVICE key key_raw(bf16 x) { return float_key(to_float(x)); }
DEVICE key key_raw(double x) { return (key)double_key(x); }
DEVICE key key_raw(i8 x) { return (u32)(i32)x << 24 ^ (1u << 31); }
DEVICE key key_raw(i16 x) { return (u32)(i32)x << 16 ^ (1u << 31); }
DEVICE key key_raw(i32 x) { return (u32)x ^ 1u << 31; }
DEVICE key key_raw(i64 x) { return (key)((u64)x ^ 1ull << 63); }
DEVICE key key_raw(u8 x) { return (u32)x << 24; }
DEVICE key key_raw(u16 x) { return (u32)x << 16; }
DEVICE key key_raw(u32 x) { return x; }
DEVICE key key_raw(u64 x) { return (key)x; }
DEVICE key key_of(element x) { const key k = key_raw(x); return LARGEST ? (key)~k : k; }

struct wide_entry { u64 key; u32 at; };
template <int BITS> struct entry_of_width { typedef u64 type; };
template <> struct entry_of_width<16> { typedef u32 type; };
template <> struct entry_of_width<64> { typedef wide_entry type; };
typedef entry_of_width<PACKED ? 16 : KEY_BITS>::type entry;

DEVICE void make_entry(key k, i32 at, u32 &e) { e = ((u32)k & 0xffff0000) | (u32)at; }
DEVICE void make_entry(key k, i32 at, u64 &e) { e = (u64)k << 32 | (u32)at; }
DEVICE void make_entry(key k, i32 at, wide_entry &e) { e.key = k, e.at = (u32)at; }
DEVICE key key_in(u32 e) { return (key)(e & 0xffff0000); }
DEVICE key key_in(u64 e) { return (key)(e >> 32); }
DEVICE key key_in(const wide_entry &e) { return (key)e.key; }
DEVICE i32 place_in(u32 e) { return (i32)(e & 0xffff); }
DEVICE i32 place_in(u64 e) { return (i32)(u32)e; }
DEVICE i32 place_in(const wide_entry &e) { return (i32)e.at; }
DEVICE bool is_before(u32 a, u32 b) { return a < b; }
DEVICE bool is_before(u64 a, u64 b) { return a < b; }
DEVICE bool is_before(const wide_entry &a, const wide_entry &b) { return a.key < b.key || (a.key == b.key && a.at < b.at); }
DEVICE u32 shuffle_entry(u32 e, u32 mask) { return shuffle_xor(e, mask); }
DEVICE u64 shuffle_entry(u64 e, u32 mask)
{
    const u32 low = shuffle_xor((u32)e, mask), high = shuffle_xor((u32)(e >> 32), mask);
    return (u64)high << 32 | low;
}
DEVICE wide_entry shuffle_entry(const wide_entry &e, u32 mask)
{
    return { shuffle_entry(e.key, mask), shuffle_entry(e.at, mask) };
}
/* Behind all others. */
DEVICE entry no_entry()
{
    entry e;
    make_entry(~(key)0, PACKED ? 0xffff : -1, e);
    return e;
}

#if KIND == 2
#include "topk_few.cuh"
#else
enum { EACH = ROOM > BLOCK ? ROOM / BLOCK : 1, NEAR = 32 * EACH };

/* Sorts the first `size` entries of the block: a thread has EACH that follow each other. What is compared lies in
 * registers of the same thread, of the same warp, or of another, which are met in shared memory. */
DEVICE void sort(entry (&e)[EACH], i32 size)
{
    entry *const desk = (entry *)shared_base();
    const i32 own = (i32)threadIdx.x * EACH;
    for (i32 run = 2; run <= size; run *= 2) {
        for (i32 gap = run / 2; gap >= EACH; gap /= 2) {
            const bool is_far = gap >= NEAR, is_lower = !(own & gap) == !(own & run);
            if (is_far) {
                sync_block();
#pragma unroll
                for (int j = 0; j < EACH; j++) desk[j * BLOCK + threadIdx.x] = e[j];
                sync_block();
            }
#pragma unroll
            for (int j = 0; j < EACH; j++) {
                entry other;
                if (is_far) other = desk[j * BLOCK + (threadIdx.x ^ (u32)(gap / EACH))];
                else other = shuffle_entry(e[j], (u32)(gap / EACH));
                if (is_before(other, e[j]) == is_lower) e[j] = other;
            }
        }
#pragma unroll
        for (int gap = EACH / 2; gap; gap /= 2)
#pragma unroll
            for (int j = 0; j < EACH; j++) {
                if (j & gap || gap >= run || is_before(e[j | gap], e[j]) != !((own + j) & run)) continue;
                const entry lower = e[j | gap];
                e[j | gap] = e[j];
                e[j] = lower;
            }
    }
}

/* The sum of `x` over the threads before this one; `all`: over all. spare: 33 numbers. */
DEVICE i32 before(i32 x, i32 *spare, i32 &all)
{
    i32 sum = x;
    for (u32 by = 1; by < 32; by *= 2) {
        const i32 y = shuffle_up(sum, by);
        if (lane_id() >= by) sum += y;
    }
    sync_block();
    if (lane_id() == 31) spare[warp_id()] = sum;
    sync_block();
    i32 lower = 0;
    all = 0;
    for (u32 w = 0; w < BLOCK / 32; w++) {
        if (w < warp_id()) lower += spare[w];
        all += spare[w];
    }
    return lower + sum - x;
}

/* Gathers the k first of a long line of n elements into keys and at. */
DEVICE void select(const order_args &a, const element *x, i32 n, i32 most, key *keys, i32 *at, i32 *spare)
{
    u32 *bins = (u32 *)(spare + 64);
    i32 *found = spare + 40;            /* digit, how many lie before it, how many have it */
    key prefix = 0;
    i32 wanted = most, equal = n;
    int shift = KEY_BITS - DIGIT;
    for (;; shift -= DIGIT) {
        for (i32 i = threadIdx.x; i < BINS; i += BLOCK) bins[i] = 0;
        sync_block();
        for (i32 first = threadIdx.x; first < n; first += BLOCK * AT_ONCE) {
            key v[AT_ONCE];
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) {
                const i32 i = first + k * BLOCK;
                v[k] = i < n ? key_of(x[i * a.step]) : 0;
            }
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++)
                if (first + k * BLOCK < n &&
                    (shift == KEY_BITS - DIGIT || v[k] >> ((shift + DIGIT) % KEY_BITS) == prefix))
                    atomic_add(&bins[(u32)(v[k] >> shift) % BINS], 1u);
        }
        sync_block();
        const i32 mine = (i32)threadIdx.x < BINS ? (i32)bins[threadIdx.x] : 0;
        i32 all;
        const i32 lower = before(mine, spare, all);
        if (lower < wanted && wanted <= lower + mine) {
            found[0] = (i32)threadIdx.x;
            found[1] = lower;
            found[2] = mine;
        }
        sync_block();
        prefix = prefix << DIGIT | (key)found[0];
        wanted -= found[1];
        equal = found[2];
        /* Enough digits are known where all that begin with them find room, and in any case in the end. */
        if (!shift || most - wanted + equal <= a.size) break;
    }
    const bool takes_all = most - wanted + equal <= a.size;
    const i32 less = most - wanted, total = takes_all ? less + equal : most;
    /* Equals are taken in their order, unless all are; the others in any. */
    u32 *count = bins;
    sync_block();
    if (!threadIdx.x) *count = 0;
    sync_block();
    i32 taken = 0;
    for (i32 base = 0; base < n; base += BLOCK * AT_ONCE) {
        key v[AT_ONCE];
        i32 own = 0;
        /* A thread's elements are neighbours, so that threads in order are elements in order. */
        const i32 first = base + (i32)threadIdx.x * AT_ONCE;
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) v[k] = first + k < n ? key_of(x[(first + k) * a.step]) : ~(key)0;
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) own += first + k < n && v[k] >> shift == prefix;
        i32 lower = 0;
        if (!takes_all) {
            i32 all;
            lower = taken + before(own, spare, all);
            taken += all;
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const key digits = v[k] >> shift;
            if (first + k >= n || digits > prefix) continue;
            i32 to = less + lower;
            if (takes_all || digits < prefix) to = (i32)atomic_add(count, 1u);
            else if (lower++ >= wanted) continue;
            keys[to] = v[k];
            at[to] = first + k;
        }
    }
    for (i32 i = total + threadIdx.x; i < a.size; i += BLOCK) {
        keys[i] = ~(key)0;
        at[i] = 0x7fffffff;
    }
}

/* Result `to` of a line is its element `from`. */
DEVICE void keep(const order_args &a, const line_at &line, i32 to, i32 from)
{
    if (a.values)
        ((element *)a.values)[line.values + to * a.value_step] = ((const element *)a.x)[line.x + from * a.step];
    if (a.indices) ((i64 *)a.indices)[line.indices + to * a.index_step] = from;
}

#if PARTS > 1
/* Entries of run `r` of a line: none behind the last. */
DEVICE i32 entries_of(const order_args &a, i32 r)
{
    const i64 first = (i64)r * a.span;
    return first < a.n ? (i32)smaller((i64)a.kept_in, a.n - first) : 0;
}

DEVICE void merge(const order_args &a)
{
    i32 row, block, r, i;
    divmod_fast((i32)blockIdx.x, a.parts, row, block);
    divmod_fast(block * BLOCK + (i32)threadIdx.x, a.run, r, i);
    if (i >= entries_of(a, r)) return;
    const key *const keys = (const key *)a.from + (i64)row * a.room;
    const i32 *const at = (const i32 *)((const key *)a.from + a.entries) + (i64)row * a.room;
    const i32 group = r / RUNS, from = at[(i64)r * a.kept_in + i];
    const key own = keys[(i64)r * a.kept_in + i];
    i32 before[RUNS], count[RUNS], to = i;
#pragma unroll
    for (int q = 0; q < RUNS; q++) {
        before[q] = 0;
        count[q] = group * RUNS + q == r ? 0 : entries_of(a, group * RUNS + q);
    }
    /* All runs are searched at the same time. Equal keys of an earlier run have lower places. */
    for (i32 half = a.size / 2; half; half /= 2)
#pragma unroll
        for (int q = 0; q < RUNS; q++) {
            const i32 probe = before[q] + half;
            if (probe > count[q]) continue;
            const key other = keys[(i64)(group * RUNS + q) * a.kept_in + probe - 1];
            if (other < own || (other == own && group * RUNS + q < r)) before[q] = probe;
        }
#pragma unroll
    for (int q = 0; q < RUNS; q++) to += before[q];
    if (to >= a.k) return;
    if (PARTS == 3) return keep(a, line_of(a, row), to, from);
    const i64 place = (i64)row * a.room + (i64)group * a.kept_out + to;
    ((key *)a.to)[place] = own;
    ((i32 *)((key *)a.to + a.entries))[place] = from;
}
#endif

#endif

KERNEL void __launch_bounds__(BLOCK) top_k(const __grid_constant__ order_args a)
{
#if KIND == 2
    few(a);
#elif PARTS > 1
    grid_wait();
    if (TRIGGER == 1) grid_trigger();
    merge(a);
#else
    i32 row = blockIdx.x, part = 0;
    if (PARTS) divmod_fast(row, a.parts, row, part);
    const line_at line = line_of(a, row);
    const i32 first = PARTS ? part * a.span : 0, n = PARTS ? smaller(a.span, a.n - first) : a.n;
    const i32 most = PARTS ? smaller(a.k, n) : a.k;
    key *const keys = (key *)shared_base();
    i32 *const at = (i32 *)(keys + a.size);
    grid_wait();
    if (TRIGGER == 1) grid_trigger();
    const element *x = (const element *)a.x + line.x + first * a.step;
    if (KIND) select(a, x, n, most, keys, at, at + a.size);
    sync_block();
    /* In any order, but in the first threads: those whose entries are sorted. */
    const i32 threads = larger(a.size / EACH, 1), there = (i32)threadIdx.x < threads ? KIND ? a.size : n : 0;
    entry e[EACH];
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        const i32 i = j * threads + (i32)threadIdx.x;
        e[j] = no_entry();
        if (KIND && i < there) make_entry(keys[i], at[i], e[j]);
        if (!KIND && i < there) make_entry(key_of(x[i * a.step]), i, e[j]);
    }
    sort(e, a.size);
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        const i32 to = (i32)threadIdx.x * EACH + j;
        if (to >= most) continue;
        if (PARTS) {
            const i64 place = (i64)row * a.room + (i64)part * a.kept_out + to;
            ((key *)a.to)[place] = key_in(e[j]);
            ((i32 *)((key *)a.to + a.entries))[place] = first + place_in(e[j]);
        } else {
            keep(a, line, to, place_in(e[j]));
        }
    }
#endif
}
