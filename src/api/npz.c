/* SPDX-License-Identifier: Apache-2.0 */
/* npz.c - npz.h has the contract, and file.h that of sinter_npz_read.
 *
 * What the directory at the end of the archive says is believed; of the header in front of each file only its length
 * counts. Sizes are checked before anything is allocated: a file of a few bytes cannot ask for gigabytes. */
#include "api/npz.h"

#include "api/handle.h"
#include "api/inflate.h"
#include "api/npy.h"
#include "base/arena.h"
#include "base/name_map.h"
#include "base/os.h"
#include "sinter/file.h"

#include <string.h>

enum { BUFFER_ALIGN = 64, FILE_HEAD = 30, DIRECTORY_HEAD = 46, END_SIZE = 22, END_64_SIZE = 56, LOCATOR_SIZE = 20 };
enum { COMMENT_MAX = 65535, STORED = 0, DEFLATED = 8, EXTRA_64 = 1, FLAG_ENCRYPTED = 1 };

static const uint8_t file_mark[4] = { 'P', 'K', 3, 4 }, directory_mark[4] = { 'P', 'K', 1, 2 },
                     end_mark[4] = { 'P', 'K', 5, 6 }, end_64_mark[4] = { 'P', 'K', 6, 6 },
                     locator_mark[4] = { 'P', 'K', 6, 7 };

static uint64_t number(const uint8_t *at, uint32_t bytes)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < bytes; i++) value |= (uint64_t)at[i] << 8 * i;
    return value;
}

static bool is_mark(const uint8_t *at, const uint8_t mark[4])
{
    return !memcmp(at, mark, 4);
}

bool npz_is(const uint8_t *bytes, size_t size)
{
    return size >= 4 && (is_mark(bytes, file_mark) || is_mark(bytes, end_mark) || is_mark(bytes, end_64_mark));
}

/* The record of the end that has 64 bits, where the locator in front of the other record is right about it. */
static const uint8_t *end_64(const uint8_t *bytes, size_t end)
{
    if (end < LOCATOR_SIZE || !is_mark(bytes + end - LOCATOR_SIZE, locator_mark)) return NULL;
    const uint64_t at = number(bytes + end - LOCATOR_SIZE + 8, 8);
    if (end < LOCATOR_SIZE + END_64_SIZE || at > end - LOCATOR_SIZE - END_64_SIZE) return NULL;
    return is_mark(bytes + at, end_64_mark) ? bytes + at : NULL;
}

sinter_status npz_open(env *e, const uint8_t *bytes, size_t size, uint32_t *count, size_t *at)
{
    size_t end = size;
    bool is_found = false;
    for (size_t back = END_SIZE; back <= size && back <= END_SIZE + COMMENT_MAX && !is_found; back++) {
        end = size - back;
        is_found = is_mark(bytes + end, end_mark) && number(bytes + end + 20, 2) == back - END_SIZE;
    }
    if (!is_found) return FAIL(e, INVALID_MODEL, "the archive has no directory at its end");
    uint64_t files = number(bytes + end + 10, 2), length = number(bytes + end + 12, 4),
             first = number(bytes + end + 16, 4);
    if (number(bytes + end + 4, 4)) return FAIL(e, UNSUPPORTED, "an archive of several disks");
    if (files == 0xffff || length == 0xffffffff || first == 0xffffffff) {
        const uint8_t *wide = end_64(bytes, end);
        if (!wide) return FAIL(e, INVALID_MODEL, "the archive has no directory of 64 bits, which it refers to");
        files = number(wide + 32, 8);
        length = number(wide + 40, 8);
        first = number(wide + 48, 8);
    }
    if (length > end || first > end - length)
        return FAIL(e, INVALID_MODEL, "the directory of the archive has %llu bytes at %llu, the archive %zu",
                    (unsigned long long)length, (unsigned long long)first, size);
    if (files > length / DIRECTORY_HEAD)
        return FAIL(e, INVALID_MODEL, "the archive announces %llu files in a directory of %llu bytes",
                    (unsigned long long)files, (unsigned long long)length);
    *count = (uint32_t)files;
    *at = (size_t)first;
    return SINTER_OK;
}

