/* SPDX-License-Identifier: Apache-2.0 */
/* build.h - from an ONNX model to the bytes of an engine. */
#ifndef SINTER_BUILD_H
#define SINTER_BUILD_H

#include "engine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sinter_tune {
    SINTER_TUNE_OFF = 0,            /* the cost model chooses kernels */
    SINTER_TUNE_FAST = 1,           /* the best few of the cost model are measured */
    SINTER_TUNE_FULL = 2            /* all are measured */
} sinter_tune;

typedef enum sinter_math {
    SINTER_MATH_FP32 = 0,           /* sums may be reassociated within the documented bound; never TF32 */
    SINTER_MATH_EXACT = 1           /* only rewrites that keep every bit */
} sinter_math;

/* Types that f32 operations may use where these types are faster. Sums stay in f32; sums of integers have 32 bits. INT8
 * applies to products with constant weights, and can be combined with the others. */
enum { SINTER_ALLOW_FP16 = 1, SINTER_ALLOW_BF16 = 2, SINTER_ALLOW_TF32 = 4, SINTER_ALLOW_INT8 = 8 };

/* The range of one input's dims. The shape is fixed if min equals max in every dim. */
typedef struct sinter_shape_range {
    const char *input;
    uint32_t    rank;
    int64_t     min[SINTER_RANK_MAX], opt[SINTER_RANK_MAX], max[SINTER_RANK_MAX];
} sinter_shape_range;

/* An optimisation profile: the ranges of shapes for which kernels are chosen and memory is planned. Axes to which the
 * model gives one name have one size, and their ranges are intersected; only where the profiles' ranges of such axes
 * have no value in common, each axis has a size of its own. */
typedef struct sinter_profile {
    const sinter_shape_range *shape;
    uint32_t                  count;
} sinter_profile;

/* The value that an input has in every run. Use it for inputs that decide sizes, axes or other parameters of operators.
 * The input stays an input of the engine. A run fails if the input holds another value. */
typedef struct sinter_input_value {
    const char          *input;
    const sinter_tensor *value;     /* on the host; copied */
} sinter_input_value;

/* Tensors that stay in the context from run to run, such as the keys and values of a decoder: `input` is such a tensor
 * before the run, `output` is what the run makes of it. Both disappear from the engine's interface. A '*' in both names
 * stands for the same text: "past_key_values.*" and "present.*" name all pairs of a model. The output is the input with
 * rows appended (a Concat of two), or a tensor of the input's shape that takes its place. A context begins with zeros,
 * and without rows; sinter_context_reset_state (run.h) begins anew. */
typedef struct sinter_state {
    const char *input, *output;
} sinter_state;

/* A named size that is always computed from others: { "T", "P+S" }. */
typedef struct sinter_dim_equal {
    const char *dim, *equals;
} sinter_dim_equal;

/* Representative inputs of one run, in host memory. The build measures on them what narrower types do to the outputs.
 * The build borrows the data until it returns. */
typedef struct sinter_sample {
    const sinter_input_value *value;
    uint32_t                  count;    /* inputs that are not named are filled with seeded numbers */
} sinter_sample;

/* The ranges of tensors: calibrate.h. One thread at a time; a build only reads them. */
typedef struct sinter_calibration sinter_calibration;

/* Called after each pass, with the graph as text. */
typedef void (*sinter_stage_fn)(void *user, const char *stage, const char *text, size_t length);
/* Called during the build with the name of the phase, and the part of the phase that is done, from 0 to 1. Return
 * non-zero to cancel the build, which then fails with CANCELLED. */
typedef int (*sinter_progress_fn)(void *user, const char *phase, double done);

