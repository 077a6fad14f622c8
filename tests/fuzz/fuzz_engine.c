/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_engine.c - hostile engine files: refused, or loaded and run safely.
 *
 * With libFuzzer, define FUZZ_LIBRARY. By itself the program tries the files named as arguments, or a few damaged
 * engines. */
#include "engine_rig.h"
#include "samples.h"
#include "test.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rig_count count = { 0 };
    rig_try(data, size, 1, &count);
    uint8_t *sealed = malloc(size ? size : 1);
    if (!sealed) return 0;
    if (size) memcpy(sealed, data, size);
    parts_seal(sealed, size);
    rig_try(sealed, size, 1, &count);
    free(sealed);
    return 0;
}

#ifndef FUZZ_LIBRARY
static void try_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!CHECK(file != NULL)) return;
    const size_t most = (size_t)64 << 20;
    uint8_t *at = malloc(most);
    const size_t size = at ? fread(at, 1, most, file) : 0;
    (void)fclose(file);
    uint8_t *exact = realloc(at, size ? size : 1);
    if (exact) (void)LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) try_file(argv[i]);
    if (argc > 1) return test_failures ? 1 : 0;
    sinter_buffer engine = { 0 };
    if (!CHECK_EQ(sample_build(SAMPLE_CONV, NULL, &engine, NULL), SINTER_OK)) return 1;
    const image seed = { engine.data, engine.size };
    uint64_t random = 3;
    for (long i = test_scale(200, 2000); i; i--) {
        const image f = rig_damage(seed, seed, false, &random);
        (void)LLVMFuzzerTestOneInput(f.at, f.size);
        free(f.at);
    }
    sinter_buffer_free(&engine);
    return test_failures ? 1 : 0;
}
#endif
