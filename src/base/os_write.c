/* SPDX-License-Identifier: Apache-2.0 */
/* os_write.c - the one place that writes files.
 *
 * A regular file is replaced: the bytes go to a temporary file in the same folder, are synced, and are renamed. Readers
 * see the old file or the new one, also after a crash. Symbolic links stay and lead to the new file, and the old file's
 * mode stays. FIFOs and character devices are written to directly.
 *
 * A writer holds a lock (flock) on its temporary file while it lives. A temporary file that nobody holds belongs to a
 * dead process, and the next writer in the folder removes it. */
#include "base/hash.h"
#include "base/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ".sinter-0123456789abcdef.tmp" */
static const char temp_lead[] = ".sinter-", temp_tail[] = ".tmp";
enum { TEMP_DIGITS = 16, TEMP_LENGTH = 8 + TEMP_DIGITS + 4, LINKS_MAX = 40 };

typedef struct target {
    const char *path;       /* as the caller says it */
    char file[PATH_MAX];    /* where its links lead */
    size_t folder;          /* bytes of `file` up to the last slash, that included */
    bool is_new, is_direct; /* no such file; a FIFO or a device */
    struct stat old;
} target;

/* ---- paths ---- */

static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Follows the links at the end of a path, also to a file that does not exist. False: errno says why. */
static bool follow(const char *path, char out[PATH_MAX])
{
    char link[PATH_MAX];
    if ((size_t)snprintf(out, PATH_MAX, "%s", path) >= PATH_MAX) return errno = ENAMETOOLONG, false;
    for (int i = 0; i < LINKS_MAX; i++) {
        const ssize_t got = readlink(out, link, sizeof link - 1);
        if (got < 0) return errno == EINVAL || errno == ENOENT;
        link[got] = 0;
        const size_t folder = link[0] == '/' ? 0 : folder_length(out);
        if (folder + (size_t)got >= PATH_MAX) return errno = ENAMETOOLONG, false;
        memcpy(out + folder, link, (size_t)got + 1);
    }
    return errno = ELOOP, false;
}

