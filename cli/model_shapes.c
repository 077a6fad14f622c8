/* SPDX-License-Identifier: Apache-2.0 */
/* model_shapes.c - --shape and --profile, and the shapes of what was given, as profiles for the builder. */
#include "cli_model.h"

#include <stdlib.h>
#include <string.h>

/* One --shape or --profile: min, opt and max of each dim. */
typedef struct spec {
    const char *text;
    char *name;
    uint32_t rank, group;
    bool is_fixed, is_dim; /* from --shape; a named dim, not an input */
    int64_t at[3][SINTER_RANK_MAX];
} spec;

/* The form was checked when the command line was read. */
static void spec_read(const char *text, bool is_fixed, spec *out)
{
    args_dims dims = { 0 };
    const char *equals = strrchr(text, '=');
    *out = (spec){ .text = text, .name = cli_copy(text), .is_fixed = is_fixed };
    out->name[equals - text] = 0;
    if (!args_dims_read(equals + 1, &dims)) return; /* a scalar has no dims to give */
    out->rank = dims.rank;
    for (uint32_t r = 0; r < 3; r++) memcpy(out->at[r], dims.at[is_fixed ? 0 : r], sizeof out->at[r]);
}

static const model_io *face_find(const model_face *face, const char *name)
{
    for (uint32_t i = 0; i < face->count; i++) {
        if (face->at[i].io.is_input && !strcmp(face->at[i].name, name)) return &face->at[i];
    }
    return NULL;
}

static bool face_has_dim(const model_face *face, const char *name)
{
    for (uint32_t i = 0; i < face->count; i++) {
        for (uint32_t k = 0; face->at[i].io.is_input && k < face->at[i].io.rank; k++) {
            if (face->at[i].dim_name[k] && !strcmp(face->at[i].dim_name[k], name)) return true;
        }
    }
    return false;
}

/* What the name may have meant. */
static bool unknown_name(const spec *s, const model_face *face)
{
    kept_text inputs = { 0 };
    for (uint32_t i = 0; i < face->count; i++) {
        const model_io *m = &face->at[i];
        char dim[32];
        if (!m->io.is_input) continue;
        cli_write_kept(&inputs, " '", 2);
        cli_write_kept(&inputs, m->name, strlen(m->name));
        cli_write_kept(&inputs, "' [", 3);
        for (uint32_t k = 0; k < m->io.rank; k++) {
            (void)snprintf(dim, sizeof dim, "%lld", (long long)m->io.dim[k]);
            const char *text = m->io.dim[k] >= 0 ? dim : m->dim_name[k] ? m->dim_name[k] : "?";
            if (k) cli_write_kept(&inputs, ",", 1);
            cli_write_kept(&inputs, text, strlen(text));
        }
        cli_write_kept(&inputs, "]", 1);
    }
    (void)cli_fail("--%s %s: there is no input and no named dim '%s'; the inputs are%s",
                   s->is_fixed ? "shape" : "profile", s->text, s->name, inputs.at ? inputs.at : " none");
    free(inputs.at);
    return false;
}

static const spec *spec_of(const spec *list, uint32_t count, const char *name, bool is_dim, uint32_t group)
{
    for (uint32_t i = count; i-- > 0;) {
        const spec *s = &list[i];
        if (s->is_dim == is_dim && (s->is_fixed || s->group == group) && !strcmp(s->name, name)) return s;
    }
    return NULL;
}

/* The value of a named dim that the shape of some input in the profile implies. */
static bool dim_implied(const model_face *face, const spec *list, uint32_t count, uint32_t group, const char *dim,
                        int64_t *out)
{
    for (uint32_t i = 0; i < face->count; i++) {
        const model_io *m = &face->at[i];
        const spec *s = m->io.is_input ? spec_of(list, count, m->name, false, group) : NULL;
        for (uint32_t k = 0; s && k < m->io.rank && k < s->rank; k++) {
            if (!m->dim_name[k] || strcmp(m->dim_name[k], dim)) continue;
            for (int r = 0; r < 3; r++) out[r] = s->at[r][k];
            return true;
        }
    }
    return false;
}

