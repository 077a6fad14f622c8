/* SPDX-License-Identifier: Apache-2.0 */
/* row_pool_byte.c - max pooling of 8-bit codes, channels-last: the largest code is that of the largest number. */
#include "cpu/cpu_kernels.h"
#include "cpu/row.h"

#include <string.h>

enum { SPATIAL = 3 };

typedef struct record {
    bool is_signed;
    int64_t images, channels, in[SPATIAL], out[SPATIAL], kernel[SPATIAL], stride[SPATIAL], dilation[SPATIAL];
    int64_t pad[SPATIAL], x_image, x_dim[SPATIAL], y_image, y_dim[SPATIAL];
} record;

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_max_pool, "not a max pool");
    REJECT_UNLESS(p->in[0].dtype == SINTER_DTYPE_U8 || p->in[0].dtype == SINTER_DTYPE_I8, "not in 8 bits");
    REJECT_UNLESS(p->out[0].dtype == p->in[0].dtype && p->count_out == 1, "has other results");
    REJECT_UNLESS(!p->prologue && !p->epilogue, "has a program");
    REJECT_UNLESS(p->in[0].rank >= 3 && p->in[0].rank <= 2 + SPATIAL, "has no or more than three spatial axes");
    REJECT_UNLESS(row_has_channels_last(&p->in[0]) && row_has_channels_last(&p->out[0]), "not channels-last");
    REJECT_UNLESS(!p->in[0].is_gapped && !p->out[0].is_gapped, "channels are not adjacent");
    return NULL;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    const attrs_max_pool *a = p->attrs;
    double taps = 1;
    for (uint32_t i = 0; i < a->kernel.count; i++) taps *= (double)a->kernel.at[i];
    return row_operand_bytes(&p->out[0]) * taps * 0.02 / (target->threads ? target->threads : 1) + 500;
}

static size_t record_size(const problem *p, const tactic *t)
{
    (void)p, (void)t;
    return sizeof(record);
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const attrs_max_pool *a = attrs;
    const view *x = &in[0], *y = &out[0];
    const uint32_t spatial = x->rank - 2;
    *r = (record){ .is_signed = x->dtype == SINTER_DTYPE_I8,
                   .images = x->dim[0],
                   .channels = x->dim[1],
                   .x_image = x->stride[0],
                   .y_image = y->stride[0] };
    if (x->dim[1] > 1 && (x->stride[1] != 1 || y->stride[1] != 1))
        return FAIL(e, INTERNAL, "channels of a pool are not adjacent");
    for (uint32_t i = 0; i < SPATIAL; i++) r->in[i] = r->out[i] = r->kernel[i] = r->stride[i] = r->dilation[i] = 1;
    for (uint32_t i = 0; i < spatial; i++) {
        const uint32_t k = SPATIAL - spatial + i;
        r->in[k] = x->dim[2 + i];
        r->out[k] = y->dim[2 + i];
        r->kernel[k] = a->kernel.at[i];
        r->stride[k] = a->stride.at[i];
        r->dilation[k] = a->dilation.at[i];
        r->pad[k] = a->pad.at[i];
        r->x_dim[k] = x->stride[2 + i];
        r->y_dim[k] = y->stride[2 + i];
    }
    return SINTER_OK;
}

typedef struct job {
    const record *r;
    const uint8_t *x;
    uint8_t *y;
} job;

typedef int8_t codes16 __attribute__((vector_size(16)));

/* y = the larger of y and x. sign: 0x80 where codes have none, for vectors compare numbers with a sign. */
static void most(uint8_t *y, const uint8_t *x, int64_t n, uint8_t sign)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        codes16 a, b;
        memcpy(&a, x + i, sizeof a);
        memcpy(&b, y + i, sizeof b);
        const codes16 flip = (codes16){ 0 } + (int8_t)sign, is_more = (a ^ flip) > (b ^ flip);
        b = (a & is_more) | (b & ~is_more);
        memcpy(y + i, &b, sizeof b);
    }
    for (; i < n; i++) y[i] = (int8_t)(x[i] ^ sign) > (int8_t)(y[i] ^ sign) ? x[i] : y[i];
}

/* One row of pixels; windows of padding alone give the least code. */
static void rows(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    for (int64_t i = begin; i < end; i++) {
        const int64_t h = i % r->out[1], d = i / r->out[1] % r->out[0], n = i / r->out[1] / r->out[0];
        for (int64_t w = 0; w < r->out[2]; w++) {
            uint8_t *y = j->y + n * r->y_image + d * r->y_dim[0] + h * r->y_dim[1] + w * r->y_dim[2];
            memset(y, r->is_signed ? 0x80 : 0, (size_t)r->channels);
            for (int64_t a = 0; a < r->kernel[0]; a++)
                for (int64_t b = 0; b < r->kernel[1]; b++)
                    for (int64_t c = 0; c < r->kernel[2]; c++) {
                        const int64_t z = d * r->stride[0] - r->pad[0] + a * r->dilation[0],
                                      v = h * r->stride[1] - r->pad[1] + b * r->dilation[1],
                                      u = w * r->stride[2] - r->pad[2] + c * r->dilation[2];
                        if (z < 0 || z >= r->in[0] || v < 0 || v >= r->in[1] || u < 0 || u >= r->in[2]) continue;
                        const uint8_t *x = j->x + n * r->x_image + z * r->x_dim[0] + v * r->x_dim[1] + u * r->x_dim[2];
                        most(y, x, r->channels, r->is_signed ? 0 : 0x80);
                    }
        }
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { r, k->in[0], k->out[0] };
    if (r->channels && r->out[2]) row_parallel(k, r->images * r->out[0] * r->out[1], rows, &j);
    return SINTER_OK;
}

const kernel cpu_pool_byte = {
    .name = "cpu_pool_byte",
    .abi = 1,
    .is_strided_out = true,
    .reject = reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record_size = record_size,
    .bind = bind,
    .run = run,
};
