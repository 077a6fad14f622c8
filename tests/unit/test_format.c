/* SPDX-License-Identifier: Apache-2.0 */
/* test_format.c - the engine file: the writer's sections come back as they went in, the verifier takes them, and what
 * it refuses it names. */
#include "backend/backend.h"
#include "base/hash.h"
#include "core/storage.h"
#include "engine/engine.h"
#include "faulty.h"
#include "samples.h"
#include "test.h"

typedef struct rig {
    faulty f;
    env e;
    sinter_error error;
} rig;

static void open_rig(rig *r)
{
    *r = (rig){ .f = { .budget = -1 } };
    const sinter_allocator allocator = { &r->f, faulty_resize };
    env_init(&r->e, &(sinter_env_options){ .struct_size = sizeof(sinter_env_options), .allocator = &allocator },
             &r->error);
}

/* One input that is the output too cannot be; so: x, and a copy of it, both empty, so that
 * no step has to make it. Everything else is minimal. */
static void write_minimal(engine_writer *w)
{
    const uint32_t x = engine_writer_string(w, "x"), y = engine_writer_string(w, "y");
    CHECK_EQ(engine_writer_string(w, "x"), x);
    CHECK_EQ(engine_writer_string(w, ""), 0);
    const uint32_t version = engine_writer_string(w, "0.0.0");
    (void)engine_writer_add(w, SECTION_DIMS, &(engine_dim){ 0 }, sizeof(engine_dim));
    (void)engine_writer_add(w, SECTION_DIMS, &(engine_dim){ .kind = 1, .value = 0 }, sizeof(engine_dim));
    CHECK_EQ(engine_writer_add(w, SECTION_DIMS, &(engine_dim){ .kind = 1, .value = 4 }, sizeof(engine_dim)), 2);
    (void)engine_writer_add(w, SECTION_DIMS, &(engine_dim){ .kind = 1, .value = 1 }, sizeof(engine_dim));
    engine_io io = { .name = x, .is_input = 1, .dtype = SINTER_DTYPE_F32, .rank = 1, .dim = { 1 } };
    (void)engine_writer_add(w, SECTION_IOS, &io, sizeof io);
    io.name = y;
    io.is_input = 0;
    (void)engine_writer_add(w, SECTION_IOS, &io, sizeof io);
    const engine_storage none = { 0 }, in = { .kind = STORAGE_INPUT }, out = { .kind = STORAGE_OUTPUT, .at = 1 };
    (void)engine_writer_add(w, SECTION_STORAGES, &none, sizeof none);
    (void)engine_writer_add(w, SECTION_STORAGES, &in, sizeof in);
    (void)engine_writer_add(w, SECTION_STORAGES, &out, sizeof out);
    engine_value v = { 0 };
    (void)engine_writer_add(w, SECTION_VALUES, &v, sizeof v);
    v = (engine_value){
        .name = x, .dtype = SINTER_DTYPE_F32, .rank = 1, .storage = 1, .offset = 1, .dim = { 1 }, .stride = { 3 }
    };
    (void)engine_writer_add(w, SECTION_VALUES, &v, sizeof v);
    v.storage = 2;
    (void)engine_writer_add(w, SECTION_VALUES, &v, sizeof v);
    (void)engine_writer_add(w, SECTION_ARGS, &(uint32_t){ 1 }, 4);
    (void)engine_writer_add(w, SECTION_ARGS, &(uint32_t){ 2 }, 4);
    const engine_region region[2] = { { 0 } };
    (void)engine_writer_add(w, SECTION_REGIONS, &region[0], sizeof region[0]);
    (void)engine_writer_add(w, SECTION_REGIONS, &region[1], sizeof region[1]);
    const engine_profile p = { .storage_count = 3, .value_count = 3, .region_count = 2 };
    (void)engine_writer_add(w, SECTION_PROFILES, &p, sizeof p);
    const engine_notes notes = { .version = version, .threads = 1, .backend = engine_writer_string(w, "cpu") };
    (void)engine_writer_add(w, SECTION_NOTES, &notes, sizeof notes);
}

static sinter_status load(rig *r, const uint8_t *at, size_t size, engine **out)
{
    uint8_t *copy = mem_alloc(&r->e, size, ENGINE_ALIGN);
    if (!copy) return SINTER_NO_MEMORY;
    memcpy(copy, at, size);
    r->error = (sinter_error){ 0 };
    return engine_open(&r->e, copy, size, backend_find("cpu"), &(device_options){ .threads = 1 }, 0, out, &r->error);
}

