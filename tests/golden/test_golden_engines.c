/* SPDX-License-Identifier: Apache-2.0 */
/* test_golden_engines.c - engines that earlier builds wrote still load, and still give the reference's results.
 *
 * The files are in engines/MAJOR.MINOR/NAME.ISA.sinter, by the number of the format that wrote them. When this test
 * fails, the format, a kernel's parameters or a packing has changed without a new number: raise the format's version or
 * the kernel's abi. Then engines of the old number are refused with a clear message. Move the old files to refused/,
 * and write new ones with SINTER_BLESS=1, which writes the files that are missing and never replaces one. */
#include "cpu/isa.h"
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "model_text.h"
#include "test.h"

#include <unistd.h>

#define ENGINES SINTER_SOURCE_DIR "/tests/golden/engines/"

/* Between them every kernel of the CPU that packs weights, and every kind of record of the format. */
static const struct {
    const char *name, *text; /* name: behind the number of the format that wrote it */
} golden[] = {
    { "2.2/conv",
      "sym N 1 2 3; in x f32 N,3,12,12;"
      "a = Conv x %16,3,3,3 %16 pads=[1,1,1,1]; b = Relu a; c = Conv b %16,16,3,3 pads=[1,1,1,1]; d = Add b c;"
      "e = Conv d %16,1,3,3 group=16 strides=[2,2] pads=[1,1,1,1]; f = Conv e %8,16,1,1; y = Sigmoid f; out y" },
    { "2.0/transposed", "in x f32 1,4,5,6; a = ConvTranspose x %4,6,3,3 strides=[2,2]; y = Relu a; out y" },
    { "2.2/transposed_by_channel",
      "in x f32 1,8,5,6; a = ConvTranspose x %8,1,3,3 strides=[2,2] group=8; y = Relu a; out y" },
    { "2.0/product", "sym N 1 4 9; in x f32 N,24; a = MatMul x %24,40; b = Add a %40; c = Erf b; d = MatMul c %40,8;"
                     "y = Softmax d axis=1; out y" },
    { "2.0/recurrent", "sym S 1 3 5; in x f32 S,2,6; h, k, c = LSTM x %1,20,6 %1,20,5 hidden_size=5; out h; out c" },
    { "2.2/integers", "in x u8 3,12; w = Cast %12,7 to=3; a = MatMulInteger x w; y = Cast a to=1; out y" },
    { "2.2/integer_conv", "in x u8 1,4,6,6; w = Cast %5,4,3,3 to=3; y = ConvInteger x w; out y" },
    { "2.2/integer_depthwise",
      "in x u8 1,16,6,6; w = Cast %16,1,3,3 to=3; y = ConvInteger x w group=16 pads=[1,1,1,1]; out y" },
    { "2.0/late",
      "sym N 1 3 6; in x f32 N,4; a = NonZero x; b = Transpose a perm=[1,0]; y = GatherND x b; z = Concat y y axis=0;"
      "out y; out z" },
    { "2.0/loop",
      "sym N 1 2 4; in x f32 N,3; in n i64 ; in c bool ;"
      "v, s = Loop n c x body=(in i i64 ; in g bool ; in u f32 N,3; h = Identity g; w = Add u x; t = Mul w #0.5;"
      "out h; out w; out t); out v; out s" },
    { "2.0/views",
      "sym N 1 2 3; in x f32 N,4,6; a = Transpose x perm=[0,2,1]; b = Slice a {1} {5} {1} {2};"
      "c = Concat a b b axis=1; d = Pad c {0,0,1,0,0,1}; y = ReduceMean d axes=[1] keepdims=0; out y; out a" },
    { "2.1/broadcast",
      "sym N 0 3 4; sym M 0 1 4; sym K 0 3 4; in x f32 N,4; in w f32 M,4; in v f32 K,4; a = Add x w; y = Mul a v; out "
      "y" },
    { "2.1/codes", "sym N 1 4 40; in x f32 N,64; q = Cast %64,80 to=22; r = Cast %80,80 to=3;"
                   "v = DequantizeLinear q %2,80 axis=0 block_size=32; w = DequantizeLinear r %80 axis=1;"
                   "a = MatMul x v; b = Relu a; y = MatMul b w; out y" },
    { "2.2/strassen", "in x f32 1024,128; a = MatMul x %128,128; b = Mul a #0.0625; y = Relu b; out y" },
    { "2.2/grouped", "in x f32 1,32,8,9; a = Conv x %32,32,1,1; b = Conv a %32,8,3,3 %32 group=4 pads=[1,1,1,1];"
                     "c = Relu b; y = GlobalAveragePool c; out y" },
    { "2.2/planes",
      "in x f32 1,6,9,11; a = Conv x %10,3,1,1 %10 group=2; b = Relu a; y = Conv b %3,10,3,3 pads=[1,1,1,1];"
      "out y" },
    { "2.3/transposed_planes", "in x f32 1,6,9,11; a = ConvTranspose x %6,5,4,4 %5 strides=[2,2] pads=[1,1,1,1];"
                               "y = ConvTranspose a %5,3,3,2 strides=[3,2]; out y" },
    { "2.2/recipes", "in x f32 5,16; w = Mul %16,32 %32; a = MatMul x w; y = Add a %32; out y" },
};
enum { GOLDEN = sizeof golden / sizeof *golden };

/* The same for kernels of matrix registers, which not every machine with AVX-512 has. */
static const struct {
    const char *file, *text;
} golden_amx[] = {
    { ENGINES "2.2/split.avx512_amx.sinter",
      "sym N 8 20 40; in x f32 N,64; a = MatMul x %64,48; b = Relu a; y = MatMul b %48,32; out y" },
    { ENGINES "2.2/split_conv.avx512_amx.sinter",
      "in x f32 1,32,12,13; a = Conv x %48,32,3,3 %48 strides=[2,2] pads=[1,1,1,1]; y = Relu a; out y" },
};

