/* SPDX-License-Identifier: Apache-2.0 */
/* engine_rig.c - see engine_rig.h. */
#include "engine_rig.h"

#include "base/hash.h"
#include "base/os.h"
#include "engine/format.h"
#include "samples.h"
#include "test.h"

static const size_t record_size[SECTION_KIND_COUNT] = {
    [SECTION_STRINGS] = 1,
    [SECTION_DIMS] = sizeof(engine_dim),
    [SECTION_SYMBOLS] = sizeof(engine_symbol),
    [SECTION_RANGES] = sizeof(engine_range),
    [SECTION_IOS] = sizeof(engine_io),
    [SECTION_PROFILES] = sizeof(engine_profile),
    [SECTION_STORAGES] = sizeof(engine_storage),
    [SECTION_VALUES] = sizeof(engine_value),
    [SECTION_ARGS] = sizeof(uint32_t),
    [SECTION_REGIONS] = sizeof(engine_region),
    [SECTION_STEPS] = sizeof(engine_step),
    [SECTION_KERNELS] = sizeof(engine_kernel),
    [SECTION_RECIPES] = sizeof(engine_recipe),
    [SECTION_WEIGHTS] = 1,
    [SECTION_NOTES] = sizeof(engine_notes),
    [SECTION_CODE] = 1,
};

/* Which kinds are damaged how often: those that a run depends on most. */
static const uint8_t favourite[] = {
    SECTION_DIMS,     SECTION_RANGES,  SECTION_SYMBOLS, SECTION_IOS,     SECTION_STORAGES,
    SECTION_STORAGES, SECTION_VALUES,  SECTION_VALUES,  SECTION_VALUES,  SECTION_ARGS,
    SECTION_ARGS,     SECTION_ARGS,    SECTION_STEPS,   SECTION_STEPS,   SECTION_STEPS,
    SECTION_STRINGS,  SECTION_STRINGS, SECTION_STRINGS, SECTION_STRINGS, SECTION_REGIONS,
    SECTION_PROFILES, SECTION_KERNELS, SECTION_RECIPES, SECTION_NOTES,   SECTION_WEIGHTS,
};

static uint64_t below(uint64_t *random, uint64_t limit)
{
    return limit ? test_random(random) % limit : 0;
}

/* ---- apart and together ---- */

typedef struct parts {
    image at[SECTION_KIND_COUNT];
    engine_header header;
} parts;

static image copy_of(const void *at, size_t size)
{
    const image copy = { malloc(size + 1), size };
    if (!copy.at) abort();
    memcpy(copy.at, at, size);
    return copy;
}

static parts apart(image file)
{
    parts p = { 0 };
    memcpy(&p.header, file.at, sizeof p.header);
    for (uint32_t i = 0; i < p.header.section_count; i++) {
        engine_section s;
        memcpy(&s, file.at + sizeof p.header + i * sizeof s, sizeof s);
        p.at[s.kind] = copy_of(file.at + s.at, s.size);
    }
    return p;
}

static size_t padded(size_t size)
{
    return (size + ENGINE_ALIGN - 1) / ENGINE_ALIGN * ENGINE_ALIGN;
}

/* Frees the parts. */
static image together(parts *p)
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
        free(p->at[i].at);
    }
    p->header.section_count = count;
    p->header.file_size = size;
    memcpy(file.at, &p->header, sizeof p->header);
    return file;
}

void rig_seal(uint8_t *at, size_t size)
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

/* ---- damage of bytes ---- */

static void damage_bytes(image *f, image other, uint64_t *random)
{
    const size_t at = below(random, f->size), from = below(random, f->size);
    const size_t run = 1 + below(random, 64), far = below(random, other.size);
    switch (below(random, 7)) {
    case 0: f->at[at] ^= (uint8_t)(1u << below(random, 8)); break;
    case 1: f->at[at] = (uint8_t)test_random(random); break;
    case 2: f->size = at; break;
    case 3:
        if (at + run <= f->size && from + run <= f->size) memmove(f->at + at, f->at + from, run);
        break;
    case 4:
        if (at + run <= f->size && far + run <= other.size) memcpy(f->at + at, other.at + far, run);
        break;
    case 5: { /* the header and the table */
        uint8_t *x = &f->at[below(random, f->size < 640 ? f->size : 640)];
        *x = (uint8_t)(below(random, 2) ? *x ^ 1u << below(random, 8) : test_random(random));
        break;
    }
    default: { /* two sections change places in the table */
        engine_section a, b;
        uint8_t *table = f->at + sizeof(engine_header);
        const size_t x = below(random, SECTION_KIND_COUNT - 1) * sizeof a,
                     y = below(random, SECTION_KIND_COUNT - 1) * sizeof a;
        if (f->size < sizeof(engine_header) + (SECTION_KIND_COUNT - 1) * sizeof a) break;
        memcpy(&a, table + x, sizeof a);
        memcpy(&b, table + y, sizeof b);
        if (below(random, 2)) {
            const uint32_t kind = a.kind;
            a.kind = b.kind;
            b.kind = kind;
        } else {
            const engine_section c = a;
            a = b;
            b = c;
        }
        memcpy(table + x, &a, sizeof a);
        memcpy(table + y, &b, sizeof b);
        break;
    }
    }
}

