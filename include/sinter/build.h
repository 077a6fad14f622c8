/* SPDX-License-Identifier: Apache-2.0 */
/* build.h - from an ONNX model to the bytes of an engine. */
#ifndef SINTER_BUILD_H
#define SINTER_BUILD_H

#include "option.h"
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sinter_tune {
    SINTER_TUNE_OFF = 0,            /* the cost model chooses */
    SINTER_TUNE_FAST = 1,           /* the clock decides among the cost model's best few */
    SINTER_TUNE_FULL = 2            /* the clock decides among all */
} sinter_tune;

typedef enum sinter_math {
    SINTER_MATH_FP32 = 0,           /* reassociation and folding inside the sum-of-products bound; never TF32 */
    SINTER_MATH_EXACT = 1           /* exact rules only */
} sinter_math;

/* What f32 work may be lowered to where it is faster: sums stay f32 (of integers: 32 bits), and so do ops that lose by
 * it. INT8 is for products with constant weights, and goes with the others. */
enum { SINTER_ALLOW_FP16 = 1, SINTER_ALLOW_BF16 = 2, SINTER_ALLOW_TF32 = 4, SINTER_ALLOW_INT8 = 8 };

/* The range of one input's dims; where min == max everywhere the shape is fixed. */
typedef struct sinter_shape_range {
    const char *input;
    uint32_t    rank;
    int64_t     min[SINTER_RANK_MAX], opt[SINTER_RANK_MAX], max[SINTER_RANK_MAX];
} sinter_shape_range;

/* An optimisation profile: the shapes that kernels are chosen and memory is planned for. */
typedef struct sinter_profile {
    const sinter_shape_range *shape;
    uint32_t                  count;
} sinter_profile;

/* The value that an input will always have: for inputs on which sizes, axes or other parameters of operators depend.
 * The input stays an input, and a run where it holds anything else is refused. */
typedef struct sinter_input_value {
    const char          *input;
    const sinter_tensor *value;     /* on the host; copied */
} sinter_input_value;

/* Inputs of one run as the model will meet them. What is allowed to be lowered is measured on these. Data is on
 * the host; nothing is copied, but read while the build lasts. */
typedef struct sinter_sample {
    const sinter_input_value *value;
    uint32_t                  count;    /* inputs that are not named get seeded numbers */
} sinter_sample;

/* Called after a pass ran, with the graph as text. */
typedef void (*sinter_stage_fn)(void *user, const char *stage, const char *text, size_t length);
/* Called as work goes on: a phase's name and how much of it is done, 0 to 1. Return non-zero to cancel: the
 * build then fails with CANCELLED. */
typedef int (*sinter_progress_fn)(void *user, const char *phase, double done);

/* Where a build's time went, and what the device's clock did while kernels were measured. */
typedef struct sinter_build_report {
    size_t   struct_size;
    double   import_s, optimise_s;
    double   budget_s;              /* what narrower types do to the outputs: options.allow */
    double   compile_s;             /* code for a GPU */
    double   measure_s, pack_s;     /* kernels; weights into what the chosen ones read */
    double   plan_s;                /* all else that choosing and planning take */
    double   write_s, total_s;
    uint32_t measured;              /* tactics: those that the timing cache lacked */
    uint32_t clock_low, clock_high; /* MHz, at the ends of batches of runs; 0: the device does not say */
    uint32_t clock_repeats;         /* batches measured again because the clock was low */
    uint32_t clock_doubtful;        /* batches at whose every repeat it was */
    uint32_t was_throttled;         /* non-zero: for want of power, or for heat */
    char     cache_warning[256];    /* why the timing cache was not written; empty: it was, or there was nothing new */
    char     lowered[768];          /* a line for each permitted type: which ops use it, and why others do not */
} sinter_build_report;
#define SINTER_BUILD_REPORT { sizeof(sinter_build_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, { 0 } }

/* Whether steps of a model that do not need each other may run at the same time (CUDA). */
typedef enum sinter_branches {
    SINTER_BRANCHES_AUTO = 0,       /* as the clock says where kernels are measured, else as SMALL */
    SINTER_BRANCHES_OFF = 1,        /* one after the other (TensorRT's maxAuxStreams 0) */
    SINTER_BRANCHES_SMALL = 2,      /* those whose kernels leave a part of the device free */
    SINTER_BRANCHES_ALL = 3
} sinter_branches;

