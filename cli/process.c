/* SPDX-License-Identifier: Apache-2.0 */
/* process.c - programs and folders, by POSIX. */
#include "process.h"

#include "print.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

char *folder_make(const char *beside)
{
    const char *own = getenv("TMPDIR"), *root = beside ? beside : own && *own ? own : "/tmp";
    char *path = cli_join(root, ".sinter-XXXXXX");
    if (mkdtemp(path)) return path;
    (void)cli_fail("cannot make a folder in '%s': %s", root, strerror(errno));
    free(path);
    return NULL;
}

void folder_remove(char *folder)
{
    DIR *d = folder ? opendir(folder) : NULL;
    const struct dirent *entry;
    while (d && (entry = readdir(d)) != NULL) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        char *path = cli_join(folder, entry->d_name);
        struct stat st;
        if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
            folder_remove(path);
            continue;
        }
        (void)unlink(path);
        free(path);
    }
    if (d) (void)closedir(d);
    if (folder) (void)rmdir(folder);
    free(folder);
}

int process_run(char *const *argv, const char *log)
{
    posix_spawn_file_actions_t actions;
    pid_t child = 0;
    int status = 0;
    if (posix_spawn_file_actions_init(&actions) != 0) return -1;
    if (log) {
        (void)posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        (void)posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    }
    (void)fflush(stdout);
    const int failed = posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (failed) return -1;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

const char *process_self(void)
{
    static char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    return n > 0 ? path : "sinter";
}
