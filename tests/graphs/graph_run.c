/* SPDX-License-Identifier: Apache-2.0 */
/* graph_run.c - builds a model, loads the engine and runs it in changing order, with the caller's memory between pages
 * that nobody may touch. */
#define _DEFAULT_SOURCE
#include "graph_run.h"

#include "graph_states.h"
#include "plugin_set.h"
#include "recipes.h"
#include "refits.h"
#include "test.h"
#include "isas.h"

#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- memory of the caller ---- */

typedef struct guarded {
    void *base;
    size_t pages;
    void *data;
    size_t size;
} guarded;

/* `size` bytes that end, or begin, at a page without access. */
static guarded guard_new(size_t size, bool at_end)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), inner = (size / page + 1) * page;
    guarded g = { .pages = inner + 2 * page, .size = size };
    g.base = mmap(NULL, g.pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g.base == MAP_FAILED) abort();
    (void)mprotect(g.base, page, PROT_NONE);
    (void)mprotect((char *)g.base + page + inner, page, PROT_NONE);
    g.data = (char *)g.base + page + (at_end ? inner - size : 0);
    return g;
}

static void guard_free(guarded *g)
{
    if (g->base) (void)munmap(g->base, g->pages);
    *g = (guarded){ 0 };
}

/* ---- what need not be taken ---- */

/* Valid models that are refused, and why that is accepted. Nothing else may be refused. */
static const struct {
    const char *text, *reason;
} accepted[] = {
    { "the size of the kernel is not known", "which taps a window has decides how code is made" },
    { "(real) or 2 (complex)", "whether a signal is complex decides which op it is" },
    { "and with it the length of the sequence", "how many tensors a sequence has decides what the graph is" },
    { "the last axis of the indices is", "it decides the rank of the result" },
    { "numbers of heads that are not known", "which heads share one decides what the graph is" },
    { "sizes of experts that are not known", "how weights lie in bytes depends on them" },
    { "inverses of matrices of a size that is not known", "it decides what the graph is" },
    { "a padding mask of another shape than", "whether its rows are the tokens' batch is not known while importing" },
    { "perhaps fewer than", "where there is no block to repeat, the slices would be outside" },
    { "n0_DynamicQuantizeLSTM (reshape)",
      "written as ONNX, a layer of no steps has states that are no reshape of no elements" },
    { "in one branch and rank",
      "an output of an engine has one rank; operands of other sizes can give a branch another" },
    { "the state cannot have a fixed size", "what is behind the rows of a state may have reached a result" },
    { "has a size that depends on the rows of the state", "there are no outputs of changing sizes beside a state" },
    { "is neither the input with rows behind it nor of its shape", "an output of the same rows each run is no state" },
    { "a simplified model has tensors of numbers alone", "text and lists become tensors while importing" },
};

static bool is_accepted(const char *why)
{
    for (uint32_t i = 0; i < COUNT_OF(accepted); i++)
        if (strstr(why, accepted[i].text)) return true;
    return false;
}

/* ---- one engine ---- */

/* Of an engine. Values are small, so a kernel that wants more has taken the largest sizes of all axes at once. */
static const sinter_limits few = { .memory_max = (uint64_t)1 << 28, .loop_max = 100000 };

/* What a permitted type does is judged here, so the build need not take any of it back. */
#define BUDGET 1e6

/* Memory of an output, and what its allocator was told. */
typedef struct outlet {
    guarded memory;
    bool is_asked, at_end;
    int64_t dim[SINTER_RANK_MAX];
} outlet;

/* One of the contexts that take turns. */
typedef struct lane {
    sinter_context *context;
    uint32_t profile;
    sinter_tensor set[G_IO]; /* inputs that it has; data NULL: none */
    guarded in[G_IO];
    outlet out[G_IO];
    bool is_lent; /* its activation memory is the caller's */
    guarded memory;
    sinter_status status; /* of the last run */
    sinter_error error;
} lane;
enum { LANES = 2 * G_PROFILES };

typedef struct runner {
    const gmodel *m;
    const grun *o;
    gverdict *v;
    sinter_engine *engine;
    lane lane[LANES];
    uint64_t seed;
} runner;

static bool fail(gverdict *v, const char *stage, const char *why)
{
    (void)snprintf(v->stage, sizeof v->stage, "%s", stage);
    (void)snprintf(v->text, sizeof v->text, "%.1300s", why);
    return false;
}

