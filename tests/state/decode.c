/* SPDX-License-Identifier: Apache-2.0 */
/* decode.c - see decode.h. The engine without state gets the pasts that it gave as presents. */
#include "decode.h"

#include "core/dtype.h"
#include "faulty.h"
#include "run/context.h"
#include "test.h"

#include <math.h>
#include <time.h>

enum { TENSORS = 128 };

typedef struct side {
    sinter_engine *engine;
    sinter_context *context;
    uint32_t inputs, outputs;
    sinter_io io[TENSORS];
    faulty memory;
    sinter_allocator allocator;
    sinter_env_options env;
} side;

typedef struct work {
    const decode *d;
    side with, without;
    void *past[TENSORS]; /* by input of the engine without state */
    int64_t rows;        /* of the state */
    bool is_nan;         /* the run's tokens are DECODE_NAN's: its results are not compared */
    uint64_t seed;
    double time[2][DECODE_RUNS];
    uint32_t times;
    bool seen[1024]; /* by the number of new rows */
    char *why;
} work;

static bool fail(const work *w, const char *what, const char *said)
{
    (void)snprintf(w->why, DECODE_WHY, "%s: %s", what, said);
    return false;
}

static double seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- engines ---- */

/* What the '*' of the pattern stands for; NULL: the name does not fit. The pattern ends with its '*'. */
static const char *star(const char *pattern, const char *name)
{
    const size_t length = strlen(pattern) - 1;
    return strncmp(pattern, name, length) == 0 ? name + length : NULL;
}

static bool open_side(work *w, side *s, bool has_state)
{
    const decode *d = w->d;
    const sinter_state state = { d->input, d->output };
    const sinter_dim_equal equal = { "T", "P+S" };
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    sinter_engine_options load = SINTER_ENGINE_OPTIONS;
    sinter_error error = { 0 };
    sinter_buffer bytes = { 0 };
    /* Any input that has an axis S or P says its range for the model. */
    sinter_shape_range range[TENSORS];
    sinter_profile profile = { .shape = range };
    for (uint32_t i = 0; i < w->without.inputs; i++) { /* read from the model by the caller */
        const sinter_io *io = &w->without.io[i];
        sinter_shape_range *r = &range[profile.count++];
        *r = (sinter_shape_range){ .input = io->name, .rank = io->rank };
        for (uint32_t k = 0; k < io->rank; k++) {
            const char *name = io->dim_text[k] ? io->dim_text[k] : "";
            const bool is_new = !strcmp(name, "S"), is_past = !strcmp(name, "P"), is_total = !strcmp(name, "T");
            r->min[k] = is_new || is_total ? 1 : is_past ? 0 : io->dim[k] < 0 ? 1 : io->dim[k];
            r->max[k] = is_new ? d->most : is_past || is_total ? (int64_t)d->capacity : io->dim[k] < 0 ? 1 : io->dim[k];
            r->opt[k] = is_past || is_total ? (r->min[k] + r->max[k]) / 2 : r->min[k];
        }
    }
    o.profile = &profile;
    o.profile_count = 1;
    o.device = has_state ? d->device : d->judge;
    if (has_state) o.allow = d->allow;
    o.lower = SINTER_LOWER_ALWAYS;
    o.budget = 1;
    o.tune = SINTER_TUNE_OFF;
    o.verify = 1;
    if (d->has_total) o.equal = &equal, o.equal_count = 1;
    if (has_state) o.state = &state, o.state_count = 1, o.capacity = d->capacity;
    if (sinter_build_file(d->path, &o, &bytes, &error) != SINTER_OK)
        return fail(w, has_state ? "building with state" : "building without state", error.text);
    s->memory = (faulty){ .budget = -1 };
    s->allocator = (sinter_allocator){ &s->memory, faulty_resize };
    s->env = (sinter_env_options){ .struct_size = sizeof s->env, .allocator = &s->allocator };
    load.env = &s->env;
    load.trust_code = 1;
    sinter_status status = sinter_engine_load_memory(bytes.data, bytes.size, &load, &s->engine, &error);
    sinter_buffer_free(&bytes);
    if (status == SINTER_OK) status = sinter_context_create(s->engine, NULL, &s->context, &error);
    if (status != SINTER_OK) return fail(w, "loading", error.text);
    s->inputs = 0;
    const uint32_t count = sinter_engine_io_count(s->engine);
    for (uint32_t i = 0; i < count && i < TENSORS; i++) {
        if (sinter_engine_io(s->engine, i, 0, &s->io[i]) != SINTER_OK) return fail(w, "reading", "an input");
        s->inputs += s->io[i].is_input;
    }
    s->outputs = count - s->inputs;
    return count <= TENSORS || fail(w, "reading", "too many inputs and outputs");
}

