/* SPDX-License-Identifier: Apache-2.0 */
/* graph_ops_sequence.c - rows of sequences, optionals and text: from tensors to tensors, with lists only in between. */
#include "graph_ops.h"

enum { CONSTRUCT = 1, SPLIT = 2, EMPTY = 4, INSERT = 8, ERASE = 16, AT = 32, LENGTH = 64, CONCAT = 128, MAP = 256 };

/* more: 1: behind the last is a position, too. */
static uint32_t at_of(grow *g, uint32_t count, uint32_t more)
{
    const bool from_back = count && grow_one_in(g, 3);
    const int64_t at = from_back ? -1 - (int64_t)grow_below(g, count) : grow_below(g, count + more);
    return grow_const_scalar(g, grow_one_in(g, 3) ? SINTER_DTYPE_I32 : SINTER_DTYPE_I64, (double)at);
}

typedef struct list {
    uint32_t value, count, like; /* like: a tensor of the shape of each element; G_NONE: parts of a tensor */
    uint32_t axis;               /* of the parts */
    bool is_squeezed;            /* the parts lack the axis */
} list;

static list split_of(grow *g)
{
    list l = { G_NONE, 0, G_NONE, 0, false };
    const uint32_t x = grow_pick(g, T_ALL, 1, 5), axis = x == G_NONE ? 0 : grow_below(g, grow_rank(g, x));
    if (x == G_NONE || !gsize_is_const(g, grow_dim(g, x, axis))) return l;
    const int64_t size = grow_dim(g, x, axis).at[0], chunk = size > 4 ? size / 2 : 1;
    if (size < 1 || (size + chunk - 1) / chunk > 6) return l;
    const uint32_t sizes = chunk > 1 || grow_one_in(g, 2) ? grow_const_scalar(g, SINTER_DTYPE_I64, (double)chunk)
                                                          : G_ABSENT,
                   n = grow_begin(g, "SplitToSequence");
    l.axis = axis;
    l.is_squeezed = sizes == G_ABSENT && grow_one_in(g, 2);
    grow_in(g, n, x);
    if (sizes != G_ABSENT) grow_in(g, n, sizes);
    if (l.is_squeezed) grow_int(g, n, "keepdims", 0);
    grow_int(g, n, "axis", grow_one_in(g, 3) ? (int64_t)axis - grow_rank(g, x) : axis);
    l.value = grow_end(g, n, 1);
    l.count = (uint32_t)((size + chunk - 1) / chunk);
    return l;
}

static uint32_t another(grow *g, uint32_t like)
{
    gsize d[SINTER_RANK_MAX];
    if (like == G_NONE) return G_NONE;
    for (uint32_t i = 0; i < grow_rank(g, like); i++) d[i] = grow_dim(g, like, i);
    return grow_shaped(g, grow_type(g, like), d, grow_rank(g, like));
}

static list new_list(grow *g, int64_t wanted)
{
    if (wanted & SPLIT || (!(wanted & (CONSTRUCT | EMPTY | INSERT | MAP)) && grow_one_in(g, 3))) return split_of(g);
    list l = { G_NONE, wanted & EMPTY ? 0 : 1 + grow_below(g, 4), G_NONE, 0, false };
    l.like = grow_pick(g, wanted & EMPTY ? T_F32 : T_ALL, 0, 5);
    uint32_t in[4];
    for (uint32_t i = 0; i < l.count; i++) in[i] = i ? another(g, l.like) : l.like;
    const uint32_t n = grow_begin(g, l.count ? "SequenceConstruct" : "SequenceEmpty");
    for (uint32_t i = 0; i < l.count; i++) grow_in(g, n, in[i]);
    l.value = grow_end(g, n, 1);
    return l;
}

static list insert(grow *g, list l)
{
    const uint32_t x = another(g, l.like), at = grow_one_in(g, 2) ? G_ABSENT : at_of(g, l.count, 1),
                   n = grow_begin(g, "SequenceInsert");
    grow_in(g, n, l.value);
    grow_in(g, n, x);
    if (at != G_ABSENT) grow_in(g, n, at);
    return (list){ grow_end(g, n, 1), l.count + 1, l.like, 0, false };
}

/* A position that the run knows. */
static uint32_t place_of(grow *g, uint32_t count)
{
    const gsize one = gsize_of(1);
    return grow_leaf(g, grow_one_in(g, 2) ? SINTER_DTYPE_I64 : SINTER_DTYPE_I32, &one, 0, false,
                     (gfill){ -(double)count, (double)count - 1, 1, grow_below(g, 999) });
}

