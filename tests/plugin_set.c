/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_set.c - see plugin_set.h. It uses no function of sinter: a plugin links nothing. */
#include "plugin_set.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t count_of(const sinter_plugin_tensor *t)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++) n *= t->dim[i];
    return n;
}

static int same_order(const sinter_plugin_operand *a, const sinter_plugin_operand *b)
{
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->order[i] != b->order[i]) return 0;
    return a->rank == b->rank;
}

static int is_row_major(const sinter_plugin_operand *a)
{
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->order[i] != i) return 0;
    return 1;
}

static float half_to_float(uint16_t h)
{
    const uint32_t e = h >> 10 & 31, m = h & 1023;
    const float f = e == 31 ? (m ? NAN : INFINITY) : e ? ldexpf((float)(m | 1024), (int)e - 25) : ldexpf((float)m, -24);
    return h >> 15 ? -f : f;
}

/* One rounding, to nearest even. */
static uint16_t half_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    const float a = fabsf(f);
    if (isnan(f)) return 0x7e00;
    if (a >= 65520) return (uint16_t)(sign | 0x7c00);
    if (a < ldexpf(1, -14)) return (uint16_t)(sign | (uint16_t)lrintf(ldexpf(a, 24)));
    int e;
    const float m = frexpf(a, &e);
    return (uint16_t)(sign | (uint16_t)((e + 13) * 1024 + (int)lrintf(ldexpf(m, 11))));
}

static float load(const sinter_plugin_tensor *t, int64_t i)
{
    if (t->dtype == SINTER_DTYPE_F16) return half_to_float(((const uint16_t *)t->data)[i]);
    if (t->dtype == SINTER_DTYPE_I8) return ((const int8_t *)t->data)[i];
    return ((const float *)t->data)[i];
}

static void store(const sinter_plugin_tensor *t, int64_t i, float x)
{
    if (t->dtype == SINTER_DTYPE_F16) ((uint16_t *)t->data)[i] = half_of(x);
    else if (t->dtype == SINTER_DTYPE_I8)
        ((int8_t *)t->data)[i] = (int8_t)(x < -128 ? -128 : x > 127 ? 127 : lrintf(x));
    else ((float *)t->data)[i] = x;
}

/* The output is as the input. */
static sinter_status shapes_same(sinter_plugin_shapes *s)
{
    s->out[0] = s->in[0];
    return SINTER_OK;
}

/* ---- CustomPlugin ---- */

typedef struct params {
    float scale, bias;
} params;

static int custom_supports(const sinter_plugin_problem *p)
{
    const sinter_dtype t = p->in[0].dtype;
    return (t == SINTER_DTYPE_F32 || t == SINTER_DTYPE_F16) && p->out[0].dtype == t && same_order(p->in, p->out);
}

static uint32_t custom_tactics(const sinter_plugin_problem *p, uint32_t *list, uint32_t room)
{
    (void)p;
    for (uint32_t i = 0; i < 2 && i < room; i++) list[i] = 7 * i;
    return 2;
}

static sinter_status custom_create(const sinter_plugin_problem *p, void **state)
{
    params *x = malloc(sizeof *x);
    if (!x) return SINTER_NO_MEMORY;
    *x = (params){ (float)*(const double *)p->field[0].data, (float)*(const double *)p->field[1].data };
    *state = x;
    return SINTER_OK;
}

static void custom_destroy(void *user, void *state)
{
    (void)user;
    free(state);
}

typedef struct custom_job {
    const sinter_plugin_run *r;
    params at;
} custom_job;

static void custom_body(void *arg, uint32_t begin, uint32_t end)
{
    const custom_job *j = arg;
    const int64_t count = count_of(j->r->in);
    for (int64_t i = (int64_t)begin * 256; i < (int64_t)end * 256 && i < count; i++)
        store(j->r->out, i, load(j->r->in, i) * j->at.scale + j->at.bias);
}

static sinter_status custom_run(const sinter_plugin_run *r)
{
    const params *x = r->state;
    if (!x || (r->tactic != 0 && r->tactic != 7)) {
        (void)snprintf(r->error, r->error_size, "no state, or tactic %u", r->tactic);
        return SINTER_INTERNAL;
    }
    custom_job j = { r, *x };
    const uint32_t tiles = (uint32_t)((count_of(r->in) + 255) / 256);
    if (r->tactic) r->parallel(r->pool, tiles, custom_body, &j);
    else custom_body(&j, 0, tiles);
    return SINTER_OK;
}

/* ---- CustomKernel ---- */

