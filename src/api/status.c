/* SPDX-License-Identifier: Apache-2.0 */
/* status.c - include/sinter/status.h: the meaning of each status, from the same map as the enum. */
#include "sinter/status.h"

const char *sinter_status_text(sinter_status status)
{
    switch (status) {
#define SINTER_X(name, value, text)                                                                                    \
    case SINTER_##name: return text;
        SINTER_STATUS_MAP(SINTER_X)
#undef SINTER_X
    }
    return "not a status";
}
