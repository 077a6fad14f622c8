/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_memory.c - memory of a GPU, from the driver or from the caller's allocator, cleared and counted; pinned memory
 * of the host. */
#include "cuda/cuda_device.h"

enum { ALIGN = 256 };

static double mib(size_t bytes)
{
    return (double)bytes / (1 << 20);
}

/* The driver's own words for "no memory" say nothing of how much. */
static sinter_status fail_alloc(env *e, device *d, CUresult r, size_t size)
{
    if (r != CUDA_ERROR_OUT_OF_MEMORY) return cuda_device_fail(e, d, r, "allocating device memory");
    size_t free_size = 0, total = 0;
    if (d->driver.cuMemGetInfo(&free_size, &total) != CUDA_SUCCESS)
        return FAIL(e, NO_MEMORY, "device '%s' has no memory for %zu bytes (%.1f MiB)", d->name, size, mib(size));
    return FAIL(e, NO_MEMORY, "device '%s' has no memory for %zu bytes (%.1f MiB): %.1f MiB are free of %.1f MiB",
                d->name, size, mib(size), mib(free_size), mib(total));
}

CUresult cuda_memory_take(device *d, size_t size, uint32_t flags, CUdeviceptr *out)
{
    const sinter_device_allocator *a = &d->allocator;
    CUresult r = CUDA_SUCCESS;
    *out = 0;
    if (a->allocate) {
        *out = (CUdeviceptr)(uintptr_t)a->allocate(a->user, size, ALIGN, flags, d->setup);
        if (!*out) r = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
        r = d->driver.cuMemAlloc(out, size);
        if (r != CUDA_SUCCESS) *out = 0;
    }
    if (r == CUDA_SUCCESS) memory_count_take(&d->counts, size);
    return r;
}

void cuda_memory_give(device *d, CUdeviceptr at, size_t size)
{
    const sinter_device_allocator *a = &d->allocator;
    if (a->allocate) a->release(a->user, (void *)(uintptr_t)at, size, d->setup);
    else (void)d->driver.cuMemFree(at);
    memory_count_give(&d->counts, size);
}

sinter_status cuda_memory_left(env *e, device *d, uint64_t *left, uint64_t *all)
{
    size_t free_size = 0, total = 0;
    TRY(cuda_device_enter(e, d));
    const CUresult r = d->driver.cuMemGetInfo(&free_size, &total);
    cuda_device_leave(d);
    *left = free_size;
    *all = total;
    return r == CUDA_SUCCESS ? SINTER_OK : cuda_device_fail(e, d, r, "asking for the device's free memory");
}

const memory_counts *cuda_memory_counts(const device *d)
{
    return &d->counts;
}

static sinter_status clear(env *e, device *d, CUdeviceptr at, size_t size)
{
    DEVICE_TRY(e, d, cuMemsetD8Async(at, 0, size, d->setup), "clearing device memory");
    DEVICE_TRY(e, d, cuStreamSynchronize(d->setup), "clearing device memory");
    return SINTER_OK;
}

/* A block that is not aligned would be found by a kernel, and late. */
static sinter_status check_aligned(env *e, device *d, CUdeviceptr at)
{
    if (at % ALIGN == 0) return SINTER_OK;
    return FAIL(e, INVALID_ARG, "the allocator of device '%s' gives memory at %llx, expected a multiple of %d", d->name,
                (unsigned long long)at, ALIGN);
}

static void *take_cleared(env *e, device *d, size_t size, uint32_t flags)
{
    if (!size || cuda_device_enter(e, d) != SINTER_OK) return NULL;
    CUdeviceptr at = 0;
    const CUresult r = cuda_memory_take(d, size, flags, &at);
    if (r != CUDA_SUCCESS) {
        (void)fail_alloc(e, d, r, size);
    } else if (check_aligned(e, d, at) != SINTER_OK || clear(e, d, at, size) != SINTER_OK) {
        cuda_memory_give(d, at, size);
        at = 0;
    }
    cuda_device_leave(d);
    return (void *)(uintptr_t)at;
}

void *cuda_memory_alloc(env *e, device *d, size_t size)
{
    return take_cleared(e, d, size, 0);
}

void cuda_memory_free(env *e, device *d, void *ptr, size_t size)
{
    (void)e;
    if (!ptr) return;
    const bool is_current = cuda_device_enter_any(d);
    cuda_memory_give(d, (CUdeviceptr)(uintptr_t)ptr, size);
    if (is_current) cuda_device_leave(d);
}

void *cuda_memory_grow(env *e, device *d, void *ptr, size_t old_size, size_t size)
{
    const sinter_device_allocator *a = &d->allocator;
    if (!ptr) return take_cleared(e, d, size, SINTER_DEVICE_RESIZABLE);
    if (!a->allocate || !a->reallocate || size <= old_size || cuda_device_enter(e, d) != SINTER_OK) return NULL;
    const CUdeviceptr at = (CUdeviceptr)(uintptr_t)a->reallocate(a->user, ptr, old_size, size, ALIGN, d->setup);
    if (at) {
        memory_count_give(&d->counts, old_size);
        memory_count_take(&d->counts, size);
        (void)clear(e, d, at + old_size, size - old_size);
    }
    cuda_device_leave(d);
    return (void *)(uintptr_t)at;
}

void *cuda_host_alloc(env *e, device *d, size_t size)
{
    if (!size || cuda_device_enter(e, d) != SINTER_OK) return NULL;
    void *at = NULL;
    const CUresult r = d->driver.cuMemHostAlloc(&at, size, CU_MEMHOSTALLOC_PORTABLE);
    if (r == CUDA_ERROR_OUT_OF_MEMORY)
        (void)FAIL(e, NO_MEMORY, "no pinned host memory for %zu bytes (%.1f MiB)", size, mib(size));
    else if (r != CUDA_SUCCESS) (void)cuda_device_fail(e, d, r, "allocating pinned host memory");
    cuda_device_leave(d);
    return r == CUDA_SUCCESS ? at : NULL;
}

void cuda_host_free(env *e, device *d, void *ptr, size_t size)
{
    (void)e, (void)size;
    if (!ptr) return;
    const bool is_current = cuda_device_enter_any(d);
    (void)d->driver.cuMemFreeHost(ptr);
    if (is_current) cuda_device_leave(d);
}
