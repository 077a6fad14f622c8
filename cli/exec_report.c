/* SPDX-License-Identifier: Apache-2.0 */
/* exec_report.c - the lines that are read by other programs: trace and summary, in trtexec's words. */
#include "exec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static series series_of(const measured *r, exec_time which)
{
    series s = { .at = cli_alloc(r->count, sizeof *s.at), .count = r->count };
    for (uint32_t i = 0; i < r->count; i++) s.at[i] = exec_time_of(&r->at[i], which);
    series_sort(&s);
    return s;
}

static double median_of(const series *s)
{
    const uint32_t half = s->count / 2;
    return s->count % 2 ? s->at[half] : 0.5 * (s->at[half - 1] + s->at[half]);
}

/* trtexec's rule: a value that was measured, of index n - 1 - floor((1 - p / 100) n). */
static double percentile_of(const series *s, double percent)
{
    const double left = floor((1 - percent / 100) * s->count);
    return left >= s->count ? s->at[0] : s->at[s->count - 1 - (uint32_t)left];
}

/* A number as trtexec prints it, without an exponent: programs that read the log look for digits and a point. */
typedef struct figure {
    char text[40];
} figure;

static figure figure_of(double x)
{
    figure f;
    (void)snprintf(f.text, sizeof f.text, "%g", x);
    if (!isfinite(x) || !strchr(f.text, 'e')) return f;
    (void)snprintf(f.text, sizeof f.text, "%.*f", fabs(x) < 1 ? 10 : 0, x);
    size_t length = strlen(f.text);
    while (strchr(f.text, '.') && (f.text[length - 1] == '0' || f.text[length - 1] == '.')) f.text[--length] = 0;
    return f;
}

static void say_times(const exec *e, const char *label, const series *s)
{
    const char *at = exec_has(&e->x, FLAG_percentile) ? exec_text(&e->x, FLAG_percentile) : "90,95,99";
    kept_text line = { 0 };
    while (*at) {
        char part[96];
        const double percent = exec_percent(&at);
        (void)snprintf(part, sizeof part, ", percentile(%g%%) = %s ms", percent,
                       figure_of(percentile_of(s, percent)).text);
        cli_write_kept(&line, part, strlen(part));
    }
    cli_say(LOG_INFO, "%s: min = %s ms, max = %s ms, mean = %s ms, median = %s ms%s", label, figure_of(s->at[0]).text,
            figure_of(s->at[s->count - 1]).text, figure_of(series_mean(s)).text, figure_of(median_of(s)).text,
            line.at ? line.at : "");
    free(line.at);
}

static void say_trace(const exec *e, const measured *r)
{
    const uint32_t group = (uint32_t)exec_number(&e->x, FLAG_avgRuns, 10);
    cli_say(LOG_INFO, "%s", "");
    cli_say(LOG_INFO, "=== Trace details ===");
    cli_say(LOG_INFO, "Trace averages of %u runs:", group);
    for (uint32_t i = 0; i + group <= r->count; i += group) {
        double sum[EXEC_TIMES] = { 0 };
        for (uint32_t k = 0; k < group; k++)
            for (uint32_t t = 0; t < EXEC_TIMES; t++) sum[t] += exec_time_of(&r->at[i + k], (exec_time)t) / group;
        cli_say(LOG_INFO, "Average on %u runs - GPU latency: %s ms - Host latency: %s ms (enqueue %s ms)", group,
                figure_of(sum[EXEC_COMPUTE]).text, figure_of(sum[EXEC_LATENCY]).text,
                figure_of(sum[EXEC_ENQUEUE]).text);
    }
}

static double variation_of(const series *s)
{
    const double mean = series_mean(s);
    double sum = 0;
    for (uint32_t i = 0; i < s->count; i++) sum += (s->at[i] - mean) * (s->at[i] - mean);
    return mean > 0 ? 100 * sqrt(sum / s->count) / mean : 0;
}

