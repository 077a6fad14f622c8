/* SPDX-License-Identifier: Apache-2.0 */
/* ref_rnn.c - lstm, gru and rnn, as ONNX defines them.
 *
 *   rnn   h' = f(x W + h R + b)
 *   gru   z, r = f(x W + h R + b);  n = g(x Wn + bw + r * (h Rn + br))  or  g(x Wn + bw + (r * h) Rn + br)
 *         h' = (1 - z) * n + z * h
 *   lstm  i, f = f(x W + h R + b + P * c);  n = g(x W + h R + b);  c' = f * c + i * n
 *         o = f(x W + h R + b + Po * c');  h' = o * h(c')
 *
 * One sequence of one direction at a time, its state in double. Gates are stored in ONNX's order: lstm iofc, gru zrh.
 */
#include "ops/ref_loops.h"
#include "ops/rnn.h"
#include <math.h>

typedef struct cell {
    const ref_call *c;
    uint32_t gates;
    int64_t hidden, size_in;
    double clip;
    bool is_linear_first, has_joint_gate; /* linear_before_reset; input_forget */
    const rnn_activation *activation;     /* of the direction */
    view x, w, r;                         /* widened */
    int64_t direction;
    double *from_x, *from_h; /* [gates * hidden]: x W + bw, h R + br */
    double *h, *cell_state;
    double *h_reset; /* gru: r * h */
} cell;

static double clipped(const cell *k, double v)
{
    return k->clip > 0 && v > k->clip ? k->clip : k->clip > 0 && v < -k->clip ? -k->clip : v; /* NaN stays */
}

static double gate(const cell *k, uint32_t activation, double v)
{
    return rnn_activation_eval(&k->activation[activation], clipped(k, v));
}

static double bias_of(const cell *k, int64_t i)
{
    if (!ref_has_in(k->c, 3)) return 0;
    const view *b = &k->c->in[3];
    return view_load_f64(b, k->direction * b->stride[0] + i * b->stride[1]);
}

/* What gate `gate_index` sees of the cell's state; an absent peephole adds nothing, even of an infinity. */
static double peephole(const cell *k, int64_t gate_index, int64_t i, double state)
{
    if (!ref_has_in(k->c, 7)) return 0;
    const view *p = &k->c->in[7];
    return view_load_f64(p, k->direction * p->stride[0] + (gate_index * k->hidden + i) * p->stride[1]) * state;
}

/* Row `row` of the recurrence weight times the vector `v`. */
static double recur(const cell *k, int64_t row, const double *v)
{
    const int64_t at = k->direction * k->r.stride[0] + row * k->r.stride[1];
    double sum = 0;
    for (int64_t i = 0; i < k->hidden; i++) sum += ref_wide_load(&k->r, at + i * k->r.stride[2]).f * v[i];
    return sum;
}

static void lstm_step(cell *k)
{
    const int64_t n = k->hidden;
    for (int64_t j = 0; j < n; j++) {
        const double c = k->cell_state[j];
        const double sum_i = k->from_x[j] + k->from_h[j] + peephole(k, 0, j, c);
        const double sum_f = k->from_x[2 * n + j] + k->from_h[2 * n + j] + peephole(k, 2, j, c);
        const double i = gate(k, 0, sum_i);
        const double f = k->has_joint_gate ? 1 - i : gate(k, 0, sum_f);
        const double fresh = gate(k, 1, k->from_x[3 * n + j] + k->from_h[3 * n + j]);
        const double next = f * c + i * fresh;
        const double o = gate(k, 0, k->from_x[n + j] + k->from_h[n + j] + peephole(k, 1, j, next));
        k->cell_state[j] = next;
        k->h[j] = o * rnn_activation_eval(&k->activation[2], next);
    }
}

static void gru_step(cell *k)
{
    const int64_t n = k->hidden;
    double *z = k->from_x; /* gates take the place of their sums */
    double *r = k->from_x + n;
    for (int64_t j = 0; j < 2 * n; j++) k->from_x[j] = gate(k, 0, k->from_x[j] + k->from_h[j]);
    if (!k->is_linear_first) {
        for (int64_t j = 0; j < n; j++) k->h_reset[j] = r[j] * k->h[j];
    }
    for (int64_t j = 0; j < n; j++) {
        const double back =
            k->is_linear_first ? r[j] * k->from_h[2 * n + j] : recur(k, 2 * n + j, k->h_reset) + bias_of(k, 5 * n + j);
        const double fresh = gate(k, 1, k->from_x[2 * n + j] + back);
        k->from_h[j] = (1 - z[j]) * fresh + z[j] * k->h[j];
    }
    memcpy(k->h, k->from_h, (size_t)n * sizeof(*k->h));
}

static void rnn_step(cell *k)
{
    for (int64_t j = 0; j < k->hidden; j++) k->h[j] = gate(k, 0, k->from_x[j] + k->from_h[j]);
}

