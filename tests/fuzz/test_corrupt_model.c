/* SPDX-License-Identifier: Apache-2.0 */
/* test_corrupt_model.c - damaged ONNX models are refused, or built into engines that run safely. Run under ASan and
 * UBSan.
 *
 * Some of the damage is to bytes, most to fields of the messages, so that lengths stay right and what is said is wrong.
 * CORRUPT_MODEL=round repeats that case alone. */
#include "campaign.h"
#include "base/os.h"
#include "samples.h"
#include "seeds.h"
#include "places.h"
#include "test.h"

/* ---- fields ---- */

typedef struct field {
    uint32_t number, wire;
    uint64_t value;
    const uint8_t *at; /* contents where wire is 2, 1 or 5 */
    size_t size;
} field;

static bool varint(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        const uint8_t b = *(*at)++;
        *out |= (uint64_t)(b & 127) << shift;
        if (!(b & 128)) return true;
    }
    return false;
}

static bool next_field(const uint8_t **at, const uint8_t *end, field *f)
{
    uint64_t key;
    if (!varint(at, end, &key) || key >> 3 == 0 || key >> 3 > 100) return false;
    *f = (field){ .number = (uint32_t)(key >> 3), .wire = (uint32_t)(key & 7) };
    if (f->wire == 0) return varint(at, end, &f->value);
    if (f->wire == 2) {
        if (!varint(at, end, &f->value) || f->value > (size_t)(end - *at)) return false;
        f->size = (size_t)f->value;
    } else if (f->wire == 5 || f->wire == 1) {
        f->size = f->wire == 5 ? 4 : 8;
        if (f->size > (size_t)(end - *at)) return false;
    } else {
        return false;
    }
    f->at = *at;
    *at += f->size;
    return true;
}

static bool is_message(const uint8_t *at, size_t size)
{
    const uint8_t *const end = at + size;
    field f;
    if (!size) return false;
    while (at < end)
        if (!next_field(&at, end, &f)) return false;
    return true;
}

typedef struct editing {
    uint64_t *random;
    long target, seen; /* which field is edited, and how many were met */
    field kept;        /* a field met before, to be put elsewhere */
} editing;

static void put_field(bytes *out, const field *f)
{
    bytes_varint(out, (uint64_t)f->number << 3 | f->wire);
    if (f->wire == 0) bytes_varint(out, f->value);
    if (f->wire == 2) bytes_varint(out, f->size);
    if (f->wire != 0) bytes_add(out, f->at, f->size);
}

static void edit_field(bytes *out, field f, editing *e)
{
    static const uint64_t edge[] = { 0,
                                     1,
                                     2,
                                     3,
                                     7,
                                     10,
                                     16,
                                     127,
                                     255,
                                     65536,
                                     INT32_MAX,
                                     (uint64_t)INT64_MAX,
                                     (uint64_t)INT64_MIN,
                                     UINT64_MAX,
                                     UINT64_MAX - 1,
                                     1u << 20 };
    switch (test_below(e->random, 6)) {
    case 0: return; /* gone */
    case 1: /* twice */ put_field(out, &f); break;
    case 2:
        if (e->kept.number) {
            e->kept.number = test_below(e->random, 2) ? f.number : e->kept.number;
            f = e->kept;
        }
        break;
    case 3: f.number = 1 + (uint32_t)test_below(e->random, 21); break;
    default:
        if (f.wire == 0) {
            f.value = test_below(e->random, 2) ? edge[test_below(e->random, sizeof edge / sizeof *edge)]
                                               : test_below(e->random, 25);
        } else {
            uint8_t copy[64];
            if (!f.size || f.size > sizeof copy) break;
            memcpy(copy, f.at, f.size);
            copy[test_below(e->random, f.size)] ^= (uint8_t)(1u << test_below(e->random, 8));
            f.at = copy;
            put_field(out, &f);
            return;
        }
        break;
    }
    put_field(out, &f);
}

static bytes edited(const uint8_t *at, size_t size, editing *e, uint32_t depth)
{
    const uint8_t *const end = at + size;
    bytes out = { 0 };
    field f;
    while (at < end && next_field(&at, end, &f)) {
        const bool is_target = e->seen++ == e->target;
        if (is_target) {
            edit_field(&out, f, e);
            continue;
        }
        if (test_below(e->random, 8) == 0) e->kept = f;
        if (f.wire == 2 && depth < 12 && is_message(f.at, f.size))
            bytes_put(&out, f.number, edited(f.at, f.size, e, depth + 1));
        else put_field(&out, &f);
    }
    return out;
}

static void damage_fields(bytes *model, uint64_t *random)
{
    editing count = { .random = &(uint64_t){ 1 }, .target = -1 };
    free(edited(model->at, model->size, &count, 0).at);
    editing e = { .random = random, .target = (long)test_below(random, (uint64_t)count.seen) };
    const bytes fresh = edited(model->at, model->size, &e, 0);
    free(model->at);
    *model = fresh;
}

