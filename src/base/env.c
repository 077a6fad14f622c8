/* SPDX-License-Identifier: Apache-2.0 */
/* env.c - the environment: options into defaults, the chain of causes, the log.
 *
 * The chain lives in a fixed buffer of the caller's: a failure can be reported when there is no memory left. Text from
 * models ends up in it, so bytes that would break "one line each" are replaced. */
#include "base/alloc.h"
#include "base/os.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const topic_names[LOG_TOPIC_COUNT] = {
    [LOG_IMPORT] = "import", [LOG_OPT] = "opt", [LOG_SELECT] = "select",
    [LOG_PLAN] = "plan",     [LOG_JIT] = "jit", [LOG_RUN] = "run",
};

static uint64_t limit_clamp(uint64_t value, uint64_t initial, uint64_t min, uint64_t max)
{
    if (value == 0) return initial;
    return value < min ? min : value > max ? max : value;
}

/* The topic of a word, as a bit; "all" names every topic. 0: there is none of that name. */
static uint32_t topic_of(const char *word, size_t length)
{
    if (length == 3 && !memcmp(word, "all", 3)) return (1u << LOG_TOPIC_COUNT) - 1u;
    for (unsigned i = 0; i < LOG_TOPIC_COUNT; i++) {
        if (strlen(topic_names[i]) == length && !memcmp(word, topic_names[i], length)) return 1u << i;
    }
    return 0;
}

/* A comma-separated list. `unknown` points at the first word that is no topic, else at NULL. */
static uint32_t topics_parse(const char *list, const char **unknown)
{
    uint32_t topics = 0;
    *unknown = NULL;
    while (list && *list) {
        const size_t length = strcspn(list, ",");
        const uint32_t topic = topic_of(list, length);
        if (!topic && !*unknown) *unknown = list;
        topics |= topic;
        list += length + (list[length] == ',');
    }
    return topics;
}

void env_init(env *e, const sinter_env_options *options, sinter_error *error)
{
    /* A caller compiled against an older header has a shorter struct: what it lacks is zero, the default. */
    sinter_env_options given = { 0 };
    if (options) {
        const size_t size = options->struct_size < sizeof given ? options->struct_size : sizeof given;
        memcpy(&given, options, size);
    }
    sinter_limits limits = { 0 };
    if (given.limits) limits = *given.limits;

    *e = (env){ .log = given.log, .log_user = given.log_user, .plugins = given.plugins };
    if (given.allocator && given.allocator->resize) e->alloc = *given.allocator;
    else e->alloc = (sinter_allocator){ .resize = alloc_resize_default };
#define SINTER_X(name, initial, min, max, text) e->limits.name = limit_clamp(limits.name, initial, min, max);
    SINTER_LIMITS(SINTER_X)
#undef SINTER_X
    /* No default permits more than half of what the machine has. */
    const uint64_t memory = os_memory_size() / 2;
    if (!limits.memory_max && memory && e->limits.memory_max > memory) e->limits.memory_max = memory;
    if (given.log)
        e->log_topics = topics_parse(given.log_topics ? given.log_topics : os_env("SINTER_LOG"), &e->unknown_topic);
    e->unknown_is_option = given.log_topics != NULL;
    e->error = error ? error : &e->error_own;
}

sinter_status env_check(env *e)
{
    const char *word = e->unknown_topic;
    if (!word) return SINTER_OK;
    return FAIL(e, INVALID_ARG,
                "there is no log topic '%.*s' (%s): expected import, opt, select, plan, jit, run or all",
                (int)strcspn(word, ","), word, e->unknown_is_option ? "log_topics" : "SINTER_LOG");
}

/* The path from the source root on, so that a message does not depend on where the library was built. */
static const char *file_short(const char *file)
{
    const char *tail = file;
    for (const char *at = strstr(file, "src/"); at; at = strstr(at + 1, "src/")) {
        if (at == file || at[-1] == '/') tail = at + 4;
    }
    return tail;
}

/* Drops a UTF-8 sequence that the end of the buffer cut in two. */
static size_t cut_utf8(const char *text, size_t length)
{
    size_t start = length;
    while (start > 0 && length - start < 3 && ((unsigned char)text[start - 1] & 0xC0) == 0x80) start--;
    if (start == 0) return length;
    const unsigned char lead = (unsigned char)text[start - 1];
    const size_t want = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    return length - (start - 1) < want ? start - 1 : length;
}

/* Appends formatted text, cut at the end of the buffer; control characters become spaces. */
static void error_vprintf(sinter_error *error, const char *format, va_list args)
{
    const size_t room = SINTER_ERROR_TEXT_SIZE - error->length;
    char *at = error->text + error->length;
    const int wrote = vsnprintf(at, room, format, args);
    if (wrote <= 0) {
        *at = 0;
        return;
    }
    size_t length = (size_t)wrote;
    if (length >= room) length = cut_utf8(at, room - 1);
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)at[i] < 0x20 || at[i] == 0x7F) at[i] = ' ';
    }
    at[length] = 0;
    error->length += (uint32_t)length;
}

static void ENV_PRINTF(2, 3) error_printf(sinter_error *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error_vprintf(error, format, args);
    va_end(args);
}

static void error_newline(sinter_error *error)
{
    if (error->length == 0 || error->length + 1 >= SINTER_ERROR_TEXT_SIZE) return;
    error->text[error->length++] = '\n';
    error->text[error->length] = 0;
}

sinter_status env_fail(env *e, sinter_status status, const char *file, int line, const char *format, ...)
{
    sinter_error *error = e->error;
    error->status = status;
    error->length = 0;
    va_list args;
    va_start(args, format);
    error_vprintf(error, format, args);
    va_end(args);
    error_printf(error, " [%s:%d]", file_short(file), line);
    return status;
}

sinter_status env_fail_memory(env *e, const char *file, int line, const char *what)
{
    if (!e->met_limit) return env_fail(e, SINTER_NO_MEMORY, file, line, "out of memory for %s", what);
    return env_fail(e, SINTER_NO_MEMORY, file, line, "the limit memory_max, %llu bytes, is too small for %s",
                    (unsigned long long)e->limits.memory_max, what);
}

sinter_status env_note(env *e, sinter_status status, const char *file, int line, const char *format, ...)
{
    if (status == SINTER_OK) return status;
    sinter_error *error = e->error;
    if (error->length >= SINTER_ERROR_TEXT_SIZE) error->length = SINTER_ERROR_TEXT_SIZE - 1;
    error->status = status;
    error_newline(error);
    error_printf(error, "%s", strncmp(format, "while ", 6) ? "  while " : "  ");
    va_list args;
    va_start(args, format);
    error_vprintf(error, format, args);
    va_end(args);
    error_printf(error, " [%s:%d]", file_short(file), line);
    return status;
}

void env_log(env *e, log_topic topic, const char *format, ...)
{
    if (!env_logs(e, topic)) return;
    char line[2048];
    va_list args;
    va_start(args, format);
    const int wrote = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (wrote < 0) return;
    if ((size_t)wrote >= sizeof line) line[cut_utf8(line, sizeof line - 1)] = 0;
    e->log(e->log_user, topic_names[topic], line);
}
