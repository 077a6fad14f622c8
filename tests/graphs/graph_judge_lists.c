/* SPDX-License-Identifier: Apache-2.0 */
/* graph_judge_lists.c - what sequences, optionals and text are: a sequence is a list of values of its own, an optional
 * is what it holds, and text is the numbers that it was made of. */
#include "graph_judge.h"

bool judge_is_list(const gmodel *m, const gnode *n)
{
    if (strstr(n->op, "Sequence") == n->op || !strncmp(n->op, "Optional", 8)) return true;
    if (!strcmp(n->op, "SplitToSequence") || !strcmp(n->op, "ConcatFromSequence")) return true;
    if (!strcmp(n->op, "Identity")) return m->value.at[n->in[0]].is_list;
    if (strcmp(n->op, "Cast") != 0) return false;
    return gnode_find(n, "to")->i == G_STRING || m->value.at[n->in[0]].is_text;
}

bool judge_gives_text(const gmodel *m, const gnode *n)
{
    static const char *const movers[] = { "Identity", "Where",     "Gather",  "Concat",
                                          "Reshape",  "Transpose", "Squeeze", "Unsqueeze" };
    bool moves = false, is_text = false;
    for (uint32_t i = 0; i < COUNT_OF(movers); i++) moves = moves || !strcmp(n->op, movers[i]);
    for (uint32_t i = 0; i < n->count_in; i++)
        is_text = is_text || (n->in[i] != G_NONE && m->value.at[n->in[i]].is_text);
    return moves && is_text;
}

/* Value i of a list, which may be new. */
static uint32_t item_of(gmodel *m, uint32_t list, uint32_t i)
{
    while (m->value.at[list].item.count <= i) {
        const uint32_t made = gmodel_value(m, G_RESULT, m->value.at[list].scope, SINTER_DTYPE_NONE);
        *(uint32_t *)VEC_PUSH(m->a, &m->value.at[list].item) = made;
    }
    return m->value.at[list].item.at[i];
}

static void begin_list(gmodel *m, uint32_t list, uint32_t count)
{
    m->value.at[list].is_list = true;
    if (count) (void)item_of(m, list, count - 1);
    m->value.at[list].item.count = count;
}

void judge_pass_list(gmodel *m, uint32_t to, uint32_t from, uint32_t k)
{
    const uint32_t count = m->value.at[from].item.count;
    begin_list(m, to, count);
    for (uint32_t i = 0; i < count; i++) judge_pass(m, item_of(m, to, i), m->value.at[from].item.at[i], k);
}

static int64_t int_of(const gnode *n, const char *name, int64_t initial)
{
    const gattr *a = gnode_find(n, name);
    return a ? a->i : initial;
}

/* The position that input i says, from the back where it is negative. */
static int64_t position(const gmodel *m, const gnode *n, uint32_t i, int64_t count, int64_t initial, uint32_t k)
{
    if (i >= n->count_in || n->in[i] == G_NONE) return initial;
    const int64_t at = (int64_t)gtensor_at(m->value.at[n->in[i]].at[k][0], 0);
    return at < 0 ? at + count : at;
}

/* Inserting (by 1) and erasing (by -1). */
static bool edit(gmodel *m, const gnode *n, int by, uint32_t k)
{
    const uint32_t from = n->in[0], to = n->out[0], count = m->value.at[from].item.count;
    const int64_t at = by > 0 ? position(m, n, 2, count, count, k) : position(m, n, 1, count, (int64_t)count - 1, k);
    if (at < 0 || at >= (int64_t)count + (by > 0)) return false;
    begin_list(m, to, count + (uint32_t)by);
    for (uint32_t i = 0; i < count + (uint32_t)by; i++) {
        const uint32_t old = i < at ? i : i - (uint32_t)by;
        judge_pass(m, item_of(m, to, i), by > 0 && i == at ? n->in[1] : m->value.at[from].item.at[old], k);
    }
    return true;
}

static bool split(gmodel *m, const gnode *n, uint32_t k)
{
    const gtensor *t = m->value.at[n->in[0]].at[k][0], *sizes = n->count_in > 1 ? m->value.at[n->in[1]].at[k][0] : NULL;
    const int64_t axis = int_of(n, "axis", 0), at = axis < 0 ? axis + t->rank : axis, whole = t->dim[at],
                  chunk = sizes ? (int64_t)gtensor_at(sizes, 0) : 1;
    const bool keeps = sizes || int_of(n, "keepdims", 1);
    const uint32_t count = (uint32_t)(sizes && sizes->rank ? sizes->count : (whole + chunk - 1) / chunk);
    begin_list(m, n->out[0], count);
    int64_t from = 0;
    for (uint32_t i = 0; i < count; i++) {
        const int64_t size = sizes && sizes->rank   ? (int64_t)gtensor_at(sizes, i)
                             : whole - from < chunk ? whole - from
                                                    : chunk;
        judge_cut(m, item_of(m, n->out[0], i), n->in[0], (uint32_t)at, from, size, keeps, k);
        from += size;
    }
    return from == whole;
}

