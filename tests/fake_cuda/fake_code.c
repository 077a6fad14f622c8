/* SPDX-License-Identifier: Apache-2.0 */
/* fake_code.c - libraries, kernels, launches, tensor maps. */
#include "fake_state.h"

#include <stdlib.h>
#include <string.h>

typedef struct library {
    fake_object o;
    const fake_image *image;
    fake_kernel *kernel;
} library;

static struct {
    fake_launch_fn launch;
    void *user;
    long launches;
    unsigned clusters; /* the most blocks of one */
} code = { .clusters = 16 };

void fake_set_clusters(unsigned most)
{
    code.clusters = most;
}

void fake_set_launch(fake_launch_fn launch, void *user)
{
    code.launch = launch;
    code.user = user;
}

long fake_launches(void)
{
    return __atomic_load_n(&code.launches, __ATOMIC_RELAXED);
}

void fake_code_reset(void)
{
    code.launch = NULL;
    code.launches = 0;
    code.clusters = 16;
    fake_set_compile(NULL);
}

CUresult fake_cuLibraryLoadData(CUlibrary *out, const void *image, CUjit_option *jit, void **jit_values,
                                unsigned jit_count, CUlibraryOption *options, void **values, unsigned count);
CUresult fake_cuLibraryUnload(CUlibrary l);
CUresult fake_cuLibraryGetKernel(CUkernel *out, CUlibrary l, const char *name);
CUresult fake_cuKernelGetFunction(CUfunction *out, CUkernel k);
CUresult fake_cuKernelSetAttribute(CUfunction_attribute which, int value, CUkernel k, CUdevice d);
CUresult fake_cuKernelGetAttribute(int *value, CUfunction_attribute which, CUkernel k, CUdevice d);
CUresult fake_cuFuncSetAttribute(CUfunction f, CUfunction_attribute which, int value);
CUresult fake_cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction f);
CUresult fake_cuOccupancyMaxActiveClusters(int *count, CUfunction f, const CUlaunchConfig *config);
CUresult fake_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, CUfunction f, int block, size_t shared);
CUresult fake_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra);
CUresult fake_cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, uint32_t rank, void *at,
                                     const uint64_t *dim, const uint64_t *stride, const uint32_t *box,
                                     const uint32_t *step, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                     CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill);
CUresult fake_cuTensorMapEncodeIm2col(CUtensorMap *map, CUtensorMapDataType type, uint32_t rank, void *at,
                                      const uint64_t *dim, const uint64_t *stride, const int *low, const int *high,
                                      uint32_t channels, uint32_t pixels, const uint32_t *step,
                                      CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                      CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill);

/* ---- libraries ---- */

CUresult fake_cuLibraryLoadData(CUlibrary *out, const void *image, CUjit_option *jit, void **jit_values,
                                unsigned jit_count, CUlibraryOption *options, void **values, unsigned count)
{
    CALL("cuLibraryLoadData");
    (void)jit, (void)jit_values, (void)values;
    const fake_image *i = image;
    if (jit_count || count > 1 || (count && options[0] != CU_LIBRARY_BINARY_IS_PRESERVED))
        return fake_wrong(CUDA_ERROR_INVALID_VALUE, "options of a library that are unknown here");
    static const fake_image text = { .magic = FAKE_IMAGE_MAGIC, .size = sizeof text, .param_count = -1 };
    if (i && !memcmp(i, ".version", 8)) i = &text; /* PTX: a kernel of any name, which is never launched */
    if (!i || i->magic != FAKE_IMAGE_MAGIC) return CUDA_ERROR_INVALID_IMAGE;
    library *l = fake_make(FAKE_LIBRARY, sizeof *l);
    l->image = i;
    *out = (CUlibrary)(void *)l;
    return CUDA_SUCCESS;
}

CUresult fake_cuLibraryUnload(CUlibrary handle)
{
    const CUresult injected = fake_enter("cuLibraryUnload");
    library *l = (library *)(void *)handle;
    if (!fake_is(l, FAKE_LIBRARY)) return fake_wrong(CUDA_ERROR_INVALID_HANDLE, "what is no library is unloaded");
    if (l->kernel) fake_drop(l->kernel);
    fake_drop(l);
    return injected;
}

