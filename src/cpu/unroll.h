/* SPDX-License-Identifier: Apache-2.0 */
/* unroll.h - the loops of constant counts that the compiler is to write out. */
#ifndef CPU_UNROLL_H
#define CPU_UNROLL_H

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#endif
