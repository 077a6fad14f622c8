/* SPDX-License-Identifier: Apache-2.0 */
/* cases.c - walking folders for models and their data. */
#include "cases.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH_MAX = 24 };

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

char *case_file(const char *folder, const char *kind, uint32_t index)
{
    static const char *const ending[] = { "npy", "pb" };
    for (int i = 0; i < 2; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%s_%u.%s", kind, index, ending[i]);
        char *path = cli_join(folder, name);
        if (is_file(path)) return path;
        free(path);
    }
    return NULL;
}

static bool has_file(const char *folder, const char *kind, uint32_t index)
{
    char *path = case_file(folder, kind, index);
    free(path);
    return path != NULL;
}

/* Digits compare as numbers, so that set_2 comes before set_10. */
static int by_name(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    while (*x && *y) {
        const bool is_number = *x >= '0' && *x <= '9' && *y >= '0' && *y <= '9';
        if (is_number) {
            char *end_x = NULL, *end_y = NULL;
            const unsigned long long n = strtoull(x, &end_x, 10), m = strtoull(y, &end_y, 10);
            if (n != m) return n < m ? -1 : 1;
            x = end_x;
            y = end_y;
        } else {
            if (*x != *y) return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
            x++;
            y++;
        }
    }
    return (*x != 0) - (*y != 0);
}

/* The folders inside a folder, sorted. */
static char **folders_of(const char *folder, uint32_t *count)
{
    char **names = NULL;
    *count = 0;
    DIR *dir = opendir(folder);
    if (!dir) return NULL;
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (entry->d_name[0] == '.') continue;
        char *path = cli_join(folder, entry->d_name);
        if (!is_folder(path)) {
            free(path);
            continue;
        }
        names = cli_grow(names, *count + 1, sizeof *names);
        names[(*count)++] = path;
    }
    (void)closedir(dir);
    if (names) qsort(names, *count, sizeof *names, by_name);
    return names;
}

static bool add_set(case_model *m, const char *folder)
{
    case_set set = { 0 };
    while (has_file(folder, "input", set.inputs)) set.inputs++;
    if (!set.inputs && !has_file(folder, "output", 0) && !has_file(folder, "sample", 0)) return false;
    set.path = cli_copy(folder);
    m->set = cli_grow(m->set, m->count + 1, sizeof *m->set);
    m->set[m->count++] = set;
    return true;
}

static void walk(case_list *list, const char *folder, int depth)
{
    if (depth == DEPTH_MAX) return;
    uint32_t count = 0;
    char **inner = folders_of(folder, &count);
    case_model m = { .model = cli_join(folder, "model.onnx") };
    const bool has_model = is_file(m.model);
    if (has_model) {
        m.path = cli_copy(folder);
        (void)add_set(&m, folder);
        for (uint32_t i = 0; i < count; i++) {
            if (!add_set(&m, inner[i])) continue;
            free(inner[i]);
            inner[i] = NULL;
        }
        list->at = cli_grow(list->at, list->count + 1, sizeof *list->at);
        list->at[list->count++] = m;
    } else {
        free(m.model);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (inner[i]) walk(list, inner[i], depth + 1);
        free(inner[i]);
    }
    free(inner);
}

bool case_list_add(case_list *list, const char *folder)
{
    if (!is_folder(folder)) return cli_fail("'%s' is no folder", folder) == 0;
    walk(list, folder, 0);
    return true;
}

void case_list_free(case_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        case_model *m = &list->at[i];
        for (uint32_t k = 0; k < m->count; k++) free(m->set[k].path);
        free(m->set);
        free(m->path);
        free(m->model);
    }
    free(list->at);
    *list = (case_list){ 0 };
}
