/* SPDX-License-Identifier: Apache-2.0 */
/* model_text.c - models from text, their runs, and the comparison. */
#include "model_text.h"

#include "core/view.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

/* ---- from text to a model ---- */

typedef struct reader {
    const char *at, *all;
    model_text *out;
    int depth, constants;
} reader;

static void wrong(const reader *r, const char *what)
{
    (void)printf("%s\n  at '%s': %s\n", r->all, r->at, what);
    exit(2);
}

static void space(reader *r)
{
    while (*r->at == ' ' || *r->at == '\n') r->at++;
}

static bool take(reader *r, char c)
{
    space(r);
    if (*r->at != c) return false;
    r->at++;
    return true;
}

static void word(reader *r, char *to, size_t room)
{
    size_t n = 0;
    space(r);
    while ((isalnum((unsigned char)*r->at) || *r->at == '_' || *r->at == '.' || *r->at == '-') && n + 1 < room)
        to[n++] = *r->at++;
    to[n] = 0;
    if (!n) wrong(r, "a name is wanted");
}

static int64_t number(reader *r)
{
    char *end;
    const long long x = strtoll(r->at, &end, 10);
    if (end == r->at) wrong(r, "a number is wanted");
    r->at = end;
    return x;
}

static uint32_t numbers(reader *r, char end, int64_t *to)
{
    uint32_t n = 0;
    while (!take(r, end)) {
        if (n == 32) wrong(r, "too many numbers");
        space(r);
        to[n++] = number(r);
        (void)take(r, ',');
    }
    return n;
}

static sinter_dtype type_of(const reader *r, const char *name)
{
    for (int t = 1; t < SINTER_DTYPE_COUNT; t++)
        if (!strcmp(sinter_dtype_name((sinter_dtype)t), name)) return (sinter_dtype)t;
    wrong(r, "no such type");
    return SINTER_DTYPE_NONE;
}

static int64_t onnx_type(const reader *r, sinter_dtype t)
{
    switch (t) {
    case SINTER_DTYPE_F32: return 1;
    case SINTER_DTYPE_U8: return 2;
    case SINTER_DTYPE_I8: return 3;
    case SINTER_DTYPE_I32: return 6;
    case SINTER_DTYPE_I64: return 7;
    case SINTER_DTYPE_BOOL: return 9;
    case SINTER_DTYPE_F16: return 10;
    case SINTER_DTYPE_F64: return 11;
    default: wrong(r, "a type that models of text do not have");
    }
    return 0;
}

static void read_symbol(reader *r)
{
    model_symbol *s = &r->out->symbol[r->out->count_symbol++];
    if (r->out->count_symbol > MODEL_SYMBOLS) wrong(r, "too many sizes");
    word(r, s->name, sizeof s->name);
    space(r), s->min = number(r);
    space(r), s->opt = number(r);
    space(r), s->max = number(r);
}

/* Dims of an input: `axis` and `range` are of main's inputs. */
static uint32_t read_dims(reader *r, int64_t *size, char (*param)[16])
{
    uint32_t rank = 0;
    space(r);
    while (*r->at && *r->at != ';' && *r->at != ')') {
        param[rank][0] = 0;
        size[rank] = INT64_MIN;
        if (isdigit((unsigned char)*r->at)) size[rank] = number(r);
        else word(r, param[rank], sizeof param[rank]);
        rank++;
        if (!take(r, ',')) break;
        space(r);
    }
    return rank;
}

static void note_input(reader *r, const char *name, sinter_dtype t, uint32_t rank, const int64_t *size,
                       char (*param)[16])
{
    model_text *m = r->out;
    const uint32_t i = m->count_input++;
    if (m->count_input > MODEL_INPUTS) wrong(r, "too many inputs");
    (void)snprintf(m->input[i], sizeof m->input[i], "%s", name);
    m->range[i] = (sinter_shape_range){ .input = m->input[i], .rank = rank };
    m->dtype[i] = t;
    for (uint32_t k = 0; k < rank; k++) {
        m->range[i].min[k] = m->range[i].opt[k] = m->range[i].max[k] = size[k];
        for (uint32_t s = 0; s < m->count_symbol && param[k][0]; s++) {
            if (strcmp(m->symbol[s].name, param[k]) != 0) continue;
            m->axis[i][k] = (int)s + 1;
            m->range[i].min[k] = m->symbol[s].min;
            m->range[i].opt[k] = m->symbol[s].opt;
            m->range[i].max[k] = m->symbol[s].max;
        }
        if (param[k][0] && !m->axis[i][k]) wrong(r, "no such size");
    }
}

