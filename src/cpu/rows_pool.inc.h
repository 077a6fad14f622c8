/* SPDX-License-Identifier: Apache-2.0 */
/* rows_pool.inc.h - pools of planes whose widths are adjacent, and of 16 bits; included once by each instruction set's
 * file.
 *
 * A few rows at a time: the input rows of each window are folded to one line, then each line is folded along the width.
 * No line is read right after its store: a load across two stores would wait for both. Loops end with a whole vector
 * that overlaps the one before. */

INLINE vec pool_load(const char *x, int64_t at, sinter_dtype type)
{
    switch (type) {
    case SINTER_DTYPE_F16: return v_load_f16((const uint16_t *)(const void *)x + at);
    case SINTER_DTYPE_BF16: return v_load_bf16((const uint16_t *)(const void *)x + at);
    case SINTER_DTYPE_U8: return vi_to_f32(vi_load_u8((const uint8_t *)x + at));
    case SINTER_DTYPE_I8: return vi_to_f32(vi_load_i8((const int8_t *)x + at));
    default: return v_load((const float *)(const void *)x + at);
    }
}

/* Only the first n elements are read. */
INLINE vec pool_load_n(const char *x, int64_t at, sinter_dtype type, int64_t n)
{
    if (type == SINTER_DTYPE_F32) return v_load_n((const float *)(const void *)x + at, (int)n);
    const int64_t size = type == SINTER_DTYPE_F16 || type == SINTER_DTYPE_BF16 ? 2 : 1;
    _Alignas(64) char part[2 * VEC_LANES] = { 0 };
    memcpy(part, x + at * size, (size_t)(n * size));
    return pool_load(part, 0, type);
}

INLINE void pool_narrow_as(char *y, const float *x, int64_t n, sinter_dtype type)
{
    const int64_t size = type == SINTER_DTYPE_F16 || type == SINTER_DTYPE_BF16 ? 2 : 1;
    for (int64_t i = 0; i < n; i += L) {
        _Alignas(64) char part[2 * VEC_LANES];
        const int64_t left = n - i < L ? n - i : L;
        char *to = left < L ? part : y + i * size;
        const vec v = left < L ? v_load_n(x + i, (int)left) : v_load(x + i);
        if (type == SINTER_DTYPE_F16) v_store_f16((uint16_t *)(void *)to, v);
        else if (type == SINTER_DTYPE_BF16) v_store_bf16((uint16_t *)(void *)to, v);
        else vi_store_8((uint8_t *)to, v_to_int(v));
        if (left < L) memcpy(y + i * size, part, (size_t)(left * size));
    }
}

/* The results in p->wide, in p's type, from element `at` of y on. */
static void pool_narrow(const rows_pool *p, int64_t at)
{
    switch (p->type) {
    case SINTER_DTYPE_F16: pool_narrow_as(p->y + at * 2, p->wide, p->n, SINTER_DTYPE_F16); break;
    case SINTER_DTYPE_BF16: pool_narrow_as(p->y + at * 2, p->wide, p->n, SINTER_DTYPE_BF16); break;
    default: pool_narrow_as(p->y + at, p->wide, p->n, SINTER_DTYPE_U8); break;
    }
}

INLINE void fold_narrow_as(char *y, const char *const *x, int64_t count, int64_t n, float scale, sinter_dtype type)
{
    for (int64_t i = 0; i < n; i += L) {
        const int64_t left = n - i;
        _Alignas(64) float part[VEC_LANES];
        vec a = left < L ? pool_load_n(x[0], i, type, left) : pool_load(x[0], i, type);
        for (int64_t k = 1; k < count; k++)
            a = v_add(a, left < L ? pool_load_n(x[k], i, type, left) : pool_load(x[k], i, type));
        v_store(part, v_mul(a, v_set(scale)));
        pool_narrow_as(y + 2 * i, part, left < L ? left : L, type);
    }
}

/* The largest of 16-bit floats by their bits: of numbers of which one has no sign, the largest integer; of those that
 * all have one, the least integer without a sign. nan: bits of infinity; those of a NaN are more. */
