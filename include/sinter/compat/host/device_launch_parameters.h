/* SPDX-License-Identifier: Apache-2.0 */
/* device_launch_parameters.h - nothing that a CPU has: all of cuda_runtime_api.h. */
#include "cuda_runtime_api.h"
