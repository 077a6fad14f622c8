/* SPDX-License-Identifier: Apache-2.0 */
/* test_random_decoders.c - random decoders run random sequences with their state in the context: one row, many rows,
 * rows taken back (of NaN, too), a reset in the middle, a full state. The engine without state, on the reference
 * kernels, is the judge.
 *
 *     build/tests/state_test_random_decoders                 SINTER_TEST_SCALE=full: many more
 *     DECODER=17 build/tests/state_test_random_decoders      one of them */
#include "decode.h"
#include "grow_decoder.h"
#include "test.h"

#include <unistd.h>

static char file[256];

static bool write_model(const decoder *d, uint64_t seed)
{
    bytes model = decoder_model(d, seed);
    FILE *to = fopen(file, "wb");
    const bool is_good = to && fwrite(model.at, 1, model.size, to) == model.size;
    if (to) (void)fclose(to);
    free(model.at);
    return CHECK(is_good);
}

/* Rows so that they fit; 0 resets, fewer than 0 takes rows back. With nan, some rows are NaN, and are taken back. */
static void random_runs(decode *d, bool nan, uint64_t *seed)
{
    int64_t rows = 0;
    for (d->runs = 0; d->runs < 24; d->runs++) {
        const int64_t room = (int64_t)d->capacity - rows, most = room < d->most ? room : d->most;
        int64_t more = test_below(seed, 3) ? 1 : 1 + (int64_t)test_below(seed, (uint64_t)d->most);
        if (!most || (d->runs && test_below(seed, 10) == 0)) more = 0;
        else if (rows && test_below(seed, 8) == 0) more = -1 - (int64_t)test_below(seed, (uint64_t)rows);
        else if (more > most) more = most;
        if (nan && more > 0 && d->runs < 23 && test_below(seed, 5) == 0) {
            d->rows[d->runs++] = DECODE_NAN + more;
            more = -more;
        } else {
            rows = more ? rows + more : 0;
        }
        d->rows[d->runs] = more;
    }
}

/* Half of the decoders may use narrower floats, and so may their states. Not where an input is the mask: it may forbid
 * all keys, and what is added to scores then, -1e9, leaves other remains in other types. */
static uint32_t allowed_to(const decoder *model, uint64_t number)
{
    if (model->mask == MASK_INPUT) return 0;
    return number % 4 == 1 ? SINTER_ALLOW_FP16 : number % 4 == 3 ? SINTER_ALLOW_BF16 : 0;
}

static double tolerance_of(const decoder *model, uint32_t allow)
{
    if (allow & SINTER_ALLOW_BF16 || model->type == 16) return 0.1;
    return allow & SINTER_ALLOW_FP16 || model->type == 10 ? 2e-2 : 2e-4;
}

/* A cache of f32 is kept in the narrow type. */
static void check_size(const decoder *m, const decode *d, const decode_report *r)
{
    if (m->type != 1 || !d->allow || m->has_recurrence || !strcmp(d->device, "reference")) return;
    const int64_t one = m->batch * m->heads * (int64_t)d->capacity * m->size * 2;
    CHECK((int64_t)r->state_bytes <= m->layers * 2 * (one + 64) + 64);
}

static void compare_one(uint64_t number, const char *device, bool checks_growth)
{
    uint64_t seed = 1000 + number;
    const decoder model = decoder_random(&seed);
    char why[DECODE_WHY], text[256];
    decode_report r;
    decode d = { .path = file,
                 .device = device,
                 .judge = "reference",
                 .input = "past.*",
                 .output = "present.*",
                 .has_total = model.mask == MASK_INPUT,
                 .capacity = 3 + test_below(&seed, 60),
                 .allow = allowed_to(&model, number),
                 .tolerance = tolerance_of(&model, allowed_to(&model, number)),
                 .seed = number,
                 .checks_growth = checks_growth };
    d.most = model.mask == MASK_NONE ? 1 : 1 + (int64_t)test_below(&seed, d.capacity < 9 ? d.capacity : 9);
    random_runs(&d, !model.has_recurrence, &seed);
    if (!write_model(&model, number)) return;
    const char *wrong = decode_compare(&d, &r, why);
    decoder_print(&model, text, sizeof text);
    if (wrong)
        printf("decoder %llu (%s; capacity %llu, allowed %u) on %s: %s\n", (unsigned long long)number, text,
               (unsigned long long)d.capacity, d.allow, device, wrong);
    CHECK(!wrong);
    if (!wrong) check_size(&model, &d, &r);
}

static void compare_all(const char *device, long count, bool checks_growth)
{
    const char *one = getenv("DECODER");
    (void)snprintf(file, sizeof file, "decoder_%ld.onnx", (long)getpid());
    if (one) compare_one(strtoull(one, NULL, 10), device, checks_growth);
    const int before = test_failures;
    for (long i = 0; !one && i < count && test_failures < before + 5; i++)
        compare_one((uint64_t)i, device, checks_growth);
    (void)remove(file);
}

static void on_cpu(void)
{
    compare_all("cpu", test_scale(60, 3000), true);
}

static void on_reference(void)
{
    compare_all("reference", test_scale(40, 1000), true);
}

/* The driver whose kernels run on the CPU; the device's name is that of the GPU. */
static void on_emulated_gpu(void)
{
    if (!getenv("SINTER_LIBCUDA")) return;
    compare_all("cuda", test_scale(12, 200), true);
}

static const test tests[] = {
    T(on_cpu),
    T(on_reference),
    T(on_emulated_gpu),
    { 0 },
};
TEST_MAIN(tests)
