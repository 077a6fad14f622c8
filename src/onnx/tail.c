/* SPDX-License-Identifier: Apache-2.0 */
/* tail.c - finds the nodes that move into the branches of an If: tail.h has the contract.
 *
 * An index of the scope says for each name who makes it and who reads it. The index is made once for all Ifs of a
 * scope. From there a search follows names only: forward from what varies to its readers, and back from the tail to
 * what it reads. */
#include "onnx/tail.h"

#include <stdlib.h>
#include <string.h>

enum { FLAG_IN = 1, FLAG_SEEN = 2 };
#define NO_READER UINT32_MAX

typedef struct name_use {
    uint32_t maker;  /* place */
    uint32_t reader; /* newest in tail_index.reader; NO_READER: none */
    bool is_wanted;  /* read when all nodes are done */
} name_use;

typedef struct name_reader {
    uint32_t place, next;
} name_reader;

typedef struct tail_index {
    name_map name; /* index into `use` */
    VEC(name_use) use;
    VEC(name_reader) reader;
    VEC(uint32_t) from; /* makers of what nodes read */
    uint32_t *from_at;  /* by place: where its makers begin in `from`; they end where those of the next begin */
    uint8_t *flags;     /* by place: FLAG_…, of the search that is going on; 0 between searches */
} tail_index;

static const onnx_node *node_at(const onnx_scope *s, uint32_t place)
{
    return &s->nodes->at[s->order[place]];
}

static name_use *use_of(const tail_index *x, const char *name)
{
    const uint32_t *slot = name_map_find(&x->name, name);
    return slot ? &x->use.at[*slot] : NULL;
}

static bool add_readers(importer *im, tail_index *x, const onnx_names *names, uint32_t place)
{
    for (uint32_t i = 0; i < names->count; i++) {
        name_use *use = use_of(x, names->at[i]);
        if (!use) continue;
        uint32_t *from = VEC_PUSH(&im->a, &x->from);
        name_reader *reader = VEC_PUSH(&im->a, &x->reader);
        if (!from || !reader) return false;
        *from = use->maker;
        *reader = (name_reader){ place, use->reader };
        use->reader = x->reader.count - 1;
    }
    return true;
}

static bool add_makers(importer *im, tail_index *x, const onnx_names *names, uint32_t place)
{
    for (uint32_t i = 0; i < names->count; i++) {
        bool is_new = false;
        if (!names->at[i][0]) continue;
        uint32_t *slot = name_map_add(&x->name, names->at[i], &is_new);
        name_use *use = slot && is_new ? VEC_PUSH(&im->a, &x->use) : NULL;
        if (!slot || (is_new && !use)) return false;
        if (!is_new) continue;
        *slot = x->use.count - 1;
        *use = (name_use){ .maker = place, .reader = NO_READER };
    }
    return true;
}

/* Nodes before the first If that wants the index are left out: no later If has them behind itself. */
static bool index_fill(importer *im, const onnx_scope *s, tail_index *x, arena *scratch)
{
    bool is_good = true;
    for (uint32_t p = s->at; p < s->count && is_good; p++) {
        const arena_mark mark = arena_save(scratch);
        const onnx_graph alone = { .node = { .count = 1, .at = &s->nodes->at[s->order[p]] } };
        onnx_names reads = { 0 };
        x->from_at[p] = x->from.count;
        is_good = onnx_nodes_read(scratch, scratch, &alone, &reads) && add_readers(im, x, &reads, p) &&
                  add_makers(im, x, &node_at(s, p)->out, p);
        arena_rewind(scratch, mark);
    }
    x->from_at[s->count] = x->from.count;
    for (uint32_t i = 0; i < s->wanted.count && is_good; i++) {
        name_use *use = use_of(x, s->wanted.at[i]);
        if (use) use->is_wanted = true;
    }
    return is_good;
}

static sinter_status index_make(importer *im, onnx_scope *s)
{
    tail_index *x = ARENA_NEW(&im->a, tail_index, 1);
    if (!x) return FAIL_MEMORY(im->e, "an if");
    x->name.a = &im->a;
    x->from_at = ARENA_NEW(&im->a, uint32_t, (size_t)s->count + 1);
    x->flags = ARENA_NEW(&im->a, uint8_t, s->count);
    if (!x->from_at || !x->flags) return FAIL_MEMORY(im->e, "an if");
    arena scratch;
    arena_init(&scratch, im->e);
    const bool is_good = index_fill(im, s, x, &scratch);
    arena_deinit(&scratch);
    if (!is_good) return FAIL_MEMORY(im->e, "an if");
    s->tails = x;
    return SINTER_OK;
}

sinter_status tail_begin(importer *im, onnx_scope *s, tail_search *x)
{
    *x = (tail_search){ .s = s };
    arena_init(&x->a, im->e);
    x->varying.a = &x->a;
    return s->tails ? SINTER_OK : index_make(im, s);
}

void tail_end(tail_search *x)
{
    for (uint32_t i = 0; i < x->in.count; i++) x->s->tails->flags[x->in.at[i]] = 0;
    for (uint32_t i = 0; i < x->cone.count; i++) x->s->tails->flags[x->cone.at[i]] = 0;
    arena_deinit(&x->a);
}

/* Is the node behind the If, and still to be converted? */
static bool is_behind(const tail_search *x, uint32_t place)
{
    return place > x->s->at && !x->s->is_done[place];
}

void tail_varies(importer *im, tail_search *x, const char *name)
{
    const name_use *use = use_of(x->s->tails, name);
    bool is_new = false;
    if (!use || (use->maker != x->s->at && !is_behind(x, use->maker))) return;
    const char **slot = name_map_add(&x->varying, name, &is_new) && is_new ? VEC_PUSH(&im->a, &x->varied) : NULL;
    if (slot) *slot = name;
}

