/* SPDX-License-Identifier: Apache-2.0 */
/* difference.h - how far one tensor is from another: figures, and whether they stay within what is asked. */
#ifndef CLI_DIFFERENCE_H
#define CLI_DIFFERENCE_H

#include "args.h"
#include "compare.h"
#include "print.h"

/* Errors of a kind: |got - want|, or that over |want|. Infinite where one of the two is not finite and they differ, and
 * of relative errors where 0 is wanted and something else came. */
typedef struct error_figures {
    double max, mean, median, quantile;
} error_figures;

/* Absolute errors by size: [0]: none; [1]: below 1e-12; [k]: below 10^(k - 13); the last: all that are larger. */
enum { DIFFERENCE_DECADES = 20 };

typedef struct difference {
    error_figures absolute, relative;
    int64_t count, mismatched, nans[2], infinities[2];
    double quantile;           /* which quantile error_figures.quantile is */
    double cosine, psnr, nrms; /* cosine similarity; dB; rms(got - want) over rms(want): of the pairs that are finite */
    double least[2], most[2], mean[2]; /* of the finite values of got and want */
    int64_t decade[DIFFERENCE_DECADES];
    bool is_good;
    char why[512]; /* "" where it is good */
} difference;

/* Compares an output by the rules of the command line: --atol, --rtol, --check-error-stat and their like. */
void difference_make(const args *a, const char *name, const sinter_tensor *got, const sinter_tensor *want,
                     difference *out);
void difference_json(json *j, const difference *d);
/* Bars of the absolute errors' sizes, as text. */
void difference_bars(const difference *d, FILE *to);
/* "< 1e-05" and the like. */
typedef struct decade_text {
    char at[16];
} decade_text;
decade_text difference_decade(uint32_t index);

/* The number that "[NAME:]NUMBER" of an option says for an output; one that names the output wins. False: none. */
bool difference_number(const arg_list *list, const char *name, double *out);

#endif
