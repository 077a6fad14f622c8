/* SPDX-License-Identifier: Apache-2.0 */
/* test_twoplace.c - engines for a device that has memory of its own: the same results as on the CPU, whatever part of
 * the work the host does; the caller's memory in both places; asynchronous runs; failures of the device; and wrong
 * places refused. */
#include "../fuzz/engine_rig.h"
#include "base/env.h"
#include "base/hash.h"
#include "engine/format.h"
#include "faulty.h"
#include "model_text.h"
#include "samples.h"
#include "test.h"
#include "twoplace.h"

#include <stdio.h>

/* Which of the CPU's kernels the host does without: none, some, others, all. */
static const uint64_t hidden_sets[] = { 0, 0x5555555555555555u, 0xaaaaaaaaaaaaaaaau, 0x3333333333333333u, UINT64_MAX };

static sinter_status build(sample s, const char *kind, sinter_buffer *out, sinter_error *error)
{
    sinter_build_options o = { .struct_size = sizeof o, .threads = 1, .tune = SINTER_TUNE_OFF, .device = kind };
    o.profile = sample_profiles(s, &o.profile_count);
    const bytes model = sample_model(s);
    const sinter_status status = sinter_build_memory(model.at, model.size, &o, out, error);
    free(model.at);
    return status;
}

typedef struct rig {
    sinter_engine *g;
    sinter_context *c;
    sinter_error error;
} rig;

static bool rig_open(rig *r, sample s, const char *kind)
{
    sinter_buffer file = { 0 };
    const sinter_engine_options o = { .struct_size = sizeof o, .threads = 1 };
    *r = (rig){ 0 };
    bool ok = CHECK_EQ(build(s, kind, &file, &r->error), SINTER_OK);
    ok = ok && CHECK_EQ(sinter_engine_load_memory(file.data, file.size, &o, &r->g, &r->error), SINTER_OK);
    ok = ok && CHECK_EQ(sinter_context_create(r->g, NULL, &r->c, &r->error), SINTER_OK);
    if (!ok) printf("%s: %s\n", sample_name(s), r->error.text);
    sinter_buffer_free(&file);
    return ok;
}

static void rig_close(rig *r)
{
    sinter_context_destroy(r->c);
    sinter_engine_release(r->g);
    CHECK_EQ(twoplace.misuse, 0);
    CHECK_EQ(twoplace.live, 0);
}

/* ---- the same results ---- */

static bool same_tensor(const sinter_tensor *a, const sinter_tensor *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank || memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) != 0)
        return false;
    const size_t size = sinter_tensor_size(a);
    if (a->dtype != SINTER_DTYPE_F32) return !size || !memcmp(a->data, b->data, size);
    for (size_t i = 0; i < size / 4; i++) {
        const float x = ((float *)a->data)[i], y = ((float *)b->data)[i];
        const float gap = x > y ? x - y : y - x, large = x > 0 ? x : -x;
        if (!(gap <= 1e-5f + 1e-4f * large)) return false;
    }
    return true;
}

static bool same_results(const rig *a, const rig *b)
{
    for (uint32_t i = 0; i < sinter_engine_io_count(a->g); i++) {
        sinter_io io;
        sinter_tensor x, y;
        if (sinter_engine_io(a->g, i, 0, &io) != SINTER_OK) return false;
        if (io.is_input) continue;
        if (sinter_context_output(a->c, io.name, &x, NULL) != SINTER_OK) return false;
        if (sinter_context_output(b->c, io.name, &y, NULL) != SINTER_OK) return false;
        if (y.place != SINTER_PLACE_HOST || !same_tensor(&x, &y)) return false;
    }
    return true;
}

static void same_as_on_the_cpu(void)
{
    for (int i = 0; i < SAMPLE_COUNT; i++) {
        rig cpu;
        if (!rig_open(&cpu, (sample)i, "cpu")) continue;
        for (size_t h = 0; h < sizeof hidden_sets / sizeof *hidden_sets; h++) {
            rig two;
            twoplace.hidden = hidden_sets[h];
            if (rig_open(&two, (sample)i, "cuda")) {
                for (int round = 0; round < 6; round++) {
                    sample_data d;
                    if (!CHECK(sample_data_make(cpu.g, 0, (sample_size)(round % 3), (uint64_t)round / 2, 1u << 20, &d)))
                        continue;
                    CHECK_EQ(sample_data_set(&d, cpu.c, NULL), SINTER_OK);
                    CHECK_EQ(sample_data_set(&d, two.c, NULL), SINTER_OK);
                    CHECK_EQ(sinter_context_run(cpu.c, &cpu.error), SINTER_OK);
                    bool ok = CHECK_EQ(sinter_context_run(two.c, &two.error), SINTER_OK);
                    ok = ok && CHECK(same_results(&cpu, &two));
                    if (!ok)
                        printf("%s, kernels hidden %zu, round %d: %s\n", sample_name((sample)i), h, round,
                               two.error.text);
                    sample_data_free(&d);
                }
            }
            twoplace.hidden = hidden_sets[h];
            sinter_context_destroy(two.c);
            sinter_engine_release(two.g);
            CHECK_EQ(twoplace.live, 0);
        }
        twoplace.hidden = 0;
        rig_close(&cpu);
    }
}

