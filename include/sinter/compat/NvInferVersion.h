/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferVersion.h - the version of TensorRT's interface that these headers have the shape of. */
#ifndef NV_INFER_VERSION_H
#define NV_INFER_VERSION_H

/* A program for an older version is compiled with -DNV_TENSORRT_MAJOR=8 (or 7): then createNetworkV2(0) makes a network
 * with an implicit batch, as it did. */
#ifndef NV_TENSORRT_MAJOR
#define NV_TENSORRT_MAJOR 10
#endif
#if NV_TENSORRT_MAJOR >= 10
#define NV_TENSORRT_MINOR 13
#elif NV_TENSORRT_MAJOR >= 8
#define NV_TENSORRT_MINOR 6
#else
#define NV_TENSORRT_MINOR 2
#endif
#define NV_TENSORRT_PATCH 0
#define NV_TENSORRT_BUILD 0
#define NV_TENSORRT_VERSION_INT(major, minor, patch) ((major) * 10000L + (minor) * 100L + (patch) * 1L)
#define NV_TENSORRT_VERSION ((NV_TENSORRT_MAJOR * 10000) + (NV_TENSORRT_MINOR * 100) + NV_TENSORRT_PATCH)

#endif
