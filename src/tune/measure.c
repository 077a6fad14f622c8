/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - the time of one kernel on one problem, on the device that will run it.
 *
 * Operands are made at the problem's opt shapes with the layouts it states, filled with small random values (zeros for
 * integers: they may be indices). A few warm-up runs, then batches of at least 200 us; the median batch counts. Where
 * the device has memory of its own the operands are copied there, and its own clock is read. */
#include "base/os.h"
#include "tune/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A device is given the kernel so often in one program: the boundary between two launches is a part of its time. */
enum { BATCHES = 5, CHAIN = 16 };
static const uint64_t batch_ns = 200000;

typedef struct bench {
    env *e;
    arena a;
    const tune_options *o;
    stream *stream;
    view *in, *out;
    uint32_t *id;
    void **address; /* by id */
    size_t *size;
    uint32_t count; /* ids whose memory is the device's: [1, count] */
    void *workspace;
    size_t workspace_size;
    program *program;
} bench;

/* Values in [-1, 1): no float type that we know overflows or drowns in them. Large operands repeat themselves. */
static void fill(const view *v, size_t count)
{
    enum { LONG = 1 << 16 };
    uint32_t seed = 12345;
    const size_t size = sinter_dtype_bits(v->dtype) / 8;
    if (count > LONG) fill(v, LONG);
    for (size_t at = LONG; at < count && dtype_is_float(v->dtype); at += LONG)
        memcpy((char *)v->data + at * size, v->data, (count - at < LONG ? count - at : LONG) * size);
    for (size_t i = 0; i < count && count <= LONG; i++) {
        seed = seed * 1664525u + 1013904223u;
        if (v->dtype == SINTER_DTYPE_F32) {
            ((float *)v->data)[i] = (float)(int32_t)(seed >> 8) / (float)(1 << 23) - 1.0f;
        } else if (v->dtype == SINTER_DTYPE_F16) { /* sign, exponent of [2^-4, 1), any mantissa */
            ((uint16_t *)v->data)[i] = (uint16_t)((seed >> 16 & 0x8000u) | 0x2c00u | (seed >> 9 & 0x0fffu));
        } else if (v->dtype == SINTER_DTYPE_BF16) {
            ((uint16_t *)v->data)[i] = (uint16_t)((seed >> 16 & 0x8000u) | 0x3d80u | (seed >> 9 & 0x01ffu));
        } else {
            return;
        }
    }
}

static bool make_view(bench *b, const problem_operand *o, view *v, size_t *size)
{
    *v = (view){ .dtype = o->dtype, .rank = o->rank };
    if (o->dtype == SINTER_DTYPE_NONE) return true;
    size_t count = 1;
    for (uint32_t i = o->rank; i-- > 0;) {
        const uint32_t axis = o->order[i];
        v->dim[axis] = o->dim[axis].opt;
        v->stride[axis] = (int64_t)count;
        count = size_mul(count, (size_t)(o->dim[axis].opt > 0 ? o->dim[axis].opt : 1));
    }
    if (count > SIZE_MAX / 16) return false;
    *size = count * sinter_dtype_bits(o->dtype) / 8 + 64;
    v->data = arena_alloc(&b->a, *size, 64);
    if (v->data) fill(v, count);
    return v->data != NULL;
}

