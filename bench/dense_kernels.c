/* SPDX-License-Identifier: Apache-2.0 */
/* dense_kernels.c - GFLOP/s of the CPU's dense kernels on one thread, on shapes of well-known networks.
 *
 * cpu_kernels [level] [name filter] [all] [cold]: for each shape the best of several repetitions; of every tactic where
 * `all` is given, else of the first and of the best one. The measure is the product as the runtime would run it: packed
 * weights, bias and relu fused. cold: as in a network, the input of a convolution was just written, and the place of
 * its result is in no cache. Times are of the processor. */
#include "cpu/conv.h"
#include "cpu/conv_transpose.h"
#include "cpu/depthwise.h"
#include "cpu/gemm.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float *floats(size_t count)
{
    float *p = aligned_alloc(64, (count * sizeof(float) + 127) / 64 * 64);
    if (!p) exit(1);
    for (size_t i = 0; i < count; i++) p[i] = (float)((i * 2654435761u >> 8) % 1000) / 1000.0f - 0.5f;
    return p;
}

typedef void run_fn(void *params);

static bool is_cold;
static float *written; /* the input of a convolution */
static size_t written_count;

/* Reads more than any cache holds, and writes the input. */
static void make_cold(void)
{
    enum { SIZE = 12 << 20 };
    static float *other;
    static volatile float sink;
    if (!is_cold || !written) return;
    if (!other) other = floats(SIZE);
    float sum = 0;
    for (int64_t i = 0; i < SIZE; i += 16) sum += other[i];
    sink = sum;
    (void)sink;
    for (size_t i = 0; i < written_count; i++) written[i] += 1e-9f;
}

/* Best time of one call, over about 60 ms. */
static double best_time(run_fn *run, void *params)
{
    double best = 1e9, total = 0.0;
    run(params);
    for (int i = 0; i < 1000 && (total < 0.06 || i < 5); i++) {
        make_cold();
        const double start = seconds();
        run(params);
        const double time = seconds() - start;
        total += time;
        if (time < best) best = time;
    }
    return best;
}

static isa_level level;
static uint64_t l2;
static const char *filter = "";
static int show_all;

typedef struct gemm_job {
    gemm_params p;
    void *scratch, *copied;
} gemm_job;
static void gemm_job_run(void *v)
{
    gemm_job *j = v;
    if (j->copied) gemm_copy(&j->p, 0, gemm_copy_count(&j->p), j->copied, j->scratch);
    j->p.copied = j->copied;
    gemm_run(&j->p, 0, gemm_tile_count(&j->p), j->scratch, NULL);
}

static void report(const char *name, double flop, const double *time, char (*text)[64], int count)
{
    int best = 0;
    for (int i = 0; i < count; i++) {
        if (time[i] < time[best]) best = i;
        if (show_all) printf("    %-34s %8.1f us %7.1f GFLOP/s\n", text[i], time[i] * 1e6, flop / time[i] * 1e-9);
    }
    printf("%-30s %9.1f us  first %6.1f  best %6.1f GFLOP/s  %s\n", name, time[best] * 1e6, flop / time[0] * 1e-9,
           flop / time[best] * 1e-9, text[best]);
    fflush(stdout);
}