static sinter_status kernel_shapes(sinter_plugin_shapes *s)
{
    if (s->in[0].rank < 1 || s->in[0].dtype != SINTER_DTYPE_F32) {
        (void)snprintf(s->error, s->error_size, "wanted are rows of f32");
        return SINTER_UNSUPPORTED;
    }
    return shapes_same(s);
}

static size_t kernel_workspace(const sinter_plugin_problem *p)
{
    size_t rows = 1;
    for (uint32_t i = 0; i + 1 < p->in[0].rank; i++) {
        const size_t size = (size_t)p->in[0].max[i];
        if (size && rows > SIZE_MAX / 8 / size) return SIZE_MAX;
        rows *= size;
    }
    return rows * sizeof(float);
}

static sinter_status kernel_run(const sinter_plugin_run *r)
{
    const int64_t columns = r->in->dim[r->in->rank - 1], rows = columns ? count_of(r->in) / columns : 0;
    const float *x = r->in->data;
    float *y = r->out->data, *mean = r->workspace;
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t k = 0; k < columns; k++) sum += x[i * columns + k];
        mean[i] = (float)(sum / (double)columns);
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++) y[i * columns + k] = x[i * columns + k] - mean[i];
    return SINTER_OK;
}

/* The same on a GPU: a thread for each row. */
static const char kernel_source[] =
    "extern \"C\" __global__ void custom_kernel(const float *x, float *y, float *mean, long long rows, long long "
    "columns)\n"
    "{\n"
    "    const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (row >= rows) return;\n"
    "    double sum = 0;\n"
    "    for (long long k = 0; k < columns; k++) sum += x[row * columns + k];\n"
    "    mean[row] = (float)(sum / (double)columns);\n"
    "    for (long long k = 0; k < columns; k++) y[row * columns + k] = x[row * columns + k] - mean[row];\n"
    "}\n";

static sinter_status kernel_launch(const sinter_plugin_problem *p, sinter_plugin_launch *l)
{
    int64_t rows = 1;
    if (p->in[0].rank < 1) return SINTER_UNSUPPORTED;
    for (uint32_t i = 0; i + 1 < p->in[0].rank; i++) {
        if (p->in[0].opt[i] && rows > INT32_MAX / p->in[0].opt[i]) return SINTER_UNSUPPORTED;
        rows *= p->in[0].opt[i];
    }
    l->block = 32;
    l->grid[0] = (uint64_t)(rows + 31) / 32;
    l->count_arg = 5;
    l->arg[0].kind = SINTER_PLUGIN_ARG_IN;
    l->arg[1].kind = SINTER_PLUGIN_ARG_OUT;
    l->arg[2].kind = SINTER_PLUGIN_ARG_WORKSPACE;
    l->arg[3] = (sinter_plugin_arg){ .kind = SINTER_PLUGIN_ARG_INT, .integer = rows };
    l->arg[4] = (sinter_plugin_arg){ .kind = SINTER_PLUGIN_ARG_INT, .integer = p->in[0].opt[p->in[0].rank - 1] };
    return SINTER_OK;
}

/* ---- CustomQuantized ---- */

static int quantized_supports(const sinter_plugin_problem *p)
{
    const sinter_dtype t = p->in[0].dtype;
    if (t != p->out[0].dtype) return 0;
    if (t == SINTER_DTYPE_F32) return is_row_major(p->in) && is_row_major(p->out);
    return (t == SINTER_DTYPE_F16 || t == SINTER_DTYPE_I8) && same_order(p->in, p->out);
}

static sinter_status quantized_run(const sinter_plugin_run *r)
{
    const float from = (float)*(const double *)r->field[0].data, to = (float)*(const double *)r->field[1].data;
    const int is_i8 = r->in->dtype == SINTER_DTYPE_I8;
    const int64_t count = count_of(r->in);
    for (int64_t i = 0; i < count; i++) {
        const float x = load(r->in, i), y = x > 0 ? x : 0;
        store(r->out, i, is_i8 ? y * from / to : y);
    }
    return SINTER_OK;
}

/* ---- CustomPairs ---- */

static sinter_status pairs_shapes(sinter_plugin_shapes *s)
{
    const int64_t k = *(const int64_t *)s->field[0].data;
    if (s->in[0].rank != 2 || s->in[0].dtype != SINTER_DTYPE_F32 || k < 1) {
        (void)snprintf(s->error, s->error_size, "rank %u and k=%lld: wanted are a matrix of f32 and k > 0",
                       s->in[0].rank, (long long)k);
        return SINTER_INVALID_MODEL;
    }
    const uint32_t n = s->in[0].dim[0], c = s->in[0].dim[1];
    s->out[0].dtype = s->out[1].dtype = SINTER_DTYPE_F32;
    s->out[0].rank = 2;
    s->out[0].dim[0] = s->apply(s->dims, SINTER_DIM_ADD, s->apply(s->dims, SINTER_DIM_MUL, n, s->constant(s->dims, 2)),
                                s->constant(s->dims, 1));
    s->out[0].dim[1] = s->apply(s->dims, SINTER_DIM_CEILDIV, c, s->constant(s->dims, k));
    if (s->count_out < 2) return SINTER_OK;
    s->out[1].rank = 1;
    s->out[1].dim[0] = s->apply(s->dims, SINTER_DIM_MIN, n, c);
    return SINTER_OK;
}

