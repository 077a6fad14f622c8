/* SPDX-License-Identifier: Apache-2.0 */
/* test_emulator.c - the emulator itself: right kernels run, and each kind of fault is seen and named (faults.cu). */
#include "core/dtype.h"
#include "emulate.h"
#include "test.h"

#include <sys/mman.h>

enum { COUNT = 1 << 16, PAGES = COUNT * 4 };

static const char *const entries[] = { "exchange_right", "writes_early",         "waits_not",
                                       "reads_behind",   "copies_unwaited",      "threads_unmet",
                                       "one_more_sync",  "writes_beyond_shared", "warp_apart",
                                       "misaligned",     "bulk_right",           "bulk_short",
                                       "bulk_unwaited",  "registers_right",      "registers_not_given",
                                       "cluster_right",  "cluster_unmet",        "cluster_left_early",
                                       "narrows" };

struct fault_args {
    address in, out;
    small n;
};

static float *in, *out;
static char why[2000];

static float *pages(void)
{
    unsigned char *at = mmap(NULL, PAGES + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) exit(2);
    (void)mprotect(at + PAGES, 4096, PROT_NONE);
    return (float *)at;
}

/* 64 threads, or two such blocks in a cluster; the input at the end of its pages, its numbers are their places. */
static bool run(const char *entry, uint32_t cluster, int32_t n, bool is_reversed)
{
    static char key[EMULATED_KEY], path[1200];
    if (!in) {
        in = pages();
        out = pages();
        const emulated_source source = { .path = SINTER_SOURCE_DIR "/tests/cuda/emulator/faults.cu",
                                         .flags = "-DSM=90",
                                         .generated = "",
                                         .entry = entries,
                                         .entry_count = COUNT_OF(entries) };
        emulate_source(&source, true, key);
        if (!CHECK_EQ(emulate_compile((const char(*)[EMULATED_KEY])key, 1, 1), 0))
            (void)printf("%s\n", emulate_log(key, why, sizeof why));
    }
    const struct fault_args args = { .in = (uintptr_t)(n > 128 ? in : in + COUNT - 128),
                                     .out = (uintptr_t)out,
                                     .n = n };
    if (n <= 128)
        for (uint32_t i = 0; i < 128; i++) in[COUNT - 128 + i] = (float)i + 1;
    memset(out, 0, 128 * sizeof *out);
    const runtime_region region[] = { { "the input", in, PAGES, false }, { "the result", out, PAGES, false } };
    const runtime_launch l = { .name = entry,
                               .object = emulate_open(key, path, sizeof path),
                               .object_path = path,
                               .entry = entry,
                               .grid = { cluster, 1, 1 },
                               .block = 64,
                               .cluster = cluster,
                               .shared = 512,
                               .param = { &args },
                               .param_size = { sizeof args },
                               .param_count = 1,
                               .region = region,
                               .region_count = COUNT_OF(region),
                               .is_reversed = is_reversed,
                               .seconds = 20 };
    return l.object && runtime_run(&l, why, sizeof why);
}

static bool is_exchanged(uint32_t by, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (out[i] != (float)(i ^ by) + 1) return false;
    return true;
}

static void runs_what_is_right(void)
{
    for (int order = 0; order < 2; order++) {
        if (!CHECK(run("exchange_right", 1, 64, order))) (void)printf("%s\n", why);
        CHECK(is_exchanged(1, 64));
        if (!CHECK(run("bulk_right", 1, 64, order))) (void)printf("%s\n", why);
        CHECK(is_exchanged(1, 64));
        if (!CHECK(run("registers_right", 1, 64, order))) (void)printf("%s\n", why);
        CHECK(is_exchanged(1, 64));
        if (!CHECK(run("cluster_right", 2, 64, order))) (void)printf("%s\n", why);
        CHECK(is_exchanged(64, 128));
    }
}

static void says_what_is_wrong(void)
{
    static const struct {
        const char *entry;
        uint32_t cluster;
        const char *says;
    } faults[] = {
        { "writes_early", 1, "in the result, before grid_wait() at faults.cu:" },
        { "waits_not", 1, "ends without grid_wait() (block 0,0,0 thread 5)" },
        { "reads_behind", 1, "bytes behind the input" },
        { "one_more_sync", 1, "sync_some at faults.cu:" },
        { "writes_beyond_shared", 1, "byte 512 of shared memory" },
        { "warp_apart", 1, "others of its warp are in sync_warp at faults.cu:" },
        { "misaligned", 1, "not aligned for its type" },
        { "registers_not_given", 1, "waits for ever: 32 more are taken than given" },
        { "bulk_short", 1, "lacks 0 arrivals and 256 bytes" },
    };
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        if (!CHECK(!run(faults[i].entry, faults[i].cluster, 64, false))) (void)printf("%s\n", faults[i].entry);
        else CHECK_HAS(why, faults[i].says);
    }
    /* The emulator still works after a failure. */
    CHECK(run("exchange_right", 1, 64, false));
}

/* What the order of threads decides is seen in one of two orders: by its results, or by itself. */
static void shows_races(void)
{
    static const struct {
        const char *entry;
        uint32_t cluster, by, count;
    } races[] = {
        { "copies_unwaited", 1, 1, 64 }, { "threads_unmet", 1, 1, 64 },        { "bulk_unwaited", 1, 1, 64 },
        { "cluster_unmet", 2, 64, 128 }, { "cluster_left_early", 2, 64, 128 },
    };
    for (size_t i = 0; i < COUNT_OF(races); i++) {
        int seen = 0;
        for (int order = 0; order < 2; order++)
            seen += !run(races[i].entry, races[i].cluster, 64, order) || !is_exchanged(races[i].by, races[i].count);
        if (!CHECK(seen > 0)) (void)printf("%s\n", races[i].entry);
    }
}

/* Every f16, its neighbours and the middles between two of them: rounded as the reference rounds. */
static void rounds_as_the_reference(void)
{
    static float values[COUNT];
    for (uint32_t pass = 0; pass < 6; pass++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            const uint16_t h = (uint16_t)i;
            uint32_t bits;
            values[i] = pass < 3 ? dtype_f16_to_f32(h) : dtype_bf16_to_f32(h);
            memcpy(&bits, &values[i], sizeof bits);
            bits += pass % 3 == 0 ? 0 : pass % 3 == 1 ? (pass < 3 ? 0x1000u : 0x8000u) : 0x1001u;
            memcpy(&values[i], &bits, sizeof bits);
        }
        if (!in) (void)run("exchange_right", 1, 64, false);
        memcpy(in, values, sizeof values);
        if (!CHECK(run("narrows", 1, COUNT, false))) (void)printf("%s\n", why);
        uint32_t wrong = 0;
        for (uint32_t i = 0; i < COUNT; i++) {
            uint32_t got;
            memcpy(&got, &out[i], sizeof got);
            if (values[i] != values[i]) continue;
            wrong += (got & 0xffff) != dtype_f16_of_f64((double)values[i]) ||
                     got >> 16 != dtype_bf16_of_f64((double)values[i]);
        }
        CHECK_EQ(wrong, 0);
    }
}

static const test tests[] = {
    T(runs_what_is_right), T(says_what_is_wrong), T(shows_races), T(rounds_as_the_reference), { 0 }
};

int main(int argc, char **argv)
{
    if (emulate_is_possible()) return test_run_all(tests, argc, argv);
    (void)printf("no g++: kernels cannot be emulated\n");
    return 77;
}
