/* SPDX-License-Identifier: Apache-2.0 */
/* import_input.c - inputs: their types and shapes, the ranges that the caller gives, and values that are promised.
 *
 * Ranges belong to the names of sizes: all are known before the first expression over them is made. ONNX does not say
 * that two axes of one name have one size, and some models use a name for two. Where the ranges given have no value in
 * common, each of these axes gets a symbol of its own. */
#include "onnx/importer.h"

#include <string.h>

static bool is_name_char(char ch, bool first)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_' ||
           (!first && ((ch >= '0' && ch <= '9') || ch == '.'));
}

/* A model's name of a size as a symbol's name: letters, digits, '_' and '.'; still different where the model's differ.
 */
static const char *symbol_name(importer *im, const char *name)
{
    char *clean = arena_printf(
        &im->g->a, "%s%s", is_name_char(name[0], true) || (name[0] && !is_name_char(name[0], false)) ? "" : "_", name);
    if (!clean) return "";
    bool is_changed = false;
    for (char *p = clean; *p; p++) {
        if (is_name_char(*p, p == clean)) continue;
        *p = '_';
        is_changed = true;
    }
    if (!is_changed) return clean;
    uint64_t sum = 0;
    for (const char *p = name; *p; p++) sum = sum * 131 + (unsigned char)*p;
    const char *unique = arena_printf(&im->g->a, "%s_%04x", clean, (unsigned)(sum & 0xffff));
    return unique ? unique : "";
}

static const onnx_input_shape *shape_given(const importer *im, const char *name)
{
    const uint32_t *slot = name_map_find(&im->shapes, name);
    return slot ? &im->options->shape[*slot] : NULL;
}

static sinter_status range_check(env *e, const onnx_input_shape *s, uint32_t axis)
{
    if (s->min[axis] == -1) return SINTER_OK;
    if (s->min[axis] >= 0 && s->min[axis] <= s->opt[axis] && s->opt[axis] <= s->max[axis]) return SINTER_OK;
    return FAIL(e, INVALID_ARG, "the shape given for input '%s' has min %lld, opt %lld, max %lld on axis %u", s->name,
                (long long)s->min[axis], (long long)s->opt[axis], (long long)s->max[axis], axis);
}

/* Ranges that the options put on one axis belong to the size's name: they are known before any expression is made. */
static sinter_status range_add(importer *im, const char *symbol, int64_t min, int64_t opt, int64_t max)
{
    bool is_new;
    uint32_t *slot = name_map_add(&im->symbols, symbol, &is_new);
    if (!slot) return FAIL_MEMORY(im->e, "names");
    if (is_new) {
        *slot = im->range.count;
        if (!VEC_PUSH(&im->a, &im->range)) return FAIL_MEMORY(im->e, "ranges");
        im->range.at[*slot].name = symbol;
        im->range.at[*slot].min = min;
        im->range.at[*slot].opt = opt;
        im->range.at[*slot].max = max;
        return SINTER_OK;
    }
    size_range *r = &im->range.at[*slot];
    if (min > r->min) r->min = min;
    if (max < r->max) r->max = max;
    if (r->min > r->max) r->is_split = true;
    if (r->opt < r->min) r->opt = r->min;
    if (r->opt > r->max) r->opt = r->max;
    return SINTER_OK;
}

bool onnx_dim_is_named(const onnx_dim *d)
{
    for (const char *p = d->param; !d->has_value && p && *p; p++)
        if (is_name_char(*p, true)) return true;
    return false;
}

static const char *axis_symbol(importer *im, const onnx_value_info *v, uint32_t axis)
{
    if (axis < v->rank && v->has_shape && onnx_dim_is_named(&v->dim[axis])) {
        const char *symbol = symbol_name(im, v->dim[axis].param);
        const uint32_t *slot = name_map_find(&im->symbols, symbol);
        if (!slot || !im->range.at[*slot].is_split) return symbol;
    }
    const char *name = arena_printf(&im->a, "%s.%u", v->name, axis);
    return name ? symbol_name(im, name) : "";
}

static bool axis_is_fixed(const onnx_value_info *v, uint32_t axis)
{
    return v->has_shape && v->dim[axis].has_value && v->dim[axis].value >= 0;
}

/* Puts the range of each axis that the options give one to its symbol. */
static sinter_status ranges_add(importer *im, const onnx_graph *graph, const name_map *inputs)
{
    for (uint32_t i = 0; i < im->options->count_shape; i++) {
        const onnx_input_shape *s = &im->options->shape[i];
        const onnx_value_info *v = &graph->in.at[*name_map_find(inputs, s->name)];
        for (uint32_t axis = 0; axis < s->rank; axis++) {
            TRY(range_check(im->e, s, axis));
            if (s->min[axis] == -1 || axis_is_fixed(v, axis)) continue;
            TRY(range_add(im, axis_symbol(im, v, axis), s->min[axis], s->opt[axis], s->max[axis]));
        }
    }
    return SINTER_OK;
}

