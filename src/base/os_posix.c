/* SPDX-License-Identifier: Apache-2.0 */
/* os_posix.c - files, threads and time on Linux.
 *
 * A path may name anything: a folder, a pipe that never answers, a device. Every open here is non-blocking, and what
 * was opened is asked whether it is a regular file before a byte of it is read. Size and data come from the same
 * descriptor. */
#include "base/os.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FILE_ALIGN = 64, OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

/* The GNU and the POSIX strerror_r differ in what they return. */
os_error_text os_errno_text(int code)
{
    os_error_text out = { { 0 } };
    const char *text = strerror_r(code, out.at, sizeof out.at);
    if (text != out.at) (void)snprintf(out.at, sizeof out.at, "%s", text);
    return out;
}

/* Files. */

static sinter_status fd_size(env *e, int fd, const char *path, size_t *size)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return FAIL(e, IO, "cannot stat '%s': %s", path, os_errno_text(errno).at);
    if (!S_ISREG(st.st_mode)) return FAIL(e, IO, "'%s' is not a regular file", path);
    if (st.st_size < 0 || (uint64_t)st.st_size > PTRDIFF_MAX) return FAIL(e, IO, "'%s' is too large to address", path);
    *size = (size_t)st.st_size;
    return SINTER_OK;
}

/* Whether large pages are to lie behind what is not yet touched of a block. */
static void memory_advise(void *data, size_t size, bool large)
{
#if defined(MADV_HUGEPAGE) && !defined(__SANITIZE_ADDRESS__)
    const size_t page = (size_t)1 << 21; /* x86-64's; where it is another size, the hint covers a little less */
    const uintptr_t first = ((uintptr_t)data + page - 1) & ~(uintptr_t)(page - 1);
    const uintptr_t end = ((uintptr_t)data + size) & ~(uintptr_t)(page - 1);
    if (data && size >= 2 * page && end > first)
        (void)madvise((void *)first, end - first, large ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
#else
    (void)data;
    (void)size;
    (void)large;
#endif
}

/* Large pages make a block faster to fill and to use. But where a virtual machine gives large free pages back to its
 * host, which brings them again 4 KiB at a time, filling them takes several times as long as small ones, which are
 * kept. So pieces are timed: from one on that takes as long as that, small pages are taken. */
enum { PIECE_SIZE = 1 << 24, PIECE_SLOW_NS = PIECE_SIZE * 5 / 4 };

/* A part of a file that one thread reads. */
typedef struct file_part {
    int fd;
    uint8_t *data; /* of the whole file */
    size_t at, end;
    int code; /* what failed; 0 with at < end: the file ended */
} file_part;

static void *part_read(void *arg)
{
    file_part *p = arg;
    size_t piece = p->at;
    uint64_t start = os_busy_ns();
    bool is_large = true;
    while (p->at < p->end) {
        const size_t left = p->end - p->at;
        const ssize_t got = pread(p->fd, p->data + p->at, left < PIECE_SIZE ? left : PIECE_SIZE, (off_t)p->at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) p->code = errno;
        if (got <= 0) break;
        p->at += (size_t)got;
        if (!is_large || p->at - piece < PIECE_SIZE) continue;
        const uint64_t now = os_busy_ns();
        is_large = now - start < PIECE_SLOW_NS;
        if (!is_large) memory_advise(p->data + p->at, p->end - p->at, false);
        start = now;
        piece = p->at;
    }
    return NULL;
}

/* Fresh memory is the slow part of reading a large file: several threads take their share of its pages. Returns the
 * part that failed, or the last one. */
enum { PARTS_MOST = 4, PART_SIZE = 1 << 25 };
static file_part parts_read(int fd, uint8_t *data, size_t size)
{
    const size_t wanted = size / PART_SIZE, cpus = wanted > 1 ? os_cpu_count() : 1,
                 most = cpus < wanted ? cpus : wanted;
    const size_t count = most < 1 ? 1 : most < PARTS_MOST ? most : PARTS_MOST;
    file_part part[PARTS_MOST];
    pthread_t thread[PARTS_MOST];
    bool is_apart[PARTS_MOST] = { 0 };
    for (size_t i = 0; i < count; i++)
        part[i] = (file_part){ .fd = fd, .data = data, .at = size / count * i, .end = size / count * (i + 1) };
    part[count - 1].end = size;
    for (size_t i = 1; i < count; i++) is_apart[i] = pthread_create(&thread[i], NULL, part_read, &part[i]) == 0;
    (void)part_read(&part[0]);
    for (size_t i = 1; i < count; i++) {
        if (is_apart[i]) (void)pthread_join(thread[i], NULL);
        else (void)part_read(&part[i]);
    }
    for (size_t i = 0; i < count; i++)
        if (part[i].at < part[i].end) return part[i];
    return part[count - 1];
}

static sinter_status fd_read(env *e, int fd, const char *path, size_t size_max, os_file *out)
{
    size_t size = 0;
    TRY(fd_size(e, fd, path, &size));
    if (size > size_max) return FAIL(e, IO, "'%s' has %zu bytes, at most %zu are read here", path, size, size_max);
    *out = (os_file){ 0 };
    if (size == 0) return SINTER_OK;
    uint8_t *data = mem_alloc(e, size, FILE_ALIGN);
    if (!data) return NOTE(e, FAIL_MEMORY(e, "a file"), "reading the %zu bytes of '%s'", size, path);
    os_memory_hint_large(data, size);
    os_memory_spread(data, size);
    const file_part done = parts_read(fd, data, size);
    os_memory_hint_large(data, size); /* where small pages lie, large ones may still follow */
    if (done.at < done.end) {
        mem_free(e, data, size, FILE_ALIGN);
        if (done.code) return FAIL(e, IO, "cannot read '%s': %s", path, os_errno_text(done.code).at);
        return FAIL(e, IO, "'%s' shrank from %zu to %zu bytes while it was read", path, size, done.at);
    }
    *out = (os_file){ .data = data, .size = size };
    return SINTER_OK;
}

static sinter_status fd_map(env *e, int fd, const char *path, os_file *out)
{
    size_t size = 0;
    TRY(fd_size(e, fd, path, &size));
    *out = (os_file){ 0 };
    if (size == 0) return SINTER_OK;
    void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return FAIL(e, IO, "cannot map the %zu bytes of '%s': %s", size, path, os_errno_text(errno).at);
    *out = (os_file){ .data = data, .size = size, .is_mapped = true };
    return SINTER_OK;
}

static sinter_status path_open(env *e, const char *path, int *fd)
{
    do *fd = open(path, OPEN_FLAGS);
    while (*fd < 0 && errno == EINTR);
    if (*fd < 0) return FAIL(e, IO, "cannot open '%s': %s", path, os_errno_text(errno).at);
    return SINTER_OK;
}

sinter_status os_file_read(env *e, const char *path, size_t size_max, os_file *out)
{
    int fd = -1;
    TRY(path_open(e, path, &fd));
    const sinter_status status = fd_read(e, fd, path, size_max, out);
    (void)close(fd);
    return status;
}

sinter_status os_file_map(env *e, const char *path, os_file *out)
{
    int fd = -1;
    TRY(path_open(e, path, &fd));
    const sinter_status status = fd_map(e, fd, path, out);
    (void)close(fd);
    return status;
}

void os_file_forget(const void *at, size_t size)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = ((uintptr_t)at + page - 1) / page * page, end = ((uintptr_t)at + size) / page * page;
    if (end > first) (void)madvise((void *)first, end - first, MADV_DONTNEED);
}

