/* SPDX-License-Identifier: Apache-2.0 */
/* option.h - what the caller may give to any object when it is created: allocator, log, limits; and the tables of
 * options that are one number, one word or one switch. */
#ifndef SINTER_OPTION_H
#define SINTER_OPTION_H

#include "status.h"
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One function allocates, resizes and frees. old_size 0: allocate. new_size 0: free, and return NULL. `align` is a
 * power of two, and the same in all calls for one block. On failure return NULL and keep the old block unchanged. The
 * function is called from every thread that uses the object. It must not call sinter. */
typedef struct sinter_allocator {
    void *user;
    void *(*resize)(void *user, void *ptr, size_t old_size, size_t new_size, size_t align);
} sinter_allocator;

/* Receives one line of log, without a newline. It runs on the thread that logs. It must not call sinter. */
typedef void (*sinter_log_fn)(void *user, const char *topic, const char *line);

/* X(name, default, min, max, text): the most that a hostile or mistaken input may cost.
 *
 * memory_max counts all memory from the caller's allocator and from the device's driver. For a build: the graph,
 * weights that the build changes, the new engine, and memory for measuring. For an engine: the whole file, which is
 * read into memory and never mapped, and weights on the device. For a context: activations, workspace, results of
 * data-dependent size, copies and programs. The limit holds for each engine and each context by itself. memory_max does
 * not count mapped pages of the model file and of external data during a build (the system can take these pages back),
 * stacks of threads, memory that a driver or a device's compiler allocates for itself, memory of the caller, and memory
 * from sinter_engine_alloc. */
#define SINTER_LIMITS(X)                                                                                    \
    X(nodes_max, 1u << 20, 1, UINT32_MAX, "Nodes of a graph after functions are expanded.")                 \
    X(depth_max, 32, 1, 64, "Nesting of subgraphs and of function calls.")                                  \
    X(memory_max, (uint64_t)1 << 40, 1u << 16, UINT64_MAX,                                                  \
      "Bytes that one build, engine or context holds; by default at most half of the machine's.")           \
    X(fold_max, (uint64_t)1 << 28, 0, UINT64_MAX, "Bytes of one constant folded from far fewer elements.")  \
    X(loop_max, (uint64_t)1 << 31, 1, INT64_MAX, "Iterations of one Loop or Scan.")

typedef struct sinter_limits {
#define SINTER_X(name, initial, min, max, text) uint64_t name;
    SINTER_LIMITS(SINTER_X)
#undef SINTER_X
} sinter_limits;

/* Ops from outside: plugin.h. */
typedef struct sinter_plugins sinter_plugins;

typedef struct sinter_env_options {
    size_t                  struct_size;   /* sizeof this struct in the caller's headers */
    const sinter_allocator *allocator;     /* NULL: malloc. Copied; `user` must outlive the object */
    sinter_log_fn           log;           /* NULL: none */
    void                   *log_user;
    /* "import,opt,select,plan,jit,run", or "all"; NULL: the value of SINTER_LOG. If `log` is set, an unknown word is
     * INVALID_ARG. */
    const char             *log_topics;
    const sinter_limits    *limits;        /* NULL: defaults; a field of 0 means its default. Copied */
    const sinter_plugins   *plugins;       /* NULL: none. Borrowed; must outlive the object */
} sinter_env_options;
#define SINTER_ENV_OPTIONS { sizeof(sinter_env_options), 0, 0, 0, 0, 0, 0 }

/* Tables of options: SINTER_BUILD_SCALARS (build.h), SINTER_ENGINE_SCALARS (engine.h), SINTER_CONTEXT_SCALARS (run.h).
 * X(kind, type, field, initial, most, words, text). A row makes the field of the options' struct and its initial value,
 * the check of its value, the option --field of the command ('-' for '_'), and its entry in the documentation.
 *
 *   FLAG     uint32_t, 0 or not          COUNT    uint32_t or uint64_t, 0 to `most`    REAL    double, 0 to `most`
 *   CHOICE   an enum: the index of one of the words in "a|b|c"
 *   SET      uint32_t: bit i is the i-th word of "a|b|c"; as text "a,c"
 *   TEXT     a string, borrowed while the call or the object that takes it lasts; NULL: not given
 *   ANY, WORD, DEVICE, RULES    TEXT that may be empty; one of the words; the name of a device; "-name,-name"
 *
 * `words` of the other kinds: what stands for the value where the option is described. */
typedef enum sinter_option_kind {
    SINTER_OPTION_FLAG, SINTER_OPTION_COUNT, SINTER_OPTION_REAL, SINTER_OPTION_CHOICE, SINTER_OPTION_SET,
    SINTER_OPTION_TEXT, SINTER_OPTION_ANY, SINTER_OPTION_WORD, SINTER_OPTION_DEVICE, SINTER_OPTION_RULES
} sinter_option_kind;
#define SINTER_FIELD(kind, type, field, initial, most, words, text) type field;
#define SINTER_INITIAL(kind, type, field, initial, most, words, text) initial,

typedef struct sinter_option {
    const char        *name;        /* of the field */
    sinter_option_kind kind;
    uint32_t           offset, size;            /* of the field in its struct */
    double             initial, most;           /* of numbers and of choices */
    const char        *words, *text;
} sinter_option;

/* Row `index` of a table; NULL behind the last. The library's own memory. */
SINTER_API const sinter_option *sinter_build_option(uint32_t index);
SINTER_API const sinter_option *sinter_engine_option(uint32_t index);
SINTER_API const sinter_option *sinter_context_option(uint32_t index);

/* Reads the text of a value into the option's field of `options`, the struct that the row belongs to: what command
 * lines and bindings share. FLAG takes "0" and "1". Strings are borrowed. Errors: INVALID_ARG, and the field keeps its
 * value. */
SINTER_API sinter_status sinter_option_set(const sinter_option *option, void *options, const char *text,
                                           sinter_error *error) SINTER_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
