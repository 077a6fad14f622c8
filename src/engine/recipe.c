/* SPDX-License-Identifier: Apache-2.0 */
/* recipe.c - weights made again from the model's initializers, as the build made them: ops on the reference kernels,
 * then the packing of the kernel that reads them.
 *
 * A file may say anything here, so each recipe is checked as a step is: the problem parses, its sizes are known and go
 * together, operands have the bytes that they claim, and the kernel takes the problem with this tactic. */
#include "engine/engine.h"

#include <string.h>

enum { DEPTH_MAX = 256 };

typedef struct made {
    const uint8_t *at;
    uint64_t size;
} made;

struct recipe_player {
    env *e;
    const engine *g;
    const recipe_source *from;
    arena a;               /* what one weight takes */
    made *made;            /* by recipe; NULL: not made for this weight */
    uint32_t *list, count; /* those that are */
};

#define BAD(e, ...) FAIL(e, INVALID_MODEL, __VA_ARGS__)

sinter_status recipe_player_create(env *e, const engine *g, const recipe_source *from, recipe_player **out)
{
    recipe_player *r = *out = mem_zalloc(e, sizeof *r, _Alignof(recipe_player));
    if (!r) return FAIL_MEMORY(e, "recipes");
    *r = (recipe_player){ .e = e, .g = g, .from = from };
    arena_init(&r->a, e);
    r->made = mem_zalloc(e, size_mul(g->recipe_count + 1u, sizeof *r->made), _Alignof(made));
    r->list = mem_zalloc(e, size_mul(g->recipe_count + 1u, sizeof *r->list), _Alignof(uint32_t));
    if (r->made && r->list) return SINTER_OK;
    recipe_player_destroy(r);
    *out = NULL;
    return FAIL_MEMORY(e, "recipes");
}

void recipe_player_destroy(recipe_player *r)
{
    if (!r) return;
    env *e = r->e;
    if (r->made) mem_free(e, r->made, size_mul(r->g->recipe_count + 1u, sizeof *r->made), _Alignof(made));
    if (r->list) mem_free(e, r->list, size_mul(r->g->recipe_count + 1u, sizeof *r->list), _Alignof(uint32_t));
    arena_deinit(&r->a);
    mem_free(e, r, sizeof *r, _Alignof(recipe_player));
}

static sinter_status parse(recipe_player *r, uint32_t text_at, const problem **out)
{
    const char *line = engine_text(r->g, text_at), *why = "";
    scan s = scan_of(line, strlen(line));
    problem *p;
    if (!problem_parse(&r->a, &s, &p, &why) || s.at != s.end)
        return BAD(r->e, "a recipe has a problem that cannot be read: %s", why ? why : "text behind it");
    *out = p;
    return SINTER_OK;
}

static bool view_of(const problem_operand *o, void *data, view *out)
{
    int64_t size[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < o->rank; i++) {
        if (!problem_dim_is_static(o->dim[i])) return false;
        size[i] = o->dim[i].min;
    }
    return problem_operand_is_row_major(o) && view_init(out, o->dtype, o->rank, size, data);
}

static uint64_t size_of(const view *v)
{
    sinter_tensor t = { .dtype = v->dtype, .rank = v->rank };
    memcpy(t.dim, v->dim, sizeof t.dim);
    return sinter_tensor_size(&t);
}

/* ---- ops ---- */

static sinter_status operands(recipe_player *r, const problem *p, const engine_recipe *x, view *in, view *out)
{
    for (uint32_t i = 0; i < p->count_in; i++) {
        const uint32_t arg = r->g->arg[x->in_at + i];
        in[i] = (view){ 0 };
        if (!arg != (p->in[i].dtype == SINTER_DTYPE_NONE)) return BAD(r->e, "a recipe has an operand too few");
        if (!arg) continue;
        const made *m = &r->made[arg];
        if (!view_of(&p->in[i], (void *)(uintptr_t)m->at, &in[i]) || size_of(&in[i]) != m->size)
            return BAD(r->e, "a recipe's operand has %llu bytes, which are not what its problem says",
                       (unsigned long long)m->size);
    }
    for (uint32_t i = 0; i < p->count_out; i++) {
        out[i] = (view){ 0 };
        if (p->out[i].dtype == SINTER_DTYPE_NONE) continue;
        if (!view_of(&p->out[i], NULL, &out[i])) return BAD(r->e, "a recipe's result has no known size");
        const uint64_t size = size_of(&out[i]);
        if (size > r->e->limits.memory_max) return FAIL_MEMORY(r->e, "a weight");
        out[i].data = arena_alloc(&r->a, (size_t)(size ? size : 1), ENGINE_ALIGN);
        if (!out[i].data) return FAIL_MEMORY(r->e, "a weight");
    }
    return SINTER_OK;
}

