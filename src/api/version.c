/* SPDX-License-Identifier: Apache-2.0 */
/* version.c - include/sinter/version.h: the version of the library that was linked, from the same numbers as the
 * headers. */
#include "sinter/version.h"

#define VERSION_TEXT(x) #x
#define VERSION_JOIN(a, b, c) VERSION_TEXT(a) "." VERSION_TEXT(b) "." VERSION_TEXT(c)

const char *sinter_version(void)
{
    return VERSION_JOIN(SINTER_VERSION_MAJOR, SINTER_VERSION_MINOR, SINTER_VERSION_PATCH);
}
