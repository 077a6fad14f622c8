/* SPDX-License-Identifier: Apache-2.0 */
/* exec_network.c - what flags change in a model before it is built: types of layers, of inputs and of outputs, and
 * tensors to look at. Only then the model is parsed into a network; else the builder reads the file itself. */
#include "exec.h"

#include <stdlib.h>
#include <string.h>

static bool fail(const sinter_error *error)
{
    return cli_error(error) == 0;
}

/* ---- types ---- */

bool exec_type_read(const char *word, size_t length, sinter_dtype *out)
{
    static const struct {
        const char *word;
        sinter_dtype dtype;
    } types[] = { { "fp32", SINTER_DTYPE_F32 },  { "fp16", SINTER_DTYPE_F16 },  { "bf16", SINTER_DTYPE_BF16 },
                  { "int32", SINTER_DTYPE_I32 }, { "int64", SINTER_DTYPE_I64 }, { "int8", SINTER_DTYPE_I8 },
                  { "uint8", SINTER_DTYPE_U8 },  { "bool", SINTER_DTYPE_BOOL }, { "fp8", SINTER_DTYPE_F8E4M3FN },
                  { "int4", SINTER_DTYPE_I4 } };
    for (uint32_t k = 0; k < sizeof types / sizeof types[0]; k++) {
        *out = types[k].dtype;
        if (strlen(types[k].word) == length && !memcmp(types[k].word, word, length)) return true;
    }
    return false;
}

/* Between these an input or an output is converted where a flag asks for it. */
static bool is_float(sinter_dtype t)
{
    return t == SINTER_DTYPE_F32 || t == SINTER_DTYPE_F16 || t == SINTER_DTYPE_BF16;
}

/* 8 bits are a constraint of products alone, other integers of none: what is no constraint here is said. */
static bool precision_set(sinter_layer *layer, const char *value)
{
    sinter_dtype type;
    sinter_error error = { 0 };
    const sinter_layer_kind kind = sinter_layer_get_kind(layer);
    const bool is_product = kind == SINTER_LAYER_CONVOLUTION || kind == SINTER_LAYER_MATRIX_MULTIPLY;
    if (!exec_type_read(value, strlen(value), &type)) return false; /* exec_check() has said it */
    if (!is_float(type) && !(is_product && type == SINTER_DTYPE_I8)) {
        cli_say(LOG_WARNING, "--layerPrecisions: '%s' changes nothing in layer '%s', which is no product", value,
                sinter_layer_name(layer));
        return true;
    }
    return sinter_layer_set_precision(layer, type, &error) == SINTER_OK || fail(&error);
}

/* "TYPE+TYPE…", one for each output. */
static bool output_types_set(sinter_layer *layer, const char *value)
{
    sinter_error error = { 0 };
    const uint32_t count = sinter_layer_output_count(layer);
    for (uint32_t i = 0;; i++) {
        sinter_dtype type;
        const size_t n = strcspn(value, "+");
        if (!exec_type_read(value, n, &type) || i >= count || (!value[n] && i + 1 != count)) {
            cli_say(LOG_ERROR, "--layerOutputTypes: '%s' of layer '%s', expected a type for each of %u outputs", value,
                    sinter_layer_name(layer), count);
            return false;
        }
        if (sinter_layer_set_output_type(layer, i, type, &error) != SINTER_OK) return fail(&error);
        if (!value[n]) return true;
        value += n + 1;
    }
}

/* What the pairs say of a layer: the last one that names it, exactly or with '*'. NULL: nothing. */
static const char *value_of(const exec_pairs *pairs, const char *name)
{
    const char *value = NULL;
    for (uint32_t i = 0; i < pairs->count; i++) {
        exec_pairs one = { &pairs->at[i], 1 };
        const exec_pair *found = exec_pairs_find(&one, name);
        if (found) value = found->value;
    }
    return value;
}

static bool layers_set(exec *e, exec_id id, bool (*set)(sinter_layer *layer, const char *value))
{
    exec_pairs pairs = { 0 };
    sinter_network *net = e->setup.network;
    bool is_good = !exec_has(&e->x, id) || exec_pairs_read(id, exec_text(&e->x, id), &pairs);
    for (uint32_t i = 0; is_good && i < sinter_network_layer_count(net); i++) {
        sinter_layer *layer = sinter_network_layer(net, i);
        const char *value = sinter_layer_output_count(layer) ? value_of(&pairs, sinter_layer_name(layer)) : NULL;
        if (value) is_good = set(layer, value);
    }
    for (uint32_t i = 0; is_good && i < pairs.count; i++) {
        is_good = pairs.at[i].is_used;
        if (!is_good) cli_say(LOG_ERROR, "--%s: there is no layer '%s'", exec_flags[id].name, pairs.at[i].name);
    }
    exec_pairs_free(&pairs);
    return is_good;
}

