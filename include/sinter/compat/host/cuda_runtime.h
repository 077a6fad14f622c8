/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_runtime.h - the same as cuda_runtime_api.h here: the host has no kernels to launch. */
#include "cuda_runtime_api.h"
