/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c - the protobuf reader: tags, varints, fixed words, lengths. */
#include "onnx/wire.h"

wire wire_of(const uint8_t *bytes, size_t size)
{
    return (wire){ .at = bytes, .end = size ? bytes + size : bytes };
}

/* Ten bytes carry 70 bits: the tenth may only hold the top one. */
static bool varint(wire *w, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (w->at == w->end) break;
        const uint8_t byte = *w->at++;
        if (shift == 63 && byte > 1) break;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *out = value;
            return true;
        }
    }
    w->is_bad = true;
    return false;
}

static bool fixed(wire *w, unsigned size, uint64_t *out)
{
    if ((size_t)(w->end - w->at) < size) {
        w->is_bad = true;
        return false;
    }
    uint64_t value = 0;
    for (unsigned i = 0; i < size; i++) value |= (uint64_t)w->at[i] << (8 * i);
    w->at += size;
    *out = value;
    return true;
}

bool wire_next(wire *w, wire_field *field)
{
    if (w->is_bad || w->at == w->end) return false;
    uint64_t tag = 0;
    if (!varint(w, &tag)) return false;
    *field = (wire_field){ .number = (uint32_t)(tag >> 3), .type = (wire_type)(tag & 7) };
    if (tag > UINT32_MAX || field->number == 0) {
        w->is_bad = true;
        return false;
    }
    switch ((unsigned)(tag & 7)) {
    case WIRE_VARINT: return varint(w, &field->value);
    case WIRE_64: return fixed(w, 8, &field->value);
    case WIRE_32: return fixed(w, 4, &field->value);
    case WIRE_BYTES: {
        uint64_t size = 0;
        if (!varint(w, &size)) return false;
        if (size > (uint64_t)(w->end - w->at)) break;
        field->at = w->at;
        field->size = (size_t)size;
        w->at += size;
        return true;
    }
    default: break; /* groups, and types that do not exist */
    }
    w->is_bad = true;
    return false;
}

bool wire_list_of(const wire_field *field, wire_type kind, wire_list *out)
{
    *out = (wire_list){ .kind = kind };
    if (field->type == kind) {
        out->single = field->value;
        out->has_single = true;
        return true;
    }
    if (field->type != WIRE_BYTES) return false;
    if (kind == WIRE_64 && field->size % 8) return false;
    if (kind == WIRE_32 && field->size % 4) return false;
    if (kind == WIRE_VARINT && field->size && (field->at[field->size - 1] & 0x80)) return false;
    out->w = wire_of(field->at, field->size);
    return true;
}

size_t wire_list_count(const wire_list *list)
{
    if (list->has_single) return 1;
    const size_t size = (size_t)(list->w.end - list->w.at);
    if (list->kind == WIRE_64) return size / 8;
    if (list->kind == WIRE_32) return size / 4;
    size_t count = 0;
    for (size_t i = 0; i < size; i++) count += !(list->w.at[i] & 0x80);
    return count;
}

bool wire_list_next(wire_list *list, uint64_t *value)
{
    if (list->has_single) {
        list->has_single = false;
        *value = list->single;
        return true;
    }
    if (list->w.is_bad || list->w.at == list->w.end) return false;
    if (list->kind == WIRE_64) return fixed(&list->w, 8, value);
    if (list->kind == WIRE_32) return fixed(&list->w, 4, value);
    return varint(&list->w, value);
}
