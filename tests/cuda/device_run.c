/* SPDX-License-Identifier: Apache-2.0 */
/* device_run.c - a kernel on a GPU: operands laid out, launched once or often, and everything looked at afterwards. */
#include "device_run.h"

#include "test.h"

#include <math.h>

enum { GUARD = 1024 };

static const backend *cuda(void)
{
    return backend_find("cuda");
}

sinter_status device_rig_open(device_rig *r, case_rig *cases, const char *gpu, uint32_t threads)
{
    const device_options options = { .threads = threads, .name = gpu };
    r->cases = cases;
    r->e = &cases->e;
    TRY(cuda()->open(r->e, &options, &r->device));
    cuda()->target(r->device, &r->target);
    for (uint32_t i = 0; i < DEVICE_LANES; i++) TRY(cuda()->stream_create(r->e, r->device, NULL, &r->stream[i]));
    return SINTER_OK;
}

static void drop_memory(device_rig *r)
{
    env *e = r->e;
    const backend *b = cuda();
    if (r->before) b->host_free(e, r->device, r->before, r->room);
    for (uint32_t i = 0; i < DEVICE_LANES; i++) {
        if (r->after[i]) b->host_free(e, r->device, r->after[i], r->room);
        if (r->slab[i]) b->memory_free(e, r->device, r->slab[i], r->room);
        r->after[i] = r->slab[i] = NULL;
    }
    r->before = NULL;
    r->room = 0;
}

/* Room for an image of the operands on both sides, kept for the next. */
static bool room_for(device_rig *r, size_t size)
{
    if (size <= r->room) return true;
    env *e = r->e;
    drop_memory(r);
    size += size / 2;
    r->room = size;
    r->before = cuda()->host_alloc(e, r->device, size);
    bool is_there = r->before != NULL;
    for (uint32_t i = 0; i < DEVICE_LANES; i++) {
        r->after[i] = cuda()->host_alloc(e, r->device, size);
        r->slab[i] = cuda()->memory_alloc(e, r->device, size);
        is_there = is_there && r->after[i] && r->slab[i];
    }
    return is_there;
}

/* ---- operands in memory ---- */

/* Where an operand is: in the image of all, or, where they lie apart, in memory of its own. */
typedef struct spot {
    const char *kind; /* "input", "result" */
    uint32_t index;
    size_t at, size, total; /* total: what an allocation of its own has */
    bool is_written;
    unsigned char *own[DEVICE_LANES];
} spot;

typedef struct layout {
    spot spot[2 * CASE_OPERANDS + 1];
    uint32_t count;
    size_t size;
    spot *in[CASE_OPERANDS], *out[CASE_OPERANDS], *workspace;
    view in_view[CASE_OPERANDS], out_view[CASE_OPERANDS];
} layout;

static spot *place(layout *m, const char *kind, uint32_t index, size_t size, size_t shift, bool is_written)
{
    spot *s = &m->spot[m->count++];
    *s = (spot){ .kind = kind, .index = index, .size = size, .is_written = is_written };
    s->at = size_align(m->size + GUARD, 256) + shift;
    s->total = size_align(size + shift, 16);
    m->size = size_align(s->at + size, 16);
    return s;
}

/* Operands that are gapped may begin anywhere. */
static size_t shift_of(const problem_operand *o)
{
    return o->is_gapped ? sinter_dtype_bits(o->dtype) / 8 : 0;
}

