/* SPDX-License-Identifier: Apache-2.0 */
/* bench_runs.c - contexts with memory of their own, threads that run them, and the times.
 *
 * A round is one run in each context of a thread: all are started, then all are waited for. On a device that works by
 * itself the runs of a round overlap; on the CPU a start is a run. */
#include "bench_runs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { QUERIES_MAX = 1 << 22 };

/* Memory that a context is given: pinned, from which inputs are copied fastest, or the device's. It outlives the
 * context. */
typedef struct lent {
    sinter_engine *engine;
    sinter_place place;
    struct {
        void *at;
        size_t size;
    } * list;
    uint32_t count;
} lent;

typedef struct stream {
    sinter_context *context;
    model_inputs made;
    lent memory, activations;
    query now;
    int64_t rows;
} stream;

struct measure_set {
    stream *at;
    uint32_t count;
};

/* A thread's share. */
typedef struct worker {
    sinter_engine *engine;
    const measure_plan *plan;
    stream *at;
    uint32_t count;
    bool is_async, is_first, is_recorded;
    pthread_barrier_t *begin; /* all threads begin to measure together */
    double *zero;             /* the time of the beginning, set by the first thread */
    query *query;
    uint32_t queries, capacity;
    uint32_t warm_up_runs;
    double warm_up_s;
    sinter_status status;
    sinter_error error;
} worker;

/* ---- states ---- */

static int64_t rows_of(const sinter_context *c)
{
    sinter_state_info state = { 0 };
    return sinter_context_state(c, &state) == SINTER_OK ? state.rows : 0;
}

/* After a run of an engine with a state, which had `before` rows: as many rows as leave room for one more such run. So
 * all runs but the first do the same, with the state as full as it gets. */
static sinter_status make_room(sinter_context *c, int64_t before, sinter_error *error)
{
    sinter_state_info state = { 0 };
    if (sinter_context_state(c, &state) != SINTER_OK || !state.capacity) return SINTER_OK;
    return sinter_context_set_rows(c, state.capacity - (state.rows - before), error);
}

sinter_status measure_once(sinter_context *c, sinter_error *error)
{
    const int64_t before = rows_of(c);
    const sinter_status s = sinter_context_run(c, error);
    return s == SINTER_OK ? make_room(c, before, error) : s;
}

/* ---- memory ---- */

static sinter_status lend(lent *l, size_t size, void **out, sinter_error *error)
{
    const sinter_status s = sinter_engine_alloc(l->engine, l->place, size, out, error);
    if (s != SINTER_OK) return s;
    l->list = cli_grow(l->list, l->count + 1, sizeof *l->list);
    l->list[l->count].at = *out;
    l->list[l->count++].size = size;
    return SINTER_OK;
}

/* As much as the shapes of the inputs need. */
static sinter_status lend_memory(stream *s, sinter_error *error)
{
    size_t size = 0;
    void *at = NULL;
    sinter_status status = sinter_context_memory_size(s->context, &size, error);
    s->activations = (lent){ .engine = s->memory.engine, .place = SINTER_PLACE_DEVICE };
    if (status == SINTER_OK) status = lend(&s->activations, size, &at, error);
    return status == SINTER_OK ? sinter_context_set_memory(s->context, at, size, error) : status;
}

static void lent_free(lent *l)
{
    for (uint32_t i = 0; i < l->count; i++) sinter_engine_free(l->engine, l->place, l->list[i].at, l->list[i].size);
    free(l->list);
    *l = (lent){ 0 };
}

static sinter_status lend_input(lent *l, const model_input *in, sinter_context *c, sinter_error *error)
{
    sinter_tensor t = in->tensor;
    const size_t size = sinter_tensor_size(&t);
    sinter_status s = lend(l, size, &t.data, error);
    if (s == SINTER_OK)
        s = sinter_engine_copy(l->engine, t.data, l->place, in->tensor.data, SINTER_PLACE_HOST, size, error);
    t.place = l->place;
    return s == SINTER_OK ? sinter_context_set_input(c, in->name, &t, error) : s;
}

static sinter_status lend_inputs(const model_engine *m, stream *s, sinter_error *error)
{
    sinter_status status = SINTER_OK;
    for (uint32_t i = 0; status == SINTER_OK && i < m->inputs.count; i++)
        status = lend_input(&s->memory, &m->inputs.at[i], s->context, error);
    for (uint32_t i = 0; status == SINTER_OK && i < s->made.count; i++)
        status = lend_input(&s->memory, &s->made.at[i], s->context, error);
    return status;
}