CUresult fake_cuLibraryGetKernel(CUkernel *out, CUlibrary handle, const char *name)
{
    CALL("cuLibraryGetKernel");
    library *l = (library *)(void *)handle;
    if (!fake_is(l, FAKE_LIBRARY)) return fake_wrong(CUDA_ERROR_INVALID_HANDLE, "a kernel of what is no library");
    if (l->image->entry[0] && strcmp(l->image->entry, name) != 0) return CUDA_ERROR_NOT_FOUND;
    if (!l->kernel) {
        l->kernel = fake_make(FAKE_KERNEL, sizeof *l->kernel);
        l->kernel->image = l->image;
        l->kernel->shared_max = 48 << 10;
        strncpy(l->kernel->entry, name, sizeof l->kernel->entry - 1);
    }
    *out = (CUkernel)(void *)l->kernel;
    return CUDA_SUCCESS;
}

CUresult fake_cuKernelGetFunction(CUfunction *out, CUkernel k)
{
    CALL("cuKernelGetFunction");
    if (!fake_is(k, FAKE_KERNEL) || fake_current() < 0)
        return fake_wrong(CUDA_ERROR_INVALID_HANDLE, "a function of what is no kernel, or without a context");
    /* Code runs on the chip that it was made for. */
    const uint32_t sm = ((fake_kernel *)(void *)k)->image->sm;
    if (sm && (int)sm != fake_sm()) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    *out = (CUfunction)(void *)k;
    return CUDA_SUCCESS;
}

static CUresult set_attribute(fake_kernel *k, CUfunction_attribute which, int value)
{
    if (!fake_is(k, FAKE_KERNEL)) return fake_wrong(CUDA_ERROR_INVALID_HANDLE, "an attribute of what is no kernel");
    if (which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        if (value > (fake_sm() >= 90 ? 232448 : 166912))
            return fake_wrong(CUDA_ERROR_INVALID_VALUE, "%d bytes of shared memory", value);
        __atomic_store_n(&k->shared_max, value, __ATOMIC_RELAXED);
    }
    if (which == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED)
        __atomic_store_n(&k->wide_clusters, value != 0, __ATOMIC_RELAXED);
    return CUDA_SUCCESS;
}

static CUresult get_attribute(const fake_kernel *k, CUfunction_attribute which, int *value)
{
    if (!fake_is(k, FAKE_KERNEL)) return fake_wrong(CUDA_ERROR_INVALID_HANDLE, "an attribute of what is no kernel");
    *value = which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? k->shared_max
             : which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK       ? 1024
             : which == CU_FUNC_ATTRIBUTE_NUM_REGS                    ? 64
                                                                      : 0;
    return CUDA_SUCCESS;
}

CUresult fake_cuKernelSetAttribute(CUfunction_attribute which, int value, CUkernel k, CUdevice d)
{
    CALL("cuKernelSetAttribute");
    if (!fake_is_device(d)) return fake_wrong(CUDA_ERROR_INVALID_DEVICE, "an attribute on device %d", d);
    return set_attribute((fake_kernel *)(void *)k, which, value);
}

CUresult fake_cuKernelGetAttribute(int *value, CUfunction_attribute which, CUkernel k, CUdevice d)
{
    CALL("cuKernelGetAttribute");
    if (!fake_is_device(d)) return fake_wrong(CUDA_ERROR_INVALID_DEVICE, "an attribute on device %d", d);
    return get_attribute((const fake_kernel *)(void *)k, which, value);
}

CUresult fake_cuFuncSetAttribute(CUfunction f, CUfunction_attribute which, int value)
{
    CALL("cuFuncSetAttribute");
    return set_attribute((fake_kernel *)(void *)f, which, value);
}

CUresult fake_cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction f)
{
    CALL("cuFuncGetAttribute");
    return get_attribute((const fake_kernel *)(void *)f, which, value);
}

