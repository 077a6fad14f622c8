/* SPDX-License-Identifier: Apache-2.0 */
/* write.c - collects sections and lays them out: the same records in the same order make the same bytes. */
#include "base/hash.h"
#include "engine/engine.h"

#include <string.h>

enum { BUCKETS = 1 << 12 };

sinter_status engine_writer_init(env *e, engine_writer *w)
{
    memset(w, 0, sizeof *w);
    w->e = e;
    arena_init(&w->a, e);
    engine_writer_add(w, SECTION_STRINGS, "", 1);
    return w->failed ? FAIL_MEMORY(e, "an engine") : SINTER_OK;
}

void engine_writer_deinit(engine_writer *w)
{
    for (uint32_t i = 0; i < SECTION_KIND_COUNT; i++)
        if (w->section[i].at) mem_free(w->e, w->section[i].at, w->section[i].capacity, ENGINE_ALIGN);
    arena_deinit(&w->a);
    memset(w, 0, sizeof *w);
}

/* Room for `size` more bytes; NULL on failure. */
static uint8_t *extend(engine_writer *w, section_kind kind, size_t size)
{
    const size_t old = w->section[kind].size, wanted = size_add(old, size);
    if (wanted > w->section[kind].capacity) {
        size_t capacity = size_mul(w->section[kind].capacity, 2);
        if (capacity < wanted) capacity = size_align(wanted, 4096);
        uint8_t *at = mem_resize(w->e, w->section[kind].at, w->section[kind].capacity, capacity, ENGINE_ALIGN);
        if (!at) {
            w->failed = true;
            return NULL;
        }
        w->section[kind].at = at;
        w->section[kind].capacity = capacity;
    }
    w->section[kind].size = wanted;
    return w->section[kind].at + old;
}

uint32_t engine_writer_add(engine_writer *w, section_kind kind, const void *record, size_t size)
{
    const size_t index = w->section[kind].size / size;
    uint8_t *at = extend(w, kind, size);
    if (!at || index >= UINT32_MAX) return w->failed = true, UINT32_MAX;
    memcpy(at, record, size);
    return (uint32_t)index;
}

void engine_writer_append(engine_writer *w, section_kind kind, const void *bytes, size_t size)
{
    uint8_t *at = size ? extend(w, kind, size) : NULL;
    if (at) memcpy(at, bytes, size);
}

/* An interned thing: chains by hash in the arena. */
typedef struct interned {
    struct interned *next;
    uint64_t hash, at, size;
    section_kind kind;
} interned;

static interned **bucket_of(engine_writer *w, uint64_t hash)
{
    if (!w->interned) w->interned = arena_alloc(&w->a, BUCKETS * sizeof(interned *), 8);
    return w->interned ? (interned **)w->interned + hash % BUCKETS : NULL;
}

static uint64_t intern(engine_writer *w, section_kind kind, const void *bytes, size_t size, size_t align)
{
    const uint64_t hash = hash64(bytes, size, kind);
    interned **bucket = bucket_of(w, hash);
    if (!bucket) return w->failed = true, 0;
    for (const interned *i = *bucket; i; i = i->next)
        if (i->hash == hash && i->kind == kind && i->size == size &&
            memcmp(w->section[kind].at + i->at, bytes, size) == 0)
            return i->at;
    const size_t padding = size_align(w->section[kind].size, align) - w->section[kind].size;
    uint8_t *at = extend(w, kind, size_add(size, padding));
    interned *entry = ARENA_NEW(&w->a, interned, 1);
    if (!at || !entry) return w->failed = true, 0;
    memset(at, 0, padding);
    memcpy(at + padding, bytes, size);
    *entry =
        (interned){ .next = *bucket, .hash = hash, .at = w->section[kind].size - size, .size = size, .kind = kind };
    *bucket = entry;
    return entry->at;
}

uint32_t engine_writer_string(engine_writer *w, const char *text_at)
{
    if (!text_at || !*text_at) return 0;
    const uint64_t at = intern(w, SECTION_STRINGS, text_at, strlen(text_at) + 1, 1);
    if (at < UINT32_MAX) return (uint32_t)at;
    w->failed = true;
    return 0;
}

uint64_t engine_writer_weight(engine_writer *w, const void *bytes, size_t size)
{
    return size ? intern(w, SECTION_WEIGHTS, bytes, size, ENGINE_ALIGN) : 0;
}

sinter_status engine_writer_finish(engine_writer *w, const uint8_t digest[24], uint8_t **out, size_t *size)
{
    *out = NULL;
    *size = 0;
    if (w->failed || w->a.failed) return FAIL_MEMORY(w->e, "an engine");
    engine_header header = { .header_size = sizeof header,
                             .major = ENGINE_MAJOR,
                             .minor = ENGINE_MINOR,
                             .byte_order = 0x01020304,
                             .section_count = SECTION_KIND_COUNT - 1 };
    memcpy(header.magic, ENGINE_MAGIC, sizeof header.magic);
    memcpy(header.model_digest, digest, sizeof header.model_digest);
    engine_section table[SECTION_KIND_COUNT - 1] = { 0 };
    size_t at = size_align(sizeof header + sizeof table, ENGINE_ALIGN);
    for (uint32_t i = 1; i < SECTION_KIND_COUNT; i++) {
        const size_t bytes = w->section[i].size;
        table[i - 1] = (engine_section){ .kind = i,
                                         .flags = i == SECTION_CODE || i == SECTION_INPUTS ? 0 : SECTION_REQUIRED,
                                         .at = at,
                                         .size = bytes,
                                         .sum = hash64(w->section[i].at, bytes, 0) };
        at = size_align(size_add(at, bytes), ENGINE_ALIGN);
    }
    header.file_size = at;
    uint64_t sum = hash64(&header, sizeof header, 0);
    header.header_sum = hash64(table, sizeof table, sum);
    uint8_t *bytes = mem_zalloc(w->e, at, ENGINE_ALIGN);
    if (!bytes) return FAIL_MEMORY(w->e, "an engine");
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + sizeof header, table, sizeof table);
    for (uint32_t i = 1; i < SECTION_KIND_COUNT; i++)
        if (w->section[i].size) memcpy(bytes + table[i - 1].at, w->section[i].at, w->section[i].size);
    *out = bytes;
    *size = at;
    return SINTER_OK;
}
