/* SPDX-License-Identifier: Apache-2.0 */
/* isas.h - the instruction sets that tests build for: names that SINTER_ISA takes, from the least to the most. */
#ifndef TESTS_ISAS_H
#define TESTS_ISAS_H

#if defined(__aarch64__)
#define TEST_ISAS "plain", "neon", "neon_dot"
#else
#define TEST_ISAS "plain", "avx2", "avx512"
#endif

#endif