/* As large as those of the last run. */
static sinter_status lend_outputs(lent *l, sinter_context *c, sinter_error *error)
{
    sinter_status s = SINTER_OK;
    for (uint32_t i = 0; s == SINTER_OK && i < sinter_engine_io_count(l->engine); i++) {
        sinter_io io;
        sinter_tensor t;
        void *at = NULL;
        s = sinter_engine_io(l->engine, i, 0, &io);
        if (s != SINTER_OK || io.is_input) continue;
        s = sinter_context_output(c, io.name, &t, error);
        if (s == SINTER_OK) s = lend(l, sinter_tensor_size(&t), &at, error);
        if (s == SINTER_OK) s = sinter_context_set_output(c, io.name, at, sinter_tensor_size(&t), l->place, error);
    }
    return s;
}

/* A context with its inputs where the plan wants them, after its first run. */
static sinter_status stream_open(const model_engine *m, const measure_plan *plan, stream *s, measured *out,
                                 sinter_error *error)
{
    s->memory = (lent){ .engine = m->engine, .place = plan->has_transfers ? SINTER_PLACE_PINNED : SINTER_PLACE_DEVICE };
    const double start = cli_seconds();
    sinter_status status =
        model_context(m, plan->seed, plan->has_phases ? MODEL_PHASES : MODEL_OFTEN, &s->made, &s->context, error);
    const double ready = cli_seconds() - start;
    if (status == SINTER_OK && m->memory == SINTER_MEMORY_USER) status = lend_memory(s, error);
    if (status == SINTER_OK) status = lend_inputs(m, s, error);
    const double first = cli_seconds();
    if (status == SINTER_OK) status = measure_once(s->context, error);
    if (out->first_s <= 0) {
        out->ready_s = ready;
        out->first_s = cli_seconds() - first;
    }
    if (status == SINTER_OK && !plan->has_transfers) status = lend_outputs(&s->memory, s->context, error);
    return status;
}

/* Can the runs of this context be started without waiting for them? */
static sinter_status try_async(sinter_context *c, bool *is_async, sinter_error *error)
{
    sinter_error quiet = { 0 };
    const int64_t before = rows_of(c);
    sinter_status s = sinter_context_run_async(c, &quiet);
    *is_async = s != SINTER_UNSUPPORTED;
    if (!*is_async) return SINTER_OK;
    if (s != SINTER_OK) *error = quiet;
    if (s == SINTER_OK) s = sinter_context_wait(c, error);
    return s == SINTER_OK ? make_room(c, before, error) : s;
}

/* ---- runs ---- */

static void nap(double seconds)
{
    const struct timespec t = { .tv_sec = (time_t)seconds,
                                .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds)) };
    if (seconds > 0) (void)nanosleep(&t, NULL);
}

static sinter_status stream_begin(worker *w, stream *s)
{
    s->rows = rows_of(s->context);
    s->now = (query){ .start = cli_seconds() };
    const sinter_status status =
        w->is_async ? sinter_context_run_async(s->context, &w->error) : sinter_context_run(s->context, &w->error);
    s->now.enqueued = s->now.end = cli_seconds();
    return status;
}

static sinter_status stream_end(worker *w, stream *s)
{
    sinter_status status = SINTER_OK;
    if (w->is_async) {
        while (w->plan->is_spinning && !sinter_context_is_done(s->context)) {}
        status = sinter_context_wait(s->context, &w->error);
        s->now.end = cli_seconds();
    }
    sinter_run_time t = { 0 };
    if (status == SINTER_OK && w->plan->has_phases) status = sinter_context_run_time(s->context, &t);
    s->now.copy_in = 1e-9 * (double)t.copy_in_ns;
    s->now.compute = 1e-9 * (double)t.compute_ns;
    s->now.copy_out = 1e-9 * (double)t.copy_out_ns;
    return status == SINTER_OK ? make_room(s->context, s->rows, &w->error) : status;
}

static sinter_status round_run(worker *w)
{
    sinter_status s = SINTER_OK;
    for (uint32_t i = 0; s == SINTER_OK && i < w->count; i++) s = stream_begin(w, &w->at[i]);
    for (uint32_t i = 0; s == SINTER_OK && i < w->count; i++) s = stream_end(w, &w->at[i]);
    return s;
}