static bool is_same_inode(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool os_file_is_same(const char *a, const char *b)
{
    struct stat x, y;
    const bool has_a = stat(a, &x) == 0, has_b = stat(b, &y) == 0;
    if (has_a && has_b) return S_ISREG(x.st_mode) && is_same_inode(&x, &y);
    char file[2][PATH_MAX];
    if (has_a != has_b || !follow(a, file[0]) || !follow(b, file[1])) return false;
    const size_t n = folder_length(file[0]), m = folder_length(file[1]);
    if (strcmp(file[0] + n, file[1] + m) != 0) return false;
    file[0][n] = file[1][m] = 0;
    return stat(n ? file[0] : ".", &x) == 0 && stat(m ? file[1] : ".", &y) == 0 && is_same_inode(&x, &y);
}

/* ---- the target ---- */

/* An existing file may be replaced if it is empty or begins as its kind does. */
static sinter_status kind_check(env *e, const target *t, const os_file_kind *kind)
{
    char first[OS_MAGIC_MAX] = { 0 };
    if (!kind || t->is_new || t->old.st_size == 0) return SINTER_OK;
    const int fd = open(t->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return FAIL(e, IO, "cannot read '%s' before it is replaced: %s", t->path, os_errno_text(errno).at);
    const ssize_t got = read(fd, first, kind->size);
    (void)close(fd);
    if (got == (ssize_t)kind->size && !memcmp(first, kind->magic, kind->size)) return SINTER_OK;
    return FAIL(e, INVALID_ARG, "'%s' exists and is not %s: it is not replaced", t->path, kind->name);
}

static sinter_status target_find(env *e, const char *path, const os_file_kind *kind, target *t)
{
    struct stat st;
    *t = (target){ .path = path };
    if (!*path) return FAIL(e, INVALID_ARG, "the name of the file to write is empty");
    if (stat(path, &t->old) != 0) {
        if (errno != ENOENT) return FAIL(e, IO, "cannot write '%s': %s", path, os_errno_text(errno).at);
        t->is_new = true;
    } else if (S_ISDIR(t->old.st_mode)) {
        return FAIL(e, INVALID_ARG, "cannot write '%s': it is a folder", path);
    } else if (S_ISCHR(t->old.st_mode) || S_ISFIFO(t->old.st_mode)) {
        t->is_direct = true;
    } else if (!S_ISREG(t->old.st_mode)) {
        return FAIL(e, INVALID_ARG, "cannot write '%s': it is a socket or a block device", path);
    }
    if (!t->is_new && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0)
        return FAIL(e, IO, "cannot write '%s': %s", path, os_errno_text(errno).at);
    if (t->is_direct) return SINTER_OK;
    if (!follow(path, t->file)) return FAIL(e, IO, "cannot write '%s': %s", path, os_errno_text(errno).at);
    t->folder = folder_length(t->file);
    if (!t->file[t->folder]) return FAIL(e, INVALID_ARG, "cannot write '%s': it is a folder's name", path);
    if (!t->is_new && (stat(t->file, &st) != 0 || !is_same_inode(&st, &t->old)))
        return FAIL(e, IO, "cannot write '%s': the link leads to a file without a name", path);
    return kind_check(e, t, kind);
}

/* ---- temporary files ---- */

static bool is_temp(const char *name)
{
    const size_t lead = sizeof temp_lead - 1;
    return strlen(name) == TEMP_LENGTH && !memcmp(name, temp_lead, lead) &&
           strspn(name + lead, "0123456789abcdef") == TEMP_DIGITS && !strcmp(name + lead + TEMP_DIGITS, temp_tail);
}

/* Removes the temporary files of dead processes. */
static void sweep(const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir) return;
    for (const struct dirent *d = readdir(dir); d; d = readdir(dir)) {
        if (!is_temp(d->d_name)) continue;
        const int fd = openat(dirfd(dir), d->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
        if (fd < 0) continue;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) (void)unlinkat(dirfd(dir), d->d_name, 0);
        (void)close(fd);
    }
    (void)closedir(dir);
}

/* Is `fd` held by this process alone, and has nobody removed its name before that? */
static bool temp_hold(int fd)
{
    struct stat st;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK; /* file systems without locks */
    return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

/* -1: errno says why. */
static int temp_create(const target *t, char temp[PATH_MAX])
{
    if (t->folder + TEMP_LENGTH >= PATH_MAX) return errno = ENAMETOOLONG, -1;
    memcpy(temp, t->file, t->folder);
    temp[t->folder] = 0;
    sweep(t->folder ? temp : ".");
    for (uint64_t tries = 0; tries < 100; tries++) {
        const uint64_t seed[] = { os_time_ns(), (uint64_t)getpid(), (uint64_t)(uintptr_t)temp, tries };
        (void)snprintf(temp + t->folder, TEMP_LENGTH + 1, "%s%016llx%s", temp_lead,
                       (unsigned long long)hash64(seed, sizeof seed, 0), temp_tail);
        const int fd = open(temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, t->is_new ? 0666 : 0600);
        if (fd >= 0 && temp_hold(fd)) return fd;
        if (fd >= 0) (void)close(fd);
        else if (errno != EEXIST && errno != EINTR) return -1;
    }
    return -1;
}

/* The old file's owner and mode. Without the old group there is no set-group-id bit either. */
static bool mode_keep(int fd, const target *t)
{
    mode_t mode = t->old.st_mode & 07777;
    struct stat st;
    if (t->is_new) return true;
    if (fstat(fd, &st) != 0) return false;
    if ((st.st_uid != t->old.st_uid || st.st_gid != t->old.st_gid) && fchown(fd, t->old.st_uid, t->old.st_gid) != 0 &&
        fchown(fd, (uid_t)-1, t->old.st_gid) != 0)
        mode &= (mode_t) ~(S_ISUID | S_ISGID);
    return fchmod(fd, mode) == 0;
}

/* ---- writing ---- */

enum { IN_ORDER = -1 };

/* At a place of a file, or behind what was written before. */
static bool fd_write(int fd, off_t place, const void *data, size_t size)
{
    const uint8_t *at = data;
    while (size > 0) {
        const ssize_t put = place == IN_ORDER ? write(fd, at, size) : pwrite(fd, at, size, place);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) {
            if (put == 0) errno = ENOSPC;
            return false;
        }
        at += put;
        size -= (size_t)put;
        if (place != IN_ORDER) place += put;
    }
    return true;
}

/* The rename survives a crash only once the folder is synced. A file system that cannot sync a folder is fine. */
static void folder_sync(target *t)
{
    t->file[t->folder] = 0;
    const int fd = open(t->folder ? t->file : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    (void)close(fd);
}

struct os_output {
    target t;
    int fd; /* of the temporary file; -1: there is none */
    char temp[PATH_MAX];
};

static sinter_status output_begin(env *e, os_output *o)
{
    o->fd = temp_create(&o->t, o->temp);
    if (o->fd >= 0) return SINTER_OK;
    return FAIL(e, IO, "cannot write '%s': no file can be made in its folder: %s", o->t.path, os_errno_text(errno).at);
}

static void output_end(os_output *o)
{
    if (o->fd < 0) return;
    (void)unlink(o->temp);
    (void)close(o->fd);
    o->fd = -1;
}

static sinter_status output_failed(env *e, const os_output *o, const char *step)
{
    return FAIL(e, IO, "cannot %s the new '%s': %s", step, o->t.path, os_errno_text(errno).at);
}

static sinter_status output_replace(env *e, os_output *o)
{
    if (!mode_keep(o->fd, &o->t)) return output_failed(e, o, "set the mode of");
    if (fsync(o->fd) != 0) return output_failed(e, o, "sync");
    /* The lock lasts until the file has its name. */
    if (rename(o->temp, o->t.file) != 0) return output_failed(e, o, "rename");
    (void)close(o->fd);
    o->fd = -1;
    folder_sync(&o->t);
    return SINTER_OK;
}

static sinter_status replace(env *e, os_output *o, const void *data, size_t size)
{
    TRY(output_begin(e, o));
    const bool is_good = fd_write(o->fd, IN_ORDER, data, size);
    const sinter_status s = is_good ? output_replace(e, o) : output_failed(e, o, "write");
    output_end(o);
    return s;
}

static sinter_status write_direct(env *e, const target *t, const void *data, size_t size)
{
    int fd;
    do fd = open(t->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    while (fd < 0 && errno == EINTR);
    bool is_good = fd >= 0 && fd_write(fd, IN_ORDER, data, size);
    int code = errno;
    if (fd >= 0 && close(fd) != 0 && is_good) is_good = false, code = errno;
    return is_good ? SINTER_OK : FAIL(e, IO, "cannot write '%s': %s", t->path, os_errno_text(code).at);
}

/* A reader that goes and a file that grows too large raise signals that would end the process. Here they are errors. */
typedef struct quiet_signals {
    sigset_t set, before, old;
} quiet_signals;

static void signals_hold(quiet_signals *q)
{
    (void)sigemptyset(&q->set);
    (void)sigaddset(&q->set, SIGPIPE);
    (void)sigaddset(&q->set, SIGXFSZ);
    (void)sigpending(&q->before);
    (void)pthread_sigmask(SIG_BLOCK, &q->set, &q->old);
}

static void signals_drop(quiet_signals *q)
{
    const struct timespec now = { 0 };
    if (sigismember(&q->before, SIGPIPE) == 1) (void)sigdelset(&q->set, SIGPIPE);
    if (sigismember(&q->before, SIGXFSZ) == 1) (void)sigdelset(&q->set, SIGXFSZ);
    while (sigtimedwait(&q->set, NULL, &now) > 0) {}
    (void)pthread_sigmask(SIG_SETMASK, &q->old, NULL);
}

sinter_status os_file_write(env *e, const char *path, const os_file_kind *kind, const void *data, size_t size)
{
    os_output o = { .fd = -1 };
    TRY(target_find(e, path, kind, &o.t));
    quiet_signals q;
    signals_hold(&q);
    const sinter_status s = o.t.is_direct ? write_direct(e, &o.t, data, size) : replace(e, &o, data, size);
    signals_drop(&q);
    return s;
}

sinter_status os_output_open(env *e, const char *path, const os_file_kind *kind, os_output **out)
{
    *out = NULL;
    os_output *o = mem_zalloc(e, sizeof *o, _Alignof(os_output));
    if (!o) return FAIL_MEMORY(e, "a file to write");
    o->fd = -1;
    sinter_status s = target_find(e, path, kind, &o->t);
    if (s == SINTER_OK && !o->t.is_direct) s = output_begin(e, o);
    if (o->fd >= 0) *out = o;
    else mem_free(e, o, sizeof *o, _Alignof(os_output));
    return s;
}

sinter_status os_output_put(env *e, os_output *o, uint64_t at, const void *data, size_t size)
{
    quiet_signals q;
    signals_hold(&q);
    const bool is_good = at <= INT64_MAX - size && fd_write(o->fd, (off_t)at, data, size);
    const int code = errno;
    signals_drop(&q);
    errno = code;
    return is_good ? SINTER_OK : output_failed(e, o, "write");
}

sinter_status os_output_get(env *e, const os_output *o, uint64_t at, void *data, size_t size)
{
    while (size > 0) {
        const ssize_t got = pread(o->fd, data, size, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got == 0) errno = EIO;
        if (got <= 0) return output_failed(e, o, "read");
        data = (uint8_t *)data + got;
        at += (uint64_t)got;
        size -= (size_t)got;
    }
    return SINTER_OK;
}

sinter_status os_output_map(env *e, const os_output *o, os_file *out)
{
    struct stat st;
    *out = (os_file){ 0 };
    if (fstat(o->fd, &st) != 0) return output_failed(e, o, "read");
    void *data = st.st_size > 0 ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, o->fd, 0) : NULL;
    if (data == MAP_FAILED) return output_failed(e, o, "map");
    *out = (os_file){ .data = data, .size = (size_t)st.st_size, .is_mapped = data != NULL };
    return SINTER_OK;
}

sinter_status os_output_done(env *e, os_output *o)
{
    return output_replace(e, o);
}

void os_output_close(env *e, os_output *o)
{
    if (!o) return;
    output_end(o);
    mem_free(e, o, sizeof *o, _Alignof(os_output));
}

sinter_status os_file_write_check(env *e, const char *path, const os_file_kind *kind)
{
    target t;
    char temp[PATH_MAX];
    TRY(target_find(e, path, kind, &t));
    if (t.is_direct) return SINTER_OK;
    const int fd = temp_create(&t, temp);
    if (fd < 0)
        return FAIL(e, IO, "cannot write '%s': no file can be made in its folder: %s", path, os_errno_text(errno).at);
    (void)unlink(temp);
    (void)close(fd);
    return SINTER_OK;
}

/* ---- locks ---- */

sinter_status os_file_lock(env *e, const char *path, os_lock *out)
{
    enum { PAUSE_NS = 2000000 };
    static const uint64_t patience_ns = 60000000000u;
    const struct timespec pause = { .tv_nsec = PAUSE_NS };
    const uint64_t start = os_time_ns();
    *out = (os_lock){ -1 };
    while (os_time_ns() - start < patience_ns) {
        struct stat held, named;
        if (stat(path, &named) == 0 && !S_ISREG(named.st_mode))
            return SINTER_OK; /* opening a FIFO is seen at its other end */
        const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
        if (fd < 0) return FAIL(e, IO, "cannot write '%s': %s", path, os_errno_text(errno).at);
        const bool is_file = fstat(fd, &held) == 0 && S_ISREG(held.st_mode);
        const bool is_held = is_file && flock(fd, LOCK_EX | LOCK_NB) == 0;
        const bool is_busy = is_file && !is_held && errno == EWOULDBLOCK;
        /* Whoever held the lock before may have replaced the file. */
        const bool is_it = is_held && stat(path, &named) == 0 && is_same_inode(&held, &named);
        if (is_it) return out->fd = fd, SINTER_OK;
        (void)close(fd);
        if (!is_held && !is_busy) return SINTER_OK;
        if (is_busy) (void)nanosleep(&pause, NULL);
    }
    return FAIL(e, IO, "cannot write '%s': another process has locked it for a minute", path);
}

void os_file_unlock(os_lock *lock)
{
    if (lock->fd >= 0) (void)close(lock->fd);
    lock->fd = -1;
}