/* ---- weights that are streamed ---- */

static bool load_with(const sinter_buffer *file, uint64_t budget, rig *r)
{
    sinter_engine_options o = SINTER_ENGINE_OPTIONS;
    o.threads = 1;
    o.weight_budget = budget;
    *r = (rig){ 0 };
    return CHECK_EQ(sinter_engine_load_memory(file->data, file->size, &o, &r->g, &r->error), SINTER_OK) &&
           CHECK_EQ(sinter_context_create(r->g, NULL, &r->c, &r->error), SINTER_OK);
}

static void check_info(const sinter_engine *g, uint64_t budget)
{
    sinter_engine_info info = SINTER_ENGINE_INFO;
    CHECK_EQ(sinter_engine_describe(g, &info, NULL), SINTER_OK);
    CHECK(info.device_weights_size <= budget || !budget);
    CHECK_EQ(info.device_weights_size + info.streamed_size, info.streamable_size);
    CHECK_EQ(info.streamed_size != 0, info.weight_scratch_size != 0);
    CHECK(info.weight_scratch_size <= 2 * info.streamable_size);
}

static void compare_runs(sample s, rig *cpu, rig *two, uint64_t budget)
{
    for (int round = 0; round < 4; round++) {
        sample_data d;
        if (!CHECK(sample_data_make(cpu->g, 0, (sample_size)(round % 3), 3, 1u << 20, &d))) continue;
        CHECK_EQ(sample_data_set(&d, cpu->c, NULL), SINTER_OK);
        CHECK_EQ(sample_data_set(&d, two->c, NULL), SINTER_OK);
        CHECK_EQ(sinter_context_run(cpu->c, &cpu->error), SINTER_OK);
        bool ok = CHECK_EQ(sinter_context_run(two->c, &two->error), SINTER_OK);
        ok = ok && CHECK(same_results(cpu, two));
        if (!ok) printf("%s, budget %llu: %s\n", sample_name(s), (unsigned long long)budget, two->error.text);
        sample_data_free(&d);
    }
}

static void run_streamed(sample s, const sinter_buffer *file, uint64_t budget, long *copies)
{
    rig two, cpu;
    if (!rig_open(&cpu, s, "cpu")) return;
    if (load_with(file, budget, &two)) {
        const long before = twoplace.copies;
        check_info(two.g, budget);
        compare_runs(s, &cpu, &two, budget);
        *copies = twoplace.copies - before;
        CHECK_EQ(sinter_engine_set_weight_budget(two.g, 0, &two.error), SINTER_INVALID_ARG);
        CHECK_HAS(two.error.text, "the engine has 1 contexts");
    }
    sinter_context_destroy(two.c);
    two.c = NULL;
    CHECK_EQ(sinter_engine_set_weight_budget(two.g, budget / 2, &two.error), SINTER_OK);
    check_info(two.g, budget / 2);
    CHECK_EQ(sinter_context_create(two.g, NULL, &two.c, NULL), SINTER_OK);
    compare_runs(s, &cpu, &two, budget / 2);
    rig_close(&two);
    sinter_context_destroy(cpu.c);
    sinter_engine_release(cpu.g);
}

static void weights_are_streamed(void)
{
    for (int s = 0; s < SAMPLE_COUNT; s++) {
        static const uint64_t budgets[] = { 0, 1, 200, 2000, 1 << 20 };
        sinter_buffer file = { 0 };
        sinter_error error;
        long copies[COUNT_OF(budgets)] = { 0 };
        if (!CHECK_EQ(build((sample)s, "cuda", &file, &error), SINTER_OK)) continue;
        for (size_t i = 0; i < COUNT_OF(budgets); i++) run_streamed((sample)s, &file, budgets[i], &copies[i]);
        CHECK_EQ(copies[0], copies[4]);
        CHECK(copies[1] >= copies[2] && copies[2] >= copies[3] && copies[3] >= copies[0]);
        if (s == SAMPLE_CONV || s == SAMPLE_LSTM) CHECK(copies[1] > copies[0]);
        sinter_buffer_free(&file);
    }
}

/* Slots are used again and again, in the model and in a body that repeats; a weight that two steps read is in both.
 * Work that nobody has ordered is done early or late: both show. */