static void bench_gemm(const char *name, int64_t m, int64_t n, int64_t k, bool raw, bool transposed)
{
    if (!strstr(name, filter)) return;
    gemm_tactic list[GEMM_TACTICS_MAX];
    const gemm_shape s = {
        .m = m, .n = n, .k = k, .taps = 1, .a_row = k, .a_col = 1, .b_raw = raw, .is_whole = true, .cache = l2
    };
    const int count = gemm_tactics(level, &s, list);
    float *a = floats((size_t)(m * k)), *b = floats((size_t)(n * k)), *c = floats((size_t)(m * n));
    float *bias = floats((size_t)n);
    double time[GEMM_TACTICS_MAX];
    char text[GEMM_TACTICS_MAX][64];
    for (int i = 0; i < count; i++) {
        float *packed = floats(gemm_pack_size(level, list[i], 1, k, n) / sizeof(float));
        gemm_pack(level, list[i], 1, k, n, b, 0, n, 1, packed);
        gemm_job j = { .p = { .isa = level,
                              .tactic = list[i],
                              .m = m,
                              .n = n,
                              .k = k,
                              .a = a,
                              .a_row = k,
                              .a_col = 1,
                              .b = raw ? b : packed,
                              .b_raw = raw,
                              .b_row = transposed ? 1 : n,
                              .b_col = transposed ? k : 1,
                              .c = c,
                              .ldc = n,
                              .epilogue = { .bias = bias, .clip = true, .hi = INFINITY } } };
        j.scratch = aligned_alloc(64, gemm_scratch_size(&j.p) + 64);
        const size_t copied = gemm_copied_size(&j.p);
        if (copied) j.copied = aligned_alloc(64, copied);
        time[i] = best_time(gemm_job_run, &j);
        (void)gemm_tactic_print(text[i], sizeof text[i], level, list[i]);
        free(j.copied);
        free(j.scratch);
        free(packed);
    }
    report(name, 2.0 * (double)m * (double)n * (double)k, time, text, count);
    free(a);
    free(b);
    free(c);
    free(bias);
}

typedef struct conv_job {
    conv_params p;
    void *scratch, *workspace;
} conv_job;
static void conv_job_run(void *v)
{
    conv_job *j = v;
    for (int phase = 0; phase < conv_phase_count(&j->p); phase++) {
        conv_run(&j->p, phase, 0, conv_tile_count(&j->p, phase), j->workspace, j->scratch, NULL);
    }
}

/* How a convolution differs from the usual one. */
enum { PLANAR = 1, RESIDUAL = 2 };

static void bench_conv(const char *name, int64_t size, int64_t c_in, int64_t c_out, int64_t kernel, int64_t stride,
                       int64_t groups, int flags)
{
    const bool planar = flags & PLANAR;
    if (!strstr(name, filter)) return;
    const int64_t pad = kernel / 2 - (kernel == 6 ? 1 : 0), out = (size + 2 * pad - kernel) / stride + 1;
    const conv_shape s = {
        .images = 1,
        .groups = groups,
        .c_in = c_in,
        .c_out = c_out,
        .in = { 1, size, size },
        .out = { 1, out, out },
        .kernel = { 1, kernel, kernel },
        .stride = { 1, stride, stride },
        .dilation = { 1, 1, 1 },
        .pad = { 0, pad, pad },
        .x_image = size * size * c_in,
        .x_dim = { 0, planar ? size : size * c_in, planar ? 1 : c_in },
        .x_c = planar ? size * size : 1,
    };
    conv_tactic list[CONV_TACTICS_MAX];
    const int count = conv_tactics(level, &s, list);
    float *x = floats((size_t)(size * size * c_in)), *w = floats((size_t)(c_out * c_in * kernel * kernel));
    float *y = floats((size_t)(out * out * c_out)), *bias = floats((size_t)c_out);
    float *residual = floats((size_t)(out * out * c_out));
    const int64_t w_stride[5] = { c_in / groups * kernel * kernel, kernel * kernel, kernel * kernel, kernel, 1 };
    written = x;
    written_count = (size_t)(size * size * c_in);
    double time[CONV_TACTICS_MAX];
    char text[CONV_TACTICS_MAX][64];
    for (int i = 0; i < count; i++) {
        float *packed = floats(conv_pack_size(level, &s, list[i]) / sizeof(float));
        conv_pack(level, &s, list[i], w, w_stride, packed);
        conv_job j = { .p = { .isa = level,
                              .tactic = list[i],
                              .shape = s,
                              .x = x,
                              .w = packed,
                              .y = y,
                              .ldy = c_out,
                              .epilogue = { .bias = bias,
                                            .clip = true,
                                            .hi = INFINITY,
                                            .ldr = c_out,
                                            .residual = flags & RESIDUAL ? residual : NULL } } };
        j.scratch = aligned_alloc(64, conv_scratch_size(&j.p) + 64);
        j.workspace = aligned_alloc(64, conv_workspace_size(&j.p) + 64);
        time[i] = best_time(conv_job_run, &j);
        (void)conv_tactic_print(text[i], sizeof text[i], level, list[i]);
        free(j.scratch);
        free(j.workspace);
        free(packed);
    }
    report(name, 2.0 * (double)(out * out * c_out) * (double)(c_in / groups * kernel * kernel), time, text, count);
    written = NULL;
    free(x);
    free(w);
    free(y);
    free(residual);
    free(bias);
}