static bytes value_bytes(const reader *r, const char *name, sinter_dtype t, uint32_t rank, const int64_t *size,
                         char (*param)[16])
{
    bytes shape = { 0 }, tensor = { 0 }, outer = { 0 }, value = { 0 };
    for (uint32_t i = 0; i < rank; i++) {
        bytes d = { 0 };
        if (param[i][0]) bytes_text(&d, 2, param[i]);
        else bytes_int(&d, 1, size[i]);
        bytes_put(&shape, 1, d);
    }
    bytes_text(&value, 1, name);
    if (t == SINTER_DTYPE_NONE) return value;
    bytes_int(&tensor, 1, onnx_type(r, t));
    bytes_put(&tensor, 2, shape);
    bytes_put(&outer, 1, tensor);
    bytes_put(&value, 2, outer);
    return value;
}

static void read_input(reader *r, bytes *g)
{
    char name[16], type[16], param[SINTER_RANK_MAX][16];
    int64_t size[SINTER_RANK_MAX];
    word(r, name, sizeof name);
    word(r, type, sizeof type);
    const sinter_dtype t = type_of(r, type);
    const uint32_t rank = read_dims(r, size, param);
    if (!r->depth) note_input(r, name, t, rank, size, param);
    bytes_put(g, 11, value_bytes(r, name, t, rank, size, param));
}

/* {1,2}  #0.5  %4,3: an initializer whose name is made up. */
static void read_constant(reader *r, bytes *g, char *name, size_t room)
{
    int64_t list[32] = { 0 }, count = 1;
    (void)snprintf(name, room, "const%d", r->constants++);
    if (take(r, '{')) {
        const int64_t n = numbers(r, '}', list);
        bytes_put(g, 5, onnx_tensor_bytes(name, 7, &n, 1, list, (size_t)n * 8));
    } else if (take(r, '#')) {
        char *end;
        const float x = strtof(r->at, &end);
        r->at = end;
        bytes_put(g, 5, onnx_tensor_bytes(name, 1, NULL, 0, &x, 4));
    } else {
        uint32_t rank = 0;
        r->at++;
        do list[rank] = number(r), count *= list[rank++];
        while (take(r, ','));
        float *w = malloc((size_t)count * 4 + 1);
        for (int64_t i = 0; w && i < count; i++) w[i] = 0.25f * (float)((i * 7919) % 17) - 2;
        bytes_put(g, 5, onnx_tensor_bytes(name, 1, list, rank, w, (size_t)count * 4));
        free(w);
    }
}

static bytes read_graph(reader *r);

static bytes read_attribute(reader *r, const char *name)
{
    bytes a = { 0 };
    int64_t list[32];
    char text[32], *end;
    bytes_text(&a, 1, name);
    if (take(r, '(')) {
        r->depth++;
        bytes_put(&a, 6, read_graph(r));
        r->depth--;
        if (!take(r, ')')) wrong(r, "')' is wanted");
        bytes_int(&a, 20, 5);
    } else if (take(r, '[')) {
        const uint32_t n = numbers(r, ']', list);
        for (uint32_t i = 0; i < n; i++) bytes_int(&a, 8, list[i]);
        bytes_int(&a, 20, 7);
    } else if (isdigit((unsigned char)*r->at) || *r->at == '-') {
        const double x = strtod(r->at, &end);
        const bool is_real = memchr(r->at, '.', (size_t)(end - r->at)) != NULL;
        const float f = (float)x;
        r->at = end;
        if (is_real) bytes_varint(&a, 2 << 3 | 5), bytes_add(&a, &f, 4);
        else bytes_int(&a, 3, (int64_t)x);
        bytes_int(&a, 20, is_real ? 1 : 2);
    } else {
        word(r, text, sizeof text);
        bytes_text(&a, 4, text);
        bytes_int(&a, 20, 3);
    }
    return a;
}

static void read_node(reader *r, bytes *g, char *first)
{
    bytes n = { 0 };
    char name[32], op[32];
    (void)snprintf(name, sizeof name, "%s", first);
    bytes_text(&n, 2, name);
    while (take(r, ',')) {
        word(r, name, sizeof name);
        bytes_text(&n, 2, name);
    }
    if (!take(r, '=')) wrong(r, "'=' is wanted");
    word(r, op, sizeof op);
    bytes_text(&n, 4, op);
    bytes_text(&n, 3, first);
    for (;;) {
        space(r);
        if (!*r->at || *r->at == ';' || *r->at == ')') break;
        if (strchr("{#%", *r->at)) {
            read_constant(r, g, name, sizeof name);
            bytes_text(&n, 1, name);
            continue;
        }
        word(r, name, sizeof name);
        if (take(r, '=')) bytes_put(&n, 5, read_attribute(r, name));
        else bytes_text(&n, 1, strcmp(name, "-") ? name : "");
    }
    bytes_put(g, 1, n);
}

