/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - the operands on which the kernels of one problem are timed, and the programs that time.c times.
 *
 * Operands are made once a problem, at its opt shapes with the layouts it states, filled with small random values
 * (indices with any that are in range, other wide integers with zeros; a cache's length is all of it). Where the device
 * has memory of its own, operands are made there, and a program is a chain of launches: the boundary between two
 * launches is a part of a kernel's time. A step of a network finds its activations in the cache, since the step before
 * has just written them. It finds its weights there only if the weights of the whole network stay there. If they do
 * not, weights are cold: on a device each launch of the chain reads another copy of them; on the host a program is one
 * launch, and time.c evicts the weights before each. */
#include "base/os.h"
#include "ops/tree.h"
#include "tune/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHAIN = 16, CHAIN_MAX = 64, PATTERN = 1 << 16 };

/* ---- operands ---- */

/* Random values in [-1, 1), which neither overflow nor underflow in any float type. Large operands repeat a shorter
 * pattern. */
static void fill(sinter_dtype type, void *data, size_t count)
{
    uint32_t seed = 12345;
    const size_t size = sinter_dtype_bits(type) / 8;
    const bool is_byte = type == SINTER_DTYPE_I8 || type == SINTER_DTYPE_U8;
    if (!dtype_is_float(type) && !is_byte) return;
    if (count > PATTERN) fill(type, data, PATTERN);
    for (size_t at = PATTERN; at < count; at += PATTERN)
        memcpy((char *)data + at * size, data, (count - at < PATTERN ? count - at : PATTERN) * size);
    for (size_t i = 0; i < count && count <= PATTERN; i++) {
        seed = seed * 1664525u + 1013904223u;
        if (type == SINTER_DTYPE_F32) {
            ((float *)data)[i] = (float)(int32_t)(seed >> 8) / (float)(1 << 23) - 1.0f;
        } else if (type == SINTER_DTYPE_F16) { /* sign, exponent of [2^-4, 1), any mantissa */
            ((uint16_t *)data)[i] = (uint16_t)((seed >> 16 & 0x8000u) | 0x2c00u | (seed >> 9 & 0x0fffu));
        } else if (type == SINTER_DTYPE_BF16) {
            ((uint16_t *)data)[i] = (uint16_t)((seed >> 16 & 0x8000u) | 0x3d80u | (seed >> 9 & 0x01ffu));
        } else if (is_byte) {
            ((uint8_t *)data)[i] = (uint8_t)(seed >> 24);
        } else {
            return;
        }
    }
}

/* The first `count` elements. Indices, lengths and sizes lie anywhere in their range. */
static void fill_values(const operand *x, void *data, size_t count)
{
    const double least = fmax(x->values.min, 0), most = fmin(x->values.max, INT32_MAX);
    uint32_t seed = 12345;
    fill(x->v.dtype, data, count);
    if (!(least <= most) || !isfinite(x->values.max)) return;
    const uint64_t span = (uint64_t)(most - least) + 1;
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        const int64_t place = (int64_t)least + (int64_t)(seed * span >> 32);
        if (x->v.dtype == SINTER_DTYPE_I32) ((int32_t *)data)[i] = (int32_t)place;
        if (x->v.dtype == SINTER_DTYPE_I64) ((int64_t *)data)[i] = place;
    }
}

/* Attention over a cache is measured when that is full. */
static int64_t length_of(const problem *p, uint32_t i)
{
    const bool is_length = p->op == OP_attention && i == 4 && i < p->count_in && p->in[i].dtype == SINTER_DTYPE_I64;
    return is_length ? p->in[1].dim[2].opt : 0;
}

/* Elements lie in the problem's order without gaps. Lines of a strided operand begin at multiples of the alignment, as
 * they do in a run: its kernels load several elements at once. */
static bool describe(const problem_operand *o, uint32_t alignment, operand *x)
{
    const uint32_t bits = sinter_dtype_bits(o->dtype);
    *x = (operand){ .v = { .dtype = o->dtype, .rank = o->rank } };
    if (o->dtype == SINTER_DTYPE_NONE) return true;
    bool is_inner = true, is_empty = false;
    x->count = 1;
    for (uint32_t i = o->rank; i-- > 0;) {
        const uint32_t axis = o->order[i];
        x->v.dim[axis] = o->dim[axis].opt;
        x->v.stride[axis] = (int64_t)x->count;
        x->count = size_mul(x->count, (size_t)(o->dim[axis].opt > 0 ? o->dim[axis].opt : 1));
        is_empty = is_empty || o->dim[axis].opt == 0;
        if (!is_inner || o->dim[axis].max <= 1) continue;
        is_inner = false;
        if (o->is_strided && !o->is_gapped && alignment * 8 > bits)
            x->count = size_align(x->count, alignment * 8 / bits);
    }
    if (is_empty) x->count = 0;
    const size_t all = size_mul(x->count, bits);
    if (all == SIZE_MAX) return false;
    x->size = all / 8 + 64;
    x->copies = 1;
    return true;
}

