/* SPDX-License-Identifier: Apache-2.0 */
/* exec_formats.c - --inputIOFormats and --outputIOFormats that are not row-major: all channels lie behind the other
 * axes (hwc8), or in groups (chw4). The engine's input or output has the shape of its memory, layers convert it, and
 * one more output, whose name is a mark, says which format it is. Engines of the Python package and of the headers for
 * C++ have the same marks. */
#include "exec.h"

#include <stdlib.h>
#include <string.h>

#define MARK "[format] "

/* chw is row-major and has no lanes. */
static const struct exec_format {
    const char *word, *name;
    sinter_format format;
    int64_t lanes;
    uint32_t behind;
    bool is_last;
} formats[] = { { .word = "chw", .name = "LINEAR" },
#define SINTER_X(name, value, word, ...) { word, #name, SINTER_FORMAT_##name, __VA_ARGS__ },
                SINTER_FORMAT_MAP(SINTER_X)
#undef SINTER_X
};

static bool fail(const sinter_error *error)
{
    return cli_error(error) == 0;
}

static int64_t padded(const exec_layout *l)
{
    return (l->channels + l->format->lanes - 1) / l->format->lanes * l->format->lanes;
}

/* ---- which format ---- */

/* Does a row-major tensor of this shape lie as the format wants it? */
static bool is_row_major(const struct exec_format *f, const sinter_network_shape *s)
{
    bool is_one = true;
    if (!f->lanes) return true;
    if (s->rank < f->behind + 1) return false;
    const int64_t channels = s->dim[s->rank - f->behind - 1];
    for (uint32_t i = s->rank - f->behind; i < s->rank; i++) is_one = is_one && s->dim[i] == 1;
    return (is_one && channels >= 0 && channels % f->lanes == 0) || (f->lanes == 1 && channels == 1);
}

static bool can_convert(const struct exec_format *f, const sinter_network_shape *s)
{
    const uint32_t wide = s->rank + !f->is_last;
    return f->lanes && s->rank > f->behind && s->dim[s->rank - f->behind - 1] > 0 && wide <= SINTER_RANK_MAX;
}

bool exec_format_choose(exec *e, exec_id id, const char *name, const char *words, size_t length,
                        const sinter_network_shape *shape)
{
    const struct exec_format *other = NULL;
    for (const char *at = words, *end = words + length; at <= end;) {
        const size_t n = strcspn(at, "+,");
        for (uint32_t k = 0; k < sizeof formats / sizeof formats[0]; k++) {
            const struct exec_format *f = &formats[k];
            if (strlen(f->word) != n || memcmp(f->word, at, n) != 0) continue;
            if (is_row_major(f, shape)) return true;
            if (!other && can_convert(f, shape)) other = f;
        }
        at += n + 1;
    }
    if (!other) {
        cli_say(LOG_ERROR,
                "--%s: the format '%.*s' of '%s' is refused: wanted is chw, or a format with a known number of "
                "channels before its axes; the shape is %s",
                exec_flags[id].name, (int)length, words, name, cli_shape(shape->rank, shape->dim).at);
        return false;
    }
    exec_layouts *l = &e->layouts;
    l->at = cli_grow(l->at, l->count + 1, sizeof *l->at);
    l->at[l->count++] = (exec_layout){ cli_copy(name), other, shape->dim[shape->rank - other->behind - 1] };
    return true;
}

const exec_layout *exec_layout_of(const exec *e, const char *name)
{
    for (uint32_t i = 0; i < e->layouts.count; i++)
        if (!strcmp(e->layouts.at[i].name, name)) return &e->layouts.at[i];
    return NULL;
}

bool exec_is_mark(const char *name)
{
    return !strncmp(name, MARK, strlen(MARK));
}

void exec_layouts_free(exec_layouts *l)
{
    for (uint32_t i = 0; i < l->count; i++) free(l->at[i].name);
    free(l->at);
    *l = (exec_layouts){ 0 };
}

void exec_layouts_read(exec *e)
{
    sinter_io io;
    exec_layouts_free(&e->layouts);
    for (uint32_t i = 0; sinter_engine_io(e->m.engine, i, 0, &io) == SINTER_OK; i++) {
        if (io.is_input || !exec_is_mark(io.name)) continue;
        const char *word = io.name + strlen(MARK);
        const size_t n = strcspn(word, " ");
        char *name = NULL;
        const int64_t channels = strtoll(word + n, &name, 10);
        for (uint32_t k = 0; k < sizeof formats / sizeof formats[0]; k++) {
            if (strlen(formats[k].name) != n || memcmp(formats[k].name, word, n) != 0 || *name != ' ') continue;
            exec_layouts *l = &e->layouts;
            l->at = cli_grow(l->at, l->count + 1, sizeof *l->at);
            l->at[l->count++] = (exec_layout){ cli_copy(name + 1), &formats[k], channels };
        }
    }
}

/* ---- shapes ---- */

/* The sizes in memory, or whatever goes with each axis, of those of the shape. */
static void stored_dims(const exec_layout *l, uint32_t rank, const int64_t *dim, uint32_t *rank_out, int64_t *out)
{
    const uint32_t channel = rank - l->format->behind - 1;
    uint32_t n = 0;
    for (uint32_t i = 0; i < rank; i++)
        if (i != channel) out[n++] = dim[i];
        else if (!l->format->is_last) out[n++] = padded(l) / l->format->lanes;
    out[n++] = l->format->is_last ? padded(l) : l->format->lanes;
    *rank_out = n;
}

