/* SPDX-License-Identifier: Apache-2.0 */
/* test_timing_cache.c - measurements in a file: missing, torn, malformed and merged. */
#include "base/os.h"
#include "cpu/cpu_kernels.h"
#include "test.h"
#include "tune/tune.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct rig {
    env e;
    sinter_error error;
    timing_cache *c;
} rig;

static void open_rig(rig *r)
{
    env_init(&r->e, NULL, &r->error);
    CHECK_EQ(timing_cache_create(&r->e, &r->c), SINTER_OK);
}

static char path[64];

static void put_file(const char *text_at)
{
    FILE *file = fopen(path, "wb");
    if (!CHECK(file != NULL)) return;
    CHECK_EQ(fwrite(text_at, 1, strlen(text_at), file), strlen(text_at));
    (void)fclose(file);
}

static size_t get_file(char *out, size_t size)
{
    FILE *file = fopen(path, "rb");
    if (!CHECK(file != NULL)) return 0;
    const size_t length = fread(out, 1, size - 1, file);
    out[length] = 0;
    (void)fclose(file);
    return length;
}

static double found(const rig *r, const char *key)
{
    double ns = -1;
    return timing_cache_find(r->c, key, &ns) ? ns : -1;
}

static double read_one(const char *text_at, const char *key)
{
    rig r = { 0 };
    put_file(text_at);
    open_rig(&r);
    CHECK_EQ(timing_cache_read(r.c, path), SINTER_OK);
    const double ns = found(&r, key);
    timing_cache_destroy(r.c);
    return ns;
}

static void missing_files(void)
{
    rig r = { 0 };
    (void)remove(path);
    open_rig(&r);
    CHECK_EQ(timing_cache_read(r.c, path), SINTER_OK);
    CHECK_EQ_F(found(&r, "a | b"), -1);
    CHECK_EQ(timing_cache_read(r.c, "."), SINTER_OK);
    CHECK_EQ(r.error.length, 0);
    CHECK_EQ(timing_cache_write(r.c, "no such folder/cache"), SINTER_OK); /* nothing was added */
    CHECK_EQ(timing_cache_add(r.c, "a", 1), SINTER_OK);
    CHECK(timing_cache_write(r.c, "no such folder/cache") == SINTER_IO);
    CHECK_HAS(r.error.text, "no such folder/cache");
    timing_cache_destroy(r.c);
}

#define MAGIC "sinter timing cache 1\n"

static void lines(void)
{
    CHECK_EQ_F(read_one(MAGIC "a | b | 12.5\n", "a | b"), 12.5);
    CHECK_EQ_F(read_one(MAGIC "a | b | 12.5\nc | 7\n", "c"), 7);
    CHECK_EQ_F(read_one(MAGIC "a | b | 12.5\nc | 7", "c"), -1); /* torn */
    CHECK_EQ_F(read_one(MAGIC "a | b | 12.5\nc | 7", "a | b"), 12.5);
    CHECK_EQ_F(read_one("sinter timing cache 2\na | 1\n", "a"), -1);
    CHECK_EQ_F(read_one("", "a"), -1);
    CHECK_EQ_F(read_one(MAGIC, "a"), -1);
    static const char *const bad[] = { "a | x\n", "a | -1\n", "a | 0\n", "a | nan\n", "a | inf\n", "a | 1e99\n",
                                       "a\n",     "|\n",      "\n",      " | 1\n",    "| 1\n",     "a | \n" };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        char both[200];
        (void)snprintf(both, sizeof both, MAGIC "%sgood | 3\n", bad[i]);
        if (!CHECK_EQ_F(read_one(both, "good"), 3) + !CHECK_EQ_F(read_one(both, "a"), -1)) printf("%s", bad[i]);
    }
    char long_text[5000] = MAGIC;
    memset(long_text + strlen(MAGIC), 'k', 4000);
    memcpy(long_text + strlen(MAGIC) + 4000, " | 5\ngood | 3\n", 15);
    CHECK_EQ_F(read_one(long_text, "good"), 3);
}

/* Random damage never does more than lose lines. */
static void damage(void)
{
    uint64_t random = 4;
    for (long i = test_scale(300, 20000); i; i--) {
        char text_at[] = MAGIC "conv 3x3 | cpu | 1 | gemm 14x32 1 | 125.5\nmatmul | cpu | 1 | x | 7\nz | 9\n";
        for (int k = 0; k < 3; k++)
            text_at[test_random(&random) % (sizeof text_at - 1)] = (char)(test_random(&random) % 255 + 1);
        const double ns = read_one(text_at, "z");
        CHECK(ns == -1 || (ns > 0 && ns < 1e15));
    }
}

static void merging(void)
{
    char out[400];
    rig r = { 0 };
    put_file(MAGIC "theirs | 1\nboth | 2\n");
    open_rig(&r);
    CHECK_EQ(timing_cache_add(r.c, "ours | x", 3), SINTER_OK);
    CHECK_EQ(timing_cache_add(r.c, "both", 4), SINTER_OK);
    CHECK_EQ(timing_cache_add(r.c, "both", 5), SINTER_OK);
    CHECK_EQ(timing_cache_write(r.c, path), SINTER_OK);
    (void)get_file(out, sizeof out);
    CHECK_STR(out, MAGIC "both | 5\nours | x | 3\ntheirs | 1\n");
    CHECK_EQ(timing_cache_write(r.c, path), SINTER_OK); /* nothing new: the same bytes */
    (void)get_file(out, sizeof out);
    CHECK_STR(out, MAGIC "both | 5\nours | x | 3\ntheirs | 1\n");
    timing_cache_destroy(r.c);
}

