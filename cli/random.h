/* SPDX-License-Identifier: Apache-2.0 */
/* random.h - inputs that a model is likely to take where nobody gave any. */
#ifndef CLI_RANDOM_H
#define CLI_RANDOM_H

#include "sinter/tensor.h"

/* Fills `tensor->data`: floats in [0, 1), integers from 0 to 9 (indices that most tables have), both bools. The same
 * seed gives the same data everywhere. */
void random_fill(const sinter_tensor *tensor, uint64_t seed);

#endif
