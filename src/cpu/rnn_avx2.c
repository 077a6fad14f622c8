/* SPDX-License-Identifier: Apache-2.0 */
/* rnn_avx2.c - the cells of recurrent layers for this instruction set: the text is in cpu_rnn.inc.h. */
#include <math.h>
#include <stdbool.h>

#include "cpu/simd_avx2.h"
#include "cpu/cpu_rnn.inc.h"