/* Reads a line like "12 kernels, 9 of them cached, …". */
static void count_kernels(void *user, const char *topic, const char *line)
{
    gverdict *v = user;
    uint32_t kernels, cached;
    (void)topic;
    if (sscanf(line, "%u kernels, %u of them", &kernels, &cached) != 2) return;
    v->kernels += kernels;
    v->compiled += kernels - cached;
}

/* The inputs of an environment. */
static uint32_t sample_of(const gmodel *m, uint32_t k, sinter_tensor tensor[G_IO], sinter_input_value value[G_IO])
{
    const gscope *s = &m->scope.at[0];
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->param.count && i < G_IO; i++) {
        const gvalue *v = &m->value.at[s->param.at[i]];
        const gtensor *t = v->at[k][0];
        if (gmodel_is_state_in(m, s->param.at[i])) continue;
        tensor[count] = (sinter_tensor){ .dtype = t->dtype, .rank = t->rank, .data = t->data };
        memcpy(tensor[count].dim, t->dim, sizeof t->dim);
        value[count] = (sinter_input_value){ v->name, &tensor[count] };
        count++;
    }
    return count;
}

/* Rows that are enough for any run. */
static uint64_t room_of(const gmodel *m)
{
    int64_t more = 3, past = 0;
    for (uint32_t i = 0; i < m->symbols; i++) {
        int64_t *most = i == m->past ? &past : &more;
        for (uint32_t p = 0; p < m->profiles; p++)
            if (m->symbol[i].max[p] > *most) *most = m->symbol[i].max[p];
    }
    return (uint64_t)(past + more);
}

static sinter_status build(const gmodel *m, const void *model, size_t size, const grun *o, gverdict *v,
                           sinter_buffer *out, sinter_error *error)
{
    sinter_env_options log = SINTER_ENV_OPTIONS;
    sinter_shape_range range[G_PROFILES][G_IO];
    sinter_profile profile[G_PROFILES];
    sinter_tensor tensor[G_ENVS][G_IO];
    sinter_input_value value[G_ENVS][G_IO];
    sinter_sample sample[G_ENVS];
    for (uint32_t k = 0; k < m->envs; k++)
        sample[k] = (sinter_sample){ value[k], sample_of(m, k, tensor[k], value[k]) };
    const gscope *s = &m->scope.at[0];
    for (uint32_t p = 0; p < m->profiles; p++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < s->param.count && count < G_IO; i++) {
            const gvalue *x = &m->value.at[s->param.at[i]];
            sinter_shape_range *r = &range[p][count++];
            *r = (sinter_shape_range){ .input = x->name, .rank = x->rank };
            for (uint32_t k = 0; k < x->rank; k++) {
                const gsymbol *y = x->dim[k].symbol == G_NONE ? NULL : &m->symbol[x->dim[k].symbol];
                r->min[k] = y ? y->min[p] : x->dim[k].size;
                r->opt[k] = y ? y->opt[p] : x->dim[k].size;
                r->max[k] = y ? y->max[p] : x->dim[k].size;
            }
        }
        profile[p] = (sinter_profile){ range[p], count };
    }
    log.plugins = plugin_set_shared();
    log.limits = &few; /* those of the machine that runs it, so that tactics fit */
    log.log = count_kernels;
    log.log_user = v;
    log.log_topics = "jit";
    sinter_build_options b = SINTER_BUILD_OPTIONS;
    b.env = &log;
    b.device = o->device;
    b.threads = o->threads;
    b.tune = o->tune;
    b.math = m->allow ? SINTER_MATH_FP32 : o->math;
    b.allow = m->allow;
    b.lower = SINTER_LOWER_ALWAYS;
    b.budget = BUDGET;
    b.isa = o->isa;
    b.verify = 1;
    b.stage = o->stage;
    b.profile = profile;
    b.profile_count = m->symbols ? m->profiles : 0;
    b.refittable = o->refittable && !m->allow; /* how far its outputs move is written into an engine */
    b.detail = (sinter_detail)(o->seed / 2 % 3);
    sinter_state state[G_STATES];
    for (uint32_t i = 0; i < m->states; i++)
        state[i] = (sinter_state){ m->value.at[m->state[i].in].name, m->value.at[m->state[i].out].name };
    b.state = state;
    b.state_count = m->states;
    b.capacity = m->states && m->past != G_NONE && (o->seed % 2 || m->profiles > 1) ? room_of(m) : 0;
    b.sample = sample;
    b.sample_count = m->allow & SINTER_ALLOW_INT8 || (m->allow && o->seed % 2) ? m->envs : 0;
    return sinter_build_memory(model, size, &b, out, error);
}

