/* SPDX-License-Identifier: Apache-2.0 */
/* copy.h - a launch of copy.cu, for rows that begin with a copy. */
#ifndef CUDA_COPY_H
#define CUDA_COPY_H

#include "cuda/launch.h"

void          copy_code(cuda_code *c);
/* Copies input `index` to result 0: src and dst are of one shape and of `type`. */
sinter_status copy_launch(env *e, cuda_record *r, uint32_t code, uint32_t index, sinter_dtype type, const view *src,
                          const view *dst);

#endif
