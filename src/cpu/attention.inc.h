/* SPDX-License-Identifier: Apache-2.0 */
/* attention.inc.h - the text of attention's loops, included once by each instruction set's file.
 *
 * Beside the products themselves: what happens to a row of scores before its exponentials, and products for rows so few
 * that packing would cost more than it saves. */
enum { KEYS = 4 };

static inline vec finish_vec(vec x, float cap, const float *add, const uint8_t *allow, int left)
{
    if (cap > 0) x = v_mul(v_set(cap), v_tanh(v_div(x, v_set(cap))));
    if (add) x = v_add(x, v_load_n(add, left));
    if (allow) {
        uint8_t some[VEC_LANES] = { 0 };
        if (left < L) {
            memcpy(some, allow, (size_t)left);
            allow = some;
        }
        x = v_blend(vi_eq(vi_load_u8(allow), vi_set(0)), v_set(-INFINITY), x);
    }
    return x;
}

static float finish(float *x, int64_t n, float cap, const float *add, const uint8_t *allow)
{
    if (!(cap > 0) && !add && !allow) return most(reduce_max(x, n));
    vec a0 = v_set(-INFINITY), a1 = a0, a2 = a0, a3 = a0;
    int64_t i = 0;
    if (!(cap > 0) && !allow) {
        for (; i + 4 * L <= n; i += 4 * L) {
            const vec b0 = v_add(v_load(x + i), v_load(add + i)), b1 = v_add(v_load(x + i + L), v_load(add + i + L)),
                      b2 = v_add(v_load(x + i + 2 * L), v_load(add + i + 2 * L)),
                      b3 = v_add(v_load(x + i + 3 * L), v_load(add + i + 3 * L));
            v_store(x + i, b0);
            v_store(x + i + L, b1);
            v_store(x + i + 2 * L, b2);
            v_store(x + i + 3 * L, b3);
            a0 = nan_most(a0, b0);
            a1 = nan_most(a1, b1);
            a2 = nan_most(a2, b2);
            a3 = nan_most(a3, b3);
        }
    }
    for (; i < n; i += L) {
        const int left = n - i < L ? (int)(n - i) : L;
        const vec b = finish_vec(v_load_n(x + i, left), cap, add ? add + i : NULL, allow ? allow + i : NULL, left);
        v_store(x + i, b);
        a0 = nan_most(a0, left == L ? b : v_blend(m_first(left), b, v_set(-INFINITY)));
    }
    return most(nan_most(nan_most(a0, a1), nan_most(a2, a3)));
}

static float exp_sum(float *x, int64_t n, float top)
{
    const vec shift = v_set(top);
    vec s0 = v_zero(), s1 = s0;
    int64_t i = 0;
    for (; i + 2 * L <= n; i += 2 * L) {
        const vec a = v_exp_neg(v_sub(v_load(x + i), shift)), b = v_exp_neg(v_sub(v_load(x + i + L), shift));
        v_store(x + i, a);
        v_store(x + i + L, b);
        s0 = v_add(s0, a);
        s1 = v_add(s1, b);
    }
    for (; i < n; i += L) {
        const int left = n - i < L ? (int)(n - i) : L;
        const vec a = v_exp_neg(v_sub(v_load_n(x + i, left), shift));
        v_store(x + i, a);
        s0 = v_add(s0, left < L ? v_blend(m_first(left), a, v_zero()) : a);
    }
    return v_sum(v_add(s0, s1));
}

static void dots(float *y, const float *q, const float *k, int64_t stride, int64_t keys, int64_t n, float scale)
{
    int64_t j = 0;
    for (; j + KEYS <= keys; j += KEYS, k += KEYS * stride) {
        const float *k1 = k + stride, *k2 = k1 + stride, *k3 = k2 + stride;
        vec a0 = v_zero(), a1 = a0, a2 = a0, a3 = a0;
        int64_t i = 0;
        for (; i + L <= n; i += L) {
            const vec x = v_load(q + i);
            a0 = v_fma(x, v_load(k + i), a0);
            a1 = v_fma(x, v_load(k1 + i), a1);
            a2 = v_fma(x, v_load(k2 + i), a2);
            a3 = v_fma(x, v_load(k3 + i), a3);
        }
        if (i < n) {
            const int left = (int)(n - i);
            const vec x = v_load_n(q + i, left);
            a0 = v_fma(x, v_load_n(k + i, left), a0);
            a1 = v_fma(x, v_load_n(k1 + i, left), a1);
            a2 = v_fma(x, v_load_n(k2 + i, left), a2);
            a3 = v_fma(x, v_load_n(k3 + i, left), a3);
        }
        y[j] = scale * v_sum(a0);
        y[j + 1] = scale * v_sum(a1);
        y[j + 2] = scale * v_sum(a2);
        y[j + 3] = scale * v_sum(a3);
    }
    for (; j < keys; j++, k += stride) {
        vec a = v_zero();
        for (int64_t i = 0; i < n; i += L) {
            const int left = n - i < L ? (int)(n - i) : L;
            a = v_fma(v_load_n(q + i, left), v_load_n(k + i, left), a);
        }
        y[j] = scale * v_sum(a);
    }
}

static void weigh(float *y, const float *w, const float *v, int64_t stride, int64_t keys, int64_t n)
{
    int64_t i = 0;
    for (; i + 4 * L <= n; i += 4 * L) {
        const float *at = v + i;
        vec a0 = v_load(y + i), a1 = v_load(y + i + L), a2 = v_load(y + i + 2 * L), a3 = v_load(y + i + 3 * L);
        vec b0 = v_zero(), b1 = b0, b2 = b0, b3 = b0;
        int64_t j = 0;
        for (; j + 2 <= keys; j += 2, at += 2 * stride) {
            const vec x = v_set(w[j]), z = v_set(w[j + 1]);
            a0 = v_fma(x, v_load(at), a0);
            a1 = v_fma(x, v_load(at + L), a1);
            a2 = v_fma(x, v_load(at + 2 * L), a2);
            a3 = v_fma(x, v_load(at + 3 * L), a3);
            b0 = v_fma(z, v_load(at + stride), b0);
            b1 = v_fma(z, v_load(at + stride + L), b1);
            b2 = v_fma(z, v_load(at + stride + 2 * L), b2);
            b3 = v_fma(z, v_load(at + stride + 3 * L), b3);
        }
        if (j < keys) {
            const vec x = v_set(w[j]);
            a0 = v_fma(x, v_load(at), a0);
            a1 = v_fma(x, v_load(at + L), a1);
            a2 = v_fma(x, v_load(at + 2 * L), a2);
            a3 = v_fma(x, v_load(at + 3 * L), a3);
        }
        v_store(y + i, v_add(a0, b0));
        v_store(y + i + L, v_add(a1, b1));
        v_store(y + i + 2 * L, v_add(a2, b2));
        v_store(y + i + 3 * L, v_add(a3, b3));
    }
    for (; i < n; i += L) {
        const int left = n - i < L ? (int)(n - i) : L;
        vec a = v_load_n(y + i, left), b = v_zero();
        int64_t j = 0;
        for (; j + 2 <= keys; j += 2) {
            a = v_fma(v_set(w[j]), v_load_n(v + j * stride + i, left), a);
            b = v_fma(v_set(w[j + 1]), v_load_n(v + (j + 1) * stride + i, left), b);
        }
        if (j < keys) a = v_fma(v_set(w[j]), v_load_n(v + j * stride + i, left), a);
        v_store_n(y + i, v_add(a, b), left);
    }
}

static const attention_set attention_loops = { .finish = finish, .exp_sum = exp_sum, .dots = dots, .weigh = weigh };
