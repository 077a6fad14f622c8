/* SPDX-License-Identifier: Apache-2.0 */
/* exec_shapes.c - NAME:VALUE lists, and the shapes among them as profiles of the builder. */
#include "exec.h"

#include <stdlib.h>
#include <string.h>

/* ---- lists ---- */

static bool pair_read(exec_id id, const char *text, size_t length, exec_pairs *out)
{
    const char *flag = exec_flags[id].name;
    char *name = cli_alloc(length + 1, 1), *value = NULL;
    memcpy(name, text, length);
    if (name[0] == '\'') {
        char *end = strchr(name + 1, '\'');
        if (end && end[1] == ':') value = end + 2, *end = 0;
        memmove(name, name + 1, strlen(name));
    } else {
        char *colon = strrchr(name, ':');
        if (colon) *colon = 0, value = colon + 1;
    }
    if (!value || !*name) {
        cli_say(LOG_ERROR, "--%s: '%.*s' is not of the form NAME:VALUE", flag, (int)length, text);
        free(name);
        return false;
    }
    value = cli_copy(value);
    for (uint32_t i = 0; i < out->count; i++) {
        if (strcmp(out->at[i].name, name) != 0) continue;
        cli_say(LOG_ERROR, "--%s names '%s' twice", flag, name);
        free(name);
        free(value);
        return false;
    }
    out->at = cli_grow(out->at, out->count + 1, sizeof *out->at);
    out->at[out->count++] = (exec_pair){ .name = name, .value = value };
    return true;
}

bool exec_pairs_read(exec_id id, const char *text, exec_pairs *out)
{
    while (true) {
        size_t n = 0;
        bool is_quoted = false;
        for (; text[n] && (is_quoted || text[n] != ','); n++) is_quoted ^= text[n] == '\'';
        if (is_quoted) {
            cli_say(LOG_ERROR, "--%s: a ' has no second one in %s", exec_flags[id].name, text);
            return false;
        }
        if (!pair_read(id, text, n, out)) return false;
        if (!text[n]) return true;
        text += n + 1;
    }
}

void exec_pairs_free(exec_pairs *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        free(p->at[i].name);
        free(p->at[i].value);
    }
    free(p->at);
    *p = (exec_pairs){ 0 };
}

/* One '*' stands for any text. */
static bool matches(const char *pattern, const char *name)
{
    const char *star = strchr(pattern, '*');
    if (!star) return false;
    const size_t before = (size_t)(star - pattern), after = strlen(star + 1), length = strlen(name);
    return length >= before + after && !memcmp(pattern, name, before) && !strcmp(name + length - after, star + 1);
}

exec_pair *exec_pairs_find(exec_pairs *p, const char *name)
{
    exec_pair *found = NULL;
    for (uint32_t i = 0; i < p->count && !found; i++)
        if (!strcmp(p->at[i].name, name)) found = &p->at[i];
    for (uint32_t i = 0; i < p->count && !found; i++)
        if (matches(p->at[i].name, name)) found = &p->at[i];
    if (found) found->is_used = true;
    return found;
}

static bool pairs_are_used(exec_id id, const exec_pairs *p, const char *of_what)
{
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->at[i].is_used) continue;
        cli_say(LOG_ERROR,
                "--%s: Cannot find input tensor with name \"%s\" in the %s inputs! Please make sure the input tensor "
                "names are correct.",
                exec_flags[id].name, p->at[i].name, of_what);
        return false;
    }
    return true;
}

/* ---- shapes ---- */

static bool is_scalar(const char *value)
{
    return !*value || !strcmp(value, "scalar");
}

static bool shape_is_good(exec_id id, const exec_pair *p)
{
    args_dims dims;
    if (is_scalar(p->value) || (args_dims_read(p->value, &dims) && dims.count == 1)) return true;
    cli_say(LOG_ERROR, "--%s: the shape of '%s' is '%s', expected whole numbers as in 1x3x224x224, or scalar",
            exec_flags[id].name, p->name, p->value);
    return false;
}

/* As upstream has it, numbers for an input of integers with as many elements, in one axis at most, are its values. */
static bool are_values(const sinter_io *io, const char *text, args_dims *out)
{
    const bool is_integer = io->dtype == SINTER_DTYPE_I32 || io->dtype == SINTER_DTYPE_I64;
    if (!is_integer || io->rank > 1 || is_scalar(text) || !args_dims_read(text, out) || out->count != 1) return false;
    return out->rank == (io->rank ? io->dim[0] : 1);
}