static void round_trip(void)
{
    rig r;
    engine_writer w;
    uint8_t *at[2] = { NULL }, digest[24] = { 1, 2, 3 };
    size_t size[2] = { 0 };
    engine *g = NULL;
    open_rig(&r);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(engine_writer_init(&r.e, &w, NULL), SINTER_OK);
        write_minimal(&w);
        const uint64_t a = engine_writer_weight(&w, "weights", 7), b = engine_writer_weight(&w, "others", 6);
        CHECK_EQ(engine_writer_weight(&w, "weights", 7), a);
        CHECK(a != b && a % ENGINE_ALIGN == 0 && b % ENGINE_ALIGN == 0);
        CHECK_EQ(engine_writer_finish(&w, digest, &at[i], &size[i]), SINTER_OK);
        engine_writer_deinit(&w);
    }
    CHECK(size[0] == size[1] && !memcmp(at[0], at[1], size[0]));
    if (!CHECK_EQ(load(&r, at[0], size[0], &g), SINTER_OK)) printf("%s\n", r.error.text);
    if (g) {
        CHECK(!memcmp(g->header->model_digest, digest, sizeof digest));
        CHECK_EQ(g->io_count, 2);
        CHECK_EQ(g->input_count, 1);
        CHECK_STR(engine_text(g, g->io[1].name), "y");
        CHECK_EQ(g->value_count, 3);
        CHECK_EQ(g->dim[2].value, 4);
        CHECK(!memcmp(g->weights, "weights", 7));
        CHECK_STR(engine_text(g, g->notes->version), "0.0.0");
        engine_retain(g);
        engine_release(g);
        engine_release(g);
    }
    for (int i = 0; i < 2; i++) mem_free(&r.e, at[i], size[i], ENGINE_ALIGN);
    CHECK_EQ(r.f.live, 0);
    CHECK_EQ(r.f.misuse, 0);
}

static void refused(rig *r, uint8_t *at, size_t size, sinter_status status, const char *part)
{
    engine *g = NULL;
    if (!CHECK_EQ(load(r, at, size, &g), status) + !CHECK_HAS(r->error.text, part)) printf("%s\n", r->error.text);
    CHECK(g == NULL);
    engine_release(g);
}

static void damage_is_named(void)
{
    rig r;
    engine_writer w;
    uint8_t *at = NULL, digest[24] = { 0 };
    size_t size = 0;
    open_rig(&r);
    CHECK_EQ(engine_writer_init(&r.e, &w, NULL), SINTER_OK);
    write_minimal(&w);
    CHECK_EQ(engine_writer_finish(&w, digest, &at, &size), SINTER_OK);
    engine_writer_deinit(&w);
    for (size_t cut = 1; cut < size; cut += 1 + size / 50) refused(&r, at, cut, SINTER_INVALID_MODEL, "");
    refused(&r, at, 63, SINTER_INVALID_MODEL, "63 bytes");
    refused(&r, at, size - 64, SINTER_INVALID_MODEL, "cut or damaged");
    at[0] ^= 1;
    refused(&r, at, size, SINTER_INVALID_MODEL, "no engine file");
    at[0] ^= 1;
    at[offsetof(engine_header, major)]++;
    refused(&r, at, size, SINTER_INCOMPATIBLE, "build it again");
    at[offsetof(engine_header, major)]--;
    at[offsetof(engine_header, byte_order)] ^= 5;
    refused(&r, at, size, SINTER_INCOMPATIBLE, "byte order");
    at[offsetof(engine_header, byte_order)] ^= 5;
    at[offsetof(engine_header, model_digest)] ^= 5;
    refused(&r, at, size, SINTER_INVALID_MODEL, "header's checksum");
    at[offsetof(engine_header, model_digest)] ^= 5;
    /* Every single bit of the file matters, or is refused all the same. */
    for (size_t i = 0; i < size; i++) {
        at[i] ^= (uint8_t)(1u << i % 8);
        engine *g = NULL;
        if (!CHECK(load(&r, at, size, &g) != SINTER_OK)) printf("byte %zu\n", i);
        engine_release(g);
        at[i] ^= (uint8_t)(1u << i % 8);
    }
    mem_free(&r.e, at, size, ENGINE_ALIGN);
    CHECK_EQ(r.f.live, 0);
}

/* ---- compiled kernels ---- */

