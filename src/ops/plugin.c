/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - the registry of plugins: adding, finding, and what a call of a plugin says in attributes. */
#include "ops/plugin.h"

#include <string.h>

enum { NAME_MAX = 128 };

/* ---- adding ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Letters, digits, '_' and '.'; for a field no '.' and no digit at the front. */
static bool is_name(const char *name, bool is_field)
{
    const size_t length = strlen(name);
    for (size_t i = 0; i < length; i++)
        if (!is_letter(name[i]) && !(is_digit(name[i]) && (i || !is_field)) && (name[i] != '.' || is_field))
            return false;
    return length <= NAME_MAX;
}

static sinter_status check_field(env *e, const sinter_plugin *p, uint32_t i)
{
    const sinter_plugin_field *f = &p->field[i];
    if (!f->name || !f->name[0] || !is_name(f->name, true))
        return FAIL(e, INVALID_ARG, "field %u of plugin '%s' has the name '%.64s': wanted are letters, digits and '_'",
                    i, p->name, f->name ? f->name : "");
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(p->field[k].name, f->name) == 0)
            return FAIL(e, INVALID_ARG, "plugin '%s' declares the field '%s' twice", p->name, f->name);
    if (!plugin_type_name(f->type))
        return FAIL(e, INVALID_ARG, "field '%s' of plugin '%s' has type %d, which is no sinter_plugin_type", f->name,
                    p->name, (int)f->type);
    if (f->count > PLUGIN_FIELDS_MAX)
        return FAIL(e, INVALID_ARG, "the default of field '%s' of plugin '%s' has %llu elements, the most is %d",
                    f->name, p->name, (unsigned long long)f->count, PLUGIN_FIELDS_MAX);
    if (f->type == SINTER_PLUGIN_TEXT && f->data && memchr(f->data, 0, (size_t)f->count))
        return FAIL(e, INVALID_ARG, "the default of field '%s' of plugin '%s' is a text with a NUL in it", f->name,
                    p->name);
    return SINTER_OK;
}

static sinter_status check(env *e, const sinter_plugin *p)
{
    if (!p->name || !p->name[0] || !is_name(p->name, false))
        return FAIL(e, INVALID_ARG, "a plugin has the name '%.64s': wanted are at most %d letters, digits, '_' and '.'",
                    p->name ? p->name : "", NAME_MAX);
    if (!is_name(p->version, false) || !p->version[0] || !is_name(p->space, false))
        return FAIL(e, INVALID_ARG,
                    "plugin '%s' has version '%.64s' and namespace '%.64s': wanted are letters, digits, '_' and '.'",
                    p->name, p->version, p->space);
    if (!p->shapes) return FAIL(e, INVALID_ARG, "plugin '%s' has no function `shapes`", p->name);
    if (!p->create != !p->destroy)
        return FAIL(e, INVALID_ARG, "plugin '%s' has only one of the functions `create` and `destroy`", p->name);
    if (!p->cuda_source != !p->cuda_kernel || !p->cuda_source != !p->cuda_launch)
        return FAIL(e, INVALID_ARG, "plugin '%s' has only some of cuda_source, cuda_kernel and cuda_launch", p->name);
    if (p->cuda_kernel && (!is_name(p->cuda_kernel, true) || !p->cuda_kernel[0]))
        return FAIL(e, INVALID_ARG, "plugin '%s' has the kernel '%.64s', which is no name", p->name, p->cuda_kernel);
    if (p->in_min > p->in_max || p->in_max > PLUGIN_OPERANDS_MAX)
        return FAIL(e, INVALID_ARG, "plugin '%s' takes %u to %u inputs; at most %d are supported", p->name, p->in_min,
                    p->in_max, PLUGIN_OPERANDS_MAX);
    if (!p->out_min || p->out_min > p->out_max || p->out_max > PLUGIN_OPERANDS_MAX)
        return FAIL(e, INVALID_ARG, "plugin '%s' gives %u to %u outputs; 1 to %d are supported", p->name, p->out_min,
                    p->out_max, PLUGIN_OPERANDS_MAX);
    if (p->count_field > PLUGIN_FIELD_COUNT_MAX || (p->count_field && !p->field))
        return FAIL(e, INVALID_ARG, "plugin '%s' declares %u fields%s; at most %d are supported", p->name,
                    p->count_field, p->field ? "" : " at NULL", PLUGIN_FIELD_COUNT_MAX);
    for (uint32_t i = 0; i < p->count_field; i++) TRY(check_field(e, p, i));
    return SINTER_OK;
}

