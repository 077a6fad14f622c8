/* SPDX-License-Identifier: Apache-2.0 */
/* buffer.c - include/sinter/build.h: bytes that the library allocated, freed and written to a file. */
#include "base/os.h"
#include "engine/format.h"
#include "sinter/build.h"

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
    return os_file_write_atomic(&e, path, buffer->data, buffer->size);
}