static bool compare(runner *r, lane *l, uint32_t k)
{
    const gscope *s = &r->m->scope.at[0];
    for (uint32_t i = 0; i < s->result.count; i++) {
        const gvalue *v = &r->m->value.at[s->result.at[i]];
        sinter_tensor t;
        sinter_error error = { 0 };
        char why[512] = "", said[700];
        if (gmodel_is_state_out(r->m, s->result.at[i])) continue;
        if (sinter_context_output(l->context, v->name, &t, &error) != SINTER_OK) return fail(r->v, "run", error.text);
        if (l->out[i].is_asked && memcmp(l->out[i].dim, t.dim, t.rank * sizeof *t.dim))
            return fail(r->v, "output", "an allocator was told other dims than the output has");
        const double gap = judge_gap(r->m, v, k, &t, why, sizeof why);
        const bool is_doubtful = gap > 1 && judge_is_doubtful(r->m, v, k);
        r->v->compared++;
        r->v->doubtful += is_doubtful;
        if (gap <= 1 || is_doubtful) continue;
        (void)snprintf(said, sizeof said, "environment %u: %s", k, why);
        return fail(r->v, "wrong", said);
    }
    return true;
}

/* An input whose shape stays may keep its memory: each run reads the memory again. */
static bool give_input(runner *r, lane *l, uint32_t i, uint32_t k)
{
    const gvalue *v = &r->m->value.at[r->m->scope.at[0].param.at[i]];
    const gtensor *t = v->at[k][0];
    sinter_error error = { 0 };
    const bool is_same = l->set[i].data && !memcmp(l->set[i].dim, t->dim, t->rank * sizeof *t->dim);
    if (is_same && test_random(&r->seed) % 3 == 0) {
        if (t->size) memcpy(l->in[i].data, t->data, t->size);
        return true;
    }
    guarded next = guard_new(t->size, test_random(&r->seed) & 1), last = l->in[i];
    if (t->size) memcpy(next.data, t->data, t->size);
    sinter_tensor x = { .dtype = t->dtype, .rank = t->rank, .data = next.data };
    memcpy(x.dim, t->dim, sizeof x.dim);
    const sinter_status s = sinter_context_set_input(l->context, v->name, &x, &error);
    guard_free(&last);
    l->in[i] = next;
    l->set[i] = x;
    return s == SINTER_OK || fail(r->v, "input", error.text);
}

static void *lend(void *user, const char *name, void *memory, size_t size, size_t align, void *stream)
{
    outlet *o = user;
    (void)name;
    (void)memory;
    (void)align;
    (void)stream;
    guard_free(&o->memory);
    o->memory = guard_new(size, o->at_end && size % align == 0);
    memset(o->memory.data, 0xA5, size);
    return o->memory.data;
}

static void hear(void *user, const char *name, const int64_t *dim, uint32_t rank)
{
    (void)name;
    memcpy(((outlet *)user)->dim, dim, rank * sizeof *dim);
}

/* An output lies in memory of its size, in memory that is asked for during the run, or in the context's. */
static bool give_output(runner *r, lane *l, uint32_t i, uint32_t k)
{
    const gvalue *v = &r->m->value.at[r->m->scope.at[0].result.at[i]];
    const size_t size = v->at[k][0]->size;
    const uint64_t way = test_random(&r->seed) % 6;
    outlet *o = &l->out[i];
    sinter_error error = { 0 };
    guarded next = { 0 };
    sinter_status s = SINTER_OK;
    const sinter_output_allocator a = { o, lend, hear };
    o->is_asked = way == 5;
    o->at_end = test_random(&r->seed) & 1;
    if (way && way < 5) {
        next = guard_new(size, o->at_end);
        if (size) memset(next.data, 0xA5, size);
    }
    if (o->is_asked) s = sinter_context_set_output_allocator(l->context, v->name, &a, SINTER_PLACE_HOST, &error);
    else s = sinter_context_set_output(l->context, v->name, next.data, next.data ? size : 0, SINTER_PLACE_HOST, &error);
    guard_free(&o->memory);
    o->memory = next;
    return s == SINTER_OK || fail(r->v, "output", error.text);
}