/* Lays the operands out and fills r->before. NULL, or what is wrong. */
static const char *lay_out(device_rig *r, const kernel *k, const tactic *t, case_trial *x, layout *m)
{
    const problem *p = x->p;
    const void *from[CASE_OPERANDS] = { 0 };
    *m = (layout){ 0 };
    for (uint32_t i = 0; i < p->count_in; i++) {
        m->in_view[i] = x->in[i];
        m->in_view[i].data = NULL;
        if (p->in[i].dtype == SINTER_DTYPE_NONE) continue;
        const size_t packed = p->in[i].is_const && k->pack_size ? k->pack_size(p, t, i) : 0;
        from[i] = x->in[i].data;
        if (packed) {
            void *at = case_guarded(r->cases, packed, 0xFF);
            k->pack(p, t, i, &x->in[i], at);
            if (!case_guards_hold(at, packed, 0xFF)) return "packing wrote beyond its size";
            from[i] = at;
        } else if (p->in[i].is_const) {
            m->in_view[i].data = x->in[i].data;
        }
        m->in[i] = place(m, "input", i, packed ? packed : x->in_size[i], packed ? 0 : shift_of(&p->in[i]), false);
    }
    for (uint32_t i = 0; i < p->count_out; i++) {
        m->out_view[i] = x->out[i];
        m->out_view[i].data = NULL;
        if (p->out[i].dtype == SINTER_DTYPE_NONE) continue;
        m->out[i] = place(m, "result", i, x->out_size[i], shift_of(&p->out[i]), true);
    }
    const size_t book = k->workspace ? k->workspace(p, t, 1) : 0;
    if (book) m->workspace = place(m, "the workspace", 0, book, 0, true);
    m->size = size_align(m->size + GUARD, 256);
    if (!room_for(r, m->size)) return "there is no memory for the operands";
    memset(r->before, 0xFF, m->size);
    for (uint32_t i = 0; i < p->count_in; i++)
        if (m->in[i]) memcpy(r->before + m->in[i]->at, from[i], m->in[i]->size);
    for (uint32_t i = 0; i < p->count_out; i++)
        if (m->out[i] && kernel_updates(k, p, i) && m->out[i]->size == x->in_size[i])
            memcpy(r->before + m->out[i]->at, x->in[i].data, x->in_size[i]);
    return NULL;
}

/* An operand without elements has an address, too. */
static size_t apart_size(const spot *s)
{
    return s->total ? s->total : 1;
}

static bool alloc_apart(device_rig *r, layout *m)
{
    for (uint32_t i = 0; i < m->count; i++)
        for (uint32_t lane = 0; lane < DEVICE_LANES; lane++) {
            unsigned char *at = cuda()->memory_alloc(r->e, r->device, apart_size(&m->spot[i]));
            if (!at) return false;
            m->spot[i].own[lane] = at + m->spot[i].at % 256;
        }
    return true;
}

static void free_apart(device_rig *r, layout *m)
{
    for (uint32_t i = 0; i < m->count; i++)
        for (uint32_t lane = 0; lane < DEVICE_LANES; lane++)
            if (m->spot[i].own[lane])
                cuda()->memory_free(r->e, r->device, m->spot[i].own[lane] - m->spot[i].at % 256,
                                    apart_size(&m->spot[i]));
}

static void *address(const device_rig *r, const spot *s, uint32_t lane)
{
    return !s ? NULL : s->own[lane] ? s->own[lane] : r->slab[lane] + s->at;
}

/* The image, or each operand, to the device or back. */
static sinter_status move(device_rig *r, const layout *m, uint32_t lane, bool is_back)
{
    const copy_kind kind = is_back ? COPY_FROM_DEVICE : COPY_TO_DEVICE;
    unsigned char *host = is_back ? r->after[lane] : r->before;
    if (!r->is_separate)
        return cuda()->copy(r->e, r->device, r->stream[lane], kind, is_back ? host : r->slab[lane],
                            is_back ? r->slab[lane] : host, m->size);
    if (is_back) memcpy(host, r->before, m->size);
    sinter_status s = SINTER_OK;
    for (uint32_t i = 0; i < m->count && s == SINTER_OK; i++) {
        unsigned char *at = host + m->spot[i].at, *there = m->spot[i].own[lane];
        s = cuda()->copy(r->e, r->device, r->stream[lane], kind, is_back ? at : there, is_back ? there : at,
                         m->spot[i].size);
    }
    return s;
}

/* ---- checking ---- */

static const char *say_where(const layout *m, size_t at, char *why, size_t size)
{
    for (uint32_t i = 0; i < m->count; i++) {
        const spot *s = &m->spot[i];
        if (at < s->at || at >= s->at + s->size + GUARD) continue;
        if (at < s->at + s->size)
            (void)snprintf(why, size, "wrote into %s %u at byte %zu", s->kind, s->index, at - s->at);
        else
            (void)snprintf(why, size, "wrote %zu bytes behind the end of %s %u", at - s->at - s->size, s->kind,
                           s->index);
        return why;
    }
    return "wrote before its first operand";
}