static void slots_are_used_again(void)
{
    /* Weights of one shape would be one weight. */
    static const char *const line =
        "in x f32 4,32; in n i64 ; in c bool ; a = MatMul x %32,33; b = Tanh a; d = MatMul b %33,34; e = Tanh d;"
        "f = MatMul e %34,35; g = Tanh f; h = MatMul g %35,36; i = Tanh h; j = MatMul i %36,40; k = Tanh j;"
        "l, s = Loop n c k body=(in o i64 ; in p bool ; in q f32 4,40; r = Identity p; t = MatMul q %40,41; u = Tanh t;"
        "v = MatMul u %41,40; w = Tanh v; out r; out w; out w);"
        "m = MatMul l %40,32; y = Tanh m; out y; out s";
    sinter_buffer made = model_build(line, (model_device){ .kind = "cuda" });
    rig whole;
    float x[4 * 32];
    int64_t n = 5;
    uint8_t more = 1;
    const sinter_tensor given[] = {
        { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { 4, 32 }, .data = x },
        { .dtype = SINTER_DTYPE_I64, .data = &n },
        { .dtype = SINTER_DTYPE_BOOL, .data = &more },
    };
    static const char *const name[] = { "x", "n", "c" };
    uint64_t seed = 2;
    if (!load_with(&made, 0, &whole)) return;
    for (int eager = 0; eager < 2; eager++) {
        for (uint64_t budget = 1; budget < 40000; budget = budget * 2 + 700) {
            rig two;
            twoplace.is_eager = eager;
            if (!load_with(&made, budget, &two)) continue;
            for (int round = 0; round < 3; round++) {
                sample_fill(x, sizeof x, SINTER_DTYPE_F32, &seed);
                for (int i = 0; i < 3; i++) {
                    CHECK_EQ(sinter_context_set_input(whole.c, name[i], &given[i], NULL), SINTER_OK);
                    CHECK_EQ(sinter_context_set_input(two.c, name[i], &given[i], NULL), SINTER_OK);
                }
                CHECK_EQ(sinter_context_run(whole.c, &whole.error), SINTER_OK);
                CHECK_EQ(sinter_context_run(two.c, &two.error), SINTER_OK);
                if (!CHECK(same_results(&whole, &two)))
                    printf("budget %llu, eager %d\n", (unsigned long long)budget, eager);
            }
            sinter_context_destroy(two.c);
            sinter_engine_release(two.g);
        }
    }
    twoplace.is_eager = false;
    rig_close(&whole);
    sinter_buffer_free(&made);
}

/* The first run with a shape may allocate; no later one does, on either side. */
static void steady_runs_allocate_nothing(void)
{
    for (int i = 0; i < 2 * SAMPLE_COUNT; i++) {
        faulty f = { .budget = -1 };
        const sinter_allocator allocator = { &f, faulty_resize };
        const sinter_env_options given = { .struct_size = sizeof given, .allocator = &allocator };
        const sinter_engine_options o = { .struct_size = sizeof o, .env = &given, .threads = 1 };
        sinter_buffer file = { 0 };
        rig r = { 0 };
        sample_data d[2];
        twoplace.hidden = i < SAMPLE_COUNT ? 0 : hidden_sets[1];
        CHECK_EQ(build((sample)(i % SAMPLE_COUNT), "cuda", &file, &r.error), SINTER_OK);
        CHECK_EQ(sinter_engine_load_memory(file.data, file.size, &o, &r.g, &r.error), SINTER_OK);
        CHECK_EQ(sinter_context_create(r.g, NULL, &r.c, &r.error), SINTER_OK);
        for (int k = 0; k < 2; k++) CHECK(sample_data_make(r.g, 0, k ? SAMPLE_MAX : SAMPLE_OPT, 9, 1u << 20, &d[k]));
        for (int round = 0; round < 4; round++) {
            const long before = f.requests, blocks = twoplace.allocations;
            for (int k = 0; k < 2; k++) {
                CHECK_EQ(sample_data_set(&d[k], r.c, NULL), SINTER_OK);
                CHECK_EQ(sinter_context_run(r.c, &r.error), SINTER_OK);
                CHECK_EQ(sinter_context_run(r.c, &r.error), SINTER_OK);
            }
            if (round && !(CHECK_EQ(twoplace.allocations, blocks) && CHECK_EQ(f.requests, before)))
                printf("%s, round %d\n", sample_name((sample)(i % SAMPLE_COUNT)), round);
        }
        for (int k = 0; k < 2; k++) sample_data_free(&d[k]);
        rig_close(&r);
        CHECK_EQ(f.live, 0);
        CHECK_EQ(f.misuse, 0);
        sinter_buffer_free(&file);
    }
    twoplace.hidden = 0;
}

/* ---- the caller's memory ---- */

