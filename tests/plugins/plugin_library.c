/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_library.c - the plugins of plugin_set.c as a shared library. */
#include "plugin_set.h"

SINTER_API sinter_status sinter_plugin_entry(const sinter_plugin_host *host);

sinter_status sinter_plugin_entry(const sinter_plugin_host *host)
{
    sinter_status s = SINTER_OK;
    for (uint32_t i = 0; i < PLUGIN_SET_COUNT && !s; i++) s = host->add(host->plugins, &plugin_set[i], host->error);
    return s;
}
