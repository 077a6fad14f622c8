/* SPDX-License-Identifier: Apache-2.0 */
/* test_os.c - files that are not what they seem, names that climb, threads that wait. */
#include "base/os.h"
#include "test.h"
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder of its own for each test, removed at the end. */
typedef struct place {
    char folder[64];
    char path[192];
    env e;
    sinter_error error;
} place;

static void place_make(place *p)
{
    *p = (place){ .folder = "sinter-test-XXXXXX" };
    CHECK(mkdtemp(p->folder) != NULL);
    env_init(&p->e, NULL, &p->error);
}

static const char *in(place *p, const char *name)
{
    (void)snprintf(p->path, sizeof p->path, "%s/%s", p->folder, name);
    return p->path;
}

static int files_in(const char *folder)
{
    int count = 0;
    DIR *dir = opendir(folder);
    if (!dir) return -1;
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    (void)closedir(dir);
    return count;
}

static void place_drop(place *p)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", p->folder);
    CHECK_EQ(system(command), 0);
}

static void writes_and_reads(void)
{
    place p;
    place_make(&p);
    const char *path = in(&p, "a.bin");
    CHECK_EQ(os_file_write(&p.e, path, NULL, "hello", 5), SINTER_OK);
    CHECK_EQ(os_file_write(&p.e, path, NULL, "goodbye", 7), SINTER_OK);
    CHECK_EQ(files_in(p.folder), 1);
    os_file file = { 0 };
    CHECK_EQ(os_file_read(&p.e, path, 100, &file), SINTER_OK);
    CHECK_EQ(file.size, 7);
    CHECK(file.data && !memcmp(file.data, "goodbye", 7));
    os_file_close(&p.e, &file);
    CHECK_EQ(os_file_map(&p.e, path, &file), SINTER_OK);
    CHECK(file.is_mapped && file.size == 7 && !memcmp(file.data, "goodbye", 7));
    os_file_close(&p.e, &file);
    os_file_close(&p.e, &file);
    CHECK_EQ(os_file_read(&p.e, path, 6, &file), SINTER_IO);
    CHECK_HAS(p.error.text, "7 bytes");
    CHECK_EQ(os_file_write(&p.e, path, NULL, "", 0), SINTER_OK);
    CHECK_EQ(os_file_read(&p.e, path, 100, &file), SINTER_OK);
    CHECK_EQ(file.size, 0);
    CHECK_EQ(os_file_map(&p.e, path, &file), SINTER_OK);
    CHECK_EQ(file.size, 0);
    os_file_close(&p.e, &file);
    place_drop(&p);
}

static void refuses_what_is_no_file(void)
{
    place p;
    place_make(&p);
    os_file file = { 0 };
    CHECK_EQ(os_file_read(&p.e, p.folder, 100, &file), SINTER_IO);
    CHECK_HAS(p.error.text, "not a regular file");
    const char *fifo = in(&p, "fifo");
    CHECK_EQ(mkfifo(fifo, 0600), 0);
    CHECK_EQ(os_file_read(&p.e, fifo, 100, &file), SINTER_IO); /* and does not hang */
    CHECK_EQ(os_file_map(&p.e, "/dev/zero", &file), SINTER_IO);
    CHECK_EQ(os_file_read(&p.e, in(&p, "none"), 100, &file), SINTER_IO);
    CHECK_HAS(p.error.text, "No such file");
    CHECK(file.data == NULL);
    place_drop(&p);
}

static void fails_writes_cleanly(void)
{
    place p;
    place_make(&p);
    CHECK_EQ(os_file_write(&p.e, in(&p, "no/such"), NULL, "x", 1), SINTER_IO);
    CHECK_EQ(os_file_write_check(&p.e, in(&p, "no/such"), NULL), SINTER_IO);
    CHECK_EQ(mkdir(in(&p, "taken"), 0700), 0);
    CHECK_EQ(os_file_write(&p.e, in(&p, "taken"), NULL, "x", 1), SINTER_INVALID_ARG);
    CHECK_HAS(p.error.text, "is a folder");
    CHECK_EQ(os_file_write(&p.e, "", NULL, "x", 1), SINTER_INVALID_ARG);
    CHECK_EQ(os_file_write(&p.e, "/dev/full", NULL, "x", 1), SINTER_IO);
    CHECK_EQ(os_file_write(&p.e, "/dev/null", NULL, "x", 1), SINTER_OK);
    CHECK_EQ(files_in(p.folder), 1);
    place_drop(&p);
}