static void keep(worker *w, double zero)
{
    if (w->queries + w->count > w->capacity) {
        w->capacity = 2 * w->capacity + 1024 + w->count;
        w->query = cli_grow(w->query, w->capacity, sizeof *w->query);
    }
    for (uint32_t i = 0; i < w->count; i++) {
        query q = w->at[i].now;
        q.start -= zero;
        q.enqueued -= zero;
        q.end -= zero;
        w->query[w->queries++] = q;
    }
}

static sinter_status warm_up(worker *w)
{
    const measure_plan *plan = w->plan;
    const double start = cli_seconds();
    sinter_status s = SINTER_OK;
    uint32_t rounds = 0;
    while (s == SINTER_OK && (rounds < plan->warm_up_least || cli_seconds() - start < plan->warm_up_s)) {
        if (rounds && cli_seconds() - start > 10 * plan->warm_up_s) break;
        s = round_run(w);
        rounds++;
    }
    w->warm_up_s = cli_seconds() - start;
    w->warm_up_runs = rounds * w->count;
    return s;
}

static void *worker_run(void *user)
{
    worker *w = user;
    const measure_plan *plan = w->plan;
    w->status = warm_up(w);
    if (w->is_first) {
        nap(plan->sleep_s);
        /* What is measured is what a profiler with a capture range sees. */
        if (w->status == SINTER_OK) w->status = sinter_engine_profile(w->engine, 1, &w->error);
        w->is_recorded = w->status == SINTER_OK;
        *w->zero = cli_seconds();
    }
    (void)pthread_barrier_wait(w->begin);
    const double zero = *w->zero;
    double now = zero;
    for (uint64_t i = 0; w->status == SINTER_OK && (i < plan->iterations || now - zero < plan->duration_s); i++) {
        if (w->queries > QUERIES_MAX / plan->streams) break;
        if (i) nap(plan->idle_s);
        w->status = round_run(w);
        if (w->status == SINTER_OK) keep(w, zero);
        now = cli_seconds();
        if (w->is_first && plan->bar && now - zero > 1)
            progress_show(plan->bar, "measuring", (now - zero) / plan->duration_s);
    }
    if (w->is_first && plan->bar) progress_end(plan->bar);
    return NULL;
}

/* ---- the whole ---- */