static void cell_step(cell *k, int64_t t, int64_t b)
{
    const int64_t n = k->hidden;
    const int64_t rows = k->gates * n;
    const int64_t at_x = t * k->x.stride[0] + b * k->x.stride[1];
    const int64_t at_w = k->direction * k->w.stride[0];
    for (int64_t row = 0; row < rows; row++) {
        const scalar dot =
            ref_dot(&k->x, at_x, k->x.stride[2], &k->w, at_w + row * k->w.stride[1], k->w.stride[2], k->size_in);
        k->from_x[row] = dot.f + bias_of(k, row);
        k->from_h[row] = recur(k, row, k->h) + bias_of(k, rows + row);
    }
    if (k->c->op == OP_lstm) lstm_step(k);
    else if (k->c->op == OP_gru) gru_step(k);
    else rnn_step(k);
}

static void state_load(const cell *k, uint32_t input, int64_t b, double *state)
{
    for (int64_t j = 0; j < k->hidden; j++) {
        const view *v = ref_has_in(k->c, input) ? &k->c->in[input] : NULL;
        state[j] = v ? view_load_f64(v, k->direction * v->stride[0] + b * v->stride[1] + j * v->stride[2]) : 0;
    }
}

static void state_store(const cell *k, uint32_t output, int64_t b, const double *state)
{
    if (!ref_has_out(k->c, output)) return;
    const view *v = &k->c->out[output];
    for (int64_t j = 0; j < k->hidden; j++) {
        view_store_f64(v, k->direction * v->stride[0] + b * v->stride[1] + j * v->stride[2], state[j]);
    }
}

/* y[t, direction, b, :] = state, or 0 where there is none. */
static void result_store(const cell *k, int64_t t, int64_t b, const double *state)
{
    if (!ref_has_out(k->c, 0)) return;
    const view *y = &k->c->out[0];
    const int64_t at = t * y->stride[0] + k->direction * y->stride[1] + b * y->stride[2];
    for (int64_t j = 0; j < k->hidden; j++) view_store_f64(y, at + j * y->stride[3], state ? state[j] : 0);
}

static void sequence_run(cell *k, bool is_reverse, int64_t b)
{
    const int64_t steps = k->x.dim[0];
    int64_t length = steps;
    if (ref_has_in(k->c, 4)) length = ref_clamp(view_load_i64(&k->c->in[4], b * k->c->in[4].stride[0]), 0, steps);
    state_load(k, 5, b, k->h);
    if (k->c->op == OP_lstm) state_load(k, 6, b, k->cell_state);
    for (int64_t i = 0; i < length; i++) {
        const int64_t t = is_reverse ? length - 1 - i : i;
        cell_step(k, t, b);
        result_store(k, t, b, k->h);
    }
    for (int64_t t = length; t < steps; t++) result_store(k, t, b, NULL);
    state_store(k, 1, b, k->h);
    if (k->c->op == OP_lstm) state_store(k, 2, b, k->cell_state);
}

static sinter_status recurrent_run(ref_call *c, bool is_linear_first, bool has_joint_gate)
{
    TRY(ref_check(c));
    cell k = { .c = c, .is_linear_first = is_linear_first, .has_joint_gate = has_joint_gate };
    uint32_t each;
    const rnn_common common = rnn_common_of(c->op, c->attrs, &k.gates, &each);
    rnn_activation activation[RNN_ACTIVATIONS_MAX];
    TRY(rnn_activations_parse(c->e, c->op, c->attrs, activation));
    bool is_f64 = false;
    for (uint32_t i = 0; i < 3; i++) is_f64 = is_f64 || c->in[i].dtype == SINTER_DTYPE_F64;
    const sinter_dtype wide = is_f64 ? SINTER_DTYPE_F64 : SINTER_DTYPE_F32;
    TRY(ref_widen(c, &c->in[0], wide, NULL, &k.x));
    TRY(ref_widen(c, &c->in[1], wide, NULL, &k.w));
    TRY(ref_widen(c, &c->in[2], wide, NULL, &k.r));
    k.clip = common.clip;
    k.hidden = k.r.dim[2];
    k.size_in = k.x.dim[2];
    const size_t rows = size_mul(k.gates, (size_t)k.hidden);
    k.from_x = ARENA_NEW(c->scratch, double, rows);
    k.from_h = ARENA_NEW(c->scratch, double, rows);
    k.h = ARENA_NEW(c->scratch, double, (size_t)k.hidden);
    k.cell_state = ARENA_NEW(c->scratch, double, (size_t)k.hidden);
    k.h_reset = ARENA_NEW(c->scratch, double, (size_t)k.hidden);
    if (!k.from_x || !k.from_h || !k.h || !k.cell_state || !k.h_reset)
        return FAIL_MEMORY(c->e, "the state of a recurrent layer");
    for (uint32_t d = 0; d < rnn_directions(common.direction); d++) {
        k.direction = d;
        k.activation = &activation[d * each];
        const bool is_reverse = d == 1 || common.direction == rnn_direction_reverse;
        for (int64_t b = 0; b < k.x.dim[1]; b++) sequence_run(&k, is_reverse, b);
    }
    return SINTER_OK;
}

sinter_status reference_lstm(ref_call *c)
{
    return recurrent_run(c, false, ((const attrs_lstm *)c->attrs)->input_forget != 0);
}

sinter_status reference_gru(ref_call *c)
{
    return recurrent_run(c, ((const attrs_gru *)c->attrs)->linear_before_reset != 0, false);
}

sinter_status reference_rnn(ref_call *c)
{
    return recurrent_run(c, false, false);
}
