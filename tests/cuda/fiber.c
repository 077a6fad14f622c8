/* SPDX-License-Identifier: Apache-2.0 */
/* fiber.c - the switch: what a called function must keep is pushed, the stacks change places, and it is popped. */
#include "fiber.h"

#include <stdint.h>

#if defined(__x86_64__)

void fiber_swap(void **from, void *to);
__asm__(".text\n"
        ".globl fiber_swap\n"
        ".hidden fiber_swap\n"
        ".type fiber_swap, @function\n"
        "fiber_swap:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size fiber_swap, . - fiber_swap\n");
enum { RETURN_AT = 6, FRAME = 8 }; /* the return address, then a word that keeps calls aligned */

#elif defined(__aarch64__)

void fiber_swap(void **from, void *to);
__asm__(".text\n"
        ".globl fiber_swap\n"
        ".hidden fiber_swap\n"
        ".type fiber_swap, %function\n"
        "fiber_swap:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size fiber_swap, . - fiber_swap\n");
enum { RETURN_AT = 11, FRAME = 20 };

#endif

#if defined(__x86_64__) || defined(__aarch64__)

void fiber_make(fiber_context *out, void *stack, size_t size, void (*body)(void))
{
    uintptr_t *top = (uintptr_t *)(((uintptr_t)stack + size) & ~(uintptr_t)15);
    uintptr_t *sp = top - FRAME;
    for (int i = 0; i < FRAME; i++) sp[i] = 0;
    sp[RETURN_AT] = (uintptr_t)body;
    out->sp = sp;
}

void fiber_switch(fiber_context *from, const fiber_context *to)
{
    fiber_swap(&from->sp, to->sp);
}

#else

#include <stdlib.h>
#include <ucontext.h>

/* The contexts outlive their fibers: their number is bounded by that of stacks. */
static ucontext_t *context_of(fiber_context *f)
{
    if (!f->sp) f->sp = calloc(1, sizeof(ucontext_t));
    if (!f->sp) abort();
    return f->sp;
}

void fiber_make(fiber_context *out, void *stack, size_t size, void (*body)(void))
{
    ucontext_t *c = context_of(out);
    (void)getcontext(c);
    c->uc_stack.ss_sp = stack;
    c->uc_stack.ss_size = size;
    c->uc_link = NULL;
    makecontext(c, body, 0);
}

void fiber_switch(fiber_context *from, const fiber_context *to)
{
    (void)swapcontext(context_of(from), to->sp);
}

#endif
