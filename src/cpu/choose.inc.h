/* SPDX-License-Identifier: Apache-2.0 */
/* choose.inc.h - the text of the loops that look for extremes, included once by each instruction set's file.
 *
 * Each lane keeps its own extreme and the place of that extreme. The lanes are compared at the end. */

/* Lanes of x that beat `best`. A NaN beats numbers; where equals count, it beats another NaN. */
INLINE vecm choose_beats(vec x, vec best, const bool is_max, const bool last)
{
    const vec a = is_max ? best : x, b = is_max ? x : best;
    if (last) return m_or(v_le(a, b), v_is_nan(x));
    return m_or(v_lt(a, b), m_and(v_is_nan(x), m_not(v_is_nan(best))));
}

static inline bool choose_one_beats(float x, float best, bool is_max, bool last)
{
    if (isnan(x) || isnan(best)) return isnan(x) && (last || !isnan(best));
    return (is_max ? x > best : x < best) || (last && x == best);
}

INLINE int64_t choose_run_of(const float *x, int64_t n, const bool is_max, const bool last)
{
    float value[2 * L];
    int32_t at[2 * L];
    int64_t i = 0, found = 0;
    if (n >= 2 * L) {
        int32_t first[L];
        for (int j = 0; j < L; j++) first[j] = j;
        vec best0 = v_load(x), best1 = v_load(x + L);
        veci place0 = vi_load(first), place1 = vi_add(place0, vi_set(L)), here0 = place0, here1 = place1;
        const veci step = vi_set(2 * L);
        for (i = 2 * L; i + 2 * L <= n; i += 2 * L) {
            const vec x0 = v_load(x + i), x1 = v_load(x + i + L);
            here0 = vi_add(here0, step);
            here1 = vi_add(here1, step);
            const vecm m0 = choose_beats(x0, best0, is_max, last), m1 = choose_beats(x1, best1, is_max, last);
            best0 = v_blend(m0, x0, best0);
            best1 = v_blend(m1, x1, best1);
            place0 = vi_blend(m0, here0, place0);
            place1 = vi_blend(m1, here1, place1);
        }
        v_store(value, best0);
        v_store(value + L, best1);
        vi_store(at, place0);
        vi_store(at + L, place1);
        found = at[0];
        float best = value[0];
        for (int j = 1; j < 2 * L; j++) {
            /* Of equal values the lane with the lower place wins, or the one with the higher place. */
            const bool is_equal = value[j] == best || (isnan(value[j]) && isnan(best));
            const bool wins = is_equal ? (last ? at[j] > found : at[j] < found)
                                       : choose_one_beats(value[j], best, is_max, last);
            if (!wins) continue;
            best = value[j];
            found = at[j];
        }
    }
    for (; i < n; i++) {
        if (i && choose_one_beats(x[i], x[found], is_max, last)) found = i;
    }
    return found;
}

static int64_t choose_run(const float *x, int64_t n, bool is_max, bool last)
{
    if (is_max) return last ? choose_run_of(x, n, true, true) : choose_run_of(x, n, true, false);
    return last ? choose_run_of(x, n, false, true) : choose_run_of(x, n, false, false);
}

INLINE void choose_row_of(float *best, int32_t *place, const float *x, int32_t row, int64_t n, const bool is_max,
                          const bool last)
{
    const veci here = vi_set(row);
    int64_t i = 0;
    for (; i + L <= n; i += L) {
        const vec v = v_load(x + i), b = v_load(best + i);
        const vecm m = choose_beats(v, b, is_max, last);
        v_store(best + i, v_blend(m, v, b));
        vi_store(place + i, vi_blend(m, here, vi_load(place + i)));
    }
    for (; i < n; i++) {
        if (!choose_one_beats(x[i], best[i], is_max, last)) continue;
        best[i] = x[i];
        place[i] = row;
    }
}

static void choose_row(float *best, int32_t *place, const float *x, int32_t row, int64_t n, bool is_max, bool last)
{
    if (is_max && last) choose_row_of(best, place, x, row, n, true, true);
    else if (is_max) choose_row_of(best, place, x, row, n, true, false);
    else if (last) choose_row_of(best, place, x, row, n, false, true);
    else choose_row_of(best, place, x, row, n, false, false);
}

static int64_t choose_seek(const float *x, int64_t n, int64_t from, float least, bool largest)
{
    const vec limit = v_set(least);
    int64_t i = from;
    if (isnan(least) && largest) return n; /* nothing is above a NaN */
    for (; i + L <= n; i += L) {
        const vec v = v_load(x + i);
        const vecm m = largest ? m_not(v_le(v, limit)) : isnan(least) ? m_not(v_is_nan(v)) : v_lt(v, limit);
        if (m_any(m)) break;
    }
    for (; i < n; i++)
        if (largest ? !(x[i] <= least) : isnan(least) ? !isnan(x[i]) : x[i] < least) break;
    return i;
}