/* A checksum of the fields, so that each of them can be seen in the results. */
static double fields_sum(const sinter_plugin_run *r)
{
    const double *reals = r->field[4].data;
    const int64_t *ints = r->field[3].data;
    const uint8_t *raw = r->field[2].data;
    const char *text = r->field[1].data;
    double sum = 0;
    for (uint64_t i = 0; i < r->field[4].count; i++) sum += reals[i];
    for (uint64_t i = 0; i < r->field[3].count; i++) sum += (double)ints[i];
    for (uint64_t i = 0; i < r->field[2].count; i++) sum += raw[i];
    for (uint64_t i = 0; i < r->field[1].count; i++) sum += text[i];
    return sum;
}

static sinter_status pairs_run(const sinter_plugin_run *r)
{
    const int64_t k = *(const int64_t *)r->field[0].data, n = r->in->dim[0], c = r->in->dim[1];
    const int64_t rows = r->out->dim[0], columns = r->out->dim[1];
    const float *x = r->in->data, sum = (float)fields_sum(r);
    float *y = r->out->data;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[i * columns + j] = i / 2 < n ? x[i / 2 * c + j * k] * (i % 2 ? -1.0f : 1.0f) : sum;
    if (r->count_out < 2 || r->out[1].dtype == SINTER_DTYPE_NONE) return SINTER_OK;
    for (int64_t i = 0; i < r->out[1].dim[0]; i++) ((float *)r->out[1].data)[i] = x[i * c + i];
    return SINTER_OK;
}

/* ---- the table ---- */

static const double one = 1, zero = 0;
static const int64_t two = 2;
static const sinter_plugin_field custom_field[] = { { "scale", SINTER_PLUGIN_REAL, 1, &one },
                                                    { "bias", SINTER_PLUGIN_REAL, 1, &zero } };
static const sinter_plugin_field quantized_field[] = { { "scale_in", SINTER_PLUGIN_REAL, 1, &one },
                                                       { "scale_out", SINTER_PLUGIN_REAL, 1, &one } };
static const sinter_plugin_field pairs_field[] = { { "k", SINTER_PLUGIN_INT, 1, &two },
                                                   { "mode", SINTER_PLUGIN_TEXT, 4, "edge" },
                                                   { "table", SINTER_PLUGIN_BYTES, 3, "\0\xff\1" },
                                                   { "axes", SINTER_PLUGIN_INTS, 0, "" },
                                                   { "weights", SINTER_PLUGIN_REALS, 1, &one } };

const sinter_plugin plugin_set[PLUGIN_SET_COUNT] = {
    { .struct_size = sizeof(sinter_plugin),
      .name = "CustomPlugin",
      .field = custom_field,
      .count_field = 2,
      .in_min = 1,
      .in_max = 1,
      .out_min = 1,
      .out_max = 1,
      .shapes = shapes_same,
      .supports = custom_supports,
      .tactics = custom_tactics,
      .create = custom_create,
      .destroy = custom_destroy,
      .run = custom_run },
    { .struct_size = sizeof(sinter_plugin),
      .name = "CustomKernel",
      .version = "2",
      .in_min = 1,
      .in_max = 1,
      .out_min = 1,
      .out_max = 1,
      .shapes = kernel_shapes,
      .workspace = kernel_workspace,
      .run = kernel_run,
      .cuda_source = kernel_source,
      .cuda_kernel = "custom_kernel",
      .cuda_launch = kernel_launch },
    { .struct_size = sizeof(sinter_plugin),
      .name = "CustomQuantized",
      .space = "quant",
      .field = quantized_field,
      .count_field = 2,
      .in_min = 1,
      .in_max = 1,
      .out_min = 1,
      .out_max = 1,
      .shapes = shapes_same,
      .supports = quantized_supports,
      .run = quantized_run },
    { .struct_size = sizeof(sinter_plugin),
      .name = "CustomPairs",
      .field = pairs_field,
      .count_field = 5,
      .in_min = 1,
      .in_max = 2,
      .out_min = 1,
      .out_max = 2,
      .shapes = pairs_shapes,
      .run = pairs_run },
};
