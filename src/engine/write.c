/* SPDX-License-Identifier: Apache-2.0 */
/* write.c - collects sections and lays them out: the same records in the same order make the same bytes.
 *
 * Weights are the first section: their place is known before anything else is, so that each can be written when it is
 * made. */
#include "base/hash.h"
#include "base/os.h"
#include "engine/engine.h"

#include <string.h>

enum { BUCKETS_FIRST = 1 << 10 };

static size_t weights_at(void)
{
    return size_align(sizeof(engine_header) + (SECTION_KIND_COUNT - 1) * sizeof(engine_section), ENGINE_ALIGN);
}

sinter_status engine_writer_init(env *e, engine_writer *w, struct os_output *to)
{
    memset(w, 0, sizeof *w);
    w->e = e;
    w->to = to;
    hash64_begin(&w->sum);
    arena_init(&w->a, e);
    engine_writer_add(w, SECTION_STRINGS, "", 1);
    return w->failed ? FAIL_MEMORY(e, "an engine") : SINTER_OK;
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
    bool is_own;          /* the writer frees the bytes */
    const uint8_t *bytes; /* of a weight that no file has yet */
} interned;

/* The weights in the order in which they were added. */
struct engine_weight {
    struct engine_weight *next;
    interned *at;
};

static void own_free(engine_writer *w, interned *i)
{
    if (i->is_own) mem_free(w->e, (void *)(uintptr_t)i->bytes, (size_t)i->size, ENGINE_ALIGN);
    i->is_own = false;
}

static void section_free(engine_writer *w, uint32_t kind)
{
    if (w->section[kind].at) mem_free(w->e, w->section[kind].at, w->section[kind].capacity, ENGINE_ALIGN);
    w->section[kind].at = NULL;
    w->section[kind].capacity = 0;
}

void engine_writer_deinit(engine_writer *w)
{
    for (const struct engine_weight *x = w->first_weight; x; x = x->next) own_free(w, x->at);
    if (w->room) mem_free(w->e, w->room, w->room_size, ENGINE_ALIGN);
    for (uint32_t i = 0; i < SECTION_KIND_COUNT; i++) section_free(w, i);
    arena_deinit(&w->a);
    memset(w, 0, sizeof *w);
}

sinter_status engine_writer_status(const engine_writer *w)
{
    if (w->status != SINTER_OK) return w->status;
    return w->failed || w->a.failed ? FAIL_MEMORY(w->e, "an engine") : SINTER_OK;
}

/* Writes to the file. The first failure stays. */
static void put(engine_writer *w, uint64_t at, const void *bytes, size_t size)
{
    if (w->status == SINTER_OK && size) w->status = os_output_put(w->e, w->to, at, bytes, size);
    w->failed = w->failed || w->status != SINTER_OK;
}

/* Does the file have these bytes there? */
static bool file_has(engine_writer *w, uint64_t at, const uint8_t *bytes, size_t size)
{
    uint8_t part[4096];
    for (size_t done = 0; done < size && w->status == SINTER_OK;) {
        const size_t take = size - done < sizeof part ? size - done : sizeof part;
        w->status = os_output_get(w->e, w->to, at + done, part, take);
        if (w->status == SINTER_OK && memcmp(part, bytes + done, take) != 0) return false;
        done += take;
    }
    w->failed = w->failed || w->status != SINTER_OK;
    return true;
}

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
        const uint8_t *known = kind == SECTION_WEIGHTS ? i->bytes : w->section[kind].at + i->at;
        if (!known ? file_has(w, weights_at() + i->at, bytes, size) : known == bytes || !memcmp(known, bytes, size))
            return i;
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

/* The entry of a weight, with its place in the section; NULL on failure. */
static interned *weight_entry(engine_writer *w, const uint8_t *bytes, size_t size, bool is_own, bool *is_new)
{
    static const uint8_t zeros[ENGINE_ALIGN];
    interned *i = entry_of(w, SECTION_WEIGHTS, bytes, size);
    *is_new = i && !i->size;
    if (!*is_new) return i;
    const size_t end = w->section[SECTION_WEIGHTS].size;
    i->at = size_align(end, ENGINE_ALIGN);
    i->size = size;
    w->section[SECTION_WEIGHTS].size = size_add(i->at, size);
    if (w->to) {
        i->bytes = NULL;
        hash64_add(&w->sum, zeros, (size_t)i->at - end);
        hash64_add(&w->sum, bytes, size);
        put(w, weights_at() + i->at, bytes, size);
        return i;
    }
    struct engine_weight *entry = ARENA_NEW(&w->a, struct engine_weight, 1);
    if (!entry) return NULL;
    i->is_own = is_own;
    entry->at = i;
    if (!w->next_weight) w->next_weight = &w->first_weight;
    *w->next_weight = entry;
    w->next_weight = &entry->next;
    return i;
}

uint64_t engine_writer_weight(engine_writer *w, const void *bytes, size_t size)
{
    bool is_new;
    if (!size) return 0;
    const interned *i = weight_entry(w, bytes, size, false, &is_new);
    if (!i) w->failed = true;
    return i ? i->at : 0;
}