static const os_file_kind notes = { "a note", "NOTE", 4 };

static void keeps_kind_links_and_modes(void)
{
    place p;
    struct stat st;
    os_file file = { 0 };
    place_make(&p);
    CHECK_EQ(os_file_write(&p.e, in(&p, "other"), NULL, "NOT", 3), SINTER_OK);
    CHECK_EQ(os_file_write(&p.e, p.path, &notes, "NOTE 1", 6), SINTER_INVALID_ARG);
    CHECK_HAS(p.error.text, "is not a note");
    CHECK_EQ(os_file_write_check(&p.e, p.path, &notes), SINTER_INVALID_ARG);
    CHECK_EQ(os_file_write(&p.e, in(&p, "note"), &notes, "NOTE 1", 6), SINTER_OK);
    CHECK_EQ(chmod(p.path, 0640), 0);
    CHECK_EQ(symlink("note", in(&p, "link")), 0);
    CHECK_EQ(os_file_write_check(&p.e, p.path, &notes), SINTER_OK);
    CHECK_EQ(os_file_write(&p.e, p.path, &notes, "NOTE 22", 7), SINTER_OK);
    CHECK(lstat(p.path, &st) == 0 && S_ISLNK(st.st_mode));
    CHECK(stat(p.path, &st) == 0 && (st.st_mode & 07777) == 0640 && st.st_size == 7);
    CHECK_EQ(os_file_read(&p.e, in(&p, "note"), 100, &file), SINTER_OK);
    CHECK_EQ(file.size, 7);
    os_file_close(&p.e, &file);
    CHECK_EQ(files_in(p.folder), 3);
    place_drop(&p);
}

static void knows_one_file_by_two_names(void)
{
    place p;
    char note[192], path[192];
    place_make(&p);
    (void)snprintf(note, sizeof note, "%s/note", p.folder);
    (void)snprintf(path, sizeof path, "%s/../%s/note", p.folder, p.folder);
    CHECK(os_file_is_same(note, path)); /* also of a file that is to come */
    CHECK(!os_file_is_same(note, in(&p, "other")));
    CHECK_EQ(symlink("note", in(&p, "link")), 0);
    CHECK(os_file_is_same(note, p.path));
    CHECK_EQ(os_file_write(&p.e, note, NULL, "x", 1), SINTER_OK);
    CHECK(os_file_is_same(note, p.path) && os_file_is_same(note, path));
    CHECK_EQ(link(note, in(&p, "other")), 0);
    CHECK(os_file_is_same(note, p.path));
    CHECK(!os_file_is_same("/dev/null", "/dev/null")); /* nothing is lost there */
    place_drop(&p);
}

/* A file that is held is somebody's who lives. */
static void removes_what_the_dead_left(void)
{
    place p;
    os_lock lock = { -1 };
    place_make(&p);
    CHECK_EQ(os_file_write(&p.e, in(&p, ".sinter-0123456789abcdef.tmp"), NULL, "x", 1), SINTER_OK);
    CHECK_EQ(os_file_lock(&p.e, in(&p, ".sinter-fedcba9876543210.tmp"), &lock), SINTER_OK);
    CHECK_EQ(os_file_write(&p.e, in(&p, ".sinter-0123456789abcde.tmp"), NULL, "x", 1), SINTER_OK); /* not ours */
    CHECK_EQ(files_in(p.folder), 2);
    CHECK_EQ(os_file_write_check(&p.e, in(&p, "a"), NULL), SINTER_OK);
    CHECK_EQ(files_in(p.folder), 2);
    os_file_unlock(&lock);
    CHECK_EQ(os_file_write(&p.e, in(&p, "a"), NULL, "x", 1), SINTER_OK);
    CHECK_EQ(files_in(p.folder), 2);
    place_drop(&p);
}

