/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferVersion.h - the version of TensorRT's interface that these headers have the shape of. */
#ifndef NV_INFER_VERSION_H
#define NV_INFER_VERSION_H

#define NV_TENSORRT_MAJOR 10
#define NV_TENSORRT_MINOR 13
#define NV_TENSORRT_PATCH 0
#define NV_TENSORRT_BUILD 0
#define NV_TENSORRT_VERSION ((NV_TENSORRT_MAJOR * 10000) + (NV_TENSORRT_MINOR * 100) + NV_TENSORRT_PATCH)

#endif