/* NULL, or what is wrong with the image that came back. What may have been written is as before afterwards. */
static const char *check_image(device_rig *r, const kernel *k, case_trial *x, layout *m, uint32_t lane, char *why,
                               size_t size)
{
    unsigned char *after = r->after[lane];
    for (uint32_t i = 0; i < x->p->count_out; i++)
        if (m->out[i]) x->out[i].data = after + m->out[i]->at;
    const char *wrong = case_check(r->cases, x, k->numerics, why, size);
    if (wrong) return wrong;
    for (uint32_t i = 0; i < m->count; i++)
        if (m->spot[i].is_written) memcpy(after + m->spot[i].at, r->before + m->spot[i].at, m->spot[i].size);
    if (memcmp(after, r->before, m->size) == 0) return NULL;
    size_t at = 0;
    while (after[at] == r->before[at]) at++;
    return say_where(m, at, why, size);
}

/* ---- running ---- */

typedef struct running {
    const kernel *kernel;
    layout m;
    case_trial *x;
    program *program[DEVICE_LANES];
    void *addresses[DEVICE_LANES][2 * CASE_OPERANDS + 1];
    char *why;
    size_t why_size;
} running;

static sinter_status make_program(device_rig *r, running *n, const tactic *t, uint32_t lane, bool is_once)
{
    const problem *p = n->x->p;
    uint32_t in_id[CASE_OPERANDS] = { 0 }, out_id[CASE_OPERANDS] = { 0 }, id = 0;
    for (uint32_t i = 0; i < p->count_in; i++) {
        if (!n->m.in[i]) continue;
        in_id[i] = ++id;
        n->addresses[lane][id] = address(r, n->m.in[i], lane);
    }
    for (uint32_t i = 0; i < p->count_out; i++) {
        if (!n->m.out[i]) continue;
        out_id[i] = ++id;
        n->addresses[lane][id] = address(r, n->m.out[i], lane);
    }
    const program_step step = { .kernel = n->kernel,
                                .problem = p,
                                .tactic = t,
                                .attrs = p->attrs,
                                .count_in = p->count_in,
                                .count_out = p->count_out,
                                .in = n->m.in_view,
                                .out = n->m.out_view,
                                .in_id = in_id,
                                .out_id = out_id };
    return cuda()->program_create(r->e, r->device, &step, 1, is_once, NULL, &n->program[lane]);
}

static sinter_status launch(device_rig *r, running *n, uint32_t lane)
{
    const program_run run = { .address = n->addresses[lane],
                              .workspace = address(r, n->m.workspace, lane),
                              .e = r->e,
                              .scratch = &r->cases->scratch,
                              .stream = r->stream[lane] };
    return cuda()->program_launch(r->device, n->program[lane], &run);
}

/* Waits for the lane. NULL, or what went wrong on it. */
static const char *wait_for(device_rig *r, running *n, uint32_t lane)
{
    data_fault fault = { 0 };
    r->last = cuda()->stream_wait(r->e, r->device, r->stream[lane], &fault);
    if (r->last != SINTER_OK) return r->e->error->text;
    if (!fault.is_set) return NULL;
    (void)snprintf(n->why, n->why_size, "reports a fault: value %lld at %lld, limit %lld", (long long)fault.value,
                   (long long)fault.index, (long long)fault.limit);
    return n->why;
}

#define RUN_TRY(r, call)                                                                                               \
    do {                                                                                                               \
        (r)->last = (call);                                                                                            \
        if ((r)->last != SINTER_OK) return (r)->e->error->text;                                                        \
    } while (0)

static const char *run_once(device_rig *r, running *n)
{
    RUN_TRY(r, move(r, &n->m, 0, false));
    RUN_TRY(r, launch(r, n, 0));
    RUN_TRY(r, move(r, &n->m, 0, true));
    const char *wrong = wait_for(r, n, 0);
    return wrong ? wrong : check_image(r, n->kernel, n->x, &n->m, 0, n->why, n->why_size);
}