typedef struct transposed_job {
    conv_transpose_params p;
    void *scratch;
} transposed_job;
static void transposed_job_run(void *v)
{
    transposed_job *j = v;
    conv_transpose_run(&j->p, 0, conv_transpose_tile_count(&j->p), j->scratch, NULL);
}

static void bench_transposed(const char *name, int64_t size, int64_t c_in, int64_t c_out, int64_t kernel,
                             int64_t stride)
{
    if (!strstr(name, filter)) return;
    const int64_t pad = (kernel - stride) / 2, out = size * stride;
    const conv_shape s = {
        .images = 1,
        .groups = 1,
        .c_in = c_in,
        .c_out = c_out,
        .in = { 1, size, size },
        .out = { 1, out, out },
        .kernel = { 1, kernel, kernel },
        .stride = { 1, stride, stride },
        .dilation = { 1, 1, 1 },
        .pad = { 0, pad, pad },
        .x_image = size * size * c_in,
        .x_dim = { 0, size * c_in, c_in },
        .x_c = 1,
    };
    gemm_tactic list[GEMM_TACTICS_MAX];
    const int count = conv_transpose_tactics(level, &s, list);
    float *x = floats((size_t)(size * size * c_in)), *w = floats((size_t)(c_out * c_in * kernel * kernel));
    float *y = floats((size_t)(out * out * c_out)), *bias = floats((size_t)c_out);
    const int64_t w_stride[5] = { c_out * kernel * kernel, kernel * kernel, kernel * kernel, kernel, 1 };
    double time[GEMM_TACTICS_MAX];
    char text[GEMM_TACTICS_MAX][64];
    for (int i = 0; i < count; i++) {
        float *packed = floats(conv_transpose_pack_size(level, &s, list[i]) / sizeof(float));
        conv_transpose_pack(level, &s, list[i], w, w_stride, packed);
        transposed_job j = { .p = { .isa = level,
                                    .tactic = list[i],
                                    .shape = s,
                                    .x = x,
                                    .w = packed,
                                    .y = y,
                                    .ldy = c_out,
                                    .epilogue = { .bias = bias } } };
        j.scratch = aligned_alloc(64, conv_transpose_scratch_size(&j.p) + 64);
        time[i] = best_time(transposed_job_run, &j);
        (void)gemm_tactic_print(text[i], sizeof text[i], level, list[i]);
        free(j.scratch);
        free(packed);
    }
    report(name, 2.0 * (double)(size * size * c_in) * (double)(c_out * kernel * kernel), time, text, count);
    written = NULL;
    free(x);
    free(w);
    free(y);
    free(bias);
}

static void depthwise_job_run(void *v)
{
    const depthwise_params *p = v;
    depthwise_run(p, 0, depthwise_tile_count(p), NULL, NULL);
}

