/* SPDX-License-Identifier: Apache-2.0 */
/* npy.c - the header of .npy files, read with suspicion and written plainly. */
#include "api/npy.h"

enum { PREFIX_SIZE = 10, HEADER_ALIGN = 64 };
static const uint8_t magic[6] = { 0x93, 'N', 'U', 'M', 'P', 'Y' };

typedef struct npy_type {
    char kind;
    uint8_t bytes;
    sinter_dtype dtype;
} npy_type;

/* clang-format off */
static const npy_type types[] = {
    { 'f', 4, SINTER_DTYPE_F32 }, { 'f', 8, SINTER_DTYPE_F64 }, { 'f', 2, SINTER_DTYPE_F16 },
    { 'i', 1, SINTER_DTYPE_I8 },  { 'i', 2, SINTER_DTYPE_I16 }, { 'i', 4, SINTER_DTYPE_I32 },
    { 'i', 8, SINTER_DTYPE_I64 }, { 'u', 1, SINTER_DTYPE_U8 },  { 'u', 2, SINTER_DTYPE_U16 },
    { 'u', 4, SINTER_DTYPE_U32 }, { 'u', 8, SINTER_DTYPE_U64 }, { 'b', 1, SINTER_DTYPE_BOOL },
};
/* clang-format on */

bool npy_is(const uint8_t *bytes, size_t size)
{
    return size >= sizeof magic && !memcmp(bytes, magic, sizeof magic);
}

/* Python's blanks inside brackets. */
static void skip(scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r')) s->at++;
}

static bool next_char(scan *s, char c)
{
    skip(s);
    return scan_char(s, c);
}

/* 'text' or "text" without escapes: neither keys nor type codes have any. */
static bool next_string(scan *s, scan *out)
{
    skip(s);
    if (s->at == s->end || (*s->at != '\'' && *s->at != '"')) return false;
    const char quote = *s->at;
    const char *from = s->at + 1;
    const char *to = from;
    while (to < s->end && *to != quote && *to != '\\') to++;
    if (to == s->end || *to != quote) return false;
    *out = (scan){ from, to };
    s->at = to + 1;
    return true;
}

static bool is_text(scan s, const char *text_at)
{
    const size_t length = strlen(text_at);
    return (size_t)(s.end - s.at) == length && !memcmp(s.at, text_at, length);
}

static sinter_status read_type(env *e, scan *s, sinter_dtype *out)
{
    scan code;
    skip(s);
    if (s->at < s->end && *s->at == '[')
        return FAIL(e, UNSUPPORTED, "a .npy file of records: elements must be numbers");
    if (!next_string(s, &code)) return FAIL(e, INVALID_MODEL, "the .npy header's 'descr' is no text");
    const size_t length = (size_t)(code.end - code.at);
    if (length == 3 && memchr("<>|=", code.at[0], 4)) {
        for (size_t i = 0; i < COUNT_OF(types); i++) {
            if (types[i].kind != code.at[1] || types[i].bytes != code.at[2] - '0') continue;
            if (code.at[0] == '>' && types[i].bytes > 1) return FAIL(e, UNSUPPORTED, "a big-endian .npy file");
            *out = types[i].dtype;
            return SINTER_OK;
        }
    }
    const int shown = length < 16 ? (int)length : 16;
    return FAIL(e, UNSUPPORTED,
                "a .npy file of type '%.*s': elements must be bool, integers or floats of 2, 4, 8 bytes", shown,
                code.at);
}

static sinter_status read_shape(env *e, scan *s, sinter_tensor *t)
{
    t->rank = 0;
    if (!next_char(s, '(')) return FAIL(e, INVALID_MODEL, "the .npy header's 'shape' is no tuple");
    while (!next_char(s, ')')) {
        int64_t value = 0;
        skip(s);
        if (!scan_i64(s, &value) || value < 0) return FAIL(e, INVALID_MODEL, "the .npy header's 'shape' is malformed");
        (void)scan_char(s, 'L'); /* as Python 2 wrote it */
        if (t->rank == SINTER_RANK_MAX)
            return FAIL(e, UNSUPPORTED, "a .npy file of rank over %d, the largest taken", SINTER_RANK_MAX);
        t->dim[t->rank++] = value;
        if (next_char(s, ',')) continue;
        if (!next_char(s, ')')) return FAIL(e, INVALID_MODEL, "the .npy header's 'shape' is malformed");
        break;
    }
    return SINTER_OK;
}

static sinter_status read_bool(env *e, scan *s, bool *out)
{
    skip(s);
    *out = scan_word(s, "True");
    if (*out || scan_word(s, "False")) return SINTER_OK;
    return FAIL(e, INVALID_MODEL, "the .npy header's 'fortran_order' is neither True nor False");
}

