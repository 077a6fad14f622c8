/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - one place that writes what is said about the work. */
#include "log.h"

#include "print.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static log_style current = { .most = LOG_VERBOSE };

void log_set(const log_style *style)
{
    current = *style;
}

const log_style *log_get(void)
{
    return &current;
}

log_level log_level_of(const char *word)
{
    static const char *const words[LOG_LEVELS] = { "error", "warning", "info", "verbose" };
    uint32_t i = 0;
    while (i < LOG_VERBOSE && strcmp(words[i], word) != 0) i++;
    return (log_level)i;
}

/* What stands before the kind of a line on a terminal, and behind it; "": no colour. trtexec's lines have none. */
static const char *colour_of(FILE *to, log_level level)
{
    static const char *const code[LOG_LEVELS] = { "\x1b[1;31m", "\x1b[33m", "", "" };
    const char *off = getenv("NO_COLOR");
    return !current.is_split && isatty(fileno(to)) && !(off && *off) ? code[level] : "";
}

/* In plain style only the first line of a text says what it is. */
static void line(FILE *to, log_level level, bool has_time, bool is_first, const char *text, size_t length)
{
    static const char letter[LOG_LEVELS] = { 'E', 'W', 'I', 'V' };
    static const char *const word[LOG_LEVELS] = { "error: ", "warning: ", "note: ", "" };
    char stamp[32] = { 0 };
    struct tm parts;
    const time_t now = time(NULL);
    if (has_time && localtime_r(&now, &parts)) (void)strftime(stamp, sizeof stamp, "%m/%d/%Y-%H:%M:%S", &parts);
    const char *colour = colour_of(to, level), *plain = *colour ? "\x1b[0m" : "";
    flockfile(to);
    if (has_time) (void)fprintf(to, "%s[%s] [%c]%s ", colour, stamp, letter[level], plain);
    else if (is_first) (void)fprintf(to, "%s%s%s", colour, word[level], plain);
    (void)fwrite(text, 1, length, to);
    (void)fputc('\n', to);
    funlockfile(to);
}

void cli_say(log_level level, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    const int length = vsnprintf(NULL, 0, format, list);
    char *text = cli_alloc(length < 0 ? 1 : (size_t)length + 1, 1);
    if (length > 0) (void)vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(list);
    FILE *to = current.is_split && level >= LOG_INFO ? stdout : stderr;
    const char *at = text;
    do {
        const size_t n = strcspn(at, "\n");
        if (level <= current.most) line(to, level, current.has_time, at == text, at, n);
        if (current.file) line(current.file, level, true, at == text, at, n);
        at += n;
    } while (*at++ == '\n' && *at);
    free(text);
}