/* What is lowered of what may be. */
typedef enum sinter_lower {
    SINTER_LOWER_FASTER = 0,        /* what is faster on the device, by the clock where kernels are measured */
    SINTER_LOWER_ALWAYS = 1         /* all of it: a look on one device at what another will give */
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
    X(RULES, const char *, rules, 0, 0, "-NAME,-NAME", "Rewrite rules not to use.")                                  \
    X(COUNT, uint64_t, rule_limit, 0, 1e18, "N", "Stops rewriting after N firings; 0: never.")                       \
    X(WORD, const char *, isa, 0, 0, "plain|avx2|avx512",                                                            \
      "The highest instruction set to use (also SINTER_ISA).")                                                       \
    X(FLAG, uint32_t, verify, 0, 1, "", "Checks the graph after every pass.")

typedef struct sinter_build_options {
    size_t                    struct_size;
    const sinter_env_options *env;              /* NULL: defaults */
    SINTER_BUILD_SCALARS(SINTER_FIELD)
    const sinter_profile     *profile;          /* ranges of dynamic inputs; none: every free dim is 1 */
    uint32_t                  profile_count;
    const sinter_input_value *value;            /* inputs whose values are promised */
    uint32_t                  value_count;
    /* What `allow` is measured on, in the samples' own shapes: ranges of 8-bit numbers are those of all samples, the
     * outputs of the first four are compared. None: seeded inputs, which say little of real data. */
    const sinter_sample      *sample;
    uint32_t                  sample_count;
    sinter_stage_fn           stage;            /* NULL: none */
    sinter_progress_fn        progress;         /* NULL: none */
    void                     *user;             /* of both */
    sinter_build_report      *report;           /* filled when the build ends, well or not; NULL: nobody asks */
} sinter_build_options;
#define SINTER_BUILD_OPTIONS \
    { sizeof(sinter_build_options), 0, SINTER_BUILD_SCALARS(SINTER_INITIAL) 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Bytes that the library allocated. Free with sinter_buffer_free; a zeroed one is empty. */
typedef struct sinter_buffer {
    void  *data;
    size_t size;
    sinter_allocator allocator;     /* who made them */
} sinter_buffer;
SINTER_API void sinter_buffer_free(sinter_buffer *buffer);

/* Builds an engine from the ONNX file `path`. External data is read from its folder only.
 *
 *   options   NULL for defaults.
 *   out       receives the engine file's bytes; the caller frees them. Empty on failure.
 *   error     NULL, or receives the chain of causes; all nodes that cannot be taken are listed at once.
 *
 * Cost: seconds; memory less than twice the weights'. Any thread; several at once.
 * Errors: IO, INVALID_MODEL, UNSUPPORTED, INVALID_ARG (shapes that do not fit the model), NO_MEMORY. */
SINTER_API sinter_status sinter_build_file(const char *path, const sinter_build_options *options, sinter_buffer *out,
                                           sinter_error *error) SINTER_MUST_USE;

/* The same, and the engine goes to the file `engine` as sinter_buffer_save puts it there. It is written while weights
 * are packed, so it is never in memory as a whole: for models that are large beside the machine's memory. Until all is
 * done the file's old content stays. *size (NULL: not wanted) receives the engine's bytes. */
SINTER_API sinter_status sinter_build_save(const char *path, const sinter_build_options *options, const char *engine,
                                           uint64_t *size, sinter_error *error) SINTER_MUST_USE;

/* The same as sinter_build_file from bytes in memory, which are borrowed for the call. A model given this way has no
 * external data. */
SINTER_API sinter_status sinter_build_memory(const void *model, size_t size, const sinter_build_options *options,
                                             sinter_buffer *out, sinter_error *error) SINTER_MUST_USE;

/* Writes a buffer to a file. Readers see the old file or the whole new one. A symbolic link stays and leads to
 * the new file; the old file's mode stays. FIFOs and character devices are written to directly. An engine does not
 * replace a file that is neither an engine nor empty. Errors: IO, INVALID_ARG (a folder, a file of another kind). */
SINTER_API sinter_status sinter_buffer_save(const sinter_buffer *buffer, const char *path,
                                            sinter_error *error) SINTER_MUST_USE;

/* Reads only a model's interface: the inputs and outputs, as name, type and dims (-1: free). `visit` returns non-zero
 * to stop. */
typedef struct sinter_model_io {
    const char   *name;
    uint32_t      is_input;
    sinter_dtype  dtype;
    uint32_t      rank;
    int64_t       dim[SINTER_RANK_MAX];             /* -1 where free */
    const char   *dim_name[SINTER_RANK_MAX];        /* the symbol of a free dim, else NULL */
} sinter_model_io;
SINTER_API sinter_status sinter_model_inputs(const char *path, const sinter_env_options *env,
                                             int (*visit)(void *user, const sinter_model_io *io), void *user,
                                             sinter_error *error) SINTER_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