/* The time of each phase of a build, and the device's clock while kernels were measured. */
typedef struct sinter_build_report {
    size_t   struct_size;
    double   import_s, optimise_s;
    double   budget_s;              /* measuring what options.allow does to the outputs */
    double   compile_s;             /* compiling GPU kernels */
    double   measure_s, pack_s;     /* measuring kernels; packing weights for the chosen kernels */
    double   plan_s;                /* the rest of choosing and planning */
    double   write_s, total_s;
    uint32_t measured;              /* tactics measured, which were not in the timing cache */
    uint32_t clock_low, clock_high; /* MHz, read after batches of runs; 0: the device does not report it */
    uint32_t clock_repeats;         /* batches that were measured again because the clock was low */
    uint32_t clock_doubtful;        /* batches whose clock stayed low: their times are not trusted */
    uint32_t was_throttled;         /* non-zero: the device reported a limit of power or heat */
    char     cache_warning[256];    /* why the timing cache was not written; empty: no failure */
    char     lowered[768];          /* one line a permitted type: the ops that use it, and why the others do not */
} sinter_build_report;
#define SINTER_BUILD_REPORT { sizeof(sinter_build_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, { 0 } }

/* Whether independent steps may run at the same time (CUDA). */
typedef enum sinter_branches {
    SINTER_BRANCHES_AUTO = 0,       /* measured if kernels are measured, else SMALL */
    SINTER_BRANCHES_OFF = 1,        /* one after the other (TensorRT's maxAuxStreams 0) */
    SINTER_BRANCHES_SMALL = 2,      /* steps whose kernels do not fill the device */
    SINTER_BRANCHES_ALL = 3
} sinter_branches;

/* Which of the operations that may use a narrower type do so. */
typedef enum sinter_lower {
    SINTER_LOWER_FASTER = 0,        /* those that are faster on the device; measured if kernels are measured */
    SINTER_LOWER_ALWAYS = 1         /* all of them; shows on one device the numbers of another */
} sinter_lower;

/* X(kind, type, field, initial, most, words, text): option.h says how to read it. */
#define SINTER_BUILD_SCALARS(X)                                                                                      \
    X(DEVICE, const char *, device, 0, 0, "cpu|reference|cuda[:N|:sm_XX]",                                           \
      "cpu (default); reference: the reference kernels alone, without optimisation; cuda: a GPU, :1 the second, "    \
      ":sm_90a a chip that need not be here (with tune off). An engine knows its kind.")                             \
    X(COUNT, uint32_t, threads, 0, 4096, "N",                                                                        \
      "Threads to tune for and to run with; 0: as many as there are CPUs.")                                          \
    X(CHOICE, sinter_tune, tune, SINTER_TUNE_FAST, SINTER_TUNE_FULL, "off|fast|full",                                \
      "off: the cost model chooses kernels; fast: the clock decides among the best few; full: among all. "           \
      "Default: fast; of the command's run, test and inspect: off.")                                                 \
    X(TEXT, const char *, timing_cache, 0, 0, "FILE",                                                                \
      "Measurements to use again: read, merged and replaced. A build that fails keeps what it measured. A file that " \
      "cannot be written is a warning; a file of another kind is an error.")                                         \
    X(FLAG, uint32_t, cache_only, 0, 1, "", "A measurement that the timing cache lacks is an error.")                \
    X(ANY, const char *, kernel_cache, 0, 0, "DIR",                                                                  \
      "The folder of compiled GPU kernels (also SINTER_KERNEL_CACHE); \"\": none.")                                  \
    X(CHOICE, sinter_branches, branches, SINTER_BRANCHES_AUTO, SINTER_BRANCHES_ALL, "auto|off|small|all",            \
      "Steps that do not need each other at the same time on a GPU. auto (default): as measured, with tune off as "  \
      "small; off: one after the other; small: where their kernels leave a part of it free; all.")                   \
    X(FLAG, uint32_t, no_code, 0, 1, "", "Leaves compiled GPU kernels out of the engine.")                           \
    X(CHOICE, sinter_math, math, SINTER_MATH_FP32, SINTER_MATH_EXACT, "fp32|exact",                                  \
      "exact: only rewrites that keep every bit.")                                                                   \
    X(SET, uint32_t, allow, 0, 15, "fp16|bf16|tf32|int8",                                                            \
      "Types that f32 work may be lowered to where that is faster; sums stay f32. int8: products with constant "     \
      "weights.")                                                                                                    \
    X(CHOICE, sinter_lower, lower, SINTER_LOWER_FASTER, SINTER_LOWER_ALWAYS, "faster|always",                        \
      "faster (default): of what is allowed, what is faster on the device; always: all of it, for a look on "        \
      "one device at the numbers of another.")                                                                       \
    X(REAL, double, budget, 0, 1e6, "R",                                                                             \
      "How far outputs may move by what is allowed: rms of the difference over rms of the output. Default 0.01 for " \
      "fp16, 0.06 for bf16, 0.1 for int8, more where the model rounds to a few bits itself.")                        \
    X(COUNT, uint64_t, capacity, 0, 1e9, "N",                                                                        \
      "Rows that a state can hold, those of earlier runs and new ones together; 0: the most that the ranges of "     \
      "shapes permit. Inputs with an axis of that size have N elements there: the first ones count.")                \
    X(RULES, const char *, rules, 0, 0, "-NAME,-NAME", "Rewrite rules not to use.")                                  \
    X(COUNT, uint64_t, rule_limit, 0, 1e18, "N", "Stops rewriting after N firings; 0: never.")                       \
    X(WORD, const char *, isa, 0, 0,                                                                                 \
      "plain|avx2|avx2_vnni|avx512|avx512_vnni|avx512_bf16|avx512_fp16|avx512_amx|"                                    \
      "neon|neon_dot|neon_i8mm|neon_bf16",                                                                             \
      "The highest instruction set to use (also SINTER_ISA).")                                                       \
    X(FLAG, uint32_t, refittable, 0, 1, "",                                                                          \
      "Weights of several elements can be replaced later: no rule looks at their values.")                           \
    X(FLAG, uint32_t, verify, 0, 1, "", "Checks the graph after every pass.")                                        \
    X(CHOICE, sinter_detail, detail, SINTER_DETAIL_ALL, SINTER_DETAIL_NONE, "all|names|none",                        \
      "What the engine tells of its layers to those who ask as of TensorRT (sinter_engine_print_layers).")           \
    X(COUNT, uint64_t, workspace, 0, 1e18, "N",                                                                      \
      "Bytes of scratch memory that one kernel may ask for: tactics that need more are not taken. 0: no limit but a " \
      "quarter of memory_max.")

