/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_if.c - If.
 *
 * If the importer knows the condition, it converts the one branch in place of the If. Otherwise each branch becomes a
 * region, and the If a node with two regions.
 *
 * A value of our graph has one rank. ONNX lets the two branches give different ranks, and then later nodes see a value
 * of two ranks. Those nodes move into the branches: each branch gets a copy of them, and in a copy every rank is known.
 * The nodes that move are the tail. It begins with the readers of the varying outputs. If a result of the tail has two
 * ranks as well, the tail takes the readers of that result too, and so on until all results have one rank.
 *
 * An If inside a branch can itself give two ranks. Then the tail is written behind the branch's own nodes (`merged`).
 * There the inner If finds it behind itself, and takes what it needs into its own branches. */
#include "onnx/quirks.h"
#include "onnx/tail.h"

#include <string.h>

/* How many problems were reported when. A try that fails must leave no report behind. */
typedef struct trouble {
    uint32_t count, shown;
    sinter_status status, problem_status;
} trouble;

static trouble trouble_now(const onnx_call *c)
{
    return (trouble){ c->im->problem_count, c->im->problem_shown, c->b.status, c->im->problem_status };
}

static void trouble_restore(onnx_call *c, const trouble *t)
{
    c->im->problem_count = t->count;
    c->im->problem_shown = t->shown;
    c->im->problem_status = t->problem_status;
    c->b.status = t->status;
    if (!t->status && !t->count) *c->e->error = (sinter_error){ 0 };
}

/* ---- a try of both branches ---- */
typedef struct branches {
    const onnx_graph *yes, *no;
    ir_value_id condition;
    ir_node_id node;
    uint32_t node_first, region_first;
    bool is_yes, is_no; /* the then branch, the else branch can be imported */
    trouble first;      /* what is wrong with the then branch */
    bool is_merged;     /* the tail is written behind the branches' own nodes */
} branches;

/* A graph with the nodes of the branch and behind them those of the tail. The tail reads the outputs of the If by name:
 * an Identity gives each result of the branch that name. NULL: no memory. */
static const onnx_graph *merged(const onnx_call *c, const onnx_graph *branch, const call_tail *tail)
{
    arena *a = &c->im->a;
    onnx_graph *all = ARENA_NEW(a, onnx_graph, 1);
    if (!all) return NULL;
    *all = (onnx_graph){ .name = branch->name,
                         .initializer = branch->initializer,
                         .sparse = branch->sparse,
                         .in = branch->in,
                         .id = branch->id };
    for (uint32_t i = 0; i < branch->node.count; i++) {
        onnx_node *n = VEC_PUSH(a, &all->node);
        if (n) *n = branch->node.at[i];
    }
    for (uint32_t i = 0; i < branch->out.count && i < c->node->out.count; i++) {
        const char *from = branch->out.at[i].name, *to = c->node->out.at[i];
        if (!to[0] || strcmp(from, to) == 0) continue;
        onnx_node *n = VEC_PUSH(a, &all->node);
        if (!n) return NULL;
        *n = (onnx_node){ .name = "", .type = "Identity", .domain = "", .overload = "", .index = c->node->index };
        const char **in = VEC_PUSH(a, &n->in), **out = VEC_PUSH(a, &n->out);
        if (!in || !out) return NULL;
        *in = from;
        *out = to;
    }
    for (uint32_t i = 0; i < tail->graph.node.count; i++) {
        onnx_node *n = VEC_PUSH(a, &all->node);
        if (n) *n = tail->graph.node.at[i];
    }
    for (uint32_t i = 0; i < tail->exports.count; i++) {
        onnx_value_info *v = VEC_PUSH(a, &all->out);
        if (v) *v = (onnx_value_info){ .name = tail->exports.at[i] };
    }
    return onnx_nodes_read(a, a, all, &all->reads) && !a->failed ? all : NULL;
}

