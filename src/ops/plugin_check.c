/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_check.c - the call of a plugin's `run`, and its checks: copies of all operands between guards, which show what
 * a plugin writes that it should not. */
#include "ops/plugin.h"

#include <string.h>

enum { GUARD = 256, GUARD_BYTE = 0xA7 };

typedef struct checked {
    uint8_t *at; /* the data; guards lie on both sides */
    size_t size;
    const void *own; /* the operand itself */
} checked;

static bool checked_make(arena *a, checked *c, const void *own, size_t size, bool is_copied)
{
    const size_t room = size_align(size, 64);
    uint8_t *block = arena_alloc(a, size_add(room, 2 * GUARD), 64);
    if (!block) return false;
    memset(block, GUARD_BYTE, room + 2 * GUARD);
    *c = (checked){ .at = block + GUARD, .size = size, .own = own };
    if (is_copied && size) memcpy(c->at, own, size);
    return true;
}

/* 0, or how far from the operand the nearest byte is that was written: before it (negative) or behind it. */
static int64_t checked_damage(const checked *c)
{
    for (int64_t i = 1; i <= GUARD; i++)
        if (c->at[-i] != GUARD_BYTE) return -i;
    const size_t behind = size_align(c->size, 64) - c->size + GUARD;
    for (size_t i = 0; i < behind; i++)
        if (c->at[c->size + i] != GUARD_BYTE) return (int64_t)i + 1;
    return 0;
}

static sinter_status damaged(env *e, const sinter_plugin *p, const checked *c, const char *what, uint32_t index)
{
    const int64_t at = checked_damage(c);
    if (!at) return SINTER_OK;
    return FAIL(e, INTERNAL, "plugin '%s' version '%s' wrote %lld bytes %s %s %u, which has %zu bytes", p->name,
                p->version, (long long)(at < 0 ? -at : at), at < 0 ? "before" : "behind the end of", what, index,
                c->size);
}

static size_t bytes_of(const sinter_plugin_tensor *t)
{
    sinter_tensor x = { .dtype = t->dtype, .rank = t->rank };
    for (uint32_t i = 0; i < t->rank; i++) x.dim[i] = t->dim[i];
    return t->dtype == SINTER_DTYPE_NONE ? 0 : sinter_tensor_size(&x);
}

/* The allocator that a checked run is given: it counts. */
typedef struct counting {
    sinter_allocator inner;
    uint32_t calls;
} counting;

static void *count_resize(void *user, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    counting *c = user;
    __atomic_fetch_add(&c->calls, 1, __ATOMIC_RELAXED);
    return c->inner.resize(c->inner.user, ptr, old_size, new_size, align);
}

static sinter_status call(env *e, const sinter_plugin *plugin, sinter_plugin_run *r)
{
    char error[PLUGIN_ERROR_SIZE] = "";
    r->error = error;
    r->error_size = sizeof error;
    const sinter_status s = plugin->run(r);
    return s ? plugin_failed(e, plugin, s, "failed", error) : SINTER_OK;
}

static sinter_status verdict(env *e, const sinter_plugin *p, const sinter_plugin_run *r, const checked *at,
                             const counting *memory)
{
    const uint32_t count = r->count_in + r->count_out;
    for (uint32_t i = 0; i < count; i++) {
        const bool is_in = i < r->count_in;
        if (!at[i].at) continue;
        TRY(damaged(e, p, &at[i], is_in ? "input" : "output", is_in ? i : i - r->count_in));
        if (is_in && at[i].size && memcmp(at[i].at, at[i].own, at[i].size) != 0)
            return FAIL(e, INTERNAL, "plugin '%s' version '%s' wrote to its input %u", p->name, p->version, i);
    }
    if (at[count].at) TRY(damaged(e, p, &at[count], "workspace", 0));
    if (!memory->calls) return SINTER_OK;
    return FAIL(e, INTERNAL, "plugin '%s' version '%s' allocated during a run, %u times", p->name, p->version,
                memory->calls);
}

static sinter_status run_checked(env *e, arena *scratch, const sinter_plugin *plugin, sinter_plugin_run *r)
{
    const uint32_t count = r->count_in + r->count_out;
    checked *at = ARENA_NEW(scratch, checked, count + 1);
    sinter_plugin_tensor *copy = ARENA_NEW(scratch, sinter_plugin_tensor, count);
    if (!at || !copy) return FAIL_MEMORY(e, "checking a plugin");
    for (uint32_t i = 0; i < count; i++) {
        const bool is_in = i < r->count_in;
        copy[i] = is_in ? r->in[i] : r->out[i - r->count_in];
        if (copy[i].dtype == SINTER_DTYPE_NONE) continue;
        if (!checked_make(scratch, &at[i], copy[i].data, bytes_of(&copy[i]), is_in))
            return FAIL_MEMORY(e, "checking a plugin");
        copy[i].data = at[i].at;
    }
    if (r->workspace_size && !checked_make(scratch, &at[count], r->workspace, r->workspace_size, false))
        return FAIL_MEMORY(e, "checking a plugin");
    counting memory = { .inner = e->alloc };
    const sinter_allocator allocator = { &memory, count_resize };
    sinter_plugin_run inner = *r;
    inner.in = copy;
    inner.out = copy + r->count_in;
    inner.workspace = at[count].at;
    inner.allocator = &allocator;
    TRY(call(e, plugin, &inner));
    TRY(verdict(e, plugin, r, at, &memory));
    for (uint32_t i = r->count_in; i < count; i++)
        if (at[i].size) memcpy(r->out[i - r->count_in].data, at[i].at, at[i].size);
    return SINTER_OK;
}

sinter_status plugin_run(env *e, arena *scratch, const sinter_plugin *plugin, sinter_plugin_run *r)
{
    r->allocator = &e->alloc;
    if (e->plugins && e->plugins->is_checked) return run_checked(e, scratch, plugin, r);
    return call(e, plugin, r);
}