const char *exec_stored_text(const exec *e, const char *name, const char *value, shape_text *room)
{
    const exec_layout *l = exec_layout_of(e, name);
    args_dims d;
    uint32_t rank;
    int64_t dim[SINTER_RANK_MAX];
    if (!l || !args_dims_read(value, &d) || d.count != 1 || d.rank <= l->format->behind || d.rank == SINTER_RANK_MAX ||
        d.at[0][d.rank - l->format->behind - 1] != l->channels)
        return value;
    stored_dims(l, d.rank, d.at[0], &rank, dim);
    *room = cli_shape(rank, dim);
    return room->at;
}

/* An element of every channel of every place, in the order of the model's tensor. */
bool exec_format_unpack(const exec *e, const char *name, sinter_tensor *t, void **own)
{
    const exec_layout *l = exec_layout_of(e, name);
    size_t count = 1, outer = 1;
    for (uint32_t i = 0; i < t->rank; i++) count *= (size_t)t->dim[i];
    const size_t size = count ? sinter_tensor_size(t) / count : 0;
    if (!l || !size) return false;
    const uint32_t rank = t->rank - !l->format->is_last, channel = rank - l->format->behind - 1;
    const size_t lanes = (size_t)(l->format->is_last ? padded(l) : l->format->lanes), channels = (size_t)l->channels;
    for (uint32_t i = 0; i < channel; i++) outer *= (size_t)t->dim[i];
    const size_t inner = count / outer / (size_t)padded(l), groups = (size_t)padded(l) / lanes;
    uint8_t *to = cli_alloc(outer * channels * inner, size);
    for (size_t at = 0; at < outer * channels * inner; at++) {
        const size_t o = at / inner / channels, c = at / inner % channels, i = at % inner;
        const size_t from = ((o * groups + c / lanes) * inner + i) * lanes + c % lanes;
        memcpy(to + at * size, (const uint8_t *)t->data + from * size, size);
    }
    if (l->format->is_last)
        for (uint32_t i = rank - 1; i > channel; i--) t->dim[i] = t->dim[i - 1];
    t->rank = rank;
    t->dim[channel] = l->channels;
    free(*own);
    t->data = *own = to;
    return true;
}

/* ---- layers ---- */

sinter_network_tensor *exec_format_show(exec *e, sinter_network_tensor *t, const exec_layout *l, sinter_error *error)
{
    sinter_network_shape shape;
    int64_t dim[SINTER_RANK_MAX];
    char names[SINTER_RANK_MAX][256] = { { 0 } };
    uint32_t rank;
    if (sinter_network_tensor_shape(t, &shape, error) != SINTER_OK) return NULL;
    for (uint32_t i = 0; i < shape.rank; i++)
        if (shape.dim_name[i]) (void)snprintf(names[i], sizeof names[i], "%s", shape.dim_name[i]);
    stored_dims(l, shape.rank, shape.dim, &rank, dim);
    if (sinter_network_tensor_set_shape(t, rank, dim, error) != SINTER_OK) return NULL;
    const uint32_t channel = shape.rank - l->format->behind - 1;
    for (uint32_t i = 0; i < shape.rank; i++) {
        const uint32_t axis = i > channel && l->format->is_last ? i - 1 : i;
        if (i != channel && names[i][0] && sinter_network_tensor_set_dim_name(t, axis, names[i], error) != SINTER_OK)
            return NULL;
    }
    return sinter_network_add_format(e->setup.network, t, l->format->format, shape.rank, l->channels, 0, error);
}

sinter_network_tensor *exec_format_store(exec *e, sinter_network_tensor *t, const exec_layout *l, sinter_error *error)
{
    sinter_network_shape shape;
    if (sinter_network_tensor_shape(t, &shape, error) != SINTER_OK) return NULL;
    return sinter_network_add_format(e->setup.network, t, l->format->format, shape.rank, l->channels, 1, error);
}

bool exec_formats_mark(exec *e)
{
    sinter_network *net = e->setup.network;
    sinter_error error = { 0 };
    for (uint32_t i = 0; i < e->layouts.count; i++) {
        const exec_layout *l = &e->layouts.at[i];
        const sinter_tensor zero = { .dtype = SINTER_DTYPE_I64, .rank = 1, .dim = { 1 }, .data = &(int64_t){ 0 } };
        char text[1200];
        (void)snprintf(text, sizeof text, MARK "%s %lld %s", l->format->name, (long long)l->channels, l->name);
        sinter_layer *made = sinter_add_constant(net, &zero, 0, &error);
        sinter_network_tensor *mark = made ? sinter_layer_output(made, 0) : NULL;
        made = made ? sinter_network_add(net, SINTER_LAYER_IDENTITY, &mark, 1, &error) : NULL;
        mark = made ? sinter_layer_output(made, 0) : NULL;
        if (!mark || sinter_network_tensor_set_name(mark, text, &error) != SINTER_OK ||
            sinter_network_mark_output(net, mark, &error) != SINTER_OK)
            return fail(&error);
    }
    return true;
}