static const void *copy_value(arena *a, const sinter_plugin_field *f)
{
    static const char empty[8] = { 0 };
    if (!f->data) return NULL;
    const bool is_text = f->type == SINTER_PLUGIN_TEXT || f->type == SINTER_PLUGIN_BYTES;
    const bool is_one = f->type == SINTER_PLUGIN_INT || f->type == SINTER_PLUGIN_REAL;
    const size_t size = is_one ? 8 : (size_t)f->count * (is_text ? 1 : 8);
    char *own = size ? arena_alloc(a, size + 1, 8) : NULL;
    if (own) memcpy(own, f->data, size);
    return size ? own : empty;
}

static bool is_same(const sinter_plugin *p, const char *name, const char *version, const char *space)
{
    return strcmp(p->name, name) == 0 && (!version || strcmp(p->version, version) == 0) &&
           (!space || strcmp(p->space, space) == 0);
}

static sinter_status add(struct sinter_plugins *r, const sinter_plugin *from, env *e)
{
    arena *a = &r->a;
    sinter_plugin *p = ARENA_NEW(a, sinter_plugin, 1);
    if (!p) return FAIL_MEMORY(e, "a plugin");
    const size_t size = from->struct_size < sizeof *p ? from->struct_size : sizeof *p;
    memcpy(p, from, size);
    p->struct_size = sizeof *p;
    if (!p->version) p->version = "1";
    if (!p->space) p->space = "";
    TRY(check(e, p));
    for (uint32_t i = 0; i < r->plugin.count; i++)
        if (is_same(r->plugin.at[i], p->name, p->version, p->space))
            return FAIL(e, INVALID_ARG, "there is a plugin '%s' version '%s' in namespace '%s' already", p->name,
                        p->version, p->space);
    sinter_plugin_field *field = ARENA_NEW(a, sinter_plugin_field, p->count_field);
    for (uint32_t i = 0; field && i < p->count_field; i++) {
        field[i] = p->field[i];
        field[i].name = arena_text(a, p->field[i].name, strlen(p->field[i].name));
        field[i].data = copy_value(a, &p->field[i]);
        if (p->field[i].type <= SINTER_PLUGIN_REAL) field[i].count = 1;
    }
    p->field = field;
    if (p->cuda_source) {
        p->cuda_source = arena_text(a, p->cuda_source, strlen(p->cuda_source));
        p->cuda_kernel = arena_text(a, p->cuda_kernel, strlen(p->cuda_kernel));
    }
    p->name = arena_text(a, p->name, strlen(p->name));
    p->version = arena_text(a, p->version, strlen(p->version));
    p->space = arena_text(a, p->space, strlen(p->space));
    if (a->failed) return FAIL_MEMORY(e, "a plugin");
    sinter_plugin **slot = VEC_PUSH(a, &r->plugin);
    if (!slot) return FAIL_MEMORY(e, "a plugin");
    *slot = p;
    return SINTER_OK;
}

sinter_status plugin_add(env *e, struct sinter_plugins *r, const sinter_plugin *plugin)
{
    if (!plugin || plugin->struct_size < offsetof(sinter_plugin, shapes) + sizeof plugin->shapes)
        return FAIL(e, INVALID_ARG, "a plugin that is NULL or has a wrong struct_size");
    r->a.failed = false;
    return NOTE(e, add(r, plugin, e), "adding a plugin");
}

/* ---- finding ---- */

static sinter_status missing(env *e, const char *name, const char *version, const char *space)
{
    const struct sinter_plugins *r = e->plugins;
    for (uint32_t i = 0; r && i < r->plugin.count; i++) {
        const sinter_plugin *p = r->plugin.at[i];
        if (strcmp(p->name, name) == 0)
            return FAIL(e, UNSUPPORTED,
                        "plugin '%.128s' version '%.64s' in namespace '%.64s' is not registered; version '%s' in "
                        "namespace '%s' is",
                        name, version, space, p->version, p->space);
    }
    return FAIL(e, UNSUPPORTED, "plugin '%.128s' version '%.64s' in namespace '%.64s' is not registered%s", name,
                version, space, r ? "" : ": no plugins were given");
}