static int by_time(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The mean of `repeats` launches. */
static sinter_status time_once(const bench *b, const program_run *run, uint32_t repeats, double *ns)
{
    const tune_options *o = b->o;
    if (o->backend->program_time) return o->backend->program_time(o->device, b->program, run, repeats, ns);
    const uint64_t start = os_time_ns();
    for (uint32_t k = 0; k < repeats; k++) TRY(o->backend->program_launch(o->device, b->program, run));
    *ns = (double)(os_time_ns() - start) / repeats;
    return SINTER_OK;
}

/* A device that was idle runs slowly at first: batches until two in a row agree within 2 %, a few at most. */
static sinter_status warm_up(const bench *b, const program_run *run, double *once)
{
    double before = 0;
    TRY(time_once(b, run, 2, once));
    for (uint32_t i = 0; b->o->backend->program_time && i < 8 && fabs(*once - before) > 0.02 * before; i++) {
        before = *once;
        const double wanted = 1e6 / (before + 1);
        TRY(time_once(b, run, wanted < 1 ? 1 : (uint32_t)wanted + 1, once));
    }
    return SINTER_OK;
}

static sinter_status run_batches(const bench *b, const program_run *run, double *ns)
{
    double once, time[BATCHES];
    TRY(warm_up(b, run, &once));
    const uint32_t repeats = once >= (double)batch_ns ? 1 : (uint32_t)((double)batch_ns / (once + 1)) + 1;
    for (uint32_t i = 0; i < BATCHES; i++) TRY(time_once(b, run, repeats, &time[i]));
    qsort(time, BATCHES, sizeof *time, by_time);
    *ns = time[BATCHES / 2];
    return SINTER_OK;
}

/* The operands where the device reads them. */
static sinter_status move_operands(bench *b, uint32_t operands)
{
    const backend *d = b->o->backend;
    for (uint32_t i = 1; i <= operands; i++, b->count++) {
        if (!b->size[i]) continue;
        void *at = d->memory_alloc(b->e, b->o->device, b->size[i]);
        const void *from = b->address[i];
        if (!at) return NOTE(b->e, b->e->error->status, "measuring");
        b->address[i] = at;
        TRY(d->copy(b->e, b->o->device, b->stream, COPY_TO_DEVICE, at, from, b->size[i]));
    }
    return d->stream_wait(b->e, b->o->device, b->stream, NULL);
}

static sinter_status measure(bench *b, const problem *p, const kernel *k, const tactic *t, double *ns)
{
    env *e = b->e;
    const tune_options *o = b->o;
    const uint32_t count = p->count_in + p->count_out;
    b->in = ARENA_NEW(&b->a, view, p->count_in + 1);
    b->out = ARENA_NEW(&b->a, view, p->count_out + 1);
    b->id = ARENA_NEW(&b->a, uint32_t, count + 1);
    b->address = ARENA_NEW(&b->a, void *, count + 1);
    b->size = ARENA_NEW(&b->a, size_t, count + 1);
    if (!b->in || !b->out || !b->id || !b->address || !b->size) return FAIL_MEMORY(e, "measuring");
    for (uint32_t i = 0; i < count; i++) {
        view *v = i < p->count_in ? &b->in[i] : &b->out[i - p->count_in];
        const problem_operand *operand = i < p->count_in ? &p->in[i] : &p->out[i - p->count_in];
        size_t size = 0;
        if (!make_view(b, operand, v, &size)) return FAIL_MEMORY(e, "measuring");
        b->id[i] = v->data ? i + 1 : 0;
        b->address[b->id[i]] = v->data;
        const size_t packed = i < p->count_in && operand->is_const && k->pack_size ? k->pack_size(p, t, i) : 0;
        if (packed) {
            void *bytes = arena_alloc(&b->a, packed, 64);
            if (!bytes) return FAIL_MEMORY(e, "measuring");
            k->pack(p, t, i, v, bytes);
            b->address[b->id[i]] = bytes;
            size = packed;
            v->data = NULL;
        } else if (i >= p->count_in || !operand->is_const) {
            v->data = NULL;
        }
        if (b->id[i]) b->size[b->id[i]] = size;
    }
    b->workspace_size = (k->workspace ? k->workspace(p, t, o->threads) : 0) + 64;
    if (o->backend->copy) {
        TRY(o->backend->stream_create(e, o->device, NULL, &b->stream));
        TRY(move_operands(b, count));
        b->workspace = o->backend->memory_alloc(e, o->device, b->workspace_size);
        if (!b->workspace) return NOTE(e, e->error->status, "measuring");
    } else {
        b->workspace = arena_alloc(&b->a, b->workspace_size, 64);
    }
    if (!b->workspace) return FAIL_MEMORY(e, "measuring");
    program_step step[CHAIN];
    const uint32_t steps = o->backend->program_time ? CHAIN : 1;
    for (uint32_t i = 0; i < steps; i++)
        step[i] = (program_step){ .kernel = k,
                                  .problem = p,
                                  .tactic = t,
                                  .attrs = p->attrs,
                                  .count_in = p->count_in,
                                  .count_out = p->count_out,
                                  .in = b->in,
                                  .out = b->out,
                                  .in_id = b->id,
                                  .out_id = b->id + p->count_in,
                                  .index = i };
    TRY(o->backend->program_create(e, o->device, step, steps, false, NULL, &b->program));
    arena scratch;
    arena_init(&scratch, e);
    const program_run run = {
        .address = b->address, .workspace = b->workspace, .e = e, .scratch = &scratch, .stream = b->stream
    };
    const sinter_status s = run_batches(b, &run, ns);
    arena_deinit(&scratch);
    *ns /= steps;
    return s;
}

sinter_status tune_measure(env *e, const problem *p, const kernel *k, const tactic *t, const tune_options *o,
                           double *ns)
{
    bench b = { .e = e, .o = o };
    const backend *d = o->backend;
    arena_init(&b.a, e);
    const sinter_status s = measure(&b, p, k, t, ns);
    if (b.program) d->program_destroy(e, o->device, b.program);
    for (uint32_t i = 1; i <= b.count; i++)
        if (b.size[i] && b.address[i]) d->memory_free(e, o->device, b.address[i], b.size[i]);
    if (d->copy && b.workspace) d->memory_free(e, o->device, b.workspace, b.workspace_size);
    if (b.stream) d->stream_destroy(e, o->device, b.stream);
    arena_deinit(&b.a);
    return NOTE(e, s, "measuring %s", k->name);
}