/* Inputs in the device's memory at an offset of so many bytes, the outputs as well. */
static void run_on_device(rig *r, const rig *cpu, const sample_data *d, size_t offset, const char *what)
{
    uint8_t *in[SAMPLE_IO_MAX] = { 0 }, *out[SAMPLE_IO_MAX] = { 0 };
    size_t size[SAMPLE_IO_MAX] = { 0 }, out_size[SAMPLE_IO_MAX] = { 0 };
    bool ok = true;
    for (uint32_t i = 0; i < d->count; i++) {
        size[i] = sinter_tensor_size(&d->at[i]) + 64;
        in[i] = twoplace_alloc(size[i]);
        twoplace_write(in[i] + offset, d->at[i].data, size[i] - 64);
        sinter_tensor t = d->at[i];
        t.data = in[i] + offset;
        t.place = SINTER_PLACE_DEVICE;
        ok = ok && CHECK_EQ(sinter_context_set_input(r->c, d->name[i], &t, &r->error), SINTER_OK);
    }
    for (uint32_t i = 0, k = 0; i < sinter_engine_io_count(r->g); i++) {
        sinter_io io;
        sinter_tensor want;
        CHECK_EQ(sinter_engine_io(r->g, i, 0, &io), SINTER_OK);
        if (io.is_input) continue;
        CHECK_EQ(sinter_context_output(cpu->c, io.name, &want, NULL), SINTER_OK);
        out_size[k] = sinter_tensor_size(&want) + 64;
        out[k] = twoplace_alloc(out_size[k]);
        ok = ok && CHECK_EQ(sinter_context_set_output(r->c, io.name, out[k] + offset, out_size[k] - 64,
                                                      SINTER_PLACE_DEVICE, &r->error),
                            SINTER_OK);
        k++;
    }
    ok = ok && CHECK_EQ(sinter_context_run(r->c, &r->error), SINTER_OK);
    for (uint32_t i = 0, k = 0; ok && i < sinter_engine_io_count(r->g); i++) {
        sinter_io io;
        sinter_tensor want, got;
        CHECK_EQ(sinter_engine_io(r->g, i, 0, &io), SINTER_OK);
        if (io.is_input) continue;
        CHECK_EQ(sinter_context_output(cpu->c, io.name, &want, NULL), SINTER_OK);
        ok = CHECK_EQ(sinter_context_output(r->c, io.name, &got, NULL), SINTER_OK);
        CHECK(got.place == SINTER_PLACE_DEVICE && got.data == out[k] + offset);
        const size_t length = sinter_tensor_size(&got);
        got.data = malloc(length + 1);
        if (!got.data) abort();
        twoplace_read(got.data, out[k] + offset, length);
        ok = ok && CHECK(same_tensor(&want, &got));
        free(got.data);
        k++;
    }
    if (!ok) printf("%s, offset %zu: %s\n", what, offset, r->error.text);
    for (uint32_t i = 0; i < sinter_engine_io_count(r->g); i++) {
        sinter_io io;
        CHECK_EQ(sinter_engine_io(r->g, i, 0, &io), SINTER_OK);
        if (!io.is_input)
            CHECK_EQ(sinter_context_set_output(r->c, io.name, NULL, 0, SINTER_PLACE_HOST, NULL), SINTER_OK);
    }
    for (uint32_t i = 0; i < SAMPLE_IO_MAX; i++) {
        twoplace_free(in[i], size[i]);
        twoplace_free(out[i], out_size[i]);
    }
}

static void memory_of_the_device(void)
{
    for (int i = 0; i < SAMPLE_COUNT; i++) {
        for (size_t h = 0; h < 3; h++) {
            rig cpu, two;
            twoplace.hidden = hidden_sets[h];
            const bool is_open = rig_open(&cpu, (sample)i, "cpu");
            if (rig_open(&two, (sample)i, "cuda") && is_open) {
                sample_data d;
                CHECK(sample_data_make(cpu.g, 0, SAMPLE_OPT, 3, 1u << 20, &d));
                CHECK_EQ(sample_data_set(&d, cpu.c, NULL), SINTER_OK);
                CHECK_EQ(sinter_context_run(cpu.c, NULL), SINTER_OK);
                static const size_t offset[] = { 0, 16, 8, 0 };
                for (int k = 0; k < 4; k++) run_on_device(&two, &cpu, &d, offset[k], sample_name((sample)i));
                CHECK_EQ(sample_data_set(&d, two.c, NULL), SINTER_OK); /* and back to the host's */
                CHECK_EQ(sinter_context_run(two.c, NULL), SINTER_OK);
                CHECK(same_results(&cpu, &two));
                sample_data_free(&d);
            }
            rig_close(&two);
            rig_close(&cpu);
        }
    }
    twoplace.hidden = 0;
}

