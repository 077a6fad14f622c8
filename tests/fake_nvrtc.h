/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvrtc.h - a compiler behind the driver's table that compiles nothing: its "machine code" is a digest of all that
 * it was given, so equal images mean equal compilations. Usable from several threads.
 *
 *     cuda_driver d = { 0 };
 *     fake_nvrtc_fill(&d, 13000);
 *
 * A define FAIL of 1 is an error with a log; of 2, machine code of no bytes; of 3, no memory. SPILL: bytes that it says
 * are spilled. */
#ifndef FAKE_NVRTC_H
#define FAKE_NVRTC_H

#include "cuda/cuda_driver.h"

void fake_nvrtc_fill(cuda_driver *d, int version);
long fake_nvrtc_compiled(void);     /* compilations since the program began */
long fake_nvrtc_live(void);         /* programs that were not destroyed */

#endif
