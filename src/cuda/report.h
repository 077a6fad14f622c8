/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - the CUDA backend's part of doctor. */
#ifndef CUDA_REPORT_H
#define CUDA_REPORT_H

#include "backend/backend.h"

/* backend.report: driver, devices, NVRTC, NVML, the folder of kernels, and what to do. Makes no context. */
void cuda_report(backend_line_fn line, void *user);

#endif
