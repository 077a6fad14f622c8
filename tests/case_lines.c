/* SPDX-License-Identifier: Apache-2.0 */
/* case_lines.c - reading case files. */
#include "case_lines.h"

#include "base/os.h"
#include "places.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

void case_lines_put(case_lines *l, case_line line)
{
    if (l->count == l->room) {
        l->room = l->room ? 2 * l->room : 256;
        l->at = realloc(l->at, l->room * sizeof *l->at);
        if (!l->at) exit(2);
    }
    l->at[l->count++] = line;
}

void case_lines_add(case_lines *l, const char *line)
{
    case_lines_put(l, (case_line){ .at = line });
}

const char *case_lines_read(case_rig *r, const char *path, case_lines *l)
{
    os_file file = { 0 };
    if (os_file_read(&r->e, path, 1u << 24, &file) != SINTER_OK) return r->e.error->text;
    const char *at = (const char *)file.data, *end = at + file.size, *name = strrchr(path, '/');
    const char *from = arena_text(&r->a, name ? name + 1 : path, strlen(name ? name + 1 : path));
    bool is_small = false;
    for (uint32_t number = 1; at < end; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        const size_t length = (size_t)(stop - at);
        if (length >= 8 && !memcmp(at, "#! small", 8)) {
            is_small = true;
        } else if (length && *at != '#') {
            case_lines_put(l, (case_line){ arena_text(&r->a, at, length), from, number, is_small, false });
            is_small = false;
        }
        at = stop + 1;
    }
    os_file_close(&r->e, &file);
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int case_lines_read_folder(case_rig *r, const char *folder, case_lines *l)
{
    char *names[128];
    int count = 0;
    const char *path = arena_printf(&r->a, "%s/%s", PLACE_SOURCE_DIR, folder);
    DIR *d = opendir(path);
    if (!d) return 0;
    for (const struct dirent *f; (f = readdir(d)) != NULL && count < 128;)
        if (strstr(f->d_name, ".txt")) names[count++] = arena_printf(&r->a, "%s/%s", path, f->d_name);
    (void)closedir(d);
    qsort(names, (size_t)count, sizeof *names, by_name);
    for (int i = 0; i < count; i++) (void)case_lines_read(r, names[i], l);
    return count;
}
