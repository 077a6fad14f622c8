/* SPDX-License-Identifier: Apache-2.0 */
/* timings.c - a build's timing cache: what may be written there, and what happens where writing fails. */
#include "builder/builder.h"
#include "tune/tune.h"

#include <string.h>

/* Refuses a path that holds something else than a timing cache, and leaves it alone. A cache that cannot be written is
 * not an error. */
sinter_status build_timings_check(env *e, const char *path)
{
    sinter_error found = { 0 }, *error = e->error;
    e->error = &found;
    const sinter_status s = timing_cache_check(e, path);
    e->error = error;
    if (s != SINTER_INVALID_ARG) return SINTER_OK;
    *error = found;
    return s;
}

/* Writes the timing cache. If that fails, the build does not fail: the report says why, and the next build measures
 * again. */
sinter_status build_timings_keep(env *e, timing_cache *cache, const sinter_build_options *o,
                                 sinter_build_report *report)
{
    sinter_error quiet = { 0 }, *error = e->error;
    if (!o->timing_cache || o->cache_only || !cache) return SINTER_OK;
    e->error = &quiet;
    const sinter_status s = timing_cache_write(cache, o->timing_cache);
    e->error = error;
    if (s == SINTER_NO_MEMORY) return FAIL_MEMORY(e, "the timing cache");
    if (s == SINTER_OK || !report) return SINTER_OK;
    const size_t length = strcspn(quiet.text, "\n"), most = sizeof report->cache_warning - 1;
    memcpy(report->cache_warning, quiet.text, length < most ? length : most);
    report->cache_warning[length < most ? length : most] = 0;
    return SINTER_OK;
}

/* Choosing has its own clocks. */
void build_timings_report(env *e, const tune_stats *s, sinter_build_report *r)
{
    const double compile_s = 1e-9 * (double)s->compile_ns, measure_s = 1e-9 * (double)s->measure_ns,
                 pack_s = 1e-9 * (double)s->pack_ns, rest_s = r->plan_s - compile_s - measure_s - pack_s;
    r->compile_s += compile_s;
    r->measure_s += measure_s;
    r->pack_s += pack_s;
    r->plan_s = rest_s > 0 ? rest_s : 0;
    r->measured = s->measured;
    r->clock_low = s->clock_low;
    r->clock_high = s->clock_high;
    r->clock_repeats = s->repeated;
    r->clock_doubtful = s->doubtful;
    r->was_throttled = s->was_throttled;
    if (s->clock_high)
        env_log(e, LOG_SELECT, "clock while measuring: %u to %u MHz%s, %u batches repeated, %u at a low clock",
                s->clock_low, s->clock_high, s->was_throttled ? ", throttled" : "", s->repeated, s->doubtful);
}
