/* SPDX-License-Identifier: Apache-2.0 */
/* wire_write.h - protobuf's wire format, written: a message under construction as a growing buffer.
 *
 * A message inside another is built in a buffer of its own and then copied into the outer one, because its length comes
 * first. Failure is sticky: out of memory sets `failed`, and every later call does nothing. */
#ifndef ONNX_WIRE_WRITE_H
#define ONNX_WIRE_WRITE_H

#include "base/env.h"

typedef struct wire_out {
    env     *e;
    uint8_t *at;
    size_t   size, capacity;
    bool     failed;
} wire_out;

void wire_out_init(wire_out *w, env *e);
void wire_out_deinit(wire_out *w);                      /* a zeroed one too */
/* Forgets the content and keeps the memory. */
void wire_out_clear(wire_out *w);

void wire_put_number(wire_out *w, uint32_t field, uint64_t value);
void wire_put_float(wire_out *w, uint32_t field, float value);
void wire_put_bytes(wire_out *w, uint32_t field, const void *at, size_t size);
void wire_put_text(wire_out *w, uint32_t field, const char *at);
void wire_put_message(wire_out *w, uint32_t field, const wire_out *message);
/* The tag and the length of `size` bytes that the caller writes behind them. */
void wire_put_length(wire_out *w, uint32_t field, uint64_t size);
/* Bytes as they are, without a tag. */
void wire_put_raw(wire_out *w, const void *at, size_t size);

#endif
