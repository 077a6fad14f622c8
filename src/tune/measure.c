/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - the time of one kernel on one problem, on the device that will run it.
 *
 * Operands are made at the problem's opt shapes with the layouts it states, filled with small random values (zeros for
 * integers: they may be indices). A few warm-up runs, then batches of at least 200 us; the median batch counts. */
#include "base/os.h"
#include "tune/tune.h"

#include <stdlib.h>
#include <string.h>

enum { BATCHES = 5 };
static const uint64_t batch_ns = 200000;

typedef struct bench {
    env *e;
    arena a;
    view *in, *out;
    uint32_t *id;
    void **address;
} bench;

static bool make_view(bench *b, const problem_operand *o, view *v)
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
    const size_t size = count * sinter_dtype_bits(o->dtype) / 8 + 64;
    v->data = arena_alloc(&b->a, size, 64);
    if (!v->data) return false;
    uint32_t seed = 12345;
    if (o->dtype == SINTER_DTYPE_F32)
        for (size_t i = 0; i < count; i++) {
            seed = seed * 1664525u + 1013904223u;
            ((float *)v->data)[i] = (float)(int32_t)(seed >> 8) / (float)(1 << 23) - 1.0f;
        }
    return true;
}

static int by_time(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static sinter_status run_batches(bench *b, const tune_options *o, program *p, const program_run *run, double *ns)
{
    uint64_t start = os_time_ns();
    TRY(o->backend->program_launch(o->device, p, run));
    TRY(o->backend->program_launch(o->device, p, run));
    const uint64_t once = (os_time_ns() - start) / 2 + 1;
    const uint64_t repeats = once > batch_ns ? 1 : batch_ns / once + 1;
    double time[BATCHES];
    (void)b;
    for (uint32_t i = 0; i < BATCHES; i++) {
        start = os_time_ns();
        for (uint64_t k = 0; k < repeats; k++) TRY(o->backend->program_launch(o->device, p, run));
        time[i] = (double)(os_time_ns() - start) / (double)repeats;
    }
    qsort(time, BATCHES, sizeof *time, by_time);
    *ns = time[BATCHES / 2];
    return SINTER_OK;
}

static sinter_status measure(bench *b, const problem *p, const kernel *k, const tactic *t, const tune_options *o,
                             double *ns)
{
    env *e = b->e;
    const uint32_t count = p->count_in + p->count_out;
    b->in = ARENA_NEW(&b->a, view, p->count_in + 1);
    b->out = ARENA_NEW(&b->a, view, p->count_out + 1);
    b->id = ARENA_NEW(&b->a, uint32_t, count + 1);
    b->address = ARENA_NEW(&b->a, void *, count + 1);
    if (!b->in || !b->out || !b->id || !b->address) return FAIL_MEMORY(e, "measuring");
    for (uint32_t i = 0; i < count; i++) {
        view *v = i < p->count_in ? &b->in[i] : &b->out[i - p->count_in];
        const problem_operand *operand = i < p->count_in ? &p->in[i] : &p->out[i - p->count_in];
        if (!make_view(b, operand, v)) return FAIL_MEMORY(e, "measuring");
        b->id[i] = v->data ? i + 1 : 0;
        b->address[b->id[i]] = v->data;
        const size_t packed = i < p->count_in && operand->is_const && k->pack_size ? k->pack_size(p, t, i) : 0;
        if (packed) {
            void *bytes = arena_alloc(&b->a, packed, 64);
            if (!bytes) return FAIL_MEMORY(e, "measuring");
            k->pack(p, t, i, v, bytes);
            b->address[b->id[i]] = bytes;
            v->data = NULL;
        } else if (i >= p->count_in || !operand->is_const) {
            v->data = NULL;
        }
    }
    void *workspace = arena_alloc(&b->a, (k->workspace ? k->workspace(p, t, o->threads) : 0) + 64, 64);
    if (!workspace) return FAIL_MEMORY(e, "measuring");
    const program_step step = { .kernel = k,
                                .problem = p,
                                .tactic = t,
                                .attrs = p->attrs,
                                .count_in = p->count_in,
                                .count_out = p->count_out,
                                .in = b->in,
                                .out = b->out,
                                .in_id = b->id,
                                .out_id = b->id + p->count_in };
    program *made = NULL;
    TRY(o->backend->program_create(e, o->device, &step, 1, false, NULL, &made));
    arena scratch;
    arena_init(&scratch, e);
    const program_run run = { .address = b->address, .workspace = workspace, .e = e, .scratch = &scratch };
    const sinter_status s = run_batches(b, o, made, &run, ns);
    arena_deinit(&scratch);
    o->backend->program_destroy(e, o->device, made);
    return s;
}

sinter_status tune_measure(env *e, const problem *p, const kernel *k, const tactic *t, const tune_options *o,
                           double *ns)
{
    bench b = { .e = e };
    arena_init(&b.a, e);
    const sinter_status s = measure(&b, p, k, t, o, ns);
    arena_deinit(&b.a);
    return NOTE(e, s, "measuring %s", k->name);
}
