/* SPDX-License-Identifier: Apache-2.0 */
/* infer_rnn.c - shapes of the recurrent layers.
 *
 * x [T,B,I], w [D,G*H,I], r [D,G*H,H], bias [D,2*G*H], lengths [B], h0 [D,B,H]; lstm also c0 [D,B,H] and peepholes
 * [D,3*H]. Results y [T,D,B,H], y_h [D,B,H]; lstm also y_c [D,B,H]. D directions, G gates. */
#include "ops/infer_check.h"
#include "ops/rnn.h"
#include <inttypes.h>

static sinter_status want_shape(infer_ctx *c, uint32_t i, const char *name, uint32_t rank, const dim *want)
{
    TRY(infer_want_in(c, i, name, rank, rank));
    const infer_value *v = &c->in[i];
    for (uint32_t k = 0; k < rank; k++) {
        if (infer_agree(c->dims, v->dim[k], want[k])) continue;
        return FAIL(c->e, INVALID_MODEL, "axis %" PRIu32 " of %s %s is %s, wanted %s", k, name, infer_shape_text(c, v),
                    infer_dim_text(c, v->dim[k]), infer_dim_text(c, want[k]));
    }
    return SINTER_OK;
}

static sinter_status infer_recurrent(infer_ctx *c)
{
    dim_table *t = c->dims;
    uint32_t gates;
    uint32_t each;
    const rnn_common common = rnn_common_of(c->op, c->attrs, &gates, &each);
    rnn_activation unused[RNN_ACTIVATIONS_MAX];
    TRY(rnn_activations_parse(c->e, c->op, c->attrs, unused));
    if (!(common.clip >= 0)) return FAIL(c->e, INVALID_MODEL, "clip is %g, wanted at least 0", common.clip);
    TRY(infer_want_in(c, 0, "input", 3, 3));
    TRY(infer_want_float(c, &c->in[0], "input"));
    TRY(infer_want_in(c, 2, "recurrence weight", 3, 3));
    const infer_value *x = &c->in[0];
    const dim directions = dim_const(t, rnn_directions(common.direction));
    const dim hidden = c->in[2].dim[2];
    const dim batch = x->dim[1];
    const dim rows = dim_mul(t, hidden, dim_const(t, gates));
    const dim state[3] = { directions, batch, hidden };
    TRY(want_shape(c, 1, "weight", 3, (const dim[]){ directions, rows, x->dim[2] }));
    TRY(want_shape(c, 2, "recurrence weight", 3, (const dim[]){ directions, rows, hidden }));
    if (infer_has(c, 3)) {
        TRY(want_shape(c, 3, "bias", 2, (const dim[]){ directions, dim_mul(t, rows, dim_const(t, 2)) }));
    }
    if (infer_has(c, 4)) {
        TRY(want_shape(c, 4, "sequence lengths", 1, &batch));
        if (!dtype_is_int(c->in[4].dtype)) {
            return FAIL(c->e, INVALID_MODEL, "sequence lengths have type %s, wanted i32",
                        sinter_dtype_name(c->in[4].dtype));
        }
    }
    if (infer_has(c, 5)) TRY(want_shape(c, 5, "initial state", 3, state));
    if (infer_has(c, 6)) TRY(want_shape(c, 6, "initial cell state", 3, state));
    if (infer_has(c, 7)) {
        TRY(want_shape(c, 7, "peepholes", 2, (const dim[]){ directions, dim_mul(t, hidden, dim_const(t, 3)) }));
    }
    for (uint32_t i = 1; i < c->count_in && i < 8; i++) {
        if (i == 4 || !infer_has(c, i)) continue;
        if (c->in[i].dtype != x->dtype) {
            return FAIL(c->e, INVALID_MODEL, "input %" PRIu32 " has type %s, wanted %s", i,
                        sinter_dtype_name(c->in[i].dtype), sinter_dtype_name(x->dtype));
        }
    }
    TRY(infer_set(c, 0, x->dtype, 4, (const dim[]){ x->dim[0], directions, batch, hidden }));
    TRY(infer_set(c, 1, x->dtype, 3, state));
    return infer_set(c, 2, x->dtype, 3, state);
}

sinter_status infer_lstm(infer_ctx *c)
{
    return infer_recurrent(c);
}
sinter_status infer_gru(infer_ctx *c)
{
    return infer_recurrent(c);
}
sinter_status infer_rnn(infer_ctx *c)
{
    return infer_recurrent(c);
}
