/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c - the folder of compiled kernels.
 *
 * A file is a head and the image; the head's sum covers both, so a file that was cut, mixed up or flipped is not
 * believed, and is written anew when its kernel is next compiled. Writers replace files whole: whoever reads sees one
 * or the other. */
#include "cuda/cache.h"

#include "base/hash.h"
#include "base/os.h"

#include <stdio.h>

enum { CACHE_VERSION = 1, CACHE_PATH = 640, IMAGE_MAX = 1 << 28 };
static const char cache_magic[8] = "SINTERKC";

typedef struct cache_head {
    char magic[8];
    uint32_t version, registers, spill_bytes, zero;
    uint8_t key[CUDA_KEY];
    uint64_t size, sum;
} cache_head;

static uint64_t cache_sum(const cache_head *head, const void *image)
{
    cache_head plain = *head;
    plain.sum = 0;
    return hash64(image, (size_t)head->size, hash64(&plain, sizeof plain, 0));
}

static bool cache_path(const char *folder, const uint8_t key[CUDA_KEY], char out[CACHE_PATH])
{
    const size_t length = strlen(folder);
    if (length == 0 || length + 2 * CUDA_KEY + 16 > CACHE_PATH) return false;
    memcpy(out, folder, length);
    char *at = out + length;
    *at++ = '/';
    for (uint32_t i = 0; i < CUDA_KEY; i++, at += 2) (void)snprintf(at, 3, "%02x", key[i]);
    memcpy(at, ".cubin", sizeof ".cubin");
    return true;
}

/* What fails here is nobody's error: it is told to an env of its own. */
static env cache_env(const env *e)
{
    env quiet = { .alloc = e->alloc, .limits = e->limits };
    return quiet;
}

bool cuda_cache_find(env *e, const char *folder, const uint8_t key[CUDA_KEY], cuda_binary *out)
{
    char path[CACHE_PATH];
    if (!cache_path(folder, key, path)) return false;
    env quiet = cache_env(e);
    quiet.error = &quiet.error_own;
    os_file file = { 0 };
    if (os_file_read(&quiet, path, IMAGE_MAX, &file) != SINTER_OK) return false;
    cache_head head = { 0 };
    bool is_good = file.size > sizeof head;
    if (is_good) {
        memcpy(&head, file.data, sizeof head);
        is_good = !memcmp(head.magic, cache_magic, sizeof cache_magic) && head.version == CACHE_VERSION &&
                  !memcmp(head.key, key, CUDA_KEY) && head.size == file.size - sizeof head &&
                  head.sum == cache_sum(&head, file.data + sizeof head);
    }
    void *image = is_good ? mem_alloc(&quiet, (size_t)head.size, BINARY_ALIGN) : NULL;
    if (image) {
        memcpy(image, file.data + sizeof head, (size_t)head.size);
        memcpy(out->key, key, CUDA_KEY);
        out->image = image;
        out->size = (size_t)head.size;
        out->registers = head.registers;
        out->spill_bytes = head.spill_bytes;
        out->was_cached = true;
    }
    os_file_close(&quiet, &file);
    return image != NULL;
}

void cuda_key_set_version(uint8_t key[CUDA_KEY], int nvrtc_version)
{
    for (uint32_t i = 0; i < CUDA_KEY - CUDA_KEY_CODE; i++)
        key[CUDA_KEY_CODE + i] = (uint8_t)((uint32_t)nvrtc_version >> 8 * i);
}

bool cuda_cache_find_any(env *e, const char *folder, const uint8_t key[CUDA_KEY], cuda_binary *out)
{
    uint8_t other[CUDA_KEY];
    memcpy(other, key, CUDA_KEY);
    for (int major = 15; major >= 11; major--) {
        for (int minor = 9; minor >= 0; minor--) {
            cuda_key_set_version(other, major * 1000 + minor * 10);
            if (cuda_cache_find(e, folder, other, out)) return true;
        }
    }
    return false;
}

void cuda_cache_store(env *e, const char *folder, const cuda_binary *b)
{
    char path[CACHE_PATH];
    if (!cache_path(folder, b->key, path) || !os_folder_make(folder)) return;
    env quiet = cache_env(e);
    quiet.error = &quiet.error_own;
    cache_head head = {
        .version = CACHE_VERSION, .registers = b->registers, .spill_bytes = b->spill_bytes, .size = b->size
    };
    memcpy(head.magic, cache_magic, sizeof cache_magic);
    memcpy(head.key, b->key, CUDA_KEY);
    head.sum = cache_sum(&head, b->image);
    const size_t size = size_add(sizeof head, b->size);
    uint8_t *whole = size <= IMAGE_MAX ? mem_alloc(&quiet, size, BINARY_ALIGN) : NULL;
    if (!whole) return;
    memcpy(whole, &head, sizeof head);
    memcpy(whole + sizeof head, b->image, b->size);
    (void)os_file_write(&quiet, path, NULL, whole, size);
    mem_free(&quiet, whole, size, BINARY_ALIGN);
}

void cuda_cache_folder(const char *wanted, char *out, size_t size)
{
    const char *folder = wanted ? wanted : os_env("SINTER_KERNEL_CACHE");
    const char *cache = os_env("XDG_CACHE_HOME"), *home = os_env("HOME");
    int length = 0;
    if (folder) length = snprintf(out, size, "%s", folder);
    else if (cache && cache[0] == '/') length = snprintf(out, size, "%s/sinter/kernels", cache);
    else if (home && home[0] == '/') length = snprintf(out, size, "%s/.cache/sinter/kernels", home);
    else if (size) out[0] = '\0';
    /* A name that was cut is another folder. */
    if (size && (length < 0 || (size_t)length >= size)) out[0] = '\0';
}
