/* SPDX-License-Identifier: Apache-2.0 */
/* combine.h - what a scatter does to elements that are there already: sums, products, the smaller or the larger. */
#ifndef CPU_COMBINE_H
#define CPU_COMBINE_H

#include "core/dtype.h"

#include <stdint.h>

/* Each of n elements of `to` with one of `from`, in order; steps are bytes. The two do not overlap. */
typedef void combine_fn(char *to, int64_t to_step, const char *from, int64_t step, int64_t n);

/* kind: scatter_kind. NULL: it sets elements, or there is no loop for the type. */
combine_fn *combine_of(sinter_dtype type, int64_t kind);

#endif
