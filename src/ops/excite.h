/* SPDX-License-Identifier: Apache-2.0 */
/* excite.h - the program between the two products of excite. */
#ifndef OPS_EXCITE_H
#define OPS_EXCITE_H

#include "ops/expr.h"

enum { EXCITE_OPERANDS = 3 };           /* inputs before those of the program: image, weight, weight */

/* NULL, or what is wrong with it. *out: the program, in `a`; NULL: there is none. */
const char *excite_parse(arena *a, const void *attrs, uint32_t count_in, const expr **out);

#endif
