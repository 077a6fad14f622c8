/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - an engine: an optimised model bound to a class of devices, loaded and verified. */
#ifndef SINTER_ENGINE_H
#define SINTER_ENGINE_H

#include "option.h"
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Immutable after load, so any number of threads may create contexts from it and share it. */
typedef struct sinter_engine sinter_engine;

/* What an engine tells of its layers (TensorRT's profiling verbosity). */
typedef enum sinter_detail {
    SINTER_DETAIL_ALL = 0,          /* kernel, tactic, inputs and outputs */
    SINTER_DETAIL_NAMES = 1,
    SINTER_DETAIL_NONE = 2
} sinter_detail;

/* X(kind, type, field, initial, most, words, text): option.h says how to read it. */
#define SINTER_ENGINE_SCALARS(X)                                                                                     \
    X(DEVICE, const char *, device, 0, 0, "cpu|cuda[:N]",                                                            \
      "Which of several: the kind must be the one that the engine was built for. Default: the first.")               \
    X(COUNT, uint32_t, threads, 0, 4096, "N",                                                                        \
      "Threads of the pool that all contexts share; 0: what the engine was tuned for.")                              \
    X(COUNT, uint32_t, spin, 100, 1000000, "N",                                                                      \
      "Microseconds for which idle threads of the pool watch for the next run before they sleep; a sleeping one "    \
      "takes some 40 to wake. 0 where a container's processor time is limited or shared.")                           \
    X(FLAG, uint32_t, pin, 0, 1, "", "Keeps each thread of the pool on a core of its own.")                          \
    X(ANY, const char *, kernel_cache, 0, 0, "DIR",                                                                  \
      "The folder of compiled GPU kernels (also SINTER_KERNEL_CACHE); \"\": none.")                                  \
    X(WORD, const char *, isa, 0, 0,                                                                                 \
      "plain|avx2|avx2_vnni|avx512|avx512_vnni|avx512_bf16|avx512_fp16|avx512_amx|"                                    \
      "neon|neon_dot|neon_i8mm|neon_bf16",                                                                             \
      "The highest instruction set to use (also SINTER_ISA).")                                                       \
    X(FLAG, uint32_t, trust_code, 0, 1, "",                                                                          \
      "Runs the compiled GPU kernels that an engine carries: for files of those whose programs you would run. They " \
      "are checked for damage, not for what they do. Otherwise the cache serves, or the library's own sources do.")  \
    X(FLAG, uint32_t, no_device, 0, 1, "",                                                                           \
      "The engine is verified and can be described on any machine, whatever CPU level or GPU it was built for. "     \
      "Contexts cannot be created.")                                                                                 \
    X(COUNT, uint64_t, weight_budget, 0, 1e18, "N",                                                                  \
      "Bytes of a GPU's memory for weights. Runs copy the others from pinned memory of the host before the steps "   \
      "that need them. 0: all weights are on the GPU.")

/* Memory of a GPU from the caller: weights, activations, states, buffers and what sinter_engine_alloc gives, of one
 * engine and all its contexts. What the driver allocates for itself (code, graphs, streams) is not in it. Any thread
 * that uses the engine calls these functions, several at once. The device's context is current during a call.
 *
 *   allocate     `size` bytes, aligned to `align`; NULL: there is none. flags: SINTER_DEVICE_...
 *   reallocate   a block of `size` bytes that begins with the first bytes of `memory`, which is freed unless it is the
 *                result. NULL: `memory` stays as it is, and the library allocates and copies itself. The function may
 *                be NULL. Only blocks that were allocated with SINTER_DEVICE_RESIZABLE are reallocated.
 *   release      frees a block. No work on the device uses it any more.
 *
 * `stream` (CUstream) is a stream of the library. An allocator may allocate and free in the order of that stream
 * (cuMemAllocAsync). The library waits for the stream before it uses the memory elsewhere. */
enum { SINTER_DEVICE_RESIZABLE = 1 };           /* the block may have to grow */
typedef struct sinter_device_allocator {
    void *user;
    void *(*allocate)(void *user, size_t size, size_t align, uint32_t flags, void *stream);
    void *(*reallocate)(void *user, void *memory, size_t old_size, size_t size, size_t align, void *stream);
    void (*release)(void *user, void *memory, size_t size, void *stream);
} sinter_device_allocator;