/* The ranges of one input in one profile; false: nothing was said about it. */
static bool input_range(const model_io *m, const model_face *face, const spec *list, uint32_t count, uint32_t group,
                        sinter_shape_range *out)
{
    const spec *own = spec_of(list, count, m->name, false, group);
    *out = (sinter_shape_range){ .input = m->name, .rank = own ? own->rank : m->io.rank };
    bool is_said = own != NULL;
    for (uint32_t k = 0; k < out->rank; k++) {
        int64_t value[3] = { m->usual[k], m->usual[k], m->usual[k] };
        if (own) {
            for (int r = 0; r < 3; r++) value[r] = own->at[r][k];
        } else if (m->io.dim[k] >= 0) {
            for (int r = 0; r < 3; r++) value[r] = m->io.dim[k];
        } else if (m->dim_name[k]) {
            const spec *dim = spec_of(list, count, m->dim_name[k], true, group);
            for (int r = 0; dim && r < 3; r++) value[r] = dim->at[r][0];
            if (dim || dim_implied(face, list, count, group, m->dim_name[k], value)) is_said = true;
        }
        out->min[k] = value[0];
        out->opt[k] = value[1];
        out->max[k] = value[2];
    }
    return is_said;
}

static bool specs_read(const args *a, const model_face *face, spec *list, uint32_t *count, uint32_t *groups)
{
    uint32_t group = 0;
    for (uint32_t i = 0; i < a->shape.count + a->profile.count; i++) {
        const bool is_fixed = i < a->shape.count;
        spec *s = &list[*count];
        spec_read(is_fixed ? a->shape.at[i] : a->profile.at[i - a->shape.count], is_fixed, s);
        (*count)++;
        if (!face_find(face, s->name)) {
            if (s->rank != 1 || !face_has_dim(face, s->name)) return unknown_name(s, face);
            s->is_dim = true;
        }
        for (uint32_t k = 0; !is_fixed && k + 1 < *count; k++) {
            if (!list[k].is_fixed && list[k].group == group && !strcmp(list[k].name, s->name)) {
                group++;
                break;
            }
        }
        s->group = group;
    }
    *groups = group + 1;
    return true;
}

bool model_shapes_make(const args *a, const model_face *face, const model_inputs *given, model_shapes *out)
{
    *out = (model_shapes){ 0 };
    const uint32_t most = a->shape.count + a->profile.count + given->count;
    if (!most) return true;
    spec *list = cli_alloc(most, sizeof *list);
    uint32_t count = 0, groups = 1;
    bool is_good = specs_read(a, face, list, &count, &groups);
    /* The data that was given fixes what nobody said otherwise. */
    for (uint32_t i = 0; is_good && i < given->count; i++) {
        const sinter_tensor *t = &given->at[i].tensor;
        if (!face_find(face, given->at[i].name) || spec_of(list, count, given->at[i].name, false, 0)) continue;
        spec *s = &list[count++];
        *s = (spec){ .name = cli_copy(given->at[i].name), .rank = t->rank, .is_fixed = true };
        for (int r = 0; r < 3; r++) memcpy(s->at[r], t->dim, sizeof s->at[r]);
    }
    out->profile = cli_alloc(groups, sizeof *out->profile);
    for (uint32_t g = 0; is_good && g < groups; g++) {
        sinter_shape_range *range = cli_alloc(face->count, sizeof *range);
        sinter_profile *p = &out->profile[out->count++];
        p->shape = range;
        for (uint32_t i = 0; i < face->count; i++) {
            if (face->at[i].io.is_input && input_range(&face->at[i], face, list, count, g, &range[p->count]))
                p->count++;
        }
    }
    for (uint32_t i = 0; i < count; i++) free(list[i].name);
    free(list);
    if (!is_good) model_shapes_free(out);
    return is_good;
}

void model_shapes_free(model_shapes *s)
{
    for (uint32_t i = 0; i < s->count; i++) free((void *)(uintptr_t)s->profile[i].shape);
    free(s->profile);
    *s = (model_shapes){ 0 };
}