/* Converts one branch. False: that failed, and nothing of it is reported. If memory ran out, that stays an error. */
static bool branch_tried(onnx_call *c, const onnx_graph *graph, ir_node_id n, const call_captures *captures,
                         const call_tail *tail, trouble *t)
{
    const trouble before = trouble_now(c);
    call_region(c, graph, n, NULL, 0, captures, tail);
    *t = trouble_now(c);
    if (c->b.status == SINTER_NO_MEMORY || (!c->b.status && t->count == before.count)) return true;
    trouble_restore(c, &before);
    return false;
}

static void branches_try(onnx_call *c, branches *b, const call_tail *tail)
{
    call_captures captures = { 0 };
    trouble second;
    const onnx_graph *yes = b->yes, *no = b->no;
    const uint32_t count_out = tail ? tail->exports.count : c->count_out;
    if (tail && b->is_merged) {
        yes = merged(c, yes, tail);
        no = merged(c, no, tail);
        if (!yes || !no) REJECT(c, NO_MEMORY, "out of memory for a subgraph");
        if (c->b.status) return;
        tail = NULL;
    }
    call_capture(c, yes, &captures);
    call_capture(c, no, &captures);
    if (tail) call_capture(c, &tail->graph, &captures);
    ir_value_id *in = ARENA_NEW(&c->b.g->a, ir_value_id, (size_t)captures.count + 1);
    if (!in) REJECT(c, NO_MEMORY, "out of memory for a subgraph");
    if (c->b.status) return;
    in[0] = b->condition;
    if (captures.count) memcpy(in + 1, captures.at, captures.count * sizeof *in);
    b->node_first = c->b.g->node.count;
    b->region_first = c->b.g->region.count;
    b->node = build_if(&c->b, in, captures.count + 1, NULL, count_out);
    b->is_yes = branch_tried(c, yes, b->node, &captures, tail, &b->first);
    b->is_no = branch_tried(c, no, b->node, &captures, tail, &second);
}

static uint32_t rank_of_result(const onnx_call *c, const branches *b, uint32_t branch, uint32_t i)
{
    const ir_region *r = ir_region_at(c->b.g, ir_node_at(c->b.g, b->node)->region[branch]);
    return i < r->result.count ? call_rank(c, r->result.at[i]) : 0;
}

static bool differs(const onnx_call *c, const branches *b, uint32_t i)
{
    return rank_of_result(c, b, 0, i) != rank_of_result(c, b, 1, i);
}

/* ---- the tail ---- */
enum { TAIL_MAX = 256, ROUNDS_MAX = 16 };

/* The If with its tail is good: its results become the values of the names that leave the branches, and the tail's
 * nodes count as converted. */
static sinter_status tail_accept(onnx_call *c, tail_search *x, const branches *b, const call_tail *tail)
{
    build_close(&c->b, b->node);
    for (uint32_t i = 0; i < tail->exports.count && !c->b.status; i++) {
        const ir_value_id v = build_result(&c->b, b->node, i);
        uint32_t own = 0;
        while (own < c->count_out && strcmp(c->node->out.at[own], tail->exports.at[i]) != 0) own++;
        if (own < c->count_out) c->out[own] = v;
        else c->b.status = scope_set(c->im, c->scope, tail->exports.at[i], v);
    }
    tail_done(x);
    return c->b.status;
}

/* The names to begin with: what varied when this If was converted before, or else the outputs that differ now. */
static void varying_first(onnx_call *c, const branches *b, const learned *known, tail_search *x)
{
    for (uint32_t i = 0; known && i < known->varying.count; i++) tail_varies(c->im, x, known->varying.at[i]);
    for (uint32_t i = 0; i < c->count_out && !known; i++)
        if ((b->is_merged || differs(c, b, i)) && c->node->out.at[i][0]) tail_varies(c->im, x, c->node->out.at[i]);
}

/* Converts the If with a tail in its branches. False: no tail makes the ranks equal, and nothing is left of the tries.
 * known: what this If learned earlier; NULL: nothing, and it was converted without a tail just now. */
