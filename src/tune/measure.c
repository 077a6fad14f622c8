/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - the time of kernels on one problem, on the device that will run it.
 *
 * Operands are made once a problem, at its opt shapes with the layouts it states, filled with small random values
 * (zeros for wide integers: they may be indices; a cache's length is all of it). A few warm-up runs, then batches of at
 * least 200 us; the median batch counts. One thread's time is what it had on a processor: what other programs take does
 * not decide. Where the device has memory of its own, operands are made there, its own clock is read, and a program is
 * a chain of launches: the boundary between two is a part of a kernel's time. A step of a network finds its activations
 * in the cache, since the step before has just written them, but its weights only if those of the whole network stay
 * there: else the chain's steps take turns with copies of them. */
#include "base/os.h"
#include "tune/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 5, BATCHES_LONG = 3, BATCH_TRIES = 4, CHAIN = 16, CHAIN_MAX = 64, PATTERN = 1 << 16 };
static const double batch_ns = 2e5, chain_ns = 1e6;
static const uint64_t wake_ns = 50000000;
/* A kernel that takes so many times what the best one does is no candidate: one look is enough. */
static const double hopeless = 2;

typedef struct buffer {
    void *at;
    size_t size;
} buffer;

typedef struct operand {
    view v;          /* data: host memory, of constants and where that is the device's */
    size_t size;     /* of one copy */
    uint32_t copies; /* 0: absent */
    buffer plain;    /* on the device, as it is */
    buffer packed;   /* on the device, as the kernel in question wants it: reused while large enough */
    buffer *use;     /* which of the two; NULL: `host` */
    const void *host;
    uint32_t first_id;
    int64_t length; /* how many keys count, where the operand says that */
} operand;

struct tune_bench {
    env *e;
    arena a, t; /* of the problem, of one kernel */
    const problem *p;
    const tune_options *o;
    bool is_on_device;
    stream *stream;
    operand *at;
    uint32_t count, chain;
    buffer workspace;
};

/* ---- operands ---- */

/* Values in [-1, 1): no float type that we know overflows or drowns in them. Large operands repeat themselves. */
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

static size_t count_of(const operand *x)
{
    size_t count = 1;
    for (uint32_t i = 0; i < x->v.rank; i++) count = size_mul(count, x->v.dim[i] > 0 ? (size_t)x->v.dim[i] : 1);
    return count;
}

/* Attention over a cache is measured when that is full. */
static int64_t length_of(const problem *p, uint32_t i)
{
    const bool is_length = p->op == OP_attention && i == 4 && i < p->count_in && p->in[i].dtype == SINTER_DTYPE_I64;
    return is_length ? p->in[1].dim[2].opt : 0;
}

static bool describe(const problem_operand *o, operand *x)
{
    *x = (operand){ .v = { .dtype = o->dtype, .rank = o->rank } };
    if (o->dtype == SINTER_DTYPE_NONE) return true;
    size_t count = 1;
    for (uint32_t i = o->rank; i-- > 0;) {
        const uint32_t axis = o->order[i];
        x->v.dim[axis] = o->dim[axis].opt;
        x->v.stride[axis] = (int64_t)count;
        count = size_mul(count, (size_t)(o->dim[axis].opt > 0 ? o->dim[axis].opt : 1));
    }
    const size_t bits = size_mul(count, sinter_dtype_bits(o->dtype));
    if (bits == SIZE_MAX) return false;
    x->size = bits / 8 + 64;
    x->copies = 1;
    return true;
}

static sinter_status reserve(const tune_bench *b, buffer *to, size_t size)
{
    const backend *d = b->o->backend;
    if (to->size >= size) return SINTER_OK;
    if (to->at) d->memory_free(b->e, b->o->device, to->at, to->size);
    *to = (buffer){ .at = d->memory_alloc(b->e, b->o->device, size), .size = size };
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

/* Little of an activation goes to the device: the rest is copied there from its beginning. */
static sinter_status make_activation(tune_bench *b, operand *x, bool is_read)
{
    const size_t all = count_of(x), count = all < PATTERN ? all : PATTERN;
    const size_t bytes = count * sinter_dtype_bits(x->v.dtype) / 8;
    TRY(reserve(b, &x->plain, x->size));
    x->use = &x->plain;
    if (!is_read || !bytes) return SINTER_OK;
    void *some = arena_alloc(&b->a, bytes + 8, 64);
    if (!some) return FAIL_MEMORY(b->e, "measuring");
    fill(x->v.dtype, some, count);
    if (x->length) *(int64_t *)some = x->length;
    TRY(send(b, COPY_TO_DEVICE, x->plain.at, some, bytes));
    return repeat(b, x->plain.at, bytes, x->size);
}

static sinter_status make_operand(tune_bench *b, operand *x, bool is_const, bool is_read)
{
    if (!x->copies) return SINTER_OK;
    if (b->is_on_device && !is_const) return make_activation(b, x, is_read);
    x->v.data = arena_alloc(&b->a, x->size, 64);
    if (!x->v.data) return FAIL_MEMORY(b->e, "measuring");
    fill(x->v.dtype, x->v.data, count_of(x));
    if (x->length) *(int64_t *)x->v.data = x->length;
    return SINTER_OK;
}

/* As long a chain as takes about a millisecond; longer than usual where small weights need many copies. */
static void choose_chain(tune_bench *b, double estimate_ns)
{
    size_t weights = 0;
    kernel_target target;
    b->chain = 1;
    if (!b->is_on_device) return;
    b->o->backend->target(b->o->device, &target);
    for (uint32_t i = 0; i < b->p->count_in; i++)
        if (b->p->in[i].is_const) weights += b->at[i].size;
    const double affordable = chain_ns / (estimate_ns + 1);
    const size_t cold = tune_weights_are_cold(b->o) && weights ? (size_t)target.cache_l2 * 3 / 2 / weights + 1 : 1;
    const uint32_t wanted = cold < CHAIN ? CHAIN : cold > CHAIN_MAX ? CHAIN_MAX : (uint32_t)cold;
    b->chain = affordable < 1 ? 1 : affordable < wanted ? (uint32_t)affordable : wanted;
    const uint32_t copies = cold < b->chain ? (uint32_t)cold : b->chain;
    for (uint32_t i = 0; i < b->p->count_in; i++)
        if (b->p->in[i].is_const && b->at[i].copies) b->at[i].copies = copies;
}

bool tune_weights_are_cold(const tune_options *o)
{
    kernel_target target;
    o->backend->target(o->device, &target);
    return o->weights > target.cache_l2 / 2; /* the rest is for activations */
}

static sinter_status create(tune_bench *b, double estimate_ns)
{
    const problem *p = b->p;
    b->count = p->count_in + p->count_out;
    b->at = ARENA_NEW(&b->a, operand, b->count + 1);
    if (!b->at) return FAIL_MEMORY(b->e, "measuring");
    if (b->is_on_device) TRY(b->o->backend->stream_create(b->e, b->o->device, NULL, &b->stream));
    for (uint32_t i = 0; i < b->count; i++) {
        const bool is_in = i < p->count_in;
        if (!describe(is_in ? &p->in[i] : &p->out[i - p->count_in], &b->at[i])) return FAIL_MEMORY(b->e, "measuring");
        b->at[i].length = length_of(p, i);
        TRY(make_operand(b, &b->at[i], is_in && p->in[i].is_const, is_in));
    }
    choose_chain(b, estimate_ns);
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
    arena_init(&b->t, e);
    const uint64_t start = os_time_ns();
    const sinter_status s = create(b, estimate_ns);
    if (o->stats) o->stats->measure_ns += os_time_ns() - start;
    if (s == SINTER_OK) return SINTER_OK;
    tune_bench_destroy(b);
    *out = NULL;
    return s;
}

static void release(const tune_bench *b, const buffer *x)
{
    if (x->at) b->o->backend->memory_free(b->e, b->o->device, x->at, x->size);
}

void tune_bench_destroy(tune_bench *b)
{
    if (!b) return;
    for (uint32_t i = 0; b->at && i < b->count; i++) {
        release(b, &b->at[i].plain);
        release(b, &b->at[i].packed);
    }
    if (b->is_on_device) release(b, &b->workspace);
    if (b->stream) b->o->backend->stream_destroy(b->e, b->o->device, b->stream);
    arena_deinit(&b->t);
    arena_deinit(&b->a);
    mem_free(b->e, b, sizeof *b, _Alignof(tune_bench));
}

/* ---- one kernel ---- */

static uint32_t copies_of(const operand *x)
{
    return x->use ? x->copies : x->copies != 0;
}

/* A constant as the kernel reads it. */
static sinter_status make_constant(tune_bench *b, const kernel *k, const tactic *t, uint32_t i)
{
    operand *x = &b->at[i];
    const size_t packed = k->pack_size ? k->pack_size(b->p, t, i) : 0;
    const void *bytes = x->v.data;
    x->use = NULL;
    if (packed) {
        void *to = arena_alloc(&b->t, packed, 64);
        if (!to) return FAIL_MEMORY(b->e, "measuring");
        k->pack(b->p, t, i, &x->v, to);
        bytes = to;
    }
    x->host = bytes;
    if (!b->is_on_device) return SINTER_OK;
    const bool is_there = !packed && x->plain.at;
    const size_t pitch = size_align(packed ? packed : x->size, 256);
    x->use = packed ? &x->packed : &x->plain;
    if (is_there) return SINTER_OK;
    TRY(reserve(b, x->use, size_mul(pitch, x->copies)));
    TRY(send(b, COPY_TO_DEVICE, x->use->at, bytes, packed ? packed : x->size));
    return repeat(b, x->use->at, pitch, pitch * x->copies);
}

/* The address of each copy of each operand, by id, and the views that a binding sees. */
static sinter_status make_addresses(tune_bench *b, const kernel *k, const tactic *t, void ***out, view **views)
{
    uint32_t ids = 1;
    *views = ARENA_NEW(&b->t, view, b->count + 1);
    if (!*views) return FAIL_MEMORY(b->e, "measuring");
    for (uint32_t i = 0; i < b->count; i++) {
        operand *x = &b->at[i];
        const bool is_const = i < b->p->count_in && b->p->in[i].is_const;
        if (is_const && x->copies) TRY(make_constant(b, k, t, i));
        else x->host = x->v.data;
        (*views)[i] = x->v;
        if (!is_const || (k->pack_size && k->pack_size(b->p, t, i))) (*views)[i].data = NULL;
        x->first_id = x->copies ? ids : 0;
        ids += copies_of(x);
    }
    *out = ARENA_NEW(&b->t, void *, ids);
    if (!*out) return FAIL_MEMORY(b->e, "measuring");
    for (uint32_t i = 0; i < b->count; i++) {
        const operand *x = &b->at[i];
        const size_t packed = i < b->p->count_in && b->p->in[i].is_const && k->pack_size ? k->pack_size(b->p, t, i) : 0;
        const size_t pitch = size_align(packed ? packed : x->size, 256);
        for (uint32_t c = 0; c < copies_of(x); c++)
            (*out)[x->first_id + c] = x->use ? (char *)x->use->at + c * pitch : (void *)(uintptr_t)x->host;
    }
    return SINTER_OK;
}

static sinter_status make_program(tune_bench *b, const kernel *k, const tactic *t, const view *views, program **out)
{
    const problem *p = b->p;
    program_step *step = ARENA_NEW(&b->t, program_step, b->chain);
    uint32_t *id = ARENA_NEW(&b->t, uint32_t, (size_t)b->chain * b->count + 1);
    if (!step || !id) return FAIL_MEMORY(b->e, "measuring");
    for (uint32_t s = 0; s < b->chain; s++, id += b->count) {
        for (uint32_t i = 0; i < b->count; i++) {
            const uint32_t copies = copies_of(&b->at[i]);
            id[i] = copies ? b->at[i].first_id + s % copies : 0;
        }
        step[s] = (program_step){ .kernel = k,
                                  .problem = p,
                                  .tactic = t,
                                  .attrs = p->attrs,
                                  .count_in = p->count_in,
                                  .count_out = p->count_out,
                                  .in = views,
                                  .out = views + p->count_in,
                                  .in_id = id,
                                  .out_id = id + p->count_in,
                                  .index = s };
    }
    return b->o->backend->program_create(b->e, b->o->device, step, b->chain, false, NULL, out);
}

/* ---- the clock ---- */

typedef struct timing {
    const tune_bench *b;
    program *program;
    program_run run;
    double limit_ns; /* of one launch of the program */
} timing;

/* The mean of `repeats` launches. */
static sinter_status time_once(const timing *t, uint32_t repeats, double *ns)
{
    const tune_options *o = t->b->o;
    if (o->backend->program_time) return o->backend->program_time(o->device, t->program, &t->run, repeats, ns);
    const bool is_alone = o->threads == 1;
    const uint64_t start = is_alone ? os_busy_ns() : os_time_ns();
    for (uint32_t k = 0; k < repeats; k++) TRY(o->backend->program_launch(o->device, t->program, &t->run));
    *ns = (double)((is_alone ? os_busy_ns() : os_time_ns()) - start) / repeats;
    return SINTER_OK;
}

/* Does the device run slower now than it did before? Then times of now are not those of then. */
static bool is_slowed(const tune_options *o)
{
    device_clock now;
    tune_stats *s = o->stats;
    if (!s || !o->backend->clock || !o->backend->clock(o->device, &now)) return false;
    if (!s->clock_low || now.mhz < s->clock_low) s->clock_low = now.mhz;
    if (now.mhz > s->clock_high) s->clock_high = now.mhz;
    s->was_throttled = s->was_throttled || now.is_throttled;
    return now.mhz * 100ull < s->clock_high * (now.is_throttled ? 97ull : 90ull);
}

/* Measured again while the clock is low, a few times. */
static sinter_status time_batch(const timing *t, uint32_t repeats, double *ns)
{
    for (uint32_t i = 0; i < BATCH_TRIES; i++) {
        TRY(time_once(t, repeats, ns));
        if (!is_slowed(t->b->o)) return SINTER_OK;
        if (i + 1 < BATCH_TRIES) t->b->o->stats->repeated++;
    }
    t->b->o->stats->doubtful++;
    return SINTER_OK;
}

/* While kernels were compiled the device had nothing to do and slowed down; getting up takes it longer than a kernel's
 * warm-up lasts. So the first one of a build keeps it busy for a while. */
static sinter_status wake_up(const timing *t)
{
    const tune_stats *s = t->b->o->stats;
    const uint64_t start = os_time_ns();
    double ns = 0;
    while (s && !s->measured && os_time_ns() - start < wake_ns)
        TRY(time_once(t, ns > 0 && ns < chain_ns ? (uint32_t)(chain_ns / (ns + 1)) + 1 : 1, &ns));
    return SINTER_OK;
}

/* A device that was idle runs slowly at first: batches until two in a row agree within 2 %, a few at most. */
static sinter_status warm_up(const timing *t, double *once)
{
    const bool has_clock = t->b->o->backend->program_time != NULL;
    double before = 0;
    if (has_clock) TRY(wake_up(t));
    if (has_clock) TRY(time_once(t, 1, once));
    TRY(time_once(t, 2, once));
    for (uint32_t i = 0; has_clock && i < 8 && fabs(*once - before) > 0.02 * before && *once < t->limit_ns; i++) {
        before = *once;
        const double wanted = chain_ns / (before + 1);
        TRY(time_once(t, wanted < 1 ? 1 : (uint32_t)wanted + 1, once));
    }
    return SINTER_OK;
}

static int by_time(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static sinter_status run_batches(const timing *t, double *ns)
{
    double once, time[BATCHES];
    TRY(warm_up(t, &once));
    *ns = once;
    if (once >= t->limit_ns) return SINTER_OK;
    const uint32_t repeats = once >= batch_ns ? 1 : (uint32_t)(batch_ns / (once + 1)) + 1;
    const uint32_t batches = once >= 5 * batch_ns ? BATCHES_LONG : BATCHES;
    for (uint32_t i = 0; i < batches; i++) TRY(time_batch(t, repeats, &time[i]));
    qsort(time, batches, sizeof *time, by_time);
    *ns = time[batches / 2];
    return SINTER_OK;
}

static sinter_status measure(tune_bench *b, const kernel *k, const tactic *t, double best_ns, timing *x, double *ns)
{
    void **address = NULL;
    view *views = NULL;
    const size_t workspace = (k->workspace ? k->workspace(b->p, t, b->o->threads) : 0) + 64;
    TRY(make_addresses(b, k, t, &address, &views));
    if (b->is_on_device) {
        TRY(reserve(b, &b->workspace, workspace));
        TRY(b->o->backend->stream_wait(b->e, b->o->device, b->stream, NULL)); /* the packed bytes have left */
    } else {
        b->workspace = (buffer){ .at = arena_alloc(&b->t, workspace, 64), .size = workspace };
        if (!b->workspace.at) return FAIL_MEMORY(b->e, "measuring");
    }
    TRY(make_program(b, k, t, views, &x->program));
    x->b = b;
    x->limit_ns = best_ns > 0 ? hopeless * best_ns * b->chain : INFINITY;
    arena scratch;
    arena_init(&scratch, b->e);
    x->run = (program_run){
        .address = address, .workspace = b->workspace.at, .e = b->e, .scratch = &scratch, .stream = b->stream
    };
    const sinter_status s = run_batches(x, ns);
    arena_deinit(&scratch);
    *ns /= b->chain;
    return s;
}

sinter_status tune_bench_time(tune_bench *b, const kernel *k, const tactic *t, double best_ns, double *ns)
{
    timing x = { 0 };
    const uint64_t start = os_time_ns();
    const arena_mark mark = arena_save(&b->t);
    const sinter_status s = measure(b, k, t, best_ns, &x, ns);
    if (x.program) b->o->backend->program_destroy(b->e, b->o->device, x.program);
    if (!b->is_on_device) b->workspace = (buffer){ 0 };
    arena_rewind(&b->t, mark);
    if (b->o->stats) b->o->stats->measured++;
    if (b->o->stats) b->o->stats->measure_ns += os_time_ns() - start;
    return NOTE(b->e, s, "measuring %s", k->name);
}