INLINE veci narrow_most(const char *const *x, int64_t count, int64_t at, int64_t size, veci nan)
{
    const veci sign = vi_set((int32_t)0x80008000u), first = bytes_load_n(x[0] + at, size);
    veci most = first, least = first, top = first;
    for (int64_t k = 1; k < count; k++) {
        const veci v = bytes_load_n(x[k] + at, size);
        most = vi16_max(most, v);
        least = vu16_min(least, v);
        top = vu16_max(top, v);
    }
    /* Bits of all ones where the most has a sign: then all have one. */
    const veci is_below = vi_sra16(most, 15);
    const veci a = vi_xor(most, vi_and(is_below, vi_xor(most, least)));
    /* A NaN without a sign is the most, one with a sign the top. */
    const veci of_top = vu16_max(top, vi_or(nan, sign)), of_most = vi16_max(most, nan);
    const veci off = vi_or(vi_xor(of_top, vi_or(nan, sign)), vi_xor(of_most, nan));
    const veci is_nan = vi_sra16(vi_sll16(vu16_min(off, vi_set(0x10001)), 15), 15);
    return vi_or(a, vi_and(is_nan, vi_set(0x7FFF7FFF)));
}

static void fold_narrow_most(char *y, const char *const *x, int64_t count, int64_t n, int32_t infinity)
{
    enum { SIZE = sizeof(veci) };
    const veci nan = vi_set(infinity * 0x10001);
    int64_t i = 0;
    for (; i + SIZE <= 2 * n; i += SIZE) {
        const veci a = narrow_most(x, count, i, SIZE, nan);
        memcpy(y + i, &a, sizeof a);
    }
    if (i == 2 * n) return;
    const veci a = narrow_most(x, count, i, 2 * n - i, nan);
    memcpy(y + i, &a, (size_t)(2 * n - i));
}

static void fold_narrow(char *y, const char *const *x, int64_t count, int64_t n, bool is_max, float scale,
                        sinter_dtype type)
{
    if (is_max) fold_narrow_most(y, x, count, n, type == SINTER_DTYPE_F16 ? 0x7C00 : 0x7F80);
    else if (type == SINTER_DTYPE_F16) fold_narrow_as(y, x, count, n, scale, SINTER_DTYPE_F16);
    else fold_narrow_as(y, x, count, n, scale, SINTER_DTYPE_BF16);
}

/* The last `left` numbers of a window that has at least a vector of them: a maximum may see some twice. */
static inline vec pool_overlap(const float *from, int left) { return v_load(from + left - L); }
static inline float pool_lanes_most(vec a) { return m_any(v_is_nan(a)) ? NAN : v_most(a); }
static inline vec pool_same(vec v) { return v; }
static inline vec pool_square(vec v) { return v_mul(v, v); }

/* L numbers, each `step` behind the one before. */
INLINE vec pool_step(const float *from, int step)
{
    if (step == 1) return v_load(from);
    const vec a = v_even(v_load(from), v_load(from + L));
    return step == 2 ? a : v_even(a, v_even(v_load(from + 2 * L), v_load(from + 3 * L)));
}

/* Lanes 0, step, 2 step and so on; then lane 0. */
INLINE veci pool_places(int step)
{
    int32_t at[L];
    for (int i = 0; i < L; i++) at[i] = i * step < L ? i * step : 0;
    return vi_load(at);
}
INLINE vec pool_lanes(vec a, veci at)
{
#if VEC_LANES == 4
    float from[L], to[L];
    int32_t lane[L];
    v_store(from, a);
    vi_store(lane, at);
    for (int i = 0; i < L; i++) to[i] = from[lane[i]];
    return v_load(to);
#else
    return v_permute(a, at);
#endif
}