/* Activation memory of the size that the shapes want. */
static bool give_memory(runner *r, lane *l)
{
    enum { ALIGN = 64, FILLED = 1 << 24 };
    sinter_error error = { 0 };
    size_t size = 0;
    if (!l->is_lent) return true;
    if (sinter_context_memory_size(l->context, &size, &error) != SINTER_OK) return fail(r->v, "memory", error.text);
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    guarded next = guard_new(size, test_random(&r->seed) & 1);
    if (size) memset(next.data, 0xA5, size < FILLED ? size : FILLED);
    const sinter_status s = sinter_context_set_memory(l->context, next.data, size, &error);
    guard_free(&l->memory);
    l->memory = next;
    return s == SINTER_OK || fail(r->v, "memory", error.text);
}

/* What is said of the outputs before the run has to be true: each size is the one that the run gives, or not known. */
static bool foresee(runner *r, lane *l, uint32_t k)
{
    const gscope *s = &r->m->scope.at[0];
    sinter_error error = { 0 };
    uint32_t missing = 0;
    if (sinter_context_infer_shapes(l->context, NULL, 0, &missing, &error) != SINTER_OK)
        return fail(r->v, "shape", error.text);
    if (missing) return fail(r->v, "shape", "inputs are said to be missing, and all are given");
    for (uint32_t i = 0; i < s->result.count; i++) {
        const gvalue *v = &r->m->value.at[s->result.at[i]];
        const gtensor *t = v->at[k][0];
        if (gmodel_is_state_out(r->m, s->result.at[i])) continue;
        sinter_tensor found;
        char said[256];
        size_t most = 0;
        if (sinter_context_output_shape(l->context, v->name, &found, &error) != SINTER_OK)
            return fail(r->v, "shape", error.text);
        bool is_so = found.rank == t->rank && found.dtype == t->dtype;
        uint32_t axis = 0;
        for (uint32_t d = 0; d < t->rank && is_so && !v->is_chaotic[k]; d++) {
            is_so = found.dim[d] == -1 || found.dim[d] == t->dim[d];
            axis = d;
        }
        (void)snprintf(said, sizeof said, "environment %u: axis %u of %s is said to be %lld, and is %lld", k, axis,
                       v->name, (long long)found.dim[axis], (long long)t->dim[axis]);
        if (!is_so) return fail(r->v, "shape", said);
        const sinter_status bound = sinter_context_max_output_size(l->context, v->name, &most, &error);
        if (bound != SINTER_OK && bound != SINTER_UNSUPPORTED) return fail(r->v, "shape", error.text);
        (void)snprintf(said, sizeof said, "environment %u: %s is said to have at most %zu bytes, and has %zu", k,
                       v->name, most, t->size);
        if (bound == SINTER_OK && most < t->size && !v->is_chaotic[k]) return fail(r->v, "shape", said);
    }
    return true;
}

static bool prepare(runner *r, lane *l, uint32_t k)
{
    const gscope *s = &r->m->scope.at[0];
    for (uint32_t i = 0; i < s->param.count && i < G_IO; i++)
        if (!gmodel_is_state_in(r->m, s->param.at[i]) && !give_input(r, l, i, k)) return false;
    for (uint32_t i = 0; i < s->result.count && i < G_IO; i++)
        if (!gmodel_is_state_out(r->m, s->result.at[i]) && !give_output(r, l, i, k)) return false;
    if (test_random(&r->seed) % 2 && !foresee(r, l, k)) return false;
    return give_memory(r, l);
}

static bool finish(runner *r, lane *l, uint32_t k)
{
    const gscope *s = &r->m->scope.at[0];
    if (l->status != SINTER_OK) return fail(r->v, "run", l->error.text);
    for (uint32_t i = 0; i < s->param.count && i < G_IO; i++) {
        const gtensor *t = r->m->value.at[s->param.at[i]].at[k][0];
        if (!gmodel_is_state_in(r->m, s->param.at[i]) && t->size && memcmp(l->in[i].data, t->data, t->size))
            return fail(r->v, "memory", "a run wrote to an input");
    }
    return compare(r, l, k);
}

