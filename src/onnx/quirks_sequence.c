/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_sequence.c - sequences and optionals, which are resolved while the model is read.
 *
 * A graph has tensors alone. A sequence is a list of them that the importer keeps beside the names; operators that take
 * one apart find the tensor that is meant. What only the run could know (a position, a length) is refused by name. */
#include "onnx/importer.h"
#include "onnx/quirks.h"
#include <string.h>

enum { PARTS_MAX = 4096 };

static const call_list *list_in(onnx_call *c, uint32_t i)
{
    const call_list *l = call_list_at(c, call_in(c, i));
    if (!l && call_in(c, i)) REJECT(c, INVALID_MODEL, "input %u is no sequence", i);
    if (!l && !call_in(c, i)) REJECT(c, INVALID_MODEL, "input %u is missing", i);
    if (l && l->is_none) REJECT(c, INVALID_MODEL, "input %u is an optional without a value", i);
    if (l && l->has) REJECT(c, INVALID_MODEL, "input %u is an optional, and a sequence is wanted", i);
    return c->b.status ? NULL : l;
}

/* A position from input i, counted from the back where it is negative; `initial` where it is absent. */
static uint32_t position(onnx_call *c, uint32_t i, uint32_t count, uint32_t limit, uint32_t initial)
{
    int64_t at = 0;
    uint32_t given = 0;
    if (c->b.status || !call_in(c, i)) return initial;
    if (!call_const_ints(c, call_in(c, i), "the position in a sequence", &at, 1, &given)) return 0;
    if (given != 1) REJECT(c, INVALID_MODEL, "the position has %u elements", given);
    if (at < 0) at += count;
    if (at < 0 || at >= (int64_t)limit)
        REJECT(c, INVALID_MODEL, "position %lld of a sequence of %u", (long long)at, count);
    return c->b.status ? 0 : (uint32_t)at;
}

static ir_value_id *items_new(onnx_call *c, size_t count)
{
    ir_value_id *at = ARENA_NEW(&c->b.g->a, ir_value_id, count);
    if (!at && !c->b.status) c->b.status = FAIL_MEMORY(c->e, "a sequence");
    return at;
}

void convert_sequence_construct(onnx_call *c) /* SequenceEmpty too */
{
    for (uint32_t i = 0; i < c->count_in; i++)
        if (!call_in(c, i) || call_list_at(c, call_in(c, i))) REJECT(c, INVALID_MODEL, "input %u is no tensor", i);
    c->out[0] = call_list_new(c, c->in, c->count_in, false);
}

void convert_sequence_insert(onnx_call *c)
{
    const call_list *l = list_in(c, 0);
    if (!call_in(c, 1) || call_list_at(c, call_in(c, 1))) REJECT(c, INVALID_MODEL, "input 1 is no tensor");
    if (!l || c->b.status) return;
    const uint32_t at = position(c, 2, l->count, l->count + 1, l->count), count = l->count;
    ir_value_id *all = items_new(c, (size_t)count + 1);
    if (!all) return;
    for (uint32_t i = 0; i <= count; i++) all[i] = i == at ? call_in(c, 1) : l->item[i < at ? i : i - 1];
    c->out[0] = call_list_new(c, all, count + 1, false);
}

void convert_sequence_erase(onnx_call *c)
{
    const call_list *l = list_in(c, 0);
    if (l && !l->count) REJECT(c, INVALID_MODEL, "the sequence is empty");
    if (!l || c->b.status) return;
    const uint32_t at = position(c, 1, l->count, l->count, l->count - 1), count = l->count;
    ir_value_id *all = items_new(c, count);
    if (!all || c->b.status) return;
    for (uint32_t i = 0; i + 1 < count; i++) all[i] = l->item[i < at ? i : i + 1];
    c->out[0] = call_list_new(c, all, count - 1, false);
}

