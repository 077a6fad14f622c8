/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_rnn.inc.h - the text of the cells of recurrent layers, included once by each instruction set's file. */
static inline int lanes_left(int64_t i, int64_t n) { return n - i < L ? (int)(n - i) : L; }
static inline vec load(const float *p, int left) { return left == L ? v_load(p) : v_load_n(p, left); }
static inline void store(float *p, vec v, int left)
{
    if (left == L) v_store(p, v);
    else v_store_n(p, v, left);
}

static void lstm(const float *gate, const float *peep, float *c, float *h, int64_t n)
{
    for (int64_t i = 0; i < n; i += L) {
        const int left = lanes_left(i, n);
        const vec now = load(c + i, left);
        vec in = load(gate + i, left), out = load(gate + n + i, left), keep = load(gate + 2 * n + i, left);
        if (peep) {
            in = v_fma(load(peep + i, left), now, in);
            keep = v_fma(load(peep + 2 * n + i, left), now, keep);
        }
        const vec fresh = v_mul(v_sigmoid(in), v_tanh(load(gate + 3 * n + i, left)));
        const vec next = v_fma(v_sigmoid(keep), now, fresh);
        if (peep) out = v_fma(load(peep + n + i, left), next, out);
        store(c + i, next, left);
        store(h + i, v_mul(v_sigmoid(out), v_tanh(next)), left);
    }
}

/* (1 - z) * fresh + z * h */
static inline vec mix(vec z, vec fresh, vec h) { return v_fma(z, h, v_mul(v_sub(v_set(1.0f), z), fresh)); }

static void gru_linear(const float *from_x, const float *from_h, float *h, int64_t n)
{
    for (int64_t i = 0; i < n; i += L) {
        const int left = lanes_left(i, n);
        const vec z = v_sigmoid(v_add(load(from_x + i, left), load(from_h + i, left)));
        const vec r = v_sigmoid(v_add(load(from_x + n + i, left), load(from_h + n + i, left)));
        const vec fresh = v_tanh(v_fma(r, load(from_h + 2 * n + i, left), load(from_x + 2 * n + i, left)));
        store(h + i, mix(z, fresh, load(h + i, left)), left);
    }
}

static void gru_reset(const float *r, const float *h, float *reset, int64_t n)
{
    for (int64_t i = 0; i < n; i += L) {
        const int left = lanes_left(i, n);
        store(reset + i, v_mul(v_sigmoid(load(r + i, left)), load(h + i, left)), left);
    }
}

static void gru_mix(const float *z, const float *fresh, float *h, int64_t n)
{
    for (int64_t i = 0; i < n; i += L) {
        const int left = lanes_left(i, n);
        store(h + i, mix(v_sigmoid(load(z + i, left)), v_tanh(load(fresh + i, left)), load(h + i, left)), left);
    }
}

static void cell_tanh(const float *gate, float *h, int64_t n)
{
    for (int64_t i = 0; i < n; i += L) {
        const int left = lanes_left(i, n);
        store(h + i, v_tanh(load(gate + i, left)), left);
    }
}

static void cell_relu(const float *gate, float *h, int64_t n)
{
    for (int64_t i = 0; i < n; i += L) {
        const int left = lanes_left(i, n);
        store(h + i, v_max(v_zero(), load(gate + i, left)), left);
    }
}

static const rnn_set rnn_loops = { .lstm = lstm,
                                      .gru_linear = gru_linear,
                                      .gru_reset = gru_reset,
                                      .gru_mix = gru_mix,
                                      .tanh = cell_tanh,
                                      .relu = cell_relu };
