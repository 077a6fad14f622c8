/* SPDX-License-Identifier: Apache-2.0 */
/* simplify.h - from an ONNX model to a smaller one: a portable model that any runtime takes.
 *
 * The model is read, constants are folded, nodes are merged, replaced and removed, and the result is written as ONNX.
 * No type is lowered and nothing depends on a device. Names of inputs and outputs stay. */
#ifndef SINTER_SIMPLIFY_H
#define SINTER_SIMPLIFY_H

#include "build.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(kind, type, field, initial, most, words, text): option.h says how to read it. */
#define SINTER_SIMPLIFY_SCALARS(X)                                                                                   \
    X(COUNT, uint32_t, opset, 0, 28, "N",                                                                            \
      "The opset to write, 21 to 28; 0: the model's own, or the lowest above it that is needed, at least 21.")       \
    X(FLAG, uint32_t, skip_optimization, 0, 1, "", "Reads and writes the model, and rewrites nothing.")              \
    X(FLAG, uint32_t, skip_constant_folding, 0, 1, "",                                                               \
      "Writes the nodes that make constants where importing folded such nodes.")                                     \
    X(COUNT, uint64_t, no_large_tensor, 1024, 1e15, "N",                                                             \
      "A constant that folding made is written as its nodes where it has more bytes than this, and than 1.5 times "  \
      "what it is made of. Default 1024.")                                                                           \
    X(FLAG, uint32_t, external_data, 0, 1, "",                                                                       \
      "Writes large weights to FILE.data beside the model; above 2 GiB always.")                                     \
    X(RULES, const char *, skip_rules, 0, 0, "-NAME,-NAME", "Rewrite rules not to use.")

typedef struct sinter_simplify_options {
    size_t                    struct_size;
    const sinter_env_options *env;              /* NULL: defaults */
    SINTER_SIMPLIFY_SCALARS(SINTER_FIELD)
    const sinter_shape_range *shape;            /* other shapes of inputs; min == max fixes an axis */
    uint32_t                  shape_count;
    /* Called for each operator, in order of names, once the model is written: how many nodes of it there were and are,
     * those of subgraphs included. "domain::Name" where the domain is not the default one. NULL: not wanted. */
    void                    (*counted)(void *user, const char *op, uint64_t before, uint64_t after);
    void                     *user;             /* passed to counted */
} sinter_simplify_options;
#define SINTER_SIMPLIFY_OPTIONS \
    { sizeof(sinter_simplify_options), 0, SINTER_SIMPLIFY_SCALARS(SINTER_INITIAL) 0, 0, 0, 0 }

/* Row `index` of the table; NULL behind the last. The library's own memory. */
SINTER_API const sinter_option *sinter_simplify_option(uint32_t index);

/* Reads the ONNX file `path` and writes the simplified model to the file `to`, which may be the same. External data is
 * read only from the folder of `path`. The old content of `to` stays until the new model is complete. An existing file
 * is replaced only if it is an ONNX model or empty.
 *
 *   options   NULL for defaults.
 *   error     NULL, or receives the chain of causes.
 *
 * Cost: seconds; weights that do not change are copied from file to file. Any thread; several at once.
 * Errors: IO, INVALID_MODEL, UNSUPPORTED (an operator that sinter does not take, or a result that ONNX cannot express),
 * INVALID_ARG (shapes that do not fit the model), NO_MEMORY. */
SINTER_API sinter_status sinter_simplify_file(const char *path, const sinter_simplify_options *options,
                                              const char *to, sinter_error *error) SINTER_MUST_USE;

/* The same from memory to memory. The bytes are borrowed for the call. Neither model can have external data.
 *   out   receives the model; the caller frees it. Empty on failure. */
SINTER_API sinter_status sinter_simplify_memory(const void *model, size_t size,
                                                const sinter_simplify_options *options, sinter_buffer *out,
                                                sinter_error *error) SINTER_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
