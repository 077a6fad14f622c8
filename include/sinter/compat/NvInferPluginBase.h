/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferPluginBase.h - a name of upstream's, for programs that include it. */
#include "NvInfer.h"
