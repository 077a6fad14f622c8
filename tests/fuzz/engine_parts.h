/* SPDX-License-Identifier: Apache-2.0 */
/* engine_parts.h - an engine file taken apart into its sections, changed record by record, and put together again with
 * checksums that are right. */
#ifndef ENGINE_PARTS_H
#define ENGINE_PARTS_H

#include "engine/format.h"
#include <stdbool.h>

typedef struct image { uint8_t *at; size_t size; } image;      /* malloc'ed */

typedef struct parts {
    image         at[SECTION_KIND_COUNT];
    engine_header header;
} parts;

image  image_copy(const void *at, size_t size);
/* `file` is whole: what a build wrote. */
parts  parts_of(image file);
void   parts_free(parts *p);
/* The file; frees the parts. Checksums are not set. */
image  parts_together(parts *p);
/* Makes the checksums of sections and header right, as far as the table can be read. */
void   parts_seal(uint8_t *at, size_t size);

uint32_t parts_count(const parts *p, uint32_t kind);
void    *parts_record(const parts *p, uint32_t kind, uint32_t index);
/* Copies a record in at `index`; returns the index. Nothing that refers to records behind it is changed. */
uint32_t parts_insert(parts *p, uint32_t kind, uint32_t index, const void *record);
void     parts_remove(parts *p, uint32_t kind, uint32_t index);
/* Appends text with its NUL; returns where it begins. */
uint32_t parts_text(parts *p, const char *words);

/* Tables that profiles divide among them: a record joins or leaves the part of `profile`, and later parts move. */
void     parts_insert_in(parts *p, uint32_t kind, uint32_t profile, const void *record);

#endif
