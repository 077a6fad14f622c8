/* SPDX-License-Identifier: Apache-2.0 */
/* exec_infer.c - the data that runs get, the runs, and what is said of both. */
#include "exec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- inputs ---- */

static bool is_npy(const char *path)
{
    char first[6] = { 0 };
    FILE *file = fopen(path, "rbe");
    if (!file) return false;
    const bool is_it = fread(first, 1, sizeof first, file) == sizeof first && !memcmp(first, "\x93NUMPY", sizeof first);
    (void)fclose(file);
    return is_it;
}

/* Exactly as many bytes as the tensor has. */
static bool raw_read(const char *path, const char *name, model_input *out)
{
    enum { ALIGN = 64 };
    const size_t size = sinter_tensor_size(&out->tensor);
    FILE *file = fopen(path, "rbe");
    if (!file) {
        cli_say(LOG_ERROR, "Cannot open file %s!", path);
        return false;
    }
    out->own = aligned_alloc(ALIGN, (size / ALIGN + 1) * ALIGN);
    if (!out->own) exit(cli_fail("out of memory"));
    out->tensor.data = out->own;
    const size_t got = fread(out->own, 1, size, file);
    const bool has_more = fgetc(file) != EOF;
    (void)fclose(file);
    if (got == size && !has_more) return true;
    cli_say(LOG_ERROR, "File %s has %s bytes than '%s' of shape %s and type %s, which has %zu", path,
            has_more ? "more" : "fewer", name, cli_shape(out->tensor.rank, out->tensor.dim).at,
            sinter_dtype_name(out->tensor.dtype), size);
    return false;
}

bool exec_tensor_read(const exec *e, const char *name, const char *path, model_input *out)
{
    const sinter_tensor want = out->tensor;
    sinter_error error = { 0 };
    out->name = cli_copy(name);
    if (!is_npy(path)) return raw_read(path, name, out);
    if (sinter_tensor_read(path, &e->setup.env, &out->tensor, &out->memory, &error) != SINTER_OK)
        return cli_error(&error) == 0;
    if (out->tensor.dtype == want.dtype && out->tensor.rank == want.rank &&
        !memcmp(out->tensor.dim, want.dim, want.rank * sizeof want.dim[0]))
        return true;
    cli_say(LOG_ERROR, "File %s holds %s of type %s, expected %s of type %s for '%s'", path,
            cli_shape(out->tensor.rank, out->tensor.dim).at, sinter_dtype_name(out->tensor.dtype),
            cli_shape(want.rank, want.dim).at, sinter_dtype_name(want.dtype), name);
    return false;
}

static void values_fill(const sinter_io *io, const args_dims *given, model_input *out)
{
    const bool is_wide = io->dtype == SINTER_DTYPE_I64;
    out->name = cli_copy(io->name);
    out->tensor.data = out->own = cli_alloc(SINTER_RANK_MAX, sizeof(int64_t));
    for (uint32_t i = 0; i < given->rank; i++) {
        if (is_wide) ((int64_t *)out->own)[i] = given->at[0][i];
        else ((int32_t *)out->own)[i] = (int32_t)given->at[0][i];
    }
}

static bool inputs_read(exec *e)
{
    exec_pairs files = { 0 };
    bool is_good = true;
    sinter_io io;
    for (uint32_t i = 0; is_good && i < e->x.count; i++)
        if (e->x.given[i].id == FLAG_loadInputs)
            is_good = exec_pairs_read(FLAG_loadInputs, e->x.given[i].value, &files);
    e->m.inputs.at = cli_alloc(sinter_engine_io_count(e->m.engine), sizeof *e->m.inputs.at);
    for (uint32_t i = 0; is_good && sinter_engine_io(e->m.engine, i, e->m.profile, &io) == SINTER_OK; i++) {
        const exec_pair *pair = io.is_input ? exec_pairs_find(&files, io.name) : NULL;
        if (!io.is_input) continue;
        args_dims values;
        if (!pair && exec_values_given(e, &io, &values)) {
            cli_say(LOG_INFO, "Using values %s for input %s", cli_shape(values.rank, values.at[0]).at, io.name);
            model_input *in = &e->m.inputs.at[e->m.inputs.count++];
            in->tensor = e->m.shape[i];
            values_fill(&io, &values, in);
            continue;
        }
        if (!pair) {
            cli_say(LOG_INFO, "Using random values for input %s", io.name);
            continue;
        }
        cli_say(LOG_INFO, "Using values loaded from %s for input %s", pair->value, io.name);
        model_input *in = &e->m.inputs.at[e->m.inputs.count++];
        in->tensor = e->m.shape[i];
        is_good = exec_tensor_read(e, io.name, pair->value, in);
    }
    for (uint32_t i = 0; is_good && i < files.count; i++) {
        is_good = files.at[i].is_used;
        if (!is_good) cli_say(LOG_ERROR, "--loadInputs: there is no input '%s'", files.at[i].name);
    }
    exec_pairs_free(&files);
    return is_good;
}