static bool find_tail(onnx_call *c, branches *b, const learned *known, tail_search *x)
{
    uint32_t count = 0;
    call_tail tail;
    varying_first(c, b, known, x);
    if (!known) quirk_discard(c, b->node_first, b->region_first);
    for (uint32_t round = 0; round < ROUNDS_MAX && !c->b.status; round++) {
        bool is_equal = true;
        const uint32_t before = count;
        c->b.status = tail_close(c->im, x);
        if (c->b.status) break;
        count = x->in.count;
        if (count > TAIL_MAX || (round && count == before) || tail_is_stuck(x)) return false;
        c->b.status = tail_prepare(c->im, x);
        if (!c->b.status) c->b.status = tail_list(c->im, x, &tail);
        if (c->b.status) break;
        c->im->wants_tail = false;
        branches_try(c, b, &tail);
        if (c->b.status) break;
        /* An If inside a branch or the tail needs more nodes in the tail, but does not say which: all results vary. */
        const bool is_unclear = c->im->wants_tail && (!b->is_yes || !b->is_no);
        for (uint32_t i = 0; i < tail.exports.count && (is_unclear || (b->is_yes && b->is_no)); i++) {
            if (!is_unclear && !differs(c, b, i)) continue;
            is_equal = false;
            tail_varies(c->im, x, tail.exports.at[i]);
        }
        if (b->is_yes && b->is_no && is_equal) {
            c->b.status = tail_accept(c, x, b, &tail);
            learned *l = importer_learned(c->im, b->yes);
            if (l) *l = (learned){ .round = l->round, .is_merged = b->is_merged, .varying = x->varied };
            return true;
        }
        quirk_discard(c, b->node_first, b->region_first);
        if (!is_unclear && (!b->is_yes || !b->is_no)) return false;
    }
    return c->b.status != SINTER_OK;
}

/* known: as for find_tail. A node that is converted ahead of its place has no tail. */
static bool with_tail(onnx_call *c, branches *b, const learned *known)
{
    onnx_scope *s = c->scope;
    const bool wanted_tail = c->im->wants_tail;
    if (s->is_ahead || !s->nodes || &s->nodes->at[s->order[s->at]] != c->node) return false;
    tail_search x;
    c->b.status = tail_begin(c->im, s, &x);
    const bool is_done = c->b.status || find_tail(c, b, known, &x);
    tail_end(&x);
    c->im->wants_tail = wanted_tail;
    return is_done;
}

/* ---- the operator ---- */

/* The name that a branch reads, if its only node, Constants aside, is of this type; else NULL. */
static const char *only_does(const onnx_graph *graph, const char *type)
{
    const char *name = NULL;
    for (uint32_t i = 0; i < graph->node.count; i++) {
        const onnx_node *n = &graph->node.at[i];
        if (strcmp(n->type, "Constant") == 0) continue;
        if (name || strcmp(n->type, type) != 0 || !n->in.count) return NULL;
        name = n->in.at[0];
    }
    return graph->out.count == 1 ? name : NULL;
}

/* PyTorch writes x.squeeze(axis) as `size == 1 ? Squeeze(x) : x`. These branches differ in rank, and the nodes behind
 * them often make sense for the Squeeze alone. Then the Squeeze is taken, and a run checks the size, as for any
 * reshape.
 */
static const onnx_graph *squeeze_of(const onnx_graph *yes, const onnx_graph *no)
{
    const char *a = only_does(yes, "Squeeze"), *b = only_does(no, "Identity");
    return a && b && strcmp(a, b) == 0 ? yes : NULL;
}

/* Is the condition known while the model is read? */
static bool is_decided(onnx_call *c, ir_value_id condition, bool *out)
{
    const ir_value *v = ir_value_at(c->b.g, condition);
    double decided = 0;
    int64_t known = 0;
    bool is = ir_const_scalar(c->b.g, condition, &decided);
    if (!is && v->shape_value && v->shape_count == 1 && dim_is_const(c->b.g->dims, v->shape_value[0], &known)) {
        is = true;
        decided = known != 0;
    }
    if (!is) is = ir_known_scalar(c->b.g, condition, &decided);
    *out = decided != 0;
    return is;
}

