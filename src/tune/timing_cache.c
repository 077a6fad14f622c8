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

enum { BUCKETS = 4096 };
struct timing_cache {
    env *e;
    arena a;
    VEC(entry) list;
    uint32_t bucket[BUCKETS];
};

static const char magic[] = "sinter timing cache 1\n";

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
    return put(c, key, strlen(key), ns, true) ? SINTER_OK : FAIL_MEMORY(c->e, "the timing cache");
}

sinter_status timing_cache_read(timing_cache *c, const char *path)
{
    os_file file = { 0 };
    sinter_error quiet = { 0 }, *error = c->e->error;
    c->e->error = &quiet; /* a missing file is no failure */
    const sinter_status s = os_file_read(c->e, path, (size_t)1 << 28, &file);
    c->e->error = error;
    if (s == SINTER_NO_MEMORY) return FAIL_MEMORY(c->e, "the timing cache");
    if (s != SINTER_OK) return SINTER_OK;
    const char *at = (const char *)file.data, *end = at + file.size;
    bool ok = true;
    if (file.size >= sizeof magic - 1 && memcmp(at, magic, sizeof magic - 1) == 0) {
        at += sizeof magic - 1;
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
    }
    os_file_close(c->e, &file);
    return ok ? SINTER_OK : FAIL_MEMORY(c->e, "the timing cache");
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->key, ((const entry *)b)->key);
}

sinter_status timing_cache_write(timing_cache *c, const char *path)
{
    TRY(timing_cache_read(c, path)); /* what others measured meanwhile stays; ours wins */
    entry *sorted = ARENA_NEW(&c->a, entry, c->list.count);
    if (!sorted) return FAIL_MEMORY(c->e, "the timing cache");
    memcpy(sorted, c->list.at, c->list.count * sizeof *sorted);
    qsort(sorted + 1, c->list.count - 1, sizeof *sorted, by_key);
    text t;
    text_init(&t, c->e);
    text_append(&t, magic, sizeof magic - 1);
    for (uint32_t i = 1; i < c->list.count; i++) {
        text_printf(&t, "%s | ", sorted[i].key);
        text_f64(&t, sorted[i].ns);
        text_append(&t, "\n", 1);
    }
    const sinter_status s =
        t.failed ? FAIL_MEMORY(c->e, "the timing cache") : os_file_write_atomic(c->e, path, t.at, t.length);
    text_deinit(&t);
    return NOTE(c->e, s, "writing the timing cache '%s'", path);
}