static list erase(grow *g, list l)
{
    const uint32_t at = grow_one_in(g, 2) ? G_ABSENT : at_of(g, l.count, 0), n = grow_begin(g, "SequenceErase");
    grow_in(g, n, l.value);
    if (at != G_ABSENT) grow_in(g, n, at);
    return (list){ grow_end(g, n, 1), l.count - 1, l.like, l.axis, l.is_squeezed };
}

/* Ends in a tensor. wanted: AT, LENGTH or CONCAT; else any of them. */
static bool end_list(grow *g, list l, int64_t wanted)
{
    if (wanted & LENGTH || !l.count) return grow_1(g, "SequenceLength", l.value) != G_NONE;
    if (wanted & AT || (!(wanted & CONCAT) && grow_one_in(g, 2))) {
        const uint32_t at = l.like != G_NONE && grow_one_in(g, 3) ? place_of(g, l.count) : at_of(g, l.count, 0);
        return grow_2(g, "SequenceAt", l.value, at) != G_NONE;
    }
    const uint32_t rank = l.like == G_NONE ? 1 : grow_rank(g, l.like);
    const bool is_new = l.like == G_NONE ? l.is_squeezed : !rank || grow_one_in(g, 3);
    const uint32_t n = grow_begin(g, "ConcatFromSequence");
    grow_in(g, n, l.value);
    grow_int(g, n, "axis", l.like == G_NONE ? l.axis : grow_below(g, rank + is_new));
    if (is_new) grow_int(g, n, "new_axis", 1);
    return grow_end(g, n, 1) != G_NONE;
}

static bool sequence(grow *g, const gop *op)
{
    list l = new_list(g, op->arg);
    if (l.value != G_NONE && l.like != G_NONE && (op->arg & (INSERT | EMPTY) || grow_one_in(g, 4))) l = insert(g, l);
    if (l.value != G_NONE && l.count > 1 && (op->arg & ERASE || grow_one_in(g, 4))) l = erase(g, l);
    return l.value != G_NONE && l.count && end_list(g, l, op->arg);
}

/* ---- lists and bodies ---- */

/* A list with one more, or with another one in the place of one. */
static list changed(grow *g, list l, bool keeps_count)
{
    if (l.count && (keeps_count || grow_one_in(g, 3))) l = erase(g, l);
    return l.value == G_NONE ? l : insert(g, l);
}

static uint32_t when(grow *g, bool is_known)
{
    if (is_known) return grow_const_scalar(g, SINTER_DTYPE_BOOL, grow_below(g, 2));
    const uint32_t found = grow_find(g, T_B, 0, 0);
    if (found != G_NONE && grow_one_in(g, 2)) return found;
    return grow_leaf(g, SINTER_DTYPE_BOOL, NULL, 0, false, (gfill){ 0, 1, 1, grow_below(g, 999) });
}

static uint32_t if_of(grow *g, uint32_t condition, const uint32_t *branch, uint32_t outputs)
{
    const uint32_t n = grow_begin(g, "If");
    grow_in(g, n, condition);
    gnode_attr(&g->m->node.at[n], "then_branch", GA_GRAPH)->i = branch[0];
    gnode_attr(&g->m->node.at[n], "else_branch", GA_GRAPH)->i = branch[1];
    return grow_end(g, n, outputs);
}

/* An If whose branches give lists, of one length where the run decides. */
static bool list_if(grow *g, const gop *op)
{
    const bool is_known = grow_one_in(g, 3);
    const list l = new_list(g, CONSTRUCT);
    list made[2] = { l, l };
    uint32_t branch[2];
    if (g->depth > 1 || l.value == G_NONE) return false;
    const uint32_t condition = when(g, is_known);
    if (condition == G_NONE) return false;
    const bool yes = is_known && gtensor_at(grow_data(g, condition, 0), 0) != 0;
    for (uint32_t b = 0; b < 2; b++) {
        const opened o = grow_open(g);
        if (!grow_one_in(g, 4)) made[b] = changed(g, l, !is_known);
        const bool is_fine = made[b].value != G_NONE && grow_result(g, made[b].value);
        branch[b] = grow_close(g, o);
        if (!is_fine) return false;
    }
    list all = made[!yes];
    all.value = if_of(g, condition, branch, 1);
    if (all.value == G_NONE) return false;
    if (grow_one_in(g, 3)) all = insert(g, all);
    return all.value != G_NONE && end_list(g, all, op->arg);
}

