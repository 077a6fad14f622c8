/* SPDX-License-Identifier: Apache-2.0 */
/* rnn_cell.cuh - what both launches of a recurrent layer share: types, the cell, activations, rows of x, biases. */
#ifndef CUDA_DEVICE_RNN_CELL_CUH
#define CUDA_DEVICE_RNN_CELL_CUH

#include "lanes.cuh"
#include "line_args.h"
#include "rnn_args.h"

/* An lstm's cell feeds back undamped: it has digits to spare, so that a step adds nothing of its own to what it carries. */
struct float_pair { float high, low; };
template <int T> struct rnn_element { typedef float type; typedef float acc; typedef float_pair cell; };
template <> struct rnn_element<LINE_F64> { typedef double type; typedef double acc; typedef double cell; };
template <> struct rnn_element<LINE_F16> { typedef f16 type; typedef float acc; typedef float cell; };
template <> struct rnn_element<LINE_BF16> { typedef bf16 type; typedef float acc; typedef float cell; };
typedef rnn_element<X_TYPE>::type element;
typedef rnn_element<X_TYPE>::acc acc;
typedef rnn_element<X_TYPE>::cell cell_number;

DEVICE acc widen(double x) { return (acc)x; }
DEVICE acc widen(float x) { return (acc)x; }
DEVICE acc widen(f16 x) { return (acc)to_float(x); }
DEVICE acc widen(bf16 x) { return (acc)to_float(x); }
DEVICE void narrow(acc v, double &y) { y = (double)v; }
DEVICE void narrow(acc v, float &y) { y = (float)v; }
DEVICE void narrow(acc v, f16 &y) { y = to_f16((float)v); }
DEVICE void narrow(acc v, bf16 &y) { y = to_bf16((float)v); }
DEVICE float tanh_of(float x) { return tanhf(x); }
DEVICE double tanh_of(double x) { return tanh(x); }
DEVICE float expm1_of(float x) { return expm1f(x); }
DEVICE double expm1_of(double x) { return expm1(x); }
DEVICE float log1p_of(float x) { return log1pf(x); }
DEVICE double log1p_of(double x) { return log1p(x); }

DEVICE void set(float &c, float x) { c = x; }
DEVICE void set(double &c, double x) { c = x; }
DEVICE void set(float_pair &c, float x) { c = { x, 0 }; }
DEVICE float value_of(float c) { return c; }
DEVICE double value_of(double c) { return c; }
DEVICE float value_of(const float_pair &c) { return c.high; }
/* forget * c + in * fresh */
DEVICE float carried(float forget, float c, float in, float fresh) { return forget * c + in * fresh; }
DEVICE double carried(double forget, double c, double in, double fresh) { return forget * c + in * fresh; }
/* What the two products and their sum lost goes to the low part. */
DEVICE float_pair carried(float forget, const float_pair &c, float in, float fresh)
{
    const float p = forget * c.high, q = in * fresh, sum = p + q, was = sum - p;
    const float lost = (p - (sum - was)) + (q - was) + (fmaf(forget, c.high, -p) + fmaf(in, fresh, -q)) + forget * c.low;
    const float high = sum + lost;
    if (high - high != 0) return { sum, 0 };            /* an infinity, or not a number */
    return { high, lost - (high - sum) };
}

DEVICE acc at_of(address p, i64 i) { return widen(((const element *)p)[i]); }

DEVICE const element *x_row(const rnn_args &a, i32 r)
{
    return (const element *)a.x + r / a.batch * a.sx[0] + r % a.batch * a.sx[1];
}
/* Of row `row` of a direction's gates. */
DEVICE acc bias_of(const rnn_args &a, i32 direction, i32 row)
{
    if (!a.bias) return 0;
    const acc bias = at_of(a.bias, direction * a.sb[0] + row * a.sb[1]);
    /* The bias of the state's product joins here, unless a gate scales it. */
    if (CELL == RNN_CELL_GRU && LINEAR && row >= 2 * HIDDEN) return bias;
    return bias + at_of(a.bias, direction * a.sb[0] + (GATES * HIDDEN + row) * a.sb[1]);
}

/* Sigmoid or tanh without a branch, to 3 units of the last place; for halves to a quarter of theirs. */
DEVICE float usual(bool is_tanh, float x)
{
    const float z = is_tanh ? 2 * fabsf(x) : x, s = x * x;
    const float e = sizeof(element) == 2 ? exp2_flush(-1.44269504f * z) : expf(-z), r = reciprocal_normal(1 + e);
    const float near = (((-0.00627423291f * s + 0.021071674f) * s - 0.0538523085f) * s + 0.133325861f) * s - 0.333333176f;
    const float far = (1 - e) * r;
    return !is_tanh ? r : s < 0.3025f ? x + x * s * near : x < 0 ? -far : far;
}
DEVICE double usual(bool is_tanh, double x) { return is_tanh ? tanh(x) : 1 / (1 + exp(-x)); }

/* is_tanh: what f is where -DUSUAL says so; else it is a sigmoid. */
DEVICE acc activation(const rnn_act &f, bool is_tanh, acc x)
{
    if (USUAL) return usual(is_tanh, x);
    const acc alpha = (acc)f.alpha, beta = (acc)f.beta;
    switch (f.kind) {
    case RNN_SIGMOID: return 1 / (1 + exp_of(-x));
    case RNN_TANH: return tanh_of(x);
    case RNN_RELU: return x < 0 ? 0 : x;
    case RNN_AFFINE: return alpha * x + beta;
    case RNN_LEAKY_RELU: return x < 0 ? alpha * x : x;
    case RNN_THRESHOLDED_RELU: return x >= alpha ? x : 0;
    case RNN_SCALED_TANH: return alpha * tanh_of(beta * x);
    case RNN_HARD_SIGMOID: {
        const acc y = alpha * x + beta;
        return y < 0 ? 0 : y > 1 ? 1 : y;
    }
    case RNN_ELU: return x < 0 ? alpha * expm1_of(x) : x;
    case RNN_SOFTSIGN: return x / (1 + (x < 0 ? -x : x));
    default: return x > 30 ? x : log1p_of(exp_of(x));
    }
}
DEVICE acc clipped(const rnn_args &a, acc x)
{
    const acc c = (acc)a.clip;
    return c > 0 ? x < -c ? -c : x > c ? c : x : x;
}
DEVICE acc gate(const rnn_args &a, const rnn_act &f, bool is_tanh, acc x) { return activation(f, is_tanh, clipped(a, x)); }

#endif