static void stays_beneath(void)
{
    place p;
    place_make(&p);
    CHECK_EQ(os_file_write(&p.e, in(&p, "secret"), NULL, "s", 1), SINTER_OK);
    CHECK_EQ(mkdir(in(&p, "model"), 0700), 0);
    CHECK_EQ(mkdir(in(&p, "model/sub"), 0700), 0);
    CHECK_EQ(os_file_write(&p.e, in(&p, "model/sub/w.bin"), NULL, "w", 1), SINTER_OK);
    CHECK_EQ(os_file_write(&p.e, in(&p, "model/..w"), NULL, "w", 1), SINTER_OK);
    CHECK_EQ(symlink("../secret", in(&p, "model/link")), 0);
    CHECK_EQ(symlink("..", in(&p, "model/up")), 0);
    CHECK_EQ(symlink("sub", in(&p, "model/inner")), 0);
    CHECK_EQ(mkfifo(in(&p, "model/fifo"), 0600), 0);
    char folder[96];
    (void)snprintf(folder, sizeof folder, "%s/model", p.folder);

    os_file file = { 0 };
    const char *const good[] = { "sub/w.bin", "./sub/w.bin", "sub//w.bin", "sub/./w.bin", "..w" };
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        if (!CHECK_EQ(os_file_map_beneath(&p.e, folder, good[i], &file), SINTER_OK)) (void)puts(p.error.text);
        CHECK_EQ(file.size, 1);
        os_file_close(&p.e, &file);
    }
    const char *const bad[] = { "",
                                "/etc/passwd",
                                "../secret",
                                "sub/../../secret",
                                "sub/../sub/w.bin",
                                "..",
                                "sub/..",
                                "link",
                                "up/secret",
                                "inner/w.bin",
                                "fifo",
                                "sub",
                                "sub/",
                                ".",
                                "none",
                                "sub/w.bin/",
                                "sub/w.bin/x",
                                "/proc/self/environ",
                                "..\\secret",
                                "sub\\w.bin" };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const sinter_status status = os_file_map_beneath(&p.e, folder, bad[i], &file);
        if (!CHECK(status == SINTER_IO || status == SINTER_INVALID_MODEL)) (void)puts(bad[i]);
        CHECK(file.data == NULL);
    }
    place_drop(&p);
}

enum { THREADS = 4 };
typedef struct gate {
    uint32_t word, arrived;
} gate;

static void pass_gate(void *arg)
{
    gate *g = arg;
    while (__atomic_load_n(&g->word, __ATOMIC_ACQUIRE) == 0) os_wait(&g->word, 0, 0);
    __atomic_add_fetch(&g->arrived, 1, __ATOMIC_ACQ_REL);
}

static void wakes_threads(void)
{
    env e;
    env_init(&e, NULL, NULL);
    gate g = { 0 };
    os_thread *threads[THREADS] = { 0 };
    for (int i = 0; i < THREADS; i++) CHECK_EQ(os_thread_start(&e, pass_gate, &g, &threads[i]), SINTER_OK);
    for (int i = 0; i < 100; i++) os_thread_yield();
    CHECK_EQ(__atomic_load_n(&g.arrived, __ATOMIC_ACQUIRE), 0);
    __atomic_store_n(&g.word, 1, __ATOMIC_RELEASE);
    os_wake_all(&g.word);
    for (int i = 0; i < THREADS; i++) os_thread_join(&e, threads[i]);
    CHECK_EQ(g.arrived, THREADS);
}

static void waits_in_time(void)
{
    uint32_t word = 0;
    const uint64_t start = os_time_ns();
    os_wait(&word, 0, 2000000);
    const uint64_t took = os_time_ns() - start;
    CHECK(took >= 1000000 && took < 10000000000u);
    os_wait(&word, 1, 0); /* another value already: returns at once */
}

/* Waiting takes no processor. */
static void counts_busy_time(void)
{
    uint32_t word = 0;
    const uint64_t start = os_time_ns(), busy = os_busy_ns();
    os_wait(&word, 0, 30000000);
    const uint64_t waited = os_time_ns() - start;
    CHECK(os_busy_ns() - busy < waited / 2);
    const uint64_t before = os_busy_ns();
    while (os_busy_ns() - before < 1000000) word++;
    CHECK(os_busy_ns() - before <= os_time_ns() - start);
}

static void counts_cpus(void)
{
    uint32_t cpu[4] = { 0 };
    const unsigned cores = os_core_list(cpu, 4);
    CHECK(os_cpu_count() >= 1 && os_cpu_count() <= (cores ? cores : UINT32_MAX));
    for (unsigned i = 1; i < 4 && i < cores; i++) CHECK(cpu[i] > cpu[i - 1]);
    CHECK(os_node_count() >= 1);
    CHECK(os_env("SINTER_SURELY_UNSET") == NULL);
}

