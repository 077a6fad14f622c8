/* SPDX-License-Identifier: Apache-2.0 */
/* difference.c - statistics of two tensors. */
#include "difference.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is asked of an output ---- */

/* The text behind the last ':' of the item that is for `name`, else of the last one that is for all. */
static const char *asked(const arg_list *list, const char *name)
{
    const char *all = NULL;
    for (uint32_t i = list->count; i-- > 0;) {
        const char *colon = strrchr(list->at[i], ':');
        if (!colon) all = all ? all : list->at[i];
        else if ((size_t)(colon - list->at[i]) == strlen(name) && !memcmp(list->at[i], name, strlen(name)))
            return colon + 1;
    }
    return all;
}

bool difference_number(const arg_list *list, const char *name, double *out)
{
    const char *text = asked(list, name);
    if (text) *out = strtod(text, NULL);
    return text != NULL;
}

/* What both types permit; below 1e-5 two ways to add up f32 differ. */
static tolerance tolerance_for(const args *a, const char *name, sinter_dtype got, sinter_dtype want)
{
    tolerance t = tolerance_of(got);
    const tolerance other = tolerance_of(want);
    if (other.atol > t.atol) t.atol = other.atol;
    if (other.rtol > t.rtol) t.rtol = other.rtol;
    if (t.rtol > 0 && t.atol < 1e-5) t.atol = 1e-5;
    (void)difference_number(&a->atol, name, &t.atol);
    (void)difference_number(&a->rtol, name, &t.rtol);
    t.has_any_type = got != want;
    return t;
}

/* ---- figures ---- */

/* The element that stands at `k` of the sorted list. Moves elements. */
static double select_at(double *x, size_t count, size_t k)
{
    int64_t low = 0, high = (int64_t)count - 1;
    while (low < high) {
        const double pivot = x[k];
        int64_t i = low, j = high;
        while (i <= j) {
            while (x[i] < pivot) i++;
            while (x[j] > pivot) j--;
            if (i > j) break;
            const double swap = x[i];
            x[i++] = x[j];
            x[j--] = swap;
        }
        if (j < (int64_t)k) low = i;
        if ((int64_t)k < i) high = j;
    }
    return x[k];
}

/* Linear between the two nearest. */
static double quantile_of(double *x, size_t count, double share)
{
    const double at = share * (double)(count - 1);
    const size_t below = (size_t)at;
    const double a = select_at(x, count, below), part = at - (double)below;
    if (part <= 0 || below + 1 >= count) return a;
    const double b = select_at(x, count, below + 1);
    return a == b ? a : a + part * (b - a);
}

static error_figures figures_of(double *x, size_t count, double quantile)
{
    error_figures f = { 0 };
    double sum = 0;
    if (!count) return f;
    for (size_t i = 0; i < count; i++) {
        sum += x[i];
        if (x[i] > f.max) f.max = x[i];
    }
    f.mean = sum / (double)count;
    f.median = quantile_of(x, count, 0.5);
    f.quantile = quantile_of(x, count, quantile);
    return f;
}

static double error_of(double got, double want)
{
    if (got == want || (isnan(got) && isnan(want))) return 0;
    return isfinite(got) && isfinite(want) ? fabs(got - want) : INFINITY;
}

static uint32_t decade_of(double error)
{
    if (error == 0) return 0;
    const double at = isfinite(error) ? floor(log10(error)) + 14 : DIFFERENCE_DECADES;
    return at < 1 ? 1 : at > DIFFERENCE_DECADES - 1 ? DIFFERENCE_DECADES - 1 : (uint32_t)at;
}

decade_text difference_decade(uint32_t index)
{
    decade_text t;
    if (!index) (void)snprintf(t.at, sizeof t.at, "0");
    else if (index == DIFFERENCE_DECADES - 1) (void)snprintf(t.at, sizeof t.at, ">= 1e%+03d", (int)index - 14);
    else (void)snprintf(t.at, sizeof t.at, "< 1e%+03d", (int)index - 13);
    return t;
}

typedef struct sums {
    double dot, got, want, gap;
    int64_t count;
} sums;

static void value_add(difference *d, uint32_t side, double x, int64_t *seen)
{
    d->nans[side] += isnan(x) != 0;
    d->infinities[side] += isinf(x) != 0;
    if (!isfinite(x)) return;
    if (!*seen || x < d->least[side]) d->least[side] = x;
    if (!*seen || x > d->most[side]) d->most[side] = x;
    (*seen)++;
    d->mean[side] += (x - d->mean[side]) / (double)*seen;
}

static void shares_make(difference *d, const sums *s)
{
    const double spread = d->most[1] - d->least[1], range = spread > 0 ? spread : fabs(d->most[1]);
    const double mse = s->count ? s->gap / (double)s->count : 0;
    d->cosine = s->got > 0 && s->want > 0 ? s->dot / (sqrt(s->got) * sqrt(s->want)) : s->got == s->want ? 1 : 0;
    d->psnr = mse > 0 ? 10 * log10(range * range / mse) : INFINITY;
    d->nrms = s->want > 0 ? sqrt(s->gap / s->want) : s->gap > 0 ? INFINITY : 0;
}

