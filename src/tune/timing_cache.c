/* SPDX-License-Identifier: Apache-2.0 */
/* timing_cache.c - measurements as text, one a line: "key | nanoseconds".
 *
 * The key holds everything that a time depends on (choose.c makes it); it is compared whole, so a changed kernel or
 * machine is a miss, never an error. Lines that cannot be read are dropped: a damaged cache costs time, not
 * correctness. */
#include "base/hash.h"
#include "base/os.h"
#include "tune/tune.h"

#include <stdlib.h>
#include <string.h>

typedef struct entry {
    const char *key;
    double ns;
    uint32_t next; /* of the same bucket; 0: none */
} entry;

static const os_file_kind timings = { "a timing cache", TIMING_CACHE_MAGIC, sizeof TIMING_CACHE_MAGIC - 1 };

enum { BUCKETS = 4096 };
struct timing_cache {
    env *e;
    arena a;
    VEC(entry) list;
    uint32_t bucket[BUCKETS];
    bool is_new; /* something was added since the last write */
};

sinter_status timing_cache_create(env *e, timing_cache **out)
{
    timing_cache *c = mem_zalloc(e, sizeof *c, _Alignof(timing_cache));
    *out = c;
    if (!c) return FAIL_MEMORY(e, "a timing cache");
    c->e = e;
    arena_init(&c->a, e);
    if (VEC_PUSH(&c->a, &c->list)) return SINTER_OK;
    timing_cache_destroy(c);
    *out = NULL;
    return FAIL_MEMORY(e, "a timing cache");
}

void timing_cache_destroy(timing_cache *c)
{
    if (!c) return;
    env *e = c->e;
    arena_deinit(&c->a);
    mem_free(e, c, sizeof *c, _Alignof(timing_cache));
}

static uint32_t find(const timing_cache *c, const char *key, size_t length, uint32_t *bucket)
{
    *bucket = (uint32_t)(hash64(key, length, 0) % BUCKETS);
    for (uint32_t i = c->bucket[*bucket]; i; i = c->list.at[i].next)
        if (strlen(c->list.at[i].key) == length && memcmp(c->list.at[i].key, key, length) == 0) return i;
    return 0;
}

static bool put(timing_cache *c, const char *key, size_t length, double ns, bool replace)
{
    uint32_t bucket;
    const uint32_t found = find(c, key, length, &bucket);
    if (found) {
        if (replace) c->list.at[found].ns = ns;
        return true;
    }
    const char *copy = arena_text(&c->a, key, length);
    entry *slot = copy ? VEC_PUSH(&c->a, &c->list) : NULL;
    if (!slot) return false;
    *slot = (entry){ .key = copy, .ns = ns, .next = c->bucket[bucket] };
    c->bucket[bucket] = c->list.count - 1;
    return true;
}

bool timing_cache_find(const timing_cache *c, const char *key, double *ns)
{
    uint32_t bucket;
    const uint32_t i = find(c, key, strlen(key), &bucket);
    if (i) *ns = c->list.at[i].ns;
    return i != 0;
}

sinter_status timing_cache_add(timing_cache *c, const char *key, double ns)
{
    c->is_new = true;
    return put(c, key, strlen(key), ns, true) ? SINTER_OK : FAIL_MEMORY(c->e, "the timing cache");
}

static bool merge(timing_cache *c, const os_file *file)
{
    const char *at = (const char *)file->data, *end = at + file->size;
    bool ok = true;
    if (file->size < timings.size || memcmp(at, timings.magic, timings.size) != 0) return true;
    at += timings.size;
    while (ok && at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) break; /* a torn last line */
        const char *bar = stop;
        while (bar > at && bar[-1] != '|') bar--;
        double ns;
        scan number = scan_of(bar, (size_t)(stop - bar));
        scan_space(&number);
        if (bar - at > 2 && bar[-2] == ' ' && scan_f64(&number, &ns) && ns > 0 && ns < 1e15)
            ok = put(c, at, (size_t)(bar - at) - 2, ns, false);
        at = stop + 1;
    }
    return ok;
}

static sinter_status read_merge(timing_cache *c, const char *path)
{
    os_file file = { 0 };
    TRY(os_file_read(c->e, path, (size_t)1 << 28, &file));
    const bool ok = merge(c, &file);
    os_file_close(c->e, &file);
    return ok ? SINTER_OK : FAIL_MEMORY(c->e, "the timing cache");
}

sinter_status timing_cache_read(timing_cache *c, const char *path)
{
    sinter_error quiet = { 0 }, *error = c->e->error;
    c->e->error = &quiet; /* a missing file is no failure */
    const sinter_status s = read_merge(c, path);
    c->e->error = error;
    return s == SINTER_NO_MEMORY ? FAIL_MEMORY(c->e, "the timing cache") : SINTER_OK;
}

sinter_status timing_cache_check(env *e, const char *path)
{
    return NOTE(e, os_file_write_check(e, path, &timings), "looking at the timing cache");
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->key, ((const entry *)b)->key);
}

static sinter_status write_sorted(timing_cache *c, const char *path)
{
    entry *sorted = ARENA_NEW(&c->a, entry, c->list.count);
    if (!sorted) return FAIL_MEMORY(c->e, "the timing cache");
    memcpy(sorted, c->list.at, c->list.count * sizeof *sorted);
    qsort(sorted + 1, c->list.count - 1, sizeof *sorted, by_key);
    text t;
    text_init(&t, c->e);
    text_append(&t, timings.magic, timings.size);
    for (uint32_t i = 1; i < c->list.count; i++) {
        text_printf(&t, "%s | ", sorted[i].key);
        text_f64(&t, sorted[i].ns);
        text_append(&t, "\n", 1);
    }
    const sinter_status s =
        t.failed ? FAIL_MEMORY(c->e, "the timing cache") : os_file_write(c->e, path, &timings, t.at, t.length);
    text_deinit(&t);
    return s;
}

/* What others measured meanwhile stays, and ours wins. The lock is held from reading to writing, so no line is lost. A
 * file that cannot be read is not written over. */
sinter_status timing_cache_write(timing_cache *c, const char *path)
{
    os_lock lock = { -1 };
    if (!c->is_new) return SINTER_OK;
    sinter_status s = os_file_lock(c->e, path, &lock);
    if (s == SINTER_OK && lock.fd >= 0) s = read_merge(c, path);
    if (s == SINTER_OK) s = write_sorted(c, path);
    os_file_unlock(&lock);
    c->is_new = c->is_new && s != SINTER_OK;
    return NOTE(c->e, s, "writing the timing cache '%s'", path);
}