/* Both lanes at once, in an order that `bits` decides. */
static const char *run_both(device_rig *r, running *n, uint64_t bits)
{
    const uint32_t one = (uint32_t)bits & 1, other = 1 - one;
    uint32_t left[DEVICE_LANES] = { 1 + (uint32_t)(bits >> 1 & 3) % 3, 1 + (uint32_t)(bits >> 3 & 3) % 3 };
    RUN_TRY(r, move(r, &n->m, one, false));
    if (bits >> 5 & 1) RUN_TRY(r, launch(r, n, one));
    RUN_TRY(r, move(r, &n->m, other, false));
    for (bits >>= 6; left[0] + left[1] > 0; bits >>= 1) {
        const uint32_t wanted = (uint32_t)bits & 1, lane = left[wanted] ? wanted : 1 - wanted;
        RUN_TRY(r, launch(r, n, lane));
        left[lane]--;
    }
    RUN_TRY(r, move(r, &n->m, other, true));
    RUN_TRY(r, move(r, &n->m, one, true));
    const char *wrong = wait_for(r, n, one), *other_wrong = wait_for(r, n, other);
    return wrong ? wrong : other_wrong;
}

static const char *run_often(device_rig *r, running *n)
{
    unsigned char *first = NULL;
    bool is_unsteady = false;
    uint64_t state = 1;
    const char *wrong = NULL;
    for (uint32_t round = 0; round < r->repeat && !wrong; round++) {
        wrong = run_both(r, n, test_random(&state));
        for (uint32_t lane = 0; lane < DEVICE_LANES && !wrong; lane++) {
            const spot *w = n->m.workspace;
            if (w) memcpy(r->after[lane] + w->at, r->before + w->at, w->size);
            if (first && !memcmp(first, r->after[lane], n->m.size)) continue;
            if (first) {
                is_unsteady = true;
            } else {
                first = malloc(n->m.size);
                if (!first) exit(2);
                memcpy(first, r->after[lane], n->m.size);
            }
            wrong = check_image(r, n->kernel, n->x, &n->m, lane, n->why, n->why_size);
        }
    }
    free(first);
    if (is_unsteady) r->unsteady++;
    return wrong;
}

const char *device_rig_run(device_rig *r, const kernel *k, const tactic *t, case_trial *x, bool is_late, char *why,
                           size_t size)
{
    if (!k->check(x->p, t)) return "check refuses a tactic that tactics gave";
    const double cost = k->cost_ns ? k->cost_ns(x->p, t, &r->target) : 1;
    if (!(cost > 0) || isinf(cost)) return "the cost is no positive number";
    running *n = ARENA_NEW(&r->cases->a, running, 1);
    n->kernel = k;
    n->x = x;
    n->why = why;
    n->why_size = size;
    const char *wrong = lay_out(r, k, t, x, &n->m);
    if (!wrong && r->is_separate && !alloc_apart(r, &n->m)) wrong = "there is no memory for the operands";
    for (uint32_t lane = 0; lane < (r->repeat ? DEVICE_LANES : 1u) && !wrong; lane++) {
        r->last = make_program(r, n, t, lane, is_late && !r->repeat);
        if (r->last != SINTER_OK) wrong = r->e->error->text;
    }
    if (!wrong) wrong = r->repeat ? run_often(r, n) : run_once(r, n);
    if (wrong && wrong != why) (void)snprintf(why, size, "%s", wrong);
    for (uint32_t lane = 0; wrong && lane < DEVICE_LANES; lane++) {
        /* What was begun may not end in the memory of the next. */
        data_fault fault;
        (void)cuda()->stream_wait(r->e, r->device, r->stream[lane], &fault);
    }
    for (uint32_t lane = 0; lane < DEVICE_LANES; lane++) cuda()->program_destroy(r->e, r->device, n->program[lane]);
    free_apart(r, &n->m);
    return wrong ? why : NULL;
}

void device_rig_close(device_rig *r)
{
    if (!r->device) return;
    drop_memory(r);
    for (uint32_t i = 0; i < DEVICE_LANES; i++)
        if (r->stream[i]) cuda()->stream_destroy(r->e, r->device, r->stream[i]);
    cuda()->close(r->e, r->device);
    r->device = NULL;
}
