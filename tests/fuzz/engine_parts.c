/* SPDX-License-Identifier: Apache-2.0 */
/* engine_parts.c - see engine_parts.h. */
#include "engine_parts.h"

#include "base/hash.h"
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

image image_copy(const void *at, size_t size)
{
    const image copy = { malloc(size + 1), size };
    if (!copy.at) abort();
    if (size) memcpy(copy.at, at, size);
    return copy;
}

parts parts_of(image file)
{
    parts p = { 0 };
    memcpy(&p.header, file.at, sizeof p.header);
    for (uint32_t i = 0; i < p.header.section_count; i++) {
        engine_section s;
        memcpy(&s, file.at + sizeof p.header + i * sizeof s, sizeof s);
        p.at[s.kind] = image_copy(file.at + s.at, s.size);
    }
    return p;
}

static size_t padded(size_t size)
{
    return (size + ENGINE_ALIGN - 1) / ENGINE_ALIGN * ENGINE_ALIGN;
}

image parts_together(parts *p)
{
    const uint32_t count = SECTION_KIND_COUNT - 1;
    size_t size = padded(sizeof p->header + count * sizeof(engine_section));
    for (uint32_t i = 1; i <= count; i++) size += padded(p->at[i].size);
    const image file = { calloc(1, size), size };
    if (!file.at) abort();
    size_t at = padded(sizeof p->header + count * sizeof(engine_section));
    for (uint32_t i = 1; i <= count; i++) {
        const engine_section s = { .kind = i, .flags = SECTION_REQUIRED, .at = at, .size = p->at[i].size };
        memcpy(file.at + sizeof p->header + (i - 1) * sizeof s, &s, sizeof s);
        if (s.size) memcpy(file.at + at, p->at[i].at, s.size);
        at += padded(s.size);
    }
    parts_free(p);
    p->header.section_count = count;
    p->header.file_size = size;
    memcpy(file.at, &p->header, sizeof p->header);
    return file;
}

void parts_free(parts *p)
{
    for (uint32_t i = 1; i < SECTION_KIND_COUNT; i++) free(p->at[i].at);
}

void parts_seal(uint8_t *at, size_t size)
{
    engine_header h;
    if (size < sizeof h) return;
    memcpy(&h, at, sizeof h);
    h.file_size = size;
    h.header_sum = 0;
    const size_t table = (size_t)h.section_count * sizeof(engine_section);
    if (table > size - sizeof h) return;
    for (uint32_t i = 0; i < h.section_count; i++) {
        engine_section s;
        memcpy(&s, at + sizeof h + i * sizeof s, sizeof s);
        if (s.at > size || s.size > size - s.at) continue;
        s.sum = hash64(at + s.at, s.size, 0);
        memcpy(at + sizeof h + i * sizeof s, &s, sizeof s);
    }
    h.header_sum = hash64(at + sizeof h, table, hash64(&h, sizeof h, 0));
    memcpy(at, &h, sizeof h);
}

uint32_t parts_count(const parts *p, uint32_t kind)
{
    return (uint32_t)(p->at[kind].size / engine_record_size[kind]);
}

void *parts_record(const parts *p, uint32_t kind, uint32_t index)
{
    return p->at[kind].at + index * engine_record_size[kind];
}

uint32_t parts_insert(parts *p, uint32_t kind, uint32_t index, const void *record)
{
    const size_t size = engine_record_size[kind], at = index * size;
    uint8_t own[256]; /* `record` may lie in the section itself */
    if (size > sizeof own) abort();
    memcpy(own, record, size);
    image *x = &p->at[kind];
    x->at = realloc(x->at, x->size + size + 1);
    if (!x->at) abort();
    memmove(x->at + at + size, x->at + at, x->size - at);
    memcpy(x->at + at, own, size);
    x->size += size;
    return index;
}

void parts_remove(parts *p, uint32_t kind, uint32_t index)
{
    const size_t size = engine_record_size[kind], at = index * size;
    image *x = &p->at[kind];
    memmove(x->at + at, x->at + at + size, x->size - at - size);
    x->size -= size;
}

uint32_t parts_text(parts *p, const char *words)
{
    image *x = &p->at[SECTION_STRINGS];
    const size_t at = x->size, size = strlen(words) + 1;
    x->at = realloc(x->at, at + size + 1);
    if (!x->at) abort();
    memcpy(x->at + at, words, size);
    x->size += size;
    return (uint32_t)at;
}

/* Where a profile says first and count of a table. */
static uint32_t *range_of(engine_profile *p, uint32_t kind)
{
    return kind == SECTION_STORAGES  ? &p->storage_first
           : kind == SECTION_VALUES  ? &p->value_first
           : kind == SECTION_REGIONS ? &p->region_first
                                     : &p->step_first;
}

void parts_insert_in(parts *p, uint32_t kind, uint32_t profile, const void *record)
{
    engine_profile *of = parts_record(p, SECTION_PROFILES, profile);
    uint32_t *range = range_of(of, kind);
    (void)parts_insert(p, kind, range[0] + range[1], record);
    range[1]++;
    for (uint32_t i = profile + 1; i < parts_count(p, SECTION_PROFILES); i++)
        ++*range_of(parts_record(p, SECTION_PROFILES, i), kind);
}
