/* SPDX-License-Identifier: Apache-2.0 */
/* test_corrupt_plugin.c - damaged engines that call plugins are refused or run safely. Run under ASan and UBSan.
 *
 * Problem lines are damaged more often than in other campaigns: they hold the names and the fields of plugins. */
#include "engine_rig.h"
#include "model_text.h"
#include "plugin_set.h"
#include "samples.h"
#include "test.h"

static const char *const model[] = {
    "sym N 1 3 9; in x f32 N,8; a = CustomPlugin x scale=2.5 bias=-1; b = CustomKernel a; y = Relu b; out y",
    "sym N 1 3 9; sym C 2 5 8; in x f32 N,C; y,z = CustomPairs x k=3 mode=abc axes=[5,-1] table=xyz; out y; out z",
    "in x f32 1,4,5,5; a = Conv x %8,4,1,1; b = CustomPlugin a scale=0.5; c = CustomQuantized b; out c",
};
enum { MODELS = sizeof model / sizeof model[0] };

static const sinter_plugins *plugins;

/* Runs every profile once, on zeros of the opt sizes. 1: it ran. */
static int run_all(sinter_engine *g)
{
    int ran = 0;
    for (uint32_t profile = 0; profile < sinter_engine_profile_count(g) && profile < 4; profile++) {
        const sinter_context_options o = { .struct_size = sizeof o, .profile = profile, .lazy = 1 };
        sinter_context *c = NULL;
        sinter_error error = { 0 };
        void *data[16] = { NULL };
        bool ok = sinter_context_create(g, &o, &c, &error) == SINTER_OK;
        for (uint32_t i = 0; ok && i < sinter_engine_io_count(g) && i < 16; i++) {
            sinter_io io;
            ok = sinter_engine_io(g, i, profile, &io) == SINTER_OK;
            if (!ok || !io.is_input) continue;
            sinter_tensor t = { .dtype = io.dtype, .rank = io.rank };
            memcpy(t.dim, io.opt, sizeof t.dim);
            const size_t size = sinter_tensor_size(&t);
            data[i] = size <= 1 << 20 ? calloc(1, size + 1) : NULL;
            t.data = data[i];
            ok = data[i] && sinter_context_set_input(c, io.name, &t, &error) == SINTER_OK;
        }
        ran += ok && sinter_context_run(c, &error) == SINTER_OK;
        sinter_context_destroy(c);
        for (uint32_t i = 0; i < 16; i++) free(data[i]);
    }
    return ran > 0;
}

/* A few bytes inside one of the lines of problems become others, digits and quotes most often. */
static void damage_line(image *f, uint64_t *random)
{
    static const char usual[] = "0123456789-.,[]\"\\=x? fiu";
    size_t at = 0, found = 0;
    for (size_t i = 0, skip = 1 + test_below(random, 4); i + 7 < f->size && skip; i++) {
        if (memcmp(f->at + i, "plugin:", 7) != 0) continue;
        found = 1;
        at = i;
        skip--;
    }
    for (uint64_t k = found ? 1 + test_below(random, 3) : 0; k; k--) {
        const size_t to = at + test_below(random, 160);
        if (to < f->size && f->at[to]) f->at[to] = (uint8_t)usual[test_below(random, sizeof usual - 1)];
    }
}

static void try_one(const image *f, long *loaded, long *ran)
{
    const sinter_limits limits = { .memory_max = 1 << 28 };
    const sinter_env_options given = { .struct_size = sizeof given, .limits = &limits, .plugins = plugins };
    const sinter_engine_options o = { .struct_size = sizeof o, .env = &given, .threads = 1 };
    sinter_engine *g = NULL;
    sinter_error error = { 0 };
    const sinter_status s = sinter_engine_load_memory(f->at, f->size, &o, &g, &error);
    if (!CHECK(s == SINTER_OK || (error.length && s != SINTER_INTERNAL))) printf("%s\n", error.text);
    if (!g) return;
    (*loaded)++;
    *ran += run_all(g);
    sinter_engine_release(g);
}

static void damaged_engines(void)
{
    image seed[MODELS];
    sinter_plugins *r = plugin_set_new();
    long loaded = 0, ran = 0;
    plugins = r;
    for (uint32_t i = 0; i < MODELS; i++) {
        const sinter_buffer b = model_build(model[i], (model_device){ .kind = "cpu", .plugins = r });
        seed[i] = image_copy(b.data, b.size);
        sinter_buffer_free(&(sinter_buffer){ b.data, b.size, b.allocator });
        try_one(&seed[i], &loaded, &ran);
    }
    CHECK(loaded == MODELS && ran == MODELS);
    const long rounds = test_scale(6000, 400000);
    for (long k = 0; k < rounds; k++) {
        uint64_t random = (uint64_t)k * 0x9E37u + 11;
        const image a = seed[k % MODELS], b = seed[test_below(&random, MODELS)];
        image f = k % 3 ? image_copy(a.at, a.size) : rig_damage(a, b, k % 2, &random);
        if (k % 3) {
            damage_line(&f, &random);
            parts_seal(f.at, f.size);
        }
        try_one(&f, &loaded, &ran);
        free(f.at);
    }
    printf("%ld engines, %ld loaded, %ld ran\n", rounds, loaded, ran);
    CHECK(ran > MODELS);
    for (uint32_t i = 0; i < MODELS; i++) free(seed[i].at);
    sinter_plugins_destroy(r);
}

static const test tests[] = { T(damaged_engines), { 0 } };
TEST_MAIN(tests)
