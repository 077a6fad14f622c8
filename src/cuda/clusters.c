/* SPDX-License-Identifier: Apache-2.0 */
/* clusters.c - how many clusters of blocks a GPU holds at once.
 *
 * The blocks of a cluster run in one group of multiprocessors (a GPC). Chips of one name differ in how many
 * multiprocessors each group has left, so clusters of 16 blocks may find no room at all. The driver knows: it is asked
 * about an empty kernel whose blocks fill a multiprocessor each. That kernel is PTX, which the driver compiles, so no
 * NVRTC is needed. Where the driver cannot say, clusters of 8 are taken for possible: CUDA promises them. */
#include "cuda/cuda_device.h"

static const char probe[] = ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry probe()\n{\n    ret;\n}\n";

enum { CLUSTER_PROMISED = 8, THREADS = 128 };

/* A driver that cannot say is no failure. One that has no memory, or whose context is dead, is. */
static sinter_status failed(env *e, device *d, CUresult r)
{
    sinter_error quiet = { 0 }, *const error = e->error;
    e->error = &quiet;
    const sinter_status s = cuda_fail(e, &d->driver, r, "asking for the room of clusters");
    e->error = error;
    if (s != SINTER_NO_MEMORY && s != SINTER_DEVICE) return SINTER_OK;
    return cuda_device_fail(e, d, r, "asking for the room of clusters");
}

static CUresult count_of(device *d, CUfunction f, uint32_t blocks, uint32_t *out)
{
    int count = 0;
    CUlaunchAttribute cluster = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION };
    cluster.value.clusterDim.x = blocks;
    cluster.value.clusterDim.y = cluster.value.clusterDim.z = 1;
    const CUlaunchConfig config = { .gridDimX = blocks * d->target.units,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = THREADS,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .sharedMemBytes = d->target.shared,
                                    .attrs = &cluster,
                                    .numAttrs = 1 };
    const CUresult r = d->driver.cuOccupancyMaxActiveClusters(&count, f, &config);
    *out = r == CUDA_SUCCESS && count > 0 ? (uint32_t)count : 0;
    return r;
}

static CUresult load(device *d, CUlibrary *library, CUfunction *f)
{
    CUkernel k = NULL;
    const cuda_driver *x = &d->driver;
    CUresult r = x->cuLibraryLoadData(library, probe, NULL, NULL, 0, NULL, NULL, 0);
    if (r == CUDA_SUCCESS) r = x->cuLibraryGetKernel(&k, *library, "probe");
    if (r == CUDA_SUCCESS)
        r = x->cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)d->target.shared, k,
                                    d->handle);
    if (r == CUDA_SUCCESS)
        r = x->cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, k, d->handle);
    return r == CUDA_SUCCESS ? x->cuKernelGetFunction(f, k) : r;
}

sinter_status cuda_device_ask_clusters(env *e, device *d)
{
    CUlibrary library = NULL;
    CUfunction f = NULL;
    if (d->target.isa < 90) return SINTER_OK;
    d->target.cluster = CLUSTER_PROMISED;
    CUresult r = load(d, &library, &f);
    for (uint32_t i = 0; i < CLUSTER_SIZES && r == CUDA_SUCCESS; i++) {
        const uint32_t blocks = 2u << i;
        r = count_of(d, f, blocks, &d->clusters[i]);
        if (d->clusters[i] && blocks > d->target.cluster) d->target.cluster = blocks;
    }
    if (library) (void)d->driver.cuLibraryUnload(library);
    return r == CUDA_SUCCESS ? SINTER_OK : failed(e, d, r);
}