static void bench_depthwise(const char *name, int64_t size, int64_t channels, int64_t kernel, int64_t stride)
{
    if (!strstr(name, filter)) return;
    const int64_t pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
    const depthwise_shape s = {
        .images = 1,
        .channels = channels,
        .multiplier = 1,
        .in = { size, size },
        .out = { out, out },
        .kernel = { kernel, kernel },
        .stride = { stride, stride },
        .dilation = { 1, 1 },
        .pad = { pad, pad },
        .x_image = size * size * channels,
        .x_dim = { size * channels, channels },
    };
    float *x = floats((size_t)(size * size * channels)), *w = floats((size_t)(channels * kernel * kernel));
    float *y = floats((size_t)(out * out * channels)), *bias = floats((size_t)channels);
    float *packed = floats(depthwise_pack_size(level, &s) / sizeof(float));
    const int64_t w_stride[3] = { kernel * kernel, kernel, 1 };
    depthwise_pack(level, &s, w, false, w_stride, packed);
    written = x;
    written_count = (size_t)(size * size * channels);
    depthwise_tactic list[DEPTHWISE_TACTICS_MAX];
    const int tactics = depthwise_tactics(&s, 1 << 20, list);
    const double flop = 2.0 * (double)(out * out * channels * kernel * kernel);
    const double bytes = 4.0 * (double)(size * size * channels + out * out * channels);
    for (int i = 0; i < tactics; i++) {
        depthwise_params p = { .isa = level,
                               .tactic = list[i],
                               .shape = s,
                               .x = x,
                               .w = packed,
                               .y = y,
                               .ldy = channels,
                               .epilogue = { .bias = bias, .clip = true, .hi = 6.0f } };
        const double time = best_time(depthwise_job_run, &p);
        char tactic[24];
        (void)depthwise_tactic_print(tactic, sizeof tactic, list[i]);
        printf("%-26s %-9s %9.1f us  %6.1f GFLOP/s  %6.1f GB/s\n", name, tactic, time * 1e6, flop / time * 1e-9,
               bytes / time * 1e-9);
    }
    written = NULL;
    free(x);
    free(w);
    free(y);
    free(bias);
    free(packed);
}