static void close_side(side *s)
{
    sinter_context_destroy(s->context);
    sinter_engine_release(s->engine);
}

typedef struct visited {
    work *w;
    char name[TENSORS][64], dim[TENSORS][SINTER_RANK_MAX][16];
} visited;

static int visit(void *user, const sinter_model_io *io)
{
    visited *v = user;
    side *s = &v->w->without;
    if (!io->is_input || s->inputs == TENSORS) return 0;
    const uint32_t i = s->inputs++;
    (void)snprintf(v->name[i], sizeof v->name[i], "%s", io->name);
    s->io[i] = (sinter_io){ .name = v->name[i], .rank = io->rank };
    for (uint32_t k = 0; k < io->rank; k++) {
        s->io[i].dim[k] = io->dim[k];
        if (io->dim_name[k]) (void)snprintf(v->dim[i][k], sizeof v->dim[i][k], "%s", io->dim_name[k]);
        s->io[i].dim_text[k] = v->dim[i][k];
    }
    return 0;
}

/* ---- data ---- */

static size_t bytes_of(const sinter_tensor *t)
{
    return sinter_tensor_size(t);
}

/* New numbers for an input of both engines; its rows begin at `rows`. `meant` elements of each line count. */
static void fill(work *w, const sinter_io *io, int64_t rows, int64_t line, int64_t meant, const sinter_tensor *t)
{
    const bool is_mask = strstr(io->name, "mask") != NULL, is_position = strstr(io->name, "position") != NULL;
    int64_t count = 1;
    for (uint32_t k = 0; k < t->rank; k++) count *= t->dim[k];
    for (int64_t i = 0; i < count; i++) {
        const uint64_t r = test_random(&w->seed);
        const double real = (double)(r % 2001) / 1000 - 1;
        if (dtype_is_float(t->dtype)) dtype_store_f64(t->dtype, t->data, i, real);
        else if (is_mask && i % line >= meant) dtype_store_i64(t->dtype, t->data, i, (int64_t)(r & 1));
        else if (is_mask) dtype_store_i64(t->dtype, t->data, i, r % 8 != 0);
        else if (is_position) dtype_store_i64(t->dtype, t->data, i, rows + i % line);
        else dtype_store_i64(t->dtype, t->data, i, w->is_nan ? DECODE_TOKENS : (int64_t)(r % DECODE_TOKENS));
    }
}

static int64_t size_of(const work *w, const sinter_io *io, uint32_t axis, int64_t more)
{
    const char *name = io->dim_text[axis];
    if (io->dim[axis] >= 0) return io->dim[axis];
    if (!strcmp(name, "S")) return more;
    return !strcmp(name, "P") ? w->rows : w->rows + more;
}

/* Sets an input of both engines. */
static bool set_input(work *w, uint32_t i, int64_t more, void **keep)
{
    sinter_error error = { 0 };
    const sinter_io *io = &w->without.io[i];
    sinter_tensor t = { .dtype = io->dtype, .rank = io->rank }, wide;
    for (uint32_t k = 0; k < t.rank; k++) t.dim[k] = size_of(w, io, k, more);
    const bool is_past = star(w->d->input, io->name) != NULL;
    t.data = is_past ? w->past[i] : (*keep = calloc(1, bytes_of(&t) + 1));
    const int64_t line = t.rank ? t.dim[t.rank - 1] : 1;
    if (!is_past) fill(w, io, w->rows, line, line, &t);
    if (sinter_context_set_input(w->without.context, io->name, &t, &error) != SINTER_OK)
        return fail(w, "an input", error.text);
    for (uint32_t k = 0; k < w->with.inputs && !is_past; k++) {
        const sinter_io *other = &w->with.io[k];
        if (strcmp(other->name, io->name) != 0) continue;
        wide = t;
        bool is_wider = false;
        for (uint32_t a = 0; a < t.rank; a++) {
            wide.dim[a] = other->dim[a] >= 0 ? other->dim[a] : t.dim[a];
            is_wider = is_wider || wide.dim[a] != t.dim[a];
        }
        if (is_wider) { /* behind the rows that count there is anything; the last axis is the wide one */
            const int64_t to_line = wide.dim[t.rank - 1];
            const size_t size = sinter_dtype_bits(t.dtype) / 8;
            void *at = keep[1] = calloc(1, bytes_of(&wide) + 1);
            wide.data = at;
            fill(w, io, w->rows, to_line, 0, &wide);
            for (int64_t row = 0; row * line < (int64_t)(bytes_of(&t) / size); row++)
                memcpy((char *)at + (size_t)(row * to_line) * size, (char *)t.data + (size_t)(row * line) * size,
                       (size_t)line * size);
        }
        if (sinter_context_set_input(w->with.context, io->name, &wide, &error) != SINTER_OK)
            return fail(w, "an input with state", error.text);
    }
    return true;
}

