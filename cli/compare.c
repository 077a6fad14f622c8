/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c - tolerances, and the one comparison of results that the command has. */
#include "compare.h"

#include "print.h"
#include <math.h>
#include <string.h>

tolerance tolerance_of(sinter_dtype dtype)
{
    switch (dtype) {
    case SINTER_DTYPE_F32:
    case SINTER_DTYPE_F64: return (tolerance){ .atol = 1e-7, .rtol = 1e-3, .nrms = -1 };
    case SINTER_DTYPE_F16: return (tolerance){ .atol = 1e-3, .rtol = 5e-3, .nrms = -1 };
    case SINTER_DTYPE_BF16: return (tolerance){ .atol = 1e-2, .rtol = 2e-2, .nrms = -1 };
    case SINTER_DTYPE_F8E4M3FN:
    case SINTER_DTYPE_F8E4M3FNUZ: return (tolerance){ .atol = 0.002, .rtol = 0.13, .nrms = -1 };
    case SINTER_DTYPE_F8E5M2:
    case SINTER_DTYPE_F8E5M2FNUZ: return (tolerance){ .atol = 2e-5, .rtol = 0.26, .nrms = -1 };
    case SINTER_DTYPE_F4E2M1: return (tolerance){ .atol = 0.5, .rtol = 0.5, .nrms = -1 };
    case SINTER_DTYPE_F8E8M0: return (tolerance){ .rtol = 0.5, .nrms = -1 };
    case SINTER_DTYPE_I8:
    case SINTER_DTYPE_U8: return (tolerance){ .atol = 1, .nrms = -1 };
    default: return (tolerance){ .nrms = -1 };
    }
}

void tolerance_override(tolerance *t, json_value entry)
{
    json_value v;
    if (json_member(entry, "atol", &v)) (void)json_number(v, &t->atol);
    if (json_member(entry, "rtol", &v)) (void)json_number(v, &t->rtol);
    if (json_member(entry, "nrms", &v)) (void)json_number(v, &t->nrms);
}

int64_t compare_count(const sinter_tensor *t)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < t->rank; i++) count *= t->dim[i];
    return count;
}

int64_t compare_stride(int64_t count, int64_t samples)
{
    if (samples <= 0 || samples > count) return samples == count ? 1 : 0;
    const int64_t stride = samples == 1 ? count : (count + samples - 1) / samples;
    return (count + stride - 1) / stride == samples ? stride : 0;
}

/* .npy has no name for these types: a file holds their values in a wider one. */
static bool is_wider(sinter_dtype file, sinter_dtype got)
{
    switch (got) {
    case SINTER_DTYPE_BF16:
    case SINTER_DTYPE_F8E4M3FN:
    case SINTER_DTYPE_F8E4M3FNUZ:
    case SINTER_DTYPE_F8E5M2:
    case SINTER_DTYPE_F8E5M2FNUZ:
    case SINTER_DTYPE_F8E8M0:
    case SINTER_DTYPE_F4E2M1: return file == SINTER_DTYPE_F32;
    case SINTER_DTYPE_I2:
    case SINTER_DTYPE_I4: return file == SINTER_DTYPE_I8;
    case SINTER_DTYPE_U2:
    case SINTER_DTYPE_U4: return file == SINTER_DTYPE_U8;
    default: return false;
    }
}

static bool is_exact(sinter_dtype dtype, const tolerance *t)
{
    return (dtype == SINTER_DTYPE_I64 || dtype == SINTER_DTYPE_U64) && t->atol == 0 && t->rtol == 0;
}

