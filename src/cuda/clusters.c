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

static uint32_t count_of(device *d, CUfunction f, uint32_t blocks)
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
    return r == CUDA_SUCCESS && count > 0 ? (uint32_t)count : 0;
}

static bool load(device *d, CUlibrary *library, CUfunction *f)
{
    CUkernel k = NULL;
    const cuda_driver *x = &d->driver;
    return x->cuLibraryLoadData(library, probe, NULL, NULL, 0, NULL, NULL, 0) == CUDA_SUCCESS &&
           x->cuLibraryGetKernel(&k, *library, "probe") == CUDA_SUCCESS &&
           x->cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)d->target.shared, k,
                                   d->handle) == CUDA_SUCCESS &&
           x->cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, k, d->handle) ==
               CUDA_SUCCESS &&
           x->cuKernelGetFunction(f, k) == CUDA_SUCCESS;
}

void cuda_device_ask_clusters(device *d)
{
    CUlibrary library = NULL;
    CUfunction f = NULL;
    if (d->target.isa < 90) return;
    d->target.cluster = CLUSTER_PROMISED;
    if (load(d, &library, &f)) {
        for (uint32_t i = 0; i < CLUSTER_SIZES; i++) {
            const uint32_t blocks = 2u << i;
            d->clusters[i] = count_of(d, f, blocks);
            if (d->clusters[i] && blocks > d->target.cluster) d->target.cluster = blocks;
        }
    }
    if (library) (void)d->driver.cuLibraryUnload(library);
}