/* Integers in the order of numbers: -0 is 0, all NaN are equal and above infinity. */
static inline veci choose_key(vec x, bool largest)
{
    const vec v = v_add(x, v_zero());
    const veci b = v_bits(v), sign = vi_sra(b, 31);
    const veci key = vi_blend(v_is_nan(v), vi_set(INT32_MAX), vi_xor(b, vi_and(sign, vi_set(INT32_MAX))));
    return largest ? key : vi_xor(key, vi_set(-1));
}

/* The longest lists that stay in registers, and rows, times their length, behind which few numbers go into one. */
enum { CHOOSE_HELD = 4, CHOOSE_EARLY = 8 * L };

/* Rows [i, n) go into full lists of a constant length. What a comparison would save is less than what a jump costs that
 * nobody foresees, until numbers that go into a list become rare. */
INLINE void choose_held_of(veci *best, veci *at, const float *x, int64_t i, int64_t n, int64_t step, int cols,
                           const int k, bool largest)
{
    veci b[CHOOSE_HELD], a[CHOOSE_HELD];
    UNROLL for (int j = 0; j < k; j++) b[j] = best[j], a[j] = at[j];
    for (; i < n; i++, x += step) {
        veci key = choose_key(cols == L ? v_load(x) : v_load_n(x, cols), largest), row = vi_set((int32_t)i);
        if (i >= (int64_t)CHOOSE_EARLY * k && !m_any(vi_lt(b[k - 1], key))) continue;
        vecm goes = m_first(0);
        UNROLL for (int j = 0; j < k; j++)
        {
            goes = m_or(goes, vi_lt(b[j], key));
            const veci was = b[j], was_at = a[j];
            b[j] = vi_blend(goes, key, was);
            a[j] = vi_blend(goes, row, was_at);
            key = vi_blend(goes, was, key);
            row = vi_blend(goes, was_at, row);
        }
    }
    UNROLL for (int j = 0; j < k; j++) best[j] = b[j], at[j] = a[j];
}

static void choose_held(veci *best, veci *at, const float *x, int64_t i, int64_t n, int64_t step, int cols, int64_t k,
                        bool largest)
{
    switch (k) {
    case 1: choose_held_of(best, at, x, i, n, step, cols, 1, largest); break;
    case 2: choose_held_of(best, at, x, i, n, step, cols, 2, largest); break;
    case 3: choose_held_of(best, at, x, i, n, step, cols, 3, largest); break;
    default: choose_held_of(best, at, x, i, n, step, cols, CHOOSE_HELD, largest); break;
    }
}

/* Each lane keeps a sorted list. A number goes before all that are less, and these move down. */
INLINE void choose_top_of(int32_t *place, const float *x, int64_t n, int64_t step, int cols, int64_t k, bool largest)
{
    veci best[CHOOSE_TOP], at[CHOOSE_TOP];
    for (int j = 0; j < CHOOSE_HELD; j++) best[j] = at[j] = vi_set(0);
    int64_t begin = 0;
    for (; begin < n && (begin < k || k > CHOOSE_HELD); begin++, x += step) {
        const int64_t i = begin, have = i < k ? i : k;
        veci key = choose_key(cols == L ? v_load(x) : v_load_n(x, cols), largest), row = vi_set((int32_t)i);
        vecm goes = m_first(0);
        if (have == k && !m_any(vi_lt(best[k - 1], key))) continue;
        for (int64_t j = 0; j < have; j++) {
            goes = m_or(goes, vi_lt(best[j], key));
            const veci was = best[j], was_at = at[j];
            best[j] = vi_blend(goes, key, was);
            at[j] = vi_blend(goes, row, was_at);
            key = vi_blend(goes, was, key);
            row = vi_blend(goes, was_at, row);
        }
        if (have == k) continue;
        best[have] = key;
        at[have] = row;
    }
    if (begin < n) choose_held(best, at, x, begin, n, step, cols, k, largest);
    for (int64_t j = 0; j < k; j++) {
        int32_t part[L];
        vi_store(part, at[j]);
        memcpy(place + j * CHOOSE_COLS, part, (size_t)cols * sizeof *part);
    }
}

static void choose_top(int32_t *place, const float *x, int64_t n, int64_t step, int64_t cols, int64_t k, bool largest)
{
    for (int64_t c = 0; c < cols; c += L)
        choose_top_of(place + c, x + c, n, step, cols - c < L ? (int)(cols - c) : L, k, largest);
}

static const choose_set choose_loops = {
    .run = choose_run, .row = choose_row, .seek = choose_seek, .top = choose_top,
};
