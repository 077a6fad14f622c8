/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_registry.c - the plugins of plugin_set.c in a registry. */
#include "plugin_set.h"

#include <stdio.h>
#include <stdlib.h>

sinter_plugins *plugin_set_new(void)
{
    sinter_plugins *r = NULL;
    sinter_error error = { 0 };
    sinter_status s = sinter_plugins_create(NULL, &r, &error);
    for (uint32_t i = 0; i < PLUGIN_SET_COUNT && !s; i++) s = sinter_plugins_add(r, &plugin_set[i], &error);
    if (!s) return r;
    (void)fprintf(stderr, "%s\n", error.text);
    exit(2);
}

static sinter_plugins *shared;

static void drop(void)
{
    sinter_plugins_destroy(shared);
}

const sinter_plugins *plugin_set_shared(void)
{
    if (!shared) {
        shared = plugin_set_new();
        (void)atexit(drop);
    }
    return shared;
}