bool exec_values_given(const exec *e, const sinter_io *io, args_dims *out)
{
    static const exec_id flags[] = { FLAG_shapes, FLAG_optShapes };
    bool is_found = false;
    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t i = 0; !is_found && i < e->x.count; i++) {
            exec_pairs pairs = { 0 };
            if (e->x.given[i].id != flags[k]) continue;
            const exec_pair *pair =
                exec_pairs_read(flags[k], e->x.given[i].value, &pairs) ? exec_pairs_find(&pairs, io->name) : NULL;
            is_found = pair && are_values(io, pair->value, out);
            exec_pairs_free(&pairs);
        }
    }
    return is_found;
}

enum { BOUNDS = 3, PROFILES_MAX = 64 };
static const exec_id bound_flag[BOUNDS] = { FLAG_minShapes, FLAG_optShapes, FLAG_maxShapes };

/* What was said of one profile. */
typedef struct profile_text {
    exec_pairs bound[BOUNDS];
} profile_text;

static bool profiles_read(const exec *e, profile_text *list, uint32_t *count)
{
    uint32_t now = 0;
    *count = 0;
    for (uint32_t i = 0; i < e->x.count; i++) {
        const exec_given *g = &e->x.given[i];
        if (g->id == FLAG_profile) now = (uint32_t)strtoul(g->value, NULL, 10);
        if (now >= PROFILES_MAX) {
            cli_say(LOG_ERROR, "--profile=%u: there are at most %d profiles", now, PROFILES_MAX);
            return false;
        }
        for (uint32_t k = 0; k < BOUNDS; k++) {
            if (g->id != bound_flag[k]) continue;
            if (!exec_pairs_read(g->id, g->value, &list[now].bound[k])) return false;
            if (now + 1 > *count) *count = now + 1;
        }
    }
    for (uint32_t p = 0; p < *count; p++) {
        bool is_said = false;
        for (uint32_t k = 0; k < BOUNDS; k++) {
            is_said = is_said || list[p].bound[k].count;
            for (uint32_t i = 0; i < list[p].bound[k].count; i++)
                if (!shape_is_good(bound_flag[k], &list[p].bound[k].at[i])) return false;
        }
        if (is_said) continue;
        cli_say(LOG_ERROR, "profile %u has no shapes, profile %u has", p, *count - 1);
        return false;
    }
    return true;
}

static void range_add(exec *e, const char *name, const char *const *bound)
{
    args *a = &e->a;
    shape_text room[BOUNDS];
    const char *stored[BOUNDS];
    for (uint32_t k = 0; k < BOUNDS; k++) stored[k] = exec_stored_text(e, name, bound[k], &room[k]);
    bound = stored;
    const size_t size = strlen(name) + strlen(bound[0]) + strlen(bound[1]) + strlen(bound[2]) + 4;
    char *text = cli_alloc(size, 1);
    (void)snprintf(text, size, "%s=%s,%s,%s", name, bound[0], bound[1], bound[2]);
    a->profile.at[a->profile.count++] = text;
}

static bool range_is_ascending(const char *name, const char *const *bound)
{
    args_dims d[BOUNDS];
    for (uint32_t k = 0; k < BOUNDS; k++)
        if (!args_dims_read(bound[k], &d[k])) d[k] = (args_dims){ 0 }; /* a scalar */
    for (uint32_t k = 0; k < BOUNDS; k++) {
        const bool has_rank = d[k].rank == d[0].rank;
        bool is_good = has_rank;
        for (uint32_t i = 0; has_rank && k && i < d[k].rank; i++)
            is_good = is_good && d[k - 1].at[0][i] <= d[k].at[0][i];
        if (is_good) continue;
        cli_say(LOG_ERROR, "the shapes of '%s' are %s, %s and %s, expected min <= opt <= max of one rank", name,
                bound[0], bound[1], bound[2]);
        return false;
    }
    return true;
}

/* The shapes of one input in one profile: those not given follow from the others. */
static bool range_make(exec *e, profile_text *p, const model_io *m, bool *is_said)
{
    const char *bound[BOUNDS] = { 0 }, *name = m->name;
    sinter_io io = { .name = name, .dtype = m->io.dtype, .rank = m->io.rank, .dim = { m->io.dim[0] } };
    args_dims values;
    for (uint32_t k = 0; k < BOUNDS; k++) {
        const exec_pair *pair = exec_pairs_find(&p->bound[k], name);
        if (pair) bound[k] = pair->value;
    }
    *is_said = bound[0] || bound[1] || bound[2];
    if (!*is_said) return true;
    if (!bound[1]) bound[1] = bound[2] ? bound[2] : bound[0];
    if (!bound[0]) bound[0] = bound[1];
    if (!bound[2]) bound[2] = bound[1];
    if (is_scalar(bound[0]) && is_scalar(bound[1]) && is_scalar(bound[2])) return true;
    if (are_values(&io, bound[1], &values)) return true; /* of which a profile need not know */
    if (!range_is_ascending(name, bound)) return false;
    if (e->a.profile.count == ARG_LIST_MAX) {
        cli_say(LOG_ERROR, "more than %d shapes", ARG_LIST_MAX);
        return false;
    }
    range_add(e, name, bound);
    return true;
}