static void *execute(void *user)
{
    lane *l = user;
    l->error = (sinter_error){ 0 };
    l->status = sinter_context_run(l->context, &l->error);
    return NULL;
}

/* Other integers where the model may take sizes from: the run may refuse them, and the next run has to be right. */
static bool run_astray(runner *r, lane *l)
{
    const gscope *s = &r->m->scope.at[0];
    sinter_error error = { 0 };
    bool has_any = false;
    uint32_t missing = 0;
    size_t size = 0;
    for (uint32_t i = 0; i < s->param.count && i < G_IO; i++) {
        const gvalue *v = &r->m->value.at[s->param.at[i]];
        if (!v->is_explicit || v->rank > 1 || !dtype_is_int(v->dtype) || sinter_dtype_bits(v->dtype) < 8) continue;
        const int64_t count = (int64_t)(l->in[i].size * 8 / sinter_dtype_bits(v->dtype));
        for (int64_t j = 0; j < count; j++)
            if (test_random(&r->seed) % 2)
                dtype_store_i64(v->dtype, l->in[i].data, j, (int64_t)(test_random(&r->seed) % 8) - 2);
        has_any = has_any || count;
    }
    if (!has_any) return true;
    for (uint32_t i = 0; i < s->result.count && i < G_IO; i++)
        if (sinter_context_set_output(l->context, r->m->value.at[s->result.at[i]].name, NULL, 0, SINTER_PLACE_HOST,
                                      &error) != SINTER_OK)
            return fail(r->v, "output", error.text);
    sinter_status status = sinter_context_infer_shapes(l->context, NULL, 0, &missing, &error);
    if (l->is_lent && status == SINTER_OK) status = sinter_context_memory_size(l->context, &size, &error);
    if (l->is_lent && status == SINTER_OK && !give_memory(r, l)) return false;
    if (status == SINTER_OK) status = sinter_context_run(l->context, &error);
    return status != SINTER_INTERNAL || fail(r->v, "run", error.text);
}

static bool run(runner *r, lane *l, uint32_t k)
{
    if (!prepare(r, l, k)) return false;
    if (test_random(&r->seed) % 8 == 0 && (!run_astray(r, l) || !prepare(r, l, k))) return false;
    (void)execute(l);
    return finish(r, l, k);
}

/* Is an environment inside a profile's ranges? */
static bool is_within(const gmodel *m, uint32_t k, uint32_t profile)
{
    for (uint32_t i = 0; i < m->symbols; i++) {
        const gsymbol *s = &m->symbol[i];
        if (i != m->past && (s->at[k] < s->min[profile] || s->at[k] > s->max[profile])) return false;
    }
    return true;
}

static bool open_lane(runner *r, lane *l, uint32_t profile)
{
    sinter_context_options o = SINTER_CONTEXT_OPTIONS;
    sinter_error error = { 0 };
    o.profile = l->profile = profile;
    o.lazy = test_random(&r->seed) & 1;
    /* The memory that is lent is the host's. */
    o.memory = (sinter_memory)(test_random(&r->seed) % (grun_is_cuda(r->o->device) ? 2 : SINTER_MEMORY_USER + 1));
    l->is_lent = o.memory == SINTER_MEMORY_USER;
    return sinter_context_create(r->engine, &o, &l->context, &error) == SINTER_OK || fail(r->v, "context", error.text);
}

/* Takes another profile, perhaps. The inputs stay as they were given. */
static bool change_profile(runner *r, lane *l)
{
    sinter_error error = { 0 };
    if (r->m->profiles < 2 || test_random(&r->seed) % 4) return true;
    l->profile = (uint32_t)(test_random(&r->seed) % r->m->profiles);
    return sinter_context_set_profile(l->context, l->profile, &error) == SINTER_OK || fail(r->v, "context", error.text);
}

static void close_lane(lane *l)
{
    sinter_context_destroy(l->context);
    for (uint32_t i = 0; i < G_IO; i++) {
        guard_free(&l->in[i]);
        guard_free(&l->out[i].memory);
    }
    guard_free(&l->memory);
    *l = (lane){ 0 };
}

