/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_npz.c - hostile .npz archives and DEFLATE data: refused with a reason, or tensors that lie inside their memory.
 * Undamaged ones, of random blocks and codes, give exactly what went in.
 *
 * With libFuzzer, define FUZZ_LIBRARY. By itself the program damages archives of its own, with seeds that are the same
 * everywhere. */
#include "api/inflate.h"
#include "api/npz.h"
#include "deflate_make.h"
#include "faulty.h"
#include "sinter/file.h"
#include "test.h"

static inflate_tables work;

static bool read_archive(const uint8_t *data, size_t size, uint32_t *count)
{
    sinter_error error = { 0 };
    sinter_buffer memory = { 0 };
    const sinter_limits limits = { .memory_max = 1 << 22 };
    const sinter_env_options options = { .struct_size = sizeof options, .limits = &limits };
    env e;
    env_init(&e, &options, &error);
    *count = 0;
    const sinter_status s = npz_read(&e, data, size, count, &memory);
    (void)CHECK(s == SINTER_OK || error.length > 0);
    const sinter_named_tensor *list = memory.data;
    const uint8_t *const end = (const uint8_t *)memory.data + memory.size;
    for (uint32_t i = 0; s == SINTER_OK && i < *count; i++) {
        const uint8_t *at = list[i].tensor.data;
        const size_t bytes = sinter_tensor_size(&list[i].tensor);
        (void)CHECK(at >= (const uint8_t *)(list + *count) && at <= end && bytes <= (size_t)(end - at));
        (void)CHECK((uintptr_t)at % 64 == 0 && memchr(list[i].name, 0, (size_t)(end - (const uint8_t *)list[i].name)));
    }
    sinter_buffer_free(&memory);
    return s == SINTER_OK;
}

/* The same bytes as an archive and as compressed data, in blocks of their exact size. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t count;
    (void)read_archive(data, size, &count);
    uint8_t *out = malloc(4096);
    if (CHECK(out != NULL)) (void)inflate_bytes(&work, data, size, out, size ? 1 + data[0] * 15u : 1);
    free(out);
    return 0;
}

#ifndef FUZZ_LIBRARY
static uint8_t *exact(const made_bytes *b)
{
    uint8_t *copy = malloc(b->size ? b->size : 1); /* so that a sanitizer sees a byte too far */
    if (CHECK(copy != NULL)) memcpy(copy, b->at, b->size);
    return copy;
}

static void damage(uint64_t *random, made_bytes *b)
{
    static const uint32_t likely[] = { 0, 1, 0xffff, 0x7fffffff, 0xffffffff, 0x04034b50, 0x02014b50, 0x06054b50 };
    for (uint64_t k = 1 + test_below(random, 4); k && b->size; k--) {
        const size_t at = test_below(random, b->size), from = test_below(random, b->size);
        const uint32_t word = likely[test_below(random, COUNT_OF(likely))];
        switch (test_below(random, 5)) {
        case 0: b->at[at] ^= (uint8_t)(1u << test_below(random, 8)); break;
        case 1: b->at[at] = b->at[from]; break;
        case 2: memmove(b->at + at, b->at + from, b->size - (at > from ? at : from)); break;
        case 3:
            if (b->size - at >= 4) memcpy(b->at + at, &word, 1 + test_below(random, 4));
            break;
        default: b->size = test_below(random, 4) ? b->size : at; break;
        }
    }
}

/* Each request for memory is refused in turn. */
static void starve(const uint8_t *data, size_t size)
{
    for (long budget = 0;; budget++) {
        faulty f = { .budget = budget };
        const sinter_allocator allocator = { &f, faulty_resize };
        const sinter_env_options options = { .struct_size = sizeof options, .allocator = &allocator };
        sinter_error error = { 0 };
        sinter_buffer memory = { 0 };
        uint32_t count;
        env e;
        env_init(&e, &options, &error);
        const sinter_status s = npz_read(&e, data, size, &count, &memory);
        sinter_buffer_free(&memory);
        (void)CHECK(s == SINTER_OK || s == SINTER_NO_MEMORY);
        (void)CHECK(f.live == 0 && f.misuse == 0);
        if (s == SINTER_OK || !CHECK(budget < 1000)) return;
    }
}

int main(void)
{
    static made_bytes packed, plain, archive;
    uint64_t state = 7;
    uint32_t count, found, refused = 0;
    const long rounds = test_scale(6000, 1000000);
    for (long round = 0; round < rounds && !test_failures; round++) {
        deflate_make(&state, NULL, 1 + test_below(&state, 6000), &packed, &plain);
        uint8_t *in = exact(&packed), *out = malloc(plain.size ? plain.size : 1);
        const char *wrong = inflate_bytes(&work, in, packed.size, out, plain.size);
        if (!CHECK(!wrong && !memcmp(out, plain.at, plain.size)))
            printf("round %ld: %s\n", round, wrong ? wrong : "other bytes");
        (void)CHECK(!plain.size || inflate_bytes(&work, in, packed.size, out, plain.size - 1) != NULL);
        (void)CHECK(inflate_bytes(&work, in, packed.size - 1, out, plain.size) != NULL);
        free(in);
        free(out);
        npz_make(&state, &archive, &count);
        in = exact(&archive);
        if (!CHECK(read_archive(in, archive.size, &found) && found == count)) printf("round %ld: an archive\n", round);
        if (round % 100 == 0) starve(in, archive.size);
        free(in);
        made_bytes *hurt = round % 2 ? &archive : &packed;
        damage(&state, hurt);
        in = exact(hurt);
        (void)LLVMFuzzerTestOneInput(in, hurt->size);
        refused += round % 2 && !read_archive(in, hurt->size, &found);
        free(in);
    }
    (void)printf("%ld rounds, %u archives refused, %d failures\n", rounds, refused, test_failures);
    return test_failures || refused < (uint32_t)rounds / 8;
}
#endif