CUresult fake_cuOccupancyMaxActiveClusters(int *count, CUfunction f, const CUlaunchConfig *config)
{
    CALL("cuOccupancyMaxActiveClusters");
    const unsigned blocks = config && config->numAttrs ? config->attrs[0].value.clusterDim.x : 1;
    *count = blocks <= code.clusters ? (int)(132 / blocks) : 0;
    return fake_is(f, FAKE_KERNEL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult fake_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, CUfunction f, int block, size_t shared)
{
    CALL("cuOccupancyMaxActiveBlocksPerMultiprocessor");
    (void)block, (void)shared;
    *count = 2;
    return fake_is(f, FAKE_KERNEL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* ---- launches ---- */

CUresult fake_check_work(const fake_work *w)
{
    const fake_kernel *k = w->kernel;
    if (!fake_is(k, FAKE_KERNEL)) return fake_wrong(CUDA_ERROR_INVALID_HANDLE, "what is no function is launched");
    if (!w->grid[0] || !w->grid[1] || !w->grid[2] || w->grid[0] > INT32_MAX || w->grid[1] > 65535 || w->grid[2] > 65535)
        return fake_wrong(CUDA_ERROR_INVALID_VALUE, "'%s': a grid of %u x %u x %u", k->entry, w->grid[0], w->grid[1],
                          w->grid[2]);
    const uint64_t threads = (uint64_t)w->block[0] * w->block[1] * w->block[2];
    if (!threads || threads > 1024)
        return fake_wrong(CUDA_ERROR_INVALID_VALUE, "'%s': %llu threads a block", k->entry,
                          (unsigned long long)threads);
    const int shared_max = __atomic_load_n(&k->shared_max, __ATOMIC_RELAXED);
    if ((int)w->shared > shared_max)
        return fake_wrong(CUDA_ERROR_INVALID_VALUE, "'%s': %u bytes of shared memory, %d are allowed", k->entry,
                          w->shared, shared_max);
    if (w->cluster > 1 && (fake_sm() < 90 || w->grid[0] % w->cluster ||
                           w->cluster > (__atomic_load_n(&k->wide_clusters, __ATOMIC_RELAXED) ? 16u : 8u)))
        return fake_wrong(CUDA_ERROR_INVALID_CLUSTER_SIZE, "'%s': clusters of %u in a grid of %u", k->entry, w->cluster,
                          w->grid[0]);
    if (w->is_programmatic && fake_sm() < 90)
        return fake_wrong(CUDA_ERROR_INVALID_VALUE, "'%s': a programmatic launch on sm_%d", k->entry, fake_sm());
    return CUDA_SUCCESS;
}

uint8_t *fake_copy_params(const fake_image *i, void **from, void **param)
{
    size_t size = 0, at = 0;
    for (int k = 0; k < i->param_count; k++) size += (i->param[k] + 127) / 128 * 128;
    if (!size) {
        if (i->param_count < 0) param[0] = from[0]; /* how many follow is not known */
        return NULL;
    }
    uint8_t *all = aligned_alloc(128, size);
    if (!all) abort();
    for (int k = 0; k < i->param_count; k++) {
        param[k] = memcpy(all + at, from[k], i->param[k]);
        at += (i->param[k] + 127) / 128 * 128;
    }
    return all;
}

CUresult fake_run(const fake_work *w, void **param, bool in_graph, CUstream stream)
{
    const fake_launch l = { .image = w->kernel->image,
                            .entry = w->kernel->entry,
                            .grid = { w->grid[0], w->grid[1], w->grid[2] },
                            .block = w->block[0] * w->block[1] * w->block[2],
                            .cluster = w->cluster,
                            .shared = w->shared,
                            .param = param,
                            .in_graph = in_graph,
                            .is_programmatic = w->is_programmatic,
                            .stream = stream };
    __atomic_add_fetch(&code.launches, 1, __ATOMIC_RELAXED);
    fake_clock_add(1000);
    return code.launch ? code.launch(code.user, &l) : CUDA_SUCCESS;
}

CUresult fake_cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
    CALL("cuLaunchKernelEx");
    fake_work w = { .kernel = (fake_kernel *)(void *)f,
                    .grid = { c->gridDimX, c->gridDimY, c->gridDimZ },
                    .block = { c->blockDimX, c->blockDimY, c->blockDimZ },
                    .cluster = 1,
                    .shared = c->sharedMemBytes };
    for (unsigned i = 0; i < c->numAttrs; i++) {
        if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) w.cluster = c->attrs[i].value.clusterDim.x;
        else if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            w.is_programmatic = c->attrs[i].value.programmaticStreamSerializationAllowed != 0;
        else return fake_wrong(CUDA_ERROR_INVALID_VALUE, "attribute %d of a launch", (int)c->attrs[i].id);
    }
    if (extra || fake_current() < 0) return fake_wrong(CUDA_ERROR_INVALID_CONTEXT, "a launch without a context");
    const CUresult r = fake_check_work(&w);
    return r == CUDA_SUCCESS ? fake_run(&w, params, false, c->hStream) : r;
}

/* ---- tensor maps ---- */

static const uint8_t type_bytes[] = { 1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4 };

static CUresult encode(CUtensorMap *out, CUtensorMapDataType type, uint32_t rank, void *at, const uint64_t *dim,
                       const uint64_t *stride, const uint32_t *step, CUtensorMapSwizzle swizzle, fake_map *m)
{
    static const uint32_t span[] = { 256, 32, 64, 128 };
    if (fake_sm() < 90) return fake_wrong(CUDA_ERROR_NOT_SUPPORTED, "a tensor map on sm_%d", fake_sm());
    if (!rank || rank > 5 || (unsigned)type >= sizeof type_bytes || (unsigned)swizzle > 3)
        return fake_wrong(CUDA_ERROR_INVALID_VALUE, "a tensor map of rank %u, type %d", rank, (int)type);
    const uint32_t bytes = type_bytes[type];
    m->magic = FAKE_MAP_MAGIC;
    m->type = (uint8_t)type;
    m->rank = (uint8_t)rank;
    m->swizzle = (uint8_t)swizzle;
    m->at = (uint64_t)(uintptr_t)at;
    m->stride[0] = bytes;
    if (!at || (uintptr_t)at % 16) return fake_wrong(CUDA_ERROR_INVALID_VALUE, "a tensor map over %p", at);
    for (uint32_t i = 0; i < rank; i++) {
        if (!dim[i] || dim[i] > UINT32_MAX || !step[i] || step[i] > 8)
            return fake_wrong(CUDA_ERROR_INVALID_VALUE, "a tensor map with dim %u of %llu, step %u", i,
                              (unsigned long long)dim[i], step[i]);
        m->dim[i] = (uint32_t)dim[i];
        m->step[i] = (uint16_t)step[i];
        if (!i) continue;
        if (stride[i - 1] % 16 || !stride[i - 1] || stride[i - 1] >= 1ull << 40)
            return fake_wrong(CUDA_ERROR_INVALID_VALUE, "a tensor map with a stride of %llu bytes",
                              (unsigned long long)stride[i - 1]);
        m->stride[i] = stride[i - 1];
    }
    const uint32_t inner = m->is_im2col ? m->channels * bytes : m->box[0] * bytes;
    if (inner % 16 || (swizzle && inner > span[swizzle]))
        return fake_wrong(CUDA_ERROR_INVALID_VALUE, "a tensor map with a box of %u bytes and swizzle %d", inner,
                          (int)swizzle);
    memset(out, 0, sizeof *out);
    memcpy(out, m, sizeof *m);
    return CUDA_SUCCESS;
}

CUresult fake_cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, uint32_t rank, void *at,
                                     const uint64_t *dim, const uint64_t *stride, const uint32_t *box,
                                     const uint32_t *step, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                     CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    CALL("cuTensorMapEncodeTiled");
    (void)interleave, (void)promotion, (void)fill;
    fake_map m = { 0 };
    for (uint32_t i = 0; i < rank && i < 5; i++) {
        if (!box[i] || box[i] > 256) return fake_wrong(CUDA_ERROR_INVALID_VALUE, "a tensor map's box of %u", box[i]);
        m.box[i] = (uint16_t)box[i];
    }
    return encode(map, type, rank, at, dim, stride, step, swizzle, &m);
}