/* All contexts run at the same time, each in an environment of its own. */
static bool run_together(runner *r, uint32_t lanes)
{
    pthread_t thread[LANES];
    uint32_t env_of[LANES];
    bool is_fine = true, is_running[LANES] = { false };
    for (uint32_t i = 0; i < lanes && is_fine; i++) {
        uint32_t k = (uint32_t)(test_random(&r->seed) % r->m->envs), tries = 0;
        while (!is_within(r->m, k, r->lane[i].profile) && tries++ < r->m->envs) k = (k + 1) % r->m->envs;
        if (tries > r->m->envs) return true; /* no environment is of this profile */
        env_of[i] = k;
        is_fine = prepare(r, &r->lane[i], k);
    }
    for (uint32_t i = 0; i < lanes && is_fine; i++)
        is_running[i] = !pthread_create(&thread[i], NULL, execute, &r->lane[i]);
    for (uint32_t i = 0; i < lanes; i++)
        if (is_running[i]) (void)pthread_join(thread[i], NULL);
    for (uint32_t i = 0; i < lanes && is_fine; i++) is_fine = !is_running[i] || finish(r, &r->lane[i], env_of[i]);
    return is_fine;
}

/* Contexts of all profiles, of which some have two, run all environments, in turns, and at last together. */
static bool run_all(runner *r)
{
    const uint32_t envs = r->m->envs, profiles = r->m->profiles, turns = 2 * envs * profiles;
    const uint32_t lanes = test_random(&r->seed) % 3 ? profiles : 2 * profiles;
    bool is_fine = true;
    for (uint32_t i = 0; i < lanes && is_fine; i++) is_fine = open_lane(r, &r->lane[i], i % profiles);
    for (uint32_t turn = 0; turn < turns && is_fine; turn++) {
        const bool is_first = turn < envs * profiles;
        const uint32_t k = is_first ? turn % envs : (uint32_t)(test_random(&r->seed) % envs),
                       which = is_first ? turn / envs : (uint32_t)(test_random(&r->seed) % lanes);
        lane *l = &r->lane[which];
        is_fine = is_first || change_profile(r, l);
        if (is_fine && is_within(r->m, k, l->profile)) is_fine = run(r, l, k);
    }
    if (is_fine && lanes > 1 && !grun_is_cuda(r->o->device)) is_fine = run_together(r, lanes);
    for (uint32_t i = 0; i < lanes; i++) close_lane(&r->lane[i]);
    return is_fine;
}

/* ---- states ---- */

static bool reset(runner *r, lane *l, gheld *h)
{
    sinter_error error = { 0 };
    gheld_reset(r->m, h);
    return sinter_context_reset_state(l->context, &error) == SINTER_OK || fail(r->v, "state", error.text);
}

/* As many rows as the environment begins with. */
static bool set_rows(runner *r, lane *l, gheld *h, uint32_t k)
{
    sinter_error error = { 0 };
    sinter_state_info info;
    if (sinter_context_state(l->context, &info) != SINTER_OK || info.rows != h->rows)
        return fail(r->v, "state", "the state has another number of rows");
    if (r->m->past == G_NONE || r->m->symbol[r->m->past].at[k] == h->rows) return true;
    return sinter_context_set_rows(l->context, r->m->symbol[r->m->past].at[k], &error) == SINTER_OK ||
           fail(r->v, "state", error.text);
}

static bool run_with_state(runner *r, lane *l, gheld *h, uint32_t k)
{
    const gmodel *m = r->m;
    gmodel now;
    if (!set_rows(r, l, h, k)) return false;
    if (!gheld_judge(&now, m, h, k)) return reset(r, l, h); /* a value of the state may be no index, for one */
    r->m = &now;
    const bool is_fine = prepare(r, l, k) && (execute(l), finish(r, l, k));
    r->m = m;
    return is_fine && (gheld_take(&now, h, k) || reset(r, l, h));
}

