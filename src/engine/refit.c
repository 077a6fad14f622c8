/* SPDX-License-Identifier: Apache-2.0 */
/* refit.c - an engine with other weights, or without: every section is copied but the weights, which are made again by
 * their recipes and laid out in the order in which a build writes them. So the file is the one that a build with these
 * weights would write, where the build looks at no values (--refittable). */
#include "engine/refit.h"

#include <string.h>

typedef struct refit {
    env *e;
    const engine *g;
    const refit_options *o;
    recipe_player *player;
    engine_writer w;
    arena a;
    uint8_t *is_new;  /* by recipe: it needs an initializer that is given */
    uint8_t *is_open; /* by recipe: it needs an initializer */
    uint32_t next;    /* the first recipe whose data is not written yet */
} refit;

static const char *name_of(const engine *g, const engine_recipe *r)
{
    return engine_text(g, r->text);
}

static const void *find(void *user, const char *name, uint64_t digest, uint64_t size)
{
    const refit *x = user;
    return x->o->find ? x->o->find(x->o->user, name, digest, size) : NULL;
}

/* What is made of new and of any initializers. The inputs of a recipe stand before it. */
static void mark_made(refit *x)
{
    for (uint32_t i = 0; i < x->g->recipe_count; i++) {
        const engine_recipe *r = &x->g->recipe[i];
        for (uint32_t k = 0; k < r->in_count; k++) {
            const uint32_t in = x->g->arg[r->in_at + k];
            x->is_new[i] |= in && x->is_new[in - 1];
            x->is_open[i] |= in && x->is_open[in - 1];
        }
    }
}

/* Fills is_new and is_open. */
static void mark(refit *x)
{
    for (uint32_t i = 0; i < x->g->recipe_count; i++) {
        const engine_recipe *r = &x->g->recipe[i];
        if (r->kind != RECIPE_INITIALIZER) continue;
        x->is_open[i] = 1;
        x->is_new[i] = find(x, name_of(x->g, r), r->digest, r->data.size) != NULL;
    }
    mark_made(x);
}

/* What decided something has to be as it was. */
static sinter_status check_given(refit *x)
{
    mark(x);
    for (uint32_t i = 0; i < x->g->recipe_count; i++) {
        const engine_recipe *r = &x->g->recipe[i];
        if (r->kind != RECIPE_INITIALIZER || !r->is_fixed) continue;
        const void *given = find(x, name_of(x->g, r), r->digest, r->data.size);
        if (given && hash64(given, (size_t)r->data.size, 0) != r->digest)
            return FAIL(x->e, INVALID_ARG,
                        "'%s' has other values than the engine was built for, which decided what the engine is: build "
                        "it anew",
                        name_of(x->g, r));
    }
    return SINTER_OK;
}

/* The data of recipes up to this one, as a build writes it behind the weight. */
static void put_data(refit *x, uint32_t end, engine_recipe *recipes)
{
    for (; x->next < end; x->next++) {
        engine_recipe *r = &recipes[x->next];
        if (r->kind == RECIPE_DATA)
            r->data.at = engine_writer_weight(&x->w, x->g->weights + r->data.at, (size_t)r->data.size);
    }
}

/* The weight is made by its recipe. */
static bool is_remade(const refit *x, const engine_storage *s)
{
    return s->recipe && (s->at == WEIGHT_ABSENT || x->is_new[s->recipe - 1]);
}

static sinter_status put_weight(refit *x, engine_storage *s, engine_recipe *recipes)
{
    if (x->o->strip && s->recipe && x->is_open[s->recipe - 1]) {
        s->at = WEIGHT_ABSENT;
    } else if (is_remade(x, s)) {
        const uint8_t *bytes;
        uint64_t size;
        TRY(recipe_play(x->player, s->recipe, &bytes, &size));
        if (size != s->bound)
            return FAIL(x->e, INVALID_MODEL, "a recipe makes %llu bytes of a weight of %llu", (unsigned long long)size,
                        (unsigned long long)s->bound);
        s->at = 0;
        if (!size) return put_data(x, s->recipe, recipes), SINTER_OK;
        uint8_t *room = engine_writer_room(&x->w, (size_t)size);
        if (!room) return FAIL_MEMORY(x->e, "a weight");
        memcpy(room, bytes, (size_t)size);
        s->at = engine_writer_made(&x->w, room, (size_t)size);
    } else {
        s->at = engine_writer_weight(&x->w, x->g->weights + s->at, (size_t)s->bound);
    }
    put_data(x, s->recipe, recipes);
    return engine_writer_status(&x->w);
}

static void *section(refit *x, section_kind kind, size_t *size)
{
    *size = x->w.section[kind].size;
    return x->w.section[kind].at;
}

