/* SPDX-License-Identifier: Apache-2.0 */
/* einsum.c - reads einsum equations: "bij,bjk->bik", "...ij->...ji", "ii->i". Spaces are skipped. */
#include "ops/einsum.h"
#include <inttypes.h>

static int letter_of(char c)
{
    if (c >= 'a' && c <= 'z') return c - 'a';
    if (c >= 'A' && c <= 'Z') return c - 'A' + 26;
    return -1;
}

/* Reads one term up to ',' , '-' or the end. ellipsis_rank: how many axes "..." stands for; below 0: rank less the
 * letters. */
static sinter_status term_parse(env *e, const char *equation, const char **cursor, int64_t rank, int64_t ellipsis_rank,
                                einsum_term *out, uint32_t *ellipsis_out)
{
    const char *p = *cursor;
    int64_t letters = 0;
    bool has_ellipsis = false;
    for (const char *q = p; *q && *q != ',' && *q != '-'; q++) letters += letter_of(*q) >= 0;
    if (ellipsis_rank < 0) ellipsis_rank = rank - letters;
    out->count = 0;
    *ellipsis_out = 0;
    for (; *p && *p != ',' && *p != '-'; p++) {
        if (*p == ' ') continue;
        const int letter = letter_of(*p);
        const bool is_dots = p[0] == '.' && p[1] == '.' && p[2] == '.';
        if (letter < 0 && (!is_dots || has_ellipsis)) {
            return FAIL(e, INVALID_MODEL, "equation '%s' has an unexpected '%c' at position %d", equation, *p,
                        (int)(p - equation));
        }
        const int64_t count = letter >= 0 ? 1 : ellipsis_rank;
        if (count < 0 || out->count + count > SINTER_RANK_MAX) {
            return FAIL(e, INVALID_MODEL, "a term of equation '%s' has more axes than its operand or than %d", equation,
                        SINTER_RANK_MAX);
        }
        if (letter >= 0) {
            out->label[out->count++] = (uint8_t)letter;
            continue;
        }
        has_ellipsis = true;
        *ellipsis_out = (uint32_t)count;
        for (int64_t i = count; i-- > 0;) out->label[out->count++] = (uint8_t)(EINSUM_LETTERS + i);
        p += 2;
    }
    *cursor = p;
    return SINTER_OK;
}

sinter_status einsum_parse(env *e, const char *equation, uint32_t count_in, const uint32_t *rank, einsum *out)
{
    memset(out, 0, sizeof(*out));
    if (count_in > EINSUM_IN_MAX) {
        return FAIL(e, UNSUPPORTED, "einsum has %" PRIu32 " operands, the most is %d", count_in, EINSUM_IN_MAX);
    }
    const char *p = equation;
    uint32_t ellipsis_max = 0;
    bool is_used[EINSUM_LABELS] = { false };
    out->count_in = count_in;
    for (uint32_t i = 0; i < count_in; i++) {
        uint32_t ellipsis = 0;
        TRY(term_parse(e, equation, &p, rank[i], -1, &out->in[i], &ellipsis));
        if (out->in[i].count != rank[i]) {
            return FAIL(e, INVALID_MODEL,
                        "operand %" PRIu32 " of equation '%s' has rank %" PRIu32 ", its term names %" PRIu32, i,
                        equation, rank[i], out->in[i].count);
        }
        if (ellipsis > ellipsis_max) ellipsis_max = ellipsis;
        for (uint32_t k = 0; k < out->in[i].count; k++) is_used[out->in[i].label[k]] = true;
        if (i + 1 == count_in) break;
        if (*p++ != ',')
            return FAIL(e, INVALID_MODEL, "equation '%s' has fewer terms than operands, %" PRIu32, equation, count_in);
    }
    if (p[0] != '-' || p[1] != '>') {
        return FAIL(e, INVALID_MODEL, "equation '%s' has no '->' after its term %" PRIu32 " of %" PRIu32, equation,
                    count_in, count_in);
    }
    p += 2;
    uint32_t ellipsis = 0;
    TRY(term_parse(e, equation, &p, 0, ellipsis_max, &out->out, &ellipsis));
    if (*p) return FAIL(e, INVALID_MODEL, "equation '%s' goes on after its result: '%s'", equation, p);
    bool is_seen[EINSUM_LABELS] = { false };
    for (uint32_t k = 0; k < out->out.count; k++) {
        const uint8_t label = out->out.label[k];
        if (!is_used[label] || is_seen[label]) {
            return FAIL(e, INVALID_MODEL, "axis %" PRIu32 " of the result of equation '%s' %s", k, equation,
                        is_seen[label] ? "is named twice" : "is in no operand");
        }
        is_seen[label] = true;
    }
    return SINTER_OK;
}
