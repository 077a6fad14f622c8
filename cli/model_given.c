/* SPDX-License-Identifier: Apache-2.0 */
/* model_given.c - what the command line gives to a build beside options: shapes, promised values, samples, states,
 * equal sizes, and a calibration cache. */
#include "cli_model.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The n-th file of an input is of the n-th sample. */
static sinter_sample *samples_make(const model_inputs *in, uint32_t *count)
{
    sinter_sample *list = cli_alloc(in->count, sizeof *list);
    *count = 0;
    for (uint32_t i = 0; i < in->count; i++) {
        uint32_t at = 0;
        for (uint32_t k = 0; k < i; k++) at += !strcmp(in->at[k].name, in->at[i].name);
        sinter_sample *s = &list[at];
        if (at == *count) *s = (sinter_sample){ .value = cli_alloc(in->count, sizeof *s->value) }, (*count)++;
        ((sinter_input_value *)(uintptr_t)s->value)[s->count++] =
            (sinter_input_value){ .input = in->at[i].name, .value = &in->at[i].tensor };
    }
    return list;
}

/* "A=B" becomes "A"; returns "B". */
static const char *split(char *text)
{
    char *equals = strrchr(text, '=');
    *equals = 0;
    return equals + 1;
}

static void words_make(const args *a, model_words *out, sinter_build_options *build)
{
    *out = (model_words){ .state = cli_alloc(a->state.count, sizeof *out->state),
                          .equal = cli_alloc(a->equal.count, sizeof *out->equal) };
    for (uint32_t i = 0; i < a->state.count; i++) {
        char *text = cli_copy(a->state.at[i]);
        out->state[i] = (sinter_state){ .output = split(text), .input = text };
    }
    for (uint32_t i = 0; i < a->equal.count; i++) {
        char *text = cli_copy(a->equal.at[i]);
        out->equal[i] = (sinter_dim_equal){ .equals = split(text), .dim = text };
    }
    build->state = out->state;
    build->state_count = a->state.count;
    build->equal = out->equal;
    build->equal_count = a->equal.count;
}

static void words_free(model_words *w, sinter_build_options *build)
{
    for (uint32_t i = 0; i < build->state_count; i++) free((void *)(uintptr_t)w->state[i].input);
    for (uint32_t i = 0; i < build->equal_count; i++) free((void *)(uintptr_t)w->equal[i].dim);
    free(w->state);
    free(w->equal);
    build->state_count = build->equal_count = 0;
}

/* ---- data ---- */

static bool ends(const char *path, const char *ending)
{
    const size_t n = strlen(path), m = strlen(ending);
    return n > m && !strcmp(path + n - m, ending);
}

static bool is_bare(const char *path)
{
    return ends(path, ".bin") || ends(path, ".raw");
}

/* The shape that the model and the command line give an input; free sizes are 1. */
static bool shape_of(const args *a, const model_face *face, const char *name, sinter_tensor *out)
{
    const model_inputs none = { 0 };
    model_shapes shapes = { 0 };
    const model_io *io = NULL;
    for (uint32_t i = 0; i < face->count; i++)
        if (face->at[i].io.is_input && !strcmp(face->at[i].name, name)) io = &face->at[i];
    if (!io) return cli_fail("--data: the model has no input '%s'", name) == 0;
    if (!model_shapes_make(a, face, &none, &shapes)) return false;
    *out = (sinter_tensor){ .dtype = io->io.dtype, .rank = io->io.rank };
    for (uint32_t k = 0; k < io->io.rank; k++) out->dim[k] = io->io.dim[k] < 0 ? 1 : io->io.dim[k];
    for (uint32_t i = 0; shapes.count && i < shapes.profile[0].count; i++)
        if (!strcmp(shapes.profile[0].shape[i].input, name))
            memcpy(out->dim, shapes.profile[0].shape[i].opt, sizeof out->dim);
    model_shapes_free(&shapes);
    return true;
}

/* Numbers without a header. */
static bool bare_read(const args *a, const model_face *face, const char *name, const char *path, model_input *in)
{
    if (!shape_of(a, face, name, &in->tensor)) return false;
    const size_t wanted = sinter_tensor_size(&in->tensor);
    FILE *file = fopen(path, "rbe");
    in->own = in->tensor.data = cli_alloc(wanted + 1, 1);
    const size_t size = file ? fread(in->own, 1, wanted + 1, file) : 0;
    const bool is_read = file && !ferror(file);
    const long rest = is_read && size > wanted && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : (long)size;
    if (file) (void)fclose(file);
    if (!is_read) return cli_fail("--data: cannot read '%s'", path) == 0;
    if (size == wanted) return true;
    return cli_fail("--data: '%s' has %ld bytes, input '%s' takes %zu", path, rest, name, wanted) == 0;
}

static bool data_read(const args *a, const model_face *face, const sinter_env_options *env, const char *name,
                      const char *path, model_inputs *out)
{
    sinter_error error = { 0 };
    out->at = cli_grow(out->at, (size_t)out->count + 1, sizeof *out->at);
    model_input *in = &out->at[out->count++];
    *in = (model_input){ .name = cli_copy(name) };
    if (is_bare(path)) return bare_read(a, face, name, path, in);
    return sinter_tensor_read(path, env, &in->tensor, &in->memory, &error) == SINTER_OK || cli_error(&error) == 0;
}