int main(int argc, char **argv)
{
    level = isa_level_detect();
    isa_level wanted = level;
    if (argc > 1 && isa_level_parse(argv[1], &wanted) && wanted < level) level = wanted;
    if (argc > 2) filter = argv[2];
    for (int i = 3; i < argc; i++) {
        show_all = show_all || !strcmp(argv[i], "all");
        is_cold = is_cold || !strcmp(argv[i], "cold");
    }
    l2 = (uint64_t)sysconf(_SC_LEVEL2_CACHE_SIZE);
    printf("level %s\n", isa_level_name(level));
    bench_gemm("gemm 1024x1024x1024", 1024, 1024, 1024, false, false);
    bench_gemm("gemm 128x768 k768", 128, 768, 768, false, false);
    bench_gemm("gemm 128x768 k3072", 128, 768, 3072, false, false);
    bench_gemm("gemm 128x3072 k768", 128, 3072, 768, false, false);
    bench_gemm("gemm 197x768 k768", 197, 768, 768, false, false);
    bench_gemm("gemm 384x1024 k4096", 384, 1024, 4096, false, false);
    bench_gemm("gemm 1x4096 k4096", 1, 4096, 4096, false, false);
    bench_gemm("gemm 4x1024 k1024", 4, 1024, 1024, false, false);
    bench_gemm("gemm 256x10 k512", 256, 10, 512, false, false);
    bench_gemm("gemm raw 128x64 k128", 128, 64, 128, true, false);
    bench_gemm("gemm raw-t 128x128 k64", 128, 128, 64, true, true);
    bench_gemm("gemm raw-t 197x197 k64", 197, 197, 64, true, true);
    bench_conv("resnet 3x3 64@56", 56, 64, 64, 3, 1, 1, 0);
    bench_conv("resnet 3x3 128@28", 28, 128, 128, 3, 1, 1, 0);
    bench_conv("resnet 3x3 256@14", 14, 256, 256, 3, 1, 1, 0);
    bench_conv("resnet 3x3 512@7", 7, 512, 512, 3, 1, 1, 0);
    bench_conv("resnet 3x3s2 128@56", 56, 128, 128, 3, 2, 1, 0);
    bench_conv("resnet 1x1 64-256@56", 56, 64, 256, 1, 1, 1, 0);
    bench_conv("resnet 1x1 64-256@56 +res", 56, 64, 256, 1, 1, 1, RESIDUAL);
    bench_conv("resnet 1x1 256-1024@14 +res", 14, 256, 1024, 1, 1, 1, RESIDUAL);
    bench_conv("resnet 1x1 256-64@56", 56, 256, 64, 1, 1, 1, 0);
    bench_conv("resnet 1x1 128-512@28", 28, 128, 512, 1, 1, 1, 0);
    bench_conv("resnet 1x1 1024-256@14", 14, 1024, 256, 1, 1, 1, 0);
    bench_conv("resnet 1x1 512-2048@7", 7, 512, 2048, 1, 1, 1, 0);
    bench_conv("resnet 1x1 2048-512@7", 7, 2048, 512, 1, 1, 1, 0);
    bench_conv("resnet 1x1s2 512-1024@28", 28, 512, 1024, 1, 2, 1, 0);
    bench_conv("resnet 7x7s2 3-64@224 nhwc", 224, 3, 64, 7, 2, 1, 0);
    bench_conv("resnet 7x7s2 3-64@224 nchw", 224, 3, 64, 7, 2, 1, PLANAR);
    bench_conv("mobilenet 3x3s2 3-32@224", 224, 3, 32, 3, 2, 1, PLANAR);
    bench_conv("mobilenet 1x1 16-96@112", 112, 16, 96, 1, 1, 1, 0);
    bench_conv("mobilenet 1x1 24-144@56", 56, 24, 144, 1, 1, 1, 0);
    bench_conv("mobilenet 1x1 96-24@56", 56, 96, 24, 1, 1, 1, 0);
    bench_conv("mobilenet 1x1 320-1280@7", 7, 320, 1280, 1, 1, 1, 0);
    bench_conv("yolo 6x6s2 3-32@640", 640, 3, 32, 6, 2, 1, PLANAR);
    bench_conv("yolo 3x3s2 32-64@320", 320, 32, 64, 3, 2, 1, 0);
    bench_conv("yolo 1x1 64-64@160", 160, 64, 64, 1, 1, 1, 0);
    bench_conv("yolo 3x3 64@160", 160, 64, 64, 3, 1, 1, 0);
    bench_conv("yolo 3x3 256@40", 40, 256, 256, 3, 1, 1, 0);
    bench_conv("grouped 3x3 128/32@56", 56, 128, 128, 3, 1, 32, 0);
    bench_conv("grouped 3x3 256/8@28", 28, 256, 256, 3, 1, 8, 0);
    bench_transposed("transposed 4x4s2 256-128@16", 16, 256, 128, 4, 2);
    bench_transposed("transposed 2x2s2 128-64@64", 64, 128, 64, 2, 2);
    bench_depthwise("depthwise 3x3s2 96@112", 112, 96, 3, 2);
    bench_depthwise("depthwise 3x3 32@112", 112, 32, 3, 1);
    bench_depthwise("depthwise 3x3 144@56", 56, 144, 3, 1);
    bench_depthwise("depthwise 3x3 384@14", 14, 384, 3, 1);
    bench_depthwise("depthwise 3x3 960@7", 7, 960, 3, 1);
    bench_depthwise("depthwise 5x5 240@28", 28, 240, 5, 1);
    bench_depthwise("depthwise 5x5s2 144@56", 56, 144, 5, 2);
    bench_depthwise("depthwise 7x7 96@56", 56, 96, 7, 1);
    bench_conv("light 1x1 16->96@112", 112, 16, 96, 1, 1, 1, 0);
    bench_conv("light 1x1 32->16@112", 112, 32, 16, 1, 1, 1, 0);
    bench_conv("light 1x1 96->24@56", 56, 96, 24, 1, 1, 1, 0);
    bench_conv("light 1x1 144->24@56 res", 56, 144, 24, 1, 1, 1, RESIDUAL);
    bench_conv("light 1x1 24->144@56", 56, 24, 144, 1, 1, 1, 0);
    bench_conv("light 1x1 144->40@28", 28, 144, 40, 1, 1, 1, 0);
    bench_conv("light 1x1 64->64@160", 160, 64, 64, 1, 1, 1, 0);
    bench_conv("light 3x3s2 3->32@224", 224, 3, 32, 3, 2, 1, PLANAR);
    bench_conv("light 3x3s2 3->16@224", 224, 3, 16, 3, 2, 1, PLANAR);
    bench_conv("light 6x6s2 3->32@640", 640, 3, 32, 6, 2, 1, PLANAR);
    bench_depthwise("light dw 3x3 32@112", 112, 32, 3, 1);
    bench_depthwise("light dw 3x3s2 96@112", 112, 96, 3, 2);
    bench_depthwise("light dw 3x3 144@56", 56, 144, 3, 1);
    bench_depthwise("light dw 5x5 240@28", 28, 240, 5, 1);
    return 0;
}