static void warn(const exec *e, const series *list, const measured *r)
{
    static const double much = 0.8, unstable = 2.5;
    const double compute = median_of(&list[EXEC_COMPUTE]);
    if (r->is_async && median_of(&list[EXEC_ENQUEUE]) > much * compute)
        cli_say(LOG_WARNING, "* Throughput may be bound by Enqueue Time rather than GPU Compute and the GPU may be "
                             "under-utilized.");
    if (median_of(&list[EXEC_H2D]) >= compute && compute > 0)
        cli_say(LOG_WARNING,
                "* Throughput may be bound by host-to-device transfers for the inputs rather than GPU Compute "
                "and the GPU may be under-utilized.\n  Add --noDataTransfers flag to disable data transfers.");
    if (median_of(&list[EXEC_D2H]) >= compute && compute > 0)
        cli_say(LOG_WARNING,
                "* Throughput may be bound by device-to-host transfers for the outputs rather than GPU Compute "
                "and the GPU may be under-utilized.\n  Add --noDataTransfers flag to disable data transfers.");
    const double variation = variation_of(&list[EXEC_COMPUTE]);
    if (variation > unstable)
        cli_say(LOG_WARNING,
                "* GPU compute time is unstable, with coefficient of variance = %g%%.\n  If not already in use, "
                "locking GPU "
                "clock frequency or adding --useSpinWait may improve the stability.",
                variation);
    if (exec_number(&e->x, exec_has(&e->x, FLAG_streams) ? FLAG_streams : FLAG_infStreams, 1) > 1)
        cli_say(LOG_WARNING,
                "* Multiple inference streams run at the same time: the latency of one includes waiting for "
                "the others.");
}

static void explain(void)
{
    cli_say(
        LOG_VERBOSE,
        "=== Explanations of the performance metrics ===\n"
        "Total Host Walltime: the time from the start of the first query after the warm-up to the end of the last.\n"
        "GPU Compute Time: the time that the device computes for a query.\n"
        "Total GPU Compute Time: the sum of the GPU Compute Time of all queries.\n"
        "Enqueue Time: the time that the host takes to start a query; on the CPU it is the time of the run.\n"
        "H2D Latency: the time of the copies of a query's inputs to the device.\n"
        "D2H Latency: the time of the copies of a query's outputs to the host.\n"
        "Latency: the sum of H2D Latency, GPU Compute Time and D2H Latency.\n"
        "Throughput: the number of queries divided by Total Host Walltime.");
}

void exec_report(const exec *e, const measured *r)
{
    static const char *const label[EXEC_TIMES] = { "Latency", "Enqueue Time", "H2D Latency", "GPU Compute Time",
                                                   "D2H Latency" };
    series list[EXEC_TIMES];
    double compute = 0;
    if (!r->count) {
        cli_say(LOG_WARNING, "No query was run: --iterations and --duration are 0");
        return;
    }
    cli_say(LOG_INFO, "Warmup completed %u queries over %s ms", r->warm_up_runs, figure_of(1e3 * r->warm_up_s).text);
    cli_say(LOG_INFO, "Timing trace has %u queries over %s s", r->count, figure_of(r->wall_s).text);
    say_trace(e, r);
    for (uint32_t t = 0; t < EXEC_TIMES; t++) list[t] = series_of(r, (exec_time)t);
    for (uint32_t i = 0; i < r->count; i++) compute += r->at[i].compute;
    cli_say(LOG_INFO, "%s", "");
    cli_say(LOG_INFO, "=== Performance summary ===");
    cli_say(LOG_INFO, "Throughput: %s qps", figure_of(r->wall_s > 0 ? r->count / r->wall_s : 0).text);
    for (uint32_t t = 0; t < EXEC_TIMES; t++) say_times(e, label[t], &list[t]);
    cli_say(LOG_INFO, "Total Host Walltime: %s s", figure_of(r->wall_s).text);
    cli_say(LOG_INFO, "Total GPU Compute Time: %s s", figure_of(compute).text);
    warn(e, list, r);
    cli_say(LOG_INFO, "Explanations of the performance metrics are printed in the verbose logs.");
    explain();
    cli_say(LOG_INFO, "%s", "");
    for (uint32_t t = 0; t < EXEC_TIMES; t++) free(list[t].at);
}
