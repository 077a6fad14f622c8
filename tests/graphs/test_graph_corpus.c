/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph_corpus.c - the smallest graph of each class of failure that was met, tests/graphs/corpus, one file each.
 */
#include "graph_run.h"
#include "places.h"
#include "test.h"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_graph(const struct dirent *d)
{
    const size_t length = strlen(d->d_name);
    return length > 6 && !strcmp(d->d_name + length - 6, ".graph");
}

/* In a process of its own, which may die. */
static bool runs(const char *path)
{
    (void)fflush(stdout);
    const pid_t p = fork();
    if (p == 0) {
        const bool is_fine = grun_file(path, "cpu");
        (void)fflush(stdout);
        _exit(is_fine ? 0 : 1);
    }
    int status = 0;
    (void)waitpid(p, &status, 0);
    if (WIFSIGNALED(status)) (void)printf("FAIL %s: killed by signal %d\n", path, WTERMSIG(status));
    return WIFEXITED(status) && !WEXITSTATUS(status);
}

static void all_files_run(void)
{
    struct dirent **list;
    char folder[512];
    (void)snprintf(folder, sizeof folder, "%s/tests/graphs/corpus", PLACE_SOURCE_DIR);
    const int count = scandir(folder, &list, is_graph, by_name);
    (void)CHECK(count > 0);
    for (int i = 0; i < count; i++) {
        char path[1024];
        (void)snprintf(path, sizeof path, "%s/%s", folder, list[i]->d_name);
        (void)CHECK(runs(path));
        free(list[i]);
    }
    if (count > 0) free(list);
}

static const test tests[] = {
    T(all_files_run),
    { 0 },
};
TEST_MAIN(tests)
