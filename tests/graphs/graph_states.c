/* SPDX-License-Identifier: Apache-2.0 */
/* graph_states.c - see graph_states.h. What a run leaves is what the judge found, with its lanes, so that rounding adds
 * up from run to run there as it does in the engine. */
#include "graph_states.h"

bool gmodel_is_state_in(const gmodel *m, uint32_t value)
{
    for (uint32_t i = 0; i < m->states; i++)
        if (m->state[i].in == value) return true;
    return false;
}

bool gmodel_is_state_out(const gmodel *m, uint32_t value)
{
    for (uint32_t i = 0; i < m->states; i++)
        if (m->state[i].out == value) return true;
    return false;
}

/* The axis of the rows; the rank where there is none. */
static uint32_t axis_of(const gmodel *m, uint32_t state)
{
    const gvalue *v = &m->value.at[m->state[state].in];
    uint32_t axis = 0;
    while (axis < v->rank && (m->past == G_NONE || v->dim[axis].symbol != m->past)) axis++;
    return axis;
}

static int64_t past_of(const gmodel *m, uint32_t k)
{
    return m->past == G_NONE ? 0 : m->symbol[m->past].at[k];
}

void gheld_reset(const gmodel *m, gheld *h)
{
    *h = (gheld){ .rows = 0 };
    for (uint32_t i = 0; i < m->states; i++) {
        const gvalue *v = &m->value.at[m->state[i].in];
        int64_t d[SINTER_RANK_MAX] = { 0 };
        for (uint32_t r = 0; r < v->rank; r++) d[r] = r == axis_of(m, i) ? 0 : v->dim[r].size;
        h->at[i][0] = gtensor_new(m->a, v->dtype, v->rank, d);
        memset(h->at[i][0]->data, 0, h->at[i][0]->size);
        for (uint32_t lane = 1; lane < G_LANES; lane++) h->at[i][lane] = h->at[i][0];
    }
}

bool gheld_allows(const gmodel *m, const gheld *h, uint32_t k)
{
    return past_of(m, k) <= h->rows;
}

/* The first `rows` of an axis. */
static gtensor *cut(arena *a, const gtensor *t, uint32_t axis, int64_t rows)
{
    int64_t d[SINTER_RANK_MAX];
    size_t inner = sinter_dtype_bits(t->dtype) / 8, outer = 1;
    memcpy(d, t->dim, sizeof d);
    d[axis] = rows;
    for (uint32_t i = axis + 1; i < t->rank; i++) inner *= (size_t)t->dim[i];
    for (uint32_t i = 0; i < axis; i++) outer *= (size_t)t->dim[i];
    gtensor *to = gtensor_new(a, t->dtype, t->rank, d);
    for (size_t i = 0; i < outer && inner && rows; i++)
        memcpy((char *)to->data + i * (size_t)rows * inner, (char *)t->data + i * (size_t)t->dim[axis] * inner,
               (size_t)rows * inner);
    return to;
}

bool gheld_judge(gmodel *to, const gmodel *m, gheld *h, uint32_t k)
{
    gmodel_copy(to, m);
    for (uint32_t i = 0; i < m->states; i++) {
        const uint32_t axis = axis_of(m, i);
        gvalue *v = &to->value.at[m->state[i].in];
        for (uint32_t lane = 0; lane < G_LANES && axis < v->rank; lane++)
            h->at[i][lane] = cut(m->a, h->at[i][lane], axis, past_of(m, k));
        v->held = h->at[i];
    }
    return judge_model(to, k);
}

bool gheld_take(const gmodel *m, gheld *h, uint32_t k)
{
    for (uint32_t i = 0; i < m->states; i++) {
        const gvalue *v = &m->value.at[m->state[i].out];
        if (v->is_chaotic[k] || judge_is_doubtful(m, v, k)) return false;
        memcpy(h->at[i], v->at[k], sizeof h->at[i]);
        if (axis_of(m, i) < v->rank) h->rows = v->at[k][0]->dim[axis_of(m, i)];
    }
    return true;
}
