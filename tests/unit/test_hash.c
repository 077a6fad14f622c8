/* SPDX-License-Identifier: Apache-2.0 */
/* test_hash.c - known answers of both functions, and pieces against the whole. */
#include "base/hash.h"
#include "test.h"

static void knows_xxh64(void)
{
    CHECK_EQ(hash64("", 0, 0), 0xEF46DB3751D8E999u);
    CHECK_EQ(hash64(NULL, 0, 0), 0xEF46DB3751D8E999u);
    CHECK_EQ(hash64("", 0, 1), 0xD5AFBA1336A3BE4Bu);
    CHECK_EQ(hash64("a", 1, 0), 0xD24EC4F1A98C6E5Bu);
    CHECK_EQ(hash64("abc", 3, 0), 0x44BC2CF5AD770999u);
    CHECK_EQ(hash64("Nobody inspects the spammish repetition", 39, 0), 0xFBCEA83C8A378BF1u);
    uint8_t data[102];
    for (unsigned i = 0; i < 101; i++) data[i + 1] = (uint8_t)i;
    CHECK_EQ(hash64(data + 1, 101, 2654435761u), 0xA1C6D4174C37136Du); /* an odd address too */
}

static void sha256_hex(const void *data, size_t size, size_t piece, char out[65])
{
    sha256 s;
    sha256_init(&s);
    for (size_t at = 0; at < size; at += piece) {
        sha256_update(&s, (const char *)data + at, size - at < piece ? size - at : piece);
    }
    uint8_t digest[32];
    sha256_final(&s, digest);
    for (size_t i = 0; i < 32; i++) (void)snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

static void knows_sha256(void)
{
    char hex[65];
    sha256_hex("", 0, 1, hex);
    CHECK_STR(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    sha256_hex("abc", 3, 3, hex);
    CHECK_STR(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, 56, hex);
    CHECK_STR(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *million = malloc(1000000);
    if (!CHECK(million != NULL)) return;
    memset(million, 'a', 1000000);
    sha256_hex(million, 1000000, 777, hex);
    CHECK_STR(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

static void pieces_equal_the_whole(void)
{
    uint8_t data[200];
    for (unsigned i = 0; i < 200; i++) data[i] = (uint8_t)(i * 7);
    for (size_t size = 0; size <= 200; size++) {
        char whole[65];
        char pieces[65];
        sha256_hex(data, size, 200, whole);
        sha256_hex(data, size, 1 + size % 67, pieces);
        if (!CHECK_STR(pieces, whole)) return;
    }
}

static void sums_parts(void)
{
    uint8_t data[200];
    for (uint32_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 31u);
    for (size_t size = 0; size <= sizeof data; size++)
        for (size_t step = 1; step < 70; step += 3) {
            hash64_parts h;
            hash64_begin(&h);
            for (size_t at = 0; at < size; at += step) hash64_add(&h, data + at, size - at < step ? size - at : step);
            if (!CHECK_EQ(hash64_end(&h), hash64(data, size, 0))) return;
        }
}

static const test tests[] = { T(knows_xxh64), T(knows_sha256), T(pieces_equal_the_whole), T(sums_parts), { 0 } };
TEST_MAIN(tests)