typedef struct sinter_build_options {
    size_t                    struct_size;
    const sinter_env_options *env;              /* NULL: defaults */
    SINTER_BUILD_SCALARS(SINTER_FIELD)
    const sinter_profile     *profile;          /* ranges of dynamic inputs; no profile: every free dim is 1 */
    uint32_t                  profile_count;
    const sinter_input_value *value;            /* inputs that have the same value in every run */
    uint32_t                  value_count;
    /* The effect of `allow` is measured on these samples, in the samples' own shapes. All samples give the ranges of
     * 8-bit numbers unless `calibration` does; outputs are compared for the first four. Without samples the build uses
     * seeded numbers, which may be far from real data. */
    const sinter_sample      *sample;
    uint32_t                  sample_count;
    const sinter_state       *state;            /* tensors that stay in the context */
    uint32_t                  state_count;
    const sinter_dim_equal   *equal;            /* sizes that follow from others */
    uint32_t                  equal_count;
    sinter_stage_fn           stage;            /* NULL: none */
    sinter_progress_fn        progress;         /* NULL: none */
    void                     *user;             /* passed to stage and to progress */
    sinter_build_report      *report;           /* filled when the build ends, also after a failure; NULL: none */
    /* What 8-bit numbers hold, with int8 allowed: a product whose data has a range there is quantised where that is
     * faster; others keep their type. Without samples the effect on outputs is not measured. Borrowed for the call;
     * NULL: the build finds ranges itself. */
    const sinter_calibration *calibration;
    /* With refittable: the names of the initializers that can be replaced. The engine knows no others. None: all. */
    const char *const        *replaceable;
    uint32_t                  replaceable_count;
} sinter_build_options;
#define SINTER_BUILD_OPTIONS \
    { sizeof(sinter_build_options), 0, SINTER_BUILD_SCALARS(SINTER_INITIAL) 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
      0, 0, 0 }

