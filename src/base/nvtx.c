/* SPDX-License-Identifier: Apache-2.0 */
/* nvtx.c - finds NVTX at run time, so that nothing depends on it. */
#include "base/nvtx.h"

#include "base/os.h"
#include <string.h>

/* dlsym's object pointer as a function pointer, without a cast that ISO C does not have. */
static bool function_find(void *library, const char *name, void *slot)
{
    void *found = os_library_symbol(library, name);
    memcpy(slot, &found, sizeof found);
    return found != NULL;
}

sinter_status nvtx_open(env *e, nvtx *out)
{
    const char *wanted = os_env("SINTER_LIBNVTX");
    char why[256] = "it lacks nvtxRangePushA or nvtxRangePop";
    *out = (nvtx){ 0 };
    const bool is_wanted = wanted && *wanted;
    if (!is_wanted && (wanted || !os_env("NVTX_INJECTION64_PATH"))) return SINTER_OK;
    out->library = os_library_open(is_wanted ? wanted : "libnvToolsExt.so.1", why, sizeof why);
    if (out->library && function_find(out->library, "nvtxRangePushA", &out->push) &&
        function_find(out->library, "nvtxRangePop", &out->pop))
        return SINTER_OK;
    nvtx_close(out);
    return is_wanted ? FAIL(e, UNSUPPORTED, "SINTER_LIBNVTX: cannot use '%s': %s", wanted, why) : SINTER_OK;
}

void nvtx_close(nvtx *r)
{
    if (r->library) os_library_close(r->library);
    *r = (nvtx){ 0 };
}