void os_file_close(env *e, os_file *file)
{
    if (file->is_mapped) (void)munmap(file->data, file->size);
    else mem_free(e, file->data, file->size, FILE_ALIGN);
    *file = (os_file){ 0 };
}

/* For kernels and sandboxes without openat2: one component at a time, no link followed. -1 with errno on failure. */
static int open_walk(int folder, const char *name)
{
    int at = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    while (at >= 0) {
        const size_t length = strcspn(name, "/");
        const char *rest = name + length + strspn(name + length, "/");
        const bool is_last = name[length] == 0;
        char part[NAME_MAX + 1];
        if (length == 0 || length > NAME_MAX) {
            (void)close(at);
            errno = length ? ENAMETOOLONG : EISDIR;
            return -1;
        }
        memcpy(part, name, length);
        part[length] = 0;
        const int flags = is_last ? OPEN_FLAGS | O_NOFOLLOW : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
        const int next = openat(at, part, flags);
        const int code = errno;
        (void)close(at);
        errno = code;
        if (is_last || next < 0) return next;
        at = next;
        name = rest;
    }
    return at;
}

static int open_beneath(int folder, const char *name)
{
    struct open_how how = { .flags = OPEN_FLAGS,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
    /* EAGAIN says that the kernel could not rule out a race with a rename: it asks to be called again. */
    for (int tries = 0; tries < 16; tries++) {
        const long fd = syscall(SYS_openat2, folder, name, &how, sizeof how);
        if (fd >= 0) return (int)fd;
        if (errno == EAGAIN || errno == EINTR) continue;
        if (errno == ENOSYS || errno == EPERM || errno == EINVAL || errno == E2BIG) return open_walk(folder, name);
        return -1;
    }
    return -1;
}

/* A relative path that cannot climb, whatever the file system holds. NULL: fine; else what is wrong. */
static const char *name_reject(const char *name)
{
    if (!*name) return "is empty";
    if (*name == '/') return "is absolute; only paths inside the model's folder are allowed";
    for (const char *at = name; *at;) {
        const size_t length = strcspn(at, "/");
        if (length == 2 && at[0] == '.' && at[1] == '.')
            return "has a '..'; only paths inside the model's folder are allowed";
        at += length + (at[length] == '/');
    }
    return NULL;
}

sinter_status os_file_map_beneath(env *e, const char *folder, const char *name, os_file *out)
{
    const char *reason = name_reject(name);
    if (reason) return FAIL(e, INVALID_MODEL, "the external file name '%s' %s", name, reason);
    const char *base = *folder ? folder : ".";
    const int at = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (at < 0) return FAIL(e, IO, "cannot open the folder '%s': %s", base, os_errno_text(errno).at);
    const int fd = open_beneath(at, name);
    const int code = errno;
    (void)close(at);
    if (fd < 0 && (code == ELOOP || code == EXDEV)) {
        return FAIL(e, IO, "cannot open '%s' in '%s': symbolic links are not followed", name, base);
    }
    if (fd < 0) return FAIL(e, IO, "cannot open '%s' in '%s': %s", name, base, os_errno_text(code).at);
    const sinter_status status = fd_map(e, fd, name, out);
    (void)close(fd);
    return status;
}

bool os_folder_make(const char *path)
{
    char part[PATH_MAX];
    const size_t length = strlen(path);
    if (length == 0 || length >= sizeof part) return false;
    memcpy(part, path, length + 1);
    for (size_t i = 1; i < length; i++) {
        if (part[i] != '/') continue;
        part[i] = '\0';
        (void)mkdir(part, 0700); /* what fails here fails below, too */
        part[i] = '/';
    }
    (void)mkdir(part, 0700);
    struct stat st;
    return stat(part, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Threads. */

struct os_thread {
    pthread_t handle;
    void (*body)(void *);
    void *arg;
};

static void *thread_main(void *arg)
{
    const os_thread *thread = arg;
    thread->body(thread->arg);
    return NULL;
}

sinter_status os_thread_start(env *e, void (*body)(void *), void *arg, os_thread **out)
{
    os_thread *thread = mem_zalloc(e, sizeof *thread, _Alignof(os_thread));
    if (!thread) return FAIL_MEMORY(e, "a thread");
    thread->body = body;
    thread->arg = arg;
    const int code = pthread_create(&thread->handle, NULL, thread_main, thread);
    if (code != 0) {
        mem_free(e, thread, sizeof *thread, _Alignof(os_thread));
        return FAIL(e, NO_MEMORY, "cannot start a thread: %s", os_errno_text(code).at);
    }
    *out = thread;
    return SINTER_OK;
}

void os_thread_join(env *e, os_thread *thread)
{
    if (!thread) return;
    (void)pthread_join(thread->handle, NULL);
    mem_free(e, thread, sizeof *thread, _Alignof(os_thread));
}

void os_thread_yield(void)
{
    (void)sched_yield();
}

void os_wait(uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    const struct timespec time = { .tv_sec = (time_t)(timeout_ns / 1000000000u),
                                   .tv_nsec = (long)(timeout_ns % 1000000000u) };
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout_ns ? &time : NULL, NULL, 0);
}

void os_wake_all(uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Time and environment. */

uint64_t os_time_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t os_busy_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

const char *os_env(const char *name)
{
    return getenv(name);
}

void *os_library_open(const char *name, char *why, size_t why_size)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library) return library;
    const char *text = dlerror();
    (void)snprintf(why, why_size, "%s", text ? text : "it does not open");
    return NULL;
}

void os_library_close(void *library)
{
    if (library) (void)dlclose(library);
}

void *os_library_symbol(void *library, const char *name)
{
    return dlsym(library, name);
}

void os_library_path(void *library, char *out, size_t size)
{
    struct link_map *map = NULL;
    const bool is_known = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name;
    (void)snprintf(out, size, "%s", is_known ? map->l_name : "");
}

void os_memory_hint_large(void *data, size_t size)
{
    memory_advise(data, size, true);
}

uint64_t os_memory_size(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
}
