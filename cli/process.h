/* SPDX-License-Identifier: Apache-2.0 */
/* process.h - other programs that the command runs, and a folder for the files that they share. */
#ifndef CLI_PROCESS_H
#define CLI_PROCESS_H

#include <stdbool.h>

/* A new folder below $TMPDIR or /tmp, or inside `beside` where that is not NULL. NULL: reported. The caller frees it.
 */
char *folder_make(const char *beside);
/* Removes the folder with the files and folders in it, and frees the name. NULL is accepted. */
void folder_remove(char *folder);

/* Runs a program found by PATH and waits for it. `log`: a file that receives what it prints; NULL: it prints here.
 * Returns its exit status, 128 + N where signal N ended it, -1 where it could not be started. */
int process_run(char *const *argv, const char *log);
/* The path of this command itself. */
const char *process_self(void);

#endif
