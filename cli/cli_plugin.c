/* SPDX-License-Identifier: Apache-2.0 */
/* cli_plugin.c - --plugin, and `sinter plugin`: a new plugin's files, and what a library has. */
#include "cli_plugin.h"
#include "print.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- --plugin ---- */

/* One registry a command, closed when the command ends: every engine of the command uses it. */
static sinter_plugins *opened;

static void close_all(void)
{
    sinter_plugins_destroy(opened);
    opened = NULL;
}

static bool open_one(const char *path)
{
    sinter_error error = { 0 };
    if (!opened) {
        if (sinter_plugins_create(NULL, &opened, &error) != SINTER_OK) return cli_error(&error) == STATUS_OK;
        (void)atexit(close_all);
    }
    return sinter_plugins_load(opened, path, &error) == SINTER_OK || cli_error(&error) == STATUS_OK;
}

bool cli_plugins_open(const arg_list *path, bool is_checked)
{
    for (uint32_t i = 0; i < path->count; i++)
        if (!open_one(path->at[i])) return false;
    sinter_plugins_check(opened, is_checked);
    return true;
}

const sinter_plugins *cli_plugins(void)
{
    return opened;
}

/* ---- list ---- */

static const char *type_name(sinter_plugin_type type)
{
    static const char *const name[] = { "", "int", "real", "text", "bytes", "ints", "reals" };
    return (size_t)type < sizeof name / sizeof name[0] ? name[type] : "";
}

static void list_json(void)
{
    json j = { .to = stdout };
    json_open(&j, NULL, '[');
    for (uint32_t i = 0; i < sinter_plugins_count(opened); i++) {
        const sinter_plugin *p = sinter_plugins_at(opened, i);
        json_open(&j, NULL, '{');
        json_text(&j, "name", p->name);
        json_text(&j, "version", p->version);
        json_text(&j, "namespace", p->space);
        json_count(&j, "inputs_min", p->in_min);
        json_count(&j, "inputs_max", p->in_max);
        json_count(&j, "outputs_min", p->out_min);
        json_count(&j, "outputs_max", p->out_max);
        json_open(&j, "fields", '[');
        for (uint32_t k = 0; k < p->count_field; k++) {
            json_open(&j, NULL, '{');
            json_text(&j, "name", p->field[k].name);
            json_text(&j, "type", type_name(p->field[k].type));
            json_count(&j, "is_required", !p->field[k].data);
            json_close(&j, '}');
        }
        json_close(&j, ']');
        json_close(&j, '}');
    }
    json_close(&j, ']');
}

static void list_table(void)
{
    static const char *const title[] = { "plugin", "version", "namespace", ">inputs", ">outputs", "runs on", "fields" };
    table t;
    table_begin(&t, title, 7);
    for (uint32_t i = 0; i < sinter_plugins_count(opened); i++) {
        const sinter_plugin *p = sinter_plugins_at(opened, i);
        char fields[512] = "";
        size_t at = 0;
        for (uint32_t k = 0; k < p->count_field && at + 1 < sizeof fields; k++)
            at += (size_t)snprintf(fields + at, sizeof fields - at, "%s%s:%s%s", k ? " " : "", p->field[k].name,
                                   type_name(p->field[k].type), p->field[k].data ? "" : "!");
        const int has_cuda = p->cuda_source || p->cuda_run;
        table_cell(&t, 0, "%s", p->name);
        table_cell(&t, 1, "%s", p->version);
        table_cell(&t, 2, "%s", p->space);
        table_cell(&t, 3, "%u..%u", p->in_min, p->in_max);
        table_cell(&t, 4, "%u..%u", p->out_min, p->out_max);
        table_cell(&t, 5, "%s%s%s", p->run ? "cpu" : "", p->run && has_cuda ? ", " : "", has_cuda ? "cuda" : "");
        table_cell(&t, 6, "%s", fields);
        table_row(&t);
    }
    table_end(&t, stdout);
}

/* ---- new ---- */

static bool is_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    const size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    return *name && length <= 64 && !name[length] && strchr(letters, *name);
}

/* `text` with the name in the place of each @NAME@. */
static char *filled(const char *text, const char *name)
{
    const size_t mark = strlen("@NAME@"), length = strlen(name);
    size_t count = 0, at = 0;
    for (const char *p = strstr(text, "@NAME@"); p; p = strstr(p + mark, "@NAME@")) count++;
    char *out = cli_alloc(strlen(text) + count * length + 1, 1);
    for (const char *p = text; *p;) {
        const char *next = strstr(p, "@NAME@");
        const size_t part = next ? (size_t)(next - p) : strlen(p);
        memcpy(out + at, p, part);
        at += part;
        p += part;
        if (!next) break;
        memcpy(out + at, name, length);
        at += length;
        p += mark;
    }
    return out;
}

static bool write_file(const char *folder, const plugin_file *f, const char *name)
{
    sinter_error error = { 0 };
    char *file = filled(f->name, name), *path = cli_join(folder, file);
    char *raw = cli_alloc(strlen(f->text) + strlen(f->more) + 1, 1);
    (void)strcat(strcpy(raw, f->text), f->more);
    char *text = filled(raw, name);
    const sinter_buffer bytes = { .data = text, .size = strlen(text) };
    const bool ok = sinter_buffer_save(&bytes, path, &error) == SINTER_OK;
    if (ok) (void)printf("wrote %s\n", path);
    else (void)cli_error(&error);
    free(file);
    free(path);
    free(raw);
    free(text);
    return ok;
}

static int make_new(const char *folder, bool is_cuda)
{
    const char *slash = strrchr(folder, '/'), *name = slash ? slash + 1 : folder;
    if (!is_name(name)) {
        (void)cli_fail("'%s' is no name for a plugin: wanted are letters, digits and '_'", name);
        return STATUS_USAGE;
    }
    if (mkdir(folder, 0777) != 0) return cli_fail("the folder '%s' cannot be made: %s", folder, strerror(errno));
    for (const plugin_file *f = is_cuda ? plugin_files_cuda : plugin_files; f->name; f++)
        if (!write_file(folder, f, name)) return STATUS_FAILED;
    return STATUS_OK;
}

int verb_plugin(const args *a)
{
    if (!strcmp(a->file.at[0], "new")) return make_new(a->file.at[1], a->cu);
    if (strcmp(a->file.at[0], "list") != 0) {
        (void)cli_fail("'%s' is neither new nor list", a->file.at[0]);
        return STATUS_USAGE;
    }
    if (!open_one(a->file.at[1])) return STATUS_FAILED;
    if (a->json) list_json();
    else list_table();
    return STATUS_OK;
}
