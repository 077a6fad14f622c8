/* SPDX-License-Identifier: Apache-2.0 */
/* wire_write.c - writes protobuf messages into growing buffers: wire_write.h has the contract. */
#include "onnx/wire_write.h"

#include "onnx/wire.h"

#include <string.h>

void wire_out_init(wire_out *w, env *e)
{
    *w = (wire_out){ .e = e };
}

void wire_out_deinit(wire_out *w)
{
    if (w->at) mem_free(w->e, w->at, w->capacity, 1);
    *w = (wire_out){ .e = w->e };
}

void wire_out_clear(wire_out *w)
{
    w->size = 0;
}

void wire_put_raw(wire_out *w, const void *at, size_t size)
{
    enum { FIRST = 256 };
    if (w->failed || !size) return;
    const size_t wanted = size_add(w->size, size);
    if (wanted > w->capacity) {
        const size_t capacity = wanted > SIZE_MAX / 2 ? wanted : wanted * 2 < FIRST ? FIRST : wanted * 2;
        uint8_t *grown = mem_resize(w->e, w->at, w->capacity, capacity, 1);
        w->failed = !grown;
        if (!grown) return;
        w->at = grown;
        w->capacity = capacity;
    }
    memcpy(w->at + w->size, at, size);
    w->size += size;
}

static void put_varint(wire_out *w, uint64_t value)
{
    uint8_t byte[10];
    uint32_t count = 0;
    do {
        byte[count++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value);
    wire_put_raw(w, byte, count);
}

static void put_tag(wire_out *w, uint32_t field, wire_type type)
{
    put_varint(w, (uint64_t)field << 3 | (uint64_t)type);
}

void wire_put_number(wire_out *w, uint32_t field, uint64_t value)
{
    put_tag(w, field, WIRE_VARINT);
    put_varint(w, value);
}

void wire_put_float(wire_out *w, uint32_t field, float value)
{
    put_tag(w, field, WIRE_32);
    wire_put_raw(w, &value, sizeof value);
}

void wire_put_length(wire_out *w, uint32_t field, uint64_t size)
{
    put_tag(w, field, WIRE_BYTES);
    put_varint(w, size);
}

void wire_put_bytes(wire_out *w, uint32_t field, const void *at, size_t size)
{
    wire_put_length(w, field, size);
    wire_put_raw(w, at, size);
}

void wire_put_text(wire_out *w, uint32_t field, const char *at)
{
    wire_put_bytes(w, field, at, strlen(at));
}

void wire_put_message(wire_out *w, uint32_t field, const wire_out *message)
{
    wire_put_bytes(w, field, message->at, message->size);
    w->failed = w->failed || message->failed;
}