static sinter_status reserve(const tune_bench *b, bench_buffer *to, size_t size)
{
    const backend *d = b->o->backend;
    if (to->size >= size) return SINTER_OK;
    if (to->at) d->memory_free(b->e, b->o->device, to->at, to->size);
    *to = (bench_buffer){ .at = d->memory_alloc(b->e, b->o->device, size), .size = size };
    if (to->at) return SINTER_OK;
    to->size = 0;
    return NOTE(b->e, b->e->error->status, "measuring");
}

static sinter_status send(const tune_bench *b, copy_kind kind, void *to, const void *from, size_t size)
{
    return b->o->backend->copy(b->e, b->o->device, b->stream, kind, to, from, size);
}

/* The first `known` bytes, over and over, up to `size`. */
static sinter_status repeat(const tune_bench *b, void *at, size_t known, size_t size)
{
    for (; known && known < size; known *= 2)
        TRY(send(b, COPY_ON_DEVICE, (char *)at + known, at, known < size - known ? known : size - known));
    return SINTER_OK;
}

/* Copies a small part of an activation to the device. The device fills the rest by copying from the beginning. */
static sinter_status make_activation(tune_bench *b, operand *x, bool is_read)
{
    const size_t count = x->count < PATTERN ? x->count : PATTERN;
    const size_t bytes = count * sinter_dtype_bits(x->v.dtype) / 8;
    TRY(reserve(b, &x->plain, x->size));
    if (!is_read || !bytes) return SINTER_OK;
    void *some = arena_alloc(&b->a, bytes + 8, 64);
    if (!some) return FAIL_MEMORY(b->e, "measuring");
    fill_values(x, some, count);
    if (x->length) *(int64_t *)some = x->length;
    TRY(send(b, COPY_TO_DEVICE, x->plain.at, some, bytes));
    return repeat(b, x->plain.at, bytes, x->size);
}

/* Tables of trees are filled with valid trees, because their kernels check them. */
static void fill_operand(const tune_bench *b, operand *x)
{
    const problem *p = b->p;
    if (p->op != OP_tree_ensemble || x != &b->at[1] || x->v.dtype != SINTER_DTYPE_U32) {
        fill_values(x, x->v.data, x->count);
        return;
    }
    const attrs_tree_ensemble *a = p->attrs;
    const view *in = &b->at[0].v;
    tree_make(x->v.data, x->v.dim[0], a->trees, a->targets, in->dim[1], in->dtype, 1, false);
}

static sinter_status make_operand(tune_bench *b, operand *x, bool is_const, bool is_read)
{
    if (!x->copies) return SINTER_OK;
    if (b->is_on_device && !is_const) return make_activation(b, x, is_read);
    x->v.data = arena_alloc(&b->a, x->size, 64);
    if (!x->v.data) return FAIL_MEMORY(b->e, "measuring");
    fill_operand(b, x);
    if (x->length) *(int64_t *)x->v.data = x->length;
    return SINTER_OK;
}

/* How long the chain of a device is, and how many copies of the weights its launches read: as long as takes about a
 * millisecond, longer than usual where small weights need many copies. */
static void choose_chain(tune_bench *b, double estimate_ns)
{
    kernel_target target;
    size_t weights = 0;
    b->o->backend->target(b->o->device, &target);
    for (uint32_t i = 0; i < b->p->count_in; i++)
        if (b->p->in[i].is_const) weights += b->at[i].size;
    const double affordable = chain_ns / (estimate_ns + 1);
    const bool is_cold = tune_weights_are_cold(b->o) && weights;
    const size_t copies = is_cold ? (size_t)(target.cache_last * 3 / 2 / weights) + 1 : 1;
    const uint32_t wanted = copies < CHAIN ? CHAIN : copies > CHAIN_MAX ? CHAIN_MAX : (uint32_t)copies;
    b->chain = affordable < 1 ? 1 : affordable < wanted ? (uint32_t)affordable : wanted;
    for (uint32_t i = 0; i < b->p->count_in; i++)
        if (b->p->in[i].is_const && b->at[i].copies) b->at[i].copies = copies < b->chain ? (uint32_t)copies : b->chain;
}

bool tune_weights_are_cold(const tune_options *o)
{
    kernel_target target;
    o->backend->target(o->device, &target);
    return o->weights > target.cache_last / 2; /* the rest is for activations */
}

