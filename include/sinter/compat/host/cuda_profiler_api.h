/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_profiler_api.h - cudaProfilerStart and cudaProfilerStop: all of cuda_runtime_api.h. */
#include "cuda_runtime_api.h"