typedef struct sinter_engine_options {
    size_t                    struct_size;
    const sinter_env_options *env;              /* NULL: defaults; kept by the engine and its contexts */
    SINTER_ENGINE_SCALARS(SINTER_FIELD)
    /* NULL: the driver allocates. Copied; `user` must outlive the engine. Devices that work in host memory ignore it:
     * their memory comes from env->allocator. */
    const sinter_device_allocator *device_allocator;
} sinter_engine_options;
#define SINTER_ENGINE_OPTIONS { sizeof(sinter_engine_options), 0, SINTER_ENGINE_SCALARS(SINTER_INITIAL) 0 }

/* Reads `path` into memory of our own, verifies every byte of it that matters and prepares it to run.
 *
 *   out   receives the engine; the caller owns one reference: sinter_engine_release(). NULL on failure.
 *
 * The file may change or vanish afterwards. Nothing in it is believed before it is checked; nothing in it runs unless
 * options.trust_code says so. The file says which kind of device it is for; weights are put there once.
 * Cost: O(file) once. Errors: IO, INVALID_MODEL (damaged), INCOMPATIBLE (other version, other device), UNSUPPORTED (a
 * kind of device that this build does not have, or a plugin that options.env does not have), DEVICE, NO_MEMORY. */
SINTER_API sinter_status sinter_engine_load(const char *path, const sinter_engine_options *options, sinter_engine **out,
                                            sinter_error *error) SINTER_MUST_USE;

/* Loads an engine as sinter_engine_load does, from bytes in memory. The bytes are copied. */
SINTER_API sinter_status sinter_engine_load_memory(const void *bytes, size_t size, const sinter_engine_options *options,
                                                   sinter_engine **out, sinter_error *error) SINTER_MUST_USE;

/* Adds and removes a reference. The count is atomic. A context holds one reference. NULL is accepted. */
SINTER_API void sinter_engine_retain(sinter_engine *engine);
SINTER_API void sinter_engine_release(sinter_engine *engine);

/* An input or an output. Its strings are valid as long as the engine. */
typedef struct sinter_io {
    const char  *name;
    uint32_t     is_input;
    sinter_dtype dtype;
    uint32_t     rank;
    int64_t      dim[SINTER_RANK_MAX];      /* -1: each run chooses the size, or data decide it */
    const char  *dim_text[SINTER_RANK_MAX]; /* the size as an expression: "1", "N", "2*S+1" */
    int64_t      min[SINTER_RANK_MAX], opt[SINTER_RANK_MAX], max[SINTER_RANK_MAX];   /* of the requested profile */
    /* For whoever generates inputs: integers in this range never index outside a table of the model. INT64_MIN and
     * INT64_MAX: no range is known. A run checks every index in any case. */
    int64_t      value_min, value_max;
} sinter_io;

/* Inputs come first, then outputs, each in the model's order. All inputs have different names, and so have all outputs.
 * A value that a model lists several times as an output is one output, at the place of its first listing. */
SINTER_API uint32_t sinter_engine_io_count(const sinter_engine *engine);
SINTER_API uint32_t sinter_engine_profile_count(const sinter_engine *engine);   /* at least 1 */
/* Errors: INVALID_ARG if `index` or `profile` is out of range. */
SINTER_API sinter_status sinter_engine_io(const sinter_engine *engine, uint32_t index, uint32_t profile,
                                          sinter_io *out) SINTER_MUST_USE;

/* The tensors that stay in a context between runs (build.h: sinter_state). `out` describes a state like an input: name,
 * type and dims. out->is_input is 0, and no range of values is known. The order is the same in all profiles.
 * Errors: INVALID_ARG if `index` or `profile` is out of range. */
SINTER_API uint32_t sinter_engine_state_count(const sinter_engine *engine);
SINTER_API sinter_status sinter_engine_state(const sinter_engine *engine, uint32_t index, uint32_t profile,
                                             sinter_io *out) SINTER_MUST_USE;

/* The kind of device that the engine was built for: "cpu" or "cuda"; "" if `engine` is NULL. The text is static. */
SINTER_API const char *sinter_engine_device(const sinter_engine *engine);
/* The name of the model or network that the engine was built from; "" if it has none, or `engine` is NULL. The text
 * lives as long as the engine. */
