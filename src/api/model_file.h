/* SPDX-License-Identifier: Apache-2.0 */
/* model_file.h - a model's file as what builds take. */
#ifndef API_MODEL_FILE_H
#define API_MODEL_FILE_H

#include "builder/builder.h"

/* Maps the file and calls `use` with it. External data may lie in its folder. INVALID_ARG where `path` is NULL. */
sinter_status api_model_file(env *e, const char *path, sinter_status (*use)(void *user, const build_model *m),
                             void *user);

#endif