static void figures_make(const sinter_tensor *got, const sinter_tensor *want, difference *d)
{
    const size_t count = (size_t)compare_count(want);
    double *absolute = cli_alloc(count, sizeof *absolute), *relative = cli_alloc(count, sizeof *relative);
    int64_t seen[2] = { 0 };
    sums s = { 0 };
    for (size_t i = 0; i < count; i++) {
        const double g = sinter_tensor_value(got, (int64_t)i), w = sinter_tensor_value(want, (int64_t)i);
        value_add(d, 0, g, &seen[0]);
        value_add(d, 1, w, &seen[1]);
        absolute[i] = error_of(g, w);
        relative[i] = absolute[i] == 0 ? 0 : w != 0 && isfinite(absolute[i]) ? absolute[i] / fabs(w) : INFINITY;
        d->decade[decade_of(absolute[i])]++;
        if (!isfinite(g) || !isfinite(w)) continue;
        s.count++;
        s.dot += g * w;
        s.got += g * g;
        s.want += w * w;
        s.gap += (g - w) * (g - w);
    }
    d->count = (int64_t)count;
    d->absolute = figures_of(absolute, count, d->quantile);
    d->relative = figures_of(relative, count, d->quantile);
    shares_make(d, &s);
    free(absolute);
    free(relative);
}

/* ---- the verdict ---- */

static double stat_of(const error_figures *f, const char *stat)
{
    return !strcmp(stat, "max")      ? f->max
           : !strcmp(stat, "mean")   ? f->mean
           : !strcmp(stat, "median") ? f->median
                                     : f->quantile;
}

static void refuse(difference *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void refuse(difference *d, const char *format, ...)
{
    const size_t used = strlen(d->why);
    va_list list;
    va_start(list, format);
    if (used) (void)snprintf(d->why + used, sizeof d->why - used, "; ");
    (void)vsnprintf(d->why + strlen(d->why), sizeof d->why - strlen(d->why), format, list);
    va_end(list);
    d->is_good = false;
}

static void judge(const args *a, const char *name, const tolerance *t, difference *d)
{
    const char *stat = asked(&a->check_error_stat, name);
    double least = 0;
    if (stat && strcmp(stat, "elemwise") != 0) {
        const double absolute = stat_of(&d->absolute, stat), relative = stat_of(&d->relative, stat);
        d->is_good = true;
        *d->why = 0;
        if (!(absolute <= t->atol) && !(relative <= t->rtol))
            refuse(d, "the %s error is %.3g, allowed %.3g, and of relative errors %.3g, allowed %.3g", stat, absolute,
                   t->atol, relative, t->rtol);
    }
    if (difference_number(&a->cosine_similarity_threshold, name, &least) && !(d->cosine >= least))
        refuse(d, "the cosine similarity is %.9g, at least %.9g is wanted", d->cosine, least);
    if (difference_number(&a->psnr_threshold, name, &least) && !(d->psnr >= least))
        refuse(d, "the PSNR is %.4g dB, at least %.4g is wanted", d->psnr, least);
    for (uint32_t k = 0; k < 2 && a->validate; k++)
        if (d->nans[k] || d->infinities[k])
            refuse(d, "%s has %lld NaN and %lld infinite values", k ? "B" : "A", (long long)d->nans[k],
                   (long long)d->infinities[k]);
}

void difference_make(const args *a, const char *name, const sinter_tensor *got, const sinter_tensor *want,
                     difference *out)
{
    double worst = 0;
    const tolerance t = tolerance_for(a, name, got->dtype, want->dtype);
    *out = (difference){ .quantile = 0.99 };
    (void)difference_number(&a->error_quantile, name, &out->quantile);
    out->is_good = compare_tensors(got, want, 1, &t, out->why, sizeof out->why, &worst);
    if (got->rank != want->rank || memcmp(got->dim, want->dim, got->rank * sizeof *got->dim) != 0) return;
    figures_make(got, want, out);
    out->mismatched = compare_mismatched(got, want, &t);
    judge(a, name, &t, out);
}

/* ---- reports ---- */

static void figures_json(json *j, const char *key, const error_figures *f)
{
    json_open(j, key, '{');
    json_real(j, "max", f->max);
    json_real(j, "mean", f->mean);
    json_real(j, "median", f->median);
    json_real(j, "quantile", f->quantile);
    json_close(j, '}');
}

void difference_json(json *j, const difference *d)
{
    static const char *const side[] = { "a", "b" };
    json_text(j, "verdict", d->is_good ? "passed" : "failed");
    if (!d->is_good) json_text(j, "reason", d->why);
    json_count(j, "count", d->count);
    json_count(j, "mismatched", d->mismatched);
    figures_json(j, "absolute", &d->absolute);
    figures_json(j, "relative", &d->relative);
    json_real(j, "error_quantile", d->quantile);
    json_real(j, "cosine_similarity", d->cosine);
    json_real(j, "psnr_db", d->psnr);
    json_real(j, "rms_share", d->nrms);
    for (uint32_t k = 0; k < 2; k++) {
        json_open(j, side[k], '{');
        json_real(j, "min", d->least[k]);
        json_real(j, "max", d->most[k]);
        json_real(j, "mean", d->mean[k]);
        json_count(j, "nan", d->nans[k]);
        json_count(j, "infinite", d->infinities[k]);
        json_close(j, '}');
    }
    json_open(j, "histogram", '[');
    for (uint32_t i = 0; i < DIFFERENCE_DECADES; i++) json_count(j, NULL, d->decade[i]);
    json_close(j, ']');
}

void difference_bars(const difference *d, FILE *to)
{
    enum { WIDTH = 40 };
    int64_t most = 1;
    for (uint32_t i = 0; i < DIFFERENCE_DECADES; i++) most = d->decade[i] > most ? d->decade[i] : most;
    for (uint32_t i = 0; i < DIFFERENCE_DECADES; i++) {
        if (!d->decade[i]) continue;
        const int length = (int)((double)d->decade[i] / (double)most * WIDTH);
        (void)fprintf(to, "    %9s %10lld %.*s\n", difference_decade(i).at, (long long)d->decade[i],
                      length ? length : 1, "########################################");
    }
}