SINTER_API const char *sinter_engine_name(const sinter_engine *engine);

/* What an engine holds, and what its contexts need. All sizes are in bytes. The caller sets struct_size
 * (SINTER_ENGINE_INFO does it). */
typedef struct sinter_engine_info {
    size_t   struct_size;
    uint64_t file_size;
    uint64_t weights_size;          /* of all weights, packed as kernels read them. Equal weights count once */
    /* Of the weights that a stripped engine leaves out; part of weights_size. A weight that several profiles use counts
     * once for each profile. */
    uint64_t stripped_size;
    uint64_t device_weights_size;   /* weights in device memory; 0 if the device works in host memory */
    uint64_t state_size;            /* of the states of one context; the largest of the profiles */
    uint64_t memory_size;           /* activation memory of one context; the largest of the profiles */
    uint32_t profile_count;
    uint32_t step_count;            /* of all profiles: TensorRT's layers */
    uint32_t kernel_count;          /* different kernels */
    uint32_t tactic_count;          /* different pairs of kernel and tactic */
    uint32_t node_count;            /* nodes of the model */
    uint64_t streamable_size;       /* weights that a budget may keep off the device; 0 on the CPU */
    uint64_t weight_budget;         /* 0: none */
    uint64_t streamed_size;         /* weights that each run copies to the device */
    uint64_t weight_scratch_size;   /* part of memory_size: where runs copy them to */
    uint32_t is_refittable;         /* non-zero: it was built with options.refittable */
} sinter_engine_info;
#define SINTER_ENGINE_INFO { sizeof(sinter_engine_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* Cost: one pass over the engine. Errors: INVALID_ARG, NO_MEMORY. */
SINTER_API sinter_status sinter_engine_describe(const sinter_engine *engine, sinter_engine_info *out,
                                                sinter_error *error) SINTER_MUST_USE;

/* The same for one profile. memory_size holds the slab, the workspace, weight_scratch_size and padding. On a GPU the
 * host sizes are those of steps that run on the host; elsewhere they are 0. */
typedef struct sinter_profile_info {
    size_t   struct_size;
    uint64_t memory_size;           /* activation memory of a context */
    uint64_t slab_size;             /* results between steps */
    uint64_t workspace_size;        /* scratch memory of kernels: the largest of all steps */
    uint64_t host_slab_size, host_workspace_size;
    uint64_t weights_size, state_size;
    uint32_t step_count;
    uint32_t program_count;         /* on a GPU: graph launches of a run without loops, if no weights are streamed */
    uint64_t weight_scratch_size;   /* part of memory_size: two slots for the weights that are streamed */
} sinter_profile_info;
#define SINTER_PROFILE_INFO { sizeof(sinter_profile_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
SINTER_API sinter_status sinter_engine_describe_profile(const sinter_engine *engine, uint32_t profile,
                                                        sinter_profile_info *out, sinter_error *error) SINTER_MUST_USE;

/* Bytes of activation memory that a context needs for any shape of `profile`. SINTER_ALL_PROFILES: for any profile. The
 * result is 0 if there is no such profile. */
#define SINTER_ALL_PROFILES UINT32_MAX
SINTER_API size_t sinter_engine_memory_size(const sinter_engine *engine, uint32_t profile);

/* What the engine's device can do at most in a second, with all of its threads: operations on f32; multiply-adds of
 * 16-bit floats and of 8-bit integers, two operations each; bytes from memory, and from the caches beside its units. */
typedef struct sinter_rates { double f32, f16, int8, memory, cache; } sinter_rates;
/* A CPU is measured, for at most a second: multiply-adds of f32 in registers, reads of a block of `touched` bytes (all
 * that one run reads and writes) and of half of L2. Products of 16 and 8 bits count as two and four times f32. A GPU's
 * rates are those of its clocks, units and bus. Errors: INVALID_ARG (no device), UNSUPPORTED, NO_MEMORY. */
SINTER_API sinter_status sinter_engine_rates(const sinter_engine *engine, size_t touched, sinter_rates *out,
                                             sinter_error *error) SINTER_MUST_USE;

