/* SPDX-License-Identifier: Apache-2.0 */
/* env.h - the one explicit parameter of every fallible internal function: allocator, limits, log and error chain.
 *
 * FAIL starts a chain, NOTE adds a frame to an existing one, TRY passes a failure on. A message states the value found,
 * the value wanted, and the user's own name for the thing. An env belongs to one thread at a time. */
#ifndef BASE_ENV_H
#define BASE_ENV_H

#include "sinter/option.h"
#include "sinter/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum log_topic {
    LOG_IMPORT, LOG_OPT, LOG_SELECT, LOG_PLAN, LOG_JIT, LOG_RUN, LOG_TOPIC_COUNT
} log_topic;

/* What an object holds, against limits.memory_max. What a build makes to measure counts there too: `outer`. */
typedef struct env_budget {
    struct env_budget *outer;
    uint64_t           used;                /* bytes; atomic: a device's threads allocate, too */
} env_budget;

typedef struct env {
    sinter_allocator alloc;                /* resize is never NULL after env_init */
    sinter_limits    limits;
    env_budget      *budget;               /* NULL: nothing is counted */
    sinter_log_fn    log;                  /* NULL: nobody listens */
    void            *log_user;
    const sinter_plugins *plugins;         /* NULL: none; ops/plugin.h knows what it is */
    uint32_t         log_topics;           /* bit per log_topic */
    uint32_t         isa_asked;            /* 1 + the CPU's level, kept by cpu/isa.c; 0: not asked yet */
    bool             met_limit;            /* memory_max refused memory */
    const char      *unknown_topic;        /* a word of the caller's list, or of SINTER_LOG; NULL: all are known */
    bool             unknown_is_option;    /* it is in log_topics, not in SINTER_LOG */
    sinter_error    *error;                /* never NULL after env_init */
    sinter_error     error_own;            /* where error points when the caller gave none */
} env;

/* Fills `e` from the caller's options (NULL: defaults: malloc, no log, default limits). `error` may be NULL. */
void env_init(env *e, const sinter_env_options *options, sinter_error *error);
/* Were the options in order? INVALID_ARG names an unknown log topic. Right after env_init: the list is the caller's. */
sinter_status env_check(env *e);

#if defined(__GNUC__)
#define ENV_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define ENV_PRINTF(f, a)
#endif

/* Starts a chain: sets the status and the first line. Returns `status`. */
sinter_status env_fail(env *e, sinter_status status, const char *file, int line, const char *format, ...)
    ENV_PRINTF(5, 6);
/* NO_MEMORY for `what`: names the limit where that refused the memory. */
sinter_status env_fail_memory(env *e, const char *file, int line, const char *what);
/* Adds a line "  while ..." when `status` is a failure. Returns `status`. */
sinter_status env_note(env *e, sinter_status status, const char *file, int line, const char *format, ...)
    ENV_PRINTF(5, 6);
/* Writes one line to the log where someone listens to `topic`. */
void env_log(env *e, log_topic topic, const char *format, ...) ENV_PRINTF(3, 4);
static inline bool env_logs(const env *e, log_topic topic)
{
    return e->log && (e->log_topics >> topic & 1u);
}

#define FAIL(e, code, ...) env_fail((e), SINTER_##code, __FILE__, __LINE__, __VA_ARGS__)
#define NOTE(e, status, ...) env_note((e), (status), __FILE__, __LINE__, __VA_ARGS__)
#define TRY(expr)                                                                                                    \
    do {                                                                                                             \
        const sinter_status try_status_ = (expr);                                                                    \
        if (try_status_ != SINTER_OK) return try_status_;                                                            \
    } while (0)
/* The failure of every allocation that is checked where it happens. */
#define FAIL_MEMORY(e, what) env_fail_memory((e), __FILE__, __LINE__, (what))

/* Counts bytes that are there, or gone. False: they would pass limits.memory_max, and are not counted. */
bool env_take(env *e, uint64_t size);
void env_give(env *e, uint64_t size);

/* The three uses of the caller's allocator. Memory is not cleared, except by mem_zalloc. NULL on failure or size 0. All
 * count in the budget; what one env allocated under another budget is not given back to it. */
void *mem_alloc(env *e, size_t size, size_t align);
void *mem_zalloc(env *e, size_t size, size_t align);
void  mem_free(env *e, void *ptr, size_t size, size_t align);
void *mem_resize(env *e, void *ptr, size_t old_size, size_t new_size, size_t align);

/* Sizes saturate at SIZE_MAX, which every allocator here refuses: overflow is handled in one place. */
static inline size_t size_add(size_t a, size_t b) { return a > SIZE_MAX - b ? SIZE_MAX : a + b; }
static inline size_t size_mul(size_t a, size_t b) { return b && a > SIZE_MAX / b ? SIZE_MAX : a * b; }
static inline size_t size_align(size_t a, size_t align)
{
    return a > SIZE_MAX - (align - 1) ? SIZE_MAX : (a + align - 1) / align * align;
}
/* Checked int64 arithmetic: false where the result does not fit. */
static inline bool i64_add(int64_t a, int64_t b, int64_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline bool i64_sub(int64_t a, int64_t b, int64_t *out) { return !__builtin_sub_overflow(a, b, out); }
static inline bool i64_mul(int64_t a, int64_t b, int64_t *out) { return !__builtin_mul_overflow(a, b, out); }

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