/* ---- results ---- */

static bool compare(work *w, decode_report *r, uint32_t run)
{
    for (uint32_t i = 0; i < w->with.outputs; i++) {
        sinter_error error = { 0 };
        sinter_tensor a, b;
        const char *name = w->with.io[w->with.inputs + i].name;
        if (sinter_context_output(w->with.context, name, &a, &error) != SINTER_OK ||
            sinter_context_output(w->without.context, name, &b, &error) != SINTER_OK)
            return fail(w, name, error.text);
        if (bytes_of(&a) != bytes_of(&b)) return fail(w, name, "another size");
        const int64_t count = (int64_t)(bytes_of(&a) * 8 / sinter_dtype_bits(a.dtype));
        double most = 0, worst = 0;
        for (int64_t k = 0; k < count; k++) {
            const double x = dtype_load_f64(a.dtype, a.data, k), y = dtype_load_f64(b.dtype, b.data, k);
            if (fabs(y) > most) most = fabs(y);
            if (!(fabs(x - y) <= worst)) worst = fabs(x - y);
        }
        worst /= most > 0 ? most : 1;
        if (!(worst <= r->worst)) r->worst = worst;
        if (worst <= w->d->tolerance) continue;
        (void)snprintf(w->why, DECODE_WHY, "run %u, %lld rows before: '%s' differs by %.3g of its largest element", run,
                       (long long)w->rows, name, worst);
        return false;
    }
    return true;
}

/* The first `rows` of an axis, dense. */
static void cut_rows(sinter_tensor *t, uint32_t axis, int64_t rows, void *to)
{
    size_t inner = sinter_dtype_bits(t->dtype) / 8, outer = 1;
    for (uint32_t k = axis + 1; k < t->rank; k++) inner *= (size_t)t->dim[k];
    for (uint32_t k = 0; k < axis; k++) outer *= (size_t)t->dim[k];
    for (size_t i = 0; i < outer; i++)
        memcpy((char *)to + i * (size_t)rows * inner, (char *)t->data + i * (size_t)t->dim[axis] * inner,
               (size_t)rows * inner);
}

/* Presents become pasts, cut to `rows`. */
static bool keep_pasts(work *w, int64_t rows)
{
    for (uint32_t i = 0; i < w->without.inputs; i++) {
        const sinter_io *io = &w->without.io[i];
        const char *which = star(w->d->input, io->name);
        char name[128];
        sinter_tensor t;
        sinter_error error = { 0 };
        if (!which) continue;
        (void)snprintf(name, sizeof name, "%.*s%s", (int)strlen(w->d->output) - 1, w->d->output, which);
        if (sinter_context_output(w->without.context, name, &t, &error) != SINTER_OK) return fail(w, name, error.text);
        void *to = malloc(bytes_of(&t) + 1);
        uint32_t axis = 0;
        while (axis + 1 < io->rank && (io->dim[axis] >= 0 || strcmp(io->dim_text[axis], "P") != 0)) axis++;
        if (io->dim[axis] < 0) cut_rows(&t, axis, rows, to);
        else memcpy(to, t.data, bytes_of(&t));
        free(w->past[i]);
        w->past[i] = to;
    }
    return true;
}