/* A Loop that carries a list and adds to it; or one that takes an element of an outer list in each turn. */
static bool list_loop(grow *g, const gop *op)
{
    const bool carries = op->arg == INSERT;
    const list l = new_list(g, carries && grow_one_in(g, 3) ? EMPTY : CONSTRUCT);
    const uint32_t turns = carries ? grow_below(g, 4) : 1 + grow_below(g, l.count + 1);
    if (g->depth > 1 || l.value == G_NONE || l.like == G_NONE || (!carries && turns > l.count)) return false;
    const gsize count = gsize_of(turns);
    const uint32_t trips = carries ? grow_const_scalar(g, SINTER_DTYPE_I64, turns) : grow_ints(g, &count, 1, true);
    if (trips == G_NONE) return false;
    const opened o = grow_open(g);
    const uint32_t at = grow_param(g, SINTER_DTYPE_I64, 0), go = grow_param(g, SINTER_DTYPE_BOOL, 1);
    list own = l;
    if (carries) own.value = grow_param_list(g, l.value);
    bool is_fine = grow_result(g, go);
    if (carries) {
        own = changed(g, own, false);
        is_fine = is_fine && own.value != G_NONE && grow_result(g, own.value);
    }
    const uint32_t x = carries ? grow_1(g, "Identity", l.like) : grow_2(g, "SequenceAt", l.value, at);
    is_fine = is_fine && grow_result(g, x);
    const uint32_t body = grow_close(g, o);
    if (!is_fine || own.count < l.count) return false;
    const uint32_t n = grow_begin(g, "Loop");
    grow_in(g, n, trips);
    grow_in(g, n, G_ABSENT);
    if (carries) grow_in(g, n, l.value);
    gnode_attr(&g->m->node.at[n], "body", GA_GRAPH)->i = body;
    list all = l;
    all.value = grow_end(g, n, 1 + carries);
    all.count += turns * (own.count - l.count);
    return all.value != G_NONE && (!carries || end_list(g, all, 0));
}

/* Branches that give an optional each, with or without a value where the condition is known. */
static bool optional_if(grow *g, const gop *op)
{
    (void)op;
    uint32_t branch[2];
    const uint32_t x = grow_pick(g, T_ALL, 0, 4), condition = when(g, grow_one_in(g, 3));
    if (g->depth > 1 || x == G_NONE || condition == G_NONE) return false;
    for (uint32_t b = 0; b < 2; b++) {
        const opened o = grow_open(g);
        const uint32_t own = b ? another(g, x) : x;
        const bool is_fine = own != G_NONE && grow_result(g, grow_1(g, "Optional", own));
        branch[b] = grow_close(g, o);
        if (!is_fine) return false;
    }
    const uint32_t made = if_of(g, condition, branch, 1);
    return made != G_NONE && grow_1(g, grow_one_in(g, 3) ? "OptionalHasElement" : "OptionalGetElement", made) != G_NONE;
}

/* arg 1: asks whether there is a value; 2: of an optional that is left out. */
static bool optional(grow *g, const gop *op)
{
    if (op->arg == 2 && grow_one_in(g, 2)) {
        grow_since(g, 18);
        return grow_end(g, grow_begin(g, "OptionalHasElement"), 1) != G_NONE;
    }
    const uint32_t x = grow_1(g, "Optional", grow_pick(g, T_ALL, 0, 5));
    return grow_1(g, op->arg ? "OptionalHasElement" : "OptionalGetElement", x) != G_NONE;
}

/* Numbers as text, and back. */
static bool text_of(grow *g, const gop *op)
{
    (void)op;
    const sinter_dtype t = grow_one_in(g, 2)   ? SINTER_DTYPE_F32
                           : grow_one_in(g, 2) ? SINTER_DTYPE_I64
                                               : SINTER_DTYPE_I32;
    const gsize d[2] = { gsize_of(grow_between(g, 1, 4)), gsize_of(grow_between(g, 1, 4)) };
    const uint32_t x = grow_leaf(g, t, d, grow_below(g, 3), true, grow_fill(g, t)), n = grow_begin(g, "Cast");
    grow_in(g, n, x);
    grow_int(g, n, "to", G_STRING);
    const uint32_t s = grow_end(g, n, 1);
    if (s == G_NONE) return false;
    const uint32_t back = grow_begin(g, "Cast");
    grow_in(g, back, s);
    grow_int(g, back, "to", onnx_type_of(t));
    return grow_end(g, back, 1) != G_NONE;
}

/* Words, each of which is one of few numbers. */
static uint32_t words(grow *g, const gsize *d, uint32_t rank)
{
    const gfill few = { 97, 103, 1, grow_below(g, 1 << 20) };
    const uint32_t x = grow_leaf(g, SINTER_DTYPE_I64, d, rank, true, few), n = grow_begin(g, "Cast");
    grow_in(g, n, x);
    grow_int(g, n, "to", G_STRING);
    return grow_end(g, n, 1);
}

