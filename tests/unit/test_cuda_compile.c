/* SPDX-License-Identifier: Apache-2.0 */
/* test_cuda_compile.c - keys, the folder of compiled kernels, failures; and NVRTC itself where there is one. */
#include "base/hash.h"
#include "cuda/cache.h"
#include "cuda/compile.h"
#include "fake_nvrtc.h"
#include "faulty.h"
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

typedef struct rig {
    env e;
    sinter_error error;
    cuda_driver d;
    cuda_compiler c;
    char folder[64];
} rig;

static void rig_open(rig *r)
{
    *r = (rig){ 0 };
    env_init(&r->e, NULL, &r->error);
    fake_nvrtc_fill(&r->d, 13000);
    r->c = (cuda_compiler){ .driver = &r->d, .sm = 90 };
    (void)snprintf(r->folder, sizeof r->folder, "sinter-test-kernels-%ld", (long)getpid());
}

/* From here on there is a folder, empty. */
static void rig_cache(rig *r)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf %s", r->folder);
    CHECK_EQ(system(command), 0);
    (void)snprintf(r->c.cache, sizeof r->c.cache, "%s/below/it", r->folder);
}

static void rig_close(rig *r)
{
    if (!r->c.cache[0]) return;
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf %s", r->folder);
    CHECK_EQ(system(command), 0);
}

static cuda_code code_of(int64_t value)
{
    cuda_code c = { .source = "prelude.cuh", .entry = "k" };
    cuda_code_define(&c, "ONE", 1);
    cuda_code_define(&c, "VALUE", value);
    return c;
}

static bool same_key(const cuda_compiler *c, const cuda_code *a, const cuda_code *b)
{
    uint8_t x[CUDA_KEY], y[CUDA_KEY];
    cuda_code_key(c, a, x);
    cuda_code_key(c, b, y);
    return !memcmp(x, y, CUDA_KEY);
}

static void keys(void)
{
    rig r;
    rig_open(&r);
    const cuda_code base = code_of(5);
    cuda_code other = code_of(5);
    CHECK(same_key(&r.c, &base, &other));
    other.entry = "l";
    CHECK(!same_key(&r.c, &base, &other));
    other = code_of(6);
    CHECK(!same_key(&r.c, &base, &other));
    other = code_of(5);
    other.define[1].name = "VALUF";
    CHECK(!same_key(&r.c, &base, &other));
    other = code_of(5);
    cuda_code_define(&other, "MORE", 0);
    CHECK(!same_key(&r.c, &base, &other));
    other = code_of(5);
    other.source = "device_args.h";
    CHECK(!same_key(&r.c, &base, &other));
    /* The order of defines says nothing. */
    other = code_of(5);
    other.define[0] = base.define[1];
    other.define[1] = base.define[0];
    CHECK(same_key(&r.c, &base, &other));

    text generated;
    text_init(&generated, &r.e);
    other = code_of(5);
    other.generated = &generated;
    CHECK(same_key(&r.c, &base, &other));
    text_printf(&generated, "x");
    CHECK(!same_key(&r.c, &base, &other));
    text_deinit(&generated);

    uint8_t x[CUDA_KEY], y[CUDA_KEY];
    cuda_compiler c = r.c;
    cuda_code_key(&r.c, &base, x);
    c.sm = 100;
    cuda_code_key(&c, &base, y);
    CHECK(memcmp(x, y, CUDA_KEY_CODE) != 0);
    /* Another version of the compiler is another key of the same code. */
    cuda_driver d = r.d;
    d.nvrtc_version = 12080;
    c = r.c;
    c.driver = &d;
    cuda_code_key(&c, &base, y);
    CHECK(memcmp(x, y, CUDA_KEY) != 0);
    CHECK(memcmp(x, y, CUDA_KEY_CODE) == 0);
    /* Neither folder nor threads matter. */
    c = r.c;
    c.threads = 3;
    c.cache[0] = 'x';
    cuda_code_key(&c, &base, y);
    CHECK(memcmp(x, y, CUDA_KEY) == 0);
}