/* The inputs that one profile names are named by all. `is_said` is by input, of the first profile. */
static bool profile_make(exec *e, const model_face *face, profile_text *p, uint32_t index, bool *said)
{
    const bool is_build = exec_has(&e->x, FLAG_minShapes) || exec_has(&e->x, FLAG_optShapes) ||
                          exec_has(&e->x, FLAG_maxShapes); /* else the shapes to run serve */
    for (uint32_t i = 0; i < face->count; i++) {
        bool is_said = false;
        if (!face->at[i].io.is_input) continue;
        if (!range_make(e, p, &face->at[i], &is_said)) return false;
        if (!index) said[i] = is_said;
        if (said[i] == is_said) continue;
        cli_say(LOG_ERROR, "profile %u gives shapes of '%s', profile %u does not", is_said ? index : 0,
                face->at[i].name, is_said ? 0 : index);
        return false;
    }
    for (uint32_t k = 0; k < BOUNDS; k++)
        if (!pairs_are_used(is_build ? bound_flag[k] : FLAG_shapes, &p->bound[k], "network")) return false;
    return true;
}

/* A free dim of which nothing is said is 1, unless another input says what its name is. */
static void warn_of_defaults(const model_face *face, const bool *said)
{
    for (uint32_t i = 0; i < face->count; i++) {
        const model_io *m = &face->at[i];
        int64_t dim[SINTER_RANK_MAX];
        bool is_free = false;
        for (uint32_t k = 0; k < m->io.rank; k++) {
            dim[k] = m->io.dim[k] < 0 ? 1 : m->io.dim[k];
            is_free = is_free || m->io.dim[k] < 0;
        }
        if (!m->io.is_input || said[i] || !is_free) continue;
        cli_say(
            LOG_WARNING,
            "Dynamic dimensions required for input: %s, but no shapes were provided. Automatically overriding shape "
            "to: %s",
            m->name, cli_shape(m->io.rank, dim).at);
    }
}

bool exec_profiles_make(exec *e, const model_face *face)
{
    profile_text *list = cli_alloc(PROFILES_MAX, sizeof *list);
    bool *said = cli_alloc(face->count, sizeof *said);
    uint32_t count = 0;
    bool is_good = profiles_read(e, list, &count);
    if (is_good && !count && exec_has(&e->x, FLAG_shapes)) {
        count = 1;
        for (uint32_t i = 0; is_good && i < e->x.count; i++)
            if (e->x.given[i].id == FLAG_shapes)
                is_good = exec_pairs_read(FLAG_shapes, e->x.given[i].value, &list[0].bound[1]);
        for (uint32_t i = 0; is_good && i < list[0].bound[1].count; i++)
            is_good = shape_is_good(FLAG_shapes, &list[0].bound[1].at[i]);
    }
    for (uint32_t p = 0; is_good && p < count; p++) is_good = profile_make(e, face, &list[p], p, said);
    if (is_good) warn_of_defaults(face, said);
    for (uint32_t p = 0; p < PROFILES_MAX; p++)
        for (uint32_t k = 0; k < BOUNDS; k++) exec_pairs_free(&list[p].bound[k]);
    free(said);
    free(list);
    return is_good;
}

bool exec_shapes_make(exec *e)
{
    exec_pairs pairs = { 0 };
    bool is_good = true;
    for (uint32_t i = 0; is_good && i < e->x.count; i++)
        if (e->x.given[i].id == FLAG_shapes) is_good = exec_pairs_read(FLAG_shapes, e->x.given[i].value, &pairs);
    for (uint32_t i = 0; is_good && i < pairs.count; i++) is_good = shape_is_good(FLAG_shapes, &pairs.at[i]);
    sinter_io io;
    for (uint32_t i = 0; is_good && sinter_engine_io(e->m.engine, i, 0, &io) == SINTER_OK; i++) {
        const exec_pair *pair = io.is_input ? exec_pairs_find(&pairs, io.name) : NULL;
        args_dims values;
        if (!pair || e->a.shape.count == ARG_LIST_MAX || are_values(&io, pair->value, &values)) continue;
        shape_text room;
        const char *value = is_scalar(pair->value) ? "" : exec_stored_text(e, io.name, pair->value, &room);
        const size_t size = strlen(io.name) + strlen(value) + 2;
        char *text = cli_alloc(size, 1);
        (void)snprintf(text, size, "%s=%s", io.name, value);
        e->a.shape.at[e->a.shape.count++] = text;
    }
    is_good = is_good && pairs_are_used(FLAG_shapes, &pairs, "engine");
    exec_pairs_free(&pairs);
    return is_good;
}