/* Other words of the same shape: as they are, in another order, or chosen. */
static uint32_t other_words(grow *g, uint32_t s, const gsize *d, uint32_t rank)
{
    if (s == G_NONE || g->is_refused) return G_NONE;
    const uint32_t way = grow_below(g, 4);
    if (way == 0) return words(g, d, rank);
    if (way == 1 && rank && gsize_min(g, d[0]) > 0) {
        int64_t at[4];
        for (int64_t i = 0; i < d[0].at[0]; i++) at[i] = grow_between(g, 0, d[0].at[0] - 1);
        return grow_2(g, "Gather", s, grow_const_ints(g, at, (uint32_t)d[0].at[0]));
    }
    const uint32_t other = words(g, d, rank);
    if (way == 2 && other != G_NONE) return grow_3(g, "Where", grow_2(g, "Equal", s, other), other, s);
    return grow_1(g, "Identity", s);
}

/* Text that a branch gives, or that an outer scope has and turns compare. arg 1: turns. A Loop that carries text is
 * refused. */
static bool text_in_body(grow *g, const gop *op)
{
    const gsize d[2] = { gsize_of(grow_between(g, 1, 4)), gsize_of(grow_between(g, 1, 4)) };
    const uint32_t rank = grow_below(g, 3), first = words(g, d, rank), last = words(g, d, rank);
    if (g->depth > 1 || first == G_NONE || last == G_NONE) return false;
    uint32_t made = G_NONE;
    if (!op->arg) {
        uint32_t branch[2];
        const uint32_t condition = when(g, grow_one_in(g, 4));
        for (uint32_t b = 0; b < 2; b++) {
            const opened o = grow_open(g);
            const bool is_fine = condition != G_NONE && grow_result(g, other_words(g, b ? first : last, d, rank));
            branch[b] = grow_close(g, o);
            if (!is_fine) return false;
        }
        made = if_of(g, condition, branch, 1);
    } else {
        const gsize turns = gsize_of(grow_below(g, 4));
        const uint32_t trips = grow_ints(g, &turns, 1, true);
        const opened o = grow_open(g);
        (void)grow_param(g, SINTER_DTYPE_I64, 0);
        const uint32_t go = grow_param(g, SINTER_DTYPE_BOOL, 1), inner = other_words(g, first, d, rank);
        bool is_fine = trips != G_NONE && grow_result(g, go) && inner != G_NONE;
        is_fine = is_fine && grow_result(g, grow_2(g, "Equal", inner, last));
        const uint32_t body = grow_close(g, o);
        if (!is_fine) return false;
        const uint32_t n = grow_begin(g, "Loop");
        grow_in(g, n, trips);
        grow_in(g, n, G_ABSENT);
        gnode_attr(&g->m->node.at[n], "body", GA_GRAPH)->i = body;
        return grow_end(g, n, 1) != G_NONE;
    }
    return made != G_NONE && grow_2(g, "Equal", made, last) != G_NONE;
}

const gop gops_sequence[] = {
    { "SequenceConstruct", 11, 0, 1, sequence, CONSTRUCT, 0, 0 },
    { "SequenceEmpty", 11, 0, 1, sequence, EMPTY, 0, 0 },
    { "SequenceInsert", 11, 0, 1, sequence, INSERT, 0, 0 },
    { "SequenceErase", 11, 0, 1, sequence, CONSTRUCT | INSERT | ERASE, 0, 0 },
    { "SequenceAt", 11, 0, 1, sequence, AT, 0, 0 },
    { "SequenceLength", 11, 0, 1, sequence, LENGTH, 0, 0 },
    { "SplitToSequence", 11, 0, 1, sequence, SPLIT, 0, 0 },
    { "ConcatFromSequence", 11, 0, 1, sequence, CONCAT, 0, 0 },
    { "Optional", 15, 0, 1, optional, 0, 0, 0 },
    { "OptionalGetElement", 15, 0, 1, optional, 0, 0, 0 },
    { "OptionalHasElement", 15, 0, 1, optional, 2, 0, 0 },
    { "text", 0, 0, 1, text_of, 0, 0, 0 },
    { "text in if", 19, 0, 1, text_in_body, 0, 0, 0 },
    { "text in loop", 19, 0, 1, text_in_body, 1, 0, 0 },
    { "list from if", 0, 0, 1, list_if, 0, 0, 0 },
    { "list from loop", 0, 0, 1, list_loop, INSERT, 0, 0 },
    { "list in loop", 0, 0, 1, list_loop, AT, 0, 0 },
    { "optional from if", 0, 0, 1, optional_if, 0, 0, 0 },
    { 0 },
};
