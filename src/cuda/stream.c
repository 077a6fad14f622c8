/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - streams of our own and of callers, waiting, copies.
 *
 * Faults of data are written to device memory by kernels; a wait fetches them only where a program was launched that
 * can find any. A stream belongs to one thread at a time. */
#include "cuda/stream.h"

#include <string.h>

static sinter_status fill(env *e, device *d, void *native, stream *s)
{
    s->handle = native;
    if (!native) {
        DEVICE_TRY(e, d, cuStreamCreate(&s->handle, CU_STREAM_NON_BLOCKING), "making a stream");
        s->is_own = true;
    }
    const CUresult r = cuda_memory_take(d, sizeof *s->seen, 0, &s->fault);
    if (r != CUDA_SUCCESS) return cuda_device_fail(e, d, r, "allocating a stream's record of faults");
    void *seen = NULL;
    DEVICE_TRY(e, d, cuMemHostAlloc(&seen, sizeof *s->seen, CU_MEMHOSTALLOC_PORTABLE),
               "allocating a stream's record of faults");
    s->seen = seen;
    DEVICE_TRY(e, d, cuMemsetD8Async(s->fault, 0, sizeof *s->seen, d->setup), "clearing a stream's record of faults");
    DEVICE_TRY(e, d, cuStreamSynchronize(d->setup), "clearing a stream's record of faults");
    return SINTER_OK;
}

sinter_status cuda_stream_create(env *e, device *d, void *native, stream **out)
{
    *out = NULL;
    TRY(cuda_device_enter(e, d));
    stream *s = mem_zalloc(e, sizeof *s, _Alignof(stream));
    const sinter_status status = s ? fill(e, d, native, s) : FAIL_MEMORY(e, "a stream");
    cuda_device_leave(d);
    if (status == SINTER_OK) *out = s;
    else cuda_stream_destroy(e, d, s);
    return status;
}

void cuda_stream_destroy(env *e, device *d, stream *s)
{
    if (!s) return;
    const bool is_current = cuda_device_enter_any(d);
    for (uint32_t i = 0; i < STREAM_MARKS; i++)
        if (s->mark[i]) (void)d->driver.cuEventDestroy(s->mark[i]);
    if (s->here) (void)d->driver.cuEventDestroy(s->here);
    if (s->seen) (void)d->driver.cuMemFreeHost(s->seen);
    if (s->fault) cuda_memory_give(d, s->fault, sizeof *s->seen);
    if (s->is_own) (void)d->driver.cuStreamDestroy(s->handle);
    if (is_current) cuda_device_leave(d);
    mem_free(e, s, sizeof *s, _Alignof(stream));
}

void *cuda_stream_native(const stream *s)
{
    return s->handle;
}

static sinter_status wait(env *e, device *d, stream *s, data_fault *fault)
{
    if (s->may_have_fault)
        DEVICE_TRY(e, d, cuMemcpyDtoHAsync(s->seen, s->fault, sizeof *s->seen, s->handle), "reading faults of data");
    DEVICE_TRY(e, d, cuStreamSynchronize(s->handle), "waiting for the device");
    const bool had = s->may_have_fault;
    s->may_have_fault = false;
    if (!had || !s->seen->is_set) return SINTER_OK;
    if (fault)
        *fault = (data_fault){ .is_set = 1,
                               .step = s->seen->step,
                               .index = s->seen->index,
                               .value = s->seen->value,
                               .limit = s->seen->limit };
    /* In the stream's order: later launches find it cleared. */
    const CUresult r = d->driver.cuMemsetD8Async(s->fault, 0, sizeof *s->seen, s->handle);
    if (r == CUDA_SUCCESS) return SINTER_OK;
    s->may_have_fault = true;
    return cuda_device_fail(e, d, r, "clearing faults of data");
}

sinter_status cuda_stream_wait(env *e, device *d, stream *s, data_fault *fault)
{
    TRY(cuda_device_enter(e, d));
    const sinter_status status = wait(e, d, s, fault);
    cuda_device_leave(d);
    return status;
}

void cuda_stream_finish(env *e, device *d, stream *s)
{
    (void)e;
    if (!cuda_device_enter_any(d)) return;
    (void)(s->is_own ? d->driver.cuStreamSynchronize(s->handle) : d->driver.cuCtxSynchronize());
    cuda_device_leave(d);
}

/* The event may be recorded again at once: who waits for it waits for what it was then. */
static sinter_status order(env *e, device *d, stream *s, stream *before)
{
    if (!before->here) DEVICE_TRY(e, d, cuEventCreate(&before->here, CU_EVENT_DISABLE_TIMING), "making an event");
    DEVICE_TRY(e, d, cuEventRecord(before->here, before->handle), "recording an event");
    DEVICE_TRY(e, d, cuStreamWaitEvent(s->handle, before->here, 0), "ordering two streams");
    return SINTER_OK;
}

sinter_status cuda_stream_order(env *e, device *d, stream *s, stream *before)
{
    TRY(cuda_device_enter(e, d));
    const sinter_status status = order(e, d, s, before);
    cuda_device_leave(d);
    return status;
}

static sinter_status mark_here(env *e, device *d, stream *s, CUevent *mark)
{
    if (!*mark) DEVICE_TRY(e, d, cuEventCreate(mark, CU_EVENT_DEFAULT), "making an event");
    DEVICE_TRY(e, d, cuEventRecord(*mark, s->handle), "recording an event");
    return SINTER_OK;
}

sinter_status cuda_stream_mark(env *e, device *d, stream *s, uint32_t mark)
{
    TRY(cuda_device_enter(e, d));
    const sinter_status status = mark_here(e, d, s, &s->mark[mark]);
    cuda_device_leave(d);
    return status;
}

sinter_status cuda_stream_elapsed(env *e, device *d, stream *s, uint32_t from, uint32_t to, double *ns)
{
    float ms = 0;
    TRY(cuda_device_enter(e, d));
    const CUresult r = d->driver.cuEventElapsedTime(&ms, s->mark[from], s->mark[to]);
    cuda_device_leave(d);
    *ns = 1e6 * (double)ms;
    return r == CUDA_SUCCESS ? SINTER_OK : cuda_device_fail(e, d, r, "reading the device's clock");
}

/* A failure is told by the wait, which then returns at once. */
bool cuda_stream_is_done(device *d, stream *s)
{
    const bool is_current = cuda_device_enter_any(d);
    const CUresult r = d->driver.cuStreamQuery(s->handle);
    if (is_current) cuda_device_leave(d);
    return r != CUDA_ERROR_NOT_READY;
}

sinter_status cuda_stream_copy(env *e, device *d, stream *s, copy_kind kind, void *to, const void *from, size_t size)
{
    if (!size) return cuda_device_check(e, d);
    TRY(cuda_device_enter(e, d));
    const CUdeviceptr to_at = (CUdeviceptr)(uintptr_t)to, from_at = (CUdeviceptr)(uintptr_t)from;
    const CUresult r = kind == COPY_TO_DEVICE   ? d->driver.cuMemcpyHtoDAsync(to_at, from, size, s->handle)
                       : kind == COPY_ON_DEVICE ? d->driver.cuMemcpyDtoDAsync(to_at, from_at, size, s->handle)
                                                : d->driver.cuMemcpyDtoHAsync(to, from_at, size, s->handle);
    cuda_device_leave(d);
    if (r == CUDA_SUCCESS) return SINTER_OK;
    return cuda_device_fail(e, d, r,
                            kind == COPY_TO_DEVICE     ? "copying to the device"
                            : kind == COPY_FROM_DEVICE ? "copying from the device"
                                                       : "copying on the device");
}