static bool layer_types(exec *e)
{
    const exec_args *x = &e->x;
    sinter_error error = { 0 };
    if (!exec_has(x, FLAG_layerPrecisions) && !exec_has(x, FLAG_layerOutputTypes)) return true;
    const bool is_obeyed = exec_is(x, FLAG_precisionConstraints, "obey");
    if (sinter_network_set_precision_mode(e->setup.network, is_obeyed ? SINTER_PRECISION_OBEY : SINTER_PRECISION_PREFER,
                                          &error) != SINTER_OK)
        return fail(&error);
    return layers_set(e, FLAG_layerPrecisions, precision_set) && layers_set(e, FLAG_layerOutputTypes, output_types_set);
}

/* ---- inputs and outputs ---- */

/* What the flag says of the input or output at `index`: one entry is for all. */
static const char *entry_of(const exec *e, exec_id id, uint32_t index)
{
    const char *at = exec_text(&e->x, id);
    for (const bool is_one = !strchr(at, ','); index && !is_one && *at; index--)
        at += strcspn(at, ",") + (strchr(at, ',') != NULL);
    return at;
}

/* The formats of all inputs or outputs, before anything is built. */
static bool formats_check(exec *e, exec_id id, uint32_t count,
                          sinter_network_tensor *(*tensor)(const sinter_network *, uint32_t))
{
    sinter_error error = { 0 };
    for (uint32_t i = 0; exec_has(&e->x, id) && i < count; i++) {
        sinter_network_shape shape;
        sinter_network_tensor *t = tensor(e->setup.network, i);
        const char *at = entry_of(e, id, i);
        const size_t n = strcspn(at, ","), colon = strcspn(at, ":,");
        if (sinter_network_tensor_shape(t, &shape, &error) != SINTER_OK) return fail(&error);
        if (colon == n) {
            cli_say(LOG_ERROR, "--%s: '%.*s', expected TYPE:FORMAT", exec_flags[id].name, (int)n, at);
            return false;
        }
        if (!exec_format_choose(e, id, sinter_network_tensor_name(t), at + colon + 1, n - colon - 1, &shape))
            return false;
    }
    return true;
}

/* The type that the flag gives the input or output at `index`; NONE: that of the model. */
static sinter_dtype type_given(const exec *e, exec_id id, uint32_t index)
{
    sinter_dtype type;
    const char *at = entry_of(e, id, index);
    return exec_type_read(at, strcspn(at, ":"), &type) ? type : SINTER_DTYPE_NONE;
}

static bool is_converted(sinter_network_tensor *t, sinter_dtype type, sinter_dtype *own)
{
    sinter_error error = { 0 };
    sinter_network_shape shape;
    if (sinter_network_tensor_shape(t, &shape, &error) != SINTER_OK) return false;
    *own = shape.dtype;
    return type != shape.dtype && (is_float(type) || type == SINTER_DTYPE_I8) && is_float(shape.dtype);
}

/* The scale of the 8 bits of an input or output: that of the calibration cache. Without a cache its range is the one
 * that trtexec makes up. */
static bool scale_find(const exec *e, exec_id id, const char *name, float *out)
{
    sinter_error error = { 0 };
    sinter_calibration *cache = NULL;
    const char *path = exec_text(&e->x, FLAG_calib), *at;
    const bool is_input = id == FLAG_inputIOFormats;
    *out = 0;
    if (!*path) {
        *out = (is_input ? 2.0F : 4.0F) / 127;
        cli_say(LOG_WARNING, "--%s: without --calib 128 steps of 8 bits are the range %d of '%s'", exec_flags[id].name,
                is_input ? 2 : 4, name);
        return true;
    }
    if (sinter_calibration_load(path, &e->setup.env, &cache, &error) != SINTER_OK) return fail(&error);
    for (uint32_t i = 0; i < sinter_calibration_count(cache); i++) {
        float scale;
        if (sinter_calibration_get(cache, i, &at, &scale, &error) == SINTER_OK && !strcmp(at, name)) *out = scale;
    }
    sinter_calibration_destroy(cache);
    if (*out > 0) return true;
    cli_say(LOG_ERROR, "--%s: 'int8' is refused: '%s' has no range in '%s'", exec_flags[id].name, name, path);
    return false;
}

