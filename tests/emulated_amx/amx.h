/* SPDX-License-Identifier: Apache-2.0 */
/* amx.h - matrix registers in C, for machines without: the instructions that the kernels use, as Intel's manual has
 * them, by the names of the compilers' intrinsics. A thread's registers are its own. What the CPU refuses aborts. */
#ifndef EMULATED_AMX_H
#define EMULATED_AMX_H

#include <immintrin.h>
#include <stdint.h>

void emulated_config(const void *shape);
void emulated_release(void);
void emulated_zero(int r);
void emulated_load(int r, const void *from, int64_t stride);
void emulated_store(int r, void *to, int64_t stride);
void emulated_dpbf16ps(int s, int a, int b);
void emulated_dpbusd(int s, int a, int b);

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#undef _tile_dpbusd
#define _tile_loadconfig(shape) emulated_config(shape)
#define _tile_release() emulated_release()
#define _tile_zero(r) emulated_zero(r)
#define _tile_loadd(r, from, stride) emulated_load(r, from, stride)
#define _tile_stored(r, to, stride) emulated_store(r, to, stride)
#define _tile_dpbf16ps(s, a, b) emulated_dpbf16ps(s, a, b)
#define _tile_dpbusd(s, a, b) emulated_dpbusd(s, a, b)

#endif