/* A branch gives something that no node can have as a result: text, a sequence, or the result of an inner If that has
 * two ranks. So the tail has to go into the branch, or on into the inner If. If there is no such tail, this If is
 * refused; an If around it may then move its own tail in here. */
static void convert_nested(onnx_call *c, branches *b)
{
    b->is_merged = true;
    if (with_tail(c, b, NULL) || c->b.status) return;
    c->im->wants_tail = true;
    REJECT(c, UNSUPPORTED, "a branch gives output '%s' different ranks, a sequence or text, and so has what follows",
           c->count_out ? c->node->out.at[0] : "");
}

/* Begins with the tail that this If had when it was converted before. */
static bool as_before(onnx_call *c, branches *b)
{
    const learned *l = importer_learned(c->im, b->yes);
    if (!l || !l->varying.count) return false;
    const learned known = *l;
    b->is_merged = known.is_merged;
    b->node_first = c->b.g->node.count;
    b->region_first = c->b.g->region.count;
    if (with_tail(c, b, &known)) return true;
    b->is_merged = false;
    return false;
}

/* Often a branch makes no sense for the sizes of the model, or what follows makes none with its results, and it never
 * runs. Then the other one takes its place. */
static bool one_taken(onnx_call *c, const branches *b)
{
    if (b->is_yes == b->is_no) return false;
    quirk_guard(c, b->condition, b->is_yes, GUARD_BRANCH);
    call_inline(c, b->is_yes ? b->yes : b->no, NULL, 0, c->out, c->count_out);
    return true;
}

static void if_convert(onnx_call *c)
{
    branches b = { .yes = quirk_graph(c, "then_branch"), .no = quirk_graph(c, "else_branch") };
    b.condition = quirk_scalar_in(c, call_in(c, 0));
    bool decided = false;
    if (!b.condition) REJECT(c, INVALID_MODEL, "the condition is missing");
    if (c->b.status) return;
    if (is_decided(c, b.condition, &decided)) {
        call_inline(c, decided ? b.yes : b.no, NULL, 0, c->out, c->count_out);
        return;
    }
    if (as_before(c, &b) || c->b.status) return;
    const bool wanted_tail = c->im->wants_tail;
    c->im->wants_tail = false;
    branches_try(c, &b, NULL);
    const bool is_nested = c->im->wants_tail && (!b.is_yes || !b.is_no);
    c->im->wants_tail = wanted_tail;
    if (is_nested && !c->b.status) {
        convert_nested(c, &b);
        return;
    }
    if (!c->b.status && !b.is_yes && !b.is_no) {
        trouble_restore(c, &b.first);
        if (!c->e->error->text[0]) c->b.status = FAIL(c->e, UNSUPPORTED, "its subgraph cannot be imported");
    }
    if (c->b.status) return;
    if (b.is_yes != b.is_no) quirk_discard(c, b.node_first, b.region_first);
    if (one_taken(c, &b)) return;
    uint32_t at = 0;
    while (at < c->count_out && !differs(c, &b, at)) at++;
    if (at == c->count_out) {
        quirk_owner_done(c, b.node);
        return;
    }
    const uint32_t rank[2] = { rank_of_result(c, &b, 0, at), rank_of_result(c, &b, 1, at) };
    const onnx_graph *guarded = squeeze_of(b.yes, b.no);
    if (with_tail(c, &b, NULL) || c->b.status || one_taken(c, &b)) return;
    c->im->wants_tail = wanted_tail || !guarded;
    if (guarded) call_inline(c, guarded, NULL, 0, c->out, c->count_out);
    else
        REJECT(c, UNSUPPORTED,
               "output '%s' has rank %u in one branch and rank %u in the other, and so has what follows",
               c->node->out.at[at], rank[0], rank[1]);
}

void convert_if(onnx_call *c)
{
    importer_enter(c->im);
    if_convert(c);
    importer_leave(c->im);
}