static sinter_status play_op(recipe_player *r, const engine_recipe *x, made *to)
{
    const problem *p;
    TRY(parse(r, x->text, &p));
    const op_info *op = op_at(p->op);
    if (op->regions || op->traits & (LATE | VARIES) || p->prologue || p->epilogue)
        return BAD(r->e, "a recipe with op '%s', which folds no constants", op->name);
    if (p->count_in != x->in_count || x->out >= p->count_out || !problem_is_static(p))
        return BAD(r->e, "a recipe does not fit its problem");
    if (!problem_sizes_agree(r->e, p)) return BAD(r->e, "the sizes in a recipe do not go together");
    view *in = ARENA_NEW(&r->a, view, p->count_in), *out = ARENA_NEW(&r->a, view, p->count_out);
    if (!in || !out) return FAIL_MEMORY(r->e, "a weight");
    TRY(operands(r, p, x, in, out));
    if (!out[x->out].data) return BAD(r->e, "a recipe gives a result that is absent");
    data_fault fault = { 0 };
    ref_call c = { .e = r->e,
                   .op = p->op,
                   .attrs = p->attrs,
                   .count_in = p->count_in,
                   .count_out = p->count_out,
                   .in = in,
                   .out = out,
                   .scratch = &r->a,
                   .fault = &fault };
    TRY(op_reference(&c));
    if (fault.is_set)
        return BAD(r->e, "index %lld of a weight is out of range: 0 to %lld", (long long)fault.value,
                   (long long)fault.limit);
    *to = (made){ out[x->out].data, size_of(&out[x->out]) };
    return SINTER_OK;
}

/* ---- packing ---- */

static bool constant(const engine *g, uint32_t at, int64_t *out)
{
    const uint32_t id = g->arg[at];
    if (!id || id >= g->dim_count || g->dim[id].kind != DIM_CONST) return false;
    *out = g->dim[id].value;
    return true;
}

/* The source as the kernel sees it: every element lies in its bytes. */
static sinter_status source_view(recipe_player *r, const engine_recipe *x, const problem_operand *o, view *out)
{
    const made *m = &r->made[r->g->arg[x->in_at]];
    const uint32_t bits = sinter_dtype_bits(o->dtype);
    int64_t offset = 0, least, most, size[SINTER_RANK_MAX] = { 0 }, stride[SINTER_RANK_MAX] = { 0 };
    bool ok = x->view_at <= r->g->arg_count && r->g->arg_count - x->view_at >= 1 + 2u * o->rank &&
              constant(r->g, (uint32_t)x->view_at, &offset) && offset >= 0;
    least = most = offset;
    bool is_empty = false;
    for (uint32_t i = 0; i < o->rank && ok; i++) {
        int64_t reach;
        ok = constant(r->g, (uint32_t)x->view_at + 1 + 2 * i, &size[i]) &&
             constant(r->g, (uint32_t)x->view_at + 2 + 2 * i, &stride[i]) && size[i] >= 0 &&
             problem_dim_is_static(o->dim[i]) && o->dim[i].min == size[i];
        is_empty = is_empty || size[i] == 0;
        ok = ok && i64_mul(size[i] ? size[i] - 1 : 0, stride[i], &reach) &&
             i64_add(reach < 0 ? least : most, reach, reach < 0 ? &least : &most);
    }
    int64_t end = 0;
    ok = ok && (is_empty || (least >= 0 && i64_add(most, 1, &end) && i64_mul(end, bits, &end) &&
                             ((uint64_t)end + 7) / 8 <= m->size && (uint64_t)offset % 8 * bits % 8 == 0));
    if (!ok || !view_init(out, o->dtype, o->rank, size, NULL)) return BAD(r->e, "a recipe packs what it does not have");
    for (uint32_t i = 0; i < o->rank; i++) out->stride[i] = stride[i];
    out->data = (uint8_t *)(uintptr_t)m->at + (is_empty ? 0 : (uint64_t)offset * bits / 8);
    return SINTER_OK;
}

