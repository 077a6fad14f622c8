/* SPDX-License-Identifier: Apache-2.0 */
/* engine_rig.c - see engine_rig.h. */
#include "engine_rig.h"

#include "base/env.h"
#include "base/os.h"
#include "engine/refit.h"
#include "engine_mutate.h"
#include "guarded.h"
#include "samples.h"
#include "sinter/sinter.h"
#include "test.h"

/* ---- damage of bytes ---- */

static void damage_bytes(image *f, image other, uint64_t *random)
{
    const size_t at = test_below(random, f->size), from = test_below(random, f->size);
    const size_t run = 1 + test_below(random, 64), far = test_below(random, other.size);
    switch (test_below(random, 7)) {
    case 0: f->at[at] ^= (uint8_t)(1u << test_below(random, 8)); break;
    case 1: f->at[at] = (uint8_t)test_random(random); break;
    case 2: f->size = at; break;
    case 3:
        if (at + run <= f->size && from + run <= f->size) memmove(f->at + at, f->at + from, run);
        break;
    case 4:
        if (at + run <= f->size && far + run <= other.size) memcpy(f->at + at, other.at + far, run);
        break;
    case 5: { /* the header and the table */
        uint8_t *x = &f->at[test_below(random, f->size < 640 ? f->size : 640)];
        *x = (uint8_t)(test_below(random, 2) ? *x ^ 1u << test_below(random, 8) : test_random(random));
        break;
    }
    default: { /* two sections change places in the table */
        engine_section a, b;
        uint8_t *table = f->at + sizeof(engine_header);
        const size_t x = test_below(random, SECTION_KIND_COUNT - 1) * sizeof a,
                     y = test_below(random, SECTION_KIND_COUNT - 1) * sizeof a;
        if (f->size < sizeof(engine_header) + (SECTION_KIND_COUNT - 1) * sizeof a) break;
        memcpy(&a, table + x, sizeof a);
        memcpy(&b, table + y, sizeof b);
        if (test_below(random, 2)) {
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

image rig_damage(image seed, image other, bool sealed, uint64_t *random)
{
    image f;
    if (sealed && test_below(random, 16)) {
        f = mutant_of(seed, other, random);
    } else {
        f = image_copy(seed.at, seed.size);
        for (uint64_t k = 1 + test_below(random, 3); k && f.size; k--) damage_bytes(&f, other, random);
    }
    if (sealed) parts_seal(f.at, f.size);
    uint8_t *exact = realloc(f.at, f.size ? f.size : 1); /* so that a sanitizer sees a byte too far */
    if (exact) f.at = exact;
    return f;
}

/* ---- trying ---- */

enum { IO_MAX = 16, RUNS = 6 };

/* What the caller of a context holds. Memory that was replaced, or that a call which failed was told of, is his again:
 * nobody may look at it. */
typedef struct caller {
    sinter_engine *g;
    sinter_context *c;
    uint32_t profile;
    uint64_t random;
    void *input[IO_MAX], *output[IO_MAX];
    size_t result[IO_MAX]; /* width of the last one */
} caller;

void rig_fill(void *to, size_t size, sinter_dtype dtype, uint64_t *random)
{
    static const float odd[] = { 0.0f, -0.0f, 1e38f, -1e38f, 1e-40f };
    uint8_t *at = to;
    const uint32_t width = sinter_dtype_bits(dtype) / 8;
    const bool is_float = dtype == SINTER_DTYPE_F32 || dtype == SINTER_DTYPE_F64, is_odd = test_below(random, 8) == 0;
    sample_fill(at, size, dtype, random);
    if (!width || dtype == SINTER_DTYPE_BOOL) return;
    for (size_t i = 0; i < size / width; i++) {
        const uint64_t r = test_random(random);
        const int64_t n = !is_odd ? (int64_t)(r % 4) : r % 5 == 0 ? (int64_t)(r >> 8) : (int64_t)(r % 9) - 4;
        const float f = odd[r / 3 % COUNT_OF(odd)];
        if (!is_float) memcpy(at + i * width, &n, width < 8 ? width : 8); /* least significant byte first */
        else if (dtype == SINTER_DTYPE_F32 && is_odd && r % 3 == 0) memcpy(at + i * 4, &f, 4);
    }
}

static bool set_input(caller *x, uint32_t i, const sinter_io *io, const sinter_tensor *t, sinter_error *error)
{
    const sinter_status s = sinter_context_set_input(x->c, io->name, t, error);
    guarded_give(x->input[i]);
    x->input[i] = s == SINTER_OK ? t->data : NULL;
    if (s != SINTER_OK) guarded_give(t->data);
    return s == SINTER_OK;
}

/* An input of the smallest, usual, largest or any size; now and then one that is refused. */
static bool give_input(caller *x, uint32_t i, uint32_t which, rig_count *count)
{
    sinter_io io;
    sinter_error error = { 0 };
    if (sinter_engine_io(x->g, i, x->profile, &io) != SINTER_OK) return false;
    sinter_tensor t = { .dtype = io.dtype, .rank = io.rank };
    for (uint32_t k = 0; k < io.rank; k++) {
        const int64_t list[] = { io.opt[k], io.min[k], io.max[k],
                                 io.min[k] + (int64_t)test_below(&x->random, io.max[k] > io.min[k] ? 3 : 1) };
        t.dim[k] = io.dim[k] >= 0 ? io.dim[k] : list[which % COUNT_OF(list)];
    }
    const size_t size = sinter_tensor_size(&t);
    t.data = guarded_take(size, test_below(&x->random, 3) == 0);
    if (!t.data) return false;
    rig_fill(t.data, size, t.dtype, &x->random);
    if (test_below(&x->random, 12) == 0 && io.rank) {
        sinter_tensor wrong = t;
        wrong.dim[test_below(&x->random, io.rank)] = -1;
        count->failed += !CHECK(!set_input(x, i, &io, &wrong, &error));
        return true;
    }
    if (set_input(x, i, &io, &t, &error)) return true;
    count->last = error;
    return false;
}

/* Memory of the context, of the size that the last result had, or of another. */
static void give_output(caller *x, uint32_t i, const char *name)
{
    const size_t last = x->result[i], list[] = { last, last, last / 2, last + 64, 64 };
    const size_t size = list[test_below(&x->random, COUNT_OF(list))];
    void *at = test_below(&x->random, 3) && size ? guarded_take(size, false) : NULL;
    const sinter_status s = sinter_context_set_output(x->c, name, at, at ? size : 0, SINTER_PLACE_HOST, NULL);
    guarded_give(x->output[i]);
    x->output[i] = s == SINTER_OK ? at : NULL;
    if (s != SINTER_OK) guarded_give(at);
}

static void run_once(caller *x, uint32_t which, rig_count *count)
{
    const uint32_t ios = sinter_engine_io_count(x->g);
    sinter_error error = { 0 };
    sinter_io io;
    for (uint32_t i = 0; i < ios; i++) {
        if (sinter_engine_io(x->g, i, x->profile, &io) != SINTER_OK) return;
        if (!io.is_input && test_below(&x->random, 2)) give_output(x, i, io.name);
        if (io.is_input && (which < 3 || test_below(&x->random, 4)) && !give_input(x, i, which, count)) return;
    }
    if (test_below(&x->random, 4) == 0) {
        const int64_t rows = (int64_t)test_below(&x->random, 12) - 1;
        const sinter_status s = sinter_context_set_rows(x->c, rows, &error);
        count->failed += !CHECK(s == SINTER_OK || s == SINTER_INVALID_ARG);
        error = (sinter_error){ 0 };
    }
    if (test_below(&x->random, 6) == 0) count->failed += !CHECK_EQ(sinter_context_reset_state(x->c, NULL), SINTER_OK);
    const sinter_status s = sinter_context_run(x->c, &error);
    uint8_t last = 0;
    for (uint32_t i = 0; s == SINTER_OK && i < ios; i++) {
        sinter_tensor t;
        if (sinter_engine_io(x->g, i, x->profile, &io) != SINTER_OK || io.is_input) continue;
        if (sinter_context_output(x->c, io.name, &t, NULL) != SINTER_OK) continue;
        x->result[i] = sinter_tensor_size(&t);
        for (size_t k = 0; k < x->result[i]; k++) last ^= ((const uint8_t *)t.data)[k];
    }
    count->seen ^= last;
    count->failed += !CHECK(s != SINTER_INTERNAL);
    count->failed += !CHECK((s == SINTER_OK) == (error.length == 0));
    count->ran += s == SINTER_OK;
    count->refused_runs += s != SINTER_OK;
    if (s != SINTER_OK) count->last = error;
}

static void run(sinter_engine *g, uint32_t profile, uint64_t seed, rig_count *count)
{
    const sinter_context_options o = { .struct_size = sizeof o, .profile = profile };
    caller x = { .g = g, .profile = profile, .random = seed };
    sinter_error error = { 0 };
    if (sinter_engine_io_count(g) > IO_MAX) return;
    if (sinter_context_create(g, &o, &x.c, &error) != SINTER_OK) return;
    count->contexts++;
    for (uint32_t i = 0; i < RUNS; i++) run_once(&x, i, count);
    sinter_context_destroy(x.c);
    for (uint32_t i = 0; i < IO_MAX; i++) guarded_give(x.input[i]), guarded_give(x.output[i]);
}

static void ignore(void *user, const char *words, size_t length)
{
    *(size_t *)user += words ? length : 0;
}

static const void *zeros(void *user, const char *name, uint64_t digest, uint64_t size)
{
    static const uint8_t at[1 << 16];
    (void)user, (void)name, (void)digest;
    return size <= sizeof at ? at : NULL;
}

/* Takes the weights away, and makes each again from zeros. Both may be refused, but nothing else may happen. */
static bool refit(const sinter_engine *handle)
{
    const engine *g = (const engine *)(const void *)handle;
    env e = g->e;
    sinter_error error = { 0 };
    e.error = &error;
    const refit_options bare = { .strip = true }, full = { .find = zeros };
    bool ok = true;
    for (uint32_t i = 0; i < 2 && ok; i++) {
        uint8_t *made = NULL;
        size_t size = 0;
        error = (sinter_error){ 0 };
        const sinter_status s = engine_refit(&e, g, i ? &full : &bare, &made, &size);
        ok = s != SINTER_INTERNAL && (s == SINTER_OK) == (made != NULL);
        if (made) mem_free(&e, made, size, ENGINE_ALIGN);
    }
    return ok;
}

void rig_try(const uint8_t *at, size_t size, uint64_t seed, rig_count *count)
{
    const sinter_limits limits = { .memory_max = 4u << 20, .loop_max = 16 };
    const sinter_env_options given = { .struct_size = sizeof given, .limits = &limits };
    const sinter_engine_options o = { .struct_size = sizeof o, .env = &given, .threads = 1, .kernel_cache = "" };
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
        if (seed % 8 == 0) {
            count->failed += !CHECK_EQ(sinter_engine_print(g, SINTER_PRINT_TEXT, ignore, &printed, NULL), SINTER_OK);
            count->failed += !CHECK_EQ(sinter_engine_print(g, SINTER_PRINT_JSON, ignore, &printed, NULL), SINTER_OK);
            count->failed += !CHECK_EQ(
                sinter_engine_print_layers(g, SINTER_ALL_LAYERS, SINTER_PRINT_JSON, ignore, &printed, NULL), SINTER_OK);
        }
        for (uint32_t i = 0; i < sinter_engine_profile_count(g) && i < 3; i++) run(g, i, seed, count);
        count->failed += !CHECK(refit(g));
        sinter_engine_release(g);
    }
    const double seconds = (double)(os_time_ns() - start) * 1e-9;
    if (seconds > count->slowest_s) count->slowest_s = seconds;
}