/* Bytes that the library allocated. The caller frees them with sinter_buffer_free. A zeroed struct is an empty
 * buffer. */
typedef struct sinter_buffer {
    void  *data;
    size_t size;
    sinter_allocator allocator;     /* the allocator that made the bytes */
} sinter_buffer;
SINTER_API void sinter_buffer_free(sinter_buffer *buffer);

/* Builds an engine from the ONNX file `path`. External data is read only from the folder of `path`.
 *
 *   options   NULL for defaults.
 *   out       receives the engine file's bytes; the caller frees them. Empty on failure.
 *   error     NULL, or receives the chain of causes; unsupported nodes are listed all at once.
 *
 * Cost: seconds; memory less than twice the weights'. Any thread; several at once.
 * Errors: IO, INVALID_MODEL, UNSUPPORTED, INVALID_ARG (shapes that do not fit the model), NO_MEMORY. */
SINTER_API sinter_status sinter_build_file(const char *path, const sinter_build_options *options, sinter_buffer *out,
                                           sinter_error *error) SINTER_MUST_USE;

/* Builds an engine as sinter_build_file does, and writes the engine to the file `engine` as sinter_buffer_save does.
 * Weights are packed and written one after the other, so the engine is never in memory as a whole. Use it for models
 * that are large compared with the machine's memory. The old content of the file stays until the new engine is
 * complete. *size receives the number of bytes of the engine; NULL: not wanted. */
SINTER_API sinter_status sinter_build_save(const char *path, const sinter_build_options *options, const char *engine,
                                           uint64_t *size, sinter_error *error) SINTER_MUST_USE;

/* Builds an engine as sinter_build_file does, from a model in memory. The bytes are borrowed for the call. The model
 * cannot have external data. */
SINTER_API sinter_status sinter_build_memory(const void *model, size_t size, const sinter_build_options *options,
                                             sinter_buffer *out, sinter_error *error) SINTER_MUST_USE;

/* Writes a buffer to a file. Another process that opens the path sees either the old file or the complete new file. A
 * symbolic link is kept, and its target is replaced. The mode of an old file is kept. FIFOs and character devices are
 * written directly. An engine replaces only an engine or an empty file.
 * Errors: IO, INVALID_ARG (a folder, or a file of another kind). */
SINTER_API sinter_status sinter_buffer_save(const sinter_buffer *buffer, const char *path,
                                            sinter_error *error) SINTER_MUST_USE;

/* Engines take and give tensors of numbers. Other values of a model are made of such tensors, which stand one after the
 * other among its inputs or outputs (docs/usage.md). TEXT is the bytes of a tensor of text x: u8 with one axis more. A
 * sequence x is x.values and x.shapes; an optional x is x, or a sequence's two tensors, then x.has. A sequence of maps
 * is x.keys and x.values. */
typedef enum sinter_part {
    SINTER_PART_WHOLE = 0,
    SINTER_PART_TEXT = 1,
    SINTER_PART_VALUES = 2,
    SINTER_PART_SHAPES = 3,
    SINTER_PART_HAS = 4,
    SINTER_PART_KEYS = 5
} sinter_part;

/* Reads the inputs and outputs of a model, without building. Calls `visit` for each of them; a non-zero result of
 * `visit` ends the call. */
typedef struct sinter_model_io {
    const char   *name;                             /* "x", or "x.values" where it is a part of x */
    uint32_t      is_input;
    sinter_dtype  dtype;
    uint32_t      rank;
    int64_t       dim[SINTER_RANK_MAX];             /* -1 where free */
    const char   *dim_name[SINTER_RANK_MAX];        /* the symbol of a free dim, else NULL */
    sinter_part   part;
} sinter_model_io;
SINTER_API sinter_status sinter_model_inputs(const char *path, const sinter_env_options *env,
                                             int (*visit)(void *user, const sinter_model_io *io), void *user,
                                             sinter_error *error) SINTER_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
