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

/* The place of the extreme among 2 * L lanes: of equal values the lowest place, or with `last` the highest. */
INLINE int64_t choose_lane(vec best0, vec best1, veci place0, veci place1, const bool is_max, const bool last)
{
    int32_t at[2 * L];
    if (m_any(m_or(v_is_nan(best0), v_is_nan(best1)))) {
        best0 = v_blend(v_is_nan(best0), v_set(1), v_zero());
        best1 = v_blend(v_is_nan(best1), v_set(1), v_zero());
    } else if (!is_max) {
        best0 = v_sub(v_zero(), best0);
        best1 = v_sub(v_zero(), best1);
    }
    const vec most = v_set(v_most(v_max(best0, best1)));
    const veci never = vi_set(last ? -1 : INT32_MAX);
    vi_store(at, vi_blend(v_le(most, best0), place0, never));
    vi_store(at + L, vi_blend(v_le(most, best1), place1, never));
    int32_t found = at[0];
    for (int j = 1; j < 2 * L; j++) found = (last ? at[j] > found : at[j] < found) ? at[j] : found;
    return found;
}

INLINE int64_t choose_run_of(const float *x, int64_t n, const bool is_max, const bool last)
{
    int64_t i = 0, found = 0;
    if (n >= L) {
        int32_t first[L];
        for (int j = 0; j < L; j++) first[j] = j;
        /* The second vector may hold numbers of the first one. Each has its own place. */
        const int64_t second = n < 2 * L ? n - L : L;
        vec best0 = v_load(x), best1 = v_load(x + second);
        veci place0 = vi_load(first), place1 = vi_add(place0, vi_set((int32_t)second)), here0 = place0, here1 = place1;
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
        /* The last vectors: the very last one ends where x does, and only numbers that no lane has seen count. */
        for (; i < n; i += L) {
            const int64_t at = i + L <= n ? i : n - L;
            const vec v = v_load(x + at);
            const vecm m = m_and(choose_beats(v, best0, is_max, last), m_not(m_first((int)(i - at))));
            best0 = v_blend(m, v, best0);
            place0 = vi_blend(m, vi_add(vi_load(first), vi_set((int32_t)at)), place0);
        }
        return choose_lane(best0, best1, place0, place1, is_max, last);
    }
    for (i = 1; i < n; i++)
        if (choose_one_beats(x[i], x[found], is_max, last)) found = i;
    return found;
}

static int64_t choose_run(const float *x, int64_t n, bool is_max, bool last)
{
    if (is_max) return last ? choose_run_of(x, n, true, true) : choose_run_of(x, n, true, false);
    return last ? choose_run_of(x, n, false, true) : choose_run_of(x, n, false, false);
}

INLINE void choose_rows_of(float *best, int32_t *place, const float *x, int64_t step, int32_t row, int32_t rows,
                           int64_t n, const bool is_max, const bool last)
{
    for (int64_t i = 0; i < n; i += L) {
        const int some = n - i < L ? (int)(n - i) : L;
        vec b = v_load(best + i);
        veci p = vi_load(place + i);
        for (int32_t k = 0; k < rows; k++) {
            const float *from = x + k * step + i;
            const vec v = some == L ? v_load(from) : v_load_n(from, some);
            const vecm m = choose_beats(v, b, is_max, last);
            b = v_blend(m, v, b);
            p = vi_blend(m, vi_set(row + k), p);
        }
        v_store(best + i, b);
        vi_store(place + i, p);
    }
}

static void choose_rows(float *best, int32_t *place, const float *x, int64_t step, int32_t row, int32_t rows, int64_t n,
                        bool is_max, bool last)
{
    if (is_max && last) choose_rows_of(best, place, x, step, row, rows, n, true, true);
    else if (is_max) choose_rows_of(best, place, x, step, row, rows, n, true, false);
    else if (last) choose_rows_of(best, place, x, step, row, rows, n, false, true);
    else choose_rows_of(best, place, x, step, row, rows, n, false, false);
}

