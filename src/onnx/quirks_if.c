/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_if.c - If.
 *
 * A condition that is known takes its branch in place. Otherwise both branches become regions of a node, whose results
 * have one rank. Where the branches give different ranks, the nodes behind the If that depend on them are converted in
 * each branch as well (the tail), until what leaves the branches has one rank again. Where an If inside a branch gives
 * the branch's result different ranks, the tail becomes a part of that branch's list of nodes, and so of the inner If's
 * tail. */
#include "onnx/importer.h"
#include "onnx/quirks.h"

#include <string.h>

/* What a branch that cannot be imported left behind. */
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
    bool is_yes, is_no; /* the branch can be imported */
    trouble first;      /* what is wrong with the first branch */
    bool is_merged;     /* the tail is a part of the branches' own lists of nodes */
} branches;

/* A branch with the tail behind its nodes. The results of the branch get the names of the if's outputs too. NULL: no
 * memory. */
static const onnx_graph *merged(const onnx_call *c, const onnx_graph *branch, const call_tail *tail)
{
    arena *a = &c->im->a;
    onnx_graph *all = ARENA_NEW(a, onnx_graph, 1);
    if (!all) return NULL;
    *all = (onnx_graph){
        .name = branch->name, .initializer = branch->initializer, .sparse = branch->sparse, .in = branch->in
    };
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

/* True where the branch went into its region without trouble. Memory that ran out stays a failure. */
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
enum { TAIL_MAX = 64, ROUNDS_MAX = 16 };
typedef struct search {
    onnx_scope *s;
    name_map maker;     /* names made by the if and behind it: their place in the order */
    name_map varying;   /* names whose rank differs from branch to branch */
    onnx_names *reads;  /* by place */
    bool *depends, *in; /* by place: on the if; part of the tail */
} search;

static const onnx_node *node_at(const search *x, uint32_t place)
{
    return &x->s->nodes->at[x->s->order[place]];
}

static bool note(importer *im, name_map *map, const char *name, uint32_t value)
{
    bool is_new;
    uint32_t *slot = name_map_add(map, name, &is_new);
    if (slot && is_new) *slot = value;
    return slot != NULL || (im->a.failed = true);
}

/* Who makes and who reads which names from the if on, and what depends on it. */
static sinter_status search_init(importer *im, onnx_scope *s, search *x)
{
    *x = (search){ .s = s, .maker = { .a = &im->a }, .varying = { .a = &im->a } };
    x->reads = ARENA_NEW(&im->a, onnx_names, s->count);
    x->depends = ARENA_NEW(&im->a, bool, s->count);
    x->in = ARENA_NEW(&im->a, bool, s->count);
    if (!x->reads || !x->depends || !x->in) return FAIL_MEMORY(im->e, "an if");
    x->depends[s->at] = true;
    for (uint32_t p = s->at; p < s->count; p++) {
        if (s->is_done[p]) continue;
        const onnx_node *n = node_at(x, p);
        for (uint32_t i = 0; i < n->out.count; i++)
            if (n->out.at[i][0]) note(im, &x->maker, n->out.at[i], p);
        if (p == s->at) continue;
        const onnx_graph alone = { .node = { .count = 1, .at = &s->nodes->at[s->order[p]] } };
        if (!onnx_nodes_read(&im->a, &im->a, &alone, &x->reads[p])) return FAIL_MEMORY(im->e, "an if");
        for (uint32_t i = 0; i < x->reads[p].count; i++) {
            const uint32_t *from = name_map_find(&x->maker, x->reads[p].at[i]);
            x->depends[p] = x->depends[p] || (from && x->depends[*from]);
        }
    }
    return im->a.failed ? FAIL_MEMORY(im->e, "an if") : SINTER_OK;
}

/* Takes into the tail who reads a varying name, and what lies between the if and the tail. The number of nodes. */
static uint32_t tail_close(search *x)
{
    uint32_t count = 0;
    for (uint32_t p = x->s->at + 1; p < x->s->count; p++)
        for (uint32_t i = 0; i < x->reads[p].count && !x->in[p]; i++)
            x->in[p] = name_map_find(&x->varying, x->reads[p].at[i]) != NULL;
    for (uint32_t p = x->s->count; p-- > x->s->at + 1;) {
        for (uint32_t i = 0; i < x->reads[p].count && x->in[p]; i++) {
            const uint32_t *from = name_map_find(&x->maker, x->reads[p].at[i]);
            if (from && *from != x->s->at && x->depends[*from]) x->in[*from] = true;
        }
        count += x->in[p];
    }
    return count;
}

/* Converts what the tail reads and the if has no part in. */
static sinter_status tail_prepare(importer *im, search *x)
{
    onnx_scope *s = x->s;
    bool *wanted = ARENA_NEW(&im->a, bool, s->count);
    if (!wanted) return FAIL_MEMORY(im->e, "an if");
    for (uint32_t p = s->count; p-- > s->at + 1;) {
        for (uint32_t i = 0; i < x->reads[p].count && (x->in[p] || wanted[p]); i++) {
            const uint32_t *from = name_map_find(&x->maker, x->reads[p].at[i]);
            if (from && !x->depends[*from]) wanted[*from] = true;
        }
    }
    for (uint32_t p = s->at + 1; p < s->count; p++)
        if (wanted[p] && !s->is_done[p]) TRY(scope_convert_ahead(im, s, p));
    return SINTER_OK;
}

static bool is_exported(const search *x, const char *name)
{
    for (uint32_t i = 0; i < x->s->wanted.count; i++)
        if (strcmp(x->s->wanted.at[i], name) == 0) return true;
    for (uint32_t p = x->s->at + 1; p < x->s->count; p++)
        for (uint32_t i = 0; i < x->reads[p].count && !x->in[p]; i++)
            if (strcmp(x->reads[p].at[i], name) == 0) return true;
    return false;
}

/* The tail's nodes, and the names of the if and of the tail that others read. */
static sinter_status tail_list(importer *im, const search *x, call_tail *out)
{
    *out = (call_tail){ 0 };
    for (uint32_t p = x->s->at; p < x->s->count; p++) {
        const onnx_node *n = node_at(x, p);
        if (p != x->s->at && !x->in[p]) continue;
        onnx_node *slot = p == x->s->at ? NULL : VEC_PUSH(&im->a, &out->graph.node);
        if (slot) *slot = *n;
        for (uint32_t i = 0; i < n->out.count; i++) {
            if (!n->out.at[i][0] || !is_exported(x, n->out.at[i])) continue;
            const char **name = VEC_PUSH(&im->a, &out->exports);
            if (name) *name = n->out.at[i];
        }
    }
    const bool is_good = onnx_nodes_read(&im->a, &im->a, &out->graph, &out->graph.reads);
    return !is_good || im->a.failed ? FAIL_MEMORY(im->e, "an if") : SINTER_OK;
}

/* Gives the names that leave the branches their values; the tail's nodes are done. */
static sinter_status tail_accept(onnx_call *c, const search *x, const branches *b, const call_tail *tail)
{
    onnx_scope *s = x->s;
    build_close(&c->b, b->node);
    for (uint32_t i = 0; i < tail->exports.count && !c->b.status; i++) {
        const ir_value_id v = build_result(&c->b, b->node, i);
        uint32_t own = 0;
        while (own < c->count_out && strcmp(c->node->out.at[own], tail->exports.at[i]) != 0) own++;
        if (own < c->count_out) c->out[own] = v;
        else c->b.status = scope_set(c->im, s, tail->exports.at[i], v);
    }
    for (uint32_t p = s->at + 1; p < s->count; p++) s->is_done[p] = s->is_done[p] || x->in[p];
    return c->b.status;
}

/* Converts the if with a tail in its branches. False, and nothing is left, where no tail makes the ranks equal. */
static bool find_tail(onnx_call *c, branches *b)
{
    search x;
    uint32_t count = 0;
    call_tail tail;
    onnx_scope *s = c->scope;
    if (s->is_ahead || !s->nodes || &s->nodes->at[s->order[s->at]] != c->node) return false;
    c->b.status = search_init(c->im, s, &x);
    for (uint32_t i = 0; i < c->count_out && !c->b.status; i++)
        if ((b->is_merged || differs(c, b, i)) && c->node->out.at[i][0]) note(c->im, &x.varying, c->node->out.at[i], 0);
    quirk_discard(c, b->node_first, b->region_first);
    for (uint32_t round = 0; round < ROUNDS_MAX && !c->b.status; round++) {
        bool is_equal = true;
        const uint32_t before = count;
        count = tail_close(&x);
        if (count > TAIL_MAX || (round && count == before)) return false;
        for (uint32_t i = 0; i < s->wanted.count; i++)
            if (name_map_find(&x.varying, s->wanted.at[i])) return false;
        c->b.status = tail_prepare(c->im, &x);
        if (!c->b.status) c->b.status = tail_list(c->im, &x, &tail);
        c->im->wants_tail = false;
        branches_try(c, b, &tail);
        if (c->b.status) break;
        /* An If in a branch or in the tail says no more than that. */
        const bool is_unclear = c->im->wants_tail && (!b->is_yes || !b->is_no);
        for (uint32_t i = 0; i < tail.exports.count && (is_unclear || (b->is_yes && b->is_no)); i++) {
            if (!is_unclear && !differs(c, b, i)) continue;
            is_equal = false;
            note(c->im, &x.varying, tail.exports.at[i], 0);
        }
        if (b->is_yes && b->is_no && is_equal) {
            c->b.status = tail_accept(c, &x, b, &tail);
            return true;
        }
        quirk_discard(c, b->node_first, b->region_first);
        if (!is_unclear && (!b->is_yes || !b->is_no)) return false;
    }
    return c->b.status != SINTER_OK;
}

static bool with_tail(onnx_call *c, branches *b)
{
    const bool wanted_tail = c->im->wants_tail;
    const bool is_done = find_tail(c, b);
    c->im->wants_tail = wanted_tail;
    return is_done;
}

/* ---- the operator ---- */

/* Does a branch only do `type` to a value from outside? Its name, or NULL; constants for its parameters do not count.
 */
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

/* PyTorch writes x.squeeze(axis) as `size == 1 ? Squeeze(x) : x`. The two have different ranks, and what follows is
 * often written for the first alone: then it is taken, and the run checks the size as it does for any reshape. */
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

/* A branch gives what no node has: text, a sequence, or a result of an If in it that has different ranks. The tail has
 * to go into the branch, or into that If. Otherwise the If is refused, and an If around it may take its own tail there.
 */
static void convert_nested(onnx_call *c, branches *b)
{
    b->is_merged = true;
    if (with_tail(c, b) || c->b.status) return;
    c->im->wants_tail = true;
    REJECT(c, UNSUPPORTED, "a branch gives output '%s' different ranks, a sequence or text, and so has what follows",
           c->count_out ? c->node->out.at[0] : "");
}

void convert_if(onnx_call *c)
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
    const bool wanted_tail = c->im->wants_tail;
    c->im->wants_tail = false;
    branches_try(c, &b, NULL);
    const bool is_nested = c->im->wants_tail && (!b.is_yes || !b.is_no);
    c->im->wants_tail = wanted_tail;
    if (is_nested && !c->b.status) {
        convert_nested(c, &b);
        return;
    }
    if (!c->b.status && !b.is_yes && !b.is_no) trouble_restore(c, &b.first);
    if (c->b.status) return;
    /* Often a branch makes no sense for the sizes at hand, and never runs: then the other one is the graph. */
    if (b.is_yes != b.is_no) {
        quirk_discard(c, b.node_first, b.region_first);
        quirk_guard(c, b.condition, b.is_yes, GUARD_BRANCH);
        call_inline(c, b.is_yes ? b.yes : b.no, NULL, 0, c->out, c->count_out);
        return;
    }
    uint32_t at = 0;
    while (at < c->count_out && !differs(c, &b, at)) at++;
    if (at == c->count_out) {
        quirk_owner_done(c, b.node);
        return;
    }
    const uint32_t rank[2] = { rank_of_result(c, &b, 0, at), rank_of_result(c, &b, 1, at) };
    const onnx_graph *guarded = squeeze_of(b.yes, b.no);
    if (with_tail(c, &b) || c->b.status) return;
    c->im->wants_tail = wanted_tail || !guarded;
    if (guarded) call_inline(c, guarded, NULL, 0, c->out, c->count_out);
    else
        REJECT(c, UNSUPPORTED, "output '%s' has rank %u in one branch and %u in the other, and so has what follows",
               c->node->out.at[at], rank[0], rank[1]);
}
