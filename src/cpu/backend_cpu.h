/* SPDX-License-Identifier: Apache-2.0 */
/* backend_cpu.h - the CPU's entry in backends/list.c. */
#ifndef CPU_BACKEND_CPU_H
#define CPU_BACKEND_CPU_H

#include "backend/backend.h"

extern const backend cpu_backend;

#endif