static void many_entries(void)
{
    rig r = { 0 };
    open_rig(&r);
    char key[40];
    for (int i = 0; i < 20000; i++) {
        (void)snprintf(key, sizeof key, "problem %d", i);
        CHECK_EQ(timing_cache_add(r.c, key, 1 + i), SINTER_OK);
    }
    CHECK_EQ_F(found(&r, "problem 12345"), 12346);
    CHECK_EQ_F(found(&r, "problem 20000"), -1);
    timing_cache_destroy(r.c);
}

/* Processes that measure different things at the same time, each in many writes. */
enum { WRITERS = 8 };
static int write_lines(int writer, int lines)
{
    for (int i = 0; i < lines; i++) {
        rig r = { 0 };
        char key[40];
        open_rig(&r);
        (void)snprintf(key, sizeof key, "writer %d | line %d", writer, i);
        if (timing_cache_read(r.c, path) != SINTER_OK || timing_cache_add(r.c, key, 1 + i) != SINTER_OK) return 1;
        if (timing_cache_write(r.c, path) != SINTER_OK) return printf("%s\n", r.error.text), 1;
        timing_cache_destroy(r.c);
    }
    return 0;
}

static void writers_lose_nothing(void)
{
    const int lines = (int)test_scale(25, 250);
    pid_t child[WRITERS];
    (void)remove(path);
    for (int i = 0; i < WRITERS; i++) {
        child[i] = fork();
        if (child[i] == 0) _exit(write_lines(i, lines));
    }
    for (int i = 0; i < WRITERS; i++) {
        int status = -1;
        CHECK(child[i] > 0 && waitpid(child[i], &status, 0) == child[i]);
        CHECK_EQ(status, 0);
    }
    rig r = { 0 };
    open_rig(&r);
    CHECK_EQ(timing_cache_read(r.c, path), SINTER_OK);
    int lost = 0;
    for (int i = 0; i < WRITERS * lines; i++) {
        char key[40];
        (void)snprintf(key, sizeof key, "writer %d | line %d", i / lines, i % lines);
        lost += found(&r, key) != 1 + i % lines;
    }
    CHECK_EQ(lost, 0);
    timing_cache_destroy(r.c);
}

/* What cannot be read, or is something else, is not written over. */
static void leaves_other_files(void)
{
    char out[40];
    rig r = { 0 };
    put_file("a list of mine\n");
    open_rig(&r);
    CHECK_EQ(timing_cache_check(&r.e, path), SINTER_INVALID_ARG);
    CHECK_EQ(timing_cache_read(r.c, path), SINTER_OK);
    CHECK_EQ(timing_cache_add(r.c, "a", 1), SINTER_OK);
    CHECK_EQ(timing_cache_write(r.c, path), SINTER_INVALID_ARG);
    (void)get_file(out, sizeof out);
    CHECK_STR(out, "a list of mine\n");
    put_file("sinter timing cache 2\nb | 1\n"); /* of a newer library */
    CHECK_EQ(timing_cache_write(r.c, path), SINTER_INVALID_ARG);
    put_file(MAGIC "b | 1\n");
    CHECK_EQ(timing_cache_check(&r.e, path), SINTER_OK);
    if (geteuid() != 0) {
        CHECK_EQ(chmod(path, 0200), 0);
        CHECK_EQ(timing_cache_write(r.c, path), SINTER_IO);
        CHECK_EQ(chmod(path, 0600), 0);
    }
    CHECK_EQ(timing_cache_write(r.c, path), SINTER_OK);
    CHECK_EQ_F(found(&r, "b"), 1);
    timing_cache_destroy(r.c);
}

/* Each kernel has a hash of its own sources: a change of one kernel leaves the times of the others. */
static void kernels_have_hashes(void)
{
    for (uint32_t i = 0; i < cpu_kernels_count; i++) {
        CHECK_EQ(strlen(cpu_kernel_hash(cpu_kernels[i])), 16);
        for (uint32_t k = 0; k < i; k++) {
            const bool same_file = strcmp(cpu_kernel_hash(cpu_kernels[i]), cpu_kernel_hash(cpu_kernels[k])) == 0;
            if (cpu_kernels[i] == &cpu_gemm || cpu_kernels[i] == &cpu_winograd) CHECK(!same_file);
        }
    }
}

static const test tests[] = {
    T(kernels_have_hashes),  T(missing_files),      T(lines), T(damage), T(merging), T(many_entries),
    T(writers_lose_nothing), T(leaves_other_files), { 0 },
};

int main(int argc, char **argv)
{
    (void)snprintf(path, sizeof path, "test_timing_cache_%ld.txt", (long)getpid());
    const int status = test_run_all(tests, argc, argv);
    (void)remove(path);
    return status;
}