static bytes read_graph(reader *r)
{
    bytes g = { 0 };
    char name[32], type[16];
    bytes_text(&g, 2, "g");
    for (space(r); *r->at && *r->at != ')'; space(r)) {
        word(r, name, sizeof name);
        if (!strcmp(name, "sym")) {
            read_symbol(r);
        } else if (!strcmp(name, "in")) {
            read_input(r, &g);
        } else if (!strcmp(name, "out")) {
            word(r, type, sizeof type);
            bytes_put(&g, 12, value_bytes(r, type, SINTER_DTYPE_NONE, 0, NULL, NULL));
        } else {
            read_node(r, &g, name);
        }
        if (!take(r, ';')) break;
    }
    return g;
}

void model_read(const char *text, model_text *out)
{
    reader r = { .at = text, .all = text, .out = out };
    *out = (model_text){ 0 };
    const bytes g = read_graph(&r);
    space(&r);
    if (*r.at) wrong(&r, "the end is wanted");
    out->model = onnx_model_bytes(g, 18);
}

/* ---- runs ---- */

typedef struct side {
    sinter_buffer built;
    sinter_engine *engine;
    sinter_context *context;
    sinter_error error;
} side;

static sinter_status build(const model_text *m, model_device d, sinter_buffer *out, sinter_error *error)
{
    const sinter_profile profile = { m->range, m->count_input };
    sinter_env_options given = SINTER_ENV_OPTIONS;
    given.plugins = d.plugins;
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    o.env = &given;
    o.device = d.kind;
    o.isa = d.isa;
    o.math = d.is_exact ? SINTER_MATH_EXACT : SINTER_MATH_FP32;
    o.threads = 1;
    o.tune = SINTER_TUNE_OFF;
    o.profile = &profile;
    o.profile_count = m->count_symbol ? 1 : 0;
    o.verify = 1;
    return sinter_build_memory(m->model.at, m->model.size, &o, out, error);
}

sinter_buffer model_build(const char *text, model_device device)
{
    model_text m;
    sinter_buffer built = { 0 };
    sinter_error error = { 0 };
    model_read(text, &m);
    if (build(&m, device, &built, &error) != SINTER_OK) {
        (void)printf("%s\n  %s\n", text, error.text);
        exit(2);
    }
    free(m.model.at);
    return built;
}

static bool side_open(const model_text *m, model_device d, side *s)
{
    sinter_env_options given = SINTER_ENV_OPTIONS;
    given.plugins = d.plugins;
    sinter_engine_options load = SINTER_ENGINE_OPTIONS;
    load.env = &given;
    *s = (side){ 0 };
    if (d.engine) {
        if (sinter_engine_load(d.engine, &load, &s->engine, &s->error) != SINTER_OK) return false;
    } else if (build(m, d, &s->built, &s->error) != SINTER_OK ||
               sinter_engine_load_memory(s->built.data, s->built.size, &load, &s->engine, &s->error) != SINTER_OK) {
        return false;
    }
    return sinter_context_create(s->engine, NULL, &s->context, &s->error) == SINTER_OK;
}

static void side_close(side *s)
{
    sinter_context_destroy(s->context);
    sinter_engine_release(s->engine);
    sinter_buffer_free(&s->built);
}

static void fill(sinter_tensor *t, uint64_t *seed)
{
    view v;
    if (!view_init(&v, t->dtype, t->rank, t->dim, t->data)) exit(2);
    for (int64_t i = 0; i < view_count(&v); i++) {
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        const double u = (double)(*seed >> 40) / (1 << 24);
        if (t->dtype == SINTER_DTYPE_BOOL) view_store_i64(&v, i, u < 0.5);
        else if (dtype_is_float(t->dtype)) view_store_f64(&v, i, u * 4 - 2);
        else view_store_i64(&v, i, (int64_t)(u * 3));
    }
}

static bool side_run(side *s, const model_text *m, const int64_t *size)
{
    sinter_tensor t[MODEL_INPUTS];
    uint64_t seed = 7;
    bool ok = true;
    for (uint32_t i = 0; i < m->count_input; i++) {
        t[i] = (sinter_tensor){ .dtype = m->dtype[i], .rank = m->range[i].rank };
        for (uint32_t k = 0; k < t[i].rank; k++)
            t[i].dim[k] = m->axis[i][k] ? size[m->axis[i][k] - 1] : m->range[i].opt[k];
        t[i].data = malloc(sinter_tensor_size(&t[i]) + 1);
        fill(&t[i], &seed);
        ok = ok && sinter_context_set_input(s->context, m->input[i], &t[i], &s->error) == SINTER_OK;
    }
    ok = ok && sinter_context_run(s->context, &s->error) == SINTER_OK;
    for (uint32_t i = 0; i < m->count_input; i++) free(t[i].data);
    return ok;
}