/* Is the name that of an axis of an input? */
static bool is_axis(importer *im, const onnx_graph *graph, const char *symbol)
{
    for (uint32_t i = 0; i < graph->in.count; i++)
        for (uint32_t k = 0; k < graph->in.at[i].rank; k++)
            if (strcmp(axis_symbol(im, &graph->in.at[i], k), symbol) == 0) return true;
    return false;
}

/* Reads the expressions of sizes that follow from others: each names sizes that do not. */
static sinter_status check_equals(importer *im, const onnx_graph *graph)
{
    for (uint32_t i = 0; i < im->options->count_equal; i++) {
        const onnx_dim_equal *q = &im->options->equal[i];
        arena scratch;
        arena_init(&scratch, im->e);
        dim_table *t = dim_table_create(&scratch);
        dim d = DIM_NONE;
        scan s = scan_of(q->text, strlen(q->text));
        sinter_status status = t ? SINTER_OK : FAIL_MEMORY(im->e, "a size");
        if (t && (!dim_parse(t, &s, &d) || s.at != s.end))
            status =
                FAIL(im->e, INVALID_ARG, "size '%s' equals '%s', which is no expression such as P+S", q->name, q->text);
        if (status == SINTER_OK && !is_axis(im, graph, symbol_name(im, q->name)))
            status = FAIL(im->e, INVALID_ARG, "no axis of an input is named '%s'", q->name);
        for (uint32_t k = 0; status == SINTER_OK && k < dim_symbol_count(t); k++) {
            const char *name = dim_symbol_at(t, k)->name;
            bool is_free = is_axis(im, graph, name);
            for (uint32_t j = 0; j < im->options->count_equal; j++)
                is_free = is_free && strcmp(symbol_name(im, im->options->equal[j].name), name) != 0;
            if (!is_free)
                status = FAIL(im->e, INVALID_ARG, "size '%s' equals '%s': '%s' is no free axis of an input", q->name,
                              q->text, name);
        }
        arena_deinit(&scratch);
        TRY(status);
    }
    return SINTER_OK;
}

sinter_status importer_ranges(importer *im, const onnx_graph *graph)
{
    bool is_new, is_split = false;
    name_map inputs = { .a = &im->a };
    im->symbols.a = im->shapes.a = &im->a;
    for (uint32_t i = graph->in.count; i-- > 0;) {
        uint32_t *slot = name_map_add(&inputs, graph->in.at[i].name, &is_new);
        if (!slot) return FAIL_MEMORY(im->e, "names");
        *slot = i;
    }
    for (uint32_t i = 0; i < im->options->count_shape; i++) {
        const onnx_input_shape *s = &im->options->shape[i];
        uint32_t *slot = name_map_add(&im->shapes, s->name, &is_new);
        if (!slot) return FAIL_MEMORY(im->e, "names");
        if (is_new) *slot = i;
        slot = name_map_find(&inputs, s->name);
        const onnx_value_info *v = slot ? &graph->in.at[*slot] : NULL;
        if (!v) return FAIL(im->e, INVALID_ARG, "a shape is given for '%s', and the model has no such input", s->name);
        if (s->rank > SINTER_RANK_MAX || (v->has_shape && v->rank != s->rank))
            return FAIL(im->e, INVALID_ARG, "the shape given for input '%s' has rank %u, the model's has %u", s->name,
                        s->rank, v->rank);
    }
    TRY(ranges_add(im, graph, &inputs));
    for (uint32_t i = 0; i < im->range.count; i++) is_split = is_split || im->range.at[i].is_split;
    if (is_split) TRY(ranges_add(im, graph, &inputs)); /* again, now that it is known which are split */
    return check_equals(im, graph);
}

static dim symbol_dim(importer *im, const char *symbol);

static dim equal_dim(importer *im, const char *expression)
{
    dim_table *t = im->g->dims;
    dim d = DIM_NONE;
    scan s = scan_of(expression, strlen(expression));
    if (!dim_parse(t, &s, &d)) return DIM_NONE;
    for (uint32_t k = 0; k < dim_symbol_count(t); k++)
        if (dim_mentions(t, d, k)) d = dim_substitute(t, d, k, symbol_dim(im, dim_symbol_at(t, k)->name));
    return d;
}