/* What a source includes is part of its key: the digest of the fake compiler covers all that it was handed. */
static void includes_are_handed_over(void)
{
    rig r;
    rig_open(&r);
    cuda_code a = code_of(1), b = code_of(1);
    text generated;
    text_init(&generated, &r.e);
    text_printf(&generated, "  #  include \"emit.cuh\"\n");
    b.generated = &generated;
    cuda_binary x, y;
    CHECK_EQ(cuda_compile(&r.e, &r.c, &a, &x), SINTER_OK);
    CHECK_EQ(cuda_compile(&r.e, &r.c, &b, &y), SINTER_OK);
    CHECK(memcmp(x.image, y.image, x.size) != 0);
    cuda_binary_free(&r.e, &x);
    cuda_binary_free(&r.e, &y);
    text_deinit(&generated);
}

static void without_cache(void)
{
    rig r;
    rig_open(&r);
    const cuda_code code = code_of(5);
    cuda_binary b;
    const long before = fake_nvrtc_compiled();
    CHECK_EQ(cuda_compile(&r.e, &r.c, &code, &b), SINTER_OK);
    CHECK(!b.was_cached && b.size == 1000 && b.registers == 40 && b.spill_bytes == 0);
    CHECK_STR(b.entry, "k");
    cuda_binary_free(&r.e, &b);
    CHECK(!b.image);
    CHECK_EQ(cuda_compile(&r.e, &r.c, &code, &b), SINTER_OK);
    cuda_binary_free(&r.e, &b);
    CHECK_EQ(fake_nvrtc_compiled() - before, 2);
    CHECK_EQ(fake_nvrtc_live(), 0);
}

static void round_trip(void)
{
    rig r;
    rig_open(&r);
    rig_cache(&r);
    cuda_code code = code_of(5);
    cuda_code_define(&code, "SPILL", 12);
    cuda_binary a, b;
    CHECK_EQ(cuda_compile(&r.e, &r.c, &code, &a), SINTER_OK);
    CHECK_EQ(cuda_compile(&r.e, &r.c, &code, &b), SINTER_OK);
    CHECK(!a.was_cached && b.was_cached);
    CHECK_EQ(a.spill_bytes, 12);
    CHECK_EQ(b.spill_bytes, 12);
    CHECK_EQ(b.registers, 40);
    CHECK(a.size == b.size && !memcmp(a.image, b.image, a.size) && !memcmp(a.key, b.key, CUDA_KEY));
    CHECK_STR(b.entry, "k");
    cuda_binary_free(&r.e, &b);
    /* Another code is another file. */
    const cuda_code other = code_of(6);
    CHECK_EQ(cuda_compile(&r.e, &r.c, &other, &b), SINTER_OK);
    CHECK(!b.was_cached);
    cuda_binary_free(&r.e, &b);
    cuda_binary_free(&r.e, &a);
    rig_close(&r);
}

static void file_of(const rig *r, const uint8_t key[CUDA_KEY], char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "%s/", r->c.cache);
    for (int i = 0; i < CUDA_KEY; i++) used += (size_t)snprintf(out + used, size - used, "%02x", key[i]);
    (void)snprintf(out + used, size - used, ".cubin");
}

static void damage(void)
{
    rig r;
    rig_open(&r);
    rig_cache(&r);
    const cuda_code code = code_of(5);
    cuda_binary good, b;
    CHECK_EQ(cuda_compile(&r.e, &r.c, &code, &good), SINTER_OK);
    char path[700];
    file_of(&r, good.key, path, sizeof path);
    struct stat st = { 0 };
    if (!CHECK(stat(path, &st) == 0)) return;
    /* Each byte of the head, and some of the image, flipped; then cut at some places. */
    for (long at = 0; at < st.st_size; at += at < 80 ? 1 : 97) {
        for (int cut = 0; cut < 2; cut++) {
            if (cut) {
                CHECK_EQ(truncate(path, at), 0);
            } else {
                FILE *file = fopen(path, "r+b");
                if (!CHECK(file != NULL)) return;
                (void)fseek(file, at, SEEK_SET);
                const int byte = fgetc(file);
                (void)fseek(file, at, SEEK_SET);
                (void)fputc(byte ^ 0x40, file);
                (void)fclose(file);
            }
            CHECK(!cuda_cache_find(&r.e, r.c.cache, good.key, &b));
            CHECK_EQ(cuda_compile(&r.e, &r.c, &code, &b), SINTER_OK);
            CHECK(!b.was_cached && !memcmp(b.image, good.image, good.size));
            cuda_binary_free(&r.e, &b);
            CHECK(cuda_cache_find(&r.e, r.c.cache, good.key, &b));
            cuda_binary_free(&r.e, &b);
        }
    }
    /* A whole file under another kernel's name is not that kernel. */
    uint8_t other[CUDA_KEY];
    memcpy(other, good.key, CUDA_KEY);
    other[3] ^= 1;
    char second[700];
    file_of(&r, other, second, sizeof second);
    CHECK_EQ(rename(path, second), 0);
    CHECK(!cuda_cache_find(&r.e, r.c.cache, other, &b));
    /* Something that is no file stands in its place. */
    CHECK_EQ(mkdir(path, 0700), 0);
    CHECK_EQ(cuda_compile(&r.e, &r.c, &code, &b), SINTER_OK);
    CHECK(!b.was_cached);
    cuda_binary_free(&r.e, &b);
    cuda_binary_free(&r.e, &good);
    rig_close(&r);
}

