/* SPDX-License-Identifier: Apache-2.0 */
/* test_cuda_compile_threads.c - many compilations at once, and several processes' worth of users of one folder. */
#include "base/os.h"
#include "cuda/compile.h"
#include "fake_nvrtc.h"
#include "test.h"

#include <unistd.h>

enum { CODES = 60, USERS = 4 };

static char folder[64];

static void folder_clear(void)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK_EQ(system(command), 0);
}

/* Every third code is one that came before. */
static void codes_fill(cuda_code *code)
{
    for (int64_t i = 0; i < CODES; i++) {
        code[i] = (cuda_code){ .source = "prelude.cuh", .entry = "k" };
        cuda_code_define(&code[i], "VALUE", i % 3 == 2 ? i / 2 : 1000 + i);
    }
}

static uint32_t distinct_count(const cuda_code *code)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < CODES; i++) {
        bool is_new = true;
        for (uint32_t k = 0; k < i; k++) is_new = is_new && code[k].define[0].value != code[i].define[0].value;
        count += is_new;
    }
    return count;
}

static void all_at_once(void)
{
    env e;
    sinter_error error = { 0 };
    env_init(&e, NULL, &error);
    cuda_driver d = { 0 };
    fake_nvrtc_fill(&d, 13000);
    cuda_code code[CODES];
    cuda_binary out[CODES];
    codes_fill(code);
    cuda_compiler c = { .driver = &d, .sm = 80, .threads = 5 };
    const long before = fake_nvrtc_compiled();
    CHECK_EQ(cuda_compile_all(&e, &c, code, CODES, out), SINTER_OK);
    CHECK_EQ(fake_nvrtc_compiled() - before, distinct_count(code));
    for (uint32_t i = 0; i < CODES; i++) {
        cuda_binary one;
        CHECK_EQ(cuda_compile(&e, &c, &code[i], &one), SINTER_OK);
        CHECK(one.size == out[i].size && !memcmp(one.image, out[i].image, one.size));
        CHECK(!memcmp(one.key, out[i].key, CUDA_KEY));
        cuda_binary_free(&e, &one);
        cuda_binary_free(&e, &out[i]);
    }
    CHECK_EQ(cuda_compile_all(&e, &c, code, 0, out), SINTER_OK);
    CHECK_EQ(fake_nvrtc_live(), 0);
}

static void failures_leave_the_rest(void)
{
    env e;
    sinter_error error = { 0 };
    env_init(&e, NULL, &error);
    cuda_driver d = { 0 };
    fake_nvrtc_fill(&d, 13000);
    cuda_code code[CODES];
    cuda_binary out[CODES];
    codes_fill(code);
    cuda_code_define(&code[7], "FAIL", 1);
    const cuda_compiler c = { .driver = &d, .sm = 80, .threads = 4 };
    CHECK_EQ(cuda_compile_all(&e, &c, code, CODES, out), SINTER_INTERNAL);
    CHECK_HAS(error.text, "-DFAIL=1");
    CHECK_HAS(error.text, "a wrong word");
    for (uint32_t i = 0; i < CODES; i++) {
        CHECK_EQ(out[i].image == NULL, i == 7);
        cuda_binary_free(&e, &out[i]);
    }
    CHECK_EQ(fake_nvrtc_live(), 0);
}

static void user_run(void *arg)
{
    bool *is_good = arg;
    env e;
    env_init(&e, NULL, NULL);
    cuda_driver d = { 0 };
    fake_nvrtc_fill(&d, 13000);
    cuda_code code[CODES];
    cuda_binary out[CODES];
    codes_fill(code);
    cuda_compiler c = { .driver = &d, .sm = 80, .threads = 2 };
    (void)snprintf(c.cache, sizeof c.cache, "%s", folder);
    *is_good = cuda_compile_all(&e, &c, code, CODES, out) == SINTER_OK;
    if (!*is_good) return;
    for (uint32_t i = 0; i < CODES; i++) {
        *is_good = *is_good && out[i].size == 1000 && out[i].registers == 40;
        cuda_binary_free(&e, &out[i]);
    }
}

static void one_folder_for_all(void)
{
    env e;
    env_init(&e, NULL, NULL);
    (void)snprintf(folder, sizeof folder, "sinter-test-kernels-threads-%ld", (long)getpid());
    folder_clear();
    for (int round = 0; round < 2; round++) {
        os_thread *thread[USERS] = { 0 };
        bool is_good[USERS] = { 0 };
        const long before = fake_nvrtc_compiled();
        for (int i = 0; i < USERS; i++) CHECK_EQ(os_thread_start(&e, user_run, &is_good[i], &thread[i]), SINTER_OK);
        for (int i = 0; i < USERS; i++) os_thread_join(&e, thread[i]);
        for (int i = 0; i < USERS; i++) CHECK(is_good[i]);
        if (round) CHECK_EQ(fake_nvrtc_compiled() - before, 0);
    }
    folder_clear();
}

static const test tests[] = { T(all_at_once), T(failures_leave_the_rest), T(one_folder_for_all), { 0 } };
TEST_MAIN(tests)
