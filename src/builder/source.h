/* SPDX-License-Identifier: Apache-2.0 */
/* source.h - where a build's weights come from: the model's bytes and the files of external data. */
#ifndef BUILD_SOURCE_H
#define BUILD_SOURCE_H

#include "builder/builder.h"
#include "onnx/model.h"

typedef struct source {
    const build_model *model;
    onnx_files         files;           /* mapped by the import */
} source;

/* SHA-256 of the model. Reading it once for that leaves none of its pages in memory. */
void source_digest(const source *s, uint8_t digest[32]);
/* Gives up the pages of bytes that are not needed soon, if the bytes are in a mapped file (`user` is a source). So the
 * mapping and the data made from it are not both in memory. */
void source_forget(void *user, const void *at, size_t size);

#endif