/* The dict's three keys, in any order, each once. */
static sinter_status read_dict(env *e, scan s, sinter_tensor *t, bool *is_fortran)
{
    enum { DESCR = 1, ORDER = 2, SHAPE = 4 };
    unsigned seen = 0;
    if (!next_char(&s, '{')) return FAIL(e, INVALID_MODEL, "the .npy header is no dict");
    while (!next_char(&s, '}')) {
        scan key;
        if (!next_string(&s, &key) || !next_char(&s, ':'))
            return FAIL(e, INVALID_MODEL, "the .npy header is malformed");
        unsigned bit = 0;
        if (is_text(key, "descr")) {
            bit = DESCR;
            TRY(read_type(e, &s, &t->dtype));
        } else if (is_text(key, "fortran_order")) {
            bit = ORDER;
            TRY(read_bool(e, &s, is_fortran));
        } else if (is_text(key, "shape")) {
            bit = SHAPE;
            TRY(read_shape(e, &s, t));
        }
        if (!bit || (seen & bit))
            return FAIL(e, INVALID_MODEL,
                        "the .npy header has a key twice, or one that is not descr, fortran_order, shape");
        seen |= bit;
        if (next_char(&s, ',')) continue;
        if (!next_char(&s, '}')) return FAIL(e, INVALID_MODEL, "the .npy header is malformed");
        break;
    }
    if (seen != (DESCR | ORDER | SHAPE))
        return FAIL(e, INVALID_MODEL, "the .npy header lacks one of descr, fortran_order, shape");
    return SINTER_OK;
}

sinter_status npy_header_read(env *e, const uint8_t *bytes, size_t size, npy_header *out)
{
    *out = (npy_header){ 0 };
    if (!npy_is(bytes, size) || size < PREFIX_SIZE) return FAIL(e, INVALID_MODEL, "%zu bytes are no .npy file", size);
    const unsigned major = bytes[6];
    if (major < 1 || major > 3) return FAIL(e, UNSUPPORTED, "a .npy file of version %u: 1 to 3 are read", major);
    const size_t prefix = major == 1 ? PREFIX_SIZE : PREFIX_SIZE + 2;
    if (size < prefix) return FAIL(e, INVALID_MODEL, "the .npy file ends inside its header");
    size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (major > 1) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > size - prefix) return FAIL(e, INVALID_MODEL, "the .npy file ends inside its header");

    sinter_tensor *t = &out->tensor;
    bool is_fortran = false;
    TRY(read_dict(e, scan_of((const char *)bytes + prefix, length), t, &is_fortran));
    uint32_t long_axes = 0;
    for (uint32_t i = 0; i < t->rank; i++) long_axes += t->dim[i] > 1;
    if (is_fortran && long_axes > 1) return FAIL(e, UNSUPPORTED, "a .npy file in Fortran order, of rank %u", t->rank);
    out->data_at = prefix + length;
    const size_t want = sinter_tensor_size(t);
    if (want != size - out->data_at)
        return FAIL(e, INVALID_MODEL, "the .npy file has %zu bytes of elements, its shape wants %zu",
                    size - out->data_at, want);
    return SINTER_OK;
}

sinter_dtype npy_dtype(sinter_dtype dtype)
{
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        if (types[i].dtype == dtype) return dtype;
    }
    if (dtype == SINTER_DTYPE_I4 || dtype == SINTER_DTYPE_I2) return SINTER_DTYPE_I8;
    if (dtype == SINTER_DTYPE_U4 || dtype == SINTER_DTYPE_U2) return SINTER_DTYPE_U8;
    return SINTER_DTYPE_F32;
}

void npy_header_write(const sinter_tensor *tensor, text *out)
{
    const npy_type *type = &types[0];
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        if (types[i].dtype == tensor->dtype) type = &types[i];
    }
    text dict;
    text_init(&dict, out->e);
    text_printf(&dict, "{'descr': '%c%c%u', 'fortran_order': False, 'shape': (", type->bytes > 1 ? '<' : '|',
                type->kind, type->bytes);
    for (uint32_t i = 0; i < tensor->rank; i++)
        text_printf(&dict, "%s%lld%s", i ? ", " : "", (long long)tensor->dim[i], tensor->rank == 1 ? "," : "");
    text_printf(&dict, "), }");
    const size_t total = size_align(PREFIX_SIZE + dict.length + 1, HEADER_ALIGN);
    const size_t length = total - PREFIX_SIZE;
    const uint8_t prefix[4] = { 1, 0, (uint8_t)(length & 255), (uint8_t)(length >> 8) };
    text_append(out, (const char *)magic, sizeof magic);
    text_append(out, (const char *)prefix, sizeof prefix);
    text_append(out, dict.at, dict.length);
    for (size_t i = PREFIX_SIZE + dict.length; i + 1 < total; i++) text_append(out, " ", 1);
    text_append(out, "\n", 1);
    if (dict.failed) out->failed = true;
    text_deinit(&dict);
}