bool exec_inputs_make(exec *e)
{
    const double profile = exec_number(&e->x, FLAG_useProfile, 0);
    const uint32_t count = sinter_engine_profile_count(e->m.engine);
    if (profile >= count) {
        cli_say(LOG_ERROR, "--useProfile=%.0f: the engine has profiles 0 to %u", profile, count - 1);
        return false;
    }
    e->a.has_use_profile = true;
    e->a.use_profile = (uint64_t)profile;
    const bool was_built = e->m.was_built;
    if (!exec_shapes_make(e)) return false;
    e->m.was_built = false; /* so that --shapes is honoured within the profile */
    const bool is_good = model_choose(&e->a, &e->m);
    e->m.was_built = was_built;
    return is_good && inputs_read(e);
}

/* ---- runs ---- */

double exec_time_of(const query *q, exec_time which)
{
    switch (which) {
    case EXEC_LATENCY: return 1e3 * (q->copy_in + q->compute + q->copy_out);
    case EXEC_ENQUEUE: return 1e3 * (q->enqueued - q->start);
    case EXEC_H2D: return 1e3 * q->copy_in;
    case EXEC_COMPUTE: return 1e3 * q->compute;
    case EXEC_D2H: return 1e3 * q->copy_out;
    case EXEC_TIMES: break;
    }
    return 0;
}

static measure_plan plan_of(const exec *e)
{
    const exec_args *x = &e->x;
    const double duration = exec_number(x, FLAG_duration, 3);
    return (measure_plan){
        .streams = (uint32_t)exec_number(x, exec_has(x, FLAG_streams) ? FLAG_streams : FLAG_infStreams, 1),
        .has_threads = exec_has(x, FLAG_threads),
        .is_spinning = exec_has(x, FLAG_useSpinWait),
        .has_phases = true,
        .has_transfers = !exec_has(x, FLAG_noDataTransfers),
        .warm_up_s = 1e-3 * exec_number(x, FLAG_warmUp, 200),
        .duration_s = duration < 0 ? (double)INFINITY : duration,
        .sleep_s = 1e-3 * exec_number(x, FLAG_sleepTime, 0),
        .idle_s = 1e-3 * exec_number(x, FLAG_idleTime, 0),
        .iterations = (uint64_t)exec_number(x, FLAG_iterations, 10),
    };
}

static void say_bindings(const exec *e, sinter_context *c)
{
    sinter_io io;
    sinter_error error = { 0 };
    for (uint32_t i = 0; sinter_engine_io(e->m.engine, i, e->m.profile, &io) == SINTER_OK; i++) {
        sinter_tensor t = { 0 };
        if (exec_is_mark(io.name)) continue;
        if (io.is_input) t = e->m.shape[i];
        else if (sinter_context_output(c, io.name, &t, &error) != SINTER_OK) continue;
        cli_say(LOG_INFO, "%s binding for %s with dimensions %s is created.", io.is_input ? "Input" : "Output", io.name,
                cli_shape(t.rank, t.dim).at);
    }
}

bool exec_infer(exec *e)
{
    sinter_error error = { 0 };
    measure_set *set = NULL;
    measured r = { 0 };
    const measure_plan plan = plan_of(e);
    if (!exec_inputs_make(e)) return false;
    cli_say(LOG_INFO, "Starting inference");
    sinter_status s = measure(&e->m, &plan, &set, &r, &error);
    error.status = s;
    bool is_good = s == SINTER_OK;
    if (!is_good) {
        (void)cli_error(&error);
        cli_say(LOG_ERROR, "Error occurred during inference");
    } else {
        say_bindings(e, measure_context(set, 0));
        cli_say(LOG_INFO, "Created execution context with device memory size: %g MiB", (double)r.memory / 1048576);
        exec_report(e, &r);
        if (exec_has(&e->x, FLAG_exportTimes)) is_good = exec_export_times(exec_text(&e->x, FLAG_exportTimes), &r);
        is_good = exec_outputs(e, set) && is_good;
        is_good = exec_compare(e, measure_context(set, 0)) && is_good;
    }
    measure_close(set);
    measured_free(&r);
    return is_good && exec_profile_steps(e);
}
