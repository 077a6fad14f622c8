/* SPDX-License-Identifier: Apache-2.0 */
/* timing_cache.c - measurements as text, one a line: "key | nanoseconds spread", or "key | fails".
 *
 * The key holds everything that a time depends on (choose.c makes it); it is compared whole, so a changed kernel or
 * machine is a miss, never an error. Lines that cannot be read are dropped: a damaged cache costs time, not
 * correctness. A spread of 0 is not written, and a reader that knows no spread reads the nanoseconds.
 *
 * A kernel that kills the device makes every later one fail, too. So a failure is written only if it is the first one
 * after a success, or if a success came after it. */
#include "base/hash.h"
#include "base/os.h"
#include "tune/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    const char *key;
    tune_time time;
    uint32_t next;    /* of the same bucket; 0: none */
    bool is_doubtful; /* a failure that an earlier failure may have caused */
} entry;

static const os_file_kind timings = { "a timing cache", TIMING_CACHE_MAGIC, sizeof TIMING_CACHE_MAGIC - 1 };

enum { BUCKETS = 4096 };
struct timing_cache {
    env *e;
    arena a;
    VEC(entry) list;
    uint32_t bucket[BUCKETS];
    bool is_new;     /* something was added since the last write */
    bool has_failed; /* no success since the last failure */
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

/* The entry of the key; NULL: no memory. replace: an entry that is there gets this time. */
static entry *put(timing_cache *c, const char *key, size_t length, tune_time time, bool replace)
{
    uint32_t bucket;
    const uint32_t found = find(c, key, length, &bucket);
    if (found) {
        entry *x = &c->list.at[found];
        if (replace) x->time = time;
        if (replace) x->is_doubtful = false;
        return x;
    }
    const char *copy = arena_text(&c->a, key, length);
    entry *slot = copy ? VEC_PUSH(&c->a, &c->list) : NULL;
    if (!slot) return NULL;
    *slot = (entry){ .key = copy, .time = time, .next = c->bucket[bucket] };
    c->bucket[bucket] = c->list.count - 1;
    return slot;
}

bool timing_cache_find_time(const timing_cache *c, const char *key, tune_time *time)
{
    uint32_t bucket;
    const uint32_t i = find(c, key, strlen(key), &bucket);
    if (i) *time = c->list.at[i].time;
    return i != 0;
}

bool timing_cache_find(const timing_cache *c, const char *key, double *number)
{
    tune_time time;
    const bool is_found = timing_cache_find_time(c, key, &time);
    if (is_found) *number = time.ns;
    return is_found;
}

sinter_status timing_cache_add(timing_cache *c, const char *key, double number)
{
    return timing_cache_add_time(c, key, (tune_time){ .ns = number });
}

sinter_status timing_cache_add_time(timing_cache *c, const char *key, tune_time time)
{
    const bool is_failure = isinf(time.ns) != 0;
    c->is_new = true;
    entry *x = put(c, key, strlen(key), time, true);
    if (!x) return FAIL_MEMORY(c->e, "the timing cache");
    x->is_doubtful = is_failure && c->has_failed;
    if (!is_failure && c->has_failed)
        for (uint32_t i = 1; i < c->list.count; i++) c->list.at[i].is_doubtful = false;
    c->has_failed = is_failure;
    return SINTER_OK;
}

/* "12.5", "12.5 0.3" or "fails"; false: neither. */
static bool time_read(const char *at, size_t length, tune_time *out)
{
    scan s = scan_of(at, length);
    *out = (tune_time){ 0 };
    scan_space(&s);
    if (scan_word(&s, "fails")) {
        out->ns = INFINITY;
        return s.at == s.end;
    }
    if (!scan_f64(&s, &out->ns) || !(out->ns > 0 && out->ns < 1e15)) return false;
    scan_space(&s);
    if (!scan_f64(&s, &out->spread) || !(out->spread >= 0 && out->spread < 1e15)) out->spread = 0;
    return true;
}

static void time_write(tune_time time, text *out)
{
    if (isinf(time.ns)) {
        text_printf(out, "fails");
        return;
    }
    text_f64(out, time.ns);
    if (time.spread <= 0) return;
    text_append(out, " ", 1);
    text_f64(out, time.spread);
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
        tune_time time;
        if (bar - at > 2 && bar[-2] == ' ' && time_read(bar, (size_t)(stop - bar), &time))
            ok = put(c, at, (size_t)(bar - at) - 2, time, false) != NULL;
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
        if (sorted[i].is_doubtful) continue;
        text_printf(&t, "%s | ", sorted[i].key);
        time_write(sorted[i].time, &t);
        text_append(&t, "\n", 1);
    }
    const sinter_status s =
        t.failed ? FAIL_MEMORY(c->e, "the timing cache") : os_file_write(c->e, path, &timings, t.at, t.length);
    text_deinit(&t);
    return s;
}

/* Keeps the lines that other processes added meanwhile; for equal keys, this process's times win. The lock is held from
 * reading to writing, so no line is lost. A file that cannot be read is not overwritten. */
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