static void host_buffers(void)
{
    rig r;
    float want[10], mine[12];
    sinter_tensor y;
    sample_data d;
    if (!rig_open(&r, SAMPLE_CONV, "cuda")) return;
    CHECK(sample_data_make(r.g, 0, SAMPLE_OPT, 3, 1u << 20, &d));
    d.at[0].dim[0] = 2;
    CHECK_EQ(sample_data_set(&d, r.c, NULL), SINTER_OK);
    CHECK_EQ(sinter_context_run(r.c, NULL), SINTER_OK);
    CHECK_EQ(sinter_context_output(r.c, "y", &y, NULL), SINTER_OK);
    memcpy(want, y.data, sizeof want);
    for (int i = 0; i < 12; i++) mine[i] = 77;
    CHECK_EQ(sinter_context_set_output(r.c, "y", mine, sizeof want, SINTER_PLACE_HOST, NULL), SINTER_OK);
    CHECK_EQ(sinter_context_run(r.c, NULL), SINTER_OK);
    CHECK_EQ(sinter_context_output(r.c, "y", &y, NULL), SINTER_OK);
    CHECK(y.data == mine && !memcmp(mine, want, sizeof want) && mine[10] == 77);
    CHECK_EQ(sinter_context_set_output(r.c, "y", mine, sizeof want - 1, SINTER_PLACE_HOST, NULL), SINTER_OK);
    CHECK_EQ(sinter_context_run(r.c, &r.error), SINTER_INVALID_ARG);
    CHECK_HAS(r.error.text, "'y' needs 40 bytes");
    CHECK_EQ(sinter_context_set_output(r.c, "y", mine, sizeof want, (sinter_place)7, &r.error), SINTER_INVALID_ARG);
    sinter_tensor t = d.at[0];
    t.place = (sinter_place)-1;
    CHECK_EQ(sinter_context_set_input(r.c, "x", &t, &r.error), SINTER_INVALID_ARG);
    sample_data_free(&d);
    rig_close(&r);
}

/* ---- asynchronous runs ---- */

static void runs_go_on_alone(void)
{
    rig r, cpu;
    sinter_tensor y;
    sample_data d[2];
    int native = 0;
    if (!rig_open(&cpu, SAMPLE_CONV, "cpu") || !rig_open(&r, SAMPLE_CONV, "cuda")) return;
    sinter_context_destroy(r.c);
    const sinter_context_options o = { .struct_size = sizeof o, .stream = &native };
    CHECK_EQ(sinter_context_create(r.g, &o, &r.c, &r.error), SINTER_OK);
    CHECK(twoplace.native == &native);
    for (int k = 0; k < 2; k++) CHECK(sample_data_make(r.g, 0, SAMPLE_OPT, (uint64_t)k, 1u << 20, &d[k]));
    CHECK(sinter_context_is_done(r.c));
    CHECK_EQ(sinter_context_wait(r.c, NULL), SINTER_OK);
    for (int k = 0; k < 4; k++) {
        CHECK_EQ(sample_data_set(&d[k % 2], r.c, NULL), SINTER_OK);
        if (!CHECK_EQ(sinter_context_run_async(r.c, &r.error), SINTER_OK)) printf("%s\n", r.error.text);
        CHECK(!sinter_context_is_done(r.c));
        r.error = (sinter_error){ 0 };
        CHECK(sinter_context_output(r.c, "y", &y, &r.error) != SINTER_OK);
        CHECK_HAS(r.error.text, "wait");
        if (k == 2) continue; /* the next waits for it */
        CHECK_EQ(sinter_context_wait(r.c, NULL), SINTER_OK);
        CHECK(sinter_context_is_done(r.c));
        CHECK_EQ(sample_data_set(&d[k % 2], cpu.c, NULL), SINTER_OK);
        CHECK_EQ(sinter_context_run(cpu.c, NULL), SINTER_OK);
        CHECK(same_results(&cpu, &r));
    }
    CHECK_EQ(sinter_context_run_async(r.c, NULL), SINTER_OK); /* left under way */
    CHECK_EQ(sinter_context_run_async(cpu.c, NULL), SINTER_OK);
    CHECK(sinter_context_is_done(cpu.c));
    CHECK_EQ(sinter_context_output(cpu.c, "y", &y, NULL), SINTER_OK);
    for (int k = 0; k < 2; k++) sample_data_free(&d[k]);
    sinter_context_destroy(cpu.c);
    sinter_engine_release(cpu.g);
    rig_close(&r);
    /* Where the host decides in the middle. */
    if (!rig_open(&r, SAMPLE_REGIONS, "cuda")) return;
    CHECK(sample_data_make(r.g, 0, SAMPLE_OPT, 1, 1u << 20, &d[0]));
    CHECK_EQ(sample_data_set(&d[0], r.c, NULL), SINTER_OK);
    CHECK_EQ(sinter_context_run_async(r.c, &r.error), SINTER_UNSUPPORTED);
    CHECK_HAS(r.error.text, "needs the host");
    CHECK_EQ(sinter_context_run(r.c, NULL), SINTER_OK);
    sample_data_free(&d[0]);
    rig_close(&r);
}

