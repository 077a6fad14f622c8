/* SPDX-License-Identifier: Apache-2.0 */
/* compare.h - is a result what was wanted? */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include "json_text.h"
#include "sinter/sinter.h"

typedef struct tolerance {
    double atol, rtol;
    double nrms;            /* of rms(got - want) over rms(want); negative: not asked for */
    bool   has_any_type;    /* the types may differ; values count */
} tolerance;

/* What the type alone permits: see `sinter test --help`. */
tolerance tolerance_of(sinter_dtype dtype);
/* Overrides by the members of a tolerance.json's entry. */
void tolerance_override(tolerance *t, json_value entry);

/* Text as bytes, which may be filled up to other widths. False: `why` says it. */
bool compare_text(const sinter_tensor *got, const sinter_tensor *want, char *why, size_t size);
/* Compares got[i * stride] to want[i]. `stride` 1: whole outputs, of equal shapes. False: `why` says what differs.
 * *worst: the largest difference, as a share of what is allowed. */
bool compare_tensors(const sinter_tensor *got, const sinter_tensor *want, int64_t stride, const tolerance *t, char *why,
                     size_t size, double *worst);
/* How many values of two tensors of one shape are further apart than is allowed. */
int64_t compare_mismatched(const sinter_tensor *got, const sinter_tensor *want, const tolerance *t);
/* The smallest s for which ceil(count / s) is `samples`; 0: none. */
int64_t compare_stride(int64_t count, int64_t samples);
int64_t compare_count(const sinter_tensor *t);

#endif
