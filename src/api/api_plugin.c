/* SPDX-License-Identifier: Apache-2.0 */
/* api_plugin.c - sinter/plugin.h: registries, and shared libraries with plugins. */
#include "base/os.h"
#include "ops/plugin_cu.h"

#include <string.h>

sinter_status sinter_plugins_create(const sinter_env_options *options, sinter_plugins **out, sinter_error *error)
{
    env e;
    env_init(&e, options, error);
    if (!out) return FAIL(&e, INVALID_ARG, "out is NULL");
    *out = NULL;
    TRY(env_check(&e));
    struct sinter_plugins *r = mem_zalloc(&e, sizeof *r, _Alignof(struct sinter_plugins));
    if (!r) return FAIL_MEMORY(&e, "a registry of plugins");
    r->e = e;
    r->e.plugins = NULL;
    r->e.error = &r->e.error_own;
    arena_init(&r->a, &r->e);
    *out = r;
    return SINTER_OK;
}

void sinter_plugins_destroy(sinter_plugins *r)
{
    if (!r) return;
    for (uint32_t i = 0; i < r->library.count; i++) os_library_close(r->library.at[i]);
    arena_deinit(&r->a);
    env e = r->e;
    mem_free(&e, r, sizeof *r, _Alignof(struct sinter_plugins));
}

sinter_status sinter_plugins_add(sinter_plugins *r, const sinter_plugin *plugin, sinter_error *error)
{
    env e;
    env_init(&e, NULL, error);
    if (!r) return FAIL(&e, INVALID_ARG, "the registry of plugins is NULL");
    return plugin_add(&e, r, plugin);
}

void sinter_plugins_check(sinter_plugins *r, int is_on)
{
    if (r) r->is_checked = is_on != 0;
}

uint32_t sinter_plugins_count(const sinter_plugins *r)
{
    return r ? r->plugin.count : 0;
}

const sinter_plugin *sinter_plugins_at(const sinter_plugins *r, uint32_t index)
{
    return r && index < r->plugin.count ? r->plugin.at[index] : NULL;
}

static sinter_status enter(env *e, struct sinter_plugins *r, const char *path, sinter_plugin_entry_fn entry)
{
    sinter_error why = { 0 };
    const sinter_plugin_host host = {
        .struct_size = sizeof host, .plugins = r, .add = sinter_plugins_add, .error = &why
    };
    const sinter_status s = entry(&host);
    if (s == SINTER_OK) return SINTER_OK;
    return env_fail(e, s < SINTER_OK || s > SINTER_CANCELLED ? SINTER_INTERNAL : s, __FILE__, __LINE__,
                    "the plugins of '%s' cannot be added: %s", path, why.text[0] ? why.text : sinter_status_text(s));
}

/* A CUDA source file is a plugin by itself. */
static sinter_status load_source(env *e, struct sinter_plugins *r, const char *path)
{
    enum { SOURCE_MAX = 1 << 24 };
    os_file file = { 0 };
    TRY(os_file_read(e, path, SOURCE_MAX, &file));
    const sinter_status s = plugin_cu_add(e, r, path, (const char *)file.data, file.size);
    os_file_close(e, &file);
    return s;
}

sinter_status sinter_plugins_load(sinter_plugins *r, const char *path, sinter_error *error)
{
    env e;
    env_init(&e, NULL, error);
    if (!r || !path) return FAIL(&e, INVALID_ARG, "the registry or the path is NULL");
    const size_t length = strlen(path);
    if (length > 3 && strcmp(path + length - 3, ".cu") == 0) return load_source(&e, r, path);
    /* A name without a slash would be searched in the system's folders. */
    char local[4096], why[256];
    const bool is_bare = !strchr(path, '/');
    if (strlen(path) + 3 > sizeof local) return FAIL(&e, INVALID_ARG, "the path has %zu bytes", strlen(path));
    memcpy(local, "./", 3);
    strcpy(local + (is_bare ? 2 : 0), path);
    void *library = os_library_open(local, why, sizeof why);
    if (!library) return FAIL(&e, IO, "the library '%s' cannot be opened: %s", path, why);
    sinter_plugin_entry_fn entry = NULL;
    void *symbol = os_library_symbol(library, SINTER_PLUGIN_ENTRY);
    memcpy(&entry, &symbol, sizeof entry);
    void **slot = entry ? VEC_PUSH(&r->a, &r->library) : NULL;
    if (!slot) {
        os_library_close(library);
        return entry ? FAIL_MEMORY(&e, "a library")
                     : FAIL(&e, IO, "'%s' exports no function " SINTER_PLUGIN_ENTRY, path);
    }
    *slot = library;
    return enter(&e, r, path, entry);
}
