/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - a context: the state that one caller needs to run an engine. */
#ifndef SINTER_RUN_H
#define SINTER_RUN_H

#include "engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A context belongs to one thread at a time. Any number of contexts of one engine may run at the same time. */
typedef struct sinter_context sinter_context;

/* Who provides the activation memory of a context: the memory for results between steps and for the scratch memory of
 * kernels. The states, the buffers of outputs and of data-dependent sizes, and what a GPU's engine needs on the host
 * are always the context's own. */
typedef enum sinter_memory {
    SINTER_MEMORY_PROFILE = 0,      /* the context: what its profile needs; again after a change of profile */
    SINTER_MEMORY_STATIC = 1,       /* the context: the most that any profile needs, once */
    SINTER_MEMORY_USER = 2          /* the caller: sinter_context_set_memory */
} sinter_memory;

/* X(kind, type, field, initial, most, words, text): option.h says how to read it. */
#define SINTER_CONTEXT_SCALARS(X)                                                                                    \
    X(COUNT, uint32_t, profile, 0, UINT32_MAX, "N", "The optimisation profile.")                                     \
    X(FLAG, uint32_t, timing, 0, 1, "", "Measures each step, at the cost of a clock read a step.")                   \
    X(FLAG, uint32_t, phases, 0, 1, "", "Measures the phases of each run, at the cost of a few clock reads.")        \
    X(FLAG, uint32_t, lazy, 0, 1, "",                                                                                \
      "Defers all preparation to the first run. Use it for a context that runs once. Otherwise creating the context " \
      "prepares the profile's opt shape, and runs it once on zeros if no step of it runs on the host.")

typedef struct sinter_context_options {
    size_t struct_size;
    /* The caller's stream (CUstream or cudaStream_t). Runs are ordered on this stream. Once the caller has destroyed
     * the stream, the context can only be destroyed: that then waits for the whole device, if a run was not waited
     * for. NULL: the context makes its own stream. Devices without streams ignore it. */
    void  *stream;
    SINTER_CONTEXT_SCALARS(SINTER_FIELD)
    sinter_memory memory;           /* who provides the activation memory */
} sinter_context_options;
#define SINTER_CONTEXT_OPTIONS \
    { sizeof(sinter_context_options), 0, SINTER_CONTEXT_SCALARS(SINTER_INITIAL) SINTER_MEMORY_PROFILE }

/* Creates a context and allocates its memory. Unless options.lazy is set, a GPU then runs the engine once on the
 * stream, and the call waits for that run. The caller's first run is then as fast as later runs. The context holds a
 * reference to the engine. Errors: INVALID_ARG (no such profile), NO_MEMORY. */
SINTER_API sinter_status sinter_context_create(sinter_engine *engine, const sinter_context_options *options,
                                               sinter_context **out, sinter_error *error) SINTER_MUST_USE;
SINTER_API void sinter_context_destroy(sinter_context *context);                /* NULL is accepted */

/* Changes the profile. The call waits for the current run. Inputs and outputs stay as they were set; a run fails if an
 * input lies outside the new profile's ranges. Results of earlier runs are gone. The activation memory stays if its
 * strategy is STATIC or USER. States keep their contents; a state that has other sizes in the new profile has to be
 * reset first. After a failure no run is possible before another change succeeds, and states have lost their contents.
 * Errors: INVALID_ARG, NO_MEMORY. */
SINTER_API sinter_status sinter_context_set_profile(sinter_context *context, uint32_t profile,
                                                    sinter_error *error) SINTER_MUST_USE;
SINTER_API uint32_t sinter_context_profile(const sinter_context *context);