/* What a kernel found wrong in the data is told by the run, or by who waits for it. */
static void data_that_is_wrong(void)
{
    rig r;
    sinter_tensor y;
    if (!rig_open(&r, SAMPLE_GATHER, "cuda")) return;
    int64_t id[4] = { 1, 2, 10, 3 };
    const sinter_tensor t = { .dtype = SINTER_DTYPE_I64, .rank = 1, .dim = { 4 }, .data = id };
    CHECK_EQ(sinter_context_set_input(r.c, "id", &t, NULL), SINTER_OK);
    CHECK_EQ(sinter_context_run(r.c, &r.error), SINTER_INVALID_MODEL);
    CHECK_HAS(r.error.text, "index 10");
    if (sinter_context_run_async(r.c, &r.error) == SINTER_OK) {
        CHECK_EQ(sinter_context_wait(r.c, &r.error), SINTER_INVALID_MODEL);
        CHECK_EQ(sinter_context_wait(r.c, &r.error), SINTER_OK);
        CHECK_EQ(sinter_context_output(r.c, "y", &y, NULL), SINTER_OK); /* defined, though not meaningful */
    }
    id[2] = 3;
    CHECK_EQ(sinter_context_run(r.c, NULL), SINTER_OK);
    rig_close(&r);
}

/* ---- the device fails ---- */

static sinter_status once(const sinter_buffer *file, const char *name, sinter_error *error)
{
    const sinter_engine_options o = { .struct_size = sizeof o, .threads = 1 };
    sinter_engine *g = NULL;
    sinter_context *c = NULL;
    sample_data d = { 0 };
    sinter_status s = sinter_engine_load_memory(file->data, file->size, &o, &g, error);
    if (s == SINTER_OK) s = sinter_context_create(g, NULL, &c, error);
    if (s == SINTER_OK && !CHECK(sample_data_make(g, 0, SAMPLE_OPT, 1, 1u << 20, &d))) printf("%s\n", name);
    if (s == SINTER_OK) s = sample_data_set(&d, c, error);
    if (s == SINTER_OK) s = sinter_context_run(c, error);
    if (s == SINTER_OK) CHECK(sample_results(g, c) != 0);
    sample_data_free(&d);
    sinter_context_destroy(c);
    sinter_engine_release(g);
    return s;
}

static void every_call_may_fail(void)
{
    for (int i = 0; i < SAMPLE_COUNT; i++) {
        sinter_buffer file = { 0 };
        twoplace.hidden = hidden_sets[i % 3];
        CHECK_EQ(build((sample)i, "cuda", &file, NULL), SINTER_OK);
        bool is_done = false;
        for (long n = 0; n < 2000 && !is_done; n++) {
            sinter_error error = { 0 };
            twoplace.budget = n;
            const sinter_status s = once(&file, sample_name((sample)i), &error);
            is_done = s == SINTER_OK && twoplace.budget > 0;
            if (!CHECK((s == SINTER_OK) == (error.length == 0) && s != SINTER_INTERNAL))
                printf("%s, call %ld: %s\n", sample_name((sample)i), n, error.text);
            twoplace.budget = -1;
            CHECK_EQ(twoplace.live, 0);
        }
        CHECK(is_done);
        sinter_buffer_free(&file);
    }
    twoplace.hidden = 0;
    CHECK_EQ(twoplace.misuse, 0);
}

/* ---- what is opened for what ---- */

static engine_section *section_of(uint8_t *at, uint32_t kind)
{
    engine_section *s = (engine_section *)(void *)(at + sizeof(engine_header));
    while (s->kind != kind) s++;
    return s;
}

static sinter_status load(const sinter_buffer *b, const sinter_engine_options *o, sinter_error *error)
{
    sinter_engine *g = NULL;
    *error = (sinter_error){ 0 };
    const sinter_status s = sinter_engine_load_memory(b->data, b->size, o, &g, error);
    sinter_engine_release(g);
    return s;
}

