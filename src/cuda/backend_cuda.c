/* SPDX-License-Identifier: Apache-2.0 */
/* backend_cuda.c - the backend's table: cuda_device.c, stream.c, table.c and program.c do the work. */
#include "cuda/backend_cuda.h"

#include "cuda/cuda_device.h"
#include "cuda/fit.h"
#include "cuda/cuda_kernels.h"
#include "cuda/program.h"
#include "cuda/report.h"
#include "cuda/stream.h"

static void target(const device *d, kernel_target *out)
{
    *out = d->target;
}

static const kernel *const *kernels(uint32_t *count)
{
    *count = cuda_kernels_count;
    return cuda_kernels;
}

/* Where there is no device, compiling is all there is to do. */
static sinter_status prepare(env *e, device *d, const kernel_use *use, uint32_t count)
{
    arena a;
    arena_init(&a, e);
    use_code *code = ARENA_NEW(&a, use_code, count);
    sinter_status s = code || !count ? SINTER_OK : FAIL_MEMORY(e, "kernels");
    if (s == SINTER_OK && d->is_present) s = cuda_device_enter(e, d);
    if (s == SINTER_OK) {
        s = count ? code_table_resolve(e, d, use, count, d->is_present, &a, code) : SINTER_OK;
        if (d->is_present) cuda_device_leave(d);
    }
    arena_deinit(&a);
    return s;
}

/* Tuned tactics and compiled code go with a family: 8.x takes what was made for a lesser 8.x, and from 9.0 on each has
 * features of its own. */
static sinter_status admit(env *e, uint32_t wanted, const kernel_target *target)
{
    const uint32_t found = target->isa;
    if (!wanted || wanted == found) return SINTER_OK; /* 0: the reference, on the host */
    if (wanted < 90 && wanted / 10 == found / 10 && wanted < found) return SINTER_OK;
    return FAIL(e, INCOMPATIBLE,
                "the engine was built for compute capability %u.%u, this device has %u.%u: build it "
                "for this one",
                wanted / 10, wanted % 10, found / 10, found % 10);
}

const backend cuda_backend = {
    .name = "cuda",
    .traits = BACKEND_INTEGERS | BACKEND_PROLOGUES | BACKEND_REBINDS,
    .open = cuda_device_open,
    .close = cuda_device_close,
    .target = target,
    .admit = admit,
    .kernels = kernels,
    .fit = cuda_fit,
    .describe = cuda_device_describe,
    .describe_use = code_table_describe,
    .memory_alloc = cuda_memory_alloc,
    .memory_free = cuda_memory_free,
    .memory_grow = cuda_memory_grow,
    .memory_counts = cuda_memory_counts,
    .alignment = 16,
    .host_alloc = cuda_host_alloc,
    .host_free = cuda_host_free,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .stream_native = cuda_stream_native,
    .stream_order = cuda_stream_order,
    .memory_left = cuda_memory_left,
    .stream_wait = cuda_stream_wait,
    .stream_finish = cuda_stream_finish,
    .stream_mark = cuda_stream_mark,
    .stream_elapsed = cuda_stream_elapsed,
    .stream_is_done = cuda_stream_is_done,
    .copy = cuda_stream_copy,
    .prepare = prepare,
    .program_time = cuda_program_time,
    .rates = cuda_device_rates,
    .profile = cuda_device_profile,
    .clock = cuda_device_clock,
    .code_export = code_table_export,
    .code_import = code_table_import,
    .program_create = cuda_program_create,
    .program_launch = cuda_program_launch,
    .program_ready = cuda_program_ready,
    .program_destroy = cuda_program_destroy,
    .program_memory = cuda_program_memory,
    .report = cuda_report,
};
