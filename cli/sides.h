/* SPDX-License-Identifier: Apache-2.0 */
/* sides.h - where the results of a comparison come from: an engine, a model that is built here, the reference kernels,
 * ONNX Runtime, or a folder of saved outputs. */
#ifndef CLI_SIDES_H
#define CLI_SIDES_H

#include "cli_model.h"

typedef enum side_kind { SIDE_ENGINE, SIDE_MODEL, SIDE_REFERENCE, SIDE_ONNXRUNTIME, SIDE_SAVED } side_kind;

typedef struct side {
    side_kind kind;
    const char *text, *file; /* as it was given, and the file or folder in it */
    char *path, *folder;     /* what is run: the file, or a model made of it; a folder that goes with the side */
    bool is_beside;          /* the model at `path` was made beside the one that was given */
    args a;
    model_setup setup;
    model_engine m;
    bool is_open;
    sinter_context *c;
    model_inputs made;   /* random inputs */
    model_inputs result; /* of ONNX Runtime, or read from files */
    char **name;         /* of the outputs, in order; of a SAVED side those that were asked for */
    uint32_t names;
    sinter_tensor last; /* what side_result gave */
} side;

enum { SIDES = 2 };

/* Opens A and B, gives both the same inputs, runs what runs, and leaves all results in them. Inputs are those of
 * --input, else random. Of A, options of building are the command line's; of B none but those that fix shapes and
 * states. `has_all`: models get all their values as outputs. False: reported. Close the sides all the same. */
bool sides_run(const args *a, const char *const text[SIDES], bool has_all, side out[SIDES]);
/* Runs engines and models again on other random inputs. */
bool sides_again(side s[SIDES], uint64_t seed);
void sides_close(side s[SIDES]);

/* One side by itself; `is_wanted`: built as B is. */
bool side_alone(const args *a, const char *text, bool is_wanted, bool has_all, side *out);
/* All its inputs, given and random ones: borrowed. The caller frees the list. */
void side_inputs(const side *s, model_inputs *out);
void side_close(side *s);

/* The model behind a side: the file of a MODEL, REFERENCE or ONNXRUNTIME side. NULL: it has none. */
const char *side_model(const side *s);
/* The output of that name; `index`: its place among the outputs of the other side, which a SAVED side may be ordered
 * by. NULL: the side has none. */
const sinter_tensor *side_result(side *s, const char *name, uint32_t index);

/* sides_onnxruntime.c: runs s->path on the inputs, through python3; the results become s->result. */
bool side_onnxruntime(side *s, const model_inputs *first, const model_inputs *second);

#endif