static sinter_status create(tune_bench *b, double estimate_ns)
{
    const problem *p = b->p;
    b->count = p->count_in + p->count_out;
    b->at = ARENA_NEW(&b->a, operand, b->count + 1);
    b->packed = ARENA_NEW(&b->a, bench_buffer, b->count + 1);
    value_range *values = ARENA_NEW(&b->a, value_range, p->count_in + 1);
    if (!b->at || !b->packed || !values) return FAIL_MEMORY(b->e, "measuring");
    problem_values(b->e, p, values);
    if (b->is_on_device) TRY(b->o->backend->stream_create(b->e, b->o->device, NULL, &b->stream));
    for (uint32_t i = 0; i < b->count; i++) {
        const bool is_in = i < p->count_in;
        const problem_operand *o = is_in ? &p->in[i] : &p->out[i - p->count_in];
        if (!describe(o, b->o->backend->alignment, &b->at[i])) return FAIL_MEMORY(b->e, "measuring");
        b->at[i].length = length_of(p, i);
        if (is_in) b->at[i].values = values[i];
    }
    b->chain = 1;
    b->is_cold = !b->is_on_device && tune_weights_are_cold(b->o);
    if (b->is_on_device) choose_chain(b, estimate_ns);
    for (uint32_t i = 0; i < b->count; i++) {
        const bool is_in = i < p->count_in;
        TRY(make_operand(b, &b->at[i], is_in && p->in[i].is_const, is_in));
    }
    return b->is_on_device ? b->o->backend->stream_wait(b->e, b->o->device, b->stream, NULL) : SINTER_OK;
}

sinter_status tune_bench_create(env *e, const problem *p, const tune_options *o, double estimate_ns, tune_bench **out)
{
    tune_bench *b = mem_zalloc(e, sizeof *b, _Alignof(tune_bench));
    *out = b;
    if (!b) return FAIL_MEMORY(e, "measuring");
    b->e = e;
    b->p = p;
    b->o = o;
    b->is_on_device = o->backend->copy != NULL;
    arena_init(&b->a, e);
    const uint64_t start = os_time_ns();
    const sinter_status s = create(b, estimate_ns);
    if (o->stats) o->stats->measure_ns += os_time_ns() - start;
    if (s == SINTER_OK) return SINTER_OK;
    tune_bench_destroy(b);
    *out = NULL;
    return s;
}

static void release(const tune_bench *b, const bench_buffer *x)
{
    if (x->at) b->o->backend->memory_free(b->e, b->o->device, x->at, x->size);
}

void tune_bench_destroy(tune_bench *b)
{
    if (!b) return;
    for (uint32_t i = 0; b->at && b->packed && i < b->count; i++) {
        release(b, &b->at[i].plain);
        release(b, &b->packed[i]);
    }
    if (b->is_on_device) release(b, &b->workspace);
    if (b->stream) b->o->backend->stream_destroy(b->e, b->o->device, b->stream);
    arena_deinit(&b->a);
    mem_free(b->e, b, sizeof *b, _Alignof(tune_bench));
}

/* ---- one kernel ---- */

/* How many addresses an operand has: constants one for each copy. */
static uint32_t copies_of(const tune_bench *b, uint32_t i)
{
    const bool is_const = i < b->p->count_in && b->p->in[i].is_const;
    return is_const ? b->at[i].copies : b->at[i].copies != 0;
}

/* Constants of a device: at l->use. */
static sinter_status send_constant(tune_bench *b, bench_lane *l, uint32_t i, const void *bytes, size_t packed)
{
    operand *x = &b->at[i];
    const bool is_there = !packed && x->plain.at;
    const size_t pitch = size_align(packed ? packed : x->size, BENCH_PITCH);
    bench_buffer *to = packed ? &l->packed[i] : &x->plain;
    if (!is_there) {
        TRY(reserve(b, to, size_mul(pitch, x->copies)));
        TRY(send(b, COPY_TO_DEVICE, to->at, bytes, packed ? packed : x->size));
        TRY(repeat(b, to->at, pitch, pitch * x->copies));
    }
    l->base[i] = to->at;
    return SINTER_OK;
}

/* A constant as the kernel reads it. */
static sinter_status make_constant(tune_bench *b, bench_lane *l, uint32_t i)
{
    operand *x = &b->at[i];
    const kernel *k = l->kernel;
    const size_t packed = k->pack_size ? k->pack_size(b->p, l->tactic, i) : 0, size = packed ? packed : x->size;
    void *bytes = x->v.data;
    l->pitch[i] = b->is_on_device ? size_align(size, BENCH_PITCH) : size;
    l->base[i] = bytes;
    if (packed) {
        bytes = arena_alloc(&l->a, packed, 64);
        if (!bytes) return FAIL_MEMORY(b->e, "measuring");
        k->pack(b->p, l->tactic, i, &x->v, bytes);
        l->base[i] = bytes;
    }
    return b->is_on_device ? send_constant(b, l, i, bytes, packed) : SINTER_OK;
}

