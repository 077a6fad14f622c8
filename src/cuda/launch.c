/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c - filling records, and the few numbers that rows share. */
#include "cuda/launch.h"

#include "cuda/device/device_args.h"

#include <assert.h>
#include <string.h>

void cuda_code_define(cuda_code *c, const char *name, int64_t value)
{
    assert(c->define_count < CODE_DEFINES);
    c->define[c->define_count++] = (cuda_define){ name, value };
}

cuda_launch *cuda_launch_add(cuda_record *r, uint32_t code, uint64_t x, uint64_t y, uint64_t z, uint32_t block,
                             uint32_t shared)
{
    if (r->count == RECORD_LAUNCHES || x > INT32_MAX || y > 65535 || z > 65535) return NULL;
    cuda_launch *l = &r->at[r->count++];
    *l = (cuda_launch){ .code = code,
                        .grid = { (uint32_t)x, (uint32_t)y, (uint32_t)z },
                        .block = block,
                        .shared = shared,
                        .patch_first = (uint16_t)r->patch_count };
    return l;
}

void *cuda_param_add(cuda_record *r, size_t size)
{
    cuda_launch *l = &r->at[r->count - 1];
    const size_t at = size_align(r->args_size, 64);
    if (!r->count || l->param_count == LAUNCH_PARAMS || at + size > RECORD_ARGS) return NULL;
    l->param[l->param_count].at = (uint16_t)at;
    l->param[l->param_count++].size = (uint16_t)size;
    r->args_size = (uint32_t)(at + size);
    return memset(r->args + at, 0, size);
}

sinter_status cuda_launch_begin(env *e, cuda_record *r, uint32_t code, uint64_t x, uint64_t y, uint64_t z,
                                uint32_t block, uint32_t shared, size_t size, void *at)
{
    void *param = NULL;
    if (r->count == RECORD_LAUNCHES) return FAIL(e, INTERNAL, "a record without room for a launch");
    if (!cuda_launch_add(r, code, x, y, z, block, shared))
        return FAIL(e, UNSUPPORTED, "a grid of %llu x %llu x %llu blocks", (unsigned long long)x, (unsigned long long)y,
                    (unsigned long long)z);
    param = cuda_param_add(r, size);
    if (!param) return FAIL(e, INTERNAL, "a record without room for the parameters of a launch");
    memcpy(at, &param, sizeof param);
    return SINTER_OK;
}

void cuda_patch_add(cuda_record *r, const void *param, size_t at, patch_kind kind, uint32_t index, int64_t offset)
{
    assert(r->patch_count < RECORD_PATCHES);
    const size_t start = (size_t)((const uint8_t *)param - r->args);
    r->patch[r->patch_count++] =
        (cuda_patch){ .at = (uint16_t)(start + at), .kind = (uint8_t)kind, .index = (uint8_t)index, .offset = offset };
    r->at[r->count - 1].patch_count++;
}

cuda_map *cuda_map_add(cuda_record *r, const void *param, size_t at)
{
    if (r->map_count == RECORD_MAPS) return NULL;
    cuda_patch_add(r, param, at, PATCH_MAP, r->map_count, 0);
    r->map[r->map_count] = (cuda_map){ 0 };
    return &r->map[r->map_count++];
}

size_t cuda_record_size(const problem *p, const tactic *t)
{
    (void)p, (void)t;
    return sizeof(cuda_record);
}

void cuda_tactics_one(const problem *p, const kernel_target *t, tactic_sink *out)
{
    (void)p, (void)t;
    out->at[out->count++] = (tactic){ 0 };
}

bool cuda_check_one(const problem *p, const tactic *t)
{
    (void)p;
    const tactic none = { 0 };
    return memcmp(t, &none, sizeof none) == 0;
}

int64_t cuda_operand_count(const problem_operand *o)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < o->rank; i++)
        if (!i64_mul(count, o->dim[i].opt, &count)) return INT64_MAX;
    return count;
}

double cuda_operand_bytes(const problem_operand *o)
{
    return o->dtype == SINTER_DTYPE_NONE ? 0 : (double)cuda_operand_count(o) * sinter_dtype_bits(o->dtype) / 8.0;
}

double cuda_cost_ns(const kernel_target *t, double bytes, double ops)
{
    const double memory = bytes / (t->bandwidth > 0 ? t->bandwidth : 1e12),
                 work = ops / (t->flops > 0 ? t->flops : 1e13);
    return 2000 + (memory > work ? memory : work) * 1e9;
}

double cuda_problem_bytes(const problem *p)
{
    double bytes = 0;
    for (uint32_t i = 0; i < p->count_in; i++) bytes += cuda_operand_bytes(&p->in[i]);
    for (uint32_t i = 0; i < p->count_out; i++) bytes += cuda_operand_bytes(&p->out[i]);
    return bytes;
}

int64_t cuda_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

int64_t cuda_range_most(dim_range d)
{
    return d.max == INT64_MAX ? d.opt : d.max;
}

uint32_t cuda_power_in(int64_t n, uint32_t most)
{
    while (most > 1 && n % most) most /= 2;
    return most;
}

uint32_t cuda_operand_inner(const problem_operand *o)
{
    for (uint32_t i = o->is_gapped ? 0 : o->rank; i-- > 0;)
        if (o->dim[o->order[i]].max != 1) return o->order[i];
    return UINT32_MAX;
}

uint32_t cuda_operand_vector(const problem_operand *o, uint32_t most)
{
    if (o->dtype == SINTER_DTYPE_NONE || o->is_gapped) return 1;
    uint32_t v = most;
    if (o->is_strided) {
        /* Pitches of strided operands are multiples of 16 bytes: backend.alignment. */
        const uint32_t bytes = sinter_dtype_bits(o->dtype) / 8;
        while (v > 1 && v * bytes > 16) v /= 2;
        return v;
    }
    /* Dense: the pitch of the axis outside the innermost is the innermost size, and the others are multiples of it. */
    uint32_t k = o->rank;
    while (k > 0 && o->dim[o->order[k - 1]].max == 1) k--;
    if (k <= 1) return v;
    const dim_range *d = &o->dim[o->order[k - 1]];
    return cuda_power_in(d->min == d->max ? d->min : d->divisor, v);
}

struct fast_div cuda_fast_div(int64_t d)
{
    if (d > UINT32_MAX) d = UINT32_MAX; /* quotients of 31 bits by either are 0 */
    struct fast_div f = { .d = (natural)d };
    if (d <= 1) return f;
    while ((1ull << f.shift) < (uint64_t)d) f.shift++;
    /* 31 + shift bits of quotient suffice for x < 2^31; one is taken off because mulhi takes 32. */
    f.magic = (natural)(((1ull << (31 + f.shift)) + (uint64_t)d - 1) / (uint64_t)d);
    f.shift -= 1;
    return f;
}
