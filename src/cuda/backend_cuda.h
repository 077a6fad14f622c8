/* SPDX-License-Identifier: Apache-2.0 */
/* backend_cuda.h - NVIDIA GPUs as a backend. */
#ifndef CUDA_BACKEND_CUDA_H
#define CUDA_BACKEND_CUDA_H

#include "backend/backend.h"

extern const backend cuda_backend;

#endif
