/* SPDX-License-Identifier: Apache-2.0 */
/* random.h - inputs that a model is likely to take where nobody gave any. */
#ifndef CLI_RANDOM_H
#define CLI_RANDOM_H

#include "sinter/tensor.h"

/* Fills `tensor->data`: floats in [0, 1), both bools, integers of the range [min, max] that are not negative where it
 * has such. INT64_MIN, INT64_MAX: nothing is known, and integers are 0 to 9. The same seed gives the same data
 * everywhere. */
void random_fill(const sinter_tensor *tensor, uint64_t seed, int64_t min, int64_t max);

#endif