/* The address of each copy of each operand, by id, and the views that a binding sees. */
static sinter_status make_addresses(tune_bench *b, bench_lane *l, void ***out, view **views)
{
    uint32_t ids = 1;
    const kernel *k = l->kernel;
    *views = ARENA_NEW(&l->a, view, b->count + 1);
    l->base = ARENA_NEW(&l->a, void *, b->count + 1);
    l->pitch = ARENA_NEW(&l->a, size_t, b->count + 1);
    l->first_id = ARENA_NEW(&l->a, uint32_t, b->count + 1);
    if (!*views || !l->base || !l->pitch || !l->first_id) return FAIL_MEMORY(b->e, "measuring");
    for (uint32_t i = 0; i < b->count; i++) {
        const operand *x = &b->at[i];
        const bool is_const = i < b->p->count_in && b->p->in[i].is_const;
        l->base[i] = b->is_on_device && !is_const ? x->plain.at : x->v.data;
        if (is_const && x->copies) TRY(make_constant(b, l, i));
        (*views)[i] = x->v;
        if (!is_const || (k->pack_size && k->pack_size(b->p, l->tactic, i))) (*views)[i].data = NULL;
        l->first_id[i] = x->copies ? ids : 0;
        ids += copies_of(b, i);
    }
    *out = ARENA_NEW(&l->a, void *, ids);
    if (!*out) return FAIL_MEMORY(b->e, "measuring");
    for (uint32_t i = 0; i < b->count; i++)
        for (uint32_t c = 0; c < copies_of(b, i); c++)
            (*out)[l->first_id[i] + c] = (char *)l->base[i] + c * l->pitch[i];
    return SINTER_OK;
}

static sinter_status make_program(tune_bench *b, bench_lane *l, const view *views)
{
    const problem *p = b->p;
    program_step *step = ARENA_NEW(&l->a, program_step, b->chain);
    uint32_t *id = ARENA_NEW(&l->a, uint32_t, (size_t)b->chain * b->count + 1);
    if (!step || !id) return FAIL_MEMORY(b->e, "measuring");
    for (uint32_t s = 0; s < b->chain; s++, id += b->count) {
        for (uint32_t i = 0; i < b->count; i++) {
            const uint32_t copies = copies_of(b, i);
            id[i] = copies ? l->first_id[i] + s % copies : 0;
        }
        step[s] = (program_step){ .kernel = l->kernel,
                                  .problem = p,
                                  .tactic = l->tactic,
                                  .attrs = p->attrs,
                                  .count_in = p->count_in,
                                  .count_out = p->count_out,
                                  .in = views,
                                  .out = views + p->count_in,
                                  .in_id = id,
                                  .out_id = id + p->count_in,
                                  .index = s };
    }
    return b->o->backend->program_create(b->e, b->o->device, step, b->chain, false, NULL, &l->program);
}

static sinter_status lane_make(tune_bench *b, bench_lane *l)
{
    void **address = NULL;
    view *views = NULL;
    const size_t workspace = (l->kernel->workspace ? l->kernel->workspace(b->p, l->tactic, b->o->threads) : 0) + 64;
    if (l->is_own) l->packed = ARENA_NEW(&l->a, bench_buffer, b->count + 1);
    else l->packed = b->packed;
    if (!l->packed) return FAIL_MEMORY(b->e, "measuring");
    TRY(make_addresses(b, l, &address, &views));
    if (b->is_on_device) {
        TRY(reserve(b, &b->workspace, workspace));
        TRY(b->o->backend->stream_wait(b->e, b->o->device, b->stream, NULL)); /* the packed bytes have left */
    } else {
        l->run.workspace = arena_alloc(&l->a, workspace, 64);
        if (!l->run.workspace) return FAIL_MEMORY(b->e, "measuring");
    }
    l->run.address = address;
    l->run.e = b->e;
    l->run.scratch = &l->scratch;
    l->run.stream = b->stream;
    return make_program(b, l, views);
}

sinter_status bench_lane_open(tune_bench *b, bench_lane *l, const kernel *k, const tactic *t, bool is_own)
{
    *l = (bench_lane){ .bench = b, .kernel = k, .tactic = t, .is_own = is_own };
    arena_init(&l->a, b->e);
    arena_init(&l->scratch, b->e);
    return lane_make(b, l);
}

void bench_lane_close(bench_lane *l)
{
    tune_bench *b = l->bench;
    if (!b) return;
    if (l->program) b->o->backend->program_destroy(b->e, b->o->device, l->program);
    for (uint32_t i = 0; l->is_own && l->packed && i < b->count; i++) release(b, &l->packed[i]);
    arena_deinit(&l->scratch);
    arena_deinit(&l->a);
    *l = (bench_lane){ 0 };
}