/* Two contexts, each with a state of its own, take turns. A state stays where the profile changes. */
static bool run_states(runner *r)
{
    enum { CONTEXTS = 2, TURNS = 14 };
    gheld held[CONTEXTS];
    bool is_fine = true;
    for (uint32_t i = 0; i < CONTEXTS && is_fine; i++) {
        is_fine = open_lane(r, &r->lane[i], i % r->m->profiles);
        gheld_reset(r->m, &held[i]);
    }
    for (uint32_t turn = 0; turn < TURNS && is_fine; turn++) {
        const uint32_t which = (uint32_t)(test_random(&r->seed) % CONTEXTS),
                       k = (uint32_t)(test_random(&r->seed) % r->m->envs);
        lane *l = &r->lane[which];
        if (test_random(&r->seed) % 12 == 0) is_fine = reset(r, l, &held[which]);
        is_fine = is_fine && change_profile(r, l);
        if (is_fine && is_within(r->m, k, l->profile) && gheld_allows(r->m, &held[which], k))
            is_fine = run_with_state(r, l, &held[which], k);
    }
    for (uint32_t i = 0; i < CONTEXTS; i++) close_lane(&r->lane[i]);
    return is_fine;
}

static sinter_status build_again(void *user, const void *model, size_t size, sinter_buffer *out, sinter_error *error)
{
    runner *r = user;
    return build(r->m, model, size, r->o, r->v, out, error);
}

/* The recipe of each weight makes the same bytes, and other weights make the engine that a build with them gives. */
static bool replay(runner *r, const bytes *model)
{
    recipes_count count;
    char why[600];
    if (!recipes_hold(r->engine, model->at, model->size, NULL, &count, why, sizeof why))
        return fail(r->v, "recipe", why);
    if (count.without) return fail(r->v, "recipe", "a weight without a recipe");
    if (!r->o->refittable || r->m->allow) return true;
    return refits_hold_memory(r->engine, model->at, model->size, build_again, r, &r->v->changed, why, sizeof why) ||
           fail(r->v, "refit", why);
}

/* Takes the bytes of a model and gives those of the model that is written instead. */
static bool rewritten(const grun *o, gverdict *v, bytes *model)
{
    sinter_simplify_options s = SINTER_SIMPLIFY_OPTIONS;
    sinter_buffer out = { 0 };
    sinter_error error = { 0 };
    sinter_env_options given = SINTER_ENV_OPTIONS;
    given.plugins = plugin_set_shared();
    s.env = &given;
    s.skip_optimization = o->rewrite == G_EXPORTED;
    s.skip_constant_folding = o->rewrite == G_EXPORTED && o->seed % 2;
    if (sinter_simplify_memory(model->at, model->size, &s, &out, &error) != SINTER_OK) {
        v->is_refused = is_accepted(error.text);
        return v->is_refused ? false : fail(v, "write", error.text);
    }
    model->at = realloc(model->at, out.size);
    if (!model->at) abort();
    memcpy(model->at, out.data, out.size);
    model->size = out.size;
    sinter_buffer_free(&out);
    return true;
}

static bool has_places(const gmodel *m, gverdict *v)
{
    return (m->scope.at[0].param.count <= G_IO && m->scope.at[0].result.count <= G_IO) ||
           fail(v, "judge", "more inputs or outputs than this test can give");
}

bool grun_build(const gmodel *m, const grun *o, sinter_buffer *engine, gverdict *v)
{
    sinter_error error = { 0 };
    if (!has_places(m, v)) return false;
    bytes model = gmodel_onnx(m);
    const sinter_status s = build(m, model.at, model.size, o, v, engine, &error);
    free(model.at);
    return s == SINTER_OK || fail(v, "build", error.text);
}

bool grun_model(const gmodel *m, const grun *o, gverdict *v)
{
    sinter_buffer file = { 0 };
    sinter_error error = { 0 };
    runner r = { .m = m, .o = o, .v = v, .seed = o->seed };
    v->stage[0] = 0;
    if (!has_places(m, v)) return false;
    bytes model = gmodel_onnx(m);
    if (o->rewrite && !rewritten(o, v, &model)) {
        free(model.at);
        return v->is_refused;
    }
    if (build(m, model.at, model.size, o, v, &file, &error) != SINTER_OK) {
        free(model.at);
        v->is_refused = is_accepted(error.text);
        return v->is_refused || fail(v, "build", error.text);
    }
    sinter_engine_options options = SINTER_ENGINE_OPTIONS;
    sinter_env_options given = SINTER_ENV_OPTIONS;
    given.plugins = plugin_set_shared();
    given.limits = &few;
    options.env = &given;
    options.threads = o->threads;
    options.isa = o->isa;
    const sinter_status s = sinter_engine_load_memory(file.data, file.size, &options, &r.engine, &error);
    sinter_buffer_free(&file);
    const bool is_true = s != SINTER_OK || replay(&r, &model);
    free(model.at);
    if (s != SINTER_OK) return fail(v, "load", error.text);
    const bool is_fine = is_true && (m->states ? run_states(&r) : run_all(&r));
    sinter_engine_release(r.engine);
    return is_fine;
}