static void begin_pasts(work *w)
{
    for (uint32_t i = 0; i < w->without.inputs; i++) {
        if (!star(w->d->input, w->without.io[i].name)) continue;
        sinter_tensor t = { .dtype = w->without.io[i].dtype, .rank = w->without.io[i].rank };
        for (uint32_t k = 0; k < t.rank; k++) t.dim[k] = size_of(w, &w->without.io[i], k, 0);
        free(w->past[i]);
        w->past[i] = calloc(1, bytes_of(&t) + 1);
    }
    w->rows = 0;
}

/* ---- the sequence ---- */

static bool run_both(work *w, decode_report *r, uint32_t run, int64_t more)
{
    sinter_error error = { 0 };
    void *keep[2 * TENSORS] = { 0 };
    bool is_good = true;
    for (uint32_t i = 0; is_good && i < w->without.inputs; i++) is_good = set_input(w, i, more, &keep[2 * i]);
    context *inside = (context *)(void *)w->with.context;
    const long requests = w->with.memory.requests;
    const uint64_t binds = inside->binds;
    const double start = seconds();
    if (is_good && sinter_context_run(w->with.context, &error) != SINTER_OK)
        is_good = fail(w, "running with state", error.text);
    const double middle = seconds();
    if (is_good && w->seen[more]) {
        r->requests += w->with.memory.requests - requests;
        r->binds += inside->binds - binds;
    }
    w->seen[more] = true;
    const double again = seconds();
    if (is_good && sinter_context_run(w->without.context, &error) != SINTER_OK)
        is_good = fail(w, "running without state", error.text);
    const double end = seconds();
    if (more == 1) w->time[0][w->times] = middle - start, w->time[1][w->times++] = end - again;
    is_good = is_good && (w->is_nan || compare(w, r, run)) && keep_pasts(w, w->rows + more);
    w->rows += more;
    for (uint32_t i = 0; i < 2 * TENSORS; i++) free(keep[i]);
    return is_good;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool run_all(work *w, decode_report *r)
{
    sinter_error error = { 0 };
    sinter_state_info info;
    begin_pasts(w);
    for (uint32_t i = 0; i < w->d->runs; i++) {
        w->is_nan = w->d->rows[i] >= DECODE_NAN;
        const int64_t more = w->d->rows[i] - (w->is_nan ? DECODE_NAN : 0);
        if (more > 0) {
            if (!run_both(w, r, i, more)) return false;
        } else if (more == 0) {
            begin_pasts(w);
            if (sinter_context_reset_state(w->with.context, &error) != SINTER_OK) return fail(w, "reset", error.text);
        } else {
            if (!keep_pasts(w, w->rows + more)) return false;
            w->rows += more;
            if (sinter_context_set_rows(w->with.context, w->rows, &error) != SINTER_OK)
                return fail(w, "fewer rows", error.text);
        }
        if (sinter_context_state(w->with.context, &info) != SINTER_OK || info.rows != w->rows ||
            info.capacity != (int64_t)w->d->capacity)
            return fail(w, "the state", "says another number of rows");
        r->state_bytes = info.bytes;
    }
    for (uint32_t k = 0; k < 2 && w->times; k++) qsort(w->time[k], w->times, sizeof(double), by_value);
    if (w->times) r->with_s = w->time[0][w->times / 2], r->without_s = w->time[1][w->times / 2];
    if (w->d->checks_growth && (r->requests || r->binds)) {
        (void)snprintf(w->why, DECODE_WHY, "runs of a size that was seen made %ld allocations and bound %llu programs",
                       r->requests, (unsigned long long)r->binds);
        return false;
    }
    return true;
}

const char *decode_compare(const decode *d, decode_report *r, char *why)
{
    work *w = calloc(1, sizeof *w);
    visited *v = calloc(1, sizeof *v);
    sinter_error error = { 0 };
    *r = (decode_report){ 0 };
    *w = (work){ .d = d, .seed = d->seed, .why = why };
    v->w = w;
    bool is_good = sinter_model_inputs(d->path, NULL, visit, v, &error) == SINTER_OK;
    if (!is_good) (void)fail(w, "reading the model", error.text);
    is_good = is_good && open_side(w, &w->with, true) && open_side(w, &w->without, false) && run_all(w, r);
    for (uint32_t i = 0; i < TENSORS; i++) free(w->past[i]);
    close_side(&w->with);
    close_side(&w->without);
    free(v);
    free(w);
    return is_good ? NULL : why;
}
