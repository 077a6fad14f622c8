/* SPDX-License-Identifier: Apache-2.0 */
/* fiber.h - a stack that a function runs on until it gives way, at the cost of a function call: by hand on x86-64 and
 * AArch64, elsewhere by ucontext, which enters the kernel at each switch. */
#ifndef CUDA_FIBER_H
#define CUDA_FIBER_H

#include <stddef.h>

typedef struct fiber_context { void *sp; } fiber_context;

/* `body` is called at the first switch to *out and must never return. The stack grows down from stack + size. */
void fiber_make(fiber_context *out, void *stack, size_t size, void (*body)(void));
/* Runs `to` until somebody switches back to `from`. */
void fiber_switch(fiber_context *from, const fiber_context *to);

#endif