/* Copies the sections that stay. */
static void copy(refit *x)
{
    const engine_header *h = x->g->header;
    const engine_section *table = (const void *)(x->g->bytes + sizeof *h);
    for (uint32_t i = 0; i < h->section_count; i++) {
        if (table[i].kind == SECTION_WEIGHTS || table[i].kind >= SECTION_KIND_COUNT) continue;
        x->w.section[table[i].kind].size = 0;
        engine_writer_append(&x->w, (section_kind)table[i].kind, x->g->bytes + table[i].at, (size_t)table[i].size);
    }
}

static sinter_status write(refit *x, uint8_t **out, size_t *out_size)
{
    size_t size;
    TRY(engine_writer_init(x->e, &x->w, NULL));
    copy(x);
    TRY(engine_writer_status(&x->w));
    engine_recipe *recipes = section(x, SECTION_RECIPES, &size);
    engine_io *io = section(x, SECTION_IOS, &size);
    for (uint32_t i = 0; i < x->g->io_count; i++)
        if (io[i].promise_size)
            io[i].promise_at =
                engine_writer_weight(&x->w, x->g->weights + io[i].promise_at, (size_t)io[i].promise_size);
    engine_storage *storage = section(x, SECTION_STORAGES, &size);
    for (uint32_t i = 0; i < x->g->storage_count; i++)
        if (storage[i].kind == STORAGE_WEIGHT) TRY(put_weight(x, &storage[i], recipes));
    put_data(x, x->g->recipe_count, recipes);
    for (uint32_t i = 0; i < x->g->recipe_count; i++) {
        if (recipes[i].kind != RECIPE_INITIALIZER || !x->is_new[i]) continue;
        const void *given = find(x, name_of(x->g, &recipes[i]), recipes[i].digest, recipes[i].data.size);
        if (given) recipes[i].digest = hash64(given, (size_t)recipes[i].data.size, 0);
    }
    return engine_writer_finish(&x->w, x->o->digest ? x->o->digest : x->g->header->model_digest, out, out_size);
}

sinter_status engine_refit(env *e, const engine *g, const refit_options *o, uint8_t **out, size_t *size)
{
    refit x = { .e = e, .g = g, .o = o };
    const recipe_source source = { find, &x };
    *out = NULL;
    if (g->header->major == 2 && g->header->minor < 2)
        return FAIL(e, INCOMPATIBLE,
                    "the engine has format %u.%u, whose recipes of weights are not exact: build it again",
                    g->header->major, g->header->minor);
    arena_init(&x.a, e);
    x.is_new = ARENA_NEW(&x.a, uint8_t, g->recipe_count);
    x.is_open = ARENA_NEW(&x.a, uint8_t, g->recipe_count);
    sinter_status s = x.is_new && x.is_open ? check_given(&x) : FAIL_MEMORY(e, "weights");
    if (s == SINTER_OK) s = recipe_player_create(e, g, &source, &x.player);
    if (s == SINTER_OK) s = write(&x, out, size);
    recipe_player_destroy(x.player);
    if (x.w.e) engine_writer_deinit(&x.w);
    arena_deinit(&x.a);
    return s;
}

/* Marks what the weights that are remade need, and takes the initializers among it for given. Non-zero: there were more
 * of these than before, so other weights may be remade, too. */
static bool mark_needed(refit *x, uint8_t *missing)
{
    const engine *g = x->g;
    bool is_more = false;
    for (uint32_t i = 0; i < g->storage_count; i++)
        if (g->storage[i].kind == STORAGE_WEIGHT && is_remade(x, &g->storage[i])) missing[g->storage[i].recipe - 1] = 1;
    for (uint32_t i = g->recipe_count; i--;) {
        const engine_recipe *r = &g->recipe[i];
        for (uint32_t k = 0; missing[i] && k < r->in_count; k++)
            if (g->arg[r->in_at + k]) missing[g->arg[r->in_at + k] - 1] = 1;
        if (r->kind != RECIPE_INITIALIZER || !missing[i]) continue;
        is_more |= !x->is_new[i];
        x->is_new[i] = 1;
    }
    if (is_more) mark_made(x);
    return is_more;
}

sinter_status engine_refit_missing(env *e, const engine *g, const refit_options *o, uint8_t *missing)
{
    refit x = { .e = e, .g = g, .o = o };
    arena_init(&x.a, e);
    x.is_new = ARENA_NEW(&x.a, uint8_t, g->recipe_count);
    x.is_open = ARENA_NEW(&x.a, uint8_t, g->recipe_count);
    const bool has_room = x.is_new && x.is_open;
    if (has_room) mark(&x);
    while (has_room && mark_needed(&x, missing)) {}
    for (uint32_t i = 0; has_room && i < g->recipe_count; i++) {
        const engine_recipe *r = &g->recipe[i];
        missing[i] = missing[i] && r->kind == RECIPE_INITIALIZER && !find(&x, name_of(g, r), r->digest, r->data.size);
    }
    arena_deinit(&x.a);
    return has_room ? SINTER_OK : FAIL_MEMORY(e, "weights");
}