uint8_t *engine_writer_room(engine_writer *w, size_t size)
{
    if (!w->to) return mem_zalloc(w->e, size, ENGINE_ALIGN);
    if (size > w->room_size) {
        if (w->room) mem_free(w->e, w->room, w->room_size, ENGINE_ALIGN);
        w->room = mem_alloc(w->e, size, ENGINE_ALIGN);
        w->room_size = w->room ? size : 0;
    }
    if (w->room) memset(w->room, 0, size);
    return w->room;
}

uint64_t engine_writer_made(engine_writer *w, uint8_t *room, size_t size)
{
    bool is_new;
    const interned *i = weight_entry(w, room, size, true, &is_new);
    if (!i) w->failed = true;
    if (!w->to && (!i || !is_new)) mem_free(w->e, room, size, ENGINE_ALIGN);
    return i ? i->at : 0;
}

/* The weights, then the others by kind. */
static uint32_t kind_at(uint32_t index)
{
    return !index ? SECTION_WEIGHTS : index <= SECTION_WEIGHTS - 1 ? index : index + 1;
}

/* Where the sections will lie. Their checksums are filled in when they do. */
static size_t lay_out(const engine_writer *w, engine_section *table)
{
    size_t at = weights_at();
    for (uint32_t i = 0; i < SECTION_KIND_COUNT - 1; i++) {
        const uint32_t kind = kind_at(i);
        const size_t bytes = w->section[kind].size;
        /* Older libraries can do without. */
        const bool is_optional = kind == SECTION_CODE || kind == SECTION_DETAIL || (kind == SECTION_STATE && !bytes);
        table[i] =
            (engine_section){ .kind = kind, .flags = is_optional ? 0 : SECTION_REQUIRED, .at = at, .size = bytes };
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
        if (!w->release) continue;
        if (!x->at->is_own) w->release(w->user, x->at->bytes, x->at->size);
        own_free(w, x->at);
    }
}

static void seal(engine_header *header, const engine_section *table)
{
    const uint64_t sum = hash64(header, sizeof *header, 0);
    header->header_sum = hash64(table, (SECTION_KIND_COUNT - 1) * sizeof *table, sum);
}

/* What no weight is in: the file has those. Padding was never written, and is 0. */
static sinter_status finish_file(engine_writer *w, engine_header *header, engine_section *table)
{
    uint64_t end = table[0].at + table[0].size;
    table[0].sum = hash64_end(&w->sum);
    for (uint32_t i = 1; i < SECTION_KIND_COUNT - 1; i++) {
        const uint8_t *bytes = w->section[table[i].kind].at;
        table[i].sum = hash64(bytes, table[i].size, 0);
        put(w, table[i].at, bytes, table[i].size);
        if (w->release) section_free(w, table[i].kind);
        if (table[i].size) end = table[i].at + table[i].size;
    }
    if (header->file_size > end) put(w, header->file_size - 1, "", 1);
    seal(header, table);
    put(w, 0, header, sizeof *header);
    put(w, sizeof *header, table, (SECTION_KIND_COUNT - 1) * sizeof *table);
    return engine_writer_status(w);
}

sinter_status engine_writer_finish(engine_writer *w, const uint8_t digest[24], uint8_t **out, size_t *size)
{
    *out = NULL;
    *size = 0;
    TRY(engine_writer_status(w));
    engine_header header = { .header_size = sizeof header,
                             .major = ENGINE_MAJOR,
                             .minor = ENGINE_MINOR,
                             .byte_order = 0x01020304,
                             .section_count = SECTION_KIND_COUNT - 1 };
    memcpy(header.magic, ENGINE_MAGIC, sizeof header.magic);
    memcpy(header.model_digest, digest, sizeof header.model_digest);
    engine_section table[SECTION_KIND_COUNT - 1] = { 0 };
    const size_t total = lay_out(w, table);
    header.file_size = *size = total;
    if (w->to) return finish_file(w, &header, table);
    /* Not cleared: memory for weights is touched when a weight goes there, and its source then goes. */
    uint8_t *bytes = mem_alloc(w->e, total, ENGINE_ALIGN);
    if (!bytes) return FAIL_MEMORY(w->e, "an engine");
    size_t end = sizeof header + sizeof table;
    for (uint32_t i = 0; i < SECTION_KIND_COUNT - 1; i++) {
        uint8_t *at = bytes + table[i].at;
        memset(bytes + end, 0, table[i].at - end);
        if (i == 0) put_weights(w, at);
        else if (table[i].size) memcpy(at, w->section[table[i].kind].at, table[i].size);
        table[i].sum = hash64(at, table[i].size, 0);
        if (w->release) section_free(w, table[i].kind);
        end = table[i].at + table[i].size;
    }
    memset(bytes + end, 0, total - end);
    seal(&header, table);
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + sizeof header, table, sizeof table);
    *out = bytes;
    return SINTER_OK;
}