/* ---- what is tried ---- */

bool grun_is_cuda(const char *device)
{
    return device && !strncmp(device, "cuda", 4);
}

grun grun_random(uint64_t seed, const char *device)
{
    static const char *const isas[] = { TEST_ISAS, NULL };
    grun o = { .device = device, .seed = test_random(&seed) };
    o.isa = isas[test_random(&seed) % 4];
    o.tune = test_random(&seed) % 4 ? SINTER_TUNE_OFF : SINTER_TUNE_FAST;
    o.math = test_random(&seed) % 4 ? SINTER_MATH_FP32 : SINTER_MATH_EXACT;
    o.threads = 1 + (uint32_t)(test_random(&seed) % 2);
    o.refittable = o.tune == SINTER_TUNE_OFF && test_random(&seed) % 4 == 0;
    if (grun_is_cuda(device)) {
        o.isa = NULL;
        o.tune = SINTER_TUNE_OFF;
    }
    return o;
}

void grun_print(const grun *o, char *out, size_t size)
{
    (void)snprintf(out, size, "%s, isa %s, tune %s, math %s, %u threads", o->device ? o->device : "cpu",
                   o->isa ? o->isa : "any", o->tune == SINTER_TUNE_OFF ? "off" : "fast",
                   o->math == SINTER_MATH_EXACT ? "exact" : "fp32", o->threads);
}

void gverdict_class(const gverdict *v, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "%s: ", v->stage);
    for (const char *p = v->text; *p && n + 2 < size && n < 160; p++) {
        if (*p == '\n') break;
        /* Numbers, and names of values and nodes, which end in digits. */
        if (isdigit((unsigned char)*p)) {
            if (out[n - 1] != '#') out[n++] = '#';
        } else out[n++] = *p;
    }
    out[n] = 0;
    if (!strcmp(v->stage, "wrong")) (void)snprintf(out, size, "wrong%s", strstr(v->text, "has shape") ? " shape" : "");
}

bool grun_file(const char *path, const char *device)
{
    static const char *const isas[] = { TEST_ISAS };
    enum { FILE_MAX = 1 << 20 };
    env e;
    arena a;
    gmodel m;
    FILE *f = fopen(path, "rb");
    if (!f) {
        (void)printf("FAIL %s cannot be read\n", path);
        return false;
    }
    env_init(&e, NULL, NULL);
    arena_init(&a, &e);
    char *bytes_at = arena_alloc(&a, FILE_MAX, 1);
    const size_t size = fread(bytes_at, 1, FILE_MAX, f);
    (void)fclose(f);
    gmodel_init(&m, &e, &a);
    bool is_fine = gmodel_parse(&m, bytes_at, size);
    for (uint32_t k = 0; k < m.envs && is_fine; k++) is_fine = judge_model(&m, k);
    if (!is_fine) (void)printf("FAIL %s: %s\n", path, m.error);
    for (uint32_t i = 0; i < (grun_is_cuda(device) ? 2 : 12) && is_fine; i++) {
        gverdict v = { .stage = "" };
        const grun o = { .device = device,
                         .isa = grun_is_cuda(device) ? NULL : isas[i % 3],
                         .tune = i / 6 ? SINTER_TUNE_FAST : SINTER_TUNE_OFF,
                         .math = i / 3 % 2 ? SINTER_MATH_EXACT : SINTER_MATH_FP32,
                         .threads = 1 + i % 2,
                         .refittable = i < 6 && i % 2,
                         .seed = i };
        char about[128];
        grun_print(&o, about, sizeof about);
        is_fine = grun_model(&m, &o, &v);
        if (!is_fine) (void)printf("FAIL %s (%s): %s: %s\n", path, about, v.stage, v.text);
    }
    judge_close();
    arena_deinit(&a);
    return is_fine;
}