/* ---- damage of records ---- */

static uint32_t boundary32(uint32_t now, uint32_t count, uint64_t *random)
{
    const uint32_t list[] = { 0,           1,           2,       count - 1, count,   count + 1, 0x7fffffffu,
                              0x80000000u, 0xffffffffu, now + 1, now - 1,   now * 2, now + 64u, now ^ 0x100u,
                              3,           8,           0x10000u };
    if (below(random, 3) == 0) return (uint32_t)below(random, (uint64_t)count + 2);
    return list[below(random, COUNT_OF(list))];
}

static uint64_t boundary64(uint64_t now, uint64_t *random)
{
    const uint64_t list[] = { 0,
                              1,
                              2,
                              3,
                              (uint64_t)INT64_MAX,
                              (uint64_t)INT64_MIN,
                              UINT64_MAX,
                              UINT64_MAX - 63,
                              now + 1,
                              now - 1,
                              now * 2,
                              now + 64,
                              now - 64,
                              now / 2,
                              (uint64_t)1 << 32,
                              1000,
                              ~now };
    return list[below(random, COUNT_OF(list))];
}

static void damage_text(image *x, uint64_t *random)
{
    static const char put[] = "0123456789-*.,()[]{}:;=@/x fiub_%\"+\0";
    const size_t at = below(random, x->size), from = below(random, x->size), run = 1 + below(random, 12);
    switch (below(random, 5)) {
    case 0: x->at[at] = (uint8_t)put[below(random, sizeof put - 1)]; break;
    case 1: /* another digit where one stands */
        for (size_t i = at; i < x->size; i++)
            if (x->at[i] >= '0' && x->at[i] <= '9') {
                x->at[i] = (uint8_t)('0' + below(random, 10));
                break;
            }
        break;
    case 2: /* a word from elsewhere */
        if (at + run < x->size && from + run < x->size) memmove(x->at + at, x->at + from, run);
        break;
    case 3: x->at[at] ^= (uint8_t)(1u << below(random, 8)); break;
    default: /* two numbers of one digit change places */
        for (size_t i = at; i < x->size && i < at + 40; i++)
            for (size_t k = from; k < x->size && k < from + 40; k++)
                if (x->at[i] >= '0' && x->at[i] <= '9' && x->at[k] >= '0' && x->at[k] <= '9') {
                    const uint8_t c = x->at[i];
                    x->at[i] = x->at[k];
                    x->at[k] = c;
                    return;
                }
        break;
    }
}

static void damage_field(image *x, uint32_t kind, const uint32_t *limit, uint64_t *random)
{
    const size_t size = record_size[kind], count = x->size / size;
    if (!count) return;
    uint8_t *record = x->at + below(random, count) * size;
    const uint8_t *model = x->at + below(random, count) * size; /* another record of the kind */
    const bool is_wide = (kind == SECTION_DIMS || kind == SECTION_STORAGES) ? below(random, 2) : kind == SECTION_RANGES;
    if (below(random, 12) == 0) {
        memmove(record, model, size);
        return;
    }
    if (is_wide) {
        const size_t at = kind == SECTION_DIMS     ? 16
                          : kind == SECTION_RANGES ? below(random, 4) * 8
                                                   : 8 + below(random, 2) * 8;
        uint64_t now, like;
        memcpy(&now, record + at, sizeof now);
        memcpy(&like, model + at, sizeof like);
        now = below(random, 3) ? boundary64(now, random) : like;
        memcpy(record + at, &now, sizeof now);
        return;
    }
    if (kind == SECTION_STEPS && below(random, 3) == 0) { /* a tactic's byte */
        record[48 + below(random, 32)] = (uint8_t)(below(random, 2) ? below(random, 4) : test_random(random));
        return;
    }
    const size_t at = below(random, size / 4) * 4;
    uint32_t now, like;
    memcpy(&now, record + at, sizeof now);
    memcpy(&like, model + at, sizeof like);
    now = below(random, 3) ? boundary32(now, limit[below(random, SECTION_KIND_COUNT)], random) : like;
    memcpy(record + at, &now, sizeof now);
}

/* Records vanish, appear twice or come from another engine. */
static void damage_count(image *x, image other, uint32_t kind, uint64_t *random)
{
    const size_t size = record_size[kind], count = x->size / size;
    if (!count) return;
    switch (below(random, 4)) {
    case 0: x->size -= size; break;
    case 1: {
        const size_t at = below(random, count) * size;
        memmove(x->at + at, x->at + at + size, x->size - at - size);
        x->size -= size;
        break;
    }
    case 2: {
        uint8_t *more = realloc(x->at, x->size + size + 1);
        if (!more) abort();
        memcpy(more + x->size, more + below(random, count) * size, size);
        *x = (image){ more, x->size + size };
        break;
    }
    default:
        free(x->at);
        *x = copy_of(other.at, other.size);
        break;
    }
}

