/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_train.c - the optimisers of ai.onnx.preview.training: one step of gradient descent, as plain arithmetic.
 *
 * Inputs are R (the learning rate), T (the number of earlier steps), then the tensors, their gradients and their
 * states, n of each. Outputs are the n new tensors, then the n new states of each kind. */
#include "onnx/quirks.h"
#include <string.h>

typedef struct training {
    uint32_t n;              /* tensors that are trained */
    ir_value_id rate, steps; /* f64 */
} training;

static training training_of(onnx_call *c, uint32_t states)
{
    training t = { 0 };
    const uint32_t kinds = states + 2;
    if (c->count_in < 2 + kinds || (c->count_in - 2) % kinds ||
        c->count_out != (c->count_in - 2) / kinds * (states + 1))
        REJECT(c, INVALID_MODEL, "%u inputs and %u outputs", c->count_in, c->count_out);
    for (uint32_t i = 0; i < c->count_in; i++)
        if (!call_in(c, i)) REJECT(c, INVALID_MODEL, "input %u is missing", i);
    if (c->b.status) return t;
    t.n = (c->count_in - 2) / kinds;
    t.rate = build_typed(&c->b, quirk_scalar_in(c, call_in(c, 0)), SINTER_DTYPE_F64);
    t.steps = build_typed(&c->b, quirk_scalar_in(c, call_in(c, 1)), SINTER_DTYPE_F64);
    return t;
}

static ir_value_id scaled(onnx_call *c, ir_value_id x, double factor)
{
    return factor == 1 ? x : build_mul(&c->b, x, build_scalar_like(&c->b, x, factor));
}

/* a x + b y */
static ir_value_id blend(onnx_call *c, double a, ir_value_id x, double b, ir_value_id y)
{
    const ir_value_id second = scaled(c, y, b);
    return build_add(&c->b, scaled(c, x, a), second);
}

/* The gradient with the regularisation's. */
static ir_value_id gradient(onnx_call *c, const training *t, uint32_t i)
{
    const ir_value_id g = call_in(c, 2 + t->n + i);
    const double norm = call_real(c, "norm_coefficient", 0);
    return norm == 0 ? g : blend(c, norm, call_in(c, 2 + i), 1, g);
}

static ir_value_id is_first(onnx_call *c, const training *t)
{
    return build_le(&c->b, t->steps, build_scalar_like(&c->b, t->steps, 0));
}

void convert_adagrad(onnx_call *c)
{
    const training t = training_of(c, 1);
    const double decay = call_real(c, "decay_factor", 0), epsilon = call_real(c, "epsilon", 0);
    if (c->b.status) return;
    const ir_value_id one = build_scalar_like(&c->b, t.steps, 1),
                      slow = build_add(&c->b, scaled(c, t.steps, decay), one), rate = build_div(&c->b, t.rate, slow);
    for (uint32_t i = 0; i < t.n && !c->b.status; i++) {
        const ir_value_id x = call_in(c, 2 + i), g = gradient(c, &t, i),
                          h = build_add(&c->b, call_in(c, 2 + 2 * t.n + i), build_mul(&c->b, g, g)),
                          least = build_scalar_like(&c->b, h, epsilon),
                          root = build_add(&c->b, build_sqrt(&c->b, h), least),
                          step = build_mul(&c->b, build_typed(&c->b, rate, call_type(c, g)), g);
        c->out[i] = build_sub(&c->b, x, build_div(&c->b, step, root));
        c->out[t.n + i] = h;
    }
}

/* 1 - base^steps */
static ir_value_id correction(onnx_call *c, const training *t, double base)
{
    const ir_value_id one = build_scalar_like(&c->b, t->steps, 1);
    return build_sub(&c->b, one, build_pow(&c->b, build_scalar_like(&c->b, t->steps, base), t->steps));
}

void convert_adam(onnx_call *c)
{
    const training t = training_of(c, 2);
    const double alpha = call_real(c, "alpha", (double)0.9f), beta = call_real(c, "beta", (double)0.999f),
                 epsilon = call_real(c, "epsilon", 0), after = call_real(c, "norm_coefficient_post", 0);
    if (c->b.status) return;
    ir_value_id rate = correction(c, &t, alpha);
    rate = build_div(&c->b, build_mul(&c->b, t.rate, build_sqrt(&c->b, correction(c, &t, beta))), rate);
    rate = build_where(&c->b, is_first(c, &t), t.rate, rate);
    for (uint32_t i = 0; i < t.n && !c->b.status; i++) {
        const ir_value_id x = call_in(c, 2 + i), g = gradient(c, &t, i),
                          v = blend(c, alpha, call_in(c, 2 + 2 * t.n + i), 1 - alpha, g),
                          h = blend(c, beta, call_in(c, 2 + 3 * t.n + i), 1 - beta, build_mul(&c->b, g, g)),
                          least = build_scalar_like(&c->b, h, epsilon),
                          root = build_add(&c->b, build_sqrt(&c->b, h), least), ratio = build_div(&c->b, v, root),
                          step = build_mul(&c->b, build_typed(&c->b, rate, call_type(c, g)), ratio);
        c->out[i] = scaled(c, build_sub(&c->b, x, step), 1 - after);
        c->out[t.n + i] = v;
        c->out[2 * t.n + i] = h;
    }
}

void convert_momentum(onnx_call *c)
{
    const training t = training_of(c, 1);
    const char *mode = call_text(c, "mode", "");
    const bool nesterov = strcmp(mode, "nesterov") == 0;
    const double alpha = call_real(c, "alpha", 0), beta = call_real(c, "beta", 0);
    if (!nesterov && strcmp(mode, "standard") != 0) REJECT(c, INVALID_MODEL, "attribute mode is '%s'", mode);
    if (c->b.status) return;
    const ir_value_id later = build_scalar_like(&c->b, t.steps, beta), one = build_scalar_like(&c->b, t.steps, 1),
                      share = build_where(&c->b, is_first(c, &t), one, later);
    for (uint32_t i = 0; i < t.n && !c->b.status; i++) {
        const ir_value_id x = call_in(c, 2 + i), g = gradient(c, &t, i);
        const sinter_dtype type = call_type(c, g);
        const ir_value_id added = build_mul(&c->b, build_typed(&c->b, share, type), g),
                          v = build_add(&c->b, scaled(c, call_in(c, 2 + 2 * t.n + i), alpha), added),
                          step = nesterov ? build_add(&c->b, g, scaled(c, v, alpha)) : v;
        c->out[i] = build_sub(&c->b, x, build_mul(&c->b, build_typed(&c->b, t.rate, type), step));
        c->out[t.n + i] = v;
    }
}
