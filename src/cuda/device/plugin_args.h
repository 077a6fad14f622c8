/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_args.h - parameters of a plugin's kernel: one word each, whatever its type is. */
#ifndef CUDA_PLUGIN_ARGS_H
#define CUDA_PLUGIN_ARGS_H

#include "device_args.h"

enum { PLUGIN_ARGS = 24 };
struct plugin_args { address at[PLUGIN_ARGS]; };

#endif
