/* SPDX-License-Identifier: Apache-2.0 */
/* dft.h - Fourier transforms of some lines at once: the steps that an instruction set's level does.
 *
 * Element k of all lines lies together: `lanes` real parts at re[k * lanes], imaginary parts beside them in im. A
 * transform of n elements is one step for each factor of n (Stockham's order: no element is put elsewhere before or
 * after). C. Van Loan, Computational Frameworks for the Fast Fourier Transform, 1992, 1.7. */
#ifndef CPU_DFT_H
#define CPU_DFT_H

#include <stdint.h>

typedef struct dft_lines {
    float *re, *im;
} dft_lines;

/* The step of one factor. Before it `run` is the product of the factors that are done, times the lanes, and there are
 * radix * groups such runs. root: cos and -sin of 2 pi k / roots for each k below `roots`; result k of group p is
 * turned by root p * k * turn. */
typedef struct dft_step {
    int64_t radix, groups, run, turn, roots;
    const float *root;
    dft_lines x, y; /* apart from each other */
} dft_step;

typedef struct dft_set {
    void (*step)(const dft_step *s);
    /* z: the transform of half elements x[2j] + i x[2j + 1]. y: elements 0 to `half` of the transform of x. root: as in
     * dft_step, 2 * half of them. */
    void (*to_real)(dft_lines y, dft_lines z, int64_t half, int64_t lanes, const float *root);
    /* The other way: from elements 0 to `half` of a spectrum, whose first and last are real, to what transforms back to
     * x[2j] + i x[2j + 1]. */
    void (*from_real)(dft_lines z, dft_lines y, int64_t half, int64_t lanes, const float *root);
} dft_set;

#endif
