/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferRuntimeCommon.h - another name of NvInferRuntime.h. */
#include "NvInferRuntime.h"
