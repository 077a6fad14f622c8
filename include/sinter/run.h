/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - a context: one caller's run state of an engine. */
#ifndef SINTER_RUN_H
#define SINTER_RUN_H

#include "engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Belongs to one thread at a time; any number of contexts of an engine may run at once. */
typedef struct sinter_context sinter_context;

/* X(kind, type, field, initial, most, words, text): option.h says how to read it. */
#define SINTER_CONTEXT_SCALARS(X)                                                                                    \
    X(COUNT, uint32_t, profile, 0, UINT32_MAX, "N", "The optimisation profile.")                                     \
    X(FLAG, uint32_t, timing, 0, 1, "", "Measures each step, at the cost of a clock read a step.")                   \
    X(FLAG, uint32_t, phases, 0, 1, "", "Measures the phases of each run, at the cost of a few clock reads.")        \
    X(FLAG, uint32_t, lazy, 0, 1, "",                                                                                \
      "For contexts that run once: nothing is done before the first run that it can do. Else what runs of the "      \
      "profile's opt shape want is made with the context, and tried once on zeros where the host has no part in it.")

typedef struct sinter_context_options {
    size_t struct_size;
    /* The caller's stream (CUstream or cudaStream_t) on which runs are ordered, borrowed while the context lives; NULL:
     * one of its own. Devices without streams ignore it. */
    void  *stream;
    SINTER_CONTEXT_SCALARS(SINTER_FIELD)
} sinter_context_options;
#define SINTER_CONTEXT_OPTIONS { sizeof(sinter_context_options), 0, SINTER_CONTEXT_SCALARS(SINTER_INITIAL) }

/* Creates a context and its memory. On a GPU it launches a run on the stream and waits for it, unless options.lazy says
 * not to: the first run is like those after it then. The context holds a reference to the engine.
 * Errors: INVALID_ARG (no such profile), NO_MEMORY. */
SINTER_API sinter_status sinter_context_create(sinter_engine *engine, const sinter_context_options *options,
                                               sinter_context **out, sinter_error *error) SINTER_MUST_USE;
SINTER_API void sinter_context_destroy(sinter_context *context);                /* NULL is accepted */

/* Gives input `name` its data: dense row-major, borrowed until another call for this input, or until the context is
 * destroyed: every run reads it again. A call that fails takes back what was given before, so that the next run fails
 * until the input is set. Dims must lie in the profile's ranges. Memory should be 64-byte aligned (any alignment
 * works). tensor->place says whose it is: a device's memory is read where it lies if aligned to 16 bytes, the host's is
 * copied to the device, by way of the context's own memory unless it is pinned.
 * Errors: INVALID_ARG naming the input, the value found and the value wanted. */
SINTER_API sinter_status sinter_context_set_input(sinter_context *context, const char *name,
                                                  const sinter_tensor *tensor, sinter_error *error) SINTER_MUST_USE;

/* Gives output `name` memory: `size` bytes at `data` of the host or the device, borrowed until another call for this
 * output, or until the context is destroyed. data NULL, and after a call that fails: the context's own memory, on the
 * host. `data` must be aligned to an element; of a device, it is written to directly if aligned to 16 bytes. A result
 * that does not fit makes the run fail with INVALID_ARG saying what was wanted. Memory that is given for an output must
 * share no byte with that of an input or of another output. */
SINTER_API sinter_status sinter_context_set_output(sinter_context *context, const char *name, void *data, size_t size,
                                                   sinter_place place, sinter_error *error) SINTER_MUST_USE;

/* Runs once. After the first run with a shape nothing is allocated. Results stay valid until the next run.
 * Errors: INVALID_ARG (an input is missing or shapes disagree), INVALID_MODEL (an index in the data is out of range:
 * names the step and the value; results are defined but not meaningful), NO_MEMORY, CANCELLED, UNSUPPORTED (a Loop
 * passed loop_max: names it). The context stays usable. */
SINTER_API sinter_status sinter_context_run(sinter_context *context, sinter_error *error) SINTER_MUST_USE;

/* From any thread: the run that is under way ends with CANCELLED, between two iterations of a Loop or Scan, or between
 * two programs (a program is a series of steps without control flow and without sizes that data decides); what a device
 * has been given is waited for. A program is never interrupted: a single step may take as long as its sizes and
 * memory_max permit, and who must end sooner runs it in a process of its own. Without a run under way, nothing happens.
 * The context must not be destroyed meanwhile. NULL is accepted. */
SINTER_API void sinter_context_cancel(sinter_context *context);

/* Begins a run and returns; data of inputs and outputs must stay until sinter_context_wait has returned. Work of the
 * caller's on the same stream that came before is waited for, and what comes after waits for the run. On devices that
 * work while they are called (the CPU) this is sinter_context_run. A run that is begun while another is under way waits
 * for it; where inputs and outputs are all of the device, on the device, without the host.
 * Errors: as for sinter_context_run; UNSUPPORTED where the host must step in between (`sinter inspect` shows it). */
SINTER_API sinter_status sinter_context_run_async(sinter_context *context, sinter_error *error) SINTER_MUST_USE;
/* Waits for the run that was begun last; its results are there after that. Errors: what the run met, as for
 * sinter_context_run. OK where none is under way. */
SINTER_API sinter_status sinter_context_wait(sinter_context *context, sinter_error *error) SINTER_MUST_USE;
/* Non-zero: sinter_context_wait would return at once. */
SINTER_API int sinter_context_is_done(sinter_context *context);

/* The result of output `name` of the last run: dense row-major; its data belongs to the caller's buffer or
 * the context. On the host, unless sinter_context_set_output gave it memory of the device: out->place says. */
SINTER_API sinter_status sinter_context_output(sinter_context *context, const char *name, sinter_tensor *out,
                                               sinter_error *error) SINTER_MUST_USE;

/* Per-step times of all runs since creation (options.timing). `name` is the model's node, `kernel` what ran it. */
typedef struct sinter_step_time {
    const char *name, *problem, *kernel;
    uint64_t    runs, total_ns, min_ns;
} sinter_step_time;
SINTER_API uint32_t sinter_context_step_count(const sinter_context *context);
SINTER_API sinter_status sinter_context_step(const sinter_context *context, uint32_t index,
                                             sinter_step_time *out) SINTER_MUST_USE;

/* Where the time of the last run went that was waited for (options.phases), by the device's clock where it has one.
 * Host steps in the middle of a run count as computing. Errors: INVALID_ARG where there is none. */
typedef struct sinter_run_time {
    uint64_t copy_in_ns, compute_ns, copy_out_ns;
} sinter_run_time;
SINTER_API sinter_status sinter_context_run_time(const sinter_context *context, sinter_run_time *out) SINTER_MUST_USE;

/* Bytes that the context holds: the slab, grown buffers, records. */
SINTER_API size_t sinter_context_memory(const sinter_context *context);

#ifdef __cplusplus
}
#endif
#endif
