/* SPDX-License-Identifier: Apache-2.0 */
/* buffer.c - bytes that the library allocated (sinter/build.h), and files that are going to be written (sinter/file.h).
 */
#include "api/handle.h"
#include "engine/format.h"

#include <string.h>

void sinter_buffer_free(sinter_buffer *buffer)
{
    if (!buffer) return;
    if (buffer->data) buffer->allocator.resize(buffer->allocator.user, buffer->data, buffer->size, 0, ENGINE_ALIGN);
    *buffer = (sinter_buffer){ 0 };
}

sinter_status sinter_buffer_save(const sinter_buffer *buffer, const char *path, sinter_error *error)
{
    env e;
    env_init(&e, NULL, error);
    if (!buffer || !path) return FAIL(&e, INVALID_ARG, "%s is NULL", buffer ? "path" : "buffer");
    const os_file_kind *kind = &api_file_kind[SINTER_FILE_ENGINE];
    const bool is_engine = buffer->size >= kind->size && !memcmp(buffer->data, kind->magic, kind->size);
    return os_file_write(&e, path, is_engine ? kind : NULL, buffer->data, buffer->size);
}

sinter_status sinter_file_check(const char *path, sinter_file_kind kind, const char *const *keep, uint32_t count,
                                sinter_error *error)
{
    env e;
    env_init(&e, NULL, error);
    if (!path || (count && !keep)) return FAIL(&e, INVALID_ARG, "%s is NULL", path ? "keep" : "path");
    if ((unsigned)kind >= API_FILE_KINDS)
        return FAIL(&e, INVALID_ARG, "kind is %d, expected 0 to %d", (int)kind, API_FILE_KINDS - 1);
    for (uint32_t i = 0; i < count; i++) {
        if (keep[i] && os_file_is_same(path, keep[i]))
            return FAIL(&e, INVALID_ARG, "'%s' would be written over '%s', which is used, too", path, keep[i]);
    }
    return os_file_write_check(&e, path, &api_file_kind[kind]);
}
