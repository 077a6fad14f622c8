/* SPDX-License-Identifier: Apache-2.0 */
/* outputs.c - files that the command writes, checked before the work; and Ctrl-C during a build. */
#include "cli_model.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what may be written ---- */

static const char *file_of(const char *pair)
{
    const char *equals = strrchr(pair, '=');
    return equals ? equals + 1 : pair;
}

/* All files that the command line reads, and the timing cache where that is not the file in question. */
static const char **files_in_use(const args *a, bool has_cache, uint32_t *count)
{
    const arg_list *const list[] = { &a->input, &a->value, &a->data, &a->input_data_path };
    const uint32_t files = a->verb_bit == V_SIMPLIFY ? 1 : a->file.count; /* the others say where to write */
    uint32_t all = 4 + files;
    for (uint32_t k = 0; k < sizeof list / sizeof list[0]; k++) all += list[k]->count;
    const char **file = cli_alloc(all, sizeof *file);
    *count = 0;
    for (uint32_t i = 0; i < files; i++) file[(*count)++] = a->file.at[i];
    for (uint32_t k = 0; k < sizeof list / sizeof list[0]; k++) {
        for (uint32_t i = 0; i < list[k]->count; i++) file[(*count)++] = file_of(list[k]->at[i]);
    }
    if (has_cache) file[(*count)++] = a->build.timing_cache;
    if (a->calib) file[(*count)++] = a->calib;
    if (a->weights) file[(*count)++] = a->weights;
    return file;
}

static bool check(const args *a, const char *path, sinter_file_kind kind)
{
    uint32_t count = 0;
    const bool is_cache = kind == SINTER_FILE_TIMINGS;
    const char **used = files_in_use(a, !is_cache, &count);
    sinter_error error = { 0 };
    const sinter_status s = sinter_file_check(path, kind, used, count, &error);
    free(used);
    if (s == SINTER_OK) return true;
    if (s != SINTER_IO || !is_cache) return cli_error(&error) == 0;
    char why[512];
    cli_reason(&error, why, sizeof why);
    cli_say(LOG_WARNING, "measurements will not be kept: %s", why);
    return true;
}

bool outputs_check_engine(const args *a)
{
    return check(a, a->output, SINTER_FILE_ENGINE) && outputs_check_cache(a);
}

bool outputs_check_model(const args *a, const char *path)
{
    return check(a, path, SINTER_FILE_MODEL);
}

bool outputs_check_calibration(const args *a)
{
    return check(a, a->output, SINTER_FILE_CALIBRATION);
}

bool outputs_check_cache(const args *a)
{
    return !a->build.timing_cache || a->build.cache_only || check(a, a->build.timing_cache, SINTER_FILE_TIMINGS);
}

/* A name that no file system and no shell minds; two outputs that become one name are told apart by their index. */
static char *safe_path(const char *folder, const char *name, uint32_t index, bool is_taken)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    enum { NAME_MAX_USED = 200 };
    char file[NAME_MAX_USED + 24];
    if (is_taken) (void)snprintf(file, sizeof file, "%.*s_%u.npy", NAME_MAX_USED, name, index);
    else (void)snprintf(file, sizeof file, "%.*s.npy", NAME_MAX_USED, name);
    for (char *c = file; *c; c++)
        if (!strchr(safe, *c)) *c = '_';
    if (file[0] == '.' || file[0] == '-') file[0] = '_';
    return cli_join(folder, file);
}

char *outputs_path(const args *a, const char *const *names, uint32_t index)
{
    char name[32];
    if (a->output_names) {
        char *path = safe_path(a->output_dir, names[index], index, false);
        bool is_taken = false;
        for (uint32_t i = 0; i < index && !is_taken; i++) {
            char *earlier = safe_path(a->output_dir, names[i], i, false);
            is_taken = !strcmp(earlier, path);
            free(earlier);
        }
        if (!is_taken) return path;
        free(path);
        return safe_path(a->output_dir, names[index], index, true);
    }
    (void)snprintf(name, sizeof name, "output_%u.npy", index);
    return cli_join(a->output_dir, name);
}

bool outputs_check_folder(const args *a, const char *const *names, uint32_t count)
{
    struct stat st;
    if (!a->output_dir) return true;
    if (mkdir(a->output_dir, 0777) != 0 && (errno != EEXIST || stat(a->output_dir, &st) != 0 || !S_ISDIR(st.st_mode)))
        return cli_fail("cannot make the folder '%s': %s", a->output_dir, strerror(errno)) == 0;
    bool is_good = true;
    for (uint32_t i = 0; i < count && is_good; i++) {
        char *path = outputs_path(a, names, i);
        is_good = check(a, path, SINTER_FILE_NPY);
        free(path);
    }
    return is_good;
}

bool outputs_is_stdout(const char *path)
{
    struct stat file, out;
    if (stat(path, &file) != 0 || fstat(STDOUT_FILENO, &out) != 0 || S_ISCHR(file.st_mode)) return false;
    return file.st_dev == out.st_dev && file.st_ino == out.st_ino;
}

/* ---- Ctrl-C ---- */

static volatile sig_atomic_t caught;

static void on_signal(int signal)
{
    caught = signal;
}

bool build_is_interrupted(void)
{
    return caught != 0;
}

/* The first signal ends the build at its next report of progress, which keeps the measurements. A second one ends the
 * process. A signal that was ignored before stays so. */
static void catch_signals(struct sigaction old[2])
{
    static const int signals[2] = { SIGINT, SIGTERM };
    struct sigaction own = { .sa_handler = on_signal, .sa_flags = SA_RESTART | (int)SA_RESETHAND };
    (void)sigemptyset(&own.sa_mask);
    for (int i = 0; i < 2; i++) {
        (void)sigaction(signals[i], NULL, &old[i]);
        if (old[i].sa_handler != SIG_IGN) (void)sigaction(signals[i], &own, NULL);
    }
}

sinter_status build_interruptible(const char *path, const sinter_build_options *options, const char *engine,
                                  sinter_buffer *out, sinter_error *error)
{
    uint64_t size = 0;
    struct sigaction old[2];
    catch_signals(old);
    const sinter_status s =
        engine ? sinter_build_save(path, options, engine, &size, error) : sinter_build_file(path, options, out, error);
    if (engine) *out = (sinter_buffer){ .size = (size_t)size };
    (void)sigaction(SIGINT, &old[0], NULL);
    (void)sigaction(SIGTERM, &old[1], NULL);
    if (!caught) return s;
    if (options->timing_cache && !options->cache_only && !(options->report && *options->report->cache_warning))
        (void)fprintf(stderr, "\ninterrupted: the measurements so far are in '%s'\n", options->timing_cache);
    (void)raise(caught); /* whoever waits for this process sees what ended it */
    return s;
}