/* Gives the context the caller's activation memory (options.memory USER): `size` bytes at `data`, aligned to 64 bytes,
 * in the memory of the engine's device: host memory for "cpu", device memory for "cuda". The memory may hold anything.
 * The call waits for the current run. The memory must stay until the next call, or until the context is destroyed.
 * NULL takes it back. sinter_engine_memory_size is enough for all shapes of a profile, sinter_context_memory_size for
 * the shapes that are set.
 *
 * Contexts may share one block if they do not run at the same time. Runs that are ordered on one stream of the caller
 * count as one after the other. A run that overlaps a run of another context of the same engine fails with INVALID_ARG;
 * between contexts of different engines nothing is checked, and results are wrong.
 * Errors: INVALID_ARG (other strategies; misaligned; too small for any shape). A run states the size that it needs if
 * its shapes need more. A call that fails takes the memory away. */
SINTER_API sinter_status sinter_context_set_memory(sinter_context *context, void *data, size_t size,
                                                   sinter_error *error) SINTER_MUST_USE;
/* Bytes of activation memory for the shapes of the inputs. All inputs need shapes. With options.memory USER small
 * shapes need less than large ones; otherwise this is the size of the context's own block. Cost: that of evaluating the
 * shapes. */
SINTER_API sinter_status sinter_context_memory_size(sinter_context *context, size_t *out,
                                                    sinter_error *error) SINTER_MUST_USE;

/* Sets the dims of input `name` without data: for the calls that need shapes alone. A run needs the data, too. Errors:
 * as for sinter_context_set_input. */
SINTER_API sinter_status sinter_context_set_input_shape(sinter_context *context, const char *name, const int64_t *dim,
                                                        uint32_t rank, sinter_error *error) SINTER_MUST_USE;

/* Sets the data of input `name`: dense, row-major. Every run reads the caller's memory again. The caller keeps the
 * memory valid until the next call for this input, or until the context is destroyed. A call that fails clears the
 * input: runs fail until a later call succeeds. The dims must lie within the profile's ranges. Any alignment works; 64
 * bytes is the fastest. tensor->place says where the memory is. Device memory that is aligned to 16 bytes is read in
 * place. Host memory is copied to the device; memory that is not pinned is copied through a buffer of the context.
 * Errors: INVALID_ARG, which names the input, the value found and the value wanted. */
SINTER_API sinter_status sinter_context_set_input(sinter_context *context, const char *name,
                                                  const sinter_tensor *tensor, sinter_error *error) SINTER_MUST_USE;

/* Sets the memory of output `name`: `size` bytes at `data`, on the host or on the device. The caller keeps the memory
 * valid until the next call for this output, or until the context is destroyed. If `data` is NULL, or if the call
 * fails, the output lies in host memory of the context. `data` must be aligned to the element's size. Device memory
 * that is aligned to 16 bytes is written directly. If a result does not fit, the run fails with INVALID_ARG, which
 * states the size wanted. The memory must not overlap the memory of an input or of another output. */
SINTER_API sinter_status sinter_context_set_output(sinter_context *context, const char *name, void *data, size_t size,
                                                   sinter_place place, sinter_error *error) SINTER_MUST_USE;

/* Provides the memory of an output during a run, as soon as the run knows the size.
 *
 *   resize   returns `size` bytes (at least 1), aligned to `align`: new memory, or `memory` if it is large enough.
 *            `memory` is what the call before for this output returned; NULL before the first call.
 *            A result of NULL: the run fails with NO_MEMORY. It is called once in each run, for each output that has an
 *            allocator.
 *            `stream`: the stream of the run (CUstream) on which the memory will be written; NULL on the CPU.
 *   notify   receives the exact dims when they are known, once in each run that does not fail; NULL: not wanted.
 *
 * Both run on the thread that runs the context, and must not call functions of this context. */
typedef struct sinter_output_allocator {
    void *user;
    void *(*resize)(void *user, const char *name, void *memory, size_t size, size_t align, void *stream);
    void (*notify)(void *user, const char *name, const int64_t *dim, uint32_t rank);
} sinter_output_allocator;