/* 8 bits as floats (DequantizeLinear), or floats as 8 bits (QuantizeLinear). NULL: reported. */
static sinter_network_tensor *quantized(exec *e, exec_id id, sinter_network_tensor *t, const char *name, const char *op)
{
    float scale;
    int8_t zero = 0;
    sinter_error error = { 0 };
    sinter_network *net = e->setup.network;
    if (!scale_find(e, id, name, &scale)) return NULL;
    const sinter_tensor step = { .dtype = SINTER_DTYPE_F32, .data = &scale },
                        middle = { .dtype = SINTER_DTYPE_I8, .data = &zero };
    sinter_layer *a = sinter_add_constant(net, &step, 0, &error);
    sinter_layer *b = a ? sinter_add_constant(net, &middle, 0, &error) : NULL;
    sinter_network_tensor *in[3] = { t, a ? sinter_layer_output(a, 0) : NULL, b ? sinter_layer_output(b, 0) : NULL };
    sinter_layer *made = b ? sinter_add_op(net, "", op, 0, in, 3, 1, &error) : NULL;
    if (!made) (void)fail(&error);
    return made ? sinter_layer_output(made, 0) : NULL;
}

/* `t`, which is of one type, as another. NULL: reported. */
static sinter_network_tensor *converted(exec *e, exec_id id, sinter_network_tensor *t, const char *name,
                                        sinter_dtype from, sinter_dtype to)
{
    sinter_error error = { 0 };
    if (from == SINTER_DTYPE_I8) {
        t = quantized(e, id, t, name, "DequantizeLinear");
        from = SINTER_DTYPE_F32;
    }
    const sinter_dtype type = to == SINTER_DTYPE_I8 ? SINTER_DTYPE_F32 : to;
    sinter_layer *cast = t && type != from ? sinter_add_cast(e->setup.network, t, type, &error) : NULL;
    if (t && type != from && !cast) {
        (void)fail(&error);
        return NULL;
    }
    if (cast) t = sinter_layer_output(cast, 0);
    return t && to != type ? quantized(e, id, t, name, "QuantizeLinear") : t;
}

/* The first `count` layers that read `t` read `other`. */
static sinter_status reread(sinter_network *net, uint32_t count, sinter_network_tensor *t, sinter_network_tensor *other,
                            sinter_error *error)
{
    sinter_status s = SINTER_OK;
    for (uint32_t i = 0; i < count; i++) {
        sinter_layer *layer = sinter_network_layer(net, i);
        for (uint32_t k = 0; s == SINTER_OK && k < sinter_layer_input_count(layer); k++)
            if (sinter_layer_input(layer, k) == t) s = sinter_layer_set_input(layer, k, other, error);
    }
    return s;
}

static bool inputs_convert(exec *e)
{
    sinter_network *net = e->setup.network;
    sinter_error error = { 0 };
    for (uint32_t i = 0; exec_has(&e->x, FLAG_inputIOFormats) && i < sinter_network_input_count(net); i++) {
        sinter_dtype own = SINTER_DTYPE_NONE;
        sinter_network_tensor *t = sinter_network_input(net, i), *shown = t;
        const exec_layout *l = exec_layout_of(e, sinter_network_tensor_name(t));
        const sinter_dtype type = type_given(e, FLAG_inputIOFormats, i);
        const uint32_t count = sinter_network_layer_count(net);
        const bool is_other = is_converted(t, type, &own);
        if (!is_other && !l) continue;
        if (is_other && sinter_network_tensor_set_type(t, type, &error) != SINTER_OK) return fail(&error);
        if (l) shown = exec_format_show(e, t, l, &error);
        if (!shown) return fail(&error);
        if (is_other) shown = converted(e, FLAG_inputIOFormats, shown, sinter_network_tensor_name(t), type, own);
        if (!shown) return false;
        if (reread(net, count, t, shown, &error) != SINTER_OK) return fail(&error);
    }
    return true;
}

/* The output with another type or format, in its place and with its name. */
static bool output_convert(exec *e, sinter_network_tensor *t, sinter_dtype own, sinter_dtype type, const exec_layout *l,
                           sinter_network_tensor **out)
{
    char name[1024], inner[1100];
    sinter_error error = { 0 };
    (void)snprintf(name, sizeof name, "%s", sinter_network_tensor_name(t));
    (void)snprintf(inner, sizeof inner, "%s.model", name);
    *out = converted(e, FLAG_outputIOFormats, t, name, own, type);
    if (!*out) return false;
    if (l) *out = exec_format_store(e, *out, l, &error);
    return (*out && sinter_network_tensor_set_name(t, inner, &error) == SINTER_OK &&
            sinter_network_tensor_set_name(*out, name, &error) == SINTER_OK) ||
           fail(&error);
}

static bool outputs_convert(exec *e)
{
    sinter_network *net = e->setup.network;
    const uint32_t count = exec_has(&e->x, FLAG_outputIOFormats) ? sinter_network_output_count(net) : 0;
    sinter_error error = { 0 };
    sinter_status s = SINTER_OK;
    for (uint32_t i = 0; s == SINTER_OK && i < count; i++) { /* the first one is taken, and put behind the last */
        sinter_dtype own;
        sinter_network_tensor *t = sinter_network_output(net, 0), *now = t;
        const exec_layout *l = exec_layout_of(e, sinter_network_tensor_name(t));
        const sinter_dtype type = type_given(e, FLAG_outputIOFormats, i);
        const bool is_other = is_converted(t, type, &own);
        s = sinter_network_unmark_output(net, t, &error);
        if (s == SINTER_OK && (is_other || l) && !output_convert(e, t, own, is_other ? type : own, l, &now))
            return false;
        if (s == SINTER_OK) s = sinter_network_mark_output(net, now, &error);
    }
    return s == SINTER_OK || fail(&error);
}