static bool concat(gmodel *m, const gnode *n, uint32_t k)
{
    const gvalue *list = &m->value.at[n->in[0]];
    const int64_t axis = int_of(n, "axis", 0);
    if (!list->item.count || list->item.count > G_IN) return false;
    if (!int_of(n, "new_axis", 0)) {
        gnode plain = *n;
        (void)snprintf(plain.op, sizeof plain.op, "Concat");
        plain.count_in = list->item.count;
        memcpy(plain.in, list->item.at, list->item.count * sizeof plain.in[0]);
        return judge_alone(m, &plain, k);
    }
    gvalue *out = &m->value.at[n->out[0]];
    for (uint32_t lane = 0; lane < G_LANES; lane++) {
        gtensors t = { 0 };
        for (uint32_t i = 0; i < list->item.count; i++)
            *(gtensor **)VEC_PUSH(m->a, &t) = m->value.at[list->item.at[i]].at[k][lane];
        out->at[k][lane] = judge_stack(m, &t, (uint32_t)(axis < 0 ? axis + t.at[0]->rank + 1 : axis), false, NULL);
    }
    out->dtype = out->at[k][0]->dtype;
    out->rank = out->at[k][0]->rank;
    judge_copied(m, n->out[0], k);
    for (uint32_t i = 0; i < list->item.count; i++) out->is_chaotic[k] |= m->value.at[list->item.at[i]].is_chaotic[k];
    return true;
}

static bool map(gmodel *m, const gnode *n, uint32_t k)
{
    const uint32_t scope = (uint32_t)gnode_find(n, "body")->i, count = m->value.at[n->in[0]].item.count;
    for (uint32_t o = 0; o < n->count_out; o++) begin_list(m, n->out[o], count);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t p = 0; p < n->count_in; p++) {
            const gvalue *v = &m->value.at[n->in[p]];
            judge_pass(m, m->scope.at[scope].param.at[p], v->is_list ? v->item.at[i] : n->in[p], k);
        }
        if (!judge_scope(m, scope, k)) return false;
        for (uint32_t o = 0; o < n->count_out; o++)
            judge_pass(m, item_of(m, n->out[o], i), m->scope.at[scope].result.at[o], k);
    }
    return true;
}

static bool cast(gmodel *m, const gnode *n, uint32_t k)
{
    if (gnode_find(n, "to")->i == G_STRING) {
        judge_pass(m, n->out[0], n->in[0], k);
        m->value.at[n->out[0]].is_text = true;
        return true;
    }
    return judge_alone(m, n, k);
}

bool judge_list(gmodel *m, const gnode *n, uint32_t k)
{
    if (!strcmp(n->op, "Cast")) return cast(m, n, k);
    if (!strcmp(n->op, "SplitToSequence")) return split(m, n, k);
    if (!strcmp(n->op, "ConcatFromSequence")) return concat(m, n, k);
    if (!strcmp(n->op, "SequenceMap")) return map(m, n, k);
    if (!strcmp(n->op, "SequenceInsert")) return edit(m, n, 1, k);
    if (!strcmp(n->op, "SequenceErase")) return edit(m, n, -1, k);
    if (!strcmp(n->op, "SequenceConstruct") || !strcmp(n->op, "SequenceEmpty")) {
        begin_list(m, n->out[0], n->count_in);
        for (uint32_t i = 0; i < n->count_in; i++) judge_pass(m, item_of(m, n->out[0], i), n->in[i], k);
        return true;
    }
    if (!strcmp(n->op, "OptionalHasElement")) {
        judge_scalar(m, n->out[0], SINTER_DTYPE_BOOL, n->count_in > 0, k);
        return true;
    }
    if (!strcmp(n->op, "Optional") || !strcmp(n->op, "OptionalGetElement") || !strcmp(n->op, "Identity")) {
        judge_pass(m, n->out[0], n->in[0], k);
        return true;
    }
    const gvalue *list = &m->value.at[n->in[0]];
    if (!strcmp(n->op, "SequenceLength")) {
        judge_scalar(m, n->out[0], SINTER_DTYPE_I64, list->item.count, k);
        return true;
    }
    const int64_t at = position(m, n, 1, list->item.count, 0, k);
    if (strcmp(n->op, "SequenceAt") != 0 || at < 0 || at >= (int64_t)list->item.count) return false;
    judge_pass(m, n->out[0], list->item.at[at], k);
    return true;
}