static int64_t choose_seek_f32(const void *from_x, int64_t n, int64_t from, int64_t place, bool largest)
{
    const float *x = from_x, least = x[place];
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

/* Two vectors at a time. is_nan: of integers false. */
#define CHOOSE_SEEK(name, type, mask, is_nan)                                                                          \
    static int64_t choose_seek_##name(const void *from_x, int64_t n, int64_t from, int64_t place, bool largest)        \
    {                                                                                                                  \
        typedef type seek_v __attribute__((vector_size(FOLD_BYTES)));                                                  \
        enum { STEP = 2 * FOLD_BYTES / sizeof(type) };                                                                 \
        const type  *x = from_x, least = x[place];                                                                     \
        const seek_v limit = (seek_v){ 0 } + least;                                                                    \
        int64_t      i = from;                                                                                         \
        if (is_nan(least) && largest) return n; /* nothing is above a NaN */                                           \
        for (; i + STEP <= n; i += STEP) {                                                                             \
            seek_v v[2];                                                                                               \
            memcpy(v, x + i, sizeof v);                                                                                \
            const mask m = largest         ? ~((v[0] <= limit) & (v[1] <= limit))                                      \
                           : is_nan(least) ? (v[0] == v[0]) | (v[1] == v[1])                                           \
                                           : (v[0] < limit) | (v[1] < limit);                                          \
            if (fold_any((fold_i64)m)) break;                                                                        \
        }                                                                                                              \
        for (; i < n; i++)                                                                                             \
            if (largest ? !(x[i] <= least) : is_nan(least) ? !is_nan(x[i]) : x[i] < least) break;                      \
        return i;                                                                                                      \
    }
#define CHOOSE_NEVER(v) false
CHOOSE_SEEK(f64, double, fold_i64, isnan)
CHOOSE_SEEK(i32, int32_t, fold_i32, CHOOSE_NEVER)
CHOOSE_SEEK(i64, int64_t, fold_i64, CHOOSE_NEVER)

static choose_seek_fn *choose_seek(sinter_dtype type)
{
    return type == SINTER_DTYPE_F32   ? choose_seek_f32
           : type == SINTER_DTYPE_F64 ? choose_seek_f64
           : type == SINTER_DTYPE_I32 ? choose_seek_i32
                                      : choose_seek_i64;
}

/* Integers in the order of numbers, of i32 or f32: -0 is 0, all NaN are equal and above infinity. */
INLINE veci choose_key(const float *from, int cols, bool largest, const bool is_float)
{
    const vec x = cols == L ? v_load(from) : v_load_n(from, cols);
    if (!is_float) return largest ? v_bits(x) : vi_xor(v_bits(x), vi_set(-1));
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
                           const int k, bool largest, const bool is_float)
{
    veci b[CHOOSE_HELD], a[CHOOSE_HELD];
    UNROLL for (int j = 0; j < k; j++) b[j] = best[j], a[j] = at[j];
    for (; i < n; i++, x += step) {
        veci key = choose_key(x, cols, largest, is_float), row = vi_set((int32_t)i);
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

INLINE void choose_held(veci *best, veci *at, const float *x, int64_t i, int64_t n, int64_t step, int cols, int64_t k,
                        bool largest, const bool is_float)
{
    switch (k) {
    case 1: choose_held_of(best, at, x, i, n, step, cols, 1, largest, is_float); break;
    case 2: choose_held_of(best, at, x, i, n, step, cols, 2, largest, is_float); break;
    case 3: choose_held_of(best, at, x, i, n, step, cols, 3, largest, is_float); break;
    default: choose_held_of(best, at, x, i, n, step, cols, CHOOSE_HELD, largest, is_float); break;
    }
}

/* Each lane keeps a sorted list. A number goes before all that are less, and these move down. */
INLINE void choose_top_of(int32_t *place, const float *x, int64_t n, int64_t step, int cols, int64_t k, bool largest,
                          const bool is_float)
{
    veci best[CHOOSE_TOP], at[CHOOSE_TOP];
    for (int j = 0; j < CHOOSE_HELD; j++) best[j] = at[j] = vi_set(0);
    int64_t begin = 0;
    for (; begin < n && (begin < k || k > CHOOSE_HELD); begin++, x += step) {
        const int64_t i = begin, have = i < k ? i : k;
        veci key = choose_key(x, cols, largest, is_float), row = vi_set((int32_t)i);
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
    if (begin < n) choose_held(best, at, x, begin, n, step, cols, k, largest, is_float);
    for (int64_t j = 0; j < k; j++) {
        int32_t part[L];
        vi_store(part, at[j]);
        memcpy(place + j * CHOOSE_COLS, part, (size_t)cols * sizeof *part);
    }
}

/* ---- sorted columns: a bitonic sorting network. Each step of it compares rows of keys with other rows, and leaves the
 * smaller key of each column in the row before and the larger one in the row behind. ---- */
enum { SORT_STEP = FOLD_BYTES / sizeof(int64_t), SORT_HELD = CHOOSE_SORT_LEAST };

INLINE void sort_two(fold_i64 *a, fold_i64 *b)
{
    const fold_i64 x = *a, y = *b;
    *a = least_i64(x, y);
    *b = most_i64(x, y);
}

/* Rows that lie `step` keys apart, from `at` on. */
INLINE void sort_load(fold_i64 *v, const int64_t *at, int64_t step, const int count)
{
    UNROLL for (int j = 0; j < count; j++) memcpy(&v[j], at + j * step, sizeof v[j]);
}
INLINE void sort_store(int64_t *at, int64_t step, const fold_i64 *v, const int count)
{
    UNROLL for (int j = 0; j < count; j++) memcpy(at + j * step, &v[j], sizeof v[j]);
}

/* Compares row j of each run of 2 * apart rows with row j + apart. */
INLINE void sort_apart(fold_i64 *v, const int count, const int apart)
{
    UNROLL for (int j = 0; j < count; j++)
        if (!(j & apart)) sort_two(&v[j], &v[j + apart]);
}
/* ... the first row of each run with its last one, the second with the last but one, and so on. */
INLINE void sort_ends(fold_i64 *v, const int count, const int apart)
{
    UNROLL for (int j = 0; j < count; j++)
        if (!(j & apart)) sort_two(&v[j], &v[j ^ (2 * apart - 1)]);
}

/* The last `levels` steps of a bitonic merge, of 1 << levels rows: rows half of them apart, a quarter, and so on. */
INLINE void sort_halves(fold_i64 *v, const int levels)
{
    const int count = 1 << levels;
    if (levels > 2) sort_apart(v, count, 4);
    if (levels > 1) sort_apart(v, count, 2);
    sort_apart(v, count, 1);
}

/* `levels` steps of a bitonic merge in memory: rows `half` apart, half of that, and so on. */
INLINE void sort_level(int64_t *keys, int64_t rows, int64_t half, const int levels)
{
    const int64_t apart = half >> (levels - 1), cols = CHOOSE_SORT_COLS;
    for (int64_t i = 0; i < rows; i += 2 * half)
        for (int64_t j = i * cols; j < (i + apart) * cols; j += SORT_STEP) {
            fold_i64 v[SORT_HELD];
            sort_load(v, keys + j, apart * cols, 1 << levels);
            sort_halves(v, levels);
            sort_store(keys + j, apart * cols, v, 1 << levels);
        }
}

static void sort_levels(int64_t *keys, int64_t rows, int64_t half)
{
    for (; half >= 4; half >>= 3) sort_level(keys, rows, half, 3);
    if (half == 2) sort_level(keys, rows, 2, 2);
    else if (half == 1) sort_level(keys, rows, 1, 1);
}

/* Sorts each eight rows: pairs, then fours, then eights. */
static void sort_eights(int64_t *keys, int64_t rows)
{
    const int64_t cols = CHOOSE_SORT_COLS;
    for (int64_t i = 0; i < rows * cols; i += SORT_HELD * cols)
        for (int64_t j = i; j < i + cols; j += SORT_STEP) {
            fold_i64 v[SORT_HELD];
            sort_load(v, keys + j, cols, SORT_HELD);
            sort_ends(v, SORT_HELD, 1);
            sort_ends(v, SORT_HELD, 2);
            sort_apart(v, SORT_HELD, 1);
            sort_ends(v, SORT_HELD, 4);
            sort_apart(v, SORT_HELD, 2);
            sort_apart(v, SORT_HELD, 1);
            sort_store(keys + j, cols, v, SORT_HELD);
        }
}

/* Merges sorted runs of `half` rows, 4 or more, into runs of twice as many. The first three steps of the merge are done
 * together, on four rows of each of two runs. */
static void sort_join(int64_t *keys, int64_t rows, int64_t half)
{
    const int64_t apart = half / 4, cols = CHOOSE_SORT_COLS;
    for (int64_t i = 0; i < rows; i += 2 * half)
        for (int64_t k = 0; k < apart; k++)
            for (int64_t j = 0; j < cols; j += SORT_STEP) {
                int64_t *low = keys + (i + k) * cols + j, *high = keys + (i + 2 * half - 1 - k) * cols + j;
                fold_i64 v[4], w[4];
                sort_load(v, low, apart * cols, 4);
                sort_load(w, high, -apart * cols, 4);
                UNROLL for (int n = 0; n < 4; n++) sort_two(&v[n], &w[n]);
                sort_two(&v[0], &v[2]);
                sort_two(&v[1], &v[3]);
                sort_two(&v[0], &v[1]);
                sort_two(&v[2], &v[3]);
                sort_two(&w[2], &w[0]);
                sort_two(&w[3], &w[1]);
                sort_two(&w[1], &w[0]);
                sort_two(&w[3], &w[2]);
                sort_store(low, apart * cols, v, 4);
                sort_store(high, -apart * cols, w, 4);
            }
    sort_levels(keys, rows, apart / 2);
}

/* A power of two of rows, 8 or more. */
static void sort_all(int64_t *keys, int64_t rows)
{
    sort_eights(keys, rows);
    for (int64_t half = SORT_HELD; half < rows; half *= 2) sort_join(keys, rows, half);
}

/* Keys of `rows` rows, the first of which is row number `row`; then the largest key up to `room` rows. */
static void sort_keys(int64_t *keys, const float *x, int64_t step, int cols, int64_t row, int64_t rows, int64_t room,
                      bool largest, bool is_float)
{
    for (int64_t i = 0; i < rows; i++, keys += CHOOSE_SORT_COLS) {
        int32_t part[(int)L > (int)CHOOSE_SORT_COLS ? (int)L : (int)CHOOSE_SORT_COLS];
        for (int j = 0; j < CHOOSE_SORT_COLS; j += L) {
            const int some = cols - j < L ? cols - j : L;
            if (some > 0) vi_store(part + j, choose_key(x + i * step + j, some, largest, is_float));
        }
        for (int j = 0; j < CHOOSE_SORT_COLS; j++)
            keys[j] = (int64_t)((uint64_t)(int64_t)~part[j] << 32 | (uint64_t)(row + i));
    }
    for (int64_t i = 0; i < (room - rows) * CHOOSE_SORT_COLS; i++) keys[i] = INT64_MAX;
}

/* A block of rows at a time is sorted. Row i of the smallest keys so far is compared with row rows - 1 - i of the
 * block: the smaller keys of both are a bitonic sequence, which a merge sorts. */

static void choose_sort(int64_t *keys, const void *from, int64_t n, int64_t step, int64_t cols, int64_t k,
                        bool largest, sinter_dtype type)
{
    const float *x = from;
    const int64_t rows = choose_sort_rows(k), all = CHOOSE_SORT_COLS;
    int64_t *const next = keys + rows * all;
    for (int64_t row = 0; row < n; row += rows) {
        const int64_t some = n - row < rows ? n - row : rows;
        int64_t *to = row ? next : keys;
        sort_keys(to, x + row * step, step, (int)cols, row, some, rows, largest, type == SINTER_DTYPE_F32);
        sort_all(to, rows);
        for (int64_t i = 0; i < rows && row; i++)
            for (int64_t j = 0; j < all; j += SORT_STEP) {
                fold_i64 v[2];
                sort_load(&v[0], keys + i * all + j, 0, 1);
                sort_load(&v[1], next + (rows - 1 - i) * all + j, 0, 1);
                v[0] = least_i64(v[0], v[1]);
                sort_store(keys + i * all + j, 0, v, 1);
            }
        if (row) sort_levels(keys, rows, rows / 2);
    }
}

enum { CHOOSE_WIDE = FOLD_BYTES / sizeof(int64_t) };

/* As choose_key, of i64 or f64. */
INLINE fold_i64 choose_wide_key(const int64_t *from, int cols, bool largest, const bool is_float)
{
    fold_i64 x = { 0 };
    if (cols == CHOOSE_WIDE) memcpy(&x, from, sizeof x);
    else
        for (int c = 0; c < cols; c++) x[c] = from[c];
    if (is_float) {
        const fold_f64 v = (fold_f64)x + 0.0;
        const fold_i64 b = (fold_i64)v, is_nan = v != v;
        x = ((b ^ ((b >> 63) & INT64_MAX)) & ~is_nan) | (is_nan & INT64_MAX);
    }
    return largest ? x : ~x;
}

/* A number goes into the sorted lists of `have` numbers, and what is behind it moves down. */
INLINE void choose_wide_insert(fold_i64 *best, fold_i64 *at, const int64_t have, fold_i64 *key, fold_i64 *row)
{
    fold_i64 goes = { 0 };
    UNROLL for (int64_t j = 0; j < have; j++)
    {
        goes |= best[j] < *key;
        const fold_i64 was = best[j], was_at = at[j];
        best[j] = (*key & goes) | (was & ~goes);
        at[j] = (*row & goes) | (was_at & ~goes);
        *key = (was & goes) | (*key & ~goes);
        *row = (was_at & goes) | (*row & ~goes);
    }
}

/* As choose_held_of. */
INLINE void choose_wide_held_of(fold_i64 *best, fold_i64 *at, const int64_t *x, int64_t i, int64_t n, int64_t step,
                                int cols, const int k, bool largest, const bool is_float)
{
    fold_i64 b[CHOOSE_HELD], a[CHOOSE_HELD];
    UNROLL for (int j = 0; j < k; j++) b[j] = best[j], a[j] = at[j];
    for (; i < n; i++, x += step) {
        fold_i64 key = choose_wide_key(x, cols, largest, is_float), row = (fold_i64){ 0 } + i;
        if (i >= (int64_t)CHOOSE_EARLY * k && !fold_any(b[k - 1] < key)) continue;
        choose_wide_insert(b, a, k, &key, &row);
    }
    UNROLL for (int j = 0; j < k; j++) best[j] = b[j], at[j] = a[j];
}

/* As choose_top_of, of i64 or f64. */
INLINE void choose_wide_top_of(int32_t *place, const int64_t *x, int64_t n, int64_t step, int cols, int64_t k,
                               bool largest, const bool is_float)
{
    fold_i64 best[CHOOSE_TOP], at[CHOOSE_TOP];
    int64_t i = 0;
    for (; i < n && (i < k || k > CHOOSE_HELD); i++, x += step) {
        const int64_t have = i < k ? i : k;
        fold_i64 key = choose_wide_key(x, cols, largest, is_float), row = (fold_i64){ 0 } + i;
        if (have == k && !fold_any(best[k - 1] < key)) continue;
        choose_wide_insert(best, at, have, &key, &row);
        if (have == k) continue;
        best[have] = key;
        at[have] = row;
    }
    switch (i < n ? k : 0) {
    case 0: break;
    case 1: choose_wide_held_of(best, at, x, i, n, step, cols, 1, largest, is_float); break;
    case 2: choose_wide_held_of(best, at, x, i, n, step, cols, 2, largest, is_float); break;
    case 3: choose_wide_held_of(best, at, x, i, n, step, cols, 3, largest, is_float); break;
    default: choose_wide_held_of(best, at, x, i, n, step, cols, CHOOSE_HELD, largest, is_float); break;
    }
    for (int64_t j = 0; j < k; j++)
        for (int c = 0; c < cols; c++) place[j * CHOOSE_COLS + c] = (int32_t)at[j][c];
}

static void choose_top(int32_t *place, const void *x, int64_t n, int64_t step, int64_t cols, int64_t k, bool largest,
                       sinter_dtype type)
{
    const bool is_wide = type == SINTER_DTYPE_I64 || type == SINTER_DTYPE_F64;
    const int64_t each = is_wide ? (int64_t)CHOOSE_WIDE : L;
    for (int64_t c = 0; c < cols; c += each) {
        const int width = (int)(cols - c < each ? cols - c : each);
        const float *x32 = (const float *)x + c;
        const int64_t *x64 = (const int64_t *)x + c;
        if (type == SINTER_DTYPE_F32) choose_top_of(place + c, x32, n, step, width, k, largest, true);
        else if (!is_wide) choose_top_of(place + c, x32, n, step, width, k, largest, false);
        else if (width < each) choose_wide_top_of(place + c, x64, n, step, width, k, largest, type == SINTER_DTYPE_F64);
        else if (type == SINTER_DTYPE_F64) choose_wide_top_of(place + c, x64, n, step, CHOOSE_WIDE, k, largest, true);
        else choose_wide_top_of(place + c, x64, n, step, CHOOSE_WIDE, k, largest, false);
    }
}

/* The row that is written last stays. Lanes of a byte count the rows of blocks. */
#define CHOOSE_PLACES(name, type, number, most, same)                                                                  \
    static void choose_places_##name(int64_t *place, int64_t step, const void *from, int64_t along, const void *best,  \
                                     int64_t rows, int64_t n, bool last)                                               \
    {                                                                                                                  \
        typedef type   places_v __attribute__((vector_size(FOLD_BYTES)));                                              \
        typedef number mask __attribute__((vector_size(FOLD_BYTES)));                                                  \
        enum { LANES = FOLD_BYTES / sizeof(type), SOME = 2 * LANES };                                                  \
        for (int64_t at_c = 0; at_c < n; at_c += SOME) {                                                               \
            const int64_t c = n - at_c < SOME && n > SOME ? n - SOME : at_c; /* the last ones whole */                 \
            const int64_t width = n - c < SOME ? n - c : SOME;                                                         \
            const type   *x = (const type *)from + c;                                                                  \
            places_v      v[2] = { 0 }, here[2] = { 0 };                                                               \
            memcpy(v, (const type *)best + c, (size_t)width * sizeof *x);                                              \
            for (int64_t done = 0, count; done < rows; done += count) {                                                \
                mask   at[2] = { 0 }, found[2] = { 0 };                                                                \
                number row[SOME], is_found[SOME];                                                                      \
                count = rows - done < (most) ? rows - done : (most);                                                   \
                for (int64_t i = 0; i < count; i++) {                                                                  \
                    const int64_t r = last ? done + i : rows - 1 - done - i;                                           \
                    if (width == SOME) memcpy(here, x + r * along, sizeof here);                                       \
                    else memcpy(here, x + r * along, (size_t)width * sizeof *x);                                       \
                    UNROLL for (int k = 0; k < 2; k++)                                                                 \
                    {                                                                                                  \
                        const mask m = (mask)same(here[k], v[k]);                                                      \
                        at[k] = (((mask){ 0 } + (number)i) & m) | (at[k] & ~m);                                        \
                        found[k] |= m;                                                                                 \
                    }                                                                                                  \
                }                                                                                                      \
                memcpy(row, at, sizeof at);                                                                            \
                memcpy(is_found, found, sizeof found);                                                                 \
                for (int64_t i = 0; i < width; i++)                                                                    \
                    if (is_found[i])                                                                                   \
                        place[(c + i) * step] = last ? done + (int64_t)row[i] : rows - 1 - done - (int64_t)row[i];     \
            }                                                                                                          \
        }                                                                                                              \
    }
#define CHOOSE_SAME(a, b) ((a) == (b))
#define CHOOSE_SAME_F64(a, b) (((a) == (b)) | (((a) != (a)) & ((b) != (b))))
CHOOSE_PLACES(f64, double, uint64_t, INT32_MAX, CHOOSE_SAME_F64)
CHOOSE_PLACES(8, uint8_t, uint8_t, UINT8_MAX + 1, CHOOSE_SAME)
CHOOSE_PLACES(32, uint32_t, uint32_t, INT32_MAX, CHOOSE_SAME)
CHOOSE_PLACES(64, uint64_t, uint64_t, INT32_MAX, CHOOSE_SAME)

static const choose_set choose_loops = {
    .run = choose_run, .rows = choose_rows, .seek = choose_seek, .top = choose_top,
    .sort = choose_sort,
    .places_f64 = choose_places_f64, .places_8 = choose_places_8,
    .places_32 = choose_places_32, .places_64 = choose_places_64,
};