/* NULL, or how an output differs. */
static const char *compare_output(side *a, side *b, const char *name, bool is_exact, char *why)
{
    enum { ROOM = 700 };
    sinter_tensor x, y;
    if (sinter_context_output(a->context, name, &x, &a->error) != SINTER_OK ||
        sinter_context_output(b->context, name, &y, &b->error) != SINTER_OK)
        return "an output cannot be had";
    bool is_alike = x.dtype == y.dtype && x.rank == y.rank;
    for (uint32_t i = 0; is_alike && i < x.rank; i++) is_alike = x.dim[i] == y.dim[i];
    if (!is_alike) return (void)snprintf(why, ROOM, "'%s' has another type or shape", name), why;
    view v, w;
    if (!view_init(&v, x.dtype, x.rank, x.dim, x.data) || !view_init(&w, y.dtype, y.rank, y.dim, y.data)) exit(2);
    for (int64_t i = 0; i < view_count(&v); i++) {
        const double want = view_load_f64(&v, i), got = view_load_f64(&w, i);
        if (want == got || (isnan(want) && isnan(got)) || (!is_exact && fabs(want - got) <= 2e-5 * (1 + fabs(want))))
            continue;
        (void)snprintf(why, ROOM, "element %lld of '%s' is %g, wanted %g", (long long)i, name, got, want);
        return why;
    }
    return NULL;
}

static const char *compare_run(const model_text *m, side *want, side *got, const int64_t *size, bool is_exact,
                               char *why, long *runs)
{
    const bool is_refused = !side_run(want, m, size), is_refused_too = !side_run(got, m, size);
    if (is_refused && is_refused_too) return NULL;
    if (is_refused) return (void)snprintf(why, 700, "is not refused: %.600s", want->error.text), why;
    if (is_refused_too) return (void)snprintf(why, 700, "is refused: %.600s", got->error.text), why;
    (*runs)++;
    for (uint32_t i = 0; i < sinter_engine_io_count(want->engine); i++) {
        sinter_io io;
        if (sinter_engine_io(want->engine, i, 0, &io) != SINTER_OK) exit(2);
        const char *wrong_at = io.is_input ? NULL : compare_output(want, got, io.name, is_exact, why);
        if (wrong_at) return wrong_at;
    }
    return NULL;
}

const char *model_compare(const char *text, model_device device, char *why, long *runs)
{
    return model_compare_with(text, text, device, why, runs);
}

const char *model_compare_with(const char *plain, const char *text, model_device device, char *why, long *runs)
{
    model_text m, other;
    side want, got;
    const char *wrong_at = NULL;
    model_read(text, &m);
    model_read(plain, &other);
    const bool is_open = side_open(&other, (model_device){ .kind = "reference", .plugins = device.plugins }, &want);
    const bool is_open_too = side_open(&m, device, &got);
    if (is_open != is_open_too) {
        (void)snprintf(why, 1024, "%s open: %.900s", is_open ? "does not" : "the reference does not",
                       is_open ? got.error.text : want.error.text);
        wrong_at = why;
    }
    uint32_t all = 1;
    for (uint32_t i = 0; i < m.count_symbol; i++) all *= 4;
    for (uint32_t k = 0; k < all && is_open && !wrong_at; k++) {
        int64_t size[MODEL_SYMBOLS] = { 0 };
        bool is_new = true; /* 1 is no size, or is the min, opt or max */
        for (uint32_t i = 0, left = k; i < m.count_symbol; i++, left /= 4) {
            const model_symbol *s = &m.symbol[i];
            const int64_t choice[4] = { s->opt, s->min, s->max, 1 };
            size[i] = choice[left % 4];
            for (uint32_t j = 0; j < left % 4; j++) is_new = is_new && choice[j] != size[i];
            is_new = is_new && size[i] >= s->min && size[i] <= s->max;
        }
        if (!is_new) continue;
        char part[768];
        if (!compare_run(&m, &want, &got, size, device.is_exact, part, runs)) continue;
        (void)snprintf(why, 1024, "sizes %lld %lld %lld %lld: %.700s", (long long)size[0], (long long)size[1],
                       (long long)size[2], (long long)size[3], part);
        wrong_at = why;
    }
    side_close(&got);
    side_close(&want);
    free(other.model.at);
    free(m.model.at);
    return wrong_at;
}