static int by_start(const void *a, const void *b)
{
    const query *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

static void collect(worker *w, uint32_t workers, measured *out)
{
    for (uint32_t i = 0; i < workers; i++) {
        out->at = cli_grow(out->at, (size_t)out->count + w[i].queries, sizeof *out->at);
        if (w[i].queries) memcpy(out->at + out->count, w[i].query, w[i].queries * sizeof *out->at);
        out->count += w[i].queries;
        out->warm_up_runs += w[i].warm_up_runs;
        if (w[i].warm_up_s > out->warm_up_s) out->warm_up_s = w[i].warm_up_s;
        free(w[i].query);
    }
    if (out->count) qsort(out->at, out->count, sizeof *out->at, by_start);
    for (uint32_t i = 0; i < out->count; i++)
        if (out->at[i].end > out->wall_s) out->wall_s = out->at[i].end;
    if (out->count) out->wall_s -= out->at[0].start;
}

static sinter_status workers_run(measure_set *set, const measure_plan *plan, measured *out, sinter_error *error)
{
    const uint32_t count = plan->has_threads ? set->count : 1;
    pthread_barrier_t begin;
    double zero = 0;
    worker *w = cli_alloc(count, sizeof *w);
    pthread_t *thread = cli_alloc(count, sizeof *thread);
    bool *is_running = cli_alloc(count, sizeof *is_running);
    sinter_status s = pthread_barrier_init(&begin, NULL, count) == 0 ? SINTER_OK : SINTER_NO_MEMORY;
    for (uint32_t i = 0; s == SINTER_OK && i < count; i++) {
        w[i] = (worker){ .engine = set->at[0].memory.engine,
                         .plan = plan,
                         .at = set->at + i * (set->count / count),
                         .count = set->count / count,
                         .is_async = out->is_async,
                         .is_first = i == 0,
                         .begin = &begin,
                         .zero = &zero };
        if (i) is_running[i] = pthread_create(&thread[i], NULL, worker_run, &w[i]) == 0;
        if (i && !is_running[i]) exit(cli_fail("no thread can be started")); /* the others wait for it at the barrier */
    }
    if (s == SINTER_OK) (void)worker_run(&w[0]);
    for (uint32_t i = 1; i < count; i++)
        if (is_running[i]) (void)pthread_join(thread[i], NULL);
    if (w[0].is_recorded) s = sinter_engine_profile(w[0].engine, 0, error);
    for (uint32_t i = count; s == SINTER_OK && i-- > 0;)
        if (w[i].status != SINTER_OK) s = w[i].status, *error = w[i].error;
    (void)pthread_barrier_destroy(&begin);
    collect(w, count, out);
    free(is_running);
    free(thread);
    free(w);
    return s;
}

sinter_status measure(const model_engine *m, const measure_plan *plan, measure_set **set, measured *out,
                      sinter_error *error)
{
    measure_set *made = cli_alloc(1, sizeof *made);
    *out = (measured){ 0 };
    *set = made;
    made->at = cli_alloc(plan->streams, sizeof *made->at);
    sinter_status s = SINTER_OK;
    for (uint32_t i = 0; s == SINTER_OK && i < plan->streams; i++) {
        made->count++;
        s = stream_open(m, plan, &made->at[i], out, error);
    }
    if (s == SINTER_OK && strcmp(sinter_engine_device(m->engine), "cpu") != 0)
        s = try_async(made->at[0].context, &out->is_async, error);
    if (s == SINTER_OK) s = workers_run(made, plan, out, error);
    if (s == SINTER_OK) out->memory = sinter_context_memory(made->at[0].context);
    return s;
}

sinter_context *measure_context(const measure_set *set, uint32_t index)
{
    return set->at[index].context;
}

const model_inputs *measure_inputs(const measure_set *set)
{
    return &set->at[0].made;
}

void measure_close(measure_set *set)
{
    if (!set) return;
    for (uint32_t i = 0; i < set->count; i++) {
        sinter_context_destroy(set->at[i].context);
        lent_free(&set->at[i].memory);
        lent_free(&set->at[i].activations);
        model_inputs_free(&set->at[i].made);
    }
    free(set->at);
    free(set);
}

void measured_free(measured *out)
{
    free(out->at);
    *out = (measured){ 0 };
}

/* ---- steps ---- */

sinter_status measure_steps(const model_engine *m, uint64_t seed, double run_s, step_list *out, sinter_error *error)
{
    sinter_context *c = NULL;
    model_inputs made;
    sinter_status s = model_context(m, seed, MODEL_STEPS, &made, &c, error);
    const double duration = run_s * 20 < 1 ? 1 : 3 * run_s, start = cli_seconds();
    while (s == SINTER_OK) {
        s = measure_once(c, error);
        if (cli_seconds() - start > duration) break;
    }
    out->count = s == SINTER_OK ? sinter_context_step_count(c) : 0;
    out->at = cli_alloc(out->count, sizeof *out->at);
    out->work = cli_alloc(out->count, sizeof *out->work);
    for (uint32_t i = 0; s == SINTER_OK && i < out->count; i++) {
        s = sinter_context_step(c, i, &out->at[i]);
        if (s == SINTER_OK) s = sinter_context_step_work(c, i, &out->work[i]);
        out->total_ns += out->at[i].total_ns;
    }
    sinter_context_destroy(c);
    model_inputs_free(&made);
    return s;
}

double step_mean_us(const sinter_step_time *t)
{
    return t->runs ? 1e-3 * (double)t->total_ns / (double)t->runs : 0;
}

double step_share(const step_list *p, const sinter_step_time *t)
{
    return p->total_ns ? (double)t->total_ns / (double)p->total_ns : 0;
}

/* ---- numbers ---- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void series_sort(series *s)
{
    if (s->count) qsort(s->at, s->count, sizeof *s->at, by_size);
}

double series_mean(const series *s)
{
    double sum = 0;
    for (uint32_t i = 0; i < s->count; i++) sum += s->at[i];
    return s->count ? sum / s->count : 0;
}

double series_percentile(const series *s, double share)
{
    const double at = share * (double)(s->count - 1);
    const uint32_t low = (uint32_t)at;
    const uint32_t high = low + 1 < s->count ? low + 1 : low;
    return s->at[low] + (at - (double)low) * (s->at[high] - s->at[low]);
}
