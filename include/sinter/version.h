/* SPDX-License-Identifier: Apache-2.0 */
/* version.h - the version of these headers, and of the library that was linked. */
#ifndef SINTER_VERSION_H
#define SINTER_VERSION_H

#include "status.h"

#define SINTER_VERSION_MAJOR 0
#define SINTER_VERSION_MINOR 1
#define SINTER_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0" of the library. Static. */
SINTER_API const char *sinter_version(void);

#ifdef __cplusplus
}
#endif
#endif
