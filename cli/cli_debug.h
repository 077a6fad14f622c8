/* SPDX-License-Identifier: Apache-2.0 */
/* cli_debug.h - what `sinter debug` does: each with the model as the only file of its arguments. */
#ifndef CLI_DEBUG_H
#define CLI_DEBUG_H

#include "args.h"

int debug_precision(const args *a);
int debug_reduce(const args *a);

#endif