/* Has output `name` allocated by the caller, at `place`. The struct is copied. NULL removes the allocator; the output
 * then lies in memory of the context. sinter_context_set_output removes it, too. Errors: INVALID_ARG. */
SINTER_API sinter_status sinter_context_set_output_allocator(sinter_context *context, const char *name,
                                                             const sinter_output_allocator *allocator,
                                                             sinter_place place, sinter_error *error) SINTER_MUST_USE;

/* The names of the inputs that miss a shape, or whose missing value decides a size: the first `room` of them, and in
 * *count how many there are. 0: sinter_context_output_shape gives all shapes that no other data decides. The names are
 * valid as long as the engine. Errors: INVALID_ARG if shapes disagree. */
SINTER_API sinter_status sinter_context_infer_shapes(sinter_context *context, const char **missing, uint32_t room,
                                                     uint32_t *count, sinter_error *error) SINTER_MUST_USE;
/* The dims that output `name` will have, without a run: out->dtype, out->rank and out->dim; out->data is NULL. A dim is
 * -1 if only the run can know it, or if an input has no shape. Values of small inputs of integers that are
 * sizes (of a Reshape, for example), or from which the model computes sizes, are used if they are on the host.
 * Errors: INVALID_ARG. */
SINTER_API sinter_status sinter_context_output_shape(sinter_context *context, const char *name, sinter_tensor *out,
                                                     sinter_error *error) SINTER_MUST_USE;
/* The most bytes that output `name` can have with the inputs' shapes; inputs without shapes count with the profile's
 * ranges. Errors: INVALID_ARG; UNSUPPORTED if there is no bound. */
SINTER_API sinter_status sinter_context_max_output_size(sinter_context *context, const char *name, size_t *out,
                                                        sinter_error *error) SINTER_MUST_USE;

/* Runs once and waits. The first run with a shape may allocate memory; later runs with that shape allocate nothing.
 * Results stay valid until the next run. After an error the context can be used again.
 * Errors: INVALID_ARG (an input is missing, or shapes disagree), INVALID_MODEL (an index in the data is out of range;
 * the error names the step and the value, and the results have no meaning), NO_MEMORY, CANCELLED, UNSUPPORTED (a Loop
 * or a Scan would run more than loop_max iterations; the error names it). */
SINTER_API sinter_status sinter_context_run(sinter_context *context, sinter_error *error) SINTER_MUST_USE;

/* Ends the current run with CANCELLED. Any thread may call it; the context must not be destroyed during the call. A run
 * stops between two iterations of a Loop or Scan, or between two programs. (A program is a series of steps without
 * control flow and without data-dependent sizes.) The run then waits for the work that the device has received. A
 * program is never interrupted: a single step may take as long as its sizes and memory_max permit. To stop sooner, run
 * the engine in a process of its own. If no run is active, the call does nothing. NULL is accepted. */
SINTER_API void sinter_context_cancel(sinter_context *context);

/* Starts a run and returns. The memory of inputs and outputs must stay valid until sinter_context_wait has returned.
 * The run starts after all earlier work on its stream, and later work on the stream starts after the run. A run that is
 * started during another run of the context starts after that run; if all inputs and outputs are in device memory, the
 * host does not wait for it. On the CPU this call is sinter_context_run. Errors: as for sinter_context_run; UNSUPPORTED
 * if a step of the engine runs on the host (`sinter inspect` shows the steps). */
SINTER_API sinter_status sinter_context_run_async(sinter_context *context, sinter_error *error) SINTER_MUST_USE;
/* Waits until the last run has ended and its results are complete. Returns OK if no run is active. Errors: those of the
 * run, as for sinter_context_run. */
SINTER_API sinter_status sinter_context_wait(sinter_context *context, sinter_error *error) SINTER_MUST_USE;
/* Non-zero: no run is active, so sinter_context_wait would return immediately. */
SINTER_API int sinter_context_is_done(sinter_context *context);

