/* SPDX-License-Identifier: Apache-2.0 */
/* model_text.h - small models as one line of text, built and run at every choice of their sizes on one device, and
 * compared with the reference, which does not optimise.
 *
 *     sym N 0 3 6; in x f32 N,4; a = Relu x; y = Concat a a axis=1; out y
 *
 * Statements:  sym NAME MIN OPT MAX       a size
 *              in NAME TYPE DIM,DIM...    an input; DIM: a number or a size
 *              NAMES = OP NAMES ATTRS     a node; names separated by commas on the left, - an absent input
 *              out NAME                   an output
 * Inputs of nodes may be constants: {1,2} a list of int64, #0.5 a scalar of f32, %4,3 weights of f32 of that shape.
 * Attributes: axis=1 alpha=0.5 pads=[1,1] mode=linear (text), body=(STATEMENTS) (a graph). */
#ifndef MODEL_TEXT_H
#define MODEL_TEXT_H

#include "onnx_bytes.h"
#include "sinter/sinter.h"

#include <stdbool.h>

enum { MODEL_SYMBOLS = 4, MODEL_INPUTS = 8 };
typedef struct model_symbol { char name[16]; int64_t min, opt, max; } model_symbol;

typedef struct model_text {
    bytes              model;
    uint32_t           count_symbol, count_input;
    model_symbol       symbol[MODEL_SYMBOLS];
    char               input[MODEL_INPUTS][16];
    sinter_shape_range range[MODEL_INPUTS];
    int                axis[MODEL_INPUTS][SINTER_RANK_MAX];     /* 1 + symbol; 0: a number */
    sinter_dtype       dtype[MODEL_INPUTS];
} model_text;

/* Ends the program where the text is wrong: a mistake of the test. The caller frees model.at. */
void model_read(const char *text, model_text *out);

typedef struct model_device {
    const char *kind;
    const char *isa;
    const char *engine;         /* a file: this engine runs, and none is built; NULL: builds */
    bool is_exact;              /* math=exact, and the reference's numbers are wanted, not such as are near */
    const sinter_plugins *plugins;
} model_device;
/* NULL, or what is wrong; `why` has room for 1024. Sizes take their min, 1, opt and max in all combinations; runs
 * counts those that are not refused. What the reference refuses has to be refused. */
const char *model_compare(const char *text, model_device device, char *why, long *runs);
/* The same, but the reference runs the model `plain`, which has inputs and outputs of the same names and types. */
const char *model_compare_with(const char *plain, const char *text, model_device device, char *why, long *runs);
/* The engine that model_compare builds. The caller frees it; the test ends where it cannot be built. */
sinter_buffer model_build(const char *text, model_device device);

#endif
