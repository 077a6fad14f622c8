/* SPDX-License-Identifier: Apache-2.0 */
/* sides.c - opens the two sides of a comparison, and gives both the same inputs. */
#include "sides.h"

#include "onnx_file.h"
#include "process.h"
#include "random.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- what a side is ---- */

static bool begins(const char *text, const char *with, const char **rest)
{
    const size_t n = strlen(with);
    *rest = text + n;
    return !strncmp(text, with, n);
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static side side_of(const char *text)
{
    const char *path = text;
    side s = { .text = text };
    if (begins(text, "reference:", &path)) s.kind = SIDE_REFERENCE;
    else if (begins(text, "onnxruntime:", &path)) s.kind = SIDE_ONNXRUNTIME;
    else
        path = text, s.kind = is_folder(text) || args_is_npz(text) ? SIDE_SAVED
                              : model_is_engine(text)              ? SIDE_ENGINE
                                                                   : SIDE_MODEL;
    s.file = path;
    s.path = cli_copy(path);
    return s;
}

static bool runs_here(const side *s)
{
    return s->kind == SIDE_ENGINE || s->kind == SIDE_MODEL || s->kind == SIDE_REFERENCE;
}

const char *side_model(const side *s)
{
    return s->kind == SIDE_ENGINE || s->kind == SIDE_SAVED ? NULL : s->file;
}

/* The folder that a file is in. The caller frees it. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = cli_copy(slash ? path : ".");
    if (slash) folder[slash == path ? 1 : slash - path] = 0;
    return folder;
}

/* A copy of the model whose values are all outputs. Weights in other files are found by the model's folder, so the copy
 * is made there. */
static bool mark_all(side *s)
{
    onnx_file f;
    bool is_good = onnx_file_read(s->path, &f);
    char *beside = is_good && f.has_external ? folder_of(s->path) : NULL;
    if (is_good && beside) {
        char *name = cli_join(beside, ".sinter-all-XXXXXX");
        const int file = mkstemp(name);
        is_good =
            file >= 0 || cli_fail("'%s' has weights in other files, and no file can be made beside it", s->path) == 0;
        if (file >= 0) s->is_beside = true;
        free(s->path);
        s->path = name;
    } else if (is_good) {
        s->folder = folder_make(NULL);
        is_good = s->folder != NULL;
        free(s->path);
        s->path = cli_join(is_good ? s->folder : "", "all.onnx");
    }
    is_good = is_good && onnx_file_write_all(&f, s->path);
    free(beside);
    onnx_file_free(&f);
    return is_good;
}

/* The options of a side. B is built as plainly as can be: it says what is right. */
static void args_make(const args *a, side *s, bool is_wanted)
{
    s->a = *a;
    s->a.file = (arg_list){ .at = { s->path }, .count = 1 };
    if (!is_wanted) return;
    s->a.building = NULL;
    s->a.build = (sinter_build_options)SINTER_BUILD_OPTIONS;
    s->a.build.tune = SINTER_TUNE_OFF;
    s->a.build.threads = a->build.threads;
    s->a.build.capacity = a->build.capacity;
    s->a.load.device = NULL;
    if (s->kind == SIDE_REFERENCE) s->a.build.device = "reference";
}

/* ---- running ---- */

static bool side_open(side *s, const model_inputs *given)
{
    if (s->kind == SIDE_REFERENCE) s->a.build.device = "reference", s->a.load.device = NULL;
    if (!model_setup_make(&s->a, &s->setup)) return false;
    if (!runs_here(s)) return true;
    s->is_open = true;
    return model_engine_open_given(&s->a, &s->setup, given, &s->m) && model_choose(&s->a, &s->m);
}

static bool side_run(side *s, uint64_t seed)
{
    sinter_error error = { 0 };
    sinter_status status = model_context(&s->m, seed, MODEL_ONCE, &s->made, &s->c, &error);
    if (status == SINTER_OK) status = sinter_context_run(s->c, &error);
    if (status != SINTER_OK) return cli_error(&error) == 0;
    sinter_io io;
    for (uint32_t i = 0; sinter_engine_io(s->m.engine, i, s->m.profile, &io) == SINTER_OK; i++) {
        if (io.is_input) continue;
        s->name = cli_grow(s->name, s->names + 1, sizeof *s->name);
        s->name[s->names++] = cli_copy(io.name);
    }
    return true;
}

bool sides_again(side s[SIDES], uint64_t seed)
{
    sinter_error error = { 0 };
    sinter_io io;
    for (uint32_t k = 0; k < SIDES; k++) {
        for (uint32_t i = 0; s[k].c && sinter_engine_io(s[k].m.engine, i, s[k].m.profile, &io) == SINTER_OK; i++) {
            const model_input *in = model_inputs_find(&s[k].made, io.name);
            if (in) random_fill(&in->tensor, seed + i, io.value_min, io.value_max);
        }
    }
    for (uint32_t k = 0; k < SIDES; k++)
        if (s[k].c && sinter_context_run(s[k].c, &error) != SINTER_OK) return cli_error(&error) == 0;
    return true;
}

/* ---- saved outputs ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The arrays of an archive, or the .npy files of a folder without their ending. */
static bool saved_list(side *s)
{
    if (args_is_npz(s->path)) {
        if (!model_npz_read(s->path, NULL, &s->setup.env, &s->result)) return false;
        for (uint32_t i = 0; i < s->result.count; i++) {
            s->name = cli_grow(s->name, s->names + 1, sizeof *s->name);
            s->name[s->names++] = cli_copy(s->result.at[i].name);
        }
        return s->names || cli_fail("the archive '%s' has no array", s->path) == 0;
    }
    DIR *d = opendir(s->path);
    const struct dirent *entry;
    while (d && (entry = readdir(d)) != NULL) {
        const size_t n = strlen(entry->d_name);
        if (n < 5 || strcmp(entry->d_name + n - 4, ".npy") != 0) continue;
        s->name = cli_grow(s->name, s->names + 1, sizeof *s->name);
        s->name[s->names] = cli_copy(entry->d_name);
        s->name[s->names++][n - 4] = 0;
    }
    if (d) (void)closedir(d);
    if (s->names) qsort(s->name, s->names, sizeof *s->name, by_name);
    return s->names || cli_fail("the folder '%s' has no .npy file", s->path) == 0;
}

static const sinter_tensor *saved_read(side *s, const char *name, const char *path)
{
    sinter_error error = { 0 };
    s->result.at = cli_grow(s->result.at, s->result.count + 1, sizeof *s->result.at);
    model_input *in = &s->result.at[s->result.count];
    *in = (model_input){ 0 };
    if (sinter_tensor_read(path, &s->setup.env, &in->tensor, &in->memory, &error) != SINTER_OK) {
        (void)cli_error(&error);
        return NULL;
    }
    in->name = cli_copy(name);
    s->result.count++;
    return &in->tensor;
}

/* output_I, or what NumPy calls arrays that were given no name. */
static const sinter_tensor *archive_find(const side *s, uint32_t index)
{
    char name[2][32];
    (void)snprintf(name[0], sizeof name[0], "output_%u", index);
    (void)snprintf(name[1], sizeof name[1], "arr_%u", index);
    const model_input *in = model_inputs_find(&s->result, name[0]);
    if (!in) in = model_inputs_find(&s->result, name[1]);
    return in ? &in->tensor : NULL;
}

/* NAME.npy as --output-names writes it, else output_I.npy. */
static const sinter_tensor *saved_find(side *s, const char *name, uint32_t index)
{
    args folder = { .output_dir = s->path, .output_names = true };
    char file[32];
    if (args_is_npz(s->path)) return archive_find(s, index);
    char *path = outputs_path(&folder, &name, 0);
    struct stat st;
    if (stat(path, &st) != 0) {
        free(path);
        (void)snprintf(file, sizeof file, "output_%u.npy", index);
        path = cli_join(s->path, file);
    }
    const sinter_tensor *t = stat(path, &st) == 0 ? saved_read(s, name, path) : NULL;
    free(path);
    return t;
}

const sinter_tensor *side_result(side *s, const char *name, uint32_t index)
{
    sinter_error error = { 0 };
    if (s->c) return sinter_context_output(s->c, name, &s->last, &error) == SINTER_OK ? &s->last : NULL;
    const model_input *in = model_inputs_find(&s->result, name);
    if (in) return &in->tensor;
    return s->kind == SIDE_SAVED ? saved_find(s, name, index) : NULL;
}

/* ---- both ---- */

static bool onnxruntime_run(side *s, const side *other, const args *a)
{
    model_inputs given = { 0 };
    const bool is_read = other->c || model_inputs_read(&a->input, &s->setup.env, &given);
    const bool is_good = is_read && side_onnxruntime(s, other->c ? &other->m.inputs : &given, &other->made);
    model_inputs_free(&given);
    for (uint32_t i = 0; is_good && i < s->result.count; i++) {
        s->name = cli_grow(s->name, s->names + 1, sizeof *s->name);
        s->name[s->names++] = cli_copy(s->result.at[i].name);
    }
    return is_good;
}

void side_inputs(const side *s, model_inputs *out)
{
    *out = (model_inputs){ .at = cli_alloc(s->m.inputs.count + s->made.count, sizeof *out->at) };
    for (uint32_t i = 0; i < s->m.inputs.count; i++) out->at[out->count++] = s->m.inputs.at[i];
    for (uint32_t i = 0; i < s->made.count; i++) out->at[out->count++] = s->made.at[i];
}

bool side_alone(const args *a, const char *text, bool is_wanted, bool has_all, side *out)
{
    *out = side_of(text);
    if (has_all && !mark_all(out)) return false;
    args_make(a, out, is_wanted);
    return side_open(out, NULL) && side_run(out, a->seed);
}

bool sides_run(const args *a, const char *const text[SIDES], bool has_all, side out[SIDES])
{
    bool is_good = true;
    for (uint32_t k = 0; k < SIDES; k++) out[k] = side_of(text[k]);
    for (uint32_t k = 0; k < SIDES && is_good; k++) {
        if (has_all && side_model(&out[k])) is_good = mark_all(&out[k]);
        args_make(a, &out[k], k == 1);
    }
    if (!is_good) return false;
    side *first = &out[!runs_here(&out[0]) && runs_here(&out[1])], *second = &out[first == out];
    if (!side_open(first, NULL) || (runs_here(first) && !side_run(first, a->seed))) return false;
    if (runs_here(second)) {
        /* The same data: no input is left to be made. */
        model_inputs all;
        side_inputs(first, &all);
        is_good = side_open(second, &all) && side_run(second, a->seed);
        free(all.at);
    } else is_good = side_open(second, NULL);
    for (uint32_t k = 0; k < SIDES && is_good; k++)
        if (out[k].kind == SIDE_ONNXRUNTIME) is_good = onnxruntime_run(&out[k], &out[!k], a);
    for (uint32_t k = 0; k < SIDES && is_good; k++)
        if (out[k].kind == SIDE_SAVED) is_good = saved_list(&out[k]);
    return is_good;
}

static void rest_close(side *s)
{
    sinter_context_destroy(s->c);
    if (s->is_open) model_engine_close(&s->m);
    if (s->is_beside) (void)remove(s->path);
    for (uint32_t i = 0; i < s->names; i++) free(s->name[i]);
    free(s->name);
    free(s->path);
    folder_remove(s->folder);
    model_inputs_free(&s->result);
}

void side_close(side *s)
{
    rest_close(s);
    model_inputs_free(&s->made);
}

/* The inputs of one side are those of the other: they go last. */
void sides_close(side s[SIDES])
{
    for (uint32_t k = SIDES; k-- > 0;) rest_close(&s[k]);
    for (uint32_t k = 0; k < SIDES; k++) model_inputs_free(&s[k].made);
}