/* The tensor at a position that only a run knows: all of them, of one shape, are concatenated and gathered from. */
static void picked(onnx_call *c, const call_list *l, ir_value_id at)
{
    if (!l->count) REJECT(c, INVALID_MODEL, "a position in an empty sequence");
    ir_value_id *all = c->b.status ? NULL : items_new(c, l->count);
    for (uint32_t i = 0; i < l->count && !c->b.status; i++) {
        if (call_list_at(c, l->item[i]) || call_rank(c, l->item[i]) >= SINTER_RANK_MAX)
            REJECT(c, UNSUPPORTED, "a position that is computed, in a sequence of such elements");
        if (!c->b.status) all[i] = build_unsqueezed(&c->b, l->item[i], 0);
    }
    if (c->b.status) return;
    const ir_value_id together = build_concat(&c->b, all, l->count, &(attrs_concat){ .axis = 0 });
    c->out[0] = build_gather(&c->b, together, build_shaped(&c->b, at, NULL, 0), NULL);
}

void convert_sequence_at(onnx_call *c)
{
    const call_list *l = list_in(c, 0);
    const ir_value_id place = call_in(c, 1);
    dim known = DIM_NONE;
    uint32_t given = 0;
    if (!place) REJECT(c, INVALID_MODEL, "the position is missing");
    if (!l || c->b.status) return;
    if (!call_known(c, place, &known, 1, &given) || !dim_is_const(c->b.g->dims, known, NULL)) {
        picked(c, l, place);
        return;
    }
    const uint32_t at = position(c, 1, l->count, l->count, 0);
    if (!c->b.status) c->out[0] = l->item[at];
}

void convert_sequence_length(onnx_call *c)
{
    const call_list *l = list_in(c, 0);
    if (l) c->out[0] = build_scalar_i64(&c->b, SINTER_DTYPE_I64, l->count);
}

void convert_split_to_sequence(onnx_call *c)
{
    dim_table *t = c->b.g->dims;
    const ir_value_id x = call_in(c, 0), sizes = call_in(c, 1);
    const uint32_t rank = call_rank(c, x);
    const int64_t axis = call_axis(c, call_int(c, "axis", 0), rank);
    const bool squeezes = !sizes && call_int(c, "keepdims", 1) == 0;
    dim part[64], at = call_k(c, 0);
    uint32_t count = 0;
    int64_t whole = 0, chunk = 1;
    if (c->b.status || !rank) return;
    const dim size = call_dim(c, x, (uint32_t)axis);
    if (sizes && call_rank(c, sizes) == 1) {
        if (!call_known(c, sizes, part, COUNT_OF(part), &count))
            REJECT(c, UNSUPPORTED, "the sizes of the parts are computed while the model runs, or more than %d",
                   (int)COUNT_OF(part));
        ir_value_id *all = items_new(c, count);
        for (uint32_t i = 0; i < count && !c->b.status; i++) {
            all[i] = build_part(&c->b, x, (uint32_t)axis, at, 1, part[i]);
            at = dim_add(t, at, part[i]);
        }
        c->out[0] = call_list_new(c, all, count, false);
        return;
    }
    if (sizes && !call_const_ints(c, sizes, "the size of a part", &chunk, 1, &count)) return;
    if (chunk < 1) REJECT(c, INVALID_MODEL, "parts of size %lld", (long long)chunk);
    if (!dim_is_const(t, size, &whole))
        REJECT(c, UNSUPPORTED,
               "the size of axis %lld, and with it the length of the sequence, is not known before the "
               "model runs",
               (long long)axis);
    if (c->b.status) return;
    if ((whole + chunk - 1) / chunk > PARTS_MAX) {
        REJECT(c, UNSUPPORTED, "a sequence of %lld tensors", (long long)((whole + chunk - 1) / chunk));
        return;
    }
    count = (uint32_t)((whole + chunk - 1) / chunk);
    ir_value_id *all = items_new(c, count);
    for (uint32_t i = 0; i < count && !c->b.status; i++) {
        const int64_t from = i * chunk, rest = whole - from;
        all[i] = build_part(&c->b, x, (uint32_t)axis, call_k(c, from), 1, call_k(c, rest < chunk ? rest : chunk));
        if (squeezes) all[i] = build_squeezed(&c->b, all[i], (uint32_t)axis);
    }
    c->out[0] = call_list_new(c, all, count, false);
}

