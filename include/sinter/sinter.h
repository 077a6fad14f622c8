/* SPDX-License-Identifier: Apache-2.0 */
/* sinter.h - all public headers. */
#ifndef SINTER_SINTER_H
#define SINTER_SINTER_H

#include "build.h"
#include "calibrate.h"
#include "engine.h"
#include "file.h"
#include "info.h"
#include "network.h"
#include "option.h"
#include "plugin.h"
#include "quantize.h"
#include "refit.h"
#include "run.h"
#include "simplify.h"
#include "status.h"
#include "tensor.h"
#include "version.h"

#endif
