/* SPDX-License-Identifier: Apache-2.0 */
/* probe.h - how fast this machine multiplies and reads: loops that do nothing else, timed for a moment on the pool
 * (probe.c). */
#ifndef CPU_PROBE_H
#define CPU_PROBE_H

#include <stddef.h>
#include <stdint.h>

/* The loops of a level. Results are of no use: they keep the compiler from leaving the work out. */
typedef struct probe_set {
    float (*multiply)(uint64_t turns);                  /* multiply-adds in registers alone: turns * width */
    float (*read)(const float *at, size_t count);       /* a multiple of `unit` */
    uint32_t width, unit;
} probe_set;
#endif