/* Records are whole or refused, whether or not anybody trusts them; the CPU has no use for them. */
static void code_rides_along(void)
{
    rig r;
    open_rig(&r);
    static const char code[] = "twenty-one bytes here";
    for (int kind = 0; kind < 5; kind++) {
        engine_writer w;
        uint8_t *at = NULL, digest[24] = { 0 }, key[32] = { 7 };
        size_t size = 0;
        CHECK_EQ(engine_writer_init(&r.e, &w, NULL), SINTER_OK);
        write_minimal(&w);
        CHECK_EQ(engine_writer_code(&w, key, code, 21), SINTER_OK);
        CHECK_EQ(engine_writer_code(&w, key, code, 16), SINTER_OK);
        uint8_t *const section = w.section[SECTION_CODE].at;
        CHECK_EQ(w.section[SECTION_CODE].size, 48 + 32 + 48 + 16);
        if (kind == 1) section[48]++;                                                /* a byte of the code */
        if (kind == 2) memset(section + offsetof(engine_code_header, size), 255, 8); /* sizes that pass the end */
        if (kind == 3) section[80 + offsetof(engine_code_header, size)]++;
        if (kind == 4) w.section[SECTION_CODE].size -= 20;
        CHECK_EQ(engine_writer_finish(&w, digest, &at, &size), SINTER_OK);
        engine_writer_deinit(&w);
        static const char *const part[] = { "", "checksum of a compiled kernel", "left in its section",
                                            "left in its section", "passes the end" };
        if (kind) {
            refused(&r, at, size, SINTER_INVALID_MODEL, kind == 4 ? "compiled kernel 1" : part[kind]);
        } else {
            engine *g = NULL;
            if (!CHECK_EQ(load(&r, at, size, &g), SINTER_OK)) printf("%s\n", r.error.text);
            engine_release(g);
        }
        mem_free(&r.e, at, size, ENGINE_ALIGN);
    }
    CHECK_EQ(r.f.live, 0);
}

/* What the file says of itself before it is verified never reads past its end. */
static void peeking_is_bounded(void)
{
    rig r;
    engine_writer w;
    uint8_t *at = NULL, digest[24] = { 0 };
    size_t size = 0;
    engine_hint hint;
    open_rig(&r);
    CHECK_EQ(engine_writer_init(&r.e, &w, NULL), SINTER_OK);
    write_minimal(&w);
    CHECK_EQ(engine_writer_finish(&w, digest, &at, &size), SINTER_OK);
    engine_writer_deinit(&w);
    CHECK(engine_peek(at, size, &hint));
    CHECK_STR(hint.backend, "cpu");
    CHECK_EQ(hint.threads, 1);
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *copy = malloc(cut ? cut : 1);
        if (!copy) abort();
        memcpy(copy, at, cut);
        (void)engine_peek(copy, cut, &hint);
        free(copy);
    }
    uint64_t random = 5;
    for (int i = 0; i < 20000; i++) {
        const size_t byte = test_random(&random) % (size < 1200 ? size : 1200);
        const uint8_t was = at[byte];
        at[byte] = (uint8_t)test_random(&random);
        (void)engine_peek(at, size, &hint);
        if (i % 7) at[byte] = was;
    }
    mem_free(&r.e, at, size, ENGINE_ALIGN);
    CHECK_EQ(r.f.live, 0);
}

/* A section that only a newer library knows is skipped, unless it is required. */
static void newer_sections(void)
{
    rig r;
    open_rig(&r);
    sinter_buffer b = { 0 };
    CHECK_EQ(sample_build(SAMPLE_CONV, NULL, &b, NULL), SINTER_OK);
    for (uint32_t flags = 0; flags < 2; flags++) {
        engine_header h;
        memcpy(&h, b.data, sizeof h);
        const size_t table = h.section_count * sizeof(engine_section), head = sizeof h + table;
        const size_t first = (head + 63) / 64 * 64, moved = (head + sizeof(engine_section) + 63) / 64 * 64;
        const size_t end = (b.size + 63) / 64 * 64, size = end + (moved - first) + 64;
        uint8_t *at = calloc(1, size);
        if (!CHECK(at != NULL)) break;
        memcpy(at + moved, (uint8_t *)b.data + first, b.size - first);
        engine_section s = { 0 };
        for (uint32_t i = 0; i < h.section_count; i++) {
            memcpy(&s, (uint8_t *)b.data + sizeof h + i * sizeof s, sizeof s);
            s.at += moved - first;
            memcpy(at + sizeof h + i * sizeof s, &s, sizeof s);
        }
        s = (engine_section){ .kind = 99, .flags = flags, .at = (s.at + s.size + 63) / 64 * 64, .size = 5 };
        memcpy(at + s.at, "later", 5);
        s.sum = hash64("later", 5, 0);
        memcpy(at + sizeof h + table, &s, sizeof s);
        h.section_count++;
        h.file_size = s.at + s.size;
        h.header_sum = 0;
        h.header_sum = hash64(at + sizeof h, table + sizeof s, hash64(&h, sizeof h, 0));
        memcpy(at, &h, sizeof h);
        engine *g = NULL;
        if (!CHECK_EQ(load(&r, at, h.file_size, &g), flags ? SINTER_INCOMPATIBLE : SINTER_OK))
            printf("%s\n", r.error.text);
        if (flags) CHECK_HAS(r.error.text, "newer library");
        engine_release(g);
        free(at);
    }
    sinter_buffer_free(&b);
    CHECK_EQ(r.f.live, 0);
}

static const test tests[] = { T(round_trip),         T(damage_is_named), T(code_rides_along),
                              T(peeking_is_bounded), T(newer_sections),  { 0 } };
TEST_MAIN(tests)
