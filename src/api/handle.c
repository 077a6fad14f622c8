/* SPDX-License-Identifier: Apache-2.0 */
/* handle.c - see handle.h. */
#include "api/handle.h"

#include "engine/format.h"
#include "onnx/export.h"
#include "tune/tune.h"

#include <string.h>

const os_file_kind api_file_kind[API_FILE_KINDS] = {
    [SINTER_FILE_ENGINE] = { "an engine", ENGINE_MAGIC, sizeof ENGINE_MAGIC - 1 },
    [SINTER_FILE_NPY] = { "a .npy file", "\x93NUMPY", 6 },
    [SINTER_FILE_TIMINGS] = { "a timing cache", TIMING_CACHE_MAGIC, sizeof TIMING_CACHE_MAGIC - 1 },
    [SINTER_FILE_MODEL] = ONNX_FILE_KIND,
    [SINTER_FILE_CALIBRATION] = { "a calibration cache", "TRT-", 4 },
};

sinter_status api_options(env *e, void *out, size_t out_size, const void *options)
{
    if (!options) return SINTER_OK;
    size_t size;
    memcpy(&size, options, sizeof size);
    if (size < sizeof size)
        return FAIL(e, INVALID_ARG, "struct_size is %zu: initialise options with their macro", size);
    memcpy(out, options, size < out_size ? size : out_size);
    return SINTER_OK;
}
