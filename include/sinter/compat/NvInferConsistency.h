/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferConsistency.h - a name of upstream's, for programs that include it. */
#include "NvInferSafeRuntime.h"
