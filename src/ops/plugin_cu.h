/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_cu.h - a CUDA source file alone as a plugin: a comment in it says what it is. docs/plugins.md has the form. */
#ifndef OPS_PLUGIN_CU_H
#define OPS_PLUGIN_CU_H

#include "ops/plugin.h"

/* Reads the comment of `words` and adds the plugin; `path` is for messages. Errors: INVALID_ARG names the line. */
sinter_status plugin_cu_add(env *e, struct sinter_plugins *r, const char *path, const char *words, size_t size);

#endif
