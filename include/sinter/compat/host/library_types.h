/* SPDX-License-Identifier: Apache-2.0 */
/* library_types.h - cudaDataType_t: all of cuda_runtime_api.h. */
#include "cuda_runtime_api.h"
