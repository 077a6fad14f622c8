/* SPDX-License-Identifier: Apache-2.0 */
/* row_transfer.c - a dense value from the host to the device or back: the executor copies its bytes. Never chosen by
 * asking: the plan puts it where a step wants a value in the other place. */
#include "cuda/cuda_kernels.h"

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)p, (void)t;
    return "stands only between host and device";
}

static bool check(const problem *p, const tactic *t)
{
    return cuda_check_one(p, t) && p->op == OP_copy && p->count_in == 1 && p->count_out == 1 && !p->prologue &&
           !p->epilogue && !p->in[0].is_strided && !p->out[0].is_strided &&
           memcmp(p->in[0].order, p->out[0].order, p->in[0].rank) == 0;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t, (void)target;
    return 10e3 + cuda_operand_bytes(&p->in[0]) / 25.0; /* a synchronisation, and 25 GB/s over PCIe */
}

const cuda_kernel cuda_transfer = {
    .base = { .name = "cuda_transfer",
              .abi = 1,
              .where = KERNEL_TRANSFER,
              .reject = reject,
              .tactics = cuda_tactics_one,
              .check = check,
              .cost_ns = cost_ns },
};