static sinter_status play_pack(recipe_player *r, const engine_recipe *x, made *to)
{
    const problem *p;
    const kernel *k = NULL;
    tactic t;
    uint32_t count;
    const kernel *const *list = r->g->backend->kernels(&count);
    TRY(parse(r, x->text, &p));
    for (uint32_t i = 0; i < count && x->kernel && !k; i++)
        if (!strcmp(list[i]->name, engine_text(r->g, r->g->kernel_ref[x->kernel - 1].name))) k = list[i];
    if (!k || k->abi != r->g->kernel_ref[x->kernel - 1].abi || !k->pack_size || !k->pack)
        return BAD(r->e, "a recipe packs for a kernel that this library does not have");
    memcpy(t.at, x->tactic, sizeof t.at);
    if (x->in_count != 1 || !r->g->arg[x->in_at] || x->out >= p->count_in || !p->count_out ||
        (k->reject && k->reject(p, &r->g->target)) || (k->check && !k->check(p, &t)))
        return BAD(r->e, "a recipe packs for kernel '%s', which does not take it", k->name);
    const size_t size = k->pack_size(p, &t, x->out);
    if (!size || !p->in[x->out].is_const) return BAD(r->e, "a recipe packs what kernel '%s' takes as it is", k->name);
    view source;
    TRY(source_view(r, x, &p->in[x->out], &source));
    void *room = size > r->e->limits.memory_max ? NULL : arena_alloc(&r->a, size, ENGINE_ALIGN);
    if (!room) return FAIL_MEMORY(r->e, "a packed weight");
    k->pack(p, &t, x->out, &source, room);
    *to = (made){ room, size };
    return SINTER_OK;
}

/* ---- any ---- */

static sinter_status play(recipe_player *r, uint32_t id, uint32_t depth)
{
    const engine_recipe *x = &r->g->recipe[id - 1];
    made *to = &r->made[id];
    if (to->at) return SINTER_OK;
    if (depth > DEPTH_MAX) return BAD(r->e, "recipes nest deeper than %d", DEPTH_MAX);
    for (uint32_t i = 0; i < x->in_count; i++)
        if (r->g->arg[x->in_at + i]) TRY(play(r, r->g->arg[x->in_at + i], depth + 1));
    switch (x->kind) {
    case RECIPE_INITIALIZER:
        *to = (made){ r->from->find(r->from->user, engine_text(r->g, x->text), x->digest, x->data.size), x->data.size };
        if (!to->at) return FAIL(r->e, INVALID_ARG, "initializer '%s' is wanted", engine_text(r->g, x->text));
        break;
    case RECIPE_DATA: *to = (made){ r->g->weights + x->data.at, x->data.size }; break;
    case RECIPE_OP: TRY(play_op(r, x, to)); break;
    default: TRY(play_pack(r, x, to)); break;
    }
    r->list[r->count++] = id;
    return SINTER_OK;
}

sinter_status recipe_play(recipe_player *r, uint32_t recipe, const uint8_t **bytes, uint64_t *size)
{
    while (r->count) r->made[r->list[--r->count]] = (made){ 0 };
    arena_deinit(&r->a);
    arena_init(&r->a, r->e);
    if (!recipe) return FAIL(r->e, UNSUPPORTED, "nothing says how a weight was made");
    TRY(play(r, recipe, 0));
    *bytes = r->made[recipe].at;
    *size = r->made[recipe].size;
    return SINTER_OK;
}
