/* SPDX-License-Identifier: Apache-2.0 */
/* Whether steps run side by side, decided while an engine is built: by the clock of the driver that is none, for which
 * a graph takes as long as its longest way; by the timing cache; and by what the caller says. */
#include "cuda_fake.h"
#include "onnx_bytes.h"
#include "sinter/build.h"
#include "sinter/engine.h"
#include "test.h"

#include <unistd.h>

enum { MAX = 4 };
static const int64_t size[MAX] = { 1, 8, 16, 16 }, pooled[MAX] = { 1, 8, 1, 1 };

/* Three ways from x, or one after the other. */
static bytes model(bool is_chain)
{
    bytes g = { 0 };
    bytes_text(&g, 2, "g");
    bytes_put(&g, 1, onnx_node_bytes("Softmax", "", "x", "s"));
    bytes_put(&g, 1, onnx_node_bytes("Transpose", "", is_chain ? "s" : "x", "t"));
    bytes_put(&g, 1, onnx_node_bytes("GlobalAveragePool", "", is_chain ? "t" : "x", "p"));
    bytes_put(&g, 11, onnx_value("x", 1, size, MAX, ""));
    if (!is_chain) {
        const int64_t turned[MAX] = { 16, 16, 8, 1 };
        bytes_put(&g, 12, onnx_value("s", 1, size, MAX, ""));
        bytes_put(&g, 12, onnx_value("t", 1, turned, MAX, ""));
    }
    const int64_t turned_pool[MAX] = { 16, 16, 1, 1 };
    bytes_put(&g, 12, onnx_value("p", 1, is_chain ? turned_pool : pooled, MAX, ""));
    return onnx_model_bytes(g, 18);
}

typedef struct printed {
    char at[8192];
    size_t length;
} printed;

static void keep(void *user, const char *text, size_t length)
{
    printed *p = user;
    if (length > sizeof p->at - 1 - p->length) length = sizeof p->at - 1 - p->length;
    memcpy(p->at + p->length, text, length);
    p->length += length;
    p->at[p->length] = 0;
}

/* Builds, and keeps what `inspect` prints. */
static sinter_status build(bool is_chain, sinter_tune tune, sinter_branches branches, const char *cache, bool only,
                           printed *text, printed *json, sinter_error *error)
{
    const sinter_build_options o = { .struct_size = sizeof o,
                                     .device = "cuda",
                                     .tune = tune,
                                     .branches = branches,
                                     .timing_cache = cache,
                                     .cache_only = only,
                                     .kernel_cache = "" };
    const sinter_engine_options load = { .struct_size = sizeof load, .trust_code = 1, .kernel_cache = "" };
    sinter_buffer file = { 0 };
    sinter_engine *g = NULL;
    bytes m = model(is_chain);
    *error = (sinter_error){ 0 };
    *text = (printed){ 0 };
    *json = (printed){ 0 };
    sinter_status s = sinter_build_memory(m.at, m.size, &o, &file, error);
    free(m.at);
    if (s == SINTER_OK) s = sinter_engine_load_memory(file.data, file.size, &load, &g, error);
    if (s == SINTER_OK) s = sinter_engine_print(g, SINTER_PRINT_TEXT, keep, text, error);
    if (s == SINTER_OK) s = sinter_engine_print(g, SINTER_PRINT_JSON, keep, json, error);
    sinter_engine_release(g);
    sinter_buffer_free(&file);
    return s;
}

static printed text, json;
static sinter_error error;

static void without_measuring(void)
{
    cuda_fake()->reset();
    CHECK_EQ(build(false, SINTER_TUNE_OFF, SINTER_BRANCHES_AUTO, NULL, false, &text, &json, &error), SINTER_OK);
    CHECK_HAS(text.at, "1 graph launch, branches small\n");
    CHECK_HAS(text.at, " after none");
    CHECK_HAS(json.at, "\"branches\":\"small\"");
    CHECK_HAS(json.at, "\"after\":[]");
    CHECK_EQ(cuda_fake()->calls("cuGraphLaunch"), 0);
    CHECK_EQ(build(false, SINTER_TUNE_OFF, SINTER_BRANCHES_OFF, NULL, false, &text, &json, &error), SINTER_OK);
    CHECK_HAS(text.at, "1 graph launch, branches off\n");
    CHECK(!strstr(text.at, " after "));
    CHECK_EQ(build(false, SINTER_TUNE_OFF, SINTER_BRANCHES_ALL, NULL, false, &text, &json, &error), SINTER_OK);
    CHECK_HAS(text.at, "1 graph launch, branches all\n");
    /* Where there are none, there is nothing to decide. */
    CHECK_EQ(build(true, SINTER_TUNE_OFF, SINTER_BRANCHES_ALL, NULL, false, &text, &json, &error), SINTER_OK);
    CHECK_HAS(text.at, "1 graph launch, branches off\n");
    CHECK_EQ(build(true, SINTER_TUNE_OFF, (sinter_branches)4, NULL, false, &text, &json, &error), SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "branches is 4");
    CHECK_EQ(cuda_fake()->live(), 0);
}

static void by_the_clock(void)
{
    static const char cache[] = "test_cuda_order.timings";
    (void)unlink(cache);
    cuda_fake()->reset();
    CHECK_EQ(build(false, SINTER_TUNE_FAST, SINTER_BRANCHES_AUTO, cache, false, &text, &json, &error), SINTER_OK);
    if (!strstr(text.at, "1 graph launch, branches ")) printf("%s\n", error.text);
    CHECK(!strstr(text.at, "branches off"));
    CHECK(cuda_fake()->calls("cuGraphLaunch") > 0);
    /* Again, from what was measured: no engine is tried. */
    const printed first = text;
    cuda_fake()->reset();
    CHECK_EQ(build(false, SINTER_TUNE_FAST, SINTER_BRANCHES_AUTO, cache, true, &text, &json, &error), SINTER_OK);
    CHECK_STR(text.at, first.at);
    CHECK_EQ(cuda_fake()->calls("cuGraphLaunch"), 0);
    (void)unlink(cache);
    CHECK_EQ(build(true, SINTER_TUNE_FAST, SINTER_BRANCHES_AUTO, NULL, false, &text, &json, &error), SINTER_OK);
    CHECK_HAS(text.at, "branches off");
    CHECK_EQ(cuda_fake()->live(), 0);
    CHECK_EQ(cuda_fake()->misuse(), 0);
}

static void what_is_not_in_the_cache(void)
{
    cuda_fake()->reset();
    CHECK_EQ(build(false, SINTER_TUNE_FAST, SINTER_BRANCHES_AUTO, NULL, true, &text, &json, &error),
             SINTER_INVALID_ARG);
    CHECK_HAS(error.text, "the timing cache has no entry for '");
    CHECK_EQ(cuda_fake()->live(), 0);
}

static const test tests[] = { T(without_measuring), T(by_the_clock), T(what_is_not_in_the_cache), { 0 } };
TEST_MAIN(tests)