static bool debug_mark(exec *e)
{
    char name[1024];
    sinter_error error = { 0 };
    for (const char *at = exec_text(&e->x, FLAG_markDebug); *at;) {
        const size_t n = strcspn(at, ",");
        (void)snprintf(name, sizeof name, "%.*s", (int)n, at);
        sinter_network_tensor *t = sinter_network_find_tensor(e->setup.network, name);
        if (!t) {
            cli_say(LOG_ERROR, "--markDebug: there is no tensor '%s'", name);
            return false;
        }
        if (!sinter_network_tensor_is_output(t) &&
            sinter_network_mark_debug(e->setup.network, t, 1, &error) != SINTER_OK)
            return fail(&error);
        at += n + (at[n] == ',');
    }
    return true;
}

bool exec_unfused_mark(exec *e, const sinter_engine *engine)
{
    sinter_network *net = e->setup.network;
    sinter_error error = { 0 };
    uint32_t count = 0;
    sinter_status s = sinter_network_unfused(net, engine, NULL, 0, &count, &error);
    sinter_network_tensor **found = cli_alloc(count + 1u, sizeof *found);
    if (s == SINTER_OK) s = sinter_network_unfused(net, engine, found, count, &count, &error);
    e->unfused.at = cli_alloc(count + 1u, sizeof *e->unfused.at);
    for (uint32_t i = 0; s == SINTER_OK && i < count; i++) {
        s = sinter_network_mark_debug(net, found[i], 1, &error);
        e->unfused.at[e->unfused.count++] = cli_copy(sinter_network_tensor_name(found[i]));
    }
    free(found);
    if (s != SINTER_OK) return fail(&error);
    cli_say(LOG_INFO, "Marked %u unfused tensors as debug tensors.", count);
    return true;
}

/* ---- the network ---- */

static bool parse(exec *e, const char *path)
{
    sinter_error error = { 0 };
    sinter_parser *parser = NULL;
    sinter_parser_error wrong;
    if (sinter_network_create(&e->setup.env, &e->setup.network, &error) != SINTER_OK ||
        sinter_parser_create(e->setup.network, &parser, &error) != SINTER_OK)
        return fail(&error);
    const bool is_good = sinter_parser_parse_file(parser, path, &error) == SINTER_OK;
    for (uint32_t i = 0; i < sinter_parser_error_count(parser); i++)
        if (sinter_parser_error_at(parser, i, &wrong) == SINTER_OK && *wrong.op_type)
            cli_say(LOG_ERROR, "node %u '%s' (%s): %s", wrong.node, wrong.node_name, wrong.op_type, wrong.message);
    if (!is_good) (void)cli_error(&error);
    sinter_parser_destroy(parser);
    return is_good;
}

bool exec_network_make(exec *e)
{
    const exec_args *x = &e->x;
    sinter_error error = { 0 };
    const bool has_types = exec_has(x, FLAG_layerPrecisions) || exec_has(x, FLAG_layerOutputTypes);
    if (has_types && exec_is(x, FLAG_precisionConstraints, "none"))
        cli_say(LOG_WARNING, "--layerPrecisions and --layerOutputTypes change nothing without "
                             "--precisionConstraints=prefer or obey");
    const bool is_needed = (has_types && !exec_is(x, FLAG_precisionConstraints, "none")) ||
                           exec_has(x, FLAG_inputIOFormats) || exec_has(x, FLAG_outputIOFormats) ||
                           exec_has(x, FLAG_markDebug) || exec_has(x, FLAG_markUnfusedTensorsAsDebugTensors);
    if (!is_needed) return true;
    if (!parse(e, e->a.file.at[0])) return false;
    if (exec_has(x, FLAG_stronglyTyped) && sinter_network_set_strongly_typed(e->setup.network, 1, &error) != SINTER_OK)
        return fail(&error);
    if (!exec_is(x, FLAG_precisionConstraints, "none") && !layer_types(e)) return false;
    sinter_network *net = e->setup.network;
    return formats_check(e, FLAG_inputIOFormats, sinter_network_input_count(net), sinter_network_input) &&
           formats_check(e, FLAG_outputIOFormats, sinter_network_output_count(net), sinter_network_output) &&
           debug_mark(e) && inputs_convert(e) && outputs_convert(e) && exec_formats_mark(e);
}