/* Allocates `size` bytes for inputs, outputs and activations of the engine's contexts. Size 0 gives a valid, unique
 * address. The memory is aligned to at least 64 bytes. Device memory is zeroed; host memory is pinned. The caller frees
 * the memory with the same place and size, before it releases the engine; sinter_engine_free accepts NULL. Any thread
 * may call both. Each call asks the driver: do not call them in every run. Errors: NO_MEMORY, DEVICE, INVALID_ARG. */
SINTER_API sinter_status sinter_engine_alloc(sinter_engine *engine, sinter_place place, size_t size, void **out,
                                             sinter_error *error) SINTER_MUST_USE;
SINTER_API void          sinter_engine_free(sinter_engine *engine, sinter_place place, void *data, size_t size);
/* Copies `size` bytes between any two places, and waits. The copy is not ordered with the runs of any context.
 * Errors: DEVICE, NO_MEMORY, INVALID_ARG. */
SINTER_API sinter_status sinter_engine_copy(sinter_engine *engine, void *to, sinter_place to_place, const void *from,
                                            sinter_place from_place, size_t size, sinter_error *error) SINTER_MUST_USE;

/* What the engine and its contexts have of the device's memory: of a GPU's, or on the CPU of the host memory in which
 * programs run. Pinned memory is not in it. The caller sets struct_size (SINTER_MEMORY_INFO does it). */
typedef struct sinter_memory_info {
    size_t   struct_size;
    uint64_t live, peak;            /* bytes now, and at most at any time */
    uint64_t total;                 /* bytes of all allocations so far */
    uint64_t allocations, frees;
} sinter_memory_info;
#define SINTER_MEMORY_INFO { sizeof(sinter_memory_info), 0, 0, 0, 0, 0 }
SINTER_API sinter_status sinter_engine_memory(const sinter_engine *engine, sinter_memory_info *out,
                                              sinter_error *error) SINTER_MUST_USE;

/* Changes options.weight_budget. The engine must have no context. After an error the engine has no weights, and only
 * another call of this function is possible. Cost: copying the weights.
 * Errors: INVALID_ARG (a context exists; no device), NO_MEMORY, DEVICE. */
SINTER_API sinter_status sinter_engine_set_weight_budget(sinter_engine *engine, uint64_t budget,
                                                         sinter_error *error) SINTER_MUST_USE;
/* A budget that leaves room on the device, as its memory is now, for one context of the largest profile and for a
 * sixteenth of the device's memory. At most streamable_size, at least 1; 0 on the CPU. Errors: INVALID_ARG, DEVICE. */
SINTER_API sinter_status sinter_engine_automatic_weight_budget(const sinter_engine *engine, uint64_t *out,
                                                               sinter_error *error) SINTER_MUST_USE;

/* Tells profilers of the engine's device that wait for it (nsys --capture-range=cudaProfilerApi) to begin to record, or
 * to end. On the CPU nothing happens. Any thread may call it. Errors: INVALID_ARG (engine is NULL, or has no device),
 * DEVICE. */
SINTER_API sinter_status sinter_engine_profile(sinter_engine *engine, int is_on, sinter_error *error) SINTER_MUST_USE;

/* Prints the report of `sinter inspect`. */
typedef enum sinter_print { SINTER_PRINT_TEXT = 0, SINTER_PRINT_JSON = 1 } sinter_print;
typedef void (*sinter_write_fn)(void *user, const char *text, size_t length);
SINTER_API sinter_status sinter_engine_print(const sinter_engine *engine, sinter_print format, sinter_write_fn write,
                                             void *user, sinter_error *error) SINTER_MUST_USE;

/* Prints the steps of all profiles as TensorRT's inspector prints layers, or one of them, to the detail that the build
 * was asked for (options.detail). SINTER_PRINT_JSON: { "Layers": [...], "Bindings": [...] }, or one layer.
 * SINTER_PRINT_TEXT: a line for each. A size that runs choose is -1. Errors: INVALID_ARG (there is no such layer),
 * NO_MEMORY. */
#define SINTER_ALL_LAYERS UINT32_MAX
SINTER_API sinter_status sinter_engine_print_layers(const sinter_engine *engine, uint32_t index, sinter_print format,
                                                    sinter_write_fn write, void *user,
                                                    sinter_error *error) SINTER_MUST_USE;
SINTER_API sinter_detail sinter_engine_detail(const sinter_engine *engine); /* ALL if `engine` is NULL */

#ifdef __cplusplus
}
#endif
#endif
