/* SPDX-License-Identifier: Apache-2.0 */
/* calibration.c - calibration.h has the contract.
 *
 * A line of a cache is split at its last ": ", so names may hold colons and spaces. */
#include "builder/calibration.h"

#include <math.h>
#include <string.h>

enum { DIGITS = 8, TAIL = DIGITS + 2 };

static const char *const method_words[] = { "EntropyCalibration2",   "EntropyCalibration", "MinMaxCalibration",
                                            "PercentileCalibration", "LegacyCalibration",  "ErrorCalibration" };

sinter_status calibration_create(env *e, sinter_calibration_method method, sinter_calibration **out)
{
    *out = NULL;
    sinter_calibration *c = mem_zalloc(e, sizeof *c, _Alignof(sinter_calibration));
    if (!c) return FAIL_MEMORY(e, "a calibration");
    c->e = *e;
    c->e.budget = NULL;
    c->e.error = &c->e.error_own;
    arena_init(&c->a, &c->e);
    c->names.a = &c->a;
    c->header = arena_printf(&c->a, "TRT-101600-%s", method_words[method]);
    if (c->header) {
        *out = c;
        return SINTER_OK;
    }
    sinter_calibration_destroy(c);
    return FAIL_MEMORY(e, "a calibration");
}

void sinter_calibration_destroy(sinter_calibration *c)
{
    if (!c) return;
    arena_deinit(&c->a);
    env e = c->e;
    mem_free(&e, c, sizeof *c, _Alignof(sinter_calibration));
}

/* ---- rows ---- */

const char *calibration_name_wrong(const char *name)
{
    if (!name || !*name) return "is empty";
    return strpbrk(name, "\r\n") ? "has an end of line" : NULL;
}

static sinter_status put(sinter_calibration *c, env *e, const char *name, float scale, bool *is_new)
{
    uint32_t *known = name_map_find(&c->names, name);
    *is_new = !known;
    if (known) {
        c->row.at[*known].scale = scale;
        return SINTER_OK;
    }
    const char *own = arena_text(&c->a, name, strlen(name));
    calibration_row *row = own ? VEC_PUSH(&c->a, &c->row) : NULL;
    uint32_t *slot = row ? name_map_add(&c->names, own, is_new) : NULL;
    if (!slot) return FAIL_MEMORY(e, "a calibration");
    *slot = c->row.count - 1;
    *row = (calibration_row){ own, scale };
    return SINTER_OK;
}

sinter_status calibration_set(sinter_calibration *c, env *e, const char *name, double range)
{
    const char *wrong = calibration_name_wrong(name);
    bool is_new;
    if (wrong) return FAIL(e, INVALID_ARG, "the name of a tensor %s", wrong);
    const float scale = (float)(range / 127);
    if (!(range >= 0) || !isfinite(scale))
        return FAIL(e, INVALID_ARG, "the range of '%s' is %g: wanted a finite f32 number from 0 on", name, range);
    return put(c, e, name, scale, &is_new);
}

double calibration_range(const sinter_calibration *c, const char *name)
{
    const uint32_t *row = name_map_find(&c->names, name);
    return row ? (double)c->row.at[*row].scale * 127 : 0;
}

/* ---- text ---- */

void calibration_write(const sinter_calibration *c, text *to)
{
    text_printf(to, "%s\n", c->header);
    for (uint32_t i = 0; i < c->row.count; i++) {
        uint32_t bits;
        memcpy(&bits, &c->row.at[i].scale, sizeof bits);
        text_printf(to, "%s: %08x\n", c->row.at[i].name, bits);
    }
}

/* "TRT-8601-EntropyCalibration2" */
static bool is_header(const char *line)
{
    static const char digits[] = "0123456789",
                      letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    if (strncmp(line, "TRT-", 4) != 0) return false;
    const size_t version = strspn(line + 4, digits);
    const char *method = line + 4 + version + 1;
    return version && method[-1] == '-' && *method && !method[strspn(method, letters)];
}

static bool hex_read(const char *at, uint32_t *out)
{
    *out = 0;
    for (uint32_t i = 0; i < DIGITS; i++) {
        const char c = at[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return false;
        *out = *out << 4 | (uint32_t)digit;
    }
    return true;
}

/* `line` is a copy that may be changed. */
static sinter_status line_read(sinter_calibration *c, env *e, uint32_t number, char *line, size_t length)
{
    uint32_t bits;
    float scale;
    bool is_new;
    if (strlen(line) != length) return FAIL(e, INVALID_MODEL, "line %u has a byte 0", number);
    if (number == 1) {
        if (!is_header(line)) return FAIL(e, INVALID_MODEL, "line 1 is '%.60s', wanted 'TRT-VERSION-METHOD'", line);
        c->header = arena_text(&c->a, line, length);
        return c->header ? SINTER_OK : FAIL_MEMORY(e, "a calibration");
    }
    if (length <= TAIL || memcmp(line + length - TAIL, ": ", 2) != 0 || !hex_read(line + length - DIGITS, &bits))
        return FAIL(e, INVALID_MODEL, "line %u is '%.60s', wanted 'NAME: ' and 8 hexadecimal digits", number, line);
    line[length - TAIL] = 0;
    const char *wrong = calibration_name_wrong(line);
    if (wrong) return FAIL(e, INVALID_MODEL, "the name in line %u %s", number, wrong);
    memcpy(&scale, &bits, sizeof scale);
    if (!isfinite(scale) || signbit(scale))
        return FAIL(e, INVALID_MODEL, "the scale of '%.60s' in line %u is %g: wanted a finite number from 0 on", line,
                    number, (double)scale);
    TRY(put(c, e, line, scale, &is_new));
    return is_new ? SINTER_OK : FAIL(e, INVALID_MODEL, "'%.60s' in line %u has a scale already", line, number);
}

sinter_status calibration_read(sinter_calibration *c, env *e, const char *cache, size_t size)
{
    arena scratch;
    arena_init(&scratch, e);
    sinter_status s = size ? SINTER_OK : FAIL(e, INVALID_MODEL, "it is empty, wanted 'TRT-VERSION-METHOD'");
    uint32_t number = 0;
    for (size_t at = 0; at < size && s == SINTER_OK;) {
        const char *end = memchr(cache + at, '\n', size - at);
        const size_t next = end ? (size_t)(end - cache) + 1 : size;
        size_t length = next - at - (end ? 1 : 0);
        if (length && cache[at + length - 1] == '\r') length--;
        const arena_mark mark = arena_save(&scratch);
        char *line = arena_text(&scratch, cache + at, length);
        if (!line) s = FAIL_MEMORY(e, "a calibration");
        else if (number++ == 0 || length) s = line_read(c, e, number, line, length);
        arena_rewind(&scratch, mark);
        at = next;
    }
    arena_deinit(&scratch);
    return NOTE(e, s, "reading a calibration cache");
}