static image damage_records(image seed, image other, uint64_t *random)
{
    parts p = apart(seed), o = apart(other);
    uint32_t limit[SECTION_KIND_COUNT] = { 0 };
    for (uint32_t i = 1; i < SECTION_KIND_COUNT; i++) limit[i] = (uint32_t)(p.at[i].size / record_size[i]);
    for (int k = 1 + (below(random, 3) == 0) + (below(random, 9) == 0); k; k--) {
        const uint32_t kind = favourite[below(random, COUNT_OF(favourite))];
        if (below(random, 24) == 0) damage_count(&p.at[kind], o.at[kind], kind, random);
        else if (!p.at[kind].size) continue;
        else if (kind == SECTION_STRINGS) damage_text(&p.at[kind], random);
        else if (kind == SECTION_WEIGHTS) p.at[kind].at[below(random, p.at[kind].size)] = (uint8_t)test_random(random);
        else damage_field(&p.at[kind], kind, limit, random);
    }
    for (uint32_t i = 1; i < SECTION_KIND_COUNT; i++) free(o.at[i].at);
    return together(&p);
}

image rig_damage(image seed, image other, bool sealed, uint64_t *random)
{
    image f;
    if (sealed && below(random, 10)) {
        f = damage_records(seed, other, random);
    } else {
        f = copy_of(seed.at, seed.size);
        for (uint64_t k = 1 + below(random, 3); k && f.size; k--) damage_bytes(&f, other, random);
    }
    if (sealed) rig_seal(f.at, f.size);
    uint8_t *exact = realloc(f.at, f.size ? f.size : 1); /* so that a sanitizer sees a byte too far */
    if (exact) f.at = exact;
    return f;
}

/* ---- trying ---- */

static void ignore(void *user, const char *text, size_t length)
{
    *(size_t *)user += text ? length : 0;
}

static void run(sinter_engine *g, uint32_t profile, uint64_t seed, rig_count *count)
{
    sinter_error error = { 0 };
    sinter_context *c = NULL;
    const sinter_context_options o = { .struct_size = sizeof o, .profile = profile };
    if (sinter_context_create(g, &o, &c, &error) != SINTER_OK) return;
    count->contexts++;
    static const sample_size size[] = { SAMPLE_OPT, SAMPLE_MIN, SAMPLE_MAX, SAMPLE_OPT };
    for (uint32_t i = 0; i < COUNT_OF(size); i++) {
        sample_data d;
        error = (sinter_error){ 0 };
        if (!sample_data_make(g, profile, size[i], seed + i, 1u << 20, &d)) continue;
        sinter_status s = sample_data_set(&d, c, &error);
        if (s == SINTER_OK) s = sinter_context_run(c, &error);
        if (s == SINTER_OK) (void)sample_results(g, c);
        count->failed += !CHECK(s != SINTER_INTERNAL);
        count->failed += !CHECK((s == SINTER_OK) == (error.length == 0));
        count->ran += s == SINTER_OK;
        count->refused_runs += s != SINTER_OK;
        if (s != SINTER_OK) count->last = error;
        sample_data_free(&d);
    }
    sinter_context_destroy(c);
}

void rig_try(const uint8_t *at, size_t size, uint64_t seed, rig_count *count)
{
    const sinter_limits limits = { .memory_max = 256u << 20, .loop_max = 64 };
    const sinter_env_options given = { .struct_size = sizeof given, .limits = &limits };
    const sinter_engine_options o = { .struct_size = sizeof o, .env = &given, .threads = 1 };
    const uint64_t start = os_time_ns();
    sinter_error error = { 0 };
    sinter_engine *g = NULL;
    count->tried++;
    const sinter_status s = sinter_engine_load_memory(at, size, &o, &g, &error);
    count->failed += !CHECK((s == SINTER_OK) == (g != NULL) && s != SINTER_INTERNAL);
    count->last = error;
    if (g) {
        count->loaded++;
        size_t printed = 0;
        count->failed += !CHECK_EQ(sinter_engine_print(g, SINTER_PRINT_TEXT, ignore, &printed, NULL), SINTER_OK);
        count->failed += !CHECK_EQ(sinter_engine_print(g, SINTER_PRINT_JSON, ignore, &printed, NULL), SINTER_OK);
        for (uint32_t i = 0; i < sinter_engine_profile_count(g) && i < 3; i++) run(g, i, seed, count);
        sinter_engine_release(g);
    }
    const double seconds = (double)(os_time_ns() - start) * 1e-9;
    if (seconds > count->slowest_s) count->slowest_s = seconds;
}