/* The first axis of an array counts samples: as many rows are one sample as the input has. */
static bool array_split(const args *a, const model_face *face, const char *path, model_input *whole, model_inputs *out)
{
    sinter_tensor one, *t = &whole->tensor;
    if (!shape_of(a, face, whole->name, &one)) return false;
    const int64_t rows = t->rank && t->rank == one.rank ? one.dim[0] : 0;
    if (rows < 1 || t->dim[0] == rows) return true;
    if (!t->dim[0] || t->dim[0] % rows)
        return cli_fail("--data: array '%s' of '%s' has %lld rows, batches of %lld are wanted", whole->name, path,
                        (long long)t->dim[0], (long long)rows) == 0;
    const int64_t batches = t->dim[0] / rows;
    const char *const name = whole->name;
    t->dim[0] = rows;
    const sinter_tensor first = *t;
    const size_t size = sinter_tensor_size(&first);
    out->at = cli_grow(out->at, (size_t)out->count + (size_t)batches - 1, sizeof *out->at);
    for (int64_t i = 1; i < batches; i++) {
        model_input *in = &out->at[out->count++];
        *in = (model_input){ .name = cli_copy(name), .tensor = first };
        in->tensor.data = (uint8_t *)first.data + (size_t)i * size;
    }
    return true;
}

static bool archive_read(const args *a, const model_face *face, const sinter_env_options *env, const char *name,
                         const char *path, model_inputs *out)
{
    const uint32_t first = out->count;
    if (!model_npz_read(path, name, env, out)) return false;
    const uint32_t end = out->count;
    for (uint32_t i = first; i < end; i++) {
        model_input whole = out->at[i];
        if (!array_split(a, face, path, &whole, out)) return false;
        out->at[i] = whole;
    }
    return true;
}

static int is_data(const struct dirent *d)
{
    return is_bare(d->d_name) || ends(d->d_name, ".npy") || ends(d->d_name, ".pb");
}

static bool folder_read(const args *a, const model_face *face, const sinter_env_options *env, const char *name,
                        const char *folder, model_inputs *out)
{
    struct dirent **list = NULL;
    const int count = scandir(folder, &list, is_data, alphasort);
    bool is_good = count > 0;
    if (!is_good) (void)cli_fail("--data: '%s' has no .npy, .pb, .bin or .raw file", folder);
    for (int i = 0; i < count; i++) {
        char *path = cli_join(folder, list[i]->d_name);
        is_good = is_good && data_read(a, face, env, name, path, out);
        free(path);
        free(list[i]);
    }
    free(list);
    return is_good;
}

/* What --data names. False: reported. */
static bool samples_read(const args *a, const model_face *face, const sinter_env_options *env, model_inputs *out)
{
    bool is_good = true;
    for (uint32_t i = 0; i < a->data.count && is_good; i++) {
        struct stat st;
        char *name = cli_copy(a->data.at[i]);
        const bool has_name = strchr(name, '=') != NULL;
        const char *path = has_name ? split(name) : name;
        if (args_is_npz(path)) {
            is_good = archive_read(a, face, env, has_name ? name : NULL, path, out);
            free(name);
            continue;
        }
        const bool is_folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
        is_good = (is_folder ? folder_read : data_read)(a, face, env, name, path, out);
        free(name);
    }
    return is_good;
}

/* ---- all of it ---- */

static bool calib_load(const args *a, model_given *g, const sinter_env_options *env)
{
    sinter_error error = { 0 };
    if (!a->calib) return true;
    if (sinter_calibration_load(a->calib, env, &g->calibration, &error) == SINTER_OK) return true;
    if (strchr(a->calib, '=')) cli_say(LOG_INFO, "--calib takes a calibration cache; data goes with --data NAME=FILE");
    return cli_error(&error) == 0;
}

bool model_given_make(const args *a, model_setup *setup, const model_inputs *given, model_given *g)
{
    sinter_error error = { 0 };
    sinter_build_options *build = &setup->build;
    *g = (model_given){ .value = cli_alloc(a->value.count, sizeof *g->value) };
    words_make(a, &g->words, build);
    bool is_good = model_face_read(a->file.at[0], &setup->env, &g->face, &error) == SINTER_OK;
    if (!is_good) (void)cli_error(&error);
    is_good = is_good && calib_load(a, g, &setup->env);
    is_good = is_good && samples_read(a, &g->face, &setup->env, &g->data);
    is_good = is_good && model_shapes_make(a, &g->face, given ? given : &g->data, &g->shapes);
    is_good = is_good && model_inputs_read(&a->value, &setup->env, &g->promised);
    g->sample = samples_make(&g->data, &g->samples);
    for (uint32_t i = 0; i < g->promised.count; i++)
        g->value[i] = (sinter_input_value){ .input = g->promised.at[i].name, .value = &g->promised.at[i].tensor };
    build->profile = g->shapes.profile;
    build->profile_count = g->shapes.count;
    build->value = g->value;
    build->value_count = g->promised.count;
    build->sample = g->sample;
    build->sample_count = g->samples;
    build->calibration = g->calibration;
    return is_good;
}

void model_given_free(model_given *g, model_setup *setup)
{
    sinter_build_options *build = &setup->build;
    for (uint32_t i = 0; i < g->samples; i++) free((void *)(uintptr_t)g->sample[i].value);
    words_free(&g->words, build);
    free(g->sample);
    free(g->value);
    sinter_calibration_destroy(g->calibration);
    model_inputs_free(&g->data);
    model_inputs_free(&g->promised);
    model_shapes_free(&g->shapes);
    model_face_free(&g->face);
    build->profile = NULL;
    build->value = NULL;
    build->sample = NULL;
    build->calibration = NULL;
    build->profile_count = build->value_count = build->sample_count = 0;
}