void convert_concat_from_sequence(onnx_call *c)
{
    const call_list *l = list_in(c, 0);
    const bool is_new = call_int(c, "new_axis", 0) != 0;
    if (!call_attr(c, "axis")) REJECT(c, INVALID_MODEL, "attribute axis is missing");
    if (l && !l->count) REJECT(c, UNSUPPORTED, "the sequence is empty");
    if (!l || c->b.status) return;
    const uint32_t rank = call_rank(c, l->item[0]) + is_new, count = l->count;
    const int64_t axis = call_axis(c, call_int(c, "axis", 0), rank);
    ir_value_id *all = items_new(c, count);
    for (uint32_t i = 0; i < count && !c->b.status; i++) {
        all[i] = l->item[i];
        if (call_rank(c, all[i]) + is_new != rank) REJECT(c, INVALID_MODEL, "the tensors differ in rank");
        if (is_new && !c->b.status) all[i] = build_unsqueezed(&c->b, all[i], (uint32_t)axis);
    }
    if (!c->b.status)
        c->out[0] = count == 1 ? build_identity(&c->b, all[0])
                               : build_concat(&c->b, all, count, &(attrs_concat){ .axis = (uint32_t)axis });
}

static const onnx_graph *body_of(onnx_call *c)
{
    const onnx_attr *a = call_attr(c, "body");
    if (!a || !a->g) REJECT(c, INVALID_MODEL, "attribute body is missing");
    return a ? a->g : NULL;
}

void convert_sequence_map(onnx_call *c)
{
    const onnx_graph *body = body_of(c);
    const call_list *l = list_in(c, 0);
    if (!l || !body || c->b.status) return;
    const uint32_t count = l->count;
    ir_value_id *in = items_new(c, c->count_in), *made = items_new(c, (size_t)c->count_out + 1),
                *all = items_new(c, size_mul((size_t)count + 1, c->count_out));
    for (uint32_t i = 0; i < count && !c->b.status; i++) {
        for (uint32_t k = 0; k < c->count_in && !c->b.status; k++) {
            const call_list *other = call_list_at(c, call_in(c, k));
            in[k] = other ? (i < other->count ? other->item[i] : 0) : call_in(c, k);
            if (!in[k])
                REJECT(c, INVALID_MODEL, "sequence %u has %u tensors, the first has %u", k, other ? other->count : 0,
                       count);
        }
        call_inline(c, body, in, c->count_in, made, c->count_out);
        for (uint32_t k = 0; k < c->count_out && !c->b.status; k++) {
            if (call_list_at(c, made[k])) REJECT(c, UNSUPPORTED, "a sequence of sequences");
            all[(size_t)k * count + i] = made[k];
        }
    }
    for (uint32_t k = 0; k < c->count_out && !c->b.status; k++)
        c->out[k] = call_list_new(c, all + (size_t)k * count, count, false);
}

/* ---- optionals: a value is itself, no value is a mark ---- */
void convert_optional(onnx_call *c)
{
    c->out[0] = call_in(c, 0) ? call_in(c, 0) : call_list_new(c, NULL, 0, true);
}

void convert_optional_get_element(onnx_call *c)
{
    const call_list *l = call_list_at(c, call_in(c, 0));
    if (!call_in(c, 0) || (l && l->is_none)) REJECT(c, INVALID_MODEL, "the optional has no value");
    if (l && l->has) quirk_guard(c, l->has, true, GUARD_OPTIONAL);
    c->out[0] = l && l->has ? l->inner : call_in(c, 0);
}

void convert_optional_has_element(onnx_call *c)
{
    const call_list *l = call_list_at(c, call_in(c, 0));
    c->out[0] = l && l->has ? l->has : build_scalar_i64(&c->b, SINTER_DTYPE_BOOL, call_in(c, 0) && !(l && l->is_none));
}

void convert_identity(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    c->out[0] = call_list_at(c, x) || call_strings_at(c, x) ? x : build_identity(&c->b, x);
}

/* The body of a Loop as its turn `turn`. */
static void write_turn(onnx_call *c, const onnx_graph *body, uint32_t turn, ir_value_id *in, ir_value_id *made)
{
    in[0] = build_scalar_i64(&c->b, SINTER_DTYPE_I64, turn);
    in[1] = build_scalar_i64(&c->b, SINTER_DTYPE_BOOL, 1);
    for (uint32_t i = 0; i < 2 && i < body->in.count; i++) /* with one axis where the body declares it so */
        if (body->in.at[i].has_shape && body->in.at[i].rank == 1) in[i] = build_unsqueezed(&c->b, in[i], 0);
    importer_forget(c->im); /* a turn's sizes say nothing of those of the next */
    call_inline(c, body, in, c->count_in, made, c->count_out + 1);
}

