/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_npy.c - hostile .npy headers: refused, or a shape whose elements are exactly what the bytes hold.
 *
 * With libFuzzer, define FUZZ_LIBRARY. By itself the program damages headers of its own, with seeds that are the same
 * everywhere. */
#include "api/npy.h"
#include "test.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sinter_error error = { 0 };
    env e;
    npy_header h;
    env_init(&e, NULL, &error);
    if (npy_header_read(&e, data, size, &h) != SINTER_OK) {
        (void)CHECK(error.length > 0);
        return 0;
    }
    (void)CHECK(h.data_at <= size && sinter_tensor_size(&h.tensor) == size - h.data_at);
    (void)CHECK(h.tensor.rank <= SINTER_RANK_MAX);
    return 0;
}

#ifndef FUZZ_LIBRARY
static const char *const dicts[] = {
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
    "{'descr': '|b1', 'fortran_order': True, 'shape': (24L,), }",
    "{\"shape\": (1, 1, 1, 1, 1, 1, 1, 3), \"descr\": '<i8', 'fortran_order': False}",
};

int main(void)
{
    uint64_t state = 7;
    const long rounds = test_scale(200000, 5000000);
    for (long round = 0; round < rounds; round++) {
        const char *dict = dicts[test_random(&state) % COUNT_OF(dicts)];
        const size_t length = strlen(dict), prefix = test_random(&state) % 2 ? 10 : 12;
        size_t size = prefix + length + 24;
        uint8_t *file = calloc(size, 1);
        if (!CHECK(file != NULL)) break;
        memcpy(file, "\x93NUMPY", 6);
        file[6] = prefix == 10 ? 1 : 2;
        file[8] = (uint8_t)length;
        memcpy(file + prefix, dict, length);
        for (uint64_t k = test_random(&state) % 5; k; k--) {
            const size_t at = (size_t)(test_random(&state) % size), from = (size_t)(test_random(&state) % size);
            static const char likely[] = "'\"{}(),:-<>|=0123456789L TFnd";
            switch (test_random(&state) % 4) {
            case 0: file[at] ^= (uint8_t)(1u << test_random(&state) % 8); break;
            case 1: file[at] = (uint8_t)likely[test_random(&state) % (sizeof likely - 1)]; break;
            case 2: file[at] = file[from]; break;
            default: size = k == 1 ? at : size; break;
            }
            if (!size) break;
        }
        uint8_t *exact = malloc(size ? size : 1); /* so that a sanitizer sees a byte too far */
        if (CHECK(exact != NULL)) {
            memcpy(exact, file, size);
            (void)LLVMFuzzerTestOneInput(exact, size);
        }
        free(exact);
        free(file);
    }
    (void)printf("%ld headers, %d failures\n", rounds, test_failures);
    return test_failures ? 1 : 0;
}
#endif