/* Sizes and place that do not fit into 32 bits stand in a field of 64, each where its own has all bits set. */
static bool sizes_64(const uint8_t *extra, size_t length, uint64_t value[3])
{
    bool is_wanted = false;
    for (uint32_t i = 0; i < 3; i++) is_wanted = is_wanted || value[i] == 0xffffffff;
    for (size_t at = 0; is_wanted && length - at >= 4;) {
        const size_t kind = number(extra + at, 2), own = number(extra + at + 2, 2);
        at += 4;
        if (own > length - at) return false;
        if (kind == EXTRA_64) {
            size_t next = 0;
            for (uint32_t i = 0; i < 3; i++) {
                if (value[i] != 0xffffffff) continue;
                if (own - next < 8) return false;
                value[i] = number(extra + at + next, 8);
                next += 8;
            }
            return true;
        }
        at += own;
    }
    return !is_wanted;
}

static sinter_status name_take(env *e, npz_entry *out)
{
    static const char ending[] = ".npy";
    const uint32_t n = out->name_length, shown = n < 64 ? n : 64;
    if (n <= 4 || memcmp(out->name + n - 4, ending, 4) != 0)
        return FAIL(e, UNSUPPORTED, "'%.*s' in the archive is no .npy file", (int)shown, out->name);
    if (memchr(out->name, 0, n)) return FAIL(e, INVALID_MODEL, "a name in the archive has a zero byte");
    out->name_length = n - 4;
    return SINTER_OK;
}

sinter_status npz_next(env *e, const uint8_t *bytes, size_t size, size_t *at, size_t *used, npz_entry *out)
{
    const uint8_t *d = bytes + *at;
    if (size - *at < DIRECTORY_HEAD || !is_mark(d, directory_mark))
        return FAIL(e, INVALID_MODEL, "the directory of the archive is damaged at byte %zu", *at);
    const uint64_t flags = number(d + 8, 2), method = number(d + 10, 2);
    const size_t name = number(d + 28, 2), extra = number(d + 30, 2), comment = number(d + 32, 2);
    uint64_t value[3] = { number(d + 24, 4), number(d + 20, 4), number(d + 42, 4) }; /* size, packed, place */
    if (size - *at - DIRECTORY_HEAD < name + extra + comment)
        return FAIL(e, INVALID_MODEL, "the directory of the archive is damaged at byte %zu", *at);
    *out = (npz_entry){ .name = (const char *)d + DIRECTORY_HEAD,
                        .name_length = (uint32_t)name,
                        .is_deflated = method == DEFLATED,
                        .crc = (uint32_t)number(d + 16, 4) };
    TRY(name_take(e, out));
    const int shown = out->name_length < 64 ? (int)out->name_length : 64;
    if (flags & FLAG_ENCRYPTED) return FAIL(e, UNSUPPORTED, "'%.*s' in the archive is encrypted", shown, out->name);
    if (method != STORED && method != DEFLATED)
        return FAIL(e, UNSUPPORTED, "'%.*s' is compressed by method %llu: 0 (stored) and 8 (deflated) are read", shown,
                    out->name, (unsigned long long)method);
    if (!sizes_64(d + DIRECTORY_HEAD + name, extra, value))
        return FAIL(e, INVALID_MODEL, "'%.*s' in the archive lacks its size of 64 bits", shown, out->name);
    const uint64_t place = value[2];
    if (size < FILE_HEAD || place > size - FILE_HEAD || !is_mark(bytes + place, file_mark))
        return FAIL(e, INVALID_MODEL, "'%.*s' does not begin where the directory says", shown, out->name);
    const size_t head = FILE_HEAD + number(bytes + place + 26, 2) + number(bytes + place + 28, 2);
    if (head > size - place || value[1] > size - place - head)
        return FAIL(e, INVALID_MODEL, "'%.*s' ends behind the archive", shown, out->name);
    out->at = bytes + place + head;
    out->packed = (size_t)value[1];
    out->size = (size_t)value[0];
    if (out->is_deflated ? value[0] / INFLATE_RATIO_MAX > value[1] : value[0] != value[1])
        return FAIL(e, INVALID_MODEL, "'%.*s' cannot have %llu bytes, of which %llu are stored", shown, out->name,
                    (unsigned long long)value[0], (unsigned long long)value[1]);
    *used = size_add(*used, head + out->packed);
    if (*used > size) return FAIL(e, INVALID_MODEL, "files of the archive overlap");
    *at += DIRECTORY_HEAD + name + extra + comment;
    return SINTER_OK;
}

/* ---- tensors ---- */

