/* SPDX-License-Identifier: Apache-2.0 */
/* os.h - files, threads and time: the only folder that calls the operating system (os_posix.c). */
#ifndef BASE_OS_H
#define BASE_OS_H

#include "base/env.h"

/* A file's bytes, read into memory of our own, or mapped where the caller asked for it. */
typedef struct os_file {
    uint8_t *data;
    size_t   size;
    bool     is_mapped;
} os_file;
sinter_status os_file_read(env *e, const char *path, size_t size_max, os_file *out);   /* regular files only */
sinter_status os_file_map(env *e, const char *path, os_file *out);       /* read-only; must not shrink while mapped */
/* Bytes inside a mapped file that will hardly be read again: their pages leave this process, not the system's cache. */
void          os_file_forget(const void *at, size_t size);
void          os_file_close(env *e, os_file *file);                      /* a zeroed one too */

/* Maps `name`, a relative path given by a hostile model, from inside `folder` only: no "..", no absolute path, no
 * symbolic links that lead out, regular files only. */
sinter_status os_file_map_beneath(env *e, const char *folder, const char *name, os_file *out);

/* What a file begins with. An existing file that is not empty is replaced by a file of its own kind alone. */
enum { OS_MAGIC_MAX = 32 };
typedef struct os_file_kind {
    const char *name;               /* "an engine" */
    const char *magic;
    size_t      size;               /* bytes of magic, at most OS_MAGIC_MAX */
} os_file_kind;

/* os_write.c: every file is written by this. A regular file is replaced as a whole: readers see the old file or the new
 * one. Symbolic links and the old file's mode stay; FIFOs and character devices are written to directly. `kind` NULL:
 * any file is replaced. Errors: INVALID_ARG (a folder, a file of another kind), IO, NO_MEMORY. */
sinter_status os_file_write(env *e, const char *path, const os_file_kind *kind, const void *data, size_t size);
/* The same for bytes that come in pieces. The pieces go to a temporary file beside the target, and os_output_done puts
 * it in the target's place. os_output_close ends it either way: without os_output_done nothing has changed. Bytes that
 * were never put are 0. *out NULL with OK: the target is a FIFO or a device, which os_file_write takes as a whole.
 * `path` lives as long. */
typedef struct os_output os_output;
sinter_status os_output_open(env *e, const char *path, const os_file_kind *kind, os_output **out);
sinter_status os_output_put(env *e, os_output *o, uint64_t at, const void *data, size_t size);
sinter_status os_output_get(env *e, const os_output *o, uint64_t at, void *data, size_t size);
sinter_status os_output_map(env *e, const os_output *o, os_file *out);   /* all of it, read-only */
sinter_status os_output_done(env *e, os_output *o);
void          os_output_close(env *e, os_output *o);                     /* NULL is accepted */
/* Would os_file_write take this path now? Makes a temporary file beside the target and removes it. */
sinter_status os_file_write_check(env *e, const char *path, const os_file_kind *kind);
/* Do both paths name one regular file, also through links, or one file that does not exist yet? */
bool          os_file_is_same(const char *a, const char *b);

/* Waits, at most a minute, until no other process or thread holds the lock of the regular file `path`, which is made
 * where it is missing. The lock ends with the process. Files that are not regular have no lock. */
typedef struct os_lock { int fd; } os_lock;
sinter_status os_file_lock(env *e, const char *path, os_lock *out);
void          os_file_unlock(os_lock *lock);

/* The text of an errno. */
typedef struct os_error_text { char at[96]; } os_error_text;
os_error_text os_errno_text(int code);

/* Makes a folder and those above it, for this user alone where they are new. False: it is not there now. */
bool          os_folder_make(const char *path);

/* Threads. */
typedef struct os_thread os_thread;
sinter_status os_thread_start(env *e, void (*body)(void *), void *arg, os_thread **out);
void          os_thread_join(env *e, os_thread *thread);
/* os_cpu.c. Cores that this process may use, at least 1: its affinity mask, two logical CPUs of one core counted once,
 * and at most what the quota of its control group is worth. */
unsigned      os_cpu_count(void);
/* One logical CPU of each core in the affinity mask, in rising order; returns how many there are, which may be more
 * than `most`. 0: unknown. */
unsigned      os_core_list(uint32_t *cpu, unsigned most);
void          os_thread_pin(uint32_t cpu);                               /* this thread runs there alone; a hint */
unsigned      os_node_count(void);                                       /* NUMA nodes with memory; at least 1 */
/* Spreads the pages of a fresh block of 4 MiB or more over all nodes. Nothing where there is one. A hint. */
void          os_memory_spread(void *data, size_t size);
/* Writes these bytes back to memory and removes them from all caches, those of other cores too. The bytes stay as they
 * are. Does nothing on a processor that has no instruction for it. Cost: 60 to 85 us a MiB, measured on one Xeon. */
void          os_memory_evict(const void *data, size_t size);
uint32_t      os_process_id(void);
void          os_thread_yield(void);
/* Sleeps while *word == expected, or until woken or after timeout_ns (0: none). Spurious returns are possible. */
void          os_wait(uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void          os_wake_all(uint32_t *word);

uint64_t      os_time_ns(void);                                          /* monotonic */
uint64_t      os_busy_ns(void);                                          /* of this thread on a processor */
const char   *os_env(const char *name);                                  /* NULL where unset */
/* A shared library, by name or path; NULL: `why` says why not. It stays in memory when closed: drivers keep threads. */
void         *os_library_open(const char *name, char *why, size_t why_size);
void          os_library_close(void *library);
void         *os_library_symbol(void *library, const char *name);        /* NULL: it has none of that name */
void          os_library_path(void *library, char *out, size_t size);    /* the file that was opened */
/* Asks for large pages behind a big fresh block: faulting in small ones takes longer than reading a file. A hint. */
void          os_memory_hint_large(void *data, size_t size);
uint64_t      os_memory_size(void);                                      /* bytes of the machine; 0: unknown */

#endif