/* "[0,3,17]" of a flat index. */
static void index_text(const sinter_tensor *t, int64_t flat, char *out, size_t size)
{
    int64_t index[SINTER_RANK_MAX] = { 0 };
    for (uint32_t i = t->rank; i-- > 0;) {
        index[i] = t->dim[i] ? flat % t->dim[i] : 0;
        flat = t->dim[i] ? flat / t->dim[i] : 0;
    }
    size_t at = (size_t)snprintf(out, size, "[");
    for (uint32_t i = 0; i < t->rank && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%lld", i ? "," : "", (long long)index[i]);
    if (at < size) (void)snprintf(out + at, size - at, "]");
}

/* |got - want| over what is allowed: at most 1 passes. */
static double excess(double got, double want, const tolerance *t)
{
    if (got == want || (isnan(got) && isnan(want))) return 0;
    if (!isfinite(got) || !isfinite(want)) return INFINITY;
    const double allowed = t->atol + t->rtol * fabs(want), gap = fabs(got - want);
    return gap <= allowed ? (allowed > 0 ? gap / allowed : 0) : allowed > 0 ? gap / allowed : INFINITY;
}

/* A double cannot tell all 64-bit integers apart. */
static bool differs64(const sinter_tensor *got, int64_t at, const sinter_tensor *want, int64_t i)
{
    return memcmp((const char *)got->data + 8 * at, (const char *)want->data + 8 * i, 8) != 0;
}

int64_t compare_mismatched(const sinter_tensor *got, const sinter_tensor *want, const tolerance *t)
{
    const int64_t count = compare_count(want);
    const bool has_bits = is_exact(got->dtype, t) && got->dtype == want->dtype;
    int64_t bad = 0;
    for (int64_t i = 0; i < count; i++)
        bad += (has_bits && differs64(got, i, want, i)) ||
               excess(sinter_tensor_value(got, i), sinter_tensor_value(want, i), t) > 1;
    return bad;
}

bool compare_text(const sinter_tensor *got, const sinter_tensor *want, char *why, size_t size)
{
    const uint32_t rank = got->rank;
    if (got->dtype != SINTER_DTYPE_U8 || want->dtype != SINTER_DTYPE_U8 || !rank || rank != want->rank ||
        memcmp(got->dim, want->dim, (rank - 1) * sizeof *got->dim)) {
        (void)snprintf(why, size, "has shape %s, want text of %s", cli_shape(rank ? rank - 1 : 0, got->dim).at,
                       cli_shape(want->rank ? want->rank - 1 : 0, want->dim).at);
        return false;
    }
    const int64_t widths[2] = { got->dim[rank - 1], want->dim[rank - 1] },
                  most = widths[0] > widths[1] ? widths[0] : widths[1];
    const int64_t count = most ? compare_count(widths[0] ? got : want) / (widths[0] ? widths[0] : widths[1]) : 0;
    for (int64_t i = 0; i < count; i++) {
        const char *g = (const char *)got->data + i * widths[0], *w = (const char *)want->data + i * widths[1];
        for (int64_t k = 0; k < most; k++) {
            if ((k < widths[0] ? g[k] : 0) == (k < widths[1] ? w[k] : 0)) continue;
            (void)snprintf(why, size, "text %lld is '%.*s', want '%.*s'", (long long)i, (int)widths[0], g,
                           (int)widths[1], w);
            return false;
        }
    }
    return true;
}

bool compare_tensors(const sinter_tensor *got, const sinter_tensor *want, int64_t stride, const tolerance *t, char *why,
                     size_t size, double *worst)
{
    *worst = 0;
    if (got->dtype != want->dtype && !t->has_any_type && !is_wider(want->dtype, got->dtype)) {
        (void)snprintf(why, size, "is %s, want %s", sinter_dtype_name(got->dtype), sinter_dtype_name(want->dtype));
        return false;
    }
    const bool is_same = got->rank == want->rank && !memcmp(got->dim, want->dim, got->rank * sizeof *got->dim);
    if (stride == 1 && !is_same) {
        (void)snprintf(why, size, "has shape %s, want %s", cli_shape(got->rank, got->dim).at,
                       cli_shape(want->rank, want->dim).at);
        return false;
    }
    const int64_t count = compare_count(want);
    const bool has_bits = is_exact(got->dtype, t) && got->dtype == want->dtype;
    int64_t bad = 0, worst_at = 0;
    double square_gap = 0, square_want = 0;
    for (int64_t i = 0; i < count; i++) {
        const double g = sinter_tensor_value(got, i * stride), w = sinter_tensor_value(want, i);
        const double x = has_bits && differs64(got, i * stride, want, i) ? INFINITY : excess(g, w, t);
        bad += x > 1;
        if (x > *worst) {
            *worst = x;
            worst_at = i;
        }
        if (isfinite(g) && isfinite(w)) {
            square_gap += (g - w) * (g - w);
            square_want += w * w;
        }
    }
    if (bad) {
        char place[192];
        index_text(got, worst_at * stride, place, sizeof place);
        const double g = sinter_tensor_value(got, worst_at * stride), w = sinter_tensor_value(want, worst_at);
        (void)snprintf(why, size, "%lld of %lld values differ, most at %s: got %.9g, want %.9g, allowed +-%.3g",
                       (long long)bad, (long long)count, place, g, w, t->atol + t->rtol * fabs(w));
        return false;
    }
    if (t->nrms >= 0 && count) {
        const double nrms = square_want > 0 ? sqrt(square_gap / square_want) : square_gap > 0 ? INFINITY : 0;
        if (t->nrms > 0 && nrms / t->nrms > *worst) *worst = nrms / t->nrms;
        if (nrms > t->nrms) {
            (void)snprintf(why, size, "rms of the difference is %.3g of the wanted rms, allowed %.3g", nrms, t->nrms);
            return false;
        }
    }
    return true;
}