/* The file's bytes become the tensor's memory. `to` has room for them. */
static sinter_status entry_read(env *e, inflate_tables *work, const npz_entry *n, uint8_t *to, sinter_tensor *out)
{
    npy_header header;
    const char *wrong = NULL;
    if (n->is_deflated) wrong = inflate_bytes(work, n->at, n->packed, to, n->size);
    else if (n->size) memcpy(to, n->at, n->size);
    if (!wrong && crc32_of(to, n->size) != n->crc) wrong = "the bytes do not have the archive's checksum";
    if (wrong) return FAIL(e, INVALID_MODEL, "%s", wrong);
    TRY(npy_header_read(e, to, n->size, &header));
    const size_t size = n->size - header.data_at;
    uint8_t *data = to + header.data_at;
    if (header.data_at % BUFFER_ALIGN) data = memmove(to, data, size);
    for (size_t i = 0; header.tensor.dtype == SINTER_DTYPE_BOOL && i < size; i++) data[i] = data[i] != 0;
    *out = header.tensor;
    out->data = data;
    return SINTER_OK;
}

/* Where the parts of the one block lie: the list, then each file, then the names. */
static sinter_status all_measure(env *e, const uint8_t *bytes, size_t size, uint32_t count, size_t at, size_t *total)
{
    size_t used = 0;
    *total = size_align(size_mul(count, sizeof(sinter_named_tensor)), BUFFER_ALIGN);
    for (uint32_t i = 0; i < count; i++) {
        npz_entry n;
        TRY(npz_next(e, bytes, size, &at, &used, &n));
        *total =
            size_add(*total, size_add(size_align(n.size, BUFFER_ALIGN), size_align(n.name_length + 1, BUFFER_ALIGN)));
    }
    if (*total > e->limits.memory_max)
        return FAIL(e, NO_MEMORY, "the arrays have %zu bytes, memory_max is %llu", *total,
                    (unsigned long long)e->limits.memory_max);
    return SINTER_OK;
}

static sinter_status all_read(env *e, const uint8_t *bytes, size_t size, uint32_t count, size_t at,
                              inflate_tables *work, name_map *names, uint8_t *block)
{
    sinter_named_tensor *list = (sinter_named_tensor *)(void *)block;
    uint8_t *to = block + size_align(size_mul(count, sizeof *list), BUFFER_ALIGN);
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        npz_entry n;
        TRY(npz_next(e, bytes, size, &at, &used, &n));
        char *name = (char *)to;
        memcpy(name, n.name, n.name_length);
        name[n.name_length] = 0;
        to += size_align(n.name_length + 1, BUFFER_ALIGN);
        list[i] = (sinter_named_tensor){ .name = name };
        bool is_new = false;
        if (!name_map_add(names, name, &is_new)) return FAIL_MEMORY(e, "names of arrays");
        if (!is_new) return FAIL(e, INVALID_MODEL, "'%s' is twice in the archive", name);
        TRY(NOTE(e, entry_read(e, work, &n, to, &list[i].tensor), "reading '%s' of the archive", name));
        to += size_align(n.size, BUFFER_ALIGN);
    }
    return SINTER_OK;
}

sinter_status npz_read(env *e, const uint8_t *bytes, size_t size, uint32_t *count, sinter_buffer *memory)
{
    size_t at = 0, total = 0;
    arena a;
    if (!npz_is(bytes, size)) return FAIL(e, INVALID_MODEL, "%zu bytes are no .npz file", size);
    TRY(npz_open(e, bytes, size, count, &at));
    TRY(all_measure(e, bytes, size, *count, at, &total));
    total = total ? total : 1;
    arena_init(&a, e);
    name_map names = { .a = &a };
    inflate_tables *work = ARENA_NEW(&a, inflate_tables, 1);
    memory->data = mem_alloc(e, total, BUFFER_ALIGN);
    memory->size = total;
    memory->allocator = e->alloc;
    const sinter_status s = work && memory->data ? all_read(e, bytes, size, *count, at, work, &names, memory->data)
                                                 : FAIL(e, NO_MEMORY, "out of memory for %zu bytes of arrays", total);
    arena_deinit(&a);
    return s;
}

sinter_status sinter_npz_read(const char *path, const sinter_env_options *options, const sinter_named_tensor **out,
                              uint32_t *count, sinter_buffer *memory, sinter_error *error)
{
    env e;
    env_init(&e, options, error);
    TRY(env_check(&e));
    if (!path || !out || !count || !memory)
        return FAIL(&e, INVALID_ARG, "path, out, count and memory must not be NULL");
    *out = NULL;
    *count = 0;
    *memory = (sinter_buffer){ 0 };
    os_file file = { 0 };
    sinter_status s = os_file_read(&e, path, (size_t)e.limits.memory_max, &file);
    if (s == SINTER_OK) s = npz_read(&e, file.data, file.size, count, memory);
    os_file_close(&e, &file);
    if (s == SINTER_OK) *out = memory->data;
    else sinter_buffer_free(memory), *count = 0;
    return NOTE(&e, s, "while reading '%s'", path);
}
