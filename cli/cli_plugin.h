/* SPDX-License-Identifier: Apache-2.0 */
/* cli_plugin.h - the plugins of --plugin, and the files of `sinter plugin new`. */
#ifndef CLI_PLUGIN_H
#define CLI_PLUGIN_H

#include "args.h"

/* Loads the libraries. False: reported. */
bool                  cli_plugins_open(const arg_list *path, bool is_checked);
const sinter_plugins *cli_plugins(void);                    /* NULL: none were asked for */

/* The files of a new plugin. In the text, @NAME@ stands for its name. */
typedef struct plugin_file { const char *name, *text, *more; } plugin_file;
extern const plugin_file plugin_files[], plugin_files_cuda[];   /* end with name NULL */

#endif