#define POOL_FOLDS(name, map, join, tail, lanes)                                                                \
    INLINE void name##_down(float *line, const char *x, const int64_t *row, int count, int64_t n,               \
                            sinter_dtype type)                                                                  \
    {                                                                                                           \
        if (n < L) {                                                                                            \
            vec a = map(pool_load_n(x, row[0], type, n));                                                       \
            for (int k = 1; k < count; k++) a = join(a, map(pool_load_n(x, row[k], type, n)));                  \
            v_store_n(line, a, (int)n);                                                                         \
            return;                                                                                             \
        }                                                                                                       \
        const int64_t first = row[0], second = row[count > 1 ? 1 : 0], third = row[count > 2 ? 2 : 0];          \
        for (int64_t i = 0; i < n; i += L) {                                                                    \
            const int64_t at = i + L <= n ? i : n - L;                                                          \
            vec a = map(pool_load(x, first + at, type));                                                        \
            if (count > 1) a = join(a, map(pool_load(x, second + at, type)));                                   \
            if (count > 2) a = join(a, map(pool_load(x, third + at, type)));                                    \
            for (int k = 3; k < count; k++) a = join(a, map(pool_load(x, row[k] + at, type)));                  \
            v_store(line + at, a);                                                                              \
        }                                                                                                       \
    }                                                                                                           \
    INLINE vec name##_at(const float *from, int taps, int64_t dilation, int step)                               \
    {                                                                                                           \
        vec a = pool_step(from, step);                                                                          \
        for (int k = 1; k < taps; k++) a = join(a, pool_step(from += dilation, step));                          \
        return a;                                                                                               \
    }                                                                                                           \
    INLINE void name##_across(float *y, const float *line, int64_t n, int taps, int64_t dilation, int step,     \
                              const float *scale)                                                               \
    {                                                                                                           \
        if (n < L) {                                                                                            \
            const vec a = name##_at(line, taps, dilation, step);                                                \
            v_store_n(y, scale ? v_mul(a, v_load_n(scale, (int)n)) : a, (int)n);                                \
            return;                                                                                             \
        }                                                                                                       \
        for (int64_t i = 0; i < n; i += L) {                                                                    \
            const int64_t at = i + L <= n ? i : n - L;                                                          \
            const vec a = name##_at(line + at * step, taps, dilation, step);                                    \
            v_store(y + at, scale ? v_mul(a, v_load(scale + at)) : a);                                          \
        }                                                                                                       \
    }                                                                                                           \
    static void name##_apart(const rows_pool *p, float *y, const float *line, const float *scale)               \
    {                                                                                                           \
        int64_t step = p->step, taps = p->taps, count = (p->n - 1) * step + (taps - 1) * p->dilation + 1;       \
        float half[POOL_COLS / 2 + POOL_SPARE];                                    \
        for (; p->dilation == 1 && step % 2 == 0 && taps % 2 == 0; step /= 2, taps /= 2, count /= 2) {          \
            for (int64_t i = 0; 2 * i < count; i += L) { /* pairs */                                            \
                const vec a = v_load(line + 2 * i), b = v_load(line + 2 * i + L);                               \
                v_store(half + i, join(v_even(a, b), v_odd(a, b)));                                             \
            }                                                                                                   \
            line = half;                                                                                        \
        }                                                                                                       \
        if (step == 1) {                                                                                        \
            name##_across(y, line, p->n, (int)taps, p->dilation, 1, scale);                                     \
            return;                                                                                             \
        }                                                                                                       \
        if (taps < L || p->dilation != 1) { /* windows at all places, of which a few are wanted */              \
            const int64_t each = (L - 1) / step + 1;                                                            \
            const veci at = pool_places((int)step);                                                             \
            for (int64_t i = 0; i < p->n; i += each, line += each * step) {                                     \
                vec a = taps == 3   ? name##_at(line, 3, p->dilation, 1)                                        \
                        : taps == 5 ? name##_at(line, 5, p->dilation, 1)                                        \
                                    : name##_at(line, (int)taps, p->dilation, 1);                               \
                a = pool_lanes(a, at);                                                                         \
                const int some = (int)(p->n - i < each ? p->n - i : each);                                      \
                if (i + L <= p->n) v_store(y + i, scale ? v_mul(a, v_load(scale + i)) : a);                     \
                else v_store_n(y + i, scale ? v_mul(a, v_load_n(scale + i, some)) : a, some);                   \
            }                                                                                                   \
            return;                                                                                             \
        }                                                                                                       \
        for (int64_t i = 0; i < p->n; i++, line += step) { /* along a window */                                 \
            vec a = v_load(line);                                                                               \
            int64_t k = L;                                                                                      \
            for (; k + L <= taps; k += L) a = join(a, v_load(line + k));                                        \
            if (k < taps) a = join(a, tail(line + k, (int)(taps - k)));                                         \
            y[i] = scale ? lanes(a) * scale[i] : lanes(a);                                                      \
        }                                                                                                       \
    }                                                                                                           \
    static void name##_one(const rows_pool *p, float *line, int64_t i)                                          \
    {                                                                                                           \
        const int64_t *row = p->row + p->first[i];                                                              \
        const int32_t count = p->first[i + 1] - p->first[i];                                                    \
        if (!count || !p->read) {                                                                               \
            for (int64_t k = 0; k < p->read; k++) line[k] = p->seed;                                            \
            return;                                                                                             \
        }                                                                                                       \
        switch (p->type) {                                                                                      \
        case SINTER_DTYPE_F16: name##_down(line, p->x, row, count, p->read, SINTER_DTYPE_F16); return;          \
        case SINTER_DTYPE_BF16: name##_down(line, p->x, row, count, p->read, SINTER_DTYPE_BF16); return;        \
        case SINTER_DTYPE_U8: name##_down(line, p->x, row, count, p->read, SINTER_DTYPE_U8); return;            \
        case SINTER_DTYPE_I8: name##_down(line, p->x, row, count, p->read, SINTER_DTYPE_I8); return;            \
        default: break;                                                                                         \
        }                                                                                                       \
        switch (count) {                                                                                        \
        case 1: name##_down(line, p->x, row, 1, p->read, SINTER_DTYPE_F32); break;                              \
        case 2: name##_down(line, p->x, row, 2, p->read, SINTER_DTYPE_F32); break;                              \
        case 3: name##_down(line, p->x, row, 3, p->read, SINTER_DTYPE_F32); break;                              \
        default: name##_down(line, p->x, row, count, p->read, SINTER_DTYPE_F32); break;                         \
        }                                                                                                       \
    }                                                                                                           \
    static void name##_line(const rows_pool *p, float *y, const float *line, const float *scale)                \
    {                                                                                                           \
        if (p->step > 2 && p->step != 4) {                                                                      \
            name##_apart(p, y, line, scale);                                                                    \
            return;                                                                                             \
        }                                                                                                       \
        const int taps = (int)p->taps, few = taps <= 3 && p->dilation == 1 ? taps : 0;                          \
        const int key = (p->step == 4 ? 16 : p->step == 2 ? 8 : 0) + few;                                       \
        switch (key) {                                                                                          \
        case 2: name##_across(y, line, p->n, 2, 1, 1, scale); break;                                            \
        case 3: name##_across(y, line, p->n, 3, 1, 1, scale); break;                                            \
        case 8 + 2: name##_across(y, line, p->n, 2, 1, 2, scale); break;                                        \
        case 8 + 3: name##_across(y, line, p->n, 3, 1, 2, scale); break;                                        \
        case 16: case 16 + 1:                                                                                   \
        case 16 + 2:                                                                                            \
        case 16 + 3: name##_across(y, line, p->n, taps, p->dilation, 4, scale); break;                          \
        case 8: name##_across(y, line, p->n, taps, p->dilation, 2, scale); break;                               \
        case 8 + 1: name##_across(y, line, p->n, 1, 1, 2, scale); break;                                        \
        default: name##_across(y, line, p->n, taps, p->dilation, 1, scale); break;                              \
        }                                                                                                       \
    }                                                                                                           \
    static void name(const rows_pool *p)                                                                        \
    {                                                                                                           \
        for (int64_t begin = 0; begin < p->rows; begin += p->lines) {                                           \
            const int64_t count = p->rows - begin < p->lines ? p->rows - begin : p->lines;                      \
            for (int64_t i = 0; i < count; i++) name##_one(p, p->line + i * p->pitch + p->before, begin + i);   \
            for (int64_t i = 0; i < count; i++) {                                                               \
                float *y = p->type == SINTER_DTYPE_F32 ? (float *)(void *)p->y + p->y_row[begin + i] : p->wide; \
                name##_line(p, y, p->line + i * p->pitch, p->scale ? p->scale[begin + i] : NULL);               \
                if (y == p->wide) pool_narrow(p, p->y_row[begin + i]);                                          \
            }                                                                                                   \
        }                                                                                                       \
    }
POOL_FOLDS(pool_max, pool_same, nan_most, pool_overlap, pool_lanes_most)
POOL_FOLDS(pool_sum, pool_same, v_add, v_load_n, v_sum)
POOL_FOLDS(pool_abs, v_abs, v_add, v_load_n, v_sum)
POOL_FOLDS(pool_squares, pool_square, v_add, v_load_n, v_sum)

static void rows_root(float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i += L) {
        const int left = n - i < L ? (int)(n - i) : L;
        v_store_n(y + i, v_sqrt(v_load_n(y + i, left)), left);
    }
}