/* Evicting changes no byte, wherever the bytes begin and end. */
static void evicts_from_caches(void)
{
    uint8_t at[1000], copy[sizeof at];
    for (size_t i = 0; i < sizeof at; i++) at[i] = copy[i] = (uint8_t)(i * 37 + 11);
    for (size_t from = 0; from < 70; from++) {
        at[from + 3]++;
        copy[from + 3]++;
        os_memory_evict(at + from, from * 13 % (sizeof at - from));
    }
    os_memory_evict(NULL, 0);
    CHECK(!memcmp(at, copy, sizeof at));
}

/* Files that several threads read: every byte is where it was. */
static void reads_large_files(void)
{
    static const size_t sizes[] = { (1 << 26) - 1, 1 << 26, (1 << 26) + 12345, 3 * ((1 << 25) + 1) + 7 };
    place p;
    place_make(&p);
    const char *path = in(&p, "large.bin");
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        uint8_t *data = malloc(sizes[k]);
        os_file file = { 0 };
        if (!CHECK(data != NULL)) return;
        for (size_t i = 0; i < sizes[k]; i++) data[i] = (uint8_t)(i * 2654435761u >> 13);
        CHECK_EQ(os_file_write(&p.e, path, NULL, data, sizes[k]), SINTER_OK);
        CHECK_EQ(os_file_read(&p.e, path, SIZE_MAX, &file), SINTER_OK);
        CHECK(file.size == sizes[k] && !memcmp(file.data, data, sizes[k]));
        os_file_close(&p.e, &file);
        free(data);
    }
    place_drop(&p);
}

static void writes_in_pieces(void)
{
    place p;
    place_make(&p);
    const char *path = in(&p, "a.bin");
    os_output *o = NULL;
    os_file file = { 0 };
    char part[4] = { 0 };
    for (int done = 0; done < 2; done++) {
        CHECK_EQ(os_file_write(&p.e, path, NULL, "before", 6), SINTER_OK);
        if (!CHECK_EQ(os_output_open(&p.e, path, NULL, &o), SINTER_OK)) return;
        CHECK_EQ(os_output_put(&p.e, o, 6, "last", 4), SINTER_OK);
        CHECK_EQ(os_output_put(&p.e, o, 0, "one", 3), SINTER_OK);
        CHECK_EQ(os_output_get(&p.e, o, 7, part, 3), SINTER_OK);
        CHECK(!memcmp(part, "ast", 3));
        CHECK_EQ(os_output_get(&p.e, o, 8, part, 3), SINTER_IO); /* behind the end */
        CHECK_EQ(os_output_map(&p.e, o, &file), SINTER_OK);
        CHECK(file.size == 10 && !memcmp(file.data, "one\0\0\0last", 10));
        os_file_close(&p.e, &file);
        CHECK_EQ(os_file_read(&p.e, path, 100, &file), SINTER_OK);
        CHECK(file.size == 6 && !memcmp(file.data, "before", 6));
        os_file_close(&p.e, &file);
        if (done) CHECK_EQ(os_output_done(&p.e, o), SINTER_OK);
        os_output_close(&p.e, o);
        CHECK_EQ(files_in(p.folder), 1);
        CHECK_EQ(os_file_read(&p.e, path, 100, &file), SINTER_OK);
        CHECK_EQ(file.size, done ? 10 : 6);
        os_file_close(&p.e, &file);
    }
    CHECK_EQ(os_output_open(&p.e, "/dev/null", NULL, &o), SINTER_OK);
    CHECK(o == NULL);
    os_output_close(&p.e, NULL);
    place_drop(&p);
}

static const test tests[] = {
    T(writes_and_reads),
    T(refuses_what_is_no_file),
    T(reads_large_files),
    T(writes_in_pieces),
    T(fails_writes_cleanly),
    T(stays_beneath),
    T(keeps_kind_links_and_modes),
    T(knows_one_file_by_two_names),
    T(removes_what_the_dead_left),
    T(wakes_threads),
    T(waits_in_time),
    T(counts_busy_time),
    T(counts_cpus),
    T(evicts_from_caches),
    { 0 },
};
TEST_MAIN(tests)
