/* SPDX-License-Identifier: Apache-2.0 */
/* write.c - collects sections and lays them out: the same records in the same order make the same bytes. */
#include "base/hash.h"
#include "engine/engine.h"

#include <string.h>

enum { BUCKETS_FIRST = 1 << 10 };

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

/* An interned thing: chains by hash in the arena. Weights lie where the caller has them. */
typedef struct interned {
    struct interned *next;
    uint64_t hash, at, size;
    section_kind kind;
    const void *bytes; /* of a weight */
} interned;

/* The weights in the order in which they were added. */
struct engine_weight {
    struct engine_weight *next;
    const interned *at;
};

static bool buckets_grow(engine_writer *w)
{
    const uint32_t count = w->bucket_count ? w->bucket_count * 2 : BUCKETS_FIRST;
    interned **bucket = ARENA_NEW(&w->a, interned *, count);
    if (!bucket) return false;
    for (uint32_t i = 0; i < w->bucket_count; i++)
        for (interned *x = w->bucket[i], *next; x; x = next) {
            next = x->next;
            x->next = bucket[x->hash % count];
            bucket[x->hash % count] = x;
        }
    w->bucket = bucket;
    w->bucket_count = count;
    return true;
}

/* What is known of these bytes, or a new entry with size 0; NULL on failure. */
static interned *entry_of(engine_writer *w, section_kind kind, const void *bytes, size_t size)
{
    const uint64_t hash = hash64(bytes, size, kind);
    if (w->interned_count >= w->bucket_count && !buckets_grow(w)) return NULL;
    interned **bucket = &w->bucket[hash % w->bucket_count];
    for (interned *i = *bucket; i; i = i->next) {
        if (i->hash != hash || i->kind != kind || i->size != size) continue;
        const void *known = kind == SECTION_WEIGHTS ? i->bytes : w->section[kind].at + i->at;
        if (known == bytes || memcmp(known, bytes, size) == 0) return i;
    }
    interned *entry = ARENA_NEW(&w->a, interned, 1);
    if (!entry) return NULL;
    *entry = (interned){ .next = *bucket, .hash = hash, .kind = kind, .bytes = bytes };
    w->interned_count++;
    return *bucket = entry;
}

uint32_t engine_writer_string(engine_writer *w, const char *text_at)
{
    if (!text_at || !*text_at) return 0;
    const size_t size = strlen(text_at) + 1;
    interned *i = entry_of(w, SECTION_STRINGS, text_at, size);
    uint8_t *at = i && !i->size ? extend(w, SECTION_STRINGS, size) : NULL;
    if (at) {
        memcpy(at, text_at, size);
        i->at = w->section[SECTION_STRINGS].size - size;
        i->size = size;
    }
    if (i && i->size && i->at < UINT32_MAX) return (uint32_t)i->at;
    w->failed = true;
    return 0;
}

uint64_t engine_writer_weight(engine_writer *w, const void *bytes, size_t size)
{
    if (!size) return 0;
    interned *i = entry_of(w, SECTION_WEIGHTS, bytes, size);
    if (i && !i->size) {
        struct engine_weight *entry = ARENA_NEW(&w->a, struct engine_weight, 1);
        if (!entry) return w->failed = true, 0;
        i->at = size_align(w->section[SECTION_WEIGHTS].size, ENGINE_ALIGN);
        i->size = size;
        w->section[SECTION_WEIGHTS].size = size_add(i->at, size);
        entry->at = i;
        if (!w->next_weight) w->next_weight = &w->first_weight;
        *w->next_weight = entry;
        w->next_weight = &entry->next;
    }
    if (!i) w->failed = true;
    return i ? i->at : 0;
}

/* Where the sections will lie. Their checksums are filled in when they do. */
static size_t lay_out(const engine_writer *w, engine_section *table, size_t at)
{
    for (uint32_t i = 1; i < SECTION_KIND_COUNT; i++) {
        const size_t bytes = w->section[i].size;
        table[i - 1] =
            (engine_section){ .kind = i, .flags = i == SECTION_CODE ? 0 : SECTION_REQUIRED, .at = at, .size = bytes };
        at = size_align(size_add(at, bytes), ENGINE_ALIGN);
    }
    return at;
}

static void put_weights(engine_writer *w, uint8_t *to)
{
    size_t end = 0;
    for (const struct engine_weight *x = w->first_weight; x; x = x->next) {
        memset(to + end, 0, x->at->at - end);
        memcpy(to + x->at->at, x->at->bytes, x->at->size);
        end = x->at->at + x->at->size;
        if (w->release) w->release(w->user, x->at->bytes, x->at->size);
    }
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
    const size_t total = lay_out(w, table, size_align(sizeof header + sizeof table, ENGINE_ALIGN));
    header.file_size = total;
    /* Not cleared: memory for weights is touched when a weight goes there, and its source then goes. */
    uint8_t *bytes = mem_alloc(w->e, total, ENGINE_ALIGN);
    if (!bytes) return FAIL_MEMORY(w->e, "an engine");
    size_t end = sizeof header + sizeof table;
    for (uint32_t i = 1; i < SECTION_KIND_COUNT; i++) {
        uint8_t *at = bytes + table[i - 1].at;
        memset(bytes + end, 0, table[i - 1].at - end);
        if (i == SECTION_WEIGHTS) put_weights(w, at);
        else if (w->section[i].size) memcpy(at, w->section[i].at, w->section[i].size);
        table[i - 1].sum = hash64(at, table[i - 1].size, 0);
        end = table[i - 1].at + table[i - 1].size;
    }
    memset(bytes + end, 0, total - end);
    const uint64_t sum = hash64(&header, sizeof header, 0);
    header.header_sum = hash64(table, sizeof table, sum);
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + sizeof header, table, sizeof table);
    *out = bytes;
    *size = total;
    return SINTER_OK;
}