CUresult fake_cuTensorMapEncodeIm2col(CUtensorMap *map, CUtensorMapDataType type, uint32_t rank, void *at,
                                      const uint64_t *dim, const uint64_t *stride, const int *low, const int *high,
                                      uint32_t channels, uint32_t pixels, const uint32_t *step,
                                      CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                      CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    CALL("cuTensorMapEncodeIm2col");
    (void)interleave, (void)promotion, (void)fill;
    fake_map m = { .is_im2col = 1, .pixels = (uint16_t)pixels, .channels = (uint16_t)channels };
    if (rank < 3 || rank > 5 || !channels || channels > 256 || !pixels || pixels > 1024)
        return fake_wrong(CUDA_ERROR_INVALID_VALUE, "a tensor map of rank %u, %u channels, %u pixels", rank, channels,
                          pixels);
    const int corner = 1 << (rank == 3 ? 15 : rank == 4 ? 7 : 4);
    for (uint32_t i = 0; i + 2 < rank; i++) {
        if (low[i] < -corner || low[i] >= corner || high[i] < -corner || high[i] >= corner)
            return fake_wrong(CUDA_ERROR_INVALID_VALUE, "a tensor map of rank %u with corners at %d and %d", rank,
                              low[i], high[i]);
        m.low[i] = (int16_t)low[i];
        m.high[i] = (int16_t)high[i];
    }
    return encode(map, type, rank, at, dim, stride, step, swizzle, &m);
}