/* Describes the result of output `name` of the last run: dense, row-major. out->data points into the memory that
 * sinter_context_set_output received, or into memory of the context. out->place says where the data is: in host memory,
 * unless the caller gave device memory. */
SINTER_API sinter_status sinter_context_output(sinter_context *context, const char *name, sinter_tensor *out,
                                               sinter_error *error) SINTER_MUST_USE;

/* The state of an engine that was built with options.state (build.h): tensors that stay in the context between runs. */
typedef struct sinter_state_info {
    uint64_t bytes;                 /* of all tensors of the state; 0: the engine has no state */
    int64_t  rows, capacity;        /* rows now, and at most; 0 and 0 if no tensor of the state grows */
} sinter_state_info;
SINTER_API sinter_status sinter_context_state(const sinter_context *context, sinter_state_info *out) SINTER_MUST_USE;

/* Begins a new sequence: all tensors of the state become zero, and have no rows. The call waits for the current run. A
 * run appends the rows that it is given. A run that would exceed the capacity fails with INVALID_ARG and leaves the
 * state as it was. After a run that failed half-way, runs fail with INVALID_ARG until the state is reset. */
SINTER_API sinter_status sinter_context_reset_state(sinter_context *context, sinter_error *error) SINTER_MUST_USE;

/* Sets the number of rows, from 0 to the capacity. Fewer: the last rows are forgotten, and the next run writes over
 * them. More: the rows between are zeros, or what forgotten rows have left. Tensors of the state that do not grow stay
 * as they are. Errors: INVALID_ARG. */
SINTER_API sinter_status sinter_context_set_rows(sinter_context *context, int64_t rows,
                                                 sinter_error *error) SINTER_MUST_USE;

/* Times of one step, over all runs since the context was created (options.timing). `name` is the model's node; `kernel`
 * is the kernel that ran it. */
typedef struct sinter_step_time {
    const char *name, *problem, *kernel;
    uint64_t    runs, total_ns, min_ns;
} sinter_step_time;
SINTER_API uint32_t sinter_context_step_count(const sinter_context *context);
SINTER_API sinter_status sinter_context_step(const sinter_context *context, uint32_t index,
                                             sinter_step_time *out) SINTER_MUST_USE;

/* What a step has to do at least, in the shapes that were prepared last: operations of the op's definition (a
 * multiply-add is two), and the bytes of each operand once. products: most operations are multiply-adds of numbers of
 * type `dtype`. All 0 for steps that launch no kernel. */
typedef struct sinter_step_work {
    double       operations, weight_bytes, read_bytes, written_bytes;
    uint32_t     products;
    sinter_dtype dtype;
} sinter_step_work;
/* Errors: INVALID_ARG if `index` is out of range, or if no run has ended. */
SINTER_API sinter_status sinter_context_step_work(const sinter_context *context, uint32_t index,
                                                  sinter_step_work *out) SINTER_MUST_USE;

/* sinter_engine_print_layers, with the sizes that the shapes of the inputs decide in the context's profile. */
SINTER_API sinter_status sinter_context_print_layers(sinter_context *context, uint32_t index, sinter_print format,
                                                     sinter_write_fn write, void *user,
                                                     sinter_error *error) SINTER_MUST_USE;

/* The phases of the last run that has ended (options.phases), by the device's clock if it has one. Host steps within a
 * run count as compute_ns. Errors: INVALID_ARG if no run has ended, or if options.phases was not set. */
typedef struct sinter_run_time {
    uint64_t copy_in_ns, compute_ns, copy_out_ns;
} sinter_run_time;
SINTER_API sinter_status sinter_context_run_time(const sinter_context *context, sinter_run_time *out) SINTER_MUST_USE;

/* Bytes that the context has allocated: activations, buffers of data-dependent size, bound steps. */
SINTER_API size_t sinter_context_memory(const sinter_context *context);

#ifdef __cplusplus
}
#endif
#endif
