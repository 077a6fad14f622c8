/* SPDX-License-Identifier: Apache-2.0 */
/* source.c - reads the model's bytes and gives up pages of mapped files. */
#include "builder/source.h"

#include "base/hash.h"
#include "base/os.h"
#include "network/network.h"

void source_digest(const source *s, uint8_t digest[32])
{
    sha256 h;
    if (s->model->network) {
        network_digest(s->model->network, digest);
        return;
    }
    sha256_init(&h);
    sha256_update(&h, s->model->bytes, s->model->size);
    sha256_final(&h, digest);
    if (s->model->is_mapped) os_file_forget(s->model->bytes, s->model->size);
}

static bool is_inside(const void *at, const uint8_t *bytes, size_t size)
{
    return (uintptr_t)at >= (uintptr_t)bytes && (uintptr_t)at - (uintptr_t)bytes < size;
}

void source_forget(void *user, const void *at, size_t size)
{
    const source *s = user;
    bool is_mapped = s->model->is_mapped && is_inside(at, s->model->bytes, s->model->size);
    for (uint32_t i = 0; i < s->files.count && !is_mapped; i++) {
        const os_file *f = &s->files.at[i].file;
        is_mapped = f->is_mapped && is_inside(at, f->data, f->size);
    }
    if (is_mapped) os_file_forget(at, size);
}
