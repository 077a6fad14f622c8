/* SPDX-License-Identifier: Apache-2.0 */
/* values.h - which numbers an operand may hold: bounds of tables that it indexes, of lengths and sizes that it is, and
 * of whatever reads the results. For whoever makes up data; runs check each index by itself. */
#ifndef OPS_VALUES_H
#define OPS_VALUES_H

#include "ops/ops.h"

/* Of all elements of a value. Infinite where nothing bounds them. */
typedef struct value_range { double min, max; } value_range;

typedef struct values_call {
    const dim_table   *dims;
    op_id              op;              /* no op with regions */
    const void        *attrs;           /* DIMS hold dim ids */
    uint32_t           count_in, count_out;
    const infer_value *in, *out;
    const value_range *result;          /* [count_out]: what the readers of the results permit */
    value_range       *operand;         /* [count_in]: is narrowed, so that results stay in their ranges */
} values_call;

/* Narrows the operands' ranges. Bounds are safe for all sizes in range. What an op does that is not known here leaves
 * its operands alone. */
void op_values(values_call *c);

#endif