static dim symbol_dim(importer *im, const char *symbol)
{
    dim_table *t = im->g->dims;
    for (uint32_t i = 0; i < im->options->count_equal; i++)
        if (strcmp(symbol_name(im, im->options->equal[i].name), symbol) == 0)
            return equal_dim(im, im->options->equal[i].text);
    const uint32_t *slot = name_map_find(&im->symbols, symbol);
    if (slot && im->range.at[*slot].min == im->range.at[*slot].max) return dim_const(t, im->range.at[*slot].min);
    const dim d = dim_symbol_named(t, symbol);
    uint32_t id;
    if (slot && dim_symbol_of(t, d, &id)) {
        dim_symbol s = *dim_symbol_at(t, id);
        s.min = im->range.at[*slot].min;
        s.opt = im->range.at[*slot].opt;
        s.max = im->range.at[*slot].max;
        dim_symbol_set(t, id, &s);
    }
    return d;
}

/* The constant that the caller promises an input to hold, or 0. */
static sinter_status input_promised(importer *im, const char *name, const ir_value *input, ir_value_id *out)
{
    *out = 0;
    for (uint32_t i = 0; i < im->options->count_value; i++) {
        if (strcmp(im->options->value[i].name, name) != 0) continue;
        const view *given = &im->options->value[i].data;
        bool fits = given->dtype == input->dtype && given->rank == input->rank;
        int64_t size = 0;
        for (uint32_t k = 0; fits && k < given->rank; k++)
            fits = !dim_is_const(im->g->dims, input->dim[k], &size) || size == given->dim[k];
        if (!fits || !view_is_dense(given))
            return FAIL(im->e, INVALID_ARG, "the value given has another type or shape");
        const sinter_tensor shape = { .dtype = given->dtype, .rank = 1, .dim = { view_count(given) } };
        void *copy = arena_alloc(&im->g->a, sinter_tensor_size(&shape), 64);
        if (!copy) return FAIL_MEMORY(im->e, "an input's value");
        if (shape.dim[0]) memcpy(copy, given->data, sinter_tensor_size(&shape));
        ir_builder b = { .g = im->g };
        view own = *given;
        own.data = copy;
        *out = build_const(&b, NULL, &own);
        return b.status;
    }
    return SINTER_OK;
}

sinter_status importer_input(importer *im, onnx_scope *s, const onnx_value_info *v)
{
    ir_graph *g = im->g;
    sinter_dtype dtype;
    const onnx_input_shape *given = shape_given(im, v->name);
    if (!v->is_tensor)
        return FAIL(im->e, UNSUPPORTED, "it is a map, or a sequence or optional of what is no tensor of numbers");
    if (!onnx_dtype_of(v->type, &dtype))
        return FAIL(im->e, UNSUPPORTED, "elements of type %d (%s)", v->type, onnx_type_name(v->type));
    if (!v->has_shape && !given)
        return FAIL(im->e, INVALID_MODEL, "the model does not say its rank; give its shape, such as %s=1x3x224x224",
                    v->name);
    const uint32_t rank = v->has_shape ? v->rank : given->rank;
    if (rank > SINTER_RANK_MAX)
        return FAIL(im->e, UNSUPPORTED, "rank %u; up to %d is supported", rank, SINTER_RANK_MAX);
    dim d[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) {
        if (!axis_is_fixed(v, i)) {
            if (v->has_shape && v->dim[i].has_value && v->dim[i].value < -1)
                return FAIL(im->e, INVALID_MODEL, "axis %u has size %lld", i, (long long)v->dim[i].value);
            d[i] = symbol_dim(im, axis_symbol(im, v, i));
            continue;
        }
        int64_t size = v->dim[i].value;
        if (given && given->min[i] != -1) {
            if (given->min[i] != given->max[i])
                return FAIL(im->e, INVALID_ARG, "axis %u is %lld in the model, and the shape given lets it vary", i,
                            (long long)size);
            size = given->min[i];
        }
        d[i] = dim_const(g->dims, size);
    }
    const ir_value_id id = ir_param(g, IR_MAIN, arena_text(&g->a, v->name, strlen(v->name)), dtype, rank, d);
    if (!id) return FAIL_MEMORY(im->e, "an input");
    ir_value_id promised = 0;
    TRY(input_promised(im, v->name, ir_value_at(g, id), &promised));
    ir_value_id value = promised ? promised : id;
    if (v->part == ONNX_TEXT) value = call_strings_new(im, &(call_strings){ .bytes = value });
    if (value && v->of) return importer_part(im, s, v, value);
    return value ? scope_set(im, s, v->name, value) : FAIL_MEMORY(im->e, "an input");
}
