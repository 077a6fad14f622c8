/* SPDX-License-Identifier: Apache-2.0 */
/* wire.h - protobuf's wire format, read in place.
 *
 * A cursor over bytes that nobody trusts: every length is checked against what is left, a varint has at most ten bytes,
 * groups are refused. Skipping a field is a jump, never a call, so nesting costs nothing until someone descends. */
#ifndef ONNX_WIRE_H
#define ONNX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum wire_type { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 } wire_type;

typedef struct wire {
    const uint8_t *at, *end;
    bool           is_bad;      /* damage was met; wire_next stays false */
} wire;

typedef struct wire_field {
    uint32_t       number;
    wire_type      type;
    uint64_t       value;       /* of a number: its bits */
    const uint8_t *at;          /* of bytes */
    size_t         size;
} wire_field;

wire wire_of(const uint8_t *bytes, size_t size);
bool wire_next(wire *w, wire_field *field);         /* false at the end, and on damage (is_bad) */

/* The numbers of one occurrence of a repeated field, packed or not: `kind` is how each is encoded. */
typedef struct wire_list {
    wire      w;
    wire_type kind;
    uint64_t  single;
    bool      has_single;
} wire_list;
bool wire_list_of(const wire_field *field, wire_type kind, wire_list *out); /* false: another type, or a torn list */
size_t wire_list_count(const wire_list *list);                                  /* exact for a list without damage */
bool wire_list_next(wire_list *list, uint64_t *value); /* false at the end, and on damage (w.is_bad) */

#endif
