/* SPDX-License-Identifier: Apache-2.0 */
/* fields.h - a tactic as a list of fields: what each may be, and how it is printed.
 *
 * A row's tactic is a struct of TACTIC_SIZE bytes. Its table names every field once; bytes that no field has are zero.
 * What one field means for another is the row's own to check. */
#ifndef CUDA_FIELDS_H
#define CUDA_FIELDS_H

#include "backend/kernel.h"
#include "base/text.h"

#include <stddef.h>
#include <string.h>

typedef struct tactic_field {
    uint8_t     at, size;               /* in the tactic; 1, 2 or 4 bytes */
    uint32_t    least, most;
    bool        is_power;               /* of two */
    const char *text;                   /* before the number; NULL: it is not printed */
    uint32_t    times;                  /* the number is so many times the field; 0: `text` alone, where it is not 0 */
} tactic_field;
/* least, most, and as many of the others as are wanted, in order */
#define FIELD(type, name, ...) { .at = offsetof(type, name), .size = sizeof(((type *)0)->name), .least = __VA_ARGS__ }

/* All fields are in range, and the rest of the tactic is zero. */
bool fields_hold(const tactic_field *field, size_t count, const tactic *t);
void fields_print(const tactic_field *field, size_t count, const tactic *t, text *out);
#define FIELDS_HOLD(list, t) fields_hold(list, COUNT_OF(list), t)
/* A row's `print`, where its fields are all that there is to say. */
#define FIELDS_PRINT(name, list) \
    static void name(const tactic *t, text *out) { fields_print(list, COUNT_OF(list), t, out); }

/* The tactic with its byte `at` from 1 to `most`. */
void fields_vary(const tactic *t, size_t at, uint8_t most, tactic_sink *out);
/* A row's `lets_in`: `trigger` of its tactic, a byte, says when. */
#define FIELDS_LET_IN(name, type, most) \
    static void name(const tactic *t, tactic_sink *out) { fields_vary(t, offsetof(type, trigger), most, out); }

/* The tactic as its row's struct, and back: *own is added to the sink where there is room. */
#define TACTIC_AS(type, t) (((const union { tactic bytes; type own; }){ .bytes = *(t) }).own)
static inline void tactic_put(tactic_sink *out, const void *own)
{
    if (out->count < COUNT_OF(out->at)) memcpy(&out->at[out->count++], own, TACTIC_SIZE);
}

/* 1, 2, 4, ... most */
static inline bool is_power(uint32_t n, uint32_t most)
{
    return n && n <= most && !(n & (n - 1));
}

#endif
