/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_text.h - reads ONNX's own text form of graphs, as far as tests need it, and writes the bytes of a model.
 *
 *     g (float[n,3] x, int64 trip) => (float[] y) <int64[1] axes = {0}> {
 *         a, y = Loop(trip, "", x) <body = b (int64 i, bool go, float[n,3] v) => (bool go, float[] w) { ... }>
 *     }
 *
 * `float` is a scalar, `float[]` has an unknown rank, "" is an absent input. A statement ends where its last bracket
 * closes. */
#ifndef ONNX_TEXT_H
#define ONNX_TEXT_H

#include "onnx_bytes.h"
#include "sinter/tensor.h"
#include <stdbool.h>

typedef struct onnx_text {
    const char *at;             /* what is left to read */
    const char *wrong;          /* what was expected where reading stopped; NULL: nothing is wrong */
} onnx_text;

/* A graph; a tensor ("float[2,3] {1, 2, ...}", "float[2,3] iota"). The caller frees .at and .data. Check `wrong`. */
bytes onnx_text_graph(onnx_text *t);
sinter_tensor onnx_text_tensor(onnx_text *t);

/* One token: takes `word` (punctuation or a whole name) if it is next. Skips white space and #-comments before it. */
bool onnx_text_take(onnx_text *t, const char *word);
/* A name, or text in quotes. */
void onnx_text_name(onnx_text *t, char *out, size_t size);

#endif