static void engines_name_their_device(void)
{
    sinter_buffer b = { 0 };
    sinter_error error = { 0 };
    sinter_engine_options o = { .struct_size = sizeof o, .threads = 1 };
    CHECK_EQ(build(SAMPLE_CONV, "cuda", &b, &error), SINTER_OK);
    o.device = "cuda:3";
    CHECK_EQ(load(&b, &o, &error), SINTER_OK);
    o.device = "cuda";
    CHECK_EQ(load(&b, &o, &error), SINTER_OK);
    o.device = "cpu";
    CHECK_EQ(load(&b, &o, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "built for 'cuda'");
    o.device = NULL;
    /* To look at, on a machine without the device: nothing of it is touched. */
    sinter_engine *g = NULL;
    sinter_context *c = NULL;
    o.no_device = 1;
    const long waits = twoplace.waits, blocks = twoplace.allocations;
    CHECK_EQ(sinter_engine_load_memory(b.data, b.size, &o, &g, &error), SINTER_OK);
    CHECK(waits == twoplace.waits && blocks == twoplace.allocations);
    CHECK_EQ(sinter_context_create(g, NULL, &c, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "without a device");
    sinter_engine_release(g);
    o.no_device = 0;
    /* Another kind of device, and another chip. */
    uint8_t *at = b.data;
    engine_notes *notes = (engine_notes *)(void *)(at + section_of(at, SECTION_NOTES)->at);
    char *name = (char *)at + section_of(at, SECTION_STRINGS)->at + notes->backend;
    CHECK_STR(name, "cuda");
    memcpy(name, "tpu!", 4);
    parts_seal(at, b.size);
    CHECK_EQ(load(&b, &o, &error), SINTER_UNSUPPORTED);
    CHECK_HAS(error.text, "no backend 'tpu!'");
    memcpy(name, "cuda", 4);
    notes->isa = 75;
    parts_seal(at, b.size);
    CHECK_EQ(load(&b, &o, &error), SINTER_INCOMPATIBLE);
    CHECK_HAS(error.text, "7.5");
    sinter_buffer_free(&b);
    CHECK_EQ(twoplace.misuse, 0);
}

typedef struct printed {
    char at[1 << 16];
    size_t length;
} printed;

static void keep(void *user, const char *from, size_t length)
{
    printed *p = user;
    if (length > sizeof p->at - 1 - p->length) length = sizeof p->at - 1 - p->length;
    memcpy(p->at + p->length, from, length);
    p->length += length;
    p->at[p->length] = 0;
}

/* What the host does is shown, and so is every copy. */
static void places_are_shown(void)
{
    static printed p;
    rig r;
    if (!rig_open(&r, SAMPLE_CONV, "cuda")) return;
    p.length = 0;
    CHECK_EQ(sinter_engine_print(r.g, SINTER_PRINT_TEXT, keep, &p, NULL), SINTER_OK);
    CHECK_HAS(p.at, "  1 graph launch\n");
    CHECK(!strstr(p.at, "host"));
    rig_close(&r);
    if (!rig_open(&r, SAMPLE_REGIONS, "cuda")) return;
    p.length = 0;
    CHECK_EQ(sinter_engine_print(r.g, SINTER_PRINT_TEXT, keep, &p, NULL), SINTER_OK);
    if (getenv("TWOPLACE_PRINT")) printf("%s\n", p.at);
    CHECK_HAS(p.at, "; by the host: ");
    CHECK_HAS(p.at, " to host");
    CHECK_HAS(p.at, "two_transfer");
    p.length = 0;
    CHECK_EQ(sinter_engine_print(r.g, SINTER_PRINT_JSON, keep, &p, NULL), SINTER_OK);
    CHECK_HAS(p.at, "\"where\":\"host\"");
    CHECK_HAS(p.at, "\"where\":\"to host\"");
    CHECK_HAS(p.at, "\"places\":[\"host\"]");
    CHECK_HAS(p.at, "\"backend\":\"cuda\"");
    rig_close(&r);
}

static void code_is_trusted_or_not(void)
{
    env e;
    env_init(&e, NULL, NULL);
    sinter_buffer b = { 0 };
    sinter_error error = { 0 };
    sinter_engine_options o = { .struct_size = sizeof o, .threads = 1 };
    CHECK_EQ(build(SAMPLE_CONV, "cuda", &b, NULL), SINTER_OK);
    /* The same engine with a section of code. */
    engine_code_header h = { .key = { 1 }, .size = 16, .sum = hash64("sixteen bytes...", 16, 0) };
    engine_header head;
    memcpy(&head, b.data, sizeof head);
    engine_section *code = section_of(b.data, SECTION_CODE);
    CHECK(code->size == 0 && code->kind == SECTION_CODE && !(code->flags & SECTION_REQUIRED));
    const size_t at = code->at, size = at + 64;
    uint8_t *copy = calloc(1, size);
    if (!copy) abort();
    memcpy(copy, b.data, b.size < size ? b.size : size);
    memcpy(copy + at, &h, sizeof h);
    memcpy(copy + at + sizeof h, "sixteen bytes...", 16);
    section_of(copy, SECTION_CODE)->size = 64;
    section_of(copy, SECTION_INPUTS)->at += 64; /* it and those behind it are empty */
    section_of(copy, SECTION_STATE)->at += 64;
    section_of(copy, SECTION_DETAIL)->at += 64;
    parts_seal(copy, size);
    const sinter_buffer with = { .data = copy, .size = size };
    const long before = twoplace.imports;
    if (!CHECK_EQ(load(&with, &o, &error), SINTER_OK)) printf("%s\n", error.text);
    CHECK_EQ(twoplace.imports, before);
    o.trust_code = 1;
    CHECK_EQ(load(&with, &o, &error), SINTER_OK);
    CHECK_EQ(twoplace.imports, before + 1);
    o.no_device = 1;
    CHECK_EQ(load(&with, &o, &error), SINTER_OK);
    CHECK_EQ(twoplace.imports, before + 1);
    free(copy);
    sinter_buffer_free(&b);
}

/* ---- wrong places ---- */

/* Each storage in turn is said to lie in the other place: refused, or never touched by anyone who would mind. */
static void wrong_places_are_refused(void)
{
    long refused = 0, ran = 0;
    for (int i = 0; i < SAMPLE_COUNT; i++) {
        for (int kind = 0; kind < 2; kind++) {
            sinter_buffer b = { 0 };
            twoplace.hidden = hidden_sets[i % 3];
            CHECK_EQ(build((sample)i, kind ? "cuda" : "cpu", &b, NULL), SINTER_OK);
            const engine_section *s = section_of(b.data, SECTION_STORAGES);
            engine_storage *storage = (engine_storage *)(void *)((uint8_t *)b.data + s->at);
            for (size_t k = 1; k < s->size / sizeof *storage; k++) {
                if (!storage[k].kind) continue;
                sinter_error error = { 0 };
                storage[k].place ^= 1;
                parts_seal(b.data, b.size);
                const sinter_status status = once(&b, sample_name((sample)i), &error);
                ran += status == SINTER_OK;
                refused += status == SINTER_INVALID_MODEL;
                if (!CHECK(status == SINTER_INVALID_MODEL || (kind && status == SINTER_OK)))
                    printf("%s storage %zu: %s\n", sample_name((sample)i), k, error.text);
                storage[k].place ^= 1;
            }
            sinter_buffer_free(&b);
        }
    }
    twoplace.hidden = 0;
    CHECK_EQ(twoplace.misuse, 0);
    printf("%ld refused, %ld made no difference\n", refused, ran);
    CHECK(refused > 20 * ran);
}

static void damaged_engines(void)
{
    sinter_buffer file[SAMPLE_COUNT] = { { 0 } };
    for (int i = 0; i < SAMPLE_COUNT; i++) {
        twoplace.hidden = hidden_sets[i % 3];
        CHECK_EQ(build((sample)i, "cuda", &file[i], NULL), SINTER_OK);
    }
    twoplace.hidden = 0;
    rig_count count = { 0 };
    const long rounds = test_scale(3000, 100000);
    const char *one = getenv("CORRUPT_ENGINE");
    for (long round = one ? atol(one) : 0; round < rounds; round++) {
        uint64_t random = (uint64_t)round * 0x9E37u + 11;
        const sinter_buffer *a = &file[round % SAMPLE_COUNT], *b = &file[test_random(&random) % SAMPLE_COUNT];
        const image f = rig_damage((image){ a->data, a->size }, (image){ b->data, b->size }, true, &random);
        const long before = twoplace.misuse;
        rig_try(f.at, f.size, (uint64_t)round, &count);
        if (!CHECK(twoplace.misuse == before && twoplace.live == 0)) printf("round %ld\n", round);
        free(f.at);
        if (one) break;
    }
    printf("%ld tried, %ld loaded, %ld contexts, %ld runs, %ld runs refused, slowest %.1f s\n", count.tried,
           count.loaded, count.contexts, count.ran, count.refused_runs, count.slowest_s);
    CHECK_EQ(count.failed, 0);
    if (!one) CHECK(count.loaded > 0 && count.ran > 0);
    for (int i = 0; i < SAMPLE_COUNT; i++) sinter_buffer_free(&file[i]);
}

static const test tests[] = { T(same_as_on_the_cpu),
                              T(weights_are_streamed),
                              T(slots_are_used_again),
                              T(steady_runs_allocate_nothing),
                              T(memory_of_the_device),
                              T(host_buffers),
                              T(runs_go_on_alone),
                              T(data_that_is_wrong),
                              T(every_call_may_fail),
                              T(engines_name_their_device),
                              T(places_are_shown),
                              T(code_is_trusted_or_not),
                              T(wrong_places_are_refused),
                              T(damaged_engines),
                              { 0 } };
TEST_MAIN(tests)
