/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - lines about the work itself: errors, warnings, notes. Reports of results go to stdout by themselves. */
#ifndef CLI_LOG_H
#define CLI_LOG_H

#include <stdbool.h>
#include <stdio.h>

/* A level hides all that are higher. */
typedef enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_VERBOSE, LOG_LEVELS } log_level;

/* How lines look and where they go. Without a call of log_set: "error: …", "warning: …" and "note: …" to stderr, plain
 * text for LOG_VERBOSE, and no line is hidden. */
typedef struct log_style {
    log_level most;         /* the highest level that is shown */
    bool      has_time;     /* "[MM/DD/YYYY-HH:MM:SS] [E] …" in place of "error: …" */
    bool      is_split;     /* LOG_INFO and LOG_VERBOSE go to stdout, as those of trtexec do */
    FILE     *file;         /* NULL, or a file that gets all lines, with the time, whatever the level */
} log_style;
void log_set(const log_style *style);
/* The level of "error", "warning", "info" or "verbose"; LOG_VERBOSE for any other word. */
log_level log_level_of(const char *word);
const log_style *log_get(void);

/* One line for each line of the text. Any thread. */
void cli_say(log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