/* A folder that cannot be: below a file. */
static void no_folder(void)
{
    rig r;
    rig_open(&r);
    (void)snprintf(r.c.cache, sizeof r.c.cache, "/proc/self/cmdline/x");
    const cuda_code code = code_of(5);
    for (int i = 0; i < 2; i++) {
        cuda_binary b;
        CHECK_EQ(cuda_compile(&r.e, &r.c, &code, &b), SINTER_OK);
        CHECK(!b.was_cached);
        cuda_binary_free(&r.e, &b);
    }
    CHECK_EQ(r.error.length, 0);
}

static void without_compiler(void)
{
    rig r;
    rig_open(&r);
    rig_cache(&r);
    const cuda_code code = code_of(5), other = code_of(6);
    cuda_binary b;
    CHECK_EQ(cuda_compile(&r.e, &r.c, &code, &b), SINTER_OK);
    cuda_binary_free(&r.e, &b);

    cuda_driver none = { 0 };
    (void)snprintf(none.why_nvrtc, sizeof none.why_nvrtc, "looked for it in the cellar");
    r.c.driver = &none;
    CHECK_EQ(cuda_compile(&r.e, &r.c, &code, &b), SINTER_OK);
    CHECK(b.was_cached);
    cuda_binary_free(&r.e, &b);
    CHECK_EQ(cuda_compile(&r.e, &r.c, &other, &b), SINTER_INCOMPATIBLE);
    CHECK(!b.image);
    CHECK_HAS(r.error.text, "'prelude.cuh' for sm_90a with -DSM=90 -DONE=1 -DVALUE=6");
    CHECK_HAS(r.error.text, "in the cellar");
    CHECK_HAS(r.error.text, r.c.cache);
    rig_close(&r);
}

static void failures(void)
{
    static const sinter_status wanted[] = { SINTER_OK, SINTER_INTERNAL, SINTER_INTERNAL, SINTER_NO_MEMORY };
    rig r;
    rig_open(&r);
    rig_cache(&r);
    for (int64_t kind = 1; kind < 4; kind++) {
        cuda_code code = code_of(5);
        cuda_code_define(&code, "FAIL", kind);
        cuda_binary b;
        r.error = (sinter_error){ 0 };
        CHECK_EQ(cuda_compile(&r.e, &r.c, &code, &b), wanted[kind]);
        CHECK(!b.image);
        CHECK_HAS(r.error.text, "'prelude.cuh' for sm_90a with -DSM=90 -DFAIL=");
        if (kind == 1) CHECK_HAS(r.error.text, "fake.cu(7): error: a wrong word");
        CHECK_EQ(fake_nvrtc_live(), 0);
    }
    cuda_code code = code_of(5);
    code.source = "nothing.cu";
    cuda_binary b;
    r.error = (sinter_error){ 0 };
    CHECK_EQ(cuda_compile(&r.e, &r.c, &code, &b), SINTER_INTERNAL);
    CHECK_HAS(r.error.text, "nothing.cu");
    rig_close(&r);
}