sinter_status plugin_resolve(env *e, arena *a, const attrs_plugin *attrs, plugin_use *out)
{
    const struct sinter_plugins *r = e->plugins;
    for (uint32_t i = 0; r && i < r->plugin.count; i++) {
        const sinter_plugin *p = r->plugin.at[i];
        if (!is_same(p, attrs->name, attrs->version, attrs->space)) continue;
        out->plugin = p;
        return plugin_fields_read(e, a, p, attrs->fields, &out->field);
    }
    return missing(e, attrs->name, attrs->version, attrs->space);
}

bool plugin_is_known(const env *e, const char *name)
{
    for (uint32_t i = 0; e->plugins && i < e->plugins->plugin.count; i++)
        if (strcmp(e->plugins->plugin.at[i]->name, name) == 0) return true;
    return false;
}

/* The one plugin that fits. Where several namespaces fit, that of the node's domain is meant. */
static sinter_status choose(env *e, const plugin_request *r, const sinter_plugin **out)
{
    const sinter_plugin *found[2] = { NULL, NULL };
    uint32_t count[2] = { 0, 0 };
    for (uint32_t i = 0; e->plugins && i < e->plugins->plugin.count; i++) {
        const sinter_plugin *p = e->plugins->plugin.at[i];
        if (!is_same(p, r->name, r->version, r->space)) continue;
        const uint32_t k = !r->space && strcmp(p->space, r->domain ? r->domain : "") == 0;
        found[k] = p;
        count[k]++;
    }
    const uint32_t k = count[1] ? 1 : 0;
    if (!count[k]) return missing(e, r->name, r->version ? r->version : "(any)", r->space ? r->space : "(any)");
    *out = found[k];
    if (count[k] == 1) return SINTER_OK;
    return FAIL(e, UNSUPPORTED,
                "%u plugins are named '%s': the attributes plugin_version and plugin_namespace have to say which",
                count[k], r->name);
}

/* Appends the node's name to the fields that are given, where the plugin declares a field for it. */
static sinter_status with_node(env *e, arena *a, const sinter_plugin *p, const plugin_request *r,
                               const sinter_plugin_field **out, uint32_t *count)
{
    bool is_wanted = false;
    *out = r->field;
    *count = r->count_field;
    for (uint32_t i = 0; i < p->count_field; i++)
        is_wanted =
            is_wanted || (p->field[i].type == SINTER_PLUGIN_TEXT && strcmp(p->field[i].name, SINTER_PLUGIN_NODE) == 0);
    for (uint32_t i = 0; i < r->count_field; i++)
        is_wanted = is_wanted && strcmp(r->field[i].name, SINTER_PLUGIN_NODE) != 0;
    if (!is_wanted || !r->node) return SINTER_OK;
    sinter_plugin_field *field = ARENA_NEW(a, sinter_plugin_field, r->count_field + 1);
    if (!field) return FAIL(e, NO_MEMORY, "no memory for the fields of plugin '%s'", p->name);
    if (r->count_field) memcpy(field, r->field, r->count_field * sizeof *field);
    field[r->count_field] = (sinter_plugin_field){
        .name = SINTER_PLUGIN_NODE, .type = SINTER_PLUGIN_TEXT, .count = strlen(r->node), .data = r->node
    };
    *out = field;
    *count = r->count_field + 1;
    return SINTER_OK;
}

sinter_status plugin_attrs(env *e, arena *a, const plugin_request *r, attrs_plugin *out)
{
    const sinter_plugin *p = NULL;
    const sinter_plugin_field *field = NULL;
    uint32_t count = 0;
    *out = (attrs_plugin){ .name = "", .version = "", .space = "", .fields = "" };
    TRY(choose(e, r, &p));
    *out = (attrs_plugin){ .name = p->name, .version = p->version, .space = p->space, .fields = "" };
    TRY(with_node(e, a, p, r, &field, &count));
    return NOTE(e, plugin_fields_write(e, a, p, field, count, &out->fields), "reading the fields of plugin '%s'",
                p->name);
}