static void damage_bytes(bytes *model, const bytes *other, uint64_t *random)
{
    if (!model->size) return;
    const size_t at = test_below(random, model->size), from = test_below(random, model->size),
                 far = test_below(random, other->size), run = 1 + test_below(random, 32);
    switch (test_below(random, 5)) {
    case 0: model->at[at] ^= (uint8_t)(1u << test_below(random, 8)); break;
    case 1: model->at[at] = (uint8_t)test_random(random); break;
    case 2: model->size = at; break;
    case 3:
        if (at + run <= model->size && from + run <= model->size) memmove(model->at + at, model->at + from, run);
        break;
    default:
        if (at + run <= model->size && far + run <= other->size) memcpy(model->at + at, other->at + far, run);
        break;
    }
}

/* ---- trying ---- */

enum { SEEDS = SAMPLE_COUNT + SEED_MODELS + 1 };
typedef struct seeds {
    bytes at[SEEDS];
} seeds;

static void try_model(const bytes *model, int which, uint64_t seed, rig_count *count)
{
    const sinter_limits limits = { .nodes_max = 2000, .memory_max = 64u << 20, .fold_max = 1u << 20, .loop_max = 64 };
    const sinter_env_options given = { .struct_size = sizeof given, .limits = &limits };
    sinter_build_options o = { .struct_size = sizeof o,
                               .env = &given,
                               .threads = 1,
                               .tune = SINTER_TUNE_OFF,
                               .verify = 1,
                               .device = seed % 5 == 4 ? "reference" : "cpu" };
    if (which < SAMPLE_COUNT && seed % 3) o.profile = sample_profiles((sample)which, &o.profile_count);
    const uint64_t start = os_time_ns();
    sinter_buffer engine = { 0 };
    sinter_error error = { 0 };
    count->models++;
    const sinter_status s = sinter_build_memory(model->at, model->size, &o, &engine, &error);
    count->failed += !CHECK((s == SINTER_OK) == (engine.size != 0) && (s == SINTER_OK) == (error.length == 0));
    if (!CHECK(s != SINTER_INTERNAL)) count->failed++, printf("%s\n", error.text);
    if (s == SINTER_OK) {
        count->built++;
        const long loaded = count->loaded;
        rig_try(engine.data, engine.size, seed, count);
        /* What this library built it takes, with the smaller limits of the rig if they suffice. */
        if (count->loaded == loaded && !CHECK_EQ(count->last.status, SINTER_NO_MEMORY))
            count->failed++, printf("%s\n", count->last.text);
    }
    sinter_buffer_free(&engine);
    const double seconds = (double)(os_time_ns() - start) * 1e-9;
    if (seconds > count->slowest_s) count->slowest_s = seconds;
}

static void try_round(void *user, long round, rig_count *count)
{
    const seeds *s = user;
    uint64_t random = (uint64_t)round * 0x51EDu + 3;
    const int which = (int)test_below(&random, SEEDS);
    const bytes *other = &s->at[test_below(&random, SEEDS)];
    bytes model = { 0 };
    bytes_add(&model, s->at[which].at, s->at[which].size);
    for (uint64_t k = 1 + test_below(&random, 3); k; k--) {
        if (round % 4) damage_fields(&model, &random);
        else damage_bytes(&model, other, &random);
    }
    uint8_t *exact = realloc(model.at, model.size ? model.size : 1); /* so that a sanitizer sees a byte too far */
    if (exact) model.at = exact;
    try_model(&model, which, (uint64_t)round, count);
    free(model.at);
}

static bytes read_model(const char *path)
{
    bytes b = { 0 };
    FILE *file = fopen(path, "rb");
    if (!file) return b;
    uint8_t part[4096];
    for (size_t got; (got = fread(part, 1, sizeof part, file)) > 0;) bytes_add(&b, part, got);
    (void)fclose(file);
    return b;
}

static void damaged_models(void)
{
    seeds s;
    char path[4096];
    for (uint32_t i = 0; i < SAMPLE_COUNT; i++) s.at[i] = sample_model((sample)i);
    for (uint32_t i = 0; i < SEED_MODELS; i++) s.at[SAMPLE_COUNT + i] = seed_model(i);
    (void)snprintf(path, sizeof path, "%s/examples/digits/digits.onnx", PLACE_SOURCE_DIR);
    s.at[SEEDS - 1] = read_model(path);
    for (uint32_t i = 0; i < SEEDS; i++) CHECK(s.at[i].size > 0);
    campaign c = { .name = "CORRUPT_MODEL", .rounds = test_scale(4000, 300000), .round = try_round, .user = &s };
    campaign_run(&c);
    CHECK_EQ(c.died, 0);
    CHECK_EQ(c.count.failed, 0);
    if (!getenv(c.name)) CHECK(c.count.built > 0 && c.count.ran > 0);
    for (uint32_t i = 0; i < SEEDS; i++) free(s.at[i].at);
}

static const test tests[] = { T(damaged_models), { 0 } };
TEST_MAIN(tests)