/* The n-th allocation fails: a status, nothing left behind. */
static void no_memory(void)
{
    rig r;
    rig_open(&r);
    rig_cache(&r);
    cuda_code code[3] = { code_of(1), code_of(2), code_of(1) };
    r.c.threads = 1;
    bool is_done = false;
    for (long n = 0; n < 200 && !is_done; n++) {
        faulty f = { .budget = n };
        const sinter_allocator allocator = { &f, faulty_resize };
        sinter_env_options options = SINTER_ENV_OPTIONS;
        options.allocator = &allocator;
        sinter_error error = { 0 };
        env e;
        env_init(&e, &options, &error);
        cuda_binary out[3];
        const sinter_status status = cuda_compile_all(&e, &r.c, code, 3, out);
        CHECK(status == SINTER_OK || status == SINTER_NO_MEMORY);
        for (int i = 0; i < 3 && status == SINTER_OK; i++) cuda_binary_free(&e, &out[i]);
        CHECK_EQ(f.live, 0);
        CHECK_EQ(f.misuse, 0);
        is_done = status == SINTER_OK && f.requests < n;
    }
    CHECK(is_done);
    CHECK_EQ(fake_nvrtc_live(), 0);
    rig_close(&r);
}

static void folder_names(void)
{
    char out[64];
    (void)setenv("SINTER_KERNEL_CACHE", "/k", 1);
    (void)setenv("XDG_CACHE_HOME", "/x", 1);
    (void)setenv("HOME", "/h", 1);
    cuda_cache_folder("mine", out, sizeof out);
    CHECK_STR(out, "mine");
    cuda_cache_folder("", out, sizeof out);
    CHECK_STR(out, "");
    cuda_cache_folder(NULL, out, sizeof out);
    CHECK_STR(out, "/k");
    (void)setenv("SINTER_KERNEL_CACHE", "", 1);
    cuda_cache_folder(NULL, out, sizeof out);
    CHECK_STR(out, "");
    (void)unsetenv("SINTER_KERNEL_CACHE");
    cuda_cache_folder(NULL, out, sizeof out);
    CHECK_STR(out, "/x/sinter/kernels");
    (void)unsetenv("XDG_CACHE_HOME");
    cuda_cache_folder(NULL, out, sizeof out);
    CHECK_STR(out, "/h/.cache/sinter/kernels");
    (void)setenv("HOME", "/a-home-whose-name-is-longer-than-what-the-caller-has-room-for-in-its-buffer", 1);
    cuda_cache_folder(NULL, out, sizeof out);
    CHECK_STR(out, "");
}

static void embedded(void)
{
    CHECK(cuda_sources_count > 0);
    for (uint32_t i = 0; i < cuda_sources_count; i++) {
        CHECK_EQ(strlen(cuda_sources[i].text_at), cuda_sources[i].size);
        sha256 s;
        uint8_t digest[32];
        char hex[65];
        sha256_init(&s);
        sha256_update(&s, cuda_sources[i].text_at, cuda_sources[i].size);
        sha256_final(&s, digest);
        for (int k = 0; k < 32; k++) (void)snprintf(hex + 2 * k, 3, "%02x", digest[k]);
        CHECK_STR(cuda_sources[i].sum, hex);
        CHECK(i == 0 || strcmp(cuda_sources[i - 1].name, cuda_sources[i].name) < 0);
    }
}

static void with_nvrtc(void)
{
    static cuda_driver d;
    cuda_driver_open(&d);
    if (!d.nvrtc) {
        (void)printf("skipped, no NVRTC here: %s\n", d.why_nvrtc);
        return;
    }
    static const uint32_t chips[] = { 75, 90, 120 };
    for (uint32_t i = 0; i < COUNT_OF(chips); i++) {
        rig r;
        rig_open(&r);
        r.c.driver = &d;
        r.c.sm = chips[i];
        cuda_code code = { .source = "prelude.cuh", .entry = "none" };
        cuda_binary b;
        if (!CHECK_EQ(cuda_compile(&r.e, &r.c, &code, &b), SINTER_OK)) (void)printf("%s\n", r.error.text);
        CHECK(b.size > 64 && !memcmp(b.image, "\177ELF", 4));
        cuda_binary_free(&r.e, &b);
        cuda_code_define(&code, "u32", 5);
        CHECK_EQ(cuda_compile(&r.e, &r.c, &code, &b), SINTER_INTERNAL);
        CHECK_HAS(r.error.text, "error: ");
        CHECK_HAS(r.error.text, "-Du32=5");
    }
    cuda_driver_close(&d);
}

static const test tests[] = { T(keys),
                              T(includes_are_handed_over),
                              T(without_cache),
                              T(round_trip),
                              T(damage),
                              T(no_folder),
                              T(without_compiler),
                              T(failures),
                              T(no_memory),
                              T(folder_names),
                              T(embedded),
                              T(with_nvrtc),
                              { 0 } };
TEST_MAIN(tests)
