/* SPDX-License-Identifier: Apache-2.0 */
/* net_rig.c - see net_rig.h. */
#include "net_rig.h"

#include "core/dtype.h"
#include "test.h"

#include <math.h>

int64_t net_count(const sinter_tensor *t)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < t->rank; i++) count *= t->dim[i];
    return count;
}

double net_value(const sinter_tensor *t, int64_t i)
{
    return dtype_load_f64(t->dtype, t->data, i);
}

static void fill(const sinter_io *io, sinter_tensor *t, uint64_t *seed)
{
    *t = (sinter_tensor){ .dtype = io->dtype, .rank = io->rank };
    for (uint32_t k = 0; k < io->rank; k++) t->dim[k] = io->dim[k] >= 0 ? io->dim[k] : io->opt[k];
    t->data = calloc(1, sinter_tensor_size(t) + 8);
    for (int64_t i = 0; i < net_count(t); i++) {
        double v = (double)test_below(seed, 17) / 4 - 2;
        if (io->value_min != INT64_MIN && io->value_max != INT64_MAX)
            v = (double)(io->value_min + (int64_t)test_below(seed, (uint64_t)(io->value_max - io->value_min) + 1));
        else if (!dtype_is_float(io->dtype))
            v = io->dtype == SINTER_DTYPE_BOOL ? (double)test_below(seed, 2) : floor(v);
        dtype_store_f64(io->dtype, t->data, i, v);
    }
}

static sinter_status run_context(sinter_engine *engine, sinter_context *c, const net_data *data, uint32_t count,
                                 uint64_t seed, net_result *out, sinter_error *error)
{
    sinter_tensor made[NET_INPUTS] = { 0 };
    uint32_t inputs = 0;
    sinter_status s = SINTER_OK;
    for (uint32_t i = 0; i < sinter_engine_io_count(engine) && !s; i++) {
        sinter_io io;
        if (sinter_engine_io(engine, i, 0, &io) != SINTER_OK || !io.is_input || inputs == NET_INPUTS) continue;
        const sinter_tensor *given = NULL;
        for (uint32_t k = 0; k < count; k++)
            if (!strcmp(data[k].name, io.name)) given = &data[k].tensor;
        if (!given) {
            fill(&io, &made[inputs], &seed);
            given = &made[inputs++];
        }
        s = sinter_context_set_input(c, io.name, given, error);
    }
    if (!s) s = sinter_context_run(c, error);
    for (uint32_t i = 0; i < sinter_engine_io_count(engine) && !s && out->count < NET_OUTPUTS; i++) {
        sinter_io io;
        if (sinter_engine_io(engine, i, 0, &io) != SINTER_OK || io.is_input) continue;
        sinter_tensor got;
        s = sinter_context_output(c, io.name, &got, error);
        if (s) break;
        sinter_tensor *to = &out->out[out->count];
        *to = got;
        to->data = malloc(sinter_tensor_size(&got) + 8);
        memcpy(to->data, got.data, sinter_tensor_size(&got));
        (void)snprintf(out->name[out->count++], sizeof out->name[0], "%s", io.name);
    }
    for (uint32_t i = 0; i < inputs; i++) free(made[i].data);
    return s;
}

static sinter_build_options options_for(const sinter_build_options *options, const char *device)
{
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    if (options) o = *options;
    o.device = device;
    o.tune = SINTER_TUNE_OFF;
    o.verify = 1;
    o.threads = 1;
    return o;
}

/* Runs the engine and frees its file. */
static sinter_status run_file(sinter_buffer *file, const sinter_env_options *env, const net_data *data, uint32_t count,
                              uint64_t seed, net_result *out, sinter_error *error)
{
    sinter_engine *engine = NULL;
    sinter_context *context = NULL;
    sinter_engine_options o = SINTER_ENGINE_OPTIONS;
    o.env = env;
    sinter_status s = sinter_engine_load_memory(file->data, file->size, &o, &engine, error);
    if (!s) s = sinter_context_create(engine, NULL, &context, error);
    if (!s) s = run_context(engine, context, data, count, seed, out, error);
    sinter_context_destroy(context);
    sinter_engine_release(engine);
    sinter_buffer_free(file);
    return s;
}

sinter_status net_run(sinter_network *net, const sinter_build_options *options, const char *device,
                      const net_data *data, uint32_t count, uint64_t seed, net_result *out, sinter_error *error)
{
    const sinter_build_options o = options_for(options, device);
    sinter_buffer file = { 0 };
    *out = (net_result){ 0 };
    const sinter_status s = sinter_network_build(net, &o, &file, error);
    return s ? s : run_file(&file, o.env, data, count, seed, out, error);
}

sinter_status net_run_model(const void *model, size_t size, const sinter_build_options *options, const char *device,
                            uint64_t seed, net_result *out, sinter_error *error)
{
    const sinter_build_options o = options_for(options, device);
    sinter_buffer file = { 0 };
    *out = (net_result){ 0 };
    const sinter_status s = sinter_build_memory(model, size, &o, &file, error);
    return s ? s : run_file(&file, o.env, NULL, 0, seed, out, error);
}

sinter_status net_run_file(const char *path, const sinter_build_options *options, const char *device, uint64_t seed,
                           net_result *out, sinter_error *error)
{
    const sinter_build_options o = options_for(options, device);
    sinter_buffer file = { 0 };
    *out = (net_result){ 0 };
    const sinter_status s = sinter_build_file(path, &o, &file, error);
    return s ? s : run_file(&file, o.env, NULL, 0, seed, out, error);
}

void net_result_free(net_result *r)
{
    for (uint32_t i = 0; i < r->count; i++) free(r->out[i].data);
    *r = (net_result){ 0 };
}

double net_difference(const net_result *a, const net_result *b, char why[256])
{
    double worst = 0;
    (void)snprintf(why, 256, "the numbers of outputs");
    if (a->count != b->count) return INFINITY;
    for (uint32_t k = 0; k < a->count; k++) {
        const sinter_tensor *x = &a->out[k], *y = &b->out[k];
        (void)snprintf(why, 256, "the type or shape of '%s'", a->name[k]);
        if (x->dtype != y->dtype || x->rank != y->rank || memcmp(x->dim, y->dim, x->rank * sizeof *x->dim) != 0)
            return INFINITY;
        double most = 1;
        for (int64_t i = 0; i < net_count(x); i++)
            most = isfinite(net_value(y, i)) ? fmax(most, fabs(net_value(y, i))) : most;
        for (int64_t i = 0; i < net_count(x); i++) {
            const double p = net_value(x, i), q = net_value(y, i);
            if (p == q || (isnan(p) && isnan(q)) || (!isfinite(p) && fabs(q) > 1e30)) continue;
            if (!isfinite(p) || !isfinite(q)) {
                (void)snprintf(why, 256, "'%s'[%lld]: %g and %g", a->name[k], (long long)i, p, q);
                return INFINITY;
            }
            if (fabs(p - q) / most <= worst) continue;
            worst = fabs(p - q) / most;
            (void)snprintf(why, 256, "'%s'[%lld]: %g and %g", a->name[k], (long long)i, p, q);
        }
    }
    return worst;
}
