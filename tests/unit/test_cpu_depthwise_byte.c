/* SPDX-License-Identifier: Apache-2.0 */
/* test_cpu_depthwise_byte.c - depthwise convolution of codes, all forms, against sums one by one: few and odd channels,
 * all strides, dilations and paddings, pixels apart, and no byte read or written beyond what there is. */
#include "../cpu_numeric.h"
#include "cpu/depthwise_byte.h"
#include "cpu/gemm_core.h"
#include "cpu/level.h"

#include <sys/mman.h>

enum { PAGE = 4096 };

/* Results are compared as they come. */
typedef struct seen {
    const depthwise_byte_params *p;
    const uint8_t *w; /* [h][w][channel] */
    int64_t rows;
} seen;

/* The sum of a filter, or of ones. */
static int32_t wanted(const seen *s, int64_t row, int64_t c, bool is_ones)
{
    const conv_shape *v = &s->p->shape;
    const int64_t x = row % v->out[2], y = row / v->out[2] % v->out[1], image = row / v->out[2] / v->out[1];
    int32_t sum = 0;
    for (int64_t h = 0; h < v->kernel[1]; h++)
        for (int64_t w = 0; w < v->kernel[2]; w++) {
            const int64_t at_y = y * v->stride[1] - v->pad[1] + h * v->dilation[1];
            const int64_t at_x = x * v->stride[2] - v->pad[2] + w * v->dilation[2];
            const bool is_in = at_y >= 0 && at_y < v->in[1] && at_x >= 0 && at_x < v->in[2];
            const uint8_t code =
                is_in ? s->p->x[image * v->x_image + at_y * v->x_dim[1] + at_x * v->x_dim[2] + c] : s->p->pad[c];
            sum += (uint8_t)(code ^ s->p->flip) * (is_ones ? 1 : (int8_t)s->w[(h * v->kernel[2] + w) * v->c_in + c]);
        }
    return sum;
}

static void post(void *user, int64_t row, int64_t rows, int32_t *sum, const int32_t *windows, int64_t ld)
{
    seen *s = user;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < s->p->shape.c_in; c++) {
            CHECK_EQ(sum[i * ld + c], wanted(s, row + i, c, false));
            if (windows) CHECK_EQ(windows[i * ld + c], wanted(s, row + i, c, true));
        }
    CHECK_EQ(windows != NULL, s->p->ones != NULL);
    s->rows += rows;
}

static conv_shape shape_made(numbers *n)
{
    static const int64_t few[] = { 16, 32, 64, 48, 24, 96 };
    conv_shape s = { .images = numbers_in(n, 1, 2) };
    s.c_in = numbers_in(n, 0, 1) ? few[numbers_in(n, 0, 5)] : numbers_in(n, 2, 150);
    s.c_out = s.groups = s.c_in;
    s.in[0] = s.out[0] = s.kernel[0] = s.stride[0] = s.dilation[0] = 1;
    const bool is_usual = numbers_in(n, 0, 1);
    for (int i = 1; i < 3; i++) {
        s.kernel[i] = is_usual ? 3 : numbers_in(n, 1, 5);
        s.stride[i] = numbers_in(n, 1, 3);
        s.dilation[i] = numbers_in(n, 0, 3) ? 1 : 2;
        s.pad[i] = numbers_in(n, 0, 3);
        s.in[i] = numbers_in(n, 1, 14);
        const int64_t window = (s.kernel[i] - 1) * s.dilation[i] + 1, after = numbers_in(n, 0, 3);
        while (s.in[i] + s.pad[i] + after < window) s.in[i]++;
        s.out[i] = (s.in[i] + s.pad[i] + after - window) / s.stride[i] + 1;
    }
    s.x_c = 1;
    s.x_dim[2] = s.c_in + (numbers_in(n, 0, 2) ? 0 : numbers_in(n, 0, 20));
    s.x_dim[1] = s.in[2] * s.x_dim[2];
    s.x_image = s.in[1] * s.x_dim[1];
    return s;
}

static void one(numbers *n, isa_choice machine)
{
    depthwise_byte_params p = { .shape = shape_made(n), .flip = numbers_in(n, 0, 1) ? 128 : 0, .post = post };
    const conv_shape *s = &p.shape;
    p.fn = level_of(machine.level)->depthwise_byte;
    p.form = DEPTHWISE_PAIRS;
#if CPU_HAS_X86
    if (machine.level == ISA_AVX512 && machine.features & ISA_VNNI && numbers_in(n, 0, 3)) {
        p.form = DEPTHWISE_QUADS;
        p.fn = level_depthwise_quads;
        if (numbers_in(n, 0, 3)) p.columns = level_depthwise_columns;
    }
#endif
    /* The last pixel ends where a page does that cannot be read. */
    const size_t size = (size_t)((s->images * s->in[1] * s->in[2] - 1) * s->x_dim[2] + s->c_in);
    const size_t room = (size + PAGE - 1) / PAGE * PAGE;
    char *pages = mmap(NULL, room + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + room, PAGE, PROT_NONE)) abort();
    uint8_t *x = (uint8_t *)pages + room - size;
    for (size_t i = 0; i < size; i++) x[i] = (uint8_t)numbers_in(n, 0, 255);
    uint8_t pad[192], w[25 * 150];
    memset(pad, (int)numbers_in(n, 0, 255), sizeof pad);
    for (size_t i = 0; i < sizeof w; i++) w[i] = (uint8_t)numbers_in(n, 0, 255);
    void *packed = aligned_alloc(64, depthwise_byte_pack_size(p.form, s));
    void *ones = aligned_alloc(64, depthwise_byte_pack_size(p.form, s));
    int32_t sums[150];
    const size_t scratch_size = depthwise_byte_scratch_size(s);
    char *scratch = aligned_alloc(64, scratch_size + 64);
    memset(scratch, 0xA5, scratch_size + 64);
    depthwise_byte_pack(p.form, s, (const uint8_t[]){ 1 }, (const int64_t[3]){ 0 }, 0, ones, sums);
    p.ones = numbers_in(n, 0, 1) ? ones : NULL;
    depthwise_byte_pack(p.form, s, w, (const int64_t[]){ 1, s->kernel[2] * s->c_in, s->c_in }, 0, packed, sums);
    p.x = x;
    p.pad = pad;
    p.w = packed;
    seen found = { &p, w, 0 };
    depthwise_byte_run(&p, 0, depthwise_byte_tile_count(&p), scratch, &found);
    CHECK_EQ(found.rows, s->images * s->out[1] * s->out[2]);
    for (size_t i = 0; i < 64; i++) CHECK(scratch[scratch_size + i] == (char)0xA5);
    free(packed);
    free(ones);
    free(scratch);
    munmap(pages, room + PAGE);
}

static void forms(void)
{
    const isa_choice have = isa_detect();
    numbers n = { .state = 11 };
    for (int level = ISA_PLAIN; level < ISA_LEVEL_COUNT; level++)
        for (int i = 0; i < 600 && isa_level_runs(have.level, (isa_level)level); i++)
            one(&n, (isa_choice){ (isa_level)level, have.features });
}

static const test tests[] = { T(forms), { 0 } };
TEST_MAIN(tests)
