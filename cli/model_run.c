/* SPDX-License-Identifier: Apache-2.0 */
/* model_run.c - from an engine to a context that is ready to run: profile, shapes, and data for what was not given. */
#include "cli_model.h"

#include "random.h"
#include <stdlib.h>
#include <string.h>

enum { TENSOR_ALIGN = 64 };

/* ---- shapes ---- */

/* The engine's inputs as those of a model. What nothing is said of has the profile's opt. */
static void face_of(const sinter_engine *engine, uint32_t profile, model_face *out)
{
    const uint32_t ios = sinter_engine_io_count(engine);
    *out = (model_face){ .at = cli_alloc(ios, sizeof *out->at), .count = ios };
    for (uint32_t i = 0; i < ios; i++) {
        sinter_io io;
        model_io *m = &out->at[i];
        if (sinter_engine_io(engine, i, profile, &io) != SINTER_OK) continue;
        m->name = cli_copy(io.name);
        m->io = (sinter_model_io){ .name = m->name, .is_input = io.is_input, .dtype = io.dtype, .rank = io.rank };
        memcpy(m->io.dim, io.dim, sizeof io.dim);
        memcpy(m->usual, io.opt, sizeof io.opt);
        for (uint32_t k = 0; k < io.rank; k++) {
            if (io.dim[k] < 0 && io.dim_text[k]) m->io.dim_name[k] = m->dim_name[k] = cli_copy(io.dim_text[k]);
        }
        out->inputs += io.is_input;
    }
}

static const sinter_shape_range *said_of(const model_shapes *s, const char *input)
{
    for (uint32_t i = 0; s->count && i < s->profile->count; i++) {
        if (!strcmp(s->profile->shape[i].input, input)) return &s->profile->shape[i];
    }
    return NULL;
}

static void shape_of(const model_engine *m, const sinter_io *io, const model_shapes *said, sinter_tensor *out)
{
    const sinter_shape_range *own = said_of(said, io->name);
    const model_input *given = model_inputs_find(&m->inputs, io->name);
    *out = (sinter_tensor){ .dtype = io->dtype, .rank = io->rank };
    if (given) *out = given->tensor, out->data = NULL;
    if (own) out->rank = own->rank;
    for (uint32_t k = 0; own && k < own->rank; k++) out->dim[k] = own->opt[k];
    for (uint32_t k = 0; !own && !given && k < io->rank; k++) out->dim[k] = io->dim[k] >= 0 ? io->dim[k] : io->opt[k];
}

/* Does the profile take this shape? If not, `why` says so. */
static bool profile_takes(const sinter_io *io, const sinter_tensor *t, uint32_t profile, kept_text *why)
{
    char line[512];
    uint32_t k = 0;
    while (k < io->rank && k < t->rank && t->dim[k] >= io->min[k] && t->dim[k] <= io->max[k]) k++;
    if (k == io->rank && k == t->rank) return true;
    if (io->rank != t->rank)
        (void)snprintf(line, sizeof line, "input '%.128s' has rank %u, the engine wants %u", io->name, t->rank,
                       io->rank);
    else
        (void)snprintf(line, sizeof line, "axis %u of input '%.128s' is %lld, profile %u permits %lld to %lld", k,
                       io->name, (long long)t->dim[k], profile, (long long)io->min[k], (long long)io->max[k]);
    if (why->at) cli_write_kept(why, "; ", 2);
    cli_write_kept(why, line, strlen(line));
    return false;
}

/* The shapes of all inputs in one profile; false: it does not take them, or the command line is wrong (no `why`). */
static bool shapes_in(const args *a, model_engine *m, uint32_t profile, kept_text *why)
{
    args fixed = *a; /* a model was built for what --shape and --profile say */
    model_face face;
    model_shapes said = { 0 };
    fixed.profile.count = 0;
    if (m->was_built) fixed.shape.count = 0;
    face_of(m->engine, profile, &face);
    bool is_good = model_shapes_make(&fixed, &face, &m->inputs, &said);
    for (uint32_t i = 0; is_good && i < face.count; i++) {
        sinter_io io;
        is_good = sinter_engine_io(m->engine, i, profile, &io) == SINTER_OK;
        if (!is_good || !io.is_input) continue;
        shape_of(m, &io, &said, &m->shape[i]);
        is_good = profile_takes(&io, &m->shape[i], profile, why);
    }
    model_shapes_free(&said);
    model_face_free(&face);
    return is_good;
}

bool model_choose(const args *a, model_engine *m)
{
    const uint32_t count = sinter_engine_profile_count(m->engine);
    if (a->has_use_profile && a->use_profile >= count)
        return cli_fail("--use-profile %llu: the engine has profiles 0 to %u", (unsigned long long)a->use_profile,
                        count - 1) == 0;
    const uint32_t first = a->has_use_profile ? (uint32_t)a->use_profile : 0,
                   end = a->has_use_profile ? first + 1 : count;
    kept_text why = { 0 };
    bool is_good = false, is_wrong = false;
    free(m->shape);
    m->shape = cli_alloc(sinter_engine_io_count(m->engine), sizeof *m->shape);
    for (uint32_t p = first; p < end && !is_good && !is_wrong; p++) {
        const size_t before = why.length;
        is_good = shapes_in(a, m, m->profile = p, &why);
        is_wrong = !is_good && why.length == before;
    }
    if (!is_good && !is_wrong) (void)cli_fail("%s", why.at);
    free(why.at);
    return is_good;
}

/* ---- contexts ---- */

static sinter_status input_make(const sinter_io *io, const sinter_tensor *shape, uint64_t seed, model_input *in)
{
    *in = (model_input){ .name = cli_copy(io->name), .tensor = *shape };
    const size_t size = sinter_tensor_size(&in->tensor);
    if (size > SIZE_MAX / 2) return SINTER_NO_MEMORY;
    in->tensor.data = in->own = aligned_alloc(TENSOR_ALIGN, (size / TENSOR_ALIGN + 1) * TENSOR_ALIGN);
    if (!in->own) return SINTER_NO_MEMORY;
    random_fill(&in->tensor, seed, io->value_min, io->value_max);
    return SINTER_OK;
}

sinter_status model_context(const model_engine *m, uint64_t seed, model_use use, model_inputs *made,
                            sinter_context **out, sinter_error *error)
{
    sinter_context_options options = SINTER_CONTEXT_OPTIONS;
    options.profile = m->profile;
    options.timing = use == MODEL_STEPS;
    options.lazy = use == MODEL_ONCE;
    options.phases = use == MODEL_PHASES;
    if (use == MODEL_OFTEN || use == MODEL_PHASES) options.memory = m->memory;
    *out = NULL;
    *made = (model_inputs){ 0 };
    sinter_status s = sinter_context_create(m->engine, &options, out, error);
    for (uint32_t i = 0; s == SINTER_OK && i < m->inputs.count; i++)
        s = sinter_context_set_input(*out, m->inputs.at[i].name, &m->inputs.at[i].tensor, error);
    const uint32_t ios = sinter_engine_io_count(m->engine);
    made->at = cli_alloc(ios, sizeof *made->at);
    for (uint32_t i = 0; s == SINTER_OK && i < ios; i++) {
        sinter_io io;
        s = sinter_engine_io(m->engine, i, m->profile, &io);
        if (s != SINTER_OK || !io.is_input || model_inputs_find(&m->inputs, io.name)) continue;
        model_input *in = &made->at[made->count++];
        s = input_make(&io, &m->shape[i], seed + i, in);
        if (s == SINTER_OK) s = sinter_context_set_input(*out, in->name, &in->tensor, error);
    }
    return s;
}