static void put_in(tail_search *x, uint32_t place)
{
    uint8_t *flags = &x->s->tails->flags[place];
    uint32_t *slot = *flags & FLAG_IN ? NULL : VEC_PUSH(&x->a, &x->in);
    if (!slot) return;
    *slot = place;
    *flags |= FLAG_IN;
}

/* The readers of varying names. */
static void spread(importer *im, tail_search *x)
{
    const tail_index *t = x->s->tails;
    for (; x->spread < x->varied.count; x->spread++) {
        const name_use *use = use_of(t, x->varied.at[x->spread]);
        for (uint32_t i = use->reader; i != NO_READER; i = t->reader.at[i].next) {
            const uint32_t place = t->reader.at[i].place;
            const onnx_node *n = node_at(x->s, place);
            if (!is_behind(x, place)) continue;
            put_in(x, place);
            if (strcmp(n->type, "Identity") == 0 && n->in.count == 1 && n->out.count == 1)
                tail_varies(im, x, n->out.at[0]);
        }
    }
}

/* Adds the makers of what a node reads to the cone. */
static void look_back(tail_search *x, uint32_t place)
{
    const tail_index *t = x->s->tails;
    for (uint32_t i = t->from_at[place]; i < t->from_at[place + 1]; i++) {
        const uint32_t from = t->from.at[i];
        if (!is_behind(x, from) || t->flags[from]) continue;
        uint32_t *slot = VEC_PUSH(&x->a, &x->cone);
        if (!slot) return;
        *slot = from;
        t->flags[from] = FLAG_SEEN;
    }
}

static bool depends(const tail_search *x, uint32_t place)
{
    const tail_index *t = x->s->tails;
    for (uint32_t i = t->from_at[place]; i < t->from_at[place + 1]; i++)
        if (t->from.at[i] == x->s->at || (is_behind(x, t->from.at[i]) && t->flags[t->from.at[i]] & FLAG_IN))
            return true;
    return false;
}

static int by_place(const void *a, const void *b)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static void sort(uint32_t *at, uint32_t count)
{
    if (count > 1) qsort(at, count, sizeof *at, by_place);
}

sinter_status tail_close(importer *im, tail_search *x)
{
    const uint32_t first = x->cone.count;
    spread(im, x);
    for (; x->closed < x->in.count; x->closed++) look_back(x, x->in.at[x->closed]);
    for (uint32_t i = first; i < x->cone.count; i++) look_back(x, x->cone.at[i]);
    if (im->a.failed || x->a.failed) return FAIL_MEMORY(im->e, "an if");
    /* In the order of places, so that it is known of all makers of a node whether they depend on the If. */
    if (x->cone.count > first) sort(x->cone.at + first, x->cone.count - first);
    for (uint32_t i = first; i < x->cone.count; i++) {
        const uint32_t place = x->cone.at[i];
        uint32_t *slot = NULL;
        if (depends(x, place)) put_in(x, place);
        else if ((slot = VEC_PUSH(&x->a, &x->ahead)) != NULL) *slot = place;
    }
    x->closed = x->in.count;
    return x->a.failed ? FAIL_MEMORY(im->e, "an if") : SINTER_OK;
}

bool tail_is_stuck(const tail_search *x)
{
    for (uint32_t i = 0; i < x->varied.count; i++)
        if (use_of(x->s->tails, x->varied.at[i])->is_wanted) return true;
    return false;
}

sinter_status tail_prepare(importer *im, tail_search *x)
{
    for (; x->prepared < x->ahead.count; x->prepared++) {
        const uint32_t place = x->ahead.at[x->prepared];
        if (!x->s->is_done[place]) TRY(scope_convert_ahead(im, x->s, place));
    }
    return SINTER_OK;
}

/* Does a node outside the tail read the name, or is it wanted when all nodes are done? */
static bool is_exported(const tail_search *x, const char *name)
{
    const tail_index *t = x->s->tails;
    const name_use *use = use_of(t, name);
    if (!use) return false;
    for (uint32_t i = use->reader; i != NO_READER; i = t->reader.at[i].next)
        if (is_behind(x, t->reader.at[i].place) && !(t->flags[t->reader.at[i].place] & FLAG_IN)) return true;
    return use->is_wanted;
}

static void export_names(importer *im, const tail_search *x, const onnx_names *names, call_tail *out)
{
    for (uint32_t i = 0; i < names->count; i++) {
        if (!names->at[i][0] || !is_exported(x, names->at[i])) continue;
        const char **name = VEC_PUSH(&im->a, &out->exports);
        if (name) *name = names->at[i];
    }
}

sinter_status tail_list(importer *im, tail_search *x, call_tail *out)
{
    *out = (call_tail){ 0 };
    sort(x->in.at, x->in.count);
    export_names(im, x, &node_at(x->s, x->s->at)->out, out);
    for (uint32_t i = 0; i < x->in.count; i++) {
        const onnx_node *n = node_at(x->s, x->in.at[i]);
        onnx_node *slot = VEC_PUSH(&im->a, &out->graph.node);
        if (slot) *slot = *n;
        export_names(im, x, &n->out, out);
    }
    const bool is_good = onnx_nodes_read(&im->a, &im->a, &out->graph, &out->graph.reads);
    return !is_good || im->a.failed ? FAIL_MEMORY(im->e, "an if") : SINTER_OK;
}

void tail_done(tail_search *x)
{
    for (uint32_t i = 0; i < x->in.count; i++) x->s->is_done[x->in.at[i]] = true;
}
