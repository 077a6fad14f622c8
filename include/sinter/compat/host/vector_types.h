/* SPDX-License-Identifier: Apache-2.0 */
/* vector_types.h - small vectors: all of cuda_runtime_api.h. */
#include "cuda_runtime_api.h"