static bool has_amx(void)
{
    const isa_features needs = ISA_AMX_TILE | ISA_AMX_BF16 | ISA_BF16;
    return !(needs & ~isa_detect().features);
}

/* The level neon is younger than the other levels: its first files are of format 2.2. */
static const char *path_of(uint32_t i, isa_level isa)
{
    static char path[512];
    const char *name = strchr(golden[i].name, '/') + 1;
    const int folder = isa == ISA_NEON && strcmp(golden[i].name, "2.2/") < 0 ? 0 : (int)(name - golden[i].name);
    (void)snprintf(path, sizeof path, ENGINES "%s%.*s%s.%s.sinter", folder ? "" : "2.2/", folder, golden[i].name, name,
                   isa_level_name(isa));
    /* Where there is no file for AVX-512 yet, that level runs the file of AVX2. SINTER_BLESS=1 on a machine with
     * AVX-512 writes its own. */
    if (isa == ISA_AVX512 && !getenv("SINTER_BLESS") && access(path, F_OK) != 0) return path_of(i, ISA_AVX2);
    return path;
}

static void bless(const char *path, const char *model, const char *isa)
{
    sinter_error error;
    sinter_buffer built = model_build(model, (model_device){ .kind = "cpu", .isa = isa });
    if (!CHECK_EQ(sinter_buffer_save(&built, path, &error), SINTER_OK)) printf("%s\n", error.text);
    sinter_buffer_free(&built);
}

static void same_results(const char *path, const char *model, const char *isa)
{
    char why[1024];
    long runs = 0;
    if (getenv("SINTER_BLESS") && access(path, F_OK) != 0) bless(path, model, isa);
    const char *wrong = model_compare(model, (model_device){ .kind = "cpu", .isa = isa, .engine = path }, why, &runs);
    if (!CHECK(!wrong)) printf("%s: %s\n", path, wrong);
    CHECK(runs > 0);
}

static void old_engines_give_the_same_results(void)
{
    for (uint32_t i = 0; i < GOLDEN; i++)
        for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
            same_results(path_of(i, isa), golden[i].text, isa_level_name(isa));
        }
    for (uint32_t i = 0; has_amx() && i < COUNT_OF(golden_amx); i++)
        same_results(golden_amx[i].file, golden_amx[i].text, "avx512_amx");
}

static void take(void *user, const char *part, size_t length)
{
    char **all = user;
    const size_t had = *all ? strlen(*all) : 0;
    char *more = realloc(*all, had + length + 1);
    if (!more) abort();
    memcpy(more + had, part, length);
    more[had + length] = 0;
    *all = more;
}

static void every_packing_is_in_one(void)
{
    const isa_level isa = isa_level_detect();
    char *all = NULL;
    for (uint32_t i = 0; i < GOLDEN + (has_amx() ? COUNT_OF(golden_amx) : 0); i++) {
        sinter_engine *engine = NULL;
        const char *path = i < GOLDEN ? path_of(i, isa) : golden_amx[i - GOLDEN].file;
        if (!CHECK_EQ(sinter_engine_load(path, NULL, &engine, NULL), SINTER_OK)) continue;
        CHECK_EQ(sinter_engine_print(engine, SINTER_PRINT_TEXT, take, &all, NULL), SINTER_OK);
        sinter_engine_release(engine);
    }
    for (uint32_t i = 0; i < cpu_kernels_count; i++) {
        const kernel *k = cpu_kernels[i];
        char word[80];
        (void)snprintf(word, sizeof word, " %s ", k->name);
        /* Not every level permutes vectors, not every machine has matrix registers, and what rounds factors is chosen
         * by permission alone. */
        const bool is_there = (k != &cpu_conv_group || level_of(isa)->group_conv) && k->numerics != KERNEL_RELAXED &&
                              ((k != &cpu_gemm_split && k != &cpu_conv_split) || has_amx());
        if (k->pack && is_there && !CHECK(all && strstr(all, word)))
            printf("%s packs, and no golden engine holds it\n", k->name);
    }
    free(all);
}

static void an_older_format_is_refused_by_its_number(void)
{
    sinter_engine *engine = NULL;
    sinter_error error = { 0 };
    CHECK_EQ(sinter_engine_load(ENGINES "refused/relu.1.0.sinter", NULL, &engine, &error), SINTER_INCOMPATIBLE);
    if (!CHECK(strstr(error.text, "1.0") && strstr(error.text, "2."))) printf("%s\n", error.text);
}

static void an_engine_of_another_architecture_is_refused(void)
{
    const isa_level other = CPU_HAS_NEON ? ISA_AVX512 : ISA_NEON;
    const isa_level levels[] = { other, isa_level_detect() };
    sinter_engine *engine = NULL;
    sinter_error error = { 0 };
    CHECK_EQ(sinter_engine_load(path_of(0, other), NULL, &engine, &error), SINTER_INCOMPATIBLE);
    for (int i = 0; i < 2; i++) {
        char words[80];
        (void)snprintf(words, sizeof words, "%s (%s)", isa_level_name(levels[i]), isa_level_architecture(levels[i]));
        if (!CHECK(strstr(error.text, words))) printf("%s\n", error.text);
    }
}

static const test tests[] = { T(old_engines_give_the_same_results),
                              T(every_packing_is_in_one),
                              T(an_older_format_is_refused_by_its_number),
                              T(an_engine_of_another_architecture_is_refused),
                              { 0 } };
TEST_MAIN(tests)