/* The scan outputs of a Loop without turns have no slices. The body says what shape a slice would have; nothing reads
 * the numbers that the body computes. */
static void empty_scans(onnx_call *c, const onnx_graph *body, ir_value_id *in, ir_value_id *made, uint32_t carried)
{
    write_turn(c, body, 0, in, made);
    for (uint32_t i = carried; i < c->count_out && !c->b.status; i++) {
        const ir_value_id one = made[1 + i];
        if (call_list_at(c, one) || call_strings_at(c, one)) REJECT(c, UNSUPPORTED, "a scan output that is no tensor");
        const ir_value_id row = build_unsqueezed(&c->b, one, 0);
        if (c->b.status) return;
        dim d[SINTER_RANK_MAX];
        const uint32_t rank = call_shape(c, row, d);
        d[0] = dim_const(c->b.g->dims, 0);
        c->out[i] = build_expanded(&c->b, build_scalar(&c->b, call_type(c, one), 0), d, rank);
    }
}

/* ---- a Loop that carries sequences, or values whose rank changes, is written out, turn by turn ---- */
void quirk_loop_unroll(onnx_call *c, const onnx_graph *body, const char *why)
{
    enum { TURNS_MAX = 1024 };
    double trip = TURNS_MAX, on = 1;
    const uint32_t carried = c->count_in - 2;
    const bool is_bounded = call_in(c, 0) != 0;
    if (call_list_at(c, call_in(c, 0)) || call_list_at(c, call_in(c, 1)))
        REJECT(c, INVALID_MODEL, "the number of turns or the condition is a sequence");
    if (is_bounded && !ir_known_scalar(c->b.g, call_in(c, 0), &trip))
        REJECT(c, UNSUPPORTED, "%s, and its number of turns is computed while the model runs", why);
    if (call_in(c, 1) && !ir_known_scalar(c->b.g, call_in(c, 1), &on))
        REJECT(c, UNSUPPORTED, "%s, and its condition is computed while the model runs", why);
    if (is_bounded && trip > TURNS_MAX && on != 0)
        REJECT(c, UNSUPPORTED, "%s, and it has %.0f turns; %d can be written out", why, trip, (int)TURNS_MAX);
    const uint32_t scanned = c->count_out - carried;
    ir_value_id *in = items_new(c, c->count_in), *made = items_new(c, c->count_out + 1),
                *all = items_new(c, size_mul(scanned, TURNS_MAX));
    if (c->b.status) return;
    memcpy(in + 2, c->in + 2, carried * sizeof *in);
    uint32_t turns = 0;
    for (; turns < TURNS_MAX && turns < trip && on != 0 && !c->b.status; turns++) {
        write_turn(c, body, turns, in, made);
        if (!c->b.status && !ir_known_scalar(c->b.g, made[0], &on))
            REJECT(c, UNSUPPORTED, "%s, and its condition is computed while the model runs", why);
        for (uint32_t i = 0; i < carried && !c->b.status; i++) in[i + 2] = made[i + 1];
        for (uint32_t i = 0; i < scanned && !c->b.status; i++)
            all[(size_t)i * TURNS_MAX + turns] =
                call_list_at(c, made[1 + carried + i]) ? 0 : build_unsqueezed(&c->b, made[1 + carried + i], 0);
    }
    if (!is_bounded && turns == TURNS_MAX && on != 0)
        REJECT(c, UNSUPPORTED, "%s, and it does not end within %d turns", why, (int)TURNS_MAX);
    for (uint32_t i = 0; i < carried && !c->b.status; i++) c->out[i] = in[i + 2];
    if (scanned && !turns && !c->b.status) {
        empty_scans(c, body, in, made, carried);
        return;
    }
    for (uint32_t i = 0; i < scanned && !c->b.status; i++) {
        const ir_value_id *parts = all + (size_t)i * TURNS_MAX;
        c->out[carried + i] = turns == 1 ? parts[0] : build_concat(&c->b, parts, turns, &(attrs_concat){ .axis = 0 });
    }
}
