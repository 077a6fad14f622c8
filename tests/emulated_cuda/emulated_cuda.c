/* SPDX-License-Identifier: Apache-2.0 */
/* emulated_cuda.c - the fake driver and compiler with kernels that run: "machine code" is the name of a shared object
 * that g++ made of the same sources, and a launch runs it on the CPU. So a whole model runs where there is no GPU:
 *
 *     export SINTER_LIBCUDA=build/tests/libsinter_emulated_cuda.so SINTER_LIBNVRTC=$SINTER_LIBCUDA
 *     build/sinter test --device cuda --tune off MODEL
 *
 * What a kernel does wrong is printed, and fails the launch. SINTER_EMULATED_LOG=1 prints every launch. */
#include "emulate.h"
#include "emulator/emulator.h"
#include "fake_cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

_Static_assert(sizeof(struct emulator_map) == sizeof(fake_map), "one layout of tensor maps");

typedef struct image {
    fake_image head;
    char key[EMULATED_KEY];
} image;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The names of functions that begin with KERNEL: what stands before the first parenthesis that no attribute opens. */
enum { ENTRIES = 16, FILES = 128 };
static uint32_t find_entries(const char *at, char name[ENTRIES][64])
{
    uint32_t count = 0;
    while ((at = strstr(at, "\nKERNEL ")) != NULL && count < ENTRIES) {
        at += strlen("\nKERNEL ");
        for (const char *open = strchr(at, '('); open; open = strchr(open + 1, '(')) {
            const char *from = open;
            while (from > at && is_name(from[-1])) from--;
            if (!strncmp(from, "__", 2)) {
                open = strchr(open, ')');
                if (!open) break;
                continue;
            }
            (void)snprintf(name[count], sizeof name[0], "%.*s", (int)(open - from), from);
            /* One that stands in two branches of the preprocessor is one. */
            uint32_t same = 0;
            while (strcmp(name[same], name[count]) != 0) same++;
            count += same == count;
            break;
        }
    }
    return count;
}

/* Parameters of the entries: of one layout all, or their number is not told. */
static void measure(const char *path, char name[ENTRIES][64], uint32_t count, fake_image *out)
{
    out->param_count = -1;
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (uint32_t i = 0; object && i < count; i++) {
        char symbol[96];
        (void)snprintf(symbol, sizeof symbol, "emulated_sizes_%.63s", name[i]);
        void *at = dlsym(object, symbol);
        unsigned (*sizes)(unsigned *);
        unsigned size[64] = { 0 };
        memcpy(&sizes, &at, sizeof sizes);
        const int32_t params = at ? (int32_t)sizes(size) : -1;
        if (i && params != out->param_count) {
            out->param_count = -1;
            break;
        }
        out->param_count = params;
        for (int32_t k = 0; k < params && k < FAKE_PARAMS; k++)
            if (size[k] > out->param[k]) out->param[k] = size[k];
    }
}

static void *compile(const fake_source *s, size_t *size, char **log)
{
    char flags[4096] = "", path[1200], name[ENTRIES][64], why[1000];
    uint32_t sm = 90;
    for (int i = 0; i < s->option_count; i++) {
        if (!strncmp(s->options[i], "-arch=sm_", 9)) sm = (uint32_t)atoi(s->options[i] + 9);
        if (strncmp(s->options[i], "-D", 2) != 0) continue;
        (void)snprintf(flags + strlen(flags), sizeof flags - strlen(flags), " %s", s->options[i]);
    }
    const char *generated = "", *names[FILES] = { s->name }, *files[FILES] = { s->text };
    uint32_t file_count = 1;
    for (int i = 0; i < s->header_count; i++) {
        if (!strcmp(s->header_names[i], "generated.cuh")) {
            generated = s->headers[i];
        } else if (file_count < FILES) {
            names[file_count] = s->header_names[i];
            files[file_count++] = s->headers[i];
        }
    }
    const uint32_t count = find_entries(s->text, name);
    const char *entry[ENTRIES];
    for (uint32_t i = 0; i < count; i++) entry[i] = name[i];
    const emulated_source source = { .path = s->name,
                                     .flags = flags,
                                     .generated = generated,
                                     .entry = entry,
                                     .entry_count = count,
                                     .file_name = names,
                                     .file = files,
                                     .file_count = file_count };
    image *out = calloc(1, sizeof *out);
    if (!out) abort();
    (void)pthread_mutex_lock(&lock);
    emulate_source(&source, true, out->key);
    (void)pthread_mutex_unlock(&lock);
    if (emulate_compile((const char(*)[EMULATED_KEY])out->key, 1, 1)) {
        *log = strdup(emulate_log(out->key, why, sizeof why));
        free(out);
        return NULL;
    }
    out->head = (fake_image){ .magic = FAKE_IMAGE_MAGIC, .size = sizeof *out, .sm = sm };
    (void)snprintf(path, sizeof path, "%s/%s/kernel.so", emulate_folder(), out->key);
    measure(path, name, count, &out->head);
    *log = strdup("Used 32 registers");
    *size = sizeof *out;
    return out;
}

static double seconds_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static CUresult launch(void *user, const fake_launch *l)
{
    (void)user;
    const image *i = (const image *)(const void *)l->image;
    char path[1200], why[2000];
    (void)pthread_mutex_lock(&lock);
    runtime_launch x = { .name = l->entry,
                         .object = emulate_open(i->key, path, sizeof path),
                         .object_path = path,
                         .entry = l->entry,
                         .grid = { l->grid[0], l->grid[1], l->grid[2] },
                         .block = l->block,
                         .cluster = l->cluster,
                         .shared = l->shared,
                         .param_count = i->head.param_count < 0 ? 1 : (uint32_t)i->head.param_count,
                         .is_synchronous = i->head.sm < 80 };
    for (uint32_t k = 0; k < x.param_count && k < RUNTIME_PARAMS; k++) x.param[k] = l->param[k];
    const double begun = seconds_now();
    bool is_good = x.object != NULL;
    if (!is_good) (void)fprintf(stderr, "emulated: %s is gone: %s\n", path, dlerror());
    else if (!(is_good = runtime_run(&x, why, sizeof why)))
        (void)fprintf(stderr, "emulated: %s\n     (%s)\n", why, path);
    if (getenv("SINTER_EMULATED_LOG"))
        (void)fprintf(stderr, "emulated: %s %ux%ux%u blocks of %u, %u bytes shared: %.3f s\n", l->entry, l->grid[0],
                      l->grid[1], l->grid[2], l->block, l->shared, seconds_now() - begun);
    (void)pthread_mutex_unlock(&lock);
    return is_good ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
}

__attribute__((constructor)) static void begin(void)
{
    fake_set_compile(compile);
    fake_set_launch(launch, NULL);
}
